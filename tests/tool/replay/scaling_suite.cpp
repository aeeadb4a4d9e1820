#include "tool/replay/scaling_suite.hpp"

#include <cstddef>
#include <iomanip>
#include <ostream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/diagnose/planted_logs.hpp"
#include "tool/json.hpp"
#include "tool/replay/contended_loader.hpp"
#include "tool/tool_test.hpp"

namespace lotus::tool_test {
namespace {

std::vector<contended_loader> all_kinds(bool neighbours) {
  std::vector<contended_loader> all;
  const auto add = [&all](shared_kind kind) -> contended_loader& {
    all.emplace_back().kind = kind;
    return all.back();
  };
  add(shared_kind::free);
  add(shared_kind::lock);
  add(shared_kind::locked_work);
  for (const int channels : {1, 2, 3}) add(shared_kind::device).channels = channels;
  for (const double limit : {150.0, 500.0}) add(shared_kind::rate_limit).limit_per_s = limit;
  if (!neighbours) return all;
  const std::size_t alone = all.size();
  for (std::size_t i = 0; i < alone; ++i) {
    contended_loader crowded = all[i];
    crowded.cpus = 2;
    crowded.neighbours = 2;
    all.push_back(crowded);
  }
  all.push_back(all.back());
  all.back().kind = shared_kind::work;
  return all;
}

class questioner {
 public:
  questioner(const scaling_questions& questions, std::ostream& out) : q_(questions), out_(out) {}

  scaling_score ask_all() {
    for (const contended_loader& kind : all_kinds(q_.neighbours)) {
      for (const double cv : q_.cvs) {
        scaling_score before = score_;
        for (const unsigned seed : q_.seeds) {
          contended_loader loader = kind;
          loader.cv = cv;
          loader.seed = seed;
          ask_recordings(loader);
        }
        contended_loader named = kind;
        named.cv = cv;
        const std::string name = named.name();
        out_ << std::left << std::setw(32) << name.substr(0, name.rfind(',')) << " right "
             << score_.right - before.right << ", silent " << score_.silent - before.silent
             << ", wrong " << score_.wrong - before.wrong << '\n';
      }
    }
    out_ << "all: right " << score_.right << ", silent " << score_.silent << ", wrong "
         << score_.wrong << '\n';
    return score_;
  }

 private:
  void ask_recordings(const contended_loader& loader) {
    for (const int workers : q_.recorded) {
      contended_loader recorded = loader;
      recorded.workers = workers;
      const temp_dir dir;
      recorded.record_into(dir);
      if (!q_.two_levels) {
        ask(recorded, {"whatif", dir.path(), "--json", "-q"}, 0);
        continue;
      }
      for (const int other : q_.recorded) {
        if (other <= workers) continue;
        contended_loader second = loader;
        second.workers = other;
        const temp_dir also;
        second.record_into(also);
        ask(recorded, {"whatif", dir.path(), "--also", also.path(), "--json", "-q"}, other);
      }
    }
  }

  void ask(const contended_loader& recorded, const std::vector<std::string>& words, int also) {
    for (const int workers : q_.asked) {
      if (workers == recorded.workers) continue;
      contended_loader asked = recorded;
      asked.workers = workers;
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--workers", std::to_string(workers)});
      const json answer = parse_json(run_well(all).out);
      if (!answer.has("changes")) {
        ++score_.silent;
        continue;
      }
      const json change = answer["changes"][0];
      judge(recorded, asked, also, change["low"].number(), change["high"].number());
    }
  }

  void judge(const contended_loader& recorded, const contended_loader& asked, int also, double low,
             double high) {
    constexpr double wide = 1.5;
    const double truth = asked.simulate_into(nullptr);
    if (low <= truth && truth <= high) {
      ++(high > wide * low ? score_.silent : score_.right);
      return;
    }
    ++score_.wrong;
    out_ << "  wrong: " << recorded.name();
    if (also > 0) out_ << " and " << also;
    out_ << ", seed " << recorded.seed << ", asked for " << asked.workers << ": " << low << " to "
         << high << ", truth " << truth << " (was " << recorded.simulate_into(nullptr) << ")\n";
  }

  const scaling_questions& q_;
  std::ostream& out_;
  scaling_score score_;
};

}  // namespace

scaling_score ask_about_scaling(const scaling_questions& questions, std::ostream& out) {
  return questioner(questions, out).ask_all();
}

}  // namespace lotus::tool_test
