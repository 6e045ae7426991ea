"""Members of a record in any order, or counted: nodes of a rule graph that are made one at a time."""

from __future__ import annotations

from guided.automata.rules.costs import RuleCosts
from guided.automata.rules.nodes import Nodes
from guided.collection import untrack
from guided.grammar.goals import fewest_to_meet
from guided.grammar.ir import Members
from guided.kernels.data.layout import EMPTY

AFTER, KEYS, VALUES = 0, 1, 2
"""Nodes of a block: after the members that are there, before another key, and from the third on behind each key that
may come; behind each value they end."""


class FreeMembers:
    """Members in any order, or with bounds on their number: nodes in blocks, one for what is written so far.

    What is written is one number: the bit set of the declared members that are there, above it that of the goals that
    are met, above that how many members there are.  A text can visit many thousands of them, each with a node for
    every key that may be next, so nodes are numbers and nothing else.  Holds no graph, which holds it.
    """

    __slots__ = (
        "_blocks", "_body", "_cap", "_count_at", "_extras", "_fewest", "_goals_at", "_members", "_most", "_required",
        "_written", "end",
    )  # fmt: skip

    def __init__(self, graph: Nodes, body: Members, end: int) -> None:
        analysis = graph.analysis
        self._body = body
        self.end = end
        declared = analysis.usable(body.declared)
        self._extras = tuple(analysis.usable(body.extras))
        self._members = (*declared, *self._extras)
        """All that may be written; each is known by its place here."""
        self._goals_at = len(declared)
        self._count_at = self._goals_at + body.goals.bit_length()
        self._required = sum(1 << i for i, member in enumerate(declared) if member.required)
        self._most = body.high
        if not analysis.can_finish(body.separator):
            self._most = 1
        # Beyond this count nothing depends on it any more.
        self._cap = max(body.low, 1) if self._most is None else self._most
        self._blocks: dict[int, int] = {}
        """The first node of each block, by what is written."""
        self._written: dict[int, int] = {}
        """What is written, by the first node of the block."""
        self._fewest: dict[int, int] = {}
        """The fewest extras that meet some goals, -1 where they cannot."""
        graph.may_reach |= analysis.may_be_empty(body.separator) or any(
            analysis.may_be_empty(member.value) for member in self._members
        )
        for item in (self._members, self._extras, self):
            untrack(item)

    def begin(self, graph: Nodes, start: int) -> None:
        """Add the edges of the node before all members."""
        if self._may_end(0, 0, 0):
            graph.pending[start].append((EMPTY, 0, self.end, -1))
        self._offer(graph, start, 0, self._block(graph, 0))

    def make(self, graph: Nodes, node: int, base: int) -> None:
        """Make the edges of a node known that is in the block from ``base`` on."""
        place, written = node - base, self._written[base]
        if place == KEYS:
            graph.pending[node] = []
            self._offer(graph, node, written, base)
        elif place == AFTER:
            self._settle(graph, node, written, base)
        else:
            # Whichever member was written last, from here on only all that are there matter.
            written = self._with(written, place - VALUES - len(self._members))
            after = self._block(graph, written) + AFTER
            graph.pending[node] = [(EMPTY, 0, after, -1)]
            if not graph.is_known(after):
                self._settle(graph, after, written, after - AFTER)

    def price(self, costs: RuleCosts, graph: Nodes, node: int, base: int) -> int | None:
        """Fewest bytes from a node of the block from ``base`` on to the end of the members; None: see its edges."""
        place = node - base
        if VALUES <= place < VALUES + len(self._members):
            return None
        written = self._written[base]
        if place >= VALUES:
            written = self._with(written, place - VALUES - len(self._members))
        used, met, count = self._split(written)
        first = self._position(used)
        left = [
            (member.required, costs.body(member.key) + costs.body(member.value))
            for i, member in enumerate(self._members[: self._goals_at])
            if i >= first and not used >> i & 1
        ]
        required = [price for needed, price in left if needed]
        optional = [price for needed, price in left if not needed]
        body = self._body
        return costs.members(
            body.separator, required, optional, self._extras, body.low, count, place == KEYS, body.goals & ~met,
            self._most,
        )  # fmt: skip

    def _block(self, graph: Nodes, written: int) -> int:
        """The first node of the block for what is written."""
        base = self._blocks.get(written)
        if base is None:
            base = self._blocks[written] = graph.reserve(VALUES + 2 * len(self._members), self)
            self._written[base] = written
        return base

    def _split(self, written: int) -> tuple[int, int, int]:
        """The declared members that are there, the goals that are met, and the number of members."""
        used = written & ((1 << self._goals_at) - 1)
        met = (written >> self._goals_at) & ((1 << (self._count_at - self._goals_at)) - 1)
        return used, met, written >> self._count_at

    def _with(self, written: int, sort: int) -> int:
        """What is written with one member more, declared or extra."""
        used, met, count = self._split(written)
        if sort < self._goals_at:
            used |= 1 << sort
        else:
            met |= self._members[sort].meets & self._body.goals
        return used | met << self._goals_at | min(count + 1, self._cap) << self._count_at

    def _position(self, used: int) -> int:
        """The first declared member that may still come."""
        return used.bit_length() if self._body.ordered else 0

    def _may_end(self, used: int, met: int, count: int) -> bool:
        return count >= self._body.low and not self._required & ~used and not self._body.goals & ~met

    def _settle(self, graph: Nodes, node: int, written: int, base: int) -> None:
        """Add the edges of the node after what is written."""
        graph.pending[node] = []
        if self._may_end(*self._split(written)):
            graph.pending[node].append((EMPTY, 0, self.end, -1))
        if self._sorts(written):
            graph.lower(self._body.separator, node, base + KEYS)

    def _offer(self, graph: Nodes, node: int, written: int, base: int) -> None:
        """Add edges that read the next member's key, and the nodes behind them."""
        pending, members = graph.pending, self._members
        edges, n = pending[node], len(members)
        for sort in self._sorts(written):
            member, behind_key = members[sort], base + VALUES + sort
            graph.read(member.key, edges, behind_key)
            pending[behind_key] = []
            graph.lower(member.value, behind_key, behind_key + n)

    def _sorts(self, written: int) -> list[int]:
        """The members that may come next, by number, the extras after the declared ones."""
        used, met, count = self._split(written)
        after = min(count + 1, self._cap) if self._most is None else count + 1
        if self._most is not None and after > self._most:
            return []
        body, n = self._body, self._goals_at
        missing = self._required & ~used
        # How many more must come besides those that are required, and how many may.
        first = self._position(used)
        sorts: list[int] = []
        room = self._room(missing.bit_count(), body.goals & ~met, after)
        if room >= -1:
            stop = n
            if body.ordered:
                # None may be left out that is required; and those behind must be enough for the least number.
                if missing:
                    stop = (missing & -missing).bit_length()
                if not self._extras:
                    stop = min(stop, after + n - body.low)
            elif not self._extras and after + n - used.bit_count() - 1 < body.low:
                stop = 0
            allowed = ~used if room >= 0 else missing
            sorts = [i for i in range(first, stop) if allowed >> i & 1]
        for i, extra in enumerate(self._extras):
            goals = body.goals & ~(met | extra.meets)
            if self._room(missing.bit_count(), goals, after) >= 0:
                sorts.append(n + i)
        return sorts

    def _room(self, required: int, goals: int, count: int) -> int:
        """How many members may come that nothing demands; below -1 where not even goals can be met."""
        fewest = 0
        if goals:
            found = self._fewest.get(goals)
            if found is None:
                of_sorts = fewest_to_meet([member.meets for member in self._extras], goals)
                found = self._fewest[goals] = -1 if of_sorts is None else of_sorts
            if found < 0:
                return -2
            fewest = found
        return 1 if self._most is None else self._most - count - required - fewest
