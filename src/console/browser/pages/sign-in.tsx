import { useEffect, useRef, useState } from 'preact/hooks';
import {
  beginSingleSignOn,
  type LoginFlow,
  loginFlows,
  type Session,
  signInWithAccessToken,
  signInWithLoginToken,
  signInWithPassword,
  singleSignOnAddress,
} from '../api/session.ts';
import { textOf } from '../components/dialog.tsx';
import { TextField } from '../components/fields.tsx';
import { WhenLoaded } from '../components/layout.tsx';
import { ErrorMessage } from '../components/messages.tsx';
import { useLoaded } from '../shell/loading.ts';
import { Flame } from '../shell/navigation.tsx';

interface SignInProps {
  readonly onSignedIn: (session: Session) => void;
  /** Whether the server has ended the previous session. */
  readonly wasEnded: boolean;
  /** The login token of single sign-on. The server accepts it once. `undefined` when the address contained no token. */
  readonly loginToken: string | undefined;
}

/** Signs an administrator in with a password, at an identity provider, or with an access token. */
export function SignIn({ onSignedIn, wasEnded, loginToken }: SignInProps) {
  const [error, setError] = useState<Error>();
  const [isBusy, setBusy] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const flows = useLoaded(() => loginFlows(), []);

  const attempt = async (signIn: () => Promise<Session>) => {
    setBusy(true);
    setError(undefined);
    try {
      onSignedIn(await signIn());
    } catch (failure) {
      setError(failure as Error);
      setBusy(false);
    }
  };

  useEffect(() => {
    document.title = 'Sign in · Hearth console';
    heading.current?.focus();
    if (loginToken !== undefined) void attempt(() => signInWithLoginToken(loginToken));
  }, []);

  return (
    <main class="sign-in">
      <Flame />
      <h1 tabIndex={-1} ref={heading}>
        Hearth console
      </h1>
      <p class="soft">Sign in as an administrator of this server.</p>
      {wasEnded && !error && <p class="notice">Your session has ended. Please sign in again.</p>}
      {error && <ErrorMessage error={error} />}
      <WhenLoaded loaded={flows}>
        {(offered) => <Flows flows={offered} isBusy={isBusy} attempt={attempt} />}
      </WhenLoaded>
    </main>
  );
}

interface FlowsProps {
  readonly flows: readonly LoginFlow[];
  readonly isBusy: boolean;
  readonly attempt: (signIn: () => Promise<Session>) => Promise<void>;
}

function Flows({ flows, isBusy, attempt }: FlowsProps) {
  const hasPassword = flows.some(({ type }) => type === 'm.login.password');
  const singleSignOn = flows.find(({ type }) => type === 'm.login.sso');
  const providers = singleSignOn?.identity_providers ?? [];
  const submit = (event: SubmitEvent, signIn: (fields: FormData) => Promise<Session>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    void attempt(() => signIn(fields));
  };
  return (
    <>
      {hasPassword && (
        <form
          onSubmit={(event) =>
            submit(event, (fields) =>
              signInWithPassword(textOf(fields, 'user'), String(fields.get('password'))),
            )
          }
        >
          <TextField label="User name" name="user" autocomplete="username" required />
          <TextField
            label="Password"
            name="password"
            type="password"
            autocomplete="current-password"
            required
          />
          <button type="submit" class="primary" disabled={isBusy}>
            Sign in
          </button>
        </form>
      )}
      {singleSignOn && (
        <div class="providers">
          {providers.length === 0 && (
            <a href={singleSignOnAddress()} onClick={beginSingleSignOn}>
              Continue with single sign-on
            </a>
          )}
          {providers.map(({ id, name }) => (
            <a key={id} href={singleSignOnAddress(id)} onClick={beginSingleSignOn}>
              Continue with {name}
            </a>
          ))}
        </div>
      )}
      <details open={!hasPassword && !singleSignOn}>
        <summary>Use an access token</summary>
        <form onSubmit={(event) => submit(event, (fields) => signInWithAccessToken(textOf(fields, 'token')))}>
          <TextField
            label="Access token"
            name="token"
            type="password"
            required
            hint="Of an administrator's session in another client. Signing out here ends that session."
          />
          <button type="submit" disabled={isBusy}>
            Use the token
          </button>
        </form>
      </details>
    </>
  );
}
