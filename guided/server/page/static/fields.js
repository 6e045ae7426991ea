// The answer's JSON as a tree that fills in while it is written, with the probability of each field.
//
// Of one text a field's probability is that of its tokens, one after the other, in the law they were drawn from. Of a
// sampler's texts it is their weight: then each value that the field has in any of them is listed.

import { make, percent } from "./elements.js";
import { pointer } from "./json_text.js";

const meter = (share) => make("span", { class: "bar", style: { "--share": share }, "aria-hidden": "true" });

const leaf = (node) => (node.kind === "string" ? JSON.stringify(node.value) : node.done ? String(node.value) : "…");

function probability(node, tokens) {
  const own = tokens.filter((token) => token.start < node.end && token.end > node.start && token.logprob !== null);
  return own.length ? Math.exp(own.reduce((sum, token) => sum + token.logprob, 0)) : NaN;
}

function summary(node) {
  const n = node.children.length;
  const what = node.kind === "object" ? (n === 1 ? "field" : "fields") : n === 1 ? "item" : "items";
  return `${n} ${what}`;
}

function value(node, tokens, posteriors, others) {
  const posterior = posteriors?.[pointer(node)];
  const container = node.kind === "object" || node.kind === "array";
  const share = posterior ? posterior.alternatives[0]?.probability : probability(node, tokens);
  const shown = container ? summary(node) : leaf(node);
  const other = others?.get(pointer(node));
  const line = [
    node.parent && make("span", { class: "name" }, `${node.key}`),
    make("span", { class: `value ${node.kind ?? ""} ${node.done ? "" : "open"}` }, node.kind ? shown : "…"),
    others && !container && other !== shown && make("span", { class: "chip differs" }, "differs"),
    Number.isFinite(share) && make("span", { class: "share" }, meter(share), make("span", {}, percent(share))),
  ].filter(Boolean);
  const rest = container ? [] : (posterior?.alternatives ?? []).slice(1, 5);
  const absent = posterior?.absent > 0.0005;
  const choices = (rest.length > 0 || absent) && make("ul", { class: "others" },
    rest.map((one) => make("li", {}, make("span", { class: "value" }, JSON.stringify(one.value)),
      make("span", { class: "share" }, meter(one.probability), make("span", {}, percent(one.probability))))),
    absent && make("li", {}, make("em", {}, "absent"),
      make("span", { class: "share" }, meter(posterior.absent), make("span", {}, percent(posterior.absent)))));
  const below = container && node.children.length > 0 && make("ul", {},
    node.children.map((child) => value(child, tokens, posteriors, others)));
  return make("li", {}, make("div", { class: "field" }, line), choices, below);
}

// Each leaf by its pointer, to be compared with another answer's.
export function leaves(node, found = new Map()) {
  if (node.children.length) node.children.forEach((child) => leaves(child, found));
  else if (node.kind) found.set(pointer(node), leaf(node));
  return found;
}

export function showFields(panel, root, tokens, posteriors, others) {
  if (!["object", "array"].includes(root.kind)) {
    panel.replaceChildren(make("p", { class: "empty" }, root.kind ? "The answer is no object or list." : "Fields appear here as they are written."));
    return;
  }
  panel.replaceChildren(make("ul", { class: "tree" }, value(root, tokens, posteriors, others)));
}
