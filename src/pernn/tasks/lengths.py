"""How long the inputs are."""

from dataclasses import dataclass

from pernn.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Every input has the same length.

    Raises:
        ConfigError: If the length is not positive.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigError(f"length must be at least 1, got {self.length}")
