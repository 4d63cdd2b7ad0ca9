// Making elements. Text of files goes in as text only: nothing here reads markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(2)) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child);
  }
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const LOWER = "₀₁₂₃₄₅₆₇₈₉";
const lowered = (formula) =>
  String(formula).replace(/([A-Za-z)\]])(\d+)/g, (_, a, n) => a + [...n].map((d) => LOWER[d]).join(""));
const charged = (charge) => {
  if (!charge) return "";
  const size = Math.abs(charge);
  return (size > 1 ? "²³⁴"[size - 2] || "" : "") + (charge > 0 ? "⁺" : "⁻");
};
function percent(p) {
  if (p === null || p === undefined) return "–";
  const value = 100 * p;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return (value < 9.95 ? value.toFixed(1) : value > 99 && value < 100 ? Math.min(value, 99.9).toFixed(1) : value.toFixed(0)) + " %";
}
const signed = (value, digits) => {
  const size = Math.abs(value).toFixed(digits);
  return (Number(size) === 0 ? "" : value < 0 ? "−" : "+") + size;
};
const fixed = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const many = (number, one, more) => `${number.toLocaleString("en")} ${number === 1 ? one : more || one + "s"}`;

// Nats in words.
function times(nats) {
  const factor = Math.exp(Math.abs(nats));
  if (factor < 1.1) return "no effect";
  const size = factor > 1e6 ? "over a million" : factor >= 10 ? Math.round(Number(factor.toPrecision(2))).toLocaleString("en") : factor.toFixed(1);
  return `${size} times ${nats > 0 ? "more" : "less"} likely`;
}
const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const called = (candidate, most = 60) => shortened(candidate.name || candidate.smiles, most);
// A name as it is; what has none is called by its SMILES, in small print.
const naming = (name, smiles, most) => h("span", { class: name ? "named" : "smiles" }, shortened(name || smiles, most));
