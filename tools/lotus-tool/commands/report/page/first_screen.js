// Draws the first screen: the verdict and its evidence, what to change, and how reliable the verdict is. Its parts are
// links to the places on the page with the details.
"use strict";

/** Returns a heading. It is one level lower if there are several runs, below the run's name. */
function partHead(text) { return element(report.runs.length > 1 ? "h3" : "h2", text, "part"); }

/** Draws the measured throughput and the capacity of each side as bars on one scale. */
function rateTable(run) {
  const v = run.verdict;
  const rows = [["measured throughput", v.achieved_batches_per_s, undefined],
    [v.workers ? "if workers never waited" : "if stages never waited", v.preprocessing_capacity, v.preprocessing_capacity_interval],
    ["if consumer never waited", v.consumer_capacity, v.consumer_capacity_interval]]
    .filter(([, rate]) => rate !== null && rate !== undefined);
  if (!rows.length) return undefined;
  const most = Math.max(...rows.map(([, rate]) => rate));
  const table = simpleTable("Batches per second", [["what", "The measured throughput, or what one side could reach if the other side never made it wait"], ["rate", "Batches per second, as a range if there are few batches"],
    ["as a bar", "All rates on one scale"]], rows.map(([name, rate, interval]) => {
    const bar = element("div", undefined, name === "measured throughput" ? "rate-bar achieved" : "rate-bar");
    bar.style.width = Math.max(100 * rate / most, 0.5) + "%";
    return [name, interval ? threeDigits(interval[0]) + " to " + batchesPerSecond(interval[1]) : batchesPerSecond(rate), bar];
  }));
  table.className = "rates";
  return table;
}

const pathColours = { step: "step", "hand-over": "arrival", prefetch: "accent", "start-up": "quiet", unrecorded: "line" };

/** Goes to the target of a link. Before the timeline exists, this only stores the link in `wanted`. Then start.js
 * replaces this function and goes to `wanted`. */
let goTo = (run, target) => { wanted = { run, target }; };
let wanted = undefined;

/** Returns a link to a place on the page. @param [target] describes the place, such as {kind: "operation", name}; if it
 * is missing, the text is returned without a link */
function targetLink(run, text, target) {
  if (!target) return element("span", text);
  const link = linkTo(text, () => goTo(run, target));
  link.title = targetText(target);
  return link;
}

function targetText(target) {
  switch (target.kind) {
    case "operation": return "Show every call of " + target.name + " in the timeline";
    case "stage": return "Show the stage in its table, and its calls in the timeline";
    case "batches": return "Show the batches that the consumer waited for longest";
    case "call": return "Show this call in the timeline";
    default: return "Show the longest such time in the timeline";
  }
}

/** Lets the left and right keys move between the segments of a bar, so that the Tab key stops only once at the bar. */
function listenToBar(bar) {
  const parts = [...bar.children];
  bar.addEventListener("keydown", (event) => {
    const next = parts[parts.indexOf(document.activeElement) + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : NaN)];
    if (!next) return;
    event.preventDefault();
    for (const part of parts) part.tabIndex = part === next ? 0 : -1;
    next.focus();
  });
}

/** Returns a part of the critical path as text. The percentages are those that `lotus-tool diagnose` prints, so that
 * they add up. @param {any} row a row of the first screen's table */
function rowText(row) {
  const split = row.running === undefined ? "" : " (" + row.running + " % on CPU, " + row.no_cpu + " % waits for CPU, " + row.blocked + " % blocked)";
  return row.name + " " + row.share + " %" + split;
}

