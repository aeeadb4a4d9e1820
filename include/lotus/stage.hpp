// Provides stages, which are scopes that record on which batch, item or request a thread works.
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

/// Records that this thread works on batch, item or request `number` in a stage of the pipeline,
/// from here to the end of the block. The log line is that of an operation, "S<name>"; lotus-tool
/// also shows the stage in the history of the batch. Errors: none thrown. Thread safety: any
/// thread; each scope object belongs to one thread. Cost: a number of 2^32 - 1 or more needs a
/// second record.
class stage : detail::numbered_span {
 public:
  /// @param name  copied into a table of names, so it needs to exist only during this call. Each
  /// call looks up the name in a hash table.
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
/// @param name  as for class stage: each call looks up the name. Exceptions propagate; the time up
/// to an exception is recorded.
template <class Function>
decltype(auto) in_stage(std::string_view name, std::uint64_t number, Function&& function) {
  const stage here{name, number};
  return detail::call(std::forward<Function>(function));
}

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
[[nodiscard]] auto staged(std::string_view name, Number number, Function function) {
  return detail::staged_function<Number, Function>{name, std::move(number), std::move(function)};
}

/// Wraps a function whose first argument is the number; see staged(name, number, function).
template <class Function>
[[nodiscard]] auto staged(std::string_view name, Function function) {
  return staged(name, detail::argument_number{}, std::move(function));
}

/// Records that item `item` becomes part of batch `batch`, for example in a shuffle buffer or in
/// collation. The stages before this point may then number their work by items.
/// @param batch, item  if one of them is 2^56 or more, the event is not recorded but counted in
/// dropped().
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
