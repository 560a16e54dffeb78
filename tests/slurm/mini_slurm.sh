#!/usr/bin/env bash
# A private Slurm of one node with fake GPUs: no root, no system files, no systemd, no cgroups, no accounting.
#
#   mini_slurm.sh up FOLDER      start it; everything that it writes lies in FOLDER
#   . FOLDER/env                 let this shell talk to it
#   mini_slurm.sh down FOLDER    stop it
#
# Debian and Ubuntu: apt-get install --no-install-recommends slurm-wlm slurm-client slurmctld slurmd \
#     slurm-wlm-basic-plugins munge
# Ports: PORTS="<slurmctld> <slurmd>". The node claims more processors and memory than the machine may have, so that the
# pipeline's requests fit; nothing is bound or fenced off, but a job that outgrows its memory is killed.
set -euo pipefail

verb=${1:?up or down}
folder=$(realpath --canonicalize-missing "${2:?a folder}")
read -r control_port node_port <<<"${PORTS:-16817 16818}"
node=$(hostname -s)
PATH=$PATH:/usr/sbin:/sbin
DAEMONS=(slurmd slurmctld munged)

running() { # the daemons' process ids that are still alive
    local daemon pid
    for pid in "$@"; do
        if grep -q '^State:[[:space:]]*[^ZX]' "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
    done
}

down() {
    local pids=() daemon
    for daemon in "${DAEMONS[@]}"; do # read them all first: a daemon unlinks its pid file before it ends
        if [ -s "$folder/run/$daemon.pid" ]; then pids+=("$(tr -dc 0-9 <"$folder/run/$daemon.pid")"); fi
    done
    for signal in TERM KILL; do
        for pid in $(running "${pids[@]}"); do kill "-$signal" "$pid" 2>/dev/null || continue; done
        for _ in $(seq 100); do
            if [ -z "$(running "${pids[@]}")" ]; then return; fi
            sleep 0.1
        done
    done
}

configure() {
    # A device file makes Slurm set CUDA_VISIBLE_DEVICES; which device it is does not matter, only that they differ.
    printf 'NodeName=%s Name=gpu Type=fake File=%s\n' "$node" /dev/null "$node" /dev/zero >"$folder/gres.conf"
    cat >"$folder/slurm.conf" <<END
ClusterName=mini
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$control_port
SlurmdPort=$node_port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
CredType=cred/munge
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobs.txt
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MinJobAge=3600
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=8 RealMemory=256000 Gres=gpu:fake:2 State=UNKNOWN
PartitionName=cpu Nodes=$node Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes=$node Default=NO MaxTime=1-0 State=UP
END
    # Inside a job Snakemake drops the SLURM_ variables, SLURM_CONF among them, before it calls srun.
    printf '#!/bin/sh\nSLURM_CONF="%s" exec "%s" "$@"\n' "$folder/slurm.conf" "$(command -v srun)" >"$folder/bin/srun"
    chmod 755 "$folder/bin/srun"
    printf 'export SLURM_CONF="%s" PATH="%s:$PATH"\n' "$folder/slurm.conf" "$folder/bin" >"$folder/env"
}

up() {
    mkdir -p "$folder"/{bin,log,run,spool,state}
    chmod 755 "$folder" "$folder"/*/
    if ! [ -s "$folder/munge.key" ]; then (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key"); fi
    munged --force --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" \
        --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/run/munged.seed"
    configure
    export SLURM_CONF="$folder/slurm.conf"
    slurmctld
    slurmd
    for _ in $(seq 100); do
        if [[ $(timeout 5 sinfo --noheader --format=%T 2>/dev/null) == *idle* ]]; then return; fi
        sleep 0.2
    done
    echo "mini_slurm.sh: the node did not come up" >&2
    tail -n 5 "$folder"/log/*.log >&2
    return 1
}

case $verb in
up) up ;;
down) down ;;
*) echo "mini_slurm.sh: up or down, not $verb" >&2 && exit 2 ;;
esac
