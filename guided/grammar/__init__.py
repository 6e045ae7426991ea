"""Front ends and the grammar IR: from text to languages, knowing no tokens.

The package is also the function that loads a ready grammar by name, because both are called ``guided.grammar``.

    >>> import guided
    >>> every_byte = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    >>> molecules = guided.compile(guided.grammar("smiles"), every_byte)
    >>> molecules.is_accepting(molecules.advance_bytes(molecules.start, b"CCO"))
    True
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guided.grammar.ir import Grammar


class _Library(ModuleType):
    def __call__(self, name: str, **options: Any) -> Grammar:
        """Load a ready grammar by name; see `guided.grammar.library`."""
        from guided.grammar.library import grammar

        return grammar(name, **options)


sys.modules[__name__].__class__ = _Library
