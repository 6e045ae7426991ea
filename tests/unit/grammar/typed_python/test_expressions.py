"""Typed expressions of Python: accepted exactly where a type checker of the test's own accepts, and where mypy does."""

from __future__ import annotations

import ast
import itertools
import random
from dataclasses import dataclass
from typing import get_args, get_origin

import numpy as np
import pytest

import guided
from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.typed_python import python_expression
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import some

VOCABULARY = vocabularies.of_bytes()


@dataclass
class Shape:
    name: str
    corners: list[Point]
    secret: dict[str, int]
    """A type that is not known: left out."""

    def area(self, scale: float = 1.0) -> float:
        return scale

    @property
    def first(self) -> Point:
        return self.corners[0]

    def _hidden(self) -> int:
        return 0


@dataclass
class Point:
    x: int
    y: float

    def moved(self, by: int, much: float, back: bool = False) -> Point:
        return self

    def of(self, shapes: list[Shape]) -> Shape:
        return shapes[0]


@dataclass
class Square(Shape):
    side: int


def longest(texts: list[str], least: int = 0) -> str:
    return texts[least]


NAMES = {
    "n": int, "ratio": float, "done": bool, "title": str, "points": list[Point], "shape": Shape, "square": Square,
    "words": list[str], "flags": list[bool],
}  # fmt: skip
FUNCTIONS = {"Point": Point, "longest": longest}
GOALS = [int, float, bool, str, Point, Shape, list[str], list[Point], list[int]]

# --- a type checker of the same syntax, by its own tables ---

FIELDS = {
    Shape: {"name": str, "corners": list[Point], "first": Point},
    Point: {"x": int, "y": float},
    Square: {"name": str, "corners": list[Point], "first": Point, "side": int},
}
METHODS = {
    Shape: {"area": ([float], 0, float)},
    Square: {"area": ([float], 0, float)},
    Point: {"moved": ([int, float, bool], 2, Point), "of": ([list[Shape]], 1, Shape)},
    str: {
        "upper": ([], 0, str), "lower": ([], 0, str), "strip": ([], 0, str), "title": ([], 0, str),
        "split": ([], 0, list[str]), "isdigit": ([], 0, bool), "startswith": ([str], 1, bool),
        "endswith": ([str], 1, bool), "count": ([str], 1, int), "replace": ([str, str], 2, str),
    },
}  # fmt: skip
CALLS = {"Point": ([int, float], 2, Point), "longest": ([list[str], int], 1, str)}
FITS = {(bool, int), (bool, float), (int, float), (Square, Shape)}


class Wrong(Exception):
    """An expression has no type, or another than it should."""


def check(node, wanted):
    """Raise `Wrong` unless an expression may be assigned to the type."""
    if isinstance(node, ast.List):
        if get_origin(wanted) is not list:
            raise Wrong
        for each in node.elts:
            check(each, get_args(wanted)[0])
        return
    kind = type_of(node)
    if kind != wanted and (kind, wanted) not in FITS:
        raise Wrong


def arguments(call, parameters, required):
    if not required <= len(call.args) <= len(parameters):
        raise Wrong
    for given, wanted in zip(call.args, parameters, strict=False):
        check(given, wanted)


def type_of(node):
    match node:
        case ast.Constant(value):
            return type(value)
        case ast.Name(name) if name in NAMES:
            return NAMES[name]
        case ast.Call(ast.Name(name)) if name in CALLS:
            arguments(node, *CALLS[name][:2])
            return CALLS[name][2]
        case ast.Call(ast.Attribute(owner, name)):
            kind = type_of(owner)
            table = METHODS.get(kind, {})
            if get_origin(kind) is list:
                table = {"count": ([get_args(kind)[0]], 1, int), "copy": ([], 0, kind)}
            if name not in table:
                raise Wrong
            arguments(node, *table[name][:2])
            return table[name][2]
        case ast.Attribute(owner, name):
            fields = FIELDS.get(type_of(owner), {}) if type_of(owner) in list(FIELDS) else {}
            if name not in fields:
                raise Wrong
            return fields[name]
        case ast.Subscript(owner, index):
            kind = type_of(owner)
            if get_origin(kind) is not list:
                raise Wrong
            check(index, int)
            return get_args(kind)[0]
        case ast.BinOp(left, sign, right):
            kinds = {type_of(left), type_of(right)}
            if kinds == {str} and isinstance(sign, ast.Add):
                return str
            if kinds <= {bool, int} and not isinstance(sign, ast.Div):
                return int
            if kinds <= {bool, int, float}:
                return float
        case ast.BoolOp(_, values) if all(type_of(value) is bool for value in values):
            return bool
        case ast.UnaryOp(ast.Not(), value) if type_of(value) is bool:
            return bool
        case ast.Compare(left, [_], [right]):
            kinds = {type_of(left), type_of(right)}
            if kinds == {str} or kinds <= {bool, int, float}:
                return bool
    raise Wrong


