// A sampler's particles as a tree over time: prefixes branch to the right, as thick as the weight that runs through
// them; a slider goes through the steps, and below it stands how many particles still count.

import { draw, make, percent, visible } from "./elements.js";

const ROW = 30, GAP = 22, LETTER = 7.4, LONGEST = 26;

export function weights(logw) {
  const top = Math.max(...logw.map((w) => w ?? -Infinity));
  const raw = logw.map((w) => (w === null || top === -Infinity ? 0 : Math.exp(w - top)));
  const sum = raw.reduce((a, b) => a + b, 0) || 1;
  return raw.map((w) => w / sum);
}

export class History {
  constructor() {
    this.nodes = [{ parent: -1, text: "", born: -1, children: new Map() }];
    this.steps = [];
    this.at = null;
  }

  add(step) {
    // Where the first step begins with copies, all of them are of the prompt.
    let before = this.at ?? Array(Math.max(step.tokens.length, 1 + Math.max(0, ...(step.parents ?? [])))).fill(0);
    if (step.parents) before = step.parents.map((parent) => before[parent]);
    const ends = step.tokens.map((token, i) => (token === null ? before[i] : this.child(before[i], token)));
    this.steps.push({ ...step, ends, weights: weights(step.logw) });
    this.at = step.ancestors ? step.ancestors.map((i) => ends[i]) : ends;
  }

  child(node, text) {
    const children = this.nodes[node].children;
    if (!children.has(text)) {
      children.set(text, this.nodes.length);
      this.nodes.push({ parent: node, text, born: this.steps.length, children: new Map() });
    }
    return children.get(text);
  }

  path(node) {
    return node <= 0 ? "" : this.path(this.nodes[node].parent) + this.nodes[node].text;
  }

  // Weight and number of particles through each node after a step.
  through(at) {
    const share = new Float64Array(this.nodes.length), count = new Float64Array(this.nodes.length);
    const step = this.steps[at];
    step.ends.forEach((end, i) => {
      for (let node = end; node >= 0; node = this.nodes[node].parent) {
        share[node] += step.weights[i];
        count[node] += 1;
      }
    });
    return { share, count };
  }

  // Runs of nodes without a branch, as one box each: {nodes, text, children, depth}; a leaf has its own row.
  boxes(until) {
    const made = [];
    let row = 0;
    const make_box = (first, parent) => {
      const box = { nodes: [first], parent, children: [] };
      for (let node = first; ;) {
        const next = [...this.nodes[node].children.values()].filter((child) => this.nodes[child].born <= until);
        if (next.length === 1 && first !== 0) {
          node = next[0];
          box.nodes.push(node);
          continue;
        }
        made.push(box);
        box.children = next.map((child) => make_box(child, box));
        break;
      }
      box.row = box.children.length ? box.children[0].row : row++;
      return box;
    };
    make_box(0, null);
    for (const box of made) {
      const whole = box.nodes.map((node) => this.nodes[node].text).join("");
      box.text = box.parent === null ? "prompt" : visible(whole) || "■";
      box.shown = box.text.length > LONGEST ? `${box.text.slice(0, LONGEST - 1)}…` : box.text;
      box.width = box.shown.length * LETTER + 16;
      box.x = box.parent ? box.parent.x + box.parent.width + GAP : 1;
      box.y = 4 + box.row * ROW;
    }
    return { made, height: 8 + Math.max(1, row) * ROW };
  }
}

function tree(history, at) {
  const { made, height } = history.boxes(at);
  const { share, count } = history.through(at);
  const width = Math.max(...made.map((box) => box.x + box.width)) + 2;
  const alive = (box) => share[box.nodes[0]];
  const edges = made.filter((box) => box.parent).map((box) => {
    const from = box.parent.x + box.parent.width, a = box.parent.y + 11, b = box.y + 11;
    return draw("path", { d: `M${from} ${a}C${from + GAP / 2} ${a} ${box.x - GAP / 2} ${b} ${box.x} ${b}`,
      class: alive(box) ? "edge" : "edge gone", "stroke-width": 1 + 7 * alive(box) });
  });
  const boxes = made.map((box) => {
    const first = box.nodes[0];
    const about = `${box.text}\n${count[first]} particles, ${percent(alive(box))} of the weight`;
    return draw("g", { class: alive(box) ? "box" : "box gone", transform: `translate(${box.x} ${box.y})` },
      draw("title", {}, about),
      draw("rect", { width: box.width, height: 22, rx: 5 }),
      draw("rect", { class: "fill", width: box.width * Math.min(1, alive(box)), height: 3, y: 19, rx: 1.5 }),
      draw("text", { x: 8, y: 15 }, box.shown));
  });
  return draw("svg", { width, height, role: "img", "aria-label": `Particles after step ${at + 1} as a tree; the table has the same texts.` },
    ...edges, ...boxes);
}

