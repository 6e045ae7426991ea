"""Samplers by repeated attempts from the prompt: what they learn, and the loop that keeps what ends in the language.

How one round of attempts is drawn is up to the sampler: `guided.infer.cars`, `guided.infer.asap`,
`guided.infer.rejection`.
"""

from __future__ import annotations

import json
import math
import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.infer.chance import Random, chance_of
from guided.infer.errors import FewSamplesWarning
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Cost, Particle, Samples, particle_of
from guided.infer.runs.checkpoint import Checkpoint, state_of
from guided.infer.runs.content import content_of, described
from guided.infer.runs.rounds import Round, RoundProgress
from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.visited import ROOT, Visited
from guided.infer.weights import log_sum_exp
from guided.lm.given import language_model
from guided.lm.model import LanguageModel

__all__ = ["Attempt", "Evidence", "Learned", "Run", "require_boolean"]


@dataclass(frozen=True)
class Attempt:
    """One sequence drawn from the prompt: the node it reached, and the token that failed there, if one did."""

    node: int
    failed: int | None = None
    """-1 where there was no token to draw."""
    kept: bool = True


@dataclass(frozen=True)
class Evidence:
    """Attempts as trials that estimate ``Z``: the value of each is the bound on ``Z`` at its time if kept, else 0.

    Every value has the mean ``Z``.  Attempts go on until enough were kept, so the last one kept says nothing, as it is
    why they ended: without it the mean of the others is unbiased where the bound is the same for all (of N attempts n
    were kept: ``(n - 1) / (N - 1)``; Haldane, Biometrika 33, 1945), and has far less bias elsewhere.  Attempts that
    ended because there were too many all count.
    """

    trials: int = 0
    log_sum: float = -math.inf
    """The logarithm of the sum of values."""
    log_squares: float = -math.inf
    """The logarithm of the sum of their squares."""
    log_last: float = -math.inf
    """The logarithm of the value that came last and is no trial yet; minus infinity for none."""

    def after(self, trials: int, log_values: Sequence[float], log_last: float) -> Evidence:
        """With more trials, of which some had these values and all others 0; what came last before now counts."""
        values = [self.log_last, *log_values]
        return Evidence(
            self.trials + trials + (self.log_last > -math.inf),
            log_sum_exp([self.log_sum, *values]),
            log_sum_exp([self.log_squares, *(2 * value for value in values)]),
            log_last,
        )

    @property
    def log_ml(self) -> float | None:
        """The logarithm of the mean; None where no trial had a value."""
        return self.log_sum - math.log(self.trials) if self.log_sum > -math.inf else None

    @property
    def log_ml_error(self) -> float | None:
        """The mean's standard error over the mean; infinite for a single trial."""
        if self.log_sum == -math.inf:
            return None
        if self.trials < 2:
            return math.inf
        spread = self.trials * math.exp(self.log_squares - 2 * self.log_sum) - 1
        return math.sqrt(max(spread, 0.0) / (self.trials - 1))


@dataclass
class Learned:
    """What `cars` or `asap` knows of one model, prompt, constraint and limit of tokens; picklable, continued by a call.

    >>> learned = Learned()
    >>> learned.attempts, learned.log_bound
    (0, 0.0)
    """

    trie: Visited | None = None
    attempts: int = 0
    """Sequences begun so far."""
    evidence: Evidence = Evidence()
    """What the attempts say of ``Z``."""
    problem: dict[str, Any] = field(default_factory=dict)
    """What the trie is about, so that another problem is refused."""
    _model: weakref.ref[LanguageModel] | None = field(default=None, repr=False, compare=False)
    """Which model said what the trie remembers of it."""

    def is_of(self, model: LanguageModel) -> bool:
        """Was it this object that said what is remembered?  What another one said is forgotten."""
        same = self._model is not None and self._model() is model
        if self.trie is not None and not same:
            self.trie.forget_rows()
        try:
            self._model = weakref.ref(model)
        except TypeError:
            self._model = None
        return same

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    @property
    def log_bound(self) -> float:
        """The logarithm of an upper bound on ``Z``: the model's mass that no visited prefix excludes."""
        return 0.0 if self.trie is None else float(self.trie.log_value[ROOT])

    @property
    def log_ml(self) -> float | None:
        """The logarithm of an estimate of ``Z``, None before there is one; see `Evidence`."""
        return self.evidence.log_ml

    @property
    def n_prefixes(self) -> int:
        """How many prefixes were visited."""
        return 0 if self.trie is None else len(self.trie)


