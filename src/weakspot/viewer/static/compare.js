// Two Runs side by side: the same samples before and after, and how their predictions changed.

import { ask, askBlob, latest } from "./api.js";
import { Blocks } from "./blocks.js";
import { button, field } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { Grid, gridKeys, partsOf } from "./grid.js";
import { bind } from "./keys.js";
import { tallFor } from "./layout.js";
import { placesOf } from "./listing.js";
import { clear, drawFrom, picture } from "./pictures.js";
import { counted, interval, number, percent } from "./text.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const OUTCOMES = {
  broken: ["✗", "Broken", "correct before, incorrect after"],
  fixed: ["✓", "Fixed", "incorrect before, correct after"],
  incorrect: ["–", "Incorrect in both", "before and after"],
  correct: ["=", "Correct in both", "before and after"],
  unknown: ["?", "Unknown", "no target or no prediction"],
};
const SIDES = ["before", "after"];
const state = urlState({ split: "", outcome: [], search: "", sort: "", at: 0 });
const newest = latest();
let response; // what the server says of both Runs
let blocks;
let overlay;

const grid = new Grid({
  label: "Samples of both Runs", cell: { width: 100, height: 150 }, draw, opened: enlarge, marked: enlarge,
  moved: (index) => (state.set({ at: index }), detail(index)), seen: (first, end) => blocks?.near(first, end),
});
const kinds = element("div", { class: "bar", role: "group", "aria-label": "How the predictions changed" });
const search = element("input", { type: "search", placeholder: "part of the name", on: { input: () => searched() } });
const sort = element("select", { on: { change: () => asked({ sort: sort.value }) } });
const count = element("p", { class: "quiet", role: "status" });
const runs = element("p", {});
const numbers = element("details", { on: { toggle: () => numbers.open && showNumbers().catch(complain) } },
  element("summary", {}, "Numbers that both Runs have"));
const panel = element("aside", { class: "panel", tabindex: 0, "aria-label": "The sample before and after" });

page().append(element("h1", { class: "unseen" }, "Compare"), runs, kinds,
  element("div", { class: "bar" }, field("Search", search), field("Order", sort), count), numbers,
  element("div", { class: "surface" }, grid.node, panel));

function asked(changes, push = true) {
  state.set({ ...changes, at: 0 }, { push });
  return load();
}

async function load() {
  try {
    const { split, outcome, search: part, sort: by } = state.values;
    const query = { split, outcome, search: part, sort: by };
    const found = await newest((signal) => ask("/compare", { ...query, limit: 0 }, signal));
    if (found) show(found, query);
  } catch (error) {
    complain(error);
  }
}

function show(found, query) {
  response = { ...found, places: placesOf(found.columns) };
  blocks?.stop();
  blocks = new Blocks({ count: response.matching, load: (first, end, signal) => block(query, first, end, signal), arrived, failed: complain });
  fill(runs, element("strong", {}, response.runs[0]), " before, ", element("strong", {}, response.runs[1]), " after");
  fill(kinds, Object.entries(OUTCOMES).filter(([name]) => response.outcomes[name]).map(([name, words]) => kind(name, words)));
  offerOrders();
  if (document.activeElement !== search) search.value = state.values.search;
  count.textContent = `${number(response.matching)} of ${counted(response.total, "sample")} in both`;
  grid.shape({ width: 100, height: tallFor(response.pictures[side()], 4) });
  grid.show(response.matching, state.values.at);
  fill(panel);
  panel.hidden = !response.matching;
}

function kind(name, [sign, word, meaning]) {
  const on = state.values.outcome.includes(name);
  const others = state.values.outcome.filter((other) => other !== name);
  const toggle = () => asked({ outcome: on ? others : [...others, name] });
  const count = element("strong", {}, number(response.outcomes[name]));
  return button([`${sign} ${word} `, element("span", { class: "meaning" }, `(${meaning}) `), count], toggle, { "aria-pressed": String(on) });
}

function offerOrders() {
  const columns = response.columns.filter((column) => column.kind === "number");
  const option = (value, text) => element("option", { value, selected: value === state.values.sort }, text);
  fill(sort, option("", "by outcome"), columns.flatMap(({ name, label }) => [
    option(`change.${name}`, `${label}: fell most`), option(`-change.${name}`, `${label}: rose most`)]));
}

/** The Run whose pictures are shown: the later one where it has any. */
const side = () => (response.pictures[1].width ? 1 : 0);

/** Rows, and then the sheet of their pictures: only the rows say where in either Run a sample is. */
async function block(query, first, end, signal) {
  const { rows } = await ask("/compare", { ...query, offset: first, limit: end - first }, signal);
  const about = response.pictures[side()];
  if (!about.width) return { rows };
  const positions = rows.map((row) => row.positions[side()]).join(",");
  const sheet = await askBlob(`/sheet/${encodeURIComponent(response.split)}`, { run: side(), positions, v: about.version }, signal);
  return { rows, sheet: await createImageBitmap(sheet), about };
}

const row = (index) => {
  const found = blocks.at(index);
  return found?.block.rows[found.place];
};

