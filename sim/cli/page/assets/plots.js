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
        text(x(mark), height - bottom + 16, across.format(mark), { "text-anchor": "middle", class: "soft" })),
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
