// The card beside a token: its probabilities, what might have come instead, and why some of that was refused.

import { ask } from "./client.js";
import { byId, make, percent, visible } from "./elements.js";

const PATIENCE = 150;

const bar = (share, name) => make("span", { class: `bar ${name}`, style: { "--share": share } });
const chance = (logprob) => (logprob === null ? 0 : Math.exp(logprob));

export class TokenCard {
  constructor() {
    this.element = byId("card");
    this.pinned = false;
    this.known = new Map();
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.hide(true);
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target) && !event.target.closest(".token")) this.hide();
    });
    addEventListener("scroll", () => !this.pinned && this.hide(), { passive: true });
  }

  // `asked` says how to ask for reasons: {model, grammar, prefix_ids}; null where there is no grammar.
  show(button, token, asked, pin) {
    if ((this.pinned && !pin) || this.returning) return;
    clearTimeout(this.leaving);
    this.button?.removeAttribute("aria-describedby");
    this.button = button;
    this.pinned = pin;
    button.setAttribute("aria-describedby", "card");
    this.element.replaceChildren(...this.content(token, asked));
    this.element.hidden = false;
    this.place();
    if (pin) this.element.querySelector("button")?.focus();
  }

  leave() {
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => !this.pinned && !this.element.matches(":hover") && this.hide(), 120);
  }

  hide(back = false) {
    clearTimeout(this.waiting);
    this.element.hidden = true;
    this.pinned = false;
    this.button?.removeAttribute("aria-describedby");
    this.returning = true;
    if (back) this.button?.focus();
    this.returning = false;
  }

  place() {
    const at = this.button.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    const under = at.bottom + 8 + own.height < innerHeight || at.top < own.height + 8;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8));
    this.element.style.left = `${left}px`;
    this.element.style.top = `${under ? Math.min(at.bottom + 8, innerHeight - own.height - 8) : at.top - own.height - 8}px`;
  }

  content(token, asked) {
    const facts = [
      ["drawn with", token.logprob === null ? "not said" : percent(chance(token.logprob))],
      ["model alone", token.model_logprob === null ? "not said" : percent(chance(token.model_logprob))],
      ["taken by mask", token.removed === null ? "not said" : percent(token.removed)],
    ];
    const place = make("p", { class: "why" });
    const rows = token.alternatives.map((one) => this.row(one, token, asked));
    clearTimeout(this.waiting);
    // A token that is only passed over asks for nothing.
    if (asked) this.waiting = setTimeout(() => {
      this.reason(token.id, asked, place);
      rows.find((row) => row.explain)?.explain();
    }, PATIENCE);
    return [
      make("div", { class: "head" },
        make("code", { class: "big" }, token.bytes.length ? visible(token.text) : "end of text"),
        token.drafted && make("span", { class: "chip drafted" }, "drafted"),
        make("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => this.hide(true) }, "✕")),
      make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
      rows.length > 0 && make("table", {},
        make("caption", {}, "What might have come"),
        make("thead", {}, make("tr", {}, ["token", "model", "drawn", "reason"].map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, rows.flatMap((row) => row.elements))),
      place,
    ].filter(Boolean);
  }

  row(one, token, asked) {
    const answer = make("td", { colspan: 4, class: "why" });
    const below = make("tr", { class: "reason", hidden: true }, answer);
    const explain = async () => {
      below.hidden = false;
      if (one.why) answer.textContent = one.why;
      else await this.reason(one.id, asked, answer);
      this.place();
    };
    const refused = !one.allowed;
    const why = refused && (asked || one.why)
      && make("button", { type: "button", class: "link", onclick: explain, "aria-label": `Why is ${visible(one.text)} refused?` }, "why?");
    const row = make("tr", { class: refused ? "refused" : one.id === token.id ? "taken" : null },
      make("th", { scope: "row" }, make("code", {}, one.bytes.length ? visible(one.text) : "end")),
      make("td", {}, bar(chance(one.model_logprob), "model"), percent(chance(one.model_logprob))),
      make("td", {}, refused ? "refused" : percent(chance(one.logprob))),
      make("td", {}, why));
    return { elements: [row, below], explain: why && explain };
  }

  async reason(id, asked, element) {
    const name = JSON.stringify([asked.grammar, asked.prefix_ids, id]);
    element.textContent = "…";
    try {
      if (!this.known.has(name)) this.known.set(name, await ask("/v1/guided/explain", { ...asked, token: id }));
      element.textContent = this.known.get(name).why;
    } catch (error) {
      element.textContent = error.message;
    }
    if (!this.element.hidden) this.place();
  }
}
