"""Griffe's extension: examples in docstrings are blocks of code on the site, as they are for doctest."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
"""From a prompt at the margin to the next empty line."""


class Docstrings(griffe.Extension):
    """Put examples into fences, and read the double colon in front of a block as Markdown has it."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = re.sub(r"::$", ":", fenced(obj.docstring.value), flags=re.MULTILINE)


def fenced(text: str) -> str:
    """The text with its examples in fences of Python.

    >>> print(fenced("One.\\n\\n>>> 1 + 1\\n2"))
    One.
    <BLANKLINE>
    ```python
    >>> 1 + 1
    2
    ```
    """
    return EXAMPLE.sub(lambda found: f"```python\n{found[0]}\n```", text)
