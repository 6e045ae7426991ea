"""One question by one method with a loaded model; whatever happens becomes a record."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import guided
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.eval.decoding import engine_error
from guided.eval.loading import load_asked, room_of
from guided.eval.requests import sql_request
from guided.eval.text_to_sql.coverage import coverage
from guided.eval.text_to_sql.gold import accepted_queries, is_ordered
from guided.eval.text_to_sql.questions import SqlQuestion
from guided.eval.text_to_sql.results import SqlMethod, SqlOutcome, SqlRecord, SqlSettings, key_of
from guided.grammar.sql import DatabaseSchema, QueryResult, reflect, run_query
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.matching import holds_result, same_result
from guided.hf.front.encoding import as_asked

__all__ = ["SqlEvaluator", "statement_of"]

MOST_ROWS = 100_000
"""Of a result that is compared."""
_LEAST_TOKENS = 50
"""An answer that the model has less room for is not asked for; with more it has what there is, if that is less than
the settings say."""
_FENCE = re.compile(r"```(?:\w+\n)?(.*?)(?:```|\Z)", re.DOTALL)


@dataclass
class _Database:
    """What is known of a question's database."""

    schema: DatabaseSchema
    constraint: Constrains
    times: dict[str, float]
    """Of compiling and of the first mask, until they were told once."""
    has_rows: dict[str, bool] = field(default_factory=dict)


