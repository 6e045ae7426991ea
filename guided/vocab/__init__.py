"""Token byte strings of every tokenizer family, and the flat trie over them; knows no grammar.

Reading order: `vocabulary` (the public class), `families` (tokenizer -> bytes), `trie`, `cache`.
"""

from guided.vocab.vocabulary import Vocabulary

__all__ = ["Vocabulary"]
