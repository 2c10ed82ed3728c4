//! Parities of RAID 5 and 6, as `lib/raid6` of Linux computes them: P is the sum of a row, Q the
//! sum of its columns times powers of 2, over GF(2^8) of the polynomial 0x11d.

/// Polynomial of the field, without its highest bit.
const POLYNOMIAL: u8 = 0x1d;

fn doubled(value: u8) -> u8 {
    let carry = if value & 0x80 != 0 { POLYNOMIAL } else { 0 };
    value.wrapping_shl(1) ^ carry
}

fn product(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        if b & 1 != 0 {
            sum ^= a;
        }
        a = doubled(a);
        b >>= 1;
    }
    sum
}

fn power(base: u8, exponent: usize) -> u8 {
    // The powers of a number repeat after 255.
    (0..exponent % 255).fold(1, |power, _| product(power, base))
}

fn inverse(value: u8) -> u8 {
    power(value, 254)
}

struct Factor([u8; 256]);

impl Factor {
    fn new(factor: u8) -> Factor {
        let mut table = [0; 256];
        (0..=u8::MAX).zip(&mut table).for_each(|(value, place)| *place = product(value, factor));
        Factor(table)
    }

    fn times(&self, value: u8) -> u8 {
        self.0.get(usize::from(value)).copied().unwrap_or(0)
    }
}

fn add(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(to, from)| *to ^= *from);
}

fn add_times(sum: &mut [u8], other: &[u8], factor: u8) {
    let factor = Factor::new(factor);
    sum.iter_mut().zip(other).for_each(|(to, from)| *to ^= factor.times(*from));
}

/// Sums of a row without one column, from which that column is computed. Columns are added from the
/// last one down to the first, then the parities.
pub(crate) struct Syndromes {
    wanted: usize,
    width: usize,
    missing: Vec<usize>,
    p: Vec<u8>,
    q: Vec<u8>,
    has_p: bool,
    has_q: bool,
}

impl Syndromes {
    /// `wanted` is the index of a column among `width` data columns of `len` bytes.
    pub(crate) fn new(wanted: usize, width: usize, len: usize) -> Syndromes {
        let (p, q) = (vec![0; len], vec![0; len]);
        Syndromes { wanted, width, missing: Vec::new(), p, q, has_p: false, has_q: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.p.len()
    }

    /// Adds the next column; `None` for the wanted one and for missing ones.
    pub(crate) fn add_column(&mut self, index: usize, column: Option<&[u8]>) {
        self.q.iter_mut().for_each(|byte| *byte = doubled(*byte));
        match column {
            Some(column) if index != self.wanted => {
                add(&mut self.p, column);
                add(&mut self.q, column);
            }
            None if index != self.wanted => self.missing.push(index),
            _ => {}
        }
    }

    pub(crate) fn add_p(&mut self, p: &[u8]) {
        add(&mut self.p, p);
        self.has_p = true;
    }

    pub(crate) fn add_q(&mut self, q: &[u8]) {
        add(&mut self.q, q);
        self.has_q = true;
    }

    /// Computes the wanted column; `None` if too much is missing. `distrusted` is another column
    /// that is assumed to be wrong: its index, the width for P, the width + 1 for Q.
    pub(crate) fn column(&self, distrusted: Option<usize>) -> Option<Vec<u8>> {
        let has_p = self.has_p && distrusted != Some(self.width);
        let has_q = self.has_q && distrusted != self.width.checked_add(1);
        let distrusted = distrusted.filter(|index| *index < self.width && *index != self.wanted);
        let mut others = self.missing.iter().copied().chain(distrusted);
        match (others.next(), others.next(), has_p, has_q) {
            (None, _, true, _) => Some(self.p.clone()),
            (None, _, false, true) => Some(self.by_q()),
            (Some(other), None, true, true) => Some(self.by_both(other)),
            _ => None,
        }
    }

    fn by_q(&self) -> Vec<u8> {
        let mut column = vec![0; self.len()];
        add_times(&mut column, &self.q, inverse(power(2, self.wanted)));
        column
    }

    /// With a and b unknown, P gives a + b, and Q gives a * 2^i + b * 2^j.
    fn by_both(&self, other: usize) -> Vec<u8> {
        let divisor = inverse(power(2, self.wanted) ^ power(2, other));
        let mut column = vec![0; self.len()];
        add_times(&mut column, &self.q, divisor);
        add_times(&mut column, &self.p, product(divisor, power(2, other)));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of five columns, without P if `has_p` is false; `missing` are left out.
    fn syndromes(columns: &[Vec<u8>], wanted: usize, missing: &[usize], has_p: bool) -> Syndromes {
        let (mut p, mut q) = (vec![0; 9], vec![0; 9]);
        for (index, column) in columns.iter().enumerate() {
            add(&mut p, column);
            add_times(&mut q, column, power(2, index));
        }
        let mut sums = Syndromes::new(wanted, 5, 9);
        for index in (0..5).rev() {
            let is_there = index != wanted && !missing.contains(&index);
            sums.add_column(index, is_there.then_some(&columns[index]));
        }
        if has_p {
            sums.add_p(&p);
        }
        sums.add_q(&q);
        sums
    }

    #[test]
    fn computes_each_missing_column_and_pair_and_beside_a_wrong_one() {
        let columns: Vec<Vec<u8>> = (0..5_u8)
            .map(|index| (0..9_u8).map(|at| at.wrapping_mul(73) ^ index.wrapping_mul(201)).collect())
            .collect();
        for wanted in 0..5 {
            for other in (0..5).filter(|other| *other != wanted) {
                let column = syndromes(&columns, wanted, &[other], true).column(None);
                assert_eq!(column.unwrap(), columns[wanted], "{wanted} {other}");
                assert!(syndromes(&columns, wanted, &[other], false).column(None).is_none());
                let mut wrong = columns.clone();
                wrong[other][3] ^= 0x5a;
                let mut sums = syndromes(&columns, wanted, &[], true);
                let difference = [0, 0, 0, 0x5a, 0, 0, 0, 0, 0];
                add(&mut sums.p, &difference);
                add_times(&mut sums.q, &difference, power(2, other));
                assert_ne!(sums.column(None).unwrap(), columns[wanted]);
                assert_eq!(sums.column(Some(other)).unwrap(), columns[wanted], "{wanted} {other}");
            }
            let without_p = syndromes(&columns, wanted, &[], false);
            assert_eq!(without_p.column(None).unwrap(), columns[wanted]);
            let all = syndromes(&columns, wanted, &[], true);
            for distrusted in [5, 6] {
                assert_eq!(all.column(Some(distrusted)).unwrap(), columns[wanted]);
            }
        }
    }

    #[test]
    fn every_number_has_an_inverse() {
        assert!((1..=u8::MAX).all(|value| product(value, inverse(value)) == 1));
    }
}
