// Provides two kinds of scopes: scope_with_arguments also records the operation's arguments as
// text; aggregated_scope only counts operations and sums up their durations.
#ifndef LOTUS_SCOPE_ARGUMENTS_HPP
#define LOTUS_SCOPE_ARGUMENTS_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/aggregates/aggregate_calls.hpp"
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
