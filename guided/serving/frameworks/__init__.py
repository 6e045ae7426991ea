"""Constraints in frameworks that ask for objects: Outlines, LangChain, LlamaIndex, DSPy, instructor; a module each.

`chat` is what they share: a loaded model that answers conversations.  A framework is imported in its own module only.
"""
