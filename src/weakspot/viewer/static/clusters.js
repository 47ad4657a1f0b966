// Clusters of errors with alike heat maps, each as a contact sheet with and without heat.

import { address, ask, askBlob } from "./api.js";
import { Blocks } from "./blocks.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { button, facts } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { Grid, gridKeys, partsOf } from "./grid.js";
import { bind } from "./keys.js";
import { tallFor } from "./layout.js";
import { Sheets } from "./pictures.js";
import { counted, interval, number, percent } from "./text.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const SHEET = 256; // members of a cluster that come at once
const state = urlState({ cluster: 0, member: "", heat: false, play: false });
let about; // of all clusters
let shown; // the chosen cluster with its members and sheets
let overlay;

const chooser = new Chooser({ label: "Clusters", describe, chosen: (index) => choose(about.clusters[index]) });
const grid = new Grid({
  label: "Members", cell: { width: 96, height: 132 }, draw, opened: enlarge, marked: enlarge,
  moved: (index) => state.set({ member: member(index)?.id ?? "" }), seen: (first, end) => near(first, end),
});
const heat = button("Heat maps", () => warm(!state.values.heat), { key: "h", "aria-pressed": "false" });
const play = button("Animate", () => animate(!state.values.play), { key: "g", "aria-pressed": "false" });
const title = element("h2", {}, "Clusters");
const factsOfCluster = element("div", { class: "cluster-facts", tabindex: 0, role: "group", "aria-label": "About the cluster" });
const samples = element("a", {}, "In the grid of samples ", element("kbd", {}, "s"));
const colours = (of) => [`Heat maps are of ${of}: `, element("span", { class: "hot" }, "red"), " speaks for it, ", element("span", { class: "cold" }, "blue"), " against it."];
const legend = element("p", { class: "quiet", hidden: true }, colours("the class that was predicted"));
const moving = element("img", { class: "moving", alt: "The members one after another" });

page().append(element("h1", { class: "unseen" }, "Error clusters"), element("div", { class: "surface" }, chooser.node,
  element("section", { class: "main", "aria-label": "The cluster" },
    element("div", { class: "bar" }, title, heat, play, samples), factsOfCluster, legend, element("div", { class: "beside" }, moving, grid.node))));

function describe(cluster) {
  return [
    element("strong", {}, `Cluster ${cluster.cluster}`), ` · ${counted(cluster.images, "image")}, ${percent(cluster.share)}`,
    element("span", { class: "quiet" }, cluster.errors ?? ""),
    cluster.shared ? element("span", { class: "quiet" }, `Shared: ${cluster.shared}`) : null,
  ];
}

async function load() {
  about = await ask("/clusters");
  heat.hidden = !about.heat;
  legend.hidden = !about.heat;
  const wanted = about.clusters.findIndex(({ cluster }) => cluster === state.values.cluster);
  if (!about.clusters.length) {
    title.textContent = "There is no cluster: the model made no errors, or none alike.";
    for (const part of [heat, play, samples, factsOfCluster, moving, grid.node]) part.hidden = true;
  }
  chooser.show(about.clusters, Math.max(0, wanted));
}

function choose(cluster) {
  const again = state.values.cluster === cluster.cluster || !state.values.cluster;
  state.set(again ? { cluster: cluster.cluster } : { cluster: cluster.cluster, member: "" }, { push: !again });
  tell(cluster);
  shown?.rows.stop();
  shown?.sheets.stop();
  const load = async (first, end, signal) =>
    (await ask(`/clusters/${cluster.cluster}`, { offset: first, limit: end - first }, signal)).members;
  shown = {
    cluster,
    rows: new Blocks({ count: cluster.images, load, arrived, failed: complain, size: SHEET }),
    sheets: sheetsOf(cluster),
  };
  grid.shape({ width: 96, height: tallFor(about.pictures, 4) });
  grid.show(cluster.images, 0);
  if (state.values.member) find(shown, state.values.member);
  animate(state.values.play);
  warm(state.values.heat);
}

function tell(cluster) {
  title.textContent = `Cluster ${cluster.cluster}`;
  samples.hidden = !about.split;
  samples.href = link("samples", { split: about.split, filter: [`cluster:is:${cluster.cluster}`] });
  fill(factsOfCluster, facts([
    ["Images", `${number(cluster.images)}, ${percent(cluster.share)} of the errors`],
    cluster.low !== undefined && ["Interval of that share", interval(cluster.low, cluster.high, percent)],
    cluster.stability !== undefined && ["Stability", `${number(cluster.stability)}${cluster.stable === false ? ", not stable" : ""}`],
    ["Errors", cluster.errors || "–"], ["Shared", cluster.shared || "nothing found"],
  ]));
}

