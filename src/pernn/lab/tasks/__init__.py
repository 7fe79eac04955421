"""Tasks: synthetic data = rule × token source × length × feedback."""

from pernn.lab.metrics import (
    Ascending as Ascending,
    ByIds as ByIds,
    ByLength as ByLength,
    Metric as Metric,
    Sequences as Sequences,
    SolvedOrStuck as SolvedOrStuck,
)
from pernn.lazy import exports

from .coded import (
    CodedReversal as CodedReversal,
    CodedReversalConfig as CodedReversalConfig,
    LongerInputsConfig as LongerInputsConfig,
)
from .config import (
    TASKS as TASKS,
    AnyTask as AnyTask,
    AutoregressiveConfig as AutoregressiveConfig,
    CopyingMemoryConfig as CopyingMemoryConfig,
    DelayedAdditionConfig as DelayedAdditionConfig,
    PredecessorQueryConfig as PredecessorQueryConfig,
    ReverseOrderingConfig as ReverseOrderingConfig,
    SampledTaskConfig as SampledTaskConfig,
    SortingConfig as SortingConfig,
    TaskConfig as TaskConfig,
    TokenTaskConfig as TokenTaskConfig,
    VariableLengthConfig as VariableLengthConfig,
    VocabularyExtensionConfig as VocabularyExtensionConfig,
)
from .dual_frequency import (
    ByCondition as ByCondition,
    DualFrequencyConfig as DualFrequencyConfig,
    OneTarget as OneTarget,
)
from .infinite_vocabulary import (
    InfiniteVocabularyConfig as InfiniteVocabularyConfig,
    Spherical as Spherical,
    SphericalTask as SphericalTask,
)
from .pictures import Picture as Picture, draw_pictures as draw_pictures
from .sequences import (
    Cued as Cued,
    DelayedAddition as DelayedAddition,
    DualFrequency as DualFrequency,
    Feedback as Feedback,
    Fixed as Fixed,
    HoldAndEmit as HoldAndEmit,
    Length as Length,
    NonRepeating as NonRepeating,
    OwnOutput as OwnOutput,
    Predecessor as Predecessor,
    Query as Query,
    Reverse as Reverse,
    Rule as Rule,
    Same as Same,
    Sort as Sort,
    Source as Source,
    Uniform as Uniform,
    UniformRange as UniformRange,
    Unprompted as Unprompted,
)
from .synthetic import (
    Distinct as Distinct,
    HeldOut as HeldOut,
    NewAndMixed as NewAndMixed,
    SyntheticStream as SyntheticStream,
    SyntheticTask as SyntheticTask,
)
from .zipf import ByRank as ByRank, Zipf as Zipf, ZipfConfig as ZipfConfig

__getattr__ = exports(__name__)
