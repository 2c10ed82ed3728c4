#[derive(Default)]
pub(super) struct Item {
    /// Features that other files may have as well, ascending.
    pub features: Box<[u32]>,
    pub unshared: u32,
    pub len: u32,
    /// Hash of the contents, if equal files are stored once.
    pub hash: Option<u64>,
}

impl Item {
    pub(super) fn feature_count(&self) -> u64 {
        self.features.len() as u64 + u64::from(self.unshared)
    }
}

/// Numbers from zero, so that features can be looked up in a table. Features of a single file are
/// only counted.
pub(super) fn number_features(items: &mut [Item]) {
    let mut all: Vec<u32> = items.iter().flat_map(|item| item.features.iter().copied()).collect();
    all.sort_unstable();
    let shared = all.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
    let shared: Vec<u32> = shared.map(|same| same[0]).collect();
    for item in items {
        let numbers = item.features.iter().filter_map(|feature| shared.binary_search(feature).ok());
        let numbered: Box<[u32]> = numbers.map(|number| number as u32).collect();
        item.unshared += (item.features.len() - numbered.len()) as u32;
        item.features = numbered;
    }
}

/// A set that is emptied in constant time.
#[derive(Default)]
pub(super) struct Seen {
    /// Round in which each feature was inserted.
    rounds: Vec<u32>,
    round: u32,
}

impl Seen {
    pub(super) fn clear(&mut self) {
        self.round = self.round.checked_add(1).unwrap_or_else(|| {
            self.rounds.clear();
            1
        });
    }

    pub(super) fn insert(&mut self, feature: u32) -> bool {
        let number = feature as usize;
        if number >= self.rounds.len() {
            self.rounds.resize(number + 1, 0);
        }
        std::mem::replace(&mut self.rounds[number], self.round) != self.round
    }

    pub(super) fn contains(&self, feature: u32) -> bool {
        self.rounds.get(feature as usize) == Some(&self.round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_one_file_are_only_counted() {
        let item = |features: &[u32]| Item { features: features.into(), ..Item::default() };
        let mut items = [item(&[7, 900, 5000]), item(&[900, 5000, 6000, 7000]), item(&[5000])];
        number_features(&mut items);
        let numbered = items.each_ref().map(|item| (item.features.to_vec(), item.feature_count()));
        assert_eq!(numbered, [(vec![0, 1], 3), (vec![0, 1], 4), (vec![1], 1)]);
    }

    #[test]
    fn a_set_is_empty_again_after_it_is_cleared() {
        let mut seen = Seen::default();
        seen.clear();
        assert!(seen.insert(3) && !seen.insert(3) && seen.contains(3) && !seen.contains(2));
        seen.round = u32::MAX;
        seen.rounds[3] = 1;
        seen.clear();
        assert!(!seen.contains(3) && seen.insert(3));
    }
}
