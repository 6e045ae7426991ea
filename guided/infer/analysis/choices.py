"""`choice_probabilities`: the exact probability of each text of a finite language, over all its tokenisations.

The language is first walked as a lattice of constraint states and tokens, which tells a finite language from an
infinite one and counts the prefixes that the model will have to read, before it reads any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import LimitError, UnsupportedError
from guided.infer.analysis.enumeration import MAX_PREFIXES, Enumeration, exact
from guided.infer.result import Cost
from guided.infer.runs.rounds import RoundProgress
from guided.infer.sequences.exploration import MEMORY
from guided.infer.weights import log_sum_exp, normalised
from guided.lm.model import LanguageModel

__all__ = ["Choices", "Lattice", "choice_probabilities", "lattice_of"]


@dataclass(frozen=True)
class Choices(Mapping[str, float]):
    """The probability of each text, given that the model says one of them and ends; a mapping that sums to 1.

    In order of probability, equal ones in order of text.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> found = infer.choice_probabilities(model, [0], guided.compile(guided.choice(["a", "ab"]), letters))
    >>> {text: round(probability, 3) for text, probability in found.items()}, found.best
    ({'a': 0.769, 'ab': 0.231}, 'a')
    """

    probabilities: Mapping[str, float]
    log_weights: Mapping[str, float]
    """The logarithm of the model's own probability of each text and an end-of-text token behind it."""
    tokenisations: Mapping[str, int]
    """How many token sequences spell each text; of those that were looked at."""
    canonical: Mapping[str, float] | None = None
    """The probabilities when only canonical token sequences count; None where that was not asked."""
    unseen: float = 0.0
    """At most this share of the mass lies in token sequences that were not looked at; 0 unless ``mass`` was below 1."""
    cost: Cost = field(default_factory=Cost)

    @property
    def log_ml(self) -> float:
        """The logarithm of the probability that the model says any of the texts."""
        return log_sum_exp(list(self.log_weights.values()))

    @property
    def best(self) -> str:
        """The likeliest text."""
        return next(iter(self.probabilities))

    def __getitem__(self, text: str) -> float:
        return self.probabilities[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.probabilities)

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclass(frozen=True)
class Lattice:
    """What a finite language is in tokens."""

    n_states: int
    n_sequences: int
    """Token sequences of all texts."""
    n_prefixes: int
    """Distinct prefixes of those, the empty one included and whole sequences with their end-of-text left out."""
    longest: int
    """Tokens of the longest sequence, the end-of-text token not counted."""


def choice_probabilities(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    canonical: Constrains | None = None,
    mass: float = 1.0,
    max_prefixes: int = MAX_PREFIXES,
    batch: int = 64,
    memory: int = MEMORY,
    progress: RoundProgress | None = None,
) -> Choices:
    """The probability of each text of a finite language after ``prompt``: all sum to 1, every tokenisation counts.

    The probability of a text is the sum over its token sequences of the model's probability of the sequence and an
    end-of-text token, over the same sum for all texts.  A text that is the beginning of another is thus told from it
    by its end.  ``canonical`` is the same language with one spelling a text (`guided.canonical` of the constraint, with
    the prompt as ``before``); the result then also has the probabilities under that spelling alone.

    The model reads each distinct prefix once, ``batch`` at a time.  A text of n letters may have 2^n spellings, nearly
    all of them without weight: ``mass`` below 1 reads the likeliest prefixes first, stops when at least that share was
    found, and bounds the rest (`Choices.unseen`).

    Raises `UnsupportedError` for an infinite language, and `UnsatisfiableError` when the model gives every text the
    probability 0.  Raises `LimitError` when more than ``max_prefixes`` prefixes would have to be read (for ``mass=1``
    before the model reads any).

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> found = infer.choice_probabilities(model, [0], guided.compile(guided.choice(["a", "b"]), letters))
    >>> {text: round(share, 3) for text, share in found.items()}  # 0.6 to 0.3, as each ends with 0.1
    {'a': 0.667, 'b': 0.333}
    """
    grammar = getattr(constraint, "grammar", None)
    if grammar is not None and grammar.special_tokens:
        raise UnsupportedError(
            f"a language with special tokens ({', '.join(grammar.special_tokens[:3])}) is not one of texts",
            remedy="Leave them out of the grammar, and put what stands before the choice into the prompt.",
        )
    lattice = lattice_of(constraint, max_edges=max_prefixes)
    if mass == 1 and lattice.n_prefixes > max_prefixes:
        raise LimitError(
            f"the language's {lattice.n_sequences} token sequences have {lattice.n_prefixes} prefixes, more than"
            f" {max_prefixes}",
            remedy="Raise max_prefixes, ask for most of the mass with mass=0.9999, or bound the language more tightly.",
        )
    found = exact(
        model,
        prompt,
        constraint,
        max_tokens=lattice.longest + 1,
        mass=mass,
        max_prefixes=max_prefixes,
        batch=batch,
        memory=memory,
        progress=progress,
    )
    logs: dict[str, list[float]] = {}
    for particle in found.particles:
        logs.setdefault(_text(particle.data), []).append(particle.logw)
    sums = {text: log_sum_exp(each) for text, each in logs.items()}
    probabilities = _shares(sums)
    return Choices(
        probabilities,
        MappingProxyType({text: sums[text] for text in probabilities}),
        MappingProxyType({text: len(logs[text]) for text in probabilities}),
        None if canonical is None else _canonical(found, canonical, list(probabilities)),
        math.exp(found.log_rest - float(np.logaddexp(found.log_rest, found.log_ml))),
        found.cost,
    )


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnsupportedError(
            f"{data!r} is in the language and is no UTF-8 text",
            remedy="Use guided.infer.exact, whose results are bytes.",
        ) from None


