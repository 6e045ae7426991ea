"""Hugging Face transformers: the logits processor, generation and model loading; the only home of transformers.

Reading order: `processor` (`GuidedLogitsProcessor`), `prompt` (where generated text begins), `encoding` (words to ids),
`states` and `masking` (its memo and its one tensor operation), `constraints` (what users pass), `generate`, `sampling`
and `custom_generate` (samplers of `guided.infer` behind both; `generate_call` reads what transformers hands over),
`loading`.  The model behind `guided.lm`: `language_model` (its face), `architecture`, `network`, `forward` (one pass),
`row_cache` and `slots` (whose keys and values are where), `sequences`, `probe`, `recomputed`.
"""

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
    "load",
]
