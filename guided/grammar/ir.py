"""The one intermediate representation of every front end: context-free rules over regular terminals, no tokens.

A `Grammar` is what `guided.regex`, `guided.json_schema`, `guided.lark`, `guided.gbnf` and `guided.choice` return and
what `guided.compile` takes.  Terminals are regular languages over bytes (`guided.grammar.regular`); rule bodies are
trees of the small node types below.  How terminals are cut out of the text is the grammar's `lexing`:

* ``NONE``: the language is that of the context-free grammar over bytes; no longest match, every split counts.
* ``DYNAMIC``: every terminal takes its own preferred match only (Lark's Earley parser with the dynamic lexer).
* ``CONTEXTUAL``: one preferred match among the terminals that the LALR state allows (Lark's contextual lexer).

This file holds data only: all of it is frozen, and nothing is made by looking at a field.  What is made on demand
stands behind a protocol: the rules themselves (`RuleProvider`), the members of a record (`MemberSource`), and the
expression of a terminal that knows how its language is built (its ``language()``).  `guided.automata` lowers the IR to
flat tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from guided.collection import untrack
from guided.grammar.ranged import Ranges
from guided.grammar.regular.any_text import text_excluding
from guided.grammar.regular.expr import Expr, concat, json_string, literal, words
from guided.grammar.shown import grammar_html

if TYPE_CHECKING:
    from guided.grammar.attributed.language import AttributedLanguage
    from guided.grammar.lexing import Indentation, LalrTables, LexerTerminal


class Lexing(Enum):
    """How terminals are cut out of the text."""

    NONE = "none"
    DYNAMIC = "dynamic"
    CONTEXTUAL = "contextual"


class _Node:
    """Nodes are made bottom up, so they are in no cycle, and grammars are kept: nothing for the collector to find.

    They are compared by identity: equal parts of a grammar are one node where a front end makes them so.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        untrack(self)


@dataclass(frozen=True, slots=True, eq=False)
class Terminal(_Node):
    """A regular language over bytes; ``label`` names it in explanations, in the grammar's own words.

    With `Lexing.DYNAMIC`, ``lexer`` is the terminal's index in `Grammar.terminals` and ``expr`` is not used.
    """

    expr: Expr
    label: str = ""
    lexer: int | None = None

    def language(self) -> Expr:
        """As every terminal says it."""
        return self.expr


@dataclass(frozen=True, slots=True, eq=False)
class ListedTerminal(_Node):
    """JSON strings with one of several texts, in every spelling or in the canonical one (see `json_string`).

    Engines take the texts as they are.
    """

    texts: tuple[bytes, ...]
    """Pieces of UTF-8, one at least, sorted and none twice."""
    place: str
    """What the label says behind the first texts."""
    canonical: bool

    def __post_init__(self) -> None:
        untrack(self)
        untrack(self.texts)

    @property
    def label(self) -> str:
        """The first texts, and where they are listed."""
        first = ", ".join([shown(text.decode()) for text in self.texts[:4]])
        return f"{first}{', ...' if len(self.texts) > 4 else ''}{self.place}"

    def language(self) -> Expr:
        """The same strings as an expression, made anew for each call."""
        return concat(literal(b'"'), json_string(words(self.texts), canonical=self.canonical))


@dataclass(frozen=True, slots=True, eq=False)
class RangedTerminal(_Node):
    """Numbers between bounds, which must not be an empty language; engines take the digits of the bounds."""

    ranges: Ranges
    language: Callable[[], Expr]
    """Makes the same numbers as an expression; gives equal ones whenever it is called."""
    label: str


AnyTerminal: TypeAlias = Terminal | ListedTerminal | RangedTerminal


def shown(name: str) -> str:
    """A name or text in a label, the end of a long one left out."""
    return f'"{name}"' if len(name) <= 40 else f'"{name[:37]}..."'


@dataclass(frozen=True, slots=True, eq=False)
class Reference(_Node):
    """The rule with this index in `Grammar.rules`; rules may refer to each other freely, also to themselves."""

    rule: int


