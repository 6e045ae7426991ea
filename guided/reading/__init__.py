"""Texts read back: the value of a JSON text that is still coming, and the named parts of a finished text.

* `partial_json`: one text; `json_stream`: text as it comes.
* `captures`: by the names that a pattern or a grammar gives, or by JSON pointer; `named`: where its rules give them.
* `records`: as the cells of a table; `arrow`, `frames`: of Arrow, pandas and polars.

Nothing here constrains anything, and nothing asks for a vocabulary.
"""
