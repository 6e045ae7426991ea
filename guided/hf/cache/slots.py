"""`Slots`: which slot of a cache holds the keys and values of which prefix, and how slots are shared, copied and moved.

A slot begins with the tokens of every holder that points to it.  Forking is pointing twice; a copy is made when two
holders are to grow apart.  A pass needs its slots next to each other, so finished rows change places with others now
and then; no move is made that is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from guided.hf.network import Network
from guided.lm import Prefixes

__all__ = ["Holder", "Prompt", "Slots", "Work"]


@dataclass(eq=False)
class Prompt:
    """What rows began with."""

    tokens: tuple[int, ...]
    root: int
    """The prefix before the first token that the decoder reads."""
    skip: int
    """Tokens of the decoder that are not the row's: the start tokens of an encoder-decoder model."""
    depth: int
    """Tokens of the decoder that belong to the prompt."""


@dataclass(eq=False)
class Holder:
    """Something that needs a slot which begins with a prefix."""

    prefix: int
    slot: int
    """-1 where there is none yet."""
    prompt: Prompt


@dataclass(eq=False)
class Work(Holder):
    """A prefix that is to grow by tokens, in a slot of its own."""

    tokens: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    """The rows that it is done for."""
    unasked: int = 0
    """The length up to which scores are not asked for."""


