"""The recorded data against the run, the page as HTML, and its script: under Node with a stand-in for the document, and
in headless Chromium where there is one (`GUIDED_CHROMIUM` or on the path)."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser

import pytest

import guided
from guided.errors import GuidedError
from guided.infer.analysis.replay import Recorder
from guided.infer.analysis.replay_page import PAGE
from guided.infer.populations.local import local
from guided.infer.populations.smc import importance, smc
from guided.infer.populations.smc_steer import smc_steer
from guided.infer.sequences.asap import asap
from guided.infer.sequences.cars import cars
from guided.infer.sequences.mcmc import mcmc
from guided.infer.token_samplers.token_sampler import Direct
from guided.lm import TableModel
from tests.tolerances import DOUBLE
from tests.twin.tiny_problems import VOCABULARY, problem

HOSTILE = "</script><script>document.title='taken'</script>"


def recorded(run, seed=1, pattern="a*b|(ab)*", **options):
    tiny = problem(pattern, seed=seed, max_tokens=6)
    recorder = Recorder(VOCABULARY, title="a <run> @DATA@", prompt=f"{HOSTILE} é ")
    result = run(seed, *tiny.arguments, max_tokens=6, progress=recorder, **options)
    recorder.finish(result)
    return recorder, result


def tokens_of(data, node):
    found = []
    while node > 0:
        found.append(data["nodes"]["token"][node])
        node = data["nodes"]["parent"][node]
    return tuple(reversed(found))


RUNS = {
    "no resampling": partial(smc, n=12, sampler=Direct(), ess_threshold=0.0),
    "some": partial(smc, n=12, sampler=Direct(), ess_threshold=0.99),
    "each step": partial(smc, n=12, ess_threshold=1.0),
    "steered": partial(smc_steer, n=4, expansions=3),
    "local": partial(local, n=5),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_tree_ends_in_the_particles(name):
    recorder, result = recorded(RUNS[name])
    data = recorder.data()
    last = data["steps"][-1]
    ends = last["nodes"] if last["ancestors"] is None else [last["nodes"][i] for i in last["ancestors"]]
    assert [tokens_of(data, node) for node in ends] == [particle.tokens for particle in result.particles]
    if name in ("no resampling", "some", "each step"):
        assert sum(step["ancestors"] is not None for step in data["steps"]) == len(result.resampled)
        assert (len(result.resampled) > 0) == (name != "no resampling")
    parents = data["nodes"]["parent"]
    assert parents[0] == -1 and all(parent < node for node, parent in enumerate(parents))
    pairs = list(zip(parents, data["nodes"]["token"], strict=True))
    assert len(set(pairs)) == len(pairs)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_changes_are_what_the_mask_left():
    tiny = problem("a*b|(ab)*", seed=1, max_tokens=6)
    recorder, result = recorded(importance, n=40, sampler=Direct())
    data = recorder.data()
    for node in range(1, len(data["nodes"]["parent"])):
        *before, token = tokens_of(data, node)
        logs, steps = tiny.model.logprobs((0, *before)), tiny.potential.logw_next(before)
        kept = logs[token] if len(before) == 5 else math.log(sum(math.exp(a + b) for a, b in zip(logs, steps)))
        change = data["nodes"]["change"][node]
        assert data["nodes"]["known"][node]
        assert (change is None) if steps[token] == -math.inf else change == pytest.approx(kept, abs=DOUBLE)
    for particle, end in zip(result.particles, data["steps"][-1]["nodes"], strict=True):
        total = 0.0
        while end > 0:
            total += -math.inf if data["nodes"]["change"][end] is None else data["nodes"]["change"][end]
            end = data["nodes"]["parent"][end]
        assert total == pytest.approx(particle.logw)
    assert sum(share for _, share in data["result"]["texts"]) == pytest.approx(1)


@pytest.mark.parametrize("sampler", [cars, asap, mcmc])
def test_rounds_are_recorded(sampler):
    recorder, result = recorded(sampler, n=6, batch=3)
    data = recorder.data()
    assert data["kind"] == "rounds" and data["steps"] and data["result"]["kind"] == "Samples"
    if sampler is mcmc:
        ends = data["steps"][-1]["nodes"]
    else:
        ends = [n for step in data["steps"] for n, w in zip(step["nodes"], step["logw"], strict=True) if w is not None]
    assert [tokens_of(data, node) for node in ends][: len(result)] == [particle.tokens for particle in result.particles]


def test_one_recorder_one_run():
    recorder, _ = recorded(cars, n=2)
    tiny = problem("a*b", seed=1)
    with pytest.raises(GuidedError, match="one run"):
        smc(0, *tiny.arguments, n=2, max_tokens=4, progress=recorder)
    recorder, _ = recorded(smc, n=2)
    with pytest.raises(GuidedError, match="step of 3 particles follows one of 2"):
        smc(0, *tiny.arguments, n=3, max_tokens=4, progress=recorder)


def test_a_resumed_run_has_no_beginning():
    tiny = problem("[ab]*b", seed=1)
    recorder, kept = Recorder(VOCABULARY), []
    smc(0, *tiny.arguments, n=4, max_tokens=6, progress=kept.append, ess_threshold=0)
    with pytest.raises(GuidedError, match="begin with step 2"):
        recorder(kept[1])


def test_others_are_told_as_well():
    seen = []
    tiny = problem("a*b", seed=1)
    smc(0, *tiny.arguments, n=2, max_tokens=4, progress=Recorder(VOCABULARY, also=seen.append))
    assert [step.number for step in seen] == list(range(1, len(seen) + 1))


class Page(HTMLParser):
    """Elements, scripts and attributes of a page; every element that must be closed is."""

    VOID = frozenset({"meta", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.attributes, self.title = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += text
        if self.open and self.open[-1] == "title":
            self.title += text


def test_the_page_holds_the_data_and_needs_nothing_else(tmp_path):
    recorder, _ = recorded(smc, n=8)
    recorder.save(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.title == "a <run> @DATA@"
    data, script = page.scripts
    assert data[0] == {"type": "application/json", "id": "replay"} and json.loads(data[1]) == recorder.data()
    assert HOSTILE in json.loads(data[1])["prompt"] and HOSTILE not in text
    assert not {"src", "href", "srcset", "data", "action"} & {name for name, _ in page.attributes}
    for needle in ("import(", "fetch(", "XMLHttpRequest", "url(", "@import", "innerHTML", "eval("):
        assert needle not in script[1] and needle not in PAGE
    # The one address is the name of a namespace.
    assert text.count("http") == text.count("http://www.w3.org/2000/svg") == 1


DOCUMENT = """
class Element {
  constructor(name) { this.name = name; this.children = []; this.attributes = {}; this.style = {}; this.text = "";
    this.listeners = {}; }
  setAttribute(key, value) { if (String(value).includes("NaN")) throw new Error(key + " is NaN");
    this.attributes[key] = String(value); }
  appendChild(child) { this.children.push(child); return child; }
  removeChild(child) { this.children.splice(this.children.indexOf(child), 1); }
  get firstChild() { return this.children[0] || null; }
  get textContent() { return this.text + this.children.map(c => c.textContent).join(""); }
  set textContent(value) { this.text = String(value); this.children = []; }
  addEventListener(name, call) { this.listeners[name] = call; }
  get value() { return this.held; }
  set value(value) { this.held = String(value); }
}
const elements = {};
["step", "back", "next", "play", "facts", "tree", "timeline", "particles", "resulthead", "texts", "prompt"].forEach(
  id => { elements[id] = new Element(id); });
