"""The public class: what every id of a model's output means in bytes.

How a tokenizer's ids are turned into bytes is in `guided.vocab.families`; nothing here depends on a tokenizer library.
"""

from __future__ import annotations

import hashlib
import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.errors import VocabularyError
from guided.html import card, facts
from guided.vocab.cache import Entry, load, store
from guided.vocab.special import Spelling, checked_special_tokens, spell
from guided.vocab.trie import Trie, build_trie

__all__ = ["Vocabulary"]

# Part of the cache's key: raise it when the bytes read for a tokenizer, the trie or the entry's arrays change meaning.
_FORMAT = 2

_SHOWN = 8
"""Special tokens that a notebook names."""

# One object per content: constraints that were compiled or unpickled apart still share what is kept with a vocabulary.
_BY_DIGEST: weakref.WeakValueDictionary[str, Vocabulary] = weakref.WeakValueDictionary()


class Vocabulary:
    """The bytes of every token id, and the end-of-text ids; immutable, picklable, equal and hashed by content.

    Build it with `from_tokenizer` or `from_tokens`.  Concatenating the bytes of generated tokens gives the bytes of
    the generated text; an id without bytes (special, added, unused, padding, end of text) never matches text.  Special
    tokens have names, by which a grammar may ask for them (`guided.special_token`); they have no bytes all the same.

    Raises `TypeError` when called: use `from_tokenizer` or `from_tokens`.

    >>> vocab = Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    >>> vocab.size, vocab.eos_ids, vocab.token_bytes(2), vocab.token_bytes(3)
    (4, (3,), b'ab', None)
    """

    size: int
    """Number of ids: the width of the model's logits."""
    eos_ids: tuple[int, ...]
    """The end-of-text ids, ascending."""
    digest: str
    """Hex SHA-256 of the content: equal for equal vocabularies on every machine."""
    first_token_strips_space: bool
    """True where the tokenizer's ``decode`` drops one leading space of the first token of a whole text.

    So it is for SentencePiece with a dummy prefix (Llama-2, T5) and for WordPiece.  ``token_bytes`` keeps the space: it
    is real when the token continues a prompt, and only a caller that starts from an empty text may strip it.  (Where
    that first token is white space alone or a ``##`` continuation, some decoders print it differently still.)
    """
    special_tokens: Mapping[str, int]
    """The ids that a grammar may ask for by name; an end-of-text id among them still only ends the text."""
    data: NDArray[np.uint8]
    """``uint8[total]``: all token bytes end to end, in order of id; read-only."""
    offsets: NDArray[np.int64]
    """``int64[size + 1]``: token ``t`` is ``data[offsets[t]:offsets[t + 1]]``, empty where it never matches text."""

    def __init__(self) -> None:
        raise TypeError("build a Vocabulary with Vocabulary.from_tokenizer(...) or Vocabulary.from_tokens(...)")

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        *,
        eos_ids: Iterable[int],
        special_tokens: Mapping[str, int] | None = None,
        first_token_strips_space: bool = False,
    ) -> Vocabulary:
        """Make a vocabulary from the bytes of each id; ``None`` and ``b""`` never match text.

        An end-of-text id never matches text either, whatever its entry, and neither does an id of ``special_tokens``,
        which names those that grammars may ask for.  ``eos_ids`` may be empty, and then nothing ever ends a generation.
        In a vocabulary with special tokens no grammar can ask for the byte 0xFF, which no UTF-8 text holds.

        Raises `VocabularyError` for ids outside ``range(len(tokens))``, for empty names and for ids with two names,
        and `TypeError` for an entry that is neither bytes nor ``None``.
        """
        ends = _checked_eos_ids(eos_ids, len(tokens))
        special = checked_special_tokens(special_tokens or {}, len(tokens))
        texts = [b"" if token is None else token for token in tokens]
        for silent in (*ends, *special.values()):
            texts[silent] = b""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        try:
            joined = b"".join(texts)
        except TypeError:
            position = next(i for i, text in enumerate(texts) if not isinstance(text, bytes))
            raise TypeError(f"tokens[{position}] is {type(texts[position]).__name__}, not bytes or None") from None
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return cls._of(np.frombuffer(joined, np.uint8), offsets, ends, special, first_token_strips_space)

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: object,
        *,
        size: int | None = None,
        eos_ids: Iterable[int] | None = None,
        text_ids: Iterable[int] = (),
        cache: bool = True,
    ) -> Vocabulary:
        """Read the bytes of every id from a tokenizer: Hugging Face, ``tokenizers``, tiktoken or SentencePiece.

        ``size`` is the width of the model's logits where it exceeds the tokenizer's: the ids above are padding.
        ``eos_ids`` replaces the tokenizer's own end-of-text id; pass the generation configuration's where it has
        several.  Special and added tokens never match text, even when they are not marked special (Gemma's runs of
        white space, ``<tool_call>``); ``text_ids`` names added tokens whose content is text all the same.  All others
        are in `special_tokens` by their content.

        ``cache=False`` neither reads nor writes the cache on disk.  Raises `VocabularyError` naming the ids whose
        bytes cannot be known, or saying that no end-of-text id was found.
        """
        from guided.vocab.families import read_tokenizer

        reading = read_tokenizer(tokenizer, eos_ids=eos_ids, text_ids=text_ids)
        key = hashlib.sha256(f"vocabulary {_FORMAT};{reading.key()};{size}".encode()).hexdigest()
        entry = load("vocabulary", key) if cache else None
        if entry is not None:
            return cls._of_entry(entry)
        table = reading.table()
        tokens = table.tokens
        if size is not None:
            if size < len(tokens):
                raise VocabularyError(
                    f"size={size} is less than the tokenizer's {len(tokens)} ids",
                    remedy="Pass the width of the model's logits, or leave size out.",
                )
            tokens = tokens + [None] * (size - len(tokens))
        self = cls.from_tokens(
            tokens,
            eos_ids=reading.eos_ids,
            special_tokens=table.special,
            first_token_strips_space=table.first_token_strips_space,
        )
        if cache:
            store("vocabulary", key, self._entry())
        return self

    def _entry(self) -> Entry:
        trie = self.trie
        facts = {
            "digest": self.digest,
            "eos_ids": self.eos_ids,
            "special": dict(self.special_tokens),
            "strips": self.first_token_strips_space,
        }
        arrays: dict[str, NDArray[Any]] = {
            "data": self.data,
            "lengths": np.diff(self.offsets).astype(np.int32),
            "byte": trie.byte,
            "end": trie.end,
            "token_offset": trie.token_offset,
            "token_ids": trie.token_ids,
        }
        return Entry(facts=facts, arrays=arrays)

    @classmethod
    def _of_entry(cls, entry: Entry) -> Vocabulary:
        arrays, facts = entry.arrays, entry.facts
        trie = Trie(arrays["byte"], arrays["end"], arrays["token_offset"], arrays["token_ids"])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(arrays["lengths"], dtype=np.int64)])
        ends, special = tuple(facts["eos_ids"]), facts["special"]
        return cls._of(arrays["data"], offsets, ends, special, facts["strips"], facts["digest"], trie)

    @classmethod
    def _of(
        cls,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        eos_ids: tuple[int, ...],
        special_tokens: Mapping[str, int],
        first_token_strips_space: bool,
        digest: str | None = None,
        trie: Trie | None = None,
    ) -> Vocabulary:
        """Return the one vocabulary with this content; a digest that comes with it is trusted."""
        if digest is None:
            digest = _digest(data, offsets, eos_ids, special_tokens, first_token_strips_space)
        known = _BY_DIGEST.get(digest)
        if known is not None:
            if trie is not None:
                known.__dict__.setdefault("trie", trie)
            return known
        self = object.__new__(cls)
        data.flags.writeable = False
        offsets.flags.writeable = False
        fields = {
            "size": offsets.size - 1,
            "eos_ids": eos_ids,
            "digest": digest,
            "special_tokens": MappingProxyType(dict(special_tokens)),
            "first_token_strips_space": first_token_strips_space,
            "data": data,
            "offsets": offsets,
        }
        if trie is not None:
            fields["trie"] = trie
        self.__dict__.update(fields)
        return _BY_DIGEST.setdefault(digest, self)

    def token_bytes(self, token: int) -> bytes | None:
        """Return the bytes of an id, ``None`` if it never matches text; `IndexError` outside ``range(size)``."""
        if not 0 <= token < self.size:
            raise IndexError(f"token id {token} is not in range({self.size})")
        text = self.data[self.offsets[token] : self.offsets[token + 1]].tobytes()
        return text or None

    @cached_property
    def tokens(self) -> tuple[bytes | None, ...]:
        """The bytes of every id in order, ``None`` where an id never matches text; made once, on first use."""
        joined = self.data.tobytes()
        return tuple(joined[start:stop] or None for start, stop in itertools.pairwise(self.offsets.tolist()))

    def differs_at(self, other: Vocabulary) -> int | None:
        """The first id to which this gives a text, and ``other`` another or none; None where there is none.

        Ids beyond those of ``other`` are not compared.

        >>> letters = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
        >>> letters.differs_at(Vocabulary.from_tokens([b"a", b"b", b"c", b"d"], eos_ids=[3]))
        >>> letters.differs_at(Vocabulary.from_tokens([b"a", b"c", None], eos_ids=[2]))
        1
        """
        n = min(self.size, other.size)
        ours, theirs = self.offsets[: n + 1], other.offsets[: n + 1]
        if np.array_equal(ours, theirs):
            unequal = np.flatnonzero(self.data[: ours[-1]] != other.data[: theirs[-1]])
            return int(np.searchsorted(ours, unequal[0], side="right")) - 1 if unequal.size else None
        given = np.flatnonzero(np.diff(ours)).tolist()
        return next((token for token in given if self.token_bytes(token) != other.token_bytes(token)), None)

    @cached_property
    def spelling(self) -> Spelling:
        """What automata read for each id: its bytes, for a special token its name between two bytes 0xFF.

        The very arrays ``data`` and ``offsets`` where there are no special tokens.
        """
        return spell(self.data, self.offsets, self.special_tokens, self.eos_ids)

    @property
    def has_special(self) -> bool:
        """True where some special token can be asked for: then the byte 0xFF stands around names and in no text."""
        return self.spelling.offsets is not self.offsets

    def spelled(self, token: int) -> bytes | None:
        """Return what automata read for an id, ``None`` if it is never allowed; `IndexError` outside ``range(size)``.

        >>> Vocabulary.from_tokens([b"a", None], eos_ids=[], special_tokens={"<t>": 1}).spelled(1)
        b'\\xff<t>\\xff'
        """
        if not 0 <= token < self.size:
            raise IndexError(f"token id {token} is not in range({self.size})")
        data, offsets = self.spelling
        return data[offsets[token] : offsets[token + 1]].tobytes() or None

    @cached_property
    def trie(self) -> Trie:
        """The flat preorder trie over `spelling`: all ids that some grammar can allow; see `guided.vocab.trie.Trie`."""
        return build_trie(*self.spelling)

    @cached_property
    def byte_complete(self) -> bool:
        """True when each byte that a grammar can ask for is a token of its own, so that any text can be spelled.

        These are all 256 bytes, or, where there are special tokens, all but the one around their names.
        """
        data, offsets = self.spelling
        single = offsets[:-1][np.diff(offsets) == 1]
        spelled = np.count_nonzero(np.bincount(data[single], minlength=256))
        return bool(spelled == (255 if self.has_special else 256))

    @cached_property
    def longest(self) -> int:
        """Number of bytes of the longest token, 0 when none matches text."""
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def n_words(self) -> int:
        """Number of ``uint32`` words in a packed mask row: one bit per id."""
        return tokenset.n_words(self.size)

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Vocabulary: {self.size} ids, {np.count_nonzero(np.diff(self.offsets))} with text, {self.digest[:12]}>"

    def _repr_html_(self) -> str:
        special = ", ".join(list(self.special_tokens)[:_SHOWN])
        more = len(self.special_tokens) - _SHOWN
        known: list[tuple[str, object]] = [
            ("ids", f"{self.size:,}, of them {np.count_nonzero(np.diff(self.offsets)):,} with text"),
            ("end of text", ", ".join(map(str, self.eos_ids)) or "none"),
            ("special tokens", f"{special} and {more:,} more" if more > 0 else special or "none"),
            ("bytes of the longest token", int(np.diff(self.offsets).max(initial=0))),
            ("digest", self.digest[:12]),
        ]
        return card("Vocabulary", facts(known))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[object, ...]:
        trie = self.__dict__.get("trie")
        # Arrays, not the Trie: its constructor makes them read-only again.
        arrays = None if trie is None else (trie.byte, trie.end, trie.token_offset, trie.token_ids)
        special = dict(self.special_tokens)
        content = (self.data, self.offsets, self.eos_ids, special, self.first_token_strips_space, self.digest, arrays)
        return (_restore, content)


def _restore(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    eos_ids: tuple[int, ...],
    special: dict[str, int],
    strips: bool,
    digest: str,
    trie: tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None,
) -> Vocabulary:
    return Vocabulary._of(data, offsets, eos_ids, special, strips, digest, None if trie is None else Trie(*trie))


def _checked_eos_ids(eos_ids: Iterable[int], size: int) -> tuple[int, ...]:
    ends = tuple(sorted({int(end) for end in eos_ids}))
    outside = [end for end in ends if not 0 <= end < size]
    if outside:
        raise VocabularyError(
            f"end-of-text ids {outside[:10]} are not in range({size})",
            remedy="Pass ids of this tokenizer, or size= if the model's logits are wider.",
        )
    return ends


def _digest(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    eos_ids: tuple[int, ...],
    special_tokens: Mapping[str, int],
    first_token_strips_space: bool,
) -> str:
    head = f"guided vocabulary 1;{offsets.size - 1};{eos_ids};{first_token_strips_space};"
    if special_tokens:
        head += f"{sorted(special_tokens.items())};"
    content = hashlib.sha256(head.encode())
    content.update(offsets.astype("<i8").tobytes())
    content.update(data.tobytes())
    return content.hexdigest()
