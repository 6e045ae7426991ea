"""The mask at a state of an L-attributed grammar: put together from what lexemes allow, each found once.

A token goes on with the lexeme in progress, or is cut into lexemes from its beginning on.  The tokens that end within
the first lexeme are lists: of keywords and names by walks along sorted words, of free names and strings by small
automata (`walks`).  Where a lexeme ends within tokens, the rest of these is the business of the place behind it, at
another head (`heads`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from guided import tokenset
from guided.constraint.attributed.counts import A_NAME, PIECE, Counts, TokenMeasure, Uncounted
from guided.constraint.attributed.heads import AFTER_NUMBER, AFTER_WORD, ONWARD, Head, Heads
from guided.constraint.attributed.parts import Free, Group, Part, part_of
from guided.constraint.attributed.spans import Span, Spans
from guided.constraint.attributed.tables import AFTER_BACKSLASH, BEFORE_WORD, IN_QUOTES, IN_WORD
from guided.constraint.attributed.walks import Crossing, Starts, Walked
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import MOST_BLANKS, MOST_NAME, POINT, ascii_lower, is_called
from guided.grammar.attributed.nodes import LiteralForm
from guided.grammar.attributed.quotes import closes, doubled, is_doubled, single
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.states import ANY, MOST_QUOTED, WHOLE, At, Reading, read_lexeme
from guided.grammar.attributed.threads import Lexeme, LexemeKind, Place, Stack, Thread
from guided.grammar.attributed.watched import Log, Memory, watched
from guided.grammar.attributed.words import Words, words_of
from guided.vocab.vocabulary import Vocabulary

__all__ = ["UNHEARD", "Rows"]

UNHEARD = "\x01"
"""A name that no text holds: it stands for all that mean nothing yet."""
_QUOTE = ord("'")
_BRACKET, _POINTS = frozenset(b"("), frozenset(b".")
_AFTER_DIGITS = frozenset(range(256)) - AFTER_NUMBER
_ALL = frozenset(range(256))
_OTHERS = 1024
"""Heads behind such names that are remembered."""
_REMEMBERED = 1 << 26
"""Bytes of parts of rows that are remembered, with what was read for them."""
_SPANS = 1 << 10
"""States of which it is remembered how far their tokens lead."""
_CLOSED = 5
"""Tokens that end a string or name anywhere: the rest of a character and a quote, byte by byte."""
_SHORT = 24
"""Bytes of a name that may still come: with fewer, all tokens are read byte by byte, not only the longer ones."""


class Rows:
    """Makes the rows of a language over a vocabulary."""

    def __init__(self, language: AttributedLanguage, vocabulary: Vocabulary) -> None:
        self.language = language
        self.vocabulary = vocabulary
        self.heads = Heads.of(vocabulary, language.lexis)
        self.walks = self.heads.walks
        self.root = self.walks.starts([0])
        self.others: Kept[tuple[Walked, frozenset[str]], Head | None] = Kept(_OTHERS)
        """The heads behind names that mean nothing, by those that do."""
        self.memory = Memory(_REMEMBERED)
        measure = TokenMeasure.of(vocabulary)
        self.counts = Counts(measure, language.threads.prices)
        self.counted: Counts = Uncounted(measure, language.threads.prices)
        """What is counted while rows are made."""
        self._spans: Kept[At, tuple[Span, ...] | None] = Kept(_SPANS)
        self._last: tuple[At | None, tokenset.Row | None] = (None, None)

    def row(self, at: At) -> tokenset.Row:
        """The mask without end-of-text ids."""
        at_last, row = self._last
        if row is not None and at_last == at:
            return row
        writing = self._written(at, False)
        if self.counted is self.counts:
            self._spans[at] = writing.found_spans()
        return writing.row

    def spans(self, at: At) -> tuple[Span, ...] | None:
        """How far the tokens of the row lead, None where it is not told."""
        if self.counted is not self.counts:
            # What is remembered so far does not tell.
            self.counted = self.counts
            self.memory.clear()
        if at not in self._spans:
            self._spans[at] = self._written(at, False).found_spans()
        return self._spans[at]

    def groups(self, at: At) -> tuple[tokenset.Row, list[Group]]:
        """The same row, and its tokens by where they end: perhaps more of them, or none where they are not told.

        The mask itself is asked for just behind, mostly.
        """
        written = self._written(at, True)
        self._last = (at, written.row)
        return written.row, written.groups()

    def behind(self, head: Head, threads: list[Thread], is_watched: bool) -> Part | None:
        """The tokens that may come at a head behind some threads; None where they are best found on the spot."""
        if not self.language.is_watched:
            return None
        attributes = {id(one): one for _, one in threads}
        numbers = {address: number for number, address in enumerate(attributes)}
        key = (head, *[(stack, numbers[id(one)]) for stack, one in threads])
        real = list(attributes.values())
        found: Part | None = self.memory.recall(key, real)
        if found is None and not is_watched and self.memory.is_worth(key):
            log = Log()
            roots = watched(real, log)
            writing = _Writing(self, self.language.apart(), told=False)
            writing.behind(head, [(stack, roots[numbers[id(one)]]) for stack, one in threads])
            found = part_of(writing.row, writing.spans.found())
            self.memory.remember(key, log, found, found.words.nbytes + found.tokens.nbytes)
        return found

    def longest(self, place: Place) -> int:
        """The most tokens of nodes behind a lexeme that begins at a place, and of what is left of it."""
        measure = self.counts.measure
        quotes = (*self.language.lexis.quotes, *self.language.lexis.text_quotes)
        sets = [words for quote in quotes for words, _ in self.language.quoted_sets(place, ord(quote))[0]]
        rests = [self.counts.longest_name(place), self.counts.rest_of_any_name(sets)]
        rests += [measure.rest_of_any(values) for _, _, values in place.literals if values is not None]
        return self.counts.begun(place.plan) + max(rests) + _CLOSED

    def _written(self, at: At, told: bool) -> _Writing:
        """The row of a state, and what was found on the way."""
        writing = _Writing(self, self.language, told)
        room = MOST_QUOTED - len(at.text) if at.reading in (Reading.NAME, Reading.NAME_END) else MOST_QUOTED
        if self._may_be_taken(at):
            room = MOST_NAME - len(at.text)
        if at.utf8 != WHOLE or room < _SHORT:
            self._walk(at, writing.row)
            writing.is_told = False
        else:
            writing.state(at)
            long = self.walks.longer_than(room - 1)
            doubtful = None if long is None else writing.row & long
            if doubtful is not None and doubtful.any():
                # A name may be too long, or taken and too long to become another.
                wrong = [token for token in tokenset.ids(doubtful).tolist() if self.after(at, token) is None]
                tokenset.remove_all(writing.row, np.array(wrong, np.int64))
        return writing

    def _may_be_taken(self, at: At) -> bool:
        """May a word in progress become a name that means something here, and be too long to become another?"""
        if at.reading is not Reading.WORD or not self.language.takes_any_word(at.place):
            return False
        begun = ascii_lower(at.text.decode("utf-8", "replace"))
        return any(len(name) == MOST_NAME and name.startswith(begun) for name in self.language.known_names(at.place))

    def after(self, at: At, token: int) -> At | None:
        """The state behind a token."""
        state: At | None = at
        for byte in self.vocabulary.token_bytes(token) or b"":
            state = None if state is None else self.language.step(state, byte)
        return state

    def _walk(self, start: At, found: tokenset.Row) -> None:
        """Allow the tokens behind a state, byte by byte."""
        nodes: list[int] = []
        work = [(start, 0)]
        while work:
            at, node = work.pop()
            for byte, child in self.walks.children(node).items():
                after = self.language.step(at, byte)
                if after is not None:
                    nodes.append(child)
                    work.append((after, child))
        found |= self.walks.tokens_at(nodes)


_UNHEARD_BEFORE = Free(Reading.BLANK)


class _Writing:
    """One row that is being written."""

    def __init__(self, rows: Rows, language: AttributedLanguage, told: bool) -> None:
        self.rows = rows
        self.language = language
        self.told = told
        self.heads = rows.heads
        self.walks = rows.walks
        self.root = rows.root
        self.others = rows.others
        self.row = np.zeros(rows.vocabulary.n_words, np.uint32)
        self._groups: list[Group] = []
        self._blanks: list[tuple[list[Thread], tokenset.Row, Free | None]] = []
        """White space of which is only known that there is a place before it, and the threads of that."""
        self.here: Place | None = None
        self.is_unheard = False
        self.spans = Spans()
        self.counts = rows.counted
        self._roots: list[tuple[list[Thread], Spans]] = []
        self.is_told = True
        """Is it known how far the tokens lead?"""

    def found_spans(self) -> tuple[Span, ...] | None:
        """How far the tokens lead, None where it is not known."""
        if not self.is_told:
            return None
        return tuple(
            Span(tuple({id(one): one for _, one in threads}.values()), spans.found()) for threads, spans in self._roots
        )

    def groups(self) -> list[Group]:
        """The tokens by where they end."""
        for threads, blanks, free in self._blanks:
            place = self.language.threads.place_of(threads)
            assert place is not None, "white space stands behind places only"
            self._groups.append(Group(place, blanks, free))
        self._blanks.clear()
        return self._groups

    # States --------------------------------------------------------------------------------------------------------

    def state(self, at: At) -> None:
        """Allow what may come at a state."""
        place, reading, text, _ = at
        self.here = place
        self._roots.append((list(place.threads), self.spans))
        match reading:
            case Reading.BLANK:
                self._behind(self.heads.head((0,), frozenset(), MOST_BLANKS - len(text)), list(place.threads))
                return
            case Reading.WORD:
                self._words(self.root, place, text, IN_WORD)
                self._resolved(at, self._after_word(place, text))
            case Reading.NUMBER:
                self._numbers(self.root, place, text)
                self._resolved(at, AFTER_NUMBER)
            case Reading.SIGN:
                sign = text.decode()
                self._longer_signs(at, sign)
                self._resolved(at, self.heads.after_sign(sign))
            case Reading.STRING:
                if self.language.lexis.escapes and text == b"\\":
                    self._string(self.root, place, b"", AFTER_BACKSLASH)
                else:
                    self._string(self.root, place, text, IN_QUOTES)
            case Reading.NAME:
                self._quoted(self.root, place, text[0], text[1:], IN_QUOTES)
            case Reading.STRING_END | Reading.NAME_END:
                quote = _QUOTE if reading is Reading.STRING_END else text[0]
                after = self.language.step(at, quote) if is_doubled(quote) else None
                if after is not None:
                    begun = self.walks.starts(self.heads.after((0,), (quote,)))
                    self._allow(begun.row)
                    if reading is Reading.STRING_END:
                        self._string(begun, place, after.text, IN_QUOTES)
                    else:
                        self._quoted(begun, place, quote, after.text[1:], IN_QUOTES)
                self._resolved(at, _again(quote))

    def _resolved(self, at: At, closed: frozenset[int]) -> None:
        """Allow what may come when the lexeme in progress is over."""
        threads = self.language.reached(at)
        before, self.spans = self.spans, Spans()
        self._roots.append((threads, self.spans))
        self._behind(self.heads.head((0,), closed), threads)
        self.spans = before

    def _place(self, head: Head, place: Place) -> None:
        """Allow what may come at a place, at a head."""
        before, self.here = self.here, place
        if head.blanks is not None:
            self._allow(head.blanks)
            self.spans.note(self.counts.least(place.plan))
        if head.has_words:
            self._words(head.words, place, b"", BEFORE_WORD)
        self._signs(head, place)
        if head.has_numbers:
            self._numbers(head.numbers, place, b"")
        if head.has_points:
            point = self.language.step(At(place, Reading.BLANK, b""), POINT)
            if point is not None and point.reading is Reading.NUMBER:
                begun = head.after(POINT)
                self._allow(begun.row)
                self._numbers(begun, place, point.text)
        for quote in self.heads.quoted:
            if quote in head.first:
                if quote == _QUOTE:
                    if self.language.takes_strings(place):
                        begun = head.after(quote)
                        self._allow(begun.row)
                        self._string(begun, place, b"", IN_QUOTES)
                else:
                    sets, is_free = self.language.quoted_sets(place, quote)
                    if sets or is_free:
                        begun = head.after(quote)
                        self._allow(begun.row)
                        self._quoted(begun, place, quote, b"", IN_QUOTES)
        self.here = before

    def _behind(self, head: Head, threads: list[Thread]) -> None:
        """Allow what may come at a head behind some threads."""
        if self.told:
            self.behind(head, threads)
        elif threads:
            part = self.rows.behind(head, threads, self.language is not self.rows.language)
            if part is None:
                self.behind(head, threads)
            elif part.words.size:
                self.row[part.words] |= part.tokens
                self.spans.note_part(part.reached)

    def behind(self, head: Head, threads: list[Thread]) -> None:
        """The same, of which no more is found than begins as the tokens do.

        White space may come wherever there is a place; most of these are not made.
        """
        place = self.language.threads.place_of(threads, head.begun) if head.begun.is_any else None
        if place is not None:
            self._place(head, place)
        elif head.blanks is not None and self.language.threads.lead_on(threads):
            self.row |= head.blanks
            self._blanks.append((threads, head.blanks, _UNHEARD_BEFORE if self.is_unheard else None))

    def _behind_unheard(self, head: Head, place: Place, lexeme: Lexeme, text: bytes) -> None:
        """The same behind names that begin so and mean nothing, one of which was read in place of all."""
        before, self.is_unheard = self.is_unheard, True
        self._over(head, self.language.threads.reached(place, lexeme, False), self.counts.own(text) + PIECE)
        self.is_unheard = before

    def _over(self, head: Head, threads: list[Thread], read: int | None) -> None:
        """The same behind a sign (None), or another lexeme of which a name may take so many tokens."""
        self.spans.enter(read)
        self._behind(head, threads)
        self.spans.leave(read)

    def _owed(self, text: bytes) -> int:
        """What a free name may demand, of which so much was read before; it may be over."""
        return (A_NAME - 1) * (self.counts.own(text) + PIECE)

    def _note(self, place: Place, more: int) -> None:
        """A lexeme begins at a place, or is in progress, which itself takes so many tokens more at most."""
        self.spans.note(self.counts.begun(place.plan) + more)

    def _signs(self, head: Head, place: Place) -> None:
        """Allow the tokens that go on with signs.  Many signs have one place behind them, which is looked at once."""
        self._note(place, 2)
        for signs, behind in place.plan.sign_groups:
            found = head.signs(signs)
            if found.row is not None:
                self._allow(found.row)
            if found.behind is not None:
                self._over(found.behind, self.language.threads.behind(place, behind), None)

    def _allow(self, row: tokenset.Row) -> None:
        """Allow tokens."""
        self.row |= row
        if self.told:
            assert self.here is not None
            self._groups.append(Group(self.here, row, _UNHEARD_BEFORE if self.is_unheard else None))

    def _free(self, row: tokenset.Row, reading: Reading, quote: int = 0, held: Spellings | None = None) -> None:
        """Allow tokens that are part of a number, or of a name or string, of which no list says what it may be."""
        self.row |= row
        if not self.told:
            return
        assert self.here is not None
        free = _UNHEARD_BEFORE if self.is_unheard else Free(reading, quote, held)
        self._groups.append(Group(self.here, row, free))

    # Words ---------------------------------------------------------------------------------------------------------

    def _words(self, starts: Starts, place: Place, text: bytes, state: int) -> None:
        """Allow the tokens that go on with a word."""
        is_free = self.language.takes_any_word(place) and _is_plain(text)
        folded = text.lower()
        crossings: list[Crossing] = []
        for words, folds in self.language.word_sets(place):
            walked = self.walks.words(starts, words, folded if folds else text, folds, ONWARD)
            self._allow(walked.row)
            crossings += walked.crossings
        self._note(place, self.counts.longest_name(place))
        if is_free:
            walked = self.walks.word_run(starts, self.heads.word, state, ONWARD, MOST_NAME - len(text))
            self._free(walked.row, Reading.WORD)
            self._note(place, self._owed(text) + 2)
            if walked.crossings:
                # Of the listed ones those that no free name can be: calls, and names with other letters.
                apart = [one for one in crossings if one.text.endswith(b"(") or not one.text.isascii()]
                told, others = self._told(place, text, walked, AFTER_WORD)
                crossings = apart + told
                if others is not None:
                    self._behind_unheard(others, place, Lexeme(LexemeKind.WORD, UNHEARD), text)
        for crossing in dict.fromkeys(crossings):
            word = text + self.walks.last_bytes(crossing.node, len(crossing.text))
            if is_called(word.decode("utf-8", "replace")):
                self._crossed(At(place, Reading.SIGN, word), [crossing.node], frozenset())
            else:
                self._crossed(At(place, Reading.WORD, word), [crossing.node], self._after_word(place, word))

    def _after_word(self, place: Place, word: bytes) -> frozenset[int]:
        """The bytes that do not come at once behind a word as the next lexeme."""
        closed = AFTER_WORD | _BRACKET if self.language.calls(place, word + b"(") else AFTER_WORD
        return closed | _POINTS if self.language.takes_no_point(place, word) else closed

    def _told(
        self, place: Place, text: bytes, walked: Walked, closed: frozenset[int], ending: int | None = None
    ) -> tuple[list[Crossing], Head | None]:
        """Where free names end that mean something at a place, and the head behind those that do not.

        The head is behind the ``ending`` where that is not part of what was walked.
        """
        before = ascii_lower(text.decode("utf-8", "replace"))
        told = set(walked.before_names) if text else {*walked.before_names, *(walked.names & {""})}
        for words in self.language.told_words(place):
            if text:
                told |= walked.names.intersection(words.rests(before.encode("utf-8", "surrogatepass")))
            else:
                told |= walked.names & words.members
        told |= self.language.told_names(place, walked.names, before)
        if self.language.lexis.no_blank_end:
            told |= walked.blank_ended
        known = [crossing for name in sorted(told) for crossing in walked.by_name[name]]
        key = (walked, frozenset(told))
        if key not in self.others:
            nodes = [one.node for name, some in walked.by_name.items() if name not in told for one in some]
            nodes = nodes if ending is None else self.heads.after(nodes, (ending,))
            self.others[key] = self.heads.head(nodes, closed) if nodes else None
        return known, self.others[key]

    def _crossed(self, at: At, nodes: Iterable[int], closed: frozenset[int]) -> None:
        """Allow the rest of tokens in which a lexeme has ended."""
        self._lexeme_over(self.heads.head(nodes, closed), at)

    def _lexeme_over(self, head: Head, at: At) -> None:
        """Allow what may come at a head when a lexeme is over."""
        is_sign = at.reading is Reading.SIGN and not is_called(at.text.decode())
        is_literal = at.reading in (Reading.NUMBER, Reading.STRING_END)
        self._over(head, self.language.reached(at), None if is_sign else 0 if is_literal else self.counts.own(at.text))

    # Numbers and signs ---------------------------------------------------------------------------------------------

    def _numbers(self, starts: Starts, place: Place, text: bytes) -> None:
        """Allow the tokens that go on with a number."""
        sets = [values for _, form, values in place.literals if form is LiteralForm.NUMBER]
        self._note_literal(place, LiteralForm.NUMBER)
        if sets and all(values is None for values in sets):
            numbers = self.heads.numbers(starts, text)
            self._free(numbers.row, Reading.NUMBER)
            self._lexeme_over(numbers.behind, At(place, Reading.NUMBER, b"0"))
            return
        for values in dict.fromkeys(sets):
            if isinstance(values, Words):
                walked = self.walks.words(starts, values, text, False, _AFTER_DIGITS)
                self._allow(walked.row)
            else:
                walked = self._spelled(starts, values, text, None, _AFTER_DIGITS)
                self._free(walked.row, Reading.NUMBER, held=values)
            self._literals_over(place, Reading.NUMBER, text, walked.crossings, AFTER_NUMBER)

    def _spelled(
        self, starts: Starts, values: Spellings | None, text: bytes, quote: int | None, onward: frozenset[int]
    ) -> Walked:
        """Tokens that go on with a literal that is held to a regular expression, of which a text was read."""
        run = self.heads.spelled(values, quote)
        state = run.state(text)
        return self.walks.nothing if state is None else self.walks.spelled(starts, run, state, onward)

    def _literals_over(
        self, place: Place, reading: Reading, before: bytes, ended: Iterable[Crossing], closed: frozenset[int]
    ) -> None:
        """Allow the rest of tokens in which literals have ended; behind most of these the same may come."""
        nodes: dict[tuple[tuple[Stack | None, int], ...], tuple[list[Thread], list[int]]] = {}
        for text, node, _ in ended:
            threads = self.language.reached(At(place, reading, before + text))
            key = tuple([(stack, id(one)) for stack, one in threads])
            nodes.setdefault(key, (threads, []))[1].append(node)
        for threads, some in nodes.values():
            self._over(self.heads.head(some, closed), threads, 0)

    def _note_literal(self, place: Place, form: LiteralForm) -> None:
        """A literal begins at a place, or is in progress."""
        self.spans.note(_CLOSED + self.counts.rest_of_literal(place, form))

    def _longer_signs(self, at: At, sign: str) -> None:
        """Allow the tokens that go on with a longer sign."""
        self._note(at.place, 2)
        for longer in at.place.signs:
            if len(longer) > len(sign) and longer.startswith(sign):
                nodes = [0]
                for byte in longer[len(sign) :].encode():
                    nodes = self.heads.after(nodes, (byte,))
                    self._allow(self.walks.tokens_at(nodes))
                self._crossed(At(at.place, Reading.SIGN, longer.encode()), nodes, self.heads.after_sign(longer))

    # Quotes --------------------------------------------------------------------------------------------------------

    def _string(self, starts: Starts, place: Place, text: bytes, state: int) -> None:
        """Allow the tokens that go on within a string, of which a text was read as far as it matters."""
        values = self.language.string_values(place)
        self._note_literal(place, LiteralForm.STRING)
        if not self.language.is_free(place):
            sets = tuple((some, False) for some in dict.fromkeys(values) if isinstance(some, Words))
            if sets:
                self._listed(starts, At(place, Reading.STRING, text), _QUOTE, sets)
            for held in dict.fromkeys(values):
                if isinstance(held, Spellings):
                    walked = self._spelled(starts, held, text, _QUOTE, _ALL)
                    self._free(walked.row, Reading.STRING, held=held)
                    self._literals_over(place, Reading.STRING_END, text, walked.crossings, frozenset([_QUOTE]))
            return
        walked = self.walks.run(starts, self.heads.quoted[_QUOTE], state, _ALL, _QUOTE)
        self._free(walked.row, Reading.STRING)
        closed = frozenset([_QUOTE])
        others = []
        for crossing in walked.crossings:
            # What others are held to is read by itself; any other makes it a text that does not matter.
            if values and text != ANY and self.language.begins_value(place, text + crossing.text):
                self._crossed(At(place, Reading.STRING_END, text + crossing.text), [crossing.node], closed)
            else:
                others.append(crossing.node)
        self._crossed(At(place, Reading.STRING_END, ANY if values else b""), others, closed)

    def _quoted(self, starts: Starts, place: Place, quote: int, text: bytes, state: int) -> None:
        """Allow the tokens that go on within a name in quotes, or a string in such, of which a text was read."""
        sets, is_free = self.language.quoted_sets(place, quote)
        self._note(place, self.counts.rest_of_any_name([words for words, _ in sets]) + _CLOSED)
        if not is_free:
            self._listed(starts, At(place, Reading.NAME, bytes([quote]) + text), quote, sets)
            return
        if is_doubled(quote):
            walked = self.walks.run(starts, self.heads.quoted[quote], state, _ALL, quote)
        else:
            walked = self.walks.run(starts, self.heads.quoted[quote], state, frozenset([closes(quote)]), None)
            self._closed(At(place, Reading.NAME, bytes([quote]) + text), starts.nodes.tolist(), quote)
        self._free(walked.row, Reading.NAME, quote)
        self._note(place, self._owed(text) + _CLOSED)
        if walked.crossings:
            self._names_ended(place, quote, text, walked)

    def _listed(self, starts: Starts, at: At, quote: int, sets: tuple[tuple[Words, bool], ...]) -> None:
        """Allow the tokens that go on with what is listed, in quotes."""
        opening = b"" if at.reading is Reading.STRING else at.text[:1]
        text = at.text[len(opening) :]
        ending = frozenset([closes(quote)])
        for words, folds in sets:
            inside = doubled(text.lower() if folds else text, quote)
            walked = self.walks.words(starts, _all_doubled(words, quote), inside, folds, ending)
            self._allow(walked.row)
            for crossing in walked.crossings:
                read = text + single(self.walks.last_bytes(crossing.node, len(crossing.text)), quote)
                self._closed(At(at.place, at.reading, opening + read), [crossing.node], quote)
        self._closed(at, starts.nodes.tolist(), quote)

    def _closed(self, at: At, nodes: list[int], quote: int) -> None:
        """Allow the tokens that go on with what ends a text in quotes, or may end it."""
        ending = closes(quote)
        # No name in brackets is empty.
        after = self.language.step(at, ending) if ending == quote or at.text[1:] else None
        if after is not None:
            behind = self.heads.after(nodes, (ending,))
            self._allow(self.walks.tokens_at(behind))
            self._crossed(after, behind, _again(quote))

    def _names_ended(self, place: Place, quote: int, text: bytes, walked: Walked) -> None:
        """Allow the rest of tokens in which a free name in quotes ends."""
        closed = _again(quote)
        opening = bytes([quote])
        known, others = self._told(place, text, walked, closed, None if closed else closes(quote))
        for crossing in known:
            read = opening + text + crossing.text
            if closed:
                self._crossed(At(place, Reading.NAME_END, read), [crossing.node], closed)
            else:
                self._closed(At(place, Reading.NAME, read), [crossing.node], quote)
        if others is not None:
            at = At(place, Reading.NAME_END, opening + UNHEARD.encode())
            if not closed and self.language.may_be_over(at):
                self._free(others.ended, Reading.NAME, quote)
            unheard = read_lexeme(at, self.language.lexis)
            assert unheard is not None
            self._behind_unheard(others, place, unheard[0], text)


def _is_plain(text: bytes) -> bool:
    """May a free name begin so?"""
    return text.isascii() and b"$" not in text and not text[:1].isdigit()


def _again(quote: int) -> frozenset[int]:
    """The byte that is no next lexeme right behind a text in quotes: it would make one of both."""
    return frozenset([quote] if is_doubled(quote) else ())


@lru_cache(maxsize=4096)
def _all_doubled(words: Words, quote: int) -> Words:
    """Words as they are written in quotes."""
    if not (is_doubled(quote) and any(quote in word for word in words.sorted)):
        return words
    one = chr(quote)
    return words_of(word.replace(one, one + one) for word in words.members)
