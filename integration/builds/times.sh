#!/bin/sh
# Wall time, processor time, and size over lines that pack, by packfs and by the originals; a row of
# Markdown each. TREE: what is packed. RUNS: runs of each, of which the fastest counts.
. "$(dirname "$0")/common.sh"

TREE=$(realpath "${TREE:-$target/corpora/debian}")
RUNS=${RUNS:-3}
cd "$WORK"
rm -f packfs original times
ln -s "$NAMES" packfs
ln -s "$ORIGINALS" original

# best SIDE TOOL ARGUMENTS...: seconds and bytes, as "WALL PROCESSOR SIZE".
best() {
    tool=$1/$2
    shift 2
    run=0
    while [ "$run" -lt "$RUNS" ]; do
        rm -f out
        LC_ALL=C bash -c 'TIMEFORMAT="%R %U %S"; time "$0" "$@" > /dev/null 2>&1' "$tool" "$@" 2>> times
        run=$((run + 1))
    done
    sort -n times | head -1 | awk -v size="$(stat -c %s out)" '{ printf "%.1f %.1f %d", $1, $2 + $3, size }'
    rm -f times
}

echo '| line | packfs: s, CPU s, bytes | original: s, CPU s, bytes | time | size |'
echo '|---|---|---|---:|---:|'
while read -r line; do
    set -- $(echo "$line" | sed "s|TREE|$TREE|")
    ours=$(best packfs "$@")
    theirs=$(best original "$@")
    echo "$ours $theirs" | awk -v line="$line" \
        '{ printf "| `%s` | %s, %s, %d | %s, %s, %d | %.2f | %.3f |\n", line, $1, $2, $3, $4, $5, $6, $1 / $4, $3 / $6 }'
done <<END
${LINES_TO_PACK:-mksquashfs TREE out -noappend
mksquashfs TREE out -noappend -comp zstd -Xcompression-level 3
mksquashfs TREE out -noappend -comp lz4 -Xhc
mksquashfs TREE out -noappend -comp xz -b 1M
mkfs.erofs -zlz4hc out TREE
mkfs.erofs -zzstd,level=3 -Efragments -C65536 out TREE
gensquashfs -q -f -D TREE -c zstd out}
END
rm -f out packfs original
