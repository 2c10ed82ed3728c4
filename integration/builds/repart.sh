#!/bin/sh
# Disk images by systemd-repart with a root partition of SquashFS and of EROFS, which it packs by
# mksquashfs and mkfs.erofs from PATH. The root is booted if a kernel is there.
# Needs partx and systemd-repart 254 or later, or a command in REPART. SOURCE: a tree with /bin/sh.
. "$(dirname "$0")/common.sh"

if [ -z "${SOURCE:-}" ]; then
    SOURCE=$WORK/source
    rm -rf "$SOURCE"
    mkdir -p "$SOURCE/bin" "$SOURCE/dev" "$SOURCE/proc" "$SOURCE/etc"
    cp "${BUSYBOX:-$(command -v busybox)}" "$SOURCE/bin/busybox"
    for applet in sh cat id ls; do ln -s busybox "$SOURCE/bin/$applet"; done
    seq 100000 > "$SOURCE/etc/numbers"
fi
for format in squashfs erofs; do
    rm -rf "$WORK/repart.d"
    mkdir "$WORK/repart.d"
    printf '[Partition]\nType=root\nFormat=%s\nCopyFiles=%s:/\nMinimize=best\n' "$format" "$SOURCE" \
        > "$WORK/repart.d/root.conf"
    for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
        disk=$WORK/${side##*:}.raw
        rm -f "$disk"
        PATH=${side%:*}:$PATH SOURCE_DATE_EPOCH=1600000000 timed "$disk.seconds" ${REPART:-systemd-repart} \
            --definitions="$WORK/repart.d" --empty=create --size=auto --dry-run=no --offline=yes \
            --seed=c151c42a-73b2-46ad-8388-3cdf070fb1c4 "$disk" > "$WORK/repart.log" 2>&1 ||
            { cat "$WORK/repart.log" >&2; exit 1; }
        start=$(partx --show --noheadings --output START "$disk" | tr -d ' ')
        sectors=$(partx --show --noheadings --output SECTORS "$disk" | tr -d ' ')
        dd if="$disk" of="$WORK/${side##*:}.$format" bs=512 skip="$start" count="$sectors" status=none
    done
    same_images "$format" "$WORK/ours.$format" "$WORK/theirs.$format"
    told "systemd-repart $format, disk" "$WORK/ours.raw" "$WORK/theirs.raw"
    boot "$format" "$WORK/ours.$format" 'echo packfs: booted as $(id -u), $(ls / | wc -l) entries'
done
