"""WordPiece (BERT): a piece is a word's beginning unless it carries the continuation prefix ``##``.

Inside a text a beginning stands for a space and the piece, a continuation for the piece without its prefix.  What the
tokenizer dropped when it read the text (case, accents, runs of white space) no byte can bring back.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["word_piece_decoder"]

# The clean-up of the ``tokenizers`` library's WordPiece decoder.  It looks at one piece at a time, so it is exact here.
_CLEANUP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


def word_piece_decoder(prefix: str, *, cleanup: bool) -> Callable[[str], bytes]:
    """Return the function from a piece to its bytes inside a text.

    >>> decode = word_piece_decoder("##", cleanup=True)
    >>> decode("play"), decode("##ing"), decode(",")
    (b' play', b'ing', b',')
    """

    def decode(piece: str) -> bytes:
        text = piece.removeprefix(prefix) if piece.startswith(prefix) else " " + piece
        if cleanup:
            for pattern, content in _CLEANUP:
                text = text.replace(pattern, content)
        return text.encode("utf-8", "surrogatepass")

    return decode
