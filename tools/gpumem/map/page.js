"use strict";
// Draws a snapshot of docs/snapshot.md. Everything that comes from the snapshot goes into the page
// as text, never as markup.

const KIB = 1024;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const POOL_GAP = 4 << 20; // buffers of a driver's pool nearer than this are drawn in one strip
const ROWS_AT_FIRST = 40;
const COLOURS = ["", "-2", "-3", "-4", "-5", "-6", "-7", "-8"]; // of resources, in page.css

const STATES = {
  live: ["In use", "a live buffer; one colour for each resource"],
  slack: ["Rounding", "memory of a buffer behind its size"],
  cached: ["Cached", "no buffer; kept by a thread, a stream or as a freed range"],
  free: ["Free piece", "of a slab or a cache's segment"],
  pending: ["Held back", "freed, and still in use by queued work, a hold or an export"],
  mapped: ["Mapped", "physical memory without a buffer of a resource"],
  imported: ["Imported", "another process's memory"],
  foreign: ["Foreign", "memory that the program brought, in a buffer"],
  gap: ["Decommitted", "part of a buffer without memory"],
  reserved: ["Reserved", "addresses without memory; drawn shorter than they are"],
  hole: ["Between", "addresses between buffers of a driver's pool"],
  bad: ["Quarantined", "the driver would not take it back"],
};

const size = (bytes) => {
  let value = bytes;
  let unit = 0;
  while (value >= KIB && unit < UNITS.length - 1) {
    value /= KIB;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits).replace(/\.0+$/, "")} ${UNITS[unit]}`;
};
const exact = (bytes) => `${bytes.toLocaleString("en-US")} bytes`;
const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %` : "–");
const hex = (number) => `0x${number.toString(16)}`;

// ---- Making elements ---------------------------------------------------------------------------

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "pattern", "path", "defs", "title", "g"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                      : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function card(id, title, note, ...children) {
  return make("section", { class: "card", id, "aria-labelledby": `${id}-title` },
              make("h2", { id: `${id}-title` }, title, make("small", {}, note)), ...children);
}

const swatch = (style) => make("svg", { viewBox: "0 0 10 10", preserveAspectRatio: "none", "aria-hidden": "true" },
                               make("rect", { width: 10, height: 10, class: style }));

// ---- The model ---------------------------------------------------------------------------------

class Device {
  constructor(data) {
    this.data = data;
    this.resources = new Map(data.resources.map((resource) => [resource.id, resource]));
    this.colours = new Map();
    data.resources.forEach((resource, i) => this.colours.set(resource.id, i % COLOURS.length));
    this.items = []; // of the address space: {start, end, depth, state, resource, ...}
    this.containers = [];
    this.sites = this.findSites();
    this.addVirtual();
    for (const resource of data.resources)
      this.addResource(resource);
  }

  // What a tracking resource knows of an address.
  findSites() {
    const sites = new Map();
    for (const resource of this.data.resources)
      for (const tracked of resource.tracked || [])
        sites.set(tracked.address, tracked);
    return sites;
  }

  depth(resource) {
    let depth = 0;
    for (let up = this.resources.get(resource.upstream); up && depth < 16; up = this.resources.get(up.upstream))
      depth++;
    return depth;
  }

  name(id) {
    const resource = this.resources.get(id);
    return resource ? `${resource.kind} #${id}` : "by hand";
  }

  add(item) {
    if (item.end > item.start)
      this.items.push(item);
  }

  contain(start, bytes, label, resource, of) {
    this.containers.push({ start, end: start + bytes, label, resource, of });
  }

  addVirtual() {
    const virtual = this.data.virtual_memory;
    for (const r of virtual.reservations) {
      const start = Number(r.address);
      this.contain(start, r.bytes, "reservation", null, r);
      this.add({ start, end: start + r.bytes, depth: 0, state: r.quarantined ? "bad" : "reserved", title: "Reserved addresses" });
    }
    const physical = new Map(virtual.physical.map((p) => [p.handle, p]));
    for (const m of virtual.mappings) {
      const start = Number(m.address);
      const memory = physical.get(m.handle);
      this.add({ start, end: start + m.bytes, depth: 1, state: memory?.imported ? "imported" : "mapped", resource: m.resource,
                 title: memory?.imported ? "Imported memory" : "Mapped memory", handle: m.handle });
    }
  }

  addPieces(base, pieces, depth, resource, what, pages = []) {
    const states = { bare: "reserved", free: "free", in_use: "live", thread: "cached", stream: "cached", pending: "pending", graph: "pending" };
    const titles = { bare: "Addresses without memory", free: `Free piece of a ${what}`, in_use: `Piece of a ${what}`, thread: "Kept by a thread",
                     stream: "Kept by a stream", pending: "Waits for queued work", graph: "Freed in a capture; each launch of the graph uses it" };
    for (const piece of pieces || []) {
      const count = piece.count || 1;
      const end = piece.offset + count * piece.bytes;
      this.add({ start: base + piece.offset, end: base + end, depth, count,
                 pages: pages.filter((page) => page.offset < end && page.offset + page.bytes > piece.offset),
                 state: states[piece.state] || "mapped", title: titles[piece.state] || piece.state, resource: resource.id });
    }
  }

  addResource(resource) {
    const depth = 2 + 3 * this.depth(resource);
    for (const slab of resource.slabs || []) {
      this.contain(Number(slab.address), slab.bytes, "slab", resource.id, slab);
      this.addPieces(Number(slab.address), slab.pieces, depth, resource, "slab");
    }
    for (const segment of resource.cache?.segments || []) {
      this.contain(Number(segment.address), segment.bytes, "segment", resource.id, segment);
      this.addPieces(Number(segment.address), segment.pieces, depth, resource, "segment", segment.pages);
    }
    for (const range of resource.freed?.ranges || [])
      this.add({ start: Number(range.address), end: Number(range.address) + range.committed_bytes, depth, state: "cached",
                 title: range.state === "idle" ? "Freed range, idle" : "Freed range, in order of its stream", resource: resource.id, stream: range.stream });
    for (const buffer of resource.buffers || [])
      if (resource.kind !== "view") // what it is a view of is drawn
        this.addBuffer(buffer, depth, resource);
  }

