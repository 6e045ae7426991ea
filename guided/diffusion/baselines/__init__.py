"""Published decoders of denoisers under a grammar, to compare with: they check tokens, `lattice` solves canvases.

Reading order: `ranking` (which token is tried next), `gaps` (canvases whose gaps have any length), `intersection`
(Mündler et al.), `joint` (EPIC), `lookahead` (LAVE).  Each says what of it is reconstructed.  They are laws that are
`Committing`, and go wherever a law goes; what they write may be no text of the grammar.
"""

from guided.diffusion.baselines.gaps import Gaps
from guided.diffusion.baselines.intersection import Intersection
from guided.diffusion.baselines.joint import JointCommits
from guided.diffusion.baselines.lookahead import Lookahead

__all__ = ["Gaps", "Intersection", "JointCommits", "Lookahead"]
