// Labelling, cluster by cluster: a key per answer, the next image at once, everything can be undone.

import { AnswerPanel } from "./answer_panel.js";
import { address, ask, send, sendFile } from "./api.js";
import { Chooser } from "./chooser.js";
import { announce, complain, element, fill, page } from "./dom.js";
import { bind } from "./keys.js";
import { Labels, meant } from "./labels.js";
import { OwnKeys } from "./own_keys.js";
import { picture as pictureOf } from "./pictures.js";
import { counted, number } from "./text.js";
import { Undo, undoKeys } from "./undo.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const AROUND = 15; // neighbours that are shown
const ERRORS = 12; // members of the cluster that are shown
const UNUSABLE = "unusable"; // the label of an image that shows nothing
const state = urlState({ image: "", of: "" });
const undo = new Undo(changed);
let about; // what a label may be, and where pictures are
let labels;
let panel;
let at = 0; // the image at hand

const button = (text, key, run) => element("button", { type: "button", on: { click: run } }, text, key && [" ", element("kbd", {}, key)]);
const progress = element("progress", { max: 1, value: 0, "aria-label": "Labelled" });
const total = element("strong", {});
const saved = element("span", { class: "quiet" }, "");
const undoButton = button("Undo", "u", () => undo.undo());
const redoButton = button("Redo", "Ctrl ⇧ Z", () => undo.redo());
const file = element("input", { type: "file", accept: ".csv,text/csv", hidden: true, "aria-label": "CSV file with labels", on: { change: imported } });
const tools = element("div", { class: "bar" }, progress, total, saved, undoButton, redoButton, button("Next unlabelled", "n", goOn),
  button("Import CSV", null, () => file.click()), file, element("a", { class: "button", href: address("/label/export.csv"), download: "labels.csv" }, "Export CSV"));

const chooser = new Chooser({ label: "Clusters", describe, chosen: (index) => enter(labels.clusters[index]) });
const large = element("img", { class: "large", alt: "", width: 1, height: 1 });
const caption = element("figcaption", {});
const prediction = element("p", { class: "prediction", "aria-live": "polite" });
const predictionButton = button("Model's prediction", "g", showPrediction);
const neighbours = element("ul", { class: "strip-of-images", "aria-label": "Images of this cluster" });
const errors = element("ul", { class: "strip-of-images small" });
const ofErrors = element("section", { class: "errors", hidden: true, "aria-label": "Errors of this cluster" },
  element("h2", {}, "Errors of this cluster"), errors);
const alike = element("ul", { class: "thumbs small" });
const ofTraining = element("section", { class: "alike", hidden: true, "aria-label": "Training images most alike" },
  element("h2", {}, "Training images that look most alike"), alike);
const side = element("div", { class: "side" });
const all = element("div", { class: "surface labelling", hidden: true }, chooser.node,
  element("section", { class: "at-hand", "aria-label": "Image" }, element("figure", {}, element("div", { class: "stage" }, large), caption), neighbours, ofErrors), side);
const none = element("p", { class: "caution", hidden: true }, "There is nothing to label: choose images with `weakspot causes select`.");
const which = element("p", { class: "quiet", hidden: true });

page().append(element("h1", { class: "unseen" }, "Label"), tools, none, which, all);

function describe({ number: name, places }) {
  return [element("strong", {}, about.plan ? "In the order of the plan" : `Cluster ${name}`), element("span", { class: "quiet counts" }, ""), element("progress", { max: places.length, value: 0, "aria-label": `Labelled of cluster ${name}` })];
}

async function load() {
  about = await ask("/label");
  labels = new Labels(about.images);
  none.hidden = labels.count > 0;
  all.hidden = !labels.count;
  if (!labels.count) return;
  if (!panel) offerAnswers();
  showLists();
  const wanted = labels.places.get(state.values.image);
  if (state.values.image && wanted === undefined) complain(`There is no image ${state.values.image} to label; the next one without a label is shown.`);
  at = wanted ?? labels.unlabelled(labels.order.at(-1)) ?? labels.order[0];
  chooser.show(labels.clusters, labels.clusterAt(at));
  show();
  changed();
}

function offerAnswers() {
  panel = new AnswerPanel({ ...about, given: answer, left: () => all.focus() });
  const own = new OwnKeys({ given: answer, meant: typed });
  fill(side, panel.node, element("div", { class: "bar" }, ...(about.plan ? [] : [button("Unusable", "x", () => answer(UNUSABLE))]), button("Skip", "s", skip), button("No label", "⌫", () => answer(null)), predictionButton),
    prediction, ofTraining, own.node);
  bind(panel.bindings);
}

