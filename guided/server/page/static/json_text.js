// A JSON text that may be unfinished, as a tree of values that know where they stand in it.
//
// A node is {kind, start, end, done, parent, key, keyStart, keyEnd, value, children}: kind is object, array, string,
// number or word; key is a member's name or an item's index. `error` is where the text stops being JSON.

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const NUMBER_SO_FAR = /-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d*)?)?/y;
const WORDS = { t: "true", f: "false", n: "null" };

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.error = null;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text)[0];
  }

  space() {
    this.at += this.match(SPACE).length;
    return this.text[this.at];
  }

  fail(message, at = this.at) {
    this.error ??= { at, message, early: at >= this.text.length };
    return false;
  }

  // Each of these reads one value into a node, and says whether it is whole.
  value(node) {
    const first = this.space();
    node.start = this.at;
    const whole = this[{ "{": "object", "[": "array", '"': "string" }[first] ?? "plain"](node, first);
    node.end = this.at;
    node.done = whole;
    return whole;
  }

  object(node) {
    node.kind = "object";
    this.at++;
    for (let more = false; ; more = true) {
      let next = this.space();
      if (next === "}" && !more) break;
      if (next !== '"') return this.fail(more ? "a name is missing after the comma" : "a name in quotes or } is missing");
      const member = { parent: node, children: [], keyStart: this.at, key: null };
      const named = this.string(member);
      Object.assign(member, { key: member.value, keyEnd: this.at, kind: null, value: undefined, start: this.at,
        end: this.at, done: false });
      node.children.push(member);
      if (!named) return false;
      if (this.space() !== ":") return this.fail("a colon is missing after the name");
      this.at++;
      if (!this.value(member)) return false;
      next = this.space();
      if (next === "}") break;
      if (next !== ",") return this.fail("a comma or } is missing");
      this.at++;
    }
    this.at++;
    return true;
  }

  array(node) {
    node.kind = "array";
    this.at++;
    for (let more = false; ; more = true) {
      if (this.space() === "]" && !more) break;
      if (this.at >= this.text.length) return this.fail("a value or ] is missing");
      const item = { parent: node, key: node.children.length, children: [], kind: null };
      node.children.push(item);
      if (!this.value(item)) return false;
      const next = this.space();
      if (next === "]") break;
      if (next !== ",") return this.fail("a comma or ] is missing");
      this.at++;
    }
    this.at++;
    return true;
  }

  string(node) {
    node.kind = "string";
    const body = this.match(STRING);
    this.at += body.length;
    const whole = this.text[this.at] === '"';
    node.value = JSON.parse(`${body}"`);
    if (!whole) {
      const cut = this.at >= this.text.length || /^\\(u[0-9a-fA-F]{0,3})?$/.test(this.text.slice(this.at));
      if (!cut) return this.fail("this cannot stand in a string: a line break or an unknown escape");
      this.at = this.text.length;
      return this.fail("the string has no closing quote");
    }
    this.at++;
    return true;
  }

  plain(node, first) {
    if (first === undefined) return this.fail("a value is missing");
    const word = WORDS[first];
    if (word) {
      node.kind = "word";
      const rest = this.text.slice(this.at, this.at + word.length);
      if (!word.startsWith(rest)) return this.fail(`this is no value; ${word}?`);
      this.at += rest.length;
      node.value = JSON.parse(word);
      return rest === word || this.fail("the value is unfinished");
    }
    NUMBER_SO_FAR.lastIndex = NUMBER.lastIndex = this.at;
    const so_far = NUMBER_SO_FAR.exec(this.text)[0];
    if (!so_far) return this.fail("this is no value");
    node.kind = "number";
    const whole = NUMBER.exec(this.text)?.[0];
    node.value = whole === undefined ? NaN : Number(whole);
    this.at += so_far.length;
    if (whole === so_far) return true;
    return this.fail("the number is unfinished");
  }
}

export function read(text) {
  const reader = new Reader(text);
  const root = { parent: null, key: null, children: [], kind: null, start: 0, end: 0, done: false };
  if (reader.value(root) && reader.space() !== undefined) reader.fail("more text follows the value");
  return { root, error: reader.error };
}

const escaped = (key) => String(key).replace(/~/g, "~0").replace(/\//g, "~1");

export const pointer = (node) => (node.parent ? `${pointer(node.parent)}/${escaped(node.key)}` : "");

export const member = (node, key) => node?.children.findLast((child) => child.key === key);

// The node that a pointer names ("#" in front or not), or undefined.
export function find(root, text) {
  let node = root;
  for (const part of text.replace(/^#/, "").split("/").slice(1)) {
    const key = decodeURIComponent(part).replace(/~1/g, "/").replace(/~0/g, "~");
    node = node && member(node, node.kind === "array" ? Number(key) : key);
  }
  return node;
}

// The innermost value around an offset; `name` where that is in a member's name.
export function innermost(root, offset) {
  let node = root;
  for (;;) {
    const inside = node.children.find((child) => (child.keyStart ?? child.start) <= offset && offset < child.end);
    if (!inside) return { node, name: false };
    if (inside.keyEnd > offset) return { node: inside, name: true };
    node = inside;
  }
}
