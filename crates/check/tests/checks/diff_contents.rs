//! Long, sparse and unreadable contents: results do not depend on the number of threads.

use packfs_check::{Change, DiffOptions, Side, diff};
use packfs_core::{
    ContentId, ContentReader, Contents, Error, ImagePath, Meta, NodeKind, Result, Silent, Tree, TreeBuilder,
    Xattrs,
};
use packfs_testkit::Random;
use std::collections::BTreeMap;
use std::ops::Range;

/// Files by runs of data at offsets, otherwise holes; an empty run cannot be read.
#[derive(Clone, Default)]
struct Sparse(Vec<BTreeMap<u64, Vec<u8>>>);

impl Contents for Sparse {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        Ok(Box::new(Runs(&self.0[id.0 as usize])))
    }
}

struct Runs<'a>(&'a BTreeMap<u64, Vec<u8>>);

impl ContentReader for Runs<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        let end = offset + buf.len() as u64;
        for (&start, bytes) in self.0.range(..end) {
            if bytes.is_empty() && start >= offset {
                return Err(Error::failed(format!("bad sector at {start}")));
            }
            let (from, to) = (start.max(offset), (start + bytes.len() as u64).min(end));
            if from < to {
                let data = &bytes[(from - start) as usize..(to - start) as usize];
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(data);
            }
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let run = |(&start, bytes): (&u64, &Vec<u8>)| start..start + bytes.len().max(1) as u64;
        Ok(self.0.iter().map(run).find(|run| run.end > offset).map(|run| run.start.max(offset)..run.end))
    }
}

fn tree(lens: &[u64]) -> Tree {
    let mut builder = TreeBuilder::new(Meta::default());
    for (index, &len) in lens.iter().enumerate() {
        let path = ImagePath::parse(format!("{index:04}").as_bytes()).unwrap();
        let kind = NodeKind::File { len, content: ContentId(index as u64) };
        builder.add(&path, kind, Meta::default(), Xattrs::new()).unwrap();
    }
    builder.finish().unwrap()
}

/// Returns the differences up to an error, and the error.
fn found(lens: &[u64], a: &Sparse, b: &Sparse, jobs: usize) -> (Vec<(String, u64)>, Option<String>) {
    let tree = tree(lens);
    let mut found = Vec::new();
    let (a, b) = (Side { tree: &tree, contents: a }, Side { tree: &tree, contents: b });
    let options = DiffOptions { jobs, ..DiffOptions::default() };
    let outcome = diff(a, b, options, &Silent, &mut |difference| {
        let Change::Contents(offset) = difference.change else { panic!("{difference:?}") };
        found.push((difference.path.to_string(), offset));
    });
    (found, outcome.err().map(|error| error.to_string()))
}

#[test]
fn the_first_difference_of_each_file_is_found_with_1_2_and_16_threads() {
    let mut random = Random::new(1);
    let (mut lens, mut a, mut expected) = (Vec::new(), Sparse::default(), Vec::new());
    for _ in 0..60 {
        let len_max = if random.below(4) == 0 { 5 << 20 } else { 10_000 };
        let len = 1 + random.below(len_max);
        a.0.push(BTreeMap::from([(0, random.noise(len as usize))]));
        lens.push(len);
    }
    let mut b = a.clone();
    for (index, &len) in lens.iter().enumerate() {
        let mut offsets: Vec<u64> = (0..random.below(4)).map(|_| random.below(len)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        for &offset in &offsets {
            b.0[index].get_mut(&0).unwrap()[offset as usize] ^= 1;
        }
        expected.extend(offsets.first().map(|&offset| (format!("{index:04}"), offset)));
    }
    assert!(expected.len() > 20);
    for jobs in [1, 2, 16] {
        assert_eq!(found(&lens, &a, &b, jobs), (expected.clone(), None), "{jobs} threads");
    }
}

#[test]
fn holes_of_exabytes_are_passed_over() {
    let len = 7 << 60;
    let run = |at, text: &str| (at, text.as_bytes().to_vec());
    let a = Sparse(vec![BTreeMap::from([run(5, "abc"), run(6 << 60, "x")]), BTreeMap::new()]);
    for (b, expected) in [
        (BTreeMap::from([run(5, "abc"), run(6 << 60, "x")]), None),
        (BTreeMap::from([run(5, "abc"), run(6 << 60, "y")]), Some(6 << 60)),
        (BTreeMap::from([run(5, "abc")]), Some(6 << 60)),
        (BTreeMap::from([run(4, "\0abc\0"), run(6 << 60, "x")]), None),
        (BTreeMap::from([run(5, "abc"), run(5 << 60, "z"), run(6 << 60, "x")]), Some(5 << 60)),
    ] {
        let b = Sparse(vec![b, BTreeMap::new()]);
        let expected: Vec<_> = expected.map(|offset| ("0000".to_string(), offset)).into_iter().collect();
        assert_eq!(found(&[len, len], &a, &b, 2), (expected, None));
    }
}

#[test]
fn an_error_is_reported_after_all_differences_before_it() {
    const MIB: u64 = 1 << 20;
    let lens = [10, 10, 6 * MIB, 10];
    let data = |text: &str| BTreeMap::from([(0, text.as_bytes().to_vec())]);
    let a = Sparse(vec![data("a"), data("b"), data("c"), data("d")]);
    let mut b = Sparse(vec![data("x"), data("b"), data("c"), data("x")]);
    let first = ("0000".to_string(), 0);
    // An unreadable part in the middle of a file.
    b.0[2].insert(3 * MIB, Vec::new());
    for jobs in [1, 2, 16] {
        let (found_before, error) = found(&lens, &a, &b, jobs);
        assert_eq!(found_before, std::slice::from_ref(&first));
        assert_eq!(error.unwrap(), "\"0002\": bad sector at 3145728");
    }
    // An earlier difference makes it irrelevant.
    b.0[2].insert(2 * MIB, vec![1]);
    let expected = [first, ("0002".to_string(), 2 * MIB), ("0003".to_string(), 0)];
    for jobs in [1, 2, 16] {
        assert_eq!(found(&lens, &a, &b, jobs), (expected.to_vec(), None));
    }
}

#[test]
fn more_files_than_are_held_at_a_time_are_reported_in_order() {
    let count = 40_000;
    let lens = vec![1; count];
    let a = Sparse(vec![BTreeMap::from([(0, vec![1])]); count]);
    let mut b = a.clone();
    for index in (0..count).step_by(777) {
        b.0[index].insert(0, vec![2]);
    }
    let expected: Vec<_> = (0..count).step_by(777).map(|index| format!("{index:04}")).collect();
    let mut sorted = expected.clone();
    sorted.sort();
    let (found, error) = found(&lens, &a, &b, 4);
    assert_eq!(found.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), sorted);
    assert_eq!(error, None);
}
