"""The structure that keeps the package readable: floors, circles of imports, sizes of folders, files and functions.

Imports are read by grimp: those inside functions count, and those for type checking only too.  What does not hold yet
is listed with its present figure, which may only fall; an entry that is needed no more has to go.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grimp
import pytest

import guided
from tests.statements import statements

ROOT = Path(guided.__file__).parent
UNIT = Path(__file__).parent

CONSTRAINTS = {
    "errors", "special_bytes", "collection", "tokenset", "html", "kernels", "vocab", "grammar", "reading", "automata",
    "constraint",
}  # fmt: skip
"""Constraints and all that they rest on."""

LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "special_bytes": set(),
    "collection": set(),
    "tokenset": set(),
    "html": set(),
    "nano": {"errors"},
    "kernels": {"errors"},
    "vocab": {"errors", "special_bytes", "tokenset", "html", "kernels"},
    "grammar": {"errors", "special_bytes", "collection", "html", "kernels"},
    "reading": {"errors", "special_bytes", "html", "grammar", "vocab", "constraint"},
    "automata": {"errors", "special_bytes", "collection", "kernels", "grammar"},
    "constraint": {"errors", "special_bytes", "collection", "tokenset", "html", "kernels", "grammar", "automata", "vocab"},
    "lm": {"errors", "vocab"},
    "steer": {*CONSTRAINTS, "lm"},
    "monitor": {*CONSTRAINTS, "lm"},
    "infer": {*CONSTRAINTS, "lm", "steer", "monitor"},
    "draft": {*CONSTRAINTS, "lm", "steer", "monitor", "infer"},
    "search": {*CONSTRAINTS, "lm", "steer", "monitor", "infer"},
    "diffusion": {*CONSTRAINTS, "lm", "steer", "monitor", "infer"},
    "testing": {*CONSTRAINTS, "lm", "steer", "monitor", "infer", "draft", "search"},
    "hf": {*CONSTRAINTS, "nano", "lm", "steer", "monitor", "infer", "draft", "search", "diffusion"},
    "serving": {*CONSTRAINTS, "nano", "lm", "steer", "monitor", "infer", "draft", "search", "diffusion", "hf"},
    "eval": {*CONSTRAINTS, "nano", "lm", "steer", "monitor", "infer", "draft", "search", "diffusion", "hf", "serving"},
    "server": {*CONSTRAINTS, "nano", "lm", "steer", "monitor", "infer", "draft", "search", "diffusion", "hf", "serving"},
    "cli": {
        *CONSTRAINTS, "nano", "lm", "steer", "monitor", "infer", "draft", "search", "diffusion", "hf", "eval", "testing",
        "serving", "server",
    },
}  # fmt: skip
"""What the modules of each part may import, besides their own part; the package's root gives public names to all."""

MOST_FILES = 25
MOST_LINES = 600
LONGEST_FUNCTION = 80
LONGEST_KERNEL = 150

CIRCLES: dict[str, int] = {}
"""Modules of each part that are in circles of the imports that run."""

TYPE_CIRCLES = {"constraint": 6}
"""The same, where imports for type checking count."""

FOLDERS: dict[str, int] = {}
"""Python files in each folder that has too many."""

FUNCTIONS: dict[str, int] = {}
"""Lines of each function that is too long, by part and name."""

ELSEWHERE = {
    "benchmarks": "tests of the folder at the root",
    "grammars": "the folder at the root, which is installed as guided.grammars",
}
"""Folders below tests/unit that no folder of the package has, and why."""


def import_graph(package: str, type_checking: bool = True) -> grimp.ImportGraph:
    return grimp.build_graph(package, exclude_type_checking_imports=not type_checking, cache_dir=None)


