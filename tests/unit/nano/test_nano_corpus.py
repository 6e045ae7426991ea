"""The training corpus: seeded, valid, disjoint from its held-out twin, and packed without one task seeing another."""

from __future__ import annotations

import itertools
import json
import random
import sys

import jsonschema
import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "examples" / "train_nano"))

import words
from constrained import database_schema
from corpus import tasks
from databases import database, definitions, same_result
from evaluate import examples, fields_right
from everyday_questions import everyday_question, has_chain
from names import RESERVED, column_name
from record_corpus import DRILL, PLAIN, dumped, random_record_case
from sql_corpus import random_schema, rendered, spelled
from sql_questions import random_question
from sql_spelling import Spelling

import guided
from tests.amounts import some
from tests.vocabularies import of_bytes


def test_a_seed_gives_one_stream_and_another_seed_another():
    first, again, other = (list(itertools.islice(tasks(seed), 60)) for seed in (4, 4, 5))
    assert first == again
    assert first != other


@pytest.mark.slow
def test_the_stream_starts_short_and_grows():
    early = [len(t.pairs[0][0]) for t in itertools.islice(tasks(1), 400) if not t.context]
    late = [len(t.pairs[0][0]) for t in itertools.islice(tasks(1), 12_000, 12_400) if not t.context]
    assert sum(early) / len(early) < 0.8 * sum(late) / len(late)


@pytest.mark.parametrize("held_out", [False, True])
def test_every_statement_runs_in_sqlite_and_most_find_rows(held_out: bool):
    rng = random.Random(11)
    found = 0
    for _ in range(some(250)):
        schema = random_schema(rng, words.Lexicon(held_out, 0.3))
        connection = database(schema, 1)
        for _ in range(3):
            _, sql = random_question(rng, schema)
            found += bool(connection.execute(sql).fetchall())
            assert same_result(connection, sql, sql)
            assert not sql.endswith((";", " "))
            assert "  " not in sql
    assert found > 0.9 * 3 * some(250)


@pytest.mark.parametrize("held_out", [False, True])
def test_every_everyday_statement_runs_in_sqlite_and_most_find_rows(held_out: bool):
    rng = random.Random(12)
    found, joins = 0, 0
    for _ in range(some(100)):
        schema = random_schema(rng, words.Lexicon(held_out, 0.3), tables=rng.choice([None, 3]))
        connection = database(schema, 1)
        for _ in range(4):
            _, sql = everyday_question(rng, schema)
            joins += " AS t3 " in sql
            assert has_chain(schema) or " AS t3 " not in sql
            found += bool(connection.execute(sql).fetchall())
            assert "  " not in sql
    assert found > 0.9 * 4 * some(100)
    assert joins > some(10)


def test_every_statement_in_postgresql_s_spelling_runs_there(databases):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    rng = random.Random(16)
    quoted = 0
    for _ in range(10):
        schema = spelled(random_schema(rng, words.TRAINING, tables=3), Spelling.POSTGRESQL)
        engine = sqlalchemy.create_engine(databases("postgresql").create(*definitions(schema)))
        with engine.connect() as connection:
            for form in [everyday_question] * 12 + [random_question] * 12:
                _, sql = form(rng, schema)
                quoted += '"' in sql
                connection.exec_driver_sql("EXPLAIN " + sql.replace("%", "%%"))
        engine.dispose()
    assert quoted > 0


def test_every_statement_is_in_the_language_of_its_database():
    rng = random.Random(14)
    vocabulary = of_bytes()
    for spelling in Spelling:
        for _ in range(some(6, 3)):
            schema = spelled(random_schema(rng, words.TRAINING, tables=3), spelling)
            grammar = guided.sql(database_schema(rendered(schema), spelling.value))
            constraint = guided.compile(grammar, vocabulary)
            for form in [everyday_question] * 10 + [random_question] * 4:
                _, sql = form(rng, schema)
                assert constraint.is_accepting(constraint.advance_bytes(constraint.start, sql.encode())), sql


@pytest.mark.parametrize("name", ["records", "familiar"])
def test_every_record_is_valid_and_in_the_order_of_its_schema(name: str):
    for example in itertools.islice(examples(name, seed=3), 400):
        record = json.loads(example.answer)
        jsonschema.Draft202012Validator(example.schema).validate(record)
        order = list(example.schema["properties"])
        assert sorted(record, key=order.index) == list(record)
        assert example.answer == json.dumps(record, ensure_ascii=False)


def test_every_string_of_a_record_is_in_its_text():
    for example in itertools.islice(examples("records", seed=8), 400):
        text = example.prompt.splitlines()[2]
        for name, value in json.loads(example.answer).items():
            schema = example.schema["properties"][name]
            if isinstance(value, str) and schema.get("format") != "date":
                assert value in text


def test_the_drilled_spread_has_more_of_what_is_hard_and_stays_valid():
    left_out, dates, fields = {}, {}, {}
    for spread in (PLAIN, DRILL):
        rng = random.Random(12)
        cases = [random_record_case(rng, words.Lexicon(False, 0.6), spread=spread) for _ in range(400)]
        for case in cases:
            jsonschema.Draft202012Validator(case.schema).validate(case.record)
            assert json.loads(dumped(case.record)) == case.record
        shown = [dumped(case.schema) for case in cases]
        left_out[spread] = sum(len(case.schema["properties"]) - len(case.record) for case in cases)
        dates[spread] = sum(text.count('"date"') for text in shown)
        fields[spread] = sum(len(case.schema["properties"]) for case in cases)
    assert left_out[DRILL] / fields[DRILL] > 2 * left_out[PLAIN] / fields[PLAIN]
    assert dates[DRILL] / fields[DRILL] > 1.5 * dates[PLAIN] / fields[PLAIN]


