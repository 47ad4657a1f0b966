// What a reader thinks of each lesion: accepted or rejected, with a note; kept in this browser, and exported as CSV.

export const VERDICTS = ["accepted", "rejected"];
const COLUMNS = ["case", "lesion", "verdict", "note", "blind"];

export class Verdicts {
  /** `name` tells Runs and splits apart; `storage` is the browser's, or anything alike. */
  constructor(name, storage = globalThis.localStorage) {
    Object.assign(this, { key: `lesion verdicts ${name}`, storage });
    try {
      this.all = new Map(JSON.parse(storage?.getItem(this.key) ?? "[]").map((row) => [key(row.case, row.lesion), row]));
    } catch {
      this.all = new Map(); // what is stored there is no list of verdicts
    }
  }

  of(name, lesion) {
    return this.all.get(key(name, lesion));
  }

  /** Set a verdict, or take it back where it is the same; `blind` says whether the truth was hidden. */
  judge(name, lesion, verdict, blind) {
    const before = this.of(name, lesion);
    this.#put({ case: name, lesion, note: before?.note ?? "", verdict: before?.verdict === verdict ? "" : verdict, blind });
  }

  note(name, lesion, note, blind) {
    this.#put({ case: name, lesion, verdict: this.of(name, lesion)?.verdict ?? "", note, blind });
  }

  #put(row) {
    if (row.verdict || row.note) this.all.set(key(row.case, row.lesion), row);
    else this.all.delete(key(row.case, row.lesion));
    this.storage?.setItem(this.key, JSON.stringify([...this.all.values()]));
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
