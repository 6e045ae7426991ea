"""The page that shows a recorded run: HTML, style and script in one text, with nothing fetched from elsewhere.

The script's functions up to ``show`` compute from the data alone and touch no document, so that they can be run and
tested without a browser.  What is recorded is `guided.infer.analysis.replay`'s concern.
"""

from __future__ import annotations

__all__ = ["PAGE"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #6e6e73; --line: #d2d2d7; --back: #fff; --card: #f5f5f7;
  --live: #0057b8; --cut: #b3261e; --gone: #b8b8bd; }
@media (prefers-color-scheme: dark) { :root { --ink: #f5f5f7; --soft: #a1a1a6; --line: #3a3a3c; --back: #161617;
  --card: #222224; --live: #6cb2ff; --cut: #ff8a80; --gone: #5a5a5e; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); }
header, main { padding: 12px 20px; }
header { border-bottom: 1px solid var(--line); }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 18px 0 6px; }
#prompt { color: var(--soft); white-space: pre-wrap; max-height: 6em; overflow: auto; margin: 0; }
.controls { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin: 10px 0 0; }
.controls input[type=range] { flex: 1 1 260px; }
button { font: inherit; padding: 3px 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--card);
  color: var(--ink); cursor: pointer; }
#facts { color: var(--soft); min-height: 1.5em; margin: 8px 0; }
#facts b { color: var(--ink); }
#tree { overflow: auto; border: 1px solid var(--line); border-radius: 8px; max-height: 62vh; background: var(--back); }
svg text { font: 12px ui-monospace, monospace; fill: var(--ink); }
svg .edge { fill: none; stroke: var(--live); } svg .faded .edge { stroke: var(--gone); }
svg .faded text { fill: var(--gone); }
svg rect.token { fill: var(--card); stroke: var(--line); } svg rect.cut { fill: var(--cut); }
svg .dead rect.token { stroke: var(--cut); stroke-dasharray: 3 2; }
#timeline { overflow-x: auto; } #timeline rect { fill: var(--gone); cursor: pointer; }
#timeline rect.resampled { fill: var(--cut); } #timeline rect.now { stroke: var(--live); stroke-width: 2; }
svg .copies { font-size: 10px; fill: var(--live); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: 2px 8px 2px 0;
  border-bottom: 1px solid var(--line); vertical-align: top; } td.number { font-variant-numeric: tabular-nums;
  white-space: nowrap; }
td.text { font-family: ui-monospace, monospace; white-space: pre-wrap; word-break: break-word; }
.bar { display: inline-block; height: 9px; background: var(--live); border-radius: 2px; min-width: 1px; }
.legend { color: var(--soft); font-size: 13px; } .legend i { font-style: normal; color: var(--cut); }
"""

_SCRIPT = r"""
"use strict";
const ROW = 24, GAP = 18, PAD = 10, LETTER = 7.3;

// What the data says, without a document

function weights(logw) {
  const live = logw.filter(w => w !== null);
  if (!live.length) return logw.map(() => 0);
  const top = Math.max(...live);
  const raw = logw.map(w => w === null ? 0 : Math.exp(w - top));
  const sum = raw.reduce((a, b) => a + b, 0);
  return raw.map(w => w / sum);
}

function removed(change) {
  return change === null ? 1 : Math.min(1, Math.max(0, 1 - Math.exp(change)));
}

function label(data, node) {
  if (node === 0) return "prompt";
  const text = data.tokens[data.nodes.token[node]];
  if (data.ends.includes(data.nodes.token[node])) return "\u25a0";
  const shown = text.replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5").replace(/ /g, "\u00b7");
  return shown.length > 18 ? shown.slice(0, 17) + "\u2026" : shown;
}

function childrenOf(data) {
  const all = data.nodes.parent.map(() => []);
  data.nodes.parent.forEach((parent, node) => { if (parent >= 0) all[parent].push(node); });
  return all;
}

// Columns by depth, as wide as their widest token; a leaf has its own row, and a parent stands at its first child's.
function layout(data) {
  const parent = data.nodes.parent, n = parent.length, children = childrenOf(data);
  const depth = new Array(n).fill(0), row = new Array(n).fill(0);
  for (let node = 1; node < n; node++) depth[node] = depth[parent[node]] + 1;
  const wide = [];
  for (let node = 0; node < n; node++) {
    wide[depth[node]] = Math.max(wide[depth[node]] || 0, label(data, node).length);
  }
  const left = [PAD];
  wide.forEach((letters, at) => { left[at + 1] = left[at] + letters * LETTER + 12 + GAP; });
  let rows = 0;
  const stack = [0];
  while (stack.length) {
    const node = stack.pop();
    row[node] = rows;
    if (children[node].length) for (let i = children[node].length - 1; i >= 0; i--) stack.push(children[node][i]);
    else rows++;
  }
  return {
    x: depth.map(d => left[d]), y: row.map(r => PAD + r * ROW), depth,
    width: left[left.length - 1] + PAD, height: 2 * PAD + Math.max(1, rows) * ROW,
  };
}

// Who is where after a step: the share of the weight that passes through each node, and how many particles do.
function population(data, at) {
  const step = data.steps[at], n = data.nodes.parent.length;
  const share = new Array(n).fill(0), count = new Array(n).fill(0), seen = new Array(n).fill(false);
  const dead = new Array(n).fill(false);
  for (let i = 0; i <= at; i++) for (let node of data.steps[i].nodes) {
    while (node >= 0 && !seen[node]) { seen[node] = true; node = data.nodes.parent[node]; }
  }
  const by = weights(step.logw);
  step.nodes.forEach((end, i) => {
    if (step.logw[i] === null) dead[end] = true;
    for (let node = end; node >= 0; node = data.nodes.parent[node]) { share[node] += by[i]; count[node]++; }
  });
  return { share, count, seen, dead, weights: by };
}

function copiesOf(step) {
  const copies = step.nodes.map(() => step.ancestors === null ? 1 : 0);
  if (step.ancestors !== null) step.ancestors.forEach(i => copies[i]++);
  return copies;
}

function textOf(data, node) {
  const parts = [];
  for (; node > 0; node = data.nodes.parent[node]) {
    if (!data.ends.includes(data.nodes.token[node])) parts.push(data.tokens[data.nodes.token[node]]);
  }
  return parts.reverse().join("");
}

function facts(data, at) {
  const step = data.steps[at], out = [];
  if (data.kind === "steps") {
    out.push(["step", `${step.number} of at most ${step.limit}`], ["effective sample size",
      `${step.ess.toFixed(2)} of ${step.nodes.length}`], ["ended or dead", `${step.finished}`]);
    if (step.ancestors !== null) out.push(["resampled", `${new Set(step.ancestors).size} particles live on`]);
  } else {
    out.push(["round", `${step.number}`], ["kept", `${step.finished} of ${step.limit}`]);
    if (step.log_bound !== null && step.log_bound !== undefined) {
      out.push(["bound on Z", Math.exp(step.log_bound).toPrecision(4)]);
    }
  }
  out.push(["model calls", `${step.cost.model_calls}`], ["constraint calls", `${step.cost.constraint_calls}`]);
  return out;
}

// One bar a step: the effective sample size, or for rounds the share of sequences that were kept.
function bars(data) {
  return data.steps.map(step => {
    const n = Math.max(1, step.nodes.length);
    const good = step.ess === null ? step.logw.filter(w => w !== null).length : step.ess;
    return { height: Math.max(1, 28 * good / n), resampled: step.ancestors !== null };
  });
}

function explain(data, node, share, count) {
  if (node === 0) return "the prompt";
  const lines = [`token ${data.nodes.token[node]}: ${JSON.stringify(data.tokens[data.nodes.token[node]])}`];
  if (data.nodes.known[node]) {
    const change = data.nodes.change[node];
    lines.push(change === null ? "died here" : `log weight ${change >= 0 ? "+" : ""}${change.toFixed(4)}`);
    lines.push(`removed by the constraint: ${(100 * removed(change)).toFixed(2)} %`);
  }
  lines.push(`${count} particles, ${(100 * share).toFixed(1)} % of the weight`);
  return lines.join("\n");
}

// The document

function show(data, document) {
  const $ = id => document.getElementById(id);
  const svgNS = "http://www.w3.org/2000/svg";
  const make = (name, attributes, parent) => {
    const element = document.createElementNS(svgNS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.appendChild(element);
    return element;
  };
  const plain = (name, text, parent, style) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (style) element.className = style;
    parent.appendChild(element);
    return element;
  };
  $("prompt").textContent = data.prompt;
  const place = layout(data);
  const slider = $("step");
  slider.max = Math.max(0, data.steps.length - 1);
  const svg = make("svg", { width: place.width, height: place.height, role: "img" }, $("tree"));
  svg.setAttribute("aria-label", "tree of the particles' tokens");

  const strip = make("svg", { width: 8 * data.steps.length + 4, height: 32 }, $("timeline"));
  const ticks = bars(data).map((bar, i) => {
    const tick = make("rect", { x: 2 + 8 * i, y: 30 - bar.height, width: 6, height: bar.height }, strip);
    tick.addEventListener("click", () => { stop(); go(i); });
    make("title", {}, tick).textContent = `step ${data.steps[i].number}` + (bar.resampled ? ", resampled" : "");
    return tick;
  });

  function draw(at) {
    slider.value = at;
    ticks.forEach((tick, i) => tick.setAttribute("class",
      (data.steps[i].ancestors !== null ? "resampled " : "") + (i === at ? "now" : "")));
    while (svg.firstChild) svg.removeChild(svg.firstChild);
    $("facts").textContent = "";
    $("particles").textContent = "";
    if (!data.steps.length) { $("facts").textContent = "Nothing was recorded."; return; }
    const now = population(data, at), step = data.steps[at];
    facts(data, at).forEach(([name, value], i) => {
      plain("span", (i ? " \u00b7 " : "") + name + " ", $("facts"));
      plain("b", value, $("facts"));
    });
    for (let node = 0; node < now.seen.length; node++) {
      if (!now.seen[node]) continue;
      const kind = (now.count[node] ? "" : "faded ") + (now.dead[node] ? "dead" : "");
      const group = make("g", { class: kind.trim(), "data-node": node }, svg);
      const x = place.x[node], y = place.y[node], text = label(data, node), wide = text.length * LETTER + 12;
      const up = data.nodes.parent[node];
      if (up >= 0) {
        const from = place.x[up] + label(data, up).length * LETTER + 12, fromY = place.y[up] + 9, mid = x - GAP / 2;
        make("path", { class: "edge", d: `M${from} ${fromY} H${mid} V${y + 9} H${x}`,
          "stroke-width": (0.6 + 5 * now.share[node]).toFixed(2) }, group);
      }
      make("rect", { class: "token", x, y, width: wide, height: 18, rx: 4 }, group);
      if (data.nodes.known[node]) {
        make("rect", { class: "cut", x, y: y + 15, width: (wide * removed(data.nodes.change[node])).toFixed(2),
          height: 3 }, group);
      }
      make("text", { x: x + 6, y: y + 13 }, group).textContent = text;
      if (now.count[node] > 1 && !childrenShared[node]) {
        make("text", { class: "copies", x: x + wide + 2, y: y + 8 }, group).textContent = "\u00d7" + now.count[node];
      }
      make("title", {}, group).textContent = explain(data, node, now.share[node], now.count[node]);
    }
    const copies = copiesOf(step);
    step.nodes.map((node, i) => i).sort((a, b) => now.weights[b] - now.weights[a]).forEach(i => {
      const line = plain("tr", "", $("particles"));
      plain("td", String(i), line, "number");
      const weight = plain("td", "", line, "number");
      plain("span", "", weight, "bar").style.width = (90 * now.weights[i]).toFixed(1) + "px";
      plain("span", " " + (100 * now.weights[i]).toFixed(1) + " %", weight);
      plain("td", step.logw[i] === null ? "\u2212\u221e" : step.logw[i].toFixed(3), line, "number");
      plain("td", step.ancestors === null ? "" : "\u00d7" + copies[i], line, "number");
      plain("td", textOf(data, step.nodes[i]), line, "text");
    });
  }
  const childrenShared = childrenOf(data).map(list => list.length > 0);

  if (data.result !== null) {
    const result = data.result;
    const rest = result.n_texts > result.texts.length ? `, the first ${result.texts.length} of ${result.n_texts}` : "";
    $("resulthead").textContent = `Result: ${result.n} particles` +
      (result.log_ml === null ? "" : `, log Z about ${result.log_ml.toFixed(4)}`) +
      (result.log_ml_error === null ? "" : ` \u00b1 ${result.log_ml_error.toFixed(4)}`) + rest;
    result.texts.forEach(([text, share]) => {
      const line = plain("tr", "", $("texts"));
      plain("td", (100 * share).toFixed(2) + " %", line, "number");
      plain("td", text, line, "text");
    });
  }

  let timer = null;
  const stop = () => { if (timer !== null) clearInterval(timer); timer = null; $("play").textContent = "Play"; };
  const go = at => draw(Math.min(Math.max(0, at), Math.max(0, data.steps.length - 1)));
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  $("back").addEventListener("click", () => { stop(); go(Number(slider.value) - 1); });
  $("next").addEventListener("click", () => { stop(); go(Number(slider.value) + 1); });
  $("play").addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    if (Number(slider.value) >= data.steps.length - 1) go(0);
    $("play").textContent = "Pause";
    timer = setInterval(() => {
      if (Number(slider.value) >= data.steps.length - 1) stop(); else go(Number(slider.value) + 1);
    }, 600);
  });
  go(data.steps.length - 1);
}

