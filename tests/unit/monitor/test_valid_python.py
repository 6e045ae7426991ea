"""Valid programs are never refused: every name behind a dot in them, asked one by one, and what is known is restricted.

The small programs are ours; the slow test takes real files, of the standard library and of installed packages.
"""

from __future__ import annotations

import ast
import random
import sysconfig
import warnings
from pathlib import Path

import pytest

from guided.monitor.python_identifiers import PythonIdentifiers, python_identifiers
from tests.amounts import ALL

pytest.importorskip("jedi")

PROGRAMS = {
    "methods that come later": """
import abc
import collections

class Base(abc.ABC):
    registry = {}

    def run(self, value):
        self.prepare(value)
        self.total += self.step(value)
        return self.helper.finish(self)

    @classmethod
    def make(cls, value):
        made = cls.from_text(value)
        made.extra = 1
        return made.checked()

    @staticmethod
    def other():
        return Base.later

    @abc.abstractmethod
    def step(self, value): ...

    def prepare(self, value):
        super().__init__()
        self.total = collections.Counter(value).total()

    later = 3

Base.register(int)
Base.__subclasses__()
""",
    "tests that narrow": """
import io
import sys

class Shape:
    width: int = 1

class Square(Shape):
    side: int = 2

def area(shape: Shape, stream=None):
    if isinstance(shape, Square):
        return shape.side
    if hasattr(shape, "radius"):
        return shape.radius
    if stream is None:
        stream = sys.stdout
    stream.reconfigure(encoding="utf-8")
    try:
        return shape.volume()
    except AttributeError as error:
        return error.name

def kind(shape: Shape):
    match shape:
        case Square():
            return shape.side
    return type(shape).__name__
""",
    "libraries without types": """
import configparser
import argparse
import threading
import types
import unittest.mock
from nowhere import client, helper as other

parser = argparse.ArgumentParser()
arguments = parser.parse_args()
print(arguments.anything.more)
group = parser.add_subparsers().add_parser("a")
group.set_defaults(function=None)
client.connect("a").query().rows[0].name.upper()
other.made = client.Session().headers
local = threading.local()
local.value = 1
print(local.value)
space = types.SimpleNamespace(a=1)
space.b = space.a
mock = unittest.mock.Mock()
mock.method.return_value.other.assert_called()

def untyped(a, b=None, *c, **d):
    return a.x if b is None else b.y.z(c.count(1), d.items())

untyped(1).whatever.chain()
untyped.calls = 0
untyped.calls += 1
cached = None

def get():
    global cached
    if cached is None:
        cached = client.Session()
    return cached.token

for row in client.rows:
    print(row.id, row.name.strip())
with client.open() as handle:
    handle.send(b"")
rows = [row.id for row in client.rows if row.active]
first = client.rows and client.rows[0].id
value = (client or other).name
""",
    "what is known": """
import os
import os.path
import re
import sys
import json
import enum
import datetime as dt
import collections.abc
from pathlib import Path, PurePath
from dataclasses import dataclass, field

class Colour(enum.Enum):
    RED = 1
    BLUE = 2

@dataclass
class Point:
    x: int
    y: int = 0
    names: list[str] = field(default_factory=list)

    def moved(self) -> Point:
        return self

point = Point(1)
point.x = point.y
point.names.append("a")
point.moved().moved().x
print(Colour.RED.name, Colour.BLUE.value, Colour.__members__)
print(os.path.join("a", os.sep), os.environ.get("A"), os.getcwd().upper())
print(sys.argv[0], sys.version_info.major, sys.modules.keys(), sys._getframe())
print(json.dumps({}).encode().decode(), json.JSONDecodeError.__doc__)
print(re.compile("a").fullmatch, re.IGNORECASE, "a".join([]).strip().split)
print(dt.datetime.now, dt.timezone.utc, dt.UTC, collections.abc.Mapping.register)
here = Path(__file__)
print(here.parent, here.name, here.resolve().parents, PurePath.joinpath, b"".hex(), [1].append, {}.items, 1.5.hex)
""",
}
HALLUCINATED = "hallucinated_name_of_nothing"


