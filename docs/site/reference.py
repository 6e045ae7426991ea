"""MkDocs' hook: ``::: guided.part.*`` on a page becomes the reference of every public name of that package.

The names are those of its ``__all__``, the homes those of its imports; nothing is imported for it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
ALL = re.compile(r"^::: ([\w.]+)\.\*$", re.MULTILINE)


def public_names(package: str) -> dict[str, str]:
    """By public name of a package the module that it is defined in."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    homes: dict[str, str] = {}
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            homes.update({each.asname or each.name: node.module for each in node.names})
        elif isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            names = ast.literal_eval(node.value)
    return {name: homes.get(name, package) for name in names}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the names out."""
    return ALL.sub(
        lambda found: "\n\n".join(f"::: {defined(name, home)}.{name}" for name, home in public_names(found[1]).items()),
        markdown,
    )


def defined(name: str, home: str) -> str:
    """Where a name comes from that its home may import, too; of a part of guided the package around it."""
    path = ROOT / home.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and any((each.asname or each.name) == name for each in node.names)
        ):
            return defined(name, node.module)
    return home
