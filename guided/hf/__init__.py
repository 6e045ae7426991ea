"""Hugging Face transformers: the logits processor, generation and model loading; the only home of transformers.

Reading order: `generate` resolves its arguments to a `front.request.Request`, and a runner of `front` decodes:
`transformers_loop`, `own_loop` (drafts and steering), `sampling`, `searching`.  `processor` (`GuidedLogitsProcessor`)
rests on `masking`: `prompt` (where generated text begins) and `apply` (its one tensor operation).
`custom_generate` and `speculation` are for ``model.generate(..., custom_generate=...)``.  The model behind `guided.lm`:
`language_model` (its face), `architecture`, `network`, `forward` (one pass), `probe`, and the rows in `cache`.
`continuous` is for transformers' continuous batching.
"""

from guided.hf.continuous import generate_batch
from guided.hf.custom_generate import CustomGenerate, custom_generate
from guided.hf.generate import Generation, generate
from guided.hf.language_model import Caching, TransformersModel
from guided.hf.loading import LoadedModel, Stage, load
from guided.hf.processor import GuidedLogitsProcessor
from guided.hf.steering import SteeringLogitsProcessor

__all__ = [
    "Caching",
    "CustomGenerate",
    "Generation",
    "GuidedLogitsProcessor",
    "LoadedModel",
    "Stage",
    "SteeringLogitsProcessor",
    "TransformersModel",
    "custom_generate",
    "generate",
    "generate_batch",
    "load",
]
