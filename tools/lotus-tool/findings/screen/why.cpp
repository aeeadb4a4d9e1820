#include "findings/screen/why.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "findings/claims.hpp"
#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/run_limits.hpp"
#include "findings/screen/first_screen.hpp"
#include "findings/verdict.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {
namespace {

/// A sentence for verdicts that may be wrong because the use of an accelerator is unknown.
constexpr const char* unknown_device =
    " To see how busy a GPU or accelerator was, run 'lotus-tool accelerator --help'.";

/// Whether much of the run passes between epochs, so that it is in no step.
bool has_pauses(const diagnosis& d) {
  return std::any_of(d.findings.begin(), d.findings.end(),
                     [](const finding& one) { return one.id == "pauses-between-epochs"; });
}

/// Returns the sentences of a finding in a form in which they can be printed alone.
phrase told(const finding& one) {
  phrase text = one.because;
  if (!text.empty() && text.pattern[0] >= 'a' && text.pattern[0] <= 'z') {
    text.pattern[0] = static_cast<char>(text.pattern[0] - 'a' + 'A');
  }
  return one.to_do.empty() ? text : text.add(" ").add(one.to_do);
}

/// Returns the reason for the verdict stage_bound: how much the threads of the stage can process or
/// how busy they are, and which part of the pipeline would be the next bottleneck.
phrase stage_evidence(const diagnosis& d) {
  const auto own = std::find_if(d.stages.begin(), d.stages.end(),
                                [&d](const stage_figures& s) { return s.name == d.stage; });
  if (own == d.stages.end()) return {"making this stage faster shortens the run most"};
  if (own->pool) {
    return {"% takes % of the time of the threads that several stages share",
            {name_word{own->name}, share_word{own->shares.busy}}};
  }
  std::optional<double> next_per_s = d.pushed ? std::nullopt : d.consumer_capacity;
  std::string next = "the consumer";
  for (const stage_figures& s : d.stages) {
    if (s.name == own->name || !s.batches_per_s || (next_per_s && *next_per_s <= *s.batches_per_s))
      continue;
    next_per_s = s.batches_per_s;
    next = s.name == "preprocess" ? "the workers" : "stage " + s.name;
  }
  phrase text = own->slots == 1 ? phrase{"the thread of this stage "}
                                : phrase{"the % threads of this stage ", {count_word{own->slots}}};
  if (!own->batches_per_s || !next_per_s || *next_per_s <= *own->batches_per_s) {
    return text.add(own->slots == 1 ? "works % of the time" : "work % of the time",
                    {share_word{own->shares.busy}});
  }
  return text.add("can process %. The next limit, of %, is %",
                  {rate_word{own->batches_per_s}, name_word{next}, rate_word{next_per_s}});
}

/// Returns the reason, and what the largest part of the path waits for.
phrase with_wait(const diagnosis& d, phrase reason) {
  const phrase wait = largest_wait(d).text;
  return wait.empty() ? reason.add(".") : reason.add(". ").add(wait).add(".");
}

phrase path_words(const diagnosis& d) {
  return with_wait(
      d, {"the work on batches has % of the critical path", {share_word{work_on_batches(d.path)}}});
}

/// Returns how often each batch calls the operation that takes most of the critical path; empty if
/// that is hardly more than once.
phrase calls_of_largest(const diagnosis& d) {
  constexpr double mostly = 0.5;
  if (d.path.shares.empty()) return {};
  const path_share& most = d.path.shares.front();
  const auto run_ns = static_cast<double>(d.path.run_ns);
  if (most.kind != path_kind::operation || static_cast<double>(most.ns) < mostly * run_ns)
    return {};
  return many_calls(d, most.name);
}

phrase busy_workers(const diagnosis& d) {
  if (d.queued_longer_than_ran) return without_cpu_words(d);
  phrase wait = largest_wait(d).text;
  if (!wait.empty() && !d.thread_for_each) return wait.add(".");
  if (d.mean_preprocess_ns <= 0) return {};
  const double workers_ns = d.mean_preprocess_ns / static_cast<double>(d.workers);
  const bool is_less =
      workers_ns < d.mean_step_ns && d.consumer_capacity && workers_ns < 1e9 / *d.consumer_capacity;
  if (is_less) return path_words(d);
  phrase text{"the worker needs "};
  if (d.thread_for_each) {
    text = {"only % built at once, which takes ",
            {count_word{d.workers, "batch is", "batches are"}}};
  } else if (d.workers > 1) {
    text = {"% workers together need ", {count_word{d.workers}}};
  }
  text.add("% per batch", {time_word{workers_ns}});
  if (d.mean_step_ns < workers_ns) {
    if (d.mean_step_ns > 0) text.add(", the consumer only %", {time_word{d.mean_step_ns}});
  } else if (d.consumer_capacity && 1e9 / *d.consumer_capacity < workers_ns) {
    text.add(", the consumer only % and waits for a CPU", {time_word{1e9 / *d.consumer_capacity}});
  } else {
    text.add(", the consumer %", {time_word{d.mean_step_ns}});
  }
  constexpr double nearly_all = 0.92;
  const double used_cpus = d.cpu_ns && d.run_ns > 0 ? *d.cpu_ns / d.run_ns : 0;
  const double cpus = d.cpus.value_or(0);
  if (cpus > 0 && used_cpus >= nearly_all * cpus) {
    text.add(". The program uses % of %", {count_word{used_cpus}, count_word{cpus, "CPU", "CPUs"}});
  }
  if (!wait.empty()) return text.add(". ").add(wait).add(".");
  const phrase calls = calls_of_largest(d);
  if (!calls.empty()) {
    text.add(". % has ", {name_word{d.path.shares.front().name}}).add(calls);
  }
  return text.add(".");
}

/// Returns the evidence for the verdict.
phrase why(const diagnosis& d) {
  if (*d.is == verdict::preprocessing_bound && !d.predicted) {
    return path_words(d);
  }
  if (d.makes_itself && *d.is != verdict::consumer_bound) {
    return {d.on_demand ? "each batch is built only when the consumer asks for it. No batch is "
                          "built while the consumer works."
                        : "batches are built on the consumer's own thread. No batch is built "
                          "while the consumer works."};
  }
  const char* const ask = d.accelerators.empty() && !d.pushed ? unknown_device : "";
  switch (*d.is) {
    case verdict::preprocessing_bound:
      return d.limit.empty() ? busy_workers(d) : with_wait(d, d.limit);
    case verdict::stage_bound:
      return with_wait(d, d.limit_of_stage && !d.limit.empty() ? d.limit : stage_evidence(d));
    case verdict::lock_bound:
      return lock_words(*d.lock).add(". ").add(lock_advice(d.lock->of)).add(".");
    case verdict::consumer_bound:
      return phrase{has_pauses(d) ? "the consumer's own work (its steps) takes most of the epochs%."
                                  : "the consumer's own work (its steps) takes most of the run%.",
                    {name_word{d.makes_itself ? ", and no batch is built meanwhile" : ""}}}
          .add(claims(d).may_gain_from_building() ? "" : " Building batches faster would not help.")
          .add(ask);
    case verdict::order_bound:
      return {"during % of the waits, a later batch was ready, but not the next one.",
              {share_word{d.head_of_line_share}}};
    case verdict::prefetch_bound:
      return {"too few batches are in flight, so the threads that build them have to pause."};
    case verdict::start_up_bound:
      return {"% of the consumer's waits are for the first batches of an epoch.",
              {share_word{d.waits.all_ns > 0 ? d.waits.first_ns / d.waits.all_ns : 0}}};
    case verdict::hand_over_bound:
    case verdict::balanced:
      break;
  }
  return phrase{"making any one part 1.25 times as fast would gain less than 5 %%."}.add(ask);
}

}  // namespace

