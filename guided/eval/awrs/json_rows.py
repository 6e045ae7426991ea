"""JSON: a value that is valid against a schema of MaskBench, judged by jsonschema."""

from __future__ import annotations

from pathlib import Path

import guided
from guided.errors import GuidedError
from guided.eval.awrs.problems import Asker, Problem, Question, TaskName, needed
from guided.eval.corpus import read_rows
from guided.eval.prompts import prompt_ids
from guided.eval.validation import NoVerdictError, schema_fault, why_invalid
from guided.hf import LoadedModel

__all__ = ["asker", "read"]

FILE = "maskbench-dev.jsonl.gz"


def read(data: Path) -> list[Problem]:
    """Every schema of MaskBench's rows that is one."""
    rows = read_rows(needed(data / FILE, "MaskBench's rows"))
    return [Problem(TaskName.JSON, f"{row.split}/{row.id}", row.schema) for row in rows]


def asker(model: LoadedModel) -> Asker:
    """Asks for one JSON text."""
    config = model.model.config
    room = None if config.is_encoder_decoder else getattr(config.get_text_config(), "max_position_embeddings", None)

    def ask(problem: Problem) -> Question:
        schema = problem.content
        fault = schema_fault(schema)
        if fault is not None:
            raise GuidedError(fault)
        # Half of the room is left for the answer, as far as that goes.
        prompt = prompt_ids(model, schema, None if not isinstance(room, int) else room // 2)
        constraint = guided.compile(guided.json_schema(schema, whitespace=" ?"), model.vocabulary)

        def valid(text: str) -> bool:
            try:
                return why_invalid(text, schema) is None
            except NoVerdictError:
                return False

        return Question(prompt, model.vocabulary, constraint, valid, "jsonschema")

    return ask
