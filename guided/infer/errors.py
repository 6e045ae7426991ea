"""Potentials that break their own laws, samplers that fall short; all else that is raised is in `guided.errors`."""

from __future__ import annotations

from guided.errors import GuidedError

__all__ = ["FewSamplesWarning", "PotentialError"]


class PotentialError(GuidedError):
    """A potential returned NaN or plus infinity, the wrong number of values, or broke monotonicity.

    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> broken = infer.TextScorer(letters, lambda texts: [float("nan") for text in texts])
    >>> try:
    ...     broken.complete([0, 1])
    ... except infer.PotentialError as error:
    ...     print(error.remedy)
    A potential returns finite numbers, or minus infinity for what is forbidden.
    """


class FewSamplesWarning(UserWarning):
    """A sampler gave fewer samples than it was asked for.

    >>> import warnings
    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     found = infer.rejection(0, model, [0], language, n=9, max_tokens=4, max_attempts=20)
    >>> [each.category.__name__ for each in told], len(found) < 9
    (['FewSamplesWarning'], True)
    """
