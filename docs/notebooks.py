"""Execute the notebooks in Jupyter and keep in them what they showed: `make notebooks`."""

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"


def digest(cells: list[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of the code, which tells whether the outputs are still its own."""
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def main() -> int:
    """Execute those that are named, else all, each in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        book = nbformat.read(path, as_version=4)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            where = {"metadata": {"path": folder}}
            NotebookClient(book, timeout=None, record_timing=False, resources=where).execute()
        book.metadata["pernn"] = {"code_sha256": digest(book.cells)}
        nbformat.write(book, path)
        print(f"{path}: {time.monotonic() - began:,.0f} seconds")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
