// The page of all samples: a grid to look through, filter, sort, select and export.

import { answer, answerLines, wrong } from "./answers.js";
import { address, ask, download, latest } from "./api.js";
import { button, field } from "./controls.js";
import { announce, complain, element, fill, page } from "./dom.js";
import { Filters } from "./filters.js";
import { Grid, gridKeys, partsOf } from "./grid.js";
import { bind } from "./keys.js";
import { tallFor } from "./layout.js";
import { within, read as readLasso } from "./lasso.js";
import { listed, Listing } from "./listing.js";
import { mapPoints } from "./points.js";
import { SamplePanel } from "./sample.js";
import { ranges, Selection, unranged } from "./selection.js";
import { counted, number } from "./text.js";
import { Undo, undoKeys } from "./undo.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const CELL = 96; // pixels that a cell is wide
const LONGEST = 1500; // characters of a selection that an address can hold
const state = urlState({ behind: "", split: "", search: "", filter: [], sort: "", lasso: "", sample: -1, selected: "", zoom: false });
const newest = latest();
const selection = new Selection(changedSelection);
const undo = new Undo();
let listing;
let overlay;

const filters = new Filters({
  values: () => state.values, changed: (changes) => asked({ ...changes, sample: -1 }, !("search" in changes)),
});
const panel = new SamplePanel({ filtered: addFilter, open: () => enlarge(grid.at), mark: () => marked(grid.at, {}) });
const grid = new Grid({
  label: "Samples", cell: { width: CELL, height: CELL }, draw, moved, opened: enlarge, marked,
  seen: (first, end) => listing?.near(first, end),
});

// what stands above the grid
const split = element("select", { on: { change: () => location.assign(link("samples", { split: split.value })) } });
const splitField = field("Split", split);
const count = element("p", { class: "quiet", role: "status" });
const empty = element("p", { class: "caution", hidden: true }, "No sample is left: remove a filter, or search for something else.");
const lassoChip = element("span", { class: "chip", hidden: true }, "chosen on the map",
  button("✕", () => asked({ lasso: "", sample: -1 }), { "aria-label": "Remove the choice made on the map" }));
const chosen = element("strong", {});
const everything = element("a", { class: "button", download: "samples.csv" }, "All shown as CSV");
const some = [button("Clear", clear, { key: "Esc" }), button("Selected as CSV", exported, { key: "e" })];
const tools = element("details", { class: "tools", open: innerWidth > 640 },
  element("summary", {}, "Search, order, filter, export"),
  element("div", { class: "bar" }, splitField, filters.node, lassoChip),
  element("div", { class: "bar" }, count, button("Select all", selectAll, { key: "Ctrl A" }), some, chosen, everything));

page().append(element("h1", { class: "unseen" }, "Samples"), tools, empty,
  element("div", { class: "surface" }, grid.node, panel.node));

/** Change what is asked for, and show it; Back leads to what was shown before, but not letter by letter. */
function asked(changes, push = true) {
  state.set(changes, { push });
  return load();
}

async function load() {
  try {
    if (state.values.behind) state.set({ ...(await ask("/behind", { number: state.values.behind })), behind: "" });
    const found = await newest(async (signal) => onMap(await listed(state.values, signal)));
    if (found) show(found);
  } catch (error) {
    complain(error);
  }
}

/** Of the samples found, those inside the lasso of the map, where there is one. */
async function onMap(found) {
  const lasso = readLasso(state.values.lasso);
  if (!lasso.length) return found;
  const points = await mapPoints();
  const inside = new Set(within(lasso, points.x, points.y).map((place) => points.position[place]));
  return { ...found, order: found.order.filter((position) => inside.has(position)) };
}

function show(found) {
  const { order } = found;
  const onlyMap = Boolean(readLasso(state.values.lasso).length);
  listing?.stop();
  listing = new Listing({ ...found, arrived });
  filters.show(found.columns);
  offerSplits(found);
  lassoChip.hidden = !onlyMap;
  count.textContent = `${number(order.length)} of ${counted(found.total, "sample")}`;
  empty.hidden = order.length > 0;
  const { search, filter, sort } = state.values;
  everything.href = address("/samples.csv", { split: found.split, search, filter, sort });
  everything.hidden = onlyMap;
  const at = Math.max(0, order.indexOf(state.values.sample));
  grid.shape({ width: CELL, height: tallFor(found.pictures, 4) });
  grid.show(order.length, at);
  detail();
  if (state.values.zoom && order.length) enlarge(grid.at);
}

function offerSplits({ split: shown, splits }) {
  fill(split, splits.map((name) => element("option", { value: name, selected: name === shown }, name)));
  splitField.hidden = splits.length < 2;
}

