# One test program for each header of the library, named after it.
lotus_test(clock clock_test.cpp)
lotus_test(names names_test.cpp)
lotus_test(writer writer_test.cpp)
lotus_test(scope scope_test.cpp)
lotus_test(batch batch_test.cpp)
lotus_test(compose compose_test.cpp)
lotus_test(session session_test.cpp)

# What happens when things go wrong: faults/.
add_executable(victim faults/victim.cpp)
target_link_libraries(victim PRIVATE lotus_own_code)
lotus_test(kill faults/kill_test.cpp PROGRAMS victim NOT_SINGLE LABELS faults)
lotus_test(fork faults/fork_test.cpp NOT_SINGLE LABELS faults no_tsan)
lotus_test(signal faults/signal_test.cpp NOT_SINGLE LABELS faults)
lotus_test(disk faults/disk_test.cpp NOT_SINGLE LABELS faults)
