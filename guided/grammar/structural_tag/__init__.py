"""`guided.structural_tag`: XGrammar's structural tags, a JSON notation for texts put together from formats.

It is read as XGrammar 0.2.8 documents it (``python/xgrammar/structural_tag.py``, ``docs/structural_tag``), so servers
that take it from their users may pass it on.  Where the two differ is in docs/STRUCTURAL_TAGS.md.

`formats` turns each type of format into rules, `json_formats` schemas into grammars; `special` finds special tokens,
`fields` reads JSON objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from guided.errors import GrammarError
from guided.grammar.ir import Grammar
from guided.grammar.structural_tag.fields import Fields
from guided.grammar.structural_tag.formats import Reader
from guided.grammar.structural_tag.json_formats import Writing

__all__ = ["structural_tag"]


def structural_tag(
    source: str | Mapping[str, Any],
    *,
    special_tokens: Mapping[str, int] | None = None,
    strict: bool | None = None,
    spelling: str = "plain",
    whitespace: str | None = None,
) -> Grammar:
    """The language of a structural tag, as JSON text or data: ``{"type": "structural_tag", "format": {...}}``.

    The older notation ``{"structures": [...], "triggers": [...]}`` is read too.  ``special_tokens`` is
    ``vocabulary.special_tokens`` of the model's tokenizer: with it, names of special tokens in texts (``<tool_call>``)
    are these tokens, as the tokenizer would write them, and ids can be read.  Without it all texts are text.
    ``strict``, ``spelling`` and ``whitespace`` are those of `guided.json_schema`, for JSON; ``strict=None`` closes
    objects that declare members, unless their schema admits others.

    Every error carries the JSON pointer of its cause.  Raises `GrammarError` for what is no structural tag,
    `UnsupportedError` for what cannot be enforced exactly, and what the parts raise.

    >>> number = {"type": "json_schema", "json_schema": {"type": "integer"}}
    >>> structural_tag({"format": {"type": "tag", "begin": "<answer>", "content": number, "end": "</answer>"}})
    <Grammar 'structural tag': 3 rules, lexing none>
    """
    if isinstance(source, str):
        text = source
    else:
        try:
            text = json.dumps(source)
        except (TypeError, ValueError, RecursionError) as error:
            raise GrammarError(f"the structural tag is not plain JSON data: {error}", where="#") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"the structural tag is not JSON: {error}", where="#", remedy="Correct the text.") from None
    fields = Fields(value, "#", "a structural tag")
    writing = Writing(strict, spelling, whitespace)
    names = None if special_tokens is None else dict(special_tokens)
    reader = Reader(names, writing)
    if "type" in fields and fields.given("type") != "structural_tag":
        raise GrammarError(
            f"{fields.given('type')!r} is not the type of a structural tag",
            where="#/type",
            remedy='Write "structural_tag", and put a format under "format".',
        )
    if "structures" in fields:
        fields.only(("type", "structures", "triggers"))
        body = reader.legacy(fields)
    else:
        fields.only(("type", "format"))
        body = reader.format(fields.given("format"), "#/format", ())
    options: dict[str, Any] = {
        "special_tokens": names, "strict": strict, "spelling": spelling, "whitespace": whitespace,
    }  # fmt: skip
    return reader.finish(body, json.dumps(value), (structural_tag, (text,), options))
