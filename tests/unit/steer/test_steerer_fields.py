"""Every setting of every steerer refuses what it cannot be when the steerer is made, not in the middle of a text."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, VocabularyError
from guided.lm import TableModel
from guided.steer import (
    GRAD,
    Activations,
    Added,
    ControlledDecoding,
    DoLa,
    DynamicFocus,
    EntropyAdaptive,
    LayersOverLayers,
    Masked,
    Mixture,
    ModelReward,
    Prefixed,
    Replaced,
    Stack,
    TextReward,
    TransitionGraph,
    Without,
    best_of_blocks,
    deal,
    train_scorer,
)
from guided.steer.rewards.scorer import Example
from tests import vocabularies
from tests.unit.steer.steering_twin import AMATEUR, OWN_HEAD, REWARD, STEERERS, text_of, vowels

VOCABULARY = vocabularies.of_bytes()
MADE = {
    **STEERERS,
    "activations": Activations((Added(torch.ones(3), 1),)),
    "adaptive": EntropyAdaptive(AMATEUR, 1.0),
    "masked": Masked(guided.compile(guided.regex("a"), VOCABULARY), 4),
    "reward": REWARD,
    "head": OWN_HEAD,
    "prefixed": Prefixed((1,)),
    "replaced": Replaced((1,)),
    "without": Without((1,)),
}
NAN = float("nan")


def kinds_of(hint) -> set[object]:
    """The kinds of values that an annotation allows, as far as this test tells them apart."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return kinds_of(typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType):
        return set().union(*map(kinds_of, typing.get_args(hint)))
    return {collections.abc.Callable if origin is collections.abc.Callable else origin or hint}


def wrong_values(hint) -> list[object]:
    """Values that are of none of the annotation's kinds."""
    kinds = kinds_of(hint)
    wrong: list[object] = [NAN, 1j, object(), {"a": 1}]
    if float not in kinds:
        wrong += [0.5] if collections.abc.Callable not in kinds else ["text", 0.5]
    if not kinds & {float, int}:
        wrong += [3, np.int64(3)]
    if bool not in kinds:
        wrong += [True, np.True_]
    if str not in kinds:
        wrong += ["text", "0.5", b"1"]
    if types.NoneType not in kinds:
        wrong.append(None)
    if tuple not in kinds:
        wrong += [(1,), [1.0], ()]
    else:
        wrong += [(NAN,), ["text"], (None,), (object(),)]
    if collections.abc.Callable not in kinds:
        wrong += [len, lambda: None]
    if not any(isinstance(kind, type) and issubclass(kind, enum.Enum) for kind in kinds):
        wrong.append(enum.Enum("Kind", "ONE").ONE)
    wrong.append(TableModel if collections.abc.Callable not in kinds else None)
    return wrong


def fields_of(made):
    hints = typing.get_type_hints(type(made), include_extras=True)
    return [(field.name, hints[field.name]) for field in dataclasses.fields(made) if field.init]


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, made in MADE.items() for field, _ in fields_of(made)]
)
def test_no_setting_takes_another_type_or_nan(name, field):
    made = MADE[name]
    given = {one.name: getattr(made, one.name) for one in dataclasses.fields(made) if one.init}
    type(made)(**given)
    for wrong in wrong_values(dict(fields_of(made))[field]):
        with pytest.raises(GuidedError, match=r"Pass|token ids") as raised:
            type(made)(**{**given, field: wrong})
        assert type(made).__name__ in str(raised.value), wrong


def test_every_steerer_is_here():
    listed = [getattr(guided.steer, name) for name in guided.steer.__all__]
    steerers = {
        kind for kind in listed if isinstance(kind, type) and hasattr(kind, "declare") and kind.__name__ != "Steerer"
    }
    assert steerers | {EntropyAdaptive, TextReward, ModelReward} <= {type(made) for made in MADE.values()}


@pytest.mark.parametrize("number", [float("inf"), -float("inf")])
@pytest.mark.parametrize(
    ("name", "field"),
    [(name, field) for name, made in MADE.items() for field, hint in fields_of(made) if float in kinds_of(hint)],
)
def test_infinite_only_where_that_means_something(name, field, number):
    made = MADE[name]
    given = {one.name: getattr(made, one.name) for one in dataclasses.fields(made) if one.init}
    meant = {(DynamicFocus, "sigma"): [float("inf")], (EntropyAdaptive, "threshold"): [float("inf"), -float("inf")]}
    if number in meant.get((type(made), field), []):
        type(made)(**{**given, field: number})
        return
    with pytest.raises(GuidedError, match=field):
        type(made)(**{**given, field: number})


def test_numbers_of_numpy_and_lists_are_taken():
    assert DynamicFocus(sigma=np.float32(0.5), temperature=np.int64(2)).sigma == 0.5
    assert DoLa([0, 1]).layers == (0, 1) and Mixture([AMATEUR], [1, 0]).weights == (1.0, 0.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LayersOverLayers(AMATEUR, 1, truth=0.5), "truth=0.5 weighs a prompt that was not given"),
        (lambda: Replaced(()), "a prompt has no tokens"),
        (lambda: Replaced((1.5,)), "no token ids"),
        (lambda: Stack([ControlledDecoding]), "no steerer"),
        (lambda: Stack(DoLa()), "sequence of steerers"),
        (lambda: Stack(None), "sequence of steerers"),
        (lambda: TransitionGraph({"a": {1: 1.0}}), "whole number"),
        (lambda: TransitionGraph({1: {2: NAN}}), "from 1 to 2"),
        (lambda: TransitionGraph({1: {2: -1.0}}), "from 1 to 2"),
        (lambda: deal(AMATEUR, [1], vowels, top_k=2.5), "top_k=2.5 is not a whole number"),
        (lambda: deal(AMATEUR, [1], vowels, weight=NAN), "weight=nan"),
        (lambda: best_of_blocks(AMATEUR, [1], vowels, np.random.default_rng(0), n_blocks="4"), "n_blocks='4'"),
        (lambda: train_scorer(AMATEUR, [Example((1, 2), NAN)]), "example 0"),
        (lambda: train_scorer(AMATEUR, [Example((1, 2), 1.0)], learning_rate=NAN), "learning_rate"),
    ],
)  # fmt: skip
def test_what_else_is_refused(make, says):
    with pytest.raises(GuidedError, match=says):
        make()


def test_a_graph_of_other_ids_is_refused_before_a_text_begins():
    graph = TransitionGraph({1: {AMATEUR.width: 1.0}})
    with pytest.raises(VocabularyError, match=f"token {AMATEUR.width}"):
        Stack([GRAD(graph)]).over(AMATEUR)
    assert TextReward(vowels, text_of).of([(1,)])
