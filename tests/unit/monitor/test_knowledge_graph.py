"""Queries over a graph: every one runs in rdflib and has a result, and no short query with a result is refused."""

from __future__ import annotations

import pickle
import random
from itertools import product

import numpy as np
import pytest

from guided.constraint.live import LiveConstraint
from guided.errors import GuidedError, LimitError, UnsatisfiableError
from guided.monitor.graph_queries import GraphQueries, Head
from guided.monitor.knowledge_graph import knowledge_graph
from guided.monitor.triples import NOTHING_BOUND, Triples, Variable
from guided.testing import check_constraint
from tests.amounts import each, mostly_slow, some
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


@pytest.mark.parametrize("seed", each(range(4), 2))
def test_every_query_has_a_result(seed):
    graph = graph_of(ODD) if seed == 0 else random_graph(seed)
    constraint = knowledge_graph(graph, VOCABULARY, max_patterns=2 + seed % 3)
    rng = random.Random(seed)
    for _ in range(some(40)):
        query = random_text(constraint, rng, 200).decode()
        assert has_result(graph, query), query


@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_no_query_with_a_result_is_refused(seed):
    """All queries of up to two patterns over a tiny graph, by brute force: spelled from every combination of terms."""
    graph = random_graph(seed + 10, terms=3, relations=2, size=4)
    constraint = knowledge_graph(graph, VOCABULARY, max_patterns=2, variables=("x", "y", "z"))
    ends = ["?x", "?y", "r:e0", "r:e1", "r:e2"]
    ways = list(product(ends, ["r:p0", "r:p1"], ends))
    texts = [[way] for way in ways] + random.Random(seed).sample([[a, b] for a in ways for b in ways], some(500))
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
    check_constraint(knowledge_graph(graph_of(ODD), vocabulary), walks=some(4), length=20, threads=2)


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
    # Only where patterns close a circle are solutions listed.
    circle = b"SELECT ?x ?y WHERE { ?x r:p0 ?y . ?y r:p0 ?z . ?z r:p0 ?x . "
    for most, lives in ((200, True), (20, False)):
        small = knowledge_graph(random_graph(0, relations=1, size=20), VOCABULARY, max_patterns=4, max_rows=most)
        if lives:
            assert small.advance_bytes(small.start, circle)
        else:
            with pytest.raises(LimitError, match="max_rows"):
                small.advance_bytes(small.start, circle)


def solutions(triples: Triples, patterns) -> list[dict]:
    """All solutions, by trying every term for every variable."""
    terms = range(len(triples.terms))
    names = list(dict.fromkeys(term for s, _, o in patterns for term in (s, o) if isinstance(term, Variable)))
    found = []
    for chosen in product(terms, repeat=len(names)):
        row = dict(zip(names, chosen, strict=True))
        if all(row.get(o, o) in triples.out.get(row.get(s, s), {}).get(r, ()) for s, r, o in patterns):
            found.append(row)
    return found


@pytest.mark.parametrize("seed", each(range(40), 2))
def test_values_are_those_of_the_solutions(seed):
    """Of up to four patterns, circles and several relations between the same variables among them."""
    rng = random.Random(seed)
    triples = Triples(((rng.randrange(5), 10 + rng.randrange(2), rng.randrange(5)) for _ in range(8)), 10_000)
    number = triples.numbers
    relations = [number[10], number[11]] if 10 in number and 11 in number else [number.get(10, number.get(11))]
    for _ in range(20):
        patterns, bindings, names = [], NOTHING_BOUND, 0
        for _ in range(rng.randrange(1, 5)):
            ends = [Variable(rng.randrange(min(names + 1, 3))) for _ in range(2)]
            if rng.random() < 0.3:
                ends[rng.randrange(2)] = number[rng.choice([t for t in number if t < 10])]
            shared = {t for s, _, o in patterns for t in (s, o) if isinstance(t, Variable)}
            if patterns and shared and not shared & set(ends):
                continue
            patterns.append((ends[0], rng.choice(relations), ends[1]))
            names = 1 + max([t.number for s, _, o in patterns for t in (s, o) if isinstance(t, Variable)], default=-1)
            bindings = triples.extend(bindings, patterns[-1])
            wanted = solutions(triples, patterns)
            assert bindings.possible == bool(wanted)
            for variable, values in bindings.values.items():
                assert not bindings.possible or values == {row[variable] for row in wanted}, patterns
            for first, second in product(bindings.values, repeat=2):
                leading = {
                    r for row in wanted for r in relations if row[second] in triples.out.get(row[first], {}).get(r, ())
                }
                assert triples.leading(bindings, first, second, set(relations)) == leading, patterns


def large_graph(n_triples: int) -> GraphQueries:
    """Entities and relations of which few are much used, as in real graphs, without rdflib."""
    rng = random.Random(0)
    n_entities, n_relations = n_triples // 6, 40
    made = {
        (
            int(n_entities * rng.random() ** 2),
            n_entities + int(n_relations * rng.random() ** 2),
            int(n_entities * rng.random() ** 2),
        )
        for _ in range(n_triples)
    }
    triples = Triples(sorted(made), 1_000_000)
    spelled = [b"e:%d" % term if term < n_entities else b"r:%d" % (term - n_entities) for term in triples.terms]
    return GraphQueries(
        triples,
        spelled,
        names=("x", "y", "z"),
        max_patterns=3,
        heads=(Head("SELECT ?x ?y WHERE { ", 2), Head("ASK { ", 0)),
        literal=[False] * len(spelled),
        relations=frozenset(number for number, term in enumerate(triples.terms) if term >= n_entities),
        rebuild=None,
    )


def test_a_mask_over_a_large_graph_looks_at_a_triple_a_few_times():
    """60,000 triples: listing the solutions of each candidate took minutes behind the first pattern."""
    queries = large_graph(60_000)
    constraint = LiveConstraint(queries, VOCABULARY)
    row, rng = np.zeros(VOCABULARY.n_words, np.uint32), random.Random(0)
    for _ in range(some(5)):
        state, text = constraint.start, b""
        while not constraint.is_accepting(state):
            before = queries.triples.steps
            constraint.fill_mask(state, row)
            constraint.fill_budget_mask(state, row, 400)
            assert queries.triples.steps - before < 6 * 60_000, text
            # Variables and further patterns, where there are any, leave most to be looked at.
            following = queries.following(constraint._states.value(state))
            wanted = [byte for byte in b"S?." if byte in following]
            text += bytes([wanted[0] if wanted else rng.choice(following)])
            state = constraint.advance_bytes(constraint.start, text)
        assert text.count(b"?") >= 6 and text.count(b".") == 2, text
