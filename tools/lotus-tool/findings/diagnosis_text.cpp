#include "findings/diagnosis_text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "findings/diagnosis.hpp"
#include "findings/gains.hpp"

namespace lotus::tool {
std::string rate(std::optional<double> per_second) {
  return per_second ? three_digits(*per_second) + " batches/s" : "unknown";
}

std::string rate(std::optional<double> per_second, const std::optional<rate_interval>& interval) {
  if (!interval) return rate(per_second);
  const std::string low = three_digits(interval->low);
  return (low == three_digits(interval->high) ? "" : low + " to ") + rate(interval->high);
}

std::string stage_evidence(const diagnosis& d) {
  const auto own = std::find_if(d.stages.begin(), d.stages.end(),
                                [&d](const stage_capacity& s) { return s.name == d.stage; });
  if (own == d.stages.end()) return "making this stage faster shortens the run most";
  const std::string busy = std::to_string(std::lround(100 * own->busy)) + " % of ";
  if (own->shared)
    return printable_line(own->name) + " takes " + busy +
           "the time of the threads that several stages share";
  const std::string threads =
      own->threads == 1 ? "the thread of this stage"
                        : "the " + std::to_string(own->threads) + " threads of this stage";
  std::optional<double> next_per_s = d.pushed ? std::nullopt : d.consumer_capacity;
  std::string next = "the consumer";
  for (const stage_capacity& s : d.stages) {
    if (s.name == own->name || !s.per_s || (next_per_s && *next_per_s <= *s.per_s)) continue;
    next_per_s = s.per_s;
    next = s.name == "preprocess" ? "the workers" : "stage " + printable_line(s.name);
  }
  if (!own->per_s || !next_per_s || *next_per_s <= *own->per_s) {
    return threads + (own->threads == 1 ? " works " : " work ") + busy + "the time";
  }
  return threads + " can process " + rate(own->per_s) + ". The next limit, of " + next + ", is " +
         rate(next_per_s);
}

std::string next_limit_text(const diagnosis& d, const suggestion& m, bool of_several) {
  constexpr double nearly = 0.9;
  const bool faster_consumer = m.change.step < 1;
  const std::optional<double> most_per_s =
      faster_consumer ? d.preprocessing_capacity : d.consumer_capacity;
  const bool faster_work = faster_consumer || m.change.faster.size() == 1;
  if (!faster_work || d.pushed || !most_per_s || m.would_be.gain > 1.9 ||
      m.would_be.per_s < nearly * *most_per_s || m.would_be.per_s > *most_per_s / nearly) {
    return {};
  }
  const std::string next = !faster_consumer          ? "the consumer"
                           : d.slowest_stage.empty() ? "the workers"
                                                     : "stage " + printable_line(d.slowest_stage);
  return (of_several ? "With the first change, " : "With this change, ") + next +
         " would be the bottleneck, at " + rate(most_per_s) + '.';
}

}  // namespace lotus::tool
