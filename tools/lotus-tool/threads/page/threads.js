// Shows how the threads of sampled programs spent their time: a table of groups of threads, and flame graphs of running and waiting time.
"use strict";

/** Returns a function's name without template arguments and parameters, which are in its tooltip. */
function shortFunction(name) {
  let short = name;
  for (let before = ""; before !== short;) { before = short; short = short.replace(/<[^<>]*>|\([^()]*\)(?! )/g, ""); }
  return short || name;
}

/** Returns the tree of calls of sampled threads, each call below its caller. Of the C and C++ library, only the functions
 * that the program calls are in it: neither what starts a thread nor what is inside std::sort says anything about the
 * program.
 * @param {any[][]} names  names of functions, each with the file and with whether it belongs to the C or C++ library
 * @param {number[][]} calls  calls as thread_stacks.hpp writes them: caller, name, time and number of samples */
function stackTree(names, calls) {
  const root = { name: "", place: "", ns: 0, count: 0, inner: [], isRuntime: false, isCall: false };
  const nodes = [];
  for (const [caller, number, ns, count] of calls) {
    const [full, place, runtime] = names[number];
    const above = caller < 0 ? root : nodes[caller];
    if (runtime && (above.isRuntime || !above.isCall)) {
      nodes.push(above);  // what it calls is drawn in its place
      continue;
    }
    // Several calls may be drawn in the place of one.
    let node = above.inner.find((of) => of.full === full && of.place === place);
    if (!node) {
      node = { name: shortFunction(full).replaceAll("`", ""), full, place, ns: 0, count: 0, inner: [], isRuntime: runtime === 1, isCall: place !== "" };
      above.inner.push(node);
    }
    node.ns += ns;
    node.count += count;
    nodes.push(node);
  }
  for (const node of root.inner) root.ns += node.ns;
  return root;
}

/** Shows sampled calls as an icicle chart: groups of threads, and below each group the calls of its threads. */
class StackIcicle extends Icicle {
  /** @param {string} name  name of the chart, with which the ids of its elements begin */
  constructor(name) {
    super(byId(name), byId(name + "-shown"), undefined, () => {});
    this.part = byId(name + "-part");
    byId(name + "-all").addEventListener("click", () => this.draw([this.root]));
  }

  showStacks(root) {
    this.root = root;
    this.functions = new Map();
    this.part.hidden = !root.inner.length;
    this.shownText.textContent = "";
    if (root.inner.length) this.draw([root]);
  }

  labelOf(node) {
    if (!node.isRuntime) return super.labelOf(node);
    const label = element("span", node.name);
    label.style.color = textOn(cssColour("blocked"));
    return label;
  }

  fillOf(node) { return node.isRuntime ? cssColour("blocked") : operationBackground(node.name); }

  textOf(node) {
    return node.full + (node.place ? " (" + node.place + ")" : "") + ": " + humanTime(node.ns) + ", " +
      percent(node.ns / this.root.ns) + " of the total, " + grouped(node.count) + (node.count === 1 ? " sample" : " samples");
  }
}

const groupColumns = [
  timeColumn("time", "ns", "Sum of the times of the group's threads"),
  shareColumn("running", "running", "Share of this time for which they used a CPU"),
  shareColumn("for a CPU", "run_queue", "Share for which they were ready to run, but all CPUs were busy"),
  shareColumn("blocked", "blocked", "Share for which they waited for something else"),
  textColumn("runs most in", "The function in which they use the CPU most", (group) => withCode(group.function || "–"), undefined),
  textColumn("waits most in", "The function in which they wait most; the chart of waiting time shows what for", (group) => withCode(group.wait || "–"), undefined),
];

/** Shows the threads of all sampled programs. */
function showThreads() {
  if (!report.threads.length) return;
  byId("threads-part").hidden = false;
  const table = byId("threads");
  const shown = byId("threads-chain");
  /** Shows the threads for which a group waits, up to the ones that end the chain. */
  const showChain = (group) => shown.replaceChildren(...group.chain.map((sentence) => element("li", withCode(sentence + "."))));
  new SortedTable(table, ["threads", "Threads that began with the same function; press one to see for whom they wait"], groupColumns,
    (group) => linkTo(withCode(group.name), () => showChain(group)),
    (of) => of.groups, report.threads);
  const running = new StackIcicle("running");
  const waiting = new StackIcicle("waiting");
  const choose = (number) => {
    const { names, running: runs, waiting: waits } = report.thread_stacks[number];
    running.showStacks(stackTree(names, runs));
    waiting.showStacks(stackTree(names, waits));
    byId("running-unknown").hidden = report.threads[number].cpu_sampled;
  };
  fillChoice("threads-run", report.threads.map((of) => of.name), () => choose(Number(byId("threads-run").value)));
  byId("threads-run-choice").hidden = report.threads.length < 2;
  choose(0);
}

/** Hides all sections except those about threads, for programs that were sampled but recorded nothing themselves. */
function showOnlyThreads() {
  for (const part of document.querySelectorAll("main > section")) {
    if (part.id !== "threads-part" && part.id !== "verdicts") part.setAttribute("hidden", "");
  }
  document.querySelector("a.skip").setAttribute("href", "#threads-title");
  document.querySelector("a.skip").textContent = "To the threads";
}
