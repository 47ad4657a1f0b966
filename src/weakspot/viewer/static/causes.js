// Root causes, ranked: what errors have in common, how sure that is, and wrong images beside correct ones like them.

import { ask } from "./api.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { button, facts } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { gallery } from "./gallery.js";
import { bind } from "./keys.js";
import { picture } from "./pictures.js";
import { counted, interval, number, percent } from "./text.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const state = urlState({ cause: 0 });
const chooser = new Chooser({ label: "Root causes", describe, chosen: (index) => choose(entries[index]) });
const detail = element("section", { class: "main scrolled", tabindex: 0, "aria-label": "The root cause" });
let told;
let entries = [];

page().append(element("h1", { class: "unseen" }, "Root causes"), element("div", { class: "surface" }, chooser.node, detail));

const KINDS = { trait: "of traits", features: "of the model's features", confusion: "of the prediction" };

function describe(entry) {
  if (!entry.slice) return [element("strong", {}, "Labels to check"), element("span", { class: "quiet" }, counted(entry.examples.length, "error"))];
  return [
    element("strong", {}, entry.rule),
    element("span", { class: "quiet" }, `${percent(entry.error_rate)} wrong, elsewhere ${percent(entry.elsewhere)}`),
    element("span", { class: "quiet" }, `${entry.status} · ${counted(entry.errors, "error")} among ${counted(entry.images, "image")}`),
  ];
}

function choose(entry) {
  const place = entry.slice ?? -1;
  state.set({ cause: place }, { push: Boolean(state.values.cause) && state.values.cause !== place });
  detail.scrollTop = 0;
  if (!entry.slice) return fill(detail, ...doubtful(entry.examples));
  const { incorrect = [], correct = [], filters } = entry;
  const list = (name, title) => filters[name] && gallery({ title, split: told.split, filter: filters[name] });
  return fill(detail, element("h2", {}, entry.rule), element("p", {}, element("strong", {}, entry.status === "confirmed"
    ? "Confirmed on images that it was not found on." : "A suspicion: not confirmed on images that it was not found on."), ` A rule ${KINDS[entry.kind] ?? ""}.`),
  rates(entry),
  facts([
    entry.contrast && ["How its errors differ from correct images of the same classes", entry.contrast],
    ["Errors that it explains", number(Math.round(entry.explained))], entry.confused && ["Label → prediction", entry.confused],
  ]),
  element("div", { class: "pair-of" }, examples("Wrong", incorrect), examples("Correct, and like them", correct)),
  list("incorrect", "All its errors"), list("correct", "All its images that are predicted correctly"));
}

/** Both error rates as bars on one scale, with their intervals. */
function rates(one) {
  const line = (name, share, low, high) => {
    const value = element("div", { class: "filled" });
    value.style.width = `${100 * share}%`;
    const ends = element("div", { class: "whisker", hidden: low === null || low === undefined });
    Object.assign(ends.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%` });
    return element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "track-of" }, element("div", { class: "track" }, value, ends)),
      element("td", { class: "number" }, percent(share)), element("td", { class: "quiet ends-of" }, interval(low, high, percent)));
  };
  return element("table", { class: "rates" }, element("caption", {}, "Error rate, in the half of the images that it was not found on, with 95 % intervals"),
    element("tbody", {}, line("where it holds", one.error_rate, one.low, one.high), line("elsewhere", one.elsewhere, one.elsewhere_low, one.elsewhere_high)));
}

function examples(title, list) {
  const { pictures, split } = told;
  const source = ({ position }) => (pictures?.width ? picture(split, position, pictures.version) : "");
  const caption = ({ id, line }) => [element("strong", {}, id), line && ` · ${line}`];
  const open = (at) => zoom({ count: list.length, at, source: (index) => source(list[index]), caption: (index) => caption(list[index]) });
  const entry = (one, index) => element("li", {},
    source(one) && button(element("img", { src: source(one), alt: "" }), () => open(index), { "aria-label": `Enlarge ${one.id}` }),
    element("a", { href: link("samples", { split, sample: one.position }) }, one.id), element("span", {}, one.line));
  return list.length ? element("section", {}, element("h3", {}, title), element("ul", { class: "thumbs" }, list.map(entry))) : null;
}

const doubtful = (list) => [
  element("h2", {}, "Labels to check"),
  element("p", {}, "Their neighbours among the model's features carry the predicted label. Some labels may be wrong; most may well be right."),
  examples("Label → prediction, the clearest first", list),
];

async function load() {
  told = await ask("/causes");
  entries = [...told.causes, ...(told.doubtful.length ? [{ examples: told.doubtful }] : [])];
  const at = entries.findIndex((entry) => (entry.slice ?? -1) === state.values.cause);
  chooser.node.hidden = !entries.length;
  if (!entries.length) fill(detail, element("p", {}, told.answer || "No rule holds for unusually many errors; or the model makes too few."));
  chooser.show(entries, Math.max(0, at));
}

bind(chooserKeys(chooser, "root cause"));
state.on(() => load().catch(complain));
load().catch(complain);
