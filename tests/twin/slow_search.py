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
