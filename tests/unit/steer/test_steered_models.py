"""A stack over a model: every position as if computed alone, whatever happens to the rows; and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm import Needs, TableModel, Tree, next_logits
from guided.lm.retokenized import retokenized
from guided.lm.table import TableSequences
from guided.steer import (
    RAD,
    AsGiven,
    Branch,
    Bucket,
    ClassifierFree,
    Contrastive,
    ContrastiveSearch,
    ControlledDecoding,
    Declaration,
    DeCoRe,
    DExperts,
    DoLa,
    DynamicFocus,
    Instructive,
    Mixture,
    ModelReward,
    Prefixed,
    Replaced,
    RewardError,
    Stack,
    TextReward,
)
from guided.testing import check_language_model
from guided.vocab import Vocabulary
from tests.amounts import each, some
from tests.tolerances import DOUBLE, SUMS
from tests.unit.steer.steering_twin import (
    AMATEUR,
    BASE,
    HEAD,
    OTHER,
    REWARD,
    STEERERS,
    WIDTH,
    agree,
    alone,
    random_model,
    steerers_with,
    text_of,
    vowels,
)

NAMES = sorted(STEERERS)
PROMPTS = [(1, 2), (0, 1, 2, 3, 0), (4,)]


def stack(names):
    return [STEERERS[name] for name in names]


@pytest.mark.parametrize("name", each(NAMES, 2))
def test_each_method_alone_and_in_a_batch(name):
    steerers = stack([name])
    sequences = Stack(steerers).over(BASE).start(PROMPTS)
    for row, prompt in enumerate(PROMPTS):
        agree(sequences.last.logits[row], alone(steerers, BASE, prompt, ()))
    added = [(3,), (2, 0, 1), ()]
    answers = sequences.extend(added)
    assert [len(scores) for scores in answers] == [1, 3, 0]
    for row, (prompt, tokens) in enumerate(zip(PROMPTS, added)):
        assert sequences.tokens(row) == prompt + tokens
        for n in range(len(tokens)):
            agree(answers[row].logits[n], alone(steerers, BASE, prompt, tokens[: n + 1]))
        agree(sequences.last.logits[row], alone(steerers, BASE, prompt, tokens))
    agree(next_logits(Stack(steerers).over(BASE), [(1, 2, 3)])[0], alone(steerers, BASE, (1, 2, 3), ()))


@pytest.mark.parametrize("name", each(NAMES, 2))
def test_a_constant_that_is_added_to_logits_changes_nothing(name):
    """Logits are known up to a constant, another for each prefix, layer and model, which no method may read."""
    moved = [random_model(seed, offset=7) for seed in (1, 2, 3)]
    offset = Stack([steerers_with(*moved)[name]]).over(moved[0])
    plain = Stack(stack([name])).over(BASE)
    for prompt in PROMPTS:
        found, wanted = (torch.softmax(next_logits(model, [prompt])[0], -1) for model in (offset, plain))
        torch.testing.assert_close(found, wanted, atol=SUMS, rtol=0)


@pytest.mark.parametrize(
    "name", each(["contrastive", "cfg", "dola", "rad", "momentum", "mixture", "decore", "rad-model"], 2)
)
def test_the_exact_distribution_of_texts(name):
    """All texts of three tokens: probabilities through the model are the chain rule over the twin, and sum to 1."""
    steerers = stack([name])
    model = Stack(steerers).over(BASE)
    texts = list(itertools.product(range(WIDTH), repeat=3))
    sequences = model.start([(1, 2)] * len(texts))
    first = torch.log_softmax(sequences.last.logits, -1)
    answers = sequences.extend(texts)
    conditional = {}
    for length in range(3):
        for prefix in itertools.product(range(WIDTH), repeat=length):
            conditional[prefix] = torch.log_softmax(alone(steerers, BASE, (1, 2), prefix), -1)
    total = 0.0
    for number, text in enumerate(texts):
        rows = torch.cat([first[number : number + 1], torch.log_softmax(answers[number].logits[:2], -1)])
        ours = sum(float(row[token]) for row, token in zip(rows, text))
        theirs = sum(float(conditional[text[:n]][text[n]]) for n in range(3))
        assert np.exp(ours) == pytest.approx(np.exp(theirs), abs=DOUBLE)
        total += np.exp(ours)
    assert total == pytest.approx(1.0)


@settings(max_examples=some(25))
@given(st.data())
def test_three_steerers_and_any_history_of_rows(data):
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=3))
    steerers = stack(names)
    model = Stack(steerers).over(BASE)
    tokens = st.integers(0, WIDTH - 1)
    prompt = st.lists(tokens, min_size=1, max_size=4).map(tuple)
    rows = [(each, ()) for each in data.draw(st.lists(prompt, min_size=1, max_size=3))]
    sequences = model.start([prompt for prompt, _ in rows])
    for _ in range(data.draw(st.integers(1, 4))):
        actions = ["extend", "select", "crop", "join", "last", *(["tree"] if model.can.tree else [])]
        action = data.draw(st.sampled_from(actions))
        if action == "extend":
            added = [tuple(data.draw(st.lists(tokens, max_size=2))) for _ in rows]
            answers = sequences.extend(added)
            for (prompt_, before), new, scores in zip(rows, added, answers):
                for n in range(len(new)):
                    agree(scores.logits[n], alone(steerers, BASE, prompt_, before + new[: n + 1]), 1e-7)
            rows = [(prompt_, before + new) for (prompt_, before), new in zip(rows, added)]
        elif action == "select":
            chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
            sequences.select(chosen)
            rows = [rows[row] for row in chosen]
        elif action == "crop":
            kept = [data.draw(st.integers(0, len(text))) for _, text in rows]
            sequences.crop([len(prompt_) + length for (prompt_, _), length in zip(rows, kept)])
            rows = [(prompt_, text[:length]) for (prompt_, text), length in zip(rows, kept)]
        elif action == "join":
            new = data.draw(st.lists(prompt, min_size=1, max_size=2))
            sequences.join(new)
            rows += [(each, ()) for each in new]
        elif action == "tree":
            trees = [data.draw(st.sampled_from([Tree(), Tree((1, 2, 3), (-1, 0, 0)), Tree((4,), (-1,))])) for _ in rows]
            answers = sequences.extend_tree(trees)
            for (prompt_, before), tree, scores in zip(rows, trees, answers):
                assert len(scores) == len(tree)
                for node in range(len(tree)):
                    path = tuple(tree.tokens[each] for each in tree.path(node))
                    agree(scores.logits[node], alone(steerers, BASE, prompt_, before + path), 1e-7)
            paths = [tree.path(data.draw(st.integers(-1, len(tree) - 1))) for tree in trees]
            sequences.keep(paths)
            rows = [
                (prompt_, before + tuple(tree.tokens[node] for node in path))
                for (prompt_, before), tree, path in zip(rows, trees, paths)
            ]
        else:
            sequences.last.logits.fill_(7.0)  # belongs to the caller
    assert len(sequences) == len(rows)
    last = sequences.last.logits
    for row, (prompt_, text) in enumerate(rows):
        assert sequences.tokens(row) == prompt_ + text
        agree(last[row], alone(steerers, BASE, prompt_, text), 1e-7)


def test_the_order_of_a_stack_is_respected():
    one, two = STEERERS["momentum"], STEERERS["contrastive"]
    first = next_logits(Stack([one, two]).over(BASE), [(1, 2)])[0]
    second = next_logits(Stack([two, one]).over(BASE), [(1, 2)])[0]
    agree(first, alone([one, two], BASE, (1, 2), ()))
    agree(second, alone([two, one], BASE, (1, 2), ()))
    assert not torch.allclose(torch.softmax(first, -1), torch.softmax(second, -1))


def test_one_models_runs_that_differ_in_their_heads_stay_apart():
    steerers = [
        DeCoRe(((0, 1),), masked_prompt=True),
        DeCoRe(((0, 1),), masked_prompt=False),
        DeCoRe(((0, 1), (1, 1)), masked_prompt=False),
    ]
    sequences = Stack(steerers).over(BASE).start([(1, 2)])
    agree(sequences.last.logits[0], alone(steerers, BASE, (1, 2), ()))
    sequences.extend([(3,)])
    agree(sequences.last.logits[0], alone(steerers, BASE, (1, 2), (3,)))


def test_a_model_of_another_tokenizer():
    ours = Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    theirs = Vocabulary.from_tokens([b"b", None, b"a", b"ba"], eos_ids=[1])
    base = TableModel.random(1, width=4, eos_ids=[3])
    other = TableModel.random(2, width=4, eos_ids=[1])
    with pytest.raises(VocabularyError):
        Stack([Contrastive(other)]).over(base)
    view = retokenized(other, theirs, ours, beam=None, threshold=0)
    steerers = [Contrastive(view), Mixture((view,))]
    sequences = Stack(steerers).over(base).start([(0,), (2, 1)])
    sequences.extend([(2,), (0, 1)])
    for row, (prompt, tokens) in enumerate([((0,), (2,)), ((2, 1), (0, 1))]):
        agree(sequences.last.logits[row], alone(steerers, base, prompt, tokens))


def test_an_empty_stack_changes_nothing_and_stacks_nest():
    model = Stack().over(BASE)
    assert torch.equal(next_logits(model, [(1, 2)]), next_logits(BASE, [(1, 2)]))
    inner = Stack([STEERERS["cfg"], STEERERS["dola"]])
    assert Stack([inner, STEERERS["grad"]]).steerers == (*inner.steerers, STEERERS["grad"])


def test_a_steered_model_is_a_model_that_can_be_steered():
    inner = Stack([STEERERS["contrastive"]]).over(BASE)
    outer = Stack([STEERERS["cfg"]]).over(inner)
    # Guidance over the contrastive model, both of its prompts contrasted.
    got = next_logits(outer, [(1, 2, 3)])[0]
    agree(got, alone([STEERERS["cfg"]], inner, (1, 2, 3), ()))
    one_stack = next_logits(Stack([STEERERS["contrastive"], STEERERS["cfg"]]).over(BASE), [(1, 2, 3)])[0]
    assert not torch.allclose(torch.softmax(got, -1), torch.softmax(one_stack, -1))


def test_layers_and_hidden_states_of_the_steered_model_are_the_plain_ones():
    model = Stack([STEERERS["dola-layers"], STEERERS["cfg"]]).over(BASE)
    sequences = model.start([(1, 2)], Needs(layers=(1, -1), hidden=True))
    plain = BASE.start([(1, 2)], Needs(layers=(1, -1), hidden=True))
    for ours, theirs in (
        (sequences.last, plain.last),
        (sequences.extend([(3, 4)])[0], plain.extend([(3, 4)])[0]),
    ):
        assert set(ours.layers) == {1, -1}
        assert all(torch.equal(ours.layers[layer], theirs.layers[layer]) for layer in (1, -1))
        assert torch.equal(ours.hidden, theirs.hidden)


@pytest.mark.parametrize(
    "name", each(["contrastive", "negative", "dola-layers", "decore", "rad-model", "search", "fudge"], 2)
)
def test_the_contract_of_language_models(name, monkeypatch):
    # What is computed for a row is more than one row of one model here, and has tests of its own below.
    monkeypatch.setattr("guided.testing.language_model.check_sharing", lambda model, prompts: None)
    check_language_model(Stack([STEERERS[name]]).over(BASE), steps=15, rows=4, length=9)


def test_a_failing_reward_leaves_the_rows_as_they_were():
    broken = [False]

    def score(texts):
        if broken[0]:
            raise OSError
        return vowels(texts)

    for steerers in ([RAD(TextReward(score, text_of))], [STEERERS["search"], RAD(TextReward(score, text_of))]):
        sequences = Stack([STEERERS["cfg"], *steerers]).over(BASE).start([(1, 2), (3,)])
        sequences.extend([(4,), ()])
        broken[0] = True
        with pytest.raises(RewardError):
            sequences.extend([(0, 1), (2,)])
        assert [sequences.tokens(row) for row in range(2)] == [(1, 2, 4), (3,)]
        broken[0] = False
        answers = sequences.extend([(0, 1), (2,)])
        agree(answers[0].logits[1], alone([STEERERS["cfg"], *steerers], BASE, (1, 2), (4, 0, 1)))


# --- passes ----------------------------------------------------------------------------------------------------------


def passes(model, action):
    before = model.calls.passes
    action()
    return model.calls.passes - before


def test_prompt_branches_of_one_model_share_a_pass():
    base = random_model(11)
    steerers = [ClassifierFree(), Instructive(Prefixed((1,))), DoLa()]
    sequences = Stack(steerers).over(base).start([(1, 2), (3, 4)])
    assert passes(base, lambda: sequences.extend([(1,), (2, 3)])) == 1


def test_a_branch_declared_twice_runs_once():
    base, amateur = random_model(11), random_model(12)
    sequences = Stack([Contrastive(amateur), Contrastive(amateur, beta=None)]).over(base).start([(1, 2)])
    assert (passes(amateur, lambda: sequences.extend([(1,)])), amateur.calls.rows) == (1, 2)
    sequences = Stack([ClassifierFree(), ClassifierFree(2.0)]).over(base).start([(1, 2)])
    before = base.calls.rows
    sequences.extend([(1,)])
    assert base.calls.rows - before == 2, "the model and one unconditional row"


def test_tokens_that_were_looked_ahead_to_are_not_computed_again():
    base, judge = random_model(11), random_model(12)
    reward = ModelReward(lambda hidden: hidden[:, 0], judge)
    sequences = Stack([RAD(reward, top_k=WIDTH)]).over(base).start([(1, 2)])
    sequences.last  # noqa: B018
    # One pass over the candidates of the next position, none over the token itself.
    assert passes(judge, lambda: sequences.extend([(1,)])) == 1
    agree(sequences.last.logits[0], alone([RAD(reward, top_k=WIDTH)], base, (1, 2), (1,)))


def test_calls_add_up():
    base, amateur = random_model(11), random_model(12)
    model = Stack([Contrastive(amateur)]).over(base)
    model.start([(1, 2)]).extend([(3,)])
    assert model.calls.passes == base.calls.passes + amateur.calls.passes == 4


# --- what is refused -------------------------------------------------------------------------------------------------


def test_vocabularies_that_differ():
    wide = random_model(5, width=WIDTH + 2)
    wide.eos_ids = BASE.eos_ids
    with pytest.raises(VocabularyError, match=r"scores 6 ids, the other 8 \(at Contrastive\).*retokenized"):
        Stack([Contrastive(wide)]).over(BASE)
    ends_elsewhere = TableModel.random(0, width=WIDTH, eos_ids=[0])
    with pytest.raises(VocabularyError, match="ends a text with"):
        Stack([DExperts(AMATEUR, ends_elsewhere)]).over(BASE)
    with pytest.raises(VocabularyError):
        Stack([RAD(ModelReward(lambda hidden: hidden[:, 0], wide))]).over(BASE)


def test_tokenizers_that_differ():
    class Tokenizer:
        def __init__(self, names):
            self.names = names

        def get_vocab(self):
            return {name: number for number, name in enumerate(self.names)}

    one, two, three = random_model(11), random_model(12), random_model(13)
    one.tokenizer, two.tokenizer, three.tokenizer = Tokenizer("abcdef"), Tokenizer("abcdef"), Tokenizer("abcdfe")
    Stack([Contrastive(two)]).over(one)
    with pytest.raises(VocabularyError, match="different ids"):
        Stack([Contrastive(three)]).over(one)


@pytest.mark.parametrize("other_width", [WIDTH - 1, WIDTH + 2])
def test_padding_of_one_tokenizers_models(other_width):
    other = TableModel(random_model(5, width=other_width).logprobs, width=other_width, eos_ids=[WIDTH - 2])
    base = TableModel(BASE.logprobs, width=WIDTH, eos_ids=[WIDTH - 2])
    model = Stack([Contrastive(other, alpha=0.0), Mixture((other,))]).over(base, same_tokenizer=True)
    got = torch.softmax(next_logits(model, [(1, 2)])[0], -1)
    shared = min(WIDTH, other_width)
    assert got.shape == (WIDTH,) and got[shared:].sum() == 0 and got[:shared].min() > 0


def test_no_model_is_asked_about_ids_that_it_lacks():
    narrow = random_model(5, width=WIDTH - 2)
    narrow.eos_ids = BASE.eos_ids
    steerer = RAD(ModelReward(lambda hidden: torch.sigmoid(hidden[:, 0]), narrow), top_k=WIDTH)
    sequences = Stack([steerer]).over(BASE, same_tokenizer=True).start([(1, 2)])
    assert sequences.last.logits.isneginf().tolist() == [[False] * (WIDTH - 2) + [True] * 2]
    with pytest.raises(GuidedError, match=r"not in range\(4\)"):
        sequences.extend([(WIDTH - 1,)])
    assert sequences.tokens(0) == (1, 2)


def test_layers_and_heads_that_do_not_exist():
    with pytest.raises(UnsupportedError, match=r"no layer 9 \(at DoLa\)"):
        Stack([DoLa((9,))]).over(BASE)
    plain = TableModel.random(0, width=WIDTH)
    for steerer in (DoLa(), DoLa((1,)), DynamicFocus(), DeCoRe(((0, 0),)), ContrastiveSearch()):
        with pytest.raises(UnsupportedError, match=type(steerer).__name__):
            Stack([steerer]).over(plain)
    Stack([DeCoRe(())]).over(plain)
    with pytest.raises(UnsupportedError, match="none in the bucket"):
        DoLa(Bucket.LOW).candidate_layers(3, tied_embeddings=True)


def test_the_buckets_of_dola():
    """Those of transformers' DoLa: where the embedding is the output matrix, too, the low bucket leaves it out."""
    low, high = DoLa(Bucket.LOW), DoLa()
    assert low.candidate_layers(32) == tuple(range(0, 16, 2))
    assert high.candidate_layers(32) == tuple(range(16, 32, 2))
    assert low.candidate_layers(60) == tuple(range(0, 20, 2))
    assert high.candidate_layers(60) == tuple(range(40, 60, 2))
    tied = {blocks: low.candidate_layers(blocks, tied_embeddings=True) for blocks in (1, 2, 4, 5, 6, 12, 60)}
    assert tied == {1: (0,), 2: (1,), 4: (2,), 5: (2,), 6: (2,), 12: (2, 4), 60: tuple(range(2, 20, 2))}
    assert high.candidate_layers(12, tied_embeddings=True) == high.candidate_layers(12)
    assert [low.candidate_layers(blocks) for blocks in (1, 2, 4)] == [(0,), (0,), (0,)]


