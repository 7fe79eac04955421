"""Parameters of the built-in cores. Loads torch only to build one."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, SerializeAsAny

from pernn.lab.config import Part, Registry

if TYPE_CHECKING:
    import torch
    from torch import nn

    from pernn.cores import Recurrence


class CoreConfig(Part):
    """Base of all cores' configs.

    Attributes:
        hidden_size: Width of the state.
        num_layers: Number of stacked layers.
    """

    hidden_size: Annotated[int, Field(ge=1, le=2**20)] = 512
    num_layers: Annotated[int, Field(ge=1, le=2**10)] = 1

    @abstractmethod
    def build(
        self, input_size: int, generator: "torch.Generator | None" = None
    ) -> "Recurrence | nn.Module":
        """Make the module, with initial weights from `generator`.

        Returns:
            A core, or any module that `Adapted` takes.
        """

    def sizes(self) -> dict[str, Any]:
        """Return the sizes as the modules' keywords."""
        return {"hidden_size": self.hidden_size, "num_layers": self.num_layers}


CORES = Registry(
    "pernn.cores",
    {
        "elman": "pernn.lab.cores:ElmanConfig",
        "gru": "pernn.lab.cores:GRUConfig",
        "lstm": "pernn.lab.cores:LSTMConfig",
        "s4d": "pernn.lab.cores:S4DConfig",
        "min_gru": "pernn.lab.cores:MinGRUConfig",
        "min_lstm": "pernn.lab.cores:MinLSTMConfig",
        "lru": "pernn.lab.cores:LRUConfig",
        "gated_delta": "pernn.lab.cores:GatedDeltaConfig",
    },
    CoreConfig,
)


class ElmanConfig(CoreConfig):
    """Elman network (tanh)."""

    kind: Literal["elman"] = "elman"
    references: ClassVar[tuple[str, ...]] = ("elman1990",)

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import Elman

        return Elman(input_size, **self.sizes(), batch_first=True, generator=generator)


class GRUConfig(CoreConfig):
    """Gated recurrent unit."""

    kind: Literal["gru"] = "gru"
    references: ClassVar[tuple[str, ...]] = ("cho2014",)

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import GRU

        return GRU(input_size, **self.sizes(), batch_first=True, generator=generator)


class LSTMConfig(CoreConfig):
    """Long short-term memory."""

    kind: Literal["lstm"] = "lstm"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "gers2000")

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import LSTM

        return LSTM(input_size, **self.sizes(), batch_first=True, generator=generator)


class S4DConfig(CoreConfig):
    """Diagonal state-space model.

    Attributes:
        state_size: Modes of a channel, N; even, as they are conjugate pairs.
    """

    kind: Literal["s4d"] = "s4d"
    references: ClassVar[tuple[str, ...]] = ("gu2022",)
    state_size: Annotated[int, Field(ge=2, le=2**20, multiple_of=2)] = 64

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import S4D

        return S4D(input_size, **self.sizes(), state_size=self.state_size, generator=generator)


class MinGRUConfig(CoreConfig):
    """GRU whose gate and candidate do not see the state."""

    kind: Literal["min_gru"] = "min_gru"
    references: ClassVar[tuple[str, ...]] = ("feng2024",)

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import MinGRU

        return MinGRU(input_size, **self.sizes(), generator=generator)


class MinLSTMConfig(CoreConfig):
    """LSTM whose gates do not see the state and sum to one."""

    kind: Literal["min_lstm"] = "min_lstm"
    references: ClassVar[tuple[str, ...]] = ("feng2024",)

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import MinLSTM

        return MinLSTM(input_size, **self.sizes(), generator=generator)


class LRUConfig(CoreConfig):
    """Linear recurrent unit.

    Attributes:
        state_size: Complex numbers in the state of a layer; `hidden_size` if absent.
    """

    kind: Literal["lru"] = "lru"
    references: ClassVar[tuple[str, ...]] = ("orvieto2023",)
    state_size: Annotated[int, Field(ge=1, le=2**20)] | None = None

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import LRU

        return LRU(input_size, **self.sizes(), state_size=self.state_size, generator=generator)


class GatedDeltaConfig(CoreConfig):
    """Gated delta rule.

    Attributes:
        num_heads: Heads, which share the width; a divisor of `hidden_size`.
    """

    kind: Literal["gated_delta"] = "gated_delta"
    references: ClassVar[tuple[str, ...]] = ("yang2024",)
    num_heads: Annotated[int, Field(ge=1, le=2**10)] = 1

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        from pernn.cores import GatedDelta

        return GatedDelta(input_size, **self.sizes(), num_heads=self.num_heads, generator=generator)


AnyCore = Annotated[SerializeAsAny[CoreConfig], PlainValidator(CORES.validate)]
"""A field that takes any core by its kind."""
