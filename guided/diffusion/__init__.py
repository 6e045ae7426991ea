"""Diffusion language models: denoisers that fill many positions at once, in any order.

Reading order: `denoiser` (the interface), `table` (an exact one for tests); `law` (what a step makes of scores),
`lattice` and `constrained` (the same under a constraint), `policies` (how much it commits), `loop` (all decoders),
`replay_page` (what a run did, as a page).
"""

from guided.diffusion.constrained import Constrained
from guided.diffusion.denoiser import Canvas, Denoiser, Noise, blank
from guided.diffusion.lattice import Lattice, LatticeLimits
from guided.diffusion.law import Free, Law, Proposal, Standing
from guided.diffusion.loop import Denoised, Denoising, Frame, Job, denoise
from guided.diffusion.policies import (
    AdaptiveBlocks,
    Blocks,
    Coherence,
    EntropyBound,
    Exploration,
    FixedBlocks,
    LocalDeterminism,
    LowConfidence,
    Policy,
    Threshold,
    View,
)
from guided.diffusion.table import TableDenoiser

__all__ = [
    "AdaptiveBlocks",
    "Blocks",
    "Canvas",
    "Coherence",
    "Constrained",
    "Denoised",
    "Denoiser",
    "Denoising",
    "EntropyBound",
    "Exploration",
    "FixedBlocks",
    "Frame",
    "Free",
    "Job",
    "Lattice",
    "LatticeLimits",
    "Law",
    "LocalDeterminism",
    "LowConfidence",
    "Noise",
    "Policy",
    "Proposal",
    "Standing",
    "TableDenoiser",
    "Threshold",
    "View",
    "blank",
    "denoise",
]
