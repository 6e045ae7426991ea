"""What a running sampler tells its caller, and what it leaves behind to go on from.

Here: progress, rounds, checkpoints and the digests in them.  Not here: results, which are in `guided.infer.result`.
"""