_WORDS = {"max_tokens": "limit of tokens"}


class Run:
    """Rounds of attempts until enough were kept, with what they learn, saved and resumed.

    Raises `GuidedError` for ``resume`` together with ``learned``, and for what was learned of another problem.
    """

    def __init__(
        self,
        name: str,
        rng: Random,
        model: LanguageModel,
        prompt: Sequence[int],
        potential: Potential[Any] | Constrains,
        *,
        max_tokens: int,
        memory: int,
        batch: int,
        learned: Learned | None = None,
        resume: str | Path | None = None,
    ) -> None:
        if resume is not None and learned is not None:
            raise GuidedError("a resumed run brings what it has learned", remedy="Pass resume or learned, not both.")
        self.kept: list[Particle] = []
        self._places: list[int] = []
        """Which attempt each of them was, from 1 on."""
        self._log_values: list[float] = []
        """The logarithm of the bound on ``Z`` that it was drawn under."""
        self.tried = 0
        self._before = Cost()
        self.chance = chance_of(rng)
        saved: Checkpoint | None = None
        if resume is not None:
            saved, learned = _load(resume)
        self.learned = Learned() if learned is None else learned
        goal = as_potential(potential)
        self.problem = {
            "sampler": name,
            "prompt": [int(token) for token in prompt],
            "max_tokens": max_tokens,
            "vocabulary": goal.vocabulary.digest,
            "potential": described(goal),
        }
        others = [name for name, now in self.problem.items() if self.learned.problem.get(name, now) != now]
        if others:
            raise GuidedError(
                f"what was learned belongs to another {', '.join(_WORDS.get(name, name) for name in others)}",
                remedy="Pass it to calls with the same arguments only.",
            )
        model = language_model(model)
        trusted = self.learned.is_of(model) and content_of(goal) is not None
        self.exploration = Exploration(
            model,
            prompt,
            goal,
            max_tokens=max_tokens,
            memory=memory,
            batch=batch,
            trie=self.learned.trie,
            trusted=trusted,
        )
        self.learned.trie, self.learned.problem = self.exploration.trie, self.problem
        if saved is not None:
            self.kept = [particle_of(self.exploration.vocabulary, tokens) for tokens in saved.tokens]
            self._places = [int(place) for place in saved.increments[0]]
            self._log_values = list(saved.logw)
            self.tried = saved.step
            self._before = saved.cost
            self.chance = saved.chance()

    @property
    def cost(self) -> Cost:
        """All that was asked for so far, before it was resumed included."""
        return self._before + self.exploration.cost

    def samples(
        self,
        attempts: Callable[[int], list[Attempt]],
        n: int,
        *,
        max_attempts: int,
        progress: RoundProgress | None,
        save: str | Path | None = None,
        save_every: int = 16,
    ) -> Samples:
        """Repeat rounds of ``attempts(k)`` until ``n`` are kept.

        Raises `GuidedError` for ``n`` below 1, `UnsatisfiableError` where no text is possible, `LimitError` where no
        attempt was kept.
        """
        if n < 1:
            raise GuidedError(f"{n} samples are wanted", remedy="Ask for at least 1.")
        exploration, learned, kept = self.exploration, self.learned, self.kept
        number = 0
        while len(kept) < n and self.tried < max_attempts:
            bound = learned.log_bound
            if bound == -math.inf:
                raise UnsatisfiableError(
                    f"no text of at most {exploration.max_tokens} tokens is in the language and has a probability",
                    where=f"after {learned.attempts} attempts",
                    remedy="Raise max_tokens, or loosen the constraint.",
                )
            # As many as are likely to be needed, and never more than may be tried.
            rate = max(len(kept) / self.tried, 1 / exploration.batch) if self.tried else 1.0
            size = min(exploration.batch, math.ceil((n - len(kept)) / rate), max_attempts - self.tried)
            found = attempts(size)
            for place, attempt in enumerate(found, self.tried + 1):
                if attempt.kept:
                    kept.append(exploration.particle(attempt.node))
                    self._places.append(place)
                    self._log_values.append(bound)
            self.tried += size
            learned.attempts += size
            number += 1
            if save is not None and (number % save_every == 0 or len(kept) >= n):
                self._save(save)
            if progress is not None:
                drawn = tuple(_particle(exploration, attempt) for attempt in found)
                progress(Round(number, drawn, min(len(kept), n), n, learned.log_bound, self.cost))
        learned.evidence = self._evidence(n)
        if not kept:
            raise LimitError(
                f"none of {self.tried} attempts ended in the language",
                remedy="Raise max_attempts, let failures teach (Learning.MASKS), or use smc or mcmc.",
            )
        if len(kept) < n:
            warnings.warn(
                f"{len(kept)} samples instead of {n}: {self.tried} attempts were used up; raise max_attempts",
                FewSamplesWarning,
                stacklevel=3,
            )
        # Attempts of the last round that nobody asked for still count as kept: they are as good as the others.
        return Samples(
            particles=tuple(kept[:n]),
            acceptance=len(kept) / self.tried,
            log_ml=learned.evidence.log_ml,
            cost=self.cost,
            log_ml_error=learned.evidence.log_ml_error,
            missing=max(n - len(kept), 0),
        )

    def _evidence(self, n: int) -> Evidence:
        """What was known before, and the attempts up to the n-th that was kept, those side by side with it left out."""
        if len(self.kept) < n:
            return self.learned.evidence.after(self.tried, self._log_values, -math.inf)
        trials, values = self._places[n - 1] - 1, self._log_values
        return self.learned.evidence.after(trials, values[: n - 1], values[n - 1])

    def _save(self, path: str | Path) -> None:
        """Write trie, samples and the generator's state to one file of arrays, whole or not at all."""
        learned = self.learned
        assert learned.trie is not None
        kept = Checkpoint(
            problem={**self.problem, "attempts": learned.attempts, "evidence": astuple(learned.evidence)},
            step=self.tried,
            tokens=tuple(particle.tokens for particle in self.kept),
            logw=tuple(self._log_values),
            twists=(),
            status=(),
            increments=(tuple(self._places),),
            resampled=(),
            cost=self.cost,
            rng=state_of(self.chance),
        )
        target = Path(path)
        draft = target.with_name(f"{target.name}.{os.getpid()}.part")
        with draft.open("wb") as file:
            np.savez(file, checkpoint=np.array(json.dumps(asdict(kept))), **learned.trie.__getstate__())
        os.replace(draft, target)


