import type { Limiter } from '../../accounts/index.ts';
import { type Reply, redirect } from '../../kernel/http/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import { type JsonObject, notFound, tooLarge } from '../../protocol/index.ts';
import { browserCookie, browserOf, browserOrNew } from './browser-cookie.ts';
import type { BrowserRequest, LoginContinuation } from './continuation.ts';
import type { IdentityProvider, ProviderDescription, RemoteUser } from './identity-provider.ts';
import { LoginFailure, unknownLogin } from './login-failure.ts';
import type { LoginSession, LoginSessions, NewUser } from './login-sessions.ts';

export interface BrowserLoginsDeps {
  readonly providers: readonly IdentityProvider[];
  readonly sessions: LoginSessions;
  readonly accounts: UserAccounts;
  readonly pages: Pages;
  readonly randomness: Randomness;
  /** Limits how many logins clients with one address begin. */
  readonly limiter: Limiter;
  readonly log: Logger;
  /** The pages where a new user chooses a name and accepts terms. */
  readonly newUserPages: NewUserPages;
  /** Whether each login of an existing account updates its profile. */
  readonly updatesProfiles: boolean;
}

/** The accounts of the users of identity providers (`ProviderAccounts`). */
export interface UserAccounts {
  /**
   * Returns the user id of the account; `undefined` for a new user.
   * @throws LoginFailure when the account must not be used
   */
  find(provider: IdentityProvider, remote: RemoteUser): Promise<string | undefined>;
  /** Updates the profile of an account from the profile that the provider reports. */
  update(userId: string, remote: RemoteUser): Promise<void>;
  /**
   * Creates the account of a new user. @returns the user id
   * @throws LoginFailure; MatrixError M_USER_IN_USE, M_LIMIT_EXCEEDED
   */
  create(provider: IdentityProvider, newUser: NewUser, ip: string): Promise<string>;
}

/** The pages that new users complete before their account is created. */
export interface NewUserPages {
  /** Returns the path of the next page; `undefined` when nothing remains to be asked. */
  next(newUser: NewUser): string | undefined;
}

export interface BeginLogin {
  /** Id of the provider. */
  readonly provider: string;
  /** Kind of the continuation. */
  readonly kind: string;
  /** For the continuation; its JSON text may have at most `maxData` characters. */
  readonly data: JsonObject;
  /** Query parameters of the request that begins the login. The provider may pass them on. */
  readonly parameters?: URLSearchParams;
  /** Whether the provider must authenticate the user again; by default a session at the provider suffices. */
  readonly isForced?: boolean;
}

/** Maximum characters of the JSON text of a continuation's data. */
const maxData = 4096;

/**
 * Logs users in through identity providers in their browsers. A login begins with a continuation, leads to the provider
 * and back, creates an account for a new user, and ends by calling the continuation.
 */
export class BrowserLogins {
  readonly #deps: BrowserLoginsDeps;
  /** The continuations by their kind. */
  readonly #continuations = new Map<string, LoginContinuation>();

  constructor(deps: BrowserLoginsDeps) {
    this.#deps = deps;
  }

  /** The configured providers; none when single sign-on is off. */
  get providers(): readonly ProviderDescription[] {
    return this.#deps.providers;
  }

