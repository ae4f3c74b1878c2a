// The bytes: rows of sixteen for those that are in the page, and one row for each run of a field's bytes that are not.

const WIDTH = 16;

// Runs of bytes that follow one another over the whole file; `data` is in those that are in the page.
function makeRuns() {
  const runs = [];
  let row = 0;
  let cursor = 0;
  const add = (run, rows) => {
    runs.push({ ...run, row, rows });
    row += rows;
    cursor = run.end;
  };
  const leaveOut = (end) => {
    for (let n = leafNumber(cursor); cursor < end; n++) {
      add({ start: cursor, end: Math.min(endOf(leaves[n]), end), leaf: leaves[n] }, 1);
    }
  };
  for (const [start, text] of contents.bytes) {
    leaveOut(start);
    const data = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const end = start + data.length;
    add({ start, end, data, base: start - (start % WIDTH) }, Math.ceil(end / WIDTH) - Math.floor(start / WIDTH));
  }
  leaveOut(contents.size);
  return runs;
}

function makeHex(box, onSelect) {
  const runs = makeRuns();
  const rowTotal = runs.length ? runs.at(-1).row + runs.at(-1).rows : 0;
  const digits = Math.max(6, contents.size.toString(16).length);
  const hexadecimal = (value, length) => value.toString(16).padStart(length, "0");
  let selected = NONE;
  let current = NONE; // the byte that the keyboard is at
  const list = rowList(box, () => rowTotal, makeRow);

  const runAt = (offset) => runs[last(runs.length, (n) => runs[n].start <= offset)];

  function rowOf(offset) {
    const run = runAt(offset);
    return run.row + (run.data ? Math.floor((offset - run.base) / WIDTH) : 0);
  }

  function makeRow(n) {
    const run = runs[last(runs.length, (m) => runs[m].row <= n)];
    if (!run.data) return makeGap(run);
    const base = run.base + (n - run.row) * WIDTH;
    const bytes = make("span", "bytes");
    const letters = make("span", "letters");
    for (let offset = base; offset < base + WIDTH; offset++) {
      if (offset < run.start || offset >= run.end) {
        bytes.append(make("span", "", " "));
        letters.append(make("span", "", " "));
        continue;
      }
      const byte = run.data[offset - run.start];
      const leaf = leafNumber(offset);
      let classes = `section-${sectionOf(leaves[leaf])}${leaf % 2 ? " odd" : ""}`;
      if (selected !== NONE && offset >= starts[selected] && offset < endOf(selected)) classes += " selected";
      if (offset === current) classes += " current";
      const isLetter = byte > 32 && byte < 127;
      const byteBox = make("span", classes, hexadecimal(byte, 2));
      const letterBox = make("span", isLetter ? classes : `${classes} faint`, isLetter ? String.fromCharCode(byte) : "\u00b7");
      byteBox.dataset.offset = letterBox.dataset.offset = offset;
      bytes.append(byteBox);
      letters.append(letterBox);
    }
    const row = make("div", "row");
    row.append(make("span", "offset", hexadecimal(base, digits)), bytes, letters);
    return row;
  }

  function makeGap(run) {
    const isSelected = selected !== NONE && isInside(run.leaf, selected);
    const row = make("div", `row gap section-${sectionOf(run.leaf)}${isSelected ? " selected" : ""}`);
    row.dataset.offset = run.start;
    const what = ownerOf(run.leaf) || pathOf(run.leaf);
    const text = `${what}: ${number(run.end - run.start)} bytes, left out of this page`;
    row.append(make("span", "offset", hexadecimal(run.start, digits)), make("span", "note", text));
    return row;
  }

  // Highlight an entry's bytes; scroll to a byte of it.
  function select(i, offset = starts[i]) {
    selected = i;
    current = offset;
    if (!runs.length) return;
    const first = rowOf(Math.min(offset, contents.size - 1));
    const final = sizeOf(i) ? rowOf(endOf(i) - 1) : first;
    list.show(first, Math.max(1, Math.min(final - first + 1, list.page() >> 1)));
  }

  box.addEventListener("click", (event) => {
    const at = event.target.closest("[data-offset]");
    if (at) onSelect(leafAt(Number(at.dataset.offset)), Number(at.dataset.offset));
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -WIDTH, ArrowDown: WIDTH }[event.key];
    if (!step || !runs.length) return;
    event.preventDefault();
    const from = runAt(Math.max(0, current));
    let to = Math.max(0, current + step);
    if (!from.data && current >= 0) to = step > 0 ? from.end : from.start - 1; // bytes that are not here are one step
    to = Math.max(0, Math.min(contents.size - 1, to));
    const run = runAt(to);
    to = run.data ? to : run.start;
    onSelect(leafAt(to), to);
  });

  list.draw();
  return { select };
}
