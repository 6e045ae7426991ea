"""Every method with its settings: those of the papers and of the study's code, `DavidFanzz/llm_decoding`.

Nothing is tuned on these tasks.  ``dola`` reads the low layers, as in `guided eval steering`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from guided.eval.decoding_methods.names import MethodName, Mode
from guided.lm import LanguageModel, Mirostat, transformed
from guided.search import Stopping, beam_search, diverse_beam_search
from guided.steer import (
    FSD,
    Bucket,
    Contrastive,
    ContrastiveSearch,
    DoLa,
    FastAndSlow,
    FSDVectors,
    ModelPair,
    Steerer,
)

__all__ = ["METHODS", "Method"]

Searches = Callable[..., Any]
"""A function of `guided.search`."""

Small = Callable[[], LanguageModel]
"""Gives the small model, or says why there is none."""


@dataclass(frozen=True)
class Method:
    """One way to decode: at most one of ``steer``, ``cut``, ``search`` and ``think``; greedy unless ``sample``."""

    settings: str
    """For people."""
    steer: Callable[[Small], Steerer | ModelPair] | None = None
    cut: Callable[[LanguageModel], LanguageModel] | None = None
    search: Searches | None = None
    options: tuple[tuple[str, Any], ...] = ()
    """Of the search."""
    think: bool = False
    """Whether a draft without the grammar comes first."""
    sample: bool = False

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes in which it says something."""
        return (Mode.CONSTRAINED,) if self.think else tuple(Mode)


def _drawn(settings: str, **truncation: float) -> Method:
    return Method(settings, cut=lambda model: transformed(model, **truncation), sample=True)  # type: ignore[arg-type]


METHODS: dict[MethodName, Method] = {
    MethodName.GREEDY: Method(""),
    MethodName.BEAM: Method(
        "4 beams, mean score of tokens",
        search=beam_search,
        options=(("width", 4), ("length_penalty", 1.0), ("stopping", Stopping.CURRENT_LENGTH)),
    ),
    MethodName.DIVERSE_BEAM: Method(
        "2 groups of 2, penalty 1",
        search=diverse_beam_search,
        options=(("width", 2), ("groups", 2), ("penalty", 1.0), ("length_penalty", 1.0)),
    ),
    MethodName.CONTRASTIVE_SEARCH: Method("alpha 0.6, k 5", steer=lambda small: ContrastiveSearch(0.6, 5)),
    MethodName.CONTRASTIVE_DECODING: Method("alpha 0.1, beta 0.5", steer=lambda small: Contrastive(small())),
    MethodName.DOLA: Method(
        "low layers, final norm", steer=lambda small: DoLa(Bucket.LOW, final_norm=True, tied_embeddings=False)
    ),
    MethodName.FSD: Method("alpha 0.4, k 5, n 2", steer=lambda small: FSDVectors()),
    MethodName.FSD_D: Method("alpha 0.6, k 5, n 3", steer=lambda small: FSD()),
    MethodName.SAMPLING: _drawn("temperature 1"),
    MethodName.TEMPERATURE: _drawn("0.7", temperature=0.7),
    MethodName.TOP_P: _drawn("0.95", top_p=0.95),
    MethodName.TOP_K: _drawn("50", top_k=50),
    MethodName.MIN_P: _drawn("0.1", min_p=0.1),
    MethodName.ETA: _drawn("0.0003", eta_cutoff=3e-4),
    MethodName.TYPICAL: _drawn("0.95", typical_p=0.95),
    MethodName.MIROSTAT: Method("3 bits, rate 1", cut=Mirostat().over, sample=True),
    MethodName.FAST_SLOW: Method("threshold 0.5", steer=lambda small: FastAndSlow(small())),
    MethodName.DRAFT_FIRST: Method("one greedy draft", think=True),
}
