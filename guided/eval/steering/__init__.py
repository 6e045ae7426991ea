"""`guided eval steering`: every method of `guided.steer` against the model without it, on the measure that it is for.

Reading order: `prompts` (what is asked, and which prompts strengths were chosen on), `judges` (what a text is worth,
counted without a model), `kit` (the packaged models and their tokens), `writing` (texts of a batch of prompts),
`names`, `methods` (each method with its task and strength), `results`, `evaluator`, `run`, `measures` (differences with
bootstrap intervals), `report`, `plot`.  Reviews and hotels are made up: see `guided.nano.experts`.
"""
