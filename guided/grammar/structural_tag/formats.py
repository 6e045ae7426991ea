"""Every type of format as rules; free text knows where the tag around it ends, and does not hold that.

The end of a tag is found as in XGrammar: free text in the content of a tag, at any depth but not in a tag of its own,
holds none of the texts that end the tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.ebnf import ebnf
from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Choice, Grammar, Repetition
from guided.grammar.regex import regex
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.lengths import with_length
from guided.grammar.regular.texts import CHARACTER
from guided.grammar.structural_tag.fields import Fields, below, checked_text, placed
from guided.grammar.structural_tag.json_formats import JsonFormats, Writing
from guided.grammar.structural_tag.special import SpecialTokens
from guided.grammar.tags.delimiters import Piece, parts_of, sequence
from guided.grammar.tags.free_text import TEXT, innermost, text_without
from guided.grammar.tags.text_with_tags import TextWithTags, choice

__all__ = ["Reader"]

MAX_DEPTH = 100
"""Formats inside one another, as in XGrammar."""

_Ends = tuple[str, ...]
_NOTHING = sequence(())


@dataclass(frozen=True)
class _Tag:
    """A tag that was read: what it begins with, and the rules of all that follows."""

    begin: tuple[Piece, ...]
    begin_text: str | None
    """The text it begins with; None for a token."""
    rest: Body
    pointer: str


class Reader:
    """Reads the formats of one structural tag into the rules of one grammar."""

    def __init__(self, special_tokens: Mapping[str, int] | None, writing: Writing) -> None:
        self._assembly = Assembly()
        self._ids = special_tokens
        self._special = SpecialTokens(special_tokens)
        self._writing = writing
        self._json = JsonFormats(writing, special_tokens or ())
        self._notes: dict[str, None] = {}
        self._depth = 0
        self._types: dict[str, Callable[[Fields, _Ends], Body]] = {
            "any_text": self._any_text,
            "any_tokens": self._any_tokens,
            "const_string": self._const_string,
            "dispatch": self._dispatch,
            "exclude_token": self._exclude_token,
            "grammar": self._grammar,
            "json_schema": self._json_schema,
            "optional": self._optional,
            "or": self._or,
            "plus": self._plus,
            "qwen_xml_parameter": self._json_schema,
            "regex": self._regex,
            "repeat": self._repeat,
            "sequence": self._sequence,
            "star": self._star,
            "tag": self._one_tag,
            "tags_with_separator": self._tags_with_separator,
            "token": self._token,
            "token_dispatch": self._token_dispatch,
            "token_triggered_tags": self._token_triggered_tags,
            "triggered_tags": self._triggered_tags,
        }

    def finish(self, body: Body, source: str, rebuild: tuple[Callable[..., Grammar], tuple[Any, ...], Any]) -> Grammar:
        """The grammar of the outermost format; ``source`` is its JSON, by which it is known again."""
        start = self._assembly.rule("structural tag", body)
        ids = None if self._ids is None else sorted(self._ids.items())
        found = self._assembly.finish(start, source=(source, ids, self._writing), rebuild=rebuild)
        return replace(found, notes=(*found.notes, *self._notes))

    def legacy(self, fields: Fields) -> Body:
        """The older notation: tags with a schema each, and triggers."""

        def structure(value: Any, pointer: str) -> _Tag:
            item = Fields(value, pointer, "a structure")
            item.only(("begin", "schema", "end"))
            schema = item.given("schema")
            begin, end = item.text("begin", empty=False), item.text("end")
            content = self._assembly.embed(
                self._json.schema(schema, item.at("schema"), whitespace=self._writing.whitespace)
            )
            rest = sequence([content, *self._pieces(end)])
            return _Tag(self._special.pieces(begin), begin, rest, pointer)

        tags = fields.each("structures", structure, needed=True)
        return self._text_with_tags(fields, tags, (), "structures")

    def format(self, value: Any, pointer: str, ends: _Ends) -> Body:
        """Any format; ``ends`` are the texts that end the innermost tag around it."""
        fields = Fields(value, pointer, "a format")
        kind = fields.given("type")
        read = self._types.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise GrammarError(
                f"{kind!r} is not a type of format",
                where=fields.at("type"),
                remedy=f"Types are {', '.join(self._types)}.",
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError(
                f"formats are nested deeper than {MAX_DEPTH} levels", where=pointer, remedy="Nest them less deeply."
            )
        try:
            found = read(fields, ends)
        except LimitError as error:
            raise LimitError(error.what, where=error.where or pointer, remedy=error.remedy) from None
        self._depth -= 1
        return found

    # -- texts ----------------------------------------------------------------------------------------------------

    def _const_string(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "value"))
        return sequence(self._pieces(fields.text("value")))

    def _any_text(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "excludes", "max_tokens", "max_chars"))
        words = innermost([*fields.words("excludes"), *ends])
        most = fields.count("max_chars")
        if most == 0:
            fields.count("max_tokens")
            return _NOTHING
        language = text_without(words)
        return self._free(fields, language if most is None else with_length(language, CHARACTER, 0, most))

    def _free(self, fields: Fields, language: Expr) -> Body:
        """Free text, of so many tokens at most as there may be."""
        most = fields.count("max_tokens")
        return self._assembly.limited(language, "text" if most is None else f"the text of {fields.pointer}", most)

    def _json_schema(self, fields: Fields, ends: _Ends) -> Body:
        return self._assembly.embed(self._json.read(fields))

    def _regex(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "pattern"))
        pattern = fields.text("pattern", empty=False)
        with placed(fields.at("pattern")):
            return self._assembly.embed(regex(pattern))

    def _grammar(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "grammar"))
        text = fields.text("grammar", empty=False)
        with placed(fields.at("grammar")):
            return self._assembly.embed(ebnf(text, special_tokens=self._ids))

    # -- combinations ---------------------------------------------------------------------------------------------

    def _sequence(self, fields: Fields, ends: _Ends) -> Body:
        return sequence(self._elements(fields, ends))

    def _or(self, fields: Fields, ends: _Ends) -> Body:
        return choice(self._elements(fields, ends))

    def _elements(self, fields: Fields, ends: _Ends) -> list[Body]:
        fields.only(("type", "elements"))
        return fields.each("elements", lambda value, pointer: self.format(value, pointer, ends), needed=True)

    def _optional(self, fields: Fields, ends: _Ends) -> Body:
        return Choice((_NOTHING, self._content(fields, ends)))

    def _plus(self, fields: Fields, ends: _Ends) -> Body:
        return Repetition(self._content(fields, ends), 1)

    def _star(self, fields: Fields, ends: _Ends) -> Body:
        return Repetition(self._content(fields, ends))

    def _repeat(self, fields: Fields, ends: _Ends) -> Body:
        low, high = fields.whole("min", 0), fields.whole("max", -1)
        if -1 < high < low:
            raise GrammarError(
                f"at most {high} and at least {low}",
                where=fields.at("max"),
                remedy="Let it be no less; -1 is no limit.",
            )
        return Repetition(self._content(fields, ends, "min", "max"), low, None if high < 0 else high)

    def _content(self, fields: Fields, ends: _Ends, *others: str) -> Body:
        fields.only(("type", "content", *others))
        body = self.format(fields.given("content"), fields.at("content"), ends)
        return self._assembly.rule(fields.at("content"), body)

    # -- tags -----------------------------------------------------------------------------------------------------

    def _one_tag(self, fields: Fields, ends: _Ends) -> Body:
        tag = self._tag(fields)
        return sequence([*parts_of(self._assembly, tag.begin), tag.rest])

    def _tags(self, fields: Fields) -> list[_Tag]:
        return fields.each("tags", lambda value, at: self._tag(Fields(value, at, "a tag")), needed=True)

    def _tag(self, fields: Fields) -> _Tag:
        fields.only(("type", "begin", "content", "end"))
        if "type" in fields and fields.given("type") != "tag":
            raise GrammarError(f"{fields.given('type')!r} is no tag", where=fields.at("type"), remedy='Write "tag".')
        begin, text = self._delimiter(fields, "begin")
        end = fields.given("end")
        if isinstance(end, list):
            texts = fields.each("end", checked_text, needed=True)
            closing = choice([sequence(self._pieces(each)) for each in texts])
        else:
            pieces, single = self._delimiter(fields, "end")
            texts = [single] if single else []
            closing = sequence(parts_of(self._assembly, pieces))
        content = self.format(fields.given("content"), fields.at("content"), tuple(filter(None, texts)))
        rest = self._assembly.rule(f"{fields.pointer} from its content on", sequence([content, closing]))
        return _Tag(begin, text, rest, fields.pointer)

    def _delimiter(self, fields: Fields, name: str) -> tuple[tuple[Piece, ...], str | None]:
        """The pieces of a text or token, and the text."""
        given = fields.given(name)
        if isinstance(given, str):
            text = fields.text(name)
            return self._special.pieces(text), text
        token = Fields(given, fields.at(name), "a text or a token")
        return (self._token_of(token),), None

    def _tags_with_separator(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "tags", "separator", "at_least_one", "stop_after_first"))
        separator = self._pieces(fields.text("separator"))
        each = [sequence([*parts_of(self._assembly, tag.begin), tag.rest]) for tag in self._tags(fields)]
        between = sequence(separator) if separator else None
        high = 1 if fields.flag("stop_after_first") else None
        tag = self._assembly.rule(f"a tag of {fields.pointer}", choice(each))
        return Repetition(tag, int(fields.flag("at_least_one")), high, between)

    def _triggered_tags(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes"))
        return self._text_with_tags(fields, self._tags(fields), ends, "tags")

    def _text_with_tags(self, fields: Fields, tags: list[_Tag], ends: _Ends, name: str) -> Body:
        triggers = fields.words("triggers", needed=True)
        for tag in tags:
            if tag.begin_text is None:
                raise GrammarError(
                    "a trigger is a text, and this tag begins with a token",
                    where=below(tag.pointer, "begin"),
                    remedy='Write the text, or use "token_triggered_tags".',
                )
            if not any(tag.begin_text.startswith(trigger) for trigger in triggers):
                raise GrammarError(
                    f"no trigger begins the tag {tag.begin_text!r}",
                    where=below(tag.pointer, "begin"),
                    remedy="Add one to the triggers: a beginning of it, or all of it.",
                )
        started = {t for t in triggers if any(tag.begin_text and tag.begin_text.startswith(t) for tag in tags)}
        at = {trigger: below(fields.at("triggers"), index) for index, trigger in enumerate(triggers)}
        # A trigger without a tag is never read in full, which leaves it out of the text.
        idle = [trigger for trigger in triggers if trigger not in started]
        excludes = [*fields.words("excludes"), *idle, *ends]
        text = self._text(tags, sorted(started), excludes, at)
        return self._around(text, fields)

    def _text(self, tags: list[_Tag], triggers: list[str], excludes: list[str], at: Mapping[str, str]) -> TextWithTags:
        for trigger in triggers:
            for other in [*triggers, *excludes]:
                if (other != trigger and other in trigger) or (other in excludes and other.endswith(trigger)):
                    raise GrammarError(
                        f"the trigger {trigger!r} and {other!r} are read to the end at once, or the other before it",
                        where=at[trigger],
                        remedy="Change or remove one of them.",
                    )
        firsts = [tag.begin[0] for tag in tags]
        # Of a trigger that holds a special token the tokenizer writes that: the text stays out of the text around.
        read = [t for t in triggers if any(isinstance(first, str) and first.startswith(t) for first in firsts)]
        left_out = [*excludes, *(trigger for trigger in triggers if trigger not in read)]
        return TextWithTags(self._assembly, [t.begin for t in tags], read, [t.rest for t in tags], left_out)

    def _around(self, text: TextWithTags, fields: Fields) -> Body:
        """Free text and tags; where one is asked for, the text begins with it."""
        at_least_one, only_one = fields.flag("at_least_one"), fields.flag("stop_after_first")
        if not at_least_one:
            return text.mixed(False, False, only_one)
        return text.tag() if only_one else sequence([text.tag(), text.mixed(False, False, False)])

    def _dispatch(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "rules", "loop", "excludes"))
        at: dict[str, str] = {}

        def rule(value: Any, pointer: str) -> _Tag:
            pattern, rest = self._rule(value, pointer, ends)
            text = checked_text(pattern, below(pointer, 0))
            if not text:
                raise GrammarError("a pattern is empty", where=below(pointer, 0), remedy="Write a text that is not.")
            at[text] = below(pointer, 0)
            return _Tag(self._special.pieces(text), text, rest, pointer)

        tags = fields.each("rules", rule, needed=True)
        text = self._text(tags, sorted(at), fields.words("excludes"), at)
        return text.mixed(False, False, not fields.flag("loop", True))

    def _rule(self, value: Any, pointer: str, ends: _Ends) -> tuple[Any, Body]:
        if not isinstance(value, list) or len(value) != 2:
            raise GrammarError(f"{value!r:.60} is no rule", where=pointer, remedy="Write [pattern, format].")
        return value[0], self._assembly.rule(below(pointer, 1), self.format(value[1], below(pointer, 1), ends))

    # -- tokens ---------------------------------------------------------------------------------------------------

    def _token(self, fields: Fields, ends: _Ends) -> Body:
        return self._assembly.embed(self._token_of(fields))

    def _token_of(self, fields: Fields) -> Grammar:
        fields.only(("type", "token"))
        if "type" in fields and fields.given("type") != "token":
            raise GrammarError(
                f"{fields.given('type')!r} is no token", where=fields.at("type"), remedy='Write "token".'
            )
        return self._special.token(fields.given("token"), fields.at("token"))

    def _exclude_token(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "exclude_tokens"))
        raise UnsupportedError(
            "exactly one token: how a text is cut into tokens is no part of a grammar",
            where=fields.pointer,
            remedy='Use "any_tokens", or write a "regex" of the text.',
        )

    def _any_tokens(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "exclude_tokens", "max_tokens"))
        self._leave_out(fields)
        return self._free(fields, TEXT)

    def _leave_out(self, fields: Fields) -> None:
        """Free text, which holds no special token: neither those that are excluded nor others."""
        fields.each("exclude_tokens", self._special.excluded)
        self._notes[f"no special token is in the text of {fields.pointer}, named there or not"] = None

    def _token_triggered_tags(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"))
        names = fields.each("trigger_tokens", self._special.name, needed=True)
        tags = self._tags(fields)
        for tag in tags:
            first = tag.begin[0] if tag.begin else ""
            if tag.begin_text is not None or isinstance(first, str):
                raise GrammarError(
                    "a trigger is a token, and this tag begins with a text",
                    where=below(tag.pointer, "begin"),
                    remedy='Write {"type": "token", "token": ...}, or use "triggered_tags".',
                )
            if first.special_tokens[0] not in names:
                raise GrammarError(
                    f"no trigger begins the tag {first.special_tokens[0]!r}",
                    where=below(tag.pointer, "begin"),
                    remedy='Add it to "trigger_tokens".',
                )
        return self._around(self._between_tokens(fields, tags), fields)

    def _token_dispatch(self, fields: Fields, ends: _Ends) -> Body:
        fields.only(("type", "rules", "loop", "exclude_tokens"))

        def rule(value: Any, pointer: str) -> _Tag:
            token, rest = self._rule(value, pointer, ends)
            return _Tag((self._special.token(token, below(pointer, 0)),), None, rest, pointer)

        tags = fields.each("rules", rule, needed=True)
        return self._between_tokens(fields, tags).mixed(False, False, not fields.flag("loop", True))

    def _between_tokens(self, fields: Fields, tags: list[_Tag]) -> TextWithTags:
        self._leave_out(fields)
        return TextWithTags(self._assembly, [tag.begin for tag in tags], (), [tag.rest for tag in tags])

    def _pieces(self, text: str) -> list[Body]:
        """A text, with special tokens where their names are."""
        return parts_of(self._assembly, self._special.pieces(text))