/** Draws the run's critical path as a bar and as a list. */
function pathBar(run) {
  const shares = (run.verdict.critical_path || []).filter((share) => share.ns > 0);
  const all = run.verdict.run_ns;
  if (!shares.length || !all) return [];
  const bar = element("div", undefined, "path");
  const list = element("ul", undefined, "legend");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "What the run's time went to; the keys left and right go from part to part");
  const rows = new Map(run.verdict.screen.where.map((row) => [row.name, row]));
  // Parts that would be thinner than a few pixels are only a colored noise.
  const thinnestPart = 0.005;
  for (const share of shares) {
    const part = share.ns / all;
    if (part < thinnestPart && !rows.has(share.title)) continue;
    const row = rows.get(share.title);
    const fill = share.name ? operationBackground(share.name) : cssColour(pathColours[share.what]);
    const text = row ? rowText(row) : share.title + " " + percent(part);
    const piece = element("button", !fits(share.title, part * (window.innerWidth - 80)) ? undefined : share.name ? operationText(share.name, share.title) : share.title);
    piece.type = "button";
    piece.style.width = 100 * part + "%";
    piece.style.background = fill;
    if (!share.name) piece.style.color = textOn(fill);
    piece.title = text;
    piece.setAttribute("aria-label", text);
    piece.tabIndex = bar.children.length ? -1 : 0;
    piece.addEventListener("click", () => goTo(run, share.target));
    bar.append(piece);
    if (row) {
      const entry = element("li");
      const box = element("i");
      box.style.background = fill;
      entry.append(box, targetLink(run, text, share.target));
      list.append(entry);
      rows.delete(share.title);
    }
  }
  for (const row of rows.values()) list.append(element("li", rowText(row)));  // the rest, such as "3 other parts, each smaller"
  listenToBar(bar);
  return [partHead("Where the run's time went (critical path; press a part to see it)"), bar, list];
}

/** Draws the suggested changes, each with the run time now and the predicted one, as `lotus-tool diagnose` prints them. */
function adviceList(run, screen) {
  const parts = [];
  if (screen.advice.length) {
    const table = simpleTable("Changes to try", [["change to try", "Each row is one change, simulated alone; those that certainly gain come first"],
      ["predicted run time", "The length of the recorded run, and the predicted length with the change"],
      ["90 % interval", "The predicted run time lies within these limits in 9 of 10 cases"]],
      screen.advice.map((a) => [targetLink(run, a.change, a.target), unbroken(a.now) + " → " + unbroken(a.then), unbroken(a.low) + " to " + unbroken(a.high)]));
    table.className = "advice";
    parts.push(table);
  }
  if (screen.not_worth.length) parts.push(element("p", "Not worth trying: " + screen.not_worth.join(", ") + ".", "note"));
  return parts;
}

/** Returns a text about how complete the records are. */
function qualityText(run) {
  const q = run.quality;
  const known = [[run.facts.operations, "operations"], [run.batch_count, "batches"]];
  const bad = [[q.malformed, "malformed lines ignored"], [q.dropped, "records dropped"],
    [q.recovered, "recovered from a killed process"], [q.aggregated, "calls only counted"]];
  const shown = bad.filter(([n]) => n > 0).map(([n, what]) => grouped(n) + " " + what);
  return "Recorded: " + known.map(([n, what]) => grouped(n) + " " + what).join(", ") + "; " +
    (shown.length ? shown.join(", ") : "no malformed lines, no dropped records") + ".";
}

/** Returns the first of the run's command lines, and how many other command lines its processes have. */
function commandText(run) {
  const [first, ...others] = run.facts.commands;
  return others.length ? first + " and " + others.length + " others" : first;
}

function factsList(run) {
  const facts = element("dl", undefined, "facts");
  const fact = (name, value) => {
    if (value === undefined || value === null || value === "" || value === 0) return;
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value instanceof Node ? value : String(value)));
    facts.append(pair);
  };
  const f = run.facts;
  fact("started", f.started);
  // If there is a first screen, its title already contains the length of the run and the number of CPUs.
  const screen = run.verdict && run.verdict.screen;
  if (!screen) fact("recorded", f.length_ns === undefined ? "" : humanTime(f.length_ns));
  fact("host", f.hosts.length > 3 ? f.hosts.length + " hosts" : f.hosts.join(", "));
  fact("ranks", f.ranks);
  fact("processes", f.processes);
  fact("threads", f.threads);
  if (!screen) fact("CPUs", f.cpus);
  if (!screen) fact("batches", run.batch_count);
  if (run.verdict && run.batch_count) {
    fact("waiting", targetLink(run, percent(run.verdict.wait_share), { kind: "batches" }));
    if (run.verdict.head_of_line_share > 0) fact("waiting while a later batch was ready", percent(run.verdict.head_of_line_share));
  }
  fact("command", commandText(run));
  fact("folder", run.dir);
  return facts;
}