// What is alive after a step, equal texts together, the heaviest first.
function rows(history, at) {
  const step = history.steps[at];
  const found = new Map();
  step.ends.forEach((end, i) => {
    const row = found.get(end) ?? { text: history.path(end), n: 0, weight: 0 };
    found.set(end, { ...row, n: row.n + 1, weight: row.weight + step.weights[i] });
  });
  return [...found.values()].sort((a, b) => b.weight - a.weight);
}

const table = (caption, list) => make("table", { class: "texts" },
  make("caption", {}, caption),
  make("thead", {}, make("tr", {}, ["weight", ...(list[0]?.n ? ["particles"] : []), "text"].map((name) => make("th", { scope: "col" }, name)))),
  make("tbody", {}, list.map((row) => make("tr", {},
    make("td", {}, make("span", { class: "bar", style: { "--share": row.weight }, "aria-hidden": "true" }), percent(row.weight)),
    row.n && make("td", {}, row.n),
    make("td", {}, make("code", {}, row.text))))));

// The panel of one answer; `update` as steps come, `finish` with the sampler's report.
export class Particles {
  constructor(panel) {
    this.panel = panel;
    this.clear();
  }

  clear(message = "A sampler of the left column draws several texts at once, and shows here how they went on.") {
    // What was still to be drawn is of the history before.
    cancelAnimationFrame(this.frame);
    this.history = new History();
    this.report = null;
    this.following = true;
    this.panel.replaceChildren(make("p", { class: "empty" }, message));
    this.built = false;
  }

  build() {
    this.built = true;
    this.slider = make("input", { type: "range", min: 1, "aria-label": "Step", oninput: () => {
      this.following = false;
      this.show(this.slider.value - 1);
    } });
    this.facts = make("p", { class: "facts-line" });
    this.ess = make("div", { class: "ess", "aria-hidden": "true" });
    this.picture = make("div", { class: "picture", tabindex: 0, role: "group", "aria-label": "Tree of particles, scrolls sideways" });
    this.listing = make("div");
    this.panel.replaceChildren(this.slider, this.ess, this.facts, this.picture, this.listing);
  }

  update(step) {
    if (!this.built) this.build();
    this.history.add(step);
    const n = this.history.steps.length;
    this.slider.max = n;
    this.ess.append(make("i", { class: step.ancestors ? "resampled" : null,
      style: { "--share": step.ess / Math.max(1, step.logw.length) } }));
    cancelAnimationFrame(this.frame);
    if (this.following) this.frame = requestAnimationFrame(() => this.show(n - 1));
  }

  finish(report) {
    this.report = report;
    if (this.built) this.show(this.history.steps.length - 1);
    else this.panel.replaceChildren(table("Texts that were drawn", report.texts));
  }

  show(at) {
    const step = this.history.steps[at];
    this.slider.value = at + 1;
    [...this.ess.children].forEach((each, other) => each.classList.toggle("now", other === at));
    const resampled = step.ancestors ? ` Resampled: ${new Set(step.ancestors).size} of them live on.` : "";
    this.facts.textContent = `Step ${at + 1} of ${this.history.steps.length}: ${step.logw.length} particles count as `
      + `${step.ess.toFixed(1)}; ${step.finished} have ended.${resampled}`;
    this.slider.setAttribute("aria-valuetext", this.facts.textContent);
    this.picture.replaceChildren(tree(this.history, at));
    const last = at === this.history.steps.length - 1;
    this.listing.replaceChildren(last && this.report ? table("Texts of the result", this.report.texts)
      : table(`Texts after step ${at + 1}`, rows(this.history, at).slice(0, 12)));
  }
}
