// What each objective costs in the others, for one list of candidates, and what the theorems allow.
import { get, post } from "./api.js";
import { FieldError, fillIn, onSubmit, showError, textOf } from "./forms.js";
import { h, naming, percent, s } from "./renderer.js";
import { drawInto } from "./structures.js";

const form = document.getElementById("form"), LABELS = JSON.parse(document.getElementById("common").textContent).labels;
// Emodin, and flavones of its formula: the first is the most probable, the others are alike.
const EXAMPLE = ["Cc1cc(O)c2c(c1)C(=O)c1cc(O)cc(O)c1C2=O 0.34", "O=c1cc(-c2ccc(O)cc2)oc2cc(O)cc(O)c12 0.30", "O=c1c(O)c(-c2ccccc2)oc2cc(O)cc(O)c12 0.18", "O=c1cc(-c2ccccc2)oc2cc(O)c(O)c(O)c12 0.10", "O=c1cc(-c2ccccc2)oc2c(O)c(O)cc(O)c12 0.08"];
document.getElementById("example").addEventListener("click", () => {
  fillIn(form, { list: EXAMPLE });
  form.querySelector("[type=submit]").focus();
});

function listed() {
  const candidates = [];
  textOf(form, "list").split(/\r?\n/).forEach((line, i) => {
    const words = line.trim().split(/[\s;,]+/).filter(Boolean);
    if (!words.length) return;
    const probability = Number(words.at(-1));
    if (words.length < 2 || !(probability >= 0)) throw new FieldError("list", `Line ${i + 1}, “${line.trim().slice(0, 40)}”: expected a SMILES and a probability`);
    candidates.push({ smiles: words[0], probability });
  });
  const sum = candidates.reduce((total, each) => total + each.probability, 0);
  if (!(sum > 0)) throw new FieldError("list", "No candidates: paste a SMILES and a probability per line, or try the example");
  return candidates.map((each) => ({ ...each, probability: each.probability / sum }));
}

let ofJob = null; // the feature of a job that the address names, as the API takes it
const known = new Map(); // names and probabilities of its candidates
async function compute() {
  const request = { similarity: form.elements.similarity.value, fingerprint: form.elements.fingerprint.value };
  if (ofJob) Object.assign(request, ofJob);
  else {
    const candidates = listed();
    known.clear();
    candidates.forEach(({ smiles, probability }) => known.set(smiles, { name: "", probability: probability + (known.get(smiles)?.probability || 0) }));
    Object.assign(request, { smiles: candidates.map((each) => each.smiles), probabilities: candidates.map((each) => each.probability) });
  }
  let answer;
  try { answer = await post("trade-off", request); } catch (error) { if (!ofJob && /smiles|probabilities/.test(error.field)) error.field = "list"; throw error; }
  document.getElementById("result").hidden = false;
  document.getElementById("shown").replaceChildren(...picture(answer, request.similarity));
}
onSubmit(form, async () => { await compute(); document.getElementById("h-result").focus(); });
form.elements.similarity.addEventListener("change", () => { if (!document.getElementById("result").hidden) form.requestSubmit(); });

