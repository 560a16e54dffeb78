"""Encoders and label attentions by name: what the config may name, and that one file is all it takes."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import yaml

from plant.ground.errors import InputError
from plant.ground.settings import load, parse_backbone
from plant.model.label_attention import Sizes
from plant.model.registry import (
    ATTENTIONS,
    ENCODERS,
    WITHOUT_LAYERS,
    WITHOUT_PRODUCTS,
    build_backbone,
    check,
    modules_of,
)

ROOT = Path(__file__).resolve().parents[2]
NETWORK = {"kind": "word_network", "encoder": "cnn", "attention": "per_label", "hidden_size": 16, "embedding_size": 8}
CONFIG = {
    "datasets": {"small": {"source": "mimic3", "path": "x"}},
    "backbones": {"net": NETWORK},
    "pretrainings": {"plant": {}},
    "finetunings": {"focal": {}},
    "variants": {"plain": {"finetuning": "focal"}, "plant": {"pretraining": "plant", "finetuning": "focal"}},
    "experiments": {"one": {"dataset": "small", "backbone": "net", "variants": ["plain", "plant"],
                            "reference": "plain"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("section", "entry", "value", "said"),
    [
        ("backbones", "net", {**NETWORK, "encoder": "cmn"},
         "backbones.net.encoder: unknown name 'cmn'. Did you mean 'cnn'?"),
        ("backbones", "net", {**NETWORK, "attention": "perlabel"}, "'perlabel'. Did you mean 'per_label'?"),
        ("backbones", "net", {**NETWORK, "attention": "none"}, "backbones.net.attention: unknown name 'none'."),
        ("backbones", "tiny", {"kind": "random", "attention": "x"}, "backbones.tiny.attention: unknown name 'x'."),
        ("backbones", "net", {**NETWORK, "options": {"stride": 2}}, "backbones.net.options: cnn has no option"),
        ("backbones", "net", {**NETWORK, "language_model": {}}, "cnn cannot be a language model; these can: awd_lstm"),
        ("finetunings", "focal", {"initialisation": "descriptions"}, "plain starts from descriptions"),
        ("pretrainings", "plant", {"initialisation": "descriptions"}, "plant starts from descriptions"),
        ("finetunings", "focal", {"unfreezing": "gradual"}, "plant has gradual unfreezing, which 'net' cannot"),
        ("finetunings", "focal", {"differentiable_attention": 1}, "which needs a pretraining with `lists: vocabulary`"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_before_any_job(section, entry, value, said):
    check(load(CONFIG))
    with pytest.raises(InputError) as error:
        check(load({**CONFIG, section: {**CONFIG[section], entry: value}}))
    assert said in str(error.value)


@pytest.mark.parametrize("attention", ["multi_head", "cross_attention"])
def test_segments_that_stage_2_could_not_read_are_refused_before_stage_1(attention):
    config = {**CONFIG, "finetunings": {"focal": {"segment": 72}}}
    check(load(config))
    with pytest.raises(InputError, match=f"plant has a segment, which 'net' cannot read with attention: {attention}"):
        check(load({**config, "backbones": {"net": {**NETWORK, "attention": attention}}}))


def test_the_check_knows_which_encoders_name_layers_and_which_heads_read_segments():
    for name in ENCODERS.names():
        settings = parse_backbone({**NETWORK, "encoder": name, "kernel_sizes": [3]})
        backbone = build_backbone(settings, "", vocabulary=9, device=torch.device("cpu"))
        assert hasattr(backbone, "layer_groups") == (name not in WITHOUT_LAYERS)
    for name in ATTENTIONS.names():
        _, head = ATTENTIONS.load(name)(Sizes(labels=3, hidden=8))
        assert hasattr(head, "products") == (name not in WITHOUT_PRODUCTS)


def test_an_option_without_a_default_must_be_named(monkeypatch):
    monkeypatch.setitem(ENCODERS._read, "cnn", {"vocabulary": True, "rate": True, "depth": False})
    with pytest.raises(InputError, match=r"backbones\.net\.options: cnn needs the option 'rate'"):
        check(load(CONFIG))
    check(load({**CONFIG, "backbones": {"net": {**NETWORK, "options": {"rate": 0.1}}}}))


def test_heads_that_do_not_divide_are_refused_for_the_attention_that_has_heads():
    several = {**NETWORK, "hidden_size": 15, "attention": "multi_head"}
    with pytest.raises(InputError, match="hidden_size must be a multiple of attention_heads"):
        load({**CONFIG, "backbones": {"net": several}})
    load({**CONFIG, "backbones": {"net": {**several, "attention": "per_label"}}})
    lstm = {**several, "encoder": "awd_lstm", "embedding_size": 16}  # its states have the size of a word vector
    load({**CONFIG, "backbones": {"net": lstm}})
    with pytest.raises(InputError, match="embedding_size must be a multiple of attention_heads"):
        load({**CONFIG, "backbones": {"net": {**lstm, "hidden_size": 16, "embedding_size": 15}}})


def test_every_module_of_the_folders_can_be_named_and_reading_their_options_imports_no_torch():
    assert {"awd_lstm", "bigru", "bilstm", "cnn", "multi_res_cnn"} <= set(ENCODERS.names())
    assert {"cross_attention", "laat", "multi_head", "per_label"} <= set(ATTENTIONS.names())
    for folder in (ENCODERS, ATTENTIONS):
        for name in folder.names():
            given = inspect.signature(folder.load(name)).parameters.values()
            options = {one.name: one.default is one.empty for one in given if one.kind is one.KEYWORD_ONLY}
            assert folder.options(name) == {key: options[key] for key in options if key not in folder.given}
    code = """
