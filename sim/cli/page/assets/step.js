// Pictures of the step: where its time goes, and what every stage does when.

const kParts = [
  ["compute", "compute", (t) => t.compute_seconds],
  ["bubble", "pipeline bubble", (t) => t.bubble_seconds],
  ["tensor", "tensor communication", (t) => t.exposed_communication_seconds.tensor],
  ["pipeline", "pipeline communication", (t) => t.exposed_communication_seconds.pipeline],
  ["data", "data communication", (t) => t.exposed_communication_seconds.data],
  ["context-ranks", "context communication", (t) => t.exposed_communication_seconds.context],
  ["expert", "expert communication", (t) => t.exposed_communication_seconds.expert],
  ["optimizer", "optimizer", (t) => t.optimizer_seconds],
  ["loading", "waiting for data", (t) => t.data_loading_seconds],
];

pictures.parts = (figure) => {
  const time = data.estimate.time;
  if (!(time.iteration_seconds > 0)) return false;
  const parts = kParts.map(([name, said, of]) => [name, said, of(time)]).filter(([, , s]) => s > 0);
  const all = parts.reduce((sum, [, , s]) => sum + s, 0);
  responsive(figure, (width) => {
    let at = 0;
    const bars = parts.map(([name, said, value]) => {
      const wide = (value / all) * width;
      const bar = svg("g", { class: "c-" + name, tabindex: 0, role: "img" }, rect(at, 0, wide, 34, name));
      const share = `${(100 * value / all).toFixed(0)} %`;
      if (wide > 44) {
        bar.append(text(at + wide / 2, 22, share, { "text-anchor": "middle", class: "inside" }));
      }
      at += wide;
      return withTip(bar, `${said}\n${seconds(value)}, ${(100 * value / all).toFixed(1)} %`);
    });
    return picture(width, 34, "parts of one iteration", ...bars);
  });
  addLegend(figure, parts.map(([name, said]) => [name, said]));
};

// ---- the step of all stages

/// What a letter of the data stands for: colour and words.
const kDoings = {
  f: ["forward", "forward"], b: ["backward", "backward"], i: ["backward", "backward of inputs"],
  w: ["backward-weight", "backward of weights"], r: ["recompute", "recompute"],
  o: ["optimizer", "optimizer"], d: ["data", "data communication"],
  g: ["data", "reduction of gradients"], c: ["copies", "copies between host and GPU"],
  l: ["loading", "wait for data"], n: ["tensor", "communication"],
};

/// Every line as slices {kind, begin, end, note}: from exact slices (in millionths of the step,
/// each begins where the one before ended plus a gap), or from a letter for each cell.
function slicesOf(step) {
  return step.lines.map(({ cells, slices }) => {
    if (cells) {
      const found = [];
      for (let i = 0; i < cells.length; ++i) {
        if (cells[i] === ".") continue;
        const before = found.at(-1);
        if (before?.kind === cells[i] && before.end === i / cells.length) {
          before.end = (i + 1) / cells.length;
        } else {
          found.push({ kind: cells[i], begin: i / cells.length, end: (i + 1) / cells.length });
        }
      }
      return found;
    }
    let at = 0;
    return slices.map(([kind, gap, length, batch, chunk]) => {
      const begin = at + gap;
      at = begin + length;
      return { kind, begin: begin / 1e6, end: at / 1e6, batch, chunk };
    });
  });
}

function tipOfSlice(step, name, slice) {
  const where = [slice.batch >= 0 ? `micro-batch ${slice.batch}` : "",
                 slice.chunk > 0 || step.has_chunks ? `chunk ${slice.chunk ?? 0}` : ""];
  return [name, [kDoings[slice.kind][1], ...where.filter(Boolean)].join(", "),
          `${seconds(slice.begin * step.seconds)} to ${seconds(slice.end * step.seconds)}: ` +
          seconds((slice.end - slice.begin) * step.seconds)].join("\n");
}

