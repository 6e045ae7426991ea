"""Typed statements of Python: accepted just where a checker of the test's own accepts, and where mypy does."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from dataclasses import dataclass
from typing import get_args, get_origin

import pytest

import guided
from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.typed_python import python_statements
from guided.testing import check_constraint
from tests.amounts import some
from tests.unit.grammar.typed_python.test_expressions import (
    FITS,
    FUNCTIONS,
    NAMES,
    VOCABULARY,
    Point,
    Shape,
    Square,
    Wrong,
    accepts,
    check,
    composed,
    longest,
    sampled,
    tailed,
    type_of,
)

READ_ONLY = {"first"}
LEVELS = 2
SIGNS = {ast.Add: {int, float, str}, ast.Sub: {int, float}, ast.Mult: {int, float}, ast.FloorDiv: {int, float}, ast.Mod: {int, float}, ast.Div: {float}}  # fmt: skip


def target_type(node):
    """The type of what is assigned to."""
    match node:
        case ast.Name(name) if name in NAMES:
            return NAMES[name]
        case ast.Attribute(ast.Name(owner), name) if owner in NAMES and name not in READ_ONLY:
            return type_of(node)
    raise Wrong


def check_body(body, returns, loop):
    """Raise `Wrong` for statements that are wrong; whether every way through them returns."""
    for number, node in enumerate(body):
        last = number == len(body) - 1
        match node:
            case ast.Pass():
                pass
            case ast.Break() | ast.Continue():
                if not loop or not last:
                    raise Wrong
            case ast.Assign([target], value):
                check(value, target_type(target))
            case ast.AugAssign(target, sign, value):
                kind = target_type(target)
                if kind not in SIGNS[type(sign)]:
                    raise Wrong
                check(value, kind)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [item])) if (
                get_origin(NAMES.get(name)) is list
            ):
                check(item, get_args(NAMES[name])[0])
            case ast.Expr(ast.Call() as call):
                owner = call.func
                while isinstance(owner, ast.Attribute):
                    owner = owner.value
                if not isinstance(owner, ast.Name):
                    raise Wrong
                type_of(call)
            case ast.While(condition, inner, []):
                check(condition, bool)
                check_body(inner, returns, True)
            case ast.For(ast.Name(name), items, inner, []) if name in NAMES:
                kind = type_of(items)
                if get_origin(kind) is not list:
                    raise Wrong
                item = get_args(kind)[0]
                if item != NAMES[name] and (item, NAMES[name]) not in FITS:
                    raise Wrong
                check_body(inner, returns, True)
            case ast.If(condition, inner, other):
                check(condition, bool)
                ways = [check_body(inner, returns, loop), bool(other) and check_body(other, returns, loop)]
                if all(ways) and not last:
                    raise Wrong
                if all(ways):
                    return True
            case ast.Return(value):
                if not last or (value is None) is not (returns is None):
                    raise Wrong
                if value is not None:
                    check(value, returns)
                return True
            case _:
                raise Wrong
    return False


def well_typed(text, returns):
    try:
        # A function around it, as in a program.
        tree = ast.parse("def f():\n" + textwrap.indent(text, "    ")).body[0]
        return check_body(tree.body, returns, False) or returns is None
    except (Wrong, SyntaxError):
        return False


def statement(rnd, level, loop):
    """A random statement in the grammar's layout."""
    margin, name = "    " * level, rnd.choice([*NAMES, *NAMES, "shape.name", "square.side", "shape.first", "other"])
    value = composed(rnd, rnd.randint(0, 2))
    ways = [f"{name} = {value}", f"{name} {rnd.choice(['+', '-', '*', '/', '//', '%'])}= {value}", f"{rnd.choice(['words', 'points', 'n'])}.append({value})", "pass", f"return {value}", rnd.choice(["break", "continue", "return", "title.upper()", "shape.area(ratio)", "longest(words, n)", "n"])]  # fmt: skip
    if level >= LEVELS or rnd.random() < 0.6:
        return f"{margin}{rnd.choice(ways)}\n"
    condition = rnd.choice(["done", "n < ratio", "not done", value])
    head = rnd.choice([f"if {condition}", f"while {condition}", f"for {rnd.choice(['n', 'title', 'shape', 'done', 'other'])} in {rnd.choice(['words', 'flags', 'shape.corners', 'title.split()', value])}"])  # fmt: skip
    text = f"{margin}{head}:\n{block(rnd, level + 1, loop or head[0] != 'i')}"
    if head[0] == "i" and rnd.random() < 0.6:
        text += f"{margin}else:\n{block(rnd, level + 1, loop)}"
    return text


