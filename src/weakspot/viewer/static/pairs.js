// Classes that the model may confuse, pair by pair, with the images that it confused.

import { address, ask } from "./api.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { facts, strip } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { gallery } from "./gallery.js";
import { bind } from "./keys.js";
import { number, percent } from "./text.js";
import { urlState } from "./url.js";
import { zoom } from "./zoom.js";

const state = urlState({ first: "", second: "" });
const chooser = new Chooser({ label: "Pairs of classes", describe, chosen: (index) => choose(response.pairs[index]) });
const detail = element("section", { class: "main scrolled", tabindex: 0, "aria-label": "The pair" });
let response;

page().append(element("h1", { class: "unseen" }, "Confused pairs"), element("div", { class: "surface" }, chooser.node, detail));

const rate = (value) => (value === null || value === undefined ? "unknown" : percent(value));

/** A suspicion, and whether labels confirm it where there are any. */
const suspected = (what, truly) => {
  const checked = truly === undefined || truly === null ? "" : truly ? ", labels confirm it" : ", labels do not confirm it";
  return `suspected of ${what}${checked}`;
};

function describe(pair) {
  const marks = [
    pair.confused && suspected("confusion", pair.truly_confused),
    pair.biased && suspected("unequal treatment", pair.truly_biased),
  ].filter(Boolean).join("; ");
  return [
    element("strong", {}, `${pair.first} / ${pair.second}`),
    element("span", { class: "quiet" }, `confused: ${rate(pair.first_taken_for_second)} and ${rate(pair.second_taken_for_first)}`),
    marks && element("span", { class: "quiet" }, marks),
  ];
}

function choose(pair) {
  const { first, second } = state.values;
  const fresh = first && (first !== pair.first || second !== pair.second);
  state.set({ first: pair.first, second: pair.second }, { push: Boolean(fresh) });
  detail.scrollTop = 0;
  fill(detail, element("h2", {}, `${pair.first} and ${pair.second}`), known(pair), pictures(pair),
    direction(pair.first, pair.second, pair.filters.first_as_second), direction(pair.second, pair.first, pair.filters.second_as_first));
}

/** Of several labels none is taken for another: one is predicted beside the other. */
const taken = (first, second) =>
  (response.several_labels ? `Both predicted where ${first} is and ${second} is not` : `${first} taken for ${second}`);

const known = (pair) => facts([
  [taken(pair.first, pair.second), rate(pair.first_taken_for_second)],
  [taken(pair.second, pair.first), rate(pair.second_taken_for_first)],
  "distance" in pair && ["Distance between their activations", number(pair.distance)],
  ["Reported as confused", pair.confused ? `yes${"certainty" in pair ? `, certainty ${percent(pair.certainty)}` : ""}` : "no"],
  "soft_confusion" in pair && ["Mean probability given to the other class", percent(pair.soft_confusion)],
  "outputs_confused" in pair && ["Reported from the outputs alone", `${pair.outputs_confused ? "yes" : "no"}, rank ${number(pair.soft_confusion_rank)}`],
  "average_bias" in pair && ["Average bias", number(pair.average_bias)],
  pair.worst_beside && ["Most unequal distance to", pair.worst_beside],
]);

function pictures(pair) {
  const source = ({ number: place, version }) => address(`/media/${encodeURIComponent(response.finding)}/${place}`, { v: version });
  const open = (at) => zoom({
    count: pair.pictures.length, at, source: (index) => source(pair.pictures[index]),
    caption: (index) => pair.pictures[index].caption,
  });
  return pair.pictures.map((one, index) =>
    strip({ source: source(one), caption: one.caption, label: `Enlarge picture ${index + 1}`, open: () => open(index) }));
}

function direction(target, predicted, filter) {
  const title = response.several_labels ? `With ${target}, and ${predicted} predicted` : `${target}, taken for ${predicted}`;
  return filter && gallery({ title, split: response.split, filter });
}

async function load() {
  response = await ask("/pairs");
  const { first, second } = state.values;
  const at = response.pairs.findIndex((pair) => pair.first === first && pair.second === second);
  if (!response.pairs.length) fill(detail, element("p", {}, "There is no pair of classes to compare."));
  chooser.show(response.pairs, Math.max(0, at));
}

bind(chooserKeys(chooser, "pair"));
state.on(() => load().catch(complain));
load().catch(complain);
