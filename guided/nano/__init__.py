"""guided-nano: the small language model inside the package, and the prompts it was trained on.

Importing this loads neither torch nor transformers; ``MODEL_PATH`` is what their ``from_pretrained`` takes.  How the
model was made: ``examples/train_nano`` in the repository; what it can and cannot do: ``weights/MODEL_CARD.md``.
"""

from __future__ import annotations

from pathlib import Path

from guided.nano.prompts import Column, ForeignKey, Table, extraction_prompt, sql_prompt

__all__ = [
    "DIFFUSION_PATH",
    "DRAFTS_PATH",
    "MODEL_PATH",
    "Column",
    "ForeignKey",
    "Table",
    "extraction_prompt",
    "sql_prompt",
]

MODEL_PATH = Path(__file__).parent / "weights"
"""The folder of the packaged model: ``AutoModelForCausalLM.from_pretrained(MODEL_PATH)``."""

DIFFUSION_PATH = Path(__file__).parent / "diffusion"
"""The folder of guided-nano-diffusion, the packaged model made a masked denoiser: ``guided.hf.load("nano-diffusion")``.
How it was made: ``examples/train_denoiser``; what it can and cannot do: ``MODEL_CARD.md`` there."""

DRAFTS_PATH = Path(__file__).parent / "drafts"
"""The folder of what drafts for the packaged model: heads (``medusa.safetensors``, ``hydra.safetensors``) and a small
model of its tokenizer (``small``).  How they were made: ``examples/train_draft_heads``."""
