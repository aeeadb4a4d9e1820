// Generated from include/lotus by tools/cmake/amalgamate.cmake: do not edit.
// SPDX-License-Identifier: MIT
//
// MIT License
//
// Copyright (c) 2026 The Lotus for C++ authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

// Lotus: shows where a C++ data-preprocessing pipeline spends its time.
//
// Header-only by default. If every file defines LOTUS_COMPILED, the engine is compiled only in the
// file that also defines LOTUS_IMPLEMENTATION; the library target lotus::lotus is built that way.
// One program may mix files built either way.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

// Operations that can be suspended and resumed on any thread.
#ifndef LOTUS_ASYNC_SCOPE_HPP
#define LOTUS_ASYNC_SCOPE_HPP

#include <cstdint>
#include <string_view>

// Compile-time settings, attributes and the inline namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

// The only place that holds the version. CMake parses these three lines: keep other digits out of
// them.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< changes when users must change their code
#define LOTUS_VERSION_MINOR 1  ///< likewise, as long as the major version is zero
#define LOTUS_VERSION_PATCH 0  ///< changes when a release only fixes bugs

#endif  // LOTUS_VERSION_HPP

/// 1 if scopes are recorded: on Linux with x86-64 or aarch64. Elsewhere lotus/lotus.hpp compiles
/// with g++ and clang, but records nothing: start() returns false.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
  #define LOTUS_SUPPORTED 1
#else
  #define LOTUS_SUPPORTED 0
#endif

// Two versions of the library in one program must not share symbols, hence the inline namespace.
#define LOTUS_DETAIL_CONCAT_(a, b) a##b
#define LOTUS_DETAIL_CONCAT(a, b) LOTUS_DETAIL_CONCAT_(a, b)
#define LOTUS_DETAIL_ABI_(major, minor) v##major##_##minor
#define LOTUS_DETAIL_ABI(major, minor) LOTUS_DETAIL_ABI_(major, minor)
#define LOTUS_DETAIL_NAMESPACE_BEGIN \
  namespace lotus {                  \
  inline namespace LOTUS_DETAIL_ABI(LOTUS_VERSION_MAJOR, LOTUS_VERSION_MINOR) {
#define LOTUS_DETAIL_NAMESPACE_END \
  }                                \
  }
// Encloses code of the engine that runs rarely: opening and closing, recovery, limits, snapshots,
// other profilers. A header-only file compiles all of it, which would take most of its compile time
// at -O2; -Og takes half the time and gives less code. It must not enclose anything that runs for
// each record or each scope, or any function that such code needs inlined: g++ does not inline
// across this border. It never raises the optimization or code size of the file; the compiled
// library is compiled once, with its builder's options.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__OPTIMIZE_SIZE__) && !defined(LOTUS_COMPILED)
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN \
    _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")") LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END \
    LOTUS_DETAIL_NAMESPACE_END            \
    _Pragma("GCC pop_options")
#else
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END LOTUS_DETAIL_NAMESPACE_END
#endif

#define LOTUS_DETAIL_STRINGIZE_(x) #x
#define LOTUS_DETAIL_STRINGIZE(x) LOTUS_DETAIL_STRINGIZE_(x)
#define LOTUS_DETAIL_VERSION_STRING           \
  LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MAJOR) \
  "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_PATCH)

#define LOTUS_DETAIL_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define LOTUS_DETAIL_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define LOTUS_DETAIL_ALWAYS_INLINE inline __attribute__((always_inline))
#define LOTUS_DETAIL_COLD __attribute__((noinline, cold))
// Marks functions that the front end calls and the engine defines. LOTUS_IMPLEMENTATION makes its
// file emit them even if that file does not call them. They stay inline, so that they merge with
// those of header-only files of the same program.
#if defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_SEAM __attribute__((used)) inline
#else
  #define LOTUS_DETAIL_SEAM inline
#endif
// Marks a declaration in the front end whose definition is LOTUS_DETAIL_COLD and LOTUS_DETAIL_SEAM.
#define LOTUS_DETAIL_RARE LOTUS_DETAIL_PER_MODULE __attribute__((cold))
// Marks state that each shared object has for itself, and the functions that use it. Without it the
// linker would merge this state between objects built with default visibility, and STB_GNU_UNIQUE
// would keep a plugin from unloading.
#if defined(__ELF__)
  #define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))
#else
  #define LOTUS_DETAIL_PER_MODULE
#endif
// Used inside a function: runs `called`, a function without parameters, when the object is loaded,
// before its static constructors, once for each file that keeps the enclosing function. A variable
// with a constructor would do so in every file that includes the header.
#if defined(__aarch64__)
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "S"
#else
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "i"
#endif
#define LOTUS_DETAIL_CALL_AT_LOAD(called)                      \
  __asm__ volatile(                                            \
      ".pushsection .init_array.00102,\"aw\",%%init_array\n\t" \
      ".balign 8\n\t"                                          \
      ".8byte %c0\n\t"                                         \
      ".popsection"                                            \
      :                                                        \
      : LOTUS_DETAIL_ADDRESS_CONSTRAINT(called))
// Without this, g++ runs the constructor of a template's static member only when the object is
// loaded: a scope in an earlier static constructor would find it uninitialized.
#if defined(__clang__)
  #define LOTUS_DETAIL_CONSTINIT [[clang::require_constant_initialization]]
#elif __GNUC__ >= 10
  #define LOTUS_DETAIL_CONSTINIT __constinit
#else
  #define LOTUS_DETAIL_CONSTINIT
#endif

#endif  // LOTUS_CONFIG_HPP

// Kinds of records, and the 24-byte record of one finished span or event.
#ifndef LOTUS_RECORD_RECORD_HPP
#define LOTUS_RECORD_RECORD_HPP

#include <cstddef>
#include <type_traits>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The kind of a record. The numbers are stored in ring files: append new ones, never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,           ///< value: id of the name
  batch_preprocessed = 2,  ///< value here and in the batch kinds below: the batch number
  batch_wait = 3,
  batch_arrived = 4,  ///< arrived out of order
  batch_consumed = 5,
  batch_queued = 6,
  stage = 7,          ///< value: id of the name, and the number of the batch, item or request
  async_piece = 8,    ///< value: id of the name, and the number of the asynchronous operation
  counter = 9,        ///< value: id of the name; the second word is the counter's new value
  batch_takes = 10,   ///< the second word is the item's number
  off_cpu = 11,       ///< value: ns waited for a CPU; second word: all ns off the CPU
  loader = 12,        ///< value: id of the loader's name for the following records; 0: the default
  stage_number = 13,  ///< value: id of the name; second word: the number of the stage record that
                      ///< follows, which has the same name and begin, and large_stage_number
  arguments = 14,     ///< value: id of the text of the arguments of the operation that begins then
  range = 15,         ///< value: id of the name, and the number at its end or large_stage_number

  // Only for a program whose allocations are counted. Value: id of a name, and a 32-bit number (the
  // maximum if it is larger); the second word is a number of bytes. The first four kinds belong to
  // an operation: they precede its record and have its begin and name; they are left out if both
  // the number and the bytes are 0.
  allocated = 16,  ///< number: of calls
  freed = 17,      ///< number: of calls
  retained = 18,   ///< what was allocated and not freed; number: of blocks
  heap_peak = 19,  ///< maximum growth of the thread's heap
  // The next kinds belong to the process; they have only the ticks of a moment.
  heap = 20,  ///< bytes held; value: name of a unit, and how many units had begun
  held = 21,  ///< bytes held that the operation of this name allocated; number: of the generation's
              ///< first unit
  heap_total = 22,  ///< number 0: bytes allocated so far; number 1: the second word is how many
                    ///< calls

  aggregated = 23,  ///< value: id of a name, and large_stage_number; lasts as long as the self
                    ///< times of the calls aggregated since the previous begin or end of a span
};

/// Ids of names are below 2^24, so that an id and a 32-bit number fit into one value.
inline constexpr unsigned name_id_bits = 24;
/// Stands for all names for which there was no memory, or that exceed the table's limit.
inline constexpr std::uint32_t unnamed_id = (std::uint32_t{1} << name_id_bits) - 1;
/// The number in a stage record if the real one does not fit into 32 bits: a record of kind
/// stage_number precedes it. Also the number of a range whose name ends in no number.
inline constexpr std::uint32_t large_stage_number = 0xFFFF'FFFF;
/// The value of an off_cpu record if the kernel does not report this time.
inline constexpr std::uint64_t run_queue_unknown = (std::uint64_t{1} << 56) - 1;

/// A record's kind and value (a name's id, a number or both) in one word.
class record_tag {
 public:
  static constexpr unsigned value_bits = 56;

  constexpr record_tag() noexcept = default;
  constexpr record_tag(event_kind kind, std::uint64_t value) noexcept
      : word_{(static_cast<std::uint64_t>(kind) << value_bits) |
              (value & ((std::uint64_t{1} << value_bits) - 1))} {}
  constexpr record_tag(event_kind kind, std::uint32_t name, std::uint32_t number) noexcept
      : record_tag{kind, (std::uint64_t{name} << 32) | number} {}

  constexpr event_kind kind() const noexcept {
    return static_cast<event_kind>(word_ >> value_bits);
  }
  constexpr std::uint64_t value() const noexcept {
    return word_ & ((std::uint64_t{1} << value_bits) - 1);
  }
  constexpr bool empty() const noexcept { return word_ == 0; }

 private:
  std::uint64_t word_ = 0;
};

/// One finished span, or an event. Written once, when it ends.
struct record {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;  ///< of an event: equal to begin_ticks, or its second word
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_HPP

// RAII scopes: each records the time from its construction to the end of its block.
#ifndef LOTUS_SCOPE_HPP
#define LOTUS_SCOPE_HPP

#include <atomic>

// Settings that a program can choose when it starts recording.
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

// Holds a callback of the program that receives a folder's path, without needing <functional>.
#ifndef LOTUS_BASE_FOLDER_LISTENER_HPP
#define LOTUS_BASE_FOLDER_LISTENER_HPP

#include <utility>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A callback as all shared objects see it. Its code belongs to the object that created it.
struct kept_function {
  void (*call)(kept_function&, const char* folder);
  void (*destroy)(kept_function&) noexcept;
  std::atomic<std::uint32_t> owners{1};
  std::atomic<std::uint32_t> kept{
      0};  ///< 1 after keep(): four bytes, which every processor can exchange
  kept_function* before = nullptr;  ///< the callback that was kept before this one
};

/// The last callback that this object keeps forever; the earlier ones are linked to it.
LOTUS_DETAIL_PER_MODULE inline std::atomic<kept_function*> newest_kept_function{nullptr};

/// An optional function to be called with the folder as a const std::string&, a std::string_view or
/// a const char*. Copies share the function. Thread safety: that of a std::shared_ptr.
class folder_listener {
 public:
  folder_listener() noexcept = default;
  folder_listener(std::nullptr_t) noexcept {}
  template <class Function,
            class = std::enable_if_t<std::is_invocable_v<std::decay_t<Function>&, const char*>>>
  folder_listener(Function&& function) {
    using held_function = held<std::decay_t<Function>>;
    if (is_nobody(function)) return;
    function_ = new held_function{std::forward<Function>(function)};
  }
  folder_listener(const folder_listener& other) noexcept : function_{other.function_} {
    if (function_ != nullptr) function_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  folder_listener& operator=(folder_listener other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~folder_listener() {
    if (function_ == nullptr) return;
    if (function_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      function_->destroy(*function_);
    }
  }

  explicit operator bool() const noexcept { return function_ != nullptr; }
  void operator()(const char* folder) const { function_->call(*function_, folder); }

  /// Keeps the function forever: another thread may be about to call it, and the shared object with
  /// its code may be unloaded before the last owner is gone.
  void keep() const noexcept {
    if (function_ == nullptr || function_->kept.exchange(1) != 0) return;
    function_->owners.fetch_add(1, std::memory_order_relaxed);
    function_->before = newest_kept_function.load();
    while (!newest_kept_function.compare_exchange_weak(function_->before, function_)) {
    }
  }

 private:
  template <class Function>
  struct held : kept_function {
    template <class From>
    // Constructed only in one place, from a function: it never competes with a copy.
    // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
    explicit held(From&& from)
        : kept_function{call_held, destroy_held}, function{std::forward<From>(from)} {}
    static void call_held(kept_function& of, const char* folder) {
      static_cast<void>(static_cast<held&>(of).function(folder));
    }
    static void destroy_held(kept_function& of) noexcept { delete &static_cast<held&>(of); }

    Function function;
  };

  /// Whether it is a null pointer, or a std::function without a function.
  template <class Function>
  static bool is_nobody(const Function& function) noexcept {
    using type = std::decay_t<Function>;
    if constexpr (std::is_constructible_v<bool, const type&> && !std::is_empty_v<type> &&
                  !std::is_function_v<Function>) {
      return !static_cast<bool>(function);
    } else {
      return false;
    }
  }

  kept_function* function_ = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_FOLDER_LISTENER_HPP

// An owned string for the text options, without needing <string>.
#ifndef LOTUS_BASE_OWNED_TEXT_HPP
#define LOTUS_BASE_OWNED_TEXT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Whether T has c_str(), like std::filesystem::path and strings of other libraries.
template <class T, class = void>
inline constexpr bool is_c_text = false;
template <class T>
inline constexpr bool is_c_text<T, std::enable_if_t<std::is_convertible_v<
                                       decltype(std::declval<const T&>().c_str()), const char*>>> =
    true;

/// Converts from and to any type in which a program holds paths. Shared objects may disagree on
/// std::string's ABI, but this class is the same in all of them, so it can be passed between them.
/// Errors: std::bad_alloc, like std::string. Thread safety: none.
class owned_text {
 public:
  owned_text() noexcept = default;
  owned_text(const char* text) : owned_text{std::string_view{text}, kept{}} {}
  /// @param text  a std::string_view, anything convertible to one (std::string), or anything with
  /// c_str() (std::filesystem::path).
  template <class Text,
            class = std::enable_if_t<!std::is_same_v<Text, owned_text> &&
                                     (std::is_convertible_v<const Text&, std::string_view> ||
                                      is_c_text<Text>)>>
  owned_text(const Text& text) : owned_text{view_of(text), kept{}} {}
  owned_text(const owned_text& other) : owned_text{other.view(), kept{}} {}
  owned_text(owned_text&& other) noexcept { swap(other); }
  owned_text& operator=(const owned_text& other) {
    owned_text copy{other};
    swap(copy);
    return *this;
  }
  /// Also assigns from anything that a constructor accepts.
  owned_text& operator=(owned_text&& other) noexcept {
    swap(other);
    return *this;
  }
  ~owned_text() { delete[] text_; }

  /// Null-terminated.
  const char* c_str() const noexcept { return text_ == nullptr ? short_ : text_; }
  const char* data() const noexcept { return c_str(); }
  std::size_t size() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  operator std::string_view() const noexcept { return view(); }
  /// Converts to a std::string.
  template <class String,
            class = std::enable_if_t<std::is_same_v<decltype(String{}.c_str()), const char*> &&
                                     std::is_constructible_v<String, const char*, std::size_t>>>
  operator String() const {
    return String(c_str(), bytes_);
  }

  friend bool operator==(const owned_text& a, std::string_view b) noexcept { return a.view() == b; }
  friend bool operator!=(const owned_text& a, std::string_view b) noexcept { return a.view() != b; }

 private:
  struct kept {};

  owned_text(std::string_view text, kept) {
    if (text.size() >= sizeof(short_)) text_ = new char[text.size() + 1];
    char* const to = text_ == nullptr ? short_ : text_;
    text.copy(to, text.size());
    to[text.size()] = '\0';
    bytes_ = text.size();
  }

  template <class Text>
  static std::string_view view_of(const Text& text) {
    if constexpr (std::is_convertible_v<const Text&, std::string_view>) {
      return text;
    } else {
      return text.c_str();
    }
  }
  std::string_view view() const noexcept { return {c_str(), bytes_}; }

  void swap(owned_text& other) noexcept {
    char* const text = text_;
    const std::size_t bytes = bytes_;
    text_ = other.text_;
    bytes_ = other.bytes_;
    other.text_ = text;
    other.bytes_ = bytes;
    char held[sizeof(short_)];
    __builtin_memcpy(held, short_, sizeof(short_));
    __builtin_memcpy(short_, other.short_, sizeof(short_));
    __builtin_memcpy(other.short_, held, sizeof(short_));
  }

  char* text_ = nullptr;  ///< null: the text is in short_
  std::size_t bytes_ = 0;
  /// Holds the default without allocation: leak checkers would report memory that the session,
  /// which is never destroyed, still owns.
  char short_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_OWNED_TEXT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN

/// What a thread does if its ring is full.
enum class full_ring {
  drain,  ///< the thread writes its records to the log itself: nothing is lost
  drop,   ///< drops the new record and counts it in dropped(): the thread never waits for the disk
};

/// How records are stored in files.
enum class log_format {
  text,     ///< logs of Lotus' format, which other programs can read too
  compact,  ///< hidden binary blocks, a sixth of the size, for lotus-tool, which can convert them
            ///< to text
};

/// The argument of start(). It is passed between shared objects as it is: bump hub_name with each
/// change.
struct options {
  /// Directory and name with which all logs of the run begin: "run/lotustrace_log" gives
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, where N is a thread's id.
  /// Accepts and copies a std::string, a std::string_view, a std::filesystem::path or a literal.
  detail::owned_text log_file = "lotustrace_log";
  /// How records are stored in files. If this is text, LOTUS_FORMAT=compact in the environment
  /// overrides it.
  log_format format = log_format::text;
  /// What a thread does if its ring is full.
  full_ring when_full = full_ring::drain;
  /// Number of records in a thread's ring, 24 bytes each; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// Maximum time that a record stays in its ring before it is written to the log, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Memory for records that cannot be written to the disk at the moment; if it is full, further
  /// records are dropped and counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  /// Maximum total size of the logs in the directory, in bytes, including those of other processes
  /// of the run; 0: unlimited. A log that has grown continues in a new file, and the oldest such
  /// parts are deleted and counted; lotus-tool reports them. Accurate to about an eighth, in blocks
  /// of the disk. With a limit, threads that run one after another share logs.
  std::uint64_t max_bytes = 0;
  /// Age at which parts of logs are deleted, in seconds; 0: unlimited. Accurate to an eighth.
  std::uint32_t max_age_s = 0;
  /// Flight recorder: keeps only the newest records, in compact logs, up to this many bytes; 0:
  /// unlimited, or LOTUS_KEEP_BYTES in the environment. Otherwise like max_bytes; call
  /// lotus::snapshot() to save what is worth keeping.
  std::uint64_t keep_bytes = 0;
  /// The same limit by age, in milliseconds; 0: unlimited.
  std::uint32_t keep_ms = 0;
  /// Takes a snapshot if a wait for a batch lasts longer than this, in milliseconds, even if it
  /// never ends; at most one a minute. 0: never.
  std::uint32_t snapshot_when_wait_ms = 0;
  /// Signal that triggers a snapshot, such as SIGUSR2; 0: none. The previous handler is called too.
  int snapshot_signal = 0;
  /// Maximum total size of the snapshots of this run, in bytes; the oldest are deleted.
  std::uint64_t snapshots_bytes = std::uint64_t{1} << 30;
  /// Mode of logs, rings and information files, as for open(2): reduced by the process's umask. A
  /// collector's sample files always get 0666 reduced by the umask.
  std::uint32_t file_mode = 0666;
  /// Whether to record the time that operations spend off the CPU: one record for each context
  /// switch that a scope notices. The check adds no measurable cost to a scope.
  bool cpu_time = true;
  /// Receives each message, also those of collectors, as one line without a newline; null: stderr,
  /// after the prefix "lotus: ". Called on any thread, with the library's locks held and signals
  /// blocked: it must not record, start or stop.
  void (*on_message)(const char* message) = nullptr;
};

/// Numbers of steps, as in torch.profiler.schedule: first `skip_first` steps that are not recorded;
/// then cycles of `wait` and `warmup` steps that are not recorded and `active` steps that are,
/// `repeat` times (0: for as long as there are steps). Recording itself needs no warm-up: these
/// steps are skipped so that the recorded program has warmed up. It is passed between shared
/// objects too.
struct schedule {
  std::uint32_t wait = 0;        ///< not recorded, in every cycle
  std::uint32_t warmup = 0;      ///< not recorded either, after `wait`
  std::uint32_t active = 1;      ///< recorded; at least one
  std::uint32_t repeat = 0;      ///< number of cycles; 0: unlimited
  std::uint32_t skip_first = 0;  ///< before the first cycle
  /// Called when the active steps are over and all their records are in the logs, on the thread
  /// that calls step() or stop(), with the folder of these logs. It may do anything. It is not
  /// called if the program exits during active steps; their records are written all the same. The
  /// callable receives a const std::string&, a std::string_view or a const char*.
  detail::folder_listener on_trace_ready{};
  /// If not 0, the first cycle has no `wait`.
  std::uint32_t skip_first_wait = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP

#if LOTUS_SUPPORTED
// The interface through which all shared objects of a process use its one session.
#ifndef LOTUS_RECORD_HUB_HPP
#define LOTUS_RECORD_HUB_HPP

#if !LOTUS_SUPPORTED
  #error "lotus records only on Linux, x86-64 and aarch64; elsewhere include lotus/lotus.hpp"
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct aggregate_call;
struct cpu_watch;
struct module_state;
struct off_cpu_time;
struct producer;

/// Notifies that active steps were recorded, and in which folder.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Functions that show this thread's scopes as annotations of another profiler.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< ends the innermost annotation, if there is one
};

/// Begin and end of a span in ticks.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Functions of the session for the shared objects that use it. Their code belongs to the object
/// that made the hub; it is never unloaded.
struct services {
  /// @param begins  whether nothing that this thread will record has begun yet.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call for which there is no room yet; returns false if the call is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// Returns the self time of this thread's aggregated calls since the last request. If it is not
  /// 0, also sets the tag of the record to write for it.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< never 0
  /// Counts and reports a batch that is not recorded because of its number.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  its listener is kept alive.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// Both return whether there is a listener to call.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// Assigns this thread's records to a loader from now on, given by the id of its name; 0 is the
  /// default one. Returns the previous loader.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Call it if recording is on and the thread has no ring yet.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's clocks and resets the watch.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&) noexcept;
  /// Reserves async_ids_at_once numbers within this process and returns the first.
  std::uint32_t (*take_async_ids)() noexcept;
  /// Converts times of CLOCK_MONOTONIC to ticks of a span that is recorded next.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Reports once that a scope ended on another thread than the one on which it began.
  void (*crossed_threads)(record_tag) noexcept;
  /// Registers a shared object, which is informed from now on whether recording is on.
  /// @param environment_counts  whether LOTUS_LOG_FILE may start recording now.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// A span with this tag begins or ends on this thread: shows it on a profiler's timeline and
  /// counts its allocations. Only in recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// @param begin_ticks  of its record, which follows; 0 if there is no record.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// The same without a timeline: only counts allocations.
  void (*begin_heap)(record_tag) noexcept;
  /// @param begun_as  the tag with which it began.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// PyTorch's profiler is part of the program. @param calls  must stay valid until the process
  /// exits.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Passes a message to the program's on_message; returns false if it has none.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this object has not asked the session yet
  /// Scopes are also shown on a profiler's timeline, or their allocations are counted; they are
  /// logged if recording is on.
  annotated = 3,
};

/// What one shared object knows about the session.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< for the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Returns the session's services; the first call in the process creates the session. Defined in
/// record/join.hpp.
LOTUS_DETAIL_RARE const services& join_session(bool environment_counts) noexcept;

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Whether scopes of this shared object must be measured.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_RARE record_tag refuse_batch(std::uint64_t number) noexcept;

/// Returns the tag of a record about a batch. If the number is 2^56 or more, returns an empty tag
/// and reports the number once.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Call it before writing the record of a span that ends: its heap records precede it.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP

// How a thread stores records in its ring, and how it notices that it was off the CPU.
#ifndef LOTUS_RECORD_THREAD_RING_HPP
#define LOTUS_RECORD_THREAD_RING_HPP

// Reads this thread's stack pointer.
#ifndef LOTUS_BASE_STACK_POINTER_HPP
#define LOTUS_BASE_STACK_POINTER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the stack pointer of the function into which this is inlined; never 0. One move
/// instruction: __builtin_frame_address(0) would force the function to keep a frame pointer.
LOTUS_DETAIL_ALWAYS_INLINE std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t at;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(at));
#else
  __asm__ volatile("mov %0, sp" : "=r"(at));
#endif
  return at;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_STACK_POINTER_HPP

// The clock of the hot path.
#ifndef LOTUS_BASE_TICKS_HPP
#define LOTUS_BASE_TICKS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The processor's own counter: the TSC, or cntvct_el0. About 10 ns, no system call.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t hardware_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_TICKS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct aggregates_block;

// A thread checks with one load and a compare whether it may have been off the CPU since the last
// check. The kernel clears a pointer in the thread's rseq area when it switches the thread out:
// while the pointer still has the value that we stored, wall time was CPU time, and no clock must
// be read.

LOTUS_DETAIL_PER_MODULE inline constexpr std::uint64_t never_looked = 0;

/// What a thread checks, in one shared object. The session sets it up: store/cpu_clock.hpp.
struct cpu_watch {
  const std::uint64_t* word = &never_looked;  ///< changes when the thread is switched out
  std::uint64_t undisturbed = 1;              ///< the word's value until then
  bool per_batch = false;  ///< there is no such word: the clocks are read at the ends of batches

  // An aggregated call marks the watch, so that the next begin or end of a span reads the clocks
  // too. If the word is this thread's own, the mark is another value of the word, which all shared
  // objects see; otherwise only this object's watch is marked.
  bool own_word = false;
  std::uint64_t armed = never_looked;  ///< the word's value while this is not marked
  std::uint64_t marked = 0;            ///< the word's value while it is marked; without an own
                                       ///< word: `armed` before marking

  LOTUS_DETAIL_ALWAYS_INLINE bool may_be_marked() const noexcept {
    return __atomic_load_n(word, __ATOMIC_RELAXED) == armed;
  }
  /// A switch between the check and the store goes unnoticed until the next switch.
  void mark() noexcept {
    if (!may_be_marked()) return;
    if (own_word) {
      __atomic_store_n(const_cast<std::uint64_t*>(word), marked, __ATOMIC_RELAXED);
    } else {
      marked = armed;
      armed = undisturbed = never_held;
    }
  }
  /// Removes the mark. Returns whether the watch was marked and the thread was not switched out.
  bool unmark() noexcept {
    if (own_word) {
      if (__atomic_load_n(word, __ATOMIC_RELAXED) != marked) return false;
      __atomic_store_n(const_cast<std::uint64_t*>(word), armed, __ATOMIC_RELAXED);
      return true;
    }
    if (armed != never_held) return false;
    armed = undisturbed = marked;
    return !per_batch && may_be_marked();
  }

  static constexpr std::uint64_t never_held = ~std::uint64_t{0};
};

LOTUS_DETAIL_PER_MODULE inline thread_local cpu_watch this_cpu_watch;

/// How a running thread accesses its ring; record/thread.hpp has what the session adds to it.
struct alignas(64) thread_ring {
  // For the owning thread; the session changes them only while the owner cannot be storing.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  /// While a record is being stored: the stack pointer; else 0. The second one is the same for a
  /// signal handler that stores a record meanwhile. Its value distinguishes a handler that
  /// interrupted the storing from code that runs after a handler left it for good by siglongjmp;
  /// see base/interruption.hpp.
  std::atomic<std::uintptr_t> storing{0};
  std::atomic<std::uintptr_t> storing_nested{0};
  std::uint32_t loader = 0;  ///< the thread's loader: id of its name, 0 for the default one; the
                             ///< session writes it under `guard`

  alignas(64) std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> drained_itself{false};  ///< since the drain thread's last visit
  /// Used instead of a ring's counter before there is a ring.
  std::atomic<std::uint64_t> none_published{0};
  std::atomic<std::uint64_t> longest_wait_ticks{0};  ///< since the drain thread's last visit
};

/// Allows a thread to store records without the session. It is not in thread_ring but in memory
/// that the kernel clears in every child: a child that was created without fork handlers (_Fork,
/// clone) shares its parent's ring file and must not write to it. The child finds only zeros here,
/// takes the slow path, and the session notices. After a fork with handlers the session fills it
/// again.
struct alignas(64) ring_gate {
  /// Positions below it are free. 0 sends all records to the slow path. Written under `guard`.
  std::atomic<std::uint64_t> limit{0};
  /// If records may be dropped, `limit` is raised to this value after the drain thread was woken.
  std::atomic<std::uint64_t> last_limit{0};
  std::atomic<std::uint64_t> interrupt_limit{0};
  std::atomic<std::uint64_t>* waiting_since = nullptr;  ///< where the ring publishes a wait
  /// The thread's first block of aggregates; null sends all calls to the slow path. Written under
  /// `guard`.
  std::atomic<aggregates_block*> aggregates{nullptr};
};

/// Distance from a thread_ring to its gate. It is whole pages for all page sizes of Linux on the
/// supported processors, and a compile-time constant, so that finding the gate costs the hot path
/// nothing.
inline constexpr std::size_t gate_distance = std::size_t{64} << 10;

LOTUS_DETAIL_ALWAYS_INLINE ring_gate& gate_of(thread_ring& ring) noexcept {
  return *reinterpret_cast<ring_gate*>(reinterpret_cast<char*>(&ring) + gate_distance);
}

LOTUS_DETAIL_PER_MODULE inline thread_local thread_ring* this_ring = nullptr;

/// Returns CLOCK_MONOTONIC in ns, for systems whose hardware counter cannot be used.
LOTUS_DETAIL_RARE std::uint64_t monotonic_ticks() noexcept;

/// Returns the session's clock ticks: the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

/// Stores a thread's first record.
LOTUS_DETAIL_RARE void push_first(const record& r) noexcept;
/// Called if the ring is full, or if a handler interrupted the storing of a record.
LOTUS_DETAIL_RARE void push_rarely(thread_ring& ring, const record& r) noexcept;

/// Appends a record to this thread's ring. If the ring is full, drains it first, so that nothing is
/// lost. Once this returns, every reader sees the complete record, even after a kill.
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  // A handler that runs between these two stores sees `storing` and uses its own lane; a handler
  // that ran before the first one has restored everything.
  p->storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= gate_of(*p).limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_rarely(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

/// Reads the clocks, and records the time off the CPU that they show, with the time `ticks`.
LOTUS_DETAIL_RARE void read_cpu(std::uint64_t ticks) noexcept;

/// Call it before reading the clock when an operation begins, and after reading it when one ends.
/// @param ticks  std::uint64_t(): returns the time before which the time off the CPU lies.
template <class Ticks>
LOTUS_DETAIL_ALWAYS_INLINE void look_at_cpu(Ticks ticks) noexcept {
  const cpu_watch& watch = this_cpu_watch;
  const std::uint64_t now = __atomic_load_n(watch.word, __ATOMIC_RELAXED);
  if (LOTUS_DETAIL_UNLIKELY(now != watch.undisturbed)) read_cpu(ticks());
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_RING_HPP

#else
// Replacement for the recording code on systems without support, where LOTUS_SUPPORTED is 0. The
// API is the same: programs build and run, and nothing is logged.
#ifndef LOTUS_RECORD_UNSUPPORTED_HPP
#define LOTUS_RECORD_UNSUPPORTED_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class recording : std::uint32_t { off, on, annotated };

constexpr recording recording_mode() noexcept {
  return recording::off;
}
constexpr bool is_recording() noexcept {
  return false;
}
inline std::uint64_t now_ticks() noexcept {
  return 0;
}
constexpr void push(std::uint64_t, std::uint64_t, record_tag) noexcept {}
constexpr record_tag batch_tag(event_kind, std::uint64_t) noexcept {
  return {};
}
template <class Ticks>
constexpr void look_at_cpu(Ticks) noexcept {}
constexpr void read_cpu(std::uint64_t) noexcept {}
constexpr void publish_wait() noexcept {}
constexpr void publish_end_of_wait() noexcept {}
struct published_wait {};
constexpr std::uint64_t begin_aggregated() noexcept {
  return 0;
}
constexpr void aggregate(std::uint64_t, std::uint64_t, record_tag, std::uint64_t) noexcept {}
struct cpu_watch {
  bool per_batch;
};
inline constexpr cpu_watch this_cpu_watch{};
constexpr void begin_annotation(record_tag) noexcept {}
constexpr void end_annotation(std::uint64_t, record_tag) noexcept {}

struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};
struct step_notice {
  folder_listener listener;
  char folder[1];
};
struct services {
  constexpr std::uint32_t intern(std::string_view) const noexcept { return 0; }
  constexpr std::uint32_t enter_loader(std::uint32_t) const noexcept { return 0; }
  constexpr std::uint32_t take_async_ids() const noexcept { return 0; }
  constexpr given_ticks ticks_of_span(std::int64_t, std::int64_t) const noexcept { return {0, 0}; }
  constexpr void crossed_threads(record_tag) const noexcept {}
  constexpr void begin_task(record_tag) const noexcept {}
  constexpr void end_task(std::uint64_t, record_tag) const noexcept {}
  constexpr void begin_heap(record_tag) const noexcept {}
  constexpr void end_heap(std::uint64_t, record_tag, record_tag) const noexcept {}
  constexpr bool start(const options&) const noexcept { return false; }
  constexpr bool start_steps(const options&, const schedule&) const noexcept { return false; }
  constexpr bool step(step_notice&) const noexcept { return false; }
  constexpr bool stop(step_notice&) const noexcept { return false; }
  constexpr void flush() const noexcept {}
  constexpr bool snapshot(const char*, std::size_t) const noexcept { return false; }
  constexpr std::uint64_t dropped() const noexcept { return 0; }
};
inline constexpr std::uint32_t async_ids_at_once = 1;
struct module_state {
  std::atomic<const services*> hub{nullptr};
};
inline module_state this_module;
inline const services& join_session(bool) noexcept {
  static constexpr services none{};
  return none;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_UNSUPPORTED_HPP

#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the tag under which an operation is recorded; it is never empty.
LOTUS_DETAIL_PER_MODULE inline record_tag operation_tag(std::string_view name) noexcept {
  const services* s = this_module.hub.load(std::memory_order_acquire);
  if (s == nullptr) s = &join_session(true);
  return {event_kind::operation, s->intern(name)};
}

/// Caches the tag of a name that never changes.
class known_tag {
 public:
  record_tag of(std::string_view name) noexcept {
    const record_tag known = tag_.load(std::memory_order_relaxed);
    return LOTUS_DETAIL_LIKELY(!known.empty()) ? known : first_tag(name);
  }

 private:
  LOTUS_DETAIL_RARE record_tag first_tag(std::string_view name) noexcept;

  std::atomic<record_tag> tag_{record_tag{}};
};

/// The tag is a static member of a hidden template: a static variable in an inline function would
/// keep a plugin from unloading.
template <class Here>
struct LOTUS_DETAIL_PER_MODULE known_tag_of {
  static known_tag tag;
};
template <class Here>
LOTUS_DETAIL_CONSTINIT known_tag known_tag_of<Here>::tag{};

/// Returns whether the source text consists only of string literals.
constexpr bool is_literal(std::string_view text) noexcept {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      quoted = !quoted;
    } else if (quoted && text[i] == '\\') {
      ++i;
    } else if (!quoted && text[i] != ' ') {
      return false;
    }
  }
  return true;
}

/// A place in the source, identified by the type `Here`, and the name used there.
/// @tparam Fixed  whether the name is the same at every execution.
template <class Here, bool Fixed>
struct place {
  std::string_view name;

  LOTUS_DETAIL_ALWAYS_INLINE record_tag tag() const noexcept {
    if constexpr (Fixed) {
      return known_tag_of<Here>::tag.of(name);
    } else {
      return operation_tag(name);
    }
  }
};

/// Base of all scopes: measures from construction to destruction. It can be neither copied nor
/// moved, and exists only on the stack, because it ends with its block.
class span {
 public:
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 protected:
  /// @param make_tag  called only if the span is measured; nothing is recorded if it returns an
  /// empty tag.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE explicit span(MakeTag make_tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    tag_ = LOTUS_DETAIL_LIKELY(mode == recording::on) ? make_tag() : rare_tag(make_tag);
    if (tag_.empty()) return;
#if !defined(NDEBUG)
    thread_ = &this_cpu_watch;
#endif
    look_at_cpu(now_ticks);
    begin_ticks_ = now_ticks();
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~span() {
    if (tag_.empty()) return;
#if !defined(NDEBUG)
    if (LOTUS_DETAIL_UNLIKELY(thread_ != &this_cpu_watch)) tell_crossed_threads(tag_);
#endif
    const std::uint64_t end_ticks = now_ticks();
    look_at_cpu([end_ticks] { return end_ticks; });
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_LIKELY(mode == recording::on)) {
      push(begin_ticks_, end_ticks, tag_);
    } else if (mode == recording::annotated) {
      end_annotated(begin_ticks_, end_ticks, tag_);
    }
  }

  /// Returns the tag; it is empty if the span is not measured.
  record_tag tag() const noexcept {
    return tag_;
  }
  /// Records an event just before this span's record, with this span's start time. The span must be
  /// measured.
  LOTUS_DETAIL_RARE void precede(record_tag event, std::uint64_t word) const noexcept;

  /// @param make_tag  record_tag(record_tag): returns the new tag for the current one; called only
  /// if the span is measured.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE void retag(MakeTag make_tag) noexcept {
    if (tag_.empty()) return;
    const record_tag before = tag_;
    tag_ = make_tag(before);
    const bool annotated = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(tag_.empty() && annotated)) end_annotation(0, before);
  }

 private:
  template <class MakeTag>
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static record_tag rare_tag(MakeTag make_tag) noexcept {
    if (!is_recording()) return {};
    const record_tag tag = make_tag();
    if (recording_mode() == recording::annotated) begin_annotation(tag);
    return tag;
  }

  LOTUS_DETAIL_RARE static void tell_crossed_threads(record_tag tag) noexcept;
  LOTUS_DETAIL_RARE static void end_annotated(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                              record_tag tag) noexcept;

  record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  [[maybe_unused]] const void* thread_ = nullptr;  ///< unique to the thread that began the span;
                                                   ///< for debug builds
};

/// Measures a time that need not end with a block. Thread safety: one thread at a time.
class measured_span {
 public:
  /// Begins to measure, if this process is recording.
  /// @param tag  the tag as known so far; what the thread allocates meanwhile is attributed to it.
  LOTUS_DETAIL_ALWAYS_INLINE void begin(record_tag tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    if (LOTUS_DETAIL_UNLIKELY(mode != recording::on) && !begin_rarely(tag)) return;
    look_at_cpu(now_ticks);
    begin_ticks_ = now_ticks();
  }
  bool runs() const noexcept { return begin_ticks_ != 0; }

  /// Ends the measurement and logs it, if one has begun.
  LOTUS_DETAIL_ALWAYS_INLINE void end(record_tag tag) noexcept {
    if (!runs()) return;
    const std::uint64_t end_ticks = now_ticks();
    look_at_cpu([end_ticks] { return end_ticks; });
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_UNLIKELY(mode == recording::annotated)) end_rarely(begin_ticks_, tag);
    if (!tag.empty() && mode != recording::off) push(begin_ticks_, end_ticks, tag);
    begin_ticks_ = 0;
  }

  /// Discards the measurement that began with this tag.
  LOTUS_DETAIL_ALWAYS_INLINE void forget(record_tag tag) noexcept {
    if (!runs()) return;
    if (recording_mode() == recording::annotated) end_rarely(0, tag);
    begin_ticks_ = 0;
  }

 private:
  LOTUS_DETAIL_RARE static bool begin_rarely(record_tag tag) noexcept;
  LOTUS_DETAIL_RARE static void end_rarely(std::uint64_t begin_ticks, record_tag tag) noexcept;

  std::uint64_t begin_ticks_ = 0;
};

}  // namespace detail

/// Logs one operation, "S<name>", from here to the end of the block; see LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one.
class scope : detail::span {
 public:
  /// @param name  interned by content: needs to live only for this call. Costs a hash and a lookup.
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(std::string_view name) noexcept
      : span{[name] { return detail::operation_tag(name); }} {}
  /// For a name known at compile time: its id is looked up only once.
  template <class Here, bool Fixed>
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(const detail::place<Here, Fixed>& place) noexcept
      : span{[&place] { return place.tag(); }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~scope() = default;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Range of numbers reserved for this thread's asynchronous operations; unique within the process.
struct async_ids {
  std::uint32_t next = 0;
  std::uint32_t end = 0;
};
LOTUS_DETAIL_PER_MODULE inline thread_local async_ids this_async_ids;

LOTUS_DETAIL_RARE void take_async_ids() noexcept;

LOTUS_DETAIL_ALWAYS_INLINE std::uint32_t new_async_id() noexcept {
  async_ids& ids = this_async_ids;
  if (LOTUS_DETAIL_UNLIKELY(ids.next == ids.end)) take_async_ids();
  return ids.next++;
}

}  // namespace detail

/// Logs one operation in segments: each lasts from construction or a resume() to the next suspend()
/// or the destruction, which may be on another thread. Each segment is a line "S<name>" of the
/// thread on which it ends; lotus-tool joins them.
/// Errors: none thrown. Thread safety: one thread at a time, like a coroutine's frame.
class async_scope {
 public:
  /// @param name  interned by content: needs to live only for this call.
  explicit async_scope(std::string_view name) noexcept {
    if (!detail::is_recording()) return;
    tag_ = {detail::event_kind::async_piece,
            static_cast<std::uint32_t>(detail::operation_tag(name).value()),
            detail::new_async_id()};
    piece_.begin(tag_);
  }
  async_scope(const async_scope&) = delete;
  async_scope& operator=(const async_scope&) = delete;
  ~async_scope() { piece_.end(tag_); }

  /// Suspends the operation; does nothing if it is suspended already. Call it before another thread
  /// can resume the coroutine.
  void suspend() noexcept { piece_.end(tag_); }

  /// Resumes the operation on this thread; does nothing if it is running already.
  void resume() noexcept {
    if (!piece_.runs() && !tag_.empty()) piece_.begin(tag_);
  }

 private:
  detail::record_tag tag_;
  detail::measured_span piece_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ASYNC_SCOPE_HPP

// Records the history of batches: preprocessed and wait (spans), arrived, consumed, queued
// (events).
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#if LOTUS_SUPPORTED
// Publishes that a thread is waiting for a batch, so that observers can see a hang: a wait is
// recorded only when it ends.
#ifndef LOTUS_RECORD_PUBLISHED_WAIT_HPP
#define LOTUS_RECORD_PUBLISHED_WAIT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Gives this thread a ring if it has none, because its first wait may be the one that hangs.
LOTUS_DETAIL_RARE void get_ring() noexcept;

/// Stores the wait's begin in the ring file, which survives a kill.
LOTUS_DETAIL_ALWAYS_INLINE void publish_wait() noexcept {
  if (!is_recording()) return;
  if (this_ring == nullptr || gate_of(*this_ring).waiting_since == nullptr) get_ring();
  if (this_ring == nullptr) return;
  std::atomic<std::uint64_t>* const waiting_since = gate_of(*this_ring).waiting_since;
  if (waiting_since != nullptr) waiting_since->store(now_ticks(), std::memory_order_relaxed);
}

/// Call it when the wait is over or canceled, or even if there was none.
LOTUS_DETAIL_ALWAYS_INLINE void publish_end_of_wait() noexcept {
  thread_ring* const p = this_ring;
  std::atomic<std::uint64_t>* const waiting_since =
      p == nullptr ? nullptr : gate_of(*p).waiting_since;
  if (waiting_since == nullptr) return;
  const std::uint64_t since = waiting_since->load(std::memory_order_relaxed);
  if (since == 0) return;
  const std::uint64_t ticks = now_ticks() - since;
  if (ticks > p->longest_wait_ticks.load(std::memory_order_relaxed)) {
    p->longest_wait_ticks.store(ticks, std::memory_order_relaxed);
  }
  waiting_since->store(0, std::memory_order_relaxed);
}

/// Publishes a wait during the object's lifetime.
class published_wait {
 public:
  LOTUS_DETAIL_ALWAYS_INLINE published_wait() noexcept { publish_wait(); }
  LOTUS_DETAIL_ALWAYS_INLINE ~published_wait() { publish_end_of_wait(); }
  published_wait(const published_wait&) = delete;
  published_wait& operator=(const published_wait&) = delete;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_PUBLISHED_WAIT_HPP

#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Called before batches and waits begin and before they end, if threads cannot notice by
/// themselves that they were switched out. So a switch that is found at the end happened during the
/// batch, and one found at the beginning happened before it.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_batch() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.per_batch)) read_cpu(now_ticks());
}

template <event_kind Kind>
class batch_span : span {
 public:
  /// @param batch  number of the batch in its epoch; one of 2^56 or more is dropped and counted.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_span(std::uint64_t batch) noexcept
      : span{[batch] {
          look_at_batch();
          return batch_tag(Kind, batch);
        }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~batch_span() { look_at_batch(); }
};

template <event_kind Kind>
LOTUS_DETAIL_ALWAYS_INLINE void batch_event(std::uint64_t batch) noexcept {
  if (!is_recording()) return;
  const std::uint64_t now = now_ticks();
  const record_tag tag = batch_tag(Kind, batch);
  if (LOTUS_DETAIL_LIKELY(!tag.empty())) push(now, now, tag);
}

/// A wait that can begin again after it has ended.
class repeated_wait {
 public:
  repeated_wait() noexcept = default;
  repeated_wait(const repeated_wait&) = delete;
  repeated_wait& operator=(const repeated_wait&) = delete;
  ~repeated_wait() { forget(); }

  void begin() noexcept {
    if (is_recording()) look_at_batch();
    publish_wait();
    wait_.begin(tag_of(0));
  }
  /// Ends the wait that has begun and logs it as the wait for this batch.
  void end(std::uint64_t batch) noexcept {
    if (!wait_.runs()) return;
    look_at_batch();
    publish_end_of_wait();
    wait_.end(tag_of(batch));
  }
  /// Ends the wait that has begun without logging it.
  void forget() noexcept {
    if (!wait_.runs()) return;
    publish_end_of_wait();
    wait_.forget(tag_of(0));
  }

 private:
  static record_tag tag_of(std::uint64_t batch) noexcept {
    return batch_tag(event_kind::batch_wait, batch);
  }

  measured_span wait_;
};

}  // namespace detail

/// Scope in a worker around all the work that builds batch `i`: "SBatchPreprocessed_i".
using batch_preprocessed = detail::batch_span<detail::event_kind::batch_preprocessed>;

/// The same for a batch whose number is known only later, or if there may be no batch, as at the
/// end of the data:
///
///   lotus::preprocessed_batch p;
///   Batch b = read_next();
///   b.empty() ? p.discard() : p.number(b.index);
///
/// Lasts from construction to the end of the block. Nothing is logged without a number or after
/// discard(). Belongs to one thread.
class preprocessed_batch {
 public:
  preprocessed_batch() noexcept {
    if (detail::is_recording()) detail::look_at_batch();
    span_.begin(tag());
  }
  preprocessed_batch(const preprocessed_batch&) = delete;
  preprocessed_batch& operator=(const preprocessed_batch&) = delete;
  ~preprocessed_batch() {
    if (!has_number_) discard();
    if (!span_.runs()) return;
    detail::look_at_batch();
    span_.end(tag());
  }

  /// Sets the number of the batch that is being preprocessed. The last call counts; a batch with a
  /// number of 2^56 or more is dropped and counted.
  void number(std::uint64_t batch) noexcept {
    number_ = batch;
    has_number_ = true;
  }
  /// There is no batch: ends the scope here and logs nothing.
  void discard() noexcept { span_.forget(tag()); }

 private:
  detail::record_tag tag() const noexcept {
    return detail::batch_tag(detail::event_kind::batch_preprocessed, number_);
  }

  detail::measured_span span_;
  std::uint64_t number_ = 0;
  bool has_number_ = false;
};

/// Scope in the consumer around its wait for batch `i`: "SBatchWait_i". During the wait it is
/// visible to lotus-tool top and options::snapshot_when_wait_ms.
class batch_wait : detail::published_wait, detail::batch_span<detail::event_kind::batch_wait> {
 public:
  /// @param batch  number of the batch in its epoch; one of 2^56 or more is dropped and counted.
  LOTUS_DETAIL_ALWAYS_INLINE explicit batch_wait(std::uint64_t batch) noexcept
      : batch_span{batch} {}
};

/// In the consumer, right after it received batch `i`; the step begins: "SBatchConsumed_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// In the consumer, a wait whose batch is known only afterwards: lasts from construction to
/// consumed() or got(). Without either call nothing is logged, as at the end of the data. Belongs
/// to one thread.
class wait_for_batch {
 public:
  wait_for_batch() noexcept { wait_.begin(); }
  wait_for_batch(const wait_for_batch&) = delete;
  wait_for_batch& operator=(const wait_for_batch&) = delete;
  ~wait_for_batch() = default;

  /// Ends the wait, which was for this batch. Call it once; a number of 2^56 or more is dropped and
  /// counted.
  void got(std::uint64_t batch) noexcept { wait_.end(batch); }

  /// Calls got() and records that the consumer begins to use the batch: call it right after the
  /// batch has arrived. What follows, up to the next wait, is the step.
  void consumed(std::uint64_t batch) noexcept {
    got(batch);
    batch_consumed(batch);
  }

 private:
  detail::repeated_wait wait_;
};

/// In the consumer, when batch `i` arrives while the consumer waits for another one, and is
/// buffered: "SBatchWait_i" with the 1000-ns marker.
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// In the consumer, when batch `i` is dispatched to a worker: "SBatchQueued_i".
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP

// Resumes, pauses and detaches a profiler that is chosen at run time.
#ifndef LOTUS_COLLECTOR_HPP
#define LOTUS_COLLECTOR_HPP

// Calls of the API to the profiler that runs the program.
#ifndef LOTUS_RECORD_COLLECTOR_CALLS_HPP
#define LOTUS_RECORD_COLLECTOR_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class collector_call { resume, pause, detach };

/// True once this object has found that there is no collector.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> no_collector{!LOTUS_SUPPORTED};

#if LOTUS_SUPPORTED
/// Looks for the collector at the first call. Defined in collectors/collector_state.hpp.
LOTUS_DETAIL_RARE void call_collector(collector_call call) noexcept;
#else
inline void call_collector(collector_call) noexcept {}
#endif

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_COLLECTOR_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Controls the profiler that runs this program, if any: Intel VTune, AMD uProf, perf, callgrind,
/// or the built-in sampler. LOTUS_COLLECTOR selects it: auto (the default: whichever is present),
/// itt, uprof, perf, callgrind, builtin, none. It always collects for the whole process.
/// Errors: none thrown; if the profiler cannot be used, one message says so (options::on_message),
/// and the program goes on without it. Thread safety: all. Without a collector each call costs one
/// load.
class collector {
 public:
  /// Starts collecting; calls nest.
  LOTUS_DETAIL_ALWAYS_INLINE static void resume() noexcept { call(detail::collector_call::resume); }
  /// Stops collecting, once for each resume().
  LOTUS_DETAIL_ALWAYS_INLINE static void pause() noexcept { call(detail::collector_call::pause); }
  /// Ends collecting for the rest of the program. Further calls do nothing.
  LOTUS_DETAIL_ALWAYS_INLINE static void detach() noexcept { call(detail::collector_call::detach); }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE static void call(detail::collector_call call) noexcept {
    if (!detail::no_collector.load(std::memory_order_relaxed)) detail::call_collector(call);
  }
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COLLECTOR_HPP

// Chains of transforms that share clock reads: k operations need only k + 1.
#ifndef LOTUS_COMPOSE_HPP
#define LOTUS_COMPOSE_HPP

// Equivalent of std::invoke that does not need <functional>.
#ifndef LOTUS_BASE_CALL_HPP
#define LOTUS_BASE_CALL_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the object whose member is accessed, given the object, a std::reference_wrapper or a
/// pointer.
template <class Class, class Object>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) object_of_member(Object&& object) {
  if constexpr (std::is_base_of_v<Class, std::decay_t<Object>>) {
    return std::forward<Object>(object);
  } else if constexpr (std::is_convertible_v<Object, const Class&>) {
    return object.get();
  } else {
    return *std::forward<Object>(object);
  }
}

template <class Class, class Member, class Object, class... Arguments>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) call_member(Member Class::*member,
                                                                Object&& object,
                                                                Arguments&&... arguments) {
  if constexpr (std::is_function_v<Member>) {
    return (object_of_member<Class>(std::forward<Object>(object)).*
            member)(std::forward<Arguments>(arguments)...);
  } else {
    return (object_of_member<Class>(std::forward<Object>(object)).*member);
  }
}

/// Calls anything for which std::is_invocable_v is true: functions, function objects, and members.
template <class Function, class... Arguments>
LOTUS_DETAIL_ALWAYS_INLINE constexpr decltype(auto) call(Function&& function,
                                                         Arguments&&... arguments) {
  if constexpr (std::is_member_pointer_v<std::decay_t<Function>>) {
    return call_member(function, std::forward<Arguments>(arguments)...);
  } else {
    return std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_CALL_HPP

// A run of operations that share clock reads, for compose.hpp.
#ifndef LOTUS_RECORD_OPERATION_RUN_HPP
#define LOTUS_RECORD_OPERATION_RUN_HPP

#if LOTUS_SUPPORTED
#else
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A run of operations, each of which begins when the previous one ends. Logs each operation when
/// it ends, and "STransform" for all of them when the run ends, also by an exception.
class operation_run {
 public:
  explicit operation_run(record_tag whole) noexcept : whole_{whole} {
    if (!is_recording()) return;
    annotated_ = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(whole_);
    look_at_cpu(now_ticks);
    first_ticks_ = last_ticks_ = now_ticks();
  }
  operation_run(const operation_run&) = delete;
  operation_run& operator=(const operation_run&) = delete;

  /// Sets the operation that runs now. If it ends by an exception, it is logged up to that point.
  LOTUS_DETAIL_ALWAYS_INLINE void running(record_tag tag) noexcept {
    running_ = tag;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(tag);
  }

  LOTUS_DETAIL_ALWAYS_INLINE void ended(record_tag tag) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_part(tag);
    running_ = {};
    if (LOTUS_DETAIL_UNLIKELY(last_ticks_ == 0)) return;
    const std::uint64_t now = now_ticks();
    look_at_cpu([now] { return now; });
    if (!tag.empty()) push(last_ticks_, now, tag);
    last_ticks_ = now;
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~operation_run() {
    if (LOTUS_DETAIL_UNLIKELY(!running_.empty())) end_early();
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_annotation(first_ticks_, whole_);
    if (first_ticks_ != 0 && !whole_.empty() && is_recording()) {
      push(first_ticks_, last_ticks_, whole_);
    }
  }

  /// The current operation gets its name only when it ends; see laps.
  void nameless() noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_nameless();
  }

 private:
  /// Needed because equal clock readings do not prove that nothing ran: aarch64's counter may run
  /// at only 24 MHz.
  static constexpr record_tag nothing_yet{event_kind::none, 1};

  LOTUS_DETAIL_RARE void begin_nameless() noexcept;
  LOTUS_DETAIL_RARE void end_part(record_tag tag) noexcept;
  /// Called when an operation throws, or if the run ends before its first operation.
  LOTUS_DETAIL_RARE void end_early() noexcept;

  record_tag whole_;
  record_tag running_ = nothing_yet;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  bool annotated_ = false;
  bool nameless_ = false;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_OPERATION_RUN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the short name of a type: without enclosing namespaces, classes or functions, and
/// without template arguments.
template <class T>
constexpr std::string_view type_name() noexcept {
  // "... [with T = image::Crop<float>; ...]" (g++), "... [T = image::Crop<float>]" (clang)
  const std::string_view text = __PRETTY_FUNCTION__;
  // A function has no type name of its own.
  if (std::is_function_v<std::remove_pointer_t<T>> || std::is_member_pointer_v<T>) {
    return "function";
  }
  std::size_t name_at = text.find("T = ") + 4;
  std::size_t name_end = name_at;
  int parentheses = 0;
  bool lambda = false;
  int arguments = 0;  // a '>' in parentheses does not close an argument list
  for (std::size_t at = name_at; at < text.size(); ++at) {
    const char c = text[at];
    const bool outside = arguments == 0 && parentheses == 0;
    // "<lambda(int)>" (g++), "(lambda at crop.cpp:7:3)" (clang)
    if (outside && text.substr(at + 1, 6) == "lambda") lambda = true;
    if (c == '<' && parentheses == 0) {
      ++arguments;
    } else if (c == '>' && parentheses == 0) {
      --arguments;
    } else if (c == '(') {
      ++parentheses;
    } else if (c == ')') {
      --parentheses;
    } else if (!outside) {
      continue;
    } else if (c == ';' || c == ']') {
      break;
    } else if (c == ':') {
      name_at = name_end = at + 1;
      lambda = false;
    } else {
      name_end = at + 1;
    }
  }
  if (lambda) return "lambda";
  return name_at == name_end ? "unnamed" : text.substr(name_at, name_end - name_at);
}

struct transform_name {
  static constexpr std::string_view name() noexcept { return "Transform"; }
};
inline record_tag transform_tag() noexcept {
  return known_tag_of<transform_name>::tag.of(transform_name::name());
}

/// Calls `f` with `value` moved in. Returns what f returns, or the value that f changed if f
/// returns nothing.
template <class F, class T>
LOTUS_DETAIL_ALWAYS_INLINE auto apply_operation(F& f, T&& value) {
  if constexpr (std::is_invocable_v<F&, T&&>) {
    if constexpr (!std::is_void_v<std::invoke_result_t<F&, T&&>>) {
      return call(f, std::forward<T>(value));
    } else {
      call(f, std::forward<T>(value));
      return std::decay_t<T>{std::forward<T>(value)};
    }
  } else {
    static_assert(std::is_invocable_v<F&, std::decay_t<T>&>,
                  "an operation must take what the one before it returns");
    std::decay_t<T> own{std::forward<T>(value)};
    if constexpr (std::is_void_v<std::invoke_result_t<F&, std::decay_t<T>&>>) {
      call(f, own);
      return own;
    } else {
      return call(f, own);
    }
  }
}

}  // namespace detail

/// A callable and the name under which it is logged; returned by op().
template <class F>
struct operation {
  F call;                  ///< the callable
  detail::record_tag tag;  ///< the tag under which it is logged
};

/// Gives a callable a name: compose(op("Flip", f)).
/// @param name  interned by content.
template <class F>
operation<std::decay_t<F>> op(std::string_view name, F&& f) {
  return {std::forward<F>(f), detail::operation_tag(name)};
}

namespace detail {

template <class T>
struct is_operation : std::false_type {};
template <class F>
struct is_operation<operation<F>> : std::true_type {};

template <class F>
auto as_operation(F&& f) {
  if constexpr (is_operation<std::decay_t<F>>::value) {
    return std::decay_t<F>{std::forward<F>(f)};
  } else {
    return op(type_name<std::decay_t<F>>(), std::forward<F>(f));
  }
}

/// Operations that run one after another.
template <class... Fs>
struct operation_list {
  template <class T>
  LOTUS_DETAIL_ALWAYS_INLINE auto run(operation_run&, T&& value) {
    return std::decay_t<T>{std::forward<T>(value)};
  }
};

template <class F, class... Fs>
struct operation_list<F, Fs...> {
  explicit operation_list(operation<F> its_first, operation<Fs>... others)
      : first{std::move(its_first)}, rest{std::move(others)...} {}

  template <class T>
  LOTUS_DETAIL_ALWAYS_INLINE auto run(operation_run& all, T&& value) {
    all.running(first.tag);
    auto result = apply_operation(first.call, std::forward<T>(value));
    all.ended(first.tag);
    if constexpr (sizeof...(Fs) == 0) {
      return result;
    } else {
      return rest.run(all, std::move(result));
    }
  }

  operation<F> first;
  operation_list<Fs...> rest;
};

}  // namespace detail

/// A fixed list of operations, called one after another; returned by compose(). Copyable if its
/// callables are. Thread safety: that of the callables.
template <class... Fs>
class composed {
 public:
  /// Stores the operations, to be called in this order.
  explicit composed(operation<Fs>... operations)
      : operations_{std::move(operations)...}, whole_{detail::transform_tag()} {}

  /// Passes `value` through all operations by move. Logs one line for each, and "STransform" for
  /// all together. If an operation throws, the exception propagates and the time up to it is
  /// logged.
  template <class T>
  auto operator()(T&& value) {
    detail::operation_run run{whole_};
    return operations_.run(run, std::forward<T>(value));
  }

 private:
  detail::operation_list<Fs...> operations_;
  detail::record_tag whole_;
};

/// Combines callables into one that times each: `auto t = compose(Resize{224}, op("Flip", f));`
/// Names come from the types unless op() gives one. A callable receives what the previous one
/// returned, or changes it in place and returns nothing.
template <class... Fs>
auto compose(Fs&&... fs) {
  return composed{detail::as_operation(std::forward<Fs>(fs))...};
}

namespace detail {

/// One operation on `T` in a chain.
template <class T>
class chain_link {
 public:
  explicit chain_link(record_tag tag) noexcept : tag_{tag} {}
  chain_link& operator=(const chain_link&) = delete;
  virtual ~chain_link() = default;
  virtual T call(T value) = 0;
  virtual chain_link* copy() const = 0;

  record_tag tag() const noexcept { return tag_; }
  chain_link*& next() noexcept { return next_; }

 protected:
  chain_link(const chain_link& other) noexcept : tag_{other.tag_} {}

 private:
  record_tag tag_;
  chain_link* next_ = nullptr;
};

template <class T, class F>
class chain_operation final : public chain_link<T> {
 public:
  template <class From>
  chain_operation(record_tag tag, From&& from)
      : chain_link<T>{tag}, function_{std::forward<From>(from)} {}
  T call(T value) override { return apply_operation(function_, std::move(value)); }
  chain_link<T>* copy() const override { return new chain_operation{*this}; }

 private:
  F function_;
};

}  // namespace detail

/// A list of operations on `T` that is assembled at run time; otherwise like compose().
template <class T>
class chain {
 public:
  chain() = default;
  /// Copies every operation. Throws what copying one of them throws.
  chain(const chain& other) : whole_{other.whole_} {
    for (auto* link = other.first_; link != nullptr; link = link->next()) append(link->copy());
  }
  /// Leaves `other` without operations.
  chain(chain&& other) noexcept { swap(other); }
  /// Copies or moves, depending on the argument.
  chain& operator=(chain other) noexcept {
    swap(other);
    return *this;
  }
  ~chain() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next());
  }

  /// Appends an operation: callable with T and returning T, or callable with T& and returning
  /// nothing.
  /// @param name  interned by content.
  template <class F>
  chain& add(std::string_view name, F&& f) {
    append(new detail::chain_operation<T, std::decay_t<F>>{detail::operation_tag(name),
                                                           std::forward<F>(f)});
    return *this;
  }

  /// Passes `value` through all operations by move; returns it unchanged if there are none.
  T operator()(T value) {
    detail::operation_run run{whole_};
    for (auto* link = first_; link != nullptr; link = link->next()) {
      run.running(link->tag());
      value = link->call(std::move(value));
      run.ended(link->tag());
    }
    return value;
  }

  /// Returns the number of operations.
  std::size_t size() const noexcept { return size_; }

 private:
  void append(detail::chain_link<T>* link) noexcept {
    (last_ == nullptr ? first_ : last_->next()) = link;
    last_ = link;
    ++size_;
  }

  void swap(chain& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
    std::swap(whole_, other.whole_);
  }

  detail::chain_link<T>* first_ = nullptr;
  detail::chain_link<T>* last_ = nullptr;
  std::size_t size_ = 0;
  detail::record_tag whole_ = detail::transform_tag();
};

/// Times consecutive pieces of code with one call after each: `laps lap; decode(); lap("Decode");
/// crop(); lap("Crop");` Each lap begins where the previous one ended. "STransform" for all
/// together is logged at the end of the block.
class laps {
 public:
  laps() noexcept : run_{detail::transform_tag()} { run_.nameless(); }

  /// Logs the time since the previous lap, or since construction.
  /// @param name  interned by content.
  void operator()(std::string_view name) noexcept {
    if (!detail::is_recording()) return;
    run_.ended(detail::operation_tag(name));
    run_.nameless();
  }

 private:
  detail::operation_run run_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COMPOSE_HPP

// A range that records waits and receptions of batches while a loop iterates over it.
#ifndef LOTUS_CONSUME_HPP
#define LOTUS_CONSUME_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// The functions that a range-based for would find: members, or others by argument-dependent lookup.
// <string_view> provides std::begin() and std::end().
using std::begin;
using std::end;
template <class Source>
auto begin_of(Source& source) -> decltype(begin(source)) {
  return begin(source);
}
template <class Source>
auto end_of(Source& source) -> decltype(end(source)) {
  return end(source);
}

template <class Source, class = void>
inline constexpr bool is_range = false;
template <class Source>
inline constexpr bool is_range<Source, std::void_t<decltype(begin_of(std::declval<Source&>()))>> =
    true;

/// Whether the second type can be the end of a range that the first begins.
template <class Iterator, class Sentinel, class = void>
inline constexpr bool are_iterators = false;
template <class Iterator, class Sentinel>
inline constexpr bool
    are_iterators<Iterator, Sentinel,
                  std::void_t<decltype(*std::declval<Iterator&>()),
                              decltype(std::declval<Iterator&>() != std::declval<Sentinel&>())>> =
        true;

/// Two iterators as a range.
template <class Iterator, class Sentinel>
struct iterator_pair {
  Iterator first;
  Sentinel last;

  Iterator begin() { return std::move(first); }
  Sentinel end() { return std::move(last); }
};

/// Numbers batches from 0 in the order of their reception.
struct order_of_reception {};

/// What consume() returns. It is an input range: a loop can read each batch only once.
/// @tparam Source  a range, or a reference to one.
template <class Source, class Number>
class consumed_range {
 public:
  consumed_range(Source&& source, Number number)
      : source_{std::forward<Source>(source)}, number_{std::move(number)} {}

  template <class Sentinel>
  struct sentinel {
    mutable Sentinel end;  // mutable: some loaders' iterators compare only with non-const ones
  };

  template <class Iterator>
  class iterator {
   public:
    iterator(consumed_range& range, Iterator&& at) : range_{range}, at_{std::move(at)} {}

    /// At the end of the data there is no batch, so the last wait is discarded.
    template <class Sentinel>
    bool operator!=(const sentinel<Sentinel>& last) {
      const bool more = at_ != last.end;
      if (!more) range_.wait_.forget();
      return more;
    }

    iterator& operator++() {
      range_.wait_.begin();
      ++at_;
      return *this;
    }

    /// Ends the wait only after dereferencing: an iterator may build the batch here.
    decltype(auto) operator*() {
      if constexpr (std::is_same_v<Number, order_of_reception>) {
        const reception received{range_};
        return *at_;
      } else {
        decltype(auto) batch = *at_;
        range_.receive(
            static_cast<std::uint64_t>(detail::call(range_.number_, std::as_const(batch))));
        return static_cast<decltype(*at_)>(std::move(batch));
      }
    }

   private:
    /// Ends the wait after the batch was built in its final place, so that the batch need not be
    /// movable.
    struct reception {
      consumed_range& range;
      ~reception() { range.receive(range.next_++); }
    };

    consumed_range& range_;
    Iterator at_;
  };

  /// Begins the first wait here, because a loader may start its work in begin().
  auto begin() {
    next_ = 0;
    wait_.begin();
    return iterator<decltype(begin_of(source_))>{*this, begin_of(source_)};
  }
  auto end() { return sentinel<decltype(end_of(source_))>{end_of(source_)}; }

 private:
  void receive(std::uint64_t batch) noexcept {
    wait_.end(batch);
    batch_consumed(batch);
  }

  Source source_;
  Number number_;
  std::uint64_t next_ = 0;
  repeated_wait wait_;
};

}  // namespace detail

/// Records the wait for each batch and its reception while a loop goes through a loader:
///
///   for (auto&& batch : lotus::consume(loader)) train(batch);
///
/// Batches are numbered from 0 in the order of their reception; workers must use the same numbers.
/// The body of the loop is the consumer's step. Exceptions of the loader propagate.
/// @param batches  anything that a range-based for accepts; a temporary is stored, anything else
/// must outlive the loop. Belongs to one thread.
template <class Range, std::enable_if_t<detail::is_range<Range>, int> = 0>
auto consume(Range&& batches) {
  return detail::consumed_range<Range, detail::order_of_reception>{std::forward<Range>(batches),
                                                                   {}};
}

/// The same for a loader that has only iterators.
template <class Iterator, class Sentinel,
          std::enable_if_t<detail::are_iterators<Iterator, Sentinel>, int> = 0>
// Moved if that is cheaper; clang-tidy sees the copies of types that have no cheaper move.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)});
}

/// The same for batches that know their numbers: lotus::consume(loader, &Batch::index).
/// @param number  called with each batch, or a pointer to a member of it; returns an integer.
template <class Range, class Number,
          std::enable_if_t<!detail::are_iterators<std::decay_t<Range>, Number>, int> = 0>
auto consume(Range&& batches, Number number) {
  return detail::consumed_range<Range, Number>{std::forward<Range>(batches), std::move(number)};
}
/// The same for a loader that has only iterators.
template <class Iterator, class Sentinel, class Number>
// NOLINTNEXTLINE(performance-unnecessary-value-param)
auto consume(Iterator first, Sentinel last, Number number) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)},
                 std::move(number));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CONSUME_HPP

// Counters: numbers over time, such as the depth of a queue or the number of bytes held.
#ifndef LOTUS_COUNTER_HPP
#define LOTUS_COUNTER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_ALWAYS_INLINE void count(record_tag name, std::int64_t value) noexcept {
  push(now_ticks(), static_cast<std::uint64_t>(value), {event_kind::counter, name.value()});
}

}  // namespace detail

/// Sets the counter of this name to this value; the whole process shares it. The value is stored
/// only in the hidden side log, because logs of Lotus' format have no counters.
/// @param name  interned by content: needs to live only for this call.
/// Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void counter(std::string_view name, std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(detail::operation_tag(name), value);
}
/// For a name known at compile time: its id is looked up only once.
template <class Here, bool Fixed>
LOTUS_DETAIL_ALWAYS_INLINE void counter(const detail::place<Here, Fixed>& place,
                                        std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(place.tag(), value);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COUNTER_HPP

// Loaders: lets several loaders in one process number their batches independently.
#ifndef LOTUS_LOADER_HPP
#define LOTUS_LOADER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the loader to which this thread's records belonged so far.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  return name.empty() ? 0 : static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Until the end of the block, the batches, stages and operations of this thread belong to the
/// named loader, which lotus-tool treats as a pipeline of its own, with logs in a subfolder of that
/// name. Children that this thread forks belong to the loader too, but threads that it starts do
/// not. Scopes may be nested. Cost: a few system calls; meant for a worker's whole lifetime, or an
/// epoch. Errors: none thrown.
class loader_scope {
 public:
  /// @param name  if empty, the default loader, which is also used without a loader_scope.
  explicit loader_scope(std::string_view name) noexcept
      : before_{detail::enter_loader(detail::loader_of(name))} {}
  loader_scope(const loader_scope&) = delete;
  loader_scope& operator=(const loader_scope&) = delete;
  ~loader_scope() { detail::enter_loader(before_); }

 private:
  std::uint32_t before_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOADER_HPP

// All public macros; no other header reads LOTUS_DISABLE.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

// LOTUS_MAP_REGION: runs one operation of a probe program so that a profiler sees only it.
#ifndef LOTUS_MAP_HPP
#define LOTUS_MAP_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

class collector_state;

/// Makes the compiler assume that the value is read and written here, so that computations that
/// produce or use it stay on their side of this point.
LOTUS_DETAIL_ALWAYS_INLINE void fence_value(const volatile void* value) noexcept {
  __asm__ volatile("" : : "r"(value) : "memory");
}
template <class T>
LOTUS_DETAIL_ALWAYS_INLINE const volatile void* address_of(T& value) noexcept {
  return &reinterpret_cast<const volatile char&>(value);
}
LOTUS_DETAIL_ALWAYS_INLINE void fence_memory() noexcept {
  __asm__ volatile("" : : : "memory");
}

}  // namespace detail

#if LOTUS_SUPPORTED
/// The passes of one LOTUS_MAP_REGION. The object is declared in the head of a `for`: a block left
/// by break, return or an exception ends the pass and pauses. Its code is in engine/map_passes.hpp.
class map_region {
 public:
  /// @param name  name of the operation; copied, up to 255 bytes.
  LOTUS_DETAIL_PER_MODULE explicit map_region(std::string_view name) noexcept {
    begin_region(name);
  }
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  LOTUS_DETAIL_PER_MODULE ~map_region() { end_region(); }

  /// Ends a pass and begins the next; returns false if there is none.
  LOTUS_DETAIL_PER_MODULE bool next() noexcept;

 private:
  // Not in the constructor and destructor themselves: if nothing calls them, as in the file with
  // LOTUS_IMPLEMENTATION, clang emits only their variants for base classes.
  LOTUS_DETAIL_PER_MODULE void begin_region(std::string_view name) noexcept;
  LOTUS_DETAIL_PER_MODULE void end_region() noexcept;
  LOTUS_DETAIL_PER_MODULE void begin_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void end_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void dump_part() noexcept;
  LOTUS_DETAIL_PER_MODULE void list() const noexcept;
  LOTUS_DETAIL_PER_MODULE std::int64_t ns_since(std::uint64_t ticks) const noexcept;
  /// The innermost region of this thread that collects.
  LOTUS_DETAIL_PER_MODULE static map_region*& innermost() noexcept;

  char name_[256] = {};
  detail::collector_state* collector_ = nullptr;
  unsigned warm_up_ = 0;
  unsigned passes_ = 1;
  unsigned pass_ = 0;
  bool collecting_ = false;
  bool counts_instructions_ = false;
  map_region* outer_ = nullptr;
  std::uint64_t interval_ticks_ = 0;
  detail::record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  std::int64_t begin_ns_ = 0;
};
#else
/// Runs its block once.
class map_region {
 public:
  /// Ignores the name: nothing is collected on this system.
  explicit map_region(std::string_view) noexcept {}
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  /// Returns true only the first time.
  bool next() noexcept { return !begun_ && (begun_ = true); }

 private:
  bool begun_ = false;
};
#endif

/// A region that knows the values that its block reads and writes, so that they are computed
/// neither before nor after a pass. Without it the compiler may move a pure function of local
/// values out of the region.
template <class... Values>
class fenced_map_region {
 public:
  /// @param values  borrowed; must outlive the region.
  explicit fenced_map_region(std::string_view name, Values&... values) noexcept
      : region_{name}, values_{detail::address_of(values)..., nullptr} {}

  /// See map_region::next().
  LOTUS_DETAIL_ALWAYS_INLINE bool next() noexcept {
    fence(std::index_sequence_for<Values...>{});
    const bool more = region_.next();
    fence(std::index_sequence_for<Values...>{});
    return more;
  }

 private:
  template <std::size_t... I>
  LOTUS_DETAIL_ALWAYS_INLINE void fence(std::index_sequence<I...>) noexcept {
    (detail::fence_value(values_[I]), ...);
    detail::fence_memory();
  }

  map_region region_;
  const volatile void* values_[sizeof...(Values) + 1];
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_MAP_HPP

// Scopes that record more or less than a span: scope_with_arguments adds the operation's arguments
// as text, aggregated_scope only counts operations and their durations.
#ifndef LOTUS_SCOPE_ARGUMENTS_HPP
#define LOTUS_SCOPE_ARGUMENTS_HPP

#if LOTUS_SUPPORTED
// Begin and end of a call that is counted instead of recorded.
#ifndef LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP

// Operations that are counted instead of recorded: the layout of their sums in the ring file, and
// how a call is added.
#ifndef LOTUS_AGGREGATES_AGGREGATES_HPP
#define LOTUS_AGGREGATES_AGGREGATES_HPP

// The header of a block in a ring file; record/ring_layout.hpp has the rest of the layout.
#ifndef LOTUS_RECORD_BLOCK_HEADER_HPP
#define LOTUS_RECORD_BLOCK_HEADER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class block_kind : std::uint32_t { none = 0, ring = 1, names = 2, aggregates = 3 };

struct block_header {
  std::atomic<block_kind> kind;  ///< stored last, so a reader sees the whole block or none
  std::uint32_t unused;
  std::uint64_t bytes;  ///< size of the block with this header
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_BLOCK_HEADER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// Durations fall into buckets of whole ticks. Below 2 * 64 each number has its own bucket; above,
// each doubling is divided into 64 buckets of equal width. So the middle of a bucket is within 0.8
// % of all durations in it.

inline constexpr unsigned octave_bits = 6;
inline constexpr std::uint32_t octave_buckets = 1U << octave_bits;
inline constexpr std::uint32_t octaves = 64 - octave_bits + 1;

/// Returns the bucket of a duration; less than octaves * octave_buckets.
constexpr std::uint32_t bucket_of(std::uint64_t ticks) noexcept {
  const auto shift = static_cast<unsigned>(63 - octave_bits) -
                     static_cast<unsigned>(__builtin_clzll(ticks | octave_buckets));
  return static_cast<std::uint32_t>((shift << octave_bits) + (ticks >> shift));
}

/// Returns the smallest duration of a bucket, in ticks.
constexpr std::uint64_t bucket_begin(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  if (octave == 0) return bucket;
  return std::uint64_t{octave_buckets + bucket % octave_buckets} << (octave - 1);
}
/// Returns how many different durations fall into a bucket.
constexpr std::uint64_t bucket_width(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  return std::uint64_t{1} << (octave == 0 ? 0 : octave - 1);
}

// A block of aggregates contains chunks, one after another: one with the aggregate for each name
// and loader, and one with the counts of an octave, added when a call first needs them. Only the
// thread that owns them writes to them.
//
// A thread's last call is stored separately and added to its aggregate when the next one ends: the
// clock is read only when all earlier instructions are done, so looking up the bucket of a duration
// that was just measured would stall the processor.

/// A call that has ended.
struct aggregate_call {
  std::uint64_t key;    ///< selects its aggregate
  std::uint64_t ticks;  ///< slightly negative if two processors' clocks differ; then counts as 0
  std::uint64_t self_ticks;  ///< the part of it in no other scope
};

constexpr bool is_negative(const aggregate_call& call) noexcept {
  return static_cast<std::int64_t>(call.ticks) < 0;
}

/// Returns the key for the ids of a name and a loader.
constexpr std::uint64_t aggregate_key(std::uint32_t name, std::uint32_t loader) noexcept {
  return std::uint64_t{loader} << 32 | name;
}

struct last_call {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> number;  ///< stored last
};

struct aggregates_block {
  block_header header;
  std::uint32_t chain;                 ///< the same in all blocks of one thread
  std::atomic<std::uint32_t> threads;  ///< number of threads that used it, one after another
  std::atomic<std::uint32_t> tid;      ///< of the latest of them
  std::uint32_t unused;
  std::atomic<std::uint64_t> used_bytes;  ///< size of the chunks
  last_call last[2];  ///< the one with the greater number counts; only used in a thread's first
                      ///< block

  char* chunks() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* chunks() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  /// @param number  the call's number, from 1
  LOTUS_DETAIL_ALWAYS_INLINE void append(const aggregate_call& call,
                                         std::uint64_t number) noexcept {
    last_call& to = last[number % 2];
    to.key.store(call.key, std::memory_order_relaxed);
    to.ticks.store(call.ticks, std::memory_order_relaxed);
    to.self_ticks.store(call.self_ticks, std::memory_order_relaxed);
    to.number.store(number, std::memory_order_release);
  }
};

/// Maximum number of aggregates of a thread; all other names and loaders share one more.
inline constexpr std::uint32_t most_aggregates = 4096;

enum class chunk_kind : std::uint32_t { none = 0, aggregate = 1, octave = 2 };

struct chunk_header {
  chunk_kind kind;
  std::uint32_t number;  ///< the aggregate's number within its thread
};

/// The sums of an aggregate after a call; a reader sees all of them or none.
struct aggregate_sums {
  std::atomic<std::uint64_t> total_ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> in_bucket;  ///< bucket of that call: see bucket_content()
  std::atomic<std::uint64_t> call;       ///< its number within the thread
};

/// A bucket and its count after a call, which may not have been stored in the bucket itself yet.
inline constexpr unsigned bucket_bits = 12;
constexpr std::uint64_t bucket_content(std::uint32_t bucket, std::uint64_t count) noexcept {
  return count << bucket_bits | bucket;
}

struct stored_aggregate {
  chunk_header header;
  std::uint64_t key;
  std::atomic<std::uint64_t> count;  ///< sums[count % 2] is consistent at any moment
  aggregate_sums sums[2];
};

struct stored_octave {
  chunk_header header;
  std::uint64_t octave;
  std::atomic<std::uint64_t> counts[octave_buckets];
};
static_assert(sizeof(aggregates_block) == 104 && sizeof(stored_aggregate) == 88 &&
                  sizeof(stored_octave) == 528 &&
                  octaves * octave_buckets <= std::uint32_t{1} << bucket_bits,
              "they stand in ring files");

/// The location of an aggregate of this process.
struct local_aggregate {
  std::uint64_t key;
  stored_aggregate* stored;
  std::atomic<std::uint64_t>* octave_counts[octaves];  ///< null until needed
};

struct aggregate_memory;

/// The aggregates of one thread, and how much of its time they contain. For the owning thread,
/// except `memory`. The gate of the thread points to its first block.
struct thread_aggregates {
  const local_aggregate* last_to = nullptr;  ///< the aggregate of the last call
  std::uint64_t calls = 0;                   ///< number of calls that ended; the last one is
                                             ///< last[calls % 2] of the first block
  local_aggregate** table = nullptr;         ///< hash table by key, never full
  std::uint64_t mask = 0;                    ///< number of places in it - 1
  std::atomic<std::uintptr_t> storing{0};    ///< like thread_ring::storing, while a call is added
  std::uint32_t interrupting = 0;            ///< number of entries in interrupting_calls
  /// Ticks spent in scopes inside the open one. At least `recorded_inside` if a span began or ended
  /// in it, because then its other ticks are not its own either.
  std::uint64_t inner_ticks = 0;
  std::uint64_t untold_ticks = 0;      ///< self time of calls that no record contains yet
  aggregate_memory* memory = nullptr;  ///< guarded by the producer's guard
  std::uint32_t told_name = 0;         ///< the name of one of these calls
  /// Calls of signal handlers that interrupted the adding of a call.
  static constexpr std::uint32_t most_interrupting = 16;
  aggregate_call interrupting_calls[most_interrupting];

  static constexpr std::uint64_t recorded_inside = std::uint64_t{1} << 63;

  /// Returns where the search for a key in `table` begins.
  static constexpr std::size_t home_of(std::uint64_t key, std::uint64_t mask) noexcept {
    return (key ^ key >> 32) & mask;
  }

  /// Adds the last call to its aggregate. Returns false if there is no room for it yet.
  LOTUS_DETAIL_ALWAYS_INLINE bool add_last(const aggregates_block& in) const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::uint64_t number = calls;
    const last_call& call = in.last[number % 2];
    const local_aggregate* const to = last_to;
    const std::uint64_t ticks = call.ticks.load(relaxed);
    const std::uint32_t bucket = bucket_of(ticks);
    std::atomic<std::uint64_t>* const counts = to->octave_counts[bucket >> octave_bits];
    if (LOTUS_DETAIL_UNLIKELY(counts == nullptr)) return false;
    std::atomic<std::uint64_t>& count = counts[bucket % octave_buckets];
    stored_aggregate& stored = *to->stored;
    const std::uint64_t so_many = stored.count.load(relaxed);
    const aggregate_sums& before = stored.sums[so_many % 2];
    aggregate_sums& next = stored.sums[~so_many % 2];
    const std::uint64_t in_bucket = count.load(relaxed) + 1;
    next.total_ticks.store(before.total_ticks.load(relaxed) + ticks, relaxed);
    next.self_ticks.store(before.self_ticks.load(relaxed) + call.self_ticks.load(relaxed), relaxed);
    next.in_bucket.store(bucket_content(bucket, in_bucket), relaxed);
    next.call.store(number, relaxed);
    // Until this store, a reader must add the last call itself; from here on the sums contain it.
    // If its bucket does not contain it yet, the sums have the bucket's count.
    stored.count.store(so_many + 1, std::memory_order_release);
    count.store(in_bucket, std::memory_order_release);
    return true;
  }

  /// Returns null if there is none yet.
  LOTUS_DETAIL_ALWAYS_INLINE const local_aggregate* find(std::uint64_t key) const noexcept {
    for (std::size_t place = home_of(key, mask);; place = (place + 1) & mask) {
      const local_aggregate* const found = table[place];
      if (found == nullptr || LOTUS_DETAIL_LIKELY(found->key == key)) return found;
    }
  }

  /// Returns the self time of calls that no record contains yet, because a span begins or ends.
  std::uint64_t tell(record_tag& tag) noexcept {
    // A signal handler interrupted the adding of a call.
    if (storing.load(std::memory_order_relaxed) != 0) return 0;
    inner_ticks |= recorded_inside;
    const std::uint64_t own_ticks = untold_ticks;
    untold_ticks = 0;
    tag = {event_kind::aggregated, told_name, large_stage_number};
    return static_cast<std::int64_t>(own_ticks) > 0 ? own_ticks : 0;
  }

  /// A handler interrupted take() and abandoned it by siglongjmp: undoes the call, as if it had not
  /// begun.
  /// @param in  the thread's first block.
  void undo_unfinished(const aggregates_block& in) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::uint64_t numbers[2] = {in.last[0].number.load(relaxed),
                                      in.last[1].number.load(relaxed)};
    calls = numbers[0] > numbers[1] ? numbers[0] : numbers[1];
    const local_aggregate* const to = calls == 0 ? nullptr : find(in.last[calls % 2].key);
    if (to == nullptr) return;
    last_to = to;
    stored_aggregate& stored = *to->stored;
    const std::uint64_t so_many = stored.count.load(relaxed);
    const aggregate_sums& sums = stored.sums[so_many % 2];
    if (so_many == 0 || sums.call.load(relaxed) != calls) return;
    // The last call has been added already: removes it, because the next call will add it. Whatever
    // its bucket contains, the sums have the right count until their own count goes back.
    const std::uint64_t in_bucket = sums.in_bucket.load(relaxed);
    const std::uint64_t bucket = in_bucket & ((std::uint64_t{1} << bucket_bits) - 1);
    to->octave_counts[bucket >> octave_bits][bucket % octave_buckets].store(
        (in_bucket >> bucket_bits) - 1, std::memory_order_release);
    stored.count.store(so_many - 1, std::memory_order_release);
  }

  /// Adds a call; every reader sees it once this returns, even after a kill. Returns false if there
  /// is no room for it, or for the previous one.
  /// @param in  the thread's first block, or null.
  LOTUS_DETAIL_ALWAYS_INLINE bool take(aggregates_block* in, const aggregate_call& call) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(in == nullptr)) return false;
    const local_aggregate* to = last_to;
    if (LOTUS_DETAIL_UNLIKELY(to->key != call.key)) {
      to = find(call.key);
      if (LOTUS_DETAIL_UNLIKELY(to == nullptr)) return false;
    }
    if (LOTUS_DETAIL_UNLIKELY(!add_last(*in))) return false;
    last_to = to;
    in->append(call, ++calls);
    untold_ticks += call.self_ticks;
    return true;
  }
};

/// The part of a thread's state that counts calls and stores records.
struct aggregating_ring : thread_ring {
  thread_aggregates aggregates;
};
LOTUS_DETAIL_ALWAYS_INLINE thread_aggregates& aggregates_of(thread_ring& ring) noexcept {
  return static_cast<aggregating_ring&>(ring).aggregates;
}
inline const thread_aggregates& aggregates_of(const thread_ring& ring) noexcept {
  return static_cast<const aggregating_ring&>(ring).aggregates;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Makes the next begin or end of a span read the clocks, so that it records the calls' self time.
LOTUS_DETAIL_RARE void mark_watch() noexcept;
/// Handles calls that cannot be added directly: a thread's first call, the call after the first one
/// of a name or duration, and calls of handlers that interrupted the adding of another.
/// @param taken  whether the call was added already, so that only those of interrupting handlers
/// are left.
LOTUS_DETAIL_RARE void aggregate_rarely(aggregate_call call, bool taken) noexcept;

/// A call begins. Returns the value that its end must pass to aggregate().
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t begin_aggregated() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.may_be_marked())) mark_watch();
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return 0;
  const std::uint64_t outer_ticks = aggregates_of(*p).inner_ticks;
  aggregates_of(*p).inner_ticks = 0;
  return outer_ticks;
}

/// Adds a call to the sums of its name; every reader sees it once this returns, even after a kill.
/// @param outer_ticks  the result of begin_aggregated().
/// Errors: none thrown. Thread and signal safety: all. Cost: bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void aggregate(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                          record_tag tag, std::uint64_t outer_ticks) noexcept {
  const auto name = static_cast<std::uint32_t>(tag.value());
  const std::uint64_t ticks = end_ticks - begin_ticks;
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) {
    return aggregate_rarely({aggregate_key(name, 0), ticks, ticks}, false);
  }
  thread_aggregates& a = aggregates_of(*p);
  const std::uint64_t inner_ticks = a.inner_ticks;
  a.inner_ticks = outer_ticks + ticks;
  // A span has begun or ended inside this call.
  if (LOTUS_DETAIL_UNLIKELY(static_cast<std::int64_t>(inner_ticks) < 0)) {
    a.inner_ticks |= thread_aggregates::recorded_inside;
    mark_watch();
  }
  const aggregate_call call{aggregate_key(name, p->loader), ticks,
                            ticks > inner_ticks ? ticks - inner_ticks : 0};
  if (LOTUS_DETAIL_UNLIKELY(a.storing.load(std::memory_order_relaxed) != 0)) {
    return aggregate_rarely(call, false);
  }
  // As in push(): a handler that interrupts this sees `storing`.
  a.storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool taken = a.take(gate_of(*p).aggregates.load(std::memory_order_acquire), call);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  a.storing.store(0, std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(!taken || a.interrupting != 0)) aggregate_rarely(call, taken);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP

#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <class T, class = void>
inline constexpr bool is_sequence = false;
template <class T>
inline constexpr bool is_sequence<T, std::void_t<decltype(std::begin(std::declval<const T&>())),
                                                 decltype(std::end(std::declval<const T&>()))>> =
    true;

/// Arguments as text, "[3, 224, 224], bilinear". Text that is too long is cut and ends in "...".
class LOTUS_DETAIL_PER_MODULE arguments_text {
 public:
  static constexpr std::size_t most_bytes = 120;

  template <class... Arguments>
  explicit arguments_text(const Arguments&... arguments) noexcept {
    (add(arguments), ...);
    if (cut_) add_raw("...", 0);
  }

  std::string_view text() const noexcept { return {text_, bytes_}; }

 private:
  template <class T>
  void add(const T& argument) noexcept {
    if (bytes_ > 0) add_raw(", ");
    put(argument);
  }

  template <class T>
  void put(const T& argument) noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      add_raw(argument ? "true" : "false");
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      add_raw(argument);
    } else if constexpr (std::is_enum_v<T>) {
      put(static_cast<std::underlying_type_t<T>>(argument));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      put_number(static_cast<long long>(argument));
    } else if constexpr (std::is_integral_v<T>) {
      put_number(static_cast<unsigned long long>(argument));
    } else if constexpr (std::is_floating_point_v<T>) {
      put_number(static_cast<double>(argument));
    } else {
      static_assert(is_sequence<T>,
                    "an argument is a text, a number, an enumerator, or a sequence of these");
      add_raw("[");
      const char* between = "";
      for (const auto& element : argument) {
        add_raw(between);
        put(element);
        between = ", ";
        if (cut_) break;
      }
      add_raw("]");
    }
  }

  LOTUS_DETAIL_PER_MODULE void put_number(long long number) noexcept;
  LOTUS_DETAIL_PER_MODULE void put_number(unsigned long long number) noexcept;
  LOTUS_DETAIL_PER_MODULE void put_number(double number) noexcept;
  template <class Number>
  void put_printed(const char* format, Number number) noexcept;
  /// @param kept_free  number of bytes to keep free at the end of the buffer.
  LOTUS_DETAIL_PER_MODULE void add_raw(std::string_view text, std::size_t kept_free = 3) noexcept;

  char text_[most_bytes];
  std::size_t bytes_ = 0;
  bool cut_ = false;
};

}  // namespace detail

/// A scope that also stores the operation's arguments; see LOTUS_SCOPE_ARGS.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one. Cost: that of
/// two scopes plus formatting the text and looking it up.
class scope_with_arguments : detail::span {
 public:
  /// @param arguments  texts (cut at 120 bytes in all), numbers, enumerators, and sequences of
  /// these; they are read only while this process is recording. Every distinct text stays in
  /// memory.
  template <class Here, bool Fixed, class... Arguments>
  explicit scope_with_arguments(const detail::place<Here, Fixed>& place,
                                const Arguments&... arguments) noexcept
      : span{[&place] { return place.tag(); }} {
    if (tag().empty()) return;
    const detail::arguments_text text{arguments...};
    arguments_ = {detail::event_kind::arguments, detail::operation_tag(text.text()).value()};
  }
  ~scope_with_arguments() {
    if (!arguments_.empty()) precede(arguments_, 0);
  }

 private:
  detail::record_tag arguments_;
};

/// Aggregates one operation, from here to the end of the block, instead of logging it: counts how
/// often it ran, its total time, and the distribution of its durations; see LOTUS_SCOPE_AGGREGATED.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one.
class aggregated_scope {
 public:
  /// @param place  holds the name, which needs to live only for this call.
  template <class Here, bool Fixed>
  LOTUS_DETAIL_ALWAYS_INLINE explicit aggregated_scope(
      const detail::place<Here, Fixed>& place) noexcept {
    const detail::recording mode = detail::recording_mode();
    if (mode == detail::recording::off) return;
    tag_ = LOTUS_DETAIL_LIKELY(mode == detail::recording::on) ? place.tag() : rare_tag(place);
    if (tag_.empty()) return;
    outer_ticks_ = detail::begin_aggregated();
    begin_ticks_ = detail::now_ticks();
  }
  LOTUS_DETAIL_ALWAYS_INLINE ~aggregated_scope() {
    if (tag_.empty()) return;
    const std::uint64_t end_ticks = detail::now_ticks();
    const detail::recording mode = detail::recording_mode();
    if (LOTUS_DETAIL_UNLIKELY(mode == detail::recording::off)) return;
    detail::aggregate(begin_ticks_, end_ticks, tag_, outer_ticks_);
    if (LOTUS_DETAIL_UNLIKELY(mode == detail::recording::annotated)) end_annotation();
  }
  aggregated_scope(const aggregated_scope&) = delete;
  aggregated_scope& operator=(const aggregated_scope&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  template <class Here, bool Fixed>
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static detail::record_tag rare_tag(
      detail::place<Here, Fixed> place) noexcept {
    if (!detail::is_recording()) return {};
    const detail::record_tag tag = place.tag();
    if (detail::recording_mode() == detail::recording::annotated) {
      detail::begin_annotation(annotation_of(tag));
    }
    return tag;
  }
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD void end_annotation() const noexcept {
    detail::end_annotation(begin_ticks_, annotation_of(tag_));
  }

  /// Allocations are attributed to the enclosing operation, which has a record.
  static detail::record_tag annotation_of(detail::record_tag tag) noexcept {
    return {detail::event_kind::aggregated, static_cast<std::uint32_t>(tag.value()),
            detail::large_stage_number};
  }

  detail::record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  std::uint64_t outer_ticks_ = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_ARGUMENTS_HPP

// Pipelines of stages: records on which batch, item or request a thread works.
#ifndef LOTUS_STAGE_HPP
#define LOTUS_STAGE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A span with a 64-bit number; most numbers are small and need no second record.
class numbered_span : span {
 protected:
  /// @param make_name  returns the tag of an operation; called only if the span is measured.
  template <class MakeName>
  LOTUS_DETAIL_ALWAYS_INLINE numbered_span(MakeName make_name, std::uint64_t number) noexcept
      : span{[make_name, number] { return stage_tag(make_name(), number); }}, number_{number} {}
  /// A plain operation until set_number() is called.
  template <class MakeName>
  LOTUS_DETAIL_ALWAYS_INLINE explicit numbered_span(MakeName make_name) noexcept
      : span{make_name} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~numbered_span() {
    if (LOTUS_DETAIL_LIKELY(number_ < large_stage_number) || tag().empty()) return;
    precede({event_kind::stage_number, tag().value() >> 32}, number_);
  }

  void set_number(std::uint64_t number) noexcept {
    number_ = number;
    retag([number](record_tag operation) { return stage_tag(operation, number); });
  }
  /// Discards the span: nothing is recorded.
  void forget() noexcept {
    retag([](record_tag) { return record_tag{}; });
  }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE static record_tag stage_tag(record_tag operation,
                                                         std::uint64_t number) noexcept {
    return {event_kind::stage, static_cast<std::uint32_t>(operation.value()),
            LOTUS_DETAIL_LIKELY(number < large_stage_number) ? static_cast<std::uint32_t>(number)
                                                             : large_stage_number};
  }

  std::uint64_t number_ = 0;
};

/// A stage whose number may be known only when it ends; without a number it is a plain operation.
class late_stage : numbered_span {
 public:
  explicit late_stage(record_tag operation) noexcept
      : numbered_span{[operation] { return operation; }} {}
  ~late_stage() = default;

  template <class Number>
  void number(const Number& number) noexcept {
    static_assert(!std::is_same_v<Number, bool>, "staged: the projection gives a bool, no number");
    if constexpr (std::is_integral_v<Number>) {
      set_number(static_cast<std::uint64_t>(number));
    } else if (number) {
      this->number(*number);
    } else {
      forget();
    }
  }
  using numbered_span::forget;
};

/// Converts like a T, but only to pointers: not to bool.
template <class T>
struct pointer_only {
  template <class To,
            std::enable_if_t<std::is_pointer_v<To> && std::is_convertible_v<T, To>, int> = 0>
  operator To() const noexcept;
};

/// Whether the parameters of a callable are known: it is neither a template nor overloaded.
template <class F, class = void>
inline constexpr bool has_one_signature =
    std::is_function_v<std::remove_pointer_t<F>> && !std::is_member_pointer_v<F>;
template <class F>
inline constexpr bool has_one_signature<F, std::void_t<decltype(&F::operator())>> = true;

/// Whether a projection accepts these arguments without converting a pointer to bool.
template <class Number, class... Given>
constexpr bool is_projection_of() noexcept {
  if constexpr (!std::is_invocable_v<const Number&, const Given&...>) {
    return false;
  } else if constexpr (has_one_signature<Number>) {
    return std::is_invocable_v<
        const Number&,
        std::conditional_t<std::is_pointer_v<Given>, pointer_only<Given>, const Given&>...>;
  } else {
    return true;
  }
}

/// Whether a value can mean "no more": a pointer, an optional.
template <class T, class = void>
inline constexpr bool is_nullable = false;
template <class T>
inline constexpr bool is_nullable<T, std::void_t<decltype(static_cast<bool>(std::declval<T&>())),
                                                 decltype(*std::declval<T&>())>> = true;

/// Whether a projection accepts what a value of this type points to. Pointers to members accept
/// pointers as well, but not null pointers.
template <class Number, class Result>
constexpr bool is_projection_of_content() noexcept {
  if constexpr (is_nullable<Result>) {
    using content = std::decay_t<decltype(*std::declval<Result&>())>;
    return is_projection_of<Number, content>() &&
           (std::is_member_pointer_v<Number> || !is_projection_of<Number, Result>());
  } else {
    return false;
  }
}

/// What staged() returns: calls `Function`; `Number` gets the number from its arguments or result.
template <class Number, class Function>
class staged_function {
 public:
  staged_function(std::string_view name, Number number, Function function)
      : operation_{operation_tag(name)},
        number_{std::move(number)},
        function_{std::move(function)} {}

  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) const {
    return call(function_, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) {
    return call(function_, std::forward<Arguments>(arguments)...);
  }

 private:
  template <class F, class... Arguments>
  decltype(auto) call(F& function, Arguments&&... arguments) const {
    using result = std::invoke_result_t<F&, Arguments...>;
    late_stage stage{operation_};
    if constexpr (is_projection_of<Number, std::decay_t<Arguments>...>()) {
      stage.number(detail::call(number_, std::as_const(arguments)...));
      return detail::call(function, std::forward<Arguments>(arguments)...);
    } else {
      using made_type = std::decay_t<result>;
      constexpr bool of_content = is_projection_of_content<Number, made_type>();
      static_assert(of_content || is_projection_of<Number, made_type>(),
                    "staged: the projection takes neither the arguments of the function nor its "
                    "result, or only by converting a pointer to bool");
      decltype(auto) made = detail::call(function, std::forward<Arguments>(arguments)...);
      if constexpr (!of_content) {
        stage.number(detail::call(number_, std::as_const(made)));
      } else if (made) {
        stage.number(detail::call(number_, std::as_const(*made)));
      } else {
        stage.forget();
      }
      return static_cast<result>(std::move(made));
    }
  }

  record_tag operation_;
  Number number_;
  Function function_;
};

/// Uses the first argument as the number.
struct argument_number {
  template <class Argument, class... Others>
  constexpr auto operator()(const Argument& number, const Others&...) const noexcept
      -> std::enable_if_t<std::is_integral_v<Argument>, Argument> {
    return number;
  }
};

}  // namespace detail

/// Scope: this thread works on batch (or item, or request) `number` in a stage of the pipeline. It
/// is an operation, "S<name>", that lotus-tool also shows as a part of that batch's path.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one. Cost: a number
/// of 2^32 - 1 or more needs a second record.
class stage : detail::numbered_span {
 public:
  /// @param name  interned by content: needs to live only for this call. Costs a hash and a lookup.
  LOTUS_DETAIL_ALWAYS_INLINE stage(std::string_view name, std::uint64_t number) noexcept
      : numbered_span{[name] { return detail::operation_tag(name); }, number} {}
  /// For a name known at compile time: its id is looked up only once.
  template <class Here, bool Fixed>
  LOTUS_DETAIL_ALWAYS_INLINE stage(const detail::place<Here, Fixed>& place,
                                   std::uint64_t number) noexcept
      : numbered_span{[&place] { return place.tag(); }, number} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~stage() = default;
};

/// Wraps a function for a framework that calls it (a filter of oneTBB, a task of std::async): each
/// call is a stage.
/// @param name      interned by content: needs to live only for this call.
/// @param number    returns the number of the batch, item or request, as an integer or an optional
/// integer. It is called with the arguments or, if it does not accept those, with the result, or
/// with what the result points to (a pointer or an optional that a source returns). Nothing is
/// logged if there is no number, or if the result is null, as at the end of a source.
/// @param function  its exceptions propagate; the time up to one is logged if the number was known
/// before the call.
template <class Number, class Function>
auto staged(std::string_view name, Number number, Function function) {
  return detail::staged_function<Number, Function>{name, std::move(number), std::move(function)};
}

/// The same for a function whose first argument is the number.
template <class Function>
auto staged(std::string_view name, Function function) {
  return staged(name, detail::argument_number{}, std::move(function));
}

/// Item `item` becomes part of batch `batch` (a shuffle buffer, collation): so stages may number
/// items.
/// @param batch, item  if one is 2^56 or more, the event is dropped and counted.
LOTUS_DETAIL_ALWAYS_INLINE void batch_takes(std::uint64_t batch, std::uint64_t item) noexcept {
  if (!detail::is_recording()) return;
  const std::uint64_t large = batch | item;
  const detail::record_tag tag =
      LOTUS_DETAIL_LIKELY(large >> detail::record_tag::value_bits == 0)
          ? detail::record_tag{detail::event_kind::batch_takes, batch}
          : detail::batch_tag(detail::event_kind::batch_takes, batch > item ? batch : item);
  if (LOTUS_DETAIL_LIKELY(!tag.empty())) detail::push(detail::now_ticks(), item, tag);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STAGE_HPP

// Makes a unique name, so that two macros may be used on one line or inside one macro of the
// user's.
#if defined(__COUNTER__)
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __COUNTER__)
#else
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __LINE__)
#endif

// clang 22's -Wpedantic reports __COUNTER__ as an extension where it is expanded, which is in the
// user's code. The warning stays off after this header: a pragma inside the macros takes effect too
// late if a scope is in an argument of another macro, such as a test's assertion.
#if defined(__clang__)
  #if __has_warning("-Wc2y-extensions")
    #pragma clang diagnostic ignored "-Wc2y-extensions"
  #endif
#endif

// Each scope macro is one declaration, so it is safe after `if (c)`; each event macro is one
// expression. With LOTUS_DISABLE the arguments are still type-checked and never evaluated.
#if defined(LOTUS_DISABLE)
  #define LOTUS_DETAIL_SCOPE(type, argument)                       \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0 : (static_cast<void>(argument), 0)
  #define LOTUS_DETAIL_SITE(name) (name)
  #define LOTUS_DETAIL_PLACE(name) (name)
  #define LOTUS_DETAIL_SCOPE_OF_TWO(type, first, second)           \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0 : (static_cast<void>(first), static_cast<void>(second), 0)
  #define LOTUS_DETAIL_SCOPE_WITH(type, first, ...)                \
    [[maybe_unused]] const int LOTUS_DETAIL_UNIQUE(lotus_scope_) = \
        true ? 0                                                   \
             : (static_cast<void>(first),                          \
                static_cast<void>(::lotus::detail::arguments_text{__VA_ARGS__}), 0)
  #define LOTUS_DETAIL_EVENT(function, argument) \
    static_cast<void>(true ? 0 : (static_cast<void>(argument), 0))
  #define LOTUS_DETAIL_EVENT_OF_TWO(function, first, second) \
    static_cast<void>(true ? 0 : (static_cast<void>(first), static_cast<void>(second), 0))
  #define LOTUS_DETAIL_COLLECTOR(function) static_cast<void>(0)
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (bool variable = true; variable;     \
         variable = true ? false             \
                         : (static_cast<void>(::lotus::fenced_map_region{__VA_ARGS__}), false))
#else
  #define LOTUS_DETAIL_SCOPE(type, argument)                \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      argument                                              \
    }
  #define LOTUS_DETAIL_SITE(literal)                                            \
    []() noexcept {                                                             \
      struct lotus_here {                                                       \
        static constexpr ::std::string_view name() noexcept { return literal; } \
      };                                                                        \
      return ::lotus::detail::place<lotus_here, true>{lotus_here::name()};      \
    }()
  // The spelling of the argument shows whether the name is a literal.
  #define LOTUS_DETAIL_PLACE(name) LOTUS_DETAIL_PLACE_OF(name, #name)
  #define LOTUS_DETAIL_PLACE_OF(name, written)                                                \
    [](::std::string_view given) noexcept {                                                   \
      struct lotus_here {};                                                                   \
      return ::lotus::detail::place<lotus_here, ::lotus::detail::is_literal(written)>{given}; \
    }(name)
  #define LOTUS_DETAIL_SCOPE_OF_TWO(type, first, second)    \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      first, second                                         \
    }
  #define LOTUS_DETAIL_SCOPE_WITH(type, first, ...)         \
    const ::lotus::type LOTUS_DETAIL_UNIQUE(lotus_scope_) { \
      first, __VA_ARGS__                                    \
    }
  #define LOTUS_DETAIL_EVENT(function, argument) ::lotus::function(argument)
  #define LOTUS_DETAIL_EVENT_OF_TWO(function, first, second) ::lotus::function(first, second)
  #define LOTUS_DETAIL_COLLECTOR(function) ::lotus::collector::function()
  #define LOTUS_DETAIL_REGION(variable, ...) \
    for (::lotus::fenced_map_region variable{__VA_ARGS__}; variable.next();)
#endif

/// Logs "S<name>" for the time from here to the end of the block. The name is a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// The same with a name known only at run time: anything convertible to std::string_view.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// LOTUS_SCOPE that also stores the operation's arguments as text: LOTUS_SCOPE_ARGS("Resize",
/// image.shape()); see lotus::scope_with_arguments. The name is a literal or anything convertible
/// to std::string_view.
#define LOTUS_SCOPE_ARGS(name, ...) \
  LOTUS_DETAIL_SCOPE_WITH(scope_with_arguments, LOTUS_DETAIL_PLACE(name), __VA_ARGS__)

/// Aggregates the time from here to the end of the block instead of logging it: for operations that
/// take about a microsecond; see lotus::aggregated_scope. The name is a literal or anything
/// convertible to std::string_view.
#define LOTUS_SCOPE_AGGREGATED(name) LOTUS_DETAIL_SCOPE(aggregated_scope, LOTUS_DETAIL_PLACE(name))

/// Scope in a worker around all the work that builds batch `i`.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Scope in the consumer around its wait for batch `i`.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` arrived out of order and is buffered.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` was received, and the step begins.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// In the consumer: batch `i` is dispatched to a worker.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// Scope: this thread works on batch (or item, or request) `i` in the stage `name`, which is a
/// literal or anything convertible to std::string_view; see lotus::stage.
#define LOTUS_STAGE(name, i) \
  LOTUS_DETAIL_SCOPE_OF_TWO(stage, LOTUS_DETAIL_PLACE(name), static_cast<::std::uint64_t>(i))
/// Item `item` becomes part of batch `batch`; see lotus::batch_takes.
#define LOTUS_BATCH_TAKES(batch, item)                                        \
  LOTUS_DETAIL_EVENT_OF_TWO(batch_takes, static_cast<::std::uint64_t>(batch), \
                            static_cast<::std::uint64_t>(item))
/// Until the end of the block, all records of this thread belong to the loader `name`; see
/// lotus::loader_scope.
#define LOTUS_LOADER(name) LOTUS_DETAIL_SCOPE(loader_scope, ::std::string_view{name})
/// Sets the counter `name` (a literal or anything convertible to std::string_view) to `n`.
#define LOTUS_COUNTER(name, n) \
  LOTUS_DETAIL_EVENT_OF_TWO(counter, LOTUS_DETAIL_PLACE(name), static_cast<::std::int64_t>(n))

/// Resumes the profiler that runs this program, if any; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// Pauses the profiler; call it once for each LOTUS_RESUME().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// Detaches the profiler: it collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// For a probe program: LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); } The block is one
/// operation. Under a collector it runs for warm-up (LOTUS_MAP_WARMUP passes, 4 by default), then
/// for LOTUS_MAP_PASSES (1) passes that are collected and logged like a scope; without a collector
/// it runs exactly once. LOTUS_MAP_OP selects the only region to collect. After the name, list the
/// variables that the block reads and writes, so that the compiler moves no work on them out of the
/// block.
// clang's analyzer does not see that the innermost region is restored if many regions follow one
// another.
// NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
#define LOTUS_MAP_REGION(...) LOTUS_DETAIL_REGION(LOTUS_DETAIL_UNIQUE(lotus_region_), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP

// Spans that are not blocks of a program: spans that the program measured itself, and timeline
// ranges.
#ifndef LOTUS_RECORD_SPAN_HPP
#define LOTUS_RECORD_SPAN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the tag of a range. A number at the end of the name is stored separately, so that a
/// million iterations share one name; leading zeros belong to the name.
LOTUS_DETAIL_PER_MODULE record_tag range_tag(std::string_view name) noexcept;

}  // namespace detail

/// A named range of this thread's time, to the end of the block, for orientation: shown on the
/// timeline of lotus-tool and, with LOTUS_ANNOTATE, of other profilers, but in no log of Lotus'
/// format and in no statistics. To measure something, use LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the range itself belongs to one.
class range : detail::span {
 public:
  /// @param name  interned by content, without the number at its end: needs to live only for this
  /// call.
  explicit range(std::string_view name) noexcept
      : span{[name] { return detail::range_tag(name); }} {}
  ~range() = default;
};

/// Begins a range that range_pop() ends, for ranges that do not match a block. Ranges nest; each
/// thread has its own in each shared object of the program. Costs an allocation.
LOTUS_DETAIL_PER_MODULE void range_push(std::string_view name);

/// Ends the range that this thread pushed last; does nothing if there is none.
LOTUS_DETAIL_PER_MODULE void range_pop() noexcept;

namespace detail {

/// Returns the nanoseconds of a std::chrono time point, without including <chrono>.
template <class TimePoint>
constexpr std::int64_t ns_since_epoch(const TimePoint& at) noexcept {
  using period = typename TimePoint::period;
  const auto count = at.time_since_epoch().count();
  if constexpr (std::is_integral_v<std::decay_t<decltype(count)>> &&
                1'000'000'000 * period::num % period::den == 0) {
    return static_cast<std::int64_t>(count) * (1'000'000'000 * period::num / period::den);
  } else {
    return static_cast<std::int64_t>(static_cast<long double>(count) * 1e9L * period::num /
                                     period::den);
  }
}

}  // namespace detail

/// Logs the operation "S<name>" of this thread from `begin` to `end`. Accurate to less than a
/// microsecond for recent times; the error grows with age, because clocks drift. If a span partly
/// overlaps a scope of this thread, as time in a queue may, lotus-tool reports it as impossible; an
/// async_scope may overlap anything.
/// @param name        interned by content: needs to live only for this call.
/// @param begin, end  times of std::chrono::steady_clock in any unit, or of another clock that
/// counts like CLOCK_MONOTONIC.
/// Errors: none thrown. Thread safety: any thread.
template <class Begin, class End>
void record_span(std::string_view name, const Begin& begin, const End& end) noexcept {
  static_assert(
      Begin::clock::is_steady && std::is_same_v<typename Begin::clock, typename End::clock>,
      "both are times of one steady clock");
  if (!detail::is_recording()) return;
  const detail::given_ticks ticks = detail::join_session(true).ticks_of_span(
      detail::ns_since_epoch(begin), detail::ns_since_epoch(end));
  detail::push(ticks.begin, ticks.end, detail::operation_tag(name));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP

// Starts and stops recording, for the whole run or for selected steps.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#if LOTUS_SUPPORTED
#else
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Starts recording; see options. Records all scopes that end from now on, on every thread, also
/// those of other shared objects of this process and of children it forks. Takes at most 5 ms: if
/// recovering the records of processes that died takes longer, it continues in the background.
/// @return false, after one message with the reason, if the directory cannot be written; the
/// program can go on and is just not recorded. Also true if the same recording is running already.
/// Thread safety: all functions here may be called on any thread.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Starts recording with step 0 of a schedule. Only its active steps are recorded: each range of
/// consecutive active steps goes into a folder of its own, `steps_<first>_<last>`, in the directory
/// of `log_file`; lotus-tool reads it as a run. On every thread, what begins and ends within the
/// range is recorded. A process forked within the range records into that folder until it calls
/// step() itself.
/// @return false, after one message with the reason, if the schedule has no active steps; if step 0
/// is active, also for the reasons given above.
inline bool start(const options& chosen, const schedule& steps) {
  steps.on_trace_ready.keep();
  return detail::join_session(false).start_steps(chosen, steps);
}

/// The same with only a `log_file`.
inline bool start(std::string_view log_file, const schedule& steps) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen, steps);
}

/// Ends the current step and begins the next; does nothing without a schedule. When a range of
/// active steps ends, writes all its records and calls on_trace_ready. Thread safety: any thread;
/// the steps of all threads are counted together.
inline void step() {
  detail::step_notice notice;
  if (detail::join_session(true).step(notice)) notice.listener(notice.folder);
}

/// Writes all records that are complete so far to the logs. Not needed before exit.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Stores a copy of what is recorded so far in a run folder of its own next to the run's,
/// `<run>.snapshot-<UTC>-<reason>`, which lotus-tool reads. It holds all complete records of this
/// process, and what other processes of the run have drained. No recording thread has to wait. The
/// oldest snapshots are deleted if all together would exceed options::snapshots_bytes.
/// @param reason  letters, digits, '.', '-' and '_'; others become '-'. Only the first 64 bytes
/// count.
/// @return false, after a message with the reason, if nothing is being recorded, if there is no
/// room, or if another snapshot is being taken.
inline bool snapshot(std::string_view reason) noexcept {
  return detail::join_session(true).snapshot(reason.data(), reason.size());
}

/// Ends recording and writes all records. Scopes that are still open are not recorded. Calls
/// on_trace_ready if active steps of a schedule are being recorded. start() may be called again.
inline void stop() {
  detail::step_notice notice;
  if (detail::join_session(false).stop(notice)) notice.listener(notice.folder);
}

/// Returns how many records this process has lost: dropped by choice (full_ring::drop), because
/// neither disk nor memory could hold them, or because the batch number was 2^56 or more.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP

#endif  // LOTUS_LOTUS_HPP

// Outside the include guard: another header may have included this one before LOTUS_IMPLEMENTATION
// was defined.
#if !defined(LOTUS_COMPILED) || defined(LOTUS_IMPLEMENTATION)
// The implementation of the API. A header-only program compiles it in each file; a program with
// LOTUS_COMPILED only in the file that defines LOTUS_IMPLEMENTATION.
#ifndef LOTUS_ENGINE_ENGINE_HPP
#define LOTUS_ENGINE_ENGINE_HPP

// The slow paths of scopes, batches and ranges.
#ifndef LOTUS_ENGINE_API_CALLS_HPP
#define LOTUS_ENGINE_API_CALLS_HPP

#include <cstdio>
#include <cstring>
#include <new>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM record_tag
known_tag::first_tag(std::string_view name) noexcept {
  const record_tag tag = operation_tag(name);
  // Not cached if the name got no memory: there may be some next time.
  if (tag.value() != unnamed_id) tag_.store(tag, std::memory_order_relaxed);
  return tag;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::precede(record_tag event,
                                                       std::uint64_t word) const noexcept {
  if (is_recording()) push(begin_ticks_, word, event);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::tell_crossed_threads(record_tag tag) noexcept {
  join_session(true).crossed_threads(tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::end_annotated(std::uint64_t begin_ticks,
                                                             std::uint64_t end_ticks,
                                                             record_tag tag) noexcept {
  end_annotation(begin_ticks, tag);
  push(begin_ticks, end_ticks, tag);
}

/// Other measured spans are shown on no timeline: they get their names too late, or need not nest.
inline bool has_task(record_tag tag) noexcept {
  return tag.kind() == event_kind::async_piece;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM bool measured_span::begin_rarely(record_tag tag) noexcept {
  if (!is_recording()) return false;
  if (recording_mode() != recording::annotated) return true;
  const services& session = join_session(true);
  has_task(tag) ? session.begin_task(tag) : session.begin_heap(tag);
  return true;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void measured_span::end_rarely(std::uint64_t begin_ticks,
                                                                   record_tag tag) noexcept {
  if (tag.empty()) return;
  const services& session = join_session(true);
  has_task(tag) ? session.end_task(begin_ticks, tag) : session.end_heap(begin_ticks, tag, tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::begin_nameless() noexcept {
  join_session(true).begin_heap(whole_);
  nameless_ = true;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::end_part(record_tag tag) noexcept {
  if (nameless_) {
    join_session(true).end_heap(last_ticks_, whole_, tag);
  } else if (running_.kind() != nothing_yet.kind()) {
    end_annotation(last_ticks_, running_);
  }
  nameless_ = false;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void operation_run::end_early() noexcept {
  if (running_.kind() == nothing_yet.kind()) {
    first_ticks_ = 0;
  } else {
    ended(running_);
  }
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void take_async_ids() noexcept {
  const std::uint32_t first = join_session(true).take_async_ids();
  this_async_ids = {first, first + async_ids_at_once};
}

LOTUS_DETAIL_SEAM record_tag range_tag(std::string_view name) noexcept {
  constexpr std::size_t most_digits = 9;
  std::uint32_t number = 0;
  std::uint32_t unit = 1;
  std::size_t digits = 0;
  for (std::size_t i = name.size(); i-- > 0 && digits < most_digits; ++digits, unit *= 10) {
    if (name[i] < '0' || name[i] > '9') break;
    number += unit * static_cast<std::uint32_t>(name[i] - '0');
  }
  const std::size_t text = name.size() - digits;
  const bool split = digits > 0 && text > 0 && (digits == 1 || name[text] != '0') &&
                     (name[text - 1] < '0' || name[text - 1] > '9');
  const record_tag of = operation_tag(split ? name.substr(0, text) : name);
  return {event_kind::range, static_cast<std::uint32_t>(of.value()),
          split ? number : large_stage_number};
}

struct open_range {
  range of;
  open_range* around;
};

LOTUS_DETAIL_PER_MODULE inline thread_local open_range* innermost_range = nullptr;

template <class Number>
void arguments_text::put_printed(const char* format, Number number) noexcept {
  char digits[32];
  const int length = std::snprintf(digits, sizeof digits, format, number);
  add_raw({digits, static_cast<std::size_t>(length)});
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(long long number) noexcept {
  put_printed("%lld", number);
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(unsigned long long number) noexcept {
  put_printed("%llu", number);
}
LOTUS_DETAIL_SEAM void arguments_text::put_number(double number) noexcept {
  put_printed("%g", number);
}

LOTUS_DETAIL_SEAM void arguments_text::add_raw(std::string_view text,
                                               std::size_t kept_free) noexcept {
  std::size_t room = sizeof text_ - kept_free - bytes_;
  if (kept_free > 0 && cut_) return;
  if (text.size() > room) {
    // Does not cut inside a UTF-8 character.
    while (room > 0 && (static_cast<unsigned char>(text[room]) & 0xC0U) == 0x80U) --room;
    cut_ = true;
  } else {
    room = text.size();
  }
  if (room > 0) std::memcpy(text_ + bytes_, text.data(), room);
  bytes_ += room;
}

}  // namespace detail

LOTUS_DETAIL_SEAM void range_push(std::string_view name) {
  detail::innermost_range = new detail::open_range{range{name}, detail::innermost_range};
}

LOTUS_DETAIL_SEAM void range_pop() noexcept {
  const detail::open_range* const ended = detail::innermost_range;
  if (ended == nullptr) return;
  detail::innermost_range = ended->around;
  delete ended;
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ENGINE_API_CALLS_HPP

#if LOTUS_SUPPORTED
// The profiler of the process, and its state, which all shared objects share.
#ifndef LOTUS_COLLECTORS_COLLECTOR_STATE_HPP
#define LOTUS_COLLECTORS_COLLECTOR_STATE_HPP

#include <unistd.h>

// All environment variables of lotus in one table, and the functions that read them.
#ifndef LOTUS_BASE_ENVIRONMENT_HPP
#define LOTUS_BASE_ENVIRONMENT_HPP

#include <stdlib.h>
#include <string.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// In the same order as environment_table.
enum class variable : std::uint8_t {
  log_file,
  format,
  keep_bytes,
  rank,
  annotate,
  collector,
  collector_timeout_ms,
  perf_control,
  map_op,
  map_warmup,
  map_passes,
  map_sleep_ms,
  map_rate,
  map_folder,
  map_list,
  run_list,
};

enum class variable_type : std::uint8_t {
  text,    ///< any text; the code that uses it validates it
  number,  ///< a whole decimal number
  word,    ///< one word of a list
  words,   ///< several words of a list, separated by commas
};

struct variable_row {
  const char* name;
  variable_type type;
  const char* values;       ///< as shown to the user; for words: all possible ones, separated by
                            ///< '|'
  const char* otherwise;    ///< as shown to the user: used if the variable is unset, empty or
                            ///< invalid
  const char* meaning;      ///< a short description
  std::uint64_t least = 0;  ///< for a number
  std::uint64_t most = 0;   ///< for a number
  std::uint64_t by_default = 0;  ///< for a number; for a word the first of `values` is the default
};

/// The only list of collectors, in the order in which LOTUS_COLLECTOR=auto looks for them: expands
/// to WITH(NAME) for each. The library calls NAME_is_here() and NAME_backend(); the tool starts
/// programs under them.
/// programs under them.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a literal of all names is made of it
#define LOTUS_DETAIL_COLLECTORS(WITH) WITH(callgrind) WITH(perf) WITH(itt) WITH(uprof) WITH(builtin)

enum class collector_id : std::uint8_t {
#define LOTUS_DETAIL_ID(name) name,
  LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_ID)
#undef LOTUS_DETAIL_ID
};

/// The names that LOTUS_COLLECTOR accepts.
inline constexpr const char* collector_names[] = {
#define LOTUS_DETAIL_NAME(name) #name,
    LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_NAME)
#undef LOTUS_DETAIL_NAME
};

#define LOTUS_DETAIL_WORD(name) #name "|"
/// All variables; `lotus-tool help environment` prints this table. An empty variable counts as not
/// set, so that VARIABLE= before a command cancels what a shell exports.
inline constexpr variable_row environment_table[] = {
    {"LOTUS_LOG_FILE", variable_type::text, "DIRECTORY/PREFIX", "not recorded",
     "records a program that does not call lotus::start(), to logs that begin so"},
    {"LOTUS_FORMAT", variable_type::word, "text|compact", "text",
     "the format of the logs; compact also where options::format says text"},
    {"LOTUS_KEEP_BYTES", variable_type::number, "bytes", "0",
     "keeps only the newest logs of about so many bytes; 0 keeps all", 0, UINT64_MAX, 0},
    {"LOTUS_RANK", variable_type::number, "number", "RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID",
     "the number of this process among those of a distributed job", 0, UINT32_MAX, 0},
    {"LOTUS_ANNOTATE", variable_type::words, "itt|nvtx|torch", "none",
     "shows scopes on the timelines of VTune, Nsight Systems and PyTorch's profiler"},
    {"LOTUS_COLLECTOR", variable_type::word,
     "auto|" LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_WORD) "none", "auto; none where it is not known",
     "the profiler that collects in regions; auto takes the one that runs the program"},
    {"LOTUS_COLLECTOR_TIMEOUT_MS", variable_type::number, "ms", "2000",
     "how long a collector may take to answer", 1, 3'599'999, 2000},
    {"LOTUS_PERF_CONTROL", variable_type::text, "fifo:CTL,ACK or fd:CTL,ACK", "no perf",
     "the control channel, as it was given to perf record --control"},
    {"LOTUS_MAP_OP", variable_type::text, "name", "all regions",
     "the only LOTUS_MAP_REGION to collect in"},
    {"LOTUS_MAP_WARMUP", variable_type::number, "passes", "4",
     "passes of a region before those that are collected", 0, 1'000'000'000, 4},
    {"LOTUS_MAP_PASSES", variable_type::number, "passes", "1",
     "passes of a region that are collected", 1, 1'000'000'000, 1},
    {"LOTUS_MAP_SLEEP_MS", variable_type::number, "ms", "1000",
     "wait before a collector that does not answer (VTune, uProf) is resumed", 0, 1'000'000'000,
     1000},
    {"LOTUS_MAP_RATE", variable_type::number, "samples a second", "1000",
     "how often the builtin collector and perf sample", 1, 1'000'000, 1000},
    {"LOTUS_MAP_FOLDER", variable_type::text, "directory", "next to the logs",
     "where the builtin collector writes its samples"},
    {"LOTUS_MAP_LIST", variable_type::text, "file", "not written",
     "gets the name of every LOTUS_MAP_REGION; set by lotus-tool map"},
    {"LOTUS_RUN_LIST", variable_type::text, "file", "not written",
     "gets a line with the place of the logs for every recording; set by lotus-tool run"},
};
#undef LOTUS_DETAIL_WORD
inline constexpr std::size_t environment_variables =
    sizeof(environment_table) / sizeof(environment_table[0]);
static_assert(static_cast<std::size_t>(variable::run_list) + 1 == environment_variables,
              "a row for each variable, in the same order");

constexpr const variable_row& row_of(variable which) noexcept {
  return environment_table[static_cast<std::size_t>(which)];
}

/// Returns null if the variable is unset or empty.
inline const char* environment_text(variable which) noexcept {
  const char* const text = secure_getenv(row_of(which).name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// Reports an invalid value. @param bad  the value, or the invalid word of it.
using report_variable = void (*)(const variable_row& row, std::string_view bad) noexcept;

/// Which variables have been reported: one bit for each.
LOTUS_DETAIL_PER_MODULE inline std::atomic<std::uint32_t> reported_variables{0};
static_assert(environment_variables <= 32);

/// Reports an invalid value, at most once for each variable and shared object.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void report_once(variable which,
                                                                  std::string_view bad,
                                                                  report_variable report) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(which);
  if ((reported_variables.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  report(row_of(which), bad);
}

/// Parses a whole decimal number without any other characters. Returns false if `text` is none, or
/// if the number is too large.
inline bool parse_number(const char* text, std::uint64_t& number) noexcept {
  std::uint64_t sum = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(*text)) - '0';
    if (digit > 9 || sum > (UINT64_MAX - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  number = sum;
  return true;
}

/// Returns whether the variable holds a valid number. @param value  set to that number, else to the
/// default.
inline bool environment_number(variable which, std::uint64_t& value,
                               report_variable report) noexcept {
  const variable_row& row = row_of(which);
  value = row.by_default;
  const char* const text = environment_text(which);
  if (text == nullptr) return false;
  std::uint64_t number = 0;
  if (!parse_number(text, number) || number < row.least || number > row.most) {
    report_once(which, text, report);
    return false;
  }
  value = number;
  return true;
}

/// Returns the index of a word in the row's list, or -1 if it is not in the list.
inline int place_of_word(const variable_row& row, std::string_view word) noexcept {
  std::string_view left = row.values;
  for (int place = 0;; ++place) {
    const std::size_t end = left.find('|');
    if (left.substr(0, end) == word) return place;
    if (end == std::string_view::npos) return -1;
    left.remove_prefix(end + 1);
  }
}

/// Returns the index in the row's list of the word that is set: 0 if none is set, and `unknown` if
/// it is not in the list.
inline std::size_t environment_word(variable which, std::size_t unknown,
                                    report_variable report) noexcept {
  const char* const text = environment_text(which);
  if (text == nullptr) return 0;
  const int place = place_of_word(row_of(which), text);
  if (place >= 0) return static_cast<std::size_t>(place);
  report_once(which, text, report);
  return unknown;
}

/// Returns the words that are set, as one bit for each at its index in the row's list; ignores
/// unknown words.
inline std::uint32_t environment_words(variable which, report_variable report) noexcept {
  const char* const text = environment_text(which);
  std::string_view left = text == nullptr ? "" : text;
  std::uint32_t given = 0;
  while (!left.empty()) {
    const std::size_t comma = left.find(',');
    const std::string_view word = left.substr(0, comma);
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    const int place = place_of_word(row_of(which), word);
    if (place >= 0) {
      given |= std::uint32_t{1} << static_cast<unsigned>(place);
    } else {
      report_once(which, word, report);
    }
  }
  return given;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_ENVIRONMENT_HPP

// Queries to the dynamic loader, and handlers that keep a fork from happening during one.
#ifndef LOTUS_BASE_FORK_HPP
#define LOTUS_BASE_FORK_HPP

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

// Locks that are safe with signals and fork.
#ifndef LOTUS_BASE_LOCK_HPP
#define LOTUS_BASE_LOCK_HPP

#include <time.h>

#include <cerrno>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Disables cancellation of this thread during its lifetime, and restores errno at its end. All
/// system calls of a scope run inside one: so a scope neither changes an errno that the program is
/// about to read nor becomes a cancellation point.
class uncancelled {
 public:
  uncancelled() noexcept : errno_{errno} {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncancelled() {
    pthread_setcancelstate(before_, nullptr);
    errno = errno_;
  }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

 private:
  int errno_;
  int before_ = 0;
};

/// Also blocks all signals for this thread during its lifetime. All slow paths run inside one, so a
/// handler never needs a lock that its own thread holds. Two system calls.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  uncancelled quiet_;
  sigset_t before_;
};

/// A mutex that is trivially destructible, because it is in memory that is never destroyed.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  /// Returns false if another thread holds it for a whole second.
  bool lock_within_a_second() noexcept {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    return pthread_mutex_timedlock(&mutex_, &until) == 0;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class locked {
 public:
  explicit locked(mutex& m) noexcept : mutex_{m} { mutex_.lock(); }
  ~locked() { mutex_.unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  mutex& mutex_;
};

/// Lazy lookup: the first caller looks a value up for all callers. It cannot deadlock: two kinds of
/// callers get `meanwhile` at once. One is the thread that is looking up, if a library that it
/// loads runs code that asks again. The other is processes forked during the lookup, in which
/// nobody will finish it. Trivially destructible. Thread safety: all.
template <class T>
class found_once {
 public:
  /// Callers that come during the lookup wait, but for at most a second: the lookup may load a
  /// library, and the waiting thread may be in a static constructor, which holds the dynamic
  /// loader's lock.
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.lock_within_a_second()) return meanwhile;
    return find_locked(find);
  }

  /// Callers that come during the lookup do not wait.
  template <class Find>
  T get_at_once(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.try_lock()) return meanwhile;
    return find_locked(find);
  }

  /// Returns the value if it has been found, else `meanwhile`. Never waits.
  T known(T meanwhile) const noexcept {
    return found_.load(std::memory_order_acquire) ? value_ : meanwhile;
  }

 private:
  bool is_finder_or_forked() const noexcept {
    const pid_t finder = finder_.load(std::memory_order_acquire);
    if (finder == 0) return false;
    return finder != getpid() ||
           pthread_equal(finder_thread_.load(std::memory_order_relaxed), pthread_self()) != 0;
  }

  template <class Find>
  T find_locked(Find&& find) noexcept {
    if (!found_.load(std::memory_order_relaxed)) {
      finder_thread_.store(pthread_self(), std::memory_order_relaxed);
      finder_.store(getpid(), std::memory_order_release);
      value_ = find();
      found_.store(true, std::memory_order_release);
    }
    mutex_.unlock();
    return value_;
  }

  std::atomic<bool> found_{false};
  std::atomic<pid_t> finder_{0};  ///< the process that is looking up, or has finished
  std::atomic<pthread_t> finder_thread_{};
  mutex mutex_;
  T value_{};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_LOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Operations that must not be in progress on any thread during a fork, because in the child they
/// would never finish. One for each shared object; trivially destructible.
struct at_forks {
  mutex loader;  ///< held from before a fork until after it

  /// Called with `loader` held and signals blocked; may be null. All are set together, under
  /// `loader`.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;
  /// Returns false in a child that was created without these handlers; may be null. In such a
  /// child, and in its own children, locks may be held forever: nothing is done when it forks.
  bool (*in_own_process)() noexcept = nullptr;

  std::atomic<pid_t> registering{0};  ///< the process that is registering the handlers, or
                                      ///< `registered`
  unsigned times_registered = 0;      ///< as counted during the current fork
  bool before_was_called = false;     ///< a fork handler of the program may create the session
                                      ///< after our handler ran
  sigset_t signals_before{};          ///< signal mask of the thread that forks

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is within a fork, or has just been forked, and so holds all locks: scopes in
/// the program's own fork handlers must not wait for them.
LOTUS_DETAIL_PER_MODULE inline thread_local bool this_thread_forks = false;

LOTUS_DETAIL_PER_MODULE inline void prepare_fork() noexcept {
  at_forks& forks = this_module_at_forks;
  if (this_thread_forks) {
    ++forks.times_registered;
    return;
  }
  if (forks.in_own_process != nullptr && !forks.in_own_process()) return;
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  forks.loader.lock();
  forks.signals_before = before;
  this_thread_forks = true;
  forks.times_registered = 1;
  forks.before_was_called = forks.before != nullptr;
  if (forks.before_was_called) forks.before();
}

LOTUS_DETAIL_PER_MODULE inline void resume_after_fork(void (*whole)() noexcept) noexcept {
  at_forks& forks = this_module_at_forks;
  if (!this_thread_forks || --forks.times_registered > 0) return;
  if (whole != nullptr) {
    if (!forks.before_was_called) forks.before();
    whole();
  }
  const sigset_t before = forks.signals_before;
  this_thread_forks = false;
  forks.loader.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Returns when the handlers are registered. If a process forks while another of its threads is
/// registering them, the child registers them again: they may then run twice.
LOTUS_DETAIL_PER_MODULE inline void register_at_forks() noexcept {
  at_forks& forks = this_module_at_forks;
  const pid_t process = getpid();
  for (pid_t seen = 0; seen != at_forks::registered;) {
    seen = forks.registering.load(std::memory_order_acquire);
    if (seen == process) sched_yield();
    if (seen == process || seen == at_forks::registered) continue;
    if (!forks.registering.compare_exchange_strong(seen, process)) continue;
    pthread_atfork(
        prepare_fork, [] { resume_after_fork(this_module_at_forks.after_in_parent); },
        [] { resume_after_fork(this_module_at_forks.after_in_child); });
    forks.registering.store(at_forks::registered, std::memory_order_release);
  }
}

/// Calls dl_iterate_phdr(3), but never while another thread forks: in the child, glibc leaves the
/// state of its lock to chance. `each` runs under that lock, which all objects of the process
/// share.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // Registers when the object is loaded, which in most programs is before there are threads: a fork
  // that is in progress on another thread may not see handlers that are registered now.
  LOTUS_DETAIL_CALL_AT_LOAD(register_at_forks);
  register_at_forks();  // for scopes in static constructors of other objects, which run earlier
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that contains `code` in memory, even after dlclose: the drain thread,
/// fork handlers and other objects continue to call it.
inline void pin_module_of(const void* code) noexcept {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
  const char* path = static_cast<const link_map*>(extra)->l_name;
  if (path == nullptr || *path == '\0') return;  // the program itself
  dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FORK_HPP

// Memory that does not come from malloc.
#ifndef LOTUS_BASE_MEMORY_HPP
#define LOTUS_BASE_MEMORY_HPP

#include <sys/mman.h>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns zeroed private memory directly from the kernel, so that a signal handler that
/// interrupted malloc can still record. Returns null if there is none.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

/// Makes the kernel clear whole pages of such memory in every child process. Returns false if it
/// cannot (Linux before 4.14).
inline bool clear_in_children(void* memory, std::size_t bytes) noexcept {
  constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK, which older headers lack
  return madvise(memory, bytes, wipe_on_fork) == 0;
}

/// Zeroed memory directly from the kernel that can grow. Owns it.
class growing_memory {
 public:
  growing_memory() noexcept = default;
  growing_memory(const growing_memory&) = delete;
  growing_memory& operator=(const growing_memory&) = delete;
  ~growing_memory() {
    if (memory_ != nullptr) munmap(memory_, room_);
  }

  /// Adds `bytes` and returns a pointer to them, or null if there is no memory. Invalidates earlier
  /// pointers.
  void* add(std::size_t bytes) noexcept {
    if (bytes > room_ - used_) {
      std::size_t room = room_ == 0 ? std::size_t{16} << 10 : room_ * 2;
      while (room - used_ < bytes) room *= 2;
      void* grown = room_ == 0 ? map_memory(room) : mremap(memory_, room_, room, MREMAP_MAYMOVE);
      if (grown == nullptr || grown == MAP_FAILED) return nullptr;
      memory_ = static_cast<char*>(grown);
      room_ = room;
    }
    char* const added = memory_ + used_;
    used_ += bytes;
    return added;
  }

  const char* data() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return used_; }

 private:
  char* memory_ = nullptr;
  std::size_t used_ = 0;
  std::size_t room_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_MEMORY_HPP

// Lets all shared objects of one process find something that exists only once in it.
//
// Neither an inline variable nor dlsym can find it if objects are built with hidden visibility and
// the program exports nothing. So the first object that needs it puts it into a page at a known
// address; if that page is not available, into a mapping with a name that all can see in
// /proc/self/maps.
#ifndef LOTUS_BASE_RENDEZVOUS_HPP
#define LOTUS_BASE_RENDEZVOUS_HPP

// File descriptors inside the user's program: kept off its numbers, and checked before each use.
#ifndef LOTUS_BASE_DESCRIPTOR_HPP
#define LOTUS_BASE_DESCRIPTOR_HPP

#include <fcntl.h>
#include <sys/stat.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Moves a new descriptor to a number that the program does not expect: if it was started without
/// 0, 1 or 2, it would otherwise print into our file. The new number is high if possible, and never
/// below 3. Returns it, close-on-exec, or -1 with errno; then `fd` is closed.
inline int out_of_the_way(int fd) noexcept {
  constexpr int high = 64;
  if (fd < 0 || fd >= high) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
  if (moved < 0 && fd > STDERR_FILENO) return fd;
  if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return moved;
}

/// openat(2), close-on-exec, with a number from out_of_the_way().
inline int open_out_of_the_way(int directory, const char* path, int flags,
                               mode_t mode = 0) noexcept {
  return out_of_the_way(openat(directory, path, flags | O_CLOEXEC, mode));
}

/// Identifies the file that a descriptor refers to.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& status) const noexcept {
    return status.st_dev == device && status.st_ino == inode;
  }
};

/// A descriptor that stays open while the program runs. The program may close it, as daemons do,
/// and reuse its number for another file: call holds() before each use. If the program opens the
/// same file under this number, we cannot detect that. Copies share the descriptor, and the
/// destructor does not close it. Thread safety: none. Not for anonymous files, because they all
/// have the same inode.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  /// @param fd  an open descriptor with this status.
  owned_descriptor(int fd, const struct stat& status) noexcept
      : fd_{fd}, file_{status.st_dev, status.st_ino} {}
  /// @param fd  an open descriptor, or -1 for none.
  explicit owned_descriptor(int fd) noexcept {
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) *this = {fd, status};
  }

  /// Returns the number without checking it; -1: none.
  int number() const noexcept { return fd_; }
  const file_identity& file() const noexcept { return file_; }

  /// Whether the file is still open under this number. One system call.
  bool holds() const noexcept {
    struct stat status {};
    return holds(status);
  }
  bool holds(struct stat& status) const noexcept {
    return fd_ >= 0 && fstat(fd_, &status) == 0 && file_.is(status);
  }

  /// Closes the descriptor if it still refers to our file.
  void close() noexcept {
    if (holds()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  file_identity file_;
};

/// A log that is kept open; its file may be moved meanwhile.
struct open_log {
  owned_descriptor file;
  std::int64_t looked_ns = 0;  ///< CLOCK_MONOTONIC time when the file of this name was last checked
};

template <std::size_t Count>
void close_all(open_log (&logs)[Count]) noexcept {
  for (open_log& log : logs) log.file.close();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DESCRIPTOR_HPP

// Reading from file descriptors and writing to them.
#ifndef LOTUS_BASE_FILE_HPP
#define LOTUS_BASE_FILE_HPP

#include <errno.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Prevents that a write of ours to a closed pipe, or beyond RLIMIT_FSIZE, kills the program.
/// Blocks SIGPIPE and SIGXFSZ for this thread during the object's lifetime, and removes a signal
/// that our own call raised; a signal that was pending before belongs to the program and stays.
/// Three system calls.
class write_signals_ours {
 public:
  write_signals_ours() noexcept {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &both, &before_);
    sigpending(&pending_);
  }
  ~write_signals_ours() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  write_signals_ours(const write_signals_ours&) = delete;
  write_signals_ours& operator=(const write_signals_ours&) = delete;

  /// Removes the signal that a failed call raised. @param error  the call's errno. Returns it.
  int after(int error) const noexcept {
    const int raised = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised == 0 || sigismember(&pending_, raised) == 1) return error;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, raised);
    const timespec at_once{};
    while (sigtimedwait(&one, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    return error;
  }

 private:
  sigset_t before_;
  sigset_t pending_;
};

/// Reads the beginning of a kernel-generated file, as much as fits; gives an empty text if it
/// cannot be read. Returns the number of bytes.
template <std::size_t Bytes>
std::size_t read_beginning(const char* path, char (&text)[Bytes]) noexcept {
  const int fd = open_out_of_the_way(AT_FDCWD, path, O_RDONLY);
  const ssize_t got = fd >= 0 ? read(fd, text, Bytes - 1) : 0;
  if (fd >= 0) close(fd);
  const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  text[bytes] = '\0';
  return bytes;
}

/// Writes all of `data`; resumes after EINTR and short writes. Returns 0 or errno.
LOTUS_DETAIL_COLD inline int write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const write_signals_ours signals;
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return signals.after(errno);
    if (n == 0) return EIO;
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return 0;
}

/// Extends an empty file to `bytes` without allocating disk space. Returns 0 or errno.
inline int lengthen(int fd, std::size_t bytes) noexcept {
  const write_signals_ours signals;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : signals.after(errno);
}

/// Extends a file of `held` bytes by `bytes` and allocates disk space for them. Returns 0 or errno.
inline int reserve(int fd, std::size_t held, std::size_t bytes) noexcept {
  const write_signals_ours signals;
  return signals.after(posix_fallocate(fd, static_cast<off_t>(held), static_cast<off_t>(bytes)));
}

/// Reads `bytes` at `offset`; returns false if the file is shorter.
inline bool read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset) noexcept {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = pread(fd, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FILE_HPP

// Lists what is mapped into this process.
#ifndef LOTUS_BASE_MAPPINGS_HPP
#define LOTUS_BASE_MAPPINGS_HPP

// A reference to a callable for one call, so that the called function need not be a template.
#ifndef LOTUS_BASE_FUNCTION_REF_HPP
#define LOTUS_BASE_FUNCTION_REF_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <class Signature>
class function_ref;

/// Like std::function_ref of C++26, for parameters: a template would be compiled once for each
/// lambda passed to it. Does not own the callable, which must outlive the call.
/// Errors: none thrown; the callable must not throw either.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Callable>
  // NOLINTNEXTLINE(google-explicit-constructor): a parameter
  LOTUS_DETAIL_ALWAYS_INLINE function_ref(const Callable& callable) noexcept
      : callable_{&callable}, call_{[](const void* on, Arguments... with) noexcept -> Result {
          return (*static_cast<const Callable*>(on))(static_cast<Arguments&&>(with)...);
        }} {}

  LOTUS_DETAIL_ALWAYS_INLINE Result operator()(Arguments... with) const noexcept {
    return call_(callable_, static_cast<Arguments&&>(with)...);
  }

 private:
  const void* callable_;
  Result (*call_)(const void*, Arguments...) noexcept;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_FUNCTION_REF_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(line)` for every line of /proc/self/maps, until it returns true. Allocates nothing.
LOTUS_DETAIL_COLD inline void for_each_mapping(function_ref<bool(std::string_view)> each) noexcept {
  const int fd = open_out_of_the_way(AT_FDCWD, "/proc/self/maps", O_RDONLY);
  if (fd < 0) return;
  char text[8192];
  std::size_t held = 0;
  ssize_t got = 0;
  bool found = false;
  while (!found && (got = read(fd, text + held, sizeof(text) - held)) > 0) {
    held += static_cast<std::size_t>(got);
    std::size_t at = 0;
    while (const void* end = std::memchr(text + at, '\n', held - at)) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - (text + at));
      if ((found = each(std::string_view{text + at, length}))) break;
      at += length + 1;
    }
    held = held == sizeof(text) && at == 0 ? 0 : held - at;  // discards an absurdly long line
    std::memmove(text, text + at, held);
  }
  close(fd);
}

/// Returns the path at the end of a line of /proc/self/maps, from its first '/'; empty if there is
/// none.
inline std::string_view mapped_path(std::string_view line) noexcept {
  const std::size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_MAPPINGS_HPP

// A memory page at an address that all shared objects of a process know.
#ifndef LOTUS_BASE_MEETING_PAGE_HPP
#define LOTUS_BASE_MEETING_PAGE_HPP

#include <sys/syscall.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Lets shared objects find common data without /proc or a file. The layout is the same in all
/// versions of the library: whoever changes it must change `ours`.
struct meeting_page {
  struct point {
    char name[56];
    alignas(8) unsigned char value[8];  ///< a std::atomic<T*>, null at first
  };
  static constexpr std::size_t bytes = 4096;
  static constexpr std::uint64_t ours = 0x3173'7574'6f6c'fe01;

  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> used;
  point points[(bytes - 16) / sizeof(point)];

  /// Returns null if there is none.
  void* find(std::string_view name) noexcept {
    const std::uint64_t count = used.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (name == points[i].name) return points[i].value;
    }
    return nullptr;
  }

  /// Returns null if the page is full. Only one thread may call it at a time.
  void* add(std::string_view name) noexcept {
    const std::uint64_t count = used.load(std::memory_order_relaxed);
    if (count == sizeof(points) / sizeof(point) || name.size() >= sizeof(point::name)) {
      return nullptr;
    }
    std::memcpy(points[count].name, name.data(), name.size());
    used.store(count + 1, std::memory_order_release);
    return points[count].value;
  }
};
static_assert(sizeof(meeting_page) <= meeting_page::bytes);

/// Possible addresses of the page; the first free one is used. They lie below the limit of kernels
/// with three levels of page tables, in the low memory that AddressSanitizer leaves to programs,
/// and above its shadow.
inline constexpr std::uintptr_t meeting_page_addresses[] = {0x21'4c4f'0000, 0x7a4f'0000,
                                                            0x2a4f'4c4f'0000};

/// Whether a word can be read at this address, without accessing it.
inline bool is_readable(const void* address) noexcept {
  unsigned char resident = 0;
  if (mincore(const_cast<void*>(address), 1, &resident) != 0) return false;
  // The kernel reads the signal set before it finds that the request is invalid.
  constexpr int no_request = -1;
  return syscall(SYS_rt_sigprocmask, no_request, address, nullptr, 8) != 0 && errno != EFAULT;
}

/// Returns the page of this process, or null if it has none.
inline meeting_page* find_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    auto* page = reinterpret_cast<meeting_page*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (is_readable(page) && page->magic.load(std::memory_order_acquire) == meeting_page::ours) {
      return page;
    }
  }
  return nullptr;
}

/// Returns null if all addresses are in use, or if the kernel cannot tell (before 4.17). Only one
/// thread may call it at a time.
inline meeting_page* make_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    void* wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    // Private: a forked child gets a copy, not its parent's page.
    void* memory = mmap(wanted, meeting_page::bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) continue;
    if (memory == wanted) {
      auto* page = static_cast<meeting_page*>(memory);
      page->magic.store(meeting_page::ours, std::memory_order_release);
      return page;
    }
    munmap(memory, meeting_page::bytes);
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_MEETING_PAGE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// What shared objects find: null, or a T that is never destroyed.
template <class T>
using meeting_point = std::atomic<T*>;

/// Returns the mapping with this name, or null.
LOTUS_DETAIL_COLD inline void* find_named_mapping(std::string_view name) noexcept {
  void* found = nullptr;
  for_each_mapping([&](std::string_view line) {
    const std::string_view path = mapped_path(line);
    if (path.rfind("/memfd:", 0) != 0 || path.find(name) == std::string_view::npos) return false;
    found = reinterpret_cast<void*>(strtoull(line.data(), nullptr, 16));  // ends at the '-'
    return true;
  });
  return found;
}

/// Makes a mapping with this name; its descriptor is closed at once. Returns null if that fails, or
/// if the mapping could not be found again.
inline void* make_named_mapping(const char* name, std::size_t bytes) noexcept {
  const int fd = out_of_the_way(memfd_create(name, MFD_CLOEXEC));
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (lengthen(fd, bytes) == 0) {
    // Private: a forked child gets a copy, not its parent's mapping.
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  if (find_named_mapping(name) == memory) return memory;
  munmap(memory, bytes);
  return nullptr;
}

/// Returns the meeting point `name` of this process, or null. Allocates nothing.
template <class T>
meeting_point<T>* find_meeting_point(std::string_view name) noexcept {
  meeting_page* page = find_meeting_page();
  void* found = page != nullptr ? page->find(name) : nullptr;
  return static_cast<meeting_point<T>*>(found != nullptr ? found : find_named_mapping(name));
}

/// Creates the meeting point if there is none; returns null if that fails.
template <class T>
meeting_point<T>* find_or_make_meeting_point(const char* name) noexcept {
  static_assert(sizeof(meeting_point<T>) == sizeof(meeting_page::point::value));
  if (meeting_point<T>* found = find_meeting_point<T>(name)) return found;
  meeting_page* page = find_meeting_page();
  if (page == nullptr) page = make_meeting_page();
  void* made = page != nullptr ? page->add(name) : nullptr;
  if (made == nullptr) made = make_named_mapping(name, sizeof(meeting_point<T>));
  return static_cast<meeting_point<T>*>(made);
}

/// Calls `use(meeting_point<T>*)`, with null if none can be created. Holds the loader's lock, which
/// all objects share, so that two threads never create two.
template <class T, class Use>
LOTUS_DETAIL_PER_MODULE void meet_at(const char* name, Use use) noexcept {
  struct request {
    const char* name;
    Use& use;
  } asked{name, use};
  iterate_objects(
      [](dl_phdr_info*, std::size_t, void* from) {
        auto& asking = *static_cast<request*>(from);
        asking.use(find_or_make_meeting_point<T>(asking.name));
        return 1;
      },
      &asked);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_RENDEZVOUS_HPP

// The table of functions that each collector provides.
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

// Messages about invalid environment variables.
#ifndef LOTUS_RECORD_ENVIRONMENT_REPORT_HPP
#define LOTUS_RECORD_ENVIRONMENT_REPORT_HPP

// Messages of the library: one line each, to the program's handler or to stderr.
#ifndef LOTUS_RECORD_MESSAGE_HPP
#define LOTUS_RECORD_MESSAGE_HPP

#include <stdarg.h>

// Lets a shared object find the one session of its process.
#ifndef LOTUS_RECORD_JOIN_HPP
#define LOTUS_RECORD_JOIN_HPP

// See Itanium C++ ABI, 3.3.6.3.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* object) noexcept;

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Identifies this shared object in that call. Declared under a name of our own: if an earlier
/// header has a static object in a function, g++ has already declared __dso_handle differently.
extern "C" LOTUS_DETAIL_PER_MODULE void* object_handle __asm__("__dso_handle");

/// Bump the number whenever services, options, schedule, module_state, producer or record change.
inline constexpr char hub_name[] = "lotus-hub-14-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// Returns this object's services, after creating its session if it has none; session_services.hpp.
LOTUS_DETAIL_PER_MODULE const services* make_services() noexcept;
LOTUS_DETAIL_PER_MODULE bool has_session() noexcept;

/// Returns the services of the session, or null if there is no session; never creates one.
LOTUS_DETAIL_PER_MODULE inline const services* services_if_any() noexcept {
  if (const services* known = this_module.hub.load(std::memory_order_acquire)) return known;
  const auto* hub = find_meeting_point<const services>(hub_name);
  return hub == nullptr ? nullptr : hub->load(std::memory_order_acquire);
}

LOTUS_DETAIL_PER_MODULE inline void leave_session() noexcept {
  if (const services* s = this_module.hub.load(std::memory_order_acquire)) s->leave(this_module);
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> leaves_at_exit{false};

/// Runs when the object is unloaded or the process exits, after the destructors of this object's
/// static objects, which may still record. Registered as the compiler does it for a static object,
/// not by atexit(3): sanitizers would treat that as the program's own and call it after the object
/// is gone.
LOTUS_DETAIL_PER_MODULE inline void leave_session_at_exit() noexcept {
  if (leaves_at_exit.exchange(true)) return;
  __cxa_atexit([](void*) { leave_session(); }, nullptr, &object_handle);
}

/// Reports that other objects cannot find this object's session. Defined in record/message.hpp.
LOTUS_DETAIL_PER_MODULE void say_alone() noexcept;

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM const services& join_session(bool environment_counts) noexcept {
  module_state& m = this_module;
  const services* s = m.hub.load(std::memory_order_acquire);
  if (s != nullptr && m.mode.load(std::memory_order_relaxed) != recording::unknown) return *s;
  const signals_blocked quiet;
  LOTUS_DETAIL_CALL_AT_LOAD(leave_session_at_exit);
  bool alone = false;
  if (s == nullptr) {
    meet_at<const services>(hub_name, [&](meeting_point<const services>* hub) {
      if (hub != nullptr) s = hub->load(std::memory_order_acquire);
      if (s != nullptr) return;
      // Without a hub, each shared object has a session of its own.
      alone = hub == nullptr && !has_session();
      s = make_services();
      if (hub != nullptr) hub->store(s, std::memory_order_release);
    });
  }
  s->join(m, environment_counts);
  if (alone) say_alone();
  return *s;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_JOIN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The program's function for messages. Thread safety: all.
class message_handler {
 public:
  /// @param handler  null for none.
  void use(void (*handler)(const char*)) noexcept {
    handler_.store(handler, std::memory_order_release);
  }
  bool any() const noexcept { return handler_.load(std::memory_order_acquire) != nullptr; }
  /// Returns false if there is no handler.
  bool deliver(const char* line) const noexcept {
    void (*const handler)(const char*) = handler_.load(std::memory_order_acquire);
    if (handler != nullptr) handler(line);
    return handler != nullptr;
  }

 private:
  std::atomic<void (*)(const char*)> handler_{nullptr};
};

/// Prints one line, formatted as by printf, from any shared object: to options::on_message of the
/// process's latest start, or else to stderr after the prefix "lotus: ". Allocates nothing. Thread
/// safety: all.
LOTUS_DETAIL_PER_MODULE __attribute__((format(printf, 1, 2))) inline void say(const char* format,
                                                                              ...) noexcept {
  constexpr std::size_t head = 7;
  char line[4096 + 512] = "lotus: ";
  va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(line + head, sizeof(line) - head - 1, format, values);
  va_end(values);
  if (n < 0) return;
  // File names may contain anything; the message must stay one line.
  for (char* c = line + head; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) *c = '?';
  }
  const signals_blocked quiet;
  const services* s = services_if_any();
  if (s != nullptr && s->deliver(line + head)) return;
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  write_all(STDERR_FILENO, line, length + 1);
}

LOTUS_DETAIL_PER_MODULE inline void say_alone() noexcept {
  say("this shared object cannot find the session of its process (memfd_create or /proc/self/maps "
      "is denied): it has one of its own, which records what it starts itself or LOTUS_LOG_FILE "
      "does");
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_MESSAGE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The report function for the functions of base/environment.hpp that read numbers or words.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void say_of_variable(
    const variable_row& row, std::string_view bad) noexcept {
  const int bytes = static_cast<int>(bad.size());
  if (row.type == variable_type::number) {
    std::uint64_t number = 0;
    if (parse_number(bad.data(), number) && number > row.most) {
      return say("%s=%.*s: must be a number from %llu to %llu; taken as %s", row.name, bytes,
                 bad.data(), static_cast<unsigned long long>(row.least),
                 static_cast<unsigned long long>(row.most), row.otherwise);
    }
    return say("%s=%.*s: must be a number from %llu; taken as %s", row.name, bytes, bad.data(),
               static_cast<unsigned long long>(row.least), row.otherwise);
  }
  if (row.type == variable_type::text) {
    return say("%s=%.*s: must be %s; taken as: %s", row.name, bytes, bad.data(), row.values,
               row.otherwise);
  }
  // Converts "itt|nvtx|torch" to "itt, nvtx and torch".
  char words[128];
  std::size_t used = 0;
  for (const char* c = row.values; *c != '\0' && used < sizeof(words) - 8; ++c) {
    const char* const between = std::strchr(c + 1, '|') == nullptr ? " and " : ", ";
    if (*c == '|') {
      for (const char* b = between; *b != '\0'; ++b) words[used++] = *b;
    } else {
      words[used++] = *c;
    }
  }
  words[used] = '\0';
  say("%s=%.*s is not known; it can be %s%s", row.name, bytes, bad.data(), words,
      row.type == variable_type::words ? ", with commas" : "");
}

/// Like environment_number(), but returns the value itself.
inline std::uint64_t number_setting(variable which) noexcept {
  std::uint64_t value = 0;
  environment_number(which, value, say_of_variable);
  return value;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_ENVIRONMENT_REPORT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How long a collector may take to answer.
inline std::int64_t collector_timeout_ms() noexcept {
  return static_cast<std::int64_t>(number_setting(variable::collector_timeout_ms));
}

/// The sampling interval that lotus-tool requested from its collector.
inline std::uint64_t asked_interval_ns() noexcept {
  return 1'000'000'000 / number_setting(variable::map_rate);
}

/// One kind of collector. Calls come one at a time, never nested, and never after detach().
struct collector_backend {
  /// Whether resume() and pause() return only after collection was switched on or off; if not, the
  /// caller must sleep, or late samples of earlier code fall into the region.
  bool acknowledges = true;
  /// Whether it counts every instruction from resume() to pause(), including the library's own.
  bool counts_instructions = false;
  /// Prepares the collector, paused. Returns false, after reporting the reason, if it cannot be
  /// used.
  bool (*begin)() noexcept = nullptr;
  /// Returns false if the collector no longer answers.
  bool (*resume)() noexcept = nullptr;
  bool (*pause)() noexcept = nullptr;
  /// Ends collecting for good. May be called at any time after begin().
  void (*detach)() noexcept = nullptr;
  /// CPU time between two samples, in ns; 0 if the collector does not sample.
  std::uint64_t (*interval_ns)() noexcept = nullptr;
  /// Reports the end of a collected region (times of CLOCK_MONOTONIC in ns). May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP

// Functions of each collector in the list in base/environment.hpp.
#ifndef LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP
#define LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP

// callgrind, through its client requests. They are written out here, so that no header of valgrind
// is needed and all files of a program agree.
#ifndef LOTUS_COLLECTORS_CALLGRIND_HPP
#define LOTUS_COLLECTORS_CALLGRIND_HPP

// Names of the hidden files in a run's directory.
#ifndef LOTUS_FOLDER_HIDDEN_FILES_HPP
#define LOTUS_FOLDER_HIDDEN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread's side log, with the lines that its other logs cannot hold, or the compact log that
/// holds all its records (format/compact_layout.hpp). Both names continue like those of other logs:
/// log_parts.hpp.
inline constexpr char compact_log_start[] = ".lotus_compact_";
inline constexpr char beside_log_start[] = ".lotus_beside_";

/// Aggregates that a process counted instead of recording single calls:
/// aggregates/aggregate_text.hpp. The name continues with the logs' prefix, `_` and the
/// process id.
inline constexpr char aggregates_file_start[] = ".lotus_aggregated_";

// Each name below continues with a process id and a time, so that each file belongs to one process.

/// The rings of a process, until all their records are in the logs: record/ring_layout.hpp.
inline constexpr char ring_file_start[] = ".lotus_ring_";
/// A ring file that is being created.
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";
/// The information file, in which a process describes itself: store/run/run_info.hpp.
inline constexpr char run_info_start[] = ".lotus_info_";
/// The samples of a sampler: sampling/sample_layout.hpp.
inline constexpr char samples_file_start[] = ".lotus_samples_";

/// A request to a process of the run to make a snapshot; the file contains the reason.
inline constexpr char snapshot_request_name[] = ".lotus_snapshot_request";

/// Precedes the operation's name in a callgrind dump if more dumps of the same run follow.
inline constexpr char callgrind_part_start[] = "lotus part of ";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_HIDDEN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Numbers of valgrind's requests: the first is the core's, the others are those of tool "CT".
enum class valgrind_request : std::uint64_t {
  running_on_valgrind = 0x1001,
  dump_stats_at = 0x43540003,
  start_instrumentation = 0x43540004,
  stop_instrumentation = 0x43540005,
};

/// Sends a request to valgrind; without valgrind the instructions do nothing and the answer is 0
/// (valgrind manual, "The Client Request mechanism"). About 2 ns natively.
inline std::uint64_t ask_valgrind(valgrind_request request, std::uint64_t argument = 0) noexcept {
  volatile std::uint64_t block[6] = {static_cast<std::uint64_t>(request), argument, 0, 0, 0, 0};
  std::uint64_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&block[0])
      : "cc", "memory");
#else
  register std::uint64_t in_out __asm__("x3") = 0;
  register const volatile std::uint64_t* in __asm__("x4") = &block[0];
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
      "orr x10, x10, x10"
      : "+r"(in_out)
      : "r"(in)
      : "cc", "memory");
  answer = in_out;
#endif
  return answer;
}

inline bool callgrind_is_here() noexcept {
  return ask_valgrind(valgrind_request::running_on_valgrind) != 0;
}

/// For `valgrind --tool=callgrind --instr-atstart=no`. Each region gets a dump of its own.
inline const collector_backend* callgrind_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.counts_instructions = true;
    b.begin = []() noexcept {
      if (callgrind_is_here()) return true;
      say("LOTUS_COLLECTOR=callgrind, but valgrind does not run this program");
      return false;
    };
    b.resume = []() noexcept {
      return ask_valgrind(valgrind_request::start_instrumentation), true;
    };
    b.pause = []() noexcept { return ask_valgrind(valgrind_request::stop_instrumentation), true; };
    b.detach = []() noexcept { ask_valgrind(valgrind_request::stop_instrumentation); };
    b.interval_ns = []() noexcept { return std::uint64_t{0}; };
    b.region = [](const char* name, std::uint64_t, std::uint64_t) noexcept {
      ask_valgrind(valgrind_request::dump_stats_at, reinterpret_cast<std::uintptr_t>(name));
    };
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_CALLGRIND_HPP

// Intel VTune, through the binary interface of its collector library (ittnotify), without including
// ittnotify: the types below have that interface's binary layout.
#ifndef LOTUS_COLLECTORS_ITT_HPP
#define LOTUS_COLLECTORS_ITT_HPP

// Calls into a vendor's library that may never return.
#ifndef LOTUS_COLLECTORS_DEADLINE_CALLER_HPP
#define LOTUS_COLLECTORS_DEADLINE_CALLER_HPP

// Raw clock ticks, and their conversion to nanoseconds since the Unix epoch.
#ifndef LOTUS_BASE_CLOCK_HPP
#define LOTUS_BASE_CLOCK_HPP

#if defined(__x86_64__)
  #include <cpuid.h>
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline std::int64_t clock_ns(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Whether hardware_ticks() advances at one rate on every core: on x86-64 if CPUID's invariant-TSC
/// bit is set (Intel SDM 17.17.1, AMD APM 3 E.4.7) and the kernel has not marked the TSC unstable.
/// The aarch64 counter always does (Arm ARM D11).
inline bool hardware_ticks_invariant() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & (1U << 8)) == 0) return false;
  const int fd = open_out_of_the_way(
      AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY);
  if (fd < 0) return true;
  char sources[256] = {};
  const ssize_t got = read(fd, sources, sizeof(sources) - 1);
  close(fd);
  // kvm-clock and Hyper-V's clock are based on the TSC themselves.
  return got <= 0 || std::strstr(sources, "tsc") != nullptr ||
         std::strstr(sources, "kvm-clock") != nullptr || std::strstr(sources, "hyperv") != nullptr;
#else
  return true;
#endif
}

/// One moment, read on three clocks.
struct clock_anchor {
  std::uint64_t ticks;
  std::int64_t elapsed_ns;  ///< CLOCK_MONOTONIC: never stepped, stops while the machine sleeps
  std::int64_t realtime_ns;
};

/// Detects that the machine slept: then CLOCK_BOOTTIME has gone on and CLOCK_MONOTONIC has not.
class sleep_watch {
 public:
  /// @param boottime_ns, monotonic_ns  read in this order: if the thread is preempted in between,
  /// the difference gets smaller, never larger.
  /// @return how long the machine slept since the last call, or 0.
  std::int64_t slept_ns(std::int64_t boottime_ns, std::int64_t monotonic_ns) noexcept {
    const std::int64_t slept_ns = boottime_ns - monotonic_ns - asleep_ns_;
    if (slept_ns <= 0) return 0;
    asleep_ns_ += slept_ns;
    return slept_ns > least_ns ? slept_ns : 0;
  }

 private:
  static constexpr std::int64_t least_ns = 1'000'000;

  std::int64_t asleep_ns_ = INT64_MIN / 2;
};

/// A segment of the map from ticks to time: time = start_ns + (ticks - start_ticks) * rate.
struct clock_segment {
  std::uint64_t start_ticks;
  std::int64_t start_ns;   ///< in nanoseconds since the Unix epoch
  std::uint64_t rate;      ///< nanoseconds per tick, fixed point with 2^32 = 1
  std::int64_t jumped_ns;  ///< sum of the wall clock's forward steps that were followed so far

  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = __int128;
    const auto distance = static_cast<std::int64_t>(ticks - start_ticks);
    // Unsigned arithmetic cannot overflow: values from a ring file may be anything.
    return static_cast<std::int64_t>(
        static_cast<std::uint64_t>(start_ns) +
        static_cast<std::uint64_t>((wide{distance} * static_cast<std::int64_t>(rate)) >> 32));
  }
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maps ticks to nanoseconds since the epoch, as a continuous line of segments: spans that share a
/// clock read still meet exactly, even if different drains convert them to text.
///
/// While CLOCK_REALTIME only drifts, the map follows it: each tie() bends the line towards it. If
/// it is stepped forward, times jump ahead from then on; if it is stepped back, times go on as
/// before, so that starts stay in order. Durations never contain a step.
///
/// While the machine sleeps, the counter may go on or stop: no rate is computed across a sleep, and
/// the line restarts at the wall clock when the machine wakes. Durations contain what the counter
/// counted.
///
/// Trivially copyable, so that it can be stored in a ring file. Thread safety: none; the session
/// locks.
class clock_map {
 public:
  static constexpr std::int64_t step_ns = 1'000'000;  ///< a larger difference is a step

  /// Starts the line at `first`; `second`, read some ms later, gives the first rate.
  void begin(const clock_anchor& first, const clock_anchor& second) noexcept {
    segments_[0] = {first.ticks, first.realtime_ns, rate_between(first, second), 0};
    count_ = 1;
    anchors_[0] = first;
    anchor_count_ = 1;
    held_back_ns_ = 0;
  }

  /// Adds an anchor. Returns the step of the wall clock in ns if one is detected, else 0.
  /// @param slept_ns  how long the machine slept since the previous anchor.
  std::int64_t tie(const clock_anchor& now, std::int64_t slept_ns = 0) noexcept {
    const clock_segment last = current();
    if (now.ticks <= last.start_ticks) return 0;
    if (slept_ns > 0) return tie_after_sleep(now, slept_ns);
    const std::int64_t target_ns = now.realtime_ns + held_back_ns_;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t error_ns = target_ns - here_ns;
    const std::uint64_t rate = rate_between(oldest_anchor(), now);
    clock_segment next{now.ticks, here_ns, rate, last.jumped_ns};
    std::int64_t stepped_ns = 0;
    if (error_ns > step_ns) {
      next.start_ns += error_ns;
      next.jumped_ns += error_ns;
      stepped_ns = error_ns;
    } else if (error_ns < -step_ns) {
      held_back_ns_ -= error_ns;
      stepped_ns = error_ns;
    } else {
      next.rate = bent_rate(rate, error_ns, here_ns - last.start_ns);
    }
    remember(now);
    append(next);
    return stepped_ns;
  }

  const clock_segment& current() const noexcept { return segments_[count_ - 1]; }

  /// Returns the segment that contains `ticks`; the first one for anything older.
  const clock_segment& at(std::uint64_t ticks) const noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = count_;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (segments_[middle].start_ticks <= ticks ? low : high) = middle;
    }
    return segments_[low];
  }

  /// Whether begin() was called; needed for maps read from a file.
  bool valid() const noexcept { return count_ >= 1 && count_ <= capacity; }

 private:
  static constexpr std::uint32_t capacity = 512;
  static constexpr std::uint32_t anchor_capacity = 16;

  /// Continues the line at the wall clock with the previous rate, since no other is known yet.
  std::int64_t tie_after_sleep(const clock_anchor& now, std::int64_t slept_ns) noexcept {
    const clock_segment last = current();
    const std::uint64_t rate =
        anchor_count_ > 1 ? rate_between(oldest_anchor(), newest_anchor()) : last.rate;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t awake_ns = now.elapsed_ns - newest_anchor().elapsed_ns;
    const bool stood = here_ns - last.to_ns(newest_anchor().ticks) - awake_ns < slept_ns / 2;
    anchor_count_ = 0;
    remember(now);
    const std::int64_t woken_ns = stood ? here_ns + slept_ns : here_ns;
    const std::int64_t stepped_ns = now.realtime_ns + held_back_ns_ - woken_ns;
    // If the counter went on, the small error of its rate has accumulated during the whole sleep.
    const std::int64_t inexact_ns = slept_ns / 1000 + step_ns;
    const bool stepped = stepped_ns > inexact_ns || stepped_ns < -inexact_ns;
    if (stepped && stepped_ns < 0) held_back_ns_ -= stepped_ns;
    const std::int64_t jump_ns = now.realtime_ns + held_back_ns_ - here_ns;
    append({now.ticks, here_ns + jump_ns, rate, last.jumped_ns + jump_ns});
    return stepped ? stepped_ns : 0;
  }

  /// Uses elapsed_ns, so that no step of the wall clock affects the rate.
  static std::uint64_t rate_between(const clock_anchor& a, const clock_anchor& b) noexcept {
    __extension__ using wide = unsigned __int128;
    if (b.ticks <= a.ticks || b.elapsed_ns <= a.elapsed_ns) return std::uint64_t{1} << 32;
    const auto elapsed_ns = static_cast<std::uint64_t>(b.elapsed_ns - a.elapsed_ns);
    return static_cast<std::uint64_t>((wide{elapsed_ns} << 32) / (b.ticks - a.ticks));
  }

  /// Returns a rate that corrects `error_ns` within the time in which it arose; at most 1000 ppm
  /// off.
  static std::uint64_t bent_rate(std::uint64_t rate, std::int64_t error_ns,
                                 std::int64_t since_ns) noexcept {
    const std::int64_t span_ns = since_ns > 5'000'000 ? since_ns : 5'000'000;
    std::int64_t parts_per_billion = error_ns * 1'000'000'000 / span_ns;
    if (parts_per_billion > 1'000'000) parts_per_billion = 1'000'000;
    if (parts_per_billion < -1'000'000) parts_per_billion = -1'000'000;
    __extension__ using wide = __int128;
    const auto straight = static_cast<std::int64_t>(rate);
    return static_cast<std::uint64_t>(
        straight + static_cast<std::int64_t>(wide{straight} * parts_per_billion / 1'000'000'000));
  }

  const clock_anchor& oldest_anchor() const noexcept {
    return anchors_[anchor_count_ <= anchor_capacity ? 0 : anchor_count_ % anchor_capacity];
  }

  const clock_anchor& newest_anchor() const noexcept {
    return anchors_[(anchor_count_ - 1) % anchor_capacity];
  }

  void remember(const clock_anchor& a) noexcept {
    anchors_[anchor_count_ % anchor_capacity] = a;
    ++anchor_count_;
  }

  void append(const clock_segment& s) noexcept {
    if (count_ == capacity) thin_out();
    segments_[count_++] = s;
  }

  /// Drops every second segment of the older three quarters: a long run keeps its whole past, the
  /// older part more coarsely. Keeps segments at a step, which must stay where it was.
  void thin_out() noexcept {
    std::uint32_t kept = 1;
    for (std::uint32_t i = 1; i < capacity; ++i) {
      const bool step = segments_[i].jumped_ns != segments_[i - 1].jumped_ns ||
                        (i + 1 < capacity && segments_[i + 1].jumped_ns != segments_[i].jumped_ns);
      if (i % 2 == 0 || i >= capacity / 4 * 3 || step) segments_[kept++] = segments_[i];
    }
    for (std::uint32_t i = 0; i + 1 < kept; ++i) straighten(segments_[i], segments_[i + 1]);
    // If there are only steps, drops the oldest: the newest matter most.
    if (kept == capacity) std::memmove(segments_, segments_ + 1, --kept * sizeof(clock_segment));
    count_ = kept;
  }

  /// Makes `s` end where `next` starts, after the segment between them was removed.
  static void straighten(clock_segment& s, const clock_segment& next) noexcept {
    if (s.jumped_ns != next.jumped_ns) return;
    __extension__ using wide = unsigned __int128;
    const auto rise_ns = static_cast<std::uint64_t>(next.start_ns - s.start_ns);
    s.rate = static_cast<std::uint64_t>((wide{rise_ns} << 32) / (next.start_ticks - s.start_ticks));
  }

  clock_segment segments_[capacity];
  std::uint32_t count_;
  clock_anchor anchors_[anchor_capacity];
  std::uint32_t anchor_count_;
  std::int64_t held_back_ns_;  ///< total by which the wall clock was stepped back while recording
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread that makes the calls, so that the caller need not wait for a call that hangs. Only one
/// thread may use it at a time. A forked child, which has only the thread that forked, starts a new
/// one.
class deadline_caller {
 public:
  static deadline_caller& instance() noexcept {
    static deadline_caller caller;
    return caller;
  }

  /// Returns false if `what` did not return in time; no further call is allowed after that.
  bool call(void (*what)()) noexcept {
    if (process_ != getpid() && !start()) {
      what();
      return true;
    }
    const std::int64_t until_ns =
        clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * std::int64_t{1'000'000};
    const timespec until{static_cast<time_t>(until_ns / 1'000'000'000),
                         static_cast<long>(until_ns % 1'000'000'000)};
    pthread_mutex_lock(&guard_);
    what_ = what;
    pthread_cond_signal(&asked_);
    int error = 0;
    while (what_ != nullptr && error == 0) {
      error = pthread_cond_timedwait(&done_, &guard_, &until);
    }
    const bool returned = what_ == nullptr;
    pthread_mutex_unlock(&guard_);
    return returned;
  }

 private:
  bool start() noexcept {
    pthread_mutex_init(&guard_, nullptr);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&asked_, nullptr);
    pthread_cond_init(&done_, &monotonic);
    pthread_condattr_destroy(&monotonic);
    what_ = nullptr;
    // The program's signals must go to its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, nullptr, serve, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return false;
    pthread_detach(thread);
    process_ = getpid();
    return true;
  }

  static void* serve(void* self) noexcept {
    auto& caller = *static_cast<deadline_caller*>(self);
    pthread_mutex_lock(&caller.guard_);
    for (;;) {
      while (caller.what_ == nullptr) pthread_cond_wait(&caller.asked_, &caller.guard_);
      void (*what)() = caller.what_;
      pthread_mutex_unlock(&caller.guard_);
      what();
      pthread_mutex_lock(&caller.guard_);
      caller.what_ = nullptr;
      pthread_cond_signal(&caller.done_);
    }
  }

  pid_t process_ = 0;
  pthread_mutex_t guard_{};
  pthread_cond_t asked_{};
  pthread_cond_t done_{};
  void (*what_)() = nullptr;
};

/// Calls `what`, a function of a vendor's library; returns false if it does not return in time.
inline bool call_with_deadline(void (*what)()) noexcept {
  return deadline_caller::instance().call(what);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_DEADLINE_CALLER_HPP

// perf record and perf stat, through their control channel with acknowledgments.
#ifndef LOTUS_COLLECTORS_PERF_HPP
#define LOTUS_COLLECTORS_PERF_HPP

#include <poll.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The two ends of perf's control channel (perf-record(1), --control).
class perf_control {
 public:
  static perf_control& instance() noexcept {
    static perf_control control;
    return control;
  }

  bool open_from_environment() noexcept {
    const char* const text = environment_text(variable::perf_control);
    const std::string_view given = text != nullptr ? text : "";
    const std::size_t colon = given.find(':');
    const std::size_t comma = given.find(',');
    const bool fifo = given.substr(0, colon) == "fifo";
    if (colon == std::string_view::npos || comma == std::string_view::npos || comma < colon ||
        (!fifo && given.substr(0, colon) != "fd")) {
      report_once(
          variable::perf_control, given, [](const variable_row& of, std::string_view) noexcept {
            say("the perf collector needs %s=%s, as given to perf --control", of.name, of.values);
          });
      return false;
    }
    close_both();
    control_ = open_end(fifo, given.substr(colon + 1, comma - colon - 1));
    answers_ = open_end(fifo, given.substr(comma + 1));
    if (control_.number() < 0 || answers_.number() < 0) {
      say("cannot open perf's control channel %s: %s", text, std::strerror(errno));
      close_both();
      return false;
    }
    return true;
  }

  /// Sends a command and waits for the answer; returns false if none comes in time.
  bool send(std::string_view command) noexcept {
    if (control_.number() < 0) return false;
    const bool lost = !control_.holds() || !answers_.holds();  // the program has closed them
    if (lost && !open_from_environment()) return false;
    if (write_all(control_.number(), command.data(), command.size()) != 0) return false;
    // An answer is "ack\n" and a zero byte; the newline ends it.
    const std::int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + collector_timeout_ms() * 1'000'000;
    for (;;) {
      const std::int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);
      if (left_ns <= 0) return false;
      pollfd p{answers_.number(), POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(left_ns / 1'000'000) + 1) <= 0) continue;
      char text[16];
      const ssize_t got = read(answers_.number(), text, sizeof(text));
      if (got > 0 && std::memchr(text, '\n', static_cast<std::size_t>(got)) != nullptr) return true;
    }
  }

  void close_both() noexcept {
    control_.close();
    answers_.close();
  }

 private:
  /// Opens for reading and writing, so that opening a FIFO never blocks and writing never raises
  /// SIGPIPE; a pipe given as a descriptor is reopened for this reason.
  static owned_descriptor open_end(bool fifo, std::string_view text) noexcept {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s%.*s", fifo ? "" : "/proc/self/fd/",
                                     static_cast<int>(text.size()), text.data());
    if (text.empty() || length >= static_cast<int>(sizeof(path))) {
      errno = EINVAL;
      return {};
    }
    return owned_descriptor{open_out_of_the_way(AT_FDCWD, path, O_RDWR | O_NONBLOCK)};
  }

  owned_descriptor control_;
  owned_descriptor answers_;
};

/// Whether perf runs this program and the environment names its control channel.
inline bool perf_is_here() noexcept {
  return environment_text(variable::perf_control) != nullptr;
}

inline const collector_backend* perf_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.begin = []() noexcept { return perf_control::instance().open_from_environment(); };
    b.resume = []() noexcept { return perf_control::instance().send("enable\n"); };
    b.pause = []() noexcept { return perf_control::instance().send("disable\n"); };
    b.detach = []() noexcept {
      perf_control::instance().send("disable\n");
      perf_control::instance().close_both();
    };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_PERF_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// VTune sets this variable to the path of its collector library.
inline constexpr char itt_library_variable[] = "INTEL_LIBITTNOTIFY64";

struct itt_id {
  unsigned long long d1, d2, d3;
};
struct itt_domain {
  volatile int flags;  ///< 0: the collector wants nothing of this domain
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  itt_domain* next;
};
struct itt_string_handle;

/// A function pointer that the collector sets.
struct itt_function {
  const char* name;
  void** function;
  void* first;
  void* none;
  int group;
};

/// `__itt_global` of ittnotify 3.26.
struct itt_global {
  unsigned char magic[8];
  unsigned long version_major, version_minor, version_build;
  volatile long api_initialized, mutex_initialized, atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** library_path;
  itt_function* functions;
  itt_global* next;
  void* threads;
  itt_domain* domains;
  itt_string_handle* strings;
  int state;
  void* counters;
  unsigned events_wanted;
  void* histograms;
  void* counter_metadata;
};

/// VTune's functions; each is null if its library lacks it. Never destroyed: VTune keeps pointers
/// to it.
class itt_library {
 public:
  void (*resume)() = nullptr;
  void (*pause)() = nullptr;
  void (*detach)() = nullptr;
  itt_domain* (*domain_create)(const char*) = nullptr;
  itt_string_handle* (*string_handle_create)(const char*) = nullptr;
  void (*task_begin)(const itt_domain*, itt_id, itt_id, itt_string_handle*) = nullptr;
  void (*task_end)(const itt_domain*) = nullptr;
  void (*task_begin_overlapped)(const itt_domain*, itt_id, itt_id, itt_string_handle*) = nullptr;
  void (*task_end_overlapped)(const itt_domain*, itt_id) = nullptr;
  /// Adds to the task with this id; an id of zeros means this thread's innermost task.
  void (*metadata_add)(const itt_domain*, itt_id, itt_string_handle* key, int type,
                       std::size_t count, void* data) = nullptr;
  static constexpr int metadata_u64 = 1;

  /// Returns the library that VTune names; the first call loads and initializes it. Returns null,
  /// after reporting the reason, if there is none, and null also while another thread is loading it
  /// and takes too long. Thread safety: all.
  static itt_library* get() noexcept {
    static found_once<itt_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  LOTUS_DETAIL_COLD static itt_library* load() noexcept {
    const char* path = secure_getenv(itt_library_variable);
    if (path == nullptr || *path == '\0') {
      say("the itt collector needs %s; run the program with vtune", itt_library_variable);
      return nullptr;
    }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      say("cannot load VTune's collector: %s", dlerror());
      return nullptr;
    }
    static itt_library self;
    // A library collects only after it received a program's table; functions looked up by name do
    // nothing before that. Old libraries do not know tables.
    using init = void (*)(itt_global*, int);
    if (auto* start = reinterpret_cast<init>(dlsym(library, "__itt_api_init"))) {
      start(self.table(library), all_groups);
    } else {
      for (itt_function* f = self.functions_; f->name != nullptr; ++f) {
        *f->function = dlsym(library, f->name);
      }
    }
    if (self.resume == nullptr || self.pause == nullptr) {
      say("%s is no collector: it has no __itt_resume and __itt_pause", path);
      return nullptr;
    }
    return &self;
  }

  itt_global* table(void* library) noexcept {
    static constexpr unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    for (std::size_t i = 0; i < sizeof(magic); ++i) global_.magic[i] = magic[i];
    global_.version_major = 3;
    global_.version_minor = 26;
    global_.api_initialized = 1;
    global_.mutex_initialized = 1;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&global_.mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    global_.library = library;
    global_.functions = functions_;
    return &global_;
  }

  static constexpr int all_groups = -1;
  static constexpr int control_group = 1 << 1;
  static constexpr int structure_group = 1 << 12;

  template <class Function>
  static void** place(Function*& f) noexcept {
    return reinterpret_cast<void**>(&f);
  }

  itt_global global_{};
  itt_function functions_[11] = {
      {"__itt_resume", place(resume), nullptr, nullptr, control_group},
      {"__itt_pause", place(pause), nullptr, nullptr, control_group},
      {"__itt_detach", place(detach), nullptr, nullptr, control_group},
      {"__itt_domain_create", place(domain_create), nullptr, nullptr, structure_group},
      {"__itt_string_handle_create", place(string_handle_create), nullptr, nullptr,
       structure_group},
      {"__itt_task_begin", place(task_begin), nullptr, nullptr, structure_group},
      {"__itt_task_end", place(task_end), nullptr, nullptr, structure_group},
      {"__itt_task_begin_overlapped", place(task_begin_overlapped), nullptr, nullptr,
       structure_group},
      {"__itt_task_end_overlapped", place(task_end_overlapped), nullptr, nullptr, structure_group},
      {"__itt_metadata_add", place(metadata_add), nullptr, nullptr, structure_group},
      {nullptr, nullptr, nullptr, nullptr, 0},
  };
};

/// Whether VTune runs this program.
inline bool itt_is_here() noexcept {
  return secure_getenv(itt_library_variable) != nullptr;
}

inline const collector_backend* itt_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.acknowledges = false;
    b.begin = []() noexcept { return itt_library::get() != nullptr; };
    b.resume = []() noexcept { return call_with_deadline([] { itt_library::get()->resume(); }); };
    b.pause = []() noexcept { return call_with_deadline([] { itt_library::get()->pause(); }); };
    b.detach = []() noexcept {
      call_with_deadline([] {
        itt_library& itt = *itt_library::get();
        itt.pause();
        if (itt.detach != nullptr) itt.detach();
      });
    };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ITT_HPP

// AMD uProf: amdProfileResume and amdProfilePause of libAMDProfileController, found at run time.
#ifndef LOTUS_COLLECTORS_UPROF_HPP
#define LOTUS_COLLECTORS_UPROF_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Resumes or pauses. uProf 4.0 expects 1, for the CPU profile. 5.1 has no parameter and ignores
/// the argument, because it is passed in a register.
using uprof_call = int (*)(unsigned);

struct uprof_calls {
  uprof_call resume;
  uprof_call pause;
  bool strict;  ///< they return only when the switch is done
};

/// The functions passed to use_uprof(); null: look for exported functions.
inline std::atomic<void (*)()> linked_uprof_resume{nullptr};
inline std::atomic<void (*)()> linked_uprof_pause{nullptr};

/// Finds the functions of one group, strict ones first: a run must never mix groups.
inline bool find_uprof(void* where, uprof_calls& found) noexcept {
  static constexpr const char* names[][2] = {
      {"amdProfileStrictResume", "amdProfileStrictPause"},
      {"amdProfileStrictResumeImpl", "amdProfileStrictPauseImpl"},
      {"amdProfileResume", "amdProfilePause"},
      {"amdProfileResumeImpl", "amdProfilePauseImpl"},
  };
  for (std::size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    found.resume = reinterpret_cast<uprof_call>(dlsym(where, names[i][0]));
    found.pause = reinterpret_cast<uprof_call>(dlsym(where, names[i][1]));
    found.strict = i < 2;
    if (found.resume != nullptr && found.pause != nullptr) return true;
  }
  return false;
}

inline uprof_calls& uprof_in_use() noexcept {
  static uprof_calls calls{};
  return calls;
}

/// Whether uProf's functions are already in the program.
inline bool uprof_is_here() noexcept {
  uprof_calls& calls = uprof_in_use();
  if (linked_uprof_pause.load(std::memory_order_acquire) != nullptr) {
    calls = {[](unsigned) { return linked_uprof_resume.load(std::memory_order_acquire)(), 0; },
             [](unsigned) { return linked_uprof_pause.load(std::memory_order_acquire)(), 0; },
             false};
    return true;
  }
  return find_uprof(RTLD_DEFAULT, calls);
}

template <bool Strict>
const collector_backend* uprof_backend_of() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.acknowledges = Strict;
    b.begin = []() noexcept { return true; };
    b.resume = []() noexcept { return call_with_deadline([] { uprof_in_use().resume(1); }); };
    b.pause = []() noexcept { return call_with_deadline([] { uprof_in_use().pause(1); }); };
    // uProf cannot detach; it ends with the program.
    b.detach = []() noexcept { call_with_deadline([] { uprof_in_use().pause(1); }); };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

/// Returns null, after reporting the reason, if uProf's functions cannot be found.
inline const collector_backend* uprof_backend() noexcept {
  if (!uprof_is_here()) {
    void* library = dlopen("libAMDProfileController.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !find_uprof(library, uprof_in_use())) {
      say("LOTUS_COLLECTOR=uprof, but neither the program nor libAMDProfileController.so has "
          "amdProfileResume; link it, or name its functions with lotus::use_uprof()");
      return nullptr;
    }
  }
  return uprof_in_use().strict ? uprof_backend_of<true>() : uprof_backend_of<false>();
}

}  // namespace detail

/// For programs that link AMD's static libAMDProfileController, which a lookup at run time cannot
/// find. In one source file that includes AMDProfileController.h:
///   const bool linked = lotus::use_uprof([] { amdProfileResume(1); }, [] { amdProfilePause(1); });
/// Call it before the first resume(). Returns true.
inline bool use_uprof(void (*resume)(), void (*pause)()) noexcept {
  detail::linked_uprof_resume.store(resume, std::memory_order_release);
  detail::linked_uprof_pause.store(pause, std::memory_order_release);
  return true;
}

LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_UPROF_HPP

// The collector that needs only the kernel.
#ifndef LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP
#define LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP

#include <cstdlib>

// The built-in sampler: uses perf_event_open(2) for this process's threads and writes the samples
// to a file next to the logs.
#ifndef LOTUS_SAMPLING_SAMPLER_HPP
#define LOTUS_SAMPLING_SAMPLER_HPP

#include <linux/futex.h>

// Finds the threads of this process, and which of them belong to the library.
#ifndef LOTUS_SAMPLING_PROCESS_THREADS_HPP
#define LOTUS_SAMPLING_PROCESS_THREADS_HPP

#include <dirent.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(pid_t)` for every thread of this process.
template <class Each>
void for_each_thread(Each&& each) noexcept {
  const int fd = open_out_of_the_way(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY);
  DIR* tasks = fd >= 0 ? fdopendir(fd) : nullptr;
  if (tasks == nullptr && fd >= 0) close(fd);
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid > 0) each(tid);
  }
  closedir(tasks);
}

/// Whether the library has started this thread; it recognizes the thread by its name.
inline bool is_own_thread(pid_t tid) noexcept {
  char path[64];
  char name[32] = {};
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
  const int fd = open_out_of_the_way(AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return false;
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  return got > 0 &&
         (std::strcmp(name, "lotus-drain\n") == 0 || std::strcmp(name, "lotus-sampler\n") == 0);
}

/// Calls `each(pid_t)` for every thread of the program except the calling one.
template <class Each>
void for_each_other_thread(Each&& each) noexcept {
  for_each_thread([&](pid_t tid) {
    if (tid != gettid() && !is_own_thread(tid)) each(tid);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_PROCESS_THREADS_HPP

// Writes a file of samples next to the logs.
#ifndef LOTUS_SAMPLING_SAMPLE_FILE_HPP
#define LOTUS_SAMPLING_SAMPLE_FILE_HPP

// The layout of a file of samples, which the built-in collector and lotus-tool write.
//
// A file is a header followed by records, each with the length in its perf_event_header: records
// copied from the kernel (perf_event_open(2): PERF_RECORD_SAMPLE, _MMAP2, _FORK, _LOST), and our
// own. Times are nanoseconds of CLOCK_MONOTONIC.
#ifndef LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP
#define LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP

#include <linux/perf_event.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline constexpr char samples_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'S', 'M', 'P'};
inline constexpr std::uint32_t samples_file_layout = 1;

struct samples_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< position of the first record
  std::uint32_t pid;
  std::uint32_t unused;
  std::uint64_t interval_ns;  ///< CPU time between two samples of a thread
};

/// The contents of a kernel sample with this sample_type, in the kernel's order.
inline constexpr std::uint64_t samples_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
struct sample_record {
  perf_event_header header;
  std::uint64_t address;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time_ns;
};

/// Types of our own records; far above the kernel's types.
enum class own_record : std::uint32_t {
  clock = 0x4c4f0001,
  module = 0x4c4f0002,
  region = 0x4c4f0003,
  own_thread = 0x4c4f0004,
};

/// The same moment on two clocks; logs use nanoseconds of CLOCK_REALTIME.
struct clock_record {
  perf_event_header header;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Code mapped from a file; its path follows, terminated and padded with zeros.
struct module_record {
  perf_event_header header;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t file_offset;  ///< file offset of `begin`, in bytes
  std::uint64_t time_ns;      ///< when the mapping was seen
  std::uint32_t pid;
  std::uint32_t unused;
};

/// One collected pass of a LOTUS_MAP_REGION; its name follows, terminated and padded with zeros.
struct region_record {
  perf_event_header header;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t pid;
  std::uint32_t tid;
};

/// A thread of the library; its samples do not belong to the program.
struct own_thread_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t tid;
};

static_assert(sizeof(samples_file_header) == 32 && sizeof(sample_record) == 32 &&
                  sizeof(clock_record) == 24 && sizeof(module_record) == 48 &&
                  sizeof(region_record) == 32 && sizeof(own_thread_record) == 16,
              "files are read by other builds");

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A file of samples, created at the first write. A failure to write it is reported once. Thread
/// safety: none; the sampler locks. Trivially destructible.
class sample_file {
 public:
  /// Creates the file in the folder that lotus-tool requests (LOTUS_MAP_FOLDER), else in the
  /// directory of the session's logs, or in the current directory without a session. Later calls do
  /// nothing.
  LOTUS_DETAIL_COLD void begin(std::uint64_t interval_ns) noexcept {
    if (tried_) return;
    tried_ = true;
    if (*directory_ == '\0') find_directory();
    char path[sizeof(directory_) + 64];
    std::snprintf(path, sizeof(path), "%s%s%u_%llx", directory_, samples_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    file_ =
        owned_descriptor{open_out_of_the_way(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0666)};
    if (file_.number() < 0) {
      say("cannot write samples to %s: %s", path, std::strerror(errno));
      return;
    }
    samples_file_header h{};
    std::memcpy(h.magic, samples_file_magic, sizeof(h.magic));
    h.layout = samples_file_layout;
    h.header_bytes = sizeof(h);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.interval_ns = interval_ns;
    append(&h, sizeof(h));
    clock();
  }

  void append(const void* data, std::size_t bytes) noexcept {
    if (file_.number() < 0) return;
    // EBADF: the program has closed the descriptor, and its number may now belong to one of its own
    // files.
    const int error = file_.holds() ? write_all(file_.number(), data, bytes) : EBADF;
    if (error == 0) return;
    say("cannot write samples: %s; the rest is lost", std::strerror(error));
    forget();
  }

  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    region_record r{};
    r.begin_ns = begin_ns;
    r.end_ns = end_ns;
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = static_cast<std::uint32_t>(gettid());
    append_with_text(own_record::region, r, name);
  }

  /// Records all code that is currently mapped from files.
  void modules() noexcept {
    if (file_.number() < 0) return;
    for_each_mapping([&](std::string_view line) {
      // "5566-7788 r-xp 00001000 08:01 1234   /path"
      module_record m{};
      unsigned long long begin = 0, end = 0, offset = 0;
      char mode[8] = {};
      char head[64] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %7s %llx", &begin, &end, mode, &offset) != 4) return false;
      std::string_view path = mapped_path(line);
      if (path.empty()) path = line.substr(line.find('[') < line.size() ? line.find('[') : 0);
      if (mode[2] != 'x' || (path[0] != '/' && path != "[vdso]")) return false;
      m.begin = begin;
      m.end = end;
      m.file_offset = offset;
      m.time_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
      m.pid = static_cast<std::uint32_t>(getpid());
      append_with_text(own_record::module, m, path);
      return false;
    });
  }

  void own_thread(std::uint32_t tid) noexcept {
    own_thread_record r{};
    r.header = {static_cast<std::uint32_t>(own_record::own_thread), 0, sizeof(r)};
    r.pid = static_cast<std::uint32_t>(getpid());
    r.tid = tid;
    append(&r, sizeof(r));
  }

  void clock() noexcept {
    clock_record c{};
    c.header = {static_cast<std::uint32_t>(own_record::clock), 0, sizeof(c)};
    c.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    c.realtime_ns = clock_ns(CLOCK_REALTIME);
    append(&c, sizeof(c));
  }

  /// Reads the clocks once more and closes the file.
  void finish() noexcept {
    if (file_.number() >= 0) clock();
    forget();
  }

  /// In a forked child: the file belongs to the parent. The child keeps its directory, because the
  /// child may have no logs yet.
  void forget_parent() noexcept {
    forget();
    tried_ = false;
  }

  /// Closes the file.
  void forget() noexcept { file_.close(); }

 private:
  template <class Record>
  void append_with_text(own_record type, Record& r, std::string_view text) noexcept {
    if (file_.number() < 0) return;
    char bytes[sizeof(Record) + 4096 + 8] = {};
    text = text.substr(0, 4096);
    const std::size_t size = (sizeof(Record) + text.size() + 8) & ~std::size_t{7};
    r.header = {static_cast<std::uint32_t>(type), 0, static_cast<std::uint16_t>(size)};
    std::memcpy(bytes, &r, sizeof(r));
    std::memcpy(bytes + sizeof(r), text.data(), text.size());
    append(bytes, size);
  }

  /// The folder that lotus-tool requests, including the final '/'. Returns its length; 0 if none is
  /// requested.
  static std::size_t asked_directory(char* path, std::size_t room) noexcept {
    const char* const folder = environment_text(variable::map_folder);
    if (folder == nullptr) return 0;
    const auto length = static_cast<std::size_t>(std::snprintf(path, room, "%s/", folder));
    if (length < room) return length;
    report_once(variable::map_folder, folder, say_of_variable);
    return 0;
  }

  /// The folder of the logs, including the final '/': that of the ring file, which is mapped while
  /// a session records. Returns its length.
  static std::size_t log_directory(char* path, std::size_t room) noexcept {
    std::size_t length = 0;
    char wanted[64];
    std::snprintf(wanted, sizeof(wanted), "/%s%u_", ring_file_start,
                  static_cast<unsigned>(getpid()));
    for_each_mapping([&](std::string_view line) {
      const std::string_view mapped = mapped_path(line);
      const std::size_t at = mapped.find(wanted);
      if (at == std::string_view::npos || at + 1 >= room) return false;
      std::memcpy(path, mapped.data(), at + 1);
      length = at + 1;
      return true;
    });
    return length;
  }

  void find_directory() noexcept {
    std::size_t length = asked_directory(directory_, sizeof(directory_));
    if (length == 0) length = log_directory(directory_, sizeof(directory_));
    directory_[length] = '\0';
  }

  owned_descriptor file_;
  bool tried_ = false;
  char directory_[4096] = {};  ///< includes the final '/'; empty: the current directory
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_FILE_HPP

// The sampling events of all threads of this process, and the rings that receive their samples.
#ifndef LOTUS_SAMPLING_SAMPLING_EVENTS_HPP
#define LOTUS_SAMPLING_SAMPLING_EVENTS_HPP

#include <sys/ioctl.h>
#include <sys/resource.h>

// A perf_event_open(2) sampling event, and the ring in which the kernel delivers its records.
#ifndef LOTUS_SAMPLING_PERF_RING_HPP
#define LOTUS_SAMPLING_PERF_RING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Takes a sample of user code every `interval_ns` of CPU time of a thread and of the threads and
/// processes it starts later; also records the code that they map and the threads and processes
/// that they start.
/// It uses the CPU clock rather than a hardware counter: that works in virtual machines too, and a
/// sample stands for the same time everywhere.
inline perf_event_attr sampling_event(std::uint64_t interval_ns) noexcept {
  perf_event_attr a{};
  a.size = sizeof(a);
  a.type = PERF_TYPE_SOFTWARE;
  a.config = PERF_COUNT_SW_CPU_CLOCK;
  a.sample_period = interval_ns;
  a.sample_type = samples_type;
  a.sample_id_all = 1;
  a.disabled = 1;
  a.inherit = 1;
  a.mmap = 1;
  a.mmap2 = 1;
  a.task = 1;
  a.exclude_kernel = 1;
  a.exclude_hv = 1;
  a.use_clockid = 1;
  a.clockid = CLOCK_MONOTONIC;
  a.watermark = 1;
  return a;
}

/// Returns a descriptor or -errno. @param cpu  -1: any, for an event that is not inherited.
inline int open_event(const perf_event_attr& attr, pid_t thread, int cpu) noexcept {
  const long fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
                          static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  const int moved = out_of_the_way(static_cast<int>(fd));
  return moved < 0 ? -errno : moved;
}

/// The mapped ring of an event. Neither copied nor destroyed: its owner calls unmap(). Thread
/// safety: none. A forked child does not inherit the mapping.
class perf_ring {
 public:
  /// Maps the ring of event `fd` with `pages` pages (a power of two), or as many as the kernel
  /// allows an unprivileged user (perf_event_mlock_kb). Returns 0 or errno.
  int map(int fd, std::size_t pages) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (; pages >= 1; pages /= 2) {
      void* memory = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory == MAP_FAILED) continue;
      control_ = static_cast<perf_event_mmap_page*>(memory);
      data_ = static_cast<const char*>(memory) + page;
      bytes_ = pages * page;
      return 0;
    }
    return errno;
  }

  void unmap() noexcept {
    if (control_ == nullptr) return;
    munmap(control_, bytes_ + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    control_ = nullptr;
  }

  std::size_t bytes() const noexcept { return bytes_; }

  /// Passes all records since the last call to `sink(const char*, std::size_t)`, in one or two
  /// segments; together these contain whole records.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    if (control_ == nullptr) return;
    const std::uint64_t head = counter(control_->data_head).load(std::memory_order_acquire);
    std::uint64_t at = control_->data_tail;  // only this side changes it
    while (at != head) {
      const std::size_t offset = at % bytes_;
      const auto rest = static_cast<std::size_t>(head - at);
      const std::size_t piece = rest < bytes_ - offset ? rest : bytes_ - offset;
      sink(data_ + offset, piece);
      at += piece;
    }
    counter(control_->data_tail).store(head, std::memory_order_release);
  }

 private:
  /// A counter shared with the kernel.
  static std::atomic<__u64>& counter(__u64& shared) noexcept {
    static_assert(sizeof(std::atomic<__u64>) == sizeof(__u64) &&
                  std::atomic<__u64>::is_always_lock_free);
    return reinterpret_cast<std::atomic<__u64>&>(shared);
  }

  perf_event_mmap_page* control_ = nullptr;
  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_PERF_RING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Reports what to do if the kernel forbids sampling.
inline void say_sampling_forbidden(int error) noexcept {
  say("the kernel does not let this process sample itself (perf_event_open: %s): set "
      "kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container also allow "
      "perf_event_open in the seccomp profile. Otherwise use the callgrind collector, which needs "
      "no permission",
      std::strerror(error));
}

/// Every thread has one event per processor, which threads and processes that it starts later
/// inherit. All events of a processor share one ring. Events keep their phase while they are
/// disabled, so that samples do not fall on the same points of every region.
/// Thread safety: none; the sampler locks. Neither copied nor destroyed: close() releases
/// everything.
class sampling_events {
 public:
  static constexpr std::size_t most = 1024;

  /// Opens all events, disabled. Returns false, after reporting the reason, if the kernel forbids
  /// it.
  LOTUS_DETAIL_COLD bool open(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    if (const int error = open_own(); error != 0) {
      say_sampling_forbidden(error);
      return false;
    }
    open_other_threads();
    if (unsampled_ > 0) {
      say("%zu threads or processors cannot be sampled: %s", unsampled_,
          unsampled_error_ == EMFILE  ? "too few descriptors; raise ulimit -n"
          : unsampled_error_ == EPERM ? "too little locked memory; raise kernel.perf_event_mlock_kb"
                                      : std::strerror(unsampled_error_));
    }
    return true;
  }

  bool are_open() const noexcept { return events_ > 0; }

  void enable() const noexcept { request_all(PERF_EVENT_IOC_ENABLE); }
  void disable() const noexcept { request_all(PERF_EVENT_IOC_DISABLE); }

  /// Passes the samples since the last call to `sink(const char*, std::size_t)`.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    for (std::size_t i = 0; i < rings_; ++i) ring_[i].drain(sink);
  }

  /// Fills in the descriptors to wait for (there must be room for `most`); returns their number.
  std::size_t to_wait_for(pollfd* waits) const noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      waits[i] = {gone_[i] || !is_ours(i) ? -1 : fds_[i], POLLIN, 0};
    }
    return rings_;
  }
  /// Notes which threads have ended. poll() returns at once for the event of such a thread, but
  /// other threads may share its ring.
  void note_gone(const pollfd* waits, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if ((waits[i].revents & (POLLHUP | POLLERR)) != 0) some_gone_ = gone_[i] = true;
    }
  }
  bool some_gone() const noexcept { return some_gone_; }

  LOTUS_DETAIL_COLD void close() noexcept {
    close_descriptors();
    for (std::size_t i = 0; i < rings_; ++i) ring_[i].unmap();
    events_ = rings_ = 0;
  }
  /// In a forked child, which inherits the descriptors but not the rings.
  void close_descriptors() const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) ::close(fds_[i]);
    }
  }

 private:
  static constexpr std::size_t ring_pages = 32;

  void request_all(unsigned long request) const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) ioctl(fds_[i], request, 0);
    }
  }

  /// Identifies an event by the kernel's number, because all anonymous files have the same inode.
  static std::uint64_t event_id(int fd) noexcept {
    std::uint64_t id = 0;
    return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
  }
  /// Whether the event is still ours: the program may have closed its descriptor.
  bool is_ours(std::size_t event) const noexcept { return event_id(fds_[event]) == ids_[event]; }

  void add(int fd) noexcept {
    ids_[events_] = event_id(fd);
    fds_[events_++] = fd;
  }

  /// Opens one event per processor for the calling thread, including processors that it may not
  /// use, because threads that it starts may use them.
  int open_own() noexcept {
    const auto processors = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
    int error = ENODEV;
    for (int cpu = 0; cpu < processors && rings_ < most; ++cpu) {
      error = open_with_ring(attribute(), 0, cpu);
      if (error == 0 || error == ENODEV) continue;  // ENODEV: the processor is offline
      if (rings_ == 0) return error;
      note_unsampled(error);
    }
    return rings_ > 0 ? 0 : error;
  }

  /// Opens events for the other threads. If that would need too many descriptors, opens a single
  /// event per thread, which cannot be inherited.
  void open_other_threads() noexcept {
    std::size_t threads = 0;
    for_each_other_thread([&](pid_t) { ++threads; });
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    const bool few =
        (threads + 1) * rings_ <= most && (threads + 1) * rings_ <= descriptors.rlim_cur / 2;
    for_each_other_thread([&](pid_t tid) {
      const int error = few ? open_into_rings(tid) : open_alone(tid);
      if (error != 0 && error != ESRCH) note_unsampled(error);  // ESRCH: the thread has ended
    });
  }

  int open_into_rings(pid_t tid) noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      const int fd = open_event(attribute(), tid, cpus_[i]);
      if (fd < 0) return -fd;
      ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fds_[i]);
      add(fd);
    }
    return 0;
  }

  int open_alone(pid_t tid) noexcept {
    if (events_ == most) return EMFILE;
    perf_event_attr attr = attribute();
    attr.inherit = 0;
    return open_with_ring(attr, tid, -1);
  }

  /// Opens an event with its own ring; these events come first. Returns 0 or errno.
  int open_with_ring(const perf_event_attr& attr, pid_t tid, int cpu) noexcept {
    const int fd = open_event(attr, tid, cpu);
    if (fd < 0) return -fd;
    const int error = ring_[rings_].map(fd, ring_pages);
    if (error != 0) {
      ::close(fd);
      return error;
    }
    cpus_[rings_++] = cpu;
    add(fd);
    return 0;
  }

  perf_event_attr attribute() const noexcept {
    perf_event_attr attr = sampling_event(interval_ns_);
    attr.wakeup_watermark = static_cast<std::uint32_t>(ring_pages * 1024);
    return attr;
  }

  void note_unsampled(int error) noexcept {
    ++unsampled_;
    unsampled_error_ = error;
  }

  std::uint64_t interval_ns_ = 0;
  std::size_t events_ = 0;
  std::size_t rings_ = 0;
  int fds_[most] = {};            ///< by event
  std::uint64_t ids_[most] = {};  ///< by event
  int cpus_[most] = {};           ///< by ring
  bool gone_[most] = {};          ///< by ring; only the drain thread uses this and the next
  bool some_gone_ = false;
  perf_ring ring_[most];
  std::size_t unsampled_ = 0;
  int unsampled_error_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLING_EVENTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Samples the threads of this process. One per process, never destroyed.
class sampler {
 public:
  static sampler& instance() noexcept {
    // Not a function-local static: a child forked during its initialization would wait for it
    // forever.
    static std::atomic<sampler*> the_sampler{nullptr};
    sampler* known = the_sampler.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto* fresh = new (map_memory(sizeof(sampler))) sampler;
    return the_sampler.compare_exchange_strong(known, fresh) ? *fresh : *known;
  }

  /// Opens all events, disabled. Returns false, after reporting the reason, if the kernel forbids
  /// it.
  LOTUS_DETAIL_COLD bool begin(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    begun_in_ = getpid();
    pthread_t thread{};
    // Created before the events, so that this thread is not sampled.
    if (pthread_create(&thread, nullptr, drain_loop, this) == 0) {
      pthread_detach(thread);
      while (!drain_thread_runs_.load(std::memory_order_acquire)) sched_yield();
    }
    if (!events_.open(interval_ns)) return false;
    static std::atomic<bool> handles_forks{false};
    if (!handles_forks.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork_in_child);
    events_are_open_.store(1, std::memory_order_release);
    syscall(SYS_futex, &events_are_open_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }

  /// Enables sampling; a forked child opens its own events first.
  bool resume() noexcept {
    forget_parent();
    if (begun_in_ == 0 && !begin(interval_ns_)) return false;
    note_modules();
    events_.enable();
    return true;
  }
  bool pause() noexcept {
    forget_parent();
    events_.disable();
    return true;
  }

  /// Records a region and writes its samples at once, because the program may end without notice.
  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    forget_parent();
    const locked hold{guard_};
    drain();
    file_.region(name, begin_ns, end_ns);
  }

  /// Writes the remaining samples and ends sampling.
  void finish() noexcept {
    forget_parent();
    const locked hold{guard_};
    if (!events_.are_open()) return;
    events_.disable();
    drain();
    file_.modules();
    note_own_threads();
    file_.finish();
    events_.close();
  }

  std::uint64_t interval_ns() const noexcept { return interval_ns_; }

 private:
  explicit sampler(std::uint64_t interval_ns = 0) noexcept : interval_ns_{interval_ns} {}

  /// The session's drain thread may have been started after the events were opened, and so be
  /// sampled.
  void note_own_threads() noexcept {
    for_each_thread([&](pid_t tid) {
      if (is_own_thread(tid)) file_.own_thread(static_cast<std::uint32_t>(tid));
    });
  }

  void drain() noexcept {
    events_.drain([&](const char* data, std::size_t bytes) {
      file_.begin(interval_ns_);
      file_.append(data, bytes);
    });
  }

  /// Records all mapped code if objects were loaded or unloaded since the last call. The kernel
  /// itself records what is mapped while samples are taken.
  void note_modules() noexcept {
    std::uint64_t changes = 0;
    iterate_objects(
        [](dl_phdr_info* info, std::size_t, void* result) {
          *static_cast<std::uint64_t*>(result) = info->dlpi_adds + info->dlpi_subs;
          return 1;
        },
        &changes);
    if (changes == module_changes_) return;
    module_changes_ = changes;
    const locked hold{guard_};
    file_.begin(interval_ns_);
    file_.modules();
  }

  static void* drain_loop(void* self) noexcept {
    sampler& s = *static_cast<sampler*>(self);
    pthread_setname_np(pthread_self(), "lotus-sampler");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    s.drain_thread_runs_.store(true, std::memory_order_release);
    while (s.events_are_open_.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &s.events_are_open_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    s.drain_for_ever();
    return nullptr;
  }

  void drain_for_ever() noexcept {
    auto* waits = static_cast<pollfd*>(map_memory(sampling_events::most * sizeof(pollfd)));
    if (waits == nullptr) return;
    for (;;) {
      std::size_t count = 0;
      {
        const locked hold{guard_};
        count = events_.to_wait_for(waits);
      }
      if (count == 0) return;
      poll(waits, static_cast<nfds_t>(count), events_.some_gone() ? 20 : 500);
      const locked hold{guard_};
      drain();
      events_.note_gone(waits, count);
    }
  }

  /// A child does not inherit the rings and must not switch its parent's events. Its work continues
  /// to be sampled as part of the parent's thread that forked it.
  void forget_parent() noexcept {
    if (begun_in_ == 0 || begun_in_ == getpid()) return;
    events_.close_descriptors();
    file_.forget_parent();
    const sample_file own = file_;
    new (this) sampler{interval_ns_};
    file_ = own;
  }

  /// A child forked while this handler was being registered calls it at its first use of the
  /// sampler.
  static void after_fork_in_child() noexcept { instance().forget_parent(); }

  std::uint64_t interval_ns_;
  pid_t begun_in_ = 0;
  std::atomic<bool> drain_thread_runs_{false};
  std::atomic<std::uint32_t> events_are_open_{0};
  std::uint64_t module_changes_ = 0;

  mutex guard_;  ///< protects events and file
  sampling_events events_;
  sample_file file_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Always false: it could sample any program, so it is only used on request.
inline bool builtin_is_here() noexcept {
  return false;
}

inline const collector_backend* builtin_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.begin = []() noexcept {
      // Also finishes if the program ends without detaching.
      return sampler::instance().begin(asked_interval_ns()) &&
             std::atexit([] { sampler::instance().finish(); }) == 0;
    };
    b.resume = []() noexcept { return sampler::instance().resume(); };
    b.pause = []() noexcept { return sampler::instance().pause(); };
    b.detach = []() noexcept { sampler::instance().finish(); };
    b.interval_ns = []() noexcept { return sampler::instance().interval_ns(); };
    b.region = [](const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
      sampler::instance().region(name, begin_ns, end_ns);
    };
    return b;
  }();
  return &table;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

struct collector_kind {
  const char* name;  ///< the word in LOTUS_COLLECTOR
  /// Whether LOTUS_COLLECTOR=auto selects it, because it runs this program.
  bool (*found_by_auto)() noexcept;
  /// Returns null, after reporting the reason, if it cannot be used.
  const collector_backend* (*backend)() noexcept;
};

/// In the order in which LOTUS_COLLECTOR=auto looks for them.
LOTUS_DETAIL_PER_MODULE inline constexpr collector_kind collector_kinds[] = {
#define LOTUS_DETAIL_KIND(name) {#name, name##_is_here, name##_backend},
    LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_KIND)
#undef LOTUS_DETAIL_KIND
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the collector that the environment asks for, or null for none.
inline const collector_kind* chosen_collector() noexcept {
  // The words in the table are auto, the collectors in their order, and none.
  constexpr std::size_t none = sizeof(collector_kinds) / sizeof(collector_kinds[0]) + 1;
  const std::size_t place = environment_word(variable::collector, none, say_of_variable);
  if (place == none) return nullptr;
  if (place > 0) return &collector_kinds[place - 1];
  for (const collector_kind& kind : collector_kinds) {
    if (kind.found_by_auto()) return &kind;
  }
  return nullptr;
}

/// The collector of the process. Virtual, so that calls run the code of the object that created it.
class collector_state {
 public:
  collector_state() noexcept : kind_{chosen_collector()} {
    const collector_backend* backend = kind_ != nullptr ? kind_->backend() : nullptr;
    if (backend != nullptr && backend->begin()) backend_ = backend;
  }
  virtual ~collector_state() = default;

  /// Also false if the collector was detached or no longer answers.
  bool exists() const noexcept { return backend_.load(std::memory_order_relaxed) != nullptr; }

  /// Collects from the first to the last of nested calls. Returns false if nothing is collected.
  virtual bool resume() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr) return false;
    if (depth_++ == 0) check(backend->resume());
    return exists();
  }

  virtual void pause() noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend == nullptr || depth_ == 0) return;
    if (--depth_ == 0) check(backend->pause());
  }

  virtual void detach() noexcept {
    const locked hold{guard()};
    if (const collector_backend* backend = backend_.exchange(nullptr)) backend->detach();
  }

  virtual void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    const locked hold{guard()};
    const collector_backend* backend = backend_;
    if (backend != nullptr && backend->region != nullptr) backend->region(name, begin_ns, end_ns);
  }

  virtual bool acknowledges() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr || backend->acknowledges;
  }
  /// Whether it counts every instruction from resume() to pause(), including the library's own:
  /// callgrind.
  virtual bool counts_instructions() const noexcept {
    const collector_backend* backend = backend_;
    return backend != nullptr && backend->counts_instructions;
  }
  virtual std::uint64_t interval_ns() const noexcept {
    const collector_backend* backend = backend_;
    return backend == nullptr ? 0 : backend->interval_ns();
  }

 private:
  void check(bool answered) noexcept {
    if (answered) return;
    backend_ = nullptr;
    say("the %s collector does not answer; the program goes on without it", kind_->name);
  }

  /// In a forked child, a thread of its parent may hold the lock: creates a new one.
  mutex& guard() noexcept {
    const pid_t process = getpid();
    if (process_.exchange(process) != process) new (&guard_) mutex;
    return guard_;
  }

  std::atomic<pid_t> process_{getpid()};
  mutex guard_;
  const collector_kind* const kind_;
  std::atomic<const collector_backend*> backend_{nullptr};
  int depth_ = 0;
};

/// Bump the number whenever collector_state changes.
inline constexpr char collector_page_name[] = "lotus-collector-4-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// The collector of the process, as this shared object has found it.
LOTUS_DETAIL_PER_MODULE inline found_once<collector_state*> this_collector;

/// Returns the collector of the process, and creates it if needed; null if nothing is collected.
LOTUS_DETAIL_PER_MODULE inline collector_state* look_for_collector() noexcept {
  meeting_point<collector_state>* page = nullptr;
  meet_at<collector_state>(collector_page_name,
                           [&](meeting_point<collector_state>* found) { page = found; });
  collector_state* state = page != nullptr ? page->load(std::memory_order_acquire) : nullptr;
  if (state == nullptr) {
    auto* fresh = new (map_memory(sizeof(collector_state))) collector_state;
    pin_module_of(&this_collector);
    collector_state* expected = nullptr;
    state = page == nullptr || page->compare_exchange_strong(expected, fresh) ? fresh : expected;
  }
  no_collector.store(!state->exists(), std::memory_order_release);
  return state->exists() ? state : nullptr;
}

LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline collector_state* find_collector() noexcept {
  if (no_collector.load(std::memory_order_acquire)) return nullptr;
  return this_collector.get(look_for_collector, nullptr);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void call_collector(collector_call call) noexcept {
  collector_state* const state = find_collector();
  if (state == nullptr) return;
  switch (call) {
    case collector_call::resume:
      state->resume();
      break;
    case collector_call::pause:
      return state->pause();
    case collector_call::detach:
      return state->detach();
  }
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_COLLECTOR_STATE_HPP

// The passes of a LOTUS_MAP_REGION, as set in the environment.
#ifndef LOTUS_ENGINE_MAP_PASSES_HPP
#define LOTUS_ENGINE_MAP_PASSES_HPP

// What the session stores about a thread.
#ifndef LOTUS_RECORD_THREAD_HPP
#define LOTUS_RECORD_THREAD_HPP

// Finds out whether code that a signal handler interrupted will continue.
#ifndef LOTUS_BASE_INTERRUPTION_HPP
#define LOTUS_BASE_INTERRUPTION_HPP

#include <unwind.h>

#if defined(__SANITIZE_THREAD__)
  #define LOTUS_DETAIL_THREAD_SANITIZER
#elif defined(__has_feature)
  #if __has_feature(thread_sanitizer)
    #define LOTUS_DETAIL_THREAD_SANITIZER
  #endif
#endif

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A walk up this thread's stack to a given place on it.
struct stack_walk {
  /// Tolerance: the code at `place` may have called a small function, or begun to return from its
  /// own.
  static constexpr std::uintptr_t near_bytes = 4096;

  std::uintptr_t place;
  std::uintptr_t other_begin;  ///< bounds of the signal stack, whose frames are skipped
  std::uintptr_t other_end;
  bool from_signal = false;  ///< the previous frame was interrupted by a signal
  bool interrupted = false;  ///< found: a running handler interrupted the code at `place`
  bool passed = false;       ///< the walk is beyond `place`, and no handler interrupted it

  static _Unwind_Reason_Code look(_Unwind_Context* frame, void* of) noexcept {
    auto& walk = *static_cast<stack_walk*>(of);
    // libgcc sets this flag for the frame that a signal interrupted, LLVM for the frame inside it.
    int before_instruction = 0;
    static_cast<void>(_Unwind_GetIPInfo(frame, &before_instruction));
    const bool may_be_it = before_instruction != 0 || walk.from_signal;
    walk.from_signal = before_instruction != 0;
    const auto at = static_cast<std::uintptr_t>(_Unwind_GetCFA(frame));
    if (at >= walk.other_begin && at < walk.other_end) return _URC_NO_REASON;
    const std::uintptr_t distance = at > walk.place ? at - walk.place : walk.place - at;
    walk.interrupted = may_be_it && distance < near_bytes;
    walk.passed = !walk.interrupted && at > walk.place && distance >= near_bytes;
    return walk.interrupted || walk.passed ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
};

/// Whether this thread is in a signal handler that interrupted what it was doing at `place`. If
/// not, a handler has abandoned that code by siglongjmp. Returns true if the stack cannot be
/// walked.
/// @param place  stack_pointer() of the code in question.
LOTUS_DETAIL_COLD inline bool is_interrupted(std::uintptr_t place) noexcept {
#ifdef LOTUS_DETAIL_THREAD_SANITIZER
  // It calls handlers as plain functions, so their stacks have no frame of a signal.
  return place != 0;
#else
  stack_t other{};
  const bool known = sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE) == 0;
  const auto begin = known ? reinterpret_cast<std::uintptr_t>(other.ss_sp) : 0;
  const auto end = known ? begin + other.ss_size : 0;
  const bool is_there = place >= begin && place < end;
  const bool are_there = known && (other.ss_flags & SS_ONSTACK) != 0;
  if (is_there && !are_there) return false;
  stack_walk walk{place, is_there ? 0 : begin, is_there ? 0 : end};
  _Unwind_Backtrace(stack_walk::look, &walk);
  return walk.interrupted || !walk.passed;
#endif
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_INTERRUPTION_HPP

// Layout of a ring file, which holds everything that is needed to write the log lines of a process
// that died.
//
// A ring file is a header followed by blocks. Each block's header gives its length; a block of kind
// none ends the list.
#ifndef LOTUS_RECORD_RING_LAYOUT_HPP
#define LOTUS_RECORD_RING_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char ring_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'R', 'N', 'G'};
inline constexpr std::uint32_t ring_file_layout = 6;
inline constexpr std::size_t least_page_bytes = 4096;  ///< block sizes are multiples of it
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

/// Flags in the header of a ring file.
inline constexpr std::uint32_t ticks_are_ns_flag = 1;  ///< ticks are ns; the hardware counter was
                                                       ///< not used
inline constexpr std::uint32_t compact_flag = 2;       ///< records go into compact logs
inline constexpr std::uint32_t aggregates_recovered_flag = 4;  ///< its aggregates have been written
                                                               ///< to files

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< offset of the first block
  std::uint32_t pid;
  std::uint32_t flags;  ///< ticks_are_ns_flag, compact_flag, aggregates_recovered_flag
  char version[16];
  char prefix[max_prefix_bytes + 1];  ///< prefix of the logs, which are in the same directory
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];     ///< clocks[clock_index] is consistent at any moment
  std::uint64_t begun_ns;  ///< CLOCK_REALTIME; differs between all recordings of a process
};

/// The logs of a thread: those in Lotus' format, and a hidden side log for what that cannot hold.
enum class log_role : std::uint32_t { main = 0, worker = 1, side = 2 };
inline constexpr std::size_t log_roles = 3;

/// How much of a log file is known to consist of whole, committed lines.
struct log_position {
  std::uint64_t inode;       ///< 0: nothing written yet
  std::uint64_t length;      ///< in bytes
  bool appending;            ///< whether bytes after `length` belong to an append that was not
                             ///< committed
  std::uint32_t number = 0;  ///< at the end of the log's name; 0: the thread's id is used
  std::uint32_t loader = 0;  ///< the loader of this log: id of its name; 0: the default one
};

/// The main lane holds records; the other lane holds those of a signal handler that interrupted the
/// storing of a record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< records before it are in the logs
  std::uint32_t loader;       ///< of the records from the main lane's tail on
  std::uint32_t in_memory;    ///< number of records that left the ring but are not in the logs yet
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  std::atomic<std::uint32_t> tid;  ///< thread of these records; its logs are named after it if
                                   ///< possible
  std::uint32_t capacity;          ///< of the main lane, in records; a power of two
  alignas(64) std::atomic<std::uint64_t> published[lanes];  ///< records before it are complete
  std::atomic<std::uint64_t>
      waiting_since;  ///< ticks when a wait for a batch began; 0: the thread does not wait
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is consistent at any moment
  record interrupt_slots[interrupt_lane_records];
  // Followed by `capacity` records.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  /// Number of records of the main lane that are not in the logs.
  std::uint64_t used() const noexcept {
    return published[0].load(std::memory_order_relaxed) - committed().tail[0];
  }
  bool full() const noexcept { return used() >= capacity; }
  /// Appends to the main lane, which must not be full.
  void append(const record& r) noexcept {
    const std::uint64_t at = published[0].load(std::memory_order_relaxed);
    slot(0, at) = r;
    published[0].store(at + 1, std::memory_order_release);
  }
  const commit_point& committed() const noexcept {
    return commits[commit_index.load(std::memory_order_acquire)];
  }
  void commit(const commit_point& c) noexcept {
    const std::uint32_t next = 1 - commit_index.load(std::memory_order_relaxed);
    commits[next] = c;
    commit_index.store(next, std::memory_order_release);
  }
  static constexpr std::size_t bytes_for(std::size_t capacity) noexcept {
    return sizeof(ring_block) + capacity * sizeof(record);
  }
};

/// Names by id. Entries follow: a stored_name and its bytes, padded to a multiple of 8.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< size of the entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< length of the text that follows: the start of a line, with the comma
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

// Locks on bytes of the file (F_OFD_SETLK). At most one process holds each; testing takes none.
inline constexpr off_t owner_lock_byte = 0;     ///< held while the file's process runs
inline constexpr off_t recovery_lock_byte = 1;  ///< held by whoever recovers the file

/// Returns 0 or errno; EAGAIN if another process holds the lock.
inline int take_file_lock(int fd, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno == EACCES ? EAGAIN : errno;
}

inline bool file_lock_is_taken(int fd, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  // If this is unknown, nobody may touch the file.
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Blocks are mapped one by one, so their sizes are whole pages of the machine that writes the
/// file.
inline std::size_t to_file_blocks(std::size_t bytes) noexcept {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RING_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

struct backlog_chunk;
class compact_chain;

/// How long a thread was off the CPU since the last reading.
struct off_cpu_time {
  std::uint64_t off_ns = 0;        ///< 0: not at all, or unknown
  std::uint64_t run_queue_ns = 0;  ///< the part spent waiting for a CPU, or run_queue_unknown
};

/// How much of a thread's time off the CPU has been recorded. For the owning thread.
struct cpu_account {
  std::uintptr_t reading = 0;  ///< like thread_ring::storing; an interrupting handler does not read
                               ///< the clocks
  bool begun = false;
  std::int64_t told_off_ns = 0;  ///< wall time minus CPU time
  std::int64_t told_run_queue_ns = 0;
  std::uint32_t futile = 0;  ///< number of consecutive readings that found nothing
  std::int64_t futile_since_ns = 0;
  owned_descriptor schedstat;
};

/// One running thread. Keeps its address until the thread is dead, even if its ring changes; then
/// another thread reuses it. Never freed.
struct producer : aggregating_ring {
  cpu_account cpu;  ///< for the owning thread

  // For the session, under `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< 0: free
  ring_block* ring = nullptr;
  bool ring_in_file = false;  ///< whether the ring's content survives the process
  bool attached = false;      ///< whether the ring belongs to the current recording, not to an
                              ///< earlier one
  /// Kept open between drains, for as many threads as the session allows.
  open_log logs[log_roles];
  bool logs_kept_open = false;
  bool shares_logs = false;        ///< whether its logs are shared by threads that run one after
                                   ///< another
  std::uint32_t rolls = 0;         ///< which roll-over of all logs into parts its own logs have
                                   ///< followed
  compact_chain* chain = nullptr;  ///< of the compact log, if there is one; never freed
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

/// Whether this thread is in a handler that interrupted the storing of a record. If a handler has
/// abandoned the storing by siglongjmp, clears its traces.
inline bool interrupts_storing(thread_ring& ring) noexcept {
  const std::uintptr_t place = ring.storing.load(std::memory_order_relaxed);
  if (place == 0) return false;
  if (is_interrupted(place)) return true;
  ring.storing_nested.store(0, std::memory_order_relaxed);
  ring.storing.store(0, std::memory_order_relaxed);
  return false;
}

/// Returns null if this thread has none.
inline producer* this_producer() noexcept {
  return static_cast<producer*>(this_ring);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline unsigned map_setting(variable which) noexcept {
  return static_cast<unsigned>(number_setting(which));
}

/// @param path  of the list of regions; `errno` gives the reason.
inline void cannot_write_list(const char* path) noexcept {
  report_once(variable::map_list, path, [](const variable_row& row, std::string_view bad) noexcept {
    say("%s: cannot write %.*s: %s", row.name, static_cast<int>(bad.size()), bad.data(),
        std::strerror(errno));
  });
}

/// Spins for a random time in [0, `longest_ns`), so that the first sample falls anywhere in the
/// operation: otherwise it would always come one interval after the sampler was resumed, and
/// shorter operations would never be sampled. It is a function of its own, so that reports can
/// exclude it by name; it calls nothing, since samples of callees would have other names.
__attribute__((noinline)) inline void lotus_map_wait(std::uint64_t longest_ns) noexcept {
  // One step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) on a clock's low bits.
  std::uint64_t z = hardware_ticks() + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  __extension__ using wide = unsigned __int128;
  const auto wait_ticks = static_cast<std::uint64_t>((wide{z} * longest_ns) >> 64U);
  const std::uint64_t start = hardware_ticks();
  while (hardware_ticks() - start < wait_ticks) {
  }
}

/// Returns hardware ticks per nanosecond; the first call measures for a millisecond. Not a local
/// static variable: a child forked during its initialization would wait for it forever.
inline double ticks_per_ns() noexcept {
  static std::atomic<double> known{0};
  const double before = known.load(std::memory_order_relaxed);
  if (before > 0) return before;
  const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  const std::uint64_t start = hardware_ticks();
  std::int64_t now_ns = start_ns;
  while (now_ns - start_ns < 1'000'000) now_ns = clock_ns(CLOCK_MONOTONIC);
  const double measured =
      static_cast<double>(hardware_ticks() - start) / static_cast<double>(now_ns - start_ns);
  known.store(measured, std::memory_order_relaxed);
  return measured;
}

inline void sleep_ms(unsigned ms) noexcept {
  timespec left{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace detail

LOTUS_DETAIL_SEAM void map_region::begin_region(std::string_view name) noexcept {
  std::memcpy(name_, name.data(), name.size() < sizeof(name_) ? name.size() : sizeof(name_) - 1);
  list();
  const char* const picked = detail::environment_text(detail::variable::map_op);
  if (picked != nullptr && name != picked) return;
  // Starts the session's own thread first, so that it does not count as started by the program.
  static_cast<void>(detail::is_recording());
  collector_ = detail::find_collector();
  if (collector_ != nullptr && !collector_->exists()) collector_ = nullptr;
  if (collector_ == nullptr) return;
  warm_up_ = detail::map_setting(detail::variable::map_warmup);
  passes_ = detail::map_setting(detail::variable::map_passes);
  counts_instructions_ = collector_->counts_instructions();
  interval_ticks_ = static_cast<std::uint64_t>(static_cast<double>(collector_->interval_ns()) *
                                               detail::ticks_per_ns());
}
LOTUS_DETAIL_SEAM void map_region::end_region() noexcept {
  end_pass();
  if (pass_ > 0 && pass_ <= warm_up_) {
    detail::say(
        "region %s was left in its warm-up, by break, return or an exception: nothing of it is "
        "collected; with LOTUS_MAP_WARMUP=0 its first pass is",
        name_);
  }
}

__attribute__((noinline)) LOTUS_DETAIL_SEAM bool map_region::next() noexcept {
  end_pass();
  if (pass_ == warm_up_ + passes_) return false;
  if (pass_++ >= warm_up_) begin_pass();
  return true;
}

inline void map_region::begin_pass() noexcept {
  // Done before the region is collected: interning the name and joining the session.
  tag_ = detail::is_recording() ? detail::operation_tag(name_) : detail::record_tag{};
  collecting_ = true;
  outer_ = innermost();
  innermost() = this;
  if (collector_ != nullptr) {
    if (counts_instructions_ && outer_ != nullptr) outer_->dump_part();
    if (!collector_->acknowledges())
      detail::sleep_ms(detail::map_setting(detail::variable::map_sleep_ms));
    if (!counts_instructions_) collector_->resume();
    detail::lotus_map_wait(interval_ticks_);
  }
  // The time of reading the clock is excluded.
  const std::uint64_t before = detail::hardware_ticks();
  begin_ns_ = detail::clock_ns(CLOCK_MONOTONIC);
  begin_ticks_ = detail::now_ticks();
  begin_ns_ += ns_since(before);
  // callgrind counts every instruction: it is switched on last here, and off first below.
  if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
}

inline void map_region::end_pass() noexcept {
  if (!collecting_) return;
  collecting_ = false;
  if (counts_instructions_) detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
  const std::uint64_t end_ticks = detail::now_ticks();
  const std::uint64_t end = detail::hardware_ticks();
  std::int64_t end_ns = detail::clock_ns(CLOCK_MONOTONIC);
  end_ns -= ns_since(end);
  if (collector_ != nullptr) {
    if (!counts_instructions_) collector_->pause();
    collector_->region(name_, static_cast<std::uint64_t>(begin_ns_),
                       static_cast<std::uint64_t>(end_ns));
  }
  if (!tag_.empty() && detail::is_recording()) detail::push(begin_ticks_, end_ticks, tag_);
  innermost() = outer_;
  if (counts_instructions_ && outer_ != nullptr) {
    detail::ask_valgrind(detail::valgrind_request::start_instrumentation);
  }
}

/// callgrind assigns its counts when they are dumped: those up to now belong to this region, those
/// of a region nested in it do not.
inline void map_region::dump_part() noexcept {
  detail::ask_valgrind(detail::valgrind_request::stop_instrumentation);
  char name[sizeof(detail::callgrind_part_start) + sizeof(name_)];
  std::memcpy(name, detail::callgrind_part_start, sizeof(detail::callgrind_part_start));
  std::memcpy(name + sizeof(detail::callgrind_part_start) - 1, name_, sizeof(name_));
  collector_->region(name, 0, 0);
}

inline map_region*& map_region::innermost() noexcept {
  static thread_local map_region* region = nullptr;
  return region;
}

inline std::int64_t map_region::ns_since(std::uint64_t ticks) const noexcept {
  if (collector_ == nullptr) return 0;  // nobody uses the value
  return static_cast<std::int64_t>(static_cast<double>(detail::hardware_ticks() - ticks) /
                                   detail::ticks_per_ns());
}

/// Appends this operation's name to the list for lotus-tool, if it asks for one.
inline void map_region::list() const noexcept {
  const char* const path = detail::environment_text(detail::variable::map_list);
  if (path == nullptr) return;
  const int fd = detail::open_out_of_the_way(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0) return detail::cannot_write_list(path);
  char line[sizeof(name_) + 1];
  const std::size_t length = std::strlen(name_);
  std::memcpy(line, name_, length);
  line[length] = '\n';
  errno = detail::write_all(fd, line, length + 1);
  if (errno != 0) detail::cannot_write_list(path);
  close(fd);
}

LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_ENGINE_MAP_PASSES_HPP

// The slow paths of a thread: its first record, a full ring, reading its clocks.
#ifndef LOTUS_RECORD_RARE_CALLS_HPP
#define LOTUS_RECORD_RARE_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Returns null if this thread cannot have a producer.
/// @param begins  true if what is recorded begins now, or if this was also called when it began.
LOTUS_DETAIL_PER_MODULE inline producer* find_producer(const services& s,
                                                       bool begins = true) noexcept {
  if (this_ring == nullptr) this_ring = s.this_thread(begins);
  return this_producer();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_first(const record& r) noexcept {
  const services& s = join_session(true);
  // A span would have called this at its begin, by looking at the CPU. So this is not one, and it
  // may have begun at any time.
  if (producer* const p = find_producer(s, false)) s.push_slow(*p, r);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_rarely(thread_ring& ring, const record& r) noexcept {
  const services& s = *this_module.hub.load(std::memory_order_acquire);
  auto& p = static_cast<producer&>(ring);
  const bool storing = p.storing.load(std::memory_order_relaxed) != 0;
  if (!storing) return s.push_slow(p, r);
  if (interrupts_storing(p)) return s.push_nested(p, r);
  push(r.begin_ticks, r.end_ticks, r.tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void read_cpu(std::uint64_t ticks) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s);
  if (p == nullptr) return;
  record_tag aggregated;
  const std::uint64_t own_ticks = s.aggregated_ticks(*p, &aggregated);
  if (own_ticks != 0) push(ticks - own_ticks, ticks, aggregated);
  if (this_cpu_watch.unmark()) return;
  const off_cpu_time found = s.read_cpu(*p, this_cpu_watch);
  if (found.off_ns != 0) push(ticks, found.off_ns, {event_kind::off_cpu, found.run_queue_ns});
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void get_ring() noexcept {
  const services& s = join_session(true);
  if (producer* const p = find_producer(s)) s.get_ring(*p);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void mark_watch() noexcept {
  // If another shared object already has a watch for this thread, this object's can be set up and
  // marked.
  if (this_cpu_watch.word == &never_looked) read_cpu(now_ticks());
  this_cpu_watch.mark();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void aggregate_rarely(aggregate_call call,
                                                          bool taken) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s);
  if (p == nullptr) return;
  thread_aggregates& a = aggregates_of(*p);
  const std::uintptr_t place = a.storing.load(std::memory_order_relaxed);
  if (place != 0 && is_interrupted(place)) {
    if (a.interrupting < thread_aggregates::most_interrupting) {
      a.interrupting_calls[a.interrupting++] = call;
    } else {
      p->dropped.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  if (place != 0) {
    // A handler has abandoned the previous call by siglongjmp.
    if (aggregates_block* const in = gate_of(*p).aggregates.load(std::memory_order_acquire)) {
      a.undo_unfinished(*in);
    }
    a.interrupting = 0;
    a.storing.store(0, std::memory_order_relaxed);
  }
  if (!taken) s.aggregate_slow(*p, call);
  while (a.interrupting > 0) {
    const aggregate_call interrupting = a.interrupting_calls[--a.interrupting];
    s.aggregate_slow(*p, interrupting);
  }
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM record_tag refuse_batch(std::uint64_t number) noexcept {
  join_session(true).refuse_batch(number);
  return {};
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void begin_annotation(record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).begin_task(tag);
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void end_annotation(std::uint64_t begin_ticks,
                                                        record_tag tag) noexcept {
  if (!tag.empty()) join_session(true).end_task(begin_ticks, tag);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RARE_CALLS_HPP

// The session's functions for the shared objects of its process: the table and its creation.
#ifndef LOTUS_SESSION_SESSION_SERVICES_HPP
#define LOTUS_SESSION_SESSION_SERVICES_HPP

// Shows scopes on the timelines of other profilers: LOTUS_ANNOTATE=itt,nvtx,torch.
#ifndef LOTUS_COLLECTORS_ANNOTATE_HPP
#define LOTUS_COLLECTORS_ANNOTATE_HPP

#include <optional>

// NVIDIA's Nsight tools, through the binary interface of the library that such a tool injects (NVTX
// 3), without including NVTX: the types below have that interface's binary layout.
#ifndef LOTUS_COLLECTORS_NVTX_HPP
#define LOTUS_COLLECTORS_NVTX_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The tool sets this variable to the path of its library.
inline constexpr char nvtx_library_variable[] = "NVTX_INJECTION64_PATH";

struct nvtx_domain;

/// Version 2 of nvtxEventAttributes_t.
struct nvtx_event {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(nvtx_event);
  std::uint32_t category = 0;
  std::int32_t colour_type = 0;
  std::uint32_t colour = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  ///< char*
  const char* message = nullptr;

  static constexpr std::int32_t payload_u64 = 1;
};
static_assert(sizeof(nvtx_event) == 48, "as the tool reads it");

/// The tool's functions; each is null if the tool lacks it. Never destroyed: the tool keeps
/// pointers to it.
class nvtx_library {
 public:
  nvtx_domain* (*domain_create)(const char*) = nullptr;
  int (*range_push)(nvtx_domain*, const nvtx_event*) = nullptr;
  int (*range_pop)(nvtx_domain*) = nullptr;
  /// Ranges that may end on another thread.
  std::uint64_t (*range_start)(nvtx_domain*, const nvtx_event*) = nullptr;
  void (*range_end)(nvtx_domain*, std::uint64_t) = nullptr;
  nvtx_domain* domain = nullptr;  ///< "lotus"

  /// Returns the library that the tool names; the first call loads and initializes it. Returns
  /// null, after reporting the reason, if there is none. Thread safety: all.
  static const nvtx_library* get() noexcept {
    static found_once<const nvtx_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  using function = void (*)();
  using function_table = function**;
  /// NvtxExportTableCallbacks.
  struct callbacks {
    std::size_t size;
    int (*function_table_of)(int module, function_table* table, unsigned* functions);
  };
  /// NvtxExportTableVersionInfo.
  struct version_info {
    std::size_t size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_version)(std::uint32_t);
  };

  // Constants of the interface.
  static constexpr int first_module = 1;
  static constexpr int domain_module = 5;  // NVTX_CB_MODULE_CORE2
  static constexpr int last_module = 6;
  static constexpr unsigned module_functions = 16;
  static constexpr unsigned range_start_function = 2;
  static constexpr unsigned range_end_function = 3;
  static constexpr unsigned range_push_function = 4;
  static constexpr unsigned range_pop_function = 5;
  static constexpr unsigned domain_create_function = 12;
  static constexpr std::uint32_t callbacks_table = 1;
  static constexpr std::uint32_t version_table = 3;

  LOTUS_DETAIL_COLD static const nvtx_library* load() noexcept {
    const char* path = secure_getenv(nvtx_library_variable);
    if (path == nullptr || *path == '\0') {
      say("LOTUS_ANNOTATE=nvtx needs %s; run the program with nsys", nvtx_library_variable);
      return nullptr;
    }
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      say("cannot load NVIDIA's collector: %s", dlerror());
      return nullptr;
    }
    using get_table = const void* (*)(std::uint32_t);
    const auto begin =
        reinterpret_cast<int (*)(get_table)>(dlsym(library, "InitializeInjectionNvtx2"));
    if (begin == nullptr || begin(exported_table) == 0) {
      say("%s is no collector: its InitializeInjectionNvtx2 %s", path,
          begin == nullptr ? "is missing" : "fails");
      return nullptr;
    }
    nvtx_library& self = instance();
    if (self.domain_create == nullptr || self.range_push == nullptr || self.range_pop == nullptr) {
      say("%s shows no ranges of domains", path);
      return nullptr;
    }
    self.domain = self.domain_create("lotus");
    return &self;
  }

  static nvtx_library& instance() noexcept {
    static nvtx_library self;
    return self;
  }

  static const void* exported_table(std::uint32_t id) noexcept {
    static const callbacks functions{sizeof(callbacks), function_table_of};
    static const version_info version{sizeof(version_info), 3, 0, [](std::uint32_t) {}};
    if (id == callbacks_table) return &functions;
    return id == version_table ? &version : nullptr;
  }

  /// Returns where the tool stores its functions: five in this object, all others in an unused
  /// place.
  static int function_table_of(int module, function_table* table, unsigned* functions) noexcept {
    static function unused = nullptr;
    static function* to[last_module + 1][module_functions + 1];
    if (module < first_module || module > last_module) return 0;
    for (unsigned i = 1; i < module_functions; ++i) to[module][i] = &unused;
    if (module == domain_module) {
      nvtx_library& self = instance();
      to[module][range_start_function] = place(self.range_start);
      to[module][range_end_function] = place(self.range_end);
      to[module][range_push_function] = place(self.range_push);
      to[module][range_pop_function] = place(self.range_pop);
      to[module][domain_create_function] = place(self.domain_create);
    }
    if (table != nullptr) *table = to[module];
    if (functions != nullptr) *functions = module_functions;
    return 1;
  }

  template <class Function>
  static function* place(Function*& f) noexcept {
    return reinterpret_cast<function*>(&f);
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_NVTX_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The profilers that the environment asks for and that are present.
struct annotators {
  const itt_domain* itt = nullptr;
  const nvtx_library* nvtx = nullptr;
  bool torch = false;  ///< used if the program has it: torch_annotation
};

LOTUS_DETAIL_PER_MODULE inline found_once<annotators> chosen_annotators;
/// PyTorch's profiler; null if no part of the program includes lotus/torch.hpp.
LOTUS_DETAIL_PER_MODULE inline std::atomic<const annotation_calls*> torch_annotation{nullptr};

LOTUS_DETAIL_PER_MODULE inline const itt_domain* find_itt_domain() noexcept {
  const itt_library* itt = itt_library::get();
  const bool has_tasks = itt != nullptr && itt->domain_create != nullptr &&
                         itt->string_handle_create != nullptr && itt->task_begin != nullptr &&
                         itt->task_end != nullptr;
  return has_tasks ? itt->domain_create("lotus") : nullptr;
}

LOTUS_DETAIL_PER_MODULE inline annotators find_annotators() noexcept {
  annotators found;
  // Bits in the order of the words in environment_table.
  const std::uint32_t given = environment_words(variable::annotate, say_of_variable);
  if ((given & 1U) != 0) found.itt = find_itt_domain();
  if ((given & 2U) != 0) found.nvtx = nvtx_library::get();
  found.torch = (given & 4U) != 0;
  return found;
}

/// Finds the profilers that the environment asks for. The first call may load a profiler's library:
/// do not make it while holding a lock. Other calls meanwhile do not wait: tasks begin when the
/// library is loaded. Errors: reported once. Thread safety: all.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  chosen_annotators.get_at_once(find_annotators, {});
}

/// Whether choose_annotation() found a profiler; false until it has finished.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  const annotators to = chosen_annotators.known({});
  return to.itt != nullptr || to.nvtx != nullptr ||
         (to.torch && torch_annotation.load(std::memory_order_acquire) != nullptr);
}

/// A name as a C string for the profilers' functions, cut at 255 bytes.
class task_text {
 public:
  explicit task_text(std::string_view name) noexcept {
    const std::size_t length = name.size() < sizeof(text_) ? name.size() : sizeof(text_) - 1;
    if (length > 0) std::memcpy(text_, name.data(), length);
    text_[length] = '\0';
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[256];
};

/// Returns VTune's handle of a text; the first call stores it in `handle`.
inline itt_string_handle* itt_handle(const char* text, std::atomic<void*>& handle) noexcept {
  auto* known = static_cast<itt_string_handle*>(handle.load(std::memory_order_acquire));
  if (known == nullptr) {
    known = itt_library::get()->string_handle_create(text);
    handle.store(known, std::memory_order_release);
  }
  return known;
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<void*> number_handle{nullptr};

/// @param task  if all zeros, this thread's innermost task.
LOTUS_DETAIL_PER_MODULE inline void add_itt_number(const itt_domain* domain, itt_id task,
                                                   std::uint64_t number) noexcept {
  const itt_library& itt = *itt_library::get();
  if (itt.metadata_add == nullptr) return;
  itt.metadata_add(domain, task, itt_handle("number", number_handle), itt_library::metadata_u64, 1,
                   &number);
}

inline nvtx_event nvtx_event_of(const char* text, std::optional<std::uint64_t> number) noexcept {
  nvtx_event event;
  event.message = text;
  if (number) {
    event.payload_type = nvtx_event::payload_u64;
    event.payload = *number;
  }
  return event;
}

/// Begins a task of this thread. Call it only if annotation_wanted().
/// @param name    copied; cut at 255 bytes.
/// @param handle  used for this name only: null, or VTune's handle, which the first task stores.
/// @param number  of the batch or stage: shown next to the name.
LOTUS_DETAIL_PER_MODULE inline void begin_task(
    std::string_view name, std::atomic<void*>& handle,
    std::optional<std::uint64_t> number = std::nullopt) noexcept {
  const annotators to = chosen_annotators.known({});
  const task_text text{name};
  if (to.itt != nullptr) {
    itt_library::get()->task_begin(to.itt, itt_id{}, itt_id{}, itt_handle(text.c_str(), handle));
    if (number) add_itt_number(to.itt, itt_id{}, *number);
  }
  if (to.nvtx != nullptr) {
    const nvtx_event event = nvtx_event_of(text.c_str(), number);
    to.nvtx->range_push(to.nvtx->domain, &event);
  }
  if (!to.torch) return;
  if (const annotation_calls* torch = torch_annotation.load(std::memory_order_acquire)) {
    torch->begin(text.c_str());
  }
}

/// Tasks that may end on another thread. If too many are open at once, further ones are on no
/// timeline. Thread safety: all; only one thread at a time may use a number.
class async_tasks {
 public:
  struct task {
    std::atomic<std::uint64_t> key;  ///< the task's number + 1; 0: this place is free
    std::uint64_t nvtx_range;
  };

  /// Returns null if there is no free place.
  task* begin(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < most_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      std::uint64_t none = 0;
      if (place.key.compare_exchange_strong(none, std::uint64_t{number} + 1)) return &place;
    }
    return nullptr;
  }
  /// Returns null if the task has not begun. The caller that ends it sets its key to 0.
  task* find(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < most_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      if (place.key.load() == std::uint64_t{number} + 1) return &place;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint32_t places = 1024;
  static constexpr std::uint32_t most_probes = 16;

  task tasks_[places]{};
};
LOTUS_DETAIL_PER_MODULE inline async_tasks open_async_tasks;

inline itt_id itt_id_of_async(const itt_domain* domain, std::uint32_t number) noexcept {
  return {reinterpret_cast<std::uintptr_t>(domain), std::uint64_t{number} + 1, 0};
}

/// Begins a segment of an asynchronous operation, which may overlap others of this thread and end
/// on another thread. PyTorch's profiler does not support this. Call it only if
/// annotation_wanted().
/// @param number  not used by any other open operation. For the other parameters see begin_task().
LOTUS_DETAIL_PER_MODULE inline void begin_async_task(std::string_view name,
                                                     std::atomic<void*>& handle,
                                                     std::uint32_t number) noexcept {
  const annotators to = chosen_annotators.known({});
  async_tasks::task* const task = open_async_tasks.begin(number);
  if (task == nullptr) return;
  const task_text text{name};
  if (to.itt != nullptr && itt_library::get()->task_begin_overlapped != nullptr) {
    itt_library::get()->task_begin_overlapped(to.itt, itt_id_of_async(to.itt, number), itt_id{},
                                              itt_handle(text.c_str(), handle));
    add_itt_number(to.itt, itt_id_of_async(to.itt, number), number);
  }
  if (to.nvtx != nullptr && to.nvtx->range_start != nullptr) {
    const nvtx_event event = nvtx_event_of(text.c_str(), number);
    task->nvtx_range = to.nvtx->range_start(to.nvtx->domain, &event);
  }
}

/// Ends the segment on any thread; does nothing if it has not begun.
LOTUS_DETAIL_PER_MODULE inline void end_async_task(std::uint32_t number) noexcept {
  async_tasks::task* const task = open_async_tasks.find(number);
  if (task == nullptr) return;
  const annotators to = chosen_annotators.known({});
  if (to.nvtx != nullptr && to.nvtx->range_end != nullptr) {
    to.nvtx->range_end(to.nvtx->domain, task->nvtx_range);
  }
  if (to.itt != nullptr && itt_library::get()->task_end_overlapped != nullptr) {
    itt_library::get()->task_end_overlapped(to.itt, itt_id_of_async(to.itt, number));
  }
  task->key.store(0);
}

/// Ends this thread's innermost task.
LOTUS_DETAIL_PER_MODULE inline void end_task() noexcept {
  const annotators to = chosen_annotators.known({});
  if (to.torch) {
    if (const annotation_calls* torch = torch_annotation.load(std::memory_order_acquire)) {
      torch->end();
    }
  }
  if (to.nvtx != nullptr) to.nvtx->range_pop(to.nvtx->domain);
  if (to.itt != nullptr) itt_library::get()->task_end(to.itt);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_ANNOTATE_HPP

// Names of operations: their form in a log line, and the table that maps them to small ids.
#ifndef LOTUS_RECORD_NAMES_HPP
#define LOTUS_RECORD_NAMES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::size_t max_name_bytes = 1024;  ///< longer names are cut
inline constexpr std::size_t max_line_name_bytes = 1 + 3 * max_name_bytes;

/// Writes "S" and the name in the form used in log lines to `out` (max_line_name_bytes); returns
/// the length. Replaces by %XX: control bytes, bytes from 0x7f on, commas, quotes, percent signs, a
/// blank at either end, and the B of a name that begins with "Batch". So a name can neither end a
/// field or line nor look like a batch record. lotus-tool reverses this.
inline std::size_t write_line_name(std::string_view name, char* out) noexcept {
  constexpr char hex[] = "0123456789ABCDEF";
  const std::size_t length = name.size() < max_name_bytes ? name.size() : max_name_bytes;
  const bool like_batch = name.substr(0, 5) == "Batch";
  char* p = out;
  *p++ = 'S';
  for (std::size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool edge_blank = c == ' ' && (i == 0 || i + 1 == length);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"' || c == '%' || edge_blank ||
        (i == 0 && like_batch)) {
      *p++ = '%';
      *p++ = hex[c >> 4];
      *p++ = hex[c & 15];
    } else {
      *p++ = static_cast<char>(c);
    }
  }
  return static_cast<std::size_t>(p - out);
}

/// A name that occurred once. Exists until the process exits.
struct name_entry {
  std::uint64_t hash;
  std::uint32_t id;
  std::uint16_t raw_bytes;
  std::uint16_t line_bytes;
  mutable std::atomic<void*> task_handle;  ///< a collector's handle for this name; managed by the
                                           ///< collector
  // Followed by the raw name, then by the name as at the start of a line, with the comma.

  std::string_view raw() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), raw_bytes};
  }
  std::string_view line_start() const noexcept {
    return {reinterpret_cast<const char*>(this + 1) + raw_bytes, line_bytes};
  }
};

/// The name for unnamed_id. Ring files do not list it, since recovery knows it.
inline constexpr std::string_view unnamed_name = "(unnamed)";
inline constexpr std::string_view unnamed_line_start = "S(unnamed),";
/// Start of a line whose name is in no list.
inline constexpr std::string_view lost_line_start = "Sname_lost,";

/// Looks up the start of a line, "S<name>,", by the id of its name.
struct name_lookup {
  const void* table;
  std::string_view (*line_start)(const void* table, std::uint64_t id) noexcept;

  std::string_view operator()(std::uint64_t id) const noexcept { return line_start(table, id); }
};

/// Interns names by content. Reading takes no lock. Nothing is ever freed, so ids and entries stay
/// valid until the process exits. Ids count from 1; a name for which there is no room gets
/// unnamed_id. Thread safety: all; also from signal handlers.
class name_table {
 public:
  static constexpr std::uint32_t limit = unnamed_id - 1;  ///< maximum number of names

  /// @param most_names  at most `limit`.
  explicit name_table(std::uint32_t most_names = limit) noexcept : most_names_{most_names} {
    put(unnamed_, 0, unnamed_id, unnamed_name, unnamed_line_start);
  }

  std::uint32_t intern(std::string_view name) noexcept {
    name = name.substr(0, max_name_bytes);
    const std::uint64_t hash = hash_of(name);
    if (const name_entry* found = find(name, hash)) return found->id;
    if (size() >= most_names_) return unnamed_id;
    const signals_blocked quiet;
    const locked hold{mutex_};
    if (const name_entry* found = find(name, hash)) return found->id;
    return add(name, hash);
  }

  /// @param id  a result of intern().
  const name_entry& entry(std::uint32_t id) const noexcept {
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      return *reinterpret_cast<const name_entry*>(unnamed_);
    }
    const name_page* page = pages_[(id - 1) / page_names].load(std::memory_order_acquire);
    return *page->entries[(id - 1) % page_names].load(std::memory_order_acquire);
  }

  std::uint32_t size() const noexcept { return count_.load(); }

  /// Accepts any id: any process that maps a ring file can have written into it.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id != 0 && (id <= size() || id == unnamed_id)) {
      return entry(static_cast<std::uint32_t>(id)).line_start();
    }
    return lost_line_start;
  }
  name_lookup line_starts() const noexcept {
    return {this, [](const void* table, std::uint64_t id) noexcept {
              return static_cast<const name_table*>(table)->line_start(id);
            }};
  }

  mutex& fork_lock() noexcept { return mutex_; }

 private:
  static constexpr std::size_t page_names = 4096;
  static constexpr std::size_t max_pages = limit / page_names + 1;
  static constexpr std::size_t arena_bytes = std::size_t{1} << 18;

  struct name_page {
    std::atomic<const name_entry*> entries[page_names];
  };
  struct index {
    std::size_t slots;  ///< a power of two; the slots follow this struct
    std::atomic<const name_entry*>* data() noexcept {
      return reinterpret_cast<std::atomic<const name_entry*>*>(this + 1);
    }
  };

  /// FNV-1a (Fowler, Noll, Vo), 64 bits: names are short.
  static std::uint64_t hash_of(std::string_view name) noexcept {
    std::uint64_t h = 14695981039346656037U;
    for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return h;
  }

  const name_entry* find(std::string_view name, std::uint64_t hash) const noexcept {
    index* in = index_.load(std::memory_order_acquire);
    if (in == nullptr) return nullptr;
    for (std::uint64_t i = hash;; ++i) {
      const name_entry* e = in->data()[i & (in->slots - 1)].load(std::memory_order_acquire);
      if (e == nullptr || (e->hash == hash && e->raw() == name)) return e;
    }
  }

  static void place(index& in, const name_entry& e) noexcept {
    std::uint64_t i = e.hash;
    while (in.data()[i & (in.slots - 1)].load(std::memory_order_relaxed) != nullptr) ++i;
    in.data()[i & (in.slots - 1)].store(&e, std::memory_order_release);
  }

  /// Returns an index that is at most half full after one more name; an outgrown one is not freed,
  /// because readers may still use it.
  index* roomy_index() noexcept {
    index* in = index_.load(std::memory_order_relaxed);
    const std::size_t needed = (std::size_t{size()} + 1) * 2;
    if (in != nullptr && needed <= in->slots) return in;
    const std::size_t slots = in == nullptr ? 1024 : in->slots * 2;
    void* memory = map_memory(sizeof(index) + slots * sizeof(std::atomic<const name_entry*>));
    if (memory == nullptr) return nullptr;
    auto* grown = new (memory) index{slots};
    for (std::uint32_t id = 1; id <= size(); ++id) place(*grown, entry(id));
    index_.store(grown, std::memory_order_release);
    return grown;
  }

  void* allocate(std::size_t bytes) noexcept {
    bytes = (bytes + 7) & ~std::size_t{7};
    if (arena_left_ < bytes) {
      void* fresh = map_memory(arena_bytes);
      if (fresh == nullptr) return nullptr;
      arena_ = static_cast<char*>(fresh);
      arena_left_ = arena_bytes;
    }
    void* p = arena_;
    arena_ += bytes;
    arena_left_ -= bytes;
    return p;
  }

  /// Creates an entry in `memory`, which must have room for it and both texts.
  static const name_entry* put(void* memory, std::uint64_t hash, std::uint32_t id,
                               std::string_view name, std::string_view line) noexcept {
    auto* e = new (memory) name_entry{hash, id, static_cast<std::uint16_t>(name.size()),
                                      static_cast<std::uint16_t>(line.size()), nullptr};
    auto* text = reinterpret_cast<char*>(e + 1);
    if (!name.empty()) std::memcpy(text, name.data(), name.size());
    std::memcpy(text + name.size(), line.data(), line.size());
    return e;
  }

  std::uint32_t add(std::string_view name, std::uint64_t hash) noexcept {
    if (size() >= most_names_) return unnamed_id;
    const std::uint32_t id = size() + 1;
    auto& page_slot = pages_[(id - 1) / page_names];
    name_page* page = page_slot.load(std::memory_order_relaxed);
    if (page == nullptr) {
      page = static_cast<name_page*>(map_memory(sizeof(name_page)));
      if (page == nullptr) return unnamed_id;
      page_slot.store(page, std::memory_order_release);
    }
    index* in = roomy_index();
    char line[max_line_name_bytes + 1];
    std::size_t line_bytes = write_line_name(name, line);
    line[line_bytes++] = ',';
    void* memory = allocate(sizeof(name_entry) + name.size() + line_bytes);
    if (in == nullptr || memory == nullptr) return unnamed_id;
    const name_entry* e = put(memory, hash, id, name, {line, line_bytes});
    page->entries[(id - 1) % page_names].store(e, std::memory_order_release);
    count_.store(id);
    place(*in, *e);
    return id;
  }

  const std::uint32_t most_names_;
  /// Created in advance, because it is needed when there is no memory.
  alignas(name_entry) char unnamed_[sizeof(name_entry) + unnamed_name.size() +
                                    unnamed_line_start.size()];
  mutex mutex_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<index*> index_{nullptr};
  std::atomic<name_page*> pages_[max_pages]{};
  char* arena_ = nullptr;
  std::size_t arena_left_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_NAMES_HPP

// The one session of a process: start and stop, steps, environment, shared objects, fork.
#ifndef LOTUS_SESSION_PROCESS_SESSION_HPP
#define LOTUS_SESSION_PROCESS_SESSION_HPP

// Detects whether the state in memory belongs to this process.
#ifndef LOTUS_BASE_OWN_PROCESS_HPP
#define LOTUS_BASE_OWN_PROCESS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Detects a child that was created without fork handlers (_Fork, clone): it has copies of
/// everything, including locks that nobody will release. A child of vfork is not one, because it
/// runs in its parent's memory. Thread safety: call claim() while the process has one thread;
/// is_this() is safe on any thread, also in signal handlers.
class own_process {
 public:
  /// Declares that the state in memory belongs to this process from now on.
  void claim() noexcept {
    if (mark_ == nullptr) make_mark();
    if (mark_ != nullptr) mark_->store(1, std::memory_order_relaxed);
    pid_ = getpid();
  }

  bool is_this() const noexcept {
    if (mark_ != nullptr) return mark_->load(std::memory_order_relaxed) != 0;
    return getpid() == pid_;
  }

 private:
  using mark = std::atomic<std::uint32_t>;

  void make_mark() noexcept {
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = map_memory(bytes);
    if (memory == nullptr) return;
    if (clear_in_children(memory, bytes)) {
      mark_ = static_cast<mark*>(memory);
    } else {
      munmap(memory, bytes);
    }
  }

  mark* mark_ =
      nullptr;  ///< on a page that is cleared in children; null if the kernel cannot do that
  pid_t pid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_OWN_PROCESS_HPP

// Finds or creates the directory of a run and lists its entries.
#ifndef LOTUS_FOLDER_DIRECTORY_HPP
#define LOTUS_FOLDER_DIRECTORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// "run/lotustrace_log" as directory "run" and prefix "lotustrace_log".
struct log_location {
  char directory[4096];
  char prefix[max_prefix_bytes + 1];

  /// Returns 0 or errno.
  LOTUS_DETAIL_COLD int parse(std::string_view log_file) noexcept {
    const std::size_t slash = log_file.rfind('/');
    const std::string_view folder = slash == std::string_view::npos ? "."
                                    : slash == 0                    ? "/"
                                                                    : log_file.substr(0, slash);
    std::string_view name = slash == std::string_view::npos ? log_file : log_file.substr(slash + 1);
    if (name.empty()) name = "lotustrace_log";
    if (folder.size() >= sizeof(directory) || name.size() >= sizeof(prefix)) return ENAMETOOLONG;
    std::memcpy(directory, folder.data(), folder.size());
    directory[folder.size()] = '\0';
    std::memcpy(prefix, name.data(), name.size());
    prefix[name.size()] = '\0';
    return 0;
  }

  /// Opens the directory; creates it and its parents if missing. Returns a descriptor or -errno.
  int open_directory() noexcept {
    for (char* p = directory + 1; *p != '\0'; ++p) {
      if (*p != '/') continue;
      *p = '\0';
      const int made = mkdir(directory, 0777);
      const int error = errno;
      *p = '/';
      if (made != 0 && error != EEXIST) break;  // open() will report what is wrong
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) return -errno;
    const int fd = open_out_of_the_way(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return -errno;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    return fd;
  }
};

/// Calls `each(name)` for every entry of the directory with descriptor `directory` (borrowed). Does
/// not use opendir(), which allocates: the caller may be a signal handler that interrupted malloc.
LOTUS_DETAIL_COLD inline void for_each_entry(int directory,
                                             function_ref<void(const char* name)> each) noexcept {
  const int fd = open_out_of_the_way(directory, ".", O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  // Layout of a getdents64(2) entry: inode, offset, length of the entry, type, name.
  constexpr std::size_t length_at = 16;
  constexpr std::size_t name_at = 19;
  alignas(8) char entries[2048];
  long bytes = 0;
  while ((bytes = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
    for (const char* at = entries; at < entries + bytes;) {
      each(at + name_at);
      std::uint16_t length = 0;
      std::memcpy(&length, at + length_at, sizeof(length));
      at += length;
    }
  }
  close(fd);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_DIRECTORY_HPP

// Formats records as the text lines of a Lotus log.
#ifndef LOTUS_FORMAT_LINE_HPP
#define LOTUS_FORMAT_LINE_HPP

// The table that describes each kind of record: its log, its lines, its numbers, its encoding in
// compact blocks and its drawing on a timeline. Both writers and both readers use this table.
#ifndef LOTUS_FORMAT_RECORD_KINDS_HPP
#define LOTUS_FORMAT_RECORD_KINDS_HPP

#include <array>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a record's value contains.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name; the line begins with that name
  name_and_number,  ///< the id of a name and a 32-bit number
  number,           ///< a 56-bit number
  none,             ///< neither; a line, if there is one, has only its prefix and times
};

/// What a record's line contains as its duration.
enum class written_duration : std::uint8_t {
  measured,
  measured_unlike_placeholder,  ///< one ns more if it is exactly placeholder_ns
  placeholder,                  ///< placeholder_ns, for events
  none,                         ///< nothing: the record has only a line in the side log
};

/// The duration that marks a line as an event instead of a span.
inline constexpr std::int64_t placeholder_ns = 1000;

/// How a record is drawn on a timeline.
enum class record_drawing : std::uint8_t {
  nothing,  ///< not drawn: a total, or a relation between other records
  span,     ///< from its begin to its end
  step,     ///< from its begin to the next wait of its thread
  moment,
  counter,  ///< a value over time
  ahead,    ///< describes the operation that begins at this time; that operation's own record
            ///< follows
  gap,      ///< time to cut out of the spans before this record's time
};

/// The meaning and unit of a number in a record.
enum class record_quantity : std::uint8_t {
  none,    ///< the field is unused
  batch,   ///< number of a batch
  item,    ///< number of an item
  number,  ///< number of a batch, item, request or asynchronous operation, or at the end of a name
  value,   ///< value of a counter, in the program's unit
  off_cpu_ns,
  run_queue_ns,  ///< the part of off_cpu_ns spent waiting for a CPU
  bytes,         ///< bytes of heap memory; calls for heap_total with count 1
  count,         ///< calls, blocks or units; for heap_total it selects what the bytes mean
};

/// Where the record stores the number.
enum class field_source : std::uint8_t { number_beside_name, value, second_word };

/// The range of a number in the text of a line.
enum class field_type : std::uint8_t {
  natural,          ///< 0 to INT64_MAX
  natural_or_none,  ///< 0 to INT64_MAX, or empty if the record contains missing_number()
  integer,          ///< signed
  bits,             ///< unsigned 64-bit number
};

/// How a compact block encodes the number.
enum class field_coding : std::uint8_t {
  difference,  ///< zigzag difference to the previous record of the same code; a second field: of
               ///< any code
  plain,
  one_more,  ///< the number plus one; 0: no number
};

/// Where a line contains the number: after its prefix, or in one of the last two columns of a
/// side-log line.
enum class line_column : std::uint8_t { prefix, a, b };

/// A number of a record. All zeros: no such number.
struct record_field {
  record_quantity quantity;
  field_source source;
  field_type type;
  field_coding coding;
  line_column column;
};

/// One row of the table. A column A or B without a field is written as 0; if a duration is
/// measured, it is written in column A.
struct record_kind {
  event_kind kind;
  log_role role;  ///< the log that its lines are written to
  record_value value;
  written_duration duration;
  record_drawing drawing;
  /// Identifies a kind without a name in compact blocks, independently of event_kind's numbers. 0:
  /// the kind has names, and each name gets a code when it first occurs.
  std::uint8_t code;
  std::string_view prefix;  ///< beginning of its lines; empty if they begin with a name
  /// Beginning of its line in the side log; empty if it has no such line.
  std::string_view beside;
  record_field fields[2];  ///< in the order in which compact blocks encode them
  /// The fields in columns A and B, if any; the table fills them in.
  record_field columns[2] = {};

  /// The name of such a span on a profiler's timeline; empty if the record has a name of its own.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
  /// The first column of its lines in the side log.
  constexpr std::string_view beside_name() const noexcept {
    return beside.substr(0, beside.find(','));
  }
  /// Whether the record has a measured duration.
  constexpr bool lasts() const noexcept {
    return duration == written_duration::measured ||
           duration == written_duration::measured_unlike_placeholder;
  }
  /// The field in this column of a line; null if there is none.
  constexpr const record_field* field_in(line_column column) const noexcept {
    for (const record_field& f : fields) {
      if (f.quantity != record_quantity::none && f.column == column) return &f;
    }
    return nullptr;
  }
};

/// The table: one row for each kind. A missing row is an error under any warning level.
/// warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr record_kind row_of(event_kind kind) noexcept {
  using what = record_quantity;
  using from = field_source;
  using type = field_type;
  using told = field_coding;
  using column = line_column;
  using drawn = record_drawing;
  constexpr log_role main = log_role::main;
  constexpr log_role worker = log_role::worker;
  constexpr log_role beside = log_role::side;
  constexpr record_value name = record_value::name;
  constexpr record_value both = record_value::name_and_number;
  constexpr record_value alone = record_value::number;
  constexpr written_duration timed = written_duration::measured;
  constexpr written_duration a_wait = written_duration::measured_unlike_placeholder;
  constexpr written_duration event = written_duration::placeholder;
  constexpr written_duration no_time = written_duration::none;
  constexpr std::uint8_t by_name = 0;

  // In the prefix of a batch's lines.
  constexpr record_field batch{what::batch, from::value, type::natural, told::difference,
                               column::prefix};
  // Stored next to the name in the value.
  constexpr record_field number{what::number, from::number_beside_name, type::natural,
                                told::difference, column::b};
  constexpr record_field maybe{what::number, from::number_beside_name, type::natural_or_none,
                               told::difference, column::b};
  constexpr record_field count{what::count, from::number_beside_name, type::natural,
                               told::difference, column::b};
  // Stored in the second word.
  constexpr record_field bytes{what::bytes, from::second_word, type::natural, told::plain,
                               column::a};
  constexpr record_field value{what::value, from::second_word, type::integer, told::difference,
                               column::a};
  constexpr record_field whole{what::number, from::second_word, type::bits, told::difference,
                               column::a};
  constexpr record_field taker{what::batch, from::value, type::natural, told::difference,
                               column::a};
  constexpr record_field item{what::item, from::second_word, type::natural, told::difference,
                              column::b};
  constexpr record_field off{what::off_cpu_ns, from::second_word, type::natural, told::plain,
                             column::a};
  constexpr record_field queued{what::run_queue_ns, from::value, type::natural_or_none,
                                told::one_more, column::b};

  // Kind, log, value, duration, drawing, code, prefix, side-log prefix, fields.
  switch (kind) {
    case event_kind::operation:
      return {kind, worker, name, timed, drawn::span, by_name, "", "", {}};
    case event_kind::batch_preprocessed:
      return {kind, worker, alone, timed, drawn::span, 2, "SBatchPreprocessed_", "", {batch}};
    case event_kind::batch_wait:
      return {kind, main, alone, a_wait, drawn::span, 3, "SBatchWait_", "", {batch}};
    case event_kind::batch_arrived:
      return {kind, main, alone, event, drawn::moment, 4, "SBatchWait_", "", {batch}};
    case event_kind::batch_consumed:
      return {kind, main, alone, event, drawn::step, 5, "SBatchConsumed_", "", {batch}};
    case event_kind::batch_queued:
      return {kind, main, alone, event, drawn::moment, 6, "SBatchQueued_", "", {batch}};
    case event_kind::stage:
      return {kind, worker, both, timed, drawn::span, by_name, "", "stage,", {maybe}};
    case event_kind::async_piece:
      return {kind, worker, both, timed, drawn::span, by_name, "", "piece,", {number}};
    case event_kind::counter:
      return {kind, beside, name, no_time, drawn::counter, by_name, "", "counter,", {value}};
    case event_kind::batch_takes:
      return {kind, beside, alone, no_time, drawn::nothing, 10, "", "takes,,", {taker, item}};
    case event_kind::off_cpu:
      return {kind, beside, alone, no_time, drawn::gap, 11, "", "off_cpu,,", {off, queued}};
    case event_kind::loader:  // selects the folder of the lines that follow
      return {kind, beside, record_value::none, no_time, drawn::nothing, 12, "", "", {}};
    case event_kind::stage_number:
      return {kind, beside, name, no_time, drawn::ahead, by_name, "", "number,", {whole}};
    case event_kind::arguments:
      return {kind, beside, name, no_time, drawn::ahead, by_name, "", "args,", {}};
    case event_kind::range:
      return {kind, beside, both, timed, drawn::span, by_name, "", "range,", {maybe}};
    case event_kind::allocated:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "allocated,", {count, bytes}};
    case event_kind::freed:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "freed,", {count, bytes}};
    case event_kind::retained:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "retained,", {count, bytes}};
    case event_kind::heap_peak:
      return {kind, beside, both, no_time, drawn::ahead, by_name, "", "peak,", {count, bytes}};
    case event_kind::heap:
      return {kind, beside, both, no_time, drawn::counter, by_name, "", "heap,", {count, bytes}};
    case event_kind::held:
      return {kind, beside, both, no_time, drawn::nothing, by_name, "", "held,", {count, bytes}};
    case event_kind::heap_total:
      return {kind, beside, both, no_time, drawn::nothing, by_name, "", "total,", {count, bytes}};
    case event_kind::aggregated:
      return {kind, beside, both, timed, drawn::gap, by_name, "", "aggregated,", {maybe}};
    case event_kind::none:
      break;
  }
  // A record from a damaged ring file, or from a later version of lotus.
  constexpr record_value lost = record_value::none;
  return {event_kind::none, worker, lost, timed, drawn::span, by_name, "Skind_lost,", "", {}};
}
#pragma GCC diagnostic pop

/// The largest number of a kind plus one.
inline constexpr std::size_t record_kind_count = [] {
  std::size_t count = 256;
  while (row_of(static_cast<event_kind>(count - 1)).kind == event_kind::none) --count;
  return count;
}();

/// The rows, indexed by kind.
LOTUS_DETAIL_PER_MODULE inline constexpr auto record_kinds = [] {
  std::array<record_kind, record_kind_count> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = row_of(static_cast<event_kind>(i));
    for (const record_field& f : rows[i].fields) {
      if (f.quantity != record_quantity::none && f.column != line_column::prefix) {
        rows[i].columns[f.column == line_column::a ? 0 : 1] = f;
      }
    }
  }
  return rows;
}();

/// The row of a kind; row 0 if the number is not that of a kind.
LOTUS_DETAIL_ALWAYS_INLINE const record_kind& kind_of(event_kind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return record_kinds[number < record_kind_count ? number : 0];
}
LOTUS_DETAIL_ALWAYS_INLINE const record_kind& kind_of(record_tag tag) noexcept {
  return kind_of(tag.kind());
}

constexpr bool has_name(const record_kind& kind) noexcept {
  return kind.value == record_value::name || kind.value == record_value::name_and_number;
}

/// Whether its lines have the three columns of a batch: prefix and number, begin, duration.
constexpr bool is_of_batch(const record_kind& kind) noexcept {
  return kind.value == record_value::number && !kind.prefix.empty();
}

/// The id of the record's name; call it only for kinds that have one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

/// Avoids a branch, which would often be mispredicted.
LOTUS_DETAIL_ALWAYS_INLINE constexpr std::uint64_t number_of(const record_field& field,
                                                             const record& r) noexcept {
  const std::uint64_t word =
      field.source == field_source::second_word ? r.end_ticks : r.tag.value();
  return field.source == field_source::number_beside_name ? word & UINT32_MAX : word;
}

/// The largest number that a record can store in this field.
constexpr std::uint64_t most_of(const record_field& field) noexcept {
  switch (field.source) {
    case field_source::number_beside_name:
      return UINT32_MAX;
    case field_source::value:
      return (std::uint64_t{1} << record_tag::value_bits) - 1;
    case field_source::second_word:
      break;
  }
  return UINT64_MAX;
}

/// The value that a record stores if it has no number.
constexpr std::uint64_t missing_number(const record_field& field) noexcept {
  return most_of(field);
}
static_assert(large_stage_number == UINT32_MAX &&
                  run_queue_unknown == (std::uint64_t{1} << record_tag::value_bits) - 1,
              "they are what missing_number() says");

/// Compile-time checks of the table. Without them a wrong row would only show up as a damaged log.
namespace row_checks {

/// Whether `sound` is true for every row.
template <class Sound>
constexpr bool all(Sound&& sound) {
  for (const record_kind& row : record_kinds) {
    if (row.kind != event_kind::none && !sound(row)) return false;
  }
  return true;
}

static_assert(all([](const record_kind& row) {
                return is_of_batch(row)
                           ? row.role != log_role::side && row.prefix.size() > 7 &&
                                 row.prefix.substr(0, 6) == "SBatch" && row.prefix.back() == '_' &&
                                 row.beside.empty() && row.duration != written_duration::none
                           : row.prefix.empty();
              }),
              "lines of batches begin with SBatch..._, in the main or the worker log; all other "
              "lines begin with a name");
static_assert(all([](const record_kind& row) {
                return row.role != log_role::side || !row.beside.empty() ||
                       row.kind == event_kind::loader;
              }),
              "a kind whose lines stand beside says how these begin");
static_assert(all([](const record_kind& row) {
                const std::size_t name_bytes = row.beside_name().size();
                return row.beside.empty() ||
                       (row.beside.size() <= 16 &&
                        row.beside.substr(name_bytes) == (has_name(row) ? "," : ",,"));
              }),
              "a line beside begins with at most 16 bytes: its kind, a comma and, where it has no "
              "name, one more");
static_assert(all([](const record_kind& row) {
                for (const record_kind& other : record_kinds) {
                  if (!row.beside.empty() && row.kind != other.kind &&
                      row.beside_name() == other.beside_name()) {
                    return false;
                  }
                }
                return true;
              }),
              "lines beside of two kinds begin differently");
static_assert(all([](const record_kind& row) {
                for (const record_field& f : row.fields) {
                  if (f.quantity == record_quantity::none) continue;
                  const bool by_name = row.value == record_value::name_and_number;
                  const bool alone = row.value == record_value::number;
                  if (f.source == field_source::number_beside_name && !by_name) return false;
                  if (f.source == field_source::value && !alone) return false;
                  if (f.source == field_source::second_word &&
                      row.duration != written_duration::none) {
                    return false;
                  }
                  if ((f.column == line_column::prefix) != is_of_batch(row)) return false;
                  if (f.column == line_column::a && row.lasts()) return false;
                  if (row.field_in(f.column) != &f) return false;
                }
                return !is_of_batch(row) || row.field_in(line_column::prefix) != nullptr;
              }),
              "a record has each of its numbers where its line and its value say");
static_assert(all([](const record_kind& row) {
                for (const record_field& f : row.fields) {
                  const bool none = f.type == field_type::natural_or_none;
                  if (none && f.source == field_source::second_word) return false;
                  if (f.coding == field_coding::one_more && !none) return false;
                }
                return true;
              }),
              "only a part of the value can be missing: all bits of the second word may be set");

}  // namespace row_checks

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_RECORD_KINDS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Maximum size of one line: its name, its numbers including the bytes that put_number() writes
/// past their end, and the prefix of a side-log line.
inline constexpr std::size_t max_line_bytes = 16 + max_line_name_bytes + 1 + 75;

/// Whether `text` has the form of a line's beginning: a name as write_line_name() writes it, then a
/// comma.
inline bool is_line_start(std::string_view text) noexcept {
  if (text.size() < 2 || text.size() > max_line_name_bytes + 1) return false;
  if (text.front() != 'S' || text.back() != ',' || text.substr(0, 6) == "SBatch") return false;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"') return false;
    // The escape must end before the last byte, which is the comma.
    if (c == '%' && !(i + 3 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]))) {
      return false;
    }
  }
  return true;
}

/// Converts ticks to ns since the epoch during one drain. Construct it after the ring's head was
/// read: then every record to be converted ended in the newest segment or an earlier one.
class tick_converter {
 public:
  /// @param guard  held while `map` is read; null if no other thread uses the map.
  tick_converter(const clock_map& map, mutex* guard) noexcept : map_{map}, guard_{guard} {
    if (guard_ != nullptr) guard_->lock();
    newest_ = map_.current();
    if (guard_ != nullptr) guard_->unlock();
  }

  struct span {
    std::int64_t start_ns;
    std::int64_t duration_ns;
  };

  /// The segment for all ticks since its start.
  const clock_segment& newest() const noexcept { return newest_; }

  LOTUS_DETAIL_ALWAYS_INLINE span convert(std::uint64_t begin_ticks,
                                          std::uint64_t end_ticks) const noexcept {
    if (LOTUS_DETAIL_LIKELY(begin_ticks >= newest_.start_ticks)) {
      const std::int64_t start_ns = newest_.to_ns(begin_ticks);
      return {start_ns, difference(newest_.to_ns(end_ticks), start_ns)};
    }
    const clock_segment b = segment(begin_ticks);
    const clock_segment e = segment(end_ticks);
    const std::int64_t start_ns = b.to_ns(begin_ticks);
    return {start_ns, difference(difference(e.to_ns(end_ticks), e.jumped_ns),
                                 difference(start_ns, b.jumped_ns))};
  }

 private:
  /// Wraps instead of overflowing, because a damaged ring file may contain any value.
  static std::int64_t difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }

  LOTUS_DETAIL_COLD clock_segment segment(std::uint64_t ticks) const noexcept {
    if (ticks >= newest_.start_ticks) return newest_;
    if (guard_ != nullptr) guard_->lock();
    const clock_segment found = map_.at(ticks);
    if (guard_ != nullptr) guard_->unlock();
    return found;
  }

  const clock_map& map_;
  mutex* guard_;
  clock_segment newest_{};
};

/// The eight decimal digits of a number below 10^8 as characters, the first in the lowest byte.
/// Computes four digits, then two, then one per lane, all lanes in one multiplication: division by
/// 100 as (x * 10486) >> 20 is exact below 10^4, by 10 as (x * 103) >> 10 below 100 (a test checks
/// every lane).
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t eight_digits(std::uint32_t below_1e8) noexcept {
  const std::uint64_t fours =
      below_1e8 / 10'000 | (static_cast<std::uint64_t>(below_1e8 % 10'000) << 32);
  const std::uint64_t hundreds = ((fours * 10'486) >> 20) & 0x0000007F'0000007FU;
  const std::uint64_t twos = hundreds | ((fours - hundreds * 100) << 16);
  const std::uint64_t tens = ((twos * 103) >> 10) & 0x000F000F'000F000FU;
  return (tens | ((twos - tens * 10) << 8)) + 0x30303030'30303030U;
}

/// Number of decimal digits of a number below 10^9. 1233 / 4096 is just below log10(2).
LOTUS_DETAIL_ALWAYS_INLINE unsigned digit_count(std::uint32_t below_1e9) noexcept {
  constexpr std::uint32_t powers[] = {1,       10,        100,        1'000,       10'000,
                                      100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  const auto bits = static_cast<unsigned>(32 - __builtin_clz(below_1e9 | 1));
  const unsigned guess = (bits * 1233) >> 12;
  return guess + (below_1e9 >= powers[guess] ? 1 : 0);
}

/// Writes a number below 10^8 without leading zeros; returns the end. Touches 8 bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number_below_1e8(char* out, std::uint32_t value) noexcept {
  // Counted independently of the digits, so that the address of the next line does not depend on
  // them.
  const unsigned count = value == 0 ? 1 : digit_count(value);
  const std::uint64_t digits = eight_digits(value) >> (8 * (8 - count));
  std::memcpy(out, &digits, 8);
  return out + count;
}

/// Writes `value` in decimal; returns the end. Touches at most 24 bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number(char* out, std::uint64_t value) noexcept {
  constexpr std::uint64_t e8 = 100'000'000;
  std::uint64_t rest[2];
  int groups = 0;
  for (; LOTUS_DETAIL_UNLIKELY(value >= e8); value /= e8) {
    // A 64-bit number has at most two groups of eight digits after its first digits.
    // NOLINTNEXTLINE(clang-analyzer-security.ArrayBound)
    rest[groups++] = eight_digits(static_cast<std::uint32_t>(value % e8));
  }
  out = put_number_below_1e8(out, static_cast<std::uint32_t>(value));
  for (; LOTUS_DETAIL_UNLIKELY(groups > 0); out += 8) std::memcpy(out, &rest[--groups], 8);
  return out;
}

/// put_number() for rarely executed code: one copy that is not inlined.
LOTUS_DETAIL_COLD inline char* put_number_rarely(char* out, std::uint64_t value) noexcept {
  return put_number(out, value);
}

/// Copies a short text without a function call; any number of bytes is allowed.
LOTUS_DETAIL_ALWAYS_INLINE void copy_short(char* out, const char* text,
                                           std::size_t bytes) noexcept {
  if (LOTUS_DETAIL_LIKELY(bytes >= 8 && bytes <= 32)) {
    // Two moves that overlap in the middle.
    const std::size_t step = bytes >= 16 ? 16 : 8;
    if (step == 16) {
      std::memcpy(out, text, 16);
      std::memcpy(out + bytes - 16, text + bytes - 16, 16);
    } else {
      std::memcpy(out, text, 8);
      std::memcpy(out + bytes - 8, text + bytes - 8, 8);
    }
  } else {
    std::memcpy(out, text, bytes);
  }
}

/// Formats records as lines. Each drain uses its own object.
class line_formatter {
 public:
  explicit line_formatter(const tick_converter& clock) noexcept : clock_{clock} {}

  /// Writes one line; returns its end. `out` has room for max_line_bytes.
  /// @param name  the beginning of the line, comma included, if the record has a name; else empty.
  LOTUS_DETAIL_ALWAYS_INLINE char* format(const record& r, std::string_view name,
                                          char* out) noexcept {
    const record_kind& kind = kind_of(r.tag);
    tick_converter::span s = clock_.convert(r.begin_ticks, r.end_ticks);
    const std::string_view start = has_name(kind) ? name : kind.prefix;
    copy_short(out, start.data(), start.size());
    out += start.size();
    if (kind.value == record_value::number) {
      out = put_number(out, r.tag.value());
      *out++ = ',';
      s.duration_ns = batch_duration_ns(kind.duration, s.duration_ns);
    }
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = put_number(out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns));
    *out++ = '\n';
    return out;
  }

  /// Writes the record's side-log line, "<kind>,<name>,<time>,<a>,<b>", and returns its end. Call
  /// it only for kinds that have such a line. `out` and `name` as for format().
  char* format_beside(const record& r, std::string_view name, char* out) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const tick_converter::span s =
        clock_.convert(r.begin_ticks, kind.lasts() ? r.end_ticks : r.begin_ticks);
    copy_short(out, kind.beside.data(), kind.beside.size());
    out += kind.beside.size();
    if (!name.empty()) copy_short(out, name.data(), name.size());
    out += name.size();
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = kind.lasts() ? put_number_rarely(
                             out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns))
                       : put_column(out, r, kind.columns[0]);
    *out++ = ',';
    out = put_column(out, r, kind.columns[1]);
    *out++ = '\n';
    return out;
  }

 private:
  /// A wait of 1000 ns would read as an out-of-order marker, so a real one is written as 1001.
  static constexpr std::int64_t batch_duration_ns(written_duration duration,
                                                  std::int64_t measured_ns) noexcept {
    switch (duration) {
      case written_duration::measured:
        return measured_ns;
      case written_duration::measured_unlike_placeholder:
        return measured_ns == placeholder_ns ? placeholder_ns + 1 : measured_ns;
      case written_duration::placeholder:
      case written_duration::none:
        break;
    }
    return placeholder_ns;
  }

  static char* put_column(char* out, const record& r, const record_field& field) noexcept {
    if (field.quantity == record_quantity::none) {
      *out = '0';
      return out + 1;
    }
    std::uint64_t number = number_of(field, r);
    switch (field.type) {
      case field_type::natural_or_none:
        if (number == missing_number(field)) return out;
        break;
      case field_type::integer:
        if (static_cast<std::int64_t>(number) >= 0) break;
        *out++ = '-';
        number = 0 - number;
        break;
      case field_type::natural:
      case field_type::bits:
        break;
    }
    return put_number_rarely(out, number);
  }

  /// Caches the digits of the second, because consecutive records nearly always share it.
  LOTUS_DETAIL_ALWAYS_INLINE char* put_start(char* out, std::uint64_t ns) noexcept {
    std::uint64_t fraction = ns - second_start_ns_;
    if (LOTUS_DETAIL_UNLIKELY(fraction >= 1'000'000'000)) {
      second_start_ns_ = ns / 1'000'000'000 * 1'000'000'000;
      fraction = ns - second_start_ns_;
      second_bytes_ = static_cast<std::size_t>(
          put_number_rarely(second_, second_start_ns_ / 1'000'000'000) - second_);
      if (ns < 1'000'000'000) second_bytes_ = 0;
    }
    if (LOTUS_DETAIL_UNLIKELY(second_bytes_ == 0)) return put_number_rarely(out, ns);
    std::memcpy(out, second_,
                16);  // a constant size compiles to one move; later writes overwrite the excess
    out += second_bytes_;
    const auto f = static_cast<std::uint32_t>(fraction);
    *out = static_cast<char>('0' + f / 100'000'000);
    const std::uint64_t digits = eight_digits(f % 100'000'000);
    std::memcpy(out + 1, &digits, 8);
    return out + 9;
  }

  const tick_converter& clock_;
  std::uint64_t second_start_ns_ = ~std::uint64_t{0} / 2;
  std::size_t second_bytes_ = 0;
  char second_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_LINE_HPP

// Records the allocations of operations, as counted by liblotus_memory.so.
#ifndef LOTUS_HEAP_HEAP_ACCOUNT_HPP
#define LOTUS_HEAP_HEAP_ACCOUNT_HPP

#include <ctime>

// The interface between a session and liblotus_memory.so, a library loaded before the program's own
// libraries that counts the program's allocations.
#ifndef LOTUS_HEAP_HEAP_HOOK_HPP
#define LOTUS_HEAP_HEAP_HOOK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// One thread's use of the heap between two moments. Bytes are those that were requested.
struct heap_change {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::uint64_t freed_bytes;  ///< of any blocks, whichever thread allocated them
  std::uint64_t freed_calls;
  std::uint64_t retained_bytes;  ///< allocated, and not freed by this thread meanwhile
  std::uint64_t retained_blocks;
  std::uint64_t peak_bytes;  ///< maximum growth of its heap: allocated minus freed
};

/// The process's use of the heap since it began or was forked. A name is that of the innermost
/// operation at the allocation, or 0 outside any.
struct heap_sums {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  std::int64_t held_bytes;  ///< allocated minus freed by all threads, including before a fork
  std::uint64_t units;      ///< number of units that have begun
  std::uint32_t unit_name;  ///< what a unit is: see enter(); 0: there was none
};

/// The only symbol of that library besides the functions that it replaces. Thread safety: all;
/// enter() and leave() refer to the calling thread. Signal safety: none, like malloc(3). None of
/// the functions allocates.
struct heap_hook {
  std::uint32_t version;
  std::uint32_t bytes;  ///< size of this structure
  /// An operation begins. Allocations are grouped into generations by units: batches if there are
  /// any, else outermost operations.
  /// @param name      of the operation; allocations in it are attributed to it.
  /// @param is_batch  whether it builds a batch.
  void (*enter)(std::uint32_t name, bool is_batch) noexcept;
  /// The innermost operation of this name ends, and with it all that began in it and have not
  /// ended.
  /// @return 0: there is none; 1: it ended; 2: it ended and was a unit.
  int (*leave)(std::uint32_t name, heap_change& change) noexcept;
  /// Forgets the operations that are open on all threads.
  void (*forget)() noexcept;
  std::uint64_t (*units)() noexcept;  ///< number of units that have begun
  void (*sum)(heap_sums& sums) noexcept;
  /// Reports what is still held, whichever thread should free it: by name, and by the first unit of
  /// the generation in which it was allocated. Excludes allocations before a fork.
  void (*held)(void (*tell)(void* to, std::uint32_t name, std::uint64_t unit,
                            std::uint64_t bytes) noexcept,
               void* to) noexcept;
  /// Describes which allocations of this process it cannot see; an empty text if it knows of none.
  void (*blind_to)(char* text, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t heap_hook_version = 1;
inline constexpr char heap_hook_symbol[] = "lotus_heap_hook";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_HOOK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the counting library if the program was started with it. Looks it up only if LD_PRELOAD
/// is set, because the lookup may allocate. Do not call it while holding a lock.
LOTUS_DETAIL_PER_MODULE inline const heap_hook* find_heap_hook() noexcept {
  const char* const preloaded = secure_getenv("LD_PRELOAD");
  if (preloaded == nullptr || *preloaded == '\0') return nullptr;
  const auto* const hook = static_cast<const heap_hook*>(dlsym(RTLD_DEFAULT, heap_hook_symbol));
  if (hook == nullptr) return nullptr;
  if (hook->version != heap_hook_version || hook->bytes != sizeof(heap_hook)) {
    say("the preloaded liblotus_memory.so is of another version of lotus: memory is not counted");
    return nullptr;
  }
  return hook;
}

/// Records the counts. Thread safety: all; a recording begins under the session's control lock.
class heap_account {
 public:
  /// Call it before taking any lock.
  void find() noexcept { hook_.get_at_once(find_heap_hook, nullptr); }

  bool on() const noexcept { return hook() != nullptr; }

  /// A recording has begun: forgets operations that are open since the previous one. Records
  /// nothing itself, because the caller holds the session's lock; the first operation will.
  void begin_recording() noexcept {
    const heap_hook* const counts = hook();
    begun_ = counts != nullptr;
    if (!begun_) return;
    counts->forget();
    if (!blind_told_.exchange(true)) {
      char text[512];
      counts->blind_to(text, sizeof(text));
      if (text[0] != '\0') say("memory: %s", text);
    }
    heap_told_.store(false, std::memory_order_relaxed);
  }

  /// Does the same for a recording that began while the library was being looked up.
  void begin_where_missed() noexcept {
    if (!begun_) begin_recording();
  }

  /// Call it before the recording ends.
  void end_recording(std::uint32_t unit) const noexcept {
    if (const heap_hook* const counts = hook()) {
      tell_heap(*counts, unit);
      tell_held(*counts, unit);
    }
  }

  /// Returns the name to which an operation's allocations are attributed; building a batch and
  /// waiting for one count as operations too.
  /// @param intern  returns the id of a name.
  template <class Intern>
  std::uint32_t name(record_tag tag, Intern&& intern) noexcept {
    const record_kind& kind = kind_of(tag);
    if (has_name(kind)) return name_of(kind, tag);
    std::atomic<std::uint32_t>& known = kind_names_[static_cast<std::uint8_t>(kind.kind)];
    std::uint32_t id = known.load(std::memory_order_relaxed);
    if (id != 0 && id != unnamed_id) return id;
    id = intern(kind.task());
    known.store(id, std::memory_order_relaxed);
    return id;
  }

  void begin(std::uint32_t name, bool is_batch) noexcept {
    const heap_hook* const counts = hook();
    if (counts == nullptr) return;
    if (!heap_told_.load(std::memory_order_relaxed) && !heap_told_.exchange(true)) {
      tell_heap(*counts, name);
    }
    counts->enter(name, is_batch);
  }

  /// @param begin_ticks  of its record; 0 if there is no record.
  /// @param begun_as     the name with which it began.
  void end(std::uint64_t begin_ticks, std::uint32_t begun_as, std::uint32_t name) noexcept {
    const heap_hook* const counts = hook();
    heap_change change;
    const int counted = counts == nullptr ? 0 : counts->leave(begun_as, change);
    if (counted == 0 || begin_ticks == 0) return;
    tell(event_kind::allocated, begin_ticks, name, change.allocated_bytes, change.allocated_calls);
    tell(event_kind::freed, begin_ticks, name, change.freed_bytes, change.freed_calls);
    tell(event_kind::retained, begin_ticks, name, change.retained_bytes, change.retained_blocks);
    tell(event_kind::heap_peak, begin_ticks, name, change.peak_bytes, 0);
    if (counted == 2) end_unit(*counts, begun_as);
  }

  /// The child keeps its parent's clock but counts batches from 0.
  void become_child() noexcept { next_held_.store(first_held, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t first_held = 16;
  static constexpr std::int64_t between_heaps_ns = 1'000'000;

  const heap_hook* hook() const noexcept { return hook_.known(nullptr); }

  static std::uint32_t to_32_bits(std::uint64_t number) noexcept {
    return number < UINT32_MAX ? static_cast<std::uint32_t>(number) : UINT32_MAX;
  }

  static void tell(event_kind kind, std::uint64_t ticks, std::uint32_t name, std::uint64_t bytes,
                   std::uint64_t number) noexcept {
    if (bytes == 0 && number == 0) return;
    push(ticks, bytes, {kind, name, to_32_bits(number)});
  }

  static void tell_heap(const heap_hook& counts, std::uint32_t unit) noexcept {
    heap_sums sums;
    counts.sum(sums);
    const std::uint64_t ticks = now_ticks();
    const std::uint32_t name = sums.unit_name != 0 ? sums.unit_name : unit;
    // Also records a value of 0.
    push(ticks, sums.held_bytes < 0 ? 0 : static_cast<std::uint64_t>(sums.held_bytes),
         {event_kind::heap, name, to_32_bits(sums.units)});
  }

  LOTUS_DETAIL_COLD static void tell_held(const heap_hook& counts, std::uint32_t unit) noexcept {
    heap_sums sums;
    counts.sum(sums);
    std::uint64_t ticks = now_ticks();
    const std::uint32_t name = sums.unit_name != 0 ? sums.unit_name : unit;
    push(ticks, sums.allocated_bytes, {event_kind::heap_total, name, 0});
    push(ticks, sums.allocated_calls, {event_kind::heap_total, name, 1});
    counts.held(
        [](void* at, std::uint32_t of, std::uint64_t first_unit, std::uint64_t bytes) noexcept {
          tell(event_kind::held, *static_cast<std::uint64_t*>(at), of, bytes, first_unit);
        },
        &ticks);
  }

  /// Records the heap at most a thousand times a second. Records which operations hold it at
  /// increasing intervals, so that all of it stays less than the records of the operations.
  void end_unit(const heap_hook& counts, std::uint32_t unit) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    std::int64_t last_ns = heap_told_ns_.load(std::memory_order_relaxed);
    if (now_ns - last_ns >= between_heaps_ns &&
        heap_told_ns_.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed)) {
      tell_heap(counts, unit);
    }
    const std::uint64_t units = counts.units();
    std::uint64_t next = next_held_.load(std::memory_order_relaxed);
    if (units >= next &&
        next_held_.compare_exchange_strong(next, units + units / 4, std::memory_order_relaxed)) {
      tell_heap(counts, unit);
      tell_held(counts, unit);
    }
  }

  found_once<const heap_hook*> hook_;
  bool begun_ = false;  ///< guarded by the session's control lock
  std::atomic<std::uint32_t> kind_names_[record_kinds.size()]{};  ///< 0: not known yet
  std::atomic<bool> blind_told_{false};
  std::atomic<bool> heap_told_{false};
  std::atomic<std::int64_t> heap_told_ns_{0};
  std::atomic<std::uint64_t> next_held_{first_held};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_ACCOUNT_HPP

// The list of shared objects that record; each is informed whether recording is on.
#ifndef LOTUS_RECORD_SHARED_OBJECTS_HPP
#define LOTUS_RECORD_SHARED_OBJECTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all. Call it with signals blocked.
class module_list {
 public:
  /// Passes `m` what it must know, and its mode again at each later set_mode(); adds it if it is
  /// new.
  void tell(module_state& m, const services& table, bool hardware_clock, recording mode) noexcept {
    const locked hold{lock_};
    if (m.hub.load(std::memory_order_relaxed) == nullptr) {
      m.next = first_;
      first_ = &m;
    }
    m.hardware_clock.store(hardware_clock, std::memory_order_relaxed);
    m.hub.store(&table, std::memory_order_release);
    m.mode.store(mode, std::memory_order_release);
  }

  void remove(const module_state& m) noexcept {
    const locked hold{lock_};
    for (module_state** at = &first_; *at != nullptr; at = &(*at)->next) {
      if (*at == &m) {
        *at = m.next;
        return;
      }
    }
  }

  void set_mode(recording mode) noexcept {
    const locked hold{lock_};
    for (module_state* m = first_; m != nullptr; m = m->next) {
      m->mode.store(mode, std::memory_order_release);
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  mutex lock_;
  module_state* first_ = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_SHARED_OBJECTS_HPP

// Computes from step numbers which steps are recorded, and where.
#ifndef LOTUS_SESSION_STEP_RECORDING_HPP
#define LOTUS_SESSION_STEP_RECORDING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A range of steps that are recorded together; `behind` is the step after it, 0 if there is none.
struct step_window {
  std::uint64_t first = 0;
  std::uint64_t behind = 0;

  bool operator==(const step_window& other) const noexcept {
    return first == other.first && behind == other.behind;
  }
};

/// Returns the range that contains a step. @param steps  its `active` must not be 0.
inline step_window window_of(const schedule& steps, std::uint64_t step) noexcept {
  if (step < steps.skip_first) return {};
  const std::uint64_t left_out = std::uint64_t{steps.wait} + steps.warmup;
  const std::uint64_t cycle = left_out + steps.active;
  // As in PyTorch: counts cycles as if the first wait were already over.
  const std::uint64_t waited = steps.skip_first_wait != 0 ? steps.wait : 0;
  const std::uint64_t round = (step - steps.skip_first + waited) / cycle;
  if (steps.repeat != 0 && round >= steps.repeat) return {};
  const std::uint64_t first = steps.skip_first + round * cycle + left_out - waited;
  return step < first ? step_window{} : step_window{first, first + steps.active};
}

/// A program's position in its schedule. Thread safety: none.
class LOTUS_DETAIL_PER_MODULE step_recording {
 public:
  /// Starts with step 0; returns false, after reporting the reason, if that is impossible.
  bool start(const options& chosen, const schedule& steps) noexcept {
    running_ = false;
    if (steps.active == 0) {
      say("lotus::schedule: active is 0, so no step would be recorded");
      return false;
    }
    const int error = location_.parse(chosen.log_file);
    if (error != 0) {
      say("%s: %s", chosen.log_file.c_str(), std::strerror(error));
      return false;
    }
    chosen_ = chosen;
    // Already stored in location_; and since the session never ends, leak checkers would report its
    // heap memory.
    chosen_.log_file = {};
    steps_ = steps;
    step_ = 0;
    running_ = true;
    return true;
  }
  void stop() noexcept { running_ = false; }
  bool running() const noexcept { return running_; }
  void advance() noexcept { ++step_; }

  step_window window() const noexcept {
    return running_ ? window_of(steps_, step_) : step_window{};
  }
  bool active() const noexcept { return window().behind != 0; }

  /// Returns the options for recording the active steps: in a folder of their own,
  /// DIRECTORY/steps_FIRST_LAST.
  options of_active() const {
    step_notice notice;
    write_folder(notice.folder);
    options of = chosen_;
    of.log_file = notice.folder;
    return of;
  }

  /// Fills the notice that the active steps are over. @return whether there is a listener to call.
  bool fill(step_notice& notice) const noexcept {
    notice.listener = steps_.on_trace_ready;
    write_folder(notice.folder);
    *std::strrchr(notice.folder, '/') = '\0';
    return static_cast<bool>(steps_.on_trace_ready);
  }

 private:
  /// Writes the folder and the prefix of the logs in it.
  void write_folder(char (&to)[sizeof(step_notice::folder)]) const noexcept {
    const step_window window = this->window();
    std::snprintf(to, sizeof to, "%s/steps_%llu_%llu/%s", location_.directory,
                  static_cast<unsigned long long>(window.first),
                  static_cast<unsigned long long>(window.behind - 1), location_.prefix);
  }

  bool running_ = false;
  std::uint64_t step_ = 0;
  schedule steps_;
  options chosen_;
  log_location location_{};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_STEP_RECORDING_HPP

// Owns all parts of a recording and defines the order in which they begin and end.
#ifndef LOTUS_STORE_RECORDER_HPP
#define LOTUS_STORE_RECORDER_HPP

// Gives threads' aggregates room in the ring file, and writes them when a recording ends.
#ifndef LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP
#define LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP

// Adds up the aggregates of one thread from the blocks that contain them.
#ifndef LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The values of one aggregate at one moment.
struct whole_aggregate {
  std::uint64_t key;
  std::uint64_t count;
  std::uint64_t total_ticks;
  std::uint64_t self_ticks;
  std::uint64_t counts[octaves * octave_buckets];

  std::uint32_t name() const noexcept { return static_cast<std::uint32_t>(key); }
  std::uint32_t loader() const noexcept { return static_cast<std::uint32_t>(key >> 32); }
};

/// State of the blocks to read.
enum class aggregate_state : std::uint8_t {
  whole,   ///< unchanged copies of one moment; or in place, while the thread at most ends a call
  moving,  ///< copied while the thread continued to add calls
};

/// Reads aggregates while their thread may be adding to them, and checks all values. For `moving`
/// copies the counts are those of the buckets, and the sums are those of some moment during the
/// copying.
class LOTUS_DETAIL_PER_MODULE aggregate_chain {
 public:
  explicit aggregate_chain(aggregate_state state = aggregate_state::whole) noexcept
      : moving_{state == aggregate_state::moving} {}

  /// Adds one block of the thread, in place or copied whole; it is not owned. Returns false if
  /// memory is missing.
  bool add(const aggregates_block& block) noexcept {
    auto* const place = static_cast<const aggregates_block**>(blocks_.add(sizeof(void*)));
    if (place == nullptr) return false;
    *place = &block;
    if (block.threads.load(std::memory_order_relaxed) == 1) {
      tid_ = block.tid.load(std::memory_order_relaxed);
    }
    if (number_of_last(block) > 0) first_ = &block;
    return true;
  }

  /// Returns the thread's id, or 0 if several threads used the blocks one after another.
  std::uint32_t tid() const noexcept { return tid_; }

  /// Calls `each(const whole_aggregate&)` for every aggregate that has a call.
  /// @param to  buffer for one aggregate.
  /// @return how many were left out because they are inconsistent.
  std::uint64_t for_each(whole_aggregate& to,
                         function_ref<void(const whole_aggregate&)> each) noexcept {
    std::uint64_t doubted = 0;
    std::uint32_t seen = 0;
    take_last();
    for_each_chunk([&](const chunk_header& head, const char* at) {
      if (head.kind != chunk_kind::aggregate || ++seen > most_aggregates + 1) return;
      if (!read(*reinterpret_cast<const stored_aggregate*>(at), to)) {
        ++doubted;
      } else if (to.count > 0) {
        each(static_cast<const whole_aggregate&>(to));
      }
    });
    if (last_number_ == 0) return doubted;
    // The last call is the first one of its name.
    std::memset(static_cast<void*>(&to), 0, sizeof(to));
    to.key = last_.key;
    add_last(to);
    each(static_cast<const whole_aggregate&>(to));
    return doubted;
  }

 private:
  /// Calls `each(chunk_header, at)` for every complete chunk.
  void for_each_chunk(function_ref<void(const chunk_header&, const char* at)> each) const noexcept {
    for (std::size_t i = 0; i < blocks_.bytes() / sizeof(void*); ++i) {
      const aggregates_block& block =
          *reinterpret_cast<const aggregates_block* const*>(blocks_.data())[i];
      const std::uint64_t room = block.header.bytes - sizeof(aggregates_block);
      const std::uint64_t used = block.used_bytes.load(std::memory_order_acquire);
      const std::uint64_t bytes = used < room ? used : room;
      for (std::uint64_t at = 0; bytes - at >= sizeof(chunk_header);) {
        chunk_header head{};
        std::memcpy(&head, block.chunks() + at, sizeof(head));
        const std::size_t length = head.kind == chunk_kind::aggregate ? sizeof(stored_aggregate)
                                   : head.kind == chunk_kind::octave  ? sizeof(stored_octave)
                                                                      : 0;
        if (length == 0 || length > bytes - at) break;
        each(head, block.chunks() + at);
        at += length;
      }
    }
  }

  static std::uint64_t number_of_last(const aggregates_block& block) noexcept {
    const std::uint64_t a = block.last[0].number.load(std::memory_order_acquire);
    const std::uint64_t b = block.last[1].number.load(std::memory_order_acquire);
    return a > b ? a : b;
  }

  void take_last() noexcept {
    last_number_ = first_ == nullptr ? 0 : number_of_last(*first_);
    if (last_number_ == 0) return;
    const last_call& last = first_->last[last_number_ % 2];
    last_ = {last.key.load(std::memory_order_relaxed), last.ticks.load(std::memory_order_relaxed),
             last.self_ticks.load(std::memory_order_relaxed)};
    if (is_negative(last_) || last_.self_ticks > last_.ticks) last_.ticks = last_.self_ticks = 0;
  }

  void add_last(whole_aggregate& to) noexcept {
    ++to.count;
    to.total_ticks += last_.ticks;
    to.self_ticks += last_.self_ticks;
    ++to.counts[bucket_of(last_.ticks)];
    last_number_ = 0;
  }

  /// Reads an aggregate; retries if the thread changes it meanwhile.
  bool read(const stored_aggregate& from, whole_aggregate& to) noexcept {
    // A copy does not change.
    const int most_attempts = moving_ ? 1 : 100;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      to.key = from.key;
      to.count = from.count.load(std::memory_order_acquire);
      // These loads must come before the count is checked again.
      const aggregate_sums& sums = from.sums[to.count % 2];
      to.total_ticks = sums.total_ticks.load(std::memory_order_acquire);
      to.self_ticks = sums.self_ticks.load(std::memory_order_acquire);
      const std::uint64_t in_bucket = sums.in_bucket.load(std::memory_order_acquire);
      const std::uint64_t call = sums.call.load(std::memory_order_acquire);
      const std::uint64_t bucket = in_bucket % (std::uint64_t{1} << bucket_bits);
      if (bucket >= std::uint64_t{octaves} * octave_buckets || !read_counts(from.header.number, to))
        return false;
      if (to.count > 0) to.counts[bucket] = in_bucket >> bucket_bits;
      if (from.count.load(std::memory_order_relaxed) != to.count || !is_sum(to)) continue;
      if (last_number_ > 0 && last_.key == to.key) {
        if (call < last_number_) add_last(to);
        last_number_ = 0;
      }
      return true;
    }
    return moving_ && count_in_buckets(to);
  }

  /// For a copy during which calls were added: takes the count from the buckets.
  bool count_in_buckets(whole_aggregate& to) noexcept {
    to.count = 0;
    for (const std::uint64_t n : to.counts) {
      if (__builtin_add_overflow(to.count, n, &to.count)) return false;
    }
    if (to.self_ticks > to.total_ticks) to.self_ticks = to.total_ticks;
    if (last_.key == to.key) last_number_ = 0;
    return true;
  }

  bool read_counts(std::uint32_t number, whole_aggregate& to) const noexcept {
    std::memset(to.counts, 0, sizeof(to.counts));
    bool sound = true;
    for_each_chunk([&](const chunk_header& head, const char* at) {
      if (head.kind != chunk_kind::octave || head.number != number) return;
      const auto& octave = *reinterpret_cast<const stored_octave*>(at);
      if (octave.octave >= octaves) {
        sound = false;
        return;
      }
      for (std::uint32_t b = 0; b < octave_buckets; ++b) {
        to.counts[octave.octave * octave_buckets + b] =
            octave.counts[b].load(std::memory_order_acquire);
      }
    });
    return sound;
  }

  static bool is_sum(const whole_aggregate& of) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : of.counts) {
      if (__builtin_add_overflow(sum, n, &sum)) return false;
    }
    return sum == of.count && of.self_ticks <= of.total_ticks;
  }

  bool moving_;
  growing_memory blocks_;  ///< pointers to blocks
  const aggregates_block* first_ = nullptr;
  std::uint32_t tid_ = 0;
  aggregate_call last_{};
  std::uint64_t last_number_ = 0;  ///< 0: already added, or there is none
};

using each_block = function_ref<void(aggregates_block&)>;
using each_chain = function_ref<void(aggregate_chain&)>;

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP

// Copies of aggregate blocks in our own memory.
#ifndef LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP
#define LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies of the blocks of all threads of a process. Add all of them, then call finish(). Thread
/// safety: none.
class LOTUS_DETAIL_PER_MODULE aggregate_copies {
 public:
  /// Returns zeroed room for a block of this size, or null if memory is missing; invalidates what
  /// it returned before.
  aggregates_block* add(std::size_t bytes) noexcept {
    void* const block = blocks_.add(bytes);
    auto* const place = static_cast<block_place*>(places_.add(sizeof(block_place)));
    if (block == nullptr || place == nullptr) {
      failed_ = true;
      return nullptr;
    }
    *place = {0, blocks_.bytes() - bytes};
    return static_cast<aggregates_block*>(block);
  }

  /// Copies all blocks of a thread of this process as they are at one moment. The thread may be
  /// adding one call, and must begin no other before this returns.
  /// @param for_each_block  calls its argument for every block; it is called repeatedly.
  void add_whole(function_ref<void(each_block)> for_each_block) noexcept {
    const std::size_t first = count();
    for_each_block([this](const aggregates_block& block) { add(used_bytes(block)); });
    if (failed_) return;
    // If nothing changed between copying and comparing, the copy shows one moment.
    constexpr int most_attempts = 100;
    bool same = false;
    for (int attempt = 0; !same && attempt < most_attempts; ++attempt) {
      std::size_t i = first;
      for_each_block(
          [&](const aggregates_block& block) { copy(block, at(i++), used_bytes(block)); });
      same = true;
      i = first;
      for_each_block([&](const aggregates_block& block) {
        same = is_still(block, at(i++), used_bytes(block)) && same;
      });
    }
    std::size_t i = first;
    for_each_block(
        [&](const aggregates_block& block) { at(i++).header.bytes = used_bytes(block); });
  }

  /// Call it when all blocks have been added.
  void finish() noexcept {
    for (std::size_t i = 0; i < count(); ++i) places()[i].chain = at(i).chain;
    // Shellsort: std::sort would be instantiated in every file that uses the library.
    for (std::size_t step = count() / 2; step > 0; step /= 2) {
      for (std::size_t i = step; i < count(); ++i) {
        for (std::size_t k = i; k >= step && places()[k] < places()[k - step]; k -= step) {
          std::swap(places()[k], places()[k - step]);
        }
      }
    }
  }

  /// Whether memory was missing, so that the copies must not be used.
  bool failed() const noexcept { return failed_; }
  void fail() noexcept { failed_ = true; }

  /// Calls `each(aggregate_chain&)` for every thread.
  void for_each_chain(aggregate_state state, each_chain each) const noexcept {
    for (std::size_t i = 0; i < count();) {
      aggregate_chain chain{state};
      for (const std::uint32_t thread = places()[i].chain;
           i < count() && places()[i].chain == thread; ++i) {
        chain.add(at(i));
      }
      each(chain);
    }
  }

 private:
  struct block_place {
    std::uint32_t chain;
    std::size_t in_blocks;

    bool operator<(const block_place& other) const noexcept {
      return chain != other.chain ? chain < other.chain : in_blocks < other.in_blocks;
    }
  };

  static std::size_t used_bytes(const aggregates_block& block) noexcept {
    return sizeof(block) +
           static_cast<std::size_t>(block.used_bytes.load(std::memory_order_acquire));
  }

  // Copies word by word, because another thread may be writing.
  static void copy(const aggregates_block& from, aggregates_block& to, std::size_t bytes) noexcept {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(&from);
    auto* const out = reinterpret_cast<std::uint64_t*>(&to);
    for (std::size_t i = 0; i < bytes / sizeof(*words); ++i) {
      out[i] = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
    }
  }
  static bool is_still(const aggregates_block& from, const aggregates_block& copied,
                       std::size_t bytes) noexcept {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(&from);
    const auto* const before = reinterpret_cast<const std::uint64_t*>(&copied);
    for (std::size_t i = 0; i < bytes / sizeof(*words); ++i) {
      if (__atomic_load_n(words + i, __ATOMIC_ACQUIRE) != before[i]) return false;
    }
    return true;
  }

  std::size_t count() const noexcept { return places_.bytes() / sizeof(block_place); }
  block_place* places() const noexcept {
    return reinterpret_cast<block_place*>(const_cast<char*>(places_.data()));
  }
  aggregates_block& at(std::size_t i) const noexcept {
    return *reinterpret_cast<aggregates_block*>(const_cast<char*>(blocks_.data()) +
                                                places()[i].in_blocks);
  }

  growing_memory blocks_;  ///< blocks, one after another
  growing_memory places_;  ///< elements of type block_place
  bool failed_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP

// Provides a thread's aggregates with memory when they need it.
#ifndef LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP
#define LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns another block for the thread, or null if there is no memory.
using new_aggregates_block = function_ref<aggregates_block*()>;

/// Blocks of one thread and the index of what they contain, in private memory directly from the
/// kernel. Thread safety: none; guarded by the producer's guard, and only the thread itself adds to
/// it.
struct aggregate_memory {
  static constexpr std::size_t page_bytes = std::size_t{16} << 10;
  static constexpr std::size_t most_blocks = std::size_t{1} << 14;

  struct page {
    page* before;
    std::size_t bytes;
    std::size_t used;
  };
  struct place {
    aggregates_block* block;
    place* before;
  };

  std::uint32_t chain = 0;
  std::uint32_t aggregates = 0;  ///< number of aggregates
  std::size_t blocks = 0;
  bool retired = false;  ///< of a recording that has ended, or of a forked child's parent
  aggregates_block* first = nullptr;
  place* last_block = nullptr;
  std::size_t left = 0;  ///< free bytes in the last block
  page* last_page = nullptr;
  local_aggregate** table = nullptr;
  std::size_t places = 0;  ///< size of the table, a power of two

  /// Returns null if there is no memory.
  LOTUS_DETAIL_COLD static aggregate_memory* make(std::uint32_t chain) noexcept {
    auto* const first = static_cast<page*>(map_memory(page_bytes));
    if (first == nullptr) return nullptr;
    *first = {nullptr, page_bytes, sizeof(page) + sizeof(aggregate_memory)};
    auto* const made = new (first + 1) aggregate_memory;
    made->chain = chain;
    made->last_page = first;
    return made;
  }

  /// Releases all memory.
  /// @param in_use  the thread was interrupted while adding a call and will continue with it:
  /// replaces the blocks by private memory and releases nothing.
  void give_back(bool in_use) const noexcept {
    for (place* p = last_block; p != nullptr; p = p->before) {
      if (in_use) {
        static_cast<void>(mmap(p->block, p->block->header.bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
      } else {
        munmap(p->block, p->block->header.bytes);
      }
    }
    if (in_use) return;
    // This object is in the first page, which is released last.
    for (page* p = last_page; p != nullptr;) {
      page* const before = p->before;
      munmap(p, p->bytes);
      p = before;
    }
  }

  /// Calls `each(aggregates_block&)` for every block, beginning with the last one.
  void for_each_block(function_ref<void(aggregates_block&)> each) const noexcept {
    for (place* p = last_block; p != nullptr; p = p->before) each(*p->block);
  }

  /// Adds a call after making room for it and for the previous one, if needed. Returns false if
  /// there is no memory.
  /// @param new_block  aggregates_block*(): returns another block, or null.
  bool take(thread_aggregates& a, aggregate_call call, new_aggregates_block new_block) noexcept {
    if (first == nullptr && take_chunk(sizeof(stored_aggregate), new_block) == nullptr)
      return false;
    last_call& last = first->last[a.calls % 2];
    if (a.calls > 0) {
      aggregate_call before{0, last.ticks.load(std::memory_order_relaxed), 0};
      if (is_negative(before)) {
        last.self_ticks.store(0, std::memory_order_relaxed);
        last.ticks.store(0, std::memory_order_relaxed);
        before.ticks = 0;
      }
      if (make_room(last.key.load(std::memory_order_relaxed), before.ticks, new_block) == nullptr) {
        return false;
      }
    }
    if (is_negative(call)) call.ticks = call.self_ticks = 0;
    const local_aggregate* const to = make_room(call.key, call.ticks, new_block);
    if (to == nullptr) return false;
    a.table = table;
    a.mask = places - 1;
    if (a.calls > 0 && !a.add_last(*first)) return false;
    a.told_name = static_cast<std::uint32_t>(to->key);
    a.untold_ticks += call.self_ticks;
    a.last_to = to;
    // `to` is the shared aggregate if this name has none of its own.
    first->append({to->key, call.ticks, call.self_ticks}, ++a.calls);
    return true;
  }

 private:
  /// Makes room for calls with this key and duration. Returns their aggregate, or null without
  /// memory.
  LOTUS_DETAIL_COLD local_aggregate* make_room(std::uint64_t key, std::uint64_t ticks,
                                               new_aggregates_block new_block) noexcept {
    const std::uint32_t octave = bucket_of(ticks) >> octave_bits;
    local_aggregate* const of = find_or_add(key, new_block);
    if (of == nullptr) return nullptr;
    std::atomic<std::uint64_t>*& counts = of->octave_counts[octave];
    if (counts != nullptr) return of;
    auto* const chunk = static_cast<stored_octave*>(take_chunk(sizeof(stored_octave), new_block));
    if (chunk == nullptr) return nullptr;
    chunk->octave = octave;
    finish_chunk({chunk_kind::octave, of->stored->header.number}, chunk->header,
                 sizeof(stored_octave));
    counts = chunk->counts;
    return of;
  }

  void* take(std::size_t bytes) noexcept {
    if (last_page->bytes - last_page->used < bytes) {
      const std::size_t room =
          bytes + sizeof(page) > page_bytes ? bytes + sizeof(page) : page_bytes;
      auto* const more = static_cast<page*>(map_memory(room));
      if (more == nullptr) return nullptr;
      *more = {last_page, room, sizeof(page)};
      last_page = more;
    }
    void* const taken = reinterpret_cast<char*>(last_page) + last_page->used;
    last_page->used += bytes;
    return taken;
  }

  void* take_chunk(std::size_t bytes, new_aggregates_block new_block) noexcept {
    if (left < bytes) {
      if (blocks == most_blocks) return nullptr;
      auto* const more = static_cast<place*>(take(sizeof(place)));
      aggregates_block* const block = more == nullptr ? nullptr : new_block();
      if (block == nullptr) return nullptr;
      *more = {block, last_block};
      last_block = more;
      if (first == nullptr) first = block;
      left = block->header.bytes - sizeof(aggregates_block);
      ++blocks;
    }
    return last_block->block->chunks() +
           last_block->block->used_bytes.load(std::memory_order_relaxed);
  }

  /// Counts a chunk in only when it is complete.
  void finish_chunk(const chunk_header& is, chunk_header& head, std::size_t bytes) noexcept {
    head = is;
    last_block->block->used_bytes.fetch_add(bytes, std::memory_order_release);
    left -= bytes;
  }

  local_aggregate* find_or_add(std::uint64_t key, new_aggregates_block new_block) noexcept {
    if (table == nullptr && !grow_table(64)) return nullptr;
    if (local_aggregate* const found = *place_of(key)) return found;
    if (aggregates >= most_aggregates) {
      key = unnamed_id;
      if (local_aggregate* const found = *place_of(key)) return found;
    }
    if (2 * std::size_t{aggregates + 1} > places && !grow_table(2 * places)) return nullptr;
    auto* const of = static_cast<local_aggregate*>(take(sizeof(local_aggregate)));
    if (of == nullptr) return nullptr;
    auto* const chunk =
        static_cast<stored_aggregate*>(take_chunk(sizeof(stored_aggregate), new_block));
    if (chunk == nullptr) return nullptr;
    chunk->key = key;
    finish_chunk({chunk_kind::aggregate, ++aggregates}, chunk->header, sizeof(stored_aggregate));
    of->key = key;
    of->stored = chunk;
    *place_of(key) = of;
    return of;
  }

  local_aggregate** place_of(std::uint64_t key) const noexcept {
    std::size_t i = thread_aggregates::home_of(key, places - 1);
    while (table[i] != nullptr && table[i]->key != key) i = (i + 1) & (places - 1);
    return &table[i];
  }

  bool grow_table(std::size_t to) noexcept {
    auto** const grown = static_cast<local_aggregate**>(take(to * sizeof(void*)));
    if (grown == nullptr) return false;
    local_aggregate** const old = table;
    const std::size_t old_places = places;
    table = grown;
    places = to;
    for (std::size_t i = 0; i < old_places; ++i) {
      if (old[i] != nullptr) *place_of(old[i]->key) = old[i];
    }
    return true;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP

// Aggregates as text: sections of the hidden file next to the logs of a process.
#ifndef LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP
#define LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP

// The folder of each named loader's logs, inside the run's directory.
#ifndef LOTUS_FOLDER_LOADER_FOLDER_HPP
#define LOTUS_FOLDER_LOADER_FOLDER_HPP

// Functions that open a run's files. All files are opened through them, because everyone who can
// write to the run's directory may have put a link, a pipe or anything else there.
#ifndef LOTUS_FOLDER_SAFE_OPEN_HPP
#define LOTUS_FOLDER_SAFE_OPEN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

// Reasons to refuse a file, numbered far above all errno values.
inline constexpr int not_regular = 10'001;
inline constexpr int has_other_names = 10'002;
inline constexpr int of_another_user = 10'003;
inline constexpr int not_a_folder = 10'004;

/// Whether the file itself was refused, as opposed to a failure of the disk.
inline bool is_refusal(int error) noexcept {
  return error == ELOOP || error >= not_regular;
}

inline const char* file_error_text(int error) noexcept {
  switch (error) {
    case ELOOP:
      return "is a symbolic link";
    case not_regular:
      return "is no regular file";
    case has_other_names:
      return "is a hard link to a file that has other names";
    case of_another_user:
      return "belongs to another user";
    case not_a_folder:
      return "is no folder";
    default:
      return std::strerror(error);
  }
}

/// Opens the regular file `name` in `directory` (borrowed). Follows no symbolic link and does not
/// wait for the other end of a pipe. Returns a descriptor, or minus errno or one of the reasons
/// above.
inline int open_regular(int directory, const char* name, int flags, struct stat& status,
                        mode_t mode = 0) noexcept {
  const int fd =
      open_out_of_the_way(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0) return errno == ENXIO ? -not_regular : -errno;  // a pipe without a reader
  int error = fstat(fd, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = not_regular;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/// Which users' files this process may change in a directory.
class file_owners {
 public:
  /// The caller's files; for root also those of the directory's owner.
  static file_owners of_caller(int directory) noexcept {
    file_owners owners;
    owners.caller_ = owners.other_ = geteuid();
    struct stat status {};
    if (owners.caller_ == 0 && fstat(directory, &status) == 0) owners.other_ = status.st_uid;
    return owners;
  }
  static file_owners only(uid_t owner) noexcept {
    file_owners owners;
    owners.caller_ = owners.other_ = owner;
    return owners;
  }

  bool allow(uid_t owner) const noexcept { return owner == caller_ || owner == other_; }

  /// Treats the owner that the file system gives to new files as the caller, because a network file
  /// system may map all users to one, or root to nobody. Finds out by creating a file.
  void ask_file_system(int directory) noexcept {
    char name[96];
    std::snprintf(name, sizeof(name), "%s%u_%llx_owner", unfinished_ring_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    struct stat status {};
    const int fd = open_regular(directory, name, O_WRONLY | O_CREAT | O_EXCL, status, 0600);
    if (fd < 0) return;
    caller_ = status.st_uid;
    unlinkat(directory, name, 0);
    close(fd);
  }

 private:
  uid_t caller_ = 0;
  uid_t other_ = 0;
};

/// Opens a file to change it. Refuses files with other hard links and files of other users.
inline int open_own(int directory, const char* name, int flags, const file_owners& owners,
                    struct stat& status) noexcept {
  const int fd = open_regular(directory, name, flags, status);
  if (fd < 0) return fd;
  const int error = status.st_nlink > 1            ? has_other_names
                    : !owners.allow(status.st_uid) ? of_another_user
                                                   : 0;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/// Whether open_own() would refuse this file because of its owner.
inline bool belongs_to_another(int directory, const char* name,
                               const file_owners& owners) noexcept {
  struct stat status {};
  return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         !owners.allow(status.st_uid);
}

/// Opens a file to append to it; creates it if it does not exist.
/// @param made  set to whether it was created.
LOTUS_DETAIL_COLD inline int open_to_append(int directory, const char* name,
                                            const file_owners& owners, mode_t mode,
                                            struct stat& status, bool& made) noexcept {
  int fd = -EEXIST;
  for (int attempt = 0; fd == -EEXIST && attempt < 3; ++attempt) {
    made = false;
    fd = open_own(directory, name, O_WRONLY | O_APPEND, owners, status);
    if (fd != -ENOENT) break;
    made = true;
    fd = open_regular(directory, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, status, mode);
  }
  return fd;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_SAFE_OPEN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Where a process writes its logs, and how it creates them.
struct log_folder {
  int directory;  ///< the run's directory; a borrowed descriptor, or -errno if it cannot be opened
  const char* prefix;
  file_owners owners;
  mode_t mode;       ///< of new logs, before the umask applies
  const char* info;  ///< name of the information file of the process that the logs belong to
  name_lookup names;
  bool compact;  ///< each thread has one log, which consists of blocks
  /// New files get the owner, group and mode of this file; null: they keep what the system gives
  /// them.
  const struct stat* like = nullptr;

  /// Gives a new file to the owner and group of `like`, which must not be null.
  /// @param status  of `fd`, which has just been created.
  void give_away(int fd, const struct stat& status, mode_t new_mode) const noexcept {
    const bool other = like->st_uid != status.st_uid || like->st_gid != status.st_gid;
    // Ignores failures: only root may give a file away.
    if (other && fchown(fd, like->st_uid, like->st_gid) != 0) errno = 0;
    if (fchmod(fd, new_mode) != 0) errno = 0;
  }
};

inline constexpr std::size_t max_folder_name_bytes = 200;

/// Writes the name of a loader's folder to `out`, which has max_folder_name_bytes + 1 bytes. The
/// name is the loader's line start without the S and the comma, truncated if too long; `/` and a
/// leading `.` are escaped so that it cannot point outside the run's directory.
inline void put_loader_folder_name(char* out, std::string_view line_start) noexcept {
  char* const begin = out;
  const std::string_view name = line_start.substr(1, line_start.size() - 2);
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t bytes = name[i] == '%' ? 3 : 1;
    const bool escaped = name[i] == '/' || (name[i] == '.' && i == 0);
    const std::string_view text = name[i] == '/' ? "%2F" : escaped ? "%2E" : name.substr(i, bytes);
    if (static_cast<std::size_t>(out - begin) + text.size() > max_folder_name_bytes) break;
    for (const char c : text) *out++ = c;
    i += bytes;
  }
  *out = '\0';
}

/// Opens the folders of loaders, creates missing ones, and closes them.
class loader_folders {
 public:
  explicit loader_folders(const log_folder& run) noexcept : run_{run} {}
  loader_folders(const loader_folders&) = delete;
  loader_folders& operator=(const loader_folders&) = delete;
  ~loader_folders() { close_last(); }

  /// Returns a descriptor, owned by this object, or a negative error that file_error_text() knows.
  /// A loader's descriptor stays open until another loader is requested.
  int of(std::uint32_t loader) noexcept {
    if (loader == 0 || run_.directory < 0) return run_.directory;
    if (fd_ < 0 || loader != opened_) {
      close_last();
      fd_ = open_folder(loader);
      opened_ = loader;
    }
    return fd_;
  }

  /// Name of the folder that of() last opened or failed to open.
  const char* name() const noexcept { return name_; }

 private:
  void close_last() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  LOTUS_DETAIL_COLD int open_folder(std::uint32_t loader) noexcept {
    put_loader_folder_name(name_, run_.names(loader));
    // Everyone who may read the folder's files may also search the folder.
    const auto mode_of = [](mode_t files) { return files | (files & 0444U) >> 2U; };
    const bool made = mkdirat(run_.directory, name_, mode_of(run_.mode)) == 0;
    if (!made && errno != EEXIST) return -errno;
    const int fd = open_out_of_the_way(run_.directory, name_,
                                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOTDIR ? -what_is_there() : -errno;
    struct stat status {};
    int error = fstat(fd, &status) != 0 ? errno : 0;
    if (error == 0 && !run_.owners.allow(status.st_uid) && !made) error = of_another_user;
    if (error != 0) {
      close(fd);
      return -error;
    }
    if (made && run_.like != nullptr) {
      run_.give_away(fd, status, mode_of(run_.like->st_mode & 0666U));
    }
    return fd;
  }

  /// Returns the error for what exists under the folder's name but is not a folder.
  int what_is_there() const noexcept {
    struct stat status {};
    const bool link = fstatat(run_.directory, name_, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISLNK(status.st_mode);
    return link ? ELOOP : not_a_folder;
  }

  const log_folder& run_;
  char name_[max_folder_name_bytes + 1] = {};
  std::uint32_t opened_ = 0;
  int fd_ = -1;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOADER_FOLDER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns ns per tick, times 2^32, averaged over the whole map. Clock steps do not affect it.
inline std::uint64_t mean_rate(const clock_map& map) noexcept {
  constexpr std::uint64_t least_ns = 50'000'000;  // the two readings have an error of some ns
  __extension__ using wide = unsigned __int128;
  const clock_segment& first = map.at(0);
  const clock_segment& last = map.current();
  const std::uint64_t ticks = last.start_ticks - first.start_ticks;
  const std::uint64_t ns =
      (static_cast<std::uint64_t>(last.start_ns) - static_cast<std::uint64_t>(last.jumped_ns)) -
      (static_cast<std::uint64_t>(first.start_ns) - static_cast<std::uint64_t>(first.jumped_ns));
  // Values from a file may be anything.
  const std::uint64_t latest = last.rate > 0 ? last.rate : 1;
  if (ticks == 0 || ns < least_ns || ns > INT64_MAX) return latest;
  const wide rate = (wide{ns} << 32) / ticks;
  const bool near = rate > latest / 2 && rate / 2 < latest && rate <= UINT64_MAX;
  return near ? static_cast<std::uint64_t>(rate) : latest;
}

/// Identifies a section. If several sections have the same name, the last one counts.
struct section_name {
  std::uint64_t begun_ns;  ///< begin of the recording
  std::uint64_t late;      ///< 0, or the number of a call that ended after the recording did
};

/// One section, for one loader.
class aggregate_text {
 public:
  /// @param rate  ns per tick, times 2^32.
  aggregate_text(const section_name& name, std::uint64_t rate) noexcept
      : name_{name}, rate_{rate} {}

  /// Adds a line.
  /// @param line_start  "S<name>,".
  /// @param tid         0 if several threads share the aggregate.
  void add(std::string_view line_start, std::uint32_t tid, const whole_aggregate& of) noexcept {
    if (lines_ == 0) put_bound("\nbegin,", rate_);
    put(line_start);
    // In a damaged file a total may have overflowed.
    const std::uint64_t self_ticks =
        of.self_ticks < of.total_ticks ? of.self_ticks : of.total_ticks;
    const std::uint64_t fields[] = {tid, of.count, ns(of.total_ticks), ns(self_ticks)};
    for (const std::uint64_t field : fields) put_and(field, ',');
    std::uint64_t left = of.count;
    for (std::uint32_t b = 0; left > 0 && b < octaves * octave_buckets; ++b) {
      if (of.counts[b] == 0) continue;
      left -= of.counts[b];
      put_and(b, ':');
      put_and(of.counts[b], left > 0 ? ' ' : '\n');
    }
    ++lines_;
  }

  /// Returns the whole section; empty if no line was added or memory was missing.
  std::string_view finish() noexcept {
    if (lines_ == 0) return {};
    put_bound("end,", lines_);
    return failed_ ? std::string_view{} : std::string_view{text_.data(), text_.bytes()};
  }
  bool failed() const noexcept { return failed_; }

 private:
  std::uint64_t ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = unsigned __int128;
    const wide exact = (wide{ticks} * rate_) >> 32;
    return exact < INT64_MAX ? static_cast<std::uint64_t>(exact) : INT64_MAX;
  }

  void put(std::string_view text) noexcept {
    void* const to = text_.add(text.size());
    if (to == nullptr) {
      failed_ = true;
    } else {
      std::memcpy(to, text.data(), text.size());
    }
  }
  LOTUS_DETAIL_COLD void put_and(std::uint64_t number, char behind) noexcept {
    char digits[32];
    char* const end = put_number_rarely(digits, number);
    *end = behind;
    put({digits, static_cast<std::size_t>(end + 1 - digits)});
  }
  void put_bound(std::string_view word, std::uint64_t number) noexcept {
    put(word);
    put_and(name_.begun_ns, '.');
    put_and(name_.late, ',');
    put_and(number, '\n');
  }

  section_name name_;
  std::uint64_t rate_;
  std::uint64_t lines_ = 0;
  bool failed_ = false;
  growing_memory text_;
};

/// Appends a section; returns 0 or an error that file_error_text() knows.
using append_section = function_ref<int(std::uint32_t loader, std::string_view section)>;

/// Writes a section for each loader that has aggregates.
/// @param for_each_chain  calls its argument for every thread; called once for each loader.
/// @return 0, ENOMEM, or the first error of `append`.
LOTUS_DETAIL_COLD inline int for_each_section(const section_name& name, std::uint64_t rate,
                                              const name_lookup& names,
                                              function_ref<void(each_chain)> for_each_chain,
                                              append_section append) noexcept {
  auto* const room = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
  if (room == nullptr) return ENOMEM;
  int first_error = 0;
  // The next loader is the one with the smallest id above the current one.
  std::optional<std::uint64_t> next = 0;
  while (next) {
    const std::uint64_t loader = *next;
    next = std::nullopt;
    aggregate_text section{name, rate};
    for_each_chain([&](aggregate_chain& chain) {
      chain.for_each(*room, [&](const whole_aggregate& of) {
        if (of.loader() > loader && of.loader() < next.value_or(UINT64_MAX)) next = of.loader();
        if (of.loader() == loader) section.add(names(of.name()), chain.tid(), of);
      });
    });
    const std::string_view text = section.finish();
    int error = section.failed() ? ENOMEM : 0;
    if (!text.empty()) error = append(static_cast<std::uint32_t>(loader), text);
    if (first_error == 0) first_error = error;
  }
  munmap(room, sizeof(whole_aggregate));
  return first_error;
}

/// Writes the name of a process's file of sections, which is in the folder of its run or loader.
/// @param out  at least max_prefix_bytes + 48 bytes.
inline void put_aggregates_file_name(char* out, const char* prefix, std::uint32_t pid) noexcept {
  std::snprintf(out, max_prefix_bytes + 48, "%s%s_%u", aggregates_file_start, prefix, pid);
}

/// Appends a section to the file of its process and loader. Returns 0 or an error that
/// file_error_text() knows; after an error, what was appended is not a valid section.
/// @param pid  of the process.
LOTUS_DETAIL_COLD inline int append_aggregates(const log_folder& run, loader_folders& folders,
                                               std::uint32_t loader, std::uint32_t pid,
                                               std::string_view section) noexcept {
  const int folder = folders.of(loader);
  if (folder < 0) return -folder;
  char name[max_prefix_bytes + 48];
  put_aggregates_file_name(name, run.prefix, pid);
  struct stat status {};
  bool made = false;
  const int fd = open_to_append(folder, name, run.owners, run.mode, status, made);
  if (fd < 0) return -fd;
  if (made && run.like != nullptr) run.give_away(fd, status, run.like->st_mode & 0666U);
  const int error = write_all(fd, section.data(), section.size());
  close(fd);
  return error;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP

// The producers of all threads: finds them, adds new ones, and reuses those of dead threads.
#ifndef LOTUS_STORE_PRODUCERS_HPP
#define LOTUS_STORE_PRODUCERS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline std::uint32_t thread_id() noexcept {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

inline bool thread_is_dead(std::uint32_t tid) noexcept {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

/// A list that only grows and is therefore read without a lock; producers in it are reused.
class LOTUS_DETAIL_PER_MODULE producer_list {
 public:
  template <class Each>
  void for_each(Each&& each) const noexcept {
    for (producer* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next) each(*p);
  }

  /// Returns a producer for this thread; null if there is no memory.
  /// @param retire  bool(producer&): empties a dead thread's producer; false if that fails.
  /// @param fits    bool(producer&): whether this thread may take over this dead thread's producer.
  /// @param adopt   void(producer&): prepares a producer for this thread.
  template <class Retire, class Fits, class Adopt>
  producer* for_this_thread(Retire&& retire, Fits&& fits, Adopt&& adopt) noexcept {
    const locked hold{lock_};
    const std::uint32_t tid = thread_id();
    // A producer with our thread id is ours, added through another shared object, or that of a dead
    // thread whose id and logs we inherit: two rings must never write to one log.
    if (producer* p = find(tid)) return p;
    producer* p = find_free(fits);
    if (p == nullptr && count_ >= reap_at_) {
      reap(retire);
      p = find_free(fits);
    }
    // Free producers that do not fit yet will fit soon. If there are this many, take one anyway
    // instead of adding more.
    if (p == nullptr && count_ >= reap_at_ + most_that_do_not_fit) p = find(0);
    if (p == nullptr) p = add();
    if (p != nullptr) {
      p->tid.store(tid, std::memory_order_relaxed);
      adopt(*p);
    }
    return p;
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t at_once = gate_distance / sizeof(producer);
  static_assert(at_once >= 32 && sizeof(producer) >= sizeof(ring_gate));

  static constexpr std::size_t most_that_do_not_fit = 256;

  template <class Fits>
  producer* find_free(Fits& fits) const noexcept {
    producer* p = first_.load(std::memory_order_acquire);
    while (p != nullptr && (p->tid.load(std::memory_order_relaxed) != 0 || !fits(*p))) p = p->next;
    return p;
  }

  producer* find(std::uint32_t tid) const noexcept {
    producer* p = first_.load(std::memory_order_acquire);
    while (p != nullptr && p->tid.load(std::memory_order_relaxed) != tid) p = p->next;
    return p;
  }

  /// Frees the producers of dead threads. No hook is used at the end of a thread, so even its last
  /// thread_local destructor may still record. The next call follows when there are twice as many
  /// producers as running threads now: so the number of rings is bounded, and a new thread costs
  /// little.
  template <class Retire>
  void reap(Retire&& retire) noexcept {
    std::size_t living = 0;
    for_each([&](producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid == 0) return;
      if (thread_is_dead(tid) && retire(p)) {
        p.tid.store(0, std::memory_order_relaxed);
      } else {
        ++living;
      }
    });
    reap_at_ = 2 * living + 8;
  }

  producer* add() noexcept {
    if (spare_count_ == 0) {
      auto* const memory = static_cast<char*>(map_memory(2 * gate_distance));
      if (memory == nullptr) return nullptr;
      clear_in_children(memory + gate_distance, gate_distance);
      spare_ = reinterpret_cast<producer*>(memory);
      spare_count_ = at_once;
    }
    auto* p = new (spare_++) producer;
    new (&gate_of(*p)) ring_gate;
    --spare_count_;
    ++count_;
    p->next = first_.load(std::memory_order_relaxed);
    first_.store(p, std::memory_order_release);
    return p;
  }

  mutex lock_;
  std::atomic<producer*> first_{nullptr};
  std::size_t count_ = 0;
  std::size_t reap_at_ = 8;
  producer* spare_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_PRODUCERS_HPP

// The files in a run's directory besides the logs: this process's ring file and information file.
#ifndef LOTUS_STORE_RUN_RUN_FILES_HPP
#define LOTUS_STORE_RUN_RUN_FILES_HPP

// Determines which process a log belongs to if several processes write to one directory.
//
// Logs are named by thread ids, and the same ids occur in every container. Before a process creates
// the log of a thread, it claims the thread id in its information file, together with the namespace
// that its ids belong to.
#ifndef LOTUS_FOLDER_LOG_CLAIMS_HPP
#define LOTUS_FOLDER_LOG_CLAIMS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// No thread id is larger: PID_MAX_LIMIT of Linux.
inline constexpr std::uint32_t largest_thread_id = 4'194'304;

/// A log number for a thread whose id another process already uses; different at every call.
inline std::uint32_t number_of_no_thread(std::uint32_t tid) noexcept {
  std::uint64_t mixed = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) ^
                        (std::uint64_t{tid} << 32) ^ (static_cast<std::uint64_t>(getpid()) << 44);
  mixed = (mixed ^ (mixed >> 31)) * 0x9e3779b97f4a7c15U;
  // Below 2^31, for readers that store it in a signed 32-bit number.
  return largest_thread_id + 1 + static_cast<std::uint32_t>((mixed >> 32) % 2'000'000'000U);
}

/// Limits how much of the information files is read for one log. Sufficient for thousands of
/// processes, small compared to what others could put there. Each file counts as at least one page.
class claim_budget {
 public:
  bool spent() const noexcept { return bytes_ == 0; }
  void take(std::size_t bytes) noexcept { bytes_ -= bytes < bytes_ ? bytes : bytes_; }

 private:
  std::size_t bytes_ = std::size_t{16} << 20;  ///< enough for 600,000 threads, or for 4,096 files
};

/// The lines of an information file, as store/run/run_info.hpp writes them.
class claim_file {
 public:
  /// @param name  in `directory` (borrowed); a file that cannot be read counts as empty.
  claim_file(int directory, const char* name) noexcept {
    struct stat status {};
    fd_ = open_regular(directory, name, O_RDONLY, status);
  }
  claim_file(const claim_file&) = delete;
  claim_file& operator=(const claim_file&) = delete;
  ~claim_file() {
    if (fd_ >= 0) close(fd_);
  }

  /// Calls each(std::string_view) for every line, until it returns false or the budget is spent.
  LOTUS_DETAIL_COLD void for_each_line(claim_budget& budget,
                                       function_ref<bool(std::string_view)> each) const noexcept {
    char text[least_page_bytes];
    std::size_t held = 0;
    std::size_t total = 0;
    while (fd_ >= 0 && !budget.spent()) {
      const ssize_t got = read(fd_, text + held, sizeof(text) - held);
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) {
        budget.take(static_cast<std::size_t>(got));
        total += static_cast<std::size_t>(got);
        held += static_cast<std::size_t>(got);
      }
      std::size_t from = 0;
      bool wanted = got > 0;
      while (const void* end = wanted ? std::memchr(text + from, '\n', held - from) : nullptr) {
        const auto behind = static_cast<std::size_t>(static_cast<const char*>(end) - text);
        wanted = each(std::string_view{text + from, behind - from});
        from = behind + 1;
      }
      if (!wanted) break;
      if (from == 0 && held == sizeof(text)) from = held;  // longer than any line of ours: skip it
      std::memmove(text, text + from, held - from);
      held -= from;
    }
    if (total < least_page_bytes) budget.take(least_page_bytes - total);
  }

 private:
  int fd_ = -1;
};

/// Removes "<key> " from the front of a line. Returns false if the line has another key.
inline bool take_key(std::string_view& line, std::string_view key) noexcept {
  if (line.substr(0, key.size()) != key) return false;
  line.remove_prefix(key.size());
  return true;
}

/// Whether a process whose ids belong to another namespace or machine may write the logs of this
/// number. Returns true if there is more to read than the budget allows.
/// @param info  the information file of the calling process; if it names no namespace, all other
/// processes count as foreign.
inline bool log_number_is_anothers(int directory, const char* info, std::uint32_t number) noexcept {
  char own[96] = {};
  claim_budget budget;
  claim_file{directory, info}.for_each_line(budget, [&](std::string_view line) {
    const bool found = take_key(line, "namespace ") && line.size() < sizeof(own);
    if (found) std::memcpy(own, line.data(), line.size());
    return !found;
  });
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%u ", number);
  bool taken = false;
  for_each_entry(directory, [&](const char* name) {
    constexpr std::size_t start = sizeof(run_info_start) - 1;
    if (taken || std::strncmp(name, run_info_start, start) != 0) return;
    if (std::strcmp(name, info) == 0) return;
    bool stranger = true;
    bool claims = false;
    claim_file{directory, name}.for_each_line(budget, [&](std::string_view line) {
      if (take_key(line, "namespace ")) {
        stranger = own[0] == '\0' || line != own;
      } else if (take_key(line, "thread ") || take_key(line, "log ")) {
        claims = claims || take_key(line, digits);
      }
      return stranger && !claims;
    });
    taken = (stranger && claims) || budget.spent();
  });
  return taken;
}

/// Adds to the information file that the logs of thread `tid` have this number; ignores failures.
inline void tell_log_number(int directory, const char* info, const file_owners& owners,
                            std::uint32_t number, std::uint32_t tid) noexcept {
  struct stat status {};
  const int fd = open_own(directory, info, O_WRONLY | O_APPEND, owners, status);
  if (fd < 0) return;
  char text[64];
  const int bytes = std::snprintf(text, sizeof(text), "log %u %u\n", number, tid);
  static_cast<void>(write_all(fd, text, static_cast<std::size_t>(bytes)));
  close(fd);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_CLAIMS_HPP

// Writes the complete records of one ring to a sink.
#ifndef LOTUS_FORMAT_DRAIN_HPP
#define LOTUS_FORMAT_DRAIN_HPP

// Appends lines to log files.
#ifndef LOTUS_FOLDER_LOG_APPENDER_HPP
#define LOTUS_FOLDER_LOG_APPENDER_HPP

// Log names, including those of parts. If logs have limits, a log that has grown is renamed to a
// part, whose name contains the time, and the next lines begin a new log.
#ifndef LOTUS_FOLDER_LOG_PARTS_HPP
#define LOTUS_FOLDER_LOG_PARTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Size of a buffer for the longest log name and its terminating zero.
inline constexpr std::size_t log_name_bytes = max_prefix_bytes + 72;

/// Writes the name of a log to `out` (log_name_bytes): "<prefix>_<main|worker>_pid_<number>", or
/// ".lotus_<beside|compact>_<prefix>_pid_<number>" for hidden logs. A part has "_part<k>" after the
/// prefix.
/// @param compact  the hidden log is the thread's only log.
/// @param part     when the part was completed, in ms since the epoch; 0: the log still grows.
inline void put_log_name(char* out, std::size_t bytes, const char* prefix, log_role role,
                         bool compact, std::uint32_t number, std::uint64_t part = 0) noexcept {
  char which[32] = "";
  if (part != 0) {
    std::snprintf(which, sizeof(which), "_part%llu", static_cast<unsigned long long>(part));
  }
  const bool hidden = role == log_role::side;
  const char* const start = !hidden ? "" : compact ? compact_log_start : beside_log_start;
  const char* const kind = hidden ? "" : role == log_role::main ? "_main" : "_worker";
  std::snprintf(out, bytes, "%s%s%s%s_pid_%u", start, prefix, which, kind, number);
}

/// The largest number of ms since the epoch whose ns fit into 64 bits.
inline constexpr std::uint64_t most_part_ms = INT64_MAX / 1'000'000 - 1;

/// The components of a log's name.
struct log_name {
  log_role role = log_role::side;
  bool compact = false;         ///< it is the only log of its thread
  std::uint64_t part = 0;       ///< 0: the log still grows
  std::size_t part_at = 0;      ///< position of "_part<k>" in the name
  std::size_t part_length = 0;  ///< length of "_part<k>"
  std::uint64_t number = 0;     ///< the number at the end of the name

  /// Returns false if `name` is not a log with this prefix.
  LOTUS_DETAIL_COLD bool parse(const char* name, const char* prefix) noexcept {
    *this = log_name{};
    const char* p = name;
    compact = take(p, compact_log_start);
    const bool hidden = compact || take(p, beside_log_start);
    if (!take(p, prefix)) return false;
    const char* const behind_prefix = p;
    if (take(p, "_part") && take_number(p, part) && part != 0 && part <= most_part_ms) {
      part_at = static_cast<std::size_t>(behind_prefix - name);
      part_length = static_cast<std::size_t>(p - behind_prefix);
    } else {
      part = 0;
      p = behind_prefix;
    }
    if (!hidden) {
      if (take(p, "_main")) {
        role = log_role::main;
      } else if (take(p, "_worker")) {
        role = log_role::worker;
      } else {
        return false;
      }
    }
    return take(p, "_pid_") && take_number(p, number) && *p == '\0';
  }

 private:
  static bool take(const char*& p, const char* text) noexcept {
    const std::size_t bytes = std::strlen(text);
    if (std::strncmp(p, text, bytes) != 0) return false;
    p += bytes;
    return true;
  }

  /// Returns false if there is no number of at most 18 digits.
  static bool take_number(const char*& p, std::uint64_t& value) noexcept {
    const char* const first = p;
    for (value = 0; *p >= '0' && *p <= '9' && p - first < 18; ++p) {
      value = value * 10 + static_cast<std::uint64_t>(*p - '0');
    }
    return p != first;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_PARTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maximum number of bytes of one append.
inline constexpr std::size_t max_append_bytes = std::size_t{128} << 10;

/// The number in the names of a ring's logs.
inline std::uint32_t log_number(const ring_block& ring, const log_position& at) noexcept {
  return at.number != 0 ? at.number : ring.tid.load(std::memory_order_relaxed);
}

/// Appends to the logs of one ring. A commit before and after every append records the length of
/// the log, so that after a crash the bytes of an unfinished append, and only those, can be
/// removed.
class log_appender {
 public:
  /// @param logs       borrowed; opened if closed, and left open.
  /// @param ring_file  if `ring` is a copy: descriptor of the file that also receives the commits.
  /// @param ring_at    position of the ring in that file.
  log_appender(const log_folder& folder, ring_block& ring, open_log (&logs)[log_roles],
               int ring_file = -1, std::uint64_t ring_at = 0) noexcept
      : folder_{folder},
        loaders_{folder},
        ring_{ring},
        records_of_{&ring},
        logs_{logs},
        ring_file_{ring_file},
        ring_at_{ring_at} {}
  log_appender(const log_appender&) = delete;
  log_appender& operator=(const log_appender&) = delete;

  /// The last committed state of a log.
  const log_position& position(log_role role) const noexcept {
    return ring_.committed().logs[static_cast<std::size_t>(role)];
  }

  /// Marks the log as about to grow. Returns 0 or an error that file_error_text() knows.
  /// @param loader  the loader whose log grows: the id of its name, 0 for the default loader.
  int begin(log_role role, std::uint32_t loader) noexcept {
    open_log& log = logs_[static_cast<std::size_t>(role)];
    struct stat status {};
    bool open = log.file.holds(status);
    const bool another = position(role).loader != loader;
    if (open && (another || status.st_nlink == 0 || was_moved(role, status))) {
      undo(role);    // of an earlier append that failed
      open = false;  // deleted or moved while it was open: create a new one
    }
    commit_point c = ring_.committed();
    log_position& at = c.logs[static_cast<std::size_t>(role)];
    if (another) at = {0, 0, false, at.number, loader};
    if (!open) {
      log.file.close();
      const int opened = open_log_file(role, at, status);
      if (opened < 0) return -opened;
      log = {{opened, status}, clock_ns(CLOCK_MONOTONIC_COARSE)};
    }
    at = {static_cast<std::uint64_t>(status.st_ino), static_cast<std::uint64_t>(status.st_size),
          true, at.number, loader};
    return commit_to_file(c);
  }

  /// Appends whole lines after begin(). On error the file is restored. Returns 0 or errno.
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    const int error = write_all(logs_[static_cast<std::size_t>(role)].file.number(), lines, bytes);
    if (error != 0) {
      undo(role);
      return error;
    }
    appended_[static_cast<std::size_t>(role)] = bytes;
    return 0;
  }

  /// Removes what was appended since the last commit.
  LOTUS_DETAIL_COLD void undo(log_role role) noexcept {
    const auto i = static_cast<std::size_t>(role);
    commit_point c = ring_.committed();
    appended_[i] = 0;
    if (!c.logs[i].appending) return;
    const owned_descriptor& log = logs_[i].file;
    if (log.holds() && ftruncate(log.number(), static_cast<off_t>(c.logs[i].length)) != 0) return;
    c.logs[i].appending = false;
    commit_to_file(c);
  }

  /// Selects the ring whose records commit() refers to from now on: the ring itself, as initially,
  /// or a copy of it in private memory. The positions of the logs are committed to the ring in both
  /// cases, because its commits survive a kill.
  void take_records_of(ring_block& from) noexcept { records_of_ = &from; }

  /// Commits that the records before `tail` of `lane` are in the logs, and which loader the next
  /// records of the main lane belong to. Returns 0 or errno.
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) noexcept {
    commit_point c = records_of_->committed();
    c.tail[lane] = tail;
    c.loader = loader;
    if (records_of_ == &ring_) return commit_lines(c);
    // A single commit of the ring both counts these records as logged and no longer as in memory.
    commit_point of_ring = ring_.committed();
    of_ring.in_memory -= static_cast<std::uint32_t>(tail - records_of_->committed().tail[lane]);
    records_of_->commit(c);
    return commit_lines(of_ring);
  }

  /// Cuts off what an append that a crash interrupted has left. That is at most max_append_bytes;
  /// if more bytes follow, another process appended them. Call it before anything else is appended.
  LOTUS_DETAIL_COLD void undo_torn() noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      const log_position at = ring_.committed().logs[i];
      if (!at.appending) continue;
      struct stat status {};
      const int fd = open_torn(static_cast<log_role>(i), at, status);
      if (fd < 0) continue;
      logs_[i].file.close();
      logs_[i] = {{fd, status}, 0};
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      if (bytes > at.length && bytes - at.length <= max_append_bytes) {
        undo(static_cast<log_role>(i));
      }
      logs_[i].file.close();  // the log may have been moved
    }
  }

  /// Name of the log, or of the loader's folder, that was last opened or could not be opened.
  const char* name() const noexcept { return name_; }

 private:
  int commit_lines(commit_point c) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      c.logs[i].length += appended_[i];
      c.logs[i].appending = false;
    }
    const int error = commit_to_file(c);
    for (std::size_t i = 0; i < log_roles; ++i) {
      // Without the commit these lines would be appended again later.
      if (error != 0 && appended_[i] != 0) undo(static_cast<log_role>(i));
      appended_[i] = 0;
    }
    return error;
  }

  /// The index is written last in the file, too, so that it always refers to a complete commit.
  int commit_to_file(const commit_point& c) noexcept {
    if (ring_file_ >= 0) {
      const std::uint32_t next = 1 - ring_.commit_index.load(std::memory_order_relaxed);
      int error = write_at(&c, sizeof(c), offsetof(ring_block, commits) + next * sizeof(c));
      if (error == 0) error = write_at(&next, sizeof(next), offsetof(ring_block, commit_index));
      if (error != 0) return error;
    }
    ring_.commit(c);
    return 0;
  }

  int write_at(const void* data, std::size_t bytes, std::size_t offset) const noexcept {
    ssize_t n = 0;
    do {
      n = pwrite(ring_file_, data, bytes, static_cast<off_t>(ring_at_ + offset));
    } while (n < 0 && errno == EINTR);
    if (n < 0) return errno;
    return static_cast<std::size_t>(n) == bytes ? 0 : EIO;
  }

  void put_name(log_role role, std::uint32_t number) noexcept {
    put_log_name(name_, sizeof(name_), folder_.prefix, role, folder_.compact, number);
  }

  /// Whether an open log was renamed, as by logrotate. Checks at most twice a second.
  LOTUS_DETAIL_COLD bool was_moved(log_role role, const struct stat& status) noexcept {
    constexpr std::int64_t between_ns = 500'000'000;
    std::int64_t& looked_ns = logs_[static_cast<std::size_t>(role)].looked_ns;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - looked_ns < between_ns) return false;
    looked_ns = now_ns;
    const log_position& at = position(role);
    const int folder = loaders_.of(at.loader);
    if (folder < 0) return true;  // opening it again reports the reason
    put_name(role, log_number(ring_, at));
    struct stat named {};
    if (fstatat(folder, name_, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    return named.st_ino != status.st_ino || named.st_dev != status.st_dev;
  }

  /// Opens the log with the unfinished append, under its own name or a name that it was moved to.
  int open_torn(log_role role, const log_position& at, struct stat& status) noexcept {
    const int folder = loaders_.of(at.loader);
    if (folder < 0) return folder;
    put_name(role, log_number(ring_, at));
    const auto open_if_it = [&](const char* name) {
      const int fd = open_own(folder, name, O_WRONLY | O_APPEND, folder_.owners, status);
      if (fd < 0 || status.st_ino == at.inode) return fd;
      close(fd);
      return -ENOENT;
    };
    int fd = open_if_it(name_);
    if (fd != -ENOENT) return fd;
    const std::size_t bytes = std::strlen(name_);
    for_each_entry(folder, [&](const char* name) {
      if (fd >= 0 || std::strncmp(name, name_, bytes) != 0 || name[bytes] != '.') return;
      fd = open_if_it(name);
    });
    return fd;
  }

  /// @param at  its number changes if another process uses the log of that number.
  LOTUS_DETAIL_COLD int open_log_file(log_role role, log_position& at,
                                      struct stat& status) noexcept {
    const int folder = loaders_.of(at.loader);
    if (folder < 0) {
      std::snprintf(name_, sizeof(name_), "%s", loaders_.name());
      return folder;
    }
    // All logs of a thread have the same number if possible.
    for (const log_position& other : ring_.committed().logs) {
      if (at.number == 0) at.number = other.number;
    }
    constexpr int most_numbers = 16;
    for (int attempt = 0; attempt < most_numbers; ++attempt) {
      const std::uint32_t tid = ring_.tid.load(std::memory_order_relaxed);
      const std::uint32_t named = at.number != 0 ? at.number : tid;
      put_name(role, named);
      bool made = false;
      const int fd = open_to_append(folder, name_, folder_.owners, folder_.mode, status, made);
      if (fd < 0) return fd;
      if (made && folder_.like != nullptr) {
        folder_.give_away(fd, status, folder_.like->st_mode & 0666U);
      }
      const bool known =
          at.inode == status.st_ino && at.length == static_cast<std::uint64_t>(status.st_size);
      if (made || known || !log_number_is_anothers(folder_.directory, folder_.info, named)) {
        return fd;
      }
      close(fd);
      at.number = number_of_no_thread(tid);
      tell_log_number(folder_.directory, folder_.info, folder_.owners, at.number, tid);
    }
    return -EEXIST;
  }

  const log_folder& folder_;
  loader_folders loaders_;
  ring_block& ring_;
  ring_block* records_of_;
  open_log (&logs_)[log_roles];
  int ring_file_;
  std::uint64_t ring_at_;
  std::size_t appended_[log_roles] = {};
  char name_[log_name_bytes] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_APPENDER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Holds the text of one append.
struct drain_buffer {
  static constexpr std::size_t capacity = max_append_bytes;
  char text[log_roles][capacity];
  std::size_t bytes[log_roles];
};

/// How many records of each lane were complete at one moment.
struct lane_heads {
  std::uint64_t head[lanes];

  explicit lane_heads(const ring_block& ring) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
      head[i] = ring.published[i].load(std::memory_order_acquire);
    }
  }
  /// Number of records that are complete but not in the logs yet.
  std::uint64_t beyond(const commit_point& c) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lanes; ++i) count += head[i] - c.tail[i];
    return count;
  }
};

/// Copies the records between `from`'s committed tails and `heads` to a ring of the same capacity,
/// together with the tails and heads.
inline void copy_records(ring_block& from, const lane_heads& heads, ring_block& to) noexcept {
  commit_point c = from.committed();
  // Only one ring may own the logs' positions and the count of records in memory.
  for (log_position& log : c.logs) log = {0, 0, false, log.number, 0};
  c.in_memory = 0;
  to.commit(c);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::uint64_t at = c.tail[lane]; at != heads.head[lane]; ++at) {
      to.slot(lane, at) = from.slot(lane, at);
    }
    to.published[lane].store(heads.head[lane], std::memory_order_relaxed);
  }
}

/// Marks the records before `heads` as processed.
/// @param in_memory  the number of these records that were copied to memory and are not in the logs
/// yet.
inline void skip_records(ring_block& ring, const lane_heads& heads,
                         std::uint64_t in_memory = 0) noexcept {
  commit_point c = ring.committed();
  c.in_memory += static_cast<std::uint32_t>(in_memory);
  for (std::uint64_t at = c.tail[0]; at != heads.head[0]; ++at) {
    const record_tag tag = ring.slot(0, at).tag;
    if (tag.kind() == event_kind::loader) c.loader = static_cast<std::uint32_t>(tag.value());
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) c.tail[lane] = heads.head[lane];
  ring.commit(c);
}

/// Formats records as lines in a buffer.
/// @param names   std::string_view operator()(std::uint64_t id): the beginning of the line, comma
/// included.
template <class Names>
class line_filler {
 public:
  line_filler(const tick_converter& clock, const Names& names, drain_buffer& buffer) noexcept
      : formatter_{clock}, names_{names}, buffer_{buffer} {}

  template <class Sink>
  int begin(Sink&, std::uint32_t) noexcept {
    for (std::size_t& bytes : buffer_.bytes) bytes = 0;
    return 0;
  }

  /// Text lines have no faster path for operations, unlike compact_filler.
  static std::uint64_t add_operations(ring_block&, std::size_t, std::uint64_t at,
                                      std::uint64_t) noexcept {
    return at;
  }

  /// Returns false if the buffer has no room left.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const auto role = static_cast<std::size_t>(kind.role);
    if (drain_buffer::capacity - buffer_.bytes[role] < max_line_bytes) return false;
    const std::string_view name =
        has_name(kind) ? names_(name_of(kind, r.tag)) : std::string_view{};
    if (LOTUS_DETAIL_UNLIKELY(!kind.beside.empty())) {
      if (!add_beside(r, name)) return false;
      if (kind.role == log_role::side) return true;
    }
    char* const out = buffer_.text[role] + buffer_.bytes[role];
    buffer_.bytes[role] =
        static_cast<std::size_t>(formatter_.format(r, name, out) - buffer_.text[role]);
    return true;
  }

  /// Appends the buffer's contents. Returns 0 or the sink's error; then nothing is appended.
  template <class Sink>
  int append(Sink& sink, std::uint32_t loader) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      if (buffer_.bytes[i] == 0) continue;
      const auto role = static_cast<log_role>(i);
      int error = sink.begin(role, loader);
      if (error == 0) error = sink.append(role, buffer_.text[i], buffer_.bytes[i]);
      if (error == 0) continue;
      for (std::size_t k = 0; k < i; ++k) sink.undo(static_cast<log_role>(k));
      return error;
    }
    return 0;
  }

  template <class Sink>
  void committed(const Sink&) noexcept {}
  void failed() noexcept {}

 private:
  LOTUS_DETAIL_COLD bool add_beside(const record& r, std::string_view name) noexcept {
    constexpr auto beside = static_cast<std::size_t>(log_role::side);
    if (drain_buffer::capacity - buffer_.bytes[beside] < max_line_bytes) return false;
    char* const out = buffer_.text[beside] + buffer_.bytes[beside];
    buffer_.bytes[beside] =
        static_cast<std::size_t>(formatter_.format_beside(r, name, out) - buffer_.text[beside]);
    return true;
  }

  line_formatter formatter_;
  const Names& names_;
  drain_buffer& buffer_;
};

/// Writes the records between the ring's committed tails and `heads` to `sink`. The sink commits
/// after each append, so no record is written twice.
/// @param heads  read before the clock of `fill` was constructed.
/// @param fill   a line_filler or a compact_filler: begin(sink, loader), then add(record) until it
/// returns false, or add_operations(ring, lane, from, to), which returns how far it came, then
/// append(sink, loader), then committed(sink) or failed().
/// @param sink   begin(role, loader), append(role, text, bytes), undo(role), commit(lane, tail,
/// loader), position(role); all but undo and position return 0 or an error that file_error_text()
/// knows. A loader is the id of its name, 0 the default loader.
/// @return 0, or the error of the sink; then the remaining records stay in the ring.
template <class Filler, class Sink>
int drain_ring(ring_block& ring, const lane_heads& heads, Filler& fill, Sink& sink) noexcept {
  for (std::size_t lane = lanes; lane-- > 0;) {
    std::uint64_t at = ring.committed().tail[lane];
    while (at != heads.head[lane]) {
      std::uint32_t loader = ring.committed().loader;
      // Lane 1 holds the records of signal handlers that interrupted a push; they never enter a
      // loader.
      const auto enters = [&](const record& r) {
        return lane == 0 && r.tag.kind() == event_kind::loader;
      };
      for (; at != heads.head[lane] && enters(ring.slot(lane, at)); ++at) {
        loader = static_cast<std::uint32_t>(ring.slot(lane, at).tag.value());
      }
      if (at == heads.head[lane]) return sink.commit(lane, at, loader);
      if (const int error = fill.begin(sink, loader); error != 0) return error;
      for (;; ++at) {
        at = fill.add_operations(ring, lane, at, heads.head[lane]);
        if (at == heads.head[lane]) break;
        const record& r = ring.slot(lane, at);
        if (LOTUS_DETAIL_UNLIKELY(r.tag.kind() == event_kind::loader)) {
          if (lane == 0) break;
        } else if (!fill.add(r)) {
          break;
        }
      }
      int error = fill.append(sink, loader);
      if (error == 0) error = sink.commit(lane, at, loader);
      if (error != 0) {
        fill.failed();
        return error;
      }
      fill.committed(sink);
    }
  }
  return 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_DRAIN_HPP

// Reads the CPU time of threads, but only after a context switch was noticed.
//
// Linux keeps a restartable-sequences area for each thread (rseq(2); glibc registers it since
// 2.35). When a thread continues after it was switched out or received a signal, the kernel clears
// the pointer in that area unless the thread is inside the sequence that it points to. We let it
// point to a sequence that no thread is ever in.
#ifndef LOTUS_STORE_CPU_CLOCK_HPP
#define LOTUS_STORE_CPU_CLOCK_HPP

#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
  #include <sys/rseq.h>
  #define LOTUS_DETAIL_HAS_RSEQ 1
#else
  #define LOTUS_DETAIL_HAS_RSEQ 0
#endif

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The pointer in this thread's rseq area; null if the thread has none.
inline std::uint64_t* sequence_pointer() noexcept {
#if LOTUS_DETAIL_HAS_RSEQ
  if (__rseq_size == 0) return nullptr;
  char* thread = nullptr;
  #if defined(__x86_64__)
  __asm__("mov %%fs:0, %0" : "=r"(thread));
  #else
  __asm__("mrs %0, tpidr_el0" : "=r"(thread));
  #endif
  return reinterpret_cast<std::uint64_t*>(thread + __rseq_offset + offsetof(struct rseq, rseq_cs));
#else
  return nullptr;
#endif
}

/// When threads read their CPU clocks. Information files contain it as a word.
enum class cpu_watching : std::uint32_t { off, batches, switches };

/// Must be in memory that is never freed, because every thread's rseq area points into it. Thread
/// safety: all; an account belongs to its thread.
class cpu_clock {
 public:
  /// @param wanted  whether threads are watched from now on.
  void begin(bool wanted) noexcept {
    const bool sequences = sequence_pointer() != nullptr;
    if (sequences) make_sequence();
    const cpu_watching mode = !wanted     ? cpu_watching::off
                              : sequences ? cpu_watching::switches
                                          : cpu_watching::batches;
    change_mode(mode);
  }

  cpu_watching mode() const noexcept { return mode_.load(std::memory_order_acquire); }

  /// Returns the time off the CPU since this thread's last call; the first call returns none.
  off_cpu_time read(cpu_account& account, cpu_watch& watch) noexcept {
    if (account.reading != 0 && is_interrupted(account.reading)) return {};
    const uncancelled quiet;
    account.reading = stack_pointer();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const cpu_watching mode = this->mode();
    begin_watch(watch, mode);
    const off_cpu_time found = mode != cpu_watching::off ? find(account) : off_cpu_time{};
    if (mode == cpu_watching::switches && found.off_ns == 0 && is_futile(account)) {
      // Data of some threads only would look to the tool like data of all, so all change mode.
      change_mode(cpu_watching::batches);
      begin_watch(watch, cpu_watching::batches);
    }
    if (found.off_ns != 0) account.futile = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    account.reading = 0;
    return found;
  }

  /// Clears the account of a dead thread, or of the parent's thread in a forked child, for another
  /// thread.
  void give_up(cpu_account& account) noexcept {
    if (account.schedstat.number() >= 0) open_files_.fetch_sub(1, std::memory_order_relaxed);
    account.schedstat.close();
    account = {};
  }

  /// In a forked child, whose clocks start at 0: forces its first look to read them.
  static void disturb() noexcept {
    if (std::uint64_t* const pointer = sequence_pointer()) {
      __atomic_store_n(pointer, 0, __ATOMIC_RELAXED);
    }
  }

 private:
  void change_mode(cpu_watching mode) noexcept {
    mode_.store(mode, std::memory_order_release);
    __atomic_fetch_add(&runs_, 1, __ATOMIC_RELEASE);  // makes threads that do not watch look again
  }

  /// The kernel's layout: struct rseq_cs of linux/rseq.h.
  struct alignas(32) sequence {
    std::uint32_t version;
    std::uint32_t flags;
    std::uint64_t start_ip;
    std::uint64_t post_commit_offset;
    std::uint64_t abort_ip;
  };

  /// Shorter times are no switch, but the interval between reading the two clocks.
  static constexpr std::int64_t least_off_ns = 500;
  /// After this many futile readings within futile_ns, another user of the rseq area is assumed.
  static constexpr std::uint32_t most_futile = 1000;
  static constexpr std::int64_t futile_ns = 100'000'000;
  static constexpr std::uint32_t most_open_files = 32;

  /// Creates a sequence of one byte of data, which no thread ever executes.
  void make_sequence() noexcept {
#if LOTUS_DETAIL_HAS_RSEQ
    if (sequence_.start_ip != 0) return;  // the kernel may be reading it
    signature_[0] = RSEQ_SIG;
    sequence_ = {0, 0, reinterpret_cast<std::uintptr_t>(&never_run_), 1,
                 reinterpret_cast<std::uintptr_t>(&signature_[1])};
    marked_sequence_ = sequence_;
#endif
  }

  void begin_watch(cpu_watch& watch, cpu_watching mode) const noexcept {
    std::uint64_t* const pointer = sequence_pointer();
    if (mode == cpu_watching::switches && pointer != nullptr) {
      const auto armed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&sequence_));
      __atomic_store_n(pointer, armed, __ATOMIC_RELAXED);
      const auto marked =
          static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&marked_sequence_));
      watch = {pointer, armed, false, true, armed, marked};
    } else {
      const std::uint64_t runs = __atomic_load_n(&runs_, __ATOMIC_ACQUIRE);
      watch = {&runs_, runs, mode == cpu_watching::batches, false, runs, 0};
    }
  }

  /// Reads the CPU time second: a switch between the two readings is found the next time.
  off_cpu_time find(cpu_account& account) noexcept {
    const std::int64_t off_ns = clock_ns(CLOCK_MONOTONIC_RAW) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t new_off_ns = off_ns - account.told_off_ns;
    if (account.begun && new_off_ns < least_off_ns) return {};
    const std::int64_t queue_ns = run_queue_ns(account);
    const bool first = !account.begun;
    account.begun = true;
    account.told_off_ns = off_ns;
    const auto found_ns = static_cast<std::uint64_t>(new_off_ns);
    if (first || queue_ns < 0) {
      if (queue_ns >= 0) account.told_run_queue_ns = queue_ns;
      return first ? off_cpu_time{} : off_cpu_time{found_ns, run_queue_unknown};
    }
    // If the thread is switched out after its clocks were read, often on return from the kernel,
    // its run-queue time already includes a wait that counts as off-CPU time only at the next
    // call. The excess is reported then.
    const std::int64_t waited_ns = queue_ns - account.told_run_queue_ns;
    const std::int64_t told_ns = waited_ns < 0            ? 0
                                 : waited_ns < new_off_ns ? waited_ns
                                                          : new_off_ns;
    account.told_run_queue_ns += told_ns;
    return {found_ns, static_cast<std::uint64_t>(told_ns)};
  }

  static bool is_futile(cpu_account& account) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (account.futile++ == 0) account.futile_since_ns = now_ns;
    if (account.futile < most_futile) return false;
    account.futile = 0;
    return now_ns - account.futile_since_ns < futile_ns;
  }

  /// How long this thread has waited for a CPU so far; -1 if the kernel does not report it.
  std::int64_t run_queue_ns(cpu_account& account) noexcept {
    if (!account.schedstat.holds()) open_schedstat(account);
    char text[96];
    int fd = account.schedstat.number();
    const bool kept = fd >= 0;
    if (!kept) fd = open_schedstat_file();
    const ssize_t bytes = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    if (!kept && fd >= 0) close(fd);
    if (bytes <= 0) return -1;
    text[bytes] = '\0';
    char* behind_cpu_time = nullptr;
    static_cast<void>(strtoll(text, &behind_cpu_time, 10));
    return strtoll(behind_cpu_time, nullptr, 10);
  }

  static int open_schedstat_file() noexcept {
    return open_out_of_the_way(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
  }

  /// Keeps the file open, unless too many are.
  void open_schedstat(cpu_account& account) noexcept {
    if (account.schedstat.number() >= 0) {  // the program has closed it
      open_files_.fetch_sub(1, std::memory_order_relaxed);
      account.schedstat = {};
    }
    if (open_files_.fetch_add(1, std::memory_order_relaxed) < most_open_files) {
      account.schedstat = owned_descriptor{open_schedstat_file()};
      if (account.schedstat.number() >= 0) return;
    }
    open_files_.fetch_sub(1, std::memory_order_relaxed);
  }

  sequence sequence_{};
  sequence marked_sequence_{};  ///< the same at another address, for cpu_watch::mark()
  std::uint32_t signature_[2] = {};
  char never_run_ = 0;
  std::uint64_t runs_ = 0;
  std::atomic<cpu_watching> mode_{cpu_watching::off};
  std::atomic<std::uint32_t> open_files_{0};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_CLOCK_HPP

// Tracks which names are in the ring file and thus readable after a kill.
#ifndef LOTUS_STORE_KEPT_NAMES_HPP
#define LOTUS_STORE_KEPT_NAMES_HPP

// The shared file mapping that keeps rings, names and clock readable after the process died.
#ifndef LOTUS_STORE_RING_FILE_HPP
#define LOTUS_STORE_RING_FILE_HPP

// The open directory of a run; reopened if the program closes the descriptor.
#ifndef LOTUS_STORE_RUN_RUN_DIRECTORY_HPP
#define LOTUS_STORE_RUN_RUN_DIRECTORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: descriptor() any thread, open() and close() under the session's control lock.
class run_directory {
 public:
  /// Finds or creates the directory. Returns 0 or errno.
  LOTUS_DETAIL_COLD int open(log_location& location) noexcept {
    const int fd = location.open_directory();
    if (fd < 0) return -fd;
    const locked hold{lock_};
    held_ = owned_descriptor{fd};
    keep_path(location.directory);
    return 0;
  }

  /// Returns its descriptor for immediate use; reopens the directory if the program closed it.
  /// Returns -errno if that fails; -ESTALE if the path now leads to another directory.
  LOTUS_DETAIL_COLD int descriptor() noexcept {
    const locked hold{lock_};
    return held_.holds() || reopen() == 0 ? held_.number() : -errno;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked hold{lock_};
    held_.close();
    *path_ = '\0';
  }

  /// Appends the path of the logs to the file that LOTUS_RUN_LIST names, so that `lotus-tool run`
  /// finds logs even if the program chose their place. Ignores failures.
  LOTUS_DETAIL_COLD void add_to_list(const char* prefix) const noexcept {
    const char* const list = environment_text(variable::run_list);
    if (list == nullptr || *path_ == '\0') return;
    char line[sizeof(path_) + sizeof(log_location::prefix) + 2];
    const int length = std::snprintf(line, sizeof(line), "%s/%s\n", path_, prefix);
    const int fd = open_out_of_the_way(AT_FDCWD, list, O_WRONLY | O_APPEND);
    if (fd < 0) return;
    write_all(fd, line, static_cast<std::size_t>(length));
    ::close(fd);
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Stores an absolute path, because the program may change its working directory. Stores none if
  /// the path is too long.
  void keep_path(const char* path) noexcept {
    char here[sizeof(path_) / 2] = "";
    const bool absolute = *path == '/';
    if (!absolute && getcwd(here, sizeof(here)) == nullptr) return;
    std::snprintf(path_, sizeof(path_), "%s%s%s", here, absolute ? "" : "/", path);
  }

  /// Returns 0, or -1 with errno.
  int reopen() noexcept {
    const file_identity before = held_.file();
    const owned_descriptor again{open_out_of_the_way(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY)};
    if (again.number() < 0) return -1;
    if (again.file().device == before.device && again.file().inode == before.inode) {
      held_ = again;
      return 0;
    }
    ::close(again.number());
    errno = ESTALE;
    return -1;
  }

  mutex lock_;
  owned_descriptor held_;
  char path_[2 * sizeof(log_location::directory)] = "";  ///< absolute
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_DIRECTORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// This process's ring file. A lock on its owner_lock_byte shows other processes that this process
/// is running; the kernel releases it when the process ends or execs. If there is no file, blocks
/// are private memory.
/// Thread safety: none; the session locks. Trivially destructible.
class ring_file {
 public:
  /// Creates the file in `in` (borrowed, must outlive this object). Returns 0 or errno.
  /// @param name_ns   the last part of its name, shared with the information file.
  /// @param begun_ns  distinguishes this recording of the process from others.
  LOTUS_DETAIL_COLD int create(run_directory& in, unsigned long long name_ns, const char* prefix,
                               mode_t mode, std::uint32_t flags, const clock_map& clock,
                               std::uint64_t begun_ns) noexcept {
    directory_ = &in;
    const int directory = in.descriptor();
    if (directory < 0) return -directory;
    char unfinished[96];
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(name_, sizeof(name_), "%s%u_%llx", ring_file_start, pid, name_ns);
    std::snprintf(unfinished, sizeof(unfinished), "%s%u_%llx", unfinished_ring_file_start, pid,
                  name_ns);
    struct stat status {};
    const int fd = open_regular(directory, unfinished, O_RDWR | O_CREAT | O_EXCL, status, mode);
    if (fd < 0) return -fd;
    file_ = {fd, status};
    int error = take_file_lock(fd, owner_lock_byte);
    bytes_ = 0;
    void* header = error == 0 ? map_more(to_file_blocks(sizeof(ring_file_header)), error) : nullptr;
    if (header != nullptr) {
      header_ = static_cast<ring_file_header*>(header);
      fill_header(prefix, flags);
      header_->begun_ns = begun_ns;
      store_clock(clock);
      // The file gets the name of a recoverable file only now that it is complete.
      if (renameat(directory, unfinished, directory, name_) != 0) error = errno;
    }
    if (error != 0) {
      unlinkat(directory, unfinished, 0);
      forget();
    }
    return error;
  }

  bool exists() const noexcept { return header_ != nullptr; }

  /// Returns a new ring block for `tid`, in private memory if the file cannot grow, or null without
  /// memory.
  /// @param error  set to 0 if the block survives the process, else to the reason why it does not.
  ring_block* add_ring(std::uint32_t tid, std::uint32_t capacity, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(capacity));
    error = ENOENT;
    void* memory = exists() ? map_more(bytes, error) : nullptr;
    if (memory == nullptr) memory = map_memory(bytes);
    if (memory == nullptr) return nullptr;
    auto* ring = static_cast<ring_block*>(memory);
    ring->tid.store(tid, std::memory_order_relaxed);
    ring->capacity = capacity;
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    return ring;
  }

  /// Returns a block for aggregates; parameters as for add_ring().
  aggregates_block* add_aggregates(std::uint32_t tid, std::uint32_t chain, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(aggregates_block_bytes);
    error = ENOENT;
    void* memory = exists() ? map_more(bytes, error) : nullptr;
    if (memory == nullptr) memory = map_memory(bytes);
    if (memory == nullptr) return nullptr;
    auto* block = static_cast<aggregates_block*>(memory);
    block->chain = chain;
    block->threads.store(1, std::memory_order_relaxed);
    block->tid.store(tid, std::memory_order_relaxed);
    block->header.bytes = bytes;
    block->header.kind.store(block_kind::aggregates, std::memory_order_release);
    return block;
  }

  /// Copies records from private memory to the file. Returns false if the file cannot grow.
  /// @param heads  copy the records before them.
  bool add_copy(ring_block& from, const lane_heads& heads) noexcept {
    if (!exists()) return false;
    int error = 0;
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(from.capacity));
    auto* ring = static_cast<ring_block*>(map_more(bytes, error));
    if (ring == nullptr) return false;
    ring->tid.store(from.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring->capacity = from.capacity;
    copy_records(from, heads, *ring);
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    munmap(ring, bytes);
    return true;
  }

  /// Unmaps a ring. Its place in the file stays, as an empty ring.
  static void unmap(ring_block* ring) noexcept { munmap(ring, ring->header.bytes); }

  /// Maps private memory at a ring's address.
  static void replace(ring_block* ring) noexcept {
    static_cast<void>(mmap(ring, ring->header.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  }

  /// Stores the names added since the last call. Returns false if the file cannot grow.
  LOTUS_DETAIL_COLD bool store_names(const name_table& names) noexcept {
    if (!exists()) return false;
    while (names_stored_ < names.size()) {
      const std::string_view text = names.entry(names_stored_ + 1).line_start();
      const std::size_t bytes = padded_name_bytes(text.size());
      if (names_left_ < bytes && !add_names_block()) return false;
      const std::uint64_t used = names_->used_bytes.load(std::memory_order_relaxed);
      const stored_name head{names_stored_ + 1, static_cast<std::uint32_t>(text.size())};
      std::memcpy(names_->entries() + used, &head, sizeof(head));
      std::memcpy(names_->entries() + used + sizeof(head), text.data(), text.size());
      names_->used_bytes.store(used + bytes, std::memory_order_release);
      names_left_ -= bytes;
      ++names_stored_;
    }
    return true;
  }
  std::uint32_t names_stored() const noexcept { return names_stored_; }

  void store_clock(const clock_map& clock) noexcept {
    if (!exists()) return;
    const std::uint32_t next = 1 - header_->clock_index.load(std::memory_order_relaxed);
    header_->clocks[next] = clock;
    header_->clock_index.store(next, std::memory_order_release);
  }

  /// Closes the file; ring blocks stay mapped, because their threads may be writing to them.
  /// @param keep  leave it on disk, because it holds records that are not in the logs.
  void finish(bool keep) noexcept {
    if (!exists()) return;
    const int directory = directory_->descriptor();
    if (!keep && directory >= 0) unlinkat(directory, name_, 0);
    forget();
  }

  /// In a forked child: releases the parent's file and lock.
  void forget() noexcept {
    file_.close();
    if (header_ != nullptr) munmap(header_, header_->header_bytes);
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    *this = ring_file{};
  }

 private:
  static constexpr std::size_t names_block_bytes = std::size_t{64} << 10;
  /// Holds about ten names whose durations span a few octaves.
  static constexpr std::size_t aggregates_block_bytes = std::size_t{16} << 10;

  /// Extends the file and maps the new part with all pages populated: a page for which the disk has
  /// no room must fail here, not as SIGBUS in a scope.
  LOTUS_DETAIL_COLD void* map_more(std::size_t bytes, int& error) noexcept {
    error = file_.holds() ? 0 : reopen();
    if (error == 0) error = reserve(file_.number(), bytes_, bytes);
    if (error != 0) return nullptr;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        file_.number(), static_cast<off_t>(bytes_));
    if (memory == MAP_FAILED) {
      error = errno;
      return nullptr;
    }
    bytes_ += bytes;
    return memory;
  }

  /// Reopens the file after the program closed the descriptor. The lock is still held: it belongs
  /// to the original opening of the file, and the mapped header keeps that alive. Returns 0 or
  /// errno.
  int reopen() noexcept {
    const int directory = directory_->descriptor();
    if (directory < 0) return -directory;
    struct stat status {};
    const int fd = open_regular(directory, name_, O_RDWR, status);
    if (fd < 0) return -fd;
    if (!file_.file().is(status)) {
      close(fd);
      return ESTALE;
    }
    file_ = {fd, status};
    return 0;
  }

  void fill_header(const char* prefix, std::uint32_t flags) noexcept {
    ring_file_header& h = *header_;
    h.layout = ring_file_layout;
    h.header_bytes = static_cast<std::uint32_t>(bytes_);
    h.pid = static_cast<std::uint32_t>(getpid());
    h.flags = flags;
    std::snprintf(h.version, sizeof(h.version), "%s", LOTUS_DETAIL_VERSION_STRING);
    std::snprintf(h.prefix, sizeof(h.prefix), "%s", prefix);
    std::memcpy(h.magic, ring_file_magic, sizeof(h.magic));
  }

  bool add_names_block() noexcept {
    int error = 0;
    void* memory = map_more(names_block_bytes, error);
    if (memory == nullptr) return false;
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    names_ = static_cast<names_block*>(memory);
    names_->header.bytes = names_block_bytes;
    names_->header.kind.store(block_kind::names, std::memory_order_release);
    names_left_ = names_block_bytes - sizeof(names_block);
    return true;
  }

  run_directory* directory_ = nullptr;
  owned_descriptor file_;
  char name_[64] = {};
  ring_file_header* header_ = nullptr;
  std::size_t bytes_ = 0;
  names_block* names_ = nullptr;
  std::size_t names_left_ = 0;
  std::uint32_t names_stored_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RING_FILE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: has() any thread; the caller of the other functions locks the ring file.
class kept_names {
 public:
  /// Returns true for all names if there is no ring file.
  bool has(std::uint32_t id) const noexcept { return id <= stored_.load(); }

  void store(ring_file& file, const name_table& names) noexcept {
    // A thread that adds a name from now on sees that it is not stored, and waits for the lock. A
    // name added before is already in the table.
    if (file.exists()) stored_.store(file.names_stored());
    file.store_names(names);
    stored_.store(file.exists() ? file.names_stored() : all);
  }

  void no_file() noexcept { stored_.store(all, std::memory_order_release); }

 private:
  static constexpr std::uint32_t all = ~std::uint32_t{0};

  std::atomic<std::uint32_t> stored_{all};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_KEPT_NAMES_HPP

// Moves the records that dead processes left in their ring files to the logs.
#ifndef LOTUS_STORE_LEFTOVERS_HPP
#define LOTUS_STORE_LEFTOVERS_HPP

// Recovers the records that dead processes left in their ring files.
#ifndef LOTUS_RECOVERY_RECOVERY_HPP
#define LOTUS_RECOVERY_RECOVERY_HPP

// Reads the aggregates of a ring file.
#ifndef LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP
#define LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP

// Copies the aggregates in a ring file, block by block.
#ifndef LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP
#define LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The ring file from which aggregates are read.
struct aggregates_source {
  int descriptor;          ///< not owned
  std::uint64_t begun_ns;  ///< from the file's header
  std::uint64_t rate;      ///< mean_rate() of its clock
  name_lookup names;       ///< starts of lines
};

using each_place = function_ref<void(std::uint64_t at, std::uint64_t bytes)>;

/// Copies of all aggregate blocks of a ring file.
class LOTUS_DETAIL_PER_MODULE dead_aggregates {
 public:
  /// @param state           `moving` if the file's process may still be running.
  /// @param for_each_block  calls its argument for the place of every block in the file.
  dead_aggregates(const aggregates_source& of, aggregate_state state,
                  function_ref<void(each_place)> for_each_block) noexcept
      : of_{of}, state_{state} {
    for_each_block([this](std::uint64_t at, std::uint64_t bytes) { add(at, bytes); });
    copies_.finish();
  }

  /// Returns the number of blocks that were ignored as implausible.
  std::uint64_t doubted() const noexcept { return doubted_; }

  /// See detail::for_each_section().
  int for_each_section(append_section append) const noexcept {
    if (copies_.failed()) return ENOMEM;
    return detail::for_each_section(
        {of_.begun_ns, 0}, of_.rate, of_.names,
        [this](each_chain each) { copies_.for_each_chain(state_, each); }, append);
  }

 private:
  /// Larger than all blocks that the library writes.
  static constexpr std::uint64_t max_block_bytes = std::uint64_t{256} << 10;

  void add(std::uint64_t at, std::uint64_t bytes) noexcept {
    if (bytes > max_block_bytes) {
      ++doubted_;
      return;
    }
    aggregates_block* const block = copies_.add(static_cast<std::size_t>(bytes));
    if (block == nullptr) return;
    if (!read_at(of_.descriptor, static_cast<void*>(block), static_cast<std::size_t>(bytes), at)) {
      copies_.fail();
    }
    block->header.bytes = bytes;  // the process may have changed it after its size was read
  }

  const aggregates_source of_;
  aggregate_state state_;
  aggregate_copies copies_;
  std::uint64_t doubted_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP

// Reads the ring file that a process left. All its contents are checked before they are used.
#ifndef LOTUS_RECOVERY_DEAD_RING_HPP
#define LOTUS_RECOVERY_DEAD_RING_HPP

// Copies one ring of a ring file to private memory, window by window.
//
// Anyone who can write to the directory may have created the file, and may change or shorten it
// while it is read. So the file is not mapped: each part is read once, the copy is checked, and
// only the copy is used.
#ifndef LOTUS_RECOVERY_RING_COPY_HPP
#define LOTUS_RECOVERY_RING_COPY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy of one ring; at most window_records of its records at a time.
class ring_copy {
 public:
  static constexpr std::size_t window_records = 4096;

  ring_copy() noexcept = default;
  ring_copy(const ring_copy&) = delete;
  ring_copy& operator=(const ring_copy&) = delete;
  ~ring_copy() {
    if (ring_ != nullptr) munmap(ring_, ring_block::bytes_for(window_records));
  }

  /// Copies the ring at `at` without its records. Returns false if the ring is damaged or there is
  /// no memory.
  /// @param bytes  size of the ring's block.
  bool copy(int fd, std::uint64_t at, std::uint64_t bytes) noexcept {
    if (ring_ == nullptr) {
      ring_ = static_cast<ring_block*>(map_memory(ring_block::bytes_for(window_records)));
    }
    if (ring_ == nullptr || bytes < sizeof(ring_block)) return false;
    if (!read_at(fd, static_cast<void*>(ring_), sizeof(ring_block), at)) return false;
    fd_ = fd;
    at_ = at;
    doubted_ = false;
    capacity_ = ring_->capacity;
    if (capacity_ == 0 || (capacity_ & (capacity_ - 1)) != 0) return false;
    if (ring_block::bytes_for(capacity_) > bytes) return false;
    if (ring_->commit_index.load(std::memory_order_relaxed) > 1) return false;
    ring_->capacity = window_records;
    for (log_position& log : ring_->commits[ring_->commit_index.load()].logs) {
      unsigned char appending = 0;  // a byte with an arbitrary value is not a valid bool
      std::memcpy(&appending, &log.appending, 1);
      log.appending = appending != 0;
    }
    const commit_point& c = ring_->committed();
    head_ = ring_->published[0].load(std::memory_order_relaxed);
    const std::uint64_t interrupt_head = ring_->published[1].load(std::memory_order_relaxed);
    if (head_ - c.tail[0] > capacity_ || interrupt_head - c.tail[1] > interrupt_lane_records) {
      return false;
    }
    std::uint64_t good = c.tail[1];
    while (good != interrupt_head && believable(ring_->slot(1, good))) ++good;
    if (good != interrupt_head) doubt(good);
    ring_->published[1].store(good, std::memory_order_relaxed);
    ring_->published[0].store(c.tail[0], std::memory_order_relaxed);
    return true;
  }

  /// Copies the next records after the committed ones. Returns false if there are no more valid
  /// ones.
  bool fetch() noexcept {
    const std::uint64_t at = ring_->committed().tail[0];
    const std::uint64_t in_window = window_records - (at & (window_records - 1));
    const std::uint64_t in_file = capacity_ - (at & (capacity_ - 1));
    std::uint64_t count = head_ - at < in_window ? head_ - at : in_window;
    if (count > in_file) count = in_file;
    const std::uint64_t first = at_ + sizeof(ring_block) + (at & (capacity_ - 1)) * sizeof(record);
    std::uint64_t good = at;
    if (count > 0 && read_at(fd_, &ring_->slot(0, at), count * sizeof(record), first)) {
      while (good != at + count && believable(ring_->slot(0, good))) ++good;
    }
    if (good != at + count) doubt(good);
    ring_->published[0].store(good, std::memory_order_relaxed);
    return good != at || left() > 0;
  }

  ring_block& ring() noexcept { return *ring_; }
  std::uint64_t file_offset() const noexcept { return at_; }
  /// How many records are complete but not in the logs.
  std::uint64_t left() const noexcept {
    const commit_point& c = ring_->committed();
    return (head_ - c.tail[0]) + (ring_->published[1].load(std::memory_order_relaxed) - c.tail[1]);
  }
  /// Whether the ring contains records that no process can have stored; the records after them are
  /// ignored.
  bool doubted() const noexcept { return doubted_; }

 private:
  static bool believable(const record& r) noexcept {
    return kind_of(r.tag).kind != event_kind::none;
  }

  void doubt(std::uint64_t good) noexcept {
    doubted_ = true;
    // Nothing after the first invalid record of this ring is used.
    const std::uint64_t tail = ring_->committed().tail[0];
    head_ = good - tail <= head_ - tail ? good : tail;
  }

  ring_block* ring_ = nullptr;
  int fd_ = -1;
  std::uint64_t at_ = 0;
  std::uint64_t capacity_ = 0;  ///< capacity of the ring in the file
  std::uint64_t head_ = 0;
  bool doubted_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RING_COPY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Whether a moment of CLOCK_MONOTONIC has passed; false if none is given.
inline bool is_over(std::optional<std::int64_t> until_ns) noexcept {
  return until_ns && clock_ns(CLOCK_MONOTONIC) > *until_ns;
}

/// The ring file of a dead process. While it is being recovered, it is locked against other
/// processes.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,           ///< another process has recovered and deleted it meanwhile
    living,         ///< its process is running
    busy,           ///< another process is recovering it at this moment
    damaged,        ///< not a ring file
    other_version,  ///< written by another version of the library
    refused,        ///< see error()
    doubted,        ///< some of its contents are damaged and exist nowhere else
  };

  /// Opens `name` in `directory` (borrowed).
  /// @param writable  to recover and delete it; otherwise only to read it.
  LOTUS_DETAIL_COLD state open(int directory, const char* name, bool writable,
                               const file_owners& owners) noexcept {
    fd_ = writable ? open_own(directory, name, O_RDWR, owners, status_)
                   : open_regular(directory, name, O_RDONLY, status_);
    if (fd_ < 0) return not_opened(directory, name);
    if (file_lock_is_taken(fd_, owner_lock_byte)) return state::living;
    if (writable) {
      error_ = take_file_lock(fd_, recovery_lock_byte);
      if (error_ != 0) return error_ == EAGAIN ? state::busy : state::refused;
    } else if (being_recovered()) {
      return state::busy;
    }
    if (fstat(fd_, &status_) != 0 || status_.st_nlink == 0) return state::gone;
    return check_header();
  }

  /// Opens the file for reading whether or not its process runs. Changes that the process makes
  /// meanwhile may be seen in part.
  state open_any(int directory, const char* name, const file_owners& owners) noexcept {
    fd_ = open_own(directory, name, O_RDONLY, owners, status_);
    if (fd_ >= 0) return check_header();
    error_ = -fd_;
    return error_ == ENOENT ? state::gone : state::refused;
  }

  dead_ring_file() noexcept = default;
  dead_ring_file(const dead_ring_file&) = delete;
  dead_ring_file& operator=(const dead_ring_file&) = delete;
  ~dead_ring_file() {
    if (header_ != nullptr) munmap(header_, sizeof(ring_file_header));
    if (fd_ >= 0) close(fd_);
  }

  /// Why the file was refused; file_error_text() knows it.
  int error() const noexcept { return error_; }
  const ring_file_header& header() const noexcept { return *header_; }
  const struct stat& status() const noexcept { return status_; }
  int descriptor() const noexcept { return fd_; }

  /// Whether another process has recovered the file since it was opened for reading, or is doing
  /// so.
  bool being_recovered() const noexcept {
    struct stat now {};
    return file_lock_is_taken(fd_, recovery_lock_byte) || fstat(fd_, &now) != 0 ||
           now.st_nlink == 0;
  }

  /// Finds rings, names and aggregates up to the first damaged block. Ignores what exceeds the
  /// limits of a real process.
  /// @param until_ns  of CLOCK_MONOTONIC; none: unlimited.
  /// @return 0, ENOMEM, or ETIME if the time was exceeded.
  LOTUS_DETAIL_COLD int read_blocks(std::optional<std::int64_t> until_ns = {}) noexcept {
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    std::uint64_t at = header_->header_bytes;
    for (std::size_t blocks = 0; size - at >= least_page_bytes; ++blocks) {
      block_header block{};
      const bool read = read_at(fd_, static_cast<void*>(&block), sizeof(block), at);
      const block_kind kind = block.kind.load(std::memory_order_relaxed);
      if (read && kind == block_kind::none) return 0;
      if (!read || block.bytes < least_page_bytes || block.bytes > size - at ||
          block.bytes % least_page_bytes != 0) {
        damaged_ = true;
        return 0;
      }
      if (blocks == most_blocks) {
        too_much_ = true;
        return 0;
      }
      if (is_over(until_ns)) return ETIME;
      switch (kind) {
        case block_kind::ring: {
          auto* place = static_cast<ring_place*>(rings_.add(sizeof(ring_place)));
          if (place == nullptr) return ENOMEM;
          *place = {at, block.bytes};
          break;
        }
        case block_kind::aggregates: {
          auto* place = static_cast<ring_place*>(aggregates_.add(sizeof(ring_place)));
          if (place == nullptr) return ENOMEM;
          *place = {at, block.bytes};
          break;
        }
        case block_kind::names:
          if (!read_names(at, block.bytes)) {
            damaged_ = true;
            return 0;
          }
          break;
        default:
          damaged_ = true;
          return 0;
      }
      at += block.bytes;
    }
    return 0;
  }

  /// Calls `each(ring_copy&)` for every valid ring.
  /// @return how many rings are damaged completely or in part; all blocks that were ignored count
  /// as one.
  std::uint64_t for_each_ring(function_ref<void(ring_copy&)> each) noexcept {
    std::uint64_t doubted = too_much_ || damaged_ ? 1 : 0;
    ring_copy copy;
    for (std::size_t i = 0; i < rings_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(rings_.data())[i];
      const bool sound = copy.copy(fd_, place.at, place.bytes);
      if (sound) each(copy);
      if (!sound || copy.doubted()) ++doubted;
    }
    return doubted;
  }

  /// Calls `each(at, bytes)` for every block of aggregates.
  void for_each_aggregates_block(
      function_ref<void(std::uint64_t at, std::uint64_t bytes)> each) const noexcept {
    for (std::size_t i = 0; i < aggregates_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(aggregates_.data())[i];
      each(place.at, place.bytes);
    }
  }

  /// The clock to convert the records with.
  tick_converter clock() const noexcept { return tick_converter{clocks(), nullptr}; }
  const clock_map& clocks() const noexcept {
    return header_->clocks[header_->clock_index.load(std::memory_order_relaxed) & 1];
  }

  /// Whether its logs are compact.
  bool compact() const noexcept { return (header_->flags & compact_flag) != 0; }

  /// The beginning of a line with the name `id`.
  std::string_view line_start(std::uint64_t id) const noexcept {
    if (id == unnamed_id) return unnamed_line_start;
    if (id == 0 || id > names_.bytes() / sizeof(name_place)) return lost_line_start;
    const name_place& n = reinterpret_cast<const name_place*>(names_.data())[id - 1];
    return {text_.data() + n.at, n.bytes};
  }
  name_lookup names() const noexcept {
    return {this, [](const void* file, std::uint64_t id) noexcept {
              return static_cast<const dead_ring_file*>(file)->line_start(id);
            }};
  }

 private:
  struct ring_place {
    std::uint64_t at;
    std::uint64_t bytes;
  };
  struct name_place {
    std::uint32_t at;  ///< position in text_
    std::uint32_t bytes;
  };
  /// Maximum number of blocks. Each ring of a running process is a mapping next to its thread's
  /// stack, and Linux allows a process 65,530 mappings.
  static constexpr std::size_t most_blocks = std::size_t{1} << 16;
  /// Maximum size of all names: 300,000 of the longest ones, or as many usual ones as a process can
  /// have.
  static constexpr std::size_t most_text_bytes = std::size_t{256} << 20;
  /// The library's blocks are smaller; a larger one is not read.
  static constexpr std::size_t most_names_block_bytes = std::size_t{1} << 20;

  /// A file that cannot be written may still belong to a running process.
  state not_opened(int directory, const char* name) noexcept {
    error_ = -fd_;
    if (error_ == ENOENT) return state::gone;
    fd_ = open_regular(directory, name, O_RDONLY, status_);
    if (fd_ >= 0 && file_lock_is_taken(fd_, owner_lock_byte)) return state::living;
    return state::refused;
  }

  LOTUS_DETAIL_COLD state check_header() noexcept {
    header_ = static_cast<ring_file_header*>(map_memory(sizeof(ring_file_header)));
    if (header_ == nullptr) {
      error_ = ENOMEM;
      return state::refused;
    }
    const ring_file_header& h = *header_;
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    if (!read_at(fd_, static_cast<void*>(header_), offsetof(ring_file_header, pid), 0) ||
        std::memcmp(h.magic, ring_file_magic, sizeof(h.magic)) != 0) {
      return state::damaged;
    }
    if (h.layout != ring_file_layout) return state::other_version;
    if (!read_at(fd_, static_cast<void*>(header_), sizeof(ring_file_header), 0)) {
      return state::damaged;
    }
    const std::uint32_t index = h.clock_index.load(std::memory_order_relaxed);
    const bool usable = h.layout == ring_file_layout &&
                        h.header_bytes >= sizeof(ring_file_header) && h.header_bytes <= size &&
                        h.header_bytes % least_page_bytes == 0 && is_prefix(h.prefix) &&
                        index <= 1 && h.clocks[index].valid();
    return usable ? state::opened : state::damaged;
  }

  /// Whether `prefix` is a plain file name, as it precedes "_main_pid_1".
  static bool is_prefix(const char (&prefix)[max_prefix_bytes + 1]) noexcept {
    const void* const end = std::memchr(prefix, '\0', sizeof(prefix));
    if (end == nullptr || end == prefix) return false;
    for (const char* c = prefix; c != end; ++c) {
      if (*c == '/' || static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    }
    return true;
  }

  /// Returns false if the block is damaged: names are numbered consecutively, and a name that
  /// occurs again must be the same.
  LOTUS_DETAIL_COLD bool read_names(std::uint64_t at, std::uint64_t bytes) noexcept {
    std::uint64_t used = 0;
    if (bytes > most_names_block_bytes ||
        !read_at(fd_, &used, sizeof(used), at + offsetof(names_block, used_bytes)) ||
        used > bytes - sizeof(names_block)) {
      return false;
    }
    growing_memory block;
    void* const copy = block.add(static_cast<std::size_t>(used) + 1);
    if (copy == nullptr || !read_at(fd_, copy, used, at + sizeof(names_block))) return false;
    for (std::uint64_t i = 0; used - i >= sizeof(stored_name);) {
      if (names_.bytes() / sizeof(name_place) == name_table::limit ||
          text_.bytes() > most_text_bytes) {
        too_much_ = true;
        return true;
      }
      stored_name head{};
      std::memcpy(&head, block.data() + i, sizeof(head));
      if (head.bytes > used - i - sizeof(head)) return false;
      const std::string_view text{block.data() + i + sizeof(head), head.bytes};
      const std::size_t known = names_.bytes() / sizeof(name_place);
      const bool again = head.id >= 1 && head.id <= known;
      if (again ? text != line_start(head.id) : head.id != known + 1 || !add_name(text)) {
        return false;
      }
      i += padded_name_bytes(head.bytes);
      if (i > used) return false;
    }
    return true;
  }

  /// Escapes a name that the library did not write itself.
  bool add_name(std::string_view start) noexcept {
    char line[max_line_name_bytes + 1];
    if (!is_line_start(start)) {
      const std::size_t bytes = write_line_name(start, line);
      line[bytes] = ',';
      start = {line, bytes + 1};
    }
    auto* place = static_cast<name_place*>(names_.add(sizeof(name_place)));
    void* const text = text_.add(start.size());
    if (place == nullptr || text == nullptr) return false;
    std::memcpy(text, start.data(), start.size());
    *place = {static_cast<std::uint32_t>(text_.bytes() - start.size()),
              static_cast<std::uint32_t>(start.size())};
    return true;
  }

  int fd_ = -1;
  int error_ = 0;
  struct stat status_ {};
  ring_file_header* header_ = nullptr;
  growing_memory rings_;       ///< of ring_place
  growing_memory aggregates_;  ///< of ring_place
  growing_memory names_;       ///< of name_place, by id - 1
  growing_memory text_;
  bool too_much_ = false;
  bool damaged_ = false;  ///< a block and everything after it were ignored
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_RING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies the aggregates. @param file  not owned; its blocks must have been read.
/// @param state  `moving` if the file's process may still be running.
LOTUS_DETAIL_COLD inline dead_aggregates read_aggregates(const dead_ring_file& file,
                                                         aggregate_state state) noexcept {
  return dead_aggregates{
      {file.descriptor(), file.header().begun_ns, mean_rate(file.clocks()), file.names()},
      state,
      [&file](auto&& each) { file.for_each_aggregates_block(each); }};
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP

// Writes records as blocks of a compact log.
#ifndef LOTUS_FORMAT_COMPACT_FILLER_HPP
#define LOTUS_FORMAT_COMPACT_FILLER_HPP

#include <algorithm>

// Compact logs: the layout of a block of records and the encoding of its numbers.
//
// A compact log is a chain of blocks. A block with the flag compact_begins_anew depends on no
// earlier block; any other block uses the names announced since the last such block and continues
// from the last numbers.
#ifndef LOTUS_FORMAT_COMPACT_LAYOUT_HPP
#define LOTUS_FORMAT_COMPACT_LAYOUT_HPP

// Encodes 64-bit numbers in as few bytes as needed: LEB128 (DWARF 5, section 7.6).
#ifndef LOTUS_FORMAT_VARINT_HPP
#define LOTUS_FORMAT_VARINT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Maps small numbers of either sign to small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
constexpr std::uint64_t to_zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U);
}
constexpr std::int64_t from_zigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (0 - (value & 1U)));
}

/// Maximum number of bytes of an encoded number.
inline constexpr std::size_t varint_bytes = 10;

/// Writes seven bits per byte, the lowest first; the highest bit is set in all bytes but the last.
/// Returns the end; touches at least 2 and at most varint_bytes bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_varint(char* out, std::uint64_t value) noexcept {
  // Most numbers need one or two bytes in random order, so a branch would often be mispredicted.
  if (LOTUS_DETAIL_LIKELY(value < 0x4000)) {
    const auto more = static_cast<unsigned>(value > 0x7F);
    const auto both =
        static_cast<std::uint16_t>((value & 0x7FU) | more << 7U | (value >> 7U) << 8U);
    std::memcpy(out, &both, sizeof(both));
    return out + 1 + more;
  }
  for (; value >= 0x80; value >>= 7U) *out++ = static_cast<char>(value | 0x80U);
  *out++ = static_cast<char>(value);
  return out;
}

/// Reads what put_varint() wrote, without checking where the input ends; returns the position after
/// it. Reads at most varint_bytes, whatever they contain.
LOTUS_DETAIL_ALWAYS_INLINE const char* take_varint(const char* from,
                                                   std::uint64_t& value) noexcept {
  std::uint64_t byte = static_cast<unsigned char>(*from++);
  value = byte & 0x7FU;
  for (unsigned shift = 7; byte >= 0x80 && shift < 64; shift += 7) {
    byte = static_cast<unsigned char>(*from++);
    value |= (byte & 0x7FU) << shift;
  }
  return from;
}

/// Same for untrusted bytes that end at `end`; returns null if no number ends before `end`.
inline const char* take_varint(const char* from, const char* end, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && from != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*from++);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return from;
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_VARINT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char compact_block_magic[4] = {'L', 'T', 'S', 'C'};
inline constexpr std::uint8_t compact_version = 2;
inline constexpr std::uint8_t compact_begins_anew = 1;
/// Smaller codes are kinds of records without a name; larger ones count the announced names.
inline constexpr std::uint32_t first_named_code = 16;
/// Stands in place of a record's code and means that a name follows.
inline constexpr std::uint32_t announcement_code = 0;

constexpr bool code_fits(const record_kind& row) noexcept {
  if (has_name(row)) return row.code == 0;
  return row.code != announcement_code && row.code < first_named_code;
}
constexpr bool code_is_its_own(const record_kind& row) noexcept {
  for (const record_kind& other : record_kinds) {
    if (row.code != 0 && row.code == other.code && row.kind != other.kind) return false;
  }
  return true;
}
static_assert(row_checks::all(code_fits),
              "a kind without a name has a code from 1 to 15, by which compact blocks identify it");
static_assert(row_checks::all(code_is_its_own), "a code identifies one kind");

/// The kind for each code below first_named_code; event_kind::none for unused codes.
inline constexpr auto kind_by_code = [] {
  std::array<event_kind, first_named_code> kinds{};
  for (const record_kind& row : record_kinds) {
    if (row.code != 0) kinds[row.code] = row.kind;
  }
  return kinds;
}();

struct compact_block_header {
  char magic[4];
  std::uint32_t bytes;  ///< size of the block, this header included
  std::uint8_t version;
  std::uint8_t flags;
  std::uint8_t roles;  ///< a bit for each log_role that the records have lines in
  std::uint8_t unused;
  std::uint32_t records;
  std::int64_t base_ns;    ///< since the epoch: the reference for the first record's time
  std::int64_t first_ns;   ///< no record begins earlier
  std::int64_t last_ns;    ///< no record ends later
  std::uint64_t checksum;  ///< of all other bytes
};
static_assert(sizeof(compact_block_header) == 48 &&
                  std::is_trivially_copyable_v<compact_block_header>,
              "it stands in files");

/// Difference of two 64-bit numbers modulo 2^64.
constexpr std::int64_t wrapped_difference(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b);
}

/// Encoded instead of a record's time if the record ends before the previous one; the distance
/// follows.
inline constexpr std::uint64_t earlier_time = 3;

/// Encodes the time of a record that ends no earlier than the previous one.
constexpr std::uint64_t time_by_end(std::uint64_t since) noexcept {
  return since * 2;
}

/// Encodes a record's time by its end, or by its begin if that is shorter, as for a long span that
/// begins shortly after the previous record ends. Returns the end of the output; touches at most 20
/// bytes.
/// @param since  ns from the end of the previous record to the end of this one; wraps around if
/// negative.
inline char* put_time(char* out, std::uint64_t since, std::uint64_t duration) noexcept {
  if (since > INT64_MAX) return put_varint(put_varint(out, earlier_time), 0 - since);
  const std::uint64_t to_begin = since - duration;  // wraps around if negative
  return put_varint(out, to_begin < since / 2 ? to_begin * 4 + 1 : time_by_end(since));
}

/// Decodes time_by_end() or a begin from put_time(), but not earlier_time: ns from the previous
/// record's end to this one's.
constexpr std::uint64_t end_of_told_time(std::uint64_t told, std::uint64_t duration) noexcept {
  return (told & 1U) == 0 ? told >> 1U : (told >> 2U) + duration;
}

/// Hashes words of 8 bytes. Two independent chains, one for every other word, keep the processor's
/// multiplier busy.
inline std::uint64_t mix_bytes(const char* bytes, std::size_t count) noexcept {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15U;
  std::uint64_t sum = count;
  std::uint64_t other = ~sum;
  std::size_t at = 0;
  for (; count - at >= 16; at += 16) {
    std::uint64_t words[2];
    std::memcpy(words, bytes + at, 16);
    sum = (sum ^ words[0]) * odd;
    other = (other ^ words[1]) * odd;
    sum ^= sum >> 29U;
    other ^= other >> 29U;
  }
  sum = (sum ^ other) * odd;
  for (; count - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    sum = (sum ^ word) * odd;
    sum ^= sum >> 29U;
  }
  std::uint64_t last = 0;
  if (at < count) std::memcpy(&last, bytes + at, count - at);
  sum = (sum ^ last) * odd;
  return sum ^ (sum >> 32U);
}

/// Checksum of a block. Detects damage, not manipulation.
inline std::uint64_t block_checksum(const char* block, std::size_t bytes) noexcept {
  constexpr std::size_t head = sizeof(compact_block_header);
  return mix_bytes(block, offsetof(compact_block_header, checksum)) * 3 +
         mix_bytes(block + head, bytes - head);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_COMPACT_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a reader of one compact log knows after its blocks so far: names with their codes, and last
/// numbers. All zeros is the initial state. Thread safety: none.
class compact_chain {
 public:
  struct entry {
    std::uint64_t key;  ///< 0: unused entry
    std::uint32_t code;
    std::uint32_t unused;
    std::uint64_t last;  ///< last number or value
  };

  /// Whether the log to be appended to is that of the last block and still ends with that block.
  bool goes_on(const log_position& at) const noexcept {
    return blocks_ > 0 && blocks_ < most_blocks && at.inode == inode_ && at.length == length_;
  }
  void begin_anew() noexcept { std::memset(static_cast<void*>(this), 0, sizeof(*this)); }
  void appended(const log_position& at) noexcept {
    inode_ = at.inode;
    length_ = at.length;
    ++blocks_;
  }

  /// The entry of a name in a kind; an entry with key 0 is unused. Null if the table is full.
  entry* find(event_kind kind, std::uint32_t name, std::uint64_t& key) noexcept {
    key = key_of(kind, name);
    for (std::uint64_t i = home_of(kind, name);; ++i) {
      entry& e = entries_[i % slots];
      if (e.key == key) return &e;
      if (e.key == 0) return used_ < most_names ? &e : nullptr;
    }
  }
  /// The code of an operation's name, or 0 if the name is not in its first slot.
  LOTUS_DETAIL_ALWAYS_INLINE std::uint32_t code_of_operation(std::uint32_t name) const noexcept {
    const entry& e = entries_[home_of(event_kind::operation, name) % slots];
    return e.key == key_of(event_kind::operation, name) ? e.code : 0;
  }
  void take(entry& e, std::uint64_t key) noexcept { e = {key, first_named_code + used_++, 0, 0}; }

  std::uint64_t last_of[first_named_code];  ///< first field, by code of kinds without a name
  std::uint64_t last_second;                ///< second field of any kind

 private:
  static constexpr std::uint64_t key_of(event_kind kind, std::uint32_t name) noexcept {
    return (std::uint64_t{1} << 63U) | (static_cast<std::uint64_t>(kind) << 32U) | name;
  }
  static constexpr std::uint64_t home_of(event_kind kind, std::uint32_t name) noexcept {
    return std::uint64_t{name} * 31 + static_cast<std::uint64_t>(kind);
  }

  static constexpr std::uint32_t slots = 1024;
  static constexpr std::uint32_t most_names = 700;
  /// A damaged block makes the following blocks unreadable up to the next new beginning: at most
  /// this many.
  static constexpr std::uint32_t most_blocks = 64;

  std::uint64_t inode_;
  std::uint64_t length_;
  std::uint32_t blocks_;
  std::uint32_t used_;
  entry entries_[slots];
};

/// Writes records as one block per append, all to the log with the role log_role::side. Same
/// interface as line_filler.
template <class Names>
class compact_filler {
 public:
  compact_filler(const tick_converter& clock, const Names& names, compact_chain& chain,
                 drain_buffer& buffer) noexcept
      : clock_{clock}, names_{names}, chain_{chain}, block_{buffer.text[0]} {
    static_assert(max_append_bytes >= 2 * most_record_bytes, "a block holds a record");
  }

  template <class Sink>
  int begin(Sink& sink, std::uint32_t loader) noexcept {
    if (const int error = sink.begin(log_role::side, loader); error != 0) return error;
    const bool anew = full_of_names_ || !chain_.goes_on(sink.position(log_role::side));
    if (anew) chain_.begin_anew();
    full_of_names_ = false;
    head_ = {};
    head_.flags = anew ? compact_begins_anew : std::uint8_t{0};
    head_.first_ns = INT64_MAX;
    head_.last_ns = INT64_MIN;
    end_ = block_ + sizeof(head_);
    return 0;
  }

  /// Returns false if the buffer has no room left.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    if (static_cast<std::size_t>(block_ + max_append_bytes - end_) < most_record_bytes) {
      return false;
    }
    const record_kind& kind = kind_of(r.tag);
    std::uint64_t* last = &chain_.last_of[kind.code];
    char* p = end_;
    std::uint32_t code = kind.code;
    if (code == 0) {
      const std::uint32_t name = has_name(kind) ? name_of(kind, r.tag) : 0;
      std::uint64_t key = 0;
      compact_chain::entry* const e = chain_.find(kind.kind, name, key);
      if (LOTUS_DETAIL_UNLIKELY(e == nullptr)) {
        full_of_names_ = true;
        return false;
      }
      if (LOTUS_DETAIL_UNLIKELY(e->key == 0)) {
        chain_.take(*e, key);
        p = announce(p, kind, has_name(kind) ? names_(name) : kind.prefix);
      }
      last = &e->last;
      code = e->code;
    }
    end_ = put_record(put_varint(p, code), r, kind, *last);
    ++head_.records;
    head_.roles |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind.role));
    if (!kind.beside.empty()) head_.roles |= beside_bit;
    return true;
  }

  /// Adds a run of operations, the most frequent records, whose names are already announced. Stops
  /// at the first record that is something else or does not fit and returns its position. Does the
  /// same as add() but keeps all state in local variables: writes through a char pointer may alias
  /// any member, so members would be reloaded after each.
  std::uint64_t add_operations(ring_block& ring, std::size_t lane, std::uint64_t at,
                               std::uint64_t head) noexcept {
    if (lane != 0 || head_.records == 0) return at;
    const record* const slots = ring.slots();
    const std::uint64_t mask = ring.capacity - 1;
    const clock_segment clock = clock_.newest();
    const char* const last_begin = block_ + max_append_bytes - most_record_bytes;
    const std::uint64_t begin = at;
    std::int64_t first_ns = head_.first_ns;
    std::int64_t last_ns = head_.last_ns;
    std::int64_t time_before_ns = time_before_ns_;
    char* p = end_;
    for (; at != head && p <= last_begin; ++at) {
      const record& r = slots[at & mask];
      if (r.tag.kind() != event_kind::operation || r.begin_ticks < clock.start_ticks) break;
      const std::uint32_t code =
          chain_.code_of_operation(static_cast<std::uint32_t>(r.tag.value()));
      const std::int64_t start_ns = clock.to_ns(r.begin_ticks);
      const std::int64_t end_ns = clock.to_ns(r.end_ticks);
      if (code == 0 || start_ns < 0 || end_ns < start_ns) break;
      const std::uint64_t since =
          static_cast<std::uint64_t>(end_ns) - static_cast<std::uint64_t>(time_before_ns);
      p = put_operation(p, code, since, static_cast<std::uint64_t>(end_ns - start_ns));
      time_before_ns = end_ns;
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, end_ns);
    }
    if (at == begin) return at;
    end_ = p;
    head_.first_ns = first_ns;
    head_.last_ns = last_ns;
    time_before_ns_ = time_before_ns;
    head_.records += static_cast<std::uint32_t>(at - begin);
    head_.roles |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(log_role::worker));
    return at;
  }

  /// Appends the block. Returns 0 or the sink's error; then nothing is appended.
  template <class Sink>
  int append(Sink& sink, std::uint32_t) noexcept {
    if (head_.records == 0) return 0;
    std::memcpy(head_.magic, compact_block_magic, sizeof(head_.magic));
    head_.version = compact_version;
    head_.bytes = static_cast<std::uint32_t>(end_ - block_);
    std::memcpy(block_, &head_, sizeof(head_));
    const std::uint64_t checksum = block_checksum(block_, head_.bytes);
    std::memcpy(block_ + offsetof(compact_block_header, checksum), &checksum, sizeof(checksum));
    const int error = sink.append(log_role::side, block_, head_.bytes);
    if (error != 0) failed();
    return error;
  }

  template <class Sink>
  void committed(const Sink& sink) noexcept {
    if (head_.records > 0) chain_.appended(sink.position(log_role::side));
  }
  /// Starts a new chain, because the last block may not be in the log.
  void failed() noexcept { chain_.begin_anew(); }

 private:
  static constexpr std::uint8_t beside_bit = 1U << static_cast<unsigned>(log_role::side);
  static constexpr std::size_t most_record_bytes = max_line_name_bytes + 1 + 80;

  /// @param since  ns from the end of the previous record to the end of this one; wraps around if
  /// negative.
  LOTUS_DETAIL_ALWAYS_INLINE static char* put_operation(char* p, std::uint32_t code,
                                                        std::uint64_t since,
                                                        std::uint64_t duration) noexcept {
    // The usual case: at most five bytes, written as one word.
    if (LOTUS_DETAIL_LIKELY((since | duration / 2) < 0x2000 && code < 0x80)) {
      const std::uint64_t time = time_by_end(since);
      const std::uint64_t more_time = time > 0x7F ? 1 : 0;
      const std::uint64_t more_duration = duration > 0x7F ? 1 : 0;
      const std::uint64_t a = (time & 0x7FU) | more_time << 7U | (time >> 7U) << 8U;
      const std::uint64_t b = (duration & 0x7FU) | more_duration << 7U | (duration >> 7U) << 8U;
      const std::uint64_t word = code | a << 8U | b << (16 + 8 * more_time);
      std::memcpy(p, &word, sizeof(word));
      return p + 3 + more_time + more_duration;
    }
    return put_varint(put_time(put_varint(p, code), since, duration), duration);
  }

  LOTUS_DETAIL_COLD static char* announce(char* p, const record_kind& kind,
                                          std::string_view name) noexcept {
    p = put_varint(p, announcement_code);
    p = put_varint(p, static_cast<std::uint8_t>(kind.kind));
    p = put_varint(p, name.size());
    std::memcpy(p, name.data(), name.size());
    return p + name.size();
  }

  /// Writes a number as its difference to the previous one.
  LOTUS_DETAIL_ALWAYS_INLINE static char* put_number(char* p, std::uint64_t number,
                                                     std::uint64_t& last) noexcept {
    p = put_varint(p, to_zigzag(wrapped_difference(number, last)));
    last = number;
    return p;
  }

  LOTUS_DETAIL_ALWAYS_INLINE char* put_record(char* p, const record& r, const record_kind& kind,
                                              std::uint64_t& last) noexcept {
    const bool lasts = kind.lasts();
    const tick_converter::span s =
        clock_.convert(r.begin_ticks, lasts ? r.end_ticks : r.begin_ticks);
    const std::int64_t start_ns = s.start_ns < 0 ? 0 : s.start_ns;
    std::int64_t duration_ns = s.duration_ns < 0 ? 0 : s.duration_ns;
    if (kind.duration == written_duration::measured_unlike_placeholder &&
        duration_ns == placeholder_ns) {
      ++duration_ns;
    }
    const auto time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(start_ns) +
                                                   static_cast<std::uint64_t>(duration_ns));
    if (head_.records == 0) head_.base_ns = time_before_ns_ = time_ns;
    p = put_time(p,
                 static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(time_before_ns_),
                 static_cast<std::uint64_t>(duration_ns));
    time_before_ns_ = time_ns;
    head_.first_ns = std::min(head_.first_ns, start_ns);
    head_.last_ns = std::max(head_.last_ns, time_ns);
    if (lasts) p = put_varint(p, static_cast<std::uint64_t>(duration_ns));
    if (LOTUS_DETAIL_LIKELY(kind.kind == event_kind::operation)) return p;
    return put_fields(p, r, kind, last);
  }

  char* put_fields(char* p, const record& r, const record_kind& kind,
                   std::uint64_t& last) noexcept {
    if (kind.fields[0].quantity == record_quantity::none) return p;
    p = put_field(p, r, kind.fields[0], last);
    if (kind.fields[1].quantity == record_quantity::none) return p;
    return put_field(p, r, kind.fields[1], chain_.last_second);
  }

  LOTUS_DETAIL_ALWAYS_INLINE static char* put_field(char* p, const record& r,
                                                    const record_field& field,
                                                    std::uint64_t& last) noexcept {
    const std::uint64_t number = number_of(field, r);
    switch (field.coding) {
      case field_coding::difference:
        return put_number(p, number, last);
      case field_coding::one_more:
        return put_varint(p, number == missing_number(field) ? 0 : number + 1);
      case field_coding::plain:
        break;
    }
    return put_varint(p, number);
  }

  const tick_converter& clock_;
  const Names& names_;
  compact_chain& chain_;
  char* const block_;
  char* end_ = nullptr;
  compact_block_header head_{};
  std::int64_t time_before_ns_ = 0;
  bool full_of_names_ = false;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_COMPACT_FILLER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Which files and records of a directory are recovered.
struct recovery_limits {
  const char* prefix = nullptr;          ///< only files of runs with this prefix; null: all
  std::uint32_t tid = 0;                 ///< only rings of this thread; 0: all
  std::optional<std::int64_t> until_ns;  ///< of CLOCK_MONOTONIC; the rest is left for later
  bool advance = true;  ///< recover at least a part, even if the time is already up
};

struct recovery {
  std::uint64_t files = 0;          ///< dead ring files that were read to their end
  std::uint64_t records = 0;        ///< lines appended to the logs
  std::uint64_t living = 0;         ///< ring files left alone because their processes are running
  std::uint64_t busy = 0;           ///< ring files that another process is recovering
  std::uint64_t damaged = 0;        ///< files that are not ring files
  std::uint64_t other_version = 0;  ///< ring files of another version of the library
  std::uint64_t refused = 0;        ///< ring files that could not be opened
  std::uint64_t doubted = 0;        ///< rings that were damaged completely or in part
  std::uint64_t lost = 0;           ///< records that were only in the memory of dead processes
  bool left = false;                ///< the time was up before everything was recovered
  int error = 0;                    ///< of the first log that failed; file_error_text() knows it
  char failed_log[log_name_bytes] = {};
};

/// Where a dead process's logs are, and how to create them: like its ring file.
inline log_folder folder_of(int directory, const dead_ring_file& file, const char* info) noexcept {
  const struct stat& status = file.status();
  return {directory,
          file.header().prefix,
          file_owners::only(status.st_uid),
          status.st_mode & 0666U,
          info,
          file.names(),
          file.compact(),
          &status};
}

/// Appends the records of one ring to its logs.
/// @param info  name of the information file of its process.
/// @return 0, ETIME, or an error that file_error_text() knows.
LOTUS_DETAIL_COLD inline int recover_ring(int directory, dead_ring_file& file, const char* info,
                                          ring_copy& copy, std::optional<std::int64_t> until_ns,
                                          recovery& result, drain_buffer& buffer) noexcept {
  open_log opened[log_roles];
  const log_folder folder = folder_of(directory, file, info);
  log_appender logs{folder, copy.ring(), opened, file.descriptor(), copy.file_offset()};
  logs.undo_torn();
  const name_lookup names = file.names();
  const tick_converter clock = file.clock();
  const auto drain_all = [&](auto& fill) {
    int error = 0;
    while (error == 0 && copy.fetch()) {
      const lane_heads heads{copy.ring()};
      const std::uint64_t before = heads.beyond(copy.ring().committed());
      error = drain_ring(copy.ring(), heads, fill, logs);
      result.records += before - heads.beyond(copy.ring().committed());
      if (error == 0 && copy.left() > 0 && is_over(until_ns)) error = ETIME;
    }
    return error;
  };
  int error = ENOMEM;
  if (!file.compact()) {
    line_filler fill{clock, names, buffer};
    error = drain_all(fill);
  } else if (void* const chain = map_memory(sizeof(compact_chain))) {
    compact_filler fill{clock, names, *static_cast<compact_chain*>(chain), buffer};
    error = drain_all(fill);
    munmap(chain, sizeof(compact_chain));
  }
  if (error != 0 && error != ETIME && result.error == 0) {
    result.error = error;
    std::snprintf(result.failed_log, sizeof(result.failed_log), "%s", logs.name());
  }
  close_all(opened);
  return error;
}

/// Appends a dead process's aggregates to the files that it would have written itself. Appending
/// the same aggregates twice does no harm: readers count them once. Returns 0 or an error that
/// file_error_text() knows.
inline int recover_aggregates(int directory, const dead_ring_file& file,
                              recovery& result) noexcept {
  const std::uint32_t flags = file.header().flags | aggregates_recovered_flag;
  if (file.header().flags == flags) return 0;
  const log_folder folder = folder_of(directory, file, nullptr);
  loader_folders folders{folder};
  const dead_aggregates found = read_aggregates(file, aggregate_state::whole);
  result.doubted += found.doubted();
  const int error = found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    const int failed = append_aggregates(folder, folders, loader, file.header().pid, section);
    if (failed != 0 && result.error == 0) {
      put_aggregates_file_name(result.failed_log, file.header().prefix, file.header().pid);
    }
    return failed;
  });
  // Marks the file, so that the aggregates of a ring file that is kept are not appended at each
  // start.
  if (error == 0 && pwrite(file.descriptor(), &flags, sizeof(flags),
                           offsetof(ring_file_header, flags)) != sizeof(flags)) {
    return errno;
  }
  return error;
}

/// Writes to a dead process's information file how many records were only in its memory.
inline void tell_lost_records(int directory, const char* info, const file_owners& owners,
                              std::uint64_t records) noexcept {
  struct stat status {};
  const int fd = open_own(directory, info, O_WRONLY | O_APPEND, owners, status);
  if (fd < 0) return;
  char text[48];
  const int bytes =
      std::snprintf(text, sizeof(text), "lost %llu\n", static_cast<unsigned long long>(records));
  static_cast<void>(write_all(fd, text, static_cast<std::size_t>(bytes)));
  close(fd);
}

/// Appends what the rings of one dead process still hold to the logs, then deletes the ring file. A
/// file with damaged contents is kept, because these exist nowhere else.
/// May be killed at any moment and run again: the commits in the file record the progress.
/// @return false if the file is kept for that reason.
LOTUS_DETAIL_COLD inline bool recover_file(int directory, const char* name, dead_ring_file& file,
                                           const recovery_limits& limits, recovery& result,
                                           drain_buffer& buffer) noexcept {
  int error = file.read_blocks(limits.advance ? std::nullopt : limits.until_ns);
  if (error == ENOMEM && result.error == 0) result.error = error;
  char info[sizeof(run_info_start) + 256];
  std::snprintf(info, sizeof(info), "%s%s", run_info_start, name + sizeof(ring_file_start) - 1);
  bool done = error == 0;
  bool late = error == ETIME;
  const std::uint64_t doubted_before = result.doubted;
  std::uint64_t lost = 0;
  if (error == 0) {
    result.doubted += file.for_each_ring([&](ring_copy& copy) {
      lost += copy.ring().committed().in_memory;
      const bool wanted = limits.tid == 0 || copy.ring().tid.load() == limits.tid;
      if (!wanted || late) {
        if (copy.left() > 0) done = false;
        return;
      }
      error = recover_ring(directory, file, info, copy, limits.until_ns, result, buffer);
      if (error != 0) done = false;
      late = error == ETIME;
    });
  }
  if (late) result.left = true;
  if (!done) return true;
  error = recover_aggregates(directory, file, result);
  if (error != 0) {
    if (result.error == 0) result.error = error;
    return true;
  }
  result.lost += lost;
  ++result.files;
  if (lost > 0) tell_lost_records(directory, info, file_owners::only(file.status().st_uid), lost);
  if (result.doubted != doubted_before) return false;
  unlinkat(directory, name, 0);
  return true;
}

/// Deletes an empty ring file whose process died while creating it, at least a minute ago. Returns
/// 0, or why the file was refused.
inline int delete_if_unfinished(int directory, const char* name,
                                const file_owners& owners) noexcept {
  struct stat status {};
  const int fd = open_own(directory, name, O_RDONLY, owners, status);
  if (fd < 0) return fd == -ENOENT ? 0 : -fd;
  const bool abandoned =
      time(nullptr) - status.st_mtime > 60 && !file_lock_is_taken(fd, owner_lock_byte);
  if (abandoned) unlinkat(directory, name, 0);
  close(fd);
  return 0;
}

using report_left = function_ref<void(const char* name, dead_ring_file::state, int error)>;

/// Recovers the dead ring files in `directory` (borrowed).
/// @param report  called for each file that is left although its process is dead; `error` is set if
/// the file was refused.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const recovery_limits& limits,
                                                    report_left report) noexcept {
  using state = dead_ring_file::state;
  recovery result;
  file_owners owners = file_owners::of_caller(directory);
  bool asked = false;
  drain_buffer* buffer = nullptr;
  for_each_entry(directory, [&](const char* name) {
    if (std::strncmp(name, unfinished_ring_file_start, sizeof(unfinished_ring_file_start) - 1) ==
        0) {
      const int error = delete_if_unfinished(directory, name, owners);
      if (error != 0) report(name, state::refused, error);
      return;
    }
    if (std::strncmp(name, ring_file_start, sizeof(ring_file_start) - 1) != 0) return;
    const bool may_end = !limits.advance || result.records + result.files > 0;
    if (may_end && is_over(limits.until_ns)) {
      result.left = true;
      return;
    }
    if (!asked && belongs_to_another(directory, name, owners)) {
      owners.ask_file_system(directory);
      asked = true;
    }
    dead_ring_file file;
    const state found = file.open(directory, name, true, owners);
    if (found == state::living) ++result.living;
    if (found == state::busy) ++result.busy;
    if (found == state::damaged) ++result.damaged;
    if (found == state::other_version) ++result.other_version;
    if (found == state::refused) ++result.refused;
    if (found == state::damaged || found == state::other_version || found == state::refused) {
      report(name, found, file.error());
    }
    if (found != state::opened) return;
    if (limits.prefix != nullptr && std::strcmp(limits.prefix, file.header().prefix) != 0) return;
    if (buffer == nullptr) buffer = static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
    if (buffer == nullptr) {
      result.error = ENOMEM;
    } else if (!recover_file(directory, name, file, limits, result, *buffer)) {
      report(name, state::doubted, 0);
    }
  });
  if (buffer != nullptr) munmap(buffer, sizeof(drain_buffer));
  return result;
}

/// @param prefix  only files of runs with this prefix; null: all.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery_limits limits;
  limits.prefix = prefix;
  return recover_directory(directory, limits, [](const char*, dead_ring_file::state, int) {});
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RECOVERY_HPP

// Messages to the program about its run's files.
#ifndef LOTUS_STORE_STORAGE_REPORTS_HPP
#define LOTUS_STORE_STORAGE_REPORTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

inline void report_recovered(const log_location& location, std::uint64_t records) noexcept {
  say("%llu records of processes that died were recovered in %s",
      static_cast<unsigned long long>(records), location.directory);
}

inline void report_clock_step(std::int64_t stepped_ns) noexcept {
  say("the wall clock was stepped by %.3f s; %s", static_cast<double>(stepped_ns) * 1e-9,
      stepped_ns > 0 ? "times go on from the new one"
                     : "times go on as before, so that they stay in order");
}

/// Errors that may recur are reported once per run.
/// Thread safety: disk() any thread; the callers of the other functions lock.
class storage_reports {
 public:
  void run_begins() noexcept {
    unwritable_reported_ = no_ring_file_reported_ = false;
    disk_failed_.store(false, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
  }

  /// Reported once for consecutive runs in the same place: a program that stops and starts again
  /// appends to its own logs.
  void existing_logs(int directory, const log_location& location) noexcept {
    unsigned count = 0;
    for_each_entry(directory, [&](const char* name) {
      log_name log;
      if (!log.parse(name, location.prefix) || log.part != 0) return;
      if (log.compact || log.role != log_role::side) ++count;
    });
    if (count == 0) return;
    const std::uint64_t place = hash_of(location.prefix, hash_of(location.directory, fnv_offset));
    if (place == existing_reported_in_) return;
    existing_reported_in_ = place;
    say("%u logs of %s/%s_* exist already; this run's lines are added to them", count,
        location.directory, location.prefix);
  }

  void directory_unwritable(const char* log_file, int error) noexcept {
    if (unwritable_reported_) return;
    unwritable_reported_ = true;
    say("cannot write %s_*: %s; this run is not recorded", log_file, std::strerror(error));
  }

  void no_ring_file(const log_location& location, int error) noexcept {
    if (no_ring_file_reported_) return;
    no_ring_file_reported_ = true;
    say("no ring file in %s: %s; a kill would lose what is not yet in the logs", location.directory,
        std::strerror(error));
  }

  /// Call it after each attempt to append to the logs.
  /// @param error  0, or an error that file_error_text() knows
  /// @param log    name of the log that was opened last
  void disk(const log_location& location, int error, const char* log) noexcept {
    if (is_refusal(error)) return refused(location, error, log);
    const bool failed = error != 0;
    if (disk_failed_.load(std::memory_order_relaxed) == failed) return;
    if (disk_failed_.exchange(failed) == failed) return;
    if (failed) {
      say("cannot append to the logs in %s: %s; records are kept in memory meanwhile",
          location.directory, std::strerror(error));
    } else {
      say("the logs in %s can be written again", location.directory);
    }
  }

 private:
  /// One log may be refused while others are written. Each kind of refusal is reported once.
  void refused(const log_location& location, int error, const char* log) noexcept {
    const std::uint32_t kind = error == ELOOP ? 1U : 2U << (error - not_regular);
    if ((refused_.load(std::memory_order_relaxed) & kind) != 0) return;
    if ((refused_.fetch_or(kind) & kind) != 0) return;
    say("cannot append to %s/%s: it %s; records are kept in memory meanwhile", location.directory,
        log, file_error_text(error));
  }

  // 64-bit FNV-1a.
  static constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325U;
  static std::uint64_t hash_of(const char* text, std::uint64_t hash) noexcept {
    constexpr std::uint64_t prime = 0x100000001b3U;
    do {
      hash = (hash ^ static_cast<unsigned char>(*text)) * prime;
    } while (*text++ != '\0');
    return hash;
  }

  std::uint64_t existing_reported_in_ = 0;  ///< hash of a directory and a prefix; 0: none
  bool unwritable_reported_ = false;
  bool no_ring_file_reported_ = false;
  std::atomic<bool> disk_failed_{false};
  std::atomic<std::uint32_t> refused_{0};  ///< a bit for each kind
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_REPORTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The start of a recording waits only briefly for this; the drain thread does the rest. But a
/// thread with the same id as a dead thread first recovers the records of that thread, because both
/// use the same log: its own lines must not be mistaken for the end of an unfinished append.
///
/// Thread safety: all; only one thread accesses the files at a time.
class LOTUS_DETAIL_PER_MODULE leftovers {
 public:
  /// @param directory  the same at every call, borrowed.
  LOTUS_DETAIL_COLD void begin(run_directory& directory, const log_location& location) noexcept {
    const locked hold{lock_};
    location_ = &location;
    records_ = 0;
    said_ = 0;
    run(directory, start_ns, false);
    if (!left_.load(std::memory_order_relaxed)) return report();
    say("what processes that died left in %s is put into the logs meanwhile", location_->directory);
  }

  /// Recovers a bit more. Returns whether there is still more.
  LOTUS_DETAIL_COLD bool step(run_directory& directory) noexcept {
    if (!left_.load(std::memory_order_relaxed)) return false;
    const signals_blocked quiet;
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return false;
    run(directory, step_ns, true);
    if (left_.load(std::memory_order_relaxed)) return true;
    report();
    return false;
  }

  /// Recovers all records of one thread, before another thread with this id logs.
  LOTUS_DETAIL_COLD void of_thread(run_directory& directory, std::uint32_t tid) noexcept {
    if (!left_.load(std::memory_order_relaxed)) return;
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.tid = tid;
    take(recover(directory, limits));
  }

  /// The recording ends: recovers the rest, within a time limit.
  void finish(run_directory& directory) noexcept {
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    run(directory, finish_ns, true);
    give_up();
  }

  /// The process ends: the rest is left for a later process.
  LOTUS_DETAIL_COLD void leave() noexcept {
    const locked hold{lock_};
    if (left_.load(std::memory_order_relaxed)) give_up();
  }

  /// In a forked child, which looks for leftovers itself.
  void forget() noexcept { left_.store(false, std::memory_order_relaxed); }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::int64_t start_ns = 2'000'000;
  static constexpr std::int64_t step_ns = 20'000'000;
  static constexpr std::int64_t finish_ns = 1'000'000'000;

  // --- the caller holds lock_

  LOTUS_DETAIL_COLD void run(run_directory& directory, std::int64_t most_ns,
                             bool advance) noexcept {
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.until_ns = clock_ns(CLOCK_MONOTONIC) + most_ns;
    limits.advance = advance;
    const recovery r = recover(directory, limits);
    take(r);
    left_.store(r.left, std::memory_order_relaxed);
  }

  recovery recover(run_directory& directory, const recovery_limits& limits) noexcept {
    const int opened = directory.descriptor();
    if (opened < 0) {
      recovery none;
      none.left = true;
      return none;
    }
    return recover_directory(opened, limits,
                             [this](const char* name, dead_ring_file::state state, int error) {
                               say_left(name, state, error);
                             });
  }

  void take(const recovery& r) noexcept {
    records_ += r.records;
    if (r.error != 0 && first(1)) {
      say("cannot put what processes that died left into %s/%s: %s%s", location_->directory,
          r.failed_log, is_refusal(r.error) ? "it " : "", file_error_text(r.error));
    }
    if (r.lost > 0) {
      say("%llu records of processes that died in %s were in their memory only and are lost",
          static_cast<unsigned long long>(r.lost), location_->directory);
    }
  }

  /// Reports each kind once, with the first file of that kind.
  void say_left(const char* name, dead_ring_file::state state, int error) noexcept {
    if (state == dead_ring_file::state::doubted && first(2)) {
      say("%s/%s is damaged: what makes no sense is not in the logs, and the file is kept",
          location_->directory, name);
    }
    if (state == dead_ring_file::state::damaged && first(4)) {
      say("%s/%s is no ring file and left alone", location_->directory, name);
    }
    if (state == dead_ring_file::state::other_version && first(8)) {
      say("%s/%s is of another version of lotus, whose `lotus-tool recover` it needs",
          location_->directory, name);
    }
    if (state == dead_ring_file::state::refused && first(error == ELOOP         ? 16U
                                                         : error >= not_regular ? 32U
                                                                                : 64U)) {
      say("%s/%s is not recovered: %s%s", location_->directory, name,
          is_refusal(error) ? "it " : "", file_error_text(error));
    }
  }

  bool first(std::uint32_t kind) noexcept {
    const bool is_first = (said_ & kind) == 0;
    said_ |= kind;
    return is_first;
  }

  void give_up() noexcept {
    report();
    if (!left_.exchange(false)) return;
    say("more of processes that died is left in %s; `lotus-tool recover` goes on",
        location_->directory);
  }

  void report() noexcept {
    if (records_ == 0) return;
    report_recovered(*location_, records_);
    records_ = 0;
  }

  mutex lock_;
  std::atomic<bool> left_{false};
  const log_location* location_ = nullptr;
  std::uint64_t records_ = 0;
  std::uint32_t said_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LEFTOVERS_HPP

// Limits how much of a run is kept: deletes the oldest parts of its logs first.
#ifndef LOTUS_STORE_LIMITS_LOG_LIMITS_HPP
#define LOTUS_STORE_LIMITS_LOG_LIMITS_HPP

// Finds all logs in a run's directory, whichever process writes them.
#ifndef LOTUS_FOLDER_RUN_LOGS_HPP
#define LOTUS_FOLDER_RUN_LOGS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A log: a regular file whose owner `file_owners` allows. Valid only during the callback.
struct run_log {
  int folder;          ///< descriptor of the folder that contains it
  const char* loader;  ///< name of that folder if it is a loader's; empty: the run's directory
  const char* name;
  struct stat status;
  log_name said;
};

/// Calls `each(run_log)` for the logs of one folder.
inline void for_each_log_in(int folder, const char* loader, const char* prefix,
                            const file_owners& owners,
                            function_ref<void(const run_log&)> each) noexcept {
  for_each_entry(folder, [&](const char* name) {
    run_log log{folder, loader, name, {}, {}};
    if (!log.said.parse(name, prefix)) return;
    if (fstatat(folder, name, &log.status, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISREG(log.status.st_mode) && owners.allow(log.status.st_uid)) each(log);
  });
}

/// Whether a folder is another run's directory rather than a loader's folder.
inline bool is_other_run(int folder) noexcept {
  bool found = false;
  for_each_entry(folder, [&](const char* name) {
    found = found || std::strncmp(name, run_info_start, sizeof(run_info_start) - 1) == 0;
  });
  return found;
}

/// Calls `each(folder, loader)` for the run's directory (a descriptor), with an empty loader name,
/// and for the folder of each of its loaders.
inline void for_each_run_folder(int directory, const file_owners& owners,
                                function_ref<void(int folder, const char* loader)> each) noexcept {
  each(directory, "");
  for_each_entry(directory, [&](const char* name) {
    struct stat status {};
    if (*name == '.' || fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode) || !owners.allow(status.st_uid)) {
      return;
    }
    const int folder =
        open_out_of_the_way(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (folder < 0) return;
    if (!is_other_run(folder)) each(folder, name);
    close(folder);
  });
}

/// Calls `each(run_log)` for all logs with this prefix in `directory` (a descriptor) and in its
/// loaders' folders.
inline void for_each_log(int directory, const char* prefix, const file_owners& owners,
                         function_ref<void(const run_log&)> each) noexcept {
  for_each_run_folder(directory, owners, [&](int folder, const char* loader) {
    for_each_log_in(folder, loader, prefix, owners, each);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_RUN_LOGS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// What was deleted.
struct forgotten_logs {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::int64_t until_ns = 0;  ///< since the epoch: the last write to any of them
};

/// Limits the total of all logs in a directory, whichever process wrote them: several processes
/// with limits share the total, and logs of killed processes are deleted too.
///
/// Only parts, which no process appends to, and logs of dead threads are deleted. Thread safety:
/// begin() while nothing else is called; everything else any thread. Trivially destructible.
class log_limits {
 public:
  /// @param most_bytes   maximum total size of the logs; 0: unlimited
  /// @param most_age_ns  maximum age; 0: unlimited
  void begin(std::uint64_t most_bytes, std::int64_t most_age_ns) noexcept {
    most_bytes_ = most_bytes;
    most_age_ns_ = most_age_ns;
    looked_ns_.store(0, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    part_bytes_.store(share_of(16), std::memory_order_relaxed);
    now_looking_.store(false, std::memory_order_relaxed);
  }

  bool any() const noexcept { return most_bytes_ != 0 || most_age_ns_ != 0; }
  /// The size from which on a log becomes a part.
  std::uint64_t part_bytes() const noexcept { return part_bytes_.load(std::memory_order_relaxed); }
  /// How long a log grows before it becomes a part, whatever its size; 0: unlimited.
  std::int64_t part_ns() const noexcept { return most_age_ns_ / 8; }

  void after_fork_in_child() noexcept { now_looking_.store(false, std::memory_order_relaxed); }

  /// Adds to the number of bytes that became parts.
  void count(std::uint64_t bytes) noexcept { grown_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Whether so many bytes became parts that the next look should not wait for the drain thread.
  bool overdue() const noexcept {
    return most_bytes_ != 0 && grown_.load(std::memory_order_relaxed) >= share_of(4);
  }

  /// Looks once a second, and sooner if logs grow fast. Returns false if it did not look.
  LOTUS_DETAIL_COLD bool keep(int directory, const char* prefix, const file_owners& owners,
                              forgotten_logs& forgotten) noexcept {
    if (!any() || directory < 0) return false;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    const bool due = now_ns - looked_ns_.load(std::memory_order_relaxed) >= 1'000'000'000 ||
                     (most_bytes_ != 0 && grown_.load(std::memory_order_relaxed) >= share_of(16));
    if (!due || !begin_look()) return false;
    looked_ns_.store(now_ns, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    while (look(directory, prefix, owners, forgotten)) {
    }
    now_looking_.store(false, std::memory_order_release);
    return true;
  }

 private:
  /// Only one thread looks at a time. If it is delayed while logs keep growing, the threads that
  /// make them grow wait for it, but at most 0.1 s: the caller may be a signal handler that
  /// interrupted it.
  bool begin_look() noexcept {
    constexpr timespec pause{0, 100'000};
    for (int tries = 0; now_looking_.exchange(true, std::memory_order_acquire); ++tries) {
      if (!overdue() || tries == 1000) return false;
      nanosleep(&pause, nullptr);
    }
    return true;
  }

  struct candidate {
    std::int64_t written_ns;
    std::uint64_t bytes;
    std::uint64_t on_disk;
    char loader[max_folder_name_bytes + 1];
    char name[log_name_bytes];
  };
  static constexpr std::size_t at_once = 32;

  std::uint64_t share_of(std::uint64_t parts) const noexcept {
    constexpr std::uint64_t least = std::uint64_t{16} << 10;
    if (most_bytes_ == 0) return UINT64_MAX;
    return most_bytes_ / parts > least ? most_bytes_ / parts : least;
  }

  /// When its last lines were appended. A part's name contains that time on the clock of its lines;
  /// the file system's time may be some ms behind, or come from another machine.
  static std::int64_t written_ns(const run_log& log) noexcept {
    if (log.said.part != 0) return (static_cast<std::int64_t>(log.said.part) + 1) * 1'000'000;
    const timespec& at = log.status.st_mtim;
    return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
  }

  /// Whether no process appends to it any more.
  static bool is_over(const run_log& log, std::int64_t now_ns) noexcept {
    constexpr std::int64_t quiet_ns = 60'000'000'000;
    if (log.said.part != 0) return true;
    if (written_ns(log) >= now_ns - quiet_ns) return false;
    return log.said.number > largest_thread_id || is_of_the_dead(log);
  }
  /// Whether its thread is dead, as far as this process can see: in another container it may run.
  static bool is_of_the_dead(const run_log& log) noexcept {
    // The log belongs to no thread or to several, so this cannot be known before it is quiet.
    if (log.said.number > largest_thread_id) return false;
    return ::kill(static_cast<pid_t>(log.said.number), 0) != 0 && errno == ESRCH;
  }

  /// Counts whole blocks, because small files occupy more space than their size.
  static std::uint64_t bytes_on_disk(const struct stat& status) noexcept {
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    const auto in_blocks = static_cast<std::uint64_t>(status.st_blocks) * 512;
    return bytes > in_blocks ? bytes : in_blocks;
  }

  /// Deletes the oldest logs. Returns whether there may be more to delete.
  LOTUS_DETAIL_COLD bool look(int directory, const char* prefix, const file_owners& owners,
                              forgotten_logs& forgotten) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_REALTIME);
    candidate oldest[at_once];
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t growing = 0;
    for_each_log(directory, prefix, owners, [&](const run_log& log) {
      const bool over = is_over(log, now_ns);
      // Logs of dead processes are deleted only after a while. They are not counted until then, so
      // that they do not displace newer logs.
      if (over || !is_of_the_dead(log)) bytes += bytes_on_disk(log.status);
      if (over) {
        put_in_order(log, oldest, count);
      } else {
        ++growing;
      }
    });
    part_bytes_.store(share_of(8 * (growing + 1)), std::memory_order_relaxed);
    // Leaves room for the logs that still grow.
    const std::uint64_t wanted = most_bytes_ == 0 ? UINT64_MAX : most_bytes_ - most_bytes_ / 8;
    bool deleted = false;
    for (std::size_t i = 0; i < count; ++i) {
      const candidate& log = oldest[i];
      const bool too_old = most_age_ns_ != 0 && log.written_ns < now_ns - most_age_ns_;
      if (!too_old && bytes <= wanted) return false;
      if (!remove(directory, log)) continue;
      deleted = true;
      bytes -= log.on_disk < bytes ? log.on_disk : bytes;
      ++forgotten.files;
      forgotten.bytes += log.bytes;
      if (forgotten.until_ns < log.written_ns) forgotten.until_ns = log.written_ns;
    }
    return deleted && count == at_once;
  }

  static void put_in_order(const run_log& log, candidate (&oldest)[at_once],
                           std::size_t& count) noexcept {
    const std::int64_t ns = written_ns(log);
    std::size_t at = count;
    while (at > 0 && oldest[at - 1].written_ns > ns) --at;
    if (at == at_once) return;
    if (count < at_once) ++count;
    for (std::size_t i = count - 1; i > at; --i) oldest[i] = oldest[i - 1];
    candidate& c = oldest[at];
    c.written_ns = ns;
    c.bytes = static_cast<std::uint64_t>(log.status.st_size);
    c.on_disk = bytes_on_disk(log.status);
    std::snprintf(c.loader, sizeof(c.loader), "%s", log.loader);
    std::snprintf(c.name, sizeof(c.name), "%s", log.name);
  }

  static bool remove(int directory, const candidate& log) noexcept {
    if (log.loader[0] == '\0') return unlinkat(directory, log.name, 0) == 0;
    const int folder = open_out_of_the_way(directory, log.loader,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (folder < 0) return false;
    const bool removed = unlinkat(folder, log.name, 0) == 0;
    close(folder);
    return removed;
  }

  std::uint64_t most_bytes_ = 0;
  std::int64_t most_age_ns_ = 0;
  std::atomic<std::int64_t> looked_ns_{0};
  std::atomic<std::uint64_t> grown_{0};
  // UINT64_MAX stands for "unlimited": it is compared at every append, without a lock.
  std::atomic<std::uint64_t> part_bytes_{UINT64_MAX};
  std::atomic<bool> now_looking_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_LIMITS_HPP

// Decides which logs of a process become parts, and when parts are deleted.
#ifndef LOTUS_STORE_LIMITS_LOG_RETENTION_HPP
#define LOTUS_STORE_LIMITS_LOG_RETENTION_HPP

// Renames logs that have grown to parts.
#ifndef LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
#define LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

#include <stdio.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Supplies the numbers in the names of parts: the current time in ms, but each larger than the one
/// before. If two logs got the same number, the second could not be renamed and would grow into a
/// part too large to delete on its own. Thread safety: any thread.
class part_numbers {
 public:
  std::uint64_t next() noexcept {
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      next = now_ms > last ? now_ms : last + 1;
    } while (!last_.compare_exchange_weak(last, next, std::memory_order_relaxed));
    return next;
  }

  /// Makes the next number larger than that of an existing part, because another process' numbers
  /// may be ahead of the clock. Ignores a number that is further ahead than any run could be.
  void begin_behind(std::uint64_t part) noexcept {
    constexpr std::uint64_t most_ahead_ms = 3'600'000;
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    if (part > now_ms + most_ahead_ms) return;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < part && !last_.compare_exchange_weak(last, part, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// Renames a ring's logs to parts, so that its next lines begin new logs. A kill in between leaves
/// each log under one of its two names, with nothing half appended. If renaming fails, the log
/// continues. The caller holds the guard of the ring's producer; no append is in progress.
/// @param logs   closed if they become parts.
/// @param least  minimum size in bytes; smaller logs continue.
/// @return number of bytes that became parts.
LOTUS_DETAIL_COLD inline std::uint64_t roll_logs(const log_folder& folder, ring_block& ring,
                                                 open_log (&logs)[log_roles], std::uint64_t least,
                                                 part_numbers& numbers) noexcept {
  std::uint64_t rolled = 0;
  loader_folders loaders{folder};
  for (std::size_t i = 0; i < log_roles; ++i) {
    commit_point c = ring.committed();
    log_position& at = c.logs[i];
    if (at.inode == 0 || at.appending || at.length == 0 || at.length < least) continue;
    const int in = loaders.of(at.loader);
    if (in < 0) continue;
    const auto role = static_cast<log_role>(i);
    char log[log_name_bytes];
    char part[log_name_bytes];
    put_log_name(log, sizeof(log), folder.prefix, role, folder.compact, log_number(ring, at));
    put_log_name(part, sizeof(part), folder.prefix, role, folder.compact, log_number(ring, at),
                 numbers.next());
    struct stat status {};
    const bool is_it = fstatat(in, log, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       static_cast<std::uint64_t>(status.st_ino) == at.inode;
    struct stat other {};
    const bool is_free = fstatat(in, part, &other, AT_SYMLINK_NOFOLLOW) != 0;
    if (!is_it || !is_free || renameat(in, log, in, part) != 0) continue;
    rolled += at.length;
    logs[i].file.close();
    at = {0, 0, false, at.number, at.loader};
    ring.commit(c);
  }
  return rolled;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Whether only the newest records are kept; see lotus::options.
inline bool is_flight_recorder(const options& chosen) noexcept {
  return chosen.keep_bytes != 0 || chosen.keep_ms != 0;
}

/// Thread safety: begin() while nothing else is called; after_drain() with the producer's guard;
/// everything else any thread. Trivially destructible.
class log_retention {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    // 0 means unlimited.
    const auto least = [](std::uint64_t a, std::uint64_t b) {
      return a == 0 || (b != 0 && b < a) ? b : a;
    };
    const std::uint64_t age_ms = least(std::uint64_t{chosen.max_age_s} * 1000, chosen.keep_ms);
    limits_.begin(least(chosen.max_bytes, chosen.keep_bytes),
                  static_cast<std::int64_t>(age_ms) * 1'000'000);
    rolled_ns_.store(clock_ns(CLOCK_MONOTONIC_COARSE), std::memory_order_relaxed);
  }

  /// Ensures that the numbers of new parts are larger than those of existing parts.
  void begin_behind_parts(int directory, const char* prefix, const file_owners& owners) noexcept {
    if (!any()) return;
    for_each_log(directory, prefix, owners,
                 [this](const run_log& log) { numbers_.begin_behind(log.said.part); });
  }

  bool any() const noexcept { return limits_.any(); }

  /// Makes all logs become parts at their next drain, whatever their size.
  void roll_all() noexcept { rolls_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether the producer's logs have not become parts since the last roll_all().
  bool is_due(const producer& p) const noexcept {
    return p.rolls != rolls_.load(std::memory_order_relaxed);
  }

  void after_drain(const log_folder& folder, producer& p) noexcept {
    const std::uint32_t rolls = rolls_.load(std::memory_order_relaxed);
    const bool due = p.rolls != rolls;
    p.rolls = rolls;
    if (due || (limits_.any() && !held_.load(std::memory_order_relaxed))) {
      limits_.count(roll_logs(folder, *p.ring, p.logs, due ? 1 : limits_.part_bytes(), numbers_));
    }
  }

  /// Makes the producer's logs parts, whatever their size.
  void roll(const log_folder& folder, producer& p) noexcept {
    limits_.count(roll_logs(folder, *p.ring, p.logs, 1, numbers_));
  }

  /// Whether keep() should not wait for the drain thread.
  bool overdue() const noexcept { return limits_.overdue(); }

  /// While held, no log becomes a part because of its size, so that a snapshot contains either all
  /// of a log or nothing of it.
  void hold(bool held) noexcept { held_.store(held, std::memory_order_relaxed); }

  /// In a forked child, where no thread continues what other threads were doing.
  void after_fork_in_child() noexcept {
    hold(false);
    limits_.after_fork_in_child();
  }

  /// Deletes logs that exceed the limits. Returns false if it did not look.
  LOTUS_DETAIL_COLD bool keep(const log_folder& folder, forgotten_logs& forgotten) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (limits_.part_ns() != 0 &&
        now_ns - rolled_ns_.load(std::memory_order_relaxed) >= limits_.part_ns()) {
      rolled_ns_.store(now_ns, std::memory_order_relaxed);
      roll_all();
    }
    return limits_.keep(folder.directory, folder.prefix, folder.owners, forgotten);
  }

 private:
  log_limits limits_;
  part_numbers numbers_;
  std::atomic<std::uint32_t> rolls_{0};
  std::atomic<std::int64_t> rolled_ns_{0};
  std::atomic<bool> held_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_RETENTION_HPP

// One small file per process of a run with its identity, its threads and its record counts.
#ifndef LOTUS_STORE_RUN_RUN_INFO_HPP
#define LOTUS_STORE_RUN_RUN_INFO_HPP

// The lines with which a process describes itself in its information file.
#ifndef LOTUS_STORE_RUN_PROCESS_LINES_HPP
#define LOTUS_STORE_RUN_PROCESS_LINES_HPP

#include <cstdarg>

// How many CPUs this process may use.
#ifndef LOTUS_STORE_CPU_LIMITS_HPP
#define LOTUS_STORE_CPU_LIMITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Number of CPUs that this thread may run on, by its affinity mask; 0 if the kernel does not
/// report it.
inline int cpus_of_affinity() noexcept {
  // Larger than one cpu_set_t, because the kernel may know more CPUs than that has bits.
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  if (sched_getaffinity(0, sizeof(masks), masks) != 0) return 0;
  return CPU_COUNT_S(sizeof(masks), masks);
}

/// Number of CPUs that a cgroup's "<quota> <period>" allows; 0: no limit.
inline double cpus_of_quota(const char* text) noexcept {
  char* behind_quota = nullptr;
  const double quota = strtod(text, &behind_quota);
  const double period = strtod(behind_quota, nullptr);
  return behind_quota != text && quota > 0 && period > 0 ? quota / period : 0;
}

/// The lowest limit of this process's cgroups (version 2) up to the root; 0: no limit, or unknown.
LOTUS_DETAIL_COLD inline double cpus_of_cgroups() noexcept {
  char groups[4096];
  read_beginning("/proc/self/cgroup", groups);
  const char* const line = std::strncmp(groups, "0::/", 4) == 0 ? groups : nullptr;
  if (line == nullptr) return 0;
  char* const path = groups + 3;
  path[std::strcspn(path, "\n")] = '\0';
  double least = 0;
  while (true) {
    char file[4096 + 64];
    char text[64];
    std::snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cpu.max", path);
    read_beginning(file, text);
    const double cpus = cpus_of_quota(text);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
    char* const last = std::strrchr(path, '/');
    if (last == nullptr) return least;
    *last = '\0';
  }
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_LIMITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Builds the lines described at run_info. Omits what the kernel does not report and what does not
/// fit. Thread safety: none.
/// @tparam Bytes  size of the buffer: 5120 for add_process(), 320 for each other function.
template <std::size_t Bytes>
class process_lines {
 public:
  const char* text() const noexcept { return text_; }
  int bytes() const noexcept { return bytes_; }

  /// Identifies the process and how it was started: lotus, host, pid, parent, forked, run, command,
  /// namespace, rank.
  LOTUS_DETAIL_COLD void add_process() noexcept {
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    add("lotus %s\nhost %s\npid %u\nparent %u\n", LOTUS_DETAIL_VERSION_STRING, line<255>{host}.text,
        static_cast<unsigned>(getpid()), static_cast<unsigned>(getppid()));
    add_run();
    add_command();
    add_namespace();
    add_rank();
  }

  void add_cpus(cpu_watching watching) noexcept {
    add("cpu %s\n", watching == cpu_watching::off       ? "off"
                    : watching == cpu_watching::batches ? "batches"
                                                        : "switches");
    const double limit = cpus_of_cgroups();
    if (limit <= 0) return add("cpus %d -\n", cpus_of_affinity());
    // printf would use the locale's decimal separator.
    const auto thousandths = static_cast<unsigned long long>(__builtin_llround(limit * 1000));
    add("cpus %d %llu.%03llu\n", cpus_of_affinity(), thousandths / 1000, thousandths % 1000);
  }

  /// @param tid  this thread, or another running one.
  void add_thread(std::uint32_t tid) noexcept {
    char path[64];
    char name[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
    read_line(path, name);
    add("thread %u %s\n", tid, line<63>{name}.text);
  }

 private:
  static constexpr std::size_t most_of_command = 1000;

  /// A name, escaped so that it stays on one line and cut if it is too long.
  template <std::size_t Most>
  struct line {
    char text[3 * Most + 2];
    explicit line(const char* name) noexcept {
      text[write_line_name(std::string_view{name}.substr(0, Most), text)] = '\0';
    }
  };

  /// Adds one or more whole lines.
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) noexcept {
    const std::size_t room = Bytes - static_cast<std::size_t>(bytes_);
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(text_ + bytes_, room, format, values);
    va_end(values);
    if (n > 0 && static_cast<std::size_t>(n) < room) bytes_ += n;
  }

  /// Reads the first line of a file of the kernel; empty if it cannot be read.
  template <std::size_t Most>
  static void read_line(const char* path, char (&text)[Most]) noexcept {
    read_beginning(path, text);
    text[std::strcspn(text, "\n")] = '\0';
  }

  /// Distinguishes the processes of one run from those of the next if the process that started them
  /// records nothing itself: whether the parent runs the same program, so it is not a shell, and
  /// which file `lotus-tool run` created for this run.
  void add_run() noexcept {
    const auto parent = static_cast<unsigned>(getppid());
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/%u/exe", parent);
    struct stat own {};
    struct stat other {};
    if (stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
        own.st_dev == other.st_dev && own.st_ino == other.st_ino) {
      add("forked %u\n", parent);
    }
    const char* const list = environment_text(variable::run_list);
    if (list != nullptr) add("run %s\n", line<255>{list}.text);
  }

  /// The command line as the process was started, or as the process changed it since.
  void add_command() noexcept {
    char command[most_of_command + 1];
    const std::size_t bytes = read_beginning("/proc/self/cmdline", command);
    std::size_t end = bytes;
    while (end > 0 && command[end - 1] == '\0') --end;
    if (end == 0) return;
    for (std::size_t i = 0; i < end; ++i) {
      if (command[i] == '\0') command[i] = ' ';
    }
    if (bytes == most_of_command) std::memcpy(command + most_of_command - 3, "...", 4);
    add("command %s\n", line<most_of_command>{command}.text);
  }

  /// The namespace that the process and thread ids belong to.
  void add_namespace() noexcept {
    char boot[48];
    read_line("/proc/sys/kernel/random/boot_id", boot);
    struct stat status {};
    if (boot[0] == '\0' || stat("/proc/self/ns/pid", &status) != 0) return;
    add("namespace %s %llu\n", boot, static_cast<unsigned long long>(status.st_ino));
  }

  void add_rank() noexcept {
    std::uint64_t rank = 0;
    bool known = environment_number(variable::rank, rank, say_of_variable);
    for (const char* of_launcher : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
      const char* const text = known ? nullptr : secure_getenv(of_launcher);
      known = known || (text != nullptr && parse_number(text, rank));
    }
    if (known) add("rank %llu\n", static_cast<unsigned long long>(rank));
  }

  char text_[Bytes];
  int bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_PROCESS_LINES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How far the end of a span recorded with given times is from now.
struct span_distance {
  std::uint64_t away_ns;
  bool behind;

  /// @param over_for_ns  time since the span ended; negative: it ends in the future.
  explicit span_distance(std::int64_t over_for_ns) noexcept
      : away_ns{over_for_ns >= 0 ? static_cast<std::uint64_t>(over_for_ns)
                                 : 0 - static_cast<std::uint64_t>(over_for_ns)},
        behind{over_for_ns >= 0} {}
};

/// How long before and after the moment of recording a span may end, according to the information
/// file. Any thread may ask; everything else is done under the session's lock.
class reported_reach {
 public:
  reported_reach() noexcept = default;
  reported_reach(const reported_reach&) = delete;
  reported_reach& operator=(const reported_reach& other) noexcept {
    if (this == &other) return *this;
    behind_ns_.store(other.behind_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    ahead_ns_.store(other.ahead_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    return *this;
  }
  ~reported_reach() = default;

  /// Whether a span with this end needs no line in the file.
  bool covers(const span_distance& end) const noexcept {
    return end.away_ns <= always_ns ||
           end.away_ns <= side(end.behind).load(std::memory_order_acquire);
  }
  std::uint64_t ns(bool behind) const noexcept {
    return side(behind).load(std::memory_order_relaxed);
  }
  /// Call it after the file contains this.
  void extend(bool behind, std::uint64_t to_ns) noexcept {
    (behind ? behind_ns_ : ahead_ns_).store(to_ns, std::memory_order_release);
  }

 private:
  // The times of different threads may differ by this much anyway.
  static constexpr std::uint64_t always_ns = 1'000'000;

  const std::atomic<std::uint64_t>& side(bool behind) const noexcept {
    return behind ? behind_ns_ : ahead_ns_;
  }

  std::atomic<std::uint64_t> behind_ns_{0};
  std::atomic<std::uint64_t> ahead_ns_{0};
};

/// Appends lines "<key> <values>"; if a key occurs again, the last line counts:
///   lotus 0.1.0 / host <name> / namespace <boot id> <n> / pid <n> / parent <n> / rank <n>
///   forked <n>: parent that runs the same program / run <file>: the file named by LOTUS_RUN_LIST
///   command <its arguments, separated by blanks; cut after 1000 bytes>
///   cpu <off|batches|switches> / cpus <number it may run on> <a cgroup's limit, or ->
///   clock <ticks> <ns since the epoch> <ns per tick * 2^32>
///   thread <tid> <name> / log <number> <tid> / records <written> <dropped>
///   back <ns>: maximum time by which a line of a text log ends earlier than a line before it
///   forgotten <files> <bytes> <ns since the epoch>: deleted by limits, and the end of the newest
///   snapshot <ns since the epoch>: when this copy was made; recovery/snapshot_folder.hpp
/// A log has a number of its own if another process uses the thread's id: folder/log_claims.hpp.
/// Space for the lines "records" and "forgotten" is reserved when the file is created, so that they
/// can be written when the disk is full.
/// A process that records again in the same directory continues its file; records add up. Names and
/// the command are written as names are in logs, after an S. Failures are ignored: nothing depends
/// on the file. Thread safety: none except covers(); the session locks. Trivially destructible.
class run_info {
 public:
  /// @param directory  borrowed.
  /// @param mode       of the file, before the umask applies.
  /// @param watching   when threads read their CPU clocks.
  /// @param limited    whether parts of logs may be deleted.
  /// @return the last part of its name; the ring file, which does not exist yet, must use the same.
  unsigned long long create(run_directory& directory, mode_t mode, const clock_segment& clock,
                            cpu_watching watching, bool limited) noexcept {
    if (directory_ == &directory && mode_ == mode && watching_ == watching && can_go_on()) {
      add_clock(clock);
      add_cpus(watching);
      return name_ns_;
    }
    *this = run_info{};
    watching_ = watching;
    directory_ = &directory;
    mode_ = mode;
    name_ns_ = static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME));
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(file_, sizeof(file_), "%s%u_%llx", run_info_start, pid, name_ns_);
    process_lines<5120> lines;
    lines.add_process();
    lines.add_cpus(watching);
    append(lines);
    add_clock(clock);
    records_end_ = append_room(records_bytes);
    if (limited) forgotten_end_ = append_room(forgotten_bytes);
    return name_ns_;
  }

  /// Reports when threads read their CPU clocks, if that has changed.
  void tell_watching(cpu_watching watching) noexcept {
    if (watching == watching_ || directory_ == nullptr) return;
    watching_ = watching;
    add_cpus(watching);
  }

  /// @param tid  this thread, or another running one.
  void add_thread(std::uint32_t tid) noexcept {
    process_lines<320> lines;
    lines.add_thread(tid);
    append(lines);
  }

  void add_clock(const clock_segment& clock) noexcept {
    char text[128];
    append(text, std::snprintf(text, sizeof(text), "clock %llu %lld %llu\n",
                               static_cast<unsigned long long>(clock.start_ticks),
                               static_cast<long long>(clock.start_ns),
                               static_cast<unsigned long long>(clock.rate)));
  }

  /// Whether the file already covers spans that end as far away as this one. Any thread may ask,
  /// without the session's lock.
  bool covers(const span_distance& end) const noexcept { return reach_.covers(end); }

  /// Call it before a span with this end is recorded. If the line cannot be written, covers() stays
  /// false, and the next such span tries again.
  void add_span(const span_distance& end) noexcept {
    if (reach_.covers(end) || directory_ == nullptr) return;
    // Rounds up to a power of two, so that there are few lines.
    constexpr std::uint64_t max_ns = std::uint64_t{1} << 61;
    std::uint64_t new_ns = std::uint64_t{1} << 20;
    while (new_ns < end.away_ns && new_ns < max_ns) new_ns *= 2;
    const unsigned long long back_ns = reach_.ns(!end.behind) + new_ns;
    char text[48];
    const int n = std::snprintf(text, sizeof(text), "back %llu\n", back_ns);
    if (append(text, n) != 0) reach_.extend(end.behind, new_ns);
  }

  /// Adds the counts of one recording.
  void add_records(std::uint64_t written, std::uint64_t dropped) noexcept {
    written_ += written;
    dropped_ += dropped;
    char text[records_bytes + 1];
    const int n = std::snprintf(text, sizeof(text), "records %llu %llu\n",
                                static_cast<unsigned long long>(written_),
                                static_cast<unsigned long long>(dropped_));
    put(text, n, records_bytes, records_end_);
  }

  void add_forgotten(const forgotten_logs& now) noexcept {
    if (now.files == 0 || directory_ == nullptr) return;
    forgotten_.files += now.files;
    forgotten_.bytes += now.bytes;
    forgotten_.until_ns = now.until_ns > forgotten_.until_ns ? now.until_ns : forgotten_.until_ns;
    char text[forgotten_bytes + 1];
    const int n = std::snprintf(text, sizeof(text), "forgotten %llu %llu %lld\n",
                                static_cast<unsigned long long>(forgotten_.files),
                                static_cast<unsigned long long>(forgotten_.bytes),
                                static_cast<long long>(forgotten_.until_ns));
    put(text, n, forgotten_bytes, forgotten_end_);
  }

  /// The file's name; empty if there is no file yet.
  const char* file() const noexcept { return file_; }

 private:
  void add_cpus(cpu_watching watching) noexcept {
    process_lines<320> lines;
    lines.add_cpus(watching);
    append(lines);
  }

  /// Whether the file still exists, is not too long, and no ring file shares its name.
  bool can_go_on() const noexcept {
    constexpr off_t most_bytes = off_t{1} << 20;
    const int directory = directory_->descriptor();
    struct stat status {};
    const int fd = open_own(directory, file_, O_RDONLY, file_owners::of_caller(directory), status);
    if (fd < 0) return false;
    close(fd);
    char ring[sizeof(file_)];
    std::snprintf(ring, sizeof(ring), "%s%s", ring_file_start, file_ + sizeof(run_info_start) - 1);
    struct stat other {};
    return file_identity_.is(status) && status.st_size < most_bytes &&
           fstatat(directory, ring, &other, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  }

  int open_file(struct stat& status) const noexcept {
    const int directory = directory_ != nullptr ? directory_->descriptor() : -ENOENT;
    if (directory < 0) return directory;
    bool made = false;
    return open_to_append(directory, file_, file_owners::of_caller(directory), mode_, status, made);
  }

  template <std::size_t Bytes>
  void append(const process_lines<Bytes>& lines) noexcept {
    append(lines.text(), lines.bytes());
  }

  /// Returns where the file ends afterwards, or 0 if it could not be written.
  off_t append(const char* text, int bytes) noexcept {
    struct stat status {};
    const int fd = open_file(status);
    if (fd < 0) return 0;
    file_identity_ = {status.st_dev, status.st_ino};
    const int error = write_all(fd, text, static_cast<std::size_t>(bytes));
    const off_t end = lseek(fd, 0, SEEK_CUR);
    close(fd);
    return error == 0 && end > 0 ? end : 0;
  }

  /// Appends a blank line of this size. Returns its end, as append() does.
  off_t append_room(int bytes) noexcept {
    char text[forgotten_bytes];
    std::memset(text, ' ', sizeof(text));
    text[bytes - 1] = '\n';
    return append(text, bytes);
  }

  /// Writes a line into the space that ends at `room_end`, padded with blanks to overwrite an
  /// earlier line completely; appends it if there is no such space.
  void put(char* text, int length, int room_bytes, off_t room_end) noexcept {
    std::memset(text + length, ' ', static_cast<std::size_t>(room_bytes - length));
    text[room_bytes - 1] = '\n';
    if (!replace(text, room_bytes, room_end)) append(text, length);
  }

  /// Writes into the space that create() reserved. Returns false if there is none.
  bool replace(const char* text, int bytes, off_t end) const noexcept {
    struct stat status {};
    const int fd = end > 0 ? open_file(status) : -1;
    if (fd < 0) return false;
    // With O_APPEND every write goes to the end of the file, so the flag is removed.
    const bool placed = lseek(fd, 0, SEEK_END) >= end && fcntl(fd, F_SETFL, 0) == 0 &&
                        lseek(fd, end - bytes, SEEK_SET) >= 0;
    const int error = placed ? write_all(fd, text, static_cast<std::size_t>(bytes)) : EIO;
    close(fd);
    return error == 0;
  }

  // Length of the longest such lines, including a blank at the end.
  static constexpr int records_bytes = 52;
  static constexpr int forgotten_bytes = 74;

  run_directory* directory_ = nullptr;
  mode_t mode_ = 0;
  char file_[64] = {};
  unsigned long long name_ns_ = 0;  ///< CLOCK_REALTIME
  file_identity file_identity_;
  cpu_watching watching_{};
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  forgotten_logs forgotten_;
  reported_reach reach_;
  off_t records_end_ = 0;  ///< end of the space reserved for the line; 0: none
  off_t forgotten_end_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_INFO_HPP

// The running session's clock, which ties its map from ticks to time to the wall clock again and
// again.
#ifndef LOTUS_STORE_SESSION_CLOCK_HPP
#define LOTUS_STORE_SESSION_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all functions.
class session_clock {
 public:
  session_clock() noexcept : hardware_{hardware_ticks_invariant()} {}

  /// Whether ticks come from the hardware counter rather than from CLOCK_MONOTONIC in ns.
  bool hardware() const noexcept { return hardware_; }

  /// Takes 1 ms, which determines the rate to about 20 ppm; the first tie, 5 ms later, improves it.
  void begin() noexcept {
    const locked hold{lock_};
    const clock_anchor first = read_anchor();
    while (clock_ns(CLOCK_MONOTONIC) - first.elapsed_ns < 1'000'000) {
    }
    map_.begin(first, read_anchor());
    slept_ns();
    ties_.store(0, std::memory_order_relaxed);
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
  }

  /// Ties the map to CLOCK_REALTIME again if that is due. The first ties follow quickly because
  /// they determine the rate.
  /// @param stored  called with the map, under the clock's lock, after it has changed.
  /// @return the step of the wall clock that was found, in ns, or 0.
  template <class Stored>
  std::int64_t tie(Stored&& stored) noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    // CLOCK_BOOTTIME also runs while the machine sleeps: so a tie is due when it wakes up.
    const auto early = [&] {
      const std::int64_t last_ns = last_tie_ns_.load(std::memory_order_relaxed);
      return clock_ns(CLOCK_BOOTTIME) - last_ns < due_ns;
    };
    if (early()) return 0;
    const locked hold{lock_};
    if (early()) return 0;
    const std::int64_t slept = slept_ns();
    const std::int64_t stepped_ns = map_.tie(read_anchor(), slept);
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
    ties_.fetch_add(1, std::memory_order_relaxed);
    stored(map_);
    return stepped_ns;
  }

  /// Returns `use(map)`; the map does not change during the call.
  template <class Use>
  auto with_map(Use&& use) noexcept {
    const locked hold{lock_};
    return use(map_);
  }

  std::uint64_t ticks() const noexcept {
    return hardware_ ? hardware_ticks() : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// Converts a duration to ticks, if the rate is known yet.
  std::optional<std::uint64_t> ticks_in(std::int64_t ns) noexcept {
    __extension__ using wide = __int128;
    if (!hardware_) return static_cast<std::uint64_t>(ns);
    const locked hold{lock_};
    const std::uint64_t rate = map_.current().rate;
    if (rate == 0) return std::nullopt;
    return static_cast<std::uint64_t>(wide{ns} * (wide{1} << 32) / rate);
  }

  struct placed_span {
    std::uint64_t begin_ticks;
    std::uint64_t end_ticks;
    std::int64_t over_for_ns;  ///< since its end on the logs' clock; negative: it ends later
  };
  /// Places a span with these times of CLOCK_MONOTONIC, using the current rate.
  placed_span place(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const locked hold{lock_};
    const clock_anchor now = hardware_ ? read_anchor() : clock_anchor{};
    placed_span of{ticks_at(begin_ns, now), ticks_at(end_ns, now), 0};
    const std::uint64_t now_ticks = ticks();
    const auto ns_at = [this](std::uint64_t at) {
      return static_cast<std::uint64_t>(map_.at(at).to_ns(at));
    };
    of.over_for_ns = static_cast<std::int64_t>(ns_at(now_ticks) - ns_at(of.end_ticks));
    return of;
  }

  tick_converter converter() noexcept { return {map_, &lock_}; }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Time that the machine slept since the last call; the caller holds lock_.
  std::int64_t slept_ns() noexcept {
    const std::int64_t boottime_ns = clock_ns(CLOCK_BOOTTIME);
    return sleep_.slept_ns(boottime_ns, clock_ns(CLOCK_MONOTONIC));
  }

  /// The caller holds lock_.
  std::uint64_t ticks_at(std::int64_t monotonic_ns, const clock_anchor& now) const noexcept {
    __extension__ using wide = __int128;
    if (!hardware_) return static_cast<std::uint64_t>(monotonic_ns);
    const auto rate = static_cast<std::int64_t>(map_.current().rate);
    if (rate == 0) return now.ticks;
    const wide distance = wide{monotonic_ns - now.elapsed_ns} * (wide{1} << 32) / rate;
    return now.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
  }

  /// Reads the three clocks at one moment: takes the tightest of a few readings.
  clock_anchor read_anchor() const noexcept {
    clock_anchor best{};
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t before = ticks();
      const std::int64_t realtime_ns = clock_ns(CLOCK_REALTIME);
      const std::uint64_t between = ticks();
      const std::int64_t elapsed_ns = clock_ns(CLOCK_MONOTONIC);
      const std::uint64_t after = ticks();
      if (after - before >= tightest) continue;
      tightest = after - before;
      best = {before + (between - before) / 2, elapsed_ns, realtime_ns};
    }
    return best;
  }

  const bool hardware_;
  mutex lock_;
  clock_map map_{};
  sleep_watch sleep_;
  std::atomic<std::int64_t> last_tie_ns_{0};
  std::atomic<std::uint32_t> ties_{0};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SESSION_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory of a run and the files in it that belong to the process rather than to a thread.
/// Thread safety: open, make_ring_file, close_files, close and after_fork_in_child under the
/// session's control lock; everything else any thread.
class LOTUS_DETAIL_PER_MODULE run_files {
 public:
  run_files(session_clock& clock, name_table& names, const cpu_clock& cpu) noexcept
      : clock_{clock}, names_{names}, cpu_{cpu} {}

  const log_location& location() const noexcept { return location_; }
  int directory() noexcept { return directory_.descriptor(); }
  log_folder logs_folder() noexcept {
    return {directory_.descriptor(), location_.prefix, owners_, file_mode_, info_.file(),
            names_.line_starts(),    compact_};
  }
  storage_reports& reports() noexcept { return reports_; }

  /// Finds or creates the directory. Returns 0 or errno; reports the reason once.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    int error = location_.parse(chosen.log_file);
    if (error == 0) error = directory_.open(location_);
    if (error != 0) {
      reports_.directory_unwritable(chosen.log_file.c_str(), error);
      return error;
    }
    file_mode_ = chosen.file_mode & 0666U;
    compact_ = chosen.format == log_format::compact || is_flight_recorder(chosen);
    owners_ = file_owners::of_caller(directory_.descriptor());
    directory_.add_to_list(location_.prefix);
    reports_.run_begins();
    reports_.existing_logs(directory_.descriptor(), location_);
    return 0;
  }

  /// Call it after open(). @param limited  whether logs are deleted when they exceed limits.
  void make_ring_file(bool limited) noexcept {
    const locked hold{lock_};
    limited_ = limited;
    make_ring_file_locked();
  }

  /// In a forked child, which creates its own file at the first use.
  void make_due_ring_file() noexcept {
    const locked hold{lock_};
    if (ring_file_due_) make_ring_file_locked();
  }

  /// Closes the ring file and completes the run's information.
  /// @param keep     leave the ring file on disk, because it holds records that are not in the
  /// logs.
  /// @param dropped  records lost since open().
  LOTUS_DETAIL_COLD void close_files(bool keep, std::uint64_t dropped) noexcept {
    const locked hold{lock_};
    clock_.with_map([&](const clock_map& map) { info_.add_clock(map.current()); });
    info_.add_records(written_.load(std::memory_order_relaxed), dropped);
    file_.finish(keep);
    kept_names_.no_file();
  }

  void close() noexcept {
    leftovers_.finish(directory_);
    directory_.close();
  }

  /// Whether a name can be found after a kill. It must be so before any record uses the name.
  bool keeps_name(std::uint32_t id) const noexcept { return kept_names_.has(id); }
  void keep_names() noexcept {
    const locked hold{lock_};
    kept_names_.store(file_, names_);
  }

  // --- for threads

  /// Writes what a dead process's thread with this id left to its logs, before this thread logs.
  void recover_thread(std::uint32_t tid) noexcept { leftovers_.of_thread(directory_, tid); }

  void add_thread(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    info_.add_thread(tid);
  }

  /// Returns a number for logs that several threads will share and that no other log has; `tid` is
  /// the first of these threads.
  std::uint32_t new_log_number(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    const std::uint32_t number = number_of_no_thread(tid);
    tell_log_number(directory_.descriptor(), info_.file(), owners_, number, tid);
    return number;
  }

  /// Returns a ring for a thread; null without memory.
  /// @param survives  set to whether it survives the process.
  ring_block* add_ring(std::uint32_t tid, std::uint32_t records, bool& survives) noexcept {
    const locked hold{lock_};
    int error = 0;
    ring_block* const ring = file_.add_ring(tid, records, error);
    if (ring == nullptr) return nullptr;
    survives = error == 0;
    if (!survives && file_.exists()) reports_.no_ring_file(location_, error);
    info_.add_thread(tid);
    return ring;
  }

  /// Returns a block for the aggregates of a thread; see add_ring().
  aggregates_block* add_aggregates(std::uint32_t tid, std::uint32_t chain) noexcept {
    const locked hold{lock_};
    int error = 0;
    aggregates_block* const block = file_.add_aggregates(tid, chain, error);
    if (error != 0 && file_.exists()) reports_.no_ring_file(location_, error);
    return block;
  }

  /// See ring_file::add_copy().
  bool add_copy(ring_block& from, const lane_heads& heads) noexcept {
    const locked hold{lock_};
    return file_.add_copy(from, heads);
  }

  /// How many records are in the logs; incremented by the threads that write them.
  std::atomic<std::uint64_t>& written() noexcept { return written_; }

  // --- what the files contain about the run

  /// When this recording began; the ring file contains the same time.
  std::uint64_t begun_ns() noexcept {
    const locked hold{lock_};
    return begun_ns_;
  }

  void tie_clock() noexcept {
    const locked hold{lock_};
    info_.tell_watching(cpu_.mode());
    const auto stepped_ns = clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns != 0) report_clock_step(stepped_ns);
  }

  /// Called before a span with this end is recorded. The first span that ends so far away waits for
  /// the disk, later ones do not.
  void report_span(const span_distance& end) noexcept {
    if (info_.covers(end)) return;
    make_due_ring_file();
    const locked hold{lock_};
    info_.add_span(end);
  }

  void add_forgotten(const forgotten_logs& forgotten) noexcept {
    const locked hold{lock_};
    info_.add_forgotten(forgotten);
  }

  // --- what dead processes left

  /// Writes some of these records to the logs. Returns whether more are left.
  bool recover_leftovers() noexcept { return leftovers_.step(directory_); }
  void leave_leftovers() noexcept { leftovers_.leave(); }

  // --- fork

  /// The ring file belongs to the parent.
  void after_fork_in_child() noexcept {
    file_.forget();
    leftovers_.forget();
    info_ = run_info{};
    written_.store(0, std::memory_order_relaxed);
    ring_file_due_ = true;
    kept_names_.no_file();
  }

  // The directory's lock is a leaf; the other two are taken in this order.
  mutex& fork_lock() noexcept { return lock_; }
  mutex& leftovers_fork_lock() noexcept { return leftovers_.fork_lock(); }
  mutex& directory_fork_lock() noexcept { return directory_.fork_lock(); }

 private:
  /// First recovers what dead processes left, because the new file may use a process or thread id
  /// of theirs. The caller holds lock_.
  LOTUS_DETAIL_COLD void make_ring_file_locked() noexcept {
    leftovers_.begin(directory_, location_);
    ring_file_due_ = false;
    written_.store(0, std::memory_order_relaxed);
    const int error = clock_.with_map([&](const clock_map& map) {
      const auto name_ns =
          info_.create(directory_, file_mode_, map.current(), cpu_.mode(), limited_);
      const std::uint32_t flags =
          (clock_.hardware() ? 0 : ticks_are_ns_flag) | (compact_ ? compact_flag : 0);
      begun_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME));
      return file_.create(directory_, name_ns, location_.prefix, file_mode_, flags, map, begun_ns_);
    });
    if (error != 0) return reports_.no_ring_file(location_, error);
    kept_names_.store(file_, names_);
  }

  session_clock& clock_;
  name_table& names_;
  const cpu_clock& cpu_;
  log_location location_{};
  run_directory directory_;
  mode_t file_mode_ = 0666;
  bool compact_ = false;
  bool limited_ = false;
  file_owners owners_;
  storage_reports reports_;
  leftovers leftovers_;

  mutex lock_;  ///< protects everything below that is not atomic
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t begun_ns_ = 0;
  bool ring_file_due_ = false;
  kept_names kept_names_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: any thread that holds the guard of the producer in question; functions with `all`
/// need no guard.
class LOTUS_DETAIL_PER_MODULE aggregate_store {
 public:
  aggregate_store(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  // --- for one thread

  /// Adds a call for which there may be no room yet. Returns false if there is no memory.
  bool add(producer& p, const aggregate_call& call) noexcept {
    thread_aggregates& a = aggregates_of(p);
    files_.make_due_ring_file();
    const locked hold{lock_};
    if (a.memory != nullptr && a.memory->retired) {
      a.memory->give_back(false);
      a.memory = nullptr;
    }
    if (a.memory == nullptr) a.calls = 0;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    if (a.memory == nullptr) {
      a.memory = aggregate_memory::make(++chains_);
      if (a.memory == nullptr) return false;
      if (!p.attached) files_.add_thread(tid);
    }
    const bool taken = a.memory->take(
        a, call, [this, tid, &a] { return files_.add_aggregates(tid, a.memory->chain); });
    if (taken) gate_of(p).aggregates.store(a.memory->first, std::memory_order_release);
    return taken;
  }

  /// Writes a call at once, because nothing will write it later.
  LOTUS_DETAIL_COLD void write_late(const producer& p, const aggregate_call& call) noexcept {
    auto* const one = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
    if (one == nullptr) return;
    const aggregate_call whole = is_negative(call) ? aggregate_call{call.key, 0, 0} : call;
    one->count = 1;
    one->total_ticks = whole.ticks;
    one->self_ticks = whole.self_ticks;
    one->counts[bucket_of(whole.ticks)] = 1;
    const std::uint64_t begun_ns = files_.begun_ns();
    const locked hold{lock_};
    aggregate_text section{{begun_ns, ++late_calls_}, rate()};
    section.add(names_.entry(static_cast<std::uint32_t>(call.key)).line_start(),
                p.tid.load(std::memory_order_relaxed), *one);
    append(static_cast<std::uint32_t>(call.key >> 32), section.finish());
    munmap(one, sizeof(whole_aggregate));
  }

  /// Another thread continues with the sums of a dead one.
  LOTUS_DETAIL_COLD static void hand_over(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    a.storing.store(0, std::memory_order_relaxed);
    a.inner_ticks = a.untold_ticks = 0;
    a.interrupting = 0;
    if (a.memory == nullptr || a.memory->retired) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    a.memory->for_each_block([tid](aggregates_block& block) {
      block.threads.fetch_add(1, std::memory_order_relaxed);
      block.tid.store(tid, std::memory_order_relaxed);
    });
  }

  static bool has_any(const producer& p) noexcept { return aggregates_of(p).memory != nullptr; }

  /// Makes the thread's next call use the slow path.
  static void close(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_seq_cst);
  }
  /// Reverses close().
  static void reopen(producer& p) noexcept {
    const aggregate_memory* const memory = aggregates_of(p).memory;
    if (memory != nullptr && !memory->retired) {
      gate_of(p).aggregates.store(memory->first, std::memory_order_release);
    }
  }
  /// Call it after close(): waits for a call that is being added at this moment, unless its thread
  /// is not running.
  static void await_call(const producer& p) noexcept {
    const thread_aggregates& a = aggregates_of(p);
    for (int i = 0; i < 100 && a.storing.load(std::memory_order_seq_cst) != 0; ++i) sched_yield();
  }

  /// The next call begins new aggregates.
  static void retire(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    if (aggregates_of(p).memory != nullptr) aggregates_of(p).memory->retired = true;
  }

  /// In a forked child: these aggregates belong to the parent.
  static void after_fork_in_child(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    a.untold_ticks = 0;
    // `storing` is not 0 if a signal handler that interrupted a call forks.
    if (a.memory != nullptr) a.memory->give_back(a.storing.load(std::memory_order_relaxed) != 0);
    a.memory = nullptr;
  }

  // --- for all threads

  /// Writes the sums of all threads, and makes their next calls use the slow path. Returns false if
  /// they remain in the ring file only.
  LOTUS_DETAIL_COLD bool write(const producer_list& all) noexcept {
    bool any = false;
    all.for_each([&any](producer& p) {
      const locked guard{p.guard};
      any = any || has_any(p);
      close(p);
      await_call(p);
    });
    if (!any) return true;
    const std::uint64_t begun_ns = files_.begun_ns();
    const locked hold{lock_};
    const auto each_thread = [&all](each_chain each) {
      all.for_each([each](producer& p) {
        const aggregate_memory* const memory = aggregates_of(p).memory;
        if (memory == nullptr || memory->retired) return;
        aggregate_chain chain;
        memory->for_each_block([&chain](const aggregates_block& block) { chain.add(block); });
        each(chain);
      });
    };
    return for_each_section({begun_ns, 0}, rate(), names_.line_starts(), each_thread,
                            [this](std::uint32_t loader, std::string_view section) {
                              return append(loader, section);
                            }) == 0;
  }

  /// Writes them to a copy of the run in `folder`, each thread's as of one moment. The threads
  /// continue; a call that ends just then waits for so long. Returns 0 or an error that
  /// file_error_text() knows.
  LOTUS_DETAIL_COLD int copy(const producer_list& all, int folder) noexcept {
    aggregate_copies copies;
    all.for_each([&copies](producer& p) {
      const locked guard{p.guard};
      thread_aggregates& a = aggregates_of(p);
      if (a.memory == nullptr || a.memory->retired) return;
      // The thread's next call takes the slow path and waits for this guard there.
      std::atomic<aggregates_block*>& open = gate_of(p).aggregates;
      aggregates_block* const first = open.exchange(nullptr, std::memory_order_seq_cst);
      copies.add_whole([&a](each_block each) { a.memory->for_each_block(each); });
      open.store(first, std::memory_order_release);
    });
    copies.finish();
    if (copies.failed()) return ENOMEM;
    // From here on no lock is held, so no thread waits for the disk.
    return for_each_section(
        {files_.begun_ns(), 0}, rate(), names_.line_starts(),
        [&copies](each_chain each) { copies.for_each_chain(aggregate_state::moving, each); },
        [this, folder](std::uint32_t loader, std::string_view section) {
          return append(folder, loader, section);
        });
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  std::uint64_t rate() noexcept {
    return clock_.with_map([](const clock_map& map) { return mean_rate(map); });
  }

  int append(std::uint32_t loader, std::string_view section) noexcept {
    const int error = append(files_.directory(), loader, section);
    files_.reports().disk(files_.location(), error, aggregates_file_start);
    return error;
  }
  int append(int folder, std::uint32_t loader, std::string_view section) noexcept {
    log_folder in = files_.logs_folder();
    in.directory = folder;
    loader_folders folders{in};
    return append_aggregates(in, folders, loader, static_cast<std::uint32_t>(getpid()), section);
  }

  run_files& files_;
  session_clock& clock_;
  const name_table& names_;
  mutex lock_;  ///< guards all threads' blocks while they grow or are written
  std::uint32_t chains_ = 0;
  std::uint64_t late_calls_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP

// The thread that drains in the background. It is an optimization: nothing depends on it.
#ifndef LOTUS_STORE_DRAIN_THREAD_HPP
#define LOTUS_STORE_DRAIN_THREAD_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines the pauses between the rounds of a recording. Thread safety: all.
class drain_pace {
 public:
  void begin(std::uint32_t interval_ms) noexcept {
    most_ms_.store(interval_ms > 0 ? interval_ms : 1, std::memory_order_relaxed);
    early_ms_.store(5, std::memory_order_relaxed);
  }

  /// Returns 5, 20 and 80 ms first, because early ties improve the clock's rate; then the program's
  /// interval.
  /// @param more_to_do  there is work besides draining: limits the pause to 100 ms.
  std::uint32_t next_ms(bool more_to_do) noexcept {
    const std::uint32_t early_ms = early_ms_.load(std::memory_order_relaxed);
    const std::uint32_t chosen_ms = most_ms_.load(std::memory_order_relaxed);
    const std::uint32_t most_ms =
        more_to_do && chosen_ms > early_until_ms ? early_until_ms : chosen_ms;
    if (early_ms < early_until_ms) early_ms_.store(early_ms * 4, std::memory_order_relaxed);
    return early_ms < early_until_ms && early_ms < most_ms ? early_ms : most_ms;
  }

 private:
  static constexpr std::uint32_t early_until_ms = 100;

  std::atomic<std::uint32_t> most_ms_{0};
  std::atomic<std::uint32_t> early_ms_{0};
};

/// Calls a function at intervals. Detached and never joined: the process may end at any moment.
/// Thread safety: all functions; the caller has signals blocked, which the thread inherits.
class drain_thread {
 public:
  /// @param round  called with `context`; returns the pause until the next round in ms, or 0 to
  /// sleep until wake() is called.
  drain_thread(std::uint32_t (*round)(void*) noexcept, void* context) noexcept
      : round_{round}, context_{context} {}

  /// Starts the thread, or the next round if it runs already. Does nothing if no thread can be
  /// created.
  void wake() noexcept {
    wakes_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (runs_.load(std::memory_order_relaxed) || runs_.exchange(true)) return;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    if (pthread_create(&thread, &detached, run, this) != 0) runs_.store(false);
    pthread_attr_destroy(&detached);
  }

  /// Whether the thread runs; false in a child that was just forked.
  bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }

  /// In a forked child, which has no such thread.
  void forget() noexcept { runs_.store(false, std::memory_order_relaxed); }

 private:
  LOTUS_DETAIL_COLD static void* run(void* self) noexcept {
    pthread_setname_np(pthread_self(), "lotus-drain");
    auto& thread = *static_cast<drain_thread*>(self);
    for (;;) {
      const std::uint32_t seen = thread.wakes_.load(std::memory_order_acquire);
      const std::uint32_t pause_ms = thread.round_(thread.context_);
      const timespec pause{pause_ms / 1000, static_cast<long>(pause_ms % 1000) * 1'000'000};
      syscall(SYS_futex, &thread.wakes_, FUTEX_WAIT_PRIVATE, seen, pause_ms == 0 ? nullptr : &pause,
              nullptr, 0);
    }
  }

  std::uint32_t (*round_)(void*) noexcept;
  void* context_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> runs_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_DRAIN_THREAD_HPP

// Keeps the recorder consistent in parent and child when the process forks.
#ifndef LOTUS_STORE_FORK_GUARD_HPP
#define LOTUS_STORE_FORK_GUARD_HPP

// The state that every thread checks: whether recording is on, and what happens to a full ring.
#ifndef LOTUS_STORE_RECORDING_STATE_HPP
#define LOTUS_STORE_RECORDING_STATE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: all; begin() and the functions after it, one at a time.
class recording_state {
 public:
  bool is_on() const noexcept { return on_.load(std::memory_order_acquire); }
  /// Whether each record is written to its log at once, because the process exits and no later
  /// drain follows.
  bool writes_through() const noexcept { return write_through_.load(std::memory_order_relaxed); }
  bool drops_when_full() const noexcept {
    return when_full_.load(std::memory_order_relaxed) == full_ring::drop;
  }

  void begin(full_ring when_full) noexcept {
    when_full_.store(when_full, std::memory_order_relaxed);
    write_through_.store(false, std::memory_order_relaxed);
    on_.store(true, std::memory_order_release);
  }
  void write_through() noexcept { write_through_.store(true, std::memory_order_relaxed); }
  void end() noexcept { on_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> on_{false};
  std::atomic<bool> write_through_{false};
  std::atomic<full_ring> when_full_{full_ring::drop};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDING_STATE_HPP

// What a thread does if it cannot store its record in its ring at once.
#ifndef LOTUS_STORE_SLOW_PATH_HPP
#define LOTUS_STORE_SLOW_PATH_HPP

// The rings of all threads, and the path of their records to the logs.
#ifndef LOTUS_STORE_STORAGE_HPP
#define LOTUS_STORE_STORAGE_HPP

// Keeps records in memory while the disk does not accept them.
#ifndef LOTUS_STORE_BACKLOG_HPP
#define LOTUS_STORE_BACKLOG_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy, in private memory, of a ring that was full while it could not be written.
struct backlog_chunk {
  backlog_chunk* next;
  std::uint64_t bytes;  ///< size of the mapping
  ring_block ring;      ///< last, because its records follow it
};

/// The records that were moved to memory, in order of age for each thread.
/// Thread safety: begin() while nothing else is called; everything else with the producer's guard.
class backlog {
 public:
  void begin(std::size_t max_bytes) noexcept { max_bytes_ = max_bytes; }

  /// Moves the records of `p`'s ring to memory and empties the ring. Returns false if the memory
  /// limit is reached; then nothing was moved.
  bool set_aside(producer& p) noexcept {
    ring_block& ring = *p.ring;
    const std::size_t bytes = offsetof(backlog_chunk, ring) + ring_block::bytes_for(ring.capacity);
    if (used_bytes_.load(std::memory_order_relaxed) + bytes > max_bytes_) return false;
    auto* chunk = static_cast<backlog_chunk*>(map_memory(bytes));
    if (chunk == nullptr) return false;
    used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    chunk->bytes = bytes;
    chunk->ring.capacity = ring.capacity;
    chunk->ring.tid.store(ring.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const lane_heads heads{ring};
    copy_records(ring, heads, chunk->ring);
    skip_records(ring, heads, heads.beyond(ring.committed()));
    (p.backlog_first == nullptr ? p.backlog_first : p.backlog_last->next) = chunk;
    p.backlog_last = chunk;
    return true;
  }

  /// Frees the oldest chunk of `p`. Returns how many records are lost with it.
  std::uint64_t drop_oldest(producer& p) noexcept {
    backlog_chunk* const chunk = p.backlog_first;
    if (chunk == nullptr) return 0;
    const std::uint64_t records = lane_heads{chunk->ring}.beyond(chunk->ring.committed());
    if (p.ring != nullptr && records > 0) {
      commit_point c = p.ring->committed();
      c.in_memory -= static_cast<std::uint32_t>(records);
      p.ring->commit(c);
    }
    p.backlog_first = chunk->next;
    if (p.backlog_first == nullptr) p.backlog_last = nullptr;
    used_bytes_.fetch_sub(chunk->bytes, std::memory_order_relaxed);
    munmap(chunk, chunk->bytes);
    return records;
  }

 private:
  std::atomic<std::size_t> used_bytes_{0};
  std::size_t max_bytes_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_BACKLOG_HPP

// Buffers for the threads that drain.
#ifndef LOTUS_STORE_DRAIN_BUFFERS_HPP
#define LOTUS_STORE_DRAIN_BUFFERS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps a few unused buffers for the next drain. Thread safety: all.
class drain_buffers {
 public:
  /// Returns null if there is no memory.
  drain_buffer* take() noexcept {
    const locked hold{lock_};
    if (spare_count_ > 0) return spare_[--spare_count_];
    return static_cast<drain_buffer*>(map_memory(sizeof(drain_buffer)));
  }

  void give_back(drain_buffer* buffer) noexcept {
    const locked hold{lock_};
    if (spare_count_ < max_spare) {
      spare_[spare_count_++] = buffer;
    } else {
      munmap(buffer, sizeof(drain_buffer));
    }
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::size_t max_spare = 4;

  mutex lock_;
  drain_buffer* spare_[max_spare] = {};
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_DRAIN_BUFFERS_HPP

// Which threads' logs stay open between two drains.
#ifndef LOTUS_STORE_KEPT_LOGS_HPP
#define LOTUS_STORE_KEPT_LOGS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Opening the logs for each drain would cost more than writing to them, but the program needs the
/// descriptors too. So only some threads' logs stay open. Thread safety: all, with the producer's
/// guard.
class kept_logs {
 public:
  void keep_or_close(producer& p) noexcept {
    if (p.logs_kept_open) return;
    p.logs_kept_open = threads_.fetch_add(1, std::memory_order_relaxed) < most_threads;
    if (p.logs_kept_open) return;
    threads_.fetch_sub(1, std::memory_order_relaxed);
    close_all(p.logs);
  }

  void close(producer& p) noexcept {
    close_all(p.logs);
    if (p.logs_kept_open) threads_.fetch_sub(1, std::memory_order_relaxed);
    p.logs_kept_open = false;
  }

 private:
  static constexpr std::uint32_t most_threads = 32;  ///< with three logs each

  std::atomic<std::uint32_t> threads_{0};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_KEPT_LOGS_HPP

// Determines when the calling thread was started.
#ifndef LOTUS_STORE_LIMITS_THREAD_START_HPP
#define LOTUS_STORE_LIMITS_THREAD_START_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The kernel's start time, accurate to 10 ms; read at the first use.
class thread_start {
 public:
  /// Whether the thread certainly started later than `ticks`.
  LOTUS_DETAIL_COLD bool is_after(std::uint64_t ticks, session_clock& clock) noexcept {
    if (!known_) find(clock);
    return static_cast<std::int64_t>(now_ - ticks) > 0 && now_ - ticks > age_ticks_;
  }

 private:
  void find(session_clock& clock) noexcept {
    known_ = true;
    now_ = now_ticks();
    age_ticks_ = UINT64_MAX;
    char text[1024];
    read_beginning("/proc/thread-self/stat", text);
    // After the name, which may contain anything, follows "state ppid pgrp ..."; the start is the
    // 20th of these fields.
    const char* at = std::strrchr(text, ')');
    for (int field = 0; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return;
    const long long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0) return;
    // The kernel rounds down, so the thread seems older than it is.
    const long long started_ns = std::strtoll(at, nullptr, 10) * (1'000'000'000 / per_second);
    const std::int64_t age_ns = clock_ns(CLOCK_BOOTTIME) - started_ns;
    if (age_ns >= 0) age_ticks_ = clock.ticks_in(age_ns).value_or(UINT64_MAX);
  }

  bool known_ = false;
  std::uint64_t now_ = 0;
  std::uint64_t age_ticks_ = 0;  ///< the thread's age at now_
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_THREAD_START_HPP

// Writes all records of one thread to its logs.
#ifndef LOTUS_STORE_PRODUCER_DRAIN_HPP
#define LOTUS_STORE_PRODUCER_DRAIN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What a drain needs besides the thread and its logs.
struct drain_context {
  const tick_converter& clock;
  const name_table& names;
  bool compact;
  drain_buffer& buffer;
  backlog& set_aside;
  std::atomic<std::uint64_t>& written;  ///< incremented by the number of records written
};

/// Writes the records that were moved to memory first, then those in the ring.
template <class Filler>
int drain_with(Filler& fill, producer& p, const lane_heads& heads, const drain_context& context,
               log_appender& logs) noexcept {
  ring_block& ring = *p.ring;
  const std::uint64_t complete = heads.beyond(ring.committed());
  const auto count = [&](std::uint64_t records) {
    context.written.fetch_add(records, std::memory_order_relaxed);
  };
  int error = 0;
  while (error == 0 && p.backlog_first != nullptr) {
    ring_block& chunk = p.backlog_first->ring;
    const std::uint64_t aside = lane_heads{chunk}.beyond(chunk.committed());
    logs.take_records_of(chunk);
    error = drain_ring(chunk, lane_heads{chunk}, fill, logs);
    logs.take_records_of(ring);
    count(aside - lane_heads{chunk}.beyond(chunk.committed()));
    if (error == 0) context.set_aside.drop_oldest(p);
  }
  if (error == 0) error = drain_ring(ring, heads, fill, logs);
  count(complete - heads.beyond(ring.committed()));
  return error;
}

/// Returns 0 or errno; then the records that were not written stay. The caller holds p.guard.
/// @param heads  read before the clock was constructed.
inline int drain_producer(producer& p, const lane_heads& heads, const drain_context& context,
                          log_appender& logs) noexcept {
  const name_lookup names = context.names.line_starts();
  if (!context.compact) {
    line_filler fill{context.clock, names, context.buffer};
    return drain_with(fill, p, heads, context, logs);
  }
  if (p.chain == nullptr) {
    p.chain = static_cast<compact_chain*>(map_memory(sizeof(compact_chain)));
    if (p.chain == nullptr) return ENOMEM;
  }
  compact_filler fill{context.clock, names, *p.chain, context.buffer};
  return drain_with(fill, p, heads, context, logs);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_PRODUCER_DRAIN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The records of a thread that were not written to its logs when it was drained for the last time.
struct unwritten_records {
  std::uint64_t recoverable = 0;  ///< they are in the ring file
  std::uint64_t lost = 0;
};

/// Thread safety: open() under the session's control lock; everything else from any thread that
/// holds the guard of the producer concerned.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  /// Returns 0 or errno; reports the reason once.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    if (const int error = files_.open(chosen); error != 0) return error;
    compact_ = files_.logs_folder().compact;
    backlog_.begin(chosen.backlog_bytes);
    retention_.begin(chosen);
    const log_folder folder = files_.logs_folder();
    retention_.begin_behind_parts(folder.directory, folder.prefix, folder.owners);
    own_logs_.store(0, std::memory_order_relaxed);
    ring_records_ = 64;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    files_.make_ring_file(retention_.any());
    return 0;
  }

  // --- a thread's ring

  /// Gives the producer a ring of this run. Returns false if there is no memory.
  LOTUS_DETAIL_COLD bool attach(producer& p) noexcept {
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.make_due_ring_file();
    files_.recover_thread(tid);
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    p.ring = nullptr;
    ring_block* const ring = files_.add_ring(tid, ring_records_, p.ring_in_file);
    if (ring == nullptr) return false;
    commit_point begin{};
    begin.loader = p.loader;
    ring->commit(begin);
    p.ring = ring;
    p.attached = true;
    own_logs_.fetch_add(1, std::memory_order_relaxed);
    p.slots = ring->slots();
    p.mask = ring->capacity - 1;
    p.published = &ring->published[0];
    gate_of(p).waiting_since = &ring->waiting_since;
    p.longest_wait_ticks.store(0, std::memory_order_relaxed);
    return true;
  }

  /// Whether the calling thread may take over a dead thread's ring. It may have begun a span before
  /// it first called the session. If it would share the dead thread's logs, all spans in them must
  /// have ended before it started, because readers treat spans of one log that lie within each
  /// other as nested.
  bool may_hand_over(const producer& p, thread_start& started) noexcept {
    if (!p.attached || !shares_logs()) return true;
    const std::uint64_t head = p.ring->published[0].load(std::memory_order_relaxed);
    if (head == 0) return true;
    const record& last = p.ring->slot(0, head - 1);
    const std::uint64_t ended = kind_of(last.tag).lasts() ? last.end_ticks : last.begin_ticks;
    return started.is_after(ended, clock_);
  }

  /// Gives the ring of a drained producer to another thread.
  LOTUS_DETAIL_COLD void hand_over(producer& p) noexcept {
    const bool share = p.attached && shares_logs();
    if (!share) kept_logs_.close(p);
    if (!p.attached) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.recover_thread(tid);
    p.ring->tid.store(tid, std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    c.loader = p.loader;
    if (share && p.shares_logs) return p.ring->commit(c);
    p.shares_logs = share;
    if (share) {
      // The existing logs become parts, so that they can be deleted if there are limits.
      if (retention_.any()) retention_.roll(files_.logs_folder(), p);
      kept_logs_.close(p);
    } else {
      own_logs_.fetch_add(1, std::memory_order_relaxed);
    }
    files_.add_thread(tid);
    const std::uint32_t number = share ? files_.new_log_number(tid) : 0;
    for (log_position& log : c.logs) log = {0, 0, false, number, 0};
    p.ring->commit(c);
  }

  /// Takes the ring out of use. It stays mapped until the next attach, because its thread may be
  /// storing a record at this moment. Records that were not written are discarded.
  /// @return how many records that were only in memory are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) lost += backlog_.drop_oldest(p);
    kept_logs_.close(p);
    p.attached = p.shares_logs = false;
    return lost;
  }

  // --- from rings to logs

  /// Writes all complete records of `p` to its logs. Returns 0 or errno; then the records that were
  /// not written stay in the ring.
  int drain(producer& p) noexcept {
    const lane_heads heads{*p.ring};
    const bool empty = heads.beyond(p.ring->committed()) == 0 && p.backlog_first == nullptr;
    if (empty && !retention_.is_due(p)) return 0;
    drain_buffer* buffer = buffers_.take();
    if (buffer == nullptr) return ENOMEM;
    files_.tie_clock();
    const tick_converter clock = clock_.converter();
    const log_folder folder = files_.logs_folder();
    log_appender logs{folder, *p.ring, p.logs};
    const int error = drain_producer(
        p, heads, {clock, names_, compact_, *buffer, backlog_, files_.written()}, logs);
    if (error == 0) retention_.after_drain(folder, p);
    if (retention_.overdue()) keep_limits();
    buffers_.give_back(buffer);
    kept_logs_.keep_or_close(p);
    files_.reports().disk(files_.location(), error, logs.name());
    return error;
  }

  /// Moves the records of a ring that cannot be drained to memory. Returns false if the limit is
  /// reached.
  bool set_aside(producer& p) noexcept { return backlog_.set_aside(p); }
  /// Drops the oldest records that a producer has in memory. Returns how many.
  std::uint64_t drop_oldest(producer& p) noexcept { return backlog_.drop_oldest(p); }

  /// Called if the last drain of `p` failed. Copies records that are only in memory to the ring
  /// file as far as it can grow, and discards the rest.
  LOTUS_DETAIL_COLD unwritten_records leave(producer& p) noexcept {
    unwritten_records sum;
    while (p.backlog_first != nullptr) {
      leave(p.backlog_first->ring, sum);
      backlog_.drop_oldest(p);
    }
    if (p.ring_in_file) {
      sum.recoverable += lane_heads{*p.ring}.beyond(p.ring->committed());
    } else {
      leave(*p.ring, sum);
    }
    return sum;
  }

  /// Deletes the logs that exceed their limits.
  LOTUS_DETAIL_COLD void keep_limits() noexcept {
    forgotten_logs forgotten;
    if (!retention_.any() || !retention_.keep(files_.logs_folder(), forgotten)) return;
    files_.add_forgotten(forgotten);
  }

  log_retention& retention() noexcept { return retention_; }

  // --- in a forked child: the rings and their records belong to the parent

  LOTUS_DETAIL_COLD void after_fork_in_child(producer& p) noexcept {
    // If a signal handler that interrupted a scope forks, that scope continues to use the ring.
    const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
    if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
    p.ring = nullptr;
    p.published = &p.none_published;
    gate_of(p).waiting_since = nullptr;
    detach(p);
  }
  void after_fork_in_child() noexcept { retention_.after_fork_in_child(); }

  mutex& buffers_fork_lock() noexcept { return buffers_.fork_lock(); }

 private:
  /// Only the first threads get logs of their own. With very many short-lived threads, each would
  /// leave files of a few lines, too many for the limits to examine.
  bool shares_logs() const noexcept {
    constexpr std::uint32_t most_own_logs = 64;
    return retention_.any() || own_logs_.load(std::memory_order_relaxed) >= most_own_logs;
  }

  LOTUS_DETAIL_COLD void leave(ring_block& ring, unwritten_records& sum) noexcept {
    const lane_heads heads{ring};
    const std::uint64_t records = heads.beyond(ring.committed());
    if (records > 0) (files_.add_copy(ring, heads) ? sum.recoverable : sum.lost) += records;
    skip_records(ring, heads);
  }

  run_files& files_;
  session_clock& clock_;
  const name_table& names_;
  bool compact_ = false;
  std::uint32_t ring_records_ = 0;
  std::atomic<std::uint32_t> own_logs_{0};  ///< threads that have had logs of their own
  kept_logs kept_logs_;
  log_retention retention_;
  backlog backlog_;
  drain_buffers buffers_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Gives a thread its ring, makes room in a full ring, and enters a loader. The functions of the
/// first part block signals and take the producer's guard themselves; the caller of those of the
/// second part holds the guard. Thread safety: all.
class LOTUS_DETAIL_PER_MODULE slow_path {
 public:
  slow_path(const recording_state& state, storage& rings, aggregate_store& aggregates,
            cpu_clock& cpu, drain_thread& drains) noexcept
      : state_{state}, rings_{rings}, aggregates_{aggregates}, cpu_{cpu}, drains_{drains} {}

  // --- for the owning thread

  void push(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // A limit other than 0 means that the ring is just full or half full.
    if (gate_of(p).limit.load(std::memory_order_relaxed) != 0 && state_.drops_when_full()) {
      if (!push_or_drop(p, r)) drop(p);
      return;
    }
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!state_.is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    if (p.ring->full() && !make_room(p)) return drop(p);
    p.ring->append(r);
    if (state_.writes_through()) drain(p);
  }

  /// Stores a record from a signal handler that interrupted this thread while it was storing one. A
  /// record from a second handler that interrupts the first one here is dropped and counted.
  void push_nested(producer& p, const record& r) const noexcept {
    // Without a ring, before a thread's first record or while recording is off, there is no room.
    if (gate_of(p).interrupt_limit.load(std::memory_order_acquire) == 0) {
      if (state_.is_on()) drop(p);
      return;
    }
    const std::uintptr_t place = p.storing_nested.load(std::memory_order_relaxed);
    if (place != 0 && is_interrupted(place)) return drop(p);
    p.storing_nested.store(stack_pointer(), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
    if (at < gate_of(p).interrupt_limit.load(std::memory_order_acquire)) {
      ring.slot(1, at) = r;
      ring.published[1].store(at + 1, std::memory_order_release);
    } else {
      drop(p);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    p.storing_nested.store(0, std::memory_order_relaxed);
  }

  /// Adds a call for which there is no memory yet, perhaps not even for the call before. Returns
  /// false if it is lost.
  bool aggregate(producer& p, const aggregate_call& call) noexcept {
    if (this_thread_forks) return lose(p);
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!state_.is_on()) return false;
    if (state_.writes_through()) {
      aggregates_.write_late(p, call);
      return true;
    }
    return aggregates_.add(p, call) || lose(p);
  }

  /// Attaches a ring if recording is on and the thread has none.
  void get_ring(producer& p) noexcept {
    if (this_thread_forks || interrupts_storing(p)) return;
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (state_.is_on() && !p.attached) attach(p);
  }

  /// Returns the loader that the thread's records belonged to before.
  std::uint32_t enter_loader(producer& p, std::uint32_t loader) noexcept {
    if (p.loader == loader || interrupts_storing(p)) return p.loader;
    const signals_blocked quiet;
    const locked guard{p.guard};
    const std::uint32_t before = p.loader;
    // Without a ring nothing needs to be recorded: the ring will begin with this loader.
    if (p.attached && state_.is_on()) {
      // Without this record all following records would be assigned to the wrong loader, so it must
      // not be dropped even if records may be.
      if (p.ring->full() && drain(p) != 0 && !rings_.set_aside(p)) {
        drop(p);
        return before;
      }
      p.ring->append({0, 0, {event_kind::loader, loader}});
      open_lanes(p);
    }
    p.loader = loader;
    return before;
  }

  /// If full rings drop records, off-CPU records are dropped first: they may not use a ring's last
  /// quarter.
  off_cpu_time read_cpu(producer& p, cpu_watch& watch) noexcept {
    const off_cpu_time found = cpu_.read(p.cpu, watch);
    if (found.off_ns == 0 || !state_.drops_when_full() || !p.attached) return found;
    if (p.ring->used() < std::uint64_t{p.ring->capacity} * 3 / 4) return found;
    drop(p);
    return {};
  }

  // --- the caller holds the guard

  int drain(producer& p) noexcept {
    const int error = rings_.drain(p);
    open_lanes(p);
    return error;
  }

  /// Lets the owner store records until the ring is full of uncommitted ones.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    const bool on = state_.is_on();
    const bool open = on && !state_.writes_through();
    gate_of(p).interrupt_limit.store(on ? c.tail[1] + interrupt_lane_records : 0,
                                     std::memory_order_release);
    const std::uint64_t room = p.ring->capacity;
    gate_of(p).last_limit.store(c.tail[0] + room, std::memory_order_release);
    gate_of(p).limit.store(!open ? 0 : c.tail[0] + (state_.drops_when_full() ? room / 2 : room),
                           std::memory_order_release);
  }

  /// Forces the owner's next record onto the slow path.
  static void close_lanes(producer& p) noexcept {
    gate_of(p).limit.store(0, std::memory_order_relaxed);
    gate_of(p).interrupt_limit.store(0, std::memory_order_relaxed);
  }

 private:
  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }
  static bool lose(producer& p) noexcept {
    drop(p);
    return false;
  }

  LOTUS_DETAIL_COLD bool attach(producer& p) noexcept {
    if (!rings_.attach(p)) return false;
    open_lanes(p);
    if (!drains_.runs()) drains_.wake();
    return true;
  }

  bool set_aside(producer& p) noexcept {
    if (!rings_.set_aside(p)) return false;
    open_lanes(p);
    return true;
  }

  /// Makes room in a full ring: writes its records to the disk, or moves them to memory if that
  /// fails or the thread must not wait for the disk.
  bool make_room(producer& p) noexcept {
    if (!state_.drops_when_full()) {
      p.drained_itself.store(true, std::memory_order_relaxed);
      return drain(p) == 0 || set_aside(p);
    }
    while (!set_aside(p)) {
      if (p.backlog_first == nullptr) return false;
      p.dropped.fetch_add(rings_.drop_oldest(p), std::memory_order_relaxed);
    }
    return true;
  }

  /// Stores a record without ever waiting for the disk. A half-full ring wakes the drain thread. A
  /// full ring is moved to memory, where the oldest records are dropped if the limit is reached.
  /// Fails if the drain thread is just writing the ring.
  bool push_or_drop(producer& p, const record& r) noexcept {
    std::uint64_t limit = gate_of(p).limit.load(std::memory_order_acquire);
    const std::uint64_t last_limit = gate_of(p).last_limit.load(std::memory_order_acquire);
    if (limit == 0) return false;
    if (limit < last_limit && p.published->load(std::memory_order_relaxed) < last_limit) {
      gate_of(p).limit.compare_exchange_strong(limit, last_limit);
      drains_.wake();
      detail::push(r.begin_ticks, r.end_ticks, r.tag);
      return true;
    }
    const signals_blocked quiet;
    if (!p.guard.try_lock()) return false;
    const bool stored = state_.is_on() && p.attached && (!p.ring->full() || make_room(p));
    if (stored) p.ring->append(r);
    p.guard.unlock();
    return stored;
  }

  const recording_state& state_;
  storage& rings_;
  aggregate_store& aggregates_;
  cpu_clock& cpu_;
  drain_thread& drains_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SLOW_PATH_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The parts of a recorder that have a lock, or that a child must not share with its parent.
struct LOTUS_DETAIL_PER_MODULE forked_parts {
  const recording_state& state;
  mutex& round;
  producer_list& producers;
  storage& rings;
  aggregate_store& aggregates;
  run_files& files;
  session_clock& clock;
  name_table& names;
  cpu_clock& cpu;
  const slow_path& slow;
};

/// Holds all of the recorder's locks from before the fork until after it, so that no operation is
/// half finished in the child. Thread safety: none; the session calls one function at a time.
class LOTUS_DETAIL_PER_MODULE fork_guard {
 public:
  explicit fork_guard(const forked_parts& of) noexcept : of_{of} {}

  void before() noexcept {
    forking_tid_ = thread_id();
    of_.round.lock();
    of_.producers.fork_lock().lock();
    of_.producers.for_each([](producer& p) { p.guard.lock(); });
    for_each_lock([](mutex& m) { m.lock(); });
    // A signal handler that records in between takes the slow path, which detects the fork.
    of_.producers.for_each([this](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      slow_path::close_lanes(p);
      aggregate_store::close(p);
    });
  }

  /// Called in the parent, and in the child after become_child().
  void after() noexcept {
    const bool stores = of_.state.is_on() && !of_.state.writes_through();
    of_.producers.for_each([&](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      if (p.attached) of_.slow.open_lanes(p);
      if (stores) aggregate_store::reopen(p);
    });
    // Unlocks in the order of locking: a thread that waits for an outer lock does not need an inner
    // one yet.
    for_each_lock([](mutex& m) { m.unlock(); });
    of_.producers.for_each([](producer& p) { p.guard.unlock(); });
    of_.producers.fork_lock().unlock();
    of_.round.unlock();
  }

  LOTUS_DETAIL_COLD void become_child() noexcept {
    of_.producers.for_each([this](producer& p) {
      aggregate_store::after_fork_in_child(p);
      of_.rings.after_fork_in_child(p);
      slow_path::close_lanes(p);
      p.dropped.store(0, std::memory_order_relaxed);
      of_.cpu.give_up(p.cpu);
      const bool forked = p.tid.load(std::memory_order_relaxed) == forking_tid_;
      p.tid.store(forked ? thread_id() : 0, std::memory_order_relaxed);
    });
    of_.rings.after_fork_in_child();
    of_.files.after_fork_in_child();
    cpu_clock::disturb();
  }

 private:
  /// The locks inside the producers' guards, outermost first.
  void for_each_lock(void (*each)(mutex&)) noexcept {
    each(of_.aggregates.fork_lock());
    each(of_.files.fork_lock());
    each(of_.files.leftovers_fork_lock());
    each(of_.clock.fork_lock());
    each(of_.names.fork_lock());
    each(of_.files.directory_fork_lock());
    each(of_.rings.buffers_fork_lock());
  }

  const forked_parts of_;
  std::uint32_t forking_tid_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_FORK_GUARD_HPP

// Counts records that no log will contain, or only under another name, and reports each kind once.
#ifndef LOTUS_STORE_LOSSES_HPP
#define LOTUS_STORE_LOSSES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Losses that no running thread's producer counts. Thread safety: all; begin() and report() under
/// the session's control lock.
class losses {
 public:
  /// A recording begins.
  /// @param dropped  records dropped by this process so far.
  void begin(std::uint64_t dropped) noexcept {
    dropped_at_start_ = dropped;
    said_unnamed_.store(false, std::memory_order_relaxed);
    said_batch_.store(false, std::memory_order_relaxed);
    said_crossed_.store(false, std::memory_order_relaxed);
  }
  /// In a forked child, which has lost nothing yet.
  void forget() noexcept {
    dropped_.store(0, std::memory_order_relaxed);
    dropped_at_start_ = 0;
  }

  void count(std::uint64_t records) noexcept {
    dropped_.fetch_add(records, std::memory_order_relaxed);
  }
  std::uint64_t counted() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  /// How many records this recording has lost, given the `dropped` ones of the whole process.
  std::uint64_t of_recording(std::uint64_t dropped) const noexcept {
    return dropped - dropped_at_start_;
  }
  /// @param recoverable  records that are still in the ring file.
  void report(std::uint64_t dropped, std::uint64_t recoverable) const noexcept {
    const auto lost = static_cast<unsigned long long>(of_recording(dropped));
    if (lost > 0) say("%llu records were dropped", lost);
    if (recoverable > 0) {
      say("%llu records are not in the logs yet; `lotus-tool recover` puts them there",
          static_cast<unsigned long long>(recoverable));
    }
  }

  /// There is no room for another name.
  /// @param names  the number of existing names.
  void unnamed(std::uint32_t names) noexcept {
    if (said_unnamed_.exchange(true)) return;
    say("no %s for a name after the first %u: such operations are recorded as %s",
        names >= name_table::limit ? "room" : "memory", names, unnamed_name.data());
  }

  /// A record of a batch was refused because its number is too large for a record.
  void refused_batch(std::uint64_t number) noexcept {
    count(1);
    if (said_batch_.exchange(true)) return;
    say("batch number %llu (%lld) is not below 2^%u: records of such batches are dropped",
        static_cast<unsigned long long>(number), static_cast<long long>(number),
        record_tag::value_bits);
  }

  /// A scope has ended on another thread than it began on.
  void crossed_threads(std::string_view name) noexcept {
    if (said_crossed_.exchange(true)) return;
    say("the scope %.*s ended on another thread than it began on, so its line is wrong: use "
        "lotus::async_scope for what changes threads",
        static_cast<int>(name.size()), name.data());
  }

 private:
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t dropped_at_start_ = 0;
  std::atomic<bool> said_unnamed_{false};
  std::atomic<bool> said_batch_{false};
  std::atomic<bool> said_crossed_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LOSSES_HPP

// Snapshots of the running recording, made on request or by a trigger.
#ifndef LOTUS_STORE_RECORDING_SNAPSHOTS_HPP
#define LOTUS_STORE_RECORDING_SNAPSHOTS_HPP

// Creates a snapshot: a copy of a run's directory as it is now.
#ifndef LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP
#define LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP

#include <sys/file.h>

// Where snapshots are stored, and how they are named.
#ifndef LOTUS_FOLDER_SNAPSHOT_PLACE_HPP
#define LOTUS_FOLDER_SNAPSHOT_PLACE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Where the snapshots of a run are stored. Those of the run directory "run" are next to it, as
/// run.snapshot-<UTC>-<reason>. If the run directory is the program's working directory, they are
/// inside it and begin with the logs' prefix. Sorting by name sorts by time.
class snapshot_place {
 public:
  /// @param directory  descriptor of the run's directory, borrowed.
  snapshot_place(int directory, const log_location& run) noexcept {
    const char* const slash = std::strrchr(run.directory, '/');
    const char* name = slash == nullptr ? run.directory : slash + 1;
    const bool inside =
        *name == '\0' || std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
    parent_ = open_out_of_the_way(directory, inside ? "." : "..", O_RDONLY | O_DIRECTORY);
    if (parent_ < 0) error_ = errno;
    std::snprintf(start_, sizeof(start_), "%.150s%s", inside ? run.prefix : name, between);
  }
  snapshot_place(const snapshot_place&) = delete;
  snapshot_place& operator=(const snapshot_place&) = delete;
  ~snapshot_place() {
    if (parent_ >= 0) close(parent_);
  }

  /// 0 or errno.
  int error() const noexcept { return error_; }
  int parent() const noexcept { return parent_; }

  /// Whether a folder of this name is a finished snapshot of this run.
  bool is_one(const char* name) const noexcept {
    const std::size_t bytes = std::strlen(start_);
    return std::strncmp(name, start_, bytes) == 0 && is_time(name + bytes);
  }

  /// Writes "<run>.snapshot-20261123T101500.123456Z-<reason>" to `out`.
  void put_name(char* out, std::size_t bytes, std::string_view reason, std::int64_t ns,
                unsigned attempt) const noexcept {
    const time_t seconds = ns / 1'000'000'000;
    struct tm utc {};
    gmtime_r(&seconds, &utc);
    char when[32];
    strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &utc);
    const auto us = static_cast<unsigned>(ns / 1000 % 1'000'000);
    char why[most_reason_bytes + 1] = {};
    for (std::size_t i = 0; i < reason.size() && i < sizeof(why) - 1; ++i) {
      const char c = reason[i];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
      why[i] = plain ? c : '-';
    }
    char again[16] = "";
    if (attempt > 0) std::snprintf(again, sizeof(again), "-%u", attempt + 1);
    std::snprintf(out, bytes, "%s%s.%06uZ-%s%s", start_, when, us, why, again);
  }

  static constexpr char between[] = ".snapshot-";
  static constexpr std::size_t most_reason_bytes = 64;

  /// Whether `text` begins with a time such as "20261123T101500.123456Z-".
  static bool is_time(const char* text) noexcept {
    for (const char form : std::string_view{"ddddddddTdddddd.ddddddZ-"}) {
      const char c = *text++;
      if (form == 'd' ? c < '0' || c > '9' : c != form) return false;
    }
    return true;
  }

 private:
  int parent_ = -1;
  int error_ = 0;
  char start_[192] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_SNAPSHOT_PLACE_HPP

// Finds the end of the whole lines or blocks in a log that another process is appending to.
#ifndef LOTUS_RECOVERY_WHOLE_END_HPP
#define LOTUS_RECOVERY_WHOLE_END_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Position after the last line break in the first `bytes`. Looks back at most 64 KB, which is more
/// than a line's maximum length.
inline std::uint64_t end_of_whole_lines(int fd, std::uint64_t bytes) noexcept {
  char text[4096];
  std::uint64_t end = bytes;
  for (int i = 0; i < 16 && end > 0; ++i) {
    const std::size_t n = end < sizeof(text) ? static_cast<std::size_t>(end) : sizeof(text);
    if (!read_at(fd, text, n, end - n)) return 0;
    for (std::size_t at = n; at > 0; --at) {
      if (text[at - 1] == '\n') return end - n + at;
    }
    end -= n;
  }
  return 0;
}

/// Position after the last complete block. A damaged block ends the search; the whole file is then
/// kept, and its reader reports the damage.
inline std::uint64_t end_of_whole_blocks(int fd, std::uint64_t bytes) noexcept {
  std::uint64_t end = 0;
  while (bytes - end >= sizeof(compact_block_header)) {
    compact_block_header head{};
    if (!read_at(fd, static_cast<void*>(&head), sizeof(head), end)) return end;
    const bool is_one = std::memcmp(head.magic, compact_block_magic, sizeof(head.magic)) == 0 &&
                        head.bytes >= sizeof(head);
    if (!is_one) return bytes;
    if (head.bytes > bytes - end) return end;
    end += head.bytes;
  }
  return end;
}

/// @param status  of `fd`.
inline std::uint64_t whole_end(int fd, bool compact, const struct stat& status) noexcept {
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  return compact ? end_of_whole_blocks(fd, bytes) : end_of_whole_lines(fd, bytes);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_WHOLE_END_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Aggregates of the process that makes a snapshot of its own run.
struct own_aggregates {
  void* of = nullptr;
  /// Appends the current aggregates to files in `folder`. Returns 0 or an error that
  /// file_error_text() knows.
  int (*append)(void* of, int folder) noexcept = nullptr;
};

/// Appends the aggregates in a ring file to the files of another folder, whether or not its process
/// runs. If threads are finishing such calls meanwhile, some of these calls may be missing from one
/// number and not from another. A file that cannot be read, or takes too long, is skipped.
/// @param from    descriptor of the ring file's directory, borrowed; as is `to`.
/// @param prefix  only files of runs with this prefix.
/// @return 0, ENOMEM, or an error that file_error_text() knows about the files in `to`.
LOTUS_DETAIL_COLD inline int copy_ring_aggregates(int from, const char* name, const char* prefix,
                                                  const file_owners& owners, int to) noexcept {
  constexpr std::int64_t most_ns = 50'000'000;
  dead_ring_file file;
  if (file.open_any(from, name, owners) != dead_ring_file::state::opened) return 0;
  if (std::strcmp(file.header().prefix, prefix) != 0) return 0;
  const int error = file.read_blocks(clock_ns(CLOCK_MONOTONIC) + most_ns);
  if (error != 0) return error == ETIME ? 0 : error;
  const dead_aggregates found = read_aggregates(file, aggregate_state::moving);
  const log_folder run = folder_of(to, file, nullptr);
  loader_folders folders{run};
  return found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    return append_aggregates(run, folders, loader, file.header().pid, section);
  });
}

/// Makes a snapshot; deletes an incomplete one.
class snapshot_folder {
 public:
  static constexpr std::size_t name_bytes = 352;

  /// @param from   descriptor of the run's directory, borrowed, like all other arguments.
  /// @param mode   of new files, before the umask applies.
  snapshot_folder(int from, const log_location& run, const file_owners& owners,
                  mode_t mode) noexcept
      : from_{from}, run_{run}, owners_{owners}, mode_{mode}, place_{from, run} {}

  /// Returns 0 or an error that file_error_text() knows; then no snapshot exists.
  /// @param info  name of the information file that receives the snapshot's line; if `own` is
  /// given, that of the calling process.
  LOTUS_DETAIL_COLD int make(std::string_view reason, const char* info,
                             const own_aggregates& own = {}) noexcept {
    if (place_.error() != 0) return place_.error();
    remove_dead();
    const std::int64_t now_ns = clock_ns(CLOCK_REALTIME);
    int error = EEXIST;
    int folder = -1;
    for (unsigned attempt = 0; error == EEXIST && attempt < 100; ++attempt) {
      place_.put_name(name_, sizeof(name_), reason, now_ns, attempt);
      struct stat status {};
      if (fstatat(place_.parent(), name_, &status, AT_SYMLINK_NOFOLLOW) == 0) continue;
      std::snprintf(unfinished_, sizeof(unfinished_), "%s%s", name_, unfinished_end.data());
      error = mkdirat(place_.parent(), unfinished_, folder_mode()) == 0 ? 0 : errno;
      if (error == 0) error = open_unfinished(folder);
    }
    if (error != 0) return error;
    error = fill(folder, info, own, now_ns);
    if (error == 0 && renameat(place_.parent(), unfinished_, place_.parent(), name_) != 0) {
      error = errno;
    }
    if (error != 0) remove_folder(unfinished_);
    close(folder);  // also releases its lock
    return error;
  }

  /// Deletes the oldest snapshots, but never the newest, while all together exceed this many bytes.
  void keep_within(std::uint64_t most_bytes) noexcept {
    for (;;) {
      char oldest[256] = "";
      std::uint64_t bytes = 0;
      unsigned count = 0;
      for_each_entry(place_.parent(), [&](const char* name) {
        if (!place_.is_one(name)) return;
        ++count;
        bytes += bytes_of(name);
        if (oldest[0] == '\0' || std::strcmp(name, oldest) < 0) {
          std::snprintf(oldest, sizeof(oldest), "%s", name);
        }
      });
      if (count < 2 || bytes <= most_bytes || !remove_folder(oldest)) return;
    }
  }

  /// The snapshot's name, without the path.
  const char* name() const noexcept { return name_; }

 private:
  static constexpr std::string_view unfinished_end = ".unfinished";

  /// Opens the new folder, and locks it while it is open. So the snapshot of a killed process has
  /// no lock, and the next snapshot removes it. Returns EEXIST if another process removed the
  /// folder already.
  int open_unfinished(int& folder) const noexcept {
    folder = open_out_of_the_way(place_.parent(), unfinished_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder < 0) return errno == ENOENT ? EEXIST : errno;
    struct stat opened {};
    struct stat named {};
    // On a file system without locks, remove_dead() cannot lock the folder either and leaves it
    // alone.
    const bool locked = flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && fstat(folder, &opened) == 0 &&
        fstatat(place_.parent(), unfinished_, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        opened.st_ino == named.st_ino) {
      return 0;
    }
    close(folder);
    folder = -1;
    return EEXIST;
  }

  /// Deletes unfinished snapshots of this run whose processes were killed.
  void remove_dead() const noexcept {
    for_each_entry(place_.parent(), [&](const char* name) {
      const std::string_view text = name;
      const bool unfinished = place_.is_one(name) && text.size() > unfinished_end.size() &&
                              text.substr(text.size() - unfinished_end.size()) == unfinished_end;
      const int folder = unfinished ? open_one(name) : -1;
      if (folder < 0) return;
      if (flock(folder, LOCK_EX | LOCK_NB) == 0) remove_folder(name);
      close(folder);
    });
  }

  /// Calls `each(folder, name, status)` for the files of a snapshot and of its folders.
  using each_file = function_ref<void(int folder, const char* name, const struct stat& status)>;
  static void for_each_file(int folder, unsigned depth, each_file each) noexcept {
    for_each_entry(folder, [&](const char* name) {
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return;
      struct stat status {};
      if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISDIR(status.st_mode) && depth > 0) {
        const int inner =
            open_out_of_the_way(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
        if (inner < 0) return;
        for_each_file(inner, depth - 1, each);
        close(inner);
      }
      each(folder, name, status);
    });
  }

  int open_one(const char* name) const noexcept {
    const int folder = open_out_of_the_way(place_.parent(), name,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    struct stat status {};
    if (folder < 0 || (fstat(folder, &status) == 0 && owners_.allow(status.st_uid))) return folder;
    close(folder);
    return -1;
  }

  std::uint64_t bytes_of(const char* name) const noexcept {
    std::uint64_t bytes = 0;
    const int folder = open_one(name);
    if (folder < 0) return 0;
    for_each_file(folder, 1, [&](int, const char*, const struct stat& status) {
      if (S_ISREG(status.st_mode)) bytes += static_cast<std::uint64_t>(status.st_size);
    });
    close(folder);
    return bytes;
  }

  LOTUS_DETAIL_COLD bool remove_folder(const char* name) const noexcept {
    const int folder = open_one(name);
    if (folder < 0) return false;
    for_each_file(folder, 1, [](int in, const char* file, const struct stat& status) {
      unlinkat(in, file, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
    });
    close(folder);
    return unlinkat(place_.parent(), name, AT_REMOVEDIR) == 0;
  }

  LOTUS_DETAIL_COLD int fill(int folder, const char* info, const own_aggregates& own,
                             std::int64_t now_ns) noexcept {
    // Written first, so that a snapshot inside the run's directory is not mistaken for a loader's
    // folder.
    int error = tell(folder, info, now_ns);
    // Copies parts first: a log that becomes a part meanwhile is left out rather than copied twice.
    for (const bool parts : {true, false}) {
      for_each_log(from_, run_.prefix, owners_, [&](const run_log& log) {
        if (error == 0 && (log.said.part != 0) == parts) error = add(folder, log);
      });
    }
    if (error == 0) error = add_aggregates(folder, own.append == nullptr ? "" : info);
    if (error == 0 && own.append != nullptr) error = own.append(own.of, folder);
    for_each_entry(from_, [&](const char* name) {
      if (error == 0 && begins_with(name, run_info_start)) error = append_copy(from_, folder, name);
    });
    return error;
  }

  int tell(int folder, const char* info, std::int64_t now_ns) const noexcept {
    struct stat status {};
    bool made = false;
    const int fd = open_to_append(folder, info, owners_, mode_, status, made);
    if (fd < 0) return -fd;
    char line[64];
    const int bytes =
        std::snprintf(line, sizeof(line), "snapshot %lld\n", static_cast<long long>(now_ns));
    const int error = write_all(fd, line, static_cast<std::size_t>(bytes));
    close(fd);
    return error;
  }

  static bool begins_with(const char* name, const char* start) noexcept {
    return std::strncmp(name, start, std::strlen(start)) == 0;
  }

  /// Copies the ring files' aggregates first: what is written from a ring file to the run's file
  /// meanwhile is then copied twice, in sections of one name, of which readers count only one.
  /// @param own_info  information file of the process that adds its own aggregates.
  int add_aggregates(int folder, const char* own_info) const noexcept {
    int error = 0;
    for_each_entry(from_, [&](const char* name) {
      if (error != 0 || !begins_with(name, ring_file_start)) return;
      const char* const whose = name + sizeof(ring_file_start) - 1;
      const bool own = begins_with(own_info, run_info_start) &&
                       std::strcmp(own_info + sizeof(run_info_start) - 1, whose) == 0;
      if (!own) error = copy_ring_aggregates(from_, name, run_.prefix, owners_, folder);
    });
    for_each_run_folder(from_, owners_, [&](int in, const char* loader) {
      for_each_entry(in, [&](const char* name) {
        if (error != 0 || !begins_with(name, aggregates_file_start)) return;
        int to = 0;
        error = open_folder(folder, loader, to);
        if (error == 0) error = append_copy(in, to, name);
        if (error == 0 && to != folder) close(to);
      });
    });
    return error;
  }

  /// @param to  the loader's folder, created if missing; `folder` itself if `loader` is "".
  LOTUS_DETAIL_COLD int open_folder(int folder, const char* loader, int& to) const noexcept {
    to = folder;
    if (*loader == '\0') return 0;
    if (mkdirat(folder, loader, folder_mode()) != 0 && errno != EEXIST) return errno;
    to = open_out_of_the_way(folder, loader, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return to < 0 ? errno : 0;
  }

  /// Adds a hard link to a part if the file system supports that; otherwise, and for a log that
  /// still grows, copies its whole lines or blocks.
  int add(int folder, const run_log& log) const noexcept {
    int to = folder;
    int error = open_folder(folder, log.loader, to);
    if (error != 0) return error;
    if (log.said.part == 0 || linkat(log.folder, log.name, to, log.name, 0) != 0) {
      struct stat status {};
      const int fd = open_regular(log.folder, log.name, O_RDONLY, status);
      // The log may have become a part meanwhile, or be deleted.
      error = fd < 0 ? 0 : copy(fd, whole_end(fd, log.said.compact, status), to, log.name);
      if (fd >= 0) close(fd);
    }
    if (to != folder) close(to);
    return error;
  }

  /// Everyone who may read the folder's files may also search the folder.
  mode_t folder_mode() const noexcept { return mode_ | (mode_ & 0444U) >> 2U | 0700U; }

  /// Appends a whole file to the file of this name in `folder`; does nothing if it cannot be read.
  LOTUS_DETAIL_COLD int append_copy(int from, int folder, const char* name) const noexcept {
    struct stat status {};
    const int fd = open_regular(from, name, O_RDONLY, status);
    if (fd < 0) return 0;
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    bool made = false;
    const int to = open_to_append(folder, name, owners_, mode_, status, made);
    const int error = to < 0 ? -to : copy(fd, bytes, to);
    close(fd);
    return error;
  }

  int copy(int fd, std::uint64_t bytes, int folder, const char* name) const noexcept {
    struct stat status {};
    const int to = open_regular(folder, name, O_WRONLY | O_CREAT | O_EXCL, status, mode_);
    return to < 0 ? -to : copy(fd, bytes, to);
  }

  /// Closes `to`.
  static int copy(int fd, std::uint64_t bytes, int to) noexcept {
    static_assert(copy_bytes % 4096 == 0);
    char buffer[copy_bytes];
    int error = 0;
    for (std::uint64_t done = 0; error == 0 && done < bytes;) {
      const std::uint64_t left = bytes - done;
      const ssize_t n = pread(fd, buffer, left < sizeof(buffer) ? left : sizeof(buffer),
                              static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        error = n < 0 ? errno : 0;
        break;
      }
      error = write_all(to, buffer, static_cast<std::size_t>(n));
      done += static_cast<std::uint64_t>(n);
    }
    close(to);
    return error;
  }

  static constexpr std::size_t copy_bytes = std::size_t{64} << 10;

  int from_;
  const log_location& run_;
  const file_owners& owners_;
  mode_t mode_;
  snapshot_place place_;
  char name_[name_bytes] = {};
  char unfinished_[name_bytes + 16] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP

// Snapshots of a running recording, and what triggers them.
#ifndef LOTUS_STORE_SNAPSHOT_HPP
#define LOTUS_STORE_SNAPSHOT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies the logs and the aggregates; reports where, or why it failed. Returns whether it
/// succeeded.
LOTUS_DETAIL_COLD inline bool make_snapshot(const log_folder& logs, const log_location& run,
                                            std::string_view reason, std::uint64_t most_bytes,
                                            const own_aggregates& own) noexcept {
  snapshot_folder folder{logs.directory, run, logs.owners, logs.mode};
  const int error = folder.make(reason, logs.info, own);
  if (error == 0) {
    folder.keep_within(most_bytes);
    say("snapshot %s is beside the run", folder.name());
  } else {
    say("no snapshot of %s: %s%s", run.directory, is_refusal(error) ? "it " : "",
        file_error_text(error));
  }
  return error == 0;
}

/// Set by the handler of options::snapshot_signal.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> snapshot_signalled{false};
LOTUS_DETAIL_PER_MODULE inline struct sigaction handled_before {};

LOTUS_DETAIL_PER_MODULE inline void on_snapshot_signal(int number, siginfo_t* info,
                                                       void* context) noexcept {
  snapshot_signalled.store(true, std::memory_order_relaxed);
  const struct sigaction& before = handled_before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    if (before.sa_sigaction != nullptr) before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
}

/// Triggers snapshots without a call: by a signal, `lotus-tool snapshot`, or a long wait. Thread
/// safety: none; begin() and end() while nothing else is called, the other functions only by the
/// drain thread.
class snapshot_triggers {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    most_bytes_ = chosen.snapshots_bytes;
    wait_ns_ = std::int64_t{chosen.snapshot_when_wait_ms} * 1'000'000;
    last_wait_ns_ = 0;
    told_wait_ = 0;
    signal_ = 0;
    if (chosen.snapshot_signal == 0) return;
    struct sigaction ours {};
    ours.sa_sigaction = on_snapshot_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&ours.sa_mask);
    snapshot_signalled.store(false, std::memory_order_relaxed);
    if (sigaction(chosen.snapshot_signal, &ours, &handled_before) == 0) {
      signal_ = chosen.snapshot_signal;
    } else {
      say("no signal %d makes a snapshot: %s", chosen.snapshot_signal, std::strerror(errno));
    }
  }

  LOTUS_DETAIL_COLD void end() noexcept {
    struct sigaction now {};
    if (signal_ == 0 || sigaction(signal_, nullptr, &now) != 0) return;
    const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_snapshot_signal;
    if (ours) sigaction(signal_, &handled_before, nullptr);
    signal_ = 0;
  }

  /// Maximum size of all snapshots together.
  std::uint64_t most_bytes() const noexcept { return most_bytes_; }
  /// Minimum duration of a wait that triggers a snapshot; 0: waits do not.
  std::int64_t wait_ns() const noexcept { return wait_ns_; }
  /// The caller holds the guard of the producer, which has a ring.
  void look_at_wait(producer& p, std::uint64_t long_ticks) noexcept {
    const std::uint64_t since = p.ring->waiting_since.load(std::memory_order_relaxed);
    const bool was_long = p.longest_wait_ticks.exchange(0, std::memory_order_relaxed) >= long_ticks;
    const bool is_long = since != 0 && now_ticks() - since >= long_ticks;
    // A wait that is still going on triggers only one snapshot.
    if ((!was_long && !is_long) || (is_long && since == told_wait_)) return;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (last_wait_ns_ != 0 && now_ns - last_wait_ns_ < between_waits_ns) return;
    told_wait_ = is_long ? since : 0;
    last_wait_ns_ = now_ns;
    wait_seen_ = true;
  }

  /// Consumes a pending trigger; returns false if there is none.
  /// @param reason  buffer of snapshot_place::most_reason_bytes + 1
  bool take(const log_folder& logs, char* reason) noexcept {
    constexpr std::size_t room = snapshot_place::most_reason_bytes + 1;
    if (std::exchange(wait_seen_, false)) {
      std::snprintf(reason, room, "wait");
      return true;
    }
    if (snapshot_signalled.load(std::memory_order_relaxed) &&
        snapshot_signalled.exchange(false, std::memory_order_relaxed)) {
      std::snprintf(reason, room, "signal");
      return true;
    }
    return take_request(logs, reason);
  }

 private:
  static constexpr std::int64_t between_waits_ns = 60'000'000'000;

  /// If several processes of the run see the request, only the one that deletes the file makes the
  /// snapshot.
  static bool take_request(const log_folder& logs, char* reason) noexcept {
    struct stat status {};
    if (logs.directory < 0 ||
        fstatat(logs.directory, snapshot_request_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return false;
    }
    const int fd = open_own(logs.directory, snapshot_request_name, O_RDONLY, logs.owners, status);
    if (fd < 0) return false;
    const ssize_t bytes = read(fd, reason, snapshot_place::most_reason_bytes);
    close(fd);
    reason[bytes > 0 ? bytes : 0] = '\0';
    return unlinkat(logs.directory, snapshot_request_name, 0) == 0;
  }

  std::uint64_t most_bytes_ = 0;
  std::int64_t wait_ns_ = 0;
  std::int64_t last_wait_ns_ = 0;
  std::uint64_t told_wait_ = 0;
  bool wait_seen_ = false;
  int signal_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SNAPSHOT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: none; the recorder calls one function at a time, and begins and ends the triggers
/// with the recording.
class LOTUS_DETAIL_PER_MODULE recording_snapshots {
 public:
  recording_snapshots(run_files& files, storage& rings, aggregate_store& aggregates,
                      const producer_list& producers) noexcept
      : files_{files}, rings_{rings}, aggregates_{aggregates}, producers_{producers} {}

  snapshot_triggers& triggers() noexcept { return triggers_; }

  /// Makes a snapshot; returns false, after reporting the reason, if that fails.
  /// @param flush  drains all threads.
  bool take(std::string_view reason, function_ref<void()> flush) noexcept {
    log_retention& retention = rings_.retention();
    retention.hold(true);
    retention.roll_all();
    flush();
    const own_aggregates counted{this, [](void* self, int folder) noexcept {
                                   auto& of = *static_cast<recording_snapshots*>(self);
                                   return of.aggregates_.copy(of.producers_, folder);
                                 }};
    const bool made = make_snapshot(files_.logs_folder(), files_.location(), reason,
                                    triggers_.most_bytes(), counted);
    retention.hold(false);
    return made;
  }

  /// Makes a snapshot if one was triggered.
  void take_if_triggered(function_ref<void()> flush) noexcept {
    char reason[snapshot_place::most_reason_bytes + 1];
    if (triggers_.take(files_.logs_folder(), reason)) take(reason, flush);
  }

 private:
  run_files& files_;
  storage& rings_;
  aggregate_store& aggregates_;
  const producer_list& producers_;
  snapshot_triggers triggers_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDING_SNAPSHOTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// All functions block signals themselves, except open, close, close_at_exit and the three fork
/// functions: the session calls those one at a time, with signals blocked.
///
/// Locks, outermost first: the drain thread's round, the list of producers, a producer's guard,
/// aggregates, the ring file, leftovers, the clock; names and buffers are leaves.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return state_.is_on(); }
  session_clock& clock() noexcept { return clock_; }
  const log_location& location() const noexcept { return files_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  const message_handler& messages() const noexcept { return messages_; }
  /// The losses reported for the running recording; null if nothing is being recorded.
  losses* losses_if_on() noexcept { return is_on() ? &losses_ : nullptr; }
  slow_path& slow() noexcept { return slow_; }

  // --- a recording

  /// Returns false, after reporting the reason, if the directory cannot be written.
  LOTUS_DETAIL_COLD bool open(const options& chosen) noexcept {
    const locked round{round_};
    messages_.use(chosen.on_message);
    clock_.begin();
    cpu_.begin(chosen.cpu_time);
    if (rings_.open(chosen) != 0) return false;
    pace_.begin(chosen.drain_interval_ms);
    snapshots_.triggers().begin(chosen);
    losses_.begin(dropped());
    state_.begin(chosen.when_full);
    drain_thread_.wake();
    return true;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked round{round_};
    state_.end();
    bool keep = !aggregates_.write(producers_);
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      aggregate_store::retire(p);
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      losses_.count(rings_.detach(p));
    });
    snapshots_.triggers().end();
    files_.close_files(keep, losses_.of_recording(dropped()));
    files_.close();
    cpu_.begin(false);
    losses_.report(dropped(), recoverable);
  }

  /// The process exits: from now on each record is written to its log at once, because no later
  /// drain follows.
  LOTUS_DETAIL_COLD void close_at_exit() noexcept {
    const locked round{round_};
    if (!is_on()) return;
    state_.write_through();
    bool keep = !aggregates_.write(producers_);
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      // A thread that still runs may be storing a record or adding a call; both can be recovered
      // later.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      const bool runs = tid != 0 && tid != thread_id() && !thread_is_dead(tid);
      if (runs && (p.attached || aggregate_store::has_any(p))) keep = true;
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      slow_.open_lanes(p);
    });
    files_.close_files(keep, losses_.of_recording(dropped()));
    files_.leave_leftovers();
    losses_.report(dropped(), recoverable);
  }

  void flush() noexcept {
    const signals_blocked quiet;
    producers_.for_each([this](producer& p) {
      const locked guard{p.guard};
      if (p.attached) slow_.drain(p);
    });
  }

  /// Returns false, after reporting the reason, if no snapshot was made.
  bool snapshot(std::string_view reason) noexcept {
    const signals_blocked quiet;
    const locked round{round_};
    if (is_on()) return snapshots_.take(reason, [this] { flush(); });
    say("no snapshot: nothing is being recorded");
    return false;
  }

  std::uint64_t dropped() const noexcept {
    std::uint64_t sum = losses_.counted();
    producers_.for_each([&](producer& p) { sum += p.dropped.load(std::memory_order_relaxed); });
    return sum;
  }

  // --- for threads; more in slow()

  /// @param begins  this thread has not yet begun anything that it will record.
  LOTUS_DETAIL_COLD producer* this_thread(bool begins) noexcept {
    if (this_thread_forks) return nullptr;
    const signals_blocked quiet;
    thread_start started;
    return producers_.for_this_thread(
        [this](producer& p) {
          const locked guard{p.guard};
          return !p.attached || (slow_.drain(p) == 0 && p.backlog_first == nullptr);
        },
        [this, begins, &started](producer& p) {
          return begins || rings_.may_hand_over(p, started);
        },
        [this](producer& p) {
          const locked guard{p.guard};
          p.storing.store(0, std::memory_order_relaxed);
          p.storing_nested.store(0, std::memory_order_relaxed);
          losses_.count(p.dropped.exchange(0, std::memory_order_relaxed));
          p.loader = 0;
          cpu_.give_up(p.cpu);
          aggregate_store::hand_over(p);
          rings_.hand_over(p);
        });
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return unnamed_id;  // and its record will be dropped
    const std::uint32_t id = names_.intern(name);
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      if (is_on()) losses_.unnamed(names_.size());
    } else if (!files_.keeps_name(id)) {
      const signals_blocked quiet;
      files_.keep_names();
    }
    return id;
  }

  /// Returns the loader that this thread's records belonged to before.
  std::uint32_t enter_loader(std::uint32_t loader) noexcept {
    producer* const p = this_thread(true);
    return p == nullptr ? 0 : slow_.enter_loader(*p, loader);
  }

  /// Ticks for the next recorded span, given its times on CLOCK_MONOTONIC.
  given_ticks ticks_of_span(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const signals_blocked quiet;
    const session_clock::placed_span span = clock_.place(begin_ns, end_ns);
    // Reported before the span is stored, so that every reader knows, even after a kill.
    if (is_on() && !this_thread_forks) files_.report_span(span_distance{span.over_for_ns});
    return {span.begin_ticks, span.end_ticks};
  }

  // --- fork: see fork_guard

  void before_fork() noexcept { forks_.before(); }
  void after_fork() noexcept { forks_.after(); }
  /// Call it before after_fork().
  LOTUS_DETAIL_COLD void become_child() noexcept {
    forks_.become_child();
    losses_.forget();
    drain_thread_.forget();
  }

 private:
  /// Drains for the last time; the caller holds the guard. Returns false if the logs did not
  /// receive all records.
  bool drain_or_leave(producer& p, std::uint64_t& recoverable) noexcept {
    if (slow_.drain(p) == 0) return true;
    const unwritten_records left = rings_.leave(p);
    recoverable += left.recoverable;
    losses_.count(left.lost);
    return false;
  }

  /// One round of the drain thread. Returns the pause in ms.
  LOTUS_DETAIL_COLD std::uint32_t drain_round() noexcept {
    const locked round{round_};
    if (!is_on()) return 0;
    snapshot_triggers& triggers = snapshots_.triggers();
    const std::int64_t long_ns = triggers.wait_ns();
    const std::optional<std::uint64_t> long_ticks =
        long_ns == 0 ? std::nullopt : clock_.ticks_in(long_ns);
    producers_.for_each([&](producer& p) {
      // A thread that fills its ring between two rounds drains it itself, while the records are
      // still in its cache. Draining here as well would only make that thread wait.
      const bool drained = p.drained_itself.exchange(false, std::memory_order_relaxed);
      if (drained && !long_ticks) return;
      const locked guard{p.guard};
      if (!p.attached) return;
      if (!drained) slow_.drain(p);
      if (long_ticks) triggers.look_at_wait(p, *long_ticks);
    });
    rings_.keep_limits();
    snapshots_.take_if_triggered([this] { flush(); });
    return pace_.next_ms(files_.recover_leftovers());
  }

  mutex round_;  ///< no recording begins or ends during a round of the drain thread or a snapshot
  recording_state state_;
  message_handler messages_;
  losses losses_;
  session_clock clock_;
  cpu_clock cpu_;
  name_table names_;
  producer_list producers_;
  run_files files_{clock_, names_, cpu_};
  storage rings_{files_, clock_, names_};
  aggregate_store aggregates_{files_, clock_, names_};
  drain_pace pace_;
  drain_thread drain_thread_{
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  slow_path slow_{state_, rings_, aggregates_, cpu_, drain_thread_};
  recording_snapshots snapshots_{files_, rings_, aggregates_, producers_};
  fork_guard forks_{
      {state_, round_, producers_, rings_, aggregates_, files_, clock_, names_, cpu_, slow_}};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Created at first use, never destroyed. Take its control lock before any lock of the recorder;
/// while the list of shared objects is locked, take no other lock.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  static session& instance() noexcept { return *instance_; }
  static bool exists() noexcept { return instance_ != nullptr; }
  /// Returns null in a child process that was created without fork handlers (_Fork, clone): its
  /// session and ring file are its parent's, and locks may be held forever.
  static session* of_this_process() noexcept {
    session* const s = instance_;
    return LOTUS_DETAIL_LIKELY(s->process_.is_this() || this_thread_forks) ? s : nullptr;
  }
  /// The same for calls that would record something: reports once that nothing is recorded.
  static session* to_record() noexcept {
    session* const s = of_this_process();
    if (s == nullptr) instance().report_foreign_process();
    return s;
  }
  /// Creates the session, unless this object already has one that other objects cannot find.
  /// @param table  the functions for shared objects, including this one; must stay valid until the
  /// process exits.
  LOTUS_DETAIL_COLD static void make(const services& table) noexcept {
    if (instance_ != nullptr) return;
    // In memory of its own, never freed: scopes may end after all static objects are destroyed.
    instance_ = new (map_memory(sizeof(session))) session{table};
    instance_->process_.claim();
    this_module_at_forks.before = before_fork;
    this_module_at_forks.after_in_parent = after_fork_in_parent;
    this_module_at_forks.after_in_child = after_fork_in_child;
    this_module_at_forks.in_own_process = []() noexcept { return instance_->process_.is_this(); };
  }

  recorder& records() noexcept { return recorder_; }
  /// Reserves async_ids_at_once numbers within this process and returns the first.
  std::uint32_t take_async_ids() noexcept { return async_ids_.fetch_add(async_ids_at_once); }

  LOTUS_DETAIL_COLD void join(module_state& m, bool environment_counts) noexcept {
    choose_annotation();  // may load a library, so before taking any lock
    heap_.find();
    const signals_blocked quiet;
    // Also before any lock: a static constructor, which holds the loader's lock, may be recording.
    if (!pinned_.exchange(true)) pin_module_of(&instance_);
    if (this_thread_forks) return;  // the next scope will join
    const locked control{control_};
    if (environment_counts && !environment_read_) start_as_environment_says();
    modules_.tell(m, table_, recorder_.clock().hardware(), mode());
    // Other threads may have joined and started recording while this one looked for libraries.
    if (recorder_.is_on()) heap_.begin_where_missed();
    if (annotation_wanted() || heap_.on()) modules_.set_mode(mode());
  }

  LOTUS_DETAIL_COLD void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    if (&m != &this_module) return modules_.remove(m);
    // The object with this code is pinned, so its own state is destroyed only when the process
    // exits.
    const locked control{control_};
    if (recorder_.is_on()) end_heap();
    recorder_.close_at_exit();
  }

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) return already_recording(chosen);
    give_way();
    return begin(chosen);
  }

  /// @param steps  its listener is kept alive.
  bool start_steps(const options& chosen, const schedule& steps) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) {
      already_recording(chosen);
      return false;
    }
    give_way();
    if (!steps_.start(chosen, steps)) return false;
    return !steps_.active() || begin(steps_.of_active());
  }

  LOTUS_DETAIL_COLD bool step(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    if (!steps_.running()) return false;
    const step_window before = steps_.window();
    const bool recorded = steps_.active() && recorder_.is_on();
    const bool told = recorded && steps_.fill(notice);
    steps_.advance();
    if (steps_.window() == before) return false;
    end();
    if (steps_.active()) begin(steps_.of_active());
    return told;
  }

  bool stop(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    const bool told = steps_.active() && recorder_.is_on() && steps_.fill(notice);
    end();
    steps_.stop();
    return told;
  }

  void annotate_torch(const annotation_calls& calls) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    torch_annotation.store(&calls, std::memory_order_release);
    if (annotation_wanted()) modules_.set_mode(mode());
  }

  /// Returns the name of a record with this tag.
  std::string_view name_in(record_tag tag) const noexcept {
    const record_kind& kind = kind_of(tag);
    return has_name(kind) ? recorder_.name(name_of(kind, tag)).raw() : kind.task();
  }

  void begin_task_of(record_tag tag) noexcept {
    const record_kind& kind = kind_of(tag);
    if (!has_name(kind)) {
      std::optional<std::uint64_t> batch;
      if (is_of_batch(kind)) batch = tag.value();
      return begin_task(kind.task(), kind_handles_[static_cast<std::uint8_t>(kind.kind)], batch);
    }
    const name_entry& name = recorder_.name(name_of(kind, tag));
    if (kind.kind == event_kind::range) return begin_range(name.raw(), tag);
    const auto number = static_cast<std::uint32_t>(tag.value());
    if (kind.kind == event_kind::async_piece) {
      return begin_async_task(name.raw(), name.task_handle, number);
    }
    const bool numbered = kind.kind == event_kind::stage && number != large_stage_number;
    begin_task(name.raw(), name.task_handle,
               numbered ? std::optional<std::uint64_t>{number} : std::nullopt);
  }
  static void end_task_of(record_tag tag) noexcept {
    if (tag.kind() != event_kind::async_piece) return end_task();
    end_async_task(static_cast<std::uint32_t>(tag.value()));
  }

  /// Allocations in ranges and aggregated scopes belong to the enclosing operation.
  bool has_heap(record_tag tag) const noexcept {
    return heap_.on() && recorder_.is_on() && tag.kind() != event_kind::range &&
           tag.kind() != event_kind::aggregated;
  }
  void begin_heap_of(record_tag tag) noexcept {
    if (!has_heap(tag)) return;
    heap_.begin(heap_name(tag), tag.kind() == event_kind::batch_preprocessed);
  }
  void end_heap_of(std::uint64_t begin_ticks, record_tag begun_as, record_tag tag) noexcept {
    if (!has_heap(tag)) return;
    heap_.end(begin_ticks, heap_name(begun_as), heap_name(tag));
  }

 private:
  recording mode() const noexcept {
    if (annotation_wanted()) return recording::annotated;
    if (!recorder_.is_on()) return recording::off;
    return heap_.on() ? recording::annotated : recording::on;
  }

  std::uint32_t heap_name(record_tag tag) noexcept {
    return heap_.name(tag, [this](std::string_view name) { return recorder_.intern(name); });
  }

  void end_heap() noexcept {
    if (heap_.on()) heap_.end_recording(heap_name(no_unit));
  }

  /// On the timeline each number needs a name of its own.
  static void begin_range(std::string_view name, record_tag tag) noexcept {
    const auto number = static_cast<std::uint32_t>(tag.value());
    char text[256 + 24];
    const std::size_t length = name.size() < 256 ? name.size() : 256;
    std::memcpy(text, name.data(), length);
    const char* const end =
        number == large_stage_number ? text + length : put_number_rarely(text + length, number);
    std::atomic<void*> handle{nullptr};
    begin_task({text, static_cast<std::size_t>(end - text)}, handle);
  }

  // --- the caller holds control_

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* const log_file = environment_text(variable::log_file);
    if (log_file == nullptr) return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  /// Whether it was started by a start() without a schedule, which only stop() can end.
  bool is_recording_on_request() const noexcept {
    return recorder_.is_on() && !started_by_environment_ && !steps_.running();
  }

  /// Ends the current recording for another start().
  void give_way() noexcept {
    end();
    steps_.stop();
    started_by_environment_ = false;
  }

  LOTUS_DETAIL_COLD bool already_recording(const options& chosen) noexcept {
    log_location asked;
    const log_location& now = recorder_.location();
    if (asked.parse(chosen.log_file) == 0 && std::strcmp(asked.directory, now.directory) == 0 &&
        std::strcmp(asked.prefix, now.prefix) == 0) {
      return true;
    }
    say("already recording to %s/%s_*; call lotus::stop() before another lotus::start()",
        now.directory, now.prefix);
    return false;
  }

  /// Fills settings that the program did not choose from the environment.
  static void ask_environment(options& chosen) noexcept {
    constexpr std::size_t compact = 1;  // its index in the table
    if (environment_word(variable::format, 0, say_of_variable) == compact) {
      chosen.format = log_format::compact;
    }
    if (chosen.keep_bytes == 0) chosen.keep_bytes = number_setting(variable::keep_bytes);
  }

  LOTUS_DETAIL_COLD bool begin(options chosen) noexcept {
    ask_environment(chosen);
    if (!recorder_.open(chosen)) return false;
    modules_.set_mode(mode());
    heap_.begin_recording();
    return true;
  }

  LOTUS_DETAIL_COLD void end() noexcept {
    if (!recorder_.is_on()) return;
    end_heap();
    recorder_.close();
    modules_.set_mode(mode());
  }

  // --- fork: parent and child each continue with a complete session

  LOTUS_DETAIL_COLD static void before_fork() noexcept {
    session& s = instance();
    s.control_.lock();
    s.recorder_.before_fork();
    s.modules_.fork_lock().lock();
  }

  static void after_fork_in_parent() noexcept { instance().unlock_after_fork(); }

  LOTUS_DETAIL_COLD static void after_fork_in_child() noexcept {
    instance().process_.claim();
    instance().recorder_.become_child();
    instance().heap_.become_child();
    instance().unlock_after_fork();
  }

  void unlock_after_fork() noexcept {
    modules_.fork_lock().unlock();
    recorder_.after_fork();
    control_.unlock();
  }

  explicit session(const services& table) noexcept : table_{table} {}

  /// Reports once. Not to the program's handler, which might wait forever for a lock of its own
  /// here.
  LOTUS_DETAIL_COLD void report_foreign_process() noexcept {
    if (foreign_reported_.exchange(true) || recorder_.messages().any()) return;
    say("this process was made without fork handlers (by _Fork or clone), so nothing is recorded "
        "in it: use fork()");
  }

  /// The unit that is reported if the process has begun none.
  static constexpr record_tag no_unit{event_kind::batch_preprocessed, 0};

  static inline session* instance_ = nullptr;

  const services& table_;
  own_process process_;
  std::atomic<bool> foreign_reported_{false};
  mutex control_;
  std::atomic<bool> pinned_{false};
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  std::atomic<void*> kind_handles_[record_kinds.size()]{};  ///< like name_entry::task_handle
  std::atomic<std::uint32_t> async_ids_{0};
  module_list modules_;
  recorder recorder_;
  heap_account heap_;
  step_recording steps_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_PROCESS_SESSION_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Creates the table in the shared object that contains this code.
constexpr services make_service_table() noexcept {
  services s{};
  s.this_thread = [](bool begins) noexcept -> producer* {
    session* const own = session::of_this_process();
    return own == nullptr ? nullptr : own->records().this_thread(begins);
  };
  s.push_slow = [](producer& p, const record& r) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().push(p, r);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  s.push_nested = [](producer& p, const record& r) noexcept {
    if (session* const own = session::of_this_process()) {
      own->records().slow().push_nested(p, r);
    }
  };
  s.aggregate_slow = [](producer& p, const aggregate_call& call) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->records().slow().aggregate(p, call);
  };
  s.aggregated_ticks = [](producer& p, record_tag* tag) noexcept {
    return aggregates_of(p).tell(*tag);
  };
  s.intern = [](std::string_view name) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? unnamed_id : own->records().intern(name);
  };
  s.refuse_batch = [](std::uint64_t number) noexcept {
    session* const own = session::to_record();
    losses* const told = own == nullptr ? nullptr : own->records().losses_if_on();
    if (told != nullptr) told->refused_batch(number);
  };
  s.enter_loader = [](std::uint32_t loader) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? 0 : own->records().enter_loader(loader);
  };
  s.get_ring = [](producer& p) noexcept {
    if (session* const own = session::of_this_process()) own->records().slow().get_ring(p);
  };
  s.read_cpu = [](producer& p, cpu_watch& watch) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? off_cpu_time{} : own->records().slow().read_cpu(p, watch);
  };
  s.take_async_ids = []() noexcept { return session::instance().take_async_ids(); };
  s.ticks_of_span = [](std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? given_ticks{} : own->records().ticks_of_span(begin_ns, end_ns);
  };
  s.crossed_threads = [](record_tag tag) noexcept {
    session* const own = session::of_this_process();
    losses* const told = own == nullptr ? nullptr : own->records().losses_if_on();
    if (told != nullptr) told->crossed_threads(own->name_in(tag));
  };
  s.start = [](const options& chosen) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->start(chosen);
  };
  s.start_steps = [](const options& chosen, const schedule& steps) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->start_steps(chosen, steps);
  };
  s.step = [](step_notice& notice) noexcept {
    session* const own = session::of_this_process();
    return own != nullptr && own->step(notice);
  };
  s.stop = [](step_notice& notice) noexcept {
    session* const own = session::of_this_process();
    return own != nullptr && own->stop(notice);
  };
  s.flush = []() noexcept {
    if (session* const own = session::of_this_process()) own->records().flush();
  };
  s.snapshot = [](const char* reason, std::size_t bytes) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->records().snapshot({reason, bytes});
  };
  s.dropped = []() noexcept { return session::instance().records().dropped(); };
  s.join = [](module_state& m, bool environment_counts) noexcept {
    if (session* const own = session::of_this_process()) own->join(m, environment_counts);
  };
  s.leave = [](module_state& m) noexcept {
    if (session* const own = session::of_this_process()) own->leave(m);
  };
  s.begin_task = [](record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own == nullptr) return;
    if (annotation_wanted()) own->begin_task_of(tag);
    own->begin_heap_of(tag);
  };
  s.end_task = [](std::uint64_t begin_ticks, record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own == nullptr) return;
    own->end_heap_of(begin_ticks, tag, tag);
    if (annotation_wanted()) session::end_task_of(tag);
  };
  s.begin_heap = [](record_tag tag) noexcept {
    if (session* const own = session::of_this_process()) own->begin_heap_of(tag);
  };
  s.end_heap = [](std::uint64_t begin_ticks, record_tag begun_as, record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own != nullptr) own->end_heap_of(begin_ticks, begun_as, tag);
  };
  s.annotate_torch = [](const annotation_calls& calls) noexcept {
    if (session* const own = session::of_this_process()) own->annotate_torch(calls);
  };
  s.deliver = [](const char* line) noexcept {
    return session::instance().records().messages().deliver(line);
  };
  return s;
}

LOTUS_DETAIL_PER_MODULE inline constexpr services service_table = make_service_table();

inline const services* make_services() noexcept {
  session::make(service_table);
  return &service_table;
}
inline bool has_session() noexcept {
  return session::exists();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_SESSION_SERVICES_HPP

#endif

#endif  // LOTUS_ENGINE_ENGINE_HPP

#endif
