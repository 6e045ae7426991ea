"""`guided warmup`: compile every kernel ahead, so that no later command waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.options import AsJson
from guided.cli.output import print_json, print_text
from guided.cli.progress import kernel_compilation

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.vocab import Vocabulary

__all__ = ["warmup"]


def warmup(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels ahead: once after installing, or when building an image.

    They are kept beside the package, or in `NUMBA_CACHE_DIR` where that is set.

    **Examples:**

        guided warmup
        NUMBA_CACHE_DIR=/opt/cache guided warmup --quiet
    """
    began = time.perf_counter()
    with kernel_compilation(quiet=quiet or as_json) as compiled:
        exercise()
    seconds = time.perf_counter() - began
    if as_json:
        print_json({"compiled": len(compiled), "seconds": round(seconds, 3), "cache": _cache_folder()})
    elif not quiet:
        done = f"{len(compiled)} kernels compiled" if compiled else "all kernels were compiled already"
        print_text(f"{done} ({seconds:.1f} s); they are kept in {_cache_folder()}")


def exercise() -> None:
    """Call every kernel with arguments of the types that it is ever called with."""
    import torch

    import guided

    words: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    words += [b'{"', b'": ', b"ab", b"if", b"12", b"aaaa", None]
    vocabulary = guided.Vocabulary.from_tokens(words, eos_ids=[len(words) - 1])
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
    for grammar, text in (
        (guided.json_schema(schema), b'{"name": "ab", "tags": ["x"], "z": [1, {"y": null}], "n": 12, "code": "abc"}'),
        (guided.regex(r"\b[^\d]{2,40}(?=x)x|\p{L}+"), b"abx"),
        (guided.lark(lalr), b"if ab cd"),
        (guided.lark(earley), b"aab"),
        (guided.gbnf(recursive), b"[ab,[cd]]"),
    ):
        constraint = guided.compile(grammar, vocabulary)
        _walk(constraint, vocabulary, text)
    rows = guided.allocate_masks(2, vocabulary.size)
    for _ in range(2):
        guided.fill_masks([constraint, constraint], [constraint.start, constraint.start], rows)
    guided.apply_masks(torch.zeros(2, vocabulary.size), rows)


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
    if not constraint.advance_bytes(constraint.start, text):
        raise AssertionError(f"the warm-up text {text!r} is not in its language")


def _cache_folder() -> str:
    from guided.kernels import entry

    stats: Any = entry.fill.stats
    return str(stats.cache_path)
