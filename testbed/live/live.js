/* The page of testbed live: goes to any step of a run, and asks for the run again with other faults. */
"use strict";

const token = document.querySelector("meta[name=token]").content;
const element = (id) => document.getElementById(id);
let run = null, current = 0, faults = [], layout = null, playing = 0;

async function ask(path, content) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "X-Token": token, "Content-Type": "application/json" },
    body: JSON.stringify(content),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function say(text, bad = false) {
  element("message").textContent = text;
  element("message").className = bad ? "bad" : "";
}

/* Simulate with these faults; the steps so far must come out the same, or the page says so. */
async function simulate(protocol, wanted, keep) {
  say("Simulating…");
  let next;
  try {
    next = await ask("/run", { protocol, faults: wanted });
  } catch (error) {
    say(error.message, true);
    return;
  }
  const before = run && keep ? JSON.stringify(run.steps.slice(0, current + 1)) : "";
  const step = keep ? current : openingStep(next);
  run = next;
  faults = wanted;
  const same = !keep || before === JSON.stringify(run.steps.slice(0, current + 1));
  say(run.failure || (same ? "" : "With this, the steps before came out differently too."), Boolean(run.failure) || !same);
  showRun();
  go(step);
  document.documentElement.dataset.ready = "yes";
}

function openingStep(next) {
  const first = next.violations.find((violation) => violation.step !== null);
  return first ? Math.max(0, first.step - 1) : 0;
}

function showRun() {
  element("title").textContent = `${run.title}, seed ${run.seed}`;
  document.title = `${run.title}: testbed live`;
  fill(element("protocol"), run.protocols.map((label, i) => option(label, i, i === run.protocol)));
  element("verdict").textContent = run.verdict;
  element("verdict").className = run.verdict === "valid" ? "good" : "bad";
  element("slider").max = Math.max(0, run.steps.length - 1);
  const chosen = Number(element("process").value) || 0;
  const names = Array.from({ length: run.processes }, (_, p) => option(String(p), p, p === chosen));
  fill(element("process"), names);
  element("save").disabled = !run.changeable;
  showDone();
}

function option(label, value, selected) {
  const made = new Option(label, value);
  made.selected = selected;
  return made;
}

function fill(parent, children) { parent.replaceChildren(...children); }

