"""Diffusion language models: denoisers that fill many positions at once, in any order.

Reading order: `denoiser` (the interface), `table` (an exact one for tests).
"""

from guided.diffusion.denoiser import Canvas, Denoiser, Noise, blank
from guided.diffusion.table import TableDenoiser

__all__ = ["Canvas", "Denoiser", "Noise", "TableDenoiser", "blank"]
