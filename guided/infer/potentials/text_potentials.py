"""Potentials over text: Python predicates, scorers that answer in batches, unit tests.

Tokens become bytes by the vocabulary, and bytes text where they are UTF-8.  Bytes may end inside a character: what is
asked about a prefix is then asked about the text before that character.
"""

from __future__ import annotations

import codecs
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["TextPotential", "TextPredicate", "TextScorer", "UnitTest"]

_NEVER = -math.inf

REMEMBERED = 1 << 16
"""Answers kept by a potential: asked again, and by tokens that spell the same text, they cost nothing."""


class TextPotential(Potential[bytes]):
    """A potential that sees tokens as text; a subclass gives `weights_of_prefixes` and `weights_of_texts`.

    A state is the bytes so far.  Bytes that are not UTF-8, and can become none, weigh nothing; neither does a finished
    text that ends inside a character.  Ids without text are never allowed.  Equal texts are asked about once.

    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> class Balanced(infer.TextPotential):
    ...     def weights_of_prefixes(self, texts):
    ...         return [0.0 for text in texts]
    ...     def weights_of_texts(self, texts):
    ...         return [-float(abs(text.count("a") - text.count("b"))) for text in texts]
    >>> Balanced(letters).complete([0, 1, 0, 0]), Balanced(letters).complete([0, 1])
    (-2.0, -0.0)
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._prefixes: dict[str, float] = {}
        self._texts: dict[str, float] = {}

    @abstractmethod
    def weights_of_prefixes(self, texts: Sequence[str]) -> Sequence[float]:
        """The log weights of distinct texts that may go on, in one batch."""

    @abstractmethod
    def weights_of_texts(self, texts: Sequence[str]) -> Sequence[float]:
        """The log weights of distinct finished texts, in one batch."""

    def start(self) -> bytes:
        """No bytes."""
        return b""

    def advance(self, state: bytes, token: int) -> bytes:
        """The bytes and those of the token."""
        return state + (self.vocabulary.token_bytes(token) or b"\xff")

    def step_bytes(self, state: bytes, data: bytes) -> tuple[bytes, float]:
        """The bytes and some more."""
        before, after = self.prefix_each([state, state + data])
        return state + data, after - before if after > _NEVER and before > _NEVER else _NEVER

    def prefix_at(self, state: bytes) -> float:
        """The weight of the whole characters as a prefix."""
        return self.prefix_each([state])[0]

    def complete_at(self, state: bytes) -> float:
        """The weight of the text."""
        return self.complete_each([state])[0]

    def prefix_each(self, states: Sequence[bytes]) -> list[float]:
        """Weights of prefixes; texts not met before are asked about in one batch."""
        texts = [_whole_characters(state) for state in states]
        return self._answers(texts, self._prefixes, self.weights_of_prefixes, "prefixes")

    def complete_each(self, states: Sequence[bytes]) -> list[float]:
        """Weights of texts; those not met before are asked about in one batch."""
        texts = [_text(state) for state in states]
        return self._answers(texts, self._texts, self.weights_of_texts, "texts")

    def _answers(
        self,
        texts: list[str | None],
        known: dict[str, float],
        ask: Callable[[Sequence[str]], Sequence[float]],
        what: str,
    ) -> list[float]:
        missing = list(dict.fromkeys(text for text in texts if text is not None and text not in known))
        fresh: dict[str, float] = {}
        if missing:
            values = list(ask(missing))
            if len(values) != len(missing):
                raise PotentialError(
                    f"{self!r} gave {len(values)} weights for {len(missing)} {what}", remedy="Return one for each."
                )
            fresh = {text: self.checked(float(value)) for text, value in zip(missing, values, strict=True)}
        found = [_NEVER if text is None else fresh[text] if text in fresh else known[text] for text in texts]
        known.update(fresh)
        while len(known) > REMEMBERED:
            del known[next(iter(known))]
        return found


def _whole_characters(data: bytes) -> str | None:
    """The text before a character that is not complete; None for bytes that no text begins with."""
    try:
        return codecs.utf_8_decode(data, "strict", False)[0]
    except UnicodeDecodeError:
        return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


class TextPredicate(TextPotential):
    """True and False of texts as weights 1 and 0.

    ``complete(text)`` decides on finished texts; ``prefix(text)`` whether a text may still become one, and must hold
    for every beginning of an allowed text.  Without it every beginning may, and only the end decides.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        complete: Callable[[str], bool],
        prefix: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(vocabulary)
        self._complete, self._prefix = complete, prefix

    def content(self) -> Any:
        """Both functions."""
        return (self.vocabulary, self._complete, self._prefix)

    @property
    def boolean(self) -> bool:
        """Always True."""
        return True

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """0 or minus infinity."""
        return [0.0 if self._prefix is None or self._prefix(text) else _NEVER for text in texts]

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """0 or minus infinity."""
        return [0.0 if self._complete(text) else _NEVER for text in texts]

    def __repr__(self) -> str:
        return f"<TextPredicate {_name(self._complete)}>"


class TextScorer(TextPotential):
    """Scores of texts as log weights: ``exp(scale * score)``, for rewards, classifiers and other models.

    ``complete(texts)`` gives a score for each of a batch of distinct finished texts, ``prefix(texts)`` for texts that
    may go on (None: 0 for all).  A score of minus infinity forbids the text.  Raises `ValueError` where ``scale`` is
    not above 0.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        complete: Callable[[Sequence[str]], Iterable[float]],
        prefix: Callable[[Sequence[str]], Iterable[float]] | None = None,
        *,
        scale: float = 1.0,
    ) -> None:
        super().__init__(vocabulary)
        if not 0 < scale < math.inf:
            raise ValueError(f"scale is a positive number, not {scale}")
        self._complete, self._prefix, self.scale = complete, prefix, scale

    def content(self) -> Any:
        """Both functions and the scale."""
        return (self.vocabulary, self._complete, self._prefix, self.scale)

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores, or 0 without a scorer of prefixes."""
        return [0.0] * len(texts) if self._prefix is None else self._scaled(self._prefix(texts))

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores."""
        return self._scaled(self._complete(texts))

    def _scaled(self, scores: Iterable[Any]) -> list[float]:
        return [self.scale * float(score) for score in scores]

    def __repr__(self) -> str:
        return f"<TextScorer {_name(self._complete)}>"


class UnitTest(TextPotential):
    """A test that is run on finished texts: weight 1 where it returns, ``exp(failing)`` where it raises.

    ``failures`` are the exceptions that mean the text failed; others are the test's own and are raised.  The test runs
    in this process: whoever executes generated code must confine it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        test: Callable[[str], object],
        *,
        failing: float = _NEVER,
        failures: type[Exception] | tuple[type[Exception], ...] = Exception,
    ) -> None:
        super().__init__(vocabulary)
        if not failing <= 0:
            raise ValueError(f"failing is a log weight of at most 0, not {failing}")
        self._test, self.failing, self.failures = test, failing, failures

    def content(self) -> Any:
        """The test and what its failures weigh."""
        return (self.vocabulary, self._test, self.failing, self.failures)

    @property
    def boolean(self) -> bool:
        """True where failing texts are forbidden."""
        return self.failing == _NEVER

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """0: only finished texts are tested."""
        return [0.0] * len(texts)

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """0 or ``failing``."""
        return [self._weight(text) for text in texts]

    def _weight(self, text: str) -> float:
        try:
            self._test(text)
        except self.failures:
            return self.failing
        return 0.0

    def __repr__(self) -> str:
        return f"<UnitTest {_name(self._test)}>"


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__
