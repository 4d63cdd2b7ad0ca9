// The boxes below a spectrum: how sure, why, for which goal, as which ion.
const bar = (share, kind) => {
  const inner = h("span", { class: "part " + kind });
  inner.style.width = Math.min(100, Math.max(0, 100 * share)).toFixed(2) + "%";
  return h("span", { class: "bar", "aria-hidden": "true" }, inner);
};
const box = (title, ...content) => h("section", { class: "box" }, h("h3", {}, title), ...content);
const BARS = 8;

function howSure(data) {
  const rows = data.candidates.map((c) => [c.rank, naming(c.name, c.smiles, 48), c.p, c.in]).concat(data.others.map((o) => [o[0], naming(o[1], o[2], 48), o[3], o[4]]));
  rows.sort((a, b) => a[0] - b[0]);
  const shown = rows.slice(0, BARS), hidden = rows.slice(BARS);
  const line = (mark, name, p, kind, extra) => h("li", { class: extra }, h("span", { class: "rank" }, mark), h("span", { class: "label" }, name), h("span", { class: "num" }, percent(p)), bar(p, kind));
  const list = h("ol", { class: "bars" }, shown.map(([rank, name, p, inSet]) => line(String(rank), name, p, inSet ? "set" : "out", inSet ? "in-set" : "")));
  const number = hidden.length + data.rest[0];
  if (number) list.append(line("", `${many(number, "other candidate")}`, hidden.reduce((sum, row) => sum + row[2], data.rest[1]), "out", "other"));
  if (data.present !== null) list.append(line("", "not in the database", 1 - data.present, "absent", "other"));
  const inSet = `Bars in strong colour: the prediction set, ${many(data.set, "candidate")}. It was made to hold the true molecule in ${Number((100 * data.coverage).toPrecision(3))} of 100 cases, if it is among the candidates.`;
  return box("How sure", list, h("p", { class: "small" }, inSet, data.present === null ? " Whether the molecule is in the database at all, the model cannot say." : ""));
}

const KINDS = [["match", "Reference spectra of this molecule"], ["evidence", "The spectrum"], ["analogy", "Similar reference spectra"], ["external", "Scores of other programs"], ["prior", "Prior, independent of the spectrum"]];
function why(data, candidate) {
  const largest = Math.max(1, ...data.candidates.flatMap((c) => c.nats.map(Math.abs)));
  const list = h("ul", { class: "why" });
  KINDS.forEach(([kind, words], k) => {
    const names = data.channels.filter((channel) => channel[1] === kind);
    if (!names.length) {
      if (kind === "prior") list.append(h("li", {}, h("span", { class: "label" }, h("i", { class: "dot k-prior" }), words), h("span", { class: "said" }, "not used")));
      return;
    }
    const nats = candidate.nats[k], scale = h("span", { class: "scale", "aria-hidden": "true" }, h("span", { class: "part k-" + kind }));
    const inner = scale.firstChild;
    inner.style.width = ((50 * Math.abs(nats)) / largest).toFixed(1) + "%";
    inner.style[nats < 0 ? "right" : "left"] = "50%";
    const each = names.length > 1 ? names.map(([name]) => `${name}: ${times(candidate.parts[data.channels.findIndex((c) => c[0] === name)])}`).join("; ") : "";
    list.append(h("li", {}, h("span", { class: "label" }, h("i", { class: "dot k-" + kind }), words), h("span", { class: "said" }, times(nats)), scale, each ? h("small", {}, each) : ""));
  });
  return box(`Why ${called(candidate, 40)}`, list, h("p", { class: "small" }, "Each is relative to the average candidate of the list; together they give the rank."));
}