def part(module: str) -> str:
    """The part of the package that a module belongs to; empty for the root."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] != "__main__" else ""


def climbing(graph: grimp.ImportGraph, layers: Mapping[str, set[str]]) -> list[str]:
    """Imports of what a part may not import."""
    return [
        f"{importer} imports {imported}"
        for importer in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if part(importer) and part(imported) not in ("", part(importer), *layers[part(importer)])
    ]


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """The strongly connected components of more than one module."""
    found = []
    left = set(graph.modules)
    while left:
        module = min(left)
        around = {module, *_reached(graph, module) & _reached(graph, module, back=True)}
        left -= around
        if len(around) > 1:
            found.append(sorted(around))
    return found


def _reached(graph: grimp.ImportGraph, module: str, back: bool = False) -> set[str]:
    return graph.find_downstream_modules(module) if back else graph.find_upstream_modules(module)


def in_circles(graph: grimp.ImportGraph) -> dict[str, int]:
    return Counter(part(module) for circle in circles(graph) for module in circle)


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """Every Python file under a folder: its path from there, and its text."""
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), path.read_text()


def crowded(root: Path) -> dict[str, int]:
    files = Counter(Path(path).parent.as_posix() for path, _ in sources(root))
    return {folder: n for folder, n in files.items() if n > MOST_FILES}


def long_files(root: Path) -> dict[str, int]:
    lines = {path: text.count("\n") for path, text in sources(root)}
    return {path: n for path, n in lines.items() if n > MOST_LINES}


def long_functions(root: Path) -> dict[str, int]:
    found: Counter[str] = Counter()
    for path, text in sources(root):
        own = Path(path).parts[0].removesuffix(".py")
        for node in statements(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines > (LONGEST_KERNEL if own == "kernels" else LONGEST_FUNCTION):
                    found[f"{own}.{node.name}"] = max(lines, found[f"{own}.{node.name}"])
    return found


def folders(root: Path) -> set[str]:
    """The folders below one that hold Python files, by their path from there."""
    return {Path(path).parent.as_posix() for path, _ in sources(root)} - {"."}


def astray(tests: Path, package: Path) -> dict[str, int]:
    """Folders of tests that are no folders of the package."""
    return dict.fromkeys(folders(tests) - folders(package), 1)


def check_figures(found: Mapping[str, int], listed: Mapping[str, int], what: Iterable[object] = ()) -> None:
    """Nothing beyond what is listed, and nothing listed that is not there any more."""
    beyond = {name: n for name, n in found.items() if n > listed.get(name, 0)}
    assert not beyond, f"too much: {beyond}; listed: {[listed.get(name, 0) for name in beyond]}; {[*what]}"
    needless = listed.keys() - found.keys()
    assert not needless, f"this holds now; take it from the list: {sorted(needless)}"


def test_every_part_says_what_it_may_import():
    assert {part(module) for module in import_graph("guided").modules} - {""} == set(LAYERS)


def test_imports_point_one_way():
    assert not climbing(import_graph("guided"), LAYERS)


@pytest.mark.parametrize(("type_checking", "listed"), [(False, CIRCLES), (True, TYPE_CIRCLES)])
def test_no_circles_of_imports(type_checking, listed):
    graph = import_graph("guided", type_checking)
    check_figures(in_circles(graph), listed, circles(graph))


def test_folders_have_few_files():
    check_figures(crowded(ROOT), FOLDERS)


def test_files_are_short():
    check_figures(long_files(ROOT), {})


def test_functions_are_short():
    check_figures(long_functions(ROOT), FUNCTIONS)


def test_unit_tests_lie_where_the_package_does():
    check_figures(astray(UNIT, ROOT), dict.fromkeys(ELSEWHERE, 1))


def test_folders_of_tests_have_few_files():
    check_figures(crowded(UNIT.parent), {})


LOWER, UPPER = "planted/lower/base.py", "planted/upper/top.py"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A package of two floors in which all holds; `plant` adds a text to one of its files."""
    monkeypatch.syspath_prepend(tmp_path)

    def plant(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((file.read_text() if file.exists() else "") + text)
        return tmp_path / "planted"

    for name in ("planted", "planted/lower", "planted/upper", "planted/kernels"):
        plant(f"{name}/__init__.py", "")
    plant(LOWER, "import planted\nfrom planted.lower import other\n")
    plant("planted/lower/other.py", "from planted import kernels\n")
    plant(UPPER, "from planted.lower.base import other\n")
    return plant


PLANTED_LAYERS = {"kernels": set(), "lower": {"kernels"}, "upper": {"lower"}}


def test_a_sound_package_passes(planted):
    root = planted(UPPER, "")
    for type_checking in (False, True):
        graph = import_graph("planted", type_checking)
        assert not climbing(graph, PLANTED_LAYERS) and not circles(graph)
    assert not crowded(root) and not long_files(root) and not long_functions(root)


@pytest.mark.parametrize("text", [
    "import planted.upper.top\n",
    "from planted.upper import top\n",
    "def f():\n    from planted.upper.top import other\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from planted.upper.top import other\n",
])  # fmt: skip
def test_an_import_upward_is_found(planted, text):
    planted("planted/lower/other.py", text)
    assert climbing(import_graph("planted"), PLANTED_LAYERS) == ["planted.lower.other imports planted.upper.top"]


def test_a_circle_is_found(planted):
    planted("planted/lower/third.py", "from planted.lower.base import other\n")
    planted("planted/lower/other.py", "def f():\n    from planted.lower import third\n")
    around = ["planted.lower.base", "planted.lower.other", "planted.lower.third"]
    for type_checking in (False, True):
        graph = import_graph("planted", type_checking)
        assert circles(graph) == [around] and in_circles(graph) == {"lower": 3}


def test_a_circle_of_types_is_found(planted):
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import planted.lower.base\n"
    planted("planted/lower/other.py", guarded)
    assert circles(import_graph("planted")) == [["planted.lower.base", "planted.lower.other"]]
    assert not circles(import_graph("planted", type_checking=False))


def test_a_crowded_folder_is_found(planted):
    for n in range(MOST_FILES - 3):
        root = planted(f"planted/lower/file{n}.py", "")
    assert not crowded(root)
    assert crowded(planted("planted/lower/one_more.py", "")) == {"lower": MOST_FILES + 1}


def test_a_long_file_is_found(planted):
    assert not long_files(planted("planted/lower/long.py", "x = 1\n" * MOST_LINES))
    assert long_files(planted("planted/lower/long.py", "y = 1\n")) == {"lower/long.py": MOST_LINES + 1}


def test_a_test_astray_is_found(planted, tmp_path):
    root = planted("tests/unit/lower/test_base.py", "")
    assert not astray(tmp_path / "tests/unit", root)
    planted("tests/unit/lower/old/test_other.py", "")
    assert astray(tmp_path / "tests/unit", root) == {"lower/old": 1}


@pytest.mark.parametrize(("own", "most"), [("lower", LONGEST_FUNCTION), ("kernels", LONGEST_KERNEL)])
def test_a_long_function_is_found(planted, own, most):
    path = f"planted/{own}/long.py"
    assert not long_functions(planted(path, "class A:\n    def f():\n" + "        x = 1\n" * (most - 1)))
    assert long_functions(planted(path, "        x = 1\n")) == {f"{own}.f": most + 1}


def test_lists_may_only_become_shorter():
    check_figures({"a": 26}, {"a": 27})
    with pytest.raises(AssertionError, match=r"too much: \{'a': 28\}"):
        check_figures({"a": 28}, {"a": 27})
    with pytest.raises(AssertionError, match=r"too much: \{'b': 1\}"):
        check_figures({"b": 1}, {})
    with pytest.raises(AssertionError, match=r"take it from the list: \['a'\]"):
        check_figures({}, {"a": 27})
