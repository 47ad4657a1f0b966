// A Run that is examined while it is looked at: what is new is offered, never put in the place of what is looked at.

import { address } from "./api.js";
import { button } from "./controls.js";
import { element, fill } from "./dom.js";
import { counted } from "./text.js";

const PAUSE = 4000; // milliseconds between two looks

let known;

async function look() {
  const response = await fetch(address("/state"));
  if (!response.ok) return;
  const now = await response.json();
  known ??= now;
  const changed = Object.keys(now.findings).filter((name) => now.findings[name] !== known.findings[name]);
  const gone = Object.keys(known.findings).filter((name) => !(name in now.findings));
  tell(now, new Set([...changed, ...gone]).size);
}

function tell(now, changed) {
  const box = document.getElementById("news");
  const examined = now.running || now.answered < now.asked;
  const far = examined && `This Run is being examined, or its examination was interrupted: ${now.answered} of ${counted(now.asked, "Finding")} ${now.asked === 1 ? "is" : "are"} there. `;
  const text = [far, changed && `${counted(changed, "Finding")} changed since this page was opened. `].filter(Boolean).join("");
  if (box.dataset.told === text) return;
  box.dataset.told = text;
  fill(box, text && element("p", { class: "caution" }, text, changed ? button("Show what is new", () => location.reload()) : null));
}

/** Look now and then as long as the page is seen. */
export function watch() {
  const again = () => {
    if (!document.hidden) look().catch(() => {}); // the page itself says when the viewer has ended
  };
  again();
  setInterval(again, PAUSE);
  document.addEventListener("visibilitychange", again);
}
