"""Label embeddings from descriptions: states by hand, scale, labels without one."""

import numpy as np
import polars as pl
import pytest
import torch

from plant.ground.checkpoints import save_tensors
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.model.assemble import prepare
from plant.model.attentions.multi_head import EMBEDDING_STD, LabelAttention
from plant.model.descriptions import directions, start_from_descriptions, write_label_embeddings

DESCRIPTIONS = ["abcde fgh", None, "hgfed cba abcde", "fgh", ""]


@pytest.fixture
def corpus(tmp_path, corpus_files):
    """Five labels, three with a description; label 3 has no training document."""
    documents = {
        "train": [([0, 1, 2], ["l0", "l1", "l2", "l4"])],
        "val": [([3, 4, 5], ["l3"])],
        "test": [([6, 7, 8], ["l0"])],
    }
    return corpus_files(tmp_path, documents, [f"l{i}" for i in range(5)], DESCRIPTIONS)


def by_hand(settings, folder):
    """Mean state of each description's tokens, through the tokenizer and the model of transformers."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = {}
    for label, text in enumerate(DESCRIPTIONS):
        if text:
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                rows[label] = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
    return rows


@pytest.mark.parametrize("adapter", ["full", "lora"])
def test_rows_are_centred_mean_states_of_the_backbone_as_it_comes(corpus, tiny, backbone_folder, adapter):
    settings = tiny(adapter=adapter)
    folder = backbone_folder(settings)
    facts = write_label_embeddings(settings, folder, corpus, out=corpus / "e.safetensors", device=torch.device("cpu"))
    assert facts == {"labels": 5, "described": 3}
    found, means = read_arrays(corpus / "e.safetensors")["embeddings"], by_hand(settings, folder)
    centre = np.mean(list(means.values()), axis=0)
    for label in range(5):
        if label not in means:
            assert (found[label] == 0).all()
            continue
        row = means[label] - centre
        np.testing.assert_allclose(found[label], 0.02 * row / np.sqrt(np.mean(row**2)), rtol=2e-3, atol=1e-5)


def test_every_direction_has_the_scale_of_a_random_row_whatever_its_length():
    states = np.random.default_rng(0).normal(5, 1, size=(50, 64)) * np.linspace(0.1, 9, 50)[:, None]
    states[7] = 0
    sizes = np.sqrt(np.square(directions(states.astype(np.float32))).mean(axis=1))
    torch.manual_seed(0)
    usual = LabelAttention(50, 64, 2).embeddings.detach().square().mean().sqrt().item()
    assert sizes == pytest.approx([0 if row == 7 else EMBEDDING_STD for row in range(50)], rel=1e-5)
    assert usual == pytest.approx(EMBEDDING_STD, rel=0.2)
    assert (directions(np.ones((3, 4), dtype=np.float32)) == 0).all()  # they do not differ


@pytest.mark.parametrize("rows", [np.ones((2, 4)), np.ones((6, 5))], ids=["other labels", "other backbone"])
def test_embeddings_that_do_not_fit_are_one_clear_error(tmp_path, rows):
    write_arrays(tmp_path / "e.safetensors", {"embeddings": rows.astype(np.float32)})
    with pytest.raises(InputError, match="rows of 4 for 5 labels"):
        start_from_descriptions(LabelAttention(3, 4, 2), tmp_path / "e.safetensors", np.array([0, 2, 4]))


def test_a_corpus_without_descriptions_is_one_clear_error(corpus, tiny, backbone_folder):
    names = pl.read_parquet(corpus / "labels.parquet").with_columns(description=pl.lit(None, pl.String))
    names.write_parquet(corpus / "labels.parquet")
    with pytest.raises(InputError, match="5 labels without one"):
        write_label_embeddings(
            tiny(), backbone_folder(tiny()), corpus, out=corpus / "e.safetensors", device=torch.device("cpu")
        )


@pytest.mark.parametrize("cached", [False, True], ids=["live", "cached features"])
def test_prepare_puts_the_rows_of_trained_labels_into_e(corpus, tiny, backbone_folder, cached):
    settings = tiny(adapter="frozen", cache_features=cached)
    folder, features = backbone_folder(settings), None
    write_label_embeddings(settings, folder, corpus, out=corpus / "e.safetensors", device=torch.device("cpu"))
    if cached:
        features = corpus / "features.safetensors"
        save_tensors(features, {"features": torch.zeros(9, 16, dtype=torch.float16)})
    sections = {"backbone": settings.model_dump(mode="json"), "compute": {"device": "cpu", "threads": 1}}
    inputs = {"corpus": corpus, "tokens": corpus / "tokens.safetensors", "backbone": folder, "features": features}
    described = {"initialisation": "descriptions", "seed": 0, **inputs}
    data, started, facts = prepare(sections, **described, embeddings=corpus / "e.safetensors")
    random = prepare(sections, **inputs, seed=0)[1]
    assert data.trained.tolist() == [0, 1, 2, 4]
    assert facts["labels_from_descriptions"] == 2
    rows = read_arrays(corpus / "e.safetensors")["embeddings"]
    np.testing.assert_array_equal(started.attention.embeddings.detach()[[0, 2]].numpy(), rows[[0, 2]])
    assert torch.equal(started.attention.embeddings[[1, 3]], random.attention.embeddings[[1, 3]])
