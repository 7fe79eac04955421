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

        It is a core, or any module that `Adapted` takes.
        """

    def sizes(self) -> dict[str, Any]:
        """Return all fields but the kind, as the modules' keywords."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}


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


class OwnCoreConfig(CoreConfig):
    """Base of the configs of this package's cores.

    Attributes:
        module: Class of `pernn.cores`, which takes the fields as keywords.
    """

    module: ClassVar[str]

    def build(self, input_size: int, generator: "torch.Generator | None" = None) -> "Recurrence":
        """Build the module."""
        import pernn.cores

        made = getattr(pernn.cores, self.module)
        core: Recurrence = made(input_size, **self.sizes(), batch_first=True, generator=generator)
        return core


class ElmanConfig(OwnCoreConfig):
    """Elman network (tanh)."""

    kind: Literal["elman"] = "elman"
    references: ClassVar[tuple[str, ...]] = ("elman1990",)
    module: ClassVar[str] = "Elman"


class GRUConfig(OwnCoreConfig):
    """Gated recurrent unit."""

    kind: Literal["gru"] = "gru"
    references: ClassVar[tuple[str, ...]] = ("cho2014",)
    module: ClassVar[str] = "GRU"


class LSTMConfig(OwnCoreConfig):
    """Long short-term memory."""

    kind: Literal["lstm"] = "lstm"
    references: ClassVar[tuple[str, ...]] = ("hochreiter1997", "gers2000")
    module: ClassVar[str] = "LSTM"


class S4DConfig(OwnCoreConfig):
    """Diagonal state-space model.

    Attributes:
        state_size: Modes of a channel, N; even, as they are conjugate pairs.
    """

    kind: Literal["s4d"] = "s4d"
    references: ClassVar[tuple[str, ...]] = ("gu2022",)
    module: ClassVar[str] = "S4D"
    state_size: Annotated[int, Field(ge=2, le=2**20, multiple_of=2)] = 64


class MinGRUConfig(OwnCoreConfig):
    """GRU whose gate and candidate do not see the state."""

    kind: Literal["min_gru"] = "min_gru"
    references: ClassVar[tuple[str, ...]] = ("feng2024",)
    module: ClassVar[str] = "MinGRU"


class MinLSTMConfig(OwnCoreConfig):
    """LSTM whose gates do not see the state and sum to one."""

    kind: Literal["min_lstm"] = "min_lstm"
    references: ClassVar[tuple[str, ...]] = ("feng2024",)
    module: ClassVar[str] = "MinLSTM"


class LRUConfig(OwnCoreConfig):
    """Linear recurrent unit.

    Attributes:
        state_size: Complex numbers in the state of a layer; `hidden_size` if absent.
    """

    kind: Literal["lru"] = "lru"
    references: ClassVar[tuple[str, ...]] = ("orvieto2023",)
    module: ClassVar[str] = "LRU"
    state_size: Annotated[int, Field(ge=1, le=2**20)] | None = None


class GatedDeltaConfig(OwnCoreConfig):
    """Gated delta rule.

    Attributes:
        num_heads: Heads, which share the width; a divisor of `hidden_size`.
    """

    kind: Literal["gated_delta"] = "gated_delta"
    references: ClassVar[tuple[str, ...]] = ("yang2024",)
    module: ClassVar[str] = "GatedDelta"
    num_heads: Annotated[int, Field(ge=1, le=2**10)] = 1


AnyCore = Annotated[SerializeAsAny[CoreConfig], PlainValidator(CORES.validate)]
"""A field that takes any core by its kind."""
