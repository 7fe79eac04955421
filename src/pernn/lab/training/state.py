"""All that changes in training, listed once, and its form on disk."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from pernn.errors import CorruptError, TrialError

from .config import Optimizer, Preset

REMEDY = "lower training.learning_rate or clip gradients (preset as-run)"

Arrays = dict[str, Shaped[np.ndarray, "..."]]
Tensors = list[Tensor]
MOMENTUM = 0.9
PLAIN: dict[str, Any] = {"weight_decay": 0.0, "amsgrad": False, "maximize": False}
"""What is asked of Adam's kernel beside its own numbers."""


@dataclass(eq=False)
class Descent(ABC):
    """Change of parameters by their gradients.

    Every method of an optimiser of `torch.optim` first loads `torch._dynamo`, which takes a process
    as long as loading the rest of PyTorch, and a fifth of a worker's memory. The kernel is that of
    `torch.optim.Adam(fused=True)`; tests compare every bit.

    Attributes:
        parameters: What is trained; all of one type, on one device.
        rate: The learning rate: a tensor on a GPU, so that a recording reads it where it lies.
        state: Parameter → what is kept of it, by names of `kept`, from its first step on.
    """

    kept: ClassVar[tuple[str, ...]]
    parameters: list[nn.Parameter]

    def __post_init__(self) -> None:
        device = self.parameters[0].device
        self.rate: Any = 0.0 if device.type == "cpu" else torch.zeros((), device=device)
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        trained = [parameter for parameter in self.parameters if parameter.grad is not None]
        grads = [cast(Tensor, parameter.grad) for parameter in trained]
        self.change([*trained], grads, self.moments(trained))

    @abstractmethod
    def change(self, trained: Tensors, grads: Tensors, moments: list[Tensors]) -> None:
        """Change parameters by their gradients, and what is kept of them."""

    def moments_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Return a parameter's state, made on its first step."""
        state = self.state[parameter]
        if not state:
            state |= {name: torch.zeros_like(parameter) for name in self.kept}
            if "step" in state:
                state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return state

    def moments(self, parameters: Iterable[nn.Parameter]) -> list[Tensors]:
        """Return the states of parameters, a list for each name of `kept`."""
        states = [self.moments_of(parameter) for parameter in parameters]
        return [[state[name] for state in states] for name in self.kept]


@dataclass(eq=False)
class Momentum(Descent):
    """Descent along gradients with momentum, or along its signs.

    The buffer is 0.9 times itself plus the gradient; weights change by the rate times it.

    Args:
        parameters: What is trained; all of one type, on one device.
        takes_signs: Whether only the buffer's signs count.

    Source: `torch.optim.SGD`; Bernstein et al. (2018), "signSGD", algorithm 2 (Signum).
    """

    kept = ("momentum_buffer",)
    takes_signs: bool = False

    def change(self, trained: Tensors, grads: Tensors, moments: list[Tensors]) -> None:
        """Change parameters by their buffers."""
        (buffers,) = moments
        torch._foreach_mul_(buffers, MOMENTUM)
        torch._foreach_add_(buffers, grads)
        ways = torch._foreach_sign(buffers) if self.takes_signs else buffers
        torch._foreach_sub_(trained, torch._foreach_mul(ways, self.rate))


@dataclass(eq=False)
class FusedAdam(Descent):
    """Adam by PyTorch's fused kernel, to the same bits.

    Args:
        parameters: What is trained; all of one type, on one device.
        betas: Decay of the two moments.
        eps: Added to the root of the second moment.
    """

    kept = ("exp_avg", "exp_avg_sq", "step")  # as `torch.optim.Adam` names them
    betas: tuple[float, float]
    eps: float

    def change(self, trained: Tensors, grads: Tensors, moments: list[Tensors]) -> None:
        """Change parameters by both moments."""
        first, second, steps = moments
        torch._foreach_add_(steps, 1)
        options = {**PLAIN, "beta1": self.betas[0], "beta2": self.betas[1], "eps": self.eps}
        torch._fused_adam_(trained, grads, first, second, [], steps, lr=self.rate, **options)


@dataclass
class TrainState:
    """The state that an update changes.

    Attributes:
        model: The network, a module and a `SequenceModel`, on its device.
        optimizer: What changes its trainable parameters.
        sums: Sums since the last log line: loss, gradient norm, share of right answers.
        update: Number of updates done.
    """

    model: Any
    optimizer: Descent
    sums: Tensor
    update: int = 0

    @classmethod
    def fresh(cls, model: nn.Module, preset: Preset, optimizer: Optimizer = "adam") -> "TrainState":
        """Start training a model under a preset."""
        trainable = [p for p in model.parameters() if p.requires_grad]
        sums = torch.zeros(3, dtype=torch.float64, device=trainable[0].device)
        if optimizer in ("sgd", "sign"):
            return cls(model, Momentum(trainable, takes_signs=optimizer == "sign"), sums)
        first, second = preset.betas
        betas = first, 0.999 if optimizer == "adam_0.999" else second
        return cls(model, FusedAdam(trainable, betas=betas, eps=preset.epsilon), sums)

    def _moments(self) -> dict[str, Tensor]:
        return {
            f"optimizer.{key}.{name}": self.optimizer.moments_of(parameter)[key]
            for name, parameter in self.model.named_parameters()
            if parameter.requires_grad
            for key in self.optimizer.kept
        }

    def weights(self) -> Arrays:
        """Return the model's tensors by a flat name, on the CPU."""
        tensors: dict[str, Tensor] = self.model.state_dict()
        return {f"model.{name}": value.detach().cpu().numpy() for name, value in tensors.items()}

    def dump(self) -> Arrays:
        """Return every tensor by a flat name, on the CPU."""
        tensors = {**self._moments(), "sums": self.sums}
        return self.weights() | {n: value.detach().cpu().numpy() for n, value in tensors.items()}

    def check(self, arrays: Arrays) -> None:
        """Check that what `dump` returned can be resumed from.

        Raises:
            TrialError: If a weight, a moment, or a loss since the last log line is not finite.
        """
        # The third sum is NaN by design where nothing can be right (vectors).
        found = arrays | {"sums": arrays["sums"][:2]}
        odd = next((name for name, values in found.items() if not np.isfinite(values).all()), None)
        if odd is not None:
            raise TrialError(
                f"the state ({odd}) is not finite after update {self.update}: {REMEDY}"
            )

    def restore(self, arrays: Mapping[str, Shaped[np.ndarray, "..."]], update: int) -> None:
        """Load what `dump` returned after that many updates.

        Raises:
            CorruptError: If names or shapes are not those of this model.
        """
        model, moments = self.model.state_dict(), self._moments()
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        if odd := tensors.keys() ^ {"sums", *moments, *(f"model.{name}" for name in model)}:
            raise CorruptError(f"checkpoint does not fit the model: {', '.join(sorted(odd)[:5])}")
        try:
            self.model.load_state_dict({name: tensors[f"model.{name}"] for name in model})
        except RuntimeError as error:  # other shapes, as of an own core that was changed
            raise CorruptError(f"checkpoint does not fit the model: {error}") from None
        for name, kept in moments.items():
            # In place: whole updates and recordings keep these tensors.
            kept.copy_(tensors[name])
        self.sums = tensors["sums"].to(self.sums.device)
        self.update = update
