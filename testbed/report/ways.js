/* The ways of messages over the links, hop by hop: what every delay consists of.
   The columns are those that testbed/report/ways.py packs. Times are nanoseconds. */
"use strict";

class Ways {
  constructor(history, about, columns) {
    this.history = history;
    this.labels = about.parts ?? {};
    for (const name of ["Tail", "Head", "Sender", "Receiver", "Copy", "Fragment", "Bytes", "Ahead", "Message"]) {
      this[name.toLowerCase()] = columns[`hop${name}`] ?? new Uint32Array(0);
    }
    const time = (name) => joined(columns[`${name}Low`] ?? [], columns[`${name}High`] ?? []);
    this.queued = time("hopQueued");
    this.started = time("hopWait").map((wait, h) => this.queued[h] + wait);
    this.arrived = time("hopTook").map((took, h) => this.queued[h] + took);
    this.starts = new Int32Array(history.source.length + 1);
    for (const m of this.message) this.starts[m + 1]++;
    for (let m = 0; m < history.source.length; m++) this.starts[m + 1] += this.starts[m];
    this.rowOf = new Int32Array(history.kind.length).fill(-1);
    (columns.partEvent ?? []).forEach((event, row) => { this.rowOf[event] = row; });
    this.parts = Object.keys(this.labels).map((name) => [name, time(name)]);
    for (const name of ["viaSender", "viaCopy", "causeSource", "causeSeq"]) this[name] = columns[name] ?? new Uint32Array(0);
    this.links = new Map((about.links ?? []).map(([tail, head, delay, rate]) => [`${tail} ${head}`, { delay, rate }]));
  }

  /* The row of what is known of a message's delivery at a process, or -1. */
  row(m, process) {
    const { history } = this;
    for (let a = history.arrowStart[m]; a < history.arrowStart[m] + history.arrowCount[m]; a++) {
      if (history.arrowNode[a] === process) return history.deliverEvent[a] < 0 ? -1 : this.rowOf[history.deliverEvent[a]];
    }
    return -1;
  }

  /* [name, label, nanoseconds] of each part of a delay that is not zero. */
  partsOf(row) {
    return this.parts.map(([name, times]) => [name, this.labels[name], times[row]]).filter(([, , time]) => time);
  }

  /* How long a message had been at a process when that held it back or delivered it. */
  waited(m, process) {
    const row = this.row(m, process);
    return row < 0 ? 0 : this.partsOf(row).reduce((sum, [name, , time]) => sum + (name === "waiting" ? time : 0), 0);
  }

  /* The number of the message that one was held back for last; undefined if it is not known. */
  cause(row) {
    if (row < 0 || this.causeSource[row] === NONE) return undefined;
    return this.history.numbers.get(`m(${this.causeSource[row]},${this.causeSeq[row]})`);
  }

  /* The hops of a message on its way to a process, from its source on. */
  way(m, process) {
    const hops = [], seen = new Set();
    for (let at = process; at !== this.history.source[m] && !seen.has(at);) {
      seen.add(at);
      const row = this.row(m, at);
      const [via, copy] = row < 0 ? this.firstCopy(m, at) : [this.viaSender[row], this.viaCopy[row]];
      if (via === undefined || via === NONE) break;
      hops.unshift(...this.leg(m, via, copy, at));
      at = via;
    }
    return hops;
  }

  /* Sender and number of the copy by which a relay that is no destination got a message. */
  firstCopy(m, process) {
    const ends = new Map();
    for (const h of this.hopsOf(m)) {
      if (this.head[h] !== process || (this.receiver[h] !== process && this.receiver[h] !== NONE)) continue;
      const copy = `${this.sender[h]} ${this.copy[h]}`;
      const other = ends.get(copy);
      if (other === undefined || this.arrived[h] > this.arrived[other]) ends.set(copy, h);
    }
    const first = [...ends.values()].reduce((a, b) => (a === null || this.arrived[b] < this.arrived[a] ? b : a), null);
    return first === null ? [] : [this.sender[first], this.copy[first]];
  }

  /* The hops of one copy's fragment that came last. */
  leg(m, sender, copy, receiver) {
    const its = this.hopsOf(m).filter((h) => this.sender[h] === sender && this.copy[h] === copy &&
      (this.receiver[h] === receiver || this.receiver[h] === NONE));
    const firsts = new Map();
    for (const h of its.filter((hop) => this.head[hop] === receiver)) {
      const other = firsts.get(this.fragment[h]);
      if (other === undefined || this.arrived[h] < this.arrived[other]) firsts.set(this.fragment[h], h);
    }
    let hop = [...firsts.values()].reduce((last, h) => (last === null || this.arrived[h] > this.arrived[last] ? h : last), null);
    const hops = [];
    while (hop !== null && hops.length < 1000) {
      hops.unshift(hop);
      const here = hop;
      hop = this.tail[here] === sender ? null : its.filter((h) => this.head[h] === this.tail[here] &&
        this.fragment[h] === this.fragment[here] && this.arrived[h] <= this.queued[here])
        .reduce((last, h) => (last === null || this.arrived[h] > this.arrived[last] ? h : last), null);
    }
    return hops;
  }

  hopsOf(m) {
    return Array.from({ length: this.starts[m + 1] - this.starts[m] }, (_, i) => this.starts[m] + i);
  }

  /* How many packets a copy's message was cut into. */
  fragments(h) {
    const same = this.hopsOf(this.message[h]).filter((o) => this.sender[o] === this.sender[h] && this.copy[o] === this.copy[h]);
    return new Set(same.map((o) => this.fragment[o])).size;
  }

  /* Transmission and propagation of a hop, and what it took beyond. */
  split(h) {
    const { delay, rate } = this.links.get(`${this.tail[h]} ${this.head[h]}`) ?? { delay: 0, rate: 1e18 };
    const sending = Math.floor((this.bytes[h] * 8e9) / rate);
    return { sending, delay, more: this.arrived[h] - this.started[h] - sending - delay };
  }

  /* The hops of those packets before this one on its link that it waited for, the nearest first. */
  behind(h) {
    const same = this.onLink(this.tail[h], this.head[h]);
    let place = same.indexOf(h);
    const found = [];
    while (--place >= 0) {
      const other = same[place];
      if (this.started[other] + this.split(other).sending <= this.queued[h]) break;
      if (this.started[other] !== this.started[h]) found.push(other); // else it is in the same packet
    }
    return found;
  }

  /* All hops over a link, in the order of its queue. */
  onLink(tail, head) {
    if (!this.byLink) {
      this.byLink = new Map();
      for (let h = 0; h < this.tail.length; h++) {
        const key = `${this.tail[h]} ${this.head[h]}`;
        if (!this.byLink.has(key)) this.byLink.set(key, []);
        this.byLink.get(key).push(h);
      }
      for (const hops of this.byLink.values()) hops.sort((a, b) => this.started[a] - this.started[b] || this.queued[a] - this.queued[b]);
    }
    return this.byLink.get(`${tail} ${head}`) ?? [];
  }
}
