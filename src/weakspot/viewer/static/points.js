// The feature map's points, and how they are drawn: pixel by pixel, which a hundred thousand of them need.

import { ask, askBytes } from "./api.js";

const column = async (name, split) => new Float32Array(await askBytes("/samples/column", { column: name, split }));

/** The samples that have a place on the map: `x`, `y` and `position` of each, and the columns to colour them by. */
export async function mapPoints() {
  const about = await ask("/map");
  const [x, y] = await Promise.all([column(about.x, about.split), column(about.y, about.split)]);
  const position = Uint32Array.from(x.keys()).filter((place) => Number.isFinite(x[place]) && Number.isFinite(y[place]));
  const taken = (values) => Float32Array.from(position, (place) => values[place]);
  return { ...about, position, x: taken(x), y: taken(y) };
}

/** One more column of these points: their values, and the texts that they stand for. */
export async function valuesOf(points, { name, kind }) {
  const [all, named] = await Promise.all([
    column(name, points.split),
    kind === "text" ? ask("/samples/texts", { column: name, split: points.split }) : { texts: [] },
  ]);
  return { values: Float32Array.from(points.position, (place) => all[place]), texts: named.texts };
}

/** A view of the plane: `centre` in data, `scale` in pixels per unit (downwards is negative y). */
export function fitted([left, right, low, high], width, height, margin = 0.05) {
  const across = Math.max(right - left, 1e-9) * (1 + 2 * margin);
  const down = Math.max(high - low, 1e-9) * (1 + 2 * margin);
  return { x: (left + right) / 2, y: (low + high) / 2, scale: Math.min(width / across, height / down) };
}

export const toScreen = (view, width, height, x, y) =>
  [width / 2 + (x - view.x) * view.scale, height / 2 - (y - view.y) * view.scale];

export const toData = (view, width, height, left, top) =>
  [view.x + (left - width / 2) / view.scale, view.y - (top - height / 2) / view.scale];

/** The view, zoomed so that the place under (left, top) stays where it is. */
export function zoomed(view, width, height, left, top, factor) {
  const [x, y] = toData(view, width, height, left, top);
  const scale = view.scale * factor;
  return { x: x - (left - width / 2) / scale, y: y + (top - height / 2) / scale, scale };
}

/** Draw points as squares of `size` pixels into `pixels` (one number each), in the order of `order`. */
export function plot(pixels, width, height, points, colours, order, view, size) {
  const { x, y } = points;
  const half = size >> 1;
  for (const place of order) {
    const left = Math.round(width / 2 + (x[place] - view.x) * view.scale) - half;
    const top = Math.round(height / 2 - (y[place] - view.y) * view.scale) - half;
    if (left < 0 || top < 0 || left + size > width || top + size > height) continue;
    const colour = colours[place];
    for (let row = top; row < top + size; row += 1) pixels.fill(colour, row * width + left, row * width + left + size);
  }
}

/** Finds the point nearest to a place: points sorted into the squares of a grid. */
export class Nearest {
  constructor(xs, ys, [left, right, low, high], side = 256) {
    Object.assign(this, { xs, ys, left, low, side });
    this.width = Math.max(right - left, 1e-9) / side;
    this.height = Math.max(high - low, 1e-9) / side;
    const squares = Uint32Array.from(xs, (x, place) => this.#square(this.#across(x), this.#up(ys[place])));
    this.starts = new Uint32Array(side * side + 1);
    for (const square of squares) this.starts[square + 1] += 1;
    for (let square = 0; square < side * side; square += 1) this.starts[square + 1] += this.starts[square];
    const next = this.starts.slice();
    this.members = new Uint32Array(xs.length);
    squares.forEach((square, place) => (this.members[next[square]++] = place));
  }

  #across(x) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((x - this.left) / this.width)));
  }

  #up(y) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((y - this.low) / this.height)));
  }

  #square(across, up) {
    return up * this.side + across;
  }

  /** The number of the nearest point within `radius`, -1 where there is none. */
  at(x, y, radius) {
    let [best, least] = [-1, radius * radius];
    for (let up = this.#up(y - radius); up <= this.#up(y + radius); up += 1) {
      for (let across = this.#across(x - radius); across <= this.#across(x + radius); across += 1) {
        const square = this.#square(across, up);
        for (let i = this.starts[square]; i < this.starts[square + 1]; i += 1) {
          const place = this.members[i];
          const distance = (this.xs[place] - x) ** 2 + (this.ys[place] - y) ** 2;
          if (distance <= least) [best, least] = [place, distance];
        }
      }
    }
    return best;
  }
}

/** The point nearest to `from` in a direction: within 45° of it; -1 where there is none. */
export function towards(points, from, key) {
  const [ahead, aside] = { ArrowRight: [[1, 0], 1], ArrowLeft: [[-1, 0], 1], ArrowUp: [[0, 1], 0], ArrowDown: [[0, -1], 0] }[key];
  let [best, least] = [-1, Infinity];
  for (let place = 0; place < points.x.length; place += 1) {
    const [dx, dy] = [points.x[place] - points.x[from], points.y[place] - points.y[from]];
    const along = dx * ahead[0] + dy * ahead[1];
    const across = Math.abs(aside ? dy : dx);
    if (along <= 0 || across > along || place === from) continue;
    if (along + across < least) [best, least] = [place, along + across];
  }
  return best;
}
