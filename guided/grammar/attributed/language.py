"""`AttributedLanguage`: the texts of an L-attributed grammar, byte by byte (a `guided.constraint.live.LiveLanguage`).

A state is the place before the lexeme that is being read, how it is being read, and as much of its text as matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import lru_cache
from typing import Any

from guided.grammar.attributed.closing import MOST_STEPS, Closing
from guided.grammar.attributed.first import Begun
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.lexis import (
    BLANKS,
    MOST_BLANKS,
    MOST_NAME,
    POINT,
    Lexis,
    ascii_lower,
    is_called,
    is_word_byte,
    next_utf8,
)
from guided.grammar.attributed.measures import BYTES, Measure
from guided.grammar.attributed.nodes import (
    UNKNOWN,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Sign,
    is_exact,
)
from guided.grammar.attributed.pricing import Demands, Pricing
from guided.grammar.attributed.quotes import closes, doubled, is_doubled
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.states import (
    ANY,
    MOST_KEPT,
    MOST_QUOTED,
    WHOLE,
    At,
    Reading,
    kind_in_quotes,
    read_lexeme,
)
from guided.grammar.attributed.threads import Open, Place, Thread, Threads, names_as
from guided.grammar.attributed.words import Words, union, words_of

__all__ = ["AttributedLanguage"]

_STEPS, _STATES = 1 << 12, 1 << 10
"""Steps and states that are remembered."""
_QUOTE, _BACKSLASH, _BRACKET = b"'\\("
_NULL = 0
_LETTERS = "abcdefghij_"
_SMALL = frozenset(range(32)) | {127}


class AttributedLanguage:
    """The texts of a grammar; from every state that `step` returns some text of the language can be reached."""

    def __init__(
        self,
        grammar: Node,
        attribute: Any,
        lexis: Lexis,
        known: Callable[[Any], frozenset[str]],
        demands: Callable[[Measure], Demands] = lambda _: Demands(),
        told: Callable[[Any, frozenset[str], str], frozenset[str]] | None = None,
    ) -> None:
        """``known`` gives the names that an attribute tells from others, ``demands`` what attributes demand of an end.

        ``told`` gives those among some (`told_names`), where it is worth to watch what is read of attributes.
        """
        self._made_of = (grammar, attribute, lexis, known, demands, told)
        self.lexis = lexis
        self._known = known
        self._told = told
        self.is_watched = told is not None
        """Is it worth to watch what is read of attributes (`guided.grammar.attributed.watched`)?"""
        self.threads = Threads(grammar, attribute)
        self.demands = demands
        self.pricing = Pricing(demands(BYTES))
        self.closing = Closing(self.threads, lexis)
        self.start = At(self.threads.start, Reading.BLANK, b"")
        self._steps: Kept[tuple[At, int], At | None] = Kept(_STEPS)
        self._following: Kept[At, tuple[int, ...]] = Kept(_STATES)
        self._rests: Kept[At, bytes] = Kept(_STATES)
        self._within: Kept[At, int] = Kept(_STATES)

    # Steps ---------------------------------------------------------------------------------------------------------

    def step(self, at: At, byte: int) -> At | None:
        """The state after one byte, None when no text goes on so."""
        key = (at, byte)
        try:
            return self._steps[key]
        except KeyError:
            found = self._steps[key] = self._step(at, byte)
            return found

    def _step(self, at: At, byte: int) -> At | None:
        match at.reading:
            case Reading.BLANK:
                if byte in BLANKS:
                    return self._blank(at.place, at.text + bytes([byte]))
                return self._begin(at.place, byte)
            case Reading.WORD:
                if is_word_byte(byte):
                    return self._word(at.place, at.text + bytes([byte]))
                if byte in b"'\"":
                    return None
                if byte == _BRACKET and self.calls(at.place, at.text + b"("):
                    return At(at.place, Reading.SIGN, at.text + b"(")
                if byte == POINT and self.takes_no_point(at.place, at.text):
                    return None
            case Reading.NUMBER:
                if is_word_byte(byte) or byte == POINT or (byte in b"+-" and not self.lexis.is_number(at.text)):
                    return self._number(at.place, at.text + bytes([byte]))
            case Reading.SIGN:
                longer = at.text.decode() + chr(byte)
                if any(sign.startswith(longer) for sign in at.place.signs):
                    return At(at.place, Reading.SIGN, longer.encode())
                if self.lexis.munches(at.text.decode(), byte):
                    return None
            case Reading.STRING:
                return self._string(at, byte)
            case Reading.STRING_END:
                if byte == _QUOTE:
                    return self._quoted_quote(at)
            case Reading.NAME:
                return self._name(at, byte)
            case Reading.NAME_END:
                if byte == at.text[0] and is_doubled(byte):
                    return self._name_on(at.place, at.text + bytes([byte]), WHOLE)
        behind = self.resolved(at)
        if behind is None:
            return None
        return self._blank(behind, bytes([byte])) if byte in BLANKS else self._begin(behind, byte)

    def resolved(self, at: At, begun: Begun | None = None) -> Place | None:
        """The place behind the lexeme that is being read, if it is over here; with ``begun`` see `Threads.after`."""
        if at.reading is Reading.BLANK:
            return at.place
        found = read_lexeme(at, self.lexis)
        return None if found is None else self.threads.after(at.place, *found, begun)

    def may_be_over(self, at: At) -> bool:
        """May the lexeme end here that is being read?  The place behind it is not made."""
        if at.reading is Reading.BLANK:
            return True
        found = read_lexeme(at, self.lexis)
        return found is not None and self.threads.lead_on(self.threads.reached(at.place, *found))

    def reached(self, at: At) -> list[Thread]:
        """The threads behind the lexeme that is being read, none where it is not over here."""
        if at.reading is Reading.BLANK:
            return list(at.place.threads)
        found = read_lexeme(at, self.lexis)
        return [] if found is None else self.threads.reached(at.place, *found)

    def afresh(self) -> AttributedLanguage:
        """The same language, of which nothing is known so far: states of one are none of the other."""
        return AttributedLanguage(*self._made_of)

    def apart(self) -> AttributedLanguage:
        """The same language, which remembers nothing so far and keeps its places by itself."""
        found = copy(self)
        found.threads = self.threads.apart()
        found._steps, found._following = Kept(_STEPS), Kept(_STATES)
        return found

    def calls(self, place: Place, text: bytes) -> bool:
        """Is a word with a bracket a function whose name has it?"""
        return text.lower().decode("utf-8", "replace") in self.listed_words(place)

    def takes_no_point(self, place: Place, text: bytes) -> bool:
        """Is a word only a keyword, behind which the engine would read a point as one between names?"""
        word = text.lower().decode("utf-8", "replace")
        if not self.lexis.names_by_points or word not in place.keywords:
            return False
        is_reserved = word in self.lexis.reserved
        return is_reserved or not any(names.free or word in names.words for _, names in place.names)

    def _blank(self, place: Place, text: bytes) -> At | None:
        return At(place, Reading.BLANK, b" " * len(text)) if len(text) <= MOST_BLANKS else None

    def _begin(self, place: Place, byte: int) -> At | None:
        """The state after the first byte of a lexeme."""
        if byte in b"0123456789":
            return self._number(place, bytes([byte]))
        if is_word_byte(byte):
            return self._word(place, bytes([byte]))
        if byte == _QUOTE:
            if not self.takes_strings(place):
                return None
            return At(place, Reading.STRING, b"")
        if chr(byte) in self.lexis.quotes or chr(byte) in self.lexis.text_quotes:
            return self._name_on(place, bytes([byte]), WHOLE)
        sign = chr(byte)
        if any(known.startswith(sign) for known in place.signs):
            return At(place, Reading.SIGN, sign.encode("latin-1"))
        return self._number(place, b".") if byte == POINT else None

    def _word(self, place: Place, text: bytes) -> At | None:
        """A word in progress, if some word that may stand here begins so."""
        at = At(place, Reading.WORD, text)
        viable = self._begins_listed(place, text) or (
            self.takes_any_word(place)
            and text.isascii()
            and b"$" not in text
            and not text[:1].isdigit()
            and len(text) <= MOST_NAME
        )
        # A word that cannot grow must be one that may stand here: the name may be taken already.
        grows = len(text) < MOST_NAME or any(self._begins_listed(place, text + bytes([byte])) for byte in range(256))
        return at if viable and (grows or self.may_be_over(at)) else None

    def listed_words(self, place: Place) -> Words:
        """The keywords and names that may come as words, in lower case, but for free ones."""
        found = place.listed
        if found is None:
            words = (words if folds else _lowered(words) for words, folds in self.word_sets(place))
            found = place.listed = union(frozenset(words))
        return found

    def word_sets(self, place: Place) -> tuple[tuple[Words, bool], ...]:
        """The keywords and names that may come as words, but for free ones; is each set in any letter case?"""
        found = {(place.keywords, True): None}
        for open_, names in place.names:
            found[(self._plain(open_, names), not is_exact(open_.terminal))] = None
        return tuple(found)

    def quoted_sets(self, place: Place, quote: int) -> tuple[tuple[tuple[Words, bool], ...], bool]:
        """The names in some quotes: lists, each with whether it is in any letter case, and is any name free?"""
        known = place.in_quotes.get(quote)
        if known is None:
            held = self.held(place, bytes([quote]))
            folds = self.lexis.folds_quoted
            found = {(names.words, folds and not is_exact(open_.terminal)): None for open_, names in held}
            known = place.in_quotes[quote] = tuple(found), any(names.free for _, names in held)
        return known

    def _plain(self, open_: Open, names: Names) -> Words:
        """Names that may come as words."""
        return self.lexis.plain(names.words, is_exact(open_.terminal))

    def _begins_listed(self, place: Place, text: bytes) -> bool:
        """Does a keyword or listed name begin so, in the letter case that it must have?"""
        folded = text.lower()
        if not self.listed_words(place).begins(folded):
            return False
        if not self.lexis.keeps_case or place.keywords.begins(folded):
            return True
        return any(
            self._plain(open_, names).begins(text if is_exact(open_.terminal) else folded)
            for open_, names in place.names
        )

    def takes_any_word(self, place: Place) -> bool:
        """May any name come?"""
        return any(names.free for _, names in place.names)

    def _number(self, place: Place, text: bytes) -> At | None:
        if not self.lexis.number_may_go_on(text):
            return None
        for _, form, values in place.literals:
            if form is LiteralForm.NUMBER and (values is None or values.begins(text)):
                return At(place, Reading.NUMBER, text)
        return None

    def _string(self, at: At, byte: int) -> At | None:
        utf8 = next_utf8(at.utf8, byte)
        if utf8 is None or byte == _NULL:
            return None
        if self.lexis.escapes and at.utf8 == WHOLE:
            if at.text == b"\\":
                return self._string_on(at.place, b"", utf8)
            if byte == _BACKSLASH:
                return at._replace(text=b"\\") if self.is_free(at.place) else None
        if byte == _QUOTE and at.utf8 == WHOLE:
            if self.is_free(at.place) or self._is_value(at.place, at.text):
                return At(at.place, Reading.STRING_END, at.text)
            doubled = at.text + b"'"
            return At(at.place, Reading.STRING_END, at.text) if self.begins_value(at.place, doubled) else None
        return self._string_on(at.place, at.text + bytes([byte]), utf8)

    def _quoted_quote(self, at: At) -> At | None:
        return self._string_on(at.place, at.text + b"'", WHOLE)

    def _string_on(self, place: Place, text: bytes, utf8: tuple[int, int, int]) -> At | None:
        if self.begins_value(place, text):
            return At(place, Reading.STRING, text, utf8)
        if not self.is_free(place):
            return None
        if place.keeps:
            kept = len(text) <= MOST_KEPT and text[:1] != ANY
            return At(place, Reading.STRING, text if kept else ANY, utf8)
        return At(place, Reading.STRING, ANY if self._has_values(place) else b"", utf8)

    def takes_strings(self, place: Place) -> bool:
        """May a string stand here?"""
        return any(form is LiteralForm.STRING for _, form, _ in place.literals)

    def is_free(self, place: Place) -> bool:
        """May any string stand here?"""
        return any(form is LiteralForm.STRING and values is None for _, form, values in place.literals)

    def _has_values(self, place: Place) -> bool:
        return bool(self.string_values(place))

    def string_values(self, place: Place) -> list[Words | Spellings]:
        """What strings are held to."""
        return [values for _, form, values in place.literals if form is LiteralForm.STRING and values is not None]

    def _is_value(self, place: Place, text: bytes) -> bool:
        word = text.decode("utf-8", "replace")
        return any(word in values for values in self.string_values(place))

    def begins_value(self, place: Place, text: bytes) -> bool:
        """Does a string that others are held to begin so?"""
        return any(values.begins(text) for values in self.string_values(place))

    def _name(self, at: At, byte: int) -> At | None:
        utf8 = next_utf8(at.utf8, byte)
        if utf8 is None or byte in _SMALL or byte in self.lexis.ends_run(chr(at.text[0]))[1:]:
            return None
        text = at.text + bytes([byte])
        if byte == closes(at.text[0]) and at.utf8 == WHOLE:
            ended = At(at.place, Reading.NAME_END, at.text)
            # Of a quote it is not known yet whether it ends the name: one of both must be possible.
            may_go_on = is_doubled(at.text[0]) and self._name_on(at.place, text, WHOLE) is not None
            return ended if may_go_on or self.may_be_over(ended) else None
        return self._name_on(at.place, text, utf8)

    def _name_on(self, place: Place, text: bytes, utf8: tuple[int, int, int]) -> At | None:
        """A quoted name in progress; ``text`` is its quote and the name."""
        quote, name, ended = text[:1], text[1:], At(place, Reading.NAME_END, text)
        folded = name.lower() if self.lexis.folds_quoted else name
        for open_, names in self.held(place, quote):
            begun = names.words.begins(name if is_exact(open_.terminal) else folded)
            room = MOST_QUOTED - len(name) - utf8[0]
            # As for a word; of a character there is room for all bytes or for none.
            grows = room > 1 or utf8 != WHOLE or self.may_be_over(ended)
            if (names.free and room > 0 and grows) or (begun and (grows or not names.free)):
                return At(place, Reading.NAME, text, utf8)
        return None

    def held(self, place: Place, quote: bytes) -> tuple[tuple[Open, Names], ...]:
        """What may stand in some quotes."""
        return names_as(place, kind_in_quotes(quote.decode(), self.lexis))

    # Prices --------------------------------------------------------------------------------------------------------

    def price(self, at: At) -> int:
        """Bytes that are enough to end the text, no fewer than `rest` has; found without a search."""
        place = self.resolved(at)
        if place is not None:
            return self.pricing.least(place)
        found = self._within.get(at)
        if found is None:
            ended = self._soonest(at)
            found = self._within[at] = UNKNOWN if ended is None else ended[0] + self.pricing.least(ended[1])
        return found

    def fits(self, at: At, limit: int) -> bool:
        """Is `price` no more than so many bytes?  Where it is, hardly any of it is found."""
        place = self.resolved(at)
        if place is not None:
            return self.pricing.fits(place, limit)
        ended = self._soonest(at)
        return ended is not None and self.pricing.fits(ended[1], limit - ended[0])

    def _soonest(self, at: At) -> tuple[int, Place] | None:
        """The bytes that end a lexeme in progress, with the place behind them; None where none do."""
        for ending in self._sorted_endings(at):
            behind = self._behind(at, ending)
            if behind is not None:
                return len(ending), behind[1]
        return None

    def _behind(self, at: At, ending: bytes) -> tuple[At, Place] | None:
        """The state and place behind a text that ends a lexeme, None where it does not."""
        state: At | None = at
        for byte in ending:
            state = None if state is None else self.step(state, byte)
        place = None if state is None else self.resolved(state)
        return None if state is None or place is None else (state, place)

    # What may come -------------------------------------------------------------------------------------------------

    def following(self, at: At) -> tuple[int, ...]:
        """Exactly the bytes for which `step` is not None, ascending."""
        found = self._following.get(at)
        if found is None:
            found = self._following[at] = tuple(byte for byte in range(256) if self.step(at, byte) is not None)
        return found

    def may_end(self, at: At) -> bool:
        """Is the text so far in the language?"""
        place = self.resolved(at)
        return place is not None and place.may_end

    def reads(self, text: bytes) -> bool:
        """Is a text in the language?"""
        at: At | None = self.start
        for byte in text:
            at = None if at is None else self.step(at, byte)
        return at is not None and self.may_end(at)

    def rest(self, at: At) -> bytes:
        """A short text after which the text may end."""
        found = self._rests.get(at)
        if found is None:
            end = self.end(at)
            assert end is not None, f"no text ends {at}"
            found = self._rests[at] = end
            # What is left of this end is the end of the states on the way, so that ends get shorter byte by byte.
            state: At | None = at
            for position in range(len(found)):
                assert state is not None
                state = self.step(state, found[position])
                if state is not None:
                    self._rests.setdefault(state, found[position + 1 :])
        return found

    def end(self, at: At, most: int = MOST_STEPS) -> bytes | None:
        """The same, whatever was asked before; None where there is none.

        Raises `LimitError` where a search takes more than so many steps.
        """
        if self.may_end(at):
            return b""
        found = (self._end_behind(at, ending, most) for ending in self._sorted_endings(at))
        first = next((text for text in found if text is not None), None)
        if first is None or at.reading is not Reading.WORD or not self.takes_any_word(at.place):
            return first
        # As any other name it may end sooner.
        before = ascii_lower(at.text.decode("utf-8", "replace"))
        told = self.told_names(at.place, frozenset(_LETTERS), before)
        for letter in _LETTERS:
            ending = letter.encode()
            if letter not in told and not self._begins_listed(at.place, at.text + ending):
                other = self._end_behind(at, ending, most)
                if other is not None:
                    return min(first, other, key=len)
        return first

    def _end_behind(self, at: At, ending: bytes, most: int) -> bytes | None:
        """The end that begins with the end of a lexeme."""
        found = self._behind(at, ending)
        behind = None if found is None else self.closing.text(found[1], self._kind_before(found[0]), most)
        return None if behind is None else ending + behind

    def _sorted_endings(self, at: At) -> list[bytes]:
        return sorted(set(self._endings(at)), key=lambda text: (len(text), text))

    def _kind_before(self, at: At) -> bytes:
        """The last byte of the text, as far as it decides whether a space must follow."""
        return b" " if at.reading is Reading.BLANK else at.text[-1:] if at.reading is Reading.SIGN else b"a"

    def _endings(self, at: At) -> Iterable[bytes]:
        """Texts that end the lexeme that is being read."""
        place, reading, text, utf8 = at
        match reading:
            case Reading.WORD:
                yield from self._word_endings(place, text)
            case Reading.NUMBER:
                yield from (b"", b"0")
                for _, form, values in place.literals:
                    if form is LiteralForm.NUMBER and values is not None:
                        ending = values.ending(text)
                        yield from () if ending is None else (ending,)
            case Reading.SIGN:
                if is_called(text.decode()):
                    yield b""
                yield from (sign.encode()[len(text) :] for sign in place.signs if sign.encode().startswith(text))
            case Reading.STRING:
                tail = bytes([low for low in (utf8[1],) if utf8[0]]) + b"\x80" * max(0, utf8[0] - 1)
                if self.is_free(place):
                    yield b"''" if self.lexis.escapes and text == b"\\" else tail + b"'"
                yield from (ending.replace(b"'", b"''") + b"'" for ending in self._value_endings(place, text))
            case Reading.NAME:
                yield from self._name_endings(at)
            case Reading.STRING_END:
                yield b""
                for ending in self._value_endings(place, text + b"'"):
                    yield b"'" + ending.replace(b"'", b"''") + b"'"
            case Reading.NAME_END:
                yield b""
                longer = At(place, Reading.NAME, text + text[:1], WHOLE)
                yield from (text[:1] + ending for ending in self._name_endings(longer) if is_doubled(text[0]))
            case _:
                yield b""

    def _value_endings(self, place: Place, text: bytes) -> Iterable[bytes]:
        """What ends the strings that others are held to."""
        for values in self.string_values(place):
            ending = values.ending(text)
            if ending is not None:
                yield ending

    def _word_endings(self, place: Place, text: bytes) -> Iterable[bytes]:
        folded = text.lower()
        for open_, names in place.names:
            plain = self._plain(open_, names)
            begun = text if is_exact(open_.terminal) else folded
            assert isinstance(open_.terminal, Name)
            suggested = [name.encode() for name in open_.terminal.kind.suggested(open_.attribute)]
            yield from (name[len(text) :] for name in suggested if name.startswith(begun))
            yield from (word[len(text) :] for word in plain.starting(begun, 8))
            if names.free:
                # Some of these is neither taken nor reserved.
                yield from (b"", *(bytes([letter]) for letter in b"abcdefghij_"), b"_1", b"_x")
        yield from (word[len(text) :] for word in place.keywords.starting(folded, 8))

    def _name_endings(self, at: At) -> Iterable[bytes]:
        quote, name = at.text[:1], at.text[1:]
        closing = bytes([closes(quote[0])])
        folded = name.lower() if self.lexis.folds_quoted else name
        tail = bytes([low for low in (at.utf8[1],) if at.utf8[0]]) + b"\x80" * max(0, at.utf8[0] - 1)
        for open_, names in self.held(at.place, quote):
            for word in names.words.starting(name if is_exact(open_.terminal) else folded, 8):
                yield doubled(word[len(folded) :], quote[0]) + closing
            if names.free:
                yield from (tail + ending + closing for ending in (b"", b"a", b"b", b"c", b"_1"))

    def told_words(self, place: Place) -> tuple[Words, ...]:
        """Names that mean something at a place, in lower case; the attributes know of others (`told_names`)."""
        if place.told is None:
            every = [names for _, names in (*place.names, *place.quoted, *place.doubtful, *place.texts)]
            sets = dict.fromkeys(_lowered(names.words) for names in every)
            apart = dict.fromkeys(words_of(names.apart) for names in every if names.apart)
            listed = self.listed_words(place)
            place.told = (words_of(self.lexis.reserved), listed, _called(listed), *sets, *apart)
        return place.told

    def known_names(self, place: Place) -> frozenset[str]:
        """The names that the attributes of a place tell from others: no more change what may come behind them."""
        return frozenset().union(*map(self._known, _attributes(place)))

    def told_names(self, place: Place, among: frozenset[str], before: str) -> frozenset[str]:
        """Those of some texts which, behind the one ``before``, are such names."""
        told = self._told
        if told is None:
            names = [name[len(before) :] for name in self.known_names(place) if name.startswith(before)]
            return among.intersection(names)
        return frozenset().union(*(told(one, among, before) for one in _attributes(place)))

    def row(self, at: At, tree: Any) -> None:
        """None: masks are made by `guided.constraint.attributed`."""
        return None

    def unfinished(self, at: At, tree: Any, limit: int) -> None:
        """None: any token may be followed by a long end."""
        return None

    def expected(self, at: At) -> str:
        """What may come next, in words."""
        found: dict[str, None] = {}
        for open_ in at.place.opens:
            match open_.terminal:
                case None:
                    found["the end"] = None
                case Keyword(word):
                    found[word.upper()] = None
                case Sign(text):
                    found[text] = None
                case Name(kind=kind):
                    found[kind.label] = None
                case Literal(kind=kind):
                    found[kind.label] = None
        return ", ".join(list(found)[:MOST_SHOWN]) + (" ..." if len(found) > MOST_SHOWN else "")


def _attributes(place: Place) -> Iterable[Any]:
    """Those of the terminals that may come, each once."""
    return {id(one): one for _, one in place.ways}.values()


@lru_cache(maxsize=4096)
def _lowered(words: Words) -> Words:
    """Words in lower case."""
    return words_of(map(ascii_lower, words.members))


@lru_cache(maxsize=4096)
def _called(words: Words) -> Words:
    """Those of some words that have a bracket, without it."""
    return words_of(word.removesuffix("(") for word in words.members if is_called(word))


MOST_SHOWN = 16
"""Things that one explanation names."""
