// What a reader thinks of each lesion: accepted or rejected, with a note; kept in the Run, and exported as CSV.

import { element } from "./dom.js";

const COLUMNS = ["case", "lesion", "verdict", "note", "blind"];

export class Verdicts {
  /** `rows` are those kept so far; `keep(row)` keeps one, or takes it back where it says nothing, and answers once that is done. */
  constructor(rows, keep) {
    Object.assign(this, { keep, last: Promise.resolve() });
    this.all = new Map(rows.map((row) => [key(row.case, row.lesion), row]));
  }

  of(name, lesion) {
    return this.all.get(key(name, lesion));
  }

  /** Set a verdict, or take it back where it is the same; `blind` says whether the truth was hidden. */
  judge(name, lesion, verdict, blind) {
    const before = this.of(name, lesion);
    return this.#put({ case: name, lesion, note: before?.note ?? "", verdict: before?.verdict === verdict ? "" : verdict, blind });
  }

  note(name, lesion, note, blind) {
    return this.#put({ case: name, lesion, verdict: this.of(name, lesion)?.verdict ?? "", note, blind });
  }

  /** One after another, so that the last counts; what could not be kept is as it was before. */
  #put(row) {
    const before = this.of(row.case, row.lesion);
    this.#set(row);
    const kept = this.last.then(() => this.keep(row));
    this.last = kept.catch(() => {});
    return kept.catch((error) => {
      if ((this.of(row.case, row.lesion) ?? row) === row) this.#set(before ?? { ...row, verdict: "", note: "" });
      throw error;
    });
  }

  #set(row) {
    if (row.verdict || row.note) this.all.set(key(row.case, row.lesion), row);
    else this.all.delete(key(row.case, row.lesion));
  }

  /** Offer them as a file of this name. */
  download(name) {
    const link = element("a", { href: URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" })), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  /** A row per lesion that has a verdict or a note. */
  csv() {
    const rows = [...this.all.values()].sort((one, two) => (one.case < two.case ? -1 : one.case > two.case ? 1 : one.lesion - two.lesion));
    return [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => row[name]))].map((cells) => cells.map(quoted).join(",")).join("\n") + "\n";
  }
}

const key = (name, lesion) => JSON.stringify([name, lesion]);

/** As a cell; what a spreadsheet would take for a formula gets an apostrophe. */
function quoted(value) {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
