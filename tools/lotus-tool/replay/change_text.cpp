#include "replay/change_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "describe/description.hpp"

namespace lotus::tool {
namespace {

std::string number(double value) {
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return text.str();
}

/// Returns whether a program that builds batches on demand has the threads that build ahead, so
/// that only the number of batches in flight has to change.
bool has_threads_to_build_ahead(const pipeline_change& c, const recorded_pipeline& p) {
  const std::size_t threads = p.stages.front().threads;
  return p.on_demand && threads > 1 && c.workers.value_or(1) <= threads;
}

std::vector<std::string> change_parts(const pipeline_change& c, const recorded_pipeline& p) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string part) { parts.push_back(std::move(part)); };
  const auto threads = [&](std::size_t wanted, const std::string& of, std::size_t before) {
    add(std::to_string(wanted) + of + " instead of " + std::to_string(before));
  };
  if (c.own_thread) {
    const std::size_t workers = c.workers.value_or(1);
    const std::string count = std::to_string(workers);
    add(has_threads_to_build_ahead(c, p)
            ? "batches built ahead, " + count + " in flight"
            : "batches built ahead by " + count + (workers == 1 ? " worker" : " workers"));
  } else if ((c.workers || c.prefetch) && p.thread_for_each) {
    threads(c.workers.value_or(p.workers()) * c.prefetch.value_or(p.prefetch()),
            " batches in flight", std::max(p.workers(), p.batches_in_flight()));
  } else if (c.workers) {
    threads(*c.workers, *c.workers == 1 ? " worker" : " workers", p.workers());
  }
  for (const auto& [name, wanted] : c.threads) {
    for (const recorded_stage& s : p.stages) {
      if (s.name != name) continue;
      threads(wanted, (wanted == 1 ? " thread in " : " threads in ") + name, s.threads);
    }
  }
  if (c.prefetch && !p.thread_for_each) {
    add(std::to_string(*c.prefetch) + (*c.prefetch == 1 ? " batch" : " batches") +
        " in flight per worker");
  }
  if (c.in_flight) {
    add(std::to_string(*c.in_flight) + " batches in flight" +
        (p.in_flight_held ? " instead of " + std::to_string(p.batches_in_flight()) : ""));
  }
  if (c.unordered)
    add(parts.empty() ? "receiving batches in any order" : "batches received in any order");
  for (const auto& [name, faster] : c.faster) {
    const bool is_stage = p.stages.size() > 1 && std::any_of(p.stages.begin(), p.stages.end(),
                                                             [n = &name](const recorded_stage& s) {
                                                               return s.name == *n;
                                                             });
    const std::string what = (is_stage ? "stage " : "") + name;
    if (!std::isfinite(faster)) {
      add("without " + what);
    } else {
      add(what + ' ' +
          (faster < 1 ? number(1 / faster) + "x slower" : number(faster) + "x faster"));
    }
  }
  if (c.ready_samples > 0) add("batches filled with samples that are ready");
  for (const std::string& name : c.offload) add(name + " offloaded");
  if (!c.cache.empty()) add("results of " + c.cache + " cached");
  if (c.cached_reads) add("reads from the page cache");
  if (!c.order.later.empty()) add(c.order.earlier + " before " + c.order.later);
  if (c.loader_cpus) {
    add("loader on " + std::to_string(*c.loader_cpus) + (*c.loader_cpus == 1 ? " CPU" : " CPUs"));
  }
  if (c.preprocessing_faster != 1)
    add("all preprocessing " + number(c.preprocessing_faster) + "x faster");
  if (c.step != 1) {
    add(c.step < 1 ? "consumer " + number(1 / c.step) + "x faster"
                   : "consumer " + number(c.step) + "x slower");
  }
  if (c.cpus) {
    add(number(*c.cpus) + (*c.cpus == 1 ? " CPU" : " CPUs") +
        (p.cpus ? " instead of " + number(*p.cpus) : std::string()));
  }
  if (c.no_start_up) add("no start-up time");
  if (c.batch_size != 1) add("batches " + number(c.batch_size) + " times as large");
  return parts;
}

}  // namespace

