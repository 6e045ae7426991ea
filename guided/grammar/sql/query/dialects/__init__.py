"""The dialects, one a file."""
