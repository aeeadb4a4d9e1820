#include "findings/checks/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "describe/description.hpp"
#include "findings/checks/busy_threads.hpp"
#include "findings/checks/markers.hpp"
#include "findings/checks/number_sequences.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/facts/wait_parts.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t few_batches = 20;

/// Formats a number with its noun, for example "1 batch" or "2 batches".
std::string counted(std::size_t n, const std::string& one, const std::string& many) {
  return std::to_string(n) + ' ' + (n == 1 ? one : many);
}

/// Returns a list such as "SDecode, SCrop and 3 more".
/// @param all  the number of names, of which `names` may contain only the first ones.
std::string listed(const std::vector<std::string>& names, std::size_t all) {
  constexpr std::size_t shown = recorded_work::named;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (all > shown) text += " and " + std::to_string(all - shown) + " more";
  return text;
}

/// Counts the batches that were received before they were ready, which indicates wrong markers. A
/// difference of up to 1 ms or 10 % of the preprocess time is ignored, because a thread may need
/// this long to end its span.
/// @param before_it_began  set to true if a batch was received before its preprocessing began.
std::size_t consumed_too_early(const run_batches& batches, bool& before_it_began) {
  constexpr double late_ns = 1e6;
  std::size_t early = 0;
  for (const batch& b : batches.all()) {
    const std::optional<time_span> made = batches.made(b);
    const std::optional<std::int64_t> at = batches.delivery_ns(b);
    if (!made || !at) continue;
    const double slack_ns = std::max(late_ns, 0.1 * static_cast<double>(made->duration_ns()));
    if (static_cast<double>(*at) + slack_ns < static_cast<double>(made->end_ns)) ++early;
    before_it_began =
        before_it_began || static_cast<double>(*at) + late_ns < static_cast<double>(made->start_ns);
  }
  return early;
}

/// Names of operations that differ only in the numbers that they contain.
struct numbered_names {
  std::size_t count = 0;
  std::string first;
  std::string second;
};

/// Returns for each id in run_data::names whether it is the name of an operation. The others are
/// names of counters, arguments of calls and the like.
std::vector<bool> operation_names(const run_data& run) {
  std::vector<bool> is_operation(run.names.size());
  for (const run_data::log_operations& log : run.logs) {
    for (const std::uint32_t name : log.names) is_operation[name] = true;
  }
  return is_operation;
}

/// Returns the largest group of names of operations that differ only in numbers. To save memory, it
/// is one of the first `most_groups` groups.
numbered_names most_numbered(const run_data& run) {
  constexpr std::size_t most_groups = 1000;
  std::map<std::string, numbered_names> groups;
  std::string form;  // the name with each number replaced by 0
  const std::vector<bool> is_operation = operation_names(run);
  for (std::uint32_t n = 0; n < run.names.size(); ++n) {
    const std::string_view name = run.names.name(n);
    // With run_parts::by_arguments, a name ends with the arguments in brackets.
    if (!is_operation[n] || ends_with(name, ")")) continue;
    form.clear();
    bool has_digits = false;
    for (const char c : name) {
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit || form.empty() || form.back() != '0') form += is_digit ? '0' : c;
      has_digits = has_digits || is_digit;
    }
    if (!has_digits) continue;
    auto at = groups.find(form);
    if (at == groups.end()) {
      if (groups.size() == most_groups) continue;
      at = groups.emplace(form, numbered_names()).first;
    }
    numbered_names& group = at->second;
    ++group.count;
    if (group.count == 1) group.first = shown_name(name);
    if (group.count == 2) group.second = shown_name(name);
  }
  numbered_names most;
  for (auto& [of, group] : groups) {
    if (group.count > most.count) most = std::move(group);
  }
  return most;
}

class checker {
 public:
  checker(const run_data& run, const recorded_work& work) : run_(run), work_(work) {}

  std::vector<check> failed() && {
    // A run that contains only operations has no batches or stages to check.
    if (!run_.batches.all().empty() || !run_.side.stages.empty()) {
      markers();
      items_as_batches();
      late_waits();
      unrecorded_work();
      negative_delay();
      loaders_mixed();
      twice();
      overlap();
      segments();
      consumed_late();
      short_run();
      oversubscribed();
    } else {
      overlap();
    }
    names_with_numbers();
    dropped();
    std::stable_sort(failed_.begin(), failed_.end(),
                     [](const check& a, const check& b) { return a.unsafe && !b.unsafe; });
    return std::move(failed_);
  }

 private:
  void fail(std::string_view id, bool unsafe, std::string text, std::string to_do) {
    failed_.push_back({id, std::move(text), std::move(to_do), unsafe});
  }

  bool has(std::string_view id) const {
    return std::any_of(failed_.begin(), failed_.end(), [&](const check& c) { return c.id == id; });
  }

  wait_parts waits_of_run() const {
    return divide_waits(run_, std::vector<bool>(run_.batches.all().size(), true));
  }

