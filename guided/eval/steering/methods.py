"""Every method with the task that shows what it is for, its strength, and how it writes.

Strengths are published ones where the paper's scale fits; the others (marked "chosen") were picked on the tuning
prompts, never on those that are reported: `guided eval steering --tuning` runs on these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch

from guided.constraint.compile import compile as compiled
from guided.eval.steering.fitted import civil_vector, polite_front, praise_deferral, truthful_space
from guided.eval.steering.kit import Kit
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import SteeringPrompt, TaskName
from guided.eval.steering.writing import Choice, Written, write
from guided.grammar.regex import regex
from guided.hf.langevin import Keywords, Soft, langevin_search
from guided.lm import LanguageModel
from guided.nano.experts import Expert
from guided.steer import (
    ARGS,
    ARM,
    FSD,
    FUDGE,
    GRAD,
    RAD,
    Bucket,
    ClassifierFree,
    ContextAware,
    Contrastive,
    ContrastiveSearch,
    ControlledDecoding,
    DeCoRe,
    DExperts,
    DoLa,
    DomainMixture,
    DynamicFocus,
    EntropyAdaptive,
    FSDVectors,
    Instructive,
    KnowledgeInfused,
    KnowledgeTrie,
    LayersOverLayers,
    Mixture,
    ModelReward,
    Momentum,
    Nudging,
    PrefixAdaptive,
    Product,
    ProxyTuning,
    SelfDebiasing,
    Stack,
    Steerer,
    TextReward,
    TransitionGraph,
    best_of_blocks,
    deal,
)
from guided.steer.adaptive import AdaptiveSequences

__all__ = ["CHOICES", "METHODS", "Method", "plain"]


Write = Callable[[Kit, Sequence[SteeringPrompt], Sequence[int], Choice], list[Written]]
"""Texts of a batch of prompts with their seeds."""

CHOICES: dict[TaskName, Choice] = {
    TaskName.REVIEW: Choice(48, sample=True),
    TaskName.INSTRUCTED: Choice(48, sample=True),
    TaskName.CIVIL: Choice(48, sample=True),
    TaskName.LONG: Choice(64, sample=False, stop=False),
    TaskName.WORDS: Choice(32, sample=False),
    TaskName.FACTS: Choice(16, sample=False),
    TaskName.CONTEXT: Choice(16, sample=True),
    TaskName.NEW_FACTS: Choice(16, sample=False),
}
"""Greedy where the best answer is wanted, drawn where a distribution is to move."""


def plain(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
    """The model as it is."""
    return _written(kit.base, kit, prompts, seeds, choice)


def _written(
    model: LanguageModel, kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice
) -> list[Written]:
    found, _ = write(model, [kit.ids(prompt.text) for prompt in prompts], seeds, choice)
    return [Written(tokens) for tokens in found]


@dataclass(frozen=True)
class Method:
    """A method on a task; without a ``base`` of its own it is compared with the model as it is."""

    task: TaskName
    strength: str
    """Its settings, for people."""
    write: Write
    base: Write = plain
    choice: Choice | None = None
    """Where it is not the task's."""
    measure: str = ""
    """What was counted on the way and is to be compared instead of the task's own measure; less is better."""

    @property
    def chosen(self) -> Choice:
        """How its tokens, and its base's, are chosen."""
        return self.choice or CHOICES[self.task]