function verdictBox(run) {
  const box = element("article", undefined, "verdict");
  if (report.runs.length > 1) box.append(element("h2", run.name, "run"));
  const screen = run.verdict ? run.verdict.screen : undefined;
  if (screen) box.append(element("p", screen.title, "title"));
  const sentence = element(report.runs.length > 1 ? "p" : "h1", screen ? screen.headline : run.no_verdict, "sentence");
  sentence.setAttribute("elementtiming", "verdict");
  box.append(sentence);
  if (screen && screen.why) box.append(element("p", screen.why));
  const device = run.verdict ? run.verdict.accelerator : undefined;
  if (device) box.append(element("p", "Accelerator: " + device.headline + ". " + device.advice));
  for (const text of run.verdict ? run.verdict.warnings : []) box.append(element("p", "▲ Warning: " + text, "check"));
  for (const check of run.checks) {
    box.append(element("p", (check.unsafe ? "✖ " : "▲ ") + check.id + ": " + check.text, check.unsafe ? "check unsafe" : "check"));
  }
  if (run.deleted) box.append(element("p", "▲ " + run.deleted, "check"));
  if (screen) {
    box.append(...adviceList(run, screen), ...pathBar(run));
    if (screen.slowest) box.append(element("p", targetLink(run, screen.slowest, screen.slowest_target), "slowest"));
  }
  const more = element("details");
  const rates = screen ? rateTable(run) : undefined;
  more.append(element("summary", rates ? "The run, rates and capacities" : "The run"), factsList(run), ...(rates ? [rates] : []));
  box.append(more, element("p", qualityText(run), "note"));
  return box;
}

/** Returns the runs that are compared, one pair for each loader: {loader, before, after, conclusion}, the loader with
 * the most batches first. */
function comparedPairs() {
  if (!report.comparison) return [];
  return report.comparison.conclusions.map((conclusion) => {
    const loader = conclusion.loader || "";
    const [before, after] = report.runs.filter((run) => (run.loader || "") === loader);
    return { loader, before, after, conclusion };
  }).filter((pair) => pair.after).sort((a, b) => b.before.batch_count - a.before.batch_count);
}

/** Returns the conclusion that `lotus-tool compare` draws about a loader of two runs. */
function comparisonSentence({ conclusion }, withThroughput) {
  const { sentence, throughput, unlike } = conclusion;
  const parts = [sentence, withThroughput ? throughput : "", ...unlike.map((text) => "unlike: " + text)].filter((text) => text);
  return parts.map((text) => text[0].toUpperCase() + text.slice(1).replace(/\.*$/, ".")).join(" ");
}

/** Shows what a comparison is about first: how many times as fast the second run is.
 * @param {(pair: any) => any} predictedFor returns what was predicted for it from the first run alone, if anything */
function showResult(predictedFor = () => undefined) {
  const pairs = comparedPairs();
  byId("compare-sentence").hidden = !pairs.length;
  byId("compare-sentence").replaceChildren(...pairs.flatMap((pair, i) => {
    const [before, after] = [pair.before, pair.after].map((run) => run.verdict ? run.verdict.achieved_batches_per_s : undefined);
    const known = before && after;
    const predicted = predictedFor(pair);
    const result = !known ? comparisonSentence(pair, true) : threeDigits(after / before) + " times as fast: " + threeDigits(before) + " → " + batchesPerSecond(after) +
      (predicted ? " (predicted from the first run alone for " + predicted.at + ": " + threeDigits(predicted.per_s / before) + " times, " + threeDigits(predicted.per_s) + " batches/s)" : "");
    return [element(i ? "h2" : "h1", (pairs.length > 1 ? (pair.loader || "default loader") + ": " : "") + result),
      ...(known ? [element("p", comparisonSentence(pair, false))] : [])];
  }));
}

