
"use strict";
// Without this script the tables are as readable; it only makes their heads into buttons that sort.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const given = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator("en", { numeric: true });

  const compare = (column, numeric) => (one, other) => {
    const [a, b] = [one.cells[column], other.cells[column]];
    return numeric ? a.dataset.value - b.dataset.value : collator.compare(a.textContent, b.textContent);
  };

  const sorted = (column, order) => {
    if (order === "none") return given;
    const missing = (row) => row.cells[column].classList.contains("missing");
    const sign = order === "ascending" ? 1 : -1;
    const by = compare(column, heads[column].classList.contains("number"));
    const known = given.filter((row) => !missing(row)).sort((a, b) => sign * by(a, b));
    return [...known, ...given.filter(missing)];
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" };
      const order = next[head.getAttribute("aria-sort")];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", order);
      body.append(...sorted(column, order));
    });
  });
}

// What a link leads to may be folded away: open all it lies in, and a Finding itself.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const around = [];
  for (let folded = target.closest("details"); folded; folded = folded.parentElement.closest("details")) around.push(folded);
  const own = target.matches("article") ? [target.querySelector(":scope > details")] : [];
  const closed = [...around, ...own].filter((folded) => folded && !folded.open);
  for (const folded of closed) folded.open = true;
  if (closed.length) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

// One button for all results: a page is printed as it is unfolded.
const results = [...document.querySelectorAll(".finding > details")];
const overview = document.getElementById("overview");
if (results.length && overview) {
  const all = document.createElement("button");
  all.type = "button";
  all.className = "unfold";
  const name = () => {
    all.textContent = results.every((one) => one.open) ? "Fold all results" : "Unfold all results";
  };
  all.addEventListener("click", () => {
    const open = !results.every((one) => one.open);
    for (const one of results) one.open = open;
    name();
  });
  name();
  overview.append(all);
}

// Dark pictures are shown brighter, so that they can be judged; one button shows them as they are.
if (document.querySelector("figure.brighter, figure.brightest") && overview) {
  const light = document.createElement("button");
  light.type = "button";
  light.className = "unfold";
  const name = () => {
    light.textContent = document.body.classList.contains("as-they-are") ? "Dark pictures brighter" : "Dark pictures as they are";
  };
  light.addEventListener("click", () => {
    document.body.classList.toggle("as-they-are");
    name();
  });
  name();
  overview.append(" ", light);
}
