"use strict";

// A map of one folder at a time, with what is in its folders as far as there is room.

const [FOLDER, FILE, REST, OWNER] = [0, 1, 2, 3];
const KINDS = ["folder", "file", "rest", "owner"];
const nodes = data.nodes.map(([parent, name, kind, len, stored, shared, codecs, files], index) => {
  return { index, parent, name, kind, len, stored, shared, codecs, files, inside: [] };
});
for (const node of nodes.slice(1)) nodes[node.parent].inside.push(node);
for (const node of nodes) node.inside.sort((a, b) => b.stored - a.stored);

const MOST_TILES = 3000;
const LEAST_SIDE = 3;
const DEEPEST = 8;
const TABLE_ROWS = 100;

const titleOf = (node) => (node.kind === REST ? `${count(node.files)} smaller ${node.files === 1 ? "file" : "files"}` : node.name);
const codecsOf = (node) => data.codecs.filter((_, bit) => node.codecs & (1 << bit));
const ratioOf = (node) => (node.len > 0 && node.kind !== OWNER ? percent(node.stored / node.len) : "");

// From the image down to a node.
function way(node) {
  const nodesOnWay = [node];
  while (nodesOnWay[0].index !== 0) nodesOnWay.unshift(nodes[nodesOnWay[0].parent]);
  return nodesOnWay;
}
const pathOf = (node) => `/${way(node).slice(2).map(titleOf).join("/")}`;

function detailsOf(node) {
  const parts = [];
  if (node.kind === OWNER) parts.push(`${node.name} (in no file of the map)`);
  else parts.push(node.index === 0 ? "the whole image" : pathOf(node));
  parts.push(`stored ${length(node.stored)} (${count(node.stored)} bytes, ${percent(node.stored / data.length)} of the image)`);
  if (node.kind !== OWNER) {
    parts.push(`length ${length(node.len)}`);
    if (node.len > 0) parts.push(`stored is ${ratioOf(node)} of the length`);
    if (node.kind === FOLDER) parts.push(`${count(node.files)} files`);
    if (node.codecs) parts.push(codecsOf(node).join(" and "));
    if (node.shared > 0) parts.push(`${length(node.shared)} of it is its part of blocks that files share`);
  }
  return parts;
}

// Codecs that occur, the most frequent first, each with a colour.
const frequency = new Map();
for (const node of nodes) if (node.kind === FILE) frequency.set(node.codecs, (frequency.get(node.codecs) ?? 0) + 1);
const MIXES = [...frequency].sort((a, b) => b[1] - a[1]).map(([codecs]) => codecs);
const colourOf = (node) => (node.kind === FILE ? `series-${MIXES.indexOf(node.codecs) % 8}` : "");

let current = nodes[0];
let tiles = [];

