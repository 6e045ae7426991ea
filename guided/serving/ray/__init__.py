"""Batches over a Ray cluster: tasks mapped over workers, each of which holds a model."""
