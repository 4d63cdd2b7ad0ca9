// Search of molecules and of reference spectra.
import { get, pageData, post } from "./api.js";
import { FieldError, fillIn, followChoices, numberOf, onSubmit, textOf } from "./forms.js";
import { spectrumOf } from "./peaks.js";
import { drawMirror, drawSpectrum, fixed, h, lowered, many, naming, saveButtons } from "./renderer.js";
import { drawInto } from "./structures.js";

const molecules = document.getElementById("molecules"), spectra = document.getElementById("spectra");
const LIMIT = 50, SPECTRA = 20; // molecules and spectra that are shown
const FIELDS = {
  name: ["Name", "Part of a name.", "caffeine"],
  formula: ["Formula", "Of the neutral molecule.", "C8H10N4O2"],
  mass: ["Mass", "Monoisotopic, of the neutral molecule.", "194.0804"],
  smiles: ["SMILES", "The structure itself; stereochemistry is ignored. The first search takes about 15 seconds: fingerprints of all molecules are computed, and kept.", "Cn1c(=O)c2c(ncn2C)n(C)c1=O"],
};
followChoices(molecules);
molecules.addEventListener("change", (event) => {
  if (event.target.name !== "by") return;
  const [label, hint, example] = FIELDS[event.target.value], input = molecules.elements.query;
  molecules.querySelector("label[for=query]").textContent = label;
  document.getElementById("query-hint").textContent = hint;
  input.placeholder = example;
  input.value = "";
});

onSubmit(molecules, async () => {
  const by = molecules.elements.by.value, text = textOf(molecules, "query");
  if (!text) throw new FieldError("query", `The ${FIELDS[by][0].toLowerCase()} is missing`);
  const query = { [by]: by === "mass" ? numberOf(molecules, "query", { from: 1, to: 1e5, meaning: "a mass, such as 194.0804" }) : text, limit: LIMIT };
  if (by === "mass") query.ppm = numberOf(molecules, "ppm", { from: 0, to: 1000, meaning: "a tolerance from 0 to 1000 ppm" }) ?? 10;
  const [, kind, name] = molecules.elements.place.value.match(/^(\w+)\/(.*)$/s);
  if (name) query[kind] = name;
  let answer;
  try { answer = await get(`${kind}/search`, query); } catch (error) { if (error.field === by) error.field = "query"; throw error; }
  (kind === "library" ? showReferences : showMolecules)(answer, by);
});

function showMolecules(answer, by) {
  const found = answer.molecules, similar = by === "smiles";
  const heads = ["structure", "name", "formula", "mass", "known as", ...(similar ? ["similarity"] : [])];
  const cells = (molecule) => [
    h("td", {}, drawInto(h("span", { class: "picture" }), molecule.smiles, { st: molecule.structure, title: molecule.names[0] })),
    h("td", { class: "called-cell" }, naming(molecule.names[0], molecule.smiles, 80), molecule.names[0] ? h("small", { class: "smiles" }, molecule.smiles) : ""),
    h("td", {}, lowered(molecule.formula)), h("td", { class: "num" }, fixed(molecule.mass, 4)),
    h("td", {}, [...molecule.names.slice(1, 3), ...molecule.identifiers.slice(0, 3)].join(", ") || molecule.key),
    similar ? h("td", { class: "num" }, fixed(molecule.similarity, 2)) : "",
  ];
  show(answer.total > found.length ? `The first ${found.length} of ${many(answer.total, "molecule")}` : many(found.length, "molecule"), found.length
    ? tableOf(heads.map((name) => [name, name === "mass" || name === "similarity"]), found.map((molecule) => h("tr", {}, cells(molecule))))
    : h("p", {}, "Nothing was found. ", by === "name" ? "Names are those of the database; try a formula or a structure." : "No such molecule is in this database."));
}

