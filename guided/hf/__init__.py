"""Hugging Face transformers: the logits processor, generation and model loading; the only home of transformers.

Reading order: `processor` (`GuidedLogitsProcessor`), `prompt` (where generated text begins), `states` and `masking`
(its memo and its one tensor operation), `constraints` (what users pass), `generate`, `loading`.
"""

from guided.hf.generate import Generation, generate
from guided.hf.loading import LoadedModel, Stage, load
from guided.hf.processor import GuidedLogitsProcessor

__all__ = ["Generation", "GuidedLogitsProcessor", "LoadedModel", "Stage", "generate", "load"]
