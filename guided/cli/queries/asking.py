"""A model, the language of a database, and questions that become statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import Decoding, ModelOptions, SamplingOptions
from guided.cli.methods.steered import Steered
from guided.cli.queries.options import AnswerOptions, ManyOptions, QueryOptions
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.cli.methods.writing import Written
    from guided.constraint.constraint import Constraint
    from guided.grammar.ir import Grammar
    from guided.grammar.sql import DatabaseSchema

__all__ = ["Asking", "AskingJob", "language_of"]


def language_of(database: DatabaseSchema, query: QueryOptions, model: str) -> Grammar:
    """The language of a model's statements over a database."""
    import guided
    from guided.cli.inputs import located
    from guided.eval.requests import is_packaged

    # It misspells names, and a sub-query can define any.
    forward = not is_packaged(model) if query.forward is None else query.forward
    with located(query.db):
        return guided.sql(database, forward=forward)


@dataclass(frozen=True)
class AskingJob:
    """What the command line asks for: a database, a model, how it decodes, and what is done with statements."""

    query: QueryOptions
    answer: AnswerOptions
    many: ManyOptions
    how: Decoding
    running: ModelOptions
    sampling: SamplingOptions

    def database(self) -> DatabaseSchema:
        """The tables and columns of the database, as it is now."""
        from guided.grammar.sql import reflect

        return reflect(self.query.db, sample_values=self.query.sample_values, schemas=self.query.schema)

    def language(self) -> tuple[DatabaseSchema, Grammar]:
        """The database, and its language."""
        database = self.database()
        return database, language_of(database, self.query, self.running.model)

    def asking(self, *, quiet: bool, known: tuple[DatabaseSchema, Grammar] | None = None) -> Asking:
        """Load the model, and compile the language of the database for it; both are read now if not ``known``."""
        from guided.cli.inputs import located
        from guided.cli.models import compile_for, load_model, seed_draws

        database, grammar = known or self.language()
        running = self.running
        loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=quiet)
        with located(self.query.db):
            constraint = compile_for(grammar, loaded, quiet=quiet)
        seed_draws(self.how)
        ready = Steered(loaded, self.sampling, running, quiet)
        return Asking(ready, constraint, database, self.how, self.query, self.answer, self.many)


class Asking:
    """What turns questions into statements, one by one."""

    def __init__(
        self,
        ready: Steered,
        constraint: Constraint,
        database: DatabaseSchema,
        how: Decoding,
        query: QueryOptions,
        answer: AnswerOptions,
        many: ManyOptions,
    ) -> None:
        self.ready, self.constraint, self.database, self.how = ready, constraint, database, how
        self.query, self.answer, self.many = query, answer, many
        self.model = ready.running.model

    def about(self, question: str) -> Asking:
        """The same over the tables that a question is about, with ``--link``.

        Raises what `guided.sql` does.
        """
        from guided.cli.models import compile_for
        from guided.grammar.sql import linked

        if self.query.link is None:
            return self
        database = linked(self.database, question, most_tables=self.query.link)
        constraint = compile_for(language_of(database, self.query, self.model), self.ready.loaded, quiet=True)
        return Asking(self.ready, constraint, database, self.how, self.query, self.answer, self.many)

    def prompt(self, question: str) -> tuple[Any, int]:
        """The prompt for a question, and how many tokens an answer may have.

        Raises `GuidedError` for an empty question, `LimitError` for one that leaves the model no room.
        """
        from guided.cli.models import budget_for
        from guided.eval.requests import sql_request
        from guided.hf.front.encoding import as_asked

        if not question.strip():
            raise GuidedError("the question is empty", remedy='Ask something: "How many users are there?"')
        prompt, ids = as_asked(sql_request(self.model, self.database, question), self.ready.loaded.tokenizer)
        return prompt, budget_for(self.ready.loaded, self.constraint, len(ids), self.how.max_new_tokens)

    def write(self, prompt: Any, budget: int, *, traces: Sequence[Any] = (), quiet: bool) -> Written:
        """The statement for a prompt; with ``--rerank`` the one whose answer most samples agree on."""
        from guided.cli.methods.writing import write_texts

        if self.many.rerank is not None:
            return self._reranked(prompt, budget, quiet)
        (made,) = write_texts(
            self.ready, [prompt], self.constraint, self.how, max_new_tokens=budget, processors=traces, quiet=quiet
        )
        return made

    def _reranked(self, prompt: Any, budget: int, quiet: bool) -> Written:
        from guided.cli.methods.writing import write_texts
        from guided.grammar.sql.reranking import rerank_by_execution

        # One that takes the likeliest tokens would write the same statement again and again.
        how = replace(self.how, temperature=self.how.temperature or 1.0)
        prompts = [prompt] * self.many.samples
        made = write_texts(self.ready, prompts, self.constraint, how, max_new_tokens=budget, quiet=quiet)
        chosen = rerank_by_execution(self.query.db, [each.text for each in made], seconds=self.answer.seconds)
        written = next(each for each in made if each.text == chosen.statement)
        return replace(written, facts={**written.facts, "rerank": chosen.record()})
