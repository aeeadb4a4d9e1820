// A chain of stages whose truth is known: each event of it is played, with bounded queues in
// between.
#ifndef LOTUS_TESTS_SIMULATED_PIPELINE_HPP
#define LOTUS_TESTS_SIMULATED_PIPELINE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "model/run_data.hpp"

namespace lotus::tool_test {

struct simulated_stage {
  std::size_t slots = 1;
  std::int64_t service_ns = 0;
  double spread = 0;             ///< service times are even between 1 - spread and 1 + spread times
  std::size_t room = 1;          ///< of the queue behind it
  bool new_thread_each = false;  ///< a thread an item, instead of one a slot
};

/// What a stage truly did, from its first start to its last end; of the first stage to its last
/// start. Times in ns, summed over its slots.
struct stage_truth {
  double busy_ns = 0;
  double starved_ns = 0;
  double blocked_ns = 0;
  double service_ns = 0;
  std::size_t served = 0;

  double share(double ns) const { return ns / (busy_ns + starved_ns + blocked_ns); }
};

/// Plays `items` batches through the stages to a consumer that takes `step_ns` for each.
class simulated_pipeline {
 public:
  simulated_pipeline(std::vector<simulated_stage> stages, std::int64_t step_ns, std::size_t items,
                     unsigned seed)
      : stages_(std::move(stages)), step_ns_(step_ns), items_(items), random_(seed) {
    truth.resize(stages_.size());
    queues_.resize(stages_.size());
    servers_.resize(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) servers_[s].resize(stages_[s].slots);
    first_ns_.assign(stages_.size(), -1);
    latency_ns.resize(items);
    service_ns.resize(items);
    first_start_ns_.resize(items);
    play();
  }

  /// As its logs would be read: threads as log numbers, stages named S0, S1, ...
  tool::run_data run() const {
    tool::run_data run;
    for (std::size_t s = 0; s < stages_.size(); ++s) run.names.id("S" + std::to_string(s));
    tool::batch_records records(consumer.begin(), consumer.end());
    run.batches = tool::run_batches(records, spans, {});
    return run;
  }

  std::vector<stage_truth> truth;
  std::vector<tool::stage_span> spans;
  std::vector<tool::batch_record> consumer;
  std::vector<std::int64_t> latency_ns;  ///< by item
  std::vector<std::int64_t> service_ns;
  std::int64_t end_ns = 0;

 private:
  struct server {
    enum class state { idle, busy, holding } is = state::idle;
    std::int64_t until_ns = 0;
    std::size_t item = 0;
  };

  void play() {
    while (consumed_ < items_) {
      while (settle()) {
      }
      std::int64_t next_ns = INT64_MAX;
      for (const auto& stage : servers_) {
        for (const server& one : stage) {
          if (one.is == server::state::busy) next_ns = std::min(next_ns, one.until_ns);
        }
      }
      if (stepping_) next_ns = std::min(next_ns, step_until_ns_);
      account(next_ns - now_ns_);
      now_ns_ = next_ns;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        for (server& one : servers_[s]) {
          if (one.is == server::state::busy && one.until_ns == now_ns_) {
            one.is = server::state::holding;
            if (s + 1 == stages_.size()) latency_ns[one.item] = now_ns_ - first_start_ns_[one.item];
          }
        }
      }
      if (stepping_ && step_until_ns_ == now_ns_) {
        stepping_ = false;
        wait_from_ns_ = now_ns_;
      }
    }
    end_ns = now_ns_;
  }

  /// Moves what can be moved at this moment; false when nothing could.
  bool settle() {
    if (!stepping_ && !queues_.back().empty()) {
      const auto item = static_cast<std::int64_t>(queues_.back().front());
      queues_.back().pop_front();
      consumer.push_back(
          {wait_from_ns_, now_ns_ - wait_from_ns_, item, {}, 0, tool::record_kind::wait});
      consumer.push_back({now_ns_, 1000, item, {}, 0, tool::record_kind::consumed});
      ++consumed_;
      stepping_ = true;
      step_until_ns_ = now_ns_ + step_ns_;
      return true;
    }
    for (std::size_t s = stages_.size(); s-- > 0;) {
      for (server& one : servers_[s]) {
        if (one.is == server::state::holding && queues_[s].size() < stages_[s].room) {
          queues_[s].push_back(one.item);
          one.is = server::state::idle;
          return true;
        }
      }
      // The slot that was idle longest: one that never worked would stand in no log.
      std::size_t longest = servers_[s].size();
      for (std::size_t k = 0; k < servers_[s].size(); ++k) {
        if (servers_[s][k].is != server::state::idle) continue;
        if (longest == servers_[s].size() ||
            servers_[s][k].until_ns < servers_[s][longest].until_ns) {
          longest = k;
        }
      }
      if (longest != servers_[s].size() && start(s, longest)) return true;
    }
    return false;
  }

  bool start(std::size_t s, std::size_t k) {
    std::size_t item = made_;
    if (s == 0) {
      if (made_ == items_) return false;
      first_start_ns_[made_++] = now_ns_;
    } else {
      if (queues_[s - 1].empty()) return false;
      item = queues_[s - 1].front();
      queues_[s - 1].pop_front();
    }
    const simulated_stage& stage = stages_[s];
    std::uniform_real_distribution<double> factor(1 - stage.spread, 1 + stage.spread);
    const auto ns = static_cast<std::int64_t>(static_cast<double>(stage.service_ns) *
                                              (stage.spread > 0 ? factor(random_) : 1));
    server& one = servers_[s][k];
    one = {server::state::busy, now_ns_ + ns, item};
    const std::size_t thread = stage.new_thread_each ? 1000 * (s + 1) + item : 10 * (s + 1) + k;
    spans.push_back({now_ns_, ns, static_cast<std::int64_t>(item), static_cast<std::uint32_t>(s),
                     tool::file_id(thread)});
    service_ns[item] += ns;
    truth[s].service_ns += static_cast<double>(ns);
    ++truth[s].served;
    if (first_ns_[s] < 0) first_ns_[s] = now_ns_;
    return true;
  }

  void account(std::int64_t length_ns) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::size_t busy = 0;
      std::size_t holding = 0;
      for (const server& one : servers_[s]) {
        busy += one.is == server::state::busy ? 1U : 0U;
        holding += one.is == server::state::holding ? 1U : 0U;
      }
      if (first_ns_[s] < 0 || (busy == 0 && truth[s].served == items_)) continue;
      const auto add = [&](double& to, std::size_t n) {
        to += static_cast<double>(length_ns) * static_cast<double>(n);
      };
      add(truth[s].busy_ns, busy);
      if (s == 0 && truth[s].served == items_) continue;
      add(truth[s].blocked_ns, holding);
      add(truth[s].starved_ns, servers_[s].size() - busy - holding);
    }
  }

  std::vector<simulated_stage> stages_;
  std::int64_t step_ns_;
  std::size_t items_;
  std::mt19937 random_;
  std::vector<std::deque<std::size_t>> queues_;  // behind each stage
  std::vector<std::vector<server>> servers_;
  std::vector<std::int64_t> first_ns_;
  std::vector<std::int64_t> first_start_ns_;
  std::int64_t now_ns_ = 1'000'000'000;
  std::int64_t wait_from_ns_ = now_ns_;
  std::int64_t step_until_ns_ = 0;
  std::size_t made_ = 0;
  std::size_t consumed_ = 0;
  bool stepping_ = false;
};

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_SIMULATED_PIPELINE_HPP
