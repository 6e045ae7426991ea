"""`ngram_model`: a language model of the n-grams of some texts, smoothed; what superposed decoding weighs drafts by.

Witten-Bell smoothing (Witten and Bell 1991): after a context c that was followed by T(c) different tokens in n(c)
places, ``p(v | c) = (n(c v) + T(c) p(v | c'))  / (n(c) + T(c))`` with c' the context without its first token, down to
the shares of single tokens.  Tokens that no text has are impossible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from guided.errors import GuidedError
from guided.lm.table import TableModel

__all__ = ["ngram_model"]


def ngram_model(
    texts: Iterable[Sequence[int]], *, width: int, eos_ids: Iterable[int] = (), order: int = 4
) -> TableModel:
    """The model of n-grams up to ``order`` tokens; a text ends with the first end-of-text id, unless it has one.

    ``texts`` are token ids of texts like those that are wanted.  A distribution costs ``O(width)`` and what followed
    the contexts.  Raises `GuidedError` without texts, for an order below 1, and for ids that are not in
    ``range(width)``.

    >>> model = ngram_model([[0, 1, 0, 2]], width=4, order=2)
    >>> model.start([[0]]).last.logits.exp()
    tensor([[0.2500, 0.3750, 0.3750, 0.0000]], dtype=torch.float64)
    """
    ends = sorted(int(end) for end in eos_ids)
    whole = [list(text) for text in texts]
    if ends:
        whole = [text if set(text[-1:]) & set(ends) else [*text, ends[0]] for text in whole]
    if order < 1 or not any(whole):
        raise GuidedError(f"n-grams up to {order} tokens of {len(whole)} texts", remedy="Give texts, and 1 or more.")
    outside = [token for text in whole for token in text if not 0 <= token < width]
    if outside:
        raise GuidedError(f"the ids {outside[:5]} are not in range({width})", remedy="Give the model's own ids.")
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for text in whole:
        for place, token in enumerate(text):
            for length in range(min(order, place + 1)):
                counts[tuple(text[place - length : place])][token] += 1
    table = {context: _followers(found) for context, found in counts.items()}

    def logprobs(tokens: tuple[int, ...]) -> NDArray[np.float64]:
        found = np.zeros(width)
        for length in range(min(order, len(tokens) + 1)):
            known = table.get(tokens[len(tokens) - length :])
            if known is None:
                break
            ids, numbers = known
            if not length:
                found[ids] = numbers / numbers.sum()
                continue
            found *= len(ids) / (numbers.sum() + len(ids))
            found[ids] += numbers / (numbers.sum() + len(ids))
        with np.errstate(divide="ignore"):
            logs: NDArray[np.float64] = np.log(found)
        return logs

    return TableModel(logprobs, width=width, eos_ids=ends)


def _followers(counts: Counter[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    ids = sorted(counts)
    return np.array(ids, np.int64), np.array([counts[token] for token in ids], np.float64)
