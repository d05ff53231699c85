// Pictures of memory: classes of ranks against the limit, two iterations, and the peak.
const kCategories = ["parameter", "gradient", "master_weight", "optimizer_state", "activation",
                     "temporary", "communication", "workspace"];

/// [colour, words, bytes] of all that a class of ranks needs.
function partsOfClass(row) {
  const filled = row.peak_categories;
  const live = filled ? kCategories.map((name) => [name, words(name), filled[name] ?? 0])
                      : [["activation", "allocated", row.allocated_peak_bytes]];
  return [...live,
          ["cache", "held by the allocator, not allocated",
           row.reserved_peak_bytes - row.allocated_peak_bytes],
          ["context", "CUDA context and libraries", row.context_bytes],
          ["communicators", "communicators", row.communicator_bytes]].filter(([, , b]) => b > 0);
}

function tipOfClass(row, parts, verdict) {
  const free = verdict.capacity_bytes - row.total_bytes;
  return [`rank ${row.representative_rank}: ${gib(row.total_bytes)}, ` +
          (free >= 0 ? `${gib(free)} free` : `${gib(-free)} too much`),
          `${thousands(row.count)} like it` + (row.stages ? `, stage ${row.stages}` : ""),
          `between ${gib(row.total_low_bytes)} and ${gib(row.total_high_bytes)}`,
          ...parts.map(([, name, bytes]) => `${name}  ${gib(bytes)}`)].join("\n");
}

pictures.classes = (figure) => {
  const { verdict, rank_classes, ranks } = data.estimate;
  const rows = rank_classes ?? ranks;
  if (!rows.length) return false;
  const shown = new Map();
  for (const row of rows) for (const [name, said] of partsOfClass(row)) shown.set(name, said);
  responsive(figure, (width) => {
    const label = width < 500 ? 58 : 150, right = 12, top = 18;
    const high = rows.length > 40 ? 7 : rows.length > 20 ? 14 : 20;
    const most = Math.max(verdict.capacity_bytes, ...rows.map((row) => row.total_high_bytes)) * 1.02;
    const x = (bytes) => label + (bytes / most) * (width - label - right);
    const height = top + rows.length * (high + 3) + 24;
    const drawn = ticks(most / kGib, width < 500 ? 4 : 8).flatMap((mark) =>
      [line(x(mark * kGib), top - 4, x(mark * kGib), height - 20, "grid"),
       text(x(mark * kGib), height - 6, String(mark), { "text-anchor": "middle", class: "soft" })]);
    rows.forEach((row, i) => {
      const y = top + i * (high + 3);
      const parts = partsOfClass(row);
      const bar = svg("g", { tabindex: 0, role: "img" });
      let from = 0;
      for (const [name, , bytes] of parts) {
        bar.append(rect(x(from), y, x(from + bytes) - x(from), high, name));
        from += bytes;
      }
      const middle = y + high / 2;
      bar.append(line(x(row.total_low_bytes), middle, x(row.total_high_bytes), middle, "axis"));
      if (high > 10 || i % 8 === 0) {
        const isWorst = row.representative_rank === verdict.worst_rank;
        const name = width < 500 ? `${row.representative_rank}`
                                 : `rank ${row.representative_rank}` + (row.stages ? `, stage ${row.stages}` : "");
        bar.append(text(label - 8, y + high / 2 + 4, name,
                        { "text-anchor": "end", "font-weight": isWorst ? 700 : 400 }));
      }
      drawn.push(withTip(bar, tipOfClass(row, parts, verdict)));
    });
    const limit = x(verdict.capacity_bytes);
    drawn.push(line(limit, 4, limit, height - 18, "limit"));
    drawn.push(text(label - 8, height - 6, "GiB", { "text-anchor": "end", class: "soft" }));
    return picture(width, height, "memory of each class of ranks against the limit", ...drawn);
  });
  addLegend(figure, [...shown], `the GPU has ${gib(verdict.capacity_bytes)}`);
};

// ---- memory over two iterations

