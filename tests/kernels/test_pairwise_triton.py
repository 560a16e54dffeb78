"""The Triton kernel against the float64 loop: on a GPU where there is one, else by Triton's interpreter on the CPU.

Triton is no part of the CPU environment (on Linux it comes with the CUDA build of PyTorch): without it most of these
are skipped.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from plant.pretraining import ranking_loss
from plant.pretraining.ranking_loss import pairwise_loss

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # must be set before Triton is imported for the first time
GPU = torch.cuda.is_available() and not INTERPRETED
DEVICE = "cuda" if GPU else "cpu"
TOLERANCE = 1e-5


@pytest.fixture
def fused(monkeypatch):
    """Loss and gradient by the kernel."""
    if not find_spec("triton"):
        pytest.skip("Triton is not installed")
    if not GPU and not INTERPRETED:
        pytest.skip("no GPU: run by test_tritons_interpreter_agrees, in a process of its own")

    def compute(*arguments):
        with monkeypatch.context() as patched:
            patched.setattr(ranking_loss, "_has_gpu_kernel", lambda _: True)
            return ranking_loss._loss_and_gradient(*arguments)

    return compute


@pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed")
@pytest.mark.skipif(INTERPRETED, reason="this is that process")
def test_tritons_interpreter_agrees():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) > 50


@pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed")
@pytest.mark.skipif(INTERPRETED, reason="the interpreter does not compile")
def test_the_kernel_compiles_for_a_gpu_that_is_not_here():
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from plant.kernels import pairwise_triton as module

    arrays = dict.fromkeys(("scores", "gain", "discount", "losses", "pulls"), "*fp32")
    constants = {"TILE_J": module.TILE_J, "TILE_H": module.TILE_H, "LOG1P": module.LOG1P}
    signature = arrays | {"sizes": "*i32", "t": "i32", "sigma": "fp32"} | dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in module._kernel.arg_names}
    source = ASTSource(module._kernel, signature=ordered, constexprs=constants)
    kernel = compiled(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": module.WARPS})
    assert len(kernel.asm["cubin"]) > 0
    loop = kernel.asm["ptx"]
    assert loop.count("ex2.approx") == module.TILE_J * module.TILE_H // (32 * module.WARPS)  # one a pair
    assert "st.local" not in loop and "lg2" not in loop


def lists(seed, t, *, n=3, spread=3.0):
    """float32 scores and relevances; some positions outside, many equal relevances, some equal scores."""
    random = np.random.default_rng(seed)
    scores = random.normal(0, spread, (n, t)).astype(np.float32)
    scores[:, 1::7] = scores[:, :1]
    relevance = random.random((n, t)).astype(np.float32)
    relevance[relevance < 0.6] = np.round(relevance[relevance < 0.6] * 20) / 20
    relevance[random.random((n, t)) < 0.2] = -1
    return torch.from_numpy(scores).to(DEVICE), torch.from_numpy(relevance).to(DEVICE)


def assert_close(fused, scores, relevance, *, k, sigma=1.0, gain="exponential"):
    losses, gradient = fused(scores, relevance, k, sigma, gain)
    exact = scores.cpu().double().requires_grad_()
    expected = pairwise_loss(exact, relevance.cpu().double(), k=k, sigma=sigma, gain=gain)
    (slope,) = torch.autograd.grad(expected.sum(), exact)
    torch.testing.assert_close(losses.cpu().double(), expected.detach(), rtol=TOLERANCE, atol=1e-35)
    largest = slope.abs().amax(1, keepdim=True)
    assert ((gradient.cpu() - slope).abs() <= TOLERANCE * largest + 1e-35).all()


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("k", [1, 7, 1000])
@pytest.mark.parametrize("t", [1, 2, 16, 17, 63, 64, 65, 200])
def test_loss_and_gradient_are_those_of_float64(fused, t, k, gain):
    assert_close(fused, *lists(t, t), k=k, sigma=1.3, gain=gain)


@pytest.mark.parametrize("spread", [1e-6, 1e2, 1e5, 1e20])
def test_any_spread_of_scores_is_in_range(fused, spread):
    assert_close(fused, *lists(0, 70, spread=spread), k=1000)


def test_small_relevance_keeps_its_gain(fused):
    scores, relevance = lists(2, 40)
    assert_close(fused, scores, torch.where(relevance > 0, relevance * 1e-6, relevance), k=9)


def test_a_list_with_a_score_that_is_not_finite_is_seen_and_spoils_no_other(fused):
    scores, relevance = lists(1, 40)
    good = fused(scores, relevance, 9, 1.0, "linear")
    scores[1, 5], relevance[1, 5] = torch.nan, 0.5
    losses, gradient = fused(scores, relevance, 9, 1.0, "linear")
    assert losses[1].isnan() and gradient[1].isnan().any()
    for row in (0, 2):
        assert (losses[row] == good[0][row]) and (gradient[row] == good[1][row]).all()


@pytest.mark.parametrize("relevance", [[-1.0] * 3, [0.5] * 3, [0.0] * 3, [0.7, -1.0, -1.0]])
def test_a_list_without_a_pair_costs_nothing_and_pulls_nothing(fused, relevance):
    given = torch.tensor([[1.0, 2.0, 3.0]], device=DEVICE), torch.tensor([relevance], device=DEVICE)
    losses, gradient = fused(*given, 10, 1.0, "exponential")
    assert (losses.tolist(), gradient.tolist()) == ([0.0], [[0.0] * 3])


def test_no_lists_are_no_work(fused):
    losses, gradient = fused(*(torch.zeros(0, 5, device=DEVICE),) * 2, 10, 1.0, "linear")
    assert (losses.shape, gradient.shape) == ((0,), (0, 5))


def test_leading_dimensions_and_lower_precision_come_back_as_they_were(fused):
    scores, relevance = lists(2, 30, n=4)
    losses, gradient = fused(scores.bfloat16().view(2, 2, 30), relevance.view(2, 2, 30), 9, 1.0, "linear")
    expected = fused(scores.bfloat16().float(), relevance, 9, 1.0, "linear")
    assert (losses.shape, gradient.shape, losses.dtype) == ((2, 2), (2, 2, 30), torch.bfloat16)
    assert (losses.flatten() == expected[0].bfloat16()).all()
    assert (gradient.view(4, 30) == expected[1].bfloat16()).all()


def test_two_runs_give_the_same_bits(fused):
    one, two = (fused(*lists(3, 150), 1000, 1.0, "exponential") for _ in range(2))
    assert (one[0] == two[0]).all() and (one[1] == two[1]).all()


@pytest.mark.parametrize(
    ("device", "dtype", "installed", "expected"),
    [
        ("cpu", torch.float32, True, False), ("cuda", torch.float32, True, True), ("cuda", torch.bfloat16, True, True),
        ("cuda", torch.float64, True, False), ("cuda", torch.float32, False, False),
        ("mps", torch.float32, True, False),
    ],
)  # fmt: skip
def test_the_kernel_is_chosen_by_device_and_precision(monkeypatch, device, dtype, installed, expected):
    scores = SimpleNamespace(device=torch.device(device), dtype=dtype)
    monkeypatch.setattr(ranking_loss, "find_spec", lambda _: object() if installed else None)
    assert ranking_loss._has_gpu_kernel(scores) == expected