function make(tag, text, name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function button(label, title, act) {
  const made = make("button", label);
  made.title = title;
  made.addEventListener("click", act);
  return made;
}

function go(step) {
  if (!run || !run.steps.length) return;
  current = Math.max(0, Math.min(run.steps.length - 1, step));
  const now = run.steps[current];
  element("slider").value = current;
  element("clock").textContent = `step ${current + 1} of ${run.steps.length}, ${milliseconds(now.t)} ms`;
  const wrong = run.violations.filter((violation) => violation.step === current);
  fill(element("words"), now.words.map((sentence) => make("li", sentence)));
  element("wrong").textContent = wrong.map((violation) => violation.sentence).join("; ") || atEnd();
  if (now.node >= 0) element("process").value = now.node;
  showFlight();
  showProcesses();
  showState();
  draw();
}

/* What no step shows, at the last one: messages that never came. */
function atEnd() {
  if (current < run.steps.length - 1) return "";
  return run.violations.filter((violation) => violation.step === null).map((v) => v.sentence).join("; ");
}

function draw() {
  if (!run) return;
  const wrong = new Set(run.violations.map((violation) => violation.step));
  layout = drawDiagram(element("diagram"), run, current, wrong);
  drawNetwork(element("network"), run, current);
}

function onTheWay() {
  const now = run.steps[current].t;
  return run.copies.filter((copy) => {
    if (copy.sent > current) return false;
    if (copy.got !== null) return copy.got > current;
    return copy.arrived === null || copy.arrived > now;
  });
}

function showFlight() {
  const rows = onTheWay().slice(0, 200).map((copy) => {
    const row = document.createElement("tr");
    const when = copy.got === null ? "never" : `${milliseconds(run.steps[copy.got].t)} ms`;
    row.append(make("td", copy.sender), make("td", copy.receiver), make("td", copy.about), make("td", when));
    const acts = make("td", "", "do");
    if (copy.arrived > run.steps[current].t && run.changeable) {
      acts.append(
        button("drop", "the receiver never gets it", () => tamper(copy, "drop")),
        button("delay", "the receiver gets it later", () => tamper(copy, "delay")),
        button("twice", "the receiver gets it twice", () => tamper(copy, "duplicate")),
      );
    }
    row.append(acts);
    return row;
  });
  fill(element("flight").tBodies[0], rows.length ? rows : [rowOf("nothing is on its way", 5)]);
}

function rowOf(text, columns) {
  const row = document.createElement("tr"), cell = make("td", text);
  cell.colSpan = columns;
  row.append(cell);
  return row;
}

/* A fault of this message; another one of the same message is replaced. */
function tamper(copy, kind) {
  const { sender, receiver, count, incarnation } = copy;
  const fault = { kind, sender, receiver, count };
  if (incarnation) fault.incarnation = incarnation;
  if (kind !== "drop") fault.late_ms = Number(element("late").value) || 0;
  const others = faults.filter((f) => !(f.count === count && f.sender === sender && f.receiver === receiver && (f.incarnation || 0) === incarnation));
  simulate(run.protocol, [...others, fault], true);
}

/* A fault that begins right after the current instant. */
function strike(fault) {
  const at = Number(((run.steps[current].t + 1) / 1e6).toFixed(6)), lasting = Number(element("for").value);
  const timed = { ...fault, at_ms: at };
  if (lasting > 0) timed.for_ms = lasting;
  simulate(run.protocol, [...faults, timed], true);
}

function showProcesses() {
  const rows = Array.from({ length: run.processes }, (_, p) => {
    const row = document.createElement("tr"), acts = make("td", "", "do");
    if (run.changeable) {
      acts.append(
        button("crash", "kill the process; it starts again after that time, if any", () => strike({ kind: "crash", node: p })),
        button("pause", "the process stands still", () => strike({ kind: "pause", node: p })),
        button("cut off", "all links of the node are down", () => strike({ kind: "partition", nodes: [p] })),
      );
    }
    row.append(make("th", `h${p}`), make("td", lastOf(p)), acts);
    return row;
  });
  fill(element("processes").tBodies[0], rows);
}

/* What a process delivered last, in few words. */
function lastOf(process) {
  const delivered = [];
  for (let s = current; s >= 0 && delivered.length < 3; s--) {
    const step = run.steps[s];
    if (step.node !== process) continue;
    if (step.kind === "crash") return delivered.length ? `… ${delivered.reverse().join(", ")}` : "crashed";
    delivered.push(...[...step.delivers].reverse());
  }
  return delivered.length ? `… ${delivered.slice(0, 3).reverse().join(", ")}` : "";
}

function stateOf(process, until) {
  let state = new Map();
  for (let s = 0; s <= until; s++) {
    const step = run.steps[s];
    if (step.node !== process) continue;
    if (step.kind === "crash") state = new Map();
    for (const [part, , value] of step.changes) {
      if (value === null) state.delete(part); else state.set(part, value);
    }
  }
  return state;
}

function showState() {
  const process = Number(element("process").value), step = run.steps[current];
  const changed = new Map(step.node === process ? step.changes.map(([part, was]) => [part, was]) : []);
  const state = stateOf(process, current);
  const parts = [...state.keys()].sort((a, b) => changed.has(b) - changed.has(a));
  const rows = parts.map((part) => {
    const row = document.createElement("tr"), value = make("td", "");
    if (changed.get(part)) value.append(make("span", changed.get(part), "was"), " → ");
    value.append(make("code", state.get(part)));
    row.append(make("th", part), value);
    if (changed.has(part)) row.className = "changed";
    return row;
  });
  fill(element("state").tBodies[0], rows.length ? rows : [rowOf("nothing is known of it yet", 2)]);
}

function showDone() {
  const entries = [...run.faults.map((fault) => [fault, null]), ...faults.map((fault, i) => [fault, i])];
  fill(element("done"), entries.map(([fault, index]) => {
    const entry = make("li", "");
    entry.append(make("code", Object.entries(fault).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join(", ")));
    if (index === null) entry.append(" (in the file)");
    else entry.append(" ", button("undo", "without this", () => simulate(run.protocol, faults.filter((_, i) => i !== index), true)));
    return entry;
  }));
}

const isDelivery = (step) => step.delivers.length > 0;
const isHold = (step) => step.holds.length > 0;

function find(test) {
  for (let s = current + 1; s < run.steps.length; s++) if (test(run.steps[s], s)) return s;
  return run.steps.length - 1;
}

const GO = {
  first: () => 0,
  back: () => current - 1,
  next: () => current + 1,
  delivery: () => find(isDelivery),
  hold: () => find(isHold),
  violation: () => {
    const later = run.violations.map((violation) => violation.step).filter((step) => step !== null && step > current + 1);
    return later.length ? Math.min(...later) - 1 : run.violations.some((v) => v.step === current + 1) ? current + 1 : run.steps.length - 1;
  },
  last: () => run.steps.length - 1,
};
const KEYS = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", d: "delivery", h: "hold", v: "violation", " ": "play" };

function act(what) {
  if (!run) return;
  if (what !== "play") { go(GO[what]()); return; }
  playing = playing ? (clearInterval(playing), 0) : setInterval(() => (current < run.steps.length - 1 ? go(current + 1) : act("play")), 400);
  document.querySelector("[data-go=play]").setAttribute("aria-pressed", String(Boolean(playing)));
  document.querySelector("[data-go=play]").textContent = playing ? "Pause" : "Play";
}

async function save() {
  try {
    const { path } = await ask("/save", { protocol: run.protocol, faults });
    say(`Saved. To repeat it on real hosts: testbed run ${path} --engine virtual`);
  } catch (error) {
    say(error.message, true);
  }
}

for (const made of document.querySelectorAll("[data-go]")) made.addEventListener("click", () => act(made.dataset.go));
element("slider").addEventListener("input", (event) => go(Number(event.target.value)));
element("protocol").addEventListener("change", (event) => simulate(Number(event.target.value), faults, false));
element("process").addEventListener("change", showState);
element("save").addEventListener("click", save);
element("diagram").addEventListener("click", (event) => layout && go(layout.stepAt(event.offsetX)));
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "s") save();
  const what = KEYS[event.key];
  if (!what || (event.key === " " && event.target.matches("button"))) return;
  event.preventDefault();
  act(what);
});
simulate(0, [], false);
