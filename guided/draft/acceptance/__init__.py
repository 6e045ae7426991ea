"""Which draft tokens are accepted: exactly by the law of the target, or by a rule that says it is lossy.

Here: rules and their training.  Not here: the loop that asks them.
"""
