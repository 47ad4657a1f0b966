// Elements from data. Texts stay texts: nothing here ever parses HTML.

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "open", "width", "height", "indeterminate"]);

/** An element with attributes, listeners (`on`) and children; null, undefined and false leave an attribute or child out. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || (value === false && !PROPERTIES.has(name))) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (PROPERTIES.has(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...nodes(children));
  return node;
}

/** Put these children in the place of those that are there. */
export function fill(node, ...children) {
  node.replaceChildren(...nodes(children));
  return node;
}

const nodes = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** The page's own part of the shell, empty. */
export function page() {
  return fill(document.getElementById("main"));
}

let fading = 0;

/** Say something in passing: read aloud, and shown for a moment. */
export function announce(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => said.classList.remove("shown"), 2500);
}

/** Show what went wrong, until it is dismissed. */
export function complain(error) {
  const box = document.getElementById("trouble");
  const text = error instanceof Error ? error.message : String(error);
  const dismiss = element("button", { type: "button", on: { click: () => fill(box) } }, "Dismiss");
  fill(box, element("p", { class: "warning", role: "alert" }, element("span", {}, text), " ", dismiss));
}
