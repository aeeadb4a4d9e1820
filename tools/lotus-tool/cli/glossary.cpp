#include "cli/glossary.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "commands/whatif/answers.hpp"
#include "describe/described_table.hpp"
#include "describe/description.hpp"
#include "heap/tables/stats_memory.hpp"
#include "model/figures.hpp"
#include "model/pipeline/side_figures.hpp"
#include "model/stage_stats.hpp"

namespace lotus::tool {
namespace {

struct entry {
  /// Label in a table; "stage *" stands for all labels that begin with "stage ".
  std::string_view label;
  std::string_view meaning;
};

constexpr entry entries[] = {
    // Labels in the output of `lotus-tool accelerator`.
    {"device", "the number of a GPU or other accelerator"},
    {"whole time", "from the start of the device's first work to the end of its last"},
    {"in use", "time while at least one kernel, copy or memset ran"},
    {"compute", "time while a kernel ran that does not belong to communication"},
    {"communication", "time while a kernel of a communication library (NCCL, ...) ran"},
    {"copies alone", "time of copies from or to the host while no kernel ran"},
    {"idle", "time while nothing ran on any stream of the device"},
    {"idle because of", "what the host (the CPU) did until it submitted the next work"},
    {"% of idle time", "share of the time in which the devices were idle"},
    {"% of whole time", "share of the devices' whole time"},
    {"device, stream", "the numbers of a device and of one of its streams (queues)"},
    {"waits for host", "the stream was empty: the host had not yet submitted work"},
    {"gaps < 30 us", "pauses of the stream under 30 us, though work was submitted"},
    {"longer gaps", "pauses of 30 us or more, though work was submitted"},
    {"device, kind of copy", "H: host, D: device; pinned or pageable memory of the host"},
    {"bytes", "number of bytes that were copied"},
    {"bandwidth", "bytes divided by the time of the copies"},
    {"profiler step", "a ProfilerStep of PyTorch's trace; sorted by idle time"},
    {"batch", "idle time from the start of its wait to the start of the next wait"},
    {"batch-wait", "idle while the training loop (consumer) waited for a batch"},
    {"copy", "the device was idle while the host copied data to it"},
    {"synchronization", "idle because the host or a stream waited for other work"},
    {"launch", "idle because the host (the CPU) launched kernels too slowly"},
    {"other", "the device was idle while the host did something else"},
    {"rank", "number of a rank (or of a process or file, without ranks)"},
    {"verdict",
     "what limits the rank's devices; launch-bound: the CPU launches kernels too slowly"},
    {"own time", "the rank's time without communication"},
    {"own time/step", "the rank's time without communication, per profiler step"},
    {"waits", "mean time per step in which the rank's consumer waits for a batch"},
    {"longest in", "share of the steps in which this rank waits longest"},
    {"causes", "time per step that would be hidden if it waited as long as the next rank"},
    {"builds in", "mean time of its workers to build a batch"},
    {"ready before", "part of the wait in which the batch was ready, but not received"},
    {"communication alone", "time while communication ran, but no computation (not overlapped)"},
    {"sync.", "idle because the host or a stream waited for other work"},
    // Words and marks in several outputs.
    {"-", "not recorded, or there is no such value"},
    {"consumer", "the thread that receives the batches, such as a training loop"},
    // Labels in the output of `lotus-tool stats` that are no described columns.
    {"operation", "a named part of the program, such as code marked with LOTUS_SCOPE"},
    {"aggregated", "operation whose calls are only counted and summed"},
    {"aggregated, within the above", "only counted; the rows above include their time"},
    {"batch times", "times that are measured once for each batch"},
    {"count *", "number of calls or batches in this run"},
    {"worker", "thread or process ID, with which the name of the worker's log ends"},
    {"run", "the run's folder"},
    {"batches", "number of batches that the consumer received"},
    {"preprocess", "time to build a batch"},
    {"consumer waits", "how long it waits for a batch; 0 if the batch is already there"},
    {"delivery delay", "from when a batch is ready until the consumer receives it"},
    {"consumer's step", "from receiving a batch to the next wait; unknown for the last batch"},
    {"wait", "mean wait for a batch; 0 for a batch that is already there"},
    {"delay", "mean time from when a batch is ready until the consumer receives it"},
    {"step", "mean time of the consumer's work on a batch"},
    {"out of order", "batches that were ready before an earlier one"},
    {"stage", "step of the pipeline; 'shared': its threads also work in other stages"},
    {"async operation", "operation that can pause and resume; times include pauses"},
    {"counter", "a number that the program reports over time"},
    {"memory use", "operation whose use of memory was counted"},
    {"ncalls", "number of calls; for recursive operations also the calls from outside"},
    {"tottime", "time without other operations inside"},
    {"percall", "the time in the column to its left, divided by the calls"},
    {"cumtime", "time including other operations inside"},
    // Labels in the output of `lotus-tool diagnose`.
    {"maximum workers at once", "largest number of threads that built batches at once"},
    {"consumer's waits, total", "how long the consumer waited for batches"},
    {"waits with a later batch ready",
     "share of its waiting time in which a later batch was ready, but not the next one"},
    {"consumer's work on batches",
     "total time of its steps: from receiving a batch to the next wait"},
    {"preprocess time, mean", "mean time to build a batch"},
    {"preprocess time, std", "standard deviation of the time to build a batch"},
    {"CPU time of the run",
     "CPU time of all threads and processes, between the first and the last marker"},
    {"CPU time outside operations", "share of the program's CPU time outside all operations"},
    {"CPUs of other programs, mean", "mean number of CPUs that they kept busy"},
    {"measured throughput", "batches divided by the run's time, start-up included"},
    {"built and discarded", "batches that were built and never received"},
    {"throughput of workers alone", "what they reach if they never wait for the consumer"},
    {"throughput of stage *", "what the slowest stage reaches if it never waits for others"},
    {"throughput of consumer alone", "what it reaches if it never waits for a batch"},
    {"change to try (gain uncertain)",
     "each row is one change, simulated alone; it may gain nothing"},
    {"peak memory", "maximum memory of all processes"},
    {"CPUs used", "mean number of CPUs that the program kept busy"},
    {"change to try", "each row is one change, simulated alone; 'perhaps': it may gain nothing"},
    {"predicted run time", "measured -> predicted run time, start-up included"},
    {"critical path (% of the run)",
     "the chain of work that determined how long the run took; each moment counts once"},
    {"in total", "share of the run; the columns to its right are its parts"},
    {"operation (by gain)", "the one whose speed-up gains most comes first"},
    {"% of run", "share of the critical path, which is as long as the run"},
    {"if 1.25x faster", "effect on the run if this became 1.25 times as fast"},
    {"if removed", "effect on the run if this took no time"},
    {"time outside of operations", "parts of the critical path in no operation or stage"},
    {"worker time outside operations",
     "add LOTUS_SCOPE to the code of the workers to see what it is"},
    {"passing data to a waiting thread",
     "from when a batch or item is ready until the thread that waits for it has it"},
    {"the consumer's steps", "the consumer's work on batches"},
    {"before the next batch was begun",
     "such as because too many batches were in flight, or because batches are handed out late"},
    {"start-up, before the first batch", "time before the work on the first batch began"},
    // Labels in the output of `lotus-tool whatif`.
    {"change", "from the first run to the second; 2x means twice the first value"},
    {"simulated change", "what differs from the recorded run"},
    {"batches/s with", "predicted throughput with each change of this operation or stage"},
    {"1.25x faster",
     "predicted throughput if calls of this operation or stage take 1/1.25 of their time"},
    {"2x faster", "predicted throughput if they take half their time"},
    {"without it", "predicted throughput if they take no time"},
    // Labels in the output of `lotus-tool compare`.
    {"mean time of", "a call of an operation, or a time per batch"},
    {"95 % interval", "of the change; contains the true change 19 times in 20"},
    {"p", "probability of such a difference if the two sides do not differ"},
    {"CPU time *", "mean CPU time of a call in this run"},
    {"CPU time", "change of the mean CPU time of a call"},
    {"change of CPU time", "change of the mean CPU time of a call"},
    {"mean *", "mean time of the stage for an item or batch"},
    {"mean change", "change of the mean time"},
    {"capacity *", "batches per second if the stage never had to wait"},
    {"capacity change", "change of the capacity"},
    // Labels in the output of `lotus-tool map`.
    {"samples", "how often a sample found the operation or function running"},
    {"sampled CPU", "CPU time, estimated from the samples"},
    {"self time", "elapsed time minus the time of the operations inside"},
    {"share", "the row's part of all samples of the table"},
    {"function|module", "the function, and the program or library that contains it"},
    {"seen in runs", "number of runs in which the function was seen"},
    {"value", "what the collector measured"},
    {"per operation", "a hardware counter, summed over the functions of each operation"},
};

template <class T>
void add_columns(std::map<std::string_view, std::string_view>& to) {
  // The page explains its columns itself.
  for (const field* one : columns_of(description_of(static_cast<const T*>(nullptr)), ~report_op)) {
    to.try_emplace(one->shown.title, one->meaning);
  }
}

/// Returns the meanings of the columns of described tables, by title.
const std::map<std::string_view, std::string_view>& described_columns() {
  static const std::map<std::string_view, std::string_view> all = [] {
    std::map<std::string_view, std::string_view> columns;
    add_columns<figures>(columns);
    add_columns<stage_figures>(columns);
    add_columns<async_stats>(columns);
    add_columns<counter_figures>(columns);
    add_columns<memory_row>(columns);
    add_columns<answer>(columns);
    return columns;
  }();
  return all;
}

/// Whether `known` ends in `*` and the label of a table begins with the text before the `*`.
bool begins(std::string_view label, std::string_view known) {
  if (known.back() != '*') return false;
  known.remove_suffix(1);
  return label.size() > known.size() && label.substr(0, known.size()) == known;
}

}  // namespace

std::string_view meaning_of(std::string_view label) {
  const auto entry_where = [](const auto& is_it) {
    const auto* const at = std::find_if(std::begin(entries), std::end(entries), is_it);
    return at == std::end(entries) ? std::string_view() : at->meaning;
  };
  const std::string_view meaning = entry_where([&](const entry& e) { return e.label == label; });
  if (!meaning.empty()) return meaning;
  const auto column = described_columns().find(label);
  if (column != described_columns().end()) return column->second;
  return entry_where([&](const entry& e) { return begins(label, e.label); });
}

void print_glossary(const std::vector<std::string>& labels, std::ostream& out) {
  if (labels.empty()) return;
  out << '\n' << styled(out, style::bold, "what the labels mean") << '\n';
  for (const std::string& label : labels) {
    const std::string_view meaning = meaning_of(label);
    if (meaning.empty()) continue;
    print_fitted(out, printable_line(label) + ": " + std::string(meaning), "  ", "    ");
  }
}

}  // namespace lotus::tool
