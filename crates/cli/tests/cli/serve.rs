//! `packfs serve`: started, asked, and stopped as a user does.

use crate::fixture::Fixture;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server, and the address that it has printed.
pub struct Serving {
    child: Child,
    pub address: String,
}

impl Serving {
    pub fn start(fixture: &Fixture, args: &[&str]) -> Serving {
        let mut command = fixture.command([&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split('/').nth(2).unwrap_or_default().to_owned();
        Serving { child, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Stops it as Ctrl-C does; returns its exit code and what it has printed to standard error.
    pub fn stop(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        let mut printed = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        (code, printed)
    }
}

#[test]
fn an_image_is_served_until_it_is_interrupted() {
    let fixture = Fixture::with_image();
    for args in [["root.sqfs", "--stats"], ["root.sqfs", "--sandbox"]] {
        let serving = Serving::start(&fixture, &args);
        let listed = fixture.run(["ls", "--json", "root.sqfs"]).json();
        let answer = serving.get("/?json");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let json = body.find('[').map(|start| &body[start..=body.rfind(']').unwrap()]).unwrap();
        // Chunks of a listing of unknown length: lines between are their lengths.
        let json: String = json.lines().filter(|line| !line.chars().all(|c| c.is_ascii_hexdigit())).collect();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), listed);
        assert!(serving.get("/etc/os-release").contains("\r\n\r\nNAME="), "{args:?}");
        assert!(serving.get("/none").starts_with("HTTP/1.1 404"));
        let (code, printed) = serving.stop();
        assert_eq!(code, Some(0), "{printed}");
        assert!(args[1] != "--stats" || printed.contains("\"decodes\""), "{printed}");
    }
}

#[test]
fn an_address_in_use_is_named() {
    let fixture = Fixture::with_image();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fixture.run(["serve", "--listen", &address, "root.sqfs"]).failed(1, &[&address, "any free port"]);
    fixture.run(["serve", "--listen", "example", "root.sqfs"]).failed(2, &["0.0.0.0:8080"]);
}
