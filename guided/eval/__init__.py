"""Evaluations: JSONSchemaBench, and which engine enforces which keyword of a schema.

Reading order: `corpus` (schemas from the layouts that users have), `prompts`, `requests` (what commands ask a model),
`engines` (one adapter a file), `decoding` (the one loop that all engines share), `validation`, `records` and `settings`
(what a result is, and when it is the same one), `evaluator` (one schema through one engine), `isolation`, `run` and
`distributed` (many of them), `measures`, `report`, `plot`.
`probes`, `sampling`, `occurrences` and `compare` are the linter behind ``guided check --compare``.
`awrs` is an evaluation of its own: weighted sampling beside masking.

Nothing outside the command line imports this package, and importing it loads neither torch nor any peer.
"""
