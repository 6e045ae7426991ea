"""Tokenizers of the ``tokenizers`` library, bare or inside a Hugging Face fast tokenizer."""

from __future__ import annotations

import json
from typing import Any

from guided.errors import VocabularyError
from guided.vocab.families.pipeline import piece_decoder
from guided.vocab.families.self_check import check_round_trips
from guided.vocab.families.table import Reading, TokenTable, joined_pieces, known_end_ids, special_names

__all__ = ["read_fast"]


def read_fast(tokenizer: Any, eos_ids: tuple[int, ...] | None, text_ids: frozenset[int]) -> Reading:
    """Read the pieces, the added tokens and the decoder; cost: one look-up of each id."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    pieces = _pieces(backend)
    added = {int(token): str(entry.content) for token, entry in backend.get_added_tokens_decoder().items()}
    never = set(added) | set(getattr(tokenizer, "all_special_ids", ()))
    decoder = _decoder_spec(backend)
    if eos_ids is None:
        own = getattr(tokenizer, "eos_token_id", None)
        named = ((name, token) for token, name in added.items())
        eos_ids = known_end_ids(named, "tokenizer") if own is None else (int(own),)
    model = backend.model
    kind = type(model).__name__
    # A Unigram model does not tell its unknown piece but in its serialised form.
    unknown = model.__getstate__() if kind == "Unigram" else json.dumps(getattr(model, "unk_token", None)).encode()
    content = [
        b"fast 1",
        joined_pieces(pieces),
        json.dumps(sorted(never)).encode(),
        json.dumps(sorted(text_ids)).encode(),
        json.dumps(decoder, sort_keys=True).encode(),
        kind.encode(),
        unknown,
    ]

    def table() -> TokenTable:
        rule = piece_decoder(decoder)
        silent = never | _unknown_ids(backend, kind, unknown)
        tokens: list[bytes | None] = [
            None if piece is None or token in silent else rule.to_bytes(piece) for token, piece in enumerate(pieces)
        ]
        check_round_trips(tokens, _decode_with(tokenizer, backend), strips_space=rule.first_token_strips_space)
        for token in text_ids:
            if token not in added:
                raise VocabularyError(f"text id {token} is no added token", remedy="Leave it out of text_ids.")
            tokens[token] = added[token].encode()
        named = [(added.get(token) or pieces[token], token) for token in sorted(never) if token < len(pieces)]
        return TokenTable(tokens, rule.first_token_strips_space, special_names(named, text_ids))

    return Reading(content, eos_ids, table)


def _pieces(backend: Any) -> list[str | None]:
    """Return the piece of every id, ``None`` where an id below the largest is unused."""
    size: int = backend.get_vocab_size()
    pieces: list[str | None] = list(map(backend.id_to_token, range(size)))
    if None in pieces:
        # Ids with holes: there are as many above the size as there are holes below it.
        largest = max(backend.get_vocab().values())
        pieces += map(backend.id_to_token, range(size, largest + 1))
    return pieces


def _decoder_spec(backend: Any) -> Any:
    if backend.decoder is None:
        return None
    try:
        return json.loads(backend.decoder.__getstate__())
    except Exception as error:  # a decoder written in Python has no serialised form; the library's own error is opaque
        raise VocabularyError(
            f"the tokenizer's decoder cannot be read: {error}",
            remedy="Give the bytes of every id yourself: Vocabulary.from_tokens(tokens, eos_ids=[...]).",
        ) from error


def _unknown_ids(backend: Any, kind: str, state: bytes) -> set[int]:
    """Return the id of the model's unknown piece: it stands for text that it cannot spell."""
    found = json.loads(state)
    if kind == "Unigram":
        found = found.get("unk_id")
    elif found is not None:
        found = backend.token_to_id(found)
    return set() if found is None else {found}


def _decode_with(tokenizer: Any, backend: Any) -> Any:
    if tokenizer is backend:
        return lambda ids: backend.decode(ids, skip_special_tokens=False)
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
