"""YAML 1.2's core schema to plain data by PyYAML, which reads 1.1 by itself: there ``no`` is false and ``010`` eight.

OpenAPI asks for the tags of YAML 1.2.  Keys are texts, as they are in JSON: a status is written ``200:``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import Any

from guided.errors import GrammarError, GuidedError

__all__ = ["yaml_data"]

_SCALARS = {
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "int": (r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    "float": (
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+0123456789."),
    ),
}
"""Plain scalars by their tag, in the order of trial, with their first characters (YAML 1.2.2, 10.3.2)."""

DEEPEST = 400
"""Brackets within each other that are read: Python's own depth, of 1,000 calls, ends at 490 or before.  Of each token
PyYAML looks at every bracket that is open, so to come to the end of 3,000 takes it 1.3 s."""

_DIGITS = re.compile(r"[-+]?\.?[0-9]")


def yaml_data(text: str) -> Any:
    """The data of a YAML text with one document, as JSON has it.

    Raises `GrammarError` with line and column for what is no YAML, has a key twice, or is no JSON: infinite numbers,
    tags, aliases of what they are in.
    """
    if find_spec("yaml") is None:
        raise GuidedError(
            "this needs PyYAML, which is not installed", remedy="Run: pip install 'guided-decoding[openapi]'"
        )
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = None if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise GrammarError(f"the text is not YAML: {error.problem}", where=where, remedy="Correct the text.") from None
    except yaml.YAMLError as error:
        raise GrammarError(f"the text is not YAML: {error}", remedy="Correct the text.") from None
    except RecursionError:
        raise GrammarError("the text is nested too deeply", remedy="Nest it less deeply.") from None


@cache
def _loader() -> Any:
    import yaml
    from yaml.constructor import ConstructorError

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML has it
        yaml_constructors: dict[Any, Any] = {}  # noqa: RUF012

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level >= DEEPEST:
                where = f"line {self.line + 1}, column {self.column + 1}"
                raise GrammarError("the text is nested too deeply", where=where, remedy="Nest it less deeply.")
            super().fetch_flow_collection_start(token)

    def integer(loader: Any, node: Any) -> int:
        text = node.value
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text if base == 10 else text[2:], base)

    def fraction(loader: Any, node: Any) -> float:
        value = float(node.value) if _DIGITS.match(node.value) else float("inf")
        if abs(value) == float("inf"):
            raise ConstructorError(None, None, f"{node.value} is no number of JSON", node.start_mark)
        return value

    def mapping(loader: Any, node: Any) -> Any:
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key that is no scalar", key.start_mark)
            if key.value in made:
                raise ConstructorError(None, None, f"the key {key.value!r} is there twice", key.start_mark)
            made[key.value] = loader.construct_object(value, deep=True)
        return made

    def unknown(loader: Any, node: Any) -> Any:
        raise ConstructorError(None, None, f"the tag {node.tag} says no value of JSON", node.start_mark)

    for tag, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    for tag, make in {
        "null": lambda loader, node: None,
        "bool": lambda loader, node: node.value.lower() == "true",
        "int": integer,
        "float": fraction,
        "str": lambda loader, node: loader.construct_scalar(node),
        # At once, not in two steps: so a node that is inside itself is refused.
        "seq": lambda loader, node: loader.construct_sequence(node, deep=True),
        "map": mapping,
    }.items():
        Loader.add_constructor(f"tag:yaml.org,2002:{tag}", make)
    Loader.add_constructor(None, unknown)
    return Loader