class SqlEvaluator:
    """A loaded model and the language of the database that was asked last.  Not for several threads."""

    def __init__(self, settings: SqlSettings, *, on_stage: Callable[[str], None] | None = None) -> None:
        """Load the model; raises `GuidedError` for one that cannot be loaded."""
        self.settings = settings
        self.loaded = load_asked(settings, on_stage)
        self._room = room_of(self.loaded)
        self._known: tuple[str, _Database] | None = None

    def evaluate(self, question: SqlQuestion, method: SqlMethod) -> SqlRecord:
        """The result of a method on a question; raises only what is no result: an interruption."""
        known: dict[str, Any] = {
            "key": key_of(question, method, self.settings),
            "id": question.id,
            "database": question.database,
            "method": method.value,
        }
        try:
            database = self._database(question.urls[0])
        except GuidedError as error:
            return SqlRecord(**known, outcome=SqlOutcome.REFUSED, reason=_line(error))
        try:
            if method is SqlMethod.GOLD:
                return SqlRecord(**known, outcome=SqlOutcome.DONE, **self._gold(question, database))
            return SqlRecord(**known, outcome=SqlOutcome.DONE, **self._answered(question, database, method))
        except GuidedError as error:
            return SqlRecord(**known, outcome=SqlOutcome.REFUSED, reason=_line(error))
        except Exception as error:
            return SqlRecord(**known, outcome=SqlOutcome.FAILED, reason=engine_error(error))

    def _database(self, url: str) -> _Database:
        if self._known is None or self._known[0] != url:
            self._known = None
            schema = reflect(url, sample_values=self.settings.sample_values)
            began = time.perf_counter()
            constraint = guided.compile(guided.sql(schema), self.loaded.vocabulary)
            compiled = time.perf_counter()
            constraint.fill_mask(constraint.start, np.zeros(self.loaded.vocabulary.n_words, np.uint32))
            times = {
                "compile_s": round(compiled - began, 6),
                "first_mask_ms": round((time.perf_counter() - compiled) * 1e3, 3),
            }
            self._known = url, _Database(schema, constraint, times)
        return self._known[1]

    def _gold(self, question: SqlQuestion, database: _Database) -> dict[str, Any]:
        """Whether the gold query runs, whether it is in the language, and the masks along it."""
        queries = accepted_queries(question.gold)
        found = [coverage(database.constraint, query) for query in queries]
        first = found[0]
        error = ""
        try:
            for url in question.urls:
                self._run(url, queries[0])
        except GuidedError as failure:
            error = _line(failure)
        times, database.times = database.times, {}
        masks = self._masks(database.constraint, queries[0])
        return {
            "gold_runs": not error,
            "error": error,
            "gold_covered": first.at is None,
            "gold_covered_any": any(each.at is None for each in found),
            "gold_at": first.at,
            "gold_near": first.near,
            "mask_us": tuple(round(seconds * 1e6) for seconds in masks[1:]),
            **times,
        }

    def _masks(self, constraint: Constrains, query: str) -> list[float]:
        """Seconds of each mask along the tokens of a query, as far as these are in the language."""
        mask = np.zeros(self.loaded.vocabulary.n_words, np.uint32)
        state = constraint.start
        seconds = []
        for token in [*self.loaded.tokenizer(query, add_special_tokens=False)["input_ids"], None]:
            began = time.perf_counter()
            constraint.fill_mask(state, mask)
            seconds.append(time.perf_counter() - began)
            state = 0 if token is None else constraint.advance(state, token)
            if state == 0:
                break
        return seconds

    def _answered(self, question: SqlQuestion, database: _Database, method: SqlMethod) -> dict[str, Any]:
        """What the model writes, whether it runs, and whether it is right."""
        asked = f"{question.question.strip()} ({question.hint.strip()})" if question.hint.strip() else question.question
        prompt, ids = as_asked(sql_request(self.loaded.name, database.schema, asked), self.loaded.tokenizer)
        most = self.settings.max_new_tokens
        if self._room is not None and len(ids) + _LEAST_TOKENS <= self._room:
            most = min(most, self._room - len(ids))
        constraint = database.constraint if method is SqlMethod.GUIDED else None
        options: dict[str, Any] = {"do_sample": False, "num_beams": 1}
        if self.settings.temperature is not None:
            # The model's own distribution: no cuts that a checkpoint's configuration may ask for.
            options = {"do_sample": True, "temperature": self.settings.temperature, "top_k": 0, "top_p": 1.0}
            torch.manual_seed(self._seed(question))
        began = time.perf_counter()
        made = guided.generate(self.loaded, prompt, constraint, max_new_tokens=most, **options)
        seconds = time.perf_counter() - began
        statement = made.text if constraint is not None else statement_of(made.text)
        known = {"sql": statement, "tokens": len(made.token_ids), "seconds": seconds}
        return {**known, **self._judged(question, database, statement)}

    def _seed(self, question: SqlQuestion) -> int:
        """The same wherever and in whatever order the question is answered."""
        written = f"{self.settings.seed}\0{question.id}\0{question.question}"
        return int.from_bytes(hashlib.sha256(written.encode()).digest()[:4], "big")

    def _judged(self, question: SqlQuestion, database: _Database, statement: str) -> dict[str, Any]:
        try:
            results = [self._run(url, statement) for url in question.urls]
        except GuidedError as error:
            judged = any(self._has_rows(database, url) for url in question.urls)
            wrong = False if judged else None
            return {"executable": False, "error": _line(error), "match": wrong, "holds": wrong}
        match: bool | None = None
        holds: bool | None = None
        for url, result in zip(question.urls, results, strict=True):
            if not self._has_rows(database, url):
                continue
            same, held = self._right(question.gold, url, result)
            match = same and match is not False
            holds = held and holds is not False
        return {"executable": True, "match": match, "holds": holds}

    def _right(self, gold: str, url: str, found: QueryResult) -> tuple[bool, bool]:
        """Whether a result is that of an accepted query, and whether it holds one."""
        held = False
        for query in accepted_queries(gold):
            try:
                wanted = self._run(url, query)
            except GuidedError:
                continue
            ordered = is_ordered(query)
            if same_result(found, wanted, ordered=ordered):
                return True, True
            held = held or holds_result(found, wanted, ordered=ordered)
        return False, held

    def _run(self, url: str, query: str) -> QueryResult:
        return run_query(url, query, limit_rows=MOST_ROWS, seconds=self.settings.seconds)

    def _has_rows(self, database: _Database, url: str) -> bool:
        """Whether there is a row in any table: in an empty database every query is right."""
        if url not in database.has_rows:
            with open_session(url) as session:
                names = [
                    ".".join(session.quoted(part) for part in (table.schema, table.name) if part is not None)
                    for table in database.schema.tables
                    if not table.view
                ]
                database.has_rows[url] = any(session.rows(f"SELECT 1 FROM {name} LIMIT 1") for name in names)
        return database.has_rows[url]


def statement_of(text: str) -> str:
    """The statement in what a model writes that nothing holds to SQL: within a fence, up to an empty line.

    >>> statement_of("```sql\\nSELECT 1;\\n```\\nThis counts.")
    'SELECT 1;'
    """
    fenced = _FENCE.search(text)
    return (fenced.group(1) if fenced else text).strip().split("\n\n")[0].strip()


def _line(error: GuidedError) -> str:
    return " ".join(str(error).split())
