// The samples that a search, filters and an order leave: their positions at once, their values and pictures as they are seen.

import { ask, askBytes } from "./api.js";
import { Blocks } from "./blocks.js";
import { complain } from "./dom.js";
import { Pictures } from "./pictures.js";

/** What the server knows of the samples asked for: `{split, pictures, columns, total, order}`, order as positions. */
export async function listed({ split, search, filter, sort }, signal) {
  const asked = { split, search, filter, sort };
  const [about, bytes] = await Promise.all([
    ask("/samples", { ...asked, limit: 0 }, signal),
    askBytes("/samples/positions", asked, signal),
  ]);
  return { ...about, order: new Uint32Array(bytes) };
}

/** Where each column stands, by its name and, where that names its Finding too, also by the bare one. */
export function placesOf(columns) {
  const bare = ({ name, finding }) => (name.startsWith(`${finding}.`) ? name.slice(finding.length + 1) : name);
  const places = new Map(columns.map((column, place) => [column.name, place]));
  columns.forEach((column, place) => places.has(bare(column)) || places.set(bare(column), place));
  return places;
}

/** Rows and pictures of some positions in the order shown; `arrived` is called with those that came. */
export class Listing {
  constructor({ split, pictures, columns, order, arrived }) {
    Object.assign(this, { split, columns, order });
    this.places = placesOf(columns);
    this.pictures = new Pictures({ split, about: pictures, positions: order, arrived });
    const load = async (first, end, signal) => {
      const positions = Array.from(order.slice(first, end)).join(",");
      return (await ask("/samples/rows", { split, positions }, signal)).rows;
    };
    this.rows = new Blocks({ count: order.length, load, arrived, failed: complain });
  }

  get count() {
    return this.order.length;
  }

  near(first, end) {
    this.pictures.near(first, end);
    this.rows.near(first, end);
  }

  /** The row of an index, undefined as long as it is not there. */
  row(index) {
    const found = this.rows.at(index);
    return found?.block[found.place];
  }

  value(row, name) {
    const place = this.places.get(name);
    return place === undefined ? undefined : row.values[place];
  }

  stop() {
    this.pictures.stop();
    this.rows.stop();
  }
}
