"use strict";
// Filters of the scorecard, charts, and everything open on paper. Without scripts all is shown.
(() => {
  const at = (id) => document.getElementById(id);
  const lines = [...document.querySelectorAll("#scorecard > tbody > tr")];
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
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.print:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
  if (typeof vegaEmbed === "undefined") return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const draw = (one) => vegaEmbed(at(one.place), one.spec, {
    mode: "vega",
    actions: false, renderer: "svg", theme: dark.matches ? "dark" : undefined,
    config: { background: "transparent" },
  });
  const charts = new Map(JSON.parse(at("charts").textContent).map((one) => [one.place, one]));
  const drawn = new Set();
  for (const place of charts.keys()) {
    at(place).closest("details").addEventListener("toggle", () => {
      if (!drawn.has(place)) { drawn.add(place); draw(charts.get(place)); }
    });
  }
  dark.addEventListener("change", () => { for (const place of drawn) draw(charts.get(place)); });
})();
