"""Lookahead and Jacobi decoding against an implementation that asks the model about each guess by itself."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.draft import Context, Drawn, Fixed, Lookahead, speculate
from guided.errors import GuidedError
from guided.lm.table import TableModel
from tests.amounts import each

WIDTH = 7


class Slow:
    """Lookahead by its definition: lists of guesses, and the model's best token after each prefix."""

    def __init__(self, model, prompt, window, n, guesses):
        self.model, self.text, self.window, self.n, self.guesses = model, list(prompt), window, n, guesses
        self.pool = []
        self.generations = [{} for _ in range(n - 1)]
        """Guesses by their place behind the text."""

    def best(self, *more):
        return int(np.argmax(self.model.logprobs((*self.text, *more))))

    def ngrams(self, first):
        return [ngram[1:] for ngram in self.pool if ngram[0] == first]

    def token(self, generation, place, before):
        if place in self.generations[generation]:
            return self.generations[generation][place]
        known = self.ngrams((*self.text, *before)[-1])
        return known[-1][0] if known else self.text[len(before) % len(self.text)]

    def round(self):
        """The paths that are drafted, and the tokens that come."""
        drafted = {rest[: i + 1] for rest in self.ngrams(self.text[-1])[::-1][: self.guesses] for i in range(len(rest))}
        line, columns = (), []
        for column in range(self.window):
            line = (*line, self.token(0, column, line))
            path = line
            drafted.add(path)
            for generation in range(1, self.n - 1):
                path = (*path, self.token(generation, column + generation, path))
                drafted.add(path)
            columns.append(path)
        newest = [self.best(*path) for path in columns]
        came = [self.best()]
        while tuple(came) in drafted:
            came.append(self.best(*came))
        for path, best in zip(columns, newest, strict=True):
            ngram = (*path[len(path) - self.n + 1 :], best)
            self.pool = [known for known in self.pool if known != ngram] + [ngram]
            same = [known for known in self.pool if known[0] == ngram[0]]
            if len(same) > max(self.guesses, 1):
                self.pool.remove(same[0])
        moved = [{} for _ in range(self.n - 1)]
        for column, (path, best) in enumerate(zip(columns, newest, strict=True)):
            for generation, guess in enumerate((*path[len(path) - self.n + 2 :], best)):
                place = column + generation + 1 - len(came)
                if place >= generation:
                    moved[generation][place] = guess
        self.generations = moved
        self.text += came
        return drafted, came


def forgetful(seed, reach=2):
    """A model that looks at a few tokens only, so that guesses made behind wrong ones may be right."""
    return TableModel(
        lambda tokens: np.random.default_rng([seed, *tokens[-reach:]]).standard_normal(WIDTH), width=WIDTH, eos_ids=[]
    )


@pytest.mark.parametrize(
    ("window", "n", "guesses"), each([(3, 3, 2), (4, 4, 3), (2, 5, 1), (6, 2, 2), (5, 2, 0), (1, 3, 1)], 2)
)
def test_it_drafts_what_the_definition_says(window, n, guesses):
    for seed in range(4):
        model, prompt, length = forgetful(seed), [1, 2, 3], 40
        drafts, rounds = [], []

        class Looking(Lookahead):
            def draft(self, chance, contexts, drafts=drafts):
                (proposal,) = found = super().draft(chance, contexts)
                tree = proposal.tree
                drafts.append({tuple(tree.tokens[i] for i in tree.path(node)) for node in range(len(tree))})
                assert all(g.drawn is Drawn.BY_RULE for groups in proposal.groups.values() for g in groups)
                return found

            def learn(self, observed, rounds=rounds):
                rounds.append(list(observed[0].emitted))
                super().learn(observed)

        drafter = Looking(window, n, guesses)
        (text,), _ = speculate(
            0, model, [prompt], [None], drafter, max_tokens=length, greedy=True, policy=Fixed(drafter.nodes)
        )
        slow = Slow(model, [*prompt, int(np.argmax(model.logprobs(prompt)))], window, n, guesses)
        far = length - 2 * drafter.nodes  # nearer to the limit no place is deep enough
        for drafted, came in zip(drafts, rounds, strict=True):
            if len(slow.text) - len(prompt) > far:
                break
            assert (drafted, came) == slow.round()
        assert list(text.tokens)[: len(slow.text) - len(prompt)] == slow.text[len(prompt) :]


def plain(model, prompt, length):
    (text,), _ = speculate(0, model, [prompt], [None], max_tokens=length, greedy=True)
    return text.tokens


def test_jacobi_iteration_settles_a_place_with_each_pass_and_often_more():
    """A model of one token's memory comes into a cycle; guesses that have caught up with it are right for good."""
    passes = []
    for seed in range(6):
        model = forgetful(seed, reach=1)
        (text,), counts = speculate(
            0, model, [[1]], [None], Lookahead.jacobi(8), max_tokens=50, greedy=True, policy=Fixed(8)
        )
        assert text.tokens == plain(model, [1], 50)
        assert counts.passes <= 49
        passes.append(counts.passes)
    assert min(passes) < 20
    assert sum(passes) < 0.75 * 49 * len(passes)


def test_ngrams_of_guesses_are_worth_more_than_jacobi_alone():
    """Over several texts of one model, whose pool stays warm."""
    model = forgetful(1, reach=3)
    passes = []
    for drafter in (Lookahead.jacobi(6), Lookahead(6, 4, 6)):
        _, counts = speculate(
            0, model, [[1, a] for a in range(WIDTH)], [None] * WIDTH, drafter, max_tokens=60, greedy=True,
            policy=Fixed(drafter.nodes),
        )  # fmt: skip
        passes.append(counts.passes_per_token)
    assert passes[1] < 0.8 * passes[0]


def test_windows_keep_to_the_grammar_and_to_the_budget():
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None, b"c"], eos_ids=[3])
    constraint = guided.compile(guided.regex("(ab|c)*abc"), vocabulary)
    model = TableModel.random(3, width=5, eos_ids=[3])
    for budget in (1, 3, 12):
        seen = []

        class Looking(Lookahead):
            def draft(self, chance, contexts, seen=seen):
                found = super().draft(chance, contexts)
                seen.extend(zip(contexts, found, strict=True))
                return found

        (text,), _ = speculate(
            0, model, [[0, 1]], [constraint], Looking(3, 3, 2), max_tokens=12, greedy=True, policy=Fixed(budget)
        )
        (alone,), _ = speculate(0, model, [[0, 1]], [constraint], max_tokens=12, greedy=True)
        assert text == alone
        assert any(len(proposal) for _, proposal in seen)
        for context, proposal in seen:
            tree = proposal.tree
            assert len(tree) <= budget
            for node in range(len(tree)):
                state = context.state
                for i in tree.path(node):
                    state = constraint.advance(state, tree.tokens[i])
                assert state != 0
                assert len(tree.path(node)) <= context.depth
    context = Context(0, [0], 1, constraint, constraint.end, 9)
    assert len(Lookahead().draft(None, [context])[0]) == 0, "nothing comes after the end"


def test_what_is_no_window_is_refused():
    for settings in ((0, 3, 1), (3, 1, 1), (3, 3, -1)):
        with pytest.raises(GuidedError):
            Lookahead(*settings)
