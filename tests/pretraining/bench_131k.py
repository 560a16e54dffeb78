"""Both stages, shortlist and prediction on 131,072 synthetic labels: seconds and peak memory of each step.

    python tests/pretraining/bench_131k.py <folder> [--documents 4000] [--labels 131072] [--k 200] [--threads 1]

Not collected by pytest. Every step is a process of its own, so that its peak memory is its own; what they hand on
lies in the folder, by the contracts of the rooms. There is no text: token ids are drawn, and a document holds one
indicator token of each of its labels (labels share indicators).
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

VOCABULARY, LENGTH, EXTRA, HIDDEN, SHORTLIST = 30_000, 128, 3, 64, 500
STEPS = ("data", "relevance", "shortlist", "stage_1", "stage_2", "predict")


def documents(sizes, n_labels):
    """Labels and token ids of every document: all labels in training, three popular ones each, five in val and test."""
    from plant.ground.seeds import generator

    random = generator(0, "bench", "corpus")
    spread = random.permutation(n_labels)
    for document in range(sum(sizes)):
        seen = document < sizes[0]
        own = spread[document :: sizes[0]] if seen else random.choice(n_labels, size=5, replace=False)
        popular = (n_labels * random.random(EXTRA) ** 6).astype(np.int64)
        labels = np.unique(np.concatenate([own, popular]))
        noise = (VOCABULARY * random.random(max(8, LENGTH - len(labels))) ** 2).astype(np.int64)
        yield labels, random.permutation(np.concatenate([labels * 7919 % VOCABULARY, noise]))


def data(folder, options):
    """A corpus folder, its tokens and its vocabulary."""
    import polars as pl

    from plant.ground.files import write_arrays

    n_labels, sizes = options.labels, [options.documents, options.documents // 10, options.documents // 10]
    rows, ids = zip(*documents(sizes, n_labels), strict=True)
    indptr, offsets = (np.concatenate([[0], np.cumsum([len(row) for row in part])]) for part in (rows, ids))
    indices, tokens = (np.concatenate(part).astype(np.int32) for part in (rows, ids))
    names = [f"l{label}" for label in range(n_labels)]
    counts, start = [], 0
    for split, size in zip(("train", "val", "test"), sizes, strict=True):
        part = rows[start : start + size]
        counts.append(np.bincount(np.concatenate(part), minlength=n_labels))
        labels = [[names[label] for label in row] for row in part]
        table = pl.DataFrame({"document_id": [f"{split}{i}" for i in range(size)], "labels": labels})
        table.write_parquet(folder / f"{split}.parquet")
        start += size
    arrays = {"indptr": indptr, "indices": indices, "split_sizes": np.array(sizes), "counts": np.stack(counts)}
    write_arrays(folder / "labels.safetensors", arrays)
    spans = {"starts": np.zeros_like(tokens), "ends": np.ones_like(tokens)}
    write_arrays(folder / "tokens.safetensors", {"input_ids": tokens, "offsets": offsets, **spans})
    pl.DataFrame({"label": names}).write_parquet(folder / "labels.parquet")
    words = {"token": [f"t{i}" for i in range(VOCABULARY)], "special": [False] * VOCABULARY}
    pl.DataFrame({"token_id": range(VOCABULARY), **words}).write_parquet(folder / "vocabulary.parquet")
    return f"{len(rows)} documents, {n_labels} labels, {len(tokens) / len(rows):.0f} tokens a document"


def relevance(folder, options):
    from plant.ground.settings import Relevance
    from plant.relevance.table import write_relevance

    write_relevance(folder, folder, "mig", Relevance(k=options.k), parquet=folder / "mig.parquet",
                    arrays=folder / "mig.safetensors")  # fmt: skip
    return f"{(folder / 'mig.safetensors').stat().st_size / 1e9:.2f} GB of arrays"


def shortlist(folder, options):
    from plant.relevance.shortlist import write_shortlist

    facts = write_shortlist(folder, folder, folder / "mig.safetensors", size=SHORTLIST, out=folder / "shortlist")
    return ", ".join(f"{name} {value:.2f}" for name, value in facts.items())


def model(folder):
    """The corpus and a classifier on a one-layer Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaModel

    from plant.model.assemble import load_training_data
    from plant.model.classifier import LabelClassifier
    from plant.model.encoders.transformer import Backbone

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=4,
                         intermediate_size=4 * HIDDEN, max_position_embeddings=520)  # fmt: skip
    found = load_training_data(folder, folder)
    backbone = Backbone(LlamaModel(config), chunk_tokens=512)
    return found, LabelClassifier(backbone, n_labels=len(found.trained), hidden_size=HIDDEN, heads=8, pool_size=32)


