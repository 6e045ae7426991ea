"""Every text that a mask or the packaged model makes is prepared by the real engine, and each comes to an end.

More of them: `python -m tests.sql_texts`.
"""

from __future__ import annotations

import pytest

from tests.amounts import ALL, some
from tests.databases import DIALECTS, Databases
from tests.sql_texts.engines import Verdict
from tests.sql_texts.judging import judged

BLOCKS = 3
"""Databases about which the model is asked, 96 texts each."""
SEED = 1_000_000


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_masks_make_what_the_engine_prepares(dialect: str, databases: Databases) -> None:
    for drawn, verdict, said in judged(databases(dialect), dialect, "masks", SEED, some(1000, 40)):
        assert not drawn.dead and verdict is not Verdict.REFUSED, (drawn, said)


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_begins_unusually_ends_and_is_prepared(dialect: str, databases: Databases) -> None:
    for drawn, verdict, said in judged(databases(dialect), dialect, "beginnings", 1, some(200, 40)):
        assert not drawn.dead and verdict is not Verdict.REFUSED, (drawn, said)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_tokens_of_masks_make_what_the_engine_prepares(dialect: str, databases: Databases) -> None:
    for drawn, verdict, said in judged(databases(dialect), dialect, "tokens", SEED, 100):
        assert not drawn.dead and verdict is not Verdict.REFUSED, (drawn, said)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_model_writes_is_prepared(dialect: str, databases: Databases) -> None:
    texts = set()
    for block in range(BLOCKS):
        for drawn, verdict, said in judged(databases(dialect), dialect, "model", SEED + block, 0):
            assert not drawn.dead and verdict is not Verdict.REFUSED, (drawn, said)
            texts.add(drawn.text)
    assert len(texts) > 50 * BLOCKS
