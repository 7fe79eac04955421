"""All that changes in training, listed once, and its form on disk."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from pernn.errors import CorruptError, TrialError
from pernn.lab.interfaces import LinearOutput

from .config import Optimizer, Preset

REMEDY = "lower training.learning_rate or clip gradients (preset as-run)"

Arrays = dict[str, Shaped[np.ndarray, "..."]]
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""Names of what Adam keeps of a parameter, as `torch.optim.Adam` has them."""
MOMENTUM = 0.9


class Descent(ABC):
    """Change of parameters by their gradients.

    Every method of an optimiser of `torch.optim` first loads `torch._dynamo`, which takes a process
    as long as loading the rest of PyTorch, and a fifth of a worker's memory. The kernel is that of
    `torch.optim.Adam(fused=True)`; tests compare every bit.

    Args:
        parameters: What is trained; all of one type, on one device.

    Attributes:
        param_groups: One group, with `params` and the rate `lr`: a tensor on a GPU, so that a
            recording reads it where it lies.
        state: Parameter → what is kept of it, by names of `kept`, from its first step on.
    """

    kept: ClassVar[tuple[str, ...]]

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        trained = list(parameters)
        on_cpu = trained[0].device.type == "cpu"
        rate = 0.0 if on_cpu else torch.zeros((), device=trained[0].device)
        self.param_groups: list[dict[str, Any]] = [{"params": trained, "lr": rate}]
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    @abstractmethod
    def step(self) -> None:
        """Change every parameter that has a gradient."""

    def moments_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Return a parameter's state, made on its first step."""
        state = self.state[parameter]
        if not state:
            state |= {name: torch.zeros_like(parameter) for name in self.kept}
            if "step" in state:
                state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return state


class Momentum(Descent):
    """Descent along gradients with momentum, or along its signs.

    The buffer is 0.9 times itself plus the gradient; weights change by the rate times it.

    Args:
        parameters: What is trained; all of one type, on one device.
        takes_signs: Whether only the buffer's signs count.

    Source: `torch.optim.SGD`; Bernstein et al. (2018), "signSGD", algorithm 2 (Signum).
    """

    kept = ("momentum_buffer",)

    def __init__(self, parameters: Iterable[nn.Parameter], *, takes_signs: bool = False) -> None:
        super().__init__(parameters)
        self.takes_signs = takes_signs

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        (group,) = self.param_groups
        trained = [parameter for parameter in group["params"] if parameter.grad is not None]
        buffers = [self.moments_of(parameter)["momentum_buffer"] for parameter in trained]
        torch._foreach_mul_(buffers, MOMENTUM)
        torch._foreach_add_(buffers, [parameter.grad for parameter in trained])
        ways = torch._foreach_sign(buffers) if self.takes_signs else buffers
        torch._foreach_sub_(trained, torch._foreach_mul(ways, group["lr"]))


class FusedAdam(Descent):
    """Adam by PyTorch's fused kernel, to the same bits.

    Args:
        parameters: What is trained; all of one type, on one device.
        betas: Decay of the two moments.
        eps: Added to the root of the second moment.
    """

    kept = MOMENTS

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float], eps: float
    ) -> None:
        super().__init__(parameters)
        self.betas, self.eps = betas, eps

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        (group,) = self.param_groups
        trained = [parameter for parameter in group["params"] if parameter.grad is not None]
        states = [self.moments_of(parameter) for parameter in trained]
        steps = [state["step"] for state in states]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            trained,
            [parameter.grad for parameter in trained],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            steps,
            lr=group["lr"],
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )


def make_optimizer(kind: Optimizer, parameters: Iterable[nn.Parameter], preset: Preset) -> Descent:
    """Return what changes parameters."""
    match kind:
        case "sgd" | "sign":
            return Momentum(parameters, takes_signs=kind == "sign")
        case "adam_0.999":
            betas = preset.betas[0], 0.999
            return FusedAdam(parameters, betas=betas, eps=preset.epsilon)
        case "adam":
            return FusedAdam(parameters, betas=preset.betas, eps=preset.epsilon)


