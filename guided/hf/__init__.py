"""Hugging Face transformers: the logits processor, generation and model loading; the only home of transformers.

Reading order: `processor` (`GuidedLogitsProcessor`), `prompt` (where generated text begins), `states` and `masking`
(its memo and its one tensor operation), `generate`, `loading`.
"""

from guided.hf.processor import GuidedLogitsProcessor

__all__ = ["GuidedLogitsProcessor"]
