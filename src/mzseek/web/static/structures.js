// Structures from SMILES: the server lays them out, the page draws them.
import { bondFor, drawStructure } from "./renderer.js";

const known = new Map();
// Coordinates of a molecule; null where the SMILES is none.
export function layout(smiles) {
  if (!known.has(smiles)) {
    known.set(smiles, fetch(`/structure?${new URLSearchParams({ smiles })}`).then((answer) => {
      if (answer.ok) return answer.json();
      if (answer.status >= 500 || answer.status === 401) known.delete(smiles);
      return null;
    }, () => { known.delete(smiles); return null; }));
  }
  return known.get(smiles);
}

// Draws a molecule into a place; without coordinates, when it comes near the screen.
export function drawInto(place, smiles, { st, width = 120, height = 76, most = 11, title = "" } = {}) {
  const draw = (known) => { if (known) place.replaceChildren(drawStructure(known, bondFor([known], width, height, most), { title: title || smiles })); };
  if (st !== undefined) draw(st);
  else {
    wanted.set(place, () => layout(smiles).then(draw));
    seen.observe(place);
  }
  return place;
}
const wanted = new WeakMap();
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) { seen.unobserve(target); wanted.get(target)(); }
}, { rootMargin: "300px" });
