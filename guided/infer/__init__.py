"""Sampling from the distribution that a model and its constraints define together, with honest weights.

Reading order: `weights`, `result`, `potential` (what may be asked of a sequence), `text_potentials`, `chance` (every
random choice), `token_samplers` and `awrs` (one token with its weight), `resampling`, `smc` (many sequences).
"""

from guided.infer.errors import PotentialError
from guided.infer.potential import Anything, ConstraintPotential, Potential, Product, as_potential
from guided.infer.progress import Progress, Step
from guided.infer.result import Cost, Particle, Population, Samples

__all__ = [
    "Anything",
    "ConstraintPotential",
    "Cost",
    "Particle",
    "Population",
    "Potential",
    "PotentialError",
    "Product",
    "Progress",
    "Samples",
    "Step",
    "as_potential",
]
