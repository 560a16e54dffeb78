"""What all settings share: names, ranges, and a frozen model that refuses unknown keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0)]

MEASURES = ("mig", "smoothed_mig", "term_frequency", "pmi", "chi2", "random", "shuffled", "description")
Measure = Literal["mig", "smoothed_mig", "term_frequency", "pmi", "chi2", "random", "shuffled", "description"]
BASELINES = (
    "tfidf_linear", "mig_log_odds", "combined", "tfidf_characters", "category_log_odds", "descriptions", "mentions",
)  # fmt: skip
Baseline = Literal[
    "tfidf_linear", "mig_log_odds", "combined", "tfidf_characters", "category_log_odds", "descriptions", "mentions"
]
Channel = Literal["network", "log_odds", "linear", "characters", "categories", "descriptions", "mentions", "prior"]
CHANNEL_BASELINES: dict[str, Baseline] = {
    "log_odds": "mig_log_odds",
    "linear": "tfidf_linear",
    "characters": "tfidf_characters",
    "categories": "category_log_odds",
    "descriptions": "descriptions",
    "mentions": "mentions",
}
"""The baselines whose scores are channels of Stage 3."""
NO_PRETRAINING = "none"


class Frozen(BaseModel):
    """Base of all settings: immutable, and a key that is not declared is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
