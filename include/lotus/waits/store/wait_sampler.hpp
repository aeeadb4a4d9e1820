// Records at random times what the threads of a recording wait for.
//
// The wait sampler has a thread of its own, because samples show how threads spend their time only
// if they are taken at random times. The drain thread works at regular times and may wait for the
// disk.
#ifndef LOTUS_WAITS_STORE_WAIT_SAMPLER_HPP
#define LOTUS_WAITS_STORE_WAIT_SAMPLER_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/base/process_threads.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/background_thread.hpp"
#include "lotus/store/producers.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/session_clock.hpp"
#include "lotus/waits/exponential_pause.hpp"
#include "lotus/waits/stack_words.hpp"
#include "lotus/waits/wait_file.hpp"
#include "lotus/waits/wait_objects.hpp"
#include "lotus/waits/wait_reasons.hpp"
#include "lotus/waits/wait_sample.hpp"
#include "lotus/waits/wait_stacks.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Samples the recording threads of this process at random times. For each thread that is found
/// waiting, writes what it waits for to the file of waits, and its stack to the file of stacks. The
/// sampler's thread has a budget of CPU time. Call begin(), end() and record_moment() while the
/// mutex round_ of the recorder (store/recorder.hpp) is locked, keep_running() on the drain thread,
/// and become_child() in a forked child.
class LOTUS_DETAIL_PER_MODULE wait_sampler {
 public:
  wait_sampler(run_files& files, session_clock& clock, const producer_list& producers) noexcept
      : files_{files}, clock_{clock}, producers_{producers} {}

  /// Begins to sample, at the start of a recording.
  void begin(const options& chosen) noexcept {
    const locked hold{lock_};
    samples_per_s_ = chosen.wait_samples_per_s < 0
                         ? 0
                         : static_cast<std::uint32_t>(chosen.wait_samples_per_s < max_samples_per_s
                                                          ? chosen.wait_samples_per_s
                                                          : max_samples_per_s);
    const std::uint64_t keep_bytes = chosen.keep_bytes;
    folder_.mode = chosen.file_mode & 0666U;
    folder_.max_bytes = keep_bytes == 0              ? 0
                        : keep_bytes / 32 > min_kept ? keep_bytes / 32
                                                     : min_kept;
    begin_locked();
  }

  /// Ends sampling, at the end of a recording. Nothing is written afterwards.
  void end() noexcept {
    const locked hold{lock_};
    samples_per_s_ = 0;
    file_.close();
    stacks_.close();
    calls_.close_all();
  }

  /// Starts the sampler's thread if it is not running. The drain thread calls this function, so
  /// that neither the start of a recording nor a fork must wait for the creation of a thread.
  void keep_running() noexcept {
    if (!awake_.exchange(true, std::memory_order_relaxed)) thread_.wake();
  }

  /// Called in a forked child, which has no sampler thread and must not use the parent's file:
  /// begins again, with the threads of the child.
  void become_child() noexcept {
    file_.close();
    calls_.close_all();
    thread_.forget();
    awake_.store(false, std::memory_order_relaxed);
    begin_locked();
  }

