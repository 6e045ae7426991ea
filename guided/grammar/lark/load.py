"""Loading a grammar with the Lark library, and its errors in our words.

Lark reads the text, its imports, templates and terminals.  This file finds the line for errors that Lark reports
without one, and refuses what Lark loads but cannot be enforced (``%declare``).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.lark.multiplied import check_size, check_terminals


@dataclass(frozen=True, slots=True)
class Loaded:
    """What Lark compiled: its own rules and terminal definitions (pattern, priority), and the ignored names."""

    rules: tuple[Any, ...]
    terminals: tuple[Any, ...]
    ignore: tuple[str, ...]
    regex: bool = False
    """Are the patterns those of the `regex` package?"""


def load(text: str, start: str, import_paths: Sequence[str], regex: bool, given: Sequence[str] = ()) -> Loaded:
    """Compile ``text`` with Lark; raises `GrammarError` or `UnsupportedError` with the line where it can be found."""
    from lark.common import LexerConf
    from lark.exceptions import GrammarError as Malformed
    from lark.exceptions import LarkError
    from lark.load_grammar import load_grammar
    from lark.parser_frontends import EarleyRegexpMatcher

    if not isinstance(text, str):
        raise GrammarError("a Lark grammar is a str", remedy="Read the file and pass its text.")
    check_terminals(_unquoted(text))
    try:
        loader: Any = load_grammar
        read, _ = loader(text, "<string>", list(import_paths), False)
        check_size(read)
        terminals, made, ignore = read.compile([start], set())
        # As Lark's Earley front end has it, which loads every grammar that Lark can load; its parser is not made.
        if all(rule.origin.name != start for rule in made):
            raise Malformed(f"Using an undefined rule: NonTerminal('{start}')")
        matcher: Any = EarleyRegexpMatcher
        matcher(LexerConf(terminals, _patterns_of(regex), ignore))
    except LimitError:
        raise
    except OSError as error:
        raise _missing_import(text, error) from error
    except LarkError as error:
        raise _translated(text, start, error) from error
    except RecursionError as error:
        raise LimitError(
            "the grammar is nested too deeply for Lark to load", remedy="Split its expressions into more rules."
        ) from error
    except Exception as error:
        # Lark lets some malformed grammars fail inside: assertions, missing attributes, errors of `re`.
        if hasattr(error, "pattern") and hasattr(error, "msg"):
            raise _bad_pattern(text, error, regex) from error
        declared = _declared(text)
        if declared is not None:
            raise declared from error
        raise GrammarError(
            f"Lark cannot load this grammar: {type(error).__name__}: {error}", remedy="Check it with Lark itself."
        ) from error
    names = {*(str(terminal.name) for terminal in terminals), *given}
    rules = _reachable(made, start)
    used = {str(symbol.name) for rule in rules for symbol in rule.expansion if symbol.is_term}
    for name in sorted((used | set(map(str, ignore))) - names):
        raise UnsupportedError(
            f"terminal {name} is declared with %declare, so its text is not known",
            where=_place(text, name),
            remedy="Define it by a string or a regular expression; post-lexers such as Indenter are not supported.",
        )
    return Loaded(rules, tuple(terminals), tuple(dict.fromkeys(map(str, ignore))), regex)


def _patterns_of(regex: bool) -> Any:
    """The module that reads patterns."""
    return importlib.import_module("regex" if regex else "re")


def _reachable(rules: Iterable[Any], start: str) -> tuple[Any, ...]:
    """The rules that a text from ``start`` may use; Lark leaves out only those that no rule names but themselves."""
    by_name: dict[str, list[Any]] = {}
    for rule in rules:
        by_name.setdefault(str(rule.origin.name), []).append(rule)
    reached = {start}
    work = [start]
    while work:
        for rule in by_name.get(work.pop(), ()):
            new = {str(symbol.name) for symbol in rule.expansion if not symbol.is_term} - reached
            reached |= new
            work += new
    return tuple(rule for name, own in by_name.items() if name in reached for rule in own)


_SYNTAX_PLACE = re.compile(r"\bline (\d+),? column (\d+)")
_NOT_NAMES = re.compile(r"""//[^\n]* | "(?:\\.|[^"\\\n])*" | /(?!/)(?:\\.|\\/|[^/\\\n])+/[imslux]*""", re.VERBOSE)


def _unquoted(text: str) -> str:
    """The text with spaces in place of strings, patterns and comments."""
    return _NOT_NAMES.sub(lambda match: " " * len(match[0]), text)