def test_dola_asks_the_model_whether_its_embeddings_are_tied():
    tied = random_model(1)
    tied.can = dataclasses.replace(tied.can, tied_embeddings=True)
    for steerer, wanted in (
        (DoLa(Bucket.LOW), (2,)),
        (DoLa(Bucket.LOW, tied_embeddings=False), (0,)),
        (DoLa((0, 1)), (0, 1)),
    ):
        assert steerer.declare(tied).branches[0].needs.layers == wanted
        assert Stack([ClassifierFree(), steerer]).over(tied).can.tied_embeddings
    assert DoLa(Bucket.LOW).declare(BASE).branches[0].needs.layers == (0,)
    assert DoLa(Bucket.LOW, tied_embeddings=True).declare(BASE).branches[0].needs.layers == (2,)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Contrastive(AMATEUR, alpha=1.5), r"alpha=1.5 is not from 0 to 1 \(at Contrastive\)"),
        (lambda: Contrastive(AMATEUR, temperature=0.0), "temperature"),
        (lambda: DExperts(AMATEUR, OTHER, top_p=-1), "top_p"),
        (lambda: Mixture((AMATEUR,), (1.0,)), "1 weights for 1 models"),
        (lambda: Mixture((AMATEUR,), (0.0, 0.0)), "weights"),
        (lambda: RAD(REWARD, top_k=0), "top_k=0"),
        (lambda: Stack(["contrastive"]), "no steerer"),
        (lambda: DynamicFocus(sigma=0.0), "sigma"),
        (lambda: DoLa(()).declare(BASE), "no layers"),
        (lambda: Replaced("not this"), "a text was given for token ids"),
        (lambda: Stack([ClassifierFree(1.5, [1, 2])]).over(BASE), r"\[1, 2\] is not a function.*Replaced"),
        (
            lambda: Stack([Contrastive(torch.nn.Linear(2, 2))]).over(BASE),
            "Linear is no language model.*guided.hf.load",
        ),
        (lambda: Stack().over(torch.nn.Linear(2, 2)), "Linear is no language model"),
    ],
)
def test_settings_out_of_range(make, says):
    with pytest.raises(GuidedError, match=says):
        make()


