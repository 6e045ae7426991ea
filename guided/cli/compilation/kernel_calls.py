"""Calls of every kernel with arguments of the types that it is ever called with: what `guided warmup` compiles by.

`everything` is all of it.  The others are for two processes that share the work: the one begins with `masks`, the other
with `alone` and `steps`, which have most of their kernels to themselves.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.grammar.ir import Grammar
    from guided.vocab import Vocabulary

__all__ = ["alone", "everything", "masks", "steps"]


def masks() -> None:
    """Fill masks of start states, which is the largest kernel, with the surveys of strings that it asks for."""
    import numpy as np

    vocabulary = _vocabulary()
    from guided.constraint.effects.shared_rows import with_address
    from guided.constraint.stepping import step_rows

    row = np.zeros(vocabulary.n_words, np.uint32)
    for grammar, text in _grammars()[:2]:
        constraint = _compiled(grammar, vocabulary)
        constraint.fill_mask(constraint.start, row)
        step_rows([constraint], [constraint.start], [text[0]], [None], [with_address(row)])
        _go_on(constraint, text)
    _closings(vocabulary)


def alone() -> None:
    """Call the kernels that have nothing to do with automata and parsers."""
    vocabulary = _vocabulary()
    _apply(vocabulary)
    _index(vocabulary)
    _draws()
    _masses()
    _pairs()
    _combinations()
    _queries(vocabulary)


def steps() -> None:
    """Read texts and ask what may come next, without any mask."""
    from guided.constraint.engine.machine import ConstraintMachine

    vocabulary = _vocabulary()
    for grammar, text in _grammars():
        constraint = _compiled(grammar, vocabulary)
        _read(constraint, text)
        state = constraint.start
        machine = constraint._machine
        if isinstance(machine, ConstraintMachine):
            machine.advance_each(state, list(range(256)))
        for byte in text:
            constraint.forced(state)
            constraint.shortest_completion(state)
            state = constraint.advance(state, byte)


def everything() -> None:
    """Masks, steps, budgets and batches on every kind of grammar."""
    import numpy as np

    from guided.constraint.effects.shared_rows import with_address
    from guided.constraint.stepping import step_rows

    vocabulary = _vocabulary()
    row = with_address(np.zeros(vocabulary.n_words, np.uint32))
    for grammar, text in _grammars():
        constraint = _compiled(grammar, vocabulary)
        step_rows([constraint], [constraint.start], [text[0]], [None], [row])
        _go_on(constraint, text)
        _walk(constraint, vocabulary, text)
    _canonical()
    _index(vocabulary)
    _draws()
    _masses()
    _apply(vocabulary)
    _combinations()
    _growth(vocabulary)
    _closings(vocabulary)
    _prices(vocabulary)
    _queries(vocabulary)


def _vocabulary() -> Vocabulary:
    import guided

    words: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    # Strings end in two of them before the same byte, so that what is left of tokens is merged.
    words += [b'{"', b'": ', b"ab", b"if", b"12", b"aaaa", b'a",', b'b",', None]
    return guided.Vocabulary.from_tokens(words, eos_ids=[len(words) - 1])


def _grammars() -> list[tuple[Grammar, bytes]]:
    """A grammar of each kind that the engine tells apart, with a text of it."""
    import guided

    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 9},
            "n": {"type": "number", "minimum": 0, "maximum": 20},
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


def _queries(vocabulary: Vocabulary) -> None:
    """Masks of a language that has no automaton."""
    import numpy as np

    import guided
    from guided.grammar.sql import Column, DatabaseSchema, Table

    constraint = guided.compile(guided.sql(DatabaseSchema((Table("t", (Column("a"),)),))), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in (b"", b"SELECT x", b"SELECT 'x"):
        constraint.fill_mask(constraint.advance_bytes(constraint.start, text), row)


def _compiled(grammar: Grammar, vocabulary: Vocabulary) -> Constraint:
    import guided

    return guided.compile(grammar, vocabulary)


def _go_on(constraint: Constraint, text: bytes) -> None:
    """Take a token as a row of an engine's step."""
    import numpy as np

    from guided.serving.matcher import Matcher
    from guided.serving.tracks import Tracks, entry

    tracks = Tracks(1, constraint.vocabulary.n_words)
    place = tracks.take(entry(Matcher(constraint), constraint.kept_row(constraint.start)))
    tracks.seat([place.line])
    place.note(text[0])
    tracks.go_on()
    tracks.copy(np.zeros((1, constraint.vocabulary.n_words), np.uint32))


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
    # Within a string's last bytes, and in the middle of an escape.
    for budget in range(2, 24):
        constraint.fill_budget_mask(constraint.start, row, constraint.shortest_completion(constraint.start) + budget)
    _read(constraint, text)


def _apply(vocabulary: Vocabulary) -> None:
    """Copy rows and apply them to scores of 32 and of 16 bits, as arrays: importing torch would take longer."""
    import numpy as np

    from guided.kernels.data.addresses import address, address_rows
    from guided.kernels.masking.apply import apply_rows, copy_rows

    masks = np.zeros((2, vocabulary.n_words), np.uint32)
    places = address_rows([masks[:1], masks[1:]])
    copy_rows(places, masks)
    width = 32 * vocabulary.n_words
    for kind in (np.int32, np.int16):
        scores = np.zeros(2 * width, kind)
        drops = np.zeros((256, 8), kind)
        begin, stride = address(scores), scores.itemsize * width
        apply_rows(begin, begin, stride, stride, places, width, 0, 2, kind(0), drops)


