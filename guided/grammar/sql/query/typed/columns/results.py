"""Names of the result within SELECT itself, which DuckDB reads where no source has such a column."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.calls import stronger
from guided.grammar.sql.query.typed.frames import UNKNOWN, parameters
from guided.grammar.sql.query.typed.relations import bare_columns
from guided.grammar.sql.query.typed.scope import Clause, Output, Query
from guided.grammar.sql.query.typed.types import NESTED, is_literal

__all__ = ["ResultName"]

_NONE = Names(words_of(()))


class ResultName:
    """The name of a column of the result that was read before."""

    label = "a column of the result"
    price = 64

    def allowed(self, query: Query) -> Names:
        """Those that are no columns of a source, and are read again as they were."""
        found = _named(query)
        return Names(words_of(found)) if found else _NONE

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it, of which no source has a column by that name."""
        found = do.untraced(query)
        if found is None:
            return None
        output = _named(query)[name]
        found = do.read(found, output.type, (name, 2))
        found = found and found.with_top(found.top._replace(indexed=output.type not in NESTED))
        return found and found._replace(
            refers=True, barred=found.barred | {name}, tainted=stronger(found.tainted, output.tainted)
        )

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a literal is shorter."""
        return ()


def _named(query: Query) -> dict[str, Output]:
    """The columns of the result by their names, where these may be read as such."""
    if (
        query.clause is not Clause.SELECT
        or not query.outputs
        or query.outside is not None
        or query.followed is not None
    ):
        return {}
    if do.open_operand(query) is None:
        return {}
    names = query.given_names
    waiting = {one.column for one in query.pending}
    bare, hidden = bare_columns(query.sources), parameters(query.around)
    # Neither aggregates nor windows stand within their like.
    tainted = ("",) if query.is_local else ("", "aggregate") if query.calls else ("", "aggregate", "window", "both")
    return {
        output.name: output
        for output in query.outputs
        if output.name is not None
        and not output.implied
        and names.count(output.name) == 1
        and not (output.asked or output.type == UNKNOWN or is_literal(output.type))
        and output.tainted in tainted
        and output.name not in waiting
        and output.name not in bare.unique
        and output.name not in bare.ambiguous
        and output.name not in hidden
    }
