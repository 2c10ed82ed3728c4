//! The order of the names in a listing.

use std::collections::HashSet;

/// Names of a listing so far: the last one if they must be sorted, else all of them.
pub(super) struct Order {
    before: Vec<u8>,
    /// Only for unsorted listings.
    names: Option<HashSet<Box<[u8]>>>,
}

impl Order {
    pub(super) fn new(sorted: bool) -> Order {
        Order { before: Vec::new(), names: (!sorted).then(HashSet::new) }
    }

    /// Returns the name that this one must not follow, if the order is wrong.
    pub(super) fn fault(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        if let Some(names) = &mut self.names {
            return (!names.insert(name.into())).then(|| name.to_vec());
        }
        let fault = (name <= self.before.as_slice()).then(|| self.before.clone());
        self.before.clear();
        self.before.extend_from_slice(name);
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_rise_where_listings_are_sorted_and_differ_elsewhere() {
        let mut sorted = Order::new(true);
        assert_eq!(sorted.fault(b"b"), None);
        assert_eq!(sorted.fault(b"a"), Some(b"b".to_vec()));
        assert_eq!(sorted.fault(b"a"), Some(b"a".to_vec()));
        let mut free = Order::new(false);
        assert_eq!((free.fault(b"b"), free.fault(b"a")), (None, None));
        assert_eq!(free.fault(b"b"), Some(b"b".to_vec()));
    }
}
