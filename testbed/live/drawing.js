/* Draws the steps around the current one, and the network at its time. */
"use strict";

const LEFT_PX = 46, TOP_PX = 22;
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9", "#7A5195", "#8C564B"];

function colourOf(process) { return COLOURS[process % COLOURS.length]; }

/* A colour of the style sheet as it is now, dark or light. */
function inkOf(name) {
  const probe = document.getElementById("probe");
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/* A canvas as large as it is on the screen, in its own pixels. */
function sized(canvas) {
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  return { context, width: box.width, height: box.height };
}

/* Where the diagram's steps and processes are, for drawing and for clicks. */
class Layout {
  constructor(run, current, width, height) {
    const room = width - LEFT_PX - 16;
    this.stepPx = Math.max(24, Math.min(72, room / Math.max(1, run.steps.length)));
    this.columns = Math.max(4, Math.floor(room / this.stepPx));
    const most = Math.max(0, run.steps.length - this.columns);
    this.first = Math.max(0, Math.min(most, current - Math.floor(this.columns * 0.6)));
    this.last = Math.min(run.steps.length - 1, this.first + this.columns - 1);
    this.rowPx = (height - TOP_PX - 14) / Math.max(1, run.processes);
  }

  x(step) { return LEFT_PX + (step - this.first + 0.5) * this.stepPx; }
  y(process) { return TOP_PX + (process + 0.5) * this.rowPx; }
  stepAt(x) { return Math.max(this.first, Math.min(this.last, Math.floor((x - LEFT_PX) / this.stepPx) + this.first)); }
}

function drawDiagram(canvas, run, current, wrongSteps) {
  const { context, width, height } = sized(canvas);
  const layout = new Layout(run, current, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  rows(context, run, layout, width);
  context.fillStyle = inkOf("--now");
  context.globalAlpha = 0.14;
  context.fillRect(layout.x(current) - layout.stepPx / 2, 0, layout.stepPx, height);
  context.globalAlpha = 1;
  for (const copy of run.copies) arrow(context, run, layout, copy, current);
  for (let s = layout.first; s <= layout.last; s++) mark(context, run, layout, s, current, wrongSteps.has(s));
  return layout;
}

function rows(context, run, layout, width) {
  context.strokeStyle = inkOf("--rule");
  context.lineWidth = 1;
  for (let p = 0; p < run.processes; p++) {
    const y = layout.y(p);
    context.beginPath(); context.moveTo(LEFT_PX, y); context.lineTo(width - 4, y); context.stroke();
    context.fillStyle = colourOf(p);
    context.textAlign = "left";
    context.fillText(`h${p}`, 8, y);
  }
  context.fillStyle = inkOf("--soft");
  context.textAlign = "center";
  const every = Math.max(1, Math.ceil(70 / layout.stepPx));
  for (let s = layout.first; s <= layout.last; s++) {
    if (s % every === 0) context.fillText(milliseconds(run.steps[s].t), layout.x(s), 10);
  }
}

function arrow(context, run, layout, copy, current) {
  const end = copy.got ?? (copy.arrived === null ? copy.sent + 1 : stepAfter(run, copy.arrived));
  if (copy.sent > layout.last || end < layout.first) return;
  const past = end <= current, begun = copy.sent <= current;
  context.globalAlpha = past ? 0.75 : begun ? 1 : 0.13;
  context.strokeStyle = context.fillStyle = colourOf(Number(/\d+/.exec(copy.name)));
  context.lineWidth = begun && !past ? 2 : 1.2;
  context.setLineDash(begun && !past ? [5, 3] : []);
  const x0 = layout.x(copy.sent), y0 = layout.y(copy.sender), lost = copy.got === null;
  const x1 = layout.x(end) - (lost ? 0 : 4), y1 = layout.y(copy.receiver);
  const share = lost ? 0.8 : 1, x = x0 + (x1 - x0) * share, y = y0 + (y1 - y0) * share;
  context.beginPath(); context.moveTo(x0, y0); context.lineTo(x, y); context.stroke();
  context.setLineDash([]);
  if (lost) cross(context, x, y, 4); else head(context, x0, y0, x1, y1);
  context.globalAlpha = 1;
}

function head(context, x0, y0, x1, y1) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  context.beginPath();
  context.moveTo(x1, y1);
  for (const turn of [-0.4, 0.4]) context.lineTo(x1 - 8 * Math.cos(angle + turn), y1 - 8 * Math.sin(angle + turn));
  context.fill();
}

function cross(context, x, y, r) {
  context.beginPath();
  context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
  context.moveTo(x - r, y + r); context.lineTo(x + r, y - r);
  context.stroke();
}

function mark(context, run, layout, s, current, wrong) {
  const step = run.steps[s];
  if (step.node < 0) return;
  const x = layout.x(s), y = layout.y(step.node);
  context.globalAlpha = s <= current ? 1 : 0.25;
  context.fillStyle = context.strokeStyle = wrong ? inkOf("--bad") : inkOf("--ink");
  context.lineWidth = 1.5;
  context.beginPath();
  if (["crash", "drop", "pause"].includes(step.kind)) cross(context, x, y, 6);
  else if (step.holds.length) context.rect(x - 4, y - 4, 8, 8);
  else context.arc(x, y, step.delivers.length ? 4.5 : 2.5, 0, 2 * Math.PI);
  if (step.holds.length) context.stroke(); else context.fill();
  if (step.sends.length) {
    const names = [...new Set(step.sends.map((copy) => run.copies[copy].name))];
    context.textAlign = "left";
    context.fillText(names.length > 1 ? `${names[0]} …` : names[0], x + 5, y - 10);
  }
  if (wrong) { context.beginPath(); context.arc(x, y, 9, 0, 2 * Math.PI); context.stroke(); }
  context.globalAlpha = 1;
}

function drawNetwork(canvas, run, current) {
  const { context, width, height } = sized(canvas);
  if (!run.places.length) return;
  const at = placed(run.places, width, height), now = run.steps.length ? run.steps[current].t : 0;
  context.strokeStyle = inkOf("--rule");
  context.lineWidth = 1;
  for (const [a, b] of run.links) {
    context.beginPath(); context.moveTo(...at[a]); context.lineTo(...at[b]); context.stroke();
  }
  for (const [name, tail, headNode, queued, , end] of run.hops) {
    if (queued > now || end <= now || tail < 0) continue;
    const share = (now - queued) / Math.max(1, end - queued), [x0, y0] = at[tail], [x1, y1] = at[headNode];
    context.fillStyle = colourOf(Number(/\d+/.exec(name)));
    context.beginPath(); context.arc(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, 4, 0, 2 * Math.PI); context.fill();
  }
  context.font = "11px system-ui, sans-serif";
  const hot = run.steps.length ? run.steps[current].node : -1;
  for (let p = 0; p < run.processes; p++) node(context, at[p], p, p === hot);
}

function node(context, [x, y], p, hot) {
  context.beginPath(); context.arc(x, y, hot ? 12 : 9, 0, 2 * Math.PI);
  context.fillStyle = colourOf(p); context.fill();
  context.fillStyle = "#fff";
  context.textAlign = "center"; context.textBaseline = "middle";
  context.fillText(String(p), x, y);
}

/* The nodes' places, scaled into the canvas; in a circle if they have none. */
function placed(places, width, height) {
  const xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (x1 - x0 < 1e-9 && y1 - y0 < 1e-9) {
    return places.map((_, i) => [
      width / 2 + (width / 2 - 24) * Math.cos((2 * Math.PI * i) / places.length),
      height / 2 + (height / 2 - 24) * Math.sin((2 * Math.PI * i) / places.length),
    ]);
  }
  const scale = (value, low, high, size) => 22 + ((value - low) / (high - low || 1)) * (size - 44) + (high === low ? (size - 44) / 2 : 0);
  return places.map(([x, y]) => [scale(x, x0, x1, width), scale(y, y0, y1, height)]);
}

/* The first step at or after a time. */
function stepAfter(run, time) {
  let low = 0, high = run.steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (run.steps[middle].t < time) low = middle + 1; else high = middle;
  }
  return low;
}

function milliseconds(t) { return `${(t / 1e6).toFixed(3)}`; }
