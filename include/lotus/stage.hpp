// Pipelines of stages: records on which batch, item or request a thread works.
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
