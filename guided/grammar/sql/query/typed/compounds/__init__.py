"""Queries of several parts: VALUES, brackets, and common table expressions that read themselves."""
