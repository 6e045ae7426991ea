"""`guided eval decoding`: the tasks and their judges, every method, paired tests, and runs that go on."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import guided
from guided.errors import UnsupportedError
from guided.eval.decoding_methods.comparing import EXACT, holm, sign_flip_test
from guided.eval.decoding_methods.evaluator import DecodingEvaluator
from guided.eval.decoding_methods.kit import Models
from guided.eval.decoding_methods.measures import measure
from guided.eval.decoding_methods.methods import METHODS
from guided.eval.decoding_methods.names import MethodName, Mode, TaskName
from guided.eval.decoding_methods.plot import save_plot
from guided.eval.decoding_methods.results import DecodingLog, DecodingRecord, DecodingSettings, Ending, key_of
from guided.eval.decoding_methods.run import records_of, run_here, run_on_ray, tasks_for, tasks_left
from guided.eval.decoding_methods.tasks import DecodingTask, grammar_of, quality, read_items
from tests.amounts import some
from tests.tolerances import DOUBLE

SETTINGS = DecodingSettings(device="cpu", offline=True)


@pytest.fixture(scope="module")
def evaluator():
    return DecodingEvaluator(SETTINGS)


def test_holm_is_the_closed_test_of_bonferroni():
    """By its definition: the greatest Bonferroni p of all sets of hypotheses that a hypothesis is in."""
    rnd = random.Random(3)
    for size in (1, 2, 5, 6):
        p = [rnd.choice([0.0, 0.001, 0.02, 0.2, 1.0, rnd.random()]) for _ in range(size)]
        wanted = [
            max(
                min(1.0, len(chosen) * min(p[other] for other in chosen))
                for n in range(1, size + 1)
                for chosen in itertools.combinations(range(size), n)
                if place in chosen
            )
            for place in range(size)
        ]
        assert holm(p) == pytest.approx(wanted, rel=DOUBLE)
    assert holm([]) == []


def test_signs_flipped():
    differences = [0.5, -0.25, 1.0, 0.75, 0.0, 0.5]
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, differences)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    assert sign_flip_test(differences) == sum(each >= abs(sum(differences)) for each in sums) / len(sums)
    assert sign_flip_test([]) == sign_flip_test([0.0, 0.0]) == 1.0
    # Drawn signs come near what counting gives: 16 of 20 heads or more, or 4 or fewer.
    many = [1.0] * 16 + [-1.0] * 4
    assert len(many) > EXACT
    assert sign_flip_test(many) == pytest.approx(0.011818, abs=0.0015)  # four standard errors of 100,000 draws
    assert sign_flip_test([1.0] * 40) == pytest.approx(1 / 100_001)


def test_all_comparisons_together_err_as_rarely_as_they_say():
    """20 methods that are no different: in few of 300 runs is any of them said to differ."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(300):
        p = [sign_flip_test(rng.choice([-1.0, 0.0, 1.0], size=10).tolist()) for _ in range(20)]
        wrong += min(holm(p)) < 0.05
    assert wrong <= 25, "15 are expected at most; 25 is 2.6 standard errors more"


def takes(constraint, text):
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


def said(item, text):
    return quality(replace(item, about=item.about), text)


def test_judges():
    review = read_items(TaskName.REVIEW, Mode.FREE, 1)[0]
    one, two = " The damn bed was very clean.", " We loved the pool."
    assert said(review, one + two + " The bar was not lovely. The sofa was small. The lift was dirty and grim.") == 1.0
    assert said(review, one + two) == pytest.approx(2 / 5)
    assert said(review, one * 6) == pytest.approx(1 / 6)
    assert said(review, one + " The bed was the bar." + two + " The pool") == pytest.approx(2 / 5)
    assert said(review, "") == 0.0
    fact = read_items(TaskName.FACTS, Mode.FREE, 1)[0]
    value, other = fact.about["value"], next(v for v in fact.about["values"].split() if v != fact.about["value"])
    assert said(fact, f" It is {value}.") == 1.0 and said(fact, f" It is {other}. Or {value}.") == 0.0
    record = read_items(TaskName.RECORDS, Mode.FREE, 1)[0]
    assert said(record, json.dumps(record.about["answer"])) == 1.0


