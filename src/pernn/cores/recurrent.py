"""The base class of Elman, GRU and LSTM."""

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.nn.utils.rnn import PackedSequence

from pernn.errors import ConfigError
from pernn.kernels import autocast_dtype, is_transformed, linear, rounds_products

from .core import Core, Projected, map_state
from .scanning import Size, kernels_fit, scan, takes_kernels


@dataclass(frozen=True)
class LayerFactors:
    """One layer's factors of the Jacobian, time first.

    Going back through one step, the adjoint g of the layer's new state becomes

        g_old = Σ_k (src_k ⊙ s_k) U_k = Σ_k src_k · diag(s_k) U_k,

    k a gate, U_k its recurrent weights, s_k its slope: how much the state gains per unit of its
    pre-activation. src is h's adjoint, or in the LSTM, but for the output gate, the cell's. The
    gates of one source make one matrix for all rows of the Jacobian, Σ_k diag(s_k) U_k.

    Attributes:
        recurrent: Slopes of all gates with respect to what comes from the old state.
        entering: The same with respect to what comes from the layer below.
        groups: Gates of each source: of h's adjoint, then of the cell's if there is one.
        keep: What of h goes on by itself, in the GRU.
        leak: What of the cell shows in h, in the LSTM.
        forget: What of the cell goes on by itself.
    """

    recurrent: Float[Tensor, "time batch block hidden"]
    entering: Float[Tensor, "time batch block hidden"]
    groups: tuple[tuple[int, ...], ...]
    keep: Float[Tensor, "time batch hidden"] | None = None
    leak: Float[Tensor, "time batch hidden"] | None = None
    forget: Float[Tensor, "time batch hidden"] | None = None


