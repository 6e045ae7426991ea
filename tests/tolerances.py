"""How far two floats may lie apart that should be equal, and why that holds on any processor.

Which instructions a processor has decides in which order sums are taken and how often they are rounded, and nothing
else: libraries below NumPy and PyTorch choose their kernels by it.  So two ways to the same number differ by rounding,
and a tolerance must be far above what rounding can do, and far below what a mistake does.  Beside each is the most that
was measured over the whole suite (AMD EPYC).  What is drawn is drawn by seeds from the same floats; where a test compares
means, its tolerance is in standard errors, or says how much of it is used up.

`pytest.approx` without a tolerance takes 1e-6 of the value: enough for float64, of which all that is compared so is.
"""

from __future__ import annotations

DOUBLE = 1e-12
"""float64, of hundreds of operations on numbers up to 10: each rounds by 1e-15 at most.  Measured: 9e-15."""

SUMS = 1e-9
"""float64, summed over all random choices of a run, a million or so, or logarithms up to 1000.  Measured: 1e-14."""

SINGLE = 1e-4
"""float32, of one pass of a small model, with logits up to 20 that round by 1e-6 each.  Measured: 5e-6."""

PASSES = 1e-3
"""float32, of passes in other batches, through caches, summed along texts.  Measured: 2e-5; another token of the prefix
changes logits by 0.1 and more."""
