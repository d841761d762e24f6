"""Makes a token of an issuer that exists nowhere, and the cache where the server finds the key of that issuer.

Arguments: the folder of the server. Prints the token.
"""

import base64
import json
import pathlib
import sqlite3
import subprocess
import sys
import time

ISSUER = "https://tokens.example"


def encode(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments: str, data: bytes = b"") -> bytes:
    """The output of a command of OpenSSL."""
    return subprocess.run(["openssl", *arguments], input=data, check=True, capture_output=True).stdout


folder = pathlib.Path(sys.argv[1])
key = str(folder / "token-key.pem")
openssl("genrsa", "-out", key, "2048")
modulus = openssl("rsa", "-in", key, "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
jwk = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(bytes.fromhex(modulus)), "e": "AQAB"}

now = int(time.time())
cache = folder / "cache" / "scitokens"
cache.mkdir(parents=True)
with sqlite3.connect(cache / "scitokens_cpp.sqllite") as database:
    database.execute("CREATE TABLE keycache (issuer text UNIQUE PRIMARY KEY NOT NULL, keys text NOT NULL)")
    keys = {"expires": now + 86400, "next_update": now + 86400, "jwks": {"keys": [jwk]}}
    database.execute("INSERT INTO keycache VALUES (?, ?)", (ISSUER, json.dumps(keys)))

header = {"typ": "JWT", "alg": "RS256", "kid": "1"}
claims = {
    "iss": ISSUER,
    "sub": "someone",
    "aud": "https://wlcg.cern.ch/jwt/v1/any",
    "wlcg.ver": "1.0",
    "scope": "storage.read:/ storage.modify:/",
    "iat": now - 60,
    "nbf": now - 60,
    "exp": now + 3600,
}
signed = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
print(signed + "." + encode(openssl("dgst", "-sha256", "-sign", key, data=signed.encode())))
