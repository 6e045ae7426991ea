"""Each draft by itself: what it proposes for texts where that is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import guided
from guided.draft import (
    Aggressive,
    BestFirst,
    Branching,
    Chain,
    Confidence,
    Context,
    Datastore,
    Drawn,
    Fixed,
    ForcedBytes,
    Group,
    Guess,
    Model,
    NGrams,
    Observed,
    Path,
    PromptLookup,
    Proposal,
    Recycling,
    Staged,
    TriGrams,
    Union,
    auto,
    chain,
    speculate,
)
from guided.draft.guessers.recycling import TEMPLATE, template_nodes
from guided.draft.guessers.successors import Successors
from guided.errors import UnsupportedError
from guided.lm.model import Tree
from guided.lm.table import TableModel
from guided.vocab.encoding import longest_first
from tests.amounts import some

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None, b"c", b"bc"], eos_ids=[3])


def context(tokens, budget=8, *, n_prompt=None, constraint=None, state=None, row=0):
    start = 0 if constraint is None else constraint.start
    return Context(row, tokens, len(tokens) if n_prompt is None else n_prompt, constraint,
                   start if state is None else state, budget)  # fmt: skip


def drafted(drafter, *contexts):
    return [proposal.tree for proposal in drafter.draft(None, list(contexts))]


def seen(at, fed, scores, *, emitted=(), accepted=(), proposal=None, before=None, parents=None):
    tree = Tree(tuple(fed), tuple(range(-1, len(fed) - 1)) if parents is None else parents)
    logits = torch.tensor(scores, dtype=torch.float64)
    return Observed(at, proposal or Proposal(), tuple(accepted), tuple(emitted), tree, before, logits)


def test_lookup_takes_the_longest_ngram_and_its_earliest_place():
    tokens = [1, 2, 3, 4, 9, 2, 3, 5, 9, 7, 2, 3, 6, 1, 2, 3]
    assert drafted(PromptLookup(3), context(tokens, 3)) == [Tree((4, 9, 2), (-1, 0, 1))]
    assert drafted(PromptLookup(2), context(tokens[5:], 2)) == [Tree((5, 9), (-1, 0))]
    assert drafted(PromptLookup(3), context([1, 2, 3])) == [Tree()]


def test_lookup_is_a_search_of_the_whole_text():
    """Against a search that keeps no index, while the text grows."""
    rng = np.random.default_rng(0)
    lookup = PromptLookup(3)
    tokens = []
    for token in rng.integers(0, 4, 200).tolist():
        tokens.append(token)
        expected = ()
        for n in (3, 2, 1):
            starts = [i for i in range(len(tokens) - n) if tokens[i : i + n] == tokens[len(tokens) - n :]]
            if len(tokens) > n and starts:
                expected = tuple(tokens[starts[0] + n :][:5])
                break
        assert drafted(lookup, context(tokens, 5))[0].tokens == expected
    lookup.leave([0])
    assert drafted(lookup, context([7, 7])) == [Tree((7,), (-1,))]


def test_aggressive_copies_loses_and_finds_the_place():
    source = [5, 6, 7, 8, 5, 9, 10]
    aggressive = Aggressive(lambda context: source, longest=3)
    text = [1, 2]
    at = context(text, 4, n_prompt=2)
    assert drafted(aggressive, at)[0].tokens == (5, 6, 7, 8)
    text += [5, 6]
    assert drafted(aggressive, at)[0].tokens == (7, 8, 5, 9)
    text += [0]
    assert drafted(aggressive, at)[0].tokens == ()
    text += [5]
    assert drafted(aggressive, at)[0].tokens == (), "5 is at two places"
    text += [9]
    assert drafted(aggressive, at)[0].tokens == (10,)
    text += [10]
    assert drafted(aggressive, at)[0].tokens == ()


def test_the_template_has_the_published_counts():
    nodes = template_nodes()
    assert [sum(len(node) == depth for node in nodes) for depth in range(1, 8)] == [8, 21, 25, 15, 8, 3, 0]
    assert len(set(nodes)) == 80
    places = {node: i for i, node in enumerate(nodes)}
    assert all(len(node) == 1 or places[node[:-1]] < places[node] for node in nodes)
    assert all(n <= 8 for n in TEMPLATE.values())


def test_recycling_follows_the_last_scores():
    recycling = Recycling()
    at = context([0])
    scores = np.zeros((2, 12))
    scores[0, [3, 4]] = 9, 8
    scores[1, [5, 6]] = 9, 8
    recycling.learn([seen(at, [2, 3], scores)])
    tree = drafted(recycling, context([2], 80))[0]
    paths = {tuple(tree.tokens[i] for i in tree.path(node)) for node in range(len(tree))}
    assert {(3,), (4,), (3, 5), (3, 6)} <= paths
    assert not any(path[:1] == (4,) and len(path) > 1 for path in paths), "what follows 4 was never seen"
    assert drafted(recycling, context([7]))[0].tokens == ()
    scores[0, 9] = 99
    recycling.learn([seen(at, [2], scores[:1])])
    assert drafted(recycling, context([2], 1))[0].tokens == (9,)


def test_recycling_skips_what_the_grammar_forbids():
    constraint = guided.compile(guided.regex("bbb"), VOCABULARY)
    recycling = Recycling()
    recycling.learn([seen(context([0]), [1], [[9.0, 8, 7, 6, 5, 4]])])
    assert drafted(recycling, context([1], 2, constraint=constraint))[0].tokens == (1, 1)


def test_trigrams_walk_by_probability():
    trigrams = TriGrams([[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 6]])
    tree = drafted(trigrams, context([1, 2], 10))[0]
    paths = {tuple(tree.tokens[i] for i in tree.path(node)) for node in range(len(tree))}
    assert paths == {(3,), (6,), (3, 4), (3, 5)}
    assert tree.tokens[0] == 3
    trigrams.learn([seen(context([0]), [2], [[0.0, 0, 0, 0, 0, 0, 0, 9]], before=1)])
    assert drafted(trigrams, context([1, 2], 1))[0].tokens == (7,)


def test_the_datastore_matches_the_longest_suffix():
    store = Datastore.of([[1, 2, 3, 4], [9, 2, 3, 5], [9, 2, 3, 5], [3, 6]])
    (first, *_) = store.guess(Path(context([0, 1, 2, 3]), (), 0))
    assert first.token == 4
    tree = drafted(store, context([7, 2, 3], 2))[0]
    assert tree.tokens[0] == 5
    assert drafted(store, context([8]))[0].tokens == ()
    assert store.guess(Path(context([4]), (), 0)) == ()


def test_forced_bytes_are_split_longest_first():
    constraint = guided.compile(guided.regex("abca(b|c)"), VOCABULARY)
    tree = drafted(BestFirst(ForcedBytes()), context([0], constraint=constraint))[0]
    assert tree.tokens == (2, 4, 0)
    own = ForcedBytes(lambda data: longest_first(VOCABULARY)(data[:1]))
    assert drafted(BestFirst(own), context([0], constraint=constraint))[0].tokens[:2] == (0, 1)
    assert longest_first(VOCABULARY)(b"abx") == [2]


def test_ngrams_speak_by_state_of_the_grammar():
    constraint = guided.compile(guided.regex("a[bc]a[bc]"), VOCABULARY)
    ngrams = NGrams()
    tokens = [5, 0]
    state = constraint.advance(constraint.start, 0)
    at = context(tokens, constraint=constraint, state=state)
    tokens += [4, 0]
    ngrams.learn([seen(at, [0], np.zeros((1, 6)), emitted=(4, 0))])
    assert [g.token for g in ngrams.guess(Path(context([5, 0]), (), state))] == [4], "by the last two tokens alone"
    here = context([1, 0], constraint=constraint, state=state)
    assert [g.token for g in ngrams.guess(Path(here, (), state))] == [4], "by the state and the last token"
    assert not ngrams.guess(Path(context([1, 0], constraint=constraint), (), constraint.start))


def test_best_first_learns_whom_to_trust():
    class Says:
        """One guess."""

        def __init__(self, token):
            self.token = token

        def guess(self, path):
            return [Guess(self.token, 0.5)]

        def learn(self, observed):
            pass

        def leave(self, rows):
            pass

    best = BestFirst(Says(1), Says(2))
    at = context([0], 3)
    for _ in range(30):
        (proposal,) = best.draft(None, [at])
        node = proposal.child(-1, 2)
        found = () if node is None else (node,)
        best.learn([seen(at, [0], np.zeros((1, 4)), emitted=(2, 0), accepted=found, proposal=proposal)])
    assert drafted(best, context([0], 1))[0].tokens == (2,)
    assert best._share(0, 0, 0.5) < 0.1


def test_grafts_take_everything():
    proposal = chain([1, 2])
    other = Proposal()
    (one, three) = other.add(-1, Group((1, 3)))
    other.add(one, Group((2, 4), Drawn.WITHOUT_REPLACEMENT, np.full(5, 0.2)))
    other.add(three, Group((5,)))
    proposal.graft(other)
    assert proposal.tree == Tree((1, 2, 3, 4, 5), (-1, 0, -1, 0, 2))
    assert [group.tokens for group in proposal.groups[0]] == [(2,), (2, 4)]


def test_the_limit_of_tokens_limits_depth_and_not_nodes():
    """Where one more draft token can be accepted, all nodes may stand side by side; none is drafted below them."""
    model = TableModel(lambda tokens: np.log([0.4, 0.3, 0.2, 0.05, 0.03, 0.02]), width=6, eos_ids=[3])
    for drafter in (Model(model, Branching((4, 2)), by_rule=True), BestFirst(Everything(), floor=0.0), Recycling()):
        wanted = []
        asked = drafter.draft

        def draft(chance, contexts, asked=asked, wanted=wanted):
            found = asked(chance, contexts)
            wanted.extend((context.depth, len(proposal), proposal.tree.parents) for context, proposal in
                          zip(contexts, found, strict=True))  # fmt: skip
            return found

        drafter.draft = draft
        for _ in range(2):  # what learns knows something in the second run
            wanted.clear()
            speculate(0, model, [[0]], [None], drafter, max_tokens=3, policy=Fixed(4))
        assert wanted[0] == (1, 4, (-1, -1, -1, -1))
    for drafter in (PromptLookup(), TriGrams([[0, 1, 2, 0, 1]]), Aggressive(lambda _: [0, 1, 2])):
        at = replace(context([0, 1, 2, 0], 5, n_prompt=3), depth=1)
        assert drafted(drafter, at)[0].tokens == (1,)


class Everything:
    """Guesses all tokens but the end."""

    def guess(self, path):
        return [Guess(token, 0.2) for token in (0, 1, 2, 4)]

    def learn(self, observed):
        pass

    def leave(self, rows):
        pass


def test_unions_share_the_budget():
    union = Union(PromptLookup(1), TriGrams([[1, 2, 8, 9]]), share=0.5)
    tree = drafted(union, context([2, 3, 4, 5, 1, 2], 4))[0]
    assert tree.tokens == (3, 4, 8, 9)
    assert tree.parents == (-1, 0, -1, 2)


def test_a_chain_stops_where_the_draft_is_unsure():
    def scores(tokens):
        sure = len(tokens) < 3
        return np.log([0.97, 0.01, 0.01, 0.01] if sure else [0.4, 0.3, 0.2, 0.1])

    model = TableModel(scores, width=4, eos_ids=[3])
    shape = Chain(8, Confidence(0.5))
    assert len(drafted(Model(model, shape, by_rule=True), context([0]))[0]) == 3
    assert len(drafted(Model(model, Chain(8), by_rule=True), context([0]))[0]) == 8


def test_a_staged_draft_is_the_models_chain_in_fewer_passes():
    """Over a text that grows by other tokens than were drafted."""

    def scores(tokens):
        return np.eye(6)[(tokens[-1] + 1) % 5 if tokens[-1] != 2 else 4]

    constraint = guided.compile(guided.regex("[abc]*"), VOCABULARY)
    plain, staged = (TableModel(scores, width=6, eos_ids=[3]) for _ in range(2))
    chains = Model(plain, Chain(6), by_rule=True), Staged(staged, PromptLookup(2), 6)
    tokens = [0, 1, 2, 4, 0, 1, 2, 4]
    at = context(tokens, 6, n_prompt=2, constraint=constraint)
    for token in (0, 1, 1, 2, 4, 0, 5, 0):
        expected, found = (drafted(one, at)[0] for one in chains)
        assert expected == found
        assert len(found) == 6
        tokens.append(token)
    assert staged.calls.passes < plain.calls.passes / 2


def test_trees_need_a_model_that_takes_them():
    model = TableModel.random(0, width=4, eos_ids=[3])
    model.can = type(model.can)(crop=True, tree=False)
    with pytest.raises(UnsupportedError, match="Branching"):
        Model(model, Branching())


def test_successors_forget_what_was_used_longest_ago():
    counts = Successors(limit=3)
    for name in "abcd":
        counts.add(name, 1)
    assert len(counts) == 3
    assert not counts.after("a")
    for _ in range(100):
        counts.add("d", 2)
    assert set(counts.after("d")) == {2}


def test_nothing_is_left_of_rows_that_ended():
    """A thousand texts, of which a quarter by default: what is kept for rows is gone, what is learned stays bounded."""
    model = TableModel.random(3, width=6, eos_ids=[3])
    constraint = guided.compile(guided.regex("(ab|ba|c)*"), VOCABULARY)
    drafting = auto()
    small = Model(TableModel.random(4, width=6, eos_ids=[3]), Chain(2))
    for seed in range(some(20)):
        for drafter, policy in ((drafting.drafter, drafting.policy), (small, Fixed(2))):
            speculate(seed, model, [[0, 1]] * 25, [constraint] * 25, drafter, max_tokens=8, policy=policy)
    lookup = drafting.drafter.guessers[1]
    assert not drafting.drafter._guessed
    assert not lookup._places
    assert not small._rows
    assert small._sequences is None
    assert not small._shares


def test_a_run_that_is_stopped_leaves_nothing():
    model = TableModel.random(3, width=6, eos_ids=[3])
    small = Model(TableModel.random(4, width=6, eos_ids=[3]), Chain(2))

    def stop(counts):
        if counts.passes == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        speculate(0, model, [[0, 1]] * 3, [None] * 3, small, max_tokens=60, progress=stop)
    assert small._sequences is None
    (after,), _ = speculate(1, model, [[2, 1]], [None], small, max_tokens=20, greedy=True)
    (plain,), _ = speculate(1, model, [[2, 1]], [None], max_tokens=20, greedy=True)
    assert after == plain