std::string change_text(const pipeline_change& change, const recorded_pipeline& pipeline,
                        std::string_view before_last) {
  const std::vector<std::string> parts = change_parts(change, pipeline);
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 < parts.size() ? ", " : before_last;
    text += parts[i];
  }
  return text;
}

effort effort_of(const pipeline_change& change) {
  if (change.cpus || change.cached_reads || !change.offload.empty()) return effort::hardware;
  const bool code = change.own_thread || change.ready_samples > 0 || !change.faster.empty() ||
                    !change.cache.empty() || !change.order.later.empty() || change.step != 1 ||
                    change.preprocessing_faster != 1 || change.no_start_up;
  return code ? effort::code : effort::setting;
}

const char* effort_name(effort of) {
  static constexpr const char* names[] = {"setting", "code", "hardware"};
  return names[static_cast<std::size_t>(of)];
}

const description<pipeline_change>& description_of(const pipeline_change*) {
  using c = const pipeline_change&;
  // Factors of 1 change nothing.
  const auto changed = [](double pipeline_change::*factor) {
    return [factor](c of) { return of.*factor != 1; };
  };
  static const description<pipeline_change> all(
      "change", "a change of the pipeline; only what is changed is present",
      {
          {"workers", &pipeline_change::workers, "number of workers", if_any},
          {"threads", &pipeline_change::threads, "number of threads by stage", if_any},
          {"prefetch", &pipeline_change::prefetch, "batches in flight per worker", if_any},
          {"in_flight", &pipeline_change::in_flight, "batches in flight of all workers together",
           if_any},
          {"unordered", &pipeline_change::unordered,
           "whether the consumer takes batches in any order", if_any},
          {"faster",
           [](c of) {
             std::map<std::string, std::optional<double>> all_faster;
             for (const auto& [name, faster] : of.faster) all_faster[name] = if_finite(faster);
             return all_faster;
           },
           "by operation or stage: how many times as fast; null: it takes no time", if_any},
          {"making_faster", &pipeline_change::preprocessing_faster,
           "all preprocessing is this many times as fast",
           changed(&pipeline_change::preprocessing_faster)},
          {"step", &pipeline_change::step, "the consumer's step takes this many times as long",
           changed(&pipeline_change::step)},
          {"cpus", &pipeline_change::cpus, "number of CPUs", if_any},
          {"no_start_up", &pipeline_change::no_start_up, "whether workers start at once", if_any},
          {"own_thread", &pipeline_change::own_thread,
           "whether a worker builds what the consumer's thread does now", if_any},
          {"ready_samples", [](c of) { return of.ready_samples > 0; },
           "whether batches are filled with samples in the order in which they are ready", if_any},
          {"offload", [](c of) { return std::vector(of.offload.begin(), of.offload.end()); },
           "operations and stages that are executed elsewhere", if_any},
          {"cache", &pipeline_change::cache,
           "operation whose results are kept after the first epoch", if_any},
          {"cached_reads", &pipeline_change::cached_reads,
           "whether all files are read from the page cache", if_any},
          {"order",
           [](c of) {
             return of.order.later.empty()
                        ? std::vector<std::string>()
                        : std::vector<std::string>{of.order.earlier, of.order.later};
           },
           "the operation that is moved, and the one before which it then runs", if_any},
          {"order_share", [](c of) { return of.order.share; },
           "share of the second operation's work that is left",
           [](c of) { return !of.order.later.empty(); }},
          {"loader_cpus", &pipeline_change::loader_cpus,
           "number of CPUs of the loader's threads; the consumer has another one", if_any},
          {"batch_size", &pipeline_change::batch_size, "batches are this many times as large",
           changed(&pipeline_change::batch_size)},
      });
  return all;
}

}  // namespace lotus::tool
