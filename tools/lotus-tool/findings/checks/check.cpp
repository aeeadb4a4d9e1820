#include "findings/checks/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "describe/description.hpp"
#include "findings/checks/evidence.hpp"
#include "findings/facts/wait_parts.hpp"
#include "log/clock/clock_search.hpp"
#include "log/folder/log_files.hpp"
#include "log/operation_names.hpp"
#include "log/process_info.hpp"
#include "log/shown_name.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t few_batches = 20;

/// Returns a list such as "SDecode, SCrop and 3 more".
/// @param all  the number of names, of which `names` may contain only the first ones.
name_word listed(const std::vector<std::string>& names, std::size_t all) {
  constexpr std::size_t shown = recorded_work::named;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (all > shown) text += " and " + std::to_string(all - shown) + " more";
  return {text};
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
    clock_set();  // it may be the cause of the others
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
  void fail(std::string_view id, bool unsafe, phrase text, phrase to_do) {
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
         {"% of the operations' time is outside any batch or stage: %",
          {exact_share_word{work_.outside_ns / all_ns},
           listed(work_.outside, work_.operations_outside)}},
         {"put LOTUS_STAGE(name, i) around the work on batch or item i, or "
          "LOTUS_BATCH_PREPROCESSED(i) around everything that one thread does for batch i"});
  }

  void markers() {
    for (check& fault : marker_faults(run_)) failed_.push_back(std::move(fault));
    if (!failed_.empty()) return;
    for (check& fault : misplaced_markers(run_, waits_of_run())) {
      failed_.push_back(std::move(fault));
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
         {"% batches were built, but only % received",
          {count_word{received + discarded}, count_word{received}}},
         {"put LOTUS_BATCH_PREPROCESSED(i) around the work on a whole batch; for items, use "
          "LOTUS_STAGE(name, item) and LOTUS_BATCH_TAKES(batch, item)"});
  }

  /// A wait that is created after the call that returns the batch: each batch became ready just
  /// before a wait of nearly no time, again and again.
  void late_waits() {
    constexpr double hardly = 0.01;
    const wait_parts waits = waits_of_run();
    if (waits.waits < few_batches || waits.share() > hardly || waits.steps_ns <= 0) return;
    const double step_ns = waits.steps_ns / static_cast<double>(waits.waits);
    std::size_t just_ready = 0;
    std::size_t in_step = 0;  // batches whose work also began in this step
    std::optional<std::int64_t> step_began_ns;
    for (const batch& b : run_.batches.all()) {
      const batch_record* const wait = run_.batches.record(b.wait);
      const std::optional<time_span> made = run_.batches.made(b);
      const std::optional<std::int64_t> began_ns = step_began_ns;
      step_began_ns = run_.batches.delivery_ns(b);
      if (wait == nullptr || wait->is_marker() || !made) continue;
      const auto ready_ns = static_cast<double>(wait->start_ns - made->end_ns);
      if (ready_ns < 0) continue;
      if (ready_ns < 0.05 * step_ns) ++just_ready;
      if (began_ns && made->start_ns >= *began_ns) ++in_step;
    }
    // On a busy machine a call may return long after the batch has become ready.
    const bool nearly_each = 4 * just_ready >= 3 * waits.waits;
    if (!nearly_each && (10 * in_step < 9 * waits.waits || 3 * just_ready < waits.waits)) return;
    fail("late-waits", true,
         {"nearly each batch became ready during a step, just before a wait of almost no time: the "
          "wait seems to begin after the batch was received"},
         {"create lotus::batch_wait before the call that returns the batch"});
  }

  void negative_delay() {
    if (has("same-number") || has("other-numbers")) return;
    bool before_it_began = false;
    const std::size_t early = consumed_too_early(run_.batches, before_it_began);
    if (!before_it_began && (early < 2 || 20 * early <= run_.batches.all().size())) return;
    fail("negative-delay", true,
         {"% received before being built", {count_word{early, "batch was", "batches were"}}},
         {before_it_began
              ? "pass LOTUS_BATCH_CONSUMED the number under which the batch was built, and give "
                "each loader its own name with LOTUS_LOADER(name)"
              : "end the block of LOTUS_BATCH_PREPROCESSED(i) before the batch is put into the "
                "queue, and pass LOTUS_BATCH_CONSUMED the number under which it was built"});
  }

  void loaders_mixed() {
    if (has("same-number")) return;
    const phrase by = mixed_sequences(run_, work_);
    if (by.empty()) return;
    fail("loaders-mixed", true, phrase{"several loaders are recorded as one: "}.add(by),
         {"give each loader a name with LOTUS_LOADER(name), or record each process into its own "
          "folder"});
  }

  void twice() {
    if (work_.copies < 2 || 5 * work_.copies <= run_.batches.all().size()) return;
    // Ignore the operations that were apparently done twice if they took less than 1 % of the time.
    // An example is the last call of a reader, which finds the end of the data and returns no
    // batch.
    if (work_.copies_ns < 0.01 * work_.all_ns) return;
    fail("twice", true,
         {"% ran outside batches in the same way as inside a batch, %: work may be done twice",
          {listed(work_.copied, work_.copied.size()), count_word{work_.copies, "time", "times"}}},
         {"build each batch once, inside LOTUS_BATCH_PREPROCESSED(i)"});
  }

  void overlap() {
    if (work_.overlaps == 0) return;
    fail(
        "overlap", work_.overlaps_in_batches > 0,
        {"% of the same thread (% and % in %): a scope began on one thread and ended on another",
         {count_word{work_.overlaps, "span partly overlaps another", "spans partly overlap others"},
          name_word{work_.overlap.first}, name_word{work_.overlap.second},
          name_word{run_.files->files[work_.overlap.file].path}}},
        {"use lotus::async_scope for an operation that pauses or continues on another thread"});
  }

  void segments() {
    if (!run_.batches.in_parts() || !run_.side.stages.empty()) return;
    fail("pieces", false,
         {"batches were preprocessed in several parts: the preprocess time of a batch is the time "
          "in which at least one thread worked on it"},
         {"name the parts with LOTUS_STAGE(name, i) to tell them apart"});
  }

  void consumed_late() {
    // If the check "loaders-mixed" or "negative-delay" failed, an SBatchConsumed record may be
    // paired with the wait for another batch, so the time between the two has no meaning.
    if (!run_.batches.consumed_late() || has("loaders-mixed") || has("negative-delay")) return;
    fail("consumed-late", false,
         {"% of the consumer's time is between the end of a wait and LOTUS_BATCH_CONSUMED, which "
          "seems to come after the step: steps are measured from the end of the wait",
          {exact_share_word{run_.batches.late_share()}}},
         {"put LOTUS_BATCH_CONSUMED(i) right after the wait"});
  }

  void dropped() {
    std::vector<phrase> texts;
    const record_counts& records = run_.records;
    if (records.dropped > 0) texts.push_back({"%", {name_word{dropped_text(records)}}});
    if (records.lost > 0) texts.push_back({"%", {name_word{lost_text(records.lost)}}});
    if (run_.damaged_lines > 0) {
      texts.push_back({"% damaged", {count_word{run_.damaged_lines, "line was", "lines were"}}});
    }
    const auto killed = std::count_if(run_.files->files.begin(), run_.files->files.end(),
                                      [](const log_file& file) { return !file.tail.empty(); });
    if (killed > 0) {
      texts.push_back(
          {"a process was killed or called _exit, and its last records are not in the logs yet "
           "(they count here)"});
    }
    if (texts.empty()) return;
    const std::uint64_t lines = run_.operations + run_.batches.records().size();
    const bool many = 100 * records.dropped > records.all() || 100 * records.lost > lines ||
                      100 * run_.damaged_lines > lines + run_.damaged_lines;
    fail("dropped", many, joined(texts),
         {records.dropped > 0 || records.lost > 0
              ? "record with full_ring::drain, a larger options::ring_records and free disk space"
          : run_.damaged_lines > 0 ? "see the messages on stderr"
                                   : "'lotus-tool recover' appends them to the logs"});
  }

  void clock_set() {
    const std::vector<log_file>& files = run_.files->files;
    if (files.empty() || files.front().clock == nullptr) return;
    const clock_step& step = *files.front().clock;
    fail("clock-set", are_several(step), {"%", {name_word{described(step)}}},
         {"set the clock before recording, or let its service adjust it gradually"});
  }

  void short_run() {
    const std::size_t n = run_.batches.all().size();
    if (n == 0 || n >= few_batches) return;
    fail("short", false,
         {"only % recorded, so all rates are uncertain",
          {count_word{n, "batch was", "batches were"}}},
         {"record more batches, at least %", {count_word{few_batches}}});
  }

  void names_with_numbers() {
    constexpr std::size_t many = 200;
    if (run_.names.size() < many) return;
    const numbered_names names = most_numbered(run_);
    if (names.count < many) return;
    fail("numbered-names", false,
         {"% operations differ only in numbers in their names, such as % and %, so their times are "
          "not added up",
          {count_word{names.count}, name_word{names.first}, name_word{names.second}}},
         {"give them one name, and pass the number to LOTUS_SCOPE_ARGS"});
  }

  void oversubscribed() {
    constexpr double many = 0.1;
    const busy_threads busy = count_busy_threads(run_);
    // It is harmless that more threads than CPUs have work if they rarely wait for a CPU, for
    // example because they sleep.
    if (busy.over_share < many || busy.queued_share.value_or(1) < many) return;
    phrase text{"up to % threads % at once on %. ",
                {count_word{busy.most}, name_word{busy.queued_share ? "were busy" : "had work"},
                 count_word{busy.cpus, "CPU", "CPUs"}}};
    if (busy.queued_share) {
      text.add("All times include waits for a CPU (% of the threads' time)",
               {exact_share_word{*busy.queued_share}});
    } else {
      text.add("If the threads waited for a CPU, times and rates include these waits");
    }
    fail("oversubscribed", false, std::move(text),
         {busy.blocked_share.value_or(0) > 0.5
              ? "use more CPUs; fewer threads are hardly as fast, because they are blocked most of "
                "the time"
              : "use more CPUs, or measure whether fewer threads are as fast"});
  }

  const run_data& run_;
  const recorded_work& work_;
  std::vector<check> failed_;
};

}  // namespace

std::vector<check> failed_checks(const run_data& run, const recorded_work& work) {
  return checker(run, work).failed();
}

phrase why_silent(const run_data& run, const std::vector<check>& failed) {
  std::vector<phrase> why;
  for (const check& c : failed) {
    if (c.unsafe) why.push_back(c.text);
  }
  return why.empty() ? why_no_pipeline(run) : joined(why);
}

std::string shown(const check& failed) {
  return text_of({failed.unsafe ? "no verdict [%]: " : "warning [%]: ",
                  {name_word{std::string(failed.id)}}}) +
         text_of(failed.text);
}

const description<check>& description_of(const check*) {
  static const description<check> all(
      "check", "a check of the recording that failed",
      {
          {"id", &check::id, "its identifier, such as unrecorded-work"},
          {"text", [](const check& c) { return text_of(c.text) + ". To do: " + text_of(c.to_do); },
           "what is wrong, and what to do"},
          {"unsafe", &check::unsafe, "whether no verdict may rest on this run"},
      });
  return all;
}

}  // namespace lotus::tool
