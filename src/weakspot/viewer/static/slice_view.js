// One plane: a slice with outlines over it, lines through the place at hand, and a slider through the slices.

import { element } from "./dom.js";
import { fitted, spot } from "./planes.js";

const WHEEL = 40; // how far the wheel turns for one slice

/** Pictures that lie over each other and change together, without a gap: all of one slice take their places once the last of them is there, and only the slice asked for last counts. */
export class Layers {
  constructor(kinds) {
    this.nodes = kinds.map((kind) => element("img", { class: kind, alt: "", draggable: "false" }));
  }

  async show(addresses) {
    this.wanted = addresses;
    if (this.loading) return;
    this.loading = true;
    while (this.wanted !== this.shown) {
      const shown = (this.shown = this.wanted);
      const next = this.nodes.map((node, place) => (node.getAttribute("src") === shown[place] ? node : element("img", { class: node.className, alt: "", draggable: "false", src: shown[place] })));
      await Promise.all(next.map((image) => image.decode().catch(() => {}))); // one that fails leaves an empty place; the page says why
      this.nodes.forEach((node, place) => node !== next[place] && node.replaceWith(next[place]));
      this.nodes = next;
    }
    this.loading = false;
  }
}

export class SliceView {
  /** `moved(right, down)`: a spot from 0 to 1 was chosen; `stepped(by)`, `windowed(right, down)`, `entered()`. */
  constructor({ plane, moved, stepped, sliced, windowed, entered, windowing }) {
    Object.assign(this, { plane, callbacks: { moved, stepped, sliced, windowed, entered, windowing }, turned: 0 });
    this.layers = new Layers(["grey", "outlines"]);
    this.lines = ["across", "down"].map((kind) => element("div", { class: `line ${kind}` }));
    this.letters = ["left", "right", "up", "down"].map((side) => element("span", { class: `letter ${side}` }));
    this.stage = element("div", { class: "stage" }, this.layers.nodes, this.lines, this.letters);
    this.box = element("div", { class: "box" }, this.stage);
    this.slider = element("input", { type: "range", min: 0, value: 0, "aria-label": `${plane} slice`, on: { input: () => sliced(Number(this.slider.value)) } });
    this.caption = element("figcaption", {});
    this.node = element("figure", { class: "slice" }, this.caption, this.box, this.slider);
    this.node.addEventListener("pointerenter", entered);
    this.node.addEventListener("focusin", entered);
    this.#listen();
    new ResizeObserver(() => this.#fits() && this.resized()).observe(this.box);
  }

  /** Another case: `extent` of the plane, and `resized()` when the slice has another size on the screen. */
  open(extent, resized) {
    Object.assign(this, { extent, resized });
    this.slider.max = extent.slices - 1;
    this.letters.forEach((letter, side) => (letter.textContent = extent.letters?.[side] ?? ""));
    this.#fits();
  }

  /** Slice `index` with the place at hand; `addresses(index)` gives both layers. The slice after it is fetched ahead. */
  async show(index, place, shape, addresses) {
    const by = index - (this.index ?? index);
    this.index = index;
    this.slider.value = index;
    this.slider.ariaValueText = `slice ${index + 1} of ${this.extent.slices}`;
    this.caption.textContent = `${this.plane[0].toUpperCase()}${this.plane.slice(1)} · ${index + 1} of ${this.extent.slices}`;
    const [right, down] = spot(this.plane, place, shape);
    this.lines[0].style.top = `${100 * down}%`;
    this.lines[1].style.left = `${100 * right}%`;
    await this.layers.show(addresses(index));
    const next = index + by;
    if (by && this.index === index && next >= 0 && next < this.extent.slices) for (const ahead of addresses(next)) new Image().src = ahead;
  }

  /** The size of the slice in pixels of the screen. */
  get pixels() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const scale = Math.min(devicePixelRatio, 2048 / Math.max(width, height, 1));
    return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
  }

  /** Give the slice the room there is; whether that changed anything. */
  #fits() {
    if (!this.extent || !this.box.clientWidth) return false;
    const { width, height } = fitted(this.extent, { width: this.box.clientWidth, height: this.box.clientHeight });
    if (this.stage.clientWidth === width && this.stage.clientHeight === height) return false;
    this.stage.style.width = `${width}px`;
    this.stage.style.height = `${height}px`;
    return true;
  }

  #listen() {
    this.stage.addEventListener("pointerdown", (event) => {
      if (event.button === 1) return;
      event.preventDefault();
      this.stage.setPointerCapture(event.pointerId);
      this.held = { x: event.clientX, y: event.clientY, windows: event.button === 2 || event.shiftKey || this.callbacks.windowing() };
      if (!this.held.windows) this.#choose(event);
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      if (!this.held.windows) return void this.#choose(event);
      this.callbacks.windowed(event.clientX - this.held.x, event.clientY - this.held.y);
      Object.assign(this.held, { x: event.clientX, y: event.clientY });
    });
    for (const end of ["pointerup", "pointercancel"]) this.stage.addEventListener(end, () => (this.held = undefined));
    this.stage.addEventListener("contextmenu", (event) => event.preventDefault());
    this.stage.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  #wheel(event) {
    event.preventDefault();
    this.turned += event.deltaY;
    const by = Math.trunc(this.turned / WHEEL);
    this.turned -= by * WHEEL;
    if (by) this.callbacks.stepped(by);
  }

  #choose(event) {
    const box = this.stage.getBoundingClientRect();
    const inside = (share) => Math.min(1, Math.max(0, share));
    this.callbacks.moved(inside((event.clientX - box.left) / box.width), inside((event.clientY - box.top) / box.height));
  }
}
