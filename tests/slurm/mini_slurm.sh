#!/usr/bin/env bash
# A private Slurm with fake GPUs on this machine: no root, no system files, no systemd, no cgroups.
#
#   mini_slurm.sh up FOLDER            start it; everything that it writes lies in FOLDER
#   . FOLDER/env                       let this shell talk to it
#   mini_slurm.sh controller FOLDER    start its controller again, after it ended
#   mini_slurm.sh node FOLDER NAME     start a node again, after it ended
#   mini_slurm.sh down FOLDER          stop it
#
# NODES=<count>: nodes node1, node2, ... of this machine, each with its own slurmd, port, spool folder and log (default 1).
# PORTS="<slurmctld> <slurmd of node1> <of node2> ...": one more than nodes, and two more for ACCOUNTING.
# ACCOUNTING=1: slurmdbd on a MariaDB, so that sacct answers.
#
# Debian and Ubuntu: apt-get install --no-install-recommends slurm-wlm slurm-client slurmctld slurmd \
#     slurm-wlm-basic-plugins munge
# and for ACCOUNTING: slurmdbd slurm-wlm-mysql-plugin mariadb-server
#
# A node claims more processors and memory than the machine may have, so that the pipeline's requests fit; nothing is
# bound or fenced off, but a job that outgrows its memory is killed. Jobs in the partition `urgent` push others out,
# which are queued again. A node that is silent for 15 s has failed; a job that is queued again waits 20 s.
set -euo pipefail

verb=${1:?up, controller, node or down}
folder=$(realpath --canonicalize-missing "${2:?a folder}")
count=${NODES:-1}
accounting=${ACCOUNTING:-0}
read -r -a ports <<<"${PORTS:-$(seq -s ' ' 16817 $((16819 + count)))}"
dbd_port=${ports[count + 1]:-}
sql_port=${ports[count + 2]:-}
user=$(id -un)
PATH=$PATH:/usr/sbin:/sbin
export SLURM_CONF="$folder/slurm.conf"

running() { # the process ids that are still alive
    local pid
    for pid in "$@"; do
        if grep -q '^State:[[:space:]]*[^ZX]' "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
    done
}

down() {
    local pids=() daemon file
    for daemon in 'slurmd.*' slurmctld slurmdbd mariadbd munged; do # in this order: one needs what comes after it
        for file in "$folder"/run/$daemon.pid; do
            if [ -s "$file" ]; then pids+=("$(tr -dc 0-9 <"$file")"); fi
        done
        stop "${pids[@]}"
    done
}

stop() {
    local pid signal
    for signal in TERM KILL; do
        for pid in $(running "$@"); do kill "-$signal" "$pid" 2>/dev/null || continue; done
        for _ in $(seq 100); do
            if [ -z "$(running "$@")" ]; then return; fi
            sleep 0.1
        done
    done
}

configure() {
    local names i storage=none
    names="node[1-$count]"
    if [ "$accounting" = 1 ]; then
        printf -v storage '%s\n' slurmdbd AccountingStorageHost=127.0.0.1 "AccountingStoragePort=$dbd_port" \
            "AccountingStoragePass=$folder/run/munge.socket" AccountingStoreFlags=job_comment
    fi
    cat >"$folder/slurm.conf" <<END
ClusterName=mini
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket,cred_expire=20
CredType=cred/munge
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobs.txt
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MinJobAge=3600
KillWait=30
SlurmdTimeout=15
PartitionName=cpu Nodes=$names Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes=$names Default=NO MaxTime=1-0 State=UP
PartitionName=urgent Nodes=$names Default=NO MaxTime=1-0 State=UP PriorityTier=10 PreemptMode=OFF
AccountingStorageType=accounting_storage/$storage
END
    : >"$folder/gres.conf"
    for ((i = 1; i <= count; i++)); do
        # A device file makes Slurm set CUDA_VISIBLE_DEVICES; which device it is does not matter, only that they differ.
        printf 'NodeName=%s Name=gpu Type=fake File=%s\n' "node$i" /dev/null "node$i" /dev/zero >>"$folder/gres.conf"
        printf 'NodeName=node%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=8 RealMemory=256000' \
            "$i" "$(hostname -s)" "${ports[i]}" >>"$folder/slurm.conf"
        printf ' Gres=gpu:fake:2 State=UNKNOWN\n' >>"$folder/slurm.conf"
    done
    # Inside a job Snakemake drops the SLURM_ variables, SLURM_CONF among them, before it calls srun.
    printf '#!/bin/sh\nSLURM_CONF="%s" exec "%s" "$@"\n' "$folder/slurm.conf" "$(command -v srun)" >"$folder/bin/srun"
    chmod 755 "$folder/bin/srun"
    printf 'export SLURM_CONF="%s" PATH="%s:$PATH"\n' "$folder/slurm.conf" "$folder/bin" >"$folder/env"
}

