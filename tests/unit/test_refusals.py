"""No test passes because everything is refused: refusals are counted, and fail where one is planted."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import pytest

import guided
from guided.errors import LimitError, UnsatisfiableError
from tests.amounts import Refusals
from tests.conftest import ROOT

REFUSALS = {"GuidedError", "GrammarError", "LimitError", "UnsatisfiableError", "UnsupportedError", "VocabularyError"}

OUTCOMES = {
    "tests/exact/test_cars_exact.py": 5,
}
"""Handlers that pass over refusals where these are outcomes of a law, whose probabilities are summed: by file."""


def test_refusals_are_counted():
    with Refusals(most=0.5) as refusals:
        for trial in range(4):
            with refusals.trial(UnsatisfiableError, LimitError):
                if trial % 2:
                    raise UnsatisfiableError("planted")
    assert (refusals.n_trials, refusals.n_refused) == (4, 2)


def test_too_many_refusals_fail():
    refusals = Refusals(most=0.5)
    for trial in range(3):
        with refusals.trial(UnsatisfiableError):
            if trial:
                raise UnsatisfiableError("planted")
    with pytest.raises(AssertionError, match="refused: 2 of 3, more than 50%"), refusals:
        pass


def test_no_trial_at_all_fails():
    with pytest.raises(AssertionError, match="there was no trial"), Refusals(most=1):
        pass


def test_other_errors_are_not_passed_over():
    with pytest.raises(LimitError, match="another"), Refusals(most=1) as refusals, refusals.trial(UnsatisfiableError):
        raise LimitError("another")


PLANTED = [
    ("tests.unit.automata.lexer.test_far_bounds", "test_masks_under_bounds_on_both_sides", ("[0-9]b", 6)),
    ("tests.unit.automata.lexer.test_far_bounds", "test_bounds_on_both_sides_beside_what_is_searched_for", ((2, 5),)),
    (
        "tests.unit.automata.lexer.test_far_bounds",
        "test_masks_of_what_is_found_or_not_and_none_of_some_words",
        ("ab",),
    ),
    ("tests.unit.automata.lexer.test_bounded_patterns", "test_masks_of_bounded_patterns", ("^(a|b)+$",)),
    ("tests.unit.automata.lexer.test_bounded_patterns", "test_masks_of_several_bounded_patterns", ()),
    ("tests.unit.constraint.distinct.test_distinct_exact", "test_random_finite_schemas", ()),
    ("tests.unit.constraint.engine.test_budgets", "test_budgets_are_kept_by_vocabularies_with_gaps", ()),
    (
        "tests.unit.grammar.json_schema.keywords.test_patterns_in_the_middle",
        "test_random_patterns_come_to_no_limit",
        (),
    ),
    ("tests.unit.grammar.json_schema.sets.test_clauses", "test_random_branches_agree_with_jsonschema", (16, "any")),
    ("tests.oracle.test_json_schema_generation", "test_generated_texts_are_valid", (0,)),
    ("tests.oracle.test_json_schema_random", "test_random_schemas_agree_with_jsonschema", (0,)),
    ("tests.oracle.test_lark_random_lexers", "test_random_lexers", (0,)),
    ("tests.oracle.test_regex_against_re", "test_atomic_groups_match_what_re_matches", (0,)),
    ("tests.oracle.test_lark_tables", "test_tables_are_larks", ()),
    ("tests.laws.test_engine_against_twin", "test_seeded_grammars", (0,)),
    ("tests.laws.test_special_token_laws", "test_random_grammars", (0,)),
    ("tests.laws.test_stack_budgets", "test_random_grammars_end_in_time", ()),
]
"""Tests that meet refusals, and arguments for each."""

COMPILERS = ("compile", "Constraint", "json_schema", "parse", "lark", "load")


@pytest.mark.parametrize(("module", "name", "arguments"), PLANTED)
@pytest.mark.parametrize("error", [guided.UnsatisfiableError, guided.UnsupportedError])
def test_refusing_everything_fails(module, name, arguments, error, monkeypatch):
    def refuse(*_, **__):
        raise error("planted", where="#")

    there = importlib.import_module(module)
    test = getattr(there, name)
    for compiler in COMPILERS:
        monkeypatch.setattr(guided, compiler, refuse, raising=False)
        if hasattr(there, compiler):
            monkeypatch.setattr(there, compiler, refuse)
    extra = (monkeypatch,) if "monkeypatch" in test.__code__.co_varnames else ()
    with pytest.raises((AssertionError, guided.GuidedError, pytest.fail.Exception)):
        test(*arguments, *extra)


def names_of(node: ast.expr | None) -> set[str]:
    found = ast.walk(node) if node else ()
    return {getattr(each, "attr", getattr(each, "id", "")) for each in found}


def says_nothing(statement: ast.stmt) -> bool:
    """Nothing that a refusal could be counted by: ``pass``, ``continue``, ``return`` without a value."""
    value = statement.value if isinstance(statement, ast.Return) else None
    silent = value is None or (
        isinstance(value, ast.Constant) and value.value in (None, 0) and value.value is not False
    )
    return isinstance(statement, (ast.Pass, ast.Continue)) or (isinstance(statement, ast.Return) and silent)


def passed_over(tree: ast.AST) -> Iterator[int]:
    """Lines that pass over refusals without counting or judging them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            silent = names_of(node.type) & REFUSALS and all(map(says_nothing, node.body))
        elif isinstance(node, ast.Call):
            called = names_of(node.func)
            caught = {name for each in node.args for name in names_of(each)} & REFUSALS
            silent = called & {"assume", "reject"} or ("suppress" in called and caught)
        else:
            continue
        if silent:
            yield node.lineno


WORDS = ("except ", "suppress(", "assume(", "reject(")


def test_no_refusal_is_passed_over():
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        lines = [*passed_over(ast.parse(text))] if any(word in text for word in WORDS) else []
        name = path.relative_to(ROOT).as_posix()
        if len(lines) != OUTCOMES.get(name, 0):
            found[name] = lines
    assert not found


@pytest.mark.parametrize("text", [
    "try:\n    f()\nexcept UnsatisfiableError:\n    pass",
    "while f():\n    try:\n        f()\n    except (guided.LimitError, ValueError):\n        continue",
    "def f():\n    try:\n        g()\n    except GuidedError:\n        return None",
    "with contextlib.suppress(guided.UnsatisfiableError):\n    f()",
    "assume(compiles(text))",
])  # fmt: skip
def test_what_passes_over_is_found(text):
    assert [*passed_over(ast.parse(text))]


def test_what_counts_is_not_found():
    text = "try:\n    f()\nexcept GuidedError:\n    refused += 1\n    continue\nexcept OSError:\n    pass"
    assert not [*passed_over(ast.parse(text))]
