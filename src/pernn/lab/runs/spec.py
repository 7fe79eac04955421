"""`RunSpec`: all that decides a trial's numbers, and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

import pernn.lab.corpora  # noqa: F401  its task joins the registry
from pernn.errors import ConfigError
from pernn.lab.config import Config, flatten, grouped, read_file
from pernn.lab.cores import AnyCore, LSTMConfig
from pernn.lab.encodings import ENCODINGS, AnyEncoding, PositionalEncodingConfig, SinusoidalConfig
from pernn.lab.interfaces import Task
from pernn.lab.store import check_format
from pernn.lab.tasks import AnyTask, ReverseOrderingConfig, TaskConfig
from pernn.lab.training import PRESETS, PresetName, TrainingConfig
from pernn.randomness import MAX_SEED


class Pretraining(Config):
    """Task and training of the first stage, all else the trial's.

    Attributes:
        task: What is to be learnt first, with fewer ids than afterwards.
        training: How long and how fast.
    """

    task: AnyTask
    training: TrainingConfig = TrainingConfig()


class StabilityAnalysis(Config):
    """Gradient stability in the checkpoints that the training keeps (`training.keep_interval`).

    Attributes:
        num_per_condition: Pairs of sequences per condition.
        source_step: Step of the input, from 1, at which a pair shares its target.
        map_per_condition: Pairs per condition and step of the target in a map of all steps; no
            map if 0.

    Source: Morita (2024), section 2.3 of versions 2 and 3.
    """

    num_per_condition: Annotated[int, Field(ge=1, le=2**20)] = 256
    source_step: Annotated[int, Field(ge=1, le=2**16)] = 1
    map_per_condition: Annotated[int, Field(ge=0, le=2**20)] = 0


class AnatomyAnalysis(Config):
    """Analysis of wrong answers and states at matched accuracies.

    Attributes:
        kind: `anatomy`.
        levels: Training accuracies. Each is measured in the checkpoint nearest to the first line
            of metrics that has it, or in the last one if the training never had it.
        num_sequences: Sequences whose answers and states are looked at.
        noise: Standard deviations of noise on the weights that accuracy is measured with, as
            shares of each tensor's root mean square.
    """

    kind: Literal["anatomy"]
    levels: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = (0.8, 0.9)
    num_sequences: Annotated[int, Field(ge=32, le=2**20)] = 4_096
    noise: tuple[Annotated[float, Field(gt=0, le=1)], ...] = (0.01, 0.1)


class DescentAnalysis(Config):
    """Stability and noise of gradients, throughout and at matched accuracies.

    Attributes:
        kind: `descent`.
        levels: Training accuracies, as for `anatomy`.
        num_per_condition: Pairs of sequences per condition.
        num_batches: Batches, as large as those of the training, whose gradients are compared.
    """

    kind: Literal["descent"]
    levels: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = (0.5, 0.8, 0.95)
    num_per_condition: Annotated[int, Field(ge=1, le=2**20)] = 64
    num_batches: Annotated[int, Field(ge=2, le=2**16)] = 64


Analysis = StabilityAnalysis | AnatomyAnalysis | DescentAnalysis


class RunSpec(Config):
    """One trial: task, network, training, seed. Its fingerprint names the run.

    `core.hidden_size` is the one knob of the width: an embedding whose size is not given is as wide
    as the state, and an encoding whose size is not given as wide as the embedding.

    Attributes:
        task: What is to be learnt.
        core: The recurrent layer.
        encoding: The positional encoding.
        embedding_size: Width of a token's vector; `core.hidden_size` if not given.
        preset: `as-run` (the published runs) or `as-written` (the published texts).
        training: How long and how fast.
        seed: Which data and which initial weights.
        pretraining: If given, the network is trained on this first, then frozen but for the
            weights of the ids that are new in `task`. Left out of the file if absent.
        analysis: If given, this is what follows on a training run that is otherwise the same, in
            a directory of its own. Left out of the file if absent.
    """

    younger: ClassVar[tuple[str, ...]] = ("pretraining", "analysis")
    task: AnyTask = ReverseOrderingConfig()
    core: AnyCore = LSTMConfig()
    encoding: AnyEncoding = SinusoidalConfig()
    embedding_size: Annotated[int, Field(ge=1, le=2**20)] = 512
    preset: PresetName = "as-run"
    training: TrainingConfig = TrainingConfig()
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 111
    pretraining: Pretraining | None = None
    analysis: Analysis | None = None

    @model_validator(mode="after")
    def _widths(self) -> "RunSpec":
        # Validators of a frozen model may still put its values in place.
        values, code = self.__dict__, self.encoding
        if "embedding_size" not in self.model_fields_set:
            values["embedding_size"] = self.core.hidden_size
        if isinstance(code, PositionalEncodingConfig) and "size" not in code.model_fields_set:
            values["encoding"] = code.override({"size": self.embedding_size})
        return self

    @model_validator(mode="after")
    def _fits(self) -> "RunSpec":
        code, when = self.encoding, self.training.encoding_schedule
        if when != "always" and (
            not isinstance(code, PositionalEncodingConfig) or self.pretraining or self.analysis
        ):
            raise ValueError(
                f"training.encoding_schedule={when} needs a positional encoding, and neither "
                "pretraining nor analysis"
            )
        if not isinstance(code, PositionalEncodingConfig):
            return self
        if code.masked is not None and not self.build_task().num_queries:
            raise ValueError(
                "encoding.masked needs an output phase of queries that begins at the same step in "
                f"every sequence, and task {self.task.kind} has none"
            )
        if code.combine == "add" and code.size != self.embedding_size:
            raise ValueError(
                f"encoding.size {code.size} cannot be added to embedding_size "
                f"{self.embedding_size}: make them equal or use encoding.combine=concat"
            )
        return self

    @model_validator(mode="after")
    def _stages_fit(self) -> "RunSpec":
        source_step = getattr(self.analysis, "source_step", 1)
        if self.analysis is not None and source_step > self.task.length:
            raise ValueError(
                f"analysis.source_step {source_step} lies beyond the input of "
                f"task.length {self.task.length}"
            )
        if self.pretraining is None:
            return self
        first, second = self.pretraining.task.build(), self.task.build()
        if first.vocab_size >= second.vocab_size:
            raise ValueError(
                f"pretraining.task must have fewer ids than task: {first.vocab_size} are not fewer "
                f"than {second.vocab_size}"
            )
        known = getattr(self.task, "num_known", first.vocab_size)
        if known != first.vocab_size:
            raise ValueError(
                f"task.num_known must be the {first.vocab_size} ids of pretraining.task, "
                f"got {known}"
            )
        return self

    def override(self, assignments: Mapping[str, Any]) -> "RunSpec":
        """Replace values by dotted path, widths following `core.hidden_size`.

        So does the width of an encoding its frequencies, if they are replaced.

        Raises:
            ConfigError: If a path names nothing or the result is invalid.
        """
        old, new = self.core.hidden_size, assignments.get("core.hidden_size")
        following: dict[str, Any] = {}
        if new is not None and self.embedding_size == old:
            following["embedding_size"] = new
        code, kind = self.encoding, assignments.get("encoding.kind", self.encoding.kind)
        follows = getattr(code, "size", None) == old and getattr(code, "frequencies", None) is None
        if new is not None and follows and isinstance(kind, str) and "encoding" not in assignments:
            keys = ENCODINGS.find(kind).model_fields
            following |= {"encoding.size": new} if "size" in keys else {}
        frequencies = assignments.get("encoding.frequencies")
        if isinstance(frequencies, list | tuple):
            following["encoding.size"] = 2 * len(frequencies)
        return super().override({**following, **assignments})

    @classmethod
    def read(cls, path: Path) -> "RunSpec":
        """Read a TOML or JSON file, for example a run's `spec.json`.

        Raises:
            ConfigError: If it cannot be read or is no spec.
            VersionError: If a newer version wrote it.
        """
        values: Mapping[str, Any] = read_file(path)
        if values.keys() != {"format", "fingerprint", "spec"}:
            return cls.load(values)
        check_format(path, values)
        spec = cls.load(values["spec"])
        if spec.fingerprint() != values["fingerprint"]:
            raise ConfigError(
                f"{path}: was changed since it was written: for another trial use --set, or leave "
                "out its format and fingerprint"
            )
        return spec

    def build_task(self) -> Task:
        """Make the task as the preset has it."""
        return self.task_under_preset.build()

    @property
    def task_under_preset(self) -> TaskConfig:
        """The task's config with everything filled in that the preset decides."""
        return self.task.under(PRESETS[self.preset].rare_share, self.preset)

    def first_stage(self) -> "RunSpec | None":
        """Return the run that must be finished before, or `None`."""
        if self.analysis is not None:
            return self.model_copy(update={"analysis": None})
        if self.pretraining is None:
            return None
        first = {"task": self.pretraining.task, "training": self.pretraining.training}
        return self.model_copy(update={**first, "pretraining": None})

    @property
    def stages(self) -> tuple["RunSpec", ...]:
        """This run and all that must precede it, the first last."""
        first = self.first_stage()
        return (self,) if first is None else (self, *first.stages)

    @property
    def analysed_updates(self) -> tuple[int, ...]:
        """Updates whose checkpoints a finished training keeps, 0 included.

        What an analysis measures is among them.

        Before the first update the weights are those of the spec: no checkpoint is needed.
        """
        last, step = self.training.iterations, self.training.kept_interval
        return (*range(0, last, step), last)

    @property
    def num_updates(self) -> int:
        """Updates of all stages."""
        return sum(stage.num_own_updates for stage in self.stages)

    @property
    def num_own_updates(self) -> int:
        """Updates of the last stage, or checkpoints that an analysis measures."""
        if isinstance(self.analysis, AnatomyAnalysis):
            return len(self.analysis.levels)
        return self.training.iterations if self.analysis is None else len(self.analysed_updates)

    @property
    def label(self) -> str:
        """Return which trial this is, short, for people."""
        words = [self.task.kind, self.core.kind, self.encoding.kind]
        known = "" if self.pretraining is None else f" after {self.pretraining.task.sizes}"
        analysed = "" if self.analysis is None else " analysed"
        return f"{' '.join(words)} {self.task.sizes}{known}{analysed} seed {self.seed}"


def tell_apart(specs: Mapping[str, RunSpec]) -> dict[str, str]:
    """Return labels, with the settings in which equal ones differ."""
    labels = {}
    for label, runs in grouped((spec.label, run) for run, spec in specs.items()).items():
        rows = {run: flatten(specs[run].dump()) for run in runs} if len(runs) > 1 else {}
        keys = dict.fromkeys(key for row in rows.values() for key in row)
        differ = [key for key in keys if len({str(row.get(key)) for row in rows.values()}) > 1]
        for run in runs:
            told = (f"{key}={rows[run].get(key)}" for key in differ)
            labels[run] = " ".join([label, *told])
    return labels
