// Plots: kernels against the roofline, sweeps, and the trade of a search.

/// A plot with logarithmic or linear axes. `marks` are {x, y, colour, tip, size}; `lines` are lists
/// of [x, y]. An axis is {label, log, format}.
function plotOf(figure, { x: across, y: up, marks, lines = [], height = 340, label }) {
  const all = (pick) => [...marks.map(pick), ...lines.flatMap(({ points }) => points.map(pick))];
  const axis = ({ log, base }, values) => {
    const least = Math.min(...values), most = Math.max(...values);
    if (!log) {
      const marked = ticks(most * 1.05, 6);
      return { marked, from: 0, to: Math.max(most * 1.05, marked.at(-1)), place: (v) => v };
    }
    const marked = powers(least, most, base ?? 10);
    return { marked, from: Math.log(marked[0]), to: Math.log(marked.at(-1)), place: Math.log };
  };
  const [horizontal, vertical] = [axis(across, all((m) => m.x ?? m[0])),
                                  axis(up, all((m) => m.y ?? m[1]))];
  responsive(figure, (width) => {
    const left = 62, right = 16, top = 22, bottom = 40;
    const scale = ({ from, to, place }, begin, end) => (value) =>
      begin + (place(value) - from) / ((to - from) || 1) * (end - begin);
    const x = scale(horizontal, left, width - right), y = scale(vertical, height - bottom, top);
    const thin = Math.ceil(horizontal.marked.length / (width < 500 ? 4 : 9));
    const drawn = [
      ...vertical.marked.flatMap((mark) =>
        [line(left, y(mark), width - right, y(mark), "grid"),
         text(left - 6, y(mark) + 4, up.format(mark), { "text-anchor": "end", class: "soft" })]),
      ...horizontal.marked.filter((_, i) => i % thin === 0).map((mark) =>
        text(x(mark), height - bottom + 16, across.format(mark),
             { "text-anchor": x(mark) > width - 40 ? "end" : "middle", class: "soft" })),
      text(width - right, height - 6, across.label, { "text-anchor": "end", class: "soft" }),
      text(0, 12, up.label, { class: "soft" }),
      ...lines.map(({ points, name }) => svg("polyline", { class: name ?? "line",
        points: points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" ") })),
      ...marks.map((mark) => withTip(svg("circle", {
        cx: x(mark.x), cy: y(mark.y), r: mark.size ?? 5, class: "c-" + mark.colour, tabindex: 0,
        role: "img", stroke: "var(--paper)" }), mark.tip)),
      ...(width > 500 ? namesOf(marks, x, y, width) : []),
    ];
    return picture(width, height, label, ...drawn);
  });
}

/// The names of marks beside them, where there is room: not over another name or mark.
function namesOf(marks, x, y, width) {
  const taken = marks.map((mark) => {
    const radius = mark.size ?? 5;
    return { mark, left: x(mark.x) - radius, right: x(mark.x) + radius, top: y(mark.y) - radius,
             bottom: y(mark.y) + radius };
  });
  return marks.filter((mark) => mark.name).flatMap((mark) => {
    const away = (mark.size ?? 5) + 4, wide = mark.name.length * 6.6;
    const [cx, cy] = [x(mark.x), y(mark.y)];
    const places = [[cx + away, cy], [cx - away - wide, cy], [cx - wide / 2, cy + away + 7],
                    [cx - wide / 2, cy - away - 7]];
    const room = places.map(([left, middle]) =>
      ({ left, right: left + wide, top: middle - 7, bottom: middle + 7 })).find((box) =>
      box.left > 0 && box.right < width && !taken.some((other) => other.mark !== mark &&
        box.left < other.right && box.right > other.left && box.top < other.bottom &&
        box.bottom > other.top));
    if (!room) return [];
    taken.push(room);
    return [text(room.left, room.top + 11, mark.name, { class: "soft" })];
  });
}

const power = (value) => value >= 1e15 || value < 1e-2 ? value.toExponential(0)
  : value >= 1e12 ? value / 1e12 + "T" : value >= 1e9 ? value / 1e9 + "G"
  : value >= 1e6 ? value / 1e6 + "M" : value >= 1e4 ? value / 1e3 + "k" : String(+value.toPrecision(3));

