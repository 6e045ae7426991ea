"""MLX-LM: a logits processor, and `generate`.  Written against and tested with mlx-lm 0.32.2,
which is imported when first used.
"""

from guided.serving.mlx.generation import generate, generate_batch
from guided.serving.mlx.processor import MlxProcessor, vocabulary_of_mlx

__all__ = ["MlxProcessor", "generate", "generate_batch", "vocabulary_of_mlx"]
