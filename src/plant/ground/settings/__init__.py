"""The config as typed, frozen objects: the one source of truth for every key, default and range.

docs/reference/config.md is generated from these classes (`make reference`), and a test compares the two. A docstring
below a key says its meaning, its unit and its place in the paper; "choice C.." points into docs/explanation/choices/.
"""

from plant.ground.settings.base import NO_PRETRAINING, Frozen
from plant.ground.settings.corpus import (
    Cleaning,
    CodiEsp,
    Dataset,
    Download,
    Eurlex57k,
    Expected,
    Generate,
    LabelFilter,
    Mimic3,
    Mimic4,
    OtherFormat,
    OwnTable,
    Split,
    Subset,
    Xmc,
)
from plant.ground.settings.load import Settings, forget_foreign_nulls, load, parse_backbone, parse_dataset
from plant.ground.settings.model import Backbone, LanguageModel, Lora, Network, Pretrained, Random, WordNetwork, Words
from plant.ground.settings.recipes import Evidence, Finetuning, Optimisation, Pretraining, Relevance, Variant
from plant.ground.settings.results import (
    AttentionStudy,
    BaselineSettings,
    Cell,
    Compute,
    Evaluation,
    Experiment,
    Hardware,
    Item,
    Paper,
    Statistics,
    Study,
)
from plant.ground.settings.tuning import Tuned, Tuning, further_runs, runs_of_arms, tuning_points
