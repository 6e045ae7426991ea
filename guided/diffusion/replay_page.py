"""`replay_page`: how a canvas filled, as one HTML file that plays it step by step; needs nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Callable

from guided.diffusion.loop import Denoised

__all__ = ["replay_page"]


def replay_page(text: Denoised, piece: Callable[[int], str], title: str = "How the canvas filled") -> str:
    """The page of a text that `denoise` made; ``piece`` gives the words of a token.

    Each position shows what is committed, or in grey what the step proposed, the paler the less sure it was.

    >>> from guided.diffusion import Denoised
    >>> page = replay_page(Denoised((0,), 1, (), 0, 0), lambda token: "</script>")
    >>> page.count("</script>")
    1
    """
    steps = []
    for frame in text.frames:
        steps.append(
            {
                "start": frame.start,
                "committed": frame.committed.nonzero()[0].tolist(),
                "proposed": [piece(token) for token in frame.proposed.tolist()],
                "confidence": [round(value, 3) for value in frame.confidence.tolist()],
            }
        )
    data = {"title": title, "final": [piece(token) for token in text.tokens], "n_text": text.n_text, "steps": steps}
    # No text of a model may end the script or begin a comment in it.
    written = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    return _PAGE.replace("@DATA@", written)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Replay</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; }
#canvas { font: 15px/1.9 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.open { color: #888; } .new { background: #ffd75e; } .tail { color: #bbb; }
span { border-radius: 3px; } button { width: 5em; } input { width: 30em; max-width: 70%; vertical-align: middle; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd; } .new { color: #000; } }
</style></head><body><h1 id="title"></h1>
<p><button id="play">Play</button> <input id="at" type="range" min="0" aria-label="step"> <span id="said"></span></p>
<div id="canvas"></div>
<script>
const data = @DATA@, canvas = document.getElementById("canvas"), at = document.getElementById("at");
const said = document.getElementById("said"), play = document.getElementById("play");
document.getElementById("title").textContent = data.title;
at.max = data.steps.length;
function show(n) {
  const words = [], kind = [], sure = [];
  for (let k = 0; k < n; k++) {
    const step = data.steps[k];
    step.proposed.forEach((word, i) => {
      const place = step.start + i;
      if (kind[place] === "done") return;
      words[place] = word; kind[place] = "open"; sure[place] = step.confidence[i];
    });
    step.committed.forEach(i => { kind[step.start + i] = k === n - 1 ? "new" : "done"; });
    if (k < n - 1) kind.forEach((value, i) => { if (value === "new") kind[i] = "done"; });
  }
  canvas.replaceChildren(...data.final.map((word, i) => {
    const span = document.createElement("span"), open = kind[i] === undefined || kind[i] === "open";
    const over = n === data.steps.length;
    span.textContent = over ? word : words[i] === undefined ? "\\u2591" : words[i];
    span.className = i >= data.n_text && (over || !open) ? "tail" : over || !open ? kind[i] : "open";
    if (open && !over) span.style.opacity = 0.3 + 0.7 * (sure[i] || 0);
    return span;
  }));
  said.textContent = "step " + n + " of " + data.steps.length;
}
let timer = null;
function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }
at.oninput = () => { stop(); show(+at.value); };
play.onclick = () => {
  if (timer) return stop();
  if (+at.value === data.steps.length) at.value = 0;
  play.textContent = "Pause";
  timer = setInterval(() => {
    at.value = +at.value + 1; show(+at.value);
    if (+at.value === data.steps.length) stop();
  }, 400);
};
at.value = 0; show(0);
</script></body></html>
"""
