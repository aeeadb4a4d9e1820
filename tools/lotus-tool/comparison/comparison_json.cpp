#include "comparison/comparison_json.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "comparison/comparison.hpp"
#include "comparison/conclusion.hpp"

namespace lotus::tool {
namespace {

/// Writes one folder as a string, and several as an array.
void write_dirs(json_writer& to, const char* key, const std::vector<std::string>& dirs) {
  if (dirs.size() == 1) {
    to.member(key, dirs.front());
    return;
  }
  to.key(key).begin_array();
  for (const std::string& dir : dirs) to.value(dir);
  to.end_array();
}

void write_conclusions(json_writer& to, const comparison& found) {
  to.newline().key("conclusions").begin_array();
  for (const compared_loader& l : found.loaders) {
    to.newline().begin_object();
    if (!l.loader.empty()) to.member("loader", l.loader);
    to.member("sentence", conclusion_of(l)).key("because").begin_array();
    for (const cause& c : l.causes) {
      to.begin_object().member("name", c.name).member("ns_a_batch", c.ns_a_batch);
      to.member("share", c.share).end_object();
    }
    to.end_array().member("runs_before", l.runs_before).member("runs_after", l.runs_after);
    to.member("throughput", throughput_of(l));
    to.member("batches_per_s_before", l.batches_per_s.before);
    to.member("batches_per_s_after", l.batches_per_s.after);
    if (l.rate_change) {
      to.member("batches_per_s_change", l.rate_change->value);
      to.member("batches_per_s_low", l.rate_change->low);
      to.member("batches_per_s_high", l.rate_change->high);
    }
    if (l.rate_p) to.member("batches_per_s_p", *l.rate_p);
    to.key("unlike").begin_array();
    for (const std::string& text : unlike_of(l, found)) to.value(text);
    to.end_array().end_object();
  }
  to.end_array().newline();
}

}  // namespace

void write_comparison(const compared_sides& sides, const comparison& found, json_writer& to) {
  const auto of_loader = [&to](const compared_loader& l) {
    if (!l.loader.empty()) to.member("loader", l.loader);
  };
  to.begin_object();
  write_dirs(to, "before", sides.before);
  write_dirs(to, "after", sides.after);
  write_conclusions(to, found);
  to.key("rows").begin_array();
  for (const compared_loader& l : found.loaders) {
    for (const compared_times& r : l.rows) {
      const auto side = [&to](std::size_t count, std::optional<double> mean_ns,
                              std::optional<double> mean_cpu_ns) {
        to.begin_object().member("count", count).member("mean_ns", mean_ns);
        if (mean_cpu_ns) to.member("mean_cpu_ns", *mean_cpu_ns);
        to.end_object();
      };
      to.newline().begin_object().member("kind", r.kind).member("name", r.name);
      to.member("title", title_of(r));
      of_loader(l);
      to.key("before");
      side(r.count_before, r.mean_ns.before, r.mean_cpu_ns.before);
      to.key("after");
      side(r.count_after, r.mean_ns.after, r.mean_cpu_ns.after);
      to.member("change", r.grown_by());
      to.member("low", r.likely ? std::optional<double>(r.likely->low) : std::nullopt);
      to.member("high", r.likely ? std::optional<double>(r.likely->high) : std::nullopt);
      if (r.p) to.member("p", *r.p);
      if (r.mean_cpu_ns.common()) to.member("cpu_change", r.mean_cpu_ns.grown_by());
      to.end_object();
    }
  }
  to.newline().end_array();
  const auto staged = [](const compared_loader& l) { return !l.stages.empty(); };
  if (std::any_of(found.loaders.begin(), found.loaders.end(), staged)) {
    to.key("stages").begin_array();
    for (const compared_loader& l : found.loaders) {
      for (const compared_stage& s : l.stages) {
        const auto side = [&to](std::optional<double> service_ns, std::optional<double> capacity) {
          to.begin_object().member("mean_service_ns", service_ns);
          to.member("capacity_per_s", capacity).end_object();
        };
        to.newline().begin_object().member("name", s.name);
        of_loader(l);
        to.key("before");
        side(s.service_ns.before, s.capacity_per_s.before);
        to.key("after");
        side(s.service_ns.after, s.capacity_per_s.after);
        to.member("service_change", s.service_ns.grown_by());
        to.member("capacity_change", s.capacity_per_s.grown_by()).end_object();
      }
    }
    to.newline().end_array();
  }
  to.key("slower").begin_array();
  for (const compared_loader& l : found.loaders) {
    for (const compared_times& r : l.rows) {
      if (!sides.fail_above || !r.is_slower(*sides.fail_above)) continue;
      to.value(l.loader.empty() ? r.name : r.name + " (loader " + l.loader + ')');
    }
  }
  to.end_array();
  const record_counts& before = found.records_before;
  const record_counts& after = found.records_after;
  if (before.dropped + after.dropped > 0) {
    to.member("dropped_before", before.dropped).member("recorded_before", before.all());
    to.member("dropped_after", after.dropped).member("recorded_after", after.all());
  }
  to.end_object();
}

}  // namespace lotus::tool
