// Search, order and filters, as controls that say what stands in the address.

import { button, field } from "./controls.js";
import { element, fill } from "./dom.js";

const OPERATORS = {
  number: [["above", "above"], ["below", "below"], ["is", "is"], ["not", "is not"]],
  text: [["is", "is"], ["not", "is not"], ["has", "contains"]],
  flag: [["is", "is"], ["not", "is not"]],
};

/** A filter as it stands in the address. */
export const filterText = (column, operator, value) => `${column}:${operator}:${value}`;

/** The parts of such a filter; columns may hold colons themselves, so the operator tells them apart. */
export function filterParts(text) {
  const found = /^(.*?):(is|not|below|above|has):([^]*)$/.exec(text);
  return found ? { column: found[1], operator: found[2], value: found[3] } : undefined;
}

/** A filter in words. */
export function filterWords(text) {
  const parts = filterParts(text);
  if (!parts) return text;
  const word = { is: "is", not: "is not", below: "<", above: ">", has: "contains" }[parts.operator];
  return `${parts.column} ${word} ${parts.value === "" ? "missing" : parts.value}`;
}

const options = (pairs, chosen) => pairs.map(([value, text]) => element("option", { value, selected: value === chosen }, text));

const named = (columns) => columns.map(({ name, label }) => [name, label]);

/** The controls; `values()` gives what is set, `changed(changes)` is called with what the user sets. */
export class Filters {
  constructor({ values, changed }) {
    Object.assign(this, { values, changed, columns: [] });
    this.search = element("input", { type: "search", placeholder: "part of the name", on: { input: () => this.#searched() } });
    this.sort = element("select", { on: { change: () => this.#sorted() } });
    this.down = button("↓", () => this.#sorted(true), { "aria-label": "Largest first" });
    this.chips = element("div", { class: "bar", role: "group", "aria-label": "Filters" });
    this.node = element("div", { class: "bar" }, field("Search", this.search),
      element("span", { class: "field" }, field("Order", this.sort), this.down), this.#adding(), this.chips);
  }

  /** Show what is set now, with the columns that there are. */
  show(columns) {
    const { search, sort, filter } = this.values();
    const names = columns.map((column) => column.name).join("\n");
    if (names !== this.known) {
      this.known = names;
      this.columns = columns;
      fill(this.column, options(named(columns)));
      this.#asked();
    }
    if (document.activeElement !== this.search) this.search.value = search;
    const by = sort.replace(/^-/, "");
    fill(this.sort, options([["", "as in the data"], ["id", "name"], ...named(columns)], by));
    this.down.setAttribute("aria-pressed", sort.startsWith("-"));
    this.down.disabled = !sort;
    fill(this.chips, filter.map((text) => this.#chip(text)));
    this.chips.hidden = !filter.length;
  }

  #chip(text) {
    const remove = () => this.changed({ filter: this.values().filter.filter((other) => other !== text) });
    const words = filterWords(text);
    return element("span", { class: "chip" }, words, button("✕", remove, { "aria-label": `Remove the filter ${words}` }));
  }

  #adding() {
    this.column = element("select", { "aria-label": "Column to filter by", on: { change: () => this.#asked() } });
    this.operator = element("select", { "aria-label": "Condition" });
    this.place = element("span", {});
    const add = element("button", {}, "Add");
    return element("form", { class: "field", on: { submit: (event) => this.#added(event) } },
      element("span", {}, "Filter"), this.column, this.operator, this.place, add);
  }

  /** Offer the conditions and values that the chosen column can have. */
  #asked() {
    const column = this.columns.find(({ name }) => name === this.column.value);
    if (!column) return;
    fill(this.operator, options(OPERATORS[column.kind]));
    fill(this.place, this.#valueOf(column));
  }

  #valueOf(column) {
    const label = { "aria-label": "Value" };
    if (column.kind === "flag") return (this.value = element("select", label, options([["yes", "yes"], ["no", "no"]])));
    if (column.kind === "number") {
      const hint = column.low === null || column.low === undefined ? "" : `${short(column.low)} … ${short(column.high)}`;
      return (this.value = element("input", { ...label, type: "number", step: "any", placeholder: hint, required: true }));
    }
    const list = element("datalist", { id: "filter-values" }, (column.values ?? []).map((value) => element("option", { value })));
    this.value = element("input", { ...label, list: "filter-values", autocomplete: "off", required: true });
    return [this.value, list];
  }

  #added(event) {
    event.preventDefault();
    const text = filterText(this.column.value, this.operator.value, this.value.value);
    const before = this.values().filter;
    if (!before.includes(text)) this.changed({ filter: [...before, text] });
  }

  #searched() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.changed({ search: this.search.value }), 120);
  }

  #sorted(turn = false) {
    const down = (this.down.getAttribute("aria-pressed") === "true") !== turn;
    this.changed({ sort: this.sort.value ? (down ? "-" : "") + this.sort.value : "" });
  }
}

const short = (value) => String(+value.toPrecision(3));
