"""Language servers that behave, hang, crash or write rubbish: the run goes on, and says so."""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from pathlib import Path

import pytest

from guided.errors import GuidedError
from guided.monitor.analyses import FAILURES, MonitorWarning
from guided.monitor.json_rpc import Connection, ServerError
from guided.monitor.language_server import language_server
from guided.monitor.monitor import monitored
from guided.monitor.python_identifiers import python_identifiers
from guided.testing import check_constraint
from tests.conftest import ROOT
from tests.twin.monitor_words import VOCABULARY

SERVER = ROOT / "tests" / "twin" / "fake_server.py"
BEFORE = "box = make()\nwörld = '𝄞'\n"


def monitor_of(behaviour: str, tmp_path: Path, seconds: float = 1.0):
    engine = language_server([sys.executable, str(SERVER), behaviour], tmp_path, seconds=seconds)
    return python_identifiers(tmp_path, engine=engine, seconds=seconds, assignments=False)


@pytest.mark.parametrize("behaviour", ["good", "list"])
def test_a_server_that_behaves(behaviour, tmp_path):
    monitor = monitor_of(behaviour, tmp_path, 20)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text, lives in {
            "box.lid": True,
            "box.liding + 1": True,
            "box.lidi ": False,
            "box.lock": False,
            "box. lid": False,
            "box.lid.colour": True,
            "box.lid.size": False,
            "box.größe": True,
            "box.if": False,
            "f('𝄞', box.size)": True,
            "f('𝄞', box.sizes)": False,
            "'box.lock'": True,
            "# box.lock": True,
            "other.lock": True,
            "f(x for box in y if box.size)": True,
            "f(x for box in y if box.sizes)": True,
            "for box in y: box.sizes": False,
            "self.lid = box.size": True,
            "def f(self):\n    self.later()": True,
            "if isinstance(box, Crate):\n    box.lock": True,
            "make(box).lock": True,
        }.items():
            assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
        check_constraint(constraint, walks=4, length=15, threads=2, pickled=False)
    assert monitor.statistics.failures == 0 and monitor.statistics.starts == 1 and monitor.statistics.known >= 4
    assert constraint.notes == ()
    monitor.analyses.close()


@pytest.mark.parametrize("behaviour", ["reads, silently", "reads, and says so", "not yet"])
def test_a_server_that_is_not_ready_is_waited_for(behaviour, tmp_path):
    """What it lists before it has read the project is not all there is."""
    monitor = monitor_of(behaviour, tmp_path, 20)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    for text, lives in {"box.size": True, "box.lock": False, "box.lid.colour": True, "box.lid.size": False}.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
    assert monitor.statistics.failures == 0 and constraint.notes == ()
    monitor.analyses.close()


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("slow", "within"),
        ("deaf", "within"),
        ("crash", "segmentation fault"),
        ("garbage", "no header"),
        ("not json", "not JSON"),
        ("wrong shape", "not understood"),
        ("refuses", "no licence"),
    ],
)
def test_a_server_that_fails_is_given_up_visibly(behaviour, says, tmp_path):
    seconds = 0.2 if behaviour in ("slow", "deaf") else 20.0
    monitor = monitor_of(behaviour, tmp_path, seconds)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(FAILURES + 2):
            state = constraint.advance_bytes(constraint.start, b"x%d\nbox.lock" % number)
            assert state and constraint.is_accepting(state)
    caught = [warning for warning in caught if warning.category is MonitorWarning]
    assert all(says in str(warning.message) for warning in caught)
    assert time.monotonic() - began < 15
    assert len(caught) == monitor.statistics.failures == FAILURES
    assert "given up" in str(caught[-1].message) and monitor.analyses.given_up
    (note,) = constraint.notes
    assert says in note and "given up" in note
    # What was free stays free, and the contracts hold without the server.
    check_constraint(constraint, walks=3, length=12, threads=1, pickled=False)


