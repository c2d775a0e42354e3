import { MatrixError } from '../../protocol/index.ts';

/** A failed login through a browser: the reason is shown on a page. */
export class LoginFailure extends MatrixError {
  /** For instance `access_denied`. The page shows it beside the message, so that users can search for it. */
  readonly code: string;
  /** Name of the template of the page. */
  readonly template: string;
  readonly values: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    {
      status = 400,
      template = 'sso_error.html',
      values = {},
      cause,
    }: {
      readonly status?: number;
      readonly template?: string;
      readonly values?: Readonly<Record<string, unknown>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(status, status === 403 ? 'M_FORBIDDEN' : 'M_UNKNOWN', message);
    this.code = code;
    this.template = template;
    this.values = values;
    if (cause !== undefined) this.cause = cause;
  }
}

/** Returns the failure of a login when the provider should have authenticated the user again and did not. */
export const notAuthenticatedAgain = () =>
  new LoginFailure('login_required', 'The identity provider has not asked you to sign in again');

/** Returns the failure of a login that the browser has not begun, or that took too long. */
export const unknownLogin = () =>
  new LoginFailure(
    'session_not_found',
    'This login is unknown, has expired or was started in another browser. Please go back to your app and try again.',
  );
