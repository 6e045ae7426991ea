"""Random grammars in Lark's notation and in GBNF: what users write, and what they write by mistake.

Terminals that overlap, ambiguous and nullable rules, recursion of all kinds, ignored text or none, counted repeats.
Driven by a `random.Random`, so that a seed names a grammar.
"""

from __future__ import annotations

import random

from guided.grammar.ir import Lexing

WORDS = ["if", "then", "else", "select", "from", "show", "a", "ab", "abc", "b", "x", "y", "in", "int", "ba", "aa"]
SIGNS = ["+", "-", "(", ")", ",", ";", "=", "==", ".", "..", "/", "/*", "[", "]", "{", "}", ":", "->", "\\n", " ", "'"]
CLASSES = ["[a-z]", "[a-c]", "[ab]", "[0-9]", "[01]", "\\w", "\\d", "\\s", ".", "[^\\n]", "[^a]", "[^\"]", "[^ab]",
           "\\S", "[a-zA-Z_]", "[+*]", "é", "[à-ü]", "(?:ab)", "(?:a|ab)", "(?:ab|a)", "(?:b|)", "a", "b", "0", "\\."]  # fmt: skip
QUANTIFIERS = ["", "", "", "", "+", "+", "+", "*", "?", "+?", "*?", "??", "{2}", "{1,3}", "{2,}", "{0,4}?", "{3,20}"]
LOOKS = ["(?!a)", "(?=b)", "(?![a-z])", "(?=\\s)", "(?=[,;])", "\\b", "$", "(?!.*b)", "(?=.*;)", "(?<!\\\\)", "(?<=a)"]
PATTERNS = ["/[a-z]+/", "/[0-9]+/", "/[a-z][a-z0-9]*/", "/\\w+/", "/[^,]+/", "/[^ ]+/", "/.+/", "/\"[^\"]*\"/",
            "/\"(?:[^\"\\\\]|\\\\.)*\"/", "/'.*?'/", "/\\/\\*.*?\\*\\//s", "/\\/\\/[^\\n]*/", "/#.*/", "/[ \\t]+/", "/\\s+/",
            "/-?[0-9]+(?:\\.[0-9]+)?/", "/(?:0|[1-9][0-9]*)/", "/[a-z]+(?=\\()/", "/(?!if\\b)[a-z]+/", "/<[a-z]+?>/",
            "/a+/", "/a*b/", "/(?:a|b)*c?b/", "/(?:ab|a)(?:c|bcd)?/", "/a|ab|abc/", "/abc|ab|a/", "/[a-z]{1,40}/",
            "/[01]*1[01]{3}/", "/[0-9]{1,300}/", "/(?:[a-c]{2,5},?)+/", "/[a-c]+\\b/", "/.*?;/", "/[A-F]/i"]  # fmt: skip

COMMENTS = ["/#.*/", "/--[^\\n]*/", "/a/", "/\\/\\*.*?\\*\\//s"]


