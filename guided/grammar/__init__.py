"""Front ends and the grammar IR: from text to languages, knowing no tokens.

The package is also the function that loads a ready grammar by name, because both are called ``guided.grammar``::

    guided.grammar("smiles")
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
