#include "commands/whatif/resolved_change.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "curve/curve.hpp"
#include "log/shown_name.hpp"
#include "replay/recorded/calls_in_batches.hpp"
#include "replay/single_changes.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// The beginning and the end of a message, around an unknown name.
using unknown_name = std::pair<std::string, std::string>;

/// Returns the run's name for a name that the user typed, with or without the S that begins all
/// names in logs. Throws input_error if the name is unknown.
std::string known_name(const std::string& name, const std::vector<std::string>& known,
                       const unknown_name& fault) {
  for (const std::string& one : {name, std::string(shown_name(name))}) {
    if (std::find(known.begin(), known.end(), one) != known.end()) return one;
  }
  const std::string meant = printable_line(did_you_mean(name, known));
  throw input_error(fault.first + printable_line(name) + fault.second +
                    (meant.empty() ? "these are: " + joined(known, ", ", printable_line) : meant));
}

template <class Value>
std::map<std::string, Value> known_names(const std::map<std::string, Value>& given,
                                         const std::vector<std::string>& known,
                                         const unknown_name& fault) {
  std::map<std::string, Value> found;
  for (const auto& [name, value] : given) found[known_name(name, known, fault)] = value;
  return found;
}

/// Throws input_error if the user gave a number of threads for an operation, because operations
/// have no threads of their own. Also throws it if the user named a stage in a run without named
/// stages.
void check_not_operations(const std::map<std::string, std::size_t>& threads,
                          const recorded_pipeline& pipeline,
                          const std::vector<std::string>& known) {
  for (const auto& [given, count] : threads) {
    const std::string name = shown_name(given);
    const bool is_stage = std::any_of(
        pipeline.stages.begin(), pipeline.stages.end(),
        [&, g = &given](const recorded_stage& s) { return s.name == name || s.name == *g; });
    if (is_stage) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      throw input_error("--workers: " + printable_line(name) +
                        " is an operation and has no threads of its own");
    }
    if (pipeline.stages.size() == 1) {
      throw input_error("--workers: this run has no stage '" + printable_line(given) +
                        "', only workers; give their number, as in --workers " +
                        std::to_string(count));
    }
  }
}

bool has_items(const recorded_pipeline& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const recorded_stage& s) { return s.of_items; });
}

const unknown_name no_such_work{"no operation or stage '", "' is part of building a batch; "};

/// Finds what a cache of the results of pipeline_change::cache replaces.
void resolve_cache(pipeline_change& change, const recorded_pipeline& pipeline, const run_data& run,
                   const std::vector<std::string>& known, std::vector<phrase>& notes) {
  change.cache = known_name(change.cache, known, no_such_work);
  const calls_in_batches calls(run, change.cache);
  change.cached = calls.up_to();
  change.cached.insert(change.cache);
  // Stages before the one of the cached operation have no work either.
  const auto stages = stages_of_operations(pipeline, run.names);
  const auto of = stages.find(change.cache);
  const std::string& last = of == stages.end() ? change.cache : of->second;
  const bool is_stage = std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                                    [&](const recorded_stage& s) { return s.name == last; });
  for (std::size_t s = 0; is_stage && pipeline.stages[s].name != last; ++s) {
    change.cached.insert(pipeline.stages[s].name);
  }
  notes.push_back(
      {"results of % are the same in every epoch, and take no time to get from the cache",
       {name_word{change.cache}}});
  if (pipeline.epochs.size() < 2) {
    notes.push_back({"the run has one epoch: the prediction is for a later one"});
  }
  if (const std::optional<double> bytes = calls.result_bytes()) {
    const auto epochs = static_cast<double>(std::max<std::size_t>(1, pipeline.epochs.size()));
    notes.push_back(
        {"the cache needs % of RAM: what these operations had allocated and not freed in an epoch",
         {name_word{human_bytes(*bytes / epochs)}}});
  } else {
    notes.push_back({"the RAM for the cache is unknown: record with 'lotus-tool run --memory'"});
  }
}

/// Finds the share of the work of pipeline_change::order.later that is left.
void resolve_order(pipeline_change& change, const recorded_pipeline& pipeline, const run_data& run,
                   const std::vector<std::string>& known, std::vector<phrase>& notes) {
  moved_operation& order = change.order;
  order.earlier = known_name(order.earlier, known, no_such_work);
  order.later = known_name(order.later, known, no_such_work);
  const std::string moved = printable_line(order.earlier);
  if (order.share <= 0) {
    const calls_in_batches calls(run, order.earlier);
    if (calls.up_to().count(order.later) == 0) {
      throw input_error("--order: " + moved + " already runs before " +
                        printable_line(order.later));
    }
    order.share = calls.share_passed_on(pipeline.works.size());
    if (order.share >= 1) {
      throw input_error("--order: as many samples leave " + moved +
                        " as enter it; if it makes them "
                        "smaller, give the share of the work that is left, as in --order " +
                        moved + ',' + printable_line(order.later) + "=0.25");
    }
  }
  notes.push_back({"% then has % of its work; the results stay the same",
                   {name_word{order.later}, exact_share_word{order.share}}});
}

