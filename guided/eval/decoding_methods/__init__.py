"""`guided eval decoding`: methods of decoding on the packaged tasks, free and constrained, quality against cost.

After Shi et al., *A Thorough Examination of Decoding Methods in the Era of LLMs*, 2024, arXiv 2402.06925.  Reading
order: `tasks` (what is asked, what the grammar allows, what a text is worth), `names` and `methods` (each method with
its settings), `kit` (the models), `writing` (one text), `results`, `evaluator`, `run`, `comparing` (paired tests,
corrected for their number), `measures`, `report`, `plot`.
"""
