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