import sys
from plant.model.registry import ENCODERS
assert "segment" in ENCODERS.options("awd_lstm") and ENCODERS.takes("awd_lstm", "language_model")
print(*sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "transformers"} & set(said)


def test_a_job_depends_on_the_modules_of_its_own_encoder_and_attention():
    assert modules_of(parse_backbone(NETWORK)) == ["plant.model.encoders.cnn", "plant.model.attentions.per_label"]
    assert modules_of(parse_backbone({"kind": "random"})) == [
        "plant.model.transformer.backbone", "plant.model.attentions.multi_head",
    ]  # fmt: skip


TOY = '''
"""Every word is its vector."""
from torch import nn
from plant.model.word_network import WordBackbone, word_vectors


class Same(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.hidden_size = size

    def forward(self, states, mask):
        return states


def build(settings, source, *, vocabulary, rate):
    vectors = word_vectors(settings, source, vocabulary=vocabulary)
    return WordBackbone(vectors, Same(settings.embedding_size), dropout=rate)
'''


@pytest.mark.slow
def test_a_file_is_a_backbone_that_is_planted_trained_and_measured(tmp_path, sign_documents):
    for part in ("src", "workflow", "profiles", "config", "envs"):
        shutil.copytree(ROOT / part, tmp_path / "house" / part)
    shutil.copy(ROOT / "Snakefile", tmp_path / "house")
    (tmp_path / "house/src/plant/model/encoders/toy.py").write_text(TOY, encoding="utf-8")
    stage = {"epochs": 1, "batch_size": 16, "accumulation": 1, "learning_rate": 0.01, "head_learning_rate": 0.01}
    made = pl.DataFrame(sign_documents({"train": 120}, (0.4, 0.4, 0.4, 0.4, 0.4), 1.0)["train"])
    made.with_columns(pl.col("labels").list.join(";")).write_csv(tmp_path / "own.csv")
    vectors = [f"sign{label} " + " ".join(map(str, np.eye(8)[label])) for label in range(5)]
    (tmp_path / "vectors.txt").write_text("\n".join(vectors), encoding="utf-8")
    of = {"dataset": "small", "variants": ["plant"], "reference": "plant", "seeds": [0], "report": False}
    config = {
        "datasets": {"small": {"source": "table", "path": "own.csv"}},
        "backbones": {
            "cnn": {**NETWORK, "min_documents": 2, "word_vectors": "vectors.txt"},
            "toy": {**NETWORK, "encoder": "toy", "options": {"rate": 0.1}, "word_vectors": "trained"},
        },
        "relevance": {"k": 50},
        "pretrainings": {"plant": {**stage, "k": 50}},
        "finetunings": {"focal": {**stage, "hard_negatives": 5, "static_attention": 1}},
        "variants": {"plant": {"pretraining": "plant", "finetuning": "focal"}},
        "experiments": {name: {**of, "backbone": name} for name in ("cnn", "toy")},
    }  # fmt: skip
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    asked = [f"results/evaluation/small/{name}/plant+focal/seed0/{file}"
             for name in ("cnn", "toy") for file in ("metrics.json", "attention.parquet")]  # fmt: skip
    command = [sys.executable, "-m", "snakemake", "--snakefile", tmp_path / "house/Snakefile", "--directory", tmp_path,
               "--configfile", tmp_path / "config.yaml", "--cores", "2", "--show-failed-logs", *asked]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, capture_output=True, text=True, env={**environment, "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    for name in ("cnn", "toy"):
        table = pl.read_parquet(tmp_path / f"results/evaluation/small/{name}/plant+focal/seed0/attention.parquet")
        sums = table.group_by("document_id", "label").agg(pl.col("weight").sum())["weight"]
        assert len(sums) and (sums - 1).abs().max() < 1e-5
