"""Texts of TypeScript, well typed and not, and what its compiler says of them.

    npm install --prefix FOLDER typescript@5.9.3
    python -m tests.twin.typed_typescript FOLDER [--seed 0] [--texts 900] [--bodies 200]

writes `tests/unit/grammar/typed_typescript/verdicts.json`: texts of each goal, a third drawn from the grammar, a third of
these with a word replaced, a third composed without regard to types, each with the error that the compiler gives; and
bodies of functions, half of them with a word replaced.  The tests themselves need no node.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

import guided
from guided.constraint.protocol import Constrains
from guided.grammar.typed_typescript import typescript_expression, typescript_statements
from tests import vocabularies
from tests.conftest import ROOT

VERDICTS = ROOT / "tests/unit/grammar/typed_typescript/verdicts.json"
CHECKER = Path(__file__).parent / "typescript_verdicts.js"

DECLARATIONS = """\
type Kind = "circle" | "square" | "blob";
interface Point { x: number; y: number; label?: string }
interface Weighted extends Point { weight: number; tags: string[] }
interface Shape {
  readonly name: string; kind: Kind; corners: Point[]; closed: boolean; secret: Map<string, number>;
  area(scale?: number): number; nearest(to: Point, among: Shape[]): Shape
}
type Options = { limit?: number; title?: string };
declare class Account {
  owner: string; balance: number;
  constructor(owner: string, balance?: number);
  deposit(amount: number): void; rename(to: string): Account
}
declare const ratio: number;
declare let n: number, done: boolean, title: string, kind: Kind;
declare const kinds: Kind[], flags: boolean[], words: string[];
declare const points: Point[], heavy: Weighted[], shape: Shape, account: Account, grid: number[][], options: Options;
declare function longest(texts: string[], least?: number): string;
declare function distance(a: Point, b: Point): number;
declare function pick(kind: Kind, of: Shape[]): Shape;
declare function configure(options: Options, verbose?: boolean): number[];
declare function log(text: string): void;
"""

GOALS = [
    "number", "string", "boolean", "Point", "Kind", '"circle" | "square"', "Weighted", "Shape", "Options", "Account",
    "string[]", "number[]", "boolean[]", "Kind[]", "Point[]", "Weighted[]", "Shape[]", "number[][]",
]  # fmt: skip

NAMES = [
    "n", "ratio", "done", "title", "kind", "kinds", "flags", "words", "points", "heavy", "shape", "account", "grid",
    "options", "item",
]  # fmt: skip
MEMBERS = [
    "x", "y", "label", "weight", "tags", "name", "kind", "corners", "closed", "secret", "owner", "balance", "length",
    "limit",
]  # fmt: skip
METHODS = [
    "area", "nearest", "deposit", "rename", "toUpperCase", "includes", "indexOf", "join", "slice", "concat", "toFixed",
    "split",
]  # fmt: skip
FUNCTIONS = ["longest", "distance", "pick", "configure", "new Account", "log"]
LITERALS = ["0", "1.5", '"circle"', '"ab"', "true", "[]", "{}", "{ x: 1, y: 2 }", "`a${n}`"]


@cache
def constraint_of(goal: str) -> Constrains:
    return guided.compile(typescript_expression(goal, DECLARATIONS), vocabularies.of_bytes())


RETURNS = ["void", "number", "Point", "Kind"]


@cache
def body_constraint_of(returns: str) -> Constrains:
    grammar = typescript_statements(DECLARATIONS, returns=returns, levels=2, indent=1)
    return guided.compile(grammar, vocabularies.of_bytes())


def drawn(rnd: random.Random, constraint: Constrains, most: int) -> str:
    """A text of the language by a random walk over bytes, in which letters within texts are rare."""
    state, data = constraint.start, b""
    bits = np.zeros(constraint.vocabulary.n_words, np.uint32)
    while len(data) < most and not (constraint.is_accepting(state) and rnd.random() < 0.05):
        constraint.fill_budget_mask(state, bits, most - len(data))
        allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()
        allowed = [token for token in allowed if constraint.vocabulary.token_bytes(token)]
        if not allowed:
            break
        inside = len(allowed) > 40
        weights = [0.15 if inside and chr(token).isalnum() else 1.0 for token in allowed]
        (token,) = rnd.choices(allowed, weights)
        data += constraint.vocabulary.token_bytes(token) or b""
        state = constraint.advance(state, token)
    return data.decode()


def composed(rnd: random.Random, depth: int, *, tailed: bool = False) -> str:
    """An expression in the grammar's layout, of any type or none."""
    if depth == 0 or rnd.random() < 0.2:
        return rnd.choice([*NAMES, *NAMES, *(['"ab"'] if tailed else LITERALS)])

    def deeper() -> str:
        return composed(rnd, depth - 1)

    def owner() -> str:
        return composed(rnd, depth - 1, tailed=True)

    def several() -> str:
        return ", ".join(deeper() for _ in range(rnd.randint(0, 3)))

    ways = [
        lambda: f"{owner()}.{rnd.choice(MEMBERS)}",
        lambda: f"{owner()}.{rnd.choice(MEMBERS)}",
        lambda: f"{owner()}.{rnd.choice(METHODS)}({several()})",
        lambda: f"{owner()}[{deeper()}]",
        lambda: f"{rnd.choice(FUNCTIONS)}({several()})",
        lambda: f"{owner()}.{rnd.choice(['map', 'filter', 'some', 'every'])}(item => {deeper()})",
    ]
    if not tailed:
        ways += [
            lambda: f"({deeper()})",
            lambda: f"{deeper()} {rnd.choice(['+', '-', '*', '/', '%'])} {deeper()}",
            lambda: f"{deeper()} {rnd.choice(['<', '<=', '>', '>=', '===', '!=='])} {deeper()}",
            lambda: f"{deeper()} {rnd.choice(['&&', '||'])} {deeper()}",
            lambda: f"!{deeper()}",
            lambda: f"[{several()}]",
            lambda: f"{deeper()} ? {deeper()} : {deeper()}",
            lambda: f"{{ x: {deeper()}, y: {deeper()} }}",
        ]
    return rnd.choice(ways)()


