"""TypeScript expressions of a type over what is declared, as a context-free grammar: no text of it fails to type-check.

After Mündler et al. 2025, *Type-Constrained Code Generation with Language Models*, arXiv 2504.09246, whose automaton
asks after each character whether an expression of the goal's type can still come of the text.  As in
`guided.grammar.typed_python`, the scope is known beforehand, so the well-typed expressions are a context-free language:
a rule for each type wanted, and one for each pair of a type at hand and a type wanted.

A comparison with a literal narrows the type of what is compared, and another one behind it may then be refused
(``n === 0 && n === 1``).  So there is at most one in an expression, and rules know whether it may still come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from guided.errors import UnsatisfiableError
from guided.grammar.ir import Grammar
from guided.grammar.keyed_rules import Key, Options, Part, Written, grammar_from, said
from guided.grammar.typed_typescript.declarations import Scope, read_scope
from guided.grammar.typed_typescript.kinds import Kind, Listed, Literals, Named, Primitive, Shape, Signature, shown

__all__ = ["Around", "Expressions", "typescript_expression"]

N, S, B = Primitive.NUMBER, Primitive.STRING, Primitive.BOOLEAN

NUMBER = Written('("0" | [1-9] [0-9]*) ("." [0-9]+)?')
TEXT = Written('"\\"" [a-zA-Z0-9 _.,:;!?-]* "\\""')
TEMPLATE_TEXT = Written("[a-zA-Z0-9 _.,:;!?-]")
TRUTH = Written('("true" | "false")')

ARITHMETIC = (" + ", " - ", " * ", " / ", " % ")
COMPARISONS = (" < ", " <= ", " > ", " >= ")
EQUALITIES = (" === ", " !== ")
CONNECTIVES = (" && ", " || ")

PARAMETERS = ("item", "each", "it", "value")
"""Names of the parameter of a function that is written out; the first that the scope does not have is taken."""


@dataclass(frozen=True)
class Exactly:
    """A type wanted, and none that is only taken for it."""

    kind: Kind


Wanted = Kind | Exactly


@dataclass(frozen=True)
class Around:
    """What an expression stands in."""

    narrowed: bool = False
    """May a comparison with a literal have narrowed a type?  Then no other comes."""
    parameter: Kind | None = None
    """The type of the parameter of the function that is being written out."""


def typescript_expression(goal: str, declarations: str) -> Grammar:
    """The expressions that may be assigned to a variable of the type ``goal``, under ``strict``.

    ``declarations`` is a text of TypeScript: ``declare const``, ``let`` and ``var`` with their types, ``declare
    function``, interfaces, type aliases and classes.  Types are ``number``, ``string``, ``boolean``, unions of string
    literals, arrays of these, and declared object types, compared by their members as TypeScript compares them; members
    of other types are left out, and optional ones are written but not read.  Of TypeScript's syntax there are names,
    literals of all these, templates, attributes, calls, ``new``, indices, arithmetic, comparisons, ``&&``, ``||``,
    ``!``, conditional expressions, parentheses, and ``map``, ``filter``, ``some`` and ``every`` with a function that is
    written out; with one space around operators and after commas and none elsewhere.

    Raises `GrammarError` for what is no TypeScript, `UnsupportedError` for declarations and goals of other types, with
    line and column, `UnsatisfiableError` where no expression has the type.  Needs the extra ``typescript``.

    >>> typescript_expression("number", "declare const n: number; declare const title: string;")
    <Grammar 'root': 168 rules, lexing none>
    """
    scope, kind = read_scope(declarations, goal)
    expressions = Expressions(scope)
    found = grammar_from(("any", kind, Around()), expressions.options)
    if found is None:
        raise UnsatisfiableError(
            f"no expression over these names has the type {shown(kind)}", remedy="Declare a name that leads to it."
        )
    return found


class Expressions:
    """The rules of a scope.  Keys are a word, a type, and what is around."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        taken = scope.names.keys() | scope.functions.keys() | scope.makers.keys()
        self.parameter = next((name for name in PARAMETERS if name not in taken), None)
        self._literals = sorted(set(_literals_of(scope)), key=shown)

    def options(self, key: Key) -> Options:
        """The alternatives of a rule."""
        match key:
            case ("any", kind, around):
                return [*self._plain(kind, around), *self._conditional(kind, around)]
            case ("body", kind, around):
                # What begins with a brace would be read as the function's statements.
                braced = [("members", kind.name, 0, False, around)] if isinstance(kind, Named) else None
                return [
                    [said("("), *option, said(")")] if option == braced else option
                    for option in self.options(("any", kind, around))
                ]
            case ("sum", kind, around):
                return [[("operand", kind, around), ("more", kind, around)]]
            case ("more", kind, around):
                return [[], *self._added(kind, around)]
            case ("firm", kind, around):
                added = [[("operand", kind, around), *option] for option in self._added(kind, around)]
                return [[("rooted", Exactly(kind), around), ("more", kind, around)], *added]
            case ("logic", around):
                return [[("truth", around), ("connected", around)]]
            case ("connected", around):
                found: Options = [[]]
                found += [[said(word), ("truth", around), key] for word in CONNECTIVES]
                return found
            case ("narrowing", around):
                found = [[("compared", around), ("connected", replace(around, narrowed=True))]]
                found += [[("truth", around), said(word), key] for word in CONNECTIVES]
                return found
            case ("compared", around):
                return list(self._compared(around))
            case ("truth", around):
                return self._truth(around)
            case ("operand", kind, around):
                return list(self._operands(kind, around))
            case ("rooted", wanted, around):
                return list(self._rooted(wanted, around))
            case ("tail", kind, wanted, around):
                return list(self._tails(kind, wanted, around))
            case ("arguments", signature, around):
                return _arguments(signature, around)
            case ("items", item, around):
                return [[said("]")], [said(", "), ("any", item, around), key]]
            case ("members", name, number, begun, around):
                return self._members(name, number, begun, around)
            case ("template", around):
                found = [[said("`")], [TEMPLATE_TEXT, key]]
                found += [[said("${"), ("any", kind, around), said("}"), key] for kind in (S, N)]
                return found
        raise AssertionError(key)

    def _plain(self, kind: Kind, around: Around) -> Options:
        """What is no conditional expression."""
        match kind:
            case Primitive.NUMBER | Primitive.STRING:
                return [[("sum", kind, around)]]
            case Primitive.BOOLEAN:
                found: Options = [[("logic", around)]]
                return found if around.narrowed else [*found, [("narrowing", around)]]
            case Listed(item):
                found = [[said("[]")], [said("["), ("any", item, around), ("items", item, around)]]
                return [[("operand", kind, around)], *found]
            case Named(name) if _is_written_out(self.scope.types.shapes[name]):
                return [[("operand", kind, around)], [("members", name, 0, False, around)]]
        return [[("operand", kind, around)]]

    def _conditional(self, kind: Kind, around: Around) -> Options:
        behind = replace(around, narrowed=True)
        ways: list[tuple[str, Around]] = [("logic", around)]
        if not around.narrowed:
            ways.append(("narrowing", behind))
        return [
            [(what, around), said(" ? "), ("any", kind, inside), said(" : "), ("any", kind, inside)]
            for what, inside in ways
        ]

    def _added(self, kind: Kind, around: Around) -> Options:
        """What is added to an operand, with what follows; numbers are added to a text, too."""
        rest: Part = ("more", kind, around)
        if kind is S:
            return [[said(" + "), ("operand", each, around), rest] for each in (S, N)]
        return [[said(sign), ("operand", kind, around), rest] for sign in ARITHMETIC]

    def _truth(self, around: Around) -> Options:
        found: Options = [[said("!"), ("operand", B, around)], [("operand", B, around)]]
        for kind in (N, S):
            found += [[("sum", kind, around), said(sign), ("sum", kind, around)] for sign in COMPARISONS]
            found += [[("firm", kind, around), said(sign), ("firm", kind, around)] for sign in EQUALITIES]
        return found

    def _compared(self, around: Around) -> Iterator[list[Part]]:
        """Comparisons with a literal, which narrow."""
        for sign in EQUALITIES:
            yield [("rooted", Exactly(N), around), said(sign), NUMBER]
            yield [("rooted", Exactly(S), around), said(sign), TEXT]
            for kind in self._literals:
                # Of a type of one text nothing would be left behind !==.
                if len(kind.texts) > 1:
                    yield [("rooted", Exactly(kind), around), said(sign), _one_of(kind)]

    def _operands(self, kind: Kind, around: Around) -> Iterator[list[Part]]:
        """What may stand between operators."""
        yield [said("("), ("any", kind, replace(around, narrowed=True)), said(")")]
        match kind:
            case Primitive.NUMBER:
                yield [NUMBER]
            case Primitive.STRING:
                yield [TEXT]
                yield [said("`"), ("template", around)]
            case Primitive.BOOLEAN:
                yield [TRUTH]
            case Literals():
                yield [_one_of(kind)]
        yield [("rooted", kind, around)]

    def _rooted(self, wanted: Wanted, around: Around) -> Iterator[list[Part]]:
        """What begins with a name, or is a member of a text."""
        for name, kind in self.scope.names.items():
            yield [said(name), ("tail", kind, wanted, around)]
        if around.parameter is not None and self.parameter is not None:
            yield [said(self.parameter), ("tail", around.parameter, wanted, around)]
        for name, signature in self.scope.functions.items():
            yield from self._called(name, signature, wanted, around)
        for name, signature in self.scope.makers.items():
            yield from self._called(f"new {name}", signature, wanted, around)
        yield from ([TEXT, *option] for option in self._tails(S, wanted, around) if option)

    def _called(self, name: str, of: Signature, wanted: Wanted, around: Around) -> Iterator[list[Part]]:
        if of.result is not Primitive.VOID:
            yield [said(f"{name}("), ("arguments", of, around), said(")"), ("tail", of.result, wanted, around)]

    def _tails(self, kind: Kind, wanted: Wanted, around: Around) -> Iterator[list[Part]]:
        """What may follow where a type is at hand and another wanted."""
        if self._fits(kind, wanted):
            yield []
        attributes, methods = self.scope.types.members(kind)
        for name, of in attributes.items():
            yield [said(f".{name}"), ("tail", of, wanted, around)]
        for name, signature in methods.items():
            yield from self._called(f".{name}", signature, wanted, around)
        item = kind.item if isinstance(kind, Listed) else S if kind is S or isinstance(kind, Literals) else None
        if item is not None:
            yield [said("["), ("any", N, around), said("]"), ("tail", item, wanted, around)]
        if isinstance(kind, Listed) and around.parameter is None and self.parameter is not None:
            yield from self._written_out(kind, wanted, around, self.parameter)

    def _written_out(self, kind: Listed, wanted: Wanted, around: Around, parameter: str) -> Iterator[list[Part]]:
        """Methods of an array that take a function."""
        # A function that narrows its parameter narrows the items of what `filter` returns.
        inside = Around(narrowed=True, parameter=kind.item)
        begin = f"({parameter} => "
        for name in ("some", "every"):
            yield [said(f".{name}{begin}"), ("logic", inside), said(")"), ("tail", B, wanted, around)]
        filtered: list[Part] = [said(f".filter{begin}"), ("logic", inside), said(")")]
        if not isinstance(kind.item, Literals) and kind.item is not B:
            yield [*filtered, ("tail", kind, wanted, around)]
        elif self._fits(kind, wanted):
            yield filtered
        # What `map` returns is inferred from where it stands.
        if isinstance(wanted, Listed):
            yield [said(f".map{begin}"), ("body", wanted.item, inside), said(")")]

    def _fits(self, kind: Kind, wanted: Wanted) -> bool:
        return kind == wanted.kind if isinstance(wanted, Exactly) else self.scope.types.assignable(kind, wanted)

    def _members(self, name: str, number: int, begun: bool, around: Around) -> Options:
        """The members of an object from one on, in the order in which they are declared."""
        shape = self.scope.types.shapes[name]
        members = [*shape.attributes.items(), *shape.optional.items()]
        if number == len(members):
            return [[said(" }" if begun else "{}")]]
        label, kind = members[number]
        sign = ", " if begun else "{ "
        written: list[Part] = [
            said(f"{sign}{label}: "), ("any", kind, around), ("members", name, number + 1, True, around),
        ]  # fmt: skip
        left: Options = [[("members", name, number + 1, begun, around)]] if label in shape.optional else []
        return [written, *left]


def _arguments(signature: Signature, around: Around) -> Options:
    found: Options = []
    for size in range(signature.required, len(signature.parameters) + 1):
        option: list[Part] = []
        for number, kind in enumerate(signature.parameters[:size]):
            option += [*([said(", ")] if number else []), ("any", kind, around)]
        found.append(option)
    return found


def _one_of(kind: Literals) -> Written:
    return Written(f"({' | '.join(_quoted(text) for text in kind.texts)})")


def _quoted(text: str) -> str:
    return f'"\\"{text}\\""'


def _is_written_out(shape: Shape) -> bool:
    """May an object of this type be written as a literal?"""
    return shape.is_whole and not shape.methods and not shape.is_class


def _literals_of(scope: Scope) -> Iterator[Literals]:
    """The unions of texts that some name, member or result has."""
    signatures = [*scope.functions.values()]
    kinds = [*scope.names.values()]
    for shape in scope.types.shapes.values():
        kinds += [*shape.attributes.values(), *shape.optional.values()]
        signatures += shape.methods.values()
    for kind in [*kinds, *(signature.result for signature in signatures)]:
        while isinstance(kind, Listed):
            kind = kind.item
        if isinstance(kind, Literals):
            yield kind