pictures.roofline = (figure) => {
  const kLeastShare = 0.0005, kLeastIntensity = 0.01;  // others are too small to be looked at
  const { operators = [], ridge_flops_per_byte: ridge } = data.roofline ?? {};
  const priced = operators.filter((row) =>
    row.flops_per_byte > kLeastIntensity && row.share_of_compute > kLeastShare);
  const known = priced.find((row) => row.share_of_peak_flops > 0);
  if (!known) return false;
  const peak = known.flops_per_second / known.share_of_peak_flops;
  const kLabelled = 5;
  const least = Math.min(...priced.map((row) => row.flops_per_byte)) / 2;
  const most = Math.max(ridge, ...priced.map((row) => row.flops_per_byte)) * 2;
  plotOf(figure, {
    label: "kernels against the roofline of the GPU",
    x: { label: "FLOP for each byte moved", log: true, format: power },
    y: { label: "FLOP/s reached", log: true, format: power },
    lines: [{ points: [[least, least * peak / ridge], [ridge, peak], [most, peak]], name: "limit-line" }],
    marks: priced.map((row, i) => ({
      x: row.flops_per_byte, y: row.flops_per_second, size: 4 + 18 * Math.sqrt(row.share_of_compute),
      colour: { "compute-bound": "compute", "memory-bound": "activation" }[row.intensity] ?? "optimizer_state",
      name: i < kLabelled ? row.name : "",
      tip: `${row.name}\n${seconds(row.seconds)} in ${thousands(row.count)} calls, ` +
           `${(100 * row.share_of_compute).toFixed(1)} % of the kernels' time\n` +
           `${(row.flops_per_second / 1e12).toFixed(1)} TFLOP/s, ${(100 * row.share_of_peak_flops).toFixed(1)} % of the peak\n` +
           `${(row.bytes_per_second / 1e12).toFixed(2)} TB/s, ${(100 * row.share_of_peak_bandwidth).toFixed(1)} % of the peak`,
    })),
  });
  addLegend(figure, [["compute", "compute-bound"], ["optimizer_state", "balanced"],
                     ["activation", "memory-bound"]], "the GPU's peak");
};

// ---- sweeps and searches

const kSeries = ["compute", "activation", "optimizer", "tensor", "gradient", "loading", "expert", "communicators"];
const kOutcomes = { fits: "good", too_close_to_call: "close", does_not_fit: "bad" };

const choice = (axes, values) => axes.map(({ flag }, i) => `${flag} ${values[i]}`).join(" ");

function tipOfPoint(axes, { values, result }) {
  return [choice(axes, values), words(result.outcome),
          `${gib(result.peak_bytes)} of the worst rank, ${gib(result.headroom_bytes)} free`,
          `${seconds(result.iteration_seconds)} a step, ${thousands(result.tokens_per_second)} tokens/s, ` +
          `MFU ${(100 * result.mfu).toFixed(1)} %`].join("\n");
}

/// Memory and time along one axis of numbers; a choice of the axis if there are several.
pictures["sweep-growth"] = (figure) => {
  const { axes, points } = data.sweep;
  const known = points.filter((point) => point.result);
  const candidates = axes.map((axis, i) => ({ ...axis, i })).filter(({ numbers }) => numbers.length > 1);
  if (!candidates.length || known.length < 2) return false;
  const limits = [...new Set(known.map(({ result }) => result.peak_bytes + result.headroom_bytes))];
  const draw = (axis) => {
    for (const old of figure.querySelectorAll(".stage, .legend, .half")) old.remove();
    const others = (point) => choice(axes, point.values).replace(`${axis.flag} ${point.values[axis.i]}`, "").trim();
    const series = [...new Set(known.map(others))];
    const of = (name) => known.filter((point) => others(point) === name);
    const at = (point) => axis.numbers[axis.values.indexOf(point.values[axis.i])];
    const plot = (label, quantity, format, limits) => {
      const part = element("div", { class: "half" });
      figure.prepend(part);
      const xs = known.map(at);
      plotOf(part, {
        label: `${label} along ${axis.flag}`, height: 280,
        x: { label: axis.flag, log: true, base: 2, format: power },
        y: { label, log: true, base: 2, format },
        lines: [...series.map((name, s) => ({ points: of(name).map((p) => [at(p), quantity(p.result)])
                  .sort((a, b) => a[0] - b[0]), name: `c-${kSeries[s % kSeries.length]} series` })),
                ...limits.map((limit) => (
                  { points: [[Math.min(...xs), limit], [Math.max(...xs), limit]], name: "limit-line" }))],
        marks: known.map((point) => ({ x: at(point), y: quantity(point.result), tip: tipOfPoint(axes, point),
          colour: kOutcomes[point.result.outcome] })),
      });
    };
    plot("step time", (r) => r.iteration_seconds, seconds, []);
    plot("memory of the worst rank", (r) => r.peak_bytes, (bytes) => gib(bytes, bytes < kGib ? 2 : 0), limits);
    addLegend(figure, [["good", "fits"], ["close", "too close to call"], ["bad", "does not fit"]],
              "the GPU's memory");
  };
  draw(candidates[0]);
  if (candidates.length < 2) return true;
  const select = element("select", { "aria-label": "Along which flag" });
  for (const [i, { flag }] of candidates.entries()) select.append(element("option", { value: i }, "along " + flag));
  select.addEventListener("change", () => draw(candidates[select.value]));
  figure.before(element("div", { class: "tools" }, select));
  return true;
};

