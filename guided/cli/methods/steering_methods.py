"""The methods that ``--steer`` knows, by name: their settings, and how to build their steerers.

Nothing here imports torch until a steerer is built.  How a specification is written is `guided.cli.methods.steering`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from guided.cli.methods.words import Setting
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.lm.model import LanguageModel
    from guided.steer import ModelPair, Steerer

__all__ = ["METHODS", "Kind", "Method", "Sources"]


class Kind(Enum):
    """What a setting's value is; the value is how help shows it."""

    NUMBER = "NUMBER"
    NUMBER_OR_NONE = "NUMBER|none"
    COUNT = "COUNT"
    COUNT_OR_NONE = "COUNT|none"
    FLAG = "yes|no"
    MODEL = "MODEL"
    TOKENS = "TEXT"
    """A text put into a prompt: no special tokens."""
    PROMPT = "PROMPT"
    """A text that is a prompt: with the tokenizer's special tokens."""
    LAYER = "LAYER"
    HEAD = "BLOCK.HEAD"
    REWARD = "MODULE:FUNCTION"
    CORPUS = "FILE"
    BUCKET = "low|high"
    DIVERGENCE = "official|jensen-shannon"


@dataclass(frozen=True)
class Sources:
    """Where models and tokens come from."""

    base: LanguageModel
    """The model that is steered."""
    load_model: Callable[[str], LanguageModel]
    encode: Callable[[str, bool], Sequence[int]]
    """A text's ids; with the tokenizer's special tokens if the second argument is True."""
    decode: Callable[[Sequence[int]], str]
    """What reward functions get."""


Values = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """One steerer as the command line knows it."""

    summary: str
    settings: Mapping[str, Setting]
    build: Callable[[Values, Sources], Steerer | ModelPair] = field(repr=False)


def _made(name: str, **renamed: str) -> Callable[[Values, Sources], Steerer | ModelPair]:
    """Builds the class of `guided.steer` of that name from settings of the same names, but for those renamed."""

    def build(values: Values, sources: Sources) -> Steerer | ModelPair:
        import guided.steer

        steerer: Steerer | ModelPair = getattr(guided.steer, name)(
            **{renamed.get(key, key): value for key, value in values.items()}
        )
        return steerer

    return build


def _context(values: Values, sources: Sources) -> Steerer:
    from guided.steer import ContextAware, Without

    return ContextAware(Without(values.pop("context")), **values)


def _classifier_free(values: Values, sources: Sources) -> Steerer:
    from guided.steer import ClassifierFree, Replaced

    if "negative" in values:
        values["negative_prompt"] = Replaced(values.pop("negative"))
    return ClassifierFree(**values)


def _prefixed(tokens: tuple[int, ...], sources: Sources) -> Any:
    """The prompt with tokens before it, but after the tokenizer's own beginning."""
    from guided.steer import Prefixed

    plain, special = tuple(sources.encode("a", False)), tuple(sources.encode("a", True))
    starts = [n for n in range(len(special)) if special[n : n + len(plain)] == plain]
    return Prefixed(tokens, after=starts[0] if starts else 0)


def _instructive(values: Values, sources: Sources) -> Steerer:
    from guided.steer import Instructive

    return Instructive(_prefixed(values.pop("noisy"), sources), **values)


def _prefix_adaptive(values: Values, sources: Sources) -> Steerer:
    from guided.steer import PrefixAdaptive

    return PrefixAdaptive(_prefixed(values.pop("prefix"), sources), **values)


def _debiasing(values: Values, sources: Sources) -> Steerer:
    from guided.steer import SelfDebiasing

    return SelfDebiasing(tuple(_prefixed(tokens, sources) for tokens in values.pop("biased")), **values)


def _dola(values: Values, sources: Sources) -> Steerer:
    from guided.steer import DoLa

    if "layer" in values and "bucket" in values:
        raise GuidedError("a bucket and layers were given", where="dola", remedy="Give one of them.")
    for key in ("bucket", "layer"):
        if key in values:
            values["layers"] = values.pop(key)
    return DoLa(**values)


