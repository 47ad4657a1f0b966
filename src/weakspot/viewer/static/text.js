// Numbers as a reader wants them.

const whole = new Intl.NumberFormat("en");
const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** At most four significant digits; a dash where there is no number. */
export function number(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return whole.format(value);
  const size = Math.abs(value);
  return size < 1e-4 || size >= 1e9 ? value.toExponential(3) : significant.format(value);
}

export const percent = (value) => (value === null || value === undefined ? "–" : `${significant.format(100 * value)} %`);

export const counted = (count, noun) => `${whole.format(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Both ends as they are printed beside the value: of a share `text` is `percent`. */
export const interval = (low, high, text = number) =>
  low === null || low === undefined || high === null || high === undefined ? "" : `${text(low)} to ${text(high)}`;
