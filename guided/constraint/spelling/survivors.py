"""Which tokens of a constraint can still become the tokenizer's own spelling of some allowed text.

A node is what matters for the future: the constraint's state after the last token, the place in the tokenizer, and the
last token, since it decides what may follow in the same chunk.  A node survives when a path leads from it to an end.
Nearly always one look is enough: the text may end, or some byte may come next before which the tokenizer cuts whatever
follows.  Then all later tokens are free to be what the tokenizer makes of the rest, and the last token does not matter.
So verdicts are first given to pairs (state, splitter's state), for all tokens that lead there at once; only the tokens
of undecided pairs are searched for, one by one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.limits import Limits
from guided.constraint.protocol import Constrains
from guided.constraint.spelling.survivor_prices import TokenPrices, distinct_pairs
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD
from guided.vocab.canonical import SEALED, CanonicalTokenizer, Place, leads

__all__ = ["Survivors"]

_Node = tuple[int, int, int, int]
"""Inner state's number, splitter's state, how far into a whole-chunk token, last token."""

_ALIVE, _UNDECIDED = 1, 3

_FEW = 128
"""Tokens that are tried pair by pair (1 us each) before the last token's row of successors is made (0.3 ms)."""

_LIKELY = (b' "', b" a", b" {", b" [", b" }", b" ]", b" ,", b" :", b" 1", b" ", b"\n", b'"', b"a", b"1", b",")
"""Texts of one token tried first as beginnings of a chunk that leave everything open."""

_KEPT_ARRAYS = 8
_NO_COST = -1


class InnerAutomaton:
    """The states of a constraint as an automaton over bytes, numbered from 1 as they are met."""

    def __init__(self, constraint: Constrains, limits: Limits) -> None:
        self._constraint = constraint
        self._most = limits.search_states
        self._allowed = self._most
        # Asked by name each time: a method that is kept would keep alive what may be but a weak reference.
        self._tells_possible = hasattr(constraint, "possible_bytes")
        self._states: list[int] = [DEAD]
        self._numbers: dict[int, int] = {DEAD: 0}
        self.table: NDArray[np.int32] = np.zeros((64, 256), np.int32)
        """``int32[at least n, 256]``: where a byte leads, -1 not known yet; replaced when it grows."""

    def __len__(self) -> int:
        return len(self._states)

    def state(self, number: int) -> int:
        """The constraint's own state."""
        return self._states[number]

    def number(self, state: int) -> int:
        """The number of one of the constraint's states.

        Raises `LimitError` for more states than one mask may lead to.
        """
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            if number > self._allowed:
                del self._numbers[state]
                raise LimitError(
                    f"the tokens of one mask lead to more than {self._most} different states of the constraint",
                    remedy="Leave out canonical tokenisation, or pass Limits(search_states=...).",
                )
            self._states.append(state)
            if number >= len(self.table):
                self.table = np.concatenate([self.table, np.zeros_like(self.table)])
            possible: Any = self._constraint.possible_bytes(state) if self._tells_possible else None  # type: ignore[attr-defined]
            self.table[number] = -1 if possible is None else np.where(possible, -1, 0)
        return number

    def allow_more(self) -> None:
        """Begin to count new states anew: one look at a vocabulary may meet `Limits.search_states` of them."""
        self._allowed = len(self._states) + self._most

    def step(self, number: int, byte: int) -> int:
        """The number after one more byte."""
        after = int(self.table[number, byte])
        if after < 0:
            after = self.number(self._constraint.advance_bytes(self._states[number], bytes([byte])))
            self.table[number, byte] = after
        return after


@dataclass
class _Side:
    """The tokens that lead on from one pair of states, either within the chunk or after a cut."""

    sure: NDArray[np.uint32]
    """Those whose pair of states is alive by itself."""
    n_sure: int
    undecided: list[tuple[int, int, int]]
    """The others: token, inner state's number and splitter's state after it."""
    some: NDArray[np.int64] | None = None
    """The first of them."""
    alive: NDArray[np.uint32] | None = None
    """All that survive, once decided; tokens within a whole-chunk token's merges aside."""


