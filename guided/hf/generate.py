"""`guided.generate`: prompt and grammar to text, a thin layer over the `generate` of transformers.

With ``sampler=`` the texts are drawn by `guided.infer` instead, with ``search=`` compared by `guided.search`;
`guided.hf.sampling` and `guided.hf.searching` do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import torch

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, TextError, UnsupportedError
from guided.grammar.given import reader_of
from guided.grammar.ir import Grammar
from guided.hf.constraints import constraints_for, is_whole, named_special_ids
from guided.hf.encoding import Conversation, check_room, encode_prompt, is_conversation, pad_id, padded
from guided.hf.joint import Joint, joined_as_asked
from guided.hf.language_model import TransformersModel, check_tokenizer, wrapped
from guided.hf.loading import LoadedModel, end_ids
from guided.hf.processor import GuidedLogitsProcessor
from guided.hf.questions import stack_of
from guided.hf.streaming import ends_streamer, with_stop_strings
from guided.steer import Stack
from guided.vocab import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    import numpy as np

    from guided.draft import Statistics
    from guided.hf.sampling import Sampled, Sampler
    from guided.hf.searching import Phrase, Search, Searched
    from guided.hf.speculation import Draft
    from guided.hf.steering import SteeringLogitsProcessor
    from guided.steer import Steering

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
    read: Callable[[str], Any] = field(default=str, repr=False, compare=False)
    """From a whole text to `value`."""

    @cached_property
    def value(self) -> Any:
        """What the text says: an object of the type that was the grammar, the data of a JSON Schema, else the text.

        Raises what the type's validation raises where it asks for more than its schema says, and `TextError` for a text
        that was cut.
        """
        if not self.finished:
            raise TextError("the text was cut before it was whole", remedy="Look at `text`, or raise max_new_tokens.")
        return self.read(self.text)


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
    of it; with beams, assistants, a streamer, stopping criteria and processors that are not transformers' own, which
    need its own loop, a second time where steerers ask for its layers, hidden states or another prompt.  With
    `EntropyAdaptive` first, which is not lossless, the model only runs where the small one is unsure.

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

    **With a draft** (``draft=True`` for `guided.draft.auto`, ``"lookup"`` for `guided.draft.PromptLookup`, a smaller
    model of the same tokenizer, or any `guided.draft.Drafting`) several tokens come of one pass of the model, and
    nothing else changes: greedily the same tokens, and drawn ones by the same law, steering, temperature and truncation
    included; each result's ``drafts`` say what was saved. Keep one draft for texts that are alike: it learns. It goes
    with ``sampler=guided.infer.smc`` and ``importance`` as well; what it does not go with is refused.

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
        from guided.hf.speculation import check_combination, drafting_for

        draft = drafting_for(draft, model, tokenizer, greedy=sampler is None and not options.get("do_sample"))
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
    if isinstance(model, (LoadedModel, TransformersModel)):
        tokenizer = model.tokenizer if tokenizer is None else tokenizer
        model = model.model
    _check_arguments(model, tokenizer, options)
    single = isinstance(prompt, str) or is_conversation(prompt)
    prompts: Sequence[Any] = [prompt] if single else list(prompt)
    if not prompts:
        raise GuidedError("no prompt given", remedy="Pass a text, or a list of at least one.")
    ends = end_ids(model, tokenizer)
    each_prompt, readers = _constraints(grammar, len(prompts), tokenizer, ends)
    encoder_decoder = bool(model.config.is_encoder_decoder)
    encoded = [encode_prompt(item, tokenizer, chat) for item in prompts]
    removed = [b""] * len(prompts)
    if heal or canonical:
        for i, constraint in enumerate(each_prompt):
            if constraint is None:
                raise UnsupportedError("heal= and canonical= need a grammar", remedy="Leave them out, or pass one.")
            joint = joined_as_asked(Joint(encoded[i], constraint), tokenizer, heal, canonical, encoder_decoder)
            encoded[i], each_prompt[i], removed[i] = list(joint.ids), joint.constraint, joint.removed
    if not encoder_decoder:
        check_room(model, max(map(len, encoded)), max_new_tokens)
    constraints = [constraint for constraint in each_prompt if constraint is not None]
    vocabulary = constraints[0].vocabulary if constraints else vocabulary_of(tokenizer, ends)
    pad = pad_id(model, tokenizer, vocabulary.eos_ids)
    input_ids, attention_mask = padded(encoded, pad, left=not encoder_decoder)
    options = with_stop_strings(options, tokenizer)
    if "assistant_tokenizer" in options:
        options["tokenizer"] = tokenizer

    def run(**more: Any) -> Any:
        with _seeded(seed):
            return model.generate(
                input_ids=input_ids.to(model.device),
                attention_mask=attention_mask.to(model.device),
                max_new_tokens=max_new_tokens,
                eos_token_id=list(vocabulary.eos_ids) or None,
                pad_token_id=pad,
                **{**options, **more},
            )

    stack = Stack() if steer is None else stack_of(steer)
    given = list(options.pop("logits_processor", None) or ())
    drafted = None

    def masking() -> list[GuidedLogitsProcessor]:
        return [GuidedLogitsProcessor(constraints, max_new_tokens=max_new_tokens)] if constraints else []

    if draft is not None or stack:
        from guided.hf.speculation import DraftGenerate, check_loop_options, draft_generate

        loop_seed = int(torch.randint(1 << 62, ())) if seed is None else seed
        if draft is not None:
            loop = drafted = draft_generate(
                each_prompt, draft, seed=loop_seed, steer=stack, same_tokenizer=same_tokenizer
            )
        else:
            loop = DraftGenerate(each_prompt, None, loop_seed, stack, same_tokenizer)
        try:
            check_loop_options(options, "EntropyAdaptive" if stack.adaptive else "drafts and steering")
            out = run(custom_generate=loop, logits_processor=given or None)
        except UnsupportedError:
            # Said before any pass, of what needs transformers' own loop, where steering is a processor.
            if draft is not None or stack.adaptive is not None:
                raise
            if options.get("streamer") is not None:
                options["streamer"].begin_again()
            steering = _steering(stack, model, tokenizer, pad, encoded, same_tokenizer)
            out = run(logits_processor=[*given, *masking(), steering])
    else:
        out = run(logits_processor=[*given, *masking()] or None)
    sequences = out if isinstance(out, torch.Tensor) else out.sequences
    # The decoder of an encoder-decoder model begins with its one start token.
    rows = sequences[:, 1 if encoder_decoder else input_ids.shape[1] :].tolist()
    each = len(rows) // len(prompts)
    counts = None if drafted is None else drafted.statistics
    results = [
        _result(
            vocabulary,
            each_prompt[i // each],
            _unpadded(row, pad, vocabulary),
            removed[i // each],
            counts,
            readers[i // each],
        )
        for i, row in enumerate(rows)
    ]
    return results[0] if single and "num_return_sequences" not in options else results


def _constraints(
    grammar: Any, n: int, tokenizer: Any, ends: list[int] | None
) -> tuple[list[Constrains | None], list[Callable[[str], Any]]]:
    """For each of ``n`` prompts its constraint, all None without a grammar, and how its text is read back."""
    if grammar is None:
        return [None] * n, [str] * n
    given = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    compiled = constraints_for(given, tokenizer, ends)
    if len(compiled) not in (1, n):
        raise GuidedError(
            f"{len(compiled)} grammars for {n} prompts",
            remedy="Pass one grammar, or one for each prompt.",
        )
    times = n // len(compiled)
    return [*compiled] * times, [reader_of(each) for each in given] * times


def _check_arguments(model: Any, tokenizer: Any, options: Mapping[str, Any]) -> None:
    check_tokenizer(model, tokenizer)
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


def _steering(
    stack: Stack, model: Any, tokenizer: Any, pad: int, encoded: Sequence[Sequence[int]], same_tokenizer: bool
) -> SteeringLogitsProcessor:
    """Steering as a processor: after the grammar's, so that candidates are of allowed tokens, which masks once more."""
    from guided.hf.steering import SteeringLogitsProcessor

    # Equal lengths have no padding, and a prompt may begin with the padding's id itself.
    padding = pad if len({len(ids) for ids in encoded}) > 1 else None
    ready = wrapped(model, tokenizer)
    return SteeringLogitsProcessor(stack, ready, pad_token_id=padding, same_tokenizer=same_tokenizer)