function draw(cell, index) {
  const [canvas, one, label, two] = partsOf(cell, ["one", "label", "two"]);
  const drawn = listing.pictures.draw(canvas, index);
  const row = listing.row(index);
  const by = state.values.sort.replace(/^-/, "");
  const lines = row ? answerLines(listing, row) : ["", ""];
  one.textContent = lines[0] || row?.id || "";
  label.textContent = lines[1];
  cell.classList.toggle("both", Boolean(lines[1]));
  two.textContent = !row ? "" : by && by !== "id" ? number(listing.value(row, by)) : row.id;
  cell.title = row ? row.id : "";
  cell.classList.toggle("wrong", Boolean(row && wrong(listing, row)));
  cell.dataset.ready = drawn && row ? "1" : "0";
  cell.ariaSelected = selection.has(listing.order[index]);
}

function arrived(first, end) {
  for (let index = first; index < end; index += 1) grid.redraw(index);
  if (grid.at >= first && grid.at < end) {
    detail();
    overlay?.redraw();
  }
}

function moved(index) {
  state.set({ sample: listing.order[index] });
  listing.near(index, index + 1);
  detail();
}

function detail() {
  panel.show(listing, grid.at, selection.has(listing.order[grid.at]));
}

// selecting
function marked(index, { shiftKey, from }) {
  const anchor = from ?? index;
  if (!shiftKey) return change("one sample", () => selection.toggle(listing.order[index]));
  const [first, last] = [Math.min(anchor, index), Math.max(anchor, index)];
  return change(counted(last - first + 1, "sample"), () => selection.add(listing.order.slice(first, last + 1)));
}

function change(what, run) {
  return undo.perform(selection.step(`selection of ${what}`, run));
}

function selectAll() {
  if (listing) return change(`all ${counted(listing.count, "sample")} shown`, () => selection.add(listing.order));
}

function clear() {
  if (selection.size) return change("nothing", () => selection.clear());
}

function changedSelection() {
  if (listing) detail();
  grid.redraw();
  chosen.textContent = selection.size ? `${number(selection.size)} selected` : "";
  for (const one of some) one.disabled = !selection.size;
  const text = ranges(selection.values());
  state.set({ selected: text.length <= LONGEST ? text : "" });
}

async function exported() {
  if (!selection.size) return announce("Nothing is selected");
  try {
    await download("/samples.csv", { positions: selection.values() }, { split: listing.split }, "selected.csv");
    announce(`${counted(selection.size, "sample")} written to selected.csv`);
  } catch (error) {
    complain(error);
  }
}

function addFilter(text) {
  if (!state.values.filter.includes(text)) asked({ filter: [...state.values.filter, text] });
}

// enlarging
function enlarge(at) {
  if (!listing?.count || overlay) return;
  if (!listing.pictures.about.width) return announce("The Run has no pictures of these samples");
  state.set({ zoom: true });
  overlay = zoom({
    count: listing.count, at, moved: (index) => grid.go(index),
    draw: (canvas, index) => listing.pictures.draw(canvas, index),
    source: (index) => (listing.row(index)?.picture === false ? "" : listing.pictures.source(index)),
    caption: (index) => caption(index),
    keys: [{ keys: ["Space"], does: "select", group: "Enlarged", run: () => toggled() }],
    closed: () => {
      overlay = undefined;
      state.set({ zoom: false });
      grid.node.focus();
    },
  });
}

function toggled() {
  return Promise.resolve(marked(grid.at, {})).then(() => overlay?.redraw());
}

function caption(index) {
  const row = listing.row(index);
  const picked = selection.has(listing.order[index]) ? " · selected ✓" : "";
  return row ? [element("strong", {}, row.id), ` · ${answer(listing, row)}${picked}`] : "";
}

bind([
  ...undoKeys(undo),
  ...gridKeys(grid, "Samples", "select or deselect"),
  { keys: ["Shift+ArrowRight", "Shift+ArrowDown"], does: "extend the selection", group: "Samples", run: () => false },
  { keys: ["Ctrl+a"], does: "select all that are shown", group: "Samples", run: () => void selectAll() },
  { keys: ["Escape"], does: "clear the selection", group: "Samples", run: () => void clear() },
  { keys: ["e"], does: "save the selection as CSV", group: "Samples", run: () => void exported() },
  { keys: ["/"], does: "search", group: "Samples", run: () => focus(filters.search) },
  { keys: ["s"], does: "choose the order", group: "Samples", run: () => focus(filters.sort) },
  { keys: ["f"], does: "add a filter", group: "Samples", run: () => focus(filters.column) },
]);

function focus(control) {
  tools.open = true;
  control.focus();
}

filters.node.addEventListener("keydown", (event) => {
  if (event.key === "Escape") grid.node.focus();
});

state.on(() => {
  overlay?.close();
  load();
});

selection.only(unranged(state.values.selected, 1e7));
load().then(() => grid.node.focus({ preventScroll: true }));
