"""Constraints where other engines run the model: vLLM, SGLang, MLX-LM, llama.cpp and others.

One package an engine, each over the same parts, which know no engine:

* `matcher`: `Matcher`, one request's place in its constraint; `fill_rows`, the masks of a batch of them.
* `continuation`: `Continuation`, the same for engines that hand over ids and scores and nothing else.
* `texts`: `Goal`, what users of our `generate` functions pass; `Text`, what they get.
* `requests`: `Request`, what a server's user asked for, as a grammar.
* `vocabularies`: `Vocabularies`, the vocabulary of an engine's tokenizer, for each set of ids that end a text.

An engine is imported in its own package only.
"""

from guided.serving.continuation import Continuation
from guided.serving.matcher import Matcher, fill_rows
from guided.serving.requests import Request, RequestKind
from guided.serving.texts import Goal, Text
from guided.serving.vocabularies import Vocabularies

__all__ = ["Continuation", "Goal", "Matcher", "Request", "RequestKind", "Text", "Vocabularies", "fill_rows"]
