// All about a feature.

function explains(data, candidate) {
  const drawn = data.peaks[0].length, own = candidate.pieces.length, explained = new Set([...candidate.pieces, ...data.removed].map((row) => row[0]));
  const left = data.peaks[1].map((v, i) => [v, i]).filter(([v, i]) => v >= 20 && !explained.has(i)).sort((a, b) => b[0] - a[0]);
  const strongest = left.slice(0, 4).map(([v, i]) => `${(data.peaks[0][i] / 1e4).toFixed(4)} (${(v / 10).toFixed(0)} %)`).join(", ");
  return [
    h("b", {}, called(candidate)), ` explains ${own} of ${data.all > drawn ? `the ${drawn} peaks drawn` : many(drawn, "peak")}; beside the precursor ${many(candidate.count, "peak")} with ${percent(candidate.explained)} of the intensity. `,
    data.removed.length ? `${many(data.removed.length, "peak")} drawn dashed ${data.removed.length === 1 ? "was" : "were"} removed before scoring. ` : "",
    !left.length ? `All ${data.removed.length ? "other " : ""}peaks above 2 % are explained.` : `Not explained: ${strongest}${left.length > 4 ? ` and ${left.length - 4} more above 2 %` : ""}.`,
  ];
}

function card(data, candidate, place, bond, select) {
  const st = candidate.st === null ? null : data.structures[candidate.st];
  return h("button", { type: "button", class: "card" + (candidate.in ? " in-set" : ""), role: "tab", "aria-selected": "false", onclick: () => select(place) },
    h("span", { class: "head" }, h("span", { class: "rank" }, candidate.rank), h("span", { class: "p" }, percent(candidate.p)), candidate.in ? h("span", { class: "in" }, "in the set") : ""),
    h("span", { class: "picture" }, st ? drawStructure(st, bond, { title: called(candidate) }) : "cannot be drawn"),
    h("span", { class: "name" }, naming(candidate.name, candidate.smiles, 54)),
    h("span", { class: "does" }, bar(candidate.explained, "k-evidence"), `explains ${percent(candidate.explained)}, ${many(candidate.count, "peak")}`),
    h("span", { class: "odds" }, KINDS.map(([kind], k) => data.channels.some((channel) => channel[1] === kind) ? h("span", {}, h("i", { class: "dot k-" + kind }), `${kind} ${odds(candidate.nats[k])}`) : "")));
}
const odds = (nats) => {
  const factor = Math.exp(Math.abs(nats)), size = factor > 1e6 ? "10⁶" : factor >= 10 ? Math.round(Number(factor.toPrecision(2))).toLocaleString("en") : factor.toFixed(1);
  return (factor < 1.05 ? "×" : nats > 0 ? "×" : "÷") + "\u2009" + size;
};

function pane(data, candidate, width) {
  const narrow = width < 640, plotWidth = narrow ? width : Math.round(width * 0.62), room = narrow ? width : width - plotWidth - 24;
  const st = candidate && candidate.st !== null ? data.structures[candidate.st] : null;
  const shown = data.candidates.map((c) => c.st).filter((place) => place !== null).map((place) => data.structures[place]);
  const figure = st ? drawStructure(st, bondFor(shown, Math.min(room, 400), 250, 34), { pieces: true, title: "Structure of " + called(candidate) + ". Arrow keys go from atom to atom." }) : null;
  const drawn = drawSpectrum(data, candidate, plotWidth), readout = h("p", { class: "readout", "aria-live": "polite" });
  const parts = [h("div", { class: "plot" }, drawn.svg)];
  if (figure) parts.push(h("div", { class: "figure" }, figure));
  join(drawn, figure, readout, st);
  const name = candidate ? `${data.name}-${candidate.rank}-${candidate.name || candidate.key}` : data.name;
  return [h("div", { class: "pair" + (narrow ? " narrow" : "") }, parts), readout, saveButtons(figure ? [drawn.svg, figure] : [drawn.svg], name)];
}

