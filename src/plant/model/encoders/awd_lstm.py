"""The AWD-LSTM of Merity et al. 2017, as the earlier version of the paper uses it (A.3, Eq. 4).

    h_j = AWD-LSTM(x_1, ..., x_j)

Three LSTM layers; the last one has the size of a word vector, so that a language model can share its weights with the
embedding. The recurrent weights drop out (DropConnect), and so do whole words, word vectors and the states between
layers. All tokens of a document have the same dropout mask; weights and words have one mask for the whole batch.

A document passes in segments of `bptt` tokens. The states are carried from one segment to the next without a gradient,
so the memory that the gradient needs in a layer is that of a segment. With `backward: true` the network reads from the
last token to the first.
"""

from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plant.ground.errors import InputError
from plant.ground.settings import WordNetwork
from plant.model.word_network import WordBackbone, reordered, reversed_order, word_vectors

SEGMENT = 72
"""Tokens of a segment (A.6: BPTT of 72 for the classifier)."""


class LSTMLayer(nn.Module):
    """One LSTM layer; `dropout` is the share of its recurrent weights that are 0 in a training step."""

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        bound = hidden**-0.5  # as nn.LSTM
        self.w_x = nn.Parameter(torch.empty(4 * hidden, inputs).uniform_(-bound, bound))
        self.w_h = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))
        self.b_x = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))
        self.b_h = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))

    def recurrent_weights(self) -> Tensor:
        """W_h with its dropout: drawn once for a batch, the same for all its segments."""
        return F.dropout(self.w_h, self.dropout, self.training)

    def forward(
        self, states: Tensor, carried: tuple[Tensor, Tensor], w_h: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x (B, n, e) and the carried (h, c), each (1, B, h) -> h (B, n, h) and the next (h, c)."""
        weights = [self.w_x, w_h, self.b_x, self.b_h]
        out, h, c = torch.lstm(states, carried, weights, True, 1, 0.0, self.training, False, True)
        return out, (h, c)


class AwdLstm(nn.Module):
    """Layers of `LSTMLayer`, read in segments.

    The last one has the size e of the word vectors, the others the size `hidden`. `dropouts` has the rates `input`,
    `hidden` and `weight` of `build`.
    """

    def __init__(
        self, size: int, hidden: int, layers: int, *, segment: int, dropouts: dict[str, float], backward: bool
    ) -> None:
        super().__init__()
        self.hidden_size, self.segment, self.backward_reading = size, segment, backward
        self.dropouts = dropouts
        sizes = [size, *[hidden] * (layers - 1), size]
        self.layers = nn.ModuleList(
            LSTMLayer(inputs, outputs, dropouts["weight"]) for inputs, outputs in pairwise(sizes)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """X (B, n, e), mask (B, n) -> H (B, n, e); the values at padding have no meaning."""
        order = reversed_order(mask) if self.backward_reading else None
        if order is not None:
            states = reordered(states, order)
        states = _dropped(states, self.dropouts["input"], self.training)
        for depth, layer in enumerate(self.layers):
            states = self._layer(layer, states)  # type: ignore[arg-type]
            if depth + 1 < len(self.layers):
                states = _dropped(states, self.dropouts["hidden"], self.training)
        return states if order is None else reordered(states, order)  # the order is its own inverse

    def _layer(self, layer: LSTMLayer, states: Tensor) -> Tensor:
        zeros = states.new_zeros(1, len(states), layer.hidden)
        carried, w_h, parts = (zeros, zeros), layer.recurrent_weights(), []
        for part in states.split(self.segment, dim=1):
            out, (h, c) = layer(part, carried, w_h)
            carried = (h.detach(), c.detach())
            parts.append(out)
        return torch.cat(parts, dim=1)


class AwdLstmBackbone(WordBackbone):
    """Word embedding and AWD-LSTM; in training, whole words drop out of the embedding."""

    def __init__(self, vectors: Tensor, network: AwdLstm, *, dropout: float) -> None:
        super().__init__(vectors, network, dropout=0.0)
        self.word_dropout = dropout

    def embed(self, words: Tensor) -> Tensor:
        """x_j of words without padding: ids (N) -> (N, e)."""
        states = self.embedding(words)
        if not self.training or not self.word_dropout:
            return states
        kept = F.dropout(states.new_ones(len(self.embedding.weight), 1), self.word_dropout)  # one draw for each word
        return states * kept[words]

    @property
    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Parameters by layer, the last layer first, the embedding last: the order of gradual unfreezing."""
        network = [list(layer.parameters()) for layer in reversed(self.network.layers)]  # type: ignore[arg-type]
        return [*network, list(self.embedding.parameters())]


def _dropped(states: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of (B, n, h) with one mask for all tokens of a document."""
    if not training or not rate:
        return states
    return states * F.dropout(states.new_ones(states.shape[0], 1, states.shape[2]), rate)


def _require(holds: bool, option: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError(f"backbone: options.{option}", expected=expected, got=repr(value), fix="Change it.")


def build(
    settings: WordNetwork,
    source: str | Path,
    *,
    vocabulary: int,
    language_model: str | Path = "",
    segment: int = SEGMENT,
    backward: bool = False,
    frozen: bool = False,
    input_dropout: float | None = None,
    hidden_dropout: float | None = None,
    weight_dropout: float | None = None,
    word_dropout: float | None = None,
) -> AwdLstmBackbone:
    """The encoder, from a language model or from word vectors.

    Args:
        settings: of the backbone; `dropout` is the default of the first three rates, and half of it of the last.
        source: file of word vectors, or "".
        vocabulary: V.
        language_model: file of a language model (`plant.model.language_model`), or "".
        segment: tokens between two cuts of the gradient.
        backward: read from the last token to the first.
        frozen: train nothing of it.
        input_dropout, hidden_dropout, weight_dropout, word_dropout: of the word vectors, of the states between layers,
            of the recurrent weights, and of whole words.

    Raises:
        InputError: a value of an option that it cannot have.
    """
    from plant.model.language_model import load_language_model

    rates = {"input": input_dropout, "hidden": hidden_dropout, "weight": weight_dropout}
    for name, rate in {**rates, "word": word_dropout}.items():
        holds = rate is None or (type(rate) in (int, float) and 0 <= rate < 1)  # True is no rate
        _require(holds, f"{name}_dropout", rate, "a rate from 0 to below 1")
    _require(type(segment) is int and segment > 0, "segment", segment, "a number of tokens")
    for name, switch in {"backward": backward, "frozen": frozen}.items():
        _require(isinstance(switch, bool), name, switch, "true or false, without quotes")
    network = AwdLstm(
        settings.embedding_size, settings.hidden_size, settings.layers, segment=segment, backward=backward,
        dropouts={name: settings.dropout if rate is None else rate for name, rate in rates.items()},
    )  # fmt: skip
    vectors = word_vectors(settings, source, vocabulary=vocabulary)
    rate = settings.dropout / 2 if word_dropout is None else word_dropout
    backbone = AwdLstmBackbone(vectors, network, dropout=rate)
    if language_model:
        load_language_model(backbone, Path(language_model))
    if frozen:
        backbone.requires_grad_(False)
    return backbone
