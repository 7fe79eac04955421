"""The base class of cores, its interface, and what it is fed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from torch.utils._pytree import tree_map

from pernn.errors import ConfigError
from pernn.kernels import linear, refuse_trace


@dataclass(frozen=True)
class Projected:
    """Projected inputs of every step, time first.

    At step t of the input, sequence b is fed row `tokens[t, b]` of the table, or row t · batch + b
    if there are no tokens; afterwards every sequence is fed the query's row. The step's encoding is
    added to either.

    Attributes:
        table: Projected vectors.
        batch: Number of sequences.
        input_time: Steps of the input.
        num_queries: Steps after them.
        tokens: Rows of the table.
        query_row: Row of the query; matters only if there are queries.
        encodings: Projected encodings of all steps, if there are any.
    """

    table: Float[Tensor, "rows gate"]
    batch: int
    input_time: int
    num_queries: int = 0
    tokens: Int[Tensor, "input_time batch"] | None = None
    query_row: int = 0
    encodings: Float[Tensor, "time gate"] | None = None

    @classmethod
    def of(cls, gates: Float[Tensor, "time batch gate"]) -> "Projected":
        """Take inputs that are whole."""
        return cls(gates.flatten(0, 1), gates.shape[1], gates.shape[0])

    @property
    def num_steps(self) -> int:
        """Steps of both phases."""
        return self.input_time + self.num_queries

    def plus(self, encodings: Float[Tensor, "time gate"]) -> "Projected":
        """Add to the encodings."""
        known = self.encodings
        return replace(self, encodings=encodings if known is None else known + encodings)

    def gates(self) -> Float[Tensor, "time batch gate"]:
        """Put the parts together."""
        if self.tokens is None:
            count = self.input_time * self.batch
            inputs: Tensor = self.table[:count].unflatten(0, (self.input_time, self.batch))
        else:
            inputs = F.embedding(self.tokens, self.table)
        encodings = None if self.encodings is None else self.encodings.unsqueeze(1)
        if not self.num_queries:
            return inputs if encodings is None else inputs + encodings
        queries = self.table[self.query_row].expand(self.num_queries, 1, -1)
        if encodings is not None:
            inputs = inputs + encodings[: self.input_time]
            queries = queries + encodings[self.input_time :]
        return torch.cat([inputs, queries.expand(-1, self.batch, -1)])


@runtime_checkable
class Recurrence(Protocol):
    """A core's interface: vectors → states, the input projection apart from the recurrence."""

    input_size: int
    hidden_size: int

    def project(
        self, inputs: Float[Tensor, "*rows width"], *, offset: int = 0, bias: bool = True
    ) -> Float[Tensor, "*rows gate"]:
        """Apply the input weights of features `offset …`, linear without the bias."""
        ...

    def recur(
        self, gates: Float[Tensor, "batch time gate"], state: Any = None
    ) -> tuple[Float[Tensor, "batch time hidden"], Any]:
        """Run over time and return the outputs and the final state."""
        ...


