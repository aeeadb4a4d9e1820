// Pipelines of stages: which batch, item or request a thread works for.
#ifndef LOTUS_STAGE_HPP
#define LOTUS_STAGE_HPP

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lotus/base/call.hpp"
#include "lotus/batch.hpp"
#include "lotus/config.hpp"
#include "lotus/record/record.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// A span with a number of 64 bits, most of which are small.
class numbered_span : span {
 protected:
  /// @param make_name  the tag of an operation; called where the span is measured.
  template <class MakeName>
  LOTUS_DETAIL_ALWAYS_INLINE numbered_span(MakeName make_name, std::uint64_t number) noexcept
      : span{[make_name, number] { return stage_tag(make_name(), number); }}, number_{number} {}
  /// An operation, as long as no number is given.
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
  /// Nothing is recorded.
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

/// A stage whose number may be known only when it ends; without one it is an operation.
class late_stage : numbered_span {
 public:
  explicit late_stage(record_tag operation) noexcept
      : numbered_span{[operation] { return operation; }} {}
  ~late_stage() = default;

  template <class Number>
  void number(const Number& number) noexcept {
    if constexpr (std::is_integral_v<Number>) {
      set_number(static_cast<std::uint64_t>(number));
    } else if (number) {
      this->number(*number);
    } else {
      forget();
    }
  }
};

/// What staged() returns: calls `Function`, numbered by `Number` of its arguments or its result.
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
    if constexpr (std::is_invocable_v<const Number&, const std::decay_t<Arguments>&...>) {
      stage.number(detail::call(number_, std::as_const(arguments)...));
      return detail::call(function, std::forward<Arguments>(arguments)...);
    } else {
      static_assert(std::is_invocable_v<const Number&, std::add_const_t<result>&>,
                    "staged: the projection takes neither the arguments of the function nor its "
                    "result");
      decltype(auto) made = detail::call(function, std::forward<Arguments>(arguments)...);
      stage.number(detail::call(number_, std::as_const(made)));
      return static_cast<result>(std::move(made));
    }
  }

  record_tag operation_;
  Number number_;
  Function function_;
};

/// A first argument that is a number.
struct argument_number {
  template <class Argument, class... Others>
  constexpr auto operator()(const Argument& number, const Others&...) const noexcept
      -> std::enable_if_t<std::is_integral_v<Argument>, Argument> {
    return number;
  }
};

}  // namespace detail

/// Scope: this thread works for batch (or item, or request) `number` in a stage of the pipeline. An
/// operation, "S<name>", that lotus-tool also takes for a part of that batch's way.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one. Cost: a number
/// of 2^32 - 1 or more takes a second record.
class stage : detail::numbered_span {
 public:
  /// @param name  interned by content: needs to live only for this call. Costs a hash and a
  /// look-up.
  LOTUS_DETAIL_ALWAYS_INLINE stage(std::string_view name, std::uint64_t number) noexcept
      : numbered_span{[name] { return detail::operation_tag(name); }, number} {}
  /// With a name known when compiled: its id is looked up once.
  template <class Here, bool Fixed>
  LOTUS_DETAIL_ALWAYS_INLINE stage(const detail::place<Here, Fixed>& place,
                                   std::uint64_t number) noexcept
      : numbered_span{[&place] { return place.tag(); }, number} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~stage() = default;
};

/// Wraps a function for a framework that calls it (a filter of oneTBB, a task of std::async): each
/// call is a stage.
/// @param name      interned by content: needs to live only for this call.
/// @param number    of the batch, item or request: called with the arguments, or, where it does not
/// take those, with the result. Gives an integer, or an optional one: nothing is logged then where
/// there is none, as at the end of a source.
/// @param function  what it throws passes through; it is logged up to there, where its number was
/// known before.
template <class Number, class Function>
auto staged(std::string_view name, Number number, Function function) {
  return detail::staged_function<Number, Function>{name, std::move(number), std::move(function)};
}

/// The same for a function whose first argument is the number.
template <class Function>
auto staged(std::string_view name, Function function) {
  return staged(name, detail::argument_number{}, std::move(function));
}

/// This item goes into that batch (a shuffle buffer, collation): then stages may number items.
/// @param batch, item  below 2^56, else it is dropped and counted.
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
