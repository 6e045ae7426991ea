"""Everything that this front end refuses although it may be meaningful: what, why, and what to do instead.

One table, which the raising places refer to and from which the list in `docs/JSON_SCHEMA.md` is written.  Malformed
schemas (`GrammarError`) and schemas that no value satisfies (`UnsatisfiableError`) are not refusals and not here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from guided.errors import GuidedError, LimitError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse; ``what`` is a template, ``because`` is for the documentation."""

    error: type[GuidedError]
    what: str
    remedy: str
    because: str

    def at(self, where: str | None = None, **values: object) -> GuidedError:
        """The error to raise."""
        return self.error(self.what.format(**values), where=where, remedy=self.remedy)


DRAFT = Refusal(
    UnsupportedError,
    "the draft {name!r}",
    "Use draft 4, 6, 7, 2019-09 or 2020-12.",
    "Drafts before 4 give other meanings to the same keywords.",
)
VOCABULARY = Refusal(
    UnsupportedError,
    "the vocabulary {uri!r}",
    "Use a meta-schema that does not need it.",
    "A meta-schema that requires an unknown vocabulary asks to be refused.",
)
REFERENCE = Refusal(
    UnsupportedError,
    "the reference {reference!r} is not in this schema",
    "Pass a `referencing.Registry` that holds it as registry=; nothing is fetched.",
    "References are resolved in the schema, in the registry that was passed and among the meta-schemas; never online.",
)
SELF_APPLYING = Refusal(
    UnsupportedError,
    "the schema is defined by itself: it applies itself to the same value",
    "Remove the circle of $ref, allOf, anyOf or oneOf.",
    "Its meaning is not defined; validators do not end on it.",
)
SURROGATE = Refusal(
    UnsupportedError,
    "a lone surrogate in a constant",
    "Use valid Unicode text.",
    "UTF-8 cannot hold it.",
)
PATTERN = Refusal(
    UnsupportedError,
    "a backreference to a group with many texts, or a look-behind or look-ahead of varying context, in a pattern",
    "Write the pattern without it.",
    "The language is not regular, or not known to be; the regex front end says which construct it is.",
)
DISTINCT_ITEMS = Refusal(
    UnsupportedError,
    "distinct items of which number {index} has perhaps only {count} possible values, so that what may stand at one "
    "place depends on others",
    "Allow more values for that item, or lower minItems.",
    "The checker compares an item with those before it; it does not solve for those still to come.",
)
DISTINCT_NAMES = Refusal(
    UnsupportedError,
    "at least {low} members of which few names are possible",
    "Lower minProperties, or declare the names.",
    "The same for names that a pattern allows.",
)
REGEX_COMBINED = Refusal(
    UnsupportedError,
    "the format 'regex' together with a pattern or length: no string was found that meets both",
    "Keep the format, or the other keyword.",
    "There is none without references, or none near; so it is with strings that must not be of this format.",
)
HOST_COMBINED = Refusal(
    UnsupportedError,
    "the format 'idn-hostname' together with a pattern or length: no string was found that meets both",
    "Keep the format, or the other keyword.",
    "There is none but perhaps with encoded labels, long labels above ASCII, or marks that compose.",
)
ENCODED_HOSTS = Refusal(
    UnsupportedError,
    "the format 'hostname' together with other keywords that leave names with encoded labels (xn--) only",
    "Keep the format, or the other keyword; or list the names.",
    "Which encoded labels stand for anything is not regular, so such names are only told where they are listed.",
)
NARROWED_NAMES = Refusal(
    UnsupportedError,
    "propertyNames with a format of host names, where a condition on objects is negated: not, oneOf or else",
    "Use a pattern in propertyNames.",
    "Names are not looked at by the checker, and which of them are host names is not regular.",
)
NESTING = Refusal(
    LimitError,
    "the schema is nested too deeply",
    "Use $ref instead of nesting.",
    "Schemas are walked recursively: about 400 levels of members, fewer of allOf and anyOf.",
)
ALTERNATIVES = Refusal(
    LimitError,
    "the combination of alternatives has more than {limit} cases",
    "Write the combined alternatives out, or use fewer anyOf or oneOf under one schema.",
    "`allOf` of many `anyOf`, many `if`, many `dependentRequired` on one value: the product is written out.",
)
CLAUSES = Refusal(
    LimitError,
    "the values of a member are told apart in more than {limit} ways by what they must not be",
    "Use fewer oneOf, not and else about one object, or tell their branches apart by a required constant.",
    "Each combination of branches that one member rules out is an alternative.",
)
CLAUSE_STEPS = Refusal(
    LimitError,
    "what members of an object rule out takes more than {limit} steps to keep track of",
    "Use fewer oneOf, not and else about one object, or tell their branches apart by a required constant.",
    "The branches that are not ruled out yet are the states of an automaton over members.",
)
NODES = Refusal(
    LimitError,
    "the schema combines its parts in more than {limit} ways",
    "Use fewer alternatives that apply to the same value.",
    "Each conjunction of subschemas that a part of a value must meet is one node.",
)
MENTIONS = Refusal(
    LimitError,
    "the combined parts of the schema mention more than {limit} others",
    "Use fewer alternatives that apply to the same value.",
    "The same, counting the parts of each node.",
)
COUNTED_CONDITIONS = Refusal(
    LimitError,
    "more than {limit} conditions on how many items of one array meet something",
    "Combine fewer contains, or negated items, in one array.",
    "n conditions split the items into up to 2ⁿ kinds.",
)
COUNTED_STEPS = Refusal(
    LimitError,
    "counting the items of an array takes more than {limit} steps",
    "Lower minItems, maxItems, minContains and maxContains where an array has a contains.",
    "The counts of one array are a finite automaton, the product of all of them.",
)
MEMBER_CONDITIONS = Refusal(
    LimitError,
    "more than {limit} conditions that some member of any name must meet",
    "Name the members, or combine fewer negated objects.",
    "Such conditions come from the negation of additionalProperties and patternProperties.",
)
MEMBER_SORTS = Refusal(
    LimitError,
    "more than {limit} sorts of undeclared members",
    "Use fewer patterns for names, or combine fewer negated objects.",
    "The same, times the classes of names.",
)
NAME_CLASSES = Refusal(
    LimitError,
    "the patterns of property names overlap in more than {limit} ways",
    "Use fewer patterns, or patterns that exclude each other.",
    "n patterns that overlap freely make 2ⁿ classes of names.",
)
NAME_COMPARISONS = Refusal(
    LimitError,
    "telling the patterns of property names apart takes more than {limit} comparisons",
    "Use fewer patterns, or patterns that exclude each other.",
    "Every two patterns of one object are intersected.",
)
MULTIPLES = Refusal(
    LimitError,
    "the multiples need an automaton of more than {limit} states",
    "Use a smaller or rounder multipleOf.",
    "A multiple is recognised by its remainder, digit by digit, so the automaton has as many states.",
)
DIGITS = Refusal(
    LimitError,
    "a bound has more than {limit} digits",
    "Use a shorter bound.",
    "Bounds are compared digit by digit.",
)
EMPTINESS = Refusal(
    LimitError,
    "deciding whether an intersection of patterns is empty takes too many steps",
    "Simplify the patterns, or shorten the counted repeats that are combined.",
    "Patterns, lengths and formats of one string are intersected as regular languages.",
)

REFUSALS = (
    DRAFT,
    VOCABULARY,
    REFERENCE,
    SELF_APPLYING,
    SURROGATE,
    PATTERN,
    DISTINCT_ITEMS,
    DISTINCT_NAMES,
    REGEX_COMBINED,
    HOST_COMBINED,
    ENCODED_HOSTS,
    NARROWED_NAMES,
    NESTING,
    ALTERNATIVES,
    CLAUSES,
    CLAUSE_STEPS,
    NODES,
    MENTIONS,
    COUNTED_CONDITIONS,
    COUNTED_STEPS,
    MEMBER_CONDITIONS,
    MEMBER_SORTS,
    NAME_CLASSES,
    NAME_COMPARISONS,
    MULTIPLES,
    DIGITS,
    EMPTINESS,
)
"""All of them, in the order of the documentation."""


def markdown() -> str:
    """The table of the documentation."""
    rows = ["| refused, because | error | instead |", "| --- | --- | --- |"]
    for refusal in REFUSALS:
        what = re.sub(r"\{(\w+)(!r)?\}", lambda found: f"*{found[1]}*", refusal.what)
        rows.append(f"| {what}. {refusal.because} | `{refusal.error.__name__}` | {refusal.remedy} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
