#include "findings/diagnosis_text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "findings/check.hpp"
#include "findings/diagnosis.hpp"
#include "findings/gains.hpp"
#include "findings/screen/first_screen.hpp"
#include "findings/verdict.hpp"
#include "model/path/critical_path.hpp"
#include "replay/change_text.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t rows_in_json = 6;

void write_interval(json_writer& to, std::string_view key,
                    const std::optional<rate_interval>& interval) {
  if (!interval) return;
  to.key(key).begin_array().value(interval->low).value(interval->high).end_array();
}

/// Returns the name of the limiting stage, of the limiting lock, or of the operation with the
/// largest gain.
std::string bound_name(const diagnosis& d) {
  if (d.is == verdict::stage_bound) return d.stage;
  if (d.lock) return d.lock->of.what;
  return d.is == verdict::preprocessing_bound && !d.path_gains.empty()
             ? d.path_gains.front().path.name
             : std::string();
}

void write_bound(json_writer& to, const diagnosis& d) {
  to.key("bound_by");
  if (d.is == verdict::balanced) {
    to.value(nullptr);
    return;
  }
  to.begin_object().member("kind", row_of(*d.is).kind);
  const std::string name = bound_name(d);
  if (!name.empty()) to.member("name", name);
  to.end_object();
}

void write_gains(json_writer& to, const diagnosis& d) {
  to.key("gains").begin_array();
  for (const bound_gain& g : d.gains) {
    to.begin_object().member("bound", verdict_name(g.bound));
    if (!g.stage.empty()) to.member("stage", g.stage);
    to.member("gain", g.gain).end_object();
  }
  to.end_array();
}

void write_texts(json_writer& to, std::string_view key, const std::vector<std::string>& texts) {
  to.key(key).begin_array();
  for (const std::string& text : texts) to.value(text);
  to.end_array();
}

void write_suggestions(json_writer& to, std::string_view key,
                       const std::vector<suggestion>& suggestions) {
  to.key(key).begin_array();
  for (const suggestion& m : suggestions) {
    to.begin_object().member("text", m.text).key("change");
    write_value(to, m.change);
    to.member("batches_per_s", m.would_be.per_s).member("low", m.would_be.low);
    to.member("high", m.would_be.high).member("gain", m.would_be.gain).end_object();
  }
  to.end_array();
}

void write_path(json_writer& to, const critical_path& path) {
  to.member("run_ns", path.run_ns).key("critical_path").begin_array();
  for (const path_share& share : path.shares) {
    to.begin_object().member("what", path_kind_name(share.kind));
    if (!share.name.empty()) to.member("name", share.name);
    to.member("title", printable_line(path_title(share.kind, share.name))).member("ns", share.ns);
    if (share.cpu) {
      to.member("cpu_ns", share.cpu->cpu_ns).member("run_queue_ns", share.cpu->run_queue_ns);
      to.member("blocked_ns", share.cpu->blocked_ns);
    }
    to.key("target");
    write_target(to, target_of(share));
    to.end_object();
  }
  to.end_array();
}

}  // namespace

std::string rate(std::optional<double> per_second) {
  return per_second ? three_digits(*per_second) + " batches/s" : "unknown";
}

std::string rate(std::optional<double> per_second, const std::optional<rate_interval>& interval) {
  if (!interval) return rate(per_second);
  const std::string low = three_digits(interval->low);
  return (low == three_digits(interval->high) ? "" : low + " to ") + rate(interval->high);
}

std::string stage_evidence(const diagnosis& d) {
  const auto own = std::find_if(d.stages.begin(), d.stages.end(),
                                [&d](const stage_capacity& s) { return s.name == d.stage; });
  if (own == d.stages.end()) return "making this stage faster shortens the run most";
  const std::string busy = std::to_string(std::lround(100 * own->busy)) + " % of ";
  if (own->shared)
    return printable_line(own->name) + " takes " + busy +
           "the time of the threads that several stages share";
  const std::string threads =
      own->threads == 1 ? "the thread of this stage"
                        : "the " + std::to_string(own->threads) + " threads of this stage";
  std::optional<double> next_per_s = d.pushed ? std::nullopt : d.consumer_capacity;
  std::string next = "the consumer";
  for (const stage_capacity& s : d.stages) {
    if (s.name == own->name || !s.per_s || (next_per_s && *next_per_s <= *s.per_s)) continue;
    next_per_s = s.per_s;
    next = s.name == "preprocess" ? "the workers" : "stage " + printable_line(s.name);
  }
  if (!own->per_s || !next_per_s || *next_per_s <= *own->per_s) {
    return threads + (own->threads == 1 ? " works " : " work ") + busy + "the time";
  }
  return threads + " can process " + rate(own->per_s) + ". The next limit, of " + next + ", is " +
         rate(next_per_s);
}

