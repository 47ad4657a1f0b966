// The feature map: every sample where its features lie; colour, look, select with a lasso or by numbers, go on to the grid.

import { ask, download } from "./api.js";
import { coloured, ramp } from "./colours.js";
import { button, field } from "./controls.js";
import { announce, complain, element, fill, page } from "./dom.js";
import { bind } from "./keys.js";
import { bounds, read, rectangle, within, written } from "./lasso.js";
import { picture } from "./pictures.js";
import { Plane } from "./plane.js";
import { mapPoints, valuesOf } from "./points.js";
import { counted, number } from "./text.js";
import { Undo, undoKeys } from "./undo.js";
import { link, urlState } from "./url.js";
import { zoom } from "./zoom.js";

const state = urlState({ colour: "", lasso: "", sample: -1, view: "", pan: false });
const undo = new Undo();
let points;
let shown; // what the points are coloured by
let chosen = []; // numbers of the points inside the lasso
let pictures; // what the server says of the split's pictures
let places; // from positions to points

const plane = new Plane({
  label: "Feature map. Arrow keys go from point to point, Enter enlarges, Shift with arrows moves the view.",
  hovered: hover, picked: (place) => place >= 0 && pick(place), opened: (place) => place >= 0 && enlarge(place),
  drawn: (polygon) => choose(polygon),
  viewed: ({ x, y }) => state.set({ view: [x, y, plane.span].map((value) => +value.toPrecision(5)).join(",") }),
});

// what stands above and beside
const colour = element("select", { on: { change: () => recolour(colour.value, { push: true }) } });
const lassoing = button("Lasso", () => mode(false));
const panning = button("Move", () => mode(true));
const fields = ["x from", "x to", "y from", "y to"].map((name) =>
  field(name, element("input", { type: "number", step: "any", required: true })));
const numbers = element("details", {}, element("summary", {}, "Select by numbers"),
  element("form", { class: "bar", on: { submit: byNumbers } }, fields, element("button", {}, "Select")));
const legend = element("div", {});
const count = element("p", { role: "status" });
const grid = element("a", { class: "button" }, "Show in the grid ", element("kbd", {}, "g"));
const some = [button("Save as CSV", exported, { key: "e" }), button("Clear", clear, { key: "Esc" })];
const sample = element("div", {});
const popup = element("div", { class: "hover", hidden: true }, element("img", { alt: "" }), element("span", {}));

plane.node.append(popup);
page().append(
  element("h1", { class: "unseen" }, "Feature map"),
  element("div", { class: "bar" },
    field("Colour", colour),
    element("span", { class: "field", role: "group", "aria-label": "What dragging does" }, element("span", {}, "Drag"), lassoing, panning),
    button("+", () => plane.zoom(1.5), { "aria-label": "Zoom in" }), button("−", () => plane.zoom(1 / 1.5), { "aria-label": "Zoom out" }),
    button("Whole map", () => plane.fit()), numbers),
  element("div", { class: "surface" }, plane.node,
    element("aside", { class: "panel", tabindex: 0, "aria-label": "Legend and selection" },
      legend, count, element("div", { class: "bar" }, grid, some), sample)));

async function load() {
  points = await mapPoints();
  pictures = points.pictures;
  places = new Map(Array.from(points.position, (position, place) => [position, place]));
  fill(colour, points.columns.map(({ name, label }) => element("option", { value: name }, label)));
  const [x, y, span] = state.values.view.split(",").map(Number);
  plane.show(points, span > 0 ? { x, y, span } : undefined);
  mode(state.values.pan);
  await restore();
}

/** Show what stands in the address. */
async function restore() {
  await recolour(state.values.colour || points.columns[0]?.name || "");
  select(read(state.values.lasso));
  if (places.has(state.values.sample)) pick(places.get(state.values.sample));
}

function mode(pan) {
  plane.panning = pan;
  lassoing.setAttribute("aria-pressed", !pan);
  panning.setAttribute("aria-pressed", pan);
  state.set({ pan });
}

// colours
const PLAIN = { name: "", label: "Samples", kind: "text" }; // where no column is known to colour by

async function recolour(name, { push = false } = {}) {
  const column = points.columns.find((one) => one.name === name) ?? points.columns[0] ?? PLAIN;
  if (push) state.set({ colour: column.name }, { push });
  colour.value = column.name;
  const plain = { values: new Float32Array(points.x.length), texts: ["all"] };
  const { values, texts } = column === PLAIN ? plain : await valuesOf(points, column);
  if (colour.value !== column.name) return;
  shown = { column, values, texts, ...coloured({ ...column, texts }, values) };
  fill(legend, element("h2", {}, column.label), explained());
  paint();
}

function explained() {
  const items = shown.legend.map(([hex, text]) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = hex;
    return element("li", {}, swatch, text);
  });
  const list = items.length ? element("ul", { class: "legend" }, items) : null;
  if (!shown.range) return list;
  const bar = element("span", { class: "ramp" });
  bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ")})`;
  return [bar, element("p", { class: "ends" }, shown.range.map((end) => element("span", {}, number(end)))), list];
}

function paint() {
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--raised").trim();
  if (shown) plane.colour(shown, chosen.length ? chosen : null, paper);
}

// selecting
function choose(polygon) {
  const before = state.values.lasso;
  const put = (lasso) => {
    state.set({ lasso });
    select(read(lasso)); // as the address has it, so that the grid shows the very same samples
  };
  return undo.perform({ says: "selection on the map", forward: () => put(written(polygon)), back: () => put(before) });
}