// Reference spectra of the molecules that were looked for; the chosen one is drawn.
function showReferences(answer, by) {
  const found = answer.references, similar = by === "smiles", place = h("div", { class: "mirror-place" });
  const choose = chooser(place, (reference, width) => {
    const { svg } = drawSpectrum({ peaks: reference.peaks, precursor: reference.precursor_mz }, null, width);
    return [svg, h("p", { class: "small" }, `${naming(reference.name, reference.smiles, 60).textContent}, ${reference.identifier}`), saveButtons([svg], `spectrum-${reference.identifier}`)];
  });
  const cells = (reference) => [...recordCells(reference, choose), similar ? h("td", { class: "num" }, fixed(reference.similarity, 2)) : "", ...originCells(reference)];
  show(answer.total > found.length ? `The first ${found.length} of ${many(answer.total, "reference spectrum", "reference spectra")}` : many(found.length, "reference spectrum", "reference spectra"), found.length
    ? [place, tableOf([["structure"], ["molecule"], ...(similar ? [["similarity", true]] : []), ["ion"], ["contributor"]], found.map((reference) => h("tr", {}, cells(reference))))]
    : h("p", {}, "This library has no spectrum of such a molecule."));
  chooseFirst(found, choose);
}
const tableOf = (heads, rows) => h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Results" }, h("table", { class: "plain found" }, h("thead", {}, h("tr", {}, heads.map(([name, isNumber]) => h("th", { scope: "col", class: isNumber ? "num" : "" }, name)))), h("tbody", {}, rows)));

document.getElementById("example").addEventListener("click", () => {
  fillIn(spectra, pageData.example);
  spectra.querySelector("[type=submit]").focus();
});
onSubmit(spectra, async () => {
  const answer = await post("library/search", { ...spectrumOf(spectra), kind: spectra.elements.kind.value, library: spectra.elements.library?.value || undefined, limit: SPECTRA });
  const place = h("div", { class: "mirror-place" });
  const choose = chooser(place, (match, width) => {
    const drawn = drawMirror(answer.query, { peaks: match.peaks, mz: match.precursor_mz, record: match.identifier }, width, "your spectrum");
    return [drawn.svg, h("p", { class: "small" }, h("i", { class: "dot k-same" }), `${many(drawn.same, "peak")} in both`, drawn.moved ? [" ", h("i", { class: "dot k-moved" }), `${drawn.moved} shifted by the difference of the precursors`] : ""), saveButtons([drawn.svg], `mirror-${match.identifier}`)];
  });
  const cells = (match) => [...recordCells(match, choose), h("td", { class: "num" }, fixed(match.score, 2)), h("td", { class: "num" }, match.matched_peaks), ...originCells(match)];
  const found = answer.matches;
  show(found.length < SPECTRA ? many(found.length, "reference spectrum", "reference spectra") : `The ${SPECTRA} most similar reference spectra`, found.length
    ? [place, tableOf([["structure"], ["molecule"], ["similarity", true], ["peaks", true], ["ion"], ["contributor"]], found.map((match) => h("tr", {}, cells(match))))]
    : h("p", {}, "No reference spectrum is similar. Try analogs: similar molecules of another mass."));
  chooseFirst(found, choose);
});

// What is known of a reference spectrum; its name is a button that draws it.
const recordCells = (record, choose) => [
  h("td", {}, drawInto(h("span", { class: "picture" }), record.smiles, { st: record.structure, title: record.name })),
  h("td", { class: "called-cell" }, h("button", { type: "button", class: "link", "aria-pressed": "false", onclick: (event) => choose(record, event.currentTarget) }, naming(record.name, record.smiles, 60)), h("small", {}, record.identifier)),
];
const originCells = (record) => [h("td", {}, record.adduct || "–", h("small", {}, `m/z ${fixed(record.precursor_mz, 4)}`)), h("td", {}, record.contributor || "–", h("small", {}, record.license))];
const chooser = (place, draw) => (record, button) => {
  document.querySelectorAll("#list button[aria-pressed]").forEach((each) => each.setAttribute("aria-pressed", each === button));
  place.replaceChildren(...draw(record, Math.min(place.clientWidth || 600, 800)));
};
function chooseFirst(found, choose) {
  const first = document.querySelector("#list button[aria-pressed]");
  if (first) choose(found[0], first);
}

function show(title, content) {
  document.getElementById("found").hidden = false;
  document.getElementById("h-found").textContent = title;
  document.getElementById("list").replaceChildren(...[content].flat());
  document.getElementById("h-found").focus();
}
