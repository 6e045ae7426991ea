"""Captures of XGrammar's EBNF and of the dialects of Lark: what the engines tell of the same texts, and where not."""

from __future__ import annotations

from typing import Any

import pytest

import guided
from guided.errors import LimitError, TextError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.named import named_rules
from guided.reading.captures import Capture
from guided.reading.named import chart
from guided.reading.named.parts import named_parts
from tests.engines import END, llguidance_matchers, xgrammar_matchers

Told = list[tuple[str, bytes]]

TABLE = r"""
%ignore / +/
start: "rows" row (";" row)*
row[capture]: "[" cell ("," cell)* "]"
cell[capture="value"]: WORD | NUMBER
WORD: /[a-z]+/
NUMBER: /[0-9]+/
"""
TOOLS = r"""
start: (look | count)* rest
rest: TEXT
TEXT: /(.|\n)*/
look_head[lazy]: TEXT "<call"
look: look_head "=look>" query "</call>"
query[capture]: /[a-z]+/
count_head[lazy]: TEXT "<call"
count: count_head "=count>" arguments "</call>"
arguments[capture]: %json {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}
"""
NOTE = "Hi <call=look>cats</call> and <call=count>{}</call>."
BOTH = [
    ('start: key ":" value\nkey[capture]: /[a-z]+/\nvalue[capture="v"]: /[0-9]+/', "ab:12"),
    ('start: item ("," item)*\nitem[capture]: /[a-z]+/', "ab,c,de"),
    ('start: tree\ntree[capture]: "(" (leaf | tree)? ")"\nleaf[capture]: /[a-z]+/', "((ab))"),
    ('start: all\nall[capture]: line\nline[capture, suffix="<end>", stop_capture="mark"]: /.*/', "foo<end>"),
    ('start: all\nall[capture]: line\nline[capture, lazy]: /.*<end>/', "foo<end>"),
    ('start: "q" a "z"\na[capture, suffix=/[0-9]+x/]: /[a-z]*/', "qab12xz"),
    ('start: v ";"\nv[capture]: %json {"type": "integer"}', "-12;"),
    ('start: v ";"\nv[capture]: %lark {\nstart[capture="s"]: q r\nq[capture]: "x"\nr[capture="rr"]: "yy"\n}', "xyy;"),
    ('start[capture="all"]: a\na[capture]: /é+/', "éé"),
    ('start: one two\none[capture="n"]: "x"\ntwo[capture="n"]: "y"', "xy"),
    ('start: (q ",")~2..4 "!"\nq[capture]: "x" | "y"', "x,y,x,!"),
    (TOOLS, NOTE),
]  # fmt: skip
"""Texts of which both engines tell nothing but what is in their one derivation."""
EBNF = [
    ('root ::= list\nlist[capture] ::= list "," n | n\nn[capture] ::= [0-9]+', "1,22,3"),
    ('root ::= tree\ntree[capture] ::= "(" tree? ")"', "(())"),
    ('root[capture] ::= TagDispatch(("<t>", tool))\ntool[capture="t"] ::= [a-z]+ "</t>"', "hi <t>foo</t>, <t>b</t>"),
    ('root ::= c "z"\nc[capture] ::= "q" b\n'
     'b[capture, stop_capture="s", capture_hidden_suffix_bytes=3] ::= "ab" "end"', "qabendz"),
    ('root ::= c "z"\nc[capture] ::= "q" b "w"\n'
     'b[capture, stop_capture="s", capture_hidden_stop_bytes=3] ::= "ab" "end"', "qabendwz"),
    (r"""root ::= a
a[capture, capture_hidden_suffix_bytes=1, capture_hidden_body_rule_id=2, capture_hidden_marker_rule_id=3] ::=
  Regex("[ab]*bb?\\.")
body ::= Regex("[ab]*")
marker ::= Regex("bb?\\.")""",
        "abb."),
]  # fmt: skip
XGRAMMARS = [
    (TABLE, "rows [a  , 12] ;[ b ] "),
    ('start: "q" a "w"\na[capture, stop="<end>", stop_capture="s"]: /[a-z]*/', "qfoo<end>w"),
    ('start: o "w"\no[capture]: "q" a\na[capture, stop=/<|<<>/, stop_capture="s"]: /[a-z]*/', "qfoo<w"),
    ('start: w "z"\nw[capture, suffix=/a+b/, stop_capture="s"]: /[a-z]*/', "qaaabz"),
    ('start: head\nhead[suffix="<e>", capture, stop_capture="e"]: TEXT\nTEXT: /(\\n|.)*/', "so on"),
]
LLGUIDANCES = [
    ("%ignore / +/\nstart: a o c\na[capture]: X\no[capture]: b\nb[capture, max_tokens=5]: X\nc[capture, temperature=0.5]: X\n"
     "X: /[a-z]/", "q  r  s"),
    ('start: all "!"\nall[capture]: line "<end>"\nline[capture, stop="<end>", stop_capture="s"]: /.*/', "foo<end>!"),
    ('start: (item "," | n ";")*\nitem[capture, stop=","]: /[a-z]*/\nn[capture]: /[a-z]+[0-9]+/', "ab,,c1;d,"),
    (TABLE, "rows [a  , 12] ;[ b ]"),
    ('%llguidance {"allow_initial_skip": true}\n%ignore / +/\nstart: a b\na[capture]: X\nb[capture]: X\nX: /[a-z]/',
     " q  r"),
    ('%ignore / +/\nstart: a o c\na[capture]: X\no[capture]: b X\nb[capture, suffix="!", stop_capture="s"]: X\n'
     "c[capture]: X\nX: /[a-z]/", "q  r!  t  s"),
    ('start: w "z"\nw[capture, suffix=/a+b/, stop_capture="s"]: /[a-z]*/', "qaaabz"),
]  # fmt: skip