def random_lark(rng: random.Random) -> tuple[str, Lexing | None]:
    """A grammar's text, and how it is to be cut: None is as `guided.lark` chooses."""
    names = ["A", "B", "C", "NAME", "NUM", "WORD"][: rng.randint(1, 6)]
    lines = []
    for name in names:
        priority = rng.choice(["", "", "", "", ".2", ".-1"])
        lines.append(f"{name}{priority}: {_definition(rng)}")
    rules = ["start", "e", "s", "t", "item", "rest"][: rng.randint(1, 6)]
    literal = [f'"{word}"' for word in rng.sample(WORDS, rng.randint(1, 4)) + rng.sample(SIGNS, rng.randint(1, 5))]
    symbols = [*names, *literal]
    for index, name in enumerate(rules):
        marker = rng.choice(["", "", "", "?", "!"]) if index else ""
        options = [_expansion(rng, rules, symbols, rng.randint(0, 2)) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        if rng.random() < 0.35:
            options.append(_recursive(rng, name, symbols))
        if rng.random() < 0.08:
            options.append("")
        rng.shuffle(options)
        lines.append(f"{marker}{name}: " + " | ".join(options))
    rng.shuffle(lines)
    ignored = rng.random()
    if ignored < 0.3:
        lines.append(rng.choice(['%ignore " "', "%ignore /\\s+/", "%ignore /[ \\t]/", "%import common.WS\n%ignore WS"]))
    elif ignored < 0.42:
        lines.append("%ignore " + rng.choice([*names, *COMMENTS]))
    return "\n".join(lines), rng.choice([None, None, Lexing.CONTEXTUAL, Lexing.DYNAMIC])


def _definition(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.25:
        return f'"{rng.choice(WORDS)}"{rng.choice(["", "", "i"])}'
    if kind < 0.6:
        return rng.choice(PATTERNS)
    if kind < 0.7:
        return " | ".join(f'"{word}"' for word in rng.sample(WORDS, rng.randint(2, 5)))
    pattern = "".join(rng.choice(CLASSES) + rng.choice(QUANTIFIERS) for _ in range(rng.randint(0, 2)))
    pattern += rng.choice(CLASSES) + rng.choice(("", "", "+", "+?", "{2}", "{3,20}"))
    if rng.random() < 0.25:
        look = rng.choice(LOOKS)
        pattern = look + pattern if rng.random() < 0.3 else pattern + look
    if rng.random() < 0.15:
        pattern += "|" + rng.choice(CLASSES) + rng.choice(QUANTIFIERS)
    return f"/{pattern}/{rng.choice(['', '', '', 'i', 's'])}"


def _expansion(rng: random.Random, rules: list[str], symbols: list[str], depth: int) -> str:
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        roll = rng.random()
        if depth and roll < 0.25:
            inner = _expansion(rng, rules, symbols, depth - 1)
            if rng.random() < 0.4:
                inner += " | " + _expansion(rng, rules, symbols, depth - 1)
            part = f"({inner})" if rng.random() < 0.75 else f"[{inner}]"
        else:
            part = rng.choice(symbols) if roll < 0.75 else rng.choice(rules)
        repeat = rng.choice(["", "", "", "", "", "", "*", "+", "?"])
        if rng.random() < 0.04:
            repeat = rng.choice(["~2", "~2", "~1..3", "~1..3", "~0..30", "~7", "~2..200"])
        parts.append(part if part.startswith("[") else part + repeat)
    return " ".join(parts)


def _recursive(rng: random.Random, name: str, symbols: list[str]) -> str:
    one, other = rng.choice(symbols), rng.choice(symbols)
    shapes = [
        "{0} {1} {0}",
        "{0} {0}",
        "{0} {1}",
        "{1} {0}",
        "{1} {0} {2}",
        "{0}* {1}",
        "{1} {0} [{2} {0}]",
        "{0} {1} {0} {2}",
    ]
    return rng.choice(shapes).format(name, one, other)


BYTES = ['"a"', '"b"', '"ab"', '"abc"', '"if"', '","', '"+"', '"("', '")"', '" "', '"\\n"', '"\\""', '"0"', '"then"', '"é"',
         "[a-z]", "[0-9]", "[ab]", "[^a]", "[^\"\\\\]", "[a-zA-Z_]", "[ \\t\\n]", "[\\x00-\\x1f]", ".", "[à-ü]", "[^,\\n]"]  # fmt: skip


def random_gbnf(rng: random.Random) -> str:
    """A grammar's text, beginning at ``root``."""
    rules = ["root", "expr", "term", "list", "ws", "value"][: rng.randint(1, 6)]
    lines = []
    for name in rules:
        options = [_row(rng, rules, rng.randint(0, 3)) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        if rng.random() < 0.35:
            shape = rng.choice(["{0} {1} {0}", "{0} {0}", "{0} {1}", "{1} {0}", "{1} {0} {2}", "{0}* {1}", "{1}? {0}?"])
            options.append(shape.format(name, rng.choice(BYTES), rng.choice(BYTES)))
        if rng.random() < 0.08:
            options.append('""')
        rng.shuffle(options)
        lines.append(f"{name} ::= " + " | ".join(options))
    return "\n".join(lines) + "\n"


def _row(rng: random.Random, rules: list[str], depth: int) -> str:
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        roll = rng.random()
        if depth and roll < 0.3:
            inner = _row(rng, rules, depth - 1)
            if rng.random() < 0.4:
                inner += " | " + _row(rng, rules, depth - 1)
            part = f"({inner})"
        else:
            part = rng.choice(BYTES) if roll < 0.75 else rng.choice(rules)
        repeat = rng.choice(["", "", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,5}"])
        if rng.random() < 0.02:
            repeat = rng.choice(["{0,30}", "{7}", "{2,200}", "{100}", "{1,5000}", "{30,}"])
        parts.append(part + repeat)
    return " ".join(parts)
