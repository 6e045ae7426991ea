"""The exception tree.

::

    GuidedError                 everything that guided raises on purpose
    ├── GrammarError            the text of a grammar, pattern or schema is malformed
    ├── UnsupportedError        well-formed, but guided cannot enforce it exactly, so it is refused
    ├── UnsatisfiableError      the language is empty: nothing could ever be generated
    ├── LimitError              a counted work limit (`guided.Limits`) was reached
    ├── TextError               a text is not what it was said to be: not JSON, not in the grammar
    └── VocabularyError         a tokenizer whose token bytes cannot be known, or that cannot spell the language

Every error says what, where and what to do.  ``where`` is a JSON pointer (``#/properties/a``), ``line 3, column 7``,
or an offset into a pattern; ``remedy`` is a sentence the user can act on.  This file imports nothing.
"""

from __future__ import annotations

__all__ = [
    "GrammarError",
    "GuidedError",
    "LimitError",
    "TextError",
    "UnsatisfiableError",
    "UnsupportedError",
    "VocabularyError",
    "extra_missing",
]


class GuidedError(Exception):
    """Base of all errors raised on purpose; ``what``, ``where`` and ``remedy`` are kept as attributes.

    >>> print(GuidedError("no such rule 'x'", where="line 1, column 3", remedy="Define it."))
    no such rule 'x' (at line 1, column 3). Define it.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what, where, remedy)

    def __str__(self) -> str:
        place = f" (at {self.where})" if self.where else ""
        advice = f". {self.remedy}" if self.remedy else ""
        return f"{self.what}{place}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.remedy))


def _rebuild(kind: type[GuidedError], what: str, where: str | None, remedy: str | None) -> GuidedError:
    return kind(what, where=where, remedy=remedy)


class GrammarError(GuidedError):
    """The text of a grammar, pattern or schema is malformed.

    >>> import guided
    >>> guided.gbnf('root ::= "a" | itm')
    Traceback (most recent call last):
    guided.errors.GrammarError: ...
    """


class UnsupportedError(GuidedError):
    r"""The input is well-formed, but cannot be enforced exactly; it is refused rather than approximated.

    >>> import guided
    >>> guided.regex(r"(a+)\1")
    Traceback (most recent call last):
    guided.errors.UnsupportedError: a backreference: its group has infinitely many texts, ... (at offset 4). ...
    """


class UnsatisfiableError(GuidedError):
    """The language is empty, so there is nothing to generate.

    >>> import guided
    >>> guided.json_schema({"allOf": [{"type": "string"}, {"type": "null"}]})
    Traceback (most recent call last):
    guided.errors.UnsatisfiableError: no value satisfies this schema (at #). Relax the part named here.
    """


class LimitError(GuidedError):
    """A counted work limit was reached; see ``guided.Limits``.

    >>> import guided, numpy
    >>> letters = guided.Vocabulary.from_tokens([b"y", b"e", b"s", None], eos_ids=[3])
    >>> constraint = guided.compile(guided.choice(["yes"]), letters)
    >>> constraint.fill_budget_mask(constraint.start, numpy.zeros(1, numpy.uint32), 2)
    Traceback (most recent call last):
    guided.errors.LimitError: ...
    """


class TextError(GuidedError):
    """A text that was to be read back is not JSON, or not in the language of its grammar.

    >>> import guided
    >>> guided.partial_json("[1, 02]")
    Traceback (most recent call last):
    guided.errors.TextError: ...
    """


class VocabularyError(GuidedError):
    """A tokenizer whose token bytes cannot be known, or that cannot spell the language.

    >>> import guided
    >>> letters = guided.Vocabulary.from_tokens([b"n", b"o", None], eos_ids=[2])
    >>> guided.compile(guided.special_token("<think>"), letters)
    Traceback (most recent call last):
    guided.errors.VocabularyError: this vocabulary has no special token '<think>'. ...
    """


_EXTRAS = {"torch": "hf", "transformers": "hf", "numba": "numba"}
"""The extra that brings a library, where parts of guided are written with the library all through."""


def extra_missing(error: ModuleNotFoundError) -> GuidedError | None:
    """The error to raise where a library of an extra is not installed; None where another module is missing.

    >>> print(extra_missing(ModuleNotFoundError("No module named 'torch'", name="torch")))
    this needs torch, which is not installed. Run: pip install 'guided-decoding[hf]'
    """
    library = (error.name or "").partition(".")[0]
    if library not in _EXTRAS:
        return None
    return GuidedError(
        f"this needs {library}, which is not installed",
        remedy=f"Run: pip install 'guided-decoding[{_EXTRAS[library]}]'",
    )
