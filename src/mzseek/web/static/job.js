// A job: its state, results as they come, downloads.
import { call, get, post } from "./api.js";
import { sentence } from "./forms.js";
import { copyButton, featureRow, featureTable, h, many, shortened } from "./renderer.js";

const by = (id) => document.getElementById(id);
const id = decodeURIComponent(location.pathname.split("/").pop()), path = `jobs/${encodeURIComponent(id)}`;
const ROWS = 1000, SHOWN = 1000; // rows of a request, and rows that are shown
const RETRY = 2000, BATCH = 250; // milliseconds
const STATES = { queued: "Waiting for a free worker", running: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled" };
const FORMATS = { // names of downloads, and what each is
  tsv: ["candidates.tsv", "all candidates"], summary: ["summary.tsv", "one row a feature"], features: ["features", "your feature table with the annotations"], json: ["JSON", "everything"], html: ["report.html", "this page as one file"],
  mztab: ["mzTab-M", ""], graphml: ["network.graphml", "your network with the annotations"], peaks: ["peaks.tsv", "explained peaks"], proposals: ["proposals.tsv", "proposed structures"], skipped: ["skipped.tsv", "skipped records and reasons"], run: ["run.json", "options, versions and checksums"], zip: ["all as .zip", ""],
};
const FIELDS = { // options of the command line, as the form has them
  "--clean off": "“Peaks that are no fragments: leave as measured” in the form", "--recalibrate off": "“Mass errors of files: leave as measured” in the form",
};
const FINAL = new Set(["done", "failed", "cancelled"]);

const drawings = new Map(), marks = new Set();
let known = 0, sure = 0, fair = 0;

async function load(place) {
  const row = by("f" + place);
  if (!drawings.has(place)) {
    row.setAttribute("aria-busy", "true");
    drawings.set(place, get(`${path}/features/${place}`).then((data) => Object.assign(data, { place: +place })));
  }
  try {
    loaded.set(place, await drawings.get(place));
  } catch (error) {
    drawings.delete(place);
    tell(error.message);
    throw error;
  } finally {
    row.removeAttribute("aria-busy");
  }
}
const loaded = new Map();
const table = featureTable((place) => loaded.get(place) || null, { load, limit: SHOWN, tradeOff: (data) => h("p", { class: "small" }, h("a", { href: `/trade-off?${new URLSearchParams({ job: id, feature: data.place })}` }, "The trade-off of this list")) });

function tell(message) {
  by("alert").textContent = sentence(message);
  by("alert").hidden = !message;
}

// Rows that the server has and the page has not.
let fetching = null;
function moreRows() {
  fetching ??= (async () => {
    try {
      for (;;) {
        const { rows } = await get(`${path}/rows`, { offset: known, limit: ROWS });
        if (!rows.length) return;
        by("results").hidden = false;
        const first = known;
        known += rows.length;
        rows.forEach((row) => { sure += row.confidence >= 0.9; fair += row.confidence >= 0.5 && row.confidence < 0.9; row.badges.forEach(([mark]) => addMark(mark)); });
        table.add(rows.map((row, i) => featureRow(first + i, row)));
      }
    } finally {
      fetching = null;
    }
  })();
  return fetching;
}
function addMark(mark) {
  if (marks.has(mark)) return;
  marks.add(mark);
  by("mark").append(h("option", { value: mark }, mark));
}

function showFacts() {
  const facts = [[known, known === 1 ? "feature annotated" : "features annotated"], [sure, "with a confidence of 90 % or more"], [fair, "with a confidence of 50 to 90 %"]];
  by("facts").replaceChildren(...facts.map(([number, text]) => h("div", { class: "fact" }, h("b", {}, number.toLocaleString("en")), h("span", {}, text))));
  by("facts").hidden = !known;
}

function showProgress({ done, total }) {
  const bar = by("progress");
  if (total) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
  by("state").textContent = total ? `Running: ${done.toLocaleString("en")} of ${many(total, "feature")}` : "Running: reading the spectra";
}

function show(job) {
  const isFinal = FINAL.has(job.state);
  by("state").textContent = STATES[job.state] + (job.state === "done" && !known ? ": no feature was annotated" : "");
  document.body.dataset.state = job.state;
  by("progress").hidden = isFinal;
  by("cancel").hidden = isFinal;
  by("delete").hidden = !isFinal;
  tell(job.error ? job.error.message : "");
  by("again").hidden = job.state !== "failed";
  if (job.state === "running" && job.progress) showProgress(job.progress);
  document.title = `${job.files[0] || "Job"} · mzseek`;
  by("title").textContent = shortened(job.files.join(", ") || "Job", 120);
  if (job.state === "done") showDone(job);
  by("command").textContent = job.command || "";
  by("copy").replaceChildren(copyButton(job.command || ""));
  by("expires").textContent = `Keep the address of this page to find the job again. It is deleted on ${new Date(job.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}.`;
  by("after").hidden = !job.command;
}

function showSkipped(number, records) {
  document.querySelector("#skipped tbody").replaceChildren(...records.map(({ where, reason }) => h("tr", {}, h("td", {}, where), h("td", {}, reason))));
  by("more-skipped").textContent = number > records.length ? `The first ${records.length} of ${number.toLocaleString("en")}; skipped.tsv has all.` : "";
  by("skipped").hidden = false;
}

function showLines(place, lines) {
  const texts = lines.map((line) => Object.entries(FIELDS).reduce((text, [option, field]) => text.replaceAll(option, field), line));
  by(place).replaceChildren(...texts.flatMap((text, i) => (i ? [h("br"), text] : [text])));
  by(place).hidden = !texts.length;
}

function showDone(job) {
  by("downloads").hidden = !job.formats.length;
  by("downloads").lastElementChild.replaceChildren(...job.formats.map((format) => h("li", {}, h("a", { href: `/api/v1/${path}/results/${encodeURIComponent(format)}`, download: "", title: (FORMATS[format] || ["", ""])[1] }, (FORMATS[format] || [format])[0]))));
  const { counts, messages, routine = [], skipped } = job.summary;
  showLines("notes", messages.filter((line) => !routine.includes(line)));
  showLines("remarks", routine);
  if (counts.set_aside) showSkipped(counts.set_aside, skipped);
  const only = known === 1 && by("f0");
  if (only && !only.classList.contains("is-open")) only.querySelector("button.open").click();
}

function tryAgain(error) {
  tell(error.message);
  setTimeout(follow, RETRY);
}

async function follow() {
  let job;
  try {
    job = await get(path);
  } catch (error) {
    if (error.status) {
      by("state").textContent = "";
      by("again").hidden = false;
      return tell(error.message);
    }
    return tryAgain(error);
  }
  const isFinal = FINAL.has(job.state); // what is said of it depends on its rows
  if (!isFinal) show(job);
  try { await moreRows(); } catch (error) { return tryAgain(error); }
  showFacts();
  if (isFinal) return show(job);
  const events = new EventSource(`/api/v1/${path}/events`);
  events.addEventListener("progress", (event) => showProgress(JSON.parse(event.data)));
  let waiting = 0; // rows are asked for in batches, however fast they come
  events.addEventListener("result", () => { waiting ||= setTimeout(() => { waiting = 0; moreRows().then(showFacts, () => {}); }, BATCH); });
  events.addEventListener("end", () => { events.close(); follow(); });
  events.onerror = () => { events.close(); setTimeout(follow, RETRY); };
}

by("cancel").addEventListener("click", async () => { by("cancel").hidden = true; try { await post(`${path}/cancel`); } catch (error) { tell(error.message); } });
by("delete").addEventListener("click", async () => {
  if (!confirm("Delete this job and its results?")) return;
  try { await call("DELETE", path); location.assign("/"); } catch (error) { tell(error.message); }
});
follow();
