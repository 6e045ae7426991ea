"""`Compiler`: the constraints of an engine's requests, compiled once for all that ask for the same.

Engines compile more often than they are asked: vLLM once in its front end, to refuse a request, once in its engine
core, another process, to mask, and in beam search anew for each beam and token.  So what was asked for is remembered
by its text.
"""

from __future__ import annotations

import copy
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import fields

import numpy as np

import guided
from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.serving import metrics
from guided.serving.named import make
from guided.serving.requests import Request, RequestKind
from guided.serving.vocabularies import Vocabularies

__all__ = ["LIMITS", "WARM", "Compiler", "compiler_for", "limits_of", "read_through"]

KEPT = 64
"""Constraints kept for requests that come again, as many as `guided.compile` keeps; running requests hold their own."""

TOKENIZERS = 2
"""Compilers kept; a process serves one tokenizer, and a test may load a second."""


class Compiler:
    """Constraints of requests over one tokenizer.  Safe to share between threads.

    ``size`` is the width of the model's logits.

    >>> import guided.hf
    >>> from guided.serving import Compiler, Request, RequestKind
    >>> compiler = Compiler(guided.hf.load().tokenizer)
    >>> request = Request(RequestKind.CHOICE, '["yes", "no"]')
    >>> constraint = compiler.constraint(request)
    >>> constraint.is_accepting(constraint.advance_bytes(constraint.start, b"yes"))
    True
    >>> constraint is compiler.constraint(request)  # compiled once
    True
    """

    def __init__(self, tokenizer: object, size: int | None = None, limits: guided.Limits | None = None) -> None:
        self.vocabularies = Vocabularies(tokenizer, size)
        self.limits = limits
        self._made: OrderedDict[tuple[Request, tuple[int, ...] | None], Constrains | LimitError] = OrderedDict()
        self._lock = threading.Lock()

    def constraint(self, request: Request, ends: Iterable[int] | None = None, prompt: str | None = None) -> Constrains:
        """The constraint of a request in the vocabulary where ``ends`` end a text; None: the tokenizer's own.

        ``prompt`` is the text before it: what is made of that (`guided.serving.named`) is made for each request.

        Raises `guided.GuidedError` for what cannot be enforced.  What came to a limit of work is remembered, as it took
        the most and is often asked for again.
        """
        stops = tuple(sorted(set(ends))) if ends else None
        if self.awaits_prompt(request):
            return make(request.text, self.vocabularies.ending_with(stops), prompt)
        key = (request, stops)
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                self._made.move_to_end(key)
        if isinstance(found, LimitError):
            metrics.refused(request.kind.value, type(found).__name__)
            raise copy.copy(found)
        if found is not None:
            metrics.found_again()
            return found
        began = time.perf_counter()
        try:
            vocabulary = self.vocabularies.ending_with(stops)
            found = guided.compile(request.grammar(vocabulary), vocabulary, limits=self.limits)
        except GuidedError as error:
            metrics.refused(request.kind.value, type(error).__name__)
            if isinstance(error, LimitError):
                # Without its traceback, which holds all that was made.
                self._keep(key, copy.copy(error))
            raise
        metrics.compiled(request.kind.value, time.perf_counter() - began)
        self._keep(key, found)
        return found

    def awaits_prompt(self, request: Request) -> bool:
        """See `Request.is_made_of_prompts`: a name that there is not is refused, and counted, here."""
        try:
            return request.is_made_of_prompts
        except GuidedError as error:
            metrics.refused(request.kind.value, type(error).__name__)
            raise

    def _keep(self, key: tuple[Request, tuple[int, ...] | None], made: Constrains | LimitError) -> None:
        with self._lock:
            self._made[key] = made
            while len(self._made) > KEPT:
                self._made.popitem(last=False)

    def warm(self) -> None:
        """Read the vocabulary and load the compiled kernels, so that the first request need not wait for them."""
        from guided.kernels.loading import load_compiled

        load_compiled()
        read_through(self.constraint(WARM))


WARM = Request(RequestKind.JSON_SCHEMA, '{"enum": [{"a": [1, true], "b": "c"}]}')
"""What is read through before the first request."""


def read_through(constraint: Constrains) -> None:
    """Make the masks along one text of a constraint that has no endless ones."""
    state = constraint.start
    row = np.empty(constraint.vocabulary.n_words, np.uint32)
    while state != constraint.end:
        constraint.fill_mask(state, row)
        state = constraint.advance(state, tokenset.ids(row)[-1].item())


LIMITS = "GUIDED_LIMITS"
"""The environment variable with a server's own limits, as ``step_work=10000000,steps=100000``."""


def limits_of(text: str) -> guided.Limits:
    """The limits that an operator wrote; raises `guided.GuidedError` for what is none.

    >>> limits_of("step_work=10_000_000").step_work
    10000000
    """
    names = {field.name for field in fields(guided.Limits)}
    found = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, _, number = each.partition("=")
        if name not in names or not re.fullmatch(r"[0-9]+(_[0-9]+)*", number):
            raise guided.GuidedError(
                f"{each!r} is no limit",
                where=LIMITS,
                remedy=f"Write name=number, separated by commas; the names are {', '.join(sorted(names))}.",
            )
        found[name] = int(number)
    return guided.Limits(**found)


_compilers: OrderedDict[tuple[int, int | None], tuple[object, Compiler]] = OrderedDict()
_lock = threading.Lock()


def compiler_for(tokenizer: object, size: int | None) -> Compiler:
    """The one compiler of a tokenizer in this process, with the limits of the environment's ``GUIDED_LIMITS``."""
    key = (id(tokenizer), size)
    with _lock:
        # The tokenizer is held, so that no other can have its identity.
        found = _compilers.pop(key, None)
        if found is None:
            found = tokenizer, Compiler(tokenizer, size, limits_of(os.environ.get(LIMITS, "")))
        _compilers[key] = found
        while len(_compilers) > TOKENIZERS:
            _compilers.popitem(last=False)
    return found[1]
