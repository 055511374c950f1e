/* A run's events, indexed: who sent what, when it came, and what happened before what.
   The columns are those that testbed/report/spacetime.py packs. Times are nanoseconds. */
"use strict";

const SEND = 0, HOLD = 1, DELIVER = 2;
const NONE = 0xffffffff;
const BLOCK = 256;
const ARRAYS = { uint8: Uint8Array, uint32: Uint32Array, int32: Int32Array };

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const headSize = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headSize)));
  const columns = {};
  let offset = 4 + headSize;
  for (const [name, type, length] of about.columns) {
    columns[name] = new ARRAYS[type](buffer, offset, length);
    offset += Math.ceil(columns[name].byteLength / 4) * 4;
  }
  const history = new History(about, columns);
  history.ways = new Ways(history, about, columns);
  return history;
}

class History {
  constructor(about, columns) {
    Object.assign(this, about, columns);
    this.total = about.events;
    this.violations = about.violations ?? [];
    this.at = joined(columns.atLow, columns.atHigh);
    this.sent = joined(columns.sentLow, columns.sentHigh);
    this.rows = this.rowStarts();
    this.sendEvent = new Int32Array(this.source.length).fill(-1);
    for (let e = 0; e < this.kind.length; e++) {
      const m = this.message[e];
      if (this.kind[e] === SEND && this.sendEvent[m] < 0) this.sendEvent[m] = e;
    }
    this.numbers = new Map();
    for (let m = 0; m < this.source.length; m++) this.numbers.set(this.name(m), m);
    this.indexArrows();
  }

  name(m) { return `m(${this.source[m]},${this.seq[m]})`; }

  /* The message, and the process, that a person means by "m(3,7)", "3,7" or "m(3,7)@5"; undefined if none. */
  find(text) {
    const parts = /^\s*m?\s*\(?\s*(\d+)\s*[,; ]\s*(\d+)\s*\)?\s*(?:@\s*(\d+)\s*)?$/i.exec(text);
    const message = parts ? this.numbers.get(`m(${+parts[1]},${+parts[2]})`) : undefined;
    if (message === undefined) return undefined;
    return { message, process: parts[3] === undefined ? this.slowest(message) : +parts[3] };
  }

  /* The process that delivered a message last. */
  slowest(m) {
    let found, latest = -Infinity;
    for (let a = this.arrowStart[m]; a < this.arrowStart[m] + this.arrowCount[m]; a++) {
      if (this.deliverEvent[a] >= 0 && this.delivered[a] > latest) { latest = this.delivered[a]; found = this.arrowNode[a]; }
    }
    return found;
  }

  rowStarts() {
    const starts = new Int32Array(this.processes + 1);
    for (let e = 0; e < this.node.length; e++) starts[this.node[e] + 1]++;
    for (let p = 0; p < this.processes; p++) starts[p + 1] += starts[p];
    return starts;
  }

