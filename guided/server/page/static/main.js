// The page put together: the form, its editor, one or two answers, and what is kept when the page is opened again.

import { Answer } from "./answer.js";
import { ask, key } from "./client.js";
import { Editor } from "./editor.js";
import { byId, make, say } from "./elements.js";
import { EXAMPLES } from "./examples.js";
import { find, read } from "./json_text.js";
import { NOTATIONS, language } from "./request.js";
import { TokenCard } from "./token_card.js";

const QUIET = 400;
const NOBODY = { samplers: [], searches: [], steerers: [], drafts: [], databases: [] };
const KEPT = "guided.form";

const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
let model = null;
let checking = 0;

// Settings of an answer: a copy of the template's fields, read when asked.

const option = (value, text = value) => make("option", { value }, text);

function settingsOf(letter) {
  const fields = byId("settings").content.firstElementChild.cloneNode(true);
  fields.querySelector("legend").textContent = `Settings ${letter}`;
  for (const input of fields.querySelectorAll("[name]")) {
    input.id = `${input.name}${letter}`;
    const label = fields.querySelector(`[data-for=${input.name}]`);
    if (label) label.htmlFor = input.id;
  }
  const field = (name) => fields.querySelector(`[name=${name}]`);
  const number = (name) => (field(name).value === "" ? null : Number(field(name).value));
  function fit() {
    const [kind] = field("method").value.split(":");
    field("particles").closest("div").hidden = kind === "token";
    for (const name of ["temperature", "top_p", "seed"]) field(name).disabled = kind === "search";
    field("draft").disabled = kind === "search";
    if (kind === "sampler" && number("temperature") === 0) field("temperature").value = "1";
  }
  field("method").addEventListener("change", fit);
  fields.addEventListener("input", changed);
  return {
    element: fields,
    fill(abilities) {
      const { method, steer, draft } = this.values();
      const group = (label, kind, names) => names.length > 0
        && make("optgroup", { label }, names.map((name) => option(`${kind}:${name}`, name)));
      field("method").replaceChildren(...[option("token:", "token by token"), group("Samplers of whole texts", "sampler", abilities.samplers),
        group("Searches", "search", abilities.searches)].filter(Boolean));
      field("steer").replaceChildren(option("", "none"), ...abilities.steerers.map((name) => option(name)));
      field("draft").replaceChildren(option("", "none"), ...abilities.drafts.map((name) => option(name)));
      this.set({ method, steer, draft });
    },
    values: () => ({
      method: field("method").value || "token:", particles: number("particles") ?? 16,
      temperature: number("temperature") ?? 0, top_p: number("top_p") ?? 1, max_tokens: number("max_tokens"),
      seed: number("seed"), steer: field("steer").value, draft: field("draft").value, constrained: field("constrained").checked,
    }),
    set(values) {
      for (const [name, value] of Object.entries(values)) {
        const input = field(name);
        if (input.type === "checkbox") input.checked = value;
        else if (input.tagName !== "SELECT" || [...input.options].some((one) => one.value === value)) input.value = value ?? "";
      }
      fit();
    },
  };
}

// The form

const form = () => ({ model: byId("model").value, notation: byId("notation").value, text: editor.text, prompt: byId("prompt").value });

const editor = new Editor(byId("editor"), { changed, suggest });
const card = new TokenCard();
const settings = ["A", "B"].map(settingsOf);
const placed = (text, marks) => text === editor.text && editor.mark(marks);
const answers = settings.map((own, at) => new Answer("AB"[at], card, { form, settings: () => own.values(), placed, compared }));
const shownAnswers = () => (byId("compare").checked ? answers : answers.slice(0, 1));

async function suggest(text) {
  if (byId("notation").value !== "json_schema" || !model) return [];
  try {
    return (await ask("/v1/guided/complete", { model: byId("model").value, text })).suggestions;
  } catch {
    return [];
  }
}

function changed() {
  editor.mark([]);
  sessionStorage.setItem(KEPT, JSON.stringify({ ...form(), compare: byId("compare").checked, settings: settings.map((own) => own.values()) }));
  shownAnswers().forEach((answer) => answer.showRequest(Boolean(key.get())));
  clearTimeout(checking);
  checking = setTimeout(check, QUIET);
}

function verdict(kind, words, at) {
  const go = at && make("button", { type: "button", class: "link", onclick: () => editor.select(...at) },
    `line ${editor.text.slice(0, at[0]).split("\n").length}`);
  byId("verdict").className = `verdict ${kind}`;
  byId("verdict").replaceChildren(...[go, go && ": ", words].filter(Boolean));
  if (at) editor.mark([[at[0], Math.max(at[1], at[0] + 1), "fault"]]);
}

// The span that a message's place names: a JSON pointer, or a line and column.
function span(where) {
  const text = editor.text;
  const named = /#?(?:\/[^\s,;:]*)+|#/.exec(where ?? "");
  const node = named && byId("notation").value === "json_schema" && find(read(text).root, named[0]);
  if (node) return [node.keyStart ?? node.start, node.end];
  const line = /line (\d+)(?:, (?:column|col) (\d+))?/.exec(where ?? "");
  if (!line) return undefined;
  const start = text.split("\n").slice(0, line[1] - 1).join("\n").length + (line[1] > 1 ? 1 : 0);
  return line[2] ? [start + Number(line[2]) - 1, start + Number(line[2])] : [start, start + text.slice(start).split("\n")[0].length];
}

