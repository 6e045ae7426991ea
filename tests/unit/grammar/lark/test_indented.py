"""Grammars behind Lark's `Indenter`, against Lark itself: its tree example, and its own grammar of Python."""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import lark
import numpy as np
import pytest
from lark.indenter import Indenter, PythonIndenter

import guided
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, mostly_slow, some

BYTES = vocabularies.of_bytes()
PYTHON = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text()
STANDARD_LIBRARY = Path(os.__file__).parent


class TreeIndenter(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = ["LPAR"]
    CLOSE_PAREN_types: ClassVar[list[str]] = ["RPAR"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


TREE = r"""
start: _NL* tree+
tree: NAME args? _NL [_INDENT tree+ _DEDENT]
args: "(" (NAME | args)* ")"
NAME: /[a-c]+|"[^"]*"/
_NL: /(\r?\n[\t ]*|#[^\n]*)+/
COMMENT: /#[^\n]*/
%ignore COMMENT
%ignore /[ ~]/
%declare _INDENT _DEDENT
"""


def compiled(grammar: str, start: str, indenter: Indenter, vocabulary: guided.Vocabulary = BYTES) -> guided.Constraint:
    return guided.compile(guided.lark(grammar, start=start, postlex=indenter), vocabulary)


@cache
def python() -> tuple[guided.Constraint, Any]:
    theirs = lark.Lark(PYTHON, parser="lalr", postlex=PythonIndenter(), start="file_input")
    return compiled(PYTHON, "file_input", PythonIndenter()), theirs


def parses(parser: Any, text: str) -> bool:
    try:
        parser.parse(text)
    except (lark.exceptions.LarkError, AssertionError, IndexError):
        return False
    return True


def accepts(constraint: guided.Constraint, text: str) -> bool:
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))


def mutated(rnd: random.Random, text: str, pieces: list[str]) -> str:
    letters = list(text)
    for _ in range(rnd.randint(1, 3)):
        place, kind = rnd.randrange(len(letters) + 1), rnd.random()
        if kind < 0.4:
            letters[place:place] = rnd.choice(pieces)
        elif kind < 0.7:
            del letters[place : place + 1]
        else:
            letters[place : place + 1] = rnd.choice(pieces)
    return "".join(letters)


def test_trees_are_those_of_lark() -> None:
    constraint = compiled(TREE, "start", TreeIndenter())
    theirs = lark.Lark(TREE, parser="lalr", postlex=TreeIndenter())
    pieces = ["a", "b", "(", ")", "\n", " ", "  ", "\t", "#", '"', "\r", "\n  ", "\n    ", "~"]
    seeds = ["a\n  b\n    c\n  a\nb\n", "a(b\n (c))\n   #x\n   b\n", "\na #c\n  b\n#d\n  c\n\n", '"\n"(a)\n']
    rnd = random.Random(0)
    right = 0
    for number in range(1500):
        text = (
            mutated(rnd, rnd.choice(seeds), pieces) if number % 2 else "".join(rnd.choices(pieces, k=rnd.randint(1, 9)))
        )
        wanted = parses(theirs, text)
        assert accepts(constraint, text) is wanted, text
        right += wanted
        # Every beginning can be completed, and Lark parses what comes of it.
        state = constraint.start
        for place, byte in enumerate(text.encode()):
            state = constraint.advance(state, byte)
            if not state:
                break
            if number % 10 == 0:
                whole = text.encode()[: place + 1] + constraint.shortest_text(state)
                assert parses(theirs, whole.decode()), whole
        if state:
            assert parses(theirs, text + constraint.shortest_text(state).decode()), text
    assert right > 150


TOKENS = [
    b"a",
    b"(",
    b")",
    b"\n",
    b"\n  ",
    b"\n    ",
    b" ",
    b"  b",
    b"a(",
    b")\n",
    b"(\n",
    b"#c",
    b"#\n  a\n",
    b"b\n  c\n ",
]


