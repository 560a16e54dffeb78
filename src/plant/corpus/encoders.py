"""Turns texts into numbered tokens: words, or the tokens of a backbone's tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.files import require_file

WORD = re.compile(r"\w\w+")
"""At least two letters, digits or underscores, as in scikit-learn, so that TF-IDF and MIG see the same words."""
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
SPACES = np.array([chr(code).isspace() for code in range(0x3001)] + [False])
"""Whether a code point is white space. Code points beyond the last entry are not."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer_config.json",
)


class Pieces(NamedTuple):
    """Tokens of some documents, one document after the other.

    Attributes:
        ids: int32[sum n_i].
        starts, ends: int32[sum n_i], character span of each token in the text of its document.
        lengths: int64[N], number of tokens of each document (n_i).
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    lengths: np.ndarray


class Vocabulary(NamedTuple):
    """Readable token by final id, and whether it is special. Final id by provisional id, int32 (-1: never stored)."""

    tokens: list[str]
    special: list[bool]
    final: np.ndarray


def load(backbone: settings.Backbone, tokenizer: Path | None) -> WordEncoder | SubwordEncoder:
    """The encoder that a backbone's settings ask for.

    Raises:
        InputError: the folder has no tokenizer, or one that cannot be loaded or gives no character spans.
    """
    if isinstance(backbone, settings.Words | settings.WordNetwork):
        return WordEncoder(backbone)
    if isinstance(backbone, settings.Random):
        from tokenizers import Tokenizer

        return SubwordEncoder(Tokenizer.from_file(str(require_file(Path(tokenizer or "") / "tokenizer.json"))))
    return SubwordEncoder(_pretrained(backbone, tokenizer))


def _pretrained(backbone: settings.Pretrained, folder: Path | None) -> Any:
    path = str(folder or backbone.path)
    fix = (
        "Name a Hugging Face hub id (organisation/name), or a folder in which model and tokenizer were saved together."
    )
    if Path(path).is_dir() and not any((Path(path) / name).is_file() for name in TOKENIZER_FILES):
        raise InputError(path, expected="a tokenizer in the backbone's folder", got="none there", fix=fix)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            path, revision=backbone.revision, trust_remote_code=backbone.trust_remote_code
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise InputError(
            path, expected="a tokenizer that transformers can load", got=unreadable(path, error), fix=fix
        ) from error
    if not tokenizer.is_fast:
        raise InputError(
            path, expected="a fast tokenizer (it gives character spans)", got=type(tokenizer).__name__,
            fix="Convert it: save the folder again with a tokenizer.json.",
        )  # fmt: skip
    return tokenizer.backend_tokenizer


def unreadable(path: str | Path, error: Exception) -> str:
    """For an error: that there is no folder, or the first line of what transformers says about it."""
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    if Path(path).is_dir():
        return said
    return f"no folder there, and from the hub: {said}" if HUB_ID.fullmatch(str(path)) else "no folder there"


class WordEncoder:
    """Numbers the lower-cased words of the training split. Other words in val and test are dropped."""

    def __init__(self, backbone: settings.Words | settings.WordNetwork, known: Sequence[str] = ()) -> None:
        self._backbone = backbone
        self._ids = {word: number for number, word in enumerate(known, 1)}

    @property
    def size(self) -> int:
        """Number of provisional ids. Every id in `Pieces` is smaller."""
        return len(self._ids) + 1

    def encode(self, texts: Sequence[str], *, training: bool) -> Pieces:
        """Encode texts. Words that are not in the training split get the id 0, which is never stored."""
        rows: list[tuple[int, int, int]] = []  # id, start and end of each word
        lengths: list[int] = []
        known = self._ids
        for text in texts:
            before = len(rows)
            for match in WORD.finditer(text):
                word = match[0].lower()
                one = known.setdefault(word, len(known) + 1) if training else known.get(word, 0)
                rows.append((one, *match.span()))
            lengths.append(len(rows) - before)
        ids, starts, ends = np.array(rows, dtype=np.int32).reshape(-1, 3).T
        return Pieces(ids, starts, ends, np.array(lengths, dtype=np.int64))

    def vocabulary(self, documents_of: np.ndarray) -> Vocabulary:
        """Final ids: the alphabetical order of the words that are frequent enough.

        `documents_of` is the number of training documents with each provisional id, int64[size].
        """
        kept = [word for word, one in self._ids.items() if documents_of[one] >= self._backbone.min_documents]
        if self._backbone.vocabulary is not None:
            kept = sorted(kept, key=lambda word: (-int(documents_of[self._ids[word]]), word))
            kept = kept[: self._backbone.vocabulary]
        if not kept:
            raise InputError(
                "words of the training split", expected=f"one in at least {self._backbone.min_documents} documents",
                got="none", fix="Lower min_documents of the backbone, or check the texts.",
            )  # fmt: skip
        kept.sort()
        final = np.full(self.size, -1, dtype=np.int32)
        final[[self._ids[word] for word in kept]] = np.arange(len(kept))
        return Vocabulary(kept, [False] * len(kept), final)


class SubwordEncoder:
    """A `tokenizers.Tokenizer`, without special tokens, padding or truncation."""

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        ids = tokenizer.get_vocab(with_added_tokens=True).values()
        self.size = max(ids, default=-1) + 1

    def encode(self, texts: Sequence[str], *, training: bool) -> Pieces:  # noqa: ARG002 (as of words)
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ids = [np.array(one.ids, dtype=np.int32) for one in encodings]
        spans = [
            _trimmed(text, np.array(one.offsets, dtype=np.int32).reshape(-1, 2))
            for text, one in zip(texts, encodings, strict=True)
        ]
        both = np.concatenate(spans) if spans else np.zeros((0, 2), dtype=np.int32)
        lengths = np.array([len(one) for one in ids], dtype=np.int64)
        return Pieces(np.concatenate(ids) if ids else np.zeros(0, np.int32), both[:, 0], both[:, 1], lengths)

    def vocabulary(self, documents_of: np.ndarray) -> Vocabulary:  # noqa: ARG002 (as of words)
        """All ids of the tokenizer. Special tokens (with the unknown token) are never stored."""
        added = self._tokenizer.get_added_tokens_decoder()
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        special = [bool(i in added and added[i].special) for i in range(self.size)]
        if unknown is not None and (one := self._tokenizer.token_to_id(unknown)) is not None:
            special[one] = True
        decoded = self._tokenizer.decode_batch([[i] for i in range(self.size)], skip_special_tokens=False)
        tokens = [
            text if text and "\ufffd" not in text else self._tokenizer.id_to_token(i) or ""
            for i, text in enumerate(decoded)
        ]
        final = np.arange(self.size, dtype=np.int32)
        final[np.array(special, dtype=bool)] = -1
        return Vocabulary(tokens, special, final)


def _trimmed(text: str, spans: np.ndarray) -> np.ndarray:
    """Spans (n, 2) without white space at the start: byte-level tokens include the space before a word."""
    if not len(spans) or not text:
        return spans
    characters = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    space = np.append(SPACES[np.minimum(characters, len(SPACES) - 1)], False)
    starts, ends = spans[:, 0].copy(), spans[:, 1]
    while (white := space[starts] & (starts < ends)).any():
        starts[white] += 1
    starts = np.where(starts == ends, spans[:, 0], starts)  # a token of white space only keeps its span
    return np.stack([starts, ends], axis=1)
