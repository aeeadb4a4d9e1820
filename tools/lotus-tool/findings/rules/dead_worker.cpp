// A thread built its last batch long before the others did, and nobody received this batch.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "log/folder/log_files.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

struct last_work {
  std::int64_t end_ns = INT64_MIN;
  const batch* of = nullptr;
};

}  // namespace

std::optional<finding> worker_ended_early(const run_facts& f) {
  constexpr double still_early = 0.8;
  const run_batches& batches = f.run.batches;
  // In a part of a run, a thread that builds a batch at the end of the part looks dead.
  if (f.run.files->is_part() || f.d.pushed || f.run_ns <= 0 || batches.epochs().size() > 1)
    return std::nullopt;
  std::map<std::uint64_t, last_work> threads;
  std::int64_t end_ns = INT64_MIN;
  for (const preprocessing_span& s : batches.preprocessing_spans()) {
    if (!s.file || !s.batch) continue;
    last_work& last = threads[f.run.log(*s.file).number];
    if (s.end_ns() > last.end_ns) last = {s.end_ns(), &batches.at(*s.batch)};
    end_ns = std::max(end_ns, s.end_ns());
  }
  std::optional<finding> found;
  std::size_t more = 0;
  for (const auto& [thread, last] : threads) {
    const double at = static_cast<double>(last.end_ns - batches.start_ns()) / f.run_ns;
    // The others must have gone on for a while.
    const bool is_alone = static_cast<double>(end_ns - last.end_ns) > 0.1 * f.run_ns;
    if (at > still_early || !is_alone || batches.left_ns(*last.of)) continue;
    if (found) {
      ++more;
      continue;
    }
    found = {"worker-ended-early",
             {"Thread % ended at % of the run, and its batch % was never received.",
              {name_word{std::to_string(thread)}, share_word{at},
               name_word{std::to_string(last.of->index)}}},
             {"Look for an exception that ends this thread."}};
  }
  if (more > 0) {
    found->because.add(" % did so, too.", {count_word{more, "other thread", "other threads"}});
  }
  return found;
}

}  // namespace lotus::tool
