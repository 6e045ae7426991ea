"""Token byte strings of every tokenizer family, and the flat trie over them; knows no grammar.

Reading order: `vocabulary` (the public class), `families` (tokenizer -> bytes), `trie`, `cache`,
`remembered` (what users pass as one).
"""

from guided.vocab.remembered import vocabulary_of
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Vocabulary", "vocabulary_of"]
