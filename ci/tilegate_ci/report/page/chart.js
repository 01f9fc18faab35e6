"use strict";
// Line and scatter charts as SVG. `series`: [{name, style, points: [{x, y, text}]}], where `text`
// is what a point tells; scales are logarithmic in base 2 (x) or 10 (y), or linear.

const SVG = "http://www.w3.org/2000/svg";
const PAD = { left: 58, right: 28, top: 28, bottom: 42 };

function svg(tag, attributes, parent) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Six colours; where they come round, dashes and markers differ.
function styleOf(index) {
  const round = Math.floor(index / 6);
  return { color: `var(--c${index % 6})`, dash: ["", "6 4", "2 3"][round % 3], round };
}

function mark(style, x, y, parent) {
  const shapes = [
    `M${x - 4},${y}a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z`,
    `M${x - 4},${y - 4}h8v8h-8z`,
    `M${x},${y - 5}l5,9h-10z`,
  ];
  const made = svg("path", { class: "mark", d: shapes[style.round % 3] }, parent);
  made.style.fill = style.color;
  return made;
}

function niceLinear(low, high) {
  const rough = (high - low) / 5 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * unit).find((s) => s >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high * 1.0001; i++) ticks.push(i * step);
  return ticks;
}

function scaleOf(kind, values, from, to) {
  let low = Math.min(...values), high = Math.max(...values);
  if (kind === "linear") {
    low = Math.min(0, low);
    high = high > low ? high * 1.05 : low + 1;
    const at = (v) => from + ((v - low) / (high - low)) * (to - from);
    return { at, ticks: niceLinear(low, high) };
  }
  if (kind === "index") {
    const span = Math.max(high - low, 1);
    const every = Math.ceil((high - low + 1) / 8);
    const ticks = [];
    for (let v = low; v <= high; v += every) ticks.push(v);
    return { at: (v) => from + ((v - low + (high === low ? 0.5 : 0)) / span) * (to - from), ticks };
  }
  const base = kind === "log2" ? 2 : 10;
  const log = (v) => Math.log(v) / Math.log(base);
  const first = Math.floor(log(low) + 1e-9), last = Math.max(Math.ceil(log(high) - 1e-9), first + 1);
  const ticks = [];
  for (let e = first; e <= last; e++) ticks.push(base ** e);
  return { at: (v) => from + ((log(v) - first) / (last - first)) * (to - from), ticks };
}

const short = (v) => (v >= 1e6 ? `${+(v / 1e6).toPrecision(3)}M` : v >= 1e4 ? `${+(v / 1e3).toPrecision(3)}k` : `${+v.toPrecision(3)}`);

function drawChart(holder, options) {
  const { series, x: xAxis, y: yAxis, roofs = [], label, empty } = options;
  holder.textContent = "";
  holder.className = "chart";
  const points = series.flatMap((s) => s.points);
  if (!points.length) return void holder.append(element("p", empty, "remark"));
  // As wide as it is shown, so that text keeps its size on a phone.
  const width = Math.max(280, holder.clientWidth || 720), height = Math.min(420, Math.max(260, width * 0.5));
  const all = [...points, ...roofs.flatMap((r) => r.points)];
  const xs = scaleOf(xAxis.scale, all.map((p) => p.x), PAD.left, width - PAD.right);
  const ys = scaleOf(yAxis.scale, all.map((p) => p.y), height - PAD.bottom, PAD.top);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "application",
    "aria-roledescription": "chart", "aria-label": `${label}. Arrow keys read the values.` }, holder);
  const plainX = xAxis.text || short, plainY = yAxis.text || short;
  for (const tick of ys.ticks) {
    svg("line", { class: "gridline", x1: PAD.left, x2: width - PAD.right, y1: ys.at(tick), y2: ys.at(tick) }, root);
    svg("text", { x: PAD.left - 6, y: ys.at(tick) + 4, "text-anchor": "end" }, root).textContent = plainY(tick);
  }
  const every = Math.ceil((xs.ticks.length * 52) / (width - PAD.left - PAD.right));
  xs.ticks.forEach((tick, i) => {
    if (i % every) return;
    svg("text", { x: xs.at(tick), y: height - PAD.bottom + 18, "text-anchor": "middle" }, root).textContent = plainX(tick);
  });
  svg("text", { x: (PAD.left + width - PAD.right) / 2, y: height - 6, "text-anchor": "middle" }, root).textContent = xAxis.label;
  svg("text", { x: 0, y: 12 }, root).textContent = yAxis.label;
  for (const roof of roofs) {
    svg("polyline", { class: "roof", points: roof.points.map((p) => `${xs.at(p.x)},${ys.at(p.y)}`).join(" ") }, root);
  }
  const marks = [];
  series.forEach((s, row) => {
    const group = svg("g", { "data-rung": s.name }, root);
    if (s.points.length > 1 && !options.scatter) {
      const line = svg("polyline", { class: "line", "stroke-dasharray": s.style.dash,
        points: s.points.map((p) => `${xs.at(p.x)},${ys.at(p.y)}`).join(" ") }, group);
      line.style.stroke = s.style.color;
    }
    s.points.forEach((p, column) => {
      const at = { left: xs.at(p.x), top: ys.at(p.y) };
      marks.push({ ...at, row, column, node: mark(s.style, at.left, at.top, group), text: `${s.name}: ${p.text}`, x: p.x });
    });
  });
  addReading(holder, root, marks, width, height);
}

// Hover, touch and arrow keys: one point is current, its values stand in a live region.
function addReading(holder, root, marks, width, height) {
  const tip = element("div", "", "tip");
  tip.setAttribute("role", "status");
  holder.append(tip);
  let current = null;
  const show = (next) => {
    if (current) current.node.classList.remove("current");
    current = next;
    tip.textContent = next ? next.text : "";
    if (!next) return;
    next.node.classList.add("current");
    const scale = root.clientWidth / width;
    const left = next.left * scale + 12;
    tip.style.left = `${Math.max(0, Math.min(left, holder.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, next.top * scale - tip.offsetHeight - 10)}px`;
  };
  const nearest = (candidates, left, top) => candidates.reduce((best, m) => {
    const distance = Math.hypot(m.left - left, m.top - top);
    return !best || distance < best.distance ? { m, distance } : best;
  }, null);
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const scale = width / box.width;
    const found = nearest(marks, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    show(found && found.distance < 40 ? found.m : null);
  });
  root.addEventListener("pointerleave", () => show(null));
  root.addEventListener("blur", () => show(null));
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") return show(null);
    if (!step) return;
    event.preventDefault();
    if (!current) return show(marks[0]);
    if (step[1]) {
      const next = marks.find((m) => m.row === current.row && m.column === current.column + step[1]);
      return show(next || current);
    }
    const rows = [...new Set(marks.map((m) => m.row))];
    const row = rows[(rows.indexOf(current.row) + step[0] + rows.length) % rows.length];
    const found = nearest(marks.filter((m) => m.row === row).map((m) => ({ ...m, top: 0, own: m })), current.left, 0);
    show(found.m.own);
  });
}
