// The bar: what is inside one entry (at first, the whole file) side by side, as wide as it is long but never too narrow
// to be hit. What is too much for the bar is put together in groups, which open like entries do.

const FEW = 48; // children that each have a piece; where there are more, they are grouped
const MOST = 16; // what then counts as long: this part of all, in bytes or in children

function makeBar(bar, crumbs, scale, onSelect) {
  const whole = { parent: NONE, children: childrenOf(NONE).filter(sizeOf) };
  let views = [whole]; // from the whole file to what is shown
  let selected = NONE;
  let turned = -Infinity;

  const view = () => views.at(-1);
  const startOf = ({ children }) => (children.length ? starts[children[0]] : 0);
  const stopOf = ({ children }) => (children.length ? endOf(children.at(-1)) : 0);
  const holds = ({ children }, i) => children.length > 0 && i >= children[0] && i < afters[children.at(-1)];

  // Children in runs of about the same length, each of which is one piece of the bar.
  function piecesOf({ parent, children }) {
    if (children.length <= FEW) return children.map((child) => ({ parent, children: [child] }));
    const long = children.reduce((sum, child) => sum + sizeOf(child), 0) / MOST;
    const many = Math.ceil(children.length / MOST);
    const pieces = [];
    let length = Infinity;
    for (const child of children) {
      length += sizeOf(child);
      if (length > long || pieces.at(-1).children.length >= many) {
        pieces.push({ parent, children: [] });
        length = sizeOf(child);
      }
      pieces.at(-1).children.push(child);
    }
    return pieces;
  }

  const nameOfOne = (i) => titleOf(i) || nameOf(i);

  function nameOfPiece({ children }) {
    const [first] = children;
    return children.length === 1 ? nameOfOne(first) : `${nameOfOne(first)} \u2026 ${nameOfOne(children.at(-1))}`;
  }

  // The view that a piece opens; none for a leaf.
  function insideOf({ parent, children }) {
    if (children.length > 1) return { parent, children };
    const inside = childrenOf(children[0]).filter(sizeOf);
    return inside.length ? { parent: children[0], children: inside } : null;
  }

  function zoomIn(piece) {
    const inside = insideOf(piece);
    if (!inside) return;
    views.push(inside);
    draw();
  }

  function zoomOut(levels = 1) {
    views = views.slice(0, Math.max(1, views.length - levels));
    draw();
  }

  function choose(piece) {
    zoomIn(piece);
    if (piece.children.length === 1) onSelect(piece.children[0]);
  }

  let pieces = [];

  function makePiece(piece, n) {
    const { children } = piece;
    const size = stopOf(piece) - startOf(piece);
    const tone = isTensor(children[0]) ? ` type-${contents.types.of[children[0]] % 6}` : "";
    const box = make("button", `piece section-${sectionOf(children[0])}${tone}`);
    box.type = "button";
    box.dataset.piece = n;
    box.style.flexGrow = size;
    box.tabIndex = -1;
    const kind = children.length > 1 ? `${number(children.length)} fields` : isTensor(children[0]) ? typeOf(children[0]) : "";
    const text = [nameOfPiece(piece), kind, bytesText(size)].filter(Boolean);
    box.title = text.join("\n");
    box.ariaLabel = text.join(", ");
    box.append(make("b", "", text[0]), make("span", "", text.slice(1).join(", ")));
    if (selected !== NONE && holds(piece, selected)) {
      box.classList.add("selected");
      box.ariaPressed = true;
      if (sizeOf(selected) < size) box.append(makeMark(piece, size));
    }
    return box;
  }

  // Where in a piece the selected bytes are.
  function makeMark(piece, size) {
    const mark = make("i");
    mark.style.left = `${(100 * (starts[selected] - startOf(piece))) / size}%`;
    mark.style.width = `${(100 * sizeOf(selected)) / size}%`;
    return mark;
  }

  function draw() {
    pieces = piecesOf(view());
    const hasFocus = bar.contains(document.activeElement);
    bar.replaceChildren(...pieces.map(makePiece));
    const reachable = bar.querySelector(".selected") ?? bar.firstElementChild;
    if (reachable) reachable.tabIndex = 0;
    if (hasFocus) reachable?.focus();
    crumbs.replaceChildren(
      ...views.map((shown, n) => {
        const text = n === 0 ? "Whole file" : shown.parent === views[n - 1].parent ? nameOfPiece(shown) : nameOfOne(shown.parent);
        const crumb = make("button", "", text);
        crumb.type = "button";
        crumb.disabled = n === views.length - 1;
        crumb.addEventListener("click", () => zoomOut(views.length - 1 - n));
        return crumb;
      }),
    );
    scale.firstElementChild.textContent = number(startOf(view()));
    scale.lastElementChild.textContent = number(stopOf(view()));
  }

  // Mark an entry, in a view that has it or lies in it.
  function select(i) {
    selected = i;
    const isShown = (shown) => holds(shown, i) || (shown.parent !== NONE && isInside(shown.parent, i));
    while (views.length > 1 && !isShown(view())) views.pop();
    draw();
  }

  const pieceAt = (event) => event.target.closest("[data-piece]");

  bar.addEventListener("click", (event) => {
    const box = pieceAt(event);
    if (box) choose(pieces[box.dataset.piece]);
  });
  bar.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.timeStamp - turned < 250) return; // one turn of the wheel is many events
      turned = event.timeStamp;
      const box = pieceAt(event);
      if (event.deltaY > 0) zoomOut();
      else if (box) zoomIn(pieces[box.dataset.piece]);
    },
    { passive: false },
  );
  bar.addEventListener("keydown", (event) => {
    const box = pieceAt(event);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") zoomOut();
    else if (step && box) bar.children[Number(box.dataset.piece) + step]?.focus();
    else if (event.key === "Enter" && box) choose(pieces[box.dataset.piece]);
    else return;
    event.preventDefault();
  });

  draw();
  return { select };
}
