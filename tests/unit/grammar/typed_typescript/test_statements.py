"""Typed statements of TypeScript: what is accepted has no error of TypeScript's compiler, whose verdicts are on file."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import guided
from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.typed_typescript import typescript_statements
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import mostly_slow
from tests.twin.typed_typescript import RETURNS, VERDICTS, body_constraint_of

pytest.importorskip("tree_sitter_typescript")

DECLARATIONS = """
    interface Point { x: number; readonly y: number; kind: "near" | "far" }
    declare let n: number, title: string, done: boolean, kind: "near" | "far";
    declare const points: Point[], names: string[];
    declare function show(text: string): void;
"""


@pytest.fixture(scope="module")
def numbers():
    grammar = typescript_statements(DECLARATIONS, returns="number", levels=2)
    return guided.compile(grammar, vocabularies.of_bytes())


def accepts(constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


@pytest.mark.parametrize("returns", mostly_slow(RETURNS, 1))
def test_what_is_accepted_has_no_error_of_the_compiler(returns):
    constraint = body_constraint_of(returns)
    bodies = [(text, error) for of, text, error in json.loads(VERDICTS.read_text())["bodies"] if of == returns]
    assert not [(text, error) for text, error in bodies if error and accepts(constraint, text)]
    seen = Counter((not error, accepts(constraint, text)) for text, error in bodies)
    assert seen[True, True] > 10 and seen[False, False] > 5


@pytest.mark.parametrize(
    "text",
    [
        "return n;\n",
        "n = 1;\nn += points.length;\nreturn n;\n",
        "points[0].x *= 2;\nreturn points[0].x;\n",
        'points[0].kind = "far";\nreturn 0;\n',
        "show(title);\nreturn 1;\n",
        "names.push(title);\nreturn names.length;\n",
        "if (done) {\n  return 1;\n} else {\n  return 2;\n}\n",
        "if (n === 0) {\n  return 1;\n}\nn -= 1;\nreturn n;\n",
        "for (const item of points) {\n  if (item.x > n) {\n    n = item.x;\n  }\n}\nreturn n;\n",
        "while (n < 9) {\n  n += 1;\n  if (done) {\n    break;\n  }\n}\nreturn n;\n",
        'if (kind === "near") {\n  n = 1;\n} else if (n > 2) {\n  n = 3;\n}\nreturn n;\n',
        'title += "a" + n;\nkind = "far";\nreturn title.length;\n',
    ],
)
def test_what_people_write_is_accepted(numbers, text):
    assert accepts(numbers, text)


@pytest.mark.parametrize(
    "text",
    [
        "return title;\n",
        "n = 1;\n",  # nothing is returned
        "if (done) {\n  return 1;\n}\n",
        "points = [];\nreturn 1;\n",
        "points[0].y = 1;\nreturn 1;\n",
        "n = title;\nreturn 1;\n",
        "title -= title;\nreturn 1;\n",
        "show(n);\nreturn 1;\n",
        "names.push(n);\nreturn 1;\n",
        "break;\nreturn 1;\n",
        "for (const item of points) {\n  n = item;\n}\nreturn 1;\n",
        "for (const item of n) {\n  n = 1;\n}\nreturn 1;\n",
        "for (const item of points) {\n  n = 1;\n}\nreturn item.x;\n",
        "if (n === 0) {\n  if (n === 1) {\n    n = 2;\n  }\n}\nreturn 1;\n",
        'kind = "near";\nif (kind === "far") {\n  n = 1;\n}\nreturn 1;\n',
        'kind = "middle";\nreturn 1;\n',
        "return 1\n",
    ],
)
def test_what_has_an_error_is_refused(numbers, text):
    assert not accepts(numbers, text)


def test_the_contracts_hold(numbers):
    check_constraint(numbers, walks=1, length=16, full_states=4)


def test_what_is_wrong_is_said():
    with pytest.raises(GrammarError, match="-1 levels"):
        typescript_statements(DECLARATIONS, levels=-1)
    with pytest.raises(UnsatisfiableError, match="no statements return such a result"):
        typescript_statements("declare class Own { private constructor(); }", returns="Own")
