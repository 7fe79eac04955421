"""Drawings of a report: the figure of an experiment, and the same trials laid out another way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pernn.lab.experiments import Experiment
from pernn.lab.trials import unroll

from .escaping import escape_markdown
from .figures import LINK, Format, draw, inline, render
from .labels import Labels, footer
from .records import Record, matches

FORMATS: tuple[Format, ...] = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """One figure, as files and as part of a page.

    Attributes:
        stem: Its file name without the ending.
        caption: What it shows.
        missing: Why it was left out; empty if it was not.
        footer: How the trials were run, and what its signs mean; empty if it was left out.
        contents: File name → content; empty if it was left out.
        inlined: The drawing as part of a page, from `inline`; empty if it was left out.
    """

    stem: str
    caption: str
    missing: str = ""
    footer: str = ""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    inlined: str = ""

    @staticmethod
    def of(
        stem: str,
        experiment: Experiment,
        records: Sequence[Record],
        scale: str,
        formats: Sequence[Format],
        caption: str = "",
    ) -> "Drawing":
        """Draw an experiment's figure; the caption is its question if none is given."""
        figure = draw(experiment, records, scale)
        return Drawing(
            stem,
            caption or experiment.question,
            footer=footer(experiment, records, scale),
            contents={f"{stem}.{form}": render(figure, form) for form in formats},
            inlined=inline(figure, stem),
        )

    @property
    def sentence(self) -> str:
        """The caption with a full stop, unless it is a question."""
        return self.caption if self.caption.endswith(("?", ".")) else f"{self.caption}."

    def inline(self, prefix: str = "") -> str:
        """Return it as part of a page; the prefix tells it from those of other reports."""
        return LINK.sub(rf"\g<1>{prefix}", self.inlined)

    def markdown(self, form: Format) -> str:
        """Show the figure in Markdown, in a format, or say why it is not there."""
        name, sentence = escape_markdown(self.caption), escape_markdown(self.sentence)
        if self.missing:
            return f"*{name}*: {escape_markdown(self.missing)}."
        return f"![{name}]({self.stem}.{form})\n\n*{sentence}* {escape_markdown(self.footer)}."


def draw_extra_figures(
    experiment: Experiment,
    records: Sequence[Record],
    scale: str = "",
    formats: Sequence[Format] = FORMATS,
) -> list[Drawing]:
    """Draw the further figures of an experiment, in its order.

    Args:
        experiment: Its `more_figures` say what is drawn, its labels how they are called.
        records: Finished trials; a figure whose rows none of them has is left out.
        scale: Of the sweep, said in the captions.
        formats: Which files are drawn.

    Raises:
        ConfigError: If two trials compete for one point, or a layout cannot be drawn.
        CorruptError: If the table of a layout is none.
    """
    label, found = Labels(experiment.labels), []
    for stem, layout in experiment.more_figures.items():
        plain = stem.replace("_", " ")
        caption = label(stem) if stem in experiment.labels else plain[0].upper() + plain[1:]
        shown = [record for record in records if matches(record, layout.where)]
        if layout.where and len(shown) in (0, len(records)):
            continue
        missing = "no finished trials yet" if not records else ""
        if records and not unroll(shown, layout.table):
            missing = f"no finished trial has a table {layout.table!r}"
        if missing:
            found.append(Drawing(stem, caption, missing))
            continue
        about = replace(experiment, question=caption, figure=replace(layout, where={}))
        found.append(Drawing.of(stem, about, shown, scale, formats))
    return found
