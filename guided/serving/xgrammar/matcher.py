"""`GrammarMatcher` as XGrammar 0.2 has it, over a `guided.serving.Matcher`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from guided import tokenset
from guided.constraint.batch import mask_rows
from guided.errors import UnsupportedError
from guided.reading.named.parts import named_parts
from guided.serving.matcher import Matcher
from guided.serving.xgrammar.compiler import CompiledGrammar, RefusedError
from guided.special_bytes import SENTINEL

__all__ = ["GrammarMatcher"]

_END = -1
"""No child, or no sibling, in a tree of drafts."""


class GrammarMatcher:
    """Where one request stands in its grammar.

    ``max_rollback_tokens`` bounds nothing: states cost nothing to keep.  A request is over after a stop token; with
    ``terminate_without_stop_token`` also where nothing but one may come.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: list[int] | int | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        self._compiled = compiled_grammar
        self._matcher = Matcher(compiled_grammar.constraint(stops))
        self._read: list[bytes] = []
        """What was accepted, as automata read it."""
        self._ends_by_itself = terminate_without_stop_token
        self.max_rollback_tokens = max_rollback_tokens
        self.temperature = default_temperature

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids that end a text."""
        return list(self._matcher.constraint.vocabulary.eos_ids)

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Go on by a token; False where it is not allowed, or the request is over."""
        return self._accepted(self._matcher.accept, token_id)

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Go on by a text, which counts as one token when it is taken back; False where it is not allowed."""
        data = input_str.encode() if isinstance(input_str, str) else input_str
        return self._accepted(self._matcher.accept_bytes, data)

    def _accepted(self, accept: Callable[[Any], bool], what: int | bytes) -> bool:
        if self.is_terminated() or not accept(what):
            return False
        data = what if isinstance(what, bytes) else self._matcher.constraint.vocabulary.spelled(what)
        self._read.append(b"" if self._matcher.is_over else data or b"")
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Write the mask of the next token to row ``index``; True: it is to be applied."""
        self._matcher.fill(mask_rows(bitmask)[index])
        return True

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """Write the masks behind all nodes of a tree of drafts: row ``i`` is that of node ``i``, 0 its root.

        ``retrieve_next_token[i]`` is the first child of a node and ``retrieve_next_sibling[i]`` its next sibling, -1
        where there is none.  Rows behind tokens that are not allowed stay as they are.  Raises `UnsupportedError` for
        temperatures; the time does not bound it.
        """
        if temperatures is not None:
            raise UnsupportedError("temperatures of a grammar are not known here", remedy="Leave them out.")
        rows = mask_rows(token_bitmask)
        constraint = self._matcher.constraint
        tokens, children, siblings = (
            [int(each) for each in array] for array in (draft_tokens, retrieve_next_token, retrieve_next_sibling)
        )
        waiting = [(0, self._matcher.state)]
        while waiting:
            node, state = waiting.pop()
            constraint.fill_mask(state, rows[node][: constraint.vocabulary.n_words])
            rows[node][constraint.vocabulary.n_words :] = 0
            child = children[node]
            while child != _END:
                if after := constraint.advance(state, tokens[child]):
                    waiting.append((child, after))
                child = siblings[child]
        return True

    def find_jump_forward_string(self) -> str:
        """The text that must come next, up to its last whole character."""
        return self._matcher.forced_text()

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens; raises ValueError for more than were accepted."""
        self._matcher.rollback(num_tokens)
        del self._read[len(self._read) - num_tokens :]

    def reset(self) -> None:
        """Take back all tokens."""
        self._matcher.reset()
        self._read.clear()

    def fork(self) -> GrammarMatcher:
        """A matcher of its own at the same place."""
        other = GrammarMatcher.__new__(GrammarMatcher)
        other._compiled = self._compiled
        other._matcher = self._matcher.fork()
        other._read = self._read[:]
        other._ends_by_itself = self._ends_by_itself
        other.max_rollback_tokens, other.temperature = self.max_rollback_tokens, self.temperature
        return other

    def is_completed(self) -> bool:
        """Whether the text may end here, or has ended."""
        return self._matcher.is_whole

    def is_terminated(self) -> bool:
        """Whether the request is over."""
        if self._matcher.is_over:
            return True
        return self._ends_by_itself and self._matcher.is_whole and self._may_only_end()

    def _may_only_end(self) -> bool:
        row = np.empty((1, self._matcher.constraint.vocabulary.n_words), np.uint32)
        self._matcher.fill(row[0])
        return tokenset.count(row[0]) == len(self.stop_token_ids)

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """The captures of rules in a whole text, inner ones first: see `guided.captures`.

        Without ``deduplicate`` those of a rule are told too that begin where a longer one does.  Unlike XGrammar's they
        are those of the text as it is, and none of beginnings that went on otherwise.  Raises `RefusedError` where the
        text is not whole, and for requests other than XGrammar's EBNF.
        """
        named = self._compiled.named_rules
        if named is None:
            raise RefusedError("Captures are of rules in XGrammar's EBNF, and this request is in another notation.")
        if not self.is_completed():
            raise RefusedError("Captures are those of a whole text, and this one cannot end here.")
        parts = named_parts(named, b"".join(self._read), every=not deduplicate)
        return [(part.name, part.data.replace(SENTINEL, b"")) for part in parts]