std::string next_limit_text(const diagnosis& d, const suggestion& m, bool of_several) {
  constexpr double nearly = 0.9;
  const bool faster_consumer = m.change.step < 1;
  const std::optional<double> most_per_s =
      faster_consumer ? d.preprocessing_capacity : d.consumer_capacity;
  const bool faster_work = faster_consumer || m.change.faster.size() == 1;
  if (!faster_work || d.pushed || !most_per_s || m.would_be.gain > 1.9 ||
      m.would_be.per_s < nearly * *most_per_s || m.would_be.per_s > *most_per_s / nearly) {
    return {};
  }
  const std::string next = !faster_consumer          ? "the consumer"
                           : d.slowest_stage.empty() ? "the workers"
                                                     : "stage " + printable_line(d.slowest_stage);
  return (of_several ? "With the first change, " : "With this change, ") + next +
         " would be the bottleneck, at " + rate(most_per_s) + '.';
}

std::string diagnosis_json(const diagnosis& d) {
  std::string text;
  json_writer to(text);
  to.begin_object().member("dir", d.dir);
  if (!d.loader.empty()) to.member("loader", d.loader);
  to.key("verdict");
  if (d.is) {
    to.value(verdict_name(*d.is));
  } else {
    to.value(nullptr).member("why", d.why_silent);
  }
  if (!d.stage.empty()) to.member("stage", d.stage);
  if (d.is) write_bound(to, d);
  const first_screen screen = first_screen_of(d, rows_in_json);
  std::string sentence = screen.headline + (screen.why.empty() ? "" : ' ' + screen.why);
  if (d.is && !d.suggestions.empty()) sentence += " First: " + d.suggestions.front().text + '.';
  to.member("sentence", sentence).key("screen");
  write_first_screen(to, screen);
  to.key("checks");
  write_value(to, d.checks);
  to.member("achieved_batches_per_s", d.achieved).member("steady_batches_per_s", d.steady);
  to.member("wait_share", d.wait_share).member("head_of_line_share", d.head_of_line_share);
  to.member("preprocessing_capacity", d.preprocessing_capacity);
  write_interval(to, "preprocessing_capacity_interval", d.preprocessing_interval);
  to.member("consumer_capacity", d.consumer_capacity);
  write_interval(to, "consumer_capacity_interval", d.consumer_interval);
  to.member("workers", d.workers).member("batches", d.batches);
  if (d.cpu_ns) {
    to.member("cpu_ns", *d.cpu_ns).member("unmarked_cpu_share", d.unrecorded_cpu);
  }
  if (d.others_cpus) to.member("other_programs_cpus", *d.others_cpus);
  to.member("discarded", d.discarded);
  to.member("samples_per_batch", d.samples_per_batch);
  to.member("limited_by_cpus", d.limited_by_cpus);
  write_gains(to, d);
  write_suggestions(to, "moves", d.suggestions);
  write_suggestions(to, "possible", d.possible);
  write_texts(to, "assumptions", d.assumptions);
  write_texts(to, "warnings", d.warnings);
  if (!d.limit.empty()) to.member("limit", d.limit);
  if (!d.blocked_on.empty()) {
    to.key("blocked_on");
    write_value(to, d.blocked_on);
  }
  if (!d.accelerator_json.empty()) to.key("accelerator").raw(d.accelerator_json);
  write_path(to, d.path);
  to.key("ops").begin_array();
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    to.begin_object().member("name", d.ops[i].name).member("share", d.ops[i].share);
    to.member("at_most_faster", i < d.gains_without_ops.size()
                                    ? std::optional(d.gains_without_ops[i])
                                    : std::nullopt);
    to.end_object();
  }
  to.end_array();
  if (!d.aggregated.empty()) {
    to.key("aggregated").begin_array();
    for (const figures& of : d.aggregated) {
      to.begin_object().member("name", of.name);
      write_figures(to, of, op_json);
      to.end_object();
    }
    to.end_array();
  }
  to.key("slow_samples").begin_array();
  for (const slow_sample& s : d.slow_samples) {
    to.begin_object().member("name", s.name).member("duration_ns", s.duration_ns);
    to.member("median_ns", s.median_ns).member("epoch", s.epoch).member("index", s.batch);
    to.member("worker", s.worker).end_object();
  }
  to.end_array().key("slow_workers").begin_array();
  for (const slow_worker& w : d.slow_workers) {
    to.begin_object().member("worker", w.worker).member("mean_ns", w.mean_ns);
    to.member("slower_than_median", w.slower_than).end_object();
  }
  to.end_array();
  if (d.records.dropped > 0) {
    to.member("dropped", d.records.dropped).member("recorded", d.records.all());
  }
  if (d.records.whole_from_ns != 0) {
    to.member("deleted_bytes", d.records.deleted_bytes);
    to.member("whole_from_ns", d.records.whole_from_ns);
  }
  to.end_object();
  return text;
}

}  // namespace lotus::tool
