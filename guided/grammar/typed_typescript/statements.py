"""TypeScript statements over what is declared, as a context-free grammar: no text of it fails to type-check.

The statements of a function's body (Mündler et al. 2025, arXiv 2504.09246), which declares no name but that of a loop.
Where a result is wanted, every way through the statements ends in ``return``.  What compares with a literal, or assigns
to a union of texts, narrows a type for all that comes behind it: there no comparison with a literal stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.ir import Grammar
from guided.grammar.keyed_rules import Key, Options, Part, Written, grammar_from, said
from guided.grammar.typed_typescript.declarations import Scope, read_scope
from guided.grammar.typed_typescript.expressions import ARITHMETIC, Around, Expressions
from guided.grammar.typed_typescript.kinds import Kind, Listed, Literals, Named, Primitive

__all__ = ["typescript_statements"]

INDENT = "  "
_END = Written('";\\n"')
_BREAK = Written('"\\n"')


def typescript_statements(declarations: str, *, returns: str = "void", levels: int = 3, indent: int = 0) -> Grammar:
    """The statements of a function's body behind some ``declarations``, one or more, each with its line break.

    There are assignments to variables and attributes, with ``=``, ``+=`` and the like, calls, ``push``, ``if`` and
    ``else``, ``while``, ``for`` over an array with a name of its own, ``break``, ``continue`` and ``return``, with
    expressions and declarations as `guided.grammar.typed_typescript.typescript_expression` has them.  ``returns`` is
    the type of the result: every way through the statements returns one; with ``void`` ``return`` stands alone.
    ``levels`` is how deep blocks nest, ``indent`` how many levels of two spaces the body itself is indented.  Raises
    what `typescript_expression` does, and `GrammarError` for levels below 0.

    >>> typescript_statements("declare let n: number;", returns="number", levels=0)
    <Grammar 'root': 171 rules, lexing none>
    """
    if levels < 0 or indent < 0:
        raise GrammarError(f"{min(levels, indent)} levels of blocks", remedy="Give 0 or more.")
    scope, wanted = read_scope(declarations, returns)
    statements = _Statements(scope, wanted, indent + levels)
    start: Key = ("block", indent, False, wanted is not Primitive.VOID, Around())
    found = grammar_from(start, statements.options)
    if found is None:
        raise UnsatisfiableError("no statements return such a result", remedy="Declare a name that leads to it.")
    return found


class _Statements:
    """Keys are a word, the level, whether a loop is around, whether every way must return, and what is around."""

    def __init__(self, scope: Scope, returns: Kind, deepest: int) -> None:
        self.scope = scope
        self.returns = returns
        self.deepest = deepest
        self.expressions = Expressions(scope)

    def options(self, key: Key) -> Options:
        """The alternatives of statements, and of the expressions in them."""
        match key:
            case ("block", level, loop, returning, around):
                return list(self._block(level, loop, returning, around))
            case ("line", level, loop, around):
                return list(self._lines(level, loop, around))
            case ("narrowing line", level, loop, around):
                return list(self._narrowing_lines(level, loop, around))
            case ("call", kind, around):
                return list(self._calls(kind, around))
            case ("target", kind, narrows, around):
                return list(self._targets(kind, narrows, around))
            case ("else", level, loop, returning, around):
                return self._otherwise(level, loop, returning, around)
        return self.expressions.options(key)

    def _block(self, level: int, loop: bool, returning: bool, around: Around) -> Iterator[list[Part]]:
        margin = INDENT * level
        behind = replace(around, narrowed=True)
        ways: list[tuple[str, Around]] = [("line", around)]
        if not around.narrowed:
            ways.append(("narrowing line", behind))
        for what, after in ways:
            line: Key = (what, level, loop, around)
            yield [line, ("block", level, loop, returning, after)]
            if not returning:
                yield [line]
        result: list[Part] = [] if self.returns is Primitive.VOID else [said(" "), ("any", self.returns, around)]
        yield [said(f"{margin}return"), *result, _END]
        if loop and not returning:
            for word in ("break", "continue"):
                yield [said(f"{margin}{word}"), _END]
        if returning and level < self.deepest:
            yield from self._branching(level, loop, True, around, narrows=False)
            if not around.narrowed:
                yield from self._branching(level, loop, True, around, narrows=True)

    def _lines(self, level: int, loop: bool, around: Around) -> Iterator[list[Part]]:
        """Statements that narrow no type."""
        margin = said(INDENT * level)
        for name, kind in self.scope.names.items():
            yield [margin, said(name), ("call", kind, around), _END]
            yield [margin, said(name), ("target", kind, False, around), _END]
            if name in self.scope.variable and not isinstance(kind, Literals):
                yield from ([margin, said(name), *option, _END] for option in _assigned(kind, around))
        for name, signature in self.scope.functions.items():
            yield [margin, said(f"{name}("), ("arguments", signature, around), said(")"), _END]
        if level < self.deepest:
            yield from self._branching(level, loop, False, around, narrows=False)
            yield from self._loops(level, around, narrows=False)

    def _narrowing_lines(self, level: int, loop: bool, around: Around) -> Iterator[list[Part]]:
        margin = said(INDENT * level)
        for name, kind in self.scope.names.items():
            yield [margin, said(name), ("target", kind, True, around), _END]
            if name in self.scope.variable and isinstance(kind, Literals):
                yield from ([margin, said(name), *option, _END] for option in _assigned(kind, around))
        if level < self.deepest:
            yield from self._branching(level, loop, False, around, narrows=True)
            yield from self._loops(level, around, narrows=True)

    def _branching(
        self, level: int, loop: bool, returning: bool, around: Around, *, narrows: bool
    ) -> Iterator[list[Part]]:
        margin, inside = INDENT * level, replace(around, narrowed=around.narrowed or narrows)
        condition: Key = ("narrowing" if narrows else "logic", around)
        block: Key = ("block", level + 1, loop, returning, inside)
        yield [
            said(f"{margin}if ("), condition, said(") {"), _BREAK, block, said(f"{margin}}}"),
            ("else", level, loop, returning, inside),
        ]  # fmt: skip

    def _otherwise(self, level: int, loop: bool, returning: bool, around: Around) -> Options:
        """What stands behind the brace; where every way must return there is an ``else``."""
        margin = INDENT * level
        block: Key = ("block", level + 1, loop, returning, around)
        found: Options = [[said(" else {"), _BREAK, block, said(f"{margin}}}"), _BREAK]]
        found.append(
            [said(" else if ("), ("logic", around), said(") {"), _BREAK, block, said(f"{margin}}}"),
             ("else", level, loop, returning, around)]
        )  # fmt: skip
        return found if returning else [[_BREAK], *found]

    def _loops(self, level: int, around: Around, *, narrows: bool) -> Iterator[list[Part]]:
        margin, inside = INDENT * level, replace(around, narrowed=around.narrowed or narrows)
        close = said(f"{margin}}}")
        condition: Key = ("narrowing" if narrows else "logic", around)
        block: Key = ("block", level + 1, True, False, inside)
        yield [said(f"{margin}while ("), condition, said(") {"), _BREAK, block, close, _BREAK]
        name = self.expressions.parameter
        if narrows or around.parameter is not None or name is None:
            return
        for item in self._items():
            within: Key = ("block", level + 1, True, False, replace(around, parameter=item))
            head = said(f"{margin}for (const {name} of ")
            yield [head, ("rooted", Listed(item), around), said(") {"), _BREAK, within, close, _BREAK]

    def _items(self) -> list[Kind]:
        """What arrays in scope hold."""
        kinds: list[Kind] = [*self.scope.names.values(), *(each.result for each in self.scope.functions.values())]
        for shape in self.scope.types.shapes.values():
            kinds += [*shape.attributes.values(), *(each.result for each in shape.methods.values())]
        return list(dict.fromkeys(kind.item for kind in kinds if isinstance(kind, Listed)))

    def _calls(self, kind: Kind, around: Around) -> Iterator[list[Part]]:
        """What is called on a value and stands alone, perhaps behind attributes."""
        attributes, methods = self.scope.types.members(kind)
        for name, of in attributes.items():
            yield [said(f".{name}"), ("call", of, around)]
        for name, signature in methods.items():
            yield [said(f".{name}("), ("arguments", signature, around), said(")")]
        if isinstance(kind, Listed):
            yield [said(".push("), ("any", kind.item, around), said(")")]
            yield [said("["), ("any", Primitive.NUMBER, around), said("]"), ("call", kind.item, around)]

    def _targets(self, kind: Kind, narrows: bool, around: Around) -> Iterator[list[Part]]:
        """Members behind a value, with what is assigned to them: a union of texts where that narrows, else another."""
        if isinstance(kind, Named):
            shape = self.scope.types.shapes[kind.name]
            for name, of in shape.attributes.items():
                yield [said(f".{name}"), ("target", of, narrows, around)]
                if name not in shape.readonly and isinstance(of, Literals) is narrows:
                    yield from ([said(f".{name}"), *option] for option in _assigned(of, around))
        if isinstance(kind, Listed):
            at: list[Part] = [said("["), ("any", Primitive.NUMBER, around), said("]")]
            yield [*at, ("target", kind.item, narrows, around)]
            if isinstance(kind.item, Literals) is narrows:
                yield from ([*at, *option] for option in _assigned(kind.item, around))


def _assigned(kind: Kind, around: Around) -> Options:
    found: Options = [[said(" = "), ("any", kind, around)]]
    signs = ARITHMETIC if kind is Primitive.NUMBER else (" + ",) if kind is Primitive.STRING else ()
    for sign in signs:
        found.append([said(f"{sign.rstrip()}= "), ("any", kind, around)])
    return found
