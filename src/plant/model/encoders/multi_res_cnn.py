"""The encoder of MultiResCNN (Li and Yu 2020, Eqs. 1 to 4): convolutions of several widths, each with residual blocks.

For each width k, with X the word vectors of a document (`*_k` is a convolution of width k, `*_1` one of width 1):

    F = tanh(X *_k W + b)                                        multi-filter layer, e numbers for each word
    R_1 = tanh(F *_k W_1)    R_2 = R_1 *_k W_2    R_3 = F *_1 W_3    F' = tanh(R_2 + R_3)    residual block

The hidden state of a word is the outputs of all widths, side by side. The public code adds batch normalisation after
every convolution of a block, whose statistics include the padding; the equations have none, and neither has this file.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.encoders.cnn import widened
from plant.model.word_network import WordBackbone, word_vectors


class ResidualBlock(nn.Module):
    """Two convolutions of one width, and a shortcut around them."""

    def __init__(self, size: int, filters: int, kernel_size: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(size, filters, kernel_size, bias=False)
        self.second = nn.Conv1d(filters, filters, kernel_size, bias=False)
        self.shortcut = nn.Conv1d(size, filters, 1, bias=False)

    def forward(self, states: Tensor, inside: Tensor) -> Tensor:
        """(B, size, n) -> (B, filters, n); `inside` (B, 1, n) keeps padding at 0 between convolutions."""
        inner = self.first(widened(states, self.first)).tanh() * inside
        return (self.second(widened(inner, self.second)) + self.shortcut(states)).tanh() * inside


class MultiResidual(nn.Module):
    """All widths side by side. Each gives h / (number of widths) numbers, through `blocks` residual blocks."""

    def __init__(self, size: int, hidden_size: int, kernel_sizes: tuple[int, ...], blocks: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        filters = hidden_size // len(kernel_sizes)
        self.filters = nn.ModuleList(nn.Conv1d(size, size, k) for k in kernel_sizes)
        for convolution in self.filters:
            nn.init.xavier_uniform_(convolution.weight)  # type: ignore[arg-type] # as in the public code
        self.blocks = nn.ModuleList(
            nn.ModuleList(ResidualBlock(filters if block else size, filters, k) for block in range(blocks))
            for k in kernel_sizes
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, n, e) -> (B, n, h)."""
        states, inside = states.transpose(1, 2), mask[:, None, :]  # (B, e, n), (B, 1, n)
        channels = []
        for convolution, blocks in zip(self.filters, self.blocks, strict=True):
            channel = convolution(widened(states, convolution)).tanh() * inside  # type: ignore[arg-type] # (B, e, n)
            for block in blocks:  # type: ignore[attr-defined]
                channel = block(channel, inside)  # (B, h / widths, n)
            channels.append(channel)
        return torch.cat(channels, 1).transpose(1, 2)


def build(settings: WordNetwork, source: str | Path, *, vocabulary: int) -> WordBackbone:
    """MultiResCNN's encoder: word embedding and residual convolutions."""
    if settings.hidden_size % len(settings.kernel_sizes):
        raise InputError(
            "backbone: hidden_size", expected=f"a multiple of {len(settings.kernel_sizes)}, the number of kernel_sizes",
            got=str(settings.hidden_size), fix="Change one of them.",
        )  # fmt: skip
    network = MultiResidual(settings.embedding_size, settings.hidden_size, settings.kernel_sizes, settings.layers)
    vectors = word_vectors(settings, source, vocabulary=vocabulary)
    return WordBackbone(vectors, network, dropout=settings.dropout)
