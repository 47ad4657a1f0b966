// How good the model is: every class, every confusion and the surest errors, each one click from its samples.

import { ask } from "./api.js";
import { complain, element, page } from "./dom.js";
import { gallery } from "./gallery.js";
import { interval, number, percent } from "./text.js";
import { link } from "./url.js";

const MOST = 20; // lines of a table that are shown at once

const samples = (told, filter, words) =>
  (filter.length ? element("a", { href: link("samples", { split: told.split, filter }) }, words) : words);

function table(caption, heads, rows) {
  const line = (cells, index) => element("tr", { hidden: index >= MOST }, element("th", { scope: "row" }, cells[0]),
    cells.slice(1).map((cell) => element("td", { class: "number" }, cell)));
  const body = element("tbody", {}, rows.map(line));
  const more = rows.length > MOST && element("button", {
    type: "button",
    on: { click: () => [...body.rows].forEach((row) => { row.hidden = false; }) || more.remove() },
  }, `All ${number(rows.length)}`);
  return element("section", {}, element("h2", {}, caption), element("table", {},
    element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))), body), more || null);
}

const classes = (told) => table("Classes, the worst first", ["Class", told.measure, "95 % interval", "Inputs"],
  told.classes.map((one) => [samples(told, one.filter, one.name), percent(one.accuracy), interval(one.low, one.high, percent), number(one.inputs)]));

const title = (told) => {
  if (told.measure === "IoU") return "The least overlap first";
  return told.sort ? "Errors, the surest first" : "Errors";
};

const confusions = (told) => table("Confusions, the most frequent first", ["Label → prediction", "Inputs"],
  told.confusions.map((one) => [samples(told, one.filter, `${one.target} → ${one.prediction}`), number(one.inputs)]));

async function load() {
  const told = await ask("/performance");
  page().append(element("h1", {}, "How good is the model?"), element("p", {}, told.answer),
    element("div", { class: "columns" }, told.classes.length ? classes(told) : null, told.confusions.length ? confusions(told) : null),
    ...(told.errors ? [gallery({ title: title(told), split: told.split, filter: told.errors, sort: told.sort })] : []));
}

load().catch(complain);
