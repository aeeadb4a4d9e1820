#include "commands/report/timeline/timeline_batches.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "log/batch_kinds.hpp"

namespace lotus::tool {
namespace {

/// The number that the report's page uses for a record of the kind "batch arrived out of order".
/// The kinds in batch_kinds have smaller numbers.
constexpr int marker_on_page = 3;

struct drawn_batches {
  time_span span;
  int kind = 0;
  std::int64_t index = 0;  // number of the first of the combined batches
  std::size_t count = 0;
  std::int64_t busy_ns = 0;
};

drawn_batches drawn(const run_data& run, record_number n) {
  const batch_record& r = run.batches.records()[n];
  const batch_kind& row = batch_kind_of(r.kind);
  time_span span{r.start_ns, r.end_ns()};
  if (row.lasts_a_step && run.batches.waits_known()) span = run.batches.step(n).value_or(span);
  return {span, r.is_marker() ? marker_on_page : row.page_number, r.index % 1'000'000'000, 1,
          span.duration_ns()};
}

void write(json_writer& json, const run_data& run, const drawn_batches& of) {
  json.begin_array().value(of.span.start_ns - run.first_ns).value(of.span.duration_ns());
  json.value(of.kind).value(of.index);
  if (of.count > 1) json.value(of.count).value(of.busy_ns);
  json.end_array();
}

}  // namespace

std::vector<std::vector<record_number>> batches_by_file(const run_data& run) {
  const batch_records& records = run.batches.records();
  std::vector<std::vector<record_number>> of_file(run.files->files.size());
  for (record_number n = 0; n < records.size(); ++n) {
    if (batch_kind_of(records[n].kind).page_number >= 0)
      of_file[records[n].file.value()].push_back(n);
  }
  for (auto& numbers : of_file) {
    std::stable_sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
      return records[a].start_ns < records[b].start_ns;
    });
  }
  return of_file;
}

void write_batches(json_writer& json, const run_data& run,
                   const std::vector<record_number>& batches, std::size_t most) {
  json.begin_array();
  if (batches.size() <= most) {
    for (const record_number n : batches) write(json, run, drawn(run, n));
    json.end_array();
    return;
  }
  // Records of the same kind are combined. Since records of different kinds alternate, `open`
  // contains one unfinished combination for each kind.
  const std::int64_t intervals = static_cast<std::int64_t>(std::max<std::size_t>(1, most / 3));
  const std::int64_t width_ns = (run.last_ns - run.first_ns) / intervals + 1;
  std::map<int, drawn_batches> open;
  for (const record_number n : batches) {
    const drawn_batches next = drawn(run, n);
    drawn_batches& joined = open[next.kind];
    const auto interval = [&](const drawn_batches& of) {
      return (of.span.start_ns - run.first_ns) / width_ns;
    };
    if (joined.count > 0 && interval(joined) == interval(next)) {
      joined.span.end_ns = std::max(joined.span.end_ns, next.span.end_ns);
      joined.busy_ns += next.busy_ns;
      ++joined.count;
      continue;
    }
    if (joined.count > 0) write(json, run, joined);
    joined = next;
  }
  for (const auto& [kind, joined] : open) write(json, run, joined);
  json.end_array();
}

}  // namespace lotus::tool
