"""What all settings share: names, ranges, and a frozen model that refuses unknown keys."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0)]
LearningRate = Annotated[float, Field(gt=0, le=10)]
"""AdamW moves a weight by about this much in an update."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""What NumPy, scikit-learn and PyTorch all take."""
T = TypeVar("T")
Some = Annotated[tuple[T, ...], Field(min_length=1)]

MEASURES = ("mig", "smoothed_mig", "term_frequency", "pmi", "chi2", "random", "shuffled", "description")
Measure = Literal["mig", "smoothed_mig", "term_frequency", "pmi", "chi2", "random", "shuffled", "description"]
NO_PRETRAINING = "none"


class Frozen(BaseModel):
    """Base of all settings: immutable; an undeclared key is an error, and so is a number that is not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