def block(rnd, level, loop):
    return "".join(statement(rnd, level, loop) for _ in range(rnd.choice([1, 1, 2])))


@pytest.fixture(scope="module")
def constraints():
    return {
        returns: guided.compile(
            python_statements(NAMES, functions=FUNCTIONS, returns=returns, levels=LEVELS), VOCABULARY
        )
        for returns in (None, float)
    }


def parts(text):
    """Whether all expressions are in the grammar's layout."""
    for node in ast.walk(ast.parse("def f():\n" + textwrap.indent(text, "    "))):
        if (
            isinstance(node, ast.expr)
            and not isinstance(getattr(node, "ctx", None), ast.Store)
            and tailed(ast.unparse(node))
        ):
            return False
    return True


def test_what_is_accepted_is_well_typed(constraints) -> None:
    rnd = random.Random(0)
    for returns, constraint in constraints.items():
        for _ in range(some(400, 8)):
            text = sampled(rnd, constraint, 90)
            assert accepts(constraint, text)
            assert well_typed(text, returns), text


def test_random_statements_are_accepted_where_they_are_well_typed(constraints) -> None:
    rnd = random.Random(1)
    seen = {True: 0, False: 0}
    for trial in range(some(24_000, 16)):
        text = block(rnd, 0, False)
        if trial % 2:
            text += "return ratio\n"
        try:
            if not parts(text):
                continue
        except SyntaxError:
            pass
        for returns, constraint in constraints.items():
            wanted = well_typed(text, returns)
            assert accepts(constraint, text) is wanted, (text, returns)
            seen[wanted] += 1
    assert min(seen.values()) >= some(2_000, 16), seen


@pytest.mark.slow
def test_mypy_agrees(constraints, tmp_path) -> None:
    """Of sampled bodies of functions mypy finds none wrong, and of ill-typed ones it finds each."""
    api = pytest.importorskip("mypy.api")
    rnd = random.Random(3)
    scope = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    scope += "\n".join(inspect.getsource(each) for each in (Shape, Point, Square, longest))
    declared = {int: "int", float: "float", bool: "bool", str: "str", Point: "Point", Shape: "Shape", Square: "Square"}
    arguments = ", ".join(
        f"{name}: {declared[kind] if get_origin(kind) is None else f'list[{declared[get_args(kind)[0]]}]'}"
        for name, kind in NAMES.items()
    )

    def function(number: int, returns: str, body: str) -> str:
        return f"def f{number}({arguments}) -> {returns}:\n{textwrap.indent(body, '    ')}\n"

    good = [
        function(number, "None" if returns is None else "float", sampled(rnd, constraint, 120))
        for returns, constraint in constraints.items()
        for number in range(40)
    ]
    bad = [
        function(0, "float", body)
        for body in ("n = ratio\nreturn ratio\n", "if done:\n    return n\n", "return title\n")
    ]

    def verdict(functions: list[str]) -> int:
        (tmp_path / "texts.py").write_text(scope + "\n" + "\n".join(functions))
        flags = ["--config-file=", "--disable-error-code=no-redef", "--cache-dir", str(tmp_path / "cache")]
        out, _, status = api.run([*flags, str(tmp_path / "texts.py")])
        return len([line for line in out.splitlines() if ": error:" in line]) if status else 0

    assert verdict(good) == 0
    assert [verdict([each]) for each in bad] == [1, 1, 1]


def test_contracts(constraints) -> None:
    check_constraint(constraints[float], walks=2, length=20, full_states=3, threads=0)


def test_levels_and_what_is_wrong() -> None:
    inside = guided.compile(python_statements({"n": int}, levels=1, indent=1), VOCABULARY)
    assert accepts(inside, "    while n < 3:\n        n += 1\n")
    assert not accepts(inside, "    while n < 3:\n        while n < 2:\n            pass\n")
    assert not accepts(inside, "n += 1\n")
    assert not accepts(inside, "    break\n")
    assert accepts(inside, "    while n < 3:\n        if n < 2:\n") is False

    @dataclass(frozen=True)
    class Fixed:
        x: int

    frozen = guided.compile(python_statements({"it": Fixed, "n": int}), VOCABULARY)
    assert accepts(frozen, "n = it.x\n")
    assert not accepts(frozen, "it.x = n\n")
    with pytest.raises(GrammarError, match="levels"):
        python_statements({"n": int}, levels=-1)
    with pytest.raises(UnsatisfiableError, match="result"):
        python_statements({"n": int}, returns=Point)
    with pytest.raises(UnsupportedError):
        python_statements({"n": dict})
