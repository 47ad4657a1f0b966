// The plane of points: drawn in one go, moved and zoomed with mouse, wheel, fingers or keys, with a lasso.

import { mixed, pixel } from "./colours.js";
import { element } from "./dom.js";
import { bounds, simplified } from "./lasso.js";
import { fitted, Nearest, plot, toData, toScreen, towards, zoomed } from "./points.js";

const REACH = 12; // pixels around the pointer in which a point is found
const MOST_ZOOM = 400;

export class Plane {
  /** `hovered(place, left, top)` and `picked(place)` are called with a point (-1: none), `drawn(polygon)` a lasso, `viewed` the view. */
  constructor({ label, hovered, picked, opened, drawn, viewed }) {
    Object.assign(this, { callbacks: { hovered, picked, opened, drawn, viewed }, panning: false, current: -1, polygon: [], path: [] });
    this.canvas = element("canvas");
    this.over = element("canvas", { class: "over" });
    this.node = element("div", { class: "plane", role: "application", tabindex: 0, "aria-label": label }, this.canvas, this.over);
    this.#listen();
    new ResizeObserver(() => this.#resized()).observe(this.node);
  }

  /** Show points; without a view all of them. */
  show(points, view) {
    this.points = points;
    this.bounds = bounds(Array.from(points.x, (x, place) => [x, points.y[place]]));
    this.nearest = new Nearest(points.x, points.y, this.bounds);
    this.wanted = view;
    this.#resized();
  }

  /** Colour the points; beside `selected` ones (null: no selection) the others fade into the paper, and lie below them. */
  colour({ palette, place }, selected, paper) {
    const bright = palette.map(pixel);
    const faint = selected ? palette.map((one) => pixel(mixed(one, paper, 0.75))) : bright;
    this.order = Uint32Array.from(place.keys());
    this.colours = Uint32Array.from(place, (number) => faint[number]);
    if (selected) {
      const chosen = new Uint8Array(place.length);
      for (const point of selected) chosen[point] = 1;
      const others = this.order.filter((point) => !chosen[point]);
      this.order.set(selected, others.length);
      this.order.set(others);
      for (const point of selected) this.colours[point] = bright[place[point]];
    }
    this.refresh();
  }

  /** The view as it stands in an address: the middle, and how much of the data fits into the shorter side. */
  get span() {
    return Math.min(this.width, this.height) / this.view.scale;
  }

  fit() {
    this.#look(fitted(this.bounds, this.width, this.height));
  }

  zoom(factor, left = this.width / 2, top = this.height / 2) {
    const whole = fitted(this.bounds, this.width, this.height).scale;
    const scale = Math.min(whole * MOST_ZOOM, Math.max(whole / 2, this.view.scale * factor));
    this.#look(zoomed(this.view, this.width, this.height, left, top, scale / this.view.scale));
  }

  pan(right, down) {
    this.#look({ ...this.view, x: this.view.x - right / this.view.scale, y: this.view.y + down / this.view.scale });
  }

  /** Mark a point, and bring it into view. */
  mark(place) {
    this.current = place;
    if (place >= 0 && this.view) {
      const [left, top] = this.place(place);
      if (left < 0 || top < 0 || left > this.width || top > this.height) {
        this.#look({ ...this.view, x: this.points.x[place], y: this.points.y[place] });
      }
    }
    this.refresh();
  }

  /** Where a point is, in pixels. */
  place(point) {
    return toScreen(this.view, this.width, this.height, this.points.x[point], this.points.y[point]);
  }

  outline(polygon) {
    this.polygon = polygon;
    this.refresh();
  }

  /** Draw before the next picture of the screen. */
  refresh() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.view && this.colours) this.#draw();
    });
  }

  #look(view) {
    this.view = view;
    this.callbacks.viewed(view);
    this.refresh();
  }

  #resized() {
    const { clientWidth: width, clientHeight: height } = this.node;
    if (!width || !height || !this.points) return;
    Object.assign(this, { width, height, ratio: devicePixelRatio });
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    if (!this.view) {
      const { x, y, span } = this.wanted ?? {};
      this.view = span ? { x, y, scale: Math.min(width, height) / span } : fitted(this.bounds, width, height);
    }
    this.refresh();
  }

  #draw() {
    const { width, height } = this.canvas;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const view = { ...this.view, scale: this.view.scale * this.ratio };
    const closer = this.view.scale / fitted(this.bounds, this.width, this.height).scale;
    const size = Math.round((this.points.x.length > 20_000 ? 2 : 4) * this.ratio * Math.min(3, Math.max(1, Math.sqrt(closer))));
    plot(new Uint32Array(image.data.buffer), width, height, this.points, this.colours, this.order, view, size);
    context.putImageData(image, 0, 0);
    this.#drawOver();
  }

  #drawOver() {
    const context = this.over.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.strokeStyle = context.fillStyle = getComputedStyle(this.node).color;
    context.lineWidth = 2;
    const path = this.path.length ? this.path : this.polygon.map(([x, y]) => toScreen(this.view, this.width, this.height, x, y));
    if (path.length > 1) {
      context.setLineDash([6, 4]);
      context.beginPath();
      path.forEach(([left, top]) => context.lineTo(left, top));
      context.closePath();
      context.stroke();
      context.setLineDash([]);
    }
    if (this.current >= 0) {
      context.beginPath();
      context.arc(...this.place(this.current), 8, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #find(left, top) {
    const [x, y] = toData(this.view, this.width, this.height, left, top);
    return this.nearest.at(x, y, REACH / this.view.scale);
  }

  #listen() {
    const on = (event, run) => this.canvas.addEventListener(event, (given) => this.view && run(given));
    on("pointerdown", (event) => this.#pressed(event));
    on("pointermove", (event) => this.#moved(event));
    on("pointerup", (event) => this.#released(event));
    on("pointercancel", () => (this.held = undefined));
    on("pointerleave", () => this.callbacks.hovered(-1));
    on("dblclick", (event) => this.callbacks.opened(this.#find(...this.#at(event))));
    on("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), ...this.#at(event));
    });
    this.node.addEventListener("keydown", (event) => this.key(event));
  }

  #pressed(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { at: this.#at(event), pans: this.panning || event.shiftKey || event.button === 1, moved: false };
    this.path = [];
  }

  #moved(event) {
    const [left, top] = this.#at(event);
    if (!this.held) return this.callbacks.hovered(this.#find(left, top), left, top);
    const [right, down] = [left - this.held.at[0], top - this.held.at[1]];
    if (!this.held.moved && Math.hypot(right, down) < 4) return undefined;
    this.held.moved = true;
    this.callbacks.hovered(-1);
    if (this.held.pans) {
      this.pan(right, down);
      this.held.at = [left, top];
    } else {
      if (!this.path.length) this.path.push(this.held.at);
      this.path.push([left, top]);
      this.refresh();
    }
    return undefined;
  }

  #released(event) {
    const { held, path } = this;
    this.held = undefined;
    this.path = [];
    if (!held) return;
    if (!held.moved) this.callbacks.picked(this.#find(...this.#at(event)));
    else if (!held.pans && path.length > 2) {
      this.callbacks.drawn(simplified(path, 1.5).map(([left, top]) => toData(this.view, this.width, this.height, left, top)));
    }
    this.refresh();
  }

  /** Arrows lead to the next point that way, with Shift they move the view. */
  key(event) {
    if (!this.view || event.ctrlKey || event.metaKey || event.altKey || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (event.shiftKey) {
      const [right, down] = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      this.pan(right, down);
      return;
    }
    const from = this.current >= 0 ? this.current : this.nearest.at(this.view.x, this.view.y, this.span * 10);
    const next = this.current >= 0 ? towards(this.points, from, event.key) : from;
    if (next >= 0) this.callbacks.picked(next);
  }
}
