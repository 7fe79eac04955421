"""What the network is given while it answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """The same learnable vector at every step of the output phase.

    Source: Morita (2024), section 4.1.
    """

    def num_queries(self, num_targets: int) -> int:
        """Count the query steps for so many targets: one each."""
        return num_targets