class Survivors:
    """Rows of surviving tokens; the caller holds the tokenizer's lock."""

    def __init__(self, constraint: Constrains, tokenizer: CanonicalTokenizer, limits: Limits) -> None:
        self.automaton = InnerAutomaton(constraint, limits)
        self._constraint = constraint
        self._tokenizer = tokenizer
        self._splitter = tokenizer.splitter
        self._pairs = tokenizer.pairs
        self._limits = limits
        self._keys = np.full(1024, -1, np.int64)
        self._verdicts = np.zeros(1024, np.uint8)
        self._costs = np.full(1024, _NO_COST, np.int32)
        self._n_pairs = 0
        self._completions: dict[tuple[int, int], tuple[int, ...] | None] = {}
        self._sides: OrderedDict[tuple[int, int, bool], _Side] = OrderedDict()
        self._inner_leads: OrderedDict[int, tuple[NDArray[np.int32], NDArray[np.int64]]] = OrderedDict()
        self._accepts: dict[int, bool] = {}
        self._known: dict[_Node, bool] = {}
        self._begun: dict[tuple[int, int], int | None] = {}
        texts = [tokenizer.encode(text) for text in _LIKELY]
        self._likely = [tokens[0] for tokens in texts if len(tokens) == 1 and tokens[0] not in tokenizer.whole]
        size = tokenizer.vocabulary.size
        self._undecided, self._asked = np.zeros(size, np.int32), np.zeros(size, np.int64)
        self._row_bytes = 8 * tokenizer.vocabulary.n_words
        self._prices: OrderedDict[tuple[int, int, bool], TokenPrices] = OrderedDict()
        self._most_prices = max(8, limits.mask_bytes // (32 * tokenizer.vocabulary.n_words))

    def accepts(self, inner: int) -> bool:
        """May the constraint's text end in this state?"""
        found = self._accepts.get(inner)
        if found is None:
            found = self._accepts[inner] = self._constraint.is_accepting(self.automaton.state(inner))
        return found

    def row(self, inner: int, place: Place, last: int, limit: int | None = None) -> NDArray[np.uint32]:
        """The surviving tokens at one place; with ``limit`` those after which so many tokens are enough."""
        state, far = place
        row = np.zeros(self._tokenizer.vocabulary.n_words, np.uint32)
        if last >= 0 and far != SEALED:
            side = self._decided(inner, state, False)
            row |= side.alive & self._pairs.successors(last)
            deeper = self._mend(inner, state, far, row) if far else {}
            special = {token: tokenset.contains(row, token) for token in deeper}
            self._limit(side, inner, state, False, limit, row)
            for token, was in special.items():
                # Its price, too, is another than that of the same token elsewhere.
                tokenset.remove(row, token)
                i, o, then, _ = deeper[token]
                if was and (limit is None or len(self.path(i, (o, then), token) or ()) <= limit):
                    tokenset.add(row, token)
        if far not in self._tokenizer.whole_ends:
            side = self._decided(inner, state, True)
            begun = side.alive.copy()
            self._limit(side, inner, state, True, limit, begun)
            row |= begun
        return row

    def _mend(self, inner: int, state: int, far: int, row: NDArray[np.uint32]) -> dict[int, _Node]:
        """Decide anew about tokens that continue a whole-chunk token's merges: its end must not be a chunk's end.

        Returns the nodes to which they lead.
        """
        deeper: dict[int, _Node] = {}
        for (_, token), then in self._continuations(far):
            if not tokenset.contains(row, token):
                continue
            deeper[token] = self._after(inner, state, then, token)
            if not self._survives(deeper[token]):
                tokenset.remove(row, token)
        return deeper

    def _continuations(self, far: int) -> list[tuple[tuple[int, int], int]]:
        return [(key, then) for key, then in self._tokenizer.whole_next.items() if key[0] == far]

    def _after(self, inner: int, state: int, far: int, token: int) -> _Node:
        for byte in self._tokenizer.vocabulary.token_bytes(token) or b"":
            inner, state = self.automaton.step(inner, byte), self._splitter.step(state, byte)
        return (inner, state, far, token)

    # Verdicts on pairs of states.

    def _verdict(self, inner: int, state: int) -> int:
        """Alive when the text may end, or a byte may come before which there is a cut for certain."""
        if self._splitter.may_end(state) and self.accepts(inner):
            return _ALIVE
        return _UNDECIDED if self._next_cut(inner, state) is None else _ALIVE

    def _next_cut(self, inner: int, state: int) -> int | None:
        """A byte that the constraint allows and before which there is a cut whatever comes after it."""
        cuts = self._splitter.certain_cuts(state)
        return next((byte for byte in cuts if self.automaton.step(inner, byte) != DEAD), None)

    def _leads(self, inner: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Where each token leads from an inner state, and the tokens that do not die."""
        found = self._inner_leads.get(inner)
        if found is None:
            self.automaton.allow_more()
            after = leads(self._tokenizer.vocabulary, self.automaton, inner)
            found = self._inner_leads[inner] = after, np.flatnonzero(after != DEAD)
            if len(self._inner_leads) > _KEPT_ARRAYS:
                self._inner_leads.popitem(last=False)
        return found

    def _side(self, inner: int, state: int, cut: bool) -> _Side:
        key = (inner, state, cut)
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = self._sort(inner, state, cut)
            while len(self._sides) * self._row_bytes > self._limits.mask_bytes:
                self._sides.popitem(last=False)
        return side

    def _sort(self, inner: int, state: int, cut: bool) -> _Side:
        from guided.kernels.tokens.canonical import sift

        sure = np.zeros(self._tokenizer.vocabulary.n_words, np.uint32)
        root = self._splitter.cut(state) if cut else state
        possible = np.flatnonzero(self.automaton.table[inner]).tolist()
        if root == DEAD or not any(self._splitter.step(root, byte) for byte in possible):
            return _Side(sure, 0, [])
        starts = self._tokenizer.start_row if cut else self._tokenizer.inner_row
        ours, living = self._leads(inner)
        theirs = self._tokenizer.leads(root)
        undecided, asked = self._undecided, self._asked
        while True:
            room = self._make_room()
            n_undecided, n_asked = sift(
                living, ours, theirs, starts, self._keys, self._verdicts, room, sure, undecided, asked
            )
            if not n_asked:
                break
            for slot in asked[:n_asked].tolist():
                key = int(self._keys[slot])
                self._verdicts[slot] = self._verdict(key >> 32, key & 0xFFFFFFFF)
            self._n_pairs += n_asked
        tokens = undecided[:n_undecided]
        places = list(zip(tokens.tolist(), ours[tokens].tolist(), theirs[tokens].tolist(), strict=True))
        return _Side(sure, tokenset.count(sure), places)

    def _make_room(self) -> int:
        """How many pairs may be added to the hash table, which is kept at most half full."""
        from guided.kernels.tokens.canonical import rehash_pairs

        if 4 * self._n_pairs > self._keys.size:
            size = 4 * self._keys.size
            tables = (np.full(size, -1, np.int64), np.zeros(size, np.uint8), np.full(size, _NO_COST, np.int32))
            rehash_pairs(self._keys, self._verdicts, self._costs, *tables)
            self._keys, self._verdicts, self._costs = tables
        return self._keys.size // 2 - self._n_pairs

    # Doubtful tokens.

    def _decided(self, inner: int, state: int, cut: bool) -> Any:
        side = self._side(inner, state, cut)
        if side.alive is None:
            side.alive = side.sure.copy()
            tokenset.add_all(side.alive, np.array(self._survivors_of(side, cut), np.int64))
        return side

    def _survivors_of(self, side: _Side, cut: bool) -> list[int]:
        groups: dict[tuple[int, int], list[int]] = {}
        for token, inner, state in side.undecided:
            groups.setdefault((inner, state), []).append(token)
        found: list[int] = []
        for (inner, state), tokens in groups.items():
            # What may follow a whole-chunk token, or a part of one, also depends on how far into it the text is.
            free = [token for token in tokens if self._far(token, cut) == 0]
            special = [token for token in tokens if self._far(token, cut) != 0]
            if self._after_cut(inner, state) is not None:
                found += tokens
                continue
            for likely in (True, False):
                if not free or (likely and self._splitter.cut(state) != DEAD):
                    continue
                sure = self._single_bytes(inner, state) if likely else self._some_sure(self._side(inner, state, False))
                apart = self._pairs.any_apart(np.asarray(free, np.int64), sure).tolist()
                found += [token for token, lives in zip(free, apart, strict=True) if lives]
                free = [token for token, lives in zip(free, apart, strict=True) if not lives]
            rest = special + free
            found += [token for token in rest if self._survives((inner, state, self._far(token, cut), token))]
        return found

    def _single_bytes(self, inner: int, state: int) -> NDArray[np.int64]:
        """Tokens of one byte that complete a character and are alive whatever stands before them; a few."""
        found: list[int] = []
        for byte in range(0x80, 0xC0):
            i, o = self.automaton.step(inner, byte), self._splitter.step(state, byte)
            if i != DEAD and o != DEAD and self._verdict(i, o) == _ALIVE:
                found.append(self._pairs.byte_token(byte))
                if len(found) == 4:
                    break
        return np.asarray(found, np.int64)

    def _far(self, token: int, cut: bool) -> int:
        if not cut:
            return 0
        return SEALED if token in self._tokenizer.whole else self._tokenizer.whole_next.get((0, token), 0)

    def _after_cut(self, inner: int, state: int) -> int | None:
        """A token that may begin a chunk here and is alive whatever comes after; a few likely ones are tried first."""
        key = (inner, state)
        if key not in self._begun:
            cut = self._splitter.cut(state)
            found = None
            for token in self._likely if cut != DEAD else ():
                after = self._after(inner, cut, 0, token)
                if after[0] != DEAD and after[1] != DEAD and self._verdict(after[0], after[1]) == _ALIVE:
                    found = token
                    break
            if found is None and cut != DEAD:
                some = self._some_sure(self._side(inner, state, True))
                found = int(some[0]) if some.size else None
            self._begun[key] = found
        return self._begun[key]

    def _some_sure(self, side: _Side) -> NDArray[np.int64]:
        """Tokens of one side that are alive whatever stands before them: all, or a few where there are many."""
        if side.some is None:
            side.some = tokenset.first_ids(side.sure, _FEW)
        return side.some

    def _survives(self, node: _Node) -> bool:
        """Does a path lead from this node to one that is alive by itself?  Depth first; all that was met is decided."""
        if node in self._known:
            return self._known[node]
        parents: dict[_Node, _Node | None] = {node: None}
        stack = [node]
        while stack:
            at = stack.pop()
            lives = self._is_sure(at) or self._sure_child(at) is not None
            children = [] if lives else self._doubtful_children(at)
            lives = lives or any(self._known.get(child) for child in children)
            if lives:
                up: _Node | None = at
                while up is not None:
                    self._known[up] = True
                    up = parents[up]
                return True
            for child in children:
                if child not in parents and child not in self._known:
                    parents[child] = at
                    stack.append(child)
            if len(parents) > self._limits.search_states:
                raise LimitError(
                    f"whether the tokenizer can spell a text was not decided within {len(parents)} steps",
                    remedy="Leave out canonical tokenisation, or pass Limits(search_states=...).",
                )
        self._known.update(dict.fromkeys(parents, False))
        return False

    def _is_sure(self, node: _Node) -> bool:
        inner, state, far, _ = node
        return far not in self._tokenizer.whole_ends and self._verdict(inner, state) == _ALIVE

    def _sure_child(self, node: _Node) -> tuple[int, bool] | None:
        """A token after this node that is alive whatever comes, and whether it begins a chunk."""
        inner, state, far, last = node
        if far not in self._tokenizer.whole_ends:
            begun = self._after_cut(inner, state)
            if begun is not None:
                return begun, True
        if far == SEALED:
            return None
        side = self._side(inner, state, False)
        if not side.n_sure:
            return None
        ends = [token for (_, token), _ in self._continuations(far)] if far else []
        some = self._some_sure(side)
        token = self._pairs.first_apart(last, some[~np.isin(some, ends)] if ends else some)
        if token < 0 and side.n_sure > some.size:
            row = side.sure & self._pairs.successors(last)
            for end in ends:
                tokenset.remove(row, end)
            token = next(iter(tokenset.first_ids(row, 1).tolist()), -1)
        return None if token < 0 else (token, False)

    def _doubtful_children(self, node: _Node) -> list[_Node]:
        inner, state, far, last = node
        children: list[_Node] = []
        if far not in self._tokenizer.whole_ends:
            side = self._side(inner, state, True)
            children += [(i, o, self._far(token, True), token) for token, i, o in side.undecided]
        if far != SEALED:
            side = self._side(inner, state, False)
            for token, i, o in side.undecided:
                if self._pairs.stay_apart(last, token):
                    children.append((i, o, self._tokenizer.whole_next.get((far, token), 0) if far else 0, token))
            for (_, token), then in self._continuations(far) if far else ():
                is_sure = tokenset.contains(side.sure, token)
                if is_sure and self._pairs.stay_apart(last, token):
                    children.append(self._after(inner, state, then, token))
        return children

    # Ends, and how far they are.

    def _completion(self, inner: int, state: int) -> tuple[int, ...] | None:
        """The tokens of some text from a pair of states that is alive by itself to an end; None for another pair."""
        key = (inner, state)
        if key not in self._completions:
            if self._splitter.may_end(state) and self.accepts(inner):
                self._completions[key] = ()
            else:
                text = self._text_after_cut(inner, state)
                self._completions[key] = None if text is None else tuple(self._tokenizer.encode(text))
        return self._completions[key]

    def _text_after_cut(self, inner: int, state: int) -> bytes | None:
        text = self._shortest_text(inner)
        if text and text[0] < 128 and self._splitter.is_certain_cut(state, text[0]):
            return text
        byte = self._next_cut(inner, state)
        return None if byte is None else bytes([byte]) + self._shortest_text(self.automaton.step(inner, byte))

    def _shortest_text(self, inner: int) -> bytes:
        """The shortest text to an end, as the constraint says it or else breadth first over bytes."""
        if hasattr(self._constraint, "shortest_text"):
            found: bytes = self._constraint.shortest_text(self.automaton.state(inner))
            return found
        texts = {inner: b""}
        queue = [inner]
        for at in queue:
            if self.accepts(at):
                return texts[at]
            if len(texts) > self._limits.search_states:
                break
            for byte in range(256):
                after = self.automaton.step(at, byte)
                if after != DEAD and after not in texts:
                    texts[after] = texts[at] + bytes([byte])
                    queue.append(after)
        raise LimitError(
            f"no end of the text was found within {self._limits.search_states} states of this one",
            remedy="Generate without a token budget, or pass Limits(search_states=...).",
        )

    def path(self, inner: int, place: Place, last: int) -> tuple[int, ...] | None:
        """Tokens from a place to an end, breadth first to the nearest known completion; None from a dead one."""
        start: _Node = (inner, place[0], place[1], last)
        ways: dict[_Node, tuple[int, ...]] = {start: ()}
        queue = [start]
        for at in queue:
            way = ways[at]
            rest = self._completion(at[0], at[1]) if at[2] not in self._tokenizer.whole_ends else None
            if rest is not None:
                return way + rest
            child = self._sure_child(at)
            if child is not None:
                token, cut = child
                node = self._after(at[0], self._splitter.cut(at[1]) if cut else at[1], 0, token)
                return (*way, token, *(self._completion(node[0], node[1]) or ()))
            for child_node in self._doubtful_children(at):
                if child_node not in ways and self._survives(child_node):
                    ways[child_node] = (*way, child_node[3])
                    queue.append(child_node)
        return None

    def _limit(
        self, side: _Side, inner: int, state: int, cut: bool, limit: int | None, row: NDArray[np.uint32]
    ) -> None:
        """Clear the tokens of ``row`` after which no completion of at most ``limit`` tokens is known."""
        if limit is None or not row.any():
            return
        within = self._priced(side, inner, state, cut).at_most(limit)
        if within is not None:
            row &= within

    def _priced(self, side: _Side, inner: int, state: int, cut: bool) -> TokenPrices:
        """The prices of one side's tokens, those looked at last kept."""
        key = (inner, state, cut)
        prices = self._prices.get(key)
        if prices is None:
            prices = self._prices[key] = self._measure(side, inner, self._splitter.cut(state) if cut else state, cut)
            while len(self._prices) > self._most_prices:
                self._prices.popitem(last=False)
        else:
            self._prices.move_to_end(key)
        return prices

    def _cost(self, inner: int, state: int) -> int:
        """Tokens to an end from a pair of states that is alive by itself and has a verdict."""
        from guided.kernels.tokens.canonical import pair_slot

        slot = pair_slot(self._keys, inner, state)
        cost = int(self._costs[slot])
        if cost == _NO_COST:
            cost = len(self._completion(inner, state) or ())
            self._costs[pair_slot(self._keys, inner, state)] = cost
        return cost

    def _measure(self, side: _Side, inner: int, root: int, cut: bool) -> TokenPrices:
        """Price the surviving tokens of one side."""
        costs = np.zeros(32 * self._tokenizer.vocabulary.n_words, np.int64)
        tokens = tokenset.ids(side.sure)
        if tokens.size:
            ours, theirs = self._leads(inner)[0][tokens], self._tokenizer.leads(root)[tokens]
            pairs, which = distinct_pairs(ours, theirs)
            costs[tokens] = np.asarray([self._cost(i, o) for i, o in pairs], np.int64)[which]
        assert side.alive is not None
        after: dict[tuple[int, int], int] = {}
        for token, i, o in side.undecided:
            if not tokenset.contains(side.alive, token):
                continue
            if (i, o) not in after:
                # Where a cut leads on for certain, `path` takes the same way for all tokens.
                after[i, o] = len(self.path(i, (o, 0), token) or ()) if self._after_cut(i, o) is not None else _NO_COST
            cost = after[i, o]
            if cost == _NO_COST:
                path = self.path(i, (o, self._far(token, cut)), token)
                assert path is not None
                cost = len(path)
            costs[token] = cost
        return TokenPrices.of(costs, side.alive)
