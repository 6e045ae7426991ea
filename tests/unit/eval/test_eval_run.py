"""The loop, the engines and what becomes of a schema; interruption and resumption in this process."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError
from guided.eval import decoding, evaluator
from guided.eval.decoding import Draw, NextLogits, Stop, decode
from guided.eval.engines.names import PACKAGES, EngineName
from guided.eval.engines.opening import open_engine
from guided.eval.evaluator import Evaluator
from guided.eval.prompts import EXAMPLES, prompt_ids, schema_conversation, schema_text
from guided.eval.records import Outcome, RecordLog
from guided.eval.run import records_of, run_here, tasks_for, tasks_left
from guided.eval.settings import Settings
from guided.eval.time_limit import OutOfTimeError, time_limit
from guided.eval.validation import NoVerdictError, validator_for, why_invalid
from guided.kernels.jit import JUST_IN_TIME
from tests.amounts import ALL

PEERS = [name for name, package in PACKAGES.items() if importlib.util.find_spec(package)]
SETTINGS = Settings(device="cpu", offline=True, max_new_tokens=80)
ANY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture(scope="module")
def ours():
    return Evaluator(SETTINGS, [EngineName.GUIDED, EngineName.NONE])


def matcher_of(name, tokens, schema):
    return open_engine(name, tokens).compile(schema).start()


def run_loop(nano, matcher, schema=ANY, *, most=60, draw=None, seconds=60.0):
    return decode(
        NextLogits(nano),
        prompt_ids(nano, schema, None),
        matcher,
        eos_ids=nano.vocabulary.eos_ids,
        max_new_tokens=most,
        draw=draw or Draw(),
        seconds=seconds,
    )


def test_the_loop_writes_what_generate_writes(nano, tokens, rows):
    """Our engine in the common loop is `guided.generate`: the same tokens, greedily."""
    for row in rows[: 3 if ALL else 1]:
        prompt = nano.tokenizer.decode(prompt_ids(nano, row.schema, None))
        made = run_loop(nano, matcher_of(EngineName.GUIDED, tokens, row.schema), row.schema)
        expected = guided.generate(nano, prompt, guided.json_schema(row.schema), max_new_tokens=60, do_sample=False)
        assert made.token_ids == expected.token_ids
        assert made.stop is Stop.END
        assert made.steps == len(made.token_ids) + 1


def test_without_an_engine_it_is_the_model_alone(nano, tokens):
    made = run_loop(nano, matcher_of(EngineName.NONE, tokens, ANY), most=12)
    prompt = torch.tensor([prompt_ids(nano, ANY, None)])
    out = nano.model.generate(prompt, max_new_tokens=12, do_sample=False)[0, prompt.shape[1] :].tolist()
    assert list(made.token_ids) == [token for token in out if token not in nano.vocabulary.eos_ids]


def test_draws_are_functions_of_the_seed(nano, tokens):
    def drawn(seed):
        return run_loop(nano, matcher_of(EngineName.GUIDED, tokens, ANY), draw=Draw(6.0, seed)).token_ids

    first = drawn(1)
    assert first == drawn(1)
    assert any(drawn(seed) != first for seed in (2, 3, 0))


@pytest.mark.parametrize("architecture", ["t5", "no cache"])
def test_other_kinds_of_models(nano, tokens, architecture):
    """An encoder-decoder, and a model that hands no cache back: the loop against `generate`."""
    from guided.hf import LoadedModel

    torch.manual_seed(0)
    if architecture == "t5":
        from transformers import T5Config, T5ForConditionalGeneration

        config = T5Config(
            vocab_size=tokens.width, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
            decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        )  # fmt: skip
        model = T5ForConditionalGeneration(config).eval()
        expected = model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=8, do_sample=False)[0, 1:]
    else:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(vocab_size=tokens.width, n_embd=16, n_layer=1, n_head=2, n_positions=64, eos_token_id=1)
        model = GPT2LMHeadModel(config).eval()
        expected = model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=8, do_sample=False)[0, 3:]
        inner = model.forward

        def forward(*args, **kwargs):
            out = inner(*args, **{**kwargs, "use_cache": False})
            assert out.past_key_values is None
            return out

        model.forward = forward
    loaded = LoadedModel("tiny", model, nano.tokenizer)
    made = decode(
        NextLogits(loaded), [5, 6, 7], matcher_of(EngineName.NONE, tokens, ANY),
        eos_ids=(1,), max_new_tokens=8, draw=Draw(), seconds=60.0,
    )  # fmt: skip
    ends = expected.tolist()
    assert list(made.token_ids) == (ends[: ends.index(1)] if 1 in ends else ends)


class Scripted:
    """A matcher that allows one token at a time, and at the end does ``last``."""

    def __init__(self, token, count, last):
        self.token, self.left, self.last = token, count, last

    def fill_mask(self, row, left):
        row[:] = 0
        if self.left == 0 and self.last is not None:
            if isinstance(self.last, BaseException):
                raise self.last
            return
        row[self.token >> 5] = np.uint32(1 << (self.token & 31))

    def advance(self, token):
        assert token == self.token
        self.left -= 1


class PanicError(BaseException):
    """Stands for a panic of a Rust engine, which is no `Exception`."""


def test_how_a_text_may_stop(nano):
    dead = run_loop(nano, Scripted(40, 3, "nothing"))
    assert (dead.stop, dead.token_ids) == (Stop.NO_TOKEN, (40, 40, 40))
    raised = run_loop(nano, Scripted(40, 2, PanicError("index out\nof bounds")))
    assert (raised.stop, raised.reason) == (Stop.ERROR, "PanicError: index out of bounds")
    assert raised.token_ids == (40, 40)
    budget = run_loop(nano, Scripted(40, 2, None), most=5)
    assert (budget.stop, budget.steps) == (Stop.BUDGET, 5)
    late = run_loop(nano, Scripted(40, 2, None), seconds=0.0)
    assert (late.stop, late.first_token_at) == (Stop.TIME, None)
    with pytest.raises(KeyboardInterrupt):
        run_loop(nano, Scripted(40, 2, KeyboardInterrupt()))


@pytest.mark.parametrize("name", [EngineName.GUIDED, *PEERS])
def test_every_engine_writes_valid_outputs(nano, tokens, name):
    """A schema that all of them take, of finitely many texts: with a free integer a model may write digits for ever."""
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "kind": {"enum": ["a", "bc"]}, "n": {"enum": [3, 14]}},
        "required": ["ok", "kind", "n"],
        "additionalProperties": False,
    }
    compiled = open_engine(name, tokens).compile(schema)
    made = run_loop(nano, compiled.start(), schema)
    text = b"".join(nano.vocabulary.token_bytes(token) for token in made.token_ids).decode()
    assert made.stop is Stop.END
    assert why_invalid(text, schema) is None
    assert made.mask_seconds > 0
    again = run_loop(nano, compiled.start(), schema)
    assert again.token_ids == made.token_ids, "start() begins a text anew"
    row = np.full(tokens.n_words, 0xFFFFFFFF, np.uint32)
    compiled.start().fill_mask(row, None)
    allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    assert allowed.max() < tokens.width
    assert nano.vocabulary.eos_ids[0] not in allowed


@pytest.mark.parametrize("name", PEERS)
def test_a_missing_peer_is_named(monkeypatch, tokens, name):
    monkeypatch.setitem(__import__("sys").modules, PACKAGES[name], None)
    words = rf"{name.value} needs the package {PACKAGES[name]}.*guided-decoding\[bench\]"
    with pytest.raises(GuidedError, match=words):
        open_engine(name, tokens)


def test_evaluate_every_schema(ours, rows):
    records = {row.id: ours.evaluate(row, EngineName.GUIDED) for row in rows}
    assert records.pop("hard---never").outcome is Outcome.REFUSED
    for row in rows[:4]:
        record = records[row.id]
        assert record.outcome is Outcome.VALID, record
        assert why_invalid(record.text, row.schema) is None
        assert 0 < record.gct_s < record.ttft_s < 30
        assert 0 < record.mask_ms <= record.tpot_ms
        assert 0 < record.n_tokens <= SETTINGS.max_new_tokens
        assert record.n_prompt > 5
    assert ours.evaluate(rows[1], EngineName.GUIDED).text == records[rows[1].id].text


def test_the_model_alone_is_judged_too(ours, rows):
    outcomes = {ours.evaluate(row, EngineName.NONE).outcome for row in rows}
    assert outcomes <= {Outcome.VALID, Outcome.INVALID, Outcome.UNFINISHED}
    assert ours.evaluate(rows[-1], EngineName.NONE).outcome is not Outcome.VALID, "nothing is valid against it"


def replaced(ours, monkeypatch, compile_schema):
    class Fake:
        def compile(self, schema):
            return compile_schema(schema)

    monkeypatch.setitem(ours._engines, EngineName.GUIDED, Fake())


class Fresh:
    def __init__(self, make):
        self.start = make


@pytest.mark.parametrize(
    ("make", "outcome", "reason"),
    [
        (lambda: Scripted(40, 2, "nothing"), Outcome.DEAD_END, "no token and no end"),
        (lambda: Scripted(40, 2, ValueError("oh")), Outcome.CRASHED, "ValueError: oh"),
        (lambda: Scripted(40, 2, None), Outcome.UNFINISHED, "budget"),
        (lambda: Scripted(1, 2, None), Outcome.INVALID, "not JSON"),
    ],
)
def test_what_an_engine_does_wrong_is_recorded(ours, rows, monkeypatch, make, outcome, reason):
    replaced(ours, monkeypatch, lambda schema: Fresh(make))
    record = ours.evaluate(rows[0], EngineName.GUIDED)
    assert record.outcome is outcome
    assert reason in record.reason


def test_refusals_and_slow_compilers_are_recorded(ours, rows, monkeypatch):
    def refuse(schema):
        raise PanicError("unsupported:\n oneOf")

    replaced(ours, monkeypatch, refuse)
    record = ours.evaluate(rows[0], EngineName.GUIDED)
    assert (record.outcome, record.reason) == (Outcome.REFUSED, "PanicError: unsupported: oneOf")

    def dawdle(schema):
        raise OutOfTimeError

    replaced(ours, monkeypatch, dawdle)
    record = ours.evaluate(rows[0], EngineName.GUIDED)
    assert record.outcome is Outcome.COMPILE_TIME
    assert record.gct_s is not None

    def interrupt(schema):
        raise KeyboardInterrupt

    replaced(ours, monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        ours.evaluate(rows[0], EngineName.GUIDED)


def test_what_the_model_raises_is_recorded(ours, rows, monkeypatch):
    def burst(*args, **kwargs):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(evaluator, "decode", burst)
    record = ours.evaluate(rows[0], EngineName.GUIDED)
    assert (record.outcome, record.reason) == (Outcome.CRASHED, "the model raised RuntimeError: out of memory")


def test_schemas_that_nobody_can_judge_are_skipped(ours, rows):
    broken = type(rows[0])("x---1", "x", {"type": "nonsense"})
    record = ours.evaluate(broken, EngineName.GUIDED)
    assert record.outcome is Outcome.SKIPPED
    assert "not a schema of its draft" in record.reason
    remote = type(rows[0])("x---2", "x", {"anyOf": [{"$ref": "https://example.com/none.json"}]})
    assert ours.evaluate(remote, EngineName.NONE).outcome in (Outcome.SKIPPED, Outcome.INVALID, Outcome.UNFINISHED)


def test_a_prompt_that_does_not_fit(ours, rows, nano, monkeypatch):
    huge = {"type": "object", "properties": {f"property number {n}": {"type": "string"} for n in range(900)}}
    assert len(prompt_ids(nano, huge, None)) > 1024
    assert len(prompt_ids(nano, huge, 900)) < 100, "guided-nano is asked without the schema instead"
    monkeypatch.setattr(ours, "_room", 30)
    record = ours.evaluate(rows[1], EngineName.GUIDED)
    assert record.outcome is Outcome.SKIPPED
    assert "room for 30" in record.reason


def test_interrupted_and_resumed_in_the_middle(tmp_path, rows, monkeypatch):
    """Whatever call of the loop is interrupted: what was done is kept, the rest follows, nothing is done twice."""
    engines = [EngineName.GUIDED, EngineName.NONE]
    tasks = tasks_for(rows[:3], engines)
    inner = evaluator.decode
    calls = 0

    def interrupted_third_call(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 5:  # two of the five are the warm-up
            raise KeyboardInterrupt
        return inner(*args, **kwargs)

    path = tmp_path / "results.jsonl"
    monkeypatch.setattr(evaluator, "decode", interrupted_third_call)
    with RecordLog(path) as log, pytest.raises(KeyboardInterrupt):
        run_here(tasks, SETTINGS, log)
    monkeypatch.setattr(evaluator, "decode", inner)
    before = path.read_text()
    assert before.count("\n") == 2
    seen = []
    with RecordLog(path) as log:
        assert len(tasks_left(tasks, SETTINGS, log)) == len(tasks) - 2
        run_here(tasks, SETTINGS, log, on_record=seen.append)
        assert len(seen) == len(tasks) - 2
        assert len(records_of(tasks, SETTINGS, log)) == len(tasks)
    text = path.read_text()
    assert text.startswith(before)
    assert text.count("\n") == len(tasks)
    with RecordLog(path) as log:
        monkeypatch.setattr(evaluator, "Evaluator", None)  # nothing is left, so no model is even loaded
        run_here(tasks, SETTINGS, log)


def test_engines_take_turns(rows):
    engines = [EngineName.GUIDED, EngineName.XGRAMMAR, EngineName.NONE]
    tasks = tasks_for(rows, engines)
    assert len({(row.id, engine) for row, engine in tasks}) == len(rows) * 3
    assert [engine for _, engine in tasks[:6]] == [*engines, engines[1], engines[2], engines[0]]


def test_results_of_other_settings_are_not_mixed_in(tmp_path, rows, ours):
    tasks = tasks_for(rows[:1], [EngineName.GUIDED])
    with RecordLog(tmp_path / "r.jsonl") as log:
        log.append(ours.evaluate(rows[0], EngineName.GUIDED))
        assert len(records_of(tasks, SETTINGS, log)) == 1
        assert records_of(tasks, Settings(), log) == []


def forever(call):
    while True:
        call(10)


def test_a_time_limit_interrupts_python():
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        forever(int)
    with time_limit(5):
        pass


@pytest.mark.skipif(not JUST_IN_TIME, reason="kernels are in the library, so none is compiled")
def test_a_time_limit_does_not_count_the_compiling_of_kernels():
    """On a machine that has no kernels yet, the first texts would be out of time, and the kernels half made."""
    import numba

    @numba.njit
    def kernel(value):
        total = 0
        for index in range(value):
            total += index % 7
        return total

    began = time.perf_counter()
    with time_limit(0.02):
        assert kernel(10) == 24
    assert time.perf_counter() - began > 0.02, "nothing was compiled"
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        forever(kernel)


def test_the_examples_of_the_prompt_are_valid():
    for schema, value in EXAMPLES:
        assert validator_for(schema).is_valid(value)
    messages = schema_conversation({"type": "null"})
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert schema_text({"type": "null"}).endswith('Schema: {"type": "null"}\nJSON:')


def test_prompts_of_chat_models(nano):
    """A template with no place for a system's message gets it with the first question."""
    from guided.hf import LoadedModel

    class Templated:
        chat_template = "yes"

        def apply_chat_template(self, messages, add_generation_prompt, tokenize):
            if messages[0]["role"] == "system":
                raise ValueError("System role not supported")
            return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"

        def __call__(self, text, add_special_tokens):
            assert not add_special_tokens
            return {"input_ids": list(text.encode())}

    text = bytes(prompt_ids(LoadedModel("chat", nano.model, Templated()), {"type": "null"}, None)).decode()
    assert text.startswith("<user>You need to generate")
    assert text.endswith('<user>{"type": "null"}<assistant>')
    short = bytes(prompt_ids(LoadedModel("chat", nano.model, Templated()), {"type": "null"}, 200)).decode()
    assert (
        short
        == '<user>You need to generate a JSON object that matches the schema below.\n\n{"type": "null"}<assistant>'
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"name": "x"}', None),
        ("{}", "'name' is a required property (at $, required)"),
        ('{"name": NaN}', "not JSON: NaN is no JSON"),
        ("```json\n{}```", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_validation(text, fault):
    found = why_invalid(text, ANY)
    assert found is None if fault is None else found.startswith(fault)


def test_numbers_that_no_float_holds_have_no_verdict():
    with pytest.raises(NoVerdictError, match="no float holds 1e999"):
        why_invalid('{"name": 1e999}', ANY)
    assert why_invalid('{"name": "x", "n": 1e308}', ANY) is None


def test_engine_errors_are_one_line():
    assert decoding.engine_error(ValueError("a\n\n  b")) == "ValueError: a b"
    assert len(decoding.engine_error(ValueError("x" * 9999))) == decoding.MAX_REASON
