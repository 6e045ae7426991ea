"""`guided.extract`: texts to records; a text, a list of texts, or the column of a data frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from guided.constraint.compile import compile
from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.given import reader_of
from guided.grammar.json_schema import json_schema
from guided.grammar.json_schema.reading.source import is_schema, read
from guided.hf.generate import generate
from guided.hf.loading import PACKAGED, PACKAGED_DENOISER, LoadedModel
from guided.reading.arrow import arrow_array
from guided.reading.frames import Frame, is_frame
from guided.reading.records import CellKind, RecordColumn, members_of, record_columns

__all__ = ["extract", "extraction_request"]

T = TypeVar("T")

_OTHER_RESULTS = ("sampler", "search", "must_include", "must_exclude", "n")
"""Arguments of `generate` with which a prompt has several texts."""


def extraction_request(model: str, schema: Any, text: str) -> str:
    """The prompt for a JSON value of ``schema`` (data) that holds what ``text`` says.

    The packaged models are asked in the form that they were trained on, all others in plain words.
    """
    if model in (PACKAGED, PACKAGED_DENOISER):
        from guided.nano import extraction_prompt

        return extraction_prompt(schema, text)
    written = json.dumps(schema, ensure_ascii=False)
    return (
        "Write what the text says as one JSON value that is valid against this JSON Schema."
        " Reply with the JSON only.\n\n"
        f"JSON Schema:\n{written}\n\nText:\n{text.strip()}\n\nJSON:\n"
    )


@overload
def extract(model: LoadedModel, data: str, schema: type[T], **options: Any) -> T: ...


@overload
def extract(model: LoadedModel, data: str, schema: Any, **options: Any) -> Any: ...


@overload
def extract(model: LoadedModel, data: list[str] | tuple[str, ...], schema: type[T], **options: Any) -> list[T]: ...


@overload
def extract(model: LoadedModel, data: list[str] | tuple[str, ...], schema: Any, **options: Any) -> list[Any]: ...


@overload
def extract(
    model: LoadedModel, data: T, schema: Any, *, column: str = "text", into: str | None = None, **options: Any
) -> T: ...


def extract(
    model: LoadedModel,
    data: Any,
    schema: Any,
    *,
    column: str = "text",
    into: str | None = None,
    batch_size: int = 8,
    max_new_tokens: int = 256,
    **options: Any,
) -> Any:
    """What a text says, as a value of a type or of a JSON Schema.

    ``model`` is what `guided.hf.load` gives.  ``schema`` is what `guided.json_schema` takes: a type, a schema as data.
    ``data`` decides what is returned.  Of a text it is the value: an object of the type, else JSON data.  Of a list of
    texts, a list of values.  Of a data frame of pandas or polars, or a table of Arrow, a new frame: its column
    ``column`` holds the texts, and there are further columns, one for each member of the schema, of Arrow's types, and
    ``error``.  With ``into`` there are two columns instead: that one, with the JSON texts, and ``{into}_error``.

    The model is asked in plain words, through its chat template where it has one; ``batch_size`` texts are generated
    together, in at most ``max_new_tokens`` tokens each.  ``options`` go to `guided.generate` (``draft``, ``steer``,
    ``do_sample``, ...).  Raises `GuidedError` for a text or a list with a text that cannot be done; in a frame that is
    the row's error.  Raises `UnsupportedError` for a schema whose members are no columns.

    >>> import guided
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Visit:
    ...     city: str
    ...     days: int
    >>> type(extract(guided.hf.load("nano"), "She stayed in Oslo for 3 days.", Visit)).__name__
    'Visit'
    """
    for name in _OTHER_RESULTS:
        if options.get(name):
            raise UnsupportedError(
                f"{name}= has several texts for a prompt, and a record is one",
                where="guided.extract",
                remedy="Call guided.generate, or leave it out.",
            )
    work = _Extraction(model, schema, max_new_tokens, options)
    if is_frame(data):
        frame = Frame(data)
        return frame.with_columns(_columns(work, frame, schema, column, into, batch_size))
    if column != "text" or into is not None:
        raise UnsupportedError("only a data frame has columns", where="guided.extract", remedy="Leave them out.")
    if isinstance(data, str):
        return work.value(work.texts([data])[0])
    if not isinstance(data, Sequence) or not all(isinstance(text, str) for text in data):
        raise TypeError(f"{type(data).__name__} is neither a text, nor a list of texts, nor a data frame")
    chunks = (data[first : first + batch_size] for first in range(0, len(data), batch_size))
    return [work.value(text) for chunk in chunks for text in work.texts(chunk)]


class _Extraction:
    """A schema compiled for a model, applied to texts."""

    def __init__(self, model: LoadedModel, schema: Any, max_new_tokens: int, options: Mapping[str, Any]) -> None:
        self._model, self._max_new_tokens = model, max_new_tokens
        self._options = options
        self._constraint = compile(json_schema(schema), model.vocabulary)
        self._schema = read(schema)
        self._read: Callable[[str], Any] = json.loads if is_schema(schema) else reader_of(schema)
        self._chat = bool(getattr(model.tokenizer, "chat_template", None))

    def texts(self, texts: Sequence[str]) -> list[str | GuidedError]:
        """The JSON text for each, made together; alone where one of them cannot be done, which has its error."""
        if empty := next((n for n, text in enumerate(texts) if not text.strip()), None):
            return [*self.texts(texts[:empty]), *self.texts(texts[empty:])]
        if texts and not texts[0].strip():
            return [GrammarError("the text is empty", remedy="Give some text."), *self.texts(texts[1:])]
        try:
            return list(self._made(texts)) if texts else []
        except GuidedError as error:
            return [error] if len(texts) == 1 else [each for text in texts for each in self.texts([text])]

    def _made(self, texts: Sequence[str]) -> list[str]:
        made = generate(
            self._model,
            [extraction_request(self._model.name, self._schema, text) for text in texts],
            self._constraint,
            max_new_tokens=self._max_new_tokens,
            chat=self._chat,
            **self._options,
        )
        return [each.text for each in made]

    def value(self, text: str | GuidedError) -> Any:
        """What it says; raises the error that it is."""
        if isinstance(text, GuidedError):
            raise text
        return self._read(text)


def _columns(
    work: _Extraction, frame: Frame, schema: Any, column: str, into: str | None, batch_size: int
) -> dict[str, Any]:
    """The further columns of a frame, as arrays of Arrow."""
    strict = not is_schema(schema)
    members = (RecordColumn(into, CellKind.JSON),) if into else record_columns(read(schema), strict=strict)
    error = RecordColumn(f"{into}_error" if into else "error", CellKind.TEXT)
    for name in (new.name for new in (*members, error)):
        if name in frame.names:
            raise UnsupportedError(
                f"the frame has a column {name!r} already",
                where="guided.extract",
                remedy="Name one column for the answers (into=), or rename that one.",
            )
    raws: dict[str, list[str | None]] = {new.name: [] for new in (*members, error)}
    cells = frame.column(column)
    for first in range(0, len(cells), batch_size):
        # What is no text, such as a cell without a value, is an empty one.
        texts = [cell if isinstance(cell, str) else "" for cell in cells[first : first + batch_size]]
        for text in work.texts(texts):
            found: dict[str, str] = {}
            if isinstance(text, GuidedError):
                found = {error.name: json.dumps(str(text))}
            else:
                found = {into: text} if into else members_of(text)
            for name, cells_of in raws.items():
                cells_of.append(found.get(name))
    return {new.name: arrow_array(new, raws[new.name]) for new in (*members, error)}