const stand_in = { getElementById: id => elements[id],
  createElement: name => new Element(name), createElementNS: (space, name) => new Element(name) };
"""

CHECKS = """
const data = JSON.parse(require("fs").readFileSync(0, "utf8"));
show(data, stand_in);
const out = { steps: [] };
const at = layout(data);
for (let node = 1; node < at.x.length; node++) {
  const up = data.nodes.parent[node];
  if (!(at.x[up] + label(data, up).length * LETTER + 12 <= at.x[node])) throw new Error("a token covers its child");
  if (!(at.y[up] <= at.y[node] && at.y[node] < at.height && at.x[node] < at.width)) throw new Error("outside");
}
const places = new Set(at.x.map((x, node) => x + " " + at.y[node]));
if (places.size !== at.x.length) throw new Error("two tokens in one place");
for (let i = 0; i < data.steps.length; i++) {
  elements.step.value = i;
  elements.step.listeners.input();
  const now = population(data, i);
  const groups = elements.tree.children[0].children;
  out.steps.push({ root: now.share[0], drawn: groups.length, seen: now.seen.filter(x => x).length,
    weights: now.weights, copies: copiesOf(data.steps[i]),
    rows: elements.particles.children.map(row => row.children.map(cell => cell.textContent)),
    facts: elements.facts.textContent,
    ticks: elements.timeline.children[0].children.map(tick => tick.attributes.class),
    bar: Number(elements.timeline.children[0].children[i].attributes.height) });
}
elements.back.listeners.click(); elements.next.listeners.click(); elements.next.listeners.click();
out.last = elements.step.value;
out.texts = elements.texts.children.map(row => row.children[1].textContent);
out.head = elements.resulthead.textContent;
console.log(JSON.stringify(out));
"""


def under_node(recorder, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node to run the page's script with")
    script = Page(recorder.page()).scripts[1][1]
    program = tmp_path / "page.js"
    program.write_text(script + DOCUMENT + CHECKS, encoding="utf-8")
    done = subprocess.run(
        [node, program], input=json.dumps(recorder.data()), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("sampler", [smc, cars, mcmc])
def test_the_script_shows_every_step(sampler, tmp_path):
    recorder, result = recorded(sampler, n=8)
    data = recorder.data()
    shown = under_node(recorder, tmp_path)
    assert len(shown["steps"]) == len(data["steps"]) and shown["last"] == str(len(data["steps"]) - 1)
    for step, drawn in zip(data["steps"], shown["steps"], strict=True):
        live = [w for w in step["logw"] if w is not None]
        total = math.fsum(map(math.exp, live))
        expected = [0.0 if w is None else math.exp(w) / total for w in step["logw"]]
        assert drawn["weights"] == pytest.approx(expected) and drawn["drawn"] == drawn["seen"] > 1
        assert drawn["root"] == pytest.approx(1.0 if live else 0.0)
        assert sum(drawn["copies"]) == len(step["nodes"]) == len(drawn["rows"])
        # The heaviest first, each with its text.
        order = [int(row[0]) for row in drawn["rows"]]
        assert sorted(order) == list(range(len(step["nodes"])))
        for i, row in zip(order, drawn["rows"], strict=True):
            ids = tokens_of(data, step["nodes"][i])
            assert row[4].encode() == b"".join(VOCABULARY.token_bytes(token) or b"" for token in ids)
        assert ("effective sample size" in drawn["facts"]) == (sampler is smc)
        at = data["steps"].index(step)
        assert [i for i, tick in enumerate(drawn["ticks"]) if "now" in tick] == [at]
        assert ("resampled" in drawn["ticks"][at]) == (step["ancestors"] is not None)
        good = step["ess"] if sampler is smc else len(live)
        assert drawn["bar"] == pytest.approx(max(1, 28 * good / len(step["nodes"])))
    assert shown["texts"] == list(result.posterior()) and f"{len(result)} particles" in shown["head"]


def test_a_run_in_which_all_die_and_one_that_never_began(tmp_path):
    recorder, result = recorded(smc, n=3, pattern="[ab]{30}")
    assert result.log_ml == -math.inf
    shown = under_node(recorder, tmp_path)
    assert shown["steps"][-1]["root"] == 0 and shown["texts"] == []
    empty = Recorder(VOCABULARY)
    assert under_node(empty, tmp_path)["steps"] == []


def test_tokens_of_every_kind_have_a_text():
    vocabulary = guided.Vocabulary.from_tokens([b"\xc3", b"\n", None, None, b"<!--"], eos_ids=[3])
    model = TableModel.random(0, width=5, eos_ids=[3])
    recorder = Recorder(vocabulary, prompt=[4, 0])
    cars(0, model, (0,), guided.infer.Anything(vocabulary), n=20, max_tokens=5, progress=recorder)
    texts = recorder.data()["tokens"]
    assert texts["0"] == "\\xc3" and texts["1"] == "\n" and texts["3"] == "end of text"
    assert "<!--" not in Page(recorder.page()).scripts[0][1] and recorder.data()["prompt"] == "<!--\ufffd"


ENGINE = """
import sys
from {package}.QtCore import QTimer, QUrl
from {package}.QtWebEngineCore import QWebEnginePage
from {package}.QtWidgets import QApplication

