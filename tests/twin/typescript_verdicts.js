// Reads [declarations, [[goal, text], ...]] and says for each text the error of assigning it to a constant of the type
// of its goal under --strict, or "".  A text that is no single expression is told apart first: one would hide the
// errors of all others.
const ts = require("typescript");
const [declarations, items] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const verdicts = items.map(() => "");
const lines = declarations.trim().split("\n");
const itemAt = new Map();
items.forEach(([goal, text], item) => {
  const line = `{ const v: ${goal} = ${text}; }`;
  const { parseDiagnostics, statements } = ts.createSourceFile("one.ts", line, ts.ScriptTarget.ES2020, true);
  if (parseDiagnostics.length || statements.length !== 1 || statements[0].statements?.length !== 1) {
    verdicts[item] = "no expression";
  } else {
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
