"""Saved runs and what was learned belong to one problem: another grammar, model, critic or sampler is refused."""

from __future__ import annotations

import functools
import math
import pickle

import numpy as np
import pytest

import guided
from guided.errors import GuidedError
from guided.infer import (
    AWRS,
    Anything,
    Checkpoint,
    Cut,
    Direct,
    Learned,
    Learning,
    Potential,
    TextPredicate,
    TextScorer,
    asap,
    cars,
    mcmc,
    multinomial,
    rejection,
    residual,
    smc,
    smc_steer,
)
from guided.infer.runs.content import content_of
from guided.lm import TableModel, transformed
from tests.amounts import each

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
PROMPT = (0, 1)


def constraint(pattern):
    return guided.compile(guided.regex(pattern), VOCABULARY)


def model(seed=1):
    return TableModel.random(seed, width=4)


def alike_at_first(seed=7):
    """A model that says of the prompt what `model()` says, and something else of all that is longer."""
    first, later = model(), model(seed)
    return TableModel(lambda tokens: (first if len(tokens) <= len(PROMPT) else later).logprobs(tokens), width=4)


class Counted(Potential):
    """A potential of a class that says nothing of its content."""

    def __init__(self, each):
        self.vocabulary, self.each, self.asked = VOCABULARY, each, 0

    def start(self):
        return 0

    def advance(self, state, token):
        return state + 1

    def prefix_at(self, state):
        self.asked += 1
        return state * self.each

    def complete_at(self, state):
        return state * self.each


def scorer(letter, scale=1.0):
    return TextScorer(VOCABULARY, lambda texts: [-0.3 * text.count(letter) for text in texts], scale=scale)


GRAMMAR = "(a|b)[ab]{2,9}"
RUN = {
    "model": model(),
    "potential": constraint(GRAMMAR),
    "critic": scorer("a"),
    "sampler": AWRS(),
}


def start(run, path, **changes):
    options = {**RUN, "n": 6, "max_tokens": 12, **changes}
    first = [options.pop("rng", 0), options.pop("model"), options.pop("prompt", PROMPT), options.pop("potential")]
    return run(*first, **options)


def stopped(run, path, **changes):
    def stop(step):
        if step.number == 3:
            raise StopIteration

    with pytest.raises(StopIteration):
        start(run, path, save=path, save_every=2, progress=stop, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"potential": constraint("(a|b)[ab]{2,8}")},
        {"potential": Anything(VOCABULARY)},
        {"potential": TextPredicate(VOCABULARY, lambda text: True)},
        {"model": model(2)},
        {"model": alike_at_first()},
        {"model": transformed(model(), temperature=0.99)},
        {"critic": scorer("b")},
        {"critic": scorer("a", 2.0)},
        {"critic": None},
        {"proposal": model(3)},
        {"sampler": Direct()},
        {"sampler": AWRS(max_accepts=3)},
        {"n": 5},
        {"prompt": (0, 0)},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("run", each([smc, smc_steer], 2))
def test_another_problem_is_not_resumed(run, changes, tmp_path):
    path = tmp_path / "run.json"
    stopped(run, path)
    with pytest.raises(GuidedError, match="the checkpoint was made with"):
        start(run, path, resume=path, **changes)
    # The same problem, all of it made anew.
    again = {"model": model(), "potential": constraint(GRAMMAR), "critic": scorer("a"), "sampler": AWRS()}
    assert start(run, path, resume=path, **again).particles == start(run, path).particles


@pytest.mark.parametrize(
    ("run", "changes"),
    [
        (smc, {"resample": multinomial}),
        (smc, {"resample": functools.partial(multinomial)}),
        (smc, {"ess_threshold": 0.4}),
        (smc_steer, {"resample": residual}),
        (smc_steer, {"expansions": 3}),
    ],
)
def test_another_way_is_not_resumed(run, changes, tmp_path):
    path = tmp_path / "run.json"
    stopped(run, path)
    with pytest.raises(GuidedError, match="|".join(changes)):
        start(run, path, resume=path, **changes)


@pytest.mark.parametrize("where", ["potential", "critic", "proposal"])
def test_what_says_nothing_of_itself_is_known_by_its_answers(where, tmp_path):
    path = tmp_path / "run.json"
    one, same, other = (model(3), model(3), model(4)) if where == "proposal" else map(Counted, (-0.1, -0.1, -0.2))
    common = {"sampler": Direct(), "critic": None}
    stopped(smc, path, **{**common, where: one})
    with pytest.raises(GuidedError, match=f"another {where}"):
        start(smc, path, resume=path, **{**common, where: other})
    assert start(smc, path, resume=path, **{**common, where: one}).log_ml == pytest.approx(
        start(smc, path, resume=path, **{**common, where: same}).log_ml
    )


