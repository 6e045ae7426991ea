"""``--sampler`` and ``--steer``: from names to functions of `guided.infer` and stacks of `guided.steer`, and results.

Nothing here imports torch before a model runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import Decoding, ModelOptions, SamplerName, SamplingOptions, searches
from guided.cli.methods.searching import check_search
from guided.cli.progress import kernel_compilation
from guided.errors import GuidedError, LimitError

if TYPE_CHECKING:
    from pathlib import Path

    from guided.cli.methods.steered import Steered
    from guided.constraint.constraint import Constraint
    from guided.hf.front.sampling import Sampled, Sampler

__all__ = ["Answer", "check_sampling", "sample_text"]

_FUNCTIONS = {SamplerName.SMC_STEER: "smc_steer", SamplerName.BEST_OF_N: "best_of_n"}
"""Where a name of the command line is not that of the function."""


@dataclass(frozen=True)
class Answer:
    """What a sampler found for one prompt."""

    text: str
    """The likeliest text; for ``best-of-n`` the best."""
    tokens: int
    weights: dict[str, float]
    """Each text with its probability, or its share of the samples, the likeliest first."""
    log_ml: float | None
    ess: float | None
    drafts: dict[str, Any] | None = None
    """What drafts gave, as JSON data."""
    log_ml_error: float | None = None
    """The standard error of ``log_ml``; None where it is not known."""
    missing: int = 0
    """Samples that were asked for and not found."""

    def record(self) -> dict[str, Any]:
        """All of it but the text, as JSON data; minus infinity is null."""
        known = self.log_ml is not None and math.isfinite(self.log_ml)
        return {
            "texts": [{"text": text, "weight": weight} for text, weight in self.weights.items()],
            "log_ml": self.log_ml if known else None,
            "log_ml_error": self.log_ml_error if known else None,
            "ess": self.ess,
            **({"missing": self.missing} if self.missing else {}),
            **({} if self.drafts is None else {"drafts": self.drafts}),
        }


def check_sampling(sampling: SamplingOptions, running: ModelOptions, *, may_fill: bool = False) -> None:
    """Raise `GuidedError` for options that do not fit together or are misspelt, before anything is loaded.

    ``may_fill``: where no texts are compared, a replay may be of a denoiser's canvas; `check_replayed` says later.
    """
    from guided.cli.methods.drafting import check_drafting
    from guided.cli.methods.steering import parse_steering

    check_drafting(sampling, running.model)
    for specification in sampling.steer or ():
        parse_steering(specification)
    check_search(sampling, running)
    if sampling.replay is not None and sampling.sampler is None and (searches(sampling) or not may_fill):
        raise GuidedError(
            "a replay shows the run of a sampler", where="--replay", remedy="Add --sampler, such as --sampler smc."
        )
    if sampling.replay is not None and not sampling.replay.absolute().parent.is_dir():
        raise GuidedError(
            "there is no folder to write the replay to", where=str(sampling.replay), remedy="Make it first."
        )
    if sampling.sampler is not None and running.temperature == 0:
        raise GuidedError(
            "a sampler draws, and at temperature 0 there is nothing to draw",
            where="--temperature 0",
            remedy="Leave out one of --sampler and --temperature 0.",
        )


def sample_text(
    ready: Steered,
    prompt: Any,
    constraint: Constraint,
    *,
    max_new_tokens: int,
    how: Decoding,
    quiet: bool = False,
) -> Answer:
    """Draw the texts for one prompt; raises `LimitError` where no particle wrote a whole text."""
    from guided.hf import generate
    from guided.hf.front.sampling_bar import sampling_bar
    from guided.infer import Recorder

    sampling = ready.sampling
    if sampling.sampler is None:
        raise ValueError("no sampler was chosen")
    tokenizer = ready.loaded.tokenizer
    recorder = None
    title = f"{sampling.sampler.value}, {sampling.particles} particles"
    if sampling.replay is not None:
        recorder = Recorder(constraint.vocabulary, title=title, prompt=prompt if isinstance(prompt, str) else "")
    options: dict[str, Any] = {} if how.temperature is None else {"temperature": how.temperature}
    if ready.drafting is not None:
        options["draft"] = ready.drafting
    with kernel_compilation(quiet=quiet), sampling_bar(title) as shown:
        bar = None if quiet else shown
        result: Any = generate(
            ready.model,
            prompt,
            constraint,
            sampler=_function(sampling.sampler),
            tokenizer=tokenizer,
            n=sampling.particles,
            seed=how.seed,
            max_new_tokens=max_new_tokens,
            progress=_both(recorder, bar),
            **options,
        )
    if recorder is not None and sampling.replay is not None:
        _write(recorder, result, sampling.replay)
    return _answer(result, drafted=ready.drafting is not None)


def _function(name: SamplerName) -> Sampler:
    import guided.infer

    function: Sampler = getattr(guided.infer, _FUNCTIONS.get(name, name.value))
    return function


def _both(first: Callable[[Any], None] | None, second: Callable[[Any], None] | None) -> Callable[[Any], None] | None:
    if first is None or second is None:
        return first or second

    def call(event: Any) -> None:
        first(event)
        second(event)

    return call


def _write(recorder: Any, result: Sampled, path: Path) -> None:
    from guided.infer import Ranked, Samples

    # The page lists texts with their shares; a ranking's candidates are samples like others.
    shown = Samples(result.particles, cost=result.cost) if isinstance(result, Ranked) else result
    recorder.finish(shown)
    try:
        recorder.save(path)
    except OSError as error:
        raise GuidedError(
            f"cannot write the replay: {error.strerror}", where=str(path), remedy="Name another file."
        ) from error


def _answer(result: Sampled, *, drafted: bool) -> Answer:
    from guided.cli.methods.drafting import sampled_record
    from guided.infer import Population, Ranked, Samples

    if isinstance(result, Ranked):
        weights = Samples(result.particles).posterior()
        text = result.best.text or ""
        log_ml = None
    else:
        weights = result.posterior()
        text = next(iter(weights), "")
        log_ml = result.log_ml
    if not weights:
        raise LimitError(
            "no particle wrote a whole text within the budget",
            where="--sampler",
            remedy="Raise --max-new-tokens or --particles, or use --sampler smc or asap.",
        )
    tokens = min(len(particle.tokens) for particle in result.particles if particle.finished and particle.text == text)
    ess = result.ess if isinstance(result, Population) else None
    drafts = sampled_record(result.cost) if drafted else None
    error = result.log_ml_error if isinstance(result, (Population, Samples)) else None
    return Answer(
        text,
        tokens,
        weights,
        None if log_ml is None else float(log_ml),
        ess,
        drafts,
        error if error is not None and math.isfinite(error) else None,
        result.missing if isinstance(result, Samples) else 0,
    )
