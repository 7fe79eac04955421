"""Tasks: synthetic data = rule × token source × length × feedback."""

from pernn.lazy import exports

from .autoregressive import AutoregressiveConfig as AutoregressiveConfig
from .coded import (
    CodedReversal as CodedReversal,
    CodedReversalConfig as CodedReversalConfig,
    CodedStream as CodedStream,
)
from .config import (
    TASKS as TASKS,
    AnyTask as AnyTask,
    CopyingMemoryConfig as CopyingMemoryConfig,
    DelayedAdditionConfig as DelayedAdditionConfig,
    PredecessorQueryConfig as PredecessorQueryConfig,
    ReverseOrderingConfig as ReverseOrderingConfig,
    SampledTaskConfig as SampledTaskConfig,
    SortingConfig as SortingConfig,
    TaskConfig as TaskConfig,
    TokenTaskConfig as TokenTaskConfig,
)
from .dual_frequency import (
    ByCondition as ByCondition,
    DualFrequencyConfig as DualFrequencyConfig,
    OneTarget as OneTarget,
)
from .feedback import (
    Feedback as Feedback,
    HoldAndEmit as HoldAndEmit,
    OwnOutput as OwnOutput,
    Query as Query,
    Unprompted as Unprompted,
)
from .held_out import Distinct as Distinct, HeldOut as HeldOut
from .hypersphere import Spherical as Spherical
from .infinite_vocabulary import (
    InfiniteVocabularyConfig as InfiniteVocabularyConfig,
    SphericalStream as SphericalStream,
    SphericalTask as SphericalTask,
)
from .lengths import Fixed as Fixed, Length as Length, UniformRange as UniformRange
from .metrics import (
    Ascending as Ascending,
    ByLength as ByLength,
    Metric as Metric,
    Sequences as Sequences,
    SolvedOrStuck as SolvedOrStuck,
)
from .pictures import Picture as Picture, draw_pictures as draw_pictures
from .rules import (
    DelayedAddition as DelayedAddition,
    Predecessor as Predecessor,
    Reverse as Reverse,
    Rule as Rule,
    Same as Same,
    Sort as Sort,
)
from .sources import (
    Cued as Cued,
    DualFrequency as DualFrequency,
    NonRepeating as NonRepeating,
    Source as Source,
    Uniform as Uniform,
)
from .synthetic import SyntheticStream as SyntheticStream, SyntheticTask as SyntheticTask
from .variable_length import VariableLengthConfig as VariableLengthConfig
from .vocabulary_extension import (
    ByIds as ByIds,
    NewAndMixed as NewAndMixed,
    VocabularyExtensionConfig as VocabularyExtensionConfig,
)

__getattr__ = exports(__name__)
