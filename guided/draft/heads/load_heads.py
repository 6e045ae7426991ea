"""`load_heads`: Medusa, Hydra, Clover or Chimera heads from a file, by what the file says they are."""

from __future__ import annotations

from pathlib import Path

from guided.draft.heads.chimera import ChimeraHeads
from guided.draft.heads.clover import CloverHeads
from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings, stored_settings
from guided.draft.heads.hydra import HydraHeads
from guided.draft.heads.medusa import MedusaHeads
from guided.errors import GuidedError

__all__ = ["load_heads", "new_heads"]

KINDS: dict[str, type[MedusaHeads] | type[HydraHeads] | type[CloverHeads] | type[ChimeraHeads]] = {
    "medusa": MedusaHeads,
    "hydra": HydraHeads,
    "clover": CloverHeads,
    "chimera": ChimeraHeads,
}


def new_heads(kind: str, heads: int, base: Base, *, blocks: int = 1) -> DraftHeads:
    """Untrained heads: ``"medusa"``, ``"hydra"``, ``"clover"`` or ``"chimera"``; raises `GuidedError` for others.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> kinds = ("medusa", "hydra", "clover", "chimera")
    >>> [draft.new_heads(kind, 2, base).sequential for kind in kinds]  # do they see the tokens between?
    [False, True, True, True]
    """
    if kind not in KINDS:
        raise GuidedError(f"there are no heads of the kind {kind!r}", remedy=f"Take one of {', '.join(KINDS)}.")
    width, hidden = base.unembeddings.shape
    return KINDS[kind](HeadSettings(kind, heads, int(hidden), int(width), blocks), base).to(base.unembeddings.device)


def load_heads(path: Path | str, base: Base) -> DraftHeads:
    """The heads of a file that `DraftHeads.save` wrote, on the base they were trained on.

    Raises `GuidedError` for other files, `VocabularyError` for another base.

    >>> import numpy as np
    >>> import torch
    >>> import tempfile
    >>> from pathlib import Path
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> heads = draft.new_heads("medusa", 2, base)
    >>> path = Path(tempfile.mkdtemp(), "heads.safetensors")
    >>> heads.save(path)
    >>> draft.load_heads(path, base).settings == heads.settings
    True
    """
    settings = stored_settings(path)
    if settings.kind not in KINDS:
        raise GuidedError(f"{path} holds heads of an unknown kind, {settings.kind!r}", remedy="Update guided.")
    heads = KINDS[settings.kind](settings, base)
    heads.read(path)
    heads.to(base.unembeddings.device)
    return heads.eval()
