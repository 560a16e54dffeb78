"""Steps of `make gpu` that ask whether training on a GPU is right. Each yields rows for the table, or fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from samples import Embedding, Place, make_corpus, make_top_tokens, small_backbone

from plant.finetuning.finetune import batch_loss, finetune, parameter_groups
from plant.ground.errors import Interrupted
from plant.ground.settings import Finetuning, Pretraining
from plant.model.assemble import TrainingData, build_classifier, load_weights, save_weights
from plant.model.batches import pad_documents
from plant.model.classifier import LabelClassifier
from plant.model.determinism import set_up
from plant.model.fitting import Task, TrainingRun, fit
from plant.pretraining.losses.pairwise import pairwise_loss, pairwise_loss_dense
from plant.pretraining.pretrain import pretrain

CPU = torch.device("cpu")
LABELS = 6
RECIPE = {"epochs": 2, "patience": None, "batch_size": 4, "accumulation": 1, "learning_rate": 0.01,
          "head_learning_rate": 0.01}  # fmt: skip
ADAPTED = {"mistral": 4, "llama": 4, "phi3": 2, "deepseek_v3": 5}  # projections of a layer (appendix A)
NEAR = {"fp32": 2e-3, "bf16": 5e-2, "fp16": 1e-2}  # largest difference from the CPU, as a share of the largest logit


def lora(place: Place, architecture: str) -> Iterator[dict[str, Any]]:
    """Both stages in each precision: everything on the device, only the adapter moves, logits near the CPU's."""
    for precision in ("fp32", "bf16", "fp16"):
        yield _both_stages(place, architecture, quantization="none", precision=precision)


def nf4(place: Place, architecture: str) -> Iterator[dict[str, Any]]:
    """The same in 4 bits."""
    for precision in ("fp32", "bf16"):
        yield _both_stages(place, architecture, quantization="nf4", precision=precision)


def _both_stages(place: Place, architecture: str, **kind: Any) -> dict[str, Any]:
    settings, source = small_backbone(place, architecture, **kind)
    corpus, name = make_corpus(range(5, 25), LABELS), f"{architecture} {' '.join(kind.values())}"
    data = TrainingData(corpus, np.arange(LABELS), list("abcdef"))
    model = build_classifier(settings, source, data, seed=0, device=place.device)
    # not `state_dict`: for that bitsandbytes writes what it knows of a weight into a tensor on the CPU
    weights = [*model.named_parameters(), *model.named_buffers()]
    away = [key for key, value in weights if value.device.type != place.device.type]
    assert not away, f"{name}: not on the device: {away[:3]}"
    assert model.needs_loss_scaling == (place.device.type == "cuda" and kind["precision"] == "fp16")
    before = {key: p.detach().clone() for key, p in model.backbone.named_parameters()}
    folder = place.folder / name.replace(" ", "_")
    first = pretrain(model, corpus, make_top_tokens(LABELS), Pretraining(**RECIPE), TrainingRun(0, folder / "1", name))
    second = finetune(model, corpus, Finetuning(**RECIPE), TrainingRun(0, folder / "2", name))
    assert np.isfinite([row["loss"] for row in first + second]).all()
    moved = {key for key, p in model.backbone.named_parameters() if not torch.equal(p, before[key])}
    assert moved == {key for key in before if "lora_" in key}, f"{name}: trained {sorted(moved)[:3]}"
    assert len(moved) == 2 * ADAPTED[architecture] * settings.layers, f"{name}: {len(moved)} adapted weights"
    save_weights(model, folder, head=True)
    reference = build_classifier(settings, source, data, seed=1, device=CPU)
    load_weights(reference, folder, head=True)
    here, there = (
        one.eval().predict(pad_documents(corpus, corpus.documents("val"), device)).cpu()
        for one, device in ((model, place.device), (reference, CPU))
    )
    apart = float((here - there).abs().max() / there.abs().max())
    assert apart == 0 or place.device != CPU, f"{name}: what was saved gives other logits"
    # rounding may send a token that is between two experts to the other one
    near = NEAR[kind["precision"]] * (5 if architecture == "deepseek_v3" else 1)
    assert apart <= near, f"{name}: logits differ from the CPU's by {apart:.3g} of the largest"
    return {"what": f"{name}, LoRA: both stages; logits beside the CPU's", "value": apart, "unit": "of the largest"}


