"""The tokens that would make an internationalized host name fail, of those that the automaton allows.

Nearly everywhere in a name only tokens can fail in which a combining mark or an encoded label is, or which leave a
character open; where the label is not short any more, also those with which it may become too long.  For that there is
a bound that needs no look at the tokens one by one.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import QUOTE
from guided.constraint.distinct.token_texts import NO_TOKENS, TokenTexts
from guided.constraint.formats.host_sizes import too_long
from guided.constraint.formats.host_text import HostText
from guided.constraint.formats.refusals import FormatRefusals, token_array
from guided.constraint.per_vocabulary import PerVocabulary
from guided.constraint.product import ProductMachine
from guided.grammar.formats.idna_characters import SEPARATORS, characters, composing
from guided.grammar.formats.idna_labels import DEAD, Kind, labels
from guided.grammar.formats.idna_names import MOST_IN_LABEL, MOST_IN_NAME, beginning
from guided.vocab.vocabulary import Vocabulary

_ENDING = 16
"""More octets than what brings a label to an end adds: two characters, of at most six digits each, and a hyphen."""
_AROUND = 12
"""More octets than an encoded label has beyond those of its ASCII characters and ``xn--``, with others around them."""


class HostTokens(PerVocabulary):
    """Facts about the tokens of one vocabulary; arrays are by token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.spelled = TokenTexts.of(vocabulary).spelled
        size = vocabulary.size
        self.always = np.zeros(size, np.bool_)
        """Tokens that may fail anywhere: with marks, encoded labels or escapes, or that are not whole characters."""
        self.ends = np.zeros(size, np.bool_)
        """Tokens in which a label may end."""
        self.dashes = np.zeros(size, np.bool_)
        self.n_ascii = np.zeros(size, np.int64)
        self.n_above = np.zeros(size, np.int64)
        self.least = np.full(size, 0x110000, np.int64)
        self.greatest = np.zeros(size, np.int64)
        self.wide = np.full(size, -1, np.int64)
        """Of tokens that `codes` has: the row."""
        self._rows: list[list[int]] = []
        self.plain_length = np.zeros(size, np.int64)
        """Of tokens that are letters and digits of ASCII alone: how many; 0 for others."""
        opening: list[int] = []
        for token in range(size):
            data = self.spelled(token)
            if data:
                self._look_at(token, data)
                if b'"' in data and _fails_behind_quote(data):
                    opening.append(token)
        longest = max(map(len, self._rows), default=0)
        padded = [row + [-1] * (longest - len(row)) for row in self._rows]
        self.codes = np.asarray(padded, np.int64).reshape(len(padded), longest)
        """The code points of whole characters that no label ends in, above ASCII some, padded with -1."""
        self.opening = np.asarray(opening, np.int64) if opening else NO_TOKENS
        """Tokens in which a string begins that is no host name although the automaton allows it."""

    def _look_at(self, token: int, data: bytes) -> None:
        self.dashes[token] = b"-" in data
        self.ends[token] = b'"' in data or b"." in data
        if data.isascii():
            self.n_ascii[token] = len(data)
            self.always[token] = b"\\" in data or b"xn--" in data.lower()
            if data.isalnum():
                self.plain_length[token] = len(data)
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self.always[token] = self.ends[token] = True
            self.n_above[token], self.greatest[token] = len(data), 0x10FFFF
            self.least[token] = 0x80
            return
        above = [ord(letter) for letter in text if letter > "\x7f"]
        self.n_above[token], self.n_ascii[token] = len(above), len(text) - len(above)
        self.least[token], self.greatest[token] = min(above), max(above)
        if any(letter in text for letter in SEPARATORS):
            self.ends[token] = True
        # What stands behind a full stop is compared with what is before it, which the bound does not know.
        self.always[token] = (
            "\\" in text
            or "xn--" in text.lower()
            or any(letter in SEPARATORS for letter in text)
            or unicodedata.combining(text[0]) > 0
            or ord(text[0]) in composing()
            or not unicodedata.is_normalized("NFC", text)
        )
        if not self.always[token] and not self.ends[token] and len(text) <= MOST_IN_LABEL:
            self.wide[token] = len(self._rows)
            self._rows.append([ord(letter) for letter in text])


