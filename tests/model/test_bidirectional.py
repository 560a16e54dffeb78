"""`bidirectional` turns the causal mask off for every architecture, on every way from the settings to hidden states."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from plant.model.assemble import TrainingData, build_classifier
from plant.model.batches import Corpus, pad_documents
from plant.model.features import read_features, write_features
from plant.model.transformer.backbone import load_backbone

CPU = torch.device("cpu")
CAUSAL = ["llama", "mistral", "phi3", "deepseek_v3"]
LENGTHS = (9, 6)


def corpus_of(last=50):
    """Two documents; the first one ends with the given token."""
    ids = np.split(np.arange(20, 20 + sum(LENGTHS)), [LENGTHS[0]])
    ids[0][-1] = last
    return Corpus.of(ids, [[0], [0]], splits={"train": 1, "val": 1, "test": 0})


def moved(states_of, rows):
    """Largest change of the state of token 0 when the last token of its document changes."""
    with torch.no_grad():
        first, second = (states_of(corpus_of(last), rows) for last in (50, 60))
    assert not torch.equal(first[0, LENGTHS[0] - 1], second[0, LENGTHS[0] - 1])
    return (first[0, 0] - second[0, 0]).abs().max().item()


@pytest.mark.parametrize("options", [{}, {"adapter": "lora", "lora": {"rank": 2}}, {"gradient_checkpointing": True}],
                         ids=["full", "lora", "checkpointing"])  # fmt: skip
@pytest.mark.parametrize("rows", [[0], [0, 1]], ids=["no padding", "padding"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("architecture", CAUSAL)
def test_the_first_state_of_both_stages_depends_on_the_last_token_iff_bidirectional(
    backbone_folder, tiny, architecture, bidirectional, rows, options
):
    settings = tiny(architecture=architecture, bidirectional=bidirectional, **options)
    data = TrainingData(corpus_of(), np.arange(1), ["a"])
    classifier = build_classifier(settings, backbone_folder(settings), data, seed=0, device=CPU)
    for training in (True, False):  # Stage 1 and 2 train it, prediction evaluates it
        classifier.train(training)
        if settings.adapter == "lora":
            classifier.eval()  # no dropout between the two
        change = moved(lambda corpus, ids: classifier.hidden_states(pad_documents(corpus, ids, CPU)), rows)
        assert (change > 1e-6) == bidirectional


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("architecture", CAUSAL)
def test_cached_features_are_those_of_the_same_mask(backbone_folder, tiny, tmp_path, architecture, bidirectional):
    settings = tiny(architecture=architecture, bidirectional=bidirectional, adapter="frozen")

    def states_of(corpus, rows):
        backbone = load_backbone(settings, backbone_folder(settings))
        write_features(backbone, corpus, tmp_path / "f.safetensors", device=CPU)
        with_features = replace(corpus, features=read_features(tmp_path / "f.safetensors"))
        return pad_documents(with_features, rows, CPU).features

    assert (moved(states_of, [0, 1]) > 1e-4) == bidirectional


@pytest.mark.parametrize("architecture", CAUSAL)
def test_padding_is_not_seen_and_a_piece_ends_where_it_ends(backbone_folder, tiny, architecture):
    settings = tiny(architecture=architecture, bidirectional=True)
    backbone = load_backbone(settings, backbone_folder(settings)).eval()

    def states_of(corpus, rows):
        padded = pad_documents(corpus, rows, CPU)
        return backbone(padded.input_ids, padded.mask)

    with torch.no_grad():
        alone, together = states_of(corpus_of(), [1]), states_of(corpus_of(), [0, 1])
    torch.testing.assert_close(together[1:, : LENGTHS[1]], alone, rtol=1e-4, atol=1e-5)
    backbone.chunk_tokens = 4  # three pieces: the last token is in another one
    assert moved(states_of, [0, 1]) < 1e-6


def test_a_model_that_always_sees_both_sides_is_left_as_it_is(backbone_folder, tiny):
    found = []
    for bidirectional in (False, True):
        settings = tiny(architecture="bert", bidirectional=bidirectional)
        backbone = load_backbone(settings, backbone_folder(settings)).eval()
        padded = pad_documents(corpus_of(), [0, 1], CPU)
        with torch.no_grad():
            found.append(backbone(padded.input_ids, padded.mask))
    assert torch.equal(*found)
