// Small pictures come in sheets, many in one answer, and are drawn into the cells from there.

import { address, askBlob } from "./api.js";
import { Blocks } from "./blocks.js";
import { complain } from "./dom.js";

/** Draw the picture at a place of a sheet, whose pictures are of the size that `about` says. */
export function drawFrom(canvas, sheet, { width, height, columns }, place) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const [left, top] = [(place % columns) * width, Math.floor(place / columns) * height];
  canvas.getContext("2d").drawImage(sheet, left, top, width, height, 0, 0, width, height);
}

/** Nothing rather than the picture of another: cells are used again. */
export const clear = (canvas) => canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);

/** Pictures that come in sheets: `sheet(first, end, signal)` gives some of `count`; until they are there, `until` is drawn. */
export class Sheets {
  constructor({ about, count, sheet, arrived, failed = complain, size = 64, until }) {
    Object.assign(this, { about, until });
    const load = async (first, end, signal) => createImageBitmap(await sheet(first, end, signal));
    this.blocks = new Blocks({ count: about.width ? count : 0, load, arrived, failed, size });
  }

  near(first, end) {
    this.blocks.near(first, end);
  }

  /** Draw a picture if it is there; false where it is still to come. */
  draw(canvas, index) {
    canvas.hidden = !this.about.width;
    if (canvas.hidden) return true;
    const found = this.blocks.at(index);
    if (found) drawFrom(canvas, found.block, this.about, found.place);
    else if (this.until) return this.until.draw(canvas, index);
    else clear(canvas);
    return Boolean(found);
  }

  stop() {
    this.blocks.stop();
  }
}

/** The address of a sample's picture; the version makes it another one when the Run changes. */
export const picture = (split, position, version, run) =>
  address(`/picture/${encodeURIComponent(split)}/${position}`, { v: version, ...(run === undefined ? {} : { run }) });

/** The pictures of samples, by their positions in the order shown. */
export class Pictures extends Sheets {
  constructor({ split, about, positions, arrived }) {
    const sheet = (first, end, signal) => {
      const asked = { positions: Array.from(positions.slice(first, end)).join(","), v: about.version };
      return askBlob(`/sheet/${encodeURIComponent(split)}`, asked, signal);
    };
    super({ about, count: positions.length, sheet, arrived });
    Object.assign(this, { split, positions });
  }

  /** The address of a single one, for enlarging. */
  source(index) {
    return this.about.width ? picture(this.split, this.positions[index], this.about.version) : "";
  }
}
