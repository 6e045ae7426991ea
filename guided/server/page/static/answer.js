// One answer: the request is sent, tokens come, and each view of it is kept up to date.

import { ask, stream } from "./client.js";
import { make, percent, rove, say, tabs, visible } from "./elements.js";
import { shown } from "./editor.js";
import { leaves, showFields } from "./fields.js";
import { innermost, pointer, read } from "./json_text.js";
import { Particles } from "./particles.js";
import { body, curl, language, python } from "./request.js";
import { pointers, schemasOf } from "./schema_place.js";

// Levels of what the mask took away, in the legend's words and the style sheet's classes.
const LEVELS = [0.01, 0.1, 0.5, 0.9];
const level = (removed) => LEVELS.filter((bound) => removed >= bound).length;

const nats = (value) => (Number.isFinite(value) ? value.toFixed(2) : "–");

export class Answer {
  constructor(name, card, { form, settings, placed, compared }) {
    Object.assign(this, { name, card, form, settings, placed, compared });
    this.state = make("span", { class: "chip state" }, "Ready");
    this.note = make("p", { class: "note", role: "alert" });
    this.metrics = make("dl", { class: "metrics" });
    this.strip = make("div", { class: "strip", role: "group", "aria-label": `Tokens of answer ${name}` });
    this.fields = make("div");
    this.place = make("div");
    this.particles = new Particles(make("div"));
    this.code = make("div");
    this.tabs = tabs(`Views of answer ${name}`, [["Fields", this.fields], ["Particles", this.particles.panel],
      ["Place in schema", this.place], ["Request", this.code]]);
    this.element = make("section", { class: "answer card", "aria-labelledby": `answer${name}` },
      make("header", {}, make("h2", { id: `answer${name}` }, "Answer", make("span", { class: "letter" }, ` ${name}`)), this.state),
      this.note, this.metrics, this.strip, this.tabs.list, this.fields, this.particles.panel, this.place, this.code);
    this.strip.addEventListener("pointerover", (event) => this.look(event, false));
    this.strip.addEventListener("pointerout", () => this.card.leave());
    this.strip.addEventListener("focusin", (event) => this.look(event, false));
    this.strip.addEventListener("focusout", () => this.card.leave());
    this.strip.addEventListener("click", (event) => this.look(event, true));
    rove(this.strip, ".token");
    this.clear();
  }

  clear() {
    this.tokens = [];
    this.text = "";
    this.usage = null;
    this.report = null;
    this.json = read("");
    this.note.textContent = "";
    this.strip.replaceChildren(make("p", { class: "empty" }, "Tokens appear here as they come. Hover or focus one to see what else might have come."));
    this.metrics.replaceChildren();
    this.particles.clear();
    showFields(this.fields, this.json.root, [], null, null);
    this.showPlace(null);
  }

  stop() {
    this.controller?.abort();
  }

  async run() {
    this.stop();
    this.clear();
    const controller = this.controller = new AbortController();
    const form = this.form(), settings = this.settings();
    this.asked = null;
    this.schema = null;
    this.began = performance.now();
    this.first = null;
    this.set("Running", "running");
    try {
      const request = body(form, settings, true);
      if (request.guided?.grammar) this.asked = { model: form.model, grammar: language(form) };
      if (this.asked && form.notation === "json_schema") this.schema = { text: form.text, root: read(form.text).root };
      if (settings.method !== "token:") this.tabs.show(1);
      let decoder = new TextDecoder();
      for await (const event of stream("/v1/chat/completions", request, controller.signal)) {
        if (controller.signal.aborted) return;
        this.first ??= performance.now();
        this.usage = event.usage ?? this.usage;
        if (event.guided?.step) this.particles.update(event.guided.step);
        for (const choice of event.choices) {
          if (choice.guided?.tokens) choice.guided.tokens.forEach((token) => this.take(token, decoder));
          else if (choice.delta.content) this.text += choice.delta.content;
          if (choice.guided?.sampler || choice.guided?.search) this.finish(choice.guided.sampler ?? choice.guided.search);
          if (choice.finish_reason) this.reason = choice.finish_reason;
        }
        this.refresh();
      }
      this.ended = performance.now();
      this.refresh(true);
      this.set(this.reason === "length" ? "Cut at the limit" : "Done", "done");
      say(`Answer ${this.name} is done: ${this.usage?.completion_tokens ?? this.tokens.length} tokens.`);
    } catch (error) {
      if (error.name === "AbortError") this.set("Stopped", "stopped");
      else this.fail(error);
    } finally {
      this.ended ??= performance.now();
      if (this.controller === controller) this.compared();
    }
  }

  set(words, name) {
    this.state.textContent = words;
    this.state.className = `chip state ${name}`;
    if (name === "running") this.ended = null;
    this.strip.setAttribute("aria-busy", name === "running");
  }

  fail(error) {
    this.set("Refused", "failed");
    const where = [error.param, error.where].filter(Boolean).join(", ");
    this.note.textContent = error.message + (where && !error.message.includes(error.param) ? ` (${where})` : "");
  }

  take(token, decoder) {
    const start = this.text.length;
    this.text += decoder.decode(new Uint8Array(token.bytes), { stream: true });
    const at = this.tokens.length;
    if (at === 0) this.strip.replaceChildren();
    this.tokens.push({ ...token, start, end: this.text.length });
    const name = ["token", token.removed !== null && `removed${level(token.removed)}`, token.drafted && "drafted", !token.bytes.length && "special"];
    const said = (share) => (share === null ? "not said" : percent(share));
    const label = `${token.bytes.length ? token.text : "end of text"}: probability ${said(token.logprob === null ? null : Math.exp(token.logprob))}, `
      + `mask took ${said(token.removed)}${token.drafted ? ", drafted" : ""}`;
    this.strip.append(make("button", { type: "button", class: name.filter(Boolean).join(" "), "data-at": at,
      tabindex: at ? -1 : 0, "aria-label": label }, token.bytes.length ? token.text.replace(/\n/g, "↵\n") : "■"));
  }

