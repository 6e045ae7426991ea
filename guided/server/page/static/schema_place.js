// Where in a JSON Schema a value of an unfinished JSON text is described: the reader's view, by names and positions.
//
// Branches of anyOf and the like are all followed, but for those that the text already contradicts. What the engine
// itself expects is the server's to say (/v1/guided/explain).

import { find, member, pointer } from "./json_text.js";

const TYPES = { object: "object", array: "array", string: "string", number: ["number", "integer"] };
const DEEPEST = 60;

const text = (node) => (node?.kind === "string" ? node.value : undefined);

function plain(node) {
  if (node.kind === "object") return Object.fromEntries(node.children.map((child) => [child.key, plain(child)]));
  return node.kind === "array" ? node.children.map(plain) : node.value;
}

// Whether the schema's own words already exclude what is there of the value.
function contradicts(schema, value) {
  if (schema.kind === "word") return schema.value === false;
  if (!value?.kind) return false;
  const type = member(schema, "type");
  const types = type?.kind === "array" ? type.children.map(text) : type ? [text(type)] : null;
  const own = value.kind === "word" ? (value.value === null ? "null" : "boolean") : TYPES[value.kind];
  if (types && ![own].flat().some((name) => types.includes(name))) return true;
  const allowed = member(schema, "enum")?.children ?? [member(schema, "const")].filter(Boolean);
  if (allowed.length && value.done) return !allowed.some((one) => JSON.stringify(plain(one)) === JSON.stringify(plain(value)));
  if (allowed.length && value.kind === "string") return !allowed.some((one) => text(one)?.startsWith(value.value));
  const properties = member(schema, "properties");
  return value.kind === "object" && value.children.some((child) => {
    const one = member(properties, child.key);
    return one && child.done ? contradicts(one, child) : false;
  });
}

// A schema and all that it refers to and combines, for this value.
function unfolded(root, schema, value, depth = 0) {
  if (!schema || depth > DEEPEST || contradicts(schema, value)) return [];
  const found = [schema];
  const reference = text(member(schema, "$ref"));
  if (reference?.startsWith("#")) found.push(...unfolded(root, find(root, reference), value, depth + 1));
  for (const word of ["allOf", "anyOf", "oneOf"]) {
    for (const branch of member(schema, word)?.children ?? []) found.push(...unfolded(root, branch, value, depth + 1));
  }
  for (const word of ["if", "then", "else"]) {
    if (member(schema, word)) found.push(...unfolded(root, member(schema, word), value, depth + 1));
  }
  return found;
}

function matches(pattern, key) {
  try {
    return new RegExp(pattern, "u").test(key);
  } catch {
    return false;
  }
}

function below(schema, child) {
  if (typeof child.key === "number") {
    const items = member(schema, "items");
    const prefix = member(schema, "prefixItems") ?? (items?.kind === "array" ? items : undefined);
    return [prefix?.children[child.key] ?? (items?.kind === "array" ? member(schema, "additionalItems") : items)];
  }
  const named = member(member(schema, "properties"), child.key);
  const patterned = (member(schema, "patternProperties")?.children ?? []).filter((one) => matches(one.key, child.key));
  const found = [named, ...patterned].filter(Boolean);
  return found.length ? found : [member(schema, "additionalProperties")];
}

// The schemas that describe a value, outermost words first; as nodes of the schema's text.
export function schemasOf(root, value) {
  if (!value.parent) return unfolded(root, root, value);
  const found = schemasOf(root, value.parent).flatMap((schema) => below(schema, value));
  return [...new Set(found.filter(Boolean).flatMap((schema) => unfolded(root, schema, value)))];
}

export const pointers = (schemas) => schemas.map((schema) => `#${pointer(schema)}`);
