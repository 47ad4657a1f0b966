// Lesions: a list by how likely each is false, and three linked planes through the one at hand.

import { address, ask, send } from "./api.js";
import { complain, element, fill, page } from "./dom.js";
import { Grid } from "./grid.js";
import { bind } from "./keys.js";
import { LesionTable } from "./lesion_table.js";
import { Overlay } from "./overlay.js";
import { dragged, placeAt, PLANES, presets, sliceOf, spot, stepped } from "./planes.js";
import { SliceView } from "./slice_view.js";
import { counted, number } from "./text.js";
import { urlState } from "./url.js";
import { Verdicts } from "./verdicts.js";

const KEEP_ALL = 1;
const state = urlState({
  split: "test", only: "", sort: "", case: "", lesion: 0, z: -1, y: -1, x: -1, sequence: 0, low: "", high: "", below: KEEP_ALL, truth: false, blind: false, over: "",
});
let response; // the list and the cases as the server gives them
let table;
let rows = []; // of the table, as they are shown
let shown; // the case at hand: number, extents, windows
let place = [0, 0, 0];
let active = "axial"; // the plane that keys step through
let windowing = false;
let verdicts;

// controls
const field = (label, control) => element("label", { class: "field" }, element("span", {}, label), control);
const button = (text, key, run) => element("button", { type: "button", on: { click: run } }, text, key && [" ", element("kbd", {}, key)]);
const split = element("select", { on: { change: () => reload({ split: split.value, only: "", case: "", lesion: 0 }) } });
const splitField = field("Split", split);
const only = element("select", { on: { change: () => list({ only: only.value }) } });
const order = element("select", { on: { change: () => list({ sort: order.value }) } });
const below = element("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-describedby": "kept", on: { input: () => keep(Number(below.value)) } });
const limit = element("output", {});
const kept = element("p", { id: "kept", role: "status" });
const slider = element("div", { class: "keeping" }, element("label", {}, element("span", {}, "Keep lesions with probability below ", limit), below), kept);
const unscored = element("p", { class: "quiet", hidden: true }, "No lesion has a probability: train a lesion model with `fit`, or `weakspot lesions fit` and `score`. With fewer than ten true or ten false positives it gives an order, but no probabilities.");
const grid = new Grid({ label: "Lesions", cell: { width: 270, height: 58 }, gap: 6, draw, moved: (index) => jump(rows[index]), opened: (index) => jump(rows[index]) });

const views = Object.fromEntries(PLANES.map((plane) => [plane, new SliceView({
  plane,
  moved: (right, down) => go(placeAt(plane, right, down, place, shown.shape)),
  stepped: (by) => go(stepped(plane, by, place, shown.shape)),
  sliced: (index) => go(place.with(PLANES.indexOf(plane), index)),
  windowed: (right, down) => setWindow(dragged(windowNow(), right, down, range())),
  entered: () => (active = plane),
  windowing: () => windowing,
})]));
const sequence = element("select", { on: { change: () => setSequence(Number(sequence.value)) } });
const sequenceField = field("Sequence", sequence);
const preset = element("select", { on: { change: () => usePreset() } });
const level = element("input", { type: "number", step: "any", on: { change: typedWindow } });
const width = element("input", { type: "number", step: "any", min: 0, on: { change: typedWindow } });
const dragging = element("button", { type: "button", "aria-pressed": "false", on: { click: toggleWindowing } }, "Drag changes window ", element("kbd", {}, "w"));
const truth = element("button", { type: "button", "aria-pressed": "false", on: { click: toggleTruth } }, "True lesions ", element("kbd", {}, "t"));
const blind = element("button", { type: "button", "aria-pressed": "false", on: { click: toggleBlind } }, "Hide truth and probability ", element("kbd", {}, "b"));
const judges = Object.fromEntries([["accepted", "Accept", "a"], ["rejected", "Reject", "x"]].map(([verdict, text, key]) => [verdict,
  element("button", { type: "button", "aria-pressed": "false", on: { click: () => judge(verdict) } }, `${text} `, element("kbd", {}, key))]));
