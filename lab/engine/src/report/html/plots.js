"use strict";

// The plots: size against time, speedup by jobs, bars by workload.

const FORMATS = [...new Set(data.rows.map((row) => row.format))];
const colourOf = (row) => FORMATS.indexOf(row.format) % 8;
const isOurs = (row) => row.maker === data.ours;

function nameOf(row, rows) {
  const several = (key) => rows.some((other) => other[key] !== row[key]);
  let name = row.subject;
  if (row.reader && several("reader")) name += ` by ${row.reader}`;
  if (row.jobs !== null && several("jobs")) name += `, ${row.jobs} jobs`;
  return name;
}
function detailsOf(row, rows) {
  const lines = [nameOf(row, rows), `${row.workload} on ${row.device}`];
  if (row.size !== null) lines.push(`size ${length(row.size)} (${count(row.size)} bytes)`);
  if (row.wall) lines.push(`time ${spreadOf(row.wall)}, ${row.wall.count} runs`);
  if (row.rate !== null) lines.push(`rate ${rate(row.rate)}`);
  return lines.join("\n");
}
function spreadOf(wall) {
  return wall.count < 2 ? seconds(wall.median) : `${seconds(wall.median)} (${digits(wall.min, 3)} to ${digits(wall.max, 3)})`;
}
const none = (why) => html("p", { class: "none" }, why);

// Those that no other beats in both.
function front(rows) {
  const sorted = [...rows].sort((a, b) => a.size - b.size || a.wall.median - b.wall.median);
  let best = Infinity;
  return sorted.filter((row) => row.wall.median < best && ((best = row.wall.median), true));
}

