#include "imagenet/batch_loader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <lotus/lotus.hpp>
#include <numeric>

#include "imagenet/batch_slots.hpp"
#include "imagenet/random_source.hpp"
#include "imagenet/workers.hpp"

namespace imagenet {

batch_loader::batch_loader(workers& crew, std::size_t worker_count, const batch_slots& slots)
    : crew_{crew}, worker_count_{worker_count}, slots_{slots}, free_slots_(slots.count()) {
  std::iota(free_slots_.begin(), free_slots_.end(), std::size_t{0});
}

void batch_loader::begin_epoch(std::size_t sample_count, std::uint64_t epoch, std::uint64_t seed) {
  order_.resize(sample_count);
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  random_source random{seed, epoch};
  shuffle(order_, random);
  epoch_ = epoch;
  given_ = 0;
  next_ = 0;
  for (std::size_t i = 0; i < max_tasks(worker_count_); ++i) give_next_task();
}

batch_slot batch_loader::next() {
  if (in_hand_) free_slots_.push_back(*in_hand_);
  const std::size_t slot = slot_of_next();
  in_hand_ = slot;
  give_next_task();
  LOTUS_BATCH_CONSUMED(next_);
  ++next_;
  return slots_[slot];
}

std::size_t batch_loader::slot_of_next() {
  if (const auto found = early_.find(next_); found != early_.end()) {
    const std::size_t slot = found->second;
    early_.erase(found);
    return slot;
  }
  LOTUS_BATCH_WAIT(next_);
  for (;;) {
    const batch_task made = crew_.take();
    if (made.number == next_) return made.slot;
    LOTUS_BATCH_ARRIVED(made.number);
    ++out_of_order_;
    early_.emplace(made.number, made.slot);
  }
}

std::size_t batch_loader::batch_count() const {
  return (order_.size() + slots_.batch_size() - 1) / slots_.batch_size();
}

void batch_loader::give_next_task() {
  if (given_ == batch_count()) return;
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  const std::size_t begin = given_ * slots_.batch_size();
  const std::size_t count = std::min(slots_.batch_size(), order_.size() - begin);
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
  const batch_slot batch = slots_[slot];
  std::copy_n(first, count, batch.samples);
  batch.size->wanted = static_cast<std::uint32_t>(count);
  LOTUS_BATCH_QUEUED(given_);
  crew_.give(worker_count_ == 0 ? 0 : given_ % worker_count_, {epoch_, given_, slot});
  ++given_;
}

}  // namespace imagenet
