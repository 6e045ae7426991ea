"""`PrefixedHeads`: heads that read one more block over the whole text in place of the model's own states.

The block adapts the states to what heads ask of them: Hydra's prefix attention (Ankner et al., 2024, arXiv 2402.05109,
its code's ``prefix-mlp``) and Clover's augmenting block (Xiao et al., 2024, arXiv 2405.00263, section 3.3).  It goes
before any `DraftHeads`.  `Prefixed` drafts with them, keeping the block's keys and values of what the target has read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import nn

from guided.draft.drafter import Context, Observed
from guided.draft.heads.decoder_block import BlockSizes, DecoderBlock, KeyValues, RMSNorm
from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings
from guided.draft.heads.fit_features import FeatureExamples
from guided.draft.heads.fit_heads import NONE, HeadExamples, head_loss
from guided.draft.heads.from_heads import Heads
from guided.draft.heads.load_heads import KINDS
from guided.draft.heads.row_features import Kept, RowFeatures
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import Needs
from guided.lm.training import descend

__all__ = ["Prefixed", "PrefixedHeads", "fit_prefixed", "load_prefixed", "prefixed_examples"]


class PrefixedHeads(nn.Module):
    """A block, its normalisation, and heads; the block adds nothing before it is trained.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> block = draft.BlockSizes(4, 8, 1, 1, 4)
    >>> prefixed = draft.PrefixedHeads(draft.new_heads("medusa", 2, base), block)
    >>> found = draft.feature_examples(model, [[0]], [[1, 2, 0]])
    >>> draft.prefixed_examples(prefixed, found).hidden.shape[-1], len(prefixed.caches())
    (4, 1)
    """

    def __init__(self, heads: DraftHeads, sizes: BlockSizes) -> None:
        super().__init__()
        if sizes.hidden_size != heads.settings.hidden:
            raise GuidedError(
                f"a block of {sizes.hidden_size} numbers before heads that read {heads.settings.hidden}",
                remedy="Give the block the hidden size of the model.",
            )
        self.heads = heads
        self.sizes = sizes
        self.block = DecoderBlock(sizes)
        self.norm = RMSNorm(sizes.hidden_size, sizes.rms_norm_eps)
        nn.init.zeros_(self.block.self_attn.o_proj.weight)
        nn.init.zeros_(self.block.mlp.down_proj.weight)

    def caches(self) -> list[KeyValues]:
        """Empty keys and values."""
        return [KeyValues()]

    def forward(
        self, hidden: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, past: Sequence[KeyValues]
    ) -> torch.Tensor:
        """What the heads read, ``[B, n, d]``, of the model's states; ``past`` grows by n positions."""
        found: torch.Tensor = self.norm(self.block(hidden, positions, mask, past[0]))
        return found

    def save(self, folder: Path | str) -> None:
        """Write the weights in float16 and the settings, for `load_prefixed`."""
        from safetensors.torch import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().half().contiguous().cpu() for name, value in self.state_dict().items()}
        save_file(weights, str(folder / "model.safetensors"))
        settings = {"prefix": asdict(self.sizes), "heads": asdict(self.heads.settings)}
        (folder / "config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def load_prefixed(folder: Path | str, base: Base) -> PrefixedHeads:
    """What `PrefixedHeads.save` wrote, on the base it was trained on.

    Raises `GuidedError` for other folders, `VocabularyError` for another base.

    >>> import numpy as np
    >>> import torch
    >>> import tempfile
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prefixed = draft.PrefixedHeads(draft.new_heads("medusa", 2, base), draft.BlockSizes(4, 8, 1, 1, 4))
    >>> folder = tempfile.mkdtemp()
    >>> prefixed.save(folder)
    >>> draft.load_prefixed(folder, base).heads.settings.kind
    'medusa'
    """
    from safetensors.torch import load_file

    folder = Path(folder)
    file = folder / "config.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    kind = found.get("heads", {}).get("kind")
    if "prefix" not in found or kind not in KINDS:
        raise GuidedError(f"{folder} holds no prefixed heads", remedy="Give a folder that PrefixedHeads.save wrote.")
    told = found["heads"]
    told["accuracies"], told["base"] = tuple(map(tuple, told["accuracies"])), tuple(told["base"])
    made = PrefixedHeads(KINDS[kind](HeadSettings(**told), base), BlockSizes(**found["prefix"]))
    made.load_state_dict({name: value.float() for name, value in load_file(str(folder / "model.safetensors")).items()})
    return made.to(base.unembeddings.device).eval()


class Prefixed:
    """Drafts as `Heads` does, on the states of a block that reads the target's.

    Asks the target for the states of its prompts; none where it gave none, as of rows not seen from the start.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> prefixed = draft.PrefixedHeads(draft.new_heads("medusa", 2, base), draft.BlockSizes(4, 8, 1, 1, 4))
    >>> _ = draft.fit_prefixed(prefixed, draft.feature_examples(model, prompts, texts), epochs=15, batch=1, rate=0.3)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], draft.Prefixed(prefixed), greedy=True, max_tokens=15)
    >>> counts.passes < 15
    True
    """

    reads_prompts = True
    needs = Needs(hidden=True)

    def __init__(self, prefixed: PrefixedHeads) -> None:
        self.prefixed = prefixed.eval()
        self._heads = Heads(prefixed.heads)
        self._features = RowFeatures(prefixed.caches, prefixed.heads.unembeddings.device)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The static tree of the heads."""
        return self._heads.draft(chance, [replace(context, hidden=self._state(context)) for context in contexts])

    def _state(self, context: Context) -> torch.Tensor | None:
        kept = self._features.complete(context)
        if kept is None:
            return None
        if kept.waiting:
            self._read(kept)
        return kept.last

    def _read(self, kept: Kept) -> None:
        features = kept.taken()
        first, n = kept.n_read, int(features.shape[0])
        columns = torch.arange(first + n, device=features.device)
        mask = columns[None] <= columns[first:, None]
        with torch.inference_mode():
            kept.last = self.prefixed(features[None], columns[first:], mask, kept.caches)[0, -1]
        kept.n_read += n

    def learn(self, observed: Sequence[Observed]) -> None:
        """Keep the states of what the target has read and kept."""
        self._features.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget rows that have ended."""
        self._features.leave(rows)
        self._heads.leave(rows)


def _places(prefixed: PrefixedHeads, examples: FeatureExamples, rows: Sequence[int]) -> HeadExamples:
    """The places of some texts, from the last token of the prompt on, with the block's states."""
    device = prefixed.heads.unembeddings.device
    hidden = nn.utils.rnn.pad_sequence([examples.hidden[row].float() for row in rows], batch_first=True).to(device)
    columns = torch.arange(hidden.shape[1], device=device)
    states = prefixed(hidden, columns, columns[None] <= columns[:, None], prefixed.caches())
    heads = prefixed.heads.settings.heads
    parts: list[torch.Tensor] = []
    tokens: list[torch.Tensor] = []
    for place, row in enumerate(rows):
        text = examples.tokens[row][examples.begins[row] :]
        parts.append(states[place, examples.begins[row] - 1 : len(examples.tokens[row]) - 1])
        tokens.append(nn.functional.pad(text, (0, heads), value=NONE).unfold(0, heads + 1, 1))
    return HeadExamples(torch.cat(parts), torch.cat(tokens))


def prefixed_examples(prefixed: PrefixedHeads, examples: FeatureExamples, *, batch: int = 8) -> HeadExamples:
    """The places of texts as the block sees them: what `calibrate_heads` is given with ``prefixed.heads``.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> prefixed = draft.PrefixedHeads(draft.new_heads("medusa", 2, base), draft.BlockSizes(4, 8, 1, 1, 4))
    >>> examples = draft.prefixed_examples(prefixed, draft.feature_examples(model, prompts, texts))
    >>> draft.calibrate_heads(prefixed.heads, examples)
    >>> len(prefixed.heads.settings.accuracies), examples.tokens.shape[-1]
    (2, 3)
    """
    with torch.inference_mode():
        found = [
            _places(prefixed, examples, range(first, min(first + batch, len(examples))))
            for first in range(0, len(examples), batch)
        ]
    return HeadExamples(torch.cat([one.hidden for one in found]), torch.cat([one.tokens for one in found]))


def fit_prefixed(
    prefixed: PrefixedHeads,
    examples: FeatureExamples,
    *,
    epochs: float = 2.0,
    batch: int = 8,
    rate: float = 2e-3,
    seed: int = 0,
    done: Callable[[int, float], bool] | None = None,
) -> float:
    """Train block and heads together on the tokens of texts; the last averaged loss.

    As `fit_heads`, with ``batch`` whole texts a step, since the block reads all of a text.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> prefixed = draft.PrefixedHeads(draft.new_heads("medusa", 2, base), draft.BlockSizes(4, 8, 1, 1, 4))
    >>> examples = draft.feature_examples(model, prompts, texts)
    >>> before = draft.fit_prefixed(prefixed, examples, epochs=1, batch=1)
    >>> draft.fit_prefixed(prefixed, examples, epochs=15, batch=1, rate=0.3) < before
    True
    """

    def loss_of(rows: list[int]) -> torch.Tensor:
        places = _places(prefixed, examples, rows)
        return head_loss(prefixed.heads, places, torch.arange(len(places)))

    return descend(
        prefixed, len(examples), loss_of, epochs=epochs, batch=batch, rate=rate, betas=(0.9, 0.98), decay=0.01,
        rising=0.05, memory=0.98, seed=seed, done=done,
    )  # fmt: skip
