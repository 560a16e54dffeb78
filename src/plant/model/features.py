"""Hidden states of a frozen backbone, computed once and read as a memory map."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from plant.ground.errors import InputError
from plant.ground.files import atomic_path, read_arrays
from plant.ground.progress import progress
from plant.model.batches import Corpus, batches_by_tokens, pad_documents
from plant.model.transformer.backbone import Backbone

BATCH_TOKENS = 8192  # tokens that go through the backbone together


def write_features(backbone: Backbone, corpus: Corpus, out: Path, *, device: torch.device, threads: int = 1) -> None:
    """Write fp16 hidden states of every token of every document as one safetensors file.

    The file is filled through a memory map: the array may be larger than memory. On a CPU several batches are computed
    at once, each by as many threads as torch is set to, and by `threads` together: the bits do not depend on how many
    run. (They do depend, a little, on the threads of one batch.)
    """
    backbone.eval().place(device)
    total, h = int(corpus.offsets[-1]), backbone.hidden_size
    documents = np.arange(len(corpus.offsets) - 1)
    documents = documents[corpus.length(documents) > 0]
    with atomic_path(out) as partial:
        start = _write_header(partial, total, h)
        features = np.memmap(partial, dtype=np.float16, mode="r+", offset=start, shape=(total, h))
        batches = batches_by_tokens(corpus, documents, BATCH_TOKENS)

        def fill(batch: np.ndarray) -> None:
            with torch.inference_mode():
                padded = pad_documents(corpus, batch, device)
                states = backbone(padded.input_ids, padded.mask).half().cpu().numpy()
            for row, document in enumerate(batch):
                first, last = corpus.offsets[document], corpus.offsets[document + 1]
                features[first:last] = states[row, : last - first]

        at_once = max(1, threads // torch.get_num_threads()) if device.type == "cpu" else 1
        with ThreadPoolExecutor(at_once) as pool:
            for _ in progress(pool.map(fill, batches), "features", total=len(batches)):
                pass
        features.flush()


def read_features(source: Path) -> np.ndarray:
    """The features as a memory map, fp16 (sum of lengths, h)."""
    features = read_arrays(source).get("features")
    if features is None or features.dtype != np.float16:
        raise InputError(
            str(source), expected="one fp16 array named `features`", got="another safetensors file",
            fix="Delete it and run again.",
        )  # fmt: skip
    return features


def _write_header(path: Path, rows: int, columns: int) -> int:
    """Header of a safetensors file and room for its data; returns where the data starts."""
    size = rows * columns * 2
    header = json.dumps({"features": {"dtype": "F16", "shape": [rows, columns], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as handle:
        handle.write(len(header).to_bytes(8, "little") + header)
        handle.flush()
        # the room is taken now: a mapped file on a disk that is full would end the process without a word
        os.posix_fallocate(handle.fileno(), 0, 8 + len(header) + size)
    return 8 + len(header)
