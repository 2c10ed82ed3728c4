"use strict";

// Scales and axes of plots.

// From figures to pixels, evenly, or in equal steps for equal factors where figures differ a lot.
function scale(low, high, from, to) {
  if (low > 0 && high / low > 12) {
    const [a, b] = [Math.log(low / 1.15), Math.log(high * 1.15)];
    const place = (value) => from + ((Math.log(value) - a) / (b - a)) * (to - from);
    return { place, ticks: decades(low / 1.15, high * 1.15), log: true };
  }
  const room = high > low ? (high - low) * 0.06 : high * 0.1 || 1;
  const [a, b] = [Math.max(low - room, low >= 0 ? 0 : low - room), high + room];
  const place = (value) => from + ((value - a) / (b - a)) * (to - from);
  return { place, ticks: even(a, b), log: false };
}
function step(width, wanted) {
  const rough = width / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
}
function even(low, high, wanted = 5) {
  const by = step(high - low, wanted);
  const ticks = [];
  for (let at = Math.ceil(low / by); at * by <= high + by * 1e-9; at += 1) ticks.push(at * by);
  return ticks;
}
function decades(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const factor of [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks.length > 8 ? ticks.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9) : ticks;
}

// A tick with all digits that it has and no more: two ticks never read alike. Noise of floating point is no digit.
function tickWord(tick) {
  const decimals = Array.from({ length: 16 }, (_, index) => index);
  const isExact = (count) => Math.abs(Number(tick.toFixed(count)) - tick) <= Math.abs(tick) * 1e-9;
  return tick.toLocaleString("en-US", { maximumFractionDigits: decimals.find(isExact) ?? 16 });
}

// A frame with ticks: `across` and `up` are scales with a word for each tick.
function frame(box, across, up, titles) {
  const lines = [];
  for (const tick of up.ticks) {
    const y = up.place(tick);
    lines.push(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    lines.push(svg("text", { class: "faint", x: box.left - 6, y: y + 4, "text-anchor": "end" }, up.word(tick)));
  }
  for (const tick of across.ticks) {
    const x = across.place(tick);
    lines.push(svg("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    lines.push(svg("text", { class: "faint", x, y: box.bottom + 16, "text-anchor": "middle" }, across.word(tick)));
  }
  lines.push(svg("path", { class: "axis", fill: "none", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
  const note = (axis) => (axis.log ? ", logarithmic" : "");
  lines.push(svg("text", { x: box.left - 6, y: box.top - 10 }, titles.up + note(up)));
  lines.push(svg("text", { x: box.right, y: box.bottom + 34, "text-anchor": "end" }, titles.across + note(across)));
  return svg("g", { "aria-hidden": "true" }, lines);
}

// Shapes tell series apart where colours do not.
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0 ${-1.25 * r}L${1.2 * r} ${0.9 * r}H${-1.2 * r}z`,
  (r) => `M0 ${-1.35 * r}L${1.35 * r} 0L0 ${1.35 * r}L${-1.35 * r} 0z`,
  (r) => `M0 ${1.25 * r}L${1.2 * r} ${-0.9 * r}H${-1.2 * r}z`,
  (r) => `M${-0.45 * r} ${-1.2 * r}h${0.9 * r}v${0.75 * r}h${0.75 * r}v${0.9 * r}h${-0.75 * r}v${0.75 * r}h${-0.9 * r}v${-0.75 * r}h${-0.75 * r}v${-0.9 * r}h${0.75 * r}z`,
  (r) => `M${-1.25 * r} 0L${-0.6 * r} ${-1.1 * r}H${0.6 * r}L${1.25 * r} 0L${0.6 * r} ${1.1 * r}H${-0.6 * r}z`,
  (r) => `M${-r} ${-r}L0 ${-0.4 * r}L${r} ${-r}L${0.4 * r} 0L${r} ${r}L0 ${0.4 * r}L${-r} ${r}L${-0.4 * r} 0z`,
];
function shape(index, x, y, size, attributes) {
  const d = SHAPES[index % SHAPES.length](size);
  return svg("path", { ...attributes, d, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
}

// How wide a plot may be drawn: as wide as it is shown, so that words keep their size on a phone.
function widthOf(place) {
  return Math.min(Math.max(place.clientWidth || 720, 300), 1200);
}