def test_no_way_back_into_a_prompt_that_branches_rewrite():
    sequences = Stack([ClassifierFree()]).over(BASE).start([(1, 2, 3)])
    sequences.extend([(4,)])
    sequences.crop([3])
    with pytest.raises(GuidedError, match="into its prompt of 3"):
        sequences.crop([2])
    two_models = Stack([Contrastive(AMATEUR), ControlledDecoding(ModelReward(HEAD.head, OTHER, Prefixed((1,))))])
    refused = two_models.over(BASE).start([(1, 2, 3)])
    with pytest.raises(GuidedError, match="into its prompt of 3"):
        refused.crop([2])
    assert refused.tokens(0) == (1, 2, 3)
    agree(refused.last.logits[0], alone(two_models.steerers, BASE, (1, 2, 3), ()))
    plain = Stack([Contrastive(AMATEUR)]).over(BASE).start([(1, 2, 3)])
    plain.crop([2])
    agree(plain.last.logits[0], alone([Contrastive(AMATEUR)], BASE, (1, 2), ()))


def test_trees_and_looking_ahead():
    model = Stack([RAD(HEAD)]).over(BASE)
    assert not model.can.tree
    with pytest.raises(UnsupportedError, match="no draft trees"):
        model.start([(1, 2)]).extend_tree([Tree((1,), (-1,))])


