// Draws nested operations as an icicle chart: each is below its caller, and its width is proportional to its time.
"use strict";

const thinnest = 0.002;  // share of the shown time; thinner nodes are not drawn

/** Returns the call tree of a run: {name, ns, count, inner: nodes}. @param {number[][]} calls as timeline_data.cpp writes
 * them */
function callTree(calls) {
  const root = { name: "", ns: 0, count: 0, inner: [] };
  const nodes = [];
  for (const [caller, name, ns, count] of calls) {
    const node = { name: shownName(report.op_names[name]), ns, count, inner: [] };
    (caller < 0 ? root : nodes[caller]).inner.push(node);
    nodes.push(node);
  }
  for (const node of root.inner) root.ns += node.ns;
  return root;
}

/** Returns a node's time without the time of the nodes inside it. */
function ownTime(node) { return node.inner.reduce((ns, inner) => ns - inner.ns, node.ns); }

class Icicle {
  constructor(box, shownText, note, select) {
    this.box = box;
    this.shownText = shownText;
    this.note = note;
    this.select = select;
  }

  /** Draws the calls of a run. @param {number[][]} calls @param {any} source where the functions below the operations
   * come from: an element of report.hardware.functions, or undefined */
  show(calls, source) {
    this.root = callTree(calls);
    this.source = source;
    byId("icicle-part").hidden = false;  // must come first, because a hidden element has no width
    this.functions = new Map(source ? source.ops.filter((op) => op.total > 0).map((op) => [op.name, op]) : []);
    this.draw([this.root]);
    const below = this.box.querySelector(".function");
    this.note.hidden = !below;
    this.note.textContent = source ? "The dashed parts below an operation's self time are its functions. The width of each is its share of " +
      "the operation's " + source.unit + " in all calls (from " + source.name + "). " + source.note : "";
    byId("icicle-part").hidden = !below && !this.root.inner.some((node) => node.inner.length);
  }

  /** Draws the tree so that the last node of `path` is as wide as the box. @param {any[]} path from the root to this
   * node */
  draw(path) {
    this.box.replaceChildren();
    this.deepest = 0;
    this.shown = path[path.length - 1];
    const above = path.slice(1, -1);
    above.forEach((node, depth) => this.operation(node, 0, 1, depth, path.slice(0, depth + 2)));
    this.nest(this.shown, 0, above.length, path);
    this.box.style.height = 22 * (this.deepest + 1) + "px";
  }

  nest(node, from, depth, path) {
    const share = (ns) => this.shown.ns ? ns / this.shown.ns : 0;
    if (node !== this.root) this.operation(node, from, share(node.ns), depth, path);
    const below = node === this.root ? depth : depth + 1;
    let left = from;
    for (const inner of [...node.inner].sort((a, b) => b.ns - a.ns)) {
      if (share(inner.ns) >= thinnest) this.nest(inner, left, below, [...path, inner]);
      left += share(inner.ns);
    }
    const own = ownTime(node);
    if (node !== this.root && own > 0) this.functionsOf(node, left, share(own), below);
  }

  cell(content, text, from, share, depth) {
    const cell = element("button", content);
    cell.type = "button";
    cell.title = text;
    cell.setAttribute("aria-label", text);
    Object.assign(cell.style, { left: 100 * from + "%", width: 100 * share + "%", top: 22 * depth + "px" });
    cell.addEventListener("click", () => { this.shownText.textContent = text; });
    this.box.append(cell);
    this.deepest = Math.max(this.deepest, depth);
    return cell;
  }

  labelOf(node) { return operationText(node.name); }

  fillOf(node) { return operationBackground(node.name); }

  textOf(node) {
    return node.name + ": " + humanTime(node.ns) + ", " + percent(node.ns / this.root.ns) + " of the total, " + grouped(node.count) + (node.count === 1 ? " call" : " calls");
  }

  operation(node, from, share, depth, path) {
    const text = this.textOf(node);
    // A name that does not fit ends in an ellipsis.
    const readable = 40;
    const cell = this.cell(share * this.box.clientWidth >= readable ? this.labelOf(node) : "", text, from, share, depth);
    cell.style.background = this.fillOf(node);
    cell.addEventListener("click", () => {
      this.draw(path);
      this.select(node.name);
    });
  }

  /** Draws the functions of an operation below it. Each gets a part of the width of the operation's self time. */
  functionsOf(node, from, own, depth) {
    const op = this.functions.get(node.name);
    if (!op) return;
    const listed = op.functions.map(([key, value]) => [legendName(key), functionOf(key) + " of " + moduleOf(key), value]);
    const rest = op.total - op.functions.reduce((sum, [, value]) => sum + value, 0);
    if (op.more) listed.push([op.more + " more", op.more + " more functions", rest]);
    let left = from;
    for (const [name, what, value] of listed) {
      const share = own * value / op.total;
      if (share >= thinnest) {
        const text = what + ": " + percent(value / op.total) + " of " + node.name + "'s " + this.source.unit + ", from " + this.source.name;
        this.cell(share * this.box.clientWidth > 60 ? name : "", text, left, share, depth).classList.add("function");
      }
      left += share;
    }
  }
}
