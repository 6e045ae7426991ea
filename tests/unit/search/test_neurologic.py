"""NeuroLogic decoding against enumeration, and its look-ahead against rollouts written out."""

from __future__ import annotations

import math
import re

import pytest

import guided
from guided.errors import GuidedError, LimitError
from guided.lm import TableModel
from guided.search import Clause, Literal, LookAhead, PhraseConstraint, beam_search, neurologic_search
from guided.search.frontier import Frontier
from guided.search.neurologic import _Grouped
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.slow_search import END, PROMPT, VOCABULARY, anything, contains, every_text, total

WIDE = 3000


def has(*phrase):
    return Literal(PhraseConstraint.of(phrase))


def lacks(*phrase):
    return Literal(PhraseConstraint.of(phrase), positive=False)


CASES = {
    "one": [Clause.of(has(2))],
    "either, and not": [Clause.of(has(0, 1), has(2)), Clause.of(lacks(1, 1))],
    "not both": [Clause.of(lacks(0), lacks(3)), Clause.of(has(1))],
    "one or the absence of another": [Clause.of(has(2, 2), lacks(0))],
}


def satisfied(tokens, clauses):
    return all(
        any(any(contains(tokens, o) for o in li.phrase.options) == li.positive for li in clause.literals)
        for clause in clauses
    )


@pytest.mark.parametrize("case", each(CASES, 2))
@pytest.mark.parametrize("look_ahead", [None, LookAhead(2, 0.5)])
def test_wide_beams_find_the_best_of_all(case, look_ahead):
    clauses = CASES[case]
    if look_ahead is not None:
        pattern, limit = "(ab|c)*b?a?", 4
    else:
        pattern, limit = "[abc]*", 5
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = [text for text in every_text(re.compile(pattern).fullmatch, limit) if satisfied(text, clauses)]
    assert texts
    for seed in range(3):
        model = TableModel.random(seed, width=5)
        found = neurologic_search(
            model, PROMPT, constraint, clauses, width=WIDE, n_best=3, max_tokens=limit, look_ahead=look_ahead
        )
        expected = sorted(texts, key=lambda text: -total(model, text))[:3]
        assert [h.tokens for h in found] == expected
        assert [h.score for h in found] == pytest.approx([total(model, text) for text in expected], abs=DOUBLE)


@pytest.mark.parametrize("case", each(CASES, 2))
def test_outputs_satisfy_every_clause(case):
    found_some = 0
    for seed in range(8):
        model = TableModel.random(seed, width=5, scale=2.5)
        for look_ahead in (None, LookAhead(3, 1.0), LookAhead(2, 1.0, beams=2)):
            found = neurologic_search(
                model, PROMPT, anything(), CASES[case], width=3, n_best=3, max_tokens=9, look_ahead=look_ahead
            )
            found_some += len(found) > 0
            for h in found:
                assert satisfied(h.tokens, CASES[case]) and h.tokens[-1] == END and len(h.tokens) <= 9
                assert h.score == pytest.approx(total(model, h.tokens), abs=DOUBLE)
    assert found_some > 16


def test_without_clauses_it_is_beam_search():
    for seed in range(6):
        model = TableModel.random(seed, width=5)
        options = {"width": 3, "n_best": 3, "max_tokens": 6}
        beam = beam_search(model, PROMPT, anything(), **options)
        assert neurologic_search(model, PROMPT, anything(), [], **options) == beam
        ahead = neurologic_search(model, PROMPT, anything(), [], look_ahead=LookAhead(), **options)
        assert ahead == beam
        # With one group and no weight the look-ahead changes nothing either.
        never = [Clause.of(lacks(0, 0, 0, 0, 0, 0, 0))]
        assert neurologic_search(model, PROMPT, anything(), never, **options).hypotheses == beam.hypotheses


def slow_hope(model, tokens, options, length, max_tokens):
    """Greedy continuation; the highest log-probability of an option, or of the rest of one begun, at any place."""
    before, best = total(model, tokens), -math.inf
    for option in options:
        for begun in range(1, len(option)):
            if tokens[-begun:] == option[:begun]:
                best = max(best, total(model, tokens + option[begun:]) - before)
    for _ in range(length):
        here = total(model, tokens)
        best = max(best, *(total(model, tokens + option) - here for option in options))
        if len(tokens) == max_tokens - 1:
            break
        tokens += (max(range(END), key=lambda t: model.logprobs((*PROMPT, *tokens))[t]),)
    return best


