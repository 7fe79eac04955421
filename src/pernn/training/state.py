"""All that changes in training, listed once, and its form on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from pernn.errors import CorruptError, TrialError
from pernn.interfaces import SequenceModel

from .adam import FusedAdam
from .config import Preset

REMEDY = "lower training.learning_rate or clip gradients (preset as-run)"

Arrays = dict[str, Shaped[np.ndarray, "..."]]


@dataclass
class TrainState:
    """What an update changes. Data need no cursor: they are a function of the update's number.

    Attributes:
        model: The network, on its device.
        optimizer: Adam over its trainable parameters.
        update: Number of updates done.
        sums: Sums since the last log line: loss, gradient norm, share of right answers.
    """

    model: nn.Module
    optimizer: FusedAdam
    update: int = 0
    sums: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))

    @classmethod
    def fresh(cls, model: nn.Module, preset: Preset) -> "TrainState":
        """Start training a model under a preset."""
        trainable = [p for p in model.parameters() if p.requires_grad]
        optimizer = FusedAdam(trainable, betas=preset.betas, eps=preset.epsilon)
        sums = torch.zeros(3, dtype=torch.float64, device=trainable[0].device)
        return cls(model, optimizer, sums=sums)

    @property
    def network(self) -> SequenceModel:
        """The model by what training asks of it."""
        return cast(SequenceModel, self.model)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _moments(self) -> dict[str, tuple[nn.Parameter, str]]:
        trainable = ((n, p) for n, p in self.model.named_parameters() if p.requires_grad)
        return {
            f"optimizer.{key}.{name}": (parameter, key)
            for name, parameter in trainable
            for key in ("exp_avg", "exp_avg_sq", "step")
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
            expected[name] = (
                ((), torch.float32)
                if key == "step"
                else (
                    tuple(parameter.shape),
                    parameter.dtype,
                )
            )
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
            # Fused Adam keeps its step count beside the parameter.
            self.optimizer.state[parameter][key] = tensors[name].to(parameter.device)
        self.sums = tensors["sums"].to(self.sums.device)
        self.update = update
