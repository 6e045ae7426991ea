"""Rewards: of texts (`text_reward`), of hidden states (`model_reward`, `scorer`), and steering by them (`rewarded`)."""