  addBuffer(buffer, depth, resource) {
    const start = Number(buffer.address);
    const committed = Math.max(buffer.committed_bytes, buffer.bytes);
    const state = buffer.state === "live" ? { imported: "imported", foreign: "foreign" }[resource.kind] || "live" : "pending";
    const shared = { resource: resource.id, buffer };
    if (buffer.chunks) {
      this.addChunks(start, buffer, depth, state, shared);
      return;
    }
    this.contain(start, committed, "buffer", resource.id, buffer);
    this.add({ start, end: start + buffer.bytes, depth: depth + 2, state, title: "Buffer", ...shared });
    this.add({ start: start + buffer.bytes, end: start + committed, depth: depth + 1, state: "slack", title: "Rounding of a buffer", ...shared });
  }

  // A buffer of mapped memory: parts of it may be without any.
  addChunks(start, buffer, depth, state, shared) {
    const { bytes } = buffer;
    const title = bytes ? "Buffer" : "Old address of a moved buffer";
    let at = 0;
    for (const chunk of buffer.chunks) {
      const end = chunk.offset + chunk.bytes;
      const used = bytes ? Math.min(Math.max(bytes, chunk.offset), end) : end;
      this.add({ start: start + at, end: start + Math.min(chunk.offset, bytes), depth: depth + 1, state: "gap", title: "Decommitted part of a buffer", ...shared });
      this.add({ start: start + chunk.offset, end: start + used, depth: depth + 2, state, title, handle: chunk.handle, ...shared });
      this.add({ start: start + used, end: start + end, depth: depth + 1, state: "slack", title: "Rounding of a buffer", handle: chunk.handle, ...shared });
      at = end;
    }
    this.add({ start: start + at, end: start + bytes, depth: depth + 1, state: "gap", title: "Decommitted part of a buffer", ...shared });
    this.contain(start, Math.max(at, bytes), "buffer", shared.resource, buffer);
  }

  // Containers that touch or overlap are one strip; buffers of pools when they lie near each other.
  regions() {
    const sorted = [...this.containers].sort((a, b) => a.start - b.start || b.end - a.end);
    const regions = [];
    for (const c of sorted) {
      const last = regions[regions.length - 1];
      const near = last && last.label === "buffer" && c.label === "buffer" && c.resource === last.resource ? POOL_GAP : 0;
      if (last && (c.start < last.end || (near && c.start - last.end <= near))) {
        last.end = Math.max(last.end, c.end);
        last.parts.push(c);
      } else {
        regions.push({ start: c.start, end: c.end, label: c.label, resource: c.resource, parts: [c] });
      }
    }
    this.split(regions);
    return regions;
  }

  // Gives each region the pieces that are seen: of items one over the other, the deepest.
  split(regions) {
    const items = [...this.items].sort((a, b) => a.start - b.start);
    let next = 0;
    for (const region of regions) {
      const layers = new Map();
      const edges = new Set([region.start, region.end]);
      for (; next < items.length && items[next].start < region.end; next++) {
        const item = items[next];
        if (!layers.has(item.depth))
          layers.set(item.depth, []);
        layers.get(item.depth).push(item);
        edges.add(item.start).add(Math.min(item.end, region.end));
      }
      region.pieces = topmost([...edges].sort((a, b) => a - b), layers);
      const owner = region.pieces.find((piece) => piece.item?.resource);
      region.resource ??= owner ? owner.item.resource : null;
      region.used = sum(region.pieces.filter((p) => p.item?.state === "live" || p.item?.state === "imported"));
    }
  }
}

const sum = (pieces) => pieces.reduce((total, piece) => total + piece.end - piece.start, 0);

function topmost(edges, layers) {
  const depths = [...layers.keys()].sort((a, b) => b - a);
  const at = new Map(depths.map((depth) => [depth, 0]));
  const pieces = [];
  for (let i = 0; i + 1 < edges.length; i++) {
    const [start, end] = [edges[i], edges[i + 1]];
    let found = null;
    for (const depth of depths) {
      const layer = layers.get(depth);
      let index = at.get(depth);
      while (index < layer.length && layer[index].end <= start)
        index++;
      at.set(depth, index);
      if (!found && index < layer.length && layer[index].start <= start)
        found = layer[index];
    }
    const last = pieces[pieces.length - 1];
    if (last && last.item === found)
      last.end = end;
    else
      pieces.push({ start, end, item: found });
  }
  return pieces;
}

const styleOf = (device, item) => {
  if (!item)
    return "hole";
  return item.state === "live" ? `live k${device.colours.get(item.resource) ?? 0}` : item.state;
};

// ---- Details -----------------------------------------------------------------------------------

function showDetail(title, style, lines) {
  const list = make("dl");
  for (const [key, value] of lines)
    if (value !== undefined && value !== null && value !== "")
      list.append(make("dt", {}, key), make("dd", {}, String(value)));
  document.getElementById("detail").replaceChildren(make("h3", {}, swatch(style), title), list);
}

function describePiece(device, region, piece) {
  const { item } = piece;
  const lines = [["Addresses", hex(piece.start)], ["to", hex(piece.end)], ["Size", size(piece.end - piece.start)], ["", exact(piece.end - piece.start)]];
  if (piece.merged)
    lines.push(["Pieces", `${piece.merged} too small to draw`]);
  if (item?.count > 1)
    lines.push(["Blocks", `${item.count} of ${size((item.end - item.start) / item.count)}`]);
  if (item && "resource" in item)
    lines.push(["Resource", device.name(item.resource)]);
  if (item?.handle)
    lines.push(["Handle", item.handle]);
  if (item?.pages?.length)
    lines.push(["Pages", `${item.pages.length}, moved ${item.pages.reduce((all, page) => all + page.moves, 0)} times`]);
  if (item?.stream)
    lines.push(["Stream", streamName(item.stream)]);
  if (item?.buffer)
    lines.push(...bufferLines(device, item.buffer));
  lines.push(["Range", `${hex(region.start)}, ${size(region.end - region.start)}`]);
  showDetail(piece.merged ? "Small pieces" : item ? item.title : "Nothing of ours", styleOf(device, item), lines);
}

