"""The one interface to language models, and models that need no transformers; the Transformers model is in `guided.hf`.

Reading order: `model` (the protocols `LanguageModel` and `Sequences`), `table` (exact models for tests).  Loads torch.
"""

from guided.lm.model import (
    NOTHING,
    Abilities,
    Calls,
    LanguageModel,
    Needs,
    Scores,
    Sequences,
    Tree,
    check_needs,
    next_logits,
)
from guided.lm.table import TableModel

__all__ = [
    "NOTHING",
    "Abilities",
    "Calls",
    "LanguageModel",
    "Needs",
    "Scores",
    "Sequences",
    "TableModel",
    "Tree",
    "check_needs",
    "next_logits",
]
