// Draws lines and dots over a color, to distinguish operations with the same color.
"use strict";

const tileSize = 6;  // width and height of a tile in pixels; tiles are repeated

/** Returns a tile of one color with a pattern over it. */
function tileOf(ground, line, draw) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = tileSize;
  const c = tile.getContext("2d");
  c.fillStyle = ground;
  c.fillRect(0, 0, tileSize, tileSize);
  c.strokeStyle = c.fillStyle = line;
  c.lineWidth = 1.4;
  c.beginPath();
  draw(c);
  c.stroke();
  return tile;
}

function rising(c) {
  for (const at of [-3, 3, 9]) { c.moveTo(at - 3, 9); c.lineTo(at + 9, -3); }
}

function falling(c) {
  for (const at of [-3, 3, 9]) { c.moveTo(at - 3, -3); c.lineTo(at + 9, 9); }
}

function level(c) { c.moveTo(0, 3); c.lineTo(tileSize, 3); }

function dots(c) {
  for (const at of [1.5, 4.5]) c.fillRect(at - 1, at - 1, 2, 2);
}

/** The patterns that distinguish operations of the same color. Rising lines are not used, because they mark waits. */
const patterns = [level, dots, falling];

const tiles = new Map();  // tiles by name of the operation

/** Returns the tile that is drawn for an operation; undefined if it has no pattern. */
function operationTile(name) {
  const pattern = operationPattern(name);
  if (!pattern) return undefined;
  if (!tiles.has(name)) {
    const flat = operationColour(name);
    tiles.set(name, tileOf(flat, textOn(flat), patterns[pattern - 1]));
  }
  return tiles.get(name);
}

/** Returns the fill of an operation for a canvas. */
function operationFill(context, name) {
  const tile = operationTile(name);
  return tile ? context.createPattern(tile, "repeat") : operationColour(name);
}

/** Returns the CSS background of an operation. */
function operationBackground(name) {
  const tile = operationTile(name);
  return operationColour(name) + (tile ? " url(" + tile.toDataURL() + ")" : "");
}

/** Returns an operation's name, or another text about it, on a background without pattern, because text on lines is hard to read.
 * @returns {any} */
function operationText(name, shown = name) {
  const flat = operationColour(name);
  const text = element("span", shown);
  text.style.color = textOn(flat);
  text.style.background = flat;
  return text;
}