// "function+0x12 (/a/file)", or "/a/file+0x34", without the folders; in a column without the file too.
const frameName = (frame) => frame.replace(/(\(|^)\/[^()]*\//, "$1");
const frameShort = (frame) => frameName(frame).replace(/ \(.*\)$/, "");

function bufferLines(device, buffer) {
  const site = device.sites.get(buffer.address);
  return [["Bytes asked for", exact(buffer.bytes)], ["Committed", size(buffer.committed_bytes)],
          ["Can grow to", buffer.capacity > buffer.bytes ? size(buffer.capacity) : null], ["State", buffer.state],
          ["Stream", streamName(buffer.stream)], ["References", buffer.references], ["From process", buffer.peer_pid],
          ["View at", "offset" in buffer ? `${exact(buffer.offset)} into #${buffer.viewed_resource}'s buffer` : null],
          ["Chunks", buffer.chunks?.length], ["Written", buffer.read_only ? "never: read-only" : null], ["Watched by", buffer.watches],
          ...((site && site.frames) || []).map((frame, i) => [i ? "" : "Made by", frameName(frame)])];
}

const STREAMS = { "0x0": "default (legacy)", "0x1": "default (legacy)", "0x2": "per thread" };
const streamName = (stream) => (stream === null ? "none" : STREAMS[stream] || stream);

// ---- Strips ------------------------------------------------------------------------------------

const WIDTH = 1000; // of a strip, in units of its own

// Neighbours that would be narrower than a pixel or so are drawn as one, in the state of the larger
// part of them. What is only reserved takes a fixed part of the strip.
function layOut(pieces) {
  const empty = (piece) => !piece.item || piece.item.state === "reserved" || piece.item.state === "gap";
  const filled = sum(pieces.filter((piece) => !empty(piece)));
  const weigh = (piece) => {
    const bytes = piece.end - piece.start;
    return empty(piece) && filled ? Math.min(bytes, Math.max(filled / 6, 1)) : bytes;
  };
  const total = pieces.reduce((all, piece) => all + weigh(piece), 0) || 1;
  const drawn = [];
  let x = 0;
  let small = null;
  const flush = () => {
    if (small)
      drawn.push(small);
    small = null;
  };
  for (const piece of pieces) {
    const width = WIDTH * weigh(piece) / total;
    if (width >= 2) {
      flush();
      drawn.push({ ...piece, x, width });
    } else {
      if (small && small.width + width > 3)
        flush();
      if (!small)
        small = { ...piece, x, width: 0, merged: 0, most: 0 };
      small.width += width;
      small.end = piece.end;
      small.merged++;
      if (width > small.most) {
        small.most = width;
        small.item = piece.item;
      }
    }
    x += width;
  }
  flush();
  return drawn.map((piece) => (piece.merged === 1 ? { ...piece, merged: 0 } : piece));
}

// A row of blocks that mouse and arrow keys walk over.
function strip(pieces, styles, label, show, more = {}) {
  const svg = make("svg", { class: `strip ${more.style || ""}`, viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", tabindex: 0, role: "listbox",
                            "aria-label": `${label}. ${pieces.length} blocks, arrow keys walk over them.` });
  const blocks = pieces.map((piece) => make("rect", { x: piece.x.toFixed(2), width: Math.max(piece.width - (piece.width > 4 ? 0.8 : 0), 0.6).toFixed(2),
                                                       y: 0, height: 10, class: styles(piece) }));
  svg.append(...blocks);
  let at = -1;
  const go = (to) => {
    if (at >= 0)
      blocks[at].classList.remove("at");
    at = Math.max(0, Math.min(blocks.length - 1, to));
    blocks[at].classList.add("at");
    blocks[at].parentNode.append(blocks[at]); // its frame over the neighbours
    show(pieces[at]);
  };
  const leave = () => {
    if (at >= 0)
      blocks[at].classList.remove("at");
    at = -1;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = WIDTH * (event.clientX - box.left) / box.width;
    const index = pieces.findIndex((piece) => x < piece.x + piece.width);
    if (index >= 0 && index !== at)
      go(index);
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("focus", () => go(0));
  svg.addEventListener("keydown", (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: blocks.length - 1 }[event.key];
    if (to !== undefined)
      go(to);
    else if (event.key === "Enter" && more.enter)
      more.enter(pieces[Math.max(at, 0)]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp")
      neighbour(svg, event.key === "ArrowDown" ? 1 : -1)?.focus();
    else
      return;
    event.preventDefault();
  });
  if (more.enter)
    svg.addEventListener("click", () => at >= 0 && more.enter(pieces[at]));
  return svg;
}

function neighbour(svg, step) {
  const all = [...document.querySelectorAll("svg.strip")];
  return all[all.indexOf(svg) + step];
}

// ---- Sections ----------------------------------------------------------------------------------

// What cannot be used although it is free: 1 less the largest free piece's share of all that is free.
function fragmentation(parts) {
  const free = parts.reduce((total, part) => total + part.free_bytes, 0);
  const largest = parts.reduce((most, part) => Math.max(most, part.largest_free_bytes), 0);
  return free ? 1 - largest / free : NaN;
}
const partsOf = (resource) => [...(resource.slabs || []), ...(resource.cache?.segments || [])];

function summary(device) {
  const { data } = device;
  const s = data.statistics;
  const tile = (name, value, note) => make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, value, make("small", {}, note)));
  const parts = data.resources.flatMap(partsOf);
  const reservedOnly = Math.max(s.reserved_bytes - s.committed_bytes, 0);
  // Drawn as the rest that is held back, but not deferred: the owner has freed them, and others use them.
  const kept = data.resources.flatMap((r) => (r.kind === "view" ? [] : r.buffers || [])).filter((b) => b.state === "held");
  const keptBytes = kept.reduce((all, buffer) => all + buffer.committed_bytes, 0);
  return card("summary", data.name || `Device ${data.ordinal}`, `device ${data.ordinal}${data.memory_bytes ? `, ${size(data.memory_bytes)}` : ""}`,
    make("dl", { class: "tiles" },
      tile("In use by buffers, device and host", size(s.in_use_bytes), `${s.allocations} buffers, peak ${size(s.in_use_high)}`),
      tile("Committed", size(s.committed_bytes), `peak ${size(s.committed_high)}`),
      tile("Cached", size(s.cached_bytes), s.committed_bytes ? `${percent(s.cached_bytes / s.committed_bytes)} of committed` : "nothing committed"),
      tile("Pinned host memory", size(s.pinned_bytes), `peak ${size(s.pinned_high)}`),
      tile("Reserved only", size(reservedOnly), "addresses without memory"),
      tile("Fragmentation", percent(fragmentation(parts)), "free that no one piece has"),
      tile("Held back", size(s.deferred_bytes + keptBytes), `${s.deferred_frees} frees wait for work${kept.length ? `, ${kept.length} for holds or exports` : ""}`),
      tile("Shared", `${data.exports.length} out`, `${size(s.imported_bytes)} imported`),
      tile("Quarantined", String(s.quarantined), s.quarantined ? size(s.quarantined_bytes) : "nothing lost")),
    memoryStrip(device));
}

// A share of what is drawn as it is; where addresses without memory are drawn shorter, a number of bytes.
function usedText(region) {
  const shortened = region.pieces.some((piece) => piece.item?.state === "reserved");
  return shortened ? `${size(region.used)} used` : `${percent(region.used / (region.end - region.start))} used`;
}

// All of the device's memory in one line.
function memoryStrip(device) {
  const { data } = device;
  if (!data.memory_bytes || data.free_bytes === null)
    return make("p", { class: "quiet" }, "The device does not tell how much of its memory is free.");
  const physical = deviceBytes(device);
  const taken = data.memory_bytes - data.free_bytes;
  const parts = [["Device memory in use", "live", physical.used], ["Cached and rounding", "cached", physical.cached],
                 ["Of others: contexts, other processes, memory that the library does not manage", "other", Math.max(taken - physical.used - physical.cached, 0)], ["Free", "room", data.free_bytes]];
  return bar(parts, data.memory_bytes, `Memory of device ${data.ordinal}`);
}

function bar(parts, total, label) {
  let x = 0;
  const pieces = parts.filter((part) => part[2] > 0).map(([title, style, bytes]) => {
    const piece = { title, style, bytes, x, width: WIDTH * bytes / total };
    x += piece.width;
    return piece;
  });
  const drawn = strip(pieces, (piece) => piece.style, label,
                      (piece) => showDetail(piece.title, piece.style, [["Size", size(piece.bytes)], ["", exact(piece.bytes)], ["Share", percent(piece.bytes / total)]]), { style: "overview" });
  const caption = make("p", { class: "caption" });
  for (const piece of pieces)
    caption.append(make("span", {}, `${piece.title.split(":")[0]} `, make("b", {}, size(piece.bytes)), ` ${percent(piece.bytes / total)}`));
  return make("div", {}, drawn, caption);
}

// What buffers count as in use although no memory is there. A buffer counts for the resource that maps
// it, which is at the end of its resource's chain.
function decommitted(device, root) {
  let bytes = 0;
  for (const resource of device.data.resources) {
    let end = resource;
    while (end.upstream !== null && !end.takes_buffers && device.resources.has(end.upstream))
      end = device.resources.get(end.upstream);
    if (end === root)
      for (const { chunks, bytes: most, state } of resource.buffers || [])
        if (chunks && state !== "deferred")
          bytes += most - chunks.reduce((all, chunk) => all + Math.max(0, Math.min(most, chunk.offset + chunk.bytes) - chunk.offset), 0);
  }
  return bytes;
}

// A resource counts the segments of caches over it as in use; this is what of them is in no buffer.
function keptByCaches(device, resource) {
  if (resource.kind === "mapped") // slabs: it counts their buffers itself
    return 0;
  const below = (r) => device.data.resources.find((other) => other.id === r.upstream);
  let bytes = 0;
  for (const cache of device.data.resources.filter((r) => r.kind === "caching")) {
    let at = below(cache);
    while (at && at !== resource)
      at = below(at);
    if (at)
      bytes += Math.max(0, cache.statistics.committed_bytes - cache.statistics.in_use_bytes);
  }
  return bytes;
}

const usedBytes = (device, resource) => {
  const s = resource.statistics;
  return Math.max(0, Math.min(s.in_use_bytes - decommitted(device, resource) - keptByCaches(device, resource), s.committed_bytes));
};

// Of the device's own memory: resources that are on it and take from no other one.
function deviceBytes(device) {
  const result = { used: 0, cached: 0 };
  for (const resource of device.data.resources) {
    if (resource.upstream !== null || resource.properties.location !== "device" || resource.kind === "imported" || resource.kind === "managed")
      continue;
    const s = resource.statistics;
    const used = usedBytes(device, resource);
    result.used += used;
    result.cached += s.committed_bytes - used;
  }
  for (const memory of device.data.virtual_memory.physical)
    if (memory.resource === null && !memory.imported && memory.location === "device")
      result.used += memory.bytes;
  return result;
}

function addressSpace(device, regions) {
  const rows = make("div", { id: "rows" });
  const section = card("space", "Address space", `${regions.length} ranges, low addresses first; reserved parts are drawn shorter than they are`);
  const find = (region) => document.getElementById(`region-${regions.indexOf(region)}`);
  const total = regions.reduce((all, region) => all + Math.sqrt(region.end - region.start), 0) || 1;
  let x = 0;
  const overview = regions.map((region) => {
    const width = WIDTH * Math.sqrt(region.end - region.start) / total;
    x += width;
    return { region, x: x - width, width };
  });
  if (overview.length)
    section.append(strip(overview, ({ region }) => (region.resource ? `live k${device.colours.get(region.resource) ?? 0}` : "mapped"),
                         "All ranges", ({ region }) => describeRegion(device, region),
                         { style: "overview", enter: ({ region }) => { drawRows(regions.length); find(region).querySelector("svg").focus(); find(region).scrollIntoView({ block: "center" }); } }));
  else
    section.append(make("p", { class: "quiet" }, "Nothing is held."));
  const button = make("button", { type: "button" }, `Show all ${regions.length} ranges`);
  const drawRows = (count) => {
    for (let i = rows.childElementCount; i < Math.min(count, regions.length); i++)
      rows.append(regionRow(device, regions[i], i));
    button.hidden = rows.childElementCount >= regions.length;
  };
  button.addEventListener("click", () => drawRows(regions.length));
  drawRows(ROWS_AT_FIRST);
  section.append(rows, button);
  return section;
}

const regionName = (device, region) => (region.resource ? device.name(region.resource) : region.label === "reservation" ? "reserved by hand" : region.label);

function describeRegion(device, region) {
  showDetail(regionName(device, region), region.resource ? `live k${device.colours.get(region.resource) ?? 0}` : "mapped",
             [["Addresses", hex(region.start)], ["to", hex(region.end)], ["Size", size(region.end - region.start)], ["In use", size(region.used)],
              ["Blocks", region.pieces.length], ["Kind", region.label]]);
}

function regionRow(device, region, index) {
  const name = regionName(device, region);
  const drawn = strip(layOut(region.pieces), (piece) => styleOf(device, piece.item), `${name} at ${hex(region.start)}`, (piece) => describePiece(device, region, piece));
  return make("div", { class: "row", id: `region-${index}` },
    make("div", {}, make("p", { class: "what" }, make("b", {}, name), make("span", { class: "number" }, size(region.end - region.start))),
         make("p", { class: "what quiet" }, make("span", { class: "mono" }, hex(region.start)), make("span", {}, usedText(region)))), drawn);
}

// Physical memory as cells of one size each, by resource.
function physicalMemory(device) {
  const groups = physicalGroups(device);
  const section = card("physical", "Physical memory", "by place; each cell stands for the same number of bytes");
  for (const place of ["Device", "Host", "Managed", "Imported"].filter((name) => groups.has(name)))
    section.append(wafer(place, groups.get(place)));
  if (!groups.size)
    section.append(make("p", { class: "quiet" }, "None is committed."));
  section.append(handleTable(device));
  return section;
}

function physicalGroups(device) {
  const groups = new Map();
  const add = (place, part) => {
    if (part.bytes <= 0)
      return;
    if (!groups.has(place))
      groups.set(place, []);
    groups.get(place).push(part);
  };
  for (const resource of device.data.resources) {
    if (resource.upstream !== null || resource.kind === "imported")
      continue;
    const s = resource.statistics;
    const place = resource.kind === "managed" ? "Managed" : resource.properties.location === "device" ? "Device" : "Host";
    const used = usedBytes(device, resource);
    const quarantined = Math.min(s.quarantined_bytes, s.committed_bytes - used);
    const of = device.name(resource.id);
    add(place, { title: `${of}: in buffers`, style: `live k${device.colours.get(resource.id)}`, bytes: used });
    add(place, { title: `${of}: cached, or rounding`, style: "cached", bytes: s.committed_bytes - used - quarantined });
    add(place, { title: `${of}: quarantined`, style: "bad", bytes: quarantined });
  }
  for (const memory of device.data.virtual_memory.physical)
    if (memory.imported || memory.resource === null)
      add(memory.imported || memory.retained ? "Imported" : memory.location === "device" ? "Device" : "Host",
          { title: `${memory.imported ? "imported" : memory.retained ? "found by its address" : "made by hand"}, handle ${memory.handle}`,
            style: memory.quarantined ? "bad" : memory.imported || memory.retained ? "imported" : "mapped", bytes: memory.bytes });
  return groups;
}

function wafer(place, parts) {
  const columns = 80;
  const total = parts.reduce((all, part) => all + part.bytes, 0);
  let cell = 4096;
  while (total / cell > columns * 6)
    cell *= 2;
  const cells = [];
  for (const part of parts)
    for (let i = 0; i < Math.max(1, Math.round(part.bytes / cell)); i++)
      cells.push(part);
  const rows = Math.ceil(cells.length / columns);
  const svg = make("svg", { viewBox: `0 0 ${columns * 12} ${rows * 12}`, role: "img", style: `max-height:${rows * 14}px`, preserveAspectRatio: "xMinYMin meet",
                            "aria-label": `${place} memory, ${size(total)}` });
  cells.forEach((part, i) => {
    const rect = make("rect", { x: i % columns * 12, y: Math.floor(i / columns) * 12, width: 10.5, height: 10.5, rx: 1.5, class: part.style });
    rect.addEventListener("pointerenter", () => showDetail(part.title, part.style, [["Size", size(part.bytes)], ["", exact(part.bytes)], ["Share", percent(part.bytes / total)]]));
    svg.append(rect);
  });
  const caption = make("p", { class: "caption" });
  for (const part of parts.slice(0, 12))
    caption.append(make("span", {}, `${part.title} `, make("b", {}, size(part.bytes))));
  if (parts.length > 12)
    caption.append(make("span", {}, `and ${parts.length - 12} more`));
  return make("div", { class: "place" }, make("h2", {}, place, make("small", {}, `${size(total)}, a cell is ${size(cell)}`)), svg, caption, make("p", {}));
}

function handleTable(device) {
  const { physical, mappings } = device.data.virtual_memory;
  const mapped = new Map();
  for (const m of mappings)
    mapped.set(m.handle, [...(mapped.get(m.handle) || []), m.address]);
  const kept = new Set(device.data.resources.flatMap((resource) => (resource.freed?.chunks || []).map((chunk) => chunk.handle)));
  const rows = physical.map((p) => ({ cells: [p.handle, p.bytes, device.name(p.resource), p.location || "–", (mapped.get(p.handle) || ["nowhere"]).join(", "),
                                              [p.imported && "imported", p.retained && "found by its address", p.exportable && "exportable",
                                               p.references && `held ${p.references} times`, kept.has(p.handle) && "kept for the next growth", p.quarantined && "quarantined"].filter(Boolean).join(", ") || "–"] }));
  return make("details", {}, make("summary", {}, `${physical.length} physical handles, ${mappings.length} mappings`),
              table("handles", ["Handle", "Size", "Resource", "Place", "Mapped at", "Marks"], rows, [1], [2, 3, 4, 5]));
}

// A table whose columns sort; `sizes` are columns of bytes, `left` those of text.
function table(id, heads, rows, sizes, left = []) {
  const body = make("tbody");
  const shown = (value, column) => (value instanceof Node ? value : value === null || Number.isNaN(value) ? "–" : sizes.includes(column) ? size(value) : String(value));
  const draw = (sorted) => body.replaceChildren(...sorted.map((row) => {
    const line = make("tr", {}, ...row.cells.map((value, column) => make("td", left.includes(column) ? { class: "left" } : {}, row.draw?.[column]?.() ?? shown(value, column))));
    if (row.show) {
      line.addEventListener("pointerenter", row.show);
    }
    return line;
  }));
  const heading = make("tr");
  heads.forEach((text, column) => {
    const button = make("button", { type: "button" }, text);
    const head = make("th", { scope: "col", ...(left.includes(column) ? { class: "left" } : {}) }, button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      for (const other of heading.children)
        other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      draw([...rows].sort((a, b) => (descending ? -1 : 1) * order(a.cells[column], b.cells[column])));
    });
    heading.append(head);
  });
  draw(rows);
  const box = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": id }, make("table", { id }, make("thead", {}, heading), body));
  // What is cut off is told of, and drawn as such.
  const hint = make("p", { class: "quiet hint" }, "The table goes on to the right: scroll it.");
  const look = () => {
    const more = box.scrollWidth > box.clientWidth + 1;
    hint.hidden = !more;
    box.classList.toggle("more", more && box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  box.addEventListener("scroll", look);
  redraw.push(look);
  return make("div", {}, hint, box);
}

const meter = (share) => {
  const fill = make("i");
  fill.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return make("span", { class: "meter", "aria-hidden": "true" }, fill);
};

function resourceTable(device) {
  const rows = device.data.resources.map((resource) => {
    const s = resource.statistics;
    const broken = fragmentation(partsOf(resource));
    const mark = () => {
      const colour = make("span", { class: "swatch" });
      colour.style.background = `var(--live${COLOURS[device.colours.get(resource.id)]})`;
      return make("span", {}, colour, `${resource.kind} #${resource.id}`);
    };
    return {
      cells: [`${resource.kind} #${resource.id}`, [resource.upstream, resource.second_upstream].filter((id) => id !== null && id !== undefined).map((id) => device.name(id)).join(", then "), resource.kind === "view" ? (resource.buffers || []).length : s.allocations, s.in_use_bytes, s.in_use_high,
              s.committed_bytes, s.cached_bytes, s.committed_bytes ? s.in_use_bytes / s.committed_bytes : NaN, broken],
      draw: { 0: mark, 7: () => make("span", {}, s.committed_bytes ? percent(s.in_use_bytes / s.committed_bytes) : "–", meter(s.in_use_bytes / s.committed_bytes || 0)), 8: () => percent(broken) },
      show: () => showDetail(device.name(resource.id), `live k${device.colours.get(resource.id)}`, resourceLines(resource)),
    };
  });
  return card("resources", "Resources", "memory of wrapped resources counts in both lines",
              table("resource-table", ["Resource", "Over", "Buffers", "In use", "Peak", "Committed", "Cached", "Used", "Fragmented"], rows, [3, 4, 5, 6], [1]));
}

function resourceLines(resource) {
  const p = resource.properties;
  const s = resource.statistics;
  const yes = [["device_accessible", "device"], ["host_accessible", "CPU"]].filter(([key]) => p[key]).map(([, word]) => word);
  const can = [["stream_ordered", "stream-ordered"], ["can_resize", "grows"], ["exportable", "exportable"]].filter(([key]) => p[key]).map(([, word]) => word);
  const cache = resource.cache;
  return [["Place", p.location], ["Reached by", yes.join(", ")], ["Is", can.join(", ")], ["Granularity", size(p.granularity)],
          ["Largest chunk", p.maximum_chunk_bytes ? size(p.maximum_chunk_bytes) : null], ["Handles", p.handle_type], ["Allocations ever", s.allocations_total.toLocaleString("en-US")],
          ["Refused", s.allocations_failed], ["Reserved", size(s.reserved_bytes)], ["Chunks", s.chunks], ["Mappings", s.mappings], ["Kept by threads", cache ? size(cache.thread_bytes) : null],
          ["Kept by streams", cache ? size(cache.stream_bytes) : null], ["Waits for work", cache ? size(cache.pending_bytes) : null], ["Capture pools", cache?.capture_pools || null],
          ...ownLines(resource), ["Watched by", resource.watches], ["Note", p.note]];
}

function ownLines(resource) {
  const { freed, limit, pool, trace, tracked } = resource;
  const lines = [];
  if (freed)
    lines.push(["Keeps freed", `${size(freed.bytes)} of at most ${size(freed.maximum_bytes)}: ${freed.ranges.length} ranges, ${freed.chunks.length} handles`]);
  if (limit)
    lines.push(["Limit", `${size(limit.taken_bytes)} of ${size(limit.maximum_bytes)} taken`]);
  if (pool)
    lines.push(["Pool", [pool.handle, pool.owned ? "own" : "borrowed", pool.imported && "of another process", pool.exported && "exported", pool.registered && "registered"].filter(Boolean).join(", ")],
               ["UUID", pool.uuid], ["Imports", pool.imports?.length]);
  if (trace)
    lines.push(["Lines written", `${trace.lines}${trace.missing ? `, ${trace.missing} missing` : ""}`]);
  if (tracked)
    lines.push(["Tracked", `${tracked.length} allocations`]);
  return lines;
}

function bufferTable(device) {
  const all = device.data.resources.flatMap((resource) => (resource.buffers || []).map((buffer) => ({ buffer, resource })));
  all.sort((a, b) => b.buffer.committed_bytes - a.buffer.committed_bytes);
  const rows = all.slice(0, 200).map(({ buffer, resource }) => ({
    cells: [buffer.address, buffer.bytes, buffer.committed_bytes, buffer.capacity, device.name(resource.id), buffer.state, streamName(buffer.stream),
            frameShort((device.sites.get(buffer.address)?.frames || [])[0] || "")],
    show: () => showDetail("Buffer", `live k${device.colours.get(resource.id)}`, [["Address", buffer.address], ["Resource", device.name(resource.id)], ...bufferLines(device, buffer)]),
  }));
  const left = [4, 5, 6, 7];
  const sites = rows.some((row) => row.cells[7]);
  if (!sites)
    rows.forEach((row) => row.cells.pop());
  return card("buffers", "Buffers", all.length > rows.length ? `the ${rows.length} largest of ${all.length}` : `${all.length}; those of caches are blocks in the strips`,
              table("buffer-table", ["Address", "Bytes", "Committed", "Capacity", "Resource", "State", "Stream", ...(sites ? ["Made by"] : [])], rows, [1, 2, 3], left));
}

function otherTable(device) {
  const { data } = device;
  const rows = [
    ...data.deferred.map((d) => ["held back by queued work", d.address, d.bytes, device.name(d.resource)]),
    ...data.exports.map((e) => [`exported, ${e.descriptors} descriptors`, e.address, e.bytes, device.name(e.resource)]),
    ...data.virtual_memory.physical.filter((p) => p.quarantined).map((p) => ["quarantined memory", p.handle, p.bytes, device.name(p.resource)]),
    ...data.virtual_memory.reservations.filter((r) => r.quarantined).map((r) => ["quarantined addresses", r.address, r.bytes, ""]),
  ].map((cells) => ({ cells }));
  if (!rows.length)
    return null;
  return card("others", "Held back, shared and lost", `${rows.length}`, table("other-table", ["What", "Address or handle", "Bytes", "Resource"], rows, [2], [1, 3]));
}

// ---- History -----------------------------------------------------------------------------------

// CSV of RFC 4180 with a line of names; lines that begin with # are comments.
function parseCsv(text) {
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"')
        field += c;
      else if (text[i + 1] === '"')
        field += text[++i];
      else
        quoted = false;
    } else if (c === '"') {
      quoted = true;
    } else if (c === "," || c === "\n") {
      row.push(field);
      field = "";
      if (c === "\n") {
        if (row.length > 1 && !row[0].startsWith("#"))
          rows.push(row);
        row = [];
      }
    } else if (c !== "\r") {
      field += c;
    }
  }
  return rows;
}

