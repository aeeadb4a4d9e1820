#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/accelerator_described.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/diagnosis.hpp"
#include "findings/facts/changes.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/finding.hpp"
#include "findings/gains.hpp"
#include "findings/screen/first_screen.hpp"
#include "findings/screen/why.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/figures.hpp"
#include "model/path/critical_path.hpp"
#include "model/worker_time.hpp"
#include "replay/change_text.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {

/// What limits a run.
struct shown_bound {
  std::string_view kind;
  std::string name;
};
/// An operation with its share of all preprocessing.
struct diagnosed_op {
  op_share of;
  std::optional<double> at_most_faster;
};
/// An operation that was counted instead of recorded.
struct counted_operation : figures {};

namespace {

constexpr std::size_t rows_in_json = 6;

template <class Part>
words names_of(Part verdict_row::*part) {
  words names;
  for (const verdict_row& row : all_verdicts) {
    if (!(row.*part).empty()) names.all.push_back(row.*part);
  }
  return names;
}

std::optional<shown_target> shown(const shown_target& target) {
  return target.what == shown_target::kind::none ? std::nullopt : std::optional(target);
}

/// Returns what limits the run: the stage, the lock, or the operation with the largest gain.
std::optional<shown_bound> bound_of(const diagnosis& d) {
  if (d.is == verdict::balanced) return std::nullopt;
  shown_bound bound{row_of(*d.is).kind, {}};
  if (d.is == verdict::stage_bound) {
    bound.name = d.stage;
  } else if (d.lock) {
    bound.name = object_text(d.lock->of.what);
  } else if (d.is == verdict::preprocessing_bound && !d.path_gains.empty()) {
    bound.name = d.path_gains.front().path.name;
  } else if (d.is == verdict::preprocessing_bound) {
    const auto work =
        std::find_if(d.path.shares.begin(), d.path.shares.end(),
                     [](const path_share& share) { return share.kind == path_kind::operation; });
    if (work != d.path.shares.end()) bound.name = work->name;
  }
  return bound;
}

std::string sentence_of(const diagnosis& d) {
  const first_screen screen = first_screen_of(d, rows_in_json);
  std::string sentence = text_of(screen.headline);
  if (!screen.why.empty()) sentence += ' ' + text_of(screen.why);
  if (d.is && !d.suggestions.empty()) {
    sentence += " First: " + text_of(d.suggestions.front()) + '.';
  }
  return sentence;
}

auto interval(std::optional<rate_interval> diagnosis::*of) {
  return [of](const diagnosis& d) {
    const std::optional<rate_interval>& found = d.*of;
    return found ? std::vector<std::optional<double>>{if_finite(found->low), if_finite(found->high)}
                 : std::vector<std::optional<double>>();
  };
}

auto predicted(double prediction::*value) {
  return [value](const suggestion& of) { return if_finite(of.would_be.*value); };
}

bool has_cpu(const path_share& share) {
  return share.cpu.has_value();
}

}  // namespace

const description<shown_target>& description_of(const shown_target*) {
  using t = const shown_target&;
  using kind = shown_target::kind;
  static constexpr const char* kinds[] = {"", "operation", "stage", "batches", "range", "call"};
  const auto at_a_time = [](t of) { return of.what == kind::range || of.what == kind::call; };
  static const description<shown_target> all(
      "target", "what a text is about; the page of report shows it",
      {
          {"kind", [](t of) { return kinds[static_cast<std::size_t>(of.what)]; }, "what it is",
           words{{kinds + 1, std::end(kinds)}}},
          {"name", &shown_target::name, "operation or stage", if_any},
          {"at_ns", &shown_target::at_ns, "begin in ns after the first record", at_a_time},
          {"ns", &shown_target::ns, "length in ns", at_a_time},
          {"track", [](t of) { return of.file->value(); },
           "index of the thread's log, if the target concerns one thread",
           [at_a_time](t of) { return at_a_time(of) && of.file; }},
      });
  return all;
}

