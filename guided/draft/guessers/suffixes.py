"""`Suffixes`: what came after the longest suffix of the text that occurred before, in the text itself or in others.

SAM decoding (Hu et al., 2024, arXiv 2411.10666): a suffix automaton follows the text, so that the longest match is
known after each token at amortised constant cost, in the text itself (prompt and output) and in a collection.  Suffix
decoding (Oliaro et al., 2024, arXiv 2411.04975): the collection grows by what was written in the run and in earlier
ones, continuations are weighed by their counts, and longer matches earn larger drafts.  Here `BestFirst` decides how
large: it counts how often guesses came true for each length of match.  Reconstructed from the papers' texts.

`PromptLookup` takes one place of at most a few tokens' match; `Datastore` has an index of documents that stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.best_first import BestFirst
from guided.draft.guessers.guess import Guess, Path
from guided.draft.guessers.suffix_automaton import Match, SuffixAutomaton, TextEnd
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance

__all__ = ["Suffixes"]

BRANCHES = 4
"""Continuations that are guessed from one match."""
SHARED = 1 << 10
"""Added to the level of guesses from the collection."""


class _Reader:
    """One row: how far its text was read, and the longest matches at its end."""

    def __init__(self, longest: int) -> None:
        self.own = SuffixAutomaton(longest=longest)
        self.end = TextEnd()
        self.written: TextEnd | None = None
        """The end of the output in the collection."""
        self.n_written = 0
        self.n_read = 0
        self.last = -1
        self.in_own = Match()
        self.in_shared = Match()

    def follows(self, tokens: Sequence[int]) -> bool:
        """Whether a text may be the one that was read, or one that it has grown to."""
        return self.n_read <= len(tokens) and (not self.n_read or tokens[self.n_read - 1] == self.last)

    def read(self, tokens: Sequence[int], shared: SuffixAutomaton) -> None:
        """Follow the text to its end: a token is matched before it is entered, so that it never matches itself."""
        for token in tokens[self.n_read :]:
            self.in_own = self.own.step(self.in_own, token)
            self.in_shared = shared.step(self.in_shared, token)
            self.own.append(self.end, token)
            self.last = token
        self.n_read = len(tokens)


class Suffixes:
    """Guesses by exact counts after the longest match; stays warm from one run to the next.

    ``corpus`` are token sequences that the collection begins with.  ``longest`` is the most tokens that are matched;
    ``limit`` is the most tokens of outputs that the collection keeps beside the corpus, the latest ones; some 150 bytes
    a token.  Raises `GuidedError` for a longest match or a limit below 1.
    """

    def __init__(self, corpus: Iterable[Sequence[int]] = (), *, longest: int = 32, limit: int = 1 << 18) -> None:
        if longest < 1 or limit < 1:
            raise GuidedError(
                f"matches of {longest} tokens in {limit} tokens of outputs", remedy="Both numbers are at least 1."
            )
        self.longest = longest
        self.limit = limit
        self._corpus = [tuple(text) for text in corpus]
        self._shared = SuffixAutomaton(self._corpus, longest=longest)
        self._outputs: deque[list[int]] = deque()
        """What was written into the collection, by text."""
        self._n_outputs = 0
        self._rows: dict[int, tuple[_Reader, list[int]]] = {}
        self._matches: dict[tuple[int, tuple[int, ...]], tuple[Match, Match]] = {}
        """Of the places of drafts that are being made: by row and drafted tokens."""
        self._own = BestFirst(self)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The likeliest continuations first."""
        return self._own.draft(chance, contexts)

    def guess(self, path: Path) -> Sequence[Guess]:
        """The commonest tokens after the longest match in the text itself, and in the collection."""
        reader, _ = self._reader(path.context)
        in_own, in_shared = self._matched(path, reader)
        return [*_guesses(reader.own, in_own, 0), *_guesses(self._shared, in_shared, SHARED)]

    def _matched(self, path: Path, reader: _Reader) -> tuple[Match, Match]:
        """The matches at a place of a draft, from those one token before."""
        if not path.drafted:
            return reader.in_own, reader.in_shared
        key = path.context.row, path.drafted
        found = self._matches.get(key)
        if found is None:
            before = Path(path.context, path.drafted[:-1], path.state)
            own, shared = self._matched(before, reader)
            token = path.drafted[-1]
            found = self._matches[key] = reader.own.step(own, token), self._shared.step(shared, token)
        return found

    def _reader(self, context: Context) -> tuple[_Reader, list[int]]:
        found = self._rows.get(context.row)
        if found is None or not found[0].follows(context.tokens):
            found = self._rows[context.row] = _Reader(self.longest), []
        if found[0].n_read < len(context.tokens):
            found[0].read(context.tokens, self._shared)
            self._matches.clear()
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Enter what was written; how far to trust matches is learned."""
        self._own.count(observed)
        self._matches.clear()
        for seen in observed:
            self._write(seen.context)

    def _write(self, context: Context) -> None:
        reader, written = self._reader(context)
        if reader.written is None:
            reader.written, reader.n_written = TextEnd(), context.n_prompt
            self._outputs.append(written)
        for token in context.tokens[reader.n_written :]:
            self._shared.append(reader.written, token)
            written.append(token)
            self._n_outputs += 1
        reader.n_written = len(context.tokens)
        if self._n_outputs > self.limit:
            self._forget()

    def _forget(self) -> None:
        """Keep the latest half of the outputs: the collection is built anew, once for so many tokens."""
        while self._n_outputs > self.limit // 2 and len(self._outputs) > 1:
            self._n_outputs -= len(self._outputs.popleft())
        if self._n_outputs > self.limit:
            (only,) = self._outputs
            del only[: len(only) - self.limit // 2]
            self._n_outputs = len(only)
        kept = {id(text) for text in self._outputs}
        self._shared = SuffixAutomaton(self._corpus, longest=self.longest)
        ends = {id(text): TextEnd() for text in self._outputs}
        for text in self._outputs:
            for token in text:
                self._shared.append(ends[id(text)], token)
        for reader, text in self._rows.values():
            reader.in_shared = Match()
            if reader.written is not None:
                reader.written = ends[id(text)] if id(text) in kept else None
                if reader.written is None:
                    text.clear()

    def leave(self, rows: Sequence[int]) -> None:
        """Forget the rows; what they wrote stays in the collection."""
        self._own.forget(rows)
        self._matches.clear()
        for row in rows:
            self._rows.pop(row, None)


def _guesses(automaton: SuffixAutomaton, match: Match, kind: int) -> list[Guess]:
    length, counts = automaton.following(match)
    if not length:
        return []
    total = sum(counts.values())
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:BRANCHES]
    return [
        Guess(token, count / (total + 1), kind + 8 * min(length, 32) + min(int(8 * count / total), 7))
        for token, count in best
    ]
