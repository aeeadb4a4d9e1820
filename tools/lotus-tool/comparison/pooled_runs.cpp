#include "comparison/pooled_runs.hpp"

#include <algorithm>

#include "log/batch_kinds.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

void pooled_times::add(const value_blocks& durations, const std::optional<cpu_split>& cpu) {
  if (durations.count() == 0) return;
  durations_.add(durations);
  run_means_ns_.push_back(durations.mean());
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

void pooled_counts::add(const aggregated_op& op) {
  const auto count = static_cast<double>(op.count);
  const auto total_ns = static_cast<double>(op.total_ns);
  count_ += count;
  total_ns_ += total_ns;
  run_means_ns_.push_back(total_ns / count);
}

std::optional<double> pooled_counts::mean_ns() const {
  return count_ > 0 ? std::optional(total_ns_ / count_) : std::nullopt;
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

namespace {

void add_work(pooled_loader& to, const run_data& run) {
  // For each log, whether its thread preprocesses batches.
  std::vector<bool> builds(run.files->files.size());
  for (const batch_record& r : run.batches.records()) {
    if (r.kind != record_kind::preprocessed) continue;
    builds[r.file.value()] = true;
    to.bound = to.bound || run.thread_cpus_of[r.file.value()];
    ++to.batches;
  }
  const auto builders = static_cast<std::size_t>(std::count(builds.begin(), builds.end(), true));
  if (builders > 0) to.workers.insert(builders);
  for (const op_samples& op : run.ops) {
    pooled_work& of = to.work[std::string(op.name)];
    of.self_ns += static_cast<double>(op.self_ns);
    for (std::size_t f = 0; f < op.by_file.size(); ++f) {
      const std::uint64_t count = op.by_file[f].count;
      of.calls += static_cast<double>(count);
      of.elsewhere = of.elsewhere || (count > 0 && !builds[f]);
    }
  }
}

void add_machines(pooled_runs& to, const run_files& run, const run_data& data) {
  const run_processes processes = run_processes::read(run.info_dir, run.earlier_info);
  for (const log_file& file : run.files) {
    const process_info* const process = processes.process_of(file.number);
    if (process != nullptr && !process->host.empty()) to.machines.insert(process->host);
  }
  if (data.cpus) to.cpus.insert(data.cpus->count());
}

}  // namespace

pooled_runs pool(const std::vector<run_files>& runs, const compared_sides& sides,
                 const name_table& only, diagnostic_log& diagnostics) {
  pooled_runs all;
  run_parts timed;
  timed.blocks = true;
  if (only.size() > 0) timed.only = &only;
  std::set<std::string> counted;  // info_dir of the counted runs; the loaders of a run share it
  std::set<std::string> added;    // runs already added, because the user may give a folder twice
  const auto add = [&](const run_files& run) {
    if (!added.insert(run.dir).second) return;
    const run_data data = read_run(run, timed, diagnostics);
    if (counted.insert(run.info_dir).second) {
      all.records.written += data.records.written;
      all.records.dropped += data.records.dropped;
      all.records.lost += data.records.lost;
      add_machines(all, run, data);
    }
    pooled_loader& loader = all.loaders[run.loader];
    ++loader.runs;
    for (const op_samples& op : data.ops) {
      loader.ops[std::string(op.name)].add(op.details().blocks, op.details().cpu);
    }
    for (const aggregated_op& op : data.aggregated) loader.aggregated[op.name].add(op);
    for (const quantity wanted : all_quantities) {
      loader.quantities[wanted].add(values_of(data.batches, wanted, sides.skip_batches),
                                    cpu_of(data, wanted, sides.skip_batches));
    }
    add_work(loader, data);
    if (const std::optional<double> rate = data.batches.achieved_per_s()) {
      loader.batches_per_s.push_back(*rate);
    }
    if (data.side.stages.empty()) return;
    for (const stage_figures& stage : measure_stages(data)) {
      if (!stage.pool) loader.stage_threads[stage.name].insert(stage.slots);
      loader.stages[stage.name].add(stage.mean_service_ns, stage.numbers, stage.batches_per_s);
    }
  };
  for (const run_files& run : runs) add(run);
  return all;
}

}  // namespace lotus::tool
