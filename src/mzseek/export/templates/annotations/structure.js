// Structures, drawn from coordinates in hundredths of a bond. Places of atoms are those of the SMILES.
const extent = (st) => {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < st.xy.length; i += 2) {
    box[0] = Math.min(box[0], st.xy[i]); box[1] = Math.min(box[1], st.xy[i + 1]);
    box[2] = Math.max(box[2], st.xy[i]); box[3] = Math.max(box[3], st.xy[i + 1]);
  }
  return box;
};
const MARGIN = 0.75; // bonds around a structure, for labels

// Pixels a bond has if all of these are to fit: structures beside each other have one scale.
function bondFor(structures, width, height, most) {
  let bond = most;
  for (const st of structures) {
    const [x0, y0, x1, y1] = extent(st);
    bond = Math.min(bond, width / ((x1 - x0) / 100 + 2 * MARGIN), height / ((y1 - y0) / 100 + 2 * MARGIN));
  }
  return bond;
}

function drawStructure(st, bond, { pieces = false, title = "" } = {}) {
  const [x0, y0, x1, y1] = extent(st), pad = MARGIN * bond, unit = bond / 100;
  const at = (i) => [(st.xy[2 * i] - x0) * unit + pad, (st.xy[2 * i + 1] - y0) * unit + pad];
  const width = (x1 - x0) * unit + 2 * pad, height = (y1 - y0) * unit + 2 * pad;
  const svg = s("svg", { class: "structure", viewBox: `0 0 ${width.toFixed(1)} ${height.toFixed(1)}`, width: width.toFixed(1), height: height.toFixed(1), role: "img", "aria-label": title || "structure" });
  svg.style.setProperty("--line", Math.max(bond * 0.065, 0.9).toFixed(2) + "px");
  const number = st.xy.length / 2, near = Array.from({ length: number }, () => []);
  for (const [a, b] of st.bo) { near[a].push(b); near[b].push(a); }
  if (pieces) svg.append(halos(st, at, bond));
  svg.append(...bonds(st, at, bond));
  for (const [place, label] of Object.entries(st.at)) svg.append(atomLabel(+place, label, at, near, bond));
  if (pieces) svg.append(targets(number, at, bond));
  return svg;
}

// Discs and bars behind atoms and bonds: lit when a peak is pointed at.
function halos(st, at, bond) {
  const layer = s("g", { class: "halos" });
  for (const [a, b] of st.bo) {
    const [x1, y1] = at(a), [x2, y2] = at(b);
    layer.append(s("line", { class: "halo", x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), "data-a": a, "data-b": b, "stroke-width": (bond * 0.62).toFixed(1) }));
  }
  for (let i = 0; i < st.xy.length / 2; i++) {
    const [x, y] = at(i);
    layer.append(s("circle", { class: "halo", cx: x.toFixed(1), cy: y.toFixed(1), r: (bond * 0.36).toFixed(1), "data-a": i }));
  }
  return layer;
}

function targets(number, at, bond) {
  const layer = s("g", { class: "targets" });
  for (let i = 0; i < number; i++) {
    const [x, y] = at(i);
    layer.append(s("circle", { class: "target", cx: x.toFixed(1), cy: y.toFixed(1), r: (bond * 0.5).toFixed(1), "data-atom": i }));
  }
  return layer;
}

