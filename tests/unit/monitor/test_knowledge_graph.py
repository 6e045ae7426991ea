"""Queries over a graph: every one runs in rdflib and has a result, and no short query with a result is refused."""

from __future__ import annotations

import pickle
import random
from itertools import product

import pytest

from guided.errors import GuidedError, LimitError, UnsatisfiableError
from guided.monitor.knowledge_graph import knowledge_graph
from guided.testing import check_constraint
from tests.twin.monitor_words import VOCABULARY, Words, random_text

rdflib = pytest.importorskip("rdflib")

ODD = """
@prefix ex: <http://e.org/> .
ex:a ex:knows ex:b, ex:c ; ex:name "A \\"q\\" \\\\"@en ; ex:age 3 ; ex:when "2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
ex:b ex:knows ex:a ; ex:likes ex:b ; ex:name "two\\nlines", "naïve 日本" .
ex:c ex:lives [ ex:in ex:d ] .
ex:d ex:name "D" ; ex:flag true ; ex:size 1.5 .
<http://x.org/a-b?c=d#e> ex:likes ex:a, <http://x.org/größe> ; <urn:rel-1> ex:abc .
ex:abc a ex:Thing .
"""


def graph_of(text: str):
    graph = rdflib.Graph()
    graph.parse(data=text, format="turtle")
    return graph


def random_graph(seed: int, terms: int = 5, relations: int = 3, size: int = 7):
    rng = random.Random(seed)
    graph, name = rdflib.Graph(), rdflib.Namespace("http://r.org/")
    graph.bind("r", name)
    for _ in range(size):
        graph.add(
            (name[f"e{rng.randrange(terms)}"], name[f"p{rng.randrange(relations)}"], name[f"e{rng.randrange(terms)}"])
        )
    return graph


def has_result(graph, query: str) -> bool:
    result = graph.query(query)
    if result.type == "ASK":
        return bool(result.askAnswer)
    rows = list(result)
    return bool(rows) and ("COUNT" not in query or int(rows[0][0]) > 0)


@pytest.mark.parametrize("seed", range(4))
def test_every_query_has_a_result(seed):
    graph = graph_of(ODD) if seed == 0 else random_graph(seed)
    constraint = knowledge_graph(graph, VOCABULARY, max_patterns=2 + seed % 3)
    rng = random.Random(seed)
    for _ in range(40):
        query = random_text(constraint, rng, 200).decode()
        assert has_result(graph, query), query


@pytest.mark.parametrize("seed", range(3))
def test_no_query_with_a_result_is_refused(seed):
    """All queries of up to two patterns over a tiny graph, by brute force: spelled from every combination of terms."""
    graph = random_graph(seed + 10, terms=3, relations=2, size=4)
    constraint = knowledge_graph(graph, VOCABULARY, max_patterns=2, variables=("x", "y", "z"))
    ends = ["?x", "?y", "r:e0", "r:e1", "r:e2"]
    ways = list(product(ends, ["r:p0", "r:p1"], ends))
    texts = [[way] for way in ways] + random.Random(seed).sample([[a, b] for a in ways for b in ways], 500)
    accepted = 0
    for patterns in texts:
        order = list(dict.fromkeys(term for s, _, o in patterns for term in (s, o) if term.startswith("?")))
        shares = len(patterns) == 1 or any(term.startswith("?") and term in patterns[0] for term in patterns[1])
        for head in ("ASK { ", "SELECT ?x WHERE { ", "SELECT ?x ?y WHERE { "):
            needed = 0 if head == "ASK { " else head.count("?")
            query = head + " . ".join(" ".join(pattern) for pattern in patterns) + " }"
            state = constraint.advance_bytes(constraint.start, query.encode())
            found = state != 0 and constraint.is_accepting(state)
            wanted = order == ["?x", "?y"][: len(order)] and shares and len(order) >= needed
            assert found is (wanted and has_result(graph, query)), query
            accepted += found
    assert accepted > 30


@pytest.mark.parametrize("vocabulary", [VOCABULARY, Words.with_special()])
def test_contracts(vocabulary):
    check_constraint(knowledge_graph(graph_of(ODD), vocabulary), walks=4, length=40, threads=2)


def test_relations_touch_what_is_bound():
    graph = graph_of(ODD)
    constraint = knowledge_graph(graph, VOCABULARY)
    for text, lives in {
        "ASK { ex:a ex:knows ex:b ": True,
        "ASK { ex:a ex:likes ": False,
        "ASK { ex:d ex:knows ": False,
        "ASK { ex:nobody ": False,
        "SELECT ?x WHERE { ex:a ex:knows ?x . ?x ex:likes ": True,
        "SELECT ?x WHERE { ex:d ex:name ?x . ?x ": False,
        "SELECT ?x WHERE { ex:c ex:lives ?x . ?x ex:in ?y }": True,
        "SELECT ?x WHERE { ex:c ex:lives ?x . ?x ex:name ": False,
        "SELECT ?x WHERE { ex:a ex:age 3": False,
        'SELECT ?x WHERE { ?x ex:age "3"^^<http://www.w3.org/2001/XMLSchema#integer> }': True,
        "SELECT ?y WHERE": False,
        "ASK { ex:a ex:knows ex:b . ": False,
    }.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
    state = constraint.advance_bytes(constraint.start, b"ASK { ex:a ")
    assert "a relation" in constraint.explain(state, ord("z"))
    assert constraint.forced(constraint.advance_bytes(constraint.start, b"ASK { ex:c ex:l")) == b"ives ?x "


def test_options():
    graph = graph_of(ODD)
    without = knowledge_graph(graph, VOCABULARY, literals=False, max_patterns=1, variables=["v"])
    assert not without.advance_bytes(without.start, b'ASK { ex:d ex:name "')
    assert not without.advance_bytes(without.start, b"SELECT ?v WHERE { ?v ex:name ")
    assert without.advance_bytes(without.start, b"SELECT ?v WHERE { ?v ex:knows ex:a }")
    copy = pickle.loads(pickle.dumps(without))
    assert copy.advance_bytes(copy.start, b"SELECT ?v WHERE { ?v ex:knows ex:a }")
    before = dict(graph.namespaces())
    knowledge_graph(graph, VOCABULARY)
    assert dict(graph.namespaces()) == before


def test_refusals():
    with pytest.raises(UnsatisfiableError):
        knowledge_graph(rdflib.Graph(), VOCABULARY)
    for keywords in (
        {"max_patterns": 0},
        {"variables": ()},
        {"variables": ("x", "x")},
        {"variables": ("a b",)},
        {"variables": ("count",)},
    ):
        with pytest.raises(GuidedError):
            knowledge_graph(graph_of(ODD), VOCABULARY, **keywords)
    with pytest.raises(GuidedError, match="no rdflib"):
        knowledge_graph("triples", VOCABULARY)
    small = knowledge_graph(graph_of(ODD), VOCABULARY, max_rows=3)
    with pytest.raises(LimitError, match="max_rows"):
        small.advance_bytes(small.start, b"SELECT ?x ?y WHERE { ?x ex:name ?y . ")
