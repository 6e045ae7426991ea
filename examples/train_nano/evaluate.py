"""Evaluates guided-nano on held-out schemas: execution match of its SQL, and the share of record fields it gets right.

    python examples/train_nano/evaluate.py [--model FOLDER] [--count 200] [--constrained] [--out FILE]

Held-out means that no table, column or field name and no value occurs in the training stream; only ``id``, ``name``,
``title`` and the everyday field names of the familiar set, which is reported apart, do.  Decoding is greedy.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgresql
import torch
from databases import database, same_result
from everyday_questions import everyday_question
from familiar_corpus import random_familiar_case
from record_corpus import RecordCase, dumped, random_record_case
from sql_corpus import Schema, random_schema, rendered, spelled
from sql_questions import Pair, random_question
from sql_spelling import Spelling
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor, LogitsProcessorList
from words import HELD_OUT, TRAINING

from guided.nano import MODEL_PATH, Table, extraction_prompt, sql_prompt

__all__ = [
    "Constraint",
    "Example",
    "evaluate",
    "examples",
    "fields_right",
    "generate",
    "quick_check",
    "summary",
]

SEED = 20_260
BATCH = 20
MOST_NEW_TOKENS = 600
"""Far from what an answer takes."""
SETS = ("sql", "everyday", "postgresql", "records", "familiar")
"""Plain and everyday questions in SQLite, both kinds in PostgreSQL, records over unseen and over everyday names."""


@dataclass(frozen=True)
class Example:
    """A prompt and its answer, with what a constraint is made of: the tables, or the JSON Schema."""

    prompt: str
    answer: str
    tables: tuple[Table, ...] = ()
    schema: Any = None
    source: Schema | None = None

    @property
    def dialect(self) -> str:
        """The name of the dialect, of a question about a database."""
        return self.source.spelling.value if self.source else ""


Constraint = Callable[[Sequence[Example], Any], LogitsProcessor]
"""Makes the logits processor of a batch of examples, given the tokenizer."""


def examples(name: str, seed: int = SEED, held_out: bool = True) -> Iterator[Example]:
    """The endless examples of a set: ``sql``, ``records`` (unseen field names) or ``familiar`` (everyday ones)."""
    rng, lexicon = random.Random(f"{name}/{seed}"), HELD_OUT if held_out else TRAINING
    while True:
        if name == "sql":
            yield _question(rng, random_schema(rng, lexicon), random_question)
        elif name == "everyday":
            yield _question(rng, random_schema(rng, lexicon, tables=rng.choice([1, 2, 3])), everyday_question)
        elif name == "postgresql":
            schema = spelled(random_schema(rng, lexicon, tables=rng.choice([1, 2, 3])), Spelling.POSTGRESQL)
            yield _question(rng, schema, rng.choice([random_question, everyday_question]))
        else:
            case = (random_familiar_case if name == "familiar" else random_record_case)(rng, lexicon)
            yield _record_example(case)


def _question(rng: random.Random, schema: Schema, form: Callable[[random.Random, Schema], Pair]) -> Example:
    tables, (question, answer) = tuple(rendered(schema)), form(rng, schema)
    return Example(sql_prompt(tables, question, schema.spelling.value), answer, tables=tables, source=schema)


def _record_example(case: RecordCase) -> Example:
    return Example(extraction_prompt(case.schema, case.text), dumped(case.record), schema=case.schema)


def generate(model: Any, tokenizer: Any, batch: Sequence[Example], constraint: Constraint | None = None) -> list[str]:
    """The greedy answers to a batch of examples."""
    encoded = tokenizer([example.prompt for example in batch], return_tensors="pt", padding=True, padding_side="left")
    processors = LogitsProcessorList([constraint(batch, tokenizer)] if constraint else [])
    with torch.inference_mode():
        rows = model.generate(
            input_ids=encoded["input_ids"].to(model.device),
            attention_mask=encoded["attention_mask"].to(model.device),
            logits_processor=processors,
            max_new_tokens=MOST_NEW_TOKENS,
            do_sample=False,
        )
    start = encoded["input_ids"].shape[1]
    return [tokenizer.decode(row[start:], skip_special_tokens=True) for row in rows]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The fields of a record: every value that is not an object, by its path."""
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, child in value.items() for key, leaf in _leaves(child, (*path, name)).items()}


