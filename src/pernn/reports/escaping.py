"""Texts from files made safe to show: no control characters, no markup."""

import unicodedata

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: control, format, lone surrogate, line and paragraph break."""


def clean(text: str) -> str:
    """Replace control, format and line-break characters by spaces."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(sign) in UNPRINTABLE else sign for sign in text)


def escape_markdown(text: str) -> str:
    """Make any text safe in a cell of a Markdown table: one line, no markup, no HTML."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\`*[]|" else sign for sign in text)
