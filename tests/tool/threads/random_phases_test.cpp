// Tests with random programs which phases a run has. A planted program says for each 36th of the
// run which group used the CPUs most.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "support.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/run_phases.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

constexpr std::size_t slices = 36;
constexpr int groups = 3;
constexpr int slice_ms = 100;
constexpr int interval_ms = 4;
constexpr int idle_samples = 2;  ///< 8 % of a CPU

/// A program by slices: how often each group was seen running in each of two functions.
struct planted_phases {
  struct slice {
    int samples[groups][2] = {};
    int of(int group) const { return samples[group][0] + samples[group][1]; }
  };
  std::vector<slice> all{slices};
};

planted_phases random_phases(dice& random) {
  planted_phases of;
  int left = 0;
  int busy = 0;
  for (planted_phases::slice& one : of.all) {
    if (left-- == 0)
      left = random.below(random.one_in(2) ? 12 : 4), busy = random.below(groups + 1);
    for (int group = 0; group < groups; ++group) {
      for (int& count : one.samples[group]) {
        count = group == busy ? 2 + random.below(12) : random.one_in(2) ? random.below(2) : 0;
      }
    }
  }
  return of;
}

thread_samples recorded(const planted_phases& of) {
  built_samples to(slice_ms * static_cast<int>(slices));
  to.interval_ns = ms_in_ns(interval_ms);
  for (int group = 0; group < groups; ++group) {
    const std::string start = group == 0 ? "main" : "loop" + std::to_string(group);
    to.thread(500);
    for (int function = 0; function < 2; ++function) {
      const call_line calls{"step" + std::to_string(function), 0};
      thread_sample& sample =
          to.runs(static_cast<std::size_t>(group), {calls, {"body_of_" + start, 0}, {start, 0}}, 0,
                  group == 0 ? main_begins : thread_begins);
      for (std::size_t i = 0; i < slices; ++i) {
        const int count = of.all[i].samples[group][function];
        for (int k = 0; k < count; ++k) {
          // The last sample of a run can be taken when it ends.
          const bool is_end = i + 1 == slices && k == 0;
          const int in_slice = is_end ? slice_ms : slice_ms * k / 14;
          sample.at_ms.push_back(
              static_cast<std::uint32_t>(slice_ms * static_cast<int>(i) + in_slice));
        }
      }
      sample.count = 2 * sample.at_ms.size();  // each time stands for two samples
      if (sample.count == 0) sample.count = 1;
    }
  }
  return std::move(to);
}

/// Returns for each slice the letter of the phase's group; '.' if it is idle.
std::string expected_phases(const planted_phases& of) {
  std::string letters;
  for (const planted_phases::slice& one : of.all) {
    int most = 0;
    for (int group = 1; group < groups; ++group) {
      if (one.of(group) > one.of(most)) most = group;
    }
    letters += 2 * one.of(most) <= idle_samples ? '.' : static_cast<char>('a' + most);
  }
  // Short phases belong to the longer one next to them, the shortest first.
  for (;;) {
    std::vector<std::string> runs;
    for (const char letter : letters) {
      if (runs.empty() || runs.back().front() != letter) runs.emplace_back();
      runs.back() += letter;
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].size() < runs[at].size()) at = i;
    }
    if (runs.size() == 1 || runs[at].size() >= slices / 12) return letters;
    const std::size_t before = at > 0 ? runs[at - 1].size() : 0;
    const std::size_t after = at + 1 < runs.size() ? runs[at + 1].size() : 0;
    runs[at].assign(runs[at].size(), runs[before >= after ? at - 1 : at + 1].front());
    letters.clear();
    for (const std::string& run : runs) letters += run;
  }
}

bool near(double a, double b) {
  return std::abs(a - b) < 1e-9;
}

std::string fault_in(const planted_phases& of) {
  const thread_samples samples = recorded(of);
  const named_stacks stacks(samples);
  const std::vector<thread_activity> found_groups = activity_of(samples, stacks);
  std::map<std::size_t, char> letter_of;
  for (std::size_t i = 0; i < found_groups.size(); ++i) {
    letter_of[i] =
        found_groups[i].is_main ? 'a' : static_cast<char>('a' + found_groups[i].start.back() - '0');
  }
  const std::string letters = expected_phases(of);
  std::size_t begin = 0;
  for (const run_phase& phase : phases_of(samples, stacks, found_groups)) {
    const std::size_t end = std::min(letters.find_first_not_of(letters[begin], begin), slices);
    if (!near(phase.begin_s, 0.1 * static_cast<double>(begin))) return "begin";
    if (!near(phase.end_s, 0.1 * static_cast<double>(end))) return "end";
    int all = 0;
    int own[2] = {};
    for (std::size_t i = begin; i < end; ++i) {
      for (int group = 0; group < groups; ++group) {
        all += of.all[i].of(group);
        if (letters[begin] != 'a' + group) continue;
        for (int k = 0; k < 2; ++k) own[k] += of.all[i].samples[group][k];
      }
    }
    const double time_s = 0.1 * static_cast<double>(end - begin);
    if (!near(phase.cpus, 2e-3 * interval_ms * all / time_s)) return "CPUs";
    if (phase.group.has_value() != (letters[begin] != '.')) return "an idle phase";
    if (phase.group) {
      if (letter_of[*phase.group] != letters[begin]) return "group";
      if (!near(phase.share, 1.0 * (own[0] + own[1]) / all)) return "share";
      const std::string most = own[1] > own[0] ? "step1" : "step0";
      if (own[0] != own[1] && phase.function.function != most) return "function";
    }
    begin = end;
  }
  return begin == slices ? "" : "the last phase";
}

}  // namespace

TEST_CASE("random runs have the planted phases, with the groups that used the CPUs most") {
  dice random(360);
  for (int i = 0; i < support::rounds(2'000); ++i) {
    const planted_phases of = random_phases(random);
    const std::string fault = fault_in(of);
    if (fault.empty()) continue;
    FAIL_CHECK("run " << i << ": " << fault << " of " << expected_phases(of));
    if (i > 100) break;
  }
}