def ours(grammar: Grammar, text: str, every: bool = False) -> Told:
    named = named_rules(grammar)
    assert named is not None
    return [(part.name, part.data) for part in named_parts(named, text.encode(), every=every)]


def told_by_llguidance(source: str, text: str) -> Told:
    pytest.importorskip("llguidance")
    matcher: Any = llguidance_matchers(source)()
    for byte in text.encode():
        matcher.read(byte)
    if not matcher.matcher.is_stopped():
        matcher.read(END)
    return [(name, data) for name, data in matcher.matcher.get_captures()]


def told_by_xgrammar(source: str, text: str, deduplicate: bool = True) -> Told:
    xgrammar: Any = pytest.importorskip("xgrammar")
    kind = xgrammar.Grammar
    matcher: Any = xgrammar_matchers(kind.from_ebnf(source) if "::=" in source else kind.from_lark(source))()
    for byte in text.encode():
        matcher.read(byte)
    return [(name, data) for name, data in matcher.matcher.get_captures(deduplicate=deduplicate)]


@pytest.mark.parametrize(("source", "text"), [*BOTH, *LLGUIDANCES])
def test_llguidance_tells_the_same(source: str, text: str) -> None:
    found = ours(guided.lark(source, dialect="llguidance"), text)
    assert found and sorted(found) == sorted(told_by_llguidance(source, text))


@pytest.mark.parametrize(("source", "text"), [*BOTH, *XGRAMMARS])
def test_xgrammar_tells_the_same_of_lark(source: str, text: str) -> None:
    found = ours(guided.lark(source, dialect="xgrammar"), text)
    assert found and found == told_by_xgrammar(source, text)


@pytest.mark.parametrize(("source", "text"), EBNF)
def test_xgrammar_tells_the_same_of_ebnf(source: str, text: str) -> None:
    found = ours(guided.ebnf(source), text)
    assert found and found == told_by_xgrammar(source, text)


OTHERWISE = [
    # Beginnings of repeated rules, which both engines tell.
    ('start: a*\na[capture]: "x" b*\nb[capture]: "y"', "xyyxy", "b:y b:y a:xyy b:y a:xy"),
    # A rule of another alternative.
    ('start: a | b\na: "q" c\nc[capture]: "x"\nb: "q" "x" "y"', "qxy", ""),
    # Equal captures one after another: llguidance tells one, XGrammar none of a rule that is counted.
    ('start: q~3 "!"\nq[capture]: "x"', "xxx!", "q:x q:x q:x"),
    # Empty ones, of which the engines lose some.
    ('start: a "b"\na[capture]: ""', "b", "a:"),
    # Two derivations: the first part is as long as can be.
    ('start: a b\na[capture]: "x"*\nb[capture]: "x"*', "xx", "a:xx b:"),
    ('start: e\ne[capture]: e "+" e | /[0-9]/', "1+2+3", "e:1 e:2 e:1+2 e:3 e:1+2+3"),
]


@pytest.mark.parametrize(("source", "text", "wanted"), OTHERWISE)
def test_what_the_text_is_and_not_what_it_might_have_been(source: str, text: str, wanted: str) -> None:
    for dialect in ("llguidance", "xgrammar"):
        found = ours(guided.lark(source, dialect=dialect), text, every=True)
        assert " ".join(f"{name}:{data.decode()}" for name, data in found) == wanted