const points = (value) => (value < 5e-4 ? "0" : (100 * value).toFixed(1));
function picture(answer, similarity) {
  const { expected, decisions, bounds: bound } = answer, label = LABELS[similarity];
  const goals = Object.keys(expected), parts = [];
  // What is decided for.
  const chosen = new Map();
  for (const [goal, { name }] of Object.entries(decisions)) chosen.set(name, [...(chosen.get(name) || []), LABELS[goal] || goal]);
  const cards = [...chosen].map(([smiles, objectives]) => {
    const { name = "", probability } = known.get(smiles) || {};
    return h("div", { class: "choice-card" }, h("b", {}, objectives.join(", ")), drawInto(h("span", { class: "picture" }), smiles, { width: 180, height: 110, most: 18, title: name }), h("span", { class: "called-cell" }, naming(name, smiles, 60)), probability === undefined ? "" : h("small", {}, `probability ${percent(probability)}`));
  });
  parts.push(h("h3", {}, "Decisions"), h("p", { class: "small" }, chosen.size === 1 ? "All objectives decide for the same candidate: nothing is lost by any of them." : `${chosen.size} different candidates, by objective.`), h("div", { class: "choices" }, cards));
  // What each costs in the others.
  parts.push(h("h3", {}, "What each objective costs in the others"), h("p", { class: "small" }, "Expected value in percent, and what is lost, in points, against the best decision for the measure of the column."), h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Costs" }, h("table", { class: "plain matrix" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "decided for"), goals.map((judged) => h("th", { scope: "col", class: "num" }, LABELS[judged] || judged)))),
    h("tbody", {}, goals.map((goal) => h("tr", {}, h("th", { scope: "row" }, LABELS[goal] || goal), goals.map((judged) => { const lost = Math.max(0, expected[judged][judged] - expected[judged][goal]); return h("td", { class: "num" + (lost < 5e-4 ? " is-best" : "") }, (100 * expected[judged][goal]).toFixed(1), h("small", {}, lost < 5e-4 ? "best" : `−${points(lost)}`)); })))))));
  if (!answer.band) return [...parts, h("p", {}, "A single distinct candidate has no similarity band: all objectives agree.")];
  // The band and the bounds.
  const lossHit = Math.max(0, expected[similarity][similarity] - expected[similarity].hit), lossSimilarity = Math.max(0, expected.hit.hit - expected.hit[similarity]);
  parts.push(h("h3", {}, "Similarity band"), band(bound), h("p", { class: "small" }, `Any two distinct candidates have a ${label} similarity between ${bound.low.toFixed(2)} and ${bound.high.toFixed(2)}. The narrower the band, the less the objectives can differ.`),
    h("h3", {}, "The bounds"), gauge(`Decided for HR@1, measured in ${label}`, lossHit, bound.hit_under_similarity), gauge(`Decided for ${label}, measured in HR@1`, lossSimilarity, bound.similarity_under_hit),
    h("p", { class: "sentence" }, bound.agreement ? `The most probable candidate has ${percent(bound.p_star)}, ${points(bound.margin)} points more than the next: with this band it is certain to be among the best in ${label}, too.` : `The most probable candidate has ${percent(bound.p_star)}, ${points(bound.margin)} points more than the next: with this band it is not certain to be among the best in ${label}.`),
    h("p", { class: "small" }, "Expected losses under the probabilities of this list, when one of the candidates is decided for. Over all conceivable fingerprints these bounds do not hold."));
  return parts;
}

function band({ low, high }) {
  const width = Math.min(640, document.getElementById("shown").clientWidth), x = (value) => 20 + value * (width - 40);
  const svg = s("svg", { class: "band", viewBox: `0 0 ${width} 46`, width, height: 46, role: "img", "aria-label": `Similarity band from ${low.toFixed(2)} to ${high.toFixed(2)}` });
  svg.append(s("rect", { class: "band-all", x: x(0), width: x(1) - x(0), y: 8, height: 12, rx: 3 }), s("rect", { class: "band-own", x: x(low), width: Math.max(x(high) - x(low), 2), y: 8, height: 12, rx: 3 }));
  for (const value of [0, 0.25, 0.5, 0.75, 1]) svg.append(s("text", { class: "tick", x: x(value), y: 38, "text-anchor": "middle" }, String(value)));
  return svg;
}

function gauge(name, lost, bound) {
  const most = Math.max(bound, lost, 0.01), meter = h("span", { class: "gauge", "aria-hidden": "true" }, h("span", { class: "gauge-bound" }), h("span", { class: "gauge-own" }));
  meter.children[0].style.width = `${100 * Math.min(1, bound / Math.max(most, 0.25))}%`;
  meter.children[1].style.width = `${100 * Math.min(1, lost / Math.max(most, 0.25))}%`;
  return h("div", { class: "gauge-line" }, h("span", {}, name), meter, h("span", { class: "num" }, `loses ${points(lost)}, at most ${points(bound)} points`));
}

// The list of a feature of a job, named in the address.
async function fromJob(job, feature) {
  const from = document.getElementById("from"), data = await get(`jobs/${encodeURIComponent(job)}/features/${feature}`);
  const rows = [...data.candidates.map(({ rank, name, smiles, p }) => [rank, name, smiles, p]), ...data.others];
  rows.forEach(([, name, smiles, p]) => known.set(smiles, { name, probability: p / (data.present || 1) }));
  ofJob = { job, feature };
  form.elements.list.closest(".field").hidden = document.getElementById("example").hidden = true;
  from.append("Candidates of ", h("a", { href: `/jobs/${encodeURIComponent(job)}#f${feature}` }, `feature ${data.name}`), ", with the probability of each if the molecule is among them. ", h("a", { href: "/trade-off" }, "Use a list of your own"), ".");
  from.hidden = false;
  form.requestSubmit();
}
const asked = new URLSearchParams(location.search);
if (asked.has("job")) fromJob(asked.get("job"), Number(asked.get("feature"))).catch((error) => showError(form, error));
