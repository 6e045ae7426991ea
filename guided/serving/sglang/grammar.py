"""`GuidedGrammar`: one request's place in its constraint, as SGLang's scheduler asks for it (0.5.23).

Every step the scheduler has masks made for a batch and moved to the device, and accepts what was sampled.  Drafts are a
tree, which it walks itself: accept, mask, take back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarStats

from guided.constraint.batch import mask_rows
from guided.errors import GuidedError
from guided.serving import metrics
from guided.serving.matcher import Matcher, fill_rows
from guided.serving.requests import Request
from guided.tokenset import n_words

__all__ = ["GuidedGrammar", "allocate_masks", "apply_masks", "move_masks"]


def allocate_masks(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
    """Masks that allow everything, ``int32[batch_size, words]`` on the host, page-locked where there is a GPU."""
    shape = (batch_size, n_words(vocab_size))
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())


def move_masks(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """The masks on a device."""
    return vocab_mask.to(device, non_blocking=True)


def apply_masks(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set the logits of forbidden tokens to ``-inf``, in place."""
    from guided.hf.masking.apply import apply_masks as apply

    apply(logits, vocab_mask)


class GuidedGrammar(BaseGrammarObject):
    """One request under a constraint.

    What the constraint does not allow is a `ValueError` in `accept_token`, which aborts the request.  Where a limit of
    work is met in the middle of a text, its mask holds only the ends of text (`fill_rows`), and such a token aborts it.
    """

    def __init__(self, matcher: Matcher, request: Request, stats: GrammarStats) -> None:
        super().__init__()
        self.matcher = matcher
        self.request = request
        self.grammar_stats = stats

    def accept_token(self, token: int) -> None:
        """Go on by a token; what follows the end of the text is let pass, as SGLang's own grammars do."""
        if self.matcher.is_over and token not in self.matcher.constraint.vocabulary.eos_ids:
            return
        self.current_token = token
        try:
            allowed = self.matcher.accept(token)
        except GuidedError as error:
            metrics.failed()
            raise ValueError(str(error)) from error
        if not allowed:
            raise ValueError(self._refusal(token))

    def rollback(self, k: int) -> None:
        """Take back the last tokens."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether an end-of-text token was accepted."""
        return self.matcher.is_over

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """See `allocate_masks`."""
        return allocate_masks(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token to a row."""
        fill_rows([self.matcher], mask_rows(vocab_mask)[idx : idx + 1])

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """Write the masks of a step; rows that are not listed are left alone."""
        own = [entry for entry in entries if type(entry.grammar) is GuidedGrammar]
        masks = mask_rows(vocab_mask)
        listed = [entry.row for entry in own]
        together = listed == list(range(len(masks)))
        rows = masks if together else np.empty((len(listed), masks.shape[1]), np.uint32)
        fill_rows([entry.grammar.matcher for entry in own], rows)
        if not together:
            masks[listed] = rows
        for entry in entries:
            if type(entry.grammar) is not GuidedGrammar:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything again."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """See `move_masks`."""
        return move_masks(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """See `apply_masks`."""
        apply_masks(logits, vocab_mask)

    def copy(self) -> GuidedGrammar:
        """The grammar for another request: at its beginning, over the same tables."""
        stats = dataclasses.replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
        return GuidedGrammar(Matcher(self.matcher.constraint), self.request, stats)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next, as no tokens and a text; None where there is a choice."""
        try:
            text = self.matcher.forced_text()
        except GuidedError:
            # A special token must come next: the mask says which.
            return None
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of a jump, and no state: a state is a function of the tokens."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Go back to where the spellings of the text part, and on by the new one.

        Raises `ValueError`, and nothing changes, where the new tokens are not allowed.
        """
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)) and old_output_ids[same] == new_output_ids[same]:
            same += 1
        self.matcher.rollback(len(old_output_ids) - same)
        if not self.matcher.accept_all(new_output_ids[same:]):
            self.matcher.accept_all(old_output_ids[same:])
            raise ValueError(f"guided: the tokens {list(new_output_ids[same:])} are not allowed after a jump")

    def _refusal(self, token: int) -> str:
        """Why a token is not allowed: its mask did not have it, or could not be made."""
        constraint = self.matcher.constraint
        try:
            constraint.fill_mask(self.matcher.state, np.empty(constraint.vocabulary.n_words, np.uint32))
        except GuidedError as error:
            return str(error)
        return f"guided: token {token} is not allowed after {self.matcher.n_tokens} tokens"

    def __repr__(self) -> str:
        return f"GuidedGrammar({self.request!r}, {self.matcher.n_tokens} tokens)"