/** What the labels are for, and the other lists of images to label. */
function showLists() {
  const here = state.values.of || about.lists[0];
  const others = about.lists.filter((name) => name !== here).map((name) => [element("a", { href: link("label", { of: name }) }, name === "causes.unsafe" ? "Images near the clusters of errors" : "Few labels for the accuracy"), " "]);
  which.hidden = !about.plan && !others.length;
  fill(which, about.plan ? "Label in this order, the difficult ones too; you may stop early. Then `weakspot classes label RUN` tells the accuracy on all inputs. " : "", ...others.flat());
}

/** The label that a text stands for: of classes the first that it may mean. */
function typed(text) {
  const wanted = text.trim();
  if (!wanted || wanted === UNUSABLE || about.task !== "classification") return wanted || undefined;
  return meant(about.classes, wanted)[0];
}

/** The picture at hand with what belongs to it. */
function show() {
  const { id, cluster, distance, label } = labels;
  state.set({ image: id[at] });
  large.hidden = !about.pictures;
  if (about.pictures) large.src = picture(at);
  large.alt = `Image ${id[at]}`;
  fill(caption, element("strong", {}, id[at]), " · ",
    element("span", { class: "given" }, label[at] === null ? "no label yet" : `labelled ${label[at]}`), about.plan ? "" : ` · cluster ${cluster[at]}`);
  caption.title = about.plan ? "" : `Distance of its heat map from that of the nearest error of the cluster: ${number(distance[at])}`;
  fill(prediction);
  panel.show(label[at]);
  showNeighbours();
  if (about.pictures) showAlike(at).catch(complain);
  if (about.pictures) for (const by of [1, 2, 3, -1]) new Image().src = picture(labels.stepped(at, by));
}

/** Training images that look like the one at hand, with their labels. */
async function showAlike(place) {
  const { nearest } = await ask(`/label/nearest/${place}`);
  if (place !== at) return;
  ofTraining.hidden = !nearest;
  fill(alike, (nearest?.images ?? []).map(({ position, id, label }) => element("li", {},
    element("a", { href: link("samples", { split: nearest.split, sample: position }), title: id },
      element("img", { src: pictureOf(nearest.split, position, nearest.pictures.version), alt: id })), element("span", {}, label ?? ""))));
}

function showNeighbours() {
  fill(neighbours, labels.around(at, AROUND).map(neighbour));
  const own = neighbours.querySelector("[aria-current]");
  if (own) neighbours.scrollLeft = own.offsetLeft - neighbours.offsetLeft - (neighbours.clientWidth - own.offsetWidth) / 2;
}

const picture = (place) => address(`/label/picture/${place}`, { v: about.version });

function neighbour(place) {
  const words = labels.label[place] ?? "–";
  return element("li", {}, element("button", { type: "button", "aria-current": place === at ? "true" : null, "aria-label": `${labels.id[place]}, ${labels.label[place] === null ? "no label" : `labelled ${words}`}`,
    class: labels.label[place] === null ? "" : "done", on: { click: () => go(place) } },
  about.pictures ? element("img", { src: picture(place), alt: "", width: 56, height: 56 }) : labels.id[place], element("span", {}, words)));
}

function go(place) {
  if (place === at || place === undefined) return;
  at = place;
  chooser.choose(labels.clusterAt(at));
  show();
}

/** A cluster was chosen: its first image without a label, and the errors it stands for. */
function enter({ number: name, places }) {
  if (!places.includes(at)) {
    at = places.find((place) => labels.label[place] === null) ?? places[0];
    show();
  }
  if (about.causes) showErrors(name).catch(complain);
}

async function showErrors(cluster) {
  const response = await ask(`/clusters/${cluster}`, { limit: ERRORS });
  if (cluster !== labels.cluster[at]) return;
  ofErrors.hidden = !response.picture || !response.members.length;
  fill(errors, response.members.map(({ place, id }) => element("li", {}, element("img", { src: address(`/clusters/picture/${place}`), alt: `Error ${id}`, width: 56, height: 56 }))),
    element("li", {}, element("a", { href: link("clusters", { cluster }) }, "all")));
}

// answering
function answer(label) {
  const name = labels.id[at];
  if (label === null && labels.label[at] === null) return announce("There is no label to remove");
  const step = change({ [name]: label }, label === null ? `${name} without a label` : `${name} is ${label}`);
  if (label !== null) goOn();
  return step;
}

