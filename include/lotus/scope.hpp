// RAII scopes: one record for the time between two braces.
#ifndef LOTUS_SCOPE_HPP
#define LOTUS_SCOPE_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/process.hpp"
#include "lotus/record.hpp"
#include "lotus/thread.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// The tag under which an operation is recorded; empty where there was no memory for the name.
LOTUS_DETAIL_PER_MODULE inline record_tag operation_tag(std::string_view name) noexcept {
  const services* s = this_module.hub.load(std::memory_order_acquire);
  if (s == nullptr) s = &join_session(true);
  const std::uint32_t id = s->intern(name);
  return id == 0 ? record_tag{} : record_tag{event_kind::operation, id};
}

/// A place in the source with a fixed name, and the name's tag once it is known.
class call_site {
 public:
  explicit constexpr call_site(std::string_view name) noexcept : name_{name} {}

  record_tag tag() noexcept {
    const record_tag known = tag_.load(std::memory_order_relaxed);
    return LOTUS_DETAIL_LIKELY(!known.empty()) ? known : first_tag();
  }

 private:
  LOTUS_DETAIL_COLD record_tag first_tag() noexcept {
    const record_tag tag = operation_tag(name_);
    tag_.store(tag, std::memory_order_relaxed);
    return tag;
  }

  std::string_view name_;
  std::atomic<record_tag> tag_{record_tag{}};
};

/// The call site of the type `Here`, which has a static constexpr name(). A member of a hidden
/// template, since a static in an inline function would keep a plugin from unloading.
template <class Here>
struct LOTUS_DETAIL_PER_MODULE call_site_of {
  static call_site site;
};
template <class Here>
call_site call_site_of<Here>::site{Here::name()};

/// What all scopes share: measures from construction to destruction. Neither copied nor moved, and
/// only ever on the stack, for its end is the end of a block.
class span {
 public:
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 protected:
  /// @param make_tag  called where the span is measured; an empty tag: nothing is recorded.
  template <class MakeTag>
  LOTUS_DETAIL_ALWAYS_INLINE explicit span(MakeTag make_tag) noexcept {
    const recording mode = recording_mode();
    if (mode == recording::off) return;
    tag_ = LOTUS_DETAIL_LIKELY(mode == recording::on) ? make_tag() : rare_tag(make_tag);
    if (!tag_.empty()) begin_ticks_ = now_ticks();
  }

  LOTUS_DETAIL_ALWAYS_INLINE ~span() {
    if (tag_.empty()) return;
    const std::uint64_t end_ticks = now_ticks();
    const recording mode = recording_mode();
    if (LOTUS_DETAIL_LIKELY(mode == recording::on)) {
      push(begin_ticks_, end_ticks, tag_);
    } else if (mode == recording::annotated) {
      end_annotated(begin_ticks_, end_ticks, tag_);
    }
  }

 private:
  template <class MakeTag>
  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static record_tag rare_tag(MakeTag make_tag) noexcept {
    if (!is_recording()) return {};
    const record_tag tag = make_tag();
    if (recording_mode() == recording::annotated) begin_annotation(tag);
    return tag;
  }

  LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD static void end_annotated(std::uint64_t begin_ticks,
                                                                      std::uint64_t end_ticks,
                                                                      record_tag tag) noexcept {
    push(begin_ticks, end_ticks, tag);
    end_annotation(tag);
  }

  record_tag tag_;
  std::uint64_t begin_ticks_ = 0;
};

}  // namespace detail

/// Logs one operation, "S<name>", from here to the end of the block; see LOTUS_SCOPE.
/// Errors: none thrown. Thread safety: any thread; the scope itself belongs to one.
class scope : detail::span {
 public:
  /// @param name  interned by content: needs to live only for this call. Costs a hash and a
  /// look-up.
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(std::string_view name) noexcept
      : span{[name] { return detail::operation_tag(name); }} {}
  /// With a name known when compiled: its id is looked up once.
  LOTUS_DETAIL_ALWAYS_INLINE explicit scope(detail::call_site& site) noexcept
      : span{[&site] { return site.tag(); }} {}
  LOTUS_DETAIL_ALWAYS_INLINE ~scope() = default;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SCOPE_HPP
