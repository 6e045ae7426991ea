"""Speculation: drafts that accelerate decoding under constraints and steering, and change nothing of what comes out."""

from __future__ import annotations

from guided.draft.acceptance_head import AcceptanceExamples, AcceptanceHead, acceptance_examples, fit_acceptance_head
from guided.draft.aggressive import Aggressive
from guided.draft.auto import Drafting, auto
from guided.draft.best_first import BestFirst
from guided.draft.confidence import Confidence
from guided.draft.datastore import Datastore
from guided.draft.drafter import Context, Drafter, Observed
from guided.draft.drafter_bandit import Chosen
from guided.draft.early_exit import EarlyExit, early_exits
from guided.draft.fit_heads import HeadExamples, calibrate_heads, fit_heads, head_examples
from guided.draft.forced_bytes import ForcedBytes
from guided.draft.from_heads import Heads
from guided.draft.goodput import Goodput
from guided.draft.guess import Guess, Guesser, Path
from guided.draft.heads import Base, DraftHeads, HeadSettings
from guided.draft.hydra import HydraHeads
from guided.draft.intersection import IntersectedModel, intersected
from guided.draft.judge import Judge, fit_judge
from guided.draft.lengths import EXP3, UCB, Heuristic
from guided.draft.load_heads import load_heads, new_heads
from guided.draft.lookup import PromptLookup
from guided.draft.lossy import Lossy
from guided.draft.mask_counts import MaskCounts
from guided.draft.medusa import MedusaHeads
from guided.draft.model import Model
from guided.draft.ngram_counts import NGrams
from guided.draft.other_vocabulary import OtherVocabulary
from guided.draft.policy import Fixed, Policy, Round
from guided.draft.proposal import Drawn, Group, Proposal, chain
from guided.draft.recycling import Recycling
from guided.draft.reward_guided import RewardGuided, reward_guided
from guided.draft.shapes import Beam, Branching, Chain, Dynamic, Shape
from guided.draft.skip_search import SkipSearch, search_skips
from guided.draft.speculate import Speculated, speculate
from guided.draft.staged import Staged
from guided.draft.statistics import Statistics
from guided.draft.stopping import HeadStopped
from guided.draft.sublayers import Part, Skippable, Sublayer
from guided.draft.trigrams import TriGrams
from guided.draft.typical import Typical
from guided.draft.union import Union

__all__ = [
    "EXP3",
    "UCB",
    "AcceptanceExamples",
    "AcceptanceHead",
    "Aggressive",
    "Base",
    "Beam",
    "BestFirst",
    "Branching",
    "Chain",
    "Chosen",
    "Confidence",
    "Context",
    "Datastore",
    "DraftHeads",
    "Drafter",
    "Drafting",
    "Drawn",
    "Dynamic",
    "EarlyExit",
    "Fixed",
    "ForcedBytes",
    "Goodput",
    "Group",
    "Guess",
    "Guesser",
    "HeadExamples",
    "HeadSettings",
    "HeadStopped",
    "Heads",
    "Heuristic",
    "HydraHeads",
    "IntersectedModel",
    "Judge",
    "Lossy",
    "MaskCounts",
    "MedusaHeads",
    "Model",
    "NGrams",
    "Observed",
    "OtherVocabulary",
    "Part",
    "Path",
    "Policy",
    "PromptLookup",
    "Proposal",
    "Recycling",
    "RewardGuided",
    "Round",
    "Shape",
    "SkipSearch",
    "Skippable",
    "Speculated",
    "Staged",
    "Statistics",
    "Sublayer",
    "TriGrams",
    "Typical",
    "Union",
    "acceptance_examples",
    "auto",
    "calibrate_heads",
    "chain",
    "early_exits",
    "fit_acceptance_head",
    "fit_heads",
    "fit_judge",
    "head_examples",
    "intersected",
    "load_heads",
    "new_heads",
    "reward_guided",
    "search_skips",
    "speculate",
]
