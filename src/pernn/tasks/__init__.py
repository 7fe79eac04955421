"""Tasks: synthetic data = rule × token source × length × feedback."""

from .autoregressive import AutoregressiveConfig
from .config import (
    TASKS,
    AnyTask,
    CopyingMemoryConfig,
    DelayedAdditionConfig,
    PredecessorQueryConfig,
    ReverseOrderingConfig,
    SampledTaskConfig,
    SortingConfig,
    TaskConfig,
    TokenTaskConfig,
)
from .dual_frequency import ByCondition, DualFrequencyConfig, OneTarget
from .feedback import Feedback, HoldAndEmit, OwnOutput, Query, Unprompted
from .held_out import Distinct, HeldOut
from .hypersphere import Spherical
from .infinite_vocabulary import InfiniteVocabularyConfig, SphericalStream, SphericalTask
from .lengths import Fixed, Length, UniformRange
from .metrics import Ascending, ByLength, Metric, Sequences, SolvedOrStuck
from .pictures import Picture, draw_pictures
from .rules import DelayedAddition, Predecessor, Reverse, Rule, Same, Sort
from .sources import Cued, DualFrequency, NonRepeating, Source, Uniform
from .synthetic import SyntheticStream, SyntheticTask
from .variable_length import VariableLengthConfig
from .vocabulary_extension import ByIds, NewAndMixed, VocabularyExtensionConfig

__all__ = [
    "TASKS",
    "AnyTask",
    "Ascending",
    "AutoregressiveConfig",
    "ByCondition",
    "ByIds",
    "ByLength",
    "CopyingMemoryConfig",
    "Cued",
    "DelayedAddition",
    "DelayedAdditionConfig",
    "Distinct",
    "DualFrequency",
    "DualFrequencyConfig",
    "Feedback",
    "Fixed",
    "HeldOut",
    "HoldAndEmit",
    "InfiniteVocabularyConfig",
    "Length",
    "Metric",
    "NewAndMixed",
    "NonRepeating",
    "OneTarget",
    "OwnOutput",
    "Picture",
    "Predecessor",
    "PredecessorQueryConfig",
    "Query",
    "Reverse",
    "ReverseOrderingConfig",
    "Rule",
    "Same",
    "SampledTaskConfig",
    "Sequences",
    "SolvedOrStuck",
    "Sort",
    "SortingConfig",
    "Source",
    "Spherical",
    "SphericalStream",
    "SphericalTask",
    "SyntheticStream",
    "SyntheticTask",
    "TaskConfig",
    "TokenTaskConfig",
    "Uniform",
    "UniformRange",
    "Unprompted",
    "VariableLengthConfig",
    "VocabularyExtensionConfig",
    "draw_pictures",
]
