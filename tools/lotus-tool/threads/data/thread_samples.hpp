// Defines the samples of a program's threads, and reads and writes the file that contains them.
#ifndef LOTUS_TOOL_THREADS_DATA_THREAD_SAMPLES_HPP
#define LOTUS_TOOL_THREADS_DATA_THREAD_SAMPLES_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/diagnostics.hpp"
#include "lotus/waits/wait_reasons.hpp"

namespace lotus::tool {

/// A position in the machine code of a program or library.
struct code_offset {
  std::uint32_t module = 0;  ///< index in thread_samples::modules
  std::uint64_t offset = 0;  ///< position of the instruction in the module's file, in bytes
};

/// A position in the source code of a program.
struct source_place {
  /// Name of the function, such as "Loader::next"; "libz.so.1+0x5a20" if the function at this
  /// address has no name.
  std::string function;
  std::string module;    ///< path of the program or library
  std::string file;      ///< "" without debug information
  int line = 0;          ///< 0: unknown
  bool has_name = true;  ///< whether the function has a name
  // The next members come from the debug information, and are equal for all lines of the function.
  std::string defined_in{};  ///< file that defines the function; "" if unknown
  int defined_at = 0;        ///< first line of the function; 0: unknown
  bool has_object = false;   ///< whether the function is known to be called on an object
  bool is_inlined = false;   ///< whether the compiler put the function into its caller
  /// The function or library that `function` calls and that does the work or waits; "" if it is
  /// `function` itself.
  std::string callee{};

  friend bool operator<(const source_place& a, const source_place& b) {
    return std::tie(a.function, a.module, a.file, a.line, a.callee) <
           std::tie(b.function, b.module, b.file, b.line, b.callee);
  }
  friend bool operator==(const source_place& a, const source_place& b) {
    return !(a < b) && !(b < a);
  }
};

/// The active calls of a thread, the innermost first, as indices in thread_samples::places.
using sampled_stack = std::vector<std::uint32_t>;

struct sampled_process {
  std::uint32_t pid = 0;
  std::string program;  ///< path of the program that the process ran last; "" if unknown
};

/// A thread of the program. `wait_samples` counts the random times at which its state was read.
struct sampled_thread {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t wait_samples = 0;
  std::uint64_t waits = 0;  ///< number of wait samples that found the thread blocked
  /// Time between the first and the last reading of the thread's CPU clocks. `cpu_ns` and
  /// `queue_ns` are the CPU time and the time waiting for a CPU between these readings.
  std::uint64_t span_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t queue_ns = 0;
  std::string name;
  // Times in ns since the beginning of the recording. A thread that was not seen to start or end
  // was there at the beginning or the end.
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;  ///< 0: unknown
  std::uint32_t parent = 0;    ///< id of the thread that started it; 0: unknown
  /// Whether the scheduler ran the thread again after the first of its wait samples. A thread that
  /// it did not run waited all the time for an event that did not happen.
  bool woke = true;
};

/// A sample of one thread, with the number of equal samples.
struct thread_sample {
  std::uint32_t thread = 0;  ///< index in thread_samples::threads
  std::uint32_t stack = 0;   ///< index in thread_samples::stacks
  std::uint64_t count = 0;
  bool waits = false;  ///< whether the thread was blocked; otherwise it used the CPU
  /// When the sample was taken, in ms since the beginning of the recording; only of CPU samples.
  std::vector<std::uint32_t> at_ms{};
  // The members below describe a wait.
  lotus::detail::wait_reason reason = lotus::detail::wait_reason::other;
  /// Address of the lock or condition; 0: none. For a pipe or socket, 2 * descriptor, and 1 more if
  /// the thread writes to it.
  std::uint64_t address = 0;
  /// Id of the thread that held the lock, or for which the sampled thread waited; 0: unknown.
  std::uint32_t holder = 0;
  /// What the thread waited for: the path of a file, "pipe:[4711]", the name of a lock's variable
  /// or of a system call, or "several pipes or sockets"; "" if unknown.
  std::string what;
  /// If the thread waited for one of several things: a text that identifies them, else "".
  std::string polled{};

