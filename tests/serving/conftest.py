"""One small run of the pipeline in this process, and model folders of its systems."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant.baselines.registry import channels
from plant.baselines.target import Sources
from plant.baselines.target import run as run_baseline
from plant.corpus.build import build_corpus
from plant.corpus.reader import load_labels
from plant.corpus.tokens import tokenize_corpus, train_tokenizer
from plant.evaluation.metrics import write_metrics
from plant.evidence.stage3 import evidence
from plant.finetuning.finetune import finetune
from plant.finetuning.kept_evidence import keep_evidence
from plant.finetuning.predict import predict_split
from plant.ground.settings import (
    BaselineSettings,
    Evaluation,
    Evidence,
    Finetuning,
    Relevance,
    parse_backbone,
    parse_dataset,
)
from plant.model.assemble import load_weights, prepare, save_weights
from plant.model.fitting import TrainingRun
from plant.model.transformer.backbone import make_random_backbone
from plant.relevance.table import write_relevance
from plant.serving.export import Candidate, Materials, export

TINY = {"kind": "random", "hidden_size": 32, "layers": 1, "heads": 2, "attention_heads": 2, "vocabulary": 400}
STAGE2 = {"epochs": 1, "batch_size": 8, "accumulation": 1, "head_learning_rate": 0.01, "hard_negatives": 5}
LIMITS = {"all": {}, "few": {"dense_limit": 5, "top": 4, "at": [1, 3]}}
SYSTEMS = {
    "network": {"finetuning": STAGE2},
    "static": {"finetuning": {**STAGE2, "static_attention": 1.0}},
    "evidence": {"finetuning": STAGE2, "evidence": {}},
    "slopes": {"finetuning": STAGE2, "evidence": {"channels": ["log_odds", "linear", "prior"], "slopes": True}},
    "tfidf_linear": {},
    "mig_log_odds": {},
    "combined": {},
}


def write_documents(path: Path) -> None:
    """60 documents with one to three of nine labels, each announced by a word."""
    random = np.random.default_rng(0)
    own = [random.choice(9, random.integers(1, 4), replace=False) for _ in range(60)]
    texts = [" ".join([*(f"Sign{label}" for label in labels), *(f"word{i}" for i in random.integers(0, 60, 20))])
             for labels in own]  # fmt: skip
    labels = [";".join(f"L{label}" for label in labels) for labels in own]
    pl.DataFrame({"id": [f"d{i}" for i in range(60)], "text": texts, "labels": labels}).write_csv(path)


class Results:
    """Of all systems under one `evaluation` section."""

    def __init__(self, root: Path, limits: dict) -> None:
        self.root, self.limits = root, Evaluation.model_validate(limits)
        self.corpus, self.backbone = root / "corpus/mine", root / "model/backbone"
        self.settings = {
            "backbone": parse_backbone(TINY).model_dump(mode="json"), "compute": {"threads": 1, "device": "cpu"},
            "words": parse_backbone({"kind": "words"}).model_dump(mode="json"),
            "evaluation": self.limits.model_dump(mode="json"), "baselines": BaselineSettings().model_dump(mode="json"),
            "cleaning": {"style": "raw", "max_words": None}, "private": False, "experiment": "small",
            "corpus_name": "mine", "source": "table", "licences": ["CC0"], "made_up": False, "titles": {},
        }  # fmt: skip
        self._prepare()
        for name, recipe in SYSTEMS.items():
            self._make(name, recipe)
            write_metrics(self.scores(name), self.corpus / "labels.parquet", self.limits)

    def scores(self, system: str) -> Path:
        return self.root / "evaluation" / system

    def tokens(self, backbone: str) -> Path:
        return self.corpus / backbone / "tokens.safetensors"

    def relevance(self, backbone: str, kind: str) -> Path:
        return self.root / f"relevance/{backbone}.{kind}"

    def _prepare(self) -> None:
        write_documents(self.root / "mine.csv")
        split = {"train": 0.5, "val": 0.25, "test": 0.25}
        table = {"source": "table", "path": str(self.root / "mine.csv"), "split": split}
        build_corpus(parse_dataset(table), self.corpus)
        tokenizer, tiny, words = self.root / "tokenizer", parse_backbone(TINY), parse_backbone({"kind": "words"})
        train_tokenizer(self.corpus / "train.parquet", vocabulary=400, out=tokenizer)
        tokenize_corpus(self.corpus, tiny, tokenizer=tokenizer, out=self.corpus / "tiny")
        tokenize_corpus(self.corpus, words, tokenizer=None, out=self.corpus / "words")
        make_random_backbone(tiny, tokenizer, self.backbone)
        for name in ("tiny", "words"):
            table, arrays = self.relevance(name, "parquet"), self.relevance(name, "safetensors")
            write_relevance(self.corpus, self.corpus / name, "mig", Relevance(k=60), parquet=table, arrays=arrays)

    def _make(self, name: str, recipe: dict) -> None:
        if not recipe:
            parts = {part: self.scores(part) for part in ("tfidf_linear", "mig_log_odds")}
            files = {"tokens": self.corpus / "words", "relevance": self.relevance("words", "parquet"), **parts}
            sources = Sources(load_labels(self.corpus), BaselineSettings(), files)
            run_baseline(name, sources, evaluation=self.limits, out=self.scores(name))
        elif "evidence" in recipe:
            self._make("tfidf_linear", {})
            self._make("mig_log_odds", {})
            asked, read = Evidence.model_validate({"folds": 3, **recipe["evidence"]}), self.channels(name)
            evidence(read, corpus=self.corpus, settings=asked, evaluation=self.limits, out=self.scores(name), seed=0)
        else:
            self._train(name, Finetuning.model_validate(recipe["finetuning"]))

    def _train(self, name: str, recipe: Finetuning) -> None:
        data, classifier, _ = prepare(
            self.settings, seed=0, corpus=self.corpus, tokens=self.tokens("tiny"), backbone=self.backbone
        )
        static = self.relevance("tiny", "safetensors")
        data = keep_evidence(data, classifier, recipe, static=static, residual=None, whole=True)
        finetune(classifier, data.corpus, recipe, TrainingRun(0, self.root / "checkpoint" / name, name))
        folder = self.root / "finetuning" / name
        save_weights(classifier, folder, head=True)
        load_weights(classifier, folder, head=True)
        for split in ("val", "test"):
            predict_split(
                classifier, data, split, corpus=self.corpus, out=self.scores(name), settings=self.limits,
                batch_size=recipe.batch_size,
            )  # fmt: skip

    def channels(self, system: str) -> dict[str, Path]:
        recipe = SYSTEMS[system]
        asked = Evidence.model_validate(recipe["evidence"]).channels if "evidence" in recipe else ()
        asked = ("linear", "log_odds") if system == "combined" else asked
        folders = {channel: self.scores(entry.name) for channel, entry in channels().items()}
        folders["network"] = self.scores("network")
        return {channel: folders[channel] for channel in asked if channel != "prior"}

    def candidate(self, system: str, **changes: object) -> Candidate:
        recipe, read = SYSTEMS[system], self.channels(system)
        plain = {"system": system, "scores": self.scores(system), "seed": 0, "channels": read, **recipe}
        if recipe and ("evidence" not in recipe or "network" in read):
            plain["network"] = self.root / "finetuning" / ("network" if "evidence" in recipe else system)
        if system == "static":
            plain["static"] = self.relevance("tiny", "safetensors")
        return Candidate(**plain | changes)

    def materials(self, **settings: object) -> Materials:
        return Materials(self.corpus, {**self.settings, **settings}, self.tokens("tiny"), self.backbone)

    def texts(self, split: str = "test") -> list[str]:
        return pl.read_parquet(self.corpus / f"{split}.parquet")["text"].to_list()


@pytest.fixture(scope="session")
def documents() -> Callable[[Path], None]:
    """Write a table of documents."""
    return write_documents


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Callable[[str], Results]:
    """`all` keeps all scores (as fp16); `few` the four best of a document, as for large label sets."""
    runs: dict[str, Results] = {}

    def made(limits: str = "all") -> Results:
        if limits not in runs:
            runs[limits] = Results(tmp_path_factory.mktemp(limits), LIMITS[limits])
        return runs[limits]

    return made


@pytest.fixture(scope="session")
def saved(small_run, tmp_path_factory) -> Callable[..., Path]:
    """(system, limits): the model folder of a system. Copy it before you change it."""
    folders: dict[tuple[str, str], Path] = {}

    def folder(system: str = "evidence", limits: str = "all") -> Path:
        if (system, limits) not in folders:
            run, out = small_run(limits), tmp_path_factory.mktemp("saved") / system
            export(run.candidate(system), run.materials(), out)
            folders[system, limits] = out
        return folders[system, limits]

    return folder
