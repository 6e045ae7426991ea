"""The tokenizer's own spelling: canonical masks, forced tokens, and prompts that end inside a token."""
