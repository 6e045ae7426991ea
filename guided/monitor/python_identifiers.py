"""`python_identifiers`: behind a dot in Python code only names that exist, as jedi or a language server sees them.

After Agrawal et al., 2023.  Where the logical line itself binds no name of the expression before the dot, the analysis
is asked about the lines before and that expression alone: the half-written line around it cannot matter then, and one
answer serves the whole line.  Others are analysed in place, once as they stand and once with a name and the missing
closing brackets put behind the cursor, and the answers are united.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.monitor.analyses import Analyses, Engine, Statistics
from guided.monitor.interface import Monitor
from guided.monitor.json_rpc import Connection
from guided.monitor.names import IdentifierBytes, Names, Verdict
from guided.monitor.python_text import (
    KEYWORDS,
    TAIL,
    Layout,
    Place,
    Primary,
    PythonText,
    before_dot,
    binds,
    imports,
    is_known,
    may_have_more,
    names_in,
)

__all__ = ["PythonIdentifiers", "python_identifiers"]

_ALPHABET = IdentifierBytes.of()
_REMEMBERED = 256
"""Sets of names whose tries are kept."""
_DYNAMIC = "__getattr__"
"""Objects of a class that defines this have any attribute; jedi lists it only where it is defined."""


class PythonIdentifiers(Monitor):
    """See `python_identifiers`."""

    trigger_bytes = PythonText.trigger_bytes
    context_start: Hashable = Layout()

    def __init__(self, analyses: Analyses, *, assignments: bool = False, certain: bool = False) -> None:
        self.analyses = analyses
        self.certain = certain
        """Does the engine itself say where it does not know all names?"""
        self.assignments = assignments
        self._known: dict[tuple[frozenset[str], bool], Names] = {}

    def __repr__(self) -> str:
        return f"Python identifiers ({self.analyses.what})"

    @property
    def statistics(self) -> Statistics:
        """Counts of questions, answers and failures."""
        return self.analyses.statistics

    @property
    def notes(self) -> tuple[str, ...]:
        """Failures of the analysis so far."""
        return self.analyses.notes

    @property
    def lexical_start(self) -> Hashable:
        """Code."""
        return PythonText.start

    def read(self, lexical: Any, byte: int) -> Hashable:
        """See `PythonText.read`."""
        return PythonText.read(lexical, byte)

    def triggers(self, lexical: Any) -> bool:
        """Behind a dot that is no number's."""
        return PythonText.dereferences(lexical)

    def follow(self, context: Any, lexical: Any, byte: int, position: int) -> Any:
        """See `PythonText.follow`."""
        return PythonText.follow(context, lexical, byte, position)

    def screen(self, text: bytes, context: Any) -> Callable[[bytes], bool]:
        """Looks whether the root of a chain can be known, without an analysis."""
        decoded = text.decode("utf-8", "replace")
        names, tail = names_in(decoded), decoded[-TAIL:]

        def may_know(prefix: bytes) -> bool:
            further = prefix.decode("utf-8", "replace")
            found = before_dot(tail + further, inside=True)
            if isinstance(found, Place):
                return found is Place.EXPRESSION
            before = (tail + further)[: found.start]
            # The token may itself hold what makes a name known, and imports make it so.
            return (
                found.root is None
                or is_known(found.root, names)
                or found.root in names_in(before)
                or any(mark in further for mark in "*\r\n")
                or imports(before)
            )

        return may_know

    def analyse(self, text: bytes, context: Any) -> Verdict | None:
        """The names behind the dot, or None."""
        if self.analyses.given_up:
            return None
        decoded = text.decode("utf-8", "replace")
        line = len(text[: context.line].decode("utf-8", "replace"))
        before = before_dot(decoded, inside=bool(context.brackets))
        if isinstance(before, Place):
            found = self._in_place(decoded, context) if before is Place.EXPRESSION else None
            begins = False
        else:
            found = self._of(decoded, before, line, context)
            begins = not decoded[line : before.start].strip()
        if not found or _DYNAMIC in found:
            return None
        names = self._names(found, self.assignments and begins)
        return names.begin() if names.names else None

    def _names(self, found: frozenset[str], assignable: bool) -> Names:
        """One object for equal names, so that what is known of its tokens serves all places."""
        key = (found, assignable)
        names = self._known.get(key)
        if names is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            names = self._known[key] = Names.of(found, _ALPHABET, assignable=assignable, reserved=KEYWORDS)
        return names

    def _of(self, text: str, primary: Primary, line: int, context: Layout) -> frozenset[str] | None:
        before, current = text[:line], text[line : primary.start]
        if not self.certain and may_have_more(text[: primary.start], primary):
            return None
        if imports(current):
            return self._in_place(text, context)
        words, held = names_in(current), names_in(primary.text)
        if primary.root is None:
            if not held:
                # A literal is the same everywhere.
                return self.analyses.complete(primary.text + ".")
        elif not is_known(primary.root, names_in(before) | words):
            return None
        bound = bool(words & held) and binds(current, words)
        if bound and ("lambda" in words or ("for" in words and context.brackets)):
            # Analyses do not see what a half-written function or comprehension binds.
            return None
        if bound or primary.start < line or (primary.attributes is None and "\n" in primary.text):
            return self._in_place(text, context)
        asked = before + current[: len(current) - len(current.lstrip(" \t"))]
        if primary.attributes is None or primary.root is None:
            return self.analyses.complete(asked + primary.text + ".")
        asked += primary.root + "."
        found = self.analyses.complete(asked)
        for attribute in primary.attributes:
            # What is not known of the shorter chain is not known of the longer one.
            if not found or _DYNAMIC in found or attribute not in found:
                return None
            asked += attribute + "."
            found = self.analyses.complete(asked)
        return found

    def _in_place(self, text: str, context: Layout) -> frozenset[str] | None:
        found = self.analyses.complete(text)
        # With a name behind the cursor and the brackets closed, the line may be whole.
        closed = self.analyses.complete(text, "_" + context.closers)
        return (found or frozenset()) | (closed or frozenset()) or None