def test_xgrammar_tells_the_longest_of_a_rule_at_a_place() -> None:
    source = 'root ::= e\ne[capture] ::= e "+" [0-9] | [0-9]'
    grammar = guided.ebnf(source)
    assert ours(grammar, "1+2+3") == told_by_xgrammar(source, "1+2+3") == [("e", b"1+2+3")]
    assert ours(grammar, "1+2+3", every=True) == told_by_xgrammar(source, "1+2+3", deduplicate=False)


def test_places_count_characters_and_hidden_markers_are_left_out() -> None:
    grammar = guided.ebnf(
        'root ::= o "w"\no[capture] ::= "é" a "!"\na[capture="in", stop_capture="s", capture_hidden_stop_bytes=2] ::= "ü--"'
    )
    assert guided.captures(grammar, "éü--!w") == {
        "o": [Capture("éü!", 0, 5)], "in": [Capture("ü", 1, 2)], "s": [Capture("--", 2, 4)],
    }  # fmt: skip
    assert guided.captures(grammar, "éü--!w", names=["s"]) == {"s": [Capture("--", 2, 4)]}
    nobody = guided.lark('start: a?\na[capture]: "x"', dialect="llguidance")
    assert guided.captures(nobody, "") == {"a": []}


CYCLES = [
    ('root ::= a\na[capture] ::= a | b | "x"\nb[capture] ::= a', "x", {"a:x"}),
    ('root ::= a\na[capture] ::= a a | ""', "", {"a:"}),
    ('root ::= a "."\na[capture] ::= a* b*\nb[capture] ::= a | "x"', "xx.", {"a:xx", "b:x"}),
    ('root ::= e\ne[capture] ::= n e n | [0-9]\nn[capture] ::= "" | e?', "1", {"e:1"}),
]


@pytest.mark.parametrize(("source", "text", "among"), CYCLES)
def test_rules_around_themselves_come_to_an_end(source: str, text: str, among: set[str]) -> None:
    found = ours(guided.ebnf(source), text, every=True)
    assert among <= {f"{name}:{data.decode()}" for name, data in found} and len(found) < 10


def test_options_that_narrow_a_rule_narrow_its_parts() -> None:
    lazy = guided.ebnf(
        'root ::= a rest\na[lazy] ::= b "z" c\nb[capture] ::= [a-z]*\nc[capture] ::= [0-9]*\nrest ::= [z0-9]*'
    )
    assert ours(lazy, "azz1") == [("b", b"a"), ("c", b"")]
    grammar = guided.ebnf('root ::= a ","? b\na[max_chars=2] ::= c+\nc[capture] ::= [ab]{2}\nb[capture] ::= [ab]*')
    assert ours(grammar, "abab") == [("c", b"ab"), ("b", b"ab")]
    lark = "start: a b\na[max_chars=2]: c+\nc[capture]: /[ab]{2}/\nb[capture]: /[ab]*/"
    assert ours(guided.lark(lark, dialect="xgrammar"), "abab") == [("c", b"ab"), ("b", b"ab")]


def test_grammars_inside_name_parts_too() -> None:
    inner = guided.ebnf('root ::= w "!"\nw[capture] ::= [0-9]+')
    outer = guided.lark(
        'start: a ("," @inner)~1..3\na[capture]: %json {"type": "array"}',
        dialect="xgrammar", grammars={"inner": inner},
    )  # fmt: skip
    assert ours(outer, '[1, "]"],12!,3!') == [("a", b'[1, "]"]'), ("w", b"12"), ("w", b"3")]


@pytest.mark.parametrize(("text", "offset"), [("rows [a;", 7), ("rows [ä", 6), ("", 0)])
def test_other_texts_are_refused_where_they_go_wrong(text: str, offset: int) -> None:
    for dialect in ("llguidance", "xgrammar"):
        with pytest.raises(TextError, match="none of the grammar") as caught:
            guided.captures(guided.lark(TABLE, dialect=dialect), text)
        assert caught.value.where == f"offset {offset}"


def test_what_cannot_be_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = guided.ebnf('root ::= w (" " w)*\nw[capture] ::= [a-z]+')
    with pytest.raises(TextError, match="surrogate"):
        guided.captures(words, "a\ud800")
    halves = guided.lark("start: a b\na[capture, lazy]: A\nb[lazy]: A\nA: ~/(?s:.*)/", dialect="llguidance")
    assert ours(halves, "é") == [("a", b"\xc3")]
    with pytest.raises(UnsupportedError, match="inside of a character"):
        guided.captures(halves, "é")
    with pytest.raises(UnsupportedError, match="names no parts"):
        guided.captures(guided.ebnf("a = 'x';", dialect="iso"), "x")
    monkeypatch.setattr(chart, "MOST_STEPS", 100)
    with pytest.raises(LimitError, match="100 steps"):
        guided.captures(words, "ab " * 100 + "c")
