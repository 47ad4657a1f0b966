// Keys of one's own for labels: chosen on the page, kept in the Run, asked before the page's own keys.

import { ask, send } from "./api.js";
import { button } from "./controls.js";
import { announce, complain, element, fill } from "./dom.js";
import { bind } from "./keys.js";

export class OwnKeys {
  /** `given(label)` is called when a key is pressed; `meant(text)` gives the label that a text stands for, or undefined. */
  constructor({ given, meant }) {
    Object.assign(this, { given, meant, keys: {}, free: () => {} });
    this.list = element("ul", { class: "kept own-keys" });
    this.key = element("input", { type: "text", maxlength: 1, size: 2, required: true, autocomplete: "off", "aria-label": "Key", placeholder: "key" });
    this.label = element("input", { type: "text", required: true, autocomplete: "off", "aria-label": "Label for the key", placeholder: "label" });
    this.node = element("details", { class: "own" }, element("summary", {}, "Keys of your own"), this.list,
      element("form", { class: "bar", on: { submit: (event) => { event.preventDefault(); this.#added(); } } }, this.key, this.label, element("button", {}, "Add")));
    ask("/settings").then(({ keys }) => this.#show(keys)).catch(complain);
  }

  #added() {
    const label = this.meant(this.label.value);
    if (label === undefined) return announce(`There is no label ${this.label.value}`);
    return this.#keep({ ...this.keys, [this.key.value]: label });
  }

  async #keep(keys) {
    try {
      this.#show((await send("PUT", "/settings/keys", { keys })).keys);
      this.key.value = this.label.value = "";
    } catch (error) {
      complain(error);
    }
  }

  #show(keys) {
    this.keys = keys;
    this.free();
    this.free = bind(Object.entries(keys).map(([key, label]) =>
      ({ keys: [key], does: `label as ${label}`, group: "Keys of your own", run: () => void this.given(label) })));
    const without = (key) => Object.fromEntries(Object.entries(this.keys).filter(([other]) => other !== key));
    fill(this.list, Object.entries(keys).map(([key, label]) => element("li", { class: "bar" },
      button([element("kbd", {}, key), " ", label], () => this.given(label)),
      button("✕", () => this.#keep(without(key)), { "aria-label": `Remove the key ${key}` }))));
  }
}
