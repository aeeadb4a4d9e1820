#include "model/quantities.hpp"

#include <string>

#include "model/pipeline/side_data.hpp"

namespace lotus::tool {

std::string_view quantity_name(quantity of) noexcept {
  static constexpr std::string_view names[] = {"preprocess", "wait", "delay", "step"};
  return names[static_cast<std::size_t>(of)];
}

std::string quantity_title(std::string_view name) {
  if (name == quantity_name(quantity::wait)) return "consumer waits";
  if (name == quantity_name(quantity::delay)) return "delivery delay";
  if (name == quantity_name(quantity::step)) return "consumer's step";
  return std::string(name);
}

std::optional<std::int64_t> value_of(const run_batches& batches, const batch& b, quantity wanted) {
  switch (wanted) {
    case quantity::preprocess:
      return batches.preprocess_ns(b);
    case quantity::wait:
      return batches.wait_ns(b);
    case quantity::delay:
      return batches.delay_ns(b);
    case quantity::step:
      return batches.waits_known() ? batches.step_ns(b.consumed) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::int64_t> values_of(const run_batches& batches, quantity wanted, std::size_t skip) {
  std::vector<std::int64_t> values;
  const std::vector<bool> counted = counted_batches(batches, skip);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (!counted[i]) continue;
    const std::optional<std::int64_t> value = value_of(batches, batches.all()[i], wanted);
    if (value) values.push_back(*value);
  }
  return values;
}

std::vector<bool> counted_batches(const run_batches& batches, std::size_t skip) {
  std::vector<bool> counted;
  std::size_t of_epoch = 0;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    if (i > 0 && batches.all()[i - 1].epoch != batches.all()[i].epoch) of_epoch = 0;
    counted.push_back(of_epoch++ >= skip);
  }
  return counted;
}

namespace {

/// Adds up how long threads ran, waited for a CPU and were blocked in the intervals passed to
/// add(). The sum is missing if this is unknown for one of these intervals.
class cpu_sum {
 public:
  explicit cpu_sum(const side_data& side) : side_(side) {}

  /// Adds an interval of the thread with the log `file`.
  /// @param whole_batch  whether the interval is a complete wait, batch or step. For such
  ///   intervals, CPU times are known even if the program read CPU clocks only at the ends of waits
  ///   and batches.
  void add(optional_file file, std::int64_t start_ns, std::int64_t end_ns, bool whole_batch) {
    const off_cpu_time* const off = side_.off_cpu_of(file, whole_batch);
    if (off == nullptr) {
      missing_ = true;
      return;
    }
    any_ = true;
    sum_ += off->split(start_ns, end_ns);
  }

  std::optional<cpu_split> get() const {
    return any_ && !missing_ ? std::optional(sum_) : std::nullopt;
  }

 private:
  const side_data& side_;
  cpu_split sum_{0, 0, 0};
  bool any_ = false;
  bool missing_ = false;
};

void add_preprocessing(const run_batches& batches, const batch& b, bool preprocess_only,
                       cpu_sum& sum) {
  for (std::uint32_t i = b.first_span; i < b.first_span + b.spans; ++i) {
    const preprocessing_span& s = batches.preprocessing_spans()[i];
    const bool preprocess = s.stage == preprocess_stage;
    if (preprocess || !preprocess_only) sum.add(s.file, s.start_ns, s.end_ns(), preprocess);
  }
}

}  // namespace

std::optional<cpu_split> cpu_of(const run_data& run, quantity wanted, std::size_t skip) {
  const run_batches& batches = run.batches;
  const std::vector<bool> counted = counted_batches(batches, skip);
  cpu_sum sum(run.side);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const batch& b = batches.all()[i];
    if (!counted[i] || !value_of(batches, b, wanted)) continue;
    const batch_record* const wait = batches.record(b.wait);
    switch (wanted) {
      case quantity::preprocess:
        add_preprocessing(batches, b, true, sum);
        break;
      case quantity::wait:
        if (!wait->is_marker()) sum.add(wait->file, wait->start_ns, wait->end_ns(), true);
        break;
      case quantity::delay:
        break;
      case quantity::step: {
        const time_span step = *batches.step(b.consumed);
        sum.add(batches.record(b.consumed)->file, step.start_ns, step.end_ns, true);
        break;
      }
    }
  }
  return sum.get();
}

std::optional<cpu_split> preprocessing_cpu(const run_data& run, const batch& b) {
  cpu_sum sum(run.side);
  add_preprocessing(run.batches, b, false, sum);
  return sum.get();
}

}  // namespace lotus::tool
