// A map that lies over the slices, the more opaque the larger its value, with a legend; off by default.

import { element } from "./dom.js";
import { number } from "./text.js";

const KINDS = { "": "none", probability: "lesion probability", entropy: "entropy" };
const MEANS = { probability: "mean probability of a lesion", entropy: "entropy of the mean, in nats" };

export class Overlay {
  /** `changed(kind)`: another one was chosen, "" for none. */
  constructor(changed) {
    this.choice = element("select", { on: { change: () => changed(this.choice.value) } }, Object.entries(KINDS).map(([value, name]) => element("option", { value }, name)));
    this.field = element("label", { class: "field" }, element("span", {}, "Overlay ", element("kbd", {}, "o")), this.choice);
    this.bar = element("div", { class: "ramp-bar dark", "aria-hidden": "true" });
    this.most = element("span", {});
    this.legend = element("div", { hidden: true }, this.bar, element("p", { class: "quiet ends" }, element("span", {}, "0"), this.most));
  }

  /** Show what is chosen; `maps` gives the largest value of each kind, null where there is none to show. */
  show(kind, maps, colour) {
    this.kind = maps && kind in maps ? kind : "";
    this.field.hidden = !maps;
    this.legend.hidden = !this.kind;
    this.choice.value = this.kind;
    this.bar.style.backgroundImage = `linear-gradient(to right, transparent, ${colour})`;
    if (this.kind) this.most.textContent = `${MEANS[this.kind]} ${number(maps[this.kind])}`;
  }

  /** The kind after the one shown, in turn. */
  get next() {
    const kinds = Object.keys(KINDS);
    return this.field.hidden ? "" : kinds[(kinds.indexOf(this.kind) + 1) % kinds.length];
  }
}
