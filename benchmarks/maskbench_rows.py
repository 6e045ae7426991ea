"""What is measured: MaskBench's rows, schemas that grow, and vocabularies of any size."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "choose", "load_rows", "load_tokenizer", "nested_schema", "nested_value", "resized_tokenizer",
    "split_of", "wide_schema", "wide_value",
]  # fmt: skip


def load_rows(path: Path) -> list[dict[str, Any]]:
    """Rows ``{"id", "schema", "tests": [{"valid", "data"}]}`` of JSON lines, gzipped where the name says so."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def split_of(row_id: str) -> str:
    """The part of MaskBench that a row comes from, by its id: ``Github_easy---o12``, ``BFCL_simple_7---0``."""
    name = row_id.split("---")[0]
    family = name.split("_")[0]
    return name if family == "Github" else family


def choose(rows: Sequence[dict[str, Any]], per_split: int, seed: int) -> list[dict[str, Any]]:
    """So many rows from each part, drawn with the seed; 0 takes all."""
    if not per_split:
        return list(rows)
    splits: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        splits[split_of(row["id"])].append(row)
    rnd = random.Random(seed)
    return [row for name in sorted(splits) for row in rnd.sample(splits[name], min(per_split, len(splits[name])))]


def load_tokenizer(path: Path) -> Any:
    """A tokenizer of transformers from its folder or its ``tokenizer.json``, without asking any hub."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if path.is_dir():
        return AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    return PreTrainedTokenizerFast(tokenizer_file=str(path))


def wide_schema(n: int) -> dict[str, Any]:
    """An object with ``n`` required properties, of four types in turn."""
    kinds: list[dict[str, Any]] = [
        {"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "number"}},
        {"enum": ["low", "middle", "high"]},
    ]  # fmt: skip
    properties = {f"property_{i}": kinds[i % 4] for i in range(n)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def wide_value(n: int) -> dict[str, Any]:
    """An instance of `wide_schema`, whole."""
    kinds: list[Any] = ["a few words of text", 12345, [1, 2.5, 3e10], "middle"]
    return {f"property_{i}": kinds[i % 4] for i in range(n)}


def nested_schema(depth: int) -> dict[str, Any]:
    """Objects in objects, ``depth`` deep, a string beside each."""
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        properties = {"name": {"type": "string"}, "child": schema}
        schema = {"type": "object", "properties": properties, "required": ["name", "child"]}
    return schema


def nested_value(depth: int) -> Any:
    """An instance of `nested_schema`."""
    value: Any = 1
    for _ in range(depth):
        value = {"name": "n", "child": value}
    return value


def resized_tokenizer(tokenizer: Any, size: int) -> Any:
    """A byte-level BPE tokenizer of ``size`` ids: the first of another's, or all of them and joined pairs of its words.

    It keeps those of the other's merges that still have a meaning.  The last id is the end of text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    taken = dict.fromkeys(sorted(pre_tokenizers.ByteLevel.alphabet()) + words)
    for pair in _pairs(words):
        if len(taken) >= size - 1:
            break
        taken.setdefault(pair)
    vocabulary = {word: i for i, word in enumerate(list(taken)[: size - 1])}
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
    kept = [(a, b) for a, b in merges if a in vocabulary and b in vocabulary and a + b in vocabulary]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=kept))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")


def _pairs(words: Sequence[str]) -> Iterator[str]:
    """Two neighbouring words in one, as larger vocabularies have them: long tokens that share their beginnings."""
    starts = [word for word in words if word.startswith("Ġ") and 3 <= len(word) <= 8]
    for step in range(1, 64):
        for i, word in enumerate(starts):
            yield word + starts[(i * 7 + step) % len(starts)]
