/* What lies on top of a space-time diagram: the way of a chosen message, and where order broke. */
"use strict";

/* A message's way over the links: along a line where it waits for one, then across it. */
function drawWay(diagram, hops, m) {
  const { context, history } = diagram, { ways } = history;
  context.strokeStyle = context.fillStyle = diagram.sender(history.source[m]);
  for (const h of hops) {
    const [y0, y1] = [diagram.y(ways.tail[h]), diagram.y(ways.head[h])];
    const [queued, started, arrived] = [ways.queued[h], ways.started[h], ways.arrived[h]].map((time) => diagram.x(time));
    context.lineWidth = 2.5;
    const ends = clipped(diagram.width, started, y0, arrived, y1);
    if (ends) line(context, ...ends);
    context.lineWidth = 6;
    const waits = clipped(diagram.width, queued, y0, started, y0);
    if (waits && started > queued) line(context, ...waits);
    shape(context, 0, arrived, y1, 3.5);
  }
}

/* Where a violation of causal order is in the diagram; null if it is not in it. */
function placed(history, { node, kind, effect, cause }) {
  const at = ([source, seq]) => {
    const m = history.numbers.get(`m(${source},${seq})`);
    for (let a = history.arrowStart[m]; a < history.arrowStart[m] + history.arrowCount[m]; a++) {
      if (history.arrowNode[a] === node) return history.delivered[a];
    }
    const e = m === undefined ? -1 : history.sendEvent[m];
    return e >= 0 && history.node[e] === node ? history.at[e] : undefined;
  };
  const early = at(effect);
  return early === undefined ? null : { node, early, late: kind === "order" ? at(cause) ?? early : Infinity };
}

/* A cross where a process delivered a message too early, and a line to what should have come first. */
function drawViolations(diagram) {
  const { context } = diagram;
  context.strokeStyle = diagram.colours.bad;
  for (const { node, early, late } of diagram.marks) {
    const x = diagram.x(early), y = diagram.y(node), r = Math.max(4, Math.min(8, diagram.rowHeight * 0.35));
    context.lineWidth = 1.5;
    context.setLineDash([3, 3]);
    const until = clipped(diagram.width, x, y - r, diagram.x(Math.min(late, diagram.until)), y - r);
    if (until) line(context, ...until);
    context.setLineDash([]);
    context.lineWidth = 3;
    line(context, x - r, y - r, x + r, y + r);
    line(context, x - r, y + r, x + r, y - r);
  }
}