pictures.history = (figure) => {
  const history = data.history;
  if (!history?.points.length) return false;
  const { phases, categories, limit_bytes: limit } = history;
  const points = history.points.map((point) => point.map((kib) => kib * 1024));
  const reserved = categories.length;
  const used = categories.map((_, c) => c).filter((c) => points.some((point) => point[c] > 0));
  const totals = points.map((point) => used.reduce((sum, c) => sum + point[c], 0));
  const most = Math.max(...points.map((point) => point[reserved]), ...totals);
  const kFarAway = 1.7;  // a limit far above would leave no room for the picture
  const shows = limit > 0 && limit < kFarAway * most;
  const top = Math.max(most, shows ? limit : 0) * 1.04;
  const [unit, unitName] = most < kGib ? [2 ** 20, "MiB"] : [kGib, "GiB"];
  const label = 40, right = 10, height = 330, roof = 34;
  const cursor = line(0, roof, 0, height - 24, "cursor");
  let plot = 1;
  const stage = responsive(figure, (width) => {
    plot = width - label - right;
    const x = (i) => label + (i / Math.max(1, points.length - 1)) * plot;
    const y = (bytes) => roof + (1 - bytes / top) * (height - roof - 24);
    const drawn = ticks(top / unit, 6).flatMap((mark) =>
      [line(label, y(mark * unit), width - right, y(mark * unit), "grid"),
       text(label - 6, y(mark * unit) + 4, String(+mark.toPrecision(3)), { "text-anchor": "end", class: "soft" })]);
    const floor = points.map(() => 0);
    for (const c of used) {
      const below = points.map((_, i) => `${x(i).toFixed(1)},${y(floor[i]).toFixed(1)}`);
      points.forEach((point, i) => { floor[i] += point[c]; });
      const above = points.map((_, i) => `${x(i).toFixed(1)},${y(floor[i]).toFixed(1)}`);
      drawn.push(svg("polygon", { class: "c-" + categories[c],
                                  points: [...above, ...below.reverse()].join(" ") }));
    }
    drawn.push(svg("polyline", { class: "line", points: points.map((point, i) =>
      `${x(i).toFixed(1)},${y(point[reserved]).toFixed(1)}`).join(" ") }));
    if (shows) drawn.push(line(label, y(limit), width - right, y(limit), "limit"));
    phases.forEach(({ name, begin }, i) => {
      const from = x(begin), to = i + 1 < phases.length ? x(phases[i + 1].begin) : width - right;
      drawn.push(line(from, roof - 6, from, height - 24, "axis"));
      const said = [name.replace(".", " "), name.split(".").at(-1)].map(words)
        .find((title) => title.length * 6.4 < to - from);
      if (said) drawn.push(text(from + 3, roof - 12, said, { class: "soft" }));
    });
    drawn.push(text(label, height - 6, unitName + "; from allocation to allocation", { class: "soft" }));
    cursor.setAttribute("visibility", "hidden");
    return picture(width, height, "memory over two iterations", ...drawn, cursor);
  });
  explorable(stage, (share) => {
    cursor.setAttribute("visibility", share < 0 ? "hidden" : "visible");
    if (share < 0) return "";
    const i = Math.round(share * (points.length - 1));
    const at = label + (i / Math.max(1, points.length - 1)) * plot;
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    const phase = phases.findLast(({ begin }) => begin <= i);
    const live = used.filter((c) => points[i][c] > 0)
      .map((c) => `${words(categories[c])}  ${gib(points[i][c])}`);
    return [phase?.name ?? "", `allocated ${gib(totals[i])}, ` +
            `reserved ${gib(points[i][reserved])}`, ...live].join("\n");
  }, label, right);
  addLegend(figure, used.map((c) => [categories[c], words(categories[c])]),
            shows ? `the GPU has ${gib(limit)}` : null);
};

// ---- the peak: a treemap of the tree that the page has as HTML

/// The nodes of the tree: modules with their modules, and the tensors of leaves.
function nodesOf(parent) {
  const nodes = [];
  for (const node of parent.children) {
    if (node.matches("details.module")) {
      nodes.push({ name: node.querySelector("summary b").textContent, node,
                   bytes: Number(node.dataset.bytes), category: node.dataset.category,
                   inner: nodesOf(node) });
    } else if (node.matches(".scroll") && parent.matches("details")) {
      for (const row of node.querySelectorAll("tbody tr")) {
        nodes.push({ name: row.cells[0].textContent, node: parent, bytes: Number(row.dataset.bytes),
                     category: row.cells[2].textContent, inner: [] });
      }
    }
  }
  return nodes.sort((a, b) => b.bytes - a.bytes);
}

