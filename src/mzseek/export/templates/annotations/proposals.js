// Proposed structures: molecules that are no candidates, made of known ones.
function proposals(data, width) {
  const { included, list, more } = data.proposals;
  const columns = Math.max(1, Math.min(list.length, Math.floor(width / 210)));
  const drawn = list.map((one) => one.st).filter((place) => place !== null).map((place) => data.structures[place]);
  const bond = bondFor(drawn, Math.min(width / columns, 260) - 30, 130, 17);
  const figure = (one, i) => h("li", {},
    h("span", { class: "head" }, h("span", { class: "rank" }, i + 1), h("span", { class: "p" }, percent(one.p))),
    one.st === null ? h("code", {}, one.smiles) : drawStructure(data.structures[one.st], bond, { title: one.smiles }),
    h("p", {}, h("b", {}, lowered(one.formula)), ` as ${one.adduct}, explains ${percent(one.explained)}`),
    h("p", { class: "small" }, `from ${one.name || shortened(one.parent, 40)} (${signed(one.difference, 4)} Da): ${one.transformation}`),
    h("p", { class: "small smiles" }, one.smiles, " ", copyButton(one.smiles)));
  return box("Proposed structures",
    h("p", {}, `If no candidate is the molecule, one of these ${many(list.length + more, "structure")} is it with probability ${percent(included)}. This was fitted on molecules that mostly have known relatives; for others it is too high. `, "They are no candidates: each was made of a known molecule by small changes that explain the mass, and is scored by the same evidence. Percentages are those of a proposal if one of them is right."),
    h("ol", { class: "proposals" }, list.map(figure)),
    more ? h("p", { class: "small" }, `and ${many(more, "less probable one")}: proposals.tsv`) : "");
}
