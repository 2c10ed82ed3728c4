# Changes the files of log-before.sh in the mounted btrfs at $1, and syncs them one by one.
cd "$1"
echo new > d/new
sync d/new
seq 100 >> d/old
setfattr -n user.x -v 2 d/old
sync d/old
head -c 300000 /dev/urandom > random
sync random
ln random d/link
sync random
mkdir d/below
echo deep > d/below/file
sync d/below/file
truncate -s 5000 cut
sync cut
head -c 9000 /dev/urandom | dd of=overwritten bs=1000 seek=150 conv=notrunc status=none
sync overwritten
head -c 5000 /dev/urandom | dd of=overwritten bs=1000 seek=10 conv=notrunc status=none
sync overwritten
fallocate -p -o 100000 -l 50000 punched
sync punched
chmod 4700 mode
chown 3:4 mode
sync mode
setfattr -x user.gone short
sync short
head -c 100000 /dev/zero | tr '\0' x > grown
fallocate -n -l 500000 grown
sync grown
cp --reflink=always punched part-of-clone
truncate -s 40960 part-of-clone
sync part-of-clone
