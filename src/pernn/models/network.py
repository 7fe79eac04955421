"""What all our networks share: a code and a core that fit, a read-out, the input by parts."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pernn.cores import CORES
from pernn.encodings import ENCODINGS, CodeConfig, Encoding
from pernn.errors import ConfigError
from pernn.interfaces import Recurrence


class EncodedNetwork(nn.Module):
    """Embedding, code, core and read-out; what goes in and how is a subclass's business.

    Args:
        embedding: What gives the vectors, its weights not drawn yet.
        output_size: Width of the outputs.
        core: Module that recurs, or the kind of one.
        encoding: Module that gives the codes, or the kind of one.
        embedding_size: Width of the vectors, and of a code given by kind.
        hidden_size: Width of the state if the core is given by kind.
        num_positions: Longest sequence, both phases, if a tabular encoding is given by kind.
        phase_size: Further features of the core's input, after vector and code.
        generator: Source of the initial weights of what is made here.

    Raises:
        ConfigError: If the core is none of ours, or its input size is not the width of what it
            gets.
    """

    def __init__(
        self,
        embedding: nn.Module,
        output_size: int,
        core: str | Recurrence,
        encoding: str | Encoding,
        *,
        embedding_size: int,
        hidden_size: int,
        num_positions: int,
        phase_size: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if isinstance(encoding, str):
            found = ENCODINGS.find(encoding)
            sized = {"size": embedding_size} if issubclass(found, CodeConfig) else {}
            config = ENCODINGS.validate({"kind": encoding, **sized})
            encoding = config.build(num_positions, "halves", generator)
        self.joined_size = encoding.joined_size(embedding_size)
        expected = self.joined_size + phase_size
        if isinstance(core, str):
            sizes = CORES.validate({"kind": core, "hidden_size": hidden_size})
            core = sizes.build(expected, generator)
        if not isinstance(core, Recurrence):
            raise ConfigError(
                f"core must be a kind or a core of pernn.cores, got {type(core).__name__}; "
                "PositionEncoded wraps PyTorch's own layers"
            )
        if core.input_size != expected:
            parts = "embedding, code and phase" if phase_size else "embedding and code"
            raise ConfigError(
                f"the core takes vectors of {core.input_size}, but {parts} together "
                f"have {expected}: build it with input_size={expected}"
            )
        self.embedding = embedding
        self.encoding: Encoding = encoding
        self.core: Recurrence = core
        # Built empty: PyTorch's own initialisation would draw from the global generator.
        self.readout = nn.utils.skip_init(nn.Linear, core.hidden_size, output_size)

    def reset_readout(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√hidden_size, 1/√hidden_size), as `torch.nn.Linear`."""
        reset_linear(self.readout, generator)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def read(
        self,
        outputs: Float[Tensor, "batch time hidden"],
        num_queries: int,
        num_scored: int | None,
        scored: Bool[Tensor, "batch scored"] | None = None,
    ) -> Float[Tensor, "*rows vocab"]:
        """Read the last steps out, or only those of them that are scored.

        Args:
            outputs: States of all steps.
            num_queries: Output steps, at the end.
            num_scored: Last steps to keep; by default the queries, or all if there is none.
            scored: Which of those; each then is a row by itself.

        Raises:
            ConfigError: If there are not that many steps.
        """
        kept = last_steps(outputs, num_queries, num_scored)
        read: Tensor = self.readout(kept if scored is None else kept[scored])
        return read

    def project_codes(
        self, num_steps: int, num_queries: int, width: int
    ) -> Float[Tensor, "time gate"]:
        """Give the codes' share of the projected inputs.

        Args:
            num_steps: Steps of both phases together.
            num_queries: How many of them, at the end, are queries.
            width: Features of the input before the code, if it is concatenated.
        """
        codes = self.encoding(num_steps, num_queries)
        offset = width if self.encoding.attach == "concat" else 0
        return self.core.project(codes, offset=offset, bias=False)

    def attach_codes(
        self,
        inputs: Float[Tensor, "input_time batch gate"],
        query: Float[Tensor, " gate"],
        num_queries: int,
        width: int,
    ) -> Float[Tensor, "batch time gate"]:
        """Put projected inputs and queries one after another and add the codes' share."""
        input_time, batch = inputs.shape[:2]
        queries = query.expand(num_queries, 1, -1)
        if self.encoding.size:
            steps = self.project_codes(input_time + num_queries, num_queries, width).unsqueeze(1)
            inputs, queries = inputs + steps[:input_time], queries + steps[input_time:]
        gates = torch.cat([inputs, queries.expand(-1, batch, -1)])
        return gates.transpose(0, 1)


def reset_linear(linear: nn.Linear, generator: torch.Generator | None) -> None:
    """Draw weights and biases from U(−1/√in, 1/√in), as `torch.nn.Linear` does."""
    bound = 1 / math.sqrt(linear.in_features)
    for parameter in linear.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)


def last_steps(
    values: Float[Tensor, "batch time width"], num_queries: int, num_scored: int | None
) -> Float[Tensor, "batch scored width"]:
    """Keep the last `num_scored` steps; by default the queries, or all if there is none.

    Raises:
        ConfigError: If there are not that many steps.
    """
    num_steps = values.shape[1]
    if num_scored is None:
        num_scored = num_queries or num_steps
    if not 1 <= num_scored <= num_steps:
        raise ConfigError(f"num_scored must lie in 1 … {num_steps} steps, got {num_scored}")
    return values[:, num_steps - num_scored :]
