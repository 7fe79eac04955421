"""What all our networks share: a code and a core that fit, a read-out, the input by parts."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pernn.cores import CORES, S4D, Linear, Projected, RecurrentCore
from pernn.encodings import ENCODINGS, CodeConfig, Encoding
from pernn.errors import ConfigError
from pernn.interfaces import Recurrence


class EncodedNetwork(nn.Module, ABC):
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
        self.readout = Linear(core.hidden_size, output_size)

    def reset_readout(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√hidden_size, 1/√hidden_size), as `torch.nn.Linear`."""
        self.readout.reset_parameters(generator)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def forward(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
        scored: Bool[Tensor, "batch scored"] | None = None,
    ) -> Float[Tensor, "*rows vocab"]:
        """Read the inputs, then answer the queries.

        Args:
            tokens: Ids 0 … vocab_size − 1, or of further rows of the embedding; vectors if the
                vocabulary is infinite.
            num_queries: Output steps that follow, each with the query as input.
            num_scored: Last steps to give outputs for; by default the queries, or all steps if
                there is none.
            scored: Which of those steps to give outputs for, all if absent. What is not scored is
                not read out, which is most of the work where the vocabulary is large.

        Returns:
            Outputs (logits, or vectors of any length) of the last `num_scored` steps; a row for
            each scored one, if these are named.

        Raises:
            ConfigError: If there are not that many steps, or queries without a query row.
        """
        states = self.states(tokens, num_queries, num_scored=num_scored, scored=scored)
        outputs: Tensor = self.readout(states)
        return outputs

    def states(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
        scored: Bool[Tensor, "batch scored"] | None = None,
    ) -> Float[Tensor, "*rows hidden"]:
        """Give the states that `forward` reads out; the arguments are those of `forward`."""
        inputs = self.prepare(tokens, num_queries, num_scored)
        num_outputs = count_outputs(inputs.num_steps, num_queries, num_scored)
        kept = last_outputs(self.core, inputs, num_outputs)
        return kept if scored is None else kept[scored]

    def project(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
    ) -> Float[Tensor, "batch time gate"]:
        """Give the core's projected inputs of all steps, both phases."""
        return self.prepare(tokens, num_queries).gates().transpose(0, 1)

    @abstractmethod
    def prepare(
        self, tokens: Tensor, num_queries: int = 0, num_scored: int | None = None
    ) -> Projected:
        """Give the core's projected inputs by parts; the arguments are those of `forward`.

        Raises:
            ConfigError: If there are queries without a query row, or not that many steps.
        """

    def project_codes(
        self, num_steps: int, num_queries: int, width: int
    ) -> Float[Tensor, "time gate"] | None:
        """Give the codes' share of the projected inputs, if there are codes.

        Args:
            num_steps: Steps of both phases together.
            num_queries: How many of them, at the end, are queries.
            width: Features of the input before the code, if it is concatenated.
        """
        if not self.encoding.size:
            return None
        codes = self.encoding(num_steps, num_queries)
        offset = width if self.encoding.attach == "concat" else 0
        return self.core.project(codes, offset=offset, bias=False)


def last_outputs(
    core: Recurrence, inputs: Projected, num_outputs: int
) -> Float[Tensor, "batch scored hidden"]:
    """Return a core's last outputs; one of ours computes no more than that."""
    if isinstance(core, (RecurrentCore, S4D)):
        # By the module's call, so that hooks hear of it.
        outputs: Tensor = core(inputs, num_outputs=num_outputs)[0]
        return outputs
    outputs, _ = core.recur(inputs.gates().transpose(0, 1))
    return outputs[:, inputs.num_steps - num_outputs :]


def count_outputs(num_steps: int, num_queries: int, num_scored: int | None) -> int:
    """Say how many of the last steps are asked for; by default the queries, or all if none is.

    Raises:
        ConfigError: If there are not that many steps.
    """
    if num_scored is None:
        num_scored = num_queries or num_steps
    if not 1 <= num_scored <= num_steps:
        raise ConfigError(f"num_scored must lie in 1 … {num_steps} steps, got {num_scored}")
    return num_scored
