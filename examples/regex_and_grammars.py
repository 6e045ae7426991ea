"""Regular expressions, Lark, GBNF and choices; and a compiled constraint used by hand.

    python examples/regex_and_grammars.py

The packaged model has learnt records and small SQL queries only; the nested lists have form rather than sense.
"""

from __future__ import annotations

import guided
from guided import hf
from guided.nano import Column, Table, extraction_prompt, sql_prompt

MEETING = {"properties": {"date": {"type": "string", "format": "date"}}, "required": ["date"]}
COLOUR = {"properties": {"colour": {"type": "string"}}, "required": ["colour"]}
LAMPS = Table("lamps", (Column("id", "INTEGER"), Column("colour", "TEXT"), Column("price", "REAL")))
QUERY = """
start: "SELECT" columns "FROM" "lamps" ("WHERE" COLUMN "=" STRING)?
columns: COLUMN ("," COLUMN)*
COLUMN: "id" | "colour" | "price"
STRING: /'[a-z]+'/
%ignore " "
"""
LISTS = 'root ::= "[" item (", " item)* "]"\nitem ::= [a-z]{1,8} | root'


def main() -> None:
    """Generate from every kind of grammar, then look inside a constraint."""
    model = hf.load()
    for title, prompt, grammar in (
        (
            "regex",
            extraction_prompt(MEETING, "The red lamp meeting is on 23 May 1991."),
            guided.regex(r'\{"date": "(19|20)\d\d-(0[1-9]|1[0-2])-([0-2]\d|3[01])"\}'),
        ),
        ("Lark", sql_prompt([LAMPS], "Show the price of lamps whose colour is red."), guided.lark(QUERY)),
        ("GBNF", "[one, [two, three]]\n", guided.gbnf(LISTS)),
        (
            "choice",
            extraction_prompt(COLOUR, "The lamp is in red."),
            guided.choice([f'{{"colour": "{colour}"}}' for colour in ("green", "red", "blue")]),
        ),
    ):
        made = guided.generate(model, prompt, grammar, max_new_tokens=40)
        print(f"{title:<8} {made.text}")

    # By hand: states are ints; advancing, going back and branching copy nothing.
    constraint = guided.compile(guided.lark(QUERY), model.vocabulary)
    state = constraint.advance_bytes(constraint.start, b"SELECT id")
    print(f"\nafter 'SELECT id' the text may end: {constraint.is_accepting(state)}")
    print(f"tokens to the nearest end: {constraint.shortest_completion(state)}")
    for text in (",", "="):
        print(constraint.explain(state, model.tokenizer.convert_tokens_to_ids(text)))


if __name__ == "__main__":
    main()
