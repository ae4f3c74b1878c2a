// The tree of fields. Its rows are the entries that no closed entry hides.

function makeTree(box, onSelect) {
  const open = new Set();
  let rows = [];
  let selected = NONE;
  const list = rowList(box, () => rows.length, makeRow);

  function refresh() {
    rows = [];
    for (let i = 0; i < count; i = open.has(i) ? i + 1 : afters[i]) rows.push(i);
  }

  const rowOf = (i) => last(rows.length, (n) => rows[n] <= i);

  function makeRow(n) {
    const i = rows[n];
    const row = make("div", `row section-${sectionOf(i)}`);
    row.id = `entry-${i}`;
    row.role = "treeitem";
    row.ariaLevel = depths[i] + 1;
    row.ariaSelected = i === selected;
    if (hasInside(i)) row.ariaExpanded = open.has(i);
    row.dataset.entry = i;
    row.style.paddingInlineStart = `${0.4 + depths[i]}em`;
    const title = titleOf(i);
    row.append(
      make("span", "arrow", hasInside(i) ? (open.has(i) ? "\u25be" : "\u25b8") : ""),
      make("span", "name", title || nameOf(i)),
      make("span", "value", summaryOf(i)),
      make("span", "size", bytesText(sizeOf(i))),
    );
    return row;
  }

  function toggle(i, wanted) {
    if (!hasInside(i) || open.has(i) === wanted) return;
    if (wanted) open.add(i);
    else open.delete(i);
    refresh();
    list.draw();
  }

  function select(i) {
    selected = i;
    let hidden = false;
    for (let outer = parents[i]; outer !== NONE; outer = parents[outer]) {
      hidden ||= !open.has(outer);
      open.add(outer);
    }
    if (hidden) refresh();
    list.show(rowOf(i));
    box.setAttribute("aria-activedescendant", `entry-${i}`);
  }

  box.addEventListener("click", (event) => {
    const row = event.target.closest("[data-entry]");
    if (!row) return;
    const i = Number(row.dataset.entry);
    if (event.target.className === "arrow") toggle(i, !open.has(i));
    else onSelect(i);
  });
  box.addEventListener("dblclick", (event) => {
    const row = event.target.closest("[data-entry]");
    if (row && event.target.className !== "arrow") toggle(Number(row.dataset.entry), !open.has(Number(row.dataset.entry)));
  });
  box.addEventListener("keydown", (event) => {
    const n = selected === NONE ? -1 : rowOf(selected);
    const isOpen = open.has(selected);
    const go = (row) => onSelect(rows[Math.max(0, Math.min(rows.length - 1, row))]);
    const actions = {
      ArrowDown: () => go(n + 1),
      ArrowUp: () => go(n - 1),
      PageDown: () => go(n + list.page()),
      PageUp: () => go(n - list.page()),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (isOpen ? go(n + 1) : toggle(selected, true)),
      ArrowLeft: () => (isOpen || parents[selected] === NONE ? toggle(selected, false) : onSelect(parents[selected])),
      Enter: () => toggle(selected, !isOpen),
      " ": () => toggle(selected, !isOpen),
    };
    if (!actions[event.key] || (selected === NONE && !/Down|Home|End/.test(event.key))) return;
    event.preventDefault();
    actions[event.key]();
  });

  for (const i of childrenOf(NONE)) if (nameOf(i) === "metadata_kv") open.add(i);
  refresh();
  list.draw();
  return { select };
}
