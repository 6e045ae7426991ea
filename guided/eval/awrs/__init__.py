"""`guided eval awrs`: weighted sampling beside masking, on the tasks of Lipkin et al., COLM 2025 (arXiv 2504.05410).

Reading order: `problems` (what is asked, and how an answer is judged), `text_to_sql`, `patterns`, `molecules`,
`json_rows` (the four tasks), `methods` (the five ways to answer), `results`, `evaluator`, `run`, `measures`, `report`,
`plot`.  Prompts are our own, and so are few-shot examples, but for molecules, whose list is the data's.
"""
