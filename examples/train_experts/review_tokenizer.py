"""The experts' tokenizer: byte-level BPE in which nearly every word of the corpus is one token."""

from __future__ import annotations

import itertools

from review_corpus import stream
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

__all__ = ["build_tokenizer"]

VOCABULARY_SIZE = 1152
TEXTS = 20_000


def build_tokenizer(seed: int) -> PreTrainedTokenizerFast:
    """Trained on the first texts of a stream."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text.text for text in itertools.islice(stream(seed), TEXTS)), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )
