"""Samplers that let weighted particles grow side by side: importance sampling, SMC, SMC steering, local masking.

Here: the population, its prefixes, resampling, the samplers.  Not here: samplers that start again from the prompt.
"""
