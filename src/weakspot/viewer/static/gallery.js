// The first samples of a selection as small pictures, with a link to all of them.

import { answerLines } from "./answers.js";
import { button } from "./controls.js";
import { complain, element, fill } from "./dom.js";
import { listed, Listing } from "./listing.js";
import { counted, number } from "./text.js";
import { link } from "./url.js";
import { zoom } from "./zoom.js";

const MOST = 24;

/** A section that fills itself: the samples of a split that `filter` and `sort` leave, under a heading, each with the
    values of the column it is sorted by and of those `beside` it. */
export function gallery({ title, split, filter = [], sort = "", beside = [] }) {
  const body = element("div", {});
  const section = element("section", { class: "gallery" }, element("h3", {}, title), body);
  show(body, { split, filter, sort }, beside).catch(complain);
  return section;
}

const labelOf = ({ columns }, name) => (columns.find((column) => column.name === name)?.label ?? name).replace(/ \(.*\)$/, "").toLowerCase();

async function show(body, query, beside) {
  const found = await listed(query);
  const order = found.order.slice(0, MOST);
  if (!order.length) return fill(body, element("p", { class: "quiet" }, "No sample of this kind."));
  const cells = Array.from(order, () => element("canvas", { width: found.pictures.width || 1, height: found.pictures.height || 1 }));
  const words = Array.from(order, () => element("span", {}));
  const listing = new Listing({ ...found, order, arrived: draw });
  const open = (at) => zoom({
    count: order.length, at, source: (index) => listing.pictures.source(index),
    draw: (canvas, index) => listing.pictures.draw(canvas, index),
    caption: (index) => [listing.row(index)?.id ?? "", " · ", words[index].innerText.replaceAll("\n", ", ")],
  });

  function draw(first, end) {
    for (let index = first; index < end; index += 1) {
      const row = listing.row(index);
      listing.pictures.draw(cells[index], index);
      if (!row) continue;
      const by = [query.sort.replace(/^-/, ""), ...beside].filter(Boolean);
      const [given, label] = answerLines(listing, row);
      const values = by.map((name) => `${labelOf(found, name)} ${number(listing.value(row, name))}`);
      const lines = [label ? `✗ ${given}` : given || row.id, label, ...values].filter(Boolean);
      fill(words[index], lines.flatMap((line, at) => (at ? [element("br"), line] : [line])));
      cells[index].parentNode.setAttribute("aria-label", `Enlarge ${row.id}`);
    }
  }

  fill(body, element("ul", { class: "thumbs" }, cells.map((canvas, index) =>
    element("li", {}, button(canvas, () => open(index), { "aria-label": "Enlarge" }), words[index]))),
    element("p", {}, element("a", { href: link("samples", { ...query }) }, `${counted(found.order.length, "sample")} in the grid`)));
  listing.near(0, order.length);
  return listing;
}
