"""The ready grammars by name: `guided.grammar("smiles")`.

They live in the folder ``grammars`` at the root of the repository, next to the accepted and rejected examples that the
tests replay; a wheel carries them as ``guided/grammars``.
"""

from __future__ import annotations

from pathlib import Path

from guided.errors import GrammarError
from guided.grammar.ir import Grammar

__all__ = ["examples", "grammar", "names", "source"]

_PACKAGE = Path(__file__).resolve().parent.parent
_SEPARATOR = "%%"


def _folder() -> Path:
    for folder in (_PACKAGE / "grammars", _PACKAGE.parent / "grammars"):
        if (folder / "json.gbnf").is_file():
            return folder
    raise GrammarError(
        "the folder of ready grammars is missing", where=str(_PACKAGE / "grammars"), remedy="Install guided anew."
    )


def names() -> tuple[str, ...]:
    """The names that `grammar` knows.

    >>> "smiles" in names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().iterdir() if path.suffix in (".lark", ".gbnf")))


def source(name: str) -> Path:
    """The file of a ready grammar, to read or to copy and change.

    Raises `GrammarError` for a name that there is not.
    """
    if name in names():
        for suffix in (".lark", ".gbnf"):
            path = _folder() / f"{name}{suffix}"
            if path.is_file():
                return path
    raise GrammarError(f"there is no grammar called {name!r}", remedy=f"The names are: {', '.join(names())}.")


def grammar(name: str, *, start: str | None = None) -> Grammar:
    """A ready grammar; ``start`` begins with another of its rules than the whole.

    >>> grammar("smiles").rules[0].name
    'root'
    """
    path = source(name)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".gbnf":
        from guided.grammar.gbnf import gbnf

        return gbnf(text, start=start or "root")
    from guided.grammar.lark import lark

    return lark(text, start=start or "start")


def examples(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts that a ready grammar accepts, and texts that it rejects."""
    path = source(name)
    accepted, rejected = (path.with_suffix(f".{kind}.txt") for kind in ("accepted", "rejected"))
    return _read(accepted), _read(rejected)


def _read(path: Path) -> tuple[str, ...]:
    """Texts of one or more lines, with a line ``%%`` between them; the last newline belongs to the file."""
    text = path.read_text(encoding="utf-8")
    return tuple(text.removesuffix("\n").split(f"\n{_SEPARATOR}\n"))