const overlay = new Overlay(setOverlay);
let noting; // the lesion that the note in hand is on, also where another is chosen before it is left
const note = element("textarea", { "aria-label": "Note on this lesion", maxlength: 2000, placeholder: "Note", on: { focus: () => (noting = current()), change: () => noted() } });
const verdict = element("div", { class: "verdict" }, element("div", { class: "bar" }, Object.values(judges), blind, button("Export verdicts", "", () => verdicts.download(`verdicts-${response.split}.csv`))), note);
const legend = element("div", { class: "ramp-bar", "aria-hidden": "true" });
const about = element("div", { class: "about-lesion" });
const controls = element("section", { class: "controls", "aria-label": "Display" }, about,
  element("div", { class: "bar" }, sequenceField, field("Window", preset), field("Level", level), field("Width", width), dragging, truth, overlay.field),
  verdict, overlay.legend, legend, element("p", { class: "quiet ends" }, element("span", {}, "0 real"), element("span", {}, "false positive 1")),
  element("p", { class: "quiet" }, "Dashed grey and black: dropped lesions. Purple: true lesions. Click to move the other planes to that point, turn the wheel to step through slices, drag with the right button to change the window. Turn the wheel with Ctrl, or press + and −, to zoom; drag with Alt to pan."));
const missing = element("p", { class: "caution", hidden: true });
const planes = element("div", { class: "planes", hidden: true }, PLANES.map((plane) => views[plane].node), controls);

page().append(element("h1", { class: "unseen" }, "Lesions"), element("div", { class: "surface lesions" },
  element("section", { class: "listed", "aria-label": "List" }, element("div", { class: "bar" }, splitField, field("Case", only), field("Order", order)), slider, unscored, grid.node),
  element("section", { class: "looked-at", "aria-label": "Slices" }, missing, planes)));

async function load() {
  response = await ask("/lesions", { split: state.values.split });
  table = new LesionTable(response.lesions);
  const told = await ask("/settings/verdicts", { split: response.split }).catch((error) => (complain(error), { verdicts: [] }));
  verdicts = new Verdicts(told.verdicts, (row) => send("PUT", "/settings/verdicts", { ...row, split: response.split }));
  missing.textContent = response.note;
  missing.hidden = !response.note;
  splitField.hidden = response.splits.length < 2;
  fill(split, response.splits.map((name) => element("option", { value: name, selected: name === response.split }, name)));
  fill(only, element("option", { value: "" }, `all (${counted(table.cases.length, "case")})`), table.cases.map((name) => element("option", { value: name }, name)));
  const orders = table.known ? [["", "likely false first"], ["probability", "likely real first"]] : [];
  fill(order, [...orders, [table.known ? "voxels" : "", "largest first"], ["small", "smallest first"]].map(([value, name]) => element("option", { value }, name)));
  legend.style.background = `linear-gradient(to right, ${response.legend.join(", ")})`;
  slider.hidden = !table.known;
  unscored.hidden = table.known;
  await restore();
}

/** What the address says. */
async function restore() {
  const { only: name, sort, below: share, truth: drawn, z, y, x } = state.values;
  only.value = table.cases.includes(name) ? name : "";
  order.value = sort;
  below.value = share;
  truth.setAttribute("aria-pressed", drawn);
  showBlind();
  list({});
  const at = rows.indexOf(table.find(state.values.case, state.values.lesion));
  grid.show(rows.length, Math.max(0, at));
  if (!rows.length) return;
  await jump(rows[grid.at], z >= 0 ? [z, y, x] : undefined);
}

function reload(changes) {
  state.set({ ...changes, z: -1 }, { push: true });
  shown = undefined;
  return load().catch(complain);
}

/** The list in another order, or of another case. */
function list(changes) {
  const at = rows[grid.at];
  state.set(changes);
  rows = table.rows(only.value, order.value);
  grid.show(rows.length, Math.max(0, rows.indexOf(at)));
  count();
  if (Object.keys(changes).length && rows.length && rows[grid.at] !== at) jump(rows[grid.at]);
}