def _place(text: str, name: str, occurrence: int = 0) -> str | None:
    """Where ``name`` stands in the grammar, outside strings, patterns and comments."""
    found = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", _unquoted(text))]
    if not found:
        return None
    return place_of(text, found[min(occurrence, len(found) - 1)])


def place_of(text: str, offset: int) -> str:
    """``line L, column C`` of an offset, both counted from 1.

    >>> place_of("a\\nbc", 3)
    'line 2, column 2'
    """
    line_start = text.rfind("\n", 0, offset) + 1
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - line_start + 1}"


def _missing_import(text: str, error: OSError) -> GuidedError:
    # Lark names the file that it looked for; the import names it with dots.
    path = str(error.filename or error).replace("\\", "/")
    dotted = re.sub(r"\.lark$", "", path).replace("/", ".")
    match = re.search(rf"%import\s+\.*{re.escape(dotted)}\b", text)
    return GrammarError(
        f"cannot import from {dotted!r}: there is no file {path!r}",
        where=place_of(text, match.start()) if match else None,
        remedy="Pass the folder that holds it as import_paths, or import from 'common', 'lark', 'python' or 'unicode'.",
    )


_REMEDIES = (
    (re.compile(r"zero-width|empty", re.I), "Make the terminal match at least one character, and its use optional."),
    (re.compile(r"not defined|undefined|weren't defined"), "Define it, import it, or correct the name."),
    (re.compile(r"defined more than once|defined twice|already defined"), "Remove or merge one of the definitions."),
    (re.compile(r"regexp|regex"), "Correct the regular expression; its notation is that of Python's re."),
    (re.compile(r"recursion in terminal", re.I), "Use a rule (lower-case name) for what is recursive."),
)


def _translated(text: str, start: str, error: Exception) -> GuidedError:
    token = getattr(error, "token", None)
    if token is not None:
        shown = {"_NL": "end of the line", "$END": "end of the grammar"}.get(token.type, repr(str(token)))
        return GrammarError(
            f"unexpected {shown}",
            where=f"line {token.line}, column {token.column}",
            remedy="Check the brackets, quotes and colons before it.",
        )
    lines = str(error.args[0] if error.args else error).strip().splitlines()
    message = lines[0].strip() if lines else type(error).__name__
    where = None
    place = _SYNTAX_PLACE.search(str(error))
    if place:
        where = f"line {place[1]}, column {place[2]}"
        message = re.sub(r",? at line.*$", "", message)
    elif re.search(rf"undefined rule: NonTerminal\('{re.escape(start)}'\)", message):
        return GrammarError(
            f"there is no rule {start!r} to start from", remedy="Define it, or name another rule by start=..."
        )
    else:
        for name in _names_in(message, error):
            where = _place(text, name)
            if where:
                break
        if len(error.args) > 1 and getattr(error.args[1], "name", None):
            message = f"terminal {error.args[1].name}: {message}"
    remedy = next((advice for pattern, advice in _REMEDIES if pattern.search(message)), None)
    return GrammarError(message.rstrip(".: "), where=where, remedy=remedy or "Correct the grammar's text.")


def _names_in(message: str, error: Exception) -> list[str]:
    subject = getattr(error.args[1], "name", None) if len(error.args) > 1 else None
    found: list[str] = [subject] if subject else []
    found += re.findall(r"'(\w+)'", message)
    found += re.findall(r"(?:defined: |token |Terminals? |in terminal |error at )'?(\w+)", message, re.I)
    return [str(name) for name in found]


def _bad_pattern(text: str, error: Any, regex: bool) -> GuidedError:
    """For errors of `re`, or of the regex package, which Lark asks too where it is installed."""
    pattern = str(error.pattern)
    found = text.find(f"/{pattern}/")
    notation = "the `regex` package" if regex else "Python's re"
    remedy = f"Correct it; its notation is that of {notation}."
    if not regex and _PROPERTY.search(pattern):
        remedy = "Pass regex=True, as to Lark itself: properties of characters are the notation of the `regex` package."
    return GrammarError(
        f"the regular expression {pattern!r} is malformed: {error.msg}",
        where=place_of(text, found + 1 + (error.pos or 0)) if found >= 0 else None,
        remedy=remedy,
    )


_PROPERTY = re.compile(r"(?<!\\)(?:\\\\)*\\[pP]")


def _declared(text: str) -> GuidedError | None:
    match = re.search(r"^\s*%declare\b", text, re.MULTILINE)
    if match is None:
        return None
    return UnsupportedError(
        "%declare names something without a text",
        where=place_of(text, match.start()),
        remedy="Define it by a string or a regular expression; post-lexers such as Indenter are not supported.",
    )
