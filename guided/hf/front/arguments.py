"""`Arguments`: what `guided.generate` was called with, what does not go together, and which runner takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from guided.errors import UnsupportedError
from guided.hf.front.configured import Configured
from guided.hf.front.distorted import with_distortions
from guided.hf.front.encoding import is_single
from guided.hf.front.request import OWN_OPTIONS, Request, read_model, read_prompts, stack_of
from guided.hf.front.thinking import DraftFirst, Think, conditioned, least_taken, thinking_of
from guided.hf.front.transformers_loop import run_transformers, transformers_options
from guided.steer import Stack

if TYPE_CHECKING:
    from guided.diffusion import Denoiser
    from guided.draft import Drafting
    from guided.hf.front.draft_argument import Draft
    from guided.hf.front.sampling import Sampler
    from guided.hf.front.searching import Phrase, Search
    from guided.steer import Steering

__all__ = ["Arguments"]

CALL_OPTIONS = ("show_progress", "same_tokenizer")
"""Options that are those of `guided.generate`, whichever runner takes the others."""


@dataclass(frozen=True)
class Arguments:
    """The arguments as they were given, in the order and with the meanings of `guided.generate`."""

    model: Any
    prompt: Any
    grammar: Any
    sampler: Sampler | None
    search: Search | None
    must_include: str | Sequence[Phrase]
    must_exclude: str | Sequence[Phrase]
    draft: Draft | None
    n: int | None
    seed: Any
    steer: Steering | None
    tokenizer: Any
    max_new_tokens: int
    chat: bool
    heal: bool
    canonical: bool
    think: Think | None
    distortion: bool
    options: Mapping[str, Any]

    def results(self) -> Any:
        """What the runner gives: one result for one prompt that was given alone, else a list."""
        think = thinking_of(self.think)
        if think is not None:
            return self._thought(think)
        request = self._request()
        results = self._run(request)
        return results[0] if is_single(self.prompt) and "num_return_sequences" not in request.options else results

    def _thought(self, think: DraftFirst) -> Any:
        """Drafts without the grammar, then answers with it behind each, and of those to several drafts the best."""
        self._check_thinking(think)
        prompts = [self.prompt] if is_single(self.prompt) else list(self.prompt)
        free = replace(
            self, prompt=prompts, grammar=None, think=None, sampler=None, search=None, must_include=(), must_exclude=(),
            canonical=False, distortion=False, n=None if think.drafts == 1 else think.drafts,
            max_new_tokens=think.max_new_tokens,
        )  # fmt: skip
        drafts: list[str] = [draft.text for draft in free.results()]
        each = think.drafts
        asked = [conditioned(prompts[i // each], draft, think, self.chat) for i, draft in enumerate(drafts)]
        several = isinstance(self.grammar, Sequence) and not isinstance(self.grammar, str) and len(self.grammar) > 1
        grammar = [self.grammar[i // each] for i in range(len(asked))] if several else self.grammar
        bound = replace(self, prompt=asked, grammar=grammar, think=None)
        request = bound._request()
        results = bound._run(request)
        if not self._looks_at_whole_texts:
            per = len(results) // len(drafts)
            results = [replace(result, thought=drafts[i // per]) for i, result in enumerate(results)]
        if each > 1:
            starts = range(0, len(results), each)
            results = [
                results[start + least_taken(replace(request, prompts=request.prompts[start : start + each]),
                                            results[start : start + each])]
                for start in starts
            ]  # fmt: skip
        return results[0] if is_single(self.prompt) and self.n is None else results

    def _check_thinking(self, think: DraftFirst) -> None:
        """Raise `UnsupportedError` for what does not go with a draft in words."""
        for name, wanted in (
            ("heal", self.heal), ("streamer", "streamer" in self.options),
            ("num_return_sequences", "num_return_sequences" in self.options),
            ("a denoiser", self._denoiser is not None),
        ):  # fmt: skip
            if wanted:
                raise UnsupportedError(f"think= does not go with {name}", where="guided.generate", remedy="Leave one.")
        if self.grammar is None:
            raise UnsupportedError("think= plans for a grammar, and there is none", remedy="Pass one, or leave it out.")
        if think.drafts > 1 and (self._looks_at_whole_texts or self.n is not None):
            raise UnsupportedError(
                "of several drafts one answer is kept: there is no n, no sampler and no search",
                where="think",
                remedy="Leave them out, or ask for one draft.",
            )

    @cached_property
    def _searches(self) -> bool:
        return bool(self.search is not None or self.must_include or self.must_exclude)

    @property
    def _looks_at_whole_texts(self) -> bool:
        return self._searches or self.sampler is not None

    def _request(self) -> Request:
        """The arguments resolved.  Raises `GuidedError` for those that do not go together or cannot be read."""
        if self._denoiser is not None:
            self._check_denoiser()
        drafting = self._drafting()
        self._check()
        whole = self._looks_at_whole_texts
        options = {name: value for name, value in self.options.items() if name not in CALL_OPTIONS}
        if self._denoiser is None:
            model, tokenizer, ends = read_model(self.model, self.tokenizer, whole=whole)
        else:
            model, tokenizer = self._denoiser, self.tokenizer or getattr(self.model, "tokenizer", None)
            ends = sorted(self._denoiser.eos_ids)
        if not whole:
            options = transformers_options(options, tokenizer, self.n)
        configured = self._configured(options, model)
        prompts = read_prompts(
            self.prompt, self.grammar, model, tokenizer, ends, max_new_tokens=self.max_new_tokens, chat=self.chat,
            heal=self.heal, canonical=self.canonical, potentials=whole,
        )  # fmt: skip
        stack = stack_of(self.steer)
        # Guidance alone stays with transformers' own loop, which knows it.
        if whole or drafting is not None or stack or not configured.only_guidance:
            first = [] if stack.adaptive is None else [stack.adaptive]
            stack = Stack([*first, configured.stack([prompt.ids for prompt in prompts]), *stack.steerers])
            options = configured.without(options, transformers=not whole)
        return Request(
            model, tokenizer, ends, prompts, self.max_new_tokens, self.n, self.seed, stack,
            bool(self.options.get("same_tokenizer", False)), drafting, options,
        )  # fmt: skip

    def _configured(self, options: Mapping[str, Any], model: Any) -> Configured:
        """Steering by transformers' names; samplers and searches, which read no configuration, take the options' own.

        Raises `UnsupportedError` for contrastive search with a sampler or a search.
        """
        if self._denoiser is not None:
            return Configured()
        found = Configured.of(options, None if self._looks_at_whole_texts else model)
        if self._looks_at_whole_texts and found.penalty_alpha is not None:
            raise UnsupportedError(
                "penalty_alpha is contrastive search, which takes the best token and weighs no texts",
                where="guided.generate",
                remedy="Leave it out, or sampler= and search=.",
            )
        return found

    @cached_property
    def _denoiser(self) -> Denoiser | None:
        """The model as a denoiser, where it is one."""
        from guided.hf.denoisers.choice import denoiser_for, is_denoiser

        return denoiser_for(self.model, self.tokenizer) if is_denoiser(self.model) else None

    def _check_denoiser(self) -> None:
        """Raise `UnsupportedError` for what asks for the next token of a model that has none."""
        for name, wanted in (
            ("sampler", self.sampler is not None), ("search", self._searches), ("heal", self.heal),
            ("draft", self.draft is not None), ("steer", bool(self.steer)), ("distortion", self.distortion),
        ):  # fmt: skip
            if wanted:
                raise UnsupportedError(
                    f"{name} asks for the next token, and a denoiser writes all at once",
                    where="guided.generate",
                    remedy=f"Leave out {name}; denoising=guided.diffusion.Denoising(...) says how canvases are filled.",
                )

    def _drafting(self) -> Drafting | None:
        if self.draft is None:
            return None
        from guided.hf.front.draft_argument import check_combination, drafting_for

        greedy = self.sampler is None and not self.options.get("do_sample")
        drafting = drafting_for(self.draft, self.model, self.tokenizer, greedy=greedy)
        check_combination(self.sampler, self._searches, self.options)
        return drafting

    def _check(self) -> None:
        """Raise `UnsupportedError` for arguments that do not go together."""
        sampled = self.sampler is not None
        if self._searches and sampled:
            raise UnsupportedError(
                "a sampler draws texts and a search compares them",
                remedy="Leave out sampler=, or search=, must_include= and must_exclude=.",
            )
        if self._looks_at_whole_texts:
            name = "search" if self._searches else "sampler"
            if self.heal:
                raise UnsupportedError(f"a {name} cannot take back the prompt's end", remedy="Leave out heal=True.")
            if self.distortion:
                raise UnsupportedError(
                    f"a {name} weighs whole texts, and masks do not distort them",
                    remedy="Leave out distortion=True; guided.infer.distortion(...) tells what a mask would take.",
                )
            if self.grammar is None:
                raise UnsupportedError(
                    "a sampler and a search need a grammar or a potential",
                    remedy="Leave out sampler= and search=, or pass one.",
                )
            return
        if self.distortion and self.grammar is None:
            raise UnsupportedError(
                "distortion=True tells what a grammar takes, and there is none",
                where="guided.generate",
                remedy="Pass a grammar, or leave it out.",
            )
        for option in OWN_OPTIONS:
            if option in self.options:
                raise UnsupportedError(
                    f"the option {option} cannot be combined with guided.generate",
                    remedy="Call model.generate with a GuidedLogitsProcessor instead.",
                )

    def _run(self, request: Request) -> list[Any]:
        """The results of the runner that the arguments ask for, one or several for each prompt, in order."""
        if self._denoiser is not None:
            from guided.hf.front.denoising import run_denoising

            return list(run_denoising(request, self._denoiser))
        if self._searches:
            from guided.hf.front.searching import run_searches

            return list(run_searches(request, self.search, self.must_include, self.must_exclude))
        if self.sampler is not None:
            from guided.hf.front.sampling import run_samplers

            shown = bool(self.options.get("show_progress", False))
            return list(run_samplers(request, self.sampler, show_progress=shown))
        if request.draft is not None or request.stack:
            from guided.hf.front.own_loop import run_own_loop

            results = run_own_loop(request)
        else:
            results = run_transformers(request)
        return with_distortions(request, results) if self.distortion else list(results)
