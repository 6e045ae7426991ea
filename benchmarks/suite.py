"""The parts of the suite, each run in a process of its own and kept as a file, so that a stopped run can go on."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from figures import commit, machine
from results import Progress, Setting

__all__ = ["PARTS", "about", "kept", "module_of", "run_part"]

PARTS = {
    "masks": "masks",
    "budget": "budgets",
    "grammars": "grammars",
    "compile": "first_masks",
    "batch": "batches",
    "long": "long_texts",
    "growth": "growth",
    "vocabulary": "vocabularies",
    "memory": "memory",
    "first-use": "first_use",
    "generate": "generation",
}
"""The part's name on the command line, and its file here."""


def module_of(part: str) -> Any:
    """The file of a part: ``TITLE``, ``ABOUT``, ``NEEDS_DATA`` and ``measure(setting, progress) -> Result``."""
    return importlib.import_module(PARTS[part])


def about() -> dict[str, str]:
    """One line for each part."""
    return {part: str(module_of(part).ABOUT) for part in PARTS}


def kept(folder: Path, part: str, setting: Setting, *, any_commit: bool = False) -> dict[str, Any] | None:
    """The record of a part that an earlier run left, if it measured this commit, or any, with this setting."""
    path = folder / f"{part}.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text())
        same = record["setting"] == setting.as_json() | {"engines": list(setting.engines)}
        return record if same and (any_commit or record["machine"]["commit"] == commit()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_part(folder: Path, part: str, setting: Setting) -> dict[str, Any]:
    """Measure a part in a fresh process and keep its record; raises `RuntimeError` with what that process said.

    Nothing that one part loads, remembers or leaves in memory is there in the next.
    """
    path = folder / f"{part}.json"
    partial = path.with_suffix(".part")
    request = json.dumps([part, setting.as_json(), str(partial)])
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    done = subprocess.run([sys.executable, __file__, request], check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"part {part} ended with exit status {done.returncode}")
    os.replace(partial, path)
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def _measure(part: str, setting: Setting, path: Path) -> None:
    module = module_of(part)
    facts = machine()
    began = time.perf_counter()
    result = module.measure(setting, Progress(part))
    record = {
        "part": part,
        "title": module.TITLE,
        "machine": facts,
        "setting": setting.as_json(),
        "seconds": round(time.perf_counter() - began, 1),
        "result": result.as_json(),
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    named, given, into = json.loads(sys.argv[1])
    _measure(named, Setting.from_json(given), Path(into))
