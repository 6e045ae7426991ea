"""`find_caching`: how a model's batch can be cached, found by running a few tokens plainly and through the cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from guided.hf.cache.sequences import CachedSequences
from guided.hf.network import Caching, Network
from guided.lm import NOTHING, Tree

__all__ = ["find_caching"]

SINGLE = 1e-4
"""How far scores may lie apart, as a part of their range, in float32 and float64: sums in another order, no more.  A
token too many or too few in a mask shows as 1e-2 and more in random models with the usual initialisation."""

HALF = 3e-2
"""The same in float16 and bfloat16, whose last bit is 1e-3 and 8e-3 of a number."""


def find_caching(network: Network) -> Caching:
    """The best way whose scores agree with those of plain passes; costs some ten passes over a few tokens."""
    kinds = network.architecture.layer_kinds
    if kinds is None:
        return Caching.NONE
    ways: tuple[Caching, ...] = (Caching.RAGGED, Caching.ALIGNED)
    if network.architecture.mask_kinds is None or any(kind.n_states for kind in kinds):
        ways = (Caching.PIECES, Caching.STATES)
    limit = SINGLE if network.dtype in (torch.float32, torch.float64) else HALF
    plain = Network(network.model, network.decoder_start, Caching.NONE)
    for caching in ways:
        own_limits = not network.architecture.takes_positions or network.architecture.looks_back_otherwise
        if caching is Caching.RAGGED and own_limits:
            continue
        trial = Network(network.model, network.decoder_start, caching)
        try:
            if all(_agree(plain, prompt, text, logits, limit) for prompt, text, logits in _run(trial)):
                return caching
        except Exception:  # A model that cannot do it fails in ways of its own, and the next way is tried.
            continue
    return Caching.NONE


def _run(network: Network) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], torch.Tensor]]:
    """A small run with all that a cache must do: prompt, text after it, and logits after that text."""
    one, two = _tokens(network, 0, 8), _tokens(network, 3, 10)
    pad = getattr(network.architecture.config, "pad_token_id", None)
    if isinstance(pad, int) and 0 <= pad < network.width:
        two[8] = pad  # an id like any other here, though some models look for it
    rows = CachedSequences(network, NOTHING, [one[:2], two[:3]])
    given = [len(rows.tokens(0)), len(rows.tokens(1))]
    rows.extend([one[2:4], two[3:4]])
    rows.extend([[], two[4:7]])
    rows.crop([given[0] + 2, given[1] + 2])
    rows.select([1, 0, 1])
    given = [given[1], given[0], given[1]]
    prompts = [two[:3], one[:2], two[:3]]
    rows.extend([two[5:6], one[4:5], two[7:10]])
    texts = [rows.tokens(number)[len(prompts[number]) :] for number in range(3)]
    yield from zip(map(tuple, prompts), texts, rows.last.logits, strict=True)
    if network.caching is Caching.RAGGED:
        tree = Tree((one[0], *two[4:7]), (-1, -1, 1, 2))
        scores = rows.extend_tree([Tree((two[4],), (-1,)), Tree(), tree])
        yield tuple(prompts[0]), (*texts[0], two[4]), scores[0].logits[0]
        for node in (0, 3):
            path = tuple(tree.tokens[at] for at in tree.path(node))
            yield tuple(prompts[2]), (*texts[2], *path), scores[2].logits[node]


def _agree(
    network: Network, prompt: tuple[int, ...], text: tuple[int, ...], logits: torch.Tensor, limit: float
) -> bool:
    """Whether the logits are those of a plain pass over the text alone."""
    whole = [*network.decoder_start, *text] if network.architecture.encodes else [*prompt, *text]
    prompts = [prompt] if network.architecture.encodes else None
    expected = network.run_plain([whole], [(0, len(whole) - 1)], NOTHING, prompts).logits[0]
    return float((expected - logits).abs().max()) <= limit * float(expected.max() - expected.min())


def _tokens(network: Network, first: int, count: int) -> list[int]:
    """Ids spread over the vocabulary, without those that have a meaning to the model."""
    config = network.architecture.config
    special = {getattr(config, f"{name}_token_id", None) for name in ("pad", "bos", "eos", "sep", "decoder_start")}
    usual = [token for token in range(min(network.width, 1024)) if token not in special] or [0]
    return [usual[(first + 1 + number) * 37 % len(usual)] for number in range(count)]