  /// Records what every thread of the process does now, and the stacks of those that wait. Does
  /// nothing if sampling is off.
  LOTUS_DETAIL_COLD void record_moment() noexcept {
    const mapped<batch_wait[max_at_moment]> memory;
    if (!memory) return;
    batch_wait(&batch_waits)[max_at_moment] = *memory;
    std::size_t count = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      const std::uint64_t since =
          p.attached ? p.ring->waiting_since.load(std::memory_order_relaxed) : 0;
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (since != 0 && tid != 0 && count < max_at_moment) batch_waits[count++] = {tid, since};
    });
    const locked hold{lock_};
    if (samples_per_s_ == 0 || !shows_calls()) return;
    find_folder();
    const auto ns_of = [this](std::uint64_t ticks) {
      return clock_.converter().convert(ticks, ticks).start_ns;
    };
    stacks_.write_moment(ns_of(clock_.ticks()), folder_);
    std::size_t threads = 0;
    for_each_other_thread([&](pid_t id) {
      if (threads++ >= max_at_moment) return;
      const auto tid = static_cast<std::uint32_t>(id);
      int error = 0;
      clear_wait();
      const sample_result found = sample_thread(tid, calls_, wait_, &stacks_.stack(), error);
      if (found == sample_result::gone || found == sample_result::forbidden) return;
      const auto* const batch = std::find_if(batch_waits, batch_waits + count,
                                             [&](const batch_wait& w) { return w.tid == tid; });
      char name[32];
      read_thread_name(id, name);
      for (char& c : name) {
        if (c == ',' || (c != '\0' && static_cast<unsigned char>(c) < 0x20)) c = '?';
      }
      stacks_.write_state(tid, found == sample_result::waits ? &wait_ : nullptr,
                          batch == batch_waits + count ? 0 : ns_of(batch->since_ticks), name,
                          folder_);
    });
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::int32_t max_samples_per_s = 10'000;
  static constexpr std::uint64_t min_kept = std::uint64_t{256} << 10;
  static constexpr std::uint64_t second_ns = 1'000'000'000;
  static constexpr std::uint32_t max_per_round = 4;
  /// During the first second, up to max_quickened samples per second are taken so much more often,
  /// so that a short run has enough samples. This costs at most 0.8 % of a CPU.
  static constexpr std::uint64_t quick_factor = 4;
  static constexpr std::uint32_t max_quickened = 100;
  static constexpr std::size_t max_at_moment = 512;  ///< maximum number of threads of a moment
  static constexpr std::uint64_t planned_cost_ns = 20'000;  ///< expected CPU time of a sample

  /// A thread that waits for a batch.
  struct batch_wait {
    std::uint32_t tid = 0;
    std::uint64_t since_ticks = 0;
  };

  void begin_locked() noexcept {
    objects_.forget();
    stacks_.begin();
    // If sampling is off, the sampler's thread counts as running, so that keep_running() does not
    // start it.
    awake_.store(samples_per_s_ == 0, std::memory_order_relaxed);
    began_ns_ = clock_ns(CLOCK_MONOTONIC);
    samples_ = 0;
    quick_ = samples_per_s_ <= max_quickened;
    ran_ns_ = 0;
    cost_ns_ = planned_cost_ns;
    bits_.seed(static_cast<std::uint64_t>(began_ns_) * 0x9E3779B97F4A7C15ULL);
  }

  /// Takes a few samples together, because waking up the sampler's thread costs more than a sample.
  /// Returns the pause until the next round in ns; 0: until the next recording.
  LOTUS_DETAIL_COLD std::uint64_t round() noexcept {
    const locked hold{lock_};
    if (samples_per_s_ == 0 || !shows_calls()) return 0;
    std::uint32_t seen[max_per_round] = {};
    std::uint32_t count = 0;
    // Samples at most half of the threads, because more samples of the same moment would add little
    // information.
    do {
      seen[count] = sample(seen, count);
    } while (++count < max_per_round && count < threads_ / 2 && samples_per_s_ != 0);
    if (samples_per_s_ == 0) return 0;
    const auto ran_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    const std::uint64_t used_ns = ran_ns_ == 0 ? planned_cost_ns : (ran_ns - ran_ns_) / count;
    ran_ns_ = ran_ns;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (quick_ && now_ns - began_ns_ > static_cast<std::int64_t>(second_ns)) {
      quick_ = false;
      began_ns_ = now_ns;
      samples_ = 0;
    }
    return exponential_ns(count * next_pause_ns(used_ns), bits_);
  }

  /// Returns the mean pause before the next sample in ns. If samples take more CPU time than
  /// planned, the pause is longer, so that the sampler stays within its budget of CPU time.
  /// @param used_ns  average CPU time of the last samples.
  std::uint64_t next_pause_ns(std::uint64_t used_ns) noexcept {
    cost_ns_ = cost_ns_ - cost_ns_ / 16 + used_ns / 16;
    const std::uint64_t planned_ns = second_ns / samples_per_s_ / (quick_ ? quick_factor : 1);
    const std::uint64_t affordable_ns = planned_ns * cost_ns_ / planned_cost_ns;
    return affordable_ns > planned_ns ? affordable_ns : planned_ns;
  }

  /// Samples a randomly chosen recording thread. Returns the thread's id; 0 if there is none.
  /// @param seen  threads that this round has already sampled; they are not sampled again.
  std::uint32_t sample(const std::uint32_t* seen, std::uint32_t count) noexcept {
    constexpr std::uint32_t max_tries = 8;
    sample_result found = sample_result::gone;
    std::uint32_t tries = 0;
    std::uint32_t tid = 0;
    int error = 0;
    std::uint64_t ticks = 0;
    stack_words* const stack = stacks_.next(bits_);
    clear_wait();
    while (found == sample_result::gone && tries++ < max_tries) {
      tid = random_thread();
      if (tid == 0) return 0;
      if (std::find(seen, seen + count, tid) != seen + count) return tid;
      ticks = clock_.ticks();
      found = sample_thread(tid, calls_, wait_, stack, error);
    }
    ++samples_;
    if (found == sample_result::forbidden) {
      samples_per_s_ = 0;
      if (!forbidden_reported_) {
        say("cannot see what threads wait for: /proc/self/task/%u/syscall: %s", tid,
            std::strerror(error));
      }
      forbidden_reported_ = true;
    }
    if (found == sample_result::waits) write(tid, ticks, tries, stack != nullptr);
    return tid;
  }

  /// Switches sampling off if an emulator hides what threads wait for, and reports that once.
  bool shows_calls() noexcept {
    if (calls_checked_) return true;
    calls_checked_ = shows_own_calls(calls_);
    if (calls_checked_) return true;
    samples_per_s_ = 0;
    if (!forbidden_reported_) {
      say("cannot see what threads wait for: /proc/self/task/*/syscall shows the calls of an "
          "emulator");
    }
    forbidden_reported_ = true;
    return false;
  }

  void clear_wait() noexcept {
    wait_.text_bytes = 0;
    wait_.address = 0;
    wait_.holder = 0;
  }

  /// Looks up the directory and the name for the files of waits and of stacks.
  void find_folder() noexcept {
    files_.put_info_name(folder_.info);
    folder_.directory = files_.directory();
  }

  std::uint32_t random_thread() noexcept {
    threads_ = 0;
    std::uint32_t chosen = 0;
    producers_.for_each([&](const producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      // Each thread has the same chance of being chosen (reservoir sampling).
      if (tid != 0 && bits_.below(++threads_) == 0) chosen = tid;
    });
    return chosen;
  }

  /// Writes a sample of the waiting thread `tid` to the file of waits.
  /// @param ticks  time of the sample.
  /// @param tries  number of threads that were chosen until one was found that had not ended.
  /// @param has_stack  whether the thread's stack was copied.
  void write(std::uint32_t tid, std::uint64_t ticks, std::uint32_t tries, bool has_stack) noexcept {
    if (!file_.ready(folder_.max_bytes)) {
      find_folder();
      if (!file_.begin(folder_)) return;
      objects_.forget();
    }
    lines_.bytes = 0;
    const std::uint32_t object = wait_.text_bytes != 0
                                     ? objects_.of_text({wait_.text, wait_.text_bytes}, lines_)
                                 : wait_.address != 0 ? objects_.of_variable(wait_.address, lines_)
                                                      : 0;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t between_ns = static_cast<std::uint64_t>(now_ns - began_ns_) / samples_;
    const auto ns = clock_.converter().convert(ticks, ticks).start_ns;
    lines_.add("look,%lld,%u,%s,%u,%llx,%u,%llu\n", static_cast<long long>(ns), tid,
               wait_reason_words[static_cast<std::size_t>(wait_.reason)], object,
               static_cast<unsigned long long>(wait_.address), wait_.holder,
               static_cast<unsigned long long>(between_ns * threads_ / tries));
    if (!file_.append(lines_.text, lines_.bytes)) {
      objects_.forget();
    } else if (has_stack) {
      stacks_.write(ns, tid, folder_);
      if (wait_.holder != 0) write_holder(tid, ns);
    }
  }

  /// Writes the stack of the thread that holds the lock for which the thread `tid` waits, or that
  /// the holder is running.
  /// @param ns  time of the sample that has just been written.
  void write_holder(std::uint32_t tid, std::int64_t ns) noexcept {
    const std::uint64_t lock_address = wait_.address;
    const std::uint32_t holder = wait_.holder;
    const auto sample_again = [this](std::uint32_t of, stack_words* stack) {
      int error = 0;
      clear_wait();
      return sample_thread(of, calls_, wait_, stack, error);
    };
    const sample_result found = sample_again(holder, &stacks_.stack());
    if (found != sample_result::waits && found != sample_result::runs) return;
    // The holder's stack explains the wait only if the holder has not released the lock meanwhile.
    // So this function checks that the thread `tid` still waits for the same lock and holder.
    if (sample_again(tid, nullptr) != sample_result::waits || wait_.address != lock_address ||
        wait_.holder != holder) {
      return;
    }
    stacks_.write_holder(ns, tid, found == sample_result::waits, folder_);
  }

  run_files& files_;
  session_clock& clock_;
  const producer_list& producers_;
  std::atomic<bool> awake_{false};
  background_thread thread_{
      "lotus-waits", [](void* self) noexcept { return static_cast<wait_sampler*>(self)->round(); },
      this};

  /// Protects all members below. While it is held, locks of the files and of the clock may be
  /// taken.
  mutex lock_;
  std::uint32_t samples_per_s_ = 0;  ///< planned samples per second; 0: off
  bool calls_checked_ = false;       ///< whether shows_own_calls() was true
  bool forbidden_reported_ = false;
  bool quick_ = false;         ///< whether the first second has not passed yet
  std::int64_t began_ns_ = 0;  ///< since when samples_ counts (CLOCK_MONOTONIC)
  std::uint64_t samples_ = 0;  ///< number of samples since began_ns_
  std::uint32_t threads_ = 0;  ///< number of threads from which the last sampled one was chosen
  std::uint64_t ran_ns_ = 0;   ///< CPU time of the sampler's thread so far
  std::uint64_t cost_ns_ = 0;  ///< moving average of the CPU time of a sample
  random_bits bits_;
  wait_folder folder_;
  wait_file file_;
  call_files calls_;
  wait_objects objects_;
  wait_stacks stacks_;
  thread_wait wait_;
  wait_lines lines_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_STORE_WAIT_SAMPLER_HPP
