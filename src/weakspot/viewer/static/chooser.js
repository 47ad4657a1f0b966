// A list of which one is chosen: with the mouse, or with the arrow keys as they move.

import { element, fill } from "./dom.js";

export class Chooser {
  /** `describe(item)` gives what stands in an entry; `chosen(index)` is called with the choice. */
  constructor({ label, describe, chosen }) {
    Object.assign(this, { describe, chosen, at: -1 });
    this.list = element("ul", { class: "list" });
    this.node = element("nav", { class: "chooser", "aria-label": label, on: { keydown: (event) => this.#key(event) } }, this.list);
  }

  show(items, at = 0) {
    fill(this.list, items.map((item, index) =>
      element("li", {}, element("button", { type: "button", on: { click: () => this.choose(index) } }, this.describe(item)))));
    this.at = -1;
    if (items.length) this.choose(Math.min(Math.max(0, at), items.length - 1));
  }

  get buttons() {
    return [...this.list.querySelectorAll("button")];
  }

  choose(index) {
    const { buttons } = this;
    if (index < 0 || index >= buttons.length || index === this.at) return;
    buttons[this.at]?.removeAttribute("aria-current");
    buttons[index].setAttribute("aria-current", "true");
    buttons[index].scrollIntoView({ block: "nearest" });
    this.at = index;
    this.chosen(index);
  }

  /** One further or back. */
  step(by) {
    this.choose(this.at + by);
  }

  #key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.step(by);
    this.buttons[this.at]?.focus();
  }
}

/** Keys that choose from anywhere on the page. */
export const chooserKeys = (chooser, noun) => [
  { keys: ["n", "j"], does: `next ${noun}`, group: "List", run: () => chooser.step(1) },
  { keys: ["p", "k"], does: `previous ${noun}`, group: "List", run: () => chooser.step(-1) },
];
