"use strict";

// A fault shows: to people as a line at the top, to tests as an attribute of the document.
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
  const line = document.createElement("p");
  line.className = "alert";
  line.setAttribute("role", "alert");
  line.textContent = `This page's script failed: ${event.message}`;
  document.body.prepend(line);
});

// Elements. Children are elements or words, never markup, so no name can become an element.
function element(space, name, attributes, children) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}
const html = (name, attributes, ...children) => element(null, name, attributes, children);
const svg = (name, attributes, ...children) =>
  element("http://www.w3.org/2000/svg", name, attributes, children);

// Figures: three digits of what was measured, four of a length, as the other reports spell them.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function digits(value, count) {
  if (value === 0 || !Number.isFinite(value)) return "0";
  const exponent = Number(Math.abs(value).toExponential(count - 1).split("e")[1]);
  const decimals = Math.min(Math.max(count - 1 - exponent, 0), 9);
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}
function binaryUnit(bytes) {
  let power = 0;
  while (power < UNITS.length - 1 && Math.abs(bytes) / 1024 ** power >= 1023.95) power += 1;
  return power;
}
function length(bytes) {
  const power = binaryUnit(bytes);
  const value = bytes / 1024 ** power;
  return `${power === 0 ? String(Math.round(value)) : digits(value, 4)} ${UNITS[power]}`;
}
function rate(bytesPerSecond) {
  const power = binaryUnit(bytesPerSecond);
  return `${digits(bytesPerSecond / 1024 ** power, 3)} ${UNITS[power]}/s`;
}
const seconds = (value) => `${digits(value, 3)} s`;
const percent = (share) => `${digits(share * 100, 3)} %`;
const count = (number) => number.toLocaleString("en-US");

// What is chosen, kept in the address behind #, so that a view can be sent to somebody.
const address = {
  read() {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  },
  write(chosen, usual) {
    const kept = Object.entries(chosen).filter(([key, value]) => value !== "" && value !== usual[key]);
    const hash = new URLSearchParams(kept).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.href.split("#")[0]);
  },
};

// Details of a mark, for who points at it or comes to it by the keyboard; others read them as its label.
const tip = html("div", { class: "tip", hidden: true, "aria-hidden": "true" });
document.body.append(tip);

function showTip(mark, words) {
  tip.textContent = words;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = Math.min(box.left + box.width / 2 + 10, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(left, 8) + window.scrollX}px`;
  tip.style.top = `${(above > 0 ? above : box.bottom + 8) + window.scrollY}px`;
}
function hideTip() {
  tip.hidden = true;
}
function described(mark, words) {
  mark.setAttribute("tabindex", "0");
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", words.replaceAll("\n", ", "));
  mark.addEventListener("pointerenter", () => showTip(mark, words));
  mark.addEventListener("pointerleave", hideTip);
  mark.addEventListener("focus", () => showTip(mark, words));
  mark.addEventListener("blur", hideTip);
  return mark;
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});

const data = JSON.parse(document.getElementById("data").textContent);
