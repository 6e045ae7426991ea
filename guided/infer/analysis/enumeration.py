"""Exact answers by enumeration: every token sequence that ends in time with its weight, likeliest prefix first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.html import number
from guided.infer.potentials.potential import Potential
from guided.infer.result import Cost, Particle
from guided.infer.runs.rounds import Round, RoundProgress
from guided.infer.sequences.exploration import MEMORY, Exploration
from guided.infer.sequences.visited import ROOT, Row
from guided.infer.shown import drawn_html
from guided.infer.weights import log_sum_exp, normalised
from guided.lm.model import LanguageModel

__all__ = ["MAX_PREFIXES", "READ", "Enumeration", "exact"]

MAX_PREFIXES = 100_000
"""Prefixes of a finite language that was counted before the model is asked about any."""

READ = 8_000
"""Prefixes that the model is asked about: some 10 s of one core with the packaged model, 1.3 ms each."""

_CHUNK = 64
"""Next tokens of a prefix that are kept in order of weight; more are sorted out when these have been used up."""


@dataclass(frozen=True)
class Enumeration:
    """Token sequences with their weights ``p(x) potential(x)``, and a bound on what was not looked at.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> found = infer.exact(model, [0], language, max_tokens=4)
    >>> [(particle.text, round(float(share), 3)) for particle, share in zip(found.particles, found.probabilities)]
    [('b', 0.625), ('ab', 0.375)]
    >>> round(found.log_ml, 3), found.log_rest
    (-3.037, -inf)
    """

    particles: tuple[Particle, ...]
    """The likeliest first; ``logw`` is the logarithm of ``p(x) potential(x)``."""
    log_rest: float
    """The logarithm of a bound on the weight of all other sequences; minus infinity when there are none."""
    cost: Cost = field(default_factory=Cost)

    def __len__(self) -> int:
        return len(self.particles)

    def _repr_html_(self) -> str:
        known: list[tuple[str, object]] = [
            ("token sequences", f"{len(self):,}"),
            ("log_ml, nats", number(self.log_ml)),
            ("not looked at, at most, nats", number(self.log_rest)),
        ]
        return drawn_html("Enumeration", [*known, *self.cost.shown()], self.posterior())

    @property
    def log_ml(self) -> float:
        """The logarithm of the total weight found: ``Z``, less at most ``exp(log_rest)``."""
        return log_sum_exp(self.logw)

    @property
    def logw(self) -> NDArray[np.float64]:
        """``float64[n]``: log weights, not normalised."""
        return np.array([particle.logw for particle in self.particles], np.float64)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """``float64[n]``: weights over their sum; the target itself where nothing was left out."""
        return normalised(self.logw)

    def posterior(self) -> dict[str, float]:
        """The probability of each text over all its tokenisations, the likeliest first; only texts that are UTF-8."""
        weights: dict[str, list[float]] = {}
        for particle in self.particles:
            if particle.text is not None:
                weights.setdefault(particle.text, []).append(particle.logw)
        sums = {text: log_sum_exp(logs) for text, logs in weights.items()}
        shares = normalised(list(sums.values()))
        return dict(sorted(zip(sums, shares.tolist(), strict=True), key=lambda item: -item[1]))


@dataclass
class _Open:
    """An expanded prefix whose next tokens have not all been looked at."""

    node: int
    logw: float
    """The log weight of the prefix."""
    tokens: list[int]
    """A chunk of next tokens in order of weight."""
    weights: list[float]
    """Their log weights in the row."""
    rest: list[float]
    """For each of them, the log weight in the row of it and all after it."""
    looked_at: int
    """Next tokens before the chunk."""
    size: int
    """Next tokens in all."""
    place: int = 0
    """How many of the chunk were looked at."""


def exact(
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    max_tokens: int = 256,
    mass: float = 1.0,
    max_prefixes: int = READ,
    batch: int = 64,
    memory: int = MEMORY,
    progress: RoundProgress | None = None,
) -> Enumeration:
    """Enumerate the token sequences of at most ``max_tokens`` tokens that end in the language, with their weights.

    Prefixes are read in batches, likeliest first.  ``mass`` below 1 stops as soon as what was found is at least that
    share of everything there can be; that needs weights that never rise above the model's probability, so it is
    refused for potentials that are not Boolean.  Raises `LimitError`, with what was found by then, when more than
    ``max_prefixes`` prefixes would have to be read, and `UnsatisfiableError` when there is nothing to find.
    """
    if not 0 < mass <= 1:
        raise GuidedError(f"mass is {mass}", remedy="Ask for a share above 0 and at most 1.")
    exploration = Exploration(model, prompt, potential, max_tokens=max_tokens, memory=memory, batch=batch)
    if mass < 1 and not exploration.potential.boolean:
        raise UnsupportedError(
            f"a share of the mass cannot be promised for {exploration.potential!r}, whose weights may rise",
            remedy="Enumerate all (mass=1), or declare the potential Boolean if it is.",
        )
    search = _Search(exploration)
    number = 0
    search.open([(ROOT, search.start)])
    while search.heap and not search.has(mass):
        pending = search.next_prefixes(batch)
        if search.read + len(pending) > max_prefixes:
            found, rest = math.exp(log_sum_exp(search.found_logs)), math.exp(min(search.log_rest(pending), 0.0))
            raise LimitError(
                f"the language has more than {max_prefixes} prefixes in tokens: probability {found:.3g} was found in"
                f" {len(search.found_logs)} sequences, at most {rest:.3g} is left",
                remedy="Raise max_prefixes, lower max_tokens, ask for a share with mass=0.99, or sample (cars, smc).",
            )
        search.open(pending)
        number += 1
        if progress is not None:
            progress(Round(number, (), len(search.found), max(len(search.found), 1), None, exploration.cost))
    if not search.found:
        raise UnsatisfiableError(
            f"no text of at most {max_tokens} tokens is in the language and has a probability",
            remedy="Raise max_tokens, or loosen the constraint.",
        )
    order = sorted(range(len(search.found)), key=lambda i: -search.found_logs[i])
    particles = tuple(exploration.particle(search.found[i], logw=search.found_logs[i]) for i in order)
    return Enumeration(particles, search.log_rest(()), exploration.cost)


class _Search:
    """Best first over prefixes; a heap entry is the best next token of an opened prefix that was not looked at."""

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        start = exploration.potential.prefix_at(exploration.state(ROOT))
        self.start = exploration.potential.checked(start)
        self.heap: list[tuple[float, int, _Open]] = []
        self.found: list[int] = []
        self.found_logs: list[float] = []
        self.read = 0
        """Prefixes that were opened."""
        self._checked = 0

    def open(self, pending: Sequence[tuple[int, float]]) -> None:
        """Read prefixes, given with their log weights, and put their best next tokens on the heap."""
        self.read += len(pending)
        rows = self.exploration.rows([node for node, _ in pending])
        for (node, logw), row in zip(pending, rows, strict=True):
            self._push(_Open(node, logw, [], [], [], 0, row.ids.size), row)

    def _push(self, opened: _Open, row: Row | None = None) -> None:
        if opened.place == len(opened.tokens):
            if opened.looked_at + opened.place >= opened.size:
                return
            self._fill(opened, self.exploration.rows([opened.node])[0] if row is None else row)
        heapq.heappush(self.heap, (-(opened.logw + opened.weights[opened.place]), opened.node, opened))

    def _fill(self, opened: _Open, row: Row) -> None:
        """The next chunk of a prefix's tokens."""
        logs = row.log_weights.astype(np.float64)
        order = np.argsort(-logs, kind="stable")
        begin = opened.looked_at + opened.place
        chunk = order[begin : begin + _CHUNK]
        after = log_sum_exp(logs[order[begin + _CHUNK :]])
        tails = np.logaddexp.accumulate(np.append(after, logs[chunk[::-1]]))[1:][::-1]
        opened.tokens, opened.weights, opened.rest = row.ids[chunk].tolist(), logs[chunk].tolist(), tails.tolist()
        opened.looked_at, opened.place = begin, 0

    def next_prefixes(self, batch: int) -> list[tuple[int, float]]:
        """Take entries off the heap, ends into what was found, until a batch of prefixes is to be read."""
        exploration = self.exploration
        pending: list[tuple[int, float]] = []
        while self.heap and len(pending) < batch:
            _, _, opened = heapq.heappop(self.heap)
            token, weight = opened.tokens[opened.place], opened.weights[opened.place]
            state, _ = exploration.step(exploration.state(opened.node), token)
            node = exploration.trie.attach(opened.node, token, state, weight)
            opened.place += 1
            self._push(opened)
            if exploration.is_end(node):
                self.found.append(node)
                self.found_logs.append(opened.logw + weight)
            else:
                pending.append((node, opened.logw + weight))
        return pending

    def has(self, mass: float) -> bool:
        """Is what was found at least this share of all that there can be?"""
        # Summing the heap costs as much as reading some prefixes: not more often than it grows by a part.
        if mass == 1 or not self.found or self.read < self._checked:
            return False
        self._checked = self.read + 1 + len(self.heap) // 64
        found = log_sum_exp(self.found_logs)
        return found >= math.log(mass) + log_sum_exp([found, self.log_rest(())])

    def log_rest(self, pending: Sequence[tuple[int, float]]) -> float:
        """The log weight of all that was not looked at, and of these prefixes."""
        logs = [opened.logw + opened.rest[opened.place] for _, _, opened in self.heap]
        return log_sum_exp([*logs, *(logw for _, logw in pending)])
