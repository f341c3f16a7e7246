"""What routes are made of: bodies that many share, decoding, replies, pages, times, the OpenAPI document."""
