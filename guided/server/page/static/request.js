// What the form says, as a request: a body for the server, a line of curl, and Python with the openai package.

export const NOTATIONS = {
  json_schema: "JSON Schema", regex: "Regular expression", choice: "Choice", lark: "Lark grammar", gbnf: "GBNF grammar",
  ebnf: "EBNF grammar", sql: "SQL of a database", none: "Free text",
};

// The grammar as `guided.grammar` takes it; null for free text. Throws SyntaxError for what is no JSON.
export function language({ notation, text }) {
  if (notation === "none") return null;
  if (notation === "json_schema") return { type: notation, schema: JSON.parse(text) };
  if (notation === "choice") return { type: notation, choices: text.split("\n").filter((line) => line !== "") };
  if (notation === "sql") return { type: notation, database: text.trim() };
  return { type: notation, text };
}

const filled = (entries) => Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined));

// `seen` adds what only this page wants: a stream, with all that it draws.
export function body(form, settings, seen) {
  const [kind, method] = settings.method.split(":");
  const searches = kind === "search";
  // Positions of a draft are scored together: nobody knows what else might have come.
  const extra = kind === "token" && seen ? { tokens: true, alternatives: settings.draft ? null : 5 } : {};
  const guided = filled([
    ["grammar", settings.constrained ? language(form) : null],
    ["sampler", kind === "sampler" ? filled([["name", method], ["particles", settings.particles], ["steps", seen || null]]) : null],
    ["search", searches ? filled([["name", method], ["beams", settings.particles]]) : null],
    ["steer", settings.steer ? [settings.steer] : null],
    ["draft", settings.draft || null],
    ...Object.entries(extra),
  ]);
  return filled([
    ["model", form.model],
    ["messages", [{ role: "user", content: form.prompt }]],
    ["max_tokens", settings.max_tokens],
    ["temperature", searches ? null : settings.temperature],
    ["top_p", searches || settings.top_p === 1 ? null : settings.top_p],
    ["seed", searches ? null : settings.seed],
    ["stream", seen || null],
    ["stream_options", seen ? { include_usage: true } : null],
    ["guided", Object.keys(guided).length ? guided : null],
  ]);
}

const WORDS = {
  json: { null: "null", true: "true", false: "false", indent: "  ", last: "" },
  python: { null: "None", true: "True", false: "False", indent: "    ", last: "," },
};

export const curl = (request, origin, keyed) => [
  `curl ${origin}/v1/chat/completions`,
  ...(keyed ? ['-H "Authorization: Bearer $GUIDED_KEY"'] : []),
  "-H 'Content-Type: application/json'",
  `-d '${literal(request, WORDS.json, "  ").replace(/'/g, "'\\''")}'`,
].join(" \\\n  ");

// A value as JSON or Python writes it, short ones on a line of their own.
function literal(value, words, indent = "") {
  if (value === null || typeof value === "boolean") return words[value];
  if (typeof value !== "object") return JSON.stringify(value);
  const list = Array.isArray(value);
  const [open, close] = list ? "[]" : "{}";
  const deeper = `${indent}${words.indent}`;
  const parts = list ? value.map((each) => literal(each, words, deeper))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${literal(each, words, deeper)}`);
  const line = open + parts.join(", ") + close;
  if (line.length + indent.length < 88 && !line.includes("\n")) return line;
  return `${open}\n${deeper}${parts.join(`,\n${deeper}`)}${words.last}\n${indent}${close}`;
}

export function python(request, origin, keyed) {
  const { guided, ...known } = request;
  const fields = Object.entries(known).map(([name, value]) => `    ${name}=${literal(value, WORDS.python, "    ")},`);
  if (guided) fields.push(`    extra_body=${literal({ guided }, WORDS.python, "    ")},`);
  return [
    ...(keyed ? ["import os", ""] : []),
    "from openai import OpenAI", "",
    `client = OpenAI(base_url="${origin}/v1", api_key=${keyed ? 'os.environ["GUIDED_KEY"]' : '"none"'})`,
    "answer = client.chat.completions.create(", ...fields, ")",
    "print(answer.choices[0].message.content)",
  ].join("\n");
}
