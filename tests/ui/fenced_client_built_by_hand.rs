//! A fenced client can't be made from any client that happens to be there.

use orchestratord::leadership::FencedClient;

fn fence(client: kube::Client) -> FencedClient {
    FencedClient { client }
}

fn main() {}
