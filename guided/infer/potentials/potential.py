"""`Potential`: log weights of finished token sequences and of their prefixes; products, powers; constraints as such.

Potentials over text are in `guided.infer.potentials.text_potentials`.  Nothing here samples.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.batch import fill_masks
from guided.constraint.protocol import Constrains, JudgesTokens
from guided.errors import VocabularyError
from guided.infer.errors import PotentialError
from guided.infer.potentials.lookahead import Lookahead
from guided.infer.weights import log_sum_exp
from guided.vocab.vocabulary import Vocabulary

__all__ = ["ConstraintPotential", "Normalized", "Potential", "Power", "Product", "as_potential"]

State = TypeVar("State")

_ZERO = 0.0
_NEVER = -math.inf


class Potential(ABC, Generic[State]):
    """Log weights over the token sequences of one vocabulary, asked through states so that no prefix is read twice.

    A subclass gives `start`, `advance`, `prefix_at` and `complete_at`; a state is a hashable value that nobody changes,
    shared by particles.  Laws, held by `guided.testing.check_potential`: weights are never NaN and never plus infinity;
    what a prefix forbids (minus infinity) stays forbidden, so ``complete(x)`` above minus infinity needs every prefix
    of x above it; and ``prefix(()) + sum of logw_next(x[:t])[x[t]] + logw_next(x)[end of text] == complete(x)``.

    End-of-text ids are those of the vocabulary; each of them scores as `complete_at`.
    """

    vocabulary: Vocabulary
    has_masks: bool = False
    """Is it worth asking `allowed_each`?  True for subclasses that define it, unless they say otherwise."""
    masks_are_dear: bool = False
    """Does a mask cost more than to test some tokens, however small the vocabulary is?"""
    has_rows: bool = False
    """Does `logw_next_each` cost less than a question for each id?"""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "allowed_each" in vars(cls) and "has_masks" not in vars(cls):
            cls.has_masks = True

    @property
    def boolean(self) -> bool:
        """True where every weight is 0 or minus infinity by construction."""
        return False

    def content(self) -> Any:
        """What makes this potential what it is, as plain values, functions and constraints: equal for equal potentials.

        Saved runs and what was learned are compared by it; one that says nothing of itself (None) by its answers.
        """
        return None

    @abstractmethod
    def start(self) -> State:
        """The state of no tokens."""

    @abstractmethod
    def advance(self, state: State, token: int) -> State:
        """The state after a token that is not an end-of-text id; `prefix_at` tells whether it is still alive."""

    @abstractmethod
    def prefix_at(self, state: State) -> float:
        """The log weight of the state's tokens as a prefix; minus infinity if nothing that follows can help."""

    @abstractmethod
    def complete_at(self, state: State) -> float:
        """The log weight of the state's tokens as a finished sequence."""

    def prefix_each(self, states: Sequence[State]) -> list[float]:
        """`prefix_at` of many states; scorers answer in one batch."""
        return [self.prefix_at(state) for state in states]

    def complete_each(self, states: Sequence[State]) -> list[float]:
        """`complete_at` of many states; scorers answer in one batch."""
        return [self.complete_at(state) for state in states]

    def allowed_each(self, states: Sequence[State]) -> NDArray[np.bool_] | None:
        """``bool[n, vocabulary.size]``: the live tokens after each state; None unless masks say all and are at hand."""
        return None

    def possible_at(self, state: State) -> NDArray[np.bool_] | None:
        """``bool[vocabulary.size]``: False for tokens that are known, at little cost, not to be allowed; None: unknown.

        Samplers that test tokens one by one ask for it after some rejections.
        """
        return None

    def step(self, state: State, token: int) -> tuple[State, float]:
        """The state after a token and its ``logw_next``; after an end-of-text id the state is the same."""
        before = self.checked(self.prefix_at(state))
        if token in self.eos_ids:
            return state, _difference(self.checked(self.complete_at(state)), before)
        if not self.usable[token]:
            return state, _NEVER
        after = self.advance(state, token)
        return after, _difference(self.checked(self.prefix_at(after)), before)

    def step_bytes(self, state: State, data: bytes) -> tuple[State, float] | None:
        """The state after some bytes of text and the change of the prefix weight; None where bytes cannot be asked."""
        return None

    def logw_next_at(self, state: State) -> NDArray[np.float64]:
        """``float64[vocabulary.size]``: what each next token adds to the log weight; end-of-text ids complete.

        Ids without text are forbidden.  Costs a question for each id of the vocabulary, unless there is a mask.
        """
        masks = self.allowed_each([state])
        if masks is not None:
            return np.where(masks[0], _ZERO, _NEVER)
        out = np.full(self.vocabulary.size, _NEVER)
        before = self.checked(self.prefix_at(state))
        if before == _NEVER:
            return out
        ids = [token for token in np.flatnonzero(self.usable).tolist() if token not in self.eos_ids]
        after = self.prefix_each([self.advance(state, token) for token in ids])
        out[ids] = [self.checked(value) - before for value in after]
        out[list(self.eos_ids)] = self.checked(self.complete_at(state)) - before
        return out

    def logw_next_each(self, states: Sequence[State]) -> NDArray[np.float64]:
        """``float64[n, vocabulary.size]``: `logw_next_at` of many states; models answer in one pass."""
        return np.stack([self.logw_next_at(state) for state in states])

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a sequence."""
        return frozenset(self.vocabulary.eos_ids)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """``bool[vocabulary.size]``: ids with text, and those that end it; all others weigh nothing, unasked."""
        usable = np.diff(self.vocabulary.offsets) > 0
        usable[list(self.vocabulary.eos_ids)] = True
        return usable

    @cached_property
    def silent(self) -> NDArray[np.int64]:
        """The ids that are not `usable`, ascending."""
        return np.flatnonzero(~self.usable)

    def state_of(self, tokens: Sequence[int]) -> State:
        """The state after tokens, none of them an end-of-text id."""
        state = self.start()
        for token in tokens:
            state = self.advance(state, token)
        return state

    def prefix(self, tokens: Sequence[int]) -> float:
        """The log weight of tokens as a prefix; minus infinity if nothing that follows can help."""
        return self.prefix_at(self.state_of(tokens))

    def complete(self, tokens: Sequence[int]) -> float:
        """The log weight of tokens as a finished sequence, given without an end-of-text id."""
        return self.complete_at(self.state_of(tokens))

    def logw_next(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """``float64[vocabulary.size]``: what each next token adds to ``prefix(tokens)``; see `logw_next_at`."""
        return self.logw_next_at(self.state_of(tokens))

    def checked(self, value: float) -> float:
        """A log weight as it may be used; raises `PotentialError` for NaN and plus infinity."""
        if not value < math.inf:
            raise PotentialError(
                f"{self!r} gave the log weight {value}",
                remedy="A potential returns finite numbers, or minus infinity for what is forbidden.",
            )
        return value

    def __mul__(self, other: Potential[Any] | Constrains) -> Product:
        return Product(self, as_potential(other))

    def __pow__(self, exponent: float) -> Power:
        return Power(self, exponent)

    def normalize(self) -> Normalized:
        """This potential made a distribution, token by token; see `Normalized`."""
        return Normalized(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _difference(after: float, before: float) -> float:
    return after - before if after > _NEVER and before > _NEVER else _NEVER


def as_potential(value: Potential[Any] | Constrains) -> Potential[Any]:
    """Return a potential as it is, and a constraint as the potential that weighs its texts 0 and all others not."""
    return value if isinstance(value, Potential) else ConstraintPotential(value)


class ConstraintPotential(Potential[int]):
    """A constraint: log weight 0 where its language can still be reached, and minus infinity elsewhere.

    States are the constraint's own ints; masks and steps are those that it remembers.
    """

    def __init__(self, constraint: Constrains) -> None:
        self.constraint = constraint
        self.vocabulary = constraint.vocabulary
        self.masks_are_dear = isinstance(constraint, JudgesTokens)

    @property
    def boolean(self) -> bool:
        """Always True."""
        return True

    def content(self) -> Any:
        """The constraint."""
        return self.constraint

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """``bool[vocabulary.size]``: ids with text, special tokens that grammars can name, and end-of-text ids."""
        usable = np.diff(self.vocabulary.spelling.offsets) > 0
        usable[list(self.vocabulary.eos_ids)] = True
        return usable

    def start(self) -> int:
        """The constraint's start state."""
        return self.constraint.start

    def advance(self, state: int, token: int) -> int:
        """The constraint's next state, 0 when the token is not allowed."""
        return self.constraint.advance(state, token)

    def prefix_at(self, state: int) -> float:
        """0 for a live state."""
        return _ZERO if state else _NEVER

    def complete_at(self, state: int) -> float:
        """0 where the text may end."""
        return _ZERO if state and self.constraint.is_accepting(state) else _NEVER

    def step(self, state: int, token: int) -> tuple[int, float]:
        """One `advance`; after an end-of-text id the state is the constraint's `end`."""
        after = self.constraint.advance(state, token)
        return after, (_ZERO if after else _NEVER)

    def step_bytes(self, state: int, data: bytes) -> tuple[int, float]:
        """One `advance_bytes`."""
        after = self.constraint.advance_bytes(state, data)
        return after, (_ZERO if after else _NEVER)

    def possible_at(self, state: int) -> NDArray[np.bool_] | None:
        """The tokens whose first bytes can come next, as far as few questions tell; see `lookahead`."""
        return self._lookahead.tokens(state)

    @cached_property
    def _lookahead(self) -> Lookahead:
        return Lookahead(self.constraint)

    def allowed_each(self, states: Sequence[int]) -> NDArray[np.bool_]:
        """The masks of all states, filled by one call."""
        rows = np.empty((len(states), self.vocabulary.n_words), np.uint32)
        if len(states) == 1 and states[0]:
            self.constraint.fill_mask(states[0], rows[0])
        else:
            fill_masks(self.constraint, states, rows)
        return tokenset.flags(rows, self.vocabulary.size)

    def __repr__(self) -> str:
        return f"<ConstraintPotential of {self.constraint!r}>"


