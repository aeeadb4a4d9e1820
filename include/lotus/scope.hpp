// Provides the class scope, which records the time up to the end of its block, and its base class.
#ifndef LOTUS_SCOPE_HPP
#define LOTUS_SCOPE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/record.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/record/hub.hpp"
  #include "lotus/record/thread_ring.hpp"
#else
  #include "lotus/record/unsupported.hpp"
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
