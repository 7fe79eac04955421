"""Parameters of the built-in tasks."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from pernn.lab.config import Part, Registry
from pernn.lab.interfaces import Task
from pernn.lab.metrics import Ascending, ByIds, ByLength, Sequences, SolvedOrStuck

from .sequences import (
    Cued,
    DelayedAddition,
    Fixed,
    HoldAndEmit,
    NonRepeating,
    OwnOutput,
    Predecessor,
    Reverse,
    Rule,
    Same,
    Sort,
    Uniform,
    UniformRange,
    Unprompted,
)
from .synthetic import Distinct, NewAndMixed, SyntheticTask


class TaskConfig(Part):
    """Base of all tasks' configs.

    Attributes:
        length: Length of the inputs, L.
    """

    length: Annotated[int, Field(ge=1, le=2**16)] = 64

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for labels and for `name`."""
        return f"L={self.length}"

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed.

        Spelt out rather than dumped, so that a new parameter does not change old data.
        """
        return f"{self.kind} {self.sizes}"

    def under(self, rare_share: float, text_rules: Literal["as-run", "as-written"]) -> "TaskConfig":
        """Fill in what the preset decides where the config leaves it open.

        Args:
            rare_share: Probability of a Rare token, for a task that has such tokens.
            text_rules: What of a text is used and scored, for language modelling.
        """
        return self

    def check_data(self) -> None:
        """Refuse a task whose data this machine cannot have.

        Raises:
            MachineError: If a text or a package is missing.
        """

    @abstractmethod
    def build(self) -> Task:
        """Build the task, cheaply, as every check of a spec does."""

    @model_validator(mode="after")
    def _possible(self) -> "TaskConfig":
        self.build()
        return self


class SampledTaskConfig(TaskConfig):
    """A task whose test sequences are samples like those of training.

    Attributes:
        num_held_out: Distinct test sequences, never shown in training.
    """

    num_held_out: Annotated[int, Field(ge=1, le=2**24)] = 1024

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} held_out={self.num_held_out}"


class TokenTaskConfig(SampledTaskConfig):
    """Base of sampled tasks on ids of a finite vocabulary.

    Attributes:
        vocab_size: Number of token ids, K.
    """

    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 64

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for labels and for `name`."""
        return f"K={self.vocab_size} {super().sizes}"

    def compose(self, rule: Rule, **parts: Any) -> SyntheticTask:
        """Compose a task of its rule and other parts.

        Args:
            rule: Inputs → targets.
            parts: Of a `SyntheticTask`; else ids are uniform, inputs of one length, and test
                sequences distinct.
        """
        usual: dict[str, Any] = {
            "source": Uniform(vocab_size=self.vocab_size),
            "length": Fixed(length=self.length),
            "held_out": Distinct(num_held_out=self.num_held_out),
        }
        return SyntheticTask(name=self.name, rule=rule, **usual | parts)


TASKS = Registry(
    "pernn.tasks",
    {
        "reverse_ordering": "pernn.lab.tasks.config:ReverseOrderingConfig",
        "sorting": "pernn.lab.tasks.config:SortingConfig",
        "delayed_addition": "pernn.lab.tasks.config:DelayedAdditionConfig",
        "predecessor_query": "pernn.lab.tasks.config:PredecessorQueryConfig",
        "copying_memory": "pernn.lab.tasks.config:CopyingMemoryConfig",
        "vocabulary_extension": "pernn.lab.tasks.config:VocabularyExtensionConfig",
        "autoregressive": "pernn.lab.tasks.config:AutoregressiveConfig",
        "variable_length": "pernn.lab.tasks.config:VariableLengthConfig",
        "longer_inputs": "pernn.lab.tasks.coded:LongerInputsConfig",
        "zipf": "pernn.lab.tasks.zipf:ZipfConfig",
        "dual_frequency": "pernn.lab.tasks.dual_frequency:DualFrequencyConfig",
        "coded_reversal": "pernn.lab.tasks.coded:CodedReversalConfig",
        "infinite_vocabulary": "pernn.lab.tasks.infinite_vocabulary:InfiniteVocabularyConfig",
    },
    TaskConfig,
)


class ReverseOrderingConfig(TokenTaskConfig):
    """Return the input sequence in reverse order.

    Picture (L = 4):
        input    8 29  2 11  ?  ?  ?  ?
        target   .  .  .  . 11  2 29  8

    Source: Morita (2024), section 2.1.
    """

    kind: Literal["reverse_ordering"] = "reverse_ordering"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)

    def build(self) -> SyntheticTask:
        """Build the task."""
        return self.compose(Reverse())


class SortingConfig(TokenTaskConfig):
    """Return the input sequence in ascending order.

    Picture (L = 4):
        input    8 29  2  8  ?  ?  ?  ?
        target   .  .  .  .  2  8  8 29

    Ids are drawn with replacement; what occurs twice is to be given twice.
    """

    kind: Literal["sorting"] = "sorting"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)

    def build(self) -> SyntheticTask:
        """Build the task."""
        return self.compose(Sort(), metrics=(Sequences(), Ascending()))


