/* How a person moves about in a space-time diagram, and what it says about a message. */
"use strict";

const LISTED = 12, VECTOR_WRITTEN_OUT = 32;

class Controls {
  constructor(diagram) {
    this.diagram = diagram;
    this.root = diagram.root;
    this.pointers = new Map();
    this.about = new About(diagram);
    this.listenToPointer(diagram.canvas);
    diagram.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const button of this.root.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => this.act(button.dataset.do));
    }
    this.root.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(this.root.querySelector("input").value);
    });
  }

  act(what) {
    const { diagram } = this;
    const step = diagram.width / 8;
    ({
      in: () => diagram.zoom(0.6),
      out: () => diagram.zoom(1 / 0.6),
      taller: () => diagram.stretch(1.5),
      flatter: () => diagram.stretch(1 / 1.5),
      fit: () => diagram.fit(),
      left: () => diagram.pan(-step, 0),
      right: () => diagram.pan(step, 0),
      up: () => diagram.pan(0, -60),
      down: () => diagram.pan(0, 60),
      next: () => this.walk(1),
      previous: () => this.walk(-1),
      receiver: () => this.receiver(1),
      sender: () => this.receiver(-1),
      unpin: () => this.pin(null),
    })[what]();
  }

  key(event) {
    const what = {
      "+": "in", "=": "in", "-": "out", "]": "taller", "[": "flatter", 0: "fit", Home: "fit",
      ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
      n: "next", p: "previous", r: "receiver", R: "sender", Escape: "unpin",
    }[event.key];
    if (!what || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.act(what);
  }

  listenToPointer(canvas) {
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener("wheel", (event) => {
      // The page scrolls past the diagram until one has clicked into it.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (event.shiftKey) this.diagram.pan(event.deltaX || event.deltaY, 0);
      else this.diagram.zoom(Math.exp(event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at(event).x);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that has just gone */ }
      this.pointers.set(event.pointerId, at(event));
      this.moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.pointers.has(event.pointerId)) this.drag(event.pointerId, at(event));
      else this.hover(at(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.pointers.delete(event.pointerId) && this.moved < 5) this.click(at(event));
    });
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.hover(null));
  }

  drag(id, to) {
    const from = this.pointers.get(id);
    const others = [...this.pointers].filter(([other]) => other !== id);
    this.moved += Math.hypot(to.x - from.x, to.y - from.y);
    if (others.length) {
      const [, still] = others[0];
      const before = Math.hypot(from.x - still.x, from.y - still.y);
      this.diagram.zoom(before / Math.max(1, Math.hypot(to.x - still.x, to.y - still.y)), (to.x + still.x) / 2);
    } else {
      this.diagram.pan(from.x - to.x, from.y - to.y);
    }
    this.pointers.set(id, to);
  }

  hover(point) {
    const { diagram } = this;
    const found = point && diagram.pick(point.x, point.y);
    const before = diagram.hovered;
    if (found?.message === before?.message && found?.process === before?.process) return;
    diagram.hovered = found;
    diagram.canvas.style.cursor = found ? "pointer" : "grab";
    if (diagram.pinned === null) this.describe(found);
    diagram.request();
  }

  click(point) {
    const found = this.diagram.pick(point.x, point.y);
    this.diagram.canvas.focus({ preventScroll: true });
    this.pin(found?.message ?? null, found?.process);
  }

  pin(message, process) {
    const { diagram } = this;
    diagram.pinned = message;
    diagram.process = message === null ? undefined : process ?? diagram.history.slowest(message);
    this.describe(message === null ? null : { message, process: diagram.process });
    this.diagram.request();
  }

  /* Pin the next or previous message in the order of sending. */
  walk(step) {
    const { history, pinned } = this.diagram;
    const order = history.bySending;
    const place = pinned === null ? (step > 0 ? -1 : order.length) : order.indexOf(pinned);
    const message = order[place + step];
    if (message === undefined) return;
    this.pin(message);
    this.diagram.centre(message);
  }

  /* Show the pinned message at the next or previous process that got it. */
  receiver(step) {
    const { history, pinned, process } = this.diagram;
    if (pinned === null) return;
    const nodes = Array.from({ length: history.arrowCount[pinned] }, (_, i) => history.arrowNode[history.arrowStart[pinned] + i]);
    if (nodes.length) this.pin(pinned, nodes.at((nodes.indexOf(process) + step) % nodes.length));
  }

  find(text) {
    const found = this.diagram.history.find(text);
    if (found === undefined) {
      this.say([`There is no message “${text}” in this diagram; a message is named like m(3,7), at a process m(3,7)@5.`]);
      return;
    }
    this.pin(found.message, found.process);
    this.diagram.centre(found.message);
  }

  describe(found) {
    if (!found) return this.say([]);
    const { history } = this.diagram;
    const m = found.message;
    const sent = history.sent[m];
    const arrows = Array.from({ length: history.arrowCount[m] }, (_, i) => history.arrowStart[m] + i);
    const lines = [
      `${history.name(m)}: multicast by process ${history.source[m]} ` +
        (sent < 0 ? "at a time that no log tells" : `at ${clock(sent)}`),
      ...this.here(arrows.find((a) => history.arrowNode[a] === found.process)),
      ...(found.process === undefined ? [] : this.about.delay(m, found.process)),
      ...this.broken(m, found.process),
      ...this.delays(arrows, sent),
      `vector: ${written(history.vector(m))}`,
      `causal past: ${this.pastCount(m)}`,
      ...this.waits(arrows),
    ];
    this.say(lines);
  }

  here(a) {
    if (a === undefined) return [];
    const { history } = this.diagram;
    const before = history.ways.waited(history.arrowMessage[a], history.arrowNode[a]);
    const came = `at process ${history.arrowNode[a]}: received at ${clock(history.received[a] - before)}`;
    if (history.deliverEvent[a] < 0) return [`${came}, never delivered`];
    const delay = history.delivered[a] - history.sent[history.arrowMessage[a]];
    return [`${came}, delivered at ${clock(history.delivered[a])}, delay ${clock(delay)}`];
  }

  /* Where this message broke causal order. */
  broken(m, process) {
    const { history } = this.diagram;
    return history.violations
      .filter(({ effect, cause }) => [effect, cause].some(([source, seq]) => source === history.source[m] && seq === history.seq[m]))
      .sort((a, b) => (b.node === process) - (a.node === process)).slice(0, LISTED)
      .map(({ sentence }) => element("div", { class: "broken" }, `✗ ${sentence}`));
  }

  delays(arrows, sent) {
    const { history } = this.diagram;
    const done = arrows.filter((a) => history.deliverEvent[a] >= 0);
    if (!done.length) return ["delivered by no other process here"];
    const delays = done.map((a) => history.delivered[a] - sent);
    const longest = delays.indexOf(Math.max(...delays));
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length;
    return [
      `delivered by ${done.length} other processes: delay ${clock(mean)} on average, ` +
        `at most ${clock(delays[longest])} (process ${history.arrowNode[done[longest]]})`,
    ];
  }

  pastCount(m) {
    const { history } = this.diagram;
    if (history.sendEvent[m] < 0) return "begins before this diagram";
    const until = history.past(m);
    let count = 0;
    for (let p = 0; p < history.processes; p++) {
      for (let e = history.rows[p]; e < until[p]; e++) count += history.kind[e] === SEND;
    }
    return `${count.toLocaleString("en")} ${count === 1 ? "message" : "messages"}${history.beforeNode.length ? " of this diagram" : ""}`;
  }

  waits(arrows) {
    const { history } = this.diagram;
    const held = arrows.filter((a) => history.isHeld(a));
    if (!held.length) return ["held back by nobody"];
    held.sort((a, b) => (history.delivered[b] - history.received[b]) - (history.delivered[a] - history.received[a]));
    const lines = held.slice(0, LISTED).map((a) => {
      const time = history.delivered[a] - history.received[a], at = history.arrowNode[a];
      const cause = Number.isFinite(time) ? history.ways.cause(history.ways.row(history.arrowMessage[a], at)) : undefined;
      const reasons = cause === undefined ? history.reasons(a).map((m) => this.about.link(m)) : [this.about.link(cause, at)];
      const words = [`held back by process ${at} `, Number.isFinite(time) ? `for ${clock(time)}` : "to the end"];
      reasons.forEach((reason, i) => words.push(i ? ", " : cause === undefined ? ", waiting for " : ", waiting at last for ", reason));
      return element("div", {}, ...words);
    });
    return held.length > LISTED ? [...lines, `… and by ${held.length - LISTED} more`] : lines;
  }

  say(lines) {
    const panel = this.root.querySelector(".about");
    panel.replaceChildren(...lines.map((line, index) =>
      (line instanceof Element ? line : element(index ? "div" : "strong", {}, line))));
    panel.classList.toggle("empty", !lines.length);
  }
}

/* A vector as [0 3 1 …], or only its entries that are not 0 if it is long. */
function written(vector) {
  if (!vector) return "sent before this diagram begins";
  if (vector.length <= VECTOR_WRITTEN_OUT) return `[${vector.join(" ")}]`;
  const some = Array.from(vector, (count, p) => [p, count]).filter(([, count]) => count);
  return `${some.map(([p, count]) => `${p}:${count}`).join(" ")} (process:count, 0 for the others)`;
}

async function startDiagrams() {
  const controls = [];
  for (const root of document.querySelectorAll(".spacetime")) {
    const history = await unpack(root.querySelector("script").textContent.trim());
    const diagram = new Diagram(root, history);
    root.diagram = diagram;
    controls.push(new Controls(diagram));
  }
  // The address may name a message: report.html#m(3,7)
  const follow = () => {
    const text = decodeURIComponent(location.hash.slice(1));
    const found = controls.filter((each) => each.diagram.history.find(text));
    for (const each of found) each.find(text);
    found[0]?.root.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "yes";
}

startDiagrams();