// Labels and purposes of the objectives, which the page holds once.
const common = () => JSON.parse(document.getElementById("common").textContent);
const NO_LOSS = 5e-4; // an expected loss that is shown as none
let choices = 0;
// The decision for each objective, and what it costs in the others; `select(place)` shows a candidate.
function forGoals(data, select, link = "") {
  const found = Object.entries(data.choices), picks = new Set(found.map(([, choice]) => choice[0])), { goals, labels } = common();
  if (!found.length) return "";
  if (picks.size === 1) return box("For other goals", h("p", {}, `All ${found.length} objectives lead to the same candidate, number ${found[0][1][0]}: `, h("b", {}, naming(found[0][1][1], found[0][1][2], 60)), "."), link);
  const group = `goal-${++choices}`, shown = h("div", { "aria-live": "polite" }), first = [data.goal, data.objective, found[0][0]].find((goal) => goal in data.choices);
  const show = (goal) => {
    data.goal = goal; // it is still shown when another candidate is selected
    const [rank, name, smiles] = data.choices[goal], place = data.candidates.findIndex((candidate) => candidate.rank === rank);
    const title = h("b", {}, `${rank}. `, naming(name, smiles, 44));
    shown.replaceChildren(h("p", {}, place < 0 ? title : h("button", { type: "button", class: "link", onclick: () => select(place) }, title), h("small", {}, goals[goal] || goal)), losses(data.expected, goal, labels));
  };
  const choice = h("fieldset", { class: "segments" }, h("legend", {}, "Objective"), found.map(([goal]) => h("label", {}, h("input", { type: "radio", name: group, value: goal, checked: goal === first, onchange: () => show(goal) }), h("span", {}, labels[goal] || goal))));
  show(first);
  return h("section", { class: "box goals" }, h("h3", {}, "For other goals"), choice, shown, link);
}
function losses(expected, goal, labels) {
  const rows = Object.entries(expected).filter(([, of]) => goal in of);
  const cells = ([judged, of]) => { const lost = Math.max(0, of[judged] - of[goal]); return [h("th", { scope: "row" }, labels[judged] || judged), h("td", { class: "num" }, percent(of[goal])), h("td", { class: "num" }, lost < NO_LOSS ? "0" : `−${(100 * lost).toFixed(1)}`)]; };
  return rows.length ? h("table", { class: "plain losses" }, h("caption", {}, "Expected value of this decision among the candidates, and what it loses against the best one, in points"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "measure"), h("th", { scope: "col", class: "num" }, "expected"), h("th", { scope: "col", class: "num" }, "loss"))),
    h("tbody", {}, rows.map((row) => h("tr", { class: row[0] === goal ? "is-goal" : "" }, cells(row))))) : "";
}

// What the spectra of each ion say alone, of a feature of several.
function ionSupport(data) {
  if (!data.support.length) return "";
  const rows = data.support.map((own) => h("tr", {}, h("td", {}, own.adduct), h("td", { class: "num" }, own.spectra), h("td", { class: "num" }, percent(own.p)), h("td", {}, own.agrees ? "the same" : [naming(own.name, own.smiles, 40), ` ${percent(own.preferred)}`])));
  return box("Each ion alone", h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["ion", "spectra", "first candidate", "prefers"].map((head) => h("th", {}, head)))), h("tbody", {}, rows)),
    h("p", { class: "small" }, "Probability of the first candidate among those of its mass, by the scores of the spectra of each ion alone."));
}

// The compound class, at three levels, and the reference molecules beside it.
function asClass(data) {
  const found = data.classes;
  if (!found) return "";
  const levels = found.levels.map(([level, entries]) => [h("p", { class: "small" }, level), h("ol", { class: "bars" }, entries.map(([name, p]) => h("li", {}, h("span", { class: "rank" }), h("span", { class: "label", title: name }, name), h("span", { class: "num" }, percent(p)), bar(p, found.answer && found.answer[0] === name && found.answer[1] === level ? "set" : "out"))))]);
  const refs = found.refs.map(([name, similarity, of, supports]) => h("li", {}, h("b", {}, shortened(name, 40)), ` (similarity ${fixed(similarity, 2)}): ${of}${supports ? "" : ", another class"}`));
  return box("Compound class", h("p", {}, found.answer ? [h("b", {}, found.answer[0]), ` (${found.answer[1]})`] : "None is probable enough to be named."), ...levels.flat(),
    refs.length ? [h("p", { class: "small" }, "Most similar reference spectra of a known class:"), h("ul", { class: "small" }, refs)] : "");
}

function asIons(data) {
  if (!data.ions.length) return "";
  if (data.ions.length === 1 && data.support.length) return "";  // which names them all
  if (data.ions.length === 1) return box("Ion", h("p", {}, h("b", {}, data.ions[0][0]), data.candidates.length ? "; no other was tried." : ""));
  const list = h("ol", { class: "bars" }, data.ions.slice(0, 6).map(([ion, p]) => h("li", {}, h("span", { class: "rank" }), h("span", { class: "label" }, ion), h("span", { class: "num" }, percent(p)), bar(p, "set"))));
  return box("Ion", list, data.ions.length > 6 ? h("p", { class: "small" }, `and ${data.ions.length - 6} less likely ones`) : "");
}

