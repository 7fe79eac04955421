"""docs/article/article.pdf from article.md, by pandoc and typst: `make article`."""

from pathlib import Path

import pypandoc
import typst

FOLDER = Path(__file__).parent
PAGE = """\
#set page(paper: "a4", margin: 2cm, numbering: "1")
#set text(size: 9pt)
#set par(justify: true)
#set document(date: none)
#show image: set image(height: 8.5cm)
#show figure.caption: set text(size: 8pt)
"""

text = FOLDER / "article.typ"
body = pypandoc.convert_file(
    FOLDER / "article.md", "typst", format="gfm+implicit_figures", extra_args=["--standalone"]
)
text.write_text(PAGE + body)
try:
    (FOLDER / "article.pdf").write_bytes(typst.compile(text, root=FOLDER.parent))
finally:
    text.unlink()
