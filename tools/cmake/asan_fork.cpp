// Takes AddressSanitizer's own locks at a fork, as its runtime does since LLVM 18
// (github.com/llvm/llvm-project/pull/75290). Before, a child that is forked while another thread
// allocates inherits the allocator's lock held, and its first allocation waits for ever.

#include <pthread.h>

#if !defined(__clang_major__) || __clang_major__ >= 18
  #error \
      "only for clang before 18: where the runtime takes its locks itself, this would wait for ever"
#endif

// The runtime's, linked into every program.
namespace __lsan {
void LockThreadRegistry();
void UnlockThreadRegistry();
void LockAllocator();
void UnlockAllocator();
}  // namespace __lsan
namespace __sanitizer {
void StackDepotLockAll();
void StackDepotUnlockAll();
}  // namespace __sanitizer

namespace {

void lock_runtime() {
  __lsan::LockThreadRegistry();
  __lsan::LockAllocator();
  __sanitizer::StackDepotLockAll();
}

void unlock_runtime() {
  __sanitizer::StackDepotUnlockAll();
  __lsan::UnlockAllocator();
  __lsan::UnlockThreadRegistry();
}

// Before all other constructors: what is registered first locks last and unlocks first, and the
// handlers of others may allocate.
__attribute__((constructor(101))) void lock_at_forks() {
  pthread_atfork(lock_runtime, unlock_runtime, unlock_runtime);
}

}  // namespace
