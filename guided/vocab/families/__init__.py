"""One file for each family of tokenizers, all read into a `TokenTable`; none imports a tokenizer library.

A tokenizer is recognised by what it offers, not by its class: the libraries rename and rebuild their classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guided.errors import VocabularyError
from guided.vocab.families.table import Reading, TokenTable

__all__ = ["Reading", "TokenTable", "read_tokenizer"]


def read_tokenizer(tokenizer: object, *, eos_ids: Iterable[int] | None = None, text_ids: Iterable[int] = ()) -> Reading:
    """Read a tokenizer of any supported library; see `guided.Vocabulary.from_tokenizer` for the arguments.

    Raises `VocabularyError` for what is no tokenizer of a known library.
    """
    ends = None if eos_ids is None else tuple(sorted({int(end) for end in eos_ids}))
    texts = frozenset(int(text) for text in text_ids)
    if hasattr(tokenizer, "backend_tokenizer") or (hasattr(tokenizer, "to_str") and hasattr(tokenizer, "decoder")):
        from guided.vocab.families.fast import read_fast

        return read_fast(tokenizer, ends, texts)
    if isinstance(getattr(tokenizer, "added_tokens_decoder", None), Mapping) and hasattr(tokenizer, "get_vocab"):
        from guided.vocab.families.slow import read_slow

        return read_slow(tokenizer, ends, texts)
    if hasattr(tokenizer, "decode_single_token_bytes"):
        from guided.vocab.families.tiktoken import read_tiktoken

        return read_tiktoken(tokenizer, ends, texts)
    if hasattr(tokenizer, "serialized_model_proto"):
        from guided.vocab.families.sentencepiece import read_sentencepiece

        return read_sentencepiece(tokenizer, ends, texts)
    raise VocabularyError(
        f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__} is no tokenizer that can be read",
        remedy="Pass a Hugging Face, tokenizers, tiktoken or sentencepiece object, or use Vocabulary.from_tokens.",
    )
