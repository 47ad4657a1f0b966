// The first page: what was asked, what came out, and where to look at it.

import { ask, RUN } from "./api.js";
import { facts, numberTable } from "./controls.js";
import { complain, element, page } from "./dom.js";
import { counted, number } from "./text.js";
import { link } from "./url.js";

const WHERE = { performance: "performance", coverage: "holes", robustness: "weak", classes: "pairs", causes: "causes", lesions: "lesions" };

function known({ subject, splits }) {
  const few = subject.classes.slice(0, 12).join(", ") + (subject.classes.length > 12 ? " …" : "");
  return facts([
    subject.task && ["Task", subject.task],
    ...Object.values(splits).map(({ label, samples, skipped }) =>
      [`Data: ${label}`, (samples === null ? "–" : counted(samples, "sample")) + (skipped ? `, ${number(skipped)} left out` : "")]),
    subject.fingerprint && ["Model fingerprint", element("code", {}, subject.fingerprint.slice(0, 12))],
    few && [`Classes (${subject.classes.length})`, few],
  ]);
}

function answers(answered, pages) {
  const there = new Set(pages.map((one) => one.page));
  return element("dl", { class: "answers" }, answered.map(({ room, question, sentence }) => element("div", {},
    element("dt", {}, there.has(WHERE[room]) ? element("a", { href: link(WHERE[room]) }, question) : question),
    element("dd", {}, sentence.map(({ text, finding, behind }) =>
      (behind ? element("a", { href: link("samples", { behind }), title: "The samples behind this number" }, text)
        : finding ? element("a", { href: `#finding-${finding}` }, text) : text))))));
}

const card = ({ page: name, title, about }) =>
  element("li", { class: "card" }, element("h3", {}, element("a", { href: link(name) }, title)), element("p", {}, about));

function finding({ name, title, about, splits, summary }) {
  const first = summary[0]?.[1];
  return element("details", { class: "finding", id: `finding-${name}` },
    element("summary", {}, title, first && element("span", { class: "quiet" }, ` ${first.label}: ${first.shown}`)),
    element("p", { class: "quiet" }, element("code", {}, name), splits.length ? ` · ${splits.join(", ")}` : ""),
    element("p", {}, about),
    numberTable(title, summary));
}

const damaged = (findings) => findings.map(({ finding: name, error }) => element("p", { class: "warning" }, element("code", {}, name), " ", error));

/** A number leads to its Finding, which is folded: open it. */
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches("details")) {
    target.open = true;
    target.scrollIntoView();
  }
}

async function load() {
  const response = await ask("/run");
  const run = response.runs[RUN] ?? response.runs[0];
  page().append(
    element("h1", {}, run.subject.model || run.name), known(run), ...damaged(run.damaged),
    element("h2", {}, "Questions and answers"), answers(response.answers, response.pages),
    element("h2", {}, "More pages"), element("ul", { class: "cards" }, response.pages.filter((one) => one.page !== "overview").map(card)),
    element("h2", {}, "All results"), ...response.findings.map(finding));
  unfold();
  addEventListener("hashchange", unfold);
}

load().catch(complain);
