"""Reading Python byte by byte, against Python's own tokenizer on its standard library; the names' live language."""

from __future__ import annotations

import io
import random
import sysconfig
import tokenize
from itertools import product
from pathlib import Path

import pytest

from guided.monitor.names import FREE, IdentifierBytes, Names
from guided.monitor.python_text import Layout, Place, Primary, PythonText, before_dot
from tests.amounts import each, some

FILES = (
    "argparse.py",
    "ast.py",
    "copy.py",
    "json/decoder.py",
    "textwrap.py",
    "tokenize.py",
    "dataclasses.py",
    "inspect.py",
)


def dots_and_lines(source: str) -> dict[int, int]:
    """For each dot of Python's tokenizer that stands alone: where its logical line begins, in bytes."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    found, line, fresh, last = {}, 0, True, -5
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NEWLINE, tokenize.NL) and (token.type == tokenize.NEWLINE or fresh):
            fresh = True
            continue
        if token.type in (tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENCODING):
            continue
        if fresh:
            line, fresh = starts[token.start[0] - 1], False
        if token.type == tokenize.OP and token.string == ".":
            place = starts[token.start[0] - 1] + len(token.line[: token.start[1]].encode())
            if place != last + 1:
                found[place] = line
            last = place
    return found


@pytest.mark.parametrize("name", each(FILES, 2))
def test_dots_of_the_standard_library(name):
    source = (Path(sysconfig.get_paths()["stdlib"]) / name).read_text()
    lexical, layout, found = PythonText.start, Layout(), {}
    data = source.encode()
    for position, byte in enumerate(data):
        layout = PythonText.follow(layout, lexical, byte, position)
        lexical = PythonText.read(lexical, byte)
        # The first dot of an ellipsis is one until the next; nothing stands before it that could be looked into.
        if PythonText.dereferences(lexical) and data[position : position + 3] != b"...":
            found[position] = layout.line
    assert found == dots_and_lines(source)
    assert layout.brackets == b""


@pytest.mark.parametrize(
    ("code", "dots"),
    [
        ("a.b", 1), ("1.5", 0), ("1.", 0), ("1..real", 1), ("0xff.x", 0), (".5", 1), ("x = ...", 1), ("from ..a import b", 1),
        ("'a.b'", 0), ("'a'.b", 1), ('"""a.b\n"c".d"""', 0), ("'''a'''.b", 1), ("# a.b", 0), ("#\na.b", 1), ("''.b", 1),
        ("'a\\'.b", 0), ("'a\nb.c", 1), ("'''a\\'''.b", 0), ('"\'".x', 1), ("r'\\'.b", 0), ("a1.b", 1), ("x2.y.z", 2),
        ("'''a''b.c", 0), ("b'x'.y", 1), ("f'{a.b}'.c", 1), ("'a\\\nb.c'.d", 1),
    ],
)  # fmt: skip
def test_where_dots_look_names_up(code, dots):
    lexical, found = PythonText.start, 0
    for byte in code.encode():
        lexical = PythonText.read(lexical, byte)
        found += PythonText.dereferences(lexical)
    assert found == dots


@pytest.mark.parametrize(
    ("text", "root", "attributes", "primary"),
    [
        ("x = os.path.", "os", ("path",), "os.path"),
        ("f(os .\n path.", "os", ("path",), "os .\n path"),
        ("return foo(1, [2]).bar.", "foo", None, "foo(1, [2]).bar"),
        ("a[b.c](d)().", "a", None, "a[b.c](d)()"),
        ("x = [1, 2].", None, None, "[1, 2]"),
        ("return (a, b).", None, None, "(a, b)"),
        ("'abc'.", None, (), "''"),
        ("x = rb'abc'.", None, (), "rb''"),
        ("'''a'b'''.join(x).", None, None, "''.join(x)"),
        ('f(")").', "f", None, 'f(")")'),
        ("a = '(' + g(']').", "g", None, "g(']')"),
        ("größe.", "größe", (), "größe"),
        ("x\ny.", "y", (), "y"),
        ("if(x).", None, None, "(x)"),
    ],
)
def test_what_a_dot_looks_into(text, root, attributes, primary):
    found = before_dot(text, inside="\n " in text)
    assert isinstance(found, Primary)
    assert (found.root, found.text) == (root, primary)
    assert found.attributes == attributes or (root is None and not found.attributes)


@pytest.mark.parametrize(
    "text", [".", "x + .", "1st.", "(.", "a, .", "x = ).", "]).", "self'a'.", "x = \n.", "not .x .. ..", "a[).", "=."]
)
def test_dots_behind_nothing(text):
    assert before_dot(text, inside=False) is Place.NOTHING


def test_long_expressions_are_not_read_backwards_for_ever():
    assert before_dot("f(" + "x, " * 500 + "y).", inside=False) is Place.EXPRESSION
    assert before_dot("x" * 1000 + ".", inside=False) is Place.EXPRESSION


ALPHABET = IdentifierBytes.of()
NAMES = ("get", "getName", "g", "größe", "é", "_x", "if_", "x1")


def language(names, assignable, longest, alphabet):
    """Texts that are names, or names a break ends, or with ``assignable`` the making of another; by definition."""
    for size in range(longest + 1):
        for text in map("".join, product(alphabet, repeat=size)):
            name = text.rstrip(" ") if assignable else text
            if text in names:
                yield text, True
            elif assignable and text.endswith("=") and (head := text[:-1].rstrip(" ")).isidentifier():
                yield text, head not in ("if",)
            else:
                yield text, False
            del name


@pytest.mark.parametrize("assignable", [False, True])
def test_names_against_their_definition(assignable):
    names = ("g", "gi", "if_", "_")
    begin = Names.of(names, ALPHABET, assignable=assignable, reserved=["if", "g_"]).begin()
    for text, wanted in language(names, assignable, 5, "gi_f ="):
        state, done = begin, False
        for byte in text.encode():
            state = state.step(byte) if state is not FREE and state is not None else None
            if state is FREE:
                break
        if state is FREE:
            continue
        head = text[:-1].rstrip(" ")
        if assignable and text.endswith("=") and (head in names or head in ("g_", "if")):
            # A name that exists releases on any break; a reserved one is never made.
            continue
        done = state is not None and state.may_end
        assert done is wanted, text


@pytest.mark.parametrize("assignable", [False, True])
def test_names_keep_their_promises(assignable):
    rng = random.Random(0)
    begin = Names.of(NAMES, ALPHABET, assignable=assignable, reserved=["if", "in"], instead=b".").begin()
    assert begin.step(ord("(")) is None and begin.step(ord(" ")) is None and not begin.may_end
    for _ in range(some(300)):
        state, text = begin, b""
        for _ in range(rng.randint(0, 9)):
            continuing, releasing = state.continuing(), state.releasing()
            for byte in range(256):
                after = state.step(byte)
                kind = "dead" if after is None else "free" if after is FREE else "on"
                assert kind == ("on" if byte in continuing else "free" if byte in releasing else "dead"), (text, byte)
            # The rest is the shortest, and the rest of the rest is the rest after it.
            rest = state.rest
            assert (rest == b"") == state.may_end
            following = state
            for number, byte in enumerate(rest):
                assert following.rest == rest[number:]
                following = following.step(byte)
                if following is FREE:
                    assert number + 1 == len(rest)
                    break
            else:
                assert following.may_end
            assert state.expected
            if not continuing:
                break
            byte = rng.choice(continuing)
            state, text = state.step(byte), text + bytes([byte])


def test_prefixes_and_break_characters():
    begin = Names.of(["get", "getName"], ALPHABET).begin()
    for text, ends in {"get": True, "getName": True, "getN": False}.items():
        state = begin
        for byte in text.encode():
            state = state.step(byte)
        assert state.may_end is ends
    assert "getName" in begin.expected
    assert not Names.of(["a b", "", "x-y"], ALPHABET).names
