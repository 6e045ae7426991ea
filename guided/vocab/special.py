"""Special tokens of a vocabulary: which names are sound, and the byte strings that automata read for all ids.

How a special token is written is in `guided.special_bytes`; who may ask for one is the grammar's concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided.errors import VocabularyError
from guided.special_bytes import SENTINEL, special_bytes

__all__ = ["Spelling", "checked_special_tokens", "near_names", "spell"]

_NEAR = 5
"""Names that an error offers."""


class Spelling(NamedTuple):
    """The byte strings of all ids, end to end; both arrays are read-only."""

    data: NDArray[np.uint8]
    """``uint8[total]``."""
    offsets: NDArray[np.int64]
    """``int64[size + 1]``: id ``t`` is ``data[offsets[t]:offsets[t + 1]]``, empty where it is never allowed."""

    @property
    def longest(self) -> int:
        """Number of bytes of the longest, the depth of the trie; 0 when no id is ever allowed."""
        return int(np.diff(self.offsets).max(initial=0))


def checked_special_tokens(special_tokens: Mapping[str, int], size: int) -> dict[str, int]:
    """The special tokens in order of id; raises `VocabularyError` for names and ids that cannot be."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    for name, token in sorted(special_tokens.items(), key=lambda item: (int(item[1]), item[0])):
        token = int(token)
        if not 0 <= token < size:
            raise VocabularyError(
                f"the id {token} of special token {name!r} is not in range({size})",
                remedy="Pass an id of this tokenizer.",
            )
        if not name or any("\ud800" <= character <= "\udfff" for character in name):
            raise VocabularyError(f"{name!r} cannot be the name of a special token", remedy="Pass a non-empty text.")
        if token in taken:
            raise VocabularyError(f"the special token {token} has two names", remedy="Leave one of them out.")
        found[name] = token
        taken.add(token)
    return found


def near_names(name: str, special_tokens: Iterable[str]) -> list[str]:
    """The names that look most like one, best first; those that differ in brackets only come first."""

    import difflib

    def bare(text: str) -> str:
        return "".join(character for character in text.casefold() if character.isalnum())

    known = list(special_tokens)
    same = [other for other in known if bare(other) and bare(other) == bare(name)]
    close = difflib.get_close_matches(name, known, _NEAR, cutoff=0.5)
    return list(dict.fromkeys([*same, *close]))[:_NEAR]


def spell(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], special_tokens: Mapping[str, int], eos_ids: Iterable[int]
) -> Spelling:
    """The token bytes, with names as `special_bytes` for special tokens, and nothing for ids with that byte.

    Without special tokens to name nothing changes, and the arrays are those given.
    """
    ends = frozenset(eos_ids)
    changed = {token: special_bytes(name) for name, token in special_tokens.items() if token not in ends}
    if not changed:
        return Spelling(data, offsets)
    raw = np.searchsorted(offsets, np.flatnonzero(data == SENTINEL[0]), side="right") - 1
    changed |= dict.fromkeys(np.unique(raw).tolist(), b"")
    lengths = np.diff(offsets)
    parts: list[NDArray[np.uint8]] = []
    at = 0
    for token in sorted(changed):
        parts += [data[at : offsets[token]], np.frombuffer(changed[token], np.uint8)]
        at = int(offsets[token + 1])
        lengths[token] = len(changed[token])
    joined = np.concatenate([*parts, data[at:]])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    joined.flags.writeable = bounds.flags.writeable = False
    return Spelling(joined, bounds)
