"""Batches over a Ray cluster.

* `maps`: `generate_texts`, a map of a data set; `Generate`, the class of its actors.
* `mapping`: `map_on_ray`, which commands and evaluations use: tasks over workers, whose results come one by one.
"""

from guided.serving.ray.maps import Generate, generate_texts

__all__ = ["Generate", "generate_texts"]