const description<shown_advice>& description_of(const shown_advice*) {
  const auto time = [](double shown_advice::*ns) {
    return [ns](const shown_advice& of) { return human_time(of.*ns); };
  };
  static const description<shown_advice> all(
      "advice", "a change to try",
      {
          {"change", [](const shown_advice& of) { return change_of(of); }, "in words"},
          {"now", time(&shown_advice::now_ns), "the run time now"},
          {"then", time(&shown_advice::then_ns), "the predicted run time"},
          {"low", time(&shown_advice::low_ns), "lower end of its 90 % interval"},
          {"high", time(&shown_advice::high_ns), "upper end of it"},
          {"target", [](const shown_advice& of) { return shown(of.target); },
           "what would change; null if nothing in particular"},
      });
  return all;
}

const description<shown_share>& description_of(const shown_share*) {
  static const description<shown_share> all(
      "where", "a part of the run",
      {
          {"name", &shown_share::name, "operation or part"},
          {"share", &shown_share::share, "whole per cent of the run"},
          {"running", &shown_share::running, "per cent on a CPU", if_any},
          {"no_cpu", &shown_share::no_cpu, "per cent waiting for a CPU", if_any},
          {"blocked", &shown_share::blocked, "per cent blocked", if_any},
      });
  return all;
}

const description<first_screen>& description_of(const first_screen*) {
  static const description<first_screen> all(
      "screen", "what diagnose prints, as text; may change between versions",
      {
          {"title", &first_screen::title, "the run"},
          {"headline", &first_screen::headline, "the verdict"},
          {"why", &first_screen::why, "the reason"},
          {"warnings", &first_screen::warnings, "to be read before the verdict"},
          {"advice", &first_screen::advice, "changes to try; those that certainly gain come first"},
          {"assumption", &first_screen::assumption, "what the predictions assume, or empty"},
          {"not_worth", &first_screen::not_worth, "changes that gain less than 5 %"},
          {"where", &first_screen::where, "where the time went"},
          {"slowest", &first_screen::slowest, "the slowest call, or empty"},
          {"slowest_target", [](const first_screen& of) { return shown(of.slowest_target); },
           "the slowest call; null if there is none"},
      });
  return all;
}

const description<shown_bound>& description_of(const shown_bound*) {
  static const description<shown_bound> all(
      "bound", "what limits the run",
      {
          {"kind", &shown_bound::kind, "what it is", names_of(&verdict_row::kind)},
          {"name", &shown_bound::name, "name of the operation, stage or lock", if_any},
      });
  return all;
}

const description<bound_gain>& description_of(const bound_gain*) {
  static const description<bound_gain> all(
      "gain", "what it gains to loosen a limit",
      {
          {"bound", [](const bound_gain& of) { return verdict_name(of.bound); },
           "the verdict that it stands for", names_of(&verdict_row::key)},
          {"stage", &bound_gain::stage, "the stage", if_any},
          {"gain", [](const bound_gain& of) { return if_finite(of.gain); }, "as a factor"},
      });
  return all;
}

const description<suggestion>& description_of(const suggestion*) {
  static const description<suggestion> all(
      "move", "a suggestion",
      {
          {"text", [](const suggestion& of) { return text_of(of); }, "in words"},
          {"change", &suggestion::change, "the change"},
          {"effort", [](const suggestion& of) { return effort_name(effort_of(of.change)); },
           "what has to change: a number to set, the program's code, or the hardware",
           words{{"setting", "code", "hardware"}}},
          {"batches_per_s", predicted(&prediction::per_s), "predicted throughput"},
          {"low", predicted(&prediction::low), "lower end of the 90 % interval"},
          {"high", predicted(&prediction::high), "upper end of it"},
          {"gain", predicted(&prediction::gain), "length of the run divided by the predicted one"},
      });
  return all;
}

