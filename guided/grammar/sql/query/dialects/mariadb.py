"""The SELECT of MariaDB as of 10.11 (https://mariadb.com/kb/en/select/), and what MySQL 8 has of it."""

from __future__ import annotations

from dataclasses import replace

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.dialects.functions import functions_of
from guided.grammar.sql.query.laws import Laws
from guided.grammar.sql.query.scope import CallKind
from guided.grammar.sql.schema import DatabaseSchema, NameCase

__all__ = ["MARIADB", "mariadb"]

_RESERVED = """accessible add all alter analyze and as asc asensitive before between bigint binary blob both by call
cascade case change char character check collate column condition constraint continue convert create cross cube
current_date current_role current_time current_timestamp current_user cursor databases day_hour day_microsecond
day_minute day_second dec decimal declare default delayed delete delete_domain_id desc describe deterministic distinct
distinctrow div do_domain_ids double drop dual each else elseif enclosed escaped except exists exit explain false fetch
float float4 float8 for force foreign from fulltext grant group having high_priority hour_microsecond hour_minute
hour_second if ignore ignore_domain_ids in index infile inner inout insensitive insert int int1 int2 int3 int4 int8
integer intersect interval into is iterate join key keys kill leading leave left like limit linear lines load localtime
localtimestamp lock long longblob longtext loop low_priority master_demote_to_replica master_demote_to_slave
master_ssl_verify_server_cert match maxvalue mediumblob mediumint mediumtext middleint minute_microsecond minute_second
mod modifies natural no_write_to_binlog not null numeric offset on optimize optionally or order out outer outfile over
page_checksum parse_vcol_expr partition portion precision primary procedure purge range read read_write reads real
recursive ref_system_id references regexp release rename repeat replace require resignal restrict return returning
revoke right rlike rollup row_number rows schemas second_microsecond select sensitive separator set show signal smallint
spatial specific sql sql_big_result sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache sql_small_result
sqlexception sqlstate sqlwarning ssl starting stats_auto_recalc stats_persistent stats_sample_pages straight_join system
table terminated then tinyblob tinyint tinytext to trailing trigger true undo union unique unlock unsigned update usage
use using utc_date utc_time utc_timestamp values varbinary varchar varcharacter varying when where while window with
write xor year_month zerofill"""
"""Words that the server refuses as a name; `_CHARSETS` are such, too, with a line below."""
_CHARSETS = """armscii8 ascii big5 binary cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 cp932 dec8 eucjpms euckr gb2312
gbk geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2 latin5 latin7 macce macroman sjis swe7 tis620 ucs2 ujis
utf16 utf16le utf32 utf8 utf8mb3 utf8mb4"""
_RESERVED_BY_MYSQL = """cume_dist dense_rank empty first_value function generated get grouping groups
io_after_gtids io_before_gtids json_table lag last_value lateral lead manual master_bind nth_value ntile of
optimizer_costs parallel percent_rank qualify rank stored tablesample virtual"""
"""https://dev.mysql.com/doc/refman/8.4/en/keywords.html, those that MariaDB has not."""

