"""Queries as people write them today in DuckDB, over a shop, a web site and a market: lists, structs, maps, JSON, time series.

They were written before it was looked which of them the language has.
"""

from __future__ import annotations

import pytest

from guided.grammar.sql import reflect
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.query.language import query_language
from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal

SHOP = """
CREATE TYPE status AS ENUM ('new', 'paid', 'shipped', 'returned');
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, email VARCHAR, address STRUCT(street VARCHAR,
    city VARCHAR, zip VARCHAR, geo STRUCT(lat DOUBLE, lon DOUBLE)), signup DATE, emails VARCHAR[]);
CREATE TABLE products (id INTEGER PRIMARY KEY, name VARCHAR, price DECIMAL(10,2), tags VARCHAR[],
    dims STRUCT(width DOUBLE, height DOUBLE), attributes MAP(VARCHAR, VARCHAR));
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id INTEGER, ordered_at TIMESTAMP, status status,
    total DECIMAL(12,2), items STRUCT(product_id INTEGER, quantity INTEGER, price DECIMAL(10,2))[]);
"""
OF_SHOP = """
SELECT name, address.city FROM customers WHERE address.zip = '0150'
SELECT c.name, c.address.city AS city, c.address.geo.lat FROM customers AS c ORDER BY city
SELECT address.city, count(*) AS n FROM customers GROUP BY ALL ORDER BY n DESC
SELECT address['city'] AS city, count(*) FROM customers GROUP BY 1
SELECT id, unnest(items) AS item FROM orders
SELECT o.id, i.item.product_id, i.item.quantity * i.item.price AS amount FROM orders o, unnest(o.items) AS i(item)
SELECT id, unnest(items, recursive := true) FROM orders
SELECT p.name, sum(item.quantity) AS sold FROM (SELECT unnest(items) AS item FROM orders) JOIN products p ON p.id = item.product_id GROUP BY ALL ORDER BY sold DESC LIMIT 10
SELECT id, list_sum(list_transform(items, lambda x: x.quantity * x.price)) AS total FROM orders
SELECT id, list_sum([x.quantity for x in items]) AS pieces FROM orders WHERE len(items) > 1
SELECT name, list_filter(tags, lambda t: t LIKE 'h%') AS h_tags FROM products
SELECT name, [upper(t) for t in tags if length(t) > 3] AS long_tags FROM products
SELECT name, tags[1] AS first_tag, tags[-1] AS last_tag, tags[1:2] AS two FROM products
SELECT name, attributes['color'] AS color FROM products WHERE attributes['color'] IS NOT NULL
SELECT name, map_keys(attributes) AS keys, cardinality(attributes) AS n FROM products
SELECT unnest(map_keys(attributes)) AS key, count(*) AS n FROM products GROUP BY key ORDER BY n DESC
SELECT name, {'width': dims.width, 'height': dims.height, 'area': dims.width * dims.height} AS box FROM products
SELECT status, list(id ORDER BY ordered_at) AS ids, max_by(customer_id, total) AS best FROM orders GROUP BY status
SELECT name, list_contains(tags, 'home') AS is_home FROM products WHERE 'light' IN tags
SELECT * EXCLUDE (address, emails) FROM customers
SELECT * REPLACE (price * 1.2 AS price) FROM products
SELECT * RENAME (name AS product) FROM products
SELECT struct_pack(id := id, name := name) AS product FROM products
SELECT customers.name.upper() AS name, email.split('@')[2] AS domain FROM customers
FROM orders SELECT date_trunc('month', ordered_at) AS month, sum(total) AS revenue GROUP BY ALL ORDER BY ALL
SELECT customer_id, arg_max(id, ordered_at) AS last_order, arg_max(struct_pack(id, total), ordered_at) AS o FROM orders GROUP BY customer_id
SELECT address.* FROM customers
SELECT list_aggregate(tags, 'count') AS n, array_to_string(tags, ', ') AS tags FROM products
SELECT map_from_entries(list((id, name))) AS names FROM products
SELECT id, list_reduce(list_transform(items, lambda x: x.quantity), lambda a, b: a + b) AS quantity FROM orders WHERE len(items) > 0
"""
WEB = """
CREATE TABLE events (event_id UBIGINT, user_id BIGINT, ts TIMESTAMP WITH TIME ZONE, event_type VARCHAR, url VARCHAR,
    payload JSON, properties MAP(VARCHAR, DOUBLE));
CREATE TABLE users (user_id BIGINT, country VARCHAR, created_at TIMESTAMP, plan VARCHAR, experiments VARCHAR[],
    device STRUCT(os VARCHAR, browser VARCHAR, version INTEGER));
CREATE TABLE page_views (day DATE, page VARCHAR, views BIGINT, visitors BIGINT, bounce_rate DOUBLE);
"""
OF_WEB = """
SELECT payload->>'$.campaign' AS campaign, count(*) FROM events WHERE event_type = 'click' GROUP BY ALL
SELECT json_extract_string(payload, '$.user.name') AS name, (payload->'items'->0->>'price')::DOUBLE AS price FROM events
SELECT user_id, ts, ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS gap FROM events QUALIFY gap > INTERVAL 30 MINUTE OR gap IS NULL
SELECT time_bucket(INTERVAL '15 minutes', ts) AS bucket, count(*) AS n FROM events GROUP BY bucket ORDER BY bucket
SELECT regexp_extract(url, 'https?://([^/]+)', 1) AS host, count(*) AS hits FROM events GROUP BY host ORDER BY hits DESC LIMIT 5
SELECT device.os, device.browser, count(*) AS users FROM users GROUP BY ROLLUP (device.os, device.browser)
SELECT min(COLUMNS(*)) FROM page_views
SELECT day, COLUMNS('view.*|visit.*') FROM page_views
SELECT COLUMNS(lambda c: c LIKE '%rate') * 100 FROM page_views
SELECT avg(COLUMNS(* EXCLUDE (day, page))) FROM page_views
PIVOT page_views ON page USING sum(views) GROUP BY day
SELECT * FROM (PIVOT users ON plan IN ('free', 'pro') USING count(*) GROUP BY country)
UNPIVOT page_views ON views, visitors INTO NAME metric VALUE amount
SELECT * FROM page_views UNPIVOT (amount FOR metric IN (views, visitors))
SELECT user_id, country FROM users UNION ALL BY NAME SELECT user_id, event_type FROM events
SELECT strftime(ts, '%Y-%m') AS month, approx_count_distinct(user_id) AS mau FROM events GROUP BY 1 ORDER BY 1
SELECT e.user_id, e.event_type FROM events e SEMI JOIN users u ON e.user_id = u.user_id AND u.plan = 'pro'
SELECT properties['amount'] AS amount, element_at(properties, 'tax') AS tax FROM events WHERE map_contains(properties, 'amount')
WITH sessions AS (SELECT user_id, ts, sum(CASE WHEN ts - prev > INTERVAL '30 minutes' THEN 1 ELSE 0 END) OVER (PARTITION BY user_id ORDER BY ts) AS session FROM (SELECT *, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS prev FROM events)) SELECT user_id, session, min(ts) AS started, max(ts) - min(ts) AS duration FROM sessions GROUP BY ALL
SELECT user_id, row(country, plan) AS pair, device FROM users ORDER BY device.version DESC NULLS LAST
"""
MARKET = """
CREATE TABLE trades (symbol VARCHAR, ts TIMESTAMP, price DECIMAL(18,4), size INTEGER);
CREATE TABLE quotes (symbol VARCHAR, ts TIMESTAMP, bid DOUBLE, ask DOUBLE);
CREATE TABLE readings (station VARCHAR, taken TIMESTAMP, temps DOUBLE[], wind STRUCT(speed DOUBLE,
    direction VARCHAR), flags UTINYINT);
CREATE TABLE monthly_sales (empid INTEGER, dept VARCHAR, jan INTEGER, feb INTEGER, mar INTEGER);
"""
OF_MARKET = """
SELECT t.symbol, t.ts, t.price, q.bid, q.ask FROM trades t ASOF JOIN quotes q ON t.symbol = q.symbol AND t.ts >= q.ts
SELECT t.*, q.bid FROM trades t ASOF LEFT JOIN quotes q USING (symbol, ts)
SELECT symbol, ts, avg(price) OVER (PARTITION BY symbol ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW) AS ma FROM trades
SELECT symbol, first(price ORDER BY ts) AS open, max(price) AS high, min(price) AS low, last(price ORDER BY ts) AS close FROM trades GROUP BY symbol
SELECT station, wind.direction, round(avg(wind.speed), 2) AS speed FROM readings GROUP BY station, wind.direction HAVING avg(wind.speed) > 5
SELECT station, list_avg(temps) AS mean, list_max(temps) - list_min(temps) AS spread FROM readings
SELECT station, taken, unnest(temps) AS temp, generate_subscripts(temps, 1) AS i FROM readings
SELECT * FROM monthly_sales UNPIVOT (sales FOR month IN (jan, feb, mar)) ORDER BY empid
UNPIVOT monthly_sales ON COLUMNS(* EXCLUDE (empid, dept)) INTO NAME month VALUE sales
WITH days AS (SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL 1 DAY))::DATE AS day) SELECT d.day, coalesce(sum(t.size), 0) AS volume FROM days d LEFT JOIN trades t ON t.ts::DATE = d.day GROUP BY d.day ORDER BY d.day
"""
DATABASES = {"shop": (SHOP, OF_SHOP), "web": (WEB, OF_WEB), "market": (MARKET, OF_MARKET)}
NOT_YET = (
    "i.item", "recursive :=", "sum(item.", " for ", "{'", "struct_pack", ".upper()", "list_aggregate",
    "address.*", "map_from", "COLUMNS", "PIVOT", "BY NAME", "row(", "generate_subscripts",
)  # fmt: skip
"""Parts of those that the language does not have."""


@pytest.mark.parametrize("name", DATABASES)
def test_what_people_write_is_taken(name: str, databases: Databases) -> None:
    tables, queries = DATABASES[name]
    url = databases("duckdb").create(*(each for each in tables.split(";") if each.strip()))
    language = query_language(reflect(url))
    with open_session(url) as session:
        for text in queries.strip().splitlines():
            if text.startswith("PIVOT"):
                # The engine makes a type of the values first, so it does more than read.
                assert refusal(language, text) is not None
                continue
            session.prepare(text)
            is_left = any(part in text for part in NOT_YET)
            assert (refusal(language, text) is None) is not is_left, text