class Product(Potential[tuple[Any, ...]]):
    """The product of potentials over one vocabulary: log weights add, and nothing is normalised.

    Raises `ValueError` without factors, `VocabularyError` for factors over different vocabularies.
    """

    def __init__(self, *factors: Potential[Any] | Constrains) -> None:
        flat: list[Potential[Any]] = []
        for factor in map(as_potential, factors):
            flat.extend(factor.factors if isinstance(factor, Product) else [factor])
        if not flat:
            raise ValueError("a product needs at least one potential")
        self.factors: tuple[Potential[Any], ...] = tuple(flat)
        self.vocabulary = flat[0].vocabulary
        self.has_masks = all(factor.has_masks for factor in flat)
        self.masks_are_dear = any(factor.masks_are_dear for factor in flat)
        self.has_rows = all(factor.has_rows or factor.has_masks for factor in flat)
        for factor in flat:
            if factor.vocabulary != self.vocabulary:
                raise VocabularyError(
                    f"{factor!r} and {flat[0]!r} are over different vocabularies",
                    remedy="Build every factor with the vocabulary of the model that is sampled from.",
                )

    @property
    def boolean(self) -> bool:
        """True where every factor is."""
        return all(factor.boolean for factor in self.factors)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """``bool[vocabulary.size]``: ids that every factor can use."""
        usable: NDArray[np.bool_] = np.logical_and.reduce([factor.usable for factor in self.factors])
        return usable

    def content(self) -> Any:
        """The factors."""
        return self.factors

    def start(self) -> tuple[Any, ...]:
        """One state a factor."""
        return tuple(factor.start() for factor in self.factors)

    def advance(self, state: tuple[Any, ...], token: int) -> tuple[Any, ...]:
        """Every factor's next state."""
        return tuple(factor.advance(part, token) for factor, part in zip(self.factors, state, strict=True))

    def prefix_at(self, state: tuple[Any, ...]) -> float:
        """The sum; factors after one that forbids are not asked."""
        total = _ZERO
        for factor, part in zip(self.factors, state, strict=True):
            total += factor.checked(factor.prefix_at(part))
            if total == _NEVER:
                break
        return total

    def complete_at(self, state: tuple[Any, ...]) -> float:
        """The sum; factors after one that forbids are not asked."""
        total = _ZERO
        for factor, part in zip(self.factors, state, strict=True):
            total += factor.checked(factor.complete_at(part))
            if total == _NEVER:
                break
        return total

    def prefix_each(self, states: Sequence[tuple[Any, ...]]) -> list[float]:
        """Each factor is asked about the states that all before it allow, in one batch."""
        return self._each(states, complete=False)

    def complete_each(self, states: Sequence[tuple[Any, ...]]) -> list[float]:
        """Each factor is asked about the states that all before it allow, in one batch."""
        return self._each(states, complete=True)

    def _each(self, states: Sequence[tuple[Any, ...]], complete: bool) -> list[float]:
        totals = [_ZERO] * len(states)
        for number, factor in enumerate(self.factors):
            alive = [i for i, total in enumerate(totals) if total > _NEVER]
            parts = [states[i][number] for i in alive]
            values = factor.complete_each(parts) if complete else factor.prefix_each(parts)
            for i, value in zip(alive, values, strict=True):
                totals[i] += factor.checked(value)
        return totals

    def step(self, state: tuple[Any, ...], token: int) -> tuple[tuple[Any, ...], float]:
        """Every factor's step, until one forbids the token."""
        parts: list[Any] = []
        total = _ZERO
        for factor, part in zip(self.factors, state, strict=True):
            after, value = factor.step(part, token)
            total += value
            if total == _NEVER:
                return state, _NEVER
            parts.append(after)
        return tuple(parts), total

    def step_bytes(self, state: tuple[Any, ...], data: bytes) -> tuple[tuple[Any, ...], float] | None:
        """Every factor's step, until one forbids the bytes; None where a factor cannot be asked about bytes."""
        parts: list[Any] = []
        total = _ZERO
        for factor, part in zip(self.factors, state, strict=True):
            found = factor.step_bytes(part, data)
            if found is None:
                return None
            total += found[1]
            if total == _NEVER:
                return state, _NEVER
            parts.append(found[0])
        return tuple(parts), total

    def possible_at(self, state: tuple[Any, ...]) -> NDArray[np.bool_] | None:
        """The tokens that no factor knows to be forbidden; None where none knows anything."""
        found: NDArray[np.bool_] | None = None
        for factor, part in zip(self.factors, state, strict=True):
            possible = factor.possible_at(part)
            if possible is not None:
                found = possible if found is None else found & possible
        return found

    def allowed_each(self, states: Sequence[tuple[Any, ...]]) -> NDArray[np.bool_] | None:
        """The common tokens of all masks; None unless every factor has them."""
        found: NDArray[np.bool_] | None = None
        for number, factor in enumerate(self.factors):
            mask = factor.allowed_each([state[number] for state in states])
            if mask is None:
                return None
            found = mask if found is None else found & mask
        return found

    def logw_next_at(self, state: tuple[Any, ...]) -> NDArray[np.float64]:
        """The sum; where masks forbid a token, the factors without masks are not asked about it."""
        row: NDArray[np.float64] = self.logw_next_each([state])[0]
        return row

    def logw_next_each(self, states: Sequence[tuple[Any, ...]]) -> NDArray[np.float64]:
        """The sums; factors that know rows are asked once, and of what is left the others token by token."""
        out = np.repeat(np.where(self.usable, _ZERO, _NEVER)[None], len(states), axis=0)
        asked = []
        for number, factor in enumerate(self.factors):
            parts = [state[number] for state in states]
            masks = factor.allowed_each(parts)
            if masks is not None:
                out[~masks] = _NEVER
            elif factor.has_rows:
                out += factor.logw_next_each(parts)
            else:
                asked.append((factor, parts))
        for factor, parts in asked:
            for row, part in zip(out, parts, strict=True):
                for token in np.flatnonzero(row > _NEVER).tolist():
                    row[token] += factor.step(part, token)[1]
        return out

    def __repr__(self) -> str:
        return " * ".join(map(repr, self.factors))


