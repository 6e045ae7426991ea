"""Samples from a denoiser's own law given a constraint: weighted trajectories, and denoisers steered by others.

The lattice of one step is exact for the product of that step's distributions, which is not the denoiser's law: later
steps see what earlier ones committed.  `smc` and `importance` weigh trajectories so that they stand for that law.
"""

from guided.diffusion.correction.guidance import Contrasted, Guided
from guided.diffusion.correction.orders import Confident, Forward, Order, Shuffled
from guided.diffusion.correction.trajectories import importance, smc

__all__ = ["Confident", "Contrasted", "Forward", "Guided", "Order", "Shuffled", "importance", "smc"]