  void unrecorded_work() {
    const double all_ns = work_.all_ns - work_.copies_ns;
    if (all_ns <= 0 || work_.outside_ns <= 0.2 * all_ns) return;
    // If the consumer hardly waits, work that was not recorded does not limit the run.
    const wait_parts waits = waits_of_run();
    const bool limits = waits.waits == 0 || waits.share() > waits_much;
    fail("unrecorded-work", limits,
         human_share(work_.outside_ns / all_ns) +
             " of the operations' time is outside any batch or "
             "stage: " +
             listed(work_.outside, work_.operations_outside),
         "put LOTUS_STAGE(name, i) around the work on batch or item i, or "
         "LOTUS_BATCH_PREPROCESSED(i) around everything that one thread does for batch i");
  }

  void markers() {
    for (marker_fault& fault : marker_faults(run_)) {
      fail(fault.id, true, std::move(fault.text), std::move(fault.to_do));
    }
  }

  /// Macros of batches in the loop over items: far more batches were built than received.
  void items_as_batches() {
    constexpr std::size_t many = 3;
    std::size_t received = 0;
    for (const epoch_times& epoch : run_.batches.epochs()) received += epoch.delivered;
    const std::size_t discarded = run_.batches.discarded();
    if (received < few_batches / 2 || discarded < many * received || has("same-number")) return;
    fail("items-as-batches", true,
         std::to_string(received + discarded) + " batches were built, but only " +
             std::to_string(received) + " received",
         "put LOTUS_BATCH_PREPROCESSED(i) around the work on a whole batch; for items, use "
         "LOTUS_STAGE(name, item) and LOTUS_BATCH_TAKES(batch, item)");
  }

  /// A wait that is created after the call that returns the batch: each batch became ready just
  /// before a wait of nearly no time, again and again.
  void late_waits() {
    constexpr double hardly = 0.01;
    const wait_parts waits = waits_of_run();
    if (waits.waits < few_batches || waits.share() > hardly || waits.steps_ns <= 0) return;
    const double step_ns = waits.steps_ns / static_cast<double>(waits.waits);
    std::size_t just_ready = 0;
    for (const batch& b : run_.batches.all()) {
      const batch_record* const wait = run_.batches.record(b.wait);
      const std::optional<time_span> made = run_.batches.made(b);
      if (wait == nullptr || wait->is_marker() || !made) continue;
      const auto ready_ns = static_cast<double>(wait->start_ns - made->end_ns);
      if (ready_ns >= 0 && ready_ns < 0.05 * step_ns) ++just_ready;
    }
    if (10 * just_ready < 9 * waits.waits) return;
    fail("late-waits", true,
         "nearly each batch became ready during a step, just before a wait of almost no time: the "
         "wait seems to begin after the batch was received",
         "create lotus::batch_wait before the call that returns the batch");
  }

  void negative_delay() {
    if (has("same-number")) return;
    bool before_it_began = false;
    const std::size_t early = consumed_too_early(run_.batches, before_it_began);
    if (!before_it_began && (early < 2 || 20 * early <= run_.batches.all().size())) return;
    fail("negative-delay", true,
         counted(early, "batch was", "batches were") + " received before being built",
         "pass LOTUS_BATCH_CONSUMED the number under which the batch was built, and give each "
         "loader "
         "its own name with LOTUS_LOADER(name)");
  }

  void loaders_mixed() {
    if (has("same-number")) return;
    const std::string by = mixed_sequences(run_, work_);
    if (by.empty()) return;
    fail("loaders-mixed", true, "several loaders are recorded as one: " + by,
         "give each loader a name with LOTUS_LOADER(name), or record each process into its own "
         "folder");
  }

  void twice() {
    if (work_.copies < 2 || 5 * work_.copies <= run_.batches.all().size()) return;
    // Ignore the operations that were apparently done twice if they took less than 1 % of the time.
    // An example is the last call of a reader, which finds the end of the data and returns no
    // batch.
    if (work_.copies_ns < 0.01 * work_.all_ns) return;
    fail("twice", true,
         listed(work_.copied, work_.copied.size()) +
             " ran outside batches in the same way as inside a batch, " +
             counted(work_.copies, "time", "times") + ": work may be done twice",
         "build each batch once, inside LOTUS_BATCH_PREPROCESSED(i)");
  }

  void overlap() {
    if (work_.overlaps == 0) return;
    fail("overlap", work_.overlaps_in_batches > 0,
         counted(work_.overlaps, "span partly overlaps another", "spans partly overlap others") +
             " of the same thread (" + work_.overlap.first + " and " + work_.overlap.second +
             " in " + run_.files->files[work_.overlap.file].path +
             "): a scope began on one thread and ended on another",
         "use lotus::async_scope for an operation that pauses or continues on another thread");
  }

