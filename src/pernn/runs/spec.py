"""`RunSpec`: all that decides a trial's numbers, and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from pernn.config import Config, read_file
from pernn.cores import AnyCore, LSTMConfig
from pernn.encodings import AnyEncoding, CodeConfig, SinusoidalConfig
from pernn.randomness import MAX_SEED
from pernn.tasks import AnyTask, ReverseOrderingConfig
from pernn.training import ProtocolName, TrainingConfig


class RunSpec(Config):
    """One trial: task, network, training, seed. Its fingerprint names the run.

    Attributes:
        task: What is to be learnt.
        core: The recurrent layer.
        encoding: The position code.
        embedding_size: Width of a token's vector.
        protocol: `as-run` (the published runs) or `as-written` (the published texts).
        training: How long and how fast.
        seed: Which data and which initial weights.
    """

    task: AnyTask = ReverseOrderingConfig()
    core: AnyCore = LSTMConfig()
    encoding: AnyEncoding = SinusoidalConfig()
    embedding_size: Annotated[int, Field(ge=1, le=2**20)] = 512
    protocol: ProtocolName = "as-run"
    training: TrainingConfig = TrainingConfig()
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 111

    @model_validator(mode="after")
    def _fits(self) -> "RunSpec":
        code = self.encoding
        if not isinstance(code, CodeConfig):
            return self
        if code.masked is not None:
            task = self.task.build()
            if not task.feedback.num_queries(task.num_scored):
                raise ValueError(
                    f"encoding.masked needs an output phase of queries, and task {self.task.kind} "
                    "has none"
                )
        if code.attach == "add" and code.size != self.embedding_size:
            raise ValueError(
                f"encoding.size {code.size} cannot be added to embedding_size "
                f"{self.embedding_size}: make them equal or use encoding.attach=concat"
            )
        return self

    @classmethod
    def read(cls, path: Path) -> "RunSpec":
        """Read a TOML or JSON file; a run's own `spec.json` is one too.

        Raises:
            ConfigError: If it cannot be read or is no spec.
        """
        values: Mapping[str, Any] = read_file(path)
        if values.keys() == {"format", "fingerprint", "spec"}:
            values = values["spec"]
        return cls.load(values)

    @property
    def label(self) -> str:
        """Say which trial this is, short, for people."""
        words = [self.task.kind, self.core.kind, self.encoding.kind]
        return f"{' '.join(words)} K={self.task.vocab_size} L={self.task.length} seed {self.seed}"
