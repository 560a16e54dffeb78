"""Stage 3 through its rule: from raw notes to scores and reasons, and what a private corpus keeps to itself."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

SCORES = "results/evaluation/small"
CONFIG = {
    "datasets": {
        "small": {
            "source": "mimic3", "credentialed": False, "category_ends": ".",
            "generate": {"admissions": 160, "codes": 25, "words": 400, "words_per_note": 25},
        }
    },
    "backbones": {
        "tiny": {"kind": "random", "hidden_size": 16, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 500},
        "words": {"kind": "words"},
    },
    "relevance": {"k": 200},
    "finetunings": {"focal": {"epochs": 1, "batch_size": 16, "accumulation": 1, "hard_negatives": 5}},
    "baselines": {"svm_c": [1.0]},
    "evidences": {
        "all": {},
        "words_only": {"channels": ["log_odds", "linear", "characters", "categories", "prior"], "slopes": True},
    },
    "variants": {
        "plain": {"finetuning": "focal"},
        "evidence": {"finetuning": "focal", "evidence": "all"},
        "words_only": {"finetuning": "focal", "evidence": "words_only"},
    },
    "experiments": {
        "small": {
            "dataset": "small", "backbone": "tiny", "variants": ["plain", "evidence", "words_only"],
            "reference": "plain", "seeds": [0], "report": False,
        }
    },
}  # fmt: skip


@pytest.fixture
def make(snakemake, tmp_path):
    """(config, *arguments) -> what Snakemake says; it must succeed."""

    def run(config: dict, *arguments: str) -> str:
        done = snakemake(tmp_path, config, *arguments, "--show-failed-logs")
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return run


@pytest.mark.slow
def test_from_raw_notes_to_scores_metrics_and_reasons(make, read_reasons, tmp_path):
    words = tmp_path / SCORES / "tiny/none+focal+words_only/seed0"
    make(CONFIG, str((words / "metrics.json").relative_to(tmp_path)))
    assert not (tmp_path / "results/finetuning").exists()  # no network was trained for it
    record = json.loads((words / "choices.json").read_text(encoding="utf-8"))
    assert set(record["weights"]) == {"log_odds", "linear", "characters", "categories", "prior"}
    assert {"characters", "categories"} <= set(read_reasons(words).filter(part="word")["channel"])
    make(CONFIG, "ablation_evidence")
    folder = tmp_path / SCORES / "tiny/none+focal+all/seed0"
    files = {"choices.json", "evidence.parquet", "reasons.parquet", "metrics.json", "test.scores.parquet"}
    assert files <= {file.name for file in folder.iterdir()}
    told = read_reasons(folder)
    assert told["document_id"].n_unique() == 3
    rest = told.filter(part="other words", channel="log_odds")["contribution"].abs().max()
    assert rest < 0.02  # its words are all of it but for the rounding of the stored score
    sidecar = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert sidecar["seed"] == 0
    assert any(path.endswith("tiny/none+focal/seed0/val.scores.parquet") for path in sidecar["inputs"])
    assert any(path.endswith("words/tfidf_linear/seed0/weights.parquet") for path in sidecar["inputs"])
    assert any(path.endswith("evidence.parquet") for path in sidecar["outputs"])
    assert "torch" not in sidecar["versions"] or sidecar["resources"]["peak_host_mb"] < 500
    config = {**CONFIG, "evidences": {**CONFIG["evidences"], "words_only": {"channels": ["log_odds"]}}}
    said = make(config, "--dry-run", "ablation_words_only", "ablation_evidence")
    assert "rule evidence" in said and "rule tfidf_linear" not in said and "rule predict" not in said
    made = " ".join(re.findall(r"output: (.*)", said))
    assert "none+focal+words_only" in made
    assert "none+focal+all" not in made  # a change of one recipe leaves the other alone


@pytest.mark.slow
def test_of_a_private_corpus_no_reason_is_written_unasked_and_all_is_the_owners(make, tmp_path):
    config = {**CONFIG, "datasets": {"small": {**CONFIG["datasets"]["small"], "credentialed": True}}}
    make(config, "ablation_words_only")
    base = tmp_path / SCORES
    assert pl.read_parquet(base / "tiny/none+focal+words_only/seed0/reasons.parquet").is_empty()
    files = [file for file in base.rglob("*.*") if file.is_file()]
    assert {"evidence.parquet", "weights.parquet", "features.parquet"} <= {file.name for file in files}
    assert {file.stat().st_mode & 0o077 for file in files} == {0}
    config = {**config, "evaluation": {"show_credentialed": True}}
    assert "rule evidence" in make(config, "--dry-run", "ablation_words_only")


def write_own(folder: Path) -> dict:
    """A table of 40 documents with marked words and titles; its section of the config."""
    rows, marked = [], []
    for i in range(40):
        label = ("cold", "pain")[i % 2]
        rows.append({"id": f"d{i}", "text": f"word{i % 7} {label} sign of it", "labels": [label]})
        marked.append({"document": f"d{i}", "label": label, "mention": f"{label} sign"})
    pl.DataFrame(rows).write_parquet(folder / "own.parquet")
    pl.DataFrame(marked).write_csv(folder / "marked.csv")
    titles = {"label": ["cold", "pain"], "description": ["a cold sign", "pain"]}
    pl.DataFrame(titles).write_csv(folder / "titles.csv")
    paths = {"path": "own.parquet", "mentions": "marked.csv", "descriptions": "titles.csv"}
    return {"source": "table", "split": {"train": 0.5, "val": 0.3, "test": 0.2}, **paths}


@pytest.mark.slow
def test_own_mentions_and_descriptions_come_through_the_rules(make, tmp_path):
    channels = ["log_odds", "descriptions", "mentions", "prior"]
    own = {
        **CONFIG,
        "datasets": {"small": {**write_own(tmp_path), "credentialed": True}},
        "evidences": {"phrases": {"channels": channels, "folds": 2}},
        "variants": {"phrases": {"finetuning": "focal", "evidence": "phrases"}},
        "experiments": {
            "small": {
                "dataset": "small", "backbone": "tiny", "variants": ["phrases"], "baselines": ["mentions"],
                "reference": "phrases", "seeds": [0], "report": False,
            }
        },
    }  # fmt: skip
    own["evaluation"] = {"show_credentialed": True}
    make(own, "ablation_phrases", f"{SCORES}/words/mentions/seed0/metrics.json")
    base = tmp_path / SCORES
    told = pl.read_parquet(base / "tiny/none+focal+phrases/seed0/reasons.parquet")
    listed = set(told.filter(part="word").select("channel", "feature").iter_rows())
    assert {("mentions", "cold sign"), ("mentions", "pain sign"), ("descriptions", "pain")} <= listed
    metrics = json.loads((base / "words/mentions/seed0/metrics.json").read_text(encoding="utf-8"))
    assert metrics["micro_f1@natural"] == 1
    marked = tmp_path / "results/corpus/small/mentions.parquet"
    train = set(pl.read_parquet(tmp_path / "results/corpus/small/train.parquet")["document_id"])
    assert set(pl.read_parquet(marked)["document_id"]) == train
    assert marked.stat().st_mode & 0o077 == 0
    sidecar = json.loads(marked.with_name("mentions.provenance.json").read_text(encoding="utf-8"))
    assert any(path.endswith("marked.csv") for path in sidecar["inputs"])