def test_training_and_held_out_words_never_meet():
    rng = random.Random(2)
    for base in (words.ATTRIBUTES, words.MEASURES, words.DATES, words.FLAGS):
        train = {
            w for _ in range(400) for w in column_name(rng, base, "snake", words.Lexicon(False, 0.6)).spoken.split()
        }
        held = {w for _ in range(400) for w in column_name(rng, base, "snake", words.HELD_OUT).spoken.split()}
        assert not train & held
        assert all(map(words.is_held_out, held))
        assert not any(map(words.is_held_out, train))
        assert not held & words.FAMILIAR


def test_held_out_schemas_share_only_structural_names_with_training():
    rng = random.Random(3)

    def names(held_out: bool) -> set[str]:
        schemas = [random_schema(rng, words.Lexicon(held_out)) for _ in range(400)]
        return {
            field.id.lower() for schema in schemas for table in schema.relations for field in (table, *table.fields)
        }

    assert names(False) & names(True) <= {"id", "name", "title"}


def test_names_need_no_quotes():
    rng = random.Random(5)
    for _ in range(800):
        for relation in random_schema(rng, words.Lexicon(False, 0.6)).relations:
            for identifier in (relation.id, *(field.id for field in relation.fields)):
                assert identifier.lower() not in RESERVED
                assert identifier.isidentifier()


@pytest.mark.parametrize(
    ("written", "expected", "right"),
    [
        ('{"a": 1}', '{"a": 1}', (1, 1)),
        ('{"a": true}', '{"a": 1}', (0, 1)),
        ('{"a": 2.0}', '{"a": 2}', (1, 1)),
        ('{"a": 1, "z": 0}', '{"a": 1}', (1, 2)),
        ('{"a": {"b": 1, "c": 3}}', '{"a": {"b": 1, "c": 2}}', (1, 2)),
        ('{"a": ["x"]}', '{"a": ["x", "y"]}', (0, 1)),
        ('{"a": 1', '{"a": 1, "b": 2}', (0, 2)),
        ("{}", "{}", (1, 1)),
    ],
)
def test_fields_are_counted_over_both_records(written: str, expected: str, right: tuple[int, int]):
    assert fields_right(written, expected) == right


def test_execution_match_rejects_wrong_rows_order_and_errors():
    schema = next(
        schema
        for schema in (random_schema(random.Random(seed), words.TRAINING, largest=1) for seed in range(100))
        if schema.relations[0].of_kind("int")
    )
    table = schema.relations[0]
    connection = database(schema, 1)
    key = table.fields[0].id
    ordered = f"SELECT {key} FROM {table.id} ORDER BY {key}"
    assert same_result(connection, f"SELECT {key} FROM {table.id} ORDER BY {key} ASC", ordered)
    assert not same_result(connection, f"SELECT {key} FROM {table.id} ORDER BY {key} DESC", ordered)
    assert same_result(connection, f"SELECT {key} FROM {table.id} ORDER BY {key} DESC", f"SELECT {key} FROM {table.id}")
    assert not same_result(connection, f"SELECT COUNT(*) FROM {table.id}", ordered)
    assert not same_result(connection, "SELECT nothing FROM nowhere", ordered)
    assert not same_result(connection, "", ordered)


def test_rows_are_the_same_whatever_the_number_of_processes():
    from chunks import made_ahead

    assert [*made_ahead(hex, range(40, 45), 2)] == [*made_ahead(hex, range(40, 45), 0)] == [*"0x280x290x2a0x2b0x2c"]


def test_packed_pairs_see_their_context_and_themselves_only():
    pytest.importorskip("torch")
    import numpy as np
    from packing import ROW_LENGTH, batches, encode
    from tokenizer import build_tokenizer

    tokenizer = build_tokenizer(0, sample=300)
    stream = list(itertools.islice(tasks(9, held_out=True), 200))
    batch = next(batches(iter(stream), tokenizer, 3))
    mask = batch.mask[:, 0].numpy()
    assert mask.shape == (3, ROW_LENGTH, ROW_LENGTH)
    assert not np.triu(mask, 1).any()
    several = next(task for task in stream if len(task.pairs) > 1)
    lone = next(batches(itertools.chain([several], stream), tokenizer, 1))
    encoded = encode(tokenizer, several)
    assert encoded is not None
    length = len(encoded.tokens)
    for i in range(length):
        visible = np.nonzero(lone.mask[0, 0, i].numpy())[0]
        alone = [j for j in range(i + 1) if encoded.pair[j] in (0, encoded.pair[i])]
        assert visible.tolist() == alone
        assert encoded.position[i] == len(alone) - 1
    flat = lone.tokens.reshape(-1)
    assert (flat[lone.predicting + 1] == lone.targets).all()


def test_the_tokenizer_returns_any_text_and_never_joins_a_name_with_its_surroundings():
    pytest.importorskip("transformers")
    from tokenizer import VOCABULARY_SIZE, build_tokenizer

    tokenizer = build_tokenizer(0, sample=500)
    assert len(tokenizer) == VOCABULARY_SIZE
    vocabulary = tokenizer.get_vocab()
    assert all(f"<0x{byte:02X}>" in vocabulary for byte in range(256))
    for text in ["Zoë 你好 🙂", "a  b\n\tc", 'x_1 = "q\\"', "", " lead", "trail ", "SELECT a FROM b WHERE c = 'd'"]:
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    pieces = tokenizer("gravel_stone").input_ids
    for before, after in [("(", " int"), ("SELECT ", " FROM t"), ('{"', '": 1}'), ("of ", ",")]:
        ids = tokenizer(before + "gravel_stone" + after).input_ids
        assert any(ids[i : i + len(pieces)] == pieces for i in range(len(ids)))