def well_typed(text, goal):
    try:
        check(ast.parse(text, mode="eval").body, goal)
    except (Wrong, SyntaxError):
        return False
    return True


# --- texts ---


def composed(rnd, depth, wants_tail=False):
    """A random expression in the grammar's layout, of any type or none."""
    if depth == 0 or rnd.random() < 0.2:
        literals = ['"ab"'] if wants_tail else ["0", "12", "0.5", "True", "False", '""', '"ab"', "[]"]
        return rnd.choice([*NAMES, *NAMES, *literals])
    deeper = lambda: composed(rnd, depth - 1)  # noqa: E731
    several = lambda: ", ".join(deeper() for _ in range(rnd.randint(0, 3)))  # noqa: E731
    members = ["name", "corners", "x", "y", "first", "side", "secret", "_hidden", "area", "nothing"]
    calls = ["area", "moved", "of", "upper", "split", "count", "copy", "replace", "isdigit", "_hidden"]
    ways = [
        lambda: f"{composed(rnd, depth - 1, True)}.{rnd.choice(members)}",
        lambda: f"{composed(rnd, depth - 1, True)}.{rnd.choice(calls)}({several()})",
        lambda: f"{composed(rnd, depth - 1, True)}[{deeper()}]",
        lambda: f"{rnd.choice(list(FUNCTIONS))}({several()})",
    ]
    if not wants_tail:
        ways += [
            lambda: f"({deeper()})",
            lambda: f"{deeper()} {rnd.choice(['+', '-', '*', '/', '//', '%'])} {deeper()}",
            lambda: f"{deeper()} {rnd.choice(['<', '<=', '>', '>=', '==', '!='])} {deeper()}",
            lambda: f"{deeper()} {rnd.choice(['and', 'or'])} {deeper()}",
            lambda: f"not {deeper()}",
            lambda: f"[{several()}]",
        ]
    return rnd.choice(ways)()


def tailed(text):
    """Whether something hangs on what the grammar lets nothing hang on: a parenthesis, a list, a number."""
    postfix = (ast.Attribute, ast.Subscript)
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, postfix):
            owner = node.value
            literal = isinstance(owner, ast.Constant) and isinstance(owner.value, str)
            if not literal and not isinstance(owner, (ast.Name, ast.Call, *postfix)):
                return True
    return False


def sampled(rnd, constraint, most=40):
    """A text of the language by a random walk over bytes."""
    state, data = constraint.start, b""
    bits = np.zeros(constraint.vocabulary.n_words, np.uint32)
    while len(data) < most:
        constraint.fill_budget_mask(state, bits, most - len(data))
        allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
        if constraint.is_accepting(state) and rnd.random() < 0.1:
            break
        token = int(rnd.choice(list(allowed)))
        piece = constraint.vocabulary.token_bytes(token)
        if not piece:
            break
        data += piece
        state = constraint.advance(state, token)
    return data.decode()


@pytest.fixture(scope="module")
def constraints():
    return [guided.compile(python_expression(goal, NAMES, functions=FUNCTIONS), VOCABULARY) for goal in GOALS]


def accepts(constraint, text):
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


def test_what_is_accepted_is_well_typed(constraints):
    rnd = random.Random(0)
    lengths = 0
    for goal, constraint in zip(GOALS, constraints, strict=True):
        for _ in range(some(200, 8)):
            text = sampled(rnd, constraint)
            assert accepts(constraint, text) and well_typed(text, goal), text
            lengths += len(text)
    assert lengths > 10 * len(GOALS) * some(200, 8)


