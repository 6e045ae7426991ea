"""What is found from attributes, found again where all that was read of them is the same.

A `Watched` stands for an attribute while something is found: it notes what is read of it, in order.  What was found is
kept in a tree (`Memory`): a node says what is read next, a branch what came out of it.  So a later attribute takes its
way down the tree, and where it comes to an end that is what would be found, however much of it is another.

Attributes are `NamedTuple`s whose ``parent`` is such an attribute as well, or None.  What is read of a whole field is
often little: `asked` makes a question of a function, of which only the answer is noted, and `gathered` one of a
function of a field's items.  `grown` and `deferred` change fields without reading them.  A question about an attribute
that was changed is one about the attribute before, with the changes in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar, cast

__all__ = ["Log", "Memory", "Watched", "asked", "deferred", "gathered", "grown", "later", "watched"]

Fields = frozenset[str]
_PARENT = "parent"


class Question(NamedTuple):
    """What is read of an attribute: a field by its name, or the answer of a function."""

    root: int
    """The number of the attribute."""
    depth: int
    """How many attributes around it."""
    key: Hashable
    find: Callable[[Any], Any]


class Log:
    """What was read, in order and each once."""

    def __init__(self) -> None:
        self.answers: dict[tuple[Any, ...], tuple[Question, Any]] = {}

    def ask(self, question: Question, real: Any) -> Any:
        """The answer to a question about an attribute, which is noted."""
        key = question[:3]
        known = self.answers.get(key)
        if known is None:
            known = self.answers[key] = (question, question.find(real))
        return known[1]


class Later:
    """What a function makes of a watched attribute, which it has not read yet; ``fields`` are those that it will."""

    def __init__(self, attribute: Watched, make: Callable[..., Any], rest: tuple[Any, ...], fields: Fields) -> None:
        self.attribute = attribute
        self.make = make
        self.rest = rest
        self.fields = fields

    def answer(self, function: Callable[..., Any], *rest: Hashable) -> Any:
        """The answer of a function of it."""
        make, before, fields = self.make, self.rest, self.fields

        def find(real: Any) -> Any:
            return Later(real, make, before, fields).answer(function, *rest) if _is_watched(real) else direct(real)

        def direct(real: Any) -> Any:
            return function(make(real, *before), *rest)

        return self.attribute.ask((function, rest, make, before), find, direct, fields)


class Added(NamedTuple):
    """Items that were added to a field, each a value or `Later`."""

    items: tuple[Any, ...]


class Over(NamedTuple):
    """Changes of some fields: what they are told from others by, and what makes them of another attribute."""

    key: tuple[Any, ...]
    make: Callable[[Any], Any]


class Watched:
    """An attribute that is watched, or one that was made of it: fields that were read or replaced are its own."""

    def __init__(self, log: Log, root: int, depth: int, real: Any, kind: Any) -> None:
        self.__dict__ = {"_log": log, "_at": (root, depth), "_real": real, "_kind": kind, "_changes": {}}

    def __getattr__(self, name: str) -> Any:
        kind = self._kind
        if name not in kind._fields:
            found = kind.__dict__[name]
            if isinstance(found, property):
                assert found.fget is not None
                return found.fget(self)
            return MethodType(found, self) if isinstance(found, FunctionType) else found
        value = self.__dict__[name] = self._read(name)
        return value

    def _read(self, name: str) -> Any:
        change = self._changes.get(name)
        if change.__class__ is Later:
            return change.answer(_itself)
        root, depth = self._at
        if name == _PARENT:
            is_there = self._log.ask(Question(root, depth, _PARENT, _has_parent), self._real)
            return Watched(self._log, root, depth + 1, self._real.parent, self._kind) if is_there else None
        value = self._log.ask(Question(root, depth, name, attrgetter(name)), self._real)
        if change is not None:
            for item in change.items:
                value = _with(value, item.answer(_itself) if item.__class__ is Later else item)
        return value

    def ask(
        self, key: Hashable, find: Callable[[Any], Any], direct: Callable[[Any], Any], fields: Fields, spare: int = 0
    ) -> Any:
        """The answer of a function that reads these fields, to which at most ``spare`` items may have been added.

        ``find`` asks an attribute that may be watched itself, ``direct`` reads this one.
        """
        root, depth = self._at
        if self._changes:
            if fields <= self.__dict__.keys():
                return direct(self)
            over = self.over(fields, spare)
            if over is None:
                return direct(self)
            if over.key:
                make = over.make
                return self._log.ask(Question(root, depth, (key, over.key), lambda real: find(make(real))), self._real)
        return self._log.ask(Question(root, depth, key, find), self._real)

    def over(self, fields: Fields, spare: int = 0) -> Over | None:
        """What was made of some fields; None where it cannot be made of another attribute."""
        keys: list[Any] = []
        made: list[tuple[str, Any]] = []
        for name, change in self._changes.items():
            if name not in fields or (change.__class__ is Added and len(change.items) <= spare):
                continue
            found = _told(change)
            if name == _PARENT or found is None:
                return None
            keys.append((name, found.key))
            made.append((name, found.make))
        return Over(tuple(keys), lambda real: _made(real, made))

    def _replace(self, **values: Any) -> Watched:
        made = object.__new__(Watched)
        own = made.__dict__
        own.update(self.__dict__)
        own.update(values)
        own["_changes"] = {**self._changes, **{name: (value,) for name, value in values.items()}}
        return made

    def changed(self, changes: dict[str, Any]) -> Watched:
        """The attribute with fields that are read only if it must be."""
        made = object.__new__(Watched)
        own = made.__dict__
        own.update(self.__dict__)
        for name in changes:
            own.pop(name, None)
        own["_changes"] = {**self._changes, **changes}
        return made

    def with_item(self, name: str, item: Any) -> Watched:
        """The attribute with one more item in a field."""
        change = self._changes.get(name)
        if change is None or change.__class__ is Added:
            return self.changed({name: Added((*(change.items if change is not None else ()), item))})
        item = item.answer(_itself) if item.__class__ is Later else item
        return self._replace(**{name: _with(getattr(self, name), item)})


def _told(change: Any) -> Over | None:
    """What a change is told from others by, and what makes it: a function of the attribute, and of the field there."""
    if change.__class__ is Later:
        below = change.attribute.over(change.fields) if change.attribute._changes else Over((), _itself)
        if below is None:
            return None
        before, make, rest, fields = below.make, change.make, change.rest, change.fields

        def later_of(real: Any) -> Any:
            real = before(real)
            return Later(real, make, rest, fields) if _is_watched(real) else make(real, *rest)

        return Over((make, rest, below.key), later_of)
    if change.__class__ is Added:
        found = [_told(item if item.__class__ is Later else (item,)) for item in change.items]
        items = [one for one in found if one is not None]
        if len(items) < len(found):
            return None
        return Over(tuple(one.key for one in items), lambda real: Added(tuple(one.make(real) for one in items)))
    (value,) = change
    return None if _is_watched(value) else Over((value,), lambda real: value)


def _made(real: Any, changes: Sequence[tuple[str, Callable[[Any], Any]]]) -> Any:
    """An attribute with changes."""
    found = real
    values: dict[str, Any] = {}
    for name, make in changes:
        value = make(real)
        if value.__class__ is Added:
            for item in value.items:
                found = grown(found, name, item)
        elif value.__class__ is Later:
            found = found.changed({name: value})
        else:
            values[name] = value
    return found._replace(**values) if values else found


def _is_watched(value: Any) -> bool:
    return value.__class__ is Watched


def _has_parent(real: Any) -> bool:
    return real.parent is not None


def _itself(value: Any) -> Any:
    return value


def _with(value: Any, item: Any) -> Any:
    return (*value, item) if isinstance(value, tuple) else value | {item}


def watched(attributes: Sequence[Any], log: Log) -> list[Watched]:
    """Attributes to be watched."""
    return [Watched(log, root, 0, one, getattr(one, "_kind", type(one))) for root, one in enumerate(attributes)]


Attribute = TypeVar("Attribute")


def later(attribute: Any, fields: Fields, make: Callable[..., Any], *rest: Hashable) -> Any:
    """What a function makes of an attribute, which it reads no more of than these fields."""
    return Later(attribute, make, rest, fields) if _is_watched(attribute) else make(attribute, *rest)


def grown(attribute: Attribute, field: str, item: Any) -> Attribute:
    """The attribute with one more item in a tuple or set, which may be made `later`."""
    one: Any = attribute
    found: Attribute = (
        one.with_item(field, item)
        if _is_watched(attribute)
        else one._replace(**{field: _with(getattr(attribute, field), item)})
    )
    return found


def deferred(attribute: Attribute, **values: Any) -> Attribute:
    """The attribute with other values of some fields, each of which was made `later`."""
    one: Any = attribute
    found: Attribute = one.changed(values) if _is_watched(attribute) else one._replace(**values)
    return found


Answer = TypeVar("Answer", bound=Any)
Function = TypeVar("Function", bound=Callable[..., Any])


def asked(*fields: str, spare: int = 0) -> Callable[[Function], Function]:
    """Make a question of a function of an attribute that reads no more than these fields.

    Its other arguments can be hashed.  The answer holds with ``spare`` items more in each of the fields.
    """
    read = frozenset(fields)

    def decorate(function: Function) -> Function:
        @wraps(function)
        def ask(attribute: Any, *rest: Any) -> Any:
            if attribute.__class__ is not Watched:
                return function(attribute, *rest)

            def find(real: Any) -> Any:
                return ask(real, *rest)

            def direct(real: Any) -> Any:
                return function(real, *rest)

            return attribute.ask((function, rest), find, direct, read, spare)

        return cast(Function, ask)

    return decorate


def gathered(field: str, nothing: Answer) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Make a question of a function of the items of a field: all its answers, or-ed with each other."""

    def decorate(function: Callable[..., Answer]) -> Callable[..., Answer]:
        @asked(field)
        def of_all(attribute: Any, *rest: Any) -> Any:
            found = nothing
            for item in getattr(attribute, field):
                found = found | function(item, *rest)
            return found

        @wraps(function)
        def ask(attribute: Any, *rest: Any) -> Any:
            change = attribute._changes.get(field) if attribute.__class__ is Watched else None
            if change.__class__ is not Added:
                return of_all(attribute, *rest)
            found = of_all(attribute.changed({field: _NONE_ADDED}), *rest)
            for item in change.items:
                found = found | (item.answer(function, *rest) if item.__class__ is Later else function(item, *rest))
            return found

        return ask

    return decorate


