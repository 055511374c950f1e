/* The space-time diagram: a line for each process, time to the right, an arrow for each message.
   Whatever is in view is drawn anew each frame; where there is too much, a sample of it. The sample is
   smaller while one moves about and frames come too slowly, and whole again as soon as one rests. */
"use strict";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES = [[], [7, 3], [2, 2], [9, 2, 2, 2], [4, 4]];
const ARROWS = 1600, HEADS = 800, DASHED = 300, MARKS = 5000, NAMES = 40;
const GUTTER = 46, AXIS = 26, PICK = 7;
const SLOW = 26, QUICK = 18, REST = 250, LEAST = 0.05; // milliseconds from frame to frame, and a share

class Diagram {
  constructor(root, history) {
    this.root = root;
    this.history = history;
    this.canvas = root.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.inView = new Uint32Array(history.arrowMessage.length);
    this.drawn = [];
    this.hovered = this.pinned = null;
    this.pasts = new Map();
    this.share = this.moving = 1;
    this.drawnAt = -Infinity;
    this.marks = history.violations.map((found) => placed(history, found)).filter((mark) => mark);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    this.colours = palette();
    scheme.addEventListener("change", () => { this.colours = palette(); this.request(); });
    const height = Math.min(640, Math.max(220, AXIS + 24 * history.processes));
    this.canvas.style.height = `${height}px`;
    this.fit();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.resize();
  }

  // ---- what is in view

  get plotHeight() { return this.height - AXIS; }
  get fitted() { return this.plotHeight / this.history.processes; }
  x(time) { return GUTTER + ((time - this.from) / (this.until - this.from)) * (this.width - GUTTER - 8); }
  time(x) { return this.from + ((x - GUTTER) / (this.width - GUTTER - 8)) * (this.until - this.from); }
  y(process) { return AXIS + (process + 0.5 - this.top) * this.rowHeight; }

  fit() {
    const { first, last } = this.history;
    const margin = Math.max(1, (last - first) * 0.01);
    this.from = first - margin;
    this.until = last + margin;
    this.top = 0;
    this.rowHeight = 0;
    this.request();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    if (box.width === this.width && box.height === this.height && scale === this.scale) return;
    this.width = box.width;
    this.height = box.height;
    this.scale = scale;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.draw(); // at once: a new size empties the canvas
  }

  zoom(factor, x = (this.width + GUTTER) / 2) {
    const { first, last } = this.history;
    const centre = this.time(x);
    const widest = (last - first) * 1.2 + 100;
    const width = Math.min(widest, Math.max(100, (this.until - this.from) * factor));
    const share = (centre - this.from) / (this.until - this.from);
    this.from = centre - width * share;
    this.until = this.from + width;
    this.keepInside();
  }

  stretch(factor) {
    const middle = this.top + this.plotHeight / this.rowHeight / 2;
    this.rowHeight = Math.min(60, this.rowHeight * factor);
    this.top = middle - this.plotHeight / this.rowHeight / 2;
    this.keepInside();
  }

  pan(dx, dy) {
    const time = (dx / (this.width - GUTTER - 8)) * (this.until - this.from);
    this.from += time;
    this.until += time;
    this.top += dy / this.rowHeight;
    this.keepInside();
  }

  keepInside() {
    const { first, last, processes } = this.history;
    const width = this.until - this.from;
    this.from = Math.min(Math.max(this.from, first - width * 0.9), last - width * 0.1);
    this.until = this.from + width;
    this.rowHeight = Math.max(this.rowHeight, this.fitted);
    this.top = Math.max(0, Math.min(this.top, processes - this.plotHeight / this.rowHeight));
    // A finger scrolls the page, unless there are rows to scroll.
    this.canvas.style.touchAction = this.rowHeight > this.fitted ? "none" : "pan-y";
    this.request();
  }

  centre(message) {
    const { history } = this;
    const start = history.arrowStart[message], end = start + history.arrowCount[message];
    const sent = history.sent[message];
    let last = sent + 1000;
    for (let a = start; a < end; a++) {
      last = Math.max(last, Number.isFinite(history.delivered[a]) ? history.delivered[a] : history.received[a]);
    }
    this.from = sent - (last - sent) * 0.6;
    this.until = last + (last - sent) * 0.4;
    this.top = history.source[message] - this.plotHeight / this.rowHeight / 2;
    this.keepInside();
  }

