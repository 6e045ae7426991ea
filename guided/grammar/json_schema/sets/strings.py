"""Sets of strings as data: finitely many words, or a regular language with bounds on its length.

Languages are over the text itself in UTF-8, how JSON spells it is `json_string`'s; lengths count characters (code
points).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from guided.errors import LimitError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import (
    EMPTY,
    Expr,
    concat,
    difference,
    intersection,
    json_string,
    literal,
    repeat,
    words,
)
from guided.grammar.regular.lengths import with_length
from guided.grammar.regular.texts import CHARACTER, CONTENT, holds_word

_QUOTE = literal(b'"')


EMPTINESS_STEPS = 8_000
"""States that one emptiness search of a pattern with others may visit; those of the corpora need below 2,000."""
SHORT_SEARCH = 50
"""Steps spent on each intermediate intersection; what stays undecided is decided once, for the whole value."""


MAX_CHECKED = 256
"""``minLength`` beside the format ``regex`` up to which characters are counted one by one."""


@dataclass(frozen=True, slots=True)
class StringSet:
    """``words`` when finite, else the strings of ``language`` (None: any) with ``low`` to ``high`` characters.

    Without those in ``without``, which are kept as data so that many exclusions stay one.  ``regex``: only those that
    are patterns, the format of this name (True), or are none (False); that is no part of ``language`` since most
    patterns are left to a checker (`guided.grammar.formats.regex_automata`).  ``host``: only those that are
    internationalized host names, or none, for the same reason (`guided.grammar.formats.idna_names`).
    ``hostname``: only those that are host names of ASCII, or none; which encoded labels stand for anything is not
    regular, so names that have one are in no language made of either, and words are looked at one by one.
    """

    words: frozenset[str] | None = None
    language: Expr | None = None
    low: int = 0
    high: int | None = None
    without: frozenset[str] = frozenset()
    regex: bool | None = None
    host: bool | None = None
    hostname: bool | None = None

    def is_empty(self, limit: int = EMPTINESS_STEPS) -> bool:
        """Is there no such string?  `LimitError` when that takes more than ``limit`` steps to decide."""
        if self.words is not None:
            return not self.words
        if self.high is not None and self.high < self.low:
            return True
        if self.regex is not None or self.host is not None:
            return not self.is_checked() and self.content() is EMPTY
        if self.hostname is not None:
            if not self._with_hostname(True).is_empty(limit):
                return False
            if self._with_hostname(False).is_empty(limit):
                return True
            raise refusals.ENCODED_HOSTS.at()
        if self.language is None and (self.high is None or not self.without):
            return False
        return not inhabited(self.content(), limit)

    def is_surely_empty(self) -> bool:
        """Is there no such string, as far as a short search tells?"""
        return self._short_answer() is True

    def is_surely_inhabited(self) -> bool:
        """Is there such a string, as far as a short search tells?"""
        return self._short_answer() is False

    def _short_answer(self) -> bool | None:
        try:
            return self.is_empty(SHORT_SEARCH)
        except LimitError:
            return None

    def __contains__(self, word: str) -> bool:
        if self.words is not None:
            return word in self.words
        if len(word) < self.low or (self.high is not None and len(word) > self.high) or word in self.without:
            return False
        if self.language is not None and not holds_word(self.language, word):
            return False
        if self.host is not None:
            from guided.grammar.formats.idna_names import is_host_name

            if is_host_name(word) is not self.host:
                return False
        if self.hostname is not None:
            from guided.grammar.formats.host_names import is_ascii_host_name

            if is_ascii_host_name(word) is not self.hostname:
                return False
        if self.regex is None:
            return True
        from guided.grammar.formats.pattern_reading import is_pattern

        return is_pattern(word) is self.regex

    def content(self) -> Expr:
        """The language of the texts; of patterns and host names as much as can stand without a checker."""
        if self.words is not None:
            return every_word(self.words)
        if self.host is not None:
            return self._host_content()
        if self.regex is not None:
            return self._regex_content()
        if self.hostname is not None:
            return self._with_hostname(True).content()
        if self.language is None:
            found = CONTENT if self.low == 0 and self.high is None else repeat(CHARACTER, self.low, self.high)
        else:
            found = with_length(self.language, CHARACTER, self.low, self.high)
        return difference(found, every_word(self.without)) if self.without else found

    def _with_hostname(self, surely: bool) -> StringSet:
        """Those of which it is sure that they are host names, or none, or those that may be, as a regular language."""
        from guided.grammar.formats.host_names import hostname, unencoded_hostname

        names = unencoded_hostname() if surely is self.hostname else hostname()
        if not self.hostname:
            names = difference(CONTENT, names)
        language = names if self.language is None else intersection((self.language, names))
        return replace(self, language=language, hostname=None)

    def _regex_content(self) -> Expr:
        from guided.grammar.formats import regex_languages as languages

        if self.is_checked():
            return languages.plain_patterns(self.low, self.without)
        if self == StringSet(regex=False):
            return languages.no_patterns()
        rest = replace(self, regex=None).content()
        found = languages.patterns_within(rest) if self.regex else languages.no_patterns_within(rest)
        if found is EMPTY:
            raise refusals.REGEX_COMBINED.at()
        return found

    def _host_content(self) -> Expr:
        from guided.grammar.formats import idna_languages as languages

        rest = replace(self, host=None)
        if rest == StringSet():
            return languages.plain_host_names() if self.host else languages.no_host_names()
        within = languages.plain_host_names_within if self.host else languages.no_host_names_within
        found = within(rest.content())
        if found is EMPTY:
            raise refusals.HOST_COMBINED.at()
        return found

    def is_bounded(self) -> bool:
        """Does the language leave out strings for their length, or some by name?"""
        return self.low > 0 or self.high is not None or bool(self.without)

    def is_checked(self) -> bool:
        """Are these patterns or host names of which `skeleton` and the checker know everything?"""
        if self.host:
            return self == StringSet(host=True)
        if self.hostname is not None:
            return False
        return bool(self.regex) and self.language is None and self.high is None and self.low <= MAX_CHECKED

    def skeleton(self, spelling: Spelling) -> Expr:
        """The JSON strings of what is built like patterns or host names, with quotes; for the checker."""
        if self.host:
            from guided.grammar.formats.idna_labels import Kind
            from guided.grammar.formats.idna_languages import names

            return quoted(names(Kind.HOST), spelling)
        from guided.grammar.formats.regex_languages import skeletons

        return quoted(skeletons(self.low, self.without), spelling)


ANY_STRING = StringSet()


def intersect(a: StringSet, b: StringSet) -> StringSet | None:
    """The strings in both, or None when there are none."""
    if a is ANY_STRING or a is b:
        return b
    if b is ANY_STRING:
        return a
    if a.words is not None:
        both = StringSet(frozenset(word for word in a.words if word in b))
    elif b.words is not None:
        both = StringSet(frozenset(word for word in b.words if word in a))
    else:
        high = a.high if b.high is None else b.high if a.high is None else min(a.high, b.high)
        language = a.language if b.language is None else b.language
        if a.language is not None and b.language is not None:
            language = intersection((a.language, b.language))
        regex = b.regex if a.regex is None else a.regex
        if regex is not None:
            if b.regex is not None and b.regex is not regex:
                return None
            if language is not None and _settles(language, regex):
                regex = None
        hostname = b.hostname if a.hostname is None else a.hostname
        if b.hostname is not None and b.hostname is not hostname:
            return None
        both = StringSet(None, language, max(a.low, b.low), high, a.without | b.without, regex, None, hostname)
        host = b.host if a.host is None else a.host
        if host is not None:
            if b.host is not None and b.host is not host:
                return None
            both = _hosts(both) if host else replace(both, host=False)
            if both.high is not None and both.high < both.low:
                return None
    return None if both.is_surely_empty() else both


def _hosts(these: StringSet) -> StringSet:
    """Those that are host names; what holds of all host names is not asked for, and nothing without them taken out."""
    from guided.grammar.formats.idna_names import MOST_IN_NAME, is_host_name

    low = max(these.low, 1)
    high = MOST_IN_NAME if these.high is None else min(these.high, MOST_IN_NAME)
    any_length = low == 1 and high == MOST_IN_NAME
    return replace(
        these,
        low=0 if any_length else low,
        high=None if any_length else high,
        without=frozenset(word for word in these.without if is_host_name(word)),
        host=True,
    )


@lru_cache(maxsize=4096)
def _settles(language: Expr, regex: bool) -> bool:
    """Are all strings of a language patterns, where that is asked?  Formats and patterns for simple things are."""
    from guided.grammar.formats.regex_languages import are_patterns

    return regex and are_patterns(language)


def quoted(content: Expr, spelling: Spelling) -> Expr:
    """The JSON strings with these texts."""
    return concat(_QUOTE, json_string(content, canonical=spelling is Spelling.PLAIN))


def every_word(items: frozenset[str]) -> Expr:
    """Any of the words, but for those that `encoded` leaves out."""
    return words(encoded(items))


def encoded(items: frozenset[str]) -> tuple[bytes, ...]:
    """The words in UTF-8, sorted; those with half a surrogate pair cannot be written in it and are left out."""
    return tuple(sorted([word.encode() for word in items if word.isascii() or not _has_half_pair(word)]))


def _has_half_pair(word: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in word)
