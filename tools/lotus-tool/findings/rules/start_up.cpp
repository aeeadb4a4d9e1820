// The consumer waits mostly for the first batches of epochs.
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

bool is_start_up(const run_facts& f) {
  const wait_parts& w = f.waits;
  return !f.d.pushed && !f.d.makes_itself && w.share() >= waits_much &&
         w.first_ns >= 0.5 * w.all_ns;
}

/// Whether no thread that built batches of one epoch built batches of the next.
bool are_new_threads(const run_facts& f) {
  std::map<std::uint32_t, std::set<std::uint64_t>> builders;
  for (const batch& b : f.run.batches.all()) {
    for (span_number n = b.first_span; n < b.first_span + b.spans; ++n) {
      const preprocessing_span& s = f.run.batches.preprocessing_spans()[n];
      if (s.file) builders[b.epoch].insert(f.run.log(*s.file).number);
    }
  }
  for (auto at = builders.begin(); at != builders.end(); ++at) {
    const auto next = std::next(at);
    if (next == builders.end()) break;
    for (const std::uint64_t thread : at->second) {
      if (next->second.count(thread) != 0) return false;
    }
  }
  return builders.size() > 1;
}

double share_of(const wait_parts& w) {
  return w.first_ns / (w.all_ns + w.steps_ns);
}

}  // namespace

std::optional<finding> workers_start_anew(const run_facts& f) {
  if (!is_start_up(f) || f.waits.epochs < 2 || !are_new_threads(f)) return std::nullopt;
  // The first epoch alone may have the long start.
  if (f.waits.longest_first_ns > 0.6 * f.waits.first_ns) return std::nullopt;
  return finding{
      "workers-start-anew",
      {"of the % that the consumer waited, % were for the first batches of % epochs: each epoch "
       "starts new workers.",
       {time_word{f.waits.all_ns}, time_word{f.waits.first_ns}, count_word{f.waits.epochs}}},
      {"Keep the workers between epochs."},
      share_of(f.waits),
      verdict::start_up_bound,
      gives_reason | forbids_threads};
}

std::optional<finding> waits_at_start(const run_facts& f) {
  if (!is_start_up(f)) return std::nullopt;
  phrase because{"of the % that the consumer waited, % were for the first batch",
                 {time_word{f.waits.all_ns}, time_word{f.waits.first_ns}}};
  if (f.waits.epochs != 1) {
    because.add(" of %", {count_word{f.waits.epochs, "", "epochs, each"}});
  }
  return finding{"start-up",        std::move(because.add(".")), {},
                 share_of(f.waits), verdict::start_up_bound,     forbids_threads};
}

}  // namespace lotus::tool
