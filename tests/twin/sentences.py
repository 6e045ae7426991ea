"""Random texts for a grammar with a lexer: sentences of its rules, the same with typing errors, and token soup."""

from __future__ import annotations

import random

from guided.grammar.ir import Body, Choice, Grammar, Reference, Repetition, Sequence, Terminal
from guided.grammar.regex.syntax import Alternatives, Characters, Concatenation, Node, Quantified


class Sampler:
    def __init__(self, grammar: Grammar, seed: int, words: tuple[str, ...] = ()) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.words = words
        self.cheapest = _cheapest(grammar)

    def text(self) -> str:
        """A sentence four times in ten, one with one or two typing errors four times, soup twice."""
        kind = self.random.random()
        if kind < 0.2:
            return self.join(
                [self.token(self.random.randrange(len(self.grammar.terminals))) for _ in range(self.size())]
            )
        text = self.join(self.tokens(self.grammar.rules[self.grammar.start].body, self.random.randint(2, 9)))
        if kind < 0.6:
            for _ in range(self.random.randint(1, 2)):
                text = self.damaged(text)
        return text

    def size(self) -> int:
        return min(int(self.random.expovariate(0.3)) + 1, 12)

    def join(self, tokens: list[str]) -> str:
        """Puts ignored text between tokens: always, never, or by chance."""
        ignore = self.grammar.ignore
        chance = self.random.choice([0.0, 0.3, 1.0, 1.0]) if ignore else 0.0
        parts: list[str] = []
        for token in [*tokens, ""]:
            if self.random.random() < chance and (token or self.random.random() < 0.3):
                parts.append(self.token(self.random.choice(ignore)))
            parts.append(token)
        return "".join(parts)

    def damaged(self, text: str) -> str:
        at = self.random.randint(0, len(text))
        kind = self.random.randrange(5)
        if kind == 0:
            return text[:at] + text[at + 1 :]
        if kind == 1 and text:
            return text[:at] + self.random.choice(text) + text[at:]
        if kind == 2:
            return text[:at] + self.token(self.random.randrange(len(self.grammar.terminals))) + text[at:]
        if kind == 3:
            return text[:at]
        return text[:at] + self.random.choice('ab1 .;"\\/*é\n-_(') + text[at + self.random.randint(0, 1) :]

    def token(self, index: int) -> str:
        if self.words and self.random.random() < 0.1:
            return self.random.choice(self.words)
        return self.match(self.grammar.terminals[index].pattern)

    def tokens(self, body: Body, budget: int) -> list[str]:
        if isinstance(body, Terminal):
            return [self.token(body.lexer)]
        if isinstance(body, Reference):
            return self.tokens(self.grammar.rules[body.rule].body, budget - 1)
        if isinstance(body, Sequence):
            return [token for part in body.parts for token in self.tokens(part, budget)]
        if isinstance(body, Choice):
            options = body.options
            if budget <= 0:
                least = min(map(self.cheapest, options))
                options = tuple(option for option in options if self.cheapest(option) == least)
            return self.tokens(self.random.choice(options), budget)
        assert isinstance(body, Repetition)
        count = body.low if budget <= 0 else body.low + self.size() // 3
        return [token for _ in range(count) for token in self.tokens(body.body, budget - 1)]

    def match(self, node: Node) -> str:
        """A text that the pattern matches but for its assertions."""
        if isinstance(node, Characters):
            low, high = self.random.choice(node.ranges[: 4 if self.random.random() < 0.95 else None])
            if low <= 0x7E and self.random.random() < 0.95:
                low, high = max(low, min(32, high)), min(high, 0x7E)
            return chr(self.random.randint(low, max(low, min(high, low + 60))))
        if isinstance(node, Concatenation):
            return "".join(map(self.match, node.parts))
        if isinstance(node, Alternatives):
            return self.match(self.random.choice(node.options))
        if isinstance(node, Quantified):
            count = node.low + int(self.random.expovariate(0.8))
            return "".join(self.match(node.body) for _ in range(count if node.high is None else min(count, node.high)))
        return ""


def _cheapest(grammar: Grammar):
    """The least nesting of rules that finishes a body."""
    depth = [10**6] * len(grammar.rules)

    def cost(body: Body) -> int:
        if isinstance(body, Terminal):
            return 0
        if isinstance(body, Reference):
            return depth[body.rule] + 1
        if isinstance(body, Sequence):
            return max(map(cost, body.parts), default=0)
        if isinstance(body, Choice):
            return min(map(cost, body.options), default=10**6)
        return cost(body.body) if body.low else 0

    for _ in grammar.rules:
        depth = [min(old, cost(rule.body)) for old, rule in zip(depth, grammar.rules, strict=True)]
    return cost
