"""Initial word vectors: trained on the training split by word2vec, or taken from the user's file.

The written file holds a row for every word of the corpus's vocabulary. A word that the user's file lacks has a row of
zeros here and starts from a random vector (`plant.model.word_network`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plant.corpus.reader import Tokens, load_labels, load_tokens
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, require_file, write_arrays
from plant.ground.settings import WordNetwork


def write_word_vectors(settings: WordNetwork, corpus: Path, tokens: Path, *, out: Path) -> dict[str, int]:
    """Write `vectors`, f32 (V, e), in the order of the vocabulary, and return facts for the record.

    Raises:
        InputError: gensim is not installed, or the file is missing, has no such form, or vectors of another size.
    """
    read = load_tokens(tokens)
    if settings.word_vectors == "trained":
        vectors = train(settings, read, load_labels(corpus).rows("train"))
    else:
        vectors = from_file(Path(str(settings.word_vectors)), read.vocabulary, settings.embedding_size)
    write_arrays(out, {"vectors": vectors})
    return {"words": len(vectors), "with_vectors": int(vectors.any(axis=1).sum())}


@dataclass
class _Sentences:
    """Training documents as lists of words (their ids as text); gensim goes through them several times."""

    tokens: Tokens
    documents: slice

    def __iter__(self) -> Iterator[list[str]]:
        for document in range(self.documents.start, self.documents.stop):
            yield [str(token) for token in self.tokens.row(document)]


def train(settings: WordNetwork, tokens: Tokens, documents: slice) -> np.ndarray:
    """word2vec (Mikolov et al. 2013) by gensim, in one thread: the same seed gives the same bits."""
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise InputError(
            "word_vectors: trained", expected="the package gensim", got="none",
            fix="Install the extra `word_vectors`, or name a file of vectors.",
        ) from error  # fmt: skip
    how = settings.word2vec
    model = Word2Vec(
        _Sentences(tokens, documents), vector_size=settings.embedding_size, window=how.window, epochs=how.epochs,
        sg=int(how.skip_gram), seed=how.seed, min_count=1, workers=1,
    )  # fmt: skip
    vectors = np.zeros((len(tokens.vocabulary), settings.embedding_size), dtype=np.float32)
    vectors[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    return vectors


def from_file(source: Path, vocabulary: Sequence[str], size: int) -> np.ndarray:
    """Rows of the vocabulary's words from a user's file; zeros for words that it lacks.

    Args:
        source: `*.safetensors` with `vectors` (n, e) and `words` (bytes of UTF-8, one word per line), or a text file in
            word2vec's format: an optional first line with n and e, then a word and its e numbers on each line.
        vocabulary: words by token id.
        size: e.

    Raises:
        InputError: the file is missing, is of another form, encoding or size, or has none of the words.
    """
    require_file(source)
    if source.suffix == ".safetensors":
        arrays = read_arrays(source)
        vectors, words = arrays.get("vectors", np.zeros((0, 0))), arrays.get("words", np.zeros(0, np.uint8))
        rows = rows_of(source, vocabulary, words, len(vectors), "vectors")
    else:
        try:
            names, vectors = _text(source, set(vocabulary), size)
        except UnicodeDecodeError as error:
            raise _other_encoding(source) from error
        rows = _rows_by_name(source, vocabulary, names)
    if vectors.shape[1] != size:
        raise _other_size(str(source), size, vectors.shape[1])
    out = np.zeros((len(vocabulary), size), dtype=np.float32)
    out[rows >= 0] = vectors[rows[rows >= 0]]
    return out


def rows_of(source: Path, vocabulary: Sequence[str], words: np.ndarray, n: int, what: str) -> np.ndarray:
    """The row of each word of a vocabulary in a file of words and vectors; -1 for words that it lacks.

    The file's `words` are bytes of UTF-8, one word per line. It has `n` vectors, which are called `what`.

    Raises:
        InputError: the words are in another encoding, not as many as the vectors, or in another language.
    """
    try:
        names = bytes(words).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise _other_encoding(source) from error
    if len(names) != n:
        raise InputError(
            str(source), expected=f"`words` (UTF-8, n lines) and `{what}` (n, e)",
            got=f"{len(names)} words and {n} vectors", fix="Write both into the file.",
        )  # fmt: skip
    return _rows_by_name(source, vocabulary, names)


def _rows_by_name(source: Path, vocabulary: Sequence[str], names: Sequence[str]) -> np.ndarray:
    row_of = {word: row for row, word in enumerate(names)}
    rows = np.array([row_of.get(word, -1) for word in vocabulary])
    if (rows < 0).all():
        raise InputError(
            str(source), expected="words of this corpus, in lower case", got="none of them",
            fix="Check the language and the form of the file.",
        )  # fmt: skip
    return rows


def _other_encoding(source: Path) -> InputError:
    return InputError(str(source), expected="words in UTF-8", got="another encoding", fix="Save it as UTF-8.")


def _text(source: Path, wanted: set[str], size: int) -> tuple[list[str], np.ndarray]:
    """Only the words that are wanted are kept: such files have millions."""
    words, rows = [], []
    with source.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{source}, line {number}"
            word, *values = line.rstrip().split(" ")
            if number == 1 and len(values) == 1:
                continue  # n and e
            if len(values) != size:
                raise _other_size(where, size, len(values))
            if word not in wanted:
                continue
            try:
                rows.append(np.array(values, dtype=np.float32))
            except ValueError as error:
                expected = f"a word and {size} numbers"
                raise InputError(where, expected=expected, got=str(error), fix="Correct the line.") from error
            words.append(word)
    return words, np.array(rows, dtype=np.float32).reshape(-1, size)


def _other_size(where: str, size: int, got: int) -> InputError:
    return InputError(
        where, expected=f"word vectors of {size} numbers", got=str(got),
        fix="Set embedding_size of the backbone to the size of the vectors, or name another file.",
    )  # fmt: skip
