"""Tokens that texts take at most: the measure of a vocabulary, and what the cheapest ends of nodes take by it.

A text takes no more tokens than its parts together, so lexemes are counted one by one, each with the white space that
may stand before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.attributed.walks import Walks
from guided.constraint.per_vocabulary import PerVocabulary
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.nodes import (
    UNKNOWN,
    Action,
    Choice,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Node,
    Prices,
    Rule,
    Seq,
    Sign,
    Spelled,
    Terminal,
)
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.threads import Place, Plan, Stack
from guided.grammar.attributed.words import Words
from guided.vocab.vocabulary import Vocabulary

__all__ = ["A_NAME", "PIECE", "Counts", "TokenMeasure", "Uncounted"]

A_NAME = 3
"""How often the text behind a name may have it: twice as what waits for it, and once where it is still to be written,
or where USING names it again once it is over."""
PIECE = 2
"""Tokens that the part of a name takes which is within another token; those that have longer ones are told apart."""
_LEXEME = re.compile(r"\w+|::|[^\w\s]")
_RUN = re.compile(rb"[0-9A-Za-z_$\x80-\xff]+")
_QUOTES = tuple(re.compile(quote) for quote in (b"'", b'"', b"`", rb"[\[\]]"))
_FIRST = "abcdefghijklmnopqrstuvwxyz_\"`'"
_KEPT = 1 << 14
"""Texts, stacks and places of which it is remembered what they take."""


class TokenMeasure(PerVocabulary):
    """How many tokens of a vocabulary texts take (`guided.grammar.attributed.measures.Measure`)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._walks = Walks.of(vocabulary)
        self._offsets = vocabulary.trie.token_offset
        self._lexemes: dict[str, int] = {}
        self._names: Kept[str, int] = Kept(_KEPT)
        self._rests: Kept[bytes, int] = Kept(_KEPT)
        self._of_words: Kept[tuple[Words | Spellings, Spelled | None], int] = Kept(_KEPT)
        # Held apart from the vocabulary, which keeps this.
        self._data, self._bounds = vocabulary.data, vocabulary.offsets
        self._with_names: dict[int, tokenset.Row] = {}
        self.first = max(map(self._lexeme, _FIRST))
        """The first letter of a name, or its quote."""

    def fewest(self, text: bytes) -> list[int]:
        """The fewest tokens for what is behind each byte of a text, the first of all of it."""
        children, offsets = self._walks.children, self._offsets
        found = [0] * (len(text) + 1)
        for begin in range(len(text) - 1, -1, -1):
            best = len(text) - begin
            node: int | None = 0
            for at in range(begin, len(text)):
                node = children(node).get(text[at]) if node is not None else None
                if node is None:
                    break
                if found[at + 1] + 1 < best and offsets[node + 1] > offsets[node]:
                    best = found[at + 1] + 1
            found[begin] = best
        return found

    def text(self, text: str) -> int:
        """What some lexemes take, in any letter case, and with the white space that stands between them."""
        return min(len(text), sum(map(self._lexeme, _LEXEME.findall(text))))

    def _lexeme(self, lexeme: str) -> int:
        """One of them, perhaps behind a space."""
        found = self._lexemes.get(lexeme)
        if found is None:
            forms = {space + form for form in (lexeme, lexeme.upper(), lexeme.lower()) for space in ("", " ")}
            found = self._lexemes[lexeme] = max(self.fewest(form.encode())[0] for form in forms)
        return found

    def name(self, name: str) -> int:
        """What a name takes, in quotes if it needs them."""
        found = self._names.get(name)
        if found is None:
            forms = [name, *(quote + name.replace(quote, 2 * quote) + quote for quote in '"`')]
            every = (space + form for form in forms for space in ("", " "))
            found = self._names[name] = max(self.fewest(form.encode("utf-8", "surrogatepass"))[0] for form in every)
        return found

    def own(self, text: bytes) -> int:
        """What a name without its quotes takes, as it was read and folded."""
        return max(self.fewest(text)[0], self.fewest(text.lower())[0])

    def rest(self, word: bytes) -> int:
        """What any end of a word takes."""
        found = self._rests.get(word)
        if found is None:
            found = self._rests[word] = max(self.fewest(word))
        return found

    def rest_of_any(self, words: Words | Spellings) -> int:
        """What any end of a literal that is one of some takes, behind quotes that are doubled."""
        found = self._of_words.get((words, None))
        if found is None:
            if isinstance(words, Spellings):
                endings = words.endings
                found = words.longest_quoted
            else:
                endings = frozenset(words.sorted)
                found = UNKNOWN
            if endings is not None:
                found = min(found, max((self.rest(end.replace(b"'", b"''")) for end in endings), default=0))
            self._of_words[words, None] = found
        return found

    def rest_of_name(self, words: Words, spelled: Spelled) -> int:
        """What any end of a name that is one of some takes, and what waits for it; for words nothing does."""
        found = self._of_words.get((words, spelled))
        if found is None:
            if spelled is Spelled.WORD:
                found = max(map(self.rest, words.sorted), default=0)
            else:
                again = (A_NAME - 1) * max((self.own(word) for word in words.sorted), default=0)
                found = max((self.rest(word) + word.count(b'"') for word in words.sorted), default=0) + again + 2
            self._of_words[words, spelled] = found
        return found

    def with_names(self, most: int) -> tokenset.Row:
        """The tokens in which the parts of names may take more than so many tokens."""
        most = max(-1, min(most, self.most_names))
        found = self._with_names.get(most)
        if found is None:
            found = self._with_names[most] = tokenset.of_flags(self.names[0] > most)
        return found

    @cached_property
    def names(self) -> NDArray[np.int64]:
        """``int64[2, size]``: what the parts of names within each token take, and by how much they are over `PIECE`.

        0.7 s for 128,000 tokens, so it is found when a budget asks first.
        """
        data, bounds = self._data.tobytes(), self._bounds.tolist()
        tokens = [data[begin:end] for begin, end in pairwise(bounds)]
        takes = dict.fromkeys(tokens, 1)
        found: list[tuple[int, int]] = []
        for text in tokens:
            parts = {text, *_RUN.findall(text)}
            for quote in _QUOTES:
                if quote.search(text):
                    parts.update(quote.split(text))
            parts.discard(b"")
            each = [max(self._taken(part, takes), self._taken(part.lower(), takes)) for part in parts]
            found.append((sum(each), sum([one - PIECE for one in each if one > PIECE])))
        return np.array(found, np.int64).T.copy()

    def _taken(self, part: bytes, takes: dict[bytes, int]) -> int:
        """The fewest tokens of a text, which is noted: mostly one, or two."""
        found = takes.get(part)
        if found is None:
            halves = ((part[:at], part[at:]) for at in range(len(part) - 1, 0, -1))
            is_two = any(takes.get(one) == 1 and takes.get(other) == 1 for one, other in halves)
            found = takes[part] = 2 if is_two else self.fewest(part)[0]
        return found

    @cached_property
    def most_names(self) -> int:
        """The most that the parts of names in a token take."""
        return int(self.names[0].max(initial=0))