const description<path_share>& description_of(const path_share*) {
  using s = const path_share&;
  static const description<path_share> all(
      "path_share", "a part of the critical path",
      {
          {"what", [](s of) { return path_kind_name(of.kind); }, "kind of work",
           words{
               {"operation", "stage", "step", "hand-over", "prefetch", "start-up", "unrecorded"}}},
          {"name", &path_share::name, "operation or stage", if_any},
          {"title", [](s of) { return printable_line(path_title(of.kind, of.name)); },
           "the part as the first screen names it"},
          {"ns", &path_share::ns, "time in ns"},
          {"cpu_ns", [](s of) { return of.cpu->cpu_ns; }, "of it on a CPU", has_cpu},
          {"run_queue_ns", [](s of) { return of.cpu->run_queue_ns; },
           "of it waiting for a CPU; null if not known", has_cpu},
          {"blocked_ns", [](s of) { return of.cpu->blocked_ns; },
           "of it blocked; null if not known", has_cpu},
          {"target", [](s of) { return shown(target_of(of)); },
           "the operation or stage, or the longest such time; null if there is none"},
      });
  return all;
}

const description<diagnosed_op>& description_of(const diagnosed_op*) {
  static const description<diagnosed_op> all(
      "op", "an operation",
      {
          {"name", [](const diagnosed_op& op) { return op.of.name; }, "as logged"},
          {"share", [](const diagnosed_op& op) { return op.of.share; },
           "share of all preprocessing, 0 to 1"},
          {"at_most_faster", &diagnosed_op::at_most_faster, "gain of the run if it took no time"},
      });
  return all;
}

const description<counted_operation>& description_of(const counted_operation* of) {
  static const description<counted_operation> all =
      description<counted_operation>("counted_operation",
                                     "an operation that was counted instead of recorded",
                                     {{"name", &counted_operation::name, "as logged"}})
          .with_base(description_of(static_cast<const figures*>(of)), op_json);
  return all;
}

const description<slow_sample>& description_of(const slow_sample*) {
  static const description<slow_sample> all(
      "slow_sample", "a call that took much longer than usual",
      {
          {"name", &slow_sample::name, "operation"},
          {"duration_ns", &slow_sample::duration_ns, "length in ns"},
          {"median_ns", &slow_sample::median_ns, "median of the operation in ns"},
          {"epoch", &slow_sample::epoch, "epoch, from 0"},
          {"index", &slow_sample::batch, "number of the batch"},
          {"worker", &slow_sample::worker, "number of the log"},
      });
  return all;
}

const description<slow_worker>& description_of(const slow_worker*) {
  static const description<slow_worker> all(
      "slow_worker", "a worker that needs longer than the others",
      {
          {"worker", &slow_worker::worker, "number of the log"},
          {"stage", &slow_worker::stage, "the stage in which it is slow; absent without stages",
           if_any},
          {"mean_ns", &slow_worker::mean_ns, "mean time per batch in ns"},
          {"slower_than_median", &slow_worker::slower_than, "divided by the median of all workers"},
      });
  return all;
}

const description<wait_parts>& description_of(const wait_parts*) {
  using w = const wait_parts&;
  const auto if_known = [](w of) { return of.own_known; };
  static const description<wait_parts> all(
      "waits", "the consumer's waits by what was missing; the parts but nobody_ns add up to all_ns",
      {
          {"all_ns", &wait_parts::all_ns, "all waits in ns"},
          {"first_ns", &wait_parts::first_ns, "until the first batch of an epoch was ready"},
          {"not_begun_ns", &wait_parts::not_begun_ns, "no thread had begun the batch"},
          {"built_ns", &wait_parts::built_ns, "the batch was being built"},
          {"between_ns", &wait_parts::between_ns, "the batch was between two stages"},
          {"order_ns", &wait_parts::order_ns, "a later batch was ready, but not this one"},
          {"hand_over_ns", &wait_parts::hand_over_ns, "the batch was ready, but not received yet"},
          {"nobody_ns", &wait_parts::nobody_ns,
           "part of all_ns in which no batch was being built or ready"},
          {"own_cpu_ns", &wait_parts::own_cpu_ns,
           "part of hand_over_ns in which the consumer's thread was on a CPU", if_known},
          {"own_run_queue_ns", &wait_parts::own_queue_ns,
           "part of hand_over_ns in which it waited for a CPU", if_known},
          {"own_blocked_ns", &wait_parts::own_blocked_ns,
           "part of hand_over_ns in which it was blocked or asleep", if_known},
      });
  return all;
}