function references(data, candidate, width) {
  if (!data.refs.length) return box("Reference spectra", h("p", {}, "No reference spectrum supports these candidates. ", data.nearest === null ? "" : `The most similar one has a similarity of ${data.nearest.toFixed(2)} (of 1).`));
  const first = candidate.match ?? candidate.analog ?? 0, stage = h("div", { class: "stage" }), choice = h("div", { class: "choice", role: "group", "aria-label": "reference spectra" });
  const roles = data.refs.map((ref, i) => {
    const own = data.candidates.filter((c) => c.match === i).map((c) => c.rank), like = data.candidates.filter((c) => c.analog === i).map((c) => c.rank);
    return own.length ? `match of ${own.join(", ")}` : like.length ? `analog of ${like.join(", ")}` : "";
  });
  const show = (place) => {
    const ref = data.refs[place];
    [...choice.children].forEach((button, i) => button.setAttribute("aria-pressed", i === place));
    const drawn = drawMirror(data, ref, width), st = ref.st === null ? null : data.structures[ref.st];
    const role = place === candidate.match ? `The same molecule, ${called(candidate)}` : place === candidate.analog ? `Another molecule, Tanimoto similarity to ${called(candidate)} ${percent(ref.likeness)}` : ref.same ? "A reference of the same m/z that matches" : "Supports another candidate";
    stage.replaceChildren(
      h("div", { class: "plot" }, drawn.svg, h("p", { class: "small" }, h("i", { class: "dot k-same" }), `${many(drawn.same, "peak")} in both`, drawn.moved ? [" ", h("i", { class: "dot k-moved" }), `${drawn.moved} apart by the difference of the precursors, ${signed(data.precursor - ref.mz, 4)}`] : ""), saveButtons([drawn.svg], `${data.name}-${ref.record}`)),
      h("div", { class: "source" }, st ? drawStructure(st, bondFor([st], 230, 150, 20), { title: ref.name || ref.smiles }) : "",
        h("dl", { class: "pairs tight" }, [["molecule", ref.name || ref.smiles], ["role", role], ["similarity", `${fixed(ref.similarity, 2)} of 1, ${many(ref.count, "peak")} match${ref.same || place === candidate.match ? " beside the precursor" : ""}`], ["record", ref.record], ["ion", `${ref.adduct} m/z ${fixed(ref.mz, 4)}`], ["contributor", ref.contributor || "not stated"], ["licence", ref.licence || "not stated"], ["library", ref.library]].filter((row) => row[1]).map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]))));
  };
  data.refs.forEach((ref, i) => choice.append(h("button", { type: "button", onclick: () => show(i) }, roles[i] ? h("small", {}, roles[i]) : "", shortened(ref.name || ref.record, 30), h("small", {}, fixed(ref.similarity, 2)))));
  show(first);
  return box("Reference spectra", data.refs.length > 1 ? choice : "", stage);
}

function peakTable(data, candidate) {
  const removed = new Map(data.removed);
  const rows = data.peaks[0].map((m, i) => [m / 1e4, data.peaks[1][i] / 10, candidate.pieces.find((row) => row[0] === i), removed.get(i)]);
  const cells = (row) => row[2] ? [lowered(row[2][1]) + charged(row[2][2]), signed(row[2][3] / 10, 1), String(row[2][5]), row[2][6] ? signed(row[2][6], 0) : "0"] : [row[3] ? `removed: ${row[3]}` : "–", "", "", ""];
  return h("details", { class: "peaks" }, h("summary", {}, "All peaks as a table"),
    h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["m/z", "intensity (%)", "formula", "error (ppm)", "bonds broken", "H moved"].map((name, i) => h("th", { scope: "col", class: i === 2 ? "" : "num" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row[2] ? "" : "none" }, h("td", { class: "num" }, row[0].toFixed(4)), h("td", { class: "num" }, row[1].toFixed(1)), cells(row).map((text, i) => h("td", { class: i ? "num" : "" }, text))))))));
}
