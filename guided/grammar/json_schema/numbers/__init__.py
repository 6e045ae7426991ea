"""Sets of numbers, and how they are written: from ranges with a step to regular languages of digits.

Here: everything about numbers.  Not here: the keywords that ask for them.
"""