def _draws() -> None:
    """Draw a token of a row, in both precisions."""
    import numpy as np

    from guided.kernels.masking.draws import draw_rows

    longs, masks = np.zeros(2, np.int64), np.zeros((1, 3), np.int64)
    for row in (np.zeros((1, 2), np.float32), np.zeros((1, 2))):
        draw_rows(row, masks, np.ones((1, 2)), longs, longs, np.ones(2), np.ones((3, 2)), longs, np.ones((1, 6)))


def _masses() -> None:
    """Read a distribution of tokens by runs, in both precisions, and pairs."""
    import numpy as np

    from guided.kernels.tokens.log_masses import product_sums, run_masses, spread, sum_maxima

    tokens, starts, found = np.arange(2), np.zeros(1, np.int64), np.zeros(2)
    product_sums(found, tokens, found, tokens, starts, found[:1])
    sum_maxima(found, tokens, found, tokens, starts, found[:1])
    for row in (np.zeros(2, np.float32), np.zeros(2)):
        run_masses(row, tokens, starts, found[:1], found[1:])
        spread(row, tokens, starts, found[:1], np.zeros(2))


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


def _combinations() -> None:
    """Make an automaton of two patterns, and parts of its states."""
    from guided.automata.lexer.states import StateTable
    from guided.grammar.regular.expr import ALL, byte_range, concat, intersection, json_string, literal, repeat

    table = StateTable()
    both = table.add(json_string(intersection((repeat(byte_range(0, 0xF4)), concat(ALL, literal(b"b"))))))
    table.expand(both)


def _closings(vocabulary: Vocabulary) -> None:
    """Ask where strings of any text close, at no node, how they differ, and how far no token is from an end."""
    import numpy as np

    from guided.constraint.effects.characters_left import CharactersLeft
    from guided.constraint.effects.surveys import Surveys
    from guided.constraint.effects.token_effects import TokenEffects
    from guided.grammar.regular.characters import Utf8
    from guided.grammar.regular.expr import json_string
    from guided.kernels.data.layout import MATCHED

    effects = TokenEffects.of(vocabulary)
    surveys = Surveys(effects.states, effects.tries, effects.store)
    surveys.closing(MATCHED, surveys.paths(1, np.zeros(0, np.int32)))
    state = effects.states.add(json_string(Utf8().text))
    effects.states.expand(state)
    surveys.remember(state, effects.store.row(np.zeros(0, np.int32)), np.zeros((0, 4), np.int32))
    surveys.write_from_similar(state)
    CharactersLeft(effects.states).of_tokens(np.zeros(0, np.int64))


def _prices(vocabulary: Vocabulary) -> None:
    """Price continuations that no mask has come by, as where the shortest text takes more tokens than are left."""
    import guided

    constraint = _compiled(guided.choice(["priced", "alone"]), vocabulary)
    constraint._machine.cheapest_text(constraint.start)


def _growth(vocabulary: Vocabulary) -> None:
    """Make room in hash tables: for continuations and states, for sets of parts, and for pairs of tokens."""
    import numpy as np

    from guided.automata.lexer.states import StateTable
    from guided.kernels.tokens.canonical import rehash_pairs

    StateTable().make_room()

    constraint = _compiled(_grammars()[-1][0], vocabulary)
    _read(constraint, b"[" * 300 + b"ab" + b"]" * 300)
    tables = [(np.full(size, -1, np.int64), np.zeros(size, np.uint8), np.zeros(size, np.int32)) for size in (4, 8)]
    rehash_pairs(*tables[0], *tables[1])


def _pairs() -> None:
    """Ask which tokens of a byte-level BPE tokenizer stay apart."""
    import numpy as np

    from guided.vocab.bpe import BytePairs

    tokenizer, vocabulary = _byte_level()
    pairs = BytePairs.of(json.loads(tokenizer.to_str())["model"], vocabulary)
    tokens = np.arange(2)
    pairs.successors(0)
    pairs.stay_apart(0, 1)
    pairs.first_apart(0, tokens)
    pairs.any_apart(tokens, tokens)
    pairs.encode_chunk(b"abab")


def _byte_level() -> tuple[Any, Vocabulary]:
    """A tokenizer with the pre-tokenizer of GPT-2 and a few merges, and its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    import guided

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "b"), ("ab", "ab"), ("Ġ", "a"), ("b", "a"), ("abab", "ab")]
    words = [*letters, *("".join(pair) for pair in merges)]
    tokenizer: Any = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer, guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[len(words)], cache=False)


def _canonical() -> None:
    """What a byte-level BPE tokenizer with the pre-tokenizer of GPT-2 makes of a text."""
    import numpy as np

    import guided

    tokenizer, vocabulary = _byte_level()
    text = "abababa ab abab"
    constraint = guided.canonical(guided.compile(guided.regex("[ab ]{2,90}"), vocabulary), tokenizer)
    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for token in tokenizer.encode(text).ids:
        constraint.fill_mask(state, row)
        state = constraint.advance(state, token)
        if not state:
            raise AssertionError(f"the warm-up text {text!r} is not in canonical tokens")
