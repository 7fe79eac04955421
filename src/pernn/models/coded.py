"""A network that is told more than its token at every step."""

from jaxtyping import Float
from torch import Tensor

from pernn.cores import Projected
from pernn.errors import ConfigError

from .position_encoded import PositionEncodedRNN


class CodedRNN(PositionEncodedRNN):
    """A network whose ids come with a vector each.

    Inputs are `(batch, time, 1 + phase_size)`: an id, which may be the query's, then its code,
    which joins embedding and encoding. The arguments are those of `PositionEncodedRNN`.

    Examples:
        >>> import torch
        >>> sizes = {"embedding_size": 8, "hidden_size": 8, "phase_size": 4}
        >>> model = CodedRNN(10, "lstm", "none", **sizes)
        >>> tuple(model(torch.zeros(2, 6, 5), num_scored=3).shape)
        (2, 3, 10)

    Source: ours.
    """

    is_queried = False

    def prepare(
        self,
        tokens: Float[Tensor, "batch time coded"],
        num_queries: int = 0,
        num_scored: int | None = None,
        position_offset: int = 0,
    ) -> Projected:
        """Project ids and codes.

        Queries need codes too: they are shown as ids.
        """
        plain = super().prepare(tokens[..., 0].long(), num_queries, num_scored, position_offset)
        codes = tokens[..., 1:].transpose(0, 1)
        share = self.core.project(codes, offset=self.joined_size, bias=False)
        return Projected.of(plain.gates() + share)

    def check_inputs(self, tokens: Tensor) -> None:
        """Refuse ids outside this network's vocabulary, or without codes.

        Raises:
            ConfigError: If it is not a batch of vectors of that width, or an id is out of range.
        """
        width = 1 + self.core.input_size - self.joined_size
        if tokens.dim() != 3 or tokens.shape[2] != width:
            raise ConfigError(
                f"tokens is invalid: expected (batch, time, {width}), ids beside their codes, got "
                f"{tuple(tokens.shape)}"
            )
        super().check_inputs(tokens[..., 0].long())
