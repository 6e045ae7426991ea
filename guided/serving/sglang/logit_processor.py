"""`GuidedLogitProcessor`: a grammar in a single request, of a server that runs another grammar backend, or none.

SGLang 0.5.23 makes a new object for each pass, from what the client sent; so what is kept between passes is the
module's.  A server that overlaps passes asks before it knows the last token, and one that drafts asks about several
tokens with the same ids: in both, no mask could be right, and the request is aborted with a message.
"""

from __future__ import annotations

from collections import OrderedDict
from http import HTTPStatus
from typing import Any

import numpy as np
import torch
from sglang.srt.runtime_context import get_schedule
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

from guided.constraint.compile import compile as compile_grammar
from guided.constraint.prefixes import PrefixStates
from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.serving.requests import Request, RequestKind
from guided.serving.sglang.asked import asked_json, asked_tag
from guided.serving.sglang.grammar import apply_masks
from guided.serving.vocabularies import Vocabularies
from guided.tokenset import n_words, of_ids

__all__ = ["GuidedLogitProcessor"]

KEPT = 64
"""Grammars kept, each with the states of the texts under way."""

MEMO_BYTES = 1 << 20
"""Of each grammar's states."""

_TOKENIZERS: OrderedDict[int, tuple[object, Vocabularies]] = OrderedDict()
_STATES: OrderedDict[tuple[int, Request, tuple[int, ...] | None], PrefixStates] = OrderedDict()

KINDS = ("json_schema", "regex", "ebnf", "structural_tag")


class GuidedLogitProcessor(CustomLogitProcessor):
    """Keeps requests in the language of their parameter ``guided``, on servers where this package is installed::

        requests.post(url, json={
            "text": "A number: ",
            "custom_logit_processor": GuidedLogitProcessor.to_str(),
            "sampling_params": {"custom_params": {"guided": {"regex": "[0-9]+(?<=7)"}}},
        })

    The parameter names one of ``json_schema``, ``regex``, ``ebnf`` and ``structural_tag``, with its text.  The server
    takes ``--enable-custom-logit-processor --disable-overlap-schedule``.  Texts are steered to their end within the
    request's ``max_new_tokens``.
    """  # fmt: skip

    def __call__(
        self, logits: torch.Tensor, custom_param_list: list[dict[str, Any] | None] | None = None
    ) -> torch.Tensor:
        """``logits`` (``[n, width]``) with ``-inf``, in place, for what the requests' grammars forbid."""
        width = logits.shape[1]
        masks = np.full((len(logits), n_words(width)), 0xFFFFFFFF, np.uint32)
        # References to requests are proxies, each its own.
        named = [params["__req__"].rid for params in custom_param_list or [] if params and "guided" in params]
        drafted = len(named) != len(set(named))
        for row, params in zip(masks, custom_param_list or [], strict=False):
            if params and "guided" in params:
                _fill(row, width, params["guided"], params["__req__"], drafted)
        apply_masks(logits, torch.from_numpy(masks.view(np.int32)))
        return logits


def _fill(row: Any, width: int, asked: Any, request: Any, drafted: bool) -> None:
    """The mask of a request; an end of text, and the request is aborted, where there is none."""
    try:
        if drafted or not get_schedule().disable_overlap_schedule:
            raise UnsupportedError(
                "the ids of a request are not known when its logits are",
                remedy="Start the server with --disable-overlap-schedule and without drafts,"
                " or with --grammar-backend guided.",
            )
        states = _states(asked, request.tokenizer, _ends(request))
        constraint, size = states.constraint, states.constraint.vocabulary.n_words
        state = states.after(np.asarray(request.output_ids, np.int64))
        if not state:
            raise GuidedError("the text so far is not of the grammar", remedy="Leave out other processors.")
        most = request.sampling_params.max_new_tokens
        own = np.empty(size, np.uint32)
        if most is None or state == constraint.end:
            constraint.fill_mask(state, own)
        else:
            constraint.fill_budget_mask(state, own, most - len(request.output_ids))
        row[:] = 0
        row[:size] = own[: len(row)]
    except GuidedError as error:
        from sglang.srt.managers.schedule_batch import FINISH_ABORT

        request.to_finish = FINISH_ABORT(str(error), HTTPStatus.BAD_REQUEST, "BadRequestError")
        ends = [token for token in _ends(request) or [request.tokenizer.eos_token_id] if token < width]
        row[:] = of_ids(ends, len(row))


def _ends(request: Any) -> tuple[int, ...] | None:
    ids = request.eos_token_ids
    return tuple(sorted(ids)) if ids else None


def _states(asked: Any, tokenizer: Any, ends: tuple[int, ...] | None) -> PrefixStates:
    """The states of texts of a grammar; compiled in the pass, once for each that is asked for."""
    if not isinstance(asked, dict) or len(asked) != 1 or next(iter(asked)) not in KINDS:
        raise GrammarError(f"guided is {asked!r:.60}", where="custom_params", remedy=f"Name one of {', '.join(KINDS)}.")
    ((kind, text),) = asked.items()
    if kind == "json_schema":
        request = asked_json(text, None)
    elif kind == "structural_tag":
        request = asked_tag(text, None)
    else:
        request = Request(RequestKind.REGEX if kind == "regex" else RequestKind.GRAMMAR, text)
    key = (id(tokenizer), request, ends)
    found = _STATES.get(key)
    if found is None:
        # The tokenizer is held, so that no other can have its identity.
        if id(tokenizer) not in _TOKENIZERS:
            _TOKENIZERS[id(tokenizer)] = tokenizer, Vocabularies(tokenizer)
        vocabulary = _TOKENIZERS[id(tokenizer)][1].ending_with(ends)
        found = _STATES[key] = PrefixStates(compile_grammar(request.grammar(vocabulary), vocabulary), MEMO_BYTES)
        while len(_STATES) > KEPT:
            _STATES.popitem(last=False)
    return found
