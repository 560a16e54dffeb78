"""The convolution of CAML (Mullenbach et al. 2018, Eq. 1): one kernel over the words.

    h_j = tanh(W_c * x_{j - k/2 .. j + k/2} + b_c)

`*` is a convolution of width k with as many outputs as words: zeros stand before the first word and after the last.
"""

from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional as F

from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.word_network import WordBackbone, word_vectors


class Convolution(nn.Module):
    """One convolution and tanh."""

    def __init__(self, size: int, hidden_size: int, kernel_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.convolution = nn.Conv1d(size, hidden_size, kernel_size)
        nn.init.xavier_uniform_(self.convolution.weight)  # as in CAML's public code

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002 (padding is zeros, as beyond the text)
        """(B, n, e) -> (B, n, h)."""
        return self.convolution(widened(states.transpose(1, 2), self.convolution)).transpose(1, 2).tanh()


def widened(states: Tensor, convolution: nn.Conv1d) -> Tensor:
    """States (B, e, n) with k - 1 zeros around each document, (B, e, n + k - 1); with an even k, more at its end."""
    more = convolution.kernel_size[0] - 1
    return F.pad(states, (more // 2, more - more // 2))


def build(settings: WordNetwork, source: str | Path, *, vocabulary: int) -> WordBackbone:
    """CAML's encoder: word embedding and one convolution."""
    if len(settings.kernel_sizes) != 1:
        raise InputError(
            "backbone: kernel_sizes", expected="one width for the encoder cnn", got=str(list(settings.kernel_sizes)),
            fix="Name one, or use the encoder multi_res_cnn.",
        )  # fmt: skip
    network = Convolution(settings.embedding_size, settings.hidden_size, settings.kernel_sizes[0])
    vectors = word_vectors(settings, source, vocabulary=vocabulary)
    return WordBackbone(vectors, network, dropout=settings.dropout)