@dataclass
class TrainState:
    """The state that an update changes.

    Attributes:
        model: The network, on its device.
        optimizer: What changes its trainable parameters.
        update: Number of updates done.
        sums: Sums since the last log line: loss, gradient norm, share of right answers.
    """

    model: nn.Module
    optimizer: Descent
    update: int = 0
    sums: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))

    @classmethod
    def fresh(cls, model: nn.Module, preset: Preset, optimizer: Optimizer = "adam") -> "TrainState":
        """Start training a model under a preset."""
        trainable = [p for p in model.parameters() if p.requires_grad]
        made = make_optimizer(optimizer, trainable, preset)
        sums = torch.zeros(3, dtype=torch.float64, device=trainable[0].device)
        return cls(model, made, sums=sums)

    @property
    def network(self) -> LinearOutput:
        """The model by what training asks of it."""
        return cast(LinearOutput, self.model)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The network that is trained."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _moments(self) -> dict[str, tuple[nn.Parameter, str]]:
        trainable = ((n, p) for n, p in self.model.named_parameters() if p.requires_grad)
        return {
            f"optimizer.{key}.{name}": (parameter, key)
            for name, parameter in trainable
            for key in self.optimizer.kept
        }

    def weights(self) -> Arrays:
        """Return the model's tensors by a flat name, on the CPU."""
        tensors: dict[str, Tensor] = self.model.state_dict()
        return {f"model.{name}": value.detach().cpu().numpy() for name, value in tensors.items()}

    def dump(self) -> Arrays:
        """Return every tensor by a flat name, on the CPU."""
        tensors: dict[str, Tensor] = {}
        for name, (parameter, key) in self._moments().items():
            tensors[name] = self.optimizer.state[parameter][key]
        tensors["sums"] = self.sums
        rest = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
        return {**self.weights(), **rest}

    def check(self, arrays: Arrays) -> None:
        """Check that what `dump` returned can be resumed from.

        Raises:
            TrialError: If a weight, a moment, or a loss since the last log line is not finite.
        """
        # The third sum is NaN by design where nothing can be right (vectors).
        sums = {"the loss": arrays["sums"][0], "the gradient's norm": arrays["sums"][1]}
        found = {**sums, **{name: a for name, a in arrays.items() if name != "sums"}}
        odd = next((name for name, values in found.items() if not np.isfinite(values).all()), None)
        if odd is not None:
            raise TrialError(f"{odd} is not finite after update {self.update}: {REMEDY}")

    def restore(self, arrays: Mapping[str, Shaped[np.ndarray, "..."]], update: int) -> None:
        """Load what `dump` returned after that many updates.

        Raises:
            CorruptError: If names, shapes or types are not those of this model.
        """
        moments = self._moments()
        model = self.model.state_dict()
        expected = {f"model.{name}": (tuple(v.shape), v.dtype) for name, v in model.items()}
        for name, (parameter, key) in moments.items():
            like = (tuple(parameter.shape), parameter.dtype)
            expected[name] = ((), torch.float32) if key == "step" else like
        expected["sums"] = ((3,), torch.float64)
        found = {n: (a.shape, torch.from_numpy(np.asarray(a)).dtype) for n, a in arrays.items()}
        if found != expected:
            odd = sorted(
                n for n in found.keys() | expected.keys() if found.get(n) != expected.get(n)
            )
            raise CorruptError(f"checkpoint does not fit the model: {', '.join(odd[:5])}")
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in model})
        for name, (parameter, key) in moments.items():
            # In place: whole updates and recordings keep these tensors.
            self.optimizer.moments_of(parameter)[key].copy_(tensors[name])
        self.sums = tensors["sums"].to(self.sums.device)
        self.update = update
