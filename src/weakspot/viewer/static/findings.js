// Every Finding as it declares itself: numbers with their intervals, figures, pictures, the first rows of its table.

import { address, ask } from "./api.js";
import { Chooser, chooserKeys } from "./chooser.js";
import { numberTable } from "./controls.js";
import { complain, element, fill, page } from "./dom.js";
import { bind } from "./keys.js";
import { urlState } from "./url.js";

const state = urlState({ name: "" });
const chooser = new Chooser({ label: "Findings", describe, chosen: (index) => choose(findings[index].name).catch(complain) });
const detail = element("section", { class: "main scrolled", tabindex: 0, "aria-label": "The Finding" });
let findings = [];

page().append(element("h1", { class: "unseen" }, "Findings"), element("div", { class: "surface" }, chooser.node, detail));

function describe({ title, name, summary }) {
  const first = summary[0]?.[1];
  return [element("strong", {}, title), element("span", { class: "quiet" }, first ? `${first.label}: ${first.shown}` : name)];
}

function figure(name, { caption, problem, drawings }, index) {
  const images = Array.from({ length: drawings }, (_, drawing) =>
    element("img", { src: address(`/findings/${encodeURIComponent(name)}/figure/${index}/${drawing}`), alt: caption, loading: "lazy" }));
  return element("figure", { class: "drawing" }, images, problem && element("p", { class: "warning" }, problem), element("figcaption", {}, caption));
}

function table({ title, table: content }) {
  if (!content) return null;
  const heads = content.columns.map(({ name, about }) => element("th", { scope: "col", title: about || null }, name));
  const rows = content.rows.map((row) => element("tr", {},
    row.map((text, column) => element("td", { class: content.columns[column].numeric ? "number" : null }, text))));
  return [
    element("h3", {}, `Table: ${content.extent}`),
    element("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": `Table of ${title}` },
      element("table", {}, element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows))),
  ];
}

async function choose(name) {
  state.set({ name }, { push: Boolean(state.values.name) && state.values.name !== name });
  const response = await ask(`/findings/${encodeURIComponent(name)}`);
  if (state.values.name !== name) return;  // another was chosen meanwhile
  detail.scrollTop = 0;
  const pictures = response.media.map(({ number, caption, version }) => element("figure", {},
    element("img", { src: address(`/media/${encodeURIComponent(name)}/${number}`, { v: version }), alt: caption, loading: "lazy" }),
    element("figcaption", {}, caption)));
  fill(detail, element("div", { class: "finding" },
    element("h2", {}, response.title), element("p", { class: "quiet" }, element("code", {}, name), response.splits.length ? ` · ${response.splits.join(", ")}` : ""),
    element("p", {}, response.about), numberTable(`Numbers of ${response.title}`, response.summary)),
  element("div", { class: "drawings" }, response.figures.map((one, index) => figure(name, one, index))),
  pictures.length ? element("div", { class: "finding-pictures" }, pictures) : null, table(response));
}

async function load() {
  ({ findings } = await ask("/run"));
  chooser.show(findings, Math.max(0, findings.findIndex(({ name }) => name === state.values.name)));
}

bind(chooserKeys(chooser, "Finding"));
state.on(() => load().catch(complain));
load().catch(complain);
