// Requests to begin with; the first is there when the page is opened.

const person = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0, maximum: 130 },
    city: { type: "string" },
    email: { type: "string", format: "email" },
  },
  required: ["name", "age", "city", "email"],
  additionalProperties: false,
};
const order = {
  type: "object",
  properties: {
    customer: { type: "object", properties: { name: { type: "string" }, city: { type: "string" } },
      required: ["name", "city"], additionalProperties: false },
    status: { enum: ["open", "paid", "sent"] },
    items: { type: "array", minItems: 1, maxItems: 3, items: { type: "string" } },
  },
  required: ["customer", "status", "items"],
  additionalProperties: false,
};

export const EXAMPLES = [
  { name: "A person", notation: "json_schema", text: JSON.stringify(person, null, 2),
    prompt: "Nina Berg is 34 years old, lives in Oslo and can be reached at nina@berg.org." },
  { name: "An order", notation: "json_schema", text: JSON.stringify(order, null, 2),
    prompt: "Omar Haddad of Cairo ordered a lamp and a chair. The order was paid yesterday." },
  { name: "A date", notation: "regex", text: "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    prompt: "The meeting is on the 5th of March 2021." },
  { name: "Yes or no", notation: "choice", text: "yes\nno\nnobody can know", prompt: "Is Oslo in Norway?" },
  { name: "Arithmetic", notation: "lark", prompt: "2 + 3 * 4 =",
    text: 'start: sum\nsum: term ("+" term | "-" term)*\nterm: NUMBER ("*" NUMBER)*\nNUMBER: /[0-9]{1,3}/\n%ignore " "\n' },
];
