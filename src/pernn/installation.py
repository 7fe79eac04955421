"""How an optional part is added to the installation that runs."""

import json
import shlex
import shutil
import sys
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this very installation of pernn.

    No package index has pernn. A clone that was installed with `-e` is named by its folder; of any
    other installation, as from a wheel, the extra's own packages are.
    """
    # Slow to import, and needed only on the way out.
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    words, folder = [_pip(), "install"], Path.cwd()
    try:
        found = distribution("pernn")
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        is_clone = origin.get("dir_info", {}).get("editable", False)
        folder = Path(unquote(urlsplit(origin.get("url", "")).path)) if is_clone else folder
        needed = [] if is_clone else list(found.requires or [])
    except PackageNotFoundError:
        # The sources alone are on the path.
        needed = []
    pairs = [line.partition("; extra == ") for line in needed]
    if packages := [name for name, _, of in pairs if of.strip("'\"") == extra]:
        words += [shlex.quote(name) for name in packages]
    else:
        place = "." if folder == Path.cwd() else str(folder)
        words += ["-e", f"'{place}[{extra}]'"]
    return " ".join(words)


def _pip() -> str:
    """Return how pip is called for the interpreter that runs, from here."""
    python = Path(sys.executable)
    if Path(shutil.which("pip") or "").parent == python.parent:
        return "pip"
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"{shlex.quote(str(python))} -m pip"
