"""Lambdas of DuckDB, and what else follows lists: the engine takes what the language has, and refuses what it has not."""

from __future__ import annotations

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create table baskets (id int, buyer varchar, tags varchar[], prices double[], days date[],"
    " items struct(sku varchar, n int)[])"
]
TAKEN = """
SELECT list_transform(tags, lambda x: upper(x)), list_filter(tags, lambda t: t <> 'a' AND length(t) > 3) FROM baskets
SELECT list_transform([1, 2], lambda x: x * 2), list_reduce(prices, lambda p, q: p + q) AS total FROM baskets
SELECT list_sum(list_transform(prices, lambda p, i: p * i)) FROM baskets WHERE len(list_filter(prices, lambda p: p > 1)) > 2
SELECT list_transform(items, lambda x: x.n * 2), list_filter(items, lambda x: x.sku LIKE 'a%')[1].sku FROM baskets
SELECT list_transform(prices, lambda x: list_sum(list_filter(prices, lambda y: y > x))) FROM baskets
SELECT list_transform(tags, lambda x: x || buyer || b.buyer), x FROM baskets b, (SELECT 1 AS x)
SELECT list_transform(list(buyer), lambda x: x[1:2]) FROM baskets
SELECT list_reduce(prices, lambda p, q, i: p + q * i, 0::DOUBLE) + 1, list_reduce(tags, lambda s, t: s || t, '') FROM baskets
SELECT apply(days, lambda d: year(d)), array_filter(days, lambda d: d IS NOT NULL), reduce(tags, lambda s, t: t) FROM baskets
SELECT list_transform(tags, lambda x: CASE WHEN x = 'a' THEN 1 END) AS l, l[1] FROM baskets
SELECT array_to_string(list_transform(tags, lambda x: x), ','), COUNT(*) FROM baskets GROUP BY tags
SELECT count(), count() FILTER (id > 1), count() OVER () FROM baskets GROUP BY id HAVING count() > 1
SELECT list(buyer ORDER BY id DESC)[1], array_agg(id)[1:2] FROM baskets
""".strip().splitlines()
REFUSED = """
SELECT list_transform(tags, lambda x: (SELECT 1)) FROM baskets
SELECT list_transform(tags, lambda x: count(x)) FROM baskets
SELECT list_transform(tags, lambda x: x = ANY(tags)) FROM baskets
SELECT list_transform(tags, lambda x: x.n) FROM baskets
SELECT list_transform(tags, lambda x: x), x FROM baskets
SELECT list_transform(tags, lambda x, i, j: x) FROM baskets
SELECT list_transform(tags, lambda x, x: 1) FROM baskets
SELECT list_reduce(prices, lambda p: p) FROM baskets
SELECT list_transform(buyer, lambda x: x) FROM baskets
SELECT count(), list_transform(tags, lambda x: x) FROM baskets
SELECT list(buyer) FILTER (id > 1)[1] + 1 FROM baskets
""".strip().splitlines()
LEFT = """
SELECT list_transform(tags, lambda buyer: buyer || '!') FROM baskets
SELECT list_transform(prices, lambda x: [x]) FROM baskets
SELECT list_transform(tags, lambda x: count(*) OVER ()) FROM baskets
""".strip().splitlines()


def test_lambdas(databases: Databases) -> None:
    judged_alike(databases("duckdb").create(*TABLES), TAKEN, REFUSED, LEFT)
