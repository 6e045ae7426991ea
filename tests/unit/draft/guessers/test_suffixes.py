"""The suffix automaton against a search of all texts, and the drafts that are made of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.draft import BestFirst, Context, Fixed, Path, Suffixes, speculate
from guided.draft.guessers.suffix_automaton import SuffixAutomaton, TextEnd
from guided.errors import GuidedError
from guided.lm.table import TableModel

TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=12), min_size=1, max_size=4)


def occurrences(texts, string):
    n = len(string)
    return [(text, at) for text in texts for at in range(len(text) - n + 1) if text[at : at + n] == string]


def followed(texts, last, longest):
    """By searching: the longest suffix that something came after, and what did."""
    for n in range(min(len(last), longest), 0, -1):
        found = Counter(text[at + n] for text, at in occurrences(texts, last[len(last) - n :]) if at + n < len(text))
        if found:
            return n, dict(found)
    return 0, dict(Counter(token for text in texts for token in text))


@given(TEXTS, st.integers(1, 5), st.lists(st.integers(0, 2), max_size=9), st.randoms(use_true_random=False))
def test_the_automaton_is_a_search_of_all_texts(texts, longest, query, random):
    """While the texts grow in turns, so that states are divided under matches that are being held."""
    automaton = SuffixAutomaton(longest=longest)
    grown, ends = [[] for _ in texts], [TextEnd() for _ in texts]
    match = automaton.match(())
    read = []
    while any(len(have) < len(text) for have, text in zip(grown, texts, strict=True)):
        at = random.choice([i for i, text in enumerate(texts) if len(grown[i]) < len(text)])
        token = texts[at][len(grown[at])]
        grown[at].append(token)
        automaton.append(ends[at], token)
        if len(read) < len(query):
            read.append(query[len(read)])
            match = automaton.step(match, read[-1])
            occurring = next(
                n for n in range(min(len(read), longest), -1, -1) if occurrences(grown, read[len(read) - n :])
            )
            # What was held may have come to occur in a longer form since; it is never longer than what occurs.
            assert match.length <= occurring
            string = read[len(read) - match.length :]
            assert not string or automaton.count(string) == len(occurrences(grown, string))
        assert automaton.following(automaton.match(read)) == followed(grown, read, longest)
    for text in texts:
        for n in range(1, longest + 1):
            for at in range(len(text) - n + 1):
                string = text[at : at + n]
                assert automaton.count(string) == len(occurrences(texts, string))
    assert automaton.count([7]) == 0
    assert len(automaton) <= 2 * sum(map(len, texts)) + 1


@pytest.mark.parametrize("text", [[0] * 400, [0, 1] * 200, [0] * 200 + [1] + [0] * 199, list(range(400))])
def test_it_is_linear_whatever_the_text(text):
    """Steps along links, which are what is not constant, are fewer than tokens over a whole text."""
    automaton = SuffixAutomaton([text], longest=400)
    transitions = sum(1 for state in range(len(automaton)) for _ in automaton._successors(state))
    assert len(automaton) <= 2 * len(text)
    assert transitions <= 3 * len(text)
    match, lengths = automaton.match(()), []
    for token in text:
        match = automaton.step(match, token)
        lengths.append(match.length)
    assert lengths == list(range(1, len(text) + 1))
    assert automaton.count([0] * 150) == len(occurrences([text], [0] * 150))


def context(tokens, *, row=0, n_prompt=None, budget=8):
    return Context(row, tokens, len(tokens) if n_prompt is None else n_prompt, None, 0, budget)


def guessed(suffixes, tokens, drafted=()):
    found = suffixes.guess(Path(context(tokens), tuple(drafted), 1))
    return [(guess.token, round(guess.share, 3)) for guess in found]


def test_guesses_are_shares_of_what_came_after_the_longest_match():
    suffixes = Suffixes([[1, 2, 3, 4], [5, 2, 3, 6], [5, 2, 3, 6]])
    assert guessed(suffixes, [1, 2, 3]) == [(4, 0.5)]
    suffixes.leave([0])
    assert guessed(suffixes, [9, 2, 3]) == [(6, 0.5), (4, 0.25)]
    assert guessed(suffixes, [9, 2, 3], [4]) == [], "what ends a text says nothing"
    assert guessed(suffixes, [9, 2, 3, 2]) == [(3, 0.5), (3, 0.75)], "its own text first"
    with pytest.raises(GuidedError):
        Suffixes(longest=0)


def test_drafts_follow_the_text_as_a_search_of_it_would():
    rng = np.random.default_rng(1)
    text, suffixes = [], Suffixes(longest=5)
    for token in rng.integers(0, 3, 300).tolist():
        text.append(token)
        length, counts = followed([text], text, 5)
        # The text's own end is no place to go on from, and has nothing after it.
        expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:4] if length else []
        total = sum(counts.values())
        assert guessed(suffixes, text) == [(token, round(count / (total + 1), 3)) for token, count in expected]


def counter_model(period):
    """Says 0, 1, 2, ... in turn whatever comes before."""
    return TableModel(lambda tokens: np.log(np.eye(period + 2)[(tokens[-1] + 1) % period] + 1e-9), width=period + 2,
                      eos_ids=[period + 1])  # fmt: skip


def test_outputs_of_other_rows_and_runs_are_drafted():
    """The second text of a run needs a third of the passes, and those of batches learn from each other."""
    model, suffixes = counter_model(20), Suffixes()
    _, first = speculate(0, model, [[0]], [None], suffixes, max_tokens=20, greedy=True, policy=Fixed(8))
    _, second = speculate(0, model, [[0]], [None], suffixes, max_tokens=20, greedy=True, policy=Fixed(8))
    assert first.passes == 19
    assert second.passes <= 4
    ahead = Suffixes()
    _, both = speculate(0, model, [[0], [10]], [None, None], ahead, max_tokens=20, greedy=True, policy=Fixed(8))
    assert both.passes < 19
    prompts = Suffixes()
    _, alone = speculate(0, model, [list(range(20)) * 2], [None], prompts, max_tokens=20, greedy=True, policy=Fixed(8))
    assert alone.passes <= 4, "its own prompt"


def test_the_collection_forgets_the_oldest_outputs():
    model, suffixes = counter_model(7), Suffixes([[6, 6, 6, 5]], limit=40)
    for seed in range(12):
        speculate(0, model, [[seed % 7]], [None], suffixes, max_tokens=15, greedy=True, policy=Fixed(4))
        assert suffixes._n_outputs == sum(map(len, suffixes._outputs)) <= 40
    assert len(suffixes._shared) < 100
    assert guessed(suffixes, [6, 6, 6])[-1][0] == 5, "the corpus stays"
    short = Suffixes(limit=6)
    (text,), _ = speculate(0, model, [[0]], [None], short, max_tokens=30, greedy=True, policy=Fixed(4))
    assert list(text.tokens) == [token % 7 for token in range(1, 31)]
    assert short._n_outputs <= 6


def test_longer_matches_earn_larger_drafts():
    """Calibrated by the length of the match: after long ones that came true the tree is deep."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 30, 400).tolist()
    suffixes = Suffixes([[*noise, *range(40, 60)]])
    model = TableModel(lambda tokens: np.log(np.eye(62)[min(tokens[-1] + 1, 60)] + 1e-9), width=62, eos_ids=[61])
    speculate(0, model, [[40]] * 6, [None] * 6, suffixes, max_tokens=19, greedy=True, policy=Fixed(8))
    deep = suffixes.draft(None, [context(list(range(40, 50)), row=9)])[0].tree
    assert len(deep) == 8
    assert deep.parents == tuple(range(-1, 7))
    assert isinstance(suffixes._own, BestFirst)
