"""Sampling from the distribution that a model and its constraints define together, with honest weights.

Reading order: `weights`, `result`, `potentials` (what may be asked of a sequence); `distribution` and `chance` (every
random choice); `token_samplers` (one token with its weight); `populations` (many sequences that grow together);
`sequences` (attempts from the prompt, and chains); `runs` (what a sampler tells while it runs); `analysis` (what came
out, and how far it is from what was meant).  Here are the values and the chance that all of them share.
"""

from guided.infer.analysis.chains import ChainTrace, chain_ess, r_hat
from guided.infer.analysis.choices import Choices, choice_probabilities
from guided.infer.analysis.distortion import Distortion, TokenDistortion, distortion, distortions
from guided.infer.analysis.enumeration import Enumeration, exact
from guided.infer.analysis.evidence import Genealogy, genealogical_variance, log_ml_interval
from guided.infer.analysis.fields import Alternative, FieldPosterior, field_posteriors, posteriors
from guided.infer.analysis.replay import Recorder
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import TokenDistribution
from guided.infer.errors import FewSamplesWarning, PotentialError
from guided.infer.populations.local import local
from guided.infer.populations.resampling import (
    Resample,
    Resampled,
    multinomial,
    optimal,
    residual,
    stratified,
    systematic,
)
from guided.infer.populations.smc import importance, smc
from guided.infer.populations.smc_steer import smc_steer
from guided.infer.populations.units import Unit, json_members, lines, words
from guided.infer.potentials.anything import Anything
from guided.infer.potentials.model_potential import ModelPotential
from guided.infer.potentials.potential import (
    ConstraintPotential,
    Normalized,
    Potential,
    Power,
    Product,
    as_potential,
)
from guided.infer.potentials.remote import AsyncTextScorer, WorkerTextScorer
from guided.infer.potentials.sql_potential import SqlDryRun
from guided.infer.potentials.text_potentials import TextPotential, TextPredicate, TextScorer, UnitTest
from guided.infer.potentials.twist import LearnedTwist, learned_twist
from guided.infer.result import Cost, Particle, Population, Samples, pooled
from guided.infer.runs.checkpoint import Checkpoint
from guided.infer.runs.progress import Progress, Step
from guided.infer.runs.rounds import Round
from guided.infer.sequences.annealed import annealed
from guided.infer.sequences.asap import asap
from guided.infer.sequences.attempts import Learned
from guided.infer.sequences.best_of_n import Ranked, best_of_n
from guided.infer.sequences.cars import Learning, cars
from guided.infer.sequences.mcmc import Cut, mcmc
from guided.infer.sequences.rejection import rejection
from guided.infer.token_samplers.awrs import AWRS, Estimator
from guided.infer.token_samplers.set_samplers import EagerSets, SetTokenSampler, TopKSets
from guided.infer.token_samplers.token_sampler import Direct, Draw, TokenSampler

__all__ = [
    "AWRS",
    "Alternative",
    "Anything",
    "AsyncTextScorer",
    "ChainTrace",
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
    "Genealogy",
    "Learned",
    "LearnedTwist",
    "Learning",
    "ModelPotential",
    "Normalized",
    "Particle",
    "Population",
    "Potential",
    "PotentialError",
    "Power",
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
    "Unit",
    "UnitTest",
    "WorkerTextScorer",
    "annealed",
    "as_potential",
    "asap",
    "best_of_n",
    "cars",
    "chain_ess",
    "chance_of",
    "choice_probabilities",
    "distortion",
    "distortions",
    "exact",
    "field_posteriors",
    "genealogical_variance",
    "importance",
    "json_members",
    "learned_twist",
    "lines",
    "local",
    "log_ml_interval",
    "mcmc",
    "multinomial",
    "optimal",
    "pooled",
    "posteriors",
    "r_hat",
    "rejection",
    "residual",
    "smc",
    "smc_steer",
    "stratified",
    "systematic",
    "words",
]
