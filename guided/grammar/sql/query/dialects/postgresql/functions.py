"""PostgreSQL's functions by the types of their arguments: the rows of ``pg_proc`` that were chosen; a test compares.

A row is a name and its signatures: the types of the arguments, ``...`` behind one that may be repeated, and the result.
Source: https://www.postgresql.org/docs/current/functions.html.
"""

from __future__ import annotations

__all__ = ["AGGREGATES", "ORDERED_SETS", "ROW_SETS", "SCALARS", "SPELLED", "WINDOWS"]

SCALARS = """
abs: int8>int8; int2>int2; int4>int4; float4>float4; float8>float8; numeric>numeric
ceil: float8>float8; numeric>numeric
ceiling: float8>float8; numeric>numeric
floor: float8>float8; numeric>numeric
round: float8>float8; numeric>numeric; numeric int4>numeric
trunc: float8>float8; macaddr8>macaddr8; macaddr>macaddr; numeric int4>numeric; numeric>numeric
sign: float8>float8; numeric>numeric
sqrt: float8>float8; numeric>numeric
cbrt: float8>float8
power: float8 float8>float8; numeric numeric>numeric
pow: float8 float8>float8; numeric numeric>numeric
exp: float8>float8; numeric>numeric
ln: float8>float8; numeric>numeric
log: float8>float8; numeric>numeric; numeric numeric>numeric
log10: float8>float8; numeric>numeric
mod: int8 int8>int8; int2 int2>int2; int4 int4>int4; numeric numeric>numeric
div: numeric numeric>numeric
gcd: int8 int8>int8; int4 int4>int4; numeric numeric>numeric
lcm: int8 int8>int8; int4 int4>int4; numeric numeric>numeric
pi: >float8
random: >float8
degrees: float8>float8
radians: float8>float8
sin: float8>float8
cos: float8>float8
tan: float8>float8
cot: float8>float8
asin: float8>float8
acos: float8>float8
atan: float8>float8
atan2: float8 float8>float8
width_bucket: anycompatible anycompatiblearray>int4; float8 float8 float8 int4>int4; numeric numeric numeric
    int4>int4
length: bytea>int4; text>int4; lseg>float8; path>float8; bpchar>int4; bit>int4; tsvector>int4; bytea name>int4
char_length: text>int4; bpchar>int4
character_length: text>int4; bpchar>int4
octet_length: bytea>int4; text>int4; bpchar>int4; bit>int4
bit_length: bytea>int4; text>int4; bit>int4
lower upper: text>text; int4range>int4; int8range>int8; numrange>numeric; daterange>date; tsrange>timestamp;
    tstzrange>timestamptz
isempty lower_inc lower_inf upper_inc upper_inf: int4range>bool; int8range>bool; numrange>bool; daterange>bool;
    tsrange>bool; tstzrange>bool
int4range: int4 int4>int4range; int4 int4 'bounds>int4range
int8range: int8 int8>int8range; int8 int8 'bounds>int8range
numrange: numeric numeric>numrange; numeric numeric 'bounds>numrange
daterange: date date>daterange; date date 'bounds>daterange
tsrange: timestamp timestamp>tsrange; timestamp timestamp 'bounds>tsrange
tstzrange: timestamptz timestamptz>tstzrange; timestamptz timestamptz 'bounds>tstzrange
initcap: text>text
btrim: text>text; bytea bytea>bytea; text text>text
ltrim: text>text; bytea bytea>bytea; text text>text
rtrim: text>text; bytea bytea>bytea; text text>text
substr: bytea int4>bytea; text int4>text; bytea int4 int4>bytea; text int4 int4>text
left: text int4>text
right: text int4>text
lpad: text int4>text; text int4 text>text
rpad: text int4>text; text int4 text>text
replace: text text text>text
translate: text text text>text
reverse: text>text
repeat: text int4>text
split_part: text text int4>text
strpos: text text>int4
starts_with: text text>bool
md5: bytea>text; text>text
ascii: text>int4
chr: 'code>text
to_hex: int8>text; int4>text
regexp_replace: text text text>text; text text text int4>text; text text text text>text; text text text int4
    int4>text; text text text int4 int4 text>text
regexp_match: text text>_text; text text text>_text
regexp_split_to_array: text text>_text; text text text>_text
string_to_array: text text>_text; text text text>_text
array_to_string: anyarray text>text; anyarray text text>text
quote_literal: text>text; anyelement>text
quote_ident: text>text
to_char: int8 text>text; int4 text>text; float4 text>text; float8 text>text; timestamp text>text; timestamptz
    text>text; interval text>text; numeric text>text
to_date: text text>date
to_timestamp: float8>timestamptz; text text>timestamptz
to_number: text text>numeric
date_trunc: text timestamp>timestamp; text timestamptz>timestamptz; text interval>interval; text timestamptz
    text>timestamptz
date_part: text date>float8; text time>float8; text timestamp>float8; text timestamptz>float8; text interval>float8;
    text timetz>float8
age: xid>int4; timestamp>interval; timestamptz>interval; timestamp timestamp>interval; timestamptz
    timestamptz>interval
now: >timestamptz
clock_timestamp: >timestamptz
statement_timestamp: >timestamptz
transaction_timestamp: >timestamptz
make_date: int4 int4 int4>date
make_time: int4 int4 float8>time
make_timestamp: int4 int4 int4 int4 int4 float8>timestamp
justify_days: interval>interval
justify_hours: interval>interval
justify_interval: interval>interval
isfinite: date>bool; timestamp>bool; timestamptz>bool; interval>bool
date: timestamp>date; timestamptz>date
date_bin: interval timestamp timestamp>timestamp; interval timestamptz timestamptz>timestamptz
json_array_length: json>int4
jsonb_array_length: jsonb>int4
json_typeof: json>text
jsonb_typeof: jsonb>text
to_json: anyelement>json
to_jsonb: anyelement>jsonb
array_length: anyarray int4>int4
cardinality: anyarray>int4
array_position: anycompatiblearray anycompatible>int4; anycompatiblearray anycompatible int4>int4
array_append: anycompatiblearray anycompatible>anycompatiblearray
array_prepend: anycompatible anycompatiblearray>anycompatiblearray
array_cat: anycompatiblearray anycompatiblearray>anycompatiblearray
array_remove: anycompatiblearray anycompatible>anycompatiblearray
array_upper: anyarray int4>int4
array_lower: anyarray int4>int4
gen_random_uuid: >uuid
encode: bytea text>text
concat: any...>text
concat_ws: text any...>text
jsonb_build_object: >jsonb; any...>jsonb
json_build_object: >json; any...>json
jsonb_build_array: >jsonb; any...>jsonb
json_build_array: >json; any...>json
json_extract_path_text: json _text...>text
jsonb_extract_path_text: jsonb _text...>text
json_extract_path: json _text...>json
jsonb_extract_path: jsonb _text...>jsonb
jsonb_set: jsonb _text jsonb>jsonb; jsonb _text jsonb bool>jsonb
jsonb_insert: jsonb _text jsonb>jsonb; jsonb _text jsonb bool>jsonb
jsonb_pretty: jsonb>text
jsonb_strip_nulls: jsonb>jsonb
json_strip_nulls: json>json
jsonb_path_query_array: jsonb 'jsonpath>jsonb
jsonb_path_query_first: jsonb 'jsonpath>jsonb
jsonb_path_exists: jsonb 'jsonpath>bool
jsonb_path_match: jsonb 'jsonpath>bool
array_position: anycompatiblearray anycompatible>int4; anycompatiblearray anycompatible int4>int4
array_positions: anycompatiblearray anycompatible>_int4
array_replace: anycompatiblearray anycompatible anycompatible>anycompatiblearray
array_ndims: anyarray>int4
trim_array: anyarray int4>anyarray
decode: text text>bytea
sha224 sha256 sha384 sha512: bytea>bytea
format: text any...>text; text>text
num_nulls num_nonnulls: any...>int4
regexp_count: text text>int4; text text int4>int4; text text int4 text>int4
regexp_like: text text>bool; text text text>bool
regexp_substr: text text>text; text text int4>text; text text int4 int4>text; text text int4 int4 text>text
regexp_instr: text text>int4; text text int4>int4; text text int4 int4>int4; text text int4 int4 int4>int4
make_timestamptz: int4 int4 int4 int4 int4 float8>timestamptz; int4 int4 int4 int4 int4 float8 text>timestamptz
factorial: int8>numeric
scale min_scale: numeric>int4
trim_scale: numeric>numeric
to_tsvector: text>tsvector; json>tsvector; jsonb>tsvector; 'config text>tsvector; 'config json>tsvector;
    'config jsonb>tsvector
to_tsquery: 'query>tsquery; 'config 'query>tsquery
plainto_tsquery phraseto_tsquery websearch_to_tsquery: text>tsquery; 'config text>tsquery
ts_rank ts_rank_cd: tsvector tsquery>float4; tsvector tsquery int4>float4
ts_headline: text tsquery>text; 'config text tsquery>text
jsonb_exists: jsonb text>bool
jsonb_exists_any jsonb_exists_all: jsonb _text>bool
jsonb_object: _text>jsonb; _text _text>jsonb
json_object: _text>json; _text _text>json
array_to_json: anyarray>json; anyarray bool>json
array_dims: anyarray>text
date_add date_subtract: timestamptz interval>timestamptz; timestamptz interval text>timestamptz
quote_nullable: text>text; anyelement>text
sinh cosh tanh asind acosd atand sind cosd tand: float8>float8
"""
AGGREGATES = """
count: >int8; any>int8
sum: int8>numeric; int2>int8; int4>int8; float4>float4; float8>float8; money>money; interval>interval;
    numeric>numeric
avg: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; interval>interval; numeric>numeric
min: int8>int8; int2>int2; int4>int4; text>text; oid>oid; tid>tid; float4>float4; float8>float8; money>money;
    inet>inet; bpchar>bpchar; date>date; time>time; timestamp>timestamp; timestamptz>timestamptz; interval>interval;
    timetz>timetz; numeric>numeric; anyarray>anyarray; pg_lsn>pg_lsn; anyenum>anyenum
max: int8>int8; int2>int2; int4>int4; text>text; oid>oid; tid>tid; float4>float4; float8>float8; money>money;
    inet>inet; bpchar>bpchar; date>date; time>time; timestamp>timestamp; timestamptz>timestamptz; interval>interval;
    timetz>timetz; numeric>numeric; anyarray>anyarray; pg_lsn>pg_lsn; anyenum>anyenum
string_agg: bytea bytea>bytea; text text>text
array_agg: anyarray>anyarray; anynonarray>anyarray
bool_and: bool>bool
bool_or: bool>bool
every: bool>bool
json_agg: anyelement>json
jsonb_agg: anyelement>jsonb
json_object_agg: any any>json
jsonb_object_agg: any any>jsonb
stddev: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
stddev_pop: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
stddev_samp: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
variance: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
var_pop: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
var_samp: int8>numeric; int2>numeric; int4>numeric; float4>float8; float8>float8; numeric>numeric
corr: float8 float8>float8
covar_pop: float8 float8>float8
covar_samp: float8 float8>float8
regr_slope: float8 float8>float8
regr_intercept: float8 float8>float8
regr_r2: float8 float8>float8
regr_count: float8 float8>int8
bit_and: int8>int8; int2>int2; int4>int4; bit>bit
bit_or: int8>int8; int2>int2; int4>int4; bit>bit
bit_xor: int8>int8; int2>int2; int4>int4; bit>bit
any_value: anyelement>anyelement
regr_avgx regr_avgy regr_sxx regr_syy regr_sxy: float8 float8>float8
"""
WINDOWS = """
row_number: >int8
rank: >int8
dense_rank: >int8
percent_rank: >float8
cume_dist: >float8
ntile: int4>int4
lag: anyelement>anyelement; anyelement int4>anyelement; anycompatible int4 anycompatible>anycompatible
lead: anyelement>anyelement; anyelement int4>anyelement; anycompatible int4 anycompatible>anycompatible
first_value: anyelement>anyelement
last_value: anyelement>anyelement
nth_value: anyelement int4>anyelement
"""
ORDERED_SETS = """
percentile_cont: float8 float8>float8; float8 interval>interval; _float8 float8>_float8; _float8 interval>_interval
percentile_disc: float8 anyelement>anyelement; _float8 anyelement>anyarray
mode: anyelement>anyelement
"""
ROW_SETS = """
generate_series: int8 int8>int8; int4 int4>int4; numeric numeric>numeric; int8 int8 int8>int8; int4 int4 int4>int4;
    timestamp timestamp interval>timestamp; timestamptz timestamptz interval>timestamptz; numeric numeric
    numeric>numeric
unnest: anyarray>anyelement
regexp_matches: text text>_text; text text text>_text
regexp_split_to_table: text text>text; text text text>text
jsonb_array_elements: jsonb>jsonb
jsonb_array_elements_text: jsonb>text
json_array_elements: json>json
json_array_elements_text: json>text
json_each: json>text
jsonb_each: jsonb>text
json_each_text: json>text
jsonb_each_text: jsonb>text
jsonb_object_keys: jsonb>text
json_object_keys: json>text
jsonb_path_query: jsonb 'jsonpath>jsonb
string_to_table: text text>text; text text text>text
generate_subscripts: anyarray int4>int4; anyarray int4 bool>int4
"""
"""Functions whose result is rows, which stand in FROM."""
SPELLED = """
overlaps: timetz timetz timetz timetz>bool; time time time time>bool; time interval time interval>bool;
    time time time interval>bool; time interval time time>bool; timestamptz timestamptz timestamptz timestamptz>bool;
    timestamptz interval timestamptz interval>bool; timestamptz timestamptz timestamptz interval>bool;
    timestamptz interval timestamptz timestamptz>bool; timestamp timestamp timestamp timestamp>bool;
    timestamp interval timestamp interval>bool; timestamp timestamp timestamp interval>bool;
    timestamp interval timestamp timestamp>bool
row_to_json: record>json
"""
"""What is no call as others are: the rows beside OVERLAPS, and what has a row as its argument."""
