#!/bin/sh
# Builds a filter in shards with several processes, as the tasks of a batch system would.
#
# Usage: shards.sh DIRECTORY PROCESSES SHARDS N RATE FILE...
#
# Each task reads all files and builds some of the shards, so it needs their memory only. A task that
# fails or is killed is run again, up to three times. The last step checks that all shards are there.
set -u
directory=$1 processes=$2 shards=$3 keys=$4 rate=$5
shift 5

# Task number $1, with the files after it. In a job array of Slurm, it is $SLURM_ARRAY_TASK_ID.
task() {
    first=$(($1 * shards / processes)) last=$((($1 + 1) * shards / processes - 1))
    shift
    # There may be more processes than shards.
    [ "$first" -le "$last" ] || return 0
    for try in 1 2 3; do
        umbel build --shards "$shards" -n "$keys" -p "$rate" --only "$first-$last" -j 1 \
            -o "$directory" "$@" && return
        echo "shards.sh: shards $first-$last failed at try $try" >&2
    done
    return 1
}

number=0 tasks=
while [ "$number" -lt "$processes" ]; do
    task "$number" "$@" &
    tasks="$tasks $!"
    number=$((number + 1))
done
for pid in $tasks; do
    wait "$pid" || exit 1
done
umbel build --shards "$shards" -n "$keys" -p "$rate" --complete -o "$directory"