const description<finding>& description_of(const finding*) {
  using f = const finding&;
  static const description<finding> all(
      "finding", "what the recording shows, without a simulation",
      {
          {"id", &finding::id, "its identifier, such as wait-contains-work"},
          {"verdict", [](f of) { return verdict_name(*of.is); }, "what it says limits the run",
           names_of(&verdict_row::key), [](f of) { return of.is.has_value(); }},
          {"share", &finding::share, "share of the run's time that it explains, 0 to 1"},
          {"text", &finding::because, "the evidence"},
          {"to_do", &finding::to_do, "what to change", if_any},
      });
  return all;
}

const description<diagnosis>& description_of(const diagnosis*) {
  using d = const diagnosis&;
  const auto if_recorded = [](d of) { return of.cpu_ns.has_value(); };
  const auto if_dropped = [](d of) { return of.records.dropped > 0; };
  const auto if_deleted = [](d of) { return of.records.whole_from_ns != 0; };
  static const description<diagnosis> all(
      "diagnosis", "what limits a run, or one loader of a run",
      {
          {"dir", &diagnosis::dir, "folder of the logs"},
          {"loader", &diagnosis::loader, "name of the loader; absent for the default loader",
           if_any},
          {"verdict",
           [](d of) { return of.is ? std::optional(verdict_name(*of.is)) : std::nullopt; },
           "what limits the run; null if there is no verdict", names_of(&verdict_row::key)},
          {"why", &diagnosis::why_silent, "why there is no verdict; only if it is null",
           [](d of) { return !of.is; }},
          {"stage", &diagnosis::stage, "the stage, if the verdict is stage-bound", if_any},
          {"bound_by", bound_of,
           "what limits the run; null if it is balanced; absent without a verdict",
           [](d of) { return of.is.has_value(); }},
          {"sentence", sentence_of, "the verdict in words; may change between versions"},
          {"screen", [](d of) { return first_screen_of(of, rows_in_json); },
           "what diagnose prints, as text; may change between versions"},
          {"checks", &diagnosis::checks, "failed checks of the recording"},
          {"achieved_batches_per_s", &diagnosis::achieved,
           "measured throughput in batches per second: batches received divided by the length of "
           "the run, start-up and what lies between epochs included; null if unknown"},
          {"steady_batches_per_s", &diagnosis::steady,
           "throughput in batches per second from the first received batch of an epoch to the "
           "last; null if unknown"},
          {"wait_share", &diagnosis::wait_share,
           "share of the consumer's time in which it waited, 0 to 1"},
          {"exposed_ns",
           [](d of) {
             return of.batches > 0 ? std::optional(of.wait_ns / static_cast<double>(of.batches))
                                   : std::nullopt;
           },
           "exposed preparation time: mean time per step in which the consumer waited for a batch"},
          {"head_of_line_share", &diagnosis::head_of_line_share,
           "share of that in which a later batch was ready, 0 to 1"},
          {"waits", &diagnosis::waits, "the consumer's waits by what was missing",
           [](d of) { return of.waits.waits > 0; }},
          {"findings", &diagnosis::findings, "what the recording shows, without a simulation"},
          {"preprocessing_capacity", &diagnosis::preprocessing_capacity,
           "batches per second that the workers could build"},
          {"preprocessing_capacity_interval", interval(&diagnosis::preprocessing_interval),
           "low and high end of its 95 % interval; only for short runs", if_any},
          {"consumer_capacity", &diagnosis::consumer_capacity,
           "batches per second that the consumer could take"},
          {"consumer_capacity_interval", interval(&diagnosis::consumer_interval),
           "low and high end of its 95 % interval; only for short runs", if_any},
          {"workers", &diagnosis::workers, "workers that existed at the same time"},
          {"batches", &diagnosis::batches, "batches that are counted"},
          {"cpu_ns", &diagnosis::cpu_ns,
           "CPU time of all threads of the run's processes in ns; only if it was recorded", if_any},
          {"unmarked_cpu_share", &diagnosis::unrecorded_cpu,
           "share of cpu_ns that is in no recorded work, 0 to 1", if_recorded},
          {"other_programs_cpus", &diagnosis::others_cpus,
           "mean number of CPUs that other programs used; only if it was recorded", if_any},
          {"discarded", &diagnosis::discarded, "batches that were built and not received"},
          {"samples_per_batch", &diagnosis::samples_per_batch,
           "calls of the most frequent operation per batch; 0 if unknown"},
          {"limited_by_cpus", &diagnosis::limited_by_cpus,
           "whether twice as many CPUs would gain 5 % or more"},
          {"gains", &diagnosis::gains, "the gain of each loosened limit"},
          {"moves", &diagnosis::suggestions, "suggestions, most valuable first"},
          {"possible", &diagnosis::possible, "suggestions that may gain nothing, or much less"},
          {"not_looked_at", not_looked_at, "what the diagnosis knows nothing about, and why",
           if_any},
          {"assumptions", &diagnosis::assumptions, "what the first suggestion rests on"},
          {"warnings", &diagnosis::warnings, "to be read before the verdict"},
          {"limit", &diagnosis::limit, "what the throughput cannot exceed, in words", if_any},
          {"blocked_on", &diagnosis::blocked_on,
           "what operations, waits and preprocessing waited for, with estimated times; only if "
           "the process took wait samples",
           [](d of) { return !of.blocked_on.empty(); }},
          {"accelerator", [](d of) { return shown(of.accelerators, false); },
           "why the accelerator was idle, as in stats; only if the folder has the trace of one",
           [](d of) { return !of.accelerators.empty(); }},
          {"run_ns", [](d of) { return of.path.run_ns; },
           "from the first work to the last received batch, without pauses between epochs, in ns"},
          {"critical_path", [](d of) { return of.path.shares; }, "what run_ns consists of"},
          {"path_misses", [](d of) { return of.path.misses; },
           "the stage that always worked and has no share of critical_path, which is left out then",
           if_any},
          {"ops",
           [](d of) {
             std::vector<diagnosed_op> ops;
             for (const op_share& op : of.ops) {
               const std::size_t i = ops.size();
               const bool known = i < of.gains_without_ops.size();
               ops.push_back({op, known ? if_finite(of.gains_without_ops[i]) : std::nullopt});
             }
             return ops;
           },
           "operations, largest share first"},
          {"aggregated",
           [](d of) {
             std::vector<counted_operation> ops;
             ops.reserve(of.aggregated.size());
             for (const figures& op : of.aggregated) ops.push_back({op});
             return ops;
           },
           "operations that were counted instead of recorded", if_any},
          {"slow_samples", &diagnosis::slow_samples, "calls that took much longer than usual"},
          {"slow_workers", &diagnosis::slow_workers, "workers that need longer than the others"},
          {"dropped", [](d of) { return of.records.dropped; },
           "records that the library could not store; only if there are any", if_dropped},
          {"recorded", [](d of) { return of.records.all(); }, "all records, dropped ones included",
           if_dropped},
          {"deleted_bytes", [](d of) { return of.records.deleted_bytes; },
           "bytes of logs that limits deleted; only if there are any", if_deleted},
          {"whole_from_ns", [](d of) { return of.records.whole_from_ns; },
           "time since the epoch in ns from which on the recording is complete", if_deleted},
      });
  return all;
}

}  // namespace lotus::tool