class Slots:
    """The slots of one cache: ``content`` is the prefix that each holds, ``prompts`` whose encoder's side."""

    def __init__(self, network: Network, prefixes: Prefixes) -> None:
        self.network = network
        self.cache = network.new_cache()
        self.content: list[int] = []
        self.prompts: list[Prompt | None] = []
        self.exact = network.keeps_states
        """Whether a slot serves its whole content only, and none of its beginnings."""
        self._prefixes = prefixes
        self._nothing = prefixes.root()

    def beginnings(self) -> dict[int, int]:
        """Every prefix that some slot begins with, and such a slot."""
        found: dict[int, int] = {}
        if self.exact:
            return {prefix: slot for slot, prefix in enumerate(self.content)}
        for slot, prefix in enumerate(self.content):
            while self._prefixes.depth(prefix) and prefix not in found:
                found[prefix] = slot
                prefix = self._prefixes.parent(prefix)
        return found

    def append(self, works: Sequence[Work]) -> None:
        """Give works that begin with nothing the next slots, in order."""
        for work in works:
            work.slot = len(self.content)
            self.content.append(work.prefix)
            self.prompts.append(work.prompt)

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Prefixes have other numbers now; every one in `prefixes` has one."""
        self.content = [numbers.get(prefix, prefix) for prefix in self.content]
        self._nothing = numbers[self._nothing]

    @property
    def prefixes(self) -> list[int]:
        """The prefixes that are needed here."""
        return [self._nothing, *self.content]

    def truncate(self, works: Sequence[Work]) -> None:
        """Before a pass: from now on the works' slots hold no more than their prefixes, even if the pass fails."""
        for work in works:
            self.content[work.slot] = self._nothing if self.exact else work.prefix

    def check(self, holders: Iterable[Holder]) -> None:
        """Take slots from holders that they serve no longer."""
        for holder in holders:
            if self.exact and holder.slot >= 0 and self.content[holder.slot] != holder.prefix:
                holder.slot = -1

    def arrange(
        self,
        active: Sequence[Work],
        idle: Sequence[Holder],
        *,
        together: bool = True,
        rewrite: bool = False,
        beyond: int = 0,
    ) -> None:
        """Give each active work a slot of its own; idle holders keep what they need, perhaps elsewhere.

        ``together`` puts the active slots next to each other.  ``rewrite`` says that the works only compute again what
        their slots hold, and have different ones.  Copies bring ``beyond`` columns more than the slot's content.
        """
        depth = self._prefixes.depth
        deepest: dict[int, int] = {}
        self.check(idle)
        for holder in idle:
            if holder.slot >= 0:
                deepest[holder.slot] = max(deepest.get(holder.slot, 0), depth(holder.prefix))
        owners: dict[int, Work] = {}
        for work in active:
            # Writing after a prefix spoils the slot for holders of anything longer.
            spoils = work.slot in deepest if self.exact else depth(work.prefix) < deepest.get(work.slot, 0)
            if work.slot >= 0 and (rewrite or not spoils):
                best = owners.get(work.slot)
                if best is None or depth(best.prefix) < depth(work.prefix):
                    owners[work.slot] = work
        owned = {id(work): slot for slot, work in owners.items()}
        resting = sorted(deepest.keys() - owners.keys())
        places, rests = self._places(active, owned, resting, together)
        self._move(active, places, resting, rests, owned, beyond)
        moved = dict(zip(resting, rests, strict=True))
        for work, place in zip(active, places, strict=True):
            if id(work) in owned:
                moved[work.slot] = place
        for holder in {id(holder): holder for holder in idle}.values():
            if holder.slot >= 0:
                holder.slot = moved[holder.slot]
        for work, place in zip(active, places, strict=True):
            work.slot = place

    def _places(
        self, active: Sequence[Work], owned: dict[int, int], resting: list[int], together: bool
    ) -> tuple[list[int], list[int]]:
        """New slots of the active works and of the resting slots, with the fewest moves among a few arrangements."""
        if not together:
            taken = {*owned.values(), *resting}
            free = iter([slot for slot in range(len(self.content) + len(active)) if slot not in taken])
            return [owned[id(work)] if id(work) in owned else next(free) for work in active], resting
        total = len(active) + len(resting)
        best: tuple[int, list[int], list[int]] | None = None
        lows = {0, len(resting), min(owned.values(), default=0)}
        for low in sorted(low for low in lows if low <= len(resting)):
            inside = range(low, low + len(active))
            outside = [slot for slot in range(total) if slot not in inside]
            places = _kept_or_next([owned.get(id(work), -1) for work in active], inside)
            rests = _kept_or_next(resting, outside)
            cost = sum(owned.get(id(work), place) != place for work, place in zip(active, places, strict=True))
            cost += sum(slot != rest for slot, rest in zip(resting, rests, strict=True))
            if best is None or cost < best[0]:
                best = (cost, places, rests)
        assert best is not None
        return best[1], best[2]

    def _move(
        self,
        active: Sequence[Work],
        places: list[int],
        resting: list[int],
        rests: list[int],
        owned: dict[int, int],
        beyond: int,
    ) -> None:
        """Copy what has to be copied, all at once, and note what the slots hold."""
        pairs = [(work.slot, place) for work, place in zip(active, places, strict=True) if work.slot not in (-1, place)]
        pairs += [(slot, rest) for slot, rest in zip(resting, rests, strict=True) if slot != rest]
        used = max((*places, *rests), default=-1) + 1
        content, prompts = self.content, self.prompts
        self.content = [*content[:used], *[-1] * (used - len(content))]
        self.prompts = [*prompts[:used], *[None] * (used - len(prompts))]
        for work, place in zip(active, places, strict=True):
            self.content[place] = content[work.slot] if id(work) in owned else work.prefix
            self.prompts[place] = work.prompt
        for slot, rest in zip(resting, rests, strict=True):
            self.content[rest], self.prompts[rest] = content[slot], prompts[slot]
        if not pairs:
            return
        columns = max(self._prefixes.depth(content[slot]) for slot, _ in pairs) + beyond
        self.network.calls.moved += len(pairs)
        with torch.inference_mode():
            self.cache.reserve(used, columns)
            self.cache.move([slot for slot, _ in pairs], [place for _, place in pairs], columns)
            # The encoder's side is that of the prompt, and stays where the prompt does.
            others = [(slot, place) for slot, place in pairs if prompts[slot] is not _at(prompts, place)]
            if self.cache.cross and others:
                width = max(len(prompt.tokens) for prompt in prompts if prompt is not None)
                self.cache.reserve_cross(used, width)
                self.cache.move_cross([slot for slot, _ in others], [place for _, place in others], width)

    def compact(self, works: Sequence[Work], paths: Sequence[tuple[int, ...]]) -> None:
        """Bring the columns of one path of a tree together: node n is ``path[n]`` columns after the work's prefix."""
        by_length: dict[int, list[tuple[int, list[int], list[int]]]] = {}
        for work, path in zip(works, paths, strict=True):
            past = self._prefixes.depth(work.prefix)
            if path != tuple(range(len(path))):
                places = list(range(past, past + len(path)))
                by_length.setdefault(len(path), []).append((work.slot, [past + node for node in path], places))
        with torch.inference_mode():
            for found in by_length.values():
                self.cache.gather([f[0] for f in found], [f[1] for f in found], [f[2] for f in found])


def _kept_or_next(wanted: Sequence[int], slots: Sequence[int]) -> list[int]:
    """Each its wanted slot if that is among ``slots``, else the next one that nobody wants."""
    inside = set(slots)
    kept = inside & set(wanted)
    free = iter([slot for slot in slots if slot not in kept])
    return [slot if slot in kept else next(free) for slot in wanted]


def _at(prompts: Sequence[Prompt | None], slot: int) -> Prompt | None:
    return prompts[slot] if slot < len(prompts) else None
