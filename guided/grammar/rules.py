"""Rules that are made when they are asked for, and all of them at once: see `guided.grammar.ir.RuleProvider`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from guided.collection import untrack
from guided.grammar.ir import Body, Mark, Rule, RuleProvider

__all__ = ["RulesOnDemand", "UnmadeRule", "every_rule"]


class UnmadeRule(NamedTuple):
    """A rule whose body ``make`` gives: equal ones whenever it is called, by any thread, and it never fails."""

    name: str
    make: Callable[[], Body]
    mark: Mark | None = None


class RulesOnDemand:
    """Rules of which each is made when it is first asked for: most of a large grammar never are.

    A slot holds the rule or what makes it, and whoever asks reads it once: threads that come at the same time may make
    equal rules, of which one stays.
    """

    __slots__ = ("_slots",)

    def __init__(self, rules: Iterable[Rule | UnmadeRule]) -> None:
        self._slots = [*rules]

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, rule: int, /) -> Rule:
        """The rule; raises `IndexError` for one that there is not."""
        slot = self._slots[rule]
        if isinstance(slot, Rule):
            return slot
        made = self._slots[rule] = Rule(slot.name, slot.make(), slot.mark)
        return made

    def untrack(self, most: int) -> None:
        """Tell the collector of the first ``most`` rules and what makes them, none of which may hold these rules."""
        untrack(self)
        untrack(self._slots)
        for slot in self._slots[:most]:
            untrack(slot)
            if isinstance(slot, UnmadeRule) and type(slot.make) is partial:
                untrack(slot.make)
                untrack(slot.make.args)

    @property
    def n_unmade(self) -> int:
        """Rules that nobody has asked for."""
        return sum(isinstance(slot, UnmadeRule) for slot in self._slots)


def every_rule(rules: RuleProvider) -> tuple[Rule, ...]:
    """All rules, each made if need be."""
    return rules if isinstance(rules, tuple) else tuple([rules[rule] for rule in range(len(rules))])
