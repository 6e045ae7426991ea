"""One schema through one engine: compile, generate, validate; whatever happens becomes a record."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from guided.eval.corpus import SchemaRow
from guided.eval.decoding import Decoded, Draw, NextLogits, Stop, decode, engine_error
from guided.eval.engines.names import EngineName
from guided.eval.engines.opening import open_engine
from guided.eval.engines.protocol import Engine, Matcher, TokenSpace
from guided.eval.loading import load_asked, room_of
from guided.eval.prompts import prompt_ids
from guided.eval.records import Outcome, Record
from guided.eval.settings import Settings, result_key
from guided.eval.time_limit import OutOfTimeError, time_limit
from guided.eval.validation import NoVerdictError, schema_fault, why_invalid

__all__ = ["Evaluator"]

LEAST_TOKENS = 64
"""Tokens that must be left for the output, else the prompt is too long for the model."""

_WARM_UP = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 9},
        "n": {"type": "number"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "required": ["name", "n", "tags"],
    "additionalProperties": False,
}

_OUTCOMES = {
    Stop.BUDGET: (Outcome.UNFINISHED, "the token budget ended the output"),
    Stop.TIME: (Outcome.GENERATE_TIME, "generating took longer than its limit"),
    Stop.NO_TOKEN: (Outcome.DEAD_END, "the mask was empty: no token and no end of text was allowed"),
    Stop.ERROR: (Outcome.CRASHED, "the engine raised"),
}


class Evaluator:
    """A loaded model and open engines.  Not for several threads: a model's cache belongs to one text at a time."""

    def __init__(
        self,
        settings: Settings,
        engines: Sequence[EngineName],
        *,
        on_stage: Callable[[str], None] | None = None,
    ) -> None:
        """Load the model and open the engines, each of which compiles and masks once before anything is timed.

        Raises `GuidedError` for a model that cannot be loaded and an engine that is not installed.
        """
        report = on_stage or (lambda stage: None)
        self.settings = settings
        self.model = load_asked(settings, on_stage)
        self._room = room_of(self.model)
        self._logits = NextLogits(self.model)
        # Asked of the model itself: configurations of several parts do not agree on where they say it.
        width = int(self._logits.begin([self.model.vocabulary.eos_ids[0]]).shape[1])
        self.tokens = TokenSpace(self.model.tokenizer, self.model.vocabulary, width)
        self._engines: dict[EngineName, Engine] = {}
        for name in engines:
            report(f"warming up {name.value}")
            self._engines[name] = open_engine(name, self.tokens)
            self._generate(self._engines[name].compile(_WARM_UP).start(), self._prompt(_WARM_UP), Draw(), 24)

    def evaluate(self, row: SchemaRow, engine: EngineName, *, on_compiled: Callable[[], None] | None = None) -> Record:
        """The result for a schema; raises only what is no result: an interruption.

        ``on_compiled`` is called when the engine has taken the schema, before anything is generated.
        """
        known: dict[str, Any] = {
            "key": result_key(row, engine, self.settings),
            "id": row.id,
            "split": row.split,
            "engine": engine.value,
        }
        fault = schema_fault(row.schema)
        if fault is not None:
            return Record(**known, outcome=Outcome.SKIPPED, reason=fault)
        prompt = self._prompt(row.schema)
        known["n_prompt"] = len(prompt)
        left = self._left(prompt)
        if left < min(LEAST_TOKENS, self.settings.max_new_tokens):
            reason = f"the prompt takes {len(prompt)} tokens, and the model has room for {self._room}"
            return Record(**known, outcome=Outcome.SKIPPED, reason=reason)
        began = time.perf_counter()
        try:
            with time_limit(self.settings.compile_seconds):
                matcher = self._engines[engine].compile(row.schema).start()
        except OutOfTimeError:
            reason = f"compiling took longer than {self.settings.compile_seconds:g} s"
            return Record(**known, outcome=Outcome.COMPILE_TIME, reason=reason, gct_s=time.perf_counter() - began)
        except BaseException as error:
            return Record(**known, outcome=Outcome.REFUSED, reason=engine_error(error))
        known["gct_s"] = time.perf_counter() - began
        if on_compiled is not None:
            on_compiled()
        draw = Draw(self.settings.temperature, _seed(self.settings.seed, row.id))
        try:
            made = self._generate(matcher, prompt, draw, left)
        except Exception as error:
            return Record(**known, outcome=Outcome.CRASHED, reason=f"the model raised {engine_error(error)}")
        text = self._text(made)
        outcome, reason = self._judge(made, text, row.schema)
        return Record(**known, **_times(made, began), n_tokens=made.steps, text=text, outcome=outcome, reason=reason)

    def _prompt(self, schema: Any) -> list[int]:
        room = None if self._room is None else self._room - min(LEAST_TOKENS, self.settings.max_new_tokens)
        return prompt_ids(self.model, schema, room)

    def _left(self, prompt: list[int]) -> int:
        most = self.settings.max_new_tokens
        return most if self._room is None else min(most, self._room - len(prompt))

    def _generate(self, matcher: Matcher, prompt: list[int], draw: Draw, most: int) -> Decoded:
        return decode(
            self._logits,
            prompt,
            matcher,
            eos_ids=self.model.vocabulary.eos_ids,
            max_new_tokens=most,
            draw=draw,
            seconds=self.settings.generate_seconds,
        )

    def _text(self, made: Decoded) -> str:
        vocabulary = self.model.vocabulary
        known = [token for token in made.token_ids if token < vocabulary.size]
        return b"".join(vocabulary.token_bytes(token) or b"" for token in known).decode("utf-8", "replace")

    def _judge(self, made: Decoded, text: str, schema: Any) -> tuple[Outcome, str]:
        if made.stop is not Stop.END:
            outcome, reason = _OUTCOMES[made.stop]
            return outcome, made.reason or reason
        try:
            fault = why_invalid(text, schema)
        except NoVerdictError as error:
            return Outcome.SKIPPED, f"jsonschema cannot judge it: {error}"
        return (Outcome.VALID, "") if fault is None else (Outcome.INVALID, fault)


def _times(made: Decoded, began: float) -> dict[str, Any]:
    first = made.first_token_at
    if first is None:
        return {}
    times = {"ttft_s": first - began}
    after_first = made.steps - 1
    if after_first:
        times["tpot_ms"] = 1000 * (made.ended_at - first) / after_first
        times["mask_ms"] = 1000 * made.mask_seconds / after_first
    return times


def _seed(seed: int, name: str) -> int:
    """The seed of a row's draws: the same wherever and in whatever order the row is run."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{name}".encode()).digest()[:4], "big")