if (typeof document !== "undefined") show(JSON.parse(document.getElementById("replay").textContent), document);
"""

PAGE = (
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>"""
    + _STYLE
    + """</style>
</head>
<body>
<header>
<h1>@TITLE@</h1>
<p id="prompt"></p>
<div class="controls">
<button id="back" type="button" aria-label="one step back">&#9664;</button>
<button id="play" type="button">Play</button>
<button id="next" type="button" aria-label="one step on">&#9654;</button>
<input id="step" type="range" min="0" value="0" aria-label="step">
</div>
<div id="timeline"></div>
</header>
<main>
<p id="facts" aria-live="polite"></p>
<div id="tree"></div>
<p class="legend">Lines are as thick as the weight that passes. The <i>red foot</i> of a token is the probability that
the constraint removed there, as its draw estimated it. Grey branches were given up. &#9632; ends a text.
The bars above are the
effective sample size of each step, <i>red</i> where the population was resampled.</p>
<h2>Particles</h2>
<table><thead><tr><th>no.</th><th>weight</th><th>log weight</th><th>copies</th><th>text</th></tr></thead>
<tbody id="particles"></tbody></table>
<h2 id="resulthead"></h2>
<table><tbody id="texts"></tbody></table>
</main>
<script type="application/json" id="replay">@DATA@</script>
<script>"""
    + _SCRIPT
    + """</script>
</body>
</html>
"""
)
"""The page; ``@TITLE@`` and ``@DATA@`` are to be replaced, escaped."""
