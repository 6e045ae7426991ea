"""Calls of every kernel with arguments of the types that it is ever called with: what `guided warmup` compiles by.

`masks` and `steps` are two halves of the work that take about as long and share little; `everything` is all of it, and
costs seconds where the halves were compiled before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.grammar.ir import Grammar
    from guided.vocab import Vocabulary

__all__ = ["everything", "masks", "steps"]


def masks() -> None:
    """Fill masks of start states, which is the largest kernel, with the surveys of strings that it asks for."""
    import numpy as np

    vocabulary = _vocabulary()
    row = np.zeros(vocabulary.n_words, np.uint32)
    for grammar, _ in _grammars()[:2]:
        constraint = _compiled(grammar, vocabulary)
        constraint.fill_mask(constraint.start, row)


def steps() -> None:
    """Read texts and ask what may come next, without any mask."""
    vocabulary = _vocabulary()
    for grammar, text in _grammars():
        constraint = _compiled(grammar, vocabulary)
        _read(constraint, text)
        constraint.advance(constraint.start, text[0])
        constraint.shortest_completion(constraint.start)
        constraint.forced(constraint.start)
    _apply(constraint, vocabulary)


def everything() -> None:
    """Masks, steps, budgets and batches on every kind of grammar."""
    vocabulary = _vocabulary()
    for grammar, text in _grammars():
        constraint = _compiled(grammar, vocabulary)
        _walk(constraint, vocabulary, text)
    _canonical()
    _index(vocabulary)
    _apply(constraint, vocabulary)


def _vocabulary() -> Vocabulary:
    import guided

    words: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    words += [b'{"', b'": ', b"ab", b"if", b"12", b"aaaa", None]
    return guided.Vocabulary.from_tokens(words, eos_ids=[len(words) - 1])


def _grammars() -> list[tuple[Grammar, bytes]]:
    """A grammar of each kind that the engine tells apart, with a text of it."""
    import guided

    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 9},
            "n": {"type": "number"},
            "code": {"type": "string", "pattern": "b"},
        },
        "required": ["name"],
    }
    lalr = 'start: (name | "if" name)+\nname: /[a-z]+/\n%ignore " "'
    earley = 'start: start start | "a" | /a+?b/'
    recursive = 'root ::= "[" (root ("," root)*)? "]" | [a-z]{2,9}'
    return [
        (guided.json_schema(schema), b'{"name": "ab", "tags": ["x"], "z": [1, {"y": null}], "n": 12, "code": "abc"}'),
        (guided.regex(r"\b[^\d]{2,40}(?=x)x|\p{L}+"), b"abx"),
        (guided.lark(lalr), b"if ab cd"),
        (guided.lark(earley), b"aab"),
        (guided.gbnf(recursive), b"[ab,[cd]]"),
    ]


def _compiled(grammar: Grammar, vocabulary: Vocabulary) -> Constraint:
    import guided

    return guided.compile(grammar, vocabulary)


def _read(constraint: Constraint, text: bytes) -> None:
    if not constraint.advance_bytes(constraint.start, text):
        raise AssertionError(f"the warm-up text {text!r} is not in its language")


def _walk(constraint: Constraint, vocabulary: Vocabulary, text: bytes) -> None:
    import numpy as np

    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for byte in text:
        constraint.fill_mask(state, row)
        constraint.forced(state)
        budget = constraint.shortest_completion(state) + 3
        constraint.fill_budget_mask(state, row, budget)
        state = constraint.advance(state, byte)
        if not state:
            raise AssertionError(f"the warm-up text {text!r} is not in its language")
    _read(constraint, text)


def _apply(constraint: Constraint, vocabulary: Vocabulary) -> None:
    import torch

    import guided

    rows = guided.allocate_masks(2, vocabulary.size)
    # Rows that are remembered from the beginning: nothing is filled, which is the other half's work.
    guided.fill_masks([constraint, constraint], [constraint.end, constraint.end], rows)
    for dtype in (torch.float32, torch.float16):
        scores = torch.zeros(2, vocabulary.size, dtype=dtype)
        guided.apply_masks(scores, rows, out=torch.empty_like(scores))
        guided.apply_masks(scores, rows)


def _index(vocabulary: Vocabulary) -> None:
    """Ask an index of documents, by tokens and by bytes."""
    import numpy as np

    from guided.monitor.ngrams import ngrams
    from guided.monitor.substrings import substring

    row = np.zeros(vocabulary.n_words, np.uint32)
    by_tokens = ngrams([list(b"abab")], vocabulary)
    by_bytes = substring("abab", vocabulary)
    for constraint in (by_tokens, by_bytes):
        state = constraint.advance(constraint.start, ord("a"))
        constraint.fill_mask(state, row)
        constraint.fill_budget_mask(constraint.start, row, 3)
    by_tokens.occurrences(list(b"ab"))


def _canonical() -> None:
    """What a byte-level BPE tokenizer with the pre-tokenizer of GPT-2 makes of a text."""
    import numpy as np
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    import guided

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "b"), ("ab", "ab"), ("Ġ", "a"), ("b", "a"), ("abab", "ab")]
    words = [*letters, *("".join(pair) for pair in merges)]
    tokenizer: Any = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    vocabulary = guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[len(words)], cache=False)
    text = "abababa ab abab"
    constraint = guided.canonical(guided.compile(guided.regex("[ab ]{2,90}"), vocabulary), tokenizer)
    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for token in tokenizer.encode(text).ids:
        constraint.fill_mask(state, row)
        state = constraint.advance(state, token)
        if not state:
            raise AssertionError(f"the warm-up text {text!r} is not in canonical tokens")
