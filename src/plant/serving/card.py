"""The model card: README.md of a model folder, written from the run's own metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plant.corpus.reader import Labels

if TYPE_CHECKING:
    from plant.serving.export import Candidate
    from plant.serving.system import SavedSystem

SHOWN = ("micro_f1", "macro_f1_present", "document_f1", "map", "p@5", "ndcg@5", "rare_f1", "macro_auc")
CARD = """---
library_name: plant-xmtc
pipeline_tag: text-classification
license: other
tags: [multi-label-classification, plant]
---
# {title}

A saved system of the experiment `{experiment}`: `{system}`, seed {seed}. It gives a document the labels whose score is
above {threshold}. It was saved by `plant-xmtc`, an independent reproduction of PLANT (arXiv 2410.23066).{passed_over}

**What it reads.** {reads}

## Use

    plant predict FOLDER texts.csv

    from plant.serving.modeling import PlantForDocuments
    scores = PlantForDocuments.from_pretrained("FOLDER").score(["a text"])

## Intended use

It suggests labels to a person who decides, for texts like those that it was trained on, and it serves research on such
systems. It is not meant to decide alone, and it has not been tested on other sources, languages or times. It must not
be used for decisions about the care of patients.

## Data and licence

{data}

## Results on the test split

| metric | value |
|---|---|
{metrics}

One training run, without an interval; the report of the experiment has intervals and tests. The threshold maximises
`{maximises}` on the validation split, where it reaches {on_val:.3f}.

## Limits

- It knows {labels} labels, those with a training document (labels of the corpus without one: {unseen}). {rare} of them
  have fewer than ten, and are found less often.
- Its scores rank labels and are cut by the threshold. They are no probabilities.
{private}"""


def card(
    candidate: Candidate, saved: SavedSystem, labels: Labels, metrics: Mapping[str, Any], settings: Mapping[str, Any],
    passed_over: Sequence[str] = (),
) -> str:  # fmt: skip
    """The card.

    `passed_over` has one sentence for each better system that cannot be saved.
    """
    counts = labels.counts[0]
    rows = [f"| {name} | {metrics[name]:.3f} |" for name in SHOWN if isinstance(metrics.get(name), float)]
    threshold = metrics["threshold"]
    private = (
        "- It was trained on texts under a data use agreement. Weights can give such texts back: share the folder only "
        "with people who have signed the same agreement.\n"
    )
    return CARD.format(
        title=settings["titles"].get(candidate.system, candidate.system), experiment=settings["experiment"],
        system=candidate.system, seed=candidate.seed, threshold=f"{threshold['value']:.4g}",
        passed_over="".join(f"\n{one}" for one in passed_over), reads=_reads(saved.system["channels"]),
        data=_data(labels, settings), metrics="\n".join(rows), maximises=threshold["maximises"],
        on_val=threshold["value_on_val"], labels=len(saved.labels), unseen=int((counts == 0).sum()),
        rare=int(((counts > 0) & (counts < 10)).sum()), private=private if settings.get("private") else "",
    )  # fmt: skip


def _reads(channels: Sequence[str]) -> str:
    what = {
        "network": "a network with label attention", "log_odds": "log-odds of each label's most informative words",
        "linear": "a linear model of TF-IDF n-grams", "prior": "the label's frequency",
    }  # fmt: skip
    named = [what[channel] for channel in channels]
    joined = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"{joined[0].upper()}{joined[1:]}."


def _data(labels: Labels, settings: Mapping[str, Any]) -> str:
    train, val, test = labels.split_sizes.tolist()
    made_up = " Its texts are synthetic: nothing follows for real ones." if settings["made_up"] else ""
    licences = "; ".join(settings["licences"]) or "not recorded: that of the data applies"
    return (
        f"Dataset `{settings['corpus_name']}` (source `{settings['source']}`): {train} training, {val} validation and "
        f"{test} test documents, {labels.n_labels} labels.{made_up}\n\nLicence of the data: {licences}."
    )
