//! A line of a caller, and the row of the guide about it.

/// Version of squashfs-tools that lines of it need, but for a few.
pub const SQUASHFS_TOOLS: &str = "4.7";

/// Lines of a caller.
pub struct Call {
    /// Number of the call site in the table.
    pub number: u8,
    /// Caller.
    pub caller: &'static str,
    /// Tool.
    pub tool: &'static str,
    /// Arguments: `OUT` is the image or folder to be written; `<FILE` and `>FILE` redirect, `@DIR`
    /// is a working directory, `A=B` before the arguments a variable, and a word in single
    /// quotes is one argument. Words in braces are passed to packfs alone. A first word `+file`,
    /// `+device`, or `+pipe` makes `OUT` an existing file, a block device, or a pipe.
    pub lines: &'static [&'static str],
    /// Oldest version of the tool that has what the lines ask for; empty if all that the tests take
    /// do.
    pub since: &'static str,
    /// Comparison.
    pub shows: Shows,
    /// Properties that the comparison leaves out; `differs` names the reason.
    pub but: &'static [But],
    /// Difference from the tool, with its reason; empty if there is none.
    pub differs: &'static str,
}

/// Comparison of two runs, whose exit codes are compared, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The images `OUT` hold the same tree.
    Image,
    /// The images `OUT`, each followed by its devices, hold the same tree.
    Followed(&'static [&'static str]),
    /// The folders `OUT` hold the same files.
    Files,
    /// Standard output, or what the pipe `OUT` got, is equal.
    Text,
    /// The caller's expression finds the same in standard output.
    Parsed(&'static str),
    /// The output of both holds the word.
    Has(&'static str),
    /// The program of packfs, read as a file, holds the words.
    Holds(&'static [&'static str]),
    /// Nothing else.
    Code,
    /// Mounts at `OUT` show the same files.
    Fuse,
    /// The original's decoder makes the source out of `OUT`.
    Decoded,
    /// No distribution ships the tool: packfs alone has to succeed.
    Alone,
}

/// A property that a comparison leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum But {
    /// Exit code.
    ExitCode,
    /// Times: the tool takes the current one.
    Times,
    /// Time, mode, and owner of the root, which the image does not have.
    Root,
    /// Bits that set the user and the group.
    SetIds,
    /// Links between files.
    Links,
    /// Modes of devices and pipes.
    SpecialModes,
    /// Link counts of directories.
    DirectoryLinks,
}

/// Judge of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The kernel's driver of this format.
    Kernel(&'static str),
    /// GNU tar, which unpacks it.
    Tar,
    /// The original's `fsck.cramfs`, which unpacks it.
    Cramfs,
}

impl Call {
    /// Returns the judge of the images that the tool writes.
    pub fn judge(&self) -> Judge {
        match self.tool {
            "mkfs.erofs" => Judge::Kernel("erofs"),
            "sqfs2tar" => Judge::Tar,
            "mkfs.cramfs" | "mkcramfs" => Judge::Cramfs,
            _ => Judge::Kernel("squashfs"),
        }
    }

    /// Returns the row of the guide.
    pub fn row(&self) -> String {
        let result = match (self.shows, self.differs) {
            (Shows::Alone, "") => "runs",
            (_, "") => "equal",
            (_, differs) => differs,
        };
        let shown = |line: &&str| format!("`{}`", line.replace(['{', '}'], "").replace('|', "\\|"));
        let lines: Vec<String> = self.lines.iter().map(shown).collect();
        let (lines, compared) = (lines.join("<br>"), self.compared());
        format!("| {} | {} | {} | {lines} | {compared} | {result} |\n", self.number, self.caller, self.tool)
    }

    fn compared(&self) -> &'static str {
        match self.shows {
            Shows::Image => match self.judge() {
                Judge::Kernel(_) => "kernel mounts",
                Judge::Tar => "trees unpacked by tar",
                Judge::Cramfs => "trees unpacked by fsck.cramfs",
            },
            Shows::Followed(_) => "kernel mounts of images followed by their devices",
            Shows::Files => "files written",
            Shows::Text => "output",
            Shows::Parsed(_) => "parsed output",
            Shows::Has(_) => "a word of the output",
            Shows::Code => "exit code",
            Shows::Fuse => "FUSE mounts",
            Shows::Decoded => "decoded data",
            Shows::Holds(_) | Shows::Alone => "packfs only",
        }
    }
}
