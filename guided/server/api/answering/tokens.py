"""Tokens as answers tell them: guided's reports, and OpenAI's ``logprobs``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from guided.server.api.shapes.chat import TokenLogprob, TopLogprob
from guided.server.api.shapes.reports import AlternativeReport, TokenReport
from guided.server.scheduling import Alternative, Token
from guided.vocab import Vocabulary

__all__ = ["Spelling", "finite"]


def finite(value: float) -> float | None:
    """A number as JSON has it: minus infinity is null."""
    return value if math.isfinite(value) else None


class Spelling:
    """How tokens of a vocabulary are shown."""

    def __init__(self, vocabulary: Vocabulary, *, before_mask: bool) -> None:
        self._names = {token: name for name, token in vocabulary.special_tokens.items()}
        self._before_mask = before_mask
        self._vocabulary = vocabulary

    def shown(self, token: Token | Alternative) -> str:
        """The token's text; bytes that are no text show a replacement character, special tokens their name."""
        return token.data.decode("utf-8", "replace") if token.data else self._names.get(token.id, "")

    def report(self, token: Token, why: Mapping[int, str]) -> TokenReport:
        """A token with its alternatives; ``why`` says of some why they were refused."""
        return TokenReport(
            id=token.id, text=self.shown(token), bytes=list(token.data), logprob=finite(token.logprob),
            model_logprob=finite(token.model_logprob), removed=min(max(token.removed, 0.0), 1.0), drafted=token.drafted,
            alternatives=[
                AlternativeReport(
                    id=one.id, text=self.shown(one), bytes=list(one.data), logprob=finite(one.logprob),
                    model_logprob=finite(one.model_logprob), allowed=one.allowed, why=why.get(one.id),
                )
                for one in token.alternatives
            ],
        )  # fmt: skip

    def plain(self, token: int, drafted: bool) -> TokenReport:
        """A token of which nothing else is known."""
        data = self._vocabulary.token_bytes(token) or b""
        text = data.decode("utf-8", "replace") if data else self._names.get(token, "")
        return TokenReport(
            id=token, text=text, bytes=list(data), logprob=None, model_logprob=None, removed=None, drafted=drafted,
            alternatives=[],
        )  # fmt: skip

    def logprob(self, token: Token, n: int) -> TokenLogprob:
        """A token with the ``n`` likeliest in its place; those of probability 0 are none of them."""
        likeliest = sorted(token.alternatives, key=self._law, reverse=True)
        top = [self._top(one) for one in likeliest if self._law(one) > -math.inf][:n]
        return TokenLogprob(**self._top(token).model_dump(), top_logprobs=top)

    def _law(self, token: Token | Alternative) -> float:
        return token.model_logprob if self._before_mask else token.logprob

    def _top(self, token: Token | Alternative) -> TopLogprob:
        return TopLogprob(token=self.shown(token), logprob=self._law(token), bytes=list(token.data))
