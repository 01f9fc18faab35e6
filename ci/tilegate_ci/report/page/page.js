"use strict";
// Draws the charts of the chosen run; sorts, filters and unfolds its table; copies commands.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const phone = matchMedia("(max-width: 640px)");

  function draw(holder) {
    const drawn = `${phone.matches}`;
    if (holder.dataset.drawn === drawn || holder.closest("[hidden]")) return;
    holder.dataset.drawn = drawn;
    const spec = structuredClone(specs[holder.dataset.chart][Number(phone.matches)]);
    for (const parameter of spec.params || []) {
      if (parameter.name === "benchmark") parameter.value = holder.dataset.benchmark;
    }
    // The page's policy forbids to evaluate text, so expressions are interpreted.
    vegaEmbed(holder, spec, { ast: true, renderer: "svg", actions: false });
  }
  const drawAll = () => all(".chart").forEach(draw);

  function sort(button) {
    const heading = button.closest("th"), table = button.closest("table");
    const down = heading.getAttribute("aria-sort") === "ascending";
    all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (body) => body.rows[0].cells[heading.cellIndex].dataset.key;
    const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
    const bodies = [...table.tBodies].sort((one, other) => {
      const a = key(one), b = key(other);
      if (a === "" || b === "") return (a === "") - (b === ""); // what is not known, last
      return down ? compare(b, a) : compare(a, b);
    });
    table.append(...bodies);
  }

  function filter(view) {
    const verdict = view.querySelector(".by-verdict").value;
    const text = view.querySelector(".by-name").value.toLowerCase();
    const bodies = all(".verdicts tbody", view);
    for (const body of bodies) {
      const { verdict: its, name } = body.dataset;
      body.hidden = (verdict && verdict !== its) || !name.toLowerCase().includes(text);
    }
    const left = bodies.filter((body) => !body.hidden).length;
    view.querySelector("output").textContent = `${left} of ${bodies.length} benchmarks`;
  }

  function unfold(button) {
    const detail = button.closest("tbody").rows[1];
    detail.hidden = !detail.hidden;
    button.setAttribute("aria-expanded", String(!detail.hidden));
    all(".chart", detail).forEach(draw);
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch { // not in this browser, or not for a page from disk
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = button.dataset.copy;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function choose(number) {
    all(".view").forEach((view) => { view.hidden = view.dataset.view !== number; });
    drawAll();
  }

  document.documentElement.classList.add("with-script");
  document.addEventListener("click", ({ target }) => {
    if (target.matches("thead button")) sort(target);
    else if (target.matches(".name")) unfold(target);
    else if (target.matches(".copy")) copy(target);
  });
  document.addEventListener("input", ({ target }) => {
    if (target.id === "source") choose(target.value);
    else if (target.matches(".by-verdict, .by-name")) filter(target.closest(".view"));
  });
  if (!phone.matches) all(".about").forEach((about) => { about.open = true; });
  phone.addEventListener("change", drawAll);
  all(".view").filter((view) => view.querySelector(".verdicts")).forEach(filter);
  choose("0");
})();
