"""Label embeddings from label descriptions, in place of random ones (choice C22).

The row of a label is the mean hidden state of the tokens of its description. The backbone is not adapted and is in
evaluation mode. The mean over all described labels is subtracted, and each row is scaled to the root mean square of a
random row (.02). So a description gives the row a direction and nothing else.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from plant.corpus.encoders import load as load_encoder
from plant.corpus.reader import load_labels
from plant.ground.errors import InputError
from plant.ground.files import read_arrays, write_arrays
from plant.ground.progress import progress
from plant.model.attentions.multi_head import EMBEDDING_STD, LabelAttention
from plant.model.batches import Corpus, batches_by_tokens, pad_documents
from plant.model.transformer.backbone import Backbone, load_backbone
from plant.model.transformer.loading import NetworkBackbone

BATCH_TOKENS = 8192  # tokens that go through the backbone together


def write_label_embeddings(
    settings: NetworkBackbone, folder: str | Path, corpus: Path, *, out: Path, device: torch.device
) -> dict[str, int]:
    """Write a row of E for every label of the corpus: `embeddings` f32 (|L|, h) over the full label list.

    A label without a description has a row of zeros here, and will keep its random row (choice C10). The backbone's
    folder (or hub id) has its tokenizer too. Returns facts for the record.

    Raises:
        InputError: no label has a description, or the folder has no model or tokenizer.
    """
    texts = [text or "" for text in load_labels(corpus).descriptions]
    tokenizer = Path(folder) if Path(folder).is_dir() else None  # None: of the hub id
    pieces = load_encoder(settings, tokenizer).encode(texts, training=False)
    if not pieces.lengths.any():
        raise InputError(
            f"labels of {Path(corpus).name}", expected="descriptions, for `initialisation: descriptions`",
            got=f"{len(texts)} labels without one", fix="Use `initialisation: random`.",
        )  # fmt: skip
    ends = np.cumsum(pieces.lengths)[:-1]
    labels = Corpus.of(np.split(pieces.ids, ends), splits={})  # each label is a document, without labels of its own
    frozen = settings.model_copy(update={"adapter": "frozen"})
    backbone = load_backbone(frozen, folder, device=device).eval().place(device)
    write_arrays(out, {"embeddings": directions(mean_states(backbone, labels, device=device))})
    return {"labels": len(texts), "described": int((pieces.lengths > 0).sum())}


@torch.inference_mode()
def mean_states(backbone: Backbone, texts: Corpus, *, device: torch.device) -> np.ndarray:
    """Mean hidden state over each text's tokens, f32 (N, h); zeros for a text without a token."""
    documents = np.arange(len(texts.offsets) - 1)
    lengths = texts.length(documents)
    out = np.zeros((len(documents), backbone.hidden_size), dtype=np.float32)
    batches = batches_by_tokens(texts, documents[lengths > 0], BATCH_TOKENS)
    for batch in progress(batches, "label embeddings", total=len(batches)):
        padded = pad_documents(texts, batch, device)
        sums = backbone(padded.input_ids, padded.mask).sum(1)  # states at padding are zeros
        out[batch] = sums.cpu().numpy() / lengths[batch, None]
    return out


def directions(states: np.ndarray) -> np.ndarray:
    """Rows f32 (N, h) without their mean, each with the root mean square of a random row of E.

    A row of zeros stands for a label without a description. It stays zeros, and so does a row that equals the mean.
    """
    described = states.any(axis=1)
    rows = states[described].astype(np.float64)
    rows -= rows.mean(axis=0)
    size = np.sqrt(np.square(rows).mean(axis=1, keepdims=True))
    noise = 1e-6 * np.abs(states).max(initial=0)  # rounding: the mean of one label alone is that label
    out = np.zeros_like(states)
    out[described] = np.where(size > noise, EMBEDDING_STD * rows / np.maximum(size, noise), 0)
    return out


def start_from_descriptions(attention: LabelAttention, source: Path, labels: Sequence[int] | np.ndarray) -> int:
    """Put rows of `write_label_embeddings` into E, and return how many; labels without one keep their random row.

    `labels` are the ids in the full label list of the rows of E.

    Raises:
        InputError: the file is of another corpus or backbone.
    """
    rows = read_arrays(source)["embeddings"]
    labels = np.asarray(labels)
    if labels.max(initial=-1) >= len(rows) or rows.shape[1] != attention.embeddings.shape[1]:
        raise InputError(
            str(source), expected=f"rows of {attention.embeddings.shape[1]} for {labels.max(initial=-1) + 1} labels",
            got=f"{rows.shape[0]} rows of {rows.shape[1]}", fix="Delete it and run again.",
        )  # fmt: skip
    rows = rows[labels]
    described = rows.any(axis=1)
    with torch.no_grad():
        put = torch.from_numpy(rows[described]).to(attention.embeddings)
        attention.embeddings[torch.from_numpy(np.flatnonzero(described)).to(put.device)] = put
    return int(described.sum())
