// A long list, read in blocks as they come into view: those wanted first, a few ahead, the oldest forgotten.

export class Blocks {
  /** `load(first, end, signal)` gives what belongs to these indices; `arrived(first, end)` is called when it is there. */
  constructor({ count, load, arrived, failed = () => {}, size = 64, keep = 48 }) {
    Object.assign(this, { count, load, arrived, failed, size, keep });
    this.kept = new Map();
    this.coming = new Map();
  }

  /** What was loaded for the block of this index, with the place inside it; undefined as long as it is not there. */
  at(index) {
    const number = Math.floor(index / this.size);
    const block = this.kept.get(number);
    if (block === undefined) return undefined;
    this.kept.delete(number);
    this.kept.set(number, block);
    return { block, place: index - number * this.size };
  }

  /** Load what is in view from `first` to `end`, then one block before and two after; give up what is far off. */
  near(first, end) {
    if (!this.count) return;
    const last = Math.floor((this.count - 1) / this.size);
    const [from, to] = [Math.floor(first / this.size), Math.min(last, Math.floor(Math.max(first, end - 1) / this.size))];
    for (const [number, control] of this.coming) {
      if (number < from - 2 || number > to + 3) {
        control.abort();
        this.coming.delete(number);
      }
    }
    for (let number = from; number <= to; number += 1) this.#fetch(number);
    for (const number of [to + 1, to + 2, from - 1]) if (number >= 0 && number <= last) this.#fetch(number);
  }

  async #fetch(number) {
    if (this.kept.has(number) || this.coming.has(number)) return;
    const control = new AbortController();
    this.coming.set(number, control);
    const first = number * this.size;
    const end = Math.min(this.count, first + this.size);
    try {
      const block = await this.load(first, end, control.signal);
      if (control.signal.aborted) return;
      this.#keep(number, block);
      this.arrived(first, end);
    } catch (error) {
      if (!control.signal.aborted) this.failed(error);
    } finally {
      if (this.coming.get(number) === control) this.coming.delete(number);
    }
  }

  #keep(number, block) {
    this.kept.set(number, block);
    while (this.kept.size > this.keep) this.kept.delete(this.kept.keys().next().value);
  }

  /** Give up whatever is still coming: another list takes this one's place. */
  stop() {
    for (const control of this.coming.values()) control.abort();
    this.coming.clear();
  }
}
