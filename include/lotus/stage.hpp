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

/// Converts to what a pointer to T converts to, if that is a pointer: not to bool.
template <class T>
struct pointer_only {
  template <class To,
            std::enable_if_t<std::is_pointer_v<To> && std::is_convertible_v<T, To>, int> = 0>
  operator To() const noexcept;
};

/// Whether it is known what a callable takes: neither a template nor overloaded.
template <class F, class = void>
inline constexpr bool has_one_signature =
    std::is_function_v<std::remove_pointer_t<F>> && !std::is_member_pointer_v<F>;
template <class F>
inline constexpr bool has_one_signature<F, std::void_t<decltype(&F::operator())>> = true;

/// Whether a projection takes these, no pointer among them as a bool.
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

/// Whether a value may be "no more": a pointer, an optional.
template <class T, class = void>
inline constexpr bool is_nullable = false;
template <class T>
inline constexpr bool is_nullable<T, std::void_t<decltype(static_cast<bool>(std::declval<T&>())),
                                                 decltype(*std::declval<T&>())>> = true;

/// Whether a projection takes what the value of this type points to. Pointers to members take
/// pointers as well, but no null pointer.
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
/// take those, with the result, or with what the result points to (a pointer or an optional that a
/// source returns). Gives an integer, or an optional one. Nothing is logged where there is none, or
/// where the result is null, as at the end of a source.
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
