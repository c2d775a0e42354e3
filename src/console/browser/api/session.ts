/** Signing in and out, and the session of this tab. */
import { ApiError, adminPath, clientPath, send } from './request.ts';

export interface Session {
  readonly userId: string;
  readonly token: string;
}

export interface LoginFlow {
  readonly type: string;
  readonly identity_providers?: readonly { readonly id: string; readonly name: string }[];
}

/** Key of the session in `sessionStorage`. The session survives a reload; the browser deletes it with the tab. */
const storageKey = 'hearth-console-session';

export function storedSession(): Session | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(storageKey) ?? 'null') as Session | null) ?? undefined;
  } catch {
    return undefined;
  }
}

export function storeSession(session: Session | undefined): void {
  if (session === undefined) sessionStorage.removeItem(storageKey);
  else sessionStorage.setItem(storageKey, JSON.stringify(session));
}

export async function loginFlows(): Promise<readonly LoginFlow[]> {
  const response = await send('GET', `${clientPath}/v3/login`);
  return ((await response.json()) as { readonly flows: readonly LoginFlow[] }).flows;
}

/**
 * Returns the URL that begins single sign-on. At the end the browser returns to this page.
 * @param provider id of an identity provider; absent: the only one of the server
 */
export function singleSignOnAddress(provider?: string): string {
  const back = new URL(location.pathname, location.href).href;
  const id = provider === undefined ? '' : `/${encodeURIComponent(provider)}`;
  return `${clientPath}/v3/login/sso/redirect${id}?redirectUrl=${encodeURIComponent(back)}`;
}

/** Key in `sessionStorage` that marks that single sign-on has begun in this tab. */
const signOnKey = 'hearth-console-single-sign-on';

/** Marks that single sign-on begins in this tab. */
export const beginSingleSignOn = (): void => sessionStorage.setItem(signOnKey, 'begun');

/**
 * Returns the login token that single sign-on has added to the address of the page, and removes it from the address. A
 * token in a link from another person is not returned: it would sign in an account that the visitor has not chosen.
 */
export function takeLoginToken(): string | undefined {
  const hasBegun = sessionStorage.getItem(signOnKey) !== null;
  sessionStorage.removeItem(signOnKey);
  const token = new URLSearchParams(location.search).get('loginToken');
  if (token === null) return undefined;
  history.replaceState(null, '', location.pathname + location.hash);
  return hasBegun ? token : undefined;
}

/**
 * Signs in with a password.
 * @param user a user name, a user id or a mail address
 * @throws ApiError, also for a user who is not an administrator; the new session of this user is ended
 */
export function signInWithPassword(user: string, password: string): Promise<Session> {
  const isAddress = /^[^@\s]+@[^@\s]+$/.test(user);
  const identifier = isAddress
    ? { type: 'm.id.thirdparty', medium: 'email', address: user }
    : { type: 'm.id.user', user };
  return signIn({ type: 'm.login.password', identifier, password });
}

export const signInWithLoginToken = (token: string): Promise<Session> =>
  signIn({ type: 'm.login.token', token });

/** Uses an access token that another client has obtained. @throws ApiError, also for a user who is not an administrator */
export async function signInWithAccessToken(token: string): Promise<Session> {
  const response = await send('GET', `${clientPath}/v3/account/whoami`, { token });
  const { user_id: userId } = (await response.json()) as { readonly user_id: string };
  await requireAdministrator(token);
  return { userId, token };
}

export async function signOut({ token }: Session): Promise<void> {
  await send('POST', `${clientPath}/v3/logout`, { token, body: {} });
}

async function signIn(login: object): Promise<Session> {
  const response = await send('POST', `${clientPath}/v3/login`, {
    body: { ...login, initial_device_display_name: 'Hearth console' },
  });
  const answer = (await response.json()) as { readonly user_id: string; readonly access_token: string };
  const session = { userId: answer.user_id, token: answer.access_token };
  try {
    await requireAdministrator(session.token);
  } catch (error) {
    await signOut(session).catch(() => undefined);
    throw error;
  }
  return session;
}

/** Sends a request that only administrators may send. Its response is short. @throws ApiError */
async function requireAdministrator(token: string): Promise<void> {
  try {
    await send('GET', `${adminPath}/v1/background_updates/enabled`, { token });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    throw new ApiError(403, error.errcode, 'This account is not a server administrator.');
  }
}