class RecurrentCore(Core):
    """Recurrent layers that separate input projection and recurrence.

    Arguments stand in the order of `torch.nn.RNN`, `torch.nn.GRU` and `torch.nn.LSTM` and have
    their defaults, time first among them. So do the parameters' names, shapes and initialisation,
    and a `state_dict` moves both ways unchanged.

    On vectors, `forward` takes PyTorch's own operator, except where the compiled kernels are
    faster (each core says where). The networks feed inputs that are projected already; those
    always take the kernels where there are any.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one hidden state.
        num_layers: Number of stacked layers.
        bias: Whether the layers have the two bias vectors of PyTorch.
        batch_first: Whether `forward` takes and returns `(batch, time, …)`.
        dropout: Must be 0.
        bidirectional: Must be false.
        proj_size: Must be 0.
        device: Where the weights go once they are drawn.
        dtype: Their type there.
        generator: Source of the initial weights; PyTorch's default generator if absent.

    Raises:
        ConfigError: If a size is not positive, or dropout, a projection or a second direction is
            asked for.
    """

    num_gates: int
    """Blocks of `hidden_size` rows in the weights."""
    reference: type[nn.RNN | nn.GRU | nn.LSTM]
    """The PyTorch module that computes the same function: the oracle."""
    mode: str
    """What PyTorch calls that function: `RNN_TANH`, `GRU`, `LSTM`."""
    num_states: int = 1
    """Tensors in the state: 1 for a hidden state, 2 with a cell."""
    kernel: str | None = None
    """Compiled kernel that computes the same as `scan`; not inherited, as a subclass may compute
    something else."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kernel = vars(cls).get("kernel")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,  # noqa: FBT001, FBT002  # PyTorch's positions
        batch_first: bool = False,  # noqa: FBT001, FBT002
        dropout: float = 0.0,
        bidirectional: bool = False,  # noqa: FBT001, FBT002
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        off: Any = {"dropout": dropout, "bidirectional": bidirectional, "proj_size": proj_size}
        super().__init__(input_size, hidden_size, num_layers, batch_first=batch_first, **off)
        self.dropout, self.bidirectional, self.proj_size = dropout, bidirectional, proj_size
        self.bias = bias
        self.gate_size = rows = self.num_gates * hidden_size
        for layer in range(num_layers):
            columns = hidden_size if layer else input_size
            shapes = {"weight_ih": [rows, columns], "weight_hh": [rows, hidden_size]}
            if bias:
                shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
            for name, shape in shapes.items():
                self.register_parameter(f"{name}_l{layer}", nn.Parameter(torch.empty(shape)))
        # Drawn before, the weights do not depend on where they go.
        self.reset_parameters(generator)
        self.to(device=device, dtype=dtype)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every parameter from U(−1/√hidden_size, 1/√hidden_size), as PyTorch does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def input_weights(self, *, bias: bool) -> tuple[Tensor, Tensor | None]:
        """Return the first layer's input weights and state-independent bias."""
        return self.weight("ih", 0), self.input_bias(0) if bias else None

    def input_bias(self, layer: int) -> Tensor | None:
        """Return the bias to add before the recurrence, if any."""
        return self.bias_of("ih", layer) + self.bias_of("hh", layer) if self.bias else None

    def weight(self, side: Literal["ih", "hh"], layer: int) -> Tensor:
        """Return a layer's weights of input (`ih`) or state (`hh`)."""
        return self._find(f"weight_{side}_l{layer}")

    def bias_of(self, side: Literal["ih", "hh"], layer: int) -> Tensor:
        """Return a layer's bias of input (`ih`) or state (`hh`)."""
        return self._find(f"bias_{side}_l{layer}")

    def _find(self, name: str) -> Tensor:
        """Return a parameter, or what a parametrization has put in its place."""
        # A module's own way to a parameter takes as long as a step of a small recurrence.
        found = self._parameters.get(name)
        return cast(Tensor, getattr(self, name)) if found is None else found

    def scan(
        self, layer: int, gates: Float[Tensor, "time batch gate"], state: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "time batch hidden"], tuple[Tensor, ...]]:
        """Run one layer over time, with `(batch, hidden)` states."""
        raise NotImplementedError(f"{type(self).__name__} needs a method scan")

    def _run_vectors(
        self, vectors: Float[Tensor, "batch time input"], hx: Any, num_outputs: int | None
    ) -> tuple[Float[Tensor, "batch scored hidden"], Any]:
        """Run all layers, by PyTorch's operator unless the kernels are faster."""
        kind, weight, (batch, steps) = self.kernel, self.weight("hh", 0), vectors.shape[:2]
        if not kind or not steps or takes_kernels(kind, vectors, weight, steps=steps, batch=batch):
            return super()._run_vectors(vectors, hx, num_outputs)
        if num_outputs is not None:  # of a trace, steps are a tensor
            self._count_outputs(steps, num_outputs)
        self._check_export(steps)
        outputs, final = self._run_operator(vectors, hx, batch)
        return outputs if num_outputs is None else outputs[:, steps - num_outputs :], final

    def _forward_packed(self, inputs: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Run sequences of several lengths, by PyTorch's operator if it computes the same."""
        data, sizes, order, back = inputs
        rounds = data.dtype == torch.float32 and rounds_products(data.device)
        if self.kernel is None or (rounds and not autocast_dtype(data.device.type)):
            return super()._forward_packed(inputs, hx)
        if order is not None:
            hx = map_state(hx, lambda part: part[:, order])
        outputs, final = self._run_operator(data, hx, int(sizes[0]), sizes)
        if back is not None:
            final = map_state(final, lambda part: part[:, back])
        # Not `_replace`, from which torch.compile makes another tuple.
        return PackedSequence(outputs, sizes, order, back), final

    def _run_operator(
        self, inputs: Tensor, hx: Any, batch: Size, batch_sizes: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Run all layers over vectors, maybe of a packed sequence, by PyTorch's operator."""
        dtype = self.weight("hh", 0).dtype
        if inputs.dtype != dtype and not autocast_dtype(inputs.device.type):
            self._refuse(
                f"the vectors' type is invalid: expected {dtype}, as the weights are, got "
                f"{inputs.dtype}; convert either with .to()"
            )
        if hx is None:
            zeros = inputs.new_zeros((self.num_layers, cast(int, batch), self.hidden_size))
            state = (zeros,) * self.num_states
        else:
            state = self._check_state(hx, dtype, self.num_states, batch, self.hidden_size)
        weights = [weight for weights in self.all_weights for weight in weights]
        is_batched = torch._C._functorch.is_batchedtensor
        if not torch.compiler.is_compiling() and any(map(is_batched, (inputs, *weights))):
            raise ConfigError(
                "PyTorch's recurrent operators have no rule for torch.func.vmap (nor for what is "
                "built on it, as jacrev): give the layer one batch of all sequences"
            )
        # What computes the same stands in `torch._VF`, where `torch.nn` finds it too.
        operator: Any = getattr(torch._VF, self.mode.lower())
        given = state if self.num_states > 1 else state[0]
        # Without dropout, `train` says whether there will be a backward pass, and nothing else; a
        # trace keeps it, and is checked without gradients.
        trains = torch.is_grad_enabled() or torch._C._get_tracing_state() is not None
        options = (self.bias, self.num_layers, 0.0, trains, False)
        if batch_sizes is None:
            outputs, *final = operator(inputs, given, weights, *options, True)
        else:
            outputs, *final = operator(inputs, batch_sizes, given, weights, *options)
        return outputs, tuple(final) if self.num_states > 1 else final[0]

    def recur(
        self,
        gates: "Float[Tensor, 'batch time gate'] | Projected",
        state: "Tensor | tuple[Tensor, ...] | None" = None,
        *,
        num_outputs: int | None = None,
    ) -> "tuple[Float[Tensor, 'batch scored hidden'], Tensor | tuple[Tensor, ...]]":
        """Run all layers over time, as `Core.recur`, with PyTorch's states."""
        # Time first inside: each step then reads and writes one contiguous block.
        inputs = gates if isinstance(gates, Projected) else Projected.of(gates.transpose(0, 1))
        counts = self._count_outputs(inputs.num_steps, num_outputs)
        weight = self.weight("hh", 0)
        if self.kernel and is_transformed(inputs.table, weight):
            raise ConfigError(
                f"torch.func does not reach into the recurrence of {type(self).__name__}: use "
                "torch.autograd, core.to_torch(), or pernn.analysis for Jacobians"
            )
        finals, states = [], None
        if state is not None:
            shape = inputs.batch, self.hidden_size
            states = self._check_state(state, weight.dtype, self.num_states, *shape)
        for layer in range(self.num_layers):
            initial = None if states is None else tuple(part[layer] for part in states)
            outputs, final = self._run_layer(layer, inputs, initial, counts[layer])
            finals.append(final)
            if layer + 1 < self.num_layers:
                weight, shift = self.weight("ih", layer + 1), self.input_bias(layer + 1)
                inputs = Projected.of(linear(outputs, weight, shift))
        ends = tuple(torch.stack(parts) for parts in zip(*finals, strict=True))
        return outputs.transpose(0, 1), ends if len(ends) > 1 else ends[0]

    def _run_layer(
        self, layer: int, inputs: Projected, state: tuple[Tensor, ...] | None, num_outputs: int
    ) -> tuple[Float[Tensor, "scored batch hidden"], tuple[Tensor, ...]]:
        """Run one layer: by the compiled kernels where there are any and they fit."""
        weight, kind = self.weight("hh", layer), self.kernel
        if kind is not None and kernels_fit(
            inputs.table, weight, steps=inputs.num_steps, batch=inputs.batch
        ):
            return scan(kind, inputs, weight, self.bias_hn(layer), state, num_outputs)
        self._check_export(inputs.num_steps)
        if kind is not None and torch.compiler.is_exporting() and torch.is_grad_enabled():
            raise ConfigError(
                f"{type(self).__name__} without compiled kernels is exported without gradients: "
                "export and run it under torch.no_grad(), or export core.to_torch()"
            )
        if state is None:
            state = (weight.new_zeros(inputs.batch, self.hidden_size),) * self.num_states
        values, final = self.scan(layer, inputs.gates().contiguous(), state)
        return values[len(values) - num_outputs :], final

    def _check_export(self, steps: Size) -> None:
        """Refuse to leave the number of steps open where a program would fix it."""
        if torch.compiler.is_exporting() and isinstance(steps, torch.SymInt):
            raise ConfigError(
                f"{type(self).__name__} without compiled kernels (see `pernn doctor`; they need "
                "float32 and a hidden_size that 16 divides) is exported for one number of steps: "
                "leave time out of dynamic_shapes"
            )

    def bias_hn(self, layer: int) -> Tensor | None:
        """Return the bias inside the recurrent product, or `None`."""
        return None

    def factors(
        self,
        layer: int,
        gates: Float[Tensor, "time batch gate"],
        before: Float[Tensor, "time batch hidden"],
        source: int,
    ) -> LayerFactors:
        """Return one layer's factors of the Jacobian, of the steps after `source`.

        A core whose class itself does not have this method has its Jacobian from autograd.

        Args:
            layer: Which layer.
            gates: Its pre-activations, from the first step on.
            before: Its hidden state before each of these steps.
            source: Steps to leave out.
        """
        raise NotImplementedError(f"{type(self).__name__} has no factors")

    def to_torch(self) -> nn.RNNBase:
        """Make PyTorch's module with a copy of the weights."""
        sizes = self.input_size, self.hidden_size, self.num_layers
        like = self.weight("hh", 0)
        options: Any = {"bias": self.bias, "batch_first": self.batch_first}
        # Nothing is drawn, which would change what PyTorch's generator gives next.
        module = self.reference(*sizes, **options, device="meta", dtype=like.dtype)
        module.to_empty(device=like.device)
        module.load_state_dict({name: getattr(self, name) for name in module.state_dict()})
        return module.train(self.training)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Each layer's weights and biases in PyTorch's order."""
        kinds = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        return [[self._find(f"{one}_l{n}") for one in kinds] for n in range(self.num_layers)]

    def flatten_parameters(self) -> None:
        """Lay the weights side by side on a GPU, for cuDNN.

        Moving the core does so; where its weights are computed, shared, of several types or on a
        CPU, this does nothing.
        """
        weights = [weight for weights in self.all_weights for weight in weights]
        if not self.kernel or not all(map(_is_for_cudnn, weights)):
            return
        places, types = {one.data_ptr() for one in weights}, {one.dtype for one in weights}
        if len(places) < len(weights) or len(types) > 1:
            return
        mode = cast(Any, torch.backends.cudnn).rnn.get_cudnn_mode(self.mode)
        stride, sizes = len(weights) // self.num_layers, (self.hidden_size, self.proj_size)
        layout: Any = self.num_layers, self.batch_first, self.bidirectional
        with torch.no_grad(), torch.cuda.device_of(weights[0]):
            torch._cudnn_rnn_flatten_weight(weights, stride, self.input_size, mode, *sizes, *layout)

    def _apply(self, *args: Any, **options: Any) -> nn.Module:
        super()._apply(*args, **options)  # type: ignore[no-untyped-call]
        self.flatten_parameters()
        return self


def _is_for_cudnn(weight: Tensor) -> bool:
    is_kept = isinstance(weight, nn.Parameter) and not isinstance(weight.data, FakeTensor)
    return is_kept and bool(torch.backends.cudnn.is_acceptable(weight))
