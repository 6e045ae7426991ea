"""Products of a canvas's distributions with a constraint, solved: the likeliest text, exact samples, marginals.

`Lattice` is the product; `Successors` remembers where the tokens of a constraint lead; `LatticeLimits` bounds the work.
Nothing here knows a model: the distributions of the positions come as an array.
"""

from guided.diffusion.lattice.lattice import Lattice
from guided.diffusion.lattice.limits import LatticeLimits
from guided.diffusion.lattice.successors import Successors

__all__ = ["Lattice", "LatticeLimits", "Successors"]
