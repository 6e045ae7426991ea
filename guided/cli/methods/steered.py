"""The loaded model with all that the command line adds to it: steerers and drafts, built when they are used.

Nothing here imports torch before a model runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from guided.cli.methods.options import ModelOptions, SamplingOptions

if TYPE_CHECKING:
    from guided.cli.methods.steering_methods import Sources
    from guided.draft import Drafting
    from guided.hf import LoadedModel
    from guided.lm import LanguageModel
    from guided.steer import Stack

__all__ = ["Steered"]


@dataclass(frozen=True)
class Steered:
    """A loaded model and what ``--steer`` says; nothing is built or loaded before it is used."""

    loaded: LoadedModel
    sampling: SamplingOptions
    running: ModelOptions
    quiet: bool

    @cached_property
    def sources(self) -> Sources:
        """The model as the samplers and steerers see it, and where they find others."""
        from guided.cli.methods.steering import sources_of
        from guided.cli.models import load_model

        def load(name: str) -> LoadedModel:
            return load_model(name, device=self.running.device, offline=self.running.offline, quiet=self.quiet)

        return sources_of(self.loaded, load)

    @cached_property
    def stack(self) -> Stack:
        """The steerers; loads the models that they name."""
        from guided.cli.methods.steering import steering_stack

        return steering_stack(self.sampling.steer or (), self.sources)

    @cached_property
    def model(self) -> LanguageModel:
        """The steered model."""
        if not self.sampling.steer:
            return self.sources.base
        return self.stack.over(self.sources.base, same_tokenizer=True)

    @cached_property
    def drafting(self) -> Drafting | None:
        """What drafts; loads the model that it names."""
        from guided.cli.methods.drafting import drafting_of
        from guided.cli.models import load_model

        def load(name: str) -> LoadedModel:
            return load_model(name, device=self.running.device, offline=self.running.offline, quiet=self.quiet)

        if self.sampling.draft is None:
            return None
        greedy = self.sampling.sampler is None and not self.running.sample and not self.running.temperature
        return drafting_of(self.sampling.draft, self.sources.base, load, greedy=greedy)
