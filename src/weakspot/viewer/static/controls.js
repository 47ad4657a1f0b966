// Small parts that many pages have.

import { element } from "./dom.js";
import { link } from "./url.js";

/** A button that runs something, with the key that does the same. */
export const button = (text, run, { key, ...attributes } = {}) =>
  element("button", { type: "button", ...attributes, on: { click: run } }, text, key && [" ", element("kbd", {}, key)]);

/** A control with its name before it. */
export const field = (label, control) => element("label", { class: "field" }, element("span", {}, label), control);

/** Names with what is known; null and false leave an entry out. */
export const facts = (entries) => element("dl", { class: "facts" }, entries.filter(Boolean).map(([name, ...values]) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, values))));

/** A Finding's numbers as a table: what each is, its value, its interval; null where there are none. */
export function numberTable(caption, summary) {
  const rows = summary.map(([, number]) => element("tr", {},
    element("th", { scope: "row" }, number.label, number.about && element("span", { class: "quiet" }, number.about)),
    element("td", {}, number.behind ? element("a", { href: link("samples", { behind: number.behind }), title: "The samples behind this number" }, number.shown) : number.shown, number.interval && element("span", { class: "quiet" }, number.interval))));
  return rows.length ? element("table", {}, element("caption", { class: "unseen" }, caption), element("tbody", {}, rows)) : null;
}

/** A picture that a click enlarges, with the sentence that belongs under it. */
export const strip = ({ source, caption, label, open }) => element("figure", { class: "strip" },
  button(element("img", { src: source, alt: "" }), open, { class: "bare", "aria-label": label }),
  element("figcaption", {}, caption));
