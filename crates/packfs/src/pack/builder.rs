//! Setters of the options that callers name most.

use super::wrap::{Wrap, WrapOptions};
use super::{Pack, Repack};
use crate::watcher::Watcher;
use crate::{MadeAt, PackOptions};
use packfs_core::{Goal, Limits, Order, Progress, Result};
use packfs_pack::PackReport;
use packfs_source::Shape;
use std::path::Path;

/// Writes what all work has: options, progress, and its run.
macro_rules! work {
    ($type:ty, $options:ty) => {
        impl $type {
            setters! {
                /// Replaces all options.
                pub options(options: $options) => options = options;

                /// Watches `run`, and stops it. An [`Arc`](std::sync::Arc) of one leaves the other
                /// handle with the caller.
                pub progress(progress: impl Progress + 'static) => watcher = Watcher::new(progress);
            }

            /// Changes options that have no setter.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut $options)) -> Self {
                change(&mut self.options);
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
macro_rules! pack_setters {
    ($type:ty) => {
        impl $type {
            setters! {
                /// See [`PackOptions::format`].
                pub format(name: impl Into<String>) => options.format = Some(name.into());

                /// See [`PackOptions::codec`].
                pub codec(spec: impl Into<String>) => options.codec = Some(spec.into());

                /// See [`PackOptions::block_size`].
                pub block_size(bytes: u32) => options.block_size = Some(bytes);

                /// See [`PackOptions::optimize`].
                pub optimize(goal: Goal) => options.optimize = goal;

                /// See [`PackOptions::order`].
                pub order(order: Order) => options.order = Some(order);

                /// See [`PackOptions::trace`].
                pub trace(path: impl AsRef<Path>) => options.trace = Some(path.as_ref().into());

                /// See [`PackOptions::made_at`].
                pub made_at(made_at: MadeAt) => options.made_at = made_at;

                /// See [`PackOptions::limits`].
                pub limits(limits: Limits) => options.limits = limits;

                /// See [`PackOptions::jobs`].
                pub jobs(count: usize) => options.jobs = count;

                /// See [`PackOptions::lossy`].
                pub lossy(yes: bool) => options.lossy = yes;

                /// See [`PackOptions::verify`].
                pub verify(yes: bool) => options.verify = Some(yes);

                /// See [`PackOptions::sync`].
                pub sync(yes: bool) => options.sync = yes;
            }

            /// Adds one of [`PackOptions::options`].
            #[must_use]
            pub fn option(self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.with(|options| options.options.push((name.into(), value.into())))
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
        }
    };
}

work!(Pack, PackOptions);
work!(Repack, PackOptions);
work!(Wrap, WrapOptions);
pack_setters!(Pack);
pack_setters!(Repack);

impl Pack {
    /// See [`PackOptions::base`].
    #[must_use]
    pub fn base(self, path: impl AsRef<Path>) -> Self {
        self.with(|options| options.base = Some(path.as_ref().into()))
    }
}
