"""`knowledge_graph`: an rdflib graph read into `GraphQueries`, its terms spelled as SPARQL spells them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint
from guided.errors import GuidedError
from guided.monitor.graph_queries import GraphQueries, Head
from guided.monitor.triples import Triples
from guided.vocab.vocabulary import Vocabulary

__all__ = ["knowledge_graph"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
"""Local names that need no escape in SPARQL."""
_IRI = re.compile(r"[^\x00-\x20<>\"{}|^`\\\ud800-\udfff]*\Z")


def knowledge_graph(
    graph: Any,
    vocabulary: Vocabulary,
    *,
    max_patterns: int = 3,
    variables: Sequence[str] = ("x", "y", "z"),
    literals: bool = True,
    max_rows: int = 1_000_000,
    limits: Limits | None = None,
) -> LiveConstraint:
    """SPARQL over an rdflib graph: queries of up to ``max_patterns`` triple patterns that run there and have a result.

    Forms are ``SELECT ?x``, ``SELECT DISTINCT ?x``, ``SELECT ?x ?y``, ``SELECT (COUNT(DISTINCT ?x) AS ?count)`` and
    ``ASK``, in one canonical spelling; ``variables`` are taken in their order.  Every pattern behind the first shares a
    variable with those before.  Entities and relations are IRIs of the graph, as prefixed names where the graph binds a
    prefix; ``literals`` lets objects be the graph's literals too.  Blank nodes are never named, but variables may stand
    for them.  ``max_rows`` bounds the solutions of any query on the way (`LimitError`).

    The graph is read once; run queries with ``graph.query(text)``, which knows its prefixes.  Raises `GuidedError`
    without rdflib or for impossible options, `UnsatisfiableError` for a graph without named triples.
    """
    queries = _queries(graph, max_patterns, tuple(variables), literals, max_rows)
    return LiveConstraint(queries, vocabulary, limits)


def _queries(graph: Any, max_patterns: int, variables: tuple[str, ...], literals: bool, max_rows: int) -> GraphQueries:
    try:
        import rdflib
    except ImportError as error:
        raise GuidedError(
            "reading a knowledge graph needs rdflib, which is not installed",
            remedy="Run: pip install 'guided-decoding[kg]'",
        ) from error
    if not isinstance(graph, rdflib.Graph):
        raise GuidedError(
            f"{type(graph).__name__} is no rdflib.Graph", remedy="Parse the data: rdflib.Graph().parse()."
        )
    if max_patterns < 1 or not variables:
        raise GuidedError("a query needs a pattern and a variable", remedy="Give max_patterns=1 and one name at least.")
    for name in variables:
        if not _PLAIN.match(name) or variables.count(name) > 1 or name == "count":
            raise GuidedError(
                f"{name!r} cannot be a variable here", remedy="Give distinct names of letters; not count."
            )
    triples = Triples(((s, p, o) for s, p, o in graph), max_rows)
    prefixes = sorted(((str(iri), prefix) for prefix, iri in graph.namespaces()), reverse=True)
    spelled: list[bytes | None] = []
    for term in triples.terms:
        text = None
        if isinstance(term, rdflib.URIRef):
            text = _iri(str(term), prefixes)
        elif isinstance(term, rdflib.Literal) and literals:
            text = _literal(term)
        spelled.append(None if text is None else text.encode())
    named = {relation for ways in triples.out.values() for relation in ways}
    relations = frozenset(relation for relation in named if spelled[relation] is not None)
    first = variables[0]
    heads = [
        Head(f"SELECT ?{first} WHERE {{ ", 1),
        Head(f"SELECT DISTINCT ?{first} WHERE {{ ", 1),
        Head(f"SELECT (COUNT(DISTINCT ?{first}) AS ?count) WHERE {{ ", 1),
        Head("ASK { ", 0),
    ]
    if len(variables) > 1:
        heads.append(Head(f"SELECT ?{first} ?{variables[1]} WHERE {{ ", 2))
    return GraphQueries(
        triples,
        spelled,
        names=variables,
        max_patterns=max_patterns,
        heads=tuple(heads),
        literal=[isinstance(term, rdflib.Literal) for term in triples.terms],
        relations=relations,
        rebuild=(partial(_queries), (graph, max_patterns, variables, literals, max_rows)),
    )


def _iri(iri: str, prefixes: Sequence[tuple[str, str]]) -> str | None:
    for namespace, prefix in prefixes:
        local = iri[len(namespace) :]
        if namespace and iri.startswith(namespace) and _PLAIN.match(local) and _PLAIN.match(prefix):
            return prefix + ":" + local
    return f"<{iri}>" if _IRI.match(iri) else None


def _literal(literal: Any) -> str | None:
    """With its type written out; None where that cannot be read back as the same term."""
    if type(literal)(str(literal), lang=literal.language, datatype=literal.datatype) != literal:
        # Kept as it was written ("03"); a query would ask for its normal form.
        return None
    text = "".join(_ESCAPES.get(character, character) for character in str(literal))
    if any(0xD800 <= ord(character) < 0xE000 or ord(character) < 0x20 for character in text):
        return None
    if literal.language:
        return f'"{text}"@{literal.language}'
    if literal.datatype is None:
        return f'"{text}"'
    return f'"{text}"^^<{literal.datatype}>' if _IRI.match(str(literal.datatype)) else None


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
