"""Parameters of the built-in encodings. Loads torch only to build one."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from pernn.encodings import oscillator_problem
from pernn.lab.config import Part, Registry

if TYPE_CHECKING:
    import torch

    from pernn.encodings import Encoding

Layout = Literal["interleaved", "halves"]
Combine = Literal["concat", "add"]
Phase = Literal["input", "output"]


class EncodingConfig(Part):
    """Base of all encodings' configs."""

    @abstractmethod
    def build(
        self, num_positions: int, layout: Layout, generator: "torch.Generator | None" = None
    ) -> "Encoding":
        """Build the module for up to `num_positions` steps."""


ENCODINGS = Registry(
    "pernn.encodings",
    {
        "none": "pernn.lab.encodings:NoneConfig",
        "sinusoidal": "pernn.lab.encodings:SinusoidalConfig",
        "learned": "pernn.lab.encodings:LearnedConfig",
        "random": "pernn.lab.encodings:RandomConfig",
        "constant": "pernn.lab.encodings:ConstantConfig",
        "repeated_embedding": "pernn.lab.encodings:RepeatedEmbeddingConfig",
    },
    EncodingConfig,
)


class OwnEncodingConfig(EncodingConfig):
    """Base of the configs of this package's encodings.

    Attributes:
        module: Class of `pernn.encodings`, which takes the fields as keywords.
        is_drawn: Whether it also takes a number of positions, and what their vectors are drawn by.
    """

    module: ClassVar[str]
    is_drawn: ClassVar[bool] = False

    def build(
        self, num_positions: int, layout: Layout, generator: "torch.Generator | None" = None
    ) -> "Encoding":
        """Build the module."""
        import pernn.encodings

        values = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        if "layout" in values:
            values["layout"] = values["layout"] or layout
        if self.is_drawn:
            values |= {"num_positions": num_positions, "generator": generator}
        encoding: Encoding = getattr(pernn.encodings, self.module)(**values)
        return encoding


class PositionalEncodingConfig(EncodingConfig):
    """Base of encodings with a vector per time step.

    Attributes:
        size: Width D of the encoding.
        combine: Concatenate the encoding to the embedding, or add it.
        masked: Phase in which the encoding is replaced by zeros; none if absent.
    """

    size: Annotated[int, Field(ge=1, le=2**20)] = 512
    combine: Combine = "concat"
    masked: Phase | None = None

    def placement(self) -> dict[str, Any]:
        """Return the keyword arguments that all positional encodings take."""
        return {"combine": self.combine, "masked": self.masked}


class NoneConfig(OwnEncodingConfig):
    """No positional encoding: the vanilla network."""

    kind: Literal["none"] = "none"
    references: ClassVar[tuple[str, ...]] = ()
    module: ClassVar[str] = "NoEncoding"


class RepeatedEmbeddingConfig(OwnEncodingConfig):
    """No positional encoding: the embedding twice, the parameter-matched control."""

    kind: Literal["repeated_embedding"] = "repeated_embedding"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    module: ClassVar[str] = "RepeatedEmbedding"


class SinusoidalConfig(OwnEncodingConfig, PositionalEncodingConfig):
    """Sines and cosines of unit norm.

    Attributes:
        layout: Order of the features; the preset's if absent.
        frequencies: Of each pair of features, in radians per step; they decide the size. Like all
            that follows, left out of the file if absent.
        phases: Of each pair at step 0, in radians.
        base: Of the geometric spacing, where no frequencies are given.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    references: ClassVar[tuple[str, ...]] = ("vaswani2017", "morita2024")
    module: ClassVar[str] = "Sinusoidal"
    younger: ClassVar[tuple[str, ...]] = ("frequencies", "phases", "base")
    layout: Layout | None = None
    frequencies: tuple[float, ...] | None = None
    phases: tuple[float, ...] | None = None
    base: float | None = None

    @model_validator(mode="after")
    def _oscillators(self) -> "SinusoidalConfig":
        if self.frequencies is not None and "size" not in self.model_fields_set:
            self.__dict__["size"] = 2 * len(self.frequencies)
            self.model_fields_set.add("size")
        # A width that is not given is the network's, which is known later.
        size = self.size if "size" in self.model_fields_set else None
        if problem := oscillator_problem(size, self.frequencies, self.phases, self.base):
            raise ValueError(problem)
        if self.size % 2:
            raise ValueError(
                f"size must be even (a sine and a cosine per frequency), got {self.size}"
            )
        return self


class LearnedConfig(OwnEncodingConfig, PositionalEncodingConfig):
    """A trainable table.

    Attributes:
        normalize: Scale every row to unit norm, as the other encodings have.
    """

    kind: Literal["learned"] = "learned"
    references: ClassVar[tuple[str, ...]] = ("morita2024", "devlin2019")
    module: ClassVar[str] = "Learned"
    is_drawn: ClassVar[bool] = True
    normalize: bool = False


class RandomConfig(OwnEncodingConfig, PositionalEncodingConfig):
    """A fixed table of random unit vectors."""

    kind: Literal["random"] = "random"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    module: ClassVar[str] = "Random"
    is_drawn: ClassVar[bool] = True


class ConstantConfig(OwnEncodingConfig, PositionalEncodingConfig):
    """A control without a clock: one unit vector at every step."""

    kind: Literal["constant"] = "constant"
    references: ClassVar[tuple[str, ...]] = ()
    module: ClassVar[str] = "Constant"


AnyEncoding = Annotated[SerializeAsAny[EncodingConfig], PlainValidator(ENCODINGS.validate)]
"""A field that takes any encoding by its kind."""
