"""The tokens that a tokenizer itself makes of text: its chunks and its merges together.

Exact for byte-level BPE with the pre-tokenizers of GPT-2, Llama-3 and Qwen; every other tokenizer is refused.  Two
things that a tokenizer does before are left out, since they do not belong to a text of a grammar: the text of added
tokens (``<|eot_id|>``) is text like any other, and a text that the normaliser would rewrite (Qwen: to NFC) stays as it
is.
"""

from __future__ import annotations

import hashlib
import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.errors import UnsupportedError
from guided.vocab.bpe import BytePairs
from guided.vocab.cache import Entry, load, store
from guided.vocab.splitting import DEAD, INITIAL, Pattern, Splitter, known_pattern, read_kinds
from guided.vocab.vocabulary import Vocabulary

__all__ = ["SEALED", "CanonicalTokenizer", "Place"]

Place = tuple[int, int]
"""Where a text stands after some tokens: a state of the `Splitter`, and how far into a token that is a chunk.

The second number is 0 but where the tokens since the last cut begin the merges of a token that stands for its whole
chunk (``ignore_merges``): then it says which; `SEALED` after such a token, which only a cut may follow.
"""

SEALED = -1

_KNOWN: weakref.WeakKeyDictionary[object, dict[str, CanonicalTokenizer]] = weakref.WeakKeyDictionary()
_known_lock = threading.Lock()

_KINDS: dict[str, NDArray[np.uint8]] = {}

# Part of the key on disk: raise it when `Kind` or the way of asking changes.
_FORMAT = 1

_LEADS = 96
"""Arrays of where tokens lead that are kept: half a MB each for 128,000 tokens, and a text meets some 30 states."""


