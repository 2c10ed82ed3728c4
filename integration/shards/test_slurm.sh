#!/bin/sh
# Runs the job of `packfs plan --emit slurm` in a Slurm of its own on this machine, with trouble: the
# program of task 1 is killed while it packs, task 2 fails once, task 3 runs twice, and task 4 is
# requeued while it packs. The image must have the bytes of the one by the command line.
# Usage, as root, with Debian's slurm-wlm and munge: test_slurm.sh PACKFS DIR
set -eu
for tool in slurmctld slurmd munged; do
    command -v $tool > /dev/null || { echo "skipped: $tool is not installed"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd needs root"; exit 0; }
program=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d) daemons=
# Workers that were stopped would outlive Slurm.
trap 'kill $daemons; pkill -KILL -f "^$program pack-shard $work/" || true; wait; rm -rf "$work"' EXIT
cd "$work"
mkdir -m 700 munge state
mkdir bin spool logs tried
host=$(hostname -s)
cat > slurm.conf <<END
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket,cred_expire=10
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=1
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/logs/slurmctld
SlurmdLogFile=$work/logs/slurmd
SlurmctldPort=16817
SlurmdPort=16818
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
END
echo "CgroupPlugin=cgroup/v1" > cgroup.conf

# The tasks call this program: the first tries of some have trouble.
cat > bin/packfs <<END
#!/bin/sh
first=true
mkdir "$work/tried/\${SLURM_ARRAY_TASK_ID:-none}" 2> /dev/null || first=false
# The image has no name before it is complete, but its folder has one.
begun() {
    while kill -0 \$1 2> /dev/null && ! find "$work/store" -name '*.packfs-tmp' 2> /dev/null | grep -q .; do sleep 0.01; done
    sleep 0.2
}
case "\$first \${SLURM_ARRAY_TASK_ID:-none}" in
"true 1") "$program" "\$@" & begun \$!; kill -9 \$! || touch "$work/too_small"; wait \$!; exit 137;;
"true 2") exit 1;;
"true 3") "$program" "\$@" & "$program" "\$@"; wait \$!;;
"true 4") "$program" "\$@" & begun \$!; kill -STOP \$! || touch "$work/too_small"
    scontrol requeue "\${SLURM_ARRAY_JOB_ID}_4"; wait;;
*) exec "$program" "\$@";;
esac
END
chmod +x bin/packfs
export SLURM_CONF=$work/slurm.conf PATH="$work/bin:$PATH"
dd if=/dev/urandom of=munge/key bs=64 count=1 status=none
chmod 400 munge/key
munged --force --foreground --key-file=munge/key --socket=munge/socket --pid-file=munge/pid \
    --log-file=munge/log --seed-file=munge/seed > logs/munged.out 2>&1 &
daemons=$!
until [ -S munge/socket ]; do sleep 0.1; done
slurmctld -D -f slurm.conf > logs/slurmctld.out 2>&1 &
daemons="$daemons $!"
slurmd -D -f slurm.conf > logs/slurmd.out 2>&1 &
daemons="$daemons $!"
until sinfo --noheader --format=%T 2> /dev/null | grep -q idle; do sleep 0.5; done

"$program" plan "$source" --shards 8 --out plan --codec xz:9 --emit slurm -q
for index in 0 1 2 3 4 5 6 7; do "$program" pack-shard plan $index --to plain -q; done
"$program" merge plan --from plain -o plain.image -q

CPUS=1 STORE=$work/store IMAGE=$work/slurm.image LOGS=$work/logs sh plan/slurm.sh > /dev/null
while squeue --noheader | grep -q .; do sleep 0.5; done
[ ! -e too_small ] || { echo "DIR is too small: shards are complete before they can be killed"; exit 1; }
[ -e slurm.image ] || { tail -n 5 logs/*; exit 1; }
cmp plain.image slurm.image
echo "same image: $(stat -c %s slurm.image) bytes, $(cat logs/packfs-*.log | grep -c 'tried again') retries"
