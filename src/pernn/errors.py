"""The exception tree, and what messages share.

PernnError
├── ConfigError        an invalid value, key or combination (also a ValueError)
├── MachineError       this machine lacks what was asked for: a device, an optional package
├── StoreError         results directories
│   ├── CorruptError   a file whose content is not what was written
│   ├── VersionError   written by a newer pernn
│   └── BusyError      another process holds the run
└── TrialError         a trial could not be finished: the numbers went wrong
"""

import pathlib
import shlex
import sys

MAX_MESSAGE = 2_000
"""Characters of a message: a value of megabytes that is quoted in one says nothing more."""


def one_line(text: str) -> str:
    r"""Make text one printable line of bounded length.

    Examples:
        >>> print(one_line("a\nb"))
        a\nb
    """
    if len(text) > MAX_MESSAGE:
        text = f"{text[:MAX_MESSAGE]} … ({len(text) - MAX_MESSAGE:,} characters more)"
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 thread`, `2 threads`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def show_time(seconds: float | None) -> str:
    """Return a time in two units at most, or an empty string."""
    if seconds is None:
        return ""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 48:
        return f"about {hours / 24:.1f} days"
    if hours >= 1:
        return f"about {int(hours)} h {int(minutes % 60)} min"
    return f"about {minutes:.0f} min" if minutes >= 10 else f"about {seconds:.0f} s"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    No package index has pernn: outside a clone the extra's own packages are named.
    """
    # Slow to import, and needed only on the way out.
    from importlib.metadata import requires

    clone = pathlib.Path(__file__).parents[2]
    if (clone / "pyproject.toml").is_file():
        words = f"-e '{'.' if clone == pathlib.Path.cwd() else clone}[{extra}]'"
    else:
        pairs = [line.partition("; extra == ") for line in requires("pernn") or ()]
        words = shlex.join(name for name, _, of in pairs if of.strip("'\"") == extra)
    return f"{shlex.quote(sys.executable)} -m pip install {words}"


class PernnError(Exception):
    """Base of all errors that pernn raises on purpose."""

    def __str__(self) -> str:
        """Return the message; names and values that it quotes cannot break out of their line."""
        return one_line(super().__str__())


class ConfigError(PernnError, ValueError):
    """An invalid value, key or combination of values."""


class MachineError(PernnError):
    """This machine lacks what was asked for."""


class StoreError(PernnError):
    """A results directory cannot be read or written."""


class CorruptError(StoreError):
    """A file does not hold what was written to it."""


class VersionError(StoreError):
    """A directory was written by a newer version of pernn."""


class BusyError(StoreError):
    """Another process is working on this run."""


class TrialError(PernnError):
    """A trial cannot go on, for example with a NaN loss."""
