"""The logits processor in the `generate` of transformers: greedy, sampling, beams, and a grammar for each row.

    python examples/hf_generate.py

Works with any model of transformers: load your own with `AutoModelForCausalLM` and `AutoTokenizer`.
"""

from __future__ import annotations

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import guided
from guided.hf import GuidedLogitsProcessor
from guided.nano import MODEL_PATH, extraction_prompt

BUDGET = 60
ORDER = {
    "type": "object",
    "properties": {"customer": {"type": "string"}, "quantity": {"type": "integer"}, "paid": {"type": "boolean"}},
    "required": ["customer", "quantity", "paid"],
    "additionalProperties": False,
}
TEXTS = ["Nina Berg ordered 12 pieces and has paid.", "Omar Haddad wants 40 of them, has not paid yet."]


def main() -> None:
    """Decode the same prompts in several ways; one processor serves them all."""
    tokenizer = AutoTokenizer.from_pretrained(MODEL_PATH, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(MODEL_PATH, dtype=torch.float32).eval()
    inputs = tokenizer([extraction_prompt(ORDER, text) for text in TEXTS], return_tensors="pt", padding=True)

    def show(title: str, processor: GuidedLogitsProcessor, **options: object) -> None:
        with torch.inference_mode():
            rows = model.generate(**inputs, logits_processor=[processor], max_new_tokens=BUDGET, **options)
        print(title)
        for text in tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True):
            print(f"    {text}")

    # Told the budget, the processor steers to a whole text within it; give `generate` the same number.
    order = guided.json_schema(ORDER)
    processor = GuidedLogitsProcessor(order, tokenizer, max_new_tokens=BUDGET)
    show("greedy", processor, do_sample=False)
    show("four beams", processor, do_sample=False, num_beams=4)
    torch.manual_seed(0)
    show("sampling", processor, do_sample=True, temperature=0.7)

    yes_or_no = guided.choice(["paid", "not paid", "unknown"])
    mixed = GuidedLogitsProcessor([order, yes_or_no], tokenizer, max_new_tokens=BUDGET)
    show("a grammar for each row", mixed, do_sample=False)


if __name__ == "__main__":
    main()
