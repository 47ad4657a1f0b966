// Inputs whose small variations are predicted incorrectly, each beside these variations; without labels, those predicted differently.

import { address, ask } from "./api.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { strip } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { gallery } from "./gallery.js";
import { bind } from "./keys.js";
import { counted, number, percent } from "./text.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const state = urlState({ id: "" });
const chooser = new Chooser({ label: "Weak inputs", describe, chosen: (index) => choose(response.strips[index]) });
const shown = element("div", {});
const more = element("div", {});
let response;

page().append(element("h1", { class: "unseen" }, "Weak inputs"), element("div", { class: "surface" }, chooser.node,
  element("section", { class: "main scrolled", tabindex: 0, "aria-label": "The input and its neighbours" }, shown, more)));

function describe(one) {
  return [element("strong", {}, one.id), element("span", { class: "quiet" }, drawn(one))];
}

/** How many of the looks in the picture are correct. */
function drawn({ correct_looks: correct, looks }) {
  return looks === undefined ? counted(correct, "correct look") : `${correct} of ${looks} looks correct`;
}

/** Neighbour accuracy is of the looks that were needed; the picture may show others, too. */
function measured({ looks, looks_used: used, neighbour_accuracy: accuracy }) {
  if (looks === undefined) return null;
  return element("p", { class: "quiet" }, `Neighbour accuracy ${percent(accuracy)}, of the ${counted(used, "look")} until it was clear that the input is weak. `
    + `The picture shows ${number(looks)}: the input itself first, framed in blue where the prediction is correct, in orange where it is not.`);
}

function choose(one) {
  state.set({ id: one.id }, { push: Boolean(state.values.id) && state.values.id !== one.id });
  const all = one.position !== null && link("samples", { split: response.split, sample: one.position });
  const open = () => enlarge(chooser.at);
  fill(shown, element("h2", {}, one.id),
    one.picture && strip({ source: source(one), caption: one.picture.caption, label: `Enlarge ${one.id}`, open }),
    measured(one),
    all && element("p", {}, element("a", { href: all }, "All its values")));
}

const source = (one) => address(`/media/${encodeURIComponent(response.finding)}/${one.picture.number}`, { v: one.picture.version });

function enlarge(at) {
  const pictured = response.strips.filter((one) => one.picture);
  if (!pictured.length) return;
  zoom({
    count: pictured.length, at: Math.max(0, pictured.indexOf(response.strips[at])), source: (index) => source(pictured[index]),
    caption: (index) => pictured[index].picture.caption, moved: (index) => chooser.choose(response.strips.indexOf(pictured[index])),
  });
}

async function load() {
  response = await ask("/weak");
  const at = response.strips.findIndex(({ id }) => id === state.values.id);
  if (!response.strips.length) fill(shown, element("h2", {}, "Weak inputs"), element("p", { class: "quiet" }, "The Run has no pictures of neighbours: ask robustness with analysis: true."));
  chooser.node.hidden = !response.strips.length;
  chooser.show(response.strips, Math.max(0, at));
  const rest = { split: response.split, sort: response.sort };
  fill(more,
    response.fragile && gallery({ title: "Fragile: weak, but predicted correctly when not perturbed", filter: response.fragile, ...rest }),
    response.filters.length ? gallery({ title: "All weak inputs, the weakest first", filter: response.filters, ...rest }) : null,
    response.differing.map(({ filters, ...one }) => gallery({
      title: `${one.split}: predicted differently when varied, those that differ most first (no label needed)`, filter: filters, ...one })));
}

bind([
  ...chooserKeys(chooser, "input"),
  { keys: ["Enter"], does: "enlarge", group: "List", run: () => enlarge(chooser.at) },
]);
state.on(() => load().catch(complain));
load().catch(complain);
