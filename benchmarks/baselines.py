"""Two scripts to compare with: the usual one, and a good one.

Both concatenate embedding and encoding, run the layer of a usual script (PyTorch's own; S4D: by
Fourier transforms), read out and take Adam's step after clipping. The usual one draws samples one
by one in a `DataLoader`, computes the logits of all steps and reads its loss off after every
update; the good one draws whole batches, computes only the logits that count and never waits.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from pernn.cores import Core
from pernn.errors import ConfigError
from pernn.lab.runs import Trial
from pernn.lab.training import Preset
from pernn.models import PositionEncodedRNN

LEARNING_RATE = 1e-4


class ScriptedNetwork(nn.Module):
    """The network of a script, with the weights of one of ours.

    Args:
        model: Our network.
        num_steps: Steps of both phases.
        num_queries: Steps of the output phase.

    Raises:
        ConfigError: If it has no such twin.
    """

    encodings: Tensor

    def __init__(self, model: PositionEncodedRNN, num_steps: int, num_queries: int) -> None:
        super().__init__()
        self.embedding = deepcopy(model.embedding)
        if not isinstance(model.core, Core):
            raise ConfigError(f"no script is known for the core {type(model.core).__name__}")
        self.core = model.core.to_script()
        self.output_layer = deepcopy(model.output_layer)
        self.query, self.num_queries = model.vocab_size, num_queries
        self.copies = model.encoding.embedding_copies
        self.combine = model.encoding.combine
        with torch.no_grad():
            encodings = model.encoding(num_steps, num_queries)
        self.register_buffer("encodings", encodings)

    def forward(self, tokens: Tensor, *, all_logits: bool) -> Tensor:
        """Return the logits of the output phase, on request taken from those of all steps."""
        queries = tokens.new_full((len(tokens), self.num_queries), self.query)
        vectors = self.embedding(torch.cat([tokens, queries], dim=1))
        vectors = torch.cat([vectors] * self.copies, dim=2)
        if self.encodings.shape[1] and self.combine == "add":
            vectors = vectors + self.encodings
        elif self.encodings.shape[1]:
            vectors = torch.cat([vectors, self.encodings.expand(len(tokens), -1, -1)], dim=2)
        outputs = self.core(vectors)[0]
        if all_logits:
            logits: Tensor = self.output_layer(outputs)
            return logits[:, -self.num_queries :]
        kept: Tensor = self.output_layer(outputs[:, -self.num_queries :])
        return kept


class Samples(IterableDataset[tuple[Tensor, Tensor]]):
    """Sequences to be reversed, one at a time, drawn again if they are held out."""

    def __init__(self, vocab_size: int, length: int, held_out: set[tuple[int, ...]]) -> None:
        self.vocab_size, self.length, self.held_out = vocab_size, length, held_out

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Return samples without end."""
        generator = torch.Generator().manual_seed(1)
        while True:
            tokens = torch.randint(self.vocab_size, (self.length,), generator=generator)
            if tuple(tokens.tolist()) not in self.held_out:
                yield tokens, tokens.flip(0)


def usual_update(trial: Trial, batch_size: int, device: torch.device) -> Callable[[], Tensor]:
    """Build the update of the usual script, baseline (a).

    Raises:
        ConfigError: If the trial is not to reverse ids.
    """
    network, length = _prepare(trial, device)
    held_out = {tuple(row) for row in trial.stream.test().tokens.tolist()}
    samples = Samples(network.query, length, held_out)
    batches = iter(DataLoader(samples, batch_size=batch_size))
    step = _make_step(network, trial.preset, all_logits=True)

    def update() -> Tensor:
        tokens, targets = next(batches)
        loss = step(tokens.to(device), targets.to(device))
        loss.item()
        return loss

    return update


def good_update(trial: Trial, batch_size: int, device: torch.device) -> Callable[[], Tensor]:
    """Build the update of the good script, baseline (b).

    Raises:
        ConfigError: If the trial is not to reverse ids.
    """
    network, length = _prepare(trial, device)
    step = _make_step(network, trial.preset, all_logits=False)
    generator = torch.Generator().manual_seed(1)

    def update() -> Tensor:
        tokens = torch.randint(network.query, (batch_size, length), generator=generator)
        tokens = tokens.to(device, non_blocking=True)
        return step(tokens, tokens.flip(1))

    return update


def _prepare(trial: Trial, device: torch.device) -> tuple[ScriptedNetwork, int]:
    batch = trial.stream.test()
    length = batch.tokens.shape[1]
    if not isinstance(trial.model, PositionEncodedRNN) or batch.targets.shape[1] != length:
        raise ConfigError("the scripts to compare with reverse sequences of ids of one length")
    network = ScriptedNetwork(trial.model, length + batch.num_queries, batch.num_queries)
    return network.to(device), length


def _make_step(
    network: ScriptedNetwork, preset: Preset, *, all_logits: bool
) -> Callable[[Tensor, Tensor], Tensor]:
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(
        parameters, lr=LEARNING_RATE, betas=preset.betas, eps=preset.epsilon
    )

    def step(tokens: Tensor, targets: Tensor) -> Tensor:
        logits = network(tokens, all_logits=all_logits)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        if preset.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, preset.clip_norm)
        optimizer.step()
        return loss.detach()

    return step
