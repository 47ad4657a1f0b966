// All state of a page stands in its query string, so that its address can be pasted into a ticket.

import { query, RUN } from "./api.js";

/** Values of a query string, each of the type of its default: number, boolean, text or list of texts. */
export function parse(search, defaults) {
  const given = new URLSearchParams(search);
  const read = (name, standard) => {
    if (Array.isArray(standard)) return given.has(name) ? given.getAll(name) : standard;
    if (!given.has(name)) return standard;
    if (typeof standard === "boolean") return given.get(name) === "1";
    if (typeof standard !== "number") return given.get(name);
    const number = Number(given.get(name));
    return Number.isFinite(number) ? number : standard;
  };
  return Object.fromEntries(Object.entries(defaults).map(([name, standard]) => [name, read(name, standard)]));
}

/** The query string of these values; what is as by default does not stand there, nor what is empty. */
export function format(values, defaults = {}) {
  const changed = Object.entries(values).filter(([name, value]) => String(value) !== String(defaults[name] ?? ""));
  return query(Object.fromEntries(changed.map(([name, value]) => [name, typeof value === "boolean" ? Number(value) : value])));
}

/** The address of another page of the same Run. */
export function link(page, values = {}, defaults = {}) {
  const asked = format({ run: RUN, ...values }, { run: 0, ...defaults });
  return `/${page}${asked ? `?${asked}` : ""}`;
}

/** The state of this page: `values`, `set(changes)` and `on(listener)` for Back and Forward. */
export function urlState(defaults) {
  const state = { values: parse(location.search, defaults), set, on };
  let waiting = 0;

  const write = () => {
    clearTimeout(waiting);
    waiting = 0;
    history.replaceState(null, "", link(location.pathname.slice(1), state.values, defaults));
  };

  function set(changes, { push = false } = {}) {
    if (push) {
      if (waiting) write();
      history.pushState(null, "", location.href);
    }
    Object.assign(state.values, changes);
    // browsers refuse more than some hundred changes in a few seconds: a key held down makes as many
    if (push) write();
    else if (!waiting) waiting = setTimeout(write, 150);
  }

  function on(listener) {
    addEventListener("popstate", () => {
      clearTimeout(waiting);
      waiting = 0;
      state.values = parse(location.search, defaults);
      listener(state.values);
    });
  }

  addEventListener("pagehide", () => waiting && write());
  return state;
}
