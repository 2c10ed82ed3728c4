"""Other libraries read an image through fsspec, each where it is installed: `cargo xtask python --with pandas,...`."""

import fsspec
import packfs
import pytest


@pytest.fixture
def folder(tmp_path):
    """Directory to pack."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def pack(folder):
    path = folder.parent / "data.sqfs"
    packfs.pack(folder, path)
    return path


def arrow_filesystem(path):
    fs = pytest.importorskip("pyarrow.fs")
    return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("packfs", fo=str(path))))


def write_parquet(folder, names):
    parquet = pytest.importorskip("pyarrow.parquet")
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        table = {"a": [number, number + 1], "text": ["x" * 1000, "y"]}
        parquet.write_table(pytest.importorskip("pyarrow").table(table), folder / name)


def test_pandas_reads_csv_and_parquet(folder):
    pandas = pytest.importorskip("pandas")
    (folder / "table.csv").write_text("a,b\n1,2\n3,4\n")
    write_parquet(folder, ["table.parquet"])
    path = pack(folder)
    assert pandas.read_csv(f"packfs://table.csv::{path}").b.tolist() == [2, 4]
    frame = pandas.read_parquet("packfs://table.parquet", storage_options={"fo": str(path)}, columns=["a"])
    assert frame.a.tolist() == [0, 1]


def test_pyarrow_reads_a_partitioned_dataset(folder):
    dataset = pytest.importorskip("pyarrow.dataset")
    write_parquet(folder, [f"table/kind={kind}/part.parquet" for kind in ("cat", "dog", "owl")])
    opened = dataset.dataset("table", filesystem=arrow_filesystem(pack(folder)), partitioning="hive")
    table = opened.to_table(filter=dataset.field("kind") == "dog", columns=["a"])
    assert table["a"].to_pylist() == [1, 2] and opened.count_rows() == 6


def test_zarr_reads_an_array(folder):
    zarr = pytest.importorskip("zarr")
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(10_000).reshape(100, 100)
    array = zarr.create_array(str(folder / "array.zarr"), shape=values.shape, chunks=(10, 10), dtype=values.dtype)
    array[:] = values
    store = zarr.storage.FsspecStore.from_url(f"packfs://array.zarr::{pack(folder)}", read_only=True)
    opened = zarr.open_array(store, mode="r")
    assert (opened[:] == values).all() and (opened[25:35, 99] == values[25:35, 99]).all()


def test_datasets_loads_files(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    write_parquet(folder, ["train/0.parquet", "train/1.parquet"])
    (folder / "lines.txt").write_text("one\ntwo\n")
    path = pack(folder)
    cache = str(tmp_path / "cache")
    lines = datasets.load_dataset("text", data_files=f"packfs://lines.txt::{path}", split="train", cache_dir=cache)
    assert lines["text"][:] == ["one", "two"]
    files = f"packfs://train/*.parquet::{path}"
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    assert rows["a"][:] == [0, 1, 1, 2]
    streamed = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    assert [row["a"] for row in streamed] == [0, 1, 1, 2]


def test_ray_data_reads_files(folder, tmp_path, monkeypatch):
    # Workers import from the current directory first, and the package beside the tests is not built.
    monkeypatch.chdir(tmp_path)
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    (folder / "bin").mkdir()
    for number in range(20):
        (folder / f"bin/{number:02}").write_bytes(bytes([number]) * 100)
    filesystem = arrow_filesystem(pack(folder))
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        rows = data.read_binary_files("bin", filesystem=filesystem, include_paths=True).take_all()
    finally:
        ray.shutdown()
    found = {row["path"].strip("/"): row["bytes"] for row in rows}
    assert found == {f"bin/{number:02}": bytes([number]) * 100 for number in range(20)}
