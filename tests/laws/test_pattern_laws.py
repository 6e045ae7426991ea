"""The contracts of constraints on strings that are patterns: masks, ends and budgets with the checker of patterns."""

from __future__ import annotations

from typing import Any

import pytest

import guided
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each

REGEX = {"type": "string", "format": "regex"}
PIECES = rb"""a- -a -Z z-a a-z [a- [z-a] [^ ]* )+ \\ \\d \\1 \\2 10 {2, {2,3} {3,2} {3 ,1} ,12} (?: (?< (?<n (?<n> <n>a) n> m>
    \\k \\k< k<n> k<m> <=a) (( )) "," "" "( )" \\u \u 00 0061 \u005b \u005d \u002d \ud83d \uD83D\uDE00 \\uD83D \\uDE00
    {1f600} \u{ d83d \\x \\x41 \\c ab abc name \\p{L} \\p{ L} \\0 ": {"a":" ,"b":" "} ],[ ["a""".split()
WIDE = ["é", "à-", "一", "一-丁", "丁-一", "😀-"]
TOKENS = [*vocabularies.SINGLE_BYTES, *sorted({*PIECES, b"\xe4\xb8", *(text.encode() for text in WIDE)})]
VOCABULARY = vocabularies.of_tokens(TOKENS)


def kinds(a: Any, k: Any) -> Any:
    return {"type": "object", "properties": {"a": a, "b": k}, "required": ["a", "b"], "additionalProperties": False}


SCHEMAS = {
    "alone": REGEX,
    "longer": {**REGEX, "minLength": 3},
    "less a word": {"allOf": [REGEX, {"not": {"const": "ab"}}]},
    "members": {"type": "object", "properties": {"a": REGEX}, "additionalProperties": REGEX},
    "distinct": {"type": "array", "items": REGEX, "uniqueItems": True, "minItems": 2},
    "mixed": {"anyOf": [kinds(REGEX, {"type": "integer"}), kinds({"type": "string", "maxLength": 9}, REGEX)]},
    "none": {"type": "string", "not": {"format": "regex"}},
    "union": {"anyOf": [REGEX, {"type": "string", "maxLength": 5}, {"const": "[z-a] no"}]},
}


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_contracts(name: str) -> None:
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), VOCABULARY)
    check_constraint(constraint, seed=len(name), walks=3, length=18, full_states=25, threads=1, pickled=name == "alone")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCHEMAS, "shorter", "slashes"])
def test_contracts_at_length(name: str) -> None:
    more = {"shorter": {**REGEX, "maxLength": 12}, "slashes": {**REGEX, "pattern": "^/.+/$"}}
    constraint = guided.compile(guided.json_schema((SCHEMAS | more)[name]), VOCABULARY)
    for seed in range(3):
        check_constraint(constraint, seed=seed, walks=8, length=25, threads=2, pickled=False)
