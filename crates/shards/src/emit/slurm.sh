#!/bin/sh
# Packs @COUNT@ shards as a Slurm array, and merges them after all succeeded.
# Usage: STORE=/shared/store IMAGE=/shared/data.@EXTENSION@ sh PLAN/slurm.sh
# Slurm's MaxArraySize must be above @LAST@ (its default is 1001). Tasks that exit with 5 found a changed
# source, and are not worth a retry.
set -eu
: "${STORE:?a folder that all nodes see}" "${IMAGE:?the image to write}"
PLAN=$(cd "$(dirname "$0")" && pwd)
CPUS=${CPUS:-4}
export PLAN STORE IMAGE
array=$(sbatch --parsable --job-name=packfs-shards --array="0-@LAST@%${PARALLEL:-256}" --requeue \
    --cpus-per-task="$CPUS" --output="${LOGS:-.}/packfs-%A-%a.log" --export=ALL <<'JOB'
#!/bin/sh
exec packfs pack-shard "$PLAN" "$SLURM_ARRAY_TASK_ID" --to "$STORE" --jobs "$SLURM_CPUS_PER_TASK" --progress json
JOB
)
sbatch --parsable --job-name=packfs-merge --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes \
    --output="${LOGS:-.}/packfs-merge-%j.log" --export=ALL <<'JOB'
#!/bin/sh
exec packfs merge "$PLAN" --from "$STORE" --output "$IMAGE"
JOB
