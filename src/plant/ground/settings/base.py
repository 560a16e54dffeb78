"""What all settings share: types of values, names of measures and baselines, and the frozen base model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def refuse(faults: Iterable[str]) -> None:
    """Raise one error with a line for each fault; return if there is none."""
    if text := "\n".join(faults):
        raise ValueError(text)


def _each_once(values: tuple) -> tuple:
    if len(set(values)) < len(values):
        raise ValueError(f"each may be named once, got {list(values)}")
    return values


NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Positive = Annotated[int, Field(gt=0, lt=2**31)]
"""The upper end of this and of `Count` is that of the 32-bit integers in our arrays."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
Size = Annotated[int, Field(gt=0, le=65_536)]
"""Size of a layer or a number of them: more is a slip of the pen, and no machine could hold it."""
Vocabulary = Annotated[int, Field(gt=0, le=10_000_000)]
"""Number of tokens that a tokenizer learns: more than ten million would end in an error after hours."""
FilePath = Annotated[str, StringConstraints(min_length=1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
"""A rate of 1 would leave nothing to learn from."""
Rate = Annotated[float, Field(gt=0)]
LearningRate = Annotated[float, Field(gt=0, le=10)]
"""AdamW moves a weight by about this much in one update."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""The range that NumPy, scikit-learn and PyTorch all accept."""
T = TypeVar("T")
Some = Annotated[tuple[T, ...], Field(min_length=1)]
"""A list with at least one item."""
Once = Annotated[tuple[T, ...], AfterValidator(_each_once)]
"""A list in which no item stands twice."""
SomeOnce = Annotated[tuple[T, ...], Field(min_length=1), AfterValidator(_each_once)]
"""A list with at least one item, in which no item stands twice."""

NO_PRETRAINING = "none"
Objective = Literal["macro_f1_present", "micro_f1"]
"""An F1 that a threshold maximises on validation."""


class Frozen(BaseModel):
    """Base of all settings: immutable. An unknown key is an error, and so is a number that is not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
