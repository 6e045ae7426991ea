"""`guided.lark`: a Lark grammar as an IR grammar."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.lark.indented import marked_brackets, with_marks
from guided.grammar.lark.load import Loaded, load, place_of
from guided.grammar.lark.rules import number_rules, read_rules
from guided.grammar.lark.special import Replaced, check_assertions, references, replace_references
from guided.grammar.lark.tables import read_tables
from guided.grammar.lark.terminals import for_contextual_lexer, for_dynamic_lexer
from guided.grammar.lark_dialects.tree import Dialect


def lark(
    text: str,
    *,
    start: str = "start",
    lexing: Lexing | None = None,
    import_paths: Iterable[str | os.PathLike[str]] = (),
    special_tokens: bool | Mapping[str, int] = False,
    regex: bool = False,
    postlex: Any = None,
    dialect: Dialect | str | None = None,
    grammars: Mapping[str, Grammar | str] | None = None,
) -> Grammar:
    """The language that Lark gives to a grammar in its notation, or another engine to one in its ``dialect`` of it.

    Without ``lexing``, a grammar without LALR(1) conflicts means what ``Lark(text, parser="lalr")`` parses, with its
    contextual lexer (`Lexing.CONTEXTUAL`); any other what ``Lark(text)`` parses, Earley's algorithm with the dynamic
    lexer (`Lexing.DYNAMIC`).  ``lexing`` forces one of the two; ``import_paths`` are folders for ``%import``.

    ``regex``: patterns are those of the `regex` package, as in ``Lark(text, regex=True)``: ``\\p{Lu}`` and its kin, and
    its own ``\\w``, ``\\s`` and case.  What that package has beyond `re` and properties is refused.

    ``special_tokens=True`` adds to Lark's notation, as llguidance does, special tokens in rules: ``<think>`` is the one
    of that name, brackets included.  With a tokenizer's own, ``special_tokens=vocabulary.special_tokens``, they may be
    given by id, ``<[151657]>``.  To the lexer a special token is a character that no terminal matches; terminals that
    ask what follows their match other than by a negative look-ahead are refused beside them.

    ``postlex``: a `lark.indenter.Indenter`, such as ``PythonIndenter()``; texts are those that ``Lark(text,
    parser="lalr", postlex=...)`` parses, and shift/reduce conflicts are shifts, as there.  So Lark's own grammar of
    Python can be used.  New lines and indentation must be where texts can be completed, as in that grammar: INDENT
    directly behind the new line, DEDENT behind a new line or another, both in one rule, none between brackets.

    ``dialect``: None and "lark" are Lark's own, "xgrammar" and "llguidance" what those engines read in a text,
    construct by construct in docs/GRAMMAR_NOTATIONS.md; a text with a ``%llguidance`` line is in the latter.  They
    begin at rule ``start`` and know special tokens; ``grammars`` are what ``@name`` refers to; the other arguments are
    Lark's own.

    One defect of Lark is not imitated: its Earley parser raises RuntimeError on a text with two parses of which one
    ignores at the end what the other reads; such a text is accepted here.

    Raises `GrammarError` for what Lark does not load.  Raises `UnsupportedError` for terminals of ``%declare`` in
    rules that ``start`` reaches, for most backreferences in terminals, and for `Lexing.CONTEXTUAL` on a grammar with
    conflicts.  Raises `LimitError` for alternatives inside of sequences that Lark would take long to multiply out, and
    for an LALR(1) table that takes too many steps.

    >>> lark('start: "a"+')
    <Grammar 'start': 2 rules, lexing contextual>
    """
    paths = tuple(os.fspath(path) for path in import_paths)
    chosen = _dialect(text, dialect)
    if chosen is not Dialect.LARK:
        larks_own = (start, lexing, paths, regex, postlex) != ("start", None, (), False, None)
        return _in_dialect(text, chosen, special_tokens, grammars, larks_own)
    if lexing is Lexing.NONE:
        raise UnsupportedError(
            "a Lark grammar has a lexer", remedy="Use Lexing.CONTEXTUAL or Lexing.DYNAMIC, or write GBNF instead."
        )
    replaced = _replaced(text, special_tokens)
    try:
        if postlex is not None:
            _check_indenter(postlex, lexing, special_tokens)
        declared = () if postlex is None else (postlex.INDENT_type, postlex.DEDENT_type)
        loaded = load(replaced.text, start, paths, bool(regex), declared)
        replaced.check(loaded)
        grammar = _read(start, lexing, loaded, replaced) if postlex is None else _read_indented(start, loaded, postlex)
    except GuidedError as error:
        if not special_tokens and isinstance(text, str) and (found := next(references(text), None)):
            raise GrammarError(
                f"{found[0]} looks like a special token, which is not Lark's notation",
                where=place_of(text, found.start()),
                remedy="Pass special_tokens=True, or quote it if it is text.",
            ) from error
        if replaced.names:
            raise replaced.translated(error) from error
        raise
    keywords = _keywords(start, lexing, paths, special_tokens, regex)
    if postlex is not None:
        keywords["postlex"] = postlex
    return replace(grammar, rebuild=(lark, (text,), keywords))


def _dialect(text: str, dialect: Dialect | str | None) -> Dialect:
    if dialect is None:
        named = isinstance(text, str) and re.search(r"^[ \t]*%llguidance\b", text, re.MULTILINE)
        return Dialect.LLGUIDANCE if named else Dialect.LARK
    try:
        return Dialect(dialect)
    except ValueError:
        names = ", ".join(repr(known.value) for known in Dialect)
        raise GrammarError(f"there is no dialect {dialect!r}", remedy=f"Use one of {names}.") from None


def _in_dialect(
    text: str,
    dialect: Dialect,
    special_tokens: bool | Mapping[str, int],
    grammars: Mapping[str, Grammar | str] | None,
    larks_own: bool,
) -> Grammar:
    if larks_own:
        raise UnsupportedError(
            f"start, lexing, import_paths, regex or postlex with a grammar in {dialect.value}'s dialect",
            remedy="Leave them out: the rule to begin with is called start, and the engine has one way of lexing.",
        )
    from guided.grammar.lark_dialects.front import grammar_of_dialect

    known = None if isinstance(special_tokens, bool) else dict(special_tokens)
    keywords: dict[str, Any] = {"dialect": dialect, "special_tokens": special_tokens if known is None else known}
    if grammars:
        keywords["grammars"] = dict(grammars)
    found = grammar_of_dialect(text, dialect, known, grammars)
    return replace(found, rebuild=(lark, (text,), keywords))


def _check_indenter(postlex: Any, lexing: Lexing | None, special_tokens: bool | Mapping[str, int]) -> None:
    from lark.indenter import Indenter

    # Without a process of its own it does what this file knows; a class only names its terminals.
    own = (Indenter.process, Indenter.handle_NL, Indenter._process)
    found = type(postlex)
    if not isinstance(postlex, Indenter) or (found.process, found.handle_NL, found._process) != own:
        raise UnsupportedError(
            f"postlex={postlex!r} is no lark.indenter.Indenter, or one with methods of its own",
            remedy="Pass lark.indenter.PythonIndenter(), or a subclass of Indenter that only names its terminals.",
        )
    if lexing is Lexing.DYNAMIC or special_tokens is not False:
        raise UnsupportedError(
            "an indenter stands behind Lark's contextual lexer, without special tokens",
            remedy="Leave out lexing=... and special_tokens=...",
        )


def _read_indented(start: str, loaded: Loaded, postlex: Any) -> Grammar:
    marked, marks, indentation = with_marks(loaded, postlex)
    terminals = for_contextual_lexer(marked.terminals, marked.ignore, marks, regex=loaded.regex)
    terminals = marked_brackets(terminals, postlex)
    nonterminals = number_rules(loaded.rules)
    tables = read_tables(loaded.rules, start, terminals, nonterminals, shifts=True)
    if isinstance(tables, str):
        raise UnsupportedError(f"the grammar is not LALR(1): {tables}", remedy="Remove the conflict.")
    names = (postlex.NL_type, postlex.INDENT_type, postlex.DEDENT_type, indentation.opens, indentation.closes)
    key = _key(loaded, start, Lexing.CONTEXTUAL, {}, ("indented", *names, postlex.tab_len))
    return Grammar(
        rules=read_rules(loaded.rules, nonterminals, terminals.index, terminals.items),
        start=nonterminals[start],
        lexing=Lexing.CONTEXTUAL,
        terminals=terminals.items,
        ignore=tuple(sorted(terminals.ignore)),
        tables=tables,
        indentation=indentation,
        key=key,
    )


def _replaced(text: str, special_tokens: bool | Mapping[str, int]) -> Replaced:
    if not isinstance(text, str) or special_tokens is False:
        return Replaced(text)
    return replace_references(text, None if special_tokens is True else special_tokens)


def _keywords(
    start: str, lexing: Lexing | None, paths: tuple[str, ...], special_tokens: bool | Mapping[str, int], regex: bool
) -> dict[str, Any]:
    known = special_tokens if isinstance(special_tokens, bool) else dict(special_tokens)
    found = {"start": start, "lexing": lexing, "import_paths": paths, "special_tokens": known}
    return {**found, "regex": True} if regex else found


def _read(start: str, lexing: Lexing | None, loaded: Loaded, replaced: Replaced) -> Grammar:
    special = replaced.used(loaded)
    nonterminals = number_rules(loaded.rules)
    notes: tuple[str, ...] = ()
    tables = None
    terminals = None
    if lexing is not Lexing.DYNAMIC:
        terminals = for_contextual_lexer(loaded.terminals, loaded.ignore, special, regex=loaded.regex)
        read = read_tables(loaded.rules, start, terminals, nonterminals)
        if not isinstance(read, str):
            tables = read
        elif lexing is Lexing.CONTEXTUAL:
            raise UnsupportedError(
                f"the grammar is not LALR(1): {read}",
                remedy="Leave out lexing=... to read it as Lark's Earley parser does, or remove the conflict.",
            )
        else:
            reason = replaced.in_words(read)
            notes = (f"not LALR(1) ({reason}): read as Lark's Earley parser with the dynamic lexer does",)
    mode = Lexing.DYNAMIC if tables is None else Lexing.CONTEXTUAL
    if tables is None or terminals is None:
        used = {str(symbol.name) for rule in loaded.rules for symbol in rule.expansion if symbol.is_term}
        terminals = for_dynamic_lexer(loaded.terminals, loaded.ignore, used, special, regex=loaded.regex)
    if special:
        check_assertions(terminals.items)
    return Grammar(
        rules=read_rules(loaded.rules, nonterminals, terminals.index, terminals.items),
        start=nonterminals[start],
        lexing=mode,
        terminals=terminals.items,
        ignore=tuple(sorted(terminals.ignore)),
        tables=tables,
        key=_key(loaded, start, mode, special),
        notes=notes,
        special_tokens=tuple(sorted(special.values())),
    )


def _key(loaded: Loaded, start: str, mode: Lexing, special: Mapping[str, str], more: tuple[Any, ...] = ()) -> str:
    """A hash of everything that decides the language, imported grammars included."""
    content: list[Any] = ["lark", start, mode.value, loaded.ignore, sorted(special.items())]
    content += ["regex"] * loaded.regex
    content += more
    content += [(rule.origin.name, [(s.is_term, s.name) for s in rule.expansion]) for rule in loaded.rules]
    content += sorted((t.name, t.pattern.type, t.pattern.to_regexp(), t.priority) for t in loaded.terminals)
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()
