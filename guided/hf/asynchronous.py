"""`agenerate` and `astream`: `guided.generate` for programs with an event loop, and its text as it comes.

One thread makes the texts of all calls, one call after another: torch's generator of random numbers and a model's
buffers belong to the process.  For many texts at once there are `guided.hf.generate_batch` and `guided serve`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from guided.errors import UnsupportedError
from guided.grammar.given import TypeReader, reader_of
from guided.grammar.json_schema.reading.partial_types import typed_so_far
from guided.hf.front.generation import Generation
from guided.hf.generate import generate
from guided.hf.language_model import TransformersModel
from guided.hf.loading import LoadedModel, end_ids
from guided.reading.partial_json import partial_json
from guided.vocab import Vocabulary, vocabulary_of

__all__ = ["Streamed", "agenerate", "astream"]

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="guided-generate")

WHOLE_TEXTS = ("sampler", "search", "must_include", "must_exclude", "think", "n", "heal", "streamer")
"""Arguments of `generate` with which there is no one text that only grows."""


class _Abandoned(BaseException):
    """Nobody waits for this text any more.  Not an `Exception`, which a reward or a callback might catch."""


@dataclass(frozen=True)
class Streamed:
    """A text as far as it has come."""

    text: str
    """All of it so far.  Special tokens are left out; the last one's text is that of its `generation`."""
    new: str
    """What came since the one before."""
    generation: Generation | None = None
    """The whole result, with the last one only."""
    read: Callable[[str], Any] = field(default=str, repr=False, compare=False)

    @cached_property
    def value(self) -> Any:
        """What the text says so far; of the last one `Generation.value`.

        Of a pydantic model an object with the fields that have begun and no others, those that are whole validated; of
        other JSON its data, None before there is any; else the text.  Costs the length of the text.
        """
        if self.generation is not None:
            return self.generation.value
        if self.read is str:
            return self.text
        so_far = partial_json(self.text)
        if isinstance(self.read, TypeReader) and so_far.has_value:
            return typed_so_far(self.read.source, so_far.value, so_far.path)
        return so_far.value


async def agenerate(model: Any, prompt: Any, grammar: Any = None, **options: Any) -> Any:
    """What `guided.generate` returns for the same arguments, without blocking the event loop.

    A call that is cancelled ends before the model's next pass, or is never begun where others come first.  (A
    `guided.lm.LanguageModel` without a network of torch ends its text first.)

    >>> import asyncio, guided
    >>> nano = guided.hf.load("nano")
    >>> made = asyncio.run(guided.agenerate(nano, "The answer:", guided.choice(["yes", "no"])))
    >>> made.text in ("yes", "no")
    True
    """
    stop = threading.Event()
    running = _begun(stop, model, prompt, grammar, options)
    try:
        return await asyncio.wrap_future(running)
    finally:
        stop.set()


async def astream(
    model: Any, prompt: Any, grammar: Any = None, *, tokenizer: Any = None, **options: Any
) -> AsyncIterator[Streamed]:
    """One text of `guided.generate` as it comes: an item for each token that adds characters, and a last one.

    Whoever leaves the loop, or is cancelled, ends the text before the model's next pass.  Takes the arguments of
    `generate` for one prompt; raises `UnsupportedError` for those with which no single text grows: samplers, searches,
    ``n``, ``think``, ``heal`` and a streamer.

    >>> import asyncio, guided
    >>> async def shown(model):
    ...     return [item.new async for item in guided.astream(model, "The answer:", guided.choice(["yes"]))]
    >>> "".join(asyncio.run(shown(guided.hf.load("nano"))))
    'yes'
    """
    for name in WHOLE_TEXTS:
        if options.get(name):
            raise UnsupportedError(
                f"{name}= has no single text that only grows, so there is nothing to stream",
                remedy="Await guided.agenerate instead, or leave it out.",
            )
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | None] = asyncio.Queue()

    def tell(piece: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(arrived.put_nowait, piece)

    stop = threading.Event()
    streamer = _Characters(_vocabulary_of(model, tokenizer), tell)
    given = {**options, "tokenizer": tokenizer, "streamer": streamer}
    running = _begun(stop, model, prompt, grammar, given)
    running.add_done_callback(lambda _: tell(None))
    read, text = reader_of(grammar), ""
    try:
        while (piece := await arrived.get()) is not None:
            text += piece
            yield Streamed(text, piece, read=read)
        made = running.result()
        yield Streamed(made.text, made.text.removeprefix(text), made, read)
    finally:
        stop.set()
        running.cancel()


class _Characters:
    """A streamer of transformers that tells the characters of generated tokens as they become whole."""

    def __init__(self, vocabulary: Vocabulary, tell: Callable[[str], None]) -> None:
        self._vocabulary = vocabulary
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._is_prompt = True

    def put(self, value: torch.Tensor) -> None:
        """The prompt first, then each token."""
        if self._is_prompt:
            self._is_prompt = False
            return
        known = [token for token in value.reshape(-1).tolist() if 0 <= token < self._vocabulary.size]
        piece = self._decoder.decode(b"".join(self._vocabulary.token_bytes(token) or b"" for token in known))
        if piece:
            self._tell(piece)

    def end(self) -> None:
        """The result says so itself."""


def _begun(stop: threading.Event, model: Any, prompt: Any, grammar: Any, options: dict[str, Any]) -> Future[Any]:
    """The call, behind those that were there before."""

    def run() -> Any:
        with _stoppable(model, stop):
            return generate(model, prompt, grammar, **options)

    return _THREAD.submit(contextvars.copy_context().run, run)


@contextmanager
def _stoppable(model: Any, stop: threading.Event) -> Iterator[None]:
    """End what is inside by `_Abandoned` before the next pass of the network in this thread, once ``stop`` is set.

    Every runner of `generate` runs the network; a criterion of transformers only its own loops ask.
    """
    network = model.model if isinstance(model, (LoadedModel, TransformersModel)) else model
    me = threading.get_ident()

    def look(*_: Any) -> None:
        if stop.is_set() and threading.get_ident() == me:
            raise _Abandoned

    look()
    if not isinstance(network, torch.nn.Module):
        yield
        return
    hook = network.register_forward_pre_hook(look)
    try:
        yield
    finally:
        hook.remove()


def _vocabulary_of(model: Any, tokenizer: Any) -> Vocabulary:
    """The vocabulary of the model's texts."""
    if isinstance(model, LoadedModel) and tokenizer is None:
        return model.vocabulary
    if isinstance(model, TransformersModel):
        model, tokenizer = model.model, model.tokenizer if tokenizer is None else tokenizer
    if tokenizer is None:
        raise UnsupportedError("the model brings no tokenizer", remedy="Pass tokenizer=, or what guided.hf.load gives.")
    return vocabulary_of(tokenizer, end_ids(model, tokenizer))
