"""The same vector at every step: a drive that tells no time."""

from jaxtyping import Float
from torch import Tensor

from .encoding import Computed


class Constant(Computed):
    """A control of unit norm whose features are all alike.

    The arguments are those of `Encoding`.
    """

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return 1/√D everywhere."""
        return self.anchor.new_full((num_steps, self.size), self.size**-0.5)
