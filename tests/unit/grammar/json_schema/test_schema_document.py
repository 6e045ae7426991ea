"""The documentation's list of refusals is that of the code, and the code refuses nothing else."""

from __future__ import annotations

import re

from guided.grammar.json_schema import refusals
from tests.conftest import ROOT

FOLDERS = [ROOT / "guided" / "grammar" / name for name in ("json_schema", "formats")]


def test_documentation_is_up_to_date() -> None:
    text = (ROOT / "docs" / "JSON_SCHEMA.md").read_text()
    assert text.endswith("\n\n" + refusals.markdown()), "run `python -m guided.grammar.json_schema.refusals`"


def test_every_refusal_is_in_the_table_and_is_used() -> None:
    names = {name for name, value in vars(refusals).items() if isinstance(value, refusals.Refusal)}
    assert len(names) == len(refusals.REFUSALS)
    raised = set()
    for path in (path for folder in FOLDERS for path in folder.rglob("*.py")):
        code = path.read_text()
        raised |= set(re.findall(r"refusals\.([A-Z_]+)\.at\(", code))
        if path.name not in ("refusals.py", "types.py"):
            # Errors that only gain a pointer on their way up are raised again with their own words.
            made = re.findall(r"(?:Unsupported|Limit)Error\((?!error\.what)", code)
            assert made == [], path.name
    # The regex front end and the search for a string raise the remaining two.
    assert raised == names - {"PATTERN", "EMPTINESS"}
