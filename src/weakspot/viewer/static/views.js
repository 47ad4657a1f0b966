// Views that were saved under a name: all state of a page is in its address, so a view is an address.

import { ask, send } from "./api.js";
import { button } from "./controls.js";
import { announce, complain, element, fill } from "./dom.js";
import { bind } from "./keys.js";

const here = () => location.pathname + location.search;

/** The saved views: open, save this one, remove. */
export async function showViews() {
  const list = element("ul", { class: "kept" });
  const name = element("input", { type: "text", maxlength: 100, required: true, "aria-label": "Name of this view", placeholder: "name of this view" });
  const form = element("form", { class: "bar", on: { submit: (event) => { event.preventDefault(); keep(name.value.trim(), here()); } } },
    name, element("button", { class: "main" }, "Save this view"));
  const dialog = element("dialog", { class: "views", "aria-labelledby": "views-title" }, element("h2", { id: "views-title" }, "Saved views"), list, form,
    button("Close", () => dialog.close()));

  function show({ views }) {
    fill(list, views.length ? views.map((view) => element("li", { class: "bar" }, element("a", { href: view.address }, view.name),
      button("✕", () => keep(view.name, null), { "aria-label": `Remove the view ${view.name}` })))
      : element("li", { class: "quiet" }, "None yet. A view keeps the page with its filters, order, selection and colours."));
  }

  async function keep(called, address) {
    if (!called) return;
    try {
      show(await send("PUT", "/settings/views", { name: called, address }));
      announce(address ? `Saved as ${called}` : `${called} removed`);
      name.value = "";
    } catch (error) {
      dialog.close();
      complain(error);
    }
  }

  const free = bind([{ keys: ["Escape"], run: () => dialog.close() }], { modal: true });
  dialog.addEventListener("close", () => {
    free();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  try {
    show(await ask("/settings"));
  } catch (error) {
    dialog.close();
    complain(error);
  }
}
