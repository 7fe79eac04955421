"""What a task looks like: its sequences step by step, as text."""

from dataclasses import dataclass

from .synthetic import SyntheticTask

UNSCORED = "."
"""Stands where no answer is expected."""


@dataclass(frozen=True)
class Picture:
    """One sequence.

    Attributes:
        inputs: What is shown at each step: an id, or the name of a row that is none.
        targets: What is expected there, None where nothing is scored.
    """

    inputs: tuple[int | str, ...]
    targets: tuple[int | None, ...]

    def text(self, width: int = 100) -> str:
        """Draw steps, counted from 1, inputs and targets in three aligned rows.

        Args:
            width: Characters of a line; what is longer goes on below.

        Returns:
            The rows, wrapped together; `.` where nothing is scored.

        Example:
            >>> print(Picture((8, 29, "?", "?"), (None, None, 29, 8)).text())
            step     1  2  3  4
            input    8 29  ?  ?
            target   .  . 29  8
        """
        targets = [UNSCORED if target is None else str(target) for target in self.targets]
        steps = range(1, len(self.inputs) + 1)
        rows = {
            "step": [str(step) for step in steps],
            "input": [str(shown) for shown in self.inputs],
            "target": targets,
        }
        cell = 1 + max(len(word) for row in rows.values() for word in row)
        label = 7
        at_once = max(1, (width - label) // cell)
        return "\n\n".join(
            "\n".join(
                name.ljust(label)
                + "".join(word.rjust(cell) for word in row[first : first + at_once])
                for name, row in rows.items()
            )
            for first in range(0, len(self.inputs), at_once)
        )


def draw_pictures(task: SyntheticTask, num_samples: int = 1, seed: int = 111) -> list[Picture]:
    """Give the first training sequences of a seed."""
    batch = task.stream(seed).train(0, num_samples)
    query, *others = task.feedback.extra_rows or ("",)
    names = {task.vocab_size + 1 + place: name for place, name in enumerate(others)}
    unscored = task.num_steps - task.num_scored
    return [
        Picture(
            inputs=(*(names.get(token, token) for token in tokens), *[query] * batch.num_queries),
            targets=(*[None] * unscored, *targets),
        )
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True)
    ]
