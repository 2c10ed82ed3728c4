//! A server on the loopback address, asked by an HTTP client.

use packfs_serve::{Server, SiteOptions, Stopper};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Length of the long file: several pieces, and a part of one.
const LONG_LEN: usize = 1_300_001;

struct Fixture {
    dir: tempfile::TempDir,
    address: SocketAddr,
    stopper: Stopper,
    server: Option<JoinHandle<packfs::Result<()>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

fn long() -> Vec<u8> {
    (0..LONG_LEN as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir_all(tree.join("a dir/<b>")).unwrap();
        std::fs::write(tree.join("a dir/<b>/x&y?.html"), "<script>alert(1)</script>").unwrap();
        std::fs::write(tree.join("a dir/notes.txt"), "notes\n").unwrap();
        std::fs::write(tree.join("empty"), "").unwrap();
        std::fs::write(tree.join("long.bin"), long()).unwrap();
        std::fs::create_dir(tree.join("many")).unwrap();
        for number in 0..1234 {
            std::fs::write(tree.join(format!("many/{number}")), "").unwrap();
        }
        std::os::unix::fs::symlink("a dir", tree.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", tree.join("dangling")).unwrap();
        let image = dir.path().join("a.sqfs");
        packfs::pack(&tree, &image).run().unwrap();
        Self::of(dir, &image)
    }

    fn of(dir: tempfile::TempDir, image: &Path) -> Fixture {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let faults = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&faults);
        let options = SiteOptions {
            title: "a.sqfs".into(),
            identity: 7,
            json_of: |row| format!("{{\"path\":\"{}\"}}", String::from_utf8_lossy(row.path.as_bytes())),
            on_fault: Box::new(move |error| told.lock().unwrap().push(error.to_string())),
        };
        let (address, stopper) = (server.address(), server.stopper());
        let opened = packfs::open(image).unwrap();
        let server = Some(std::thread::spawn(move || server.run(opened, options)));
        Fixture { dir, address, stopper, server, faults }
    }

    /// Sends a request as it is; returns status, fields and body.
    fn ask(&self, method: &str, path: &str, fields: &str) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let host = if fields.contains("Host:") { "" } else { "Host: localhost\r\n" };
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
        (head[9..12].parse().unwrap(), head, answer[end + 4..].to_vec())
    }

    fn text(&self, path: &str) -> String {
        let mut answer = ureq::get(format!("http://{}{path}", self.address)).call().unwrap();
        answer.body_mut().read_to_string().unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stopper.stop();
        let served = self.server.take().unwrap().join();
        if !std::thread::panicking() {
            served.unwrap().unwrap();
            assert!(TcpStream::connect(self.address).is_err(), "it listens after its end");
        }
    }
}

#[test]
fn files_arrive_whole_and_in_parts() {
    let site = Fixture::new();
    let (status, head, body) = site.ask("GET", "/long.bin", "");
    assert!(status == 200 && head.contains(&format!("content-length: {LONG_LEN}")), "{head}");
    assert!(body == long());
    for (range, expected) in
        [("0-0", 0..1), ("262100-800000", 262_100..800_001), ("-5", LONG_LEN - 5..LONG_LEN)]
    {
        let (status, head, body) = site.ask("GET", "/long.bin", &format!("Range: bytes={range}\r\n"));
        let shown = format!("content-range: bytes {}-{}/{LONG_LEN}", expected.start, expected.end - 1);
        assert!(status == 206 && head.contains(&shown), "{head}");
        assert!(body == long()[expected]);
    }
    let (status, head, body) = site.ask("GET", "/empty", "");
    assert!(status == 200 && head.contains("content-length: 0") && body.is_empty(), "{head}");
    let (status, head, _) = site.ask("GET", "/long.bin", "Range: bytes=1300001-\r\n");
    assert!(status == 416 && head.contains("content-range: bytes */1300001"), "{head}");
    let (status, head, body) = site.ask("HEAD", "/long.bin", "Range: bytes=0-5\r\n");
    assert!(
        status == 200 && head.contains(&format!("content-length: {LONG_LEN}")) && body.is_empty(),
        "{head}"
    );
}

#[test]
fn a_client_that_knows_a_file_is_not_sent_it_again() {
    let site = Fixture::new();
    let etag = |path: &str| {
        let (_, head, _) = site.ask("HEAD", path, "");
        head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned()
    };
    for path in ["/long.bin", "/a%20dir/", "/a%20dir/?json"] {
        let (status, _, body) = site.ask("GET", path, &format!("If-None-Match: {}\r\n", etag(path)));
        assert_eq!((status, body.len()), (304, 0), "{path}");
    }
    assert_ne!(etag("/many/"), etag("/many/?json"));
    let (status, ..) = site.ask("GET", "/long.bin", "If-Match: \"other\"\r\nRange: bytes=0-5\r\n");
    assert_eq!(status, 412);
}

#[test]
fn directories_are_pages_without_scripts() {
    let site = Fixture::new();
    let page = site.text("/");
    assert!(page.contains("<a href=\"./a%20dir/\">a dir/</a>") && page.contains("→ nowhere"), "{page}");
    let inner = site.text("/a%20dir/%3Cb%3E/");
    assert!(inner.contains("<a href=\"./x%26y%3F.html\">x&amp;y?.html</a>"), "{inner}");
    assert!(
        inner.contains("<a href=\"../../\">a dir</a>") || inner.contains("<a href=\"../\">a dir</a>"),
        "{inner}"
    );
    assert!(!inner.contains("<b>") && !inner.contains("<script"), "{inner}");
    let (_, head, _) = site.ask("GET", "/a%20dir/%3Cb%3E/x%26y%3F.html", "");
    assert!(head.contains("content-type: text/html") && head.contains("content-security-policy: sandbox"));
    let (status, head, _) = site.ask("GET", "/link?json", "");
    assert!(status == 301 && head.contains("location: /link/?json"), "{head}");
    assert!(site.text("/link/notes.txt") == "notes\n");
}

