// Workers that are slow only because they wait for CPUs or locks that all of them share.
#ifndef LOTUS_TOOL_FINDINGS_FACTS_WAITING_WORKERS_HPP
#define LOTUS_TOOL_FINDINGS_FACTS_WAITING_WORKERS_HPP

namespace lotus::tool {

struct run_facts;
struct slow_worker;

/// Returns by which factor a slow worker's batches take longer than those of the others without the
/// waits for a CPU and, if its work mostly waits for a lock, without all blocked time: a lock or a
/// scheduler may prefer some of several equal threads. Returns slow_worker::slower_than if CPU
/// times are unknown, or if the thread is bound to CPUs, since then it differs from others.
double slower_by_work(const run_facts& f, const slow_worker& worker);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_FACTS_WAITING_WORKERS_HPP
