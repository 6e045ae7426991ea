"""`guided.choice_probabilities`: the exact probabilities of a finite language's texts, from a model of transformers.

Text to tokens, grammar to constraint, and back; the sums are those of `guided.infer.analysis.choices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guided.constraint.spelling.canonical import canonical as make_canonical
from guided.hf.constraints import constraints_for
from guided.hf.front.encoding import Conversation, prompt_ids
from guided.hf.language_model import model_and_ends
from guided.infer.analysis.choices import Choices
from guided.infer.analysis.choices import choice_probabilities as probabilities_of
from guided.infer.analysis.enumeration import MAX_PREFIXES
from guided.vocab import Vocabulary

__all__ = ["choice_probabilities"]


def choice_probabilities(
    model: Any,
    prompt: str | Conversation | Sequence[int],
    grammar: Any,
    *,
    tokenizer: Any = None,
    chat: bool = False,
    canonical: bool = False,
    mass: float = 1.0,
    max_prefixes: int = MAX_PREFIXES,
    batch: int = 64,
) -> Choices:
    """The probability that a model says each text of a finite grammar after ``prompt``, given that it says one of them.

    ``grammar`` may be a type such as an ``Enum`` or a ``Literal``, which stands for JSON texts.
    All tokenisations of a text count, and the probabilities sum to 1.  ``model`` is a `LoadedModel`, a model of
    transformers with its ``tokenizer``, or any `guided.lm.LanguageModel`; one without a tokenizer takes the prompt as
    token ids, and a compiled constraint or a `Vocabulary` as ``tokenizer``.  ``chat`` puts a text through the model's
    chat template.  ``canonical`` also gives the probabilities when only the tokenizer's own spelling counts
    (`Choices.canonical`).

    ``mass`` below 1 stops as soon as that share of the probability was found, which long texts need: see
    `guided.infer.choice_probabilities`, also for the errors.

    >>> import guided, guided.hf
    >>> found = choice_probabilities(guided.hf.load(), "Is it raining? Answer: ", guided.choice(["yes", "no"]))
    >>> round(found["yes"] + found["no"], 6)
    1.0
    """
    ready, tokenizer, ends = model_and_ends(model, tokenizer)
    if isinstance(tokenizer, Vocabulary):
        ends = None
    [constraint] = constraints_for(grammar, tokenizer, ends)
    ids = prompt_ids(prompt, tokenizer, chat)
    spelled = make_canonical(constraint, tokenizer, before=ids) if canonical else None
    return probabilities_of(
        ready, ids, constraint, canonical=spelled, mass=mass, max_prefixes=max_prefixes, batch=batch
    )