@dataclass(frozen=True, slots=True, eq=False)
class Sequence(_Node):
    """The parts one after another; no parts: the empty string."""

    parts: tuple[Body, ...]

    def __post_init__(self) -> None:
        untrack(self)
        untrack(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(_Node):
    """Any one of the options; no options: the empty language."""

    options: tuple[Body, ...]

    def __post_init__(self) -> None:
        untrack(self)
        untrack(self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Repetition(_Node):
    """``low`` to ``high`` (None: no bound) copies of ``body``, with ``separator`` between neighbours.

    Counts are not unrolled: a bound of a million costs what the generated text visits.
    """

    body: Body
    low: int = 0
    high: int | None = None
    separator: Body | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Member(_Node):
    """A member of `Members`: its key, what follows the key (separator and value), must it be there?

    ``meets`` is for extras: the bit set of those goals of the record that such a member meets.
    """

    key: Terminal
    value: Body
    required: bool = False
    meets: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Members(_Node):
    """The members of a record, without its brackets: each declared one at most once, ``extras`` any number of times.

    ``ordered``: declared members come in the given order (extras anywhere between); otherwise in every order.
    ``low`` and ``high`` bound the number of members of both sorts together.  The keys of distinct members and extras
    must be disjoint languages.  An extra's ``required`` is ignored.  The text may be empty when nothing is required.
    """

    declared: tuple[Member, ...]
    extras: tuple[Member, ...]
    separator: Body
    ordered: bool = True
    low: int = 0
    high: int | None = None
    goals: int = 0

    def __post_init__(self) -> None:
        for item in (self, self.declared, self.extras):
            untrack(item)


class MemberSource(Protocol):
    """Makes members one by one, by their index; gives equal parts whenever it is asked."""

    def key(self, index: int) -> Terminal:
        """The key."""
        ...

    def value(self, index: int) -> Body:
        """What stands behind the `DeferredMembers.lead` in the value."""
        ...

    def at_hand(self, first: int, stop: int) -> list[Body | None]:
        """Values that are made already: terminals, references and choices of both; None for others."""
        ...

    def is_soon_made(self, index: int) -> bool:
        """May another value be asked for before a text comes to it?"""
        ...

    def placed(self, index: int, terminal: AnyTerminal) -> AnyTerminal:
        """Such a value that is a terminal with the place in its label, where that is not there already."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DeferredMembers(_Node):
    """Members in their order, with no bounds on their number, whose values ``source`` makes when it is asked.

    Each value is ``lead``, what the source gives, and ``trail``.  Most members of a record are never written.
    """

    names: tuple[bytes | None, ...]
    """For each declared member the text of which its key is every spelling as a JSON string, or the canonical one;
    None for another key."""
    canonical: bool
    required: tuple[bool, ...]
    source: MemberSource
    lead: Terminal
    """What every value begins with."""
    trail: Terminal | None
    """What stands behind each."""
    others: tuple[tuple[Terminal, int], ...]
    """The key of each sort of extra, and the rule that its value is."""
    separator: Terminal
    besides: tuple[bytes, ...] = ()
    """Texts that the others' key is not, where that is every other text: its terminal says nothing of these."""

    def __post_init__(self) -> None:
        for item in (self, self.names, self.required, self.others, *self.others, self.besides):
            untrack(item)

    def written(self) -> Members:
        """The same members, all of them made, anew for each call."""
        declared = []
        trail = () if self.trail is None else (self.trail,)
        for index, required in enumerate(self.required):
            value = self.source.value(index)
            if isinstance(value, AnyTerminal):
                value = self.source.placed(index, value)
            declared.append(Member(self.source.key(index), Sequence((self.lead, value, *trail)), required))
        keys = [key for key, _ in self.others]
        if self.besides:
            others = json_string(text_excluding(self.besides), canonical=self.canonical)
            keys = [Terminal(concat(literal(b'"'), others), keys[0].label)]
        extras = [Member(key, Reference(rule)) for key, (_, rule) in zip(keys, self.others, strict=True)]
        return Members(tuple(declared), tuple(extras), self.separator)


Body: TypeAlias = AnyTerminal | Reference | Sequence | Choice | Repetition | Members | DeferredMembers


class Mark(Enum):
    """What a rule means for the checker that runs beside the automaton (`guided.constraint.machines`).

    The first four are rules that begin with the opening bracket and end *before* the closing one, which must follow
    the reference; then an open container is always a return into its caller, and the depth of a text can be counted.
    A grammar in which some array is `DISTINCT` or `REPEATING` marks every object and array, others mark none.
    """

    OBJECT = "object"
    """An object, from its opening brace to before the closing one."""
    ARRAY = "array"
    """An array, from its opening bracket to before the closing one."""
    DISTINCT = "array of distinct items"
    """The same; no two items may be equal JSON values (``uniqueItems``)."""
    REPEATING = "array in which two items are equal"
    """The same; some two items must be equal JSON values (negated ``uniqueItems``)."""
    UNDECLARED = "what follows an undeclared name"
    """From behind the name of a member whose name the automaton does not count: the checker sees that it is new.

    Stands directly behind the name's terminal, as the value of an extra of `Members` or as the next part of a sequence.
    """
    PATTERN = "pattern"
    """A JSON string whose text is a pattern of ECMA-262: the automaton knows how it is built, the checker the rest.

    Only says that there is such a string; the checker knows it by its lexer states.
    """
    HOST_NAME = "host name"
    """The same for internationalized host names."""
    LIMITED = "text of so many tokens at most"
    """Only says that some terminal of the rule is such (`guided.grammar.limited.terminals`), in none of the first four.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Rule(_Node):
    """A named rule; the name appears in errors and explanations (a JSON pointer, a rule name)."""

    name: str
    body: Body
    mark: Mark | None = None


class RuleProvider(Protocol):
    """The rules of a grammar by their numbers, from 0; a rule may be made when it is asked for.

    A tuple of rules is one; `guided.grammar.rules.RulesOnDemand` makes them.  Whoever needs every rule says so by
    `guided.grammar.rules.every_rule`.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, rule: int, /) -> Rule:
        """The rule; equal ones whenever it is asked for."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """Rules that many grammars have, from rule 1 on, and that mention none but each other: lowered once for all.

    They derive no empty text and nothing else than what `Prepared` vouches for.
    """

    rules: tuple[Rule, ...]
    rank: tuple[int, ...]

    @property
    def marks(self) -> dict[int, Mark]:
        """Those of the rules, by their numbers."""
        return {number: rule.mark for number, rule in enumerate(self.rules, 1) if rule.mark is not None}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a front end knows of all its rules, so that compiling need not look at bodies that no text comes to.

    It vouches for more than the fields say: every part of every rule derives some text, no rule begins with itself, and
    what lowering shares (values of members that are counted or in free order, values of extras, separators of members,
    bodies counted beyond three) is a terminal or a reference.
    """

    nullable: frozenset[int]
    """The rules that derive the empty text."""
    rank: tuple[int, ...]
    """Per rule a number that is less than those of all other rules with which a text of the rule may begin."""
    forces_several: bool
    """May shortest texts hold several undeclared names of one object, or several items of an array of distinct ones?"""
    marks: Mapping[int, Mark]
    """The rules that have a mark."""
    names: tuple[Expr, ...]
    """The languages of undeclared names, as texts, but for such as hold all texts except finitely many."""
    common: Common | None = None
    """Rules of this grammar that others have too."""
    patterns: tuple[Expr, ...] = ()
    """Terminals that are expensive to visit first (`guided.grammar.regular.expensive`), the nearest first."""
    met_whole: tuple[Expr, ...] = ()
    """Terminals with hundreds of states of which the first mask there asks for most."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """A language, known to no tokenizer; immutable, picklable through its source.

    ``rules[start]`` is where texts begin.  ``rebuild`` is the public function and arguments that made this grammar:
    pickling stores those, and equal sources give equal ``key`` so that compiling the same thing twice is a look-up.
    ``terminals``, ``ignore`` and ``tables`` are for the two lexing modes only (see `guided.grammar.lexing`).

    >>> import guided, pickle
    >>> grammar = guided.json_schema({"type": "integer"})
    >>> pickle.loads(pickle.dumps(grammar)).key == grammar.key
    True
    """

    rules: RuleProvider
    start: int
    lexing: Lexing = Lexing.NONE
    terminals: tuple[LexerTerminal, ...] = ()
    ignore: tuple[int, ...] = ()
    tables: LalrTables | None = None
    indentation: Indentation | None = None
    """Of a grammar of marks: what reads the texts that it stands for."""
    language: Callable[[], AttributedLanguage] | None = field(default=None, repr=False)
    """Makes the language of an L-attributed grammar, which has no rules here; each constraint has one of its own."""
    rebuild: tuple[Callable[..., Grammar], tuple[Any, ...], Mapping[str, Any]] | None = field(default=None, repr=False)
    key: str | None = None
    """A content hash of the source, or None when there is none; equal keys mean equal languages."""
    notes: tuple[str, ...] = ()
    """What the user should know about how the source was read (annotations ignored, options in force)."""
    special_tokens: tuple[str, ...] = ()
    """The special tokens that the rules name, sorted; in a terminal each is `special_bytes` of its name."""
    holds_sentinel: bool = False
    """May texts hold the byte 0xFF other than around the name of a special token?  UTF-8 never does."""
    named: object = field(default=None, repr=False)
    """The rules as their notation has them, where it names parts of texts: see `guided.grammar.named.named_rules`."""
    prepared: Prepared | None = field(default=None, repr=False)
    """What is known of the rules without looking at them, or None where that is still to be found out."""

    def __reduce__(self) -> tuple[Any, ...]:
        if self.rebuild is None:
            raise TypeError("this grammar was built by hand; set `rebuild` to make it picklable")
        function, arguments, keywords = self.rebuild
        return (_call, (function, arguments, dict(keywords)))

    def _repr_html_(self) -> str:
        return grammar_html(self)

    def __repr__(self) -> str:
        if self.language is not None:
            return "<Grammar: L-attributed>"
        name = self.rules[self.start].name if self.rules else "lalr"
        return f"<Grammar {name!r}: {len(self.rules)} rules, lexing {self.lexing.value}>"


def _call(function: Callable[..., Grammar], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Grammar:
    return function(*arguments, **keywords)