def replaced(rnd: random.Random, text: str) -> str:
    """A text with one of its words replaced."""
    found = re.findall(r'"[^"]*"|\w+', text)
    words = [*NAMES, *MEMBERS, "0", "1", '"circle"', '"ab"', "true"]
    return text.replace(rnd.choice(found), rnd.choice(words), 1) if found else text


def texts(seed: int, n: int) -> list[tuple[str, str]]:
    """Goals and texts, no two the same."""
    rnd = random.Random(seed)
    constraints = {goal: constraint_of(goal) for goal in GOALS}
    found: dict[tuple[str, str], None] = {}
    while len(found) < n:
        goal = rnd.choice(GOALS)
        drawn_text = drawn(rnd, constraints[goal], rnd.choice([20, 40, 80]))
        ways = [drawn_text, replaced(rnd, drawn_text), composed(rnd, rnd.randint(1, 3))]
        found[goal, rnd.choice(ways)] = None
    return list(found)


def bodies(seed: int, n: int) -> list[tuple[str, str]]:
    """Results and bodies, half of them with a word replaced."""
    rnd = random.Random(seed)
    constraints = {returns: body_constraint_of(returns) for returns in RETURNS}
    found = []
    for number in range(n):
        returns = rnd.choice(RETURNS)
        text = drawn(rnd, constraints[returns], rnd.choice([40, 80, 160, 320]))
        found.append((returns, replaced(rnd, text) if number % 2 else text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where npm has installed typescript")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", type=int, default=900)
    parser.add_argument("--bodies", type=int, default=200)
    options = parser.parse_args()
    expressions, functions = texts(options.seed, options.texts), bodies(options.seed, options.bodies)
    items = [(f"{{ const v: {goal} = ", text, "; }") for goal, text in expressions]
    items += [(f"function f{number}(): {of} {{\n", text, "}") for number, (of, text) in enumerate(functions)]
    environment = {**os.environ, "NODE_PATH": str(options.folder.absolute() / "node_modules")}
    done = subprocess.run(
        ["node", CHECKER.absolute()], input=json.dumps([DECLARATIONS, items]), capture_output=True, text=True,
        cwd=options.folder, check=True, env=environment,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    rows = [[*item, verdict] for item, verdict in zip([*expressions, *functions], answer["verdicts"], strict=True)]
    parts = {"texts": rows[: len(expressions)], "bodies": rows[len(expressions) :]}
    written = [f'"{name}": [\n' + ",\n".join(map(json.dumps, of)) + "\n]" for name, of in parts.items()]
    VERDICTS.write_text(f'{{"compiler": {json.dumps(answer["version"])}, ' + ", ".join(written) + "}\n")
    print({name: f"{sum(not row[-1] for row in of)} of {len(of)} without an error" for name, of in parts.items()})


if __name__ == "__main__":
    main()
