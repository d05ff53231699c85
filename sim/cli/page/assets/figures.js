// What all pictures are made of: a stage as wide as the page, bars, axes and legends.
const kSvg = "http://www.w3.org/2000/svg";
const redraws = [];  // of pictures whose colours are not the style sheet's

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(kSvg, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);
const rect = (x, y, width, height, name, attributes = {}) =>
  svg("rect", { x, y, width: Math.max(0, width), height, class: "c-" + name, ...attributes });
const line = (x1, y1, x2, y2, name) => svg("line", { x1, y1, x2, y2, class: name });

/// Draws `render(width)` above the caption, again whenever the width changes.
function responsive(figure, render) {
  const stage = element("div", { class: "stage" });
  figure.prepend(stage);
  let drawn = 0;
  const draw = (width) => {
    drawn = width;
    stage.replaceChildren(...[render(width)].flat());
  };
  new ResizeObserver(() => {
    const width = Math.round(stage.clientWidth);
    if (width > 0 && width !== drawn) draw(width);
  }).observe(stage);
  redraws.push(() => { if (drawn) draw(drawn); });
  draw(Math.round(stage.clientWidth) || 900);
  return stage;
}
const redrawAll = () => redraws.forEach((redraw) => redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

/// The picture as a whole, with its words for readers who do not see it.
const picture = (width, height, label, ...children) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
      ...children);

/// `entries` are [colour, words].
function addLegend(figure, entries, limit) {
  const list = element("ul", { class: "legend" });
  for (const [name, words] of entries) {
    list.append(element("li", {}, element("i", { class: "c-" + name }), words));
  }
  if (limit) list.append(element("li", {}, element("span", { class: "dashed" }), limit));
  figure.prepend(list);
}

/// Round numbers from 0 to `most`, about `count` of them.
function ticks(most, count) {
  if (!(most > 0)) return [0];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const marks = [];
  for (let mark = 0; mark <= most * 1.0001; mark += step) marks.push(mark);
  return marks;
}

/// The powers of ten (or `base`) around two numbers.
function powers(least, most, base = 10) {
  const log = (value) => Math.log(value) / Math.log(base);
  const marks = [];
  for (let p = Math.floor(log(least)); p <= Math.ceil(log(most)); ++p) marks.push(base ** p);
  return marks;
}

const words = (name) => name.replaceAll("_", " ");

/// The colours of the style sheet's class, for a canvas: of its area, and of text on it.
function coloursOf(name) {
  const probe = element("i", { class: "c-" + name, style: "color: var(--on)" });
  document.body.append(probe);
  const { backgroundColor: area, color: on } = getComputedStyle(probe);
  probe.remove();
  return { area, on };
}

/// Lets the arrow keys, and a pointer, move along the stage: `show(share)` gets 0 to 1 and returns
/// the words for the tooltip; share < 0 ends it.
function explorable(stage, show, left = 0, right = 0) {
  let at = 0.5;
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "picture; the arrow keys read it");
  const plotWidth = () => stage.clientWidth - left - right;
  const tell = (share, y) => {
    const said = show(share, y);
    const box = stage.getBoundingClientRect();
    if (said) showTip(said, box.left + left + share * plotWidth(), box.top + (y ?? 30));
    else hideTip();
  };
  const end = () => { hideTip(); show(-1); };
  stage.addEventListener("pointermove", (event) => {
    const box = stage.getBoundingClientRect();
    const share = (event.clientX - box.left - left) / plotWidth();
    if (share < 0 || share > 1) return end();
    at = share;
    tell(share, event.clientY - box.top);
  });
  stage.addEventListener("pointerleave", end);
  stage.addEventListener("blur", end);
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 0.01, ArrowLeft: -0.01, PageDown: 0.1, PageUp: -0.1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(1, Math.max(0, at + step));
    tell(at);
  });
}
