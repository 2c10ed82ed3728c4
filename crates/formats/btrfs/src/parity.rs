//! Parities of RAID 5 and 6, as `lib/raid6` of Linux computes them: P is the sum of a row, Q the
//! sum of its columns times powers of 2, over GF(2^8) of the polynomial 0x11d.

/// Polynomial of the field, without its highest bit.
const POLYNOMIAL: u8 = 0x1d;

fn doubled(value: u8) -> u8 {
    let carry = if value & 0x80 != 0 { POLYNOMIAL } else { 0 };
    value.wrapping_shl(1) ^ carry
}

/// Returns the product of two numbers.
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

/// Returns a power of a number.
fn power(base: u8, exponent: usize) -> u8 {
    // The powers of a number repeat after 255.
    (0..exponent % 255).fold(1, |power, _| product(power, base))
}

/// Returns the inverse of a number that is not 0.
fn inverse(value: u8) -> u8 {
    power(value, 254)
}

/// A factor for many bytes.
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

/// Adds `other` to `sum`.
fn add(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(to, from)| *to ^= *from);
}

fn add_times(sum: &mut [u8], other: &[u8], factor: u8) {
    let factor = Factor::new(factor);
    sum.iter_mut().zip(other).for_each(|(to, from)| *to ^= factor.times(*from));
}

/// A row of equal lengths: columns with data, P, and for RAID 6 Q; `None` where one is missing.
pub(crate) struct Row<'a> {
    pub(crate) data: &'a [Option<Vec<u8>>],
    pub(crate) p: Option<&'a [u8]>,
    pub(crate) q: Option<&'a [u8]>,
    /// Bytes of a column.
    pub(crate) len: usize,
}

impl Row<'_> {
    /// Computes a missing column; `None` if too much is missing.
    pub(crate) fn column(&self, wanted: usize) -> Option<Vec<u8>> {
        let missing = |(index, column): (usize, &Option<Vec<u8>>)| {
            (column.is_none() && index != wanted).then_some(index)
        };
        let others: Vec<usize> = self.data.iter().enumerate().filter_map(missing).collect();
        match (others.as_slice(), self.p, self.q) {
            ([], Some(p), _) => Some(self.column_by_p(wanted, p)),
            ([], None, Some(q)) => Some(self.column_by_q(wanted, q)),
            ([other], Some(p), Some(q)) => Some(self.column_by_both(wanted, *other, p, q)),
            _ => None,
        }
    }

    fn present(&self, left_out: usize) -> impl Iterator<Item = (usize, &Vec<u8>)> {
        let columns = self.data.iter().enumerate().filter(move |(index, _)| *index != left_out);
        columns.filter_map(|(index, column)| Some((index, column.as_ref()?)))
    }

    fn column_by_p(&self, wanted: usize, p: &[u8]) -> Vec<u8> {
        let mut sum = p.to_vec();
        self.present(wanted).for_each(|(_, column)| add(&mut sum, column));
        sum
    }

    fn q_without(&self, wanted: usize, q: &[u8]) -> Vec<u8> {
        let mut sum = q.to_vec();
        self.present(wanted).for_each(|(index, column)| add_times(&mut sum, column, power(2, index)));
        sum
    }

    fn column_by_q(&self, wanted: usize, q: &[u8]) -> Vec<u8> {
        let mut column = vec![0; self.len];
        add_times(&mut column, &self.q_without(wanted, q), inverse(power(2, wanted)));
        column
    }

    /// With a and b missing, P gives a + b, and Q gives a * 2^i + b * 2^j.
    fn column_by_both(&self, wanted: usize, other: usize, p: &[u8], q: &[u8]) -> Vec<u8> {
        let (sum, weighed) = (self.column_by_p(wanted, p), self.q_without(wanted, q));
        let divisor = inverse(power(2, wanted) ^ power(2, other));
        let mut column = vec![0; self.len];
        add_times(&mut column, &weighed, divisor);
        add_times(&mut column, &sum, product(divisor, power(2, other)));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_each_missing_column_and_pair() {
        let columns: Vec<Vec<u8>> = (0..5_u8)
            .map(|index| (0..9_u8).map(|at| at.wrapping_mul(73) ^ index.wrapping_mul(201)).collect())
            .collect();
        let (mut p, mut q) = (vec![0; 9], vec![0; 9]);
        for (index, column) in columns.iter().enumerate() {
            add(&mut p, column);
            add_times(&mut q, column, power(2, index));
        }
        for wanted in 0..5 {
            for other in 0..5 {
                let mut data: Vec<Option<Vec<u8>>> = columns.iter().cloned().map(Some).collect();
                (data[wanted], data[other]) = (None, None);
                let row = Row { data: &data, p: Some(&p), q: Some(&q), len: 9 };
                assert_eq!(row.column(wanted).unwrap(), columns[wanted], "{wanted} {other}");
                let without_p = Row { p: None, ..row };
                assert_eq!(without_p.column(wanted).is_some(), wanted == other);
                assert!(without_p.column(wanted).is_none_or(|column| column == columns[wanted]));
            }
        }
    }

    #[test]
    fn every_number_has_an_inverse() {
        assert!((1..=u8::MAX).all(|value| product(value, inverse(value)) == 1));
    }
}
