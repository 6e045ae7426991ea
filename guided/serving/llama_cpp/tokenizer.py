"""`vocabulary_of_llama`: the bytes of each id, as llama.cpp itself writes them.

A GGUF says of each token what it is, and llama.cpp knows the rest: white space of SentencePiece, the byte alphabet of
GPT-2, tokens of one byte.  So the bytes are asked of `llama_token_to_piece`, without special tokens, and not worked out
from the file.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from guided.errors import VocabularyError
from guided.vocab.vocabulary import Vocabulary

__all__ = ["vocabulary_of_llama"]

_KNOWN: weakref.WeakKeyDictionary[Any, Vocabulary] = weakref.WeakKeyDictionary()

FIRST_ROOM = 64
"""Bytes to begin with for one token."""


def vocabulary_of_llama(llama: Any) -> Vocabulary:
    """The vocabulary of a `llama_cpp.Llama`; read once for each.

    All ids end a text that llama.cpp takes for an end of generation (of turns and messages, too).  Raises
    `VocabularyError` for a GGUF without a vocabulary, and for WordPiece, whose spaces depend on what is around them.
    """
    found = _KNOWN.get(llama)
    if found is None:
        found = _KNOWN[llama] = _read(llama)
    return found


def _read(llama: Any) -> Vocabulary:
    import llama_cpp

    # As `Vocabulary.from_tokenizer` has it, added tokens are no text, but names that a grammar may ask for.
    named = (
        llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
        | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
        | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
    )
    silent = named | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    kind = llama_cpp.llama_vocab_type(vocab)
    if kind in (llama_cpp.LLAMA_VOCAB_TYPE_NONE, llama_cpp.LLAMA_VOCAB_TYPE_WPM):
        what = "no vocabulary" if kind == llama_cpp.LLAMA_VOCAB_TYPE_NONE else "a WordPiece vocabulary"
        raise VocabularyError(f"the model has {what}", remedy="Use a model that generates text.")
    tokens: list[bytes | None] = []
    special: dict[str, int] = {}
    for token in range(llama_cpp.llama_vocab_n_tokens(vocab)):
        attributes = llama_cpp.llama_vocab_get_attr(vocab, token)
        if attributes & named and not attributes & llama_cpp.LLAMA_TOKEN_ATTR_UNUSED:
            name = llama_cpp.llama_vocab_get_text(vocab, token).decode("utf-8", errors="replace")
            if name:
                special.setdefault(name, token)
        tokens.append(None if attributes & silent else _piece(llama_cpp.llama_token_to_piece, vocab, token))
    ends = [token for token in range(len(tokens)) if llama_cpp.llama_vocab_is_eog(vocab, token)]
    if not ends:
        raise VocabularyError("the GGUF names no token that ends a text", remedy="Set tokenizer.ggml.eos_token_id.")
    # llama.cpp puts a space before a whole text and takes it away where the GGUF says so; SentencePiece's default.
    prefix = llama.metadata.get("tokenizer.ggml.add_space_prefix", "true") == "true"
    strips = prefix and kind in (llama_cpp.LLAMA_VOCAB_TYPE_SPM, llama_cpp.LLAMA_VOCAB_TYPE_UGM)
    return Vocabulary.from_tokens(tokens, eos_ids=ends, special_tokens=special, first_token_strips_space=strips)


def _piece(to_piece: Any, vocab: Any, token: int) -> bytes:
    """The bytes of one token, NUL bytes among them."""
    room = FIRST_ROOM
    while True:
        buffer = ctypes.create_string_buffer(room)
        length = to_piece(vocab, token, buffer, room, 0, False)
        if length >= 0:
            return buffer.raw[:length]
        room = -length
