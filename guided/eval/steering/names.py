"""The names of the methods; what each is, is in `methods`."""

from __future__ import annotations

from enum import Enum

__all__ = ["MethodName"]


class MethodName(str, Enum):
    """The methods of `guided.steer`."""

    CONTRASTIVE = "contrastive"
    DEXPERTS = "dexperts"
    PROXY = "proxy"
    MIXTURE = "mixture"
    PRODUCT = "product"
    ARM = "arm"
    NUDGING = "nudging"
    DEFERRAL = "deferral"
    DOMAINS = "domains"
    CONTEXT = "context-aware"
    CLASSIFIER_FREE = "classifier-free"
    NEGATIVE = "negative-prompt"
    INSTRUCTIVE = "instructive"
    DEBIASING = "self-debiasing"
    PREADD = "preadd"
    DOLA = "dola"
    LOL = "lol"
    DECORE = "decore"
    FOCUS = "dynamic-focus"
    VECTOR = "activation-vector"
    FRONT = "prompt-vectors"
    RAD = "rad"
    ARGS = "args"
    FUDGE = "fudge"
    CONTROLLED = "controlled"
    BLOCKS = "controlled-blocks"
    STEPS = "step-rewards"
    DEAL = "deal"
    LANGEVIN = "langevin"
    MUCOLA = "langevin-embeddings"
    MOMENTUM = "momentum"
    SEARCH = "contrastive-search"
    FSD = "fsd"
    FSD_VECTORS = "fsd-vectors"
    GRAD = "grad"
    CAAD = "caad"
    KID = "kid"
    ADAPTIVE = "entropy-adaptive"
