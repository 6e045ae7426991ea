// Reads [declarations, [[before, text, after], ...]] and says for each text its first error under --strict where it stands
// between the two others, or "".  What is no TypeScript is told apart first: one would hide the errors of all others.
const ts = require("typescript");
const [declarations, items] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const verdicts = items.map(() => "");
const lines = declarations.trim().split("\n");
const itemAt = new Map();
items.forEach((parts, item) => {
  const code = parts.join("");
  const { parseDiagnostics, statements } = ts.createSourceFile("one.ts", code, ts.ScriptTarget.ES2020, true);
  if (parseDiagnostics.length || statements.length !== 1) {
    verdicts[item] = "no TypeScript";
    return;
  }
  for (const line of code.split("\n")) {
    itemAt.set(lines.length, item);
    lines.push(line);
  }
});
const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2020 };
const host = ts.createCompilerHost(options);
const whole = [...lines, "export {};"].join("\n");
const read = host.getSourceFile;
host.getSourceFile = (name, ...rest) =>
  name === "all.ts" ? ts.createSourceFile(name, whole, ts.ScriptTarget.ES2020, true) : read(name, ...rest);
for (const { file, start, code, messageText } of ts.getPreEmitDiagnostics(ts.createProgram(["all.ts"], options, host))) {
  const item = itemAt.get(file.getLineAndCharacterOfPosition(start).line);
  const message = `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
  if (item === undefined) throw new Error(message);
  verdicts[item] ||= message;
}
process.stdout.write(JSON.stringify({ version: ts.version, verdicts }));
