#include "samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {

std::int64_t nesting_times::self_ns(std::int64_t start_ns, std::int64_t duration_ns) {
  // Without any parent this would grow with the log; nothing nests this wide.
  constexpr std::size_t most = std::size_t{1} << 16U;
  if (ended_.size() == most) ended_.erase(ended_.begin(), ended_.begin() + most / 2);
  auto first = ended_.end();
  while (first != ended_.begin() && (first - 1)->start_ns >= start_ns) --first;
  std::int64_t inside_ns = 0;
  auto last = first;
  for (; last != ended_.end() && last->end_ns() <= start_ns + duration_ns; ++last) {
    inside_ns += last->duration_ns;
  }
  if (first == last) {
    ended_.insert(first, {start_ns, duration_ns});
  } else {
    *first = {start_ns, duration_ns};
    ended_.erase(first + 1, last);
  }
  return std::max<std::int64_t>(0, duration_ns - inside_ns);
}

run_samples collect_samples(const run_files& run, diagnostics& said) {
  run_samples samples;
  samples.dir = run.dir;
  name_table names;
  std::vector<nesting_times> nesting(run.files.size());
  run_scan scan = scan_run(run, said, [&](std::size_t file, const log_line& line) {
    const std::uint32_t name = names.id(line.name);
    if (name == samples.ops.size()) {
      samples.ops.emplace_back();
      samples.ops.back().name = names.name(name);
    }
    op_samples& op = samples.ops[name];
    op.durations_ns.push_back(line.duration_ns);
    op.self_ns += nesting[file].self_ns(line.start_ns, line.duration_ns);
    if (file >= op.by_file.size()) op.by_file.resize(file + 1);
    worker_share& share = op.by_file[file];
    ++share.count;
    share.total_ns += line.duration_ns;
    share.max_ns = std::max(share.max_ns, line.duration_ns);
  });
  for (const log_file& file : run.files) samples.file_numbers.push_back(file.number);
  samples.first_ns = scan.first_ns;
  samples.last_ns = scan.last_ns;
  samples.batches = run_batches(std::move(scan.records));
  return samples;
}

std::vector<std::int64_t> values_of(const run_batches& batches, quantity wanted, std::size_t skip) {
  std::vector<std::int64_t> values;
  std::size_t of_epoch = 0;
  std::uint32_t epoch = 0;
  for (const batch& b : batches.all()) {
    if (b.epoch != epoch) of_epoch = 0;
    epoch = b.epoch;
    if (of_epoch++ < skip) continue;
    std::optional<std::int64_t> value;
    switch (wanted) {
      case quantity::preprocess:
        value = batches.preprocess_ns(b);
        break;
      case quantity::wait:
        value = batches.wait_ns(b);
        break;
      case quantity::delay:
        value = batches.delay_ns(b);
        break;
      case quantity::step:
        value = batches.step_ns(b.consumed);
        break;
    }
    if (value) values.push_back(*value);
  }
  return values;
}

}  // namespace lotus::tool
