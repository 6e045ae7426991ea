"""`guided.generate`: prompt and grammar to text, a thin layer over the `generate` of transformers.

Its arguments are resolved once (`guided.hf.front.arguments`), to a `guided.hf.front.request.Request`, which one of four
runners takes, each a module of `guided.hf.front`: `run_transformers`, `run_own_loop` (drafts and steering),
`run_samplers`, `run_searches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from guided.constraint.protocol import Constrains
from guided.grammar.ir import Grammar
from guided.hf.front.arguments import Arguments
from guided.hf.front.encoding import Conversation
from guided.hf.front.generation import Generation
from guided.hf.front.streaming import ends_streamer

if TYPE_CHECKING:
    import numpy as np

    from guided.hf.front.draft_argument import Draft
    from guided.hf.front.sampling import Sampled, Sampler
    from guided.hf.front.searching import Phrase, Search, Searched
    from guided.hf.front.thinking import Think
    from guided.steer import Steering

__all__ = ["Generation", "generate"]


@overload
def generate(
    model: Any,
    prompt: str,
    grammar: Grammar | Constrains | type | Mapping[str, Any] | Callable[..., Any] | None = None,
    *,
    sampler: None = None,
    draft: Draft | None = None,
    n: None = None,
    seed: int | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    think: Think | None = None,
    distortion: bool = False,
    **options: Any,
) -> Generation: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Any = None,
    *,
    sampler: None = None,
    draft: Draft | None = None,
    n: int | None = None,
    seed: int | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    think: Think | None = None,
    distortion: bool = False,
    **options: Any,
) -> Generation | list[Generation]: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Any,
    *,
    sampler: Sampler,
    draft: Draft | None = None,
    n: int | None = None,
    seed: int | np.random.Generator | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    think: Think | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Sampled | list[Sampled]: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Any,
    *,
    search: Search | None = None,
    must_include: str | Sequence[Phrase] = (),
    must_exclude: str | Sequence[Phrase] = (),
    n: int | None = None,
    seed: int | np.random.Generator | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    think: Think | None = None,
    **options: Any,
) -> Searched | list[Searched]: ...


@ends_streamer
def generate(
    model: Any,
    prompt: Any,
    grammar: Any = None,
    *,
    sampler: Sampler | None = None,
    search: Search | None = None,
    must_include: str | Sequence[Phrase] = (),
    must_exclude: str | Sequence[Phrase] = (),
    draft: Draft | None = None,
    n: int | None = None,
    seed: Any = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    think: Think | None = None,
    distortion: bool = False,
    **options: Any,
) -> Any:
    """Generate text that is in the grammar's language, whole, in at most ``max_new_tokens`` tokens.

    ``model`` is a `LoadedModel` (`guided.hf.load`), or a model of transformers with its ``tokenizer``.  ``prompt`` is a
    text or a conversation, or a list of either.  ``grammar`` is one for all prompts or a list of one for each: a
    `Grammar`, a compiled constraint, or what `guided.json_schema` takes but for texts: a type (`Generation.value` is
    then an object of it, validated by it), a function, a schema.  Without one the text is free.  ``chat`` puts texts
    through the model's chat template as a user's message.  ``options`` go to transformers' `generate`: ``do_sample``,
    ``num_beams``, ``assistant_model``, ``logits_processor`` and the rest; where what they forbid and the grammar leave
    no token, a `GuidedError` names them.

    ``steer`` are steerers of `guided.steer`, or a `Stack`; they speak after the processors and before the grammar
    (``same_tokenizer=True`` is that of `Stack.over`).  The model runs once a step for itself and all that steerers ask
    of it.  Beams, assistants, a streamer, stopping criteria and processors that are not transformers' own need its own
    loop: there it runs a second time where steerers ask for its layers, hidden states or another prompt.  With
    `EntropyAdaptive` first, which is not lossless, the model only runs where the small one is unsure.
    ``penalty_alpha`` with ``top_k``, ``dola_layers`` and ``guidance_scale``, as options or in a ``generation_config``,
    are steerers, too.

    ``heal`` takes back the end of each prompt as far as its tokens depend on what follows, and generates it again: it
    is not in the result's text, and its tokens count.  ``canonical`` allows only tokens that the tokenizer itself
    would make of prompt and text; see `guided.heal` and `guided.canonical` for the tokenizers that they know.
    ``distortion=True`` reads the text once more: `Generation.distortion` says what the grammar took from the model.

    Returns one `Generation` for one prompt, else a list in order; with ``n`` texts drawn for each prompt always a list.
    ``seed`` seeds the draws of this call alone.  Raises `LimitError` when no text fits the budget.

    **With a sampler** of `guided.infer` (``sampler=guided.infer.smc``, or a `functools.partial` of one), texts are
    drawn from the model's distribution *given* the grammar, which masking does not do.  What the sampler returns is
    returned: a `Population` or `Samples` (`exact`: an `Enumeration`, `best_of_n`: a `Ranked`) for one prompt, else a
    list.  ``n`` is its number of particles or samples, ``grammar`` may be any `Potential`, and ``options`` go to it
    (``critic``, ``save``, ``progress``, ...).  ``temperature`` and the cuts of `guided.lm.Truncation` come after
    steering and before the grammar; ``show_progress`` shows a bar on a terminal.  ``model`` may then be any
    `guided.lm.LanguageModel`, and is best passed as one where `generate` is called many times.

    **With a draft** several tokens come of one pass of the model, and nothing else changes: greedily the same tokens,
    and drawn ones by the same law, steering and truncation included.  ``draft=True`` is `guided.draft.auto`,
    ``"lookup"`` is `guided.draft.PromptLookup`; a smaller model of the same tokenizer is one, or a `Drafting`.  Each
    result's ``drafts`` say what was saved.  Keep one draft for texts that are alike: it learns.  It goes with
    ``sampler=guided.infer.smc`` and ``importance`` as well; what it does not go with is refused.

    **With a search** of `guided.search` (``search=guided.search.beam_search``, or a `functools.partial` of one), whole
    texts are compared, and what the search returns is returned: a `Found` (`diverse_beam_search`: a `DiverseFound`,
    `lattice_search`: a `LatticeFound`) for one prompt, else a list.  ``n`` is its ``n_best``; model, grammar and
    options are as with a sampler; nothing is drawn but by `block_search`, which alone takes the ``seed``.
    ``must_include`` are texts that must occur (a tuple: one of them), for `dynamic_beam_search` (the search where none
    is given), `grid_beam_search` and `neurologic_search`, which takes ``must_exclude``, too: texts that must not.

    **With** ``think="draft"`` the model first writes a text without the grammar, and then, with it, the one that is
    returned, behind that draft (`Generation.thought`).  `guided.hf.front.thinking.DraftFirst` says how many drafts (of
    the answers to several the one is kept of which the grammar took least), how long, and what comes between.

    >>> import guided.hf; generate(guided.hf.load(), "One, ", guided.regex("[0-9]+"), max_new_tokens=8).text.isdigit()
    True
    """
    return Arguments(
        model, prompt, grammar, sampler, search, must_include, must_exclude, draft, n, seed, steer, tokenizer,
        max_new_tokens, chat, heal, canonical, think, distortion, options,
    ).results()  # fmt: skip
