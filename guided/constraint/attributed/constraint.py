"""`AttributedConstraint`: an L-attributed grammar over the tokens of a vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.attributed.rows import Rows
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint
from guided.grammar.attributed.language import AttributedLanguage
from guided.vocab.vocabulary import Vocabulary

__all__ = ["AttributedConstraint"]


class AttributedConstraint(LiveConstraint):
    """A `LiveConstraint` whose masks come from lists of tokens where any name or string may stand."""

    def __init__(self, language: AttributedLanguage, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        super().__init__(language, vocabulary, limits)
        self._rows = Rows(language, self._tree)

    def _walk(self, at: Any) -> NDArray[np.uint32]:
        return self._rows.row(at)
