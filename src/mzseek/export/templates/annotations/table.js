// The table of features: sorting, filtering, opening, printing.
const by = (id) => document.getElementById(id);
const PAPER = 930; // pixels between the margins of a page, which shrinks what it shows
const detailOf = (row) => row.nextElementSibling && row.nextElementSibling.classList.contains("detail-row") ? row.nextElementSibling : null;
const SAME_LISTED = 20;

// A row of the table as row.html makes it, from what `row_data` returns.
function featureRow(place, row) {
  const cell = (kind, label, value, ...content) => h("td", { class: kind, "data-label": label, "data-v": value }, ...content);
  return h("tr", { class: "row", id: "f" + place, "data-place": place, "data-key": row.key, "data-level": row.level, "data-sure": row.confidence.toFixed(4), "data-marks": row.badges.map(([mark]) => mark + "|").join("") },
    cell("id", null, row.name, h("button", { type: "button", class: "open", "aria-expanded": "false", title: row.name }, h("span", {}, row.name))),
    cell("num", "m/z", row.mz.toFixed(5), row.mz.toFixed(4)),
    cell("num", "RT", row.rt === null ? "" : row.rt.toFixed(1), row.rt === null ? "–" : row.rt.toFixed(0)),
    cell("best", null, row.best, h("div", { class: "who" }, h("span", { class: "thumb" }), h("span", { class: "called" + (row.best === row.smiles ? " is-smiles" : "") }, row.best || "–"))),
    cell("what", null, `${row.formula} ${row.adduct}`, row.formula || "–", h("small", {}, row.adduct)),
    cell("sure", null, row.confidence.toFixed(4), h("span", {}, `${(100 * row.confidence).toFixed(0)} %`), s("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { class: "track", width: 100, height: 6 }), s("rect", { class: "fill", width: row.width, height: 6 }))),
    cell("num", "set", row.set_size, row.set_size),
    cell("level", "level", row.level, row.level),
    cell("marks", null, row.badges.map(([mark]) => mark + " ").join(""), row.badges.map(([mark, name]) => h("span", { class: "badge b-" + name }, mark))));
}

// Brings the table to life. `read(place)` returns the data of a feature, or null until `load(place)`
// has fetched them, or has said why not; `tradeOff(data)` returns a link for the box about objectives;
// of the rows that fit the filter, the first `limit` are shown. Returns `add`, for new rows.
function featureTable(read, { load = null, tradeOff = () => "", limit = Infinity } = {}) {
  const table = by("table"), body = table.tBodies[0], rows = [...body.rows];
  let order = [...rows]; // as they are sorted
  const heads = [...table.tHead.rows[0].cells], tools = by("tools");
  // Other features of the page whose answer is the same molecule, by the first block of the InChIKey.
  function same(data, candidate) {
    const others = candidate.key ? rows.filter((row) => row.dataset.key === candidate.key && +row.dataset.place !== data.place) : [];
    if (!others.length) return "";
    const links = others.slice(0, SAME_LISTED).map((row, i) => [i ? ", " : "", h("a", { href: "#" + row.id, onclick: () => { if (location.hash === "#" + row.id) fromLink(); } }, row.cells[0].dataset.v)]);
    return h("p", { class: "same" }, `${called(candidate)} is also the answer for ${many(others.length, "other feature")}: `, links, others.length > SAME_LISTED ? ` and ${others.length - SAME_LISTED} more` : "");
  }

  function open(row, width) {
    const data = read(row.dataset.place);
    if (!data) return void load(row.dataset.place).then(() => { if (!row.classList.contains("is-open")) open(row, width); }, () => {});
    const root = h("div", { class: "detail" }), cell = h("td", { colspan: heads.length }, root), line = h("tr", { class: "detail-row" }, cell);
    row.after(line);
    row.classList.add("is-open");
    row.querySelector("button.open").setAttribute("aria-expanded", "true");
    const inner = () => { const style = getComputedStyle(root); return root.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight); };
    drawDetail(data, root, width || inner(), { same, tradeOff });
    line.redraw = () => drawDetail(data, root, inner(), { same, tradeOff });
  }
  function close(row) {
    const line = detailOf(row);
    if (line) line.remove();
    row.classList.remove("is-open");
    row.querySelector("button.open").setAttribute("aria-expanded", "false");
  }
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.row");
    if (!row || (!event.target.closest("button") && String(getSelection()))) return;
    if (row.classList.contains("is-open")) close(row);
    else open(row);
  });

  // Sorting: by a head's button, a second time the other way round; by column -1 as in the file.
  const natural = new Intl.Collator("en", { numeric: true });
  let sorted = [-1, 1];
  function sortBy(column, way) {
    const isNumber = column < 0 || heads[column].dataset.kind === "number";
    const value = (row) => column < 0 ? row.dataset.place : row.cells[column].dataset.v;
    const keyed = rows.map((row) => [value(row), row, detailOf(row)]);
    keyed.sort(([a, one], [b, two]) => {
      if (a === "" || b === "") return (a === "") - (b === "") || one.dataset.place - two.dataset.place;
      return way * (isNumber ? a - b : natural.compare(a, b)) || one.dataset.place - two.dataset.place;
    });
    for (const [, row, detail] of keyed) { body.append(row); if (detail) body.append(detail); }
    heads.forEach((each, i) => { if (i === column) each.setAttribute("aria-sort", way > 0 ? "ascending" : "descending"); else each.removeAttribute("aria-sort"); });
    order = keyed.map(([, row]) => row);
    sorted = [column, way];
    if (rows.length > limit) filter();
    by("order").value = String(column);
  }
  heads.forEach((head, column) => {
    const first = head.dataset.first === "down" ? -1 : 1, name = head.textContent;
    head.replaceChildren(h("button", { type: "button", onclick: () => sortBy(column, sorted[0] === column ? -sorted[1] : first) }, name));
    by("order").append(h("option", { value: column }, name));
  });
  by("order").prepend(h("option", { value: -1 }, "order of the file"));
  by("order").selectedIndex = 0;
  by("order").addEventListener("change", (event) => { const column = +event.target.value; sortBy(column, column >= 0 && heads[column].dataset.first === "down" ? -1 : 1); });

  // Filtering.
  const textOf = (row) => row.textContent.toLowerCase().replace(/[₀-₉]/g, (d) => LOWER.indexOf(d));
  const texts = rows.map(textOf);
  function filter() {
    const words = by("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const level = by("level").value, least = +by("least").value, mark = by("mark").value;
    let number = 0, shown = 0;
    for (const row of order) {
      const fits = words.every((word) => texts[row.dataset.place].includes(word)) && (!level || row.dataset.level === level) && +row.dataset.sure >= least && (!mark || row.dataset.marks.split("|").includes(mark));
      const isShown = fits && shown < limit, detail = detailOf(row);
      row.hidden = !isShown;
      if (detail) detail.hidden = !isShown;
      number += fits;
      shown += isShown;
    }
    const all = number === rows.length ? many(number, "feature") : `${number.toLocaleString("en")} of ${many(rows.length, "feature")}`;
    by("number").textContent = shown < number ? `${all}; the first ${shown.toLocaleString("en")} are shown` : all;
    by("empty").hidden = number > 0;
  }
  tools.addEventListener("input", filter);
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.hidden = false;
  filter();

  // Structures in the table are drawn when their rows come near the screen.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) { seen.unobserve(target); thumb(target); }
  }, { rootMargin: "400px" });
  function thumb(row) {
    const place = row.querySelector(".thumb"), data = read(row.dataset.place);
    if (!data) return void (load && load(row.dataset.place).then(() => thumb(row), () => {}));
    const best = data.candidates[data.best ?? 0];
    if (!best || best.st === null || place.firstChild) return;
    const st = data.structures[best.st];
    place.append(drawStructure(st, bondFor([st], 96, 58, 9.5), { title: "" }));
  }
  rows.forEach((row) => seen.observe(row));

  // A new width draws open features anew.
  let wait = 0, last = innerWidth;
  addEventListener("resize", () => {
    clearTimeout(wait);
    wait = setTimeout(() => {
      if (innerWidth === last) return;
      last = innerWidth;
      body.querySelectorAll(".detail-row").forEach((line) => line.redraw());
    }, 150);
  });

  // On paper every feature that is not filtered out is open; of those that are fetched, what was open.
  let forPaper = [];
  addEventListener("beforeprint", () => {
    forPaper = load ? [] : rows.filter((row) => !row.hidden && !row.classList.contains("is-open"));
    if (!load) rows.forEach((row) => { if (!row.hidden) thumb(row); });
    forPaper.forEach((row) => open(row, PAPER));
  });
  addEventListener("afterprint", () => { forPaper.forEach(close); forPaper = []; });

  // A link to a feature opens it; so does a page of one.
  function fromLink() {
    const row = /^#f\d+$/.test(location.hash) && by(location.hash.slice(1));
    if (!row) return;
    if (row.hidden) { tools.reset(); filter(); }
    row.hidden = false;
    if (!row.classList.contains("is-open")) open(row);
    row.scrollIntoView();
  }
  addEventListener("hashchange", fromLink);
  fromLink();
  if (rows.length === 1 && !rows[0].classList.contains("is-open")) open(rows[0]);

  return {
    // Takes up new rows, in the order and under the filter that the table has.
    add(added) {
      for (const row of added) {
        body.append(row);
        rows.push(row);
        order.push(row);
        texts.push(textOf(row));
        seen.observe(row);
      }
      if (sorted[0] >= 0) sortBy(...sorted);
      filter();
      if (added.some((row) => "#" + row.id === location.hash)) fromLink();
    },
  };
}
