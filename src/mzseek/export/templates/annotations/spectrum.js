// A spectrum with what a candidate explains of it.
const between = (low, high, most) => {
  const least = (high - low) / Math.max(most, 1), scale = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((unit) => unit * scale).find((unit) => unit >= least);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) found.push(Number((n * step).toPrecision(10)));
  return found;
};
function axisFor(mzs, precursor, width, left, right) {
  let low = Math.min(...mzs, precursor), high = Math.max(...mzs, precursor);
  const margin = Math.max((high - low) * 0.05, 3);
  low = Math.max(0, low - margin); high += margin;
  return { low, high, x: (mz) => left + ((mz - low) / (high - low)) * (width - left - right), ticks: between(low, high, Math.max(3, width / 90)) };
}

function drawSpectrum(data, candidate, width) {
  const height = width < 480 ? 230 : 270, top = 36, bottom = 28, left = 34, right = 10, base = height - bottom;
  const mz = data.peaks[0].map((v) => v / 1e4), share = data.peaks[1].map((v) => v / 1000);
  const axis = axisFor(mz, data.precursor, width, left, right), y = (v) => base - v * (base - top);
  const pieces = new Map(candidate ? candidate.pieces.map((row) => [row[0], row]) : []), removed = new Map(data.removed);
  const svg = s("svg", { class: "spectrum", viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "application", "aria-label": "Spectrum. Left and right arrows go from peak to peak." });
  for (const v of [0.5, 1]) svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }));
  for (const v of [0, 0.5, 1]) svg.append(s("text", { class: "tick", x: left - 6, y: y(v) + 3.5, "text-anchor": "end" }, String(100 * v)));
  for (const v of axis.ticks) svg.append(s("text", { class: "tick", x: axis.x(v).toFixed(1), y: base + 20, "text-anchor": "middle" }, String(v)));
  svg.append(s("text", { class: "tick", x: 2, y: base + 20 }, "m/z"), s("text", { class: "tick", x: 2, y: 12 }, "% of the highest peak"));
  const px = axis.x(data.precursor);
  svg.append(s("path", { class: "precursor", d: `M${px.toFixed(1)} ${base + 1}l-4.5 7h9z` }, s("title", {}, `precursor ${data.precursor.toFixed(4)}`)));
  const order = mz.map((_, i) => i).sort((a, b) => pieces.has(a) - pieces.has(b) || share[a] - share[b]);
  const nodes = [];
  for (const i of order) {
    const x = axis.x(mz[i]).toFixed(1);
    nodes[i] = s("line", { class: "peak" + (pieces.has(i) ? " explained" : removed.has(i) ? " removed" : ""), x1: x, x2: x, y1: base, y2: Math.min(y(share[i]), base - 1.5).toFixed(1) });
    svg.append(nodes[i]);
  }
  svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: base, y2: base }));
  const labels = mz.map((m, i) => removed.has(i) ? null : ({ i, x: axis.x(m), y: y(share[i]), share: share[i], own: pieces.has(i), text: pieces.has(i) ? lowered(pieces.get(i)[1]) + charged(pieces.get(i)[2]) : m.toFixed(4) })).filter(Boolean);
  svg.append(placed(labels, width, left, base));
  return { svg, nodes, mz, share, pieces, removed, x: axis.x };
}

// Width of a label in pixels: figures above and below the line are narrow.
const wide = (text) => [...text].reduce((sum, c) => sum + (/[₀-₉⁺⁻²³]/.test(c) ? 4.8 : /[.[\]]/.test(c) ? 4 : 7.4), 0);
// Texts above the strongest peaks that meet neither each other nor a peak.
function placed(labels, width, left, base) {
  const layer = s("g", { class: "labels" }), taken = [];
  let number = 0;
  const most = Math.max(5, Math.floor(width / 65));
  const order = labels.filter((l) => l.share >= 0.015).sort((a, b) => b.share * (b.own ? 2 : 1) - a.share * (a.own ? 2 : 1));
  const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  for (const label of order) {
    if (number >= most) break;
    const half = wide(label.text) / 2;
    for (const [side, lift] of [[0, 0], [half + 4, -10], [-half - 4, -10], [0, 13], [half * 0.7, 13], [-half * 0.7, 13], [0, 26], [0, 39]]) {
      const x = Math.min(Math.max(label.x + side, left + half), width - 2 - half), low = label.y - 4 - lift;
      const box = [x - half - 2, low - 11, x + half + 2, low + 2];
      if (box[1] < 13 || box[3] > base) continue;
      const leader = [label.x - 1, low + 2, label.x + 1, label.y];
      if (taken.some((other) => meets(box, other) || (lift > 0 && meets(leader, other)))) continue;
      if (labels.some((o) => o.share > 0.02 && o.x > box[0] && o.x < box[2] && o.y < box[3] - (o.i === label.i ? 4 : 0))) continue;
      taken.push(box);
      number++;
      if (lift > 0) taken.push(leader);
      if (lift > 0) layer.append(s("line", { class: "leader", x1: label.x.toFixed(1), x2: label.x.toFixed(1), y1: (label.y - 1).toFixed(1), y2: (low + 2).toFixed(1) }));
      layer.append(s("text", { class: label.own ? "own" : "none", x: x.toFixed(1), y: low.toFixed(1), "text-anchor": "middle", "data-peak": label.i }, label.text));
      break;
    }
  }
  return layer;
}

