"""Speculation: drafts that accelerate decoding under constraints and steering, and change nothing of what comes out.

Here are the seam of all drafts (`drafter`, `proposal`, `masks`) and what puts several drafters together (`union`,
`drafter_bandit`, `auto`).  Below: `loop` runs drafts, `guessers`, `models` and `heads` make them, `policies` say how
many, `acceptance` says which stay.
"""

from __future__ import annotations

from guided.draft.acceptance.judge import Judge, fit_judge
from guided.draft.acceptance.lossy import Lossy
from guided.draft.acceptance.typical import Typical
from guided.draft.auto import Drafting, auto
from guided.draft.drafter import Context, Drafter, Observed
from guided.draft.drafter_bandit import Chosen
from guided.draft.guessers.aggressive import Aggressive
from guided.draft.guessers.best_first import BestFirst
from guided.draft.guessers.datastore import Datastore
from guided.draft.guessers.forced_bytes import ForcedBytes
from guided.draft.guessers.guess import Guess, Guesser, Path
from guided.draft.guessers.lookahead import Lookahead
from guided.draft.guessers.lookup import PromptLookup
from guided.draft.guessers.mask_counts import MaskCounts
from guided.draft.guessers.ngram_counts import NGrams
from guided.draft.guessers.recycling import Recycling
from guided.draft.guessers.suffixes import Suffixes
from guided.draft.guessers.trigrams import TriGrams
from guided.draft.heads.chimera import ChimeraHeads
from guided.draft.heads.clover import CloverHeads
from guided.draft.heads.decoder_block import BlockSizes
from guided.draft.heads.draft_heads import Base, DraftHeads, HeadSettings
from guided.draft.heads.eagle import Eagle
from guided.draft.heads.feature_heads import Eagle3Head, EagleHead, FeatureHead, fused_blocks, most_frequent
from guided.draft.heads.fit_features import FeatureExamples, feature_examples, fit_features
from guided.draft.heads.fit_heads import HeadExamples, calibrate_heads, fit_heads, head_examples
from guided.draft.heads.from_heads import Heads
from guided.draft.heads.hydra import HydraHeads
from guided.draft.heads.load_heads import load_heads, new_heads
from guided.draft.heads.load_published import load_published
from guided.draft.heads.losses import DraftLoss, draft_losses
from guided.draft.heads.medusa import MedusaHeads
from guided.draft.heads.parallel_prompts import ParallelPrompts, PromptedTree, prompted_tree
from guided.draft.heads.prefixed import Prefixed, PrefixedHeads, fit_prefixed, load_prefixed, prefixed_examples
from guided.draft.loop.reward_guided import RewardGuided, reward_guided
from guided.draft.loop.speculate import Speculated, speculate
from guided.draft.loop.statistics import Statistics
from guided.draft.models.acceptance_head import (
    AcceptanceExamples,
    AcceptanceHead,
    acceptance_examples,
    fit_acceptance_head,
)
from guided.draft.models.confidence import Confidence
from guided.draft.models.early_exit import EarlyExit, early_exits
from guided.draft.models.fit_model import Online, distil
from guided.draft.models.intersection import IntersectedModel, intersected
from guided.draft.models.model import Model
from guided.draft.models.other_vocabulary import OtherVocabulary
from guided.draft.models.overlapped import Overlapped
from guided.draft.models.shapes import Beam, Branching, Chain, Dynamic, Independent, OptTree, Planned, Shape
from guided.draft.models.skip_search import SkipSearch, search_skips
from guided.draft.models.staged import Staged
from guided.draft.models.stopping import HeadStopped
from guided.draft.models.sublayers import Part, Skippable, Sublayer
from guided.draft.models.tree_plans import TreePlan, fastest_tree, measure_ranks, optimal_tree
from guided.draft.policies.goodput import Goodput
from guided.draft.policies.lengths import EXP3, UCB, Heuristic
from guided.draft.policies.policy import Fixed, Policy, Round
from guided.draft.proposal import Drawn, Group, Proposal, chain
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
    "BlockSizes",
    "Branching",
    "Chain",
    "ChimeraHeads",
    "Chosen",
    "CloverHeads",
    "Confidence",
    "Context",
    "Datastore",
    "DraftHeads",
    "DraftLoss",
    "Drafter",
    "Drafting",
    "Drawn",
    "Dynamic",
    "Eagle",
    "Eagle3Head",
    "EagleHead",
    "EarlyExit",
    "FeatureExamples",
    "FeatureHead",
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
    "Independent",
    "IntersectedModel",
    "Judge",
    "Lookahead",
    "Lossy",
    "MaskCounts",
    "MedusaHeads",
    "Model",
    "NGrams",
    "Observed",
    "Online",
    "OptTree",
    "OtherVocabulary",
    "Overlapped",
    "ParallelPrompts",
    "Part",
    "Path",
    "Planned",
    "Policy",
    "Prefixed",
    "PrefixedHeads",
    "PromptLookup",
    "PromptedTree",
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
    "Suffixes",
    "TreePlan",
    "TriGrams",
    "Typical",
    "Union",
    "acceptance_examples",
    "auto",
    "calibrate_heads",
    "chain",
    "distil",
    "draft_losses",
    "early_exits",
    "fastest_tree",
    "feature_examples",
    "fit_acceptance_head",
    "fit_features",
    "fit_heads",
    "fit_judge",
    "fit_prefixed",
    "fused_blocks",
    "head_examples",
    "intersected",
    "load_heads",
    "load_prefixed",
    "load_published",
    "measure_ranks",
    "most_frequent",
    "new_heads",
    "optimal_tree",
    "prefixed_examples",
    "prompted_tree",
    "reward_guided",
    "search_skips",
    "speculate",
]
