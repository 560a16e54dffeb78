"""`plant export`: the network in ONNX's own runtime gives the same logits, whatever the batch and the length."""

import numpy as np
import pytest
import torch

from plant.commandline import main
from plant.ground.settings import parse_backbone
from plant.model.assemble import make_classifier
from plant.model.registry import build_backbone
from plant.serving.modeling import PlantForDocuments
from plant.serving.onnx import OnePiece
from plant.serving.system import load_system

WORDS = {"kind": "word_network", "attention": "per_label", "embedding_size": 8, "hidden_size": 16, "kernel_sizes": [3]}


def word_network(encoder):
    """A small network over 300 words, with nine labels."""
    settings = parse_backbone({**WORDS, "encoder": encoder})
    torch.manual_seed(0)
    backbone = build_backbone(settings, "", vocabulary=300, device=torch.device("cpu"))
    return make_classifier(settings, backbone, n_labels=9).eval()


@pytest.mark.parametrize("system", ["network", "convolution"])
def test_a_graph_takes_any_batch_and_length_and_is_not_cut(saved, system):
    """Without the ONNX packages: what torch makes of the network before it is converted."""
    classifier = word_network("cnn") if system == "convolution" else load_system(saved(system)).classifier
    ids, mask = torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    free = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    program = torch.export.export(OnePiece(classifier).eval(), (ids, mask), dynamic_shapes=(free, free), strict=True)
    assert "split" not in program.graph_module.code  # no converter knows how often
    ids = torch.randint(5, 300, (3, 13))
    mask = (torch.arange(13) < torch.tensor([[13], [4], [9]])).long()
    with torch.no_grad():
        hidden = classifier.backbone(ids, mask.bool())
        torch.testing.assert_close(program.module()(ids, mask), classifier.logits(hidden, mask.bool()))


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


@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "awd_lstm"])
def test_a_network_that_does_not_convert_is_one_error_and_writes_nothing(saved, tmp_path, monkeypatch, encoder):
    def failed(*_, **__):
        raise torch.onnx.OnnxExporterError("many lines")

    monkeypatch.setattr("plant.commandline.find_spec", lambda _: True)
    monkeypatch.setattr("torch.onnx.export", failed)
    model = load_system(saved("network"))
    model.classifier = word_network(encoder)
    monkeypatch.setattr("plant.serving.system.load_system", lambda _: model)
    with pytest.raises(
        SystemExit, match=r"^plant: plant export: expected a network that torch can convert, got a[^\n]*$"
    ):
        main(["export", "model", "--onnx", str(tmp_path / "network.onnx")])
    assert not any(tmp_path.iterdir())
