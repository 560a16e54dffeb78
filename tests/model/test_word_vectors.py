"""Word vectors of a corpus: trained on the training split, or read from a user's file."""

import importlib.util

import numpy as np
import pytest

from plant.corpus.reader import Tokens
from plant.ground.errors import InputError
from plant.ground.files import write_arrays
from plant.ground.settings import WordNetwork
from plant.model.word_vectors import from_file, train

VOCABULARY = ("alpha", "beta", "gamma")
TEXT = "alpha 1 2\nother 3 4\ngamma 5 6\n"


def words_of(*names):
    return np.frombuffer("\n".join(names).encode(), np.uint8)


@pytest.mark.parametrize("form", ["text", "text with a first line", "safetensors"])
def test_rows_are_those_of_the_words_and_a_missing_word_has_zeros(tmp_path, form):
    file = tmp_path / ("v.safetensors" if form == "safetensors" else "v.txt")
    if form == "safetensors":
        vectors = np.array([[5, 6], [3, 4], [1, 2]], np.float32)
        write_arrays(file, {"vectors": vectors, "words": words_of("gamma", "other", "alpha")})
    else:
        file.write_text(("3 2\n" if "first" in form else "") + TEXT, encoding="utf-8")
    assert from_file(file, VOCABULARY, 2).tolist() == [[1, 2], [0, 0], [5, 6]]


def test_files_of_another_size_form_or_language_are_refused(tmp_path):
    (tmp_path / "v.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.txt").write_text("uno 1 2\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("alpha 1 2\nbeta 3 four\n", encoding="utf-8")
    (tmp_path / "latin.txt").write_text("año 1 2\n", encoding="latin-1")
    latin = np.frombuffer("año".encode("latin-1"), np.uint8)
    write_arrays(tmp_path / "latin.safetensors", {"vectors": np.ones((1, 2), np.float32), "words": latin})
    write_arrays(tmp_path / "size.safetensors", {"vectors": np.ones((1, 3), np.float32), "words": words_of("alpha")})
    write_arrays(tmp_path / "form.safetensors", {"vectors": np.ones((2, 2), np.float32), "words": words_of("alpha")})
    for name, size, said in [
        ("v.txt", 3, r"line 1: expected word vectors of 3 numbers, got 2. Set embedding_size"),
        ("size.safetensors", 2, "word vectors of 2 numbers, got 3"),
        ("form.safetensors", 2, "got 1 words and 2 vectors"),
        ("words.txt", 2, "line 2: expected a word and 2 numbers, got .*'four'"),
        ("latin.txt", 2, "expected words in UTF-8"),
        ("latin.safetensors", 2, "expected words in UTF-8"),
        ("other.txt", 2, "got none of them"),
        ("absent.txt", 2, "absent.txt"),
    ]:
        with pytest.raises(InputError, match=said):
            from_file(tmp_path / name, VOCABULARY, size)


def corpus(tmp_path):
    """Words 0 and 1 have the same neighbours, 2 and 3 have others; word 4 is in the test split alone."""
    random = np.random.default_rng(0)
    sides = [([0, 1], np.arange(10, 20)), ([2, 3], np.arange(20, 30))]
    documents = []
    for _ in range(400):
        pair, company = sides[random.integers(2)]
        documents.append(np.insert(random.choice(company, 8), 4, random.choice(pair)))
    documents.append(np.array([4, 4]))
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in documents])])
    ids = np.concatenate(documents).astype(np.int32)
    tokens = Tokens(ids, offsets, ids, ids, tmp_path)
    tokens.__dict__["vocabulary"] = tuple(f"w{i}" for i in range(30))
    return tokens


@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim is an extra")
def test_words_with_the_same_neighbours_get_similar_vectors_from_the_training_split_alone(tmp_path):
    how = {"embedding_size": 16, "hidden_size": 8, "word2vec": {"epochs": 30, "window": 4, "seed": 1}}
    settings = WordNetwork.model_validate({"kind": "word_network", "encoder": "cnn", "attention": "per_label", **how})
    tokens = corpus(tmp_path)
    vectors, again = (train(settings, tokens, slice(0, 400)) for _ in range(2))
    np.testing.assert_array_equal(vectors, again)
    assert vectors.shape == (30, 16) and not vectors[4].any()
    unit = vectors[:4] / np.linalg.norm(vectors[:4], axis=1, keepdims=True)
    alike = unit @ unit.T
    assert min(alike[0, 1], alike[2, 3]) > max(alike[0, 2], alike[0, 3], alike[1, 2], alike[1, 3])
