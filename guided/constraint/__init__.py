"""Where a grammar meets a vocabulary: states, masks, steps."""
