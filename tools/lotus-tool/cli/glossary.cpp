#include "cli/glossary.hpp"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"

namespace lotus::tool {
namespace {

struct entry {
  /// Label in a table; "stage *" stands for all labels that begin with "stage ".
  std::string_view label;
  std::string_view meaning;
};

constexpr entry entries[] = {
    // Labels in the output of `lotus-tool accelerator`.
    {"device", "the number of an accelerator of this process"},
    {"span", "from the start of its first work to the end of its last"},
    {"in use", "while at least one kernel, copy or memset ran"},
    {"compute", "while at least one computing kernel ran"},
    {"communication", "while at least one kernel of a communication library ran"},
    {"only copies", "while data was copied from or to the host, and no kernel ran"},
    {"idle", "while nothing ran on any of its streams"},
    {"idle because of",
     "what the host did before it submitted the next work. batch-wait: waited for a batch; copy: "
     "copied to the device; synchronization: waited for the device, or the work waited for another "
     "stream; launch: launched work; host: anything else"},
    {"of the idle time", "as a share of the time in which the devices were idle"},
    {"of the span", "as a share of the devices' whole time"},
    {"device, stream", "the numbers of an accelerator and of one of its queues"},
    {"waits for host",
     "gaps of a stream before work that the host had not yet submitted when the gap began"},
    {"short gaps", "gaps of a stream below 30 us before work that was submitted earlier"},
    {"other gaps", "all other gaps of a stream"},
    {"device, copies", "an accelerator, the direction (H: host, D: device), and the host's memory"},
    {"bytes", "how much was copied"},
    {"bandwidth", "bytes over the time of the copies"},
    {"profiler step", "the number of a ProfilerStep"},
    {"batch", "the number of a batch; the time until the next wait counts for it"},
    {"batch-wait", "idle while the consumer waited for a batch"},
    {"copy", "idle while the host copied to the device"},
    {"synchronization", "idle while the host waited for the device, or work for another stream"},
    {"launch", "idle while the host launched work"},
    {"host", "idle while the host did something else"},
    {"rank", "the number of a rank; of a process or the file if the trace has no rank"},
    {"verdict", "what its accelerators are limited by"},
    {"own time", "a rank's time outside communication, in which ranks wait for the slowest"},
    {"own time/step", "a rank's time outside communication, per profiler step"},
    {"only communication", "while kernels of a communication library ran, and no computing kernel"},
    {"sync.", "idle while the host waited for the device, or work for another stream"},
    // Labels in the output of `lotus-tool stats`.
    {"operation", "the name of a scope in the program"},
    {"aggregated", "an operation whose calls are counted and summed, but not recorded one by one"},
    {"aggregated, within the above",
     "operations that are only counted and summed; their time is part of the operations above"},
    {"per batch",
     "preprocess: building it; consumer waits: for it, 0 if it arrived before its turn; delivery "
     "delay: from ready to received; consumer's step: the work on it"},
    {"count", "number of calls, or of batches"},
    {"count *", "number of calls, or of batches"},
    {"mean", "the sum divided by the count"},
    {"std", "standard deviation: how far values typically are from the mean"},
    {"std/mean", "standard deviation as a share of the mean"},
    {"min", "the shortest time, or the smallest value"},
    {"p25", "25 % of the values are at most this"},
    {"p50", "half of the values are at most this: the median"},
    {"p75", "75 % of the values are at most this"},
    {"p90", "90 % of the values are at most this"},
    {"p99", "99 % of the values are at most this"},
    {"max", "the longest time, or the largest value"},
    {"iqr", "interquartile range: p75 - p25"},
    {"% > 500 ms", "share that took longer than this"},
    {"% < 10 ms", "share that took less than this"},
    {"% < 100 us", "share that took less than this"},
    {"total", "sum of all times; threads that ran at the same time all count"},
    {"self", "the part of the total outside other operations that were called inside"},
    {"on CPU", "part during which the thread ran on a CPU"},
    {"waits for CPU", "part during which the thread could have run, but no CPU was free"},
    {"blocked",
     "part during which the thread waited for anything but a CPU: a disk, a lock, a queue, a "
     "sleep"},
    {"worker", "number of the thread's log"},
    {"run", "the run's folder"},
    {"batches", "number of batches that the consumer received, without skipped ones"},
    {"preprocess", "mean time to build a batch"},
    {"consumer waits", "time that the consumer waits for a batch; 0 if it arrived before its turn"},
    {"delivery delay", "time from a batch being ready to being received"},
    {"consumer's step", "the consumer's work on a batch, until it waits for the next one"},
    {"wait", "the consumer's mean wait for a batch; 0 if it arrived before its turn"},
    {"delay", "mean time from a batch being ready to being received"},
    {"step", "the consumer's mean work on a batch"},
    {"out of order", "batches that were ready before the batch that the consumer waited for"},
    {"stage", "a part of building a batch or item that has threads of its own"},
    {"at once", "number of items or batches that the stage works on at the same time"},
    {"capacity",
     "batches per second if the stage never waited for input or for room for its output"},
    {"busy",
     "share of its threads' time inside the stage's spans: on a CPU, waiting for one, or blocked, "
     "as in a read"},
    {"no input", "share of its threads' time with nothing to work on"},
    {"output full",
     "share of its threads' time with a finished result, but no room for it in the next queue"},
    {"asynchronous",
     "an operation that pauses and resumes, measured from its first part to its last"},
    {"running", "the part of the total in which the operation was not paused"},
    {"counter", "a number that the program reports over time"},
    {"mean over time", "each value is weighted by how long it was current"},
    {"last", "the value at the end"},
    {"memory", "an operation that allocated memory"},
    {"calls", "number of calls"},
    {"allocated/call", "mean number of bytes that the thread allocated during a call"},
    {"most", "bytes allocated in the call that allocated most"},
    {"allocations/call", "mean number of allocations in a call"},
    {"freed/call",
     "mean number of bytes that the thread freed during a call, whoever allocated them"},
    {"retained/call",
     "mean number of bytes allocated in a call and not freed by its thread at its end"},
    {"peak", "largest growth of the thread's memory within a call"},
    {"held", "bytes allocated in the operation and still not freed at the end of the run"},
    {"ncalls", "number of calls; for recursive operations also the calls from outside"},
    {"tottime", "time without other operations inside"},
    {"percall", "the time to its left, divided by the calls"},
    {"cumtime", "time including other operations inside"},
    // Labels in the output of `lotus-tool diagnose`.
    {"workers at a time", "number of threads that build batches at the same time"},
    {"consumer's waits, total", "the sum of the consumer's waits for batches"},
    {"of that, with a later batch ready",
     "share of the waits that receiving batches in any order would save"},
    {"consumer's steps, total", "the sum of the consumer's work on all batches"},
    {"preprocess time per batch, mean", "mean time that a thread needs to build a batch"},
    {"preprocess time per batch, std", "standard deviation: how far batches are from that mean"},
    {"CPU time of the program", "of all threads of its processes, also those without markers"},
    {"of that, in no recorded operation",
     "CPU time outside of all recorded operations, preprocessing and steps"},
    {"CPUs that other programs used, mean",
     "mean number of CPUs that were busy with other programs"},
    {"measured throughput", "batches divided by the run's time, start-up included"},
    {"built and discarded", "batches that were built and never received"},
    {"the workers alone could reach",
     "batches per second if the workers never waited for the consumer"},
    {"stage *", "batches per second of the slowest stage if it never had to wait"},
    {"the consumer alone could reach",
     "batches per second if the consumer never waited for a batch"},
    {"uncertain suggestions", "changes that may gain nothing"},
    {"peak memory", "maximum memory of all processes"},
    {"CPUs used", "mean number of CPUs that the program kept busy"},
    {"try first",
     "suggested changes; those that may gain nothing come last and begin with 'perhaps' and end "
     "with the reason"},
    {"run time", "duration of the run with start-up; predicted for the run with the change"},
    {"likely range", "range that contains the true value 9 times in 10"},
    {"where time went (% of the run)",
     "the critical path: the chain of work, each part waiting for the one before it, that "
     "determines how long the run takes; all columns are in % of the run's time"},
    {"in total", "the row's share of the run's time; the columns to its right are its parts"},
    {"optimize first", "the parts of the critical path, by the gain of making them faster"},
    {"of the run",
     "share of the critical path: the chain of work, each part waiting for the one before "
     "it, that determines how long the run takes"},
    {"if 1.25x faster",
     "effect on the run if this operation or stage were 1.25 times as fast; 'run 2x faster' means "
     "half the run time"},
    {"without it", "effect on the run if this operation or stage took no time"},
    {"time outside of operations",
     "the parts of the critical path that are no operation and no stage"},
    {"not inside any LOTUS_SCOPE", "a worker's time outside of every recorded operation"},
    {"delivery to the consumer",
     "from a batch being ready to the consumer's step: queues, locks and copies"},
    {"the consumer's steps", "the consumer's work on batches"},
    {"workers pause: prefetch is full",
     "workers could have started, but as many batches as allowed were in flight"},
    {"start-up", "until the workers had started and had built their first batch"},
    // Labels in the output of `lotus-tool whatif`.
    {"change",
     "from the first side to the second, in percent; large changes are written as factors: 2x "
     "means twice the value"},
    {"simulated change", "the change of the recorded run that is simulated"},
    {"batches/s", "throughput of the changed run over its run time"},
    {"speed", "the recorded run time divided by the predicted one: 2x means twice as fast"},
    {"in flight", "maximum number of batches dispatched to workers and not yet received"},
    {"batch memory", "size of the batches in flight"},
    // Labels in the output of `lotus-tool compare`.
    {"mean of", "an operation, or a time per batch, as in 'stats'"},
    {"95 % interval",
     "range that contains the true change 19 times in 20; with one run per side, without the "
     "difference between runs of the same program"},
    {"p", "probability of a difference at least this large if the two sides do not differ"},
    {"CPU *", "mean time on a CPU"},
    {"CPU change", "change of the mean CPU time of a call"},
    {"mean *", "mean time of the stage for an item or batch"},
    {"mean change", "change of that mean"},
    {"capacity *", "batches per second if the stage never had to wait"},
    {"capacity change", "change of the capacity"},
    // Labels in the output of `lotus-tool map`.
    {"samples", "number of samples that found it running"},
    {"CPU time", "CPU time that the samples represent"},
    {"self time", "wall-clock time without other operations inside"},
    {"share", "share of all samples, or of the samples of the operation"},
    {"function|module", "the function, and the program or library that contains it"},
    {"seen in runs", "number of runs in which it was seen"},
    {"value", "what the collector measured"},
    {"per operation", "a hardware counter, summed over the functions of each operation"},
};

/// Whether the label of a table fits the label `known` of an entry: the two are equal or, if
/// `known` ends in `*`, `label` begins with the text before the `*`.
bool fits(std::string_view label, std::string_view known) {
  if (known.empty() || known.back() != '*') return label == known;
  known.remove_suffix(1);
  return label.size() > known.size() && label.substr(0, known.size()) == known;
}

}  // namespace

std::string_view meaning_of(std::string_view label) {
  const auto is_it = [label](const entry& e) { return e.label == label; };
  const auto* at = std::find_if(std::begin(entries), std::end(entries), is_it);
  if (at == std::end(entries)) {
    at = std::find_if(std::begin(entries), std::end(entries),
                      [label](const entry& e) { return fits(label, e.label); });
  }
  return at == std::end(entries) ? std::string_view() : at->meaning;
}

void print_glossary(const std::vector<std::string>& labels, std::ostream& out) {
  if (labels.empty()) return;
  out << '\n' << styled(out, style::bold, "what the labels mean") << '\n';
  for (const std::string& label : labels) {
    const std::string_view meaning = meaning_of(label);
    if (meaning.empty()) continue;
    out << fitted(out, printable_line(label) + ": " + std::string(meaning), "  ", "    ") << '\n';
  }
}

}  // namespace lotus::tool