def _steered(build: Callable[[Kit, Sequence[SteeringPrompt]], Steerer]) -> Write:
    """A method that is one steerer for a whole batch of prompts."""

    def written(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
        # Models of one family pad their matrices alike; experts of another tokenizer have the steered model's ids.
        model = Stack([build(kit, prompts)]).over(kit.base, same_tokenizer=True)
        return _written(model, kit, prompts, seeds, choice)

    return written


def _behind(said: str, write: Write) -> Write:
    """A method on prompts that say something more."""

    def written(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
        return write(kit, [replace(prompt, text=prompt.text + said) for prompt in prompts], seeds, choice)

    return written


def _domains(kit: Kit, prompts: Sequence[SteeringPrompt]) -> Steerer:
    return DomainMixture((kit.expert(Expert.POSITIVE), kit.expert(Expert.NEGATIVE)))


def _praise_reward(kit: Kit, what: Callable[[torch.Tensor], torch.Tensor]) -> ModelReward:
    """The causal reward model; ``what`` makes a reward of log-odds."""
    head = kit.reward_head
    return ModelReward(lambda hidden: what(head(hidden)), kit.expert(Expert.REWARD))


def _controlled(kit: Kit, prompts: Sequence[SteeringPrompt]) -> Steerer:
    return ControlledDecoding(ModelReward(kit.scorer, kit.expert(Expert.REWARD)), beta=CONTROLLED_BETA)


def _decore(kit: Kit, prompts: Sequence[SteeringPrompt]) -> Steerer:
    kit.needs_own("the list of retrieval heads")
    return DeCoRe(kit.heads[:RETRIEVAL_HEADS])


def _value(kit: Kit) -> Callable[[list[tuple[int, ...]]], torch.Tensor]:
    """The reward model's odds after the last token of texts."""
    model, head = kit.expert(Expert.REWARD), kit.reward_head

    def value(texts: list[tuple[int, ...]]) -> torch.Tensor:
        from guided.lm import Needs

        hidden = model.start(texts, Needs(hidden=True)).last.hidden
        assert hidden is not None
        return cast(torch.Tensor, head(hidden))

    return value


def _blocks(n_blocks: int, *, sentences: bool = False) -> Write:
    """The best of so many blocks, each of so many tokens or a sentence."""

    def written(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
        value = _value(kit)
        return [
            Written(
                best_of_blocks(
                    kit.base,
                    kit.ids(prompt.text),
                    value,
                    np.random.default_rng(seed),
                    n_blocks=n_blocks,
                    block_tokens=SENTENCE_TOKENS if sentences else BLOCK_TOKENS,
                    max_new_tokens=choice.max_new_tokens,
                    unit=(lambda block: kit.text(block[-1:]).endswith(".")) if sentences else None,
                ).tokens
            )
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]

    return written


def _deal(weight: float) -> Write:
    """Beams; the heuristic is the share of wanted words in the roll-out, which is what the task measures, too."""

    def written(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
        found: list[Written] = []
        for prompt in prompts:
            wanted = prompt.about["words"].split()

            def covered(texts: list[str], wanted: list[str] = wanted) -> list[float]:
                return [sum(f" {word}" in text for word in wanted) / len(wanted) for text in texts]

            best = deal(
                kit.base,
                kit.ids(prompt.text),
                TextReward(covered, kit.text, prompt=False),
                n_beams=BEAMS,
                top_k=DEAL_TOKENS,
                look_ahead=LOOK_AHEAD,
                weight=weight,
                max_new_tokens=choice.max_new_tokens,
            )[0]
            found.append(Written(best.tokens))
        return found

    return written


def _langevin(steps: int, soft: Soft, step_size: float) -> Write:
    """Soft texts with the wanted words as their energy, which is what the task measures, too."""

    def written(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
        # Of letters, spaces and full stops: any text of a review.
        constraint = compiled(regex(r"[A-Za-z .]+"), kit.loaded.vocabulary)
        found: list[Written] = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            words = tuple(kit.plain_ids(f" {word}") for word in prompt.about["words"].split())
            best = langevin_search(
                kit.base,
                kit.ids(prompt.text),
                constraint,
                energy=Keywords(words),
                weight=LANGEVIN_WEIGHT,
                chains=BEAMS,
                steps=steps,
                soft=soft,
                step_size=step_size,
                length=LANGEVIN_LENGTH,
                max_tokens=choice.max_new_tokens,
                seed=seed,
            )[0]
            found.append(Written(tuple(token for token in best.tokens if token not in kit.base.eos_ids)))
        return found

    return written


def _grad(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
    """Each prompt has a graph of its own, of what was retrieved for it."""
    found: list[Written] = []
    for prompt, seed in zip(prompts, seeds, strict=True):
        corpus = [kit.plain_ids(f"Answer: {line}") for line in prompt.about["retrieved"].split("\n")]
        graph = TransitionGraph.of(kit.base, corpus)
        found += _written(Stack([GRAD(graph, GRAD_WEIGHT)]).over(kit.base), kit, [prompt], [seed], choice)
    return found


def _kid(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
    """Each prompt has a trie of its own: of each retrieved sentence its hotel, and the value at its end."""
    found: list[Written] = []
    for prompt, seed in zip(prompts, seeds, strict=True):
        lines = [line.rstrip(".").split() for line in prompt.about["retrieved"].split("\n")]
        trie = KnowledgeTrie([[kit.plain_ids(f" {words[0]}"), kit.plain_ids(f" {words[-1]}")] for words in lines])
        found += _written(Stack([KnowledgeInfused(trie, KID_STRENGTH)]).over(kit.base), kit, [prompt], [seed], choice)
    return found


def _adaptive(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
    how = EntropyAdaptive(kit.expert(Expert.AMATEUR), THRESHOLD, window=WINDOW, least=LEAST)
    model = how.over(kit.base, same_tokenizer=True)
    texts, sequences = write(model, [kit.ids(prompt.text) for prompt in prompts], seeds, choice)
    found: list[Written] = []
    for row, tokens in enumerate(texts):
        # One step for the prompt's end and one for each token; the last token's scores choose nothing.
        large = cast(AdaptiveSequences, sequences).used_large(row)[: len(tokens)]
        found.append(Written(tokens, {"large": sum(large) / len(large)}))
    return found


def _large_alone(kit: Kit, prompts: Sequence[SteeringPrompt], seeds: Sequence[int], choice: Choice) -> list[Written]:
    return [Written(one.tokens, {"large": 1.0}) for one in plain(kit, prompts, seeds, choice)]


PRAISING = " The pool was lovely. The staff was friendly."
BETA_RAD = 10.0
ARGS_WEIGHT = 1.5
CONTROLLED_BETA = 8.0
GRAD_WEIGHT = 128.0
CAAD_WEIGHT = 0.75
KID_STRENGTH = 8.0
MUCOLA_STEP = 1.0
LANGEVIN_WEIGHT, LANGEVIN_STEPS, LANGEVIN_STEP, LANGEVIN_LENGTH = 4.0, 30, 30.0, 24
RETRIEVAL_HEADS = 4
BLOCK_TOKENS, N_BLOCKS, SENTENCE_TOKENS = 8, 4, 24
BEAMS, DEAL_TOKENS, LOOK_AHEAD, DEAL_WEIGHT = 3, 6, 8, 8.0
WINDOW, LEAST, THRESHOLD = 4, 2, 1.5
FOCUS_TEMPERATURE = 1.5
FRONT_STRENGTH = 4.0

_log_chance = torch.nn.functional.logsigmoid

METHODS: dict[MethodName, Method] = {
    MethodName.CONTRASTIVE: Method(
        TaskName.FACTS,
        "alpha 0.1, beta 0.5",
        _steered(lambda kit, prompts: Contrastive(kit.expert(Expert.AMATEUR))),
    ),
    MethodName.DEXPERTS: Method(
        TaskName.REVIEW,
        "alpha 2, top_p 0.9",
        _steered(lambda kit, prompts: DExperts(kit.expert(Expert.POSITIVE), kit.expert(Expert.NEGATIVE))),
    ),
    MethodName.PROXY: Method(
        TaskName.REVIEW,
        "alpha 1",
        _steered(lambda kit, prompts: ProxyTuning(kit.expert(Expert.POSITIVE), kit.expert(Expert.SMALL))),
    ),
    MethodName.MIXTURE: Method(
        TaskName.REVIEW,
        "weights 1, 1",
        _steered(lambda kit, prompts: Mixture((kit.expert(Expert.POSITIVE),))),
    ),
    MethodName.PRODUCT: Method(
        TaskName.REVIEW,
        "weights 1, 1",
        _steered(lambda kit, prompts: Product((kit.expert(Expert.POSITIVE),))),
    ),
    MethodName.ARM: Method(
        TaskName.REVIEW,
        "beta 1, top_k 20",
        _steered(lambda kit, prompts: ARM(kit.expert(Expert.TOKEN_REWARD))),
    ),
    MethodName.NUDGING: Method(
        TaskName.REVIEW,
        "threshold 0.4, praising expert",
        _steered(lambda kit, prompts: Nudging(kit.expert(Expert.POSITIVE))),
    ),
    MethodName.DEFERRAL: Method(
        TaskName.REVIEW,
        "threshold 0.5, praising expert, gate fitted to praise",
        _steered(lambda kit, prompts: praise_deferral(kit)),
    ),
    MethodName.DOMAINS: Method(
        TaskName.REVIEW,
        "prior 1/3 each, praising and complaining expert, behind praise",
        _behind(PRAISING, _steered(_domains)),
        base=_behind(PRAISING, plain),
    ),
    MethodName.CONTEXT: Method(
        TaskName.CONTEXT,
        "alpha 1",
        _steered(lambda kit, prompts: ContextAware(kit.told(prompts, "without"), alpha=1.0)),
    ),
    MethodName.CLASSIFIER_FREE: Method(
        TaskName.INSTRUCTED,
        "scale 1.5, last token",
        _steered(lambda kit, prompts: ClassifierFree()),
    ),
    MethodName.NEGATIVE: Method(
        TaskName.CIVIL,
        "scale 1.5, 'rude'",
        _steered(lambda kit, prompts: ClassifierFree(negative_prompt=kit.told(prompts, "rude"))),
    ),
    MethodName.INSTRUCTIVE: Method(
        TaskName.INSTRUCTED,
        "epsilon 0.3, opposite",
        _steered(lambda kit, prompts: Instructive(kit.told(prompts, "opposite"))),
    ),
    MethodName.DEBIASING: Method(
        TaskName.CIVIL,
        "decay 50, 'rude'",
        _steered(lambda kit, prompts: SelfDebiasing((kit.told(prompts, "rude"),))),
    ),
    MethodName.PREADD: Method(
        TaskName.CIVIL,
        "alpha -1, 'rude'",
        _steered(lambda kit, prompts: PrefixAdaptive(kit.told(prompts, "rude"), alpha=-1.0)),
    ),
    MethodName.DOLA: Method(
        TaskName.FACTS,
        "low layers, final norm (chosen)",
        _steered(lambda kit, prompts: DoLa(Bucket.LOW, final_norm=True, tied_embeddings=False)),
    ),
    MethodName.LOL: Method(
        TaskName.FACTS,
        "layer 1, beta 0.5, weight 0.5",
        _steered(lambda kit, prompts: LayersOverLayers(kit.expert(Expert.AMATEUR), layer=1)),
    ),
    MethodName.DECORE: Method(TaskName.CONTEXT, f"{RETRIEVAL_HEADS} heads (chosen)", _steered(_decore)),
    MethodName.FOCUS: Method(
        TaskName.FACTS,
        f"sigma 0.25, temperature {FOCUS_TEMPERATURE:g} (chosen)",
        _steered(lambda kit, prompts: DynamicFocus(temperature=FOCUS_TEMPERATURE)),
        # The same temperature without focus: what the method is to mend is that answers are drawn hot.
        base=_steered(lambda kit, prompts: DynamicFocus(sigma=math.inf, temperature=FOCUS_TEMPERATURE)),
        choice=Choice(16, sample=True),
    ),
    MethodName.VECTOR: Method(
        TaskName.CIVIL,
        "middle block, strength 1, civil less rude",
        _steered(lambda kit, prompts: civil_vector(kit)),
    ),
    MethodName.FRONT: Method(
        TaskName.CIVIL,
        f"block 0, strength {FRONT_STRENGTH:g} (chosen), 'polite' less 'rude'",
        _steered(lambda kit, prompts: polite_front(kit, FRONT_STRENGTH)),
    ),
    MethodName.RAD: Method(
        TaskName.REVIEW,
        f"beta {BETA_RAD:g}, top_k 20",
        _steered(lambda kit, prompts: RAD(_praise_reward(kit, torch.sigmoid), beta=BETA_RAD)),
    ),
    MethodName.ARGS: Method(
        TaskName.REVIEW,
        f"weight {ARGS_WEIGHT:g}, top_k 10",
        _steered(lambda kit, prompts: ARGS(_praise_reward(kit, lambda odds: odds), weight=ARGS_WEIGHT)),
    ),
    MethodName.FUDGE: Method(
        TaskName.REVIEW,
        "strength 1, top_k 200",
        _steered(lambda kit, prompts: FUDGE(_praise_reward(kit, _log_chance))),
    ),
    MethodName.CONTROLLED: Method(TaskName.REVIEW, f"beta {CONTROLLED_BETA:g} (chosen)", _steered(_controlled)),
    MethodName.BLOCKS: Method(
        TaskName.REVIEW,
        f"{N_BLOCKS} blocks of {BLOCK_TOKENS}",
        _blocks(N_BLOCKS),
        base=_blocks(1),
    ),
    MethodName.STEPS: Method(
        TaskName.REVIEW,
        f"{N_BLOCKS} sentences a step",
        _blocks(N_BLOCKS, sentences=True),
        base=_blocks(1, sentences=True),
    ),
    MethodName.DEAL: Method(TaskName.WORDS, f"weight {DEAL_WEIGHT:g} (chosen)", _deal(DEAL_WEIGHT), base=_deal(0.0)),
    MethodName.LANGEVIN: Method(
        TaskName.WORDS,
        f"weight {LANGEVIN_WEIGHT:g}, {LANGEVIN_STEPS} steps of {LANGEVIN_STEP:g} (chosen)",
        _langevin(LANGEVIN_STEPS, Soft.LOGITS, LANGEVIN_STEP),
        base=_langevin(0, Soft.LOGITS, LANGEVIN_STEP),
    ),
    MethodName.MUCOLA: Method(
        TaskName.WORDS,
        f"weight {LANGEVIN_WEIGHT:g}, {LANGEVIN_STEPS} steps of {MUCOLA_STEP:g} (chosen)",
        _langevin(LANGEVIN_STEPS, Soft.EMBEDDINGS, MUCOLA_STEP),
        base=_langevin(0, Soft.EMBEDDINGS, MUCOLA_STEP),
    ),
    MethodName.MOMENTUM: Method(TaskName.LONG, "alpha 0.2, top_k 5", _steered(lambda kit, prompts: Momentum())),
    MethodName.SEARCH: Method(TaskName.LONG, "alpha 0.6, top_k 4", _steered(lambda kit, prompts: ContrastiveSearch())),
    MethodName.FSD: Method(TaskName.LONG, "alpha 0.6, top_k 5, n 3", _steered(lambda kit, prompts: FSD())),
    MethodName.FSD_VECTORS: Method(
        TaskName.LONG, "alpha 0.4, top_k 5, n 2", _steered(lambda kit, prompts: FSDVectors())
    ),
    MethodName.GRAD: Method(TaskName.NEW_FACTS, f"weight {GRAD_WEIGHT:g} (chosen)", _grad),
    MethodName.CAAD: Method(
        TaskName.FACTS,
        f"weight {CAAD_WEIGHT:g}, the nearest context (chosen), true answers about other hotels",
        _steered(lambda kit, prompts: truthful_space(kit, prompts, CAAD_WEIGHT, 1)),
    ),
    MethodName.KID: Method(TaskName.NEW_FACTS, f"strength {KID_STRENGTH:g} (chosen)", _kid),
    MethodName.ADAPTIVE: Method(
        TaskName.FACTS,
        f"{THRESHOLD:g} bits (chosen)",
        _adaptive,
        base=_large_alone,
        measure="large",
    ),
}