class History {
  constructor(text) {
    const [names = [], ...rows] = parseCsv(text.endsWith("\n") ? text : `${text}\n`);
    const column = (...options) => names.findIndex((name) => options.includes(name.trim()));
    this.columns = { time: column("time_ns", "time"), event: column("event"), address: column("pointer", "address"), bytes: column("bytes"),
                     status: column("status"), key: column("buffer"), resource: column("resource") };
    this.lives = []; // {from, to, start, bytes, resource}
    this.alive = new Map();
    this.line = [{ time: 0, bytes: 0 }];
    this.now = 0;
    this.peak = { time: 0, bytes: 0, event: 0 };
    this.first = null;
    this.end = 0;
    this.failed = 0;
    for (const row of rows)
      this.take(row);
    for (const life of this.alive.values())
      Object.assign(life, { to: this.end, toEvent: this.line.length, open: true });
    this.byEvent = true;
  }

  // Along the axis that is shown, from 0 to 1.
  from(life) {
    return this.byEvent ? life.fromEvent / this.line.length : life.from / (this.end || 1);
  }

  to(life) {
    return this.byEvent ? life.toEvent / this.line.length : life.to / (this.end || 1);
  }

  of(point, index) {
    return this.byEvent ? index / this.line.length : point.time / (this.end || 1);
  }

