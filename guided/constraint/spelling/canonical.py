"""`canonical`: a constraint whose tokens are also what the tokenizer itself would make of the text.

A language model has seen every text in one spelling only, the tokenizer's; a mask alone allows all others.  Here a
token is allowed when some text of the constraint goes on from it whose tokens, as the tokenizer makes them, begin with
all tokens so far.  So the texts stay the same, each has one spelling left, and there are no dead ends: whether a token
leads to such a text at all is found by search (`guided.constraint.spelling.survivors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.marked_rules import marks_of
from guided.constraint.end_tokens import EndTokens
from guided.constraint.limits import Limits
from guided.constraint.protocol import Constrains
from guided.constraint.spelling.survivors import Survivors
from guided.errors import LimitError, UnsatisfiableError, UnsupportedError
from guided.kernels.data.layout import DEAD, FINISHED
from guided.vocab.canonical import CanonicalTokenizer, Place
from guided.vocab.vocabulary import Vocabulary

__all__ = ["CanonicalConstraint", "canonical"]

_Content = tuple[int, int, frozenset[Place]]
"""What a state stands for: the inner state's number, the last token (-1: none), the places in the tokenizer."""


def canonical(constraint: Constrains, tokenizer: Any, *, before: Sequence[int] = ()) -> CanonicalConstraint:
    """The same texts as ``constraint``, each in the tokens that ``tokenizer`` makes of it and in no others.

    ``tokenizer`` is a fast tokenizer of Hugging Face or a ``tokenizers.Tokenizer``: byte-level BPE with the
    pre-tokenizer of GPT-2, Llama-3 or Qwen; any other raises `UnsupportedError`.  ``before`` are the tokens of the
    prompt, since what a tokenizer makes of a text depends on what stands before it; without them the text stands alone.

    Raises `UnsatisfiableError` when no text of the constraint can follow the prompt in canonical tokens, which happens
    when a prompt ends inside a token (see `guided.heal`).

    >>> import guided
    >>> from tokenizers import Tokenizer, decoders, models
    >>> from tokenizers.pre_tokenizers import ByteLevel
    >>> pieces = [*sorted(ByteLevel.alphabet()), "ab"]
    >>> tokenizer = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, [("a", "b")]))
    >>> tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    >>> _ = tokenizer.add_special_tokens(["<end>"])
    >>> vocabulary = guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[257])
    >>> constraint = guided.compile(guided.choice(["ab"]), vocabulary)
    >>> spelled = canonical(constraint, tokenizer)
    >>> letter, both = pieces.index("a"), 256
    >>> constraint.advance(constraint.start, letter) > 0, spelled.advance(spelled.start, letter)
    (True, 0)
    >>> spelled.advance(spelled.start, both) > 0
    True
    """
    grammar = getattr(constraint, "grammar", None)
    if grammar is not None and grammar.special_tokens:
        raise UnsupportedError(
            f"a grammar with special tokens ({', '.join(grammar.special_tokens[:3])}) has no canonical form yet",
            remedy="Leave out canonical tokenisation for this grammar.",
        )
    if grammar is not None and marks_of(grammar):
        raise UnsupportedError(
            "a schema with undeclared names or distinct items, which are compared as the text is read, has no canonical"
            " form yet",
            remedy='Declare all names ("additionalProperties": false), drop uniqueItems, or do without it.',
        )
    made = CanonicalConstraint(constraint, CanonicalTokenizer.of(tokenizer, constraint.vocabulary), before)
    row = np.zeros(made.vocabulary.n_words, np.uint32)
    made.fill_mask(made.start, row)
    if not row.any():
        raise UnsatisfiableError(
            "the tokenizer spells no text of this constraint so that it continues the prompt's own tokens",
            remedy="If the prompt ends inside a token, use guided.heal; else leave out `before`.",
        )
    return made


