"""What notebooks show: well-formed HTML in which hostile texts are texts, with the numbers that the objects say."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided import html
from guided.draft import Statistics
from guided.grammar.sql.result import QueryResult
from guided.infer import exact, field_posteriors, importance, rejection
from guided.infer.analysis.distortion import Distortion, TokenDistortion
from guided.infer.sequences.best_of_n import best_of_n
from guided.lm import TableModel
from guided.search import beam_search, diverse_beam_search
from guided.vocab import Vocabulary

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m\x00\ud800\u202e"


def parsed(shown: str) -> ElementTree.Element:
    """The tree of what is shown: raises where a text broke out of its place."""
    return ElementTree.fromstring(shown)


def words(shown: str) -> str:
    return " ".join(parsed(shown).itertext())


@given(st.text() | st.just(HOSTILE))
def test_texts_stay_texts(text):
    shown = html.card(
        text,
        html.facts([(text, text)]),
        html.table([text], [[text], [text]], 3),
        html.preformatted(text),
        html.marked([(text, 0.5, text), (text, math.nan, text)]),
    )
    tree = parsed(shown)
    assert {each.tag for each in tree.iter()} <= {
        "div",
        "b",
        "table",
        "tbody",
        "thead",
        "tr",
        "th",
        "td",
        "pre",
        "span",
    }
    assert {name for each in tree.iter() for name in each.attrib} <= {"style", "class", "title"}
    assert all(each.isprintable() or each.isspace() or each in "\u200c\u200d" for each in shown)


def test_long_texts_are_cut_and_said_so():
    text = "x" * (html.MOST_CHARACTERS + 1234)
    assert "1,234 characters more" in words(html.card("t", html.preformatted(text)))
    assert len(html.marked([("x" * 500, 1.0, "")] * 1000)) < 2 * html.MOST_CHARACTERS


def test_marks_are_as_strong_as_what_they_mark():
    tree = parsed(html.marked([("a", 0.0, "none"), ("b", 0.5, "half"), ("c", 1.0, "all")]))
    styles = [span.get("style") for span in tree]
    assert styles[0] is None
    strength = [float(style.rsplit(",", 1)[1].rstrip(")")) for style in styles[1:]]
    assert strength[0] == pytest.approx(strength[1] / 2, abs=0.01)  # two digits are written


def test_a_grammar_shows_its_source_and_makes_no_rules(monkeypatch):
    schema = {"type": "object", "properties": {"<b>": {"type": "integer"}}, "description": HOSTILE[:20]}
    grammar = guided.json_schema(schema)
    assert '"<b>"' in words(grammar._repr_html_()) and "json_schema" in words(grammar._repr_html_())
    assert "a|<b>" in words(guided.regex("a|<b>")._repr_html_())
    for made in (guided.choice(["<i>", HOSTILE[:27]]), guided.special_token("<end>"), guided.sequence("x", grammar)):
        parsed(made._repr_html_())


def test_a_constraint_shows_what_it_allows_first():
    vocabulary = Vocabulary.from_tokens([b"<", b"a", b"b", b"ab", b"\xff", None], eos_ids=[5])
    shown = words(guided.compile(guided.regex("a+b"), vocabulary)._repr_html_())
    assert "2 tokens: 'a' 'ab'" in shown and "texts begin with a" in shown
    assert "6, of them 5 with text" in words(vocabulary._repr_html_())


@pytest.fixture(scope="module")
def small():
    vocabulary = Vocabulary.from_tokens([b'{"a": ', b"1", b"2", b"}", b"<b>", None], eos_ids=[5])
    model = TableModel.random(3, width=6, eos_ids=[5])
    return model, guided.compile(guided.lark('start: "{\\"a\\": " ("1" | "2") "}"'), vocabulary)


def test_what_was_drawn_shows_fields_and_evidence(small):
    model, constraint = small
    population = importance(3, model, [], constraint, n=20, max_tokens=6)
    shown = words(population._repr_html_())
    assert f"{population.log_ml:.4g}" in shown and "/a" in shown and f"{population.ess:.4g}" in shown
    likeliest, share = next(iter(population.posterior().items()))
    assert likeliest in shown and html.share(share) in shown
    assert "attempts kept" in words(rejection(3, model, [], constraint, n=3, max_tokens=6)._repr_html_())
    assert "Enumeration" in words(exact(model, [], constraint, max_tokens=6)._repr_html_())
    assert "Ranked" in words(best_of_n(3, model, [], constraint, n=4, max_tokens=6)._repr_html_())
    for found in (
        beam_search(model, [], constraint, max_tokens=6),
        diverse_beam_search(model, [], constraint, max_tokens=6, groups=2),
    ):
        assert '{"a": ' in words(found._repr_html_())


def test_fields_tables_and_counts():
    posterior = field_posteriors(['{"a": "<b>"}', '{"a": 2}', "{}"])
    assert '"<b>"' in words(posterior["/a"]._repr_html_()) and "33.3 %" in words(posterior["/a"]._repr_html_())
    rows = QueryResult(("<c>",), tuple((HOSTILE[:20],) for _ in range(60)), True, 0.1)
    assert "and 10 more" in words(rows._repr_html_())
    assert "2.00 tokens a pass" in words(Statistics(passes=2, row_passes=2, tokens=4)._repr_html_())


def test_tokens_are_as_red_as_what_the_mask_took():
    tokens = tuple(
        TokenDistortion(3, data, math.log(0.01), math.log(kept), math.log(0.5), 1)
        for data, kept in ((b"<i>", 1.0), (b"\xe2\x82", 0.5), (b"", 0.01))
    )
    shown = Distortion(tokens)._repr_html_()
    spans = parsed(shown).findall(".//span")
    assert [span.text for span in spans] == ["<i>", "\\xe2\\x82", "\N{WHITE SQUARE}"]
    assert spans[0].get("style") is None and "0.54" in spans[2].get("style")
    assert "took 50.0 %" in spans[1].get("title")
