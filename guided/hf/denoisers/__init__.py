"""Networks of transformers as denoisers: `guided.diffusion` decodes with what `denoiser_for` gives.

Reading order: `mask_filling` (networks that see prompt and canvas both ways), `causal_prompt` (those that read the
prompt causally, as guided-nano-diffusion does), `block_diffusion` (DiffusionGemma), `choice` (which of them a model
is).
"""

from guided.hf.denoisers.block_diffusion import BlockDiffusion
from guided.hf.denoisers.causal_prompt import CausalPrompt
from guided.hf.denoisers.choice import denoiser_for, is_denoiser
from guided.hf.denoisers.mask_filling import MaskFilling

__all__ = ["BlockDiffusion", "CausalPrompt", "MaskFilling", "denoiser_for", "is_denoiser"]
