// What every page has around it.

import { announce } from "./dom.js";
import { bind, help } from "./keys.js";
import { showViews } from "./views.js";
import { watch } from "./watch.js";

const light = document.getElementById("light");
document.getElementById("help").addEventListener("click", help);
document.getElementById("views").addEventListener("click", showViews);
light.addEventListener("click", brighten);
document.querySelector('nav [aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });

// Near-black pictures cannot be judged as they are: brighter, brighter still, as they are again.
const LIGHT = ["as they are", "twice as bright", "5 times as bright", "12 times as bright"];

function brighten() {
  const next = (Number(document.documentElement.dataset.light ?? 0) + 1) % LIGHT.length;
  document.documentElement.dataset.light = next;
  light.setAttribute("aria-pressed", next > 0);
  announce(`Pictures ${LIGHT[next]}`);
}

bind([
  { keys: ["i"], does: "pictures brighter, and as they are again", run: brighten },
  { keys: ["v"], does: "saved views", run: showViews },
]);
watch();
