#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "accelerator/accelerator_described.hpp"
#include "commands/stats/stats.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "heap/tables/stats_memory.hpp"
#include "log/folder/log_files.hpp"
#include "model/figures.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// The figures of an operation, and what it was blocked on.
struct shown_operation : figures {
  std::vector<blocked_on> blocked;
};
/// The same of a quantity of batches.
struct shown_quantity : figures {
  std::vector<blocked_on> blocked;
};

struct batch_row {
  const run_stats_result* run = nullptr;
  const batch* of = nullptr;
  std::optional<cpu_split> cpu = std::nullopt;

  const run_batches& batches() const { return run->run.batches; }
};

/// A thread with batches or operations.
struct worker_row {
  const run_stats_result* run = nullptr;
  std::size_t file = 0;

  /// Returns what the worker did of an operation; null if it called it never.
  const worker_share* share_of(std::uint32_t op) const {
    const worker_shares& shares = run->run.ops[op].by_file;
    return file < shares.size() && shares[file].count > 0 ? &shares[file] : nullptr;
  }
};

namespace {

constexpr const char* blocked_meaning =
    "what it waited for, most frequent first; only if the process took wait samples";

std::vector<blocked_on> blocked_of(const figures& of, const blocked_list* list) {
  return listed(list, of.cpu ? of.cpu->blocked_ns : std::nullopt);
}

bool has_stages(const batch_row& row) {
  return !row.run->stages.empty();
}
bool has_cpu(const batch_row& row) {
  return row.cpu.has_value();
}

template <class Get>
named_values<shown_operation> operations_of(std::size_t count, const Get& get) {
  return {[count, get](const auto& visit) {
            for (std::size_t i = 0; i < count; ++i) {
              const shown_operation of = get(i);
              visit(of.name, of);
            }
          },
          count > 0};
}

/// Returns the elements of a list by name.
template <class T>
named_values<T> by_name(const std::vector<T>& list, bool any) {
  return {[&list](const auto& visit) {
            for (const T& of : list) visit(of.name, of);
          },
          any};
}

auto quantity_of(quantity which) {
  return [which](const run_stats_result& run) {
    const figures& of = run.of(which);
    const blocked_list* const list = which == quantity::wait         ? &run.blocked_on.waits
                                     : which == quantity::preprocess ? &run.blocked_on.preprocessing
                                                                     : nullptr;
    return shown_quantity{of, blocked_of(of, list)};
  };
}

bool are_dropped(const run_stats_result& of) {
  return of.run.records.dropped > 0;
}
bool are_deleted(const run_stats_result& of) {
  return of.run.records.whole_from_ns != 0;
}

}  // namespace

const description<shown_operation>& description_of(const shown_operation* of) {
  static const description<shown_operation> all =
      description<shown_operation>("operation", "the calls of an operation")
          .with_base(description_of(static_cast<const figures*>(of)), op_json)
          .with({{"blocked_on", &shown_operation::blocked, blocked_meaning, if_any}});
  return all;
}

const description<shown_quantity>& description_of(const shown_quantity* of) {
  static const description<shown_quantity> all =
      description<shown_quantity>("quantity", "a time that is measured once for each batch")
          .with_base(description_of(static_cast<const figures*>(of)), quantity_json)
          .with({{"blocked_on", &shown_quantity::blocked, blocked_meaning, if_any}});
  return all;
}

