"""Free text with tagged parts in it, each with a grammar of its own: structural tags, thinking, tool calls.

* `structural`: `Tag` and `tags`.
* `thinking`: `think`.
* `tools`: `tool_calls`, which makes tags of functions; `styles` knows how model families write calls.
* `free_text`: the automata of the text around tags; `delimiters`: what begins and ends one.
"""

from guided.grammar.tags.structural import Tag, tags
from guided.grammar.tags.styles import ToolStyle
from guided.grammar.tags.thinking import think
from guided.grammar.tags.tools import ToolChoice, tool_calls

__all__ = ["Tag", "ToolChoice", "ToolStyle", "tags", "think", "tool_calls"]
