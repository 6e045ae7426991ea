"""`guided eval awrs`: weighted sampling beside masking, on the tasks of Lipkin et al., COLM 2025 (arXiv 2504.05410).

Reading order: `problems` (what is asked and how an answer is judged), `sql`, `patterns`, `molecules`, `json_rows` (the
four tasks), `methods` (the five ways to answer), `results`, `evaluator`, `run`, `distributed`, `report`, `plot`.
"""
