"""Names with letters beyond ASCII: every engine reads them without quotes, and tells them by its own rules."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.attributed import AttributedConstraint
from guided.grammar.sql import Column, DatabaseSchema, Table, reflect
from guided.grammar.sql.query.language import query_language
from tests.databases import DIALECTS, Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    'CREATE TABLE 学生 (学号 INTEGER PRIMARY KEY, 姓名 VARCHAR(20), "Größe" INTEGER, "naïve café" VARCHAR(20))',
    "CREATE TABLE été (jour INTEGER, 日付2 DATE)",
]
TAKEN = """
SELECT 姓名 FROM 学生
SELECT 学生.姓名, count(*) FROM 学生 GROUP BY 姓名
SELECT s.姓名, s."姓名" FROM "学生" AS s WHERE s.学号 > 3 ORDER BY s.学号
SELECT max(日付2),jour FROM été,学生 GROUP BY jour
SELECT été.*FROM été
WITH c AS (SELECT 姓名 FROM 学生) SELECT c.姓名 FROM c JOIN 学生 USING (姓名)
SELECT "Größe" FROM 学生
""".strip().splitlines()
REFUSED = """
SELECT 姓 FROM 学生
SELECT 姓名x FROM 学生
SELECT DISTINCT姓名 FROM 学生
SELECT 姓名 FROM学生
SELECT naïve café FROM 学生
SELECT jour FROM ete
""".strip().splitlines()
FOLDED = ["SELECT Größe, GRößE FROM 学生"]
"""What PostgreSQL refuses: it folds names without quotes, and no others."""
COLUMNS = {"学生": ("学号", "姓名", "Größe", "名a", "a b"), "été": ("姓", "a")}
SCHOOL = tuple(Table(name, tuple(Column(each, "TEXT") for each in columns)) for name, columns in COLUMNS.items())
PIECES = [
    "姓名", "姓", "名", " 姓", "学", ".姓", " 学生", "学生.", "姓名,", "été", " é", "größe", "Gr", "ße", "a名", "名a", "é ",
    "SELECT", " FROM", "学生 AS", "AS 姓",
]  # fmt: skip


def _written(text: str, dialect: str) -> str:
    return text.replace('"', "`") if dialect == "mariadb" else text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_of_other_scripts_need_no_quotes(dialect: str, databases: Databases) -> None:
    url = databases(dialect).create(*(_written(each, dialect) for each in TABLES))
    is_folded = dialect == "postgresql"
    taken, refused = (TAKEN, [*REFUSED, *FOLDED]) if is_folded else ([*TAKEN, *FOLDED], REFUSED)
    judged_alike(url, [_written(each, dialect) for each in taken], refused)
    for forward in (True, False):
        language = query_language(reflect(url), forward=forward)
        assert all(language.reads(_written(each, dialect).encode()) for each in taken)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_masks_of_names_of_other_scripts(dialect: str, forward: bool) -> None:
    """Tokens that end within characters among them; a name that was begun so is one of the listed."""
    tokens = [*(bytes([byte]) for byte in range(256)), *map(str.encode, PIECES), "姓".encode()[:2], "名".encode()[1:]]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    language = query_language(DatabaseSchema(SCHOOL, dialect), forward=forward)
    constraint = AttributedConstraint(language, vocabulary)
    row, later = np.zeros((2, vocabulary.n_words), np.uint32)
    allowed = 0
    for text in (
        "SELECT 学生.姓名, 名a FROM 学生",
        "SELECT max(姓) AS a FROM été GROUP BY été.a",
        "SELECT s.姓, s.a FROM",
    ):
        state = constraint.start
        for byte in text.encode():
            constraint.fill_mask(state, row)
            for token in range(vocabulary.size):
                after = constraint.advance(state, token)
                assert tokenset.contains(row, token) is (after != 0), (text, tokens[token])
                if after and after != constraint.end and (token > 255 or token == 0xE5):
                    allowed += 1
                    constraint.fill_mask(after, later)
                    assert later.any(), (text, tokens[token])
            state = constraint.advance(state, byte)
            assert state
    assert allowed > 200
