"""Queries as analysts write them, over a shop that sells by subscription, on PostgreSQL and DuckDB.

What the engine prepares must be in the language.  The first were refused before types could be undecided and texts
followed into GROUP BY.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy

from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import ALL
from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal

TABLES = """
create table accounts (id serial primary key, name varchar(255) not null, plan varchar(50), created_at timestamp not
    null, country varchar(2), is_active boolean default true, mrr numeric(10,2));
create table users (id serial primary key, account_id int references accounts(id), email varchar(255), full_name text,
    role varchar(20), signup_date date, last_login timestamptz, age int, score float8, tags text[], settings jsonb);
create table events (id bigint primary key, user_id int references users(id), event_type varchar(50), occurred_at
    timestamp, properties jsonb, duration_ms int);
create table invoices (id serial primary key, account_id int references accounts(id), amount numeric(12,2), status
    varchar(20), issued_at date, paid_at date, currency char(3));
create table products (product_id int primary key, name varchar(100), category varchar(50), price numeric(8,2), stock
    int);
create table order_items (order_id int, product_id int references products(product_id), quantity int, unit_price
    numeric(8,2), discount real);
create table orders (order_id int primary key, user_id int references users(id), order_date timestamp, status
    varchar(20), total numeric(10,2), shipping_city text);
create table employees (emp_id int primary key, name text, manager_id int, department varchar(50), salary int,
    hire_date date);