  take(row) {
    const { columns } = this;
    const get = (name) => (columns[name] >= 0 ? row[columns[name]] : undefined);
    const stamp = Number(get("time"));
    if (!Number.isFinite(stamp))
      return;
    this.first ??= stamp;
    const time = stamp - this.first;
    this.end = Math.max(this.end, time);
    const event = get("event");
    if (get("status") && get("status") !== "OK") {
      this.failed++;
      return;
    }
    const address = get("address");
    const key = get("key") && get("key") !== "0" ? `b${get("key")}` : `${get("resource") ?? ""}:${address}`;
    const bytes = Number(get("bytes"));
    if (event === "free" || event === "resize")
      this.finish(key, time);
    if ((event === "allocate" || event === "resize") && bytes > 0)
      this.begin(key, { from: time, fromEvent: this.line.length, start: Number(address), bytes, resource: get("resource") || "" });
    this.line.push({ time, bytes: this.now });
    if (this.now > this.peak.bytes)
      this.peak = { time, bytes: this.now, event: this.line.length - 1 };
  }

  finish(key, time) {
    const life = this.alive.get(key);
    if (!life)
      return;
    life.to = time;
    life.toEvent = this.line.length;
    this.now -= life.bytes;
    this.alive.delete(key);
  }

  begin(key, life) {
    this.finish(key, life.from);
    this.alive.set(key, life);
    this.lives.push(life);
    this.now += life.bytes;
  }

