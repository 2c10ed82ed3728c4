"use strict";

// What is chosen, and everything drawn again when that changes.

const USUAL = {
  filter: "",
  tree: data.trees[0] ?? "",
  device: data.devices[0] ?? "",
  workload: data.workloads.find((name) => data.rows.some((row) => row.workload === name && row.reader)) ?? data.workloads[0] ?? "",
  bars: "time",
  sort: "wall",
  order: "up",
  rows: "",
};
let chosen = {};

function readAddress() {
  const asked = address.read();
  const one = (key, allowed) => (allowed.includes(asked[key]) ? asked[key] : USUAL[key]);
  chosen = {
    filter: asked.filter ?? "",
    tree: one("tree", data.trees),
    device: one("device", data.devices),
    workload: one("workload", data.workloads),
    bars: one("bars", ["time", "subject"]),
    sort: one("sort", SHOWN.map((column) => column.key)),
    order: one("order", ["up", "down"]),
    rows: one("rows", ["all"]),
  };
}

// Every word must occur, and no word behind a minus.
function matches(row, words) {
  return words.every((word) => (word.startsWith("-") && word.length > 1 ? !row.words.includes(word.slice(1)) : row.words.includes(word)));
}
for (const row of data.rows) {
  const said = [row.subject, row.tree, row.maker, row.format, row.codec, row.block, row.workload, row.device, row.reader];
  row.words = said.filter((word) => word).join(" ").toLowerCase();
}

function draw() {
  hideTip();
  const words = chosen.filter.toLowerCase().split(/\s+/).filter((word) => word);
  const filtered = data.rows.filter((row) => matches(row, words));
  const here = filtered.filter((row) => row.tree === chosen.tree && row.device === chosen.device);
  drawSizes(document.getElementById("sizes"), here, chosen);
  drawJobs(document.getElementById("jobs"), here);
  drawBars(document.getElementById("bars"), here, chosen);
  drawTable(document.getElementById("table"), filtered, chosen, choose);
  document.getElementById("matching").textContent =
    `${count(filtered.length)} of ${count(data.rows.length)} measurements match`;
}
function choose(changes) {
  Object.assign(chosen, changes);
  address.write(chosen, USUAL);
  draw();
}

function control(label, field) {
  return html("label", {}, label, field);
}
function select(key, options) {
  const field = html(
    "select",
    { id: `choose-${key}`, change: () => choose({ [key]: field.value }) },
    options.map(([value, words]) => html("option", { value }, words)),
  );
  return field;
}
function makeControls() {
  const place = document.getElementById("controls");
  const filter = html("input", {
    type: "search",
    id: "choose-filter",
    placeholder: "erofs zstd -fuse",
    input: () => choose({ filter: filter.value }),
  });
  place.append(control("Filter by words", filter));
  const plain = (names) => names.map((name) => [name, name]);
  if (data.trees.length > 1) place.append(control("Tree, in plots", select("tree", plain(data.trees))));
  if (data.devices.length > 1) place.append(control("Device, in plots", select("device", plain(data.devices))));
  place.append(control("Workload, in the first plot", select("workload", plain(data.workloads))));
  place.append(control("Order of bars", select("bars", [["time", "the fastest first"], ["subject", "as measured"]])));
  place.append(html("output", { id: "matching" }));
}
function showChosen() {
  for (const [key, value] of Object.entries(chosen)) {
    const field = document.getElementById(`choose-${key}`);
    if (field) field.value = value;
  }
}

for (const link of document.querySelectorAll("[data-to]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById(link.dataset.to).scrollIntoView();
  });
}
makeControls();
readAddress();
showChosen();
draw();
window.addEventListener("hashchange", () => {
  readAddress();
  showChosen();
  draw();
});
let redrawing = 0;
let drawnWidth = document.body.clientWidth;
window.addEventListener("resize", () => {
  cancelAnimationFrame(redrawing);
  redrawing = requestAnimationFrame(() => {
    if (document.body.clientWidth === drawnWidth) return;
    drawnWidth = document.body.clientWidth;
    draw();
  });
});
document.documentElement.dataset.ready = "yes";
