//! Setters of the options that callers name most.

use super::wrap::{Wrap, WrapOptions};
use super::{Pack, Repack};
use crate::watcher::Watcher;
use crate::{MadeAt, PackOptions};
use packfs_core::{Goal, Limits, Progress, Result};
use packfs_pack::{Order, PackReport};
use packfs_source::Shape;
use std::path::Path;

/// Writes what all work has: options, progress, and its run.
macro_rules! work {
    ($type:ty, $options:ty) => {
        impl $type {
            /// Replaces all options.
            #[must_use]
            pub fn options(mut self, options: $options) -> Self {
                self.options = options;
                self
            }

            /// Changes options that have no setter.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut $options)) -> Self {
                change(&mut self.options);
                self
            }

            /// Watches `run`, and stops it. An [`Arc`](std::sync::Arc) of one leaves the other
            /// handle with the caller.
            #[must_use]
            pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
                self.watcher = Watcher::new(progress);
                self
            }

            /// Makes the image. A failure leaves what was under the output's name before.
            ///
            /// Errors: `Usage` for settings that contradict the format, `Io` and `Failed` for what
            /// cannot be read, written or held, `Corrupt` for a damaged source, `Cancelled`.
            pub fn run(&self) -> Result<PackReport> {
                self.run_with(self.watcher.progress())
            }
        }
    };
}

/// Writes the setters of a type with [`PackOptions`].
macro_rules! setters {
    ($type:ty) => {
        impl $type {
            /// See [`PackOptions::format`].
            #[must_use]
            pub fn format(self, name: impl Into<String>) -> Self {
                self.with(|options| options.format = Some(name.into()))
            }

            /// See [`PackOptions::codec`].
            #[must_use]
            pub fn codec(self, spec: impl Into<String>) -> Self {
                self.with(|options| options.codec = Some(spec.into()))
            }

            /// See [`PackOptions::block_size`].
            #[must_use]
            pub fn block_size(self, bytes: u32) -> Self {
                self.with(|options| options.block_size = Some(bytes))
            }

            /// Adds one of [`PackOptions::options`].
            #[must_use]
            pub fn option(self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.with(|options| options.options.push((name.into(), value.into())))
            }

            /// See [`PackOptions::optimize`].
            #[must_use]
            pub fn optimize(self, goal: Goal) -> Self {
                self.with(|options| options.optimize = goal)
            }

            /// See [`PackOptions::order`].
            #[must_use]
            pub fn order(self, order: Order) -> Self {
                self.with(|options| options.order = Some(order))
            }

            /// See [`PackOptions::trace`].
            #[must_use]
            pub fn trace(self, path: impl AsRef<Path>) -> Self {
                self.with(|options| options.trace = Some(path.as_ref().into()))
            }

            /// See [`PackOptions::made_at`].
            #[must_use]
            pub fn made_at(self, made_at: MadeAt) -> Self {
                self.with(|options| options.made_at = made_at)
            }

            /// See [`PackOptions::shape`]. Entries that were added stay, behind those of the shape.
            #[must_use]
            pub fn shape(self, shape: Shape) -> Self {
                self.with(|options| {
                    let added = std::mem::replace(&mut options.shape, shape).additions;
                    options.shape.additions.append(added);
                })
            }

            /// Lays an entry over the source, as a line of a manifest or in short:
            /// `c /dev/console 0600 0 0 5 1`. See [`crate::source::Additions`];
            /// docs/guide/manifest.md has the language.
            ///
            /// ```
            /// # fn main() -> packfs::Result<()> {
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let (source, image) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
            /// # std::fs::create_dir_all(source.join("etc")).unwrap();
            /// packfs::pack(&source, &image)
            ///     .add_entry("c /dev/console 0600 0 0 5 1")?
            ///     .add_entry("file /etc/hostname mode=0644 data=\"box\\n\"")?
            ///     .shape(packfs::source::Shape { uid: Some(7), ..Default::default() })
            ///     .run()?;
            /// let opened = packfs::open(&image)?;
            /// assert_eq!(opened.read("etc/hostname")?, b"box\n");
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Errors: `Usage` for what is no entry; `Io` and `Failed` for a file that cannot be
            /// read.
            pub fn add_entry(mut self, entry: impl AsRef<[u8]>) -> Result<Self> {
                self.options.shape.additions.add(&[entry], "entry")?;
                Ok(self)
            }

            /// Adds the entries of a file, one a line, with or without the first line of a
            /// manifest.
            ///
            /// Errors: `Corrupt` for a line that is no entry; `Io` and `Failed` for a file that
            /// cannot be read.
            pub fn add_manifest(mut self, path: impl AsRef<Path>) -> Result<Self> {
                self.options.shape.additions.add_file(path.as_ref())?;
                Ok(self)
            }

            /// See [`PackOptions::limits`].
            #[must_use]
            pub fn limits(self, limits: Limits) -> Self {
                self.with(|options| options.limits = limits)
            }

            /// See [`PackOptions::jobs`].
            #[must_use]
            pub fn jobs(self, count: usize) -> Self {
                self.with(|options| options.jobs = count)
            }

            /// See [`PackOptions::lossy`].
            #[must_use]
            pub fn lossy(self, yes: bool) -> Self {
                self.with(|options| options.lossy = yes)
            }

            /// See [`PackOptions::verify`].
            #[must_use]
            pub fn verify(self, yes: bool) -> Self {
                self.with(|options| options.verify = Some(yes))
            }

            /// See [`PackOptions::sync`].
            #[must_use]
            pub fn sync(self, yes: bool) -> Self {
                self.with(|options| options.sync = yes)
            }
        }
    };
}

work!(Pack, PackOptions);
work!(Repack, PackOptions);
work!(Wrap, WrapOptions);
setters!(Pack);
setters!(Repack);

impl Pack {
    /// See [`PackOptions::base`].
    #[must_use]
    pub fn base(self, path: impl AsRef<Path>) -> Self {
        self.with(|options| options.base = Some(path.as_ref().into()))
    }
}
