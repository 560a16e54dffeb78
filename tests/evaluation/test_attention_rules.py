"""The targets on attention, from a table with marked words to their pages: a word network and a transformer."""

import stat

import numpy as np
import polars as pl
import pytest

STAGE = {"epochs": 1, "batch_size": 16, "accumulation": 1, "learning_rate": 0.01, "head_learning_rate": 0.01}
TARGETS = ("attention_mass", "attention_against_people", "attention_page")


def write_inputs(folder, **marks):
    """A credentialed table, and its config: the word `sign<i>` is the reason for the label L<i>."""
    random = np.random.default_rng(0)
    own = [random.choice(6, random.integers(1, 4), replace=False) for _ in range(120)]
    texts = [" ".join([*(f"sign{label}" for label in labels), *(f"word{i}" for i in random.integers(0, 90, 20))])
             for labels in own]  # fmt: skip
    labels = [";".join(f"L{label}" for label in each) for each in own]
    pl.DataFrame({"id": [f"d{i}" for i in range(120)], "text": texts, "labels": labels}).write_csv(folder / "own.csv")
    marked = [(f"d{i}", f"L{label}", f"sign{label}") for i, each in enumerate(own) for label in each]
    pl.DataFrame(marked, schema=["document", "label", "mention"], orient="row").write_csv(folder / "marked.csv")
    of = {"dataset": "small", "variants": ["plant", "none"], "reference": "none", "seeds": [0], "report": False}
    return {
        "datasets": {"small": {"source": "table", "path": "own.csv", "credentialed": True, **marks}},
        "backbones": {
            "cnn": {"kind": "word_network", "encoder": "cnn", "attention": "per_label", "embedding_size": 8,
                    "hidden_size": 8, "kernel_sizes": [3]},
            "tiny": {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2,
                     "vocabulary": 300},
        },
        "relevance": {"k": 50},
        "pretrainings": {"plant": {**STAGE, "k": 50}},
        "finetunings": {"bce": {**STAGE, "hard_negatives": None}},
        "variants": {"plant": {"pretraining": "plant", "finetuning": "bce"}, "none": {"finetuning": "bce"}},
        "evaluation": {"show_credentialed": True},
        "statistics": {"resamples": 20},
        "attention_study": {"hidden_documents": 3},
        "experiments": {name: {**of, "backbone": name} for name in ("cnn", "tiny")},
    }  # fmt: skip


@pytest.mark.slow
def test_both_kinds_of_network_get_their_pages_and_no_word_leaves_the_page_to_look_at(snakemake, tmp_path):
    config = write_inputs(tmp_path, mentions="marked.csv")
    run = snakemake(tmp_path, config, *(f"{target}_{name}" for target in TARGETS for name in ("cnn", "tiny")))
    assert run.returncode == 0, run.stdout[-3000:]
    for name in ("cnn", "tiny"):
        paper = tmp_path / f"results/paper/{name}"
        page = paper / "attention.html"
        assert "sign" in page.read_text()
        assert "<u>" in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        likeness = pl.read_csv(paper / "attention_against_people/tables/likeness.csv")
        marked = likeness.filter(scorer="marked", metric="ndcg", system="none")
        assert marked["value"].to_list() == [1.0]
        files = [*paper.rglob("*.md"), *paper.rglob("*.csv"), *paper.rglob("*.tex")]
        assert len(files) == 2 + 4 * 3
        assert not [file for file in files if "sign" in file.read_text() or "word1" in file.read_text()]


def test_a_dataset_without_marks_ends_the_run_before_anything_is_trained(snakemake, tmp_path):
    run = snakemake(tmp_path, write_inputs(tmp_path), "attention_against_people_cnn", "--dry-run")
    assert run.returncode != 0
    (said,) = (line for line in run.stdout.splitlines() if line.startswith("error: "))
    assert "people marked the words of each label" in said
    assert "Traceback" not in run.stdout
