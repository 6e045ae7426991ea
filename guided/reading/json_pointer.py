"""JSON pointers (RFC 6901) and the keys that they are made of."""

from __future__ import annotations

from collections.abc import Iterable

from guided.errors import GuidedError

__all__ = ["pointer_of", "tokens_of"]


def pointer_of(keys: Iterable[str | int]) -> str:
    """The pointer through these names and indices.

    >>> pointer_of(["a/b", 0, "~"])
    '/a~1b/0/~0'
    """
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


def tokens_of(pointer: str) -> list[str]:
    """The names and indices of a pointer, unescaped; raises `GuidedError` for what is none.

    >>> tokens_of("/a~1b/0"), tokens_of("")
    (['a/b', '0'], [])
    """
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise GuidedError(f"{pointer!r} is no JSON pointer", remedy="It is empty or begins with '/', as in '/a/0'.")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]
