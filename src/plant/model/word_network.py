"""What word networks share: the embedding of words, and documents as states without padding.

A word network maps the word vectors of a document to one hidden state for each word:

    x_j = dropout(E_w(t_j))    H = network(x_1, ..., x_n)

Shapes: B documents, n words of a padded document, e size of a word vector, h size of a hidden state.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from plant.ground.errors import InputError
from plant.ground.files import read_arrays
from plant.ground.settings import WordNetwork

EMBEDDING_STD = 0.1  # of random word vectors


class WordBackbone(nn.Module):
    """Word embedding, from initial word vectors (V, e), and a network with `hidden_size`.

    The network maps (states (B, n, e), mask (B, n)) to (B, n, h). `dropout` is the rate on the word vectors.
    """

    def __init__(self, vectors: Tensor, network: nn.Module, *, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False, sparse=True)  # `plant.model.row_adamw`
        self.dropout = nn.Dropout(dropout)
        self.network = network

    @property
    def hidden_size(self) -> int:
        return int(self.network.hidden_size)  # type: ignore[arg-type]

    def place(self, device: torch.device) -> "WordBackbone":
        """Move it to a device."""
        return self.to(device)

    def embed(self, words: Tensor) -> Tensor:
        """x_j of words without padding: ids (N) -> (N, e)."""
        return self.dropout(self.embedding(words))

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """H (B, n, h), zeros at padding, of ids (B, n) and the mask (B, n): all words come before all padding."""
        words = self.embed(input_ids[mask])  # of all documents, (N, e)
        states = words.new_zeros(*mask.shape, words.shape[1])  # (B, n, e), zeros at padding
        states[mask] = words
        return self.network(states, mask) * mask[..., None]


def reversed_order(mask: Tensor) -> Tensor:
    """(B, n): for each position the one that it changes places with when a document's words are reversed."""
    lengths = mask.sum(1, keepdim=True)
    position = torch.arange(mask.shape[1], device=mask.device)[None]
    return torch.where(position < lengths, lengths - 1 - position, position)


def reordered(states: Tensor, order: Tensor) -> Tensor:
    """States (B, n, h) at the positions of an order (B, n)."""
    return states.gather(1, order[..., None].expand_as(states))


def word_vectors(settings: WordNetwork, source: str | Path, *, vocabulary: int) -> Tensor:
    """Initial word vectors (V, e): from a file of `plant.model.word_vectors`, or random where the source is "".

    Raises:
        InputError: the file is of another vocabulary or size.
    """
    vectors = torch.empty(vocabulary, settings.embedding_size)
    nn.init.normal_(vectors, std=EMBEDDING_STD)
    if not source:
        return vectors
    given = read_arrays(Path(source))["vectors"]
    if given.shape != vectors.shape:
        raise InputError(
            str(source), expected=f"vectors of {vectors.shape[1]} numbers for {vectors.shape[0]} words",
            got=f"{given.shape[0]} of {given.shape[1]}", fix="Delete it and run again.",
        )  # fmt: skip
    known = torch.from_numpy(given.any(axis=1))
    vectors[known] = torch.from_numpy(given.astype("float32"))[known]
    return vectors
