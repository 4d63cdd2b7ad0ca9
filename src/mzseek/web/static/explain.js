// One spectrum and one structure: which peaks its fragments explain.
import { pageData, post } from "./api.js";
import { FieldError, fillIn, onSubmit, textOf } from "./forms.js";
import { spectrumOf } from "./peaks.js";
import { bondFor, drawSpectrum, drawStructure, h, join, many, peakTable, percent, saveButtons } from "./renderer.js";
import { layout } from "./structures.js";

const form = document.getElementById("form"), preview = document.getElementById("preview");
const WAIT = 250; // milliseconds after the last key before the structure is drawn

let timer = 0;
async function showPreview() {
  const smiles = textOf(form, "smiles"), st = smiles ? await layout(smiles) : null;
  if (smiles !== textOf(form, "smiles")) return;
  preview.setAttribute("aria-label", "Structure: " + (st ? smiles : smiles ? "cannot be drawn" : "none yet"));
  preview.replaceChildren(st ? drawStructure(st, bondFor([st], Math.min(preview.clientWidth - 24, 420), 190, 30), { title: smiles }) : h("span", { class: "small" }, smiles ? "This SMILES cannot be drawn." : "The structure is drawn here as you type."));
}
form.elements.smiles.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(showPreview, WAIT); });
document.getElementById("example").addEventListener("click", () => {
  fillIn(form, pageData.example);
  showPreview();
  form.querySelector("[type=submit]").focus();
});

onSubmit(form, async () => {
  const spectrum = spectrumOf(form), smiles = textOf(form, "smiles");
  if (!smiles) throw new FieldError("smiles", "The structure is missing");
  const answer = await post("explain", { ...spectrum, smiles });
  document.getElementById("result").hidden = false;
  shown = { answer, smiles };
  draw();
  document.getElementById("h-result").focus();
});

let shown = null;
function draw() {
  if (!shown) return;
  const { answer, smiles } = shown, root = document.getElementById("shown"), width = root.clientWidth, narrow = width < 640;
  const plotWidth = narrow ? width : Math.round(width * 0.62), data = answer.drawing, candidate = data.candidates[0], st = data.structures[0];
  const drawn = drawSpectrum(data, candidate, plotWidth), readout = h("p", { class: "readout", "aria-live": "polite" });
  const figure = st ? drawStructure(st, bondFor([st], narrow ? width : width - plotWidth - 24, 250, 34), { pieces: true, title: `Structure of ${smiles}. Arrow keys go from atom to atom.` }) : null;
  join(drawn, figure, readout, st);
  root.replaceChildren(
    h("p", { class: "sentence" }, h("b", {}, `${many(candidate.pieces.length, "peak")} of ${data.peaks[0].length}`), ` match fragments of this structure as ${answer.adduct}, with ${percent(answer.explained)} of the intensity.`),
    h("div", { class: "pair" + (narrow ? " narrow" : "") }, h("div", { class: "plot" }, drawn.svg), figure ? h("div", { class: "figure" }, figure) : ""),
    readout, saveButtons(figure ? [drawn.svg, figure] : [drawn.svg], "explained"), peakTable(data, candidate));
}
let last = innerWidth;
addEventListener("resize", () => { if (innerWidth !== last) { last = innerWidth; draw(); } });
