"""Texts as token ids with character spans: what relevance and training read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant.corpus import encoders
from plant.corpus.documents import SPLITS
from plant.corpus.encoders import Pieces, SubwordEncoder, WordEncoder
from plant.corpus.report import summary
from plant.ground import settings
from plant.ground.errors import InputError
from plant.ground.files import atomic_path, is_private, require_file, write_arrays, write_json
from plant.ground.staging import owner_only, staged

log = logging.getLogger("plant")

BATCH = 256
"""Number of documents encoded at once. It limits the memory for the objects of the tokenizer."""
PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<s>", "</s>"
SMALLEST_VOCABULARY = 256 + 4


def train_tokenizer(train_parquet: Path, *, vocabulary: int, out: Path) -> None:
    """Train a byte-level BPE tokenizer on the TRAINING texts and save it as a Hugging Face folder.

    Byte-level means that no text has unknown tokens. The pad, unknown, start and end tokens have the ids 0 to 3.
    `AutoTokenizer.from_pretrained(out)` loads the folder offline. Other files in `out` stay.

    `vocabulary` is the largest number of token ids, at least 260 (256 bytes and 4 special tokens).

    Raises:
        InputError: the file is missing, or the vocabulary is too small for the bytes.
    """
    if vocabulary < SMALLEST_VOCABULARY:
        expected, fix = f"at least {SMALLEST_VOCABULARY}", "Raise it in the backbone's config."
        raise InputError("vocabulary", expected=expected, got=str(vocabulary), fix=fix)
    tokenizer = _byte_level_bpe(pl.read_parquet(require_file(train_parquet), columns=["text"])["text"], vocabulary)
    with owner_only(is_private(train_parquet)):
        with atomic_path(Path(out) / "tokenizer.json") as partial:
            tokenizer.save(str(partial))
        write_json(
            Path(out) / "tokenizer_config.json",
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "pad_token": PAD,
                "unk_token": UNKNOWN,
                "bos_token": START,
                "eos_token": END,
                "model_max_length": 1_000_000,
                "clean_up_tokenization_spaces": False,
            },
        )


def _byte_level_bpe(texts: pl.Series, vocabulary: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, UNKNOWN, START, END],
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(iter(texts), trainer, length=len(texts))
    return tokenizer


def tokenize_corpus(corpus: Path, backbone: settings.Backbone, *, tokenizer: Path | None, out: Path) -> None:
    """Write tokens.safetensors, vocabulary.parquet and statistics.json of a corpus for one backbone.

    A document is cut after its first `max_tokens` tokens. Special tokens (with the unknown token) are never stored. For
    `words`, words that are not in the training split are not stored either. Spans count characters of the text in the
    corpus, without white space at the start of a token.

    Args:
        corpus: folder of the corpus.
        backbone: `words` are lower-cased words. The other kinds have a Hugging Face tokenizer.
        tokenizer: folder of the trained tokenizer (kind random). None: `backbone.path` (kind pretrained).
        out: folder of the tokens.

    Raises:
        InputError: the corpus is missing, or the backbone has no usable tokenizer.
    """
    files = {name: require_file(Path(corpus) / f"{name}.parquet") for name in SPLITS}
    encoder = encoders.load(backbone, tokenizer)
    full, cut = [], []  # number of tokens of each document before the cut; the pieces of each split after it
    for name in SPLITS:
        parts = list(_encode(encoder, files[name], name))
        full += [piece.lengths for piece in parts]
        cut.append(_join([_cut(piece, backbone.max_tokens) for piece in parts]))
    vocabulary = encoder.vocabulary(_document_counts(cut[0], encoder.size))  # counted on the training split only
    pieces = _join(cut)
    pieces = pieces._replace(ids=vocabulary.final[pieces.ids])
    pieces = _chosen(pieces, pieces.ids >= 0)  # -1: a token that is never stored
    offsets = np.concatenate([[0], np.cumsum(pieces.lengths)]).astype(np.int64)
    lengths = np.concatenate(full)
    statistics = _statistics(lengths, pieces.lengths, backbone.max_tokens)
    if statistics["documents_cut"]:
        log.warning(
            "warning: %d of %d documents are longer than `max_tokens` (%d) and were cut: %.1f%% of all tokens are lost",
            statistics["documents_cut"], statistics["documents"], statistics["max_tokens"],
            100 * statistics["tokens_lost_by_cutting"] / lengths.sum(),
        )  # fmt: skip
    ids = np.arange(len(vocabulary.tokens), dtype=np.uint32)
    table = pl.DataFrame({"token_id": ids, "token": vocabulary.tokens, "special": vocabulary.special})
    with staged(out, private=is_private(files["train"])) as folder:
        arrays = {"input_ids": pieces.ids, "offsets": offsets, "starts": pieces.starts, "ends": pieces.ends}
        write_arrays(folder / "tokens.safetensors", arrays)
        table.write_parquet(folder / "vocabulary.parquet")
        write_json(folder / "statistics.json", statistics | {"vocabulary": len(ids)})


def _encode(encoder: WordEncoder | SubwordEncoder, file: Path, split: str) -> Iterator[Pieces]:
    texts = pl.read_parquet(file, columns=["text"])["text"]
    for start in range(0, len(texts), BATCH):
        yield encoder.encode(texts[start : start + BATCH].to_list(), training=split == "train")


def _cut(pieces: Pieces, most: int) -> Pieces:
    """The first `most` tokens of every document."""
    if pieces.lengths.max() <= most:
        return pieces
    first = np.cumsum(pieces.lengths) - pieces.lengths
    return _chosen(pieces, np.arange(len(pieces.ids)) - np.repeat(first, pieces.lengths) < most)


def _join(parts: list[Pieces]) -> Pieces:
    return Pieces(*map(np.concatenate, zip(*parts, strict=True)))


def _document_counts(pieces: Pieces, size: int) -> np.ndarray:
    """Number of documents with each provisional id, int64[size]."""
    document = np.repeat(np.arange(len(pieces.lengths), dtype=np.int64), pieces.lengths)
    pairs = np.sort(document * size + pieces.ids)  # np.unique takes 40 times as long
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return np.bincount(pairs % size, minlength=size)


def _chosen(pieces: Pieces, keep: np.ndarray) -> Pieces:
    """The tokens for which `keep` is true."""
    before = np.concatenate([[0], np.cumsum(keep)])
    edges = np.concatenate([[0], np.cumsum(pieces.lengths)])
    return Pieces(pieces.ids[keep], pieces.starts[keep], pieces.ends[keep], np.diff(before[edges]))


def _statistics(full: np.ndarray, stored: np.ndarray, most: int) -> dict[str, Any]:
    """Counts of tokens, by the number of tokens of each document before the cut and of those that are stored."""
    kept = np.minimum(full, most)
    return {
        "documents": len(full),
        "documents_cut": int((full > most).sum()),
        "documents_without_tokens": int((stored == 0).sum()),
        "tokens": int(stored.sum()),
        "tokens_lost_by_cutting": int((full - kept).sum()),
        "tokens_unknown_or_special": int((kept - stored).sum()),
        "tokens_per_document": summary(stored) | {"max": int(stored.max())},
        "max_tokens": most,
    }
