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