def _shares(logs: Mapping[str, float]) -> Mapping[str, float]:
    shares = normalised(list(logs.values())).tolist()
    return MappingProxyType(dict(sorted(zip(logs, shares, strict=True), key=lambda item: (-item[1], item[0]))))


def _canonical(found: Enumeration, canonical: Constrains, texts: Sequence[str]) -> Mapping[str, float]:
    logs = dict.fromkeys(texts, -math.inf)
    for particle in found.particles:
        state = canonical.start
        for token in particle.tokens:
            state = canonical.advance(state, token)
            if not state:
                break
        if state:
            text = particle.data.decode()
            logs[text] = float(np.logaddexp(logs[text], particle.logw))
    return _shares(logs)


def lattice_of(constraint: Constrains, *, max_edges: int = MAX_PREFIXES) -> Lattice:
    """Walk a finite language's states depth first and count its token sequences.

    Raises `UnsupportedError` with a text that shows it where a state comes back to itself: from every state the
    language can end, so it is infinite.  Raises `LimitError` after ``max_edges`` steps from state to state, which for
    some languages is how infinity shows; each of them is a prefix that a model would have to read.
    """
    words = constraint.vocabulary.n_words
    row = np.zeros(words, np.uint32)
    ends = frozenset(constraint.vocabulary.eos_ids)
    if not ends:
        raise UnsupportedError(
            "the vocabulary has no end-of-text id, so no text ever ends",
            remedy="Build the vocabulary with eos_ids.",
        )

    def tokens_of(state: int) -> list[int]:
        constraint.fill_mask(state, row)
        return [token for token in tokenset.ids(row).tolist() if token not in ends]

    # Per finished state: sequences that end from it, prefixes that go on from it, tokens of the longest.
    counts: dict[int, tuple[int, int, int]] = {}
    open_states = {constraint.start: 0}
    stack: list[tuple[int, list[int], list[int]]] = [(constraint.start, tokens_of(constraint.start), [])]
    path: list[int] = []
    edges = 0
    while stack:
        state, waiting, after = stack[-1]
        if waiting:
            token = waiting.pop()
            then = constraint.advance(state, token)
            edges += 1
            after.append(then)
            if then in open_states:
                text = _spelled(constraint, [*path, token])
                before = _spelled(constraint, [*path, token][: open_states[then]])
                raise UnsupportedError(
                    "the language is infinite, so its texts have no table of probabilities",
                    where=f"after {text!r}, which can go on in all the ways that {before!r} can",
                    remedy="Bound every repetition, or sample (cars, smc) and count.",
                )
            if edges > max_edges:
                raise LimitError(
                    f"the language has more than {max_edges} prefixes in tokens, if it is finite at all",
                    where=f"at {_spelled(constraint, path)[:60]!r}",
                    remedy="Raise max_prefixes, bound the language more tightly, or sample (cars, smc) and count.",
                )
            if then not in counts:
                path.append(token)
                open_states[then] = len(path)
                stack.append((then, tokens_of(then), []))
            continue
        stack.pop()
        del open_states[state]
        if path:
            path.pop()
        each = [counts[then] for then in after]
        counts[state] = (
            int(constraint.is_accepting(state)) + sum(n for n, _, _ in each),
            1 + sum(n for _, n, _ in each),
            max((1 + n for _, _, n in each), default=0),
        )
    n_sequences, n_prefixes, longest = counts[constraint.start]
    return Lattice(len(counts), n_sequences, n_prefixes, longest)


def _spelled(constraint: Constrains, tokens: Sequence[int]) -> str:
    parts = [constraint.vocabulary.token_bytes(token) or b"" for token in tokens]
    return b"".join(parts).decode(errors="replace")
