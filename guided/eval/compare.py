"""Which engine enforces, ignores or refuses which keyword of a schema: probes of each keyword through each engine.

What an engine does with a keyword is told from outside, by texts alone, token by token as in generation:

- **refused**: the engine does not compile the schema, and this keyword is among the fewest whose removal helps;
- **enforced**: it allows none of the instances that break just this keyword;
- **ignored**: it allows them, or forbids some for another reason: those it forbids without the keyword too;
- **partly**: it allows some, and forbids others because of the keyword;
- **too strict**: it forbids a valid instance that it allows without this keyword;
- **unclear**: it forbids the instances that break the keyword, also with the keyword taken out, and valid ones too, so
  that nothing can be told.

Where an engine refuses the schema, its other keywords are tried in the schema without the refused ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from guided import tokenset
from guided.errors import VocabularyError
from guided.eval.engines.names import EngineName
from guided.eval.engines.opening import open_engine
from guided.eval.engines.protocol import Compiled, Engine, TokenSpace
from guided.eval.occurrences import Occurrence, at, occurrences
from guided.eval.probes import Probes, find_probes, relaxed, written
from guided.eval.time_limit import OutOfTimeError, time_limit
from guided.eval.validation import validator_for, why_invalid

__all__ = ["Comparison", "EngineView", "Finding", "Given", "Verdict", "compare"]

COMPILE_SECONDS = 20.0
"""Limit of one compilation, of which a comparison does several for each keyword."""


class Verdict(str, Enum):
    """What an engine does with a keyword; see the module."""

    ENFORCED = "enforced"
    PARTLY = "partly"
    IGNORED = "ignored"
    REFUSED = "refused"
    TOO_STRICT = "too strict"
    UNCLEAR = "unclear"
    UNKNOWN = "unknown"
    """The engine compiles no schema that is left, or no instance breaks the keyword alone."""


@dataclass(frozen=True)
class Finding:
    """One engine and one keyword."""

    verdict: Verdict
    detail: str = ""
    """The engine's message, or the instances that show it."""


@dataclass(frozen=True)
class Given:
    """An instance that the user gave, or a valid one of ours, and who takes it."""

    name: str
    text: str
    fault: str | None
    """What jsonschema has against it; None when it is valid."""
    accepted: dict[EngineName, bool | None]
    """By engine; None where the engine does not compile the schema."""


@dataclass(frozen=True)
class EngineView:
    """What an engine does with the schema as a whole."""

    name: EngineName
    message: str
    """Why it refuses the schema; empty when it compiles it."""
    refused: tuple[Occurrence, ...]
    """The fewest keywords found without which it compiles."""
    notes: tuple[str, ...]
    """What it says about the schema while it compiles it: here an engine may name what it ignores."""
    valid: int
    """Our instances that are valid without the refused keywords."""
    valid_accepted: int
    """Of these, how many it allows."""


@dataclass
class Comparison:
    """The result."""

    keywords: dict[Occurrence, dict[EngineName, Finding]]
    engines: list[EngineView]
    probes: Probes
    given: list[Given] = field(default_factory=list)


def compare(
    schema: Any,
    tokens: TokenSpace,
    names: Sequence[EngineName],
    given: Sequence[tuple[str, str]] = (),
    *,
    seed: int = 0,
    on_stage: Callable[[str], None] | None = None,
) -> Comparison:
    """Probe engines with a schema; ``given`` are names and texts of instances to judge as well.

    Raises `GuidedError` for an engine that is not installed, and what jsonschema raises for a schema that it cannot
    judge with.  Costs a few hundred validations and compilations: seconds for a schema of 20 keywords.
    """
    report = on_stage or (lambda stage: None)
    report("deriving instances")
    probes = find_probes(schema, seed)
    speller = _Speller(tokens)
    trials: list[_Trial] = []
    for name in names:
        report(f"probing {name.value}")
        trials.append(_Trial(name, open_engine(name, tokens), schema, probes, speller, tokens))
    rows = [one for one in occurrences(schema) if any(one in trial.refused for trial in trials)]
    rows += [one for one in probes.mutants if one not in rows]
    order = {one: number for number, one in enumerate(occurrences(schema))}
    rows.sort(key=lambda one: order.get(one, len(order)))
    findings = {one: {trial.name: trial.finding(one) for trial in trials} for one in rows}
    result = Comparison(findings, [trial.view() for trial in trials], probes)
    for label, text in given:
        accepted = {trial.name: trial.accepts_as_given(text) for trial in trials}
        result.given.append(Given(label, text, why_invalid(text, schema), accepted))
    return result