def _unpadded(ids: list[int], pad: int, vocabulary: Vocabulary) -> list[int]:
    """The tokens of a row that was cut before others ended; padding that is an end or text as well is kept."""
    if pad in vocabulary.eos_ids or (pad < vocabulary.size and vocabulary.token_bytes(pad) is not None):
        return ids
    end = len(ids)
    while end and ids[end - 1] == pad:
        end -= 1
    return ids[:end]


def _result(
    vocabulary: Vocabulary,
    constraint: Constrains | None,
    ids: Sequence[int],
    removed: bytes,
    drafts: Statistics | None,
    read: Callable[[str], Any],
) -> Generation:
    ends = [i for i, token in enumerate(ids) if token in vocabulary.eos_ids]
    tokens = ids[: ends[0]] if ends else ids
    named = {} if constraint is None else named_special_ids(constraint)
    known = [token for token in tokens if 0 <= token < vocabulary.size]
    data = b"".join(named.get(token, "").encode() or vocabulary.token_bytes(token) or b"" for token in known)
    # A text that was cut from outside may end within a character, or within what was taken back from the prompt.
    text = data[len(removed) :].decode("utf-8", errors="replace")
    finished = bool(ends) if constraint is None else is_whole(constraint, tokens)
    return Generation(text, tuple(tokens), finished, drafts, read)
