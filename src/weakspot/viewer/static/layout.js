// Where the cells of a grid lie: arithmetic alone.

/** How many cells fit side by side. */
export const columnsIn = (width, cell, gap) => Math.max(1, Math.floor((width + gap) / (cell + gap)));

/** The width of cells that fill a row, at least `cell` each where there is room. */
export const widened = (width, cell, gap) => {
  const columns = columnsIn(width, cell, gap);
  return Math.max(1, Math.floor((width + gap) / columns) - gap);
};

/** How tall a cell must be for a picture with lines of text under it, by its width; what parts.css gives a cell besides included. */
export const tallFor = (picture, lines) => (width) =>
  Math.round(13 + 17 * lines + (picture.width ? ((width - 10) * picture.height) / picture.width : 0));

/** The rows in view, as [first, end), with spare ones before and after. */
export function rowsShown(top, height, row, rows, spare) {
  const first = Math.floor(top / row) - spare;
  const end = Math.ceil((top + height) / row) + spare;
  return [Math.min(rows, Math.max(0, first)), Math.max(0, Math.min(rows, end))];
}

/** Where a key leads from a cell; the cell itself where it leads nowhere. */
export function stepped(index, key, { columns, page, count }) {
  const last = count - 1;
  const down = (by) => (index + by <= last ? index + by : Math.floor(index / columns) < Math.floor(last / columns) ? last : index);
  const up = (by) => (index - by >= 0 ? index - by : index % columns);
  const steps = {
    ArrowLeft: () => Math.max(0, index - 1),
    ArrowRight: () => Math.min(last, index + 1),
    ArrowUp: () => (index >= columns ? index - columns : index),
    ArrowDown: () => down(columns),
    PageUp: () => up(columns * page),
    PageDown: () => down(columns * page),
    Home: () => 0,
    End: () => last,
  };
  return count && steps[key] ? steps[key]() : index;
}

/** How far to scroll so that a row is seen whole; the same place where it is. */
export function scrolledTo(row, { top, height, tall }) {
  const above = row * tall;
  if (above < top) return above;
  return above + tall > top + height ? Math.max(0, above + tall - height) : top;
}