phrase why_and_findings(const diagnosis& d) {
  const finding* const first = d.is ? reason_of(d) : nullptr;
  phrase text;
  if (first == nullptr && d.is) {
    const phrase reason = why(d);
    if (!reason.empty()) text.add("Why: ").add(reason);
  } else if (first != nullptr) {
    text.add("Why: ").add(first->because);
    // The largest part of the path, which the evidence then names, may wait for something.
    const phrase wait = first->id == "being-built" ? largest_wait(d).text : phrase{};
    if (!wait.empty()) text.add(" ").add(wait).add(".");
    const bool ask = d.is == verdict::consumer_bound && d.accelerators.empty();
    if (!first->to_do.empty()) {
      text.add(" ").add(first->to_do);
    } else if (ask) {
      text.add(unknown_device);
    }
  }
  std::size_t more = 0;
  constexpr std::size_t most_more = 2;
  for (const finding& one : d.findings) {
    // What else limits the run is not said, except for a long start, which comes on top of it.
    const bool is_start = one.is == verdict::start_up_bound && one.share >= 0.2;
    const bool takes_cpus = one.has(explains_queues) && d.is == verdict::stage_bound;
    if (&one == first || (one.is && !takes_cpus && (!is_start || d.is == one.is))) continue;
    if (d.predicted && one.has(replaces_prediction)) continue;
    const bool builds = d.is == verdict::preprocessing_bound && !d.makes_itself;
    if (one.has(explains_building) && !builds) continue;
    if (more++ < most_more) text.add(text.empty() ? "" : " ").add(told(one));
  }
  return text;
}

phrase busy_why(const diagnosis& d) {
  phrase text{"The host alone looks %.", {name_word{std::string(verdict_name(*d.is))}}};
  if (d.wait_share >= 0.05) {
    text.add(" The consumer waited for data % of its time, but it had launched enough work before.",
             {share_word{d.wait_share}});
  }
  return text;
}

bool mostly_blocked(const diagnosis& d) {
  return states_of(d.path).blocked > 0.5;
}

std::vector<phrase> not_looked_at(const diagnosis& d) {
  std::vector<phrase> all;
  if (!d.is) return all;
  const bool fed = d.is == verdict::consumer_bound || d.is == verdict::balanced;
  if (fed && d.accelerators.empty()) all.push_back({"the accelerator (no trace)"});
  if (!fed && mostly_blocked(d) && d.blocked_on.processes.empty()) {
    all.push_back({"locks, disks and networks (no wait samples)"});
  }
  return all;
}

}  // namespace lotus::tool
