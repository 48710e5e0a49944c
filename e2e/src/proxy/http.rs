//! As much of HTTP/1.1 as it takes to see where messages begin and end.

use std::io::{self, Read};

/// The longest head that is accepted.
const LONGEST_HEAD: usize = 64 * 1024;

/// A stream of messages.
pub(super) struct Messages<S> {
    pub(super) stream: S,
    buffer: Vec<u8>,
}

/// The head of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The first line, without its end.
    pub(super) first_line: String,
    /// The other lines.
    pub(super) headers: Vec<String>,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Length(usize),
    /// After the chunk of length zero.
    Chunked,
    /// With the connection.
    Close,
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// As it came.
    pub(super) raw: Vec<u8>,
    /// Without its framing.
    pub(super) content: Vec<u8>,
}

// === impl Messages ===

impl<S: Read> Messages<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Whether bytes are left that nobody asked for.
    pub(super) fn has_leftovers(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The head of the next message; `None` if the other side has ended before it.
    pub(super) fn head(&mut self) -> io::Result<Option<Head>> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if self.buffer.len() > LONGEST_HEAD {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a head without end"));
            }
            if self.fill()? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        };
        let head = self.take(end + 4);
        let text = String::from_utf8_lossy(&head[..end]);
        let mut lines = text.split("\r\n").map(str::to_owned);
        Ok(Some(Head {
            first_line: lines.next().unwrap_or_default(),
            headers: lines.collect(),
        }))
    }

    /// The next part of a body; `None` after the last.
    pub(super) fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Piece>> {
        match framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.buffer.is_empty() && self.fill()? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let raw = self.take(self.buffer.len().min(*left));
                *left -= raw.len();
                Ok(Some(Piece {
                    content: raw.clone(),
                    raw,
                }))
            }
            Framing::Close => {
                if self.buffer.is_empty() && self.fill()? == 0 {
                    return Ok(None);
                }
                let raw = self.take(self.buffer.len());
                Ok(Some(Piece {
                    content: raw.clone(),
                    raw,
                }))
            }
            Framing::Chunked => {
                let piece = self.chunk()?;
                if piece.content.is_empty() {
                    *framing = Framing::Length(0);
                }
                Ok(Some(piece))
            }
        }
    }

    /// A whole body.
    pub(super) fn body(&mut self, mut framing: Framing) -> io::Result<Piece> {
        let (mut raw, mut content) = (Vec::new(), Vec::new());
        while let Some(piece) = self.piece(&mut framing)? {
            raw.extend(piece.raw);
            content.extend(piece.content);
        }
        Ok(Piece { raw, content })
    }

    fn chunk(&mut self) -> io::Result<Piece> {
        let mut raw = self.line()?;
        let size = String::from_utf8_lossy(&raw);
        let size = size.trim().split(';').next().unwrap_or_default();
        let size =
            usize::from_str_radix(size, 16).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if size == 0 {
            // Trailers, and the empty line after them.
            loop {
                let line = self.line()?;
                raw.extend(&line);
                if line == b"\r\n" {
                    return Ok(Piece {
                        raw,
                        content: Vec::new(),
                    });
                }
            }
        }
        while self.buffer.len() < size + 2 {
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let data = self.take(size + 2);
        raw.extend(&data);
        Ok(Piece {
            raw,
            content: data[..size].to_vec(),
        })
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                return Ok(self.take(end + 2));
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 * 1024];
        let length = self.stream.read(&mut bytes)?;
        self.buffer.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }
}

// === impl Head ===

impl Head {
    /// A header's value.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Where the body ends. Without a word about it, requests have none, and answers end with the connection.
    pub(super) fn framing(&self, otherwise: Framing) -> Framing {
        if self
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
        {
            return Framing::Chunked;
        }
        match self.header("content-length").and_then(|value| value.parse().ok()) {
            Some(length) => Framing::Length(length),
            None => otherwise,
        }
    }

    /// The status of an answer.
    pub(super) fn status(&self) -> u16 {
        let status = self.first_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_default()
    }

    /// The same head for another body.
    pub(super) fn with_length(mut self, length: usize) -> Self {
        self.headers.retain(|line| {
            let key = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            key != "content-length" && key != "transfer-encoding"
        });
        self.headers.push(format!("Content-Length: {length}"));
        self
    }

    /// As it goes over the wire.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut text = self.first_line.clone();
        for line in &self.headers {
            text.push_str("\r\n");
            text.push_str(line);
        }
        text.push_str("\r\n\r\n");
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Messages<&[u8]> {
        Messages::new(text.as_bytes())
    }

    #[test]
    fn two_requests_on_one_connection_are_told_apart() {
        let mut stream = messages("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        let first = stream.head().unwrap().unwrap();
        assert_eq!(stream.body(first.framing(Framing::Length(0))).unwrap().content, b"{}");
        let second = stream.head().unwrap().unwrap();
        assert_eq!(second.first_line, "GET /b HTTP/1.1");
        assert_eq!(second.framing(Framing::Length(0)), Framing::Length(0));
        assert_eq!(stream.head().unwrap(), None);
    }

    #[test]
    fn chunks_are_joined_and_their_framing_is_kept() {
        let text = "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n";
        let body = messages(text).body(Framing::Chunked).unwrap();
        assert_eq!(body.content, b"abcde");
        assert_eq!(body.raw, text.as_bytes());
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        assert!(messages("abc").body(Framing::Length(4)).is_err());
        assert!(messages("3\r\nab").body(Framing::Chunked).is_err());
    }

    #[test]
    fn a_replaced_body_has_one_length() {
        let head = messages("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nA: b\r\n\r\n")
            .head()
            .unwrap()
            .unwrap();
        assert_eq!(head.status(), 200);
        let head = head.with_length(7);
        assert_eq!(head.bytes(), b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 7\r\n\r\n");
    }
}
