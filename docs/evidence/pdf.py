"""docs/evidence/report.pdf from report.md, by pandoc and typst: `make evidence-pdf`."""

from pathlib import Path

import pypandoc
import typst

FOLDER = Path(__file__).parent
# The tables are wide.
PAGE = "#set page(flipped: true)\n#set text(size: 8pt)\n#set document(date: none)\n"

source = pypandoc.convert_file(
    FOLDER / "report.md", "typst", format="gfm", extra_args=["--standalone", "-V", "fontsize=8pt"]
)
(FOLDER / "report.pdf").write_bytes(typst.compile((PAGE + source).encode()))