def _layers_over_layers(values: Values, sources: Sources) -> Steerer:
    from guided.steer import LayersOverLayers

    if "truthful" in values:
        values["truthful"] = _prefixed(values["truthful"], sources)
    return LayersOverLayers(values.pop("model"), **values)


def _activations(values: Values, sources: Sources) -> Steerer:
    from guided.steer import Activations, contrastive_vector

    strength, block = values.get("strength", 1.0), values["block"]
    made = contrastive_vector(sources.base, values["wanted"], values["unwanted"], block=block, strength=strength)
    return Activations((made,))


def _pool(name: str) -> Callable[[Values, Sources], Steerer]:
    def build(values: Values, sources: Sources) -> Steerer:
        import guided.steer

        steerer: Steerer = getattr(guided.steer, name)(values["model"], values.get("weight", ()))
        return steerer

    return build


def _domains(values: Values, sources: Sources) -> Steerer:
    from guided.steer import DomainMixture

    return DomainMixture(values["model"], values.get("prior", ()))


def _grad(values: Values, sources: Sources) -> Steerer:
    from guided.steer import GRAD, TransitionGraph

    return GRAD(TransitionGraph.of(sources.base, values.pop("corpus")), **values)


_NUMBER, _COUNT, _FLAG = Setting(Kind.NUMBER), Setting(Kind.COUNT), Setting(Kind.FLAG)
_MODEL = Setting(Kind.MODEL, required=True)
_REWARD = Setting(Kind.REWARD, required=True)
_LAYERS = Setting(Kind.LAYER, many=True)