def test_entries_for_other_rows():
    sequences = Stack([ClassifierFree()]).over(BASE).start([(1, 2), (3,)])
    with pytest.raises(GuidedError, match="1 entries for 2 rows"):
        sequences.extend([(1,)])


def test_rows_may_all_leave():
    for name in ("cfg", "rad-model", "search"):
        sequences = Stack([STEERERS[name]]).over(BASE).start([(1, 2), (3,)])
        sequences.select([])
        assert len(sequences) == 0 and sequences.last.logits.shape == (0, WIDTH)
        assert list(sequences.extend([])) == []
        sequences.join([(1, 2)])
        agree(sequences.last.logits[0], alone([STEERERS[name]], BASE, (1, 2), ()))


def test_rows_that_find_no_memory_leave_the_others_as_they_were(monkeypatch):
    sequences = Stack([Contrastive(AMATEUR)]).over(BASE).start([(1, 2), (3,)])
    joined, refused = TableSequences.join, []

    def join(self, prompts):
        if self._model is AMATEUR and not refused:
            refused.append(prompts)
            raise MemoryError
        joined(self, prompts)

    monkeypatch.setattr(TableSequences, "join", join)
    with pytest.raises(MemoryError):
        sequences.join([(2, 2)])
    assert refused and len(sequences) == 2
    sequences.extend([(1,), (2,)])
    sequences.join([(2, 3)])
    for row, text in enumerate([(1, 2, 1), (3, 2), (2, 3)]):
        agree(sequences.last.logits[row], alone([Contrastive(AMATEUR)], BASE, text, ()))


def test_a_steerer_of_ones_own():
    class Halved:
        def declare(self, model):
            return Declaration((Branch(None, AsGiven()),))

        def steer(self, logits, seen):
            return (logits + seen.branches[0].logits) / 4

    got = next_logits(Stack([Halved()]).over(BASE), [(1, 2)])
    assert torch.allclose(got, next_logits(BASE, [(1, 2)]) / 2)