_NONE_ADDED = Added(())


_TRIES = 4
"""Times that something may be watched and not found again."""
_KEYS = 1 << 15
"""Keys of which it is known whether they come again."""
_ANSWER = 512
"""Bytes of one question with its answer, about."""


class _Node:
    """What is read next, and what follows behind each answer."""

    __slots__ = ("behind", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.behind: dict[Any, Any] = {}


class Memory:
    """What was found, by a key and by what was read; forgotten all at once before it has more than ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._trees: dict[Hashable, Any] = {}
        self._use: dict[Hashable, int] = {}
        """How often each was found again, less the times that it was not."""
        self._most = most
        self._size = 0

    def recall(self, key: Hashable, attributes: Sequence[Any]) -> Any:
        """What was found with attributes that are the same as far as they were read; None without."""
        node = self._trees.get(key)
        if node is None:
            return None
        while node.__class__ is _Node:
            root, depth, _, find = node.question
            at = attributes[root]
            while depth:
                at = at.parent
                depth -= 1
            node = node.behind.get(find(at))
        if node is not None:
            self._use[key] = self._use.get(key, 0) + 1
        return node

    def is_worth(self, key: Hashable) -> bool:
        """Is what was not found again worth to be watched while it is found?

        Not at once, since much never comes again, and not where what is read is another time after time.
        """
        use = self._use.get(key)
        if use is None and len(self._use) >= _KEYS:
            self.clear()
        self._use[key] = (0 if use is None else use) - 1
        return use is not None and use > -_TRIES

    def remember(self, key: Hashable, log: Log, found: Any, size: int) -> None:
        """Keep what was found, which has so many bytes."""
        size += _ANSWER * (1 + len(log.answers))
        if self._size + size > self._most:
            self.clear()
        self._size += size
        behind: dict[Any, Any] = self._trees
        at: Any = key
        for question, answer in log.answers.values():
            node = behind.get(at)
            if node.__class__ is not _Node or node.question[:3] != question[:3]:
                node = behind[at] = _Node(question)
            behind, at = node.behind, answer
        behind[at] = found

    def clear(self) -> None:
        """Forget all."""
        self._trees.clear()
        self._use.clear()
        self._size = 0
