// Small parts that many pages have.

import { element } from "./dom.js";

/** A button that runs something, with the key that does the same. */
export const button = (text, run, { key, ...attributes } = {}) =>
  element("button", { type: "button", ...attributes, on: { click: run } }, text, key && [" ", element("kbd", {}, key)]);

/** A control with its name before it. */
export const field = (label, control) => element("label", { class: "field" }, element("span", {}, label), control);

/** Names with what is known; null and false leave an entry out. */
export const facts = (entries) => element("dl", { class: "facts" }, entries.filter(Boolean).map(([name, ...told]) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, told))));

/** A picture that a click enlarges, with the sentence that belongs under it. */
export const strip = ({ source, caption, label, open }) => element("figure", { class: "strip" },
  button(element("img", { src: source, alt: "" }), open, { class: "bare", "aria-label": label }),
  element("figcaption", {}, caption));
