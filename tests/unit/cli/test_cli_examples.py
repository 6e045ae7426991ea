"""Every script of ``examples/`` runs as it is on the packaged model and prints what its grammar promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

from guided.nano import MODEL_PATH
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (MODEL_PATH / "model.safetensors").is_file(), reason="the packaged model is missing"),
]


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("demo", ["$ guided extract", "(valid: jsonschema agrees)", "SELECT "]),
        ("extract_records", ["Person(name=", "age="]),
        ("text_to_sql", ["SELECT "]),
        ("hf_generate", ["four beams", '{"customer": ']),
        (
            "tool_calls",
            ["complete: name, age", "<function=save_person>{", "[TOOL_CALLS]save_person[ARGS]{", "after it:"],
        ),
        ("regex_and_grammars", ['{"date": "', "SELECT ", "may end: False"]),
    ],
)
def test_an_example_runs(name, printed, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [part for part in printed if part not in done.stdout] == []
    assert list(tmp_path.iterdir()) == []
