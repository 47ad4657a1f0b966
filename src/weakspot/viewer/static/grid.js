// A grid of any number of cells, of which only those near the view are in the page. Cells have their size from the start.

import { element, fill } from "./dom.js";
import { columnsIn, rowsShown, scrolledTo, stepped, widened } from "./layout.js";

const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];
const SPARES = 12; // rows kept to be used again
let grids = 0;

export class Grid {
  /**
   * `draw(cell, index)` fills a cell; `moved`, `opened` and `marked` are called with the index, `seen` the range in view.
   * Cells are at least `cell.width` wide and fill the row; `cell.height` is a number, or a function of the width.
   */
  constructor({ label, cell, gap = 8, draw, moved, opened, marked, seen }) {
    const nothing = () => {};
    Object.assign(this, { cell, gap, draw, count: 0, at: 0, columns: 1, wide: 0, tall: 1, rows: new Map(), spares: [] });
    this.callbacks = { moved: moved ?? nothing, opened: opened ?? nothing, marked: marked ?? nothing, seen: seen ?? nothing };
    this.name = `grid${(grids += 1)}`;
    this.space = element("div", { class: "space", role: "presentation" });
    this.node = element("div", {
      class: "grid", role: "listbox", tabindex: 0, "aria-label": label, "aria-multiselectable": "true",
      on: {
        scroll: () => this.#place(),
        keydown: (event) => this.key(event),
        click: (event) => this.#click(event),
        dblclick: (event) => this.#pointed(event, (index) => this.callbacks.opened(index)),
      },
    }, this.space);
    new ResizeObserver(() => this.#fit()).observe(this.node);
  }

  get pageRows() {
    return Math.max(1, Math.floor(this.node.clientHeight / this.tall));
  }

  /** Show so many cells, the one at `at` in view. */
  show(count, at = 0) {
    this.count = count;
    this.at = Math.min(Math.max(0, at), Math.max(0, count - 1));
    this.node.hidden = count === 0;
    this.#clear();
    this.#fit();
    this.#reveal();
  }

  /** Give the cells another size; to be followed by `show`. */
  shape(cell) {
    this.cell = cell;
  }

  /** Move to a cell. */
  go(index) {
    if (index < 0 || index >= this.count) return;
    const before = this.at;
    this.at = index;
    this.#reveal();
    this.redraw(before);
    this.redraw(index);
    this.callbacks.moved(index);
  }

  /** Draw one cell anew, or all that are in the page. */
  redraw(index) {
    if (index !== undefined) {
      const cell = this.cellOf(index);
      if (cell) this.#drawn(cell, index);
      return;
    }
    for (const [row, node] of this.rows) this.#fill(node, row);
  }

  /** The element of a cell, if it is in the page. */
  cellOf(index) {
    return this.rows.get(Math.floor(index / this.columns))?.children[index % this.columns];
  }

  #fit() {
    const room = this.node.clientWidth - 2 * this.gap;
    if (room <= 0) return;
    const wide = widened(room, this.cell.width, this.gap);
    const height = typeof this.cell.height === "function" ? this.cell.height(wide) : this.cell.height;
    const columns = columnsIn(room, this.cell.width, this.gap);
    const above = Math.floor(this.node.scrollTop / this.tall) * this.columns;
    const same = columns === this.columns && wide === this.wide && height + this.gap === this.tall;
    Object.assign(this, { columns, wide, tall: height + this.gap });
    this.space.style.height = `${Math.ceil(this.count / columns) * this.tall + this.gap}px`;
    if (!same) {
      this.#clear();
      // what was at the top stays there when the window changes
      this.node.scrollTop = Math.floor(above / columns) * this.tall;
    }
    this.#place();
  }

