"""Tasks: synthetic data = rule × token source × length × feedback."""

from .config import TASKS, AnyTask, ReverseOrderingConfig, TaskConfig
from .feedback import Query
from .lengths import Fixed
from .rules import Reverse, Rule
from .sources import Uniform
from .synthetic import SyntheticStream, SyntheticTask

__all__ = [
    "TASKS",
    "AnyTask",
    "Fixed",
    "Query",
    "Reverse",
    "ReverseOrderingConfig",
    "Rule",
    "SyntheticStream",
    "SyntheticTask",
    "TaskConfig",
    "Uniform",
]
