"""What a server's operator has named: grammars and makers of constraints, asked for by name."""

import pytest

import guided
from guided.serving import Compiler, Request, RequestKind
from guided.serving.named import VARIABLE

VOCABULARY = guided.Vocabulary.from_tokens([bytes([i]) for i in range(255)] + [None], eos_ids=[255])


def echo(vocabulary, prompt):
    """Texts that are the prompt's last word."""
    return guided.compile(guided.choice([prompt.split()[-1]]), vocabulary)


def broken(vocabulary, prompt):
    raise KeyError(prompt)


CONSTRAINTS = {"digits": guided.regex("[0-9]+"), "echo": echo, "broken": broken}
NOT_ONE = ["digits"]


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.setenv(VARIABLE, "tests.unit.serving.test_named:CONSTRAINTS")
    made = Compiler(None)
    made.vocabularies = type("", (), {"ending_with": lambda self, ends=None: VOCABULARY})()
    return made


def takes(constraint, text):
    state = constraint.advance_bytes(constraint.start, text)
    return bool(state) and constraint.is_accepting(state)


def test_a_grammar_is_compiled_once(compiler):
    request = Request(RequestKind.NAMED, "digits")
    constraint = compiler.constraint(request)
    assert takes(constraint, b"12") and not takes(constraint, b"a")
    assert compiler.constraint(request, prompt="any") is constraint


def test_a_maker_gets_each_prompt(compiler):
    request = Request(RequestKind.NAMED, "echo")
    assert takes(compiler.constraint(request, prompt="say yes"), b"yes")
    assert takes(compiler.constraint(request, prompt="say no"), b"no")
    with pytest.raises(guided.UnsupportedError, match="made of a request's prompt"):
        compiler.constraint(request)
    with pytest.raises(guided.UnsupportedError, match="made of each request's prompt"):
        request.grammar()


def test_what_a_maker_raises_is_an_error_of_ours(compiler):
    with pytest.raises(guided.GuidedError, match="'broken' cannot be made: KeyError: 'x'"):
        compiler.constraint(Request(RequestKind.NAMED, "broken"), prompt="x")


@pytest.mark.parametrize(("place", "message"), [
    ("tests.unit.serving.test_named:CONSTRAINTS", "nothing is named 'other' on this server.*digits, echo"),
    ("", "Nothing is: see GUIDED_CONSTRAINTS"),
    ("tests.unit.serving.test_named:NOT_ONE", "it is no mapping"),
    ("tests.unit.serving.test_named:MISSING", "no attribute 'MISSING'"),
    ("no_such_module:X", "No module named"),
    ("tests.unit.serving.test_named", "module:attribute"),
])  # fmt: skip
def test_names_that_are_not_there(monkeypatch, place, message):
    monkeypatch.setenv(VARIABLE, place)
    with pytest.raises(guided.GuidedError, match=message):
        Request(RequestKind.NAMED, "other").grammar()
