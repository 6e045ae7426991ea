// A text field with colours behind it, line numbers, marks, and suggestions at the caret.
//
// The text stays a plain textarea, so that undoing, selecting, dictating and screen readers work as everywhere.

import { make, say } from "./elements.js";

const RULES = {
  json_schema: /("(?:[^"\\\n]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*|\b(?:true|false|null)\b)/g,
  regex: /(\\.|\[(?:\\.|[^\]\n])*\])()|([*+?|(){}^$])/g,
  grammar: /("(?:[^"\\\n]|\\.)*"i?|\/(?:[^/\\\n]|\\.)+\/[a-z]*)()|((?:\/\/|#)[^\n]*)|^([ \t]*[\w?!.-]+)(?=\s*(?:::=|:))/gm,
};

function coloured(text, notation) {
  const rule = RULES[notation] ?? (notation === "choice" || notation === "sql" ? null : RULES.grammar);
  const parts = [];
  let at = 0;
  const add = (end, name) => {
    if (end > at) parts.push({ start: at, end, name });
    at = end;
  };
  for (const match of rule ? text.matchAll(rule) : []) {
    add(match.index, "");
    const name = match[1] !== undefined ? (match[2] ? "c-key" : "c-text") : match[4] !== undefined ? "c-key" : "c-word";
    add(match.index + (match[1] ?? match[0]).length, name);
    add(match.index + match[0].length, "");
  }
  add(text.length, "");
  return parts;
}

// The parts of a text as elements; marks are [start, end, class], and may lie anywhere.
function painted(text, notation, marks) {
  const cuts = new Set(marks.flatMap(([start, end]) => [start, end]));
  return coloured(text, notation).flatMap(({ start, end, name }) => {
    const inside = [start, ...[...cuts].filter((cut) => cut > start && cut < end).sort((a, b) => a - b), end];
    return inside.slice(1).map((to, i) => {
      const over = marks.filter(([from, until]) => from <= inside[i] && to <= until).map((mark) => mark[2]);
      return make("span", { class: [name, ...over].filter(Boolean).join(" ") || null }, text.slice(inside[i], to));
    });
  });
}

export class Editor {
  // `changed` is told of every change; `suggest(text before the caret)` gives suggestions {insert, label}.
  constructor(holder, { changed, suggest }) {
    this.notation = "json_schema";
    this.changed = changed;
    this.suggest = suggest;
    this.marks = [];
    this.options = [];
    this.area = holder.querySelector("textarea");
    this.list = make("ul", { id: "suggestions", class: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true });
    this.back = make("pre", { class: "back", "aria-hidden": "true" });
    this.numbers = make("pre", { class: "numbers", "aria-hidden": "true" });
    holder.prepend(this.numbers, this.back);
    holder.append(this.list);
    this.area.addEventListener("input", (event) => {
      this.paint();
      this.changed();
      if (event.inputType === "insertText" || event.inputType === "insertCompositionText") this.offer(false);
      else this.close();
    });
    this.area.addEventListener("scroll", () => this.scroll());
    this.area.addEventListener("blur", () => this.close());
    this.area.addEventListener("pointerdown", () => this.close());
    this.area.addEventListener("keydown", (event) => this.key(event));
  }

  get text() {
    return this.area.value;
  }

  set(text, notation) {
    this.notation = notation;
    this.area.value = text;
    this.marks = [];
    this.close();
    this.paint();
  }

  mark(marks) {
    this.marks = marks;
    this.paint();
  }

  paint() {
    const text = this.text;
    this.back.replaceChildren(...painted(text, this.notation, this.marks), "\n");
    const lines = text.split("\n").length;
    this.numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
    this.scroll();
  }

  scroll() {
    this.back.scrollTo(this.area.scrollLeft, this.area.scrollTop);
    this.numbers.scrollTop = this.area.scrollTop;
    this.close();
  }

  select(start, end) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
    const line = this.text.slice(0, start).split("\n").length;
    this.area.scrollTop = (line - 4) * parseFloat(getComputedStyle(this.area).lineHeight);
  }

  insert(text) {
    // The one way that keeps the field's own undoing.
    if (!document.execCommand("insertText", false, text)) this.area.setRangeText(text);
  }

  key(event) {
    const open = !this.list.hidden;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === " " && event.ctrlKey) this.offer(true);
    else if (open && by) this.choose((this.chosen + by + this.options.length) % this.options.length);
    else if (open && (event.key === "Enter" || event.key === "Tab") && !event.shiftKey) this.take(this.chosen);
    else if (open && event.key === "Escape") this.close();
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) this.newLine();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  newLine() {
    const before = this.text.slice(0, this.area.selectionStart);
    const indent = /[^\n]*$/.exec(before)[0].match(/^[ \t]*/)[0];
    const opens = this.notation === "json_schema" && /[{[]\s*$/.test(before);
    this.insert(`\n${indent}${opens ? "  " : ""}`);
  }

  async offer(asked) {
    const before = this.text.slice(0, this.area.selectionStart);
    if (!asked && !/["\w,:{$]\s*$/.test(before)) return this.close();
    const options = await this.suggest(before);
    const moved = this.text.slice(0, this.area.selectionStart) !== before || document.activeElement !== this.area;
    if (moved) return undefined;
    this.options = asked ? options : options.filter((one) => one.kind !== "punctuation");
    if (!this.options.length) {
      if (asked) say("No suggestions here.");
      return this.close();
    }
    this.list.replaceChildren(...this.options.map((one, at) => make("li", {
      role: "option", id: `suggestion${at}`, onpointerdown: (event) => { event.preventDefault(); this.take(at); },
    }, make("span", {}, one.label), make("small", {}, one.kind))));
    this.place(before);
    this.list.hidden = false;
    this.area.setAttribute("aria-controls", "suggestions");
    this.choose(0);
    say(`${this.options.length} suggestions. Arrow keys choose, Enter takes one.`);
    return undefined;
  }

  place(before) {
    const style = getComputedStyle(this.area);
    const line = before.split("\n").length;
    const column = /[^\n]*$/.exec(before)[0].length;
    const width = (this.width ??= this.measure());
    const left = this.area.offsetLeft + parseFloat(style.paddingLeft) + column * width - this.area.scrollLeft;
    const top = parseFloat(style.paddingTop) + line * parseFloat(style.lineHeight) - this.area.scrollTop;
    this.list.style.left = `${Math.max(0, Math.min(left, this.area.parentElement.clientWidth - 220))}px`;
    this.list.style.top = `${top}px`;
  }

  measure() {
    const probe = make("span", { class: "probe" }, "m".repeat(50));
    this.back.append(probe);
    const width = probe.getBoundingClientRect().width / 50;
    probe.remove();
    return width;
  }

  choose(at) {
    this.chosen = at;
    [...this.list.children].forEach((item, other) => item.setAttribute("aria-selected", other === at));
    this.list.children[at].scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `suggestion${at}`);
  }

  take(at) {
    const { insert } = this.options[at];
    this.close();
    this.insert(insert);
    this.offer(false);
  }

  close() {
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
    this.area.removeAttribute("aria-controls");
  }
}

// The same colours without a field, for a text that is only shown.
export const shown = (text, notation, marks) => painted(text, notation, marks);
