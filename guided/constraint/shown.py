"""What a notebook shows of a constraint: its grammar, and what it allows first."""

from __future__ import annotations

import numpy as np

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.grammar.ir import Grammar
from guided.grammar.shown import grammar_facts
from guided.html import card, facts

__all__ = ["constraint_html"]

_TOKENS = 12
"""First tokens that are shown."""


def constraint_html(constraint: Constrains, grammar: Grammar) -> str:
    """Costs the mask of the first state, where that was not made yet."""
    vocabulary = constraint.vocabulary
    known = [*grammar_facts(grammar), ("vocabulary", f"{vocabulary.size:,} ids")]
    try:
        row = np.zeros(vocabulary.n_words, np.uint32)
        constraint.fill_mask(constraint.start, row)
        n_first = tokenset.count(row)
        named = [_spelled(constraint, token) for token in tokenset.first_ids(row, _TOKENS).tolist()]
        more = f" and {n_first - _TOKENS:,} more" if n_first > _TOKENS else ""
        known.append(("allowed first", f"{n_first:,} tokens: {' '.join(named)}{more}"))
        known.append(("texts begin with", constraint.forced(constraint.start).decode("utf-8", "backslashreplace")))
        known.append(("tokens of the shortest text", constraint.shortest_completion(constraint.start)))
    except GuidedError as error:
        known.append(("the first mask", str(error)))
    return card("Constraint", facts(known))


def _spelled(constraint: Constrains, token: int) -> str:
    data = constraint.vocabulary.token_bytes(token)
    return repr(data.decode("utf-8", "backslashreplace")) if data else f"<{token}>"