class DelayedAdditionConfig(TokenTaskConfig):
    """Return the input in reverse order, each token plus its addend.

    Picture (K = 32, L = 3):
        input    8 29  2  5  4 30
        target   .  .  .  7  1  6

    Sums are modulo K. There is no query: the L addends are inputs like the L tokens before them,
    and `length` is L.
    """

    kind: Literal["delayed_addition"] = "delayed_addition"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    length: Annotated[int, Field(ge=1, le=2**16)] = 16

    def build(self) -> SyntheticTask:
        """Build the task."""
        rule, length = DelayedAddition(vocab_size=self.vocab_size), Fixed(length=2 * self.length)
        return self.compose(rule, length=length, feedback=Unprompted())


class PredecessorQueryConfig(TokenTaskConfig):
    """Return the token that stood before the one that is shown again.

    Picture (L = 4):
        input    8 29  2 11  2
        target   .  .  .  . 29

    The L tokens are distinct, so `vocab_size` must be at least `length`; the first one is never
    shown again. There is no query row.
    """

    kind: Literal["predecessor_query"] = "predecessor_query"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    length: Annotated[int, Field(ge=2, le=2**16)] = 16

    def build(self) -> SyntheticTask:
        """Build the task."""
        return self.compose(
            Predecessor(),
            source=Cued(source=NonRepeating(vocab_size=self.vocab_size)),
            length=Fixed(length=self.length + 1),
            feedback=Unprompted(),
        )


class CopyingMemoryConfig(TokenTaskConfig):
    """Return the input in order after a time of waiting.

    Picture (L = 3, hold_time = 2):
        input    5    2    7 HOLD HOLD EMIT EMIT EMIT
        target   .    .    .    .    .    5    2    7

    HOLD and EMIT are two learnable vectors: EMIT is the query, HOLD the token K + 1.

    Attributes:
        hold_time: Steps between the inputs and the predictions.
    """

    kind: Literal["copying_memory"] = "copying_memory"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 8
    length: Annotated[int, Field(ge=1, le=2**16)] = 10
    hold_time: Annotated[int, Field(ge=0, le=2**16)] = 60

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} hold_time={self.hold_time}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        return self.compose(
            Same(),
            feedback=HoldAndEmit(hold_time=self.hold_time),
            metrics=(Sequences(), SolvedOrStuck(chance=1 / self.vocab_size)),
        )


AnyTask = Annotated[SerializeAsAny[TaskConfig], PlainValidator(TASKS.validate)]
"""A field that takes any task by its kind."""


class AutoregressiveConfig(TokenTaskConfig):
    """Reorder the input sequence, each output being the next input.

    Picture (L = 4):
        input       8    29     2    11 DUMMY    11     2    29
        target      .     .     .     .    11     2    29     8

    DUMMY is a learnable vector, shown before there is an output. Training shows the true outputs
    (teacher forcing); the test feeds back the network's own, and says in the table `by_feedback`
    how it does with the true ones.

    Attributes:
        rule: The input sequence in reverse order, or in ascending order.

    Source: Morita (2024), version 1, appendix B.2 and C.2.
    """

    kind: Literal["autoregressive"] = "autoregressive"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    rule: Literal["reverse", "sort"] = "reverse"

    @property
    def sizes(self) -> str:
        """Rule and sizes in a few words, for labels and `name`."""
        return f"{self.rule} {super().sizes}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        if self.rule == "reverse":
            return self.compose(Reverse(), feedback=OwnOutput())
        return self.compose(Sort(), feedback=OwnOutput(), metrics=(Sequences(), Ascending()))


class VariableLengthConfig(TokenTaskConfig):
    """Return input sequences of various lengths in reverse order.

    Picture (min_length = 2, L = 4):
        input    8 29  2  ?  ?  ?
        target   .  .  .  2 29  8

    Every sequence draws its length from min_length … L, all equally likely; this one has three
    tokens. Time counts from its start; what fills it up in a batch comes after its last answer and
    is never scored.

    Attributes:
        length: Length of the longest inputs, L.
        min_length: Length of the shortest inputs.
        num_held_out: Distinct test sequences of each length, never shown in training.

    Source: Morita (2024), versions 2 and 3, figure 9.
    Differs: where nearly all sequences of a length are held out, that length is rarer in training.
    """

    kind: Literal["variable_length"] = "variable_length"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 16_384
    min_length: Annotated[int, Field(ge=1, le=2**16)] = 32

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} shortest={self.min_length}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        length = UniformRange(min_length=self.min_length, longest=self.length)
        return self.compose(Reverse(), length=length, metrics=(Sequences(), ByLength()))


class VocabularyExtensionConfig(TokenTaskConfig):
    """Return the input in reverse order, tested on ids that came later.

    Picture (K = 32, num_known = 16, L = 4):
        input    8 29  2 11  ?  ?  ?  ?
        target   .  .  .  . 11  2 29  8

    Training shows all ids. Of the test sequences, one half has new ids only (`num_known` and
    above), and its metrics are the trial's; the other half has any, see the table `by_ids`.
    `num_held_out` counts either half.

    Attributes:
        num_known: Ids that a pretrained network knows already; must be what it learnt.

    Source: Morita (2024), version 1, section 4.2.
    """

    kind: Literal["vocabulary_extension"] = "vocabulary_extension"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    num_known: Annotated[int, Field(ge=1, le=2**31)] = 32

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} known={self.num_known}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        held_out = NewAndMixed(num_known=self.num_known, num_held_out=self.num_held_out)
        return self.compose(Reverse(), metrics=(ByIds(),), held_out=held_out)
