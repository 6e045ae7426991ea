"""A run of a sampler as one HTML file: particles as a tree with weights, resampling, and what the mask removed.

`Recorder` is the callback that samplers take as ``progress``; it turns what it is told into plain data
(`Recorder.data`), which `guided.infer.analysis.replay_page` shows.  The file needs nothing from anywhere else, and no
network.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.infer.analysis.enumeration import Enumeration
from guided.infer.analysis.replay_page import PAGE
from guided.infer.result import Cost, Population, Samples
from guided.infer.runs.progress import Step
from guided.infer.runs.rounds import Round
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Recorder"]

FORMAT = 1
"""Version of the data in the file."""

_TEXTS = 40
"""Texts of the result that the page lists."""


class Recorder:
    """Keeps what a sampler reports, step by step, and writes the page.

    Pass it as ``progress`` to one run; ``also`` is called with everything as well.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"a", None], eos_ids=[1])
    >>> recorder = Recorder(vocabulary, title="an example")
    >>> recorder.data()["title"], recorder.data()["steps"]
    ('an example', [])
    """

    def __init__(
        self, vocabulary: Vocabulary, *, title: str = "", prompt: str | Sequence[int] = "", also: Any = None
    ) -> None:
        self.vocabulary = vocabulary
        self.title = title
        self.prompt = prompt if isinstance(prompt, str) else self._spelled(prompt)
        self._also = also
        # The tree of prefixes: node 0 is the prompt.
        self._parents = [-1]
        self._tokens = [-1]
        self._children: dict[tuple[int, int], int] = {}
        self._changes: dict[int, float] = {}
        self._steps: list[dict[str, Any]] = []
        self._at: list[int] | None = None
        self._rounds = False
        self._result: dict[str, Any] | None = None

    def __call__(self, event: Step | Round) -> None:
        """Take note of one step or round.  Raises `GuidedError` for a second run."""
        if self._steps and self._rounds is not isinstance(event, Round):
            raise GuidedError("a recorder holds one run", remedy="Make a new Recorder for each run.")
        if isinstance(event, Round):
            self._rounds = True
            self._note_round(event)
        else:
            self._note_step(event)
        if self._also is not None:
            self._also(event)

    def finish(self, result: Population | Samples | Enumeration) -> None:
        """Take note of what the sampler returned, for the page's table of texts."""
        if isinstance(result, Samples):
            posterior = result.posterior()
            summary = {"acceptance": result.acceptance, "ess": float(len(result))}
            error = result.log_ml_error
        else:
            posterior = result.posterior()
            summary = {"ess": result.ess} if isinstance(result, Population) else {}
            error = result.log_ml_error if isinstance(result, Population) else None
        self._result = {
            "kind": type(result).__name__,
            "n": len(result.particles),
            "log_ml": None if result.log_ml is None else _number(result.log_ml),
            "log_ml_error": None if error is None else _number(error),
            "texts": [[text, share] for text, share in list(posterior.items())[:_TEXTS]],
            "n_texts": len(posterior),
            "cost": _cost(result.cost),
            **{name: _number(value) for name, value in summary.items()},
        }

    def data(self) -> dict[str, Any]:
        """All that was recorded, as data that JSON can hold; minus infinity is null.

        ``nodes`` are the distinct prefixes, parents before children: ``parent``, ``token``, and ``change``, what the
        token's draw added to the log weight, where ``known``.  ``tokens`` has the text of each id.  Each
        of ``steps`` has the node of every particle after its token (``nodes``) and the log weights then (``logw``);
        where the population was resampled, ``ancestors`` says which of these each new particle continues.
        """
        used = sorted({token for token in self._tokens if token >= 0})
        nodes = range(len(self._parents))
        return {
            "format": FORMAT,
            "title": self.title,
            "prompt": self.prompt,
            "kind": "rounds" if self._rounds else "steps",
            "tokens": {str(token): self._text(token) for token in used},
            "ends": [token for token in used if token in self.vocabulary.eos_ids],
            "nodes": {
                "parent": list(self._parents),
                "token": list(self._tokens),
                "change": [_number(self._changes.get(node, -math.inf)) for node in nodes],
                "known": [node in self._changes for node in nodes],
            },
            "steps": list(self._steps),
            "result": self._result,
        }

    def page(self) -> str:
        """The HTML text."""
        # Inside a script element only "</script" and "<!--" mean anything: no "<" at all is left.
        data = json.dumps(self.data(), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
        title = html.escape(self.title or "A run of a sampler").replace("@", "&#64;")
        return PAGE.replace("@TITLE@", title).replace("@DATA@", data)

    def save(self, path: str | Path) -> None:
        """Write the page."""
        Path(path).write_text(self.page(), encoding="utf-8")

    # Events

    def _note_step(self, step: Step) -> None:
        n = len(step.tokens)
        before = self._at
        if before is None:
            if step.number != 1:
                raise GuidedError(
                    f"the recording would begin with step {step.number}",
                    remedy="Give the recorder every step of one run, from the first: a resumed run has no first step.",
                )
            # Where a step begins with copies, all of them are of the prompt.
            before = [0] * max(n, 1 + max(step.parents or (0,)))
        if step.parents is not None:
            before = [before[parent] for parent in step.parents]
        if len(before) != n:
            raise GuidedError(
                f"a step of {n} particles follows one of {len(before)}",
                remedy="Give the recorder every step of one run, from the first.",
            )
        nodes: list[int] = []
        for at, token, change in zip(before, step.tokens, step.increments, strict=True):
            node = at if token is None else self._child(at, token)
            if token is not None:
                self._changes.setdefault(node, change)
            nodes.append(node)
        self._at = nodes if step.ancestors is None else [nodes[i] for i in step.ancestors]
        self._steps.append(
            {
                "number": step.number,
                "limit": step.limit,
                "nodes": nodes,
                "fresh": [token is not None for token in step.tokens],
                "logw": [_number(value) for value in step.logw],
                "ess": _number(step.ess),
                "ancestors": None if step.ancestors is None else list(step.ancestors),
                "finished": step.finished,
                "cost": _cost(step.cost),
            }
        )

    def _note_round(self, event: Round) -> None:
        nodes: list[int] = []
        for particle in event.particles:
            node = 0
            for i, token in enumerate(particle.tokens):
                node = self._child(node, token)
                if i < len(particle.increments):
                    self._changes.setdefault(node, particle.increments[i])
            nodes.append(node)
        self._steps.append(
            {
                "number": event.number,
                "limit": event.wanted,
                "nodes": nodes,
                "fresh": [True] * len(nodes),
                "logw": [_number(particle.logw) for particle in event.particles],
                "ess": None,
                "ancestors": None,
                "finished": event.kept,
                "log_bound": None if event.log_bound is None else _number(event.log_bound),
                "cost": _cost(event.cost),
            }
        )

    def _child(self, node: int, token: int) -> int:
        found = self._children.get((node, token))
        if found is None:
            found = self._children[node, token] = len(self._parents)
            self._parents.append(node)
            self._tokens.append(token)
        return found

    def _text(self, token: int) -> str:
        data = self.vocabulary.token_bytes(token) if token < self.vocabulary.size else None
        if data is not None:
            try:
                return data.decode()
            except UnicodeDecodeError:
                return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in data)
        return "end of text" if token in self.vocabulary.eos_ids else f"<{token}>"

    def _spelled(self, tokens: Sequence[int]) -> str:
        size = self.vocabulary.size
        data = b"".join(self.vocabulary.token_bytes(token) or b"" for token in tokens if token < size)
        return data.decode(errors="replace")


def _number(value: float) -> float | None:
    """A finite number, or None: JSON has no infinity."""
    return float(value) if math.isfinite(value) else None


def _cost(cost: Cost) -> dict[str, int]:
    return {
        "constraint_calls": cost.constraint_calls,
        "model_calls": cost.model_calls,
        "model_rows": cost.model_rows,
        "tokens": cost.tokens,
    }
