// The page: one run at a time, drawn from the data that ci/gate report wrote into it.

const data = JSON.parse(document.getElementById("data").textContent);
const hidden = new Set();
const $ = (id) => document.getElementById(id);
let source = data.sources[0];

const percent = (v, digits = 1) => (v == null ? "-" : `${(100 * v).toFixed(digits)} %`);
const speed = (v) => (v == null ? "-" : v.toLocaleString("en", { maximumSignificantDigits: 5 }));
const order = new Map(data.rungs.map((rung, i) => [rung.name, i]));
const ideas = new Map(data.rungs.map((rung) => [rung.name, rung.idea]));
const cubes = (size) => `${size}x${size}x${size}`;

function rungsOf(names) {
  const found = [...new Set(names.map((name) => name.split("/")[0]))];
  return found.sort((a, b) => (order.get(a) ?? 999) - (order.get(b) ?? 999) || (a < b ? -1 : 1));
}

const allRungs = rungsOf(data.sources.flatMap((s) => [...Object.keys(s.measured), ...s.rows.map((r) => r.name)]));
const styles = new Map(allRungs.map((rung, i) => [rung, styleOf(i)]));
const shown = () => rungsOf(Object.keys(source.measured)).filter((rung) => !hidden.has(rung));

function sizes() {
  const found = new Set();
  for (const name of Object.keys(source.measured)) {
    const cube = /^[^/]+\/(\d+)x\1x\1$/.exec(name);
    if (cube) found.add(+cube[1]);
  }
  return [...found].sort((a, b) => a - b);
}

function fill(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => {
    const option = element("option", text);
    option.value = value;
    return option;
  }));
  if (chosen !== undefined) select.value = chosen;
}

function drawHead() {
  $("about").textContent = source.title;
  $("result").textContent = source.error || source.summary;
  $("remarks").replaceChildren(...source.remarks.map((text) => element("li", text)));
}

function drawLegend() {
  const legend = $("legend");
  legend.replaceChildren(legend.querySelector("legend"), ...allRungs.map((rung) => {
    const button = element("button");
    button.type = "button";
    button.dataset.rung = rung;
    button.setAttribute("aria-pressed", String(!hidden.has(rung)));
    const sample = svg("svg", { width: 28, height: 14, "aria-hidden": "true" }, button);
    const style = styles.get(rung);
    const line = svg("line", { x1: 0, x2: 28, y1: 7, y2: 7, "stroke-width": 2, "stroke-dasharray": style.dash }, sample);
    line.style.stroke = style.color;
    mark(style, 14, 7, sample);
    button.append(rung);
    button.addEventListener("click", () => {
      if (!hidden.delete(rung)) hidden.add(rung);
      button.setAttribute("aria-pressed", String(!hidden.has(rung)));
      drawCharts();
    });
    return button;
  }));
}

function drawTable() {
  const verdict = $("verdict").value, rung = $("rung").value, text = $("text").value.toLowerCase();
  const rows = source.rows.filter((row) => (!verdict || row.verdict === verdict) &&
    (!rung || row.name.split("/")[0] === rung) && row.name.toLowerCase().includes(text));
  $("count").textContent = `${rows.length} of ${source.rows.length} benchmarks`;
  $("verdicts").tBodies[0].replaceChildren(...rows.map((row) => {
    const line = element("tr");
    const number = (value) => (value == null ? "-" : row.metric === "ratio_to_cublas" ? value.toFixed(4) : value.toPrecision(6));
    const name = element("th", row.name);
    name.scope = "row";
    const rerun = element("td");
    if (row.rerun) rerun.append(element("code", row.rerun));
    line.append(
      element("td", row.verdict, row.verdict), name,
      element("td", number(row.baseline), "number"), element("td", number(row.candidate), "number"),
      element("td", percent(row.slowdown, 2), "number"), element("td", percent(row.delta, 2), "number"),
      element("td", [row.note, row.key ? "key" : ""].filter(Boolean).join(", "), "note"), rerun);
    return line;
  }));
}

function drawLadder(size) {
  const rows = shown().map((rung) => [rung, source.measured[`${rung}/${cubes(size)}`]]).filter(([, row]) => row);
  const most = Math.max(...rows.map(([, row]) => row.gflops));
  $("ladder").tBodies[0].replaceChildren(...rows.map(([rung, row]) => {
    const line = element("tr");
    const name = element("th", rung);
    name.scope = "row";
    const bar = element("td", undefined, "bar");
    const length = element("span");
    length.style.width = `${(100 * row.gflops) / most}%`;
    length.style.background = styles.get(rung).color;
    bar.append(length);
    line.append(name, element("td", speed(row.gflops), "number"), bar,
      element("td", percent(row.ratio_to_cublas), "number"), element("td", ideas.get(rung) || "", "note"));
    return line;
  }));
}

function seriesOver(metric, tell) {
  return shown().map((name) => ({
    name, style: styles.get(name),
    points: sizes().map((size) => ({ size, row: source.measured[`${name}/${cubes(size)}`] }))
      .filter(({ row }) => row && row[metric] != null)
      .map(({ size, row }) => ({ x: size, y: row[metric], text: `${cubes(size)}, ${tell(row)}` })),
  }));
}