class CanonicalTokenizer:
    """What a tokenizer makes of text, token by token.  Hold `lock` while using anything but `encode`."""

    def __init__(self, pairs: BytePairs, splitter: Splitter) -> None:
        self.vocabulary = pairs.vocabulary
        self.pairs = pairs
        self.splitter = splitter
        self.lock = threading.RLock()
        starts = pairs.reachable.copy()
        starts[pairs.whole] = True
        self.inner_row = tokenset.of_flags(pairs.reachable)
        """Tokens that may stand inside a chunk of several."""
        self.start_row = tokenset.of_flags(starts)
        """Tokens that may begin a chunk."""
        self.whole = frozenset(pairs.whole.tolist())
        self.whole_next: dict[tuple[int, int], int] = {}
        """From (how far, token) to how far: a trie over what merging makes of the tokens in `whole`; 0 is its root."""
        self.whole_ends: dict[int, int] = {}
        """How far, to the token that is to be written instead."""
        for token in sorted(self.whole):
            at = 0
            for part in pairs.encode_chunk(self.vocabulary.token_bytes(token) or b""):
                at = self.whole_next.setdefault((at, part), len(self.whole_next) + 1)
            self.whole_ends[at] = token
        self._leads: OrderedDict[int, NDArray[np.int32]] = OrderedDict()

    @classmethod
    def of(cls, tokenizer: Any, vocabulary: Vocabulary | None = None) -> CanonicalTokenizer:
        """Read a fast tokenizer of Hugging Face, or one of the ``tokenizers`` library; remembered while it lives.

        Takes a second for 128,000 tokens, and two more the first time, when every character is looked at.  Raises
        `UnsupportedError`, saying why, for a tokenizer that is not exactly understood, and for a vocabulary that is not
        the tokenizer's.
        """
        if isinstance(tokenizer, CanonicalTokenizer):
            return tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str") or not hasattr(backend, "pre_tokenizer"):
            raise UnsupportedError(
                f"canonical tokenisation needs a fast tokenizer, not {type(tokenizer).__name__}",
                remedy="Load the tokenizer from its tokenizer.json.",
            )
        wanted = Vocabulary.from_tokenizer(tokenizer) if vocabulary is None else vocabulary
        with _known_lock:
            try:
                known = _KNOWN.setdefault(tokenizer, {})
            except TypeError:
                known = {}
            if wanted.digest not in known:
                known[wanted.digest] = cls._read(backend, wanted)
            return known[wanted.digest]

    @classmethod
    def _read(cls, backend: Any, vocabulary: Vocabulary) -> CanonicalTokenizer:
        spec = json.loads(backend.to_str())
        normalizer = spec.get("normalizer")
        if normalizer is not None and normalizer.get("type") != "NFC":
            raise UnsupportedError(
                f"canonical tokenisation does not know the normalizer {str(normalizer)[:200]}",
                remedy="Leave out canonical tokenisation for this model.",
            )
        pattern = known_pattern(spec.get("pre_tokenizer"))
        pairs = BytePairs.of(spec["model"], vocabulary)
        for piece, token in list(spec["model"]["vocab"].items())[:: max(1, vocabulary.size // 500)]:
            if token >= vocabulary.size or (
                pairs.reachable[token] and len(piece) != len(vocabulary.token_bytes(token) or b"")
            ):
                raise UnsupportedError(
                    f"the vocabulary has other bytes for token {token} than the tokenizer",
                    remedy="Use the vocabulary of this tokenizer.",
                )
        return cls(pairs, Splitter(pattern, _kinds(backend, pattern, json.dumps(spec["pre_tokenizer"]))))

    def __reduce__(self) -> tuple[Any, ...]:
        return (CanonicalTokenizer, (self.pairs, self.splitter))

    def encode(self, text: bytes) -> list[int]:
        """The tokens of a text that begins and ends here; `ValueError` when it is not UTF-8."""
        with self.lock:
            cuts = self.splitter.cuts(text)
            found: list[int] = []
            for low, high in zip(cuts, [*cuts[1:], len(text)], strict=True):
                found += self._encode_chunk(text[low:high])
            return found

    def _encode_chunk(self, chunk: bytes) -> list[int]:
        tokens = self.pairs.encode_chunk(chunk)
        at = 0
        for token in tokens:
            at = self.whole_next.get((at, token), -1)
        return [self.whole_ends[at]] if at in self.whole_ends else tokens

    def leads(self, state: int) -> NDArray[np.int32]:
        """``int32[size]``: the splitter's state after each token from ``state``, nothing cut within it; 0 dead."""
        found = self._leads.get(state)
        if found is None:
            found = self._leads[state] = leads(self.vocabulary, self.splitter, state)
            if len(self._leads) > _LEADS:
                self._leads.popitem(last=False)
        else:
            self._leads.move_to_end(state)
        return found

    def inside(self, place: Place, last: int, token: int) -> Place | None:
        """The place when ``token`` continues the chunk of ``last``; None where it does not."""
        state, far = place
        if far == SEALED or last < 0 or not self.pairs.stay_apart(last, token):
            return None
        after = self._through(state, token)
        return (after, self.whole_next.get((far, token), 0) if far else 0) if after != DEAD else None

    def begins(self, place: Place, token: int) -> Place | None:
        """The place when ``token`` begins a chunk; None where it cannot."""
        state, far = place
        starts = self.pairs.reachable[token] or token in self.whole
        if not starts or far in self.whole_ends:
            return None
        after = self._through(self.splitter.cut(state), token)
        if after == DEAD:
            return None
        return (after, SEALED if token in self.whole else self.whole_next.get((0, token), 0))

    def _through(self, state: int, token: int) -> int:
        for byte in self.vocabulary.token_bytes(token) or b"":
            state = self.splitter.step(state, byte)
        return state

    def may_end(self, place: Place) -> bool:
        """May the text end here, all tokens before being what the tokenizer makes of it?"""
        return place[1] not in self.whole_ends and self.splitter.may_end(place[0])

    def step(self, places: frozenset[Place], last: int, token: int) -> frozenset[Place]:
        """All places after one more token; empty when the tokenizer never writes it after these tokens."""
        after = (move for place in places for move in (self.inside(place, last, token), self.begins(place, token)))
        return frozenset(place for place in after if place is not None)

    def after(self, tokens: Sequence[int]) -> tuple[frozenset[Place], int]:
        """Places and last token after a prompt.  Ids without text begin a text anew, and so does a token that the
        tokenizer would not have written after those before it.
        """
        begin = frozenset({(INITIAL, 0)})
        places, last = begin, -1
        for token in tokens[self._resume(tokens) :]:
            if not 0 <= token < self.vocabulary.size or self.vocabulary.token_bytes(token) is None:
                places, last = begin, -1
                continue
            places = self.step(places, last, token) or self.step(begin, -1, token) or begin
            last = token
        return places, last

    def _resume(self, tokens: Sequence[int]) -> int:
        """Where reading may begin: before a word after a letter and a space there is a cut, whatever came before."""
        for index in range(len(tokens) - 1, 0, -1):
            pair = [
                (self.vocabulary.token_bytes(token) or b"") if 0 <= token < self.vocabulary.size else b""
                for token in tokens[index - 1 : index + 1]
            ]
            if pair[0][-1:].isalpha() and pair[1][:1] == b" " and pair[1][1:2].isalpha():
                return index
        return 0


def _kinds(backend: Any, pattern: Pattern, pre_tokenizer: str) -> NDArray[np.uint8]:
    """The kinds of all characters, which depend on the pre-tokenizer and the library's version of Unicode alone."""
    content = f"kinds {_FORMAT};{version('tokenizers')};{pre_tokenizer}"
    key = hashlib.sha256(content.encode()).hexdigest()
    kinds = _KINDS.get(key)
    if kinds is None:
        entry = load("characters", key)
        if entry is None:
            split = backend.pre_tokenizer.pre_tokenize_str
            kinds = read_kinds(pattern, lambda text: [text[low:high] for _, (low, high) in split(text)])
            store("characters", key, Entry({}, {"kinds": kinds}))
        else:
            kinds = entry.arrays["kinds"]
        _KINDS[key] = kinds
    return kinds


def leads(vocabulary: Vocabulary, automaton: Any, state: int) -> NDArray[np.int32]:
    """Where each token of a vocabulary leads from a state of an automaton over bytes, 0 where it dies.

    ``automaton`` has ``table`` (``int32[n, 256]``, -1 not known) and ``step(state, byte)``, which makes an entry known.
    """
    from guided.kernels.tokens.canonical import walk

    after = np.zeros(vocabulary.size, np.int32)
    if state == DEAD:
        return after
    trie = vocabulary.trie
    depth = vocabulary.longest + 2
    nodes, states, cursor = np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(4, np.int64)
    nodes[0], states[0], cursor[0] = trie.n_nodes, state, 1
    arrays = (trie.byte, trie.end, trie.token_offset, trie.token_ids)
    while not walk(*arrays, automaton.table, after, nodes, states, cursor):
        automaton.step(int(cursor[2]), int(cursor[3]))
    return after
