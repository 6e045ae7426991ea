"""What analysts ask of kennels, races, schools and hotels, on SQLite and MariaDB: written before anyone looked whether the language has it.

Of 25 each that the engines prepare 25 and 23 were in the language then.
"""

from __future__ import annotations

import pytest

from tests.amounts import ALL
from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

KENNELS = """
CREATE TABLE dogs (dog_id INTEGER PRIMARY KEY, name TEXT NOT NULL, breed TEXT, born DATE, weight_kg REAL, owner_id INTEGER REFERENCES owners(owner_id))
CREATE TABLE owners (owner_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT, city TEXT, zip TEXT)
CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, dog_id INTEGER REFERENCES dogs(dog_id), vet_id INTEGER, visited_at TEXT, reason TEXT, cost NUMERIC, meta TEXT)
CREATE TABLE vets (vet_id INTEGER PRIMARY KEY, name TEXT, clinic TEXT, "Years of Exp." INTEGER)
CREATE TABLE frpm (CDSCode TEXT PRIMARY KEY, "School Name" TEXT, "County Name" TEXT, "Free Meal Count (K-12)" REAL, "Enrollment (K-12)" REAL, "Charter Funding Type" TEXT, "Academic Year" TEXT, "IRC" INTEGER)
CREATE TABLE races (raceId INTEGER PRIMARY KEY, year INTEGER, round INTEGER, circuitId INTEGER, name TEXT, date TEXT, time TEXT)
CREATE TABLE lapTimes (raceId INTEGER, driverId INTEGER, lap INTEGER, position INTEGER, time TEXT, milliseconds INTEGER, PRIMARY KEY (raceId, driverId, lap))
CREATE TABLE drivers (driverId INTEGER PRIMARY KEY, forename TEXT, surname TEXT, dob TEXT, nationality TEXT)
CREATE TABLE atom (atom_id TEXT PRIMARY KEY, molecule_id TEXT, element TEXT)
CREATE TABLE molecule (molecule_id TEXT PRIMARY KEY, label TEXT)
""".strip().split("\n")
SQLITE = r"""
SELECT `Free Meal Count (K-12)` / `Enrollment (K-12)` FROM frpm WHERE `County Name` = 'Alameda' ORDER BY (CAST(`Free Meal Count (K-12)` AS REAL) / `Enrollment (K-12)`) DESC LIMIT 1
SELECT T1.name, count(*) FROM dogs AS T1 JOIN visits AS T2 ON T1.dog_id = T2.dog_id GROUP BY T1.dog_id HAVING count(*) >= 2 ORDER BY count(*) DESC
SELECT first_name || ' ' || last_name AS owner FROM owners WHERE owner_id NOT IN (SELECT owner_id FROM dogs WHERE owner_id IS NOT NULL)
SELECT strftime('%Y-%m', visited_at) AS month, COUNT(DISTINCT dog_id) AS dogs, ROUND(SUM(cost), 2) AS revenue FROM visits WHERE visited_at >= date('now', '-12 months') GROUP BY month ORDER BY month
SELECT CAST(SUM(CASE WHEN T2.label = '+' THEN 1 ELSE 0 END) AS REAL) * 100 / COUNT(T1.atom_id) AS pct FROM atom AS T1 INNER JOIN molecule AS T2 ON T1.molecule_id = T2.molecule_id WHERE T1.element = 'cl'
SELECT T2.forename, T2.surname, STRFTIME('%Y', CURRENT_TIMESTAMP) - STRFTIME('%Y', T2.dob) AS age FROM drivers AS T2 WHERE T2.nationality = 'Italian' ORDER BY JULIANDAY(T2.dob) DESC LIMIT 1
SELECT IIF(SUM(CASE WHEN element = 'c' THEN 1 ELSE 0 END) > 10, 'YES', 'NO') FROM atom WHERE molecule_id = 'TR001'
WITH RECURSIVE days(d) AS (SELECT '2024-01-01' UNION ALL SELECT date(d, '+1 day') FROM days WHERE d < '2024-01-31') SELECT d, COUNT(v.visit_id) FROM days LEFT JOIN visits v ON date(v.visited_at) = d GROUP BY d
SELECT dog_id, visited_at, julianday(visited_at) - julianday(LAG(visited_at) OVER (PARTITION BY dog_id ORDER BY visited_at)) AS days_since FROM visits
SELECT json_extract(meta, '$.vaccines[0].name') AS vaccine, meta ->> '$.weight' AS w FROM visits WHERE json_valid(meta)
SELECT v.visit_id, j.value AS vaccine FROM visits v, json_each(v.meta, '$.vaccines') AS j WHERE j.value LIKE 'rab%'
SELECT breed, AVG(weight_kg) AS avg_w, GROUP_CONCAT(name, ', ') AS names FROM dogs WHERE breed IS NOT NULL AND breed <> '' GROUP BY breed HAVING avg_w > 20
SELECT name, RANK() OVER (ORDER BY "Years of Exp." DESC) AS r, NTILE(4) OVER (ORDER BY "Years of Exp.") FROM vets
SELECT * FROM (SELECT l.*, ROW_NUMBER() OVER (PARTITION BY raceId ORDER BY milliseconds) AS rn FROM lapTimes l) WHERE rn = 1
SELECT T1.name, T1.year FROM races AS T1 WHERE T1.raceId IN (SELECT raceId FROM lapTimes GROUP BY raceId ORDER BY MIN(milliseconds) LIMIT 5) AND T1.time IS NOT NULL
SELECT SUBSTR(time, 1, INSTR(time, ':') - 1) * 60 + CAST(SUBSTR(time, INSTR(time, ':') + 1) AS REAL) AS seconds FROM lapTimes WHERE time LIKE '_:%'
SELECT element FROM atom WHERE molecule_id = 'TR004' INTERSECT SELECT element FROM atom WHERE molecule_id = 'TR005'
SELECT printf('%.2f', AVG(cost)) AS avg_cost, TOTAL(cost), MIN(visited_at), MAX(visited_at) FROM visits WHERE reason GLOB '*check*' OR reason LIKE '%vaccin%' ESCAPE '\'
SELECT COALESCE(city, 'unknown') AS city, COUNT(*) FILTER (WHERE email LIKE '%@example.com') AS internal FROM owners GROUP BY 1 ORDER BY 2 DESC, 1 COLLATE NOCASE
SELECT d.name, (SELECT v.reason FROM visits v WHERE v.dog_id = d.dog_id ORDER BY v.visited_at DESC LIMIT 1) AS last_reason FROM dogs d WHERE EXISTS (SELECT 1 FROM visits v WHERE v.dog_id = d.dog_id AND v.cost > 100)
SELECT owner_id, SUM(cost) OVER (PARTITION BY owner_id ORDER BY visited_at ROWS UNBOUNDED PRECEDING) AS running FROM visits NATURAL JOIN dogs
SELECT CASE CAST(strftime('%w', visited_at) AS INTEGER) WHEN 0 THEN 'Sun' WHEN 6 THEN 'Sat' ELSE 'week' END AS d, COUNT(*) FROM visits GROUP BY d
SELECT year, name FROM races WHERE (year, round) IN (SELECT year, MAX(round) FROM races GROUP BY year) ORDER BY year
SELECT UPPER(SUBSTR(TRIM(name), 1, 1)) || LOWER(SUBSTR(TRIM(name), 2)) AS pretty, REPLACE(breed, ' ', '_'), LENGTH(name) FROM dogs WHERE born BETWEEN '2020-01-01' AND '2020-12-31' AND NOT weight_kg BETWEEN 5 AND 10
VALUES (1, 'a'), (2, 'b') UNION ALL SELECT dog_id, name FROM dogs ORDER BY 1 LIMIT 10 OFFSET 5
""".strip().split("\n")
HOTELS = """
CREATE TABLE guests (guest_id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), email VARCHAR(200), country CHAR(2), born DATE, vip TINYINT(1), prefs JSON)
CREATE TABLE hotels (hotel_id INT PRIMARY KEY, name VARCHAR(100), city VARCHAR(100), stars DECIMAL(2,1), opened YEAR)
CREATE TABLE rooms (room_id INT PRIMARY KEY, hotel_id INT, number VARCHAR(10), kind ENUM('single','double','suite'), rate DECIMAL(8,2), FOREIGN KEY (hotel_id) REFERENCES hotels(hotel_id))
CREATE TABLE stays (stay_id BIGINT PRIMARY KEY, guest_id INT, room_id INT, check_in DATETIME, check_out DATETIME, status VARCHAR(20), total DECIMAL(10,2), channel SET('web','phone','agent'), FOREIGN KEY (guest_id) REFERENCES guests(guest_id), FOREIGN KEY (room_id) REFERENCES rooms(room_id))
CREATE TABLE reviews (review_id INT PRIMARY KEY, stay_id BIGINT, score TINYINT, body TEXT, posted TIMESTAMP)
CREATE TABLE `Staff List` (`Staff ID` INT PRIMARY KEY, `Full Name` VARCHAR(100), `Boss` INT, `Salary (EUR)` DECIMAL(10,2), `Dept` VARCHAR(40))
""".strip().split("\n")
MARIADB = """
SELECT h.city, COUNT(*) AS stays, SUM(s.total) AS revenue FROM stays s JOIN rooms r ON r.room_id = s.room_id JOIN hotels h ON h.hotel_id = r.hotel_id WHERE s.check_in >= DATE_SUB(CURDATE(), INTERVAL 30 DAY) GROUP BY h.city ORDER BY revenue DESC
SELECT DATE_FORMAT(check_in, '%Y-%m') AS month, COUNT(DISTINCT guest_id) AS guests FROM stays GROUP BY month ORDER BY month
SELECT guest_id, GROUP_CONCAT(DISTINCT room_id ORDER BY room_id SEPARATOR '; ') AS rooms FROM stays GROUP BY guest_id
SELECT name, JSON_UNQUOTE(JSON_EXTRACT(prefs, '$.pillow')) AS pillow FROM guests WHERE JSON_CONTAINS(prefs, '"quiet"', '$.tags')
SELECT name, JSON_VALUE(prefs, '$.language') FROM guests WHERE JSON_EXTRACT(prefs, '$.pets') = TRUE
WITH ranked AS (SELECT s.*, ROW_NUMBER() OVER (PARTITION BY guest_id ORDER BY check_in DESC) AS rn FROM stays s) SELECT guest_id, stay_id, total FROM ranked WHERE rn = 1
WITH RECURSIVE cal AS (SELECT DATE('2024-01-01') AS d UNION ALL SELECT d + INTERVAL 1 DAY FROM cal WHERE d < '2024-01-31') SELECT cal.d, COUNT(s.stay_id) AS arrivals FROM cal LEFT JOIN stays s ON DATE(s.check_in) = cal.d GROUP BY cal.d
SELECT `Full Name`, `Salary (EUR)` FROM `Staff List` WHERE `Salary (EUR)` > (SELECT AVG(`Salary (EUR)`) FROM `Staff List`)
SELECT IF(vip, 'vip', 'regular') AS kind, IFNULL(country, '??') AS c, COUNT(*) FROM guests GROUP BY kind, c WITH ROLLUP
SELECT TIMESTAMPDIFF(HOUR, check_in, check_out) AS hours, DATEDIFF(check_out, check_in) AS nights FROM stays WHERE check_out IS NOT NULL AND YEAR(check_in) = 2024 AND MONTH(check_in) IN (6, 7, 8)
SELECT r.kind, AVG(s.total / NULLIF(DATEDIFF(s.check_out, s.check_in), 0)) AS adr FROM stays s INNER JOIN rooms r USING (room_id) GROUP BY r.kind HAVING COUNT(*) > 10
SELECT name, MATCH_score FROM (SELECT name, LENGTH(name) - LENGTH(REPLACE(name, 'a', '')) AS MATCH_score FROM guests) AS t ORDER BY MATCH_score DESC LIMIT 5, 10
SELECT EXTRACT(YEAR_MONTH FROM check_in) AS ym, SUM(total) AS t, SUM(SUM(total)) OVER (ORDER BY EXTRACT(YEAR_MONTH FROM check_in)) AS running FROM stays GROUP BY ym
SELECT s.stay_id, s.total, LAG(s.total) OVER (PARTITION BY s.guest_id ORDER BY s.check_in) AS prev FROM stays s
SELECT DAYNAME(check_in) AS d, COUNT(*) FROM stays GROUP BY DAYOFWEEK(check_in), d ORDER BY DAYOFWEEK(check_in)
SELECT h.name FROM hotels h WHERE NOT EXISTS (SELECT 1 FROM rooms r WHERE r.hotel_id = h.hotel_id AND r.kind = 'suite')
SELECT FIND_IN_SET('web', channel) > 0 AS web, COUNT(*) FROM stays GROUP BY web
SELECT CONCAT_WS(' ', UPPER(LEFT(name, 1)), SUBSTRING_INDEX(name, ' ', -1)) AS label, CAST(stars AS UNSIGNED) FROM hotels
SELECT guest_id, SUM(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) / COUNT(*) * 100 AS cancel_pct FROM stays GROUP BY guest_id HAVING cancel_pct > 50
SELECT STR_TO_DATE('01/02/2024', '%d/%m/%Y') AS d, LAST_DAY(NOW()), WEEK(check_in, 1), QUARTER(check_in) FROM stays LIMIT 1
(SELECT 'top' AS side, name, stars FROM hotels ORDER BY stars DESC LIMIT 3) UNION ALL (SELECT 'bottom', name, stars FROM hotels ORDER BY stars LIMIT 3)
SELECT b.`Full Name` AS boss, COUNT(*) AS reports FROM `Staff List` s JOIN `Staff List` b ON s.`Boss` = b.`Staff ID` GROUP BY b.`Staff ID`, b.`Full Name` ORDER BY reports DESC
SELECT ROUND(AVG(score), 1) AS avg_score, STDDEV(score), BIT_COUNT(5), body LIKE '%dirty%' AS dirty FROM reviews WHERE posted BETWEEN '2024-01-01 00:00:00' AND '2024-12-31 23:59:59' GROUP BY dirty
SELECT HOUR(TIMEDIFF(check_out, check_in)) AS h, UNIX_TIMESTAMP(check_in), FROM_UNIXTIME(1700000000), MD5(status), LPAD(stay_id, 10, '0'), FORMAT(total, 2), GREATEST(total, 100), TRUNCATE(total, 0) FROM stays WHERE (guest_id, room_id) IN (SELECT guest_id, room_id FROM stays GROUP BY guest_id, room_id HAVING COUNT(*) > 1)
""".strip().split("\n")
MARIADB_LEFT = r"""
SELECT name FROM guests WHERE email REGEXP '^[a-z]+@example\\.com$' OR name RLIKE 'son$'
""".strip().split("\n")
"""What the language does not have yet."""


@pytest.mark.parametrize(
    ("dialect", "tables", "taken", "left"),
    [("sqlite", KENNELS, SQLITE, []), ("mariadb", HOTELS, MARIADB, MARIADB_LEFT)],
)
def test_what_the_engine_prepares_is_taken(
    dialect: str, tables: list[str], taken: list[str], left: list[str], databases: Databases
) -> None:
    judged_alike(databases(dialect).create(*tables), taken if ALL else taken[:12], [], left)
