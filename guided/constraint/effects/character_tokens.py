"""`CharacterTokens`: the tokens that are whole characters of a string, and nothing else to whoever reads one."""

from __future__ import annotations

import re

from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["CharacterTokens"]

_CHARACTERS = re.compile(r'[^\x00-\x1f"\\]+')


class CharacterTokens(PerVocabulary):
    """Facts about the tokens of one vocabulary.

    >>> import guided
    >>> CharacterTokens.of(guided.Vocabulary.from_tokens([b"a{", b'a"', b"\\xc3", None], eos_ids=[3])).whole
    b'\\x01\\x00\\x00\\x00'
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        data, offsets = vocabulary.spelling.data.tobytes(), vocabulary.spelling.offsets.tolist()
        self.whole = bytes(_are_characters(data[offsets[i] : offsets[i + 1]]) for i in range(vocabulary.size))
        """By token, 1 where it leads from a place between two characters of a JSON string to another."""


def _are_characters(data: bytes) -> bool:
    try:
        return _CHARACTERS.fullmatch(data.decode()) is not None
    except UnicodeDecodeError:
        return False
