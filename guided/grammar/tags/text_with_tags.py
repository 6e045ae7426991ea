"""Free text and the tags in it as rules: where a tag begins, and what the text around it must not hold.

A text is read up to the first of some words, which are triggers and words that are excluded.  After a trigger comes the
rest of one of its tags; an excluded word is never read in full.
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Choice, Reference, Repetition, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.regular.expr import literal
from guided.grammar.tags.delimiters import Piece, parts_of, sequence
from guided.grammar.tags.free_text import innermost, overlap, text_up_to, text_without

__all__ = ["TextWithTags", "choice", "text_terminal"]

_NOTHING = Parts(())


class TextWithTags:
    """Free text and tags of one grammar."""

    def __init__(
        self,
        assembly: Assembly,
        begins: Sequence[Sequence[Piece]],
        triggers: Sequence[str],
        rests: Sequence[Body],
        excludes: Sequence[str] = (),
    ) -> None:
        """Each tag begins with pieces: text that begins with one of the triggers, or else a special token is in them.

        ``rests`` is what follows the beginning of each.  No trigger may be in another, nor hold one of ``excludes``.
        """
        self.assembly = assembly
        self.triggers = triggers
        # A word with a trigger in it is never read that far, and of words with others in them the others come first.
        self.words = innermost([*triggers, *excludes])
        self.free = Terminal(text_without(self.words), "text")
        self.after_trigger: dict[str, list[Body]] = {trigger: [] for trigger in triggers}
        self.special: list[Body] = []
        self.whole: list[Body] = []
        for pieces, rest in zip(begins, rests, strict=True):
            first = pieces[0]
            self.whole.append(sequence([*parts_of(assembly, pieces), rest]))
            trigger = next((t for t in triggers if isinstance(first, str) and first.startswith(t)), None)
            if trigger is None:
                self.special.append(self.whole[-1])
                continue
            assert isinstance(first, str)
            left = first[len(trigger) :]
            lead: list[Body] = [text_terminal(left)] if left else []
            self.after_trigger[trigger].append(sequence([*lead, *parts_of(assembly, pieces[1:]), rest]))

    def side_by_side(self, separator: str, at_least_one: bool, at_most_one: bool) -> Reference:
        """Tags without text between them."""
        between = text_terminal(separator) if separator else None
        repeated = Repetition(self.tag(), int(at_least_one), 1 if at_most_one else None, between)
        return self.assembly.rule("tags", repeated)

    def tag(self) -> Reference:
        """Any one of the tags."""
        return self.assembly.rule("a tag", choice(self.whole))

    def mixed(self, at_least_one: bool, at_most_one: bool, stop_after_first: bool) -> Reference:
        """Text, and then a tag with what follows it."""
        if stop_after_first:
            return self.assembly.rule("text with a tag", self._text_then(_NOTHING, not at_least_one))
        if at_most_one:
            after = self.assembly.rule("text", self.free)
            return self.assembly.rule("text with a tag", self._text_then(after, not at_least_one))
        loop = self.assembly.recursive("text with tags", lambda again: self._text_then(again, True))
        return self.assembly.rule("text with tags", self._text_then(loop, False)) if at_least_one else loop

    def _text_then(self, after: Body, may_end: bool) -> Body:
        """Free text up to a tag, the tag, and ``after``; or free text up to the end."""
        tail: list[Body] = [Parts((choice(self.special), after))] if self.special else []
        if may_end:
            tail.append(_NOTHING)
        if tail and not overlap(self.words):
            # Then a trigger after free text is always the first one, so all share the automaton of one text.
            for trigger, rests in self.after_trigger.items():
                tail.append(Parts((text_terminal(trigger), choice(rests), after)))
            return Parts((self.free, choice(tail)))
        options: list[Body] = []
        for trigger, rests in self.after_trigger.items():
            up_to = Terminal(text_up_to(trigger, self.words), f"text up to {trigger!r}")
            options.append(Parts((up_to, choice(rests), after)))
        if tail:
            options.append(sequence([self.free, choice(tail)]) if self.special else self.free)
        return choice(options)


def choice(options: Sequence[Body]) -> Body:
    """Any one of the options."""
    return options[0] if len(options) == 1 else Choice(tuple(options))


def text_terminal(text: str) -> Terminal:
    """Exactly this text."""
    return Terminal(literal(text.encode()), repr(text))
