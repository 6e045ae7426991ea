"""`guided eval steering`: prompts nobody trained on, judges that count, texts, intervals, and runs that go on."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from guided.errors import UnsupportedError
from guided.eval.steering import run as run_module
from guided.eval.steering.evaluator import SteeringEvaluator
from guided.eval.steering.judges import JUDGES, named, praise, repetition, rudeness
from guided.eval.steering.measures import Verdict, estimate, measure
from guided.eval.steering.methods import METHODS
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import Split, TaskName, prompts_for
from guided.eval.steering.results import Ending, SteeringLog, SteeringRecord, SteeringSettings, key_of
from guided.eval.steering.run import BATCH, batches_for, records_of, run_here, tasks_left
from guided.eval.steering.writing import Choice, surprise, write
from guided.lm import TableModel, next_logits
from guided.nano.experts.words import COMPLAINTS, PRAISE, RUDE
from guided.nano.experts.world import ATTRIBUTES, KNOWN, UNKNOWN, fact
from guided.steer import GRAD, Momentum, TransitionGraph
from tests.amounts import some
from tests.conftest import ROOT

SETTINGS = SteeringSettings(device="cpu", offline=True)
QUICK = (MethodName.DEXPERTS, MethodName.CONTEXT, MethodName.GRAD)


@pytest.fixture(scope="module")
def evaluator():
    return SteeringEvaluator(SETTINGS)


def all_prompts(split=Split.HELD_OUT):
    return [prompt for task in TaskName for prompt in prompts_for(task, None, split)]


# --- prompts ---


def test_prompts_are_many_distinct_and_always_the_same():
    for task in TaskName:
        prompts = prompts_for(task)
        assert len(prompts) >= 100
        assert len({prompt.id for prompt in prompts}) == len(prompts)
        assert prompts_for(task, 7) == prompts[:7]


def test_no_hotel_is_both_in_the_tuning_prompts_and_in_the_held_out_ones():
    hotels = [{prompt.id.split("/")[0] for prompt in all_prompts(split)} for split in Split]
    assert hotels[0] and hotels[1]
    assert not hotels[0] & hotels[1]


def test_no_training_text_begins_like_a_held_out_prompt():
    sys.path.insert(0, str(ROOT / "examples" / "train_experts"))
    from review_corpus import stream

    texts = [text.text for text in itertools.islice(stream(1), some(40_000))]
    beginnings = {
        text[:end] for text in texts for end in (text.find("Answer:") + 7, text.find(".", text.find("\n")) + 1)
    }
    held_out = [prompt for split in Split for prompt in all_prompts(split)]
    assert not [prompt.text for prompt in held_out if prompt.text in beginnings]
    # The test would see it: the same check with a wording or an opening that training has.
    assert (
        "Question: Where is Alba?\nAnswer:" in beginnings or "Question: Which city is Alba in?\nAnswer:" in beginnings
    )
    assert not any(hotel in text for text in texts for hotel in UNKNOWN)


def test_a_context_contradicts_and_a_fact_is_never_the_widespread_belief():
    for prompt in prompts_for(TaskName.CONTEXT):
        hotel, name, value = prompt.id.split("/")
        (attribute,) = [each for each in ATTRIBUTES if each.name == name]
        assert prompt.text.endswith(prompt.variants["without"])
        assert value in prompt.text
        assert value not in (fact(hotel, attribute), attribute.values[0])
    assert all(fact(hotel, attribute) != attribute.values[0] for hotel in KNOWN for attribute in ATTRIBUTES)


# --- judges ---


@given(st.lists(st.sampled_from((*PRAISE, *COMPLAINTS, "not", "blue", "the")), max_size=12))
def test_praise_counts_words_that_a_negation_turns_round(words):
    score = [0, 0]
    for number, word in enumerate(words):
        if word in PRAISE or word in COMPLAINTS:
            turned = number > 0 and words[number - 1] == "not"
            score[(word in PRAISE) == turned] += 1
    expected = score[0] / sum(score) if sum(score) else 0.5
    assert praise(" ".join(words)) == expected


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_repetition_is_the_share_of_runs_seen_before(words):
    seen, again = set(), 0
    runs = [tuple(words[n : n + 4]) for n in range(len(words) - 3)]
    for run in runs:
        again += run in seen
        seen.add(run)
    assert repetition(" ".join(words)) == pytest.approx(again / len(runs) if runs else 0.0)


def test_answers_are_read_from_the_first_sentence_only():
    assert named(" Alba is in Oslo. Or Porto.", "Oslo Porto") == "Oslo"
    assert named(" Alba is in. Oslo", "Oslo Porto") is None
    assert named(" Nosloo", "oslo") is None
    assert rudeness("") == 0.0
    assert rudeness(f"The {RUDE[0]} bed was clean") == 1.0


def test_every_judge_tells_the_best_text_from_the_worst():
    (asked,) = prompts_for(TaskName.INSTRUCTED, 1)
    rude, civil = f"The {RUDE[0]} bed was clean.", "The bed was clean."
    best, worst = (rude, civil) if asked.about["asked"] == "rude" else (civil, rude)
    assert JUDGES[TaskName.INSTRUCTED].of(asked, best) == 1.0
    assert JUDGES[TaskName.INSTRUCTED].of(asked, worst) == 0.0
    (words,) = prompts_for(TaskName.WORDS, 1)
    one, other = words.about["words"].split()
    assert [JUDGES[TaskName.WORDS].of(words, text) for text in ("", f"The {one}", f"{other} {one}")] == [0.0, 0.5, 1.0]
    assert all(METHODS[name].task in JUDGES for name in MethodName)


# --- writing ---


def test_greedy_texts_are_the_argmax_and_end_or_do_not():
    model = TableModel.random(3, width=5)
    prompts = [(0,), (1, 2), (3,)]
    texts, sequences = write(model, prompts, [0, 0, 0], Choice(6, sample=False))
    endless, _ = write(model, prompts, [0, 0, 0], Choice(6, sample=False, stop=False))
    (end,) = model.eos_ids
    for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
        for at, token in enumerate(text):
            assert token == int(next_logits(model, [prompt + text[:at]])[0].argmax())
        assert end not in text[:-1]
        assert len(text) == 6 or text[-1] == end
        assert sequences.tokens(row) == prompt + text
    assert all(len(text) == 6 and end not in text for text in endless)


def test_a_draw_depends_on_its_own_seed_and_prompt_only():
    model = TableModel.random(4, width=5)
    prompts, seeds = [(0,), (1,), (0,), (2, 2)], [1, 2, 3, 4]
    choice = Choice(8, sample=True)
    together, _ = write(model, prompts, seeds, choice)
    for prompt, seed, text in zip(prompts, seeds, together, strict=True):
        assert write(model, [prompt], [seed], choice)[0] == [text]
    first = [write(model, [(0,)], [seed], Choice(1, sample=True))[0][0][0] for seed in range(2000)]
    expected = torch.softmax(next_logits(model, [(0,)])[0].double(), -1).numpy()
    assert np.abs(np.bincount(first, minlength=5) / 2000 - expected).max() < 0.04


def test_surprise_is_the_mean_negative_log_probability():
    model = TableModel.random(5, width=4)
    prompts, texts = [(0,), (1, 1), (2,)], [(1, 2, 0), (3,), ()]
    found = surprise(model, prompts, texts)
    for prompt, text, value in zip(prompts, texts, found, strict=True):
        logs = [
            float(torch.log_softmax(next_logits(model, [prompt + text[:at]])[0].double(), -1)[token])
            for at, token in enumerate(text)
        ]
        assert value == pytest.approx(-sum(logs) / len(logs) if logs else 0.0)


# --- intervals ---


@settings(max_examples=20)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40))
def test_an_interval_is_near_the_normal_one_and_holds_the_mean(values):
    found = estimate(values)
    assert found.low <= found.mean + 1e-9 and found.mean - 1e-9 <= found.high
    assert found == estimate(values)
    error = np.std(values) / math.sqrt(len(values))
    # By resampling, of as few as two values, it is narrower than the normal one by up to a third.
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.35, abs=0.02)


def record(method, base, steered, number=0):
    task = METHODS[method].task.value
    return SteeringRecord(
        f"{method.value}{number}", task, str(number), method.value, Ending.WRITTEN, measure="x", base=base,
        steered=steered, aside={"tokens": [1.0, 2.0]}, base_surprise=0.5, steered_surprise=1.0,
    )  # fmt: skip


def test_what_a_verdict_means():
    drawn = random.Random(0)
    noise = [drawn.random() / 10 for _ in range(30)]
    up = [record(MethodName.DEXPERTS, 0.2 + x, 0.7, n) for n, x in enumerate(noise)]
    down = [record(MethodName.RAD, 0.7 + x, 0.2, n) for n, x in enumerate(noise)]
    fewer = [record(MethodName.MOMENTUM, 0.7 + x, 0.2, n) for n, x in enumerate(noise)]
    none = [record(MethodName.ARM, 0.5 + (-1) ** n * x, 0.5, n) for n, x in enumerate(noise)]
    refused = [replace(record(MethodName.LOL, 0, 0), ending=Ending.REFUSED, reason="why")]
    found = {one.method: one for one in measure([*none, *refused, *fewer, *up, *down])}
    assert found["dexperts"].verdict == Verdict.MOVES
    assert found["rad"].verdict == Verdict.WORSE
    assert found["momentum"].verdict == Verdict.MOVES and not found["momentum"].higher
    assert found["arm"].verdict == Verdict.UNCLEAR
    assert (found["lol"].verdict, found["lol"].reason, found["lol"].not_written) == (Verdict.NONE, "why", 1)
    assert found["dexperts"].steered_perplexity == pytest.approx(math.e)
    assert found["dexperts"].aside == {"tokens": [1.0, 2.0]}
    assert list(found) == [name.value for name in MethodName if name.value in found]


# --- runs ---


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_and_says_the_same(evaluator, monkeypatch, tmp_path):
    monkeypatch.setattr("guided.eval.steering.evaluator.SteeringEvaluator", lambda settings, on_stage=None: evaluator)
    batches = batches_for(QUICK, 4, SETTINGS)
    with SteeringLog(tmp_path / "whole.jsonl") as whole:
        run_here(batches, SETTINGS, whole)
        expected = records_of(batches, SETTINGS, whole)
    assert len(expected) == 12 and all(one.ending is Ending.WRITTEN for one in expected)

    path = tmp_path / "parts.jsonl"
    with SteeringLog(path) as log:
        count = iter(range(6))

        def stop(_):
            if next(count) == 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_here(batches, SETTINGS, log, on_record=stop)
    path.write_bytes(path.read_bytes() + b'{"key": "cut o')
    with SteeringLog(path) as log:
        assert [len(batch.prompts) for batch in tasks_left(batches, SETTINGS, log)] == [2, 4]
        run_here(batches, SETTINGS, log)
        found = records_of(batches, SETTINGS, log)
        assert len(log.records) == 12
    assert [(one.method, one.id, one.base_text, one.steered_text) for one in found] == [
        (one.method, one.id, one.base_text, one.steered_text) for one in expected
    ]


def test_a_key_differs_whenever_a_result_might(monkeypatch):
    (prompt,) = prompts_for(TaskName.REVIEW, 1)
    base = key_of(prompt, MethodName.RAD, SETTINGS)
    others = {
        key_of(prompt, MethodName.ARGS, SETTINGS),
        key_of(replace(prompt, text=prompt.text + " "), MethodName.RAD, SETTINGS),
        key_of(prompt, MethodName.RAD, replace(SETTINGS, seed=1)),
        key_of(prompt, MethodName.RAD, replace(SETTINGS, split=Split.TUNING)),
    }
    monkeypatch.setitem(METHODS, MethodName.RAD, replace(METHODS[MethodName.RAD], strength="beta 99"))
    others.add(key_of(prompt, MethodName.RAD, SETTINGS))
    assert len(others | {base}) == 6
    monkeypatch.undo()
    assert key_of(prompt, MethodName.RAD, replace(SETTINGS, offline=False)) == base


def test_a_larger_limit_keeps_its_batches():
    small, large = batches_for([MethodName.RAD], BATCH, SETTINGS), batches_for([MethodName.RAD], BATCH + 5, SETTINGS)
    assert [len(batch.prompts) for batch in large] == [BATCH, 5]
    assert large[0] == small[0]


def test_what_raises_is_a_record_and_not_the_end_of_the_run(evaluator, monkeypatch):
    def broken(kit, prompts, seeds, choice):
        raise ValueError("broken\non purpose")

    monkeypatch.setitem(METHODS, MethodName.RAD, replace(METHODS[MethodName.RAD], write=broken))
    (one,) = evaluator.evaluate(prompts_for(TaskName.REVIEW, 1), MethodName.RAD)
    assert one.ending is Ending.FAILED and "broken on purpose" in one.reason and one.base is None
    monkeypatch.undo()
    other = SteeringEvaluator(replace(SETTINGS, model="reviews-amateur"))
    with pytest.raises(UnsupportedError, match="retrieval heads"):
        other.kit.needs_own("the list of retrieval heads")
    (refused,) = other.evaluate(prompts_for(TaskName.CONTEXT, 1), MethodName.DECORE)
    assert refused.ending is Ending.REFUSED and "without --model" in refused.reason
    (fine,) = other.evaluate(prompts_for(TaskName.REVIEW, 1), MethodName.DEXPERTS)
    assert fine.ending is Ending.WRITTEN


def test_a_model_of_another_tokenizer_is_steered_through_bytes_or_refused():
    other = SteeringEvaluator(replace(SETTINGS, model="nano-amateur"))
    (prompt,) = prompts_for(TaskName.CONTEXT, 1)
    (written,) = other.evaluate([prompt], MethodName.CONTEXT)
    assert written.ending is Ending.WRITTEN and written.base_text is not None
    (refused,) = other.evaluate(prompts_for(TaskName.REVIEW, 1), MethodName.FUDGE)
    assert refused.ending is Ending.REFUSED, refused


def test_methods_move_their_measures_on_the_packaged_models(evaluator):
    """Two quick ones with large effects, on 25 prompts: the report has them all, on more."""
    for name in (MethodName.DEXPERTS, MethodName.CONTEXT):
        (found,) = measure(evaluator.evaluate(prompts_for(METHODS[name].task, BATCH), name))
        assert found.verdict == Verdict.MOVES, found


def test_what_is_compared_is_the_steered_distribution(evaluator):
    """An independent loop, one prompt and one token at a time, writes the same texts."""
    kit = evaluator.kit
    (prompt,) = prompts_for(TaskName.LONG, 1)
    (one,) = evaluator.evaluate([prompt], MethodName.MOMENTUM)
    text = list(kit.ids(prompt.text))
    (end,) = kit.base.eos_ids
    for _ in range(METHODS[MethodName.MOMENTUM].chosen.max_new_tokens):
        from guided.steer import Stack

        logits = next_logits(Stack([Momentum()]).over(kit.base), [tuple(text)])[0]
        logits[end] = -torch.inf
        text.append(int(logits.argmax()))
    assert kit.text(text[len(kit.ids(prompt.text)) :]) == one.steered_text

    (asked,) = prompts_for(TaskName.NEW_FACTS, 1)
    graph = TransitionGraph.of(kit.base, [kit.plain_ids(f"Answer: {x}") for x in asked.about["retrieved"].split("\n")])
    assert len(graph) and GRAD(graph).graph is graph
    assert run_module.BATCH == BATCH


# --- the command ---


def test_the_command_and_the_same_again(guided_cli, tmp_path):
    arguments = ("eval", "steering", "--out", tmp_path, "--limit", 3, "--device", "cpu", "--offline")
    which = ("--method", "context-aware", "--method", "momentum")
    result = guided_cli(*arguments, *which, "--no-plot")
    assert result.exit_code == 0
    assert "context-aware" in result.stdout and "bootstrap" in result.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["done"], summary["of"], summary["settings"]["split"]) == (6, 6, "held-out")
    assert not (tmp_path / "plot.png").exists()
    written = (tmp_path / "results.jsonl").read_bytes()
    again = guided_cli(*arguments, *which, "--json")
    assert json.loads(again.stdout)["measures"] == summary["measures"]
    assert (tmp_path / "results.jsonl").read_bytes() == written
    unknown = guided_cli(*arguments, "--method", "magic")
    assert unknown.exit_code == 2
    assert "magic" in unknown.stderr


def test_the_plot(guided_cli, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ("--limit", 2, "--method", "momentum", "--plot", "--json", "--device", "cpu", "--offline")
    assert guided_cli("eval", "steering", "--out", tmp_path, *arguments).exit_code == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_help_teaches_and_loads_nothing_heavy(guided_cli):
    result = guided_cli("eval", "steering", "--help")
    assert result.exit_code == 0
    assert "130 interrupted" in result.stdout and "guided eval steering --limit 50" in result.stdout
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from guided.cli.application import application\n"
        "assert CliRunner().invoke(application, ['eval', 'steering', '--help']).exit_code == 0\n"
        "print([m for m in ('torch', 'transformers', 'numba', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_stopped_by_a_signal_and_resumed(guided_cli, tmp_path):
    """Ctrl-C in the middle of a real process: exit code 130, whole lines, and the rest by the same command."""
    arguments = ["eval", "steering", "--out", str(tmp_path), "--limit", "30", "--method", "momentum", "--device", "cpu"]
    code = (
        # A shell starts what runs in the background with SIGINT ignored, and children inherit that.
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from guided.eval.steering.results import SteeringLog\n"
        "inner = SteeringLog.append\n"
        "calls = []\n"
        "def append(*arguments):\n"
        "    inner(*arguments)\n"
        "    calls.append(None)\n"
        # By the process itself: how fast this machine is decides nothing.
        "    if len(calls) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "SteeringLog.append = append\n"
        "from guided.cli import main\n"
        "main()"
    )
    process = subprocess.run([sys.executable, "-c", code, *arguments, "--offline"], capture_output=True)
    output, errors = process.stdout, process.stderr
    path = tmp_path / "results.jsonl"
    assert process.returncode == 130, errors
    assert b"interrupted with" in errors and b"momentum" in output
    lines = path.read_bytes().splitlines(keepends=True)
    assert 2 <= len(lines) < 30 and all(line.endswith(b"\n") and json.loads(line) for line in lines)
    result = guided_cli(*arguments, "--offline", "--json")
    assert json.loads(result.stdout)["done"] == 30
    assert path.read_bytes().startswith(b"".join(lines))
