"""`choose`: the next token of every row of a batch, each by its own mask, temperature, truncation and chance.

Nothing of one row depends on another.  On processors, rows that are not truncated share one call of a kernel
(`drawing`); others share a few operations on tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from guided.constraint.effects.shared_rows import KeptRow
from guided.hf.masking.apply import mask_own_scores, mask_threads
from guided.server.scheduling.drawing import Chosen, Refused, drawn, read
from guided.server.scheduling.jobs import Job

__all__ = ["choose"]


def choose(
    logits: torch.Tensor,
    masks: Sequence[KeptRow] | None,
    jobs: Sequence[Job],
    numbers: Sequence[float],
    shifts: Sequence[Mapping[int, float]] = (),
) -> list[Chosen | Refused]:
    """The next token of each row of ``logits`` (``float[n, width]``), or why there is none.

    ``masks`` are those of the rows, None where nobody masks.  ``numbers`` in [0, 1) are inverted in the row's law;
    greedy jobs use none.  ``shifts`` are added to each row's logits before the mask, by ids; the model's own log
    probabilities are those without them, and what the mask removes is counted with them.
    """
    plain = [row for row, job in enumerate(jobs) if not (job.alternatives or job.top_k or job.top_p < 1.0)]
    if not (plain and logits.is_cpu and logits.dtype in (torch.float32, torch.float64)):
        return _chosen(logits, masks, jobs, numbers, shifts)
    if len(plain) == len(jobs):
        return drawn(logits, masks, jobs, numbers, shifts)
    found: list[Chosen | Refused] = [Refused()] * len(jobs)
    others = sorted(set(range(len(jobs))) - set(plain))
    for rows, law in ((plain, drawn), (others, _chosen)):
        part = law(
            logits[rows],
            None if masks is None else [masks[row] for row in rows],
            [jobs[row] for row in rows],
            [numbers[row] for row in rows],
            [shifts[row] for row in rows] if shifts else (),
        )
        for row, each in zip(rows, part, strict=True):
            found[row] = each
    return found


def _chosen(
    logits: torch.Tensor,
    masks: Sequence[KeptRow] | None,
    jobs: Sequence[Job],
    numbers: Sequence[float],
    shifts: Sequence[Mapping[int, float]],
) -> list[Chosen | Refused]:
    """`choose` by operations on whole tensors, whatever the jobs ask for."""
    norms = torch.logsumexp(logits, -1)
    shifted = _shifted(logits, shifts) if any(shifts) else logits
    whole = norms if shifted is logits else torch.logsumexp(shifted, -1)
    masked = shifted if masks is None else mask_own_scores(shifted.clone(), masks, mask_threads(len(jobs)))
    kept = whole if masks is None else torch.logsumexp(masked, -1)
    ids = masked.argmax(-1)
    law, law_norms = masked, kept
    drawn = [row for row, job in enumerate(jobs) if job.temperature]
    if drawn:
        rows = torch.tensor(drawn, device=logits.device)
        scaled = _reshaped(masked[rows], [jobs[row] for row in drawn])
        uniform = torch.tensor([numbers[row] for row in drawn], dtype=torch.float64, device=logits.device)
        ids[rows] = _inverted(scaled, uniform)
        if any(_changes_law(jobs[row]) for row in drawn):
            law, law_norms = masked.clone(), kept.clone()
            law[rows] = scaled
            law_norms[rows] = torch.logsumexp(scaled, -1)
    places = ids[:, None]
    columns = [
        ids,
        (law.gather(1, places)[:, 0] - law_norms),
        (logits.gather(1, places)[:, 0] - norms),
        0.0 - torch.expm1((kept - whole).clamp(max=0.0)),
        norms,
        kept,
    ]
    listed = _alternatives(logits, norms, masked, law, law_norms, jobs)
    values = zip(*[column.tolist() for column in columns], strict=True)
    return [
        read(token, logprob, own, removed, norm, left, listed.get(row, ()))
        for row, (token, logprob, own, removed, norm, left) in enumerate(values)
    ]


def _shifted(logits: torch.Tensor, shifts: Sequence[Mapping[int, float]]) -> torch.Tensor:
    """The logits with what is added to them, a new tensor."""
    places = [(row, token) for row, shift in enumerate(shifts) for token in shift]
    values = [value for shift in shifts for value in shift.values()]
    rows, ids = torch.tensor(places, device=logits.device).unbind(1)
    added = torch.tensor(values, dtype=logits.dtype, device=logits.device)
    return logits.index_put((rows, ids), added, accumulate=True)


def _changes_law(job: Job) -> bool:
    return job.temperature != 1.0 or job.top_k > 0 or job.top_p < 1.0


def _reshaped(masked: torch.Tensor, jobs: Sequence[Job]) -> torch.Tensor:
    """Masked logits under the temperature and truncation of each row, a new tensor."""
    temperatures = torch.tensor([job.temperature for job in jobs], dtype=masked.dtype, device=masked.device)
    scaled = masked / temperatures[:, None]
    for row, job in enumerate(jobs):
        if 0 < job.top_k < scaled.shape[1]:
            least = scaled[row].topk(job.top_k).values[-1]
            scaled[row].masked_fill_(scaled[row] < least, -torch.inf)
        if job.top_p < 1.0:
            # The likeliest tokens whose probabilities sum to top_p, the one that reaches it included.
            values, order = scaled[row].sort(descending=True, stable=True)
            shares = values.softmax(-1)
            beyond = shares.cumsum(-1) - shares >= job.top_p
            beyond[0] = False
            scaled[row, order[beyond]] = -torch.inf
    return scaled


def _inverted(law: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """For each row the token at this share of its probability, in the order of ids; never one without any."""
    weights = torch.exp((law - law.max(-1, keepdim=True).values).double())
    ends = weights.cumsum(-1)
    total = ends[:, -1:].contiguous()
    found = torch.searchsorted(ends, uniform[:, None] * total, right=True)
    # Rounding may put the share at the very end, behind the last token with any weight.
    last = torch.searchsorted(ends, total, right=False)
    return torch.minimum(found, last).clamp(max=law.shape[1] - 1)[:, 0]


def _alternatives(
    logits: torch.Tensor,
    norms: torch.Tensor,
    masked: torch.Tensor,
    law: torch.Tensor,
    law_norms: torch.Tensor,
    jobs: Sequence[Job],
) -> dict[int, tuple[tuple[int, float, float, bool], ...]]:
    """The likeliest tokens by each law, for the rows that ask for any."""
    asked = [row for row, job in enumerate(jobs) if job.alternatives]
    if not asked:
        return {}
    most = min(max(jobs[row].alternatives for row in asked), logits.shape[1])
    rows = torch.tensor(asked, device=logits.device)
    own, drawn = logits[rows] - norms[rows, None], law[rows] - law_norms[rows, None]
    open_ = ~torch.isneginf(masked[rows]) | torch.isneginf(own)
    places = torch.cat([own.topk(most).indices, drawn.topk(most).indices], -1)
    values = [places.tolist(), drawn.gather(1, places).tolist(), own.gather(1, places).tolist()]
    allowed = open_.gather(1, places).tolist()
    found: dict[int, tuple[tuple[int, float, float, bool], ...]] = {}
    for number, row in enumerate(asked):
        n = jobs[row].alternatives
        each = list(zip(*[column[number] for column in values], allowed[number], strict=True))
        # Truncated tokens fill the second half where the law has fewer than were asked for.
        kept = each[:n] + [one for one in each[most : most + n] if one[1] > -math.inf]
        unique = {one[0]: one for one in kept}
        found[row] = tuple(sorted(unique.values(), key=lambda one: (-one[2], one[0])))
    return found
