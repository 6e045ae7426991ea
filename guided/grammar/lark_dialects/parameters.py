"""The parameters of llguidance's rules, one integer of 64 bits each: what a use passes on, and what a condition asks.

``start: list::0``, ``list::_ : "a" list::incr(_) %if lt(_, 3) | ""``.  Here these are data; the rules are written out
for the values that come up when they are lowered.  Source: llguidance's ``parametric.md`` and trials with 1.9.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "ARGUMENTS",
    "COMPARISONS",
    "Argument",
    "Bits",
    "Compared",
    "Condition",
    "Connected",
    "Constant",
    "Masked",
    "Stepped",
]

_ALL = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Bits:
    """The bits ``low`` to below ``high`` of a parameter; all of them are ``_``."""

    low: int = 0
    high: int = 64

    def of(self, value: int) -> int:
        """Their value."""
        return (value >> self.low) & self.most

    @property
    def most(self) -> int:
        """The greatest value that they have."""
        return (1 << (self.high - self.low)) - 1


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    value: int

    def of(self, value: int) -> int:
        """The number, whatever the parameter is."""
        return self.value


@dataclass(frozen=True, slots=True)
class Masked:
    """The parameter with some bits kept and some set."""

    kept: int = _ALL
    added: int = 0

    def of(self, value: int) -> int:
        """The new value."""
        return value & self.kept | self.added


@dataclass(frozen=True, slots=True)
class Stepped:
    """The parameter with some bits, as a number, one more or less, but not beyond their ends."""

    bits: Bits
    up: bool

    def of(self, value: int) -> int:
        """The new value."""
        if self.bits.of(value) == (self.bits.most if self.up else 0):
            return value
        step = 1 << self.bits.low
        return value + step if self.up else value - step


Argument: TypeAlias = Constant | Masked | Stepped
ARGUMENTS = ("incr", "decr", "bit_and", "bit_or", "set_bit", "clear_bit")


@dataclass(frozen=True, slots=True)
class Compared:
    """Some bits, or how many of them are set, beside a number: ``operator`` is a key of `COMPARISONS`."""

    operator: str
    bits: Bits
    number: int
    counted: bool = False

    def holds(self, value: int) -> bool:
        """Is it so for this parameter?"""
        found = self.bits.of(value)
        if self.counted:
            found = found.bit_count()
        match self.operator:
            case "eq":
                return found == self.number
            case "ne":
                return found != self.number
            case "lt":
                return found < self.number
            case "le":
                return found <= self.number
            case "gt":
                return found > self.number
            case _:
                return found >= self.number


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True, slots=True)
class Connected:
    """Conditions under ``and``, ``or`` or ``not``; of none, ``and`` holds."""

    operator: str
    parts: tuple[Condition, ...]

    def holds(self, value: int) -> bool:
        """Is it so for this parameter?"""
        if self.operator == "not":
            return not self.parts[0].holds(value)
        found = [part.holds(value) for part in self.parts]
        return all(found) if self.operator == "and" else any(found)


Condition: TypeAlias = "Compared | Connected"
