// Two spectra back to back: the feature's upwards, a reference spectrum downwards.
const WITHIN = 20e-6, AT_LEAST = 0.005;
function partners(mz, other, shift) {
  const used = new Set(), pairs = new Map();
  mz.forEach((m, i) => {
    let best = null, least = Math.max(m * WITHIN, AT_LEAST);
    other.forEach((o, j) => {
      const far = Math.abs(m - shift - o);
      if (far <= least && !used.has(j)) { least = far; best = j; }
    });
    if (best !== null) { used.add(best); pairs.set(i, best); }
  });
  return pairs;
}

function drawMirror(data, ref, width, above = "this feature") {
  const height = width < 480 ? 250 : 280, left = 34, right = 10, middle = height / 2 - 6, reach = middle - 26;
  const up = data.peaks[0].map((v) => v / 1e4), down = ref.peaks[0].map((v) => v / 1e4);
  const axis = axisFor([...up, ...down, ref.mz ?? data.precursor], data.precursor, width, left, right);
  const same = partners(up, down, 0), shift = data.precursor - (ref.mz ?? data.precursor);
  const moved = Math.abs(shift) > 0.02 ? partners(up, down, shift) : new Map();
  const isSame = new Set(same.values()), isMoved = new Set([...moved].filter(([i]) => !same.has(i)).map(([, j]) => j));
  const svg = s("svg", { class: "spectrum mirror", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Mirror plot: ${above} above, ${ref.record} below` });
  const stick = (mz, v, sign, kind, text) => s("line", { class: "peak " + kind, x1: axis.x(mz).toFixed(1), x2: axis.x(mz).toFixed(1), y1: middle, y2: (middle - sign * Math.max(v * reach, 1.5)).toFixed(1) }, s("title", {}, text));
  const rows = [];
  up.forEach((m, i) => rows.push([m, data.peaks[1][i] / 1000, 1, same.has(i) ? "same" : moved.has(i) ? "moved" : ""]));
  down.forEach((m, j) => rows.push([m, ref.peaks[1][j] / 1000, -1, isSame.has(j) ? "same" : isMoved.has(j) ? "moved" : ""]));
  rows.sort((a, b) => (a[3] === "") < (b[3] === "") ? 1 : (a[3] === "") > (b[3] === "") ? -1 : a[1] - b[1]);
  for (const [m, v, sign, kind] of rows) svg.append(stick(m, v, sign, kind, `${m.toFixed(4)}, ${(100 * v).toFixed(1)} %`));
  svg.append(s("line", { class: "axis", x1: left, x2: width - right, y1: middle, y2: middle }));
  for (const v of axis.ticks) svg.append(s("text", { class: "tick", x: axis.x(v).toFixed(1), y: height - 4, "text-anchor": "middle" }, String(v)));
  svg.append(s("text", { class: "tick", x: 2, y: height - 4 }, "m/z"));
  svg.append(s("text", { class: "tick", x: 2, y: 12 }, above), s("text", { class: "tick", x: 2, y: height - 22 }, "reference"));
  return { svg, same: isSame.size, moved: isMoved.size };
}
