"""Tasks: synthetic data = rule × token source × length × feedback."""

from .config import (
    TASKS,
    AnyTask,
    CopyingMemoryConfig,
    DelayedAdditionConfig,
    PredecessorQueryConfig,
    ReverseOrderingConfig,
    SortingConfig,
    TaskConfig,
)
from .feedback import Feedback, HoldAndEmit, Query, Unprompted
from .lengths import Fixed
from .pictures import Picture, draw_pictures
from .rules import DelayedAddition, Predecessor, Reverse, Rule, Same, Sort
from .sources import Cued, NonRepeating, Source, Uniform
from .synthetic import SyntheticStream, SyntheticTask

__all__ = [
    "TASKS",
    "AnyTask",
    "CopyingMemoryConfig",
    "Cued",
    "DelayedAddition",
    "DelayedAdditionConfig",
    "Feedback",
    "Fixed",
    "HoldAndEmit",
    "NonRepeating",
    "Picture",
    "Predecessor",
    "PredecessorQueryConfig",
    "Query",
    "Reverse",
    "ReverseOrderingConfig",
    "Rule",
    "Same",
    "Sort",
    "SortingConfig",
    "Source",
    "SyntheticStream",
    "SyntheticTask",
    "TaskConfig",
    "Uniform",
    "Unprompted",
    "draw_pictures",
]