async function check() {
  const asked = form();
  if (asked.notation === "none") return verdict("", "Any text may be written.");
  if (asked.notation === "json_schema") {
    const { error } = read(asked.text);
    if (error) return verdict(error.early ? "wait" : "bad", error.message, error.early ? undefined : [error.at, error.at + 1]);
  }
  if (!model) return undefined;
  try {
    const found = await ask("/v1/guided/check", { model: asked.model, grammar: language(asked) });
    if (asked.text !== editor.text || asked.notation !== byId("notation").value) return undefined;
    if (found.fault) {
      const { message, where, remedy } = found.fault;
      return verdict("bad", [message, where && `at ${where}`, remedy].filter(Boolean).join(". ").replace(/\.\./g, "."), span(where ?? message));
    }
    const notes = [...found.notes, ...found.keywords.filter((one) => one.reason).map((one) => `${one.pointer}: ${one.reason}`)];
    return verdict("good", `Enforced exactly; the shortest text has ${found.shortest} tokens. ${notes.slice(0, 2).join(" ")}`);
  } catch (error) {
    return verdict("bad", error.message, span(error.where));
  }
}

function compared() {
  const [a, b] = answers;
  const both = byId("compare").checked && a.began && b.began;
  a.compareWith(both ? b : null);
  b.compareWith(both ? a : null);
  const running = shownAnswers().some((answer) => answer.ended === null);
  byId("run").textContent = running ? "Stop" : "Run";
  byId("comparison").hidden = !both;
  if (!both) return;
  const [left, right] = [a, b].map((answer) => new Map(answer.facts()));
  const same = a.text === b.text ? "Both answers are the same text." : "The answers differ.";
  byId("comparison").replaceChildren(make("table", {},
    make("caption", {}, same),
    make("thead", {}, make("tr", {}, ["", "A", "B"].map((name) => make("th", { scope: "col" }, name || "measure")))),
    make("tbody", {}, [...new Set([...left.keys(), ...right.keys()])].map((name) => make("tr", {},
      make("th", { scope: "row" }, name), make("td", {}, left.get(name) ?? "–"), make("td", {}, right.get(name) ?? "–"))))));
}

async function run() {
  if (byId("run").textContent === "Stop") return answers.forEach((answer) => answer.stop());
  card.hide();
  const started = shownAnswers().map((answer) => answer.run());
  compared();
  say("Running.");
  await Promise.all(started);
  return compared();
}

function compare() {
  const two = byId("compare").checked;
  byId("answers").classList.toggle("two", two);
  settings[0].element.querySelector("legend").textContent = two ? "Settings A" : "Settings";
  settings[1].element.hidden = answers[1].element.hidden = !two;
  changed();
  compared();
}

function use({ notation, text, prompt }) {
  byId("notation").value = notation;
  byId("prompt").value = prompt;
  editor.set(text, notation);
  changed();
}

async function connect() {
  const state = byId("server");
  try {
    const found = (await ask("/v1/models")).data;
    model = found[0];
    byId("model").replaceChildren(...found.map((one) => option(one.id)));
    settings.forEach((own) => own.fill({ ...NOBODY, ...model.guided }));
    state.textContent = model.guided?.toy ? "a toy model: right form, often wrong content" : "connected";
    state.className = "chip done";
    byId("keyed").hidden = true;
  } catch (error) {
    state.textContent = error.status === 401 ? "a key is needed" : "no server";
    state.className = "chip failed";
    byId("keyed").hidden = error.status !== 401;
  }
  // Methods and drafts can be chosen only now that the server has named them.
  kept?.settings.forEach((values, at) => settings[at].set(values));
  changed();
}

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("guided.theme", name);
  byId("theme").value = name;
}

// Begin

byId("notation").replaceChildren(...Object.entries(NOTATIONS).map(([value, text]) => option(value, text)));
byId("examples").append(...EXAMPLES.map((one, at) => option(at, one.name)));
byId("allsettings").append(...settings.map((own) => own.element));
byId("answers").append(...answers.map((answer) => answer.element));
settings[1].set({ temperature: 1, seed: 1 });
theme(localStorage.getItem("guided.theme") ?? "auto");
byId("theme").addEventListener("change", (event) => theme(event.target.value));
byId("examples").addEventListener("change", (event) => EXAMPLES[event.target.value] && use(EXAMPLES[event.target.value]));
byId("notation").addEventListener("change", () => {
  // A database is only named, and usually there is one.
  const text = byId("notation").value === "sql" ? (model?.guided?.databases[0] ?? "") : editor.text;
  editor.set(text, byId("notation").value);
  changed();
});
byId("prompt").addEventListener("input", changed);
byId("compare").addEventListener("change", compare);
byId("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
byId("keyed").addEventListener("submit", (event) => { event.preventDefault(); key.set(byId("key").value); connect(); });
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
byId("compare").checked = kept?.compare ?? false;
use(kept ?? EXAMPLES[0]);
compare();
connect();
