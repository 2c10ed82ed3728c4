# Fills the mounted btrfs at $1 with everything that a file system of btrfs holds.
cd "$1"
umask 022
seq 1 150000 > text
head -c 400000 /dev/urandom > random
: > empty
echo short > short
chown 1000:1001 short
chmod 4751 short
# Extents: holes, reserved ones, parts of compressed ones, inline ones that grew.
truncate -s 10M sparse
printf end | dd of=sparse bs=1 seek=5000000 conv=notrunc status=none
fallocate -l 1M reserved
printf x | dd of=reserved bs=1 seek=300000 conv=notrunc status=none
: > reserved-behind-the-end
fallocate -n -l 2M reserved-behind-the-end
cp --reflink=always text clone
sync .
cp text parts
fallocate -p -o 200000 -l 100000 parts
printf 'in the middle' | dd of=parts bs=1 seek=500000 conv=notrunc status=none
cp --reflink=always text short-clone
truncate -s 300001 short-clone
printf '%02000d' 7 > inline
printf '%02000d' 7 > inline-extended
truncate -s 10000 inline-extended
printf '%03000d' 7 > inline-grown
sync .
head -c 9000 text >> inline-grown
head -c 4096 text > one-sector
for number in 1 2 3 4 5 6 7 8; do head -c 5000 random >> appended; sync .; done
touch -d '1965-03-04 05:06:07.123456789 UTC' old
touch -d '2150-01-02 03:04:05.987654321 UTC' future
# Names: hashes that collide, many, long, odd ones, removed ones.
echo a > n1371838
echo b > n2000402
mkdir many removed links
(cd many && seq -f 'file with the number %g' 10000 | xargs -d '\n' touch)
(cd removed && seq 300 | xargs touch && seq 1 2 300 | xargs rm)
echo linked > links/first
for number in $(seq 300); do ln links/first "links/$(printf '%0100d' "$number")"; done
ln links/first elsewhere
echo long > "$(printf '%0255d' 1)"
printf odd > "$(printf 'odd\nname\377')"
mkdir -p d/e/f/g
# Links, devices, pipes.
ln -s text symlink
ln -s "$(printf '%0900d' 5)" long-symlink
mknod block b 259 300
mknod char c 1 3
mknod pipe p
# Attributes.
setfattr -n user.a -v value short
setfattr -n user.n1371838 -v first d
setfattr -n user.n2000402 -v second d
setfattr -n user.large -v "$(printf '%03000d' 3)" text
setfattr -n user.empty text
setfattr -n trusted.t -v trusted symlink -h
setfacl -m u:1000:rwx,g:1001:r short
setfacl -d -m u:1000:rwx d
# Subvolumes: nested ones, snapshots of them, one in a directory.
btrfs -q subvolume create sub
cp --reflink=always text sub/text
echo in > sub/in
btrfs -q subvolume create sub/nested
echo nested > sub/nested/file
btrfs -q subvolume snapshot -r sub snapshot
btrfs -q subvolume snapshot sub d/e/writable
echo changed > d/e/writable/in
btrfs -q subvolume create deleted
echo x > deleted/x
btrfs -q subvolume delete -c deleted > /dev/null