function drawPicture(canvas, index) {
  const found = blocks.at(index);
  canvas.hidden = Boolean(found && !found.block.sheet);
  if (found?.block.sheet) drawFrom(canvas, found.block.sheet, found.block.about, found.place);
  else clear(canvas);
  return Boolean(found);
}

/** A value of a sample on one side. */
const value = (here, when, name) => here[when][response.places.get(name)];
const answered = (here, when) => number(value(here, when, "prediction"));

function draw(cell, index) {
  const [canvas, one, two, three, four] = partsOf(cell, ["one", "two", "two", "two"]);
  const drawn = drawPicture(canvas, index);
  const here = row(index);
  one.textContent = here ? `${OUTCOMES[here.outcome][0]} ${here.outcome}` : "";
  two.textContent = here ? `is ${number(value(here, "after", "target"))}` : "";
  three.textContent = here ? `before ${answered(here, "before")}` : "";
  four.textContent = here ? `after ${answered(here, "after")}` : "";
  cell.title = here ? here.id : "";
  cell.dataset.outcome = here?.outcome ?? "";
  cell.dataset.ready = drawn && here ? "1" : "0";
}

function arrived(first, end) {
  for (let index = first; index < end; index += 1) grid.redraw(index);
  if (grid.at < first || grid.at >= end) return;
  detail(grid.at);
  overlay?.redraw();
}

function detail(index) {
  const here = row(index);
  if (!here) return;
  fill(panel, element("h2", {}, here.id), element("p", {}, `${OUTCOMES[here.outcome][1]}: ${OUTCOMES[here.outcome][2]}`),
    element("ul", { class: "links" }, SIDES.map((when, run) => element("li", {},
      element("a", { href: link("samples", { run, split: response.split, sample: here.positions[run] }) }, `In ${response.runs[run]}, ${when}`)))),
    element("table", {}, element("caption", { class: "unseen" }, "Values before and after"),
      element("thead", {}, element("tr", {}, element("td"), ["Before", "After"].map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, response.columns.map((column, place) => line(column, here.before[place], here.after[place])))));
}

function line(column, before, after) {
  const same = before === after;
  return element("tr", { class: same ? null : "differs" }, element("th", { scope: "row" }, column.label),
    element("td", {}, number(before)), element("td", {}, same ? "=" : number(after)));
}

function enlarge(at) {
  if (!response?.matching || !response.pictures.some((one) => one.width)) return;
  const source = (index) => {
    const here = row(index);
    return here ? picture(response.split, here.positions[side()], response.pictures[side()].version, side()) : "";
  };
  overlay = zoom({
    count: response.matching, at, source, draw: drawPicture, moved: (index) => grid.go(index), caption: (index) => captionOf(row(index)),
    closed: () => {
      overlay = undefined;
      grid.node.focus();
    },
  });
}

const captionOf = (here) =>
  (here ? `${here.id} · before ${answered(here, "before")}, after ${answered(here, "after")} · ${here.outcome}` : "");

const shown = (value, unit) => (unit === "share" && typeof value === "number" ? percent(value) : number(value));

function lines(differences, name) {
  const heads = ["Number", response.runs[0], response.runs[1], "Difference", "Interval", "What that shows"];
  return element("table", {}, element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, differences.map((one) => element("tr", {},
      element("th", { scope: "row" }, name(one)),
      [one.before, one.after, one.difference].map((value) => element("td", { class: "number" }, shown(value, one.unit))),
      element("td", {}, interval(one.low, one.high, (end) => shown(end, one.unit))), element("td", {}, one.verdict)))));
}

const groupLines = (groups) => lines(groups.map((one) => ({ ...one, difference: one.after - one.before, unit: "share" })),
  ({ by, group, inputs }) => `${by} ${group}, ${counted(inputs, "input")}`);

/** Each fact once, then the groups of inputs that differ, then all there is. */
async function showNumbers() {
  if (numbers.children.length > 1) return;
  const { main, groups, differences, notes } = await ask("/compare/numbers");
  const full = (one) => [one.name, element("span", { class: "quiet" }, ` ${one.finding}`)];
  numbers.append(element("div", { class: "scroll numbers", tabindex: 0, role: "region", "aria-label": "Numbers that both Runs have" },
    notes.map((note) => element("p", { class: "caution" }, note)),
    main.length ? lines(main, (one) => one.label) : null,
    groups.length ? [element("h2", {}, "Groups in which accuracy differs"), groupLines(groups)] : null,
    element("h2", {}, `All ${counted(differences.length, "number")}`), lines(differences, full)));
}

let typing = 0;
function searched() {
  clearTimeout(typing);
  typing = setTimeout(() => asked({ search: search.value }, false), 120);
}

const only = (name) => () => asked({ outcome: state.values.outcome.join() === name ? [] : [name] });
bind([
  ...gridKeys(grid, "Compare"),
  { keys: ["b"], does: "only the broken", group: "Compare", run: only("broken") },
  { keys: ["f"], does: "only the fixed", group: "Compare", run: only("fixed") },
  { keys: ["a"], does: "all of them", group: "Compare", run: () => asked({ outcome: [] }) },
  { keys: ["/"], does: "search", group: "Compare", run: () => search.focus() },
]);

state.on(load);
load().then(() => grid.node.focus({ preventScroll: true }));
