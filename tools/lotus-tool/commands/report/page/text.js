// Provides the page's data, and formats numbers and names. Names come from logs and may contain anything, so they are
// inserted only as text nodes.
"use strict";

/** @returns {any} the element with this id, which must exist */
function byId(id) { return document.getElementById(id); }

/** The data of the first screen; readRest() in start.js adds all other data. */
const report = JSON.parse(byId("first").textContent);

/** Returns an operation's name without the S that it has in logs. */
function shownName(name) { return name.length > 1 && name[0] === "S" ? name.slice(1) : name; }

/** Returns the value of a key that comes from logs, such as "constructor"; undefined if an object does not have it itself. */
function ownValue(of, key) { return Object.prototype.hasOwnProperty.call(of, key) ? of[key] : undefined; }

/** Formats a duration in ns in a suitable unit. */
function humanTime(ns) {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "–";
  const size = Math.abs(ns);
  if (size === 0) return "0";
  const units = /** @type {[number, string][]} */ ([[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]);
  let unit = units[0];
  for (const u of units) if (size >= u[0] * 0.99995) unit = u;  // 999.96 µs are shown as 1 ms
  return Number((ns / unit[0]).toPrecision(4)) + " " + unit[1];
}

function humanBytes(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = bytes;
  let unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return Number(value.toPrecision(4)) + " " + units[unit];
}

/** Formats a number with three digits; null stands for infinity, which JSON cannot represent. */
function threeDigits(value) {
  if (value === null) return "any number of";
  return value >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Keeps a number and its unit on one line. */
function unbroken(text) { return text.replaceAll(" ", "\u00a0"); }

function batchesPerSecond(rate) { return threeDigits(rate) + " batches/s"; }

function percent(share) { return (share * 100).toFixed(1) + " %"; }

function grouped(number) { return Number(number).toLocaleString("en"); }

/** Creates an HTML element. @param {string|Node} [content] @param {string} [className] @returns {any} */
function element(kind, content, className) {
  const e = document.createElement(kind);
  if (content !== undefined) e.append(content);
  if (className) e.className = className;
  return e;
}

/** Creates an SVG element. @returns {any} */
function svgElement(kind, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const key of Object.keys(attributes)) e.setAttribute(key, attributes[key]);
  return e;
}

/** Returns a text whose parts between backticks are code. */
function withCode(text) {
  const whole = element("span");
  text.split("`").forEach((part, i) => whole.append(i % 2 ? element("code", part) : part));
  return whole;
}

/** Whether a name fits into `pixels` pixels. A name that does not fit is not drawn, because a cut name could be
 * misread. */
function fits(name, pixels) { return 7 * name.length + 8 <= pixels; }

/** Returns a button that looks like a link. @param act called when the user presses it; goes to a place on this page */
function linkTo(text, act) {
  const button = element("button", text, "link");
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

/** Returns the header of a column. @param {string} tip meaning of the column, shown when the user points at it */
function headCell(content, tip) {
  const cell = element("th", content);
  cell.scope = "col";
  cell.title = tip;
  return cell;
}

/** Returns a table with a header; each cell is a text, an element or a number. @param {string[][]} head title and
 * meaning of each column */
function simpleTable(caption, head, rows) {
  const table = element("table");
  table.append(element("caption", caption, "unseen"));
  const titles = element("tr");
  for (const [title, tip] of head) titles.append(headCell(title, tip));
  table.append(element("thead", titles));
  const body = element("tbody");
  // Numbers are aligned to the right, words to the left.
  const isText = head.map((_, i) => rows.length > 0 && rows.every((cells) => typeof cells[i] === "string" && /^[a-z…/]|^$/i.test(cells[i])));
  isText.forEach((is, i) => { if (is) titles.children[i].className = "text"; });
  for (const cells of rows) {
    const row = element("tr");
    cells.forEach((content, i) => {
      const cell = element(i ? "td" : "th", content, i ? isText[i] ? "words" : undefined : "name");
      if (!i) cell.scope = "row";
      row.append(cell);
    });
    body.append(row);
  }
  table.append(body);
  return table;
}
