"use strict";

// Squarified treemaps (Bruls, Huizing, van Wijk, 2000): rows along the shorter side, each filled as long as that makes its tiles
// less oblong. `sizes` fall; returns a rectangle for each that is large enough to be drawn, in the same order.
function squarify(sizes, box) {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const rectangles = [];
  if (!(total > 0) || box.width <= 0 || box.height <= 0) return rectangles;
  const perByte = (box.width * box.height) / total;
  let { x, y, width, height } = box;
  let at = 0;
  while (at < sizes.length) {
    const side = Math.min(width, height);
    if (side < 1) break;
    let end = at;
    let area = 0;
    let worst = Infinity;
    while (end < sizes.length) {
      const next = area + sizes[end] * perByte;
      // Of falling sizes the first is the largest of the row, the last the smallest.
      const ratio = oblong(sizes[at] * perByte, sizes[end] * perByte, next, side);
      if (end > at && ratio > worst) break;
      [area, worst] = [next, ratio];
      end += 1;
    }
    const thick = area / side;
    let along = 0;
    for (let index = at; index < end; index += 1) {
      const long = (sizes[index] * perByte) / thick;
      rectangles.push(width >= height ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
    at = end;
  }
  return rectangles;
}
function oblong(largest, smallest, area, side) {
  const square = side * side;
  return Math.max((square * largest) / (area * area), (area * area) / (square * smallest));
}