class JediProcess:
    """jedi in a child process: `guided.monitor.jedi_worker`."""

    def __init__(self, project: str, path: str | None, environment: str | None) -> None:
        self._parameters = {"project": project, "path": path, "environment": environment}
        self._connection = Connection([sys.executable, "-m", "guided.monitor.jedi_worker"])

    def complete(self, source: str, suffix: str, seconds: float) -> frozenset[str] | str | None:
        """Ask the process."""
        parameters = {"source": source, "suffix": suffix, **self._parameters}
        answer = self._connection.call("complete", parameters, seconds)
        return str(answer["why"]) if answer["why"] else frozenset(answer["names"])

    def close(self) -> None:
        """Kill it."""
        self._connection.close()


def python_identifiers(
    project: str | Path,
    *,
    path: str | Path | None = None,
    environment: str | Path | None = None,
    assignments: bool = False,
    seconds: float = 30.0,
    required: bool = False,
    engine: Callable[[], Engine] | None = None,
) -> PythonIdentifiers:
    """A monitor for Python code of a project folder: behind a dot come only names that jedi knows there.

    ``path`` is the file being written (relative imports count from it), ``environment`` the folder of the virtual
    environment or the interpreter whose packages the code imports; both may be left out.  ``assignments``: at the start
    of a statement a new attribute may be made of any object (``box.total = 0``, ``box.total: int``), not only in the
    class that is being written.  ``seconds`` is the time for
    one analysis (the first of a large package takes several); what takes longer is not known, with a
    `MonitorWarning`, and after three failures in a row the monitor is off; with ``required`` a failure raises
    `ServerError` instead.  ``engine`` replaces jedi: a function that starts an `Engine`, such as a language server's
    (`guided.monitor.language_server`).

    Nothing is demanded inside strings (f-strings too) and comments, and where not all names are known: in a class
    that is being written, behind what is passed, returned or assigned without a type, and so on
    (`guided.monitor.jedi_knowledge`; ``statistics.unknown`` counts the reasons). Where something is known, the name
    must stand directly behind the dot, without white space, and be ended by a break character. "Known" is what static
    analysis says: names under ``TYPE_CHECKING`` and of other platforms count as existing.

    Use it with `guided.monitor.monitored`.  Raises `GuidedError` for a folder that does not exist or without jedi.
    """
    folder = Path(project)
    if not folder.is_dir():
        raise GuidedError("there is no such project folder", where=str(folder), remedy="Give the root of the project.")
    if engine is None:
        if find_spec("jedi") is None:
            raise GuidedError(
                "reading Python code needs jedi, which is not installed",
                remedy="Run: pip install 'guided-decoding[monitor]'",
            )
        start: Callable[[], Engine] = partial(
            JediProcess,
            str(folder.absolute()),
            None if path is None else str(Path(path).absolute()),
            None if environment is None else str(environment),
        )
        return PythonIdentifiers(Analyses(start, "jedi", seconds, required), assignments=assignments, certain=True)
    return PythonIdentifiers(Analyses(engine, "the language server", seconds, required), assignments=assignments)
