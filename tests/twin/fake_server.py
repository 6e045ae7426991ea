"""A language server for tests; the argument says how it behaves.  Runs as a script, on the standard library alone."""

from __future__ import annotations

import json
import sys
import threading
import time

OBJECTS = {"box.": ["lid", "liding", "size", "größe"], "box.lid.": ["colour"]}


def read():
    length = 0
    while (line := sys.stdin.buffer.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n")
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    sys.stdout.buffer.flush()


def complete(behaviour, text, position, question):
    if behaviour == "slow":
        time.sleep(60)
    if behaviour == "slow once" and question == 1:
        time.sleep(60)
    if behaviour == "crash":
        print("segmentation fault, so to speak", file=sys.stderr)
        sys.exit(3)
    if behaviour == "garbage":
        sys.stdout.buffer.write(b"this is no header\n" * 3)
        sys.stdout.buffer.flush()
        time.sleep(60)
    if behaviour == "not json":
        sys.stdout.buffer.write(b"Content-Length: 5\r\n\r\n{nope")
        sys.stdout.buffer.flush()
        time.sleep(60)
    if behaviour == "wrong shape":
        return {"items": 7}
    if behaviour == "reads, silently" and question < 4:
        return {"items": []}
    if behaviour == "reads, and says so" and not READ.is_set():
        # What is read so far.
        return {"items": [{"label": "lid", "kind": 2}]}
    line = text.split("\n")[position["line"]]
    head = line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
    names = next((names for end, names in OBJECTS.items() if head.strip().endswith(end)), [])
    items = [{"label": f"{name}()", "kind": 2, "textEdit": {"newText": name}} for name in names]
    items += [{"label": "if", "kind": 14}, {"label": "snippet...", "kind": 15}] if names else []
    return {"isIncomplete": behaviour == "incomplete", "items": items} if behaviour != "list" else items


READ = threading.Event()


def read_all():
    READ.set()
    send({"method": "$/progress", "params": {"token": "reading", "value": {"kind": "end"}}})


def main(behaviour):
    if behaviour == "deaf":
        time.sleep(60)
    text, question = "", 0
    while (message := read()) is not None:
        method, parameters = message.get("method"), message.get("params")
        if method == "initialize":
            if behaviour == "refuses":
                send({"id": message["id"], "error": {"code": -32603, "message": "no licence"}})
                continue
            send({"id": message["id"], "result": {"capabilities": {"completionProvider": {}}}})
            send({"id": 900, "method": "workspace/configuration", "params": {"items": [{}, {}]}})
            send({"id": 901, "method": "never/heard/of", "params": {}})
        elif method == "initialized" and behaviour == "reads, and says so":
            send({"id": 902, "method": "window/workDoneProgress/create", "params": {"token": "reading"}})
            send({"method": "$/progress", "params": {"token": "reading", "value": {"kind": "begin", "title": "a"}}})
            send({"method": "$/progress", "params": {"token": "reading", "value": {"kind": "report"}}})
            threading.Timer(0.6, read_all).start()
        elif method == "textDocument/didOpen":
            text = parameters["textDocument"]["text"]
        elif method == "textDocument/didChange":
            text = parameters["contentChanges"][0]["text"]
        elif method == "textDocument/completion":
            question += 1
            send({"method": "window/logMessage", "params": {"type": 3, "message": "thinking"}})
            if behaviour == "not yet" and question < 4:
                send({"id": message["id"], "error": {"code": -32801, "message": "content modified"}})
                continue
            if behaviour == "error":
                send({"id": message["id"], "error": {"code": -1, "message": "cannot think"}})
                continue
            send({"id": message["id"], "result": complete(behaviour, text, parameters["position"], question)})


if __name__ == "__main__":
    main(sys.argv[1])
