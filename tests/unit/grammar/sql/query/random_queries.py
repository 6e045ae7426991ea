"""Random beginnings of queries: at each place any of the terminals that may come, each as likely."""

from __future__ import annotations

import random

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import Lexis, is_called
from guided.grammar.attributed.nodes import Keyword, Literal, LiteralForm, Name, Sign, Spelled
from guided.grammar.attributed.quotes import closes, doubled
from guided.grammar.attributed.states import At
from guided.grammar.attributed.threads import Open

NUMBERS = ("1", "0", "2.5", "10", ".5")
STRINGS = ("''", "'a'", "'it''s'", "'2020-01-01'")
FREE = ("a", "b", "x1", "total", "foo", "name", "id", "c", "d", "e", "age", "singer", "key", "value", "rowid")


RARE = [
    "(",
    "over",
    "window",
    "rows",
    "range",
    "groups",
    "exclude",
    "filter",
    "with",
    "recursive",
    "materialized",
    "values",
    "union",
    "intersect",
    "natural",
    "using",
    "json_each",
    "order",
    "group",
    "having",
    "limit",
    "in",
    "between",
    "partition",
    "case",
    "exists",
    "is",
    "cast",
    "distinct",
    "lateral",
    "rollup",
    "grouping",
    "qualify",
    "all",
    "escape",
    "replace",
    "percent",
    "positional",
]
"""Words and signs that lead to clauses which are rare where each terminal is as likely."""


def begun(
    rng: random.Random, language: AttributedLanguage, most: int, *, text: str = "", rare: bool = False
) -> tuple[str, At]:
    """A text of at most so many lexemes more that some query begins with, and the state behind it.

    ``rare``: some of the words of rare clauses are taken more often.
    """
    start = read(language, language.start, text)
    assert start is not None, text
    at = start
    favoured, share = (rng.sample(RARE, 5), rng.random()) if rare else ([], 0.0)
    for _ in range(most):
        place = language.resolved(at)
        assert place is not None
        opens = list(place.opens)
        rng.shuffle(opens)
        if rare and rng.random() < share:
            opens.sort(key=lambda open_: _word(open_) not in favoured)
        for open_ in opens:
            if open_.terminal is None:
                if rng.random() < 0.3:
                    return text, at
                continue
            written = lexeme(rng, language, open_)
            after = None if written is None else read(language, at, f" {written}" if text else written)
            if after is not None and language.resolved(after) is not None:
                at, text = after, f"{text} {written}" if text else str(written)
                break
        else:
            break
    return text, at


def _word(open_: Open) -> str:
    match open_.terminal:
        case Keyword(word):
            return word
        case Sign(text):
            return text
    return ""


def read(language: AttributedLanguage, at: At, text: str) -> At | None:
    """The state behind a text, None where it is not taken."""
    state: At | None = at
    for byte in text.encode():
        state = None if state is None else language.step(state, byte)
    return state


def lexeme(rng: random.Random, language: AttributedLanguage, open_: Open) -> str | None:
    """A lexeme of some kind, None where none may come."""
    match open_.terminal:
        case Keyword(word):
            return word.upper() if rng.random() < 0.8 else word
        case Sign(text):
            return text
        case Name(kind, spelled):
            names = kind.allowed(open_.attribute)
            known = sorted(names.words.members)
            if spelled is Spelled.STRING:
                return f'"{rng.choice(FREE)}"'
            is_free = names.free and (not known or rng.random() < 0.3)
            if not (is_free or known):
                return None
            return _name(rng, language.lexis, rng.choice(FREE if is_free else known), spelled)
        case Literal(form, kind):
            values = kind.allowed(open_.attribute)
            if values is None:
                numbers = (*NUMBERS, "0x1F", "0Xe") if language.lexis.hexadecimal else NUMBERS
                return rng.choice(numbers if form is LiteralForm.NUMBER else STRINGS)
            return rng.choice(sorted(values.members)[:5]) if len(values) else None
    raise AssertionError(open_)


def _name(rng: random.Random, lexis: Lexis, name: str, spelled: Spelled) -> str:
    """A name, of which one in four stands in any quotes where there are several kinds of them."""
    if len(lexis.quotes) == 1 or spelled is Spelled.WORD or is_called(name) or rng.random() < 0.75:
        return lexis.written(name)
    quote = ord(rng.choice([one for one in lexis.quotes if one != "[" or "]" not in name]))
    return (bytes([quote]) + doubled(name.encode(), quote) + bytes([closes(quote)])).decode()