function identity(candidate) {
  const facts = [["formula", lowered(candidate.formula)], ["ion", candidate.adduct + (candidate.ppm === null ? "" : `, ${signed(candidate.ppm, 1)} ppm`)], ["InChIKey", candidate.key], ["SMILES", candidate.smiles], ["found in", candidate.from.join(", ")]];
  const links = candidate.links.map(([name, page], place) => [place ? ", " : "", h("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, name)]);
  if (links.length) facts.push(["pages", links]);
  return h("dl", { class: "identity" }, facts.filter((row) => row[1]).map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value, key === "SMILES" ? [" ", copyButton(value)] : ""))));
}

// Draws a feature; `page` adds what it alone knows: `same(data, candidate)`, and `tradeOff(data)`, a link.
function drawDetail(data, root, width, page) {
  const inner = Math.max(260, width), stage = h("div", { class: "pane" });
  const about = [`m/z ${data.mz.toFixed(4)}`, data.rt === null ? "" : `${data.rt} s`, ...data.about, data.spectra > 1 ? `${data.spectra} spectra judged together; the one with most peaks is drawn` : "", data.all > data.peaks[0].length ? `the strongest ${data.peaks[0].length} of ${data.all} peaks are drawn` : "", data.where].filter(Boolean);
  const head = h("header", {}, h("p", { class: "small" }, about.join(" · ")),
    data.story ? h("p", { class: "story" }, data.story) : "",
    h("p", { class: "verdict" }, h("span", { class: "chip" }, "level " + data.level[0]), data.level[1]),
    data.notes.length ? h("ul", { class: "notes" }, data.notes.map((note) => h("li", {}, note))) : "",
    data.unlike ? h("p", { class: "note" }, `No reference spectrum is near: the nearest has a similarity of ${data.nearest === null ? "0" : data.nearest.toFixed(2)}. Percentages deserve less trust here.`) : "");
  root.replaceChildren(head);
  if (!data.candidates.length) {
    root.append(h("p", {}, `No candidate: ${data.found ? "none could be scored." : "no molecule of the database has an ion of this m/z."}`), ...pane(data, null, inner));
    if (data.refs.length) root.append(references(data, {}, Math.min(inner, 640)));
    const boxes = [asIons(data), asFormulas(data), asClass(data)].filter(Boolean);
    if (boxes.length) root.append(h("div", { class: "boxes" }, boxes));
    if (data.proposals) root.append(proposals(data, inner));
    return;
  }
  const columns = inner < 480 ? 1.5 : Math.min(data.candidates.length, Math.max(3, Math.floor(inner / 160)));
  const shown = data.candidates.map((c) => c.st).filter((place) => place !== null).map((place) => data.structures[place]);
  const bond = bondFor(shown, Math.min((inner - 12 * columns) / columns, 260) - 26, 120, 17);
  const select = (place) => {
    const candidate = data.candidates[place];
    [...cards.children].forEach((each, i) => { each.setAttribute("aria-selected", i === place); each.tabIndex = i === place ? 0 : -1; });
    stage.replaceChildren(...pane(data, candidate, inner), h("p", { class: "sentence" }, explains(data, candidate)), identity(candidate), page.same(data, candidate), peakTable(data, candidate),
      h("div", { class: "boxes" }, howSure(data), why(data, candidate), h("div", { class: "stack" }, forGoals(data, (other) => { select(other); cards.children[other].focus(); }, page.tradeOff(data)), asIons(data), ionSupport(data), asFormulas(data), asClass(data))),
      references(data, candidate, inner < 640 ? inner : Math.round(inner * 0.62)));
    root.selected = place;
  };
  const cards = h("div", { class: "cards", role: "tablist", "aria-label": "candidates" }, data.candidates.map((candidate, i) => card(data, candidate, i, bond, select)));
  cards.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = ((root.selected ?? 0) + step + cards.children.length) % cards.children.length;
    select(next);
    cards.children[next].focus();
  });
  root.append(cards, stage, ...(data.proposals ? [proposals(data, inner)] : []));
  select(root.selected ?? data.best ?? 0);
}
