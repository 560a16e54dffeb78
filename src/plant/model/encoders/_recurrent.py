"""The recurrent networks of LAAT (LSTM) and BiGRU-LWAN (GRU), in both directions.

    h_j = [forward(x_1, ..., x_j) ; backward(x_n, ..., x_j)]

The backward direction starts at a document's last word, not at its padding. On a GPU sequences are packed. On a CPU the
gradient of a packed sequence takes time that grows with the square of its length: PyTorch makes an array of zeros as
large as the batch for every step. So there each direction reads the padded batch, the backward one with every document
reversed, and what comes out at padding is set to 0. Backward this is 3 (GRU) to 6 times (LSTM) faster.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.word_network import WordBackbone, reordered, reversed_order, word_vectors

WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # of PyTorch's networks, for each layer and direction


class Recurrent(nn.Module):
    """A bidirectional LSTM or GRU (batch first) over documents of different length."""

    def __init__(self, network: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.hidden_size = 2 * network.hidden_size
        self.recurrent = network

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, n, e) -> (B, n, h), zeros at padding."""
        return self.packed(states, mask) if states.device.type == "cuda" else self.by_direction(states, mask)

    def packed(self, states: Tensor, mask: Tensor) -> Tensor:
        """`forward` by packed sequences."""
        packed = pack_padded_sequence(states, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=mask.shape[1])[0]

    def by_direction(self, states: Tensor, mask: Tensor) -> Tensor:
        """`forward` by one pass in each direction over the padded batch."""
        order = reversed_order(mask)
        for layer in range(self.recurrent.num_layers):
            if layer:
                states = F.dropout(states, self.recurrent.dropout, self.training)
            right = self._pass(states, f"_l{layer}")  # (B, n, h / 2)
            left = reordered(self._pass(reordered(states, order), f"_l{layer}_reverse"), order)
            states = torch.cat([right, left], 2) * mask[..., None]
        return states

    def _pass(self, states: Tensor, suffix: str) -> Tensor:
        """One layer in one direction, (B, n, h / 2)."""
        weights = [getattr(self.recurrent, name + suffix) for name in WEIGHTS]
        zeros = states.new_zeros(1, len(states), self.recurrent.hidden_size)
        # with biases, one layer, no dropout, training, not bidirectional, batch first
        common = (weights, True, 1, 0.0, self.training, False, True)
        if isinstance(self.recurrent, nn.GRU):
            return torch.gru(states, zeros, *common)[0]
        return torch.lstm(states, (zeros, zeros), *common)[0]


def build_recurrent(
    kind: type[nn.LSTM] | type[nn.GRU], settings: WordNetwork, source: str | Path, vocabulary: int
) -> WordBackbone:
    """Word embedding and a network with hidden_size / 2 units in each direction."""
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