class _Speller:
    """Texts as tokens in two ways: as the tokenizer does it, and longest first.

    An engine may know only the tokenizer's way where its grammar forces the text (llguidance), and a tokenizer may
    begin a text with a space that is not there (SentencePiece); a text is allowed if it is in either way.
    """

    def __init__(self, tokens: TokenSpace) -> None:
        self._tokens = tokens
        self._by_text: dict[bytes, list[int]] = {}
        for token, text in enumerate(tokens.vocabulary.tokens):
            if text is not None:
                self._by_text.setdefault(text, []).append(token)

    def __call__(self, text: str) -> list[list[list[int]]]:
        """Spellings; in each, for every piece the ids that mean it: of several, an engine may know but one."""
        data = text.encode("utf-8", "surrogatepass")
        ways = [self._longest_first(data)]
        vocabulary = self._tokens.vocabulary
        usual = self._tokens.tokenizer.encode(text, add_special_tokens=False)
        pieces = [vocabulary.token_bytes(token) if token < vocabulary.size else None for token in usual]
        if None not in pieces and b"".join(piece or b"" for piece in pieces) == data:
            ways.insert(0, [self._by_text[piece or b""] for piece in pieces])
        return ways

    def _longest_first(self, data: bytes) -> list[list[int]]:
        found: list[list[int]] = []
        start = 0
        while start < len(data):
            for stop in range(min(len(data), start + self._tokens.vocabulary.longest), start, -1):
                spelled = self._by_text.get(data[start:stop])
                if spelled is not None:
                    break
            else:
                raise VocabularyError(
                    f"the tokenizer cannot spell {data.decode('utf-8', 'replace')!r}",
                    remedy="Pass a tokenizer with byte tokens as --tokenizer.",
                )
            found.append(spelled)
            start = stop
        return found


