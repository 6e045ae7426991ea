"""What modules load when they are imported, what they say of themselves, and the public names.

Which parts of the package may import which others is in `test_structure`.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import guided
from tests.statements import PARTS

PACKAGE = Path(guided.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

OPTIONAL = {
    "sqlalchemy", "sqlglot", "llguidance", "xgrammar", "outlines_core", "sentencepiece", "tiktoken", "matplotlib",
    "pandas", "polars", "pyarrow", "ray", "rdkit", "mlx", "mlx_lm", "llama_cpp", "sglang", "outlines",
    "langchain_core", "llama_index", "instructor", "dspy", "openai",
}  # fmt: skip
"""Not among the core dependencies: imported inside functions only, but for the module of `serving` that is named so."""

HEAVY = {"torch", "transformers", "numba", "lark", "jsonschema", "pydantic", "typer", "rich"}

TORCH = {
    "testing",
    "lm",
    "steer",
    "monitor",
    "infer",
    "draft",
    "server",
    "search",
    "diffusion",
    "hf",
    "serving",
    "eval",
    "cli",
    "nano",
}
"""The parts whose modules may load torch when they are loaded, which is a user's choice; no other ever uses it."""

PUBLIC = [
    "Constraint", "FieldState", "Grammar", "GrammarError", "GuidedError", "JsonStream", "LimitError", "Limits", "Stack",
    "Tag", "TextError", "ToolChoice", "ToolStyle", "UnsatisfiableError", "UnsupportedError", "Vocabulary",
    "VocabularyError", "agenerate", "allocate_masks", "apply_masks", "astream", "canonical", "captures", "choice", "choice_probabilities",
    "compile", "ebnf", "either", "extract", "fill_masks", "free_text", "gbnf", "generate", "grammar", "heal", "json_schema",
    "lark", "optional", "partial_json", "regex", "repeat", "sequence", "special_token", "sql", "structural_tag", "tags",
    "think", "tool_calls",
]  # fmt: skip
"""Adding a public name is a decision: change this list with it, and the README."""


def part(path: Path) -> str:
    """The part of the package that a module belongs to; empty for the root."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first in ("__init__.py", "__main__.py") else first.removesuffix(".py")


@cache
def imported(path: Path) -> list[tuple[str, int, bool]]:
    """Every module that a file imports, with the line, and whether that happens when the file is loaded."""
    return _imported(ast.parse(path.read_text()), path)


def _imported(module: ast.Module, path: Path) -> list[tuple[str, int, bool]]:
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, at_load: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inner = at_load and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            if isinstance(child, ast.If) and "TYPE_CHECKING" in map(vars(child.test).get, ("id", "attr")):
                inner = False
            if isinstance(child, ast.Import):
                found.extend((alias.name, child.lineno, at_load) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno}: relative import"
                found.append((child.module or "", child.lineno, at_load))
                if child.module == "guided":
                    found.extend((f"guided.{alias.name}", child.lineno, at_load) for alias in child.names)
            # Imports are in no expression.
            if isinstance(child, PARTS):
                visit(child, inner)

    visit(module, True)
    return found


def imports_of(own: str) -> Iterator[tuple[Path, str, int, bool]]:
    """Every import in the modules of a part."""
    return ((path, *each) for path in MODULES if part(path) == own for each in imported(path))


@pytest.mark.parametrize("own", sorted({part(path) for path in MODULES}))
def test_what_a_module_loads(own):
    for path, name, line, at_load in imports_of(own):
        root = name.split(".")[0]
        its_own = own == "serving" and root.startswith((path.stem, path.parent.name))
        assert its_own or not (at_load and root in OPTIONAL), (
            f"{path}:{line}: {root} is optional; import it where it is used"
        )
        if root == "numba":
            assert own == "kernels" or not at_load, f"{path}:{line}: numba outside guided/kernels"
        if root == "transformers":
            assert own in ("hf", "cli"), f"{path}:{line}: transformers outside guided/hf"
        if root == "torch":
            assert own in TORCH, f"{path}:{line}: torch in a part that does without"


def test_import_is_light_and_quick():
    code = (
        "import time, sys; t = time.perf_counter(); import guided; t = time.perf_counter() - t; import json;"
        "print(json.dumps([t, sorted(sys.modules)]))"
    )
    seconds = []
    for _ in range(3):
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        took, loaded = json.loads(answer)
        seconds.append(took)
        assert not HEAVY & set(loaded)
    assert min(seconds) < 0.3


def test_checks_of_constraints_do_without_torch():
    code = "import sys, guided.testing; guided.testing.check_constraint; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_say_what_they_are():
    for path in MODULES:
        assert re.match(r'(#.*\n)*\s*r?"""', path.read_text()), f"{path} has no module docstring"


def test_no_module_is_named_after_nothing():
    vague = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    assert not [path for path in MODULES if path.stem in vague or path.parent.name in vague]


def test_public_names():
    assert guided.__all__ == PUBLIC
    assert dir(guided) == PUBLIC
    for name in PUBLIC:
        value = getattr(guided, name)
        assert value.__doc__, f"guided.{name} has no docstring"
        assert getattr(value, "__module__", value.__name__).startswith("guided."), f"guided.{name} is not ours"


def test_the_library_of_grammars_and_its_package_share_a_name():
    importlib.import_module("guided.grammar.ir")
    assert callable(guided.grammar), "importing the package guided.grammar hides the function guided.grammar(name)"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_name"):
        guided.no_such_name  # noqa: B018
