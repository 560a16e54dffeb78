"""Tokens: spans point at the text, nothing of val or test enters a vocabulary, cuts are counted."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant.corpus.reader import Tokens, load_labels, load_tokens
from plant.corpus.tokens import tokenize_corpus, train_tokenizer
from plant.ground import settings
from plant.ground.errors import InputError

WORDS = settings.Words(kind="words")
RANDOM = settings.Random(kind="random", vocabulary=600)


def texts_of(corpus: Path) -> list[str]:
    return [text for name in ("train", "val", "test") for text in load_labels(corpus).texts(name)]


def spans(tokens: Tokens, document: int, text: str) -> list[str]:
    rows = slice(tokens.offsets[document], tokens.offsets[document + 1])
    return [text[a:b] for a, b in zip(tokens.starts[rows], tokens.ends[rows], strict=True)]


def statistics(folder: Path) -> dict:
    return json.loads((folder / "statistics.json").read_text())


@pytest.fixture(scope="module")
def tokenizer(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(demo_folder / "train.parquet", vocabulary=600, out=out)
    return out


@pytest.fixture(scope="module")
def subwords(demo_folder: Path, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    out = tmp_path_factory.mktemp("subwords")
    tokenize_corpus(demo_folder, RANDOM, tokenizer=tokenizer, out=out)
    return load_tokens(out)


def small_corpus(folder: Path, train: list[str], val: list[str], test: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, texts in {"train": train, "val": val, "test": test}.items():
        pl.DataFrame({"text": texts}).write_parquet(folder / f"{name}.parquet")
    return folder


# --- words --------------------------------------------------------------------------------------


def test_words_equal_a_plain_loop(demo_folder, tmp_path):
    tokenize_corpus(demo_folder, WORDS, tokenizer=None, out=tmp_path)
    tokens, texts = load_tokens(tmp_path), texts_of(demo_folder)
    split = [[word.lower() for word in re.findall(r"\b\w\w+\b", text)] for text in texts]
    known = {word for words in split[: load_labels(demo_folder).split_sizes[0]] for word in words}
    assert tokens.vocabulary == tuple(sorted(known))
    for document, words in enumerate(split):
        expected = [word for word in words if word in known]
        assert [tokens.vocabulary[i] for i in tokens.row(document)] == expected
        assert [piece.lower() for piece in spans(tokens, document, texts[document])] == expected


# training texts (the validation text is "aa"), the test text, options, vocabulary, ids of documents, statistics
SMALL = [
    (["Alpha beta, alpha"], "delta", {}, ("alpha", "beta"), [[0, 1, 0], [], []], {"documents_without_tokens": 2}),
    (["aa bb cc cc cc", "aa bb dd", "aa"], "bb", {"min_documents": 2}, ("aa", "bb"), [[0, 1], [0, 1], [0], [0], [1]],
     {"tokens_unknown_or_special": 4}),
    (["aa bb cc cc cc", "aa bb dd", "aa"], "bb", {"vocabulary": 3}, ("aa", "bb", "cc"),
     [[0, 1, 2, 2, 2], [0, 1], [0], [0], [1]], {"tokens_unknown_or_special": 1}),
    (["aa bb cc dd", "aa bb"], "bb aa cc aa", {"max_tokens": 3}, ("aa", "bb", "cc"),
     [[0, 1, 2], [0, 1], [0], [1, 0, 2]], {"documents_cut": 2, "tokens_lost_by_cutting": 2, "tokens": 9}),
]  # fmt: skip


@pytest.mark.parametrize(("train", "test", "options", "vocabulary", "ids", "counts"), SMALL)
def test_the_vocabulary_is_that_of_the_training_split_and_what_is_left_out_is_counted(
    tmp_path, train, test, options, vocabulary, ids, counts, caplog
):
    corpus = small_corpus(tmp_path, train, ["aa"], [test])
    with caplog.at_level("WARNING", logger="plant"):
        tokenize_corpus(corpus, WORDS.model_copy(update=options), tokenizer=None, out=tmp_path / "t")
    cut = ["warning: 2 of 4 documents are longer than `max_tokens` (3) and were cut: 18.2% of all tokens are lost"]
    assert [record.getMessage() for record in caplog.records] == (cut if "max_tokens" in options else [])  # 2 of 11
    tokens = load_tokens(tmp_path / "t")
    assert tokens.vocabulary == vocabulary
    assert [tokens.row(i).tolist() for i in range(len(ids))] == ids
    assert statistics(tmp_path / "t").items() >= counts.items()


# --- subwords -----------------------------------------------------------------------------------


def test_byte_level_tokens_cover_every_visible_character(demo_folder, subwords):
    for document, text in enumerate(texts_of(demo_folder)):
        assert "".join("".join(spans(subwords, document, text)).split()) == "".join(text.split())


def test_arrays_have_the_types_of_the_contract_and_no_special_token(demo_folder, subwords):
    labels, text = load_labels(demo_folder), texts_of(demo_folder)[0]
    readable = [subwords.vocabulary[i].strip() for i in subwords.row(0)]
    assert readable == [piece.strip() for piece in spans(subwords, 0, text)]
    assert subwords.vocabulary_size == len(subwords.vocabulary) == len(subwords.special) == 600
    assert np.flatnonzero(subwords.special).tolist() == [0, 1, 2, 3]
    assert not np.isin(subwords.input_ids, np.flatnonzero(subwords.special)).any()
    arrays = (subwords.input_ids, subwords.offsets, subwords.starts, subwords.ends)
    assert [array.dtype for array in arrays] == [np.int32, np.int64, np.int32, np.int32]
    assert subwords.n_documents == labels.n_documents
    offsets, ids = subwords.part(labels.rows("val"))
    first = int(labels.split_sizes[0])
    assert ids[offsets[1] : offsets[2]].tolist() == subwords.row(first + 1).tolist()


def test_the_tokenizer_does_not_see_val_and_test(demo_folder, tokenizer, tmp_path):
    shutil.copy(demo_folder / "train.parquet", tmp_path)
    train_tokenizer(tmp_path / "train.parquet", vocabulary=600, out=tmp_path / "again")
    assert (tmp_path / "again/tokenizer.json").read_bytes() == (tokenizer / "tokenizer.json").read_bytes()


def test_accents_emoji_and_line_separators_keep_their_spans(tokenizer, tmp_path):
    texts = ["Ein Ärgernis\u2028 naïve 😀 x", "  \n ", "a\u3000b"]
    corpus = small_corpus(tmp_path, texts, ["a"], ["b"])
    tokenize_corpus(corpus, RANDOM, tokenizer=tokenizer, out=tmp_path / "t")
    tokens = load_tokens(tmp_path / "t")
    for document, text in enumerate(texts):
        pieces = spans(tokens, document, text)
        assert set("".join(text.split())) == set("".join("".join(pieces).split()))
        assert not any(piece[:1].isspace() and piece.strip() for piece in pieces)


def test_transformers_loads_the_folder_and_agrees(demo_folder, subwords, tokenizer, tmp_path):
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(str(tokenizer), local_files_only=True)
    assert (loaded.pad_token, loaded.pad_token_id, loaded.is_fast) == ("<pad>", 0, True)
    assert loaded(texts_of(demo_folder)[0], add_special_tokens=False)["input_ids"] == subwords.row(0).tolist()
    backbone = settings.Pretrained(kind="pretrained", path=str(tokenizer))
    tokenize_corpus(demo_folder, backbone, tokenizer=None, out=tmp_path)
    again = load_tokens(tmp_path)
    assert np.array_equal(again.input_ids, subwords.input_ids)
    assert np.array_equal(again.starts, subwords.starts)


def test_an_unknown_word_of_a_wordpiece_tokenizer_is_special(tmp_path):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    wordpiece = Tokenizer(models.WordPiece({"[UNK]": 0, "[PAD]": 1, "heart": 2, "##s": 3}, unk_token="[UNK]"))
    wordpiece.normalizer, wordpiece.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    wordpiece.save(str(tmp_path / "tokenizer.json"))
    corpus = small_corpus(tmp_path, ["Hearts qqq heart"], ["heart"], ["zzz"])
    tokenize_corpus(corpus, RANDOM, tokenizer=tmp_path, out=tmp_path / "t")
    tokens = load_tokens(tmp_path / "t")
    assert tokens.row(0).tolist() == [2, 3, 2]
    assert tokens.vocabulary == ("[UNK]", "[PAD]", "heart", "##s")
    assert spans(tokens, 0, "Hearts qqq heart") == ["Heart", "s", "heart"]


def test_tokens_of_a_private_corpus_are_private(tokenizer, tmp_path):
    corpus = small_corpus(tmp_path, ["aa"], ["aa"], ["aa"])
    (corpus / "train.parquet").chmod(0o600)
    tokenize_corpus(corpus, WORDS, tokenizer=None, out=tmp_path / "t")
    train_tokenizer(corpus / "train.parquet", vocabulary=300, out=tmp_path / "m")
    files = [*(tmp_path / "t").iterdir(), *(tmp_path / "m").iterdir()]
    assert Counter(file.stat().st_mode & 0o777 for file in files) == {0o600: 5}


# --- what is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "says"), [({"config.json": "{}"}, "none there"), ({"tokenizer.json": "{broken"}, "transformers can load")]
)
def test_a_backbone_folder_without_a_tokenizer_is_one_clear_error(demo_folder, tmp_path, files, says):
    (tmp_path / "backbone").mkdir()
    for name, content in files.items():
        (tmp_path / "backbone" / name).write_text(content)
    backbone = settings.Pretrained(kind="pretrained", path=str(tmp_path / "backbone"))
    with pytest.raises(InputError, match=says):
        tokenize_corpus(demo_folder, backbone, tokenizer=None, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_that_is_empty_is_one_clear_error_and_leaves_nothing(demo_folder, tmp_path):
    backbone = settings.WordNetwork(kind="word_network", encoder="cnn", min_documents=10**6)
    with pytest.raises(InputError, match=r"one in at least 1000000 documents, got none\. Lower min_docum"):
        tokenize_corpus(demo_folder, backbone, tokenizer=None, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tokens_before_corpus_and_tokenizer_are_one_clear_error(demo_folder, tmp_path):
    for corpus, tokenizer, says in ((tmp_path / "none", tmp_path, "nothing there"), (demo_folder, None, "tokenizer")):
        with pytest.raises(InputError, match=says):
            tokenize_corpus(corpus, settings.Random(kind="random"), tokenizer=tokenizer, out=tmp_path / "out")
    with pytest.raises(InputError, match="260"):
        train_tokenizer(demo_folder / "train.parquet", vocabulary=259, out=tmp_path / "m")
    assert not (tmp_path / "m").exists()
