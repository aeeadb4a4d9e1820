#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distribution.hpp"
#include "run_model.hpp"
#include "samples.hpp"
#include "stats.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

class json_fields {
 public:
  explicit json_fields(bool empty) : empty_(empty) {}

  void integer(std::string_view key, std::int64_t value) { raw(key, std::to_string(value)); }

  /// A figure of the set; null when the set is empty.
  void figure(std::string_view key, double value) {
    raw(key, empty_ ? "null" : json_number(value));
  }
  void figure(std::string_view key, std::int64_t value) {
    raw(key, empty_ ? "null" : std::to_string(value));
  }

  std::string text() && { return '{' + text_ + '}'; }

 private:
  void raw(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += ',';
    text_ += '"';
    text_ += key;
    text_ += R"(":)";
    text_ += value;
  }

  bool empty_;
  std::string text_;
};

std::string op_json(const op_stats& op) {
  const distribution& t = op.time;
  json_fields fields(t.count == 0);
  fields.integer("count", static_cast<std::int64_t>(t.count));
  fields.figure("mean_ns", t.mean_ns);
  fields.figure("std_ns", t.std_ns);
  fields.figure("min_ns", t.min_ns);
  fields.figure("p50_ns", t.p50_ns);
  fields.figure("p90_ns", t.p90_ns);
  fields.figure("p99_ns", t.p99_ns);
  fields.figure("max_ns", t.max_ns);
  fields.integer("total_ns", t.total_ns);
  fields.integer("self_ns", op.self_ns);
  fields.figure("below_10ms", op.below_10ms);
  fields.figure("below_100us", op.below_100us);
  return std::move(fields).text();
}

std::string quantity_json(const distribution& d) {
  json_fields fields(d.count == 0);
  fields.integer("count", static_cast<std::int64_t>(d.count));
  fields.figure("mean_ns", d.mean_ns);
  fields.figure("std_ns", d.std_ns);
  fields.figure("min_ns", d.min_ns);
  fields.figure("p25_ns", d.p25_ns);
  fields.figure("p50_ns", d.p50_ns);
  fields.figure("p75_ns", d.p75_ns);
  fields.figure("max_ns", d.max_ns);
  fields.integer("total_ns", d.total_ns);
  return std::move(fields).text();
}

std::string or_null(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : "null";
}

std::string batch_json(const run_stats_result& run, const batch& b) {
  const batch_record* const made = run.batches.record(b.preprocessed);
  return R"({"epoch":)" + std::to_string(b.epoch) + R"(,"index":)" + std::to_string(b.index) +
         R"(,"worker":)" +
         (made != nullptr ? std::to_string(run.file_numbers[made->file]) : "null") +
         R"(,"preprocess_ns":)" + or_null(run.batches.preprocess_ns(b)) + R"(,"wait_ns":)" +
         or_null(run.batches.wait_ns(b)) + R"(,"delay_ns":)" + or_null(run.batches.delay_ns(b)) +
         R"(,"step_ns":)" + or_null(run.batches.step_ns(b.consumed)) + R"(,"out_of_order":)" +
         (run.batches.out_of_order(b) ? "true" : "false") + '}';
}

/// What every log's thread did: its batches and its operations.
std::string workers_json(const run_stats_result& run) {
  std::string text;
  for (std::size_t f = 0; f < run.file_numbers.size(); ++f) {
    std::string ops;
    for (const op_stats& op : run.ops) {
      if (f >= op.by_file.size() || op.by_file[f].count == 0) continue;
      const worker_share& share = op.by_file[f];
      json_fields fields(false);
      fields.integer("count", static_cast<std::int64_t>(share.count));
      fields.figure("mean_ns",
                    static_cast<double>(share.total_ns) / static_cast<double>(share.count));
      fields.integer("max_ns", share.max_ns);
      fields.integer("total_ns", share.total_ns);
      ops += (ops.empty() ? "" : ",") + json_string(op.name) + ':' + std::move(fields).text();
    }
    const worker_batches made = batches_of_worker(run, f);
    if (ops.empty() && made.count == 0) continue;
    text += (text.empty() ? "\n{\"worker\":" : ",\n{\"worker\":") +
            std::to_string(run.file_numbers[f]) + R"(,"batches":)" + std::to_string(made.count) +
            R"(,"preprocess_total_ns":)" + std::to_string(made.total_ns) + R"(,"ops":{)" + ops +
            "}}";
  }
  return text;
}

}  // namespace

void print_stats_json(const std::vector<run_stats_result>& runs, std::ostream& out) {
  std::string_view before_run;
  out << R"({"runs":[)";
  for (const run_stats_result& run : runs) {
    out << before_run << "\n{\"dir\":" << json_string(run.dir) << R"(,"ops":{)";
    before_run = ",";
    std::string_view before_op;
    for (const op_stats& op : run.ops) {
      out << before_op << '\n' << json_string(op.name) << ':' << op_json(op);
      before_op = ",";
    }
    out << "},\n\"preprocess\":" << quantity_json(run.preprocess)
        << ",\n\"wait\":" << quantity_json(run.wait) << ",\n\"delay\":" << quantity_json(run.delay)
        << ",\n\"step\":" << quantity_json(run.step) << ",\n\"out_of_order\":" << run.out_of_order
        << R"(,"batches":[)";
    std::string_view before_batch;
    for (const batch& b : run.batches.all()) {
      out << before_batch << '\n' << batch_json(run, b);
      before_batch = ",";
    }
    out << "],\n\"workers\":[" << workers_json(run) << "]}";
  }
  out << "\n]}\n";
}

}  // namespace lotus::tool
