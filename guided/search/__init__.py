"""Search: answers found by comparing whole continuations rather than by choosing token after token."""

from guided.search.a_star import Setting, a_star_search, tuned
from guided.search.batched import beam_search_each
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
from guided.search.mcts import mcts_search
from guided.search.neurologic import Clause, Literal, LookAhead, neurologic_search
from guided.search.open_frontier import TreeFound
from guided.search.phrases import PhraseConstraint
from guided.search.ranking import (
    Consensus,
    RankedText,
    consensus_game,
    exact_match,
    minimum_bayes_risk,
    word_f1,
)
from guided.search.result import Found, Hypothesis, SearchCost
from guided.search.rewarded import block_search, deal_search
from guided.search.spans import Span, best_spans
from guided.search.text_phrases import TextPhrase

__all__ = [
    "Clause",
    "Consensus",
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
    "RankedText",
    "Scoring",
    "SearchCost",
    "Setting",
    "Span",
    "Stopping",
    "TextPhrase",
    "TreeFound",
    "a_star_search",
    "beam_search",
    "beam_search_each",
    "best_first_beam_search",
    "best_spans",
    "block_search",
    "consensus_game",
    "deal_search",
    "diverse_beam_search",
    "document_search",
    "dynamic_beam_search",
    "exact_match",
    "grid_beam_search",
    "lattice_search",
    "mcts_search",
    "minimum_bayes_risk",
    "neurologic_search",
    "rank_documents",
    "tuned",
    "word_f1",
]
