import { Type } from 'typebox';
import type { Login } from '../../accounts/index.ts';
import { type Reply, type Route, redirect, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { forbidden, type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { BrowserLogins, LoginContinuation } from '../../sso/index.ts';
import { pagePaths } from '../endpoints.ts';
import type { BrowserRequest, BrowserSessions, SignInMarks } from './browser-sessions.ts';
import { requireFormToken, returnPage } from './own-pages.ts';

export interface SignInDeps {
  readonly login: Pick<Login, 'authenticate' | 'flows'>;
  readonly browsers: BrowserSessions;
  readonly marks: SignInMarks;
  readonly pages: Pages;
  readonly serverName: string;
  /** Logins through identity providers; absent in processes without them. */
  readonly logins: Pick<BrowserLogins, 'providers' | 'begin'> | undefined;
  /** Whether users can create an account on a page. */
  readonly canRegister: boolean;
  /** Path of the page on which users set a new password; `undefined` without one. */
  readonly resetPage: string | undefined;
}

const text = Type.String({ default: '', maxLength: 8_192 });

/**
 * Pages on which users sign in to this server in a browser, by a password or an identity provider, and sign out. The
 * parameter `again` is not empty when a signed-in user has to be authenticated again.
 */
export function signInRoutes(deps: SignInDeps): Route[] {
  const contract = { auth: 'none', errors: 'page' } as const;
  return [
    route(
      {
        ...contract,
        method: 'GET',
        path: pagePaths.signIn,
        query: Type.Object({ continue: text, user: text, again: text }),
      },
      (request) => {
        const { continue: back, user, again } = request.query;
        return showForm(deps, request, { back, user, again });
      },
    ),
    route(
      {
        ...contract,
        method: 'POST',
        path: pagePaths.signIn,
        bodyMode: 'form',
        body: Type.Object({ continue: text, form_token: text, username: text, password: text, again: text }),
      },
      async (request) => {
        const { continue: back, form_token: formToken, username, password, again } = request.body;
        if (!deps.marks.matches(request, formToken)) {
          const error =
            'This form was made for another browser, or your browser sent no cookie with it. Allow cookies and try again';
          return showForm(deps, request, { back, user: username, again, error }, 403);
        }
        try {
          return await signIn(deps, request, passwordLogin(username, password), back);
        } catch (error) {
          if (!(error instanceof MatrixError)) throw error;
          const { message, status } = error;
          return showForm(deps, request, { back, user: username, again, error: message }, status);
        }
      },
    ),
    ...(deps.logins === undefined ? [] : [providerRoute(deps, deps.logins)]),
    signOutRoute(deps),
  ];
}

/** Redirects a browser to an identity provider; `signInContinuation` handles the return of the browser. */
function providerRoute({ marks }: SignInDeps, logins: Pick<BrowserLogins, 'begin'>): Route {
  return route(
    {
      method: 'GET',
      path: `${pagePaths.signIn}/:provider`,
      auth: 'none',
      errors: 'page',
      query: Type.Object({ continue: text, mark: text, again: text }),
    },
    (request) => {
      const { continue: back, mark, again } = request.query;
      // The mark shows that the user has begun on this page, and was not sent here by another site.
      if (!marks.matches(request, mark)) throw forbidden('Signing in was not begun in this browser');
      const data = { continue: returnPage(back) };
      const { provider } = request.params;
      return logins.begin(request, { provider, kind: 'oauth', data, isForced: again !== '' });
    },
  );
}

/** Signs a user in to the pages of this server after an identity provider has authenticated the user. */
export function signInContinuation(browsers: BrowserSessions): LoginContinuation {
  return {
    kind: 'oauth',
    async finish({ userId, data, providerSession, isForced }, request) {
      const cookie = await browsers.open(request, { userId, providerSession, isFresh: isForced });
      return redirect(returnPage(String(data['continue'])), 303, { 'Set-Cookie': cookie });
    },
  };
}

function signOutRoute({ browsers }: SignInDeps): Route {
  return route(
    {
      method: 'POST',
      path: pagePaths.signOut,
      auth: 'none',
      errors: 'page',
      bodyMode: 'form',
      body: Type.Object({ continue: text, form_token: text }),
    },
    async (request) => {
      const session = await browsers.find(request);
      if (session !== undefined) requireFormToken(session, request.body.form_token);
      const back = encodeURIComponent(returnPage(request.body.continue));
      const headers = { 'Set-Cookie': await browsers.close(request) };
      return redirect(`sign_in?continue=${back}`, 303, headers);
    },
  );
}

/** Returns a redirect to the page to sign in, which leads back to the requested page. @param user fills in the name */
export function redirectToSignIn(url: string, user = ''): Reply {
  const name = user === '' ? '' : `&user=${encodeURIComponent(user)}`;
  return redirect(`/_synapse/client/oauth2/sign_in?continue=${encodeURIComponent(url)}${name}`, 303);
}

/**
 * Returns a redirect to the page to sign in, for a signed-in user who must be authenticated again: an identity provider
 * must then ask for the password.
 */
export function redirectToSignInAgain(url: string, user: string): Reply {
  const query = new URLSearchParams({ continue: url, user, again: 'yes' });
  return redirect(`/_synapse/client/oauth2/sign_in?${query}`, 303);
}

async function signIn(
  { login, browsers }: SignInDeps,
  request: BrowserRequest & { readonly ip: string },
  body: JsonObject,
  back: string,
): Promise<Reply> {
  const userId = await login.authenticate(body, { ip: request.ip, authenticate: () => undefined });
  const session = { userId, providerSession: undefined, isFresh: true };
  return redirect(returnPage(back), 303, { 'Set-Cookie': await browsers.open(request, session) });
}

/** Returns the body of `POST /login` for a user name or mail address. */
function passwordLogin(name: string, password: string): JsonObject {
  const isAddress = !name.startsWith('@') && name.includes('@');
  const identifier = isAddress
    ? { type: 'm.id.thirdparty', medium: 'email', address: name }
    : { type: 'm.id.user', user: name };
  return { type: 'm.login.password', identifier, password };
}

async function showForm(
  { login, logins, marks, pages, serverName, canRegister, resetPage }: SignInDeps,
  request: BrowserRequest,
  { back, user, again, error }: { back: string; user: string; again: string; error?: string },
  status = 200,
): Promise<Reply> {
  const { formToken, cookie } = marks.mark(request);
  const page = returnPage(back);
  const query = new URLSearchParams({ continue: page, mark: formToken, ...(again !== '' && { again }) });
  const values = {
    server_name: serverName,
    form_token: formToken,
    continue: page,
    username: user,
    again,
    error,
    with_password: login.flows().some(({ type }) => type === 'm.login.password'),
    can_register: canRegister,
    reset_url: resetPage,
    providers: (logins?.providers ?? []).map(({ id, name }) => ({
      name,
      url: `/_synapse/client/oauth2/sign_in/${encodeURIComponent(id)}?${query}`,
    })),
  };
  const headers = cookie === undefined ? {} : { 'Set-Cookie': cookie };
  return pages.page('oauth_sign_in.html', values, { status, headers });
}