  /// The pipe or socket, or several of them, as in open_end::what.
  const std::string& channel() const noexcept { return polled.empty() ? what : polled; }
};

/// The states of some threads at one moment.
struct sampled_round {
  static constexpr std::int32_t runs = -1;
  static constexpr std::int32_t waits_unknown = -2;
  struct state {
    std::uint32_t thread = 0;
    std::int32_t sample = runs;  ///< index in thread_samples::samples, of a wait; or a constant
  };
  std::uint32_t at_ms = 0;  ///< since the beginning of the recording
  std::uint32_t alive = 0;  ///< number of threads that existed
  std::vector<state> states;
};

/// A process of the program that has opened an end of a pipe or socket.
struct open_end {
  std::string what;  ///< as thread_sample::channel()
  std::uint32_t pid = 0;
  bool reads = false;
  bool writes = false;
};

struct thread_samples {
  /// CPU time between two samples of a running thread; 0: CPU use was not sampled.
  std::uint64_t interval_ns = 0;
  double wait_samples_per_s = 0;  ///< wait samples per second of all threads together
  double cost = 0;                ///< CPU seconds per second that the sampling took
  /// Mean time in seconds by which wait samples were taken late, because all CPUs were busy. If
  /// samples are late, they contain short waits too often.
  double late_s = 0;
  std::int64_t time_ns = 0;       ///< end of the recording, in ns since 1970
  std::uint64_t duration_ns = 0;  ///< of the recording; 0: unknown
  unsigned cpus = 0;              ///< number of CPUs that the program could use; 0: unknown
  /// CPU time of all processes of the program, also of threads without samples; 0: unknown.
  std::uint64_t all_cpu_ns = 0;
  std::uint64_t more_threads = 0;  ///< number of threads that are not in `threads`
  std::vector<std::string> modules;
  /// Build ids of the modules, in hexadecimal digits; "", or missing at the end: unknown.
  std::vector<std::string> builds;
  std::vector<code_offset> places;
  /// The calls at each place, the innermost first: inlined ones, and the function that contains
  /// them. Empty if they have not been looked up.
  std::vector<std::vector<source_place>> names;
  std::vector<sampled_stack> stacks;
  std::vector<sampled_process> processes;
  std::vector<sampled_thread> threads;  ///< the first thread is the program's main thread
  std::vector<thread_sample> samples;
  std::vector<sampled_round> rounds;  ///< a random selection of all rounds, by time
  std::vector<open_end> ends;
};

/// Reads a word of wait_reason_words. Returns false if `word` is not one of these words.
bool read_reason(std::string_view word, lotus::detail::wait_reason& reason);

/// Returns the lines of a file about modules, places and the calls at them.
std::string code_text(const thread_samples& samples);

/// Parses one of these lines. Returns false if it is another one, or damaged.
/// @param texts  the texts that were read so far.
bool take_code_line(std::string_view line, std::vector<std::string>& texts, thread_samples& to);

/// Returns the text of a file that contains the samples.
std::string thread_samples_text(const thread_samples& samples);

bool has_thread_samples(const std::string& dir);

/// Reads the file of samples in a run's folder; if there are several files, the newest. Reports
/// damaged lines. Throws input_error if there is no file.
thread_samples read_thread_samples(const std::string& dir, diagnostic_log& diagnostics);

/// Parses the text of a file of samples. Ignores damaged lines.
/// @param path  path of the file, for messages.
thread_samples parse_thread_samples(std::string_view text, const std::string& path,
                                    diagnostic_log& diagnostics);

/// Beginning of the name of a file of samples; the program's process id and a time follow.
inline constexpr std::string_view thread_samples_start = ".lotus_threads_";

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_DATA_THREAD_SAMPLES_HPP
