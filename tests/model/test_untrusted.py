"""Files of others run no code here: weights are never unpickled, a model's own code only where the config says so."""

import json
import pickle
from pathlib import Path

import pytest

from plant.corpus.encoders import load as load_encoder
from plant.ground.errors import InputError
from plant.ground.settings import Pretrained
from plant.model.transformer.loading import load_model

CODE = """
from pathlib import Path
from transformers import PretrainedConfig, PreTrainedModel
Path({mark!r}).touch()

class OwnConfig(PretrainedConfig):
    model_type = "of_its_own"

class OwnModel(PreTrainedModel):
    config_class = OwnConfig
"""


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def backbone(folder: Path, **options) -> Pretrained:
    return Pretrained.model_validate({"kind": "pretrained", "path": str(folder), **options})


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_pickled_weights_are_refused_and_what_they_would_run_does_not_run(backbone_folder, tiny, tmp_path, name):
    folder, mark = tmp_path / "model", tmp_path / "ran"
    folder.mkdir()
    (folder / "config.json").write_bytes((backbone_folder(tiny()) / "config.json").read_bytes())
    (folder / name).write_bytes(pickle.dumps(Touch(mark)))
    settings = backbone(folder)
    with pytest.raises(InputError, match="expected a Hugging Face model"):
        load_model(settings, folder, "cpu")
    assert not mark.exists()


@pytest.fixture
def of_its_own(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """A model whose folder brings its code, and the file that the code makes."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "cache"))
    folder, mark = tmp_path / "of_its_own", tmp_path / "ran"
    folder.mkdir()
    (folder / "own.py").write_text(CODE.format(mark=str(mark)), encoding="utf-8")
    names = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel", "AutoTokenizer": [None, "own.OwnTokenizer"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "of_its_own", "auto_map": names}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": names}), encoding="utf-8")
    return folder, mark


@pytest.mark.parametrize("trusted", [False, True])
def test_a_models_own_code_runs_only_where_the_config_says_so(of_its_own, trusted):
    folder, mark = of_its_own
    settings = backbone(folder, **({"trust_remote_code": True} if trusted else {}))
    with pytest.raises(InputError) as refused:  # there are no weights either way
        load_model(settings, folder, "cpu")
    assert mark.exists() == trusted
    assert ("contains custom code" in str(refused.value)) != trusted


def test_a_tokenizers_own_code_does_not_run_unasked(of_its_own):
    folder, mark = of_its_own
    with pytest.raises(InputError):
        load_encoder(backbone(folder), None)
    assert not mark.exists()
