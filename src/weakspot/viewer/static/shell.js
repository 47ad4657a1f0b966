// What every page has around it.

import { announce } from "./dom.js";
import { bind, help } from "./keys.js";

document.getElementById("help").addEventListener("click", help);
document.querySelector('nav [aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });

// Near-black pictures cannot be judged as they are: brighter, brighter still, as they are again.
const LIGHT = ["as they are", "brighter", "brightest"];
bind([{ keys: ["i"], does: "pictures brighter, and as they are again", run: () => {
  const next = (Number(document.documentElement.dataset.light ?? 1) % LIGHT.length) + 1;
  document.documentElement.dataset.light = next;
  announce(`Pictures ${LIGHT[next - 1]}`);
} }]);
