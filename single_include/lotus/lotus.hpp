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

// Includes the whole public API of lotus, which records where a data pipeline spends its time.
//
// The library is header-only by default. In files that define LOTUS_COMPILED, this header contains
// no engine (the code that records); the engine is compiled in the one file that also defines
// LOTUS_IMPLEMENTATION, as in the CMake target lotus::lotus. A program may mix both kinds of files.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

// Provides async_scope, for operations that are suspended and later resumed, possibly on another
// thread, such as coroutines.
#ifndef LOTUS_ASYNC_SCOPE_HPP
#define LOTUS_ASYNC_SCOPE_HPP

#include <cstdint>
#include <string_view>

// Provides the library's compile-time settings, its macros for compiler attributes, and its inline
// namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

// Defines the version of the library. CMake parses the three lines below, so they must contain no
// other digits.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< increased when users must change their code
#define LOTUS_VERSION_MINOR 2  ///< likewise, as long as the major version is zero
#define LOTUS_VERSION_PATCH 0  ///< increased when a release only fixes bugs

/// Increased when the layout of something changes that files or shared objects of one program pass
/// to each other. Those with the same number share a recording, whatever their versions are. The
/// number is in the name of the inline namespace, so objects with different numbers link into one
/// program; each number then has a recording of its own. tests/packaging/versions/layout.cpp has
/// the sizes that belong to the number.
#define LOTUS_ABI 17

#endif  // LOTUS_VERSION_HPP

#if __cplusplus < 201703L
  #error \
      "Lotus needs C++17: compile with -std=c++17 or later, or include lotus/lotus.h (C or C++98)"
#endif

// With LOTUS_DISABLE, nothing in this file records, and start() returns true without starting. The
// file that contains the engine is not affected, because other files of the program need it.
#if defined(LOTUS_DISABLE) && !defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_DISABLED 1
#else
  #define LOTUS_DETAIL_DISABLED 0
#endif

/// 1 if the library can record in this file: without LOTUS_DISABLE, on Linux on x86-64 or aarch64,
/// with pointers of 64 bits (not -m32 or -mx32). Otherwise the headers compile with g++ and clang,
/// but record nothing; on other systems start() returns false.
#if LOTUS_DETAIL_DISABLED
  #define LOTUS_SUPPORTED 0
#elif defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
  #define LOTUS_SUPPORTED 1
#else
  #define LOTUS_SUPPORTED 0
#endif

// An inline namespace whose name contains LOTUS_ABI, so that two layouts of the library's data in
// one program share no symbols. In files with LOTUS_DISABLE it has another name, because the
// classes in them differ from those in other files of the program.
#define LOTUS_DETAIL_CONCAT_(a, b) a##b
#define LOTUS_DETAIL_CONCAT(a, b) LOTUS_DETAIL_CONCAT_(a, b)
#if LOTUS_DETAIL_DISABLED
  #define LOTUS_DETAIL_INLINE_NAMESPACE_(abi) abi_##abi##_disabled
#else
  #define LOTUS_DETAIL_INLINE_NAMESPACE_(abi) abi_##abi
#endif
#define LOTUS_DETAIL_INLINE_NAMESPACE(abi) LOTUS_DETAIL_INLINE_NAMESPACE_(abi)
#define LOTUS_DETAIL_NAMESPACE_BEGIN \
  namespace lotus {                  \
  inline namespace LOTUS_DETAIL_INLINE_NAMESPACE(LOTUS_ABI) {
#define LOTUS_DETAIL_NAMESPACE_END \
  }                                \
  }
// Encloses rarely executed code of the engine (the code behind the API), such as start and stop,
// recovery, limits and snapshots. In a header-only program every file compiles this code, and at
// -O2 it would take most of the compile time; -Og takes half as long. Do not enclose code that runs
// for each record or scope. Do not enclose functions that such code must inline either, because g++
// does not inline an -Og function into an -O2 function. The pragma never raises the optimization
// level of a file. A compiled library does not need the pragma, because it compiles the engine only
// once.
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
#define LOTUS_DETAIL_NOINLINE __attribute__((noinline))
#define LOTUS_DETAIL_COLD __attribute__((noinline, cold))
// Marks a function that a header of the API declares and the engine (the code behind the API)
// defines. The file that defines LOTUS_IMPLEMENTATION emits all these functions, whether or not it
// calls them. They stay inline functions, so that the linker can merge them with those of
// header-only files of the same program.
#if defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_SEAM __attribute__((used)) inline
#else
  #define LOTUS_DETAIL_SEAM inline
#endif
// Marks a function declaration in a header of the API if the function is rarely called, and the
// engine defines it with LOTUS_DETAIL_COLD and LOTUS_DETAIL_SEAM.
#define LOTUS_DETAIL_RARE LOTUS_DETAIL_PER_MODULE __attribute__((cold))
// Marks data of which every shared object must have its own copy, and the functions that use that
// data. Without this attribute the dynamic linker would merge the copies, and the symbol type
// STB_GNU_UNIQUE would keep a plugin (a shared object loaded by dlopen) from being unloaded.
#if defined(__ELF__)
  #define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))
#else
  #define LOTUS_DETAIL_PER_MODULE
#endif
// Runs the function `called`, which has no parameters, when the shared object is loaded, before its
// static constructors. Use this macro inside a function: `called` then runs only for files that use
// that function. A global variable with a constructor would instead run code for every file that
// includes the header.
#if defined(__aarch64__)
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "S"
#else
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "i"
#endif
#if defined(__code_model_large__)
  // With -mcmodel=large no instruction of this form can refer to a function. The callers do not
  // depend on the early call.
  #define LOTUS_DETAIL_CALL_AT_LOAD(called) static_cast<void>(called)
#else
  #define LOTUS_DETAIL_CALL_AT_LOAD(called)                      \
    __asm__ volatile(                                            \
        ".pushsection .init_array.00102,\"aw\",%%init_array\n\t" \
        ".balign 8\n\t"                                          \
        ".8byte %c0\n\t"                                         \
        ".popsection"                                            \
        :                                                        \
        : LOTUS_DETAIL_ADDRESS_CONSTRAINT(called))
#endif
// Guarantees that a variable is initialized at compile time. Without this, g++ initializes a static
// member of a template when the object is loaded, which is too late for a scope in an earlier
// static constructor.
#if defined(__clang__)
  #define LOTUS_DETAIL_CONSTINIT [[clang::require_constant_initialization]]
#elif __GNUC__ >= 10
  #define LOTUS_DETAIL_CONSTINIT __constinit
#else
  #define LOTUS_DETAIL_CONSTINIT
#endif

#endif  // LOTUS_CONFIG_HPP

// Defines the 24-byte record of one finished span or event, and the kinds of records.
#ifndef LOTUS_RECORD_RECORD_HPP
#define LOTUS_RECORD_RECORD_HPP

#include <cstddef>
#include <type_traits>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The kind of a record. The comment of each kind describes the value in the record's tag. In some
/// kinds, end_ticks holds a number instead of a time; then the comment describes it too. The
/// enumerators' numbers are stored in ring files: append new kinds and never renumber.
enum class event_kind : std::uint8_t {
  none = 0,
  operation = 1,  ///< a scope ended; tag: id of the operation's name
  /// A worker built a batch. The tag of this kind and the next four contains the number of the
  /// batch.
  batch_preprocessed = 2,
  batch_wait = 3,
  batch_arrived = 4,  ///< a batch arrived while the consumer waited for another one
  batch_consumed = 5,
  batch_queued = 6,
  /// A stage's work on a batch, item or request; tag: id of the stage's name, and number of the
  /// batch, item or request.
  stage = 7,
  /// A segment of an asynchronous operation (see async_scope); tag: id of the operation's name, and
  /// number of the operation.
  async_segment = 8,
  counter = 9,  ///< a counter changed; tag: id of its name; end_ticks: its new value
  /// An item became part of a batch; tag: number of the batch; end_ticks: number of the item.
  batch_takes = 10,
  off_cpu = 11,  ///< time off the CPU; tag: ns waiting for a CPU; end_ticks: all ns off the CPU
  /// The thread's records after this one belong to another loader; tag: id of its name, 0: the
  /// default loader.
  loader = 12,
  /// The number for the next stage record with the same name and start, if it is too large for that
  /// record's tag; tag: id of the stage's name; end_ticks: the number.
  stage_number = 13,
  /// A scope's arguments; tag: id of the text. The scope's record has the same start.
  arguments = 14,
  /// A lotus::range; tag: id of its name without the number at the end, and that number, which is
  /// number_not_in_tag if the name does not end in a number.
  range = 15,

  // Records about allocations, if the program's allocations are counted. Tag: id of a name, and a
  // 32-bit number (2^32 - 1 if the real number is larger); end_ticks: a number of bytes. The first
  // four kinds describe one operation: they precede the operation's record and have the same start
  // and name. A record is omitted if both its number and its bytes are 0.
  allocated = 16,  ///< bytes that the operation allocated; in the tag: number of allocations
  freed = 17,      ///< bytes that the operation freed; in the tag: number of calls
  retained = 18,   ///< bytes that the operation allocated and did not free; in the tag: blocks
  heap_peak = 19,  ///< maximum growth of the thread's heap during the operation, in bytes
  // The next three kinds describe the process's heap at one moment, begin_ticks.
  /// Bytes in use; in the tag: number of units (see heap_hook::enter()) that have begun so far, and
  /// the id of the name of a unit.
  heap = 20,
  /// Bytes in use that operations of this name allocated during one generation (a group of
  /// consecutive units); in the tag: number of the first unit of the generation.
  held = 21,
  /// Total of the process's allocations so far: in bytes if the number in the tag is 0, their
  /// number if it is 1.
  heap_total = 22,

  /// The total self time of the aggregated calls since a span last began or ended on this thread,
  /// stored as a span of this length; tag: id of the name of one of the calls, and
  /// number_not_in_tag.
  aggregated = 23,
};

/// Number of bits of a name's id, so that an id and a 32-bit number fit into one value.
inline constexpr unsigned name_id_bits = 24;
/// The id that all further names share when the table of names has no memory or no ids left.
inline constexpr std::uint32_t unnamed_id = (std::uint32_t{1} << name_id_bits) - 1;
/// The number in the tag of a stage record if the real number does not fit into 32 bits. A
/// stage_number record with the real number then precedes the stage record. Also the number in the
/// tag of a range whose name does not end in a number.
inline constexpr std::uint32_t number_not_in_tag = 0xFFFF'FFFF;
/// The number in the tag of an off_cpu record if it is unknown how long the thread waited for a
/// CPU.
inline constexpr std::uint64_t run_queue_unknown = (std::uint64_t{1} << 56) - 1;

/// A record's kind and value in one 64-bit word. The value is a name's id, a number, or both.
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

/// The number in the tag of a span that began before its batch's number was known.
inline constexpr std::uint64_t unknown_batch = (std::uint64_t{1} << record_tag::value_bits) - 1;

/// One finished span or event. A span is stored once, when it ends.
struct record {
  std::uint64_t begin_ticks;
  /// End of a span, in ticks; for an event: begin_ticks again, or a number.
  std::uint64_t end_ticks;
  record_tag tag;
};
static_assert(sizeof(record) == 24 && std::is_trivially_copyable_v<record>,
              "records are copied into shared memory as they are");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_RECORD_HPP

// Provides the class scope, which records the time up to the end of its block, and its base class.
#ifndef LOTUS_SCOPE_HPP
#define LOTUS_SCOPE_HPP

#include <atomic>

// Provides the settings of lotus::start().
#ifndef LOTUS_OPTIONS_HPP
#define LOTUS_OPTIONS_HPP

// Provides folder_listener, a callback that receives the path of a folder, without <functional>.
#ifndef LOTUS_BASE_FOLDER_LISTENER_HPP
#define LOTUS_BASE_FOLDER_LISTENER_HPP

#include <utility>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The part of a callback that shared objects pass to each other, so its layout must be the same in
/// all of them. The code of the function belongs to the shared object that created the callback.
struct kept_function {
  void (*call)(kept_function&, const char* folder);
  void (*destroy)(kept_function&) noexcept;
  std::atomic<std::uint32_t> owners{1};
  /// 1 after keep() was called, otherwise 0. The type has four bytes, because every supported
  /// processor can exchange them atomically.
  std::atomic<std::uint32_t> kept{0};
  kept_function* before = nullptr;  ///< the callback on which keep() was called before this one
};

/// The newest callback that this shared object keeps forever. Each callback points to the previous
/// one, so all of them stay reachable.
LOTUS_DETAIL_PER_MODULE inline std::atomic<kept_function*> newest_kept_function{nullptr};

/// A callback that may be empty. Its function receives the path of a folder as a const
/// std::string&, a std::string_view or a const char*. Copies of a folder_listener share the
/// function. Thread safety is that of std::shared_ptr.
class folder_listener {
 public:
  folder_listener() noexcept = default;
  folder_listener(std::nullptr_t) noexcept {}
  template <class Function,
            class = std::enable_if_t<std::is_invocable_v<std::decay_t<Function>&, const char*>>>
  folder_listener(Function&& function) {
    using held_function = held<std::decay_t<Function>>;
    if (is_null(function)) return;
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

  /// Keeps the function in memory forever, because another thread may be about to call it when its
  /// last owner is destroyed or the shared object with its code is unloaded.
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
    // clang-tidy warns that this constructor could replace the copy constructor. It cannot, because
    // it is called only with functions.
    // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
    explicit held(From&& from)
        : kept_function{call_held, destroy_held}, function{std::forward<From>(from)} {}
    static void call_held(kept_function& of, const char* folder) {
      static_cast<void>(static_cast<held&>(of).function(folder));
    }
    static void destroy_held(kept_function& of) noexcept { delete &static_cast<held&>(of); }

    Function function;
  };

  /// Whether the argument is a null pointer, or a std::function without a function.
  template <class Function>
  static bool is_null(const Function& function) noexcept {
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

// Provides owned_text, a string class for options, which does not need the header <string>.
#ifndef LOTUS_BASE_OWNED_TEXT_HPP
#define LOTUS_BASE_OWNED_TEXT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Whether T has c_str(), as std::filesystem::path and string types of other libraries do.
template <class T, class = void>
inline constexpr bool is_c_text = false;
template <class T>
inline constexpr bool is_c_text<T, std::enable_if_t<std::is_convertible_v<
                                       decltype(std::declval<const T&>().c_str()), const char*>>> =
    true;

/// An owned string that converts from and to any string or path type. Shared objects may disagree
/// on std::string's ABI, but this class is the same in all of them, so it can be passed between
/// them. Errors: std::bad_alloc, like std::string. Thread safety: none.
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

  /// Returns the text, null-terminated.
  const char* c_str() const noexcept { return text_ == nullptr ? short_ : text_; }
  const char* data() const noexcept { return c_str(); }
  std::size_t size() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  operator std::string_view() const noexcept { return view(); }
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

  char* text_ = nullptr;  ///< the text on the heap; null if it is in short_
  std::size_t bytes_ = 0;
  /// Holds short texts, such as the default log_file, without allocating memory. The session is
  /// never destroyed, so leak checkers would report memory that its options have allocated.
  char short_[24] = {};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_OWNED_TEXT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Selects what a thread does when its ring, the buffer for its records, is full.
enum class full_ring {
  drain,  ///< the thread itself writes the ring's records to its log, so no record is lost
  drop,   ///< records that do not fit are dropped and counted; no thread waits for the disk
};

/// The format in which records are stored in files.
enum class log_format {
  text,  ///< log lines in Lotus' text format, which other programs can read too
  /// Hidden binary files, a sixth as large; only lotus-tool can read them or convert them to text.
  compact,
  automatic,  ///< compact if options::keep_bytes or keep_ms is set, otherwise text
};

namespace detail {

/// A member of options that the next version no longer has.
template <class T>
struct former_option {
  [[deprecated("use keep_bytes or keep_ms, with format = log_format::text")]] former_option&
  operator=(T chosen) noexcept {
    value = chosen;
    return *this;
  }

  T value = 0;
};

}  // namespace detail

/// The options of a recording. Shared objects of one process pass this struct to each other. So if
/// you change its layout, increase LOTUS_ABI in version.hpp; then shared objects with different
/// layouts do not share data.
struct options {
  /// Directory of the logs, and prefix of their names: "run/lotustrace_log" results in
  /// run/lotustrace_log_main_pid_N and run/lotustrace_log_worker_pid_N, where N is the id of a
  /// thread. The name of an existing directory alone means that directory, with the prefix
  /// "lotustrace_log". Copied from a std::string, std::string_view, std::filesystem::path or
  /// literal.
  detail::owned_text log_file = "lotustrace_log";
  /// Format of the logs. LOTUS_FORMAT=compact in the environment overrides `text`, and
  /// LOTUS_FORMAT=text overrides `automatic`.
  log_format format = log_format::automatic;
  /// What a thread does when its ring is full.
  full_ring when_full = full_ring::drain;
  /// Number of records, of 24 bytes, that a thread's ring holds; rounded up to a power of two.
  std::uint32_t ring_records = 8192;
  /// Maximum time that a record stays in its ring before it is written to the log, in milliseconds.
  std::uint32_t drain_interval_ms = 100;
  /// Maximum memory in bytes for records that cannot be written to the disk at the moment. If this
  /// memory is full, records are dropped and counted.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  detail::former_option<std::uint64_t> max_bytes{};  ///< the former name of keep_bytes
  detail::former_option<std::uint32_t> max_age_s{};  ///< the former form of keep_ms, in seconds
  /// Keeps only the newest records (a flight recorder): the maximum total size in bytes of the logs
  /// in the directory, including logs of other processes of the run. 0: the value of
  /// LOTUS_KEEP_BYTES, or else unlimited. A log that has grown long is renamed, which makes it a
  /// part, and the log continues in a new file. The oldest parts are deleted; lotus-tool reports
  /// how many. Sizes are counted in disk blocks; the limit is accurate to an eighth, if it has room
  /// for the logs to which threads append: up to 8 KiB each, one log per running thread in the
  /// compact format, up to three as text. With a limit, a new thread may continue the logs of a
  /// thread that has ended. Call lotus::snapshot() to save the records of an interesting moment.
  std::uint64_t keep_bytes = 0;
  /// Keeps only records younger than this, in milliseconds: older parts of logs are deleted.
  /// Accurate to about an eighth of the value; 0: unlimited.
  std::uint32_t keep_ms = 0;
  /// Takes a snapshot when a wait for a batch lasts longer than this, in milliseconds, even if the
  /// wait never ends; at most one snapshot per minute. 0: never.
  std::uint32_t snapshot_when_wait_ms = 0;
  /// Signal, such as SIGUSR2, that triggers a snapshot; 0: none. A handler that the program
  /// installed before start() is called too.
  int snapshot_signal = 0;
  /// Maximum total size in bytes of this run's snapshots; older snapshots are deleted to make room.
  std::uint64_t snapshots_bytes = std::uint64_t{1} << 30;
  /// Permissions of the files of a run, as for open(2), before the process's umask applies. The
  /// files of the built-in sampler always use 0666 instead.
  std::uint32_t file_mode = 0666;
  /// Whether to record how long operations were off the CPU. If its thread was switched out before
  /// or during a scope, the scope reads the CPU clock and stores one more record, which takes about
  /// as long as a system call; other scopes take no measurable extra time.
  bool cpu_time = true;
  /// How often per second a background thread of each process samples what one of the recording
  /// threads waits for. lotus-tool then shows which locks, files or sockets operations wait for. A
  /// sample takes about 20 us of CPU time and does not delay the sampled thread. 0: never, not even
  /// in snapshots; -1: the value of LOTUS_WAIT_SAMPLES_PER_S, or else 100.
  std::int32_t wait_samples_per_s = -1;
  /// Function that receives each message of the library, as one line without a newline. Null:
  /// messages go to stderr, after the prefix "lotus: ". The function may be called on any thread,
  /// also on several threads at the same time. It must not record, start or stop, because the
  /// library holds locks during the call.
  void (*on_message)(const char* message) = nullptr;
};

/// Selects steps to record, like torch.profiler.schedule. The first `skip_first` steps are not
/// recorded. Then follow `repeat` cycles, in each of which first `wait` and then `warmup` steps are
/// not recorded, and then `active` steps are. (Recording itself needs no warm-up; the `warmup`
/// steps let the program warm up.) Shared objects pass this struct to each other, like `options`.
struct schedule {
  std::uint32_t wait = 0;        ///< number of unrecorded steps at the start of each cycle
  std::uint32_t warmup = 0;      ///< number of unrecorded steps after the `wait` steps
  std::uint32_t active = 1;      ///< number of recorded steps in each cycle; at least one
  std::uint32_t repeat = 0;      ///< number of cycles; 0: unlimited
  std::uint32_t skip_first = 0;  ///< number of unrecorded steps before the first cycle
  /// Function that is called with the folder of the logs when the active steps of a cycle are over
  /// and all their records are in the logs. It runs on the thread that calls step() or stop(), may
  /// take a const std::string&, a std::string_view or a const char*, and may call any function of
  /// lotus. It is not called if the program exits during active steps.
  detail::folder_listener on_trace_ready{};
  /// If not 0, the first cycle has no `wait` steps.
  std::uint32_t skip_first_wait = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_OPTIONS_HPP

#if LOTUS_SUPPORTED
// Defines the functions and state with which all shared objects of a process use its session.
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
struct off_cpu_window;
struct producer;

/// Filled by step() and stop() when the steps that a schedule selects have been recorded. The
/// caller must then call the listener with the folder, which is the directory of the logs.
struct step_notice {
  folder_listener listener;
  char folder[4096 + 512];
};

/// Functions that show this thread's scopes in PyTorch's profiler; see lotus/torch/annotation.hpp.
struct annotation_calls {
  void (*begin)(const char* name) noexcept;
  void (*end)() noexcept;  ///< ends the innermost annotation, if there is one
};

/// Start and end of a span whose times the program measured itself, converted to ticks of the
/// session's clock.
struct given_ticks {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The table of the session's functions, which the shared objects of the process call. The
/// functions are part of the shared object that created the session; that object is never unloaded.
struct services {
  /// Returns this thread's producer, the session's state of a thread.
  /// @param begins  whether all spans that the thread will record begin after this call. Otherwise
  /// the thread may not reuse every dead thread's ring; see storage::may_reuse_ring(). In this case
  /// the caller has something to record; if the thread gets no producer, counts it as dropped.
  producer* (*this_thread)(bool begins) noexcept;
  void (*push_slow)(producer&, const record&) noexcept;
  void (*push_nested)(producer&, const record&) noexcept;
  /// Adds a call of an aggregated_scope to the sums of its operation, after allocating memory for
  /// it. Returns false if there is no memory, so that the call is lost.
  bool (*aggregate_slow)(producer&, const aggregate_call&) noexcept;
  /// Returns the self time, in ticks, of the aggregated calls that have ended on this thread since
  /// this function was last called. If the time is not 0, also sets the tag of the record in which
  /// the caller must store the time.
  std::uint64_t (*aggregated_ticks)(producer&, record_tag*) noexcept;
  std::uint32_t (*intern)(std::string_view) noexcept;  ///< returns the name's id, which is never 0
  /// Counts and reports a batch that cannot be recorded, because its number is 2^56 or more.
  void (*refuse_batch)(std::uint64_t number) noexcept;
  bool (*start)(const options&) noexcept;
  /// @param steps  selects the recorded steps; the session keeps the listener of `steps` alive.
  bool (*start_steps)(const options&, const schedule& steps) noexcept;
  /// Returns whether the caller must call the listener in the notice. stop() returns the same.
  bool (*step)(step_notice&) noexcept;
  bool (*stop)(step_notice&) noexcept;
  void (*flush)() noexcept;
  bool (*snapshot)(const char* reason, std::size_t bytes) noexcept;
  std::uint64_t (*dropped)() noexcept;
  /// Assigns this thread's later records to a loader. Returns the id of the previous loader's name.
  /// @param loader  id of the loader's name; 0 is the default loader.
  std::uint32_t (*enter_loader)(std::uint32_t loader) noexcept;
  /// Gives the thread a ring if recording is on and the thread has none.
  void (*get_ring)(producer&) noexcept;
  /// Reads the thread's CPU clocks, and sets up the cpu_watch to detect when the thread is next
  /// switched out. Returns the time off the CPU since the previous call.
  off_cpu_time (*read_cpu)(producer&, cpu_watch&, const off_cpu_window&) noexcept;
  /// Reserves `async_ids_at_once` consecutive ids for asynchronous operations, which are unique
  /// within this process, and returns the first.
  std::uint32_t (*take_async_ids)() noexcept;
  /// Converts the times of a span that is about to be recorded from ns of CLOCK_MONOTONIC to ticks.
  given_ticks (*ticks_of_span)(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// Reports once that a scope ended on another thread than the one on which it began.
  void (*crossed_threads)(record_tag) noexcept;
  /// Registers the state of a shared object. From then on the session stores in this state whether
  /// recording is on.
  /// @param environment_counts  whether this call starts recording if LOTUS_LOG_FILE is set.
  void (*join)(module_state&, bool environment_counts) noexcept;
  void (*leave)(module_state&) noexcept;
  /// Begins a span of this thread on another profiler's timeline, and begins to count the span's
  /// allocations. This function and the next three are called only while the mode is
  /// recording::annotated.
  void (*begin_task)(record_tag) noexcept;
  /// Ends the span on the other profiler's timeline, and records the span's allocations.
  /// @param begin_ticks  start of the span if the caller is about to record the span; otherwise 0.
  void (*end_task)(std::uint64_t begin_ticks, record_tag) noexcept;
  /// Like begin_task(), but only counts allocations.
  void (*begin_heap)(record_tag) noexcept;
  /// Like end_task(), but only records the span's allocations.
  /// @param begun_as  the tag with which the span began.
  void (*end_heap)(std::uint64_t begin_ticks, record_tag begun_as, record_tag) noexcept;
  /// Registers the annotation functions for PyTorch's profiler.
  /// @param calls  must stay valid until the process exits.
  void (*annotate_torch)(const annotation_calls& calls) noexcept;
  /// Passes a message to options::on_message. Returns false if the program has not set it.
  bool (*deliver)(const char* line) noexcept;
};

inline constexpr std::uint32_t async_ids_at_once = 256;

enum class recording : std::uint32_t {
  off = 0,
  on = 1,
  unknown = 2,  ///< this shared object has not joined the session yet
  /// Scopes are shown on another profiler's timeline, or their allocations are counted. If
  /// recording is on, scopes are recorded as well.
  annotated = 3,
};

/// The part of the session's state that scopes read. Each shared object has its own copy.
struct module_state {
  std::atomic<recording> mode{recording::unknown};
  std::atomic<bool> hardware_clock{true};
  std::atomic<const services*> hub{nullptr};
  module_state* next = nullptr;  ///< next shared object in the session's list

  constexpr module_state() noexcept = default;
  module_state(const module_state&) = delete;
  module_state& operator=(const module_state&) = delete;
};

LOTUS_DETAIL_PER_MODULE inline module_state this_module;

/// Returns the session's services; the first call creates the session. Defined in record/join.hpp.
LOTUS_DETAIL_RARE const services& join_session(bool environment_counts) noexcept;

LOTUS_DETAIL_ALWAYS_INLINE recording recording_mode() noexcept {
  return this_module.mode.load(std::memory_order_relaxed);
}

/// Returns whether scopes of this shared object must read the clock.
LOTUS_DETAIL_ALWAYS_INLINE bool is_recording() noexcept {
  const recording mode = recording_mode();
  if (mode == recording::off) return false;
  if (LOTUS_DETAIL_LIKELY(mode == recording::on)) return true;
  join_session(true);
  return recording_mode() != recording::off;
}

LOTUS_DETAIL_RARE record_tag refuse_batch(std::uint64_t number) noexcept;

/// Returns the tag of a record about a batch. If the batch's number is 2^56 or more, reports the
/// number and returns an empty tag.
LOTUS_DETAIL_ALWAYS_INLINE record_tag batch_tag(event_kind kind, std::uint64_t number) noexcept {
  if (LOTUS_DETAIL_UNLIKELY(number >> record_tag::value_bits != 0)) return refuse_batch(number);
  return {kind, number};
}

/// Begins a span on another profiler's timeline, or begins to count the span's allocations.
LOTUS_DETAIL_RARE void begin_annotation(record_tag tag) noexcept;
/// Ends what begin_annotation() began for a span. Call this function before storing the span's
/// record, because the records of the span's allocations must precede the span's record.
LOTUS_DETAIL_RARE void end_annotation(std::uint64_t begin_ticks, record_tag tag) noexcept;

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_HUB_HPP

// Stores records in a thread's ring, and notices when the thread was off the CPU.
#ifndef LOTUS_RECORD_THREAD_RING_HPP
#define LOTUS_RECORD_THREAD_RING_HPP

// Reads this thread's stack pointer.
#ifndef LOTUS_BASE_STACK_POINTER_HPP
#define LOTUS_BASE_STACK_POINTER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the stack pointer, which is that of the calling function, because this function is
/// always inlined. The result is never 0. Costs one move instruction. __builtin_frame_address(0)
/// would require a frame pointer.
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

// Reads the processor's counter, which is the fastest clock for the times of records.
#ifndef LOTUS_BASE_TICKS_HPP
#define LOTUS_BASE_TICKS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the processor's counter: the TSC on x86-64, cntvct_el0 on aarch64. Takes about 10 ns and
/// no system call.
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

// A thread records how long it was off the CPU. It needs only one load and one comparison to find
// out whether it may have been off the CPU since the last check. The kernel clears a pointer in the
// thread's rseq area (restartable sequences, rseq(2)) when it switches the thread out. While the
// pointer still has the value that lotus stored, the thread has not been off the CPU, and no clock
// needs to be read.

LOTUS_DETAIL_PER_MODULE inline constexpr std::uint64_t never_looked = 0;

/// The word that a shared object checks to find out whether the current thread was off the CPU.
/// store/cpu_clock.hpp sets it up.
struct cpu_watch {
  /// The word to check; its value changes when the thread is switched out.
  const std::uint64_t* word = &never_looked;
  std::uint64_t undisturbed = 1;  ///< look_at_cpu() calls read_cpu() if the word has another value
  /// Whether the clocks are read once per batch, because no word shows reliably when the thread is
  /// switched out.
  bool per_batch = false;

  // An aggregated call marks the watch, so that the next begin or end of a span calls read_cpu(),
  // which records the time of the aggregated calls. With own_word, the word is in the thread's rseq
  // area, and marking sets it to a second value, which all shared objects see. Otherwise marking
  // changes only this shared object's watch.
  bool own_word = false;
  std::uint64_t armed = never_looked;  ///< value of the word while the watch is not marked
  /// With own_word: value of the word while the watch is marked. Otherwise: the previous value of
  /// `armed`, which unmark() restores.
  std::uint64_t marked = 0;

  LOTUS_DETAIL_ALWAYS_INLINE bool may_be_marked() const noexcept {
    return __atomic_load_n(word, __ATOMIC_RELAXED) == armed;
  }
  /// Marks the watch. With own_word, if the thread is switched out between the check and the store,
  /// the store overwrites the value that the kernel wrote. The time of this switch is then recorded
  /// together with that of the next one.
  void mark() noexcept {
    if (!may_be_marked()) return;
    if (own_word) {
      __atomic_store_n(const_cast<std::uint64_t*>(word), marked, __ATOMIC_RELAXED);
    } else {
      marked = armed;
      armed = undisturbed = never_held;
    }
  }
  /// Removes the mark. Returns true if the watch was marked and `word` shows that the thread has
  /// not been switched out since then, so that the caller need not read the clocks.
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

/// The part of a thread's state that it needs to store records. struct producer (record/thread.hpp)
/// adds the part that the session uses.
struct alignas(64) thread_ring {
  // The owning thread uses these members. The session changes them only while that thread cannot
  // store records.
  record* slots = nullptr;
  std::uint64_t mask = 0;
  std::atomic<std::uint64_t>* published = &none_published;
  /// Stack pointer of the thread while it stores a record, otherwise 0. storing_nested is the same
  /// for a signal handler that interrupts the storing. Code that finds `storing` set passes the
  /// value to is_interrupted() (base/interruption.hpp), because there are two cases: the code is
  /// such a handler, or an earlier handler exited by siglongjmp and the storing never continues.
  std::atomic<std::uintptr_t> storing{0};
  std::atomic<std::uintptr_t> storing_nested{0};
  /// Id of the thread's loader; 0: the default loader. Written while producer::guard is held.
  std::uint32_t loader = 0;

  alignas(64) std::atomic<std::uint64_t> dropped{0};
  /// Whether the thread itself has drained its ring since the drain thread's last round.
  std::atomic<bool> drained_itself{false};
  /// The counter to which `published` points until the thread has a ring.
  std::atomic<std::uint64_t> none_published{0};
  /// Longest wait for a batch since the drain thread's last round.
  std::atomic<std::uint64_t> longest_wait_ticks{0};
};

/// Limits up to which a thread may store records without calling the session. The gate is not in
/// thread_ring, but in memory that the kernel clears in every child process. A child that was
/// created without fork handlers (_Fork, clone) shares the ring file of its parent and must not
/// write to it. In such a child the gate contains zeros, so the thread takes the slow path, and the
/// session detects that it runs in a child. After a fork with handlers the session sets the gate
/// again.
struct alignas(64) ring_gate {
  /// The thread may store records at positions below this limit. 0 sends all records to the slow
  /// path. Written while producer::guard is held.
  std::atomic<std::uint64_t> limit{0};
  /// The position at which the ring is full. If full rings drop records, `limit` is at first the
  /// position at which the ring is half full; when the thread has filled that half, it wakes the
  /// drain thread and sets `limit` to last_limit. See slow_path::push_or_drop().
  std::atomic<std::uint64_t> last_limit{0};
  /// The limit for the records that signal handlers store in the interrupt lane; see `limit`.
  std::atomic<std::uint64_t> interrupt_limit{0};
  /// Where the thread publishes since when it has been waiting for a batch.
  std::atomic<std::uint64_t>* waiting_since = nullptr;
  /// The thread's first block of aggregates. Null sends all aggregated calls to the slow path.
  /// Written while producer::guard is held.
  std::atomic<aggregates_block*> aggregates{nullptr};
};

/// Distance in bytes from a thread_ring to its gate: a multiple of every page size of Linux on the
/// supported processors. Because it is a constant, no pointer to the gate must be loaded.
inline constexpr std::size_t gate_distance = std::size_t{64} << 10;

LOTUS_DETAIL_ALWAYS_INLINE ring_gate& gate_of(thread_ring& ring) noexcept {
  return *reinterpret_cast<ring_gate*>(reinterpret_cast<char*>(&ring) + gate_distance);
}

LOTUS_DETAIL_PER_MODULE inline thread_local thread_ring* this_ring = nullptr;

/// Returns CLOCK_MONOTONIC in ns; used on systems whose hardware counter cannot serve as a clock.
LOTUS_DETAIL_RARE std::uint64_t monotonic_ticks() noexcept;

/// Returns the time in the session's ticks: the hardware counter, or ns of CLOCK_MONOTONIC.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t now_ticks() noexcept {
  const bool hardware = this_module.hardware_clock.load(std::memory_order_relaxed);
  return LOTUS_DETAIL_LIKELY(hardware) ? hardware_ticks() : monotonic_ticks();
}

/// Stores the first record of a thread, which has no ring yet.
LOTUS_DETAIL_RARE void push_first(const record& r) noexcept;
/// Stores a record if the ring is full, or if a signal handler interrupted the storing of a record.
LOTUS_DETAIL_RARE void push_slow(thread_ring& ring, const record& r) noexcept;

/// Appends a record to this thread's ring. If the ring is full, it is drained first, so that no
/// record is lost. Afterwards every reader sees the complete record, even if the process is killed.
/// Errors: none thrown. Thread and signal safety: any thread and signal handler. Cost: see
/// bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void push(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                     record_tag tag) noexcept {
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return push_first({begin_ticks, end_ticks, tag});
  if (LOTUS_DETAIL_UNLIKELY(p->storing.load(std::memory_order_relaxed) != 0)) {
    return push_slow(*p, {begin_ticks, end_ticks, tag});
  }
  // A signal handler that runs between the first and the last store to `storing` sees a value other
  // than 0, and stores its records in the interrupt lane. A handler that ran before the first store
  // has already returned.
  p->storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint64_t at = p->published->load(std::memory_order_relaxed);
  if (LOTUS_DETAIL_UNLIKELY(at >= gate_of(*p).limit.load(std::memory_order_acquire))) {
    p->storing.store(0, std::memory_order_relaxed);
    return push_slow(*p, {begin_ticks, end_ticks, tag});
  }
  p->slots[at & p->mask] = {begin_ticks, end_ticks, tag};
  p->published->store(at + 1, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  p->storing.store(0, std::memory_order_relaxed);
}

/// Reads the thread's CPU clocks, and records how long the thread was off the CPU before the time
/// `ticks`; 0: before now.
/// @param begin_ticks  start of the span that ends now; 0 if none ends.
LOTUS_DETAIL_RARE void read_cpu(std::uint64_t ticks, std::uint64_t begin_ticks) noexcept;

/// If the thread may have been off the CPU since the last check, records for how long. At an
/// operation's begin, call this function before reading the clock; at its end, after reading the
/// clock.
/// @param ticks  the time at which the recorded time off the CPU ends; 0: now.
/// @param begin_ticks  start of the span that ends now; 0 if none ends.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_cpu(std::uint64_t ticks = 0,
                                            std::uint64_t begin_ticks = 0) noexcept {
  const cpu_watch& watch = this_cpu_watch;
  const std::uint64_t now = __atomic_load_n(watch.word, __ATOMIC_RELAXED);
  if (LOTUS_DETAIL_UNLIKELY(now != watch.undisturbed)) read_cpu(ticks, begin_ticks);
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_THREAD_RING_HPP

#else
// Replaces the recording code with LOTUS_DISABLE, and on systems that lotus does not support
// (LOTUS_SUPPORTED is 0). The API is the same, so programs build and run, but nothing is recorded.
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
constexpr void look_at_cpu(std::uint64_t = 0, std::uint64_t = 0) noexcept {}
constexpr void read_cpu(std::uint64_t, std::uint64_t) noexcept {}
constexpr void publish_wait() noexcept {}
constexpr void publish_end_of_wait() noexcept {}
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
  constexpr bool start(const options&) const noexcept { return LOTUS_DETAIL_DISABLED; }
  constexpr bool start_steps(const options&, const schedule&) const noexcept {
    return LOTUS_DETAIL_DISABLED;
  }
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

/// Returns the tag with which an operation of this name is recorded. The tag is never empty.
LOTUS_DETAIL_PER_MODULE inline record_tag operation_tag(std::string_view name) noexcept {
  const services* s = this_module.hub.load(std::memory_order_acquire);
  if (s == nullptr) s = &join_session(true);
  return {event_kind::operation, s->intern(name)};
}

/// Caches the tag of a name that never changes, so that the name is looked up only once.
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

/// Holds the tag for the name of the scope at one place in the source, which the type `Here`
/// identifies. The tag is a static member of a template with hidden visibility, because a static
/// variable in an inline function would keep a plugin (a shared object loaded by dlopen) from being
/// unloaded.
template <class Here>
struct LOTUS_DETAIL_PER_MODULE known_tag_of {
  static known_tag tag;
};
template <class Here>
LOTUS_DETAIL_CONSTINIT known_tag known_tag_of<Here>::tag{};

/// Returns whether a macro argument, as written in the source, consists only of string literals.
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

/// A place in the source, identified by the type `Here`, and the operation's name at that place.
/// @tparam Fixed whether the name is the same each time, so that its tag can be cached.
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

/// Base class of all scopes: measures the time from construction to destruction. A span cannot be
/// copied, moved or allocated by `new`, because it must end with its block.
class span {
 public:
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 protected:
  /// @param make_tag  function that returns the record's tag. It is called only if this process is
  /// recording. If it returns an empty tag, the span is not recorded.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE explicit span(MakeTag make_tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    const bool is_plain = LOTUS_DETAIL_LIKELY(mode == recording::on);
    if (!is_plain && !is_recording()) return;
    tag_ = make_tag();
    if (tag_.empty()) return;
    if (!is_plain && recording_mode() == recording::annotated) begin_annotation(tag_);
#if !defined(NDEBUG)
    thread_ = &this_cpu_watch;
#endif
    look_at_cpu();
    begin_ticks_ = now_ticks();
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~span() {
    if (!tag_.empty()) finish();
  }

  /// Ends the span before its block ends.
  void end() noexcept {
    if (tag_.empty()) return;
    finish();
    tag_ = {};
  }

  /// Returns the record's tag, which is empty if the span will not be recorded.
  record_tag tag() const noexcept {
    return tag_;
  }
  /// Stores an additional record directly before this span's record, with this span's start and the
  /// number `word`: for data that has no space in the span's own record. tag() must not be empty.
  LOTUS_DETAIL_RARE void record_before(record_tag event, std::uint64_t word) const noexcept;

  /// Replaces the record's tag.
  /// @param make_tag  record_tag(record_tag): returns the new tag for the current one; called only
  /// if the current tag is not empty.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE void retag(MakeTag make_tag) noexcept {
    if (tag_.empty()) return;
    const record_tag before = tag_;
    tag_ = make_tag(before);
    const bool annotated = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(tag_.empty() && annotated)) end_annotation(0, before);
  }

 private:
  /// Records the span, whose tag is not empty. A call takes no measurable time next to the two
  /// readings of the clock. Inlined, the code would stand twice in every function with a scope: for
  /// its return, and for an exception that leaves it.
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_NOINLINE void finish() noexcept {
#if !defined(NDEBUG)
    // A file compiled with NDEBUG may have begun the span.
    const bool crossed = thread_ != nullptr && thread_ != &this_cpu_watch;
    if (LOTUS_DETAIL_UNLIKELY(crossed)) report_crossed_threads(tag_);
#endif
    const std::uint64_t end_ticks = now_ticks();
    look_at_cpu(end_ticks, begin_ticks_);
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_LIKELY(mode == recording::on)) {
      push(begin_ticks_, end_ticks, tag_);
    } else if (mode == recording::annotated) {
      end_annotated(begin_ticks_, end_ticks, tag_);
    }
  }

  LOTUS_DETAIL_RARE static void report_crossed_threads(record_tag tag) noexcept;
  LOTUS_DETAIL_RARE static void end_annotated(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                              record_tag tag) noexcept;

  record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  /// Address of a thread-local variable, which identifies the thread that began the span. Set only
  /// in debug builds, to report spans that end on another thread.
  [[maybe_unused]] const void* thread_ = nullptr;
};

/// Measures a span that begins and ends by function calls instead of with a block. Thread safety:
/// one thread at a time.
class measured_span {
 public:
  constexpr measured_span() noexcept = default;
  /// @param begin_ticks  result of begin_ticks() for a span that has begun, which this object ends.
  constexpr explicit measured_span(std::uint64_t begin_ticks) noexcept
      : begin_ticks_{begin_ticks} {}

  /// Begins to measure, if this process is recording.
  /// @param tag  the record's tag, as far as it is known when the span begins. Heap allocations of
  /// this thread during the span are attributed to the operation of this tag.
  LOTUS_DETAIL_ALWAYS_INLINE void begin(record_tag tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    if (LOTUS_DETAIL_UNLIKELY(mode != recording::on) && !begin_slow(tag)) return;
    look_at_cpu();
    begin_ticks_ = now_ticks();
  }
  bool runs() const noexcept { return begin_ticks_ != 0; }
  /// Returns when the span began; 0 if no span has begun.
  std::uint64_t begin_ticks() const noexcept { return begin_ticks_; }

  /// Ends the span and records it with this tag; does nothing if no span has begun.
  LOTUS_DETAIL_ALWAYS_INLINE void end(record_tag tag) noexcept {
    if (!runs()) return;
    const std::uint64_t end_ticks = now_ticks();
    look_at_cpu(end_ticks, begin_ticks_);
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_UNLIKELY(mode == recording::annotated)) end_slow(begin_ticks_, tag);
    if (!tag.empty() && mode != recording::off) push(begin_ticks_, end_ticks, tag);
    begin_ticks_ = 0;
  }

  /// Discards the span, if one has begun, so that nothing is recorded.
  LOTUS_DETAIL_ALWAYS_INLINE void forget(record_tag tag) noexcept {
    if (!runs()) return;
    if (recording_mode() == recording::annotated) end_slow(0, tag);
    begin_ticks_ = 0;
  }

 private:
  LOTUS_DETAIL_RARE static bool begin_slow(record_tag tag) noexcept;
  LOTUS_DETAIL_RARE static void end_slow(std::uint64_t begin_ticks, record_tag tag) noexcept;

  std::uint64_t begin_ticks_ = 0;
};

}  // namespace detail

/// Records one operation, from here to the end of the block, as a log line "S<name>"; see
/// LOTUS_SCOPE. Errors: none thrown. Thread safety: any thread; each object belongs to one thread.
class scope : detail::span {
 public:
  /// @param name  copied into a table of names, so it needs to exist only during this call. Each
  /// call looks up the name in a hash table.
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE explicit scope(std::string_view name) noexcept
      : span{[name] { return detail::operation_tag(name); }} {}
  /// Used by the macros: if the name is a literal, the name is looked up only once.
  template <class Here, bool Fixed>
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE explicit scope(
      const detail::place<Here, Fixed>& place) noexcept
      : span{[&place] { return place.tag(); }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~scope() = default;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Numbers for this thread's asynchronous operations, reserved in advance: from `next` up to but
/// not including `end`. No other thread of the process uses them.
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

/// Records one operation in segments. A segment lasts from construction or a resume() to the next
/// suspend() or the destruction; all of these calls may come from different threads. Each segment
/// becomes a line "S<name>" in the log of the thread on which the segment ends. lotus-tool joins
/// the segments:
///
///   lotus::async_scope load{"Load"};
///   load.suspend();                   // another thread may resume the operation from here on
///   co_await read(file);
///   load.resume();
///
/// Errors: none thrown. Thread safety: one thread at a time, like a coroutine's frame.
class async_scope {
 public:
  /// @param name  copied, so it must be valid only during this call.
  [[nodiscard]] explicit async_scope(std::string_view name) noexcept {
    if (!detail::is_recording()) return;
    tag_ = {detail::event_kind::async_segment,
            static_cast<std::uint32_t>(detail::operation_tag(name).value()),
            detail::new_async_id()};
    segment_.begin(tag_);
  }
  async_scope(const async_scope&) = delete;
  async_scope& operator=(const async_scope&) = delete;
  ~async_scope() { segment_.end(tag_); }

  /// Suspends the operation, if it is running. Call this function before another thread can resume
  /// the operation.
  void suspend() noexcept { segment_.end(tag_); }

  /// Resumes the operation on this thread; does nothing if the operation is already running.
  void resume() noexcept {
    if (!segment_.runs() && !tag_.empty()) segment_.begin(tag_);
  }

 private:
  detail::record_tag tag_;
  detail::measured_span segment_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_ASYNC_SCOPE_HPP

// Provides the scopes and events that record the history of a batch (dispatch, preprocessing, wait,
// arrival and consumption), and loader_scope, which lets several loaders number their batches
// independently.
#ifndef LOTUS_BATCH_HPP
#define LOTUS_BATCH_HPP

#if LOTUS_SUPPORTED
// Publishes in the ring file that a thread is waiting for a batch. Without this, observers could
// not see a wait that never ends, because a wait is recorded only when the wait ends.
#ifndef LOTUS_RECORD_PUBLISHED_WAIT_HPP
#define LOTUS_RECORD_PUBLISHED_WAIT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Gives this thread a ring if it has none, so that a wait is published even if the thread has
/// recorded nothing yet.
LOTUS_DETAIL_RARE void get_ring() noexcept;

/// Stores the start of this thread's wait in the ring file, which survives even kill -9.
LOTUS_DETAIL_ALWAYS_INLINE void publish_wait() noexcept {
  if (!is_recording()) return;
  if (this_ring == nullptr || gate_of(*this_ring).waiting_since == nullptr) get_ring();
  if (this_ring == nullptr) return;
  std::atomic<std::uint64_t>* const waiting_since = gate_of(*this_ring).waiting_since;
  if (waiting_since != nullptr) waiting_since->store(now_ticks(), std::memory_order_relaxed);
}

/// Publishes that this thread no longer waits. Call this function when a wait ends or is canceled;
/// without a wait the call has no effect.
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

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_PUBLISHED_WAIT_HPP

#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Reads this thread's CPU clocks if the kernel offers no cheaper way to notice that the thread was
/// switched out. Call this function before a batch or wait begins and again before it ends: the
/// time off the CPU between the two calls is recorded for that batch or wait.
LOTUS_DETAIL_ALWAYS_INLINE void look_at_batch() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.per_batch)) read_cpu(0, 0);
}

template <event_kind Kind>
LOTUS_DETAIL_ALWAYS_INLINE void batch_event(std::uint64_t batch) noexcept {
  if (!is_recording()) return;
  const std::uint64_t now = now_ticks();
  const record_tag tag = batch_tag(Kind, batch);
  if (LOTUS_DETAIL_LIKELY(!tag.empty())) push(now, now, tag);
}

/// Records the consumer's waits for batches, one after another. The next wait can begin when the
/// previous one has ended.
class repeated_wait {
 public:
  repeated_wait() noexcept = default;
  repeated_wait(const repeated_wait&) = delete;
  repeated_wait& operator=(const repeated_wait&) = delete;
  ~repeated_wait() { forget(); }

  /// @param tag  the tag with which the wait will be recorded, as far as it is known.
  void begin(record_tag tag = {event_kind::batch_wait, unknown_batch}) noexcept {
    if (is_recording()) look_at_batch();
    publish_wait();
    wait_.begin(tag);
  }
  /// Ends the current wait and records it as the wait for this batch.
  void end(std::uint64_t batch) noexcept {
    if (wait_.runs()) end(batch_tag(event_kind::batch_wait, batch));
  }
  void end(record_tag tag) noexcept {
    if (!wait_.runs()) return;
    look_at_batch();
    publish_end_of_wait();
    wait_.end(tag);
  }
  /// Ends the current wait without recording it.
  void forget() noexcept {
    if (!wait_.runs()) return;
    publish_end_of_wait();
    wait_.forget({event_kind::batch_wait, unknown_batch});
  }

 private:
  measured_span wait_;
};

}  // namespace detail

/// Scope in a worker around all the work that builds a batch; the log line is
/// "SBatchPreprocessed_i". If the number is known only later, or if there may be no batch, as at
/// the end of the data, leave the argument out:
///
///   lotus::batch_preprocessed batch;
///   Batch b = read_next();
///   b.empty() ? batch.discard() : batch.number(b.index);
///
/// The scope lasts from construction to the end of the block. Nothing is recorded without a number,
/// or after discard(). Errors: none thrown; a batch with a number of 2^56 or more is not recorded
/// but counted in dropped(). Thread safety: any thread; each object belongs to one thread.
class batch_preprocessed {
 public:
  [[nodiscard]] batch_preprocessed() noexcept {
    begin({detail::event_kind::batch_preprocessed, detail::unknown_batch});
  }
  /// @param batch  the batch's number in its epoch.
  [[nodiscard]] explicit batch_preprocessed(std::uint64_t batch) noexcept {
    if (!detail::is_recording()) return;
    tag_ = tag_of(batch);
    if (!tag_.empty()) begin(tag_);
  }
  batch_preprocessed(const batch_preprocessed&) = delete;
  batch_preprocessed& operator=(const batch_preprocessed&) = delete;
  ~batch_preprocessed() {
    if (tag_.empty()) discard();
    if (!span_.runs()) return;
    detail::look_at_batch();
    span_.end(tag_);
  }

  /// Sets the number of the batch that is being built. If it is called again, the last number
  /// counts.
  void number(std::uint64_t batch) noexcept {
    if (span_.runs()) tag_ = tag_of(batch);
  }
  /// Ends the scope here and records nothing, because there is no batch.
  void discard() noexcept {
    span_.forget({detail::event_kind::batch_preprocessed, detail::unknown_batch});
  }

 private:
  static detail::record_tag tag_of(std::uint64_t batch) noexcept {
    return detail::batch_tag(detail::event_kind::batch_preprocessed, batch);
  }
  void begin(detail::record_tag tag) noexcept {
    if (detail::is_recording()) detail::look_at_batch();
    span_.begin(tag);
  }

  detail::measured_span span_;
  /// Empty as long as the number is unknown.
  detail::record_tag tag_;
};

/// Records that the consumer has received batch `i` and begins its step, as the log line
/// "SBatchConsumed_i". Call it in the consumer, right after the wait.
/// @param batch  the batch's number in its epoch; a number of 2^56 or more is not recorded but
/// counted in dropped(). Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void batch_consumed(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_consumed>(batch);
}

/// Records the consumer's wait for a batch, as the log line "SBatchWait_i":
///
///   lotus::batch_wait wait;
///   Batch b = loader.next();
///   wait.consumed(b.index);
///
/// The wait lasts from construction to consumed(). Without that call, as at the end of the data,
/// nothing is recorded, except if the number was given at once: then the wait lasts to the end of
/// the block, and batch_consumed() says when the step begins. While the wait lasts, `lotus-tool
/// top` shows it, and it can trigger a snapshot (see options::snapshot_when_wait_ms). Errors: none
/// thrown; a wait for a batch with a number of 2^56 or more is not recorded but counted in
/// dropped(). Thread safety: any thread; each object belongs to one thread.
class batch_wait {
 public:
  [[nodiscard]] batch_wait() noexcept { wait_.begin(); }
  /// @param batch  the batch's number in its epoch.
  [[nodiscard]] explicit batch_wait(std::uint64_t batch) noexcept {
    if (!detail::is_recording()) return;
    tag_ = detail::batch_tag(detail::event_kind::batch_wait, batch);
    if (!tag_.empty()) wait_.begin(tag_);
  }
  batch_wait(const batch_wait&) = delete;
  batch_wait& operator=(const batch_wait&) = delete;
  ~batch_wait() {
    if (!tag_.empty()) wait_.end(tag_);
  }

  /// Ends the wait, as that for this batch, and calls batch_consumed(). Call this function right
  /// after the batch has arrived: the code from here to the next wait is the consumer's step.
  void consumed(std::uint64_t batch) noexcept {
    wait_.end(batch);
    batch_consumed(batch);
  }
  /// Ends the wait here and records nothing, because no batch came.
  void discard() noexcept { wait_.forget(); }

 private:
  detail::repeated_wait wait_;
  /// Empty unless the number was given at once.
  detail::record_tag tag_;
};

/// Records that batch `i` arrived while the consumer waited for another batch, and was buffered.
/// The log line is "SBatchWait_i" with a duration of exactly 1000 ns, by which readers recognize
/// such an arrival. The parameter, errors and thread safety are those of batch_consumed().
LOTUS_DETAIL_ALWAYS_INLINE void batch_arrived(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_arrived>(batch);
}

/// Records that the consumer dispatched batch `i` to a worker, as the log line "SBatchQueued_i".
/// The parameter, errors and thread safety are those of batch_consumed().
LOTUS_DETAIL_ALWAYS_INLINE void batch_queued(std::uint64_t batch) noexcept {
  detail::batch_event<detail::event_kind::batch_queued>(batch);
}

namespace detail {

/// Assigns this thread's later records to the loader whose name has the id `loader`. Returns the id
/// of the previous loader's name.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  if (!LOTUS_SUPPORTED || name.empty()) return 0;
  return static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Assigns the batches, stages and operations of this thread to a loader until the end of the
/// block. lotus-tool treats each loader as a pipeline of its own, whose logs are in a subfolder
/// with the loader's name. Processes that this thread forks meanwhile belong to the loader too, but
/// threads that this thread starts do not. A loader_scope may be nested in another. Cost: a few
/// system calls, so use one for the lifetime of a worker or for an epoch, not for each batch.
/// Errors: none thrown. Thread safety: any thread; each object belongs to one thread.
class loader_scope {
 public:
  /// @param name  name of the loader, copied; empty: the default loader, as if there were no
  /// loader_scope.
  [[nodiscard]] explicit loader_scope(std::string_view name) noexcept
      : before_{detail::enter_loader(detail::loader_of(name))} {}
  loader_scope(const loader_scope&) = delete;
  loader_scope& operator=(const loader_scope&) = delete;
  ~loader_scope() { detail::enter_loader(before_); }

 private:
  std::uint32_t before_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BATCH_HPP

// Provides compose() and chain, which record operations that follow each other directly. The
// end of one operation and the start of the next share a clock reading.
#ifndef LOTUS_COMPOSE_HPP
#define LOTUS_COMPOSE_HPP

// Provides call(), an equivalent of std::invoke that does not need <functional>.
#ifndef LOTUS_BASE_CALL_HPP
#define LOTUS_BASE_CALL_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the object to which a pointer to member is applied. The argument is that object itself,
/// or a std::reference_wrapper or a pointer that refers to it.
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

/// Calls a function, a function object or a pointer to member: anything for which
/// std::is_invocable_v is true.
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

// Measures consecutive operations: the end of one operation and the start of the next share one
// reading of the clock. Used by compose.hpp.
#ifndef LOTUS_RECORD_OPERATION_RUN_HPP
#define LOTUS_RECORD_OPERATION_RUN_HPP

#if LOTUS_SUPPORTED
#else
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Measures consecutive operations, each of which begins when the previous one ends. Records each
/// operation when it ends. The destructor records a span with the tag `whole` that contains all
/// operations, even if an operation has thrown.
class operation_run {
 public:
  explicit operation_run(record_tag whole) noexcept : whole_{whole} {
    if (!is_recording()) return;
    annotated_ = recording_mode() == recording::annotated;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(whole_);
    look_at_cpu();
    first_ticks_ = last_ticks_ = now_ticks();
  }
  operation_run(const operation_run&) = delete;
  operation_run& operator=(const operation_run&) = delete;

  /// Sets the tag of the operation that begins now. If the operation throws, it is recorded with
  /// this tag.
  LOTUS_DETAIL_ALWAYS_INLINE void running(record_tag tag) noexcept {
    running_ = tag;
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_annotation(tag);
  }

  LOTUS_DETAIL_ALWAYS_INLINE void ended(record_tag tag) noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) end_part(tag);
    running_ = {};
    if (LOTUS_DETAIL_UNLIKELY(last_ticks_ == 0)) return;
    const std::uint64_t now = now_ticks();
    look_at_cpu(now, last_ticks_);
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

  /// Begins an operation whose name is known only at its end; see deprecated.hpp.
  void nameless() noexcept {
    if (LOTUS_DETAIL_UNLIKELY(annotated_)) begin_nameless();
  }

 private:
  /// The value of `running_` until the first operation begins, by which end_early() recognizes that
  /// there was no operation. Comparing first_ticks_ with last_ticks_ would not show this: both may
  /// be equal after a short operation, because the counter of aarch64 may run at only 24 MHz.
  static constexpr record_tag nothing_yet{event_kind::none, 1};

  LOTUS_DETAIL_RARE void begin_nameless() noexcept;
  LOTUS_DETAIL_RARE void end_part(record_tag tag) noexcept;
  /// Called by the destructor if an operation has thrown, or if there was no operation.
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
  // The text ends in "[with T = image::Crop<float>; ...]" (g++) or "[T = image::Crop<float>]"
  // (clang).
  const std::string_view text = __PRETTY_FUNCTION__;
  // The type of a function pointer does not contain the function's name.
  if (std::is_function_v<std::remove_pointer_t<T>> || std::is_member_pointer_v<T>) {
    return "function";
  }
  std::size_t name_at = text.find("T = ") + 4;
  std::size_t name_end = name_at;
  int parentheses = 0;
  bool lambda = false;
  // Nesting depth of template argument lists. A '>' inside parentheses does not end a list.
  int arguments = 0;
  for (std::size_t at = name_at; at < text.size(); ++at) {
    const char c = text[at];
    const bool outside = arguments == 0 && parentheses == 0;
    // A lambda is named "<lambda(int)>" by g++ and "(lambda at crop.cpp:7:3)" by clang.
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

/// Calls `f` and moves `value` into the call. Returns the result of `f`, or, if `f` returns
/// nothing, the value that `f` changed.
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

/// A callable and the name under which it is logged: compose(operation{"Flip", f}). Owns the
/// callable. Errors: throws only what copying or moving the callable throws.
template <class F>
struct operation {
  /// @param name  copied, so it must be valid only during this call.
  operation(std::string_view name, F function)
      : call{std::move(function)}, tag{detail::operation_tag(name)} {}

  F call;                  ///< the callable
  detail::record_tag tag;  ///< the tag under which it is logged
};
/// Deduces the type of the callable from a name and the callable.
template <class F>
operation(std::string_view, F) -> operation<F>;

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
    return operation<std::decay_t<F>>{type_name<std::decay_t<F>>(), std::forward<F>(f)};
  }
}

/// The operations of a `composed` object; run() calls them one after another and records each.
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

/// A fixed list of operations that are called one after another; compose() returns it. It is
/// copyable if its callables are, and as thread-safe as they are.
template <class... Fs>
class composed {
 public:
  /// Stores the operations, which are called in this order.
  explicit composed(operation<Fs>... operations)
      : operations_{std::move(operations)...}, whole_{detail::transform_tag()} {}

  /// Moves `value` through all operations and returns the last result. Records one log line for
  /// each operation, and "STransform" for all together. If an operation throws, the exception
  /// propagates and the time up to it is recorded.
  template <class T>
  auto operator()(T&& value) {
    detail::operation_run run{whole_};
    return operations_.run(run, std::forward<T>(value));
  }

 private:
  detail::operation_list<Fs...> operations_;
  detail::record_tag whole_;
};

/// Combines callables into one callable that times each of them: `auto t = compose(Resize{224},
/// operation{"Flip", f});` An operation is named after the callable's type unless it gets a name. A
/// callable receives what the previous one returned, or changes it in place and returns nothing.
/// The result owns copies of the callables. Errors: throws what copying a callable throws; an
/// exception of a callable propagates to the caller of the result, and the time up to it is
/// recorded. Thread safety: that of the callables. Cost: k operations read the clock k + 1 times.
template <class... Fs>
[[nodiscard]] auto compose(Fs&&... fs) {
  return composed{detail::as_operation(std::forward<Fs>(fs))...};
}

namespace detail {

/// One operation of a chain<T>. The operations form a linked list.
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

/// A list of operations on values of type `T`, to which add() appends at run time. Otherwise it
/// works like the result of compose(). Thread safety: add() needs exclusive access; calls may run
/// on several threads at once if the operations may.
template <class T>
class chain {
 public:
  chain() = default;
  /// Copies every operation. Throws what copying one of them throws.
  chain(const chain& other) : whole_{other.whole_} {
    for (auto* link = other.first_; link != nullptr; link = link->next()) append(link->copy());
  }
  /// Moves the operations, so that `other` has none afterwards.
  chain(chain&& other) noexcept { swap(other); }
  /// Copies or moves the operations, depending on the argument.
  chain& operator=(chain other) noexcept {
    swap(other);
    return *this;
  }
  ~chain() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next());
  }

  /// Appends an operation, which takes a T and returns a T, or takes a T& and returns nothing.
  /// @param name  copied, so it must be valid only during this call.
  /// @param f     copied or moved into the chain. Throws std::bad_alloc, and what copying `f`
  /// throws; then the chain is unchanged.
  template <class F>
  chain& add(std::string_view name, F&& f) {
    append(new detail::chain_operation<T, std::decay_t<F>>{detail::operation_tag(name),
                                                           std::forward<F>(f)});
    return *this;
  }

  /// Moves `value` through all operations and returns the result: `value` if there are none. If an
  /// operation throws, the exception propagates and the time up to it is recorded.
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

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_COMPOSE_HPP

// Provides consume(), a range that records each wait for a batch and each reception of a batch.
#ifndef LOTUS_CONSUME_HPP
#define LOTUS_CONSUME_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// begin_of() and the functions below it find begin() and end() as a range-based for does: as
// members, through std::begin() and std::end() (declared by <string_view>), or by
// argument-dependent lookup.
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

/// Whether a Sentinel can be the end of a range that begins with an Iterator.
template <class Iterator, class Sentinel, class = void>
inline constexpr bool are_iterators = false;
template <class Iterator, class Sentinel>
inline constexpr bool
    are_iterators<Iterator, Sentinel,
                  std::void_t<decltype(*std::declval<Iterator&>()),
                              decltype(std::declval<Iterator&>() != std::declval<Sentinel&>())>> =
        true;

/// A range that consists of two iterators, for loaders that have no begin() and end().
template <class Iterator, class Sentinel>
struct iterator_pair {
  Iterator first;
  Sentinel last;

  Iterator begin() { return std::move(first); }
  Sentinel end() { return std::move(last); }
};

/// The default numbering: batches are numbered from 0 in the order of their reception.
struct order_of_reception {};

/// The range that consume() returns. It is an input range: a loop can read each batch only once.
/// @tparam Source  a range, or a reference to a range.
/// @tparam Number  order_of_reception, or a callable that returns a batch's number.
template <class Source, class Number>
class consumed_range {
 public:
  consumed_range(Source&& source, Number number)
      : source_{std::forward<Source>(source)}, number_{std::move(number)} {}

  template <class Sentinel>
  struct sentinel {
    // mutable, because the iterators of some loaders compare only with a non-const sentinel
    mutable Sentinel end;
  };

  template <class Iterator>
  class iterator {
   public:
    iterator(consumed_range& range, Iterator&& at) : range_{range}, at_{std::move(at)} {}

    /// Compares with the end of the data. At the end, discards the wait that has begun, because no
    /// batch ended it.
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

    /// Returns the batch and ends the wait for it. The wait ends only after the source's iterator
    /// was dereferenced, because some iterators build the batch at that moment.
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
    /// The destructor of this object ends the wait. It runs after `return *at_` has constructed the
    /// batch directly in the caller's variable, so the batch need not be movable.
    struct reception {
      consumed_range& range;
      ~reception() { range.receive(range.next_++); }
    };

    consumed_range& range_;
    Iterator at_;
  };

  /// Begins the first wait before it calls the source's begin(), because a loader may start its
  /// work there.
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

/// Records the wait for each batch and its reception while a loop iterates over a loader:
///
///   for (auto&& batch : lotus::consume(loader)) train(batch);
///
/// Batches are numbered from 0 in the order of their reception; workers must use the same numbers.
/// The body of the loop is the consumer's step. Exceptions of the loader propagate.
/// @param batches  anything that a range-based for accepts. A temporary is stored in the result;
/// anything else must outlive the loop. Thread safety: the result belongs to one thread.
template <class Range, std::enable_if_t<detail::is_range<Range>, int> = 0>
[[nodiscard]] auto consume(Range&& batches) {
  return detail::consumed_range<Range, detail::order_of_reception>{std::forward<Range>(batches),
                                                                   {}};
}

/// Like consume(batches), for a loader that is given by two iterators.
template <class Iterator, class Sentinel,
          std::enable_if_t<detail::are_iterators<Iterator, Sentinel>, int> = 0>
// Iterators are passed by value and moved, because some cannot be copied. clang-tidy would report
// this for iterators that can only be copied.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
[[nodiscard]] auto consume(Iterator first, Sentinel last) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)});
}

/// Like consume(batches), for batches that contain their own numbers, for example
/// lotus::consume(loader, &Batch::index).
/// @param number  returns a batch's number as an integer: a function that is called with the batch,
/// or a pointer to a member of the batch.
template <class Range, class Number,
          std::enable_if_t<!detail::are_iterators<std::decay_t<Range>, Number>, int> = 0>
[[nodiscard]] auto consume(Range&& batches, Number number) {
  return detail::consumed_range<Range, Number>{std::forward<Range>(batches), std::move(number)};
}
/// Like consume(batches, number), for a loader that is given by two iterators.
template <class Iterator, class Sentinel, class Number>
// NOLINTNEXTLINE(performance-unnecessary-value-param)
[[nodiscard]] auto consume(Iterator first, Sentinel last, Number number) {
  return consume(detail::iterator_pair<Iterator, Sentinel>{std::move(first), std::move(last)},
                 std::move(number));
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_CONSUME_HPP

// Provides the names of earlier versions, which the next version no longer has. Compilers say what
// to use instead; docs/changelog.md has a table of it.
#ifndef LOTUS_DEPRECATED_HPP
#define LOTUS_DEPRECATED_HPP

// Provides what is recorded without a scope: record_span() for an interval that the program
// measured itself, ranges, which appear only on timelines, and counters, which are numbers over
// time.
#ifndef LOTUS_RECORD_SPAN_HPP
#define LOTUS_RECORD_SPAN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the tag of a range. A number at the end of the name is stored separately, so that a
/// million numbered iterations such as "iteration 7" need only one name. Leading zeros of the
/// number stay in the name.
LOTUS_DETAIL_PER_MODULE record_tag range_tag(std::string_view name) noexcept;

}  // namespace detail

/// Shows the time from here to the end of the block, with a name, on the timeline of lotus-tool. If
/// the environment variable LOTUS_ANNOTATE is set, the timelines of other profilers show it too.
/// Text logs and statistics do not contain ranges: to measure an operation, use LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; each range object belongs to one thread.
class range : detail::span {
 public:
  /// @param name  copied without its final number, so it needs to exist only during this call.
  [[nodiscard]] explicit range(std::string_view name) noexcept
      : span{[name] { return detail::range_tag(name); }} {}
  ~range() = default;
};

namespace detail {

/// Converts a std::chrono time point to ns since its clock's epoch, without including <chrono>.
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

/// Whether T is a time point of a steady clock.
template <class T, class = void>
inline constexpr bool is_steady_time = false;
template <class T>
inline constexpr bool is_steady_time<T, std::void_t<typename T::clock, typename T::period>> =
    T::clock::is_steady;

}  // namespace detail

/// Records an operation "S<name>" of this thread that lasted from `begin` to `end`. Recent times
/// are accurate to less than a microsecond; the error grows with their age, because clocks drift.
/// The operation must not partly overlap a scope of this thread, which lotus-tool would report as
/// an error; use an async_scope for intervals that may overlap, such as times in a queue.
/// @param name  copied into a table of names, so it needs to exist only during this call.
/// @param begin, end  times of std::chrono::steady_clock in any unit, or of another clock that
/// counts like CLOCK_MONOTONIC.
/// Errors: none thrown. Thread safety: any thread.
template <class Begin, class End>
void record_span(std::string_view name, const Begin& begin, const End& end) noexcept {
  static_assert(
      detail::is_steady_time<Begin> && detail::is_steady_time<End>,
      "record_span takes times of std::chrono::steady_clock; for a number of ns of "
      "CLOCK_MONOTONIC: std::chrono::steady_clock::time_point(std::chrono::nanoseconds(n))");
  if constexpr (detail::is_steady_time<Begin> && detail::is_steady_time<End>) {
    static_assert(std::is_same_v<typename Begin::clock, typename End::clock>,
                  "record_span takes two times of the same clock");
    if (!detail::is_recording()) return;
    const detail::given_ticks ticks = detail::join_session(true).ticks_of_span(
        detail::ns_since_epoch(begin), detail::ns_since_epoch(end));
    detail::push(ticks.begin, ticks.end, detail::operation_tag(name));
  }
}

namespace detail {

LOTUS_DETAIL_ALWAYS_INLINE void count(record_tag name, std::int64_t value) noexcept {
  push(now_ticks(), static_cast<std::uint64_t>(value), {event_kind::counter, name.value()});
}

}  // namespace detail

/// Sets the counter with this name to this value. All threads of the process share the counter. Its
/// values are stored only in the hidden side log, because the text format cannot express counters.
/// @param name   copied, so it must be valid only during this call.
/// @param value  in whatever unit the program uses; lotus-tool shows the number as it is.
/// Errors: none thrown. Thread safety: any thread.
LOTUS_DETAIL_ALWAYS_INLINE void counter(std::string_view name, std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(detail::operation_tag(name), value);
}
/// Sets a counter whose name is known at compile time, so that its id is looked up only once.
template <class Here, bool Fixed>
LOTUS_DETAIL_ALWAYS_INLINE void counter(const detail::place<Here, Fixed>& place,
                                        std::int64_t value) noexcept {
  if (detail::is_recording()) detail::count(place.tag(), value);
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_SPAN_HPP

// Provides stages, which are scopes that record on which batch, item or request a thread works.
#ifndef LOTUS_STAGE_HPP
#define LOTUS_STAGE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A span with a 64-bit number. A number below 2^32 - 1 is part of the span's record; a larger
/// number needs a second record.
class numbered_span : span {
 protected:
  /// @param make_name  function that returns the operation's tag; called only if this process is
  /// recording.
  template <class MakeName>
  LOTUS_DETAIL_ALWAYS_INLINE numbered_span(MakeName make_name, std::uint64_t number) noexcept
      : span{[make_name, number] { return stage_tag(make_name(), number); }}, number_{number} {}
  /// Begins the span of an operation without a number. set_number() turns it into a stage.
  template <class MakeName>
  LOTUS_DETAIL_ALWAYS_INLINE explicit numbered_span(MakeName make_name) noexcept
      : span{make_name} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~numbered_span() { record_large_number(); }

  void end() noexcept {
    record_large_number();
    span::end();
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
  LOTUS_DETAIL_ALWAYS_INLINE void record_large_number() const noexcept {
    if (LOTUS_DETAIL_LIKELY(number_ < number_not_in_tag) || tag().empty()) return;
    record_before({event_kind::stage_number, tag().value() >> 32}, number_);
  }
  LOTUS_DETAIL_ALWAYS_INLINE static record_tag stage_tag(record_tag operation,
                                                         std::uint64_t number) noexcept {
    return {event_kind::stage, static_cast<std::uint32_t>(operation.value()),
            LOTUS_DETAIL_LIKELY(number < number_not_in_tag) ? static_cast<std::uint32_t>(number)
                                                            : number_not_in_tag};
  }

  std::uint64_t number_ = 0;
};

}  // namespace detail

/// Records that this thread works on batch, item or request `number` in a stage of the pipeline,
/// from here to the end of the block. The log line is that of an operation, "S<name>"; lotus-tool
/// also shows the stage in the history of the batch:
///
///   lotus::stage decoding{"Decode", i};
///   image decoded = decode(read);
///   decoding.end();                   // before a full queue makes this thread wait
///   queue.push(std::move(decoded));
///
/// Errors: none thrown. Thread safety: any thread; each object belongs to one thread. Cost: that of
/// a scope; a number of 2^32 - 1 or more needs a second record.
class stage : detail::numbered_span {
 public:
  /// @param name  copied into a table of names, so it needs to exist only during this call. Each
  /// call looks up the name in a hash table.
  /// @param number  number of the batch, item or request; every 64-bit number is allowed.
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE stage(std::string_view name,
                                                 std::uint64_t number) noexcept
      : numbered_span{[name] { return detail::operation_tag(name); }, number} {}
  /// Used by the macros: if the name is a literal, the name is looked up only once.
  template <class Here, bool Fixed>
  [[nodiscard]] LOTUS_DETAIL_ALWAYS_INLINE stage(const detail::place<Here, Fixed>& place,
                                                 std::uint64_t number) noexcept
      : numbered_span{[&place] { return place.tag(); }, number} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~stage() = default;

  /// Ends the work here, for example before the result is pushed into a full queue. Afterwards,
  /// neither function has an effect.
  void end() noexcept { numbered_span::end(); }
  /// Ends the work here and records nothing, for example because there was no more data.
  void discard() noexcept { forget(); }
};

/// Calls a function as the work of a stage on batch, item or request `number`, and returns its
/// result:
///
///   queue.push(lotus::in_stage("Decode", i, [&] { return decode(read); }));
///
/// @param name, number  as for class stage: each call looks up the name.
/// @param function  called once, without arguments, on this thread. Errors: its exceptions
/// propagate, and the time up to an exception is recorded. Thread safety: any thread.
template <class Function>
decltype(auto) in_stage(std::string_view name, std::uint64_t number, Function&& function) {
  const stage here{name, number};
  return detail::call(std::forward<Function>(function));
}

/// Records that item `item` becomes part of batch `batch`, for example in a shuffle buffer or in
/// collation. The stages before this point may then number their work by items. Call it in no
/// stage, before the batch is passed on.
/// @param batch, item  if one of them is 2^56 or more, the event is not recorded but counted in
/// dropped(). Errors: none thrown. Thread safety: any thread.
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

LOTUS_DETAIL_NAMESPACE_BEGIN

/// The former name of batch_preprocessed.
using preprocessed_batch [[deprecated("use lotus::batch_preprocessed")]] = batch_preprocessed;

/// Records a wait as batch_wait does; a block of its own may end it, too.
class [[deprecated("use lotus::batch_wait")]] wait_for_batch {
 public:
  /// Begins the wait.
  [[nodiscard]] wait_for_batch() noexcept {
    wait_.begin();
  }

  /// Ends the wait, as that for this batch, without beginning the step.
  [[deprecated("use consumed(), which also begins the step, or LOTUS_BATCH_WAIT")]] void got(
      std::uint64_t batch) noexcept {
    wait_.end(batch);
  }
  /// See batch_wait::consumed().
  void consumed(std::uint64_t batch) noexcept {
    wait_.end(batch);
    batch_consumed(batch);
  }

 private:
  detail::repeated_wait wait_;
};

/// Begins a range that range_pop() ends. Each shared object of the program has its own stack of
/// ranges for each thread. Allocates memory, and throws std::bad_alloc if there is none.
[[deprecated("use lotus::range")]] LOTUS_DETAIL_PER_MODULE void range_push(std::string_view name);

/// Ends the range that this thread pushed last; does nothing if there is none.
[[deprecated("use lotus::range")]] LOTUS_DETAIL_PER_MODULE void range_pop() noexcept;

/// Returns a callable with its name. The name is copied.
template <class F>
[[deprecated("use lotus::operation{name, f}")]] operation<std::decay_t<F>> op(std::string_view name,
                                                                              F&& f) {
  return {name, std::forward<F>(f)};
}

/// Times consecutive parts of a block with one call after each part: `laps lap; decode();
/// lap("Decode"); crop(); lap("Crop");` Each part begins where the previous one ended. At the end
/// of the block "STransform" is recorded for all parts together.
class [[deprecated("use a LOTUS_SCOPE for each part, or lotus::compose")]] laps {
 public:
  laps() noexcept : run_{detail::transform_tag()} {
    run_.nameless();
  }

  /// Records the time since the previous call, or since construction.
  /// @param name  copied, so it must be valid only during this call.
  void operator()(std::string_view name) noexcept {
    if (!detail::is_recording()) return;
    run_.ended(detail::operation_tag(name));
    run_.nameless();
  }

 private:
  detail::operation_run run_;
};

namespace detail {

/// A stage whose number may be known only when the stage ends. If it gets no number, it is recorded
/// as an operation without a number.
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

/// Stands for an argument of the pointer type T: converts to the same pointer types as a T, but not
/// to bool. Used to test whether a callable accepts the pointer without converting it to bool.
template <class T>
struct pointer_only {
  template <class To,
            std::enable_if_t<std::is_pointer_v<To> && std::is_convertible_v<T, To>, int> = 0>
  operator To() const noexcept;
};

/// Whether a callable has only one signature, because it is neither a template nor overloaded.
template <class F, class = void>
inline constexpr bool has_one_signature =
    std::is_function_v<std::remove_pointer_t<F>> && !std::is_member_pointer_v<F>;
template <class F>
inline constexpr bool has_one_signature<F, std::void_t<decltype(&F::operator())>> = true;

/// Whether a projection (a callable that computes a batch number from its arguments) accepts
/// arguments of these types without converting a pointer to bool.
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

/// Whether a value of this type can be null, which means "no more data": a pointer or an optional.
template <class T, class = void>
inline constexpr bool is_nullable = false;
template <class T>
inline constexpr bool is_nullable<T, std::void_t<decltype(static_cast<bool>(std::declval<T&>())),
                                                 decltype(*std::declval<T&>())>> = true;

/// Whether a projection (see is_projection_of()) must be called with the object to which a value of
/// type `Result` points. A projection that is a pointer to member would also accept the pointer
/// itself, but that pointer may be null, so the caller checks it first.
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

/// The callable that staged() returns. It calls the function and records the call as a stage, whose
/// number the projection `Number` computes from the arguments or from the result.
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

/// Computes the number of a stage: the number is the first argument of the call.
struct argument_number {
  template <class Argument, class... Others>
  constexpr auto operator()(const Argument& number, const Others&...) const noexcept
      -> std::enable_if_t<std::is_integral_v<Argument>, Argument> {
    return number;
  }
};

}  // namespace detail

/// Wraps a function that a framework calls, such as a filter of oneTBB or a task of std::async.
/// Each call of the returned callable is recorded as a stage.
/// @param name      copied into a table of names, so it needs to exist only during this call.
/// @param number  callable that returns the number of the batch, item or request, as an integer or
/// an optional integer. The callable is called with the arguments of the function; if it does not
/// accept these, with the function's result; if it does not accept the result either, with the
/// object to which the result (a pointer or an optional) points. Nothing is recorded if the
/// optional integer is empty, or if the result is null, as at the end of the data.
/// @param function  the function to wrap. Exceptions propagate; the time up to an exception is
/// recorded, with the number if it was known before the call.
template <class Number, class Function>
[[nodiscard, deprecated("call lotus::in_stage in the function")]] auto staged(std::string_view name,
                                                                              Number number,
                                                                              Function function) {
  return detail::staged_function<Number, Function>{name, std::move(number), std::move(function)};
}

/// Wraps a function whose first argument is the number; see staged(name, number, function).
template <class Function>
[[nodiscard, deprecated("call lotus::in_stage in the function")]] auto staged(std::string_view name,
                                                                              Function function) {
  return detail::staged_function<detail::argument_number, Function>{name, {}, std::move(function)};
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DEPRECATED_HPP

// Provides all public macros. With LOTUS_DISABLE they record nothing.
#ifndef LOTUS_MACROS_HPP
#define LOTUS_MACROS_HPP

// Provides what controls a profiler that is chosen at run time: class collector, and the classes of
// LOTUS_MAP_REGION, which makes the profiler collect data about one operation.
#ifndef LOTUS_MAP_HPP
#define LOTUS_MAP_HPP

// Passes calls of lotus::collector to the collector: the profiler that observes the program.
#ifndef LOTUS_RECORD_COLLECTOR_CALLS_HPP
#define LOTUS_RECORD_COLLECTOR_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class collector_call { resume, pause, detach };

/// True once this shared object has looked for a collector and found none, and always on systems
/// that lotus does not support. call_collector() need not be called then.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> no_collector{!LOTUS_SUPPORTED};

#if LOTUS_SUPPORTED
/// Passes a call to the collector. The first call determines which profiler that is. Defined in
/// collectors/collector_state.hpp.
LOTUS_DETAIL_RARE void call_collector(collector_call call) noexcept;
#else
inline void call_collector(collector_call) noexcept {}
#endif

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_COLLECTOR_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

class collector_state;

/// Makes the compiler assume that the value is read and written at this point. Then the compiler
/// does not move computations that produce or use the value across this point.
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

/// Controls the profiler under which this program runs, if any: Intel VTune, AMD uProf, perf,
/// callgrind, or the built-in sampler. The environment variable LOTUS_COLLECTOR selects one: auto
/// (the default: the profiler that is present), itt, uprof, perf, callgrind, builtin, none. The
/// profiler always collects for the whole process.
/// Errors: none thrown; if the profiler cannot be used, one message is reported
/// (options::on_message) and the program goes on without it. Thread safety: any thread. Without a
/// profiler each call only loads one variable.
class collector {
 public:
  /// Makes the profiler collect data. Calls may be nested; each needs its own pause().
  LOTUS_DETAIL_ALWAYS_INLINE static void resume() noexcept { call(detail::collector_call::resume); }
  /// Makes the profiler collect no more data, if this call matches the outermost resume().
  LOTUS_DETAIL_ALWAYS_INLINE static void pause() noexcept { call(detail::collector_call::pause); }
  /// Detaches the profiler, which then collects nothing more until the program ends. Later calls of
  /// all three functions do nothing.
  LOTUS_DETAIL_ALWAYS_INLINE static void detach() noexcept { call(detail::collector_call::detach); }

 private:
  LOTUS_DETAIL_ALWAYS_INLINE static void call(detail::collector_call call) noexcept {
    if (!detail::no_collector.load(std::memory_order_relaxed)) detail::call_collector(call);
  }
};

#if LOTUS_SUPPORTED
/// Runs the passes (executions) of the block of a LOTUS_MAP_REGION. The macro declares the object
/// in the head of a `for` statement, so that break, return or an exception in the block ends the
/// pass and pauses the profiler. Errors: none thrown. Thread safety: any thread; each object
/// belongs to one thread. The functions are defined in engine/map_passes.hpp.
class map_region {
 public:
  /// @param name  name of the operation; copied, up to 255 bytes.
  LOTUS_DETAIL_PER_MODULE explicit map_region(std::string_view name) noexcept {
    begin_region(name);
  }
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  LOTUS_DETAIL_PER_MODULE ~map_region() { end_region(); }

  /// Ends the current pass and begins the next one. Returns false after the last pass.
  LOTUS_DETAIL_PER_MODULE bool next() noexcept;

 private:
  // The engine defines these functions. The constructor and the destructor above only call
  // begin_region() and end_region(). If the engine defined a constructor instead, clang would emit
  // only its base-object variant in the file with LOTUS_IMPLEMENTATION, where nothing calls it, and
  // other files could not link.
  LOTUS_DETAIL_PER_MODULE void begin_region(std::string_view name) noexcept;
  LOTUS_DETAIL_PER_MODULE void end_region() noexcept;
  LOTUS_DETAIL_PER_MODULE void begin_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void end_pass() noexcept;
  LOTUS_DETAIL_PER_MODULE void dump_part() noexcept;
  LOTUS_DETAIL_PER_MODULE void list() const noexcept;
  LOTUS_DETAIL_PER_MODULE std::int64_t ns_since(std::uint64_t ticks) const noexcept;
  /// Returns a reference to a thread-local pointer. It points to this thread's innermost region
  /// that is executing a pass after its warm-up; null if there is none.
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
/// The version of this class for systems that lotus does not support: it runs the block of a
/// LOTUS_MAP_REGION once.
class map_region {
 public:
  /// Ignores the name, because no data is collected on a system that lotus does not support.
  explicit map_region(std::string_view) noexcept {}
  map_region(const map_region&) = delete;
  map_region& operator=(const map_region&) = delete;
  /// Returns true in the first call and false in the second, so that the block runs once.
  bool next() noexcept { return !begun_ && (begun_ = true); }

 private:
  bool begun_ = false;
};
#endif

/// A map_region and the variables that its block reads and writes. The class makes the compiler
/// compute these variables within the passes. Otherwise the compiler could move a pure function of
/// local variables out of the block, and the profiler would not see it.
template <class... Values>
class fenced_map_region {
 public:
  /// @param values  variables that the block reads and writes; they must outlive the region.
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

// Provides two kinds of scopes: scope_with_arguments also records the operation's arguments as
// text; aggregated_scope only counts operations and sums up their durations.
#ifndef LOTUS_SCOPE_ARGUMENTS_HPP
#define LOTUS_SCOPE_ARGUMENTS_HPP

#if LOTUS_SUPPORTED
// Begins and ends calls of operations that are counted instead of recorded
// (LOTUS_SCOPE_AGGREGATED).
#ifndef LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CALLS_HPP

// Defines aggregates (the sums of the calls of an operation that is counted instead of recorded),
// their layout in the ring file, and how a call is added.
#ifndef LOTUS_AGGREGATES_AGGREGATES_HPP
#define LOTUS_AGGREGATES_AGGREGATES_HPP

// Defines the header with which each block of a ring file begins (see record/ring_layout.hpp).
#ifndef LOTUS_RECORD_BLOCK_HEADER_HPP
#define LOTUS_RECORD_BLOCK_HEADER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class block_kind : std::uint32_t { none = 0, ring = 1, names = 2, aggregates = 3 };

struct block_header {
  std::atomic<block_kind> kind;  ///< stored last, so that readers see no incomplete block
  std::uint32_t unused;
  std::uint64_t bytes;  ///< size of the block including this header
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_BLOCK_HEADER_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// The durations of calls are counted in buckets, from which percentiles are computed. Each duration
// below 128 ticks has a bucket of its own. Above that, each octave (durations from 2^k to 2^(k+1)
// ticks) is divided into 64 buckets of equal width, so the middle of a bucket differs by at most
// 0.8 % from each duration in it.

inline constexpr unsigned octave_bits = 6;
inline constexpr std::uint32_t octave_buckets = 1U << octave_bits;
inline constexpr std::uint32_t octaves = 64 - octave_bits + 1;

/// Returns the number of the bucket that contains a duration.
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
/// Returns the width of a bucket: how many different durations, in ticks, it contains.
constexpr std::uint64_t bucket_width(std::uint32_t bucket) noexcept {
  const std::uint32_t octave = bucket >> octave_bits;
  return std::uint64_t{1} << (octave == 0 ? 0 : octave - 1);
}

// Aggregates are stored in blocks of memory that consist of chunks. Each pair of a name and a
// loader has one chunk for its sums, and one chunk with the bucket counts of each octave of
// durations that has occurred. A chunk is added when a call first needs it. Only the owning thread
// writes to its blocks.
//
// A thread's last call is stored separately, and is added to its aggregate when the next call ends.
// The reason is speed: the processor finishes a clock reading only after all earlier instructions,
// so an immediate lookup of the duration's bucket would have to wait for that reading.

/// A call that has ended.
struct aggregate_call {
  std::uint64_t key;  ///< key of the call's aggregate: see aggregate_key()
  /// Duration. If the clocks of two processors differ slightly, the value may be negative; then it
  /// counts as 0.
  std::uint64_t ticks;
  std::uint64_t self_ticks;  ///< the part of the duration that was not spent in other scopes
};

constexpr bool is_negative(const aggregate_call& call) noexcept {
  return static_cast<std::int64_t>(call.ticks) < 0;
}

/// Returns the key of the aggregate for a name and a loader, which are given by their ids.
constexpr std::uint64_t aggregate_key(std::uint32_t name, std::uint32_t loader) noexcept {
  return std::uint64_t{loader} << 32 | name;
}

struct last_call {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> ticks;
  std::atomic<std::uint64_t> self_ticks;
  std::atomic<std::uint64_t> number;  ///< number of the call within its thread; stored last
};

struct aggregates_block {
  block_header header;
  std::uint32_t chain;  ///< identifies the thread's blocks: the same number in all of them
  std::atomic<std::uint32_t> threads;  ///< number of threads that used the block, one after another
  std::atomic<std::uint32_t> tid;      ///< id of the latest of these threads
  std::uint32_t unused;
  std::atomic<std::uint64_t> used_bytes;  ///< total size of the chunks
  /// The thread's last call is the element with the greater number; the other element is free for
  /// the next call. Used only in a thread's first block.
  last_call last[2];

  char* chunks() noexcept { return reinterpret_cast<char*>(this + 1); }
  const char* chunks() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  /// Stores a call as the thread's last one. @param number  number of the call, counted from 1.
  LOTUS_DETAIL_ALWAYS_INLINE void append(const aggregate_call& call,
                                         std::uint64_t number) noexcept {
    last_call& to = last[number % 2];
    to.key.store(call.key, std::memory_order_relaxed);
    to.ticks.store(call.ticks, std::memory_order_relaxed);
    to.self_ticks.store(call.self_ticks, std::memory_order_relaxed);
    to.number.store(number, std::memory_order_release);
  }
};

/// Maximum number of aggregates of a thread. Further pairs of a name and a loader share one
/// aggregate.
inline constexpr std::uint32_t max_aggregates = 4096;

enum class chunk_kind : std::uint32_t { none = 0, aggregate = 1, octave = 2 };

struct chunk_header {
  chunk_kind kind;
  std::uint32_t number;  ///< number of the aggregate within its thread
};

/// The sums of an aggregate after one of its calls. Readers see either all of these values or none.
struct aggregate_sums {
  std::atomic<std::uint64_t> total_ticks;
  std::atomic<std::uint64_t> self_ticks;
  /// Bucket of the last call and the bucket's new count, combined by bucket_content().
  std::atomic<std::uint64_t> in_bucket;
  std::atomic<std::uint64_t> call;  ///< number of the last call within its thread
};

/// Combines a bucket's number and new count in one word, so that both change together. The bucket's
/// own counter is updated a moment later.
inline constexpr unsigned bucket_bits = 12;
constexpr std::uint64_t bucket_content(std::uint32_t bucket, std::uint64_t count) noexcept {
  return count << bucket_bits | bucket;
}

struct stored_aggregate {
  chunk_header header;
  std::uint64_t key;
  /// Number of calls. sums[count % 2] contains their sums; the other element is written while
  /// another call is added.
  std::atomic<std::uint64_t> count;
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

/// Where an aggregate is stored in the memory of this process.
struct local_aggregate {
  std::uint64_t key;
  stored_aggregate* stored;
  /// The bucket counts of each octave (durations from 2^k to 2^(k+1) ticks); null until a call has
  /// such a duration.
  std::atomic<std::uint64_t>* octave_counts[octaves];
};

struct aggregate_memory;

/// The aggregates of one thread. Only the owning thread uses this object, except for `memory`. The
/// pointer to the thread's first block is in its ring_gate (record/thread_ring.hpp).
struct thread_aggregates {
  const local_aggregate* last_to = nullptr;  ///< aggregate to which the last call will be added
  /// Number of this thread's calls that have ended. The latest of them is not part of the sums yet:
  /// it is stored in aggregates_block::last[calls % 2] of the thread's first block.
  std::uint64_t calls = 0;
  /// Hash table of the aggregates by key; it always has a free slot.
  local_aggregate** table = nullptr;
  std::uint64_t mask = 0;  ///< size of the hash table minus 1
  /// Stack pointer of the thread while it adds a call, otherwise 0. Signal handlers check it,
  /// because they must not add a call to the same sums meanwhile; see thread_ring::storing.
  std::atomic<std::uintptr_t> storing{0};
  std::uint32_t interrupting = 0;  ///< number of entries in interrupting_calls
  /// Ticks spent in other scopes inside the innermost aggregated scope that is open. The bit
  /// `recorded_inside` is also set if a span has begun or ended in that scope; then the scope's
  /// self time counts as 0.
  std::uint64_t inner_ticks = 0;
  /// Self time, in ticks, of counted calls that no record reports yet. The next span that begins or
  /// ends reports it, so that lotus-tool can subtract it from the self time of the enclosing
  /// operation.
  std::uint64_t unreported_ticks = 0;
  /// Memory of the aggregates; protected by producer::guard.
  aggregate_memory* memory = nullptr;
  /// Id of the name in the record that reports unreported_ticks: the name of the latest call that
  /// aggregate_memory::take() added.
  std::uint32_t reported_name = 0;
  /// Calls that ended in signal handlers while the thread was adding another call. They are added
  /// after that call.
  static constexpr std::uint32_t max_interrupting = 16;
  aggregate_call interrupting_calls[max_interrupting];

  static constexpr std::uint64_t recorded_inside = std::uint64_t{1} << 63;

  /// Returns the index in `table` at which the search for a key begins.
  static constexpr std::size_t home_of(std::uint64_t key, std::uint64_t mask) noexcept {
    return (key ^ key >> 32) & mask;
  }

  /// Adds the thread's last call, which was stored separately, to its aggregate. Returns false if
  /// memory for its bucket must be allocated first.
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
    const std::uint64_t stored_count = stored.count.load(relaxed);
    const aggregate_sums& before = stored.sums[stored_count % 2];
    aggregate_sums& next = stored.sums[~stored_count % 2];
    const std::uint64_t in_bucket = count.load(relaxed) + 1;
    next.total_ticks.store(before.total_ticks.load(relaxed) + ticks, relaxed);
    next.self_ticks.store(before.self_ticks.load(relaxed) + call.self_ticks.load(relaxed), relaxed);
    next.in_bucket.store(bucket_content(bucket, in_bucket), relaxed);
    next.call.store(number, relaxed);
    // From this store on, readers use the sums that include the last call. A reader that still sees
    // the old count adds the last call itself. The bucket's own counter is updated last, but
    // readers use the new count in `in_bucket`.
    stored.count.store(stored_count + 1, std::memory_order_release);
    count.store(in_bucket, std::memory_order_release);
    return true;
  }

  /// Returns the aggregate with this key; null if there is none yet.
  LOTUS_DETAIL_ALWAYS_INLINE const local_aggregate* find(std::uint64_t key) const noexcept {
    for (std::size_t place = home_of(key, mask);; place = (place + 1) & mask) {
      const local_aggregate* const found = table[place];
      if (found == nullptr || LOTUS_DETAIL_LIKELY(found->key == key)) return found;
    }
  }

  /// Called when a span begins or ends. Returns the self time of counted calls that no record
  /// reports yet, and resets it to 0.
  /// @param tag  set to the tag of the record with which the caller must report that time.
  std::uint64_t tell(record_tag& tag) noexcept {
    // If this is a signal handler that interrupted the adding of a call, a later span reports the
    // time.
    if (storing.load(std::memory_order_relaxed) != 0) return 0;
    inner_ticks |= recorded_inside;
    const std::uint64_t own_ticks = unreported_ticks;
    unreported_ticks = 0;
    tag = {event_kind::aggregated, reported_name, number_not_in_tag};
    return static_cast<std::int64_t>(own_ticks) > 0 ? own_ticks : 0;
  }

  /// Undoes the addition of a call that was never completed, because a signal handler interrupted
  /// take() and exited by siglongjmp.
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
    const std::uint64_t stored_count = stored.count.load(relaxed);
    const aggregate_sums& sums = stored.sums[stored_count % 2];
    if (stored_count == 0 || sums.call.load(relaxed) != calls) return;
    // The last call is in the sums already, but the next call would add it again, so it is removed
    // here. Readers take the bucket's count from the sums until `count` is reduced.
    const std::uint64_t in_bucket = sums.in_bucket.load(relaxed);
    const std::uint64_t bucket = in_bucket & ((std::uint64_t{1} << bucket_bits) - 1);
    to->octave_counts[bucket >> octave_bits][bucket % octave_buckets].store(
        (in_bucket >> bucket_bits) - 1, std::memory_order_release);
    stored.count.store(stored_count - 1, std::memory_order_release);
  }

  /// Adds a call. After this function returns, every reader sees the call, even if the process is
  /// killed. Returns false if memory must first be allocated for this call, or for the previous
  /// one, which becomes part of the sums only now.
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
    unreported_ticks += call.self_ticks;
    return true;
  }
};

/// The part of a thread's state with which it counts calls and stores records.
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

/// Requests a record with the self time of this thread's counted calls since the last such record.
/// The thread stores the record when it next begins or ends a span.
LOTUS_DETAIL_RARE void mark_watch() noexcept;
/// Adds calls that aggregate() cannot add directly: a thread's first call, a call that needs memory
/// for a new name or range of durations, and calls in a signal handler that interrupted
/// aggregate().
/// @param taken  whether aggregate() has already added `call`. If so, this function adds only the
///   calls that ended in signal handlers while aggregate() was running.
LOTUS_DETAIL_RARE void aggregate_slow(aggregate_call call, bool taken) noexcept;

/// Begins a call of an operation that is counted. Returns a value that the caller must pass to
/// aggregate() when the call ends.
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t begin_aggregated() noexcept {
  if (LOTUS_DETAIL_UNLIKELY(this_cpu_watch.may_be_marked())) mark_watch();
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) return 0;
  const std::uint64_t outer_ticks = aggregates_of(*p).inner_ticks;
  aggregates_of(*p).inner_ticks = 0;
  return outer_ticks;
}

/// Ends a call of an operation that is counted, and adds the call to the sums of that operation.
/// After this function returns, every reader sees the call, even if the process is killed.
/// @param outer_ticks  the result of begin_aggregated().
/// Errors: none thrown. Thread and signal safety: any thread and signal handler. Cost: see
/// bench/scope_bench.cpp.
LOTUS_DETAIL_ALWAYS_INLINE void aggregate(std::uint64_t begin_ticks, std::uint64_t end_ticks,
                                          record_tag tag, std::uint64_t outer_ticks) noexcept {
  const auto name = static_cast<std::uint32_t>(tag.value());
  const std::uint64_t ticks = end_ticks - begin_ticks;
  thread_ring* const p = this_ring;
  if (LOTUS_DETAIL_UNLIKELY(p == nullptr)) {
    return aggregate_slow({aggregate_key(name, 0), ticks, ticks}, false);
  }
  thread_aggregates& a = aggregates_of(*p);
  const std::uint64_t inner_ticks = a.inner_ticks;
  a.inner_ticks = outer_ticks + ticks;
  // The sign bit of inner_ticks (recorded_inside) is set if a span began or ended inside this call.
  // A span, unlike a counted call, has a record of its own.
  if (LOTUS_DETAIL_UNLIKELY(static_cast<std::int64_t>(inner_ticks) < 0)) {
    a.inner_ticks |= thread_aggregates::recorded_inside;
    mark_watch();
  }
  const aggregate_call call{aggregate_key(name, p->loader), ticks,
                            ticks > inner_ticks ? ticks - inner_ticks : 0};
  if (LOTUS_DETAIL_UNLIKELY(a.storing.load(std::memory_order_relaxed) != 0)) {
    return aggregate_slow(call, false);
  }
  // While `storing` is set, a signal handler that interrupts this function takes the slow path, so
  // it does not change the sums that this function is changing.
  a.storing.store(stack_pointer(), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool taken = a.take(gate_of(*p).aggregates.load(std::memory_order_acquire), call);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  a.storing.store(0, std::memory_order_relaxed);
  // A handler that has seen `storing` set relies on the following check for its own calls.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (LOTUS_DETAIL_UNLIKELY(!taken || a.interrupting != 0)) aggregate_slow(call, taken);
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

/// Formats an operation's arguments as text, such as "[3, 224, 224], bilinear". Text longer than
/// max_bytes is cut and ends in "...".
class LOTUS_DETAIL_PER_MODULE arguments_text {
 public:
  static constexpr std::size_t max_bytes = 120;

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
  /// Appends text; cuts the text if the buffer is full.
  /// @param kept_free  number of bytes at the end of the buffer that stay free for the final "...".
  LOTUS_DETAIL_PER_MODULE void add_raw(std::string_view text, std::size_t kept_free = 3) noexcept;

  char text_[max_bytes];
  std::size_t bytes_ = 0;
  bool cut_ = false;
};

}  // namespace detail

/// A scope that also records the operation's arguments; see LOTUS_SCOPE_ARGS. Errors: none thrown.
/// Thread safety: any thread; each scope object belongs to one thread. Cost: that of two scopes,
/// plus formatting the text and looking it up in a table.
class scope_with_arguments : detail::span {
 public:
  /// @param arguments  texts, numbers, enumerators, and sequences of these. They are read only
  /// while this process is recording, and formatted as a text of at most 120 bytes. Every distinct
  /// text stays in memory until the process exits.
  template <class Here, bool Fixed, class... Arguments>
  explicit scope_with_arguments(const detail::place<Here, Fixed>& place,
                                const Arguments&... arguments) noexcept
      : span{[&place] { return place.tag(); }} {
    if (tag().empty()) return;
    const detail::arguments_text text{arguments...};
    arguments_ = {detail::event_kind::arguments, detail::operation_tag(text.text()).value()};
  }
  ~scope_with_arguments() {
    if (!arguments_.empty()) record_before(arguments_, 0);
  }

 private:
  detail::record_tag arguments_;
};

/// A scope that adds the operation to statistics instead of recording it: how often the operation
/// ran, its total time and the distribution of its durations; see LOTUS_SCOPE_AGGREGATED. Errors:
/// none thrown. Thread safety: any thread; each scope object belongs to one thread.
class aggregated_scope {
 public:
  /// @param place  holds the name, which needs to exist only during this call.
  template <class Here, bool Fixed>
  LOTUS_DETAIL_ALWAYS_INLINE explicit aggregated_scope(
      const detail::place<Here, Fixed>& place) noexcept {
    const detail::recording mode = detail::recording_mode();
    if (mode == detail::recording::off) return;
    tag_ = LOTUS_DETAIL_LIKELY(mode == detail::recording::on) ? place.tag() : slow_tag(place);
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
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static detail::record_tag slow_tag(
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

  /// Returns the tag that this scope passes to begin_annotation() and end_annotation(). By the
  /// tag's kind, `aggregated`, the session recognizes that the operation has no record of its own,
  /// and attributes the operation's heap allocations to the enclosing operation.
  static detail::record_tag annotation_of(detail::record_tag tag) noexcept {
    return {detail::event_kind::aggregated, static_cast<std::uint32_t>(tag.value()),
            detail::number_not_in_tag};
  }

  detail::record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
  std::uint64_t outer_ticks_ = 0;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_ARGUMENTS_HPP

// Creates a unique variable name, so that the program can have two scopes on one line or in one
// macro.
#if defined(__COUNTER__)
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __COUNTER__)
#else
  #define LOTUS_DETAIL_UNIQUE(name) LOTUS_DETAIL_CONCAT(name, __LINE__)
#endif

// With -Wpedantic, clang 22 warns about __COUNTER__ in the user's code, where the macros are
// expanded. So the warning stays off after this header. A pragma inside the macros would take
// effect too late if a scope is used in an argument of another macro, such as an assertion.
#if defined(__clang__)
  #if __has_warning("-Wc2y-extensions")
    #pragma clang diagnostic ignored "-Wc2y-extensions"
  #endif
#endif

// Each scope macro expands to one declaration, so it can follow `if (c)` without braces; each event
// macro expands to one expression. With LOTUS_DISABLE, arguments are type-checked but not
// evaluated.
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
  #define LOTUS_DETAIL_SITE(literal)                                                      \
    []() noexcept {                                                                       \
      static_assert(                                                                      \
          ::lotus::detail::is_literal(#literal),                                          \
          "LOTUS_SCOPE takes a string literal; for other names use LOTUS_SCOPE_DYNAMIC"); \
      struct lotus_here {                                                                 \
        static constexpr ::std::string_view name() noexcept { return literal; }           \
      };                                                                                  \
      return ::lotus::detail::place<lotus_here, true>{lotus_here::name()};                \
    }()
  // #name is the argument as it is written in the source, which shows whether it is a string
  // literal.
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

/// Records the time from here to the end of the block as the operation "S<name>". The name must be
/// a string literal.
#define LOTUS_SCOPE(name) LOTUS_DETAIL_SCOPE(scope, LOTUS_DETAIL_SITE(name))
/// Works like LOTUS_SCOPE; the name may be anything convertible to std::string_view.
#define LOTUS_SCOPE_DYNAMIC(name) LOTUS_DETAIL_SCOPE(scope, ::std::string_view{name})

/// Works like LOTUS_SCOPE and also records the operation's arguments as text, for example
/// LOTUS_SCOPE_ARGS("Resize", image.shape()); see lotus::scope_with_arguments. The name is a
/// literal or anything convertible to std::string_view.
#define LOTUS_SCOPE_ARGS(name, ...) \
  LOTUS_DETAIL_SCOPE_WITH(scope_with_arguments, LOTUS_DETAIL_PLACE(name), __VA_ARGS__)

/// Counts the operation and sums up its durations, instead of recording each execution. Use it for
/// operations that take about a microsecond; see lotus::aggregated_scope. The name is a literal or
/// anything convertible to std::string_view.
#define LOTUS_SCOPE_AGGREGATED(name) LOTUS_DETAIL_SCOPE(aggregated_scope, LOTUS_DETAIL_PLACE(name))

/// Records the building of batch `i` up to the end of the block; see lotus::batch_preprocessed.
#define LOTUS_BATCH_PREPROCESSED(i) \
  LOTUS_DETAIL_SCOPE(batch_preprocessed, static_cast<::std::uint64_t>(i))
/// Records the consumer's wait for batch `i`, up to the end of the block; see lotus::batch_wait.
#define LOTUS_BATCH_WAIT(i) LOTUS_DETAIL_SCOPE(batch_wait, static_cast<::std::uint64_t>(i))
/// Records that batch `i` arrived out of order and was buffered; see lotus::batch_arrived.
#define LOTUS_BATCH_ARRIVED(i) LOTUS_DETAIL_EVENT(batch_arrived, static_cast<::std::uint64_t>(i))
/// Records that the consumer received batch `i` and begins its step; see lotus::batch_consumed.
#define LOTUS_BATCH_CONSUMED(i) LOTUS_DETAIL_EVENT(batch_consumed, static_cast<::std::uint64_t>(i))
/// Records that batch `i` was dispatched to a worker; see lotus::batch_queued.
#define LOTUS_BATCH_QUEUED(i) LOTUS_DETAIL_EVENT(batch_queued, static_cast<::std::uint64_t>(i))

/// Records that this thread works on batch, item or request `i` in the stage `name`, up to the end
/// of the block; see lotus::stage. The name is a literal or anything convertible to
/// std::string_view.
#define LOTUS_STAGE(name, i) \
  LOTUS_DETAIL_SCOPE_OF_TWO(stage, LOTUS_DETAIL_PLACE(name), static_cast<::std::uint64_t>(i))
/// Records that item `item` becomes part of batch `batch`; see lotus::batch_takes.
#define LOTUS_BATCH_TAKES(batch, item)                                        \
  LOTUS_DETAIL_EVENT_OF_TWO(batch_takes, static_cast<::std::uint64_t>(batch), \
                            static_cast<::std::uint64_t>(item))
/// Assigns this thread's records to the loader `name` until the end of the block; see loader_scope.
#define LOTUS_LOADER(name) LOTUS_DETAIL_SCOPE(loader_scope, ::std::string_view{name})
/// Sets the counter `name` (a literal or anything convertible to std::string_view) to `n`.
#define LOTUS_COUNTER(name, n) \
  LOTUS_DETAIL_EVENT_OF_TWO(counter, LOTUS_DETAIL_PLACE(name), static_cast<::std::int64_t>(n))

/// Resumes the profiler under which this program runs, if any; see lotus::collector.
#define LOTUS_RESUME() LOTUS_DETAIL_COLLECTOR(resume)
/// Pauses the profiler. Each LOTUS_RESUME() needs one LOTUS_PAUSE().
#define LOTUS_PAUSE() LOTUS_DETAIL_COLLECTOR(pause)
/// Detaches the profiler, which then collects nothing more until the program ends.
#define LOTUS_DETACH() LOTUS_DETAIL_COLLECTOR(detach)

/// Runs a block so that a profiler collects data only about this block:
///
///   LOTUS_MAP_REGION("Crop", in, out) { out = crop(in); }
///
/// The block should contain one operation. With a profiler, the block first runs LOTUS_MAP_WARMUP
/// times (an environment variable; default: 4) to warm up, and then LOTUS_MAP_PASSES times
/// (default: 1) while the profiler collects data; lotus also records these passes as an operation.
/// Without a profiler, the block runs once. If the variable LOTUS_MAP_OP is set, the profiler
/// collects data only in the region of that name. After the name, list the variables that the block
/// reads and writes, so that the compiler does not move computations with them out of the block.
// While the block runs, a thread-local variable contains the address of the region object. clang's
// analyzer does not see that the address is removed at the end, and would report an escaping stack
// address.
// NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
#define LOTUS_MAP_REGION(...) LOTUS_DETAIL_REGION(LOTUS_DETAIL_UNIQUE(lotus_region_), __VA_ARGS__)

#endif  // LOTUS_MACROS_HPP

// Provides the functions that start and stop recording, and that control a running recording.
#ifndef LOTUS_SESSION_HPP
#define LOTUS_SESSION_HPP

#if LOTUS_SUPPORTED
#else
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN

/// Starts recording. From then on all scopes that end are recorded: on every thread, in all shared
/// objects of this process, and in the processes that it forks. Takes at most 5 ms; the recovery of
/// records that dead processes left may continue in the background.
/// @return true if the process is now recording with the log_file of `chosen`, even if an earlier
/// call started the recording. false if it is not, for example because the directory cannot be
/// written; a message reports the reason, and the program can continue without being recorded.
/// Thread safety: any thread may call all functions in this file.
inline bool start(const options& chosen = {}) noexcept {
  return detail::join_session(false).start(chosen);
}

/// Starts recording to `<log_file>_main_pid_<N>` and `<log_file>_worker_pid_<N>`, with default
/// options; see start(options). Throws std::bad_alloc if there is no memory for a copy of the text.
inline bool start(std::string_view log_file) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen);
}

/// Starts recording according to a schedule, at step 0. Only active steps are recorded. Each range
/// of consecutive active steps gets a run directory of its own, `steps_<first>_<last>`, in the
/// directory of `log_file`. That run directory contains all spans that begin and end within the
/// range. A process forked within the range records to the same directory until it calls step()
/// itself.
/// @return false, after one message with the reason, if the schedule has no active steps, or if
/// step 0 is active and start(options) would return false. Both structs are copied; copies share
/// the function of on_trace_ready, which is never destroyed.
inline bool start(const options& chosen, const schedule& steps) {
  steps.on_trace_ready.keep();
  return detail::join_session(false).start_steps(chosen, steps);
}

/// Starts recording according to a schedule, with default options except for `log_file`.
inline bool start(std::string_view log_file, const schedule& steps) {
  options chosen;
  chosen.log_file = log_file;
  return start(chosen, steps);
}

/// Ends the current step of the schedule and begins the next one; does nothing without a schedule.
/// At the end of a range of active steps, writes all records and calls on_trace_ready, whose
/// exceptions propagate. Thread safety: any thread; the calls of all threads are counted together.
inline void step() {
  detail::step_notice notice;
  if (detail::join_session(true).step(notice)) notice.listener(notice.folder);
}

/// Writes all records that have been stored so far to the logs, on the calling thread, and waits
/// for the disk as write(2) does. A program need not call this function before it exits. Errors:
/// none thrown; if the disk is full, records stay in memory, after a message.
inline void flush() noexcept {
  detail::join_session(true).flush();
}

/// Copies the records so far to a new run directory, `<run>.snapshot-<UTC>-<reason>`, next to the
/// directory of the run. The copy contains all records that this process has stored, and those
/// records of the run's other processes that are in their logs. No recording thread has to wait. If
/// the total size of the snapshots exceeds options::snapshots_bytes, the oldest ones are deleted.
/// @param reason  part of the directory's name: letters, digits, '.', '-' and '_'; other characters
/// become '-'. Only the first 64 bytes are used.
/// @return false, after a message with the reason, if nothing is being recorded, if the disk has no
/// room, or if another snapshot is being taken.
inline bool snapshot(std::string_view reason) noexcept {
  return detail::join_session(true).snapshot(reason.data(), reason.size());
}

/// Ends recording and writes all records to the logs. Scopes that are still open are not recorded.
/// If active steps of a schedule are being recorded, calls on_trace_ready, whose exceptions
/// propagate. Does nothing if nothing is being recorded. After this call, start() may be called
/// again.
inline void stop() {
  detail::step_notice notice;
  if (detail::join_session(false).stop(notice)) notice.listener(notice.folder);
}

/// Returns how many records this process has lost: because the program chose full_ring::drop,
/// because neither the disk nor memory could hold them, because a batch number was 2^56 or more, or
/// because more signal handlers interrupted one aggregated call than can be kept until it ends.
inline std::uint64_t dropped() noexcept {
  return detail::join_session(true).dropped();
}

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_HPP

#endif  // LOTUS_LOTUS_HPP

// The engine is included outside the include guard, because another header may have included this
// file before LOTUS_IMPLEMENTATION was defined.
#if !defined(LOTUS_COMPILED) || defined(LOTUS_IMPLEMENTATION) || LOTUS_DETAIL_DISABLED
// Includes the implementation of the API. A header-only program compiles the implementation in each
// file; a program with LOTUS_COMPILED compiles it only in the file that defines
// LOTUS_IMPLEMENTATION.
#ifndef LOTUS_ENGINE_ENGINE_HPP
#define LOTUS_ENGINE_ENGINE_HPP

// Defines the slow paths of scopes, batches and ranges: functions that are called only in rare
// cases.
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
  // The tag is not cached if there was no memory for the name, because there may be memory later.
  if (tag.value() != unnamed_id) tag_.store(tag, std::memory_order_relaxed);
  return tag;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::record_before(record_tag event,
                                                             std::uint64_t word) const noexcept {
  if (is_recording()) push(begin_ticks_, word, event);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::report_crossed_threads(record_tag tag) noexcept {
  join_session(true).crossed_threads(tag);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void span::end_annotated(std::uint64_t begin_ticks,
                                                             std::uint64_t end_ticks,
                                                             record_tag tag) noexcept {
  end_annotation(begin_ticks, tag);
  push(begin_ticks, end_ticks, tag);
}

/// Whether a measured_span with this tag is shown on other profilers' timelines.
inline bool has_task(record_tag tag) noexcept {
  return tag.kind() == event_kind::async_segment || tag.kind() == event_kind::batch_preprocessed ||
         tag.kind() == event_kind::batch_wait;
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM bool measured_span::begin_slow(record_tag tag) noexcept {
  if (!is_recording()) return false;
  if (recording_mode() != recording::annotated) return true;
  const services& session = join_session(true);
  has_task(tag) ? session.begin_task(tag) : session.begin_heap(tag);
  return true;
}
LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void measured_span::end_slow(std::uint64_t begin_ticks,
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
  constexpr std::size_t max_digits = 9;
  std::uint32_t number = 0;
  std::uint32_t unit = 1;
  std::size_t digits = 0;
  for (std::size_t i = name.size(); i-- > 0 && digits < max_digits; ++digits, unit *= 10) {
    if (name[i] < '0' || name[i] > '9') break;
    number += unit * static_cast<std::uint32_t>(name[i] - '0');
  }
  const std::size_t text = name.size() - digits;
  const bool split = digits > 0 && text > 0 && (digits == 1 || name[text] != '0') &&
                     (name[text - 1] < '0' || name[text - 1] > '9');
  const record_tag of = operation_tag(split ? name.substr(0, text) : name);
  return {event_kind::range, static_cast<std::uint32_t>(of.value()),
          split ? number : number_not_in_tag};
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
    // The text is cut earlier if it would otherwise end inside a UTF-8 character.
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
// Provides the process's collector (the profiler that LOTUS_RESUME() controls), which all shared
// objects of the process share.
#ifndef LOTUS_COLLECTORS_COLLECTOR_STATE_HPP
#define LOTUS_COLLECTORS_COLLECTOR_STATE_HPP

#include <unistd.h>

// Lists all environment variables of lotus in one table, and provides the functions that read them.
#ifndef LOTUS_BASE_ENVIRONMENT_HPP
#define LOTUS_BASE_ENVIRONMENT_HPP

#include <stdlib.h>
#include <string.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The environment variables of lotus, in the same order as in environment_table.
enum class variable : std::uint8_t {
  log_file,
  format,
  keep_bytes,
  wait_samples_per_s,
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
  text,    ///< any text; the code that uses the variable checks it
  number,  ///< a whole decimal number
  word,    ///< one of the words in `values`; the first of them is the default
  words,   ///< any number of the words in `values`, separated by commas
};

struct variable_row {
  const char* name;
  variable_type type;
  /// Possible values, as shown to users. If the values are words: all words, separated by '|'.
  const char* values;
  /// The value that applies if the variable is unset, empty or invalid, as shown to users.
  const char* otherwise;
  const char* meaning;           ///< meaning of the variable, as shown to users
  std::uint64_t least = 0;       ///< minimum of a number
  std::uint64_t most = 0;        ///< maximum of a number
  std::uint64_t by_default = 0;  ///< default of a number
};

/// The list of all collectors, in the order in which LOTUS_COLLECTOR=auto looks for them. Expands
/// to WITH(NAME) for each collector. The library calls the functions NAME_is_here() and
/// NAME_backend(); lotus-tool can start a program under each collector.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the names are also joined to one string literal
#define LOTUS_DETAIL_COLLECTORS(WITH) WITH(callgrind) WITH(perf) WITH(itt) WITH(uprof) WITH(builtin)

enum class collector_id : std::uint8_t {
#define LOTUS_DETAIL_ID(name) name,
  LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_ID)
#undef LOTUS_DETAIL_ID
};

inline constexpr const char* collector_names[] = {
#define LOTUS_DETAIL_NAME(name) #name,
    LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_NAME)
#undef LOTUS_DETAIL_NAME
};

#define LOTUS_DETAIL_WORD(name) #name "|"
/// The table of all variables, which `lotus-tool help environment` prints. An empty variable counts
/// as unset, so that VARIABLE= in front of a command cancels an exported variable.
inline constexpr variable_row environment_table[] = {
    {"LOTUS_LOG_FILE", variable_type::text, "DIRECTORY/PREFIX", "none",
     "folder of the logs and beginning of their names; starts the recording; not used if the "
     "program calls lotus::start()"},
    {"LOTUS_FORMAT", variable_type::word, "text|compact", "text; with a limit: compact",
     "format of the logs; overrides options::format, unless the program chose compact (binary) and "
     "this is text"},
    {"LOTUS_KEEP_BYTES", variable_type::number, "bytes", "0",
     "keep only the newest records, so that all logs in the folder have about this size; 0: keep "
     "all",
     0, UINT64_MAX, 0},
    {"LOTUS_WAIT_SAMPLES_PER_S", variable_type::number, "samples a second", "100",
     "how often to check what a thread waits for; 0: never", 0, 10'000, 100},
    {"LOTUS_RANK", variable_type::number, "number",
     "the first that is set of RANK, OMPI_COMM_WORLD_RANK and SLURM_PROCID",
     "the rank of this process in a distributed job", 0, UINT32_MAX, 0},
    {"LOTUS_ANNOTATE", variable_type::words, "itt|nvtx|torch", "none",
     "profilers that also get the recorded operations: VTune (itt), Nsight (nvtx), PyTorch's "
     "profiler (torch); several are separated by commas"},
    {"LOTUS_COLLECTOR", variable_type::word,
     "auto|" LOTUS_DETAIL_COLLECTORS(LOTUS_DETAIL_WORD) "none", "auto; if invalid: none",
     "profiler that samples LOTUS_MAP_REGION blocks; auto: the one under which the program runs; "
     "builtin: that of Lotus itself"},
    {"LOTUS_COLLECTOR_TIMEOUT_MS", variable_type::number, "milliseconds", "2000",
     "maximum time to wait for an answer of the profiler", 1, 3'599'999, 2000},
    {"LOTUS_PERF_CONTROL", variable_type::text, "fifo:CTL,ACK or fd:CTL,ACK", "not used",
     "if the program was started by 'perf record': the value of its option --control"},
    {"LOTUS_MAP_OP", variable_type::text, "name", "all regions",
     "name of the only LOTUS_MAP_REGION to sample"},
    {"LOTUS_MAP_WARMUP", variable_type::number, "number", "4",
     "number of executions of a LOTUS_MAP_REGION block before sampling", 0, 1'000'000'000, 4},
    {"LOTUS_MAP_PASSES", variable_type::number, "number", "1",
     "number of executions of a LOTUS_MAP_REGION block that are sampled", 1, 1'000'000'000, 1},
    {"LOTUS_MAP_SLEEP_MS", variable_type::number, "milliseconds", "1000",
     "how long the program sleeps so that VTune or uProf can begin to sample", 0, 1'000'000'000,
     1000},
    {"LOTUS_MAP_RATE", variable_type::number, "samples a second", "1000",
     "sampling rate of the profilers builtin and perf", 1, 1'000'000, 1000},
    {"LOTUS_MAP_FOLDER", variable_type::text, "folder", "next to the logs",
     "folder for the samples of the profiler builtin"},
    {"LOTUS_MAP_LIST", variable_type::text, "file", "not written",
     "file to which the program adds the names of its LOTUS_MAP_REGION blocks; set by "
     "'lotus-tool map run'"},
    {"LOTUS_RUN_LIST", variable_type::text, "file", "not written",
     "file to which the program adds the paths of its logs; set by 'lotus-tool run'"},
};
#undef LOTUS_DETAIL_WORD
inline constexpr std::size_t environment_variables =
    sizeof(environment_table) / sizeof(environment_table[0]);
static_assert(static_cast<std::size_t>(variable::run_list) + 1 == environment_variables,
              "a row for each variable, in the same order");

constexpr const variable_row& row_of(variable which) noexcept {
  return environment_table[static_cast<std::size_t>(which)];
}

/// Returns the variable's value, or null if it is unset or empty.
inline const char* environment_text(variable which) noexcept {
  const char* text = secure_getenv(row_of(which).name);
  // The name of version 0.2, for one release.
  if (text == nullptr && which == variable::wait_samples_per_s) {
    text = secure_getenv("LOTUS_WAIT_SAMPLES");
  }
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// Function that reports the invalid value of a variable.
/// @param bad  the whole value, or the word of the value that is invalid.
using report_variable = void (*)(const variable_row& row, std::string_view bad) noexcept;

/// Variables whose invalid value this shared object has already reported, one bit for each.
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

/// Parses a decimal number that makes up the whole text. Returns false if the text is not such a
/// number, or if the number is too large.
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

/// Returns whether the variable holds a number between its minimum and its maximum.
/// @param value  set to that number, otherwise to the default.
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

/// Returns the index of a word among the possible values of a variable, or -1 if the word is not
/// one of them.
inline int place_of_word(const variable_row& row, std::string_view word) noexcept {
  std::string_view left = row.values;
  for (int place = 0;; ++place) {
    const std::size_t end = left.find('|');
    if (left.substr(0, end) == word) return place;
    if (end == std::string_view::npos) return -1;
    left.remove_prefix(end + 1);
  }
}

/// Returns the index of the variable's value among its possible values: 0 if the variable is unset,
/// `unknown` if the value is not one of them.
inline std::size_t environment_word(variable which, std::size_t unknown,
                                    report_variable report) noexcept {
  const char* const text = environment_text(which);
  if (text == nullptr) return 0;
  const int place = place_of_word(row_of(which), text);
  if (place >= 0) return static_cast<std::size_t>(place);
  report_once(which, text, report);
  return unknown;
}

/// Returns the words in the variable's value as a bit set: bit i stands for word i in the `values`
/// of the variable's row. Reports unknown words.
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

// Registers fork handlers, and keeps the process from forking while a thread lists its shared
// objects with the help of the dynamic loader.
#ifndef LOTUS_BASE_FORK_HPP
#define LOTUS_BASE_FORK_HPP

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

// Provides locks, and objects that block signals or cancellation while they exist. Used together,
// they keep signal handlers and forked children from waiting forever for a lock.
#ifndef LOTUS_BASE_LOCK_HPP
#define LOTUS_BASE_LOCK_HPP

#include <time.h>

#include <cerrno>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Disables cancellation of this thread (pthread_cancel(3)) while the object exists, and restores
/// errno at its end. Every system call of a scope is made while such an object exists. So a scope
/// does not change an errno that the program is about to read, and is no cancellation point.
class uncanceled {
 public:
  uncanceled() noexcept : errno_{errno} {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~uncanceled() {
    pthread_setcancelstate(before_, nullptr);
    errno = errno_;
  }
  uncanceled(const uncanceled&) = delete;
  uncanceled& operator=(const uncanceled&) = delete;

 private:
  int errno_;
  int before_ = 0;
};

/// Blocks all signals for this thread while the object exists. Like `uncanceled`, also disables
/// cancellation of the thread, and restores errno at the end. Every slow path uses such an object,
/// so a signal handler never needs a lock that its own thread holds. Takes two system calls.
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
  uncanceled quiet_;
  sigset_t before_;
};

/// A mutex with a trivial destructor, because the memory that contains it is never destroyed.
class mutex {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }
  bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  /// Like lock(), but returns false if another thread holds the mutex for a whole second.
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

/// Lazy lookup: the first caller looks up a value for all callers. A caller that could wait forever
/// gets the value `meanwhile` instead, so there is no deadlock. There are two such cases. The
/// lookup may load a library whose code requests the value on the same thread. Or the process may
/// fork during the lookup; then the child has no thread that completes the lookup. Trivially
/// destructible. Thread safety: any thread may call all functions.
template <class T>
class lazy_lookup {
 public:
  /// Returns the value. A caller waits for a lookup on another thread, but for at most a second.
  /// Without this limit there could be a deadlock: the lookup may load a library, and the waiting
  /// thread may hold the dynamic loader's lock because it runs a static constructor.
  template <class Find>
  T get(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.lock_within_a_second()) return meanwhile;
    return find_locked(find);
  }

  /// Like get(), but does not wait if another thread is looking up the value: returns `meanwhile`
  /// instead.
  template <class Find>
  T get_at_once(Find&& find, T meanwhile) noexcept {
    if (found_.load(std::memory_order_acquire)) return value_;
    if (is_finder_or_forked() || !mutex_.try_lock()) return meanwhile;
    return find_locked(find);
  }

  /// Returns the value if it has been found, otherwise `meanwhile`. Never waits.
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
  /// Id of the process that is looking up the value or has found it; 0 before the first lookup.
  std::atomic<pid_t> finder_{0};
  std::atomic<pthread_t> finder_thread_{};
  mutex mutex_;
  T value_{};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_LOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// State of the fork handlers of one shared object. If another thread held a lock during a fork,
/// that lock would stay locked in the child forever. So the fork handlers take all locks before a
/// fork and release them after it. Trivially destructible.
struct at_forks {
  /// A lock that is held during every query to the dynamic loader, and from before a fork until
  /// after it.
  mutex loader;

  /// Functions that the fork handlers call before and after a fork, while the lock `loader` is held
  /// and signals are blocked; null until there is a session. All three are set together, while the
  /// lock `loader` is held.
  void (*before)() noexcept = nullptr;
  void (*after_in_parent)() noexcept = nullptr;
  void (*after_in_child)() noexcept = nullptr;
  /// Returns false in a child that was created without fork handlers, for example by clone(2). In
  /// such a child and its own children, locks may stay locked forever, so the handlers do nothing.
  /// Null until there is a session.
  std::atomic<bool (*)() noexcept> in_own_process{nullptr};

  /// Id of the process that is registering the fork handlers; 0 before the registration, and the
  /// constant `registered` after it.
  std::atomic<pid_t> registering{0};
  /// How many times the fork handlers are registered (see register_at_forks()). Each fork
  /// determines the number by counting how often they are called.
  unsigned times_registered = 0;
  /// Whether the fork in progress has called the function `before`. If it has not, no session
  /// existed at that moment, but the program's own fork handlers may create one before the fork
  /// ends.
  bool before_was_called = false;
  sigset_t signals_before{};  ///< signal mask that the forking thread had

  static constexpr pid_t registered = -1;
};
LOTUS_DETAIL_PER_MODULE inline at_forks this_module_at_forks;

/// Whether this thread is in fork(2) and therefore holds all locks of the library. Scopes in the
/// program's own fork handlers must then not wait for these locks.
LOTUS_DETAIL_PER_MODULE inline thread_local bool this_thread_forks = false;

LOTUS_DETAIL_PER_MODULE inline void prepare_fork() noexcept {
  at_forks& forks = this_module_at_forks;
  if (this_thread_forks) {
    ++forks.times_registered;
    return;
  }
  const auto in_own_process = forks.in_own_process.load(std::memory_order_acquire);
  if (in_own_process != nullptr && !in_own_process()) return;
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

/// Registers the fork handlers of this shared object, and returns after they are registered. If the
/// process forks while another thread registers them, the child registers them again, so they may
/// run twice.
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

/// Calls dl_iterate_phdr(3), but never while another thread forks: glibc's lock would otherwise be
/// in an undefined state in the child. `each` runs while that lock is held.
LOTUS_DETAIL_PER_MODULE inline void iterate_objects(int (*each)(dl_phdr_info*, std::size_t, void*),
                                                    void* result) noexcept {
  const signals_blocked quiet;
  // Registers the handlers when the shared object is loaded, because most programs have only one
  // thread then. If they were registered later, a fork in progress on another thread would not call
  // them.
  LOTUS_DETAIL_CALL_AT_LOAD(register_at_forks);
  // This call is needed for scopes in static constructors that run before the registration above.
  register_at_forks();
  const bool held = this_thread_forks;
  if (!held) this_module_at_forks.loader.lock();
  dl_iterate_phdr(each, result);
  if (!held) this_module_at_forks.loader.unlock();
}

/// Keeps the shared object that contains `code` in memory even after dlclose, because the drain
/// thread, the fork handlers and other shared objects continue to call its code.
inline void pin_module_of(const void* code) noexcept {
  Dl_info info{};
#if defined(RTLD_DL_LINKMAP)
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return;
  const char* path = static_cast<const link_map*>(extra)->l_name;
#else
  // musl has only dladdr. Its path is also that of the program itself, which is already loaded, so
  // dlopen changes nothing then.
  if (dladdr(code, &info) == 0) return;
  const char* path = info.dli_fname;
#endif
  // Without a path, `code` is part of the program itself, which is never unloaded.
  if (path == nullptr || *path == '\0') return;
  dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_FORK_HPP

// Provides memory directly from the kernel, because the library must not call malloc where a signal
// handler may have interrupted malloc.
#ifndef LOTUS_BASE_MEMORY_HPP
#define LOTUS_BASE_MEMORY_HPP

#include <sys/mman.h>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns zeroed private memory directly from the kernel and not from malloc, because a signal
/// handler that interrupted malloc must be able to record. Returns null if there is no memory.
inline void* map_memory(std::size_t bytes) noexcept {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

/// Makes the kernel fill the pages of this memory with zeros in every child process. Returns false
/// if the kernel cannot do that (Linux before 4.14).
inline bool clear_in_children(void* memory, std::size_t bytes) noexcept {
  // The value of MADV_WIPEONFORK, which older system headers do not define.
  constexpr int wipe_on_fork = 18;
  return madvise(memory, bytes, wipe_on_fork) == 0;
}

/// A temporary object in zeroed memory directly from the kernel. Used for large objects, because a
/// scope may run on a small stack: that of a fibre or of a signal handler. Check first that there
/// is memory.
template <class T>
class mapped {
 public:
  mapped() noexcept : object_{static_cast<T*>(map_memory(sizeof(T)))} {
    if (object_ != nullptr) new (object_) T;
  }
  ~mapped() {
    if (object_ != nullptr) munmap(object_, sizeof(T));
  }
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T& operator*() const noexcept { return *object_; }

 private:
  T* object_;
};

/// A buffer that can grow, in zeroed memory directly from the kernel. The object owns the memory.
class growing_memory {
 public:
  growing_memory() noexcept = default;
  growing_memory(const growing_memory&) = delete;
  growing_memory& operator=(const growing_memory&) = delete;
  ~growing_memory() {
    if (memory_ != nullptr) munmap(memory_, room_);
  }

  /// Adds `bytes` at the end and returns a pointer to them; null if there is no memory. Pointers
  /// from earlier calls become invalid.
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

// Lets all shared objects of one process find an object that exists only once in the process.
//
// If shared objects are built with hidden visibility and the program exports nothing, neither an
// inline variable nor dlsym can find that object. So the first shared object that needs the object
// stores its address in a page at a known address or, if that page is not available, in a mapping
// whose name is visible in /proc/self/maps.
#ifndef LOTUS_BASE_RENDEZVOUS_HPP
#define LOTUS_BASE_RENDEZVOUS_HPP

// Opens file descriptors with high numbers, so that the user's program does not close or reuse them
// by accident, and checks whether they still refer to the library's files.
#ifndef LOTUS_BASE_DESCRIPTOR_HPP
#define LOTUS_BASE_DESCRIPTOR_HPP

#include <fcntl.h>
#include <sys/stat.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Moves a new descriptor to a number that the program does not use. Otherwise, if the program was
/// started with descriptor 0, 1 or 2 closed, the library's file could get that number, and the
/// program would print into the file. The new number is high if possible, and never below 3.
/// Returns the new descriptor, which is close-on-exec. On failure, closes `fd`, sets errno and
/// returns -1.
inline int move_to_high_fd(int fd) noexcept {
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

/// Like openat(2), but the descriptor is close-on-exec and has a number from move_to_high_fd().
inline int open_at_high_fd(int directory, const char* path, int flags, mode_t mode = 0) noexcept {
  return move_to_high_fd(openat(directory, path, flags | O_CLOEXEC, mode));
}

/// Identifies the file to which a descriptor refers.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool is(const struct stat& status) const noexcept {
    return status.st_dev == device && status.st_ino == inode;
  }
};

/// A descriptor of the library that stays open while the program runs. The program may close it, as
/// daemons do with all descriptors, and reuse its number for another file, so call holds() before
/// each use. (holds() does not notice if the program opens the same file under this number.) Copies
/// share the descriptor, and the destructor does not close it. Not for anonymous files, which share
/// one inode. Thread safety: none.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;
  /// @param fd      an open descriptor.
  /// @param status  what fstat(2) returns for `fd`.
  owned_descriptor(int fd, const struct stat& status) noexcept
      : fd_{fd}, file_{status.st_dev, status.st_ino} {}
  /// @param fd  an open descriptor, or -1 for none.
  explicit owned_descriptor(int fd) noexcept {
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) *this = {fd, status};
  }

  int number() const noexcept { return fd_; }
  const file_identity& file() const noexcept { return file_; }

  /// Whether the file is still open under this descriptor. Takes one system call.
  bool holds() const noexcept {
    struct stat status {};
    return holds(status);
  }
  bool holds(struct stat& status) const noexcept {
    return fd_ >= 0 && fstat(fd_, &status) == 0 && file_.is(status);
  }

  /// Closes the descriptor if it still refers to this object's file.
  void close() noexcept {
    if (holds()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  file_identity file_;
};

/// A log that stays open between appends. The file may be renamed in the meantime.
struct open_log {
  owned_descriptor file;
  std::int64_t checked_ns = 0;  ///< CLOCK_MONOTONIC time at which the log's name was last checked
};

template <std::size_t Count>
void close_all(open_log (&logs)[Count]) noexcept {
  for (open_log& log : logs) log.file.close();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_DESCRIPTOR_HPP

// Reads from file descriptors and writes to them.
#ifndef LOTUS_BASE_FILE_HPP
#define LOTUS_BASE_FILE_HPP

#include <errno.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps a write of the library from killing the program when a pipe is closed (SIGPIPE) or
/// RLIMIT_FSIZE is exceeded (SIGXFSZ): blocks both signals for this thread while the object exists.
/// after() removes a signal that the library's own call raised; a signal that was pending before
/// stays, because it belongs to the program. Takes three system calls.
class write_signals_blocked {
 public:
  write_signals_blocked() noexcept {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &both, &before_);
    sigpending(&pending_);
  }
  ~write_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  write_signals_blocked(const write_signals_blocked&) = delete;
  write_signals_blocked& operator=(const write_signals_blocked&) = delete;

  /// Removes the signal that a failed system call of the library raised. Returns `error`.
  /// @param error  errno of that call.
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

/// Reads the beginning of a file, such as one in /proc, as far as it fits in `text`, and terminates
/// it with a zero. Returns the number of bytes, which is 0 if the file cannot be read.
template <std::size_t Bytes>
std::size_t read_beginning(const char* path, char (&text)[Bytes]) noexcept {
  const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
  const ssize_t got = fd >= 0 ? read(fd, text, Bytes - 1) : 0;
  if (fd >= 0) close(fd);
  const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  text[bytes] = '\0';
  return bytes;
}

/// Writes all of `data`; resumes after EINTR and short writes. Returns 0 or errno.
LOTUS_DETAIL_COLD inline int write_all(int fd, const void* data, std::size_t bytes) noexcept {
  const write_signals_blocked signals;
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
  const write_signals_blocked signals;
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : signals.after(errno);
}

/// Extends a file that has `held` bytes by another `bytes`, and allocates disk space for them.
/// Returns 0 or errno.
inline int reserve(int fd, std::size_t held, std::size_t bytes) noexcept {
  const write_signals_blocked signals;
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

// Lists the memory mappings of this process.
#ifndef LOTUS_BASE_MAPPINGS_HPP
#define LOTUS_BASE_MAPPINGS_HPP

// Provides function_ref, a reference to a callable. A function with a parameter of this type
// accepts any callable without being a template.
#ifndef LOTUS_BASE_FUNCTION_REF_HPP
#define LOTUS_BASE_FUNCTION_REF_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <class Signature>
class function_ref;

/// Refers to a callable that the caller owns, like std::function_ref of C++26. Use it only for
/// parameters: unlike a template, the called function is not compiled again for each lambda. The
/// callable must outlive the call.
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

/// Calls `each(line)` for every line of /proc/self/maps, until `each` returns true. Allocates
/// nothing.
LOTUS_DETAIL_COLD inline void for_each_mapping(function_ref<bool(std::string_view)> each) noexcept {
  const mapped<char[8192]> memory;
  const int fd = memory ? open_at_high_fd(AT_FDCWD, "/proc/self/maps", O_RDONLY) : -1;
  if (fd < 0) return;
  char(&text)[8192] = *memory;
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
    // Discards a line that is longer than the buffer.
    held = held == sizeof(text) && at == 0 ? 0 : held - at;
    std::memmove(text, text + at, held);
  }
  close(fd);
}

/// Returns the path at the end of a line of /proc/self/maps; empty if there is none.
inline std::string_view mapped_path(std::string_view line) noexcept {
  const std::size_t slash = line.find('/');
  return slash == std::string_view::npos ? std::string_view{} : line.substr(slash);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_MAPPINGS_HPP

// Provides a memory page at a fixed address, through which the shared objects of a process find the
// library's common data.
#ifndef LOTUS_BASE_MEETING_PAGE_HPP
#define LOTUS_BASE_MEETING_PAGE_HPP

#include <sys/syscall.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A page with named pointers, by which the shared objects of a process find common data without
/// /proc and without a file. All versions of the library use this layout: if you change it, change
/// the constant `ours` too.
struct meeting_page {
  struct point {
    char name[56];
    alignas(8) unsigned char value[8];  ///< a std::atomic<T*>, initially null
  };
  static constexpr std::size_t bytes = 4096;
  static constexpr std::uint64_t ours = 0x3173'7574'6f6c'fe01;

  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> used;
  point points[(bytes - 16) / sizeof(point)];

  /// Returns the address at which the pointer with this name is stored; null if the page has no
  /// such name.
  void* find(std::string_view name) noexcept {
    const std::uint64_t count = used.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (name == points[i].name) return points[i].value;
    }
    return nullptr;
  }

  /// Adds a pointer with this name, and returns the address at which it is stored; null if the page
  /// is full. Only one thread at a time may call this function.
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

/// Addresses at which the meeting page may be; it is created at the first of them that is free.
/// Every kernel can map these addresses, even with three levels of page tables, and
/// AddressSanitizer does not use them.
inline constexpr std::uintptr_t meeting_page_addresses[] = {0x21'4c4f'0000, 0x7a4f'0000,
                                                            0x2a4f'4c4f'0000};

/// Returns whether memory at this address can be read. Asks the kernel to read it, because reading
/// unmapped memory here would crash the program.
inline bool is_readable(const void* address) noexcept {
  unsigned char resident = 0;
  if (mincore(const_cast<void*>(address), 1, &resident) != 0) return false;
  // The system call fails in any case, because `no_request` is invalid. But the kernel first reads
  // the signal set at `address`, and reports EFAULT if it cannot.
  constexpr int no_request = -1;
  return syscall(SYS_rt_sigprocmask, no_request, address, nullptr, 8) != 0 && errno != EFAULT;
}

/// Returns the meeting page of this process; null if no page was created yet.
inline meeting_page* find_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    auto* page = reinterpret_cast<meeting_page*>(address);  // NOLINT(performance-no-int-to-ptr)
    if (is_readable(page) && page->magic.load(std::memory_order_acquire) == meeting_page::ours) {
      return page;
    }
  }
  return nullptr;
}

/// Creates the meeting page of this process. Returns null if all addresses are in use, or if the
/// kernel (before 4.17) cannot report whether an address is in use. Only one thread at a time may
/// call this function.
inline meeting_page* make_meeting_page() noexcept {
  for (const std::uintptr_t address : meeting_page_addresses) {
    void* wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    // The mapping is private, so a forked child gets a copy and does not share its parent's page.
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

/// The place where shared objects store and find the address of a T. The address is null until one
/// is stored. The T is never destroyed.
template <class T>
using meeting_point = std::atomic<T*>;

/// Returns the address of this process's memory mapping with this name, or null.
LOTUS_DETAIL_COLD inline void* find_named_mapping(std::string_view name) noexcept {
  void* found = nullptr;
  for_each_mapping([&](std::string_view line) {
    const std::string_view path = mapped_path(line);
    if (path.rfind("/memfd:", 0) != 0 || path.find(name) == std::string_view::npos) return false;
    found =
        reinterpret_cast<void*>(strtoull(line.data(), nullptr, 16));  // the address ends at the '-'
    return true;
  });
  return found;
}

/// Creates a mapping with this name and closes its descriptor immediately. Returns null if this
/// fails, or if the mapping does not appear in /proc/self/maps.
inline void* make_named_mapping(const char* name, std::size_t bytes) noexcept {
  const int fd = move_to_high_fd(memfd_create(name, MFD_CLOEXEC));
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (lengthen(fd, bytes) == 0) {
    // The mapping is private, so a forked child gets a copy of its parent's mapping.
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  if (find_named_mapping(name) == memory) return memory;
  munmap(memory, bytes);
  return nullptr;
}

/// Returns this process's meeting point with this name; null if there is none. Allocates nothing.
template <class T>
meeting_point<T>* find_meeting_point(std::string_view name) noexcept {
  meeting_page* page = find_meeting_page();
  void* found = page != nullptr ? page->find(name) : nullptr;
  return static_cast<meeting_point<T>*>(found != nullptr ? found : find_named_mapping(name));
}

/// Returns the meeting point `name`, and creates it if there is none. Returns null if it cannot be
/// created.
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

/// Finds or creates the meeting point `name`, and calls `use(meeting_point<T>*)` with it, or with
/// null if it cannot be created. Holds the dynamic loader's lock, which is common to all shared
/// objects, so that no two threads create a meeting point at the same time.
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

// Defines the table of functions with which the library controls a collector (a profiler such as
// perf or VTune).
#ifndef LOTUS_COLLECTORS_BACKEND_HPP
#define LOTUS_COLLECTORS_BACKEND_HPP

// Reports invalid environment variables, and reads variables that hold numbers.
#ifndef LOTUS_RECORD_ENVIRONMENT_REPORT_HPP
#define LOTUS_RECORD_ENVIRONMENT_REPORT_HPP

// Prints the library's messages, one line each, to the program's handler or to stderr.
#ifndef LOTUS_RECORD_MESSAGE_HPP
#define LOTUS_RECORD_MESSAGE_HPP

#include <stdarg.h>

// Lets a shared object find the one session of its process, or create it.
#ifndef LOTUS_RECORD_JOIN_HPP
#define LOTUS_RECORD_JOIN_HPP

// Registers a function that runs when a shared object is unloaded; see Itanium C++ ABI, 3.3.6.3.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* object) noexcept;

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Identifies this shared object in calls of __cxa_atexit. The variable has a C++ name of our own,
/// because g++ itself may already have declared __dso_handle, with another type.
extern "C" LOTUS_DETAIL_PER_MODULE void* object_handle __asm__("__dso_handle");

/// Name under which the shared objects of a process find its session. Increase LOTUS_ABI whenever
/// the layout of services, options, schedule, module_state, producer or record changes, so that
/// objects with different layouts do not share a session.
inline constexpr char hub_name[] = "lotus-hub-" LOTUS_DETAIL_STRINGIZE(LOTUS_ABI) ";";

/// Creates the session in this shared object, unless it already exists there, and returns its
/// services. Defined in session/session_services.hpp.
LOTUS_DETAIL_PER_MODULE const services* make_services() noexcept;
LOTUS_DETAIL_PER_MODULE bool has_session() noexcept;

/// Returns the services of the process's session; null if there is no session yet.
LOTUS_DETAIL_PER_MODULE inline const services* services_if_any() noexcept {
  if (const services* known = this_module.hub.load(std::memory_order_acquire)) return known;
  const auto* hub = find_meeting_point<const services>(hub_name);
  return hub == nullptr ? nullptr : hub->load(std::memory_order_acquire);
}

LOTUS_DETAIL_PER_MODULE inline void leave_session() noexcept {
  if (const services* s = this_module.hub.load(std::memory_order_acquire)) s->leave(this_module);
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> leaves_at_exit{false};

/// Makes this shared object leave the session when it is unloaded or the process exits. The
/// function is registered with __cxa_atexit, as compilers register the destructors of static
/// variables, and runs after those destructors, which may still record. Sanitizers would call a
/// function registered with atexit(3) after the object is unloaded.
LOTUS_DETAIL_PER_MODULE inline void leave_session_at_exit() noexcept {
  if (leaves_at_exit.exchange(true)) return;
  __cxa_atexit([](void*) { leave_session(); }, nullptr, &object_handle);
}

/// Reports that other shared objects cannot find the session that this shared object has created.
/// Defined in record/message.hpp.
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
      // A meeting point is memory that all shared objects of the process find by its name. If none
      // can be created, each shared object has a session of its own.
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

/// The program's function for messages, options::on_message. All functions are thread-safe.
class message_handler {
 public:
  /// @param handler  the program's function; null: the program has none.
  void use(void (*handler)(const char*)) noexcept {
    handler_.store(handler, std::memory_order_release);
  }
  /// Passes a message to the handler. Returns false if there is no handler.
  bool deliver(const char* line) const noexcept {
    void (*const handler)(const char*) = handler_.load(std::memory_order_acquire);
    if (handler != nullptr) handler(line);
    return handler != nullptr;
  }

 private:
  std::atomic<void (*)(const char*)> handler_{nullptr};
};

/// Prints one line, formatted as by printf. The line goes to options::on_message of the process's
/// latest start(); if that option is not set, and in a child process without fork handlers, to
/// stderr with the prefix "lotus: ". Thread safety: any thread of any shared object. Allocates
/// nothing.
LOTUS_DETAIL_PER_MODULE __attribute__((format(printf, 1, 2))) inline void say(const char* format,
                                                                              ...) noexcept {
  constexpr std::size_t head = 7;
  // Without memory, the message is cut.
  char room[256];
  const mapped<char[4096 + 512]> memory;
  char* const line = memory ? *memory : room;
  const std::size_t bytes = memory ? sizeof(*memory) : sizeof(room);
  std::memcpy(line, "lotus: ", head + 1);
  va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(line + head, bytes - head - 1, format, values);
  va_end(values);
  if (n < 0) return;
  // The message must stay one line, even if a file name in it contains line ends.
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
      "is denied): it uses a session of its own, which records only if this shared object calls "
      "lotus::start() or LOTUS_LOG_FILE is set");
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_MESSAGE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Prints that the environment variable `row` has the invalid value `bad`, which values are valid,
/// and which value is used instead. Callers pass this function as `report` to functions of
/// base/environment.hpp.
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
  // row.values contains the valid words, such as "itt|nvtx|torch". The message lists them as "itt,
  // nvtx and torch".
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

/// Returns the number in an environment variable. If the variable contains no valid number, reports
/// that and returns the variable's default.
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

/// Returns how long the library waits for an answer of a collector, in ms.
inline std::int64_t collector_timeout_ms() noexcept {
  return static_cast<std::int64_t>(number_setting(variable::collector_timeout_ms));
}

/// Returns the sampling interval, in ns, for collectors that cannot report theirs: that of
/// LOTUS_MAP_RATE, which lotus-tool sets to the rate with which it starts the collector.
inline std::uint64_t asked_interval_ns() noexcept {
  return 1'000'000'000 / number_setting(variable::map_rate);
}

/// The functions that control one kind of collector. They are called one at a time, never nested,
/// and never after detach().
struct collector_backend {
  /// Whether resume() and pause() return only after the collector was really switched on or off. If
  /// not, the caller must sleep before a region is executed; otherwise samples of earlier code
  /// could be counted as samples of the region.
  bool acknowledges = true;
  /// Whether the collector counts all instructions between resume() and pause(), including those of
  /// the library.
  bool counts_instructions = false;
  /// Prepares the collector, which does not collect yet. Returns false, after reporting the reason,
  /// if the collector cannot be used.
  bool (*begin)() noexcept = nullptr;
  /// Resumes collecting. Like pause(), returns false if the collector no longer answers.
  bool (*resume)() noexcept = nullptr;
  bool (*pause)() noexcept = nullptr;
  /// Ends collecting permanently. May be called at any time after begin(), also while collecting.
  void (*detach)() noexcept = nullptr;
  /// CPU time between two samples, in ns; 0 if the collector does not sample.
  std::uint64_t (*interval_ns)() noexcept = nullptr;
  /// Called at the end of a region (block of a LOTUS_MAP_REGION) from which data was collected,
  /// with its start and end by CLOCK_MONOTONIC, in ns. May be null.
  void (*region)(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept = nullptr;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_BACKEND_HPP

// Defines the table of all collectors (profilers) that the library can control, with the functions
// of each.
#ifndef LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP
#define LOTUS_COLLECTORS_COLLECTOR_KINDS_HPP

// Controls callgrind through its client requests. The requests are defined here, so that no header
// of valgrind is needed and all files of a program use the same definitions.
#ifndef LOTUS_COLLECTORS_CALLGRIND_HPP
#define LOTUS_COLLECTORS_CALLGRIND_HPP

// Defines the names of the hidden files in a run's directory.
#ifndef LOTUS_FOLDER_HIDDEN_FILES_HPP
#define LOTUS_FOLDER_HIDDEN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Beginning of the name of a thread's side log, which holds the records that the text format
/// cannot express, or of its compact log, which holds all its records (format/compact_layout.hpp).
/// folder/log_parts.hpp defines the rest of the name.
inline constexpr char compact_log_start[] = ".lotus_compact_";
inline constexpr char side_log_start[] = ".lotus_beside_";

/// Beginning of the name of a process's file of aggregates (aggregates/aggregate_text.hpp). The
/// logs' prefix, `_` and the process id follow.
inline constexpr char aggregates_file_start[] = ".lotus_aggregated_";

// The names of the files below begin with these texts; a process's id and a time follow.

/// A process's ring file (record/ring_layout.hpp), which exists until all its records are in the
/// logs.
inline constexpr char ring_file_start[] = ".lotus_ring_";
/// A ring file that is being created.
inline constexpr char unfinished_ring_file_start[] = ".lotus_new_";
/// The information file (store/run/run_info.hpp), which describes a process and its threads.
inline constexpr char run_info_start[] = ".lotus_info_";
/// The file of samples of the built-in sampler (sampling/sample_layout.hpp).
inline constexpr char samples_file_start[] = ".lotus_samples_";
/// The file of wait samples (waits/wait_reasons.hpp), which show what threads waited for. The rest
/// of its name is the same as in the name of the process's information file.
inline constexpr char waits_file_start[] = ".lotus_waits_";
/// The file of stacks (waits/stack_words.hpp), which records in which calls threads waited. Its
/// name ends like that of the process's information file.
inline constexpr char stacks_file_start[] = ".lotus_stacks_";

/// A file that asks a process of the run to take a snapshot; it contains the reason.
inline constexpr char snapshot_request_name[] = ".lotus_snapshot_request";

/// A file with which a process that takes a snapshot asks the other processes of the run to record
/// what their threads do (waits/store/moment_requests.hpp).
inline constexpr char moment_request_name[] = ".lotus_moment_request";

/// Stands before the operation's name in a callgrind dump of only the first part of a pass (an
/// execution of a LOTUS_MAP_REGION), which callgrind writes when a nested region begins. A later
/// dump contains the rest of the pass.
inline constexpr char callgrind_part_start[] = "lotus part of ";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_HIDDEN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Numbers of valgrind's requests: the first one is handled by valgrind's core, the others by
/// callgrind (tool "CT").
enum class valgrind_request : std::uint64_t {
  running_on_valgrind = 0x1001,
  dump_stats_at = 0x43540003,
  start_instrumentation = 0x43540004,
  stop_instrumentation = 0x43540005,
};

/// Sends a request to valgrind. If the program does not run under valgrind, the instructions have
/// no effect, the answer is 0, and the call takes about 2 ns (valgrind manual, "The Client Request
/// mechanism").
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

/// Returns the functions that control callgrind. The program must run under callgrind with the
/// option --instr-atstart=no. callgrind writes a dump at the end of each region.
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

// Controls Intel VTune through the binary interface of its collector library (ittnotify). Its
// headers are not included: the types below have that interface's binary layout.
#ifndef LOTUS_COLLECTORS_ITT_HPP
#define LOTUS_COLLECTORS_ITT_HPP

// Calls functions of a profiler vendor's library, which may hang, with a time limit.
#ifndef LOTUS_COLLECTORS_DEADLINE_CALLER_HPP
#define LOTUS_COLLECTORS_DEADLINE_CALLER_HPP

// Reads clock ticks, and converts them to nanoseconds since the Unix epoch.
#ifndef LOTUS_BASE_CLOCK_HPP
#define LOTUS_BASE_CLOCK_HPP

#include <sys/prctl.h>

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

/// Whether the program may read clocks. If it has forbidden itself to read the TSC (PR_SET_TSC),
/// then even clock_gettime(2) raises SIGSEGV.
inline bool may_read_clocks() noexcept {
#if defined(__x86_64__)
  int access = PR_TSC_ENABLE;
  return prctl(PR_GET_TSC, &access) != 0 || access != PR_TSC_SIGSEGV;
#else
  return true;
#endif
}

/// Whether hardware_ticks() advances at the same constant rate on every core: on x86-64 if CPUID's
/// invariant-TSC bit is set (Intel SDM 17.17.1, AMD APM 3 E.4.7) and the kernel has not marked the
/// TSC unstable; on aarch64 always (Arm ARM D11).
inline bool hardware_ticks_invariant() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & (1U << 8)) == 0) return false;
  const int fd = open_at_high_fd(
      AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY);
  if (fd < 0) return true;
  char sources[256] = {};
  const ssize_t got = read(fd, sources, sizeof(sources) - 1);
  close(fd);
  // kvm-clock and Hyper-V's clock are derived from the TSC, so with them the kernel trusts the TSC.
  return got <= 0 || std::strstr(sources, "tsc") != nullptr ||
         std::strstr(sources, "kvm-clock") != nullptr || std::strstr(sources, "hyperv") != nullptr;
#else
  return true;
#endif
}

/// One moment, read on three clocks. Anchors relate ticks to the time of day.
struct clock_anchor {
  std::uint64_t ticks;
  /// CLOCK_MONOTONIC, which never jumps, and stops while the machine is suspended.
  std::int64_t elapsed_ns;
  std::int64_t realtime_ns;
};

/// Detects that the machine was suspended (slept): then CLOCK_BOOTTIME has advanced by more than
/// CLOCK_MONOTONIC.
class sleep_watch {
 public:
  /// @param boottime_ns, monotonic_ns  readings of CLOCK_BOOTTIME and CLOCK_MONOTONIC.
  ///   CLOCK_BOOTTIME must be read first: then a pause between the two readings makes their
  ///   difference smaller, never larger.
  /// @return how long the machine was suspended since the last call, in ns, or 0. The result of the
  ///   first call has no meaning.
  std::int64_t slept_ns(std::int64_t boottime_ns, std::int64_t monotonic_ns) noexcept {
    const std::int64_t slept_ns = boottime_ns - monotonic_ns - asleep_ns_;
    if (slept_ns <= 0) return 0;
    asleep_ns_ += slept_ns;
    return slept_ns > min_ns ? slept_ns : 0;
  }

 private:
  static constexpr std::int64_t min_ns = 1'000'000;

  std::int64_t asleep_ns_ = INT64_MIN / 2;
};

/// A segment of the map from ticks to time: time = start_ns + (ticks - start_ticks) * rate.
struct clock_segment {
  std::uint64_t start_ticks;
  std::int64_t start_ns;  ///< time at start_ticks, in ns since the Unix epoch
  std::uint64_t rate;     ///< nanoseconds per tick, multiplied by 2^32
  /// Sum of all jumps of the map so far, such as those after forward steps of the wall clock;
  /// start_ns already contains them.
  std::int64_t jumped_ns;

  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    __extension__ using wide = __int128;
    const auto distance = static_cast<std::int64_t>(ticks - start_ticks);
    // The arithmetic is unsigned, because a damaged ring file's values could overflow signed
    // numbers.
    return static_cast<std::int64_t>(
        static_cast<std::uint64_t>(start_ns) +
        static_cast<std::uint64_t>((wide{distance} * static_cast<std::int64_t>(rate)) >> 32));
  }
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maps ticks to nanoseconds since the Unix epoch, as a continuous line of straight segments. So
/// spans that share a clock reading meet exactly, even if they are converted to text at different
/// times.
///
/// While CLOCK_REALTIME only drifts, the map follows it: each call of tie() changes the slope, so
/// that the line approaches the wall clock. If CLOCK_REALTIME is stepped forward, later times jump
/// ahead; if it is stepped back, times continue as before, so that starts stay in order. Durations
/// of spans never contain such a step.
///
/// While the machine is suspended (sleeps), the hardware counter may continue or stop. So no rate
/// is computed across a sleep, and the line restarts at the wall clock when the machine wakes. A
/// duration across a sleep is the time that the counter counted.
///
/// Trivially copyable, so that it can be stored in a ring file. Thread safety: none.
class clock_map {
 public:
  /// If the map's time and the wall clock differ by more than this, the difference counts as a step
  /// of the wall clock.
  static constexpr std::int64_t step_ns = 1'000'000;

  /// Begins the map at the anchor `first`. The anchor `second`, read a millisecond or more later,
  /// determines the first rate.
  void begin(const clock_anchor& first, const clock_anchor& second) noexcept {
    segments_[0] = {first.ticks, first.realtime_ns, rate_between(first, second), 0};
    count_ = 1;
    anchors_[0] = first;
    anchor_count_ = 1;
    held_back_ns_ = 0;
  }

  /// Adds an anchor (one moment on several clocks) to the map. Returns the step of the wall clock
  /// in ns if one is detected, otherwise 0.
  /// @param slept_ns  how long the machine was suspended since the previous anchor.
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

  /// Adapts the map to another CLOCK_MONOTONIC, in which the same moments have values that are
  /// larger by `ns`.
  /// @param ticks_too  whether ticks are ns of CLOCK_MONOTONIC.
  void shift_elapsed(std::int64_t ns, bool ticks_too) noexcept {
    const std::uint64_t ticks = ticks_too ? static_cast<std::uint64_t>(ns) : 0;
    for (clock_anchor& a : anchors_) {
      a.elapsed_ns += ns;
      a.ticks += ticks;
    }
    for (std::uint32_t i = 0; i < count_; ++i) segments_[i].start_ticks += ticks;
  }

  const clock_segment& current() const noexcept { return segments_[count_ - 1]; }

  /// Returns the segment that contains `ticks`; the first segment if `ticks` is older than the map.
  const clock_segment& at(std::uint64_t ticks) const noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = count_;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (segments_[middle].start_ticks <= ticks ? low : high) = middle;
    }
    return segments_[low];
  }

  /// Whether the number of segments is in the allowed range. It may not be if the map comes from a
  /// damaged file.
  bool valid() const noexcept { return count_ >= 1 && count_ <= capacity; }

 private:
  static constexpr std::uint32_t capacity = 512;
  static constexpr std::uint32_t anchor_capacity = 16;

  /// Begins a new segment of the conversion from ticks to time after the machine was suspended. It
  /// begins at the wall clock's time, and has the previous rate, because no new rate is known yet.
  std::int64_t tie_after_sleep(const clock_anchor& now, std::int64_t slept_ns) noexcept {
    const clock_segment last = current();
    const std::uint64_t rate =
        anchor_count_ > 1 ? rate_between(oldest_anchor(), newest_anchor()) : last.rate;
    const std::int64_t here_ns = last.to_ns(now.ticks);
    const std::int64_t awake_ns = now.elapsed_ns - newest_anchor().elapsed_ns;
    const bool counter_stopped =
        here_ns - last.to_ns(newest_anchor().ticks) - awake_ns < slept_ns / 2;
    anchor_count_ = 0;
    remember(now);
    const std::int64_t woken_ns = counter_stopped ? here_ns + slept_ns : here_ns;
    const std::int64_t stepped_ns = now.realtime_ns + held_back_ns_ - woken_ns;
    // If the counter ran while the machine was suspended, a small error of its rate has added up
    // over that time, so a difference up to this limit does not show that the wall clock was
    // stepped.
    const std::int64_t inexact_ns = slept_ns / 1000 + step_ns;
    const bool stepped = stepped_ns > inexact_ns || stepped_ns < -inexact_ns;
    if (stepped && stepped_ns < 0) held_back_ns_ -= stepped_ns;
    const std::int64_t jump_ns = now.realtime_ns + held_back_ns_ - here_ns;
    append({now.ticks, here_ns + jump_ns, rate, last.jumped_ns + jump_ns});
    return stepped ? stepped_ns : 0;
  }

  /// Returns the rate between two anchors, computed from elapsed_ns because that clock never jumps.
  static std::uint64_t rate_between(const clock_anchor& a, const clock_anchor& b) noexcept {
    __extension__ using wide = unsigned __int128;
    if (b.ticks <= a.ticks || b.elapsed_ns <= a.elapsed_ns) return std::uint64_t{1} << 32;
    const auto elapsed_ns = static_cast<std::uint64_t>(b.elapsed_ns - a.elapsed_ns);
    return static_cast<std::uint64_t>((wide{elapsed_ns} << 32) / (b.ticks - a.ticks));
  }

  /// Returns a rate that corrects the map's error `error_ns` within the next `since_ns`, or within
  /// 5 ms if that is longer. The result differs from `rate` by at most 1000 ppm.
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

  /// Removes every second segment of the older three quarters of the map, to free space for new
  /// ones. The map still begins at the start of the run, but its older part is less exact. Segments
  /// next to a step of the wall clock are not removed.
  void thin_out() noexcept {
    std::uint32_t kept = 1;
    for (std::uint32_t i = 1; i < capacity; ++i) {
      const bool step = segments_[i].jumped_ns != segments_[i - 1].jumped_ns ||
                        (i + 1 < capacity && segments_[i + 1].jumped_ns != segments_[i].jumped_ns);
      if (i % 2 == 0 || i >= capacity / 4 * 3 || step) segments_[kept++] = segments_[i];
    }
    for (std::uint32_t i = 0; i + 1 < kept; ++i) straighten(segments_[i], segments_[i + 1]);
    // If nothing could be removed, because all segments are next to steps, the oldest one is
    // removed.
    if (kept == capacity) std::memmove(segments_, segments_ + 1, --kept * sizeof(clock_segment));
    count_ = kept;
  }

  /// Adapts the rate of the segment `s` after the segment between `s` and `next` was removed, so
  /// that `s` ends where `next` begins.
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
  std::int64_t held_back_ns_;  ///< total of the wall clock's backward steps since begin()
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A thread that calls the functions of a vendor's library, so that the caller need not wait for a
/// function that hangs. Only one thread at a time may use it. A forked child starts a new thread.
class deadline_caller {
 public:
  static deadline_caller& instance() noexcept {
    static deadline_caller caller;
    return caller;
  }

  /// Calls `what` on this object's own thread, and waits at most collector_timeout_ms() for it.
  /// Returns false if `what` has not returned by then; do not use this object again after that.
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
    // The new thread inherits a mask that blocks all signals, because signals for the program must
    // be handled by the program's own threads.
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

/// Calls `what`, a function of a vendor's library. Returns false if it does not return within
/// collector_timeout_ms(); make no further calls then.
inline bool call_with_deadline(void (*what)()) noexcept {
  return deadline_caller::instance().call(what);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_DEADLINE_CALLER_HPP

// Controls perf record and perf stat through their control channel (option --control), on which
// perf acknowledges each command.
#ifndef LOTUS_COLLECTORS_PERF_HPP
#define LOTUS_COLLECTORS_PERF_HPP

#include <poll.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The program's two ends of perf's control channel (perf-record(1), --control).
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

  /// Sends a command to perf and waits for its answer. Returns false if there is no answer within
  /// collector_timeout_ms().
  bool send(std::string_view command) noexcept {
    if (control_.number() < 0) return false;
    // `lost` is true if the program has closed one of the two descriptors.
    const bool lost = !control_.holds() || !answers_.holds();
    if (lost && !open_from_environment()) return false;
    if (write_all(control_.number(), command.data(), command.size()) != 0) return false;
    // An answer consists of "ack\n" and a zero byte; the newline marks its end.
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
  /// Opens one end of the control channel for reading and writing, so that opening a FIFO never
  /// blocks and writing never raises SIGPIPE. For the same reason, a pipe that is given as a
  /// descriptor number is opened again, through /proc.
  static owned_descriptor open_end(bool fifo, std::string_view text) noexcept {
    char path[4096];
    const int length = std::snprintf(path, sizeof(path), "%s%.*s", fifo ? "" : "/proc/self/fd/",
                                     static_cast<int>(text.size()), text.data());
    if (text.empty() || length >= static_cast<int>(sizeof(path))) {
      errno = EINVAL;
      return {};
    }
    return owned_descriptor{open_at_high_fd(AT_FDCWD, path, O_RDWR | O_NONBLOCK)};
  }

  owned_descriptor control_;
  owned_descriptor answers_;
};

/// Whether this program runs under perf: then LOTUS_PERF_CONTROL names perf's control channel.
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
  volatile int flags;  ///< 0: VTune does not collect this domain
  const char* name;
  void* name_wide;
  int extra1;
  void* extra2;
  itt_domain* next;
};
struct itt_string_handle;

/// A function of VTune's library: its name, and where that library stores the function's address.
struct itt_function {
  const char* name;
  void** function;
  void* first;
  void* none;
  int group;
};

/// Has the layout of `__itt_global` of ittnotify 3.26.
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

/// The functions of VTune's collector library; null for functions that the installed version lacks.
/// The object is never destroyed, because VTune keeps pointers to it.
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
  /// Adds data to the task with this id; an id of zeros means this thread's innermost task.
  void (*metadata_add)(const itt_domain*, itt_id, itt_string_handle* key, int type,
                       std::size_t count, void* data) = nullptr;
  static constexpr int metadata_u64 = 1;

  /// Returns the library whose path VTune has set in the environment; the first call loads and
  /// initializes it. Returns null, after reporting the reason, if it cannot be loaded. Also returns
  /// null if another thread takes longer than a second to load it. Thread safety: any thread.
  static itt_library* get() noexcept {
    static lazy_lookup<itt_library*> loaded;
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
    // The library collects only after __itt_api_init has received a table, in which it stores the
    // addresses of its functions. Old libraries do not have __itt_api_init: their functions are
    // looked up by name.
    using init = void (*)(itt_global*, int);
    if (auto* start = reinterpret_cast<init>(dlsym(library, "__itt_api_init"))) {
      start(self.table(library), all_groups);
    } else {
      for (itt_function* f = self.functions_; f->name != nullptr; ++f) {
        *f->function = dlsym(library, f->name);
      }
    }
    if (self.resume == nullptr || self.pause == nullptr) {
      say("%s is not a VTune collector: it has no __itt_resume and __itt_pause", path);
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

/// Whether this program runs under VTune, which then sets the variable INTEL_LIBITTNOTIFY64.
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

// Controls AMD uProf through functions of libAMDProfileController that are looked up at run time.
#ifndef LOTUS_COLLECTORS_UPROF_HPP
#define LOTUS_COLLECTORS_UPROF_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A function of uProf that resumes or pauses collecting. In uProf 4.0 its argument must be 1 (CPU
/// profile). In uProf 5.1 it has no parameter and ignores the argument, which is passed in a
/// register.
using uprof_call = int (*)(unsigned);

struct uprof_calls {
  uprof_call resume;
  uprof_call pause;
  bool strict;  ///< whether the functions return only after collecting was switched on or off
};

/// The functions that the program passed to use_uprof(). If they are null, functions that the
/// program exports are looked up instead.
inline std::atomic<void (*)()> linked_uprof_resume{nullptr};
inline std::atomic<void (*)()> linked_uprof_pause{nullptr};

/// Finds the two functions that resume and pause. Each row of `names` is a pair of functions that
/// must be used together. The pairs whose functions return only after collecting was switched on or
/// off come first.
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

/// Whether the program already contains uProf's functions. If so, uprof_in_use() returns them
/// afterwards.
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
    // uProf has no function to detach, so collecting is only paused until the program ends.
    b.detach = []() noexcept { call_with_deadline([] { uprof_in_use().pause(1); }); };
    b.interval_ns = asked_interval_ns;
    return b;
  }();
  return &table;
}

/// Returns the functions of uProf; null, after reporting the reason, if they cannot be found.
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

/// Passes uProf's functions to the library, for programs that link AMD's static
/// libAMDProfileController, whose functions cannot be found at run time. Use it in one source file
/// that includes AMDProfileController.h:
///   const bool linked = lotus::use_uprof([] { amdProfileResume(1); }, [] { amdProfilePause(1); });
/// Call it before the first resume(). Always returns true.
inline bool use_uprof(void (*resume)(), void (*pause)()) noexcept {
  detail::linked_uprof_resume.store(resume, std::memory_order_release);
  detail::linked_uprof_pause.store(pause, std::memory_order_release);
  return true;
}

LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_UPROF_HPP

// Provides the built-in collector, which samples the program without an external profiler.
#ifndef LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP
#define LOTUS_SAMPLING_COLLECTORS_BUILTIN_HPP

#include <cstdlib>

// Provides the built-in sampler, which samples this process's threads with perf_event_open(2) and
// writes the samples to a file next to the logs.
#ifndef LOTUS_SAMPLING_SAMPLER_HPP
#define LOTUS_SAMPLING_SAMPLER_HPP

#include <linux/futex.h>

// Lists the threads of this process, and determines which of them the library has started.
#ifndef LOTUS_BASE_PROCESS_THREADS_HPP
#define LOTUS_BASE_PROCESS_THREADS_HPP

#include <initializer_list>

// Lists the entries of a directory without allocating.
#ifndef LOTUS_BASE_DIRECTORY_ENTRIES_HPP
#define LOTUS_BASE_DIRECTORY_ENTRIES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(name)` for every entry of the directory `path`, which is relative to the descriptor
/// `directory`.
/// opendir() is not used, because it allocates, and the caller may be a signal handler that
/// interrupted malloc, or a forked child in which a lock of malloc stays held.
LOTUS_DETAIL_COLD inline void for_each_entry(int directory,
                                             function_ref<void(const char* name)> each,
                                             const char* path = ".") noexcept {
  const mapped<char[4096]> memory;
  const int fd = memory ? open_at_high_fd(directory, path, O_RDONLY | O_DIRECTORY) : -1;
  if (fd < 0) return;
  // Layout of a getdents64(2) entry: inode, offset, length of the entry, type, name.
  constexpr std::size_t length_at = 16;
  constexpr std::size_t name_at = 19;
  char(&entries)[4096] = *memory;
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

#endif  // LOTUS_BASE_DIRECTORY_ENTRIES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Calls `each(pid_t)` for every thread of this process.
template <class Each>
void for_each_thread(Each&& each) noexcept {
  const auto each_id = [&](const char* name) {
    const auto tid = static_cast<pid_t>(std::strtol(name, nullptr, 10));
    if (tid > 0) each(tid);
  };
  for_each_entry(AT_FDCWD, each_id, "/proc/self/task");
}

/// Reads the name of a thread; "" if it has ended.
inline void read_thread_name(pid_t tid, char (&name)[32]) noexcept {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
  name[0] = '\0';
  const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return;
  const ssize_t got = read(fd, name, sizeof(name) - 1);
  close(fd);
  name[got > 0 ? got - 1 : 0] = '\0';  // without the line end
}

/// Returns whether the library has started this thread, judging from the thread's name.
inline bool is_own_thread(pid_t tid) noexcept {
  char name[32];
  read_thread_name(tid, name);
  for (const char* const own : {"lotus-drain", "lotus-sampler", "lotus-waits"}) {
    if (std::strcmp(name, own) == 0) return true;
  }
  return false;
}

/// Calls `each(pid_t)` for every thread of this process except the calling thread and the threads
/// that the library has started.
template <class Each>
void for_each_other_thread(Each&& each) noexcept {
  for_each_thread([&](pid_t tid) {
    if (tid != gettid() && !is_own_thread(tid)) each(tid);
  });
}

/// Returns whether the thread that ran main() has ended, judging from its list of robust mutexes:
/// the C library gives each thread one, and the kernel forgets it when the thread ends.
inline bool main_has_ended() noexcept {
  void* list = nullptr;
  std::size_t bytes = 0;
  const bool known = syscall(SYS_get_robust_list, gettid(), &list, &bytes) == 0 && list != nullptr;
  return known && syscall(SYS_get_robust_list, getpid(), &list, &bytes) == 0 && list == nullptr;
}

/// Returns whether the thread that ran main() has ended, and all other threads except those of the
/// library. Costs one system call as long as main() runs. Without /proc, the other threads are
/// unknown; then the result is whether main() has ended, because the library's threads must not
/// keep the process from ending.
inline bool only_own_threads_are_left() noexcept {
  // The first thread of a process stays listed after its end, but no longer has a program.
  char path[8];
  if (readlink("/proc/self/exe", path, sizeof(path)) >= 0 || errno != ENOENT) return false;
  if (access("/proc/self/task", F_OK) != 0) return main_has_ended();
  bool seen_itself = false;
  bool any_other = false;
  for_each_thread([&](pid_t tid) {
    if (tid == gettid()) {
      seen_itself = true;
    } else if (tid != getpid() && !is_own_thread(tid)) {
      any_other = true;
    }
  });
  return seen_itself && !any_other;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_PROCESS_THREADS_HPP

// Writes the sample file of a process, which contains the samples of the built-in profiler, next to
// the logs of the process.
#ifndef LOTUS_SAMPLING_SAMPLE_FILE_HPP
#define LOTUS_SAMPLING_SAMPLE_FILE_HPP

// Reads the build id of a program or library: a hash of its contents that the linker stores in it,
// so that another build of the file is recognized. Some linkers store none; then a hash of the
// file's headers, which contain the sizes of its code and data, takes its place.
#ifndef LOTUS_BASE_BUILD_ID_HPP
#define LOTUS_BASE_BUILD_ID_HPP

#include <elf.h>
#include <sys/uio.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A build id in hexadecimal digits; "" if it could not be read.
struct build_id {
  static constexpr std::size_t max_bytes = 32;
  char digits[2 * max_bytes + 1] = "";

  void set(const unsigned char* bytes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      digits[2 * i] = "0123456789abcdef"[bytes[i] >> 4U];
      digits[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15U];
    }
  }
};

/// Reads the build id of a 64-bit ELF file from its notes. Without one, returns a hash of its
/// headers.
/// @param begin  address at which the file begins.
/// @param read  read(address, to, bytes) copies bytes of the file, and returns whether it could.
template <class Read>
build_id read_build_id(std::uint64_t begin, const Read& read) noexcept {
  build_id id;
  Elf64_Ehdr file{};
  constexpr unsigned max_parts = 64;
  if (!read(begin, &file, sizeof(file)) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
      file.e_ident[EI_CLASS] != ELFCLASS64) {
    return id;
  }
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto add = [&hash](const auto& header) {
    unsigned char bytes[sizeof(header)];
    std::memcpy(bytes, &header, sizeof(header));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  };
  add(file);
  for (unsigned i = 0; i < file.e_phnum && i < max_parts; ++i) {
    Elf64_Phdr part{};
    if (!read(begin + file.e_phoff + i * sizeof(part), &part, sizeof(part))) return id;
    add(part);
    constexpr std::uint64_t max_notes = 4096;
    if (part.p_type != PT_NOTE || part.p_filesz > max_notes) continue;
    const std::uint64_t aligned = part.p_align == 8 ? 7 : 3;
    const auto rounded = [aligned](std::uint64_t bytes) { return (bytes + aligned) & ~aligned; };
    struct {
      Elf64_Nhdr head;
      char name[4];
    } note{};
    for (std::uint64_t at = 0; at + sizeof(note) <= part.p_filesz;) {
      const std::uint64_t from = begin + part.p_offset + at;
      if (!read(from, &note, sizeof(note))) return id;
      const std::uint64_t data = rounded(sizeof(note.head) + note.head.n_namesz);
      unsigned char bytes[build_id::max_bytes];
      if (note.head.n_type == NT_GNU_BUILD_ID && note.head.n_namesz == sizeof(note.name) &&
          std::memcmp(note.name, "GNU", sizeof(note.name)) == 0 &&
          note.head.n_descsz <= sizeof(bytes) && read(from + data, bytes, note.head.n_descsz)) {
        id.set(bytes, note.head.n_descsz);
        return id;
      }
      at += data + rounded(note.head.n_descsz);
    }
  }
  unsigned char bytes[sizeof(hash)];
  std::memcpy(bytes, &hash, sizeof(hash));
  id.set(bytes, sizeof(bytes));
  return id;
}

/// Returns the build id of a file that this process has mapped. Reads through the kernel, because
/// the file may be unmapped meanwhile.
/// @param begin  address at which the file's first byte is mapped.
inline build_id mapped_build_id(std::uint64_t begin) noexcept {
  return read_build_id(begin, [](std::uint64_t address, void* to, std::size_t bytes) {
    const iovec into{to, bytes};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
    const iovec from{reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
  });
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_BUILD_ID_HPP

// Defines the layout of a sample file, which the built-in collector and lotus-tool write.
//
// A sample file consists of a header and records. Each record begins with a perf_event_header,
// which contains the record's length. Records are either copied from the kernel
// (perf_event_open(2): PERF_RECORD_SAMPLE, _MMAP2, _FORK, _LOST), or of the types in own_record.
// Times are nanoseconds of CLOCK_MONOTONIC.
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
  std::uint32_t header_bytes;  ///< position of the first record in the file
  std::uint32_t pid;
  std::uint32_t unused;
  std::uint64_t interval_ns;  ///< CPU time between two samples of a thread
};

/// The fields that the kernel stores in each sample. sample_record has the same fields in this
/// order.
inline constexpr std::uint64_t samples_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
struct sample_record {
  perf_event_header header;
  std::uint64_t address;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t time_ns;
};

/// Types of records that the library adds to those of the kernel. Their numbers are far above those
/// of the kernel.
enum class own_record : std::uint32_t {
  clock = 0x4c4f0001,
  module = 0x4c4f0002,
  region = 0x4c4f0003,
  own_thread = 0x4c4f0004,
  build = 0x4c4f0005,
};

/// One moment, on the clock of samples (CLOCK_MONOTONIC) and on that of logs (CLOCK_REALTIME).
struct clock_record {
  perf_event_header header;
  std::int64_t monotonic_ns;
  std::int64_t realtime_ns;
};

/// Code mapped from a file. The file's path follows this struct, terminated and padded with zeros.
struct module_record {
  perf_event_header header;
  std::uint64_t begin;
  std::uint64_t end;
  /// Offset, in bytes, of the part of the file that is mapped at `begin`.
  std::uint64_t file_offset;
  std::uint64_t time_ns;  ///< time at which the library found the mapping
  std::uint32_t pid;
  std::uint32_t unused;
};

/// The build id of the file in the last module_record or PERF_RECORD_MMAP2 before it. The id
/// follows this struct as text, terminated and padded with zeros.
struct build_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t unused;
};

/// One execution of a LOTUS_MAP_REGION during which samples were taken. The region's name follows
/// this struct, terminated and padded with zeros.
struct region_record {
  perf_event_header header;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t pid;
  std::uint32_t tid;
};

/// A thread of the library, whose samples do not belong to the program.
struct own_thread_record {
  perf_event_header header;
  std::uint32_t pid;
  std::uint32_t tid;
};

static_assert(sizeof(samples_file_header) == 32 && sizeof(sample_record) == 32 &&
                  sizeof(clock_record) == 24 && sizeof(module_record) == 48 &&
                  sizeof(region_record) == 32 && sizeof(own_thread_record) == 16 &&
                  sizeof(build_record) == 16,
              "files are read by other builds");

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_LAYOUT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The sample file, which begin() creates. The first error is reported; after it nothing more is
/// written. Not thread-safe: class sampler locks a mutex where two threads could call a function at
/// the same time. Trivially destructible.
class sample_file {
 public:
  /// Creates the file. Its folder is the one that LOTUS_MAP_FOLDER names (lotus-tool sets the
  /// variable), or else that of the session's logs, or else, without a session, the current
  /// directory. Later calls do nothing.
  LOTUS_DETAIL_COLD void begin(std::uint64_t interval_ns) noexcept {
    if (tried_) return;
    tried_ = true;
    if (*directory_ == '\0') find_directory();
    char path[sizeof(directory_) + 64];
    std::snprintf(path, sizeof(path), "%s%s%u_%llx", directory_, samples_file_start,
                  static_cast<unsigned>(getpid()),
                  static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME)));
    file_ = owned_descriptor{open_at_high_fd(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0666)};
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
    // If the program has closed the descriptor, its number may already belong to another file.
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

  /// Records at which addresses the code of the program and of its shared objects is mapped now.
  void modules() noexcept {
    if (file_.number() < 0) return;
    std::uint64_t first = 0;  // where the beginning of a file is mapped, and the file's inode
    unsigned long long first_inode = 0;
    for_each_mapping([&](std::string_view line) {
      // A line of /proc/self/maps looks like "5566-7788 r-xp 00001000 08:01 1234 /path".
      module_record m{};
      unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
      char mode[8] = {};
      char head[96] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %7s %llx %*s %llu", &begin, &end, mode, &offset, &inode) !=
          5) {
        return false;
      }
      if (offset == 0 && inode != 0) {
        first = begin;
        first_inode = inode;
      }
      std::string_view path = mapped_path(line);
      if (path.empty()) path = line.substr(line.find('[') < line.size() ? line.find('[') : 0);
      if (mode[2] != 'x' || (path[0] != '/' && path != "[vdso]")) return false;
      m.begin = begin;
      m.end = end;
      m.file_offset = offset;
      m.time_ns = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
      m.pid = static_cast<std::uint32_t>(getpid());
      append_with_text(own_record::module, m, path);
      if (inode == 0 || inode != first_inode) return false;
      build_record b{};
      b.pid = m.pid;
      const build_id id = mapped_build_id(first);
      if (*id.digits != '\0') append_with_text(own_record::build, b, id.digits);
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

  /// Appends a second clock_record, which relates the clock of samples to that of logs, and closes
  /// the file.
  void finish() noexcept {
    if (file_.number() >= 0) clock();
    forget();
  }

  /// Forgets the parent's file in a forked child, so that begin() creates a file for the child. The
  /// folder stays the same, because the child may not have written logs yet.
  void forget_parent() noexcept {
    forget();
    tried_ = false;
  }

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

  /// Writes the folder that LOTUS_MAP_FOLDER names, and a final '/', to `path`. Returns the length;
  /// 0 if the variable is unset.
  static std::size_t asked_directory(char* path, std::size_t room) noexcept {
    const char* const folder = environment_text(variable::map_folder);
    if (folder == nullptr) return 0;
    const auto length = static_cast<std::size_t>(std::snprintf(path, room, "%s/", folder));
    if (length < room) return length;
    report_once(variable::map_folder, folder, say_of_variable);
    return 0;
  }

  /// Writes the folder of the logs, and a final '/', to `path`. The folder is found by the ring
  /// file in it, which is mapped while a session records. Returns the length; 0 if no session
  /// records.
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
  /// The file's directory, including the final '/'; empty: the current directory.
  char directory_[4096] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLE_FILE_HPP

// Manages the sampling events (perf_event_open(2)) of all threads of this process, and the kernel's
// ring buffers of samples.
#ifndef LOTUS_SAMPLING_SAMPLING_EVENTS_HPP
#define LOTUS_SAMPLING_SAMPLING_EVENTS_HPP

#include <sys/ioctl.h>
#include <sys/resource.h>

// Opens a sampling event of perf_event_open(2), and reads the ring buffer to which the kernel
// writes the event's samples.
#ifndef LOTUS_SAMPLING_PERF_RING_HPP
#define LOTUS_SAMPLING_PERF_RING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the attributes of an event that samples user code after every `interval_ns` of CPU time
/// of a thread, and of the threads and processes that the thread starts later. The event also
/// records which code they map and which threads and processes they start. It uses the CPU clock
/// instead of a hardware counter, because the CPU clock also works in virtual machines, and each
/// sample stands for the same time on every machine.
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

/// Opens a sampling event for a thread. Returns a descriptor or -errno.
/// @param cpu  number of the processor; -1: all processors, which is allowed if attr.inherit is 0.
inline int open_event(const perf_event_attr& attr, pid_t thread, int cpu) noexcept {
  const long fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
                          static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  const int moved = move_to_high_fd(static_cast<int>(fd));
  return moved < 0 ? -errno : moved;
}

/// The ring buffer of a sampling event, mapped into memory. It is never copied or destroyed; its
/// owner calls unmap(). Not thread-safe. A forked child does not inherit the mapping.
class perf_ring {
 public:
  /// Maps the ring of event `fd` with `pages` pages (a power of two), or with fewer if the kernel's
  /// limit for unprivileged users (perf_event_mlock_kb) does not allow as many. Returns 0 or errno.
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

  /// Passes to `sink(const char*, std::size_t)` the records that the kernel has written since the
  /// last call. If these records reach beyond the end of the ring, they are passed in two calls,
  /// and one record may be divided between the two.
  template <class Sink>
  void drain(Sink&& sink) noexcept {
    if (control_ == nullptr) return;
    const std::uint64_t head = counter(control_->data_head).load(std::memory_order_acquire);
    // Only this process changes data_tail, so it is read without atomics.
    std::uint64_t at = control_->data_tail;
    while (at != head) {
      const std::size_t offset = at % bytes_;
      const auto rest = static_cast<std::size_t>(head - at);
      const std::size_t segment = rest < bytes_ - offset ? rest : bytes_ - offset;
      sink(data_ + offset, segment);
      at += segment;
    }
    counter(control_->data_tail).store(head, std::memory_order_release);
  }

 private:
  /// Returns, as an atomic variable, a counter in the memory that is shared with the kernel.
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

/// Reports that the kernel forbids sampling, and what users can do about it.
inline void say_sampling_forbidden(int error) noexcept {
  say("the kernel does not let this process sample itself (perf_event_open: %s): set "
      "kernel.perf_event_paranoid to 2 or less, or give CAP_PERFMON; in a container also allow "
      "perf_event_open in the seccomp profile. Otherwise use the callgrind collector, which needs "
      "no permission",
      std::strerror(error));
}

/// Calls ioctl(2) on a perf event. C libraries declare the request as unsigned long or as int.
template <class Request, class Argument>
int perf_ioctl(int (*call)(int, Request, ...), int fd, unsigned long request,
               Argument argument) noexcept {
  return call(fd, static_cast<Request>(request), argument);
}

/// The sampling events. Every thread has one event per processor, which threads and processes that
/// the thread starts later inherit. All events of a processor share one ring. An event that is
/// disabled and enabled again continues with the time that remained until its next sample, so
/// samples do not always hit the same points of a region. Not thread-safe: class sampler locks a
/// mutex where two threads could call a function at the same time. Never copied or destroyed;
/// close() releases everything.
class sampling_events {
 public:
  static constexpr std::size_t most = 1024;

  /// Opens all sampling events without enabling them. Returns false, after reporting the reason, if
  /// the kernel forbids sampling.
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

  /// Writes the descriptors for which poll() must wait to `waits`, which has room for `most` of
  /// them. Returns their number.
  std::size_t to_wait_for(pollfd* waits) const noexcept {
    for (std::size_t i = 0; i < rings_; ++i) {
      waits[i] = {gone_[i] || !is_ours(i) ? -1 : fds_[i], POLLIN, 0};
    }
    return rings_;
  }
  /// Notes which threads have ended: poll() must not wait for their events, because it would return
  /// immediately. The rings of these events are still drained, because events of other threads may
  /// share them.
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
  /// Closes only the descriptors: a forked child inherits the descriptors but not the rings.
  void close_descriptors() const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) ::close(fds_[i]);
    }
  }

 private:
  static constexpr std::size_t ring_pages = 32;

  void request_all(unsigned long request) const noexcept {
    for (std::size_t i = 0; i < events_; ++i) {
      if (is_ours(i)) perf_ioctl(ioctl, fds_[i], request, 0);
    }
  }

  /// Returns the number by which the kernel identifies an event. An inode would not identify the
  /// event, because all anonymous files have the same inode.
  static std::uint64_t event_id(int fd) noexcept {
    std::uint64_t id = 0;
    return perf_ioctl(ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
  }
  /// Whether the descriptor still refers to this event: the program may have closed the descriptor.
  bool is_ours(std::size_t event) const noexcept { return event_id(fds_[event]) == ids_[event]; }

  void add(int fd) noexcept {
    ids_[events_] = event_id(fd);
    fds_[events_++] = fd;
  }

  /// Opens one event per processor for the calling thread. Processors that this thread may not use
  /// are included, because threads that it starts may use them.
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

  /// Opens events for the other threads: one per thread and processor or, if that needs too many
  /// descriptors, one per thread, which the threads that it starts do not inherit.
  void open_other_threads() noexcept {
    std::size_t threads = 0;
    for_each_other_thread([&](pid_t) { ++threads; });
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    const bool few =
        (threads + 1) * rings_ <= most && (threads + 1) * rings_ <= descriptors.rlim_cur / 2;
    for_each_other_thread([&](pid_t tid) {
      const int error = few ? open_into_rings(tid) : open_for_one_thread(tid);
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

  int open_for_one_thread(pid_t tid) noexcept {
    if (events_ == most) return EMFILE;
    perf_event_attr attr = attribute();
    attr.inherit = 0;
    return open_with_ring(attr, tid, -1);
  }

  /// Opens an event with a ring of its own. Call this function before other events are opened, so
  /// that the event in `fds_` and its ring in `ring_` have the same index. Returns 0 or errno.
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
  int fds_[most] = {};            ///< descriptor of each event
  std::uint64_t ids_[most] = {};  ///< the kernel's number of each event
  int cpus_[most] = {};           ///< processor of each ring
  /// Whether the thread of each ring's event has ended. Only the sampler's thread uses gone_ and
  /// some_gone_.
  bool gone_[most] = {};
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

/// Samples the threads of this process. A process has one sampler, which is never destroyed.
class sampler {
 public:
  static sampler& instance() noexcept {
    // An atomic pointer is used and not a static sampler: a child that is forked while another
    // thread initializes a static variable would wait forever.
    static std::atomic<sampler*> the_sampler{nullptr};
    sampler* known = the_sampler.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto* fresh = new (map_memory(sizeof(sampler))) sampler;
    return the_sampler.compare_exchange_strong(known, fresh) ? *fresh : *known;
  }

  /// Opens all sampling events without enabling them. Returns false, after reporting the reason, if
  /// the kernel forbids sampling.
  LOTUS_DETAIL_COLD bool begin(std::uint64_t interval_ns) noexcept {
    interval_ns_ = interval_ns;
    begun_in_ = getpid();
    pthread_t thread{};
    // The sampler's own thread is started before the events are opened, so that it is not sampled.
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

  /// Enables sampling. In a forked child, first opens events for the child.
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

  /// Records an execution of a LOTUS_MAP_REGION, and writes the samples so far, because the program
  /// may end without a call of finish().
  void region(const char* name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    forget_parent();
    const locked hold{guard_};
    drain();
    file_.region(name, begin_ns, end_ns);
  }

  /// Ends sampling, writes the remaining samples and closes the file.
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

  /// Records which threads belong to the library, so that their samples can be ignored. The
  /// session's drain thread is sampled too if it was started after the events were opened.
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

  /// Records all mapped code if shared objects were loaded or unloaded since the last call. The
  /// kernel itself records code that is mapped while sampling is enabled.
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

  /// In a forked child, resets this object, so that it samples the child and no longer the parent.
  /// The child does not inherit the rings, and must not enable or disable its parent's events.
  /// Those events still sample the child's work as part of the thread that forked it.
  void forget_parent() noexcept {
    if (begun_in_ == 0 || begun_in_ == getpid()) return;
    events_.close_descriptors();
    file_.forget_parent();
    const sample_file own = file_;
    new (this) sampler{interval_ns_};
    file_ = own;
  }

  /// The fork handler for children. In a child that was forked before the handler was registered,
  /// the first use of the sampler calls forget_parent() instead.
  static void after_fork_in_child() noexcept { instance().forget_parent(); }

  std::uint64_t interval_ns_;
  pid_t begun_in_ = 0;
  std::atomic<bool> drain_thread_runs_{false};
  std::atomic<std::uint32_t> events_are_open_{0};
  std::uint64_t module_changes_ = 0;

  mutex guard_;  ///< protects events_ and file_
  sampling_events events_;
  sample_file file_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SAMPLING_SAMPLER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns false, so that LOTUS_COLLECTOR=auto does not select this collector, which could sample
/// any program.
inline bool builtin_is_here() noexcept {
  return false;
}

inline const collector_backend* builtin_backend() noexcept {
  static constexpr collector_backend table = [] {
    collector_backend b;
    b.begin = []() noexcept {
      // The exit handler completes the sample file if the program never calls detach.
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
  const char* name;  ///< name of the collector in LOTUS_COLLECTOR
  /// Whether LOTUS_COLLECTOR=auto selects this collector, because the program runs under it.
  bool (*found_by_auto)() noexcept;
  /// Returns the collector's functions; null, after reporting the reason, if it cannot be used.
  const collector_backend* (*backend)() noexcept;
};

/// The collectors, in the order in which LOTUS_COLLECTOR=auto looks for them.
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

/// Returns the collector that the environment variable LOTUS_COLLECTOR selects; null if it selects
/// none, or if it selects `auto` and no collector is present.
inline const collector_kind* chosen_collector() noexcept {
  // The words of the variable are: auto, then the collectors in the order of collector_kinds, then
  // none.
  constexpr std::size_t none = sizeof(collector_kinds) / sizeof(collector_kinds[0]) + 1;
  const std::size_t place = environment_word(variable::collector, none, say_of_variable);
  if (place == none) return nullptr;
  if (place > 0) return &collector_kinds[place - 1];
  for (const collector_kind& kind : collector_kinds) {
    if (kind.found_by_auto()) return &kind;
  }
  return nullptr;
}

/// The collector of the process. Its functions are virtual, so that all shared objects run the code
/// of the shared object that created it.
class collector_state {
 public:
  collector_state() noexcept : kind_{chosen_collector()} {
    const collector_backend* backend = kind_ != nullptr ? kind_->backend() : nullptr;
    if (backend != nullptr && backend->begin()) backend_ = backend;
  }
  virtual ~collector_state() = default;

  /// Whether there is a collector that was not detached and still answers.
  bool exists() const noexcept { return backend_.load(std::memory_order_relaxed) != nullptr; }

  /// Starts collecting, unless an outer call of resume() has already done so. Returns false if no
  /// data is collected.
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
  /// Whether the collector counts every instruction from resume() to pause(), including the
  /// library's own, as callgrind does.
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

  /// Returns the lock of this object. The first call in a forked child creates the lock again,
  /// because a thread of the parent may have held it during the fork.
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

/// Name by which shared objects find the process's collector_state. Increase the number 4 in the
/// name whenever the layout of collector_state changes.
inline constexpr char collector_page_name[] = "lotus-collector-4-v" LOTUS_DETAIL_STRINGIZE(
    LOTUS_VERSION_MAJOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) ";";

/// The collector of the process as this shared object has found it; look_for_collector() runs only
/// once.
LOTUS_DETAIL_PER_MODULE inline lazy_lookup<collector_state*> this_collector;

/// Returns the collector of the process. The first call in the process creates it. Returns null if
/// no profiler can be controlled.
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

// Implements LOTUS_MAP_REGION, which runs a block of the program as often as environment variables
// request, while a profiler observes it.
#ifndef LOTUS_ENGINE_MAP_PASSES_HPP
#define LOTUS_ENGINE_MAP_PASSES_HPP

// Defines the state that the session keeps for each thread: struct producer.
#ifndef LOTUS_RECORD_THREAD_HPP
#define LOTUS_RECORD_THREAD_HPP

// Provides the time without a system call, from a counter of ticks that was compared with the clock
// before.
#ifndef LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP
#define LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP

#include <algorithm>
#include <ctime>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// CLOCK_MONOTONIC_RAW, which is not adjusted to other clocks. Extrapolates from the last reading,
/// because a reading may take as long as a system call if it is not in the CPU's caches. Not
/// thread-safe. Trivially destructible.
class extrapolated_clock {
 public:
  /// Whether ticks can be converted to ns.
  bool is_known() const noexcept { return ns_per_tick_ > 0; }
  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }
  /// Call this function only if is_known().
  std::uint64_t to_ticks(double ns) const noexcept {
    return static_cast<std::uint64_t>(ns / ns_per_tick_);
  }

  /// Returns the time in ns.
  /// @param ticks  the present number of ticks.
  std::int64_t ns(std::uint64_t ticks) noexcept {
    const std::uint64_t passed = ticks - last_ticks_;
    // A small part of the time in which the rate was measured, so that the result is as exact as
    // the readings were.
    const bool near = passed < (last_ticks_ - first_ticks_) / 32;
    const std::int64_t passed_ns = to_ns(passed);
    return near && passed_ns < max_extrapolated_ns ? last_ns_ + passed_ns : read(ticks);
  }

  /// Like ns(), but always reads the clock.
  std::int64_t read(std::uint64_t ticks) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::int64_t wrong_ns = now_ns - last_ns_ - to_ns(ticks - last_ticks_);
    // While the machine sleeps, the ticks may continue or stop.
    const bool jumped = is_known() && std::max(wrong_ns, -wrong_ns) > max_wrong_ns;
    if (first_ticks_ == 0 || jumped) {
      first_ticks_ = ticks;
      first_ns_ = now_ns;
      ns_per_tick_ = 0;
    }
    if (ticks > first_ticks_) {
      ns_per_tick_ =
          static_cast<double>(now_ns - first_ns_) / static_cast<double>(ticks - first_ticks_);
    }
    last_ticks_ = ticks;
    last_ns_ = now_ns;
    return now_ns;
  }

 private:
  static constexpr std::int64_t max_extrapolated_ns = 20'000'000;
  static constexpr std::int64_t max_wrong_ns = 1'000'000;

  // Two readings: the first one, or the first after the machine slept, and the last one.
  std::uint64_t first_ticks_ = 0;
  std::int64_t first_ns_ = 0;
  std::uint64_t last_ticks_ = 0;
  std::int64_t last_ns_ = 0;
  double ns_per_tick_ = 0;  ///< 0: unknown
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_EXTRAPOLATED_CLOCK_HPP

// Finds out whether code that a signal handler interrupted will continue when the handler returns.
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

/// Walks up this thread's stack to the frame at the address `place`, to find out whether a signal
/// handler interrupted the code there.
struct stack_walk {
  /// Tolerance, in bytes, in the comparison of stack addresses: when it was interrupted, the code
  /// at `place` may have been in a small function that it called, or about to return.
  static constexpr std::uintptr_t near_bytes = 4096;

  /// Minimum size in bytes of the frame that the kernel puts on the stack of a signal handler.
  static constexpr std::uintptr_t signal_frame_bytes = 1024;

  std::uintptr_t place;
  /// Bounds of an alternate signal stack whose frames are skipped; both 0 if none are skipped.
  std::uintptr_t other_begin;
  std::uintptr_t other_end;
  bool from_signal = false;  ///< whether a signal interrupted the previous frame
  bool interrupted = false;  ///< result: a running handler interrupted the code at `place`
  /// result: the walk has passed `place`, and no running signal handler interrupted the code there
  bool passed = false;

  static _Unwind_Reason_Code visit(_Unwind_Context* frame, void* of) noexcept {
    auto& walk = *static_cast<stack_walk*>(of);
    // libgcc sets the flag before_instruction for the frame that a signal interrupted; LLVM sets it
    // for the frame called by that frame.
    int before_instruction = 0;
    static_cast<void>(_Unwind_GetIPInfo(frame, &before_instruction));
    const bool may_be_interrupted = before_instruction != 0 || walk.from_signal;
    walk.from_signal = before_instruction != 0;
    const auto at = static_cast<std::uintptr_t>(_Unwind_GetCFA(frame));
    if (at >= walk.other_begin && at < walk.other_end) return _URC_NO_REASON;
    const std::uintptr_t distance = at > walk.place ? at - walk.place : walk.place - at;
    walk.interrupted = may_be_interrupted && distance < near_bytes;
    walk.passed = !walk.interrupted && at > walk.place && distance >= near_bytes;
    return walk.interrupted || walk.passed ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
};

/// Whether a signal handler that is running on this thread interrupted the code at `place`, so that
/// this code continues when the handler returns. If not, a handler has abandoned that code by
/// siglongjmp. If the stack cannot be walked, because functions have no unwind tables, returns
/// false only if a handler would run further down the stack than the caller.
/// @param place  result of stack_pointer() in the code that may have been interrupted.
LOTUS_DETAIL_COLD inline bool is_interrupted(std::uintptr_t place) noexcept {
#ifdef LOTUS_DETAIL_THREAD_SANITIZER
  // ThreadSanitizer calls signal handlers as plain functions, so the stack does not show which code
  // a signal interrupted. Therefore the code at `place` counts as interrupted.
  return place != 0;
#else
  stack_t other{};
  const bool known = sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE) == 0;
  const auto begin = known ? reinterpret_cast<std::uintptr_t>(other.ss_sp) : 0;
  const auto end = known ? begin + other.ss_size : 0;
  const bool is_there = place >= begin && place < end;
  const bool runs_on_other_stack = known && (other.ss_flags & SS_ONSTACK) != 0;
  if (is_there && !runs_on_other_stack) return false;
  stack_walk walk{place, is_there ? 0 : begin, is_there ? 0 : end};
  _Unwind_Backtrace(stack_walk::visit, &walk);
  if (walk.interrupted || walk.passed) return walk.interrupted;
  return is_there || runs_on_other_stack ||
         stack_pointer() + stack_walk::signal_frame_bytes <= place;
#endif
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_INTERRUPTION_HPP

// Defines the layout of a ring file, which contains the rings of a process. If the process dies,
// the records that are not in its logs yet can be recovered from this file alone.
//
// A ring file consists of a header and blocks. The header of each block contains the block's
// length; a block of kind `none` marks the end of the file.
#ifndef LOTUS_RECORD_RING_LAYOUT_HPP
#define LOTUS_RECORD_RING_LAYOUT_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr char ring_file_magic[8] = {'L', 'O', 'T', 'U', 'S', 'R', 'N', 'G'};
inline constexpr std::uint32_t ring_file_layout = 6;
/// The size of each block is a multiple of this.
inline constexpr std::size_t min_page_bytes = 4096;
inline constexpr std::size_t max_prefix_bytes = 200;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "processes share these");

/// Flags in the header of a ring file.
inline constexpr std::uint32_t ticks_are_ns_flag = 1;  ///< ticks are ns of CLOCK_MONOTONIC
inline constexpr std::uint32_t compact_flag = 2;       ///< logs are in the compact format
/// Set when the aggregates in this ring file have been written to files of their own.
inline constexpr std::uint32_t aggregates_recovered_flag = 4;

struct ring_file_header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t header_bytes;  ///< offset of the first block in the file
  std::uint32_t pid;
  std::uint32_t flags;  ///< any of ticks_are_ns_flag, compact_flag and aggregates_recovered_flag
  char version[16];
  /// Prefix of the logs' names; the logs are in the ring file's directory.
  char prefix[max_prefix_bytes + 1];
  std::atomic<std::uint32_t> clock_index;
  clock_map clocks[2];  ///< clocks[clock_index] is valid at every moment, even after a kill
  /// CLOCK_REALTIME at the recording's start, in ns; unique among the recordings of a process.
  std::uint64_t began_ns;
};

/// The logs of a thread. The main and the worker log are in the text format of the paper "Lotus"; a
/// hidden side log contains the records that this format cannot express.
enum class log_role : std::uint32_t { main = 0, worker = 1, side = 2 };
inline constexpr std::size_t log_roles = 3;

/// A log file, and its length at the last commit. Up to this length, it consists of complete lines.
struct log_position {
  std::uint64_t inode;   ///< inode of the log file; 0: nothing was written yet
  std::uint64_t length;  ///< length of the committed lines in bytes
  bool appending;  ///< whether bytes after `length` may be part of an append that was not committed
  std::uint32_t number = 0;  ///< number at the end of the log's name; 0: the id of the thread
  std::uint32_t loader = 0;  ///< id of the name of the log's loader; 0: the default loader
};

/// Number of lanes of a ring; a lane is a circular buffer of records. The thread stores records in
/// the main lane. A signal handler that interrupts the storing of a record uses the interrupt lane,
/// so that it does not overwrite the unfinished record.
inline constexpr std::size_t lanes = 2;
inline constexpr std::size_t interrupt_lane_records = 64;
/// Minimum size of the main lane in records.
inline constexpr std::uint32_t min_ring_records = 64;

struct commit_point {
  std::uint64_t tail[lanes];  ///< position in each lane before which all records are in the logs
  /// Id of the name of the loader to which the first record after the main lane's tail belongs.
  std::uint32_t loader;
  /// Number of records that were moved from the ring to memory and are not in the logs yet.
  std::uint32_t in_memory;
  log_position logs[log_roles];
};

struct ring_block {
  block_header header;
  /// Id of the thread; its logs are named after the id if possible.
  std::atomic<std::uint32_t> tid;
  std::uint32_t capacity;  ///< size of the main lane in records, a power of two
  /// Position in each lane before which all records are completely stored.
  alignas(64) std::atomic<std::uint64_t> published[lanes];
  /// Start of the thread's current wait for a batch, in ticks; 0: the thread is not waiting.
  std::atomic<std::uint64_t> waiting_since;
  alignas(64) std::atomic<std::uint32_t> commit_index;
  commit_point commits[2];  ///< commits[commit_index] is valid at every moment, even after a kill
  record interrupt_slots[interrupt_lane_records];
  // The main lane, an array of `capacity` records, follows this struct in memory.

  record* slots() noexcept { return reinterpret_cast<record*>(this + 1); }
  record& slot(std::size_t lane, std::uint64_t position) noexcept {
    return lane == 0 ? slots()[position & (capacity - 1)]
                     : interrupt_slots[position % interrupt_lane_records];
  }
  /// Returns how many records in the main lane are not in the logs yet.
  std::uint64_t used() const noexcept {
    return published[0].load(std::memory_order_relaxed) - committed().tail[0];
  }
  bool full() const noexcept { return used() >= capacity; }
  /// Appends a record to the main lane, which must not be full.
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

/// A block with the names of operations and their ids. The entries follow this struct in memory.
/// Each entry is a stored_name and its text, padded to a multiple of 8 bytes.
struct names_block {
  block_header header;
  std::atomic<std::uint64_t> used_bytes;  ///< total size of the complete entries

  char* entries() noexcept { return reinterpret_cast<char*>(this + 1); }
};

struct stored_name {
  std::uint32_t id;
  std::uint32_t bytes;  ///< length of the text that follows: "S<name>,"
};

constexpr std::size_t padded_name_bytes(std::size_t text_bytes) noexcept {
  return (sizeof(stored_name) + text_bytes + 7) & ~std::size_t{7};
}

// The ring file has two file locks (F_OFD_SETLK), each on one byte. At most one process holds each
// lock.
inline constexpr off_t owner_lock_byte = 0;     ///< held by the writing process while it runs
inline constexpr off_t recovery_lock_byte = 1;  ///< held by the process that recovers the file

/// Describes a lock on one byte of the file.
/// @param type  F_WRLCK or F_UNLCK.
inline struct flock byte_lock(short type, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

/// Tries to lock a byte of the file. Returns 0 or errno; EAGAIN if another process holds the lock.
inline int take_file_lock(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_WRLCK, byte);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno == EACCES ? EAGAIN : errno;
}

/// Releases a lock that this process holds, even if mappings keep the open file description alive.
inline void release_file_lock(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_UNLCK, byte);
  static_cast<void>(fcntl(fd, F_OFD_SETLK, &lock));
}

inline bool file_lock_is_taken(int fd, off_t byte) noexcept {
  struct flock lock = byte_lock(F_WRLCK, byte);
  // If the lock cannot be tested, it counts as taken, so that the file is not changed or deleted.
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Rounds the size of a block up to whole pages of this machine, because each block is mapped into
/// memory on its own.
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

/// How long a thread was off the CPU since the previous reading of its clocks.
struct off_cpu_time {
  std::uint64_t off_ns = 0;  ///< time off the CPU; 0 if there was none, or if it is unknown
  /// The part of off_ns in which the thread waited for a CPU, or run_queue_unknown.
  std::uint64_t run_queue_ns = 0;
};

/// A thread's schedstat file, and what it contained when it was last read.
struct run_queue_file {
  owned_descriptor descriptor;
  std::int64_t checked_ns = 0;  ///< when the descriptor was last checked
  std::int64_t cpu_ns = 0;
  std::int64_t queue_ns = 0;
};

/// How much of a thread's time off the CPU was time in the run queue. The recorded time includes
/// predictions; see store/run_queue_account.hpp.
struct run_queue_account {
  run_queue_file file;
  std::int64_t recorded_ns = 0;
  std::int64_t queue_ns = 0;       ///< the last reading of the time in the run queue; -1: unknown
  std::int64_t unread_off_ns = 0;  ///< time off the CPU recorded since that reading
  /// The waits for a CPU since that reading, if threads waited for CPUs only while they computed.
  std::int64_t predicted_ns = 0;
  double share = 0;  ///< the share of waits for a CPU in the time before that reading
  /// How many times in a row predicted_ns was right when queue_ns was read.
  std::uint32_t right_predictions = 0;
  std::uint64_t due_ticks = 0;  ///< when the next reading is allowed
};

/// The moments between which a thread was off the CPU.
struct off_cpu_window {
  /// The last known moment at which the thread was on the CPU; 0 if unknown.
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
};

/// How much of a thread's time off the CPU has been recorded already. Only that thread uses the
/// object. The recorded time includes estimates; see store/cpu_clock.hpp.
struct cpu_account {
  /// Stack pointer of the thread while it reads its clocks, otherwise 0. A signal handler that
  /// finds this value set has interrupted the reading, and does not read the clocks.
  std::uintptr_t reading = 0;
  bool begun = false;
  std::uint32_t futile = 0;  ///< number of consecutive calls that found no time off the CPU
  std::int64_t futile_since_ns = 0;

  extrapolated_clock wall;
  std::int64_t recorded_off_ns = 0;
  std::int64_t off_ns = 0;  ///< wall time minus CPU time when the CPU clock was last read
  /// The share of the windows before the last reading in which the thread was off the CPU.
  double off_share = 0;

  std::uint64_t looked_ticks = 0;  ///< when the thread last found that it was switched out
  std::uint64_t window_ticks = 0;  ///< total length of the windows since the last reading
  std::uint64_t due_ticks = 0;     ///< when the next reading is allowed
  run_queue_account queue;
};

/// The session's state of one thread. A producer belongs to one thread until that thread is dead,
/// even if its ring is replaced. It is never freed, but reused for another thread.
struct producer : aggregating_ring {
  cpu_account cpu;  ///< the time off the CPU that records already contain; used by this thread only

  // The session uses the following members while it holds `guard`.
  alignas(64) mutex guard;
  std::atomic<std::uint32_t> tid{0};  ///< id of the thread; 0: the producer is free
  ring_block* ring = nullptr;
  /// Whether the ring is in a file and so survives the death of the process.
  bool ring_in_file = false;
  /// Whether the ring must be replaced before the thread's next record, because its file was
  /// deleted together with the run's directory.
  bool ring_file_deleted = false;
  bool attached = false;  ///< whether the ring belongs to the current recording
  /// The thread's logs. Class kept_logs limits how many threads' logs stay open between two drains.
  open_log logs[log_roles];
  bool logs_kept_open = false;
  bool shares_logs = false;  ///< whether the logs also contain records of earlier or later threads
  /// How often log_retention::roll_all() had been called when the logs last became parts because of
  /// such a call. If there were more calls since then, the logs become parts at the next drain.
  std::uint32_t rolls = 0;
  /// Bytes on the disk of the logs that the thread's next records continue, if logs are limited.
  std::uint64_t log_blocks = 0;
  /// How many records the ring had got when log_retention::roll_dead() was last called.
  std::uint64_t records_before = 0;
  /// State of the encoder that writes the thread's compact log; null if there is none; never freed.
  compact_chain* chain = nullptr;
  backlog_chunk* backlog_first = nullptr;
  backlog_chunk* backlog_last = nullptr;
  producer* next = nullptr;
};

/// Returns whether the caller is a signal handler that interrupted the storing of a record. If an
/// earlier handler exited by siglongjmp, so that the storing will never continue, resets `storing`.
inline bool interrupts_storing(thread_ring& ring) noexcept {
  const std::uintptr_t place = ring.storing.load(std::memory_order_relaxed);
  if (place == 0) return false;
  if (is_interrupted(place)) return true;
  ring.storing_nested.store(0, std::memory_order_relaxed);
  ring.storing.store(0, std::memory_order_relaxed);
  return false;
}

/// Returns this thread's producer; null if it has none.
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

/// Reports once that the list of the program's regions cannot be written.
/// @param path  path of the list. The reason is in `errno`.
inline void cannot_write_list(const char* path) noexcept {
  report_once(variable::map_list, path, [](const variable_row& row, std::string_view bad) noexcept {
    say("%s: cannot write %.*s: %s", row.name, static_cast<int>(bad.size()), bad.data(),
        std::strerror(errno));
  });
}

/// Spins for a random time in [0, `longest_ns`), so that the first sample can hit any part of the
/// operation. Without this delay the first sample would always come one interval after the sampler
/// was resumed, and operations shorter than an interval would never be sampled. lotus-tool's
/// reports exclude samples in this function by its name. So this function calls no other function:
/// samples in a called function would be reported.
/// @param longest_ns  upper limit in hardware ticks, in spite of its name.
__attribute__((noinline)) inline void lotus_map_wait(std::uint64_t longest_ns) noexcept {
  // This is one step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), with the clock as its input.
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

/// Returns hardware ticks per nanosecond. The first call measures for a millisecond. The result is
/// not a local static variable with an initializer: a child that is forked during the
/// initialization would wait forever.
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
  // Joins the session now, so that its threads are started before the profiler looks for the
  // threads of the program.
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
        "region %s was left during its warm-up, by break, return or an exception, so nothing was "
        "collected; set LOTUS_MAP_WARMUP=0 to collect from its first pass",
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
  // The name is stored and the session joined before the collector is switched on, so that this
  // work is not part of the profile.
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
  // The region begins after the clocks were read, so the time that the reading took is added to the
  // start.
  const std::uint64_t before = detail::hardware_ticks();
  begin_ns_ = detail::clock_ns(CLOCK_MONOTONIC);
  begin_ticks_ = detail::now_ticks();
  begin_ns_ += ns_since(before);
  // callgrind counts every instruction. So counting is switched on as the last action here, and off
  // as the first action in end_pass().
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

/// Called before a region that is nested in this region begins. Makes callgrind write its counts so
/// far under this region's name, because callgrind assigns all counts since the last dump to the
/// name of the next dump.
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
  if (collector_ == nullptr) return 0;  // without a profiler the value is not used
  return static_cast<std::int64_t>(static_cast<double>(detail::hardware_ticks() - ticks) /
                                   detail::ticks_per_ns());
}

/// Appends this region's name to the list of regions, if lotus-tool has requested one.
inline void map_region::list() const noexcept {
  const char* const path = detail::environment_text(detail::variable::map_list);
  if (path == nullptr) return;
  const int fd = detail::open_at_high_fd(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0666);
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

// Defines the slow paths of recording: a thread's first record, a full ring, reading CPU clocks.
#ifndef LOTUS_RECORD_RARE_CALLS_HPP
#define LOTUS_RECORD_RARE_CALLS_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM std::uint64_t monotonic_ticks() noexcept {
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

/// Returns this thread's producer (the session's state of the thread), which the first call
/// creates; null if it cannot be created.
/// @param begins  whether all spans that the thread will record begin after this call.
LOTUS_DETAIL_PER_MODULE inline producer* find_producer(const services& s,
                                                       bool begins = true) noexcept {
  if (this_ring == nullptr) this_ring = s.this_thread(begins);
  return this_producer();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_first(const record& r) noexcept {
  const services& s = join_session(true);
  // The record is not from a scope, because a scope gives its thread a producer when it begins, and
  // this thread has none. So the record's span may have begun before this call.
  if (producer* const p = find_producer(s, false)) s.push_slow(*p, r);
}

/// Reports once that a record was not completely stored, and perhaps never will be.
LOTUS_DETAIL_COLD inline void say_abandoned() noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  say("a signal handler that interrupted the storing of a record left it by siglongjmp or by "
      "switching fibres: records of this thread may be missing, which are not counted");
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void push_slow(thread_ring& ring, const record& r) noexcept {
  const services& s = *this_module.hub.load(std::memory_order_acquire);
  auto& p = static_cast<producer&>(ring);
  const bool storing = p.storing.load(std::memory_order_relaxed) != 0;
  if (!storing) return s.push_slow(p, r);
  if (interrupts_storing(p)) return s.push_nested(p, r);
  say_abandoned();
  push(r.begin_ticks, r.end_ticks, r.tag);
}

/// Returns when the last recorded span ended, which is at most `now`; 0 if that is unknown.
inline std::uint64_t last_end_ticks(const producer& p, std::uint64_t now) noexcept {
  const std::uint64_t at = p.published->load(std::memory_order_relaxed);
  if (at == 0 || p.slots == nullptr) return 0;
  const record& last = p.slots[(at - 1) & p.mask];
  // In records of events, end_ticks may be a number.
  const bool ends = last.end_ticks >= last.begin_ticks && last.end_ticks <= now;
  return ends ? last.end_ticks : std::min(last.begin_ticks, now);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void read_cpu(std::uint64_t ticks,
                                                  std::uint64_t begin_ticks) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s);
  if (p == nullptr) return;
  if (ticks == 0) ticks = now_ticks();
  record_tag aggregated;
  const std::uint64_t own_ticks = s.aggregated_ticks(*p, &aggregated);
  if (own_ticks != 0) push(ticks - own_ticks, ticks, aggregated);
  if (this_cpu_watch.unmark()) return;
  const off_cpu_time found =
      s.read_cpu(*p, this_cpu_watch, {std::max(begin_ticks, last_end_ticks(*p, ticks)), ticks});
  if (found.off_ns != 0) push(ticks, found.off_ns, {event_kind::off_cpu, found.run_queue_ns});
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void get_ring() noexcept {
  const services& s = join_session(true);
  if (producer* const p = find_producer(s)) s.get_ring(*p);
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void mark_watch() noexcept {
  // If this shared object has not set up the thread's cpu_watch yet, read_cpu() does so.
  if (this_cpu_watch.word == &never_looked) read_cpu(0, 0);
  this_cpu_watch.mark();
}

LOTUS_DETAIL_COLD LOTUS_DETAIL_SEAM void aggregate_slow(aggregate_call call, bool taken) noexcept {
  const services& s = join_session(true);
  producer* const p = find_producer(s, false);
  if (p == nullptr) return;
  // Signal handlers of this thread also change what this function checks and then changes.
  const signals_blocked quiet;
  thread_aggregates& a = aggregates_of(*p);
  const std::uintptr_t place = a.storing.load(std::memory_order_relaxed);
  if (place != 0 && is_interrupted(place)) {
    if (a.interrupting < thread_aggregates::max_interrupting) {
      a.interrupting_calls[a.interrupting++] = call;
    } else {
      p->dropped.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  if (place != 0) {
    // A signal handler interrupted this thread while the thread added a call, and exited by
    // siglongjmp. The unfinished addition will never continue, so it is undone.
    if (aggregates_block* const in = gate_of(*p).aggregates.load(std::memory_order_acquire)) {
      a.undo_unfinished(*in);
    }
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

// Provides the functions through which the shared objects of a process call its session.
#ifndef LOTUS_SESSION_SESSION_SERVICES_HPP
#define LOTUS_SESSION_SESSION_SERVICES_HPP

// Shows scopes on the timelines of the profilers that the environment variable LOTUS_ANNOTATE
// names: VTune (itt), Nsight Systems (nvtx) and PyTorch's profiler (torch).
#ifndef LOTUS_COLLECTORS_ANNOTATE_HPP
#define LOTUS_COLLECTORS_ANNOTATE_HPP

#include <optional>

// Shows ranges in NVIDIA's Nsight tools through the binary interface (NVTX 3) of a library that
// these tools name in the environment. NVTX's headers are not needed: the types below have its
// binary layout.
#ifndef LOTUS_COLLECTORS_NVTX_HPP
#define LOTUS_COLLECTORS_NVTX_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The Nsight tool sets this variable to the path of its library.
inline constexpr char nvtx_library_variable[] = "NVTX_INJECTION64_PATH";

struct nvtx_domain;

/// Has the layout of NVTX's struct nvtxEventAttributes_v2.
struct nvtx_event {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(nvtx_event);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  ///< 1: the message is a char*
  const char* message = nullptr;

  static constexpr std::int32_t payload_u64 = 1;
};
static_assert(sizeof(nvtx_event) == 48, "as the tool reads it");

/// The functions of the Nsight tool; null for functions that the tool lacks. The object is never
/// destroyed, because the tool keeps pointers to it.
class nvtx_library {
 public:
  nvtx_domain* (*domain_create)(const char*) = nullptr;
  int (*range_push)(nvtx_domain*, const nvtx_event*) = nullptr;
  int (*range_pop)(nvtx_domain*) = nullptr;
  /// range_start and range_end begin and end a range that may end on another thread.
  std::uint64_t (*range_start)(nvtx_domain*, const nvtx_event*) = nullptr;
  void (*range_end)(nvtx_domain*, std::uint64_t) = nullptr;
  nvtx_domain* domain = nullptr;  ///< the domain "lotus"

  /// Returns the library whose path the Nsight tool has set in the environment; the first call
  /// loads and initializes it. Returns null, after reporting the reason, if it cannot be loaded.
  /// Thread safety: any thread.
  static const nvtx_library* get() noexcept {
    static lazy_lookup<const nvtx_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  using function = void (*)();
  using function_table = function**;
  /// Has the layout of NVTX's struct NvtxExportTableCallbacks.
  struct callbacks {
    std::size_t size;
    int (*function_table_of)(int module, function_table* table, unsigned* functions);
  };
  /// Has the layout of NVTX's struct NvtxExportTableVersionInfo.
  struct version_info {
    std::size_t size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_version)(std::uint32_t);
  };

  // Numbers by which NVTX's binary interface identifies modules (groups of functions), functions
  // and tables.
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
      say("%s is not an NVIDIA collector: its InitializeInjectionNvtx2 %s", path,
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

  /// The Nsight tool calls this function to find out where to store the addresses of its functions:
  /// five of them in members of this object, all others in one variable that nothing reads.
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

/// The profilers that the environment variable LOTUS_ANNOTATE requests and that the library has
/// found.
struct annotators {
  const itt_domain* itt = nullptr;
  const nvtx_library* nvtx = nullptr;
  bool torch = false;  ///< whether PyTorch's profiler is requested; see torch_annotation
};

LOTUS_DETAIL_PER_MODULE inline lazy_lookup<annotators> chosen_annotators;
/// The annotation functions for PyTorch's profiler; null if no file of the program includes
/// lotus/torch.hpp.
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
  // Bit i stands for word i of the words that environment_table lists for LOTUS_ANNOTATE.
  const std::uint32_t given = environment_words(variable::annotate, say_of_variable);
  if ((given & 1U) != 0) found.itt = find_itt_domain();
  if ((given & 2U) != 0) found.nvtx = nvtx_library::get();
  found.torch = (given & 4U) != 0;
  return found;
}

/// Finds the profilers that LOTUS_ANNOTATE requests. The first call may load a profiler's library,
/// so the caller must hold no lock. Other threads do not wait for the library: until it is
/// loaded, the profilers do not show their scopes. Errors: reported once. Thread safety: any
/// thread.
LOTUS_DETAIL_PER_MODULE inline void choose_annotation() noexcept {
  chosen_annotators.get_at_once(find_annotators, {});
}

/// Whether choose_annotation() found a profiler; false until it has finished.
LOTUS_DETAIL_PER_MODULE inline bool annotation_wanted() noexcept {
  const annotators to = chosen_annotators.known({});
  return to.itt != nullptr || to.nvtx != nullptr ||
         (to.torch && torch_annotation.load(std::memory_order_acquire) != nullptr);
}

/// A name as a null-terminated string, at most 255 bytes long, to pass to a profiler.
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

/// Returns the handle by which VTune identifies a text. The first call for a text creates the
/// handle and stores it in `handle`.
inline itt_string_handle* itt_handle(const char* text, std::atomic<void*>& handle) noexcept {
  auto* known = static_cast<itt_string_handle*>(handle.load(std::memory_order_acquire));
  if (known == nullptr) {
    known = itt_library::get()->string_handle_create(text);
    handle.store(known, std::memory_order_release);
  }
  return known;
}

LOTUS_DETAIL_PER_MODULE inline std::atomic<void*> number_handle{nullptr};

/// Attaches a number to a task, so that VTune shows the number with the task.
/// @param task  id of the task; all zeros: this thread's innermost task.
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

/// Begins a task (an interval on a profiler's timeline) on this thread. Call this function only if
/// annotation_wanted() is true.
/// @param name    copied, and cut at 255 bytes.
/// @param handle  VTune's handle for this name; null before the first task with this name, which
///   stores the handle here.
/// @param number  number of the batch or stage, which is shown next to the name.
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

/// The tasks of asynchronous operations that have begun and not ended; they may end on other
/// threads. If too many are open at the same time, further tasks are not shown. Thread safety: any
/// thread, but one at a time for each task number.
class async_tasks {
 public:
  struct task {
    std::atomic<std::uint64_t> key;  ///< the task's number + 1; 0 if this array element is free
    std::uint64_t nvtx_range;
  };

  /// Reserves an array element for a task. Returns null if none is free.
  task* begin(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < max_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      std::uint64_t none = 0;
      if (place.key.compare_exchange_strong(none, std::uint64_t{number} + 1)) return &place;
    }
    return nullptr;
  }
  /// Returns the array element of a task; null if the task has not begun. When the caller ends the
  /// task, it must set the key to 0, which frees the element.
  task* find(std::uint32_t number) noexcept {
    for (std::uint32_t i = 0; i < max_probes; ++i) {
      task& place = tasks_[(number + i) % places];
      if (place.key.load() == std::uint64_t{number} + 1) return &place;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint32_t places = 1024;
  static constexpr std::uint32_t max_probes = 16;

  task tasks_[places]{};
};
LOTUS_DETAIL_PER_MODULE inline async_tasks open_async_tasks;

inline itt_id itt_id_of_async(const itt_domain* domain, std::uint32_t number) noexcept {
  return {reinterpret_cast<std::uintptr_t>(domain), std::uint64_t{number} + 1, 0};
}

/// Begins a task for an asynchronous operation. Such a task may overlap other tasks of this thread
/// and end on another thread. PyTorch's profiler supports neither, so it does not show these tasks.
/// Call this function only if annotation_wanted() is true.
/// @param number  number of the operation; no other operation that has begun and not ended has the
/// same number. For the other parameters see begin_task().
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

/// Ends the task that begin_async_task() began with this number, on any thread; does nothing if
/// there is none.
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

// Defines how the names of operations are written in log lines, and a table that maps names to ids.
#ifndef LOTUS_RECORD_NAMES_HPP
#define LOTUS_RECORD_NAMES_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline constexpr std::size_t max_name_bytes = 1024;  ///< longer names are cut to this length
inline constexpr std::size_t max_line_name_bytes = 1 + 3 * max_name_bytes;

/// Writes "S" and the name to `out` in the form that log lines contain. `out` must have room for
/// max_line_name_bytes. Returns the number of bytes written. Bytes that would end a field or a line
/// are replaced by %XX: control bytes, bytes from 0x7f on, commas, quotes, percent signs, and a
/// blank at either end. The B of a name that begins with "Batch" is replaced too, so that no name
/// looks like a batch record. lotus-tool reverses the replacement.
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

/// A name in a name_table. Entries exist until the process exits.
struct name_entry {
  std::uint64_t hash;
  std::uint32_t id;
  std::uint16_t raw_bytes;
  std::uint16_t line_bytes;
  /// Handle of this name in another profiler's annotation interface, such as ITT. Only the code for
  /// that interface uses it.
  mutable std::atomic<void*> task_handle;
  // This struct is followed in memory by the raw name, and then by the start of a line: "S<name>,".

  std::string_view raw() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), raw_bytes};
  }
  std::string_view line_start() const noexcept {
    return {reinterpret_cast<const char*>(this + 1) + raw_bytes, line_bytes};
  }
};

/// The text for unnamed_id, the id of all names that the table has no room for. Ring files do not
/// contain this text: recovery uses the constants here.
inline constexpr std::string_view unnamed_name = "(unnamed)";
inline constexpr std::string_view unnamed_line_start = "S(unnamed),";
/// The start of a log line if the ring file does not contain the name of the operation.
inline constexpr std::string_view lost_line_start = "Sname_lost,";

/// A function object that returns the start of a log line, "S<name>,", for the id of a name.
struct name_lookup {
  const void* table;
  std::string_view (*line_start)(const void* table, std::uint64_t id) noexcept;

  std::string_view operator()(std::uint64_t id) const noexcept { return line_start(table, id); }
};

/// Maps each name to an id. Ids count from 1; a name for which there is no room gets unnamed_id.
/// Looking up a name that is already in the table takes no lock. Nothing is ever freed, so ids and
/// entries stay valid until the process exits. All functions are thread-safe, also in signal
/// handlers.
class name_table {
 public:
  static constexpr std::uint32_t limit = unnamed_id - 1;  ///< maximum number of names

  /// @param max_names  at most `limit`.
  explicit name_table(std::uint32_t max_names = limit) noexcept : max_names_{max_names} {
    put(unnamed_, 0, unnamed_id, unnamed_name, unnamed_line_start);
  }

  std::uint32_t intern(std::string_view name) noexcept {
    name = name.substr(0, max_name_bytes);
    const std::uint64_t hash = hash_of(name);
    if (const name_entry* found = find(name, hash)) return found->id;
    if (size() >= max_names_) return unnamed_id;
    const signals_blocked quiet;
    const locked hold{mutex_};
    if (const name_entry* found = find(name, hash)) return found->id;
    return add(name, hash);
  }

  /// Returns the entry of a name. @param id  a result of intern().
  const name_entry& entry(std::uint32_t id) const noexcept {
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      return *reinterpret_cast<const name_entry*>(unnamed_);
    }
    const name_page* page = pages_[(id - 1) / page_names].load(std::memory_order_acquire);
    return *page->entries[(id - 1) % page_names].load(std::memory_order_acquire);
  }

  std::uint32_t size() const noexcept { return count_.load(); }

  /// Returns the start of a log line, "S<name>,". Accepts any number, because a damaged ring file
  /// may contain any id.
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
    std::size_t slots;  ///< number of slots, a power of two; the slots follow this struct
    std::atomic<const name_entry*>* data() noexcept {
      return reinterpret_cast<std::atomic<const name_entry*>*>(this + 1);
    }
  };

  /// Hashes with FNV-1a (Fowler, Noll, Vo; 64 bits), which is fast for short texts such as names.
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

  /// Returns an index (a hash table of the names) that will be at most half full when one more name
  /// is added. An index that is replaced by a larger one is not freed, because other threads may
  /// still be reading it.
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

  /// Creates an entry in `memory`, which must have room for a name_entry, followed by the texts
  /// `name` and `line`.
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
    if (size() >= max_names_) return unnamed_id;
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

  const std::uint32_t max_names_;
  /// The entry with unnamed_id, created in advance because it is used when memory has run out.
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

// Provides the one session of a process, which starts and stops recording and handles forks.
#ifndef LOTUS_SESSION_PROCESS_SESSION_HPP
#define LOTUS_SESSION_PROCESS_SESSION_HPP

// Detects whether data in memory was written by this process or copied from its parent by a fork.
#ifndef LOTUS_BASE_OWN_PROCESS_HPP
#define LOTUS_BASE_OWN_PROCESS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Detects a child that was created without fork handlers (_Fork, clone): such a child has copies
/// of all data, including locks that no thread will ever release. A child of vfork is not detected,
/// because it runs in its parent's memory. Thread safety: call claim() while the process has one
/// thread; is_this() may be called on any thread, also in signal handlers.
class own_process {
 public:
  /// Declares that the library's data in memory belongs to this process from now on.
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

  /// Points to a value that is 1 in this process and 0 in its children, because the kernel fills
  /// the page that contains the value with zeros in every child. Null if the kernel cannot do that.
  mark* mark_ = nullptr;
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

/// The option log_file, split into directory and prefix: "run/log" becomes "run" and "log". If
/// "run" is a directory, "run" means the same as "run/".
struct log_location {
  char directory[4096];
  char prefix[max_prefix_bytes + 1];

  /// Splits the option log_file. Returns 0, or ENAMETOOLONG if it is too long.
  LOTUS_DETAIL_COLD int parse(std::string_view log_file) noexcept {
    const std::size_t slash = log_file.rfind('/');
    std::string_view folder = slash == std::string_view::npos ? "."
                              : slash == 0                    ? "/"
                                                              : log_file.substr(0, slash);
    std::string_view name = slash == std::string_view::npos ? log_file : log_file.substr(slash + 1);
    if (is_directory(log_file)) {
      folder = log_file;
      name = {};
    }
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
      // If a parent directory cannot be created, the attempt to open the whole path further down
      // fails too, and its error is returned.
      if (made != 0 && error != EEXIST) break;
    }
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) return -errno;
    const int fd = open_at_high_fd(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return -errno;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
      const int error = errno;
      close(fd);
      return -error;
    }
    return fd;
  }

 private:
  /// Uses `directory` as its buffer, because the stack of the thread may be small.
  bool is_directory(std::string_view name) noexcept {
    if (name.empty() || name.size() >= sizeof(directory)) return false;
    std::memcpy(directory, name.data(), name.size());
    directory[name.size()] = '\0';
    struct stat status {};
    const int error = errno;
    const bool is = stat(directory, &status) == 0 && S_ISDIR(status.st_mode);
    errno = error;
    return is;
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_DIRECTORY_HPP

// Formats records as the text lines of a Lotus log.
#ifndef LOTUS_FORMAT_LINE_HPP
#define LOTUS_FORMAT_LINE_HPP

// Provides the table that describes each kind of record: its log, its lines, its numbers, its
// encoding in compact blocks and its drawing on a timeline. The code that writes logs and the code
// that reads them both use the table.
#ifndef LOTUS_FORMAT_RECORD_KINDS_HPP
#define LOTUS_FORMAT_RECORD_KINDS_HPP

#include <array>

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// What the value in a record's tag (its first word) consists of.
enum class record_value : std::uint8_t {
  name,             ///< the id of a name; the line begins with that name
  name_and_number,  ///< the id of a name and a 32-bit number
  number,           ///< a 56-bit number
  none,             ///< nothing; the record's line, if it has one, consists of its prefix and times
};

/// Which duration a record's text line contains.
enum class written_duration : std::uint8_t {
  measured,
  measured_unlike_placeholder,  ///< the measured duration, but never placeholder_ns
  placeholder,                  ///< always placeholder_ns, because the record is an event
  none,                         ///< nothing: the record has only a line in the side log
};

/// The duration that marks a line as an event instead of a span.
inline constexpr std::int64_t placeholder_ns = 1000;

/// How a record is drawn on a timeline.
enum class record_drawing : std::uint8_t {
  nothing,  ///< not drawn, because it is a total or a relation between other records
  span,     ///< from its start to its end
  step,     ///< from its start to the next wait of its thread
  moment,
  counter,  ///< a value over time
  /// drawn as additional data of an operation: the one with the same start time, whose record
  /// follows this record
  ahead,
  /// drawn as an interval before this record's time that interrupts the spans around it, such as a
  /// time off the CPU
  gap,
};

/// The meaning and unit of a number in a record.
enum class record_quantity : std::uint8_t {
  none,    ///< the field is unused
  batch,   ///< number of a batch
  item,    ///< number of an item
  number,  ///< number of a batch, item, request or operation, or the number at the end of a name
  value,   ///< value of a counter, in the program's unit
  off_cpu_ns,
  run_queue_ns,  ///< the part of off_cpu_ns during which the thread waited for a CPU
  bytes,         ///< bytes of heap memory; for heap_total with count 1, a number of calls
  count,         ///< calls, blocks or units; for heap_total it selects the meaning of `bytes`
};

/// The part of a record in which a number is stored.
enum class field_source : std::uint8_t { number_with_name, value, second_word };

/// The range of a number in the text of a line.
enum class field_type : std::uint8_t {
  natural,          ///< 0 to INT64_MAX
  natural_or_none,  ///< 0 to INT64_MAX, or an empty column if the record contains missing_number()
  integer,          ///< signed 64-bit number
  bits,             ///< unsigned 64-bit number
};

/// How a compact block encodes a number of a record.
enum class field_coding : std::uint8_t {
  /// Zigzag difference from the previous record with the same code; for a record's second field,
  /// from the previous record of any kind.
  difference,
  plain,
  one_more,  ///< the number plus one; 0 means that there is no number
};

/// Where a line contains a number: after the line's prefix, or in column A or B of a side-log line.
enum class line_column : std::uint8_t { prefix, a, b };

/// Describes one number of a record. If all members are zero, the record has no such number.
struct record_field {
  record_quantity quantity;
  field_source source;
  field_type type;
  field_coding coding;
  line_column column;
};

/// One row of the table record_kinds, which describes one kind of record. In a side-log line,
/// column A contains the duration if the kind has a measured one. A column for which the kind has
/// no number contains 0.
struct record_kind {
  event_kind kind;
  log_role role;  ///< the log that contains the kind's lines
  record_value value;
  written_duration duration;
  record_drawing drawing;
  /// Code for this kind in compact blocks. It must never change, even if the numbers of event_kind
  /// do. 0 if records of the kind have names: then each name gets its own code when it first
  /// occurs.
  std::uint8_t code;
  std::string_view prefix;  ///< beginning of the kind's lines; empty if they begin with a name
  /// Beginning of the kind's line in the side log; empty if it has no such line.
  std::string_view side_begin;
  /// The numbers of a record, in the order in which compact blocks contain them.
  record_field fields[2];
  /// The fields that columns A and B of a side-log line contain. The initializer of the table
  /// record_kinds sets them from `fields`.
  record_field columns[2] = {};

  /// Returns the name under which a profiler's timeline shows spans of this kind; empty if each
  /// span has a name of its own.
  constexpr std::string_view task() const noexcept {
    return prefix.size() < 2 ? prefix : prefix.substr(1, prefix.size() - 2);
  }
  /// Returns the first column of the kind's lines in the side log.
  constexpr std::string_view side_log_name() const noexcept {
    return side_begin.substr(0, side_begin.find(','));
  }
  /// Whether the record has a measured duration.
  constexpr bool lasts() const noexcept {
    return duration == written_duration::measured ||
           duration == written_duration::measured_unlike_placeholder;
  }
  /// Returns the index in `fields` of the field in this column of a line; -1 if there is none.
  constexpr int index_in(line_column column) const noexcept {
    for (int i = 0; i < 2; ++i) {
      if (fields[i].quantity != record_quantity::none && fields[i].column == column) return i;
    }
    return -1;
  }
  /// Returns the field in this column of a line; null if there is none.
  constexpr const record_field* field_in(line_column column) const noexcept {
    const int index = index_in(column);
    return index < 0 ? nullptr : &fields[index];
  }
};

/// Returns the row of a kind. The pragma makes the compiler report an error if a kind has no row.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
constexpr record_kind row_of(event_kind kind) noexcept {
  using what = record_quantity;
  using from = field_source;
  using type = field_type;
  using coding = field_coding;
  using column = line_column;
  using drawn = record_drawing;
  constexpr log_role main = log_role::main;
  constexpr log_role worker = log_role::worker;
  constexpr log_role side = log_role::side;
  constexpr record_value name = record_value::name;
  constexpr record_value both = record_value::name_and_number;
  constexpr record_value alone = record_value::number;
  constexpr written_duration timed = written_duration::measured;
  constexpr written_duration a_wait = written_duration::measured_unlike_placeholder;
  constexpr written_duration event = written_duration::placeholder;
  constexpr written_duration no_time = written_duration::none;
  constexpr std::uint8_t by_name = 0;

  // The batch number after the prefix of a batch's lines, such as 7 in SBatchWait_7.
  constexpr record_field batch{what::batch, from::value, type::natural, coding::difference,
                               column::prefix};
  // The number that is stored together with a name in the tag's value.
  constexpr record_field number{what::number, from::number_with_name, type::natural,
                                coding::difference, column::b};
  constexpr record_field maybe{what::number, from::number_with_name, type::natural_or_none,
                               coding::difference, column::b};
  constexpr record_field count{what::count, from::number_with_name, type::natural,
                               coding::difference, column::b};
  // Numbers that are stored in the second word of a record, or in the value bits of its first word.
  constexpr record_field bytes{what::bytes, from::second_word, type::natural, coding::plain,
                               column::a};
  constexpr record_field value{what::value, from::second_word, type::integer, coding::difference,
                               column::a};
  constexpr record_field whole{what::number, from::second_word, type::bits, coding::difference,
                               column::a};
  constexpr record_field parent{what::batch, from::value, type::natural, coding::difference,
                                column::a};
  constexpr record_field item{what::item, from::second_word, type::natural, coding::difference,
                              column::b};
  constexpr record_field off{what::off_cpu_ns, from::second_word, type::natural, coding::plain,
                             column::a};
  constexpr record_field queued{what::run_queue_ns, from::value, type::natural_or_none,
                                coding::one_more, column::b};

  // The columns of each row are: kind, log, value, duration, drawing, code, prefix, side-log
  // prefix, fields.
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
    case event_kind::async_segment:
      return {kind, worker, both, timed, drawn::span, by_name, "", "piece,", {number}};
    case event_kind::counter:
      return {kind, side, name, no_time, drawn::counter, by_name, "", "counter,", {value}};
    case event_kind::batch_takes:
      return {kind, side, alone, no_time, drawn::nothing, 10, "", "takes,,", {parent, item}};
    case event_kind::off_cpu:
      return {kind, side, alone, no_time, drawn::gap, 11, "", "off_cpu,,", {off, queued}};
    // A record of this kind has no line. It selects the loader's folder in which the lines of the
    // records after it are written.
    case event_kind::loader:
      return {kind, side, record_value::none, no_time, drawn::nothing, 12, "", "", {}};
    case event_kind::stage_number:
      return {kind, side, name, no_time, drawn::ahead, by_name, "", "number,", {whole}};
    case event_kind::arguments:
      return {kind, side, name, no_time, drawn::ahead, by_name, "", "args,", {}};
    case event_kind::range:
      return {kind, side, both, timed, drawn::span, by_name, "", "range,", {maybe}};
    case event_kind::allocated:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "allocated,", {count, bytes}};
    case event_kind::freed:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "freed,", {count, bytes}};
    case event_kind::retained:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "retained,", {count, bytes}};
    case event_kind::heap_peak:
      return {kind, side, both, no_time, drawn::ahead, by_name, "", "peak,", {count, bytes}};
    case event_kind::heap:
      return {kind, side, both, no_time, drawn::counter, by_name, "", "heap,", {count, bytes}};
    case event_kind::held:
      return {kind, side, both, no_time, drawn::nothing, by_name, "", "held,", {count, bytes}};
    case event_kind::heap_total:
      return {kind, side, both, no_time, drawn::nothing, by_name, "", "total,", {count, bytes}};
    case event_kind::aggregated:
      return {kind, side, both, timed, drawn::gap, by_name, "", "aggregated,", {maybe}};
    case event_kind::none:
      break;
  }
  // Used for records of unknown kinds, from a damaged ring file or a later version of the library.
  constexpr record_value lost = record_value::none;
  return {event_kind::none, worker, lost, timed, drawn::span, by_name, "Skind_lost,", "", {}};
}
#pragma GCC diagnostic pop

/// Largest number of a kind, plus one.
inline constexpr std::size_t record_kind_count = [] {
  std::size_t count = 256;
  while (row_of(static_cast<event_kind>(count - 1)).kind == event_kind::none) --count;
  return count;
}();

/// The rows of all kinds; the index is the kind.
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

/// Returns the row of a kind; row 0 (event_kind::none) if the number is not that of a kind.
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

/// Whether the kind's lines have the three columns of a batch's line: prefix with number, start,
/// duration.
constexpr bool is_of_batch(const record_kind& kind) noexcept {
  return kind.value == record_value::number && !kind.prefix.empty();
}

/// Returns the id of the record's name. Call it only for kinds that have one.
constexpr std::uint32_t name_of(const record_kind& kind, record_tag tag) noexcept {
  const bool both = kind.value == record_value::name_and_number;
  return static_cast<std::uint32_t>(both ? tag.value() >> 32 : tag.value());
}

/// Returns the number that this field has in a record. Uses no branch, because the processor would
/// often mispredict it.
LOTUS_DETAIL_ALWAYS_INLINE constexpr std::uint64_t number_of(const record_field& field,
                                                             const record& r) noexcept {
  const std::uint64_t word =
      field.source == field_source::second_word ? r.end_ticks : r.tag.value();
  return field.source == field_source::number_with_name ? word & UINT32_MAX : word;
}

/// Returns the largest number that a record can store in this field.
constexpr std::uint64_t max_of(const record_field& field) noexcept {
  switch (field.source) {
    case field_source::number_with_name:
      return UINT32_MAX;
    case field_source::value:
      return (std::uint64_t{1} << record_tag::value_bits) - 1;
    case field_source::second_word:
      break;
  }
  return UINT64_MAX;
}

/// Returns the number that a record stores in this field if the number is missing.
constexpr std::uint64_t missing_number(const record_field& field) noexcept {
  return max_of(field);
}
static_assert(number_not_in_tag == UINT32_MAX &&
                  run_queue_unknown == (std::uint64_t{1} << record_tag::value_bits) - 1,
              "they are what missing_number() says");

/// Compile-time checks of the table. Without them, an error in a row would show only in a damaged
/// log.
namespace row_checks {

/// Whether the function `check` returns true for every row.
template <class Check>
constexpr bool all(Check&& check) {
  for (const record_kind& row : record_kinds) {
    if (row.kind != event_kind::none && !check(row)) return false;
  }
  return true;
}

static_assert(all([](const record_kind& row) {
                return is_of_batch(row)
                           ? row.role != log_role::side && row.prefix.size() > 7 &&
                                 row.prefix.substr(0, 6) == "SBatch" && row.prefix.back() == '_' &&
                                 row.side_begin.empty() && row.duration != written_duration::none
                           : row.prefix.empty();
              }),
              "lines of batches begin with SBatch..._, in the main or the worker log; all other "
              "lines begin with a name");
static_assert(all([](const record_kind& row) {
                return row.role != log_role::side || !row.side_begin.empty() ||
                       row.kind == event_kind::loader;
              }),
              "a kind whose lines stand beside says how these begin");
static_assert(all([](const record_kind& row) {
                const std::size_t name_bytes = row.side_log_name().size();
                return row.side_begin.empty() ||
                       (row.side_begin.size() <= 16 &&
                        row.side_begin.substr(name_bytes) == (has_name(row) ? "," : ",,"));
              }),
              "a line beside begins with at most 16 bytes: its kind, a comma and, where it has no "
              "name, one more");
static_assert(all([](const record_kind& row) {
                for (const record_kind& other : record_kinds) {
                  if (!row.side_begin.empty() && row.kind != other.kind &&
                      row.side_log_name() == other.side_log_name()) {
                    return false;
                  }
                }
                return true;
              }),
              "lines beside of two kinds begin differently");
static_assert(all([](const record_kind& row) {
                // With -fsanitize=undefined, g++ 12 compares no addresses in constants.
                for (int i = 0; i < 2; ++i) {
                  const record_field& f = row.fields[i];
                  if (f.quantity == record_quantity::none) continue;
                  const bool by_name = row.value == record_value::name_and_number;
                  const bool alone = row.value == record_value::number;
                  if (f.source == field_source::number_with_name && !by_name) return false;
                  if (f.source == field_source::value && !alone) return false;
                  if (f.source == field_source::second_word &&
                      row.duration != written_duration::none) {
                    return false;
                  }
                  if ((f.column == line_column::prefix) != is_of_batch(row)) return false;
                  if (f.column == line_column::a && row.lasts()) return false;
                  if (row.index_in(f.column) != i) return false;
                }
                return !is_of_batch(row) || row.index_in(line_column::prefix) >= 0;
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

/// Maximum size of one line: its name, its numbers, the prefix of a side-log line, and the bytes
/// that put_number() writes after the end of a number.
inline constexpr std::size_t max_line_bytes = 16 + max_line_name_bytes + 1 + 75;

/// Whether `text` has the form of the beginning of an operation's line: a name in the form that
/// write_line_name() writes, and a comma.
inline bool is_line_start(std::string_view text) noexcept {
  if (text.size() < 2 || text.size() > max_line_name_bytes + 1) return false;
  if (text.front() != 'S' || text.back() != ',' || text.substr(0, 6) == "SBatch") return false;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f || c == ',' || c == '"') return false;
    // An escape sequence such as %2C must end before the last byte, which is the comma.
    if (c == '%' && !(i + 3 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]))) {
      return false;
    }
  }
  return true;
}

/// Converts ticks to ns since the Unix epoch during one drain, with a copy of the map's newest
/// segment. Construct it after the heads of the ring (see lane_heads) were read. Then no record
/// before these heads needs a segment that is added to the map later.
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

  /// Returns the newest segment of the map, which is valid for all ticks from its start on.
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
  /// Returns a - b modulo 2^64. A signed subtraction could overflow, because a damaged ring file
  /// may contain any values.
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

/// Returns the eight decimal digits of a number below 10^8 as characters, the first in the lowest
/// byte. Computes groups of four digits, then of two, then single digits, all groups in one
/// multiplication: (x * 10486) >> 20 divides by 100 exactly below 10^4, and (x * 103) >> 10 divides
/// by 10 exactly below 100 (a test checks every group).
LOTUS_DETAIL_ALWAYS_INLINE std::uint64_t eight_digits(std::uint32_t below_1e8) noexcept {
  const std::uint64_t fours =
      below_1e8 / 10'000 | (static_cast<std::uint64_t>(below_1e8 % 10'000) << 32);
  const std::uint64_t hundreds = ((fours * 10'486) >> 20) & 0x0000007F'0000007FU;
  const std::uint64_t twos = hundreds | ((fours - hundreds * 100) << 16);
  const std::uint64_t tens = ((twos * 103) >> 10) & 0x000F000F'000F000FU;
  return (tens | ((twos - tens * 10) << 8)) + 0x30303030'30303030U;
}

/// Returns the number of decimal digits of a number below 10^9. 1233 / 4096 is just below log10(2).
LOTUS_DETAIL_ALWAYS_INLINE unsigned digit_count(std::uint32_t below_1e9) noexcept {
  constexpr std::uint32_t powers[] = {1,       10,        100,        1'000,       10'000,
                                      100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  const auto bits = static_cast<unsigned>(32 - __builtin_clz(below_1e9 | 1));
  const unsigned guess = (bits * 1233) >> 12;
  return guess + (below_1e9 >= powers[guess] ? 1 : 0);
}

/// Writes a number below 10^8 without leading zeros, and returns the end of the text. Always writes
/// 8 bytes; those after the end are undefined.
LOTUS_DETAIL_ALWAYS_INLINE char* put_number_below_1e8(char* out, std::uint32_t value) noexcept {
  // The digits are counted before they are computed, so that the processor knows early where the
  // next text begins, and can continue there.
  const unsigned count = value == 0 ? 1 : digit_count(value);
  const std::uint64_t digits = eight_digits(value) >> (8 * (8 - count));
  std::memcpy(out, &digits, 8);
  return out + count;
}

/// Writes `value` in decimal and returns the end of the text. Up to 24 bytes from `out` on may be
/// overwritten, even if the text is shorter.
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

/// Like put_number(), for code that runs rarely: this function is not inlined.
LOTUS_DETAIL_COLD inline char* put_number_slow(char* out, std::uint64_t value) noexcept {
  return put_number(out, value);
}

/// Copies a text without a function call if it has 8 to 32 bytes; other lengths work too.
LOTUS_DETAIL_ALWAYS_INLINE void copy_short(char* out, const char* text,
                                           std::size_t bytes) noexcept {
  if (LOTUS_DETAIL_LIKELY(bytes >= 8 && bytes <= 32)) {
    // Copies the first and the last `step` bytes, which overlap in the middle or meet there.
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

/// Formats records as lines of text logs. Each drain uses an object of its own.
class line_formatter {
 public:
  explicit line_formatter(const tick_converter& clock) noexcept : clock_{clock} {}

  /// Writes one line and returns its end. `out` must have space for max_line_bytes.
  /// @param name  beginning of the line, with the comma, if the record has a name; otherwise empty.
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

  /// Writes the record's line for the side log, "<kind>,<name>,<time>,<a>,<b>", and returns the
  /// line's end. Call this only for kinds that have a line in the side log. `out` and `name` are as
  /// in format().
  char* format_side_line(const record& r, std::string_view name, char* out) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const tick_converter::span s =
        clock_.convert(r.begin_ticks, kind.lasts() ? r.end_ticks : r.begin_ticks);
    copy_short(out, kind.side_begin.data(), kind.side_begin.size());
    out += kind.side_begin.size();
    if (!name.empty()) copy_short(out, name.data(), name.size());
    out += name.size();
    out = put_start(out, static_cast<std::uint64_t>(s.start_ns < 0 ? 0 : s.start_ns));
    *out++ = ',';
    out = kind.lasts() ? put_number_slow(
                             out, static_cast<std::uint64_t>(s.duration_ns < 0 ? 0 : s.duration_ns))
                       : put_column(out, r, kind.columns[0]);
    *out++ = ',';
    out = put_column(out, r, kind.columns[1]);
    *out++ = '\n';
    return out;
  }

 private:
  /// Returns the duration for a batch's line. A measured wait of exactly 1000 ns becomes 1001 ns,
  /// because 1000 ns marks a batch that arrived out of order.
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
    return put_number_slow(out, number);
  }

  /// Writes a start time and returns the end of the text. Stores the digits of the time's whole
  /// seconds for the next call, because consecutive records nearly always begin in the same second.
  LOTUS_DETAIL_ALWAYS_INLINE char* put_start(char* out, std::uint64_t ns) noexcept {
    std::uint64_t fraction = ns - second_start_ns_;
    if (LOTUS_DETAIL_UNLIKELY(fraction >= 1'000'000'000)) {
      second_start_ns_ = ns / 1'000'000'000 * 1'000'000'000;
      fraction = ns - second_start_ns_;
      second_bytes_ = static_cast<std::size_t>(
          put_number_slow(second_, second_start_ns_ / 1'000'000'000) - second_);
      if (ns < 1'000'000'000) second_bytes_ = 0;
    }
    if (LOTUS_DETAIL_UNLIKELY(second_bytes_ == 0)) return put_number_slow(out, ns);
    // Copying 16 bytes takes one move instruction; the digits below overwrite the excess bytes.
    std::memcpy(out, second_, 16);
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

// Records how much heap memory operations allocate and free, as counted by liblotus_memory.so.
#ifndef LOTUS_HEAP_HEAP_ACCOUNT_HPP
#define LOTUS_HEAP_HEAP_ACCOUNT_HPP

// Defines the interface of liblotus_memory.so, a library that counts the allocations of a program
// if LD_PRELOAD names it.
#ifndef LOTUS_HEAP_HEAP_HOOK_HPP
#define LOTUS_HEAP_HEAP_HOOK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// How a thread used the heap during one operation. Sizes are those that the program requested.
struct heap_change {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  /// Size of freed blocks, including those that other threads had allocated.
  std::uint64_t freed_bytes;
  std::uint64_t freed_calls;
  /// Bytes that this thread allocated during the operation and did not free.
  std::uint64_t retained_bytes;
  std::uint64_t retained_blocks;
  std::uint64_t peak_bytes;  ///< maximum of allocated minus freed bytes during the operation
};

/// How the process has used the heap since it began or was forked.
struct heap_sums {
  std::uint64_t allocated_bytes;
  std::uint64_t allocated_calls;
  /// Allocated minus freed bytes, including those of a parent process before the fork.
  std::int64_t held_bytes;
  std::uint64_t units;      ///< number of units (see heap_hook::enter()) that have begun
  std::uint32_t unit_name;  ///< id of the name of a unit; 0: no unit has begun
};

/// The interface of liblotus_memory.so. It is the only symbol of that library except for the
/// functions that the library replaces, such as malloc. All functions are thread-safe, but not
/// signal-safe, as malloc(3) is not; enter() and leave() apply to the calling thread. No function
/// allocates.
struct heap_hook {
  std::uint32_t version;
  std::uint32_t bytes;  ///< size of this struct
  /// Begins an operation. The library groups allocations into generations of consecutive units. A
  /// unit is the building of a batch or, in a program without batches, an outermost operation.
  /// @param name  id of the operation's name. Allocations in the operation are attributed to it,
  /// except those in inner operations.
  /// @param is_batch  whether the operation builds a batch.
  void (*enter)(std::uint32_t name, bool is_batch) noexcept;
  /// Ends the innermost open operation of this name, and all operations still open inside it.
  /// @return 0: no such operation is open; 1: the operation ended; 2: it ended and was a unit.
  int (*leave)(std::uint32_t name, heap_change& change) noexcept;
  /// Forgets all operations, of all threads, that have not ended.
  void (*forget)() noexcept;
  std::uint64_t (*units)() noexcept;  ///< number of units that have begun
  void (*sum)(heap_sums& sums) noexcept;
  /// Reports the memory in use that was allocated since the process began or was forked. Calls
  /// `tell` once for each pair of a name (id 0: outside all operations) and a generation, with the
  /// number of the generation's first unit and the number of bytes in use.
  void (*held)(void (*tell)(void* to, std::uint32_t name, std::uint64_t unit,
                            std::uint64_t bytes) noexcept,
               void* to) noexcept;
  /// Describes in `text` the allocations that the library cannot count; writes "" if it knows of
  /// none.
  void (*blind_to)(char* text, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t heap_hook_version = 1;
inline constexpr char heap_hook_symbol[] = "lotus_heap_hook";

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_HOOK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the interface of liblotus_memory.so; null if the program was started without that
/// library. Looks for the library only if LD_PRELOAD is set, because the lookup may allocate. Call
/// this function without holding a lock.
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

/// Records the counts of liblotus_memory.so. All functions are thread-safe, but call
/// begin_recording() and begin_where_missed() only while the session's control lock is held.
class heap_account {
 public:
  /// Looks for liblotus_memory.so. Call this function before taking any lock.
  void find() noexcept { hook_.get_at_once(find_heap_hook, nullptr); }

  bool on() const noexcept { return hook() != nullptr; }

  /// Prepares for a new recording: forgets operations that began during the previous recording and
  /// have not ended. The state of the heap is recorded later, by the first operation, because
  /// recording it needs a lock that the caller of this function already holds.
  void begin_recording() noexcept {
    const heap_hook* const counts = hook();
    begun_ = counts != nullptr;
    if (!begun_) return;
    counts->forget();
    if (!blind_reported_.exchange(true)) {
      char text[512];
      counts->blind_to(text, sizeof(text));
      if (text[0] != '\0') say("memory: %s", text);
    }
    heap_reported_.store(false, std::memory_order_relaxed);
  }

  /// Calls begin_recording() if the current recording began before find() had found
  /// liblotus_memory.so.
  void begin_where_missed() noexcept {
    if (!begun_) begin_recording();
  }

  /// Records the size of the heap, and how much of it each operation has allocated. Must be called
  /// before the recording ends.
  /// @param unit  id of the name to record if no unit (batch, or outermost operation) has begun
  /// yet.
  void end_recording(std::uint32_t unit) const noexcept {
    if (const heap_hook* const counts = hook()) {
      report_heap(*counts, unit);
      report_held(*counts, unit);
    }
  }

  /// Returns the id of the name to which allocations are attributed during a span with this tag. If
  /// spans of its kind have no name, as when a batch is built, the kind has a fixed name.
  /// @param intern  function that returns the id of a name.
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
    if (!heap_reported_.load(std::memory_order_relaxed) && !heap_reported_.exchange(true)) {
      report_heap(*counts, name);
    }
    counts->enter(name, is_batch);
  }

  /// Ends an operation of this thread and records its allocations.
  /// @param begin_ticks  start of the operation's record; 0 if the operation is not recorded.
  /// @param begun_as     id of the name with which the operation began.
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

  /// Called in a forked child, where liblotus_memory.so counts units from 0 again: resets the
  /// number of units after which the held memory is recorded next.
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

  static void report_heap(const heap_hook& counts, std::uint32_t unit) noexcept {
    heap_sums sums;
    counts.sum(sums);
    const std::uint64_t ticks = now_ticks();
    const std::uint32_t name = sums.unit_name != 0 ? sums.unit_name : unit;
    push(ticks, sums.held_bytes < 0 ? 0 : static_cast<std::uint64_t>(sums.held_bytes),
         {event_kind::heap, name, to_32_bits(sums.units)});
  }

  LOTUS_DETAIL_COLD static void report_held(const heap_hook& counts, std::uint32_t unit) noexcept {
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

  /// Called when a unit (batch, or outermost operation) has ended. Records the size of the heap, at
  /// most a thousand times per second. How much of the heap each operation has allocated is
  /// recorded at increasing intervals, because these records need much space.
  void end_unit(const heap_hook& counts, std::uint32_t unit) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    std::int64_t last_ns = heap_reported_ns_.load(std::memory_order_relaxed);
    if (now_ns - last_ns >= between_heaps_ns &&
        heap_reported_ns_.compare_exchange_strong(last_ns, now_ns, std::memory_order_relaxed)) {
      report_heap(counts, unit);
    }
    const std::uint64_t units = counts.units();
    std::uint64_t next = next_held_.load(std::memory_order_relaxed);
    if (units >= next &&
        next_held_.compare_exchange_strong(next, units + units / 4, std::memory_order_relaxed)) {
      report_heap(counts, unit);
      report_held(counts, unit);
    }
  }

  lazy_lookup<const heap_hook*> hook_;
  /// Whether begin_recording() has run after liblotus_memory.so was found; protected by the
  /// session's control lock.
  bool begun_ = false;
  /// For kinds whose records have no name of their own: the id of the fixed name of the kind (see
  /// name()); 0: not determined yet.
  std::atomic<std::uint32_t> kind_names_[record_kinds.size()]{};
  std::atomic<bool> blind_reported_{false};
  std::atomic<bool> heap_reported_{false};
  std::atomic<std::int64_t> heap_reported_ns_{0};
  std::atomic<std::uint64_t> next_held_{first_held};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_HEAP_HEAP_ACCOUNT_HPP

// Provides the list of the shared objects in which the session stores whether recording is on.
#ifndef LOTUS_RECORD_SHARED_OBJECTS_HPP
#define LOTUS_RECORD_SHARED_OBJECTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The list of the shared objects that have joined the session. All functions are thread-safe.
/// Block signals before calling any of them.
class module_list {
 public:
  /// Stores the session's functions (`table`), the kind of its clock and its mode in `m`, and adds
  /// `m` to the list if it is new. Each later set_mode() also stores the mode in `m`.
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

// Determines which steps of a lotus::schedule are recorded, and in which folder.
#ifndef LOTUS_SESSION_STEP_RECORDING_HPP
#define LOTUS_SESSION_STEP_RECORDING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A range of consecutive steps that are recorded together, from `first` up to but not including
/// `end`. The range is empty if `end` is 0.
struct step_window {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  bool operator==(const step_window& other) const noexcept {
    return first == other.first && end == other.end;
  }
};

/// Returns the range of recorded steps that contains the step number `step`; an empty range if this
/// step is not recorded.
/// @param steps  the schedule; its `active` must not be 0.
inline step_window window_of(const schedule& steps, std::uint64_t step) noexcept {
  if (step < steps.skip_first) return {};
  const std::uint64_t left_out = std::uint64_t{steps.wait} + steps.warmup;
  const std::uint64_t cycle = left_out + steps.active;
  // As in PyTorch, skip_first_wait makes the first cycle begin as if its wait were already over.
  const std::uint64_t waited = steps.skip_first_wait != 0 ? steps.wait : 0;
  const std::uint64_t round = (step - steps.skip_first + waited) / cycle;
  if (steps.repeat != 0 && round >= steps.repeat) return {};
  const std::uint64_t first = steps.skip_first + round * cycle + left_out - waited;
  return step < first ? step_window{} : step_window{first, first + steps.active};
}

/// A schedule and the number of the program's current step. Not thread-safe.
class LOTUS_DETAIL_PER_MODULE step_recording {
 public:
  /// Begins to apply a schedule, at step 0. Returns false, after reporting the reason, if the
  /// schedule has no active steps or options::log_file is too long.
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
    // The text of log_file is freed, because location_ already contains its directory and prefix.
    // The session is never destroyed, so leak checkers would report the memory of the text.
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
  bool active() const noexcept { return window().end != 0; }

  /// Returns the options with which the current range of steps is recorded, in a folder of its own:
  /// DIRECTORY/steps_FIRST_LAST.
  options of_active() const {
    step_notice notice;
    write_folder(notice.folder);
    options of = chosen_;
    of.log_file = notice.folder;
    return of;
  }

  /// Fills in the notice with which step() and stop() report that the current range of steps was
  /// recorded. Returns whether the caller must call the listener in the notice.
  bool fill(step_notice& notice) const noexcept {
    notice.listener = steps_.on_trace_ready;
    write_folder(notice.folder);
    *std::strrchr(notice.folder, '/') = '\0';
    return static_cast<bool>(steps_.on_trace_ready);
  }

 private:
  /// Writes the path of the current range's folder, followed by '/' and the prefix of its logs.
  void write_folder(char (&to)[sizeof(step_notice::folder)]) const noexcept {
    const step_window window = this->window();
    std::snprintf(to, sizeof to, "%s/steps_%llu_%llu/%s", location_.directory,
                  static_cast<unsigned long long>(window.first),
                  static_cast<unsigned long long>(window.end - 1), location_.prefix);
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

// Provides the recorder, which owns all parts of a recording and begins and ends them in order.
#ifndef LOTUS_STORE_RECORDER_HPP
#define LOTUS_STORE_RECORDER_HPP

// Stores the aggregates (sums of counted calls) of threads in the ring file, and writes them to
// files when a recording ends.
#ifndef LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP
#define LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP

// Reads the aggregates (sums of counted calls) of one thread from their memory blocks.
#ifndef LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP
#define LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The values of one aggregate (the sums for one name and one loader) at one moment.
struct whole_aggregate {
  std::uint64_t key;
  std::uint64_t count;
  std::uint64_t total_ticks;
  std::uint64_t self_ticks;
  std::uint64_t counts[octaves * octave_buckets];

  std::uint32_t name() const noexcept { return static_cast<std::uint32_t>(key); }
  std::uint32_t loader() const noexcept { return static_cast<std::uint32_t>(key >> 32); }
};

/// Whether the values in the copied memory blocks may belong to different moments.
enum class aggregate_state : std::uint8_t {
  whole,   ///< all values belong to one moment, except for at most one call that is being added
  moving,  ///< the blocks were copied while the thread continued to add calls
};

/// Reads aggregates, possibly while their thread adds to them, and checks that their values are
/// consistent. If the blocks were copied while the thread continued to add calls (`moving`),
/// computes the counts from the duration buckets; the sums may then belong to a slightly different
/// moment than the counts.
class LOTUS_DETAIL_PER_MODULE aggregate_chain {
 public:
  explicit aggregate_chain(aggregate_state state = aggregate_state::whole) noexcept
      : moving_{state == aggregate_state::moving} {}

  /// Adds a block, which must outlive this object. Returns false if there is no memory.
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

  /// Returns the id of the thread whose calls the blocks contain; 0 if several threads used the
  /// blocks one after another.
  std::uint32_t tid() const noexcept { return tid_; }

  /// Calls `each(const whole_aggregate&)` for every aggregate that has at least one call.
  /// @param to  buffer for one aggregate.
  /// @return number of aggregates that were omitted because their values are inconsistent.
  std::uint64_t for_each(whole_aggregate& to,
                         function_ref<void(const whole_aggregate&)> each) noexcept {
    std::uint64_t inconsistent = 0;
    std::uint32_t seen = 0;
    take_last();
    for_each_chunk([&](const chunk_header& head, const char* at) {
      if (head.kind != chunk_kind::aggregate || ++seen > max_aggregates + 1) return;
      if (!read(*reinterpret_cast<const stored_aggregate*>(at), to)) {
        ++inconsistent;
      } else if (to.count > 0) {
        each(static_cast<const whole_aggregate&>(to));
      }
    });
    if (last_number_ == 0) return inconsistent;
    // A thread's last call is stored separately until its next call ends. If no aggregate has the
    // key of the last call, that call is the first one of its name and gets an aggregate of its own
    // here.
    std::memset(static_cast<void*>(&to), 0, sizeof(to));
    to.key = last_.key;
    add_last(to);
    each(static_cast<const whole_aggregate&>(to));
    return inconsistent;
  }

 private:
  /// Calls `each(header, at)` for every complete chunk, which begins at the address `at` and has
  /// this header. A chunk contains the sums of an aggregate, or its counts for one range of
  /// durations.
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

  /// Reads an aggregate, and tries again if the thread changes the aggregate during the reading.
  bool read(const stored_aggregate& from, whole_aggregate& to) noexcept {
    // With `moving`, the aggregate is in a copy, which no longer changes, so a second attempt would
    // give the same result.
    const int max_attempts = moving_ ? 1 : 100;
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
      to.key = from.key;
      to.count = from.count.load(std::memory_order_acquire);
      // These loads use acquire order, because they must happen before the count is checked again
      // below.
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

  /// Computes the number of calls from the duration buckets. The stored number of calls may differ
  /// from the sum of the buckets, because calls were added while the block was copied.
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
  growing_memory blocks_;  ///< array of pointers to the blocks
  const aggregates_block* first_ = nullptr;
  std::uint32_t tid_ = 0;
  aggregate_call last_{};
  /// Number of the last call if its aggregate does not contain it yet, otherwise 0.
  std::uint64_t last_number_ = 0;
};

using each_block = function_ref<void(aggregates_block&)>;
using each_chain = function_ref<void(aggregate_chain&)>;

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_CHAIN_HPP

// Copies the memory blocks with aggregates (sums of counted calls) to private memory, because their
// threads may still be changing them.
#ifndef LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP
#define LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies of the blocks with the aggregates of all threads of a process. Add all blocks, then call
/// finish(), then for_each_chain(). Thread safety: none.
class LOTUS_DETAIL_PER_MODULE aggregate_copies {
 public:
  /// Returns zeroed memory for the copy of a block of this size; null if there is no memory.
  /// Pointers from earlier calls become invalid.
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
  /// adding one call, but must not begin another before this function returns.
  /// @param for_each_block  calls its argument for every block; add_whole() calls it repeatedly.
  void add_whole(function_ref<void(each_block)> for_each_block) noexcept {
    const std::size_t first = count();
    for_each_block([this](const aggregates_block& block) { add(used_bytes(block)); });
    if (failed_) return;
    // If the blocks are equal to their copies afterwards, the copies show one moment.
    constexpr int max_attempts = 100;
    bool same = false;
    for (int attempt = 0; !same && attempt < max_attempts; ++attempt) {
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

  /// Sorts the blocks by thread for for_each_chain(). Call this function after all blocks were
  /// added.
  void finish() noexcept {
    for (std::size_t i = 0; i < count(); ++i) places()[i].chain = at(i).chain;
    // This is a Shellsort, because std::sort would be compiled in every file that uses the library.
    for (std::size_t step = count() / 2; step > 0; step /= 2) {
      for (std::size_t i = step; i < count(); ++i) {
        for (std::size_t k = i; k >= step && places()[k] < places()[k - step]; k -= step) {
          std::swap(places()[k], places()[k - step]);
        }
      }
    }
  }

  /// Whether there was not enough memory for all copies; then the copies must not be used.
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

  // Copies word by word with atomic loads, because the thread may be writing to the block.
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

  growing_memory blocks_;  ///< the copied blocks, one after another
  growing_memory places_;  ///< array of block_place, one for each block
  bool failed_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_AGGREGATE_COPIES_HPP

// Provides the memory for a thread's aggregates (sums of counted calls), which grows as needed.
#ifndef LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP
#define LOTUS_AGGREGATES_AGGREGATE_MEMORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Function that allocates one more block for a thread's aggregates. Returns null if there is no
/// memory.
using new_aggregates_block = function_ref<aggregates_block*()>;

/// The blocks with one thread's aggregates, and a hash table that finds the aggregates in them. The
/// table is in private memory directly from the kernel. Thread safety: none. Only the thread itself
/// adds blocks; other threads that read them must hold the `guard` of that thread's producer.
struct aggregate_memory {
  static constexpr std::size_t page_bytes = std::size_t{16} << 10;
  static constexpr std::size_t max_blocks = std::size_t{1} << 14;

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
  std::uint32_t aggregates = 0;  ///< number of aggregates of this thread
  std::size_t blocks = 0;
  /// Whether the thread no longer uses the blocks, because the recording has ended or because this
  /// process is a forked child and the blocks belong to its parent.
  bool retired = false;
  aggregates_block* first = nullptr;
  place* last_block = nullptr;
  std::size_t left = 0;  ///< number of free bytes in the last block
  page* last_page = nullptr;
  local_aggregate** table = nullptr;
  std::size_t places = 0;  ///< size of the hash table, a power of two

  /// Creates the object for one thread. Returns null if there is no memory.
  LOTUS_DETAIL_COLD static aggregate_memory* make(std::uint32_t chain) noexcept {
    auto* const first = static_cast<page*>(map_memory(page_bytes));
    if (first == nullptr) return nullptr;
    *first = {nullptr, page_bytes, sizeof(page) + sizeof(aggregate_memory)};
    auto* const made = new (first + 1) aggregate_memory;
    made->chain = chain;
    made->last_page = first;
    return made;
  }

  /// Releases all memory, including this object.
  /// @param in_use  whether this is called in a signal handler that interrupted the thread while it
  ///   added a call. Then the thread will write to the blocks again. So the blocks are replaced by
  ///   private memory at the same addresses, and nothing else is released.
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
    // The first page contains this object itself, so it must be released last.
    for (page* p = last_page; p != nullptr;) {
      page* const before = p->before;
      munmap(p, p->bytes);
      p = before;
    }
  }

  /// Calls `each(aggregates_block&)` for every block, beginning with the block that was added last.
  void for_each_block(function_ref<void(aggregates_block&)> each) const noexcept {
    for (place* p = last_block; p != nullptr; p = p->before) each(*p->block);
  }

  /// Adds a call to the thread's aggregates. First allocates memory that this call needs, and also
  /// memory for the previous call, because that call becomes part of the sums only now. Returns
  /// false if there is no memory.
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
    a.reported_name = static_cast<std::uint32_t>(to->key);
    a.unreported_ticks += call.self_ticks;
    a.last_to = to;
    // If the thread already has max_aggregates aggregates, `to` is the one that all further names
    // share.
    first->append({to->key, call.ticks, call.self_ticks}, ++a.calls);
    return true;
  }

 private:
  /// Returns the aggregate with this key, and allocates it and its buckets for this duration if
  /// they do not exist yet. Returns null if there is no memory.
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
      if (blocks == max_blocks) return nullptr;
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

  /// Fills in the chunk's header and adds the chunk to the block's used bytes. The caller must have
  /// written the rest of the chunk already, because readers can see the chunk from this call on.
  void finish_chunk(const chunk_header& is, chunk_header& head, std::size_t bytes) noexcept {
    head = is;
    last_block->block->used_bytes.fetch_add(bytes, std::memory_order_release);
    left -= bytes;
  }

  local_aggregate* find_or_add(std::uint64_t key, new_aggregates_block new_block) noexcept {
    if (table == nullptr && !grow_table(64)) return nullptr;
    if (local_aggregate* const found = *place_of(key)) return found;
    if (aggregates >= max_aggregates) {
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

// Writes aggregates (sums of counted calls) as text, in sections of a hidden file of the run.
#ifndef LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP
#define LOTUS_AGGREGATES_AGGREGATE_TEXT_HPP

// Opens or creates the folder of each named loader's logs, inside the run's directory.
#ifndef LOTUS_FOLDER_LOADER_FOLDER_HPP
#define LOTUS_FOLDER_LOADER_FOLDER_HPP

// Opens the files of a run safely. The library opens all files through these functions, because any
// user who can write to the run's directory may have put a link or a pipe there.
#ifndef LOTUS_FOLDER_SAFE_OPEN_HPP
#define LOTUS_FOLDER_SAFE_OPEN_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

// Reasons why the library refuses to use a file. The numbers are far above all errno values, so
// that an int can contain either an errno value or a reason.
inline constexpr int not_regular = 10'001;
inline constexpr int has_other_names = 10'002;
inline constexpr int of_another_user = 10'003;
inline constexpr int not_a_folder = 10'004;

/// Whether the error means that the file was refused, rather than that the disk failed.
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
/// wait for the other end of a pipe. Returns a descriptor, -errno, or the negative number of a
/// reason to refuse the file.
inline int open_regular(int directory, const char* name, int flags, struct stat& status,
                        mode_t mode = 0) noexcept {
  const int fd = open_at_high_fd(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0) return errno == ENXIO ? -not_regular : -errno;  // ENXIO: a pipe without a reader
  int error = fstat(fd, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = not_regular;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/// The users whose files in a directory this process may change: files of other users are refused.
class file_owners {
 public:
  /// Returns the users whose files the calling user may change: the calling user itself and, if
  /// that is root, also the owner of the directory.
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

  /// Replaces the calling user by the owner that the file system gives to new files, because a
  /// network file system may map all users to one user, or map root to another user. To find that
  /// owner, creates a file and deletes it again.
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

/// Opens a file to change it. Refuses a file that has further hard links or belongs to another
/// user. The result is that of open_regular().
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

/// Opens a file to append to it; creates it if it does not exist. The result is that of
/// open_regular().
/// @param made  set to true if this call created the file.
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

/// The directory in which a process writes its logs, and the properties of the logs that are
/// created there: prefix of the name, format, owner and permissions.
struct log_folder {
  int directory;  ///< borrowed descriptor of the run's directory, or -errno
  const char* prefix;
  file_owners owners;
  mode_t mode;       ///< permissions of new logs, before the umask applies
  const char* info;  ///< name of the information file of the process to which the logs belong
  name_lookup names;
  /// Whether the process writes compact logs, one for each thread, instead of text logs.
  bool compact;
  /// The status of a file whose owner, group and permissions new files get. If null, new files
  /// belong to this process's user and have the permissions `mode`.
  const struct stat* like = nullptr;

  /// Gives the new file `fd` the permissions `new_mode`, and the owner and group of `like`, which
  /// must not be null.
  /// @param status  status of `fd`.
  void give_away(int fd, const struct stat& status, mode_t new_mode) const noexcept {
    const bool other = like->st_uid != status.st_uid || like->st_gid != status.st_gid;
    // Errors are ignored, because only root can change the owner of a file.
    if (other && fchown(fd, like->st_uid, like->st_gid) != 0) errno = 0;
    if (fchmod(fd, new_mode) != 0) errno = 0;
  }
};

inline constexpr std::size_t max_folder_name_bytes = 200;

/// Writes the name of a loader's folder to `out`, which has max_folder_name_bytes + 1 bytes. It is
/// the loader's name as it appears in log lines, without the leading S; a long name is cut. `/` and
/// a leading `.` are escaped, so that the name cannot point outside the run's directory.
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

/// Opens the folders of loaders, creates those that are missing, and closes them.
class loader_folders {
 public:
  explicit loader_folders(const log_folder& run) noexcept : run_{run} {}
  loader_folders(const loader_folders&) = delete;
  loader_folders& operator=(const loader_folders&) = delete;
  ~loader_folders() { close_last(); }

  /// Returns the descriptor of a loader's folder, or a negative error that file_error_text() can
  /// describe. This object owns the descriptor, which stays open until another loader is requested.
  int of(std::uint32_t loader) noexcept {
    if (loader == 0 || run_.directory < 0) return run_.directory;
    if (fd_ < 0 || loader != opened_) {
      close_last();
      fd_ = open_folder(loader);
      opened_ = loader;
    }
    return fd_;
  }

  /// Returns the name of the folder that of() last opened or failed to open.
  const char* name() const noexcept { return name_; }

 private:
  void close_last() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  LOTUS_DETAIL_COLD int open_folder(std::uint32_t loader) noexcept {
    put_loader_folder_name(name_, run_.names(loader));
    // Users who may read the logs must also be allowed to enter the folder: each read permission
    // adds an execute permission.
    const auto mode_of = [](mode_t files) { return files | (files & 0444U) >> 2U; };
    const bool made = mkdirat(run_.directory, name_, mode_of(run_.mode)) == 0;
    if (!made && errno != EEXIST) return -errno;
    const int fd =
        open_at_high_fd(run_.directory, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOTDIR ? -error_of_other_file() : -errno;
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

  /// Returns the error for a file that has the folder's name but is no folder: ELOOP for a symbolic
  /// link.
  int error_of_other_file() const noexcept {
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

/// Returns the nanoseconds per tick, multiplied by 2^32, as an average over the whole clock map.
/// Steps of the wall clock do not affect the result.
inline std::uint64_t mean_rate(const clock_map& map) noexcept {
  // Minimum length of the interval over which the rate is computed: the clock readings at its two
  // ends are inexact by some ns, which would falsify the rate of a shorter interval.
  constexpr std::uint64_t min_ns = 50'000'000;
  __extension__ using wide = unsigned __int128;
  const clock_segment& first = map.at(0);
  const clock_segment& last = map.current();
  const std::uint64_t ticks = last.start_ticks - first.start_ticks;
  const std::uint64_t ns =
      (static_cast<std::uint64_t>(last.start_ns) - static_cast<std::uint64_t>(last.jumped_ns)) -
      (static_cast<std::uint64_t>(first.start_ns) - static_cast<std::uint64_t>(first.jumped_ns));
  // The values may come from a damaged file, so a rate of 0 is possible.
  const std::uint64_t latest = last.rate > 0 ? last.rate : 1;
  if (ticks == 0 || ns < min_ns || ns > INT64_MAX) return latest;
  const wide rate = (wide{ns} << 32) / ticks;
  const bool near = rate > latest / 2 && rate / 2 < latest && rate <= UINT64_MAX;
  return near ? static_cast<std::uint64_t>(rate) : latest;
}

/// Identifies a section of an aggregates file. If several sections have the same name, readers use
/// only the last one.
struct section_name {
  std::uint64_t began_ns;  ///< start of the recording, in ns since the Unix epoch
  /// 0 for the section with all calls of the recording. Each call that ends after the recording
  /// gets a section of its own, with a number from 1 on.
  std::uint64_t late;
};

/// Builds one section of an aggregates file: the aggregates of one loader.
class aggregate_text {
 public:
  /// @param rate  ns per tick, multiplied by 2^32.
  aggregate_text(const section_name& name, std::uint64_t rate) noexcept
      : name_{name}, rate_{rate} {}

  /// Adds the line of one aggregate.
  /// @param line_start  beginning of the line, "S<name>,".
  /// @param tid         id of the thread; 0 if several threads share the aggregate.
  void add(std::string_view line_start, std::uint32_t tid, const whole_aggregate& of) noexcept {
    if (lines_ == 0) put_bound("\nbegin,", rate_);
    put(line_start);
    // In a damaged file, the self time may be longer than the total.
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

  /// Returns the complete section; empty if no line was added or there was no memory.
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
  LOTUS_DETAIL_COLD void put_and(std::uint64_t number, char separator) noexcept {
    char digits[32];
    char* const end = put_number_slow(digits, number);
    *end = separator;
    put({digits, static_cast<std::size_t>(end + 1 - digits)});
  }
  void put_bound(std::string_view word, std::uint64_t number) noexcept {
    put(word);
    put_and(name_.began_ns, '.');
    put_and(name_.late, ',');
    put_and(number, '\n');
  }

  section_name name_;
  std::uint64_t rate_;
  std::uint64_t lines_ = 0;
  bool failed_ = false;
  growing_memory text_;
};

/// Appends a section to a file. Returns 0 or an error that file_error_text() can describe.
using append_section = function_ref<int(std::uint32_t loader, std::string_view section)>;

/// Builds a section for each loader that has aggregates, and passes it to `append`.
/// @param for_each_chain  calls its argument for every thread; it is called once for each loader.
/// @return 0, ENOMEM, or the first error of `append`.
LOTUS_DETAIL_COLD inline int for_each_section(const section_name& name, std::uint64_t rate,
                                              const name_lookup& names,
                                              function_ref<void(each_chain)> for_each_chain,
                                              append_section append) noexcept {
  auto* const room = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
  if (room == nullptr) return ENOMEM;
  int first_error = 0;
  // The next loader is the one with the smallest id above that of the current loader.
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

/// Writes to `out` the name of a process's aggregates file, which is in the run's or loader's
/// folder.
/// @param out  at least max_prefix_bytes + 48 bytes.
inline void put_aggregates_file_name(char* out, const char* prefix, std::uint32_t pid) noexcept {
  std::snprintf(out, max_prefix_bytes + 48, "%s%s_%u", aggregates_file_start, prefix, pid);
}

/// Appends a section to the aggregates file of its process and loader. Returns 0 or an error that
/// file_error_text() can describe. Readers ignore a section that was appended incompletely.
/// @param pid  id of the process.
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

// Provides the list of all producers. A producer is the state that the session keeps for a thread.
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

/// Whether a producer belongs to no running thread.
inline bool is_free_or_dead(const producer& p) noexcept {
  const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
  return tid == 0 || thread_is_dead(tid);
}

/// The list of producers. It only grows, so it can be read without a lock; producers of dead
/// threads are reused.
class LOTUS_DETAIL_PER_MODULE producer_list {
 public:
  template <class Each>
  void for_each(Each&& each) const noexcept {
    for (producer* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next) each(*p);
  }

  /// Returns this thread's producer; if the thread has none yet, a new or reused one. Returns null
  /// if there is no memory.
  /// @param retire  bool(producer&): drains a dead thread's producer; returns false if records
  /// remain, or if another thread is draining it.
  /// @param fits  bool(producer&): whether this thread may reuse a dead thread's producer.
  /// @param adopt  void(producer&): prepares a new or reused producer for this thread.
  template <class Retire, class Fits, class Adopt>
  producer* for_this_thread(Retire&& retire, Fits&& fits, Adopt&& adopt) noexcept {
    const std::uint32_t tid = thread_id();
    bool reaps = false;
    {
      const locked hold{lock_};
      // A producer with this thread's id is either this thread's own, created through another
      // shared object, or that of a dead thread whose id the kernel has reused. In both cases this
      // thread must use that producer and continue its logs, because only one ring may be written
      // to a log.
      if (producer* p = find(tid)) return p;
      // A thread that finds no free producer, because another one is still freeing them, helps it.
      // Otherwise new producers, and so new logs, would be added meanwhile.
      reaps = ++begun_ > reap_after_ || (reaping_ > 0 && find(0) == nullptr);
      if (reaps) begun_ = 0, ++reaping_;
    }
    // Nothing that may wait for the disk happens under the lock, which all new threads take.
    if (reaps) reap(retire);
    producer* const p = take(tid, fits);
    if (p != nullptr) adopt(*p);
    return p;
  }

  mutex& fork_lock() noexcept { return lock_; }
  /// The caller holds fork_lock().
  void after_fork_in_child() noexcept { reaping_ = 0; }

 private:
  static constexpr std::size_t at_once = gate_distance / sizeof(producer);
  static_assert(at_once >= 32 && sizeof(producer) >= sizeof(ring_gate));

  static constexpr std::size_t max_that_do_not_fit = 256;

  /// Returns a free producer, or a new one, that now belongs to the thread `tid`.
  template <class Fits>
  producer* take(std::uint32_t tid, Fits& fits) noexcept {
    const locked hold{lock_};
    producer* p = find_free(fits);
    // If this thread may reuse none of the free producers, a new one is added, because later
    // threads may reuse the free ones. If there are too many free ones already, one of them is
    // reused anyway, so that the list does not grow forever.
    if (p == nullptr && count_ >= running_ + reap_after_ + max_that_do_not_fit) p = find(0);
    if (p == nullptr) p = add();
    if (p != nullptr) p->tid.store(tid, std::memory_order_relaxed);
    return p;
  }

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

  /// Frees the producers of dead threads. Threads do not report their end to the session, so that
  /// even the last thread_local destructor of a thread can record. This function is next called
  /// when a quarter as many threads as run now have begun: often enough to bound the number of
  /// rings and logs, and rarely enough to keep the cost of a new thread low.
  template <class Retire>
  void reap(Retire& retire) noexcept {
    std::size_t running = 0;
    for_each([&](producer& p) {
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      if (tid == 0) return;
      ++running;
      if (!thread_is_dead(tid) || !retire(p)) return;
      // Meanwhile, a new thread may have got the dead thread's id, and with it this producer.
      const locked hold{lock_};
      const bool is_same = p.tid.load(std::memory_order_relaxed) == tid;
      if (!is_same || !thread_is_dead(tid) || !retire(p)) return;
      p.tid.store(0, std::memory_order_relaxed);
      --running;
    });
    const locked hold{lock_};
    --reaping_;
    running_ = running;
    reap_after_ = running / 4 + 8;
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
  std::size_t begun_ = 0;    ///< number of threads that got a producer since the last reap()
  std::size_t reaping_ = 0;  ///< number of threads that are in reap() now
  std::size_t running_ = 0;  ///< number of threads that were running then
  std::size_t reap_after_ = 8;
  producer* spare_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_PRODUCERS_HPP

// Manages a process's files in the run's directory: its ring file and its information file.
#ifndef LOTUS_STORE_RUN_RUN_FILES_HPP
#define LOTUS_STORE_RUN_RUN_FILES_HPP

// Finds out whether a log belongs to another process, if several processes write to one directory.
//
// Logs are named by thread ids, and the same ids occur in every container. So before a process
// creates the log of a thread, it writes the thread id into its information file, together with the
// PID namespace. Other processes that find the id there choose another number.
#ifndef LOTUS_FOLDER_LOG_CLAIMS_HPP
#define LOTUS_FOLDER_LOG_CLAIMS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maximum thread id: PID_MAX_LIMIT of Linux.
inline constexpr std::uint32_t largest_thread_id = 4'194'304;

/// Returns a log number for a thread whose id is already used by another process's log. Each call
/// returns another number.
inline std::uint32_t number_of_no_thread(std::uint32_t tid) noexcept {
  std::uint64_t mixed = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) ^
                        (std::uint64_t{tid} << 32) ^ (static_cast<std::uint64_t>(getpid()) << 44);
  mixed = (mixed ^ (mixed >> 31)) * 0x9e3779b97f4a7c15U;
  // The number stays below 2^31, because some readers store it in a signed 32-bit variable.
  return largest_thread_id + 1 + static_cast<std::uint32_t>((mixed >> 32) % 2'000'000'000U);
}

/// Limits how many bytes of information files are read to decide whether one log number is in use.
/// The limit is high enough for thousands of processes, and low enough to protect against huge
/// files of other users. Each file counts as at least one page.
class claim_budget {
 public:
  bool spent() const noexcept { return bytes_ == 0; }
  void take(std::size_t bytes) noexcept { bytes_ -= bytes < bytes_ ? bytes : bytes_; }

 private:
  /// Bytes that may still be read; enough for 600,000 threads or 4,096 files.
  std::size_t bytes_ = std::size_t{16} << 20;
};

/// Reads the lines of an information file, which store/run/run_info.hpp writes.
class claim_file {
 public:
  /// @param name  a file in `directory` (borrowed); treated as empty if it cannot be read.
  claim_file(int directory, const char* name) noexcept {
    struct stat status {};
    fd_ = open_regular(directory, name, O_RDONLY, status);
  }
  claim_file(const claim_file&) = delete;
  claim_file& operator=(const claim_file&) = delete;
  ~claim_file() {
    if (fd_ >= 0) close(fd_);
  }

  /// Calls each(std::string_view) for every line, until `each` returns false or the budget is
  /// spent.
  LOTUS_DETAIL_COLD void for_each_line(claim_budget& budget,
                                       function_ref<bool(std::string_view)> each) const noexcept {
    const mapped<char[min_page_bytes]> memory;
    if (!memory) return;
    auto& text = *memory;
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
      // A line that does not fit in `text` is skipped, because the library does not write such long
      // lines.
      if (from == 0 && held == sizeof(text)) from = held;
      std::memmove(text, text + from, held - from);
      held -= from;
    }
    if (total < min_page_bytes) budget.take(min_page_bytes - total);
  }

 private:
  int fd_ = -1;
};

/// Removes `key`, which ends in a space, from the beginning of a line. Returns false if the line
/// does not begin with `key`.
inline bool take_key(std::string_view& line, std::string_view key) noexcept {
  if (line.substr(0, key.size()) != key) return false;
  line.remove_prefix(key.size());
  return true;
}

/// Whether a process of another PID namespace or machine may be writing logs with this number in
/// their names. Also returns true if the information files are too large to check all of them.
/// @param info  information file of the calling process; if it contains no namespace, all other
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
    bool unknown = true;
    bool claims = false;
    claim_file{directory, name}.for_each_line(budget, [&](std::string_view line) {
      if (take_key(line, "namespace ")) {
        unknown = own[0] == '\0' || line != own;
      } else if (take_key(line, "thread ") || take_key(line, "log ")) {
        claims = claims || take_key(line, digits);
      }
      return unknown && !claims;
    });
    taken = (unknown && claims) || budget.spent();
  });
  return taken;
}

/// Adds to the information file that the logs of thread `tid` have this number. Ignores failures.
inline void report_log_number(int directory, const char* info, const file_owners& owners,
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

// Writes the completely stored records of one ring to a sink, usually the logs of the ring's
// thread.
#ifndef LOTUS_FORMAT_DRAIN_HPP
#define LOTUS_FORMAT_DRAIN_HPP

// Appends lines or blocks to the logs of a ring, so that an append that a crash interrupts can be
// undone.
#ifndef LOTUS_FOLDER_LOG_APPENDER_HPP
#define LOTUS_FOLDER_LOG_APPENDER_HPP

// Writes and parses the names of logs. If the size of logs is limited, a log that has grown too
// long is renamed: it becomes a part, whose name contains the time, and a new log begins.
#ifndef LOTUS_FOLDER_LOG_PARTS_HPP
#define LOTUS_FOLDER_LOG_PARTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Size of a buffer for the longest log name and its terminating zero.
inline constexpr std::size_t log_name_bytes = max_prefix_bytes + 72;

/// Writes the name of a log to `out` (log_name_bytes): "<prefix>_<main|worker>_pid_<number>", or
/// for hidden logs ".lotus_beside_<prefix>_pid_<number>" (side log) or
/// ".lotus_compact_<prefix>_pid_<number>". The name of a part has "_part<k>" after the prefix.
/// @param compact  whether the hidden log is a compact log, the thread's only log.
/// @param part     time at which the part was completed, in ms since the Unix epoch; 0 if the log
///   still grows.
inline void put_log_name(char* out, std::size_t bytes, const char* prefix, log_role role,
                         bool compact, std::uint32_t number, std::uint64_t part = 0) noexcept {
  char which[32] = "";
  if (part != 0) {
    std::snprintf(which, sizeof(which), "_part%llu", static_cast<unsigned long long>(part));
  }
  const bool hidden = role == log_role::side;
  const char* const start = !hidden ? "" : compact ? compact_log_start : side_log_start;
  const char* const kind = hidden ? "" : role == log_role::main ? "_main" : "_worker";
  std::snprintf(out, bytes, "%s%s%s%s_pid_%u", start, prefix, which, kind, number);
}

/// The largest time in ms since the Unix epoch that fits into 64 bits as ns.
inline constexpr std::uint64_t max_part_ms = INT64_MAX / 1'000'000 - 1;

/// The components of a log's name.
struct log_name {
  log_role role = log_role::side;
  bool compact = false;  ///< whether it is a compact log, the only log of its thread
  /// Time at which the part was completed, in ms since the Unix epoch; 0 if the log still grows.
  std::uint64_t part = 0;
  std::size_t part_at = 0;      ///< position of "_part<k>" in the name
  std::size_t part_length = 0;  ///< length of "_part<k>"
  std::uint64_t number = 0;     ///< the number at the end of the name

  /// Parses a file name. Returns false if it is not the name of a log with this prefix.
  LOTUS_DETAIL_COLD bool parse(const char* name, const char* prefix) noexcept {
    *this = log_name{};
    const char* p = name;
    compact = take(p, compact_log_start);
    const bool hidden = compact || take(p, side_log_start);
    if (!take(p, prefix)) return false;
    const char* const behind_prefix = p;
    if (take(p, "_part") && take_number(p, part) && part != 0 && part <= max_part_ms) {
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

  /// Reads a number of at most 18 digits at `p`, and moves `p` to the character after the number.
  /// Returns false if there is no digit at `p`.
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

/// Maximum number of bytes that one append operation adds to a log.
inline constexpr std::size_t max_append_bytes = std::size_t{128} << 10;

/// Returns the number at the end of the names of a ring's logs: usually the id of the ring's
/// thread.
inline std::uint32_t log_number(const ring_block& ring, const log_position& at) noexcept {
  return at.number != 0 ? at.number : ring.tid.load(std::memory_order_relaxed);
}

/// Appends to the logs of one ring. Before and after every append, the length of the log is stored
/// in the ring (a commit). So if a crash interrupts an append, exactly its bytes can be removed
/// later.
class log_appender {
 public:
  /// @param logs  the ring's logs; borrowed. begin() opens a log, which then stays open.
  /// @param ring_file  descriptor of the ring file, if `ring` is a copy; then commits are also
  ///   written to it.
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

  /// Returns a log's inode, length and number as they were last stored in the ring.
  const log_position& position(log_role role) const noexcept {
    return ring_.committed().logs[static_cast<std::size_t>(role)];
  }

  /// Opens the log if it is not open, and stores its length in the ring before append() makes it
  /// longer. Returns 0 or an error that file_error_text() can describe.
  /// @param loader  id of the name of the loader to which the lines belong; 0: the default loader.
  int begin(log_role role, std::uint32_t loader) noexcept {
    open_log& log = logs_[static_cast<std::size_t>(role)];
    struct stat status {};
    bool open = log.file.holds(status);
    const bool another = position(role).loader != loader;
    if (open && (another || status.st_nlink == 0 || was_moved(role, status))) {
      undo(role);    // removes the bytes of an earlier append that failed
      open = false;  // the log was deleted or moved while it was open, so a new one is created
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

  /// Appends complete lines or blocks; call begin() first. On failure, restores the log's old
  /// length. Returns 0 or errno.
  int append(log_role role, const char* lines, std::size_t bytes) noexcept {
    const int error = write_all(logs_[static_cast<std::size_t>(role)].file.number(), lines, bytes);
    if (error != 0) {
      undo(role);
      return error;
    }
    appended_[static_cast<std::size_t>(role)] = bytes;
    return 0;
  }

  /// Removes the bytes that were appended since the log's length was last stored in the ring.
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

  /// Selects the ring from which the next records are appended: initially the ring itself, later
  /// possibly a copy of it in private memory. commit() then stores `tail` in the selected ring. The
  /// lengths of the logs are always stored in the ring itself, because its contents survive if the
  /// process is killed.
  void take_records_of(ring_block& from) noexcept { records_of_ = &from; }

  /// Stores in the ring that the records of this lane (one of the ring's circular buffers) before
  /// the position `tail` are in the logs, and to which loader the next records of the main lane
  /// belong. Returns 0 or errno.
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) noexcept {
    commit_point c = records_of_->committed();
    c.tail[lane] = tail;
    c.loader = loader;
    if (records_of_ == &ring_) return commit_lines(c);
    // The appended records come from a copy of the ring, so they were only in memory until now.
    // Therefore this commit also reduces the number of records in memory that is stored in the
    // ring.
    commit_point of_ring = ring_.committed();
    of_ring.in_memory -= static_cast<std::uint32_t>(tail - records_of_->committed().tail[lane]);
    records_of_->commit(c);
    return commit_lines(of_ring);
  }

  /// Removes the bytes of an append that a crash interrupted. If a log has grown by more than
  /// max_append_bytes, another process has appended to it, and nothing is removed from it. Call
  /// this before any append.
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
      // Closes the log, because it may have been renamed to a part, to which nothing must be
      // appended.
      logs_[i].file.close();
    }
  }

  /// Name of the log or loader's folder that was opened last, or that could not be opened: for
  /// error messages.
  const char* name() const noexcept { return name_; }

 private:
  int commit_lines(commit_point c) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      c.logs[i].length += appended_[i];
      c.logs[i].appending = false;
    }
    const int error = commit_to_file(c);
    for (std::size_t i = 0; i < log_roles; ++i) {
      // If the commit failed, the appended lines are removed from the log, because they will be
      // appended again.
      if (error != 0 && appended_[i] != 0) undo(static_cast<log_role>(i));
      appended_[i] = 0;
    }
    return error;
  }

  /// Stores a commit in the ring and, if the ring is a copy of a ring in a ring file, also in that
  /// file. The index of the current commit is written after the commit itself, so that it always
  /// refers to a completely written commit.
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

  /// Whether an open log was renamed, for example by logrotate. Checks at most twice a second.
  LOTUS_DETAIL_COLD bool was_moved(log_role role, const struct stat& status) noexcept {
    constexpr std::int64_t between_ns = 500'000'000;
    std::int64_t& checked_ns = logs_[static_cast<std::size_t>(role)].checked_ns;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - checked_ns < between_ns) return false;
    checked_ns = now_ns;
    const log_position& at = position(role);
    const int folder = loaders_.of(at.loader);
    // If the folder cannot be opened, the log counts as renamed: begin() then tries to open the log
    // again, and returns the error.
    if (folder < 0) return true;
    put_name(role, log_number(ring_, at));
    struct stat named {};
    if (fstatat(folder, name_, &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    return named.st_ino != status.st_ino || named.st_dev != status.st_dev;
  }

  /// Opens the log that a crash left with an unfinished append, even if the log was renamed.
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

  /// Opens or creates a log. Returns its descriptor or a negative error.
  /// @param at  position of the log; its `number` changes if another process uses the log with that
  ///   number.
  LOTUS_DETAIL_COLD int open_log_file(log_role role, log_position& at,
                                      struct stat& status) noexcept {
    const int folder = loaders_.of(at.loader);
    if (folder < 0) {
      std::snprintf(name_, sizeof(name_), "%s", loaders_.name());
      return folder;
    }
    // All logs of a thread should have the same number in their names, so the number of the
    // thread's other logs is tried first.
    for (const log_position& other : ring_.committed().logs) {
      if (at.number == 0) at.number = other.number;
    }
    constexpr int max_numbers = 16;
    for (int attempt = 0; attempt < max_numbers; ++attempt) {
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
      report_log_number(folder_.directory, folder_.info, folder_.owners, at.number, tid);
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

/// For each log of a thread, the bytes of one append: lines of text, or a block of a compact log.
struct drain_buffer {
  static constexpr std::size_t capacity = max_append_bytes;
  char text[log_roles][capacity];
  std::size_t bytes[log_roles];
};

/// For each lane (circular buffer of a ring): how many records the thread had completely stored at
/// one moment. A drain writes only records before that position.
struct lane_heads {
  std::uint64_t head[lanes];

  explicit lane_heads(const ring_block& ring) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
      head[i] = ring.published[i].load(std::memory_order_acquire);
    }
  }
  /// Returns the number of records that the thread has completely stored but that are not in the
  /// logs yet.
  std::uint64_t beyond(const commit_point& c) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lanes; ++i) count += head[i] - c.tail[i];
    return count;
  }
};

/// Copies the records of `from` that are not in the logs yet, up to `heads`, to the same positions
/// of `to`, an unused ring of the same capacity.
inline void copy_records(ring_block& from, const lane_heads& heads, ring_block& to) noexcept {
  commit_point c = from.committed();
  // The positions of the logs and the count of records in memory are stored only in the original
  // ring.
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

/// Marks the records before `heads` as written or copied, so that the thread can overwrite them.
/// @param in_memory  number of these records that are now in memory and not in the logs.
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

/// Formats records as the lines of text logs, in a buffer.
/// @param names   std::string_view operator()(std::uint64_t id): returns the beginning of a line,
/// "S<name>,", for the id of a name.
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

  /// Adds no records, so drain_ring() passes all of them to add(): only compact_filler has a faster
  /// path for operations.
  static std::uint64_t add_operations(ring_block&, std::size_t, std::uint64_t at,
                                      std::uint64_t) noexcept {
    return at;
  }

  /// Adds the lines of a record to the buffer. Returns false if they may not fit in the buffer.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const auto role = static_cast<std::size_t>(kind.role);
    if (drain_buffer::capacity - buffer_.bytes[role] < max_line_bytes) return false;
    const std::string_view name =
        has_name(kind) ? names_(name_of(kind, r.tag)) : std::string_view{};
    if (LOTUS_DETAIL_UNLIKELY(!kind.side_begin.empty())) {
      if (!add_side_log(r, name)) return false;
      if (kind.role == log_role::side) return true;
    }
    char* const out = buffer_.text[role] + buffer_.bytes[role];
    buffer_.bytes[role] =
        static_cast<std::size_t>(formatter_.format(r, name, out) - buffer_.text[role]);
    return true;
  }

  /// Appends the buffer's contents to the sink (the logs). Returns 0, or the sink's error; after an
  /// error, the log contains none of the bytes that were being appended to it.
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
  LOTUS_DETAIL_COLD bool add_side_log(const record& r, std::string_view name) noexcept {
    constexpr auto side = static_cast<std::size_t>(log_role::side);
    if (drain_buffer::capacity - buffer_.bytes[side] < max_line_bytes) return false;
    char* const out = buffer_.text[side] + buffer_.bytes[side];
    buffer_.bytes[side] =
        static_cast<std::size_t>(formatter_.format_side_line(r, name, out) - buffer_.text[side]);
    return true;
  }

  line_formatter formatter_;
  const Names& names_;
  drain_buffer& buffer_;
};

/// Writes the ring's records that are not in the logs yet, up to `heads`, to `sink`. After each
/// append, the sink stores in the ring that these records are written, so no record is written
/// twice.
/// @param heads  positions up to which records are written. They must have been read before the
///   tick_converter of `fill` was constructed.
/// @param fill   a line_filler or a compact_filler, called in this order: begin(sink, loader), then
///   add(record) until it returns false, or add_operations(ring, lane, from, to), which returns the
///   position that it reached, then append(sink, loader), then committed(sink) or failed().
/// @param sink   has begin(role, loader), append(role, text, bytes), undo(role), commit(lane, tail,
///   loader) and position(role). All but undo and position return 0 or an error that
///   file_error_text() can describe. A loader is the id of its name, 0 the default loader.
/// @return 0, or the error of the sink; then the remaining records stay in the ring.
template <class Filler, class Sink>
int drain_ring(ring_block& ring, const lane_heads& heads, Filler& fill, Sink& sink) noexcept {
  for (std::size_t lane = lanes; lane-- > 0;) {
    std::uint64_t at = ring.committed().tail[lane];
    while (at != heads.head[lane]) {
      std::uint32_t loader = ring.committed().loader;
      // A loader record selects the loader of the records after it. It counts only in lane 0: lane
      // 1 contains records of signal handlers that interrupted the thread while it stored a record.
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

// Measures how long threads are off the CPU, and reads clocks only if the thread was switched out.
//
// Linux has an area for restartable sequences for each thread (rseq(2); glibc 2.35 and later
// register it). When a thread continues after it was switched out or received a signal, the kernel
// clears the pointer in that area, unless the thread is executing the sequence to which it points.
// lotus stores a pointer to a sequence that no thread ever executes, so switches clear it.
//
// Reading the CPU clock after a switch takes a system call. So a thread that is switched out often
// reads it only now and then, and records estimates in between. Each reading corrects the sum: it
// records the difference between the time that was read and the time that is recorded already.
#ifndef LOTUS_STORE_CPU_CLOCK_HPP
#define LOTUS_STORE_CPU_CLOCK_HPP

// Determines which part of a thread's time off the CPU it spent waiting for a CPU.
#ifndef LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP
#define LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP

// Reads how long threads have waited for a CPU, from their files /proc/thread-self/schedstat.
#ifndef LOTUS_STORE_RUN_QUEUE_HPP
#define LOTUS_STORE_RUN_QUEUE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Reads the schedstat files of threads, and keeps some of them open. Any thread may call all
/// functions, but only with its own run_queue_file.
class run_queue_reader {
 public:
  /// Returns how long this thread has waited for a CPU since it began, in ns; -1 if unknown.
  /// @param cpu_ns   CPU time of this thread, read before this call.
  /// @param wall_ns  time on any clock, by which the descriptor is checked once per second.
  std::int64_t read(run_queue_file& file, std::int64_t cpu_ns, std::int64_t wall_ns) noexcept {
    schedstat now = contents(file.descriptor.number());
    const bool checked = wall_ns - file.checked_ns < check_interval_ns;
    if (!checked || !follows(now, file, cpu_ns)) {
      file.checked_ns = wall_ns;
      const uncanceled quiet;
      if (!file.descriptor.holds()) now = reopen(file);
    }
    if (now.queue_ns >= 0) {
      file.cpu_ns = now.cpu_ns;
      file.queue_ns = now.queue_ns;
    }
    return now.queue_ns;
  }

  void close(run_queue_file& file) noexcept {
    if (file.descriptor.number() >= 0) open_files_.fetch_sub(1, std::memory_order_relaxed);
    file.descriptor.close();
    file = {};
  }

 private:
  static constexpr std::uint32_t max_open_files = 32;
  static constexpr std::int64_t check_interval_ns = 1'000'000'000;

  struct schedstat {
    std::int64_t cpu_ns = -1;
    std::int64_t queue_ns = -1;
  };

  /// Whether the file can be the one that was read last. The program may have closed the descriptor
  /// and reused its number; fstat(2) would show this too, but takes half as long as pread(2).
  static bool follows(const schedstat& now, const run_queue_file& last,
                      std::int64_t cpu_ns) noexcept {
    constexpr std::int64_t since_cpu_ns = 100'000'000;
    return now.cpu_ns >= last.cpu_ns && now.queue_ns >= last.queue_ns &&
           now.cpu_ns <= cpu_ns + since_cpu_ns;
  }

  /// Reads the first two of the three numbers in the file. Unlike pread(3), the system call is not
  /// a cancellation point.
  static schedstat contents(int fd) noexcept {
    if (fd < 0) return {};
    char text[96] = {};
    const int error = errno;
    const long bytes = syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0);
    errno = error;
    if (bytes <= 0) return {};
    const char* at = text;
    schedstat now;
    now.cpu_ns = number(at);
    now.queue_ns = *at == ' ' ? number(++at) : -1;
    return *at == ' ' ? now : schedstat{};
  }

  static std::int64_t number(const char*& at) noexcept {
    std::uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; ++at) n = n * 10 + static_cast<std::uint64_t>(*at - '0');
    return static_cast<std::int64_t>(n);
  }

  /// Opens the thread's file again and reads it. Keeps the file open, unless max_open_files are
  /// open already.
  schedstat reopen(run_queue_file& file) noexcept {
    if (file.descriptor.number() >= 0) {  // the program has closed the descriptor
      open_files_.fetch_sub(1, std::memory_order_relaxed);
    }
    file.descriptor = {};
    const int fd = open_at_high_fd(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
    const schedstat now = contents(fd);
    if (fd < 0) return now;
    if (open_files_.fetch_add(1, std::memory_order_relaxed) < max_open_files) {
      file.descriptor = owned_descriptor{fd};
      return now;
    }
    open_files_.fetch_sub(1, std::memory_order_relaxed);
    ::close(fd);
    return now;
  }

  std::atomic<std::uint32_t> open_files_{0};
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_QUEUE_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Divides the time off the CPU of threads. Reading a thread's schedstat file after a long wait
/// takes several microseconds, so the part is predicted in between: a thread waited for a CPU if it
/// was switched out while it computed. Each reading corrects the sum. Any thread may call all
/// functions, but only with its own run_queue_account.
class run_queue_clock {
 public:
  /// Begins to account for a thread.
  void begin(run_queue_account& of) noexcept {
    of.queue_ns = of.recorded_ns = reader_.read(of.file, 0, 0);
  }
  void give_up(run_queue_account& of) noexcept { reader_.close(of.file); }

  /// Returns the part of `off_ns`, a time off the CPU that is recorded now, without a reading.
  /// @param computing  whether the thread was computing when it was switched out.
  static std::uint64_t predict(run_queue_account& of, std::int64_t off_ns,
                               bool computing) noexcept {
    of.unread_off_ns += off_ns;
    return predict_unread(of, off_ns, computing);
  }

  /// Like predict(), but reads the thread's file if a reading is due.
  /// @param now  present time in ticks.
  /// @param cpu_ns, wall_ns  CPU time of the thread, and the time on `clock`.
  std::uint64_t part(run_queue_account& of, std::int64_t off_ns, bool computing, std::uint64_t now,
                     std::int64_t cpu_ns, std::int64_t wall_ns,
                     const extrapolated_clock& clock) noexcept {
    of.unread_off_ns += off_ns;
    const bool is_due = of.unread_off_ns >= min_unread_off_ns &&
                        (!is_predictable(of) || now >= of.due_ticks || off_ns >= long_off_ns);
    if (!is_due && of.queue_ns >= 0) return predict_unread(of, off_ns, computing);
    const std::int64_t before_ns =
        std::exchange(of.queue_ns, reader_.read(of.file, cpu_ns, wall_ns));
    if (of.queue_ns < 0) return run_queue_unknown;
    if (before_ns < 0) {
      of.recorded_ns = of.queue_ns;
      return run_queue_unknown;
    }
    compare(of, of.queue_ns - before_ns, computing ? off_ns : 0, clock.is_known());
    if (is_predictable(of)) {
      const double right = of.right_predictions - min_right_predictions + 1;
      of.due_ticks = now + clock.to_ticks(std::min(max_pause_ns, right * pause_step_ns));
    }
    // If the thread is switched out after the clocks were read and before the run queue time was
    // read, the run queue time includes a wait that the time off the CPU does not include yet. The
    // next call records the rest of that wait.
    const std::int64_t left_ns = of.queue_ns - of.recorded_ns;
    return record(of, std::max<std::int64_t>(0, std::min(left_ns, off_ns)));
  }

 private:
  static constexpr std::uint32_t min_right_predictions = 32;
  /// After so many right predictions, a reading allows the next one later, and after each further
  /// one by this much more: a few may be right by chance.
  static constexpr double pause_step_ns = 1e5;
  static constexpr double max_pause_ns = 1e7;
  /// After a time off the CPU that is this long, the file is always read. On a busy machine, a
  /// thread that computes may wait for a CPU ten times as long as it computes, which looks like a
  /// thread that waits for something else, and no later reading may correct a thread's last time.
  static constexpr std::int64_t long_off_ns = 5'000'000;
  /// The file is read only after this much time off the CPU.
  static constexpr std::int64_t min_unread_off_ns = 50'000;

  static bool is_predictable(const run_queue_account& of) noexcept {
    return of.right_predictions >= min_right_predictions;
  }

  static std::uint64_t record(run_queue_account& of, std::int64_t part_ns) noexcept {
    of.recorded_ns += part_ns;
    return static_cast<std::uint64_t>(part_ns);
  }

  static std::uint64_t predict_unread(run_queue_account& of, std::int64_t off_ns,
                                      bool computing) noexcept {
    if (of.queue_ns < 0) return run_queue_unknown;
    if (computing) of.predicted_ns += off_ns;
    // What was predicted too high before the last reading is subtracted, so that errors which are
    // too small to be noticed do not add up.
    const double share_ns = static_cast<double>(of.unread_off_ns) * of.share;
    const std::int64_t waited_ns =
        of.queue_ns + (is_predictable(of) ? of.predicted_ns : static_cast<std::int64_t>(share_ns));
    return record(of, std::max<std::int64_t>(0, std::min(waited_ns - of.recorded_ns, off_ns)));
  }

  /// Compares what was predicted since the last reading with the truth, `waited_ns`.
  /// @param last_ns  prediction for the last time off the CPU.
  static void compare(run_queue_account& of, std::int64_t waited_ns, std::int64_t last_ns,
                      bool is_clock_known) noexcept {
    const std::int64_t wrong_ns = waited_ns - std::exchange(of.predicted_ns, 0) - last_ns;
    const std::int64_t unread_ns = std::exchange(of.unread_off_ns, 0);
    of.share = std::min(1.0, static_cast<double>(waited_ns) / static_cast<double>(unread_ns));
    const bool right = is_clock_known && std::max(wrong_ns, -wrong_ns) * 16 <= unread_ns;
    of.right_predictions = right ? of.right_predictions + 1 : 0;
  }

  run_queue_reader reader_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_QUEUE_ACCOUNT_HPP

#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
  #include <sys/rseq.h>
  #define LOTUS_DETAIL_HAS_RSEQ 1
#else
  #define LOTUS_DETAIL_HAS_RSEQ 0
#endif

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the address of the pointer in this thread's rseq area; null if there is no such area.
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

/// When threads read their CPU clocks: never, once per batch, or whenever they were switched out.
/// Information files contain these names.
enum class cpu_watching : std::uint32_t { off, batches, switches };

/// Measures how long threads are off the CPU. The object must be in memory that is never freed,
/// because every thread's rseq area points into it. Any thread may call all functions, but only
/// with its own cpu_account.
class cpu_clock {
 public:
  /// @param wanted  whether to measure from now on.
  void begin(bool wanted) noexcept {
    const bool sequences = sequence_pointer() != nullptr;
    if (sequences) make_sequence();
    const cpu_watching mode = !wanted     ? cpu_watching::off
                              : sequences ? cpu_watching::switches
                                          : cpu_watching::batches;
    change_mode(mode);
  }

  cpu_watching mode() const noexcept { return mode_.load(std::memory_order_acquire); }

  /// Returns this thread's time off the CPU since its previous call (the first call returns 0), and
  /// sets up `watch` to detect the next time off the CPU.
  /// @param in  where the thread was switched out, if threads notice all switches.
  off_cpu_time read(cpu_account& account, cpu_watch& watch, const off_cpu_window& in) noexcept {
    if (account.reading != 0 && is_interrupted(account.reading)) return {};
    account.reading = stack_pointer();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const cpu_watching mode = this->mode();
    begin_watch(watch, mode);
    off_cpu_time found;
    if (mode != cpu_watching::off) found = find(account, in, mode);
    if (found.off_ns != 0) {
      account.futile = 0;
    } else if (mode == cpu_watching::switches && is_futile(account)) {
      // The mode changes for all threads, because the information file states only one mode for the
      // whole process.
      change_mode(cpu_watching::batches);
      begin_watch(watch, cpu_watching::batches);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    account.reading = 0;
    return found;
  }

  /// Clears the cpu_account of a thread that no longer exists, so that another thread can use it.
  /// In a forked child, the threads of the parent no longer exist.
  void give_up(cpu_account& account) noexcept {
    run_queue_.give_up(account.queue);
    account = {};
  }

  /// Makes the first check in a forked child read the clocks, because the child's CPU clock starts
  /// at 0.
  static void disturb() noexcept {
    if (std::uint64_t* const pointer = sequence_pointer()) {
      __atomic_store_n(pointer, 0, __ATOMIC_RELAXED);
    }
  }

 private:
  void change_mode(cpu_watching mode) noexcept {
    mode_.store(mode, std::memory_order_release);
    // Threads without an rseq area watch the number runs_, and read their clocks when it changes.
    __atomic_fetch_add(&runs_, 1, __ATOMIC_RELEASE);
  }

  /// A restartable sequence in the kernel's layout, which is struct rseq_cs of linux/rseq.h.
  struct alignas(32) sequence {
    std::uint32_t version;
    std::uint32_t flags;
    std::uint64_t start_ip;
    std::uint64_t post_commit_offset;
    std::uint64_t abort_ip;
  };

  /// A shorter time off the CPU is ignored, because the wall clock and the CPU clock are not read
  /// at the same moment.
  static constexpr std::int64_t min_off_ns = 500;
  /// If this many calls within futile_ns find no time off the CPU, another library probably
  /// keeps changing the rseq area. Then clocks are read only once per batch.
  static constexpr std::uint32_t max_futile = 1000;
  static constexpr std::int64_t futile_ns = 100'000'000;

  /// Minimum mean time between readings, which limits them to 2,000 per second or 0.2 % of a
  /// thread's time. After a pause, burst_ns / pause_ns readings may follow each other immediately.
  static constexpr double pause_ns = 5e5;
  static constexpr double burst_ns = 1e7;

  /// Creates a sequence of one byte of data, which no thread ever executes.
  void make_sequence() noexcept {
#if LOTUS_DETAIL_HAS_RSEQ
    if (sequence_.start_ip != 0) return;  // the sequence exists, and the kernel may be reading it
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

  /// Whether a thread was computing when it was switched out, according to the time that it was off
  /// the CPU in a window, and not waiting for something. Then it probably waited for a CPU.
  static bool was_computing(std::int64_t window_ns, std::int64_t off_ns) noexcept {
    return (window_ns - off_ns) * 8 > off_ns;
  }

  /// Returns the time off the CPU since the last call.
  off_cpu_time find(cpu_account& account, const off_cpu_window& in, cpu_watching mode) noexcept {
    const std::uint64_t now = in.end_ticks;
    // If threads do not notice switches, they may have been switched out at any moment.
    const std::uint64_t known = mode == cpu_watching::switches ? in.begin_ticks : 0;
    const std::uint64_t begin = std::max(known, account.looked_ticks);
    const std::uint64_t window = now > begin ? now - begin : 0;
    account.looked_ticks = now;
    account.window_ticks += window;
    if (!account.begun) return begin_account(account);
    if (account.wall.is_known()) {
      if (account.due_ticks > now + account.wall.to_ticks(burst_ns)) {
        return estimate(account, window);
      }
      account.due_ticks = std::max(account.due_ticks, now) + account.wall.to_ticks(pause_ns);
    }
    return read_clocks(account, now);
  }

  LOTUS_DETAIL_COLD off_cpu_time begin_account(cpu_account& account) noexcept {
    account.begun = true;
    account.window_ticks = 0;
    // Opening the file takes longest, and must not count as time off the CPU of the first span.
    run_queue_.begin(account.queue);
    const std::int64_t wall_ns = account.wall.read(now_ticks());
    account.off_ns = account.recorded_off_ns = wall_ns - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return {};
  }

  /// Returns an estimate of the time off the CPU in the last window: the same share of it as in the
  /// windows before the last reading.
  static off_cpu_time estimate(cpu_account& account, std::uint64_t window) noexcept {
    const std::int64_t window_ns = account.wall.to_ns(window);
    const auto off_ns =
        static_cast<std::int64_t>(static_cast<double>(window_ns) * account.off_share);
    if (off_ns < min_off_ns) return {};
    account.recorded_off_ns += off_ns;
    return {static_cast<std::uint64_t>(off_ns),
            run_queue_clock::predict(account.queue, off_ns, was_computing(window_ns, off_ns))};
  }

  /// Reads the wall clock before the CPU clock: if the thread is switched out between the two
  /// readings, the next call returns that time.
  off_cpu_time read_clocks(cpu_account& account, std::uint64_t now) noexcept {
    const std::int64_t wall_ns = account.wall.ns(now_ticks());
    const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t off_ns = wall_ns - cpu_ns;
    const std::int64_t true_ns = off_ns - account.off_ns;
    const std::int64_t window_ns = std::max(account.wall.to_ns(account.window_ticks), true_ns);
    account.off_share =
        true_ns > 0 ? static_cast<double>(true_ns) / static_cast<double>(window_ns) : 0;
    account.off_ns = off_ns;
    account.window_ticks = 0;
    const std::int64_t new_off_ns = off_ns - account.recorded_off_ns;
    if (new_off_ns < min_off_ns) return {};
    account.recorded_off_ns = off_ns;
    return {static_cast<std::uint64_t>(new_off_ns),
            run_queue_.part(account.queue, new_off_ns, was_computing(window_ns, true_ns), now,
                            cpu_ns, wall_ns, account.wall)};
  }

  static bool is_futile(cpu_account& account) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (account.futile++ == 0) account.futile_since_ns = now_ns;
    if (account.futile < max_futile) return false;
    account.futile = 0;
    return now_ns - account.futile_since_ns < futile_ns;
  }

  sequence sequence_{};
  /// A second sequence that no thread ever executes: its address in the rseq area marks the watch;
  /// see cpu_watch::mark().
  sequence marked_sequence_{};
  [[maybe_unused]] std::uint32_t signature_[2] = {};
  [[maybe_unused]] char never_run_ = 0;
  std::uint64_t runs_ = 0;
  std::atomic<cpu_watching> mode_{cpu_watching::off};
  run_queue_clock run_queue_;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_CPU_CLOCK_HPP

// Tracks which names of operations are in the ring file, from which recovery reads them after a
// kill.
#ifndef LOTUS_STORE_KEPT_NAMES_HPP
#define LOTUS_STORE_KEPT_NAMES_HPP

// Provides the ring file: a file mapping from which the rings, names and clock of a process can be
// read after the process has died.
#ifndef LOTUS_STORE_RING_FILE_HPP
#define LOTUS_STORE_RING_FILE_HPP

#include <linux/falloc.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

// Keeps the directory of a run open, and reopens it if the program closes the descriptor.
#ifndef LOTUS_STORE_RUN_RUN_DIRECTORY_HPP
#define LOTUS_STORE_RUN_RUN_DIRECTORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The open directory of a run. Call descriptor() on any thread, and open() and close() under the
/// session's control lock.
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

  /// Returns the directory's descriptor for immediate use. If the program has closed the
  /// descriptor, reopens the directory. If that fails, returns -errno: -ESTALE if the path now
  /// leads to another directory.
  LOTUS_DETAIL_COLD int descriptor() noexcept {
    const locked hold{lock_};
    return held_.holds() || reopen() == 0 ? held_.number() : -errno;
  }

  /// Whether the directory was deleted after it was opened.
  bool was_deleted() noexcept {
    const locked hold{lock_};
    struct stat status {};
    return held_.holds(status) && status.st_nlink == 0;
  }

  /// Opens the directory that has replaced a deleted one, if it belongs to the same user. Returns
  /// false if there is none.
  LOTUS_DETAIL_COLD bool follow() noexcept {
    const locked hold{lock_};
    struct stat before {};
    struct stat after {};
    if (*path_ == '\0' || !held_.holds(before)) return false;
    const int fd = open_at_high_fd(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return false;
    if (fstat(fd, &after) != 0 || after.st_nlink == 0 || after.st_uid != before.st_uid) {
      ::close(fd);
      return false;
    }
    held_.close();
    held_ = owned_descriptor{fd, after};
    return true;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked hold{lock_};
    held_.close();
    *path_ = '\0';
  }

  /// Appends the path and prefix of the logs to the file that LOTUS_RUN_LIST names, so that
  /// `lotus-tool run` finds logs even if the program chooses their directory. Ignores failures.
  LOTUS_DETAIL_COLD void add_to_list(const char* prefix) const noexcept {
    const char* const list = environment_text(variable::run_list);
    if (list == nullptr || *path_ == '\0') return;
    const mapped<char[sizeof(path_) + sizeof(log_location::prefix) + 2]> memory;
    if (!memory) return;
    auto& line = *memory;
    const int length = std::snprintf(line, sizeof(line), "%s/%s\n", path_, prefix);
    const int fd = open_at_high_fd(AT_FDCWD, list, O_WRONLY | O_APPEND);
    if (fd < 0) return;
    write_all(fd, line, static_cast<std::size_t>(length));
    ::close(fd);
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Stores the directory's absolute path, because the program may change its working directory.
  /// Stores an empty path if the path is too long.
  void keep_path(const char* path) noexcept {
    const mapped<char[sizeof(path_) / 2]> memory;
    if (!memory) return;
    auto& here = *memory;
    const bool absolute = *path == '/';
    if (!absolute && getcwd(here, sizeof(here)) == nullptr) return;
    std::snprintf(path_, sizeof(path_), "%s%s%s", here, absolute ? "" : "/", path);
  }

  /// Reopens the directory by its path. Returns 0, or -1 with errno set.
  int reopen() noexcept {
    const file_identity before = held_.file();
    const owned_descriptor again{open_at_high_fd(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY)};
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
  /// Absolute path of the directory; empty if unknown.
  char path_[2 * sizeof(log_location::directory)] = "";
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_DIRECTORY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Makes the file system rewrite the blocks of an empty file in place. Returns false if it cannot:
/// then a rewritten page of a mapping needs a new block, and without one the program dies by
/// SIGBUS.
LOTUS_DETAIL_COLD inline bool rewrite_in_place(int fd) noexcept {
  // Numbers of linux/magic.h and linux/fs.h, which older systems lack or which define too much.
  constexpr unsigned btrfs = 0x9123683E;
  constexpr unsigned bcachefs = 0xCA451A4E;
  constexpr unsigned zfs = 0x2FC12FC1;
  constexpr unsigned long get_flags = _IOR('f', 1, long);
  constexpr unsigned long set_flags = _IOW('f', 2, long);
  constexpr int no_copy_on_write = 0x00800000;
  struct statfs disk {};
  const auto type = fstatfs(fd, &disk) == 0 ? static_cast<unsigned>(disk.f_type) : 0;
  if (type == bcachefs || type == zfs) return false;
  if (type != btrfs) return true;
  int flags = 0;
  if (ioctl(fd, get_flags, &flags) != 0) return false;
  flags |= no_copy_on_write;
  if (ioctl(fd, set_flags, &flags) != 0) return false;
  // Before Linux 6.16, btrfs reserves a new block even if it then rewrites the old one.
  struct utsname is {};
  if (uname(&is) != 0) return false;
  char* after_major = nullptr;
  const long major = std::strtol(is.release, &after_major, 10);
  const long minor = *after_major == '.' ? std::strtol(after_major + 1, nullptr, 10) : 0;
  return major > 6 || (major == 6 && minor >= 16);
}

/// This process's ring file. A file lock on owner_lock_byte shows other processes that this process
/// is running; the kernel releases the lock when the process ends or execs. Without the file,
/// blocks are private memory. Callers hold the lock of run_files. Trivially destructible.
class ring_file {
 public:
  /// Creates the file in the directory `in`, which is borrowed and must outlive this object.
  /// Returns 0 or errno.
  /// @param name_ns  number in the file's name, the same as in the name of the information file.
  /// @param began_ns  start of this recording, in ns of CLOCK_REALTIME.
  LOTUS_DETAIL_COLD int create(run_directory& in, unsigned long long name_ns, const char* prefix,
                               mode_t mode, std::uint32_t flags, const clock_map& clock,
                               std::uint64_t began_ns) noexcept {
    directory_ = &in;
    const int directory = in.descriptor();
    if (directory < 0) return -directory;
    char unfinished[96];
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(name_, sizeof(name_), "%s%u_%llx", ring_file_start, pid, name_ns);
    std::snprintf(unfinished, sizeof(unfinished), "%s%u_%llx", unfinished_ring_file_start, pid,
                  name_ns);
    struct stat status {};
    // Only the owner may write to the file: if others truncated it, this process would die by
    // SIGBUS.
    constexpr mode_t others_write = 022;
    const int fd = open_regular(directory, unfinished, O_RDWR | O_CREAT | O_EXCL, status,
                                mode & ~others_write);
    if (fd < 0) return -fd;
    file_ = {fd, status};
    unshares_ = true;
    int error = rewrite_in_place(fd) ? take_file_lock(fd, owner_lock_byte) : EOPNOTSUPP;
    bytes_ = reserved_ = 0;
    void* header = error == 0 ? map_more(to_file_blocks(sizeof(ring_file_header)), error) : nullptr;
    if (header != nullptr) {
      header_ = static_cast<ring_file_header*>(header);
      fill_header(prefix, flags);
      header_->began_ns = began_ns;
      store_clock(clock);
      // Recovery looks for the new name, so only a complete file gets that name.
      if (renameat(directory, unfinished, directory, name_) != 0) error = errno;
    }
    if (error != 0) {
      unlinkat(directory, unfinished, 0);
      forget();
    }
    return error;
  }

  bool exists() const noexcept { return header_ != nullptr; }

  /// Returns a new ring block for the thread `tid`; null if there is no memory. If the file cannot
  /// grow, the block is a small ring in the spare space or, if that is used up, private memory.
  /// @param error  set to 0 if the block is in the file; otherwise to the errno of the reason.
  ring_block* add_ring(std::uint32_t tid, std::uint32_t capacity, bool may_be_small,
                       int& error) noexcept {
    if (ring_block* const whole = add_whole_ring(tid, capacity, error)) return whole;
    std::size_t bytes = to_file_blocks(ring_block::bytes_for(min_ring_records));
    void* const spare = may_be_small ? map_spare(bytes, error) : nullptr;
    if (spare != nullptr) return make_ring(spare, bytes, tid, min_ring_records);
    bytes = to_file_blocks(ring_block::bytes_for(capacity));
    return make_ring(map_memory(bytes), bytes, tid, capacity);
  }

  /// Returns a new ring block in the file; null if the file cannot grow.
  ring_block* add_whole_ring(std::uint32_t tid, std::uint32_t capacity, int& error) noexcept {
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(capacity));
    error = ENOENT;
    void* const memory = exists() ? map_more(bytes, error) : nullptr;
    return make_ring(memory, bytes, tid, capacity);
  }

  /// Returns a new block for aggregates; see add_ring().
  /// @param chain  number of the chain of blocks to which the block belongs; each thread has one
  /// chain.
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

  /// Copies a ring's records before `heads` to the file. Returns false if the file cannot grow.
  bool add_copy(ring_block& from, const lane_heads& heads) noexcept {
    if (!exists()) return false;
    int error = 0;
    const std::size_t bytes = to_file_blocks(ring_block::bytes_for(from.capacity));
    void* const grown = map_more(bytes, error);
    auto* ring = static_cast<ring_block*>(grown != nullptr ? grown : map_spare(bytes, error));
    if (ring == nullptr) return false;
    ring->tid.store(from.tid.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring->capacity = from.capacity;
    copy_records(from, heads, *ring);
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    munmap(ring, bytes);
    return true;
  }

  /// Unmaps a ring. Its block stays in the file.
  static void unmap(ring_block* ring) noexcept { munmap(ring, ring->header.bytes); }

  /// Lets the thread store its next records without page faults: the kernel delays the first store
  /// to a page of a file, also after each time when it has written the page to the disk. Does
  /// nothing for few records, because most threads do not fill their rings.
  static void make_writable(ring_block& ring, std::uint64_t records) noexcept {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
    if (records * sizeof(record) < min_page_bytes) return;
    const std::uint64_t at = ring.published[0].load(std::memory_order_relaxed);
    const std::uint64_t first = at & (ring.capacity - 1);
    const bool wraps = first + records > ring.capacity;
    const record* const begin = ring.slots() + (wraps ? 0 : first);
    const record* const end = ring.slots() + (wraps ? ring.capacity : first + records);
    const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(begin) & ~(page_bytes - 1);
    const int error = errno;
    madvise(reinterpret_cast<void*>(from), reinterpret_cast<std::uintptr_t>(end) - from,
            populate_write);
    errno = error;
  }

  /// Replaces a ring's mapping by zeroed private memory at the same address.
  static void replace(ring_block* ring) noexcept {
    static_cast<void>(mmap(ring, ring->header.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  }

  /// Stores the names that were added since the last call. Returns false if the file cannot grow.
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

  /// Gives the file blocks of its own again if it shares them with a copy (cp --reflink), because a
  /// rewritten page would otherwise need a new block. Returns 0 or errno. Does nothing where the
  /// file system does not offer that, or less than half a second after the last call.
  int unshare_blocks() noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (!exists() || !unshares_ || now_ns - unshared_ns_ < 500'000'000 || !file_.holds()) return 0;
    unshared_ns_ = now_ns;
    const int how = FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(file_.number(), how, 0, static_cast<off_t>(bytes_)) == 0) return 0;
    unshares_ = errno == ENOSPC || errno == EDQUOT;
    return unshares_ ? errno : 0;
  }

  void store_clock(const clock_map& clock) noexcept {
    if (!exists()) return;
    const std::uint32_t next = 1 - header_->clock_index.load(std::memory_order_relaxed);
    header_->clocks[next] = clock;
    header_->clock_index.store(next, std::memory_order_release);
  }

  /// Closes the file. The rings stay mapped, because their threads may be writing to them.
  /// @param keep  whether the file stays on the disk, because it contains records that are not in
  /// the logs.
  /// @param complete  whether no more records are stored, so that others may recover these records.
  void finish(bool keep, bool complete) noexcept {
    if (!exists()) return;
    const int directory = directory_->descriptor();
    if (complete && file_.holds()) release_file_lock(file_.number(), owner_lock_byte);
    if (!keep && directory >= 0) unlinkat(directory, name_, 0);
    forget();
  }

  /// Closes the file, but does not delete it: a forked child does so with its parent's file.
  void forget() noexcept {
    file_.close();
    if (header_ != nullptr) munmap(header_, header_->header_bytes);
    if (names_ != nullptr) munmap(names_, names_->header.bytes);
    *this = ring_file{};
  }

 private:
  static constexpr std::size_t names_block_bytes = std::size_t{64} << 10;
  /// Enough for the aggregates of ten names with durations within a factor of ten each.
  static constexpr std::size_t aggregates_block_bytes = std::size_t{16} << 10;
  /// Disk space at the end of the file that is reserved in advance for what the file still needs
  /// when the disk is full: new names, and small rings for threads that start then. With pages of
  /// 4 KiB, it suffices for 64 threads, or 32 and several thousand names.
  static constexpr std::size_t spare_bytes = std::size_t{256} << 10;

  static ring_block* make_ring(void* memory, std::size_t bytes, std::uint32_t tid,
                               std::uint32_t capacity) noexcept {
    auto* const ring = static_cast<ring_block*>(memory);
    if (ring == nullptr) return nullptr;
    ring->tid.store(tid, std::memory_order_relaxed);
    ring->capacity = capacity;
    ring->header.bytes = bytes;
    ring->header.kind.store(block_kind::ring, std::memory_order_release);
    return ring;
  }

  /// Extends the file and maps the new pages, whose disk space is reserved: otherwise, storing a
  /// record in them would crash with SIGBUS if the disk is full. The spare space after the new
  /// pages is extended to spare_bytes, or stays as large as it was.
  LOTUS_DETAIL_COLD void* map_more(std::size_t bytes, int& error) noexcept {
    error = file_.holds() ? 0 : reopen();
    if (error == 0 && reserve_up_to(bytes_ + bytes + spare_bytes) != 0) {
      error = reserve_up_to(reserved_ + bytes);
    }
    return error == 0 ? map_reserved(bytes, error) : nullptr;
  }

  /// Maps pages of the spare space. Returns null, without a change of `error`, if it is too small.
  LOTUS_DETAIL_COLD void* map_spare(std::size_t bytes, int& error) noexcept {
    if (!exists() || bytes_ + bytes > reserved_) return nullptr;
    error = file_.holds() ? 0 : reopen();
    return error == 0 ? map_reserved(bytes, error) : nullptr;
  }

  /// Reserves disk space for the first `end` bytes of the file. Returns 0 or errno.
  int reserve_up_to(std::size_t end) noexcept {
    const int error = end <= reserved_ ? 0 : reserve(file_.number(), reserved_, end - reserved_);
    if (error == 0 && end > reserved_) reserved_ = end;
    return error;
  }

  void* map_reserved(std::size_t bytes, int& error) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        file_.number(), static_cast<off_t>(bytes_));
    if (memory == MAP_FAILED) {
      error = errno;
      return nullptr;
    }
    bytes_ += bytes;
    return memory;
  }

  /// Reopens the file after the program has closed the descriptor. Returns 0 or errno. The owner's
  /// lock is still held, because the mapped header keeps the file's first open file description
  /// alive.
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
    if (memory == nullptr) memory = map_spare(names_block_bytes, error);
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
  std::size_t bytes_ = 0;  ///< size of the header and all blocks
  bool unshares_ = true;   ///< whether unshare_blocks() may have an effect
  std::int64_t unshared_ns_ = 0;
  std::size_t reserved_ = 0;  ///< size of the file; the bytes after bytes_ are the spare space
  names_block* names_ = nullptr;
  std::size_t names_left_ = 0;
  std::uint32_t names_stored_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RING_FILE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The ids of the names in the ring file. has() is thread-safe; callers of the other functions hold
/// the lock of the ring file.
class kept_names {
 public:
  /// Whether the name with this id is in the ring file. Also true if there is no ring file.
  bool has(std::uint32_t id) const noexcept { return id <= stored_.load(); }

  void store(ring_file& file, const name_table& names) noexcept {
    // store_names() stores all names that are in the table now. For a name that another thread adds
    // from here on, has() returns false; that thread then waits for the lock and stores the name.
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

// Recovers leftovers: appends the records in dead processes' ring files to the logs.
#ifndef LOTUS_STORE_LEFTOVERS_HPP
#define LOTUS_STORE_LEFTOVERS_HPP

// Appends records that dead processes left in their ring files to the logs (recovery).
#ifndef LOTUS_RECOVERY_RECOVERY_HPP
#define LOTUS_RECOVERY_RECOVERY_HPP

// Reads the aggregates (sums of counted calls) in a ring file.
#ifndef LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP
#define LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP

// Copies the aggregates (sums of counted calls) from the ring file of another process, block by
// block.
#ifndef LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP
#define LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The ring file from which aggregates are read.
struct aggregates_source {
  int descriptor;          ///< descriptor of the file; borrowed
  std::uint64_t began_ns;  ///< start of the recording, from the file's header
  std::uint64_t rate;      ///< mean_rate() of the file's clock
  name_lookup names;       ///< returns the start of a line, "S<name>,", for a name's id
};

using each_place = function_ref<void(std::uint64_t at, std::uint64_t bytes)>;

/// Copies of all aggregate blocks of a ring file.
class LOTUS_DETAIL_PER_MODULE dead_aggregates {
 public:
  /// @param state           `moving` if the file's process may still be running.
  /// @param for_each_block  calls its argument with position and size of every block in the file.
  dead_aggregates(const aggregates_source& of, aggregate_state state,
                  function_ref<void(each_place)> for_each_block) noexcept
      : of_{of}, state_{state} {
    for_each_block([this](std::uint64_t at, std::uint64_t bytes) { add(at, bytes); });
    copies_.finish();
  }

  /// Returns the number of blocks that were ignored because their size is implausible.
  std::uint64_t doubted() const noexcept { return doubted_; }

  /// Writes all aggregates as text; see detail::for_each_section().
  int for_each_section(append_section append) const noexcept {
    if (copies_.failed()) return ENOMEM;
    return detail::for_each_section(
        {of_.began_ns, 0}, of_.rate, of_.names,
        [this](each_chain each) { copies_.for_each_chain(state_, each); }, append);
  }

 private:
  /// Maximum size of a block. The library creates only smaller blocks, so a larger size shows
  /// damage.
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
    // Restores the size that was checked above, because a running process may have changed it in
    // the file before the block was read.
    block->header.bytes = bytes;
  }

  const aggregates_source of_;
  aggregate_state state_;
  aggregate_copies copies_;
  std::uint64_t doubted_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_DEAD_AGGREGATES_HPP

// Reads the ring file of a process that has died, to recover its records. All contents are checked
// before they are used, because the file may be damaged or may come from another user.
#ifndef LOTUS_RECOVERY_DEAD_RING_HPP
#define LOTUS_RECOVERY_DEAD_RING_HPP

// Copies one ring of a dead process's ring file to private memory, a limited number of records at a
// time.
//
// Any user who may write to the directory could have created the file, and could change or shorten
// it while it is being read. So the file is not mapped into memory: each byte is read only once,
// and only the copy is checked and used.
#ifndef LOTUS_RECOVERY_RING_COPY_HPP
#define LOTUS_RECOVERY_RING_COPY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy of one ring, with at most window_records of its records at a time.
class ring_copy {
 public:
  static constexpr std::size_t window_records = 4096;

  ring_copy() noexcept = default;
  ring_copy(const ring_copy&) = delete;
  ring_copy& operator=(const ring_copy&) = delete;
  ~ring_copy() {
    if (ring_ != nullptr) munmap(ring_, ring_block::bytes_for(window_records));
  }

  /// Copies the ring at position `at` of the file, except for the records of its main lane, which
  /// fetch() copies. Returns false if the ring is damaged or if there is no memory.
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
      // Reads the member `appending` as a byte, because in a damaged file this byte may not be a
      // valid bool.
      unsigned char appending = 0;
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
    while (good != interrupt_head && has_known_kind(ring_->slot(1, good))) ++good;
    if (good != interrupt_head) doubt(good);
    ring_->published[1].store(good, std::memory_order_relaxed);
    ring_->published[0].store(c.tail[0], std::memory_order_relaxed);
    return true;
  }

  /// Copies the next records of the main lane that are not in the logs yet. Returns false if no
  /// records are left in either lane.
  bool fetch() noexcept {
    const std::uint64_t at = ring_->committed().tail[0];
    const std::uint64_t in_window = window_records - (at & (window_records - 1));
    const std::uint64_t in_file = capacity_ - (at & (capacity_ - 1));
    std::uint64_t count = head_ - at < in_window ? head_ - at : in_window;
    if (count > in_file) count = in_file;
    const std::uint64_t first = at_ + sizeof(ring_block) + (at & (capacity_ - 1)) * sizeof(record);
    std::uint64_t good = at;
    if (count > 0 && read_at(fd_, &ring_->slot(0, at), count * sizeof(record), first)) {
      while (good != at + count && has_known_kind(ring_->slot(0, good))) ++good;
    }
    if (good != at + count) doubt(good);
    ring_->published[0].store(good, std::memory_order_relaxed);
    return good != at || left() > 0;
  }

  ring_block& ring() noexcept { return *ring_; }
  std::uint64_t file_offset() const noexcept { return at_; }
  /// Returns how many of the ring's records are not in the logs yet, without those that are ignored
  /// (see doubted()).
  std::uint64_t left() const noexcept {
    const commit_point& c = ring_->committed();
    return (head_ - c.tail[0]) + (ring_->published[1].load(std::memory_order_relaxed) - c.tail[1]);
  }
  /// Whether a record of the ring cannot be read or has an unknown kind. That record and all later
  /// ones are ignored.
  bool doubted() const noexcept { return doubted_; }

 private:
  static bool has_known_kind(const record& r) noexcept {
    return kind_of(r.tag).kind != event_kind::none;
  }

  void doubt(std::uint64_t good) noexcept {
    doubted_ = true;
    // No record of the ring after the first invalid one is used.
    const std::uint64_t tail = ring_->committed().tail[0];
    head_ = good - tail <= head_ - tail ? good : tail;
  }

  ring_block* ring_ = nullptr;
  int fd_ = -1;
  std::uint64_t at_ = 0;
  std::uint64_t capacity_ = 0;  ///< number of records that the ring in the file can hold
  std::uint64_t head_ = 0;
  bool doubted_ = false;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RING_COPY_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns whether a time limit, in ns of CLOCK_MONOTONIC, has passed; false if there is no limit.
inline bool is_over(std::optional<std::int64_t> until_ns) noexcept {
  return until_ns && clock_ns(CLOCK_MONOTONIC) > *until_ns;
}

/// The ring file of a dead process. A lock on the file keeps other processes from recovering it at
/// the same time.
class dead_ring_file {
 public:
  enum class state {
    opened,
    gone,           ///< the file does not exist; another process may have recovered and deleted it
    running,        ///< the process that writes the file is running
    busy,           ///< another process is recovering the file
    damaged,        ///< the file does not begin with the header of a ring file
    other_version,  ///< another version of the library wrote the file
    refused,        ///< the file cannot be opened safely; see error()
    doubted,        ///< parts of the file are damaged, so it is kept after recovery
  };

  /// Opens the file `name` in `directory` (borrowed).
  /// @param writable  true to recover and delete the file; false to only read it.
  LOTUS_DETAIL_COLD state open(int directory, const char* name, bool writable,
                               const file_owners& owners) noexcept {
    fd_ = writable ? open_own(directory, name, O_RDWR, owners, status_)
                   : open_regular(directory, name, O_RDONLY, status_);
    if (fd_ < 0) return not_opened(directory, name);
    if (file_lock_is_taken(fd_, owner_lock_byte)) return state::running;
    if (writable) {
      error_ = take_file_lock(fd_, recovery_lock_byte);
      if (error_ != 0) return error_ == EAGAIN ? state::busy : state::refused;
    } else if (being_recovered()) {
      return state::busy;
    }
    if (fstat(fd_, &status_) != 0 || status_.st_nlink == 0) return state::gone;
    return check_header();
  }

  /// Opens the file for reading, even if its process is still running. If that process changes the
  /// file meanwhile, the reader may see only some of the changes.
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

  /// The error for which open() returned state::refused; file_error_text() can describe it.
  int error() const noexcept { return error_; }
  const ring_file_header& header() const noexcept { return *header_; }
  const struct stat& status() const noexcept { return status_; }
  int descriptor() const noexcept { return fd_; }

  /// Whether another process is recovering the file, or has recovered it since this object opened
  /// it.
  bool being_recovered() const noexcept {
    struct stat now {};
    return file_lock_is_taken(fd_, recovery_lock_byte) || fstat(fd_, &now) != 0 ||
           now.st_nlink == 0;
  }

  /// Reads the names in the file, and finds the rings and aggregates, up to the first damaged
  /// block. Ignores further blocks and names if there are more than a process can have.
  /// @param until_ns  time limit, in ns of CLOCK_MONOTONIC; none: no limit.
  /// @return 0, ENOMEM, or ETIME if the time limit was reached.
  LOTUS_DETAIL_COLD int read_blocks(std::optional<std::int64_t> until_ns = {}) noexcept {
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    std::uint64_t at = header_->header_bytes;
    for (std::size_t blocks = 0; size - at >= min_page_bytes; ++blocks) {
      block_header block{};
      const bool read = read_at(fd_, static_cast<void*>(&block), sizeof(block), at);
      const block_kind kind = block.kind.load(std::memory_order_relaxed);
      if (read && kind == block_kind::none) return 0;
      if (!read || block.bytes < min_page_bytes || block.bytes > size - at ||
          block.bytes % min_page_bytes != 0) {
        damaged_ = true;
        return 0;
      }
      if (blocks == max_blocks) {
        limit_exceeded_ = true;
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

  /// Calls `each(ring_copy&)` for every ring that can be copied.
  /// @return number of rings of which at least a part is damaged; all blocks that read_blocks()
  /// ignored count as one.
  std::uint64_t for_each_ring(function_ref<void(ring_copy&)> each) noexcept {
    std::uint64_t doubted = limit_exceeded_ || damaged_ ? 1 : 0;
    ring_copy copy;
    for (std::size_t i = 0; i < rings_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(rings_.data())[i];
      const bool sound = copy.copy(fd_, place.at, place.bytes);
      if (sound) each(copy);
      if (!sound || copy.doubted()) ++doubted;
    }
    return doubted;
  }

  /// Calls `each(at, bytes)` with the file position and size of every block of aggregates.
  void for_each_aggregates_block(
      function_ref<void(std::uint64_t at, std::uint64_t bytes)> each) const noexcept {
    for (std::size_t i = 0; i < aggregates_.bytes() / sizeof(ring_place); ++i) {
      const ring_place& place = reinterpret_cast<const ring_place*>(aggregates_.data())[i];
      each(place.at, place.bytes);
    }
  }

  /// Returns the converter from the records' ticks to time.
  tick_converter clock() const noexcept { return tick_converter{clocks(), nullptr}; }
  const clock_map& clocks() const noexcept {
    return header_->clocks[header_->clock_index.load(std::memory_order_relaxed) & 1];
  }

  /// Whether the process's logs are in the compact format.
  bool compact() const noexcept { return (header_->flags & compact_flag) != 0; }

  /// Returns the start of a log line, "S<name>,", for the name with this id.
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
  /// Maximum number of blocks. A process cannot have more: Linux allows it 65,530 mappings by
  /// default, and each ring needs one for itself and one for the stack of its thread.
  static constexpr std::size_t max_blocks = std::size_t{1} << 16;
  /// Maximum size of all names together: enough for 300,000 names of maximum length, or for
  /// name_table::limit names of usual length.
  static constexpr std::size_t max_text_bytes = std::size_t{256} << 20;
  /// Maximum size of a block of names. The library creates only smaller blocks.
  static constexpr std::size_t max_names_block_bytes = std::size_t{1} << 20;

  /// Determines why the file could not be opened for writing. To find out whether the file's
  /// process is running, opens the file for reading, for which this process may have permission.
  state not_opened(int directory, const char* name) noexcept {
    error_ = -fd_;
    if (error_ == ENOENT) return state::gone;
    fd_ = open_regular(directory, name, O_RDONLY, status_);
    if (fd_ >= 0 && file_lock_is_taken(fd_, owner_lock_byte)) return state::running;
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
                        h.header_bytes % min_page_bytes == 0 && is_prefix(h.prefix) && index <= 1 &&
                        h.clocks[index].valid();
    return usable ? state::opened : state::damaged;
  }

  /// Whether `prefix` can begin a file name: it is not empty and has no '/' or control characters.
  static bool is_prefix(const char (&prefix)[max_prefix_bytes + 1]) noexcept {
    const void* const end = std::memchr(prefix, '\0', sizeof(prefix));
    if (end == nullptr || end == prefix) return false;
    for (const char* c = prefix; c != end; ++c) {
      if (*c == '/' || static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    }
    return true;
  }

  /// Reads a block of names. Returns false if the block is damaged: ids must be consecutive, and an
  /// id that occurs again must have the same name.
  LOTUS_DETAIL_COLD bool read_names(std::uint64_t at, std::uint64_t bytes) noexcept {
    std::uint64_t used = 0;
    if (bytes > max_names_block_bytes ||
        !read_at(fd_, &used, sizeof(used), at + offsetof(names_block, used_bytes)) ||
        used > bytes - sizeof(names_block)) {
      return false;
    }
    growing_memory block;
    void* const copy = block.add(static_cast<std::size_t>(used) + 1);
    if (copy == nullptr || !read_at(fd_, copy, used, at + sizeof(names_block))) return false;
    for (std::uint64_t i = 0; used - i >= sizeof(stored_name);) {
      if (names_.bytes() / sizeof(name_place) == name_table::limit ||
          text_.bytes() > max_text_bytes) {
        limit_exceeded_ = true;
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

  /// Adds a name, in the form of the start of a line. Escapes it if it does not have that form,
  /// because then the file is damaged.
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
  growing_memory rings_;       ///< array of ring_place
  growing_memory aggregates_;  ///< array of ring_place
  growing_memory names_;       ///< array of name_place, indexed by id - 1
  growing_memory text_;
  bool limit_exceeded_ = false;
  bool damaged_ = false;  ///< whether a damaged block, and everything after it, was ignored
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_DEAD_RING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Copies the aggregates of a ring file to memory.
/// @param file   borrowed; its read_blocks() must have been called.
/// @param state  `moving` if the file's process may still be running.
LOTUS_DETAIL_COLD inline dead_aggregates read_aggregates(const dead_ring_file& file,
                                                         aggregate_state state) noexcept {
  return dead_aggregates{
      {file.descriptor(), file.header().began_ns, mean_rate(file.clocks()), file.names()},
      state,
      [&file](auto&& each) { file.for_each_aggregates_block(each); }};
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_RECOVERY_RING_AGGREGATES_HPP

// Encodes records as blocks of a compact log, the binary alternative to text logs.
#ifndef LOTUS_FORMAT_COMPACT_FILLER_HPP
#define LOTUS_FORMAT_COMPACT_FILLER_HPP

// Defines the layout of a block of a compact log, and the encoding of its numbers.
//
// A compact log consists of blocks. A block with the flag compact_begins_anew depends on no earlier
// block. Any other block uses the codes of names that were announced since the last block with that
// flag, and stores numbers as differences from those of the preceding records.
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

/// Writes seven bits of the number per byte, the lowest first; the highest bit is set in all bytes
/// but the last. Returns the end of the number. `out` must have space for varint_bytes bytes: even
/// a number of one byte overwrites two bytes.
LOTUS_DETAIL_ALWAYS_INLINE char* put_varint(char* out, std::uint64_t value) noexcept {
  // Numbers of one and of two bytes occur in random order, so a branch would often be mispredicted.
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

/// Reads a number that put_varint() wrote, without checking where the input ends. Returns the
/// position after the number. Reads at most varint_bytes bytes, even if they contain no valid
/// number.
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

/// Reads a number that put_varint() wrote from untrusted bytes that end at `end`. Returns the
/// position after the number; null if the number is not complete.
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
/// Each record begins with a code. Codes below this number stand for kinds of records without a
/// name. The others stand for a kind and a name, in the order in which the names are announced.
inline constexpr std::uint32_t first_named_code = 16;
/// Stands in place of a record's code if a new name is announced: the name follows, and then the
/// record with its code.
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

/// Kind of record for each code below first_named_code; event_kind::none for unused codes.
inline constexpr auto kind_by_code = [] {
  std::array<event_kind, first_named_code> kinds{};
  for (const record_kind& row : record_kinds) {
    if (row.code != 0) kinds[row.code] = row.kind;
  }
  return kinds;
}();

struct compact_block_header {
  char magic[4];
  std::uint32_t bytes;  ///< size of the block including this header
  std::uint8_t version;
  std::uint8_t flags;
  /// Bit i is set if the text format would write lines for the block's records to the log with
  /// log_role i.
  std::uint8_t roles;
  std::uint8_t unused;
  std::uint32_t records;
  /// Time in ns since the Unix epoch, relative to which the first record's time is stored.
  std::int64_t base_ns;
  std::int64_t first_ns;   ///< no record begins earlier (ns since the Unix epoch)
  std::int64_t last_ns;    ///< no record ends later (ns since the Unix epoch)
  std::uint64_t checksum;  ///< checksum of all other bytes of the block
};
static_assert(sizeof(compact_block_header) == 48 &&
                  std::is_trivially_copyable_v<compact_block_header>,
              "it stands in files");

/// Difference of two 64-bit numbers modulo 2^64, as a signed number.
constexpr std::int64_t wrapped_difference(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b);
}

/// Stored instead of a record's time if the record ends before the end of the previous record; then
/// the difference of the two ends follows, in ns.
inline constexpr std::uint64_t earlier_time = 3;

/// Encodes the time of a record that does not end earlier than the previous record.
/// @param since  ns from the end of the previous record to the end of this one.
constexpr std::uint64_t time_by_end(std::uint64_t since) noexcept {
  return since * 2;
}

/// Encodes a record's time: its end, or its start if that needs fewer bytes, as for a long span
/// that begins shortly after the end of the previous record. Returns the end of the written bytes,
/// which are at most 20.
/// @param since  ns from the end of the previous record to the end of this one, modulo 2^64.
inline char* put_time(char* out, std::uint64_t since, std::uint64_t duration) noexcept {
  if (since > INT64_MAX) return put_varint(put_varint(out, earlier_time), 0 - since);
  const std::uint64_t to_begin = since - duration;  // modulo 2^64
  return put_varint(out, to_begin < since / 2 ? to_begin * 4 + 1 : time_by_end(since));
}

/// Decodes a time that put_time() wrote, if it is not earlier_time. Returns the ns from the end of
/// the previous record to the end of this one.
constexpr std::uint64_t end_of_coded_time(std::uint64_t coded, std::uint64_t duration) noexcept {
  return (coded & 1U) == 0 ? coded >> 1U : (coded >> 2U) + duration;
}

/// Hashes words of 8 bytes. Two independent computations, each for every second word, keep the
/// processor's multiplier busy.
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

/// Returns the checksum of a block, with which readers detect damage. It does not protect against
/// deliberate changes.
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

/// The state of a compact log's encoding after the blocks written so far: the code of each name,
/// and the last number of each code. A reader gets the same state from these blocks, so later
/// blocks can refer to it. All zeros is the initial state. Thread safety: none.
class compact_chain {
 public:
  struct entry {
    std::uint64_t key;  ///< kind and name; 0: the entry is unused
    std::uint32_t code;
    std::uint32_t unused;
    std::uint64_t last;  ///< number of the previous record with this kind and name
  };

  /// Whether the next block may refer to earlier blocks: the log must still end with the block that
  /// was encoded last, and fewer than max_blocks blocks may have been written since begin_anew().
  bool continues(const log_position& at) const noexcept {
    return blocks_ > 0 && blocks_ < max_blocks && at.inode == inode_ && at.length == length_;
  }
  void begin_anew() noexcept { std::memset(static_cast<void*>(this), 0, sizeof(*this)); }
  void appended(const log_position& at) noexcept {
    inode_ = at.inode;
    length_ = at.length;
    ++blocks_;
  }

  /// Returns the entry for a kind of record and a name, or an unused entry (key 0) if there is
  /// none; null if the table is full.
  entry* find(event_kind kind, std::uint32_t name, std::uint64_t& key) noexcept {
    key = key_of(kind, name);
    for (std::uint64_t i = home_of(kind, name);; ++i) {
      entry& e = entries_[i % slots];
      if (e.key == key) return &e;
      if (e.key == 0) return used_ < max_names ? &e : nullptr;
    }
  }
  /// Returns the code of an operation's name. For speed, looks only in the first slot of the hash
  /// table that may contain the name, and returns 0 if it is not there.
  LOTUS_DETAIL_ALWAYS_INLINE std::uint32_t code_of_operation(std::uint32_t name) const noexcept {
    const entry& e = entries_[home_of(event_kind::operation, name) % slots];
    return e.key == key_of(event_kind::operation, name) ? e.code : 0;
  }
  void take(entry& e, std::uint64_t key) noexcept { e = {key, first_named_code + used_++, 0, 0}; }

  /// For each kind of record without a name: the first number of the previous record of that kind.
  std::uint64_t last_of[first_named_code];
  std::uint64_t last_second;  ///< the second number of the previous record that has two numbers

 private:
  static constexpr std::uint64_t key_of(event_kind kind, std::uint32_t name) noexcept {
    return (std::uint64_t{1} << 63U) | (static_cast<std::uint64_t>(kind) << 32U) | name;
  }
  static constexpr std::uint64_t home_of(event_kind kind, std::uint32_t name) noexcept {
    return std::uint64_t{name} * 31 + static_cast<std::uint64_t>(kind);
  }

  static constexpr std::uint32_t slots = 1024;
  static constexpr std::uint32_t max_names = 700;
  /// After at most this number of blocks follows a block that refers to no earlier block. If a
  /// block is damaged, readers can continue only at the next such block.
  static constexpr std::uint32_t max_blocks = 64;

  std::uint64_t inode_;
  std::uint64_t length_;
  std::uint32_t blocks_;
  std::uint32_t used_;
  entry entries_[slots];
};

/// Encodes the records of each append as one block. The blocks are appended to the log with the
/// role log_role::side. The interface is that of line_filler, which formats text lines instead.
template <class Names>
class compact_filler {
 public:
  compact_filler(const tick_converter& clock, const Names& names, compact_chain& chain,
                 drain_buffer& buffer) noexcept
      : clock_{clock}, names_{names}, chain_{chain}, block_{buffer.text[0]} {
    static_assert(max_append_bytes >= 2 * max_record_bytes, "a block holds a record");
  }

  template <class Sink>
  int begin(Sink& sink, std::uint32_t loader) noexcept {
    if (const int error = sink.begin(log_role::side, loader); error != 0) return error;
    const bool anew = full_of_names_ || !chain_.continues(sink.position(log_role::side));
    if (anew) chain_.begin_anew();
    full_of_names_ = false;
    head_ = {};
    head_.flags = anew ? compact_begins_anew : std::uint8_t{0};
    head_.first_ns = INT64_MAX;
    head_.last_ns = INT64_MIN;
    end_ = block_ + sizeof(head_);
    return 0;
  }

  /// Adds a record to the block. Returns false if the buffer or the table of names is full.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    if (static_cast<std::size_t>(block_ + max_append_bytes - end_) < max_record_bytes) {
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
    if (!kind.side_begin.empty()) head_.roles |= side_bit;
    return true;
  }

  /// Adds consecutive records of operations, which are the most frequent kind, as long as their
  /// names already have codes. Stops at the first other record, or if the buffer is full, and
  /// returns the position of the first record that it did not add. The block is the same as with
  /// add(), but this function is faster, because it keeps its state in local variables: a write
  /// through a char pointer may alias any member, so the compiler would load members again after
  /// each write.
  std::uint64_t add_operations(ring_block& ring, std::size_t lane, std::uint64_t at,
                               std::uint64_t head) noexcept {
    if (lane != 0 || head_.records == 0) return at;
    const record* const slots = ring.slots();
    const std::uint64_t mask = ring.capacity - 1;
    const clock_segment clock = clock_.newest();
    const char* const last_begin = block_ + max_append_bytes - max_record_bytes;
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

  /// Appends the block to the sink (the logs). Returns 0, or the sink's error if nothing was
  /// appended.
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
  /// Called after a failed append. The next block will refer to no earlier block, because the last
  /// one may be missing in the log.
  void failed() noexcept { chain_.begin_anew(); }

 private:
  static constexpr std::uint8_t side_bit = 1U << static_cast<unsigned>(log_role::side);
  static constexpr std::size_t max_record_bytes = max_line_name_bytes + 1 + 80;

  /// @param since  ns from the end of the previous record to the end of this one, modulo 2^64.
  LOTUS_DETAIL_ALWAYS_INLINE static char* put_operation(char* p, std::uint32_t code,
                                                        std::uint64_t since,
                                                        std::uint64_t duration) noexcept {
    // The usual case takes at most five bytes, which are written as one word.
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

  /// Writes a number as its difference from the previous number of the same code, because the
  /// difference usually needs fewer bytes.
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

/// Selects which ring files and records in a directory are recovered, and how long recovery may
/// take.
struct recovery_limits {
  const char* prefix = nullptr;  ///< only ring files whose logs have this prefix; null: all files
  std::uint32_t tid = 0;         ///< only the rings of the thread with this id; 0: all rings
  /// CLOCK_MONOTONIC time at which to stop; none: never.
  std::optional<std::int64_t> until_ns;
  /// whether to recover at least some records even if until_ns has passed already
  bool advance = true;
};

struct recovery {
  std::uint64_t files = 0;          ///< ring files of dead processes that were recovered completely
  std::uint64_t records = 0;        ///< records appended to the logs
  std::uint64_t running = 0;        ///< ring files whose processes are running
  std::uint64_t busy = 0;           ///< ring files that another process is recovering
  std::uint64_t damaged = 0;        ///< files whose header is not that of a ring file
  std::uint64_t other_version = 0;  ///< ring files of another version of the library
  std::uint64_t refused = 0;        ///< ring files that could not be opened
  std::uint64_t doubted = 0;        ///< rings of which at least a part is damaged
  std::uint64_t lost = 0;  ///< records lost because they were only in a dead process's memory
  bool left = false;       ///< whether until_ns passed before everything was recovered
  /// the first error of an append (to the log failed_log) or of an allocation; 0: none
  int error = 0;
  char failed_log[log_name_bytes] = {};
};

/// Returns the folder of a dead process's logs, and the properties of new logs there. New logs get
/// the owner and permissions of the process's ring file.
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

/// Appends the records of one ring of a dead process to the logs of the ring's thread.
/// @param info  name of the dead process's information file.
/// @return 0; ETIME if the time limit was reached; or an error that file_error_text() can describe.
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

/// Appends a dead process's aggregates to the files to which the process would have written them.
/// Aggregates may be appended twice without harm, because readers count them once. Returns 0 or an
/// error that file_error_text() can describe.
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
  // Marks the ring file, so that if it is kept, later recoveries do not append its aggregates
  // again.
  if (error == 0 && pwrite(file.descriptor(), &flags, sizeof(flags),
                           offsetof(ring_file_header, flags)) != sizeof(flags)) {
    return errno;
  }
  return error;
}

/// Adds to a dead process's information file how many records were lost because they were only in
/// the process's memory.
inline void report_lost_records(int directory, const char* info, const file_owners& owners,
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

/// Appends the records in the rings of one dead process to the logs, then deletes the ring file. A
/// file with damaged contents is kept, because it is the only copy of them. If this process is
/// killed meanwhile, a later recovery continues from the commits in the ring file.
/// @return false if the file is kept because of damaged contents.
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
  if (lost > 0) report_lost_records(directory, info, file_owners::only(file.status().st_uid), lost);
  if (result.doubted != doubted_before) return false;
  unlinkat(directory, name, 0);
  return true;
}

/// Deletes an unfinished ring file that is older than a minute, if its process has died. Returns 0,
/// or an error if the file could not be opened.
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

/// Recovers the ring files of dead processes in `directory` (borrowed).
/// @param report  called for each ring file that is kept although its process is dead. Its argument
/// `error` is the reason if the state is `refused`, otherwise 0.
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
    if (found == state::running) ++result.running;
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

/// Recovers all records in the ring files of dead processes in `directory`, without a time limit
/// and without calling a report function.
/// @param prefix  only ring files whose logs have this prefix; null: all files.
LOTUS_DETAIL_COLD inline recovery recover_directory(int directory, const char* prefix) noexcept {
  recovery_limits limits;
  limits.prefix = prefix;
  return recover_directory(directory, limits, [](const char*, dead_ring_file::state, int) {});
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_RECOVERY_HPP

// Reports events and errors of the run's files as messages.
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

/// Reports errors that may occur often, but each of them only once per run. disk() is thread-safe;
/// callers of the other functions hold a lock.
class storage_reports {
 public:
  void run_begins() noexcept {
    unwritable_reported_ = no_ring_file_reported_ = shared_blocks_reported_ = false;
    deleted_reported_ = slow_reported_ = false;
    disk_failed_.store(false, std::memory_order_relaxed);
    limits_fail_reported_.store(false, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
  }

  /// Reports that logs with this directory and prefix exist already. Reports nothing if the
  /// previous report was about the same directory and prefix, because then this process has
  /// recorded there itself.
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
    if (error == EOPNOTSUPP) {
      return say(
          "%s is on a file system that writes changed blocks elsewhere, so there is no ring "
          "file: if the process is killed, records that are not yet in the logs are lost",
          location.directory);
    }
    say("cannot create a ring file in %s: %s; if the process is killed, records that are not yet "
        "in the logs are lost",
        location.directory, std::strerror(error));
  }

  /// @param follows  whether another directory has the deleted one's path.
  void directory_deleted(const log_location& location, bool follows) noexcept {
    if (!deleted_reported_) {
      say("%s was deleted: its logs are lost, and so are later records until it exists again",
          location.directory);
    }
    if (follows) say("%s exists again and is used", location.directory);
    deleted_reported_ = !follows;
  }

  /// @param ns  how long one round of the drain thread took.
  void round_took(const log_location& location, std::int64_t ns) noexcept {
    constexpr std::int64_t slow_ns = 2'000'000'000;
    if (LOTUS_DETAIL_LIKELY(ns < slow_ns) || slow_reported_) return;
    slow_reported_ = true;
    say("writing to %s took %lld s: its file system was frozen or is very slow, or this process "
        "was "
        "stopped meanwhile; threads that record may have waited as long",
        location.directory, static_cast<long long>(ns / 1'000'000'000));
  }

  /// Thread-safe.
  void limits_fail(const log_location& location, int error) noexcept {
    if (limits_fail_reported_.exchange(true, std::memory_order_relaxed)) return;
    say("cannot rename or delete logs in %s: %s; they grow beyond the limit that was set",
        location.directory, std::strerror(error));
  }

  void shared_blocks(const log_location& location, int error) noexcept {
    if (shared_blocks_reported_) return;
    shared_blocks_reported_ = true;
    say("a copy of %s shares the blocks of the ring file, and there is no room to separate them: "
        "%s; delete the copy, or this process may be killed by SIGBUS",
        location.directory, std::strerror(error));
  }

  /// Must be called after each attempt to append to the logs. Reports when appending begins to fail
  /// and when it works again.
  /// @param error  0, or an error that file_error_text() can describe.
  /// @param log  name of the log that was opened last.
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
  /// Reports that a log was refused, for example because it is a symbolic link or belongs to
  /// another user. Reports each kind of reason once. Other logs may still be writable.
  void refused(const log_location& location, int error, const char* log) noexcept {
    const std::uint32_t kind = error == ELOOP ? 1U : 2U << (error - not_regular);
    if ((refused_.load(std::memory_order_relaxed) & kind) != 0) return;
    if ((refused_.fetch_or(kind) & kind) != 0) return;
    say("cannot append to %s/%s: it %s; records are kept in memory meanwhile", location.directory,
        log, file_error_text(error));
  }

  // The constants of 64-bit FNV-1a (Fowler, Noll, Vo).
  static constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325U;
  static std::uint64_t hash_of(const char* text, std::uint64_t hash) noexcept {
    constexpr std::uint64_t prime = 0x100000001b3U;
    do {
      hash = (hash ^ static_cast<unsigned char>(*text)) * prime;
    } while (*text++ != '\0');
    return hash;
  }

  /// Hash of the directory and prefix for which existing_logs() last reported; 0: none.
  std::uint64_t existing_reported_in_ = 0;
  bool unwritable_reported_ = false;
  bool no_ring_file_reported_ = false;
  bool shared_blocks_reported_ = false;
  bool deleted_reported_ = false;
  bool slow_reported_ = false;
  std::atomic<bool> disk_failed_{false};
  std::atomic<bool> limits_fail_reported_{false};
  std::atomic<std::uint32_t> refused_{0};  ///< one bit for each kind of refusal that was reported
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_REPORTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Recovers leftovers step by step: the start of a recording waits only briefly, and the drain
/// thread does the rest. A thread that has the id of a dead thread writes to the same log. Before
/// it does so, it recovers the dead thread's records; otherwise its first lines would look like the
/// end of an append that the dead thread did not finish.
///
/// All functions are thread-safe.
class LOTUS_DETAIL_PER_MODULE leftovers {
 public:
  /// @param directory  the run's directory, the same at every call; borrowed.
  /// @param reports  whether to report what is recovered; false in a forked child, because a
  /// program that forks often would repeat the message.
  LOTUS_DETAIL_COLD void begin(run_directory& directory, const log_location& location,
                               bool reports) noexcept {
    const locked hold{lock_};
    location_ = &location;
    reports_ = reports;
    records_ = 0;
    said_ = 0;
    run(directory, start_ns, false);
    if (!left_.load(std::memory_order_relaxed)) return report();
    if (!reports_) return;
    say("records of processes that died in %s are being recovered in the background",
        location_->directory);
  }

  /// Recovers leftovers until none remain or the time step_ns has passed. Returns whether any
  /// remain.
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

  /// Recovers all records of dead threads with this id. Must be called before a thread with this id
  /// writes to its log.
  LOTUS_DETAIL_COLD void of_thread(run_directory& directory, std::uint32_t tid) noexcept {
    if (!left_.load(std::memory_order_relaxed)) return;
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.tid = tid;
    take(recover(directory, limits));
  }

  /// Recovers leftovers, for at most finish_ns, when the recording ends.
  void finish(run_directory& directory) noexcept {
    const locked hold{lock_};
    if (!left_.load(std::memory_order_relaxed)) return;
    run(directory, finish_ns, true);
    give_up();
  }

  /// Leaves all remaining leftovers to a later process or `lotus-tool recover`, because this
  /// process is about to exit.
  LOTUS_DETAIL_COLD void leave() noexcept {
    const locked hold{lock_};
    if (left_.load(std::memory_order_relaxed)) give_up();
  }

  /// Forgets the leftovers in a forked child, which looks for them again when it creates a ring
  /// file.
  void forget() noexcept { left_.store(false, std::memory_order_relaxed); }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  static constexpr std::int64_t start_ns = 2'000'000;
  static constexpr std::int64_t step_ns = 20'000'000;
  static constexpr std::int64_t finish_ns = 1'000'000'000;

  // --- The caller of the following functions holds lock_.

  LOTUS_DETAIL_COLD void run(run_directory& directory, std::int64_t max_ns, bool advance) noexcept {
    recovery_limits limits;
    limits.prefix = location_->prefix;
    limits.until_ns = clock_ns(CLOCK_MONOTONIC) + max_ns;
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
      say("cannot write records of processes that died to %s/%s: %s%s", location_->directory,
          r.failed_log, is_refusal(r.error) ? "it " : "", file_error_text(r.error));
    }
    if (r.lost > 0) {
      say("%llu records of processes that died in %s were in their memory only and are lost",
          static_cast<unsigned long long>(r.lost), location_->directory);
    }
  }

  /// Reports each kind of problem once, with the name of the first file that has it.
  void say_left(const char* name, dead_ring_file::state state, int error) noexcept {
    if (state == dead_ring_file::state::doubted && first(2)) {
      say("%s/%s is damaged: its invalid records are not in the logs, and the file is kept",
          location_->directory, name);
    }
    if (state == dead_ring_file::state::damaged && first(4)) {
      say("%s/%s is not a ring file and was not changed", location_->directory, name);
    }
    if (state == dead_ring_file::state::other_version && first(8)) {
      say("%s/%s is of another version of lotus: use the `lotus-tool recover` of that version",
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
    say("more records of processes that died remain in %s; run `lotus-tool recover` to "
        "recover them",
        location_->directory);
  }

  void report() noexcept {
    if (records_ == 0) return;
    if (reports_) report_recovered(*location_, records_);
    records_ = 0;
  }

  mutex lock_;
  std::atomic<bool> left_{false};
  const log_location* location_ = nullptr;
  std::uint64_t records_ = 0;
  std::uint32_t said_ = 0;
  bool reports_ = true;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LEFTOVERS_HPP

// Keeps the logs of a run within limits of size and age by deleting the oldest parts of the logs.
#ifndef LOTUS_STORE_LIMITS_LOG_LIMITS_HPP
#define LOTUS_STORE_LIMITS_LOG_LIMITS_HPP

// Finds the files that dead processes have left about themselves in a run's directory.
#ifndef LOTUS_FOLDER_DEAD_FILES_HPP
#define LOTUS_FOLDER_DEAD_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns when a file was last written to, in ns since the Unix epoch.
inline std::int64_t changed_ns(const struct stat& status) noexcept {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The information files and the files of waits and of stacks of the processes that have ended and
/// whose records are all in the logs.
class dead_files {
 public:
  /// A time in which a running process writes to its files.
  static constexpr std::int64_t long_quiet_ns = 60'000'000'000;

  /// @param directory  descriptor of the run's directory; borrowed.
  explicit dead_files(int directory) noexcept
      : directory_{directory}, now_ns_{clock_ns(CLOCK_REALTIME)} {
    for_each_entry(directory, [this](const char* name) {
      const char* const rest = after(name, ring_file_start);
      all_visible_ = all_visible_ && (rest == nullptr || !is_dead(rest));
    });
  }

  std::int64_t now_ns() const noexcept { return now_ns_; }
  /// Time in ns after which a file of a thread or process that does not exist here is not written
  /// to any more. If there is a ring file of such a process, it may run in another container.
  std::int64_t quiet_ns() const noexcept { return all_visible_ ? 1'000'000'000 : long_quiet_ns; }

  void for_each(
      const file_owners& owners,
      function_ref<void(const char* name, const struct stat& status)> each) const noexcept {
    for_each_entry(directory_, [&](const char* name) {
      const char* rest = nullptr;
      for (const char* const start : {run_info_start, waits_file_start, stacks_file_start}) {
        if (rest == nullptr) rest = after(name, start);
      }
      if (rest == nullptr || !is_dead(rest)) return;
      char ring[300];
      std::snprintf(ring, sizeof(ring), "%s%s", ring_file_start, rest);
      struct stat status {};
      if (fstatat(directory_, ring, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
          fstatat(directory_, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(status.st_mode) || !owners.allow(status.st_uid) ||
          changed_ns(status) >= now_ns_ - quiet_ns()) {
        return;
      }
      each(name, status);
    });
  }

 private:
  /// Returns the rest of `name`, which begins with a process id; null if `name` does not begin with
  /// `start`.
  static const char* after(const char* name, const char* start) noexcept {
    const std::size_t bytes = std::strlen(start);
    return std::strncmp(name, start, bytes) == 0 ? name + bytes : nullptr;
  }
  static bool is_dead(const char* pid) noexcept {
    const long number = std::strtol(pid, nullptr, 10);
    return number > 0 && ::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
  }

  int directory_;
  std::int64_t now_ns_;
  bool all_visible_ = true;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_DEAD_FILES_HPP

// Finds all logs in a run's directory, no matter which process writes them.
#ifndef LOTUS_FOLDER_RUN_LOGS_HPP
#define LOTUS_FOLDER_RUN_LOGS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A log of a run: a regular file that belongs to one of the allowed owners. The pointers and the
/// descriptor are valid only while the callback runs that receives this object.
struct run_log {
  int folder;  ///< descriptor of the folder that contains the log
  /// Name of the loader in whose folder the log is; empty if the log is in the run's directory.
  const char* loader;
  const char* name;
  struct stat status;
  log_name parsed;
};

/// Calls `each(run_log)` for the logs of one folder.
inline void for_each_log_in(int folder, const char* loader, const char* prefix,
                            const file_owners& owners,
                            function_ref<void(const run_log&)> each) noexcept {
  for_each_entry(folder, [&](const char* name) {
    run_log log{folder, loader, name, {}, {}};
    if (!log.parsed.parse(name, prefix)) return;
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
        open_at_high_fd(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
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

/// Number, size and last write of the logs that were deleted because they exceeded the limits of
/// size or age.
struct deleted_logs {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::int64_t until_ns = 0;  ///< last write to a deleted log, in ns since the Unix epoch
  int error = 0;              ///< errno of a log that could not be deleted
};

/// Size in bytes of the blocks in which most file systems allocate space.
inline constexpr std::uint64_t disk_block_bytes = 4096;

/// Limits the total size and the age of all logs in a directory, including those of other
/// processes, running or dead.
///
/// Only logs to which no process appends are deleted: parts (logs that were renamed when they had
/// grown too long) and logs of dead threads. With the logs of a dead process, its files about
/// itself and its waits are deleted. Call begin() while no other function is running, and all other
/// functions on any thread. Trivially destructible.
class log_limits {
 public:
  /// @param max_bytes  maximum total size of the logs in bytes; 0: unlimited.
  /// @param max_age_ns  maximum age of a log in ns; 0: unlimited.
  void begin(std::uint64_t max_bytes, std::int64_t max_age_ns) noexcept {
    max_bytes_ = max_bytes;
    max_age_ns_ = max_age_ns;
    checked_ns_.store(0, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    part_bytes_.store(share_of(16), std::memory_order_relaxed);
    crowded_.store(false, std::memory_order_relaxed);
    now_checking_.store(false, std::memory_order_relaxed);
  }

  bool any() const noexcept { return max_bytes_ != 0 || max_age_ns_ != 0; }
  /// Size in bytes at which a log becomes a part.
  std::uint64_t part_bytes() const noexcept { return part_bytes_.load(std::memory_order_relaxed); }
  /// Time in ns after which a log becomes a part, whatever its size; 0: never.
  std::int64_t part_ns() const noexcept { return max_age_ns_ / 8; }

  void after_fork_in_child() noexcept { now_checking_.store(false, std::memory_order_relaxed); }

  /// Adds to the number of bytes, in blocks of the disk, by which logs have grown since keep() last
  /// checked the directory.
  void count(std::uint64_t bytes) noexcept { grown_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Whether the logs still exceeded the size limit after the last check had deleted all parts.
  /// Then logs of dead threads should become parts, and logs_rolled() be called.
  bool crowded() const noexcept { return crowded_.load(std::memory_order_relaxed); }
  /// Makes the next keep() check the directory, because there are new parts.
  void logs_rolled() noexcept { checked_ns_.store(0, std::memory_order_relaxed); }

  /// Whether logs have grown so much that keep() should be called immediately. If the logs are
  /// crowded, that would not help, because all parts are deleted already.
  bool overdue() const noexcept {
    return max_bytes_ != 0 && !crowded() && grown_.load(std::memory_order_relaxed) >= share_of(8);
  }

  /// Deletes the logs that exceed the limits. Checks the directory at most once a second, or more
  /// often if logs grow fast. Returns false if the directory was not checked.
  LOTUS_DETAIL_COLD bool keep(int directory, const char* prefix, const file_owners& owners,
                              deleted_logs& forgotten) noexcept {
    if (!any() || directory < 0) return false;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    const bool due = now_ns - checked_ns_.load(std::memory_order_relaxed) >= 1'000'000'000 ||
                     (max_bytes_ != 0 && grown_.load(std::memory_order_relaxed) >= share_of(16));
    if (!due || !begin_check()) return false;
    checked_ns_.store(now_ns, std::memory_order_relaxed);
    grown_.store(0, std::memory_order_relaxed);
    while (check(directory, prefix, owners, forgotten)) {
    }
    now_checking_.store(false, std::memory_order_release);
    return true;
  }

 private:
  /// Returns whether the caller may check the directory, which only one thread may do at a time. If
  /// another thread is checking the directory and overdue() is true, first waits for that thread,
  /// but for at most 0.1 s: the caller may be a signal handler that interrupted the checking
  /// thread, which then cannot continue.
  bool begin_check() noexcept {
    constexpr timespec pause{0, 100'000};
    for (int tries = 0; now_checking_.exchange(true, std::memory_order_acquire); ++tries) {
      if (!overdue() || tries == 1000) return false;
      nanosleep(&pause, nullptr);
    }
    return true;
  }

  /// The size of a log and when it was last written to.
  struct candidate {
    std::int64_t written_ns;
    std::uint64_t on_disk;
  };
  static constexpr std::size_t at_once = 512;
  static constexpr std::uint64_t least_share = std::uint64_t{16} << 10;

  std::uint64_t share_of(std::uint64_t parts) const noexcept {
    if (max_bytes_ == 0) return UINT64_MAX;
    return max_bytes_ / parts > least_share ? max_bytes_ / parts : least_share;
  }

  /// Returns when the log's last lines were appended, in ns since the Unix epoch. For a part, reads
  /// this time from the part's name, because the file system's time may come from another machine's
  /// clock.
  static std::int64_t written_ns(const run_log& log) noexcept {
    if (log.parsed.part != 0) return (static_cast<std::int64_t>(log.parsed.part) + 1) * 1'000'000;
    return changed_ns(log.status);
  }

  /// Whether no process will append to the log any more.
  static bool is_over(const run_log& log, const dead_files& dead) noexcept {
    if (log.parsed.part != 0) return true;
    if (log.parsed.number > largest_thread_id) {
      return written_ns(log) < dead.now_ns() - dead_files::long_quiet_ns;
    }
    return written_ns(log) < dead.now_ns() - dead.quiet_ns() && is_of_dead_process(log);
  }
  /// Whether the log's thread is dead. A thread in another container also counts as dead, because
  /// this process cannot see it.
  static bool is_of_dead_process(const run_log& log) noexcept {
    // A log with a number above all thread ids belongs to several threads, whose ids are not known
    // here.
    if (log.parsed.number > largest_thread_id) return false;
    return ::kill(static_cast<pid_t>(log.parsed.number), 0) != 0 && errno == ESRCH;
  }

  /// Returns how many bytes a file occupies on the disk: for a small file more than its size.
  static std::uint64_t bytes_on_disk(const struct stat& status) noexcept {
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    const auto in_blocks = static_cast<std::uint64_t>(status.st_blocks) * 512;
    return bytes > in_blocks ? bytes : in_blocks;
  }

  /// Deletes the oldest logs until the limits are met, but at most about `at_once` of them. Returns
  /// whether there may be more to delete.
  LOTUS_DETAIL_COLD bool check(int directory, const char* prefix, const file_owners& owners,
                               deleted_logs& forgotten) noexcept {
    const dead_files dead{directory};
    const mapped<candidate[at_once]> memory;
    if (!memory) return false;
    candidate(&oldest)[at_once] = *memory;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t growing = 0;
    for_each_log(directory, prefix, owners, [&](const run_log& log) {
      bytes += bytes_on_disk(log.status);
      if (is_over(log, dead)) {
        put_in_order({written_ns(log), bytes_on_disk(log.status)}, oldest, count);
      } else {
        ++growing;
      }
    });
    dead.for_each(owners, [&](const char*, const struct stat& status) {
      bytes += bytes_on_disk(status);
      put_in_order({changed_ns(status), bytes_on_disk(status)}, oldest, count);
    });
    // An eighth of the limit remains for logs that grow until the next check.
    const std::uint64_t wanted = max_bytes_ == 0 ? UINT64_MAX : max_bytes_ - max_bytes_ / 8;
    std::uint64_t left = bytes;
    std::size_t last = 0;
    for (; last < count; ++last) {
      const bool too_old =
          max_age_ns_ != 0 && oldest[last].written_ns < dead.now_ns() - max_age_ns_;
      if (!too_old && left <= wanted) break;
      left -= oldest[last].on_disk < left ? oldest[last].on_disk : left;
    }
    const bool deleted =
        last > 0 && remove(directory, prefix, owners, dead, oldest[last - 1].written_ns, forgotten);
    if (deleted && last == at_once) return true;
    // In small parts, less of the limit is taken by logs that cannot be deleted.
    const bool crowded = left > wanted;
    const bool small = crowded || (growing != 0 && max_bytes_ / growing < least_share);
    part_bytes_.store(small && max_bytes_ != 0 ? disk_block_bytes : share_of(8 * (growing + 1)),
                      std::memory_order_relaxed);
    crowded_.store(crowded, std::memory_order_relaxed);
    return false;
  }

  static void put_in_order(const candidate& log, candidate (&oldest)[at_once],
                           std::size_t& count) noexcept {
    std::size_t at = count;
    while (at > 0 && oldest[at - 1].written_ns > log.written_ns) --at;
    if (at == at_once) return;
    if (count < at_once) ++count;
    for (std::size_t i = count - 1; i > at; --i) oldest[i] = oldest[i - 1];
    oldest[at] = log;
  }

  /// Deletes the logs that were last written to at `until_ns` or earlier. Returns whether there
  /// were any.
  static bool remove(int directory, const char* prefix, const file_owners& owners,
                     const dead_files& dead, std::int64_t until_ns,
                     deleted_logs& forgotten) noexcept {
    bool any = false;
    for_each_log(directory, prefix, owners, [&](const run_log& log) {
      const std::int64_t ns = written_ns(log);
      if (ns > until_ns || !is_over(log, dead)) return;
      if (unlinkat(log.folder, log.name, 0) != 0) {
        if (errno != ENOENT) forgotten.error = errno;
        return;
      }
      any = true;
      ++forgotten.files;
      forgotten.bytes += static_cast<std::uint64_t>(log.status.st_size);
      if (forgotten.until_ns < ns) forgotten.until_ns = ns;
    });
    dead.for_each(owners, [&](const char* name, const struct stat& status) {
      any = (changed_ns(status) <= until_ns && unlinkat(directory, name, 0) == 0) || any;
    });
    return any;
  }

  std::uint64_t max_bytes_ = 0;
  std::int64_t max_age_ns_ = 0;
  std::atomic<std::int64_t> checked_ns_{0};
  std::atomic<std::uint64_t> grown_{0};
  // Size in bytes at which a log becomes a part. UINT64_MAX means unlimited, so that each append
  // needs only one comparison.
  std::atomic<std::uint64_t> part_bytes_{UINT64_MAX};
  std::atomic<bool> crowded_{false};
  std::atomic<bool> now_checking_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_LIMITS_HPP

// Decides when a process's logs become parts, and when parts are deleted (see log_limits.hpp).
#ifndef LOTUS_STORE_LIMITS_LOG_RETENTION_HPP
#define LOTUS_STORE_LIMITS_LOG_RETENTION_HPP

// Renames logs that have grown too long. A renamed log is called a part; no process appends to it
// any more.
#ifndef LOTUS_STORE_LIMITS_LOG_ROLLING_HPP
#define LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

#include <stdio.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Supplies the numbers for the names of parts: the current time in ms since the Unix epoch, or the
/// previous number plus one if that is larger. So no two parts of a log get the same name. All
/// functions are thread-safe.
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

  /// Makes the next number larger than that of an existing part, because the numbers that another
  /// process has used may be ahead of the clock. Ignores a number that is over an hour ahead.
  void begin_after(std::uint64_t part) noexcept {
    constexpr std::uint64_t max_ahead_ms = 3'600'000;
    const auto now_ms = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) / 1'000'000;
    if (part > now_ms + max_ahead_ms) return;
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < part && !last_.compare_exchange_weak(last, part, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// Renames a thread's logs, which makes them parts, so that the thread's next lines begin new logs.
/// If the process is killed during this function, each log has either its old or its new name and
/// contains complete lines. A log that cannot be renamed continues to grow; then returns errno,
/// otherwise 0. The caller holds the producer::guard of that thread; no append is in progress.
/// @param logs  the thread's open logs; those that become parts are closed.
/// @param least  minimum size in bytes of a log to become a part; smaller logs continue.
LOTUS_DETAIL_COLD inline int roll_logs(const log_folder& folder, ring_block& ring,
                                       open_log (&logs)[log_roles], std::uint64_t least,
                                       part_numbers& numbers) noexcept {
  loader_folders loaders{folder};
  int failed = 0;
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
    int error = fstatat(in, log, &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (error == 0 && static_cast<std::uint64_t>(status.st_ino) != at.inode) continue;
    struct stat other {};
    if (fstatat(in, part, &other, AT_SYMLINK_NOFOLLOW) == 0) continue;
    if (error == 0 && renameat(in, log, in, part) != 0) error = errno;
    if (error != 0 && error != ENOENT) failed = error;  // ENOENT: somebody has deleted the log
    if (error != 0) continue;
    logs[i].file.close();
    at = {0, 0, false, at.number, at.loader};
    ring.commit(c);
  }
  return failed;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_ROLLING_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Applies options::keep_bytes and keep_ms. Call begin() while no other
/// function is running, after_drain() while producer::guard is held, and all other functions on any
/// thread. Trivially destructible.
class log_retention {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    limits_.begin(chosen.keep_bytes, std::int64_t{chosen.keep_ms} * 1'000'000);
    rolled_ns_.store(clock_ns(CLOCK_MONOTONIC_COARSE), std::memory_order_relaxed);
  }

  /// Reads the numbers of the existing parts, so that new parts get larger numbers.
  void begin_after_parts(int directory, const char* prefix, const file_owners& owners) noexcept {
    if (!any()) return;
    for_each_log(directory, prefix, owners,
                 [this](const run_log& log) { numbers_.begin_after(log.parsed.part); });
  }

  bool any() const noexcept { return limits_.any(); }

  /// Makes each log become a part when its thread is drained next, whatever the log's size.
  void roll_all() noexcept { rolls_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether roll_all() was called since the thread's logs last became parts.
  bool is_due(const producer& p) const noexcept {
    return p.rolls != rolls_.load(std::memory_order_relaxed);
  }

  /// Makes the thread's logs parts if they are due. Returns 0, or errno if a log cannot be renamed.
  int after_drain(const log_folder& folder, producer& p) noexcept {
    const std::uint64_t blocks = limits_.any() ? bytes_in_blocks(*p.ring) : 0;
    if (blocks > p.log_blocks) limits_.count(blocks - p.log_blocks);
    p.log_blocks = blocks;
    const std::uint32_t rolls = rolls_.load(std::memory_order_relaxed);
    const bool due = p.rolls != rolls;
    p.rolls = rolls;
    if (due) return roll(folder, p);
    const bool limited = limits_.any() && !held_.load(std::memory_order_relaxed);
    return limited ? roll(folder, p, limits_.part_bytes()) : 0;
  }

  /// Renames those of a thread's logs that have at least this many bytes, which makes them parts.
  /// Returns 0 or errno.
  int roll(const log_folder& folder, producer& p, std::uint64_t least = 1) noexcept {
    const int error = roll_logs(folder, *p.ring, p.logs, least, numbers_);
    p.log_blocks = bytes_in_blocks(*p.ring);
    return error;
  }

  /// Whether the logs of dead threads use much of the size limit. Then those that no other thread
  /// has continued should become parts, which can be deleted: see roll_dead(). True at most once
  /// per second, because a new thread must then create a file instead of continuing such a log.
  bool should_roll_dead() noexcept {
    if (!limits_.crowded() || held_.load(std::memory_order_relaxed)) return false;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - dead_rolled_ns_ < 1'000'000'000) return false;
    dead_rolled_ns_ = now_ns;
    return true;
  }
  /// Makes the logs of a dead thread parts, and lets the next keep() delete them, unless the ring
  /// has got new records since the previous call.
  void roll_dead(const log_folder& folder, producer& p) noexcept {
    const std::uint64_t before = p.records_before;
    p.records_before = p.ring->published[0].load(std::memory_order_relaxed);
    if (p.log_blocks == 0 || p.records_before != before) return;
    roll(folder, p);
    limits_.logs_rolled();
  }

  /// Whether logs have grown so much that old parts should be deleted immediately.
  bool overdue() const noexcept { return limits_.overdue(); }

  /// hold(true) keeps logs from becoming parts because of their size, until hold(false) is called.
  /// Snapshots are taken in between. Otherwise a snapshot could contain the newest lines of a log
  /// without the part before them.
  void hold(bool held) noexcept { held_.store(held, std::memory_order_relaxed); }

  /// For a forked child, in which the parent's other threads do not exist: ends a hold and a check
  /// of the directory that they had begun.
  void after_fork_in_child() noexcept {
    hold(false);
    limits_.after_fork_in_child();
  }

  /// Deletes the logs that exceed the limits of size and age. Returns false, without checking the
  /// logs, if they were last checked only a short time ago.
  LOTUS_DETAIL_COLD bool keep(const log_folder& folder, deleted_logs& forgotten) noexcept {
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (limits_.part_ns() != 0 &&
        now_ns - rolled_ns_.load(std::memory_order_relaxed) >= limits_.part_ns()) {
      rolled_ns_.store(now_ns, std::memory_order_relaxed);
      roll_all();
    }
    return limits_.keep(folder.directory, folder.prefix, folder.owners, forgotten);
  }

 private:
  /// Returns how many bytes the logs of a ring to which the next lines are appended occupy on the
  /// disk.
  static std::uint64_t bytes_in_blocks(const ring_block& ring) noexcept {
    std::uint64_t blocks = 0;
    for (const log_position& log : ring.committed().logs) {
      blocks += (log.length + disk_block_bytes - 1) / disk_block_bytes;
    }
    return blocks * disk_block_bytes;
  }

  log_limits limits_;
  part_numbers numbers_;
  std::atomic<std::uint32_t> rolls_{0};
  std::atomic<std::int64_t> rolled_ns_{0};
  std::int64_t dead_rolled_ns_ = 0;  ///< used by the drain thread only
  std::atomic<bool> held_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_LOG_RETENTION_HPP

// Writes the information file of a process: a small file in the run's directory with the process's
// identity, threads and record counts.
#ifndef LOTUS_STORE_RUN_RUN_INFO_HPP
#define LOTUS_STORE_RUN_RUN_INFO_HPP

// Reads how long the CPUs that this process may use were idle. From this time lotus-tool computes
// how much of the CPUs other programs used.
#ifndef LOTUS_STORE_RUN_IDLE_TIME_HPP
#define LOTUS_STORE_RUN_IDLE_TIME_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Sums the idle times in lines of /proc/stat such as "cpu3 20 0 15 830 2 0 0 0 0 0". The fourth
/// number is the time in which the CPU was idle, and the fifth the time in which it was idle while
/// an input or output was in progress.
class idle_time_of_lines {
 public:
  /// @param cpus  the CPUs whose times are added; borrowed.
  idle_time_of_lines(const cpu_set_t* cpus, std::size_t cpus_bytes) noexcept
      : cpus_(cpus), cpus_bytes_(cpus_bytes) {}

  /// Adds the idle time in a line of /proc/stat, if the line is about one of the CPUs `cpus`.
  /// Returns false if the line is not about CPUs; then no further line is about CPUs either.
  bool add(const char* line) noexcept {
    if (std::strncmp(line, "cpu", 3) != 0) return false;
    if (line[3] < '0' || line[3] > '9') return true;  // the sum over all CPUs
    char* at = nullptr;
    const unsigned long cpu = strtoul(line + 3, &at, 10);
    if (!CPU_ISSET_S(cpu, cpus_bytes_, cpus_)) return true;
    for (int number = 1; number <= 5; ++number) {
      const unsigned long long value = strtoull(at, &at, 10);
      if (number >= 4) clock_ticks_ += value;
    }
    ++counted_;
    return true;
  }

  /// Number of CPUs whose times are in the sum.
  int counted() const noexcept { return counted_; }
  /// The sum of the idle times, in clock ticks of the system, of which there are _SC_CLK_TCK per
  /// second.
  std::uint64_t clock_ticks() const noexcept { return clock_ticks_; }

 private:
  const cpu_set_t* cpus_;
  std::size_t cpus_bytes_;
  int counted_ = 0;
  std::uint64_t clock_ticks_ = 0;
};

/// Returns how long the CPUs on which this thread may run have been idle since the system started:
/// the sum over these CPUs in ns; -1 if it is unknown.
LOTUS_DETAIL_COLD inline std::int64_t idle_ns_of_cpus() noexcept {
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  if (ticks_per_s <= 0 || sched_getaffinity(0, sizeof(masks), masks) != 0) return -1;
  const mapped<char[4096]> memory;
  const int fd = memory ? open_at_high_fd(AT_FDCWD, "/proc/stat", O_RDONLY) : -1;
  if (fd < 0) return -1;
  idle_time_of_lines idle(masks, sizeof(masks));
  char(&text)[4096] = *memory;
  std::size_t kept = 0;  // bytes of an incomplete line at the beginning of `text`
  bool more = true;
  while (more) {
    const ssize_t got = read(fd, text + kept, sizeof(text) - 1 - kept);
    if (got <= 0) break;
    const std::size_t bytes = kept + static_cast<std::size_t>(got);
    text[bytes] = '\0';
    char* line = text;
    for (char* end = nullptr; more && (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      more = idle.add(line);
    }
    kept = static_cast<std::size_t>(text + bytes - line);
    std::memmove(text, line, kept);
  }
  close(fd);
  if (idle.counted() != CPU_COUNT_S(sizeof(masks), masks)) return -1;
  return static_cast<std::int64_t>(idle.clock_ticks()) * (1'000'000'000 / ticks_per_s);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_IDLE_TIME_HPP

// Builds the lines with which a process describes itself in its information file.
#ifndef LOTUS_STORE_RUN_PROCESS_LINES_HPP
#define LOTUS_STORE_RUN_PROCESS_LINES_HPP

#include <cstdarg>

// Determines how many CPUs this process may use, and how often a limit stopped it.
#ifndef LOTUS_BASE_CPU_LIMITS_HPP
#define LOTUS_BASE_CPU_LIMITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The CPUs on which a thread may run.
struct allowed_cpus {
  int count = 0;   ///< 0: unknown
  int first = -1;  ///< the lowest number of these CPUs
};

/// Returns the CPUs in the affinity mask of a thread.
/// @param tid  id of a thread of any process; 0: this thread.
inline allowed_cpus allowed_cpus_of(pid_t tid) noexcept {
  // The mask is an array, because a system may have more CPUs than one cpu_set_t has bits.
  cpu_set_t masks[8];
  CPU_ZERO_S(sizeof(masks), masks);
  if (sched_getaffinity(tid, sizeof(masks), masks) != 0) return {};
  allowed_cpus found{CPU_COUNT_S(sizeof(masks), masks), 0};
  const int all = static_cast<int>(8 * sizeof(masks));
  while (found.first < all && !CPU_ISSET_S(found.first, sizeof(masks), masks)) ++found.first;
  return found;
}

/// Returns the CPUs on which this process may run: those of its main thread, because other threads
/// may have been bound to a part of them.
inline allowed_cpus allowed_cpus_of_process() noexcept {
  const allowed_cpus main = allowed_cpus_of(getpid());
  return main.count > 0 ? main : allowed_cpus_of(0);
}

/// Returns the number of these CPUs; 0 if unknown.
inline int cpus_of_affinity() noexcept {
  return allowed_cpus_of_process().count;
}

/// Returns the number of CPUs on which the parent process may run; 0 if unknown, such as for a
/// parent outside of this container.
inline int cpus_of_parent() noexcept {
  const pid_t parent = getppid();
  return parent > 0 ? allowed_cpus_of(parent).count : 0;
}

/// Returns how many CPUs a limit, a text "<quota> <period>", allows; 0: no limit.
inline double cpus_of_quota(const char* text) noexcept {
  char* quota_end = nullptr;
  const double quota = strtod(text, &quota_end);
  const double period = strtod(quota_end, nullptr);
  return quota_end != text && quota > 0 && period > 0 ? quota / period : 0;
}

/// Texts that are too large for a small stack.
struct cgroup_texts {
  char groups[4096];
  char folder[4096 + 64];
  char file[4096 + 128];
};

/// Calls visit(texts, is_version_2) for each cgroup that may limit this process's CPU time and for
/// its ancestors: those of version 2, and those of the controller "cpu" of version 1. `folder` is
/// then the folder of the cgroup, which may not exist in a container; `file` may be used.
template <class Visit>
LOTUS_DETAIL_COLD void for_each_cpu_cgroup(Visit&& visit) noexcept {
  const mapped<cgroup_texts> memory;
  if (!memory) return;
  cgroup_texts& texts = *memory;
  read_beginning("/proc/self/cgroup", texts.groups);
  char* line = texts.groups;
  while (line != nullptr && *line != '\0') {
    char* const end = std::strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    // A line is "<number>:<controllers>:<path>". Version 2 has no controllers here.
    char* const controllers = std::strchr(line, ':');
    char* const path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    line = end == nullptr ? nullptr : end + 1;
    if (path == nullptr) continue;
    *path = '\0';
    char around[260];
    std::snprintf(around, sizeof(around), ",%s,", controllers + 1);
    const bool is_version_2 = controllers[1] == '\0';
    if (!is_version_2 && std::strstr(around, ",cpu,") == nullptr) continue;
    char* const own = path + 1;
    while (true) {
      std::snprintf(texts.folder, sizeof(texts.folder), "/sys/fs/cgroup%s%s",
                    is_version_2 ? "" : "/cpu", own);
      visit(texts, is_version_2);
      char* const last = std::strrchr(own, '/');
      if (last == nullptr) break;
      *last = '\0';
    }
  }
}

/// Reads the beginning of a file in the cgroup's folder.
template <std::size_t Bytes>
std::size_t read_of_cgroup(cgroup_texts& texts, const char* name, char (&text)[Bytes]) noexcept {
  std::snprintf(texts.file, sizeof(texts.file), "%s/%s", texts.folder, name);
  return read_beginning(texts.file, text);
}

/// Returns the lowest limit, in CPUs, of this process's cgroups and their ancestors; 0: no limit,
/// or unknown.
LOTUS_DETAIL_COLD inline double cpus_of_cgroups() noexcept {
  double least = 0;
  for_each_cpu_cgroup([&least](cgroup_texts& texts, bool is_version_2) {
    char quota[64];
    char period[64] = "";
    read_of_cgroup(texts, is_version_2 ? "cpu.max" : "cpu.cfs_quota_us", quota);
    if (!is_version_2) read_of_cgroup(texts, "cpu.cfs_period_us", period);
    char text[160];
    std::snprintf(text, sizeof(text), "%.*s %s", static_cast<int>(std::strcspn(quota, "\n")), quota,
                  period);
    const double cpus = cpus_of_quota(text);
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  });
  return least;
}

/// In how many periods the limits of cgroups applied, and in how many they stopped this process.
struct cpu_periods {
  unsigned long long all = 0;
  unsigned long long stopped = 0;
};

/// Returns the periods of that cgroup of this process, or ancestor, which was stopped most often.
LOTUS_DETAIL_COLD inline cpu_periods periods_of_cgroups() noexcept {
  cpu_periods most;
  for_each_cpu_cgroup([&most](cgroup_texts& texts, bool) {
    char text[512];
    read_of_cgroup(texts, "cpu.stat", text);
    const auto value = [&text](const char* key) {
      const char* const at = std::strstr(text, key);
      return at == nullptr ? 0 : strtoull(at + std::strlen(key), nullptr, 10);
    };
    const cpu_periods now{value("nr_periods "), value("nr_throttled ")};
    if (now.all > 0 && now.stopped >= most.stopped) most = now;
  });
  return most;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_BASE_CPU_LIMITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The threads whose affinity is in the information file already; at most so many are reported.
struct reported_threads {
  static constexpr std::size_t max = 64;
  struct thread {
    pid_t tid;
    allowed_cpus on;
  } all[max] = {};
  std::size_t count = 0;
  int cpus = 0;  ///< the most CPUs on which the process could run so far

  /// Returns whether this is new. Then it counts as reported.
  bool add(pid_t tid, const allowed_cpus& on) noexcept {
    std::size_t i = 0;
    while (i < count && all[i].tid != tid) ++i;
    if (i == max || (i < count && all[i].on.count == on.count && all[i].on.first == on.first)) {
      return false;
    }
    if (i == count) ++count;
    all[i] = {tid, on};
    return true;
  }
};

/// Builds lines in the format that class run_info documents. Omits values that the kernel does not
/// report, and lines that do not fit into the buffer. Not thread-safe.
/// @tparam Bytes  size of the buffer: 5120 for add_process(), 1024 for add_affinities(), 320 for
///   each other function.
template <std::size_t Bytes>
class process_lines {
 public:
  const char* text() const noexcept { return text_; }
  int bytes() const noexcept { return bytes_; }

  /// Adds the lines that identify the process and how it was started: lotus, host, pid, parent,
  /// forked, run, command, namespace, rank.
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
    const allowed_cpus on = allowed_cpus_of_process();
    const int parent = cpus_of_parent();
    if (limit <= 0) return add("cpus %d - %d %d\n", on.count, on.first, parent);
    // The limit is not printed by %f, because %f would use the decimal separator of the program's
    // locale.
    const auto thousandths = static_cast<unsigned long long>(__builtin_llround(limit * 1000));
    add("cpus %d %llu.%03llu %d %d\n", on.count, thousandths / 1000, thousandths % 1000, on.first,
        parent);
  }

  /// @param tid  id of any running thread.
  void add_thread(std::uint32_t tid) noexcept {
    char path[64];
    char name[64] = {};
    std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
    read_line(path, name);
    add("thread %u %s\n", tid, line<63>{name}.text);
  }

  /// Adds the line "limits".
  void add_limits() noexcept {
    const cpu_periods periods = periods_of_cgroups();
    struct rusage use {};
    getrusage(RUSAGE_SELF, &use);
    add("limits %llu %llu %lld %ld\n", periods.all, periods.stopped,
        static_cast<long long>(use.ru_stime.tv_sec) * 1'000'000'000 +
            static_cast<long long>(use.ru_stime.tv_usec) * 1000,
        use.ru_minflt + use.ru_majflt);
  }

  /// Adds lines "affinity" for threads that may run on fewer CPUs than the process, unless they are
  /// reported already.
  LOTUS_DETAIL_COLD void add_affinities(reported_threads& reported) noexcept {
    // Something may later bind all threads, the main thread included.
    const int now = cpus_of_affinity();
    if (now > reported.cpus) reported.cpus = now;
    const int all = reported.cpus;
    for_each_thread([&](pid_t tid) {
      const allowed_cpus on =
          reported.count < reported_threads::max ? allowed_cpus_of(tid) : allowed_cpus{};
      if (on.count == 0 || on.count >= all || !reported.add(tid, on)) return;
      add("affinity %d %d %d\n", static_cast<int>(tid), on.count, on.first);
    });
  }

 private:
  static constexpr std::size_t max_of_command = 1000;

  /// A text, cut to at most `Most` bytes and escaped so that it stays on one line.
  template <std::size_t Most>
  struct line {
    char text[3 * Most + 2];
    explicit line(const char* name) noexcept {
      text[write_line_name(std::string_view{name}.substr(0, Most), text)] = '\0';
    }
  };

  /// Adds one or more complete lines, formatted as by printf, if they fit into the buffer.
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) noexcept {
    const std::size_t room = Bytes - static_cast<std::size_t>(bytes_);
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(text_ + bytes_, room, format, values);
    va_end(values);
    if (n > 0 && static_cast<std::size_t>(n) < room) bytes_ += n;
  }

  /// Reads the first line of a file in /proc. The text is empty if the file cannot be read.
  template <std::size_t Most>
  static void read_line(const char* path, char (&text)[Most]) noexcept {
    read_beginning(path, text);
    text[std::strcspn(text, "\n")] = '\0';
  }

  /// Adds lines by which lotus-tool distinguishes the processes of one run from those of the next
  /// run in the same directory. "forked": the parent runs the same program, and so is not a shell.
  /// "run": the file that `lotus-tool run` created for this run.
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

  /// Adds the command line as /proc shows it, even if the process has changed it since its start.
  void add_command() noexcept {
    const mapped<char[max_of_command + 1]> memory;
    if (!memory) return;
    auto& command = *memory;
    const std::size_t bytes = read_beginning("/proc/self/cmdline", command);
    std::size_t end = bytes;
    while (end > 0 && command[end - 1] == '\0') --end;
    if (end == 0) return;
    for (std::size_t i = 0; i < end; ++i) {
      if (command[i] == '\0') command[i] = ' ';
    }
    if (bytes == max_of_command) std::memcpy(command + max_of_command - 3, "...", 4);
    add("command %s\n", line<max_of_command>{command}.text);
  }

  /// Adds a line that identifies the namespace in which the ids of processes and threads are
  /// unique.
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

/// How far from now, in the past or in the future, a span ends. Used for spans whose times the
/// program measured itself.
struct span_distance {
  std::uint64_t away_ns;
  bool behind;  ///< whether the end is in the past

  /// @param over_for_ns  time since the span's end in ns; negative if the end is in the future.
  explicit span_distance(std::int64_t over_for_ns) noexcept
      : away_ns{over_for_ns >= 0 ? static_cast<std::uint64_t>(over_for_ns)
                                 : 0 - static_cast<std::uint64_t>(over_for_ns)},
        behind{over_for_ns >= 0} {}
};

/// The maximum distances, one into the past and one into the future, between the moment when a span
/// is recorded and the span's end (see span_distance), as the information file states them.
/// covers() is thread-safe; callers of the other functions hold a lock.
class reported_reach {
 public:
  reported_reach() noexcept = default;
  reported_reach(const reported_reach&) = delete;
  reported_reach& operator=(const reported_reach& other) noexcept {
    if (this == &other) return *this;
    margin_ns_.store(other.margin_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    ahead_ns_.store(other.ahead_ns_.load(std::memory_order_relaxed), std::memory_order_release);
    return *this;
  }
  ~reported_reach() = default;

  /// Whether a span that ends at the distance `end` from now lies within the stored distances, so
  /// that the information file needs no new line for it.
  bool covers(const span_distance& end) const noexcept {
    return end.away_ns <= always_ns ||
           end.away_ns <= side(end.behind).load(std::memory_order_acquire);
  }
  std::uint64_t ns(bool behind) const noexcept {
    return side(behind).load(std::memory_order_relaxed);
  }
  /// Stores a new largest distance after it was written to the information file.
  void extend(bool behind, std::uint64_t to_ns) noexcept {
    (behind ? margin_ns_ : ahead_ns_).store(to_ns, std::memory_order_release);
  }

 private:
  // A shorter distance needs no line in the file, because readers expect differences of this size
  // anyway: the clocks of threads may differ by as much.
  static constexpr std::uint64_t always_ns = 1'000'000;

  const std::atomic<std::uint64_t>& side(bool behind) const noexcept {
    return behind ? margin_ns_ : ahead_ns_;
  }

  std::atomic<std::uint64_t> margin_ns_{0};
  std::atomic<std::uint64_t> ahead_ns_{0};
};

/// Appends lines "<key> <values>" to the file. If a key occurs again, its last line counts:
///   lotus <version> / host <name> / namespace <boot id> <n> / pid <n> / parent <n> / rank <n>
///   forked <n>: parent that runs the same program / run <file>: the file named by LOTUS_RUN_LIST
///   command <its arguments, separated by blanks; cut after 1000 bytes>
///   cpu <off|batches|switches>
///   cpus <number it may run on> <a cgroup's limit, or -> <first of them> <number of the parent's>
///   clock <ticks> <ns since 1970> <ns per tick * 2^32>
///   cpu_time <ns since 1970> <ns> <idle ns>: CPU time of all threads of the process until
///     then, and how long its CPUs were idle (idle_time.hpp), or -1
///   limits <periods> <stopped> <system ns> <faults>: until the previous line cpu_time: periods of
///     the cgroup's CPU limit, those in which the limit stopped the process, CPU time in the
///     kernel, page faults
///   affinity <tid> <CPUs> <first CPU>: a thread that may run on fewer CPUs than the process
///   thread <tid> <name> / log <number> <tid> / records <written> <dropped>
///   back <ns>: maximum time by which a line of a text log ends earlier than a line before it
///   forgotten <files> <bytes> <ns since 1970>: logs deleted by limits, and their last write
///   snapshot <ns since 1970>: only in a snapshot: when it was taken (recovery/snapshot_folder.hpp)
/// A log has a number of its own if another process uses the thread's id; see
/// folder/log_claims.hpp. When the file is created, space for the lines "records" and "forgotten"
/// is reserved, so that these lines can be written even if the disk is full. A process that records
/// again in the same directory continues its file, and "records" contains the sums. Names and the
/// command have the form of names in logs, with an S before them. Failures are ignored, because
/// recording does not depend on the file. covers() is thread-safe; callers of the other functions
/// hold the lock of run_files. Trivially destructible.
class run_info {
 public:
  /// Creates the file, or continues the previous file if it has the same settings.
  /// @param directory  borrowed.
  /// @param mode       permissions of the file, before the umask applies.
  /// @param watching   when threads read their CPU clocks.
  /// @param limited    whether parts of logs may be deleted.
  /// @return the number in the file's name, which the name of the ring file must contain too.
  unsigned long long create(run_directory& directory, mode_t mode, const clock_segment& clock,
                            cpu_watching watching, bool limited) noexcept {
    if (directory_ == &directory && mode_ == mode && watching_ == watching && can_go_on()) {
      add_clock(clock);
      add_cpus(watching);
      add_cpu_time();
      return name_ns_;
    }
    *this = run_info{};
    watching_ = watching;
    directory_ = &directory;
    mode_ = mode;
    name_ns_ = static_cast<unsigned long long>(clock_ns(CLOCK_REALTIME));
    const auto pid = static_cast<unsigned>(getpid());
    std::snprintf(file_, sizeof(file_), "%s%u_%llx", run_info_start, pid, name_ns_);
    const mapped<process_lines<5120>> memory;
    if (memory) {
      (*memory).add_process();
      (*memory).add_cpus(watching);
      append(*memory);
    }
    add_clock(clock);
    add_cpu_time();
    records_end_ = append_room(records_bytes);
    if (limited) forgotten_end_ = append_room(forgotten_bytes);
    return name_ns_;
  }

  /// Adds a line "cpu" if threads now read their CPU clocks at other moments (see cpu_watching)
  /// than the file states.
  void report_watching(cpu_watching watching) noexcept {
    if (watching == watching_ || directory_ == nullptr) return;
    watching_ = watching;
    add_cpus(watching);
  }

  /// @param tid  id of any running thread.
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

  /// Adds a line "cpu_time": the CPU time of the process so far, and the idle time of its CPUs.
  void add_cpu_time() noexcept {
    if (directory_ == nullptr || watching_ == cpu_watching::off) return;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (first_cpu_time_ns_ == 0) first_cpu_time_ns_ = now_ns;
    // The pause before the next line is a sixteenth of the time recorded so far, so that even a
    // long recording has few of these lines.
    constexpr std::int64_t min_pause_ns = 50'000'000;
    const std::int64_t pause_ns = (now_ns - first_cpu_time_ns_) / 16;
    next_cpu_time_ns_ = now_ns + (pause_ns > min_pause_ns ? pause_ns : min_pause_ns);
    char text[96];
    append(text, std::snprintf(text, sizeof(text), "cpu_time %lld %lld %lld\n",
                               static_cast<long long>(clock_ns(CLOCK_REALTIME)),
                               static_cast<long long>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
                               static_cast<long long>(idle_ns_of_cpus())));
    process_lines<1024> lines;
    lines.add_limits();
    lines.add_affinities(bound_threads_);
    append(lines);
  }

  /// Adds a line "cpu_time" if the next one is due. Does nothing before create().
  void add_due_cpu_time() noexcept {
    if (next_cpu_time_ns_ != 0 && clock_ns(CLOCK_MONOTONIC) >= next_cpu_time_ns_) add_cpu_time();
  }

  /// Whether a span that ends at the distance `end` from now lies within the distances that the
  /// file already states. Thread safety: any thread, without a lock.
  bool covers(const span_distance& end) const noexcept { return reach_.covers(end); }

  /// Adds a line "back", from which readers know how far lines may be out of order, unless an
  /// earlier line suffices for this span; see covers(). Call this function before the span is
  /// recorded. If the line cannot be written, the call for the next span that no line covers tries
  /// again.
  void add_span(const span_distance& end) noexcept {
    if (reach_.covers(end) || directory_ == nullptr) return;
    // The distance is rounded up to a power of two, so that there are few lines.
    constexpr std::uint64_t max_ns = std::uint64_t{1} << 61;
    std::uint64_t new_ns = std::uint64_t{1} << 20;
    while (new_ns < end.away_ns && new_ns < max_ns) new_ns *= 2;
    const unsigned long long back_ns = reach_.ns(!end.behind) + new_ns;
    char text[48];
    const int n = std::snprintf(text, sizeof(text), "back %llu\n", back_ns);
    if (append(text, n) != 0) reach_.extend(end.behind, new_ns);
  }

  /// Adds the record counts of one recording to the line "records".
  void add_records(std::uint64_t written, std::uint64_t dropped) noexcept {
    written_ += written;
    dropped_ += dropped;
    char text[records_bytes + 1];
    const int n = std::snprintf(text, sizeof(text), "records %llu %llu\n",
                                static_cast<unsigned long long>(written_),
                                static_cast<unsigned long long>(dropped_));
    put(text, n, records_bytes, records_end_);
  }

  void add_deleted(const deleted_logs& now) noexcept {
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

  /// Whether a new recording may continue the file: it still exists, is not too long, and there is
  /// no ring file with the same number in its name.
  bool can_go_on() const noexcept {
    constexpr off_t max_bytes = off_t{1} << 20;
    const int directory = directory_->descriptor();
    struct stat status {};
    const int fd = open_own(directory, file_, O_RDONLY, file_owners::of_caller(directory), status);
    if (fd < 0) return false;
    close(fd);
    char ring[sizeof(file_)];
    std::snprintf(ring, sizeof(ring), "%s%s", ring_file_start, file_ + sizeof(run_info_start) - 1);
    struct stat other {};
    return file_identity_.is(status) && status.st_size < max_bytes &&
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

  /// Appends text to the file. Returns the new end of the file, or 0 if it could not be written.
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

  /// Appends a blank line of this size, to reserve space. Returns the new end of the file, or 0.
  off_t append_room(int bytes) noexcept {
    char text[forgotten_bytes];
    std::memset(text, ' ', sizeof(text));
    text[bytes - 1] = '\n';
    return append(text, bytes);
  }

  /// Writes a line into the reserved space that ends at `room_end`, padded with blanks so that the
  /// line overwrites an earlier line completely. Appends the line if no space is reserved.
  void put(char* text, int length, int room_bytes, off_t room_end) noexcept {
    std::memset(text + length, ' ', static_cast<std::size_t>(room_bytes - length));
    text[room_bytes - 1] = '\n';
    if (!replace(text, room_bytes, room_end)) append(text, length);
  }

  /// Writes into the space that create() reserved. Returns false if no space is reserved there, or
  /// if writing fails.
  bool replace(const char* text, int bytes, off_t end) const noexcept {
    struct stat status {};
    const int fd = end > 0 ? open_file(status) : -1;
    if (fd < 0) return false;
    // The flag O_APPEND is removed, because with it every write goes to the end of the file.
    const bool placed = lseek(fd, 0, SEEK_END) >= end && fcntl(fd, F_SETFL, 0) == 0 &&
                        lseek(fd, end - bytes, SEEK_SET) >= 0;
    const int error = placed ? write_all(fd, text, static_cast<std::size_t>(bytes)) : EIO;
    close(fd);
    return error == 0;
  }

  // Maximum lengths of the lines "records" and "forgotten", including a blank at the end.
  static constexpr int records_bytes = 52;
  static constexpr int forgotten_bytes = 74;

  run_directory* directory_ = nullptr;
  mode_t mode_ = 0;
  char file_[64] = {};
  /// Time when the file was created, in ns of CLOCK_REALTIME; part of the file's name.
  unsigned long long name_ns_ = 0;
  file_identity file_identity_;
  cpu_watching watching_{};
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  deleted_logs forgotten_;
  reported_reach reach_;
  /// Times at which the first line "cpu_time" was written and at which the next one is due, in ns
  /// of CLOCK_MONOTONIC.
  std::int64_t first_cpu_time_ns_ = 0;
  std::int64_t next_cpu_time_ns_ = 0;
  reported_threads bound_threads_;
  /// End of the space reserved in the file for the line "records"; 0: none.
  off_t records_end_ = 0;
  off_t forgotten_end_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_INFO_HPP

// Provides the session's clock, which converts ticks to time and repeatedly adjusts the conversion
// to the wall clock.
#ifndef LOTUS_STORE_SESSION_CLOCK_HPP
#define LOTUS_STORE_SESSION_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maps ticks to time. All functions are thread-safe, except those whose caller must hold lock_.
class session_clock {
 public:
  session_clock() noexcept : hardware_{hardware_ticks_invariant()} {}

  /// Whether ticks come from the hardware counter; otherwise they are ns of CLOCK_MONOTONIC.
  bool hardware() const noexcept { return hardware_; }

  /// Begins a new map (conversion from ticks to time). Takes 1 ms to measure the counter's rate to
  /// about 20 ppm; the first tie(), 5 ms later, improves the rate.
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

  /// Compares the map with CLOCK_REALTIME and corrects it, unless the last comparison was less than
  /// 90 ms ago. The first comparisons come after 5 ms already, to improve the rate quickly.
  /// @param stored  function to call with the changed map, under the clock's lock.
  /// @return the step, in ns, by which the wall clock was set since the last comparison; 0: none.
  template <class Stored>
  std::int64_t tie(Stored&& stored) noexcept {
    const std::int64_t due_ns = ties_.load(std::memory_order_relaxed) < 3 ? 5'000'000 : 90'000'000;
    // CLOCK_BOOTTIME also runs while the machine is suspended, so the map is compared after each
    // suspension.
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

  /// Returns `use(map)`. The map from ticks to time does not change during the call.
  template <class Use>
  auto with_map(Use&& use) noexcept {
    const locked hold{lock_};
    return use(map_);
  }

  std::uint64_t ticks() const noexcept {
    return hardware_ ? hardware_ticks() : static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
  }

  /// Converts a duration in ns to ticks; nullopt if the rate is not known yet.
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
    /// Time since the span's end in ns, by the clock of the logs; negative if the end is in the
    /// future.
    std::int64_t over_for_ns;
  };
  /// Converts a span's times from ns of CLOCK_MONOTONIC to ticks, using the current rate.
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

  // --- Functions for a fork. The caller holds fork_lock().

  void before_fork() noexcept {
    forked_realtime_ns_ = clock_ns(CLOCK_REALTIME);
    forked_monotonic_ns_ = clock_ns(CLOCK_MONOTONIC);
  }
  /// Adapts the map if the child is in another time namespace (unshare(CLONE_NEWTIME)), where
  /// CLOCK_MONOTONIC and CLOCK_BOOTTIME differ from the parent's by constants.
  LOTUS_DETAIL_COLD void after_fork_in_child() noexcept {
    constexpr std::int64_t min_ns = 100'000'000;
    const std::int64_t elapsed_ns = clock_ns(CLOCK_REALTIME) - forked_realtime_ns_;
    const std::int64_t by_ns = clock_ns(CLOCK_MONOTONIC) - forked_monotonic_ns_ - elapsed_ns;
    if (-min_ns < by_ns && by_ns < min_ns) return;
    map_.shift_elapsed(by_ns, !hardware_);
    sleep_ = {};
    slept_ns();
    last_tie_ns_.store(clock_ns(CLOCK_BOOTTIME), std::memory_order_relaxed);
  }
  mutex& fork_lock() noexcept { return lock_; }

 private:
  /// Returns how long the machine was suspended since the last call, in ns. The caller holds lock_.
  std::int64_t slept_ns() noexcept {
    const std::int64_t boottime_ns = clock_ns(CLOCK_BOOTTIME);
    return sleep_.slept_ns(boottime_ns, clock_ns(CLOCK_MONOTONIC));
  }

  /// Converts a time of CLOCK_MONOTONIC to ticks. The caller holds lock_.
  std::uint64_t ticks_at(std::int64_t monotonic_ns, const clock_anchor& now) const noexcept {
    __extension__ using wide = __int128;
    if (!hardware_) return static_cast<std::uint64_t>(monotonic_ns);
    const auto rate = static_cast<std::int64_t>(map_.current().rate);
    if (rate == 0) return now.ticks;
    const wide distance = wide{monotonic_ns - now.elapsed_ns} * (wide{1} << 32) / rate;
    return now.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
  }

  /// Reads the ticks, CLOCK_MONOTONIC and CLOCK_REALTIME at nearly the same moment: reads them five
  /// times and returns the reading that took the least time.
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
  std::int64_t forked_realtime_ns_ = 0;  ///< CLOCK_REALTIME at the last fork
  std::int64_t forked_monotonic_ns_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SESSION_CLOCK_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory of a run, and this process's ring file and information file in it. Call open,
/// make_ring_file, close_files, close and after_fork_in_child under the session's control lock, all
/// other functions on any thread.
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

  /// Finds or creates the directory. Returns 0 or errno; reports an error only once per run.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    int error = location_.parse(chosen.log_file);
    if (error == 0) error = directory_.open(location_);
    if (error != 0) {
      reports_.directory_unwritable(chosen.log_file.c_str(), error);
      return error;
    }
    file_mode_ = chosen.file_mode & 0666U;
    compact_ = chosen.format == log_format::compact;
    owners_ = file_owners::of_caller(directory_.descriptor());
    directory_.add_to_list(location_.prefix);
    reports_.run_begins();
    reports_.existing_logs(directory_.descriptor(), location_);
    return 0;
  }

  /// Creates the ring file. Must be called after open().
  /// @param limited  whether logs are deleted when they exceed limits.
  void make_ring_file(bool limited) noexcept {
    const locked hold{lock_};
    limited_ = limited;
    ring_file_due_ = false;
    make_ring_file_locked();
  }

  /// Creates a forked child's ring file, unless it exists. Called when the child first records.
  void make_due_ring_file() noexcept {
    const locked hold{lock_};
    if (ring_file_due_) make_ring_file_locked();
  }

  /// Closes the ring file and completes the information file.
  /// @param keep  whether the ring file stays on the disk, because it contains records that are not
  /// in the logs.
  /// @param dropped  number of records lost since open().
  /// @param complete  whether no thread stores records any more; false while the process exits.
  LOTUS_DETAIL_COLD void close_files(bool keep, std::uint64_t dropped, bool complete) noexcept {
    const locked hold{lock_};
    clock_.with_map([&](const clock_map& map) { info_.add_clock(map.current()); });
    info_.add_cpu_time();
    info_.add_records(written_.load(std::memory_order_relaxed), dropped);
    file_.finish(keep, complete);
    kept_names_.no_file();
  }

  void close() noexcept {
    leftovers_.finish(directory_);
    directory_.close();
  }

  /// Whether recovery can find the name with this id after a kill. If not, call keep_names() before
  /// a record with the name is stored.
  bool keeps_name(std::uint32_t id) const noexcept { return kept_names_.has(id); }
  void keep_names() noexcept {
    const locked hold{lock_};
    kept_names_.store(file_, names_);
  }

  /// If the directory was deleted and another one has its path now, records to that directory from
  /// now on. Returns whether the ring file was deleted as well, so that the existing rings need a
  /// new one.
  LOTUS_DETAIL_COLD bool follow_directory() noexcept {
    if (LOTUS_DETAIL_LIKELY(!directory_.was_deleted())) return false;
    const locked hold{lock_};
    const bool had_file = file_.exists();
    file_.forget();
    kept_names_.no_file();
    const bool follows = directory_.follow();
    reports_.directory_deleted(location_, follows);
    if (!follows) return had_file;
    owners_ = file_owners::of_caller(directory_.descriptor());
    info_ = run_info{};
    make_ring_file_locked();
    return true;
  }

  // --- Functions for threads.

  /// Recovers the records of dead processes' threads with this id. Must be called before a thread
  /// with this id writes logs.
  void recover_thread(std::uint32_t tid) noexcept { leftovers_.of_thread(directory_, tid); }

  void add_thread(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    info_.add_thread(tid);
  }

  /// Returns a new number, which no other log has, for logs that several threads will share.
  /// @param tid  id of the first of these threads.
  std::uint32_t new_log_number(std::uint32_t tid) noexcept {
    const locked hold{lock_};
    const std::uint32_t number = number_of_no_thread(tid);
    report_log_number(directory_.descriptor(), info_.file(), owners_, number, tid);
    return number;
  }

  /// Returns a ring for a thread; null if there is no memory.
  /// @param survives  set to whether the ring is in the ring file and so survives the process.
  /// @param may_be_small  see ring_file::add_ring().
  ring_block* add_ring(std::uint32_t tid, std::uint32_t records, bool may_be_small,
                       bool& survives) noexcept {
    const locked hold{lock_};
    int error = 0;
    ring_block* const ring = file_.add_ring(tid, records, may_be_small, error);
    if (ring == nullptr) return nullptr;
    survives = error == 0;
    if (!survives && file_.exists()) reports_.no_ring_file(location_, error);
    info_.add_thread(tid);
    return ring;
  }

  /// Returns a ring in the ring file for a thread that has one already, and whose id the
  /// information file contains; null if the ring file cannot grow.
  ring_block* add_whole_ring(std::uint32_t tid, std::uint32_t records) noexcept {
    const locked hold{lock_};
    int error = 0;
    return file_.add_whole_ring(tid, records, error);
  }

  /// Returns a block for the aggregates of a thread; null if there is no memory.
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

  /// Number of records that this recording has written to logs. Threads that drain increment it.
  std::atomic<std::uint64_t>& written() noexcept { return written_; }

  // --- Functions about the information and the clock in the files.

  /// Returns when this recording began, in ns since the Unix epoch: ring_file_header::began_ns.
  std::uint64_t began_ns() noexcept {
    const locked hold{lock_};
    return began_ns_;
  }

  /// Copies the name of this process's information file to `name`; "" if it has none yet.
  template <std::size_t Bytes>
  void put_info_name(char (&name)[Bytes]) noexcept {
    const locked hold{lock_};
    std::snprintf(name, Bytes, "%s", info_.file());
  }

  void tie_clock() noexcept {
    const locked hold{lock_};
    info_.report_watching(cpu_.mode());
    const auto stepped_ns = clock_.tie([&](const clock_map& map) { file_.store_clock(map); });
    if (stepped_ns != 0) report_clock_step(stepped_ns);
  }

  /// Stores in the information file how far from now a span ends; see run_info::add_span(). If the
  /// program measured the times of a span itself, call this function before the span is recorded.
  /// If an earlier span ended at least as far away, nothing is written; otherwise the call may wait
  /// for the disk.
  void report_span(const span_distance& end) noexcept {
    if (info_.covers(end)) return;
    make_due_ring_file();
    const locked hold{lock_};
    info_.add_span(end);
  }

  void add_due_cpu_time() noexcept {
    const locked hold{lock_};
    info_.add_due_cpu_time();
  }

  /// Keeps a copy of the ring file from taking its blocks; see ring_file::unshare_blocks().
  void keep_own_blocks() noexcept {
    const locked hold{lock_};
    const int error = file_.unshare_blocks();
    if (error != 0) reports_.shared_blocks(location_, error);
  }

  void add_deleted(const deleted_logs& forgotten) noexcept {
    const locked hold{lock_};
    info_.add_deleted(forgotten);
  }

  // --- Recovery of leftovers: records that dead processes left in their ring files.

  /// Appends some of the leftovers to the logs. Returns whether more of them remain.
  bool recover_leftovers() noexcept { return leftovers_.step(directory_); }
  void leave_leftovers() noexcept { leftovers_.leave(); }

  // --- Functions for a fork.

  /// Forgets the files in a forked child, because they belong to the parent.
  void after_fork_in_child() noexcept {
    file_.forget();
    leftovers_.forget();
    info_ = run_info{};
    written_.store(0, std::memory_order_relaxed);
    ring_file_due_ = true;
    kept_names_.no_file();
  }

  // Lock order: lock_, then the lock of the leftovers. No other lock is taken while the directory's
  // lock is held.
  mutex& fork_lock() noexcept { return lock_; }
  mutex& leftovers_fork_lock() noexcept { return leftovers_.fork_lock(); }
  mutex& directory_fork_lock() noexcept { return directory_.fork_lock(); }

 private:
  /// Creates the ring file. First recovers leftovers, because this process or its threads may have
  /// the ids of dead ones. The caller holds lock_.
  LOTUS_DETAIL_COLD void make_ring_file_locked() noexcept {
    leftovers_.begin(directory_, location_, !ring_file_due_);
    ring_file_due_ = false;
    written_.store(0, std::memory_order_relaxed);
    const int error = clock_.with_map([&](const clock_map& map) {
      const auto name_ns =
          info_.create(directory_, file_mode_, map.current(), cpu_.mode(), limited_);
      const std::uint32_t flags =
          (clock_.hardware() ? 0 : ticks_are_ns_flag) | (compact_ ? compact_flag : 0);
      began_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME));
      return file_.create(directory_, name_ns, location_.prefix, file_mode_, flags, map, began_ns_);
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

  mutex lock_;  ///< protects all following members that are not atomic
  ring_file file_;
  run_info info_;
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t began_ns_ = 0;
  bool ring_file_due_ = false;
  kept_names kept_names_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RUN_RUN_FILES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Stores the aggregates of all threads of the process. Thread safety: any thread may call these
/// functions while it holds the `guard` of the producer (the state of a thread) that it passes;
/// functions with the parameter `all` need no guard.
class LOTUS_DETAIL_PER_MODULE aggregate_store {
 public:
  aggregate_store(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  // --- Functions for one thread.

  /// Adds a call to the thread's aggregates, and allocates memory if the thread has none for this
  /// call yet. Returns false if there is no memory.
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

  /// Writes a call that ended after the recording directly to the process's aggregates file.
  LOTUS_DETAIL_COLD void write_late(const producer& p, const aggregate_call& call) noexcept {
    auto* const one = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
    if (one == nullptr) return;
    const aggregate_call whole = is_negative(call) ? aggregate_call{call.key, 0, 0} : call;
    one->count = 1;
    one->total_ticks = whole.ticks;
    one->self_ticks = whole.self_ticks;
    one->counts[bucket_of(whole.ticks)] = 1;
    const std::uint64_t began_ns = files_.began_ns();
    const locked hold{lock_};
    aggregate_text section{{began_ns, ++late_calls_}, rate()};
    section.add(names_.entry(static_cast<std::uint32_t>(call.key)).line_start(),
                p.tid.load(std::memory_order_relaxed), *one);
    append(static_cast<std::uint32_t>(call.key >> 32), section.finish());
    munmap(one, sizeof(whole_aggregate));
  }

  /// Called when a new thread takes over the producer of a thread that has ended. The new thread
  /// adds its calls to the same aggregates, which are marked here as those of several threads.
  LOTUS_DETAIL_COLD static void prepare_for_next_thread(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    a.storing.store(0, std::memory_order_relaxed);
    a.inner_ticks = a.unreported_ticks = 0;
    a.interrupting = 0;
    if (a.memory == nullptr || a.memory->retired) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    a.memory->for_each_block([tid](aggregates_block& block) {
      block.threads.fetch_add(1, std::memory_order_relaxed);
      block.tid.store(tid, std::memory_order_relaxed);
    });
  }

  static bool has_any(const producer& p) noexcept { return aggregates_of(p).memory != nullptr; }

  /// Makes the next call of p's thread take the slow path, where that thread waits for
  /// producer::guard. So its aggregates do not change while the caller holds that guard.
  static void close(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_seq_cst);
  }
  /// Reverses close(): from now on the thread again adds its calls without the slow path.
  static void reopen(producer& p) noexcept {
    const aggregate_memory* const memory = aggregates_of(p).memory;
    if (memory != nullptr && !memory->retired) {
      gate_of(p).aggregates.store(memory->first, std::memory_order_release);
    }
  }
  /// Waits until the thread has added the call that it is adding now. Call close() first. Gives up
  /// after 100 attempts, because the thread may not be running.
  static void await_call(const producer& p) noexcept {
    const thread_aggregates& a = aggregates_of(p);
    for (int i = 0; i < 100 && a.storing.load(std::memory_order_seq_cst) != 0; ++i) sched_yield();
  }

  /// Declares the thread's aggregates finished: no call is added to them any more. The thread's
  /// next call begins new aggregates.
  static void retire(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    if (aggregates_of(p).memory != nullptr) aggregates_of(p).memory->retired = true;
  }

  /// Called in a forked child. Discards the aggregates that the child copied from its parent,
  /// because the parent itself writes them to files.
  static void after_fork_in_child(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    a.unreported_ticks = 0;
    // `storing` is not 0 if a signal handler that interrupted the adding of a call has called fork.
    if (a.memory != nullptr) a.memory->give_back(a.storing.load(std::memory_order_relaxed) != 0);
    a.memory = nullptr;
  }

  // --- Functions for all threads.

  /// Writes the aggregates of all threads to files, and makes the next call of each thread take the
  /// slow path. Returns false if the aggregates could not be written and remain only in the ring
  /// file.
  LOTUS_DETAIL_COLD bool write(const producer_list& all) noexcept {
    bool any = false;
    all.for_each([&any](producer& p) {
      const locked guard{p.guard};
      any = any || has_any(p);
      close(p);
      await_call(p);
    });
    if (!any) return true;
    const std::uint64_t began_ns = files_.began_ns();
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
    return for_each_section({began_ns, 0}, rate(), names_.line_starts(), each_thread,
                            [this](std::uint32_t loader, std::string_view section) {
                              return append(loader, section);
                            }) == 0;
  }

  /// Writes the aggregates of each thread, as they are at one moment, to the snapshot in `folder`.
  /// The threads keep running; a thread waits only if a call ends while its aggregates are copied.
  /// Returns 0 or an error that file_error_text() can describe.
  LOTUS_DETAIL_COLD int copy(const producer_list& all, int folder) noexcept {
    aggregate_copies copies;
    all.for_each([&copies](producer& p) {
      const locked guard{p.guard};
      thread_aggregates& a = aggregates_of(p);
      if (a.memory == nullptr || a.memory->retired) return;
      // Makes the thread's next call take the slow path, where it waits for the guard held here.
      std::atomic<aggregates_block*>& open = gate_of(p).aggregates;
      aggregates_block* const first = open.exchange(nullptr, std::memory_order_seq_cst);
      copies.add_whole([&a](each_block each) { a.memory->for_each_block(each); });
      open.store(first, std::memory_order_release);
    });
    copies.finish();
    if (copies.failed()) return ENOMEM;
    // No lock is held while the files are written, so no thread waits for the disk.
    return for_each_section(
        {files_.began_ns(), 0}, rate(), names_.line_starts(),
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
  mutex lock_;  ///< protects the blocks of all threads while they grow or are written
  std::uint32_t chains_ = 0;
  std::uint64_t late_calls_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP

// Provides background threads, such as the one that drains rings (writes their records to the
// logs). If the drain thread cannot be started, rings are still drained when the recording ends.
#ifndef LOTUS_STORE_BACKGROUND_THREAD_HPP
#define LOTUS_STORE_BACKGROUND_THREAD_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines the pauses between the rounds of the drain thread. All functions are thread-safe.
class drain_pace {
 public:
  void begin(std::uint32_t interval_ms) noexcept {
    max_ms_.store(interval_ms > 0 ? interval_ms : 1, std::memory_order_relaxed);
    early_ms_.store(5, std::memory_order_relaxed);
  }

  /// Returns the next pause in ms: first 5, 20 and 80, then the interval that the program has
  /// chosen. The first rounds follow each other quickly because each of them compares the records'
  /// clock with the wall clock, which makes the clock's measured rate more exact.
  /// @param more_to_do  whether leftovers remain to be recovered; then the pause is at most 100 ms.
  std::uint32_t next_ms(bool more_to_do) noexcept {
    const std::uint32_t early_ms = early_ms_.load(std::memory_order_relaxed);
    const std::uint32_t chosen_ms = max_ms_.load(std::memory_order_relaxed);
    const std::uint32_t max_ms =
        more_to_do && chosen_ms > early_until_ms ? early_until_ms : chosen_ms;
    if (early_ms < early_until_ms) early_ms_.store(early_ms * 4, std::memory_order_relaxed);
    return early_ms < early_until_ms && early_ms < max_ms ? early_ms : max_ms;
  }

 private:
  static constexpr std::uint32_t early_until_ms = 100;

  std::atomic<std::uint32_t> max_ms_{0};
  std::atomic<std::uint32_t> early_ms_{0};
};

/// A thread that calls a function at intervals. The thread is detached and never joined, because
/// the process may end at any moment. It ends when it has nothing to do, or when only threads of
/// the library are left: if main() leaves by pthread_exit(3), a process ends with its last thread.
/// All functions are thread-safe. Call wake() with signals blocked: the new thread inherits the
/// mask, and must not run the program's signal handlers.
class background_thread {
 public:
  /// @param name  the thread's name, at most 15 characters; must stay valid.
  /// @param round  function that the thread calls with `context`. Returns the pause until the next
  /// call in ns; 0: until wake() is called.
  background_thread(const char* name, std::uint64_t (*round)(void*) noexcept,
                    void* context) noexcept
      : name_{name}, round_{round}, context_{context} {}

  /// Starts the thread, or ends its pause if it is running. Does nothing if the thread cannot be
  /// started.
  void wake() noexcept {
    wakes_.fetch_add(1);
    syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    if (runs_.load() || runs_.exchange(true)) return;
    // The program's default may be very small, or larger than the system allows. The exit handlers
    // of the program may run on this thread, if it is the last one.
    if (!start(stack_bytes) && !start(0)) runs_.store(false);
  }

  /// Whether the thread is running. A forked child has no such thread.
  bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }

  /// For a forked child, which does not have the parent's thread: makes wake() start a new one.
  void forget() noexcept {
#ifndef LOTUS_DETAIL_THREAD_SANITIZER
    // ThreadSanitizer kills a child that starts a thread if the parent had several.
    runs_.store(false, std::memory_order_relaxed);
#endif
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{512} << 10;
  static constexpr std::uint64_t max_pause_ns = 250'000'000;

  /// @param stack  size of the thread's stack in bytes; 0: the program's default.
  LOTUS_DETAIL_COLD bool start(std::size_t stack) noexcept {
    if (!may_allocate()) return false;
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (stack != 0) pthread_attr_setstacksize(&how, stack);
    // Do not inherit the priority of a real-time thread: this thread would delay other threads.
    const int policy = sched_getscheduler(0);
    if (stack != 0 && (policy == SCHED_FIFO || policy == SCHED_RR)) {
      pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);  // SCHED_OTHER
    }
    pthread_t thread{};
    const bool started = pthread_create(&thread, &how, run, this) == 0;
    pthread_attr_destroy(&how);
    return started;
  }

  /// Returns whether malloc works on this thread. If a filter of system calls forbids malloc's
  /// first allocation on a thread with another error than ENOMEM, glibc's pthread_create(3) calls
  /// abort(3).
  static bool may_allocate() noexcept {
    void* volatile memory = std::malloc(64);
    std::free(memory);
    return memory != nullptr;
  }

  LOTUS_DETAIL_COLD static void* run(void* self) noexcept {
    auto& thread = *static_cast<background_thread*>(self);
    pthread_setname_np(pthread_self(), thread.name_);
    for (;;) {
      const std::uint32_t seen = thread.wakes_.load();
      const std::uint64_t pause_ns = thread.round_(thread.context_);
      if ((pause_ns == 0 || !thread.pause(pause_ns, seen)) && thread.may_end(seen)) break;
    }
    if (only_own_threads_are_left()) {
      // This thread now ends the process, and so may run exit handlers.
      sigset_t none;
      sigemptyset(&none);
      pthread_sigmask(SIG_SETMASK, &none, nullptr);
    }
    return nullptr;
  }

  /// Waits until wake() is called or the time is over. Returns false if the thread must end.
  bool pause(std::uint64_t ns, std::uint32_t seen) noexcept {
    while (wakes_.load() == seen) {
      const std::uint64_t part_ns = ns < max_pause_ns ? ns : max_pause_ns;
      const timespec part{0, static_cast<long>(part_ns)};
      syscall(SYS_futex, &wakes_, FUTEX_WAIT_PRIVATE, seen, &part, nullptr, 0);
      if (only_own_threads_are_left()) return false;
      if ((ns -= part_ns) == 0) break;
    }
    return true;
  }

  /// Declares the thread ended, unless wake() was called after `seen` was read and has started no
  /// other thread.
  bool may_end(std::uint32_t seen) noexcept {
    runs_.store(false);
    return wakes_.load() == seen || runs_.exchange(true);
  }

  const char* name_;
  std::uint64_t (*round_)(void*) noexcept;
  void* context_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<bool> runs_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_BACKGROUND_THREAD_HPP

// Keeps the recorder consistent in the parent and in the child when the process forks.
#ifndef LOTUS_STORE_FORK_GUARD_HPP
#define LOTUS_STORE_FORK_GUARD_HPP

// Provides the state that recording threads check: whether recording is on, and what to do when a
// ring is full.
#ifndef LOTUS_STORE_RECORDING_STATE_HPP
#define LOTUS_STORE_RECORDING_STATE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Whether recording is on, and how records are stored. All functions are thread-safe, but call
/// only one of begin(), write_through() and end() at a time.
class recording_state {
 public:
  bool is_on() const noexcept { return on_.load(std::memory_order_acquire); }
  /// Whether each record is written to its log immediately, because the process exits and no drain
  /// follows.
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

// Provides the slow path of recording, which a thread takes if it cannot store a record directly.
#ifndef LOTUS_STORE_SLOW_PATH_HPP
#define LOTUS_STORE_SLOW_PATH_HPP

// Manages the rings of all threads, and drains them: writes their records to the logs.
#ifndef LOTUS_STORE_STORAGE_HPP
#define LOTUS_STORE_STORAGE_HPP

// Keeps records in memory while they cannot be written to the disk.
#ifndef LOTUS_STORE_BACKLOG_HPP
#define LOTUS_STORE_BACKLOG_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy, in private memory, of a full ring whose records could not be written to the logs.
struct backlog_chunk {
  backlog_chunk* next;
  std::uint64_t bytes;  ///< size of this chunk's mapping
  ring_block ring;      ///< the last member, because the ring's records follow it
};

/// Moves records from rings to memory: into a list of chunks for each thread, the oldest chunk
/// first. Call begin() while no other function is running, and the other functions while
/// producer::guard is held.
class backlog {
 public:
  void begin(std::size_t max_bytes) noexcept { max_bytes_ = max_bytes; }

  /// Moves all records of `p`'s ring to memory. Returns false, without moving anything, if the
  /// memory limit is reached or no memory is available.
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

  /// Frees the oldest chunk of `p`. Returns how many unwritten records were in the chunk.
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

// Provides the buffers in which draining threads format log lines.
#ifndef LOTUS_STORE_DRAIN_BUFFERS_HPP
#define LOTUS_STORE_DRAIN_BUFFERS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps a few unused buffers for later drains. All functions are thread-safe.
class drain_buffers {
 public:
  /// Returns a buffer; null if there is no memory.
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

// Limits how many threads' log files stay open between two drains.
#ifndef LOTUS_STORE_KEPT_LOGS_HPP
#define LOTUS_STORE_KEPT_LOGS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Keeps the log files of some threads open: opening them for each drain would cost more than
/// writing, but with all of them open the program could run out of file descriptors. All functions
/// are thread-safe; call them while producer::guard is held.
class kept_logs {
 public:
  void keep_or_close(producer& p) noexcept {
    if (p.logs_kept_open) return;
    p.logs_kept_open = threads_.fetch_add(1, std::memory_order_relaxed) < max_threads;
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
  /// Maximum number of threads whose logs stay open; a thread has up to three logs.
  static constexpr std::uint32_t max_threads = 32;

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

/// The time at which the calling thread started, as the kernel reports it, accurate to 10 ms; read
/// when it is first needed.
class thread_start {
 public:
  /// Returns whether the calling thread certainly started later than the time `ticks`.
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
    // The text is "tid (name) state ppid pgrp ...". The name may contain anything, so the fields
    // are counted from the last ')'; the 20th field after it is the start time.
    const char* at = std::strrchr(text, ')');
    for (int field = 0; at != nullptr && field < 20; ++field) at = std::strchr(at + 1, ' ');
    if (at == nullptr) return;
    const long long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0) return;
    // The kernel rounds the start time down, so the thread never seems younger than it is.
    const long long started_ns = std::strtoll(at, nullptr, 10) * (1'000'000'000 / per_second);
    const std::int64_t age_ns = clock_ns(CLOCK_BOOTTIME) - started_ns;
    if (age_ns >= 0) age_ticks_ = clock.ticks_in(age_ns).value_or(UINT64_MAX);
  }

  bool known_ = false;
  std::uint64_t now_ = 0;
  std::uint64_t age_ticks_ = 0;  ///< age of the thread, in ticks, at the time now_
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LIMITS_THREAD_START_HPP

// Drains one thread: writes all of its records to its logs.
#ifndef LOTUS_STORE_PRODUCER_DRAIN_HPP
#define LOTUS_STORE_PRODUCER_DRAIN_HPP

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The arguments of drain_producer(), except for the thread and its logs.
struct drain_context {
  const tick_converter& clock;
  const name_table& names;
  bool compact;
  drain_buffer& buffer;
  backlog& set_aside;
  /// Increased by the number of records that the drain writes.
  std::atomic<std::uint64_t>& written;
};

/// Writes first the records in the thread's backlog, which are older, and then those in its ring.
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
    const std::uint64_t unwritten = lane_heads{chunk}.beyond(chunk.committed());
    logs.take_records_of(chunk);
    error = drain_ring(chunk, lane_heads{chunk}, fill, logs);
    logs.take_records_of(ring);
    count(unwritten - lane_heads{chunk}.beyond(chunk.committed()));
    if (error == 0) context.set_aside.drop_oldest(p);
  }
  if (error == 0) error = drain_ring(ring, heads, fill, logs);
  count(complete - heads.beyond(ring.committed()));
  return error;
}

/// Drains one thread. Returns 0 or errno; records that could not be written stay in the backlog and
/// in the ring. The caller holds p.guard.
/// @param heads  positions in the ring up to which records are written. Must have been read before
/// context.clock was constructed, so that the clock covers these records.
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

/// The numbers of records that the last drain of a thread could not write to its logs.
struct unwritten_records {
  std::uint64_t recoverable = 0;  ///< records that are still in the ring file
  std::uint64_t lost = 0;
};

/// Gives threads rings, and drains the rings. Call open() under the session's control lock, and
/// functions with a producer as argument under that producer's guard.
class LOTUS_DETAIL_PER_MODULE storage {
 public:
  storage(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  /// Opens the run's files. Returns 0 or errno; reports an error only once per run.
  LOTUS_DETAIL_COLD int open(const options& chosen) noexcept {
    if (const int error = files_.open(chosen); error != 0) return error;
    compact_ = files_.logs_folder().compact;
    backlog_.begin(chosen.backlog_bytes);
    retention_.begin(chosen);
    const log_folder folder = files_.logs_folder();
    retention_.begin_after_parts(folder.directory, folder.prefix, folder.owners);
    own_logs_.store(0, std::memory_order_relaxed);
    disk_full_ns_.store(0, std::memory_order_relaxed);
    ring_records_ = min_ring_records;
    small_rings_ = chosen.when_full == full_ring::drain;
    while (ring_records_ < chosen.ring_records && ring_records_ < (1U << 24)) ring_records_ *= 2;
    files_.make_ring_file(retention_.any());
    return 0;
  }

  // --- A thread's ring.

  /// Gives a thread a new ring in this run. Returns false if there is no memory.
  LOTUS_DETAIL_COLD bool attach(producer& p) noexcept {
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.make_due_ring_file();
    files_.recover_thread(tid);
    if (p.ring != nullptr) ring_file::unmap(p.ring);
    use_no_ring(p);
    ring_block* const ring = files_.add_ring(tid, ring_records_, small_rings_, p.ring_in_file);
    if (ring == nullptr) return false;
    commit_point begin{};
    begin.loader = p.loader;
    ring->commit(begin);
    use_ring(p, *ring);
    p.attached = true;
    p.ring_file_deleted = false;
    own_logs_.fetch_add(1, std::memory_order_relaxed);
    p.longest_wait_ticks.store(0, std::memory_order_relaxed);
    return true;
  }

  /// Replaces the empty ring of a thread that started while the disk was full, if the ring file can
  /// grow again. Only that thread may call this function. Returns whether the ring was replaced.
  bool replace_small_ring(producer& p) noexcept {
    if (LOTUS_DETAIL_LIKELY(p.ring_in_file && p.ring->capacity == ring_records_)) return false;
    if (is_disk_full()) return false;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    ring_block* const ring = files_.add_whole_ring(tid, ring_records_);
    if (ring == nullptr) return false;
    commit_point c = p.ring->committed();
    for (std::uint64_t& tail : c.tail) tail = 0;
    ring->commit(c);
    ring->waiting_since = p.ring->waiting_since.load();
    forget_records_in_memory(*p.ring);  // from now on, the new ring counts them
    ring_file::unmap(p.ring);
    use_ring(p, *ring);
    p.ring_in_file = true;
    return true;
  }

  /// Returns whether the calling thread may reuse a dead thread's ring. If the two threads share
  /// logs, readers would treat a span of one thread inside a span of the other as nested. The
  /// calling thread may have begun a span before its first call of the session. So the ring may be
  /// reused only if all spans of the dead thread ended before the calling thread started.
  bool may_reuse_ring(const producer& p, thread_start& started) noexcept {
    if (!p.attached || !shares_logs()) return true;
    const std::uint64_t head = p.ring->published[0].load(std::memory_order_relaxed);
    if (head == 0) return true;
    const record& last = p.ring->slot(0, head - 1);
    const std::uint64_t ended = kind_of(last.tag).lasts() ? last.end_ticks : last.begin_ticks;
    return started.is_after(ended, clock_);
  }

  /// Prepares the ring of a drained producer for another thread, whose id is in p.tid.
  LOTUS_DETAIL_COLD void prepare_for_next_thread(producer& p) noexcept {
    const bool share = p.attached && shares_logs();
    if (!share) kept_logs_.close(p);
    if (!p.attached) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    files_.recover_thread(tid);
    // If the size or age of logs is limited, the dead thread's logs become parts, so that they can
    // be deleted. This must happen while the ring still has that thread's id, which is in the
    // names.
    if (share && !p.shares_logs && retention_.any()) retention_.roll(files_.logs_folder(), p);
    p.ring->tid.store(tid, std::memory_order_relaxed);
    commit_point c = p.ring->committed();
    c.loader = p.loader;
    if (share && p.shares_logs) return p.ring->commit(c);
    p.shares_logs = share;
    if (share) {
      kept_logs_.close(p);
    } else {
      own_logs_.fetch_add(1, std::memory_order_relaxed);
    }
    files_.add_thread(tid);
    const std::uint32_t number = share ? files_.new_log_number(tid) : 0;
    for (log_position& log : c.logs) log = {0, 0, false, number, 0};
    p.ring->commit(c);
  }

  /// Ends the use of a thread's ring and discards records that are not in the logs. The ring stays
  /// mapped until the next attach(), because its thread may be storing a record now.
  /// @return how many of the discarded records were not in a ring file either, and so are lost.
  std::uint64_t detach(producer& p) noexcept {
    const bool survives = p.ring == nullptr || p.ring_in_file;
    std::uint64_t lost = survives ? 0 : lane_heads{*p.ring}.beyond(p.ring->committed());
    while (p.backlog_first != nullptr) lost += backlog_.drop_oldest(p);
    kept_logs_.close(p);
    p.attached = p.shares_logs = false;
    return lost;
  }

  // --- Writing records to logs.

  /// Writes to the logs of p's thread all records that the thread has completely stored in its
  /// ring. Returns 0 or errno; records that could not be written stay in the ring or in memory.
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
    note_full_disk(error);
    const int not_rolled = error == 0 ? retention_.after_drain(folder, p) : 0;
    if (not_rolled != 0) files_.reports().limits_fail(files_.location(), not_rolled);
    if (retention_.overdue()) keep_limits();
    buffers_.give_back(buffer);
    kept_logs_.keep_or_close(p);
    files_.reports().disk(files_.location(), error, logs.name());
    return error;
  }

  /// Whether the last drain found the disk full, less than retry_ns ago. Callers then do not drain
  /// again yet, because a failing drain takes about 20 us.
  bool is_disk_full() const noexcept {
    constexpr std::int64_t retry_ns = 10'000'000;
    const std::int64_t failed_ns = disk_full_ns_.load(std::memory_order_relaxed);
    return failed_ns != 0 && clock_ns(CLOCK_MONOTONIC) < failed_ns + retry_ns;
  }

  /// Moves the records of a ring to memory, because they cannot be written to the logs. Returns
  /// false if the memory limit is reached.
  bool set_aside(producer& p) noexcept { return backlog_.set_aside(p); }
  /// Drops the oldest records of a thread that are in memory: one chunk. Returns their number.
  std::uint64_t drop_oldest(producer& p) noexcept { return backlog_.drop_oldest(p); }

  /// Copies records that are only in memory to the ring file, as long as the file can grow, and
  /// discards the rest. Called when the last drain of `p` has failed.
  LOTUS_DETAIL_COLD unwritten_records leave(producer& p) noexcept {
    unwritten_records sum;
    while (p.backlog_first != nullptr) {
      leave(p.backlog_first->ring, sum);
      backlog_.drop_oldest(p);
    }
    forget_records_in_memory(*p.ring);  // otherwise, recovery would count them too
    if (p.ring_in_file) {
      sum.recoverable += lane_heads{*p.ring}.beyond(p.ring->committed());
    } else {
      leave(*p.ring, sum);
    }
    return sum;
  }

  /// Deletes the oldest logs of the run if its logs exceed the limits of size or age that the
  /// program has chosen.
  LOTUS_DETAIL_COLD void keep_limits() noexcept {
    deleted_logs forgotten;
    if (!retention_.any() || !retention_.keep(files_.logs_folder(), forgotten)) return;
    if (forgotten.error != 0) files_.reports().limits_fail(files_.location(), forgotten.error);
    files_.add_deleted(forgotten);
  }

  log_retention& retention() noexcept { return retention_; }

  // --- Functions for a forked child. The rings and their records belong to its parent.

  LOTUS_DETAIL_COLD void after_fork_in_child(producer& p) noexcept {
    // The process may have been forked by a signal handler that had interrupted the storing of a
    // record. Then the interrupted code continues in the child after the handler and writes to the
    // ring, so the ring's address must stay mapped.
    const bool in_use = p.storing.load(std::memory_order_relaxed) != 0;
    if (p.ring != nullptr) in_use ? ring_file::replace(p.ring) : ring_file::unmap(p.ring);
    use_no_ring(p);
    detach(p);
  }
  void after_fork_in_child() noexcept { retention_.after_fork_in_child(); }

  mutex& buffers_fork_lock() noexcept { return buffers_.fork_lock(); }

 private:
  static void forget_records_in_memory(ring_block& ring) noexcept {
    commit_point c = ring.committed();
    c.in_memory = 0;
    ring.commit(c);
  }

  /// `slots` stays, because interrupted code may still store a record there; see
  /// after_fork_in_child().
  static void use_no_ring(producer& p) noexcept {
    p.ring = nullptr;
    p.published = &p.none_published;
    gate_of(p).waiting_since = nullptr;
  }

  static void use_ring(producer& p, ring_block& ring) noexcept {
    p.ring = &ring;
    p.slots = ring.slots();
    p.mask = ring.capacity - 1;
    p.published = &ring.published[0];
    gate_of(p).waiting_since = &ring.waiting_since;
  }

  /// Whether a thread that reuses a dead thread's ring shares its logs with other threads that
  /// reuse this ring. If the size and age of logs are not limited, the first threads get logs of
  /// their own. Later threads share logs, because many short-lived threads would otherwise create
  /// many tiny files.
  bool shares_logs() const noexcept {
    constexpr std::uint32_t max_own_logs = 64;
    return retention_.any() || own_logs_.load(std::memory_order_relaxed) >= max_own_logs;
  }

  void note_full_disk(int error) noexcept {
    const bool full = error == ENOSPC || error == EDQUOT;
    if (full || disk_full_ns_.load(std::memory_order_relaxed) != 0) {
      disk_full_ns_.store(full ? clock_ns(CLOCK_MONOTONIC) : 0, std::memory_order_relaxed);
    }
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
  /// Whether threads may get small rings. If full rings drop records, these would drop too many.
  bool small_rings_ = true;
  /// Time of CLOCK_MONOTONIC, in ns, at which the last drain found the disk full; 0 if the last
  /// drain did not.
  std::atomic<std::int64_t> disk_full_ns_{0};
  std::atomic<std::uint32_t> own_logs_{0};  ///< number of threads so far that got logs of their own
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

/// Gives threads rings, makes room in full rings, and assigns threads to loaders. The functions
/// that the owning thread calls block signals and lock the producer's guard themselves; the caller
/// of the other functions holds the guard. All functions are thread-safe.
class LOTUS_DETAIL_PER_MODULE slow_path {
 public:
  slow_path(const recording_state& state, storage& rings, aggregate_store& aggregates,
            cpu_clock& cpu, background_thread& drains) noexcept
      : state_{state}, rings_{rings}, aggregates_{aggregates}, cpu_{cpu}, drains_{drains} {}

  // --- Functions that the owning thread calls.

  void push(producer& p, const record& r) noexcept {
    if (this_thread_forks) return drop(p);
    // If full rings drop records, open_lanes() first sets the limit to half of the ring. So a limit
    // other than 0 means here that the ring is at least half full.
    if (gate_of(p).limit.load(std::memory_order_relaxed) != 0 && state_.drops_when_full()) {
      if (!push_or_drop(p, r)) drop(p);
      return;
    }
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (!state_.is_on()) return;
    if (!p.attached && !attach(p)) return drop(p);
    const bool full = p.ring->full();
    const bool moves = std::exchange(p.ring_file_deleted, false);
    if ((full || moves) && !make_room(p) && full) return drop(p);
    p.ring->append(r);
    if (state_.writes_through()) drain(p);
  }

  /// Stores a record of a signal handler that interrupted this thread while it was storing another
  /// record. If a second handler interrupts the first one here, or if there is no room, the record
  /// is dropped and counted, which is reported once.
  void push_nested(producer& p, const record& r) noexcept {
    // interrupt_limit is 0 while recording is off, and as long as the thread has no ring.
    if (gate_of(p).interrupt_limit.load(std::memory_order_acquire) == 0) {
      if (state_.is_on()) drop(p);
      return;
    }
    const std::uintptr_t place = p.storing_nested.load(std::memory_order_relaxed);
    if (place != 0 && is_interrupted(place)) return drop_nested(p);
    p.storing_nested.store(stack_pointer(), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ring_block& ring = *p.ring;
    const std::uint64_t at = ring.published[1].load(std::memory_order_relaxed);
    const bool room = at < gate_of(p).interrupt_limit.load(std::memory_order_acquire);
    if (room) {
      ring.slot(1, at) = r;
      ring.published[1].store(at + 1, std::memory_order_release);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    p.storing_nested.store(0, std::memory_order_relaxed);
    if (!room) drop_nested(p);
  }

  /// Adds an aggregated call after allocating memory for it. Returns false if the call is lost
  /// because there is no memory.
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

  /// Gives the thread a ring if recording is on and the thread has none.
  void get_ring(producer& p) noexcept {
    if (this_thread_forks || interrupts_storing(p)) return;
    const signals_blocked quiet;
    const locked guard{p.guard};
    if (state_.is_on() && !p.attached) attach(p);
  }

  /// Assigns the thread's later records to a loader. Returns the thread's previous loader.
  std::uint32_t enter_loader(producer& p, std::uint32_t loader) noexcept {
    if (p.loader == loader || interrupts_storing(p)) return p.loader;
    const signals_blocked quiet;
    const locked guard{p.guard};
    const std::uint32_t before = p.loader;
    // Without a ring, no loader record is needed: a ring that is attached later begins with
    // p.loader.
    if (p.attached && state_.is_on()) {
      // This record is not dropped even if full rings drop records, because without it all later
      // records would be assigned to the wrong loader.
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

  /// Returns how long the thread was off the CPU; the caller records this time. If full rings drop
  /// records, records of kind off_cpu are dropped first: they may not use the last quarter of a
  /// ring.
  off_cpu_time read_cpu(producer& p, cpu_watch& watch, const off_cpu_window& in) noexcept {
    const off_cpu_time found = cpu_.read(p.cpu, watch, in);
    if (found.off_ns == 0 || !state_.drops_when_full() || !p.attached) return found;
    if (p.ring->used() < std::uint64_t{p.ring->capacity} * 3 / 4) return found;
    drop(p);
    return {};
  }

  // --- Functions whose caller holds the producer's guard.

  int drain(producer& p) noexcept {
    const int error = rings_.drain(p);
    open_lanes(p);
    return error;
  }

  /// Lets the owning thread store records, without calling the session, until the ring is full; if
  /// full rings drop records, until the ring is half full.
  void open_lanes(producer& p) const noexcept {
    const commit_point& c = p.ring->committed();
    const bool on = state_.is_on();
    const bool open = on && !state_.writes_through() && !p.ring_file_deleted;
    gate_of(p).interrupt_limit.store(on ? c.tail[1] + interrupt_lane_records : 0,
                                     std::memory_order_release);
    const std::uint64_t room = p.ring->capacity;
    gate_of(p).last_limit.store(c.tail[0] + room, std::memory_order_release);
    gate_of(p).limit.store(!open ? 0 : c.tail[0] + (state_.drops_when_full() ? room / 2 : room),
                           std::memory_order_release);
  }

  /// Makes the owning thread take the slow path for its next record.
  static void close_lanes(producer& p) noexcept {
    gate_of(p).limit.store(0, std::memory_order_relaxed);
    gate_of(p).interrupt_limit.store(0, std::memory_order_relaxed);
  }

 private:
  static void drop(producer& p) noexcept { p.dropped.fetch_add(1, std::memory_order_relaxed); }
  LOTUS_DETAIL_COLD void drop_nested(producer& p) noexcept {
    drop(p);
    if (said_nested_.exchange(true)) return;
    say("records of signal handlers are dropped, because too many interrupted the storing of a "
        "record, or one left it by siglongjmp and the stack does not show that");
  }
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

  bool make_room(producer& p) noexcept {
    if (!empty_ring(p)) return false;
    if (rings_.replace_small_ring(p)) open_lanes(p);
    return true;
  }

  /// Writes the records of a full ring to the logs, or moves them to the backlog if they cannot be
  /// written. With the option full_ring::drop, the thread must not wait for the disk: always moves
  /// the records to the backlog. If the memory limit is reached then, drops the oldest records in
  /// the backlog.
  bool empty_ring(producer& p) noexcept {
    if (!state_.drops_when_full()) {
      if (rings_.is_disk_full()) return set_aside(p);
      p.drained_itself.store(true, std::memory_order_relaxed);
      return drain(p) == 0 || set_aside(p);
    }
    while (!set_aside(p)) {
      if (p.backlog_first == nullptr) return false;
      p.dropped.fetch_add(rings_.drop_oldest(p), std::memory_order_relaxed);
    }
    return true;
  }

  /// Stores a record without ever waiting for the disk. If the ring is half full, wakes the drain
  /// thread. If the ring is full, moves its records to the backlog, and drops the oldest ones
  /// there if the memory limit is reached. Returns false if the record was not stored, for example
  /// because the drain thread is writing the ring's records.
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
  background_thread& drains_;
  std::atomic<bool> said_nested_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SLOW_PATH_HPP

// Records at random times what the threads of a recording wait for.
//
// The wait sampler has a thread of its own, because samples show how threads spend their time only
// if they are taken at random times. The drain thread works at regular times and may wait for the
// disk.
#ifndef LOTUS_WAITS_STORE_WAIT_SAMPLER_HPP
#define LOTUS_WAITS_STORE_WAIT_SAMPLER_HPP

// Provides random, exponentially distributed pauses between samples.
#ifndef LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP
#define LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Random numbers by xorshift64* (Vigna, An experimental exploration of Marsaglia's xorshift
/// generators, 2016). Not thread-safe.
class random_bits {
 public:
  void seed(std::uint64_t from) noexcept { state_ = from | 1; }
  std::uint64_t next() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// Returns a random number from 0 to limit - 1; `limit` must not be 0.
  std::uint32_t below(std::uint32_t limit) noexcept {
    return static_cast<std::uint32_t>((next() >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_ = 1;
};

/// Returns an exponentially distributed pause in ns. With such pauses, the share of samples that
/// find a thread in a state is the share of time that the thread spends in that state, even if the
/// thread works periodically (Wolff, Poisson arrivals see time averages, 1982). Computed without
/// libm, which the program may not link.
inline std::uint64_t exponential_ns(std::uint64_t mean_ns, random_bits& bits) noexcept {
  // The pause is -mean * ln u, for a random u with 0 < u < 1. Let u = m * 2^-k with 1 <= m < 2.
  // Then -ln u = k ln 2 - ln m.
  const std::uint64_t u = bits.next() | 1;
  const int k = __builtin_clzll(u) + 1;
  const double x =
      static_cast<double>((u << (k - 1)) & INT64_MAX) / 9223372036854775808.0;  // x = m - 1
  // ln(1 + x), exact to 1e-5: Abramowitz and Stegun, Handbook of Mathematical Functions, 4.1.43.
  const double ln_m =
      x * (0.99949556 + x * (-0.49190896 + x * (0.28947478 + x * (-0.13606275 + x * 0.03215845))));
  const double pause = static_cast<double>(mean_ns) * (k * 0.69314718 - ln_m);
  return pause > 1 ? static_cast<std::uint64_t>(pause) : 1;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_EXPONENTIAL_PAUSE_HPP

// Copies the stack of a waiting thread, and keeps only the addresses in it.
//
// lotus-tool finds the calls in such a copy with the unwind tables of the program's files, so the
// library needs no unwinder. Return addresses and pointers into the stack itself are all that an
// unwinder reads. All other words are set to 0 in memory, because a stack also contains the
// program's data, such as passwords and texts, which must not get into a file. So a file of stacks
// may stay in the run's directory, and in snapshots and copies of the run. The file's mode is 0600
// nevertheless, because addresses help an attacker of the running process.
#ifndef LOTUS_WAITS_STACK_WORDS_HPP
#define LOTUS_WAITS_STACK_WORDS_HPP

// Lists where this process has mapped code from files.
#ifndef LOTUS_WAITS_CODE_RANGES_HPP
#define LOTUS_WAITS_CODE_RANGES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns a hash of several numbers: `hash`, which is the hash of all numbers but the last,
/// combined with the last one, `number`.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t number) noexcept {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15ULL;
  return hash ^ hash >> 32;
}

inline std::uint64_t hash_with(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = hash_with(hash, static_cast<unsigned char>(c));
  return hash;
}

/// A part of a file that this process has mapped as code.
struct code_part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t file_begin = 0;  ///< address at which the beginning of the file is mapped
  std::string_view path;
};

/// Calls a function for every part of a file that is mapped as code, sorted by address.
LOTUS_DETAIL_COLD inline void for_each_code(function_ref<void(const code_part&)> each) noexcept {
  std::uint64_t path_before = 0;
  std::uint64_t file_begin = 0;
  for_each_mapping([&](std::string_view line) {
    char head[96] = {};
    std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
    unsigned long long begin = 0;
    unsigned long long end = 0;
    unsigned long long offset = 0;
    char rights[5] = "";
    // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
    if (std::sscanf(head, "%llx-%llx %4s %llx", &begin, &end, rights, &offset) != 4) return false;
    const std::string_view path = mapped_path(line);
    if (path.empty()) return false;
    const std::uint64_t hash = hash_with(0, path);
    if (hash != path_before || offset == 0) {
      path_before = hash;
      file_begin = begin - offset;
    }
    if (rights[2] == 'x') each({begin, end, offset, file_begin, path});
    return false;
  });
}

/// The addresses at which this process has mapped code from files. Not thread-safe. Trivially
/// destructible.
class code_ranges {
 public:
  /// Reads where code is mapped now. Returns whether these places differ from those that the
  /// previous call found.
  bool read() noexcept {
    count_ = 0;
    std::uint64_t hash = 0;
    for_each_code([&](const code_part& part) {
      hash = hash_with(hash_with(hash_with(hash, part.begin), part.end), part.file_offset);
      hash = hash_with(hash, part.path);
      if (count_ > 0 && ranges_[count_ - 1].end == part.begin) {
        ranges_[count_ - 1].end = part.end;
      } else if (count_ < capacity) {
        ranges_[count_++] = {part.begin, part.end};
      }
    });
    const bool changed = hash != hash_;
    hash_ = hash;
    return changed;
  }

  bool contains(std::uint64_t address) const noexcept {
    // Most words of a stack are numbers below or above the addresses of all code, for which no
    // search is needed.
    if (count_ == 0 || address < ranges_[0].begin || address >= ranges_[count_ - 1].end) {
      return false;
    }
    std::size_t first = 0;
    std::size_t last = count_;
    while (first < last) {
      const std::size_t middle = first + (last - first) / 2;
      if (address < ranges_[middle].begin) {
        last = middle;
      } else if (address >= ranges_[middle].end) {
        first = middle + 1;
      } else {
        return true;
      }
    }
    return false;
  }

 private:
  /// Maximum number of ranges. Code in further ranges is ignored, so a recorded stack ends at the
  /// first call from such code.
  static constexpr std::size_t capacity = 1024;

  struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  range ranges_[capacity] = {};
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_CODE_RANGES_HPP

// Lists the system calls in which threads usually wait, and what each call waits for, such as a
// file or a socket.
#ifndef LOTUS_WAITS_SYSTEM_CALLS_HPP
#define LOTUS_WAITS_SYSTEM_CALLS_HPP

// Defines the reasons for which threads wait, and the format of the file in which waits are
// recorded.
#ifndef LOTUS_WAITS_WAIT_REASONS_HPP
#define LOTUS_WAITS_WAIT_REASONS_HPP

// A file of waits (folder/hidden_files.hpp), which lotus-tool reads, has one line for each sample
// of a waiting thread. An object's line precedes the first sample that contains its id:
//   object,<id>,<text>                      a path, "pipe:[4711]", a peer's address, a call's name
//   variable,<id>,<address>,<base>,<path>   a variable at <address> in the module at <path>, whose
//                                           file is mapped from <base> on; both hexadecimal
//   build,<id>,<build id>                   the build id of the file of the line "variable" before
//   named,<address>,<name>                  the name of the variable; `lotus-tool run` adds it at
//   the
//                                           program's end
//   look,<ns since 1970>,<tid>,<reason>,<object's id, or 0>,<address, or 0>,<holder's tid, or
//                                           0>,<ns of thread time that this sample stands for>
// An id is valid until another line defines it again. Texts contain no control characters.

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class wait_reason : std::uint8_t {
  lock,       ///< a mutex or similar, or the lock of a file
  condition,  ///< a condition variable, a semaphore, an atomic variable, or a thread's end
  file,
  pipe,
  socket,
  poll,  ///< one or more descriptors, in poll, select or epoll
  sleep,
  process,     ///< the end of a child process
  page_fault,  ///< a page of memory that is read from the disk
  other,
};

/// The words for the enumerators of wait_reason in files of waits and in JSON.
inline constexpr const char* wait_reason_words[] = {"lock",       "condition", "file",  "pipe",
                                                    "socket",     "poll",      "sleep", "process",
                                                    "page-fault", "other"};
inline constexpr std::size_t wait_reasons =
    sizeof(wait_reason_words) / sizeof(wait_reason_words[0]);
static_assert(static_cast<std::size_t>(wait_reason::other) + 1 == wait_reasons,
              "a word for each reason, in the same order");

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_REASONS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The system call in which a thread is, read from a line of /proc/PID/task/TID/syscall.
struct entered_call {
  static constexpr long none = -1;  ///< the thread is off the CPU, but in no system call

  long number = none;
  std::uint64_t arguments[6] = {};
  std::uint64_t sp = 0;  ///< the thread's stack pointer; 0: unknown
  std::uint64_t pc = 0;  ///< the thread's program counter; 0: unknown

  /// Parses a line of /proc/PID/task/TID/syscall. Returns false if the thread was running, or if
  /// the line has another format.
  bool parse(const char* line) noexcept {
    char* end = nullptr;
    number = strtol(line, &end, 10);
    if (end == line) return false;  // the line is "running"
    const auto take = [&end](std::uint64_t& value) {
      const char* const begin = end;
      value = strtoull(begin, &end, 16);
      return end != begin;
    };
    if (number != none) {
      for (std::uint64_t& argument : arguments) {
        if (!take(argument)) return false;
      }
    }
    if (!take(sp) || !take(pc)) sp = pc = 0;
    return true;
  }
};

/// A system call, and what it waits for.
struct call_row {
  long number;
  wait_reason reason;
  bool of_descriptor;  ///< whether the first argument is the descriptor for which the call waits
  const char* name;
};

#define LOTUS_DETAIL_CALL(name, reason, of_descriptor) \
  {SYS_##name, wait_reason::reason, of_descriptor, #name},
/// The system calls in which threads usually wait; any other call has the reason `other`. If an
/// argument of a call is a descriptor, describe_wait() changes the reason to the one for the
/// descriptor's kind of file, such as a pipe.
inline constexpr call_row call_table[] = {
    // clang-format off
    LOTUS_DETAIL_CALL(read, file, true)
    LOTUS_DETAIL_CALL(pread64, file, true)
    LOTUS_DETAIL_CALL(readv, file, true)
    LOTUS_DETAIL_CALL(preadv, file, true)
    LOTUS_DETAIL_CALL(preadv2, file, true)
    LOTUS_DETAIL_CALL(write, file, true)
    LOTUS_DETAIL_CALL(pwrite64, file, true)
    LOTUS_DETAIL_CALL(writev, file, true)
    LOTUS_DETAIL_CALL(pwritev, file, true)
    LOTUS_DETAIL_CALL(pwritev2, file, true)
    LOTUS_DETAIL_CALL(sendfile, file, true)
    LOTUS_DETAIL_CALL(splice, file, true)
    LOTUS_DETAIL_CALL(copy_file_range, file, true)
    LOTUS_DETAIL_CALL(fsync, file, true)
    LOTUS_DETAIL_CALL(fdatasync, file, true)
    LOTUS_DETAIL_CALL(sync_file_range, file, true)
    LOTUS_DETAIL_CALL(fallocate, file, true)
    LOTUS_DETAIL_CALL(ftruncate, file, true)
    LOTUS_DETAIL_CALL(flock, lock, true)
    LOTUS_DETAIL_CALL(fcntl, lock, true)
    LOTUS_DETAIL_CALL(fstat, file, true)
    LOTUS_DETAIL_CALL(getdents64, file, true)
    LOTUS_DETAIL_CALL(readahead, file, true)
    LOTUS_DETAIL_CALL(close, file, true)
    LOTUS_DETAIL_CALL(openat, file, false)
    LOTUS_DETAIL_CALL(newfstatat, file, false)
    LOTUS_DETAIL_CALL(statx, file, false)
    LOTUS_DETAIL_CALL(faccessat, file, false)
    LOTUS_DETAIL_CALL(readlinkat, file, false)
    LOTUS_DETAIL_CALL(unlinkat, file, false)
    LOTUS_DETAIL_CALL(mkdirat, file, false)
    LOTUS_DETAIL_CALL(sync, file, false)
    LOTUS_DETAIL_CALL(recvfrom, socket, true)
    LOTUS_DETAIL_CALL(recvmsg, socket, true)
    LOTUS_DETAIL_CALL(recvmmsg, socket, true)
    LOTUS_DETAIL_CALL(sendto, socket, true)
    LOTUS_DETAIL_CALL(sendmsg, socket, true)
    LOTUS_DETAIL_CALL(sendmmsg, socket, true)
    LOTUS_DETAIL_CALL(accept, socket, true)
    LOTUS_DETAIL_CALL(accept4, socket, true)
    LOTUS_DETAIL_CALL(connect, socket, true)
    LOTUS_DETAIL_CALL(ppoll, poll, false)
    LOTUS_DETAIL_CALL(pselect6, poll, false)
    LOTUS_DETAIL_CALL(epoll_pwait, poll, false)
    LOTUS_DETAIL_CALL(nanosleep, sleep, false)
    LOTUS_DETAIL_CALL(clock_nanosleep, sleep, false)
    LOTUS_DETAIL_CALL(wait4, process, false)
    LOTUS_DETAIL_CALL(waitid, process, false)
    LOTUS_DETAIL_CALL(ioctl, other, true)
    LOTUS_DETAIL_CALL(rt_sigtimedwait, other, false)
    LOTUS_DETAIL_CALL(rt_sigsuspend, other, false)
    LOTUS_DETAIL_CALL(mmap, other, false)
    LOTUS_DETAIL_CALL(munmap, other, false)
    LOTUS_DETAIL_CALL(mprotect, other, false)
    LOTUS_DETAIL_CALL(madvise, other, false)
    LOTUS_DETAIL_CALL(mremap, other, false)
    LOTUS_DETAIL_CALL(msync, other, false)
    LOTUS_DETAIL_CALL(brk, other, false)
    LOTUS_DETAIL_CALL(clone, other, false)
    LOTUS_DETAIL_CALL(execve, other, false)
    LOTUS_DETAIL_CALL(msgrcv, other, false)
    LOTUS_DETAIL_CALL(semop, other, false)
    LOTUS_DETAIL_CALL(semtimedop, other, false)
    LOTUS_DETAIL_CALL(mq_timedreceive, other, false)
    LOTUS_DETAIL_CALL(io_getevents, other, false)
#if defined(SYS_clone3)
    LOTUS_DETAIL_CALL(clone3, other, false)
#endif
#if defined(SYS_io_uring_enter)
    LOTUS_DETAIL_CALL(io_uring_enter, other, false)
#endif
#if defined(SYS_epoll_pwait2)
    LOTUS_DETAIL_CALL(epoll_pwait2, poll, false)
#endif
#if defined(__x86_64__)  // aarch64 does not have these older calls
    LOTUS_DETAIL_CALL(open, file, false)
    LOTUS_DETAIL_CALL(stat, file, false)
    LOTUS_DETAIL_CALL(lstat, file, false)
    LOTUS_DETAIL_CALL(access, file, false)
    LOTUS_DETAIL_CALL(getdents, file, true)
    LOTUS_DETAIL_CALL(poll, poll, false)
    LOTUS_DETAIL_CALL(select, poll, false)
    LOTUS_DETAIL_CALL(epoll_wait, poll, false)
    LOTUS_DETAIL_CALL(pause, other, false)
    LOTUS_DETAIL_CALL(fork, other, false)
    LOTUS_DETAIL_CALL(vfork, other, false)
#endif
    // clang-format on
};
#undef LOTUS_DETAIL_CALL

/// Returns the row of a system call; null if the call is not in the table.
inline const call_row* row_of_call(long number) noexcept {
  for (const call_row& row : call_table) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_SYSTEM_CALLS_HPP

// A file of stacks (folder/hidden_files.hpp), which lotus-tool reads, has these lines. All numbers
// are hexadecimal, except <ns>, <tid> and <since>:
//   maps,                                   the following lines "code" replace all earlier ones
//   code,<begin>,<end>,<offset>,<first>,<path>   code of the file at <path>, from <offset> on, is
//                                           mapped from <begin> to <end>; the file's first byte
//                                           would be at <first>
//   build,<build id>                        the build id of the file of the line "code" before
//   stack,<id>,<pc>,<sp>,<bytes>,<words>    the stack of a thread from <sp> on, of which <bytes>
//                                           bytes were copied
//   seen,<ns since the epoch>,<tid>,<id>    the stack of the sample with this time and thread in
//                                           the file of waits
//   held,<ns since the epoch>,<tid>,<id, or 0>   the stack of the thread that holds the lock for
//                                           which the thread of this sample waits; 0: the holder
//                                           was running
//   moment,<ns since the epoch>             a snapshot is taken; the lines "state" that follow show
//                                           what each thread does at this time
//   state,<tid>,<reason>,<address>,<holder's tid>,<id, or 0>,<since>,<name>,<object>   reason,
//                                           address, holder and object as in a file of waits, or
//                                           the reason "running"; the time in ns since the epoch
//                                           since when the thread waits for a batch, or 0; and the
//                                           thread's name
// At the end, `lotus-tool run` adds the calls of each stack: a line "names," and the lines
// "module", "place", "text" and "frame" as in its files of threads, and then:
//   calls,<id>,<place>;<place>...           the calls of the stack, the innermost first
// <words> are the words of the stack that are addresses, each after a blank: "<n>:<address>", the
// address of code that is at <sp> + 8 <n>, or "<n>+<distance>", the address <sp> + <distance>.

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// A copy of the top part of a thread's stack. Not thread-safe. Trivially destructible.
class stack_words {
 public:
  static constexpr std::size_t max_words = 1024;
  /// Space for what put() writes: for each word a blank, its number, a mark and an address.
  static constexpr std::size_t max_text = max_words * (1 + 3 + 1 + 16) + 80;

  /// Copies the stack of a thread of this process that waits in `call`. Reads through the kernel,
  /// because the thread may end meanwhile. The copy is empty if it cannot be made.
  void copy(const entered_call& call) noexcept {
    constexpr std::size_t page = 4096;
    pc_ = call.pc;
    sp_ = call.sp;
    count_ = 0;
    if (sp_ == 0 || sp_ % sizeof(std::uint64_t) != 0) return;
    // The kernel copies each element of `parts` completely or not at all, and the stack may end
    // before `words_` is full. So each page of the stack is an element of its own.
    constexpr std::size_t max_parts = sizeof(words_) / page + 1;
    iovec parts[max_parts] = {};
    std::size_t used = 0;
    for (std::uint64_t at = sp_; at < sp_ + sizeof(words_) && used < max_parts; ++used) {
      const std::uint64_t left = sp_ + sizeof(words_) - at;
      const std::uint64_t in_page = page - at % page;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
      parts[used] = {reinterpret_cast<void*>(at), in_page < left ? in_page : left};
      at += parts[used].iov_len;
    }
    const iovec to{words_, sizeof(words_)};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, parts, used, 0);
    if (got > 0) count_ = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
  }

  bool empty() const noexcept { return count_ == 0; }
  std::uint64_t pc() const noexcept { return pc_; }

  /// Sets all words to 0 that are neither addresses of code nor addresses within the copy. Returns
  /// a hash of the words that remain.
  std::uint64_t keep_addresses(const code_ranges& code) noexcept {
    std::uint64_t hash = hash_with(hash_with(count_, pc_), sp_);
    for (std::size_t i = 0; i < count_; ++i) {
      std::uint64_t& word = words_[i];
#if defined(__aarch64__)
      // A return address may be signed in its upper bits (pointer authentication).
      constexpr std::uint64_t address_bits = (std::uint64_t{1} << 48) - 1;
      if (code.contains(word & address_bits)) word &= address_bits;
#endif
      if (!is_in_copy(word) && !code.contains(word)) {
        word = 0;
      } else {
        hash = hash_with(hash_with(hash, i), word);
      }
    }
    return hash;
  }

  /// Writes the line "stack", at most max_text bytes. Must be called after keep_addresses().
  /// Returns the length of the line.
  std::size_t put(std::uint32_t id, char* text) const noexcept {
    char* to = text;
    for (const char c : {'s', 't', 'a', 'c', 'k', ','}) *to++ = c;
    for (const std::uint64_t number : {std::uint64_t{id}, pc_, sp_, std::uint64_t{bytes()}}) {
      to = put_hexadecimal(number, to);
      *to++ = ',';
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (words_[i] == 0) continue;
      *to++ = ' ';
      to = put_hexadecimal(i, to);
      const bool in_copy = is_in_copy(words_[i]);
      *to++ = in_copy ? '+' : ':';
      to = put_hexadecimal(in_copy ? words_[i] - sp_ : words_[i], to);
    }
    *to++ = '\n';
    return static_cast<std::size_t>(to - text);
  }

 private:
  std::size_t bytes() const noexcept {
    return count_ * sizeof(std::uint64_t);
  }

  /// Whether the word is an address in the copied part of the stack, or the address at which that
  /// part ends.
  bool is_in_copy(std::uint64_t word) const noexcept {
    return word >= sp_ && word - sp_ <= bytes();
  }

  static char* put_hexadecimal(std::uint64_t number, char* to) noexcept {
    int digits = 1;
    while (digits < 16 && number >> (4 * digits) != 0) ++digits;
    while (digits-- > 0) *to++ = "0123456789abcdef"[number >> (4 * digits) & 15U];
    return to;
  }

  std::uint64_t pc_ = 0;
  std::uint64_t sp_ = 0;
  std::size_t count_ = 0;  ///< number of copied words
  std::uint64_t words_[max_words] = {};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_STACK_WORDS_HPP

// Writes the files of waits and of stacks, in which a process records what its threads wait for,
// and in which calls. Each write ends with a complete line, so that the files are readable after a
// kill.
#ifndef LOTUS_WAITS_WAIT_FILE_HPP
#define LOTUS_WAITS_WAIT_FILE_HPP

#include <sys/statvfs.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The directory, name and settings of a file of waits or of stacks.
struct wait_folder {
  const char* start = waits_file_start;  ///< beginning of the file's name
  int directory = -1;  ///< descriptor of the run's directory, borrowed; negative: none
  mode_t mode = 0;     ///< permissions of a new file, before the umask applies
  char info[64] = "";  ///< name of the process's information file; "": none yet
  /// When the file exceeds this size, it replaces the previous file "..._older" and a new file
  /// begins; 0: the file grows without limit.
  std::uint64_t max_bytes = 0;
};

/// A file of waits or of stacks. Lines are passed to the kernel immediately, so they survive a kill
/// of the process. While the disk is nearly full, lines are dropped, because they are only samples,
/// and the logs need the rest of the disk. Not thread-safe. Trivially destructible.
class wait_file {
 public:
  /// Whether the file is open, was not deleted and is not too long, so that lines can be appended
  /// to it. Costs one system call.
  /// @param max_bytes  maximum size of the file; 0: unlimited.
  bool ready(std::uint64_t max_bytes) noexcept {
    return file_.holds(status_) && status_.st_nlink > 0 &&
           (max_bytes == 0 || static_cast<std::uint64_t>(status_.st_size) <= max_bytes);
  }

  /// Opens or creates the file; call this function if ready() is false. Returns false if the file
  /// cannot be opened.
  bool begin(const wait_folder& folder) noexcept {
    if (folder.directory < 0 || *folder.info == '\0') return false;
    if (file_.holds(status_) && status_.st_nlink > 0) make_older(folder);
    file_.close();
    char name[name_bytes];
    put_name(folder, name, "");
    bool made = false;
    const int fd = open_to_append(folder.directory, name, file_owners::of_caller(folder.directory),
                                  folder.mode, status_, made);
    if (fd < 0) return false;
    file_ = owned_descriptor{fd, status_};
    return true;
  }

  /// Appends lines. Must be called directly after ready() or begin(), with signals blocked. Returns
  /// false if nothing was written.
  bool append(const char* lines, std::size_t bytes) noexcept {
    if (is_disk_short(bytes)) return false;
    if (write(file_.number(), lines, bytes) == static_cast<ssize_t>(bytes)) return true;
    // An incompletely written line is removed, because the next line would otherwise continue it.
    if (ftruncate(file_.number(), status_.st_size) != 0) file_.close();
    return false;
  }

  void close() noexcept { file_.close(); }

 private:
  static constexpr std::size_t name_bytes = 96;

  /// Whether the disk is nearly full and appending this number of bytes needs another block of it.
  bool is_disk_short(std::size_t bytes) const noexcept {
    constexpr std::uint64_t block = 4096;
    constexpr std::uint64_t left_for_logs = std::uint64_t{1} << 19;
    const auto size = static_cast<std::uint64_t>(status_.st_size);
    if ((size + bytes + block - 1) / block == (size + block - 1) / block) return false;
    struct statvfs disk {};
    if (fstatvfs(file_.number(), &disk) != 0) return false;
    // For a file system whose size is not limited, the kernel reports a size of 0 blocks.
    return disk.f_blocks != 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < left_for_logs;
  }

  static void put_name(const wait_folder& folder, char (&name)[name_bytes],
                       const char* end) noexcept {
    std::snprintf(name, sizeof(name), "%s%s%s", folder.start,
                  folder.info + sizeof(run_info_start) - 1, end);
  }

  static void make_older(const wait_folder& folder) noexcept {
    char name[name_bytes];
    char older[name_bytes];
    put_name(folder, name, "");
    put_name(folder, older, "_older");
    // NOLINTNEXTLINE(readability-suspicious-call-argument): its parameters are named old and new.
    renameat(folder.directory, name, folder.directory, older);
  }

  owned_descriptor file_;
  struct stat status_ {};  ///< status of the file before the next append
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_FILE_HPP

// Numbers the objects for which threads wait, such as files and locks, so that a file of waits
// needs to describe each object only once.
#ifndef LOTUS_WAITS_WAIT_OBJECTS_HPP
#define LOTUS_WAITS_WAIT_OBJECTS_HPP

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Lines that are collected here and then written to a file together.
template <std::size_t Bytes>
struct text_lines {
  char text[Bytes];
  std::size_t bytes = 0;

  /// Appends a line, or nothing if there is not enough space. Returns whether it was appended.
  template <class... Values>
  bool add(const char* format, Values... values) noexcept {
    const std::size_t room = sizeof(text) - bytes;
    const int n = std::snprintf(text + bytes, room, format, values...);
    if (n <= 0 || static_cast<std::size_t>(n) >= room) return false;
    bytes += static_cast<std::size_t>(n);
    return true;
  }
};

using wait_lines = text_lines<5120>;

/// The objects that the file of waits already describes. Not thread-safe. Trivially destructible.
class wait_objects {
 public:
  /// Returns the number of the object that this text describes. If the object is new, also adds the
  /// line that defines it to `to`.
  std::uint32_t of_text(std::string_view text, wait_lines& to) noexcept {
    if (text.empty()) return 0;
    known& place = find(hash(text));
    if (place.key != 0) return place.id;
    add(place, hash(text));
    to.add("object,%u,%.*s\n", place.id, static_cast<int>(text.size()), text.data());
    return place.id;
  }

  /// Returns the number of the global variable at this address. If the variable is new, also adds
  /// the line that defines it to `to`. Returns 0 if there is no such variable, or if there were too
  /// many lookups, which are slow: at most 16 at once and one more every 2 s.
  std::uint32_t of_variable(std::uint64_t address, wait_lines& to) noexcept {
    known& place = find(address);
    if (place.key != 0) return place.id;
    if (!may_look_up()) return 0;
    char path[4096];
    const std::uint64_t base = module_of(address, path);
    if (base == 0) {
      place = {address, 0};
      ++count_;
      return 0;
    }
    add(place, address);
    to.add("variable,%u,%llx,%llx,%s\n", place.id, static_cast<unsigned long long>(address),
           static_cast<unsigned long long>(base), path);
    const build_id id = mapped_build_id(base);
    if (*id.digits != '\0') {
      to.add("build,%u,%s\n", place.id, static_cast<const char*>(id.digits));
    }
    return place.id;
  }

  /// Forgets all objects, so that each is defined again when it is next used.
  void forget() noexcept {
    // Pages that nothing was written to take no memory.
    if (count_ > 0) std::memset(static_cast<void*>(places_), 0, sizeof(places_));
    count_ = 0;
    lookups_ = {};
  }

  /// Describes in `text` the file of a descriptor: by a path, "pipe:[4711]", or the peer of a
  /// socket. Returns the length; 0 if the descriptor is closed.
  static std::size_t describe(int fd, char* text, std::size_t room) noexcept {
    char link[48];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t got = readlink(link, text, room - 1);
    std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
    text[bytes] = '\0';
    if (std::strncmp(text, "socket:", 7) == 0) {
      const std::size_t peer = describe_peer(fd, text, room);
      if (peer > 0) bytes = peer;
    }
    for (std::size_t i = 0; i < bytes; ++i) {
      if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) text[i] = '?';
    }
    return bytes;
  }

 private:
  static constexpr std::size_t capacity = 1024;
  static constexpr std::uint32_t max_lookups = 16;

  /// Limits lookups of variables.
  struct lookup_limit {
    std::uint32_t used = 0;
    std::int64_t since_ns = 0;  ///< when `used` was last decreased (CLOCK_MONOTONIC)
  };

  struct known {
    std::uint64_t key = 0;  ///< hash of a text, or address; 0: free
    std::uint32_t id = 0;
  };

  static std::uint64_t hash(std::string_view text) noexcept {
    std::uint64_t sum = 14695981039346656037ULL;  // the hash is FNV-1a
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return sum | 1;  // odd, unlike the address of a futex, which is a multiple of 4
  }

  known& find(std::uint64_t key) noexcept {
    if (count_ >= capacity / 2) {
      const lookup_limit lookups = lookups_;
      forget();
      lookups_ = lookups;
    }
    auto at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> 54);
    while (places_[at].key != 0 && places_[at].key != key) at = (at + 1) % capacity;
    return places_[at];
  }

  /// Counts a lookup if the limit allows it. The first lookups of a recording find the locks that
  /// its threads use most, so the limit allows max_lookups of them without a pause.
  bool may_look_up() noexcept {
    constexpr std::int64_t between_ns = 2'000'000'000;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now_ns - lookups_.since_ns >= between_ns) {
      if (lookups_.used > 0 && lookups_.since_ns != 0) --lookups_.used;
      lookups_.since_ns = now_ns;
    }
    if (lookups_.used == max_lookups) return false;
    ++lookups_.used;
    return true;
  }

  void add(known& place, std::uint64_t key) noexcept {
    place = {key, ++last_id_};
    ++count_;
  }

  static std::size_t describe_peer(int fd, char* text, std::size_t room) noexcept {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return 0;
    char name[INET6_ADDRSTRLEN] = "";
    int port = 0;
    if (peer.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
      inet_ntop(AF_INET, &v4.sin_addr, name, sizeof(name));
      port = ntohs(v4.sin_port);
    } else if (peer.ss_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
      inet_ntop(AF_INET6, &v6.sin6_addr, name, sizeof(name));
      port = ntohs(v6.sin6_port);
    } else {
      return 0;
    }
    const int n = std::snprintf(text, room, "%s port %d", name, port);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  /// Finds the program or shared object that has a variable at this address, and writes its path to
  /// `path`. Returns the address at which the file is mapped; 0 if no such file is found.
  static std::uint64_t module_of(std::uint64_t address, char (&path)[4096]) noexcept {
    std::uint64_t base = 0;
    std::uint64_t last_end = 0;
    bool found = false;
    bool has_code = false;  // whether a part of the file at `path` is mapped as code
    path[0] = '\0';
    for_each_mapping([&](std::string_view line) {
      char head[64] = {};
      std::memcpy(head, line.data(), line.size() < sizeof(head) ? line.size() : sizeof(head) - 1);
      unsigned long long begin = 0;
      unsigned long long end = 0;
      char permissions[5] = "";
      // NOLINTNEXTLINE(cert-err34-c): the kernel's own text
      if (std::sscanf(head, "%llx-%llx %4s", &begin, &end, permissions) != 3) return false;
      const std::string_view of = mapped_path(line);
      if (!of.empty() && of != path && of.size() < sizeof(path)) {
        std::memcpy(path, of.data(), of.size());
        path[of.size()] = '\0';
        base = begin;
        has_code = false;
      } else if (of.empty() && (begin != last_end || line.find('[') != std::string_view::npos)) {
        // Variables without an initial value are in memory without a file, directly after the
        // mappings of the file. Any other memory without a file belongs to no module.
        base = 0;
        path[0] = '\0';
      }
      has_code = has_code || permissions[2] == 'x';
      last_end = end;
      found = address >= begin && address < end;
      return found;
    });
    // Mapped files without code, such as a ring file, have no variables.
    return found && has_code ? base : 0;
  }

  known places_[capacity] = {};
  std::size_t count_ = 0;
  std::uint32_t last_id_ = 0;
  lookup_limit lookups_{};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_OBJECTS_HPP

// Determines whether a thread of this process waits at this moment, and for what.
#ifndef LOTUS_WAITS_WAIT_SAMPLE_HPP
#define LOTUS_WAITS_WAIT_SAMPLE_HPP

// Determines what a thread that is in the system call futex(2) waits for: for a lock, and which
// thread holds it; for the end of a thread; or for something else.
#ifndef LOTUS_WAITS_FUTEX_WAITS_HPP
#define LOTUS_WAITS_FUTEX_WAITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Reads a word of this process's memory through the kernel; returns 0 if the address is not
/// mapped. A direct read could crash, because another thread may free the memory.
inline std::uint32_t word_at(std::uint64_t address) noexcept {
  std::uint32_t word = 0;
  const iovec to{&word, sizeof(word)};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the kernel reported
  const iovec from{reinterpret_cast<void*>(address), sizeof(word)};
  const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  return got == static_cast<ssize_t>(sizeof(word)) ? word : 0;
}

/// Returns whether this process has a running thread with this id.
inline bool is_own_running_thread(std::uint32_t tid) noexcept {
  return tid != 0 && tid <= FUTEX_TID_MASK &&
         syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) == 0;
}

/// The argument of wait_in_futex() for a thread of this process.
struct this_process {
  static std::uint32_t word_at(std::uint64_t address) noexcept { return detail::word_at(address); }
  static bool has_thread(std::uint32_t tid) noexcept { return is_own_running_thread(tid); }
};

struct futex_wait {
  wait_reason reason = wait_reason::condition;
  std::uint64_t address = 0;
  /// Id of the thread that holds the lock, or whose end is awaited; 0: unknown.
  std::uint32_t holder = 0;
  bool is_thread_end = false;  ///< whether the wait is for the end of thread `holder`
};

/// Determines what a thread waits for in a call of futex(2).
/// @param call  a call of futex with one of its waiting operations. The function recognizes glibc's
/// mutexes (which libstdc++ and libc++ use too), also with timeouts, priority inheritance or
/// robustness, glibc's reader-writer locks and pthread_join, and musl's mutexes.
/// @param process  the process of the thread. Its word_at() reads a word of its memory (0 if the
/// address is not mapped), and has_thread() returns whether a thread belongs to it.
template <class Process>
futex_wait wait_in_futex(const entered_call& call, const Process& process) noexcept {
  // Offsets and values in glibc's pthread_mutex_t and pthread_rwlock_t on 64-bit machines.
  constexpr std::uint64_t owner_after_lock = 8;
  constexpr std::uint64_t users_after_lock = 12;
  constexpr std::uint64_t phase_of_rwlock = 8;
  constexpr std::uint64_t writers_of_rwlock = 12;
  constexpr std::uint64_t writer_of_rwlock = 24;
  constexpr std::uint64_t locked_with_waiters = 2;
  constexpr std::uint64_t rwlock_waiters = 3;
  futex_wait of;
  of.address = call.arguments[0];
  const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
  const std::uint64_t value = call.arguments[2] & UINT32_MAX;
  const auto held_by = [&of, &process](std::uint32_t tid) {
    if (!process.has_thread(tid)) return false;
    of.reason = wait_reason::lock;
    of.holder = tid;
    return true;
  };
  // Threads wait for a reader-writer lock on two of its words. Both count as the lock itself.
  const auto is_rwlock = [&of, &process, &held_by](std::uint64_t word) {
    if (!held_by(process.word_at(of.address - word + writer_of_rwlock))) return false;
    of.address -= word;
    return true;
  };
  if (operation == FUTEX_LOCK_PI || operation == 13 /* FUTEX_LOCK_PI2, since Linux 5.14 */) {
    of.reason = wait_reason::lock;
    held_by(process.word_at(of.address) & FUTEX_TID_MASK);
  } else if (value == locked_with_waiters) {
    // A mutex counts as a lock even if it has no owner at this moment.
    if (operation == FUTEX_WAIT) of.reason = wait_reason::lock;
    // The C library's own locks, such as those of malloc's arenas, are single words without an
    // owner. The memory after such a word may contain a number that is also a thread's id, such as
    // 1 in a container. So an owner counts only if the mutex's number of users is not 0.
    (process.word_at(of.address + users_after_lock) != 0 &&
     held_by(process.word_at(of.address + owner_after_lock))) ||
        (operation != FUTEX_WAIT && is_rwlock(phase_of_rwlock));
  } else if (((value & FUTEX_WAITERS) != 0 &&
              held_by(static_cast<std::uint32_t>(value) & FUTEX_TID_MASK)) ||
             (value == rwlock_waiters && operation == FUTEX_WAIT_BITSET &&
              (is_rwlock(phase_of_rwlock) || is_rwlock(writers_of_rwlock)))) {
    // In this branch, the thread waits for a robust mutex, for a mutex of musl, or for a
    // reader-writer lock that a writer holds. A reader-writer lock that readers hold does not
    // contain their ids, so a wait for it is reported as a wait for a condition.
  } else if (operation == FUTEX_WAIT_BITSET && value != 0 &&
             process.has_thread(static_cast<std::uint32_t>(value)) &&
             process.word_at(of.address) == value) {
    of.holder = static_cast<std::uint32_t>(value);
    of.is_thread_end = true;
  }
  // A condition variable of glibc has two adjacent words on which threads wait. Rounding down gives
  // both words the same address, so that they count as one condition.
  if (of.reason == wait_reason::condition) of.address &= ~std::uint64_t{7};
  return of;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_FUTEX_WAITS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

struct thread_wait {
  wait_reason reason = wait_reason::other;
  std::uint64_t address = 0;  ///< address of the lock or condition; 0: none
  std::uint32_t holder = 0;   ///< id of the lock's owner thread; 0: unknown
  char text[4096] = "";       ///< description of an object that has no address
  std::size_t text_bytes = 0;
};

/// Reads the files /proc/self/task/<tid>/syscall, which show in which system call a thread is.
/// Keeps some of them open, because opening a file takes longer than reading it. Not thread-safe.
/// Trivially destructible.
class call_files {
 public:
  /// Reads the file of a thread into `line`. Returns 0 or errno.
  template <std::size_t Bytes>
  int read(std::uint32_t tid, char (&line)[Bytes]) noexcept {
    entry& kept = entries_[tid % capacity];
    if (kept.tid != tid || !kept.file.holds()) {
      kept.file.close();
      char path[64];
      std::snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
      const int fd = open_at_high_fd(AT_FDCWD, path, O_RDONLY);
      if (fd < 0) return errno;
      kept = {tid, owned_descriptor{fd}};
    }
    return read_again(tid, line);
  }

  /// Reads a second time the file that read() has just read. Must be called directly after read(),
  /// for the same thread.
  template <std::size_t Bytes>
  int read_again(std::uint32_t tid, char (&line)[Bytes]) noexcept {
    const ssize_t got = pread(entries_[tid % capacity].file.number(), line, Bytes - 1, 0);
    const int error = got < 0 ? errno : got == 0 ? EIO : 0;
    line[got > 0 ? got : 0] = '\0';
    if (error != 0) close(tid);
    return error;
  }

  void close_all() noexcept {
    for (entry& kept : entries_) {
      kept.file.close();
      kept.tid = 0;
    }
  }

 private:
  static constexpr std::size_t capacity = 16;

  struct entry {
    std::uint32_t tid = 0;  ///< thread whose file is open; 0: none
    owned_descriptor file;
  };

  void close(std::uint32_t tid) noexcept {
    entries_[tid % capacity].file.close();
    entries_[tid % capacity].tid = 0;
  }

  entry entries_[capacity];
};

inline void describe_wait(const entered_call& call, thread_wait& to) noexcept {
  const auto set_text = [&to](std::string_view text) {
    std::memcpy(to.text, text.data(), text.size());
    to.text_bytes = text.size();
  };
  if (call.number == entered_call::none) {
    to.reason = wait_reason::page_fault;
    return;
  }
  if (call.number == SYS_futex) {
    const futex_wait futex = wait_in_futex(call, this_process{});
    to.reason = futex.reason;
    to.address = futex.address;
    to.holder = futex.holder;
    if (futex.is_thread_end) set_text("the end of a thread");
    return;
  }
  const call_row* const row = row_of_call(call.number);
  if (row == nullptr) {
    to.reason = wait_reason::other;
    const int n = std::snprintf(to.text, sizeof(to.text), "system call %ld", call.number);
    to.text_bytes = n > 0 ? static_cast<std::size_t>(n) : 0;
    return;
  }
  to.reason = row->reason;
  if (row->of_descriptor) {
    const int fd = static_cast<int>(call.arguments[0]);
    to.text_bytes = wait_objects::describe(fd, to.text, sizeof(to.text));
    const std::string_view what{to.text, to.text_bytes};
    if (row->reason == wait_reason::file && what.substr(0, 5) == "pipe:") {
      to.reason = wait_reason::pipe;
    } else if (row->reason == wait_reason::file && !what.empty() && what[0] != '/') {
      // Texts such as "anon_inode:[eventfd]" describe kernel objects; the others describe peers of
      // sockets.
      to.reason = what.substr(0, 5) == "anon_" ? wait_reason::other : wait_reason::socket;
    }
  }
  if (to.text_bytes == 0 && row->reason != wait_reason::sleep) set_text(row->name);
}

/// Returns whether the files show the system calls of this program: the calling thread must be in
/// the call that reads its file. In an emulator such as qemu-user they show the calls that the
/// emulator makes, with the numbers of the machine that it runs on.
inline bool shows_own_calls(call_files& files) noexcept {
  char line[256];
  entered_call call;
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  // sample_thread() reports errors.
  if (files.read(tid, line) != 0 || !call.parse(line)) return true;
  return call.number == SYS_pread64;
}

/// Whether reading failed because, after the library had checked its descriptor, the program closed
/// it or opened another file under the same number.
inline bool is_other_file(int error) noexcept {
  return error == EBADF || error == EISDIR || error == ESPIPE;
}

/// The result of sampling a thread.
enum class sample_result : std::uint8_t {
  waits,
  runs,       ///< the thread is running, or continued to run while its state was read
  gone,       ///< the thread has ended
  forbidden,  ///< the kernel does not let this process read the thread's file
};

/// Determines whether a thread waits at this moment, and for what.
/// @param wait  receives the description of the wait if the result is `waits`.
/// @param stack  receives a copy of the thread's stack if the result is `waits`; null: none is
/// made.
/// @param error  set to errno if the result is `forbidden`.
inline sample_result sample_thread(std::uint32_t tid, call_files& files, thread_wait& wait,
                                   stack_words* stack, int& error) noexcept {
  char before[256];
  char after[256];
  error = files.read(tid, before);
  if (error == EINTR || error == EMFILE || error == ENFILE || error == ENOMEM ||
      is_other_file(error)) {
    return sample_result::runs;
  }
  if (error != 0)
    return is_own_running_thread(tid) ? sample_result::forbidden : sample_result::gone;
  entered_call call;
  if (!call.parse(before)) return sample_result::runs;
  describe_wait(call, wait);
  if (stack != nullptr) stack->copy(call);
  // The file /proc/self/task/<tid>/syscall contains the thread's system call and stack pointer. If
  // the contents of this file have not changed, the thread is still in the wait that was described,
  // and the copy of its stack belongs to this wait.
  if (files.read_again(tid, after) != 0 || std::strcmp(before, after) != 0) {
    return sample_result::runs;
  }
  return sample_result::waits;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_SAMPLE_HPP

// Writes the stacks of waiting threads to a process's file of stacks.
#ifndef LOTUS_WAITS_WAIT_STACKS_HPP
#define LOTUS_WAITS_WAIT_STACKS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The stacks of a recording's samples. Each different stack is written once. The number of stacks
/// per second and the size of the file are limited. Not thread-safe. Trivially destructible.
class wait_stacks {
 public:
  /// Begins with a new file, at the start of a recording or in a forked child.
  void begin() noexcept {
    file_.close();
    forget();
    failed_ = false;
    read_code_ns_ = 0;
    began_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
    samples_ = 0;
    credit_ = max_credit;
    credited_ns_ = 0;
  }

  void close() noexcept { file_.close(); }

  /// Returns the buffer for the stack of the next sample; null if the stack of that sample is not
  /// wanted. The first samples all have stacks, so that short recordings have some of each wait.
  stack_words* next(random_bits& bits) noexcept {
    constexpr std::uint32_t all_until = 64;
    constexpr std::uint32_t later_one_of = 4;
    if (samples_ < all_until) ++samples_;
    return samples_ < all_until || bits.below(later_one_of) == 0 ? &stack_ : nullptr;
  }

  /// Writes which stack belongs to a sample. If the file does not contain the copied stack yet,
  /// writes the stack itself first.
  /// @param time_ns, tid  time and thread of the sample in the file of waits.
  /// @param folder  directory and settings of the file of waits.
  void write(std::int64_t time_ns, std::uint32_t tid, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = number(false);
    if (id == 0) return;
    lines_.add("seen,%lld,%u,%x\n", static_cast<long long>(time_ns), tid, id);
    flush();
  }

  /// Writes the stack of the holder of a lock: the thread that holds the lock for which the sampled
  /// thread `tid` waits.
  /// @param time_ns, tid  as in write(), which must have been called before.
  /// @param waits  whether the holder waits too; then the caller has copied its stack to stack().
  /// Otherwise the holder runs, so its stack is unknown, and 0 is written instead of a stack.
  void write_holder(std::int64_t time_ns, std::uint32_t tid, bool waits,
                    const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = waits ? number(false) : 0;
    if (waits && id == 0) return;
    lines_.add("held,%lld,%u,%x\n", static_cast<long long>(time_ns), tid, id);
    flush();
  }

  /// Writes the line "moment": the calls of write_state() that follow record what each thread does
  /// at this time.
  void write_moment(std::int64_t time_ns, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    lines_.add("moment,%lld\n", static_cast<long long>(time_ns));
    flush();
  }

  /// Returns the buffer to which the caller must copy a waiting thread's stack before it calls
  /// write_state().
  stack_words& stack() noexcept { return stack_; }

  /// Writes what a thread does at this moment.
  /// @param wait  what the thread waits for; null: the thread is running. If it waits, the caller
  /// has copied its stack to stack().
  /// @param since_ns  since when the thread waits for a batch, in ns since the epoch; 0: it does
  /// not wait for a batch.
  void write_state(std::uint32_t tid, const thread_wait* wait, std::int64_t since_ns,
                   const char* name, const wait_folder& folder) noexcept {
    if (!prepare(folder)) return;
    const std::uint32_t id = wait == nullptr ? 0 : number(true);
    const auto add = [&] {
      const thread_wait none;
      const thread_wait& of = wait == nullptr ? none : *wait;
      return lines_.add(
          "state,%u,%s,%llx,%u,%x,%lld,%s,%.*s\n", tid,
          wait == nullptr ? "running" : wait_reason_words[static_cast<std::size_t>(of.reason)],
          static_cast<unsigned long long>(of.address), of.holder, id,
          static_cast<long long>(since_ns), name, static_cast<int>(of.text_bytes), of.text);
    };
    if (!add()) {
      flush();
      add();
    }
    flush();
  }

 private:
  static constexpr std::size_t capacity = 1024;
  static constexpr std::uint64_t second_ns = 1'000'000'000;
  static constexpr std::uint32_t max_credit = 256;
  static constexpr std::uint64_t credit_per_s = 32;
  static constexpr std::uint64_t max_bytes = std::uint64_t{4} << 20;
  static constexpr mode_t mode = 0600;

  struct known {
    std::uint64_t hash = 0;  ///< 0: free
    std::uint32_t id = 0;
  };

  static std::size_t place_of(std::uint64_t hash) noexcept {
    return static_cast<std::size_t>(hash >> 1) % capacity;  // the lowest bit is always set
  }

  /// Opens or creates the file of stacks if lines cannot be appended to it now. Returns false if
  /// that fails, or if writing failed less than a second ago.
  bool prepare(const wait_folder& folder) noexcept {
    lines_.bytes = 0;
    now_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
    if (failed_ && now_ns_ < failed_ns_ + second_ns) return false;
    failed_ = false;
    if (file_.ready(folder_.max_bytes)) return true;
    folder_ = folder;
    folder_.start = stacks_file_start;
    folder_.mode = mode & folder.mode;
    folder_.max_bytes = folder.max_bytes == 0 ? max_bytes : std::min(folder.max_bytes, max_bytes);
    forget();
    return file_.begin(folder_);
  }

  /// Returns the number by which the file of stacks identifies the copied stack. If the file does
  /// not contain the stack yet, also adds the stack's line. Returns 0 if no stack was copied, or if
  /// the stack cannot be written now.
  /// @param always  whether to write a new stack even if there were many recently.
  std::uint32_t number(bool always) noexcept {
    if (stack_.empty()) return 0;
    find_code();
    const std::uint64_t hash = stack_.keep_addresses(code_) | 1;
    std::size_t at = place_of(hash);
    while (places_[at].hash != 0 && places_[at].hash != hash) at = (at + 1) % capacity;
    if (places_[at].hash != 0) return places_[at].id;
    if (!take_credit() && !always) return 0;
    if (count_ >= capacity / 2) {
      forget_stacks();
      at = place_of(hash);
    }
    if (lines_.bytes + stack_words::max_text + 64 > sizeof(lines_.text)) flush();
    if (failed_) return 0;
    ++count_;
    places_[at] = {hash, ++last_id_};
    lines_.bytes += stack_.put(last_id_, lines_.text + lines_.bytes);
    return last_id_;
  }

  /// Returns whether a new stack may be written now. Allows bursts of new stacks, but limits their
  /// average number per second.
  bool take_credit() noexcept {
    const std::uint64_t earned =
        std::min<std::uint64_t>((now_ns_ - credited_ns_) * credit_per_s / second_ns, max_credit);
    if (earned > 0) {
      credit_ = std::min(max_credit, credit_ + static_cast<std::uint32_t>(earned));
      credited_ns_ = now_ns_;
    }
    if (credit_ == 0) return false;
    --credit_;
    return true;
  }

  /// Reads again where code is mapped, if the last reading is long enough ago. If the mappings
  /// differ from those in the file, adds lines about them.
  void find_code() noexcept {
    // The mappings are read less often later, because programs load most libraries when they begin.
    // Reading very many mappings takes long. So the pause before the next reading is at least 4000
    // times as long as the last reading took, or 500 times if the thread is in unknown code.
    const bool is_unknown = !code_.contains(stack_.pc());
    const std::uint64_t usual_ns =
        std::min(std::max((now_ns_ - began_ns_) / 4, second_ns / 10), 10 * second_ns);
    const std::uint64_t pause_ns = is_unknown ? std::max(second_ns / 10, 500 * read_cost_ns_)
                                              : std::max(usual_ns, 4000 * read_cost_ns_);
    if (now_ns_ >= read_code_ns_ + pause_ns) {
      if (code_.read()) code_written_ = false;
      read_cost_ns_ = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC)) - now_ns_;
      read_code_ns_ = now_ns_;
    }
    if (code_written_) return;
    code_written_ = true;
    forget_stacks();
    lines_.add("%s\n", "maps,");
    for_each_code([this](const code_part& part) {
      const auto add = [&] {
        return lines_.add("code,%llx,%llx,%llx,%llx,%.*s\n",
                          static_cast<unsigned long long>(part.begin),
                          static_cast<unsigned long long>(part.end),
                          static_cast<unsigned long long>(part.file_offset),
                          static_cast<unsigned long long>(part.file_begin),
                          static_cast<int>(part.path.size()), part.path.data());
      };
      if (!add()) {
        flush();
        add();
      }
      const build_id id = mapped_build_id(part.file_begin);
      if (*id.digits != '\0') lines_.add("build,%s\n", static_cast<const char*>(id.digits));
    });
  }

  /// Passes the lines to the kernel.
  void flush() noexcept {
    failed_ = !file_.ready(0) || !file_.append(lines_.text, lines_.bytes);
    lines_.bytes = 0;
    if (!failed_) return;
    failed_ns_ = now_ns_;
    forget();  // so that lost lines are written again when they are next needed
  }

  void forget_stacks() noexcept {
    if (count_ > 0) std::memset(static_cast<void*>(places_), 0, sizeof(places_));
    count_ = 0;
  }

  void forget() noexcept {
    forget_stacks();
    code_written_ = false;
  }

  wait_folder folder_;
  wait_file file_;
  bool failed_ = false;  ///< whether the last lines could not be written
  std::uint64_t failed_ns_ = 0;
  std::uint64_t began_ns_ = 0;  ///< when begin() was called (CLOCK_MONOTONIC)
  std::uint64_t now_ns_ = 0;    ///< time of the lines that are being written (CLOCK_MONOTONIC)
  stack_words stack_;
  code_ranges code_;
  bool code_written_ = false;
  std::uint64_t read_code_ns_ = 0;  ///< when code_ was read (CLOCK_MONOTONIC)
  std::uint64_t read_cost_ns_ = 0;  ///< how long that took
  known places_[capacity] = {};
  std::size_t count_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint32_t samples_ = 0;
  std::uint32_t credit_ = max_credit;  ///< how many new stacks may be written now
  std::uint64_t credited_ns_ = 0;
  text_lines<stack_words::max_text + 8192> lines_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_WAIT_STACKS_HPP

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

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The parts of a recorder that have a lock, or that a forked child must not share with its parent.
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
  wait_sampler& waits;
};

/// Holds all locks of the recorder during a fork. Otherwise the child could get a copy of data that
/// another thread was changing. Not thread-safe; the session calls one function at a time.
class LOTUS_DETAIL_PER_MODULE fork_guard {
 public:
  explicit fork_guard(const forked_parts& of) noexcept : of_{of} {}

  void before() noexcept {
    forking_tid_ = thread_id();
    of_.round.lock();
    of_.producers.fork_lock().lock();
    of_.producers.for_each([](producer& p) { p.guard.lock(); });
    for_each_lock([](mutex& m) { m.lock(); });
    of_.clock.before_fork();
    // From here on, the forking thread cannot store a record in its ring directly: if a signal
    // handler records during the fork, it takes the slow path, which detects the fork.
    of_.producers.for_each([this](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      slow_path::close_lanes(p);
      aggregate_store::close(p);
    });
  }

  /// Unlocks all locks, in the parent and in the child. In the child, call become_child() first.
  void after() noexcept {
    const bool stores = of_.state.is_on() && !of_.state.writes_through();
    of_.producers.for_each([&](producer& p) {
      if (p.tid.load(std::memory_order_relaxed) != forking_tid_) return;
      if (p.attached) of_.slow.open_lanes(p);
      if (stores) aggregate_store::reopen(p);
    });
    // These locks are unlocked in the order in which threads take them. So a thread that waits for
    // the first lock can continue, and the locks that it takes next are unlocked soon after.
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
    of_.producers.after_fork_in_child();
    of_.rings.after_fork_in_child();
    of_.files.after_fork_in_child();
    of_.clock.after_fork_in_child();
    cpu_clock::disturb();
  }

 private:
  /// Calls a function for each lock that may be taken while a producer's guard is held, in the
  /// order in which threads take them.
  void for_each_lock(void (*each)(mutex&)) noexcept {
    each(of_.waits.fork_lock());
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

// Counts and reports lost records, and reports records that get a wrong name or time. Each cause is
// reported once.
#ifndef LOTUS_STORE_LOSSES_HPP
#define LOTUS_STORE_LOSSES_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Counts lost records, except those that threads count in producer::dropped. All functions are
/// thread-safe, but call begin() and report() while the session's control lock is held.
class losses {
 public:
  /// Begins to count the losses of a new recording.
  /// @param dropped  number of records that this process has dropped so far.
  void begin(std::uint64_t dropped) noexcept {
    dropped_at_start_ = dropped;
    said_unnamed_.store(false, std::memory_order_relaxed);
    said_batch_.store(false, std::memory_order_relaxed);
    said_crossed_.store(false, std::memory_order_relaxed);
  }
  /// Resets the counts in a forked child, which has lost nothing yet.
  void forget() noexcept {
    dropped_.store(0, std::memory_order_relaxed);
    dropped_at_start_ = 0;
  }

  void count(std::uint64_t records) noexcept {
    dropped_.fetch_add(records, std::memory_order_relaxed);
  }
  std::uint64_t counted() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  /// Returns the number of records that this recording has lost.
  /// @param dropped  number of records that the process has dropped in all its recordings.
  std::uint64_t of_recording(std::uint64_t dropped) const noexcept {
    return dropped - dropped_at_start_;
  }
  /// Reports how many records a recording has lost.
  /// @param recoverable  number of records that are in the ring file and not in the logs.
  void report(std::uint64_t dropped, std::uint64_t recoverable) const noexcept {
    const auto lost = static_cast<unsigned long long>(of_recording(dropped));
    if (lost > 0) say("%llu records were dropped", lost);
    if (recoverable > 0) {
      say("%llu records are not in the logs yet; run `lotus-tool recover` to recover them",
          static_cast<unsigned long long>(recoverable));
    }
  }

  /// Reports that the table of names has no room for another name.
  /// @param names  number of existing names.
  void unnamed(std::uint32_t names) noexcept {
    if (said_unnamed_.exchange(true)) return;
    say("no %s for a name after the first %u: such operations are recorded as %s",
        names >= name_table::limit ? "room" : "memory", names, unnamed_name.data());
  }

  /// Counts and reports a record that was refused because its batch number is too large.
  void refused_batch(std::uint64_t number) noexcept {
    count(1);
    if (said_batch_.exchange(true)) return;
    say("batch number %llu (%lld) is not below 2^%u: records of such batches are dropped",
        static_cast<unsigned long long>(number), static_cast<long long>(number),
        record_tag::value_bits);
  }

  /// Reports that a scope ended on another thread than the one on which it began.
  void crossed_threads(std::string_view name) noexcept {
    if (said_crossed_.exchange(true)) return;
    say("the scope %.*s ended on another thread than it began on, so its line is wrong: use "
        "lotus::async_scope for operations that change threads",
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

// Takes snapshots of the running recording, on request or when a trigger fires.
#ifndef LOTUS_STORE_RECORDING_SNAPSHOTS_HPP
#define LOTUS_STORE_RECORDING_SNAPSHOTS_HPP

// Creates snapshots: copies of a run's directory at one moment.
#ifndef LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP
#define LOTUS_RECOVERY_SNAPSHOT_FOLDER_HPP

#include <sys/file.h>

// Determines the folder in which snapshots of a run are stored, and the names of snapshots.
#ifndef LOTUS_FOLDER_SNAPSHOT_PLACE_HPP
#define LOTUS_FOLDER_SNAPSHOT_PLACE_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Determines where the snapshots of one run are stored. Snapshots of the run directory "run" are
/// stored next to it, as run.snapshot-<UTC>-<reason>. If the run directory is the program's working
/// directory, snapshots are stored in it, and their names begin with the logs' prefix. Snapshots
/// sorted by name are also sorted by time.
class snapshot_place {
 public:
  /// @param directory  descriptor of the run's directory, borrowed.
  snapshot_place(int directory, const log_location& run) noexcept {
    const char* const slash = std::strrchr(run.directory, '/');
    const char* name = slash == nullptr ? run.directory : slash + 1;
    const bool inside =
        *name == '\0' || std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
    parent_ = open_at_high_fd(directory, inside ? "." : "..", O_RDONLY | O_DIRECTORY);
    if (parent_ < 0) error_ = errno;
    std::snprintf(start_, sizeof(start_), "%.150s%s", inside ? run.prefix : name, between);
  }
  snapshot_place(const snapshot_place&) = delete;
  snapshot_place& operator=(const snapshot_place&) = delete;
  ~snapshot_place() {
    if (parent_ >= 0) close(parent_);
  }

  /// Returns 0, or the errno with which opening the folder for snapshots failed.
  int error() const noexcept { return error_; }
  int parent() const noexcept { return parent_; }

  /// Whether a folder with this name is a snapshot of this run, complete or incomplete.
  bool is_one(const char* name) const noexcept {
    const std::size_t bytes = std::strlen(start_);
    return std::strncmp(name, start_, bytes) == 0 && is_time(name + bytes);
  }

  /// Writes the name of a new snapshot to `out`: "<run>.snapshot-20261123T101500.123456Z-<reason>".
  /// If `attempt` is not 0, adds a number, because earlier attempts found that the name exists.
  void put_name(char* out, std::size_t bytes, std::string_view reason, std::int64_t ns,
                unsigned attempt) const noexcept {
    const time_t seconds = ns / 1'000'000'000;
    struct tm utc {};
    gmtime_r(&seconds, &utc);
    char when[32];
    strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &utc);
    const auto us = static_cast<unsigned>(ns / 1000 % 1'000'000);
    char why[max_reason_bytes + 1] = {};
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
  static constexpr std::size_t max_reason_bytes = 64;

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

// Finds the end of the last complete line or block in a log to which another process may be
// appending, so that a copy of the log ends there.
#ifndef LOTUS_RECOVERY_WHOLE_END_HPP
#define LOTUS_RECOVERY_WHOLE_END_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the position after the last line break in the first `bytes` of a text log. Searches only
/// the last 64 KB, because lines are shorter; returns 0 if these contain no line break.
inline std::uint64_t end_of_whole_lines(int fd, std::uint64_t bytes) noexcept {
  const mapped<char[4096]> memory;
  if (!memory) return 0;
  char(&text)[4096] = *memory;
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

/// Returns the position after the last complete block of a compact log. If a block is damaged,
/// returns `bytes`, so that the damage is copied too and the reader of the copy reports it.
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

/// Returns the position after the last complete line or block of a log.
/// @param status  status of the open file `fd`.
inline std::uint64_t whole_end(int fd, bool compact, const struct stat& status) noexcept {
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  return compact ? end_of_whole_blocks(fd, bytes) : end_of_whole_lines(fd, bytes);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECOVERY_WHOLE_END_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Function with which a process adds its own current aggregates to a snapshot of its run. If a
/// process passes no function, its aggregates are copied from its ring file.
struct own_aggregates {
  void* of = nullptr;
  /// Appends the current aggregates to files in `folder`. Returns 0 or an error that
  /// file_error_text() can describe.
  int (*append)(void* of, int folder) noexcept = nullptr;
};

/// Appends the aggregates in a ring file to the aggregates files in the folder `to`, even if the
/// ring file's process is running. If threads of that process finish calls meanwhile, some sums may
/// contain a call that other sums lack. A ring file that cannot be read within 50 ms is skipped.
/// @param from  descriptor of the ring file's directory; `from` and `to` are borrowed.
/// @param prefix  only a ring file whose logs have this prefix is used.
/// @return 0, ENOMEM, or an error of the files in `to` that file_error_text() can describe.
LOTUS_DETAIL_COLD inline int copy_ring_aggregates(int from, const char* name, const char* prefix,
                                                  const file_owners& owners, int to) noexcept {
  constexpr std::int64_t max_ns = 50'000'000;
  dead_ring_file file;
  if (file.open_any(from, name, owners) != dead_ring_file::state::opened) return 0;
  if (std::strcmp(file.header().prefix, prefix) != 0) return 0;
  const int error = file.read_blocks(clock_ns(CLOCK_MONOTONIC) + max_ns);
  if (error != 0) return error == ETIME ? 0 : error;
  const dead_aggregates found = read_aggregates(file, aggregate_state::moving);
  const log_folder run = folder_of(to, file, nullptr);
  loader_folders folders{run};
  return found.for_each_section([&](std::uint32_t loader, std::string_view section) {
    return append_aggregates(run, folders, loader, file.header().pid, section);
  });
}

/// Creates a snapshot of a run in a new folder, and deletes the folder if the snapshot cannot be
/// completed.
class snapshot_folder {
 public:
  static constexpr std::size_t name_bytes = 352;

  /// @param from  descriptor of the run's directory; all arguments are borrowed.
  /// @param mode   permissions of new files, before the umask applies.
  snapshot_folder(int from, const log_location& run, const file_owners& owners,
                  mode_t mode) noexcept
      : from_{from}, run_{run}, owners_{owners}, mode_{mode}, place_{from, run} {}

  /// Creates the snapshot. Returns 0, or an error that file_error_text() can describe; then no
  /// snapshot exists.
  /// @param info  name of the information file to which the line "snapshot" is added: that of the
  /// calling process if `own` is given.
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
    close(folder);  // also releases the folder's lock
    return error;
  }

  /// Deletes the oldest snapshots of the run until the total size is at most `max_bytes`, but keeps
  /// the newest in any case.
  void keep_within(std::uint64_t max_bytes) noexcept {
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
      if (count < 2 || bytes <= max_bytes || !remove_folder(oldest)) return;
    }
  }

  /// The snapshot's name, without the path.
  const char* name() const noexcept { return name_; }

 private:
  static constexpr std::string_view unfinished_end = ".unfinished";

  /// Opens the new folder and locks it until the snapshot is complete. If the process is killed,
  /// the kernel releases the lock, so that the next snapshot can recognize this one as unfinished
  /// and remove it. Returns EEXIST if another process is removing or has removed the folder.
  int open_unfinished(int& folder) const noexcept {
    folder = open_at_high_fd(place_.parent(), unfinished_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder < 0) return errno == ENOENT ? EEXIST : errno;
    struct stat opened {};
    struct stat named {};
    // If the file system has no locks, the folder is used without one: remove_dead() cannot lock it
    // either, and does not remove it.
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

  /// Function to call for each file and subfolder of a snapshot.
  using each_file = function_ref<void(int folder, const char* name, const struct stat& status)>;
  static void for_each_file(int folder, unsigned depth, each_file each) noexcept {
    for_each_entry(folder, [&](const char* name) {
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return;
      struct stat status {};
      if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
      if (S_ISDIR(status.st_mode) && depth > 0) {
        const int inner =
            open_at_high_fd(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
        if (inner < 0) return;
        for_each_file(inner, depth - 1, each);
        close(inner);
      }
      each(folder, name, status);
    });
  }

  int open_one(const char* name) const noexcept {
    const int folder =
        open_at_high_fd(place_.parent(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
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
    // The line "snapshot" in the information file is written first. Without it, a snapshot inside
    // the run's directory would look like the folder of a loader.
    int error = tell(folder, info, now_ns);
    // Parts are copied before the logs that still grow. So a log that becomes a part meanwhile is
    // not copied twice.
    for (const bool parts : {true, false}) {
      for_each_log(from_, run_.prefix, owners_, [&](const run_log& log) {
        if (error == 0 && (log.parsed.part != 0) == parts) error = add(folder, log);
      });
    }
    if (error == 0) error = add_aggregates(folder, own.append == nullptr ? "" : info);
    if (error == 0 && own.append != nullptr) error = own.append(own.of, folder);
    for_each_entry(from_, [&](const char* name) {
      if (error != 0) return;
      if (begins_with(name, run_info_start) || begins_with(name, waits_file_start)) {
        error = append_copy(from_, folder, name, mode_);
      } else if (begins_with(name, stacks_file_start)) {
        error = append_copy(from_, folder, name, mode_ & 0600U);
      }
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

  /// Copies the aggregates of all processes of the run, first those in ring files, then those in
  /// aggregates files. So aggregates that a process moves from its ring file to its aggregates file
  /// meanwhile may be copied twice, but are never missing. Readers count sections of the same name
  /// only once.
  /// @param own_info  name of the calling process's information file if the process adds its own
  /// aggregates (see own_aggregates), otherwise "".
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
        if (error == 0) error = append_copy(in, to, name, mode_);
        if (error == 0 && to != folder) close(to);
      });
    });
    return error;
  }

  /// Opens the loader's folder in the snapshot, and creates it if it is missing.
  /// @param to  set to the descriptor of that folder, or to `folder` itself if `loader` is "".
  LOTUS_DETAIL_COLD int open_folder(int folder, const char* loader, int& to) const noexcept {
    to = folder;
    if (*loader == '\0') return 0;
    if (mkdirat(folder, loader, folder_mode()) != 0 && errno != EEXIST) return errno;
    to = open_at_high_fd(folder, loader, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return to < 0 ? errno : 0;
  }

  /// Adds a log to the snapshot. A part never changes, so a hard link to it is created if possible.
  /// Otherwise all complete lines or blocks of the log are copied.
  int add(int folder, const run_log& log) const noexcept {
    int to = folder;
    int error = open_folder(folder, log.loader, to);
    if (error != 0) return error;
    if (log.parsed.part == 0 || linkat(log.folder, log.name, to, log.name, 0) != 0) {
      struct stat status {};
      const int fd = open_regular(log.folder, log.name, O_RDONLY, status);
      // If the log cannot be opened, it has become a part or was deleted in the meantime, which is
      // no error.
      error = fd < 0 ? 0 : copy(fd, whole_end(fd, log.parsed.compact, status), to, log.name);
      if (fd >= 0) close(fd);
    }
    if (to != folder) close(to);
    return error;
  }

  /// Permissions of folders: users who may read the files in a folder may also enter the folder.
  mode_t folder_mode() const noexcept { return mode_ | (mode_ & 0444U) >> 2U | 0700U; }

  /// Appends a file in the folder `from` to the file of the same name in `folder`. Does nothing if
  /// the file in `from` cannot be read.
  LOTUS_DETAIL_COLD int append_copy(int from, int folder, const char* name,
                                    mode_t mode) const noexcept {
    struct stat status {};
    const int fd = open_regular(from, name, O_RDONLY, status);
    if (fd < 0) return 0;
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    bool made = false;
    const int to = open_to_append(folder, name, owners_, mode, status, made);
    const int error = to < 0 ? -to : copy(fd, bytes, to);
    close(fd);
    return error;
  }

  int copy(int fd, std::uint64_t bytes, int folder, const char* name) const noexcept {
    struct stat status {};
    const int to = open_regular(folder, name, O_WRONLY | O_CREAT | O_EXCL, status, mode_);
    return to < 0 ? -to : copy(fd, bytes, to);
  }

  /// Copies the first `bytes` bytes of the file `fd` to the file `to`, and closes the descriptor
  /// `to`. Returns 0 or errno.
  static int copy(int fd, std::uint64_t bytes, int to) noexcept {
    static_assert(copy_bytes % 4096 == 0);
    const mapped<char[copy_bytes]> memory;
    if (!memory) {
      close(to);
      return ENOMEM;
    }
    char(&buffer)[copy_bytes] = *memory;
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

// Takes snapshots of a running recording, and defines the triggers that request them.
#ifndef LOTUS_STORE_SNAPSHOT_HPP
#define LOTUS_STORE_SNAPSHOT_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Takes a snapshot, and deletes old snapshots if all together exceed `max_bytes`. Reports the
/// snapshot's name or the error. Returns whether the snapshot was taken.
LOTUS_DETAIL_COLD inline bool make_snapshot(const log_folder& logs, const log_location& run,
                                            std::string_view reason, std::uint64_t max_bytes,
                                            const own_aggregates& own) noexcept {
  snapshot_folder folder{logs.directory, run, logs.owners, logs.mode};
  const int error = folder.make(reason, logs.info, own);
  if (error == 0) {
    folder.keep_within(max_bytes);
    say("snapshot %s is stored next to the run", folder.name());
  } else {
    say("cannot store a snapshot of %s: %s%s", run.directory, is_refusal(error) ? "it " : "",
        file_error_text(error));
  }
  return error == 0;
}

/// Whether the signal options::snapshot_signal has arrived since the last snapshot that it
/// triggered.
LOTUS_DETAIL_PER_MODULE inline std::atomic<bool> snapshot_signaled{false};
LOTUS_DETAIL_PER_MODULE inline struct sigaction handled_before {};

LOTUS_DETAIL_PER_MODULE inline void on_snapshot_signal(int number, siginfo_t* info,
                                                       void* context) noexcept {
  snapshot_signaled.store(true, std::memory_order_relaxed);
  const struct sigaction& before = handled_before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    if (before.sa_sigaction != nullptr) before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
}

/// Triggers snapshots when a signal arrives, when `lotus-tool snapshot` requests one, or after a
/// long wait. Not thread-safe: call begin() and end() while no other function is running; only the
/// drain thread calls the other functions.
class snapshot_triggers {
 public:
  LOTUS_DETAIL_COLD void begin(const options& chosen) noexcept {
    max_bytes_ = chosen.snapshots_bytes;
    wait_ns_ = std::int64_t{chosen.snapshot_when_wait_ms} * 1'000'000;
    last_wait_ns_ = 0;
    reported_wait_ = 0;
    signal_ = 0;
    if (chosen.snapshot_signal == 0) return;
    struct sigaction ours {};
    ours.sa_sigaction = on_snapshot_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&ours.sa_mask);
    snapshot_signaled.store(false, std::memory_order_relaxed);
    if (sigaction(chosen.snapshot_signal, &ours, &handled_before) == 0) {
      signal_ = chosen.snapshot_signal;
    } else {
      say("cannot use signal %d for snapshots: %s", chosen.snapshot_signal, std::strerror(errno));
    }
  }

  LOTUS_DETAIL_COLD void end() noexcept {
    struct sigaction now {};
    if (signal_ == 0 || sigaction(signal_, nullptr, &now) != 0) return;
    const bool ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_snapshot_signal;
    if (ours) sigaction(signal_, &handled_before, nullptr);
    signal_ = 0;
  }

  /// Maximum size in bytes of all snapshots together.
  std::uint64_t max_bytes() const noexcept { return max_bytes_; }
  /// Minimum duration, in ns, of a wait that triggers a snapshot; 0: waits trigger none.
  std::int64_t wait_ns() const noexcept { return wait_ns_; }
  /// Triggers a snapshot if a thread has waited for a batch for at least `long_ticks`. The producer
  /// must have a ring, and the caller must hold its guard.
  void look_at_wait(producer& p, std::uint64_t long_ticks) noexcept {
    const std::uint64_t since = p.ring->waiting_since.load(std::memory_order_relaxed);
    const bool was_long = p.longest_wait_ticks.exchange(0, std::memory_order_relaxed) >= long_ticks;
    const bool is_long = since != 0 && now_ticks() - since >= long_ticks;
    // A wait that has not ended triggers only one snapshot.
    if ((!was_long && !is_long) || (is_long && since == reported_wait_)) return;
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (last_wait_ns_ != 0 && now_ns - last_wait_ns_ < between_waits_ns) return;
    reported_wait_ = is_long ? since : 0;
    last_wait_ns_ = now_ns;
    wait_seen_ = true;
  }

  /// Removes one pending trigger. Returns false if there is none.
  /// @param reason  receives the name of the trigger; has room for snapshot_place::max_reason_bytes
  /// + 1 bytes.
  bool take(const log_folder& logs, char* reason) noexcept {
    constexpr std::size_t room = snapshot_place::max_reason_bytes + 1;
    if (std::exchange(wait_seen_, false)) {
      std::snprintf(reason, room, "wait");
      return true;
    }
    if (snapshot_signaled.load(std::memory_order_relaxed) &&
        snapshot_signaled.exchange(false, std::memory_order_relaxed)) {
      std::snprintf(reason, room, "signal");
      return true;
    }
    return take_request(logs, reason);
  }

 private:
  static constexpr std::int64_t between_waits_ns = 60'000'000'000;

  /// Removes a request of `lotus-tool snapshot`, which is a file. If several processes of the run
  /// see the file, only the process that deletes it takes the snapshot.
  bool take_request(const log_folder& logs, char* reason) noexcept {
    struct stat status {};
    if (logs.directory < 0 ||
        fstatat(logs.directory, snapshot_request_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return false;
    }
    const int fd = open_own(logs.directory, snapshot_request_name, O_RDONLY, logs.owners, status);
    if (fd < 0) return false;
    const ssize_t bytes = read(fd, reason, snapshot_place::max_reason_bytes);
    close(fd);
    // A shell creates a file before it writes the reason, so an empty one is read once more.
    if (bytes <= 0 && !std::exchange(empty_request_seen_, true)) return false;
    empty_request_seen_ = false;
    reason[bytes > 0 ? bytes : 0] = '\0';
    return unlinkat(logs.directory, snapshot_request_name, 0) == 0;
  }

  std::uint64_t max_bytes_ = 0;
  std::int64_t wait_ns_ = 0;
  std::int64_t last_wait_ns_ = 0;
  std::uint64_t reported_wait_ = 0;
  bool wait_seen_ = false;
  bool empty_request_seen_ = false;
  int signal_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_SNAPSHOT_HPP

// Lets the processes of a run record at about the same time what their threads do, so that a
// snapshot that one of them takes shows the threads of all.
#ifndef LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP
#define LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Requests between the processes of a run. A request is a file in the run's directory. Its first
/// line identifies it; each process that has answered appends one byte. Not thread-safe.
class moment_requests {
 public:
  /// @param interval_ms  how often the processes of the run look for requests.
  void begin(std::uint32_t interval_ms) noexcept {
    constexpr std::uint32_t longest_ms = 1'000;
    max_wait_ms_ = interval_ms < longest_ms ? interval_ms + interval_ms / 2 : longest_ms;
  }

  /// Asks the other processes of the run to record what their threads do. Does nothing if there are
  /// none.
  LOTUS_DETAIL_COLD void ask(const log_folder& run) noexcept {
    others_ = others_of(run);
    if (others_ == 0) return;
    unlinkat(run.directory, moment_request_name, 0);  // one that a killed process has left
    char text[id_bytes];
    const int bytes = std::snprintf(text, sizeof(text), "%ld %lld\n", static_cast<long>(getpid()),
                                    static_cast<long long>(clock_ns(CLOCK_REALTIME)));
    asked_bytes_ = static_cast<std::size_t>(bytes);
    asked_ns_ = clock_ns(CLOCK_MONOTONIC);
    struct stat status {};
    const int fd = open_regular(run.directory, moment_request_name, O_WRONLY | O_CREAT | O_EXCL,
                                status, run.mode);
    if (fd < 0 || write_all(fd, text, asked_bytes_) != 0) others_ = 0;
    if (fd >= 0) close(fd);
  }

  /// Waits until the other processes have answered the request of ask(), then deletes it. Processes
  /// that are dead, stopped or not allowed to write never answer, so the wait is limited.
  LOTUS_DETAIL_COLD void await_answers(const log_folder& run) noexcept {
    if (others_ == 0) return;
    constexpr timespec pause{0, 2'000'000};
    const std::int64_t end_ns = asked_ns_ + std::int64_t{max_wait_ms_} * 1'000'000;
    struct stat status {};
    while (fstatat(run.directory, moment_request_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           static_cast<std::size_t>(status.st_size) < asked_bytes_ + others_ &&
           clock_ns(CLOCK_MONOTONIC) < end_ns) {
      nanosleep(&pause, nullptr);
    }
    unlinkat(run.directory, moment_request_name, 0);
    others_ = 0;
  }

  /// Calls `record` if another process has made a request that this process has not answered yet.
  template <class Record>
  void answer(const log_folder& run, Record record) noexcept {
    struct stat status {};
    if (run.directory < 0 ||
        fstatat(run.directory, moment_request_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return;
    }
    const int fd =
        open_own(run.directory, moment_request_name, O_RDWR | O_APPEND, run.owners, status);
    if (fd < 0) return;
    char text[id_bytes] = "";
    const ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
    char* const end = bytes > 0 ? std::strchr(text, '\n') : nullptr;
    if (end != nullptr) {
      *end = '\0';
      if (std::strcmp(text, answered_) != 0) {
        std::memcpy(answered_, text, sizeof(text));
        record();
        write_all(fd, ".", 1);
      }
    }
    close(fd);
  }

 private:
  static constexpr std::size_t id_bytes = 48;

  /// Returns the number of ring files of other processes: each process that records has one.
  static std::size_t others_of(const log_folder& run) noexcept {
    if (run.directory < 0) return 0;
    std::size_t count = 0;
    for_each_entry(run.directory, [&](const char* name) {
      const std::size_t start = sizeof(ring_file_start) - 1;
      if (std::strncmp(name, ring_file_start, start) != 0) return;
      if (std::strcmp(name + start, run.info + sizeof(run_info_start) - 1) != 0) ++count;
    });
    return count;
  }

  std::uint32_t max_wait_ms_ = 0;
  std::size_t others_ = 0;        ///< number of processes that have to answer
  std::size_t asked_bytes_ = 0;   ///< size of this process's request without answers
  std::int64_t asked_ns_ = 0;     ///< time of this process's request (CLOCK_MONOTONIC)
  char answered_[id_bytes] = "";  ///< first line of the request that was answered last
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_WAITS_STORE_MOMENT_REQUESTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Takes the snapshots of a recording, and contains the triggers that request them. Not
/// thread-safe: the recorder calls one function at a time. The recorder also begins and ends the
/// triggers together with the recording.
class LOTUS_DETAIL_PER_MODULE recording_snapshots {
 public:
  recording_snapshots(run_files& files, storage& rings, aggregate_store& aggregates,
                      const producer_list& producers, wait_sampler& waits) noexcept
      : files_{files},
        rings_{rings},
        aggregates_{aggregates},
        producers_{producers},
        waits_{waits} {}

  void begin(const options& chosen) noexcept {
    triggers_.begin(chosen);
    requests_.begin(chosen.drain_interval_ms);
  }

  snapshot_triggers& triggers() noexcept { return triggers_; }

  /// Takes a snapshot. Returns false, after reporting the reason, if no snapshot was taken.
  /// @param flush  drains all threads.
  bool take(std::string_view reason, function_ref<void()> flush) noexcept {
    // Records first what each thread of each process does now, because a snapshot of a hanging
    // program must show where its threads hang.
    requests_.ask(files_.logs_folder());
    waits_.record_moment();
    log_retention& retention = rings_.retention();
    retention.hold(true);
    retention.roll_all();
    flush();
    requests_.await_answers(files_.logs_folder());
    const own_aggregates counted{this, [](void* self, int folder) noexcept {
                                   auto& of = *static_cast<recording_snapshots*>(self);
                                   return of.aggregates_.copy(of.producers_, folder);
                                 }};
    const bool made = make_snapshot(files_.logs_folder(), files_.location(), reason,
                                    triggers_.max_bytes(), counted);
    retention.hold(false);
    return made;
  }

  /// Takes a snapshot if a trigger has fired.
  void take_if_triggered(function_ref<void()> flush) noexcept {
    char reason[snapshot_place::max_reason_bytes + 1];
    if (triggers_.take(files_.logs_folder(), reason)) take(reason, flush);
  }

  /// Records what this process's threads are doing, if another process that takes a snapshot has
  /// requested this.
  void answer_request() noexcept {
    requests_.answer(files_.logs_folder(), [this] { waits_.record_moment(); });
  }

 private:
  run_files& files_;
  storage& rings_;
  aggregate_store& aggregates_;
  const producer_list& producers_;
  wait_sampler& waits_;
  snapshot_triggers triggers_;
  moment_requests requests_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDING_SNAPSHOTS_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Does the recording for the session. The session calls open, close, close_at_exit and the three
/// fork functions one at a time, with signals blocked. All other functions block signals
/// themselves.
///
/// Lock order, outermost first: round_, the list of producers, a producer's guard, the sampler of
/// waits, aggregates, the ring file, leftovers, the clock. No other lock is taken while the lock of
/// names or buffers is held.
class LOTUS_DETAIL_PER_MODULE recorder {
 public:
  bool is_on() const noexcept { return state_.is_on(); }
  session_clock& clock() noexcept { return clock_; }
  const log_location& location() const noexcept { return files_.location(); }
  const name_entry& name(std::uint32_t id) const noexcept { return names_.entry(id); }
  const message_handler& messages() const noexcept { return messages_; }
  /// Returns the object that counts the recording's losses; null if nothing is being recorded.
  losses* losses_if_on() noexcept { return is_on() ? &losses_ : nullptr; }
  slow_path& slow() noexcept { return slow_; }

  // --- Beginning and ending a recording.

  /// Makes `handler` receive the messages from now on.
  void send_messages_to(void (*handler)(const char*)) noexcept { messages_.use(handler); }

  /// Begins a recording. Returns false, after reporting why, if the directory cannot be written.
  LOTUS_DETAIL_COLD bool open(const options& chosen) noexcept {
    const locked round{round_};
    if (!may_read_clocks()) {
      say("this program may not read clocks (PR_SET_TSC), and is not recorded");
      return false;
    }
    clock_.begin();
    cpu_.begin(chosen.cpu_time);
    if (rings_.open(chosen) != 0) return false;
    pace_.begin(chosen.drain_interval_ms);
    waits_.begin(chosen);
    snapshots_.begin(chosen);
    losses_.begin(dropped());
    state_.begin(chosen.when_full);
    drain_thread_.wake();
    return true;
  }

  LOTUS_DETAIL_COLD void close() noexcept {
    const locked round{round_};
    state_.end();
    waits_.end();
    follow_directory();
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
    files_.close_files(keep, losses_.of_recording(dropped()), true);
    files_.close();
    cpu_.begin(false);
    losses_.report(dropped(), recoverable);
  }

  /// Called when the process exits. From then on each record is written to its log immediately,
  /// because no later drain follows.
  LOTUS_DETAIL_COLD void close_at_exit() noexcept {
    const locked round{round_};
    if (!is_on()) return;
    state_.write_through();
    waits_.end();
    follow_directory();
    bool keep = !aggregates_.write(producers_);
    std::uint64_t recoverable = 0;
    producers_.for_each([&](producer& p) {
      const locked guard{p.guard};
      // A running thread may be storing a record or adding an aggregated call now. If such a thread
      // exists, the ring file is kept, so that the record or call can be recovered.
      const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
      const bool runs = tid != 0 && tid != thread_id() && !thread_is_dead(tid);
      if (runs && (p.attached || aggregate_store::has_any(p))) keep = true;
      if (!p.attached) return;
      if (!drain_or_leave(p, recoverable)) keep = true;
      slow_.open_lanes(p);
    });
    files_.close_files(keep, losses_.of_recording(dropped()), false);
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

  /// Takes a snapshot. Returns false, after reporting the reason, if no snapshot was taken.
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

  // --- Functions that threads call; slow() provides more of them.

  /// Returns this thread's producer (the state of a thread); null if none can be created.
  /// @param begins  whether all spans that the thread will record begin after this call.
  LOTUS_DETAIL_COLD producer* this_thread(bool begins) noexcept {
    if (this_thread_forks) return nullptr;
    const signals_blocked quiet;
    thread_start started;
    return producers_.for_this_thread(
        [this](producer& p) {
          if (!p.guard.try_lock()) return false;
          const bool done = !p.attached || (slow_.drain(p) == 0 && p.backlog_first == nullptr);
          p.guard.unlock();
          return done;
        },
        [this, begins, &started](producer& p) {
          return begins || rings_.may_reuse_ring(p, started);
        },
        [this](producer& p) {
          const locked guard{p.guard};
          p.storing.store(0, std::memory_order_relaxed);
          p.storing_nested.store(0, std::memory_order_relaxed);
          losses_.count(p.dropped.exchange(0, std::memory_order_relaxed));
          p.loader = 0;
          cpu_.give_up(p.cpu);
          aggregate_store::prepare_for_next_thread(p);
          rings_.prepare_for_next_thread(p);
        });
  }

  std::uint32_t intern(std::string_view name) noexcept {
    if (this_thread_forks) return unnamed_id;  // the record with this name is dropped anyway
    const std::uint32_t id = names_.intern(name);
    if (LOTUS_DETAIL_UNLIKELY(id == unnamed_id)) {
      if (is_on()) losses_.unnamed(names_.size());
    } else if (!files_.keeps_name(id)) {
      const signals_blocked quiet;
      files_.keep_names();
    }
    return id;
  }

  /// Assigns this thread's records to a loader. Returns the thread's previous loader.
  std::uint32_t enter_loader(std::uint32_t loader) noexcept {
    producer* const p = this_thread(true);
    return p == nullptr ? 0 : slow_.enter_loader(*p, loader);
  }

  /// Converts the times of a span that is about to be recorded from ns of CLOCK_MONOTONIC to ticks.
  given_ticks ticks_of_span(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const signals_blocked quiet;
    const session_clock::placed_span span = clock_.place(begin_ns, end_ns);
    // Before the span is recorded, the information file must state how far the span ends from now:
    // readers of the logs need this distance to know how far lines may be out of order.
    if (is_on() && !this_thread_forks) files_.report_span(span_distance{span.over_for_ns});
    return {span.begin_ticks, span.end_ticks};
  }

  // --- Functions that the session calls before and after a fork; see fork_guard.

  void before_fork() noexcept { forks_.before(); }
  void after_fork() noexcept { forks_.after(); }
  /// Discards the parent's state in a forked child. Must be called before after_fork().
  LOTUS_DETAIL_COLD void become_child() noexcept {
    forks_.become_child();
    losses_.forget();
    drain_thread_.forget();
    waits_.become_child();
  }

 private:
  /// See run_files::follow_directory().
  void follow_directory() noexcept {
    if (LOTUS_DETAIL_LIKELY(!files_.follow_directory())) return;
    producers_.for_each([this](producer& p) {
      const locked guard{p.guard};
      if (!p.attached) return;
      p.ring_in_file = false;
      p.ring_file_deleted = true;
      slow_.open_lanes(p);
      files_.add_thread(p.tid.load(std::memory_order_relaxed));
    });
  }

  /// Drains a thread for the last time. Returns false if some records are not in the logs. The
  /// caller holds the thread's guard.
  bool drain_or_leave(producer& p, std::uint64_t& recoverable) noexcept {
    if (slow_.drain(p) == 0) return true;
    const unwritten_records left = rings_.leave(p);
    recoverable += left.recoverable;
    losses_.count(left.lost);
    return false;
  }

  /// Runs one round of the drain thread. Returns the pause until the next round in ns.
  LOTUS_DETAIL_COLD std::uint64_t drain_round() noexcept {
    const locked round{round_};
    if (!is_on()) return 0;
    snapshot_triggers& triggers = snapshots_.triggers();
    const std::int64_t long_ns = triggers.wait_ns();
    const std::optional<std::uint64_t> long_ticks =
        long_ns == 0 ? std::nullopt : clock_.ticks_in(long_ns);
    const std::int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    follow_directory();
    const bool roll_dead = rings_.retention().should_roll_dead();
    producers_.for_each([&](producer& p) {
      // A thread that has filled its ring since the last round drained the ring itself, while the
      // records were in its CPU cache. Draining the ring here too would only make that thread wait.
      const bool drained = p.drained_itself.exchange(false, std::memory_order_relaxed);
      if (drained && !long_ticks) return;
      const locked guard{p.guard};
      if (!p.attached) return;
      const std::uint64_t records = p.ring->used();
      if (!drained && slow_.drain(p) == 0 && roll_dead && is_free_or_dead(p)) {
        rings_.retention().roll_dead(files_.logs_folder(), p);
      }
      ring_file::make_writable(*p.ring, 2 * records);
      if (long_ticks) triggers.look_at_wait(p, *long_ticks);
    });
    rings_.keep_limits();
    files_.add_due_cpu_time();
    waits_.keep_running();
    files_.keep_own_blocks();
    files_.reports().round_took(files_.location(), clock_ns(CLOCK_MONOTONIC) - began_ns);
    snapshots_.take_if_triggered([this] { flush(); });
    snapshots_.answer_request();
    return std::uint64_t{pace_.next_ms(files_.recover_leftovers())} * 1'000'000;
  }

  /// Held by each drain round and snapshot, so that no recording begins or ends meanwhile.
  mutex round_;
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
  background_thread drain_thread_{
      "lotus-drain",
      [](void* self) noexcept { return static_cast<recorder*>(self)->drain_round(); }, this};
  wait_sampler waits_{files_, clock_, producers_};
  slow_path slow_{state_, rings_, aggregates_, cpu_, drain_thread_};
  recording_snapshots snapshots_{files_, rings_, aggregates_, producers_, waits_};
  fork_guard forks_{{state_, round_, producers_, rings_, aggregates_, files_, clock_, names_, cpu_,
                     slow_, waits_}};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_HPP

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The session of this process, created at first use and never destroyed. Lock order: control_ is
/// locked before any lock of the recorder. While the lock of modules_ is held, no other lock is
/// taken.
class LOTUS_DETAIL_PER_MODULE session {
 public:
  static session& instance() noexcept { return *instance_; }
  static bool exists() noexcept { return instance_ != nullptr; }
  /// Returns the session, or null in a child process that was created without fork handlers (_Fork,
  /// clone). Such a child has a copy of its parent's session: it shares the parent's ring file, and
  /// copied locks may stay locked forever.
  static session* of_this_process() noexcept {
    session* const s = instance_;
    return LOTUS_DETAIL_LIKELY(s->process_.is_this() || this_thread_forks) ? s : nullptr;
  }
  /// Returns of_this_process(), for functions that record something. If the result is null, also
  /// reports once that nothing is recorded.
  static session* to_record() noexcept {
    session* const s = of_this_process();
    if (s == nullptr) instance().report_foreign_process();
    return s;
  }
  /// Creates the session, unless this shared object has already created one. (A second call comes
  /// only if shared objects cannot find each other's session.)
  /// @param table  the functions through which shared objects call the session; must stay valid
  /// until the process exits.
  LOTUS_DETAIL_COLD static void make(const services& table) noexcept {
    if (instance_ != nullptr) return;
    // The session is never destroyed, because scopes may end after the destructors of static
    // objects. Its memory is static, because the process may be allowed no more memory.
    alignas(session) static unsigned char memory[sizeof(session)];
    instance_ = new (memory) session{table};
    instance_->process_.claim();
    this_module_at_forks.before = before_fork;
    this_module_at_forks.after_in_parent = after_fork_in_parent;
    this_module_at_forks.after_in_child = after_fork_in_child;
    this_module_at_forks.in_own_process = []() noexcept { return instance_->process_.is_this(); };
  }

  recorder& records() noexcept { return recorder_; }
  /// Reserves `async_ids_at_once` consecutive ids for asynchronous operations, which are unique
  /// within this process, and returns the first.
  std::uint32_t take_async_ids() noexcept { return async_ids_.fetch_add(async_ids_at_once); }

  LOTUS_DETAIL_COLD void join(module_state& m, bool environment_counts) noexcept {
    choose_annotation();  // called before any lock is taken, because it may load a library
    heap_.find();
    const signals_blocked quiet;
    // pin_module_of() needs the dynamic loader's lock. The thread that holds that lock may be
    // running a static constructor that records, so no lock of the session may be held here.
    if (!pinned_.exchange(true)) pin_module_of(&instance_);
    if (this_thread_forks) return;  // the next scope will join the session
    const locked control{control_};
    if (environment_counts && !environment_read_) start_as_environment_says();
    modules_.tell(m, table_, recorder_.clock().hardware(), mode());
    // If another thread started recording before heap_.find() had found liblotus_memory.so, that
    // recording does not count allocations yet.
    if (recorder_.is_on()) heap_.begin_where_missed();
    if (annotation_wanted() || heap_.on()) modules_.set_mode(mode());
  }

  LOTUS_DETAIL_COLD void leave(module_state& m) noexcept {
    const signals_blocked quiet;
    if (&m != &this_module) return modules_.remove(m);
    // Here `m` belongs to the shared object that contains the session's code. That object is never
    // unloaded, so leave() is called for it only when the process exits.
    const locked control{control_};
    if (recorder_.is_on()) end_heap();
    recorder_.close_at_exit();
  }

  bool start(const options& chosen) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) return already_recording(chosen);
    end_current_recording();
    return begin(chosen);
  }

  /// @param steps  selects the recorded steps; the session keeps the listener of `steps` alive.
  bool start_steps(const options& chosen, const schedule& steps) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    if (is_recording_on_request()) {
      already_recording(chosen);
      return false;
    }
    end_current_recording();
    if (!steps_.start(chosen, steps)) return false;
    return !steps_.active() || begin(steps_.of_active());
  }

  LOTUS_DETAIL_COLD bool step(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    if (!steps_.running()) return false;
    const step_window before = steps_.window();
    const bool recorded = steps_.active() && recorder_.is_on();
    const bool notified = recorded && steps_.fill(notice);
    steps_.advance();
    if (steps_.window() == before) return false;
    end();
    if (steps_.active()) begin(steps_.of_active());
    return notified;
  }

  bool stop(step_notice& notice) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    environment_read_ = true;
    const bool notified = steps_.active() && recorder_.is_on() && steps_.fill(notice);
    end();
    steps_.stop();
    return notified;
  }

  void annotate_torch(const annotation_calls& calls) noexcept {
    const signals_blocked quiet;
    const locked control{control_};
    torch_annotation.store(&calls, std::memory_order_release);
    if (annotation_wanted()) modules_.set_mode(mode());
  }

  /// Returns the name in a tag, or the name of the tag's kind if tags of that kind contain no name.
  std::string_view name_in(record_tag tag) const noexcept {
    const record_kind& kind = kind_of(tag);
    return has_name(kind) ? recorder_.name(name_of(kind, tag)).raw() : kind.task();
  }

  void begin_task_of(record_tag tag) noexcept {
    const record_kind& kind = kind_of(tag);
    if (!has_name(kind)) {
      std::optional<std::uint64_t> batch;
      if (is_of_batch(kind) && tag.value() != unknown_batch) batch = tag.value();
      return begin_task(kind.task(), kind_handles_[static_cast<std::uint8_t>(kind.kind)], batch);
    }
    const name_entry& name = recorder_.name(name_of(kind, tag));
    if (kind.kind == event_kind::range) return begin_range(name.raw(), tag);
    const auto number = static_cast<std::uint32_t>(tag.value());
    if (kind.kind == event_kind::async_segment) {
      return begin_async_task(name.raw(), name.task_handle, number);
    }
    const bool numbered = kind.kind == event_kind::stage && number != number_not_in_tag;
    begin_task(name.raw(), name.task_handle,
               numbered ? std::optional<std::uint64_t>{number} : std::nullopt);
  }
  static void end_task_of(record_tag tag) noexcept {
    if (tag.kind() != event_kind::async_segment) return end_task();
    end_async_task(static_cast<std::uint32_t>(tag.value()));
  }

  /// Whether allocations are attributed to records with this tag. Allocations in ranges and
  /// aggregated scopes are attributed to the enclosing operation.
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

  /// Begins a lotus::range on another profiler's timeline, where the range's number is part of its
  /// name.
  static void begin_range(std::string_view name, record_tag tag) noexcept {
    const auto number = static_cast<std::uint32_t>(tag.value());
    char text[256 + 24];
    const std::size_t length = name.size() < 256 ? name.size() : 256;
    std::memcpy(text, name.data(), length);
    const char* const end =
        number == number_not_in_tag ? text + length : put_number_slow(text + length, number);
    std::atomic<void*> handle{nullptr};
    begin_task({text, static_cast<std::size_t>(end - text)}, handle);
  }

  // --- The caller of the following functions holds control_.

  void start_as_environment_says() noexcept {
    environment_read_ = true;
    const char* const log_file = environment_text(variable::log_file);
    if (log_file == nullptr) return;
    options chosen;
    chosen.log_file = log_file;
    started_by_environment_ = begin(chosen);
  }

  /// Whether the program started the current recording by start() without a schedule. Such a
  /// recording may be ended only by stop().
  bool is_recording_on_request() const noexcept {
    return recorder_.is_on() && !started_by_environment_ && !steps_.running();
  }

  /// Ends the current recording, so that another start() can begin a new one.
  void end_current_recording() noexcept {
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

  /// Reports that the variable is not used, if it is set to something other than what the program
  /// has chosen.
  static void say_if_unused(variable which, std::uint64_t chosen, const char* member) noexcept {
    std::uint64_t number = 0;
    if (!environment_number(which, number, say_of_variable) || number == chosen) return;
    say("%s=%llu is not used, because the program sets options::%s to %llu", row_of(which).name,
        static_cast<unsigned long long>(number), member, static_cast<unsigned long long>(chosen));
  }

  /// Uses the values of environment variables for those settings that the program has not chosen,
  /// and reports settings that contradict each other.
  static void resolve(options& chosen) noexcept {
    if (chosen.keep_bytes == 0) {
      chosen.keep_bytes = number_setting(variable::keep_bytes);
    } else {
      say_if_unused(variable::keep_bytes, chosen.keep_bytes, "keep_bytes");
    }
    if (chosen.wait_samples_per_s < 0) {
      chosen.wait_samples_per_s =
          static_cast<std::int32_t>(number_setting(variable::wait_samples_per_s));
    } else {
      say_if_unused(variable::wait_samples_per_s,
                    static_cast<std::uint64_t>(chosen.wait_samples_per_s), "wait_samples_per_s");
    }
    constexpr std::size_t compact = 1;  // index of "compact" in the variable's list of words
    const bool kept = chosen.keep_bytes != 0 || chosen.keep_ms != 0;
    if (environment_word(variable::format, 0, say_of_variable) == compact) {
      chosen.format = log_format::compact;
    } else if (chosen.format == log_format::automatic) {
      const bool is_text = !kept || environment_text(variable::format) != nullptr;
      chosen.format = is_text ? log_format::text : log_format::compact;
    } else if (chosen.format == log_format::compact &&
               environment_text(variable::format) != nullptr) {
      say("%s=text is not used, because the program sets options::format to compact",
          row_of(variable::format).name);
    }
    if (chosen.keep_ms != 0 && chosen.keep_ms < chosen.drain_interval_ms) {
      say("options::keep_ms is %u, less than drain_interval_ms, which is %u: records may be "
          "deleted as soon as they are written",
          chosen.keep_ms, chosen.drain_interval_ms);
    }
    keep_as_before(chosen);
  }

  /// Applies the limits that deprecated members of options set. Of two limits, the smaller applies.
  static void keep_as_before(options& chosen) noexcept {
    const std::uint64_t bytes = chosen.max_bytes.value;
    const std::uint64_t ms = std::uint64_t{chosen.max_age_s.value} * 1000;
    if (bytes != 0 && (chosen.keep_bytes == 0 || bytes < chosen.keep_bytes)) {
      chosen.keep_bytes = bytes;
    }
    if (ms != 0 && (chosen.keep_ms == 0 || ms < chosen.keep_ms)) {
      chosen.keep_ms = static_cast<std::uint32_t>(ms < UINT32_MAX ? ms : UINT32_MAX);
    }
  }

  LOTUS_DETAIL_COLD bool begin(options chosen) noexcept {
    recorder_.send_messages_to(chosen.on_message);
    resolve(chosen);
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

  // --- Fork handlers, which leave a consistent session in the parent and in the child.

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

  /// Reports once, on stderr, that this process cannot record. Reports nothing if the program has a
  /// message handler: the handler might wait forever for a lock that was locked when the process
  /// was copied.
  LOTUS_DETAIL_COLD void report_foreign_process() noexcept {
    if (foreign_reported_.exchange(true)) return;
    say("this process was created without fork handlers (by _Fork or clone), so nothing is "
        "recorded in it: use fork()");
  }

  /// The tag under whose name the state of the heap is recorded if no operation has begun yet.
  static constexpr record_tag no_unit{event_kind::batch_preprocessed, 0};

  static inline session* instance_ = nullptr;

  const services& table_;
  own_process process_;
  std::atomic<bool> foreign_reported_{false};
  mutex control_;
  std::atomic<bool> pinned_{false};
  bool environment_read_ = false;
  bool started_by_environment_ = false;
  /// The handle of each record kind's name in another profiler's annotation interface.
  std::atomic<void*> kind_handles_[record_kinds.size()]{};
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

/// Returns the table of the functions with which shared objects call the session. In a child
/// process created without fork handlers (_Fork, clone), most of them do nothing.
constexpr services make_service_table() noexcept {
  services s{};
  s.this_thread = [](bool begins) noexcept -> producer* {
    session* const own = session::to_record();
    producer* const p = own == nullptr ? nullptr : own->records().this_thread(begins);
    if (p != nullptr || begins) return p;
    // The caller cannot store its record, and has no producer that counts it.
    if (losses* const of = session::instance().records().losses_if_on()) of->count(1);
    return nullptr;
  };
  s.push_slow = [](producer& p, const record& r) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().push(p, r);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  s.push_nested = [](producer& p, const record& r) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().push_nested(p, r);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  s.aggregate_slow = [](producer& p, const aggregate_call& call) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().aggregate(p, call);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
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
    losses* const own_losses = own == nullptr ? nullptr : own->records().losses_if_on();
    if (own_losses != nullptr) own_losses->refused_batch(number);
  };
  s.enter_loader = [](std::uint32_t loader) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? 0 : own->records().enter_loader(loader);
  };
  s.get_ring = [](producer& p) noexcept {
    if (session* const own = session::of_this_process()) own->records().slow().get_ring(p);
  };
  s.read_cpu = [](producer& p, cpu_watch& watch, const off_cpu_window& in) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? off_cpu_time{} : own->records().slow().read_cpu(p, watch, in);
  };
  s.take_async_ids = []() noexcept { return session::instance().take_async_ids(); };
  s.ticks_of_span = [](std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? given_ticks{} : own->records().ticks_of_span(begin_ns, end_ns);
  };
  s.crossed_threads = [](record_tag tag) noexcept {
    session* const own = session::of_this_process();
    losses* const own_losses = own == nullptr ? nullptr : own->records().losses_if_on();
    if (own_losses != nullptr) own_losses->crossed_threads(own->name_in(tag));
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
    // In a child without fork handlers, the program's handler could wait forever for a lock.
    session* const own = session::of_this_process();
    return own != nullptr && own->records().messages().deliver(line);
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
#if defined(LOTUS_IMPLEMENTATION)
// Implements the C functions of lotus/lotus.h.
#ifndef LOTUS_ENGINE_C_CALLS_HPP
#define LOTUS_ENGINE_C_CALLS_HPP

#if LOTUS_SUPPORTED
#endif

/* Records where a program in C, or in C++ before C++17, spends its time. Programs in C++17 include
 * lotus/lotus.hpp instead, which offers more; both may be used in one program.
 *
 *   static lotus_name resize = LOTUS_NAME("Resize");
 *   lotus_span span = lotus_begin(&resize);
 *   ...
 *   lotus_end(&span);
 *
 * The functions are in the compiled library (lotus::lotus), or in the C++17 file of the program
 * that defines LOTUS_IMPLEMENTATION and includes lotus/lotus.hpp. They never fail: if nothing is
 * being recorded, they do nothing. Thread safety: any thread may call each of them; a lotus_span
 * belongs to the thread that began it. With LOTUS_DISABLE they do nothing, and lotus_start()
 * returns 1. */
/* NOLINTBEGIN(modernize-*, hicpp-*, bugprone-macro-parentheses): this file is also C. */
#ifndef LOTUS_LOTUS_H
#define LOTUS_LOTUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of an operation, stage or counter. Use a static variable for each name, because the
 * library stores in it the id of the name. */
typedef struct lotus_name {
  const char* text; /* must stay valid */
  uint64_t id;
} lotus_name;
#define LOTUS_NAME(text) {text, 0}

/* A span that has begun. End it with the function that is named where it begins, or discard it. */
typedef struct lotus_span {
  uint64_t begin_ticks; /* 0: nothing is recorded */
  uint64_t tag;
  uint64_t number;
} lotus_span;

#if defined(LOTUS_DISABLE) && !defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_C(type, declaration, result) \
    static __inline__ type declaration {            \
      return result;                                \
    }
  #define LOTUS_DETAIL_C_VOID(declaration, unused) \
    static __inline__ void declaration {           \
      unused;                                      \
    }
static const lotus_span lotus_no_span = {0, 0, 0};
#else
  #define LOTUS_DETAIL_C(type, declaration, result) type declaration;
  #define LOTUS_DETAIL_C_VOID(declaration, unused) void declaration;
#endif

/* Starts recording to logs with this prefix, such as "run/lotustrace_log"; NULL: the default, and
 * the environment variable LOTUS_LOG_FILE. Returns 1 if the process is now recording, otherwise 0,
 * after a message with the reason. */
LOTUS_DETAIL_C(int, lotus_start(const char* log_file), ((void)log_file, 1))
/* Ends recording and writes all records to the logs. A program need not call it before it exits. */
LOTUS_DETAIL_C_VOID(lotus_stop(void), (void)0)

/* Begins an operation; lotus_end() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin(lotus_name* name), ((void)name, lotus_no_span))
/* Begins the work of a stage of the pipeline on a batch or item; lotus_end() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_stage(lotus_name* name, uint64_t number),
               ((void)name, (void)number, lotus_no_span))
/* Begins to build a batch in a worker; lotus_end_batch() ends it, when its number is known. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_batch(void), lotus_no_span)
/* Begins the consumer's wait for a batch; lotus_end_wait() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_wait(void), lotus_no_span)

/* End a span and record it, on the thread that began it. Afterwards the span may be used for
 * another one. `number` is the batch's number in its epoch; a batch with a number of 2^56 or more
 * is not recorded but counted. */
LOTUS_DETAIL_C_VOID(lotus_end(lotus_span* span), (void)span)
LOTUS_DETAIL_C_VOID(lotus_end_batch(lotus_span* span, uint64_t number), ((void)span, (void)number))
LOTUS_DETAIL_C_VOID(lotus_end_wait(lotus_span* span, uint64_t number), ((void)span, (void)number))
/* Ends a span of any kind without recording it, for example because there are no more data. */
LOTUS_DETAIL_C_VOID(lotus_discard(lotus_span* span), (void)span)

/* Records that the consumer has received this batch and begins to work on it. */
LOTUS_DETAIL_C_VOID(lotus_consumed(uint64_t number), (void)number)
/* Records that an item becomes part of a batch. */
LOTUS_DETAIL_C_VOID(lotus_takes(uint64_t batch, uint64_t item), ((void)batch, (void)item))
/* Names the calling thread, in lotus-tool and for debuggers; of longer names the first 15 bytes
 * count. */
LOTUS_DETAIL_C_VOID(lotus_thread_name(const char* name), (void)name)
/* Sets a counter, such as the depth of a queue, to a value in whatever unit the program uses. */
LOTUS_DETAIL_C_VOID(lotus_count(lotus_name* name, int64_t value), ((void)name, (void)value))

#undef LOTUS_DETAIL_C
#undef LOTUS_DETAIL_C_VOID

#ifdef __cplusplus
}
#endif

#endif /* LOTUS_LOTUS_H */
/* NOLINTEND(modernize-*, hicpp-*, bugprone-macro-parentheses) */

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

// lotus_name and lotus_span contain a tag as a number.
inline record_tag tag_from(std::uint64_t word) noexcept {
  return {static_cast<event_kind>(word >> record_tag::value_bits), word};
}
inline std::uint64_t word_of(record_tag tag) noexcept {
  return static_cast<std::uint64_t>(tag.kind()) << record_tag::value_bits | tag.value();
}

/// Returns the tag of an operation with this name. Like known_tag, stores it after the first call.
inline record_tag tag_of(lotus_name& name) noexcept {
  const record_tag known = tag_from(__atomic_load_n(&name.id, __ATOMIC_RELAXED));
  if (LOTUS_DETAIL_LIKELY(!known.empty())) return known;
  const record_tag tag = operation_tag(name.text == nullptr ? std::string_view{} : name.text);
  if (tag.value() != unnamed_id) __atomic_store_n(&name.id, word_of(tag), __ATOMIC_RELAXED);
  return tag;
}

LOTUS_DETAIL_ALWAYS_INLINE lotus_span begin_c_span(record_tag tag, std::uint64_t number) noexcept {
  measured_span measured;
  measured.begin(tag);
  return {measured.begin_ticks(), word_of(tag), number};
}

/// Ends a batch or a wait, whose number was not known before.
template <event_kind Kind>
void end_numbered(lotus_span& span, std::uint64_t number) noexcept {
  measured_span measured{span.begin_ticks};
  if (!measured.runs()) return;
  look_at_batch();
  if constexpr (Kind == event_kind::batch_wait) publish_end_of_wait();
  measured.end(batch_tag(Kind, number));
  span.begin_ticks = 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

extern "C" {

LOTUS_DETAIL_SEAM int lotus_start(const char* log_file) {
  const bool started = log_file == nullptr ? lotus::start() : lotus::start(log_file);
  return started ? 1 : 0;
}
LOTUS_DETAIL_SEAM void lotus_stop() {
  lotus::stop();
}

LOTUS_DETAIL_SEAM lotus_span lotus_begin(lotus_name* name) {
  if (!lotus::detail::is_recording()) return {};
  return lotus::detail::begin_c_span(lotus::detail::tag_of(*name), 0);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_stage(lotus_name* name, std::uint64_t number) {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  const auto id = static_cast<std::uint32_t>(tag_of(*name).value());
  const bool fits = number < number_not_in_tag;
  return begin_c_span(
      {event_kind::stage, id, fits ? static_cast<std::uint32_t>(number) : number_not_in_tag},
      number);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_batch() {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  look_at_batch();
  return begin_c_span({event_kind::batch_preprocessed, unknown_batch}, 0);
}
LOTUS_DETAIL_SEAM lotus_span lotus_begin_wait() {
  using namespace lotus::detail;
  if (!is_recording()) return {};
  look_at_batch();
  publish_wait();
  return begin_c_span({event_kind::batch_wait, unknown_batch}, 0);
}

LOTUS_DETAIL_SEAM void lotus_end(lotus_span* span) {
  using namespace lotus::detail;
  measured_span measured{span->begin_ticks};
  if (!measured.runs()) return;
  const record_tag tag = tag_from(span->tag);
  if (LOTUS_DETAIL_UNLIKELY(span->number >= number_not_in_tag)) {
    push(span->begin_ticks, span->number, {event_kind::stage_number, tag.value() >> 32});
  }
  measured.end(tag);
  span->begin_ticks = 0;
}
LOTUS_DETAIL_SEAM void lotus_end_batch(lotus_span* span, std::uint64_t number) {
  lotus::detail::end_numbered<lotus::detail::event_kind::batch_preprocessed>(*span, number);
}
LOTUS_DETAIL_SEAM void lotus_end_wait(lotus_span* span, std::uint64_t number) {
  lotus::detail::end_numbered<lotus::detail::event_kind::batch_wait>(*span, number);
}
LOTUS_DETAIL_SEAM void lotus_discard(lotus_span* span) {
  using namespace lotus::detail;
  measured_span measured{span->begin_ticks};
  if (!measured.runs()) return;
  const record_tag tag = tag_from(span->tag);
  if (tag.kind() == event_kind::batch_wait) publish_end_of_wait();
  measured.forget(tag);
  span->begin_ticks = 0;
}

LOTUS_DETAIL_SEAM void lotus_consumed(std::uint64_t number) {
  lotus::batch_consumed(number);
}
LOTUS_DETAIL_SEAM void lotus_takes(std::uint64_t batch, std::uint64_t item) {
  lotus::batch_takes(batch, item);
}
LOTUS_DETAIL_SEAM void lotus_thread_name(const char* name) {
#if LOTUS_SUPPORTED
  prctl(PR_SET_NAME, name == nullptr ? "" : name);
#else
  static_cast<void>(name);
#endif
}
LOTUS_DETAIL_SEAM void lotus_count(lotus_name* name, std::int64_t value) {
  if (lotus::detail::is_recording()) lotus::detail::count(lotus::detail::tag_of(*name), value);
}

}  // extern "C"

#endif  // LOTUS_ENGINE_C_CALLS_HPP

#endif

#endif  // LOTUS_ENGINE_ENGINE_HPP

#endif
