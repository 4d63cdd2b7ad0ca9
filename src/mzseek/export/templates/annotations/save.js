// Copying text, and saving figures as SVG or PNG. All of it happens in the browser.
const PAINT = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-family", "text-anchor"];
const PNG_SCALE = 3, BETWEEN = 24;

// A copy of a figure that needs no style sheet: every element has its styles as attributes.
function standalone(svg) {
  const copy = svg.cloneNode(true), own = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(own[i]);
    for (const name of PAINT) node.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex", "role"]) node.removeAttribute(name);
  });
  copy.querySelectorAll("[data-atom], [data-a][opacity='0']").forEach((node) => node.remove());
  return copy;
}
// Figures side by side as one, with its size.
function sheet(figures) {
  const sizes = figures.map((svg) => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]);
  const height = Math.max(...sizes.map((size) => size[1])), width = sizes.reduce((sum, size) => sum + size[0], BETWEEN * (figures.length - 1));
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() || "#ffffff";
  const all = s("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height}`, width, height }, s("rect", { width, height, fill: paper }));
  let x = 0;
  figures.forEach((svg, i) => {
    all.append(fill(standalone(svg), { x, y: (height - sizes[i][1]) / 2, width: sizes[i][0], height: sizes[i][1], overflow: "visible" }, []));
    x += sizes[i][0] + BETWEEN;
  });
  return { text: new XMLSerializer().serializeToString(all), width, height };
}
function download(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function asPng({ text, width, height }) {
  return new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => {
      const canvas = h("canvas", { width: Math.ceil(width * PNG_SCALE), height: Math.ceil(height * PNG_SCALE) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png");
    };
    image.onerror = () => failed(new Error("no picture"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  });
}
const fileName = (text) => text.replace(/[^\w.-]+/g, "-").slice(0, 80) || "figure";

function saveButtons(figures, name) {
  const svg = () => download(new Blob([sheet(figures).text], { type: "image/svg+xml" }), fileName(name) + ".svg");
  const png = (event) => {
    const button = event.currentTarget;
    asPng(sheet(figures)).then((blob) => download(blob, fileName(name) + ".png"), () => { button.textContent = "PNG failed: save as SVG"; });
  };
  return h("p", { class: "saves" }, h("span", {}, "Save figure:"), h("button", { type: "button", class: "tool", onclick: svg }, "SVG"), h("button", { type: "button", class: "tool", onclick: png }, "PNG"));
}

function copyButton(text) {
  const button = h("button", { type: "button", class: "tool copy", title: "Copy to the clipboard" }, "copy");
  const tell = (done) => { button.textContent = done ? "copied" : "select and copy by hand"; setTimeout(() => { button.textContent = "copy"; }, 2000); };
  const byHand = () => {
    const area = h("textarea", { class: "offscreen", readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  button.addEventListener("click", () => {
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => tell(true), () => tell(byHand()));
    else tell(byHand());
  });
  return button;
}