class _Trial:
    """One engine on one schema and its relaxations, each compiled once."""

    def __init__(
        self, name: EngineName, engine: Engine, schema: Any, probes: Probes, speller: _Speller, tokens: TokenSpace
    ) -> None:
        self.name = name
        self._engine = engine
        self._schema = schema
        self._probes = probes
        self._spell = speller
        self._eos = tokens.vocabulary.eos_ids
        self._row = np.zeros(tokens.n_words, np.uint32)
        self._compiled: dict[frozenset[Occurrence], Compiled | str] = {}
        self.refused: tuple[Occurrence, ...] = ()
        whole = self._compile(())
        self._message = whole if isinstance(whole, str) else ""
        if isinstance(whole, str):
            self.refused = self._offenders(whole)
        self._usable = not isinstance(self._compile(self.refused), str)
        self._valid = [value for value in probes.valid if self._still_valid(value)]
        self._rejected = [value for value in self._valid if self._usable and not self._accepts(self.refused, value)]

    def view(self) -> EngineView:
        accepted = len(self._valid) - len(self._rejected) if self._usable else 0
        compiled = self._compile(self.refused)
        notes = () if isinstance(compiled, str) else tuple(compiled.notes)
        return EngineView(self.name, self._message, self.refused, notes, len(self._valid), accepted)

    def accepts_as_given(self, text: str) -> bool | None:
        """Does the engine, with the whole schema, allow a text as it is written?"""
        compiled = self._compile(())
        return None if isinstance(compiled, str) else self._reads(compiled, text)

    def finding(self, one: Occurrence) -> Finding:
        if one in self.refused:
            alone = self._compile([other for other in self.refused if other != one])
            return Finding(Verdict.REFUSED, alone if isinstance(alone, str) else self._message)
        if not self._usable:
            return Finding(Verdict.UNKNOWN, self._message)
        mutants = [value for value in self._probes.mutants.get(one, ()) if self._breaks(value)]
        if not mutants:
            return Finding(Verdict.UNKNOWN, "no instance breaks this keyword alone")
        allowed = [value for value in mutants if self._accepts(self.refused, value)]
        if not allowed and not self._rejected:
            return Finding(Verdict.ENFORCED, f"forbids {_quoted(mutants)}")
        # Forbidden with the keyword and allowed without it: forbidden because of it.
        stopped = [v for v in mutants if v not in allowed and self._accepts((*self.refused, one), v)]
        if allowed and stopped:
            return Finding(Verdict.PARTLY, f"allows {_quoted(allowed)}, forbids {_quoted(stopped)}")
        if allowed:
            return Finding(Verdict.IGNORED, f"allows {_quoted(allowed)}")
        strict = [value for value in self._rejected if self._accepts((*self.refused, one), value)]
        if strict:
            return Finding(Verdict.TOO_STRICT, f"forbids the valid {_quoted(strict)}")
        if stopped:
            return Finding(Verdict.ENFORCED, f"forbids {_quoted(stopped)}")
        return Finding(Verdict.UNCLEAR, f"forbids {_quoted(mutants)}, but also without this keyword, and valid ones")

    def _compile(self, gone: Sequence[Occurrence]) -> Compiled | str:
        """The schema without some keywords, compiled, or why it is not."""
        key = frozenset(gone)
        if key not in self._compiled:
            self._compiled[key] = self._try(relaxed(self._schema, list(gone)))
        return self._compiled[key]

    def _try(self, schema: Any) -> Compiled | str:
        from guided.eval.decoding import engine_error

        try:
            with time_limit(COMPILE_SECONDS):
                compiled = self._engine.compile(schema)
                compiled.start().fill_mask(self._row, None)
        except OutOfTimeError:
            return f"compiling took longer than {COMPILE_SECONDS:g} s"
        except BaseException as error:
            return engine_error(error)
        return compiled

    def _offenders(self, message: str) -> tuple[Occurrence, ...]:
        """The keywords without which the engine compiles: one if that will do, else as few as trying in turn finds."""
        candidates = [one for one in occurrences(self._schema) if _may_offend(self._schema, one)]
        # What the engine names in its message is tried first, and inner keywords before outer ones.
        candidates.sort(key=lambda one: (one.keyword not in message, -len(one.path)))
        for one in candidates:
            if not isinstance(self._compile((one,)), str):
                return (one,)
        gone: list[Occurrence] = []
        for one in candidates:
            gone.append(one)
            if not isinstance(self._compile(gone), str):
                break
        else:
            return ()
        for one in list(gone[:-1]):
            fewer = [other for other in gone if other != one]
            if not isinstance(self._compile(fewer), str):
                gone = fewer
        return tuple(gone)

    def _still_valid(self, value: Any) -> bool:
        return bool(validator_for(relaxed(self._schema, list(self.refused))).is_valid(value))

    def _breaks(self, value: Any) -> bool:
        """Is a mutant still none in the schema that the engine gets?  Taking a keyword out may have made it valid."""
        return not self.refused or not self._still_valid(value)

    def _accepts(self, gone: Sequence[Occurrence], value: Any) -> bool:
        compiled = self._compile(gone)
        return not isinstance(compiled, str) and self._reads(compiled, written(value))

    def _reads(self, compiled: Compiled, text: str) -> bool:
        return any(self._reads_as(compiled, way) for way in self._spell(text))

    def _reads_as(self, compiled: Compiled, way: list[list[int]]) -> bool:
        """Is every token of a text allowed, and then an end of text?  An engine that raises does not allow."""
        from guided.eval.decoding import engine_error

        try:
            matcher = compiled.start()
            for spelled in way:
                matcher.fill_mask(self._row, None)
                token = next(filter(self._allows, spelled), None)
                if token is None:
                    return False
                matcher.advance(token)
            matcher.fill_mask(self._row, None)
        except BaseException as error:
            engine_error(error)
            return False
        return any(self._allows(end) for end in self._eos)

    def _allows(self, token: int) -> bool:
        return tokenset.contains(self._row, token)


def _may_offend(schema: Any, one: Occurrence) -> bool:
    """Is a keyword worth taking out?  Not one that holds others, which would go with it and be blamed."""
    value = at(schema, one.path)[one.keyword]
    return not (one.keyword == "properties" and isinstance(value, dict) and value)


def _quoted(values: Sequence[Any], most: int = 2) -> str:
    shown = [text if len(text) <= 60 else text[:59] + "…" for text in map(written, values[:most])]
    return " ".join(shown)