const description<batch_row>& description_of(const batch_row*) {
  using b = const batch_row&;
  static const description<batch_row> all(
      "batch", "a batch",
      {
          {"epoch", [](b row) { return row.of->epoch; }, "epoch, from 0"},
          {"index", [](b row) { return shown_number(row.of->index); },
           "number of the batch within its epoch"},
          {"worker",
           [](b row) {
             const batch_record* const made = row.batches().record(row.of->preprocessed);
             return made == nullptr ? std::nullopt
                                    : std::optional(row.run->run.log(made->file).number);
           },
           "number of the log of the worker that built it; null if none did"},
          {"preprocess_ns", [](b row) { return row.batches().preprocess_ns(*row.of); },
           "time from the begin to the end of building it, in ns"},
          {"wait_ns", [](b row) { return row.batches().wait_ns(*row.of); },
           "consumer's wait for it, in ns; 0 if it arrived before its turn"},
          {"delay_ns", [](b row) { return row.batches().delay_ns(*row.of); },
           "time from when it was ready to when it was received, in ns"},
          {"step_ns", [](b row) { return value_of(row.batches(), *row.of, quantity::step); },
           "consumer's work on it, in ns; null for an epoch's last batch, and without waits"},
          {"out_of_order", [](b row) { return row.batches().out_of_order(*row.of); },
           "whether it arrived before its turn"},
          {"latency_ns",
           [](b row) {
             const std::optional<time_span> made = row.batches().made(*row.of);
             return made ? std::optional(made->duration_ns()) : std::nullopt;
           },
           "pipelines of stages: time from its first stage to its last, in ns", has_stages},
          {"service_ns", [](b row) { return row.batches().service_ns(*row.of); },
           "pipelines of stages: time in which a stage worked on it, in ns", has_stages},
          {"queueing_ns", [](b row) { return row.batches().queueing_ns(*row.of); },
           "pipelines of stages: time between stages, in ns", has_stages},
          {"cpu_ns", [](b row) { return row.cpu->cpu_ns; },
           "time on a CPU while it was built, in ns", has_cpu},
          {"run_queue_ns", [](b row) { return row.cpu->run_queue_ns; },
           "time ready to run, waiting for a CPU, in ns; null if not known", has_cpu},
          {"blocked_ns", [](b row) { return row.cpu->blocked_ns; },
           "time blocked, in ns; null if not known", has_cpu},
      });
  return all;
}

const description<worker_share>& description_of(const worker_share*) {
  static const description<worker_share> all(
      "worker_share", "the calls of an operation in one worker",
      {
          {"count", &worker_share::count, "calls", column{"count"}},
          {"mean_ns",
           [](const worker_share& of) {
             return static_cast<double>(of.total_ns) / static_cast<double>(of.count);
           },
           "mean in ns", column{"mean", unit::time_ns}},
          {"max_ns", &worker_share::max_ns, "longest call in ns", column{"max", unit::time_ns}},
          {"total_ns", &worker_share::total_ns, "sum in ns", column{"total", unit::time_ns}},
      });
  return all;
}

const description<worker_row>& description_of(const worker_row*) {
  using w = const worker_row&;
  static const description<worker_row> all(
      "worker", "what one worker did",
      {
          {"worker", [](w of) { return of.run->run.files->files[of.file].number; },
           "number of its log"},
          {"batches", [](w of) { return batches_of_worker(*of.run, of.file).count; },
           "batches that it built"},
          {"preprocess_total_ns", [](w of) { return batches_of_worker(*of.run, of.file).total_ns; },
           "time in which it built batches, in ns"},
          {"ops",
           [](w of) {
             return named_values<worker_share>{[&of](const auto& visit) {
               for (const std::uint32_t op : of.run->shown_ops) {
                 const worker_share* const share = of.share_of(op);
                 if (share != nullptr) visit(of.run->run.ops[op].name, *share);
               }
             }};
           },
           "by operation"},
      });
  return all;
}

