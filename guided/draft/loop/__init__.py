"""What runs drafts: the loop that verifies them, its rows and figures, and the two runs of another kind.

Here: loops and what only they need.  Not here: what proposes tokens, how many are asked for, and which are accepted.
"""
