// All that is known of one sample, with links to where else it turns up.

import { answer } from "./answers.js";
import { button } from "./controls.js";
import { element, fill } from "./dom.js";
import { filterText } from "./filters.js";
import { number } from "./text.js";
import { link } from "./url.js";

/** Whether this Run has a page: the navigation lists those that it has. */
export const hasPage = (name) => Boolean(document.querySelector(`nav[aria-label="Pages"] a[href^="/${name}"]`));

export class SamplePanel {
  /** `filtered(text)` is called with a filter that the user asks for; `open` and `mark` enlarge and select. */
  constructor({ filtered, open, mark }) {
    this.filtered = filtered;
    this.canvas = element("canvas", { class: "preview", width: 64, height: 64, "aria-hidden": "true" });
    this.body = element("div", { class: "values" });
    this.mark = button("Select", mark, { key: "Space", "aria-pressed": "false" });
    this.node = element("aside", { class: "panel", tabindex: 0, "aria-label": "The sample" }, this.canvas,
      element("div", { class: "bar" }, button("Enlarge", open, { key: "Enter" }), this.mark), this.body);
  }

  /** Show the sample at an index of the listing; what has not arrived yet stays empty, or as it was. */
  show(listing, index, selected) {
    this.node.hidden = !listing.count;
    if (!listing.count) return;
    this.mark.setAttribute("aria-pressed", selected);
    listing.pictures.draw(this.canvas, index);
    const row = listing.row(index);
    if (row) fill(this.body, this.#facts(listing, row));
  }

  #facts(listing, row) {
    return [
      element("h2", {}, row.id),
      element("p", { class: "quiet" }, answer(listing, row)),
      element("ul", { class: "links" }, this.#links(listing, row).map((one) => element("li", {}, one))),
      element("table", {}, element("caption", {}, "Values"),
        element("tbody", {}, listing.columns.map((column, place) => this.#line(column, row.values[place])))),
    ];
  }

  #links(listing, row) {
    const cluster = listing.value(row, "cluster") ?? listing.value(row, "causes.root_causes.cluster");
    const cause = listing.value(row, "slice") ?? listing.value(row, "causes.error_slices.slice");
    const place = listing.value(row, "x");
    const shown = listing.value(row, "answers");
    const known = (value) => value !== null && value !== undefined;
    return [
      hasPage("causes") && known(cause) && element("a", { href: link("causes", { cause }) }, `Root cause ${cause}`),
      hasPage("clusters") && known(cluster) && cluster > 0
        && element("a", { href: link("clusters", { cluster, member: row.id }) }, `Error cluster ${cluster}`),
      hasPage("weak") && known(shown) && element("a", { href: link("weak", { id: row.id }) }, "Its neighbours"),
      hasPage("map") && known(place) && element("a", { href: link("map", { sample: row.position }) }, "Place on the map"),
      hasPage("compare") && element("a", { href: link("compare", { search: row.id }) }, "Before and after"),
    ].filter(Boolean);
  }

  #line(column, value) {
    const label = element("th", { scope: "row", title: column.about || null }, column.label);
    const known = value !== null && value !== undefined && value !== "";
    if (!known || column.kind === "number") return element("tr", {}, label, element("td", {}, number(value)));
    const plain = typeof value === "boolean" ? number(value) : value;
    const only = () => this.filtered(filterText(column.name, "is", plain));
    const hint = `Only samples where ${column.label} is ${plain}`;
    return element("tr", {}, label,
      element("td", {}, button(plain, only, { class: "value", title: hint })));
  }
}