const description<run_stats_result>& description_of(const run_stats_result*) {
  using r = const run_stats_result&;
  static const description<run_stats_result> all(
      "run", "a run, or one loader of a run",
      {
          {"dir", [](r run) { return std::string_view(run.run.files->dir); }, "folder of the logs"},
          {"loader", [](r run) { return std::string_view(run.run.files->loader); },
           "name of the loader; absent for the default loader", if_any},
          {"ops",
           [](r run) {
             return operations_of(run.shown_ops.size(), [&run](std::size_t i) {
               const figures of = figures_of(run.op(i));
               return shown_operation{of, blocked_of(of, run.blocked_on.of(run.op(i).name))};
             });
           },
           "by operation"},
          {"aggregated",
           [](r run) {
             return operations_of(run.aggregated.size(), [&run](std::size_t i) {
               return shown_operation{run.aggregated[i], {}};
             });
           },
           "operations that were counted instead of recorded; percentiles are those of a histogram",
           if_any},
          {"preprocess", quantity_of(quantity::preprocess), "time to build a batch"},
          {"wait", quantity_of(quantity::wait), "the consumer's waits"},
          {"delay", quantity_of(quantity::delay),
           "time from when a batch was ready to when it was received"},
          {"step", quantity_of(quantity::step), "the consumer's work on a batch"},
          {"out_of_order", &run_stats_result::out_of_order,
           "batches that arrived before their turn"},
          {"batches",
           [](r run) {
             return value_list<batch_row>{[&run](const auto& visit) {
               for (const batch& b : run.run.batches.all()) {
                 visit(batch_row{&run, &b, preprocessing_cpu(run.run, b)});
               }
             }};
           },
           "all batches"},
          {"workers",
           [](r run) {
             std::vector<worker_row> workers;
             for (std::size_t f = 0; f < run.run.files->files.size(); ++f) {
               const worker_row row{&run, f};
               const auto has = [&row](std::uint32_t op) { return row.share_of(op) != nullptr; };
               if (batches_of_worker(run, f).count > 0 ||
                   std::any_of(run.shown_ops.begin(), run.shown_ops.end(), has)) {
                 workers.push_back(row);
               }
             }
             return workers;
           },
           "threads that built batches or ran operations"},
          {"achieved_batches_per_s", [](r run) { return run.run.batches.achieved_per_s(); },
           "measured throughput in batches per second: batches received divided by the length of "
           "the run, start-up and what lies between epochs included; null if unknown"},
          {"steady_batches_per_s", [](r run) { return run.run.batches.steady_per_s(); },
           "throughput in batches per second from the first received batch of an epoch to the "
           "last; null if unknown"},
          {"stages", [](r run) { return by_name(run.stages, !run.stages.empty()); },
           "by stage; only if stages are named", if_any},
          {"through_stages", [](r run) { return by_name(run.items, !run.stages.empty()); },
           "latencies of batches and of items; only if stages are named", if_any},
          {"async", [](r run) { return by_name(run.async, !run.async.empty()); },
           "by asynchronous operation", if_any},
          {"counters", [](r run) { return by_name(run.counters, !run.counters.empty()); },
           "by counter", if_any},
          {"memory", &run_stats_result::memory, "how the run used the heap", if_any},
          {"accelerator", [](r run) { return shown(run.accelerators, false); },
           "only if the run's folder has the trace of one: as 'lotus-tool accelerator' prints it, "
           "without steps and batches",
           [](r run) { return !run.accelerators.empty(); }},
          {"threads_at_snapshot", &run_stats_result::threads,
           "only of a snapshot: what each thread of its process did at that moment", if_any},
          {"checks", &run_stats_result::checks, "failed checks"},
          {"dropped", [](r run) { return run.run.records.dropped; },
           "records that were lost; only if records were dropped", are_dropped},
          {"recorded", [](r run) { return run.run.records.all(); },
           "all records; only if records were dropped", are_dropped},
          {"deleted_bytes", [](r run) { return run.run.records.deleted_bytes; },
           "size of the logs that limits deleted", are_deleted},
          {"whole_from_ns", [](r run) { return run.run.records.whole_from_ns; },
           "from when on the recording is complete, because limits deleted older logs",
           are_deleted},
      });
  return all;
}

const description<stats_output>& description_of(const stats_output*) {
  static const description<stats_output> all(
      "stats", "times of operations and batches of one or more runs",
      {{"runs", &stats_output::runs, "the runs, or the loaders of a run"}});
  return all;
}

}  // namespace lotus::tool
