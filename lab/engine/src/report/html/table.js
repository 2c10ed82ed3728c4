"use strict";

// The table of all measurements: what is chosen, in the order that is chosen.

const ROWS_AT_ONCE = 500;

const COLUMNS = [
  { key: "subject", title: "subject" },
  { key: "tree", title: "tree" },
  { key: "workload", title: "workload" },
  { key: "device", title: "device" },
  { key: "reader", title: "read by" },
  { key: "jobs", title: "jobs", figure: true, word: String },
  { key: "size", title: "size", figure: true, word: length },
  { key: "wall", title: "time", figure: true, of: (row) => row.wall?.median ?? null, word: seconds },
  { key: "least", title: "least", figure: true, of: (row) => row.wall?.min ?? null, word: seconds },
  { key: "most", title: "most", figure: true, of: (row) => row.wall?.max ?? null, word: seconds },
  { key: "runs", title: "runs", figure: true, of: (row) => row.wall?.count ?? null, word: String },
  { key: "rate", title: "rate", figure: true, word: rate },
  { key: "processor", title: "processor", figure: true, word: seconds },
  { key: "memory", title: "peak memory", figure: true, word: length },
  { key: "read", title: "from device", figure: true, word: length },
  { key: "disturbed", title: "disturbed", figure: true, word: percent },
];
const valueOf = (column, row) => (column.of ? column.of(row) : row[column.key]);

// Columns of which every measurement says the same, or nothing, are left out.
const SHOWN = COLUMNS.filter((column) => {
  if (column.key === "subject" || column.key === "workload" || column.key === "wall") return true;
  const said = data.rows.map((row) => valueOf(column, row)).filter((value) => value !== null && value !== "");
  return said.length > 0 && (column.figure || new Set(said).size > 1);
});

function compared(a, b) {
  // What says nothing comes last.
  if (a === null || a === "") return b === null || b === "" ? 0 : 1;
  if (b === null || b === "") return -1;
  return typeof a === "number" ? a - b : a < b ? -1 : Number(a > b);
}
function sorted(rows, chosen) {
  const column = SHOWN.find((column) => column.key === chosen.sort) ?? SHOWN.find((column) => column.key === "wall");
  const empty = (row) => valueOf(column, row) === null || valueOf(column, row) === "";
  const sign = chosen.order === "down" ? -1 : 1;
  const order = (a, b) => {
    const by = compared(valueOf(column, a), valueOf(column, b));
    return empty(a) || empty(b) ? by : sign * by;
  };
  return [...rows].sort(order);
}

function drawTable(place, rows, chosen, choose) {
  const focused = document.activeElement?.dataset?.sort;
  const head = SHOWN.map((column) => {
    const is = column.key === chosen.sort;
    const next = is && chosen.order !== "down" ? "down" : "up";
    const button = html(
      "button",
      { type: "button", "data-sort": column.key, click: () => choose({ sort: column.key, order: next }) },
      column.title,
      is ? (chosen.order === "down" ? " ▼" : " ▲") : "",
    );
    const aria = is ? (chosen.order === "down" ? "descending" : "ascending") : undefined;
    return html("th", { scope: "col", class: column.figure ? "figure" : undefined, "aria-sort": aria }, button);
  });
  const cell = (column, row) => {
    const value = valueOf(column, row);
    const words = value === null || value === "" ? "" : column.word ? column.word(value) : value;
    const exact = column.figure && typeof value === "number" ? String(value) : undefined;
    return html("td", { class: column.figure ? "figure" : undefined, title: exact }, words);
  };
  const all = sorted(rows, chosen);
  const body = all.slice(0, chosen.rows === "all" ? all.length : ROWS_AT_ONCE);
  const lines = body.map((row) => html("tr", { "data-row": row.subject }, SHOWN.map((column) => cell(column, row))));
  const table = html("table", { id: "all" }, html("thead", {}, html("tr", {}, head)), html("tbody", {}, lines));
  place.replaceChildren(html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All measurements" }, table));
  if (body.length < all.length) {
    const more = `Show all ${count(all.length)} rows`;
    place.append(html("button", { type: "button", class: "screen", click: () => choose({ rows: "all" }) }, more));
  }
  if (focused) place.querySelector(`[data-sort="${focused}"]`)?.focus();
}