class Power(Potential[Any]):
    """A potential to the power of a positive number: log weights times ``exponent``; made by ``potential**exponent``.

    What is forbidden stays forbidden, so a constraint is its own power.  Raises `ValueError` for an exponent that is
    not a positive number.
    """

    def __init__(self, base: Potential[Any], exponent: float) -> None:
        if not 0 < exponent < math.inf:
            raise ValueError(f"the power of a potential is a positive number, not {exponent}")
        self.base = base
        self.exponent = float(exponent)
        self.vocabulary = base.vocabulary
        self.has_masks = base.has_masks
        self.masks_are_dear = base.masks_are_dear
        self.has_rows = base.has_rows

    @property
    def boolean(self) -> bool:
        """True where the base is."""
        return self.base.boolean

    def content(self) -> Any:
        """Base and exponent."""
        return (self.base, self.exponent)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The base's."""
        return self.base.usable

    def start(self) -> Any:
        """The base's state."""
        return self.base.start()

    def advance(self, state: Any, token: int) -> Any:
        """The base's state."""
        return self.base.advance(state, token)

    def prefix_at(self, state: Any) -> float:
        """The base's weight, times the exponent."""
        return self.exponent * self.base.prefix_at(state)

    def complete_at(self, state: Any) -> float:
        """The base's weight, times the exponent."""
        return self.exponent * self.base.complete_at(state)

    def prefix_each(self, states: Sequence[Any]) -> list[float]:
        """The base's weights, times the exponent."""
        return [self.exponent * value for value in self.base.prefix_each(states)]

    def complete_each(self, states: Sequence[Any]) -> list[float]:
        """The base's weights, times the exponent."""
        return [self.exponent * value for value in self.base.complete_each(states)]

    def step(self, state: Any, token: int) -> tuple[Any, float]:
        """The base's step, its change times the exponent."""
        after, value = self.base.step(state, token)
        return after, self.exponent * value

    def step_bytes(self, state: Any, data: bytes) -> tuple[Any, float] | None:
        """The base's step, its change times the exponent."""
        found = self.base.step_bytes(state, data)
        return None if found is None else (found[0], self.exponent * found[1])

    def allowed_each(self, states: Sequence[Any]) -> NDArray[np.bool_] | None:
        """The base's masks."""
        return self.base.allowed_each(states)

    def possible_at(self, state: Any) -> NDArray[np.bool_] | None:
        """What the base knows."""
        return self.base.possible_at(state)

    def logw_next_each(self, states: Sequence[Any]) -> NDArray[np.float64]:
        """The base's rows, times the exponent."""
        return self.exponent * self.base.logw_next_each(states)

    def logw_next_at(self, state: Any) -> NDArray[np.float64]:
        """The base's row, times the exponent."""
        return self.exponent * self.base.logw_next_at(state)

    def __repr__(self) -> str:
        return f"({self.base!r})**{self.exponent:g}"


