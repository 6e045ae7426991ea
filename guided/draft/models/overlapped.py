"""`Overlapped`: the draft model goes on drafting in a thread while the target verifies what it drafted before.

PEARL (Liu et al., 2024, arXiv 2408.11850), reconstructed from the paper's text.  Its post-verify half: the next line is
drafted behind the present one, as if all of it were accepted and the token that the target adds were the draft's own.
Where that comes true the next round has its draft already; where it does not, what was drafted ahead is thrown away.
Its pre-verify half is what then comes: the target goes on by one token without a draft, while a line for the same place
is drafted; that token verifies the line's first one, and where both are equal the rest of the line is the next draft.
Without ``pre_verify`` the target waits for a line instead.

What it is worth is the time of drafting that hides behind passes of the target: nothing where a draft costs next to
nothing, nothing where both models share one processor that either of them fills, and it costs a draft for each miss.
Two cores with a thread of PyTorch for each model, or two devices, are what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Thread

from guided.draft.drafter import Context, Observed
from guided.draft.masks import RowMasks
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain
from guided.draft.proposal import Proposal, chain
from guided.errors import UnsupportedError
from guided.infer.chance import Chance

__all__ = ["Overlapped"]


@dataclass
class _Ahead:
    """Lines drafted ahead: by row the text that they stand behind, and their tokens."""

    contexts: list[Context]
    lines: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    error: BaseException | None = None
    thread: Thread | None = None


class Overlapped:
    """Drafts the lines of a `Model` in a `Chain`, each while the one before is verified.

    The tokens are chosen by rule, since what is drawn has to be proposed, and a line that was drafted ahead may not be.
    With ``pre_verify`` no pass waits for a draft: worth it where drafting a line takes about as long as a pass, or
    longer; where it takes much less, a pass with a line behind it gives more than one without.  Raises
    `UnsupportedError` for other shapes, drawn tokens, and a confidence, which learns from each round in turn.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Overlapped(draft.Model(model, draft.Chain(4), by_rule=True))
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=15)
    >>> counts.passes
    4
    """

    lines = True
    """Its proposals are lines."""

    def __init__(self, drafter: Model, *, pre_verify: bool = False) -> None:
        shape = drafter.shape
        if type(drafter) is not Model or not drafter.by_rule or not isinstance(shape, Chain) or shape.confidence:
            raise UnsupportedError(
                "only lines by rule are drafted ahead",
                where="Overlapped",
                remedy="Pass a guided.draft.Model(small, Chain(n), by_rule=True), without a Confidence.",
            )
        self.drafter = drafter
        self.pre_verify = pre_verify
        self.hits = 0
        """Rounds of a row that found their draft ready."""
        self.misses = 0
        self._ahead: _Ahead | None = None

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """What was drafted ahead where it fits, or else lines drafted now; begins those after them."""
        ahead = self._finished()
        if ahead is not None and ahead.error is not None:
            raise ahead.error
        found: dict[int, Proposal] = {}
        for context in contexts:
            line = self._ready(context, ahead)
            if line:
                found[context.row] = chain(line[: context.longest])
        self.hits += len(found)
        missing = [context for context in contexts if context.row not in found]
        self.misses += len(missing)
        if missing and self.pre_verify:
            found |= {context.row: Proposal() for context in missing}
        elif missing:
            for context, proposal in zip(missing, self.drafter.draft(chance, missing), strict=True):
                found[context.row] = proposal
        self._begin(chance, [(context, found[context.row].tree.tokens) for context in contexts])
        return [found[context.row] for context in contexts]

    def _ready(self, context: Context, ahead: _Ahead | None) -> tuple[int, ...]:
        """The rest of a row's line behind its text; empty where the text is not the one that was expected."""
        base, line = ahead.lines.get(context.row, ((), ())) if ahead is not None else ((), ())
        came = tuple(context.tokens[len(base) :])
        if not line or tuple(context.tokens[: len(base)]) != base or line[: len(came)] != came:
            return ()
        return line[len(came) :]

    def _begin(self, chance: Chance, drafted: Sequence[tuple[Context, tuple[int, ...]]]) -> None:
        """Start a thread that drafts behind these lines."""
        pairs = [(context, line) for context, line in drafted if line or self.pre_verify]
        behind = [after for context, line in pairs if (after := _behind(context, line)) is not None]
        if not behind:
            return
        ahead = self._ahead = _Ahead(behind)

        def run() -> None:
            try:
                for context, proposal in zip(behind, self.drafter.draft(chance, behind), strict=True):
                    ahead.lines[context.row] = tuple(context.tokens), proposal.tree.tokens
            except BaseException as error:
                ahead.error = error

        ahead.thread = Thread(target=run, name="guided draft ahead", daemon=True)
        ahead.thread.start()

    def _finished(self) -> _Ahead | None:
        """Wait for the thread: the draft model has one cache, and one of both at a time may use it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.thread is not None:
            ahead.thread.join()
        return ahead

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: whether a line fits is seen when the next draft is wanted."""

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on, once nothing is being drafted; lines of the rows that stay are kept."""
        ahead = self._finished()
        self.drafter.leave(rows)
        if ahead is not None and ahead.error is None:
            ahead.thread = None
            for row in rows:
                ahead.lines.pop(row, None)
            self._ahead = ahead


def _behind(context: Context, line: tuple[int, ...]) -> Context | None:
    """The place behind a row's line, or behind its text where there is none; None where nothing can come there."""
    constraint, state = context.constraint, context.state
    masks = RowMasks(constraint, end_in_time=context.row_masks.end_in_time)
    for token in line:
        state = masks.advance(state, token)
    ended = constraint is not None and state in (0, constraint.end)
    if ended or context.depth <= len(line):
        return None
    return replace(
        context, tokens=[*context.tokens, *line], state=state, depth=context.depth - len(line), masks=masks,
        n_unseen=1 if line else context.n_unseen, hidden=None,
    )  # fmt: skip
