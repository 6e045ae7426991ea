"""From shapes that have values to rules of the IR.

Here: rules, terminals, and bodies that are made when looked at.  Not here: how numbers are written.
"""
