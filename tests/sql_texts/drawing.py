"""Texts of SQL at random: any terminal that may come, any token of the mask, or what the packaged model writes."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import guided
from guided import tokenset
from guided.constraint.live import LiveConstraint
from guided.errors import LimitError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.nodes import Keyword, Sign
from guided.grammar.sql import DatabaseSchema
from guided.grammar.sql.query.language import query_language
from tests.unit.grammar.sql.query import random_queries

__all__ = [
    "Asked", "Drawn", "asked", "by_beginnings", "by_ends", "by_masks", "by_model", "by_terminals", "by_tokens",
]  # fmt: skip

TRAINING = Path(__file__).parents[2] / "examples" / "train_nano"
LITERALS = (
    "''", "'a'", "'it''s'", "'2020-01-01'", "'12'", "'2 days'", "'{}'", "'10:00'", "'true'", "'month'", "'2.5'", "'%Y'",
)  # fmt: skip
BEGINNINGS = """
SELECT {a}, x.{a} FROM {t} JOIN
SELECT {a}, x.{a} FROM {t} LEFT JOIN
SELECT {a}, x.{a}, y.{b} FROM {t}
SELECT x.{a}, {b} FROM
SELECT x.*, y.{a} FROM {t} JOIN
SELECT {a}, (SELECT x.{a}
SELECT {a} FROM {t} WHERE EXISTS (SELECT {b}, x.{a} FROM {u} JOIN
WITH c AS (SELECT {a}, x.{a} FROM {t} JOIN
SELECT count(*), {a}
SELECT {a}, {b}, count(*) FROM {t}
SELECT count(*), x.{a}, {b}
SELECT {a}, max({b}) FROM {t} GROUP BY {a} HAVING
SELECT {a}, max({b}) FROM {t} GROUP BY {a} ORDER BY
SELECT DISTINCT {a}, {b} FROM {t} ORDER BY
SELECT {a}, rank() OVER (PARTITION BY x.{b}
SELECT rank() OVER w, {a} FROM {t}
SELECT {a} FROM {t} WHERE {b} IN (
SELECT {a}, {b} FROM {t} UNION SELECT
(SELECT {a}, x.{b} FROM
WITH c AS (SELECT {a}, {b} FROM {t}) SELECT x.{a}, {b} FROM
WITH c AS (SELECT {a}, {b} FROM {t}) SELECT {a} FROM c JOIN
WITH RECURSIVE c AS (SELECT {a} FROM {t} UNION
SELECT {a}, x.{a}, y.{a} FROM
SELECT x.{a} = y.{a} FROM {t} x JOIN {u}
SELECT *, x.{a} FROM {t}
SELECT {t}.*, {b} FROM
SELECT {a} AS {b}, x.{b} FROM {t} x
SELECT count(DISTINCT {a}), x.{b}
SELECT sum({b}) OVER (ORDER BY {a}
SELECT {a} FROM (SELECT {b} AS {a}, x.{b}
SELECT x.{a} FROM {t} x JOIN {u} y ON x.{a} =
SELECT {a} FROM {t} x WHERE x.{b} = (SELECT
SELECT CASE WHEN {a} IS NULL THEN x.{b}
""".strip().splitlines()
"""Where random texts hardly get: ``{a}`` and ``{b}`` are columns of the table ``{t}``, ``{u}`` is any table."""
BUDGETS = (40, 128)
"""The least and the largest, in tokens."""
CUT = 96
"""Tokens behind which a text of the model is ended."""


class Drawn(NamedTuple):
    """A text, how many masks or lexemes it took, and why it came to no end where it did not."""

    text: str
    steps: int
    dead: str = ""


def by_terminals(schema: DatabaseSchema, seed: int, n: int) -> Iterator[Drawn]:
    """Up to 60 terminals, each as likely as any other, and what ends the text; of half the texts rare words first."""
    random_queries.STRINGS = LITERALS
    languages = [query_language(schema, forward=forward) for forward in (True, False)]
    for number in range(seed, seed + n):
        rng = random.Random(f"terminals/{number}")
        yield _one_by_terminals(rng, languages[number % 2], "", (3, 8, 15, 30, 60), rare=number % 4 > 1)


def by_beginnings(schema: DatabaseSchema, seed: int, n: int) -> Iterator[Drawn]:
    """Up to 30 terminals behind one of `BEGINNINGS` that the language has, and what ends the text."""
    random_queries.STRINGS = LITERALS
    languages = [query_language(schema, forward=forward) for forward in (True, False)]
    for number in range(seed, seed + n):
        rng = random.Random(f"beginnings/{number}")
        language = languages[number % 2]
        begun = ""
        while not begun:
            begun = _beginning(rng, schema, language)
        yield _one_by_terminals(rng, language, begun, (2, 4, 8, 15, 30), rare=number % 4 > 1)


def _beginning(rng: random.Random, schema: DatabaseSchema, language: AttributedLanguage) -> str:
    """One of `BEGINNINGS`, empty if it is not in the language."""
    table, other = rng.choice(schema.tables), rng.choice(schema.tables)
    names = [*rng.choices([one.name for one in table.columns], k=2), table.name, other.name]
    a, b, t, u = (language.lexis.written(name) for name in names)
    text = rng.choice(BEGINNINGS).format(a=a, b=b, t=t, u=u)
    at = random_queries.read(language, language.start, text)
    return text if at is not None and language.resolved(at) is not None else ""


def _one_by_terminals(
    rng: random.Random, language: AttributedLanguage, begun: str, most: Sequence[int], *, rare: bool
) -> Drawn:
    text, at = random_queries.begun(rng, language, rng.choice(most), text=begun, rare=rare)
    steps = text.count(" ") + 1
    try:
        rest = language.end(at)
    except LimitError as error:
        return Drawn(text, steps, str(error))
    if rest is None:
        return Drawn(text, steps, "no text ends it")
    if len(rest) > language.price(at):
        return Drawn(text, steps, f"{len(rest)} bytes end it, and {language.price(at)} were to be enough")
    whole = text + rest.decode()
    return Drawn(whole, steps, "" if language.reads(whole.encode()) else "its bytes are no text of the language")


def by_ends(schema: DatabaseSchema, seed: int, n: int) -> Iterator[Drawn]:
    """As `by_terminals`, but an end is looked for behind each terminal that might have come; each of these is a step."""
    random_queries.STRINGS = LITERALS
    languages = [query_language(schema, forward=forward) for forward in (True, False)]
    for number in range(seed, seed + n):
        rng = random.Random(f"ends/{number}")
        yield _one_by_ends(rng, languages[number % 2], rng.choice([8, 15, 30, 60]))


def _one_by_ends(rng: random.Random, language: AttributedLanguage, most: int) -> Drawn:
    at, text, steps = language.start, "", 0
    favoured = rng.sample(random_queries.RARE, 5)
    for _ in range(most):
        place = language.resolved(at)
        assert place is not None
        behind = []
        for open_ in place.opens:
            lexeme = None if open_.terminal is None else random_queries.lexeme(rng, language, open_)
            written = f"{text} {lexeme}" if text else lexeme
            after = None if lexeme is None else random_queries.read(language, at, f" {lexeme}" if text else lexeme)
            if after is None or written is None:
                continue
            if isinstance(open_.terminal, Sign | Keyword) and not language.may_be_over(after):
                return Drawn(written, steps, "nothing goes on behind it")
            if language.resolved(after) is None:
                continue
            steps += 1
            try:
                end = language.end(after)
            except LimitError as error:
                return Drawn(written, steps, str(error))
            if end is None:
                return Drawn(written, steps, "no text ends it")
            if len(end) > language.price(after):
                return Drawn(written, steps, f"{len(end)} bytes end it, and {language.price(after)} were to be enough")
            behind.append((lexeme, after, written))
        if not behind:
            break
        rare = [one for one in behind if str(one[0]).lower() in favoured] if rng.random() < 0.5 else []
        _, at, text = rng.choice(rare or behind)
    return Drawn(text + language.rest(at).decode(), steps)


def by_tokens(schema: DatabaseSchema, seed: int, n: int, vocabulary: guided.Vocabulary) -> Iterator[Drawn]:
    """Any token of each mask, within a budget."""
    for rng, constraint in _turns("tokens", schema, seed, n, vocabulary):
        yield _one_by_tokens(rng, constraint, rng.randint(*BUDGETS), within=True)


def by_masks(schema: DatabaseSchema, seed: int, n: int, vocabulary: guided.Vocabulary) -> Iterator[Drawn]:
    """Any token of each mask, up to 60, and what ends the text soon."""
    for rng, constraint in _turns("masks", schema, seed, n, vocabulary):
        yield _one_by_tokens(rng, constraint, rng.choice([4, 8, 15, 30, 60]), within=False)


def _turns(
    drawn: str, schema: DatabaseSchema, seed: int, n: int, vocabulary: guided.Vocabulary
) -> Iterator[tuple[random.Random, LiveConstraint]]:
    """For each text its random source, and one of two constraints in turn."""
    constraints = [guided.compile(guided.sql(schema, forward=forward), vocabulary) for forward in (True, False)]
    for number in range(seed, seed + n):
        constraint = constraints[number % 2]
        assert isinstance(constraint, LiveConstraint)
        yield random.Random(f"{drawn}/{number}"), constraint


def _one_by_tokens(rng: random.Random, constraint: LiveConstraint, most: int, *, within: bool) -> Drawn:
    """Any token of each mask: the text and its end have ``most`` tokens, or it is ended behind so many."""
    vocabulary = constraint.vocabulary
    row = np.zeros(vocabulary.n_words, np.uint32)
    state, steps, text = constraint.start, 0, b""
    try:
        while within or steps < most:
            if within:
                constraint.fill_budget_mask(state, row, most - steps)
            else:
                constraint.fill_mask(state, row)
            steps += 1
            allowed = tokenset.ids(row).tolist()
            if not allowed:
                return Drawn(text.decode(errors="replace"), steps, "no token may come")
            token = rng.choice(allowed)
            state = constraint.advance(state, token)
            if not state:
                return Drawn(text.decode(errors="replace"), steps, f"token {token} of the mask may not come")
            if state == constraint.end:
                return Drawn(text.decode(), steps)
            text += vocabulary.token_bytes(token) or b""
        return Drawn((text + constraint.shortest_text(state)).decode(), steps)
    except LimitError as error:
        return Drawn(text.decode(errors="replace"), steps, str(error))


class Asked(NamedTuple):
    """A database and questions about it."""

    statements: list[str]
    questions: list[str]


def asked(dialect: str, seed: int, n_questions: int) -> Asked:
    """A database of tables and columns that the packaged model was not trained on, and questions in its wording.

    Half of them are about another database: there the model is unsure, and draws are many kinds of texts.
    """
    if str(TRAINING) not in sys.path:
        sys.path.insert(0, str(TRAINING))
    import databases
    import everyday_questions
    import sql_corpus
    import sql_questions
    import sql_spelling
    import words

    rng = random.Random(f"asked/{seed}")

    def drawn() -> Any:
        found = sql_corpus.random_schema(rng, words.HELD_OUT, tables=rng.choice([1, 2, 3]))
        known = dialect in ("postgresql", "duckdb")
        return sql_corpus.spelled(found, sql_spelling.Spelling.POSTGRESQL) if known else found

    schema, other = drawn(), drawn()
    forms = (everyday_questions.everyday_question, sql_questions.random_question)
    about = [(schema, other)[place % 2] for place in range(n_questions)]
    return Asked(databases.definitions(schema), [rng.choice(forms)(rng, one)[0] for one in about])


def by_model(schema: DatabaseSchema, questions: list[str], seed: int, n: int, model: Any) -> Iterator[Drawn]:
    """What the packaged model writes at temperature 1: ``n`` texts for each question.

    Of four blocks one is within a budget.  In the others what goes on behind `CUT` tokens is ended soon: a model that is
    unsure of a question writes on and on.
    """
    constraint = guided.compile(guided.sql(schema, forward=False), model.vocabulary)
    assert isinstance(constraint, LiveConstraint)
    rng = random.Random(f"model/{seed}")
    budget = rng.choice([rng.randint(*BUDGETS), None, None, None])
    most = CUT if budget is None else budget
    for tokens in _written(constraint, budget, most, _prompts(model, schema, questions), seed, n, model):
        yield _ended(constraint, tokens, within=budget is not None)


def _prompts(model: Any, schema: DatabaseSchema, questions: list[str]) -> Any:
    """The prompts of a batch, padded on the left."""
    from guided.eval.requests import PACKAGED, sql_request

    prompts = [sql_request(PACKAGED, schema, question) for question in questions]
    return model.tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")


def _written(
    constraint: LiveConstraint, budget: int | None, most: int, prompts: Any, seed: int, n: int, model: Any
) -> list[list[int]]:
    """The new tokens of each row of transformers' `generate`; one in which no token may come ends there."""
    import torch

    from guided.hf import GuidedLogitsProcessor

    eos = model.vocabulary.eos_ids[0]

    class Going(GuidedLogitsProcessor):
        """Ends a row without a token, at which torch would end the batch."""

        def _choose(self, *given: Any) -> torch.Tensor:
            out = super()._choose(*given)
            out[torch.isneginf(out).all(dim=-1), eos] = 0.0
            return out

    torch.manual_seed(seed)
    made = model.model.generate(
        **prompts, logits_processor=[Going(constraint, max_new_tokens=budget)], max_new_tokens=most, do_sample=True,
        top_k=0, num_return_sequences=n, eos_token_id=eos, pad_token_id=eos,
    )  # fmt: skip
    found: list[list[int]] = made[:, prompts["input_ids"].shape[1] :].tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in found]


def _ended(constraint: LiveConstraint, tokens: list[int], *, within: bool) -> Drawn:
    """The text of some tokens, with a short end where they have none and need not be ``within`` a budget."""
    state, text = constraint.start, b""
    for token in tokens:
        text += constraint.vocabulary.token_bytes(token) or b""
        state = constraint.advance(state, token)
        if not state:
            return Drawn(text.decode(errors="replace"), len(tokens), "no token may come")
    if within and state != constraint.end:
        return Drawn(text.decode(errors="replace"), len(tokens), f"{len(tokens)} tokens did not end it")
    try:
        return Drawn((text + constraint.shortest_text(state)).decode(), len(tokens))
    except LimitError as error:
        return Drawn(text.decode(errors="replace"), len(tokens), str(error))
