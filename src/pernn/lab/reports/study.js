"use strict";
// Filters of the scorecard, chapters on demand, values under the pointer, everything on paper.
(() => {
  const at = (id) => document.getElementById(id);
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const lines = all("#scorecard > tbody > tr");
  const filter = () => {
    const words = at("words").value.trim().toLowerCase();
    const verdict = at("verdict").value, experiment = at("experiment").value;
    let count = 0;
    for (const line of lines) {
      const shown = (!verdict || line.dataset.verdict === verdict)
        && (!experiment || line.dataset.experiment === experiment)
        && (!words || line.textContent.toLowerCase().includes(words));
      line.classList.toggle("hidden", !shown);
      count += shown;
    }
    at("count").textContent = `${count} of ${lines.length} claims`;
  };
  at("filters").hidden = false;
  at("filters").addEventListener("input", filter);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  filter();

  // A chapter is packed until it is opened: a browser takes seconds to lay all of them out.
  const texts = new Map();
  const unpack = async (chapter) => {
    const packed = Uint8Array.from(atob(chapter.querySelector(":scope > script").textContent),
      (one) => one.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    texts.set(chapter, await new Response(stream).text());
    if (chapter.open) fill(chapter);
  };
  const fill = (chapter) => {
    const packed = chapter.querySelector(":scope > script");
    if (packed && !texts.has(chapter)) return;
    if (packed) packed.outerHTML = texts.get(chapter);
    for (const key of all("[class^=key]:not(.key)", chapter)) {
      key.setAttribute("role", "button");
      key.setAttribute("aria-pressed", "true");
      key.setAttribute("aria-label", key.textContent.trim() || "Show or hide this line");
      if (key.textContent.trim()) key.setAttribute("tabindex", "0");
      key.classList.add("key");
    }
  };
  const toggle = (key) => {
    const drawing = key.closest("svg"), place = key.classList[0].slice(3);
    const off = !key.classList.contains("pale");
    for (const one of all(`.key${place}`, drawing)) {
      one.classList.toggle("pale", off);
      one.setAttribute("aria-pressed", String(!off));
    }
    for (const one of all(`.line${place}`, drawing)) one.classList.toggle("off", off);
  };
  const chapters = all(".chapter");
  for (const one of chapters) {
    if (one.querySelector(":scope > script")) unpack(one);
    else fill(one);
    one.addEventListener("toggle", () => { if (one.open) fill(one); });
  }
  addEventListener("click", (event) => {
    const key = event.target.closest(".key");
    if (key) toggle(key);
  });
  addEventListener("keydown", (event) => {
    const key = event.target.closest?.(".key");
    if (key && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); toggle(key); }
  });
  const visit = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* names no place */ }
    const place = at(name), chapter = place?.querySelector(":scope > .chapter");
    if (chapter) chapter.open = true;
    place?.classList.remove("hidden");
    place?.scrollIntoView();
  };
  addEventListener("hashchange", visit);
  // A link that is followed again changes no hash.
  addEventListener("click", (event) => {
    if (event.target.closest(`a[href="${CSS.escape(location.hash)}"]`)) visit();
  });
  if (location.hash) visit();

  const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });
  tip.setAttribute("role", "status");
  document.body.append(tip);
  addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("use, [class^=line]");
    const title = mark?.querySelector(":scope > title");
    if (title) { mark.dataset.said = title.textContent; title.remove(); }
    tip.textContent = mark?.dataset.said ?? "";
    tip.hidden = !tip.textContent;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 220)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    for (const one of chapters) fill(one);
    opened = all("details.print:not([open])");
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
})();
