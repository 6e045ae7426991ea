"""llama-cpp-python: vocabulary of a GGUF, logits processor, and `generate`.

Written against and tested with llama-cpp-python 0.3.36, which is imported when first used.
"""

from guided.serving.llama_cpp.generation import generate
from guided.serving.llama_cpp.processor import LlamaCppProcessor, Processors
from guided.serving.llama_cpp.tokenizer import vocabulary_of_llama

__all__ = ["LlamaCppProcessor", "Processors", "generate", "vocabulary_of_llama"]
