// The first screen: the verdict and its evidence, what to change, and how reliable this is.
"use strict";

/** A heading: below the name of a run if there are several runs, else below the page's title. */
function partHead(text) { return element(report.runs.length > 1 ? "h3" : "h2", text, "part"); }

/** The measured throughput and the capacity of each side, on one scale. */
function rateTable(run) {
  const v = run.verdict;
  const rows = [["measured", v.achieved_batches_per_s, undefined],
    [v.workers ? "workers could make" : "stages could make", v.preprocessing_capacity, v.preprocessing_capacity_interval],
    ["consumer could take", v.consumer_capacity, v.consumer_capacity_interval]]
    .filter(([, rate]) => rate !== null && rate !== undefined);
  if (!rows.length) return undefined;
  const most = Math.max(...rows.map(([, rate]) => rate));
  const table = simpleTable("Batches per second", ["", "rate", ""], rows.map(([name, rate, interval]) => {
    const bar = element("div", undefined, name === "measured" ? "rate-bar achieved" : "rate-bar");
    bar.style.width = Math.max(100 * rate / most, 0.5) + "%";
    return [name, interval ? threeDigits(interval[0]) + " to " + batchesPerSecond(interval[1]) : batchesPerSecond(rate), bar];
  }));
  table.className = "rates";
  return table;
}

const pathColours = { step: "step", "hand-over": "arrival", prefetch: "accent", "start-up": "quiet", unrecorded: "line" };

function pathName(share) { return share.name ? share.name : share.what === "step" ? "consumer's step" : share.what; }

/** The run's critical path as a bar and as a list. */
function pathBar(run) {
  const shares = (run.verdict.critical_path || []).filter((share) => share.ns > 0);
  const all = run.verdict.run_ns;
  if (!shares.length || !all) return [];
  const bar = element("div", undefined, "path");
  const list = element("ul", undefined, "legend");
  bar.setAttribute("role", "img");
  const told = [];
  for (const share of shares) {
    const part = share.ns / all;
    const fill = share.name ? operationBackground(share.name) : cssColour(pathColours[share.what]);
    const text = pathName(share) + " " + percent(part) + ", " + humanTime(share.ns) +
      (share.cpu_ns !== undefined && share.cpu_ns !== null ? ", on CPU " + humanTime(share.cpu_ns) : "");
    const piece = element("div", !fits(pathName(share), part * (window.innerWidth - 80)) ? undefined : share.name ? operationText(share.name) : pathName(share));
    piece.style.width = 100 * part + "%";
    piece.style.background = fill;
    if (!share.name) piece.style.color = textOn(fill);
    piece.title = text;
    bar.append(piece);
    if (told.length < 8) {
      told.push(text);
      const entry = element("li");
      const box = element("i");
      box.style.background = fill;
      entry.append(box, text);
      list.append(entry);
    }
  }
  bar.setAttribute("aria-label", "The run's " + humanTime(all) + ": " + told.join("; "));
  return [partHead("Where the run's time went (critical path)"), bar, list];
}

/** The run time now and with one change, as `lotus-tool diagnose` prints it. */
function adviceList(screen) {
  const parts = [];
  if (screen.advice.length) {
    const table = simpleTable("Try first", ["try first", "run time", "likely range"],
      screen.advice.map((a) => [a.change, a.now + " → " + a.then, a.low + " to " + a.high]));
    table.className = "advice";
    parts.push(table);
  }
  if (screen.not_worth.length) parts.push(element("p", "Not worth it: " + screen.not_worth.join(", ") + ".", "note"));
  return parts;
}

/** How much of what happened was recorded. */
function qualityText(run) {
  const q = run.quality;
  const known = [[run.facts.operations, "operations"], [run.batch_count, "batches"]];
  const bad = [[q.malformed, "malformed lines ignored"], [q.dropped, "records dropped"],
    [q.recovered, "recovered from a killed process"], [q.aggregated, "counted and not recorded"]];
  const told = bad.filter(([n]) => n > 0).map(([n, what]) => grouped(n) + " " + what);
  return "Recorded: " + known.map(([n, what]) => grouped(n) + " " + what).join(", ") + "; " +
    (told.length ? told.join(", ") : "nothing malformed, dropped, recovered or only counted") + ".";
}

/** How the run's processes were started. */
function commandText(run) {
  const [first, ...others] = run.facts.commands;
  return others.length ? first + " and " + others.length + " others" : first;
}

function factsList(run) {
  const facts = element("dl", undefined, "facts");
  const fact = (name, value) => {
    if (value === undefined || value === null || value === "" || value === 0) return;
    const pair = element("div");
    pair.append(element("dt", name), element("dd", String(value)));
    facts.append(pair);
  };
  const f = run.facts;
  fact("started", f.started);
  fact("recorded", f.length_ns === undefined ? "" : humanTime(f.length_ns));
  fact("host", f.hosts.length > 3 ? f.hosts.length + " hosts" : f.hosts.join(", "));
  fact("ranks", f.ranks);
  fact("processes", f.processes);
  fact("threads", f.threads);
  fact("CPUs", f.cpus);
  fact("batches", run.batch_count);
  if (run.verdict && run.batch_count) {
    fact("workers", run.verdict.workers);
    fact("waiting", percent(run.verdict.wait_share));
    if (run.verdict.head_of_line_share > 0) fact("while a later batch was ready", percent(run.verdict.head_of_line_share));
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
  box.append(element("p", screen ? screen.headline : run.no_verdict, "sentence"));
  if (screen && screen.why) box.append(element("p", screen.why));
  for (const text of run.verdict ? run.verdict.warnings : []) box.append(element("p", "▲ Warning: " + text, "check"));
  for (const check of run.checks) {
    box.append(element("p", (check.unsafe ? "✖ " : "▲ ") + check.id + ": " + check.text, check.unsafe ? "check unsafe" : "check"));
  }
  if (run.deleted) box.append(element("p", "▲ " + run.deleted, "check"));
  if (screen) {
    box.append(...adviceList(screen), ...pathBar(run));
    if (screen.slowest) box.append(element("p", screen.slowest));
    const rates = rateTable(run);
    if (rates) {
      const more = element("details");
      more.append(element("summary", "Rates and capacities"), rates);
      box.append(more);
    }
  }
  box.append(factsList(run), element("p", qualityText(run), "note"));
  return box;
}

/** The conclusion that `lotus-tool compare` draws from two runs. */
function comparisonSentence() {
  const { sentence, throughput, unlike } = report.comparison.conclusions[0];
  const told = [sentence, throughput, ...unlike.map((text) => "unlike: " + text)].filter((text) => text);
  return told.map((text) => text[0].toUpperCase() + text.slice(1) + ".").join(" ");
}

function showVerdicts() {
  const place = byId("verdicts");
  place.replaceChildren(...report.runs.map(verdictBox));
  byId("compare-sentence").hidden = !report.comparison;
  if (report.comparison) byId("compare-sentence").textContent = comparisonSentence();
  const names = report.runs.map((run) => run.name);
  const title = names.length > 3 ? names.length + " runs" : names.join(" and ");
  byId("title").textContent = title;
  document.title = title + " – Lotus report";
  byId("about").textContent = "lotus-tool " + report.version + ": " + report.command;
}

showVerdicts();