class Normalized(Potential[tuple[Any, float]]):
    """A potential made a distribution, token by token: ``exp(logw_next)`` sums to 1 wherever something may follow.

    Made by ``potential.normalize()``; a product of language models becomes a product of experts.  The ends of the text
    count as one, and each scores as it.  This is another potential: what is normalised at every step forgets how much
    of the weight was forbidden, as masking does.  Each step costs the base's ``logw_next``.
    """

    has_rows = True

    def __init__(self, base: Potential[Any]) -> None:
        self.base = base
        self.vocabulary = base.vocabulary

    def content(self) -> Any:
        """The base."""
        return self.base

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """The base's."""
        return self.base.usable

    def start(self) -> tuple[Any, float]:
        """The base's state with the log weight 0, or minus infinity where it forbids everything."""
        state = self.base.start()
        return state, 0.0 if self.base.checked(self.base.prefix_at(state)) > _NEVER else _NEVER

    def advance(self, state: tuple[Any, float], token: int) -> tuple[Any, float]:
        """The base's state with the sum of normalised changes."""
        inner, weight = state
        if weight == _NEVER:
            return inner, _NEVER
        change = float(self._rows([inner])[0][token])
        if change == _NEVER:
            return inner, _NEVER
        return self.base.advance(inner, token), weight + change

    def prefix_at(self, state: tuple[Any, float]) -> float:
        """The sum of normalised changes."""
        return state[1]

    def complete_at(self, state: tuple[Any, float]) -> float:
        """The sum, that of the end included."""
        if state[1] == _NEVER:
            return _NEVER
        return state[1] + float(self._rows([state[0]])[0][next(iter(self.eos_ids))]) if self.eos_ids else _NEVER

    def logw_next_at(self, state: tuple[Any, float]) -> NDArray[np.float64]:
        """The base's row, normalised."""
        row: NDArray[np.float64] = self.logw_next_each([state])[0]
        return row

    def logw_next_each(self, states: Sequence[tuple[Any, float]]) -> NDArray[np.float64]:
        """The base's rows, normalised."""
        rows = np.full((len(states), self.vocabulary.size), _NEVER)
        alive = [i for i, (_, weight) in enumerate(states) if weight > _NEVER]
        if alive:
            rows[alive] = self._rows([states[i][0] for i in alive])
        return rows

    def _rows(self, states: Sequence[Any]) -> NDArray[np.float64]:
        rows = np.array(self.base.logw_next_each(states), np.float64)
        others = np.ones(self.vocabulary.size, np.bool_)
        others[sorted(self.eos_ids)[1:]] = False
        for row in rows:
            total = self.checked(log_sum_exp(row[others]))
            if total > _NEVER:
                row -= total
        return rows

    def __repr__(self) -> str:
        return f"({self.base!r}).normalize()"
