"""Whose keys, values and states are where, and what a pass has to compute: the rows behind `TransformersModel`."""