class CanonicalConstraint:
    """A `Constrains` whose states also know the last token and where the tokenizer's cuts may be.

    States go by tokens: bytes alone do not say how they were spelled, so `advance_bytes` is refused.  A mask costs two
    passes over the row once the last token's successors (0.3 ms for 128,000 tokens) and the inner state's survivors
    are known.
    """

    def __init__(self, constraint: Constrains, tokenizer: CanonicalTokenizer, before: Sequence[int] = ()) -> None:
        if getattr(constraint, "counts_tokens", False):
            raise UnsupportedError(
                "max_tokens in a canonical constraint, which reads the bytes of tokens", remedy="Leave max_tokens out."
            )
        self.constraint = constraint
        self.tokenizer = tokenizer
        self.before = tuple(int(token) for token in before)
        self.limits: Limits = getattr(constraint, "limits", None) or Limits()
        self._survivors = Survivors(constraint, tokenizer, self.limits)
        self._contents: list[_Content] = [(0, -1, frozenset()), (0, -1, frozenset())]
        self._numbers: dict[_Content, int] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self._paths: dict[int, tuple[int, ...]] = {}
        self._priced: set[int] = set()
        self._ending = EndTokens.of(self.vocabulary)
        self.start: int = self.state_at(constraint.start, self.before)

    def __reduce__(self) -> tuple[Any, ...]:
        return (CanonicalConstraint, (self.constraint, self.tokenizer, self.before))

    def __repr__(self) -> str:
        return f"<canonical {self.constraint!r}>"

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose ids all tokens here are."""
        return self.constraint.vocabulary

    @property
    def end(self) -> int:
        """The state after an end-of-text id."""
        return FINISHED

    def _number(self, content: _Content) -> int:
        number = self._numbers.get(content)
        if number is None:
            number = self._numbers[content] = len(self._contents)
            self._contents.append(content)
        return number

    def state_at(self, inner: int, before: Sequence[int]) -> int:
        """The state that stands for a live state of the inner constraint after these tokens, the prompt's included.

        Dead ends are possible where ``before`` is not what the tokenizer makes of its text.
        """
        with self.tokenizer.lock:
            places, last = self.tokenizer.after(before)
            return self._number((self._survivors.automaton.number(inner), last, places))

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        """Write the mask of ``state`` to ``row`` (``uint32[n_words]``)."""
        if state <= FINISHED:
            row[:] = self._ending.row if state == FINISHED else 0
            return
        with self.tokenizer.lock:
            row[:] = self._row(state)

    def _row(self, state: int) -> NDArray[np.uint32]:
        inner, last, places = self._contents[state]
        row = np.zeros_like(self._ending.row)
        for place in places:
            row |= self._survivors.row(inner, place, last)
        if self.is_accepting(state):
            row |= self._ending.row
        return row

    def advance(self, state: int, token: int) -> int:
        """The state after a token, 0 if it is not allowed; end-of-text ids lead from accepting states to `end`."""
        after = self._steps.get((state, token))
        if after is None:
            with self.tokenizer.lock:
                after = self._steps[state, token] = self._advance(state, token)
        return after

    def _advance(self, state: int, token: int) -> int:
        if token in self.vocabulary.eos_ids:
            return FINISHED if self.is_accepting(state) else DEAD
        if state <= FINISHED or not 0 <= token < self.vocabulary.size:
            return DEAD
        if not tokenset.contains(self._row(state), token):
            return DEAD
        inner, last, places = self._contents[state]
        automaton = self._survivors.automaton
        for byte in self.vocabulary.token_bytes(token) or b"":
            inner = automaton.step(inner, byte)
        return self._number((inner, token, self.tokenizer.step(places, last, token)))

    def advance_bytes(self, state: int, data: bytes) -> int:
        """Only for no bytes at all: how a text is spelled is not to be seen from it.

        Raises `UnsupportedError` for any others.
        """
        if not data:
            return state
        raise UnsupportedError(
            "a canonical constraint goes by tokens, not by bytes", remedy="Advance by the tokens of the text."
        )

    def is_accepting(self, state: int) -> bool:
        """True when the text may end here."""
        if state <= FINISHED:
            return state == FINISHED
        inner, _, places = self._contents[state]
        with self.tokenizer.lock:
            return self._survivors.accepts(inner) and any(map(self.tokenizer.may_end, places))

    def forced(self, state: int) -> bytes:
        """The bytes of the tokens that must come next, empty where there is a choice or the text may end."""
        tokens = self.forced_tokens(state)
        return b"".join(self.vocabulary.token_bytes(token) or b"" for token in tokens)

    def forced_tokens(self, state: int, n_bytes: int | None = None) -> list[int]:
        """The tokens that must come next: followed for as long as the mask has one token and the text may not end.

        Looks no further than ``n_bytes`` when given.
        """
        found: list[int] = []
        size = 0
        most = self.limits.forced_bytes if n_bytes is None else n_bytes
        with self.tokenizer.lock:
            while state > FINISHED and not self.is_accepting(state) and size < most:
                row = self._row(state)
                words = np.flatnonzero(row)
                if words.size != 1 or int(row[words[0]]).bit_count() != 1:
                    break
                token = 32 * int(words[0]) + int(row[words[0]]).bit_length() - 1
                found.append(token)
                size += len(self.vocabulary.token_bytes(token) or b"")
                state = self.advance(state, token)
        return found

    def shortest_completion(self, state: int) -> int:
        """How many tokens reach an end for certain, the end-of-text token not counted; not always the fewest.

        The text is the shortest that begins with a cut of the tokenizer, where there is one.
        """
        with self.tokenizer.lock:
            return len(self._path(state))

    def _path(self, state: int) -> tuple[int, ...]:
        if state <= FINISHED:
            return ()
        if state not in self._priced:
            # Also where a way through here is known: tokens were allowed by the price of this one.
            self._priced.add(state)
            inner, last, places = self._contents[state]
            found = [self._survivors.path(inner, place, last) for place in places]
            self._remember(state, min((way for way in found if way is not None), key=len))
        return self._paths[state]

    def _remember(self, state: int, path: tuple[int, ...]) -> None:
        """The rest of a way is a way from each state on it, and never longer than what was known there."""
        while True:
            known = self._paths.get(state)
            if known is not None and len(known) <= len(path):
                return
            self._paths[state] = path
            if not path:
                return
            state, path = self.advance(state, path[0]), path[1:]

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """Like `fill_mask`, but only tokens after which a known completion fits in ``budget`` tokens.

        Never empty when ``shortest_completion(state) < budget``, else `LimitError`; a token whose completion is longer
        than another that was not looked for may be left out.
        """
        if state <= FINISHED:
            self.fill_mask(state, row)
            return
        with self.tokenizer.lock:
            path = self._path(state)
            if len(path) + 1 > budget:
                raise LimitError(
                    f"{budget} tokens are left, but the completion at hand takes {len(path)} and the end-of-text token",
                    remedy="Raise max_new_tokens.",
                )
            inner, last, places = self._contents[state]
            row[:] = 0
            for place in places:
                row |= self._survivors.row(inner, place, last, budget - 2)
            if path:
                tokenset.add(row, path[0])
            if self.is_accepting(state):
                row |= self._ending.row
