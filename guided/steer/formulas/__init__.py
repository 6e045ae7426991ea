"""One pure function for each method: tensors of what it asked for in, logits ``[n, V]`` of the same dtype out.

`combining` has what they share (infinite logits, plausible sets, candidates); `contrast`, `prompts`, `layers`,
`experts`, `rewards`, `history` and `anti_model` hold the methods by what they need.  Nothing here runs a
model or keeps a state.
"""
