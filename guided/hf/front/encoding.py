"""Prompts in words to token ids and batches of them; what becomes of the tokens is for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from guided.errors import GuidedError
from guided.vocab import Vocabulary

__all__ = [
    "Conversation",
    "as_asked",
    "beginning_of_text",
    "check_room",
    "encode_prompt",
    "is_conversation",
    "is_ids",
    "is_single",
    "pad_id",
    "padded",
    "prompt_ids",
    "text_ids",
]

Conversation: TypeAlias = "Sequence[Mapping[str, str]]"
"""Messages ``{"role": ..., "content": ...}`` for the model's chat template."""


def is_conversation(prompt: Any) -> bool:
    """True for a list of messages."""
    return isinstance(prompt, Sequence) and bool(prompt) and isinstance(prompt[0], Mapping)


def is_ids(prompt: Any) -> bool:
    """True for token ids, at least one."""
    return isinstance(prompt, Sequence) and bool(prompt) and all(isinstance(token, int) for token in prompt)


def is_single(prompt: Any) -> bool:
    """True for one prompt: a text, a conversation or token ids; False for a list of prompts."""
    return isinstance(prompt, str) or is_conversation(prompt) or is_ids(prompt)


def encode_prompt(prompt: str | Conversation, tokenizer: Any, chat: bool) -> list[int]:
    """The tokens of a text or conversation, never none of them; ``chat`` makes a text a user's message.

    Raises `GuidedError` for a conversation without a chat template, for an empty prompt where the tokenizer has no
    beginning, and as `text_ids`.
    """
    if chat or not isinstance(prompt, str):
        if not getattr(tokenizer, "chat_template", None):
            raise GuidedError(
                "the model's tokenizer has no chat template", remedy="Pass a text, with chat=False, as the prompt."
            )
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids = text_ids(tokenizer, text, special=False)
    else:
        ids = text_ids(tokenizer, prompt)
    if not ids:
        if tokenizer.bos_token_id is None:
            raise GuidedError(
                "the prompt has no tokens and the tokenizer has no beginning-of-text token",
                remedy="Pass a prompt that is not empty.",
            )
        ids = [tokenizer.bos_token_id]
    return list(ids)


def as_asked(text: str, tokenizer: Any) -> tuple[str | Conversation, list[int]]:
    """A text as a model is asked it, a user's message where there is a chat template, and the tokens of that.

    Raises `GuidedError` as `encode_prompt`.
    """
    prompt: str | Conversation = text
    if getattr(tokenizer, "chat_template", None):
        prompt = [{"role": "user", "content": text}]
    return prompt, encode_prompt(prompt, tokenizer, chat=False)


def text_ids(tokenizer: Any, text: str, *, special: bool = True) -> list[int]:
    """The tokens of a text, with the special ones that the tokenizer puts around it if ``special``.

    Raises `GuidedError` for half of a surrogate pair: JSON escapes and arguments that are not UTF-8 can hold one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise GuidedError(
            "a text has half of a surrogate pair, which is no character",
            where=f"character {error.start}, {text[error.start]!a}",
            remedy="Leave it out, or give the text as UTF-8.",
        ) from None
    return list(tokenizer(text, add_special_tokens=special)["input_ids"])


def beginning_of_text(tokenizer: Any) -> list[int]:
    """At least one token to put before a text of which nothing is known: the tokenizer's own beginning, or an end.

    Raises `GuidedError` where the tokenizer has neither.
    """
    ends = {tokenizer.eos_token_id, getattr(tokenizer, "sep_token_id", None)}
    added = [token for token in tokenizer("")["input_ids"] if token not in ends]
    if added:
        return added
    for known in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if known is not None:
            return [int(known)]
    raise GuidedError(
        "the tokenizer has neither a beginning-of-text nor an end-of-text token",
        remedy="Wrap the model yourself: guided.lm.retokenized(..., context=ids that its texts begin with).",
    )


def prompt_ids(prompt: Any, tokenizer: Any, chat: bool) -> list[int]:
    """The tokens of a prompt that may be token ids already; ``tokenizer`` may then be None or a `Vocabulary`.

    Raises `GuidedError` for words without a tokenizer.
    """
    if is_ids(prompt):
        return list(prompt)
    if tokenizer is None or isinstance(tokenizer, Vocabulary):
        raise GuidedError("a prompt in words needs a tokenizer", remedy="Pass the prompt as token ids, or a tokenizer.")
    return encode_prompt(prompt, tokenizer, chat)


def check_room(model: Any, n_prompt: int, max_new_tokens: int) -> None:
    """Raise `GuidedError` where prompt and text are longer than the positions of a decoder-only model."""
    room = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(room, int) and n_prompt + max_new_tokens > room:
        raise GuidedError(
            f"the prompt takes {n_prompt} tokens and max_new_tokens is {max_new_tokens}, but the model has room for"
            f" {room} in all",
            remedy="Shorten the prompt, pass a smaller max_new_tokens, or use a model with a longer context.",
        )


def pad_id(model: Any, tokenizer: Any, eos_ids: Sequence[int]) -> int:
    """The id that fills up rows: the tokenizer's, the model's, an end of text, or 0."""
    for known in (tokenizer.pad_token_id, model.generation_config.pad_token_id, *eos_ids):
        if isinstance(known, int):
            return known
    return 0


def padded(encoded: Sequence[Sequence[int]], pad: int, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask, ``int64[n, longest]``, padded on one side."""
    longest = max(map(len, encoded))
    ids = torch.full((len(encoded), longest), pad)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(encoded):
        place = slice(longest - len(tokens), longest) if left else slice(0, len(tokens))
        ids[row, place] = torch.tensor(tokens)
        mask[row, place] = 1
    return ids, mask