_NUMBERS = """abs:1 acos:1 asin:1 atan:1-2 atan2:1-2 bin:1 bit_count:1 ceil:1 ceiling:1 conv:3 cos:1 cot:1 crc32:1
degrees:1 exp:1 floor:1 format:2-3 greatest:2- hex:1 interval:2- least:2- ln:1 log:1-2 log10:1 log2:1 mod:2 oct:1 pi:0
pow:2 power:2 radians:1 rand:0-1 round:1-2 sign:1 sin:1 sqrt:1 tan:1 truncate:2 unhex:1"""
_STRINGS = """ascii:1 bit_length:1 char:1- char_length:1 character_length:1 charset:1 coercibility:1 collation:1
concat:1- concat_ws:2- elt:2- export_set:3-5 field:2- find_in_set:2 from_base64:1 insert:4 instr:2 lcase:1 left:2
length:1 locate:2-3 lower:1 lpad:3 ltrim:1 make_set:2- md5:1 mid:3 octet_length:1 ord:1 quote:1 repeat:2 replace:3
reverse:1 right:2 rpad:3 rtrim:1 sha:1 sha1:1 sha2:2 soundex:1 space:1 strcmp:2 substring_index:3 to_base64:1 ucase:1
upper:1 weight_string:1 inet_aton:1 inet_ntoa:1 is_ipv4:1 is_ipv6:1"""
_DATES = """addtime:2 convert_tz:3 date:1 date_format:2 datediff:2 day:1 dayname:1 dayofmonth:1 dayofweek:1 dayofyear:1
from_days:1 from_unixtime:1-2 hour:1 last_day:1 makedate:2 maketime:3 microsecond:1 minute:1 month:1 monthname:1
period_add:2 period_diff:2 quarter:1 sec_to_time:1 second:1 str_to_date:2 subtime:2 time:1 time_format:2 time_to_sec:1
timediff:2 timestamp:1-2 to_days:1 to_seconds:1 unix_timestamp:0-1 week:1-2 weekday:1 weekofyear:1 year:1
yearweek:1-2"""
_OTHERS = """coalesce:1- connection_id:0 current_user:0 database:0 found_rows:0 if:3 ifnull:2 isnull:1
last_insert_id:0-1 nullif:2 row_count:0 schema:0 session_user:0 system_user:0 user:0 version:0"""
_JSONS = """json_array:0- json_contains:2-3 json_contains_path:3- json_depth:1 json_extract:2- json_keys:1-2
json_length:1 json_merge_patch:2- json_merge_preserve:2- json_overlaps:2 json_pretty:1 json_quote:1 json_remove:2-
json_search:3 json_type:1 json_unquote:1 json_valid:1 json_value:2"""
_MARIADB_ONLY = """add_months:2 chr:1 crc32c:1 json_compact:1 json_detailed:1 json_equals:2 json_exists:2 json_loose:1
json_normalize:1 json_query:2 lengthb:1 natural_sort_key:1 nvl:2 nvl2:3 sys_guid:0"""
"""Functions: https://mariadb.com/kb/en/built-in-functions/.  Left out are those that wait, lock, read files or change
the session, those that check a pattern while it is prepared (``regexp_replace``), and what oneself would not write."""
_AGGREGATES = """avg:1 bit_and:1 bit_or:1 bit_xor:1 count:0- group_concat:1- max:1
min:1 std:1 stddev:1 stddev_pop:1 stddev_samp:1 sum:1 var_pop:1 var_samp:1 variance:1"""
_WINDOWS = """cume_dist:0 dense_rank:0 first_value:1 lag:1-2 last_value:1 lead:1-2 nth_value:2 ntile:1 percent_rank:0
rank:0 row_number:0"""
_ATTACHED = """char current_user if insert interval left mid mod repeat replace right session_user system_user"""
"""Beside aggregates and windows: what the lexer knows by its bracket, and reserved words."""


def _names(text: str) -> frozenset[str]:
    return frozenset(entry.partition(":")[0] for entry in text.split())


_WORDS = _names(_RESERVED) | {f"_{charset}" for charset in _CHARSETS.split()}
_SCALARS = f"{_NUMBERS} {_STRINGS} {_DATES} {_OTHERS} {_JSONS}"
_GROUPS = (
    *functions_of(_AGGREGATES, CallKind.AGGREGATE),
    *functions_of(_WINDOWS, CallKind.WINDOW),
)

MARIADB = Dialect(
    name="mariadb",
    lexis=Lexis(
        reserved=_WORDS,
        quotes=("`",),
        text_quotes=('"',),
        escapes=True,
        keeps_case=True,
        names_by_points=True,
        no_blank_end=True,
        basic_names=True,
        signs=frozenset(["<>", "<=", ">=", "!=", "<=>", "||", "&&", "<<", ">>", ":="]),
    ),
    keywords=_WORDS | {"escape", "sounds"},
    comparisons=("=", "<=>", "<>", "!=", "<", "<=", ">", ">="),
    patterns=(),
    operators=("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"),
    prefixes=("-", "+", "~", "!"),
    constants=(
        *("NULL", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME"),
        *("LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"),
    ),
    collations=(),
    types=(),
    functions=(*functions_of(f"{_SCALARS} {_MARIADB_ONLY}", CallKind.SCALAR), *_GROUPS),
    attached=_names(f"{_ATTACHED} {_AGGREGATES} {_WINDOWS}"),
    laws=Laws(
        one_aggregate=True,
        distinct_columns=True,
        star_first=True,
        comma_apart=True,
        selected_first=True,
        part_windows=False,
        case_folded=True,
        lost_names=frozenset(),
    ),
)


def mariadb(schema: DatabaseSchema) -> Dialect:
    """The dialect of a database of MariaDB or MySQL, with the modes of its session."""
    found, lexis, modes = MARIADB, MARIADB.lexis, schema.modes
    if schema.dialect == "mysql":
        words = lexis.reserved | _names(_RESERVED_BY_MYSQL)
        lexis = replace(lexis, reserved=words)
        functions = (*functions_of(_SCALARS, CallKind.SCALAR), *_GROUPS)
        found = replace(found, name="mysql", keywords=found.keywords | words, functions=functions)
    if "ANSI_QUOTES" in modes:
        lexis = replace(lexis, quotes=("`", '"'), text_quotes=())
    if "NO_BACKSLASH_ESCAPES" in modes:
        lexis = replace(lexis, escapes=False)
    if "IGNORE_SPACE" in modes:
        lexis = replace(lexis, reserved=lexis.reserved | found.attached)
    return replace(found, lexis=replace(lexis, keeps_case=schema.table_names is NameCase.EXACT))