RATES = {"epochs": 1, "patience": None, "batch_size": 8, "accumulation": 4, "learning_rate": 1e-3,
         "head_learning_rate": 2e-3}  # fmt: skip


def recipes():
    from plant.ground.settings import Finetuning, Pretraining

    first = Pretraining(**RATES, negatives=8, reweight=True, k=200)
    return first, Finetuning(**RATES, hard_negatives=100, shortlist=SHORTLIST, shortlist_above=50_000)


def fresh(checkpoint):
    """The folder, without what an earlier run left there."""
    shutil.rmtree(checkpoint, ignore_errors=True)
    return checkpoint


def stage_1(folder, options):
    from plant.model.assemble import save_weights
    from plant.pretraining.lists import load_top_tokens
    from plant.pretraining.pretrain import pretrain

    found, classifier = model(folder)
    recipe = recipes()[0]
    top = load_top_tokens(folder / "mig.safetensors", found, k=recipe.k)
    history = pretrain(
        classifier, found.corpus, top, recipe, seed=0, checkpoint=fresh(folder / "checkpoint1"), digest="d"
    )
    save_weights(classifier, folder / "planted", head=False)
    return " ".join(f"{name} {value:.4f}" for name, value in history[-1].items())


def stage_2(folder, options):
    from plant.finetuning.candidates import load_shortlist
    from plant.finetuning.finetune import finetune
    from plant.model.assemble import load_weights, save_weights

    found, classifier = model(folder)
    load_weights(classifier, folder / "planted", head=False)
    recipe = recipes()[1]
    listed = load_shortlist(folder / "shortlist", found, recipe)
    before = classifier.attention.embeddings.detach().clone()
    history = finetune(classifier, found.corpus, recipe, seed=0, checkpoint=fresh(folder / "checkpoint2"), digest="d",
                       shortlist=listed)  # fmt: skip
    save_weights(classifier, folder / "trained", head=True)
    moved = (classifier.attention.embeddings.detach() - before).norm(dim=1) / before.norm(dim=1)
    shown = " ".join(f"{name} {value:.6f}" for name, value in history[-1].items())
    return f"{shown}; rows of E moved by a median of {moved.median():.2g} of their length"


def predict(folder, options):
    from plant.finetuning.candidates import load_shortlist
    from plant.finetuning.predict import predict_split
    from plant.ground.settings import Evaluation
    from plant.metrics.scores import read_scores
    from plant.model.assemble import load_weights

    found, classifier = model(folder)
    load_weights(classifier, folder / "trained", head=True)
    recipe = recipes()[1]
    listed = load_shortlist(folder / "shortlist", found, recipe)
    for split in ("val", "test"):
        predict_split(classifier, found, split, corpus=folder, out=folder / "scores", settings=Evaluation(),
                      batch_size=8, shortlist=listed)  # fmt: skip
    scores = read_scores(folder / "scores", "test")
    return f"{scores.kept.nnz / scores.kept.shape[0]:.0f} scores a document, dense: {scores.dense is not None}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name, value in (("documents", 4000), ("labels", 131_072), ("k", 200), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--only", choices=STEPS, nargs="*", default=STEPS)
    options = parser.parse_args()
    if options.step:
        print(globals()[options.step](options.folder, options))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")}
    print(f"{'step':10} {'wall s':>8} {'CPU s':>8} {'peak GB':>8}")
    for step in options.only:
        started = time.time()
        command = [sys.executable, __file__, *sys.argv[1:], "--step", step]
        log = options.folder / f"{step}.log"
        with log.open("w") as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                     env={**os.environ, **threads})  # fmt: skip
            said = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)  # with what this child alone has used
        wall, cpu = time.time() - started, used.ru_utime + used.ru_stime
        print(f"{step:10} {wall:8.1f} {cpu:8.1f} {used.ru_maxrss / 1e6:8.2f}   {said.strip()}", flush=True)
        if status:
            sys.exit(log.read_text())


if __name__ == "__main__":
    main()
