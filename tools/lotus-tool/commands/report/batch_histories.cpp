#include "commands/report/batch_histories.hpp"

#include <algorithm>
#include <optional>

#include "base/sorting.hpp"
#include "base/terminal/table.hpp"
#include "commands/report/base64.hpp"
#include "lotus/format/varint.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Returns the number that the report's page uses for a log: 1 + its index, or 0 if there is no
/// log.
std::uint64_t number_of(optional_file file) {
  return file ? std::uint64_t{file->value()} + 1 : 0;
}

class history_writer {
 public:
  history_writer(json_writer& json, std::int64_t first_ns) : bytes_(json), first_ns_(first_ns) {}

  void number(std::uint64_t value) { bytes_.number(value); }

  void begin() { before_ns_ = first_ns_; }

  void moment(std::optional<std::int64_t> at_ns) {
    number(at_ns ? 1 : 0);
    if (!at_ns) return;
    number(lotus::detail::to_zigzag(*at_ns - before_ns_));
    before_ns_ = *at_ns;
  }

  void finish() { bytes_.finish(); }

 private:
  base64_writer bytes_;
  std::int64_t first_ns_;
  std::int64_t before_ns_ = 0;
};

/// Writes the stage spans of a batch, or none if the batch has very many. Each stage is written as
/// the number that the page uses for its name.
void write_stages(history_writer& to, const run_data& run, const batch& b, name_table& names) {
  const std::vector<preprocessing_span>& all = run.batches.preprocessing_spans();
  constexpr std::size_t max_spans = 50'000;  // of all batches, about 15 bytes each
  const std::uint32_t max_of_batch = all.size() <= max_spans ? 1000 : 16;
  const bool listed =
      b.spans > 0 && b.spans <= max_of_batch && all[b.first_span].stage != preprocess_stage;
  to.number(listed ? b.spans : 0);
  for (span_number n = b.first_span; listed && n < b.first_span + b.spans; ++n) {
    const preprocessing_span& s = all[n];
    to.number(s.stage == preprocess_stage
                  ? 0
                  : std::uint64_t{names.id_of_decoded(run.names.name(s.stage.value()))} + 1);
    to.number(number_of(s.file));
    to.number(s.of_item ? 1 : 0);
    if (s.of_item) to.number(lotus::detail::to_zigzag(s.number));
    to.moment(s.start_ns);
    to.number(static_cast<std::uint64_t>(s.duration_ns));
  }
}

void write(history_writer& to, const run_data& run, const batch& b,
           std::optional<std::int64_t> on_path_ns, name_table& names) {
  const run_batches& batches = run.batches;
  const std::optional<time_span> preprocessing = batches.made(b);
  const batch_record* const queued = batches.record(b.queued);
  const batch_record* const wait = batches.record(b.wait);
  const bool waited = wait != nullptr && !wait->is_marker();
  optional_file file =
      b.spans > 0 ? batches.preprocessing_spans()[b.first_span].file : std::nullopt;
  for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
    if (batches.preprocessing_spans()[n].file != file) file = std::nullopt;
  }
  to.number(lotus::detail::to_zigzag(b.index));
  to.number(b.epoch);
  to.number(number_of(file));
  to.number(on_path_ns ? static_cast<std::uint64_t>(*on_path_ns) + 1 : 0);
  to.number(batches.out_of_order(b) ? 1 : 0);
  to.begin();
  const auto if_known = [](bool known, std::int64_t at_ns) {
    return known ? std::optional(at_ns) : std::nullopt;
  };
  to.moment(if_known(queued != nullptr, queued != nullptr ? queued->start_ns : 0));
  to.moment(if_known(preprocessing.has_value(), preprocessing ? preprocessing->start_ns : 0));
  to.moment(if_known(preprocessing.has_value(), preprocessing ? preprocessing->end_ns : 0));
  to.moment(if_known(waited, waited ? wait->start_ns : 0));
  to.moment(if_known(waited, waited ? wait->end_ns() : 0));
  to.moment(batches.delivery_ns(b));
  const std::optional<time_span> step = batches.step(b.consumed);
  to.moment(if_known(step.has_value(), step ? step->end_ns : 0));
  write_stages(to, run, b, names);
}

}  // namespace

void write_batch_histories(json_writer& json, const run_data& run, const critical_path* path,
                           std::size_t most, name_table& names) {
  const std::vector<batch>& all = run.batches.all();
  std::vector<std::int64_t> on_path_ns(path == nullptr ? 0 : all.size(), 0);
  if (path != nullptr) {
    for (const preprocessing_on_path& m : path->made) {
      if (m.batch) on_path_ns[m.batch->value()] += m.ns;
    }
  }
  json.begin_object().member("all", all.size()).key("histories");
  history_writer to(json, run.first_ns);
  const std::size_t n = std::min(all.size(), most);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = i * all.size() / n;
    write(to, run, all[at], path == nullptr ? std::nullopt : std::optional(on_path_ns[at]), names);
  }
  to.finish();
  json.end_object();
}

listed_operations::listed_operations(const run_data& run, std::size_t most) : run_(run) {
  if (run.ops.size() <= most) return;
  std::vector<std::int64_t> totals_ns;
  totals_ns.reserve(run.ops.size());
  for (const op_samples& op : run.ops) totals_ns.push_back(op.by_file.total_ns());
  is_listed_.resize(run.names.size());
  for (const std::uint32_t name : indices_of_largest(totals_ns, most)) is_listed_[name] = true;
  double others_ns = 0;
  for (std::uint32_t name = 0; name < totals_ns.size(); ++name) {
    if (!is_listed_[name]) others_ns += static_cast<double>(totals_ns[name]);
  }
  note_ = "Of " + std::to_string(run.ops.size()) + " operations, the " + std::to_string(most) +
          " with the most time are listed; the others took " + human_time(others_ns) +
          " together. lotus-tool stats lists all.";
}

std::vector<std::uint32_t> listed_operations::numbers_in(name_table& names) const {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(run_.ops.size());
  for (std::uint32_t n = 0; n < run_.ops.size(); ++n) {
    numbers.push_back(names.id_of_decoded(has(n) ? run_.names.name(n) : "S(other operations)"));
  }
  return numbers;
}

}  // namespace lotus::tool