// Joins a spectrum and a structure: a peak lights up its piece, an atom its peaks.
function join(drawn, figure, readout, data) {
  const { svg, nodes, mz, share, pieces, removed, x } = drawn;
  let pinned = null, focus = null;
  const say = (parts) => { readout.replaceChildren(...parts); };
  const rest = () => say([h("span", { class: "hint" }, pieces.size ? "Point at a peak, or tap it, to see its fragment; at an atom to see its peaks." : figure ? "No peak is explained by fragments of this molecule." : "Point at a peak, or tap it, to read its m/z.")]);
  const mark = (on) => nodes.forEach((node, i) => { node.classList.toggle("on", on.has(i)); });
  function show(i) {
    const row = i === null ? null : pieces.get(i);
    mark(new Set(i === null ? [] : [i]));
    svg.classList.toggle("busy", i !== null);
    if (figure) light(figure, row ? row[4] : null);
    if (i === null) return rest();
    const facts = [h("b", {}, `m/z ${mz[i].toFixed(4)}`), `${(100 * share[i]).toFixed(share[i] < 0.1 ? 1 : 0)} %`];
    if (row) {
      facts.push(h("b", { class: "own" }, lowered(row[1]) + charged(row[2])), `${signed(row[3] / 10, 1)} ppm`);
      facts.push(row[5] === 0 ? "the whole molecule" : `${many(row[5], "bond")} broken`);
      if (row[6]) facts.push(`${signed(row[6], 0)} H`);
      if (row[7] > 1) facts.push(`${row[7]} such pieces, one is shown`);
    } else if (removed.has(i)) facts.push(`removed before scoring: ${removed.get(i)}`);
    else if (figure) facts.push("not explained by a fragment");
    say(facts.map((each) => h("span", {}, each)));
  }
  function atom(i) {
    const on = new Set([...pieces.values()].filter((row) => row[5] > 0 && inMask(row[4], i)).map((row) => row[0]));
    mark(on);
    svg.classList.add("busy");
    light(figure, (1n << BigInt(i)).toString(16));
    say([h("span", {}, h("b", {}, `atom ${i + 1}`)), h("span", {}, on.size ? `in the fragments of ${many(on.size, "peak")}` : "in no fragment that explains a peak")]);
  }
  const nearest = (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let best = null, least = 14;
    mz.forEach((m, i) => {
      const far = Math.abs(x(m) - at) + (pieces.has(i) ? 0 : 1.5) + 2 * (1 - share[i]);
      if (far < least) { least = far; best = i; }
    });
    return best;
  };
  svg.addEventListener("pointermove", (event) => { if (pinned === null && event.pointerType !== "touch") show(nearest(event)); });
  svg.addEventListener("pointerleave", () => { if (pinned === null) show(null); });
  svg.addEventListener("click", (event) => { const i = nearest(event); pinned = i === pinned ? null : i; focus = i; show(pinned); });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") { pinned = focus = null; return show(null); }
    if (!step) return;
    event.preventDefault();
    const stops = pieces.size ? [...pieces.keys()].sort((a, b) => a - b) : mz.map((_, i) => i), at = stops.indexOf(focus);
    focus = stops[at < 0 ? (step > 0 ? 0 : stops.length - 1) : (at + step + stops.length) % stops.length];
    pinned = null;
    show(focus);
  });
  svg.addEventListener("blur", () => { if (pinned === null) show(null); });
  if (figure) {
    const number = data.xy.length / 2;
    let held = null;
    figure.setAttribute("tabindex", 0);
    figure.setAttribute("role", "application");
    figure.addEventListener("pointerover", (event) => { const i = event.target.dataset.atom; if (i !== undefined && pinned === null) atom(+i); });
    figure.addEventListener("pointerleave", () => { show(pinned); });
    figure.addEventListener("click", (event) => { const i = event.target.dataset.atom; if (i !== undefined) { pinned = null; atom(+i); } });
    figure.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      held = held === null ? (step > 0 ? 0 : number - 1) : (held + step + number) % number;
      atom(held);
    });
    figure.addEventListener("blur", () => { held = null; show(pinned); });
  }
  show(null);
}
