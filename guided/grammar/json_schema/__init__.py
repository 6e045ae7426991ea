"""JSON Schema to the IR, exactly: what is not enforced to the letter is refused with its JSON pointer.

Reading order: `reading` (schemas, places in them, references), `numbers` and `sets` (sets of values as data; `shape` is
the normal form), `keywords` (keywords to shapes; `normalise`), `satisfiability` (which shapes have a value; `graph`),
`lowering` (shapes to rules; `lower`).  Here is what they share: what is refused, and how JSON is laid out (`layout`,
`white_space`); `schema_graph` takes a schema from its text to shapes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from guided.collection import hold, release
from guided.errors import GrammarError, GuidedError
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.keywords.report import Enforcement, Line, Report, dropped, lines, refusal
from guided.grammar.json_schema.layout import Layout, Order, Spelling
from guided.grammar.json_schema.lowering.lower import Lowering
from guided.grammar.json_schema.lowering.untracked import untrack_lowering, untrack_shapes
from guided.grammar.json_schema.reading.document import Document, Objects, Schema
from guided.grammar.json_schema.reading.source import is_schema, read
from guided.grammar.json_schema.recent import Recent
from guided.grammar.json_schema.schema_graph import graph_of
from guided.grammar.json_schema.white_space import layout_of

__all__ = ["Enforcement", "Formats", "JsonSchemaGrammar", "Line", "json_schema", "schema_report"]

REMEMBERED = 128
"""Grammars kept for schemas that come again, while their texts together are no longer than `REMEMBERED_TEXT`."""
REMEMBERED_TEXT = 1 << 20

_recent: Recent[JsonSchemaGrammar] = Recent(REMEMBERED, REMEMBERED_TEXT)


class JsonSchemaGrammar(Grammar):
    """A `Grammar` that knows which keywords of its schema it enforces, and how."""

    def report(self) -> Report:
        """A line for each keyword that can apply to a value: its JSON pointer, its enforcement, and why.

        >>> for line in json_schema({"type": "array", "uniqueItems": True, "title": "t"}).report():
        ...     print(line.pointer, line.enforcement.value)
        #/type masked
        #/uniqueItems checked
        #/title annotation
        """
        assert self.rebuild is not None
        (text,), options = self.rebuild[1], self.rebuild[2]
        document = Document(json.loads(text), options["registry"], text)
        return tuple(lines(document, Formats(options["formats"])))


def schema_report(schema: Any, **options: Any) -> Report:
    """The report of a schema, also of one that is refused: then the last line says what is, and why.

    ``options`` are those of `json_schema`.
    """
    try:
        return json_schema(schema, **options).report()
    except GuidedError as error:
        refused = refusal(error)
    try:
        source = read(schema)
        found = lines(Document(source, options.get("registry")), Formats(options.get("formats", Formats.DEFAULT)))
        kept = tuple(line for line in found if line.pointer != refused.pointer)
    except (GuidedError, ValueError):
        kept = ()
    return (*kept, refused)


def json_schema(
    schema: dict[str, Any] | bool | str | type | Callable[..., Any],
    *,
    order: str = "schema",
    spelling: str = "plain",
    strict: bool | None = None,
    whitespace: str | None = None,
    registry: Any = None,
    formats: str | Formats = Formats.DEFAULT,
    separators: tuple[str, str] | None = None,
) -> JsonSchemaGrammar:
    """The grammar of the JSON texts of all values that are valid against a schema.

    ``schema`` is a JSON Schema (data or JSON text; draft 4 to 2020-12 by ``$schema``), or a Python type or callable
    (Pydantic model, dataclass, TypedDict, Literal, Enum, ...; of a callable, its parameters as one object).
    ``order="schema"`` asks for declared members in the order of the schema, ``"any"`` takes every order.
    ``spelling="plain"`` writes each value as ``json.dumps(..., ensure_ascii=False)`` does, with any ``indent``: no
    needless escapes, integers in digits, at most one space or one line break and indentation between tokens (to the
    letter in docs/JSON_SCHEMA.md).  ``"any"`` takes every JSON text.
    ``strict=True`` reads objects that declare members as closed, where they do not say otherwise, and all declared
    members as required; False, to the letter.  None is what authors mean: to the letter for a schema; for a type or
    callable closed unless it admits others (``extra="allow"``, ``**kwargs``), and required what has no default.
    ``whitespace`` is None (as the spelling has it), ``"compact"`` (none), ``"any"`` (all that JSON allows), or a
    regular expression for the white space at each place JSON allows.
    ``separators`` are those of ``json.dumps``, between items and behind names, to the letter: ``(", ", ": ")``; then no
    other white space is allowed.
    ``registry`` is a ``referencing.Registry`` for references outside the schema; nothing is ever fetched.
    ``formats`` says when ``format`` is asserted: `Formats.DEFAULT` follows the draft, "assert" and "annotate" do not.

    Numbers are compared as exact decimals.  With ``spelling="any"`` a number under ``minimum`` and the like may have an
    exponent only in normalised scientific notation (``1.5e-7``); integers and multiples have one only without an upper
    bound (``1.5e+16``).  `Grammar.notes` says where this and other readings apply.  The same schema with the same
    options gives the same object while it is among the recently used.  Raises `UnsupportedError`,
    `UnsatisfiableError`, `GrammarError` or `LimitError`, each with the JSON pointer of the cause.

    >>> json_schema({"type": "array", "items": {"enum": ["a", "b"]}})
    <Grammar 'JSON text': 2 rules, lexing none>
    """
    held = hold()
    try:
        if strict not in (None, True, False):
            raise GrammarError(f"strict is True, False or None, not {strict!r}", remedy="Use one of these.")
        objects = Objects.OPEN if is_schema(schema) else Objects.CLOSED
        if strict is not None:
            objects = Objects.STRICT if strict else Objects.OPEN
        return _found(schema, objects, order, spelling, whitespace, registry, formats, separators)
    finally:
        if held:
            release()


def closed_json_schema(schema: Schema | str, **options: Any) -> JsonSchemaGrammar:
    """As `json_schema`, where objects that declare members hold no others unless they say so: as types are read."""
    options.pop("strict", None)
    return _with_defaults(schema, Objects.CLOSED, options)


def json_part(schema: Schema | str, *, strict: bool | None = None, **options: Any) -> JsonSchemaGrammar:
    """As `json_schema` for a part of a text, without white space around the value; ``strict=None`` closes objects."""
    objects = Objects.CLOSED if strict is None else Objects.STRICT if strict else Objects.OPEN
    return _with_defaults(schema, objects, {**options, "alone": False})


def _with_defaults(schema: Schema | str, objects: Objects, options: dict[str, Any]) -> JsonSchemaGrammar:
    defaults = {"order": "schema", "spelling": "plain", "whitespace": None, "registry": None, "formats": "default"}
    held = hold()
    try:
        return _found(schema, objects, **{**defaults, **options})
    finally:
        if held:
            release()


def _found(
    schema: Any,
    objects: Objects,
    order: str,
    spelling: str,
    whitespace: str | None,
    registry: Any,
    formats: str | Formats,
    separators: tuple[str, str] | None = None,
    alone: bool = True,
) -> JsonSchemaGrammar:
    try:
        member_order = Order(order)
    except ValueError:
        raise GrammarError(f"there is no order {order!r}", remedy='Use "schema" or "any".') from None
    try:
        spelled = Spelling(spelling)
    except ValueError:
        raise GrammarError(f"there is no spelling {spelling!r}", remedy='Use "plain" or "any".') from None
    try:
        asserted = Formats(formats)
    except ValueError:
        raise GrammarError(
            f"there is no choice {formats!r} for formats", remedy='Use "default", "assert" or "annotate".'
        ) from None
    source = None if isinstance(schema, str) else read(schema)
    text = schema if isinstance(schema, str) else _written(source)
    # What is kept holds its registry, so no other can have the same identity.
    # Of values that no collector need look into.
    key = (
        text, source is None, objects.value, member_order.value, spelled.value, whitespace, asserted.value,
        id(registry), separators if separators is None else tuple(separators), alone,
    )  # fmt: skip
    made = _recent.find(key)
    if made is None:
        if source is None:
            source = read(schema)
            text = _written(source)
        layout = layout_of(member_order, spelled, whitespace, separators, alone=alone)
        made = _made(source, text, objects, layout, whitespace, separators, registry, asserted)
        _recent.keep(key, made, len(text))
    return made


_ENCODER = json.JSONEncoder(check_circular=False)
"""As ``json.dumps``, in three quarters of the time; what holds itself is found to be nested too deeply."""


def _written(source: Any) -> str:
    try:
        return _ENCODER.encode(source)
    except RecursionError:
        raise refusals.NESTING.at("#") from None
    except (TypeError, ValueError) as error:
        raise GrammarError(f"the schema is not plain JSON data: {error}", remedy="Pass plain JSON data.") from None


def _made(
    source: Schema,
    text: str,
    objects: Objects,
    layout: Layout,
    whitespace: str | None,
    separators: tuple[str, str] | None,
    registry: Any,
    formats: Formats,
) -> JsonSchemaGrammar:
    order, spelling, alone = layout.order, layout.spelling, layout.alone
    try:
        document, graph = graph_of(source, text, objects, order, registry, formats)
        lowering = Lowering(graph, layout, frozenset(document.fractional))
        rules = lowering.run()
        untrack_shapes(graph.shapes)
        untrack_lowering(lowering, rules)
    except RecursionError:
        raise refusals.NESTING.at("#") from None
    key = None
    if registry is None:
        said = (
            f"{objects.value}\0{order.value}\0{spelling.value}\0{whitespace}\0{formats.value}{'' if alone else chr(0)}"
        )
        said += "" if separators is None else f"\0{separators}"
        key = hashlib.sha256(f"json_schema\0{said}\0{text}".encode()).hexdigest()
    closed = objects is Objects.CLOSED
    keywords = {
        "order": order.value, "spelling": spelling.value, "strict": None if closed else objects is Objects.STRICT,
        "whitespace": whitespace, "registry": registry, "formats": formats.value, "separators": separators,
    }  # fmt: skip
    return JsonSchemaGrammar(
        rules,
        0,
        rebuild=(json_part if not alone else closed_json_schema if closed else json_schema, (text,), keywords),
        key=key,
        notes=(*document.notes, *dropped(document, formats, text), *lowering.notes),
        prepared=lowering.prepared(),
    )