METHODS: dict[str, Method] = {
    "contrastive": Method(
        "contrastive decoding against a weaker model",
        {"model": _MODEL, "alpha": _NUMBER, "beta": Setting(Kind.NUMBER_OR_NONE), "temperature": _NUMBER},
        _made("Contrastive", model="amateur"),
    ),
    "dexperts": Method(
        "an expert and an anti-expert",
        {"expert": _MODEL, "anti": _MODEL, "alpha": _NUMBER, "top_p": _NUMBER},
        _made("DExperts", anti="anti_expert"),
    ),
    "proxy": Method(
        "what tuning did to a small model",
        {"tuned": _MODEL, "untuned": _MODEL, "alpha": _NUMBER},
        _made("ProxyTuning"),
    ),
    "mixture": Method(
        "a weighted mean of models",
        {"model": Setting(Kind.MODEL, required=True, many=True), "weight": Setting(Kind.NUMBER, many=True)},
        _pool("Mixture"),
    ),
    "product": Method(
        "a weighted product of models",
        {"model": Setting(Kind.MODEL, required=True, many=True), "weight": Setting(Kind.NUMBER, many=True)},
        _pool("Product"),
    ),
    "nudging": Method(
        "another model's token where this one is unsure",
        {"model": _MODEL, "threshold": _NUMBER},
        _made("Nudging", model="other"),
    ),
    "domains": Method(
        "models weighed by how well they foretold the text so far",
        {"model": Setting(Kind.MODEL, required=True, many=True), "prior": Setting(Kind.NUMBER, many=True)},
        _domains,
    ),
    "context": Method(
        "context-aware decoding",
        {"context": Setting(Kind.TOKENS, required=True), "alpha": _NUMBER},
        _context,
    ),
    "cfg": Method(
        "classifier-free guidance, or a negative prompt",
        {"scale": _NUMBER, "negative": Setting(Kind.PROMPT)},
        _classifier_free,
    ),
    "instructive": Method(
        "away from a misleading instruction",
        {"noisy": Setting(Kind.TOKENS, required=True), "epsilon": _NUMBER},
        _instructive,
    ),
    "preadd": Method(
        "towards what a prefix asks for, or (alpha below 0) away from it",
        {"prefix": Setting(Kind.TOKENS, required=True), "alpha": Setting(Kind.NUMBER, required=True)},
        _prefix_adaptive,
    ),
    "debias": Method(
        "self-debiasing",
        {"biased": Setting(Kind.TOKENS, required=True, many=True), "decay": _NUMBER, "epsilon": _NUMBER},
        _debiasing,
    ),
    "dola": Method(
        "contrast with the model's own early layers",
        {
            "bucket": Setting(Kind.BUCKET),
            "layer": _LAYERS,
            "relative_top": _NUMBER,
            "divergence": Setting(Kind.DIVERGENCE),
            "final_norm": _FLAG,
            "tied_embeddings": _FLAG,
        },
        _dola,
    ),
    "lol": Method(
        "contrasts at two layers (a reconstruction)",
        {
            "model": _MODEL,
            "layer": Setting(Kind.LAYER, required=True),
            "beta": _NUMBER,
            "weight": _NUMBER,
            "truth": _NUMBER,
            "truthful": Setting(Kind.TOKENS),
            "final_norm": _FLAG,
        },
        _layers_over_layers,
    ),
    "decore": Method(
        "contrast with the model without its retrieval heads",
        {
            "head": Setting(Kind.HEAD, required=True, many=True),
            "cap": _NUMBER,
            "normalise": _FLAG,
            "masked_prompt": _FLAG,
        },
        _made("DeCoRe", head="heads"),
    ),
    "focus": Method(
        "dynamic focus decoding",
        {
            "layer": _LAYERS,
            "relative_top": _NUMBER,
            "sigma": _NUMBER,
            "temperature": _NUMBER,
            "final_norm": _FLAG,
        },
        _made("DynamicFocus", layer="layers"),
    ),
    "activations": Method(
        "vectors from texts that show what is wanted and texts that do not, added behind the prompt (CAA)",
        {
            "wanted": Setting(Kind.PROMPT, required=True, many=True),
            "unwanted": Setting(Kind.PROMPT, required=True, many=True),
            "block": Setting(Kind.COUNT, required=True),
            "strength": _NUMBER,
        },
        _activations,
    ),
    "arm": Method(
        "a reward model that scores all tokens at once",
        {"model": _MODEL, "beta": _NUMBER, "top_k": Setting(Kind.COUNT_OR_NONE)},
        _made("ARM", model="reward"),
    ),
    "rad": Method("reward-augmented decoding", {"reward": _REWARD, "beta": _NUMBER, "top_k": _COUNT}, _made("RAD")),
    "args": Method("reward-guided search", {"reward": _REWARD, "weight": _NUMBER, "top_k": _COUNT}, _made("ARGS")),
    "fudge": Method(
        "an attribute's log-probability", {"reward": _REWARD, "strength": _NUMBER, "top_k": _COUNT}, _made("FUDGE")
    ),
    "controlled": Method(
        "controlled decoding, token by token",
        {"reward": _REWARD, "beta": _NUMBER, "top_k": _COUNT},
        _made("ControlledDecoding"),
    ),
    "momentum": Method("resistance to repeated n-grams", {"alpha": _NUMBER, "top_k": _COUNT}, _made("Momentum")),
    "contrastive-search": Method(
        "away from tokens like earlier ones", {"alpha": _NUMBER, "top_k": _COUNT}, _made("ContrastiveSearch")
    ),
    "fsd": Method(
        "frustratingly simple decoding: away from n-grams of the text",
        {"alpha": _NUMBER, "top_k": _COUNT, "n": _COUNT, "smoothing": _NUMBER},
        _made("FSD"),
    ),
    "fsd-vectors": Method(
        "the same by hidden states", {"alpha": _NUMBER, "top_k": _COUNT, "n": _COUNT}, _made("FSDVectors")
    ),
    "adaptive": Method(
        "entropy adaptive decoding: the model runs only where a small one is unsure; NOT LOSSLESS; goes first",
        {
            "model": _MODEL,
            "threshold": Setting(Kind.NUMBER, required=True),
            "window": _COUNT,
            "least": _COUNT,
        },
        _made("EntropyAdaptive", model="small"),
    ),
    "fast-slow": Method(
        "fast and slow decoding: the model scores the tokens of which a small one is unsure; NOT LOSSLESS; goes first",
        {"model": _MODEL, "threshold": _NUMBER},
        _made("FastAndSlow", model="small"),
    ),
    "grad": Method(
        "transitions of a small corpus, one text a line",
        {"corpus": Setting(Kind.CORPUS, required=True), "weight": _NUMBER},
        _grad,
    ),
}
"""Every method by name.  Best of blocks and DeAL compare texts: they are searches, in `search_methods`."""