def places(data: bytes) -> list[tuple[int, bytes]]:
    """Where the program names an attribute directly behind a dot, and the name."""
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.Attribute):
            name = node.attr.encode()
            at = starts[node.end_lineno - 1] + node.end_col_offset - len(name)
            if data[at - 1 : at + len(name)] == b"." + name:
                found.append((at, name))
    return sorted(found)


def lives(verdict, data: bytes) -> bool:
    """Is a text allowed, as far as the verdict reaches?"""
    for byte in data:
        verdict = verdict.step(byte)
        if verdict is None:
            return False
        if not hasattr(verdict, "step"):
            return True
    return True


def asked(monitor: PythonIdentifiers, data: bytes, chosen: dict[int, bytes]) -> tuple[int, list[str]]:
    """How many of the chosen places are known, and those where the name that stands there is refused."""
    lexical, context = monitor.lexical_start, monitor.context_start
    known, refused = 0, []
    for at, byte in enumerate(data):
        if at in chosen and monitor.triggers(lexical):
            verdict = monitor.analyse(data[:at], context)
            if verdict is not None:
                known += 1
                if not lives(verdict, data[at : at + len(chosen[at]) + 16]):
                    refused.append(f"line {data[:at].count(10) + 1}: {chosen[at].decode()}")
                assert not lives(verdict, HALLUCINATED.encode() + b" = 1"), chosen[at]
        context = monitor.follow(context, lexical, byte, at)
        lexical = monitor.read(lexical, byte)
    return known, refused


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    made = python_identifiers(tmp_path_factory.mktemp("empty"))
    yield made
    made.analyses.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_valid_name_of_a_program_is_refused(name, monitor):
    data = PROGRAMS[name].encode()
    every = list(places(data))
    chosen = dict(every if ALL else every[1::2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known, refused = asked(monitor, data, chosen)
    assert refused == []
    # What can be known is: else nothing would be restricted at all.
    if name == "what is known":
        assert known >= 0.7 * len(chosen), (known, len(chosen))
    assert sum(monitor.statistics.unknown.values()) > 0 or name == "what is known"


def real_files() -> list[Path]:
    paths = sysconfig.get_paths()
    library, packages = Path(paths["stdlib"]), Path(importlib_path("rich")).parent
    found = [*sorted(library.glob("*.py")), *sorted(library.glob("*/*.py"))]
    found = [path for path in found if not {"test", "tests", "site-packages", "lib2to3"} & set(path.parts)]
    for name in (
        "rich",
        "jinja2",
        "networkx",
        "packaging",
        "click",
        "httpx2",
        "hypothesis",
        "lark",
        "jsonschema",
        "yaml",
    ):
        found += sorted((packages / name).glob("**/*.py"))
    return [path for path in found if path.stat().st_size < 60_000]


def importlib_path(name: str) -> str:
    from importlib.util import find_spec

    return str(Path(find_spec(name).origin).parent)


@pytest.mark.slow
def test_no_valid_name_of_real_files_is_refused():
    rng = random.Random(5)
    files = rng.sample(real_files(), 80)
    wrong, known, total = [], 0, 0
    monitor = python_identifiers(Path(importlib_path("rich")).parent, seconds=60)
    for path in files:
        data = path.read_bytes().replace(b"\r\n", b"\n")
        every = places(data)
        chosen = dict(rng.sample(every, min(12, len(every))))
        some, refused = asked(monitor, data, chosen)
        known, total = known + some, total + len(chosen)
        wrong += [f"{path}: {each}" for each in refused]
    monitor.analyses.close()
    assert wrong == []
    assert known >= 0.25 * total, (known, total)
