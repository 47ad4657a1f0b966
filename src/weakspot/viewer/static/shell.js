// What every page has around it.

import { help } from "./keys.js";

document.getElementById("help").addEventListener("click", help);
document.querySelector('nav [aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });
