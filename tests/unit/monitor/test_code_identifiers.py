"""Languages known by their marks: where dereferences are, what a server's members then allow, and the contracts."""

from __future__ import annotations

import sys

import pytest

from guided.monitor.code_identifiers import code_identifiers
from guided.monitor.code_text import CPP, GO, JAVA, RUST, TYPESCRIPT
from guided.monitor.language_server import language_server
from guided.monitor.monitor import monitored
from guided.testing import check_constraint
from tests.conftest import ROOT
from tests.twin.monitor_words import VOCABULARY

SERVER = ROOT / "tests" / "twin" / "fake_server.py"


@pytest.mark.parametrize(
    ("dialect", "code", "places"),
    [
        (JAVA, "a.b", 1), (JAVA, "1.5f", 0), (JAVA, "'.'", 0), (JAVA, '"a.b"', 0), (JAVA, '"a\\".b"', 0),
        (JAVA, "// a.b\nc.d", 1), (JAVA, "/* a.b\n * c.d */ e.f", 1), (JAVA, "a1.b.c", 2), (JAVA, "x = 1 / y.z", 1),
        (JAVA, "f(int... a)", 1), (JAVA, "/**/a.b", 1), (JAVA, "a::b", 0), (JAVA, '"a\nb.c', 1), (JAVA, "a.1b.c", 2),
        (CPP, "a->b", 1), (CPP, "a::b", 1), (CPP, "a - b > c", 0), (CPP, "std::vector<int>::x", 2), (CPP, "x >>= 1.", 0),
        (RUST, "0..10", 0), (RUST, "a..b", 1), (RUST, "T::<U>::f", 2), (RUST, "fn f<'a>(x: &'a T) { x.y }", 1),
        (RUST, "t.0.b", 2), (TYPESCRIPT, "`a.b\n${c.d}`.e", 1), (TYPESCRIPT, "a?.b", 1), (TYPESCRIPT, "[...a]", 1),
    ],
)  # fmt: skip
def test_where_members_are_named(dialect, code, places):
    lexical, found = dialect.start, 0
    for byte in code.encode():
        lexical = dialect.read(lexical, byte)
        found += dialect.dereferences_here(lexical)
    assert found == places


@pytest.fixture
def monitor(tmp_path):
    engine = language_server([sys.executable, str(SERVER), "good"], tmp_path, path=tmp_path / "A.java", language="java")
    made = code_identifiers(engine, JAVA, seconds=30)
    yield made
    made.analyses.close()


def test_members_of_a_server(monitor):
    constraint = monitored(monitor, VOCABULARY, before="class A {\n")
    for text, lives in {
        "box.lid": True,
        "box.liding(1)": True,
        "box.lidi(": False,
        "box.lock": False,
        "f(box.size, box.lock": False,
        "f(box.size, box.class": True,
        "other.lock": True,
        '"box.lock"': True,
        "// box.lock": True,
        "import box.lock;": True,
        "import box.*;\nbox.lock": False,
        "x = .5": True,
        "f(int... box)": True,
        "box.lid.colour": True,
        "box.lid.hue": False,
    }.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
    assert monitor.statistics.failures == 0 and monitor.statistics.known and constraint.notes == ()
    assert "java" in repr(monitor)


def test_ranges_are_no_members(tmp_path):
    engine = language_server([sys.executable, str(SERVER), "good"], tmp_path, language="rust")
    monitor = code_identifiers(engine, RUST, seconds=30)
    constraint = monitored(monitor, VOCABULARY)
    for text, lives in {"box..size": True, "box.lid": True, "box.lock": False, "box.0": True, "box...": True}.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
    check_constraint(constraint, walks=3, length=12, pickled=False, threads=1)
    monitor.analyses.close()


@pytest.mark.parametrize(
    ("dialect", "text", "more"),
    [
        (JAVA, "class A { void f() { this.", True), (JAVA, "this.box.", False), (JAVA, "f(this.", True),
        (JAVA, "A.this.", False), (JAVA, "notthis.", False), (CPP, "this->", True), (RUST, "fn f(&self) { self.", True),
        (RUST, "Self::", False), (GO, "func (s *T) f() { s.", True), (GO, "func (s *T) f() { t.", False),
        (GO, "func (s *T) f() {}\nfunc g(s S) { s.", True), (GO, "self.", False),
    ],
)  # fmt: skip
def test_a_class_that_is_being_written_may_get_more_members(dialect, text, more):
    assert dialect.may_get_more(text) is more


def test_contracts(monitor):
    before = "self.x; box.lid; os = box."
    check_constraint(monitored(monitor, VOCABULARY, before=before), walks=5, length=15, pickled=False, threads=1)
