// Formulas without a database: the most probable ones, and what parts of the first explain.
const FORMULAS = 5;

function asFormulas(data) {
  if (!data.formulas || !data.formulas.length) return "";
  const shown = data.formulas.slice(0, FORMULAS);
  const list = h("ol", { class: "bars" }, shown.map(([formula, ion, p, inList], i) => h("li", {}, h("span", { class: "rank" }, String(i + 1)), h("span", { class: "label" }, lowered(formula), ` ${ion}`, inList === null ? "" : h("small", {}, ` (listed ${percent(inList)})`)), h("span", { class: "num" }, percent(p)), bar(p, "set"))));
  const first = shown[0], facts = [`${signed(first[4], 1)} ppm`, `explains ${percent(first[5])} of the intensity`, first[6] === null ? "no isotope pattern in the file" : "isotope pattern compared"];
  const rows = data.formulaPeaks.map(([mz, formula, error]) => h("tr", {}, h("td", { class: "num" }, mz.toFixed(4)), h("td", {}, lowered(formula)), h("td", { class: "num" }, signed(error, 1))));
  const table = rows.length ? h("details", { class: "peaks" }, h("summary", {}, `Peaks as parts of ${lowered(first[0])}`), h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["m/z", "formula", "error (ppm)"].map((name, i) => h("th", { scope: "col", class: i === 1 ? "" : "num" }, name)))), h("tbody", {}, rows)))) : "";
  return box("Formula without a database", list, h("p", { class: "small" }, `The first: ${facts.join(", ")}. Ranked by fragments, mass, isotopes and how common the formula is, without a candidate list. Listed: its probability by the candidates.`), table);
}
