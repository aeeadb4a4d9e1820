#include "cli/glossary.hpp"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/colours.hpp"
#include "base/line_width.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

struct entry {
  std::string_view label;  ///< with a star at its end: also with a name of the user's behind it
  std::string_view meaning;
};

constexpr entry entries[] = {
    // stats
    {"operation", "what a scope in the program is named"},
    {"aggregated", "an operation that was counted and summed, not recorded call by call"},
    {"aggregated, within the above", "counted and summed only; part of what stands above"},
    {"per batch",
     "preprocess: making it; wait: the consumer's for it, 0 where it came out of order; "
     "delay: from ready to taken; step: the consumer's work with it"},
    {"count", "how many there were"},
    {"count *", "how many there were"},
    {"mean", "the sum, divided by how many there were"},
    {"std", "standard deviation: how far values typically lie from the mean"},
    {"std/mean", "standard deviation, as a share of the mean"},
    {"min", "the shortest, or least"},
    {"p25", "a quarter took at most this"},
    {"p50", "half took at most this: the median"},
    {"p75", "three quarters took at most this"},
    {"p90", "90 of 100 took at most this"},
    {"p99", "99 of 100 took at most this"},
    {"max", "the longest, or most"},
    {"iqr", "p75 less p25: where the middle half lies"},
    {"> 500 ms", "the share that took longer"},
    {"< 10 ms", "the share that took less"},
    {"< 100 us", "the share that took less"},
    {"total", "the sum of all, of threads side by side too"},
    {"self", "the sum, without what other operations inside took"},
    {"cpu", "of the sum, while the thread ran on a CPU"},
    {"run queue", "of the sum, while the thread could run and got no CPU"},
    {"blocked",
     "of an operation: off the CPU, waiting for a disk, a lock, a queue; of a stage: had "
     "finished, and nowhere to put it"},
    {"blocked for", "of the sum, off the CPU and waiting: for a disk, a lock, a queue"},
    {"worker", "the number of the thread's log"},
    {"run", "its folder"},
    {"batches", "how many the consumer took, without those that were skipped"},
    {"preprocess", "making a batch, mean"},
    {"wait", "the consumer's for a batch, mean; 0 where it came out of order"},
    {"delay", "of a batch from ready to taken, mean"},
    {"step", "the consumer's work with a batch, mean"},
    {"out of order", "batches that were ready before the one that was waited for"},
    {"stage", "a part of making a batch or item, by threads of its own"},
    {"at once", "how many items or batches the stage works on at the same time"},
    {"could make", "batches a second, were the stage never kept waiting"},
    {"busy", "the share of its threads' time in which they worked"},
    {"starved", "the share in which there was nothing to work on"},
    {"asynchronous", "an operation that pauses and goes on, from its first piece to its last"},
    {"running", "of an asynchronous operation: its pieces; else the share of time on a CPU"},
    {"counter", "a number that the program told over time"},
    {"mean over time", "each value counts as long as it stood"},
    {"last", "the value at the end"},
    {"memory",
     "an operation that allocated, of a run with 'run --memory'; of whatif: what lies "
     "ready, in bytes"},
    {"calls", "how often it was called"},
    {"allocated/call", "bytes that a call's thread allocated meanwhile, mean"},
    {"most", "bytes, in the call that allocated most"},
    {"allocations/call", "how many allocations a call made, mean"},
    {"freed/call", "bytes that its thread freed meanwhile, whoever allocated them"},
    {"retained/call", "of what was allocated in the call, not freed by its thread at its end"},
    {"peak", "by which its thread's memory had grown at most within a call"},
    {"held", "at the end of the run, of what was allocated in it, freed by nobody"},
    {"ncalls", "calls; of recursive ones also how many were not made by itself"},
    {"tottime", "time without what other operations inside took"},
    {"percall", "the time left of it, a call"},
    {"cumtime", "time with what other operations inside took"},
    // diagnose
    {"workers at once", "how many threads make batches at the same time"},
    {"made and discarded",
     "batches that no consumer received: prefetched for a pass that was left, or at the end"},
    {"waiting, in all", "the consumer's, for all batches"},
    {"waiting while a later batch lay ready", "the share of it that another order would save"},
    {"consumer's steps, in all", "its work with batches"},
    {"preprocessing a batch, mean", "what making one takes of a thread's time"},
    {"preprocessing a batch, std", "how far batches typically lie from that mean"},
    {"achieved",
     "batches a second over the whole run: from the first dispatch or wait to the end of the last "
     "step, start-up and what lies between epochs included"},
    {"achieved in steady state", "batches a second, from an epoch's first hand-over to its last"},
    {"the workers alone could make", "were they never kept waiting by the consumer"},
    {"stage *", "what the slowest stage could make, were it never kept waiting"},
    {"the consumer alone could take", "were every batch ready when it asks"},
    {"the workers alone, samples/s", "the same, in samples"},
    {"the consumer alone, samples/s", "the same, in samples"},
    {"attack first", "what the run's time is made of, by what making it faster would gain"},
    {"of the run's time",
     "its share of the critical path: the chain of work, each waiting for the "
     "one before, that the run's length is made of"},
    {"no CPU", "the share in which it could have run, but no CPU was free"},
    {"if 1.25x faster", "how many times as fast the run would be, did this take 1.25 times less"},
    {"if free", "how many times as fast the run would be, did this take no time"},
    {"of the run's time, unrecorded", "making batches, in none of the recorded operations"},
    {"of the run's time, hand-over", "from ready to the consumer's step: queues, and the taking"},
    {"of the run's time, step", "the consumer's work"},
    {"of the run's time, prefetch", "workers might have begun, but enough batches were out"},
    {"of the run's time, start-up", "until workers were there and made their first batch"},
    // whatif
    {"change",
     "of whatif: what would be changed; of compare: from the first run to the second, "
     "from twice as much on as a factor"},
    {"run's time", "how long the changed run would take, start-up included"},
    {"batches/s", "that the changed run would make in this time"},
    {"90 % interval", "where that lies, 9 times of 10"},
    {"gain", "the run's time as it was, by that"},
    {"batches out", "given to workers and not yet taken, at most: what lies in memory"},
    // compare
    {"mean of", "an operation, or what is told of batches: as in 'stats'"},
    {"95 % interval",
     "where the change lies, 19 times of 20; of one run a side without what runs of "
     "the same program differ by"},
    {"p", "how likely runs that do not differ are dealt out so unevenly by chance"},
    {"CPU *", "time on a CPU, mean"},
    {"CPU change", "of that mean"},
    {"service *", "what the stage takes for an item or batch, mean"},
    {"service change", "of that mean"},
    {"could make *", "batches a second, were the stage never kept waiting"},
    {"could make change", "of that"},
    // map
    {"samples", "how often it was found running"},
    {"CPU time", "that the samples stand for"},
    {"own wall", "time without what other operations inside took"},
    {"share", "of all samples, or of the operation's"},
    {"function|module", "the function, and the program or library that it is in"},
    {"hits", "in how many runs it was seen"},
    {"value", "what the collector measured"},
    {"per operation", "a hardware number; the functions of each operation taken together"},
};

/// Whether it is the label, or begins like one that a name follows.
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
