"""The name under which tests know `guided.testing.enumeration`."""

from guided.testing.enumeration import enumerate_choices

__all__ = ["enumerate_choices"]
