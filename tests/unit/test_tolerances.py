"""Every tolerance of a comparison of floats has a reason: a name of `tests.tolerances`, or a comment where it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

COMPARISONS = {"approx", "allclose", "assert_allclose", "isclose"}
TOLERANCES = {"abs", "rel", "atol", "rtol", "abs_tol", "rel_tol"}


def without_reason(text: str) -> Iterator[int]:
    """Lines where a tolerance is a number and neither that line, nor the one before the statement, has a comment."""
    lines = text.split("\n")
    for statement in ast.walk(ast.parse(text)):
        if not isinstance(statement, (ast.Assert, ast.Expr, ast.Assign, ast.Return)):
            continue
        for node in ast.walk(statement):
            if (
                not isinstance(node, ast.Call)
                or getattr(node.func, "attr", getattr(node.func, "id", "")) not in COMPARISONS
            ):
                continue
            for keyword in node.keywords:
                if keyword.arg in TOLERANCES and any(
                    isinstance(each, ast.Constant) for each in ast.walk(keyword.value)
                ):
                    near = lines[statement.lineno - 2], *lines[statement.lineno - 1 : statement.end_lineno]
                    if not any("#" in line for line in near):
                        yield keyword.value.lineno


def test_every_tolerance_has_a_reason():
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        if any(name in text for name in COMPARISONS) and (lines := [*without_reason(text)]):
            found[path.relative_to(ROOT).as_posix()] = lines
    assert not found


@pytest.mark.parametrize(("text", "n"), [
    ("assert x == pytest.approx(1, abs=1e-3)", 1),
    ("np.testing.assert_allclose(x, y, rtol=1e-3, atol=DOUBLE)", 1),
    ("assert x == pytest.approx(1, abs=DOUBLE)", 0),
    ("assert x == pytest.approx(1, abs=0.1)  # three standard errors", 0),
    ("# Three standard errors.\nassert x == pytest.approx(1, abs=0.1)", 0),
    ("assert x == pytest.approx(1)", 0),
])  # fmt: skip
def test_a_number_without_a_reason_is_found(text, n):
    assert len([*without_reason("\n" + text)]) == n