@pytest.mark.parametrize(("behaviour", "says"), [("crash", "ended"), ("error", "cannot think"), ("slow", "within")])
def test_failures_can_be_errors_instead(behaviour, says, tmp_path):
    engine = language_server([sys.executable, str(SERVER), behaviour], tmp_path, seconds=20)
    seconds = 0.15 if behaviour == "slow" else 20
    monitor = python_identifiers(tmp_path, engine=engine, seconds=seconds, required=True)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    for _ in range(FAILURES + 1):
        with pytest.raises(ServerError, match=says):
            constraint.advance_bytes(constraint.start, b"box.lid")
    assert not monitor.analyses.given_up


def test_a_server_that_recovers(tmp_path):
    monitor = monitor_of("slow once", tmp_path, 1.5)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    with pytest.warns(MonitorWarning, match="free at this place"):
        # A server started again is slow once again, so the second line fails too; after the third it is given up.
        assert constraint.advance_bytes(constraint.start, b"box.lock\n")
    assert monitor.statistics.failures == 1 and not monitor.analyses.given_up
    assert "started 1 times" in constraint.notes[0]
    monitor.analyses.close()


def test_a_server_that_answers_with_errors_is_asked_on(tmp_path):
    monitor = monitor_of("error", tmp_path, 20)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    with pytest.warns(MonitorWarning, match="cannot think"):
        assert constraint.advance_bytes(constraint.start, b"box.lock\nx = 1\nbox.lock\ny = 1\nbox.lock\nbox.lock")
    assert monitor.statistics.failures == 4 and monitor.statistics.starts == 1 and not monitor.analyses.given_up
    assert "cannot think" in constraint.notes[0]
    monitor.analyses.close()


def test_incomplete_lists_forbid_nothing(tmp_path):
    monitor = monitor_of("incomplete", tmp_path, 20)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    assert constraint.advance_bytes(constraint.start, b"box.lock")
    assert monitor.statistics.failures == 0
    monitor.analyses.close()


def test_a_server_that_is_missing(tmp_path):
    engine = language_server(["no-such-language-server"], tmp_path)
    monitor = python_identifiers(tmp_path, engine=engine)
    constraint = monitored(monitor, VOCABULARY, before=BEFORE)
    with pytest.warns(MonitorWarning, match="cannot be started"):
        assert constraint.advance_bytes(constraint.start, b"box.lock")
    with pytest.raises(GuidedError, match="no such workspace"):
        language_server(["x"], tmp_path / "nowhere")
    with pytest.raises(GuidedError, match="list of a program"):
        language_server("pylsp", tmp_path)
    with pytest.raises(GuidedError, match="no such project"):
        python_identifiers(tmp_path / "nowhere")


def test_calls_end_in_time_even_when_nobody_reads():
    connection = Connection([sys.executable, "-c", "import time; time.sleep(60)"])
    began = time.monotonic()
    with pytest.raises(ServerError, match="within"):
        connection.call("x", "a" * 3_000_000, 0.3)
    connection.close()
    with pytest.raises(ServerError, match="was closed"):
        connection.call("x", None, 5)
    with pytest.raises(ServerError, match="was closed"):
        connection.notify("x", None)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('no licence')", r"ended \(no licence\)"),
        ("import os, time; os.close(0); time.sleep(60)", "does not listen"),
    ],
)
def test_a_process_that_cannot_be_written_to_has_ended_or_does_not_listen(program, says):
    # More than a pipe holds, so that the writer meets the closed pipe however late the process closes it.
    connection = Connection([sys.executable, "-c", program])
    with pytest.raises(ServerError, match=says):
        connection.call("x", "a" * 3_000_000, 20)
    connection.close()


@pytest.mark.skipif(importlib.util.find_spec("jedi_language_server") is None, reason="no real language server")
def test_a_real_server(tmp_path):
    (tmp_path / "shapes.py").write_text("class Shape:\n    def area(self): ...\n    def arena(self): ...\n")
    engine = language_server(
        [sys.executable, "-c", "from jedi_language_server.cli import cli; cli()"], tmp_path, seconds=60
    )
    monitor = python_identifiers(tmp_path, engine=engine, seconds=60, assignments=False)
    constraint = monitored(monitor, VOCABULARY, before="from shapes import Shape\ns = Shape()\n")
    for text, lives in {"s.area()": True, "s.arena": True, "s.are ": False, "s.volume": False}.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, (text, constraint.notes)
    assert monitor.statistics.failures == 0, constraint.notes
    monitor.analyses.close()
