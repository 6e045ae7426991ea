"""Many listed numbers are lists of words with endings: the same language as number by number."""

import random

from guided.grammar.json_schema.numbers.number_text import MANY_SINGLES, number_text, number_texts
from guided.grammar.json_schema.numbers.ranges import NumberRange, exact
from guided.grammar.regular.decide import is_empty
from guided.grammar.regular.expr import alternation, difference


def test_lists_of_numbers_are_what_their_numbers_are():
    random_ = random.Random(3)
    odd = [1e-7, 1e300, 0, 100, -2500, 0.05, 1e22, -1e-9, 5, 0.1 + 0.2]
    for _ in range(12):
        values = {
            exact(
                random_.choice(
                    [random_.randint(-1000, 1000), round(random_.uniform(-10, 10), 3), random_.choice(odd), 10**12]
                )
            )
            for _ in range(2 * MANY_SINGLES)
        }
        items = [NumberRange(value, False, value, False) for value in values]
        one_by_one = alternation(number_text(item) for item in items)
        together = alternation(number_texts(items))
        assert is_empty(difference(one_by_one, together))
        assert is_empty(difference(together, one_by_one))