sql() { mariadb --no-defaults --socket="$folder/run/mysql.sock" --user=root --execute="$1"; }

answers() { # wait until a command succeeds
    for _ in $(seq 150); do
        if timeout 5 "$@" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    echo "mini_slurm.sh: $* never succeeded" >&2
    tail -n 5 "$folder"/log/*.log >&2
    return 1
}

account() { # the database, and slurmdbd on it
    mariadb-install-db --no-defaults --datadir="$folder/mysql" --user="$user" \
        --auth-root-authentication-method=normal --skip-test-db >"$folder/log/mariadb-install.log" 2>&1
    mariadbd --no-defaults --user="$user" --datadir="$folder/mysql" --socket="$folder/run/mysql.sock" \
        --pid-file="$folder/run/mariadbd.pid" --port="$sql_port" --bind-address=127.0.0.1 \
        --innodb-lock-wait-timeout=900 >"$folder/log/mariadbd.log" 2>&1 </dev/null &
    for _ in $(seq 150); do
        if sql 'select 1' >/dev/null 2>&1; then break; fi
        sleep 0.2
    done
    sql "CREATE DATABASE slurm; CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'x'; CREATE USER slurm@localhost IDENTIFIED BY 'x';
        GRANT ALL ON slurm.* TO slurm@'127.0.0.1'; GRANT ALL ON slurm.* TO slurm@localhost"
    (umask 077 && cat >"$folder/slurmdbd.conf") <<END
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
DbdHost=$(hostname -s)
DbdAddr=127.0.0.1
DbdPort=$dbd_port
SlurmUser=$user
LogFile=$folder/log/slurmdbd.log
PidFile=$folder/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$sql_port
StorageUser=slurm
StoragePass=x
StorageLoc=slurm
END
    slurmdbd
    answers sacctmgr --noheader list cluster
    sacctmgr --quiet --immediate add cluster mini >/dev/null
    sacctmgr --quiet --immediate add account plant Description=x Organization=x >/dev/null
    sacctmgr --quiet --immediate add user "$user" Account=plant >/dev/null
}

idle() { [ "$(sinfo --noheader --Node --states=idle --partition=cpu --format=%N | wc -l)" = "$count" ]; }

up() {
    local i
    mkdir -p "$folder"/{bin,log,run,spool,state}
    chmod 755 "$folder" "$folder"/*/
    if ! [ -s "$folder/munge.key" ]; then (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key"); fi
    munged --force --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" \
        --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/run/munged.seed"
    configure
    if [ "$accounting" = 1 ]; then account; fi
    slurmctld
    for ((i = 1; i <= count; i++)); do slurmd -N "node$i"; done
    for _ in $(seq 150); do
        if idle 2>/dev/null; then return; fi
        sleep 0.2
    done
    echo "mini_slurm.sh: the nodes did not come up" >&2
    tail -n 5 "$folder"/log/*.log >&2
    return 1
}

case $verb in
up) up ;;
controller) slurmctld ;;
node) slurmd -N "${3:?the name of a node}" ;;
down) down ;;
*) echo "mini_slurm.sh: up, controller, node or down, not $verb" >&2 && exit 2 ;;
esac