@pytest.mark.parametrize("length", each([1, 3, 5], 2))
def test_the_look_ahead_is_that_of_rollouts(length):
    phrase = PhraseConstraint.of((0, 2, 1), (3,), (1, 1))
    for seed in range(5):
        model = TableModel.random(seed, width=5)
        frontier = Frontier(model, PROMPT, anything(), 5)
        rule = _Grouped(frontier, [Clause.of(Literal(phrase))], 4, 4, 0.1, None)
        frontier.root.extra = rule.start
        rows = frontier.expand([frontier.root])
        nodes = [rows[0].child(t, rule.advance(rule.start, t)) for t in (0, 1, 2, 3)]
        hopes = rule.hopes(nodes, LookAhead(length), rows)
        expected = [slow_hope(model, (t,), phrase.options, length, 5) for t in (0, 1, 2)]
        assert hopes[:3] == pytest.approx(expected, abs=DOUBLE) and hopes[3] == 0.0
        wider = rule.hopes(nodes, LookAhead(length, beams=3), rows)
        assert wider[3] == 0.0
        # The rows of the beam are still there.
        again = frontier.expand(nodes)
        assert [c.node for c in again] == nodes


def test_what_cannot_be_is_refused_or_not_found():
    model = TableModel.random(1, width=5)
    only = guided.compile(guided.regex("[ab]*"), VOCABULARY)
    assert not neurologic_search(model, PROMPT, only, [Clause.of(has(2))], max_tokens=5).hypotheses
    assert not neurologic_search(model, PROMPT, anything(), [Clause.of(has(2)), Clause.of(lacks(2))], max_tokens=4)
    with pytest.raises(GuidedError, match="without literals"):
        Clause.of()
    with pytest.raises(LimitError):
        neurologic_search(model, PROMPT, anything(), [Clause.of(has(0, 0, 0))], max_tokens=3)
    for options in ({"width": 0}, {"expand": 0}, {"progress_weight": math.nan}):
        with pytest.raises(GuidedError):
            neurologic_search(model, PROMPT, anything(), [], **options)
    for bad in ((0, 1.0, 1), (1, math.inf, 1), (1, 1.0, 0)):
        with pytest.raises(GuidedError):
            LookAhead(*bad)


def slow_neurologic(model, texts, clauses, width, expand, progress_weight, max_tokens):
    """The search with every clause judged anew from the tokens; clauses of one-option literals."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}

    def occurs(tokens, literal):
        return contains(tokens, literal.phrase.options[0])

    def for_good(tokens, clause):
        return any(li.positive and occurs(tokens, li) for li in clause.literals)

    def so_far(tokens, clause):
        return for_good(tokens, clause) or any(not li.positive and not occurs(tokens, li) for li in clause.literals)

    def begun(tokens, phrase):
        return max(n for n in range(len(phrase)) if n == 0 or tuple(tokens[-n:]) == phrase[:n])

    def missing(tokens):
        return [
            [li.phrase.options[0] for li in clause.literals if li.positive]
            for clause in clauses
            if not so_far(tokens, clause)
        ]

    def worth(tokens):
        shares = [begun(tokens, phrase) / len(phrase) for phrases in missing(tokens) for phrase in phrases]
        return total(model, tokens) + progress_weight * max(shares, default=0.0)

    live, finished = [()], []
    for _ in range(max_tokens):
        grown, ends = [], []
        for tokens in live:
            own = [(*tokens, t) for t in range(END) if (*tokens, t) in prefixes]
            grown += sorted(own, key=lambda new: -total(model, new))[:expand]
            if (*tokens, END) in prefixes and not missing(tokens):
                ends.append((*tokens, END))
        grown = [
            new
            for new in grown
            if all(phrases for phrases in missing(new))
            and len(new) + max((min(len(p) - begun(new, p) for p in ps) for ps in missing(new)), default=0) < max_tokens
        ]
        whole = sorted([new for new in grown if not missing(new)] + ends, key=lambda new: -total(model, new))
        finished += [new for new in whole[:width] if new[-1] == END]
        groups = {}
        for new in sorted(grown, key=lambda new: -worth(new)):
            groups.setdefault(frozenset(n for n, c in enumerate(clauses) if for_good(new, c)), []).append(new)
        order = sorted(groups, key=lambda good: (-len(good), -worth(groups[good][0])))
        live = [groups[good][n] for n in range(len(grown)) for good in order if n < len(groups[good])][:width]
    return sorted(finished, key=lambda tokens: -total(model, tokens))[:width]


@pytest.mark.parametrize("case", each(CASES, 2))
@pytest.mark.parametrize(("width", "expand"), [(1, 4), (2, 2), (3, 4)])
def test_narrow_beams_are_those_of_the_plain_twin(case, width, expand):
    for pattern in ("[abc]*", "(ab|c|a)*b?"):
        constraint = guided.compile(guided.regex(pattern), VOCABULARY)
        texts = list(every_text(re.compile(pattern).fullmatch, 5))
        for seed in range(5):
            model = TableModel.random(seed, width=5)
            options = {"width": width, "n_best": width, "max_tokens": 5, "expand": expand, "progress_weight": 0.7}
            found = neurologic_search(model, PROMPT, constraint, CASES[case], **options)
            assert [h.tokens for h in found] == slow_neurologic(model, texts, CASES[case], width, expand, 0.7, 5)
