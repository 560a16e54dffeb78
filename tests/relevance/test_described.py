"""Descriptions as relevance: against sets and logarithms by hand, for words and for a byte-level tokenizer."""

import math

import polars as pl
import pytest

from plant.corpus.tokens import tokenize_corpus, train_tokenizer
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.ground.settings import Random, Relevance, Words
from plant.relevance.table import write_relevance

TEXTS = [
    "Acute heart failure with oedema.", "fracture of the left femur", "the heart is enlarged", "acute renal failure",
    "renal colic and the left kidney", "no acute disease of the heart", "left femur, displaced fracture",
    "oedema of the lung",
]  # fmt: skip
LABELS = [["I50"], ["S72"], ["I50"], ["N17"], ["N17"], ["I50", "Z00"], ["S72"], ["I50"]]
DESCRIPTIONS = {"I50": "Heart failure", "N17": "Acute renal failure, unspecified", "S72": None, "Z00": "",
                "X99": "Heart"}  # fmt: skip
WORDS = Words(kind="words")
LLAMA = Random(kind="random", vocabulary=300)


@pytest.fixture
def corpus(table_corpus, tmp_path):
    """Eight training documents, one each for val and test; X99 has no training document."""
    titles = {"label": list(DESCRIPTIONS), "description": list(DESCRIPTIONS.values())}
    pl.DataFrame(titles).write_csv(tmp_path / "titles.csv")
    splits = {"train": zip(TEXTS, LABELS, strict=True), "val": [("heart", ["X99"])]}
    splits["test"] = [("renal unspecified", ["N17"])]
    made = {
        split: [{"id": f"{split}{i}", "text": text, "labels": labels} for i, (text, labels) in enumerate(rows)]
        for split, rows in splits.items()
    }
    return table_corpus(made, tmp_path / "corpus", descriptions=str(tmp_path / "titles.csv"))


def make(corpus, backbone, tokenizer=None, **settings):
    tokenize_corpus(corpus, backbone, tokenizer=tokenizer, out=corpus / "tokens")
    write_relevance(
        corpus, corpus / "tokens", "description", Relevance(**({"k": 5} | settings)),
        parquet=corpus / "description.parquet", arrays=corpus / "description.safetensors", backbone=backbone,
        tokenizer=tokenizer,
    )  # fmt: skip
    return pl.read_parquet(corpus / "description.parquet")


def words_of(text):
    return {word.strip(".,").lower() for word in text.split()}


def test_relevance_is_the_inverse_document_frequency_of_the_descriptions_words(corpus):
    table = make(corpus, WORDS)
    documents = [words_of(text) for text in TEXTS]
    expected = {}
    for label in ("I50", "N17"):
        said = {word for word in words_of(DESCRIPTIONS[label]) if any(word in some for some in documents)}
        idf = {word: math.log(8 / sum(word in some for some in documents)) for word in said}
        expected[label] = {word: value / max(idf.values()) for word, value in idf.items()}
    said = table.filter(pl.col("relevance") > 0)
    found = {label: dict(said.filter(label=label).select("token", "relevance").iter_rows()) for label in expected}
    assert found == {label: pytest.approx(values, abs=1e-6) for label, values in expected.items()}
    assert set(found["N17"]) == {"acute", "renal", "failure"}  # `unspecified` is in no training document
    assert set(table["label"]) == {"I50", "N17"}  # no description, an empty one, no training document


def test_the_most_frequent_other_words_fill_up_with_relevance_0(corpus):
    table = make(corpus, WORDS, k=4)
    documents = [words_of(text) for text in TEXTS]
    everything = {word: sum(word in some for some in documents) for word in set().union(*documents)}
    for label in ("I50", "N17"):
        fill = set(table.filter(label=label, relevance=0)["token"])
        rest = sorted((-n, word) for word, n in everything.items() if word not in words_of(DESCRIPTIONS[label]))
        assert fill == {word for _, word in rest[: len(fill)]}
        assert len(fill) == (2 if label == "I50" else 1)


def test_the_rarest_words_are_kept_and_too_rare_ones_may_be_left_out(corpus):
    full, short = make(corpus, WORDS), make(corpus, WORDS, k=1)
    assert short.select("label", "token").rows() == full.filter(rank=1).select("label", "token").rows()
    frequent = make(corpus, WORDS, min_documents=3, k=2)
    assert set(frequent.filter(pl.col("relevance") > 0)["token"]) == {"heart", "acute"}


def test_tokens_of_a_backbone_are_those_that_documents_have_for_the_words_in_both_cases(corpus):
    train_tokenizer(corpus / "train.parquet", vocabulary=300, out=corpus / "tokenizer")
    table = make(corpus, LLAMA, corpus / "tokenizer", k=20)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(corpus / "tokenizer/tokenizer.json"))

    def ids(text):
        return set(tokenizer.encode(text, add_special_tokens=False).ids)

    known = set().union(*(ids(text) for text in TEXTS))
    for label in ("I50", "N17"):
        said = (ids(DESCRIPTIONS[label]) | ids(DESCRIPTIONS[label].lower())) & known
        said = {token for token in said if not all(token in ids(text) for text in TEXTS)}
        assert set(table.filter(pl.col("relevance") > 0, label=label)["token_id"]) == said
        assert ids("the heart" if label == "I50" else "renal") & said
    assert set(table["label"]) == {"I50", "N17"}


def test_no_count_of_labels_enters(corpus):
    before = make(corpus, WORDS).select("label", "token_id", "relevance")
    arrays = read_arrays(corpus / "labels.safetensors")
    indices = arrays["indices"].copy()
    indices[[0, 1]] = indices[[1, 0]]  # the first two documents change their labels
    write_arrays(corpus / "labels.safetensors", arrays | {"indices": indices})
    assert make(corpus, WORDS).select("label", "token_id", "relevance").equals(before)


def test_labels_without_any_description_and_a_missing_backbone_are_clear_errors(corpus):
    make(corpus, WORDS)
    with pytest.raises(InputError, match="measure: description: expected a backbone"):
        write_relevance(corpus, corpus / "tokens", "description", Relevance(k=5), parquet=corpus / "a.parquet",
                        arrays=corpus / "a.safetensors")  # fmt: skip
    table = pl.read_parquet(corpus / "labels.parquet").with_columns(description=pl.lit(None, pl.String))
    table.write_parquet(corpus / "labels.parquet")
    with pytest.raises(InputError, match="5 labels without one"):
        make(corpus, WORDS)
