// What the theme leaves out for who uses a keyboard or a screen reader. Its table wrappers come a little later than the page.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
const reachable = () => document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((box) => {
  box.tabIndex = 0;
});
reachable();
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });

// What the button copies runs where it is pasted: the lines behind prompts, without these, and nothing that was printed.
document.querySelectorAll("pre > code").forEach((code) => {
  const lines = code.textContent.split("\n");
  for (const prompt of [/^(?:>>>|\.\.\.)(?: |$)/, /^\$ /]) {
    if (prompt.test(lines[0])) {
      code.dataset.copy = lines.filter((line) => prompt.test(line)).map((line) => line.replace(prompt, "")).join("\n");
    }
  }
});
