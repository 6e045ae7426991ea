"""Typed expressions of TypeScript: what is accepted has no error of TypeScript's compiler, whose verdicts are on file."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import guided
from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.typed_typescript import typescript_expression
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import mostly_slow
from tests.twin.typed_typescript import GOALS, VERDICTS, constraint_of

pytest.importorskip("tree_sitter_typescript")

IDIOMS = {
    "number": [
        "n", "0", "1.5", "n + ratio * 2", "points.length", "points[0].x", "distance(points[0], { x: 1, y: 2 })",
        "n > 0 ? n : 0 - n", "title.length % 2", "shape.area()", "shape.area(2)", "shape.corners.indexOf(points[0])",
        "account.balance / 100", "grid[0][1]", "longest(words, 2).length", "(n + 1) * (ratio - 2)",
        "new Account(title).balance", "configure({})[0]", 'n === 0 ? 1 : n', "words.filter(item => item.length > 2).length",
    ],
    "string": [
        '"done"', "`${n} of ${points.length}`", '"a" + n + title', "title.trim().toUpperCase()", "words[0][0]",
        'words.join(", ")', "kind", "shape.kind", "account.rename(title).owner", "ratio.toFixed(2)", 'kind === "circle" ? "o" : title',
        "words.slice(1).join()", '"ab".slice(0, 1)',
    ],
    "boolean": [
        "done", "!done", "n < 3 && ratio >= 0.5", 'kind === "circle"', 'kind !== "blob" || done', "n === ratio", "title === shape.name",
        "points.some(item => item.x > 0)", "shape.corners.every(item => item.x < item.y)", 'kinds.includes("square")',
        'title.startsWith("a") || title === "b"', "flags[0]", "shape.closed && shape.corners.length > 3", "(n < 1) && !shape.closed",
        'done && kind === "circle" && n > 2', "true",
    ],
    "Point": ["points[0]", "heavy[1]", "{ x: 1, y: n }", '{ x: 1, y: 2, label: "a" }', "done ? points[0] : { x: 0, y: 0 }", "shape.corners[2]"],
    "Point[]": ["[]", "[points[0], { x: 1, y: 2 }]", "heavy", "points.filter(item => item.x > 0)", "heavy.map(item => ({ x: item.x, y: 0 }))",
                "shape.corners.concat(heavy)", "words.map(item => points[item.length])"],
    "Kind": ["kind", '"circle"', "kinds[0]", 'done ? "circle" : kind', "pick(kind, []).kind"],
    "Options": ["{}", "{ limit: 1 }", '{ limit: n, title: "a" }', "options", "{ title: title }"],
    "Weighted": ['{ x: 1, y: 2, weight: 3, tags: ["a"] }', "heavy[0]"],
    "Account": ["account", 'new Account("a", 3)', "account.rename(title)"],
    "number[][]": ["[[1, 2], []]", "grid", "points.map(item => [item.x, item.y])"],
}  # fmt: skip

WRONG = {
    "number": [
        "title", "n + title", "points", "points[0]", "points[title]", "shape.secret", "points[0].label", "distance(points[0])",
        "distance(points[0], kind)", "longest(n)", "m", "n +", "n.length", "kind * 2", "options.limit", "account.deposit(1)", "n === 0",
        "done ? n : title", "{ x: 1 }", "item.x", "points.map(item => item.x)", "n === 0 && n === 1 ? 1 : 2", "01", "Account.balance",
    ],
    "string": ["n", "n + n", "done", "words", "title.length", "title.area()", "shape", "title - title", "points[0].label"],
    "boolean": [
        "n", "title", 'kind === "triangle"', "n === title", "n === 0 && n === 1", "n && done",
        "points.some(item => item.z > 0)", "points.some(n > 0)", "n < title", 'kinds.includes("oval")', 'kind === "circle" && kind === "blob"',
        "n === 0 && (n === 1)", 'title === "a" && title === "b"',
    ],
    "Point": ["{ x: 1 }", "{ x: 1, y: 2, z: 3 }", '{ x: 1, y: "a" }', "shape", "points", "options"],
    "Kind": ['"triangle"', "title", '"circ" + "le"', "kinds"],
    "Options": ["{ limit: title }", "{ size: 1 }", "points[0]", "n"],
    "Weighted": ["points[0]", "{ x: 1, y: 2 }", "{ x: 1, y: 2, weight: 3 }"],
    "Account": ["Account(title)", "new Account()", "new Account(1)", "account.deposit(1)"],
    "number[][]": ["[1, 2]", "grid[0]", "[[title]]"],
}  # fmt: skip


def accepts(constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


@pytest.mark.parametrize("goal", mostly_slow(GOALS, 2))
def test_what_is_accepted_has_no_error_of_the_compiler(goal):
    constraint = constraint_of(goal)
    texts = [(text, error) for of, text, error in json.loads(VERDICTS.read_text())["texts"] if of == goal]
    assert not [(text, error) for text, error in texts if error and accepts(constraint, text)]
    seen = Counter((not error, accepts(constraint, text)) for text, error in texts)
    # What is right and not accepted is in none of the forms that the grammar has: conditions that are no truth values,
    # names of the browser's.
    assert seen[True, True] > 2 * seen[True, False] and seen[False, False] > 10


@pytest.mark.parametrize("goal", mostly_slow([*GOALS[:2], *(goal for goal in IDIOMS if goal not in GOALS[:2])], 2))
def test_what_people_write_is_accepted(goal):
    assert [text for text in IDIOMS[goal] if not accepts(constraint_of(goal), text)] == []


@pytest.mark.parametrize("goal", mostly_slow(WRONG, 4))
def test_what_has_another_type_is_refused(goal):
    assert [text for text in WRONG[goal] if accepts(constraint_of(goal), text)] == []


def test_the_contracts_hold():
    declarations = "interface Point { x: number; label?: string } declare const points: Point[];"
    check_constraint(compiled("Point", declarations), walks=2, length=16, full_states=8)


def compiled(goal: str, declarations: str):
    return guided.compile(typescript_expression(goal, declarations), vocabularies.of_bytes())


def test_object_types_are_compared_by_their_members():
    declarations = """
        interface Named { name: string }
        interface Dog { name: string; bark(times?: number): string }
        interface Barking { bark(): string }
        interface Loud { bark(times: number, volume: number): string }
        interface Tagged { tag?: number }
        interface Tree { left: Tree; name: string }
        interface Twig { left: Twig; name: string }
        declare const dog: Dog; declare const tree: Tree; declare const named: Named; declare const barking: Barking;
    """
    for goal, taken, refused in (
        ("Named", ["dog", "named", "tree"], ["barking"]),
        ("Barking", ["dog", "barking"], ["named"]),
        ("Loud", ["dog", "barking"], ["tree"]),
        ("Dog", ["dog"], ["named", "barking"]),
        ("Tagged", ["{}", "{ tag: 1 }"], ["named", "dog"]),
        ("Twig", ["tree", "tree.left"], ["named"]),
    ):
        constraint = compiled(goal, declarations)
        assert all(accepts(constraint, text) for text in taken), goal
        assert not any(accepts(constraint, text) for text in refused), goal


def test_members_of_other_types_are_left_out_and_types_with_them_are_not_written_out():
    declarations = """
        declare class Base { constructor(id: number); private key: string; id: number }
        declare class Own extends Base { twice(): number; run<T>(of: T): T; when: Date }
        interface Handler { on: (event: string) => void; label: string }
        declare const own: Own; declare const handler: Handler;
    """
    constraint = compiled("Base", declarations)
    assert accepts(constraint, "own") and accepts(constraint, "new Base(1)")
    assert not accepts(constraint, "new Own(1)") and not accepts(constraint, "{ id: 1 }")
    numbers = compiled("number", declarations)
    assert accepts(numbers, "own.twice()") and accepts(numbers, "own.id")
    assert not any(accepts(numbers, text) for text in ("own.key.length", "own.run(1)", "own.when.getTime()"))
    assert not accepts(compiled("Handler", declarations), '{ label: "a" }')


def test_a_parameter_has_a_name_that_the_scope_has_not():
    constraint = compiled("number[]", "declare const item: number; declare const each: number[];")
    assert accepts(constraint, "each.map(it => it + item)") and not accepts(constraint, "each.map(item => item)")
    taken = "declare const item: number, each: number[], it: number, value: number;"
    assert not accepts(compiled("number[]", taken), "each.map(it => it)")


@pytest.mark.parametrize(
    ("goal", "declarations", "error", "said"),
    [
        ("number", "declare const n number;", GrammarError, "line 1, column 17.*this is not TypeScript|not TypeScript"),
        ("Date", "declare const n: number;", UnsupportedError, "the type Date is not known here"),
        ("number; let x", "declare const n: number;", GrammarError, "is no type"),
        ("number", "declare const when: Date;", UnsupportedError, "the name when has no type.*line 1"),
        ("number", "declare function f<T>(of: T): number;", UnsupportedError, "the function f"),
        ("number", "import x from 'y';", UnsupportedError, "line 1, column 1"),
        (
            "number",
            "interface A { x: number }\ninterface A { y: number }",
            UnsupportedError,
            "a second declaration of A",
        ),
        ("number", "let a: number; let a: string;", UnsupportedError, "a second declaration of a"),
        ("number", "interface A extends B {}\ninterface B extends A {}", GrammarError, "extends itself"),
        ("A", "type A = B; type B = A;", UnsupportedError, "declared by itself"),
        ("Deep", "declare class Deep { private constructor(); }", UnsatisfiableError, "has the type Deep"),
        ("number", "interface A<T> { x: T }", UnsupportedError, "type parameters"),
    ],
)
def test_what_is_wrong_is_said(goal, declarations, error, said):
    with pytest.raises(error, match=said):
        typescript_expression(goal, declarations)
