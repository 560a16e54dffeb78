"""AdamW on the rows that a batch holds: PyTorch's own where every row is held, and nothing elsewhere."""

import torch
from torch import nn

from plant.model.row_adamw import RowAdamW, clip_gradients

HOW = {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.95)}


def table(sparse):
    torch.manual_seed(0)
    return nn.Embedding(6, 3, sparse=sparse, dtype=torch.float64)


def update(embedding, optimiser, ids, target):
    optimiser.zero_grad()
    (embedding(torch.tensor(ids)) - target).square().sum().backward()
    clip_gradients(embedding.parameters(), 1.0)
    optimiser.step()


def test_with_all_rows_in_every_batch_it_is_adamw_with_clipping():
    sparse, dense = table(True), table(False)
    ours, theirs = RowAdamW(sparse.parameters(), **HOW), torch.optim.AdamW(dense.parameters(), **HOW)
    for seed in range(5):
        target = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        update(sparse, ours, [0, 1, 2, 3, 4, 5, 2, 2], target)
        theirs.zero_grad()
        (dense(torch.tensor([0, 1, 2, 3, 4, 5, 2, 2])) - target).square().sum().backward()
        nn.utils.clip_grad_norm_(dense.parameters(), 1.0)
        theirs.step()
        torch.testing.assert_close(sparse.weight, dense.weight, rtol=1e-12, atol=1e-12)


def test_rows_outside_the_batch_keep_their_weights_and_moments():
    embedding = table(True)
    optimiser = RowAdamW(embedding.parameters(), **HOW)
    update(embedding, optimiser, [0, 1, 2, 3, 4, 5], 1.0)
    state = optimiser.state[embedding.weight]
    before = [part.detach().clone() for part in (embedding.weight, state["exp_avg"], state["exp_avg_sq"])]
    update(embedding, optimiser, [1, 4, 4], -1.0)
    for old, new in zip(before, (embedding.weight, state["exp_avg"], state["exp_avg_sq"]), strict=True):
        assert (old != new).any(1).tolist() == [False, True, False, False, True, False]


def test_clipping_counts_sparse_and_dense_gradients_together():
    embedding, linear = table(True), nn.Linear(3, 2, dtype=torch.float64)
    for limit in (0.5, 1e6):
        embedding.zero_grad(), linear.zero_grad()
        linear(embedding(torch.tensor([1, 3, 3]))).square().sum().backward()
        parts = [linear.weight.grad.clone(), linear.bias.grad.clone(), embedding.weight.grad.to_dense()]
        norm = torch.cat([part.flatten() for part in parts]).norm()
        clip_gradients([*embedding.parameters(), *linear.parameters()], limit)
        after = [linear.weight.grad, linear.bias.grad, embedding.weight.grad.to_dense()]
        for one, two in zip(parts, after, strict=True):
            torch.testing.assert_close(two, one * min(1.0, limit / norm), rtol=1e-5, atol=1e-12)
