"""guided-nano's tokenizer: byte-fallback BPE whose pieces are the same wherever a name stands.

A copying model should meet ``full_name`` as the same tokens in the schema, in the question and in the answer.  So the
space before a word is not part of its token (as in GPT-2 or Llama) but a token of its own, digits and underscores stand
alone, and only fixed phrases that are never names (SQL keywords, English function words, the kinds of columns) take
their spaces in.
"""

from __future__ import annotations

import itertools
import json
import string
from pathlib import Path

from corpus import tasks
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

__all__ = ["VOCABULARY_SIZE", "build_tokenizer"]

VOCABULARY_SIZE = 2048
SPECIAL = ("<pad>", "</s>", "<unk>")
SPACE = "\u2581"

_CLAUSES = (
    "FROM|WHERE|AND|OR|ON|JOIN|LIMIT|HAVING|BETWEEN|LIKE|UNION|INTERSECT|EXCEPT|GROUP~BY|ORDER~BY|NOT~IN|IN|IS~NOT|IS"
)
_FUNCTION_WORDS = (
    "the|of|with|whose|is|and|or|all|to|for|are|there|that|has|have|was|more|less|than|at|least|most|each|per|by|in|on|"
    "a|an|it|its|this|one|between|before|after|not|no|any|from|int|text|real|date|bool|lowest|highest|average|number|"
    "they|wrote|grouped|ordered|descending|ascending|order|greater|above|below|under|over|top|belong|belonging|their|"
    "other|those|NULL|DESC|was|above|these|here|where|between|without"
)
_PATTERN = "|".join(
    (
        f"~(?:{_CLAUSES})~(?:SELECT~)?",
        r"SELECT~(?:DISTINCT~)?",
        r"COUNT\(\*\)|COUNT\(DISTINCT~|(?:COUNT|AVG|SUM|MIN|MAX)\(",
        r"~[=<>!]+~|~->~|~\(",
        f"~(?:{_FUNCTION_WORDS})(?![A-Za-z0-9_])",
        r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]|[0-9]|_|~",
        r"\n",
        r"[^A-Za-z0-9_~\n]+(?:~(?![A-Z]{2}))?",
    )
).replace("~", SPACE)


def build_tokenizer(seed: int, sample: int = 20_000) -> PreTrainedTokenizerFast:
    """The tokenizer trained on the first ``sample`` tasks of a seed: 3 special tokens, 256 bytes, then pieces."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    _configure(trained)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - 256,
        special_tokens=list(SPECIAL),
        initial_alphabet=[*string.ascii_letters, *string.digits, *string.punctuation, "\n", SPACE],
        show_progress=False,
    )
    texts = (
        (task.context + "".join(query + answer + "\n" for query, answer in task.pairs))
        .encode("ascii", "ignore")
        .decode("ascii")
        for task in itertools.islice(tasks(seed), sample)
    )
    trained.train_from_iterator(texts, trainer)
    learned = json.loads(trained.to_str())["model"]
    pieces = sorted(learned["vocab"], key=learned["vocab"].__getitem__)[len(SPECIAL) :]
    names = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    final = Tokenizer(
        models.BPE(
            vocab={name: index for index, name in enumerate(names)},
            merges=[tuple(pair) for pair in learned["merges"]],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    _configure(final)
    return PreTrainedTokenizerFast(
        tokenizer_object=final,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def _configure(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_PATTERN), behavior="isolated")
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json."""
    tokenizer.save_pretrained(str(folder))