app = QApplication(sys.argv[:1])
page = QWebEnginePage()

def show(html):
    print(html, flush=True)
    app.quit()

page.loadFinished.connect(lambda loaded: QTimer.singleShot(300, lambda: page.toHtml(show)))
QTimer.singleShot(90_000, app.quit)
page.load(QUrl(sys.argv[1]))
app.exec()
"""


def in_chromium(page, folder):
    """The page's elements after its script has run, in the Chromium on the path or the one in Qt WebEngine."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell")
    browser = os.environ.get("GUIDED_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    environment = dict(os.environ)
    if browser is not None:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=3000", "--dump-dom", page.as_uri(),
        ]  # fmt: skip
    else:
        package = next((name for name in ("PySide6", "PyQt6") if importlib.util.find_spec(name)), None)
        if package is None or importlib.util.find_spec(f"{package}.QtWebEngineCore") is None:
            pytest.skip("no Chromium: neither on the path, nor GUIDED_CHROMIUM, nor PySide6 or PyQt6 with WebEngine")
        command = [sys.executable, "-c", ENGINE.format(package=package), page.as_uri()]
        flags = "--no-sandbox --disable-gpu --log-level=3"
        environment |= {"QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_CHROMIUM_FLAGS": flags, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_headless_chromium(tmp_path):
    recorder, result = recorded(smc, n=8)
    recorder.save(tmp_path / "run.html")
    shown = in_chromium(tmp_path / "run.html", tmp_path)
    assert shown.count("<g ") == len(recorder.data()["nodes"]["parent"])
    assert "taken" not in shown.split("</title>")[0]
    assert f"Result: {len(result)} particles" in shown
