"""Adam as a single kernel, without the compiler that `torch.optim` loads."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class FusedAdam:
    """What `torch.optim.Adam(…, fused=True)` computes, by the same kernel and to the same bits.

    Every method of `torch.optim.Adam` first loads `torch._dynamo`, which takes a process as long as
    loading the rest of PyTorch, and a fifth of a worker's memory. See docs/decisions/0015.

    Args:
        parameters: What is trained; all of one type, on one device.
        betas: Decay of the two moments.
        eps: Added to the root of the second moment.

    Attributes:
        param_groups: One group, with `params` and the rate `lr`: a tensor on a GPU, so that a
            recording reads it where it lies.
        state: Parameter → `exp_avg`, `exp_avg_sq` and `step`, from its first step on.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, betas: tuple[float, float], eps: float
    ) -> None:
        trained = list(parameters)
        on_cpu = trained[0].device.type == "cpu"
        rate = 0.0 if on_cpu else torch.zeros((), device=trained[0].device)
        self.param_groups: list[dict[str, Any]] = [{"params": trained, "lr": rate}]
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)
        self.betas, self.eps = betas, eps

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        (group,) = self.param_groups
        trained = [parameter for parameter in group["params"] if parameter.grad is not None]
        states = [self._state_of(parameter) for parameter in trained]
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

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        return state