pictures.step = (figure) => {
  const step = data.step;
  if (!step?.lines.length) return false;
  const lines = slicesOf(step);
  const high = Math.max(3, Math.min(22, Math.floor(560 / lines.length)));
  const gap = high > 6 ? 2 : high > 4 ? 1 : 0;
  const label = lines.length > 40 ? 64 : 110, bottom = 22;
  const height = lines.length * (high + gap) + bottom;
  const zoom = { begin: 0, end: 1 };
  let redraw = () => {};
  const stage = responsive(figure, (width) => {
    const canvas = element("canvas", { role: "img", "aria-label": "what every stage does when" });
    redraw = () => drawStep(canvas, width, height, { step, lines, high, gap, label, zoom });
    redraw();
    return canvas;
  });
  let row = 0;
  explorable(stage, (share, y) => {
    if (share < 0) return "";
    if (y !== undefined) row = Math.min(lines.length - 1, Math.max(0, Math.floor(y / (high + gap))));
    const at = zoom.begin + share * (zoom.end - zoom.begin);
    const slice = lines[row].find((known) => known.begin <= at && at <= known.end);
    return slice ? tipOfSlice(step, step.lines[row].name, slice)
                 : `${step.lines[row].name}\nwaits at ${seconds(at * step.seconds)}`;
  }, label);
  stage.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    row = Math.min(lines.length - 1, Math.max(0, row + move));
    showTip(step.lines[row].name, stage.getBoundingClientRect().left + 20,
            stage.getBoundingClientRect().top + row * (high + gap));
  });
  const zoomTo = (factor) => {
    const middle = (zoom.begin + zoom.end) / 2, half = Math.min(0.5, (zoom.end - zoom.begin) * factor / 2);
    zoom.begin = Math.max(0, Math.min(1 - 2 * half, middle - half));
    zoom.end = zoom.begin + 2 * half;
    redraw();
  };
  const slide = (direction) => {
    const width = zoom.end - zoom.begin;
    zoom.begin = Math.max(0, Math.min(1 - width, zoom.begin + direction * width / 2));
    zoom.end = zoom.begin + width;
    redraw();
  };
  const button = (said, hint, act) => {
    const made = element("button", { type: "button", "aria-label": hint, title: hint }, said);
    made.addEventListener("click", act);
    return made;
  };
  const used = new Map();
  for (const slice of lines.flat()) used.set(...kDoings[slice.kind]);
  stage.before(element("div", { class: "tools" }, button("+", "zoom in", () => zoomTo(0.5)),
                       button("\u2212", "zoom out", () => zoomTo(2)),
                       button("\u2190", "earlier", () => slide(-1)),
                       button("\u2192", "later", () => slide(1))));
  addLegend(figure, [...used, ["bubble", "waiting"]]);
};

function drawStep(canvas, width, height, { step, lines, high, gap, label, zoom }) {
  const density = Math.max(2, devicePixelRatio || 1);  // 2 at least, for paper
  canvas.width = width * density;
  canvas.height = height * density;
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  const style = getComputedStyle(document.body);
  const colours = {};
  for (const [kind, [name]] of Object.entries(kDoings)) colours[kind] = coloursOf(name);
  const idle = coloursOf("bubble").area;
  const x = (share) => label + (share - zoom.begin) / (zoom.end - zoom.begin) * (width - label);
  pen.font = `11px ${style.fontFamily}`;
  lines.forEach((slices, i) => {
    const y = i * (high + gap);
    if (high > 9 || i % Math.ceil(14 / (high + gap)) === 0) {
      pen.fillStyle = style.color;
      pen.textAlign = "right";
      pen.fillText(step.lines[i].name, label - 8, y + Math.max(high / 2 + 4, 9), label - 12);
    }
    pen.save();
    pen.beginPath();
    pen.rect(label, y, width - label, high);
    pen.clip();
    pen.fillStyle = idle;
    pen.fillRect(label, y, width - label, high);
    for (const { kind, begin, end, batch } of slices) {
      if (end < zoom.begin || begin > zoom.end) continue;
      const from = x(begin), wide = x(end) - from;
      pen.fillStyle = colours[kind].area;
      pen.fillRect(from, y, wide > 3 ? wide - 0.5 : wide, high);
      if (wide > 16 && high > 11 && batch >= 0) {
        pen.fillStyle = colours[kind].on;
        pen.textAlign = "center";
        pen.fillText(batch, from + wide / 2, y + high / 2 + 4, wide);
      }
    }
    pen.restore();
  });
  pen.fillStyle = style.color;
  const marks = width < 500 ? 3 : 6;
  for (let m = 0; m <= marks; ++m) {
    const share = zoom.begin + (m / marks) * (zoom.end - zoom.begin);
    pen.textAlign = m === 0 ? "left" : m === marks ? "right" : "center";
    pen.fillText(seconds(share * step.seconds), x(share), height - 6);
  }
}
