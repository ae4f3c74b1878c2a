"use strict";

// The entries of the map, by their number: in the order of the bytes, outer ones before those inside them.

const contents = JSON.parse(document.getElementById("contents").textContent);
const count = contents.sizes.length;
const column = ({ texts, of }) => (i) => texts[of[i]];
const nameOf = column(contents.names);
const typeOf = column(contents.types);
const valueOf = column(contents.values);
const docOf = column(contents.docs);

const SECTIONS = ["metadata_kv", "tensor_infos", "padding", "tensor_data", "tail"];
const NONE = -1; // stands for no entry, and as a parent for the whole file
const parents = contents.up.map((distance, i) => i - distance);
const depths = new Int32Array(count);
const afters = Int32Array.from({ length: count }, (_, i) => i + 1); // the first entry that is not inside of one
for (let i = count - 1; i >= 0; i--) {
  if (parents[i] !== NONE) afters[parents[i]] = Math.max(afters[parents[i]], afters[i]);
}
const hasInside = (i) => afters[i] > i + 1;
const isInside = (i, outer) => outer === NONE || (i >= outer && i < afters[outer]);

const starts = new Float64Array(count);
const leaves = []; // those that have bytes
let cursor = 0;
for (let i = 0; i < count; i++) {
  starts[i] = cursor;
  depths[i] = parents[i] === NONE ? 0 : depths[parents[i]] + 1;
  if (!hasInside(i) && contents.sizes[i] > 0) {
    leaves.push(i);
    cursor += contents.sizes[i];
  }
}
const sizeOf = (i) => contents.sizes[i];
const endOf = (i) => starts[i] + contents.sizes[i];

function childrenOf(i) {
  const children = [];
  const after = i === NONE ? count : afters[i];
  for (let child = i + 1; child < after; child = afters[child]) children.push(child);
  return children;
}

// The largest number below `length` for which `holds`, which is true up to there; -1 if there is none.
function last(length, holds) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const leafNumber = (offset) => last(leaves.length, (n) => starts[leaves[n]] <= offset);
const leafAt = (offset) => (offset < 0 || offset >= contents.size ? NONE : leaves[leafNumber(offset)]);

function pathOf(i) {
  if (parents[i] === NONE) return nameOf(i);
  return pathOf(parents[i]) + (nameOf(i).startsWith("[") ? "" : ".") + nameOf(i);
}

// What people call an entry: a pair's key, the name of an info or a tensor; "" where it has only a path.
function titleOf(i) {
  if (isTensor(i)) return valueOf(i);
  return hasInside(i) && ["key", "name"].includes(nameOf(i + 1)) ? valueOf(i + 1) : "";
}
// The title of an entry or of the closest one around it that has one.
function ownerOf(i) {
  while (i !== NONE && !titleOf(i)) i = parents[i];
  return i === NONE ? "" : titleOf(i);
}
const isTensor = (i) => sectionOf(i) === "tensor_data" && nameOf(i).endsWith("]");

// The outermost field that an entry belongs to; the numbers at the start of the file are one section, padding is another.
function sectionOf(i) {
  if (nameOf(i).endsWith("padding")) return "padding";
  while (parents[i] !== NONE) i = parents[i];
  return SECTIONS.includes(nameOf(i)) ? nameOf(i) : "header";
}

// What stands beside an entry's name: its value, or that of the part that matters.
function summaryOf(i) {
  if (isTensor(i)) return typeOf(i);
  if (!titleOf(i)) return valueOf(i);
  const inside = (outer, ...names) => childrenOf(outer).find((child) => names.includes(nameOf(child)));
  const part = inside(i, "value", "type") ?? i;
  return valueOf(inside(part, "array") ?? part);
}

const number = (value) => value.toLocaleString("en");

function bytesText(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}
