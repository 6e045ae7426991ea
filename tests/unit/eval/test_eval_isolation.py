"""Engines that hang, die and crash in a process of their own: each is one record, and the rest goes on.

The faults are in the process itself: a package that stands for a peer's.  Slow, since every death costs a new process.
"""

from __future__ import annotations

import os
import pickle
import textwrap
from multiprocessing import dummy
from types import SimpleNamespace

import pytest

from guided.errors import GuidedError
from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName
from guided.eval.isolation import IsolatedEvaluator
from guided.eval.records import Outcome, RecordLog
from guided.eval.run import run_here, tasks_for
from guided.eval.settings import Settings
from tests.amounts import mostly_slow

SETTINGS = Settings(device="cpu", offline=True, max_new_tokens=60, compile_seconds=0.5, generate_seconds=1.0)

FAKE = """
import collections, ctypes, itertools, os, signal

def hang():
    collections.deque(itertools.repeat(0), maxlen=0)  # compiled code that never looks at signals

class Vocabulary:
    def __init__(self, eos, spelled):
        self.eos = eos

class Index:
    def __init__(self, regex, vocabulary):
        self.what = regex
        if regex == "hang":
            hang()
        if regex == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if regex == "refuse":
            raise ValueError("no such thing")
        self.eos = vocabulary.eos

class Guide:
    def __init__(self, index):
        self.index = index
    def write_mask_into(self, address, n, size):
        if self.index.what == "hang later":
            hang()
        if self.index.what == "die later":
            os._exit(3)
        row = (ctypes.c_uint32 * n).from_address(address)
        for i in range(n):
            row[i] = 0
        row[self.index.eos >> 5] = 1 << (self.index.eos & 31)
    def advance(self, token, return_tokens):
        pass
"""
SCHEMA = """
import json

def build_regex_from_schema(text):
    return json.loads(text).get("title", "")
"""


@pytest.fixture
def fake_outlines(tmp_path, monkeypatch):
    package = tmp_path / "fakes" / "outlines_core"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(FAKE))
    (package / "json_schema.py").write_text(textwrap.dedent(SCHEMA))
    # A spawned process gets this process's path.
    monkeypatch.syspath_prepend(str(package.parent))


def rows(*titles):
    return [SchemaRow(f"x---{number}", "x", {"title": title}) for number, title in enumerate(titles)]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes of Unix")
def test_one_record_each_and_the_rest_goes_on(fake_outlines, tmp_path, monkeypatch):
    monkeypatch.setattr("guided.eval.isolation.GRACE_SECONDS", 1.0)
    tasks = tasks_for(rows("refuse", "hang", "die", "hang later", "die later", "fine"), [EngineName.OUTLINES])
    tasks += tasks_for(rows("fine"), [EngineName.GUIDED])
    with RecordLog(tmp_path / "results.jsonl") as log:
        run_here(tasks, SETTINGS, log, isolate=True)
        found = list(log.records.values())
    assert [record.outcome for record in found] == [
        Outcome.REFUSED,
        Outcome.COMPILE_TIME,
        Outcome.REFUSED,
        Outcome.GENERATE_TIME,
        Outcome.CRASHED,
        Outcome.INVALID,
        Outcome.VALID,
    ]
    reasons = [record.reason for record in found]
    assert reasons[0] == "ValueError: no such thing"
    assert reasons[1] == "compiling took longer than 0.5 s and could not be interrupted: its process was killed"
    assert reasons[2] == "the process died (SIGKILL)"
    assert "generating took longer than 1 s" in reasons[3]
    assert reasons[4] == "the process died (exit code 3)"
    assert found[6].text


def thread_for(daemon, **rest):
    """What stands for a process."""
    return dummy.Process(**rest)


@pytest.mark.parametrize("spawned", mostly_slow([False, True], 1))
def test_what_cannot_be_loaded_is_said_here(spawned, tmp_path, monkeypatch):
    """By a thread, too, which stands for the process: that loads torch and the engines first, for five seconds."""
    if not spawned:
        threads = SimpleNamespace(Pipe=dummy.Pipe, Process=thread_for)
        monkeypatch.setattr("guided.eval.isolation.multiprocessing.get_context", lambda how: threads)
        monkeypatch.setattr("guided.eval.isolation.signal.signal", lambda *_: None)
    with pytest.raises(GuidedError, match="no such folder") as caught:
        IsolatedEvaluator(Settings(model=str(tmp_path / "none")), [EngineName.GUIDED])
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.slow
def test_the_same_records_as_without(tmp_path):
    """But for the times."""
    tasks = tasks_for(rows("fine"), [EngineName.GUIDED, EngineName.NONE])
    texts = []
    for isolate in (True, False):
        stages = []
        with RecordLog(tmp_path / f"{isolate}.jsonl") as log:
            run_here(tasks, SETTINGS, log, isolate=isolate, on_stage=stages.append)
            texts.append([(record.key, record.outcome, record.text) for record in log.records.values()])
        assert "warming up guided" in stages
    assert texts[0] == texts[1]
