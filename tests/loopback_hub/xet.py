"""Large-file storage as the Hub has it today: the token for it, and the storage itself (CAS), as far as uploads use it.

Format: https://huggingface.co/docs/xet. A file is cut into chunks; chunks travel in "xorbs"; a "shard" names the chunks
that make up each file. The client tries newer forms of two addresses first, and takes 404 for "use the older one".
"""

from __future__ import annotations

import struct
import time

from tests.loopback_hub.api import Answer, Request

TOKEN = "xet-token-of-the-loopback-hub"
# Chunks are then stored as they are, which spares this server the decompression.
VARIABLES = {"HF_XET_XORB_COMPRESSION_POLICY": "none"}
CHUNK_HEADER = 8  # version, compressed size in 3 bytes, compression, size in 3 bytes
ENTRY = 48  # bytes of everything in a shard: its header, a file, a stretch of chunks
VERIFIED, WITH_SHA256 = 1 << 31, 1 << 30  # flags of a file


def token(request: Request, repo: str, revision: str, repo_type: str) -> Answer:
    """Allow an upload, and name the storage."""
    request.check(repo_type, repo, write=True)
    expiry = int(time.time()) + 3600
    headers = {"X-Xet-Cas-Url": request.url, "X-Xet-Access-Token": TOKEN, "X-Xet-Token-Expiration": str(expiry)}
    return Answer(body={"accessToken": TOKEN, "exp": expiry, "casUrl": request.url}, headers=headers)


def xorb(request: Request, name: str) -> Answer:
    """Take chunks."""
    request.store.object(f"xorb-{name}").write_bytes(request.body)
    return Answer(body={"was_inserted": True})


def shard(request: Request) -> Answer:
    """Put files together from chunks that came before."""
    body, offset = request.body, ENTRY
    while body[offset : offset + 32] != b"\xff" * 32:
        _, flags, count = struct.unpack_from("<32sII", body, offset)
        offset += ENTRY
        content = b""
        for _ in range(count):
            name, _, _, start, end = struct.unpack_from("<32sIIII", body, offset)
            content += b"".join(_chunks(request, _hexadecimal(name))[start:end])
            offset += ENTRY
        offset += ENTRY * (count * bool(flags & VERIFIED) + bool(flags & WITH_SHA256))
        request.store.keep(content, large=True)
    return Answer(body={"result": 1})


def _chunks(request: Request, name: str) -> list[bytes]:
    body, chunks, offset = request.store.object(f"xorb-{name}").read_bytes(), [], 0
    while offset < len(body) and body[offset] == 0:
        size = int.from_bytes(body[offset + 1 : offset + 4], "little")
        assert body[offset + 4] == 0, "the chunk is compressed: set VARIABLES for the client"
        chunks.append(body[offset + CHUNK_HEADER : offset + CHUNK_HEADER + size])
        offset += CHUNK_HEADER + size
    return chunks


def _hexadecimal(name: bytes) -> str:
    """Write a hash as the addresses do: as four numbers of 64 bits."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", name))
