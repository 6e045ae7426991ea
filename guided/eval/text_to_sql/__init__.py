"""Text to SQL on Spider, defog's questions and BIRD: is the gold query in the language, and is the answer's result its?

Nothing is printed here; `guided.cli.evaluations.text_to_sql` is the command.
"""
