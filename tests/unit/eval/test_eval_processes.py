"""Evaluations in several processes: every result once, in the file, and what is there is not done again."""

from __future__ import annotations

import os
from dataclasses import dataclass

from guided.eval.processes import run_in_processes
from guided.eval.records import JsonLine, LineLog
from guided.eval.resumable import Resumable


@dataclass(frozen=True)
class Found(JsonLine):
    key: str
    value: int
    process: int


class Times:
    def __init__(self, settings, on_stage):
        self.factor = settings

    def evaluate(self, item, method):
        return Found(f"{item} {method}", self.factor * item + method, os.getpid())


ASKED = Resumable(lambda item, method, settings: f"{item} {method}", Times)


def test_all_results_are_in_the_file_once(tmp_path):
    tasks = [(item, method) for item in (1, 2, 3) for method in (0, 5)]
    seen, path = [], tmp_path / "results.jsonl"
    with LineLog(path, lambda values: Found(**values)) as log:
        log.append(Found("2 0", 7, 0))
        run_in_processes(ASKED, tasks, 100, log, workers=1, on_record=lambda one: seen.append(one.key))
        run_in_processes(ASKED, tasks, 100, log, workers=1)  # Nothing is left, so no process is started.
        found = ASKED.records_of(tasks, 100, log)
    assert sorted(seen) == ["1 0", "1 5", "2 5", "3 0", "3 5"] and len(path.read_text().splitlines()) == 6
    assert [one.value for one in found] == [100, 105, 7, 205, 300, 305]
    assert os.getpid() not in {one.process for one in found}
