"""Batches: their lines (`lines`), what answers them (`answering`), where (`place`), and on Ray (`on_ray`)."""
