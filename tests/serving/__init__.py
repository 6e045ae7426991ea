"""Tests inside other engines, each skipped by name where its engine is not installed."""