class Core(nn.Module):
    """Vectors → states: `project` the inputs, `recur` over time, `forward` both.

    What differs from core to core and is needed elsewhere is a method here, with an answer that
    serves any core.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one output.
        num_layers: Number of stacked layers.
        batch_first: Whether `forward` takes and returns `(batch, time, …)`.
        bidirectional: Must be false, here and in every core.
        dropout: Must be 0.
        proj_size: Must be 0.

    Raises:
        ConfigError: If a size is not positive, or dropout, a projection or a second direction is
            asked for.
    """

    gate_size: int
    """Width of one projected input."""
    reset_parameters: Callable[..., None]
    """Draws every parameter, from a `generator` if one is given."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = True,
        bidirectional: bool = False,
        dropout: float = 0.0,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        if bidirectional or dropout or proj_size:
            self._refuse(
                "bidirectional, dropout and proj_size are not supported; PositionEncoded wraps "
                "PyTorch's own layers, which have them"
            )
        self._check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first = batch_first

    def project(
        self, inputs: Float[Tensor, "*rows width"], *, offset: int = 0, bias: bool = True
    ) -> Float[Tensor, "*rows gate"]:
        """Apply the input weights to all features of vectors, or to some.

        The projection is linear: parts of the input may be projected on their own, and add up when
        exactly one of them carries the bias.

        Args:
            inputs: Vectors that stand for input features `offset … offset + width`.
            offset: First input feature that `inputs` covers.
            bias: Whether to add the bias.
        """
        entry, width = self.input_map(), inputs.shape[-1]
        if entry is not None and bias and width == self.input_size and not offset:
            return cast(Tensor, entry(inputs))
        weight, shift = self.input_weights(bias=bias)
        if offset or width != weight.shape[1]:
            weight = weight[:, offset : offset + width]
        return linear(inputs, weight, shift)

    def input_map(self) -> nn.Module | None:
        """Return the module that is the projection, if one is."""
        return None

    def input_weights(self, *, bias: bool) -> tuple[Tensor, Tensor | None]:
        """Return the projection's weights, and its bias if it is wanted."""
        entry, name = self.input_map(), type(self).__name__
        if entry is None:
            raise NotImplementedError(f"{name} needs a method project")
        own = type(entry).forward in (Linear.forward, nn.Linear.forward)  # what its weights say
        if not isinstance(entry, nn.Linear) or not own or "forward" in entry.__dict__:
            self._refuse(
                f"its input map {type(entry).__name__} is invalid in a network, which projects "
                "vectors and encodings apart: expected Linear; parametrise its weight by "
                f"torch.nn.utils.parametrize, or wrap the core: Adapted({name}(...))"
            )
        return entry.weight, entry.bias if bias else None

    def recur(
        self,
        gates: "Float[Tensor, 'batch time gate'] | Projected",
        state: Any = None,
        *,
        num_outputs: int | None = None,
    ) -> tuple[Float[Tensor, "batch scored hidden"], Any]:
        """Run all layers over time.

        Args:
            gates: What `project` made of the inputs, whole or by parts.
            state: Of every layer, a tensor or a pair `(layers, batch, …)`; zeros if absent.
            num_outputs: Last steps whose outputs are returned; all if absent.

        Returns:
            The top layer's outputs, and the final state of every layer.

        Raises:
            ConfigError: If there are no time steps or fewer than outputs, or the state has another
                shape.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method recur")

    def forward(
        self,
        inputs: "Float[Tensor, '*shape input'] | PackedSequence | Projected",
        hx: Any = None,
        *,
        num_outputs: int | None = None,
    ) -> "tuple[Float[Tensor, '*shape hidden'] | PackedSequence, Any]":
        """Project and recur, with the axes of PyTorch's layers.

        The networks call it with inputs that are projected already, so that a forward hook of the
        core hears of every training step; it then is `recur`.

        Args:
            inputs: `(batch, time, input)`, `(time, batch, input)` unless `batch_first`, or
                `(time, input)` of a single sequence, whose state has no batch axis either; or
                sequences of several lengths, packed by `torch.nn.utils.rnn`.
            hx: Initial state; zeros if absent.
            num_outputs: Last steps whose outputs are returned; all if absent.

        Returns:
            The outputs, packed if the inputs are, and the state after each sequence's last step.

        Raises:
            ConfigError: If the vectors have other axes or are not `input_size` wide, there are no
                time steps or fewer than outputs, the state has another shape, outputs of packed
                vectors are to be cut, or `torch.jit.trace` is at work, which would fix the steps.
        """
        if isinstance(inputs, Projected):
            return self.recur(inputs, hx, num_outputs=num_outputs)
        if isinstance(inputs, PackedSequence):
            if num_outputs is not None:
                self._refuse("num_outputs is invalid beside a PackedSequence")
            self._check_width(inputs.data)
            batch, parts = int(inputs.batch_sizes[0]), hx if isinstance(hx, tuple | list) else (hx,)
            if hx is not None and any(one.dim() < 2 or one.shape[1] != batch for one in parts):
                shapes = [tuple(one.shape) for one in parts]
                self._refuse(f"the state must be that of {batch} packed sequences, got {shapes}")
            return self._forward_packed(inputs, hx)
        if inputs.dim() not in (2, 3):
            axes = "(batch, time, input)" if self.batch_first else "(time, batch, input)"
            self._refuse(
                f"the inputs' shape is invalid: expected {axes} or (time, input), got "
                f"{tuple(inputs.shape)}"
            )
        self._check_width(inputs)
        vectors, is_single = inputs, inputs.dim() == 2
        if is_single:
            vectors, hx = vectors.unsqueeze(0), map_state(hx, lambda part: part.unsqueeze(1))
        elif not self.batch_first:
            vectors = vectors.transpose(0, 1)
        outputs, state = self._run_vectors(vectors, hx, num_outputs)
        if is_single:
            return outputs.squeeze(0), map_state(state, lambda part: part.squeeze(1))
        return outputs if self.batch_first else outputs.transpose(0, 1), state

    def _run_vectors(
        self, vectors: Float[Tensor, "batch time input"], hx: Any, num_outputs: int | None
    ) -> tuple[Float[Tensor, "batch scored hidden"], Any]:
        """Project and recur, batch first."""
        refuse_trace(type(self).__name__)
        return self.recur(self.project(vectors), hx, num_outputs=num_outputs)

    def _forward_packed(self, inputs: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Run sequences of one length at a time: right for any core."""
        refuse_trace(type(self).__name__)
        vectors, lengths = pad_packed_sequence(inputs, batch_first=True)
        outputs = vectors.new_zeros(*vectors.shape[:2], self.hidden_size)
        places, finals = [], []
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero().squeeze(1).to(vectors.device)
            before = map_state(hx, partial(torch.index_select, dim=1, index=rows))
            found, state = self.recur(self.project(vectors[rows, :length]), before)
            padded = F.pad(found, (0, 0, 0, outputs.shape[1] - length))
            outputs = outputs.index_copy(0, rows, padded.to(outputs.dtype))
            places.append(rows)
            finals.append(state)
        back = torch.cat(places).argsort()
        final = tree_map(lambda *parts: torch.cat(parts, dim=1)[:, back], *finals)
        return pack_as(inputs, outputs), final

    def _check_width(self, vectors: Tensor) -> None:
        """Refuse parts of the input, which `project` takes."""
        if vectors.shape[-1] != self.input_size:
            self._refuse(f"takes vectors of {self.input_size}, got {vectors.shape[-1]}")

    def linearisation(self) -> Any:
        """Return the class of the Jacobian's closed form, if there is one.

        Else autograd goes row by row, slowly, as for a class that only inherits this method.
        """
        return None

    def extra_repr(self) -> str:
        """Return the sizes for `repr`, as PyTorch's modules do."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"

    def _check_state(
        self, state: Any, dtype: torch.dtype, count: int, *shape: Any
    ) -> tuple[Any, ...]:
        """Return a state's tensors: `count` of shape (layers, *shape), of the weights' type.

        A state that autocast made is narrower.
        """
        parts = tuple(state) if isinstance(state, tuple | list) else (state,)
        expected, found = [(self.num_layers, *shape)] * count, [tuple(one.shape) for one in parts]
        if found != expected:
            self._refuse(
                f"the state must hold tensors of shapes {expected} (layers, batch, …), got {found}"
            )
        return tuple(one.to(dtype) for one in parts)

    def _count_outputs(self, num_steps: int, num_outputs: int | None) -> list[int]:
        """Return of how many last steps each layer gives the outputs."""
        if not num_steps:
            self._refuse("needs at least one time step, got none")
        last = num_steps if num_outputs is None else num_outputs
        if not 1 <= last <= num_steps:
            self._refuse(f"num_outputs must lie in 1 … {num_steps} steps, got {last}")
        return [*[num_steps] * (self.num_layers - 1), last]

    def _check_sizes(self, **sizes: int) -> None:
        for name, value in sizes.items():
            if value < 1:
                self._refuse(f"{name} must be at least 1, got {value}")

    def _refuse(self, problem: str) -> NoReturn:
        raise ConfigError(f"{type(self).__name__}: {problem}")


def pack_as(packed: PackedSequence, padded: Float[Tensor, "batch time width"]) -> PackedSequence:
    """Pack sequences of the same lengths in the same order as others."""
    _, sizes, order, back = packed
    if order is not None:
        padded = padded[order]
    goes_on = torch.arange(len(padded)) < sizes.unsqueeze(1)
    data = padded.transpose(0, 1)[goes_on.to(padded.device)]
    return PackedSequence(data, sizes, order, back)


def map_state(state: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change every tensor of a core's state, if there is one."""
    if state is None:
        return None
    return tuple(map(change, state)) if isinstance(state, tuple | list) else change(state)


