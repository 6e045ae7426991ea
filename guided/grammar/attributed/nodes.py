"""What an L-attributed grammar is made of: terminals, the usual combinations, and actions on the value that is carried.

A text is read from left to right with one value, the *attribute*: immutable, hashable, and equal ones have equal
futures.  An `Action` replaces it, or says that no text goes on so; a `Name` asks it which words may stand here.  A
grammar must not begin a rule with the rule itself (no left recursion), and an item of `Star` reads at least one
terminal.

The price of a node is the least number of bytes of the texts that it stands for, whatever the attribute says.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.words import Words

__all__ = [
    "Action", "Choice", "Keyword", "Literal", "LiteralForm", "LiteralKind", "Name", "NameKind", "Names", "Node",
    "Prices", "Rule", "Seq", "Sign", "Spelled", "Star", "Terminal", "choice", "is_exact", "listed", "maybe", "seq",
    "words",
]  # fmt: skip

UNKNOWN = 1 << 20
"""The price of a rule that is still being found: more than any text that a grammar is ended with."""


class Node:
    """A part of a grammar; parts are told apart by identity."""

    __slots__ = ()


class Terminal(Node):
    """What one lexeme is."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Keyword(Terminal):
    """A word, in any letter case."""

    word: str
    """In lower case."""


@dataclass(frozen=True, eq=False, slots=True)
class Sign(Terminal):
    """An operator or a mark of punctuation."""

    text: str


@dataclass(frozen=True, slots=True)
class Names:
    """Which names may stand somewhere: those of ``words`` and, if ``free``, any other identifier."""

    words: Words
    free: bool = False
    apart: frozenset[str] = frozenset()
    """Free names that `NameKind.after` does not treat as it treats others, such as those that it refuses."""


class NameKind(Protocol):
    """Names of one kind: which may stand at a place, and what they change."""

    label: str
    price: int
    """The most bytes that a suggested name has, but for those that the attribute owes."""

    def allowed(self, attribute: Any) -> Names:
        """The names that may come, folded; a free one may still be refused by `after`."""
        ...

    def after(self, attribute: Any, name: str) -> Any | None:
        """The attribute behind a folded name, None where it may not stand."""
        ...

    def suggested(self, attribute: Any) -> Iterable[str]:
        """The names that a text which ends soon may have here, folded, best first."""
        ...


class Spelled(Enum):
    """How a name may be written."""

    ANY = "as a word or in quotes"
    WORD = "as a word"
    STRING = "in quotes in which a string may stand as well"


@dataclass(frozen=True, eq=False, slots=True)
class Name(Terminal):
    """An identifier of some kind."""

    kind: NameKind
    spelled: Spelled = Spelled.ANY
    is_exact: bool = False
    """Is its letter case part of the name, though the lexis folds others (`Lexis.keeps_case`)?"""


def is_exact(terminal: Terminal | None) -> bool:
    """Is it a name whose letter case matters?"""
    return isinstance(terminal, Name) and terminal.is_exact


class LiteralKind(Protocol):
    """Literals of one kind: which may stand at a place, and what they change."""

    label: str
    shortest: str
    """The shortest, as it is written."""

    def allowed(self, attribute: Any) -> Words | Spellings | None:
        """The values that may come, None for any."""
        ...

    @property
    def after(self) -> Callable[..., Any]:
        """Gives the attribute behind a literal, from that before it and, where the node hears it, the text."""
        ...


class LiteralForm(Enum):
    """Kinds of lexemes that are literals."""

    NUMBER = "number"
    STRING = "string"


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Terminal):
    """A number or a string."""

    form: LiteralForm
    kind: LiteralKind
    gives_way: bool = False
    """Is it only what others, which are held to some texts, do not take?"""
    hears: bool = False
    """Does its kind's `after` take the text as well?"""
    keeps: Callable[[Any], bool] | None = None
    """Says of an attribute that the text is heard also where any string may stand, if it is not long.

    Which texts may come right behind it must not depend on it.
    """

    def after(self, attribute: Any, text: str) -> Any:
        """The attribute behind a literal."""
        return self.kind.after(attribute, text) if self.hears else self.kind.after(attribute)


@dataclass(frozen=True, eq=False, slots=True)
class Seq(Node):
    """One after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Choice(Node):
    """Any of these; ``preferred`` says which of them a text that ends soon takes, -1 for the cheapest."""

    options: tuple[Node, ...]
    preferred: Callable[[Any], int] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Star(Node):
    """Any number of these.

    ``wanted`` says of an attribute that a text which ends soon has one more, and ``of_use`` that one more may end it.
    """

    item: Node
    wanted: Callable[[Any], bool] | None = None
    of_use: Callable[[Any], bool] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Action(Node):
    """Replace the attribute; None says that no text goes on so."""

    change: Callable[[Any], Any | None]
    spare: str = ""
    """As much as what follows may take more than its own price, for what only the attribute behind will demand."""


@dataclass(eq=False, slots=True)
class Rule(Node):
    """A named node that may hold itself; ``body`` is set once, when the grammar is made."""

    name: str
    body: Node | None = field(default=None, repr=False)


def seq(*parts: Node) -> Node:
    """One after another."""
    return parts[0] if len(parts) == 1 else Seq(parts)


def choice(*options: Node) -> Node:
    """Any of these."""
    return options[0] if len(options) == 1 else Choice(options)


def maybe(*parts: Node) -> Node:
    """These or nothing."""
    return Choice((Seq(()), seq(*parts)))


def listed(item: Node, separator: Node) -> Node:
    """One item or more."""
    return Seq((item, Star(Seq((separator, item)))))


def words(text: str) -> Node:
    """Keywords in a row.

    >>> [keyword.word for keyword in words("ORDER BY").parts]
    ['order', 'by']
    """
    return seq(*(Keyword(word.lower()) for word in text.split()))


class Prices:
    """The least bytes of nodes, by node; each lexeme counts with a space before it."""

    def __init__(self) -> None:
        self._known: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        """The price of a node: a fixpoint over all that it leads to, from above."""
        if node not in self._known:
            # Prices that are known are final: only parts that are new are looked at.
            reached = _reached(node, self._known)
            self._known.update((part, UNKNOWN) for part in reached)
            changed = True
            while changed:
                changed = False
                for part in reversed(reached):
                    price = self._price(part)
                    if price < self._known[part]:
                        self._known[part] = price
                        changed = True
        return self._known[node]

    def _price(self, node: Node) -> int:
        match node:
            case Keyword(word):
                return len(word) + 1
            case Sign(text):
                return len(text) + 1
            case Name(kind=kind):
                return kind.price + 1
            case Literal(kind=kind):
                return len(kind.shortest) + 1
            case Seq(parts):
                return min(UNKNOWN, sum(self._known[part] for part in parts))
            case Choice(options=options):
                return min(self._known[option] for option in options)
            case Rule(body=body):
                assert body is not None
                return self._known[body]
            case Action(spare=spare):
                return len(spare)
        return 0


def _reached(node: Node, known: Container[Node]) -> list[Node]:
    """A node and all that it leads to but what is known, each once."""
    found = {node: None}
    work = [node]
    while work:
        at = work.pop()
        below: tuple[Node, ...] = ()
        match at:
            case Seq(below) | Choice(options=below):
                pass
            case Star(item=item):
                below = (item,)
            case Rule(body=body):
                assert body is not None
                below = (body,)
        for part in below:
            if part not in found and part not in known:
                found[part] = None
                work.append(part)
    return list(found)
