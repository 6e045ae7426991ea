"""Constraints where other engines run the model: vLLM, SGLang, MLX-LM, llama.cpp and others.

One package an engine, each over the same three parts, which know no engine:

* `matcher`: `Matcher`, one request's place in its constraint; `fill_rows`, the masks of a batch of them.
* `requests`: `Request`, what a server's user asked for, as a grammar.
* `vocabularies`: `Vocabularies`, the vocabulary of an engine's tokenizer, for each set of ids that end a text.

An engine is imported in its own package only.
"""

from guided.serving.matcher import Matcher, fill_rows
from guided.serving.requests import Request, RequestKind
from guided.serving.vocabularies import Vocabularies

__all__ = ["Matcher", "Request", "RequestKind", "Vocabularies", "fill_rows"]
