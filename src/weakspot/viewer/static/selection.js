// What is selected: a set of positions, with the steps that change it, so that they can be undone.

export class Selection {
  constructor(changed = () => {}) {
    this.chosen = new Set();
    this.changed = changed;
  }

  get size() {
    return this.chosen.size;
  }

  has(item) {
    return this.chosen.has(item);
  }

  values() {
    return [...this.chosen].sort((a, b) => a - b);
  }

  toggle(item) {
    if (!this.chosen.delete(item)) this.chosen.add(item);
    this.changed();
  }

  add(items) {
    for (const item of items) this.chosen.add(item);
    this.changed();
  }

  only(items) {
    this.chosen = new Set(items);
    this.changed();
  }

  clear() {
    this.only([]);
  }

  /** A step for `Undo` that changes the selection by `change`. */
  step(says, change) {
    const before = new Set(this.chosen);
    return { says, forward: change, back: () => this.only(before) };
  }
}

/** Numbers as ranges, `3-5,9`: short enough for an address where they lie together. */
export function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/** The numbers of such ranges below a limit; what is no range is passed over. */
export function unranged(text, limit = Infinity) {
  return text.split(",").flatMap((part) => {
    const found = /^(\d+)(?:-(\d+))?$/.exec(part.trim());
    if (!found) return [];
    const from = Number(found[1]);
    const to = Math.min(Number(found[2] ?? found[1]), limit - 1);
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, step) => from + step);
  });
}
