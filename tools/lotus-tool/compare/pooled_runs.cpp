#include "compare/pooled_runs.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/log_files.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

void pooled_times::add(const value_blocks& durations, const std::optional<cpu_split>& cpu) {
  if (durations.count() == 0) return;
  durations_.add(durations);
  cpu_known_ = cpu_known_ && cpu;
  if (cpu) cpu_ns_ += static_cast<double>(cpu->cpu_ns);
}

std::optional<double> pooled_times::mean_ns() const {
  return durations_.count() > 0 ? std::optional(durations_.mean()) : std::nullopt;
}

std::optional<double> pooled_times::mean_cpu_ns() const {
  if (durations_.count() == 0 || !cpu_known_) return std::nullopt;
  return cpu_ns_ / static_cast<double>(durations_.count());
}

void pooled_stage::add(double mean_service_ns, std::size_t numbers,
                       std::optional<double> capacity_per_s) {
  service_ns_ += mean_service_ns * static_cast<double>(numbers);
  numbers_ += static_cast<double>(numbers);
  capacity_known_ = capacity_known_ && capacity_per_s;
  capacity_ += capacity_per_s.value_or(0);
  ++runs_;
}

std::optional<double> pooled_stage::service_ns() const {
  return numbers_ > 0 ? std::optional(service_ns_ / numbers_) : std::nullopt;
}

std::optional<double> pooled_stage::capacity_per_s() const {
  return runs_ > 0 && capacity_known_ ? std::optional(capacity_ / runs_) : std::nullopt;
}

pooled_runs pool(const std::string& dir, const compare_options& options,
                 diagnostic_log& diagnostics) {
  pooled_runs all;
  run_parts timed;
  timed.blocks = true;
  std::set<std::string> counted;  // loaders of one run have the same processes
  for (const run_files& run : find_runs(dir, options.prefix, diagnostics)) {
    const run_data data = read_run(run, timed, diagnostics);
    if (counted.insert(run.info_dir).second) {
      all.records.written += data.records.written;
      all.records.dropped += data.records.dropped;
    }
    pooled_loader& loader = all.loaders[run.loader];
    for (const op_samples& op : data.ops) loader.ops[op.name].add(op.blocks, op.cpu);
    for (const quantity wanted : all_quantities) {
      loader.quantities[wanted].add(values_of(data.batches, wanted, options.skip_batches),
                                    cpu_of(data, wanted, options.skip_batches));
    }
    if (data.side.stages.empty()) continue;
    for (const stage_figures& stage : measure_stages(data)) {
      loader.stages[stage.name].add(stage.mean_service_ns, stage.numbers, stage.batches_per_s);
    }
  }
  return all;
}

}  // namespace lotus::tool
