"""The product for strings that are internationalized host names (format ``idn-hostname``).

The automaton knows what is regular of IDNA (`guided.grammar.formats.idna_labels`); the checker counts lengths, in
the encoding that a label has on the wire, decodes encoded labels, and sees to Unicode's normal form
(`guided.grammar.formats.idna_names`).  How both go together is in `guided.constraint.formats.machine`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from guided.constraint.formats.completion import FormatCompletions
from guided.constraint.formats.host_refusals import HostRefusals
from guided.constraint.formats.host_text import HostText
from guided.constraint.formats.machine import FormatMachine
from guided.constraint.product import ProductMachine
from guided.grammar.formats.idna_languages import reads_host_name
from guided.grammar.formats.idna_names import beginning
from guided.grammar.regular.expr import Expr

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine
    from guided.constraint.formats.machine import Machine


class HostCompletions(FormatCompletions):
    """Short completions of one machine's states."""

    def __init__(self, machine: ProductMachine[HostText]) -> None:
        super().__init__(machine)
        self._hosts: ProductMachine[HostText] = weakref.proxy(machine)

    def way_out(self, state: int) -> bytes:
        """A short text after which ``state`` may end, where the automaton's own does not pass."""
        machine = self._hosts
        text = machine.split(state)[1]
        assert text is not None
        path: list[tuple[int, bytes]] = []
        at = state
        for byte in text.way_out():
            path.append((at, bytes((byte,))))
            at = machine.advance_text(at, bytes((byte,)))
        rest = self.direct(at)
        assert rest is not None
        return self._remember(path, rest, at)


class HostMachine(FormatMachine[HostText]):
    """The append-only tables of a compiled constraint in which some strings are such names."""

    format = "idn-hostname"

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        super().__init__(inner, base)
        self.beginning = HostText(beginning(), b"")
        self.refusals = HostRefusals(self)
        self.completions = HostCompletions(self)

    def is_such(self, language: Expr) -> bool:
        """Is what is left of a string's text the rest of a host name?"""
        return reads_host_name(language)

    def why(self, text: HostText, byte: int) -> str:
        """Why the checker refuses a byte, after "it"."""
        return (
            "leaves no host name: a label or the name is too long in its encoded form, an encoded label stands for "
            "none, or it is not in Unicode's normal form C"
        )
