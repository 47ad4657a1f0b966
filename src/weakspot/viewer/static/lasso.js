// A selection drawn by hand: which points lie inside a polygon. Points are [x, y].

/** Even-odd rule: does a ray from the point cross the outline an odd number of times? */
export function inside(polygon, x, y) {
  let within = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}

/** The numbers of the points inside the polygon; most are ruled out by its bounds alone. */
export function within(polygon, xs, ys) {
  if (polygon.length < 3) return [];
  const [left, right, low, high] = bounds(polygon);
  const found = [];
  for (let i = 0; i < xs.length; i += 1) {
    const x = xs[i];
    const y = ys[i];
    if (x >= left && x <= right && y >= low && y <= high && inside(polygon, x, y)) found.push(i);
  }
  return found;
}

export function bounds(points) {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of points) {
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [low, high] = [Math.min(low, y), Math.max(high, y)];
  }
  return [left, right, low, high];
}

export const rectangle = ([left, right, low, high]) => [[left, low], [right, low], [right, high], [left, high]];

/** The path with fewer corners, none of those left out farther from it than `tolerance` (Douglas and Peucker 1973). */
export function simplified(path, tolerance) {
  if (path.length < 3) return path;
  const first = path[0];
  const last = path.at(-1);
  let far = 0;
  let at = 0;
  for (let i = 1; i < path.length - 1; i += 1) {
    const distance = fromSegment(path[i], first, last);
    if (distance > far) [far, at] = [distance, i];
  }
  if (far <= tolerance) return [first, last];
  return [...simplified(path.slice(0, at + 1), tolerance).slice(0, -1), ...simplified(path.slice(at), tolerance)];
}

function fromSegment([x, y], [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const along = dx || dy ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy))) : 0;
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}

/** As text for an address, and back; what is no polygon gives none. */
export const written = (polygon) => polygon.map(([x, y]) => `${+x.toPrecision(5)},${+y.toPrecision(5)}`).join(";");

export function read(text) {
  const points = text.split(";").map((pair) => pair.split(",").map(Number));
  const sound = points.every((point) => point.length === 2 && point.every(Number.isFinite));
  return sound && points.length >= 3 && text ? points : [];
}
