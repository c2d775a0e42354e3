import type { Reply, RouteRequest } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { ProviderSession } from '../external-ids/provider-sessions.ts';
import type { LoginFailure } from './login-failure.ts';

/** The parts of a browser's request that a login needs. */
export type BrowserRequest = Pick<RouteRequest, 'ip' | 'headers' | 'cookies' | 'isSecure' | 'url' | 'log'>;

/** The action that follows a login through a browser. Registered while the server opens. */
export interface LoginContinuation {
  /** Distinguishes the continuations, for instance `client`. */
  readonly kind: string;
  /** Whether only users who have an account can log in. */
  readonly onlyExisting?: boolean;
  /**
   * Returns the origins and schemes, besides this server, that `finish` may redirect the browser to. Pages with forms
   * that lead to such a redirect name these origins in `form-action` of their content security policy.
   */
  formTargets?(data: JsonObject): string;
  /** Responds to the browser of an authenticated user, whose account exists and is neither deactivated nor locked. */
  finish(login: FinishedLogin, request: BrowserRequest): Promise<Reply>;
  /** Responds to the browser when the login has failed; by default with an error page. */
  fail?(data: JsonObject, failure: LoginFailure, request: BrowserRequest): Promise<Reply>;
}

export interface FinishedLogin {
  readonly userId: string;
  /** The data that `BrowserLogins.begin` received. */
  readonly data: JsonObject;
  readonly isNewAccount: boolean;
  /** Whether the provider has authenticated the user for this login, and not only at some earlier time. */
  readonly isForced: boolean;
  /** The provider, and its session. The provider may request a logout of this session. */
  readonly providerSession: ProviderSession;
  /** Further fields for the response to the `POST /login` of the client (`extra_attributes`). */
  readonly extraFields: JsonObject;
}
