#!/usr/bin/python3
"""A small OpenID Connect issuer for tests, over HTTPS, with the device flow (RFC 8628) of Authlib,
and the code flow with PKCE (RFC 7636), in which everybody is the person that POST /person names last.

    oidc_issuer.py PORT CERTIFICATE KEY

A person confirms a login by the form at /device. For tests also: POST /sign signs the claims in its body, as a CI
service does for its jobs; POST /rotate replaces the key.
"""
import base64
import hashlib
import secrets
import sys
import time
import urllib.parse

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.jose import JsonWebKey, KeySet, jwt
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialDict
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants.code import OpenIDToken
from flask import Flask, jsonify, redirect, request

PORT, CERTIFICATE, KEY = int(sys.argv[1]), sys.argv[2], sys.argv[3]
ISSUER = f"https://127.0.0.1:{PORT}"
GROUPS = {"ada": ["ml", "hpc users"], "bob": []}

app = Flask("issuer")
credentials, grants = {}, {}  # by device code; by code of the user
codes = {}  # of the code flow: what /token must be asked with, and the user
person = "ada"


def new_keys():
    return KeySet([JsonWebKey.generate_key("EC", "P-256", {"kid": f"key-{time.time_ns()}"}, is_private=True)])


keys = new_keys()


class Client(ClientMixin):
    def get_client_id(self):
        return "berth-cli"

    def get_allowed_scope(self, scope):
        return scope

    def check_client_secret(self, client_secret):
        return False

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "none"

    def check_grant_type(self, grant_type):
        return grant_type == DeviceCodeGrant.GRANT_TYPE


class Authorization(DeviceAuthorizationEndpoint):
    INTERVAL = 1

    def get_verification_uri(self):
        return f"{ISSUER}/device"

    def save_device_credential(self, client_id, scope, data):
        credentials[data["device_code"]] = DeviceCredentialDict(client_id=client_id, scope=scope, expires_at=time.time() + 1800, **data)


class Grant(DeviceCodeGrant):
    def query_device_credential(self, device_code):
        return credentials.get(device_code)

    def query_user_grant(self, user_code):
        return grants.get(user_code)

    def should_slow_down(self, credential):
        return False


class IdToken(OpenIDToken):
    def get_jwt_config(self, grant):
        return {"key": keys, "alg": "ES256", "iss": ISSUER, "exp": 600}

    def get_audiences(self, request):
        return request.client.get_client_id()

    def generate_user_info(self, user, scope):
        return UserInfo(sub=f"subject-of-{user}", preferred_username=user, groups=GROUPS[user])


server = AuthorizationServer(app, query_client=lambda name: Client() if name == "berth-cli" else None,
                             save_token=lambda token, request: None)
server.register_endpoint(Authorization)
server.register_grant(Grant, [IdToken()])


@app.get("/.well-known/openid-configuration")
def document():
    return jsonify(issuer=ISSUER, jwks_uri=f"{ISSUER}/keys", token_endpoint=f"{ISSUER}/token",
                   device_authorization_endpoint=f"{ISSUER}/device_authorization", authorization_endpoint=f"{ISSUER}/authorize",
                   response_types_supported=["code"], subject_types_supported=["public"])


@app.get("/keys")
def public_keys():
    return jsonify(keys=[key.as_dict(is_private=False) for key in keys.keys])


@app.post("/device_authorization")
def device_authorization():
    return server.create_endpoint_response(Authorization.ENDPOINT_NAME)


@app.post("/person")
def set_person():
    global person
    person = request.get_data(as_text=True)
    return person


@app.get("/authorize")
def authorize():
    asked = request.args
    assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256" and "openid" in asked["scope"].split()
    answer = {"state": asked["state"]}
    if person:
        answer["code"] = secrets.token_urlsafe()
        codes[answer["code"]] = asked["client_id"], asked["redirect_uri"], asked["code_challenge"], person
    else:
        answer["error"] = "access_denied"
    return redirect(f"{asked['redirect_uri']}?{urllib.parse.urlencode(answer)}")


def token_of_code():
    form = request.form
    challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
    client, place, wanted, user = codes.pop(form["code"], (None,) * 4)
    if client is None or (form["client_id"], form["redirect_uri"], challenge) != (client, place, wanted):
        return jsonify(error="invalid_grant"), 400
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": client, "sub": f"subject-of-{user}", "iat": now, "exp": now + 600,
              "preferred_username": user, "groups": GROUPS[user]}
    return jsonify(access_token="unused", token_type="Bearer", id_token=jwt.encode({"alg": "ES256"}, claims, keys).decode())


@app.post("/token")
def token():
    if request.form.get("grant_type") == "authorization_code":
        return token_of_code()
    return server.create_token_response()


@app.post("/device")
def confirm():
    code = request.form["user_code"]
    if code not in [credential.get_user_code() for credential in credentials.values()]:
        return "no such code", 404
    grants[code] = request.form["user"], request.form["answer"] == "allow"
    return "thank you"


@app.post("/sign")
def sign():
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": "job-1", "iat": now, "nbf": now, "exp": now + 600, **request.json}
    return jwt.encode({"alg": "ES256"}, claims, keys)


@app.post("/rotate")
def rotate():
    global keys
    keys = new_keys()
    return "rotated"


app.run("127.0.0.1", PORT, ssl_context=(CERTIFICATE, KEY), threaded=True)
