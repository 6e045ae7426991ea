"""ANTLR 4 grammars, beside what ANTLR's own lexer and parser say of texts.

`antlr_verdicts.json` holds that, with the version; ``GUIDED_ANTLR_JAR``, the complete jar of ANTLR's tool, has it asked
again by `Verdicts.java`.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
from pathlib import Path

import pytest

import guided
from guided.errors import GrammarError, UnsupportedError
from guided.grammar.antlr import antlr
from guided.testing import check_constraint
from tests.amounts import each
from tests.vocabularies import of_bytes

HERE = Path(__file__).parent
VOCABULARY = of_bytes()
VERDICTS = json.loads((HERE / "antlr_verdicts.json").read_text())["grammars"]
JAR = os.environ.get("GUIDED_ANTLR_JAR", "")


def written(name: str) -> str:
    return (HERE / "grammars" / f"{name}.g4").read_text()


def accepts(constraint: guided.Constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


def test_there_are_enough_texts() -> None:
    assert set(VERDICTS) == {path.stem for path in (HERE / "grammars").glob("*.g4")}
    assert sum(len(found["accepted"]) for found in VERDICTS.values()) >= 500
    assert sum(len(found["rejected"]) for found in VERDICTS.values()) >= 500


@pytest.mark.parametrize("name", each(VERDICTS, 2))
def test_antlr_agrees(name: str) -> None:
    constraint = guided.compile(antlr(written(name)), VOCABULARY)
    for verdict, wanted in (("accepted", True), ("rejected", False)):
        for text in VERDICTS[name][verdict]:
            assert accepts(constraint, text) is wanted, text


@pytest.mark.skipif(not JAR or shutil.which("java") is None, reason="no java, or GUIDED_ANTLR_JAR names no jar")
@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdicts_are_those_of_antlr(name: str) -> None:
    found = VERDICTS[name]
    texts = [*found["accepted"], *found["rejected"]]
    command = ["java", "-cp", JAR, str(HERE / "Verdicts.java"), str(HERE / "grammars" / f"{name}.g4"), found["start"]]
    lines = "".join(f"{text.encode().hex()}\n" for text in texts)
    said = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert said == ["1"] * len(found["accepted"]) + ["0"] * len(found["rejected"])


@pytest.mark.parametrize("name", ["Program", "Longest", "Lazy"])
def test_contracts(name: str) -> None:
    grammar = antlr(written(name))
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    check_constraint(guided.compile(grammar, VOCABULARY), walks=2, length=15, full_states=2, threads=0)


def test_a_token_over_several_lexemes() -> None:
    """The lexer sees bytes: where tokens of a model end does not matter to it."""
    tokens = [b"if", b"ifx", b" x", b"x the", b"n y", b"=1;", b"1;/*", b"*/", b"y=", b"/", b"*", b"//", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[12])
    constraint = guided.compile(antlr(written("Program")), VOCABULARY)
    merged = guided.compile(antlr(written("Program")), vocabulary)
    state = merged.start
    for token in (0, 2, 3, 4, 5):  # "if x" + "x the": the name is xx
        state = merged.advance(state, token)
    assert merged.is_accepting(state)
    assert accepts(constraint, "if xx then y=1;")
    # Behind the comment's beginning nothing but its end makes a text.
    inside = merged.advance(merged.advance(merged.start, 8), 6)
    assert not merged.is_accepting(inside)
    assert merged.is_accepting(merged.advance(inside, 7))


def test_the_longest_match_counts_although_the_parser_cannot_use_it() -> None:
    constraint = guided.compile(
        antlr("grammar G; s: A A B? EOF; A: 'a'; AA: 'aa'; B: 'b'; W: ' ' -> skip;"), VOCABULARY
    )
    assert not accepts(constraint, "aa")
    assert accepts(constraint, "a a")
    assert accepts(constraint, "a ab")


@pytest.mark.parametrize(
    ("text", "where", "kind"),
    [
        ("lexer grammar L; A: 'a';", "line 1, column 1", UnsupportedError),
        ("grammar G;\n@header { import x; } s: 'a';", "line 2, column 1", UnsupportedError),
        ("grammar G; import M; s: 'a';", "line 1, column 12", UnsupportedError),
        ("grammar G; options { caseInsensitive = true; } s: 'a';", "line 1, column 20", UnsupportedError),
        ("grammar G; s: 'a' {print()};", "line 1, column 19", UnsupportedError),
        ("grammar G; s: {x}? 'a';", "line 1, column 15", UnsupportedError),
        ("grammar G; s[int x]: 'a';", "line 1, column 13", UnsupportedError),
        ("grammar G; s: t[1]; t: 'a';", "line 1, column 16", UnsupportedError),
        ("grammar G; s: EOF 'a';", "line 1, column 15", UnsupportedError),
        ("grammar G; s: A; A: '(' (A | 'x')* ')';", "line 1, column 26", UnsupportedError),
        ("grammar G; s: A; A: 'a' -> pushMode(M);", "line 1, column 28", UnsupportedError),
        ("grammar G; s: A; A: 'a' -> more;", "line 1, column 28", UnsupportedError),
        ("grammar G; s: A; A: [a-z]+ .*? 'x';", "line 1, column 28", UnsupportedError),
        ("grammar G; s: A; A: 'a' ('b' 'c'*? 'd')+;", "line 1, column 30", UnsupportedError),
        (r"grammar G; s: A; A: [\p{Lu}];", "line 1, column 21", UnsupportedError),
        ("grammar G; s: A; A: 'a' EOF;", "line 1, column 25", UnsupportedError),
        ("grammar G; s: B; A: 'a';", "line 1, column 15", GrammarError),
        ("grammar G; s: A; A: 'a' -> skip;", "line 1, column 15", GrammarError),
        ("grammar G; s: A; A: 'a'*;", "line 1, column 18", GrammarError),
        ("grammar G; s: A; A: 'a' | 'b' -> skip;", "line 1, column 34", GrammarError),
        ("grammar G; s: t 'a' | 'b'; t: s 'c' | 'd';", "line 1, column 12", GrammarError),
        ("grammar G; s: 'a'\n  | 'b", "line 2, column 5", GrammarError),
        ("grammar G; s: 'a'; s: 'b';", "line 1, column 20", GrammarError),
        ("grammar G; s 'a';", "line 1, column 14", GrammarError),
        (r"grammar G; s: '\q';", "line 1, column 15", GrammarError),
    ],
)  # fmt: skip
def test_what_is_not_context_free_is_refused_by_its_place(text: str, where: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        antlr(text)
    assert caught.value.where == where  # type: ignore[attr-defined]


def test_start_and_notes() -> None:
    text = "grammar G; options { language = Java; } s: t t; t: 'a' | ~'a' 'c' | . ; B: 'b'; C: 'c';"
    assert antlr(text).notes == ("the option language changes no text",)
    constraint = guided.compile(antlr(text, start="t"), VOCABULARY)
    assert [accepts(constraint, word) for word in ("a", "b", "bc", "ac", "aa")] == [True, True, True, False, False]
    with pytest.raises(GrammarError, match="no parser rule 'x'"):
        antlr(text, start="x")