const mostCards = 2;  // if there are more runs, they are rows of a table, and their cards are folded

/** Draws a table with one row for each run, which the user can sort. */
function runTable() {
  const table = element("table");
  table.append(element("caption", "All runs", "unseen"));
  const v = (run) => run.verdict || {};
  const advice = (run) => v(run).screen && v(run).screen.advice.length ? v(run).screen.advice[0].change : "–";
  new SortedTable(table, ["run", "The folder of the run; press it to see its timeline"], [
    textColumn("verdict", "What limits the run", (run) => v(run).verdict || "none", (run) => -report.runs.findIndex((of) => v(of).verdict === v(run).verdict)),
    column("took", "The length of the recording", (run) => humanTime(run.facts.length_ns), (run) => run.facts.length_ns),
    column("batches/s", "The measured throughput, over the whole run",
      (run) => v(run).achieved_batches_per_s ? threeDigits(v(run).achieved_batches_per_s) : "–", (run) => v(run).achieved_batches_per_s),
    shareColumnOf("waiting", "The share of the consumer's time in which it waited for data", (run) => v(run).wait_share),
    column("workers", "How many workers worked at once", (run) => v(run).workers || "–", (run) => v(run).workers),
    column("CPUs", "How many CPUs the run could use", (run) => run.facts.cpus || "–", (run) => run.facts.cpus),
    textColumn("change to try", "The first of the suggested changes", advice)],
  (run) => linkTo(run.name, () => goTo(run, { kind: "run" })), (all) => all.runs, [report]);
  const box = element("div", undefined, "scroll panel");
  box.append(table);
  return box;
}

function foldedCard(run) {
  const card = element("details", element("summary", run.name));
  card.append(verdictBox(run));
  return card;
}

/** Returns a card with the result for a program without markers, whose threads were sampled from outside. */
function threadsCard(of) {
  const box = element("article", undefined, "verdict");
  box.append(element("p", of.name + ": threads", "title"));
  const sentence = element(report.runs.length + report.threads.length > 1 ? "p" : "h1", of.headline ? withCode(of.headline + ".") : "Too little was seen to say what the threads do.", "sentence");
  sentence.setAttribute("elementtiming", "verdict");
  box.append(sentence);
  if (of.markers.length) {
    box.append(element("p", "For times per batch, include " + of.markers[0].header + " and add these lines" + (of.markers[0].sure ? "" : ", of which the places are a guess") +
      "; i is the batch's number. If a line contains the head of a loop, first put the call on a line of its own in the loop's body."));
    const list = element("ul");
    for (const { file, line, place, text } of of.markers) {
      const item = element("li", file + ":" + line + " " + place + ": ");
      item.append(element("code", text));
      list.append(item);
    }
    box.append(list);
  }
  return box;
}

function showVerdicts() {
  const place = byId("verdicts");
  const cards = report.runs.length > mostCards ? [element(report.comparison ? "h2" : "h1", report.runs.length + " runs"), runTable(), ...report.runs.map(foldedCard)] : report.runs.map(verdictBox);
  // Samples of a program that also has markers are not shown, because its verdict says more than they do.
  const sampledOnly = report.threads.filter((of) => !report.runs.some((run) => run.dir === of.dir || run.dir.startsWith(of.dir.replace(/\/*$/, "/"))));
  place.replaceChildren(...cards, ...sampledOnly.map(threadsCard));
  document.querySelector(".first").classList.toggle("several", report.runs.length > 1);
  document.querySelector(".first").classList.toggle("two", report.runs.length === 2 && !sampledOnly.length);
  showResult();
  const names = [...report.runs, ...sampledOnly].map((run) => run.name);
  const title = names.length > 3 ? names.length + " runs" : names.join(" and ");
  byId("title").textContent = title;
  document.title = title + " – Lotus report";
  byId("about").textContent = "lotus-tool " + report.version + ": " + report.command;
}

showVerdicts();
