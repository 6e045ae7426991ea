"""`guided sql`: a question and a database to one SELECT statement, and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.batches.place import RayOptions, check_ray
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import (
    AsJson,
    MaxNewTokens,
    ModelOptions,
    SamplingOptions,
    decoding,
    searches,
)
from guided.cli.output import print_note
from guided.cli.queries.answers import check_answer, show_answer, show_statement
from guided.cli.queries.asking import Asking
from guided.cli.queries.batch import AnsweringJob, answer_batch
from guided.cli.queries.options import AnswerOptions, ManyOptions, QueryOptions
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.trace import TracedToken

__all__ = ["sql"]


@with_option_blocks
def sql(
    query: QueryOptions,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What you want to know, in words.", show_default=False)
    ] = None,
    answer: AnswerOptions = AnswerOptions(),  # noqa: B008 - frozen
    many: ManyOptions = ManyOptions(),  # noqa: B008 - frozen
    place: RayOptions = RayOptions(),  # noqa: B008 - frozen
    max_new_tokens: MaxNewTokens = None,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    sampling: SamplingOptions = SamplingOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Answer a question from a database by one SELECT statement over its own tables and columns.

    The grammar is made from the live database, so the model cannot name a table or column that is not there. The
    statement runs read-only, within limits; Ctrl-C stops it where it runs.

    **Examples:**

        guided sql --db sqlite:///shop.db "How many orders did each customer make?"
        guided sql --db shop.db --sample-values 50 --explain "Which products cost more than 50?"
        guided sql --db postgresql://me@host/warehouse --link 20 "Which supplier delivered last?"
        guided sql --db shop.db --no-run --json "Which order has the highest price?" | jq -r .sql
        guided sql --db shop.db --output orders.parquet --explain-plan "Show all orders."
        guided sql --db shop.db --batch questions.jsonl --output answers.jsonl --resume
        guided sql --db shop.db --batch questions.jsonl --output answers.jsonl --ray --workers 8
        guided sql --db shop.db --rerank execution --samples 8 "Which order has the highest price?"
        guided sql --db shop.db --sampler smc --particles 16 --replay run.html "Which order has the highest price?"
        guided sql --db shop.db --search best-first:beams=8 --must-include "ORDER BY" "Orders by price?"
    """
    from guided.cli.batches.lines import read_batch
    from guided.cli.methods.sampling import check_sampling

    check_sampling(sampling, running)
    _check_many(question, query, many, sampling)
    check_ray(place, is_batch=many.batch is not None)
    check_answer(answer, many)
    job = AnsweringJob(query, answer, many, decoding(max_new_tokens, running), running, sampling)
    items = None if many.batch is None else read_batch(many.batch, name="question")
    database, grammar = job.language()
    notes = [*database.notes, *(note for note in grammar.notes if note not in database.notes)]
    if not as_json:
        for note in notes:
            print_note(note)
    asking = None if place.ray else job.asking(quiet=as_json, known=(database, grammar))
    if items is not None:
        answer_batch(job, asking, items, place, quiet=as_json)
    elif asking is not None:
        _answer_one(asking, question or "", notes, as_json)


_NEAR = 16
"""Tokens of the budget that were left behind queries of whose tokens its masks refused 4 in 1,000, everyday ones, or
none, Spider's."""


def _answer_one(asking: Asking, question: str, notes: list[str], as_json: bool) -> None:
    from guided.cli.methods.drafting import drafts_in_words

    asking = asking.about(question)
    for note in asking.database.notes:
        if note not in notes:
            notes = [*notes, note]
            if not as_json:
                print_note(note)
    prompt, budget = asking.prompt(question)
    trace = _trace(asking.constraint, budget) if asking.query.explain else None
    made = asking.write(prompt, budget, traces=[] if trace is None else [trace], quiet=as_json)
    if made.drafts is not None and not as_json:
        print_note(drafts_in_words(made.drafts))
    if budget - made.tokens < _NEAR:
        near = f"the statement took {made.tokens} of {budget} tokens, and near the end only what ends in time may come"
        notes = [*notes, f"{near}: raise --max-new-tokens if it is not what was asked"]
        if not as_json:
            print_note(notes[-1])
    steps = [] if trace is None else trace.tokens(made.tokens)
    record: dict[str, Any] = {"sql": made.text, "model": asking.model, "tokens": made.tokens, **made.facts}
    if notes:
        record["notes"] = notes
    if asking.query.explain:
        record["trace"] = _records(steps)
    if not as_json:
        if "rerank" in made.facts:
            print_note(
                "{votes} of {samples} statements agree, {answers} answers, {failed} failed".format(
                    **made.facts["rerank"]
                )
            )
        show_statement(made.text, steps, asking.answer)
    show_answer(record, asking.query.db, asking.answer, as_json)


def _check_many(question: str | None, query: QueryOptions, many: ManyOptions, sampling: SamplingOptions) -> None:
    """Raise `GuidedError` for a question and a batch, for neither, and for what only one text can have."""
    if many.batch is None and (question is None or not question.strip()):
        raise GuidedError("the question is empty", remedy='Ask something: "How many users are there?"')
    if many.batch is not None and question is not None:
        raise GuidedError("the questions are those of the batch", where="--batch", remedy="Leave out the question.")
    if many.batch is not None and query.explain:
        raise GuidedError("the colours are those of one statement", where="--explain", remedy="Leave out --batch.")
    if many.batch is not None and sampling.replay is not None:
        raise GuidedError("a replay shows one run", where="--replay", remedy="Leave out --batch.")
    if many.rerank is not None and (sampling.sampler is not None or searches(sampling)):
        raise GuidedError(
            "a sampler or a search chooses by itself", where="--rerank", remedy="Leave out --rerank, or the other."
        )
    if many.rerank is not None and query.explain:
        raise GuidedError("the colours are those of one statement", where="--explain", remedy="Leave out --rerank.")
    if query.explain:
        _check_explaining(sampling)


def _check_explaining(sampling: SamplingOptions) -> None:
    """Raise `GuidedError` where no tokens are taken one by one that could be coloured."""
    if sampling.sampler is not None:
        raise GuidedError(
            "the colours are those of one text under the mask, and a sampler writes many",
            where="--explain",
            remedy="Use --replay FILE.html with --sampler.",
        )
    if searches(sampling):
        raise GuidedError(
            "the colours are those of tokens taken one by one, and a search compares whole texts",
            where="--explain",
            remedy="Leave it out, or --search, --must-include and --must-exclude.",
        )
    if sampling.draft is not None:
        raise GuidedError(
            "the colours are of what the model says of each token, and drafts leave out passes",
            where="--explain",
            remedy="Leave out --explain or --draft.",
        )


def _trace(constraint: Any, budget: int) -> Any:
    from guided.cli.trace import MaskTrace

    return MaskTrace(constraint, budget)


def _records(steps: list[TracedToken]) -> list[dict[str, Any]]:
    from guided.cli.trace import as_record

    return [as_record(step) for step in steps]
