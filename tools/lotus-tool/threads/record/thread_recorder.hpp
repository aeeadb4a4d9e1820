// Samples the threads of a running program, which needs no changes for this.
#ifndef LOTUS_TOOL_THREADS_RECORD_THREAD_RECORDER_HPP
#define LOTUS_TOOL_THREADS_RECORD_THREAD_RECORDER_HPP

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sampling/read/variable_names.hpp"
#include "threads/data/thread_samples.hpp"
#include "threads/record/cpu_sampler.hpp"
#include "threads/record/watched_process.hpp"
#include "threads/unwind/stack_copy.hpp"

namespace lotus::tool {

/// Samples a process with all its threads and descendants from outside: in which functions they use
/// the CPU, and for what they wait. Copies of stacks stay in memory only; result() keeps only the
/// addresses of code in them.
class thread_recorder {
 public:
  thread_recorder(pid_t pid, sampling_start start);
  thread_recorder(const thread_recorder&) = delete;
  thread_recorder& operator=(const thread_recorder&) = delete;
  ~thread_recorder();

  /// Takes the samples that are due. Returns the number of ms after which it must be called again.
  int work();

  /// Returns the error, as an errno, because of which the use of the CPU cannot be sampled; 0 if it
  /// is sampled.
  int cpu_error() const noexcept { return cpu_.error(); }
  /// Returns how many threads are not sampled while they run, because too many files would be open.
  std::size_t left_out() const noexcept { return cpu_.left_out(); }
  /// Returns the name of a process for which the kernel forbids reading the reasons of waits; "" if
  /// there is none. For the threads of such processes, only the CPU time and the time waiting for a
  /// CPU are known.
  const std::string& not_permitted() const noexcept { return not_permitted_; }

  /// Unwinds all stacks and returns the samples. The result contains no threads if nothing was
  /// observed.
  thread_samples result();

 private:
  using clock = std::chrono::steady_clock;

  /// The code of the program that a process runs. If the process calls exec, it gets a new image.
  struct image {
    std::uint32_t pid = 0;
    std::vector<mapped_code> code;
  };
  struct process {
    std::optional<watched_process> watched;  // nullopt after the end of the process
    std::size_t image = 0;                   // index in images_
    std::string program;                     // path
    clock::time_point read_code_at{};
    clock::duration read_code_after{};
    bool forbidden = false;  // whether the kernel forbids reading the reasons of waits
    bool mapped = true;      // whether code may have been mapped since it was read
  };
  struct thread {
    sampled_thread of;
    /// The first reading of the thread's times; zeros if the thread was seen to start.
    std::optional<scheduled_time> first;
    std::uint64_t runs_before = 0;  // scheduled_time::runs at the first wait sample; 0: none yet
    bool own = false;               // whether the Lotus library started the thread
    bool is_new = false;            // whether the thread started during the recording
    clock::time_point seen{};       // when it was last listed
  };
  struct counted_wait {
    std::uint64_t count = 0;
    std::int32_t index = 0;
  };
  /// A sample whose stack is not unwound yet.
  struct raw_sample {
    thread_sample of;
    std::size_t image = 0;
    stack_copy stack;
  };
  /// A random selection of at most `capacity` of all samples (Vitter, Random sampling with a
  /// reservoir, 1985, algorithm R).
  class reservoir {
   public:
    /// Returns where to store the next sample; null if it is not selected.
    raw_sample* next(std::mt19937_64& random);
    std::vector<raw_sample>& all() noexcept { return kept_; }
    /// Returns the number of samples, also of those that were not selected.
    std::uint64_t seen() const noexcept { return seen_; }

   private:
    static constexpr std::size_t capacity = 2048;
    std::vector<raw_sample> kept_;
    std::uint64_t seen_ = 0;
  };

  /// Identifies waits that are probably equal, without unwinding their stacks: by the thread, the
  /// reason, the object, and the registers pc and sp.
  using wait_key = std::tuple<std::size_t, lotus::detail::wait_reason, std::uint64_t, std::uint64_t,
                              std::uint64_t>;
  static wait_key key_of(const raw_sample& wait) noexcept;

  static std::string variable_at(const image& of, std::uint64_t address, variable_names& names);
  void count_unselected_waits();
  std::uint64_t since_begin(clock::time_point at) const noexcept;
  void take_thread(std::uint32_t pid, std::uint32_t tid, std::uint32_t parent, std::uint64_t at_ns,
                   bool ends);
  using open_ends = std::map<std::uint32_t, open_end>;  // by process
  std::optional<open_ends> ends_of(std::uint32_t pid, const std::string& what);
  std::optional<open_ends> ends_of_any(std::uint32_t pid, const std::vector<std::string>& polled);
  void find_ends(std::uint32_t pid, const seen_wait& wait);
  void keep(sampled_round round);
  process& find_process(std::uint32_t pid, std::uint32_t parent = 0);
  std::size_t thread_index(std::uint32_t pid, std::uint32_t tid);
  void drain();
  void find_children();
  void refresh_code(process& of);
  void list_threads();
  void round();
  void sample_wait(std::uint32_t pid, std::uint32_t tid, sampled_round& round);
  void read_times(const process& of, thread& to, std::uint32_t tid) const;
  void add_rounds(const std::vector<std::int32_t>& sample_of_wait, thread_samples& to);

  cpu_sampler cpu_;
  std::map<std::uint32_t, process> processes_;
  std::vector<image> images_;
  std::vector<thread> threads_;
  // Index in threads_ by pid and tid.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index_of_;
  reservoir running_;
  reservoir waiting_;
  raw_sample* next_running_ = nullptr;
  // For each key: the number of waits. It includes the waits that the reservoir does not select,
  // because shares are more precise if they are computed from all samples.
  std::map<wait_key, counted_wait> counted_waits_;
  std::vector<sampled_round> kept_rounds_;  // at random, with indices of counted_waits_
  /// When the processes that have opened a pipe or socket are looked for next, and how long after
  /// that.
  struct next_look {
    clock::time_point at{};
    clock::duration pause = std::chrono::milliseconds(30);
  };
  std::map<std::string, next_look> next_ends_;
  std::map<std::pair<std::string, std::uint32_t>, open_end> ends_;
  std::map<std::string, std::string> names_of_peers_;  // the key is a socket, as open_end::what
  std::mt19937_64 random_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> alive_;  // pid and tid of each thread
  std::string not_permitted_;
  std::uint64_t wait_samples_ = 0;
  std::uint64_t rounds_ = 0;
  double late_s_ = 0;  // sum of the times by which rounds began late
  clock::time_point begun_;
  clock::time_point next_round_;
  clock::time_point next_list_;
  clock::time_point next_interval_;
  clock::time_point next_children_;
  double mean_pause_s_ = 0.01;
  double cost_per_round_s_ = 50e-6;  // moving average over the rounds
  std::uint64_t cpu_at_begin_ns_ = 0;
  sampling_start start_;
  std::uint64_t children_at_begin_ns_ = 0;  // CPU time of this process's children that have ended
  std::uint64_t more_threads_ = 0;
  unsigned cpus_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_THREAD_RECORDER_HPP
