"""A tiny classifier for the toy corpus."""

import pytest
import torch
from torch import nn

from plant.model.classifier import LabelClassifier


class Embedding(nn.Module):
    """A backbone that looks tokens up."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(200, 16)

    def forward(self, input_ids, mask):
        return self.table(input_ids) * mask[..., None]


@pytest.fixture
def make():
    """(seed) -> a classifier of 6 labels on a look-up of tokens."""

    def classifier(seed=0):
        torch.manual_seed(seed)
        return LabelClassifier(Embedding(), n_labels=6, hidden_size=16, heads=2, pool_size=4)

    return classifier
