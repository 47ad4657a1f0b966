// A list of which one is chosen: with the mouse, or with the arrow keys as they move.

import { element, fill } from "./dom.js";
import { number } from "./text.js";

const MOST = 200; // entries that are listed at once

export class Chooser {
  /** `describe(item)` gives what stands in an entry; `chosen(index)` is called with the choice. */
  constructor({ label, describe, chosen }) {
    Object.assign(this, { describe, chosen, at: -1, items: [], entries: [] });
    this.list = element("ul", { class: "list" });
    this.node = element("nav", { class: "chooser", "aria-label": label, on: { keydown: (event) => this.#key(event) } }, this.list);
  }

  show(items, at = 0) {
    this.items = items;
    fill(this.list);
    this.#more(Math.max(MOST, at + 1));
    this.at = -1;
    if (items.length) this.choose(Math.min(Math.max(0, at), items.length - 1));
  }

  get buttons() {
    return this.entries;
  }

  /** List entries up to so many; a button lists more, as there may be thousands. */
  #more(count) {
    this.list.querySelector(".further")?.remove();
    const listed = this.list.children.length;
    this.list.append(...this.items.slice(listed, count).map((item, place) =>
      element("li", {}, element("button", { type: "button", on: { click: () => this.choose(listed + place) } }, this.describe(item)))));
    this.entries = [...this.list.querySelectorAll("button")];
    const left = this.items.length - this.entries.length;
    if (left > 0) this.list.append(element("li", { class: "further" }, element("button", { type: "button", on: { click: () => this.#more(count + MOST) } }, `${number(left)} more: list ${number(Math.min(left, MOST))}`)));
  }

  choose(index) {
    if (index < 0 || index >= this.items.length || index === this.at) return;
    if (index >= this.entries.length) this.#more(index + MOST);
    const { buttons } = this;
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