  // Where an address is drawn: ranges that were ever used, one behind the other.
  compress() {
    const used = this.lives.map((life) => [life.start, life.start + life.bytes]).sort((a, b) => a[0] - b[0]);
    const ranges = [];
    for (const [start, end] of used) {
      const last = ranges[ranges.length - 1];
      if (last && start <= last.end)
        last.end = Math.max(last.end, end);
      else
        ranges.push({ start, end });
    }
    let offset = 0;
    for (const range of ranges) {
      range.offset = offset;
      offset += range.end - range.start;
    }
    this.span = offset || 1;
    for (const life of this.lives) {
      let [low, high] = [0, ranges.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (ranges[middle].start <= life.start)
          low = middle;
        else
          high = middle - 1;
      }
      life.y = ranges[low].offset + life.start - ranges[low].start;
    }
  }

  aliveAt(place) {
    return this.lives.filter((life) => this.from(life) <= place && (life.open || place < this.to(life)));
  }

  timeAt(place) {
    return this.byEvent ? this.line[Math.min(Math.floor(place * this.line.length), this.line.length - 1)].time : place * this.end;
  }
}

const duration = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toFixed(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e3).toFixed(1)} µs`);

// Of the log's names, the colour that the resource has in the rest of the page: known by what is still alive, since
// a snapshot has its address, too. Other names have the colours that no resource has.
function historyColours(history, device) {
  const open = new Map(history.lives.filter((life) => life.open).map((life) => [life.start, life.resource]));
  const colours = new Map();
  // An address may be a block's and its segment's: that resource which has most of a name's addresses is meant.
  const counts = new Map();
  for (const item of device.items)
    if (item.state === "live" && open.has(item.start)) {
      const key = `${open.get(item.start)} ${item.resource}`;
      const count = counts.get(key) || { name: open.get(item.start), resource: item.resource, found: 0 };
      counts.set(key, { ...count, found: count.found + 1 });
    }
  for (const { name, resource } of [...counts.values()].sort((one, other) => one.found - other.found))
    colours.set(name, device.colours.get(resource));
  let next = device.data.resources.length;
  for (const life of history.lives)
    if (!colours.has(life.resource))
      colours.set(life.resource, next++ % COLOURS.length);
  return colours;
}

function historyCard(text, device) {
  const history = new History(text);
  const { end } = history;
  if (!history.lives.length)
    return card("past", "History", "the log has no allocation");
  history.compress();
  const curve = make("canvas", { role: "img", "aria-label": `Bytes in use over ${duration(end)}, at most ${size(history.peak.bytes)}` });
  const places = make("canvas", { role: "img", "aria-label": "Addresses in use over time" });
  curve.style.height = "120px";
  places.style.height = "260px";
  const slider = make("input", { type: "range", min: 0, max: 1000, value: 1000, "aria-label": "Moment" });
  const output = make("output", { class: "number" });
  const colours = historyColours(history, device);
  const key = make("p", { class: "caption" }, ...[...(colours.size > 1 ? colours : [])].map(([name, k]) =>
    make("span", { class: "key" }, swatch(`live k${k}`), name)));
  const draw = () => {
    const place = slider.value / 1000;
    drawCurve(curve, history, place);
    drawPlaces(places, history, colours, place);
    const alive = history.aliveAt(place);
    output.textContent = `${duration(history.timeAt(place))}: ${alive.length} allocations, ${size(alive.reduce((all, life) => all + life.bytes, 0))}`;
  };
  slider.addEventListener("input", draw);
  const axis = make("button", { type: "button", "aria-pressed": "false", id: "axis" }, "Axis: events");
  axis.addEventListener("click", () => {
    history.byEvent = !history.byEvent;
    axis.textContent = history.byEvent ? "Axis: events" : "Axis: time";
    axis.setAttribute("aria-pressed", String(!history.byEvent));
    draw();
  });
  places.addEventListener("pointermove", (event) => {
    const box = places.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width;
    const y = history.span * (1 - (event.clientY - box.top) / box.height);
    const life = history.lives.findLast((l) => history.from(l) <= place && place <= history.to(l) && l.y <= y && y < l.y + l.bytes);
    if (life)
      showDetail("Allocation", `live k${colours.get(life.resource)}`, [["Address", hex(life.start)], ["Size", size(life.bytes)], ["", exact(life.bytes)], ["From", duration(life.from)],
        ["To", life.open ? "still alive" : duration(life.to)], ["Lived", duration(life.to - life.from)], ["Resource", life.resource]]);
  });
  redraw.push(draw);
  return make("section", { class: "card history", id: "past", "aria-labelledby": "past-title" },
    make("h2", { id: "past-title" }, "History", make("small", {}, `${history.lives.length} allocations in ${duration(end)}, peak ${size(history.peak.bytes)} at ${duration(history.peak.time)}` +
      (history.failed ? `, ${history.failed} refused` : ""))),
    make("p", { class: "quiet" }, "Bytes in use"), curve, make("div", { class: "moment" }, make("label", {}, "Moment", slider, output), axis),
    make("p", { class: "quiet" }, "Addresses in use; unused ones are left out"), places, key);
}

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.max(1, width * ratio);
  canvas.height = Math.max(1, height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return { context, width, height };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function drawMoment(context, x, height) {
  context.fillStyle = colour("--text");
  context.fillRect(Math.round(x), 0, 1, height);
}

function drawCurve(canvas, history, place) {
  const { context, width, height } = prepare(canvas);
  const y = (bytes) => height - (height - 18) * bytes / (history.peak.bytes || 1);
  context.beginPath();
  context.moveTo(0, height);
  let before = 0;
  history.line.forEach((point, index) => {
    const x = width * history.of(point, index);
    context.lineTo(x, y(before));
    context.lineTo(x, y(point.bytes));
    before = point.bytes;
  });
  context.lineTo(width, y(before));
  context.lineTo(width, height);
  context.fillStyle = colour("--slack");
  context.fill();
  context.strokeStyle = colour("--live");
  context.lineWidth = 1.2;
  context.stroke();
  context.fillStyle = colour("--quiet");
  context.font = "12px system-ui, sans-serif";
  context.fillText(`peak ${size(history.peak.bytes)}`, Math.min(width * history.of(history.peak, history.peak.event) + 4, width - 110), 12);
  drawMoment(context, width * place, height);
}

function drawPlaces(canvas, history, kinds, place) {
  const { context, width, height } = prepare(canvas);
  const colours = COLOURS.map((suffix) => colour(`--live${suffix}`));
  for (const life of history.lives) {
    const tall = height * life.bytes / history.span;
    context.fillStyle = colours[kinds.get(life.resource)];
    const [from, to] = [width * history.from(life), width * history.to(life)];
    context.fillRect(from, height - height * life.y / history.span - tall, Math.max(to - from, 0.7), Math.max(tall - (tall > 3 ? 0.6 : 0), 0.6));
  }
  drawMoment(context, width * place, height);
}

// ---- The page ----------------------------------------------------------------------------------

const redraw = []; // what was drawn in colours and pixels

function legend(device) {
  const entry = (style, name, text) => make("li", {}, swatch(style), make("span", {}, name, text ? make("small", {}, text) : null));
  const resources = device.data.resources.filter((resource) => resource.kind !== "view").map((resource) =>
    entry(`live k${device.colours.get(resource.id)}`, device.name(resource.id), resource.upstream ? `over ${device.name(resource.upstream)}` : ""));
  const states = Object.entries(STATES).filter(([state]) => state !== "live" || !resources.length);
  document.getElementById("legend").replaceChildren(...(resources.length ? [make("li", { class: "head" }, "In use, by resource")] : []), ...resources,
    ...(resources.length ? [make("li", { class: "head" }, "Other memory")] : []), ...states.map(([state, [name, text]]) => entry(state, name, text)));
}

function hatch() {
  const pattern = (id, angle) => make("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` },
                                      make("rect", { width: 6, height: 6, class: "hatch-ground" }), make("path", { d: "M0 0V6", class: `${id}-line`, "stroke-width": 2 }));
  document.body.append(make("svg", { width: 0, height: 0, style: "position:absolute", "aria-hidden": "true" }, make("defs", {}, pattern("hatch", 45), pattern("gap", -45))));
}

