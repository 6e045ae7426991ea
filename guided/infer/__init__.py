"""Sampling from the distribution that a model and its constraints define together, with honest weights.

Reading order: `weights`, `result`, `potential` (what may be asked of a sequence), `text_potentials`, `sql_potential`;
`distribution` and `chance` (every random choice); `token_samplers`, `awrs`, `set_samplers` (one token with its weight);
`resampling`, `prefixes`, `particles`, `smc`, `smc_steer`, `local` (many sequences), `checkpoint`; `attempts`,
`visited`, `exploration`, `rejection`, `cars`, `asap`, `mcmc`, `best_of_n`, `enumeration`; `choices`, `distortion`,
`fields` (what came out, and how far it is from what was meant).
"""

from guided.infer.asap import asap
from guided.infer.attempts import Learned
from guided.infer.awrs import AWRS, Estimator
from guided.infer.best_of_n import Ranked, best_of_n
from guided.infer.cars import Learning, cars
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.checkpoint import Checkpoint
from guided.infer.choices import Choices, choice_probabilities
from guided.infer.distortion import Distortion, TokenDistortion, distortion, distortions
from guided.infer.distribution import TokenDistribution
from guided.infer.enumeration import Enumeration, exact
from guided.infer.errors import FewSamplesWarning, PotentialError
from guided.infer.fields import Alternative, FieldPosterior, field_posteriors, posteriors
from guided.infer.local import local
from guided.infer.mcmc import Cut, mcmc
from guided.infer.potential import Anything, ConstraintPotential, Potential, Product, as_potential
from guided.infer.progress import Progress, Step
from guided.infer.rejection import rejection
from guided.infer.replay import Recorder
from guided.infer.resampling import Resample, Resampled, multinomial, optimal, residual, stratified, systematic
from guided.infer.result import Cost, Particle, Population, Samples, pooled
from guided.infer.rounds import Round
from guided.infer.set_samplers import EagerSets, SetTokenSampler, TopKSets
from guided.infer.smc import importance, smc
from guided.infer.smc_steer import smc_steer
from guided.infer.sql_potential import SqlDryRun
from guided.infer.text_potentials import TextPotential, TextPredicate, TextScorer, UnitTest
from guided.infer.token_samplers import Direct, Draw, TokenSampler

__all__ = [
    "AWRS",
    "Alternative",
    "Anything",
    "Chance",
    "Checkpoint",
    "Choices",
    "ConstraintPotential",
    "Cost",
    "Cut",
    "Direct",
    "Distortion",
    "Draw",
    "EagerSets",
    "Enumeration",
    "Estimator",
    "FewSamplesWarning",
    "FieldPosterior",
    "Learned",
    "Learning",
    "Particle",
    "Population",
    "Potential",
    "PotentialError",
    "Product",
    "Progress",
    "Random",
    "Ranked",
    "Recorder",
    "Resample",
    "Resampled",
    "Round",
    "Samples",
    "SetTokenSampler",
    "SqlDryRun",
    "Step",
    "TextPotential",
    "TextPredicate",
    "TextScorer",
    "TokenDistortion",
    "TokenDistribution",
    "TokenSampler",
    "TopKSets",
    "UnitTest",
    "as_potential",
    "asap",
    "best_of_n",
    "cars",
    "chance_of",
    "choice_probabilities",
    "distortion",
    "distortions",
    "exact",
    "field_posteriors",
    "importance",
    "local",
    "mcmc",
    "multinomial",
    "optimal",
    "pooled",
    "posteriors",
    "rejection",
    "residual",
    "smc",
    "smc_steer",
    "stratified",
    "systematic",
]
