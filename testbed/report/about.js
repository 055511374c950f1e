/* What the page says about a message: its delay at a process in parts, and its way hop by hop. */
"use strict";

const BEHIND_LISTED = 6;

function element(tag, attributes, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

/* Milliseconds to the nanosecond. */
function exactly(nanoseconds) {
  return (nanoseconds / 1e6).toLocaleString("en", { minimumFractionDigits: 6, maximumFractionDigits: 6 });
}

class About {
  constructor(diagram) {
    this.history = diagram.history;
    this.ways = diagram.history.ways;
  }

  /* A link that shows a message, at a process if one is named. */
  link(m, process) {
    const name = this.history.name(m), at = process === undefined ? name : `${name}@${process}`;
    return element("a", { href: `#${at}` }, name);
  }

  /* The delay of a message at a process: its parts as a bar and in words, and its hops. */
  delay(m, process) {
    const { ways, history } = this;
    const row = ways.row(m, process);
    if (row < 0) return [];
    const parts = ways.partsOf(row);
    const total = parts.reduce((sum, [, , time]) => sum + time, 0);
    const bar = element("div", { class: "parts", role: "img", "aria-label": parts.map(([, label, time]) => `${label} ${exactly(time)} ms`).join(", ") });
    for (const [name, label, time] of parts) {
      const part = element("span", { class: `part ${name}`, title: `${label}: ${exactly(time)} ms` });
      part.style.flexGrow = Math.max(0, time / total);
      bar.append(part);
    }
    const words = element("div", { class: "sum" }, `${exactly(total)} ms =`);
    parts.forEach(([name, label, time], place) => {
      words.append(place ? " + " : " ", element("span", { class: "term" }, element("i", { class: `part ${name}` }), `${label} ${exactly(time)}`));
    });
    const cause = ways.cause(row);
    return [bar, words, ...this.waited(row, cause, process), ...this.way(m, process)];
  }

  /* What a message that was held back waited for at last, and how that came. */
  waited(row, cause, process) {
    if (cause === undefined) return [];
    const route = this.route(cause, process);
    return [element("div", {}, "held back, at last for ", this.link(cause, process),
      route ? `, which came by ${route} and was delivered ${exactly(this.delayOf(cause, process))} ms after its multicast` : "")];
  }

  delayOf(m, process) {
    const row = this.ways.row(m, process);
    return row < 0 ? NaN : this.ways.partsOf(row).reduce((sum, [, , time]) => sum + time, 0);
  }

  route(m, process) {
    const hops = this.ways.way(m, process);
    return hops.length ? [this.ways.tail[hops[0]], ...hops.map((h) => this.ways.head[h])].join(" → ") : "";
  }

  /* A row for each link on the way. */
  way(m, process) {
    const { ways } = this, hops = ways.way(m, process);
    if (!hops.length) return [];
    const heads = ["link", "queued at (ms)", "waited", "behind", "transmission", "propagation", "arrived at (ms)"];
    const body = element("tbody", {});
    hops.forEach((h, place) => {
      if (ways.tail[h] === ways.sender[h]) body.append(this.sending(h, place, heads.length));
      const { sending, delay, more } = ways.split(h);
      const cells = [exactly(ways.queued[h]), exactly(ways.started[h] - ways.queued[h]), this.behind(h),
        exactly(sending), exactly(delay) + (more ? ` ${more > 0 ? "+" : "−"} ${exactly(Math.abs(more))}` : ""), exactly(ways.arrived[h])];
      body.append(element("tr", {}, element("th", { scope: "row" }, `${ways.tail[h]} → ${ways.head[h]}`),
        ...cells.map((cell, i) => element("td", i === 2 ? {} : { class: "n" }, cell))));
    });
    const head = element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", ...(i && i !== 3 ? { class: "n" } : {}) }, text)));
    return [element("div", { class: "scroll" }, element("table", { class: "way" }, element("thead", {}, head), body))];
  }

  /* Who handed this copy to the network, and in how many packets. */
  sending(h, place, width) {
    const { ways } = this, cut = ways.fragments(h);
    const who = `process ${ways.sender[h]} ${place ? "passes it on" : "sends it"}`;
    const whom = ways.receiver[h] === NONE ? "along a tree" : `to process ${ways.receiver[h]}`;
    const pieces = cut > 1 ? `, in ${cut} fragments; this is the one that arrived last` : "";
    return element("tr", { class: "leg" }, element("td", { colspan: width }, `${who} ${whom}, ${ways.bytes[h]} bytes on the link${pieces}`));
  }

  /* The messages in each packet, of hops over one link in their order. */
  packets(hops) {
    const { ways } = this, found = new Map();
    for (const h of hops) {
      if (!found.has(ways.started[h])) found.set(ways.started[h], []);
      found.get(ways.started[h]).push(ways.message[h]);
    }
    return [...found.values()].map((messages) => messages.sort((a, b) => a - b));
  }

  behind(h) {
    const { ways } = this, ahead = ways.ahead[h], cell = element("span", {});
    if (!ahead) return "–";
    const seen = [];
    for (const messages of this.packets(ways.behind(h).reverse())) {
      const name = messages.join(" ");
      if (seen.at(-1)?.name === name) seen.at(-1).count++;
      else seen.push({ name, messages, count: 1 });
    }
    cell.append(`${ahead} ${ahead === 1 ? "packet" : "packets"}${seen.length ? ": " : ""}`);
    seen.slice(0, BEHIND_LISTED).forEach(({ messages, count }, i) => {
      cell.append(i ? ", " : "");
      messages.forEach((m, j) => cell.append(j ? " + " : "", this.link(m)));
      if (count > 1) cell.append(` ×${count}`);
    });
    if (seen.length > BEHIND_LISTED) cell.append(", …");
    return cell;
  }
}
