// Coverage holes: first what training inputs show and no test input does, then what neither shows; with the nearest training images.

import { ask } from "./api.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { button } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { bind } from "./keys.js";
import { picture } from "./pictures.js";
import { counted, number } from "./text.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const state = urlState({ hole: 0 });
const chooser = new Chooser({ label: "Holes", describe, chosen: (index) => choose(response.holes[index]) });
const detail = element("section", { class: "main scrolled", tabindex: 0, "aria-label": "The hole" });
let response;

page().append(element("h1", { class: "unseen" }, "Coverage holes"), element("div", { class: "surface" }, chooser.node, detail));

function describe(hole) {
  return [
    element("strong", {}, `Hole ${hole.number}`),
    element("span", { class: "quiet" }, hole.training_inputs
      ? `${counted(hole.training_inputs, "training input")} and no test input`
      : "no training input either: such inputs may not exist"),
  ];
}

function choose(hole) {
  state.set({ hole: hole.number }, { push: Boolean(state.values.hole) && state.values.hole !== hole.number });
  detail.scrollTop = 0;
  fill(detail, element("h2", {}, `Hole ${hole.number}`),
    element("p", {}, hole.picture?.caption ?? `No test input reaches the combination of clusters ${hole.combination.join("-")}.`),
    element("h3", {}, "Training images nearest to it, the nearest first"), nearest(hole));
}

function nearest(hole) {
  const { split, pictures } = response;
  const source = ({ position }) => (pictures?.width && position !== null ? picture(split, position, pictures.version) : "");
  const open = (at) => zoom({
    count: hole.nearest.length, at, source: (index) => source(hole.nearest[index]),
    caption: (index) => `${hole.nearest[index].id} · distance of its activations from those of the hole ${number(hole.nearest[index].distance)}`,
  });
  if (!hole.nearest.length) return element("p", { class: "quiet" }, "There are none.");
  const image = (one) => element("img", { src: source(one), alt: "" });
  const name = ({ id, position }) =>
    (position === null ? element("span", {}, id) : element("a", { href: link("samples", { split: response.split, sample: position }) }, id));
  return element("ul", { class: "thumbs wide" }, hole.nearest.map((one, index) => element("li", {},
    source(one) && button(image(one), () => open(index), { "aria-label": `Enlarge ${one.id}` }),
    name(one))));
}

async function load() {
  response = await ask("/holes");
  const at = response.holes.findIndex((hole) => hole.number === state.values.hole);
  if (!response.holes.length) fill(detail, element("p", {}, "There are no holes: test inputs reach every combination that training inputs reach."));
  chooser.node.hidden = !response.holes.length;
  chooser.show(response.holes, Math.max(0, at));
}

bind(chooserKeys(chooser, "hole"));
state.on(() => load().catch(complain));
load().catch(complain);
