#!/bin/sh
# The steps of Containerfile in a chroot, for machines without a container engine (root; Debian with debootstrap):
#
#     debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates bookworm ROOT
#     BIND="folder folder ..." sh envs/chroot.sh ROOT 'snakemake --cores 1 --dry-run all'
#
# What differs from the image: Debian's own Python 3.11 in place of that of python:3.11-slim. BIND names folders that
# pip needs from this machine (a mirror, certificates); variables PIP_... are passed on. What was mounted is unmounted
# in the end; ROOT stays.
set -eu
root=$(realpath "${1:?a folder that debootstrap filled}")
shift
cd "$(dirname "$0")/.."
LOCK=${LOCK:-cpu}

mounted=""
finish() { for place in $mounted; do umount "$root$place"; done; }
trap finish EXIT
for place in /proc ${BIND:-}; do
    mkdir -p "$root$place"
    mount --bind "$place" "$root$place"
    mounted="$place $mounted"
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
ln -sf python3 "$root/usr/bin/python"

inside() { # the variables of the image, and what pip is told here
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LOCK="$LOCK" \
        PIP_BREAK_SYSTEM_PACKAGES=1 $(env | grep '^PIP_[A-Z_]*=[^ ]*$') chroot "$root" sh -c "cd $folder && $1"
}

folder=/
while read -r verb rest; do
    case $verb in
    FROM | ARG | CMD | "#"* | "") ;;
    WORKDIR) mkdir -p "$root$rest" && folder=$rest ;;
    RUN) echo "RUN $rest" && inside "$rest" ;;
    COPY)
        if [ "$rest" = ". ." ]; then # what .dockerignore lets through
            sed -n 's/^!//p' .dockerignore | tar --create --exclude=__pycache__ --files-from=- | tar -x -C "$root$folder"
        else
            cp -R "${rest% *}." "$root$folder/${rest#* }"
        fi
        ;;
    *) echo "envs/chroot.sh: a step that it does not know: $verb" >&2 && exit 1 ;;
    esac
done <envs/Containerfile
for command in "$@"; do echo "$command" && inside "$command"; done
