"""How well attention over the tokens of a document finds some of them: those that people marked, or relevant ones.

Each function takes rows (a row is one label in one document, all of the same document):

- `weights`: (m, n), the score of each of n tokens, higher is better. For mass and entropy a row is a distribution;
- `marked`: (m, n) boolean, the tokens to find, at least one in a row.

All return (m,) values. Tokens with equal weights have no order: the metrics of a ranking are the mean over all orders.
So uniform attention gets what a random order gets on average.
"""

import numpy as np

from plant.metrics.arrays import Array


def mass(weights: Array, marked: Array) -> Array:
    """Sum of the weights of the marked tokens, in [0, 1]; uniform attention gives the share of marked tokens."""
    return (weights * marked).sum(axis=-1)


def entropy(weights: Array) -> Array:
    """- sum_j w_j ln w_j in nats, in [0, ln n]; 0: all weight on one token; ln n: uniform attention."""
    weights = weights.astype(np.float64)
    logs = np.log(np.where(weights > 0, weights, 1.0))
    return np.abs((weights * logs).sum(axis=-1))


def relative_entropy(weights: Array) -> Array:
    """Entropy divided by ln n, in [0, 1]; NaN for a document of one token."""
    tokens = weights.shape[-1]
    return entropy(weights) / (np.log(tokens) if tokens > 1 else np.nan)


def marked_ndcg(weights: Array, marked: Array, k: int) -> Array:
    """nDCG@k in [0, 1] with gain 1 for a marked token and discount 1 / log2(1 + rank).

    The ideal ranking has min(k, number of marked tokens) marked tokens first.

    >>> marked_ndcg(np.array([[0.7, 0.2, 0.1]]), np.array([[False, True, False]]), 2).round(3).tolist()
    [0.631]
    """
    gains = expected_gains(weights, marked)[:, :k]
    discounts = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    ideal = np.cumsum(discounts)[np.minimum(marked.sum(axis=1), gains.shape[1]) - 1]
    return gains @ discounts / ideal


def equal_length_recall(weights: Array, marked: Array) -> Array:
    """Share of the marked tokens among the first tokens of the ranking, as many as are marked, in [0, 1].

    >>> equal_length_recall(np.array([[0.7, 0.2, 0.1]]), np.array([[True, False, True]])).tolist()
    [0.5]
    """
    size = marked.sum(axis=1)
    first = np.arange(weights.shape[1]) < size[:, None]
    return (expected_gains(weights, marked) * first).sum(axis=1) / size


def expected_gains(weights: Array, marked: Array) -> Array:
    """(m, n): the probability that the token at each rank is marked, over all orders of tokens with equal weights."""
    gains = np.empty(weights.shape)
    for row in range(len(weights)):
        _, group, sizes = np.unique(-weights[row], return_inverse=True, return_counts=True)
        share = np.bincount(group, weights=marked[row]) / sizes
        gains[row] = np.repeat(share, sizes)
    return gains


def top_tokens(weights: Array, size: int) -> Array:
    """Positions of the `size` tokens with the largest weights (n,), in order of position; of equal ones the first."""
    return np.sort(np.argsort(-weights, kind="stable")[:size])