  #clear() {
    this.rows.clear();
    this.spares.length = 0;
    fill(this.space);
  }

  /** Put the rows near the view into the page, and take the others out of it. */
  #place() {
    const rows = Math.ceil(this.count / this.columns);
    const height = this.node.clientHeight;
    if (!height) return;
    const [first, end] = rowsShown(this.node.scrollTop, height, this.tall, rows, this.pageRows + 1);
    for (const [row, node] of this.rows) {
      if (row >= first && row < end) continue;
      this.rows.delete(row);
      node.remove();
      this.spares.push(node);
    }
    const [top, bottom] = rowsShown(this.node.scrollTop, height, this.tall, rows, 0);
    this.callbacks.seen(top * this.columns, Math.min(this.count, bottom * this.columns));
    for (let row = first; row < end; row += 1) if (!this.rows.has(row)) this.#add(row);
    this.spares.length = Math.min(this.spares.length, SPARES);
  }

  #add(row) {
    const node = this.spares.pop() ?? element("div", { class: "row", role: "presentation" });
    node.style.transform = `translateY(${row * this.tall + this.gap}px)`;
    this.rows.set(row, node);
    this.#fill(node, row);
    this.space.append(node);
  }

  #fill(node, row) {
    const first = row * this.columns;
    const cells = Math.min(this.columns, this.count - first);
    while (node.children.length > cells) node.lastChild.remove();
    while (node.children.length < cells) node.append(this.#cell());
    for (let place = 0; place < cells; place += 1) this.#drawn(node.children[place], first + place);
  }

  #cell() {
    const cell = element("div", { class: "cell", role: "option", "aria-selected": "false" });
    cell.style.width = `${this.wide}px`;
    cell.style.height = `${this.tall - this.gap}px`;
    return cell;
  }

  #drawn(cell, index) {
    cell.id = `${this.name}-${index}`;
    cell.dataset.index = index;
    cell.ariaPosInSet = index + 1;
    cell.ariaSetSize = this.count;
    cell.classList.toggle("current", index === this.at);
    this.draw(cell, index);
    if (index === this.at) this.node.setAttribute("aria-activedescendant", cell.id);
  }

  #reveal() {
    const row = Math.floor(this.at / this.columns);
    const view = { top: this.node.scrollTop, height: this.node.clientHeight, tall: this.tall };
    const top = scrolledTo(row, { ...view, height: Math.max(this.tall, view.height - this.gap) });
    if (top !== view.top) this.node.scrollTop = top;
    this.#place();
  }

  /** What a key does: move, open, mark. */
  key(event) {
    const index = this.at;
    if (event.ctrlKey || event.metaKey || event.altKey || !this.count) return;
    if (MOVES.includes(event.key)) {
      this.go(stepped(index, event.key, { columns: this.columns, page: this.pageRows, count: this.count }));
      if (event.shiftKey) this.callbacks.marked(this.at, { shiftKey: true, from: index });
    } else if (event.key === "Enter") this.callbacks.opened(index);
    else if (event.key === " ") this.callbacks.marked(index, event);
    else return;
    event.preventDefault();
  }

  #click(event) {
    this.#pointed(event, (index) => {
      const from = this.at;
      this.go(index);
      if (event.shiftKey || event.ctrlKey || event.metaKey) this.callbacks.marked(index, { shiftKey: event.shiftKey, from });
    });
  }

  #pointed(event, then) {
    const cell = event.target.closest(".cell");
    if (cell) then(Number(cell.dataset.index));
  }
}

/** The canvas and the lines of text of a cell, made when it is drawn first. */
export function partsOf(cell, lines) {
  if (!cell.firstChild) {
    cell.append(element("canvas", { width: 1, height: 1 }), ...lines.map((name) => element("span", { class: `line ${name}` })));
  }
  return cell.children;
}

/** The keys of a grid, heard also where nothing has the focus; `marks` says what Space does. */
export function gridKeys(grid, group, marks) {
  const when = () => document.activeElement === document.body;
  const run = (event) => (grid.key(event), grid.node.focus());
  return [
    { keys: MOVES.slice(0, 4), does: "move", group, when, run },
    { keys: MOVES.slice(4), does: "go to the first or last, or a page up or down", group, when, run },
    { keys: ["Enter"], does: "enlarge", group, when, run },
    ...(marks ? [{ keys: ["Space"], does: marks, group, when, run }] : []),
  ];
}