/** Set labels here at once, and on the server as soon as it can. */
function change(given, says) {
  const before = labels.of(Object.keys(given));
  apply(given);
  return undo.perform({ says, forward: () => store(given, before), back: () => store(before, given), shown: () => go(labels.places.get(Object.keys(given)[0])) });
}

async function store(given, before) {
  apply(given);
  try {
    apply((await send("PUT", "/label", { labels: given, before })).labels);
  } catch (error) {
    apply(before);
    if (error.status === 409) apply(await fresh()); // somebody else labelled it meanwhile
    go(labels.places.get(Object.keys(given)[0]));
    throw error;
  }
}

async function fresh() {
  const { id, label } = (await ask("/label")).images;
  return Object.fromEntries(id.map((name, place) => [name, label[place]]));
}

function apply(given) {
  labels.set(given);
  changed();
  if (labels.id[at] in given) show();
  else showNeighbours(); // one of them may have got or lost its label
}

function goOn() {
  const next = labels.unlabelled(at);
  if (next === undefined) announce("Every image has a label");
  else go(next);
}

function skip() {
  go(labels.stepped(at, 1));
}

/** Progress, and what can be undone. */
function changed() {
  if (!labels?.count) return;
  const done = labels.done();
  Object.assign(progress, { max: labels.count, value: done });
  total.textContent = `${number(done)} of ${counted(labels.count, "image")} labelled`;
  saved.textContent = undo.waiting ? "saving …" : "all on disk";
  undoButton.disabled = !undo.canUndo;
  redoButton.disabled = !undo.canRedo;
  chooser.buttons.forEach((entry, index) => {
    const { places } = labels.clusters[index];
    entry.querySelector(".counts").textContent = `${labels.done(places)} of ${places.length} labelled`;
    entry.querySelector("progress").value = labels.done(places);
  });
}

async function showPrediction() {
  const mine = at;
  if (prediction.textContent) return fill(prediction);
  try {
    const response = await ask(`/label/prediction/${mine}`);
    if (mine === at) fill(prediction, "The model predicts ", element("strong", {}, response.prediction), ".");
  } catch (error) {
    complain(error);
  }
  return undefined;
}

async function imported() {
  const [given] = file.files;
  if (!given) return;
  let response;
  const first = async () => {
    response = response ? await send("PUT", "/label", { labels: response.labels, before: response.before }) : await sendFile("/label/import", given, { name: given.name });
    apply(response.labels);
    announce(`${counted(Object.keys(response.labels).length, "label")} read from ${given.name}`);
  };
  file.value = "";
  await undo.perform({ says: `labels of ${given.name}`, forward: first, back: () => store(response.before, response.labels) });
  show();
}

function enlarge() {
  if (!about.pictures) return;
  zoom({
    count: labels.count, at: labels.rank.get(at), source: (rank) => picture(labels.order[rank]), moved: (rank) => go(labels.order[rank]),
    caption: (rank) => [element("strong", {}, labels.id[labels.order[rank]]), ` · ${labels.label[labels.order[rank]] ?? "no label yet"}`],
  });
}

bind([
  ...undoKeys(undo),
  { keys: ["ArrowRight"], does: "next image", group: "Images", run: () => go(labels.stepped(at, 1)) },
  { keys: ["ArrowLeft"], does: "previous image", group: "Images", run: () => go(labels.stepped(at, -1)) },
  { keys: ["ArrowDown"], does: "next cluster", group: "Images", run: () => chooser.step(1) },
  { keys: ["ArrowUp"], does: "previous cluster", group: "Images", run: () => chooser.step(-1) },
  { keys: ["s", "Space"], does: "skip", group: "Label", run: skip },
  { keys: ["n"], does: "next image without a label", group: "Images", run: goOn },
  { keys: ["x"], does: "label as unusable: it shows nothing that could be labelled", group: "Label", run: () => void (about.plan || answer(UNUSABLE)) },
  { keys: ["g"], does: "show or hide the model's prediction", group: "Label", run: () => void showPrediction() },
  { keys: ["Backspace", "Delete"], does: "remove the label", group: "Label", run: () => void answer(null) },
  { keys: ["Enter"], does: "enlarge", group: "Images", run: enlarge },
]);

state.on(() => go(labels.places.get(state.values.image)));
// another page or command may have labelled meanwhile
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && labels && !undo.waiting) fresh().then(apply).catch(complain);
});
addEventListener("beforeunload", (event) => undo.waiting && event.preventDefault());
load().catch(complain);