@pytest.mark.parametrize("run", [cars, asap, functools.partial(cars, learning=Learning.FAILURES)])
def test_what_was_learned_of_another_grammar_is_not_used(run):
    """Both let the same first tokens through, so that what is left of the prompt's row is the same."""
    learned = Learned()
    tokens = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    table = TableModel.random(1, width=3)
    one, other = (guided.compile(guided.regex(pattern), tokens) for pattern in ("a[ab]b?", "aa"))
    run(0, table, PROMPT, one, n=20, max_tokens=5, learned=learned)
    with pytest.raises(GuidedError, match="another potential"):
        run(0, table, PROMPT, other, n=20, max_tokens=5, learned=learned)
    same = guided.compile(guided.regex("a[ab]b?"), tokens)
    run(0, table, PROMPT, same, n=20, max_tokens=5, learned=learned)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("run", [cars, asap, functools.partial(cars, learning=Learning.FAILURES)])
def test_what_was_learned_of_another_model_is_not_used(run, kept):
    """Whether what was read is still at hand or not, and though both say the same of the prompt."""
    learned = Learned()
    run(0, model(), PROMPT, constraint(GRAMMAR), n=20, max_tokens=6, learned=learned)
    for other in (model(2), alike_at_first(), transformed(model(), temperature=0.99)):
        known = learned if kept else pickle.loads(pickle.dumps(learned))
        with pytest.raises(GuidedError, match="another model"):
            run(0, other, PROMPT, constraint(GRAMMAR), n=20, max_tokens=6, learned=known)
    run(0, model(), PROMPT, constraint(GRAMMAR), n=20, max_tokens=6, learned=learned)


def test_predicates_that_only_answers_tell_apart_are_told_apart():
    """Potentials of a class that says nothing of its content, and allows the same first tokens."""

    class Listed(Potential):
        boolean = True

        def __init__(self, *texts):
            self.vocabulary, self.texts = VOCABULARY, texts

        def start(self):
            return b""

        def advance(self, state, token):
            return state + (self.vocabulary.token_bytes(token) or b"?")

        def prefix_at(self, state):
            return 0.0 if any(text.startswith(state) for text in self.texts) else -math.inf

        def complete_at(self, state):
            return 0.0 if state in self.texts else -math.inf

    learned = Learned()
    asap(0, model(), PROMPT, Listed(b"aba", b"aab", b"ba"), n=30, max_tokens=6, learned=learned)
    with pytest.raises(GuidedError, match="another"):
        asap(0, model(), PROMPT, Listed(b"aba", b"ba"), n=30, max_tokens=6, learned=learned)
    asap(0, model(), PROMPT, Listed(b"aba", b"aab", b"ba"), n=30, max_tokens=6, learned=learned)


@pytest.mark.parametrize(
    ("run", "name"),
    [(cars, "cars"), (asap, "asap"), (rejection, "rejection"), (mcmc, "mcmc")],
    ids=["cars", "asap", "rejection", "mcmc"],
)
def test_attempts_and_chains_of_another_problem_are_not_resumed(run, name, tmp_path):
    path = tmp_path / "run"
    options = {"n": 8, "max_tokens": 6, "batch": 4}
    run(0, model(), PROMPT, constraint("(a|b)[ab]{2,9}"), save=path, **options)
    for changes in (
        {"potential": constraint("(a|b)[ab]{1,9}")},
        {"model": model(2)},
        {"model": alike_at_first()},
        *([{"cut": Cut.UNIFORM}] if name == "mcmc" else []),
    ):
        first = [changes.pop("model", model()), PROMPT, changes.pop("potential", constraint("(a|b)[ab]{2,9}"))]
        with pytest.raises(GuidedError, match=r"another (model|potential)|the checkpoint was made with"):
            run(0, *first, resume=path, **options, **changes)
    run(0, model(), PROMPT, constraint("(a|b)[ab]{2,9}"), resume=path, **options)


def test_contents():
    def made(number, texts):
        return lambda text, more=3: len(text) > number or text in texts

    same = [
        (made(1, "a"), made(1, "a")),
        (constraint("a*"), constraint("a*")),
        (functools.partial(made, 1), functools.partial(made, 1)),
        # What may change while a function is called says nothing of it.
        (made(1, ["a"]), made(1, ["b"])),
        (frozenset("abcdef"), frozenset("fedcba")),
    ]
    for one, other in same:
        assert content_of(one) == content_of(other) is not None
    different = [
        (made(1, "a"), made(2, "a")),
        (made(1, "a"), made(1, "b")),
        (lambda text: "a" in text, lambda text: "b" in text),
        (lambda text: len(text), lambda text: abs(text)),
        (lambda text, k=1: k, lambda text, k=2: k),
        (constraint("a*"), constraint("a+")),
        (guided.regex("a"), guided.gbnf('root ::= "a"')),
        (AWRS(), AWRS(prune=False)),
        (1, 1.0),
        ("a", b"a"),
    ]
    for one, other in different:
        assert content_of(one) != content_of(other)
    for unknown in (object(), Counted(1.0), Counted(1.0) * constraint("a"), np.random.default_rng(0)):
        assert content_of(unknown) is None


def test_checkpoints_say_what_they_saw(tmp_path):
    path = tmp_path / "run.json"
    stopped(smc, path)
    kept = Checkpoint.load(path)
    assert kept.problem["potential"].startswith("ConstraintPotential ") and len(kept.seen["model"]) >= 2
    assert kept.seen["potential"] == [] == kept.seen["critic"]