@pytest.mark.parametrize("seed", mostly_slow(range(2), 1))
def test_contracts_hold(seed: int) -> None:
    tokens = [*({*map(bytes, ([byte] for byte in range(256))), *TOKENS}), None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    constraint = compiled(TREE, "start", TreeIndenter(), vocabulary)
    check_constraint(constraint, walks=some(6, 2), length=14, full_states=some(12, 2), seed=seed)


FILES = ["bisect.py", "heapq.py", "textwrap.py", "queue.py", "glob.py", "stat.py"]


@pytest.mark.parametrize("name", FILES)
def test_real_files_are_read_as_lark_does(name: str) -> None:
    """Whole, and with a few letters, brackets and lines more or less."""
    constraint, theirs = python()
    text = (STANDARD_LIBRARY / name).read_text()
    assert parses(theirs, text) and accepts(constraint, text)
    rnd = random.Random(name)
    pieces = [*"()[]{}:,='\"#ax1. ", "\n", "\n    ", "    ", "\\\n", "'''"]
    short = "".join(text.splitlines(keepends=True)[: 60 + text.count("\n") // 4])
    refused = 0
    for _ in range(some(12, 6)):
        other = mutated(rnd, short, pieces)
        wanted = parses(theirs, other)
        assert accepts(constraint, other) is wanted, other
        refused += not wanted
    assert refused


@pytest.mark.slow
def test_the_standard_library_is_read_as_lark_does() -> None:
    constraint, theirs = python()
    read = 0
    for path in sorted(STANDARD_LIBRARY.glob("*.py"))[::3]:
        if path.stat().st_size > 50_000:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        wanted = parses(theirs, text)
        assert accepts(constraint, text) is wanted, path
        read += wanted
    assert read > 20


STATEMENTS = [
    "def f(x, *, y=1):\n    return [x,\n  y]\n",
    "class A:\n    a = 1\n    # c\n    def g(self): pass\nx = {1: 2}\n",
    "if a:\n  b\nelif c:\n   d\nelse:\n  e(f)\n",
    "'''s\n\n  t'''\nx = f\"a\"  # end\n",
    "match x:\n  case 1:\n    pass\n",
    "try:\n  1\nexcept A as b:\n  2\nfinally:\n  3\n",
    "@d\nasync def f(): await x\n",
]


@pytest.mark.parametrize("text", each(STATEMENTS, 2))
def test_beginnings_of_python_are_completed(text: str) -> None:
    constraint, theirs = python()
    state = constraint.start
    for place, byte in enumerate(text.encode()):
        state = constraint.advance(state, byte)
        assert state
        if place % 3 == 0:
            rest = constraint.shortest_text(state)
            assert len(rest) < 40
            assert parses(theirs, text[: place + 1] + rest.decode()), rest
            assert constraint.shortest_completion(state) == len(rest)
    assert constraint.is_accepting(state)


def test_masks_say_where_a_line_may_begin() -> None:
    constraint, _ = python()
    row = np.zeros(BYTES.n_words, np.uint32)

    def allowed(text: str) -> str:
        constraint.fill_mask(constraint.advance_bytes(constraint.start, text.encode()), row)
        return "".join(chr(byte) for byte in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:128]))

    # A body is indented, a line goes back to a column that is open, and brackets forget all that.
    assert "x" not in allowed("if a:\n") and " " in allowed("if a:\n")
    assert "x" in allowed("if a:\n  b\n") and "x" not in allowed("if a:\n  b\n ") and "x" in allowed("if a:\n  b\n  ")
    assert "x" in allowed("f(\n") and ")" in allowed("f(\n")
    constraint.fill_budget_mask(constraint.advance_bytes(constraint.start, b"if a:\n"), row, 4)
    assert np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() == [ord(" ")]


def test_what_cannot_be_completed_is_refused() -> None:
    class Own(TreeIndenter):
        def handle_NL(self, token: Any) -> Any:
            yield token

    for grammar, indenter, said in [
        (TREE, Own(), "methods of its own"),
        (TREE, object(), "no lark.indenter.Indenter"),
        (TREE.replace("args* )", "args* )"), PythonIndenter(), "no terminal that the rules read"),
        (TREE.replace('"(" (NAME', '"(" (_NL | NAME'), TreeIndenter(), "between brackets"),
        (TREE.replace("tree+ _DEDENT]", "tree+ NAME _DEDENT]"), TreeIndenter(), "something else than a new line"),
        (TREE.replace("args? _NL", "SHARP? _NL") + 'SHARP: "#!"\n', TreeIndenter(), "always read in the place"),
        (TREE.replace("args? _NL", "SHARP? _NL") + "SHARP.2: /[#+]/\n", TreeIndenter(), "may begin where _NL does"),
    ]:
        with pytest.raises(guided.UnsupportedError, match=said):
            guided.lark(grammar, postlex=indenter)