class _Plan(NamedTuple):
    begun: int
    least: int


class Counts:
    """What nodes, stacks and places of a grammar take in tokens, where a text ends soon."""

    def __init__(self, measure: TokenMeasure, prices: Prices) -> None:
        self.measure = measure
        self._prices = prices
        self._nodes: dict[Node, int] = {}
        self._stacks: Kept[Stack, int] = Kept(_KEPT)
        self._plans: Kept[Plan, _Plan] = Kept(_KEPT)

    def begun(self, plan: Plan) -> int:
        """The most behind any terminal that may come of which some bytes were read, but for what is left of names."""
        return self._of(plan).begun

    def least(self, plan: Plan) -> int:
        """The least from a place on."""
        return self._of(plan).least

    def _of(self, plan: Plan) -> _Plan:
        found = self._plans.get(plan)
        if found is None:
            ways = {way for ways in plan.ways for way in ways}
            begun = max(self._begun(terminal) + self.stack(stack) for terminal, stack in ways)
            least = min((0 if one is None else self._node(one)) + self.stack(stack) for one, stack in ways)
            found = self._plans[plan] = _Plan(begun, least)
        return found

    def own(self, text: bytes) -> int:
        """What a name takes of which so much was read before."""
        return self.measure.own(text) if text else 0

    def rest_of_any_name(self, sets: Iterable[Words]) -> int:
        """The most that is left of a name in quotes that is listed in some of these."""
        return max((self.measure.rest_of_name(words, Spelled.ANY) for words in sets), default=0)

    def longest_name(self, place: Place) -> int:
        """The most that is left of a listed name; no function or type waits for anything, or is written again."""
        found = 0
        for open_, names in place.names:
            assert isinstance(open_.terminal, Name)
            found = max(found, self.measure.rest_of_name(names.words, open_.terminal.spelled))
        return found

    def rest_of_literal(self, place: Place, form: LiteralForm) -> int:
        """The most behind a literal, and of what is left of one that is held to some texts."""
        found = 0
        for open_, of, values in place.literals:
            if of is form:
                rest = 0 if values is None else self.measure.rest_of_any(values)
                found = max(found, self.stack(open_.stack) + rest)
        return found

    def stack(self, stack: Stack | None) -> int:
        """What the nodes of a stack take."""
        found = 0
        above: list[Stack] = []
        while stack is not None:
            known = self._stacks.get(stack)
            if known is not None:
                found = known
                break
            above.append(stack)
            stack = stack.below
        for one in reversed(above):
            found = self._stacks[one] = found + self._node(one.node)
        return found

    def _begun(self, terminal: Terminal | None) -> int:
        """A terminal of which some bytes may have been read."""
        if terminal is None or isinstance(terminal, Name):
            return 0
        if isinstance(terminal, Keyword):
            return max(self._node(terminal), self.measure.rest(terminal.word.encode()))
        return self._node(terminal)

    def _node(self, node: Node) -> int:
        """What a node takes where the cheapest alternatives are taken, as a search for an end takes them."""
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = self._count(node)
        return found

    def _count(self, node: Node) -> int:
        match node:
            case Keyword(text) | Sign(text):
                return self.measure.text(text + " ")
            case Name(kind=kind):
                # Each byte may be a token.
                return max(0, kind.price - 1) + self.measure.first
            case Literal(kind=kind):
                return self.measure.text(kind.shortest + " ")
            case Seq(parts):
                return sum(map(self._node, parts))
            case Choice(options=options):
                return self._node(min(options, key=self._prices.of))
            case Rule(body=body):
                assert body is not None
                return self._node(body)
            case Action(spare=spare):
                return self.measure.text(spare)
        return 0


class Uncounted(Counts):
    """Nothing is counted: on PostgreSQL a mask that no budget asks about takes 12 % fewer calls of functions."""

    def begun(self, plan: Plan) -> int:
        """Nothing."""
        return 0

    def least(self, plan: Plan) -> int:
        """Nothing."""
        return 0

    def longest_name(self, place: Place) -> int:
        """Nothing."""
        return 0

    def rest_of_literal(self, place: Place, form: LiteralForm) -> int:
        """Nothing."""
        return 0

    def own(self, text: bytes) -> int:
        """Nothing."""
        return 0

    def rest_of_any_name(self, sets: Iterable[Words]) -> int:
        """Nothing."""
        return 0
