#include "verdict/diagnosis_text.hpp"

#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "base/table.hpp"
#include "verdict/check.hpp"
#include "verdict/diagnosis.hpp"

namespace lotus::tool {
namespace {

std::string workers_text(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " worker" : " workers");
}

std::string_view because_text(unsteadiness because) {
  switch (because) {
    case unsteadiness::start_up:
      return "start-up: most of it is for the first batches of an epoch";
    case unsteadiness::stragglers:
      return "stragglers: most of it is for batches that took over twice the median";
    case unsteadiness::variance:
      return "variance: preprocess times differ and too little is prefetched to even them out";
    case unsteadiness::consumer:
      return "the consumer varies: its steps differ more than preprocess times, and too little is "
             "prefetched behind a long one";
    case unsteadiness::none:
      break;
  }
  return "";
}

std::string_view because_name(unsteadiness because) {
  switch (because) {
    case unsteadiness::start_up:
      return "start-up";
    case unsteadiness::stragglers:
      return "stragglers";
    case unsteadiness::variance:
      return "variance";
    case unsteadiness::consumer:
      return "consumer";
    case unsteadiness::none:
      break;
  }
  return "";
}

void write_interval(json_writer& to, std::string_view key,
                    const std::optional<rate_interval>& interval) {
  if (!interval) return;
  to.key(key).begin_array().value(interval->low).value(interval->high).end_array();
}

}  // namespace

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "any number of";
  std::ostringstream text;
  text << std::setprecision(3) << (value >= 1000 ? std::round(value) : value);
  return value >= 1000 ? std::to_string(std::llround(value)) : text.str();
}

std::string rate(std::optional<double> per_second) {
  return per_second ? three_digits(*per_second) + " batches/s" : "unknown";
}

std::string rate(std::optional<double> per_second, const std::optional<rate_interval>& interval) {
  if (!interval) return rate(per_second);
  return three_digits(interval->low) + " to " + rate(interval->high);
}

std::string verdict_sentence(const diagnosis& d) {
  if (!d.is) return "no verdict: " + d.why_silent + '.';
  const std::string waits = "the consumer waits " + human_share(d.wait_share) + " of its time";
  const std::string could_take =
      " where the consumer could take " + rate(d.consumer_capacity, d.consumer_interval) + ".";
  std::string text(verdict_name(*d.is));
  switch (*d.is) {
    case verdict::consumer_bound:
      return text + ": " + waits +
             (d.has("oversubscribed")
                  ? "; but threads wait for CPUs, so less preprocessing may shorten its steps."
                  : ", so faster preprocessing would gain next to nothing.");
    case verdict::preprocessing_bound:
      return text + ": " + waits + ", because " + workers_text(d.workers) + " can make " +
             rate(d.preprocessing_capacity, d.preprocessing_interval) + could_take;
    case verdict::stage_bound:
      return text + ": " + waits + ", because stage " + d.stage + " can make " +
             rate(d.preprocessing_capacity) + could_take;
    case verdict::order_bound:
      return text + ": " + waits + ", and during " + human_share(d.head_of_line_share) +
             " of that a later batch lay ready but not the next one.";
    case verdict::unsteady:
      break;
  }
  return text + ": " + waits +
         (d.because == unsteadiness::start_up
              ? " ("
              : ", though the workers are fast enough on average (") +
         std::string(because_text(d.because)) + ").";
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
  if (d.because != unsteadiness::none) to.member("because", because_name(d.because));
  to.member("sentence", verdict_sentence(d)).key("checks");
  write_checks(to, d.checks);
  to.member("achieved_batches_per_s", d.achieved);
  to.member("wait_share", d.wait_share).member("head_of_line_share", d.head_of_line_share);
  to.member("preprocessing_capacity", d.preprocessing_capacity);
  write_interval(to, "preprocessing_capacity_interval", d.preprocessing_interval);
  to.member("consumer_capacity", d.consumer_capacity);
  write_interval(to, "consumer_capacity_interval", d.consumer_interval);
  to.member("workers", d.workers).member("batches", d.batches);
  to.member("samples_per_batch", d.samples_per_batch);
  to.key("ops").begin_array();
  for (const op_share& op : d.ops) {
    to.begin_object().member("name", op.name).member("share", op.share);
    to.member("at_most_faster", op.at_most_faster).end_object();
  }
  to.end_array().key("slow_samples").begin_array();
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
  to.end_object();
  return text;
}

}  // namespace lotus::tool
