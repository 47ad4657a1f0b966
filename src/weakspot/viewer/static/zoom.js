// One picture as large as the window allows, with its neighbours an arrow key away.

import { button } from "./controls.js";
import { element, fill } from "./dom.js";
import { bind } from "./keys.js";

const SWIPE = 40; // pixels that a finger moves for the next picture

/**
 * Open the overlay at `at` of `count` pictures. `source(index)` gives an address; `draw(canvas, index)`, where given, shows at once
 * what is at hand (false: nothing is) until that address has loaded. `heat(index)` gives the address with the heat map over it, which
 * is shown beside the picture, and `legend(index)` what its colours mean.
 */
export function zoom({ count, at, source, draw, caption, heat, legend, warm = false, moved, heated, closed, keys = [] }) {
  let index = at;
  let hot = warm;
  let loading = "";
  const canvas = element("canvas", { class: "large", width: 1, height: 1, "aria-hidden": "true" });
  const loaded = () => ([canvas.hidden, image.hidden] = [true, false]);
  const image = element("img", { class: "large", alt: "", hidden: true, on: { load: loaded } });
  const heatImage = element("img", { class: "large", alt: "" });
  const beside = element("div", { class: "stage" }, heatImage);
  const meaning = element("p", { class: "quiet meaning-of" });
  const figure = element("figure", {}, element("div", { class: "stages" }, element("div", { class: "stage" }, canvas, image), beside), meaning, element("figcaption", {}));
  const where = element("p", { class: "quiet" });
  const toggle = heat && button("Heat map", toggled, { key: "h", "aria-pressed": String(hot) });
  const dialog = element("dialog", { class: "zoom", "aria-label": "Picture, enlarged", tabindex: -1 }, figure,
    element("div", { class: "bar" }, button("←", () => go(index - 1), { "aria-label": "Previous picture" }), where,
      button("→", () => go(index + 1), { "aria-label": "Next picture" }), toggle, button("Close", () => dialog.close())));

  function show() {
    const wanted = source(index);
    if (!wanted || wanted !== loading) begin(wanted);
    warmed();
    fill(figure.lastChild, [caption(index)].flat(Infinity));
    where.textContent = `${index + 1} of ${count}`;
    for (const next of [index - 1, index + 1]) if (next >= 0 && next < count && source(next)) new Image().src = source(next);
  }

  /** The heat map over the picture, beside the picture alone. */
  function warmed() {
    const address = (hot && heat?.(index)) || "";
    beside.hidden = meaning.hidden = !address;
    if (!address) return;
    heatImage.alt = `Picture ${index + 1} with its heat map`;
    if (heatImage.getAttribute("src") !== address) heatImage.src = address;
    fill(meaning, legend ? [legend(index)].flat(Infinity) : []);
  }

  /** Show what is at hand until the picture itself has loaded. */
  function begin(address) {
    canvas.hidden = !(draw && draw(canvas, index));
    image.hidden = true;
    loading = address;
    if (!address) return;
    image.alt = `Picture ${index + 1}`;
    image.src = address;
  }

  function go(next) {
    if (next < 0 || next >= count || next === index) return;
    index = next;
    show();
    moved?.(index);
  }

  function toggled() {
    hot = !hot;
    toggle.setAttribute("aria-pressed", hot);
    heated?.(hot);
    show();
  }

  let from = null;
  figure.addEventListener("pointerdown", (event) => (from = event.pointerType === "mouse" ? null : event.clientX));
  figure.addEventListener("pointerup", (event) => {
    const far = from === null ? 0 : event.clientX - from;
    from = null;
    if (Math.abs(far) > SWIPE) go(index + (far < 0 ? 1 : -1));
  });

  const free = bind([
    ...keys,
    { keys: ["ArrowRight", "ArrowDown", "j"], does: "next picture", run: () => go(index + 1), group: "Enlarged" },
    { keys: ["ArrowLeft", "ArrowUp", "k"], does: "previous picture", run: () => go(index - 1), group: "Enlarged" },
    { keys: ["h"], does: "heat map on and off", run: toggled, group: "Enlarged", when: () => Boolean(heat) },
    { keys: ["Escape", "Enter", "z"], does: "close", run: () => dialog.close(), group: "Enlarged" },
  ], { modal: true });
  dialog.addEventListener("close", () => {
    free();
    dialog.remove();
    closed?.(index);
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.focus(); // not a button, which would keep Enter and Space to itself
  show();
  return { close: () => dialog.close(), redraw: show };
}