/// Squarified treemap (Bruls, Huizing, van Wijk 2000): calls place(node, x, y, width, height).
function squarify(nodes, x, y, width, height, place) {
  let rest = nodes.filter((node) => node.bytes > 0);
  let left = rest.reduce((sum, node) => sum + node.bytes, 0);
  while (rest.length && width > 0 && height > 0) {
    const side = Math.min(width, height), scale = (width * height) / left;
    const worst = (sum, some) => Math.max(...some.map(({ bytes }) => {
      const thick = (sum * scale) / side, long = (bytes * scale) / thick;
      return Math.max(thick / long, long / thick);
    }));
    let taken = 1, sum = rest[0].bytes;
    while (taken < rest.length &&
           worst(sum + rest[taken].bytes, rest.slice(0, taken + 1)) <= worst(sum, rest.slice(0, taken))) {
      sum += rest[taken++].bytes;
    }
    const thick = (sum * scale) / side;
    let along = 0;
    for (const node of rest.slice(0, taken)) {
      const long = (node.bytes * scale) / thick;
      if (width >= height) place(node, x, y + along, thick, long);
      else place(node, x + along, y, long, thick);
      along += long;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    left -= sum;
    rest = rest.slice(taken);
  }
}

function openInTree(node) {
  for (let at = node; at?.matches("details"); at = at.parentElement) at.open = true;
  node.scrollIntoView({ block: "center" });
  node.classList.add("flash");
  setTimeout(() => node.classList.remove("flash"), 1600);
  node.querySelector("summary").focus({ preventScroll: true });
}

pictures.treemap = (figure) => {
  const tree = figure.parentElement.querySelector(".tree");
  if (!tree) return false;
  const nodes = nodesOf(tree);
  const all = nodes.reduce((sum, node) => sum + node.bytes, 0);
  responsive(figure, (width) => {
    const height = width < 500 ? 360 : 420, drawn = [];
    const shown = (name, wide) => {
      const fits = Math.floor((wide - 8) / 6.6);
      return name.length <= fits ? name : fits > 5 ? name.slice(0, fits - 1) + "\u2026" : "";
    };
    const draw = (list, path, x, y, wide, high) => squarify(list, x, y, wide, high,
      (node, cx, cy, w, h) => {
        const name = path ? `${path}.${node.name}` : node.name;
        if (node.inner.length && w > 40 && h > 34) {
          drawn.push(svg("rect", { x: cx, y: cy, width: w, height: h, class: "room" }));
          const title = shown(`${node.name}  ${gib(node.bytes)}`, w);
          if (title) drawn.push(text(cx + 5, cy + 13, title));
          draw(node.inner, name, cx + 2, cy + 18, w - 4, h - 20);
          return;
        }
        const cell = svg("g", { class: "c-" + node.category },
          svg("rect", { x: cx, y: cy, width: w, height: h, class: "cell" }));
        withTip(cell, `${name}\n${gib(node.bytes)}, ${(100 * node.bytes / all).toFixed(1)} % of the ` +
                      `peak\nmostly ${words(node.category)}`);
        cell.addEventListener("click", () => openInTree(node.node));
        const title = h > 16 ? shown(node.name, w) : "", size = shown(gib(node.bytes), w);
        if (title) cell.append(text(cx + 4, cy + 13, title, { class: "inside" }));
        if (title && size && h > 34) cell.append(text(cx + 4, cy + 28, size, { class: "inside" }));
        drawn.push(cell);
      });
    draw(nodes, "", 0, 0, width, height);
    return picture(width, height, "treemap of the peak; the tree below has the same", ...drawn);
  });
  const used = kCategories.filter((name) => tree.querySelector(`.c-${name}`));
  addLegend(figure, used.map((name) => [name, words(name)]));
  addTreeTools(tree);
};

const kTreeOrders = {
  "by size": (a, b) => b.dataset.bytes - a.dataset.bytes,
  "by name": (a, b) => nameOf(a).localeCompare(nameOf(b), "en", { numeric: true }),
  "by count": (a, b) => b.dataset.count - a.dataset.count,
};
const nameOf = (module) => module.querySelector("summary b").textContent;

function sortTree(parent, order) {
  const modules = [...parent.children].filter((child) => child.matches("details.module"));
  modules.sort(kTreeOrders[order]);
  const tensors = [...parent.children].find((child) => child.matches(".scroll"));
  for (const module of modules) {
    tensors ? tensors.before(module) : parent.append(module);
    sortTree(module, order);
  }
}

/// Hides what lacks the text, in names and tensors; true if something in it has it.
function filterTree(parent, wanted) {
  let any = false;
  for (const module of [...parent.children].filter((child) => child.matches("details.module"))) {
    const isNamed = nameOf(module).toLowerCase().includes(wanted);
    let inside = filterTree(module, isNamed ? "" : wanted);
    for (const row of module.querySelectorAll(":scope > .scroll tbody tr")) {
      row.hidden = !isNamed && !row.textContent.toLowerCase().includes(wanted);
      inside ||= !row.hidden;
    }
    module.hidden = !isNamed && !inside;
    if (wanted && !module.hidden) module.open = true;
    any ||= !module.hidden;
  }
  return any;
}

function addTreeTools(tree) {
  const field = element("input", { type: "search", "aria-label": "Filter modules and tensors",
                                   placeholder: "Filter: module, shape, type, operator" });
  field.addEventListener("input", () => filterTree(tree, field.value.toLowerCase().trim()));
  const orders = element("select", { "aria-label": "Order" });
  for (const order of Object.keys(kTreeOrders)) orders.append(element("option", {}, order));
  orders.addEventListener("change", () => sortTree(tree, orders.value));
  const toggle = (words, open) => {
    const button = element("button", { type: "button" }, words);
    button.addEventListener("click", () => {
      for (const module of tree.querySelectorAll("details.module")) module.open = open;
    });
    return button;
  };
  tree.before(element("div", { class: "tools" }, field, orders, toggle("Open all", true),
                      toggle("Close all", false)));
}
