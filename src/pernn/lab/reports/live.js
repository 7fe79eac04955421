"use strict";
// Asks how the sweeps stand, and shows the report anew where the reader was when trials finish.
(() => {
  const at = (id) => document.getElementById(id);
  const cell = (text) => Object.assign(document.createElement("td"), { textContent: text });
  const span = (seconds) => seconds === null ? ""
    : seconds >= 7200 ? `about ${(seconds / 3600).toFixed(1)} h`
    : `about ${Math.ceil(seconds / 60)} min`;
  const row = (sweep) => {
    const { finished = 0, ...others } = sweep.states;
    const line = document.createElement("tr");
    const told = Object.entries(others).map(([state, count]) => `${count} ${state}`).join(", ");
    line.append(cell(sweep.name), cell(`${finished} of ${sweep.trials}`), cell(told),
      cell(span(sweep.seconds_left)));
    return line;
  };
  const item = (one) => {
    const line = document.createElement("li"), bar = document.createElement("progress");
    bar.max = one.total || 1;
    bar.value = one.update;
    bar.setAttribute("aria-label", `Updates of ${one.label}`);
    line.append(bar, ` ${one.update.toLocaleString("en")} of ${one.total.toLocaleString("en")} updates, ${one.label}`);
    return line;
  };
  let shown = "";
  const report = (version) => {
    if (!version || version === shown) return;
    const frame = at("report"), before = shown && frame.contentWindow.scrollY;
    shown = version;
    frame.onload = () => frame.contentWindow.scrollTo(0, before || 0);
    frame.src = `study.html?${version}`;
  };
  const ask = async () => {
    try {
      const answer = await fetch("state.json");
      if (!answer.ok) throw new Error(answer.status);
      const state = await answer.json();
      at("sweeps").replaceChildren(...state.sweeps.map(row));
      at("running").replaceChildren(...state.sweeps.flatMap((sweep) => sweep.running).map(item));
      at("said").textContent = `As of ${new Date().toLocaleTimeString()}`;
      report(state.report);
    } catch {
      at("said").textContent = "No answer: has pernn ui ended? The page tries again.";
    }
    setTimeout(ask, 2000);
  };
  ask();
})();
