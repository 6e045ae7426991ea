// Building elements. Text is always text: nothing on the page is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

// For screen readers, of what changed elsewhere on the page; the latest message wins.
let timer = 0;
export function say(message) {
  clearTimeout(timer);
  timer = setTimeout(() => { byId("said").textContent = message; }, 300);
}

// Spaces and line breaks that can be seen.
export const visible = (text) => text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·");

export const percent = (share) => {
  if (!Number.isFinite(share)) return "–";
  if (share === 0) return "0 %";
  if (share > 0.9995) return share > 1 - 1e-9 ? "100 %" : ">99.9 %";
  if (share > 0 && share < 0.001) return "<0.1 %";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
};

// One of a group is in the order of focus; arrow keys, Home and End move among the rest.
export function rove(group, selector, vertical = false) {
  group.addEventListener("keydown", (event) => {
    const from = event.target.closest(selector);
    if (!from || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = [...group.querySelectorAll(selector)];
    const [back, on] = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const to = { [back]: all.indexOf(from) - 1, [on]: all.indexOf(from) + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].focus();
  });
  group.addEventListener("focusin", (event) => {
    const to = event.target.closest(selector);
    if (!to) return;
    for (const other of group.querySelectorAll(`${selector}[tabindex="0"]`)) other.tabIndex = -1;
    to.tabIndex = 0;
  });
}

// Tabs by the pattern of the ARIA authoring practices: `pages` are [name, panel element].
export function tabs(label, pages) {
  const list = make("div", { class: "tabs", role: "tablist", "aria-label": label });
  const id = `t${Math.random().toString(36).slice(2)}`;
  const buttons = pages.map(([name, panel], at) => {
    panel.id = `${id}p${at}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `${id}b${at}`);
    panel.tabIndex = 0;
    return make("button", {
      type: "button", role: "tab", id: `${id}b${at}`, "aria-controls": panel.id, tabindex: -1,
      onclick: () => show(at), onfocus: () => show(at),
    }, name);
  });
  function show(at) {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-selected", other === at);
      button.tabIndex = other === at ? 0 : -1;
      pages[other][1].hidden = other !== at;
    });
  }
  list.append(...buttons);
  rove(list, "[role=tab]");
  show(0);
  return { list, show, button: (at) => buttons[at] };
}
