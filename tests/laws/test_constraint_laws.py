"""Every front end through `guided.testing.check_constraint`: over single bytes and small tokens, and over real tokenizers."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.testing import brute_force_mask, check_constraint
from tests import vocabularies
from tests.amounts import each, mostly_slow, some

RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "rêd", None]}, "maxItems": 3},
        "parent": {"$ref": "#"},
    },
    "required": ["name", "age"],
}
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "ab": {"const": {"x": [1, "é"]}}, "when": {"format": "date"}},
    "required": ["ab"],
    "additionalProperties": {"type": "boolean"},
    "maxProperties": 4,
}
KEYWORDS = r"""
start: statement+
statement: "if" NAME "then" statement | NAME "=" sum ";"
sum: sum "+" term | term
term: NAME | NUMBER | "(" sum ")"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
COMMENT: /#[^\n]*/
%ignore /[ \t\n]+/
%ignore COMMENT
"""
AMBIGUOUS = r"""
start: pair | start start
pair: WORD "-" WORD | "(" start? ")"
WORD: /[a-z]+/
%ignore " "
"""
GBNF = r"""
root  ::= ws value
value ::= "[" ws (value ("," ws value)*)? "]" ws | number ws | "\"" [^"\\\x00-\x1f]* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,5}) ("." [0-9]+)?
ws ::= [ \t\n]*
"""
GRAMMARS = {
    "choice": lambda: guided.choice(["yes", "no", "maybe", "maybe not", "né", ""]),
    "regex": lambda: guided.regex(r"(?:\d{4}-\d\d-\d\d|\w{2,30}@[a-z]+\.(?:com|org)|[^\W\d]{3,200}!)"),
    "regex with assertions": lambda: guided.regex(r"(?!.*foo)\b[a-z ]+(?<=[aeiou])\b\.?"),
    "gbnf": lambda: guided.gbnf(GBNF),
    "lark contextual": lambda: guided.lark(KEYWORDS),
    "lark dynamic": lambda: guided.lark(AMBIGUOUS),
    "json plain": lambda: guided.json_schema(True),
    "json any": lambda: guided.json_schema(True, spelling="any"),
    "json compact": lambda: guided.json_schema(RECORD, whitespace="compact"),
    "json record": lambda: guided.json_schema(RECORD, spelling="any"),
    "json any order": lambda: guided.json_schema(RECORD, order="any"),
    "json closed": lambda: guided.json_schema(CLOSED, order="any", whitespace="compact"),
    "json searched": lambda: guided.json_schema(
        {"type": "array", "items": {"anyOf": [{"pattern": "a.*[0-9]"}, {"pattern": "\\\\$|é"}], "type": "string"}}
    ),
    "json pattern": lambda: guided.json_schema({"type": "array", "items": {"type": "string", "pattern": "^a.*[0-9]$"}}),
}
PIECES = [
    b'":', b'": "', b'", "', b'"}', b"}]", b"true", b"null", b"  ", b"\n\n", b"12", b"2024-", b"19", b"ab", b"na", b"me",
    b"name", b'{"', b'["', b"\\u", b"\\n", b"if ", b"then", b" = ", b"foo", b"and", b") ", b"((", b"yes", b"no", b"maybe",
    "é".encode(), "日本".encode(), "日".encode()[:2], "日".encode()[2:], "\U0001f600".encode()[:3], b"@", b".com", b"a1",
]  # fmt: skip
SMALL = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, *PIECES, *PIECES[:3], None, b"<s>", None, b"</s>"],
    eos_ids=[256 + len(PIECES) + 4, 256 + len(PIECES) + 6],
)


@pytest.mark.parametrize("name", each(GRAMMARS, 2))
def test_small_vocabulary(name):
    check_constraint(guided.compile(GRAMMARS[name](), SMALL), walks=some(8, 12), length=25)


@pytest.mark.parametrize("name", each(GRAMMARS, 2))
def test_a_step_of_bytes_is_a_step_of_the_language(name):
    """Whatever single bytes a walk takes, an independent copy of the constraint takes them at once."""
    constraint = Constraint(GRAMMARS[name](), SMALL)
    rnd = random.Random(name)
    for _ in range(some(5, 4)):
        state, text = constraint.start, b""
        for _ in range(30):
            live = [byte for byte in range(256) if constraint.advance_bytes(state, bytes([byte]))]
            if not live or (constraint.is_accepting(state) and rnd.random() < 0.2):
                break
            text += bytes([rnd.choice(live)])
            state = constraint.advance_bytes(constraint.start, text)
            assert state
        fresh = Constraint(GRAMMARS[name](), SMALL)
        assert fresh.is_accepting(fresh.advance_bytes(fresh.start, text)) == constraint.is_accepting(state)


def test_padding_and_special_ids_never():
    constraint = guided.compile(guided.regex(r"(?s).*"), SMALL)
    mask = brute_force_mask(constraint, constraint.start)
    never = [t for t in range(SMALL.size) if not int(mask[t >> 5]) >> (t & 31) & 1]
    texts = [SMALL.token_bytes(t) for t in never]
    assert None in texts
    # All others are broken UTF-8 at the start of a text: they begin with a byte that no character begins with.
    assert all(data is None or 0x80 <= data[0] < 0xC2 or data[0] > 0xF4 for data in texts)


@pytest.fixture(scope="module", params=mostly_slow(["llama2", "llama3", "gpt2", "qwen2.5"], 1))
def real(request, data):
    folder = data / "tokenizers" / request.param
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"no {request.param} tokenizer in the test data")
    from transformers import AutoTokenizer

    return guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(str(folder)), cache=False)


@pytest.mark.parametrize("name", mostly_slow(["json record", "gbnf", "choice"], 1))
def test_real_vocabulary(name, real):
    check_constraint(
        guided.compile(GRAMMARS[name](), real), walks=some(2, 12), length=8, full_states=1, threads=1, pickled=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", GRAMMARS)
def test_real_vocabulary_at_length(name, real, seed):
    check_constraint(guided.compile(GRAMMARS[name](), real), seed=seed, walks=4, length=30, full_states=3, threads=2)


class _Broken:
    """A constraint with one contract broken, to see that the check sees it."""

    def __init__(self, constraint, **broken):
        self._constraint = constraint
        self.__dict__.update(broken)

    def __getattr__(self, name):
        return getattr(self._constraint, name)


def _wrong_bit(constraint):
    def fill_mask(state, row):
        constraint.fill_mask(state, row)
        row[3] ^= np.uint32(1 << 1)  # token 97, "a"

    return {"fill_mask": fill_mask}


def _keeps_old_bits(constraint):
    def fill_mask(state, row):
        fresh = np.empty_like(row)
        constraint.fill_mask(state, fresh)
        row |= fresh

    return {"fill_mask": fill_mask}


def _ends_anywhere(constraint):
    return {"is_accepting": lambda state: True}


def _forces_too_much(constraint):
    return {"forced": lambda state: b"" if constraint.is_accepting(state) else b"yes"}


def _promises_too_little(constraint):
    return {"shortest_completion": lambda state: max(constraint.shortest_completion(state) - 1, 0)}


def _changes_its_mind(constraint):
    known = set()

    def fill_mask(state, row):
        constraint.fill_mask(state, row)
        if max(known, default=state) > state:
            row[3] &= ~np.uint32(0xFFFF)
        known.add(state)

    return {"fill_mask": fill_mask}


@pytest.mark.parametrize(
    "breakage", [_wrong_bit, _keeps_old_bits, _ends_anywhere, _forces_too_much, _promises_too_little, _changes_its_mind]
)
def test_the_check_sees_a_broken_contract(breakage):
    constraint = guided.compile(guided.choice(["yes", "no", "maybe", "maybe not"]), SMALL)
    check_constraint(constraint, walks=6)
    with pytest.raises((AssertionError, guided.LimitError)):
        check_constraint(_Broken(constraint, **breakage(constraint)), walks=6, pickled=False)
