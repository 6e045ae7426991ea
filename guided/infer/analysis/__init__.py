"""What came out, and how far it is from what was meant: exact answers, probabilities, distortion, replays.

Here: functions of models, constraints and results.  Not here: anything that draws.
"""
