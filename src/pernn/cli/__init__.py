"""The command line: one file per verb."""


def main() -> None:
    """Run the command line and leave with its exit status."""
    from .app import run

    raise SystemExit(run())
