// The page is whole without this script. It adds pictures, sorting, filters and tooltips.
const data = JSON.parse(document.getElementById("data").textContent);
const pictures = {};  // name -> function (figure): draws it, or returns false where it cannot

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const kGib = 2 ** 30;
function gib(bytes, digits = 2) {
  return Math.abs(bytes) < kGib / 10 && bytes !== 0 ? (bytes / 2 ** 20).toFixed(digits) + " MiB"
                                                    : (bytes / kGib).toFixed(digits) + " GiB";
}
const thousands = (number) => Math.round(number).toLocaleString("en-US");

function seconds(value) {
  if (value === 0) return "0 s";
  const units = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "us"]];
  const [size, name] = units.find(([size]) => Math.abs(value) >= size) ?? units.at(-1);
  return (value / size).toPrecision(3) + " " + name;
}

// ---- tooltips

const tip = document.getElementById("tip");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(4, x + 14), innerWidth - width - 4);
  const below = y + 18 + height < innerHeight;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = (below ? y + 18 : Math.max(4, y - height - 10)) + "px";
}
const hideTip = () => { tip.hidden = true; };

/// Shows `text` beside the node while it is pointed at or has the keyboard's focus.
function withTip(node, text) {
  node.setAttribute("aria-label", text.replaceAll("\n", ", "));
  node.addEventListener("pointermove", (event) => showTip(text, event.clientX, event.clientY));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => {
    const box = node.getBoundingClientRect();
    showTip(text, box.left, box.bottom - 12);
  });
  node.addEventListener("blur", hideTip);
  return node;
}

// ---- tables

const kUnits = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, days: 86400, KiB: 2 ** 10,
                 MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/// What a cell is sorted by: a number where the text begins with one, else the text.
function sortKey(text) {
  const found = /^([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([A-Za-z]*)/.exec(text);
  if (!found) return text.toLowerCase();
  return Number(found[1].replaceAll(",", "")) * (kUnits[found[2]] ?? 1);
}

function compareKeys(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

function sortRows(table, column, descending) {
  const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[column].textContent), row]);
  rows.sort(([a], [b]) => (descending ? -1 : 1) * compareKeys(a, b));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function makeSortable(table) {
  if (table.tBodies[0].rows.length < 2) return;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.textContent) return;
    const button = element("button", { type: "button" }, head.textContent);
    if (head.title) button.title = head.title;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(table, column, descending);
    });
  });
}

/// A field that hides the rows of a long table that lack its text.
function addRowFilter(table) {
  const kLong = 12;
  if (table.tBodies[0].rows.length <= kLong || table.closest(".tree")) return;
  const field = element("input", { type: "search", placeholder: "Filter rows",
                                   "aria-label": "Filter rows" });
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    }
  });
  table.closest(".scroll").before(element("div", { class: "tools" }, field));
}

/// A number's source is that of its column.
function showSourcesOfCells() {
  document.querySelector("main").addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td");
    if (!cell || cell.title) return;
    const source = cell.closest("table").tHead?.rows[0].cells[cell.cellIndex]?.title;
    if (source) cell.title = source;
  });
}

// ---- the rest of the page

function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const code of document.querySelectorAll(".suggestions code")) {
    const flags = code.textContent;
    const button = element("button", { type: "button", "aria-label": "Copy " + flags }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(flags);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    code.append(button);
  }
}

function addThemeChoice() {
  const themes = ["auto", "light", "dark"];
  const select = element("select", { "aria-label": "Colours" });
  for (const theme of themes) select.append(element("option", { value: theme }, theme + " colours"));
  select.addEventListener("change", () => {
    if (select.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
    redrawAll();
  });
  document.querySelector("nav").append(element("div", { class: "theme" }, select));
}

/// Marks in the contents where the reader is.
function followReader() {
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.classList.remove("here");
      links.get(entry.target.id)?.classList.add("here");
    }
  }, { rootMargin: "0px 0px -75% 0px" });
  for (const section of document.querySelectorAll("section")) observer.observe(section);
}

function drawPictures() {
  for (const figure of document.querySelectorAll("figure[data-picture]")) {
    figure.hidden = false;
    if (pictures[figure.dataset.picture]?.(figure) === false) figure.hidden = true;
  }
}

function start() {
  document.documentElement.classList.add("scripted");
  for (const table of document.querySelectorAll("main table")) {
    makeSortable(table);
    addRowFilter(table);
  }
  showSourcesOfCells();
  addCopyButtons();
  addThemeChoice();
  followReader();
  drawPictures();
}
