"""The monitor with jedi: what it demands, what it leaves alone, the contracts, and a real package."""

from __future__ import annotations

import importlib
import pickle
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from guided.errors import GuidedError
from guided.monitor.analyses import MonitorWarning
from guided.monitor.monitor import monitored
from guided.monitor.python_identifiers import PythonIdentifiers, python_identifiers
from guided.testing import check_constraint
from tests.amounts import some
from tests.twin.monitor_words import VOCABULARY, Words, ids_of

jedi = pytest.importorskip("jedi")

SHAPES = """
class Shape:
    def __init__(self, width):
        self.width = width

    def area(self): return 1
    def areal(self): return self

    def broad(self) -> bool: return self.width > 1

class Open:
    def __getattr__(self, name): return 1

class Square(Shape):
    def side(self) -> Shape: return Shape(1)

größe = Square(2)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text(SHAPES)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text("value = 'text'\n")
    return folder


@pytest.fixture(scope="module")
def monitor(project):
    made = python_identifiers(project)
    yield made
    made.analyses.close()


@pytest.fixture(scope="module")
def assigning(project):
    made = python_identifiers(project, assignments=True)
    yield made
    made.analyses.close()


BEFORE = "from shapes import Open, Shape, Square, größe\nimport package.inner\ns = Square(3)\n"
TEXTS = {
    "s.area()": True,
    "s.areal": True,
    "s.areal().side": True,
    "s.side().areal().side": True,  # a subclass may return more, and nothing declares what
    "s.side().areal().nothing": True,
    "s.broad().real": True,
    "s.broad().side": False,
    "s.side().area": True,
    "s.side().side": False,
    "s.are ": False,
    "s.areas": False,
    "s.volume": False,
    "s. area": False,
    "s.(": False,
    "s.width": True,
    "s.width.real": True,
    "s.width.anything": True,  # assigned without a type
    "größe.side": True,
    "größe.volume": False,
    "'s.volume'": True,
    '"""s.volume"""': True,
    "# s.volume": True,
    "f'{s.volume}'": True,
    "'text'.upper()": True,
    "'text'.uppper": False,
    "'text'.join([]).upper": True,
    "[1].append": True,
    "[1].push": False,
    "unknown.volume": True,
    "(s).area": True,
    "Open().anything": True,
    "package.inner.value": True,
    "package.outer": False,
    "package.inner.value.upper": True,
    "import os.path": True,
    "import os.paths ": False,
    "from . import shapes": True,
    "from .package import inner": True,
    "x = 1.5": True,
    "x = s.area if s.areal else s.side": True,
    "x = s.area if s.volume": False,
    "print(s.area(), s.areal": True,
    "print(s.area(), s.volumes": False,
    "print([s.area(), {s.volume": False,
    "y = [t.upper() for t in ['a'] if t.lower()]": True,
    "y = [t for t in ['a'] if t.anything": True,
    "y = [s for s in ['a'] if s.lower()]": True,
    "f = lambda s: s.volume": True,
    "for t in [s]:\n    t.area": True,
    "for t in [s]:\n    t.volume": True,
    "for t in [s]: t.areal": True,
    "for t in [s]: t.volume": True,
    "def f(a):\n    a.volume": True,
    "def f(a: Shape):\n    return a.side": False,
    "def f(a: Shape):\n    return a.area": True,
    "x = (s\n    .area": True,
    "x = (s\n    .volume": False,
    "x = s.area(\n    s.volume": False,
    "x = s.area(\n    s.side": True,
    "s.area = 1": True,
    "s.volume = 1": False,
    "...": True,
    "g(lambda s: s.volume)": True,
    "s.areal.": True,
    "x = 1\r\ns.volume": False,
    "x = 1\rs.area": True,
    "s.__init__": True,
    "class A:\n    def f(self):\n        return self.later(": True,
    "class A:\n    @classmethod\n    def f(cls):\n        return cls.later(": True,
    "class A:\n    def f(self): pass\n\nA().later": False,
    "class A(Shape):\n    def f(self):\n        return super().mixed(": True,
    "def f(a: Shape):\n    if isinstance(a, Square):\n        return a.side": True,
    "def f(a: Shape):\n    assert hasattr(a, 'anything')\n    a.anything": True,
    "from unknown import made\nmade().anything": True,
    "t = None\nt.anything": True,
    "t = s if s.width else None\nt.anything": True,
    "t = Square(2)\nt.volume": False,
    "t = Square(2)\nt = unknown()\nt.volume": True,
    "t = Square(2)\nt.volume = 1\nt.volume": False,
    "import os\nos.environ_of": False,
    "import os\nos.path.joined": False,
    "import os\nos.getcwd = ": True,
    "import os\nos.hallucinated = 1": False,
    "import datetime\ndatetime.datetime.today().isoformat": True,
    "with open('a') as t:\n    t.anything": True,
    "try:\n    pass\nexcept OSError as t:\n    t.anything": True,
    "import abc\nclass A(abc.ABC):\n    x = 1\nA.register": True,
    "from os import *\ngetcwd().anything": True,
    "global_ = []\ndef f():\n    global global_\n    global_.anything": True,
}


def lives(monitor, text: str, before: str = BEFORE) -> bool:
    constraint = monitored(monitor, VOCABULARY, before=before)
    return constraint.advance_bytes(constraint.start, text.encode()) != 0


def test_what_may_come_behind_a_dot(monitor):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong = {text: wanted for text, wanted in TEXTS.items() if lives(monitor, text) is not wanted}
    assert wrong == {}
    assert monitor.notes == () and monitor.statistics.failures == 0


def test_new_attributes(assigning):
    for text, wanted in {
        "s.volume = 1": True,
        "s.volume=1": True,
        "s.volume: int": True,
        "s.volume == 1": False,
        "s.volume += 1": False,
        "s.volume()": False,
        "s.if = 1": False,
        "s.iff = 1": True,
        "s.area == 1": True,
        "s.are = 1": True,
        "x = s.volume = 1": False,
        "class A:\n    def __init__(self, x):\n        self.x = x\n        self.y = self.x": True,
        "class A:\n    def __init__(self, x):\n        self.x = x\n        self.y = self.z": True,
        "class A:\n    def __init__(self, x):\n        self.x = x\n\n    def f(self):\n        return self.x": True,
    }.items():
        assert lives(assigning, text) is wanted, text


def test_explanations_and_forced_bytes(monitor):
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    state = constraint.advance_bytes(constraint.start, b"s.w")
    assert constraint.forced(state) == b"idth"
    assert "one of width" in constraint.explain(state, ord("x"))
    state = constraint.advance_bytes(constraint.start, b"x = s.")
    assert "areal" in constraint.explain(state, ord("!")) or "__" in constraint.explain(state, ord("!"))
    assert constraint.explain(constraint.start, ord("x")) == "'x' is allowed; after it anything"


@pytest.mark.parametrize("which", ["monitor", "assigning"])
def test_contracts(which, request):
    watching = request.getfixturevalue(which)
    for vocabulary in (VOCABULARY, Words.with_special()):
        constraint = monitored(watching, vocabulary, before="import os\nself = 'x'\nx = [1]\napp = self.join\n")
        check_constraint(constraint, walks=some(6, 3), length=18, pickled=False)


def test_a_copy_asks_a_process_of_its_own(monitor):
    constraint = monitored(monitor, VOCABULARY, before="s = 'x'\n")
    copy = pickle.loads(pickle.dumps(constraint))
    assert copy.advance_bytes(copy.start, b"s.upper") and not copy.advance_bytes(copy.start, b"s.uppper")
    assert copy.language.monitor.statistics.starts == 1
    copy.language.monitor.analyses.close()


def test_answers_are_remembered(monitor):
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    constraint.advance_bytes(constraint.start, b"x = s.area() + s.areal().area")
    asked = monitor.statistics.analysed
    again = monitored(monitor, VOCABULARY, before=BEFORE)
    assert again.advance_bytes(again.start, b"yy = f(s.area, s.side")
    assert monitor.statistics.analysed == asked


def test_a_project_that_is_missing(tmp_path):
    with pytest.raises(GuidedError, match="no such project"):
        python_identifiers(tmp_path / "nowhere")


def test_a_worker_that_is_too_slow(project):
    slow = python_identifiers(project, seconds=0.001)
    with pytest.warns(MonitorWarning, match="free at this place"):
        assert lives(slow, "s.volume")
    assert slow.statistics.failures == 1 and "within" in slow.notes[0]


# A real package: rich, which the command line needs anyway.

OBJECTS = {
    "rich.console.Console": "from rich.console import Console\n{} = Console()\n",
    "rich.table.Table": "from rich.table import Table\n{} = Table()\n",
    "rich.text.Text": "from rich.text import Text\n{} = Text('a')\n",
    "rich.progress.Progress": "from rich.progress import Progress\n{} = Progress()\n",
    "rich.tree.Tree": "from rich.tree import Tree\n{} = Tree('a')\n",
}


def made(name: str, code: str):
    space: dict[str, object] = {}
    exec(code.format("it"), space)
    return space["it"]


def first_name(text: bytes) -> str | None:
    found = re.match(r"[^\W\d]\w*", text.decode("utf-8", "replace"))
    return found.group() if found else None


def sampled(constraint, rng: random.Random, weights: list[float]) -> bytes:
    """Random allowed tokens, at least until a name is over."""
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state, out = constraint.start, b""
    while first_name(out + b"_") == (out + b"_").decode("utf-8", "replace"):
        constraint.fill_mask(state, row)
        allowed = ids_of(row).tolist()
        token = rng.choices(allowed, [weights[token] for token in allowed])[0]
        if token in VOCABULARY.eos_ids:
            break
        out += VOCABULARY.token_bytes(token)
        state = constraint.advance(state, token)
    return out


@pytest.mark.parametrize(
    ("objects", "samples"),
    [(("rich.tree.Tree",), 4), pytest.param(tuple(OBJECTS), 40, marks=pytest.mark.slow)],
)
def test_identifiers_of_a_real_package_exist(objects, samples):
    rich = importlib.import_module("rich")
    watching = python_identifiers(Path(rich.__file__).parent.parent, assignments=False, seconds=120)
    rng = random.Random(0)
    known = exists = without = total = 0
    for name in objects:
        code = OBJECTS[name]
        target = made(name, code)
        before = code.format("app") + "x = app."
        # A second opinion, in this process and on the whole text, not on what the monitor makes of it.
        script = jedi.Script(before)
        names = {item.name for item in script.complete(before.count("\n") + 1, len("x = app."))}
        constraint = monitored(watching, VOCABULARY, before=before)
        for _ in range(samples):
            weights = [rng.expovariate(1.0) for _ in range(VOCABULARY.size)]
            found = first_name(sampled(constraint, rng, weights))
            free = b"".join(
                VOCABULARY.token_bytes(rng.choices(range(256, 286), weights[256:286])[0]) for _ in range(12)
            )
            total += 1
            known += found in names
            exists += found is not None and hasattr(target, found)
            without += first_name(free) in names
    watching.analyses.close()
    assert watching.notes == ()
    assert known == total
    # Attributes that only a subclass or another platform has are rare, but jedi may name them.
    assert exists >= 0.95 * total
    assert without <= 0.05 * total


def test_type_of_the_monitor(monitor):
    assert isinstance(monitor, PythonIdentifiers) and "jedi" in repr(monitor)
