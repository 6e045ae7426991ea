"""The file of defaults: ``guided.toml``, or ``[tool.guided]`` in ``pyproject.toml``, in this folder or one above.

A file is read whole and every key of it checked, whichever command runs, so that a misspelt one is found at once.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.core import TyperOption

from guided.errors import GrammarError, GuidedError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Configuration", "ConfigurationChoice", "find_configuration", "read_configuration"]

OWN = "guided.toml"
SHARED = "pyproject.toml"
SHARED_TABLE = ("tool", "guided")

ON_THE_LINE = {"json", "help"}
"""Options that stay on the command line: errors are printed as ``--json`` says before any file is read."""


@dataclass(frozen=True)
class Configuration:
    """A file, and what it says."""

    path: Path
    text: str
    tables: Mapping[str, Any]
    inside: tuple[str, ...] = ()
    """The table of the file that is ours; none where all is."""

    def defaults(self, application: Any, context: Any) -> dict[str, Any]:
        """What ``default_map`` of a context takes, for the commands of an application.

        Raises `GrammarError` for what is no command, no option of any, or no value that an option takes; it names the
        file, the line and the key.
        """
        shared = {key: value for key, value in self.tables.items() if not isinstance(value, dict)}
        own = {key: value for key, value in self.tables.items() if isinstance(value, dict)}
        used: set[str] = set()
        made = self._below(application, context, own, shared, used, ())
        if unknown := next((key for key in shared if key not in used), None):
            every = {name for command in _commands(application) for name in _options(command)}
            raise self._unknown((unknown,), "no command has this option", every)
        return made

    def _below(
        self,
        group: Any,
        context: Any,
        given: Mapping[str, Any],
        shared: Mapping[str, Any],
        used: set[str],
        path: tuple[str, ...],
    ) -> dict[str, Any]:
        """Of the commands of a group, by name."""
        for name in given:
            if name not in group.commands:
                raise self._unknown((*path, name), "there is no such command", group.commands)
        made: dict[str, Any] = {}
        for name, command in group.commands.items():
            own, here = given.get(name, {}), (*path, name)
            if not isinstance(own, dict):
                raise self._unknown(here, "a command's options are a table", ())
            if hasattr(command, "commands"):
                made[name] = self._below(command, context, own, shared, used, here)
                continue
            options = _options(command)
            if unknown := next((key for key in own if key not in options), None):
                raise self._unknown((*here, unknown), f"guided {' '.join(here)} has no such option", options)
            used |= shared.keys() & options.keys()
            # What a table says of its command goes before what is said for all.
            told = [((key,), value) for key, value in shared.items() if key in options and key not in own]
            told += [((*here, key), value) for key, value in own.items()]
            made[name] = {options[at[-1]].name: self._value(options[at[-1]], value, context, at) for at, value in told}
        return made

    def _value(self, option: Any, value: Any, context: Any, at: tuple[str, ...]) -> Any:
        """As the command line would have it: texts, which the option reads itself, or true and false."""
        is_flag, several = bool(option.is_flag), bool(option.multiple)
        plain = value if several and isinstance(value, list) else [value]
        kinds: tuple[type, ...] = (bool,) if is_flag else (str, int, float)
        if not all(isinstance(each, kinds) and isinstance(each, bool) == is_flag for each in plain):
            wanted = "true or false" if is_flag else "a text or a number" + (", or a list of them" if several else "")
            raise self._wrong(at, f"this is no value of --{at[-1]}", f"Write {wanted}.")
        if is_flag:
            return value
        if option.is_eager and "help" in plain:
            # `--steer help` prints and ends, whatever else was asked for.
            raise self._wrong(at, "help is no default", f"Say --{at[-1]} help on the command line.")
        written = [str(each) for each in plain] if several else str(value)
        try:
            option.process_value(context, written)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            raise self._wrong(at, str(getattr(error, "message", error)), f"See guided --help for --{at[-1]}.") from None
        return written

    def _unknown(self, at: tuple[str, ...], what: str, known: Any) -> GrammarError:
        near = difflib.get_close_matches(at[-1], list(known), 1)
        return self._wrong(at, what, f"Did you mean {near[0]}?" if near else "See guided --help.")

    def _wrong(self, at: tuple[str, ...], what: str, remedy: str) -> GrammarError:
        whole = (*self.inside, *at)
        line = _line_of(self.text, whole)
        place = f"{self.path}{'' if line is None else f', line {line}'}, key {'.'.join(whole)}"
        return GrammarError(what, where=place, remedy=remedy)


@dataclass(frozen=True)
class ConfigurationChoice:
    """Which file the command line asks for: one by its name, none, or the nearest."""

    named: Path | None = None
    none: bool = False

    def file(self) -> Configuration | None:
        """The file; None where there is none to read."""
        if self.none:
            return None
        return find_configuration(Path.cwd()) if self.named is None else read_configuration(self.named)

    def defaults(self, context: Any) -> dict[str, Any]:
        """What the file says for the commands of a context's application; nothing where there is no file."""
        found = self.file()
        return {} if found is None else found.defaults(context.command, context)


def find_configuration(folder: Path) -> Configuration | None:
    """The file of a folder, or of the nearest one above it that has one.

    Raises `GuidedError` for a file that cannot be read, and for a folder that has both.
    """
    for place in (folder, *folder.parents):
        found = [path for name in (OWN, SHARED) if (path := place / name).is_file()]
        read = [made for path in found if (made := _read(path)) is not None]
        if len(read) > 1:
            raise GuidedError(
                f"both {OWN} and {SHARED} say defaults", where=str(place), remedy=f"Move them into {OWN}."
            )
        if read:
            return read[0]
    return None


def read_configuration(path: Path) -> Configuration:
    """The file that the command line names; raises `GuidedError` where it cannot be read or says nothing of guided."""
    found = _read(path)
    if found is None:
        raise GuidedError(f"{str(path)!r} has no [tool.guided]", where="--config", remedy="Name another file.")
    return found


def _read(path: Path) -> Configuration | None:
    """None for a ``pyproject.toml`` that says nothing of guided."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise GuidedError(f"{str(path)!r} cannot be read: {reason}", remedy="Check the file.") from None
    inside = SHARED_TABLE if path.name == SHARED else ()
    # Somebody else's file may be malformed without our having a say in it.
    if inside and "guided" not in text:
        return None
    try:
        tables: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(f"this is not TOML: {error}", where=str(path), remedy="Correct the file.") from None
    for name in inside:
        tables = tables.get(name) if isinstance(tables, dict) else None
    return Configuration(path, text, tables, inside) if isinstance(tables, dict) else None


def _commands(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from _commands(command) if hasattr(command, "commands") else (command,)


def _options(command: Any) -> dict[str, Any]:
    """The options of a command, by their long names without dashes."""
    named = {
        word.removeprefix("--"): option
        for option in command.params
        if isinstance(option, TyperOption)
        for word in option.opts
        if word.startswith("--")
    }
    return {name: option for name, option in named.items() if name not in ON_THE_LINE}


_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w.\"' -]+?)\s*=")


def _line_of(text: str, path: Sequence[str]) -> int | None:
    """The line, from 1, where a key or table is named; None where that cannot be told without a parser."""
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header.group(1))
            here = table
        elif key := _KEY.match(line):
            here = [*table, *_parts(key.group(1))]
        else:
            continue
        if here[: len(path)] == list(path):
            return number
    return None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
