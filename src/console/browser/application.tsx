import { useEffect, useMemo, useState } from 'preact/hooks';
import { Api } from './api/request.ts';
import { type Session, signOut, storedSession, storeSession, takeLoginToken } from './api/session.ts';
import { Messages } from './components/messages.tsx';
import { pageFor } from './page-for-address.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { Navigation } from './shell/navigation.tsx';
import { usePageAddress } from './shell/route.ts';
import { SessionContext } from './shell/session-context.ts';

/** Shows the page that the address names; without a session, shows the sign-in page. */
export function Application() {
  const [session, setSession] = useState(storedSession);
  const [loginToken, setLoginToken] = useState(() => {
    // Removes the token from the address even when a session exists and the token is not used.
    const token = takeLoginToken();
    return session === undefined ? token : undefined;
  });
  const [wasEnded, setEnded] = useState(false);
  const begin = (begun: Session) => {
    storeSession(begun);
    setEnded(false);
    setLoginToken(undefined);
    setSession(begun);
  };
  const end = (ended: Session, byServer: boolean) => {
    // The response to a late request of an older session does not end the present one.
    if (storedSession()?.token !== ended.token) return;
    storeSession(undefined);
    setEnded(byServer);
    setSession(undefined);
  };
  return (
    <>
      {session ? (
        <SignedInApplication session={session} end={(byServer) => end(session, byServer)} />
      ) : (
        <SignIn onSignedIn={begin} wasEnded={wasEnded} loginToken={loginToken} />
      )}
      <Messages />
    </>
  );
}

/**
 * Shows the menu and the page that the address names.
 * @param end called when the session ends; `byServer` is false when the administrator has signed out
 */
function SignedInApplication({ session, end }: { session: Session; end: (byServer: boolean) => void }) {
  const address = usePageAddress();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const signedIn = useMemo(
    () => ({
      api: new Api(session.token, () => end(true)),
      userId: session.userId,
      serverName: session.userId.slice(session.userId.indexOf(':') + 1),
    }),
    [session],
  );
  // Closes the menu when another page is opened.
  useEffect(() => setMenuOpen(false), [address]);
  const leave = () => {
    end(false);
    void signOut(session).catch(() => undefined);
  };
  return (
    <SessionContext.Provider value={signedIn}>
      <button type="button" class="skip" onClick={() => document.querySelector('h1')?.focus()}>
        Skip to the content
      </button>
      <div class="shell">
        <Navigation
          page={address.page}
          serverName={signedIn.serverName}
          userId={session.userId}
          isOpen={isMenuOpen}
          toggle={() => setMenuOpen(!isMenuOpen)}
          signOut={leave}
        />
        <main id="content" key={`${address.page}/${address.id}`}>
          {pageFor(address)}
        </main>
      </div>
    </SessionContext.Provider>
  );
}
