// One plane: a slice with outlines over it, lines through the place at hand, and a slider through the slices.

import { element } from "./dom.js";
import { centred, fitted, panned, spot, zoomed } from "./planes.js";

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
    this.frame = element("div", { class: "frame" }, this.stage);
    this.box = element("div", { class: "box" }, this.frame);
    this.view = { scale: 1, left: 0, top: 0 };
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
    const wanted = devicePixelRatio * Math.min(this.view.scale, 4); // outlines stay thin in an enlarged view
    const scale = Math.min(wanted, 2048 / Math.max(width, height, 1));
    return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
  }

  /** Give the slice the room there is; whether that changed anything. */
  #fits() {
    if (!this.extent || !this.box.clientWidth) return false;
    const { width, height } = fitted(this.extent, { width: this.box.clientWidth, height: this.box.clientHeight });
    if (this.stage.clientWidth === width && this.stage.clientHeight === height) return false;
    for (const node of [this.stage, this.frame]) Object.assign(node.style, { width: `${width}px`, height: `${height}px` });
    return true;
  }

  /** Enlarge or shrink about the place at hand, or about a spot of the frame. */
  zoom(factor, right = 0.5, down = 0.5) {
    this.#see(zoomed(this.view, factor, right, down));
  }

  /** As large as the slice, or as enlarged with the place at hand in the middle. */
  reset() {
    this.#see({ scale: 1, left: 0, top: 0 });
  }

  centre(right, down) {
    this.#see(centred(this.view, right, down));
  }

  #see(view) {
    this.view = view;
    this.stage.style.transform = `scale(${view.scale}) translate(${-100 * view.left}%, ${-100 * view.top}%)`;
    this.stage.style.setProperty("--thin", 1 / view.scale);
    this.frame.classList.toggle("enlarged", view.scale > 1);
    this.letters.forEach((letter) => (letter.hidden = view.scale > 1));
  }

  #listen() {
    this.stage.addEventListener("pointerdown", (event) => {
      if (event.button === 1) return;
      event.preventDefault();
      this.stage.setPointerCapture(event.pointerId);
      this.held = { x: event.clientX, y: event.clientY, pans: event.altKey, windows: event.button === 2 || event.shiftKey || this.callbacks.windowing() };
      if (!this.held.windows && !this.held.pans) this.#choose(event);
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      if (this.held.pans) return void this.#pan(event);
      if (!this.held.windows) return void this.#choose(event);
      this.callbacks.windowed(event.clientX - this.held.x, event.clientY - this.held.y);
      Object.assign(this.held, { x: event.clientX, y: event.clientY });
    });
    for (const end of ["pointerup", "pointercancel"]) this.stage.addEventListener(end, () => (this.held = undefined));
    this.stage.addEventListener("contextmenu", (event) => event.preventDefault());
    this.stage.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  #pan(event) {
    const { width, height } = this.frame.getBoundingClientRect();
    this.#see(panned(this.view, (event.clientX - this.held.x) / width, (event.clientY - this.held.y) / height));
    Object.assign(this.held, { x: event.clientX, y: event.clientY });
  }

  #wheel(event) {
    event.preventDefault();
    if (event.ctrlKey) {
      const box = this.frame.getBoundingClientRect();
      this.zoom(1.2 ** (-event.deltaY / WHEEL), (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
      return this.resized?.();
    }
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
