"""Which tokens occur in a label's description: relevance without any count of labels (choice C28).

A description is read as it is printed and in lower case, each after a space, and the tokens of both count: documents
write a word both ways, and byte-level tokenizers give the first word of a text another token than the same word
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plant.corpus.encoders import WORD
from plant.corpus.encoders import load as load_encoder
from plant.corpus.reader import Labels
from plant.ground.errors import InputError
from plant.ground.settings import Backbone, WordNetwork, Words


def described_tokens(
    labels: Labels, words: Sequence[str], backbone: Backbone, tokenizer: Path | None
) -> tuple[np.ndarray, ...]:
    """Distinct token ids of each label's description, ascending; none for a label without a description.

    Args:
        labels: with their descriptions.
        words: token strings by id.
        backbone: settings of the backbone whose tokens are meant.
        tokenizer: folder of the trained tokenizer (kind random); None: of the backbone itself.

    Raises:
        InputError: no label has a description, or the backbone has no usable tokenizer.
    """
    texts = [text or "" for text in labels.descriptions]
    if not any(texts):
        raise InputError(
            f"labels of {labels.folder.name}", expected="descriptions, for `measure: description`",
            got=f"{len(texts)} labels without one", fix="Use another measure.",
        )  # fmt: skip
    if isinstance(backbone, Words | WordNetwork):
        ids = {word: i for i, word in enumerate(words)}
        said = [{match[0].lower() for match in WORD.finditer(text)} for text in texts]
        return tuple(np.array(sorted(ids[word] for word in some if word in ids), dtype=np.int64) for some in said)
    encoder = load_encoder(backbone, tokenizer)
    ways = [f" {way}" if way else "" for text in texts for way in (text, text.lower())]
    pieces = encoder.encode(ways, training=False)
    parts = np.split(pieces.ids.astype(np.int64), np.cumsum(pieces.lengths)[1::2])
    return tuple(np.unique(part) for part in parts[: len(texts)])
