"""How much of a canvas a step commits, and in which order: small pure functions of what a step shows.

Reading order: `policy` (what they see), `confident`, `neighbourhood`, `blocks`.
"""

from guided.diffusion.policies.blocks import AdaptiveBlocks, Blocks, FixedBlocks
from guided.diffusion.policies.confident import EntropyBound, LowConfidence, Threshold
from guided.diffusion.policies.neighbourhood import Coherence, Exploration, LocalDeterminism
from guided.diffusion.policies.policy import Policy, View

__all__ = [
    "AdaptiveBlocks",
    "Blocks",
    "Coherence",
    "EntropyBound",
    "Exploration",
    "FixedBlocks",
    "LocalDeterminism",
    "LowConfidence",
    "Policy",
    "Threshold",
    "View",
]
