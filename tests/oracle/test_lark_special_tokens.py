"""Special tokens in Lark grammars against Lark itself, which reads a character in the place of each."""

from __future__ import annotations

import random

import lark
import pytest
from lark.exceptions import UnexpectedInput

import guided
from guided.grammar.ir import Lexing
from tests import vocabularies
from tests.amounts import crossed, some

SPECIAL = {"<t>": 257, "<u>": 258}
STANDS_FOR = {"<t>": "\ue001", "<u>": "\ue002"}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, None, None, None], eos_ids=[256], special_tokens=SPECIAL
)
# No terminal matches the characters that stand for special tokens in Lark's text.
GRAMMARS = [
    'start: (A | <t> | "ab")*\nA: /a+b?/',
    'start: item+\nitem: <t> item? <u> | X\nX: /[ab]+(?!a)/\n%ignore " "',
    "start: (A | B | <t>)+\nA: /a(?!b|a)/\nB: /b+?/",
    "start: A <t>? B | B <t> A <u>~1..2\nA: /a+/\nB: /(?:b|,=)+/",
    'start: (K | N | <t> | "=")+\nK: "if"\nN: /[a-z]+/\n%ignore /[ ]+/',
    "start: (A | B)+ <u>\nA: /a*b/\nB: /(?:a|<t>)/\n%ignore <t>",
    'start: pair ("," pair)*\npair: W <t> W\nW: /[ab ]+/',
    'start: A+\nA: /a(?!b)/ | "b"\n%ignore <t>',
]


def twin(text: str, lexing: Lexing) -> lark.Lark:
    for name, character in STANDS_FOR.items():
        for outside in (" ", "(", "|", "\n"):
            text = text.replace(outside + name, f'{outside}"{character}"')
    kind = (
        {"parser": "lalr", "lexer": "contextual"}
        if lexing is Lexing.CONTEXTUAL
        else {"parser": "earley", "lexer": "dynamic"}
    )
    return lark.Lark(text, **kind)


@pytest.mark.parametrize(("lexing", "source"), crossed([Lexing.CONTEXTUAL, Lexing.DYNAMIC], GRAMMARS))
def test_random_texts(source: str, lexing: Lexing) -> None:
    grammar = guided.lark(source, special_tokens=True, lexing=lexing)
    constraint = guided.compile(grammar, VOCABULARY)
    reader = twin(source, lexing)
    rnd = random.Random(source)
    pieces = [*"aabb ", "ab", "if", "=", ",", "<t>", "<t>", "<u>"]
    both = [0, 0]
    for _ in range(some(600)):
        text = [rnd.choice(pieces) for _ in range(rnd.randrange(8))]
        state = constraint.start
        for piece in text:
            if state:
                state = (
                    constraint.advance(state, SPECIAL[piece])
                    if piece in SPECIAL
                    else constraint.advance_bytes(state, piece.encode())
                )
        accepted = bool(state) and constraint.is_accepting(state)
        try:
            reader.parse("".join(STANDS_FOR.get(piece, piece) for piece in text))
            expected = True
        except UnexpectedInput:
            expected = False
        except RuntimeError:
            continue
        assert accepted == expected, text
        both[expected] += 1
    assert all(both)
