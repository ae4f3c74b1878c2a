// The page: one selected entry, which every part shows.

const part = (id) => document.getElementById(id);
let selected = NONE;

function select(i, offset) {
  if (i === NONE) return;
  selected = i;
  tree.select(i);
  hex.select(i, offset);
  bar.select(i);
  showDetails(i);
}

function showDetails(i) {
  const place = (offset) => `${number(offset)} (0x${offset.toString(16)})`;
  const rows = {
    Path: pathOf(i),
    Name: ownerOf(i),
    Type: typeOf(i),
    Size: `${number(sizeOf(i))} bytes`,
    Start: place(starts[i]),
    End: place(endOf(i)),
    Value: valueOf(i),
    Meaning: docOf(i),
  };
  part("details").replaceChildren(
    ...Object.entries(rows)
      .filter(([, text]) => text)
      .flatMap(([term, text]) => [make("dt", "", term), make("dd", term.toLowerCase(), text)]),
  );
}

// Entries whose title or path has the text that is looked for; of a number the one that has the byte at that offset.

let texts = null; // made when first needed
let matches = [];

const offsetIn = (query) => (/^(0x[0-9a-f]+|\d+)$/i.test(query.trim()) ? Number(query.trim()) : NONE);

function find(query) {
  const offset = offsetIn(query);
  if (offset !== NONE) {
    const leaf = leafAt(offset);
    matches = leaf === NONE ? [] : [leaf];
    return;
  }
  texts ??= Array.from({ length: count }, (_, i) => `${titleOf(i)}\n${pathOf(i)}`.toLowerCase());
  const wanted = query.trim().toLowerCase();
  matches = [];
  for (let i = 0; wanted && i < count; i++) if (texts[i].includes(wanted)) matches.push(i);
}

function go(step) {
  const offset = offsetIn(part("query").value);
  if (offset !== NONE) {
    if (matches.length) select(matches[0], offset);
  } else if (matches.length) {
    const before = last(matches.length, (n) => matches[n] <= selected);
    const isMatch = matches[before] === selected;
    const next = step > 0 ? before + 1 : isMatch ? before - 1 : before;
    select(matches[(next + matches.length) % matches.length]);
  }
  showFound();
}

function showFound() {
  const query = part("query").value.trim();
  const at = matches.indexOf(selected) + 1;
  part("found").textContent = query ? `${number(at)} of ${number(matches.length)}` : "";
  part("previous").disabled = part("following").disabled = !matches.length;
}

const tree = makeTree(part("tree"), select);
const hex = makeHex(part("hex"), select);
const bar = makeBar(part("bar"), part("crumbs"), part("scale"), select);

part("file").textContent = contents.file;
part("facts").textContent = `GGUF version ${contents.version}, ${contents.order}-endian, ${number(contents.size)} bytes`;
part("query").addEventListener("input", (event) => {
  find(event.target.value);
  if (!matches.includes(selected) || offsetIn(event.target.value) !== NONE) go(1);
  showFound();
});
part("search").addEventListener("submit", (event) => {
  event.preventDefault();
  go(1);
});
part("query").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.shiftKey) return;
  event.preventDefault();
  go(-1);
});
part("previous").addEventListener("click", () => go(-1));
showFound();
select(0);
