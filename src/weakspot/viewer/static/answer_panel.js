// How an image is labelled: up to ten classes by a key each, more by typing; several labels or numbers in a field.

import { element, fill } from "./dom.js";
import { meant } from "./labels.js";

const KEYS = 10;
const OFFERED = 8;

export class AnswerPanel {
  /** Calls `given(text)` with a label, and `left()` when the field is left with Escape. */
  constructor({ task, classes, outputs, given, left }) {
    Object.assign(this, { task, classes, outputs, given, left, at: 0 });
    this.byKey = task === "classification" && classes.length <= KEYS;
    this.buttons = this.byKey ? classes.map((name, place) => this.#button(name, place)) : [];
    this.input = element("input", { type: "text", id: "answer", autocomplete: "off", spellcheck: "false", "aria-describedby": "answer-help",
      on: { input: () => this.#typed(), keydown: (event) => this.#key(event) } });
    this.help = element("p", { class: "quiet", id: "answer-help" }, this.#words());
    this.offers = element("ul", { class: "list offers" });
    this.node = element("section", { class: "answer", "aria-label": "Answer" },
      this.byKey ? element("ul", { class: "list" }, this.buttons.map((button) => element("li", {}, button)))
        : [element("label", { for: "answer" }, "Label ", element("kbd", {}, "/")), this.input, this.help, this.offers]);
  }

  /** Keys for the page: digits where there is one for each class, else `/` for the field. */
  get bindings() {
    if (!this.byKey) return [{ keys: ["/"], does: "type a label", group: "Label", run: () => this.input.focus() }];
    return this.classes.map((name, place) => ({ keys: [String(place)], does: `label as ${name}`, group: "Label", run: () => this.given(name) }));
  }

  /** Show the label of the image at hand. */
  show(label) {
    this.buttons.forEach((button, place) => button.setAttribute("aria-pressed", this.classes[place] === label));
    if (this.byKey) return;
    this.input.value = label ?? "";
    if (document.activeElement === this.input) this.input.select();
    this.#offer();
  }

  #button(name, place) {
    const run = () => this.given(name);
    return element("button", { type: "button", "aria-pressed": "false", on: { click: run } }, element("kbd", {}, place), " ", name);
  }

  #words() {
    if (this.task === "classification") return "Type a class or its number. Enter chooses the first match.";
    if (this.task === "multilabel") return "Separate classes with a semicolon; a semicolon alone means no class. Enter saves.";
    return this.outputs === 1 ? "Type a number. Enter saves." : `${this.outputs} numbers, separated by spaces. Enter saves.`;
  }

  /** What is typed at the moment: of several labels the last. */
  get #part() {
    return this.task === "multilabel" ? this.input.value.split(";").at(-1) : this.input.value;
  }

  #typed() {
    this.at = 0;
    this.#offer();
  }

  #offer() {
    this.found = this.classes.length ? meant(this.classes, this.#part).slice(0, OFFERED) : [];
    const entry = (name, place) => element("li", {}, element("button", { type: "button", tabindex: -1, "aria-current": place === this.at ? "true" : null,
      on: { click: () => this.#take(name) } }, name));
    fill(this.offers, this.found.map(entry));
  }

  #take(name) {
    if (this.task === "classification") return this.given(name);
    this.input.value = [...this.input.value.split(";").slice(0, -1), name].map((part) => part.trim()).filter(Boolean).join("; ") + "; ";
    this.#typed();
    return this.input.focus();
  }

  #enter() {
    const text = this.input.value.trim();
    if (!text) return;
    if (this.task === "classification") {
      if (this.found.length) this.given(this.found[this.at]);
    } else this.given(this.task === "multilabel" ? text.replace(/[;\s]+$/, "") || ";" : text);
  }

  #key(event) {
    if (event.key === "Enter") this.#enter();
    else if (event.key === "Escape") {
      this.input.blur();
      this.left();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.found.length) {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.found.length) % this.found.length;
      this.#offer();
    } else return;
    event.preventDefault();
  }
}