function draw() {
  const place = document.getElementById("map");
  const width = Math.min(Math.max(place.clientWidth || 800, 280), 1400);
  const height = Math.round(Math.min(Math.max(width * 0.58, 340), 680));
  tiles = [];
  // The largest folders are looked into first, so that the limit leaves out the smallest tiles.
  let waiting = [{ node: current, box: { x: 0, y: 0, width, height }, depth: 0 }];
  while (waiting.length > 0 && tiles.length < MOST_TILES) {
    const deeper = [];
    for (const { node, box, depth } of waiting) {
      const rectangles = squarify(node.inside.map((inside) => inside.stored), box);
      for (const [index, rectangle] of rectangles.entries()) {
        if (tiles.length >= MOST_TILES) break;
        if (rectangle.width < LEAST_SIDE || rectangle.height < LEAST_SIDE) continue;
        const inside = node.inside[index];
        tiles.push({ node: inside, box: rectangle, depth });
        const room = { x: rectangle.x + 2, y: rectangle.y + 16, width: rectangle.width - 4, height: rectangle.height - 18 };
        if (inside.kind === FOLDER && depth < DEEPEST && room.width > 24 && room.height > 16) deeper.push({ node: inside, box: room, depth: depth + 1 });
      }
    }
    waiting = deeper;
  }
  const hatching = svg(
    "pattern",
    { id: "hatching", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 6, height: 6, style: "fill: var(--ground)" }),
    svg("rect", { width: 2, height: 6, style: "fill: var(--line)" }),
  );
  const drawn = tiles.map(drawTile);
  place.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}` }, svg("defs", {}, hatching), drawn));
  if (drawn[0]) drawn[0].setAttribute("tabindex", "0");
  drawCrumbs();
  drawList();
  say(current);
}

function drawTile({ node, box, depth }) {
  const opens = node.kind === FOLDER;
  const label = detailsOf(node).join(", ");
  const tile = svg(
    "g",
    { class: `tile ${KINDS[node.kind]} ${colourOf(node)}`, role: opens ? "button" : "img", "aria-label": label, tabindex: "-1", "data-tile": node.index, "data-depth": depth },
    svg("rect", { x: box.x, y: box.y, width: Math.max(box.width, 0), height: Math.max(box.height, 0) }),
    drawWords(node, box),
  );
  tile.addEventListener("pointerenter", () => say(node));
  tile.addEventListener("pointerleave", () => say(current));
  tile.addEventListener("focus", () => say(node));
  tile.addEventListener("click", (event) => {
    event.stopPropagation();
    if (opens) open(node);
    else tile.focus();
  });
  return tile;
}
// Words as far as they fit, by the pixels that a letter takes on average; those of folders are bold.
function drawWords(node, box) {
  const letters = Math.floor((box.width - 8) / (node.kind === FOLDER ? 6.9 : 6.2));
  if (letters < 3 || box.height < 14) return null;
  const size = length(node.stored);
  const title = titleOf(node);
  const cut = (words) => (words.length <= letters ? words : `${words.slice(0, letters - 1)}…`);
  const first = cut(node.kind === FOLDER && title.length + size.length + 2 <= letters ? `${title}  ${size}` : title);
  const lines = [svg("text", { class: KINDS[node.kind], x: box.x + 4, y: box.y + 12, "aria-hidden": "true" }, first)];
  if (node.kind !== FOLDER && box.height >= 28 && size.length <= letters) {
    lines.push(svg("text", { x: box.x + 4, y: box.y + 25, "aria-hidden": "true" }, size));
  }
  return lines;
}

function say(node) {
  const [name, ...rest] = detailsOf(node);
  document.getElementById("details").replaceChildren(html("strong", {}, name), html("br"), rest.join(" · "));
}
function open(node) {
  current = node;
  address.write({ path: node.index === 0 ? "" : pathOf(node) }, {});
  draw();
  document.querySelector("#map .tile")?.focus({ preventScroll: true });
}
function back() {
  if (current.index === 0) return;
  const left = current;
  open(nodes[current.parent]);
  document.querySelector(`[data-tile="${left.index}"]`)?.focus({ preventScroll: true });
}

function drawCrumbs() {
  const steps = way(current).map((node) => {
    const words = node.index === 0 ? "image" : titleOf(node);
    if (node === current) return html("span", { "aria-current": "location" }, words);
    return html("button", { type: "button", click: () => open(node) }, words);
  });
  const parted = steps.flatMap((step, index) => (index === 0 ? [step] : [html("span", { class: "faint", "aria-hidden": "true" }, "›"), step]));
  document.getElementById("crumbs").replaceChildren(...parted);
}
function drawList() {
  const shown = current.inside.slice(0, TABLE_ROWS);
  const figures = ["stored", "of the image", "length", "stored/length"];
  const heads = ["name", ...figures, "codec"].map((title) => html("th", { scope: "col", class: figures.includes(title) ? "figure" : undefined }, title));
  const rows = shown.map((node) => {
    const name = node.kind === FOLDER ? html("button", { type: "button", click: () => open(node) }, `${titleOf(node)}/`.replace("//", "/")) : titleOf(node);
    const cells = [length(node.stored), percent(node.stored / data.length), node.kind === OWNER ? "" : length(node.len), ratioOf(node)];
    return html(
      "tr",
      { "data-entry": node.index },
      html("td", {}, name),
      cells.map((words) => html("td", { class: "figure" }, words)),
      html("td", {}, codecsOf(node).join(", ")),
    );
  });
  const left = current.inside.length - shown.length;
  const note = left > 0 ? html("p", { class: "faint" }, `and ${count(left)} smaller`) : null;
  const table = html("table", {}, html("thead", {}, html("tr", {}, heads)), html("tbody", {}, rows));
  const place = document.getElementById("list");
  place.replaceChildren(html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Contents of the folder" }, table));
  if (note) place.append(note);
}

// The nearest tile in a direction, by the middles of tiles.
function neighbour(from, [dx, dy]) {
  const middle = ({ box }) => [box.x + box.width / 2, box.y + Math.min(box.height / 2, 8)];
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const tile of tiles) {
    const [tx, ty] = middle(tile);
    const ahead = (tx - x) * dx + (ty - y) * dy;
    const aside = Math.abs((tx - x) * dy) + Math.abs((ty - y) * dx);
    const far = ahead + 2 * aside;
    if (tile !== from && ahead > 0.5 && far < least) [best, least] = [tile, far];
  }
  return best;
}
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
document.getElementById("map").addEventListener("keydown", (event) => {
  const focused = event.target.closest?.("[data-tile]");
  const from = tiles.find((tile) => String(tile.node.index) === focused?.dataset.tile);
  if (event.key === "Backspace" || event.key === "Escape") back();
  else if (from && (event.key === "Enter" || event.key === " ")) {
    if (from.node.kind === FOLDER) open(from.node);
  } else if (from && ARROWS[event.key]) {
    const to = neighbour(from, ARROWS[event.key]);
    const element = to && document.querySelector(`[data-tile="${to.node.index}"]`);
    if (element) {
      focused.setAttribute("tabindex", "-1");
      element.setAttribute("tabindex", "0");
      element.focus();
    }
  } else return;
  event.preventDefault();
});

function readAddress() {
  const asked = address.read().path ?? "";
  let found = nodes[0];
  const root = nodes[0].inside.find((node) => node.kind === FOLDER);
  if (asked.startsWith("/") && root) {
    found = root;
    for (const name of asked.split("/").filter((part) => part)) {
      const next = found.inside.find((node) => node.kind === FOLDER && node.name === name);
      if (!next) break;
      found = next;
    }
  }
  current = found;
}
function drawLegend() {
  const sample = (kind) => svg("svg", { viewBox: "0 0 16 12", "aria-hidden": "true" }, svg("g", { class: `tile ${kind}` }, svg("rect", { x: 0.5, y: 0.5, width: 15, height: 11 })));
  const mixes = MIXES.slice(0, 8).map((codecs) => html("li", {}, sample(`file series-${MIXES.indexOf(codecs) % 8}`), codecsOf({ codecs }).join(" and ") || "holes"));
  const others = [["folder", "folder"], ["rest", "smaller files"], ["owner", "what is in no file of the map"]];
  document.getElementById("legend").replaceChildren(...mixes, ...others.map(([kind, words]) => html("li", {}, sample(kind), words)));
}

const everything = nodes[0];
document.getElementById("summary").textContent =
  `${length(data.length)} (${count(data.length)} bytes) hold ${count(everything.files)} files of ${length(everything.len)}.`;
readAddress();
draw();
drawLegend();
window.addEventListener("hashchange", () => {
  readAddress();
  draw();
});
let drawnWidth = document.body.clientWidth;
window.addEventListener("resize", () => {
  if (document.body.clientWidth === drawnWidth) return;
  drawnWidth = document.body.clientWidth;
  draw();
});
document.documentElement.dataset.ready = "yes";