#[test]
fn long_listings_are_complete_in_both_forms() {
    let site = Fixture::new();
    let page = site.text("/many/");
    assert_eq!(page.matches("<tr><td><a href=\"./").count(), 1234);
    let (_, head, body) = site.ask("GET", "/many/", "Accept: application/json\r\n");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(!body.is_empty());
    let json = site.text("/many/?json");
    let paths: Vec<&str> = json.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(paths.len(), 1234, "{json}");
    assert!(json.starts_with("[\n{") && json.ends_with("}]\n"), "{json}");
    assert!(paths[..1233].iter().all(|line| line.ends_with("},")));
}

#[test]
fn the_head_of_a_listing_tells_no_length() {
    let site = Fixture::new();
    let (status, head, body) = site.ask("HEAD", "/many/", "");
    assert!(status == 200 && !head.contains("content-length") && body.is_empty(), "{head}");
}

#[test]
fn requests_that_ask_for_nothing_here_are_refused() {
    let site = Fixture::new();
    for (method, path, fields, expected) in [
        ("GET", "/none", "", 404),
        ("GET", "/dangling", "", 404),
        ("GET", "/long.bin/", "", 404),
        ("GET", "/long.bin/x", "", 404),
        ("GET", "/../../etc/passwd", "", 400),
        ("GET", "/a%00b", "", 400),
        ("POST", "/", "", 405),
        ("DELETE", "/long.bin", "", 405),
        ("GET", "/", "Host: evil.example\r\n", 421),
    ] {
        let (status, ..) = site.ask(method, path, fields);
        assert_eq!(status, expected, "{method} {path} {fields}");
    }
    assert!(site.faults.lock().unwrap().is_empty());
}

#[test]
fn clients_at_the_same_time_all_get_their_bytes() {
    let site = Fixture::new();
    let expected = long();
    // More than there are reading threads; these do not read until all have asked.
    let mut waiting: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = TcpStream::connect(site.address).unwrap();
            write!(stream, "GET /long.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(site.text("/a%20dir/notes.txt"), "notes\n");
    for stream in waiting.drain(..).rev().step_by(8) {
        let mut answer = Vec::new();
        { stream }.read_to_end(&mut answer).unwrap();
        assert!(answer.ends_with(&expected));
    }
}

#[test]
fn damage_is_an_error_and_never_wrong_bytes() {
    let good = Fixture::new();
    let image = good.dir.path().join("a.sqfs");
    let mut bytes = std::fs::read(&image).unwrap();
    // Blocks of data follow the superblock; the tables are at the end.
    let end = bytes.len() * 3 / 4;
    bytes[96..end].iter_mut().for_each(|byte| *byte ^= 0x55);
    let dir = tempfile::tempdir().unwrap();
    let damaged = dir.path().join("b.sqfs");
    std::fs::write(&damaged, bytes).unwrap();
    let site = Fixture::of(dir, &damaged);
    let (status, head, body) = site.ask("GET", "/long.bin", "");
    assert!(status == 500 || body.len() < LONG_LEN && long().starts_with(&body), "{head}");
    assert!(!site.faults.lock().unwrap().is_empty());
}

/// Connects from an address of this machine, with the least room for what is sent.
fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&socket, 2048).unwrap();
    bind(&socket, &SocketAddr::from((from, 0))).unwrap();
    connect(&socket, &to).unwrap();
    socket.into()
}

#[test]
fn clients_that_read_nothing_keep_no_others_out() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("long"), long().repeat(8)).unwrap();
    let image = dir.path().join("a.sqfs");
    packfs::pack(&tree, &image).codec("none").run().unwrap();
    let fixture = Fixture::of(dir, &image);
    let mut held = Vec::new();
    for _ in 0..260 {
        let mut client = connect_from([127, 0, 0, 2], fixture.address);
        client.write_all(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        held.push(client);
    }
    let mut other = connect_from([127, 0, 0, 1], fixture.address);
    other.set_read_timeout(Some(std::time::Duration::from_secs(100))).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut head = [0; 12];
    other.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
}

#[test]
fn a_page_shows_names_as_a_terminal_does() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let odd = "\u{1b}[2J\u{7}\u{7f}\u{9b}\u{202e}gpj.exe\u{2066}\nline";
    std::fs::create_dir_all(tree.join(odd)).unwrap();
    std::os::unix::fs::symlink(odd, tree.join("link")).unwrap();
    let image = dir.path().join("a.sqfs");
    packfs::pack(&tree, &image).run().unwrap();
    let fixture = Fixture::of(dir, &image);
    let folder = "/%1b%5b2J%07%7f%c2%9b%e2%80%aegpj.exe%e2%81%a6%0aline/";
    for path in ["/", folder] {
        let page = fixture.text(path);
        let acts = |c: char| c != '\n' && packfs::acts_on_terminals(c);
        assert!(!page.contains(acts) && page.contains("\\x1b[2J\\x07"), "{page}");
        assert!(page.contains("\\xe2\\x80\\xaegpj.exe") && page.contains("\\nline"), "{page}");
    }
}
