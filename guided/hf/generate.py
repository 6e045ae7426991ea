"""`guided.generate`: prompt and grammar to text, a thin layer over the `generate` of transformers.

With ``sampler=`` the texts are drawn by `guided.infer` instead, with ``search=`` compared by `guided.search`;
`guided.hf.sampling` and `guided.hf.searching` do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import torch

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.hf.constraints import constraints_for, named_special_ids
from guided.hf.encoding import Conversation, check_room, encode_prompt, is_conversation, pad_id, padded
from guided.hf.joint import Joint, joined_as_asked
from guided.hf.loading import LoadedModel, end_ids
from guided.hf.processor import GuidedLogitsProcessor

if TYPE_CHECKING:
    import numpy as np

    from guided.draft import Drafting, Statistics
    from guided.hf.sampling import Sampled, Sampler
    from guided.hf.searching import Phrase, Search, Searched
    from guided.infer import Potential
    from guided.steer import Stack, Steering

__all__ = ["Generation", "generate"]

OWN_OPTIONS = ("input_ids", "inputs", "inputs_embeds", "attention_mask", "decoder_input_ids", "max_length")
"""Options of transformers' `generate` that this function sets, or whose meaning it would have to guess."""


@dataclass(frozen=True)
class Generation:
    """One generated text."""

    text: str
    """The generated text alone: no prompt, and of special tokens the names of those that the grammar asks for."""
    token_ids: tuple[int, ...]
    """Its tokens, without the end-of-text id and padding."""
    finished: bool
    """True when this is a whole text of the grammar; False if another stopping criterion cut it."""
    drafts: Statistics | None = None
    """What the whole call cost in which this text was made, and what drafts gave; None without a draft."""


@overload
def generate(
    model: Any,
    prompt: str,
    grammar: Grammar | Constrains,
    *,
    sampler: None = None,
    draft: Drafting | None = None,
    n: None = None,
    seed: int | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    **options: Any,
) -> Generation: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Grammar | Constrains | Sequence[Grammar | Constrains],
    *,
    sampler: None = None,
    draft: Drafting | None = None,
    n: int | None = None,
    seed: int | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    **options: Any,
) -> Generation | list[Generation]: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Grammar | Constrains | Potential[Any] | Sequence[Grammar | Constrains | Potential[Any]],
    *,
    sampler: Sampler,
    draft: Drafting | None = None,
    n: int | None = None,
    seed: int | np.random.Generator | None = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    show_progress: bool = False,
    **options: Any,
) -> Sampled | list[Sampled]: ...


@overload
def generate(
    model: Any,
    prompt: str | Sequence[int] | Sequence[str] | Sequence[Conversation] | Conversation,
    grammar: Grammar | Constrains | Sequence[Grammar | Constrains],
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
    **options: Any,
) -> Searched | list[Searched]: ...


