//! Encoders of clusters, each with its cluster of zeros.

use crate::PackOptions;
use packfs_codec::{CodecSettings, FitEncoder};
use packfs_core::{Error, Result};
use packfs_format::ClusterRecipe;
use std::sync::Arc;

pub(super) struct CoderPool<'a> {
    options: &'a PackOptions,
    idle: Vec<Coder>,
}

pub(super) struct Coders {
    pub first: Coder,
    pub second: Option<Coder>,
}

impl<'a> CoderPool<'a> {
    /// Creates all encoders, so that none can fail to be created later.
    pub(super) fn new<'r>(
        options: &'a PackOptions,
        recipes: impl Iterator<Item = &'r ClusterRecipe>,
    ) -> Result<Self> {
        let mut pool = CoderPool { options, idle: Vec::new() };
        for recipe in recipes {
            let coders = pool.take(recipe)?;
            pool.put(coders);
        }
        Ok(pool)
    }

    /// Encoders return to the pool even if `work` fails.
    pub(super) fn with<T>(
        &mut self,
        recipe: &ClusterRecipe,
        work: impl FnOnce(&mut Coders) -> Result<T>,
    ) -> Result<T> {
        let mut coders = self.take(recipe)?;
        let result = work(&mut coders);
        self.put(coders);
        result
    }

    fn take(&mut self, recipe: &ClusterRecipe) -> Result<Coders> {
        let first = self.take_one(&recipe.codec)?;
        let second = recipe.second.as_ref().map(|codec| self.take_one(codec)).transpose()?;
        Ok(Coders { first, second })
    }

    fn take_one(&mut self, codec: &CodecSettings) -> Result<Coder> {
        match self.idle.iter().position(|coder| coder.settings == *codec) {
            Some(index) => Ok(self.idle.swap_remove(index)),
            None => Ok(Coder::new(codec.clone(), self.options.fit_encoder(codec)?)),
        }
    }

    fn put(&mut self, coders: Coders) {
        self.idle.push(coders.first);
        self.idle.extend(coders.second);
    }
}

pub(super) struct Coder {
    settings: CodecSettings,
    pub encoder: Box<dyn FitEncoder>,
    /// A run of zeros, if it fits into one block; unset until first needed.
    zeros: Option<Option<Arc<[u8]>>>,
}

impl Coder {
    fn new(settings: CodecSettings, encoder: Box<dyn FitEncoder>) -> Self {
        Coder { settings, encoder, zeros: None }
    }

    /// All calls must pass the same arguments.
    pub(super) fn zeros(&mut self, len: usize, block_len: usize) -> Result<Option<Arc<[u8]>>> {
        if self.zeros.is_none() {
            let mut block = vec![0; block_len];
            self.encoder.begin_segment();
            let fit = self.encoder.compress_to_fit(&vec![0; len], &mut block).map_err(Error::failed)?;
            self.zeros = Some((fit.consumed == len).then(|| block[..fit.written].into()));
        }
        Ok(self.zeros.clone().flatten())
    }
}
