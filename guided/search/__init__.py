"""Search: answers found by comparing whole continuations rather than by choosing token after token."""

from guided.search.beam import Stopping, beam_search
from guided.search.best_first import best_first_beam_search
from guided.search.diverse import DiverseFound, diverse_beam_search
from guided.search.documents import (
    DocumentsFound,
    Evidence,
    RankedDocument,
    Scoring,
    document_search,
    rank_documents,
)
from guided.search.lattice import Edge, Lattice, LatticeFound, lattice_search
from guided.search.lexical import dynamic_beam_search, grid_beam_search
from guided.search.neurologic import Clause, Literal, LookAhead, neurologic_search
from guided.search.phrases import PhraseConstraint
from guided.search.result import Found, Hypothesis, SearchCost
from guided.search.rewarded import block_search, deal_search
from guided.search.spans import Span, best_spans
from guided.search.text_phrases import TextPhrase

__all__ = [
    "Clause",
    "DiverseFound",
    "DocumentsFound",
    "Edge",
    "Evidence",
    "Found",
    "Hypothesis",
    "Lattice",
    "LatticeFound",
    "Literal",
    "LookAhead",
    "PhraseConstraint",
    "RankedDocument",
    "Scoring",
    "SearchCost",
    "Span",
    "Stopping",
    "TextPhrase",
    "beam_search",
    "best_first_beam_search",
    "best_spans",
    "block_search",
    "deal_search",
    "diverse_beam_search",
    "document_search",
    "dynamic_beam_search",
    "grid_beam_search",
    "lattice_search",
    "neurologic_search",
    "rank_documents",
]