def generate(
    model: Any,
    prompt: Any,
    grammar: Any,
    *,
    sampler: Sampler | None = None,
    search: Search | None = None,
    must_include: str | Sequence[Phrase] = (),
    must_exclude: str | Sequence[Phrase] = (),
    draft: Drafting | None = None,
    n: int | None = None,
    seed: Any = None,
    steer: Steering | None = None,
    tokenizer: Any = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    heal: bool = False,
    canonical: bool = False,
    **options: Any,
) -> Any:
    """Generate text that is in the grammar's language, whole, in at most ``max_new_tokens`` tokens.

    ``model`` is a `LoadedModel` (`guided.hf.load`), or a model of transformers with its ``tokenizer``.  ``prompt`` is a
    text or a conversation, or a list of either; ``grammar`` one for all prompts or one for each.  ``chat`` puts texts
    through the model's chat template as a user's message.  ``options`` go to transformers' `generate`: ``do_sample``,
    ``num_beams``, ``assistant_model``, ``logits_processor`` (applied before the grammar) and the rest.  ``steer`` are
    steerers of `guided.steer`, or a `Stack`; they speak after the processors and before the grammar
    (``same_tokenizer=True`` is that of `Stack.over`).  With `EntropyAdaptive` first, which is not lossless, the model
    only runs where the small one is unsure.

    ``heal`` takes back the end of each prompt as far as its tokens depend on what follows, and generates it again (it
    is not in the result's text, and its tokens count).  ``canonical`` allows only tokens that the tokenizer itself
    would make of prompt and text; see `guided.heal` and `guided.canonical` for the tokenizers that they know.

    Returns one `Generation` for one prompt, else a list of them, in order; with ``n`` texts drawn for each prompt
    (transformers' ``num_return_sequences``) always a list.  ``seed`` seeds the draws of this call alone.  Raises
    `LimitError` when no text fits the budget.

    **With a sampler** of `guided.infer` (``sampler=guided.infer.smc``, or a `functools.partial` of one), texts are
    drawn from the model's distribution *given* the grammar, which masking does not do, and what the sampler returns is
    returned: a `Population` or `Samples` (`exact`: an `Enumeration`, `best_of_n`: a `Ranked`) for one prompt, else a
    list.  ``n`` is its number of particles or samples, ``grammar`` may be any `Potential`, ``options`` go to it
    (``critic``, ``save``, ``progress``, ...), but for ``temperature``, ``top_k``, ``top_p`` and ``min_p``, which come
    after steering and before the grammar; ``show_progress`` shows a bar on a terminal.  ``model`` may then be any
    `guided.lm.LanguageModel`, and is best passed as one where `generate` is called many times.

    **With a draft** (``draft=guided.draft.auto()``, or any `guided.draft.Drafting`) several tokens come of one pass of
    the model, and nothing else changes: greedily the same tokens, and drawn ones by the same law, steering, temperature
    and truncation included; each result's ``drafts`` say what was saved.  Keep one draft for texts that are alike: it
    learns.  It goes with ``sampler=guided.infer.smc`` and ``importance`` as well; what it does not go with is refused.

    **With a search** of `guided.search` (``search=guided.search.beam_search``, or a `functools.partial` of one), whole
    texts are compared, and what the search returns is returned: a `Found` (`diverse_beam_search`: a `DiverseFound`,
    `lattice_search`: a `LatticeFound`) for one prompt, else a list.  ``n`` is its ``n_best``; model, grammar and
    options are as with a sampler; nothing is drawn but by `block_search`, which alone takes the ``seed``.
    ``must_include`` are texts that must occur (a tuple of texts: one of them), for `dynamic_beam_search`, which is also
    the search where none is given, `grid_beam_search` and `neurologic_search`; ``must_exclude`` texts that must not,
    for `neurologic_search`.
    """
    searches = bool(search is not None or must_include or must_exclude)
    if draft is not None:
        from guided.hf.speculation import check_combination, check_draft

        draft = check_draft(draft)
        check_combination(sampler, searches, options)
    if searches and sampler is not None:
        raise UnsupportedError(
            "a sampler draws texts and a search compares them",
            remedy="Leave out sampler=, or search=, must_include= and must_exclude=.",
        )
    if searches:
        from guided.hf.searching import search_texts

        if heal:
            raise UnsupportedError("a search cannot take back the prompt's end", remedy="Leave out heal=True.")
        options.pop("show_progress", None)
        return search_texts(
            model,
            prompt,
            grammar,
            search,
            tokenizer=tokenizer,
            n=n,
            seed=seed,
            steer=steer,
            max_new_tokens=max_new_tokens,
            chat=chat,
            canonical=canonical,
            must_include=must_include,
            must_exclude=must_exclude,
            **options,
        )
    if sampler is not None:
        from guided.hf.sampling import sample

        if heal:
            raise UnsupportedError("a sampler cannot take back the prompt's end", remedy="Leave out heal=True.")
        if draft is not None:
            options["draft"] = draft
        return sample(
            model,
            prompt,
            grammar,
            sampler,
            tokenizer=tokenizer,
            n=n,
            seed=seed,
            steer=steer,
            max_new_tokens=max_new_tokens,
            chat=chat,
            canonical=canonical,
            **options,
        )
    options.pop("show_progress", None)
    same_tokenizer = bool(options.pop("same_tokenizer", False))
    if n is not None:
        options["num_return_sequences"] = n
        if n > 1 and "num_beams" not in options:
            options.setdefault("do_sample", True)
    if isinstance(model, LoadedModel):
        tokenizer = model.tokenizer if tokenizer is None else tokenizer
        model = model.model
    _check_arguments(model, tokenizer, options)
    single = isinstance(prompt, str) or is_conversation(prompt)
    prompts: Sequence[Any] = [prompt] if single else list(prompt)
    if not prompts:
        raise GuidedError("no prompt given", remedy="Pass a text, or a list of at least one.")
    constraints = constraints_for(grammar, tokenizer, end_ids(model, tokenizer))
    if len(constraints) not in (1, len(prompts)):
        raise GuidedError(
            f"{len(constraints)} grammars for {len(prompts)} prompts",
            remedy="Pass one grammar, or one for each prompt.",
        )
    encoder_decoder = bool(model.config.is_encoder_decoder)
    encoded = [encode_prompt(item, tokenizer, chat) for item in prompts]
    joints = [Joint(item, constraints[i % len(constraints)]) for i, item in enumerate(encoded)]
    if heal or canonical:
        joints = [joined_as_asked(joint, tokenizer, heal, canonical, encoder_decoder) for joint in joints]
        encoded, constraints = [list(joint.ids) for joint in joints], tuple(joint.constraint for joint in joints)
    processor = GuidedLogitsProcessor(constraints, max_new_tokens=max_new_tokens)
    if not encoder_decoder:
        check_room(model, max(map(len, encoded)), max_new_tokens)
    pad = pad_id(model, tokenizer, constraints[0].vocabulary.eos_ids)
    input_ids, attention_mask = padded(encoded, pad, left=not encoder_decoder)
    each_prompt = [constraints[i % len(constraints)] for i in range(len(prompts))]
    stack = None if steer is None else _stack(steer)
    drafted = None
    if draft is not None:
        from guided.hf.speculation import draft_generate

        drafted = options["custom_generate"] = draft_generate(
            each_prompt, draft, seed=seed, steer=stack, same_tokenizer=same_tokenizer
        )
    elif stack is not None and stack.adaptive is not None:
        from guided.hf.speculation import DraftGenerate, check_loop_options

        check_loop_options(options, "EntropyAdaptive")
        options["custom_generate"] = DraftGenerate(each_prompt, None, seed, stack, same_tokenizer)
    else:
        steering = [] if stack is None else _steering(stack, model, tokenizer, processor, pad, encoded, same_tokenizer)
        options["logits_processor"] = [*(options.get("logits_processor") or ()), *steering, processor]
    if "stop_strings" in options or "assistant_tokenizer" in options:
        options["tokenizer"] = tokenizer
    with _seeded(seed):
        out = model.generate(
            input_ids=input_ids.to(model.device),
            attention_mask=attention_mask.to(model.device),
            max_new_tokens=max_new_tokens,
            eos_token_id=list(constraints[0].vocabulary.eos_ids) or None,
            pad_token_id=pad,
            **options,
        )
    sequences = out if isinstance(out, torch.Tensor) else out.sequences
    # The decoder of an encoder-decoder model begins with its one start token.
    rows = sequences[:, 1 if encoder_decoder else input_ids.shape[1] :].tolist()
    each = len(rows) // len(constraints)
    of_prompt = len(rows) // len(joints)
    counts = None if drafted is None else drafted.statistics
    results = [_result(processor, row, i // each, joints[i // of_prompt].removed, counts) for i, row in enumerate(rows)]
    return results[0] if single and "num_return_sequences" not in options else results


def _check_arguments(model: Any, tokenizer: Any, options: Mapping[str, Any]) -> None:
    if isinstance(model, str):
        raise TypeError("model is a name: load it once with guided.hf.load(name) and pass the result")
    if tokenizer is None:
        raise GuidedError(
            "a model of transformers comes without its tokenizer",
            remedy="Pass tokenizer=, or load both with guided.hf.load(name).",
        )
    for name in OWN_OPTIONS:
        if name in options:
            raise UnsupportedError(
                f"the option {name} cannot be combined with guided.generate",
                remedy="Call model.generate with a GuidedLogitsProcessor instead.",
            )


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Seeds torch for what is inside, and nothing after it."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _stack(steer: Steering) -> Stack:
    from guided.hf.questions import stack_of

    return stack_of(steer)


def _steering(
    stack: Stack,
    model: Any,
    tokenizer: Any,
    processor: GuidedLogitsProcessor,
    pad: int,
    encoded: Sequence[Sequence[int]],
    same_tokenizer: bool,
) -> list[Any]:
    """The grammar, so that candidates are of allowed tokens, and the steering; the grammar's own turn comes after."""
    from guided.hf.language_model import TransformersModel
    from guided.hf.steering import SteeringLogitsProcessor

    if not stack.steerers:
        return []
    # Equal lengths have no padding, and a prompt may begin with the padding's id itself.
    padding = pad if len({len(ids) for ids in encoded}) > 1 else None
    ready = TransformersModel(model, tokenizer)
    steering = SteeringLogitsProcessor(stack, ready, pad_token_id=padding, same_tokenizer=same_tokenizer)
    return [processor, steering]


def _result(
    processor: GuidedLogitsProcessor, ids: Sequence[int], index: int, removed: bytes, drafts: Statistics | None
) -> Generation:
    vocabulary = processor.vocabulary
    ends = [i for i, token in enumerate(ids) if token in vocabulary.eos_ids]
    tokens = ids[: ends[0]] if ends else ids
    named = named_special_ids(processor.constraints[index])
    known = [token for token in tokens if 0 <= token < vocabulary.size]
    data = b"".join(named.get(token, "").encode() or vocabulary.token_bytes(token) or b"" for token in known)
    # A text that was cut from outside may end within a character, or within what was taken back from the prompt.
    text = data[len(removed) :].decode("utf-8", errors="replace")
    return Generation(text, tuple(tokens), processor.is_whole(tokens, index), drafts)