class Linear(nn.Linear):
    """A `torch.nn.Linear` that can be drawn from a generator, by `reset_parameters`.

    Args:
        in_features: Width of the rows.
        out_features: Width of their maps.
        draw: Whether to draw from PyTorch's own generator, as `torch.nn.Linear` does; the weights
            are empty otherwise, to be drawn later.
    """

    def __init__(self, in_features: int, out_features: int, *, draw: bool = True) -> None:
        # PyTorch's constructor draws; its `skip_init` takes a third of a second the first time.
        self._draws = draw
        super().__init__(in_features, out_features)
        self._draws = True

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Return the map of rows, in this package's arithmetic."""
        return linear(input, self.weight, self.bias)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√in, 1/√in), as `torch.nn.Linear` does."""
        if self._draws:
            bound = 1 / math.sqrt(self.in_features)
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)


class Adapted(Core):
    """A plain `torch.nn.Module` as a core, fed with joined inputs.

    Nothing is folded, so each step costs the whole input vector's product, as in a usual script;
    the Jacobian is autograd's.

    Args:
        layer: Module with `input_size`, `hidden_size` and `forward(inputs, state=None)`, which
            takes `(batch, time, input_size)` and returns `(batch, time, hidden_size)` and a state
            to go on from.

    Raises:
        ConfigError: If the layer lacks one of them, or is not batch first.
    """

    def __init__(self, layer: nn.Module) -> None:
        inputs, hidden = (getattr(layer, name, None) for name in ("input_size", "hidden_size"))
        if not isinstance(inputs, int) or not isinstance(hidden, int):
            raise ConfigError(
                f"core {type(layer).__name__} is invalid: expected a module with integers "
                f"input_size and hidden_size, got {inputs!r} and {hidden!r}"
            )
        if not getattr(layer, "batch_first", True):
            raise ConfigError(
                f"core {type(layer).__name__} is invalid: expected (batch, time, input), got "
                "batch_first=False; build it with batch_first=True"
            )
        super().__init__(inputs, hidden)
        self.layer, self.gate_size = layer, self.input_size

    def project(self, inputs: Tensor, *, offset: int = 0, bias: bool = True) -> Tensor:
        """Put features at their place, and zeros at all others."""
        left = self.input_size - offset - inputs.shape[-1]
        if left < 0:  # padding would cut features
            raise ConfigError(f"{type(self.layer).__name__}: takes {self.input_size} features")
        return F.pad(inputs, (offset, left))

    def recur(
        self, gates: Tensor | Projected, state: Any = None, *, num_outputs: int | None = None
    ) -> tuple[Tensor, Any]:
        """Run the layer, which must return outputs and a state."""
        inputs = gates.gates().transpose(0, 1) if isinstance(gates, Projected) else gates
        self._count_outputs(inputs.shape[1], num_outputs)
        found = self.layer(inputs, state)
        expected = (*inputs.shape[:2], self.hidden_size)
        is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Tensor)
        if not is_pair or found[0].shape != expected:
            shape = tuple(found[0].shape) if is_pair else type(found).__name__
            raise ConfigError(
                f"core {type(self.layer).__name__} is invalid: expected a pair from forward, "
                f"outputs {expected} and a state, got {shape}"
            )
        outputs, final = found
        return outputs if num_outputs is None else outputs[:, -num_outputs:], final