def oracle(place: Place) -> Iterator[dict[str, Any]]:
    """Loss and gradient of Eq. 2 against plain autograd in float64."""
    random = np.random.default_rng(0)
    for t in (1, 2, 17, 64, 65, place.either(1000, 100)):
        relevance = torch.from_numpy(np.round(random.random((6, t)), 1).astype(np.float32))
        relevance[torch.from_numpy(random.random((6, t)) < 0.2)] = -1
        scores = torch.from_numpy(random.normal(0, 3, (6, t)).astype(np.float32))
        found = scores.to(place.device).requires_grad_()
        exact = scores.detach().double().requires_grad_()
        options = {"k": 1000, "sigma": 1.3, "gain": "exponential"}
        loss = pairwise_loss(found, relevance.to(place.device), **options)
        expected = pairwise_loss_dense(exact, relevance.double(), **options)
        loss.sum().backward()
        expected.sum().backward()
        largest = exact.grad.abs().max().clamp_min(1e-30)
        apart = float((found.grad.cpu() - exact.grad).abs().max() / largest)
        torch.testing.assert_close(loss.detach().cpu().double(), expected.detach(), rtol=1e-4, atol=1e-6)
        assert apart < 1e-4, f"lists of {t}: the gradient differs by {apart:.3g} of the largest"
        yield {"what": f"ranking loss, lists of {t}: gradient beside float64", "value": apart, "unit": "of the largest"}


def _weights(place: Place, name: str, *, deterministic: bool) -> dict[str, torch.Tensor]:
    device = set_up({"device": place.device.type, "deterministic": deterministic})
    torch.manual_seed(0)
    model = LabelClassifier(Embedding(), n_labels=LABELS, hidden_size=16, heads=2, pool_size=4).to(device)
    corpus, folder = make_corpus(range(5, 25), LABELS), place.folder / name
    pretrain(model, corpus, make_top_tokens(LABELS), Pretraining(**RECIPE), TrainingRun(3, folder / "1", name))
    finetune(model, corpus, Finetuning(**RECIPE, hard_negatives=1), TrainingRun(3, folder / "2", name))
    return {key: value.detach().cpu() for key, value in model.named_parameters()}


def deterministic(place: Place) -> Iterator[dict[str, Any]]:
    """`compute.deterministic` gives the same bits twice; the fast way stays near."""
    one, two = (_weights(place, name, deterministic=True) for name in ("one", "two"))
    assert all(torch.equal(value, two[key]) for key, value in one.items()), "two runs have different bits"
    yield {"what": "deterministic: two runs", "value": "same bits"}
    fast = _weights(place, "fast", deterministic=False)
    apart = max(float((fast[key] - value).abs().max()) for key, value in one.items())
    assert apart < 1e-3, f"the fast way differs by {apart:.3g}"
    yield {"what": "deterministic beside fast: largest difference of a weight", "value": apart}


def resume(place: Place) -> Iterator[dict[str, Any]]:
    """A run that SIGTERM stops within an epoch ends, once resumed, with the bits of a whole one."""
    device = set_up({"device": place.device.type, "deterministic": True})
    corpus, settings = make_corpus(range(5, 25), LABELS), Finetuning(**RECIPE)

    def run(name: str, *, stop: bool = False) -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        model = LabelClassifier(Embedding(), n_labels=LABELS, hidden_size=16, heads=2, pool_size=4).to(device)
        batches = np.array_split(corpus.documents("train"), 4)

        def loss(batch: np.ndarray, epoch: int) -> tuple[torch.Tensor, float]:
            if stop and epoch == 2 and batch[0] == batches[1][0]:
                os.kill(os.getpid(), signal.SIGTERM)
            return batch_loss(model, corpus, batch, settings)

        task = Task(
            "resume", parameter_groups(model, settings), lambda _: batches, loss, lambda: {"value": 0.0}, "value"
        )
        # scaled as for fp16: the scale is a part of the checkpoint
        fit(model, task, settings, TrainingRun(0, place.folder / name, "d"),
            fp16_scaler=device.type == "cuda")  # fmt: skip
        return {key: value.detach().cpu() for key, value in model.named_parameters()}

    whole = run("whole")
    try:
        run("part", stop=True)
    except Interrupted as stopped:
        yield {"what": "stopped by SIGTERM", "value": str(stopped)}
    else:
        raise AssertionError("SIGTERM did not stop the run")
    part = run("part")
    assert all(torch.equal(value, part[key]) for key, value in whole.items()), "the resumed run has other bits"
    yield {"what": "stopped and resumed beside whole", "value": "same bits"}