class HostRefusals(FormatRefusals[HostTokens]):
    """Refused tokens by state of one machine."""

    def __init__(self, machine: ProductMachine[HostText]) -> None:
        super().__init__(machine, HostTokens.of(machine.vocabulary))
        self._usual: dict[tuple[int, str], dict[int, bool]] = {}
        """Far from all limits: by the state of the name and what marks compose with, which tokens fail."""

    def inside(self, text: HostText, row: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of the tokens of a row, behind a place in a name: those that fail, and the undecided others."""
        allowed = tokenset.ids(row)
        chosen, far = self._chosen(text, allowed)
        failed = tokenset.union(self._failing(text, chosen), self._usually_failing(text, far))
        undecided = allowed if text.name.encoded is not None else tokenset.union(chosen, far)
        return failed, tokenset.difference(undecided, failed)

    def _usually_failing(self, text: HostText, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same of tokens that no length matters for."""
        known = self._usual.setdefault((text.name.state, text.name.tail), {})
        failed = []
        for token in chosen.tolist():
            fails = known.get(token)
            if fails is None:
                fails = known[token] = _fails(text, self._tokens.spelled(token))
            if fails:
                failed.append(token)
        return token_array(failed)

    def _failing(self, text: HostText, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        failed: list[int] = []
        # Where the automaton allows whole letters, and knows all of what stands before, only their lengths count.
        only_lengths = not (text.pending or text.name.partial or text.name.strict or text.name.encoded is not None)
        if only_lengths:
            wide = self._tokens.wide[chosen]
            rows, tokens = wide[wide >= 0], chosen[wide >= 0]
            over, open_ones = too_long(text.name, self._tokens.codes[rows])
            failed = tokens[over].tolist()
            chosen = np.concatenate([chosen[wide < 0], tokens[open_ones]])
        plain: dict[int, bool] = {}
        for token in chosen.tolist():
            length = int(self._tokens.plain_length[token]) if only_lengths else 0
            fails = plain.get(length) if length else None
            if fails is None:
                fails = _fails(text, self._tokens.spelled(token))
                if length:
                    plain[length] = fails
            if fails:
                failed.append(token)
        return token_array(failed)

    def _chosen(self, text: HostText, allowed: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens that may fail for what there is before them, and the others that may for what they are."""
        name, tokens = text.name, self._tokens
        if text.pending or name.partial or name.strict:
            return allowed, NO_TOKENS
        tried = tokens.always[allowed]
        encoded = name.encoded
        if encoded is not None:
            size = len(name.label) + tokens.n_ascii[allowed] + _AROUND
            tried = tried | tokens.ends[allowed] | (size > min(MOST_IN_LABEL, MOST_IN_NAME - name.before))
            return allowed[tried], NO_TOKENS
        prefix = name.label.lower()
        if prefix and "xn--".startswith(prefix):
            tried = tried | tokens.dashes[allowed]
        size = self._bound(name.label, allowed)
        far = size <= min(MOST_IN_LABEL, MOST_IN_NAME - name.before)
        return allowed[~far], allowed[tried & far]

    def _bound(self, label: str, allowed: NDArray[np.int64]) -> NDArray[np.int64]:
        """At least as many octets as a label has that goes on with tokens, and as what must follow to end it."""
        tokens = self._tokens
        above = np.asarray(sorted({ord(letter) for letter in label if letter > "\x7f"}), np.int64)
        n_ascii, n_above = tokens.n_ascii[allowed], tokens.n_above[allowed]
        size = len([letter for letter in label if letter <= "\x7f"]) + n_ascii + _ENDING
        if not above.size and not n_above.any():
            return size
        length = len(label) + n_ascii + n_above + 2
        # A character is encoded as its distance from the next lower one, times the length so far, and its place.
        digits = np.zeros(len(allowed), np.int64)
        counts = {code: label.count(chr(code)) for code in above.tolist()}
        lower = 0x80
        for code in above.tolist():
            digits += _digits((code - lower + 1) * length) + (counts[code] - 1) * _digits(length)
            lower = code
        below = np.concatenate([np.asarray([0x80], np.int64), above])
        nearest = below[np.searchsorted(below, tokens.least[allowed], side="right") - 1]
        far = np.maximum(tokens.greatest[allowed] - nearest, 0)
        digits += n_above * _digits((far + 1) * length)
        found: NDArray[np.int64] = np.where(n_above + above.size > 0, size + 5 + digits, size)
        return found


def _digits(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """At least as many digits as numbers have in Punycode, whatever the bias."""
    return np.searchsorted(_capacities(), values, side="right") + 1


@lru_cache(maxsize=1)
def _capacities() -> NDArray[np.int64]:
    """For one digit, two and so on: the least number that needs more with some bias (RFC 3492, section 5)."""
    found = []
    for count in range(1, 10):
        least = 1 << 62
        for bias in range(256):
            capacity = 1
            for place in range(count, 0, -1):
                threshold = min(max(36 * place - bias, 1), 26)
                capacity = threshold if place == count else threshold + (36 - threshold) * capacity
            least = min(least, capacity)
        found.append(least)
    return np.asarray(found, np.int64)


def _fails(text: HostText, data: bytes) -> bool:
    """Does a name fail in some bytes, up to the quotation mark that ends it?"""
    now: HostText | None = text
    for byte in data:
        if now is None:
            return True
        if byte == QUOTE and not now.pending:
            return not now.may_end
        now = now.step(byte)
    return now is None


def _fails_behind_quote(data: bytes) -> bool:
    """Is there a quotation mark behind which the checker fails, and the automaton perhaps does not?"""
    at = data.find(b'"') + 1
    while at:
        rest = data[at:]
        if rest and _may_begin(rest.partition(b'"')[0]) and _fails(HostText(beginning(), b""), rest):
            return True
        at = data.find(b'"', at) + 1
    return False


def _may_begin(data: bytes) -> bool:
    """May the automaton allow a text, as far as whole characters without escapes tell?"""
    table, of = labels(Kind.HOST), characters().of
    state = table.starts[0]
    for letter in data.partition(b"\\")[0].decode("utf-8", "ignore"):
        state = table.rows[state][of[ord(letter)]]
        if state == DEAD:
            return False
    return True
