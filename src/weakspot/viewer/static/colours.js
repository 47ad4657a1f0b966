// Colours that people with any kind of colour vision can tell apart, on light and on dark paper.

export const CATEGORIES = ["#2c6fbb", "#d55e00", "#009e73", "#b36bb0", "#e0a100", "#4aa8d8", "#8c564b", "#7f7f2a"];
export const OTHER = "#8a929b";
const FEW = 20; // so many different whole numbers name groups rather than amounts
const RAMP = ["#2c5fb3", "#1f8f9e", "#5fb56a", "#f2c14e"];

const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
const joined = (rgb) => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

/** Between two colours. */
export const mixed = (from, to, share) => joined(parts(from).map((part, i) => part + (parts(to)[i] - part) * share));

/** The colour of a number from 0 to 1. */
export function ramp(share) {
  const place = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const step = Math.min(RAMP.length - 2, Math.floor(place));
  return mixed(RAMP[step], RAMP[step + 1], place - step);
}

/** As one number of an image's pixels, which lie as red, green, blue, opacity in memory. */
export function pixel(hex) {
  const [red, green, blue] = parts(hex);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * The colour of each value, as places in a small palette: `{palette, place, legend: [[colour, text]], range}`.
 * Numbers go along the ramp; of texts, flags and a few whole numbers the most frequent have a colour each, the others share one.
 */
export function coloured({ kind, whole = false, texts = [] }, values) {
  const counts = new Map();
  for (const value of values) if (Number.isFinite(value)) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (kind === "number" && !(whole && counts.size <= FEW)) return byNumber(values);
  const names = { flag: ["no", "yes"], text: texts }[kind] ?? { at: String };
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).slice(0, CATEGORIES.length).map(([value]) => value).sort((a, b) => a - b);
  const places = new Map(frequent.map((value, place) => [value, place]));
  const legend = frequent.map((value, place) => [CATEGORIES[place], names.at(value)]);
  const rest = CATEGORIES.length;
  const place = Uint8Array.from(values, (value) => places.get(value) ?? rest);
  if (place.includes(rest)) legend.push([OTHER, "others"]);
  return { palette: [...CATEGORIES, OTHER], place, legend };
}

function byNumber(values) {
  const steps = 64;
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const width = high - low || 1;
  const palette = Array.from({ length: steps }, (_, step) => ramp(step / (steps - 1)));
  const place = Uint8Array.from(values, (value) =>
    Number.isFinite(value) ? Math.min(steps - 1, Math.floor(((value - low) / width) * steps)) : steps);
  const legend = place.includes(steps) ? [[OTHER, "no value"]] : [];
  return { palette: [...palette, OTHER], place, legend, range: low <= high ? [low, high] : undefined };
}
