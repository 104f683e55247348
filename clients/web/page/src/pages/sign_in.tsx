import { useState } from "preact/hooks";
import { ApiError, post } from "../api";
import { restartLive } from "../live";
import { ErrorNote } from "../parts";
import { readSession, session } from "../session";

export function SignIn() {
  const info = session.value;
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  const [token, setToken] = useState("");
  const enter = (path: string, body: unknown) => {
    setBusy(true);
    setError(undefined);
    post(path, body)
      .then(readSession)
      .then(restartLive)
      .catch((failure: unknown) =>
        setError(failure instanceof ApiError ? failure : new ApiError("internal", String(failure))),
      )
      .finally(() => setBusy(false));
  };
  return (
    <main class="sign-in">
      <h1>Sign in to Berth</h1>
      <ErrorNote error={error} />
      {info?.issuers?.map((issuer) => (
        <p key={issuer}>
          <a class="button" href={`/api/sign-in/issuer?issuer=${encodeURIComponent(issuer)}`} target="_self">
            Sign in at {issuer}
          </a>
        </p>
      ))}
      {info?.certificate && (
        <p>
          <button type="button" class="primary" disabled={busy || !info.certificateShown} onClick={() => enter("/api/sign-in/certificate", {})}>
            Sign in with this browser's certificate
          </button>
          {!info.certificateShown && " This browser shows none."}
        </p>
      )}
      {info?.token && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            enter("/api/sign-in/token", { token: token.trim() });
          }}
        >
          <label for="token">A token of a trusted issuer</label>
          <textarea id="token" rows={4} autocomplete="off" spellcheck={false} value={token} onInput={(event) => setToken(event.currentTarget.value)} />
          <button type="submit" class="primary" disabled={busy || !token.trim()}>
            Sign in with the token
          </button>
        </form>
      )}
    </main>
  );
}
