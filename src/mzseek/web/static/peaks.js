// Peaks as people paste them.
import { FieldError, numberOf, textOf } from "./forms.js";

const RECORD = /^\s*(BEGIN IONS|NAME\s*:|ACCESSION\s*:|>compound|[[{]|<)/im;
export const isRecord = (text) => RECORD.test(text);

// Pairs of m/z and intensity: separated by blanks, tabs, semicolons or commas, or written m/z:intensity.
export function parsePeaks(text, field = "peaks") {
  const peaks = [];
  text.split(/\r?\n/).forEach((line, i) => {
    const plain = line.replace(/^\s*#.*/, "").trim();
    if (!plain) return;
    let words = plain.split(/[\s;]+/).filter(Boolean);
    if (words.length === 1) words = plain.split(/[\s;,]+/).filter(Boolean);
    const pairs = plain.includes(":") ? plain.split(/[\s;,]+/).filter(Boolean).map((pair) => pair.split(":")) : [words.slice(0, 2)];
    for (const pair of pairs) {
      const [mz, intensity] = pair.map((word) => (word.includes(".") ? Number(word) : Number(word.replace(",", "."))));
      if (!(pair.length === 2 && mz > 0 && intensity >= 0 && Number.isFinite(mz + intensity)))
        throw new FieldError(field, `Line ${i + 1}, “${plain.slice(0, 40)}”: expected an m/z and an intensity, such as 138.0662 100`);
      peaks.push([mz, intensity]);
    }
  });
  if (!peaks.length) throw new FieldError(field, "No peaks: paste one m/z and intensity per line, or try the example");
  return peaks;
}

// The spectrum of a form, as the API takes it.
export function spectrumOf(form) {
  const text = textOf(form, "peaks"), adduct = textOf(form, "adduct") || undefined;
  const precursor_mz = numberOf(form, "precursor_mz", { from: 1, to: 1e5, meaning: "an m/z, such as 195.0877" });
  if (isRecord(text)) return { text, precursor_mz, adduct };
  const peaks = parsePeaks(text);
  if (precursor_mz === undefined) throw new FieldError("precursor_mz", "The precursor m/z is missing");
  return { peaks, precursor_mz, adduct };
}