"""
FIRST = """
SELECT date_part('dow', signup_date), COUNT(*) FROM users GROUP BY 1
SELECT name FROM products UNION SELECT name FROM employees INTERSECT SELECT name FROM accounts ORDER BY 1
SELECT EXTRACT(WEEK FROM d)::int AS w, d FROM (SELECT DATE '2024-01-01' + n::int AS d FROM generate_series(0, 30) AS n) q
SELECT u.day, COALESCE(f.n, 0) FROM (SELECT generate_series('2024-01-01'::date, '2024-01-31'::date, '1 day')::date AS day) u LEFT JOIN (SELECT order_date::date AS day, count(*) AS n FROM orders GROUP BY 1) f ON f.day = u.day
SELECT country, is_big, SUM(CASE WHEN country = 'FR' THEN worth ELSE 0 END) / SUM(worth) AS share FROM (SELECT EXTRACT(YEAR FROM created_at) AS year, mrr * (1 - 0.2) AS worth, country, mrr > 100 AS is_big FROM accounts) AS known GROUP BY country, is_big
SELECT a.name FROM accounts a WHERE a.created_at >= date '2024-01-01' + interval '3' month AND a.created_at < date '2024-12-31' - interval '90' day
SELECT substring(currency FROM 1 FOR 2), trim(both ' ' from status), CAST(AVG(amount) AS decimal(10, 4)) FROM invoices GROUP BY currency, status
SELECT GROUPING(country), GROUPING(country, plan), country, plan, COUNT(*) FROM accounts GROUP BY GROUPING SETS ((country, plan), (country), ()) ORDER BY country NULLS FIRST
SELECT string_agg(DISTINCT a.country, ', ' ORDER BY a.country DESC NULLS LAST) FROM accounts a
SELECT n, SUM(total) OVER (ORDER BY n), total / LAG(total, 1, 0) OVER (PARTITION BY kind ORDER BY n) FROM (SELECT EXTRACT(MONTH FROM order_date) AS n, status AS kind, SUM(total) AS total FROM orders GROUP BY 1, 2) m
SELECT DATE_TRUNC('month', order_date), SUM(SUM(total)) OVER (PARTITION BY status ORDER BY DATE_TRUNC('month', order_date)) FROM orders GROUP BY DATE_TRUNC('month', order_date), status
SELECT name FROM products WHERE name ~ '^(red|blue)[0-9]+$'
SELECT SUM(total) FROM (SELECT user_id, COUNT(*) AS total FROM events GROUP BY user_id) t
SELECT MAX(days) FROM (SELECT paid_at - issued_at AS days FROM invoices WHERE paid_at IS NOT NULL) x
SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS age_group, COUNT(*) FROM users GROUP BY CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'senior' END
SELECT email, settings->>'theme' AS theme FROM users WHERE settings->>'theme' = 'dark' AND settings @> '{"beta": true}'
SELECT unnest(tags) AS tag, COUNT(*) FROM users GROUP BY tag ORDER BY 2 DESC
SELECT to_char(order_date, 'YYYY-MM') AS month, SUM(total) AS revenue, SUM(SUM(total)) OVER (ORDER BY to_char(order_date, 'YYYY-MM')) AS running FROM orders GROUP BY to_char(order_date, 'YYYY-MM') ORDER BY month
SELECT u.role, array_agg(DISTINCT u.email ORDER BY u.email) AS emails, string_agg(u.full_name, ', ') AS names FROM users u GROUP BY u.role
SELECT d::date AS day, COUNT(e.id) FROM generate_series(CURRENT_DATE - INTERVAL '6 days', CURRENT_DATE, INTERVAL '1 day') AS d LEFT JOIN events e ON e.occurred_at::date = d::date GROUP BY d ORDER BY d
SELECT regexp_matches(email, '(.*)@(.*)') FROM users
SELECT m.month, m.revenue, m.revenue - LAG(m.revenue, 1) OVER (ORDER BY m.month) AS change, CASE WHEN LAG(m.revenue) OVER (ORDER BY m.month) > 0 THEN ROUND((m.revenue / LAG(m.revenue) OVER (ORDER BY m.month) - 1) * 100, 1) END AS pct FROM (SELECT date_trunc('month', order_date) AS month, SUM(total) AS revenue FROM orders GROUP BY 1) m
SELECT COALESCE(plan, 'none') AS plan, COUNT(*) FROM accounts GROUP BY COALESCE(plan, 'none')
SELECT MAX(last_date) FROM (SELECT MAX(order_date) AS last_date FROM orders GROUP BY user_id) l
SELECT UPPER(city) FROM (SELECT shipping_city AS city FROM orders) c
SELECT SUM(CASE WHEN active THEN 1 ELSE 0 END) FROM (SELECT is_active AS active FROM accounts) z
SELECT AVG(EXTRACT(EPOCH FROM gap)) FROM (SELECT occurred_at - LAG(occurred_at) OVER (ORDER BY occurred_at) AS gap FROM events) g
""".strip().split("\n")
OTHERS = """
SELECT plan, COUNT(*) AS total FROM accounts GROUP BY plan ORDER BY total DESC
SELECT AVG(cnt) FROM (SELECT user_id, COUNT(*) AS cnt FROM events GROUP BY user_id) AS sub
SELECT CASE WHEN seg = 'big' THEN 1 ELSE 0 END FROM (SELECT CASE WHEN mrr > 1000 THEN 'big' ELSE 'small' END AS seg FROM accounts) s
SELECT a.name, t.total FROM accounts a JOIN (SELECT account_id, SUM(amount) AS total FROM invoices WHERE status = 'paid' GROUP BY account_id) t ON t.account_id = a.id WHERE t.total > 1000
SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS age_group, COUNT(*) FROM users GROUP BY age_group ORDER BY age_group
SELECT date_trunc('week', occurred_at) AS week, event_type, COUNT(DISTINCT user_id) AS users FROM events WHERE occurred_at >= NOW() - INTERVAL '30 days' GROUP BY week, event_type ORDER BY week, users DESC
SELECT date_trunc('month', occurred_at)::date AS month, COUNT(*) FROM events GROUP BY 1 ORDER BY 1
SELECT u.email, COUNT(e.id) AS n_events, MAX(e.occurred_at) AS last_event FROM users u LEFT JOIN events e ON e.user_id = u.id AND e.event_type = 'login' GROUP BY u.id, u.email HAVING COUNT(e.id) >= 5 ORDER BY n_events DESC NULLS LAST LIMIT 20
SELECT (properties->>'price')::numeric AS price FROM events WHERE properties ? 'price' AND (properties->>'price')::numeric > 10
SELECT email FROM users WHERE 'admin' = ANY(tags)
SELECT email FROM users WHERE tags && ARRAY['a', 'b'] OR array_length(tags, 1) > 3
SELECT t.tag, COUNT(*) FROM users u, unnest(u.tags) AS t(tag) GROUP BY t.tag
SELECT t.tag FROM users u CROSS JOIN LATERAL unnest(u.tags) AS t(tag)
SELECT EXTRACT(HOUR FROM occurred_at) AS hr, AVG(duration_ms) / 1000.0 AS avg_s FROM events GROUP BY hr ORDER BY hr
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95, percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) FROM events
SELECT user_id, occurred_at, occurred_at - LAG(occurred_at) OVER (PARTITION BY user_id ORDER BY occurred_at) AS gap FROM events
WITH firsts AS (SELECT user_id, MIN(occurred_at) AS first_at FROM events GROUP BY user_id), cohort AS (SELECT user_id, date_trunc('month', first_at) AS cohort_month FROM firsts) SELECT c.cohort_month, COUNT(DISTINCT c.user_id) AS size, COUNT(DISTINCT CASE WHEN e.occurred_at >= c.cohort_month + INTERVAL '1 month' THEN e.user_id END) AS retained FROM cohort c LEFT JOIN events e ON e.user_id = c.user_id GROUP BY c.cohort_month ORDER BY 1
WITH RECURSIVE chain AS (SELECT emp_id, name, manager_id, 1 AS level FROM employees WHERE manager_id IS NULL UNION ALL SELECT e.emp_id, e.name, e.manager_id, c.level + 1 FROM employees e JOIN chain c ON e.manager_id = c.emp_id) SELECT * FROM chain ORDER BY level, name
WITH RECURSIVE chain AS (SELECT emp_id, name::text AS path FROM employees WHERE manager_id IS NULL UNION ALL SELECT e.emp_id, c.path || ' > ' || e.name FROM employees e JOIN chain c ON e.manager_id = c.emp_id) SELECT path FROM chain
SELECT department, name, salary FROM (SELECT department, name, salary, ROW_NUMBER() OVER (PARTITION BY department ORDER BY salary DESC) AS rn FROM employees) ranked WHERE rn <= 3 ORDER BY department, rn
SELECT name, salary, salary - AVG(salary) OVER (PARTITION BY department) AS diff, ROUND(100.0 * salary / SUM(salary) OVER (PARTITION BY department), 1) AS pct FROM employees
SELECT e.name AS employee, m.name AS manager FROM employees e LEFT JOIN employees m ON e.manager_id = m.emp_id
SELECT department, AVG(salary) FROM employees GROUP BY department HAVING AVG(salary) > (SELECT AVG(salary) FROM employees)
SELECT name FROM employees WHERE salary = (SELECT MAX(salary) FROM employees WHERE salary < (SELECT MAX(salary) FROM employees))
SELECT date_part('year', hire_date) AS yr, COUNT(*) FROM employees GROUP BY yr HAVING COUNT(*) > 1
SELECT p.category, SUM(oi.quantity * oi.unit_price * (1 - oi.discount)) AS revenue FROM order_items oi JOIN products p USING (product_id) JOIN orders o USING (order_id) WHERE o.status IN ('shipped', 'delivered') AND o.order_date BETWEEN '2023-01-01' AND '2023-12-31' GROUP BY p.category ORDER BY revenue DESC
SELECT o.order_id, o.total, CASE o.status WHEN 'shipped' THEN 'S' WHEN 'pending' THEN 'P' ELSE '?' END AS code FROM orders o WHERE o.shipping_city ILIKE 'new%' AND EXTRACT(YEAR FROM o.order_date) = 2023
SELECT p.name FROM products p WHERE NOT EXISTS (SELECT 1 FROM order_items oi WHERE oi.product_id = p.product_id)
SELECT a.country, COUNT(*) FILTER (WHERE a.is_active) AS active, COUNT(*) FILTER (WHERE NOT a.is_active) AS inactive, ROUND(AVG(a.mrr), 2) AS avg_mrr FROM accounts a GROUP BY a.country HAVING COUNT(*) > 3
SELECT a.name, COALESCE(SUM(i.amount), 0) AS billed, COALESCE(SUM(CASE WHEN i.status = 'paid' THEN i.amount END), 0) AS paid FROM accounts a LEFT JOIN invoices i ON i.account_id = a.id GROUP BY a.name
SELECT AVG(paid_at - issued_at) AS avg_days FROM invoices WHERE paid_at IS NOT NULL AND currency = 'USD'
SELECT email, split_part(email, '@', 2) AS domain, LOWER(TRIM(full_name)), LENGTH(full_name), INITCAP(full_name), REPLACE(full_name, ' ', '_'), SUBSTRING(email FROM 1 FOR 3), SUBSTRING(email, 1, 3), POSITION('@' IN email), CONCAT(full_name, ' <', email, '>') FROM users
SELECT COUNT(*) FROM users WHERE last_login < CURRENT_DATE - INTERVAL '90 days' OR last_login IS NULL
SELECT COUNT(*) FROM users WHERE signup_date >= date_trunc('month', CURRENT_DATE) - INTERVAL '1 month' AND signup_date < date_trunc('month', CURRENT_DATE)
SELECT signup_date, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY signup_date) AS cumulative FROM users GROUP BY signup_date ORDER BY signup_date
SELECT role, string_agg(DISTINCT full_name, ', ' ORDER BY full_name) FROM users GROUP BY role
SELECT jsonb_agg(jsonb_build_object('id', id, 'email', email)) FROM users WHERE age BETWEEN 20 AND 30
SELECT id, settings->'notifications'->>'email', settings #>> '{a,b}', jsonb_array_length(settings->'list') FROM users
SELECT name, price, RANK() OVER (ORDER BY price DESC), DENSE_RANK() OVER (PARTITION BY category ORDER BY price), NTILE(4) OVER (ORDER BY price) FROM products
SELECT category, name FROM products WHERE (category, price) IN (SELECT category, MAX(price) FROM products GROUP BY category)
SELECT DISTINCT u.id, u.email FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > (SELECT AVG(total) * 2 FROM orders) ORDER BY u.email
SELECT (SELECT COUNT(*) FROM users) AS users, (SELECT COUNT(*) FROM orders) AS orders, (SELECT COUNT(*) FROM users)::float / NULLIF((SELECT COUNT(*) FROM orders), 0) AS ratio
SELECT COUNT(*)::numeric / NULLIF(COUNT(DISTINCT user_id), 0) FROM orders
SELECT AGE(CURRENT_DATE, hire_date) FROM employees
SELECT name, EXTRACT(YEAR FROM AGE(CURRENT_DATE, hire_date)) AS years FROM employees ORDER BY years DESC
SELECT date_part('day', NOW() - last_login) AS days_since FROM users
SELECT * FROM users WHERE email ~ '^[a-z]+@example\\.com$' AND email NOT LIKE '%test%' AND full_name SIMILAR TO '(A|B)%'
SELECT a.* , u.email FROM accounts a, users u WHERE a.id = u.account_id AND a.created_at::date = '2024-01-01'
SELECT COUNT(*) AS "Total Users", MIN(signup_date) AS "First Signup" FROM users
SELECT u.id FROM users u WHERE u.id IN (SELECT user_id FROM orders WHERE status = 'cancelled' INTERSECT SELECT user_id FROM events WHERE event_type = 'refund')
SELECT 'users' AS tbl, COUNT(*) FROM users UNION ALL SELECT 'orders', COUNT(*) FROM orders UNION ALL SELECT 'events', COUNT(*) FROM events ORDER BY 2 DESC
SELECT o.user_id, o.order_date, SUM(o.total) OVER (PARTITION BY o.user_id ORDER BY o.order_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running_total FROM orders o
SELECT user_id, COUNT(*) FROM orders WHERE order_date > CURRENT_TIMESTAMP - INTERVAL '1 year' GROUP BY user_id HAVING COUNT(*) > 1 AND SUM(total) > 100.50 ORDER BY COUNT(*) DESC, user_id ASC LIMIT 10 OFFSET 5
SELECT MAX(salary) - MIN(salary) AS spread, STDDEV_SAMP(salary), VARIANCE(salary), CORR(salary, emp_id) FROM employees
SELECT ROUND(CAST(SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) AS numeric) / COUNT(*) * 100, 2) AS paid_pct FROM invoices
SELECT ROUND((SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END)::decimal / COUNT(*)) * 100, 2) || '%' AS paid_pct FROM invoices
SELECT u.id, latest.order_date FROM users u LEFT JOIN LATERAL (SELECT order_date FROM orders o WHERE o.user_id = u.id ORDER BY order_date DESC LIMIT 1) latest ON true
SELECT grouping(category), category, SUM(stock) FROM products GROUP BY CUBE (category)
SELECT category, SUM(stock) FILTER (WHERE price > 10) OVER () FROM products
SELECT id, ROW_NUMBER() OVER (ORDER BY created_at) - 1 AS zero_based, created_at + (id || ' days')::interval FROM accounts
SELECT EXTRACT(EPOCH FROM (MAX(occurred_at) - MIN(occurred_at)))/3600 AS hours FROM events
SELECT to_timestamp(1700000000) AT TIME ZONE 'America/New_York', occurred_at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' FROM events
SELECT avg(score)::numeric(10,3), round(avg(score)::numeric, 2), round(score) FROM users GROUP BY score
SELECT sum(quantity) AS qty, sum(quantity)::float / (SELECT sum(quantity) FROM order_items) AS share FROM order_items GROUP BY product_id
SELECT name, CASE WHEN stock = 0 THEN 'out' WHEN stock < 10 THEN 'low' ELSE 'ok' END AS level, price * stock AS value FROM products WHERE price IS NOT NULL AND stock <> 0 AND NOT (category = 'x' OR category IS NULL)
SELECT date(occurred_at) AS d, count(*) FROM events GROUP BY date(occurred_at) ORDER BY d
SELECT LEFT(email, 1) AS initial, RIGHT(email, 4), COUNT(*) FROM users GROUP BY LEFT(email, 1), RIGHT(email, 4)
SELECT user_id, STRING_AGG(event_type, ' -> ' ORDER BY occurred_at) AS path FROM events GROUP BY user_id
SELECT COUNT(*) FROM users WHERE age IN (SELECT DISTINCT age FROM users WHERE age % 2 = 0) AND score IS DISTINCT FROM 5.0
SELECT status, COUNT(*), ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2) FROM orders GROUP BY status
SELECT x.id FROM (SELECT id, name AS n FROM accounts) AS x (id, label) WHERE x.label LIKE 'A%'
select name from accounts where created_at > '2024-01-01'::timestamp and created_at < '2024-02-01 12:00:00' order by created_at desc, name
SELECT count(*) FROM events WHERE occurred_at::time BETWEEN '09:00' AND '17:00'
SELECT first_value(name) OVER (PARTITION BY department ORDER BY salary DESC), nth_value(name, 2) OVER (ORDER BY salary ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM employees
SELECT q.quarter, SUM(q.total) FROM (SELECT EXTRACT(QUARTER FROM order_date) AS quarter, total FROM orders) q GROUP BY q.quarter
SELECT quarter, SUM(total) AS total FROM (SELECT EXTRACT(QUARTER FROM order_date) AS quarter, total FROM orders) q GROUP BY quarter ORDER BY quarter
SELECT year, AVG(n) FROM (SELECT EXTRACT(YEAR FROM order_date)::int AS year, user_id, COUNT(*) AS n FROM orders GROUP BY 1, 2) t GROUP BY year
SELECT name, ROUND(amount, 2), pct FROM (SELECT a.name, SUM(i.amount) AS amount, 100 * SUM(i.amount) / SUM(SUM(i.amount)) OVER () AS pct FROM accounts a JOIN invoices i ON i.account_id = a.id GROUP BY a.name) z WHERE pct > 5
SELECT seg, COUNT(*) FROM (SELECT CASE WHEN r <= 2 THEN 'top' ELSE 'rest' END AS seg FROM (SELECT RANK() OVER (ORDER BY total DESC) AS r FROM orders) a) b GROUP BY seg
SELECT name || ' (' || plan || ')' AS label FROM accounts WHERE plan <> '' ORDER BY LENGTH(name) DESC, LOWER(name)
SELECT mrr > 100 AS is_big, COUNT(*) FROM accounts GROUP BY is_big
SELECT n.name, n.total_spent FROM (SELECT u.full_name AS name, SUM(o.total) AS total_spent, DENSE_RANK() OVER (ORDER BY SUM(o.total) DESC) AS rnk FROM users u INNER JOIN orders o ON u.id = o.user_id GROUP BY u.full_name) n WHERE n.rnk = 1
""".strip().split("\n")
QUERIES = FIRST + OTHERS if ALL else FIRST
NOT_YET = (
    "n::int AS d",
    "generate_series('2024-01-01'::date",
    "NOW() - last_login",
    "generate_series(1, 10)",
)
"""What DuckDB takes as well, and the language does not."""


def statements(dialect: str) -> list[str]:
    """The tables in the words of a dialect."""
    found = " ".join(TABLES.split()).strip(";").split(";")
    if dialect == "postgresql":
        return found
    return [text.replace("serial", "int").replace("jsonb", "json") for text in found]


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_what_the_engine_prepares_is_taken(dialect: str, databases: Databases) -> None:
    url = databases(dialect).create(*statements(dialect))
    language = query_language(reflect(url))
    prepared = 0
    with sqlalchemy.create_engine(url).connect() as connection:
        for text in QUERIES:
            if dialect == "duckdb" and not prepares(connection, text):
                continue
            elif dialect == "postgresql":
                assert prepares(connection, text), text
            prepared += 1
            is_left = dialect == "duckdb" and any(part in text for part in NOT_YET)
            assert (refusal(language, text) is None) is not is_left, text
    assert prepared >= 0.6 * len(QUERIES)


def prepares(connection: Any, text: str) -> bool:
    """Does the engine plan a query?"""
    try:
        connection.exec_driver_sql(
            "EXPLAIN " + text.replace("%", "%%" if connection.dialect.name == "postgresql" else "%")
        )
    except sqlalchemy.exc.DBAPIError:
        connection.rollback()
        return False
    return True


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_columns_of_a_sub_query_to_come_are_read_in_few_ways(dialect: str, databases: Databases) -> None:
    language = query_language(reflect(databases(dialect).create("CREATE TABLE t (known int)")))
    at = language.start
    for byte in b"SELECT " + b", ".join(b"%c1 * %c2 + 1" % (letter, letter) for letter in b"abcdef"):
        found = language.step(at, byte)
        assert found is not None
        at = found
    place = language.resolved(at)
    assert place is not None and len(place.threads) <= 100
    assert language.end(at) is not None


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("SELECT 1 + a, b + 1, 1 + c, 1 + d, CAST(foo <> ALL (", None),
        ("SELECT 1 + a, b + 1, 1 + c, row_number() OVER (ORDER BY CASE foo", None),
        ("SELECT 1 + a, b + 1, 1 + c, row_number() OVER (ORDER BY CASE foo WHEN", "WHEN"),
        ("SELECT 1 + a, b + 1, 1 + c, row_number() OVER (ORDER BY (foo, ", None),
        ("SELECT GROUPING(foo), count(bar), NULLIF(foo", None),
        ("SELECT string_agg(DISTINCT u.code, ',' ORDER BY", None),
        ("SELECT string_agg(DISTINCT a_long_name_of_a_table.a_long_name_of_a_column, ',' ORDER BY", None),
    ],
)
def test_an_end_is_found_where_a_type_is_undecided(text: str, leaves: str | None, databases: Databases) -> None:
    """What has no end is no beginning either: ``leaves`` is what cannot come of it."""
    language = query_language(reflect(databases("postgresql").create("CREATE TABLE t (known int)")))
    begins = text if leaves is None else text.removesuffix(leaves)
    at = language.start
    for byte in begins.encode():
        found = language.step(at, byte)
        assert found is not None
        at = found
    end = language.end(at)
    assert end is not None and len(end) <= language.price(at)
    if leaves is not None:
        assert refusal(language, text) is not None and refusal(language, text) < len(text)