@pytest.mark.parametrize("task", TaskName)
def test_a_grammar_has_right_answers_and_not_everything(task):
    models = Models(SETTINGS)
    for item in read_items(task, Mode.CONSTRAINED, some(3)):
        vocabulary = models.of(task).loaded.vocabulary
        constraint = guided.compile(grammar_of(item), vocabulary)
        best = {
            TaskName.REVIEW: " We loved the bar. The idiotic bed was not clean. The bed was small."
            " We hated the view. The lift was so grim.",
            TaskName.RECORDS: json.dumps(item.about.get("answer")),
            TaskName.FAMILIAR: json.dumps(item.about.get("answer")),
        }.get(task)
        if best is None:
            name, attribute = item.id.split("/")[:2]
            verb = {"city": "in ", "material": "built of ", "neighbour": "next to the "}[attribute]
            best = f" {name} is {verb}{item.about['value']}."
        assert takes(constraint, best) and quality(item, best) == 1.0
        assert not takes(constraint, best + " Not this")
        free = guided.compile(grammar_of(replace(item, mode=Mode.FREE)), vocabulary)
        assert takes(free, best + "\nanything é")


def test_every_method_writes(evaluator):
    """Free and constrained, on a question; what a grammar allows is what comes out, and greedy search is itself."""
    (free,), (asked,) = (read_items(TaskName.CONTEXT, mode, 1) for mode in Mode)
    constraint = evaluator.models.constraint(asked)
    kit = evaluator.models.of(TaskName.CONTEXT)
    found = {}
    for item, name in itertools.product((free, asked), MethodName):
        if item.mode in METHODS[name].modes:
            found[item.mode, name] = record = evaluator.evaluate(item, name)
            assert record.ending is Ending.WRITTEN, record.reason
            assert record.tokens and record.seconds > 0 and record.positions >= record.tokens
            assert item is free or (takes(constraint, record.text) and record.finished), record
            needs_small = name in (MethodName.CONTRASTIVE_DECODING, MethodName.FAST_SLOW)
            assert bool(record.small_passes) == needs_small
    ids = kit.loaded.tokenizer(free.prompt, return_tensors="pt")["input_ids"]
    greedy = kit.loaded.model.generate(ids, max_new_tokens=16, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
    ours = found[Mode.FREE, MethodName.GREEDY]
    assert ours.text == kit.loaded.tokenizer.decode(greedy, skip_special_tokens=True)
    assert ours.passes == ours.tokens == len(greedy), "a pass for each token, that over the prompt being the first"
    masked = guided.generate(kit.loaded, asked.prompt, constraint, max_new_tokens=16, do_sample=False)
    assert found[Mode.CONSTRAINED, MethodName.GREEDY].text == masked.text
    assert found[Mode.CONSTRAINED, MethodName.FAST_SLOW].passes < found[Mode.CONSTRAINED, MethodName.GREEDY].passes
    drafted = guided.generate(kit.loaded, free.prompt, max_new_tokens=16, do_sample=False)
    again = guided.generate(kit.loaded, free.prompt + drafted.text + "\n", constraint, max_new_tokens=16)
    first = found[Mode.CONSTRAINED, MethodName.DRAFT_FIRST]
    assert first.text == again.text
    # The pass that would follow a last token is left out by some loops and not by others.
    assert abs(first.passes - len(drafted.token_ids) - len(again.token_ids)) <= 2


def test_draws_are_of_the_cut_law_with_the_same_numbers(evaluator):
    """The inverse of the cumulative law at the same uniform numbers, computed apart."""
    item = read_items(TaskName.REVIEW, Mode.FREE, 2)[1]
    kit = evaluator.models.of(item.task)
    rng = np.random.default_rng(evaluator._seed(item))
    ids = kit.loaded.tokenizer(item.prompt)["input_ids"]
    text: list[int] = []
    while len(text) < 12:
        with torch.no_grad():
            logits = kit.loaded.model(torch.tensor([[*ids, *text]])).logits[0, -1].double() / 0.7
        p = torch.softmax(logits, -1)
        text.append(int((p.cumsum(-1) < rng.random()).sum()))
    wanted = kit.loaded.tokenizer.decode(text)
    assert evaluator.evaluate(item, MethodName.TEMPERATURE).text.startswith(wanted)


def test_a_run_goes_on_and_is_measured(tmp_path):
    methods = [MethodName.GREEDY, MethodName.BEAM, MethodName.FSD]
    tasks = tasks_for([TaskName.FACTS], list(Mode), methods, 2)
    assert len(tasks) == 12
    assert [name for _, name in tasks[3:6]] == [MethodName.BEAM, MethodName.FSD, MethodName.GREEDY], "turns are taken"
    with DecodingLog(tmp_path / "results.jsonl") as log:
        run_here(tasks[:5], SETTINGS, log)
    with DecodingLog(tmp_path / "results.jsonl") as log:
        assert tasks_left(tasks, SETTINGS, log) == tasks[5:]
        run_here(tasks, SETTINGS, log)
        records = records_of(tasks, SETTINGS, log)
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 12
    assert DecodingRecord.of(json.loads(records[0].line())) == records[0]
    measures = measure(records)
    assert [(one.mode, one.method) for one in measures] == [
        (mode.value, name.value) for mode in Mode for name in MethodName if name in methods
    ]
    assert all(one.items == 2 and one.passes is not None for one in measures)
    save_plot(measures, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def record(method, quality, number, **others):
    known = DecodingRecord(
        f"{method} {number}", "facts", str(number), "free", method.value, Ending.WRITTEN, quality=quality, tokens=4,
        passes=5, positions=20, seconds=0.02,
    )  # fmt: skip
    return replace(known, **others)


def test_measures():
    n = 30
    greedy = [record(MethodName.GREEDY, float(i % 2), i) for i in range(n)]
    better = [record(MethodName.BEAM, 1.0, i, passes=8, small_passes=2) for i in range(n)]
    noise = [record(MethodName.TOP_P, float(i % 2 if i % 5 else 1 - i % 2), i) for i in range(n)]
    failed = [record(MethodName.DOLA, 0.0, i, ending=Ending.FAILED, reason="why", tokens=0) for i in range(n)]
    refused = [
        record(MethodName.MIROSTAT, 0.0, i, ending=Ending.REFUSED, reason="not here", tokens=0) for i in range(n)
    ]
    found = {one.method: one for one in measure([*refused, *noise, *greedy, *failed, *better])}
    assert list(found) == ["greedy", "beam", "dola", "top-p", "mirostat"]
    assert found["greedy"].difference is None and found["greedy"].quality.mean == 0.5
    beam = found["beam"]
    assert beam.difference.mean == 0.5 and beam.difference.low > 0.3 and beam.differs
    assert beam.passes.mean == 2.0 and beam.small_passes == 0.5 and beam.ms.mean == pytest.approx(5.0)
    assert beam.p == sign_flip_test([1.0] * 15 + [0.0] * 15) and beam.adjusted_p == pytest.approx(3 * beam.p)
    assert not found["top-p"].differs and found["top-p"].difference.low < 0 < found["top-p"].difference.high
    assert found["dola"].quality.mean == 0.0 and found["dola"].not_written == n and found["dola"].differs
    assert found["mirostat"].items == 0 and found["mirostat"].quality is None and found["mirostat"].reason == "not here"


def test_what_a_model_lacks_is_a_record(evaluator):
    item = read_items(TaskName.FACTS, Mode.FREE, 1)[0]
    alone = DecodingEvaluator(replace(SETTINGS, model="reviews"))
    made = alone.evaluate(item, MethodName.FAST_SLOW)
    assert made.ending is Ending.REFUSED and "--amateur" in made.reason
    with pytest.raises(UnsupportedError, match="no small model"):
        alone.models.of(TaskName.FACTS).amateur()


def test_keys_differ_where_results_might():
    one, two = read_items(TaskName.FACTS, Mode.FREE, 2)
    keys = {
        key_of(item, name, settings)
        for item in (one, two, replace(one, mode=Mode.CONSTRAINED))
        for name in (MethodName.GREEDY, MethodName.TOP_K)
        for settings in (SETTINGS, replace(SETTINGS, seed=1), replace(SETTINGS, model="nano"))
    }
    assert len(keys) == 18
    assert key_of(one, MethodName.GREEDY, replace(SETTINGS, offline=False)) in keys


def test_the_command(guided_cli, tmp_path):
    arguments = ["eval", "decoding", "--task", "facts", "--method", "top-p", "--limit", "2", "--mode", "free"]
    result = guided_cli(*arguments, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["done"] == summary["of"] == 4 and summary["comparisons"] == 1
    shown = guided_cli(*arguments, "--out", tmp_path)
    assert shown.exit_code == 0 and "facts, free: 2 prompts" in shown.stdout and "4 of 4 results" in shown.stderr
    assert (tmp_path / "plot.png").exists() and len((tmp_path / "results.jsonl").read_text().splitlines()) == 4


@pytest.mark.slow
def test_ray_answers_as_here(tmp_path, evaluator):
    """Slow: Ray takes 10 s to start, and its worker loads torch."""
    pytest.importorskip("ray")
    tasks = tasks_for([TaskName.FACTS], [Mode.CONSTRAINED], [MethodName.GREEDY, MethodName.TOP_P], 2)
    with DecodingLog(tmp_path / "results.jsonl") as log:
        run_on_ray(tasks, SETTINGS, log, workers=1)
        found = records_of(tasks, SETTINGS, log)
    for (item, name), made in zip(tasks, found, strict=True):
        here = evaluator.evaluate(item, name)
        assert (made.key, made.text, made.passes) == (here.key, here.text, here.passes)


def test_items_are_plain():
    item = read_items(TaskName.RECORDS, Mode.FREE, 1)[0]
    assert DecodingTask(item.task, item.id, item.mode, item.prompt, json.loads(json.dumps(dict(item.about)))).about == (
        item.about
    )
