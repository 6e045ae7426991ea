"""DuckDB's functions by the types of their arguments, taken from ``duckdb_functions()``; a test asks the engine.

Rows are those of `guided.grammar.sql.query.dialects.postgresql.functions`.  Arguments that must be constants are
literals of a spelling of their own: ``'field`` of a date, ``'part`` of one that DATE_PART gives, ``'format``,
``'regex``, ``'path`` into JSON, ``'flags``, ``'replaced`` (flags of REGEXP_REPLACE), ``'share`` between 0 and 1,
``'shares``, a list of such, ``'digits``.  What gives ``never`` is refused: it would need such a constant.
"""

from __future__ import annotations

__all__ = [
    "AGGREGATES", "COMPUTABLE", "FOLDED", "OF_LISTS", "OF_SHARES", "ORDERED_SETS", "ROW_SETS", "SCALARS", "WINDOWS",
]  # fmt: skip

SCALARS = """
abs: int2>int2; int4>int4; int8>int8; int16>int16; float4>float4; float8>float8; numeric>numeric; numeric2>numeric2;
    numeric3>numeric3; numeric4>numeric4
ceil: float4>float4; float8>float8; numeric>numeric; numeric2>numeric; numeric3>numeric; numeric4>numeric
ceiling: float4>float4; float8>float8; numeric>numeric; numeric2>numeric; numeric3>numeric; numeric4>numeric
floor: float4>float4; float8>float8; numeric>numeric; numeric2>numeric; numeric3>numeric; numeric4>numeric
round trunc: int2>int2; int2 int4>int2; int2 'digits>int2; int4>int4; int4 int4>int4; int4 'digits>int4; int8>int8;
    int8 int4>int8; int8 'digits>int8; int16>int16; int16 int4>int16; int16 'digits>int16; float4>float4; float4
    int4>float4; float4 'digits>float4; float8>float8; float8 int4>float8; float8 'digits>float8; numeric>numeric;
    numeric 'digits>numeric; numeric int4>never; numeric2>numeric; numeric2 'digits>numeric; numeric2 int4>never;
    numeric3>numeric; numeric3 'digits>numeric; numeric3 int4>never; numeric4>numeric; numeric4 'digits>numeric;
    numeric4 int4>never
sign: int2>int2; int4>int2; int8>int2; int16>int2; float4>int2; float8>int2
sqrt: float8>float8
cbrt: float8>float8
power: float8 float8>float8
pow: float8 float8>float8
exp: float8>float8
ln: float8>float8
log: float8>float8; float8 float8>float8
log10: float8>float8
log2: float8>float8
mod: int2 int2>int2; int4 int4>int4; int8 int8>int8; int16 int16>int16; float4 float4>float4; float8 float8>float8;
    numeric any>never; any numeric>never; numeric2 any>never; any numeric2>never; numeric3 any>never; any
    numeric3>never; numeric4 any>never; any numeric4>never
gcd: int8 int8>int8; int16 int16>int16
lcm: int8 int8>int8; int16 int16>int16
pi: >float8
random: >float8
sin: float8>float8
cos: float8>float8
tan: float8>float8
atan: float8>float8
atan2: float8 float8>float8
length: text>int8; anyarray>int8
len: text>int8; anyarray>int8
char_length: text>int8
character_length: text>int8
bit_length: text>int8
lower: text>text
upper: text>text
trim: text>text; text text>text
ltrim: text>text; text text>text
rtrim: text>text; text text>text
substr: text int8 int8>text; text int8>text
left: text int8>text
right: text int8>text
lpad: text int4 text>text
rpad: text int4 text>text
replace: text text text>text
translate: text text text>text
reverse: text>text
repeat: text int8>text; never any>never
strpos: text text>int8
instr: text text>int8
starts_with: text text>bool
ends_with: text text>bool
contains: text text>bool; anyarray anyelement>bool
md5: text>text; bytea>text
ascii: text>int4
chr: int4>text
regexp_full_match: text 'regex>bool
regexp_replace: text 'regex text>text; text 'regex text 'replaced>text
regexp_extract: text 'regex>text; text 'regex 'digits>text
regexp_extract_all: text 'regex>_text
regexp_split_to_array: text 'regex>_text
string_split: text text>_text
string_split_regex: text 'regex>_text
string_to_array: text text>_text
levenshtein: text text>int8
concat: anyscalar...>text
concat_ws: text anyscalar...>text
strftime: date 'format>text; timestamp 'format>text; timestamptz 'format>text
strptime: text 'format>timestamp
try_strptime: text 'format>timestamp
date_trunc: 'field date>timestamp; 'field interval>interval; 'field timestamp>timestamp; 'field
    timestamptz>timestamptz
datetrunc: 'field date>timestamp; 'field interval>interval; 'field timestamp>timestamp; 'field timestamptz>timestamptz
date_part: 'part date>int8; 'part timestamp>int8; 'part timestamptz>int8
datepart: 'part date>int8; 'part timestamp>int8; 'part timestamptz>int8
date_diff: 'field date date>int8; 'field timestamp timestamp>int8; 'field timestamptz timestamptz>int8
datediff: 'field date date>int8; 'field timestamp timestamp>int8; 'field timestamptz timestamptz>int8
age: timestamp>interval; timestamp timestamp>interval; timestamptz>interval; timestamptz timestamptz>interval
now: >timestamptz
today: >date
date: date>date; timestamp>date; timestamptz>date
time_bucket: interval date>date; interval timestamp>timestamp; interval timestamptz>timestamptz
current_date: >date
year: date>int8; interval>int8; timestamp>int8; timestamptz>int8
month: date>int8; interval>int8; timestamp>int8; timestamptz>int8
day: date>int8; interval>int8; timestamp>int8; timestamptz>int8
quarter: date>int8; interval>int8; timestamp>int8; timestamptz>int8
week: date>int8; timestamp>int8; timestamptz>int8
dayofweek: date>int8; timestamp>int8; timestamptz>int8
dayofmonth: date>int8; interval>int8; timestamp>int8; timestamptz>int8
dayofyear: date>int8; timestamp>int8; timestamptz>int8
weekofyear: date>int8; timestamp>int8; timestamptz>int8
hour: date>int8; interval>int8; time>int8; timestamp>int8; timetz>int8; timestamptz>int8
minute: date>int8; interval>int8; time>int8; timestamp>int8; timetz>int8; timestamptz>int8
second: date>int8; interval>int8; time>int8; timestamp>int8; timetz>int8; timestamptz>int8
century: date>int8; interval>int8; timestamp>int8; timestamptz>int8
decade: date>int8; interval>int8; timestamp>int8; timestamptz>int8
epoch: date>float8; interval>float8; time>float8; timestamp>float8; timetz>float8; timestamptz>float8
epoch_ms: date>int8; timestamp>int8; timestamptz>int8
dayname: date>text; timestamp>text; timestamptz>text
monthname: date>text; timestamp>text; timestamptz>text
last_day: date>date; timestamp>date; timestamptz>date
make_date: int8 int8 int8>date
make_time: int8 int8 float8>time
make_timestamp: int8 int8 int8 int8 int8 float8>timestamp
to_days: int4>interval; int8>interval
to_months: int4>interval; int8>interval
to_years: int4>interval; int8>interval
to_hours: int8>interval
to_minutes: int8>interval
to_seconds: float8>interval
to_weeks: int4>interval; int8>interval
to_timestamp: float8>timestamptz
json_extract: jsonb int8>jsonb; jsonb 'path>jsonb
json_extract_string: jsonb int8>text; jsonb 'path>text
json_keys: jsonb>_text; jsonb 'path>_text
list_contains: anyarray anyelement>bool
array_contains: anyarray anyelement>bool
list_has: anyarray anyelement>bool
list_position: anyarray anyelement>int4
array_length: anyarray>int8; anyarray int8>int8
list_sort: anyarray>anyarray
list_distinct: anyarray>anyarray
list_reverse_sort: anyarray>anyarray
uuid: >uuid
gen_random_uuid: >uuid
typeof: any>text
split_part: text text int8>text
array_to_string: _text 'text>text
if: bool anycompatible anycompatible>anycompatible
ifnull: anycompatible anycompatible>anycompatible
json_array_length: jsonb>int16
regexp_matches: text 'regex>bool; text 'regex 'flags>bool
degrees radians asin acos cot sinh cosh tanh even: float8>float8
isnan: float4>bool; float8>bool
isfinite isinf: date>bool; float4>bool; float8>bool; timestamp>bool; timestamptz>bool
factorial: int4>int16
ucase lcase strip_accents nfc_normalize: text>text
ord unicode: text>int4
prefix suffix: text text>bool
damerau_levenshtein editdist3: text text>int8
jaccard jaro_similarity jaro_winkler_similarity: text text>float8
sha1 sha256: text>text; bytea>text
encode: text>bytea
from_base64: text>bytea
to_base64: bytea>text
str_split split: text text>_text
format printf: text anyscalar...>text
isodow isoyear yearweek: date>int8; timestamp>int8; timestamptz>int8
epoch_us epoch_ns: date>int8; interval>int8; time>int8; timetz>int8; timestamp>int8; timestamptz>int8
date_sub datesub: 'field date date>int8; 'field timestamp timestamp>int8; 'field timestamptz timestamptz>int8
list_unique: anyarray>int16
list_has_any list_has_all array_has_any array_has_all: anyarray anyarray>bool
list_intersect array_intersect: anyarray anyarray>anyarray
array_position list_indexof array_indexof: anyarray anyelement>int4
array_has: anyarray anyelement>bool
array_sort array_distinct list_reverse array_reverse: anyarray>anyarray
json_type: jsonb>text; jsonb 'path>text
json_valid: text>bool
json_value json_extract_path_text: jsonb 'path>text
json_extract_path: jsonb 'path>jsonb
json_exists: jsonb 'path>bool
to_json: any>jsonb
json_array: any...>jsonb
json_structure: jsonb>jsonb
json_pretty: jsonb>text
generate_series range: int8>_int8; int8 int8>_int8; int8 int8 int8>_int8; timestamp timestamp interval>_timestamp;
    timestamptz timestamptz interval>_timestamptz
list_slice array_slice: anyarray int8 int8>anyarray
list_concat list_cat array_concat array_cat: anyarray anyarray>anyarray
list_extract list_element array_extract: anyarray int8>anyelement; anyarray never>never
list_resize array_resize: anyarray int8>anyarray; anyarray int8 anyelement>anyarray; never any any>never
list_where array_where: anyarray _bool>anyarray; anyarray never>never
list_select array_select: anyarray _int8>anyarray; anyarray never>never
array_pop_back array_pop_front: anyarray>anyarray
array_unique: anyarray>int16
url_encode: text>text
format_bytes formatreadablesize: int8>text
hex: text>text; int8>text; bytea>text
"""
OF_LISTS = """sum avg min max count first last any_value median mode product stddev_pop stddev_samp var_pop var_samp
string_agg bool_and bool_or entropy approx_count_distinct bit_and bit_or bit_xor mad sem skewness kurtosis"""
"""Aggregates that are functions of a list as well: ``list_sum``."""
AGGREGATES = """
count: any>int8; >int8
sum: numeric>numeric; numeric2>numeric2; numeric3>numeric3; numeric4>numeric4; bool>int16; int2>int16; int4>int16;
    int8>int16; int16>int16; float8>float8
avg: numeric>float8; numeric2>float8; numeric3>float8; numeric4>float8; int2>float8; int4>float8; int8>float8;
    int16>float8; interval>interval; float8>float8; timestamp>timestamp; timestamptz>timestamptz; time>time;
    timetz>timetz
min: anyelement>anyelement
max: anyelement>anyelement
median: int2>float8; int4>float8; int8>float8; int16>float8; numeric>numeric; numeric2>numeric2; numeric3>numeric3;
    numeric4>numeric4; float4>float4; float8>float8; text>text; date>timestamp; timestamp>timestamp;
    timestamptz>timestamptz; time>time; interval>interval; bool>bool
mode: anyelement>anyelement
string_agg: any>text; any 'text>text
listagg: any>text; any 'text>text
group_concat: any>text; any 'text>text
list: anyelement>anyarray
array_agg: anyelement>anyarray
bool_and: bool>bool
bool_or: bool>bool
stddev: float8>float8
stddev_pop: float8>float8
stddev_samp: float8>float8
variance: float8>float8
var_pop: float8>float8
var_samp: float8>float8
corr: float8 float8>float8
covar_pop: float8 float8>float8
covar_samp: float8 float8>float8
regr_slope: float8 float8>float8
regr_intercept: float8 float8>float8
regr_r2: float8 float8>float8
bit_and: int2>int2; int4>int4; int8>int8; int16>int16
bit_or: int2>int2; int4>int4; int8>int8; int16>int16
first: anyelement>anyelement
last: anyelement>anyelement
any_value: anyelement>anyelement
arbitrary: anyelement>anyelement
arg_min: anyelement any>anyelement
arg_max: anyelement any>anyelement
min_by: anyelement any>anyelement
max_by: anyelement any>anyelement
quantile_cont: numeric 'share>numeric; numeric2 'share>numeric2; numeric3 'share>numeric3; numeric4 'share>numeric4;
    int2 'share>float8; int4 'share>float8; int8 'share>float8; int16 'share>float8; float4 'share>float4; float8
    'share>float8; date 'share>timestamp; timestamp 'share>timestamp; time 'share>time; timestamptz
    'share>timestamptz; timetz 'share>timetz
quantile_disc: anyelement 'share>anyelement
approx_count_distinct: any>int8
count_if: bool>int16
entropy: any>float8
regr_count: float8 float8>int8
product geomean geometric_mean kurtosis skewness sem favg fsum: float8>float8
mad: numeric>numeric; numeric2>numeric2; numeric3>numeric3; numeric4>numeric4; float4>float4; float8>float8;
    date>interval; timestamp>interval; timestamptz>interval; time>interval; timetz>interval
bit_xor: int2>int2; int4>int4; int8>int8; int16>int16
quantile: anyelement 'share>anyelement
json_group_array: any>jsonb
regr_avgx regr_avgy regr_sxx regr_syy regr_sxy: float8 float8>float8
"""
OF_SHARES = """
quantile_cont: numeric 'shares>_numeric; int2 'shares>_float8; int4 'shares>_float8; int8 'shares>_float8; int16
    'shares>_float8; float4 'shares>_float4; float8 'shares>_float8; date 'shares>_timestamp; timestamp
    'shares>_timestamp; time 'shares>_time; timestamptz 'shares>_timestamptz; timetz 'shares>_timetz
quantile_disc quantile: anyelement 'shares>anyarray
"""
WINDOWS = """
row_number: >int8
rank: >int8
dense_rank: >int8
percent_rank: >float8
cume_dist: >float8
ntile: int8>int8
lag: anyelement>anyelement; anyelement int8>anyelement; anyelement int8 anyelement>anyelement
lead: anyelement>anyelement; anyelement int8>anyelement; anyelement int8 anyelement>anyelement
first_value: anyelement>anyelement
last_value: anyelement>anyelement
nth_value: anyelement int8>anyelement
"""
ORDERED_SETS = """
percentile_cont: 'share int2>float8; 'share int4>float8; 'share int8>float8; 'share int16>float8; 'share
    numeric>numeric; 'share numeric2>numeric2; 'share numeric3>numeric3; 'share numeric4>numeric4; 'share
    float4>float4; 'share float8>float8; 'share date>timestamp; 'share timestamp>timestamp; 'share
    timestamptz>timestamptz; 'shares int2>_float8; 'shares int4>_float8; 'shares int8>_float8; 'shares int16>_float8;
    'shares numeric>_numeric; 'shares float4>_float4; 'shares float8>_float8; 'shares date>_timestamp; 'shares
    timestamp>_timestamp; 'shares timestamptz>_timestamptz
percentile_disc: 'share anyelement>anyelement; 'shares anyelement>anyarray
mode: anyelement>anyelement
"""
ROW_SETS = """
generate_series range: int8>_int8; int8 int8>_int8; int8 int8 int8>_int8; timestamp timestamp interval>_timestamp;
    timestamptz timestamptz interval>_timestamptz
unnest: anyarray>anyelement
"""
"""Of those that give a list elsewhere, rows are its elements."""
_OF_ARGUMENTS = "abs round trunc ceil ceiling floor date_trunc datetrunc date time_bucket last_day to_days to_months"
_TEXTS = """lower upper ucase lcase trim ltrim rtrim reverse replace concat concat_ws starts_with ends_with contains
prefix suffix md5 sha1 sha256 strip_accents nfc_normalize strftime dayname monthname typeof string_split str_split split
string_to_array regexp_matches regexp_full_match regexp_replace regexp_extract regexp_split_to_array array_to_string
encode to_base64 uuid gen_random_uuid if ifnull list_sort list_distinct list_reverse list_contains list_has
array_contains array_has json_extract json_extract_string json_keys json_type json_valid"""
_FLOATS = """pi random sqrt cbrt power pow exp ln log log2 log10 sin cos tan asin acos atan atan2 cot degrees radians
sinh cosh tanh epoch"""
_SMALL = """sign length len char_length character_length strpos instr ascii unicode ord array_length list_position
array_position json_array_length year month day quarter hour minute second century decade date_part datepart"""
_DAYS = "date_diff datediff date_sub datesub"
COMPUTABLE = {
    **dict.fromkeys(_OF_ARGUMENTS.split(), 0), "to_weeks": -1, "to_hours": 0, "to_minutes": 0, "to_years": -2,
    **dict.fromkeys((*_TEXTS.split(), *_FLOATS.split()), 99), **dict.fromkeys(_SMALL.split(), 9),
    "now": 4, "today": 4, "current_date": 4, "age": 7, **dict.fromkeys(_DAYS.split(), 18),
}  # fmt: skip
"""Functions whose calls never fail where the engine computes constants while it prepares (`TypeSystem.computable`).

A week has 7 days, and a year 12 months.
"""
FAILING = frozenset(["chr", "factorial", "jaccard", "from_base64", "list_resize", "array_resize", "epoch_ns"])
"""Rare functions that fail for some constants (`TypeSystem.failing`)."""
FOLDED = {
    "if": (0,), "substr": (1, 2), "split_part": (0, 1, 2), "array_to_string": (0,), "json_extract": (1,),
    "json_extract_string": (1,),
}  # fmt: skip
"""Of functions the places of the arguments that the engine computes while it prepares (`TypeSystem.folded`)."""