pictures["sweep-trade"] = (figure) => {
  const { axes, points } = data.sweep;
  const known = points.filter((point) => point.result?.iteration_seconds > 0);
  if (known.length < 3) return false;
  plotOf(figure, {
    label: "step time against free memory",
    x: { label: "one step", log: true, base: 2, format: seconds },
    y: { label: "GiB of the worst rank", format: (value) => String(value) },
    marks: known.map((point) => ({ x: point.result.iteration_seconds, y: point.result.peak_bytes / kGib,
      colour: kOutcomes[point.result.outcome], tip: tipOfPoint(axes, point) })),
  });
};

pictures["search-front"] = (figure) => {
  const { pareto } = data.search;
  if (pareto.length < 2) return false;
  const speeds = pareto.map((found) => found.tokens_per_second);
  const limits = [...new Set(pareto.map((found) => found.capacity_bytes / kGib))];
  const worlds = [...new Set(pareto.map(({ gpus }) => gpus))].sort((a, b) => a - b);
  plotOf(figure, {
    label: "speed against memory, GPUs and cost",
    x: { label: "tokens/s", log: true, base: 2, format: thousands },
    y: { label: "GiB of the worst rank", format: (value) => String(value) },
    lines: limits.map((limit) => (
      { points: [[Math.min(...speeds), limit], [Math.max(...speeds), limit]], name: "limit-line" })),
    marks: pareto.map((found) => ({
      x: found.tokens_per_second, y: found.peak_bytes / kGib, size: 4 + 2 * worlds.indexOf(found.gpus),
      colour: kSeries[worlds.indexOf(found.gpus) % kSeries.length],
      tip: [found.flags, `${thousands(found.gpus)} GPUs`,
            `${seconds(found.iteration_seconds)} a step, ${thousands(found.tokens_per_second)} tokens/s, ` +
            `MFU ${(100 * found.mfu).toFixed(1)} %`,
            `${gib(found.peak_bytes)}, ${gib(found.headroom_bytes)} free`,
            found.usd_per_million_tokens ? `${found.usd_per_million_tokens.toFixed(4)} dollars for a million tokens` : "",
           ].filter(Boolean).join("\n"),
    })),
  });
  addLegend(figure, worlds.map((gpus, i) => [kSeries[i % kSeries.length], `${thousands(gpus)} GPUs`]),
            "the GPU's memory");
};

// ---- two plans

const kDiffColours = { compute: "compute", "pipeline bubble": "bubble", optimizer: "optimizer",
  "tensor communication, exposed": "tensor", "pipeline communication, exposed": "pipeline",
  "data communication, exposed": "data", "context communication, exposed": "context-ranks",
  "expert communication, exposed": "expert", "waiting for data": "loading" };

pictures.diff = (figure) => {
  const groups = [["what fills the allocated peak", (v) => gib(v)], ["one iteration", seconds]];
  let any = false;
  for (const [part, format] of groups.reverse()) {
    const shown = new Map();
    const rows = data.diff.numbers.filter((row) =>
      row.part === part && row.name !== "iteration" && (row.a > 0 || row.b > 0));
    if (!rows.length) continue;
    const most = Math.max(...["a", "b"].map((side) => rows.reduce((sum, row) => sum + row[side], 0)));
    const block = element("div", { class: "half" });
    figure.prepend(block);
    responsive(block, (width) => {
      const left = 24, bars = [text(0, 14, part, { class: "soft" })];
      ["a", "b"].forEach((side, i) => {
        const y = 22 + i * 34;
        let from = left;
        bars.push(text(4, y + 19, side.toUpperCase()));
        for (const row of rows) {
          const wide = (row[side] / most) * (width - left);
          const name = kDiffColours[row.name] ?? row.name;
          shown.set(name, words(row.name));
          bars.push(withTip(rect(from, y, wide, 28, name, { tabindex: 0, role: "img" }),
                            `${side.toUpperCase()}: ${words(row.name)}\n${format(row[side])}`));
          from += wide;
        }
      });
      return picture(width, 92, part + " of A and of B", ...bars);
    });
    addLegend(block, [...shown]);
    any = true;
  }
  return any;
};
