"""Small means to write the IR: combinators, and rules that are made when they are first named."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from guided.grammar.ir import Body, Choice, Reference, Repetition, Rule, Sequence, Terminal

__all__ = ["Rules", "choice", "listed", "maybe", "sequence"]


def sequence(*parts: Body) -> Body:
    """One after another."""
    return parts[0] if len(parts) == 1 else Sequence(parts)


def choice(*options: Body | None) -> Body:
    """Any of the options that exist."""
    present = tuple(option for option in options if option is not None)
    return present[0] if len(present) == 1 else Choice(present)


def maybe(*parts: Body) -> Repetition:
    """The parts or nothing."""
    return Repetition(sequence(*parts), 0, 1)


def listed(item: Body, separator: Terminal) -> Repetition:
    """One item or more."""
    return Repetition(item, 1, None, separator)


class Rules:
    """Rules by what they are about; a rule may refer to itself while it is made."""

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}
        self._rules: list[Rule | None] = []

    def get(self, key: Hashable, name: str, build: Callable[[], Body]) -> Reference:
        """The rule of this key, made by ``build`` when it is new."""
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self._rules)
            self._rules.append(None)
            self._rules[index] = Rule(name, build())
        return Reference(index)

    def finish(self) -> tuple[Rule, ...]:
        """All rules, in the order of their indices."""
        return tuple(rule for rule in self._rules if rule is not None)