def fields_right(written: str, expected: str) -> tuple[int, int]:
    """How many fields are right, of how many: those expected and those written in addition.

    Examples:
        >>> fields_right('{"a": 1, "b": 2}', '{"a": 1, "b": {"c": 2}}')
        (1, 3)
    """
    wanted = _leaves(json.loads(expected))
    try:
        got = _leaves(json.loads(written))
    except ValueError:
        return 0, max(1, len(wanted))
    if not wanted and not got:
        return 1, 1
    right = sum(path in got and _same(got[path], value) for path, value in wanted.items())
    return right, len(wanted.keys() | got.keys())


def _same(got: Any, wanted: Any) -> bool:
    """JSON equality: true is not 1, but 2 is 2.0."""
    return isinstance(got, bool) == isinstance(wanted, bool) and bool(got == wanted)


def _executed(example: Example, written: str) -> list[bool | None]:
    """Whether the statement gives the rows of the expected one, in two differently filled databases."""
    source = example.source
    assert source is not None
    if source.spelling is Spelling.POSTGRESQL:
        return [postgresql.same_result(source, seed, written, example.answer) for seed in (1, 2)]
    return [same_result(database(source, seed), written, example.answer) for seed in (1, 2)]


def quick_check(model: Any, tokenizer: Any, count: int = 20) -> dict[str, float]:
    """A quick look during training: execution match and fields right on ``count`` held-out examples each.

    PostgreSQL is left out: where a model is trained there may be no server.
    """
    training = model.training
    model.eval()
    names = [name for name in SETS if name != "postgresql"]
    result = {name: round(_score(model, tokenizer, name, count, None)["right"], 3) for name in names}
    model.train(training)
    return result


def _score(model: Any, tokenizer: Any, name: str, count: int, constraint: Constraint | None) -> dict[str, Any]:
    chosen = list(itertools.islice(examples(name), count))
    right, total, exact, executable, failures = 0, 0, 0, 0, []
    started, shortest_first = time.perf_counter(), sorted(chosen, key=lambda example: len(example.prompt))
    for start in range(0, count, BATCH):
        batch = shortest_first[start : start + BATCH]
        for example, written in zip(batch, generate(model, tokenizer, batch, constraint), strict=True):
            exact += written == example.answer
            of = 1
            if example.source is not None:
                executed = _executed(example, written)
                good = int(all(executed))
                executable += None not in executed
            else:
                good, of = fields_right(written, example.answer)
            right, total = right + good, total + of
            if good < of:
                failures.append({"prompt": example.prompt, "written": written, "expected": example.answer})
    return {
        "right": right / total,
        "of": total,
        "exact": exact / count,
        **({"executable": executable / count} if chosen[0].source is not None else {}),
        "examples": count,
        "seconds": round(time.perf_counter() - started, 1),
        "failures": failures,
    }


def evaluate(
    folder: Path, count: int = 200, constraint: Constraint | None = None, names: Sequence[str] = SETS
) -> dict[str, Any]:
    """The scores of the model in ``folder`` on the sets: ``right`` is execution match or the share of fields."""
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    return {name: _score(model, tokenizer, name, count, constraint) for name in names}


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """The scores without the wrong answers."""
    return {name: {key: value for key, value in one.items() if key != "failures"} for name, one in results.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL_PATH)
    parser.add_argument("--count", type=int, default=200, help="examples of each set")
    parser.add_argument("--set", action="append", choices=SETS, help="only this one; may be given again")
    parser.add_argument("--constrained", action="store_true", help="decode under each example's own grammar")
    parser.add_argument("--failures", type=int, default=0, help="how many wrong answers to print for each set")
    parser.add_argument("--out", type=Path, help="write the scores here as JSON")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    constraint = None
    if arguments.constrained:
        from constrained import grammar_constraint

        constraint = grammar_constraint
    results = evaluate(arguments.model, arguments.count, constraint, arguments.set or SETS)
    for name, result in results.items():
        for failure in result["failures"][: arguments.failures]:
            print(f"--- {name}\n{failure['prompt']}{failure['written']}\n   expected\n{failure['expected']}")
    text = json.dumps(summary(results), indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
