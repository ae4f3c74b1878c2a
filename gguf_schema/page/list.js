// An element with its classes and its text. Text is all that ever enters the document.
function make(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  return element;
}

const ROW = 22; // height of a row, as in the style
const TALLEST = 4e6; // browsers draw nothing beyond some millions of pixels

// A scrolling list, of which only the rows in sight are in the document.
function rowList(box, rowCount, makeRow) {
  const sheet = box.appendChild(make("div", "sheet"));
  const height = () => Math.min(rowCount() * ROW, TALLEST);
  // Pixels of rows for a pixel of scrolling: 1, but in lists that are too tall.
  const scale = () => Math.max(1, (rowCount() * ROW - box.clientHeight) / Math.max(1, height() - box.clientHeight));

  const fit = () => (sheet.style.height = `${height()}px`);

  function draw() {
    fit();
    const top = box.scrollTop * scale();
    const first = Math.floor(top / ROW);
    const end = Math.min(rowCount(), first + Math.ceil(box.clientHeight / ROW) + 1);
    const rows = [];
    for (let n = first; n < end; n++) {
      const row = makeRow(n);
      row.style.top = `${box.scrollTop + n * ROW - top}px`;
      rows.push(row);
    }
    sheet.replaceChildren(...rows);
  }

  // Scroll, if need be, so that rows are in sight.
  function show(n, rows = 1) {
    fit();
    const top = box.scrollTop * scale();
    const margin = box.clientHeight / 4;
    if (n * ROW < top) box.scrollTop = (n * ROW - margin) / scale();
    else if ((n + rows) * ROW > top + box.clientHeight) {
      box.scrollTop = Math.min(n * ROW - margin, (n + rows) * ROW - box.clientHeight + margin) / scale();
    }
    draw();
  }

  box.addEventListener("scroll", draw);
  new ResizeObserver(draw).observe(box);
  return { draw, show, page: () => Math.max(1, Math.floor(box.clientHeight / ROW) - 1) };
}