  finish(report) {
    this.report = report;
    if (report.particles) this.particles.finish(report);
    else {
      this.particles.clear();
      this.particles.panel.replaceChildren(make("table", { class: "texts" },
        make("caption", {}, "Texts that the search found"),
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "log p"), make("th", { scope: "col" }, "text"))),
        make("tbody", {}, report.texts.map((one) => make("tr", {}, make("td", {}, nats(one.score)), make("td", {}, make("code", {}, one.text)))))));
    }
    this.strip.replaceChildren(make("code", { class: "plain" }, this.text || report.texts[0]?.text || ""));
  }

  // Views are drawn at most once a frame.
  refresh(now = false) {
    cancelAnimationFrame(this.frame);
    const draw_all = () => {
      this.json = read(this.text);
      showFields(this.fields, this.json.root, this.tokens, this.report?.fields, this.others);
      this.showMetrics();
      if (this.tokens.length) this.showPlace(this.tokens.at(-1));
    };
    if (now) draw_all();
    else this.frame = requestAnimationFrame(draw_all);
  }

  compareWith(other) {
    this.others = other && leaves(other.json.root);
    showFields(this.fields, this.json.root, this.tokens, this.report?.fields, this.others);
  }

  facts() {
    const seconds = ((this.ended ?? performance.now()) - this.began) / 1000;
    const n = this.usage?.completion_tokens ?? this.tokens.length;
    const sum = (name) => this.tokens.reduce((all, token) => all + (token[name] ?? NaN), 0);
    const found = [["tokens", String(n)], ["time", `${seconds.toFixed(2)} s`], ["tokens/s", (n / seconds).toFixed(0)]];
    if (this.tokens.length) {
      const drafted = this.tokens.filter((token) => token.drafted).length / this.tokens.length;
      found.push(["log p drawn", nats(sum("logprob"))], ["log p model", nats(sum("model_logprob"))],
        ["mask took", percent(sum("removed") / this.tokens.length)]);
      if (drafted) found.push(["drafted", percent(drafted)]);
    }
    if (this.report?.particles) {
      const { log_ml: z, log_ml_error: error, ess, particles } = this.report;
      found.push(["log Z", z === null ? "–" : nats(z) + (error === null ? "" : ` ± ${nats(error)}`)]);
      found.push(["ESS", ess === null ? "–" : `${ess.toFixed(1)} of ${particles}`]);
    }
    return found;
  }

  showMetrics() {
    this.metrics.replaceChildren(...this.facts().map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }

  look(event, pin) {
    const button = event.target.closest(".token");
    if (!button) return;
    const at = Number(button.dataset.at);
    const asked = this.asked && { ...this.asked, prefix_ids: this.tokens.slice(0, at).map((token) => token.id) };
    this.card.show(button, this.tokens[at], asked, pin);
    this.showPlace(this.tokens[at]);
  }

  showPlace(token) {
    if (!this.schema || !token) {
      const words = this.asked && !this.schema ? "The grammar is no JSON Schema: a token's card says what the grammar expected."
        : "With a JSON Schema this shows which part of it is being filled in.";
      this.place.replaceChildren(make("p", { class: "empty" }, words));
      return;
    }
    const { node, name } = innermost(this.json.root, token.start);
    const schemas = schemasOf(this.schema.root, name ? node.parent : node).filter((one) => one.kind);
    // The whole schema is no place.
    const spans = schemas.filter((one) => one.parent).map((one) => [one.keyStart ?? one.start, one.end, "here"]);
    this.placed(this.schema.text, spans.slice(-1));
    const crumbs = pointer(node).split("/").slice(1);
    this.place.replaceChildren(
      make("p", { class: "crumbs" }, make("span", {}, "answer"), crumbs.map((crumb) => [" › ", make("b", {}, crumb)]),
        name ? " (its name)" : node.done ? "" : " (in progress)"),
      make("p", { class: "pointers" }, schemas.length ? "described by " : "no part of the schema describes it",
        pointers(schemas).map((one) => make("code", {}, one))),
      make("pre", { class: "listing", tabindex: 0, role: "group", "aria-label": "The schema, with the place marked" }, shown(this.schema.text, "json_schema", spans.slice(-1))));
    // Only the listing scrolls: the page stays where its reader is.
    const listing = this.place.lastChild, here = listing.querySelector(".here");
    if (here) listing.scrollTop = here.offsetTop - listing.offsetTop - 40;
  }

  // The request to copy, as the form stands now.
  showRequest(keyed) {
    let request;
    try {
      request = body(this.form(), this.settings(), false);
    } catch {
      this.code.replaceChildren(make("p", { class: "empty" }, "The schema is no JSON yet."));
      return;
    }
    const texts = [["curl", curl(request, location.origin, keyed)], ["Python", python(request, location.origin, keyed)]];
    this.code.replaceChildren(...texts.map(([name, text]) => make("figure", { class: "code" },
      make("figcaption", {}, name, make("button", { type: "button", class: "quiet", onclick: async () => {
        await navigator.clipboard.writeText(text);
        say(`Copied as ${name}.`);
      } }, `Copy ${name}`)),
      make("pre", { tabindex: 0, role: "group", "aria-label": name }, text))));
  }
}