/// Finds how much of the blocked time of each operation is spent waiting for files.
void resolve_cached_reads(pipeline_change& change, const run_blocked_on& joined,
                          const std::vector<std::string>& known, std::vector<phrase>& notes) {
  constexpr std::uint64_t fewest_samples = 10;
  for (const std::string& name : known) {
    const blocked_list* const list = joined.of('S' + name);
    if (list == nullptr || list->samples < fewest_samples) continue;
    double of_files = 0;
    for (const blocked_on& by : list->by) {
      const bool is_file = by.reason == wait_reason::file || by.reason == wait_reason::page_fault;
      if (is_file) of_files += by.share;
    }
    if (of_files > 0) change.disk_waits[name] = std::min(1.0, of_files);
  }
  if (change.disk_waits.empty()) {
    throw input_error(
        "--cached-reads: no wait samples show an operation that waits for a file; "
        "record with 'lotus-tool run'");
  }
  notes.push_back(
      {"no read waits for a disk any more; the interval begins at no gain, because the recorded "
       "waits may be for other disk work, and ends where reading takes no CPU time either"});
}

/// Finds how many samples a batch has.
void resolve_ready_samples(pipeline_change& change, const recorded_pipeline& pipeline,
                           const run_data& run, std::vector<phrase>& notes) {
  notes.push_back({"each batch may contain any samples"});
  if (has_items(pipeline)) return;
  const double samples =
      calls_in_batches(run, {}).most_calls() / static_cast<double>(pipeline.units.size());
  if (pipeline.makes_itself || pipeline.stages.size() != 1 || samples < 2) {
    throw input_error(
        "--ready-samples: the recording does not show the samples of a batch; mark the work on a "
        "sample with LOTUS_SCOPE or as a stage of items");
  }
  change.ready_samples = static_cast<std::size_t>(std::lround(samples));
  notes.push_back(
      {"the % samples of a batch take equally long", {count_word{change.ready_samples}}});
}

void check_loader_cpus(const pipeline_change& change, const recorded_pipeline& pipeline,
                       std::vector<phrase>& notes) {
  if (pipeline.makes_itself) {
    throw input_error("--loader-cpus: the consumer builds its batches itself");
  }
  if (!pipeline.cpu_known || !pipeline.cpus) {
    throw input_error("--loader-cpus: the logs do not contain CPU times");
  }
  if (static_cast<double>(*change.loader_cpus) > *pipeline.cpus - 1) {
    throw input_error("--loader-cpus: the consumer needs one of the " +
                      three_digits(*pipeline.cpus) + " CPUs");
  }
  notes.push_back({"the consumer's step needs one CPU, which no other thread uses"});
}

}  // namespace

pipeline_change resolved_change(pipeline_change change, const recorded_pipeline& pipeline,
                                const run_data& run, const diagnosis& d,
                                std::vector<phrase>& notes) {
  const std::vector<std::string> known = names_of_work(pipeline, run.names);
  change.faster = known_names(change.faster, known, no_such_work);
  std::set<std::string> offload;
  for (const std::string& name : change.offload) {
    offload.insert(known_name(name, known, no_such_work));
  }
  change.offload = std::move(offload);
  if (!change.offload.empty()) {
    notes.push_back(
        {"the prediction is the most that offloading can gain; its interval begins "
         "where threads wait as long for the result"});
  }
  if (!change.cache.empty()) resolve_cache(change, pipeline, run, known, notes);
  if (!change.order.later.empty()) resolve_order(change, pipeline, run, known, notes);
  if (change.cached_reads) resolve_cached_reads(change, d.blocked_on, known, notes);
  if (change.ready_samples > 0) resolve_ready_samples(change, pipeline, run, notes);
  if (change.loader_cpus) check_loader_cpus(change, pipeline, notes);
  check_not_operations(change.threads, pipeline, known);
  std::vector<std::string> stages;
  stages.reserve(pipeline.stages.size());
  for (const recorded_stage& s : pipeline.stages) stages.push_back(s.name);
  change.threads = known_names(change.threads, stages, {"--workers: no stage is named '", "'; "});
  if (change.batch_size != 1 && has_items(pipeline)) {
    throw input_error("--batch-size: not available for runs whose stages handle items");
  }
  if (change.prefetch && pipeline.stages.size() > 1) {
    throw input_error(
        "--prefetch: stages build these batches, and their queues limit the number in flight");
  }
  if (change.workers && !pipeline.has_workers()) {
    // The message suggests a stage that may need more threads.
    const std::string name = printable_line(setting_axes(pipeline).front().name);
    throw input_error("--workers: stages build these batches; name one, as in --workers " + name +
                      '=' + std::to_string(*change.workers));
  }
  if (change.workers && pipeline.makes_itself) change.own_thread = true;
  if (change.own_thread && !pipeline.makes_itself) {
    throw input_error("--own-thread: does nothing here, because workers already build the batches");
  }
  return change;
}

}  // namespace lotus::tool