function drawDevice(data, history) {
  const device = new Device(data);
  const regions = device.regions();
  redraw.length = 0;
  legend(device);
  const sections = [summary(device), history ? historyCard(history, device) : null, addressSpace(device, regions), physicalMemory(device), resourceTable(device), bufferTable(device), otherTable(device)];
  document.getElementById("content").replaceChildren(...sections.filter(Boolean));
  redraw.forEach((draw) => draw());
  Object.assign(document.body.dataset, { device: data.ordinal, regions: regions.length, resources: data.resources.length,
                                         buffers: data.resources.reduce((all, r) => all + (r.buffers || []).length, 0) });
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(dark));
  redraw.forEach((draw) => draw());
}

function start() {
  const snapshot = JSON.parse(document.getElementById("snapshot").textContent);
  const history = JSON.parse(document.getElementById("history").textContent);
  document.getElementById("origin").textContent = [snapshot.program && `${snapshot.program} (process ${snapshot.pid})`, snapshot.time.replace("T", " ").replace(/\..*/, " UTC"),
    `gpumem ${snapshot.gpumem}`, snapshot.driver && `${snapshot.driver.kind} driver, ${snapshot.driver.path}`].filter(Boolean).join(" · ");
  document.title = `gpumem map: ${snapshot.program}`;
  hatch();
  const buttons = snapshot.devices.map((data) => {
    const button = make("button", { type: "button" }, `Device ${data.ordinal}`);
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-current", String(other === button)));
      drawDevice(data, history);
    });
    return button;
  });
  if (buttons.length > 1)
    document.getElementById("devices").append(...buttons);
  if (buttons.length)
    buttons[0].click();
  else
    document.getElementById("content").append(make("p", { class: "card" }, "No device was open."));
  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const asked = new URLSearchParams(window.location.search).get("theme");
  setTheme(asked ? asked === "dark" : preferred.matches);
  preferred.addEventListener("change", (event) => setTheme(event.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  window.addEventListener("resize", () => redraw.forEach((draw) => draw()));
  document.body.dataset.ready = "yes";
}

try {
  start();
} catch (error) {
  document.body.dataset.ready = "failed";
  document.getElementById("content").append(make("p", { class: "card error" }, `The snapshot cannot be drawn: ${error.message}`));
}
