"""Searches written out plainly over token tuples, by enumeration of strings: no masks, no rows, no shared prefixes."""

from __future__ import annotations

import itertools
import math

import guided

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", None], eos_ids=[4])
END = 4
PROMPT = (1, 0)


def anything():
    """Every text over a, b and c."""
    return guided.compile(guided.regex("[abc]*"), VOCABULARY)


def total(model, tokens, prompt=PROMPT):
    """The log-probability of whole sequences, token by token."""
    return sum(float(model.logprobs((*prompt, *tokens[:n]))[token]) for n, token in enumerate(tokens))


def every_text(accepts, max_tokens):
    """All token sequences that end in time and whose text is accepted."""
    for length in range(max_tokens):
        for tokens in itertools.product(range(END), repeat=length):
            if accepts("".join(("a", "b", "c", "ab")[token] for token in tokens)):
                yield (*tokens, END)


def contains(tokens, phrase):
    """Whether the phrase occurs among the tokens."""
    return any(tuple(tokens[n : n + len(phrase)]) == tuple(phrase) for n in range(len(tokens)))


def slow_beam(model, texts, width, n_best, max_tokens, penalty=0.0):
    """Beam search over a finite set of texts, never stopping early; pairs of tokens and score."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    live, finished = [()], []
    for _ in range(max_tokens):
        grown = [(*tokens, t) for tokens in live for t in range(END + 1) if (*tokens, t) in prefixes]
        grown = [tokens for tokens in grown if total(model, tokens) > -math.inf]
        grown.sort(key=lambda tokens: -total(model, tokens))
        finished += [tokens for tokens in grown[:width] if tokens[-1] == END]
        live = [tokens for tokens in grown if tokens[-1] != END][:width]
    ranked = sorted(finished, key=lambda tokens: (-total(model, tokens) / len(tokens) ** penalty, len(tokens), tokens))
    return [(tokens, total(model, tokens)) for tokens in ranked[:n_best]]


def _continuations(live, prefixes):
    return [(*tokens, t) for tokens in live for t in range(END + 1) if (*tokens, t) in prefixes]


def slow_grid(model, texts, phrases, width, max_tokens):
    """Grid beam search as the paper words it, single-option phrases: cells hold (tokens, phrases left, rest of one)."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    covered_in_all = sum(map(len, phrases))
    grid = {0: [((), frozenset(range(len(phrases))), ())]}
    finished = []
    for step in range(max_tokens):
        following = {}
        for covered in range(covered_in_all + 1):
            cell = set()
            for tokens, left, rest in grid.get(covered, ()):
                if not rest:
                    cell |= {(new, left, ()) for new in _continuations([tokens], prefixes)}
            for tokens, left, rest in grid.get(covered - 1, ()):
                if rest:
                    cell.add(((*tokens, rest[0]), left, rest[1:]))
                else:
                    cell |= {((*tokens, phrases[i][0]), left - {i}, tuple(phrases[i][1:])) for i in left}
            cell = [entry for entry in cell if entry[0] in prefixes]
            whole = [e for e in cell if e[0][-1] != END or covered == covered_in_all]
            whole.sort(key=lambda entry: -total(model, entry[0]))
            # An end counts if it is among the best; texts placed in several ways are several candidates.
            finished += [e[0] for e in whole[:width] if e[0][-1] == END]
            room = max_tokens - (step + 1) - 1
            following[covered] = [e for e in whole if e[0][-1] != END and covered_in_all - covered <= room][:width]
        grid = following
    return sorted(set(finished), key=lambda tokens: -total(model, tokens))


def slow_allocation(model, texts, options, width, max_tokens):
    """Dynamic beam allocation with everything recounted from the tokens."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    size = sum(min(map(len, each)) for each in options)

    def lacking(tokens, each):
        """The fewest tokens to append until one of the phrases occurs."""
        if any(contains(tokens, phrase) for phrase in each):
            return 0
        return min(
            len(phrase) - begun
            for phrase in each
            for begun in range(len(phrase))
            if begun == 0 or tuple(tokens[-begun:]) == phrase[:begun]
        )

    def bank(tokens):
        return size - sum(lacking(tokens, each) for each in options)

    def begun_or_first(tokens, each):
        """The next tokens of phrases begun; the first ones of all where none is."""
        if any(contains(tokens, phrase) for phrase in each):
            return set()
        going = {p[n] for p in each for n in range(1, len(p)) if tuple(tokens[-n:]) == p[:n]}
        return going or {phrase[0] for phrase in each}

    live, finished = [()], []
    for _ in range(max_tokens):
        grown = sorted(_continuations(live, prefixes), key=lambda tokens: -total(model, tokens))
        going = [tokens for tokens in grown if tokens[-1] != END]
        chosen = set(going[:width])
        for tokens in live:
            own = [new for new in going if new[:-1] == tokens]
            chosen |= set(own[:1])
            chosen |= {new for new in own for each in options if new[-1] in begun_or_first(tokens, each)}
        chosen = {
            new for new in chosen if len(new) + max((lacking(new, each) for each in options), default=0) < max_tokens
        }
        banks = [[new for new in going if new in chosen and bank(new) == b] for b in range(size + 1)]
        ends = [new for new in grown if new[-1] == END and bank(new[:-1]) == size]
        last = sorted([*banks[-1], *ends], key=lambda tokens: -total(model, tokens))
        finished += [new for new in last[:width] if new[-1] == END]
        slots = [width // (size + 1)] * (size + 1)
        slots[-1] += width - sum(slots)
        for _ in range(width):
            for b in range(size + 1):
                if slots[b] > len(banks[b]):
                    # The next lower bank with room, or the highest.
                    room = [c for c in [*range(b - 1, -1, -1), *range(size, b, -1)] if slots[c] < len(banks[c])]
                    slots[b] -= 1
                    if room:
                        slots[room[0]] += 1
        live = [new for b in range(size + 1) for new in banks[b][: slots[b]]]
    return sorted(finished, key=lambda tokens: -total(model, tokens))