function select(polygon) {
  plane.outline(polygon);
  chosen = within(polygon, points.x, points.y);
  count.textContent = polygon.length ? `${counted(chosen.length, "sample")} selected` : `${counted(points.x.length, "sample")}`;
  for (const one of [grid, ...some]) one.hidden = !polygon.length;
  grid.href = link("samples", { split: points.split, lasso: state.values.lasso });
  const shape = polygon.length ? bounds(polygon) : plane.bounds;
  fields.forEach((field, place) => (field.lastChild.value = +shape[place].toPrecision(5)));
  paint();
}

function byNumbers(event) {
  event.preventDefault();
  const [left, right, low, high] = fields.map((field) => Number(field.lastChild.value));
  choose(rectangle([Math.min(left, right), Math.max(left, right), Math.min(low, high), Math.max(low, high)]));
}

function clear() {
  if (state.values.lasso) return choose([]);
  if (plane.current >= 0) pick(-1);
}

async function exported() {
  if (!chosen.length) return announce("Nothing is selected");
  try {
    const positions = chosen.map((place) => points.position[place]);
    await download("/samples.csv", { positions }, { split: points.split }, "selected.csv");
    announce(`${counted(positions.length, "sample")} written to selected.csv`);
  } catch (error) {
    complain(error);
  }
}

// looking
const source = (place) => (pictures.width ? picture(points.split, points.position[place], pictures.version) : "");
const value = (place) => {
  const here = shown.values[place];
  if (!Number.isFinite(here)) return "–";
  return shown.column.kind === "number" ? number(here) : shown.column.kind === "flag" ? number(here > 0) : shown.texts[here];
};

function hover(place, left, top) {
  popup.hidden = place < 0;
  if (place < 0 || !shown) return;
  const image = popup.firstChild;
  image.hidden = !pictures.width;
  if (pictures.width && image.dataset.place !== String(place)) image.src = source(place);
  image.dataset.place = place;
  image.width = 134;
  image.height = Math.round((134 * pictures.height) / (pictures.width || 1));
  popup.lastChild.textContent = `${shown.column.label}: ${value(place)}`;
  popup.style.left = `${left + 150 > plane.width ? left - 158 : left + 14}px`;
  popup.style.top = `${Math.max(4, Math.min(top - 40, plane.height - 190))}px`;
}

async function pick(place) {
  plane.mark(place);
  state.set({ sample: place < 0 ? -1 : points.position[place] });
  if (place < 0) return fill(sample);
  const response = await ask("/samples/rows", { split: points.split, positions: points.position[place] }).catch(complain);
  if (!response || plane.current !== place) return undefined;
  const row = response.rows[0];
  return fill(sample, element("h2", {}, row.id),
    pictures.width ? element("img", { class: "preview", src: source(place), alt: "" }) : null,
    element("p", {}, `${shown.column.label}: ${value(place)}`),
    element("ul", { class: "links" },
      element("li", {}, button("Enlarge", () => enlarge(place), { key: "Enter" })),
      element("li", {}, element("a", { href: link("samples", { split: points.split, sample: row.position }) }, "All its values"))));
}

/** Enlarge a point's picture; the arrows go on to the others that are selected, or to all. */
function enlarge(place) {
  if (place < 0 || !pictures.width) return;
  const among = chosen.includes(place) ? chosen : Array.from(points.x.keys());
  zoom({
    count: among.length, at: among.indexOf(place), source: (index) => source(among[index]),
    caption: (index) => `${shown.column.label}: ${value(among[index])}`,
    moved: (index) => pick(among[index]), closed: () => plane.node.focus(),
  });
}

const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
const idle = () => document.activeElement === document.body;
bind([
  ...undoKeys(undo),
  { keys: ARROWS, does: "go to the next point in that direction", group: "Map", when: idle, run: (event) => (plane.key(event), plane.node.focus()) },
  { keys: ARROWS.map((key) => `Shift+${key}`), does: "move the view", group: "Map", when: idle, run: (event) => plane.key(event) },
  { keys: ["+", "="], does: "zoom in", group: "Map", run: () => plane.zoom(1.5) },
  { keys: ["-"], does: "zoom out", group: "Map", run: () => plane.zoom(1 / 1.5) },
  { keys: ["0"], does: "show the whole map", group: "Map", run: () => plane.fit() },
  { keys: ["Enter"], does: "enlarge the marked sample", group: "Map", run: () => enlarge(plane.current) },
  { keys: ["l"], does: "drag to draw a lasso", group: "Map", run: () => mode(false) },
  { keys: ["m"], does: "drag to move the map", group: "Map", run: () => mode(true) },
  { keys: ["r"], does: "select by numbers", group: "Map", run: () => ((numbers.open = true), fields[0].lastChild.focus()) },
  { keys: ["c"], does: "choose the colours", group: "Map", run: () => colour.focus() },
  { keys: ["g"], does: "show the selected samples in the grid", group: "Map", run: () => grid.hidden || grid.click() },
  { keys: ["e"], does: "save the selected samples as CSV", group: "Map", run: () => void exported() },
  { keys: ["Escape"], does: "clear the selection", group: "Map", run: () => void clear() },
]);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
state.on(() => restore().catch(complain));
load().catch(complain);