  /**
   * Registers the continuation of one kind of logins, while the server opens.
   * @throws Error for a kind that is registered already
   */
  addContinuation(continuation: LoginContinuation): void {
    if (this.#continuations.has(continuation.kind))
      throw new Error(`The login continuation ${continuation.kind} is registered already`);
    this.#continuations.set(continuation.kind, continuation);
  }

  /**
   * Begins a login.
   * @returns the redirect to the provider, with the cookie that binds the login to the browser
   * @throws LoginFailure; MatrixError M_NOT_FOUND for an unknown provider, M_LIMIT_EXCEEDED, M_TOO_LARGE
   */
  async begin(request: BrowserRequest, login: BeginLogin): Promise<Reply> {
    const { sessions, randomness, limiter } = this.#deps;
    const provider = this.provider(login.provider);
    if (provider === undefined) throw notFound('There is no such identity provider');
    if (JSON.stringify(login.data).length > maxData)
      throw tooLarge('The login request has too many or too long parameters');
    limiter.take(request.ip);
    const state = sessions.newId();
    const { kind, data, isForced = false, parameters = new URLSearchParams() } = login;
    const { url, secrets } = await provider.begin(state, parameters, isForced).catch((error: unknown) => {
      logFailure(request, provider.id, error);
      throw error;
    });
    const browser = browserOrNew(request, randomness);
    const session = { provider: provider.id, kind, data, isForced, secrets };
    sessions.add(state, { browser, ip: request.ip }, session, provider.lifetime);
    return redirect(url, 302, {
      'Set-Cookie': browserCookie(request, browser, provider.respondsByPost === true),
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
    });
  }

  /** Returns the provider with an id. */
  provider(id: string): IdentityProvider | undefined {
    return this.#deps.providers.find((provider) => provider.id === id);
  }

  /**
   * Continues a login when the provider has sent the browser back. The login ends even when it fails.
   * @param authenticate returns the user; receives the `secrets` that `begin` of the provider has returned
   */
  async respond(
    request: BrowserRequest,
    state: string,
    authenticate: (provider: IdentityProvider, secrets: JsonObject) => Promise<RemoteUser>,
  ): Promise<Reply> {
    const session = this.#deps.sessions.take(state, browserOf(request));
    if (session === undefined) return this.#errorPage(unknownLogin());
    return this.#attempt(request, session, async (provider) => {
      const remote = await authenticate(provider, session.secrets);
      return this.#authenticated(request, session, provider, remote);
    });
  }

  /** Whether the browser has begun the login and not finished it. */
  hasBegun(request: BrowserRequest, state: string): boolean {
    return this.#deps.sessions.find(state, browserOf(request)) !== undefined;
  }

  /** Begins a login of the browser again, with other parameters for the provider. @throws as `begin` */
  async restart(request: BrowserRequest, state: string, parameters: URLSearchParams): Promise<Reply> {
    const session = this.#deps.sessions.take(state, browserOf(request));
    if (session === undefined) throw unknownLogin();
    return this.begin(request, { ...session, parameters });
  }

  /**
   * Logs in a user whom a provider has authenticated, although no login was started on this server.
   * @param authenticate returns the user
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  respondUnsolicited(
    request: BrowserRequest,
    login: Pick<BeginLogin, 'provider' | 'kind' | 'data'>,
    authenticate: () => Promise<RemoteUser>,
  ): Promise<Reply> {
    this.#deps.limiter.take(request.ip);
    const session = { ...login, secrets: {} };
    return this.#attempt(request, session, async (provider) =>
      this.#authenticated(request, session, provider, await authenticate()),
    );
  }

  /** Returns the page of a `LoginFailure`, and throws other errors. */
  failed(error: unknown): Promise<Reply> {
    if (!(error instanceof LoginFailure)) throw error;
    return this.#errorPage(error);
  }

  /**
   * Returns the new user of a login and the provider, for a page.
   * @throws LoginFailure for an unknown login
   */
  newUser(
    request: BrowserRequest,
    id: string,
  ): { readonly newUser: NewUser; readonly provider: IdentityProvider; readonly formTargets: string } {
    const session = this.#deps.sessions.find(id, browserOf(request));
    const provider = session && this.provider(session.provider);
    if (session?.newUser === undefined || provider === undefined) throw unknownLogin();
    const formTargets = this.#continuations.get(session.kind)?.formTargets?.(session.data) ?? '';
    return { newUser: session.newUser, provider, formTargets };
  }

  /**
   * Continues the login of a new user with the fields that were entered on a page.
   * @throws LoginFailure for an unknown login
   */
  async continueWith(request: BrowserRequest, id: string, newUser: NewUser): Promise<Reply> {
    const browser = browserOf(request);
    const session = this.#deps.sessions.take(id, browser);
    if (session?.newUser === undefined) throw unknownLogin();
    return this.#attempt(request, session, (provider) =>
      this.#nextStep(request, { ...session, newUser }, provider),
    );
  }

  /** Returns the response of `work`. Answers a LoginFailure by the continuation, or else by an error page. */
  async #attempt(
    request: BrowserRequest,
    session: LoginSession,
    work: (provider: IdentityProvider) => Promise<Reply>,
  ): Promise<Reply> {
    try {
      const provider = this.provider(session.provider);
      if (provider === undefined) throw unknownLogin();
      return await work(provider);
    } catch (error) {
      if (!(error instanceof LoginFailure)) throw error;
      logFailure(request, session.provider, error);
      const continuation = this.#continuations.get(session.kind);
      return (await continuation?.fail?.(session.data, error, request)) ?? this.#errorPage(error);
    }
  }

  async #authenticated(
    request: BrowserRequest,
    session: LoginSession,
    provider: IdentityProvider,
    remote: RemoteUser,
  ): Promise<Reply> {
    const { accounts, updatesProfiles } = this.#deps;
    const userId = await accounts.find(provider, remote);
    if (userId !== undefined) {
      if (updatesProfiles) await accounts.update(userId, remote);
      return this.#finish(request, session, { remote, userId, isNewAccount: false });
    }
    if (this.#continuations.get(session.kind)?.onlyExisting || !provider.allowsRegistration) {
      throw new LoginFailure('unknown_user', 'You have no account on this server', { status: 403 });
    }
    return this.#nextStep(request, { ...session, newUser: { remote } }, provider);
  }

  /** Leads a new user to the next page, or creates the account. */
  async #nextStep(
    request: BrowserRequest,
    session: LoginSession & { readonly newUser: NewUser },
    provider: IdentityProvider,
  ): Promise<Reply> {
    const { accounts, newUserPages, randomness, sessions } = this.#deps;
    const { newUser } = session;
    const page = newUserPages.next(newUser);
    if (page !== undefined) {
      const id = sessions.newId();
      const browser = browserOrNew(request, randomness);
      sessions.add(id, { browser, ip: request.ip }, { ...session, secrets: {} });
      const cookie = browserCookie(request, browser, provider.respondsByPost === true);
      return redirect(`${page}?session=${id}`, 303, { 'Set-Cookie': cookie, 'Cache-Control': 'no-store' });
    }
    const userId = await accounts.create(provider, newUser, request.ip);
    return this.#finish(request, session, { remote: newUser.remote, userId, isNewAccount: true });
  }

  #finish(
    request: BrowserRequest,
    session: LoginSession,
    {
      remote,
      ...login
    }: { readonly remote: RemoteUser; readonly userId: string; readonly isNewAccount: boolean },
  ): Promise<Reply> {
    const continuation = this.#continuations.get(session.kind);
    if (continuation === undefined) throw new Error(`No continuation of the kind ${session.kind}`);
    const { externalId, sessionId, extraFields = {} } = remote;
    const providerSession = { provider: session.provider, externalId, sessionId };
    const { data, isForced = false } = session;
    return continuation.finish({ ...login, data, isForced, providerSession, extraFields }, request);
  }

  #errorPage({ status, code, message, template, values }: LoginFailure): Promise<Reply> {
    const shown = { error: code, error_description: message, ...values };
    return this.#deps.pages.page(template, shown, { status });
  }
}

/** Logs the reason of a login that has failed, with the code that the page shows. Other errors are logged elsewhere. */
function logFailure(request: BrowserRequest, provider: string, error: unknown): void {
  if (!(error instanceof LoginFailure)) return;
  request.log.info(
    { provider, code: error.code, reason: error.message, err: error.cause },
    'A login through an identity provider has failed',
  );
}
