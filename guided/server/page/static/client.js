// The server's public HTTP interface: answers as JSON, and chats as streams of events. Keys are kept for this tab only.

export class Refusal extends Error {
  constructor(status, error = {}) {
    super(error.message ?? `The server answered ${status}.`);
    Object.assign(this, { status, param: error.param ?? null, where: error.where ?? null, code: error.code ?? null });
  }
}

export const key = {
  get: () => sessionStorage.getItem("guided.key") ?? "",
  set: (value) => sessionStorage.setItem("guided.key", value),
};

async function send(path, body, signal) {
  const headers = { Accept: "application/json" };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  const response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  if (response.ok) return response;
  throw new Refusal(response.status, (await response.json().catch(() => ({}))).error);
}

export const ask = async (path, body, signal) => (await send(path, body, signal)).json();

// The events of a stream, each parsed; an error in the middle is thrown as one before it would be.
export async function* stream(path, body, signal) {
  const response = await send(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Refusal(0, { message: "The connection ended before the answer did." });
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Refusal(0, event.error);
      yield event;
    }
  }
}
