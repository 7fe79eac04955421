"""The base class of networks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pernn import cores, encodings
from pernn.cores import Adapted, Core, Linear, Projected, Recurrence, map_state
from pernn.encodings import Encoding, check_offset
from pernn.errors import ConfigError
from pernn.kernels import refuse_trace

from .layer import check_position

CoreLike = str | Recurrence | nn.Module | type[nn.Module]
V = TypeVar("V")

CORES: dict[str, type[Core]] = {
    "elman": cores.Elman,
    "gru": cores.GRU,
    "lstm": cores.LSTM,
    "s4d": cores.S4D,
    "min_gru": cores.MinGRU,
    "min_lstm": cores.MinLSTM,
    "lru": cores.LRU,
    "gated_delta": cores.GatedDelta,
}
"""Those that can be given by name."""
TORCH_CORES: dict[type, type[Core]] = {nn.RNN: cores.Elman, nn.GRU: cores.GRU, nn.LSTM: cores.LSTM}
"""PyTorch's classes and ours of the same function."""
ENCODINGS: dict[str, type[Any]] = {
    "none": encodings.NoEncoding,
    "sinusoidal": encodings.Sinusoidal,
    "learned": encodings.Learned,
    "random": encodings.Random,
    "constant": encodings.Constant,
    "repeated_embedding": encodings.RepeatedEmbedding,
}


