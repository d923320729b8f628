// Where the versions of the site are served next to each other, list those of the newest build.
document.addEventListener("DOMContentLoaded", async () => {
  const boxes = document.querySelectorAll(".versions");
  if (!boxes.length || !location.protocol.startsWith("http")) return;
  const root = boxes[0].dataset.root;
  const answer = await fetch(root + "versions.json").catch(() => null);
  const listed = answer && answer.ok ? await answer.json().catch(() => []) : [];
  if (listed.length < 2) return;
  for (const box of boxes) {
    const shown = box.querySelector("span, summary").textContent;
    const details = document.createElement("details"), list = document.createElement("ul");
    const summary = Object.assign(document.createElement("summary"), {textContent: shown});
    summary.setAttribute("aria-label", `Version ${shown}, others`);
    for (const {version, url} of listed) {
      const link = Object.assign(document.createElement("a"), {href: root + url, textContent: version});
      if (version === shown) link.setAttribute("aria-current", "true");
      list.appendChild(document.createElement("li")).appendChild(link);
    }
    details.append(summary, list);
    box.replaceChildren(details);
  }
});
