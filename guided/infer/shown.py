"""What a notebook shows of samplers' results: what was learned, the likeliest texts, and of JSON texts the fields."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from guided.errors import GuidedError
from guided.html import card, facts, number, share, table
from guided.infer.analysis.fields import field_posteriors

__all__ = ["drawn_html", "log_ml_shown"]

_TEXTS = 10
_FIELDS = 20
_READ = 200
"""Distinct texts whose fields are read for a picture: some 0.1 s of them."""


def drawn_html(title: str, known: Iterable[tuple[str, object]], posterior: Mapping[str, float]) -> str:
    """A card of facts, the likeliest texts with bars, and where all texts are JSON objects their fields."""
    texts = [(share(weight), text) for text, weight in list(posterior.items())[:_TEXTS]]
    shown = table(("probability", "text"), texts, len(posterior) - len(texts)) if texts else ""
    return card(title, facts(known), shown, _fields(posterior))


def log_ml_shown(log_ml: float | None, error: float | None) -> str:
    """An estimate of ``log_ml`` with its standard error, where these are known."""
    if log_ml is None:
        return "not known"
    return number(log_ml) if error is None else f"{number(log_ml)} \N{PLUS-MINUS SIGN} {number(error)}"


def _fields(posterior: Mapping[str, float]) -> str:
    if not 0 < len(posterior) <= _READ or not all(text.lstrip().startswith("{") for text in posterior):
        return ""
    try:
        found = field_posteriors(list(posterior), [math.log(weight) for weight in posterior.values()])
    except GuidedError:
        # Texts of another notation may begin with a brace too: then there are no fields to show.
        return ""
    # Containers say nothing that their members do not say.
    leaves = [each for each in found.values() if not isinstance(each.best, (dict, list))]
    rows = [
        (each.pointer, json.dumps(each.best, ensure_ascii=False), share(each.alternatives[0].probability))
        for each in leaves[:_FIELDS]
    ]
    return table(("field", "likeliest value", "probability"), rows, len(leaves) - len(rows)) if rows else ""
