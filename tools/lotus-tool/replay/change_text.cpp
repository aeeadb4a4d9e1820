#include "replay/change_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>

#include "base/formats/json_writer.hpp"
#include "replay/change.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {
namespace {

std::string number(double value) {
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return text.str();
}

}  // namespace

std::string change_text(const pipeline_change& c, const recorded_pipeline& p) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  const auto threads = [&](std::size_t wanted, const std::string& of, std::size_t before) {
    add(std::to_string(wanted) + of + " instead of " + std::to_string(before));
  };
  if (c.own_thread) {
    const std::size_t workers = c.workers.value_or(1);
    add("batches built ahead by " + std::to_string(workers) +
        (workers == 1 ? " worker" : " workers"));
  } else if (c.workers) {
    threads(*c.workers, *c.workers == 1 ? " worker" : " workers", p.workers());
  }
  for (const auto& [name, wanted] : c.threads) {
    for (const recorded_stage& s : p.stages) {
      if (s.name != name) continue;
      threads(wanted, (wanted == 1 ? " thread in " : " threads in ") + name, s.threads);
    }
  }
  if (c.prefetch) {
    add(std::to_string(*c.prefetch) + (*c.prefetch == 1 ? " batch" : " batches") +
        " in flight per worker");
  }
  if (c.in_flight) {
    add(std::to_string(*c.in_flight) + " batches in flight" +
        (p.in_flight_held ? " instead of " + std::to_string(p.batches_in_flight()) : ""));
  }
  if (c.unordered)
    add(text.empty() ? "receiving batches in any order" : "batches received in any order");
  for (const auto& [name, faster] : c.faster) {
    const bool is_stage = p.stages.size() > 1 && std::any_of(p.stages.begin(), p.stages.end(),
                                                             [n = &name](const recorded_stage& s) {
                                                               return s.name == *n;
                                                             });
    const std::string what = (is_stage ? "stage " : "") + name;
    add(std::isfinite(faster) ? what + ' ' + number(faster) + "x faster" : "without " + what);
  }
  if (c.preprocessing_faster != 1)
    add("all preprocessing " + number(c.preprocessing_faster) + "x faster");
  if (c.step != 1) {
    add(c.step < 1 ? "consumer " + number(1 / c.step) + "x faster"
                   : "consumer " + number(c.step) + "x slower");
  }
  if (c.cpus) {
    add(number(*c.cpus) + " CPUs" + (p.cpus ? " instead of " + number(*p.cpus) : std::string()));
  }
  if (c.no_start_up) add("no start-up time");
  if (c.batch_size != 1) add("batches " + number(c.batch_size) + " times as large");
  return text;
}

void write_change(json_writer& json, const pipeline_change& c) {
  json.begin_object();
  if (c.workers) json.member("workers", *c.workers);
  if (!c.threads.empty()) {
    json.key("threads").begin_object();
    for (const auto& [name, threads] : c.threads) json.member(name, threads);
    json.end_object();
  }
  if (c.prefetch) json.member("prefetch", *c.prefetch);
  if (c.in_flight) json.member("in_flight", *c.in_flight);
  if (c.unordered) json.member("unordered", true);
  if (!c.faster.empty()) {
    json.key("faster").begin_object();
    for (const auto& [name, faster] : c.faster) {
      json.member(name, std::isfinite(faster) ? std::optional(faster) : std::nullopt);
    }
    json.end_object();
  }
  if (c.preprocessing_faster != 1) json.member("making_faster", c.preprocessing_faster);
  if (c.step != 1) json.member("step", c.step);
  if (c.cpus) json.member("cpus", *c.cpus);
  if (c.no_start_up) json.member("no_start_up", true);
  if (c.own_thread) json.member("own_thread", true);
  if (c.batch_size != 1) json.member("batch_size", c.batch_size);
  json.end_object();
}

}  // namespace lotus::tool