function drawSizes(place, rows, chosen) {
  place.replaceChildren();
  const shown = rows.filter((row) => row.workload === chosen.workload && row.size > 0 && row.wall?.median > 0);
  if (shown.length === 0) {
    place.append(none("Nothing that is chosen has both a size and a time."));
    return;
  }
  const width = widthOf(place);
  const height = Math.min(440, Math.max(300, width * 0.5));
  const box = { left: 62, right: width - 14, top: 30, bottom: height - 42 };
  const sizes = shown.map((row) => row.size);
  const unit = 1024 ** binaryUnit(Math.max(...sizes));
  const across = scale(Math.min(...sizes) / unit, Math.max(...sizes) / unit, box.left, box.right);
  across.word = tickWord;
  const walls = shown.flatMap((row) => [row.wall.min, row.wall.max, row.wall.median]).filter((wall) => wall > 0);
  const up = scale(Math.min(...walls), Math.max(...walls), box.bottom, box.top);
  up.word = tickWord;
  const at = (row) => [across.place(row.size / unit), up.place(row.wall.median)];

  const best = front(shown);
  let path = "";
  best.forEach((row, index) => {
    const [x, y] = at(row);
    path += index === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  const titles = { up: `${chosen.workload}, seconds`, across: `size, ${UNITS[binaryUnit(Math.max(...sizes))]}` };
  const marks = shown.map((row) => {
    const [x, y] = at(row);
    const [low, high] = [up.place(Math.max(row.wall.min, up.log ? 1e-9 : 0)), up.place(row.wall.max)];
    const whisker = svg("path", { class: "whisker", d: `M${x} ${low}V${high}` });
    const kind = isOurs(row) ? "mark ours" : "mark";
    const mark = described(shape(FORMATS.indexOf(row.format), x, y, 5.5, { class: kind }), detailsOf(row, shown));
    return svg("g", { class: `series-${colourOf(row)}`, "data-point": row.subject }, whisker, mark);
  });
  const numbers = best.map((row, index) => {
    const [x, y] = at(row);
    return svg("text", { class: "number", x: x - 9, y: y + 17, "text-anchor": "end", "aria-hidden": "true" }, index + 1);
  });
  const label = `Size against time of ${chosen.workload}, ${shown.length} marks; the list below names the best.`;
  place.append(
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
      frame(box, across, up, titles),
      svg("path", { class: "front", d: path }),
      marks,
      numbers,
    ),
    formatLegend(shown),
    html("p", {}, "Nothing else measured here is both smaller and faster than these (the dashed line), the smallest first:"),
    html(
      "ol",
      { class: "best" },
      best.map((row) => html("li", {}, `${nameOf(row, shown)}: ${length(row.size)}, ${spreadOf(row.wall)}`)),
    ),
  );
}
function formatLegend(rows) {
  const formats = FORMATS.filter((format) => rows.some((row) => row.format === format));
  const sample = (index, kind) => svg("svg", { viewBox: "-14 -7 28 14", "aria-hidden": "true" }, shape(index, 0, 0, 5, { class: kind }));
  const items = formats.map((format) => {
    const index = FORMATS.indexOf(format);
    return html("li", { class: `series-${index % 8}` }, sample(index, "mark ours"), format || "unknown format");
  });
  items.push(html("li", { class: "series-7" }, sample(0, "mark ours"), `filled: made by ${data.ours}`));
  items.push(html("li", { class: "series-7" }, sample(0, "mark"), "hollow: made by others"));
  return html("ul", { class: "legend" }, items);
}

// Series of one subject under one workload whose jobs differ; how much faster it is than with one job.
function jobSeries(rows) {
  const series = new Map();
  for (const row of rows.filter((row) => row.jobs !== null && row.wall?.median > 0)) {
    const key = JSON.stringify([row.workload, row.subject, row.reader]);
    if (!series.has(key)) series.set(key, []);
    series.get(key).push(row);
  }
  const usable = [];
  for (const points of series.values()) {
    points.sort((a, b) => a.jobs - b.jobs);
    const alone = points.find((row) => row.jobs === 1);
    if (!alone || points.length < 2) continue;
    const speedups = points.map((row) => ({ row, jobs: row.jobs, speedup: alone.wall.median / row.wall.median }));
    usable.push({ name: points[0].subject, workload: points[0].workload, points: speedups });
  }
  return usable;
}
function drawJobs(place, rows) {
  place.replaceChildren();
  const series = jobSeries(rows);
  if (series.length === 0) {
    place.append(none("Nothing that is chosen was measured with one job and with several."));
    return;
  }
  for (const workload of new Set(series.map((one) => one.workload))) {
    const group = series.filter((one) => one.workload === workload);
    const pair = html("div", { class: "pair" });
    place.append(html("h3", {}, workload), pair);
    const panels = [
      ["Speedup", "times as fast as with one job", (point) => point.speedup, (jobs) => jobs, (value) => digits(value, 3)],
      ["Efficiency", "speedup by job", (point) => point.speedup / point.jobs, () => 1, percent],
    ];
    for (const [title, explained, value, ideal, word] of panels) {
      const figure = html("figure", {}, html("figcaption", {}, title, html("small", {}, `${explained}; the dotted line is the ideal`)));
      pair.append(figure);
      figure.append(jobsPanel(widthOf(figure), group, title, value, ideal, word));
    }
    place.append(lineLegend(group), jobsTable(group));
  }
}
const dashes = (index) => [undefined, "7 4", "2 3"][Math.floor(index / 8) % 3];

function jobsPanel(width, group, title, value, ideal, word) {
  const box = { left: 52, right: width - 12, top: 30, bottom: 238 };
  const points = group.flatMap((one) => one.points);
  const jobs = [...new Set(points.map((point) => point.jobs))].sort((a, b) => a - b);
  const most = Math.max(...jobs);
  const across = { place: (at) => box.left + 14 + ((at - 1) / Math.max(most - 1, 1)) * (box.right - box.left - 28), log: false };
  across.ticks = jobs.length > 10 ? jobs.filter((at) => at === 1 || at % 4 === 0) : jobs;
  across.word = String;
  const top = Math.max(...points.map(value), ...jobs.map(ideal)) * 1.05;
  const up = { place: (at) => box.bottom - (at / top) * (box.bottom - box.top), ticks: even(0, top), log: false };
  up.word = title === "Efficiency" ? (tick) => `${tickWord(tick * 100)} %` : tickWord;
  const line = (places) => places.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const lines = group.map((one, index) => {
    const places = one.points.map((point) => [across.place(point.jobs), up.place(value(point))]);
    const marks = one.points.map((point, at) => {
      const words = `${one.name}\n${point.jobs} jobs: ${title.toLowerCase()} ${word(value(point))}\ntime ${spreadOf(point.row.wall)}`;
      return described(shape(index, ...places[at], 4, { class: "mark ours" }), words);
    });
    const path = svg("path", { class: "series-line", d: line(places), "stroke-dasharray": dashes(index) });
    return svg("g", { class: `series-${index % 8}`, "data-line": one.name }, path, marks);
  });
  return svg(
    "svg",
    { viewBox: `0 0 ${width} 280`, role: "group", "aria-label": `${title} by jobs, ${group.length} lines; a table follows.` },
    frame(box, across, up, { up: title.toLowerCase(), across: "jobs" }),
    svg("path", { class: "ideal", d: line(jobs.map((at) => [across.place(at), up.place(ideal(at))])) }),
    lines,
  );
}
function lineLegend(group) {
  const items = group.map((one, index) => {
    const path = svg("path", { class: "series-line", d: "M-14 0H14", "stroke-dasharray": dashes(index) });
    const sample = svg("svg", { viewBox: "-14 -7 28 14", "aria-hidden": "true" }, path, shape(index, 0, 0, 4, { class: "mark ours" }));
    return html("li", { class: `series-${index % 8}` }, sample, one.name);
  });
  return html("ul", { class: "legend" }, items);
}
function jobsTable(group) {
  const jobs = [...new Set(group.flatMap((one) => one.points.map((point) => point.jobs)))].sort((a, b) => a - b);
  const cell = (one, at) => {
    const point = one.points.find((point) => point.jobs === at);
    return html("td", { class: "figure" }, point ? `${digits(point.speedup, 3)} (${percent(point.speedup / at)})` : "");
  };
  const head = html("tr", {}, html("th", { scope: "col" }, "subject"), jobs.map((at) => html("th", { scope: "col", class: "figure" }, `${at} jobs`)));
  const rows = group.map((one) => html("tr", {}, html("td", {}, one.name), jobs.map((at) => cell(one, at))));
  const table = html("table", {}, html("caption", {}, "Speedup (efficiency)"), html("thead", {}, head), html("tbody", {}, rows));
  return html("details", {}, html("summary", {}, "These figures as a table"), html("div", { class: "scroll" }, table));
}

// One plot for each workload; of those that were run with several jobs, the most.
function drawBars(place, rows, chosen) {
  place.replaceChildren();
  const workloads = [...new Set(rows.map((row) => row.workload))];
  for (const workload of workloads) {
    let shown = rows.filter((row) => row.workload === workload && row.wall);
    const jobs = shown.map((row) => row.jobs).filter((jobs) => jobs !== null);
    const most = jobs.length > 0 ? Math.max(...jobs) : null;
    if (most !== null) shown = shown.filter((row) => row.jobs === null || row.jobs === most);
    if (shown.length === 0) continue;
    if (chosen.bars !== "subject") shown = [...shown].sort((a, b) => a.wall.median - b.wall.median);
    const small = html("small", {}, `seconds: median, and the whisker from the fastest run to the slowest${most !== null ? `; ${most} jobs` : ""}`);
    const figure = html("figure", {}, html("figcaption", {}, workload, small));
    place.append(figure);
    figure.append(barsPanel(widthOf(figure), shown, workload));
  }
  if (place.childElementCount === 0) place.append(none("Nothing that is chosen was measured."));
}
function barsPanel(width, rows, workload) {
  // Names stand above their bars, so that long ones need no room beside them.
  const [pitch, thick] = [36, 11];
  const most = Math.max(...rows.map((row) => row.wall.max));
  const right = width - 64;
  const place = (wall) => (wall / most) * right;
  const bars = rows.map((row, index) => {
    const y = index * pitch + 18;
    const bar = svg("rect", {
      class: isOurs(row) ? "mark ours" : "mark",
      x: 1,
      y,
      width: Math.max(place(row.wall.median), 1),
      height: thick,
    });
    const [low, high, middle] = [place(row.wall.min), place(row.wall.max), y + thick / 2];
    const whisker = `M${low} ${middle}H${high}M${low} ${middle - 4}v8M${high} ${middle - 4}v8`;
    return svg(
      "g",
      { class: `bar series-${colourOf(row)}`, "data-bar": row.subject },
      svg("text", { x: 0, y: y - 4, "aria-hidden": "true" }, nameOf(row, rows)),
      described(bar, detailsOf(row, rows)),
      row.wall.count > 1 ? svg("path", { class: "whisker", d: whisker }) : null,
      svg("text", { class: "faint", x: high + 8, y: y + 10, "aria-hidden": "true" }, seconds(row.wall.median)),
    );
  });
  const label = `${workload}: ${rows.length} bars; the table of all measurements has the figures.`;
  return svg("svg", { viewBox: `0 0 ${width} ${rows.length * pitch}`, role: "group", "aria-label": label }, bars);
}