function drawRoofline(size) {
  const profile = source.profile;
  const counted = profile && profile.shape === cubes(size);
  const peaks = Object.values(source.measured).filter((r) => r.pct_peak).map((r) => (100 * r.gflops) / r.pct_peak);
  peaks.sort((a, b) => a - b);
  const peak = peaks[Math.floor(peaks.length / 2)];
  // Without counters every size has its own intensity: each operand moves once.
  const point = (name, extent) => {
    const row = source.measured[`${name}/${cubes(extent)}`];
    const x = row && (counted ? profile.intensity[name] : row.bytes && (2 * extent ** 3) / row.bytes);
    return x ? [{ x, y: row.gflops, text: `${cubes(extent)}, ${x.toPrecision(3)} FLOP a byte, ${speed(row.gflops)} GFLOPS` }] : [];
  };
  const extents = counted ? [size] : sizes();
  const series = shown().map((name) => ({ name, style: styles.get(name), points: extents.flatMap((extent) => point(name, extent)) }));
  const roofs = [];
  const at = series.flatMap((s) => s.points.map((p) => p.x));
  if (peak && at.length) {
    const bandwidth = profile && profile.memory_gb_per_s;
    const ridge = bandwidth ? peak / bandwidth : Math.min(...at);
    const left = Math.min(...at, ridge) / 2, right = Math.max(...at, ridge) * 2;
    const points = [{ x: ridge, y: peak }, { x: right, y: peak }];
    roofs.push({ points: bandwidth ? [{ x: left, y: left * bandwidth }, ...points] : points });
  }
  drawChart($("roofline"), { series, roofs, scatter: true,
    label: `GFLOPS over arithmetic intensity${counted ? ` at ${cubes(size)}` : ""}`, empty: "No bytes are known of these benchmarks.",
    x: { scale: "log10", label: "FLOP a byte of device memory" }, y: { scale: "log10", label: "GFLOPS" } });
  const told = counted ? `${cubes(size)}; traffic as counted in ${profile.path}.` : "Every square size, with the traffic there would be if every operand moved once.";
  $("roofline").append(element("p", told, "remark"));
}

function drawHistory(size) {
  const series = shown().map((name) => ({
    name, style: styles.get(name),
    points: source.history.map((revision, x) => ({ x, revision, value: revision.values[`${name}/${cubes(size)}`] }))
      .filter(({ value }) => value && value[1] != null)
      .map(({ x, revision, value }) => ({ x, y: value[1],
        text: `${revision.commit.slice(0, 12)} of ${revision.date}, ${percent(value[1])} of cuBLAS, ${speed(value[0])} GFLOPS` })),
  }));
  drawChart($("history"), { series, label: `Share of cuBLAS at ${cubes(size)} over the baseline's commits`,
    empty: source.history.length
      ? `No committed baseline of this device has a share of cuBLAS at ${cubes(size)}.`
      : "git knows of no committed baseline of this device.",
    x: { scale: "index", label: "commits of the baseline", text: (i) => source.history[i].commit.slice(0, 7) },
    y: { scale: "linear", label: `share of cuBLAS at ${cubes(size)}`, text: (v) => percent(v, 0) } });
}

function drawCharts() {
  const size = +$("size").value;
  drawLadder(size);
  const x = { scale: "log2", label: "M = N = K", text: (v) => String(v) };
  drawChart($("speed"), { series: seriesOver("gflops", (r) => `${speed(r.gflops)} GFLOPS`), x,
    label: "GFLOPS over size", empty: "No square benchmarks.", y: { scale: "log10", label: "GFLOPS" } });
  drawChart($("share"), { series: seriesOver("ratio_to_cublas", (r) => `${percent(r.ratio_to_cublas)} of cuBLAS`), x,
    label: "Share of cuBLAS over size", empty: "cuBLAS was not timed beside these benchmarks.",
    y: { scale: "linear", label: "share of cuBLAS", text: (v) => percent(v, 0) } });
  drawRoofline(size);
  drawHistory(size);
}

function drawAll() {
  const verdicts = [...new Set(source.rows.map((row) => row.verdict))];
  fill($("verdict"), [["", "all"], ...verdicts.map((v) => [v, v])]);
  fill($("rung"), [["", "all"], ...rungsOf(source.rows.map((row) => row.name)).map((r) => [r, r])]);
  fill($("size"), sizes().map((s) => [s, cubes(s)]), sizes().includes(4096) ? 4096 : sizes().at(-1));
  $("gate").hidden = !source.rows.length;
  drawHead();
  drawLegend();
  drawTable();
  drawCharts();
}

fill($("source"), data.sources.map((s, i) => [i, s.path]), 0);
$("source-choice").hidden = data.sources.length < 2;
$("source").addEventListener("change", (event) => { source = data.sources[+event.target.value]; drawAll(); });
for (const id of ["verdict", "rung"]) $(id).addEventListener("change", drawTable);
$("text").addEventListener("input", drawTable);
$("size").addEventListener("change", drawCharts);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawCharts(); } });
drawAll();
