/* What the diagram draws with: lines, marks, distances on the canvas, and round units of time. */
"use strict";

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/* What the diagram is drawn with, by the page's colours, which may be light or dark. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "grid", "row", "halo", "bad"];
  const found = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim() || "#444"]));
  return { ...found, dense: matchMedia("(prefers-color-scheme: dark)").matches ? 0xb0b0b0 : 0x505050 };
}

function shape(context, kind, x, y, r) {
  context.beginPath();
  if (kind === 0) context.arc(x, y, r, 0, 2 * Math.PI);
  else if (kind === 1) context.rect(x - r * 0.85, y - r * 0.85, 1.7 * r, 1.7 * r);
  else {
    const corners = [[0, -1, 1, 0, 0, 1, -1, 0], [0, -1, 1, 0.8, -1, 0.8], [0, 1, 1, -0.8, -1, -0.8]][kind - 2];
    for (let i = 0; i < corners.length; i += 2) context.lineTo(x + corners[i] * r * 1.1, y + corners[i + 1] * r * 1.1);
  }
  context.fill();
}

function segmentDistance(x, y, x0, y0, x1, y1) {
  const dx = x1 - x0, dy = y1 - y0;
  const along = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}

/* A number below 65,536 for each arrow that looks random and is always the same. */
function scatter(a) {
  return (Math.imul(a + 1, 0x9e3779b1) >>> 16) & 0xffff;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
}

function timeUnit(most) {
  return [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => most >= 2 * size || size === 1);
}

function clock(nanoseconds) {
  return `${(nanoseconds / 1e6).toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 })} ms`;
}

/* A line without what lies far outside: a dashed line of a million pixels takes seconds. */
function clipped(width, x0, y0, x1, y1) {
  const low = -50, high = width + 50;
  if (x1 < low || x0 > high) return null;
  const slope = (y1 - y0) / (x1 - x0 || 1);
  const left = Math.max(x0, low), right = Math.min(x1, high);
  return [left, y0 + (left - x0) * slope, right, y1 + (right - x1) * slope];
}

/* How dense events are on each process's line: a column of pixels for each step of time. */
function drawDensity(diagram, ranges, dim) {
  const { history, scale } = diagram;
  const width = Math.ceil(diagram.width * scale), height = Math.ceil(diagram.plotHeight * scale);
  const counts = new Uint16Array(width), image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const thick = Math.max(1, Math.round(Math.min(8, diagram.rowHeight * 0.6) * scale));
  const perTime = (diagram.width - GUTTER - 8) / (diagram.until - diagram.from) * scale, left = GUTTER * scale;
  for (const [p, start, end] of ranges) {
    const top = Math.round((diagram.y(p) - AXIS) * scale - thick / 2);
    if (top < 0 || top + thick > height) continue;
    counts.fill(0);
    for (let e = start; e < end; e++) counts[Math.round(left + (history.at[e] - diagram.from) * perTime)]++;
    for (let x = 0; x < width; x++) {
      if (!counts[x]) continue;
      const alpha = Math.min(220, 70 + 30 * counts[x]) * (dim ? 0.4 : 1);
      const colour = (alpha << 24) | diagram.colours.dense;
      for (let y = top; y < top + thick; y++) pixels[y * width + x] = colour;
    }
  }
  diagram.layer ??= document.createElement("canvas");
  diagram.layer.width = width;
  diagram.layer.height = height;
  diagram.layer.getContext("2d").putImageData(image, 0, 0);
  diagram.context.drawImage(diagram.layer, 0, AXIS, width / scale, height / scale);
}
