"""The recurrent networks of LAAT (LSTM) and BiGRU-LWAN (GRU), in both directions.

    h_j = [forward(x_1, ..., x_j) ; backward(x_n, ..., x_j)]

Sequences are packed: padding is no step of the network, and the backward direction starts at a document's last word.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.encoders.words import WordBackbone, word_vectors


class Recurrent(nn.Module):
    """An LSTM or a GRU over documents of different length.

    Args:
        network: bidirectional, batch first.
    """

    def __init__(self, network: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.hidden_size = 2 * network.hidden_size
        self.recurrent = network

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, n, e) -> (B, n, h), zeros at padding."""
        packed = pack_padded_sequence(states, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=mask.shape[1])[0]


def lstm(settings: WordNetwork, source: str | Path, *, vocabulary: int, device: torch.device) -> WordBackbone:  # noqa: ARG001
    """LAAT's encoder: hidden_size / 2 units in each direction."""
    return _backbone(nn.LSTM, settings, source, vocabulary)


def gru(settings: WordNetwork, source: str | Path, *, vocabulary: int, device: torch.device) -> WordBackbone:  # noqa: ARG001
    """BiGRU-LWAN's encoder: hidden_size / 2 units in each direction."""
    return _backbone(nn.GRU, settings, source, vocabulary)


def _backbone(
    kind: type[nn.LSTM] | type[nn.GRU], settings: WordNetwork, source: str | Path, vocabulary: int
) -> WordBackbone:
    if settings.hidden_size % 2:
        raise InputError(
            "backbone: hidden_size", expected="an even number, one half for each direction",
            got=str(settings.hidden_size), fix="Change it.",
        )  # fmt: skip
    between = settings.dropout if settings.layers > 1 else 0.0  # PyTorch warns of a rate that is not used
    network = kind(
        settings.embedding_size, settings.hidden_size // 2, settings.layers, batch_first=True, bidirectional=True,
        dropout=between,
    )  # fmt: skip
    vectors = word_vectors(settings, source, vocabulary=vocabulary)
    return WordBackbone(vectors, Recurrent(network), dropout=settings.dropout)
