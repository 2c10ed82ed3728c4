#!/bin/sh
# Disk images by systemd-repart with a root partition of SquashFS and of EROFS, which it packs by
# mksquashfs and mkfs.erofs from PATH. The root is booted if a kernel is there.
# Needs partx and systemd-repart 254 or later, or a command in REPART. SOURCE: a tree with /bin/sh.
. "$(dirname "$0")/common.sh"

if [ -z "${SOURCE:-}" ]; then
    SOURCE=$WORK/source
    rm -rf "$SOURCE"
    small_root "$SOURCE"
fi
for format in squashfs erofs; do
    rm -rf "$WORK/repart.d"
    mkdir "$WORK/repart.d"
    root_partition "$format" "$SOURCE" > "$WORK/repart.d/root.conf"
    for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
        disk=$WORK/${side##*:}.raw
        rm -f "$disk"
        PATH=${side%:*}:$PATH SOURCE_DATE_EPOCH=1600000000 timed "$disk.seconds" ${REPART:-systemd-repart} \
            --definitions="$WORK/repart.d" --empty=create --size=auto --dry-run=no --offline=yes \
            --seed=c151c42a-73b2-46ad-8388-3cdf070fb1c4 "$disk" > "$WORK/repart.log" 2>&1 ||
            { cat "$WORK/repart.log" >&2; exit 1; }
    done
    same_disks systemd-repart "$format"
done