  void segments() {
    if (!run_.batches.in_parts() || !run_.side.stages.empty()) return;
    fail("pieces", false,
         "several threads preprocessed parts of one batch: its preprocess time is the time in "
         "which at "
         "least one of them worked",
         "name the parts with LOTUS_STAGE(name, i) to tell them apart");
  }

  void consumed_late() {
    // If the check "loaders-mixed" or "negative-delay" failed, an SBatchConsumed record may be
    // paired with the wait for another batch, so the time between the two has no meaning.
    if (!run_.batches.consumed_late() || has("loaders-mixed") || has("negative-delay")) return;
    fail("consumed-late", false,
         human_share(run_.batches.late_share()) +
             " of the consumer's time is between the end of a wait and "
             "LOTUS_BATCH_CONSUMED, which seems to come after the step: steps are measured from "
             "the end of the wait",
         "put LOTUS_BATCH_CONSUMED(i) right after the wait");
  }

  void dropped() {
    std::vector<std::string> texts;
    const record_counts& records = run_.records;
    if (records.dropped > 0) texts.push_back(dropped_text(records));
    if (records.lost > 0) texts.push_back(lost_text(records.lost));
    if (run_.damaged_lines > 0) {
      texts.push_back(counted(run_.damaged_lines, "line was", "lines were") + " damaged");
    }
    const auto killed = std::count_if(run_.files->files.begin(), run_.files->files.end(),
                                      [](const log_file& file) { return !file.tail.empty(); });
    if (killed > 0) {
      texts.emplace_back(
          "a process was killed, and its last records are not in the logs yet (they count here)");
    }
    if (texts.empty()) return;
    std::string text;
    for (const std::string& t : texts) text += (text.empty() ? "" : "; ") + t;
    const std::uint64_t lines = run_.operations + run_.batches.records().size();
    const bool many = 100 * records.dropped > records.all() || 100 * records.lost > lines ||
                      100 * run_.damaged_lines > lines + run_.damaged_lines;
    fail("dropped", many, std::move(text),
         records.dropped > 0 || records.lost > 0
             ? "record with full_ring::drain, a larger options::ring_records and free disk space"
         : run_.damaged_lines > 0 ? "see the messages on stderr"
                                  : "'lotus-tool recover' appends them to the logs");
  }

  void short_run() {
    const std::size_t n = run_.batches.all().size();
    if (n == 0 || n >= few_batches) return;
    fail(
        "short", false,
        "only " + counted(n, "batch was", "batches were") + " recorded, so all rates are uncertain",
        "record more batches, at least " + std::to_string(few_batches));
  }

  void names_with_numbers() {
    constexpr std::size_t many = 200;
    if (run_.names.size() < many) return;
    const numbered_names names = most_numbered(run_);
    if (names.count < many) return;
    fail("numbered-names", false,
         std::to_string(names.count) +
             " operations differ only in numbers in their names, such as " + names.first + " and " +
             names.second + ", so their times are not added up",
         "give them one name, and pass the number to LOTUS_SCOPE_ARGS");
  }

  void oversubscribed() {
    constexpr double many = 0.1;
    const busy_threads busy = count_busy_threads(run_);
    // It is harmless that more threads than CPUs have work if they rarely wait for a CPU, for
    // example because they sleep.
    if (busy.over_share < many || busy.queued_share.value_or(1) < many) return;
    std::string cpus = std::to_string(busy.cpus);
    cpus.erase(cpus.find_last_not_of('0') + 1);
    if (cpus.back() == '.') cpus.pop_back();
    fail("oversubscribed", false,
         "up to " + std::to_string(busy.most) + " threads " +
             (busy.queued_share ? "were busy" : "had work") + " at once on " + cpus +
             (cpus == "1" ? " CPU" : " CPUs") +
             (busy.queued_share
                  ? ". All times include waits for a CPU (" + human_share(*busy.queued_share) +
                        " of the threads' time)"
                  : ". If the threads waited for a CPU, times and rates include these waits"),
         busy.blocked_share.value_or(0) > 0.5
             ? "use more CPUs; fewer threads are hardly as fast, because they are blocked most of "
               "the time"
             : "use more CPUs, or measure whether fewer threads are as fast");
  }

  const run_data& run_;
  const recorded_work& work_;
  std::vector<check> failed_;
};

}  // namespace

std::vector<check> failed_checks(const run_data& run, const recorded_work& work) {
  return checker(run, work).failed();
}

std::string why_silent(const std::vector<check>& failed) {
  std::string why;
  for (const check& c : failed) {
    if (c.unsafe) why += (why.empty() ? "" : "; ") + c.text;
  }
  return why;
}

const description<check>& description_of(const check*) {
  static const description<check> all(
      "check", "a check of the recording that failed",
      {
          {"id", &check::id, "its identifier, such as unrecorded-work"},
          {"text", [](const check& c) { return c.text + ". To do: " + c.to_do; },
           "what is wrong, and what to do"},
          {"unsafe", &check::unsafe, "whether no verdict may rest on this run"},
      });
  return all;
}

}  // namespace lotus::tool
