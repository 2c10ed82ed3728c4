#!/bin/sh
# Packs @COUNT@ shards as a Slurm array, and merges them after all succeeded.
# Usage: STORE=/shared/store IMAGE=/shared/data.@EXTENSION@ sh PLAN/slurm.sh
# Slurm's MaxArraySize must be above @LAST@ (its default is 1001). A task that fails is requeued 5 times,
# unless it exits with 2 (wrong request), 4 (unsupported), or 5 (the source changed since planning).
set -eu
: "${STORE:?a folder that all nodes see}" "${IMAGE:?the image to write}"
PLAN=$(cd "$(dirname "$0")" && pwd)
CPUS=${CPUS:-4}
export PLAN STORE IMAGE
array=$(sbatch --parsable --job-name=packfs-shards --array="0-@LAST@%${PARALLEL:-256}" --requeue --open-mode=append \
    --cpus-per-task="$CPUS" --output="${LOGS:-.}/packfs-%A-%a.log" --export=ALL <<'JOB'
#!/bin/sh
packfs pack-shard "$PLAN" "$SLURM_ARRAY_TASK_ID" --to "$STORE" --jobs "$SLURM_CPUS_PER_TASK" --progress json
code=$?
case $code in 0|2|4|5) exit $code;; esac
[ "${SLURM_RESTART_COUNT:-0}" -lt 5 ] || exit $code
echo "exit code $code: tried again" >&2
exec scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
JOB
)
sbatch --parsable --job-name=packfs-merge --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes \
    --output="${LOGS:-.}/packfs-merge-%j.log" --export=ALL <<'JOB'
#!/bin/sh
exec packfs merge "$PLAN" --from "$STORE" --output "$IMAGE"
JOB
