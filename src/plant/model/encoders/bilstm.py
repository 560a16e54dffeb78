"""LAAT's encoder: an LSTM in both directions (`plant.model.encoders._recurrent`)."""

from pathlib import Path

from torch import nn

from plant.ground.settings import WordNetwork
from plant.model.encoders._recurrent import build_recurrent
from plant.model.word_network import WordBackbone


def build(settings: WordNetwork, source: str | Path, *, vocabulary: int) -> WordBackbone:
    """LAAT's encoder: hidden_size / 2 units in each direction."""
    return build_recurrent(nn.LSTM, settings, source, vocabulary)
