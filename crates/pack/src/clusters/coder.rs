//! Encoders of clusters, each with its cluster of zeros.

use crate::effort::Effort;
use packfs_codec::{CodecSettings, FitEncoder};
use packfs_core::{Error, Result};
use packfs_format::ClusterRecipe;
use std::sync::Arc;

/// The idle encoders of a worker, which recipes with the same codec share.
pub(super) struct CoderPool {
    effort: Effort,
    idle: Vec<Coder>,
}

/// The encoders of a recipe.
pub(super) struct Coders {
    pub first: Coder,
    pub second: Option<Coder>,
}

impl CoderPool {
    /// Creates the encoders of all recipes, so that none can fail to be created later.
    pub(super) fn new<'r>(effort: Effort, recipes: impl Iterator<Item = &'r ClusterRecipe>) -> Result<Self> {
        let mut pool = CoderPool { effort, idle: Vec::new() };
        for recipe in recipes {
            let coders = pool.take(recipe)?;
            pool.put(coders);
        }
        Ok(pool)
    }

    /// Calls `work` with the encoders of a recipe, which stay in the pool even if it fails.
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
            None => Ok(Coder::new(codec.clone(), self.effort.fit_encoder(codec)?)),
        }
    }

    fn put(&mut self, coders: Coders) {
        self.idle.push(coders.first);
        self.idle.extend(coders.second);
    }
}

/// One encoder and its cached cluster of zeros.
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

    /// Returns the cluster for `len` zeros; all calls must pass the same arguments.
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