function draw(cell, index) {
  const row = rows[index];
  const probability = table.probability(row);
  const stays = table.kept(row, limitNow());
  const own = verdicts.of(table.case[row], table.lesion[row])?.verdict;
  const truly = table.truth && !state.values.blind ? (table.true_positive[row] ? " · a true lesion" : " · no lesion") : "";
  const size = number(table.volume_mm3?.[row] ?? null) === "–" ? counted(table.voxels[row], "voxel") : `${number(Math.round(table.volume_mm3[row]))} mm³`;
  cell.className = `cell lesion${stays ? "" : " dropped"}${index === grid.at ? " current" : ""}`;
  cell.style.borderLeftColor = state.values.blind ? "" : table.colour[row];
  fill(cell, element("span", { class: "line" }, own && element("span", { class: "mark" }, own), element("strong", {}, probability === null || state.values.blind ? "–" : probability.toFixed(2)), ` · ${table.case[row]} · ${table.lesion[row]}`),
    element("span", { class: "line two" }, `${stays ? "" : "dropped · "}${size}${truly}`));
}

/** Probabilities from here on are dropped; none where the slider is at its end. */
const limitNow = () => (state.values.below >= KEEP_ALL ? 2 : state.values.below);

function keep(share) {
  state.set({ below: share });
  count();
  grid.redraw();
  look();
}

function count() {
  const found = table.counts(rows, limitNow());
  limit.textContent = state.values.below >= KEEP_ALL ? "1 (all)" : state.values.below.toFixed(2);
  below.ariaValueText = limit.textContent;
  kept.textContent = table.truth && !state.values.blind
    ? `Kept: ${found.trueKept} of ${counted(found.true, "true lesion")}, ${found.falseKept} of ${counted(found.false, "false positive")}`
    : `Kept: ${found.kept} of ${counted(found.all, "lesion")}`;
}

/** Show a lesion where it is. */
async function jump(row, at) {
  const [name, lesion] = [table.case[row], table.lesion[row]];
  state.set({ case: name, lesion });
  try {
    if (!(await open(name))) return;
    if (state.values.case !== name || state.values.lesion !== lesion) return; // another one was chosen meanwhile
    const centre = shown.places[shown.lesions.indexOf(lesion)] ?? shown.shape.map((side) => side / 2);
    tell(row);
    go((at ?? centre).map((side, axis) => Math.min(shown.shape[axis] - 1, Math.max(0, Math.round(side)))));
  } catch (error) {
    complain(error);
  }
}

/** Make a case the one at hand; whether its volume can be shown. */
async function open(name) {
  const place = response.cases.indexOf(name);
  planes.hidden = place < 0;
  if (place < 0) {
    if (!response.note) missing.textContent = `The Run has no volume of ${name}.`;
    missing.hidden = false;
    return false;
  }
  missing.hidden = true;
  if (shown?.case === name) return true;
  const found = await ask(`/lesions/case/${place}`, { split: response.split });
  if (state.values.case !== name) return false;
  shown = { ...found, number: place };
  const flat = found.shape[0] === 1;
  for (const plane of PLANES) {
    views[plane].node.hidden = flat && plane !== "axial";
    views[plane].open(found.planes[plane], look);
  }
  offerSequences();
  showBlind();
  return true;
}