class EncodedNetwork(nn.Module, ABC):
    """Embedding, encoding, core and output layer. Subclasses define the inputs.

    The arguments are those of `PositionEncodedRNN`.
    """

    is_queried = True
    """Whether the output phase consists of queries; of ids, row K is then no token."""

    def __init__(
        self,
        vocab_size: int,
        core: CoreLike = "lstm",
        encoding: str | Encoding = "sinusoidal",
        *,
        embedding_size: int | None = None,
        hidden_size: int | None = None,
        num_layers: int | None = None,
        num_positions: int | None = None,
        num_extra_rows: int = 1,
        phase_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        embedding_size = choose_width(embedding_size, core, hidden_size)
        self.vocab_size, self.num_extra_rows = vocab_size, num_extra_rows
        self.embedding = self.make_embedding(embedding_size)
        if isinstance(encoding, str):
            steps = 1024 if num_positions is None else num_positions
            encoding = make_encoding(encoding, embedding_size, steps, generator)
        elif num_positions is not None:
            raise ConfigError(
                "num_positions is invalid: expected with an encoding given by name only, got "
                f"{num_positions} beside {type(encoding).__name__}"
            )
        if encoding.masked is not None and not self.is_queried:
            raise ConfigError(
                f"masked={encoding.masked!r} is invalid in a {type(self).__name__}, which has no "
                "queries: the encoding tells the output phase by them"
            )
        self.joined_size = encoding.joined_size(embedding_size)
        expected = self.joined_size + phase_size
        core = make_core(core, expected, hidden_size, num_layers, generator)
        if core.input_size != expected:
            raise ConfigError(
                f"the core takes vectors of {core.input_size}, but embedding, encoding and phase "
                f"together have {expected}: build it with input_size={expected}"
            )
        self.encoding: Encoding = encoding
        self.core: Recurrence = core
        self.output_layer = Linear(core.hidden_size, vocab_size, draw=False)
        self.reset_embedding(generator)
        self.reset_output_layer(generator)
        # Drawn before, the weights do not depend on where they go.
        self.to(device=device, dtype=dtype)

    @abstractmethod
    def make_embedding(self, width: int) -> nn.Module:
        """Make what gives vectors of a width, its weights not drawn yet."""

    @abstractmethod
    def reset_embedding(self, generator: torch.Generator | None = None) -> None:
        """Draw the embedding's weights."""

    def reset_output_layer(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√hidden_size, 1/√hidden_size), as `torch.nn.Linear`."""
        self.output_layer.reset_parameters(generator)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def forward(
        self,
        tokens: Tensor,
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
        scored: Bool[Tensor, "*batch scored"] | None = None,
        hx: Any = None,
        position_offset: "int | Tensor | None" = None,
        return_state: bool = False,
    ) -> "Float[Tensor, '*rows vocab'] | tuple[Any, ...]":
        """Read the inputs, then answer the queries.

        Args:
            tokens: Ids 0 … vocab_size − 1, or of rows of the embedding after the query's; vectors
                if the vocabulary is infinite. `(batch, time)`, or `(time,)` for a single sequence.
            num_queries: Output steps that follow, each with the query as input.
            num_scored: Last steps to give outputs for; by default the queries, or all steps if
                there is none.
            scored: Which of those steps to give outputs for, all if absent. What is not scored is
                not read out, which is most of the work where the vocabulary is large.
            hx: State to begin with, as the network returns it; zeros if absent. That of a single
                sequence has no batch axis, unless the core is a module of one's own.
            position_offset: Position of the first step; needed with `hx`: 0 where a sequence
                begins, what the call before returned where it goes on.
            return_state: Whether to return state and position too.

        Returns:
            Outputs (logits, or vectors of any length) of the last `num_scored` steps; a row for
            each scored one, if these are named. With `return_state` a tuple of these, the core's
            final state, and the position of the next step.

        Raises:
            ConfigError: If there are not that many steps, queries without a query row, or a state
                without its position.
        """
        check_transforms(tokens)
        self.check_inputs(tokens)
        is_single = tokens.dim() == (2 if isinstance(self.embedding, nn.Linear) else 1)
        # A state of one's own may have its batch axis anywhere, so it keeps it.
        drops_axis = (
            is_single and isinstance(self.core, Core) and not isinstance(self.core, Adapted)
        )
        if is_single:
            tokens, scored = tokens.unsqueeze(0), None if scored is None else scored.unsqueeze(0)
        if drops_axis:
            hx = map_state(hx, lambda part: part.unsqueeze(1))
        check_position(hx, position_offset, self.encoding)
        if isinstance(position_offset, Tensor):
            raise ConfigError(
                "position_offset is invalid: expected an int, as a network shows all sequences the "
                f"same positions, got a tensor of shape {tuple(position_offset.shape)}; "
                "PositionEncoded takes one offset per sequence"
            )
        offset = check_offset(position_offset or 0)
        inputs = self.prepare(tokens, num_queries, num_scored, offset)
        count = count_outputs(inputs.num_steps, num_queries, num_scored)
        states, final = self._run(inputs, count, scored, hx, wants_state=return_state)
        outputs: Tensor = self.output_layer(states)
        if is_single and scored is None:
            outputs = outputs.squeeze(0)
        if not return_state:
            return outputs
        if drops_axis:
            final = map_state(final, lambda part: part.squeeze(1))
        return outputs, final, offset + inputs.num_steps

    def check_inputs(self, tokens: Tensor) -> None:
        """Refuse inputs that the embedding cannot read."""

    def states(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
        scored: Bool[Tensor, "batch scored"] | None = None,
    ) -> Float[Tensor, "*rows hidden"]:
        """Return the states before the output layer, as `forward`.

        Ids are not checked: where sequences of several lengths make a batch, tokens may show the
        query's row.
        """
        inputs = self.prepare(tokens, num_queries, num_scored)
        count = count_outputs(inputs.num_steps, num_queries, num_scored)
        return self._run(inputs, count, scored, None, wants_state=False)[0]

    def _run(
        self, inputs: Projected, count: int, scored: Tensor | None, hx: Any, *, wants_state: bool
    ) -> tuple[Tensor, Any]:
        """Return the scored ones of the last steps' states, and the final one if wanted."""
        if wants_state:
            # Told to give the last outputs, a core may not compute its final state.
            every, final = run_core(self.core, inputs, hx)
            kept = every[:, inputs.num_steps - count :]
        else:
            kept, final = run_core(self.core, inputs, hx, num_outputs=count)
        return kept if scored is None else kept[scored], final

    def project(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
    ) -> Float[Tensor, "batch time gate"]:
        """Return the core's projected inputs of all steps, both phases."""
        return self.prepare(tokens, num_queries).gates().transpose(0, 1)

    def prepare(
        self,
        tokens: Tensor,
        num_queries: int = 0,
        num_scored: int | None = None,
        position_offset: int = 0,
    ) -> Projected:
        """Return the core's projected inputs by parts, as `forward`."""
        batch, input_time = tokens.shape[:2]
        rows, shown, query_row = self.embed(tokens, num_queries)
        encodings = self.project_encoding(input_time + num_queries, num_queries, position_offset)
        table = self.core.project(rows)
        return Projected(table, batch, input_time, num_queries, shown, query_row, encodings)

    @abstractmethod
    def embed(self, tokens: Tensor, num_queries: int) -> tuple[Tensor, Tensor | None, int]:
        """Return rows, which are the tokens', and which is the query's."""

    def project_encoding(
        self, num_steps: int, num_queries: int, position_offset: int = 0
    ) -> Float[Tensor, "time gate"] | None:
        """Return the encodings' share of the projected inputs, if there is one."""
        if not self.encoding.size:
            return None
        self.encoding.follow(self.output_layer.weight.device)
        vectors = self.encoding(num_steps, num_queries, position_offset=position_offset)
        offset = self.joined_size - self.encoding.size if self.encoding.combine == "concat" else 0
        return self.core.project(vectors, offset=offset, bias=False)

    def repeat(self, rows: Tensor) -> Float[Tensor, "rows width"]:
        """Return the embedding's vectors as the input has them, twice for `repeated_embedding`."""
        copies = self.encoding.embedding_copies
        return rows if copies == 1 else torch.cat([rows] * copies, dim=1)


def check_transforms(tokens: Tensor) -> None:
    """Refuse PyTorch's transforms that do not reach into a recurrence."""
    if torch.compiler.is_compiling():
        return
    refuse_trace()
    if torch._C._functorch.is_batchedtensor(tokens):
        raise ConfigError(
            "torch.func.vmap does not reach into a recurrence: give the network one batch of all "
            "sequences; pernn.analysis.jacobian has Jacobians"
        )


def named(what: str, name: str, known: Mapping[str, V]) -> V:
    """Return what a name stands for."""
    if name in known:
        return known[name]
    raise ConfigError(
        f"{what} is invalid: no kind {name!r} (known: {', '.join(known)}; one of your own is given "
        "as a module)"
    )


def make_encoding(
    name: str, size: int, num_positions: int, generator: torch.Generator | None
) -> Encoding:
    """Build an encoding by name, as wide as the embedding."""
    kind = named("encoding", name, ENCODINGS)
    if kind in (encodings.Learned, encodings.Random):
        return cast(Encoding, kind(size, num_positions, generator=generator))
    return cast(Encoding, kind() if issubclass(kind, encodings.NoEncoding) else kind(size))


def make_core(
    core: CoreLike,
    input_size: int,
    hidden_size: int | None,
    num_layers: int | None,
    generator: torch.Generator | None,
) -> Recurrence:
    """Build a core from a kind or class, or take a module."""
    given = {"hidden_size": hidden_size, "num_layers": num_layers}
    sizes: dict[str, Any] = {name: size for name, size in given.items() if size is not None}
    made: Any = core
    if isinstance(core, str):
        made = named("core", core, CORES)
    elif isinstance(core, type):
        made = TORCH_CORES.get(core, core)
    if isinstance(made, type) and issubclass(made, Core):
        sizes = {"hidden_size": 512, **sizes, "generator": generator}
        made, sizes = made(input_size, **sizes), {}
        made.batch_first = True
    if isinstance(made, type) or not isinstance(made, Recurrence | nn.Module):
        name = made.__name__ if isinstance(made, type) else type(made).__name__
        raise ConfigError(
            "core is invalid: expected a kind, a core of pernn.cores or a module that computes "
            f"outputs and a state, got {name}"
        )
    if sizes:
        said = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise ConfigError(
            f"{said} is invalid beside a core that is a module, {type(made).__name__}, which has "
            "its own: leave it out, or give the core by name"
        )
    return made if isinstance(made, Recurrence) else Adapted(made)


def choose_width(embedding_size: int | None, core: CoreLike, hidden_size: int | None) -> int:
    """Return the embedding's width, by default the state's."""
    own = None if isinstance(core, str | type) else getattr(core, "hidden_size", None)
    return next(size for size in (embedding_size, hidden_size, own, 512) if size is not None)


def run_core(
    core: Recurrence, inputs: Projected, state: Any = None, *, num_outputs: int | None = None
) -> tuple[Float[Tensor, "batch scored hidden"], Any]:
    """Run a core over projected inputs and return the last outputs.

    Ours is called as a module, so a user's hooks fire; a core that only has `project` and `recur`
    has no call that could be hooked.
    """
    if isinstance(core, Core):
        for part in (core, core.input_map()):
            refuse_late_weights(part)
        return cast(tuple[Tensor, Any], core(inputs, state, num_outputs=num_outputs))
    outputs, final = core.recur(inputs.gates().transpose(0, 1), state)
    return outputs if num_outputs is None else outputs[:, inputs.num_steps - num_outputs :], final


def refuse_late_weights(part: nn.Module | None) -> None:
    """Refuse weights that a hook computes too late."""
    if part is None or not part._forward_pre_hooks:
        return
    if any(isinstance(value, Tensor) for value in vars(part).values()):
        raise ConfigError(
            f"{type(part).__name__}: a hook (as of torch.nn.utils.prune and weight_norm) computes "
            "weights when it is called, but a network projects inputs before: use "
            "torch.nn.utils.parametrizations, or make pruning permanent (prune.remove)"
        )


def count_outputs(num_steps: int, num_queries: int, num_scored: int | None) -> int:
    """Return the number of last steps to score."""
    if num_queries < 0:
        raise ConfigError(f"num_queries is invalid: expected at least 0, got {num_queries}")
    if num_scored is None:
        num_scored = num_queries or num_steps
    if not 1 <= num_scored <= num_steps:
        raise ConfigError(f"num_scored must lie in 1 … {num_steps} steps, got {num_scored}")
    return num_scored
