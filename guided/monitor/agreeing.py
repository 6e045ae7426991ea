"""`Agreeing`: monitors that demand something only where all of them do, and then what all of their demands allow.

For monitors that are unsure by themselves.  Where the demands of all must hold, each in its own place, that is
`guided.monitor.joint`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.live import TokenTree
from guided.errors import GuidedError, UnsatisfiableError
from guided.monitor.interface import Monitor
from guided.monitor.joint import Joint
from guided.monitor.names import FREE, Free, Verdict

__all__ = ["Agreed", "Agreeing"]


class _Demand:
    """A verdict as a live language: its texts, and behind each that is over anything."""

    def __init__(self, verdict: Verdict) -> None:
        self.start: Any = verdict

    def __repr__(self) -> str:
        return str(self.start.expected)

    def step(self, at: Any, byte: int) -> Any:
        if isinstance(at, Free):
            return FREE if byte != 0xFF else None
        return at.step(byte)

    def following(self, at: Any) -> Sequence[int]:
        return range(255) if isinstance(at, Free) else sorted(at.continuing() + at.releasing())

    def may_end(self, at: Any) -> bool:
        return isinstance(at, Free) or bool(at.may_end)

    def rest(self, at: Any) -> bytes:
        return b"" if isinstance(at, Free) else bytes(at.rest)

    def row(self, at: Any, tree: TokenTree) -> None:
        return None

    def unfinished(self, at: Any, tree: TokenTree, limit: int) -> Iterable[int] | None:
        return None

    def expected(self, at: Any) -> str:
        return "anything" if isinstance(at, Free) else str(at.expected)


@dataclass(frozen=True)
class Agreed:
    """What several verdicts all allow, until the last of them is over; a `Verdict`."""

    joint: Joint
    at: tuple[Hashable, ...]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> Agreed:
        """The intersection; raises `UnsatisfiableError` where it is empty."""
        together = Joint([_Demand(verdict) for verdict in verdicts])
        return cls(together, together.start)

    @property
    def may_end(self) -> bool:
        """May the text end here for all?"""
        return self.joint.may_end(self.at)

    @property
    def rest(self) -> bytes:
        """The shortest text after which it may."""
        return self.joint.rest(self.at)

    @property
    def expected(self) -> str:
        """The words of all."""
        return self.joint.expected(self.at)

    def step(self, byte: int) -> Verdict | Free | None:
        """What all allow after a byte; `FREE` once every verdict is over."""
        after = self.joint.step(self.at, byte)
        if after is None:
            return None
        return FREE if all(state is FREE for state in after) else Agreed(self.joint, after)

    @property
    def parts(self) -> tuple[Verdict, ...]:
        """Itself alone."""
        return (self,)

    pattern = None
    most = None

    def releasing(self) -> bytes:
        """The bytes after which every verdict is over."""
        return bytes(byte for byte in self.joint.following(self.at) if self.step(byte) is FREE)

    def continuing(self) -> bytes:
        """The others that may come."""
        return bytes(byte for byte in self.joint.following(self.at) if self.step(byte) is not FREE)


class Agreeing(Monitor):
    """Asks all monitors where all of them trigger; nothing is demanded where one of them knows nothing.

    Where their demands contradict each other nothing is demanded either, and `notes` say so.  What one monitor would
    demand inside another's demand is not asked.  Raises `GuidedError` without monitors, and for monitors that never
    trigger at the same place.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self.monitors = tuple(monitors)
        if not self.monitors:
            raise GuidedError("no monitors to agree", remedy="Give at least one.")
        common = set(self.monitors[0].trigger_bytes).intersection(*(one.trigger_bytes for one in self.monitors[1:]))
        if not common:
            raise GuidedError(
                "these monitors never trigger at the same place",
                where="Agreeing",
                remedy="Use guided.monitor.joint, in which each makes its own demands.",
            )
        self.trigger_bytes = bytes(sorted(common))
        self.context_start: Any = tuple(one.context_start for one in self.monitors)
        self._contradictions = 0
        self._counting = threading.Lock()

    def __repr__(self) -> str:
        return f"agreement of {', '.join(map(repr, self.monitors))}"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_counting"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._counting = threading.Lock()

    @property
    def lexical_start(self) -> Hashable:
        """Those of all."""
        return tuple(one.lexical_start for one in self.monitors)

    def read(self, lexical: Any, byte: int) -> Hashable:
        """All after one byte."""
        return tuple(one.read(state, byte) for one, state in zip(self.monitors, lexical, strict=True))

    def triggers(self, lexical: Any) -> bool:
        """Do all?"""
        return all(one.triggers(state) for one, state in zip(self.monitors, lexical, strict=True))

    def follow(self, context: Any, lexical: Any, byte: int, position: int) -> Any:
        """What all remember."""
        each = zip(self.monitors, context, lexical, strict=True)
        return tuple(one.follow(known, state, byte, position) for one, known, state in each)

    def screen(self, text: bytes, context: Any) -> Callable[[bytes], bool]:
        """Could all know something?"""
        tests = [one.screen(text, known) for one, known in zip(self.monitors, context, strict=True)]
        return lambda prefix: all(test(prefix) for test in tests)

    def analyse(self, text: bytes, context: Any) -> Verdict | None:
        """What all demand together."""
        verdicts: list[Verdict] = []
        for one, known in zip(self.monitors, context, strict=True):
            verdict = one.analyse(text, known)
            if verdict is None:
                return None
            verdicts.append(verdict)
        try:
            return Agreed.of(verdicts)
        except UnsatisfiableError:
            with self._counting:
                self._contradictions += 1
            return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of all, and how often they contradicted each other."""
        own = [f"the monitors contradicted each other at {self._contradictions} places, which were left free"]
        told = [note for one in self.monitors for note in one.notes]
        return tuple(dict.fromkeys([*told, *(own if self._contradictions else [])]))
