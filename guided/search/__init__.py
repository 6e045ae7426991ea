"""Search: answers found by comparing whole continuations rather than by choosing token after token."""
