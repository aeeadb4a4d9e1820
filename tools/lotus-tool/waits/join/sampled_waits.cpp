#include "waits/join/sampled_waits.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/thread_logs.hpp"

namespace lotus::tool {

sampled_waits::sampled_waits(
    const run_data& run, operations_of of, const name_table& names,
    const std::function<void(std::size_t file, const on_operation&)>& each_operation,
    diagnostic_log& diagnostics)
    : names_(names), processes_(read_waits(*run.files, diagnostics)) {
  if (processes_.empty()) return;
  const thread_logs threads(run);
  std::unordered_map<std::size_t, std::vector<moment>> moments;  // by the log's index
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    // Caches the logs of each thread.
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> logs;
    const auto logs_of = [&](std::uint64_t tid) -> const std::vector<std::size_t>& {
      const auto [known, fresh] = logs.try_emplace(tid);
      if (fresh) known->second = threads.of(tid, processes_[p].ending);
      return known->second;
    };
    for (const wait_sample& sample : processes_[p].samples) {
      const std::size_t number = waits_.size();
      sampled_wait& wait = waits_.emplace_back();
      wait.sample = &sample;
      wait.process = p;
      wait.logs = logs_of(sample.tid);
      if (of == operations_of::all_threads) {
        for (const std::size_t file : wait.logs) {
          moments[file].push_back({sample.time_ns, number, false});
        }
      }
      if (sample.holder == 0) continue;
      for (const std::size_t file : logs_of(sample.holder)) {
        moments[file].push_back({sample.time_ns, number, true});
      }
    }
  }
  for (auto& [file, in_log] : moments) {
    std::stable_sort(in_log.begin(), in_log.end(),
                     [](const moment& a, const moment& b) { return a.time_ns < b.time_ns; });
  }
  for (record_number n = 0; n < run.batches.records().size(); ++n) {
    const batch_record& r = run.batches.records()[n];
    const auto at = moments.find(r.file.value());
    if (at == moments.end() || r.is_marker()) continue;
    if (r.kind == record_kind::consumed) {
      const std::optional<time_span> step = run.batches.step(n);
      if (step) visit(at->second, step->start_ns, step->end_ns, sampled_wait::of_step);
    }
    if (r.kind != record_kind::wait && r.kind != record_kind::preprocessed) continue;
    visit(at->second, r.start_ns, r.end_ns(),
          r.kind == record_kind::wait ? sampled_wait::of_wait : sampled_wait::of_preprocessing);
  }
  for (const auto& [file, in_log] : moments) {
    each_operation(file, [&, &in_log = in_log](const operation& op) {
      visit(in_log, op.start_ns, op.end_ns(), op.name);
    });
  }
}

void sampled_waits::visit(const std::vector<moment>& moments, std::int64_t start_ns,
                          std::int64_t end_ns, std::uint32_t name) {
  auto at = std::lower_bound(moments.begin(), moments.end(), start_ns,
                             [](const moment& m, std::int64_t ns) { return m.time_ns < ns; });
  for (; at != moments.end() && at->time_ns < end_ns; ++at) {
    sampled_wait& wait = waits_[at->wait];
    if (!at->of_holder) {
      wait.open.insert(name);
      wait.in.add(start_ns, name);
    } else {
      wait.holder.add(start_ns, name);
    }
  }
}

std::string sampled_waits::name_of(const innermost_span& span) const {
  if (!span.known) return {};
  if (span.name == sampled_wait::of_wait) return "waiting for a batch";
  if (span.name == sampled_wait::of_preprocessing) return "preprocessing";
  if (span.name == sampled_wait::of_step) return "the consumer's step";
  return shown_name(names_.name(span.name));
}

}  // namespace lotus::tool
