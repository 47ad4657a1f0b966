// The model's prediction for a sample, from whichever Findings the Run has.

import { number } from "./text.js";

const known = (value) => value !== null && value !== undefined;

/** The prediction in a few words: `cat`, or `dog → cat` where a dog is taken for one. */
export function answer(listing, row) {
  const target = listing.value(row, "target");
  const given = listing.value(row, "prediction");
  if (!known(given)) return known(target) ? number(target) : "";
  return !known(target) || target === given ? number(given) : `${number(target)} → ${number(given)}`;
}

/** The prediction and, where it is incorrect, the label, each for a line of a narrow cell: neither is cut away. */
export function answerLines(listing, row) {
  const target = listing.value(row, "target");
  const given = listing.value(row, "prediction");
  return wrong(listing, row) && known(target) && known(given) ? [number(given), `is ${number(target)}`] : [answer(listing, row), ""];
}

/** Whether the prediction is incorrect; undefined where that is not known. */
export function wrong(listing, row) {
  const correct = listing.value(row, "correct");
  if (typeof correct === "boolean") return !correct;
  const [target, given] = [listing.value(row, "target"), listing.value(row, "prediction")];
  return known(target) && known(given) ? target !== given : undefined;
}
