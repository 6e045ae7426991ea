"""Our LALR(1) tables are Lark's: the same states, moves and reductions, and a conflict exactly where Lark finds one."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from lark.common import ParserConf
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

import guided
from guided.errors import GuidedError, LimitError
from guided.grammar.lark.load import load
from guided.grammar.lark.rules import number_rules
from guided.grammar.lark.tables import read_tables
from guided.grammar.lark.terminals import for_contextual_lexer
from tests.amounts import some
from tests.twin.random_sources import random_lark


def _lark_tables(rules: Any) -> Any:
    """Lark's table, or None where it has a conflict."""
    analyser = LALR_Analyzer(ParserConf(list(rules), {}, ["start"]))
    analyser.compute_lr0_states()
    analyser.compute_reads_relations()
    analyser.compute_includes_lookback()
    analyser.compute_lookaheads()
    for itemset in analyser.lr0_itemsets:
        for symbol, reductions in itemset.lookaheads.items():
            if len(reductions) > 1 or symbol in itemset.transitions:
                return None
    analyser.compute_lalr1_states()
    return analyser.parse_table


def _compare(seed: int) -> str:
    source, _ = random_lark(random.Random(f"tables {seed}"))
    try:
        loaded = load(source, "start", [], regex=False)
        terminals = for_contextual_lexer(loaded.terminals, loaded.ignore, {})
    except GuidedError:
        return "refused"
    if sum(len(rule.expansion) for rule in loaded.rules) > 400:
        return "large"
    numbers = number_rules(loaded.rules)
    ours, theirs = read_tables(loaded.rules, "start", terminals, numbers), _lark_tables(loaded.rules)
    if isinstance(ours, str):
        assert theirs is None, (source, ours)
        return "conflict"
    assert theirs is not None, source
    index = {rule: position for position, rule in enumerate(loaded.rules)}
    pairs = {ours.start: theirs.start_states["start"]}
    for state in (queue := [ours.start]):
        row = {str(name): action for name, action in theirs.states[pairs[state]].items()}
        moves = dict(ours.goto[state])
        for name, (kind, target) in row.items():
            if name in numbers:
                moves.pop(numbers[name])
                to = ours.goto[state][numbers[name]]
            elif name == "$END":
                assert ours.reduce[state][ours.end] == index[target]
                continue
            else:
                terminal = terminals.index[name]
                if terminal in terminals.ignore:
                    continue
                if kind is not Shift:
                    assert ours.reduce[state][terminal] == index[target]
                    continue
                to = ours.shift[state][terminal]
            if to not in pairs:
                pairs[to] = target
                queue.append(to)
            assert pairs[to] == target, source
        assert not moves
        known = {terminals.index[name] for name in row if name in terminals.index}
        assert {t for t in (*ours.shift[state], *ours.reduce[state]) if t < len(loaded.terminals)} <= known
    assert pairs[ours.final] == theirs.end_states["start"]
    return "equal"


def test_tables_are_larks() -> None:
    found = [_compare(seed) for seed in range(some(60, 2))]
    assert found.count("equal") > some(5)
    assert found.count("conflict") > some(5)
    assert found.count("refused") < 7


@pytest.mark.slow
def test_many_tables_are_larks() -> None:
    found = [_compare(seed) for seed in range(100, 3000)]
    assert found.count("equal") > 200
    assert found.count("refused") < 200


@pytest.mark.parametrize(
    "source",
    [
        "start: (A B | C)~6 (A | B)~8",
        "start: " + " ".join(["A?"] * 14) + " B",
        "start: [A [B [C]]] " + "(A | B C)~3..5 " * 3,
        "start: (((A | B)~4 | C)~4 | B)~4",
    ],
)
def test_rules_that_lark_would_multiply_out_for_minutes_are_refused(source: str) -> None:
    begun = time.process_time()
    with pytest.raises(LimitError, match="multiplied its alternatives out"):
        guided.lark(source + '\nA: "a"\nB: "b"\nC: "c"')
    assert time.process_time() - begun < 2
