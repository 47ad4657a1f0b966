// Keys: who is bound last is asked first. `?` lists what is bound, so no key is a secret.

import { element } from "./dom.js";

const layers = [];
const NAMES = {
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "Page ↑", PageDown: "Page ↓",
};

/** The name of a key with what is held besides: `a`, `?`, `Space`, `Shift+ArrowDown`, `Ctrl+z` (also with ⌘). */
export function chord(event) {
  const key = event.key === " " ? "Space" : event.key;
  const printed = key.length === 1;
  const control = event.ctrlKey || event.metaKey;
  const shift = event.shiftKey && (!printed || control);
  const name = printed && control ? key.toLowerCase() : key;
  return [control && "Ctrl", event.altKey && "Alt", shift && "Shift", name].filter(Boolean).join("+");
}

/** Bind `{keys, does, run, when, group}`; the answer takes them away. A modal layer leaves nothing to those below. */
export function bind(bindings, { modal = false } = {}) {
  const layer = { bindings, modal };
  layers.push(layer);
  return () => layers.includes(layer) && layers.splice(layers.indexOf(layer), 1);
}

const TYPED = 'textarea, select, [contenteditable], input:not([type="checkbox"], [type="radio"], [type="button"], [type="range"])';
const PRESSED = 'button, a[href], summary, input[type="checkbox"], input[type="radio"]';
const MOVED = 'input[type="range"], input[type="radio"]';

/** Whether the key belongs to the control that has the focus. */
function taken(event, name) {
  if (!(event.target instanceof Element)) return false;
  if (event.target.matches(TYPED)) return true;
  if (event.target.matches(PRESSED) && (name === "Enter" || name === "Space")) return true;
  return event.target.matches(MOVED) && name.startsWith("Arrow");
}

function pressed(event) {
  const name = chord(event);
  if (event.defaultPrevented || event.isComposing || taken(event, name)) return;
  for (const layer of [...layers].reverse()) {
    for (const binding of layer.bindings) {
      if (!binding.keys.includes(name) || (binding.when && !binding.when())) continue;
      if (binding.run(event) === false) continue;
      event.preventDefault();
      return;
    }
    if (layer.modal) return;
  }
}

addEventListener("keydown", pressed);

/** Everything that is bound and would be heard now, by group. */
export function known() {
  const from = layers.findLastIndex((layer) => layer.modal);
  const heard = layers.slice(Math.max(0, from)).flatMap((layer) => layer.bindings).filter((binding) => binding.does);
  return Map.groupBy(heard, (binding) => binding.group ?? "Everywhere");
}

const shown = (name) => name.split("+").map((part) => element("kbd", {}, NAMES[part] ?? part));

/** Show all keys. */
export function help() {
  const groups = [...known()].map(([group, bindings]) => element("section", {},
    element("h3", {}, group),
    element("dl", { class: "keys" }, bindings.map((binding) => element("div", {},
      element("dt", {}, binding.keys.map((name) => element("span", { class: "chord" }, shown(name)))),
      element("dd", {}, binding.does))))));
  const close = element("button", { type: "button", on: { click: () => dialog.close() } }, "Close");
  const dialog = element("dialog", { class: "help", "aria-labelledby": "help-title" },
    element("h2", { id: "help-title" }, "Keys"), element("div", { class: "groups" }, groups), close);
  const free = bind([{ keys: ["Escape", "?"], run: () => dialog.close() }], { modal: true });
  dialog.addEventListener("close", () => {
    free();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}

bind([{ keys: ["?"], does: "show these keys", run: help }]);
