"""Records from texts: a Python class is the schema, and every answer is an object of it.

    python examples/extract_records.py

Uses the packaged model; pass another to `guided.hf.load` ("Qwen/Qwen2.5-0.5B-Instruct", a folder), with prompts in
its own style.
"""

from __future__ import annotations

from dataclasses import dataclass

import pydantic

import guided
from guided import hf
from guided.nano import extraction_prompt


@dataclass
class Person:
    name: str
    age: int
    city: str


TEXTS = [
    "Nina Berg lives in Oslo and is 34 years old.",
    "Omar Haddad, 51, lives in Cairo.",
    "Note: Ida Dahl is 29 years old and lives in Tromso.",
]


def main() -> None:
    """Extract all texts in one batch."""
    reader = pydantic.TypeAdapter(Person)
    # White space by pattern: at most one space, which is how the model was trained to write JSON.
    grammar = guided.json_schema(Person)
    model = hf.load()
    prompts = [extraction_prompt(reader.json_schema(), text) for text in TEXTS]
    for text, made in zip(TEXTS, guided.generate(model, prompts, grammar, max_new_tokens=80), strict=True):
        print(f"{text}\n    {reader.validate_json(made.text)}")


if __name__ == "__main__":
    main()
