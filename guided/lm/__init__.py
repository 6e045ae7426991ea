"""The one interface to language models, and models that need no transformers; the Transformers model is in `guided.hf`.

Reading order: `model` (the protocols `LanguageModel` and `Sequences`), `given` (what users pass as one), `table` (exact
models for tests), `ngrams`, `wrapped`, `transforms`, `mirostat` and `likelihood` (models over models), `lattice`,
`bytes` and `retokenized` (models across tokenizers); `prefixes`, `prefix_rows` and `rows` are what implementations
share. Loads torch.
"""

from guided.lm.bytes import ByteModel, byte_vocabulary
from guided.lm.given import language_model
from guided.lm.likelihood import Likelihoods
from guided.lm.mirostat import Mirostat, MirostatCut
from guided.lm.model import (
    NOTHING,
    Abilities,
    Added,
    Calls,
    LanguageModel,
    Needs,
    Scores,
    Sequences,
    Tree,
    check_needs,
    next_logits,
)
from guided.lm.ngrams import ngram_model
from guided.lm.prefixes import Prefixes
from guided.lm.retokenized import RetokenizedModel, retokenized
from guided.lm.table import TableModel
from guided.lm.transforms import Truncation, transformed
from guided.lm.wrapped import MappedScores, WrappedSequences

__all__ = [
    "NOTHING",
    "Abilities",
    "Added",
    "ByteModel",
    "Calls",
    "LanguageModel",
    "Likelihoods",
    "MappedScores",
    "Mirostat",
    "MirostatCut",
    "Needs",
    "Prefixes",
    "RetokenizedModel",
    "Scores",
    "Sequences",
    "TableModel",
    "Tree",
    "Truncation",
    "WrappedSequences",
    "byte_vocabulary",
    "check_needs",
    "language_model",
    "next_logits",
    "ngram_model",
    "retokenized",
    "transformed",
]
