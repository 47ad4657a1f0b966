// What was done can be undone. Steps run one after the other, also where they wait for the server.

import { announce, complain } from "./dom.js";

export class Undo {
  constructor(changed = () => {}) {
    this.done = [];
    this.undone = [];
    this.waiting = 0; // steps that were asked for and are not done yet
    this.changed = changed;
    this.running = Promise.resolve();
  }

  get canUndo() {
    return this.done.length > 0;
  }

  get canRedo() {
    return this.undone.length > 0;
  }

  /** Do `{says, forward, back, shown}`. A step that fails is complained of and does not count.
   *
   * shown: shows what was undone or done again; not called the first time.
   */
  perform(step) {
    return this.#next(async () => {
      await step.forward();
      this.done.push(step);
      this.undone.length = 0;
    });
  }

  undo() {
    return this.#turn(() => [this.done, this.undone, "back", "Undone"]);
  }

  redo() {
    return this.#turn(() => [this.undone, this.done, "forward", "Redone"]);
  }

  #turn(ends) {
    return this.#next(async () => {
      const [from, to, direction, word] = ends();
      const step = from.at(-1);
      if (!step) return announce(`${word}: nothing left`);
      await step[direction]();
      to.push(from.pop());
      step.shown?.();
      announce(`${word}: ${step.says}`);
    });
  }

  #next(work) {
    this.#count(1);
    this.running = this.running.then(work).catch(complain).finally(() => this.#count(-1));
    return this.running;
  }

  #count(by) {
    this.waiting += by;
    this.changed();
  }
}

export const undoKeys = (undo) => [
  { keys: ["u", "Ctrl+z"], does: "undo", run: () => void undo.undo() },
  { keys: ["Ctrl+Shift+z", "Ctrl+y"], does: "redo", run: () => void undo.redo() },
];
