// Shows how the threads of sampled programs spent their time: a table of groups of threads, and flame graphs of running and waiting time.
"use strict";

/** Matches functions through which every thread is started, and which say nothing about the program. */
const runtimeFunction = /^(_start|__clone3?|clone|start_thread|__libc_start_|execute_native_thread_routine|libstdc\+\+\.so[^ ]*\+0x|(void )?std::(__invoke|invoke|thread::_|_?Function_handler|_Bind|function<|__future_base))/;

/** Returns a function's name without template arguments and parameters, which are in its tooltip. */
function shortFunction(name) {
  let short = name;
  for (let before = ""; before !== short;) { before = short; short = short.replace(/<[^<>]*>|\([^()]*\)(?! )/g, ""); }
  return short || name;
}

/** Returns the tree of calls of sampled threads, each call below its caller.
 * @param {any[][]} names  names of functions, each with the file
 * @param {number[][]} calls  calls as thread_stacks.hpp writes them: caller, name, time and number of samples */
function stackTree(names, calls) {
  const root = { name: "", place: "", ns: 0, count: 0, inner: [] };
  const nodes = [];
  for (const [caller, number, ns, count] of calls) {
    const [full, place] = names[number];
    if (caller >= 0 && runtimeFunction.test(full)) {
      nodes.push(nodes[caller]);  // what it calls is drawn in its place
      continue;
    }
    const node = { name: shortFunction(full).replaceAll("`", ""), full, place, ns, count, inner: [] };
    (caller < 0 ? root : nodes[caller]).inner.push(node);
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