  /* The first event of a process at or after a time. */
  eventFrom(process, time) {
    let low = this.rows[process], high = this.rows[process + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /* An arrow is a message at one receiver: received (held from then, or delivered at once), then
     delivered. Arrows are in the order in which their messages were sent; those of one message
     are together. */
  indexArrows() {
    const found = this.foundArrows();
    const order = Array.from(this.source.keys()).sort((a, b) => this.sent[a] - this.sent[b] || a - b);
    this.bySending = Uint32Array.from(order);
    const counts = new Int32Array(order.length);
    for (const m of found.message) counts[m]++;
    this.arrowStart = new Int32Array(order.length);
    this.arrowCount = counts;
    let start = 0;
    for (const m of order) { this.arrowStart[m] = start; start += counts[m]; }
    const next = this.arrowStart.slice();
    const size = found.message.length;
    this.arrowMessage = new Uint32Array(size);
    this.arrowNode = new Uint32Array(size);
    this.received = new Float64Array(size);
    this.delivered = new Float64Array(size);
    this.deliverEvent = new Int32Array(size);
    for (let i = 0; i < size; i++) {
      const a = next[found.message[i]]++;
      this.arrowMessage[a] = found.message[i];
      this.arrowNode[a] = found.node[i];
      this.received[a] = found.received[i];
      this.deliverEvent[a] = found.event[i];
      this.delivered[a] = found.event[i] < 0 ? Infinity : this.at[found.event[i]];
    }
    this.blockEnd = new Float64Array(Math.ceil(size / BLOCK)).fill(-Infinity);
    for (let a = 0; a < size; a++) {
      const block = Math.floor(a / BLOCK);
      this.blockEnd[block] = Math.max(this.blockEnd[block], this.delivered[a]);
    }
  }

  foundArrows() {
    const found = { message: [], node: [], received: [], event: [] };
    for (let p = 0; p < this.processes; p++) {
      const held = new Map();
      const add = (m, received, event) => {
        if (this.source[m] === p || this.sent[m] < 0) return;
        found.message.push(m); found.node.push(p); found.received.push(received); found.event.push(event);
      };
      for (let e = this.rows[p]; e < this.rows[p + 1]; e++) {
        const m = this.message[e];
        if (this.kind[e] === HOLD && !held.has(m)) held.set(m, this.at[e]);
        if (this.kind[e] !== DELIVER) continue;
        add(m, held.get(m) ?? this.at[e], e);
        held.delete(m);
      }
      for (const [m, received] of held) add(m, received, -1);
    }
    return found;
  }

  /* The arrows that are under way or held back at some time from first to last. */
  arrowsBetween(first, last, into) {
    let count = 0;
    for (let block = 0; block < this.blockEnd.length; block++) {
      if (this.blockEnd[block] < first) continue;
      const end = Math.min((block + 1) * BLOCK, this.arrowMessage.length);
      if (this.sent[this.arrowMessage[block * BLOCK]] > last) break;
      for (let a = block * BLOCK; a < end; a++) {
        if (this.delivered[a] >= first && this.sent[this.arrowMessage[a]] <= last) into[count++] = a;
      }
    }
    return count;
  }

  isHeld(a) { return this.received[a] < this.delivered[a]; }

  /* For each process how many of its messages the sender had delivered when it sent this one,
     which is counted too: Timestamp's vector. Null if the send is not among the events. */
  vector(m) {
    const send = this.sendEvent[m];
    if (send < 0) return null;
    const sender = this.node[send];
    const counts = new Uint32Array(this.processes);
    for (let i = 0; i < this.beforeNode.length; i++) {
      if (this.beforeNode[i] === sender) counts[this.beforeSource[i]] = this.beforeCount[i];
    }
    for (let e = this.rows[sender]; e < send; e++) {
      if (this.kind[e] === DELIVER) counts[this.source[this.message[e]]]++;
    }
    counts[sender]++;
    return counts;
  }

  /* The causal past of a message: of each process, the events before the one given here. */
  past(m) {
    const until = this.rows.slice(0, this.processes);
    const work = [m];
    while (work.length) {
      const cause = work.pop();
      const send = this.sendEvent[cause];
      if (send < 0) continue;
      const process = this.node[send], end = cause === m ? send : send + 1;
      for (let e = until[process]; e < end; e++) {
        if (this.kind[e] === DELIVER && this.source[this.message[e]] !== process) work.push(this.message[e]);
      }
      until[process] = Math.max(until[process], end);
    }
    return until;
  }

  /* The messages that a process waited for while it held one back. */
  reasons(a) {
    const process = this.arrowNode[a], reasons = new Set();
    for (let e = this.eventFrom(process, this.received[a]); e < this.rows[process + 1]; e++) {
      if (this.at[e] > this.delivered[a]) break;
      if (this.kind[e] === HOLD && this.message[e] === this.arrowMessage[a] && this.reason[e] !== NONE) {
        reasons.add(this.reason[e]);
      }
    }
    return [...reasons];
  }
}

function joined(low, high) {
  return Float64Array.from(low, (value, index) => high[index] * 4294967296 + value);
}
