"""From generated tokens to what they say: text, reasoning, calls."""
