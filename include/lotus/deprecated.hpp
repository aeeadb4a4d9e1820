// Provides the names of earlier versions, which the next version no longer has. Compilers say what
// to use instead; docs/changelog.md has a table of it.
#ifndef LOTUS_DEPRECATED_HPP
#define LOTUS_DEPRECATED_HPP

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lotus/base/call.hpp"
#include "lotus/batch.hpp"
#include "lotus/compose.hpp"
#include "lotus/config.hpp"
#include "lotus/record/operation_run.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/stage.hpp"

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
