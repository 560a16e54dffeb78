"""`plant export`: the network in ONNX's own runtime gives the same logits, whatever the batch and the length."""

import numpy as np
import pytest
import torch

from plant.commandline import main
from plant.serving.modeling import PlantForDocuments


@pytest.mark.parametrize("system", ["network", "evidence"])
def test_onnx_runtime_gives_the_logits_of_the_network(saved, tmp_path, capsys, system):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    main(["export", str(saved(system)), "--onnx", str(tmp_path / "network.onnx")])
    assert "9 labels, documents of up to 512 tokens" in capsys.readouterr().out
    model = PlantForDocuments.from_pretrained(saved(system))
    session = runtime.InferenceSession(tmp_path / "network.onnx")
    assert session.get_modelmeta().custom_metadata_map["max_tokens"] == "512"
    random = np.random.default_rng(0)
    for batch, length in ((1, 1), (2, 8), (3, 100), (5, 512)):
        ids = random.integers(5, 300, (batch, length))
        mask = (np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int64)
        with torch.inference_mode():
            expected = model(torch.from_numpy(ids), torch.from_numpy(mask)).logits.numpy()
        (found,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("system", ["mig_log_odds", "static"])
def test_a_system_that_reads_more_than_input_ids_is_refused(saved, tmp_path, monkeypatch, system):
    monkeypatch.setattr("plant.commandline.find_spec", lambda _: True)
    with pytest.raises(SystemExit, match=f"reads nothing but input ids, got the system {system}"):
        main(["export", str(saved(system)), "--onnx", str(tmp_path / "network.onnx")])
    assert not any(tmp_path.iterdir())


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr("plant.commandline.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"pip install '\.\[onnx\]'"):
        main(["export", "model", "--onnx", "network.onnx"])
