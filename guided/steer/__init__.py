"""Steering: pure logits to logits formulas, objects that declare what they need, stacks of them over a model.

Reading order: `declaration` (what a steerer asks for and is handed), `formulas` (the methods), `second_model`,
`switching`, `second_prompt`, `inner_layers`, `activations`, `rewards` (where rewards come from, and what steers by
them), `text_so_far`, `anti_model`, `masking` (the objects), `stack`, `layout`, `rows`, `steered` (what runs them),
`adaptive`, `fast_and_slow`, `blocks`, `lookahead` (what is no function of logits) and `transitions` (what one needs);
`grounding` (what a model said elsewhere), `knowledge` (facts).  Loads torch.
"""

from guided.lm.model import Added
from guided.steer.activations import Activations, contrastive_vector, prompt_vectors
from guided.steer.adaptive import EntropyAdaptive
from guided.steer.anti_model import FSD, FSDVectors
from guided.steer.blocks import BlockResult, best_of_blocks
from guided.steer.declaration import (
    AsGiven,
    Branch,
    Candidates,
    Declaration,
    LastToken,
    Prefixed,
    Prompt,
    Replaced,
    Seen,
    Steerer,
    Without,
)
from guided.steer.fast_and_slow import FastAndSlow, Router
from guided.steer.formulas.layers import Divergence
from guided.steer.grounding import ContextAdaptive, ReferenceSpace
from guided.steer.inner_layers import Bucket, DeCoRe, DoLa, DynamicFocus, LayersOverLayers
from guided.steer.knowledge import KnowledgeInfused, KnowledgeTrie
from guided.steer.lookahead import Hypothesis, deal
from guided.steer.masking import Masked
from guided.steer.pair import ModelPair
from guided.steer.rewards.autoregressive import Preference, fit_preferences
from guided.steer.rewards.model_reward import ModelReward
from guided.steer.rewards.rewarded import ARGS, FUDGE, RAD, ControlledDecoding
from guided.steer.rewards.scorer import PrefixScorer, train_scorer
from guided.steer.rewards.text_reward import OnFailure, RewardError, RewardWarning, TextReward
from guided.steer.second_model import ARM, Contrastive, DExperts, Mixture, Product, ProxyTuning
from guided.steer.second_prompt import ClassifierFree, ContextAware, Instructive, PrefixAdaptive, SelfDebiasing
from guided.steer.stack import Stack, Steering
from guided.steer.switching import Deferral, DomainMixture, Nudging, train_deferral
from guided.steer.text_so_far import GRAD, ContrastiveSearch, Momentum
from guided.steer.transitions import TransitionGraph

__all__ = [
    "ARGS",
    "ARM",
    "FSD",
    "FUDGE",
    "GRAD",
    "RAD",
    "Activations",
    "Added",
    "AsGiven",
    "BlockResult",
    "Branch",
    "Bucket",
    "Candidates",
    "ClassifierFree",
    "ContextAdaptive",
    "ContextAware",
    "Contrastive",
    "ContrastiveSearch",
    "ControlledDecoding",
    "DExperts",
    "DeCoRe",
    "Declaration",
    "Deferral",
    "Divergence",
    "DoLa",
    "DomainMixture",
    "DynamicFocus",
    "EntropyAdaptive",
    "FSDVectors",
    "FastAndSlow",
    "Hypothesis",
    "Instructive",
    "KnowledgeInfused",
    "KnowledgeTrie",
    "LastToken",
    "LayersOverLayers",
    "Masked",
    "Mixture",
    "ModelPair",
    "ModelReward",
    "Momentum",
    "Nudging",
    "OnFailure",
    "Preference",
    "PrefixAdaptive",
    "PrefixScorer",
    "Prefixed",
    "Product",
    "Prompt",
    "ProxyTuning",
    "ReferenceSpace",
    "Replaced",
    "RewardError",
    "RewardWarning",
    "Router",
    "Seen",
    "SelfDebiasing",
    "Stack",
    "Steerer",
    "Steering",
    "TextReward",
    "TransitionGraph",
    "Without",
    "best_of_blocks",
    "contrastive_vector",
    "deal",
    "fit_preferences",
    "prompt_vectors",
    "train_deferral",
    "train_scorer",
]
