"""The laws of potentials: `check_potential`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.infer.potentials.potential import Potential, as_potential

__all__ = ["check_potential"]

_EACH = 64
"""Ids advanced one by one on each state, of those that ``logw_next`` allows and of all."""


def check_potential(
    potential: Potential[Any] | Constrains,
    *,
    seed: int = 0,
    walks: int = 20,
    length: int = 20,
    tolerance: float = 1e-9,
) -> None:
    """Hold the laws on random token sequences: ``walks`` of up to ``length`` tokens, most of them allowed ones.

    Weights are numbers or minus infinity, never NaN or plus infinity, 0 or minus infinity where `boolean` says so.
    What a prefix forbids stays forbidden, for prefixes and whole texts.  ``logw_next``, `step` and `advance` agree on
    each token; log weights add up along a text to that of the whole; batches, masks and bytes say what single questions
    say; a state means the same whenever it is asked.  Raises `AssertionError` with the tokens that show it.

    >>> import guided
    >>> from guided import infer
    >>> from guided.testing import check_potential
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> changeable = infer.TextPredicate(letters, lambda text: True, prefix=lambda text: len(text) != 1)
    >>> try:  # a prefix of one letter is forbidden, and longer ones are not
    ...     check_potential(changeable, walks=20, length=4)
    ... except AssertionError as error:
    ...     print("broken")
    broken
    """
    check = _Check(as_potential(potential), np.random.default_rng(seed), tolerance)
    check.hold(check.potential.prefix(()) > -math.inf, "the empty prefix is forbidden", ())
    for _ in range(walks):
        check.walk(length)


class _Check:
    def __init__(self, potential: Potential[Any], rng: np.random.Generator, tolerance: float) -> None:
        self.potential = potential
        self.rng = rng
        self.tolerance = tolerance
        self.ids = [token for token in np.flatnonzero(potential.usable).tolist() if token not in potential.eos_ids]

    def walk(self, length: int) -> None:
        """One sequence; past a forbidden token it goes on a little, where everything must stay forbidden."""
        potential = self.potential
        state = potential.start()
        tokens: tuple[int, ...] = ()
        total = self.number(potential.prefix_at(state), "prefix", tokens)
        alive = True
        for _ in range(int(self.rng.integers(1, length + 1))):
            step_weights = self.visit(state, tokens, alive, total)
            allowed = [token for token in self.ids if step_weights[token] > -math.inf]
            pick = allowed if allowed and self.rng.random() < 0.9 else self.ids
            if not pick:
                return
            token = int(self.rng.choice(pick))
            state, tokens = potential.advance(state, token), (*tokens, token)
            prefix = self.number(potential.prefix_at(state), "prefix", tokens)
            self.hold(alive or prefix == -math.inf, "a forbidden prefix is allowed again", tokens)
            if alive:
                total += step_weights[token]
                self.same(total, prefix, "logw_next does not add up to prefix", tokens)
            if not alive and self.rng.random() < 0.5:
                return
            alive = prefix > -math.inf

    def visit(self, state: Any, tokens: tuple[int, ...], alive: bool, total: float) -> np.ndarray[Any, Any]:
        potential = self.potential
        complete = self.number(potential.complete_at(state), "complete", tokens)
        self.hold(alive or complete == -math.inf, "a text is allowed whose prefix is forbidden", tokens)
        self.same(complete, potential.complete(tokens), "complete depends on how the state was reached", tokens)
        weights = np.asarray(potential.logw_next_at(state))
        self.hold(weights.shape == (potential.vocabulary.size,), "logw_next has one entry for each id", tokens)
        self.hold(bool((weights < math.inf).all()), "logw_next has NaN or plus infinity", tokens)
        self.hold(bool((weights[~potential.usable] == -math.inf).all()), "an id without text is allowed", tokens)
        if not alive:
            self.hold(bool((weights == -math.inf).all()), "logw_next goes on from a forbidden prefix", tokens)
            return weights
        if potential.boolean:
            self.hold(set(weights.tolist()) <= {0.0, -math.inf}, "a boolean potential weighs 0 or -inf", tokens)
        for end in potential.eos_ids:
            self.same(total + weights[end], complete, "logw_next of the end does not add up to complete", tokens)
            self.same(potential.step(state, end)[1], weights[end], "step and logw_next of the end differ", tokens)
        self.each(state, tokens, weights)
        possible = potential.possible_at(state)
        if possible is not None:
            self.hold(bool((possible | (weights == -math.inf)).all()), "an allowed token is called impossible", tokens)
        masks = potential.allowed_each([state])
        if masks is not None:
            self.hold(bool((masks[0] == (weights > -math.inf)).all()), "the mask is not where logw_next lives", tokens)
        return weights

    def each(self, state: Any, tokens: tuple[int, ...], weights: np.ndarray[Any, Any]) -> None:
        """Some tokens by every way there is."""
        potential = self.potential
        allowed = [token for token in self.ids if weights[token] > -math.inf]
        some = sorted({*self.some(allowed, _EACH // 2), *self.some(self.ids, _EACH // 2)})
        before = potential.prefix_at(state)
        after = [potential.advance(state, token) for token in some]
        for token, then, together in zip(some, after, potential.prefix_each(after), strict=True):
            path = (*tokens, token)
            value = potential.prefix_at(then)
            self.same(value, together, "prefix_each and prefix_at differ", path)
            self.same(value, before + weights[token], "logw_next and prefix differ", path)
            stepped, change = potential.step(state, token)
            self.same(change, weights[token], "step and logw_next differ", path)
            if change > -math.inf:
                self.same(potential.complete_at(stepped), potential.complete_at(then), "step leads elsewhere", path)
                by_bytes = potential.step_bytes(state, potential.vocabulary.token_bytes(token) or b"")
                if by_bytes is not None and potential.vocabulary.token_bytes(token):
                    self.same(by_bytes[1], change, "step_bytes and step differ", path)
        together_all = potential.complete_each(after)
        for token, then, value in zip(some, after, together_all, strict=True):
            self.same(potential.complete_at(then), value, "complete_each and complete_at differ", (*tokens, token))
        self.same(potential.prefix_at(state), before, "a state has changed its mind", tokens)

    def some(self, ids: list[int], n: int) -> list[int]:
        return ids if len(ids) <= n else self.rng.choice(ids, n, replace=False).tolist()

    def number(self, value: float, what: str, tokens: tuple[int, ...]) -> float:
        self.hold(value < math.inf, f"{what} is {value}", tokens)
        return value

    def same(self, one: float, other: float, what: str, tokens: tuple[int, ...]) -> None:
        far = self.tolerance * max(1.0, abs(one), abs(other))
        equal = one == other or (math.isfinite(far) and abs(one - other) <= far)
        self.hold(equal, f"{what}: {one} and {other}", tokens)

    def hold(self, true: bool, what: str, tokens: tuple[int, ...]) -> None:
        if not true:
            text = b"".join(self.potential.vocabulary.spelled(token) or b"" for token in tokens)
            raise AssertionError(f"{what}\n  after {text!r}\n  tokens {list(tokens)}\n  of {self.potential!r}")
