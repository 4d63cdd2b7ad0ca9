// The form of a new job.
import { get, pageData, post } from "./api.js";
import { FieldError, dropBox, fillIn, followChoices, numberOf, onSubmit, textOf } from "./forms.js";
import { isRecord, parsePeaks } from "./peaks.js";
import { h, shortened } from "./renderer.js";

const form = document.getElementById("form");
const follow = followChoices(form);
form.querySelectorAll("input[type=file]").forEach(dropBox);
document.getElementById("example").addEventListener("click", () => {
  const { peaks, precursor_mz, adduct } = pageData.example;
  form.reset();
  fillIn(form, { source: "paste", peaks, precursor_mz, adduct, mode: "1" });
  follow();
  form.querySelector("[type=submit]").focus();
});

// What was sent last, but for files, for those who come back to change it.
const SENT = "mzseek-sent";
if (location.hash === "#again") {
  fillIn(form, JSON.parse(sessionStorage.getItem(SENT) || "{}"));
  follow();
}

const PLAIN = ["ppm", "peak_ppm", "instrument", "objective", "group", "recalibrate", "clean", "prior"];
function options() {
  const made = Object.fromEntries(PLAIN.map((name) => [name, textOf(form, name)]).filter(([, value]) => value));
  const adduct = textOf(form, "adduct").split(/[,\s]+/).filter(Boolean);
  if (adduct.length) made.adduct = adduct;
  made.coverage = share("coverage", "a percentage from 1 to 99");
  made.expected_in_database = share("expected_in_database", "a percentage from 0.1 to 99.9");
  for (const name of ["max_candidates", "top"]) made[name] = numberOf(form, name, { from: 1, to: 1e6, meaning: "a number of candidates, 1 or more" });
  made.propose = numberOf(form, "propose", { from: 0, to: 200, meaning: "a number of structures, from 0 to 200" });
  if (form.elements.database.value) made.database = form.elements.database.value;
  return made;
}
const share = (name, meaning) => {
  const [from, to] = meaning.match(/[\d.]+/g).map(Number), value = numberOf(form, name, { from, to, meaning });
  return value === undefined ? undefined : Number((value / 100).toPrecision(12));
};

// What is pasted, as a file.
function pasted() {
  const text = textOf(form, "peaks");
  if (isRecord(text)) return new File([text + "\n"], "pasted.txt");
  const peaks = parsePeaks(text), precursor = numberOf(form, "precursor_mz", { from: 1, to: 1e5, meaning: "an m/z, such as 195.0877" });
  if (precursor === undefined) throw new FieldError("precursor_mz", "The precursor m/z is missing");
  const mode = form.elements.mode.value, lines = ["BEGIN IONS", "TITLE=pasted", `PEPMASS=${precursor}`, `CHARGE=1${mode === "1" ? "+" : "-"}`, ...peaks.map((peak) => peak.join(" ")), "END IONS", ""];
  return new File([lines.join("\n")], "pasted.mgf");
}

function candidates() {
  if (form.elements.database.value) return null;
  const text = textOf(form, "list"), file = form.elements.candidates.files[0];
  if (text && file) throw new FieldError("list", "There is a pasted list and a file: expected one of the two");
  if (file) return file;
  if (!text) throw new FieldError("list", "The list is empty: paste SMILES, or choose a file or a database");
  const isTable = /^[^\n]*(\t|,|;)/.test(text) && /^[^\n]*smiles/i.test(text);
  return new File([text + "\n"], isTable ? "list.csv" : "list.smi");
}

onSubmit(form, async () => {
  const body = new FormData(), isPasted = form.elements.source.value === "paste";
  const files = isPasted ? [pasted()] : [...form.elements.files.files];
  if (!files.length) throw new FieldError("files", "No file was chosen");
  files.forEach((file) => body.append("files", file));
  const table = isPasted ? null : form.elements.features.files[0], list = candidates();
  if (table) body.append("features", table);
  if (list) body.append("candidates", list);
  body.append("options", JSON.stringify(options()));
  const { url } = await post("jobs", body);
  const texts = [...new FormData(form)].filter(([, value]) => typeof value === "string");
  sessionStorage.setItem(SENT, JSON.stringify(Object.fromEntries(texts)));
  location.assign(url);
});

// Jobs that this browser has made before.
async function listJobs() {
  const { jobs } = await get("jobs");
  document.getElementById("jobs").hidden = !jobs.length;
  document.querySelector("#jobs tbody").replaceChildren(...jobs.slice(0, 20).map((job) => h("tr", {},
    h("td", {}, h("a", { href: `/jobs/${encodeURIComponent(job.id)}` }, shortened(job.files.join(", "), 80))), h("td", {}, job.state),
    h("td", { class: "num" }, job.progress.total === null ? "" : job.progress.total.toLocaleString("en")), h("td", {}, new Date(job.created).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })))));
}
listJobs().catch(() => {}); // a list that cannot be shown is no reason to stop
