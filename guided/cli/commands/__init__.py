"""The commands for everyday work, one a file.

Here: arguments of a command and what it does with them.  Not here: evaluations, and options that commands share.
"""
