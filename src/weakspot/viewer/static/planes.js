// Three planes through one place of a volume (z, y, x): which slice each shows, and where in it the place lies.

export const PLANES = ["axial", "coronal", "sagittal"];
const ROWS = { axial: 1, coronal: 0, sagittal: 0 };
const COLUMNS = { axial: 2, coronal: 2, sagittal: 1 };

/** Which slice of a plane a place lies in. */
export const sliceOf = (plane, place) => place[PLANES.indexOf(plane)];

/** Where a place lies in its slice, from 0 to 1 to the right and down: slices are shown with both axes turned round. */
export function spot(plane, place, shape) {
  const share = (axis) => 1 - (place[axis] + 0.5) / shape[axis];
  return [share(COLUMNS[plane]), share(ROWS[plane])];
}

/** The place that a spot of a slice shows, the third coordinate as it is. */
export function placeAt(plane, right, down, place, shape) {
  const moved = [...place];
  const voxel = (share, axis) => Math.min(shape[axis] - 1, Math.max(0, Math.floor((1 - share) * shape[axis])));
  moved[COLUMNS[plane]] = voxel(right, COLUMNS[plane]);
  moved[ROWS[plane]] = voxel(down, ROWS[plane]);
  return moved;
}

/** The place `by` slices further in a plane, inside the volume. */
export function stepped(plane, by, place, shape) {
  const axis = PLANES.indexOf(plane);
  const moved = [...place];
  moved[axis] = Math.min(shape[axis] - 1, Math.max(0, place[axis] + by));
  return moved;
}

/** The largest size that fits into a box and keeps the proportions of a slice, in whole pixels. */
export function fitted({ width, height }, box) {
  const scale = Math.min(box.width / width, box.height / height);
  return { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
}

export const MOST_ZOOM = 32;

/** A view (scale, and the share of the stage that lies at its left and upper edge) after zooming by `factor` about a spot of the box, from 0 to 1. */
export function zoomed({ scale, left, top }, factor, right, down) {
  const next = Math.min(MOST_ZOOM, Math.max(1, scale * factor));
  return clamped({ scale: next, left: left + right / scale - right / next, top: top + down / scale - down / next });
}

/** A view moved by shares of the box. */
export const panned = ({ scale, left, top }, right, down) => clamped({ scale, left: left - right / scale, top: top - down / scale });

/** A view that keeps its scale and has a spot of the slice in its middle, as far as the slice reaches. */
export const centred = ({ scale }, right, down) => clamped({ scale, left: right - 0.5 / scale, top: down - 0.5 / scale });

function clamped({ scale, left, top }) {
  const inside = (share) => Math.min(1 - 1 / scale, Math.max(0, share));
  return { scale, left: inside(left), top: inside(top) };
}

/** A window after a drag: to the right it becomes wider, down its level rises; one screen inch is about a tenth. */
export function dragged({ low, high }, right, down, range) {
  const step = (range || high - low) / 500;
  const width = Math.max(step / 10, high - low + right * step);
  const level = (low + high) / 2 + down * step;
  return { low: level - width / 2, high: level + width / 2 };
}

/** Windows to choose from: what suits the image, all of it, and those for Hounsfield units where it seems to have them. */
export function presets({ low, high, smallest, largest }) {
  const found = [["auto", low, high], ["full range", smallest, largest > smallest ? largest : smallest + 1]];
  if (smallest > -900 || largest < 1000) return found;
  const units = [["brain", 40, 80], ["soft tissue", 40, 400], ["lung", -600, 1500], ["bone", 300, 2000]];
  return [...found, ...units.map(([name, level, width]) => [name, level - width / 2, level + width / 2])];
}