function sheetsOf({ cluster, images }, until) {
  const { heat: hot } = state.values;
  const sheet = (first, _, signal) =>
    askBlob(`/clusters/${cluster}/sheet`, { heat: hot, offset: first, v: about.pictures.version }, signal);
  return new Sheets({ about: about.pictures, count: images, sheet, arrived, size: SHEET, until });
}

/** Go to the member of that name, which may not have arrived yet. */
async function find(mine, id) {
  const { members } = await ask(`/clusters/${mine.cluster.cluster}`);
  const at = members.findIndex((one) => one.id === id);
  if (shown === mine && at >= 0) grid.go(at);
}

function member(index) {
  const found = shown.rows.at(index);
  return found?.block[found.place];
}

function near(first, end) {
  shown?.rows.near(first, end);
  shown?.sheets.near(first, end);
}

function draw(cell, index) {
  const [canvas, one, label, two] = partsOf(cell, ["one", "label", "two"]);
  const drawn = shown.sheets.draw(canvas, index);
  const row = member(index);
  const [target, given] = row?.kind.split(" → ") ?? [""];
  one.textContent = given ?? target; // neither the predicted class nor the label is cut away
  label.textContent = given === undefined ? "" : `is ${target}`;
  cell.classList.toggle("both", given !== undefined);
  two.textContent = row && index === 0 ? "most typical" : "";
  cell.title = row ? `${row.id}\n${row.kind}` : "";
  cell.dataset.ready = drawn && row ? "1" : "0";
}

function arrived(first, end) {
  for (let index = first; index < end; index += 1) grid.redraw(index);
  overlay?.redraw();
}

function warm(hot) {
  const changed = hot !== state.values.heat;
  state.set({ heat: hot });
  heat.setAttribute("aria-pressed", hot);
  if (!changed || !shown) return;
  shown.sheets.stop();
  shown.sheets = sheetsOf(shown.cluster, shown.sheets);
  near(grid.at, grid.at + 1);
  grid.redraw();
  animate(state.values.play);
}

function animate(on) {
  state.set({ play: on });
  play.setAttribute("aria-pressed", on);
  const path = on ? "animation" : "mean";
  moving.hidden = !about.pictures.width || (!on && !about.heat);
  moving.alt = on ? "The members one after another" : "Mean heat map over the mean image";
  const asked = { heat: on ? state.values.heat : null, v: about.pictures.version };
  if (!moving.hidden) moving.src = address(`/clusters/${shown.cluster.cluster}/${path}`, asked);
}

function enlarge(at) {
  if (!about.pictures.width) return;
  const source = (index, hot) => {
    const one = member(index);
    return one ? address(`/clusters/picture/${one.place}`, { heat: hot, v: about.pictures.version }) : "";
  };
  overlay = zoom({
    count: shown.cluster.images, at, warm: state.values.heat,
    draw: (canvas, index) => shown.sheets.draw(canvas, index),
    source: (index) => source(index, null),
    heat: about.heat ? (index) => source(index, true) : undefined,
    caption: (index) => captionOf(member(index)),
    legend: (index) => colours(predicted(member(index)?.kind)),
    moved: (index) => grid.go(index),
    heated: warm,
    closed: () => {
      overlay = undefined;
      grid.node.focus();
    },
  });
}

/** The class that an error was taken for, of which the heat map is. */
const predicted = (kind = "") => (kind.split(" → ").length === 2 ? `the predicted class, ${kind.split(" → ")[1]}` : "the class that was predicted");

const captionOf = (one) =>
  (one ? [element("strong", {}, one.id), ` · ${one.kind} · distance of its heat map from the most typical member ${number(one.distance)}`] : "");

bind([
  ...chooserKeys(chooser, "cluster"),
  { keys: ["h"], does: "heat maps on and off", group: "Cluster", run: () => about.heat && warm(!state.values.heat) },
  { keys: ["g"], does: "animation on and off", group: "Cluster", run: () => animate(!state.values.play) },
  ...gridKeys(grid, "Cluster"),
  { keys: ["s"], does: "its samples in the grid", group: "Cluster", run: () => samples.hidden || samples.click() },
]);

state.on(() => load().catch(complain));
load().catch(complain);