def test_random_expressions_are_accepted_where_they_are_well_typed(constraints):
    rnd = random.Random(1)
    seen = {True: 0, False: 0}
    for _ in range(some(24_000, 16)):
        text = composed(rnd, rnd.randint(1, 3))
        try:
            if tailed(text):
                continue
        except SyntaxError:
            pass
        for goal, constraint in zip(GOALS, constraints, strict=True):
            expected = well_typed(text, goal)
            assert accepts(constraint, text) == expected, (text, goal)
            seen[expected] += 1
    assert min(seen.values()) > some(8_000, 16)


def test_one_name_for_another_is_told_apart(constraints):
    """Texts of the language with one of their words replaced: nearly right, and judged right."""
    rnd = random.Random(2)
    words = [*NAMES, *FUNCTIONS, "x", "y", "side", "name", "first", "True", "1", "0.5", '"a"']
    seen = {True: 0, False: 0}
    for _ in range(some(1600)):
        number = rnd.randrange(len(GOALS))
        text = sampled(rnd, constraints[number])
        old = rnd.choice([word for word in words if word in text] or ["n"])
        changed = text.replace(old, rnd.choice(words), 1)
        try:
            ast.parse(changed, mode="eval")
            if tailed(changed):
                continue
        except SyntaxError:
            pass
        if any(each.isdigit() and before.isdigit() for before, each in itertools.pairwise(changed)):
            continue  # digits that met: 01, or letters within a string
        expected = well_typed(changed, GOALS[number])
        if accepts(constraints[number], changed) != expected:
            assert '"' in changed or "." in changed, changed  # a word inside a string, or a number that grew
            continue
        seen[expected] += 1
    assert min(seen.values()) > 30


@pytest.mark.slow
def test_mypy_agrees(constraints, tmp_path):
    """Of sampled texts, each assigned to a variable of its goal, mypy finds none wrong; and of ill-typed ones many."""
    api = pytest.importorskip("mypy.api")
    rnd = random.Random(3)
    lines = [ast.unparse(ast.parse("from __future__ import annotations\nfrom typed_scope import *"))]
    declared = {int: "int", float: "float", bool: "bool", str: "str", Point: "Point", Shape: "Shape"}
    for goal, constraint in zip(GOALS, constraints, strict=True):
        written = declared.get(goal) or f"list[{declared[get_args(goal)[0]]}]"
        lines += [f"v{len(lines)}_{n}: {written} = {sampled(rnd, constraint)}" for n in range(60)]
    import inspect

    scope = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    scope += "\n".join(inspect.getsource(each) for each in (Shape, Point, Square, longest))
    scope += "\n" + "\n".join(
        f"{name}: {declared.get(kind) or getattr(kind, '__name__', '')}" if get_origin(kind) is None
        else f"{name}: list[{declared[get_args(kind)[0]]}]"
        for name, kind in NAMES.items()
    )  # fmt: skip
    (tmp_path / "typed_scope.py").write_text(scope + "\n")
    (tmp_path / "texts.py").write_text("\n".join(lines) + "\n")
    out, err, status = api.run(
        ["--no-incremental", "--config-file=", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "texts.py")]
    )
    assert status == 0 and not err, out
    (tmp_path / "texts.py").write_text("\n".join([lines[0], "v: int = ratio", "w: str = points[0].x"]) + "\n")
    assert api.run(["--config-file=", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "texts.py")])[2] == 1


def test_the_contracts_hold(constraints):
    check_constraint(constraints[0], walks=3, length=20, full_states=20)
    check_constraint(constraints[7], walks=3, length=20, full_states=20)


def test_what_is_wrong_is_said():
    class Deep:
        where: int

    for what, error, said in (
        (lambda: python_expression(dict[str, int], NAMES), UnsupportedError, "dict"),
        (lambda: python_expression(int, {"n": object}), UnsupportedError, "the type object.*n"),
        (lambda: python_expression(int, {"n n": int}), GrammarError, "'n n' is no name"),
        (lambda: python_expression(int, {"if": int}), GrammarError, "'if' is no name"),
        (lambda: python_expression(int, {}, functions={"f": lambda a: 1}), UnsupportedError, "the function f"),
        (lambda: python_expression(Deep, {"n": int}), UnsatisfiableError, "has the type Deep"),
    ):
        with pytest.raises(error, match=said):
            what()
