"""What a logits processor does with masks: where generated text begins, states by prefix, masks onto score tensors."""
