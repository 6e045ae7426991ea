"""Tool calls and structured tags: text up to a call, the call's arguments under a schema, and fields as they come.

    python examples/tool_calls.py

The packaged model has learnt to write records, so the prompt asks for one; what the call looks like is the grammar's.
"""

from __future__ import annotations

import re
from typing import Any

import guided
from guided import ToolChoice, ToolStyle, hf
from guided.nano import extraction_prompt

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SAVE = {"type": "function", "function": {"name": "save_person", "parameters": SCHEMA}}
TEXT = "Mary Baker is 46 years old."


class Fields:
    """A streamer of transformers that prints what the arguments of a call say so far."""

    def __init__(self, vocabulary: guided.Vocabulary, begin: str) -> None:
        self.vocabulary, self.begin = vocabulary, begin.encode()
        self.text = b""
        self.stream: guided.JsonStream | None = None
        self.is_prompt = True

    def put(self, ids: Any) -> None:
        if self.is_prompt:
            self.is_prompt = False
            return
        for token in ids.flatten().tolist():
            data = self.vocabulary.token_bytes(token) or b""
            if self.stream is None:
                self.text += data
                _, found, data = self.text.partition(self.begin)
                self.stream = guided.JsonStream() if found else None
            if self.stream is not None and not self.stream.is_whole:
                for byte in data:
                    # The token that closes the object may also begin the end of the call.
                    if not self.stream.is_whole:
                        self.stream.append(bytes([byte]))
                done = [name for name in ("name", "age") if self.stream.state(f"/{name}") is guided.FieldState.COMPLETE]
                print(f"  {self.stream.value}  complete: {', '.join(done) or 'nothing'}")

    def end(self) -> None:
        print()


def main() -> None:
    """A call that is shown field by field, then the same in another family's notation."""
    model = hf.load()
    prompt = extraction_prompt(SCHEMA, TEXT)
    for style in (ToolStyle.LLAMA, ToolStyle.MISTRAL_ARGS):
        grammar = guided.tool_calls([SAVE], style=style, choice=ToolChoice.REQUIRED, parallel=False, special_tokens=())
        options = {"streamer": Fields(model.vocabulary, "<function=save_person>")} if style is ToolStyle.LLAMA else {}
        made = hf.generate(model, prompt, grammar, max_new_tokens=80, **options)
        print(f"{style.name}:\n{made.text}\n")
        arguments = re.search(r"\{.*\}", made.text)
        assert arguments and guided.partial_json(arguments[0], final=True).complete == {"", "/name", "/age"}

    thinking = guided.think(guided.json_schema(SCHEMA), begin=None, end="\n")
    constraint = guided.compile(thinking, model.vocabulary)
    state = constraint.advance_bytes(constraint.start, b"Mary is a name, 46 an age.\n")
    print("while thinking:", constraint.explain(constraint.start, model.tokenizer.convert_tokens_to_ids("a")))
    print("after it:", constraint.explain(state, model.tokenizer.convert_tokens_to_ids("a")))


if __name__ == "__main__":
    main()