function bonds(st, at, bond) {
  let lines = "", solid = "";
  const gap = bond * 0.17, f = (v) => v.toFixed(1);
  const line = (x1, y1, x2, y2) => { lines += `M${f(x1)} ${f(y1)}L${f(x2)} ${f(y2)}`; };
  for (const [a, b, kind, side] of st.bo) {
    let [x1, y1] = at(a), [x2, y2] = at(b);
    const long = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / long, uy = (y2 - y1) / long;
    const cutA = st.at[a] ? bond * 0.3 : 0, cutB = st.at[b] ? bond * 0.3 : 0;
    x1 += ux * cutA; y1 += uy * cutA; x2 -= ux * cutB; y2 -= uy * cutB;
    const nx = uy, ny = -ux; // to the left as y points down
    if (kind === 2 && !side) {
      for (const k of [-0.5, 0.5]) line(x1 + nx * gap * k, y1 + ny * gap * k, x2 + nx * gap * k, y2 + ny * gap * k);
    } else if (kind === 2) {
      const inA = cutA ? 0 : bond * 0.12, inB = cutB ? 0 : bond * 0.12;
      line(x1, y1, x2, y2);
      line(x1 + nx * gap * side + ux * inA, y1 + ny * gap * side + uy * inA, x2 + nx * gap * side - ux * inB, y2 + ny * gap * side - uy * inB);
    } else if (kind === 3) {
      for (const k of [-1, 0, 1]) line(x1 + nx * gap * 0.8 * k, y1 + ny * gap * 0.8 * k, x2 + nx * gap * 0.8 * k, y2 + ny * gap * 0.8 * k);
    } else if (kind === 4) {
      const w = bond * 0.11;
      solid += `M${f(x1)} ${f(y1)}L${f(x2 + nx * w)} ${f(y2 + ny * w)}L${f(x2 - nx * w)} ${f(y2 - ny * w)}Z`;
    } else if (kind === 5) {
      for (let k = 1; k <= 6; k++) {
        const t = k / 6, w = bond * 0.11 * t, x = x1 + (x2 - x1) * t, y = y1 + (y2 - y1) * t;
        line(x + nx * w, y + ny * w, x - nx * w, y - ny * w);
      }
    } else line(x1, y1, x2, y2);
  }
  return [s("path", { class: "bonds", d: lines }), solid ? s("path", { class: "wedges", d: solid }) : ""];
}

const COLOURED = { N: "N", O: "O", S: "S", P: "P", F: "X", Cl: "X", Br: "X", I: "X" };
function atomLabel(place, [symbol, hydrogens, charge, isotope], at, near, bond) {
  const [x, y] = at(place), size = Math.max(bond * 0.56, 4.8), group = s("g", { class: "atom el-" + (COLOURED[symbol] || "C"), "font-size": size.toFixed(1) });
  const text = (content, dx, dy, anchor) => group.append(s("text", { x: (x + dx).toFixed(1), y: (y + dy + size * 0.355).toFixed(1), "text-anchor": anchor }, content));
  const mass = isotope ? [...String(isotope)].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("") : "";
  const half = size * 0.36 * symbol.length;
  text(symbol, 0, 0, "middle");
  if (mass) text(mass, -half, 0, "end");
  const h = hydrogens ? "H" + (hydrogens > 1 ? LOWER[hydrogens] || hydrogens : "") : "";
  const turns = near[place].map((other) => at(other)[0] - x), left = turns.some((d) => d < -bond * 0.3), right = turns.some((d) => d > bond * 0.3);
  const sign = charged(charge);
  if (h && left && right) {
    const down = near[place].reduce((sum, other) => sum + at(other)[1] - y, 0) > 0;
    text(h, 0, down ? -size * 0.85 : size * 0.85, "middle");
    if (sign) text(sign, half, -size * 0.1, "start");
  } else if (h && right) {
    text(h, -half, 0, "end");
    if (sign) text(sign, half, -size * 0.1, "start");
  } else if (h || sign) text(h + sign, half, 0, "start");
  return group;
}

// Lights up the atoms whose bits are set in a hexadecimal number.
function inMask(mask, atom) {
  const digit = mask.length - 1 - (atom >> 2);
  return digit >= 0 && ((parseInt(mask[digit], 16) >> (atom & 3)) & 1) === 1;
}
function light(svg, mask) {
  for (const node of svg.querySelectorAll(".halo")) {
    const { a, b } = node.dataset;
    node.classList.toggle("on", mask !== null && inMask(mask, +a) && (b === undefined || inMask(mask, +b)));
  }
}