function tell(row) {
  showVerdict();
  const lines = [["Case", table.case[row]], ["Lesion", table.lesion[row]], ["Probability of a false positive", state.values.blind ? null : table.probability(row) === null ? "not known" : number(table.probability(row))],
    ["Size", `${counted(table.voxels[row], "voxel")}${table.volume_mm3?.[row] ? `, ${number(table.volume_mm3[row])} mm³` : ""}`],
    ["Truth", table.truth && !state.values.blind ? `${table.true_positive[row] ? "a true lesion" : "no lesion"}${table.adjusted_iou ? `, adjusted IoU ${number(table.adjusted_iou[row])}` : ""}` : null]];
  fill(about, element("dl", { class: "facts" }, lines.filter(([, value]) => value !== null).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
}

// verdicts
const current = () => (rows.length ? [table.case[rows[grid.at]], table.lesion[rows[grid.at]]] : undefined);

function judge(kind) {
  if (rows.length) keeping(verdicts.judge(...current(), kind, state.values.blind));
}

function noted() {
  if (rows.length) keeping(verdicts.note(...(noting ?? current()), note.value, state.values.blind));
}

/** Show a verdict at once, and what stands where it could not be kept. */
function keeping(kept) {
  const shown = () => (showVerdict(), grid.redraw());
  shown();
  kept.catch((error) => (shown(), complain(error)));
}

function showVerdict() {
  const own = rows.length ? verdicts.of(...current()) : undefined;
  for (const [kind, node] of Object.entries(judges)) {
    node.setAttribute("aria-pressed", own?.verdict === kind);
    node.classList.toggle("chosen", own?.verdict === kind);
  }
  note.value = own?.note ?? "";
}

function toggleBlind() {
  state.set({ blind: !state.values.blind });
  showBlind();
  count();
  grid.redraw();
  if (rows.length) tell(rows[grid.at]);
  look();
}

function showBlind() {
  blind.setAttribute("aria-pressed", state.values.blind);
  slider.hidden = !table.known || state.values.blind;
  truth.hidden = (shown && !shown.truth) || state.values.blind;
  legend.hidden = state.values.blind;
  overlay.show(state.values.over, state.values.blind ? null : shown?.maps, response.overlay);
}

function zoomAll(factor) {
  if (!shown) return;
  for (const plane of PLANES) {
    const [right, down] = spot(plane, place, shown.shape);
    views[plane].zoom(factor);
    views[plane].centre(right, down);
  }
  look();
}

function zoomOut() {
  for (const plane of PLANES) views[plane].reset();
  look();
}

// slices
function go(to) {
  if (!shown) return;
  place = to;
  for (const plane of PLANES) if (views[plane].view.scale > 1 && plane !== active) views[plane].centre(...spot(plane, place, shown.shape));
  state.set({ z: to[0], y: to[1], x: to[2] });
  look();
}

/** Every plane as it should be now; what has not changed is not asked for again. */
function look() {
  if (!shown || planes.hidden) return;
  const { low, high } = windowNow();
  for (const plane of PLANES) {
    const view = views[plane];
    if (view.node.hidden) continue;
    view.show(sliceOf(plane, place), place, shown.shape, (index) => [greyAt(plane, index, low, high), outlinesAt(plane, index)]);
  }
}

const greyAt = (plane, index, low, high) =>
  address(`/lesions/case/${shown.number}/slice/${plane}/${index}`, { split: response.split, sequence: state.values.sequence, low: Number(low.toPrecision(6)), high: Number(high.toPrecision(6)), v: response.version });

const drawsTruth = () => state.values.truth && shown.truth && !state.values.blind;

const outlinesAt = (plane, index) =>
  address(`/lesions/case/${shown.number}/outlines/${plane}/${index}`, { split: response.split, ...views[plane].pixels, line: Math.round(2 * Math.min(devicePixelRatio, 4)), below: limitNow(), truth: drawsTruth() ? true : null, plain: state.values.blind ? true : null, over: overlay.kind, v: response.version });

function step(by) {
  if (shown) go(stepped(active, by, place, shown.shape));
}

// windows
const range = () => {
  const { smallest, largest } = shown.sequences[state.values.sequence];
  return largest - smallest;
};

function windowNow() {
  const { low, high } = shown.sequences[state.values.sequence];
  const [given, until] = [Number(state.values.low), Number(state.values.high)];
  return state.values.low !== "" && until > given ? { low: given, high: until } : { low, high: high > low ? high : low + 1 };
}

function setWindow({ low, high }) {
  if (!shown) return;
  state.set({ low: String(Number(low.toPrecision(5))), high: String(Number(high.toPrecision(5))) });
  showWindow();
  look();
}

function showWindow() {
  const { low, high } = windowNow();
  level.value = Number(((low + high) / 2).toPrecision(4));
  width.value = Number((high - low).toPrecision(4));
  preset.value = "";
}

function typedWindow() {
  const [middle, wide] = [Number(level.value), Number(width.value)];
  if (Number.isFinite(middle) && wide > 0) setWindow({ low: middle - wide / 2, high: middle + wide / 2 });
}

function usePreset() {
  if (preset.value === "") return;
  const [, low, high] = presets(shown.sequences[state.values.sequence])[Number(preset.value)];
  const chosen = preset.value;
  if (chosen === "0") autoWindow();
  else setWindow({ low, high });
  preset.value = chosen;
}

function autoWindow() {
  state.set({ low: "", high: "" });
  showWindow();
  look();
}

function offerSequences() {
  if (state.values.sequence >= shown.sequences.length) state.set({ sequence: 0 });
  sequenceField.hidden = shown.sequences.length < 2;
  fill(sequence, shown.sequences.map((_, place) => element("option", { value: place, selected: place === state.values.sequence }, place + 1)));
  fill(preset, element("option", { value: "" }, "as dragged"), presets(shown.sequences[state.values.sequence]).map(([name], place) => element("option", { value: place }, name)));
  showWindow();
  if (state.values.low === "") preset.value = "0";
}

function setSequence(to) {
  state.set({ sequence: to, low: "", high: "" });
  offerSequences();
  look();
}

function toggleWindowing() {
  windowing = !windowing;
  dragging.setAttribute("aria-pressed", windowing);
}

function toggleTruth() {
  if (truth.hidden) return;
  state.set({ truth: !state.values.truth });
  truth.setAttribute("aria-pressed", state.values.truth);
  look();
}

function setOverlay(over) {
  state.set({ over });
  showBlind();
  look();
}

bind([
  { keys: ["j", "n", "ArrowDown"], does: "next lesion", group: "Lesions", run: () => grid.go(grid.at + 1) },
  { keys: ["k", "p", "ArrowUp"], does: "previous lesion", group: "Lesions", run: () => grid.go(grid.at - 1) },
  { keys: [".", "PageDown"], does: "next slice, in the plane that the pointer was on last", group: "Slices", run: () => step(1) },
  { keys: [",", "PageUp"], does: "previous slice, in the same plane", group: "Slices", run: () => step(-1) },
  ...PLANES.map((plane, place) => ({ keys: [String(place + 1)], does: `step through ${plane} slices`, group: "Slices", run: () => (active = plane) })),
  { keys: ["w"], does: "dragging changes the window, or moves the planes", group: "Display", run: toggleWindowing },
  { keys: ["r"], does: "reset the window", group: "Display", run: () => shown && autoWindow() },
  { keys: ["t"], does: "true lesions on and off", group: "Display", run: toggleTruth },
  { keys: ["o"], does: "lay probability or entropy over the slices", group: "Display", run: () => setOverlay(overlay.next) },
  { keys: ["a"], does: "accept the lesion, or take that back", group: "Verdict", run: () => judge("accepted") },
  { keys: ["x"], does: "reject the lesion, or take that back", group: "Verdict", run: () => judge("rejected") },
  { keys: ["m"], does: "write a note", group: "Verdict", run: () => note.focus() },
  { keys: ["b"], does: "hide truth and probability", group: "Verdict", run: toggleBlind },
  { keys: ["+", "="], does: "zoom in on the place at hand", group: "Slices", run: () => zoomAll(2) },
  { keys: ["-"], does: "zoom out", group: "Slices", run: () => zoomAll(0.5) },
  { keys: ["0"], does: "the whole slice", group: "Slices", run: zoomOut },
  { keys: ["f"], does: "choose a case", group: "Lesions", run: () => only.focus() },
  { keys: ["l"], does: "keep fewer or more lesions", group: "Lesions", run: () => below.focus() },
]);

state.on(() => restore().catch(complain));
load().then(() => grid.node.focus()).catch(complain);
