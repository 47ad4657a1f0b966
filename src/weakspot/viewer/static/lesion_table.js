// The lesions as a list: in which order, which of them are kept, and how many of the true and false ones that leaves.

const PROBABILITY = "false_positive_probability";
const ORDERS = {
  "": (table) => [table.known ? table[PROBABILITY] : table.voxels, -1],
  "probability": (table) => [table[PROBABILITY], 1],
  "voxels": (table) => [table.voxels, -1],
  "small": (table) => [table.voxels, 1],
};

export class LesionTable {
  /** Columns as the server gives them. */
  constructor(columns) {
    Object.assign(this, columns);
    this.count = columns.case.length;
    this[PROBABILITY] = columns[PROBABILITY] ?? Array(this.count).fill(null);
    this.known = this[PROBABILITY].some((value) => value !== null);
    this.truth = columns.true_positive !== undefined;
    this.cases = [...new Set(columns.case)];
  }

  probability(row) {
    return this[PROBABILITY][row];
  }

  /** The rows of one case, or of all, in an order; those without a value come last. */
  rows(only = "", order = "") {
    const [values, sign] = (ORDERS[order] ?? ORDERS[""])(this);
    const rows = [...Array(this.count).keys()].filter((row) => !only || this.case[row] === only);
    const missing = (row) => values[row] === null || values[row] === undefined;
    return rows.sort((one, two) => missing(one) - missing(two) || sign * (values[one] - values[two]) || one - two);
  }

  /** Whether a lesion stays where those with a probability from `below` on are dropped; one without any stays. */
  kept(row, below) {
    return this.probability(row) === null || this.probability(row) < below;
  }

  /** How many of some rows are kept, in all and by the truth. */
  counts(rows, below) {
    const counts = { all: rows.length, kept: 0, true: 0, trueKept: 0, false: 0, falseKept: 0 };
    for (const row of rows) {
      const kept = this.kept(row, below);
      counts.kept += kept;
      if (!this.truth) continue;
      const kind = this.true_positive[row] ? "true" : "false";
      counts[kind] += 1;
      counts[`${kind}Kept`] += kept;
    }
    return counts;
  }

  /** The row of a lesion; -1 where there is none. */
  find(name, lesion) {
    return this.case.findIndex((own, row) => own === name && this.lesion[row] === lesion);
  }
}
