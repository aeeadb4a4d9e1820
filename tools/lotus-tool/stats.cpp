#include "stats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "distribution.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;

/// One quantity of all batches, without those where it is missing.
template <class Quantity>
std::vector<std::int64_t> of_batches(const run_batches& batches, Quantity quantity) {
  std::vector<std::int64_t> values;
  for (const batch& b : batches.all()) {
    if (const std::optional<std::int64_t> value = quantity(b)) values.push_back(*value);
  }
  return values;
}

void describe_batches(run_stats_result& result, bool remove_outliers) {
  const run_batches& batches = result.batches;
  auto preprocess = of_batches(batches, [&](const batch& b) { return batches.preprocess_ns(b); });
  auto wait = of_batches(batches, [&](const batch& b) { return batches.wait_ns(b); });
  auto delay = of_batches(batches, [&](const batch& b) { return batches.delay_ns(b); });
  auto step = of_batches(batches, [&](const batch& b) { return batches.step_ns(b.consumed); });
  if (remove_outliers) remove_low_outliers(preprocess);
  const auto share_above = [](const std::vector<std::int64_t>& values) {
    return values.empty() ? 0 : 1 - share_below(values, 500 * ms_ns + 1);
  };
  result.wait_above_500ms = share_above(wait);
  result.delay_above_500ms = share_above(delay);
  result.preprocess = describe(preprocess);
  result.wait = describe(wait);
  result.delay = describe(delay);
  result.step = describe(step);
  result.out_of_order = static_cast<std::uint64_t>(
      std::count_if(batches.all().begin(), batches.all().end(),
                    [&](const batch& b) { return batches.out_of_order(b); }));
}

}  // namespace

run_stats_result collect_stats(const run_files& run, bool remove_outliers, diagnostics& said) {
  name_table names;
  std::vector<std::vector<std::int64_t>> durations;
  run_scan scan = scan_run(run, said, [&](std::size_t, const log_line& line) {
    const std::uint32_t name = names.id(line.name);
    if (name == durations.size()) durations.emplace_back();
    durations[name].push_back(line.duration_ns);
  });
  run_stats_result result;
  result.dir = run.dir;
  for (std::uint32_t name = 0; name < durations.size(); ++name) {
    std::vector<std::int64_t>& values = durations[name];
    op_stats op;
    op.name = names.name(name);
    op.below_10ms = share_below(values, 10 * ms_ns);
    op.below_100us = share_below(values, ms_ns / 10);
    op.time = describe(values);
    result.ops.push_back(std::move(op));
    std::vector<std::int64_t>().swap(values);
  }
  for (const log_file& file : run.files) result.file_numbers.push_back(file.number);
  result.batches = run_batches(std::move(scan.records));
  describe_batches(result, remove_outliers);
  return result;
}

int run_stats(const stats_options& options, std::ostream& out, std::ostream& err) {
  diagnostics said(err, options.quiet);
  std::vector<run_stats_result> results;
  for (const std::string& dir : options.dirs) {
    for (const run_files& run : find_runs(dir, options.prefix, said)) {
      run_stats_result result = collect_stats(run, options.remove_outliers, said);
      if (result.ops.empty() && result.batches.all().empty()) {
        said.warning(run.dir + ": nothing usable in its logs, left out");
        continue;
      }
      results.push_back(std::move(result));
    }
  }
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (results.empty()) throw input_error("nothing usable in the logs");
  if (options.json) {
    print_stats_json(results, out);
  } else {
    print_stats_table(results, out);
  }
  out.flush();
  if (!out) throw input_error("standard output: cannot be written");
  return exit_fine;
}

}  // namespace lotus::tool
