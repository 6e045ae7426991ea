"""Retrieval by generation: n-grams that stand in an index, and documents ranked by those they hold (SEAL).

A model writes n-grams behind a prompt that asks for them ("What does the answer say?"), held to those that occur in the
documents; an n-gram that the model finds likelier than its frequency explains is evidence for the documents that hold
it.  (Bevilacqua et al., Autoregressive Search Engines, NeurIPS 2022.)
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.monitor.fm_index import FmIndex
from guided.monitor.ngrams import NgramConstraint
from guided.search.beam import candidate_order, check_sizes
from guided.search.frontier import Frontier, Node
from guided.search.result import SearchCost, cost_of

__all__ = [
    "DocumentsFound",
    "Evidence",
    "RankedDocument",
    "Scoring",
    "document_search",
    "ngram_weight",
    "rank_documents",
]

Tokens: TypeAlias = "tuple[int, ...]"

_CERTAIN = -1e-10
"""The highest log-probability that odds are taken of; at 0 they would be infinite."""


class Scoring(Enum):
    """How the weights of a document's n-grams become its score.

    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> for scoring in search.Scoring:
    ...     found = search.rank_documents(index, ngrams, scoring=scoring)
    ...     print(scoring.value, [(each.document, round(each.score, 2)) for each in found])
    intersective [(0, 10.68), (2, 4.57)]
    best [(0, 2.47), (2, 2.14)]
    """

    INTERSECTIVE = "intersective"
    """The sum over n-grams at places of their own, less for tokens that better ones have (`rank_documents`)."""
    BEST = "best"
    """The highest weight (the paper's LM+FM)."""


@dataclass(frozen=True)
class Evidence:
    """One n-gram that speaks for a document.

    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> [(each.tokens, round(each.share, 2)) for each in search.rank_documents(index, ngrams)[0].evidence]
    [((3, 4), 6.11), ((0, 1), 4.57)]
    """

    tokens: Tokens
    share: float
    """What it adds to the document's score."""


@dataclass(frozen=True)
class RankedDocument:
    """A document, its score, and what the score is made of, the greatest weight first.

    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> best = search.rank_documents(index, ngrams)[0]
    >>> best.document, [each.tokens for each in best.evidence]
    (0, [(3, 4), (0, 1)])
    """

    document: int
    score: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class DocumentsFound:
    """Documents, best first, and the n-grams that were written, with their log-probabilities.

    >>> import guided
    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> from guided.lm import TableModel
    >>> from guided.monitor.ngrams import NgramConstraint
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> model = TableModel(lambda tokens: [1.0, 0.0, 0.0, 2.0, 2.0, -9.0], width=6, eos_ids=[5])  # likes 3 and 4
    >>> words = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e", None], eos_ids=[5])
    >>> found = search.document_search(model, [0], NgramConstraint(index, words), length=3, width=4)
    >>> max(found.ngrams, key=found.ngrams.get), found.cost.passes
    ((3,), 2)
    """

    documents: tuple[RankedDocument, ...]
    ngrams: Mapping[Tokens, float]
    cost: SearchCost


def document_search(
    model: LanguageModel,
    prompt: Sequence[int],
    ngrams: NgramConstraint,
    *,
    width: int = 15,
    length: int = 10,
    n_best: int = 10,
    scoring: Scoring = Scoring.INTERSECTIVE,
    alpha: float = 2.0,
    beta: float = 0.8,
) -> DocumentsFound:
    """The ``n_best`` documents for what the model writes behind ``prompt``, held to n-grams of the indexed documents.

    A beam of ``width`` n-grams grows to ``length`` tokens; each that was in it is evidence, with the log-probability of
    its tokens over the model's whole vocabulary.  `rank_documents` says what becomes of that.  ``width`` rows of the
    model for each of ``length`` steps; then each occurrence of an n-gram with a weight is looked up.  Raises
    `GuidedError` for sizes below 1.

    >>> import guided
    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> from guided.lm import TableModel
    >>> from guided.monitor.ngrams import NgramConstraint
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> model = TableModel(lambda tokens: [1.0, 0.0, 0.0, 2.0, 2.0, -9.0], width=6, eos_ids=[5])  # likes 3 and 4
    >>> words = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e", None], eos_ids=[5])
    >>> found = search.document_search(model, [0], NgramConstraint(index, words), length=3, width=4)
    >>> found.documents[0].document
    0
    """
    check_sizes(width, 1)
    if length < 1:
        raise GuidedError(f"n-grams of {length} tokens", remedy="Ask for at least one token.")
    # One token more is the end of the text, for which every mask leaves room.
    frontier = Frontier(model, prompt, ngrams, length + 1)
    found: dict[Tokens, float] = {}
    live: list[Node] = [frontier.root]
    for _ in range(length):
        grown: list[tuple[Node, int]] = []
        for rank, choices in enumerate(frontier.expand(live)):
            grown += [(choices.child(token), rank) for token in choices.best(width)]
        live = candidate_order(grown)[:width]
        found.update((node.tokens, node.score) for node in live)
        if not live:
            break
    documents = rank_documents(ngrams.index, found, n_best=n_best, scoring=scoring, alpha=alpha, beta=beta)
    return DocumentsFound(documents, found, cost_of(frontier))


def ngram_weight(logprob: float, count: int, n_tokens: int) -> float:
    """How much likelier an n-gram is to the model than its frequency says: ``max(0, logit P(n|q) - logit P(n))``.

    ``P(n)`` is ``count / n_tokens``; 0 for an n-gram that does not occur.

    >>> ngram_weight(math.log(0.5), 1, 2), round(ngram_weight(math.log(0.5), 1, 5), 3)
    (0.0, 1.386)
    """
    if not count:
        return 0.0
    return max(0.0, _log_odds(logprob) - _log_odds(math.log(count / n_tokens)))


def _log_odds(logprob: float) -> float:
    logprob = min(logprob, _CERTAIN)
    return logprob - math.log(-math.expm1(logprob))


def rank_documents(
    index: FmIndex,
    ngrams: Mapping[Tokens, float],
    *,
    n_best: int = 10,
    scoring: Scoring = Scoring.INTERSECTIVE,
    alpha: float = 2.0,
    beta: float = 0.8,
) -> tuple[RankedDocument, ...]:
    """The documents that hold some of these n-grams (tokens to log-probability), best first.

    In each document n-grams take their places in the order of `ngram_weight`, longer ones and smaller ids first among
    equals; one counts if it stands somewhere where no better one has a token.  It then adds ``weight ** alpha`` times
    ``1 - beta + beta * new``, with ``new`` the share of its different tokens that no better n-gram of the document has.
    Documents in which nothing has a weight are left out; of equal ones the first comes first.  Raises `GuidedError`
    where ``n_best``, ``alpha`` or ``beta`` is out of range.

    >>> from guided import search
    >>> from guided.monitor.fm_index import FmIndex
    >>> index = FmIndex.build([[0, 1, 2, 3, 4], [2, 1, 0, 0], [0, 1, 1, 1]])  # three documents
    >>> ngrams = {(0, 1): -0.5, (3, 4): -0.7}  # what was written, with its log-probabilities
    >>> [each.document for each in search.rank_documents(index, ngrams)]
    [0, 2]
    """
    if n_best < 1 or not 0.0 <= beta <= 1.0 or not 0.0 <= alpha < math.inf:
        raise GuidedError(
            f"n_best is {n_best}, alpha {alpha} and beta {beta}",
            remedy="Ask for at least one document, with alpha from 0 and beta from 0 to 1.",
        )
    weights = {
        tokens: weight
        for tokens, logprob in ngrams.items()
        if tokens and (weight := ngram_weight(logprob, index.count(tokens), index.n_symbols)) > 0.0
    }
    order = sorted(weights, key=lambda tokens: (-weights[tokens], -len(tokens), tokens))
    places: dict[int, list[tuple[Tokens, list[int]]]] = {}
    for tokens in order:
        for document, offset in index.locate(tokens):
            held = places.setdefault(document, [])
            if not held or held[-1][0] != tokens:
                held.append((tokens, []))
            held[-1][1].append(offset)
    ranked = []
    for document, held in places.items():
        evidence = _evidence(held, weights, alpha, beta)
        if scoring is Scoring.BEST:
            best = held[0][0]
            evidence = (Evidence(best, weights[best]),)
        ranked.append(RankedDocument(document, math.fsum(each.share for each in evidence), evidence))
    return tuple(heapq.nsmallest(n_best, ranked, key=lambda each: (-each.score, each.document)))


def _evidence(
    held: Sequence[tuple[Tokens, list[int]]], weights: Mapping[Tokens, float], alpha: float, beta: float
) -> tuple[Evidence, ...]:
    """What each n-gram of a document adds, of those that have a place of their own."""
    taken: set[int] = set()
    covered: set[int] = set()
    found = []
    for tokens, offsets in held:
        free = False
        for offset in offsets:
            span = range(offset, offset + len(tokens))
            if taken.isdisjoint(span):
                free = True
                taken.update(span)
        if free:
            kinds = set(tokens)
            new = len(kinds - covered) / len(kinds)
            found.append(Evidence(tokens, weights[tokens] ** alpha * (1.0 - beta + beta * new)))
            covered |= kinds
    return tuple(found)
