// Nested operations: each below the one it ran in, as wide as its time.
"use strict";

const thinnest = 0.002;  // share of what is shown; thinner ones are left out

/** The calls of a run's lanes: {name, ns, count, inner: by name}. */
function callTree(lanes) {
  const root = { name: "", ns: 0, count: 0, inner: new Map() };
  for (const lane of lanes) {
    const rows = lane.number === undefined ? [] : lane.rows.filter((row) => row.kind === "operations");
    let outer = [];  // the nodes of the row above
    rows.forEach((row, depth) => {
      const nodes = new Array(row.length);
      let at = 0;
      for (let i = 0; i < row.length; ++i) {
        let parent = root;
        if (depth) {
          const above = rows[depth - 1];
          while (at + 1 < above.length && above.end[at] <= row.start[i]) ++at;
          parent = outer[at];
        }
        let node = parent.inner.get(row.name[i]);
        if (!node) {
          node = { name: shownName(report.op_names[row.name[i]]), ns: 0, count: 0, inner: new Map() };
          parent.inner.set(row.name[i], node);
        }
        node.ns += row.duration(i);
        ++node.count;
        nodes[i] = node;
      }
      outer = nodes;
    });
  }
  for (const node of root.inner.values()) root.ns += node.ns;
  return root;
}

class Icicle {
  constructor(box, told, select) {
    this.box = box;
    this.told = told;
    this.select = select;
  }

  show(lanes) {
    this.root = callTree(lanes);
    byId("icicle-part").hidden = ![...this.root.inner.values()].some((node) => node.inner.size);
    this.draw([this.root]);
  }

  /** @param {any[]} way from the root to what is as wide as the box */
  draw(way) {
    this.box.replaceChildren();
    const shown = way[way.length - 1];
    const place = (node, from, share, depth, path) => {
      if (depth >= 0 && node !== this.root) {
        const cell = element("button", share > 0.02 ? operationText(node.name) : "");
        cell.type = "button";
        const text = node.name + ": " + humanTime(node.ns) + ", " + percent(node.ns / this.root.ns) + " of all, " + grouped(node.count) + " times";
        cell.title = text;
        cell.setAttribute("aria-label", text);
        Object.assign(cell.style, { left: 100 * from + "%", width: 100 * share + "%", top: 22 * depth + "px",
          background: operationBackground(node.name) });
        cell.addEventListener("click", () => {
          this.draw(path);
          this.told.textContent = text;
          this.select(node.name);
        });
        this.box.append(cell);
        this.deepest = Math.max(this.deepest, depth);
      }
      let left = from;
      for (const inner of [...node.inner.values()].sort((a, b) => b.ns - a.ns)) {
        const part = shown.ns ? inner.ns / shown.ns : 0;
        if (part >= thinnest) place(inner, left, part, depth + 1, [...path, inner]);
        left += part;
      }
    };
    this.deepest = 0;
    const above = way.slice(1, -1);
    above.forEach((node, depth) => {
      const inner = node.inner;
      node.inner = new Map();
      place(node, 0, 1, depth, way.slice(0, depth + 2));
      node.inner = inner;
    });
    place(shown, 0, 1, shown === this.root ? -1 : above.length, way);
    this.box.style.height = 22 * (this.deepest + 1) + "px";
  }
}
