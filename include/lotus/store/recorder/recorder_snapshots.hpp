// A running recording is put aside, and goes on.
#ifndef LOTUS_STORE_RECORDER_RECORDER_SNAPSHOTS_HPP
#define LOTUS_STORE_RECORDER_RECORDER_SNAPSHOTS_HPP

#include <string_view>

#include "lotus/base/fork.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"
#include "lotus/recovery/snapshot_folder.hpp"
#include "lotus/store/recorder.hpp"
#include "lotus/store/snapshot.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline bool recorder::snapshot(std::string_view reason) noexcept {
  const signals_blocked quiet;
  const locked round{round_};
  if (is_on()) return take_snapshot(reason);
  say("no snapshot: nothing is being recorded");
  return false;
}

inline bool recorder::take_snapshot(std::string_view reason) noexcept {
  storage_.retention().hold(true);
  storage_.retention().roll_all();
  flush();
  const own_aggregates counted{this, [](void* self, int folder) noexcept {
                                 auto& of = *static_cast<recorder*>(self);
                                 return of.storage_.copy_aggregates(of.producers_, folder);
                               }};
  const bool made = make_snapshot(storage_.logs_folder(), storage_.location(), reason,
                                  triggers_.most_bytes(), counted);
  storage_.retention().hold(false);
  return made;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDER_RECORDER_SNAPSHOTS_HPP