def _load(path: str | Path) -> tuple[Checkpoint, Learned]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        data = json.loads(str(arrays.pop("checkpoint")))
        kept = Checkpoint(**data | {"cost": Cost(**data["cost"]), "tokens": tuple(map(tuple, data["tokens"]))})
        trie = Visited.__new__(Visited)
        trie.__setstate__({**arrays, "row_bytes": int(arrays["row_bytes"])})
        problem = dict(kept.problem)
        attempts, evidence = problem.pop("attempts"), Evidence(*problem.pop("evidence"))
        return kept, Learned(trie, attempts, evidence, problem)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
        raise GuidedError(
            f"this is not a saved run of attempts: {error}",
            where=str(path),
            remedy="Pass a file that save= has written.",
        ) from error


def require_boolean(potential: Potential[Any], name: str) -> None:
    """Raise `UnsupportedError` for a potential with weights between."""
    if not potential.boolean:
        raise UnsupportedError(
            f"{name} draws under constraints, and {potential!r} has other weights than 0 and 1",
            remedy="Use smc, mcmc or rejection for soft potentials, or declare the potential Boolean if it is.",
        )


def _particle(exploration: Exploration, attempt: Attempt) -> Particle:
    found = exploration.particle(attempt.node, logw=0.0 if attempt.kept else -math.inf, finished=attempt.failed is None)
    if attempt.failed is None or attempt.failed < 0:
        return found
    return Particle((*found.tokens, attempt.failed), found.data, found.logw, finished=False)