  // ---- drawing

  request() {
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  /* How much to draw: less if frames follow each other too slowly, all when one rests. */
  pace() {
    const now = performance.now(), gap = now - this.drawnAt;
    this.drawnAt = now;
    clearTimeout(this.resting);
    if (gap > REST) { this.share = 1; return; }
    this.moving = Math.max(LEAST, Math.min(1, this.moving * (gap > SLOW ? 0.6 : gap < QUICK ? 1.2 : 1)));
    this.share = this.moving;
    if (this.share < 1) this.resting = setTimeout(() => { this.drawnAt = -Infinity; this.draw(); }, REST);
  }

  draw() {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.frame = undefined;
    if (!this.width) return;
    this.pace();
    this.rowHeight = Math.max(this.rowHeight, this.fitted);
    const { context, history } = this;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.firstRow = Math.max(0, Math.floor(this.top));
    this.lastRow = Math.min(history.processes - 1, Math.ceil(this.top + this.plotHeight / this.rowHeight));
    this.drawAxis();
    this.drawRows();
    context.save();
    context.beginPath();
    context.rect(GUTTER, AXIS, this.width - GUTTER, this.plotHeight);
    context.clip();
    const chosen = this.pinned ?? this.hovered?.message ?? null;
    const total = this.chooseArrows();
    this.drawMarks(chosen !== null);
    this.drawArrows(this.drawn, chosen === null ? 1 : 0.13, false);
    if (chosen !== null) this.drawChosen(chosen);
    else this.drawNames();
    drawViolations(this);
    context.restore();
    this.tell(total);
  }

  drawAxis() {
    const { context } = this;
    const [unit, label] = timeUnit(this.until - this.from);
    const step = niceStep((this.until - this.from) / unit / Math.max(2, this.width / 110));
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.lineWidth = 1;
    for (let tick = Math.ceil(this.from / unit / step); tick * step * unit <= this.until; tick++) {
      const x = this.x(tick * step * unit);
      if (x < GUTTER) continue;
      context.strokeStyle = this.colours.grid;
      line(context, x, AXIS, x, this.height);
      context.fillStyle = this.colours.soft;
      if (x > GUTTER + 16 && x < this.width - 24) context.fillText((tick * step).toFixed(digits), x, AXIS / 2);
    }
    context.textAlign = "left";
    context.fillText(label, 4, AXIS / 2);
  }

  drawRows() {
    const { context } = this;
    const every = Math.max(1, Math.ceil(12 / this.rowHeight));
    context.strokeStyle = this.rowHeight > 4 ? this.colours.row : this.colours.grid;
    context.fillStyle = this.colours.soft;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    for (let p = this.firstRow; p <= this.lastRow; p++) {
      const y = this.y(p);
      if (y < AXIS) continue;
      if (this.rowHeight > 2 || p % every === 0) line(context, GUTTER, y, this.width, y);
      if (p % every === 0) context.fillText(String(p), GUTTER - 7, y);
    }
  }

  /* Fill this.drawn with the arrows to draw; return how many there would be. */
  chooseArrows() {
    const { history, inView } = this;
    let total = 0;
    const all = history.arrowsBetween(this.from, this.until, inView);
    for (let i = 0; i < all; i++) {
      const a = inView[i], one = history.source[history.arrowMessage[a]], other = history.arrowNode[a];
      if (Math.max(one, other) < this.firstRow || Math.min(one, other) > this.lastRow) continue;
      inView[total++] = a;
    }
    // Steps keep the same arrows in the sample while one pans and zooms.
    let share = 0x10000;
    while ((total * share) / 0x10000 > ARROWS * this.share) share *= 0.7;
    this.drawn = [];
    for (let i = 0; i < total; i++) {
      if (scatter(inView[i]) < share) this.drawn.push(inView[i]);
    }
    return total;
  }

  drawArrows(arrows, alpha, strong) {
    const { context, history } = this;
    const heads = arrows.length <= HEADS, dashed = arrows.length <= DASHED;
    const thick = strong && dashed ? 2 : arrows.length > HEADS ? 0.6 : 1;
    const bySender = new Map();
    for (const a of arrows) {
      const sender = history.source[history.arrowMessage[a]];
      if (!bySender.has(sender)) bySender.set(sender, []);
      bySender.get(sender).push(a);
    }
    for (const [sender, its] of bySender) {
      context.strokeStyle = context.fillStyle = this.sender(sender);
      context.globalAlpha = alpha * (heads ? 0.85 : 0.5);
      context.lineWidth = thick;
      context.setLineDash(dashed ? DASHES[sender % DASHES.length] : []);
      this.drawLines(its);
      context.setLineDash([]);
      if (heads) this.drawHeads(its, strong ? 7 : 5);
      context.globalAlpha = alpha * 0.5;
      this.drawBars(its);
    }
    context.globalAlpha = 1;
  }

  drawLines(arrows) {
    const { context, history } = this;
    for (let i = 0; i < arrows.length; i += 32) {
      context.beginPath();
      for (const a of arrows.slice(i, i + 32)) {
        const m = history.arrowMessage[a];
        const ends = clipped(this.width, this.x(history.sent[m]), this.y(history.source[m]),
          this.x(history.received[a]), this.y(history.arrowNode[a]));
        if (!ends) continue;
        context.moveTo(ends[0], ends[1]);
        context.lineTo(ends[2], ends[3]);
      }
      context.stroke();
    }
  }

  drawHeads(arrows, size) {
    const { context, history } = this;
    context.beginPath();
    for (const a of arrows) {
      const m = history.arrowMessage[a];
      const x = this.x(history.received[a]), y = this.y(history.arrowNode[a]);
      if (x < 0 || x > this.width + size) continue;
      const angle = Math.atan2(y - this.y(history.source[m]), x - this.x(history.sent[m]));
      context.moveTo(x, y);
      for (const turn of [2.75, -2.75]) context.lineTo(x + size * Math.cos(angle + turn), y + size * Math.sin(angle + turn));
      context.closePath();
    }
    context.fill();
  }

  drawBars(arrows) {
    const { context, history } = this;
    const height = Math.max(1, Math.min(9, this.rowHeight * 0.5));
    for (const a of arrows) {
      if (!history.isHeld(a)) continue;
      const left = Math.max(-10, this.x(history.received[a]));
      const right = Math.min(this.width + 10, this.x(Math.min(history.delivered[a], history.last)));
      if (right >= GUTTER) context.fillRect(left, this.y(history.arrowNode[a]) - height / 2, Math.max(1, right - left), height);
    }
  }

  /* Sends as shapes and deliveries as ticks; where they are too many, how dense they are. */
  drawMarks(dim) {
    const { context, history } = this;
    const ranges = [];
    let count = 0;
    for (let p = this.firstRow; p <= this.lastRow; p++) {
      const start = history.eventFrom(p, this.from), end = history.eventFrom(p, this.until);
      ranges.push([p, start, end]);
      count += end - start;
    }
    if (count > MARKS * this.share || this.rowHeight < 5) return drawDensity(this, ranges, dim);
    context.globalAlpha = dim ? 0.3 : 1;
    for (const [p, start, end] of ranges) {
      const y = this.y(p), tick = Math.min(5, this.rowHeight * 0.3);
      for (let e = start; e < end; e++) {
        const sender = history.source[history.message[e]], x = this.x(history.at[e]);
        context.fillStyle = this.sender(sender);
        if (history.kind[e] === SEND) shape(context, sender % 5, x, y, Math.min(5, this.rowHeight * 0.4));
        else if (history.kind[e] === DELIVER && sender !== p) context.fillRect(x - 0.75, y - tick, 1.5, 2 * tick);
      }
    }
    context.globalAlpha = 1;
  }

  /* A message with all its arrows, and those through which something happened before it. */
  drawChosen(m) {
    const { history } = this;
    if (!this.pasts.has(m)) this.pasts = new Map([[m, history.past(m)]]);
    const past = this.pasts.get(m);
    const before = this.drawn.filter((a) => {
      const e = history.deliverEvent[a];
      return e >= 0 && e < past[history.arrowNode[a]];
    });
    this.drawArrows(before, 0.75, false);
    const own = Array.from({ length: history.arrowCount[m] }, (_, i) => history.arrowStart[m] + i);
    const at = this.pinned === m ? this.process : this.hovered?.process;
    const way = at === undefined ? [] : history.ways.way(m, at);
    this.drawArrows(own, way.length ? 0.45 : 1, true);
    drawWay(this, way, m);
    const x = this.x(history.sent[m]), y = this.y(history.source[m]);
    this.context.fillStyle = this.sender(history.source[m]);
    shape(this.context, history.source[m] % 5, x, y, 7);
    this.drawName(m);
  }

  sender(process) {
    const { colours } = this;
    return [...COLOURS, colours.ink][process % (COLOURS.length + 1)];
  }

  drawNames() {
    const { history } = this;
    if (this.rowHeight < 14) return;
    const seen = new Set(this.drawn.map((a) => history.arrowMessage[a]));
    const shown = [...seen].filter((m) => history.sent[m] >= this.from);
    if (shown.length <= NAMES) for (const m of shown) this.drawName(m);
  }

  drawName(m) {
    const { context, history } = this;
    const x = this.x(history.sent[m]) + 4, y = Math.max(AXIS + 8, this.y(history.source[m]) - 9);
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "left";
    context.lineWidth = 3;
    context.strokeStyle = this.colours.halo;
    context.strokeText(history.name(m), x, y);
    context.fillStyle = this.colours.ink;
    context.fillText(history.name(m), x, y);
  }

  tell(total) {
    const { history } = this;
    const some = this.drawn.length < total;
    const count = (n) => n.toLocaleString("en");
    this.root.querySelector(".note").textContent =
      (some ? `showing ${count(this.drawn.length)} of ${count(total)} arrows; zoom in for all` : `${count(total)} arrows`) +
      (history.kind.length < history.total
        ? ` · ${count(history.kind.length)} of the run’s ${count(history.total)} events, from ${clock(history.first)} to ${clock(history.last)}, where most messages were held back`
        : "") +
      (history.violations.length ? ` · ✗ where causal order broke: ${count(history.violations.length)}${this.marks.length < history.violations.length ? `, ${count(this.marks.length)} of them here` : ""}` : "");
    this.root.dataset.drawn = `${this.drawn.length}/${total}`;
  }

  // ---- finding what is under the pointer

  pick(x, y) {
    if (x < GUTTER || y < AXIS) return null;
    return this.pickEvent(x, y) ?? this.pickArrow(x, y);
  }

  pickEvent(x, y) {
    const { history } = this;
    const p = Math.round((y - AXIS) / this.rowHeight + this.top - 0.5);
    if (p < 0 || p >= history.processes || Math.abs(this.y(p) - y) > PICK) return null;
    let best = null, nearest = PICK;
    const end = history.eventFrom(p, this.time(x + PICK));
    for (let e = history.eventFrom(p, this.time(x - PICK)); e < end; e++) {
      const distance = Math.abs(this.x(history.at[e]) - x);
      // A send lies under the sender's own delivery at the same moment.
      if (distance < nearest) { nearest = distance; best = e; }
    }
    return best === null ? null : { message: history.message[best], process: p };
  }

  pickArrow(x, y) {
    const { history } = this;
    let best = null, nearest = PICK;
    for (const a of this.drawn) {
      const m = history.arrowMessage[a], row = this.y(history.arrowNode[a]);
      const end = this.x(history.received[a]);
      const bar = Math.abs(row - y) < PICK && x >= end && x <= this.x(history.delivered[a]);
      const distance = bar ? 1 : segmentDistance(x, y, this.x(history.sent[m]), this.y(history.source[m]), end, row);
      if (distance < nearest) { nearest = distance; best = { message: m, process: history.arrowNode[a] }; }
    }
    return best;
  }
}
