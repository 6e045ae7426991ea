"""Byte-level BPE (GPT-2, Llama-3, Qwen): each byte is written as one printable character.

The alphabet is GPT-2's: a byte whose Latin-1 character is printable and not a space stands for itself; the other 68,
in ascending order, are U+0100, U+0101, ... (Radford et al. 2019, `encoder.py`).
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["byte_level_decoder", "byte_of_character"]


def byte_of_character() -> dict[str, int]:
    """Return the byte that each of the 256 characters of the alphabet stands for.

    >>> table = byte_of_character()
    >>> len(table), table["A"], table["Ġ"], table["Ċ"]
    (256, 65, 32, 10)
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if chr(byte) not in table)
    return table | {chr(0x100 + rank): byte for rank, byte in enumerate(others)}


def byte_level_decoder() -> Callable[[str], bytes]:
    """Return the function from a piece to its bytes.

    A piece with any character outside the alphabet stands for its own UTF-8, as in the ``tokenizers`` library.

    >>> decode = byte_level_decoder()
    >>> decode("Ġâĥ"), decode("a b")
    (b' \\xe2\\x83', b'a b')
    """
    # Latin-1 carries the bytes: one translate and one encode per piece, both in C.
    to_byte = {ord(character): byte for character, byte in byte_of_character().items()}
    alphabet = frozenset(map(chr, to_byte))

    def decode(piece: str) -> bytes:
        if alphabet.issuperset(piece):
            return piece.translate(to_byte).encode("latin-1")
        return piece.encode("utf-8", "surrogatepass")

    return decode
