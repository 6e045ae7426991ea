"""`Rewriting`: bodies of rules made anew, part by part; subclasses say what becomes of the parts that they change."""

from __future__ import annotations

from dataclasses import replace

from guided.grammar.ir import (
    Body,
    Choice,
    DeferredMembers,
    ListedTerminal,
    Member,
    Members,
    RangedTerminal,
    Reference,
    Repetition,
    Sequence,
    Terminal,
)

__all__ = ["Rewriting"]


class Rewriting:
    """Bodies as they are; what several rules share stays shared."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Body, Body]] = {}

    def body(self, body: Body) -> Body:
        """The body that takes the place of another."""
        found = self._done.get(id(body))
        if found is None:
            # The old body is kept too: its id must not be given to another meanwhile.
            found = self._done[id(body)] = (body, self._made(body))
        return found[1]

    def reference(self, reference: Reference) -> Body:
        """What takes the place of a reference."""
        return reference

    def terminal(self, terminal: Terminal | ListedTerminal) -> Body:
        """What takes the place of a terminal."""
        return terminal

    def members(self, members: Members) -> Body:
        """What takes the place of an object's members."""
        return replace(
            members,
            declared=tuple(map(self._member, members.declared)),
            extras=tuple(map(self._member, members.extras)),
            separator=self.body(members.separator),
        )

    def _made(self, body: Body) -> Body:
        match body:
            case RangedTerminal():
                return body
            case Reference():
                return self.reference(body)
            case Terminal() | ListedTerminal():
                return self.terminal(body)
            case Sequence():
                return replace(body, parts=tuple(map(self.body, body.parts)))
            case Choice():
                return replace(body, options=tuple(map(self.body, body.options)))
            case Repetition():
                separator = None if body.separator is None else self.body(body.separator)
                return replace(body, body=self.body(body.body), separator=separator)
            case DeferredMembers():
                return self.members(body.written())
            case Members():
                return self.members(body)

    def _member(self, member: Member) -> Member:
        return replace(member, value=self.body(member.value))
