//! Restriction of system calls by seccomp.
//!
//! An allowlist for reading, decoding and unpacking; all other calls fail as if the kernel did not
//! implement them. A C library then falls back from new calls to old ones, and programs cannot be
//! executed, networks not reached, and other processes not inspected.

use crate::Sandbox;
use packfs_core::{Error, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

/// Number of `fchmodat2` on every architecture (asm-generic/unistd.h), which libc lacks for some.
const FCHMODAT2: i64 = 452;

const ALLOWED: &[i64] = &[
    // Open files, or files reached by name, which Landlock restricts.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_vmsplice,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_flock,
    // Creating files and setting their metadata.
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_umask,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    // Memory; mapping and protecting are restricted below, so that data never becomes code.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mincore,
    // Threads, but not processes: clone is restricted below.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_membarrier,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals, and the socket pair that reports them; no call connects any other socket.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    libc::SYS_socketpair,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    // Waiting, and information about this process and machine.
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
];

/// The same calls in the older forms of this architecture.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_time,
    libc::SYS_getrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

/// Calls of fakeroot's library to its daemon: messages and semaphores of System V.
const SYSTEM_V: &[i64] = &[
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
];

/// Calls of a server with listening sockets; a network still cannot be reached.
const SERVING: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// Allowed ioctls: terminal detection and size, length of a device, nonblocking pipes. Not those
/// that insert input into a terminal.
const IOCTLS: &[u64] = &[
    0x5401,      // TCGETS
    0x5413,      // TIOCGWINSZ
    0x5421,      // FIONBIO
    0x541b,      // FIONREAD
    0x8008_1272, // BLKGETSIZE64
    0x1268,      // BLKSSZGET
];

/// Returns the reason if the kernel cannot restrict calls.
pub(crate) fn restrict(sandbox: &Sandbox) -> Result<Option<String>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH);
    let arch = arch.map_err(|error| Error::failed(format!("cannot restrict system calls: {error}")))?;
    let more = [(sandbox.system_v, SYSTEM_V), (sandbox.serves, SERVING)];
    let more: Vec<i64> =
        more.iter().filter(|(is_on, _)| *is_on).flat_map(|(_, calls)| *calls).copied().collect();
    let program = program(arch, &more)
        .map_err(|error| Error::failed(format!("cannot compile the list of system calls: {error}")))?;
    match seccompiler::apply_filter_all_threads(&program) {
        Ok(()) => Ok(None),
        Err(error) => Ok(Some(format!("the kernel refuses it: {error}"))),
    }
}

fn program(arch: TargetArch, more: &[i64]) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().chain(ALLOWED_HERE).chain(more).map(|&call| (call, Vec::new())).collect();
    let on = |index, op, value| {
        SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Qword, op, value)?])
    };
    let bits = |index, mask, value| on(index, SeccompCmpOp::MaskedEq(mask), value);
    // Threads only.
    let thread = libc::CLONE_THREAD as u64;
    rules.insert(libc::SYS_clone, vec![bits(0, thread, thread)?]);
    // Data never becomes code.
    let code = libc::PROT_EXEC as u64;
    rules.insert(libc::SYS_mmap, vec![bits(2, code, 0)?]);
    rules.insert(libc::SYS_mprotect, vec![bits(2, code, 0)?]);
    // A thread's name.
    rules.insert(libc::SYS_prctl, vec![on(0, SeccompCmpOp::Eq, libc::PR_SET_NAME as u64)?]);
    // Limits are read, not changed: the new ones are null.
    rules.insert(libc::SYS_prlimit64, vec![on(2, SeccompCmpOp::Eq, 0)?]);
    let asking = |&request: &u64| {
        let condition =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request & 0xffff_ffff)?;
        SeccompRule::new(vec![condition])
    };
    rules.insert(libc::SYS_ioctl, IOCTLS.iter().map(asking).collect::<Result<_, _>>()?);
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, unknown, SeccompAction::Allow, arch)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowlist_has_no_escape() {
        let all: Vec<i64> = ALLOWED.iter().chain(ALLOWED_HERE).chain(SERVING).copied().collect();
        for (call, name) in [
            (libc::SYS_execve, "execve"),
            (libc::SYS_execveat, "execveat"),
            (libc::SYS_socket, "socket"),
            (libc::SYS_connect, "connect"),
            (libc::SYS_clone, "clone"),
            (libc::SYS_clone3, "clone3"),
            (libc::SYS_ptrace, "ptrace"),
            (libc::SYS_process_vm_writev, "process_vm_writev"),
            (libc::SYS_mount, "mount"),
            (libc::SYS_bpf, "bpf"),
            (libc::SYS_io_uring_setup, "io_uring_setup"),
            (libc::SYS_kill, "kill"),
            (libc::SYS_setuid, "setuid"),
            (libc::SYS_open_by_handle_at, "open_by_handle_at"),
        ] {
            assert!(!all.contains(&call), "{name}");
        }
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all.len(), "each call once");
    }

    #[test]
    fn the_list_becomes_a_program_on_every_machine_that_has_one() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            assert!(!program(arch, SYSTEM_V).unwrap().is_empty());
        }
    }
}
